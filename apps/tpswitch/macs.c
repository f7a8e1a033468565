// SPDX-License-Identifier: GPL-2.0
/* The table of addresses: learned, fixed, aged and evicted */

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "macs.h"

/**
 * sw_macs_init - create the table
 * @sw: switch
 *
 * Return: 0, or -errno.
 */
int sw_macs_init(struct sw *sw)
{
	struct sw_macs *macs = aligned_alloc(64, sizeof(*macs));
	u64 key[2];

	if (!macs)
		return -ENOMEM;
	if (getrandom(key, sizeof(key), 0) != sizeof(key)) {
		free(macs);
		return -EIO;
	}
	memset(macs, 0, sizeof(*macs));
	macs->secret[0] = key[0] ^ 0x736f6d6570736575ull;
	macs->secret[1] = key[1] ^ 0x646f72616e646f6dull;
	macs->secret[2] = key[0] ^ 0x6c7967656e657261ull;
	macs->secret[3] = key[1] ^ 0x7465646279746573ull;
	/* Nobody has this address. */
	macs->none.key = ~0ull;
	sw->macs = macs;
	return 0;
}

static struct sw_mac *set_of(struct sw *sw, u64 key)
{
	return sw->macs->set[sw_mac_hash(sw->macs, key) % SW_SETS];
}

/**
 * sw_mac_get - look for an address
 * @sw: switch
 * @key: address, and its VLAN
 *
 * Return: its entry, or &sw_macs.none.
 */
struct sw_mac *sw_mac_get(struct sw *sw, u64 key)
{
	struct sw_mac *set = set_of(sw, key);
	unsigned int i;

	for (i = 0; key && i < SW_WAYS; i++)
		if (set[i].key == key)
			return &set[i];
	return &sw->macs->none;
}

static void forget(struct sw *sw, struct sw_mac *m)
{
	struct sw_port *port = sw->ports[m->port];

	if (!m->key)
		return;
	if (m->fixed)
		port->fixed--;
	else
		port->macs--;
	memset(m, 0, sizeof(*m));
	/* A port may still have this entry for the address 0. */
	m->seen = sw->seconds - sw->age - 1;
}

static void enter(struct sw *sw, struct sw_port *port, struct sw_mac *m, u64 key,
		  bool fixed)
{
	forget(sw, m);
	m->key = key;
	m->seen = sw->seconds;
	m->port = port->nr;
	m->fixed = fixed;
	if (fixed)
		port->fixed++;
	else
		port->macs++;
}

/**
 * sw_macs_expire - remove aged addresses, so that they do not count
 * @sw: switch
 */
void sw_macs_expire(struct sw *sw)
{
	struct sw_mac *m = sw->macs->set[0], *end = m + SW_SETS * SW_WAYS;

	/* It takes a while: a port at its limit must not cause this at each packet. */
	if (sw->macs->swept == sw->seconds)
		return;
	sw->macs->swept = sw->seconds;
	for (; m < end; m++)
		if (m->key && !m->fixed && sw_mac_aged(sw, m))
			forget(sw, m);
}

/* Number of addresses of a port in a set */
static unsigned int share(const struct sw_mac *set, unsigned int port)
{
	unsigned int i, n = 0;

	for (i = 0; i < SW_WAYS; i++)
		n += set[i].port == port;
	return n;
}

/*
 * The address that a full set gives up: the oldest one of the port that has the most
 * there, if that still has as many as the new one then, or else of the new one's own.
 * So no port makes the only address of another one unknown.
 */
static struct sw_mac *victim(const struct sw_port *in, struct sw_mac *set)
{
	unsigned int i, n, most = share(set, in->nr), from = in->nr;
	struct sw_mac *m = NULL;

	for (i = 0; i < SW_WAYS; i++) {
		n = share(set, set[i].port);
		if (!set[i].fixed && n > most + 1) {
			most = n - 1;
			from = set[i].port;
		}
	}
	for (i = 0; i < SW_WAYS; i++)
		if (set[i].port == from && !set[i].fixed &&
		    (!m || (int)(set[i].seen - m->seen) < 0))
			m = &set[i];
	return m;
}

/**
 * sw_mac_learn - a packet has come from an address that is not known at its port
 * @sw: switch
 * @in: port
 * @key: address, and its VLAN
 *
 * Return: false if the address is fixed at another port.
 */
bool sw_mac_learn(struct sw *sw, struct sw_port *in, u64 key)
{
	struct sw_mac *ways = set_of(sw, key), *m = sw_mac_get(sw, key);
	unsigned int i;

	if (m->key == key && m->port == in->nr) {
		m->seen = sw->seconds;
		return true;
	}
	if (m->key == key && m->fixed)
		return false;
	if (!in->learning)
		return true;
	if (in->macs >= in->max_macs)
		sw_macs_expire(sw);
	if (in->macs >= in->max_macs) {
		in->unlearned++;
		return true;
	}
	if (m->key != key) {
		m = NULL;
		for (i = 0; !m && i < SW_WAYS; i++)
			if (!ways[i].key ||
			    (!ways[i].fixed && sw_mac_aged(sw, &ways[i])))
				m = &ways[i];
	}
	if (!m)
		m = victim(in, ways);
	if (m)
		enter(sw, in, m, key, false);
	else
		in->unlearned++;
	return true;
}

/**
 * sw_mac_find - find the port of an address
 * @sw: switch
 * @key: address, and its VLAN
 *
 * Return: its number, or %TPSWITCH_FLOOD.
 */
unsigned int sw_mac_find(struct sw *sw, u64 key)
{
	struct sw_mac *m = sw_mac_get(sw, key);

	if (m->key != key)
		return TPSWITCH_FLOOD;
	if (m->fixed)
		m->seen = sw->seconds;
	return sw_mac_aged(sw, m) ? TPSWITCH_FLOOD : m->port;
}

/**
 * sw_mac_fix - say that an address is at a port
 * @sw: switch
 * @port: port, or NULL: it is not said any more
 * @key: address, and its VLAN
 *
 * Return: 0, or -errno: %ENOENT if it is not fixed, %ENOSPC if the addresses with the
 * same hash are fixed.
 */
int sw_mac_fix(struct sw *sw, struct sw_port *port, u64 key)
{
	struct sw_mac *ways = set_of(sw, key), *m = sw_mac_get(sw, key);
	unsigned int i;

	if (!port && (m->key != key || !m->fixed))
		return -ENOENT;
	if (m->key == key)
		forget(sw, m);
	if (!port)
		return 0;
	for (m = NULL, i = 0; i < SW_WAYS; i++)
		if (!ways[i].fixed && (!m || !ways[i].key ||
				       (m->key && ways[i].seen < m->seen)))
			m = &ways[i];
	if (!m)
		return -ENOSPC;
	enter(sw, port, m, key, true);
	return 0;
}

/**
 * sw_forget - forget the addresses of a port
 * @sw: switch
 * @port: port
 * @fixed: also those that are fixed
 */
void sw_forget(struct sw *sw, struct sw_port *port, bool fixed)
{
	struct sw_mac *m = sw->macs->set[0], *end = m + SW_SETS * SW_WAYS;

	for (; (port->macs || (fixed && port->fixed)) && m < end; m++)
		if (m->key && m->port == port->nr && (fixed || !m->fixed))
			forget(sw, m);
}
