/* SPDX-License-Identifier: GPL-2.0 */
/* tpgen: writing received packets to a pcapng file */
#ifndef TPGEN_PCAPNG_H
#define TPGEN_PCAPNG_H

#include "tpgen.h"

void pcapng_start(FILE *f, const char *ifname);
void pcapng_packet(FILE *f, __u64 ns, const __u8 *data, __u32 len);

#endif /* TPGEN_PCAPNG_H */
