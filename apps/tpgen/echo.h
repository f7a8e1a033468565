/* SPDX-License-Identifier: GPL-2.0 */
/* tpgen: what ping and pong share */
#ifndef TPGEN_ECHO_H
#define TPGEN_ECHO_H

#include "tpgen.h"

bool echo_kick(struct worker *w);
bool echo_recycle(struct worker *w, unsigned int n);
bool echo_wait(struct worker *w, struct tp4_backoff *b, __u64 until);

#endif /* TPGEN_ECHO_H */
