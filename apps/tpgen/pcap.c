// SPDX-License-Identifier: GPL-2.0
/*
 * tpgen: reading a capture file, pcap or pcapng
 *
 * Both byte orders, and any resolution of time stamps. The file may have any
 * content: every length is checked against what is left of it.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pcap.h"

#define NSEC		1000000000ull
#define LINK_ETHERNET	1

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
#define NG_TSOFFSET	14
#define NG_INTERFACES	65536

/**
 * struct reader - what is left of the file
 * @p: next byte
 * @left: number of bytes
 * @swap: numbers are in the other byte order
 * @c: packets so far
 * @room: packets that there is memory for
 * @error: message after a failure
 */
struct reader {
	const __u8 *p;
	size_t left;
	bool swap;
	struct capture *c;
	size_t room;
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

static int add_packet(struct reader *r, __u64 ns, const __u8 *data, __u32 len,
		      __u32 wire_len)
{
	struct capture *c = r->c;
	struct captured *new;

	if (!len)
		return 0;
	if (c->nr == r->room) {
		r->room = r->room ? 2 * r->room : 1024;
		new = reallocarray(c->packet, r->room, sizeof(*new));
		if (!new)
			return fail(r, "no memory");
		c->packet = new;
	}
	c->packet[c->nr++] = (struct captured){ ns, data, len };
	c->cut += len < wire_len;
	if (len > c->max_len)
		c->max_len = len;
	return 0;
}

/* --- pcap ---------------------------------------------------------------- */

static int parse_pcap(struct reader *r, __u64 unit)
{
	__u32 len, wire_len, link;
	__u64 ns;

	if (r->left < PCAP_HEADER)
		return fail(r, "the header of the pcap file is incomplete");
	link = get32(r, r->p + 20) & 0xffff;
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
		if (len > CAPTURE_MAX_PACKET)
			return fail(r, "a packet is too long: the file is damaged");
		if (len > r->left - PCAP_RECORD)
			break;
		if (add_packet(r, ns, r->p + PCAP_RECORD, len, wire_len))
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
 * @snap_len: most bytes of a packet, 0: no limit
 * @resolution: units of a time stamp per second
 * @offset: seconds to add to it
 */
struct interface {
	__u16 link;
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

static int add_enhanced(struct reader *r, const struct section *s,
			__u32 interface, const __u8 *p, __u32 len)
{
	const struct interface *i;
	__u64 stamp;
	__u32 size;

	/* from the time stamp on: high and low part, length, wire length */
	if (len < 16)
		return fail(r, "a packet's block is too short");
	size = get32(r, p + 8);
	if (size > len - 16 || size > CAPTURE_MAX_PACKET)
		return fail(r, "a packet is longer than its block, or too long");
	if (interface >= s->nr)
		return fail(r, "a packet is of an interface that is not described");
	i = &s->interface[interface];
	if (i->link != LINK_ETHERNET) {
		r->c->skipped++;
		return 0;
	}
	stamp = (__u64)get32(r, p) << 32 | get32(r, p + 4);
	return add_packet(r, to_ns(i, stamp), p + 16, size,
			  get32(r, p + 12));
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
	if (size > len - 4 || size > CAPTURE_MAX_PACKET)
		return fail(r, "a packet is longer than its block, or too long");
	if (s->interface->link != LINK_ETHERNET) {
		r->c->skipped++;
		return 0;
	}
	/* It has no time stamp. */
	if (r->c->nr)
		ns = r->c->packet[r->c->nr - 1].ns;
	return add_packet(r, ns, p + 4, size, wire_len);
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
 * @error: set to a message after a failure
 *
 * A file that ends within a record is valid up to there.
 *
 * Return: 0, or -1.
 */
int capture_parse(struct capture *c, const __u8 *file, size_t len,
		  char error[CAPTURE_ERROR])
{
	struct reader r = { .p = file, .left = len, .c = c, .error = error };
	__u32 magic;
	int e;

	memset(c, 0, sizeof(*c));
	c->file = file;
	c->file_len = len;
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
	if (e)
		capture_free(c);
	return e;
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
