/* SPDX-License-Identifier: GPL-2.0 */
/* tpgen: when packets are due */
#ifndef TPGEN_PACE_H
#define TPGEN_PACE_H

#include <stdbool.h>
#include <linux/types.h>

/* What is later than this is left out, instead of sent in one burst. */
#define PACE_LATE	100000000ull

/**
 * struct pace - schedule of one thread
 * @limited: there is a rate
 * @poisson: gaps are distributed exponentially
 * @origin: time that @next counts from
 * @next: when the next packet is due, in nanoseconds since @origin
 * @per_packet: nanoseconds per packet
 * @per_byte: and per byte of the packet
 * @missed: packets that were left out
 * @seed: state of the random numbers
 */
struct pace {
	bool limited;
	bool poisson;
	__u64 origin;
	double next;
	double per_packet;
	double per_byte;
	double missed;
	__u64 seed;
};

struct config;

/* Pseudo random number (xorshift64*), for a state that is not 0. */
static inline __u64 random_next(__u64 *state)
{
	__u64 x = *state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return x * 0x2545f4914f6cdd1dull;
}

static inline __u64 pace_next(const struct pace *p)
{
	return p->origin + (__u64)p->next;
}

/* Seconds from the start to when the next packet is due */
static inline double pace_span(const struct pace *p)
{
	return p->limited ? p->next / 1e9 : 0;
}

void pace_init(struct pace *p, const struct config *cfg, __u64 speed,
	       unsigned int nr, unsigned int share);
void pace_start(struct pace *p, __u64 now);
void pace_sent(struct pace *p, unsigned int packets, __u64 bytes);
void pace_catch_up(struct pace *p, __u64 now, double mean);
void pace_sleep(__u64 now, __u64 until, bool spin);

#endif /* TPGEN_PACE_H */
