/* SPDX-License-Identifier: GPL-2.0 */
/* tpgen: what the parts that read the command line share */
#ifndef TPGEN_OPTIONS_H
#define TPGEN_OPTIONS_H

#include "tpgen.h"

/**
 * struct given_packet - options of packets that need a check when all are known
 * @length: argument of -l, or NULL
 * @protocol: argument of --proto, or NULL
 * @random: argument of --random, or NULL
 * @smac: there is a source MAC address
 * @src: there are source addresses
 * @dst: there are destination addresses
 * @ports: there are ports
 * @family: of the addresses, 0: none
 */
struct given_packet {
	const char *length, *protocol, *random;
	bool smac, src, dst, ports;
	int family;
};

/**
 * struct given - options that need a check when all are known
 * @pkt: those of packets
 * @threads: -p
 * @ring: --ring
 * @stamps: --stamps
 * @packets: any option of packets
 * @rate_options: any option of the rate
 * @search: any option of a search
 * @cpus: argument of -a
 * @nr_cpus: number of these
 */
struct given {
	struct given_packet pkt;
	bool threads, ring, stamps, packets, rate_options, search;
	unsigned int cpus[MAX_THREADS], nr_cpus;
};

extern const char usage[];

unsigned int one_of(const char *what, const char *s, const char *const *names);
void finish_options(struct config *cfg, struct given *given);

#endif /* TPGEN_OPTIONS_H */
