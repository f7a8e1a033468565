// SPDX-License-Identifier: GPL-2.0
/* Tests of the rates that a search tries */
#include "bisect.h"
#include "unit.h"

/* Search for a limit of the device and one of the sender; returns the trials. */
static unsigned int search(struct bisect *b, double device, double sender)
{
	unsigned int trials = 0;
	bool more;

	do {
		check(b->rate > 0 && b->rate <= 1, "rate of %g", b->rate);
		if (b->rate > sender)
			more = bisect_failed(b, sender);
		else if (b->rate > device)
			more = bisect_failed(b, b->rate);
		else
			more = bisect_passed(b);
	} while (++trials < 100 && more);
	return trials;
}

void test_bisect(void)
{
	static const double precisions[] = { 0.5, 0.1, 0.01, 0.0001 };
	unsigned int i, round, trials, most;
	double device, sender, limit;
	struct bisect b;

	bisect_init(&b, 0.01);
	check(search(&b, 1, 1) == 1 && b.low == 1, "the highest rate passes");
	bisect_init(&b, 0.01);
	trials = search(&b, 0, 1);
	check(trials < 20 && !b.low, "no rate passes: %u, %g", trials, b.low);
	for (round = 0; round < 20000; round++) {
		i = rnd(4);
		device = (1 + rnd(999999)) / 1e6;
		sender = (1 + rnd(999999)) / 1e6;
		if (rnd(2))
			sender = 1;
		limit = device < sender ? device : sender;
		bisect_init(&b, precisions[i]);
		trials = search(&b, device, sender);
		/* The highest one, halves down to the limit, halves of the rest */
		most = 3;
		while (limit < 1 && most < 20 && 1.0 / (1 << (most - 3)) > limit)
			most++;
		most += 15;
		check(trials <= most, "%u trials for %g", trials, limit);
		check(b.low <= limit, "%g passes with %g", b.low, limit);
		check(b.low >= limit * (1 - precisions[i]) ||
		      limit < 2 * BISECT_LOWEST,
		      "%g found, %g is right, within %g", b.low, limit,
		      precisions[i]);
	}
	end("searches for a rate");
}
