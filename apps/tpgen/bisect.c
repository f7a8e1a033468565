// SPDX-License-Identifier: GPL-2.0
/* tpgen: the rates that a search tries (see bisect.h) */
#include "bisect.h"

/**
 * bisect_init - start a search at the highest rate
 * @b: search
 * @precision: of the result, as a share of it
 */
void bisect_init(struct bisect *b, double precision)
{
	b->low = 0;
	b->high = 1;
	b->rate = 1;
	b->precision = precision;
}

/* Returns false if the rate is known well enough. */
static bool next(struct bisect *b)
{
	if (b->high - b->low <= b->precision * b->high ||
	    b->high < BISECT_LOWEST)
		return false;
	b->rate = (b->low + b->high) / 2;
	return true;
}

/**
 * bisect_passed - the rate was sent and received
 * @b: search
 *
 * Return: true if there is another rate to try, in @b->rate.
 */
bool bisect_passed(struct bisect *b)
{
	b->low = b->rate;
	return next(b);
}

/**
 * bisect_failed - the rate was not received, or not even sent
 * @b: search
 * @reached: rate that was sent
 *
 * Return: true if there is another rate to try, in @b->rate.
 */
bool bisect_failed(struct bisect *b, double reached)
{
	b->high = b->rate;
	/* What cannot be sent is above what was. */
	if (reached > b->low && reached < b->high)
		b->high = reached;
	return next(b);
}
