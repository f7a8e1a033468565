// SPDX-License-Identifier: GPL-2.0
/*
 * tpgen: finding the packets of a capture file, pcap or pcapng
 *
 * Both byte orders, and any resolution of time stamps. The file may have any
 * content: every length is checked against what is left of it. What is damaged
 * does not take away the packets before it.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pcap.h"

#define NSEC		1000000000ull
#define LINK_ETHERNET	1
#define LINK_HAS_FCS	0x04000000u	/* its length: bits 28 to 31 */

#define PCAP_US		0xa1b2c3d4u
#define PCAP_NS		0xa1b23c4du
#define PCAP_HEADER	24
#define PCAP_RECORD	16

#define NG_SECTION	0x0a0d0d0au
#define NG_ORDER	0x1a2b3c4du
#define NG_INTERFACE	1u
#define NG_PACKET	2u		/* obsolete */
#define NG_SIMPLE	3u
#define NG_ENHANCED	6u
#define NG_BLOCK	12		/* shortest block */
#define NG_TSRESOL	9
#define NG_FCSLEN	13
#define NG_TSOFFSET	14
#define NG_PACKET_FLAGS	2
#define NG_INTERFACES	65536

/* A stamp that is so much later than that of a packet behind it is wrong. */
#define STRAY_NS	NSEC

/**
 * struct reader - what is left of the file
 * @p: next byte
 * @left: number of bytes
 * @swap: numbers are in the other byte order
 * @c: packets so far
 * @room: packets that there is memory for
 * @max_packet: bytes of the longest packet that is taken
 * @error: message after a failure
 */
struct reader {
	const __u8 *p;
	size_t left;
	bool swap;
	struct capture *c;
	size_t room;
	__u32 max_packet;
	char *error;
};

static __u16 get16(const struct reader *r, const __u8 *p)
{
	__u16 n;

	memcpy(&n, p, sizeof(n));
	return r->swap ? __builtin_bswap16(n) : n;
}

static __u32 get32(const struct reader *r, const __u8 *p)
{
	__u32 n;

	memcpy(&n, p, sizeof(n));
	return r->swap ? __builtin_bswap32(n) : n;
}

static int fail(struct reader *r, const char *why)
{
	snprintf(r->error, CAPTURE_ERROR, "%s", why);
	return -1;
}

static void advance(struct reader *r, size_t n)
{
	r->p += n;
	r->left -= n;
}

/* Add a packet of len bytes in the file, the last fcs of which, on the wire, are
 * no data.
 */
static int add_packet(struct reader *r, __u64 ns, const __u8 *data, __u32 len,
		      __u32 wire_len, __u32 fcs)
{
	struct capture *c = r->c;
	struct captured *new;

	if (wire_len < len)
		wire_len = len;
	wire_len = wire_len > fcs ? wire_len - fcs : 0;
	if (len > wire_len)
		len = wire_len;
	if (!len || len > r->max_packet) {
		c->empty += !len;
		c->too_long += len > 0;
		return 0;
	}
	if (c->nr == r->room) {
		r->room = r->room ? 2 * r->room : 1024;
		new = reallocarray(c->packet, r->room, sizeof(*new));
		if (!new)
			return fail(r, "no memory");
		c->packet = new;
	}
	c->packet[c->nr++] = (struct captured){
		.ns = ns, .data = data, .len = len,
	};
	c->cut += len < wire_len;
	if (len > c->max_len)
		c->max_len = len;
	return 0;
}

/* --- pcap ---------------------------------------------------------------- */

static int parse_pcap(struct reader *r, __u64 unit)
{
	__u32 len, wire_len, link, fcs = 0;
	__u64 ns;

	if (r->left < PCAP_HEADER)
		return fail(r, "the header of the pcap file is incomplete");
	link = get32(r, r->p + 20);
	if (link & LINK_HAS_FCS)
		fcs = (link >> 28) * 2;
	link &= 0xffff;
	if (link != LINK_ETHERNET) {
		snprintf(r->error, CAPTURE_ERROR,
			 "packets have link type %u, not Ethernet", link);
		return -1;
	}
	advance(r, PCAP_HEADER);
	while (r->left >= PCAP_RECORD) {
		ns = get32(r, r->p) * NSEC + get32(r, r->p + 4) * unit;
		len = get32(r, r->p + 8);
		wire_len = get32(r, r->p + 12);
		if (len > CAPTURE_MAX_RECORD)
			return fail(r, "a packet has an impossible length");
		if (len > r->left - PCAP_RECORD)
			break;
		if (add_packet(r, ns, r->p + PCAP_RECORD, len, wire_len, fcs))
			return -1;
		advance(r, PCAP_RECORD + len);
	}
	r->c->incomplete = r->left != 0;
	return 0;
}

/* --- pcapng -------------------------------------------------------------- */

/**
 * struct interface - an interface of a section
 * @link: link type
 * @fcs: bytes of a packet on the wire that are its check sequence
 * @snap_len: most bytes of a packet, 0: no limit
 * @resolution: units of a time stamp per second
 * @offset: seconds to add to it
 */
struct interface {
	__u16 link;
	__u8 fcs;
	__u32 snap_len;
	__u64 resolution;
	__u64 offset;
};

struct section {
	struct interface *interface;
	__u32 nr;
};

static __u64 resolution_of(__u8 value)
{
	__u64 n = 1;

	if (value & 0x80)
		return (value & 0x7f) < 64 ? 1ull << (value & 0x7f) : 0;
	if (value > 19)
		return 0;
	while (value--)
		n *= 10;
	return n;
}

static __u64 to_ns(const struct interface *i, __u64 stamp)
{
	__u64 seconds = stamp / i->resolution;
	__u64 rest = stamp % i->resolution;

	return (seconds + i->offset) * NSEC +
	       (__u64)((unsigned __int128)rest * NSEC / i->resolution);
}

/* The body of a block is from p on, without its type and lengths. */
static int add_interface(struct reader *r, struct section *s, const __u8 *p,
			 __u32 len)
{
	struct interface *i;
	__u16 code, size;

	if (len < 8)
		return fail(r, "a description of an interface is too short");
	if (s->nr == NG_INTERFACES)
		return fail(r, "too many interfaces");
	i = reallocarray(s->interface, s->nr + 1, sizeof(*i));
	if (!i)
		return fail(r, "no memory");
	s->interface = i;
	i += s->nr++;
	i->link = get16(r, p);
	i->fcs = 0;
	i->snap_len = get32(r, p + 4);
	i->resolution = 1000000;
	i->offset = 0;
	for (p += 8, len -= 8; len >= 4; ) {
		__u32 padded;

		code = get16(r, p);
		size = get16(r, p + 2);
		padded = (size + 3u) & ~3u;
		if (!code || padded > len - 4)
			break;
		if (code == NG_TSRESOL && size == 1) {
			i->resolution = resolution_of(p[4]);
			if (!i->resolution)
				return fail(r, "unknown resolution of time stamps");
		} else if (code == NG_FCSLEN && size == 1) {
			i->fcs = p[4];
		} else if (code == NG_TSOFFSET && size == 8) {
			__u64 lo = get32(r, p + 4), hi = get32(r, p + 8);
			const __u32 one = 1;
			bool little = *(const __u8 *)&one != r->swap;

			i->offset = little ? hi << 32 | lo : lo << 32 | hi;
		}
		p += 4 + padded;
		len -= 4 + padded;
	}
	return 0;
}

/* Length of the check sequence, which a packet's own flags may tell */
static __u8 fcs_of(const struct reader *r, const struct interface *i,
		   const __u8 *options, __u32 len)
{
	__u8 fcs;

	while (len >= 4) {
		__u16 code = get16(r, options), size = get16(r, options + 2);
		__u32 padded = (size + 3u) & ~3u;

		if (!code || padded > len - 4)
			break;
		if (code == NG_PACKET_FLAGS && size == 4) {
			fcs = get32(r, options + 4) >> 5 & 0xf;
			return fcs ? fcs : i->fcs;
		}
		options += 4 + padded;
		len -= 4 + padded;
	}
	return i->fcs;
}

static int add_enhanced(struct reader *r, const struct section *s,
			__u32 interface, const __u8 *p, __u32 len)
{
	const struct interface *i;
	__u32 size, padded;
	__u64 stamp;

	/* from the time stamp on: high and low part, length, wire length */
	if (len < 16)
		return fail(r, "a packet's block is too short");
	size = get32(r, p + 8);
	if (size > len - 16)
		return fail(r, "a packet is longer than its block");
	if (interface >= s->nr)
		return fail(r, "a packet is of an interface that is not described");
	i = &s->interface[interface];
	if (i->link != LINK_ETHERNET) {
		r->c->skipped++;
		return 0;
	}
	stamp = (__u64)get32(r, p) << 32 | get32(r, p + 4);
	padded = 16 + ((size + 3) & ~3u);
	if (padded > len)
		padded = len;
	return add_packet(r, to_ns(i, stamp), p + 16, size, get32(r, p + 12),
			  fcs_of(r, i, p + padded, len - padded));
}

static int add_simple(struct reader *r, const struct section *s, const __u8 *p,
		      __u32 len)
{
	__u32 size, wire_len;
	__u64 ns = 0;

	if (len < 4)
		return fail(r, "a packet's block is too short");
	if (!s->nr)
		return fail(r, "a packet is of an interface that is not described");
	size = wire_len = get32(r, p);
	if (s->interface->snap_len && size > s->interface->snap_len)
		size = s->interface->snap_len;
	if (size > len - 4)
		return fail(r, "a packet is longer than its block");
	if (s->interface->link != LINK_ETHERNET) {
		r->c->skipped++;
		return 0;
	}
	/* It has no time stamp. */
	if (r->c->nr)
		ns = r->c->packet[r->c->nr - 1].ns;
	return add_packet(r, ns, p + 4, size, wire_len, s->interface->fcs);
}

static int parse_block(struct reader *r, struct section *s, __u32 type,
		       const __u8 *p, __u32 len)
{
	switch (type) {
	case NG_SECTION:
		s->nr = 0;
		return 0;
	case NG_INTERFACE:
		return add_interface(r, s, p, len);
	case NG_ENHANCED:
		if (len < 4)
			return fail(r, "a packet's block is too short");
		return add_enhanced(r, s, get32(r, p), p + 4, len - 4);
	case NG_PACKET:
		if (len < 4)
			return fail(r, "a packet's block is too short");
		return add_enhanced(r, s, get16(r, p), p + 4, len - 4);
	case NG_SIMPLE:
		return add_simple(r, s, p, len);
	default:
		return 0;
	}
}

/* A section starts with a number that shows its byte order. */
static int set_order(struct reader *r)
{
	__u32 order;

	memcpy(&order, r->p + 8, sizeof(order));
	r->swap = order == __builtin_bswap32(NG_ORDER);
	if (order != NG_ORDER && !r->swap)
		return fail(r, "the byte order of the pcapng file is unknown");
	return 0;
}

static int parse_blocks(struct reader *r, struct section *s)
{
	__u32 type, len;

	while (r->left >= NG_BLOCK) {
		type = get32(r, r->p);
		/* the same in both orders */
		if (type == NG_SECTION && set_order(r))
			return -1;
		len = get32(r, r->p + 4);
		if (len < NG_BLOCK || len % 4)
			return fail(r, "a block has an invalid length");
		if (len > r->left)
			break;
		if (get32(r, r->p + len - 4) != len)
			return fail(r, "the two lengths of a block differ");
		if (parse_block(r, s, type, r->p + 8, len - NG_BLOCK))
			return -1;
		advance(r, len);
	}
	r->c->incomplete = r->left != 0;
	return 0;
}

static int parse_pcapng(struct reader *r)
{
	struct section s = { 0 };
	int e = parse_blocks(r, &s);

	free(s.interface);
	return e;
}

/* --- both ---------------------------------------------------------------- */

/**
 * capture_parse - find the packets of a capture file
 * @c: set to the packets, which refer to @file; free it with capture_free()
 * @file: content of the file
 * @len: its length
 * @max_packet: longer packets are counted, but left out
 * @error: set to a message after a failure
 *
 * A file that is damaged, or ends, behind its first packet is valid up to
 * there.
 *
 * Return: 0, or -1.
 */
int capture_parse(struct capture *c, const __u8 *file, size_t len,
		  __u32 max_packet, char error[CAPTURE_ERROR])
{
	struct reader r = {
		.p = file, .left = len, .c = c, .max_packet = max_packet,
		.error = error,
	};
	__u32 magic;
	int e;

	memset(c, 0, sizeof(*c));
	if (len < sizeof(magic))
		return fail(&r, "neither a pcap nor a pcapng file");
	memcpy(&magic, file, sizeof(magic));
	r.swap = magic == __builtin_bswap32(PCAP_US) ||
		 magic == __builtin_bswap32(PCAP_NS);
	if (r.swap)
		magic = __builtin_bswap32(magic);
	switch (magic) {
	case PCAP_US:
		e = parse_pcap(&r, 1000);
		break;
	case PCAP_NS:
		e = parse_pcap(&r, 1);
		break;
	case NG_SECTION:
		e = parse_pcapng(&r);
		break;
	default:
		e = fail(&r, "neither a pcap nor a pcapng file");
	}
	if (e && c->nr) {
		strcpy(c->damage, error);
		return 0;
	}
	if (e)
		capture_free(c);
	return e;
}

/**
 * capture_schedule - find out when the packets are due
 * @c: capture with a packet or more; sets due of each, and length
 *
 * A packet is due by its stamp. If that is more than a second later than the
 * stamp of a packet behind it, it is wrong, and the packet is due with that one.
 */
void capture_schedule(struct capture *c)
{
	__u64 first = ~0ull, last = 0, earliest = ~0ull;
	size_t i;

	for (i = c->nr; i--; ) {
		struct captured *p = &c->packet[i];

		if (p->ns < earliest)
			earliest = p->ns;
		p->due = p->ns - earliest > STRAY_NS ? earliest : p->ns;
		if (p->due < first)
			first = p->due;
		if (p->due > last)
			last = p->due;
	}
	for (i = 0; i < c->nr; i++)
		c->packet[i].due -= first;
	/* A new loop starts after a gap that is the mean of the others. */
	c->length = last - first;
	if (c->nr > 1)
		c->length += c->length / (c->nr - 1);
}

/**
 * capture_free - free the list of packets
 * @c: capture
 */
void capture_free(struct capture *c)
{
	free(c->packet);
	memset(c, 0, sizeof(*c));
}
