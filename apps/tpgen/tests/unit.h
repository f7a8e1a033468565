/* SPDX-License-Identifier: GPL-2.0 */
/* Tests of the parts of tpgen that need no kernel: what they share */
#ifndef TPGEN_UNIT_H
#define TPGEN_UNIT_H

#include "pace.h"
#include "tpgen.h"

/* State of the random numbers, the same in each run */
extern __u64 rng;

void __attribute__((__format__(__printf__, 2, 3)))
check(bool ok, const char *format, ...);
void end(const char *name);
__u32 rnd(__u32 below);

/* unit_bisect.c */
void test_bisect(void);

/* unit_packet.c */
void test_packets(void);
void test_runs(void);
void test_cycle(void);

/* unit_stream.c */
void test_streams(void);
void test_merge(void);
void test_any_packet(void);
void test_histograms(void);

/* unit_pace.c */
void test_rates(void);

/* unit_capture.c */
void test_good_files(void);
void test_truncated_files(void);
void test_bad_files(void);
void test_damage(void);
void test_left_out(void);
void test_schedule(void);
void test_random_files(void);

#endif /* TPGEN_UNIT_H */
