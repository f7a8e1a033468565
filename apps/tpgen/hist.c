// SPDX-License-Identifier: GPL-2.0
/* tpgen: histograms of latency */
#include <string.h>

#include "hist.h"

/**
 * hist_init - make a histogram empty
 * @h: histogram
 */
void hist_init(struct hist *h)
{
	memset(h, 0, sizeof(*h));
	h->min = ~0ull;
}

/**
 * hist_merge - add all values of another histogram
 * @to: histogram that they are added to
 * @from: the other one, which another thread may be adding to
 */
void hist_merge(struct hist *to, const struct hist *from)
{
	unsigned int i;

	if (from->min < to->min)
		to->min = from->min;
	if (from->max > to->max)
		to->max = from->max;
	to->sum += from->sum;
	for (i = 0; i < HIST_BINS; i++)
		to->bin[i] += __atomic_load_n(&from->bin[i], __ATOMIC_RELAXED);
}

/**
 * hist_subtract - remove the values of an earlier state of a histogram
 * @from: histogram; only its bins are valid afterwards, and its highest value
 *        may be that of the earlier state
 * @h: the earlier state
 */
void hist_subtract(struct hist *from, const struct hist *h)
{
	unsigned int i;

	for (i = 0; i < HIST_BINS; i++)
		from->bin[i] -= h->bin[i];
}

/**
 * hist_count - count the values
 * @h: histogram
 *
 * Return: their number.
 */
__u64 hist_count(const struct hist *h)
{
	unsigned int i;
	__u64 n = 0;

	for (i = 0; i < HIST_BINS; i++)
		n += h->bin[i];
	return n;
}

/**
 * hist_bin_start - get the lowest value of a bin
 * @i: bin
 *
 * Return: the value in nanoseconds.
 */
__u64 hist_bin_start(unsigned int i)
{
	unsigned int power;

	if (i < 2 * HIST_SUB)
		return i;
	power = (i >> HIST_SHIFT) - 1;
	return (__u64)(i - (power << HIST_SHIFT)) << power;
}

/**
 * hist_percentile - get the value that so many percent do not exceed
 * @h: histogram
 * @percent: above 0, up to 100
 *
 * Return: the highest value of the bin of that value, at most the highest one of
 * all, or 0 without values.
 */
__u64 hist_percentile(const struct hist *h, double percent)
{
	__u64 n = hist_count(h), sum = 0, rank, top;
	unsigned int i;

	if (!n)
		return 0;
	rank = n * percent / 100;
	if (rank < n * percent / 100 || !rank)
		rank++;
	for (i = 0; i < HIST_BINS; i++) {
		sum += h->bin[i];
		if (sum >= rank)
			break;
	}
	top = hist_bin_start(i + 1) - 1;
	return top < h->max ? top : h->max;
}

/**
 * hist_top - get the highest value by the bins alone
 * @h: histogram
 *
 * Return: the highest value of the last bin that is not empty, or 0.
 */
__u64 hist_top(const struct hist *h)
{
	unsigned int i;

	for (i = HIST_BINS; i--; )
		if (h->bin[i])
			return hist_bin_start(i + 1) - 1;
	return 0;
}
