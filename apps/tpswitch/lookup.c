// SPDX-License-Identifier: GPL-2.0
/* Which port gets a packet: learned addresses, all ports, a hash, or a file */

#include <dlfcn.h>
#include <stdlib.h>

#include "tpswitch.h"

#define SETS		16384		/* a power of two */
#define WAYS		4
#define MULTICAST	(1ull << 40)	/* of an address as mac_of() has it */

/**
 * struct sw_mac - an address
 * @mac: the address; 0: none
 * @port: where it is
 * @seen: when a packet came from it, in seconds
 */
struct sw_mac {
	u64 mac : 48;
	u64 port : 16;
	u32 seen;
	u32 unused;
};

/**
 * struct sw_macs - the table of addresses
 * @set: a cache line of addresses for each hash
 */
struct sw_macs {
	struct sw_mac set[SETS][WAYS] __attribute__((__aligned__(64)));
};

/* An address, first byte in the highest bits */
static u64 mac_of(const u8 *p)
{
	u64 hi, lo;
	u32 a;
	u16 b;

	memcpy(&a, p, sizeof(a));
	memcpy(&b, p + 4, sizeof(b));
	hi = ntohl(a);
	lo = ntohs(b);
	return hi << 16 | lo;
}

static struct sw_mac *set_of(struct sw *sw, u64 mac)
{
	/* The high bits of the product depend on all bits of the address. */
	return sw->macs->set[mac * 0x9e3779b97f4a7c15ull >> 50];
}

static void forget_mac(struct sw *sw, struct sw_mac *m)
{
	struct sw_port *port = m->mac ? sw->ports[m->port] : NULL;

	if (port)
		port->macs--;
	m->mac = 0;
}

/* A new address, one that has moved, or one that is too old. */
static void learn_new(struct sw *sw, struct sw_port *in, u64 mac, u32 seconds)
{
	struct sw_mac *set = set_of(sw, mac), *m = NULL;
	unsigned int i;

	for (i = 0; i < WAYS; i++)
		if (set[i].mac == mac)
			m = &set[i];
	if (in->macs >= in->max_macs && !(m && m->port == in->nr)) {
		in->unlearned++;
		return;
	}
	for (i = 0; !m && i < WAYS; i++)
		if (!set[i].mac)
			m = &set[i];
	if (!m) {
		m = set;
		for (i = 1; i < WAYS; i++)
			if ((int)(set[i].seen - m->seen) < 0)
				m = &set[i];
	}
	forget_mac(sw, m);
	m->mac = mac;
	m->port = in->nr;
	m->seen = seconds;
	in->macs++;
}

static void learn(struct sw *sw, struct sw_port *in, u64 mac, u32 seconds)
{
	struct sw_mac *m = set_of(sw, mac);
	unsigned int i;

	for (i = 0; i < WAYS; i++)
		if (likely(m[i].mac == mac && m[i].port == in->nr)) {
			m[i].seen = seconds;
			return;
		}
	learn_new(sw, in, mac, seconds);
}

static unsigned int find(struct sw *sw, u64 mac, u32 seconds)
{
	const struct sw_mac *m = set_of(sw, mac);
	unsigned int i;

	for (i = 0; i < WAYS; i++)
		if (likely(m[i].mac == mac)) {
			if (seconds - m[i].seen > sw->age)
				break;
			return m[i].port;
		}
	return TPSWITCH_FLOOD;
}

/* The header of the network layer, behind VLAN tags; 0 if it is not there */
static u32 network_header(const u8 *data, u32 len, u16 *type)
{
	u32 at = 12;

	while (at + 2 <= len) {
		*type = data[at] << 8 | data[at + 1];
		if (*type != ETH_P_8021Q && *type != ETH_P_8021AD)
			return at + 2;
		at += 4;
	}
	return 0;
}

/* A hash of addresses and ports that both directions of a flow have */
static u32 flow_hash(const u8 *data, u32 len)
{
	u32 at, ends, l4 = 0, alen = 4, i;
	u64 sum = 0;
	u16 type;
	u8 proto;

	at = network_header(data, len, &type);
	if (at && type == ETH_P_IP && at + 20 <= len) {
		ends = at + 12;
		proto = data[at + 9];
		/* Only the first fragment has ports. */
		if (!((data[at + 6] << 8 | data[at + 7]) & 0x3fff))
			l4 = at + (data[at] & 15) * 4;
	} else if (at && type == ETH_P_IPV6 && at + 40 <= len) {
		ends = at + 8;
		alen = 16;
		proto = data[at + 6];
		l4 = at + 40;
	} else {
		return (mac_of(data) ^ mac_of(data + 6)) * 0x9e3779b9u >> 16;
	}
	for (i = 0; i < 2 * alen; i += 4) {
		u32 word;

		memcpy(&word, data + ends + i, sizeof(word));
		sum += (u64)word * word;
	}
	if (l4 && (proto == IPPROTO_TCP || proto == IPPROTO_UDP ||
		   proto == IPPROTO_SCTP) && l4 + 4 <= len) {
		u16 port[2];

		memcpy(port, data + l4, sizeof(port));
		sum += (u64)port[0] * port[0] + (u64)port[1] * port[1];
	}
	sum *= 0x9e3779b97f4a7c15ull;
	return sum >> 32;
}

/* From the first port to one of the others, from these to the first */
static unsigned int spread(struct sw *sw, struct sw_port *in, const u8 *data,
			   u32 len)
{
	unsigned int first = 1, n, nr;

	while (first < SW_PORTS && (!sw->ports[first] || sw->ports[first]->gone))
		first++;
	if (in->nr != first)
		return first;
	if (sw->nr_ports < 2)
		return TPSWITCH_DROP;
	n = flow_hash(data, len) % (sw->nr_ports - 1);
	for (nr = first + 1; nr <= SW_PORTS; nr++)
		if (sw->ports[nr] && !sw->ports[nr]->gone && !n--)
			return nr;
	return TPSWITCH_DROP;
}

/**
 * sw_lookup - find the port that gets a packet
 * @sw: switch
 * @in: the port that it comes from
 * @data: its first bytes, which may change at any time
 * @len: how many, at least 14
 *
 * Return: the number of a port, %TPSWITCH_FLOOD or %TPSWITCH_DROP.
 */
unsigned int sw_lookup(struct sw *sw, struct sw_port *in, const u8 *data,
		       u32 len)
{
	u64 to, from;

	switch (sw->lookup) {
	case SW_LEARN:
		to = mac_of(data);
		from = mac_of(data + 6);
		if (unlikely(!from || (from & MULTICAST)))
			return TPSWITCH_DROP;
		learn(sw, in, from, sw->seconds);
		if (likely(!(to & MULTICAST)))
			return find(sw, to, sw->seconds);
		/* No bridge forwards 01:80:c2:00:00:0x. */
		if (to >> 4 == 0x0180c200000ull)
			return TPSWITCH_DROP;
		return TPSWITCH_FLOOD;
	case SW_HUB:
		return TPSWITCH_FLOOD;
	case SW_HASH:
		return spread(sw, in, data, len);
	case SW_FILE:
		return sw->file_lookup(data, len, in->nr);
	}
	return TPSWITCH_DROP;
}

/**
 * sw_lookup_set - set how the port of a packet is found
 * @sw: switch
 * @name: learn, hub, hash or the path of a shared object
 * @why: set to the reason of a failure
 * @len: bytes of @why
 *
 * Return: 0, or -1.
 */
int sw_lookup_set(struct sw *sw, const char *name, char *why, size_t len)
{
	void *file;

	if (!sw->macs) {
		sw->macs = aligned_alloc(64, sizeof(*sw->macs));
		if (!sw->macs) {
			snprintf(why, len, "no memory");
			return -1;
		}
		memset(sw->macs, 0, sizeof(*sw->macs));
	}
	if (!strcmp(name, "learn")) {
		sw->lookup = SW_LEARN;
	} else if (!strcmp(name, "hub")) {
		sw->lookup = SW_HUB;
	} else if (!strcmp(name, "hash")) {
		sw->lookup = SW_HASH;
	} else {
		file = strchr(name, '/') ? dlopen(name, RTLD_NOW) : NULL;
		if (file)
			*(void **)&sw->file_lookup =
				dlsym(file, "tpswitch_lookup");
		if (!file || !sw->file_lookup) {
			snprintf(why, len, "%s", strchr(name, '/') ? dlerror() :
				 "learn, hub, hash, or the path of a file");
			return -1;
		}
		sw->lookup = SW_FILE;
	}
	return 0;
}

/**
 * sw_forget - forget the addresses of a port
 * @sw: switch
 * @port: port that goes away
 */
void sw_forget(struct sw *sw, struct sw_port *port)
{
	unsigned int i;

	for (i = 0; port->macs && i < SETS * WAYS; i++) {
		struct sw_mac *m = &sw->macs->set[0][0] + i;

		if (m->mac && m->port == port->nr)
			forget_mac(sw, m);
	}
}

/**
 * sw_macs_print - write the table of addresses
 * @sw: switch
 * @file: where to
 */
void sw_macs_print(struct sw *sw, FILE *file)
{
	u32 seconds = sw->seconds;
	unsigned int i, j;

	for (i = 0; i < SETS * WAYS; i++) {
		const struct sw_mac *m = &sw->macs->set[0][0] + i;

		if (!m->mac || seconds - m->seen > sw->age)
			continue;
		for (j = 0; j < 48; j += 8)
			fprintf(file, "%02x%s",
				(unsigned int)(m->mac >> (40 - j)) & 255,
				j < 40 ? ":" : " ");
		fprintf(file, "%s %u\n", sw->ports[m->port]->name,
			seconds - m->seen);
	}
}
