/* SPDX-License-Identifier: GPL-2.0 */
/*
 * tpgen: the rates that a search tries, after RFC 2544, section 26.1
 *
 * Rates are shares of the highest one, which is tried first.
 */
#ifndef TPGEN_BISECT_H
#define TPGEN_BISECT_H

#include <stdbool.h>

/* A rate that is lower than this share of the highest one is not looked for. */
#define BISECT_LOWEST	1e-4

/**
 * struct bisect - a search
 * @low: highest rate that has passed, 0: none yet
 * @high: lowest rate that has failed, or the highest one that is tried
 * @rate: the one to try now
 * @precision: the search ends when @low and @high differ less, as a share of
 *             @high
 */
struct bisect {
	double low, high, rate;
	double precision;
};

void bisect_init(struct bisect *b, double precision);
bool bisect_passed(struct bisect *b);
bool bisect_failed(struct bisect *b, double reached);

#endif /* TPGEN_BISECT_H */
