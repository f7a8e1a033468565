// SPDX-License-Identifier: GPL-2.0
/*
 * ringtest: measure rings between two pinned threads.
 *
 * stream	the kernel produces as fast as there are free buffers
 * ping-pong	two rings; N packets go to the other thread and back, as in
 *		l2fwd-N on veth
 *
 * Every packet is numbered and every number is checked: a packet lost, seen
 * twice or out of order ends the program with an error.
 */
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "ringtest.h"

#define NR_RINGS	3

static const struct ring_ops *const rings[NR_RINGS] = {
	&ring_tp4, &ring_index, &ring_status
};

/* Packets per lap: enough that the state of the ring does not matter. */
#define LAP	(16 * ring_size)

static unsigned int ring_size = 256;
static unsigned int kernel_batch = 1;
static unsigned int program_batch = 64;
static unsigned int in_flight;		/* 0: stream */
static unsigned int laps = 100;
static unsigned int rounds = 5;
static __u32 count;			/* packets per run */
static int cpus[2] = { 0, 1 };
static bool eager;			/* no back-off */

/* One direction with its two ends */
struct side {
	const struct ring_ops *ops;
	void *in;			/* ring it consumes from */
	void *out;			/* ring it produces to */
	int cpu;
	__u32 received;
	__u32 sent;
	struct tp4_backoff backoff;
	double *lap;			/* the time of the next lap */
	double lap_start;
};

static pthread_barrier_t barrier;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e9 + ts.tv_nsec;
}

static void start(struct side *s)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(s->cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err(1, "CPU %d", s->cpu);
	pthread_barrier_wait(&barrier);
	s->lap_start = now();
}

/* Record the time per packet at the end of a lap. */
static void clock_lap(struct side *s, __u32 before)
{
	double t;

	if (!s->lap || s->received / LAP == before / LAP)
		return;
	t = now();
	*s->lap++ = (t - s->lap_start) / LAP;
	s->lap_start = t;
}

static void progress(struct side *s, bool any)
{
	if (any)
		s->backoff.pauses = 0;
	else if (eager)
		tp4_cpu_relax();
	else
		tp4_backoff(&s->backoff);
}

static unsigned int produce(struct side *s, unsigned int want)
{
	unsigned int n = 0;

	if (want > kernel_batch)
		want = kernel_batch;
	if (want)
		n = s->ops->produce(s->out, want, s->sent);
	s->sent += n;
	return n;
}

static unsigned int consume(struct side *s, unsigned int max)
{
	unsigned int n = s->ops->consume(s->in, max, s->received);

	s->received += n;
	clock_lap(s, s->received - n);
	return n;
}

static void *stream_kernel(void *arg)
{
	struct side *s = arg;

	start(s);
	while (s->sent < count)
		progress(s, produce(s, count - s->sent));
	return NULL;
}

static void *stream_program(void *arg)
{
	struct side *s = arg;

	start(s);
	while (s->received < count)
		progress(s, consume(s, program_batch));
	return NULL;
}

/* Forwards received packets; one thread is in_flight packets ahead. */
static void *pingpong(void *arg)
{
	struct side *s = arg;
	__u32 ahead = s->sent;

	s->sent = 0;
	start(s);
	while (s->received < count) {
		__u32 due = s->received + ahead;
		bool any = false;

		if (due > count)
			due = count;
		while (s->sent < due && produce(s, due - s->sent))
			any = true;
		any |= consume(s, program_batch);
		progress(s, any);
	}
	while (s->sent < count)
		progress(s, produce(s, count - s->sent));
	return NULL;
}

/* One run; lap[] gets the time per packet of each lap. */
static void run(const struct ring_ops *ops, double *lap)
{
	void *one = ops->open(ring_size);
	void *two = in_flight ? ops->open(ring_size) : NULL;
	struct side a = { .ops = ops, .out = one, .in = two, .cpu = cpus[0] };
	struct side b = { .ops = ops, .in = one, .out = two, .cpu = cpus[1] };
	pthread_t ta, tb;

	a.sent = in_flight;
	b.lap = lap;
	pthread_barrier_init(&barrier, NULL, 2);
	if (pthread_create(&ta, NULL, in_flight ? pingpong : stream_kernel,
			   &a) ||
	    pthread_create(&tb, NULL, in_flight ? pingpong : stream_program,
			   &b))
		errx(1, "cannot make a thread");
	pthread_join(ta, NULL);
	pthread_join(tb, NULL);
	pthread_barrier_destroy(&barrier);
	/* The rings are not freed, so that each run uses new memory. */
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/*
 * On a busy machine, most laps can be interrupted. Therefore print a low
 * quantile in addition to the median.
 */
static void measure(void)
{
	unsigned int i, r, n = laps * rounds;
	double *ns[NR_RINGS];

	count = laps * LAP;
	for (i = 0; i < NR_RINGS; i++)
		ns[i] = ring_alloc(n * sizeof(double));
	for (r = 0; r < rounds; r++)
		for (i = 0; i < NR_RINGS; i++)
			run(rings[i], ns[i] + r * laps);
	for (i = 0; i < NR_RINGS; i++)
		qsort(ns[i], n, sizeof(double), compare);
	if (in_flight)
		printf("ping-pong, %u in flight", in_flight);
	else
		printf("stream");
	printf(", batches of %u and %u%s:\n", kernel_batch, program_batch,
	       eager ? ", no back-off" : "");
	printf("  ns/packet  %10s %10s   (times tp4)\n", "median", "best 10%");
	for (i = 0; i < NR_RINGS; i++)
		printf("  %-10s %10.1f %10.1f   (%5.2f %5.2f)\n",
		       rings[i]->name, ns[i][n / 2], ns[i][n / 10],
		       ns[i][n / 2] / ns[0][n / 2],
		       ns[i][n / 10] / ns[0][n / 10]);
}

static const char usage[] =
"usage: ringtest [options]\n"
"  -p N    ping-pong with N packets in flight (default: stream)\n"
"  -k N    packets the kernel side publishes together (default 1)\n"
"  -b N    packets the program side takes together (default 64)\n"
"  -R N    slots in a ring, a power of two (default 256)\n"
"  -n N    laps a run, of 16 rings full each (default 100)\n"
"  -r N    runs of each ring, taking turns (default 5)\n"
"  -c A,B  CPUs (default 0,1)\n"
"  -e      eager: one pause between two looks, no back-off\n"
"Rings: tp4 (TPACKET_V4), index (as AF_XDP), status (as TPACKET_V2).\n";

static unsigned int parse(const char *s, unsigned int min, unsigned int max)
{
	char *tail;
	unsigned long n = strtoul(s, &tail, 0);

	if (tail == s || *tail || n < min || n > max)
		errx(2, "'%s' is not a number from %u to %u", s, min, max);
	return n;
}

int main(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "p:k:b:R:n:r:c:eh")) != -1) {
		switch (c) {
		case 'p':
			in_flight = parse(optarg, 1, 1 << 16);
			break;
		case 'k':
			kernel_batch = parse(optarg, 1, 64);
			break;
		case 'b':
			program_batch = parse(optarg, 1, 1 << 16);
			break;
		case 'R':
			ring_size = parse(optarg, 64, 1 << 12);
			if (ring_size & (ring_size - 1))
				errx(2, "-R: not a power of two");
			break;
		case 'n':
			laps = parse(optarg, 1, 100000);
			break;
		case 'r':
			rounds = parse(optarg, 1, 64);
			break;
		case 'c':
			if (sscanf(optarg, "%d,%d", &cpus[0], &cpus[1]) != 2)
				errx(2, "-c A,B");
			break;
		case 'e':
			eager = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (in_flight > ring_size)
		errx(2, "more in flight than a ring holds");
	measure();
	return 0;
}
