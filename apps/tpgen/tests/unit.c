// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the parts of tpgen that need no kernel: headers and checksums,
 * streams, histograms, rates, and capture files with any content. They compare
 * with plain code that does the same. Built with AddressSanitizer and
 * UndefinedBehaviorSanitizer. Prints TAP.
 */
#include <stdarg.h>

#include "unit.h"

static unsigned int number;
static bool failed, any_failed;
__u64 rng = 88172645463325252ull;

/* Note the first condition of a test that does not hold. */
void check(bool ok, const char *format, ...)
{
	va_list args;

	if (ok || failed)
		return;
	failed = true;
	printf("# ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

/* A test has ended. */
void end(const char *name)
{
	printf("%sok %u %s\n", failed ? "not " : "", ++number, name);
	any_failed |= failed;
	failed = false;
}

__u32 rnd(__u32 below)
{
	return (random_next(&rng) >> 32) % below;
}

int main(void)
{
	static void (*const tests[])(void) = {
		test_packets, test_runs, test_cycle, test_streams, test_merge,
		test_any_packet, test_histograms, test_rates, test_good_files,
		test_truncated_files, test_bad_files, test_damage,
		test_left_out, test_schedule, test_random_files, test_bisect,
	};
	unsigned int i;

	printf("TAP version 13\n1..%zu\n", sizeof(tests) / sizeof(*tests));
	for (i = 0; i < sizeof(tests) / sizeof(*tests); i++)
		tests[i]();
	return any_failed;
}
