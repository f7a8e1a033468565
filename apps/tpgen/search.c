// SPDX-License-Identifier: GPL-2.0
/*
 * tpgen: the highest rate without loss, after RFC 2544
 *
 * Each trial has a process that receives and one that sends, as tx and rx do, with
 * sockets of their own. They leave their results in shared memory.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <net/if.h>

#include "bisect.h"
#include "stream.h"

#define RX_RING		2048		/* at least */
#define SETTLE		NSEC		/* without a packet: no more will come */
#define SETTLE_MOST	(20 * NSEC)	/* if other packets come all the time */
#define KEPT		0.99		/* share of a rate that counts as sent */
#define NEARLY		0.9		/* share that shows that it can be sent */
#define LATE		(5 * NSEC / 1000) /* more of this makes a burst */
#define BURSTS		4		/* of this length, in a trial */
#define TRIES		3		/* of a rate, if the sender was disturbed */

/**
 * struct side - a process of a trial
 * @cfg: its command line
 * @pid: the process
 * @ready: its sockets are open
 * @sent: packets
 * @received: packets of this trial, without duplicates
 * @pps: packets per second that were sent
 * @asked: packets per second that should have been sent
 * @missed: packets that were left out
 * @late: nanoseconds that a packet was sent too late at most
 * @drops: packets that the sockets have dropped
 * @w: its threads
 */
struct side {
	struct config cfg;
	pid_t pid;
	bool ready;
	__u64 sent, received;
	double pps, asked;
	__u64 missed, late, drops;
	struct worker w[MAX_THREADS];
};

/**
 * struct trial - how a rate has done
 * @pps: packets per second that were sent
 * @sent: packets
 * @received: of these
 * @asked: packets per second that should have been sent
 * @late: nanoseconds that a packet was sent too late at most
 * @drops: packets that the receiver has dropped
 * @slow: the sender was too slow
 * @passed: not, and not more was lost than is tolerated
 */
struct trial {
	double pps, asked;
	__u64 sent, received, late, drops;
	bool slow, passed;
};

static struct side *tx, *rx;

static void finish(struct side *s, const struct run *r)
{
	struct stream *streams;
	struct totals t;
	unsigned int i, n;

	report_totals(r, &t);
	s->sent = t.n.tx_packets;
	s->pps = t.pps;
	s->asked = t.asked;
	s->missed = t.n.missed;
	s->late = t.late;
	s->drops = t.drops;
	n = report_streams(r, &streams);
	for (i = 0; i < n; i++)
		if (stream_run(streams[i].key) == s->cfg.pkt.run)
			s->received += streams[i].received;
	free(streams);
}

/* Start a process that runs what s->cfg says. */
static void start(struct side *s)
{
	struct run r = { .cfg = &s->cfg, .w = s->w };
	unsigned int i;
	pid_t pid;

	s->ready = false;
	s->sent = 0;
	s->received = 0;
	memset(s->w, 0, sizeof(s->w));
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		err(1, "fork");
	if (pid) {
		s->pid = pid;
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	run_all(&r, NULL, &s->ready);
	finish(s, &r);
	for (i = 0; i < s->cfg.nr_threads; i++)
		if (*s->w[i].error)
			warnx("%s, thread %u: %s", s->cfg.ifname, i,
			      s->w[i].error);
	_exit(run_failed(&r));
}

/* Wait until a process has ended; false if it has failed. */
static bool ended(struct side *s)
{
	int status;

	if (waitpid(s->pid, &status, 0) < 0)
		err(1, "waitpid");
	s->pid = 0;
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static void nap(void)
{
	const struct timespec t = { 0, 5000000 };

	nanosleep(&t, NULL);
}

/* Wait until a process receives; false if it has ended instead. */
static bool receives(struct side *s)
{
	siginfo_t info;

	for (;;) {
		if (__atomic_load_n(&s->ready, __ATOMIC_ACQUIRE))
			return true;
		info.si_pid = 0;
		if (waitid(P_PID, s->pid, &info, WEXITED | WNOHANG | WNOWAIT) ||
		    info.si_pid)
			return false;
		nap();
	}
}

static __u64 arrived(const struct side *s)
{
	unsigned int i;
	__u64 n = 0;

	for (i = 0; i < s->cfg.nr_threads; i++)
		n += counter_read(&s->w[i].n.rx_packets) -
		     counter_read(&s->w[i].n.other);
	return n;
}

/* Wait for the last packets. */
static void settle(void)
{
	__u64 begin = clock_ns(CLOCK_MONOTONIC), since = begin, now = begin;
	__u64 had = 0, have;

	while (!interrupted() && now - since < SETTLE &&
	       now - begin < SETTLE_MOST) {
		have = arrived(rx);
		if (have >= tx->sent)
			return;
		if (have != had)
			since = now;
		had = have;
		nap();
		now = clock_ns(CLOCK_MONOTONIC);
	}
}

/*
 * Send at a share of the highest rate for a time, and count what arrives. Returns
 * false if something else fails.
 */
static bool try(const struct config *cfg, double share, double seconds,
		struct trial *t)
{
	bool ok;

	tx->cfg.rate.value = cfg->rate.value * share;
	tx->cfg.seconds = seconds;
	/* A late packet of the trial before is not one of this. */
	rx->cfg.pkt.run = ++tx->cfg.pkt.run;
	start(rx);
	ok = receives(rx);
	if (ok) {
		start(tx);
		ok = ended(tx);
		settle();
		kill(rx->pid, SIGTERM);
	}
	ok &= ended(rx);
	*t = (struct trial){
		.pps = tx->pps, .asked = tx->asked,
		.sent = tx->sent, .received = rx->received,
		.late = tx->late, .drops = rx->drops,
	};
	t->slow = tx->missed || tx->pps < tx->asked * KEPT;
	t->passed = !t->slow && t->sent &&
		    (double)t->sent - t->received <= t->sent * cfg->loss;
	return ok && !interrupted();
}

/*
 * This machine was busy for a moment, and a burst followed, which says nothing about
 * the device.
 */
static bool disturbed(const struct trial *t)
{
	double lost = (double)t->sent - t->received;

	return !t->passed && t->late > LATE && t->pps > t->asked * NEARLY &&
	       lost <= BURSTS * t->pps * t->late / NSEC;
}

static void json_trial(FILE *f, const struct trial *t, const char *comma)
{
	if (f)
		fprintf(f, "%s\n    {\"asked_pps\": %.3f, \"pps\": %.3f, \"sent\": %llu, \"received\": %llu, \"dropped\": %llu, \"late_ns\": %llu, \"slow\": %s, \"passed\": %s}",
			comma, t->asked, t->pps, t->sent, t->received,
			t->drops, t->late, t->slow ? "true" : "false", t->passed ? "true" : "false");
}

static void print_trial(const struct config *cfg, unsigned int size,
			const struct trial *t)
{
	if (cfg->quiet)
		return;
	fprintf(stderr, "%5u bytes, %.0f pps: ", size, t->asked);
	if (t->slow)
		fprintf(stderr, "the sender reaches %.0f\n", t->pps);
	else
		fprintf(stderr, "%lld of %llu packets lost\n",
			(long long)(t->sent - t->received), t->sent);
}

/*
 * Search for packets of one size. Returns 0, 1 if no rate passes, or a negative
 * number if something else fails.
 */
static int search_size(const struct config *cfg, unsigned int size, FILE *table,
		       FILE *json)
{
	const char *limit = "the rate asked for";
	struct trial t, best = { 0 };
	unsigned int trials = 0, tries = 0;
	struct bisect b;
	double bits;
	bool more;

	tx->cfg.pkt.size = (struct range){ size, size, false };
	bisect_init(&b, cfg->precision);
	/* Switches learn addresses. */
	if (!try(cfg, BISECT_LOWEST, 0.1, &t))
		return -1;
	do {
		if (!try(cfg, b.rate, cfg->seconds, &t))
			return -1;
		print_trial(cfg, size, &t);
		json_trial(json, &t, trials++ ? "," : "");
		more = true;
		if (disturbed(&t) && ++tries < TRIES)
			continue;
		tries = 0;
		if (t.passed) {
			best = t;
			more = bisect_passed(&b);
			continue;
		}
		limit = t.slow ? "the sender" : t.drops ? "the receiver" : "loss";
		more = bisect_failed(&b, t.slow && t.asked ?
				     b.rate * t.pps / t.asked : b.rate);
	} while (more);
	bits = best.pps * size * 8;
	fprintf(table, "%8u %14.0f %14.3f %14.3f %7u  %s\n", size, best.pps,
		bits / 1e6, bits / 1e6 + best.pps * WIRE_OVERHEAD * 8 / 1e6,
		trials, limit);
	fflush(table);
	if (json)
		fprintf(json, "],\n   \"size\": %u, \"pps\": %.3f, \"bps\": %.0f, \"limit\": \"%s\"}",
			size, best.pps, bits, limit);
	return !best.pps;
}

static void *shared(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		err(1, "memory");
	return p;
}

static void prepare(const struct config *cfg)
{
	tx = shared(sizeof(*tx));
	rx = shared(sizeof(*rx));
	tx->cfg = *cfg;
	tx->cfg.mode = MODE_TX;
	tx->cfg.quiet = true;
	rx->cfg = tx->cfg;
	rx->cfg.mode = MODE_RX;
	rx->cfg.ifname = cfg->to;
	rx->cfg.ifindex = if_nametoindex(cfg->to);
	if (!rx->cfg.ifindex)
		err(1, "%s", cfg->to);
	rx->cfg.rate = (struct rate){ .unit = RATE_MAX };
	rx->cfg.seconds = 0;
	if (rx->cfg.ring < RX_RING)
		rx->cfg.ring = RX_RING;
}

/**
 * search_main - find the highest rate without loss for each size of packets
 * @cfg: command line
 * @json: file for the results, or NULL
 *
 * Return: the exit status.
 */
int search_main(const struct config *cfg, FILE *json)
{
	FILE *table = json == stdout ? stderr : stdout;
	unsigned int i;
	int e = 0, status = 0;
	sigset_t set;

	if (cfg->rate.unit == RATE_PERCENT && !port_speed(cfg->ifname))
		errx(1, "%s: the speed of the link is unknown: give the highest rate (-R)",
		     cfg->ifname);
	prepare(cfg);
	port_warn(&tx->cfg);
	port_warn(&rx->cfg);
	/* The processes end by signals to all; this one then prints the rest. */
	set_signals(&set);
	fprintf(table, "%8s %14s %14s %14s %7s  %s\n", "bytes", "packets/s",
		"Mbit/s", "on the wire", "trials", "limited by");
	fflush(table);
	if (json) {
		fputs("{\"mode\": \"search\", \"interface\": ", json);
		json_string(json, cfg->ifname);
		fputs(", \"to\": ", json);
		json_string(json, cfg->to);
		fprintf(json, ", \"loss\": %g, \"precision\": %g,\n \"results\": [",
			cfg->loss, cfg->precision);
	}
	for (i = 0; i < cfg->nr_lengths && e >= 0; i++) {
		if (json)
			fprintf(json, "%s\n  {\"trials\": [", i ? "," : "");
		e = search_size(cfg, cfg->lengths[i], table, json);
		if (e)
			status = 1;
	}
	if (json)
		fprintf(json, "%s],\n \"complete\": %s}\n", e < 0 ? "]}" : "",
			e < 0 ? "false" : "true");
	return status;
}
