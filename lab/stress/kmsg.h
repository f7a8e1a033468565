/* SPDX-License-Identifier: GPL-2.0 */
/* Watches the kernel log for complaints. */
#ifndef KMSG_H
#define KMSG_H

#include <stdbool.h>

/* From now on */
int kmsg_open(void);
/* Reads new messages; prints complaints of the kernel, and returns true if there
 * are any. A data race (KCSAN) counts if it is in V4's code.
 */
bool kmsg_complains(void);
/* Allocations are made to fail: their traces are no complaints. */
void kmsg_expect_no_memory(void);
/* Whether the kernel has reported, since the last call, that it could not return
 * from a signal
 */
bool kmsg_bad_frame(void);
void kmsg_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
