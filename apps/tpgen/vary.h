/* SPDX-License-Identifier: GPL-2.0 */
/*
 * tpgen: fields that differ from packet to packet
 *
 * There is an image of the headers of the next packet. To advance it by one
 * packet, only the fields that change are written to it, and checksums are
 * updated by the difference (RFC 1624). The part of the image that can change
 * is copied to the frame, in words of 8 bytes.
 *
 * One's complement sums are modulo 65535, where 2^16 is 1. Therefore, adding 1
 * to a field of any length that starts at an even offset adds 1 to the sum.
 */
#ifndef TPGEN_VARY_H
#define TPGEN_VARY_H

#include "tpgen.h"
#include "pace.h"

#define HEAD_MAX	128
#define MAX_FIELDS	8

/**
 * struct signature - payload of packets that are numbered and stamped
 * @magic: %SIGNATURE_MAGIC
 * @run: number of the sender's run, so that a new one starts from 0
 * @stream: number of the stream
 * @seq: number of the packet in the stream
 * @stamp: CLOCK_REALTIME in nanoseconds when it was posted
 *
 * All members are in network byte order. It fits into 60 bytes with IPv4 and
 * UDP.
 */
struct signature {
	__be16 magic;
	__be16 run;
	__be16 stream;
	__be32 seq;
	__be64 stamp;
} __attribute__((__packed__));

#define SIGNATURE_MAGIC	0x7067		/* "pg" */

/**
 * struct field - a field with a range
 * @value: that of the image
 * @min: first value
 * @max: last value
 * @offset: of the field in the packet
 * @wide: it has 32 bits, not 16
 * @in_ip: the checksum of the IPv4 header covers it
 * @in_l4: that of UDP, TCP or ICMP covers it, or its pseudo header
 * @or_bits: set in the packet in addition, such as the priority of a VLAN tag
 */
struct field {
	__u32 value;
	__u32 min;
	__u32 max;
	__u16 offset;
	bool wide;
	bool in_ip;
	bool in_l4;
	__u16 or_bits;
};

/**
 * struct vary - the image and its state
 * @head: headers of the next packet
 * @len: bytes of the headers, with the signature
 * @l3: offset of the IP header
 * @l4: offset of the header behind it
 * @payload: offset of the payload
 * @first: first word that can change
 * @words: number of words that can change, from @first on
 * @ip_csum: offset of the checksum of IPv4, 0: none
 * @l4_csum: offset of the other one
 * @ip_sum: folded sum of the IPv4 header without its checksum
 * @l4_sum: folded sum of the rest, with the pseudo header
 * @udp: it is UDP's, which is never sent as 0
 * @alone: field that most often changes alone: the first one in @turn, or
 *         @seq; NULL: several fields change with each packet
 * @turn: fields whose values are used in turn; all combinations are used
 * @random: fields with random values
 * @nr_turn: number of fields in @turn
 * @nr_random: number of fields in @random
 * @seq: number of the packet
 * @has_seq: packets have a signature
 * @size: bytes of the packet
 * @sizes: sizes in turn, if there are several
 * @nr_sizes: number of these
 * @size_at: position in @sizes
 * @random_size: or sizes are random in this range
 * @has_sizes: sizes differ
 * @fill_sum: for each length of the payload, its folded sum, or NULL: zeros
 * @seed: state of the random numbers
 */
struct vary {
	__u8 head[HEAD_MAX] __attribute__((__aligned__(8)));
	__u16 len;
	__u16 l3, l4, payload;
	__u16 first, words;
	__u16 ip_csum, l4_csum;
	__u32 ip_sum, l4_sum;
	bool udp;
	bool has_seq;
	bool has_sizes;
	unsigned int nr_turn, nr_random;
	struct field turn[MAX_FIELDS];
	struct field random[MAX_FIELDS];
	struct field seq;
	struct field *alone;
	__u32 size;
	struct range random_size;
	const __u16 *sizes;
	unsigned int nr_sizes, size_at;
	const __u16 *fill_sum;
	__u64 seed;
};

/* Offset of a member of the signature in the packet */
#define SIGNATURE(v, member) \
	((v)->payload + offsetof(struct signature, member))

static inline void put16(__u8 *p, __u16 value)
{
	value = htons(value);
	memcpy(p, &value, sizeof(value));
}

static inline __u16 get16(const __u8 *p)
{
	__u16 value;

	memcpy(&value, p, sizeof(value));
	return ntohs(value);
}

static inline void put32(__u8 *p, __u32 value)
{
	value = htonl(value);
	memcpy(p, &value, sizeof(value));
}

/* One's complement sum of 16-bit words, of a sum below 2^32 */
static inline __u32 fold(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* Write the checksums of the image. */
static inline void vary_csum(struct vary *v, bool ip)
{
	__u16 csum = ~v->l4_sum;

	if (ip)
		put16(v->head + v->ip_csum, ~v->ip_sum);
	put16(v->head + v->l4_csum, csum || !v->udp ? csum : 0xffff);
}

/* Copy what can change to the frame that starts at data. */
static inline void vary_write(const struct vary *v, __u8 *data)
{
	const __u64 *from = (const __u64 *)v->head + v->first;
	__u64 *to = (__u64 *)data + v->first;

	switch (v->words) {
	case 8:
		to[7] = from[7];
		/* fall through */
	case 7:
		to[6] = from[6];
		/* fall through */
	case 6:
		to[5] = from[5];
		/* fall through */
	case 5:
		to[4] = from[4];
		/* fall through */
	case 4:
		to[3] = from[3];
		/* fall through */
	case 3:
		to[2] = from[2];
		/* fall through */
	case 2:
		to[1] = from[1];
		/* fall through */
	case 1:
		to[0] = from[0];
		break;
	default:
		memcpy(to, from, v->words * sizeof(*to));
	}
}

void vary_init(struct vary *v, const struct config *cfg, unsigned int nr);
void vary_next(struct vary *v);
void vary_stamp(struct vary *v, __u64 ns);
__u64 vary_cycle(const struct vary *v);
unsigned int vary_max_size(const struct packet_spec *pkt);
unsigned int vary_min_size(const struct packet_spec *pkt);
double vary_mean_size(const struct packet_spec *pkt);
__u64 vary_hopeless(const struct vary *v);

/* Number of packets, at most n, from one to the next of which vary_run() goes */
static inline unsigned int vary_run_length(const struct vary *v, unsigned int n)
{
	const struct field *f = v->alone;
	unsigned int csum;

	if (!f)
		return 0;
	if (n > f->max - f->value)
		n = f->max - f->value;
	/* A checksum of 0 is special, and does not come within a run. */
	if (f->in_l4) {
		csum = get16(v->head + v->l4_csum);
		if (n >= csum)
			n = csum ? csum - 1 : 0;
	}
	if (f->in_ip) {
		csum = get16(v->head + v->ip_csum);
		if (n >= csum)
			n = csum ? csum - 1 : 0;
	}
	return n;
}

/**
 * vary_run - write packets that differ in one field
 * @v: image; v->alone is that field
 * @ring: ring
 * @area: packet memory
 * @offset: of a packet in its frame
 * @at: slot of the first packet, as for tp4_ring_at()
 * @n: number of packets, as returned by vary_run_length()
 * @words: v->words, which is a constant where this is inlined
 *
 * To add 1 to the field is to subtract 1 from the checksums.
 */
static inline __attribute__((__always_inline__))
void vary_run(struct vary *v, const struct tp4_ring *ring,
	      const struct tp4_area *area, unsigned int offset,
	      unsigned int at, unsigned int n, const unsigned int words)
{
	struct field *f = v->alone;
	const bool wide = f->wide, in_ip = f->in_ip;
	const __u16 or_bits = f->or_bits, step = f->in_l4;
	const __u64 *from = (const __u64 *)v->head + v->first;
	const unsigned int first = v->first * 8 + offset;
	__u8 *field = v->head + f->offset;
	__u8 *ip_csum = v->head + v->ip_csum, *l4_csum = v->head + v->l4_csum;
	__u16 ip = get16(ip_csum), l4 = get16(l4_csum);
	__u32 value = f->value;
	unsigned int i;

	for (i = 0; i < n; i++) {
		memcpy(tp4_frame(area, tp4_ring_at(ring, at + i)->idx) + first,
		       from, words * 8);
		value++;
		if (wide)
			put32(field, value);
		else
			put16(field, value | or_bits);
		if (in_ip)
			put16(ip_csum, --ip);
		l4 -= step;
		put16(l4_csum, l4);
	}
	f->value = value;
	if (in_ip)
		v->ip_sum = 0xffff - ip;
	if (step)
		v->l4_sum = 0xffff - l4;
}

#endif /* TPGEN_VARY_H */
