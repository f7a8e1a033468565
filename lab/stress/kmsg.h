/* SPDX-License-Identifier: GPL-2.0 */
/* Watches the kernel's log for what it must not say. */
#ifndef KMSG_H
#define KMSG_H

#include <stdbool.h>

/* From now on */
int kmsg_open(void);
/* Reads what is new; true if the kernel has complained, whose words are printed
 * then. A data race (KCSAN) counts if it is in V4's code.
 */
bool kmsg_complains(void);
/* Allocations are made to fail: the trace of one that does is no complaint. */
void kmsg_expect_no_memory(void);
/* Whether it has said, since the last call, that it could not go back from a
 * signal.
 */
bool kmsg_bad_frame(void);
void kmsg_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
