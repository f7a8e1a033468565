// SPDX-License-Identifier: GPL-2.0
/* tpgen: when packets are due */
#include <math.h>

#include "tpgen.h"
#include "pace.h"

/* A thread that sleeps wakes up so many nanoseconds before it has to send. */
#define EARLY		60000ull
/* So that Ctrl-C does not wait for a slow rate */
#define NAP		100000000ull

/**
 * pace_init - set the rate
 * @p: schedule
 * @cfg: command line
 * @speed: bits per second of the link, for a rate in percent
 * @nr: number of the thread
 * @share: number of threads that share the rate
 */
void pace_init(struct pace *p, const struct config *cfg, __u64 speed,
	       unsigned int nr, unsigned int share)
{
	double value = cfg->rate.value / share;
	double bits = value;

	memset(p, 0, sizeof(*p));
	p->poisson = cfg->poisson;
	p->seed = seed_of(cfg, nr, 0x9e3779b97f4a7c15ull);
	p->limited = cfg->rate.unit != RATE_MAX;
	switch (cfg->rate.unit) {
	case RATE_MAX:
		break;
	case RATE_PACKETS:
		p->per_packet = NSEC / value;
		break;
	case RATE_PERCENT:
		bits = value / 100 * speed;
		/* fall through */
	case RATE_WIRE_BITS:
		p->per_packet = WIRE_OVERHEAD * 8 * NSEC / bits;
		/* fall through */
	case RATE_BITS:
		p->per_byte = 8 * NSEC / bits;
		break;
	}
}

/**
 * pace_start - the first packet is due now
 * @p: schedule
 * @now: time
 */
void pace_start(struct pace *p, __u64 now)
{
	p->origin = now;
	p->next = 0;
}

/**
 * pace_sent - packets were sent together; find out when the next are due
 * @p: schedule
 * @packets: number of packets
 * @bytes: sum of their sizes
 */
void pace_sent(struct pace *p, unsigned int packets, __u64 bytes)
{
	double gap = packets * p->per_packet + bytes * p->per_byte;

	if (p->poisson)
		/* uniform in (0, 1] */
		gap *= -log(((random_next(&p->seed) >> 11) + 1) * 0x1p-53);
	p->next += gap;
}

/**
 * pace_catch_up - leave out packets that are too late
 * @p: schedule
 * @now: time
 * @mean: mean size of a packet
 */
void pace_catch_up(struct pace *p, __u64 now, double mean)
{
	double late = (double)(__s64)(now - p->origin) - p->next - PACE_LATE;

	if (late <= 0)
		return;
	p->next += late;
	p->missed += late / (p->per_packet + mean * p->per_byte);
}

/**
 * pace_sleep - wait until a time is near
 * @now: time
 * @until: later time, of CLOCK_MONOTONIC
 * @spin: do not sleep
 *
 * Returns a little before @until; the caller reads the clock until then.
 */
void pace_sleep(__u64 now, __u64 until, bool spin)
{
	struct timespec t;
	__u64 left = until - now;

	if (spin || left < 2 * EARLY) {
		tp4_cpu_relax();
		return;
	}
	left = left < NAP ? left - EARLY : NAP;
	t.tv_sec = 0;
	t.tv_nsec = left;
	nanosleep(&t, NULL);
}
