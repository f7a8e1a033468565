// SPDX-License-Identifier: GPL-2.0
/* Which port gets a packet: learned addresses, all ports, a hash, or a file */

#include <dlfcn.h>
#include <endian.h>
#include <stdlib.h>

#include "tpswitch.h"

#define SETS		16384		/* a power of two */
#define WAYS		4
/* The high bits of the product depend on all bits of the address. */
#define FACTOR		0x9e3779b97f4a7c15ull
#define SHIFT		50
#define PORT		0xffffull	/* of struct sw_mac.key */
#define MULTICAST	0x10000ull	/* of an address as mac_of() has it */
#define LINK_LOCAL	0xc280010000ull	/* 01:80:c2:00:00:xx */

/**
 * struct sw_mac - an address
 * @key: the address as mac_of() has it, and below it the port; 0: none
 * @seen: when a packet came from it, in seconds
 */
struct sw_mac {
	u64 key;
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

/* An address at the start of eight bytes; its first byte in bits 16 to 23 */
static inline u64 mac_at_0(u64 bytes)
{
	return le64toh(bytes) << 16;
}

/* An address two bytes behind the start of eight bytes */
static inline u64 mac_at_2(u64 bytes)
{
	return le64toh(bytes) & ~0xffffull;
}

/* An address; reads two bytes more */
static inline u64 mac_of(const u8 *p)
{
	u64 bytes;

	memcpy(&bytes, p, sizeof(bytes));
	return mac_at_0(bytes);
}

static inline bool same_mac(const struct sw_mac *m, u64 mac)
{
	return (m->key ^ mac) <= PORT;
}

static inline unsigned int port_of(const struct sw_mac *m)
{
	return m->key & PORT;
}

static inline struct sw_mac *set_of(struct sw *sw, u64 mac)
{
	return sw->macs->set[mac * FACTOR >> SHIFT];
}

static void forget_mac(struct sw *sw, struct sw_mac *m)
{
	if (m->key)
		sw->ports[port_of(m)]->macs--;
	m->key = 0;
}

/* A new address, one that has moved, or one that is not first in its set */
static void learn_slow(struct sw *sw, struct sw_port *in, u64 mac)
{
	struct sw_mac *set = set_of(sw, mac), *m = NULL;
	unsigned int i;

	for (i = 0; i < WAYS; i++)
		if (same_mac(&set[i], mac))
			m = &set[i];
	if (m && port_of(m) == in->nr) {
		m->seen = sw->seconds;
		return;
	}
	if (in->macs >= in->max_macs) {
		in->unlearned++;
		return;
	}
	for (i = 0; !m && i < WAYS; i++)
		if (!set[i].key)
			m = &set[i];
	if (!m) {
		m = set;
		for (i = 1; i < WAYS; i++)
			if ((int)(set[i].seen - m->seen) < 0)
				m = &set[i];
	}
	forget_mac(sw, m);
	m->key = mac | in->nr;
	m->seen = sw->seconds;
	in->macs++;
}

static inline void learn(struct sw *sw, struct sw_port *in, u64 mac)
{
	struct sw_mac *m = set_of(sw, mac);

	if (likely(m->key == (mac | in->nr)))
		m->seen = sw->seconds;
	else
		learn_slow(sw, in, mac);
}

static inline unsigned int find(struct sw *sw, u64 mac)
{
	const struct sw_mac *m = set_of(sw, mac), *end = m + WAYS;

	while (unlikely(!same_mac(m, mac)))
		if (++m == end)
			return TPSWITCH_FLOOD;
	if (unlikely(sw->seconds - m->seen > sw->age))
		return TPSWITCH_FLOOD;
	return port_of(m);
}

/* As a bridge without spanning tree does */
static unsigned int to_group(struct sw *sw, struct sw_port *in, u64 to,
			     u64 from)
{
	/* the last byte of 01:80:c2:00:00:xx */
	unsigned int last = (to & ~(0xffull << 56)) == LINK_LOCAL ? to >> 56 : 0;

	/* Pause frames are for the other end of the wire only. */
	if (last != 1)
		learn(sw, in, from);
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
		return (mac_of(data) ^ mac_of(data + 6)) * 0x9e3779b9u >> 32;
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

	if (likely(sw->lookup == SW_LEARN)) {
		to = mac_of(data);
		from = mac_of(data + 6);
		if (unlikely(!from || (from & MULTICAST)))
			return TPSWITCH_DROP;
		if (unlikely(to & MULTICAST))
			return to_group(sw, in, to, from);
		learn(sw, in, from);
		return find(sw, to);
	}
	switch (sw->lookup) {
	case SW_LEARN:
		break;
	case SW_HUB:
		return TPSWITCH_FLOOD;
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

/* The addresses of a frame, as mac_at_0() and mac_at_2() take them */
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
	const u64 nr = in->nr, factor = FACTOR;
	bool learning = sw->lookup == SW_LEARN;
	struct sw_mac (*set)[WAYS] = sw->macs->set, *m;
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
		dst = mac_at_0(head);
		src = mac_at_2(tail);
		if (unlikely(!learning || ((dst | src) & MULTICAST) || !src)) {
			to = sw_lookup(sw, in, f->data, f->len);
			goto found;
		}
		m = set[src * factor >> SHIFT];
		if (unlikely(m->key != (src | nr))) {
			learn_slow(sw, in, src);
			to = find(sw, dst);
			goto found;
		}
		m->seen = seconds;
		m = set[dst * factor >> SHIFT];
		if (unlikely(!same_mac(m, dst) || seconds - m->seen > age)) {
			to = find(sw, dst);
			goto found;
		}
		to = port_of(m);
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

		if (m->key && port_of(m) == port->nr)
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

		if (!m->key || seconds - m->seen > sw->age)
			continue;
		for (j = 16; j < 64; j += 8)
			fprintf(file, "%02x%s",
				(unsigned int)(m->key >> j) & 255,
				j < 56 ? ":" : " ");
		fprintf(file, "%s %u\n", sw->ports[port_of(m)]->name,
			seconds - m->seen);
	}
}
