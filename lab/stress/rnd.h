/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Random numbers in streams: each stream is independent of the use of the others,
 * so that a run can be repeated from its seed.
 */
#ifndef RND_H
#define RND_H

#include <stdbool.h>
#include <stdint.h>

struct rnd {
	uint64_t state;
};

/* splitmix64 */
static inline uint64_t rnd64(struct rnd *r)
{
	uint64_t z = (r->state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* 0 to @n - 1 */
static inline uint32_t rnd(struct rnd *r, uint32_t n)
{
	return (rnd64(r) >> 32) * n >> 32;
}

/* True once in @n times */
static inline bool one_in(struct rnd *r, uint32_t n)
{
	return !rnd(r, n);
}

#define PICK(r, array)	((array)[rnd(r, sizeof(array) / sizeof((array)[0]))])

/* Stream @n of @seed's stream @stream */
static inline struct rnd rnd_stream(uint64_t seed, uint64_t stream, uint64_t n)
{
	struct rnd r = { seed };

	r.state = rnd64(&r) ^ stream;
	r.state = rnd64(&r) ^ n;
	rnd64(&r);
	return r;
}

#endif
