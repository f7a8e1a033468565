// SPDX-License-Identifier: GPL-2.0
/* Tests of rates and gaps */
#include <math.h>

#include "unit.h"

void test_rates(void)
{
	static const struct {
		const char *rate;
		double gap;		/* of 125 bytes, in ns */
	} cases[] = {
		{ "1k", 1e6 }, { "1.5Mpps", 1e3 / 1.5 }, { "1Mbps", 1e6 },
		{ "1Gbit", 1e3 }, { "1Gbpsl1", 1192 }, { "10%", 1192 },
		{ "0.5", 2e9 },
	};
	struct config cfg = { .nr_threads = 1 };
	struct pace p;
	double sum = 0, squares = 0, gap, mean;
	unsigned int i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		parse_rate(cases[i].rate, &cfg.rate);
		pace_init(&p, &cfg, 10000000000ull, 0, 1);
		pace_start(&p, 7);
		pace_sent(&p, 1, 125);
		check(fabs(p.next / cases[i].gap - 1) < 1e-9,
		      "%s: gap of %g ns", cases[i].rate, p.next);
		pace_sent(&p, 3, 375);
		check(fabs(p.next / cases[i].gap - 4) < 1e-9, "burst");
	}
	/* a day with a gap that is no whole number */
	parse_rate("3Mpps", &cfg.rate);
	pace_init(&p, &cfg, 0, 0, 1);
	p.next = 86400e9;
	for (i = 0; i < 3000000; i++)
		pace_sent(&p, 1, 60);
	check(fabs(p.next - 86401e9) < 1e5, "rounding: %g", p.next - 86401e9);

	cfg.poisson = true;
	parse_rate("1M", &cfg.rate);
	pace_init(&p, &cfg, 0, 0, 1);
	for (i = 0; i < 1000000; i++) {
		gap = -p.next;
		pace_sent(&p, 1, 60);
		gap += p.next;
		sum += gap;
		squares += gap * gap;
	}
	mean = sum / i;
	check(fabs(mean - 1000) < 5, "mean of random gaps: %g", mean);
	check(fabs(sqrt(squares / i - mean * mean) - 1000) < 10,
	      "deviation of random gaps");
	pace_start(&p, 0);
	pace_catch_up(&p, PACE_LATE + 1000000, 60);
	check(fabs(p.missed - 1000) < 1e-6 && p.next == 1000000,
	      "left out: %g", p.missed);
	pace_start(&p, 1000);
	pace_catch_up(&p, 10, 60);
	check(p.missed < 1001 && !p.next, "a start that is to come");
	end("rates and gaps");
}
