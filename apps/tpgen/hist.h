/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Histogram of nanoseconds. Each power of two has 32 bins of the same width, so
 * that a value is known to 3 %, and values below 64 exactly.
 */
#ifndef TPGEN_HIST_H
#define TPGEN_HIST_H

#include <linux/types.h>

#define HIST_SHIFT	5
#define HIST_SUB	(1u << HIST_SHIFT)
#define HIST_TOP	44		/* 2^44 ns: five hours */
#define HIST_BINS	((HIST_TOP - HIST_SHIFT + 1) * HIST_SUB)

/**
 * struct hist - a histogram
 * @min: lowest value, if there is one
 * @max: highest value
 * @sum: of all values
 * @bin: number of values of each bin
 *
 * The number of values is hist_count().
 */
struct hist {
	__u64 min;
	__u64 max;
	__u64 sum;
	__u64 bin[HIST_BINS];
};

/* Bin of a value below 2^HIST_TOP. */
static inline unsigned int hist_index(__u64 ns)
{
	unsigned int top;

	if (ns < HIST_SUB)
		return ns;
	top = 63 - __builtin_clzll(ns);
	return ((top - HIST_SHIFT) << HIST_SHIFT) + (ns >> (top - HIST_SHIFT));
}

/**
 * hist_add - add a value
 * @h: histogram, initialized with hist_init()
 * @ns: value, below 2^HIST_TOP
 */
static inline void hist_add(struct hist *h, __u64 ns)
{
	__u64 *bin;

	if (ns < h->min)
		h->min = ns;
	if (ns > h->max)
		h->max = ns;
	h->sum += ns;
	bin = &h->bin[hist_index(ns)];
	__atomic_store_n(bin, *bin + 1, __ATOMIC_RELAXED);
}

void hist_init(struct hist *h);
void hist_merge(struct hist *to, const struct hist *from);
void hist_subtract(struct hist *from, const struct hist *h);
__u64 hist_count(const struct hist *h);
__u64 hist_bin_start(unsigned int i);
__u64 hist_percentile(const struct hist *h, double percent);
__u64 hist_top(const struct hist *h);

#endif /* TPGEN_HIST_H */
