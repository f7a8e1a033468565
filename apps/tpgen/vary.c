// SPDX-License-Identifier: GPL-2.0
/* tpgen: fields that differ from packet to packet (see vary.h) */
#include <endian.h>

#include "vary.h"

/* Twice 0xffff, which is 0 in a one's complement sum */
#define ZERO		0x1fffeu

/* Sum of the 16-bit words of a value, at most ZERO */
static inline __u32 sum32(__u32 value)
{
	return (value >> 16) + (value & 0xffff);
}

static inline __u32 sum64(__u64 value)
{
	return fold(sum32(value >> 32) + sum32(value));
}

/* What replaces one value by another one in a sum: ~m + m' */
static inline __u32 difference(__u32 from, __u32 to)
{
	return ZERO - sum32(from) + sum32(to);
}

/**
 * struct change - what is to be added to the sums
 * @ip: to that of the IPv4 header; a few differences, so that it can be folded
 * @l4: to the other one
 */
struct change {
	__u32 ip, l4;
};

/* Write a value of a field to the image. */
static inline void set_field(struct vary *v, struct field *f, __u32 value,
			     struct change *c)
{
	__u32 d = difference(f->value, value);

	if (f->in_ip)
		c->ip += d;
	if (f->in_l4)
		c->l4 += d;
	f->value = value;
	if (f->wide)
		put32(v->head + f->offset, value);
	else
		put16(v->head + f->offset, value | f->or_bits);
}

static __u32 random_in(struct vary *v, __u32 min, __u32 max)
{
	__u64 span = (__u64)max - min + 1;

	return min + (((random_next(&v->seed) >> 32) * span) >> 32);
}

/* Write the size of the packet to the headers. */
static void set_size(struct vary *v, __u32 size, struct change *c)
{
	const __u32 d = difference(v->size, size);
	__u8 *ip = v->head + v->l3;
	const bool v4 = (*ip >> 4) == 4;

	if (v4) {
		c->ip += d;
		put16(ip + 2, size - v->l3);
	} else {
		put16(ip + 4, size - v->l3 - 40);
	}
	/* The length is in the pseudo header, but ICMP of IPv4 has none. */
	if (!v4 || ip[9] != IPPROTO_ICMP)
		c->l4 += d;
	if (v->udp) {
		c->l4 += d;
		put16(v->head + v->l4 + 4, size - v->l4);
	}
	if (v->fill_sum)
		c->l4 += difference(v->fill_sum[v->size - v->len],
				    v->fill_sum[size - v->len]);
	v->size = size;
}

/* The size of the next packet */
static __u32 next_size(struct vary *v)
{
	const struct range *r = &v->random_size;

	if (v->nr_sizes && r->random)
		return v->sizes[random_in(v, 0, v->nr_sizes - 1)];
	if (v->nr_sizes) {
		if (++v->size_at == v->nr_sizes)
			v->size_at = 0;
		return v->sizes[v->size_at];
	}
	if (r->random)
		return random_in(v, r->min, r->max);
	return v->size == r->max ? r->min : v->size + 1;
}

/**
 * vary_next - advance the image to the next packet
 * @v: image
 */
void vary_next(struct vary *v)
{
	struct change c = { 0 };
	unsigned int i;

	/* As in a counter: the next field advances if this one is at its end. */
	for (i = 0; i < v->nr_turn; i++) {
		struct field *f = &v->turn[i];

		if (f->value != f->max) {
			set_field(v, f, f->value + 1, &c);
			break;
		}
		set_field(v, f, f->min, &c);
	}
	for (i = 0; i < v->nr_random; i++) {
		struct field *f = &v->random[i];

		set_field(v, f, random_in(v, f->min, f->max), &c);
	}
	if (v->has_sizes)
		set_size(v, next_size(v), &c);
	if (v->has_seq)
		set_field(v, &v->seq, v->seq.value + 1, &c);
	if (v->ip_csum)
		v->ip_sum = fold(v->ip_sum + c.ip);
	v->l4_sum = fold(v->l4_sum + c.l4);
	vary_csum(v, v->ip_csum);
}

/**
 * vary_stamp - write a time stamp to the image
 * @v: image of packets with a signature
 * @ns: CLOCK_REALTIME
 */
void vary_stamp(struct vary *v, __u64 ns)
{
	__u8 *p = v->head + SIGNATURE(v, stamp);
	__be64 be;

	memcpy(&be, p, sizeof(be));
	v->l4_sum = fold(v->l4_sum + difference(sum64(be64toh(be)), sum64(ns)));
	be = htobe64(ns);
	memcpy(p, &be, sizeof(be));
	vary_csum(v, false);
}

/* Lowest common multiple, or a value too high for any ring */
static __u64 lcm(__u64 a, __u64 b)
{
	__u64 x = a, y = b, t;

	while (y) {
		t = x % y;
		x = y;
		y = t;
	}
	a /= x;
	return a > UINT32_MAX || b > UINT32_MAX ? UINT64_MAX : a * b;
}

/**
 * vary_cycle - get the number of packets after which all of them repeat
 * @v: image
 *
 * Return: the number of packets, or 0 if they never repeat.
 */
__u64 vary_cycle(const struct vary *v)
{
	__u64 n = 1, sizes = 1;
	unsigned int i;

	if (v->nr_random || v->has_seq || (v->has_sizes &&
					   v->random_size.random))
		return 0;
	for (i = 0; i < v->nr_turn; i++) {
		n *= (__u64)v->turn[i].max - v->turn[i].min + 1;
		if (n > UINT32_MAX)
			return n;
	}
	if (v->nr_sizes)
		sizes = v->nr_sizes;
	else if (v->has_sizes)
		sizes = v->random_size.max - v->random_size.min + 1;
	return lcm(n, sizes);
}

/**
 * vary_hopeless - get the number of packets after which no other size follows
 * @v: image
 *
 * Return: the number of packets; twice as many as there are sizes, if these are
 * random.
 */
__u64 vary_hopeless(const struct vary *v)
{
	if (!v->has_sizes)
		return 1;
	if (v->nr_sizes)
		return v->nr_sizes * (v->random_size.random ? 2 : 1);
	return 2ull * (v->random_size.max - v->random_size.min + 1);
}
