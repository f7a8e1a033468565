// SPDX-License-Identifier: GPL-2.0
/* The output of tpbench: rates while it runs, and one JSON object at the end.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>

#include "tpbench.h"

#define TICK_US		100000
#define SILENCE		5	/* seconds without packets before a warning */

static bool due;		/* set by the signal */
static double end;		/* when to stop, or 0 */
static double last_time;
static __u64 last_packets;
static unsigned int silent;

double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static void on_alarm(int sig)
{
	(void)sig;
	__atomic_store_n(&due, true, __ATOMIC_RELAXED);
}

bool report_due(void)
{
	return __atomic_load_n(&due, __ATOMIC_RELAXED);
}

/* Start the ticks; stop after @seconds, unless they are 0. */
void report_start(double duration)
{
	struct itimerval it = {
		.it_interval.tv_usec = TICK_US,
		.it_value.tv_usec = TICK_US,
	};
	struct sigaction sa = { .sa_handler = on_alarm };

	last_time = now();
	end = duration ? last_time + duration : 0;
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &it, NULL);
}

void report_stop(void)
{
	struct itimerval it = { 0 };

	setitimer(ITIMER_REAL, &it, NULL);
	__atomic_store_n(&due, false, __ATOMIC_RELAXED);
}

static const char *name(const struct config *cfg)
{
	static const char *const names[] = { "V2", "V3", "V4", "AF_XDP" };

	return names[cfg->version - 2];
}

/* On a tick: print rates once a second; return true at the end. */
bool report_tick(const struct config *cfg, __u64 done)
{
	double t = now(), span = t - last_time;
	__u64 packets = done - last_packets;

	__atomic_store_n(&due, false, __ATOMIC_RELAXED);
	if (span >= 0.95) {
		if (!cfg->quiet)
			fprintf(stderr, "  %s%s %12.0f packets/s %9.1f Mbit/s\n",
				name(cfg), cfg->zerocopy ? "+ZC" : "",
				packets / span,
				packets / span * cfg->size * 8 / 1e6);
		silent = packets ? 0 : silent + 1;
		if (silent == SILENCE)
			warnx("no packet for %d seconds, after %llu", SILENCE,
			      done);
		last_time = t;
		last_packets = done;
	}
	return end && t >= end;
}

static void text(const char *name, const char *val)
{
	printf("\"%s\": \"%s\", ", name, val);
}

static void number(const char *name, __u64 val)
{
	printf("\"%s\": %llu, ", name, val);
}

static void real(const char *name, double val)
{
	printf("\"%s\": %.6g, ", name, val);
}

void report_json(const struct config *cfg, const struct result *res)
{
	static const char *const modes[] = {
		"none", "rxdrop", "txpush", "l2fwd"
	};
	const struct verify *v = &res->verify;
	double ns = res->n.packets ? 1e9 / res->n.packets : 0;
	double busy = res->seconds - res->idle_seconds;

	printf("{");
	text("benchmark", modes[cfg->mode]);
	if (cfg->version == VERSION_XDP)
		text("version", cfg->skb_mode ? "xdp-skb" : "xdp");
	else
		number("version", cfg->version);
	number("zerocopy", cfg->zerocopy);
	number("queues", cfg->queues);
	number("shared", cfg->shared);
	number("meta", cfg->meta);
	number("stamps", cfg->stamps);
	if (cfg->fanout >= 0)
		number("fanout", cfg->fanout);
	text("interface", cfg->ifname[0]);
	number("in_flight", cfg->in_flight);
	number("size", cfg->size);
	number("batch", cfg->batch);
	number("ring", cfg->ring);
	text("wait", cfg->poll ? "poll" : "spin");
	number("busy_poll", cfg->busy_poll);
	number("lockstep", cfg->lockstep);
	real("seconds", res->seconds);
	number("warmup", res->warmup);
	number("packets", res->n.packets);
	number("bytes", res->n.bytes);
	number("drops", res->drops);
	number("kicks", res->n.kicks);
	number("idle", res->n.idle);
	if (cfg->verify) {
		number("checked", v->checked);
		number("lost", v->lost);
		number("reordered", v->reordered);
		number("corrupt", v->corrupt);
		number("foreign", v->foreign);
	}
	if (res->alone_seconds)
		real("generator_ns_per_packet", res->alone_seconds * 1e9);
	if (res->drain_seconds)
		real("drain_ns_per_packet", res->drain_seconds * ns);
	if (cfg->poll)
		real("busy_ns_per_packet", busy * ns);
	if (cfg->split) {
		real("user_ns_per_packet", res->user_seconds * ns);
		real("kernel_ns_per_packet", (busy - res->user_seconds) * ns);
	}
	real("ns_per_packet", res->seconds * ns);
	printf("\"pps\": %.0f}\n",
	       res->seconds > 0 ? res->n.packets / res->seconds : 0);
}
