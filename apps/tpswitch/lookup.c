// SPDX-License-Identifier: GPL-2.0
/* Which port gets a packet: learned addresses, all ports, a hash, or a file */

#include <dlfcn.h>
#include <stdlib.h>

#include "macs.h"

#define LINK_LOCAL	0xc280010000ull	/* 01:80:c2:00:00:xx */

/* The entry of an address; most packets have those of the port's last one. */
static inline struct sw_mac *get(struct sw *sw, struct sw_mac **last, u64 key)
{
	if (unlikely((*last)->key != key))
		*last = sw_mac_get(sw, key);
	return *last;
}

/* Learn an address; false if the packet must not come from this port. */
static inline bool learn(struct sw *sw, struct sw_port *in, u64 key)
{
	struct sw_mac *m = get(sw, &in->from, key);

	if (unlikely(m->key != key || m->port != in->nr))
		return sw_mac_learn(sw, in, key);
	m->seen = sw->seconds;
	return true;
}

static inline unsigned int find(struct sw *sw, struct sw_port *in, u64 key)
{
	struct sw_mac *m = get(sw, &in->to, key);

	if (unlikely(m->key != key || sw_mac_aged(sw, m)))
		return sw_mac_find(sw, key);
	return m->port;
}

/* As a bridge without spanning tree does */
static unsigned int to_group(struct sw *sw, struct sw_port *in, u16 vid, u64 to,
			     u64 from, const u8 *data, u32 len)
{
	/* the last byte of 01:80:c2:00:00:xx */
	unsigned int last = (to & ~(0xffull << 56)) == LINK_LOCAL ? to >> 56 : 0;

	if (unlikely(from == sw->probe_from)) {
		sw_loop_seen(sw, in, vid, data, len);
		return TPSWITCH_DROP;
	}
	/* Pause frames are for the other end of the wire only. */
	if (last != 1 && !learn(sw, in, from | vid))
		return SW_TO_REFUSED;
	return last && last < 16 ? TPSWITCH_DROP : TPSWITCH_FLOOD;
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
		return (sw_mac_of(data) ^ sw_mac_of(data + 6)) * 0x9e3779b9u >> 32;
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
 * @vid: its VLAN, or 0
 * @data: its first bytes, which may change at any time
 * @len: how many, at least 14
 *
 * Return: the number of a port, %TPSWITCH_FLOOD, %TPSWITCH_DROP, or %SW_TO_REFUSED.
 */
unsigned int sw_lookup(struct sw *sw, struct sw_port *in, u16 vid, const u8 *data,
		       u32 len)
{
	u64 to, from;

	if (likely(sw->lookup == SW_LEARN)) {
		to = sw_mac_of(data);
		from = sw_mac_of(data + 6);
		if (unlikely(!from || (from & SW_MULTICAST)))
			return TPSWITCH_DROP;
		if (unlikely(to & SW_MULTICAST))
			return to_group(sw, in, vid, to, from, data, len);
		if (!learn(sw, in, from | vid))
			return SW_TO_REFUSED;
		return find(sw, in, to | vid);
	}
	switch (sw->lookup) {
	case SW_LEARN:
		break;
	case SW_HUB:
		if (likely(!sw->probe_from || sw_mac_of(data + 6) != sw->probe_from))
			return TPSWITCH_FLOOD;
		sw_loop_seen(sw, in, vid, data, len);
		return TPSWITCH_DROP;
	case SW_HASH:
		return spread(sw, in, data, len);
	case SW_FILE:
		to = sw->file_lookup(data, len, in->nr);
		return to < TPSWITCH_DROP ? to : TPSWITCH_DROP;
	}
	return TPSWITCH_DROP;
}

/* Does a frame need attention, or has it no header? */
static inline bool is_odd(const struct sw_frag *f, u64 odd)
{
	return unlikely(f->word & odd) || unlikely(f->len < ETH_HLEN);
}

/* The addresses of a frame, as sw_mac_at_0() and sw_mac_at_2() take them */
static inline void read_macs(const struct sw_frag *f, u64 *head, u64 *tail)
{
	memcpy(head, f->data, sizeof(*head));
	memcpy(tail, f->data + 4, sizeof(*tail));
}

static inline bool same_macs(const struct sw_frag *f, u64 head, u64 tail)
{
	u64 head2, tail2;

	read_macs(f, &head2, &tail2);
	return head == head2 && tail == tail2;
}

/**
 * sw_lookup_batch - find the ports of packets of one frame
 * @sw: switch
 * @from: where they come from
 * @frag: the frames
 * @n: their number, at least 1
 * @run: set to the frames that are for the same port; up to @n + 1. %SW_TO_ODD is for
 *       whole packets that have several frames, an error, no header, or metadata of a
 *       program
 *
 * Return: the number of runs; the first one may be empty.
 */
unsigned int sw_lookup_batch(struct sw *sw, const struct sw_source *from,
			     const struct sw_frag *frag, unsigned int n,
			     struct sw_run *run)
{
	struct sw_port *in = from->port;
	/* In registers: what is stored in the loop could change them. */
	const u32 nr = in->nr;
	bool learning = sw->lookup == SW_LEARN;
	struct sw_mac *m;
	const u32 seconds = sw->seconds, age = sw->age;
	const u64 odd = from->is_dev ? SW_WORD_CHAIN : SW_WORD_ODD;
	const struct sw_frag *f = frag, *end = frag + n;
	struct sw_run *first = run;
	u64 dst, src, head, tail;
	u32 bytes = 0;
	u16 to;

	run->to = TPSWITCH_DROP;
	for (; f < end; f++) {
		bool known = false;

		if (is_odd(f, odd)) {
			to = SW_TO_ODD;
			goto found;
		}
		read_macs(f, &head, &tail);
		dst = sw_mac_at_0(head);
		src = sw_mac_at_2(tail);
		if (unlikely(!learning || ((dst | src) & SW_MULTICAST) || !src)) {
			to = sw_lookup(sw, in, 0, f->data, f->len);
			goto found;
		}
		m = get(sw, &in->from, src);
		if (unlikely(m->key != src || m->port != nr)) {
			to = sw_mac_learn(sw, in, src) ? sw_mac_find(sw, dst) :
			     SW_TO_REFUSED;
			goto found;
		}
		m->seen = seconds;
		m = get(sw, &in->to, dst);
		if (unlikely(m->key != dst || seconds - m->seen > age)) {
			to = sw_mac_find(sw, dst);
			goto found;
		}
		to = m->port;
		known = true;
found:
		if (to != run->to) {
			run->end = f - frag;
			run->bytes = bytes;
			bytes = 0;
			run++;
			run->to = to;
		}
		if (unlikely(to == SW_TO_ODD)) {
			/* The rest of the packet does not start with addresses. */
			while ((f->flags & TP4_PKT_CONT) && f + 1 < end)
				f++;
			continue;
		}
		bytes += f->len;
		/* Most packets have the addresses of the one before them. */
		while (known && f + 1 < end && !is_odd(f + 1, odd) &&
		       likely(same_macs(f + 1, head, tail)))
			bytes += (++f)->len;
	}
	run->end = n;
	run->bytes = bytes;
	return run - first + 1;
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
