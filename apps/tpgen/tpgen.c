// SPDX-License-Identifier: GPL-2.0
/* tpgen: threads, signals, samples (files: see tpgen.h) */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "pcap.h"
#include "pcapng.h"
#include "slots.h"
#include "stream.h"
#include "vary.h"

#define SIG_DONE	SIGUSR1		/* a thread has ended */
#define SIG_WAKE	SIGUSR2		/* a thread shall look at stopping */

/* Signals that end the run with its summary */
static const int endings[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

static int stopping;			/* 1: stop, 2: at once */
static unsigned int running;
static pthread_t main_thread;

/**
 * stopped - check whether the threads shall end
 *
 * Return: true if so.
 */
bool stopped(void)
{
	return __atomic_load_n(&stopping, __ATOMIC_RELAXED);
}

/**
 * impatient - check whether the threads shall not even wait for their packets
 *
 * Return: true if so.
 */
bool impatient(void)
{
	return __atomic_load_n(&stopping, __ATOMIC_RELAXED) > 1;
}

/**
 * interrupted - check whether the user wants the program to end
 *
 * For the main thread, before it watches the others.
 *
 * Return: true if so.
 */
bool interrupted(void)
{
	sigset_t set;
	unsigned int i;

	sigpending(&set);
	for (i = 0; i < sizeof(endings) / sizeof(*endings); i++)
		if (sigismember(&set, endings[i]))
			return true;
	return false;
}

/**
 * worker_fail - note why a thread ends early
 * @w: thread
 * @format: reason, as for printf()
 */
void worker_fail(struct worker *w, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(w->error, sizeof(w->error), format, args);
	va_end(args);
}

static void set_cpu(struct worker *w)
{
	const int cpu = w->cfg->cpu[w->nr];
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		worker_fail(w, "CPU %d: %s", cpu, strerror(errno));
}

static void *thread(void *arg)
{
	struct worker *w = arg;

	/* Sleep as long as asked for, not 50 us longer. */
	prctl(PR_SET_TIMERSLACK, 1);
	set_cpu(w);
	if (!*w->error) {
		switch (w->cfg->mode) {
		case MODE_TX:
			tx_run(w);
			break;
		case MODE_RX:
			rx_run(w);
			break;
		case MODE_PING:
			ping_run(w);
			break;
		case MODE_PONG:
			pong_run(w);
			break;
		case MODE_REPLAY:
			replay_run(w);
			break;
		case MODE_SEARCH:	/* of which the trials are tx and rx */
			break;
		}
	}
	__atomic_fetch_sub(&running, 1, __ATOMIC_RELEASE);
	pthread_kill(main_thread, SIG_DONE);
	return NULL;
}

static void open_port(struct worker *w)
{
	const struct config *cfg = w->cfg;
	const unsigned int ring = cfg->ring;
	unsigned int size;

	switch (cfg->mode) {
	case MODE_TX:
		size = slots_frame_size(vary_max_size(&cfg->pkt));
		port_open(w, 0, ring, ring, size);
		break;
	case MODE_RX:
		port_open(w, ring, 0, 0, 2048);
		break;
	case MODE_PING:
		size = slots_frame_size(vary_max_size(&cfg->pkt));
		port_open(w, ring, ring, ring, size);
		break;
	case MODE_PONG:
		port_open(w, ring, ring, ring, 2048);
		break;
	case MODE_REPLAY:
		size = slots_frame_size(replay_max_size(w));
		port_open(w, 0, ring, ring, size);
		break;
	case MODE_SEARCH:
		break;
	}
	if ((cfg->mode == MODE_RX && cfg->pkt.seq) || cfg->mode == MODE_PING) {
		w->streams = stream_table_new();
		if (!w->streams)
			err(1, "streams");
	}
}

static void wake_up(int sig)
{
	(void)sig;	/* nanosleep() and poll() return */
}

/**
 * set_signals - block the signals that end a run
 * @set: set to these
 */
void set_signals(sigset_t *set)
{
	struct sigaction wake = { .sa_handler = wake_up }, old;
	unsigned int i;

	sigaction(SIG_WAKE, &wake, NULL);
	/* Who reads the output may go away, but the JSON file is still written. */
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(set);
	for (i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
		/* nohup ignores SIGHUP. Shells ignore SIGINT in the background. */
		sigaction(endings[i], NULL, &old);
		if (endings[i] == SIGINT || old.sa_handler != SIG_IGN)
			sigaddset(set, endings[i]);
	}
	sigaddset(set, SIG_DONE);
	pthread_sigmask(SIG_BLOCK, set, NULL);
}

static void stop(const pthread_t *threads, unsigned int nr)
{
	unsigned int i;

	__atomic_store_n(&stopping, stopping ? 2 : 1, __ATOMIC_RELAXED);
	for (i = 0; i < nr; i++)
		pthread_kill(threads[i], SIG_WAKE);
}

/* Sleep until a time or a signal; returns the signal. */
static int wait_until(const sigset_t *set, __u64 until)
{
	__u64 now = clock_ns(CLOCK_MONOTONIC);
	struct timespec t = { 0 };

	if (until > now) {
		t.tv_sec = (until - now) / NSEC;
		t.tv_nsec = (until - now) % NSEC;
	}
	return sigtimedwait(set, NULL, &t);
}

/* Sample the counters until all threads have ended. */
static void watch(struct run *r, const pthread_t *threads,
		  const sigset_t *set)
{
	const struct config *cfg = r->cfg;
	const __u64 step = cfg->interval * NSEC;
	const __u64 end = r->start + cfg->seconds * NSEC;
	__u64 next = r->start + step, until;
	int sig;

	while (__atomic_load_n(&running, __ATOMIC_ACQUIRE)) {
		until = next;
		if (cfg->seconds && !stopped() && end < until)
			until = end;
		sig = wait_until(set, until);
		if (sig > 0 && sig != SIG_DONE)
			stop(threads, cfg->nr_threads);
		if (clock_ns(CLOCK_MONOTONIC) >= next) {
			report_sample(r);
			/* The program may have been stopped. */
			while (next <= clock_ns(CLOCK_MONOTONIC))
				next += step;
		}
		if (cfg->seconds && !stopped() &&
		    clock_ns(CLOCK_MONOTONIC) >= end)
			stop(threads, cfg->nr_threads);
	}
}

static void start_threads(struct run *r, pthread_t *threads)
{
	const struct config *cfg = r->cfg;
	unsigned int i;

	main_thread = pthread_self();
	running = cfg->nr_threads;
	r->start = clock_ns(CLOCK_MONOTONIC);
	for (i = 0; i < cfg->nr_threads; i++) {
		errno = pthread_create(&threads[i], NULL, thread, &r->w[i]);
		if (errno)
			err(1, "thread");
	}
}

/* Open a file before the run, so that it is not in vain. */
static FILE *open_output(const char *name)
{
	FILE *f = NULL;

	if (!name)
		return NULL;
	if (!strcmp(name, "-"))
		return stdout;
	f = fopen(name, "we");
	if (!f)
		err(1, "%s", name);
	return f;
}

/* Returns false, and prints why, if the file is not complete. */
static bool close_output(FILE *f, const char *name)
{
	bool ok = !ferror(f);

	ok &= !(f == stdout ? fflush(f) : fclose(f));
	if (!ok)
		warn("%s", name);
	return ok;
}

static bool write_reports(struct run *r, FILE *json, FILE *plot)
{
	const bool text = json != stdout && r->stream != stdout && r->out != stdout;
	const struct config *cfg = r->cfg;
	bool ok = true;

	report_summary(r, text ? stdout : stderr);
	if (text)
		ok = close_output(stdout, "standard output");
	if (r->out)
		ok &= close_output(r->out, cfg->write);
	if (r->stream)
		ok &= close_output(r->stream, cfg->json_stream);
	if (json) {
		json_write(r, json);
		ok &= close_output(json, cfg->json);
	}
	if (plot) {
		plot_write(r, plot);
		ok &= close_output(plot, cfg->plot);
	}
	return ok;
}

/**
 * run_failed - check whether something went wrong
 * @r: run that has ended
 *
 * Return: true if so.
 */
bool run_failed(const struct run *r)
{
	bool answered = r->cfg->mode != MODE_PING;
	unsigned int i;

	for (i = 0; i < r->cfg->nr_threads; i++) {
		if (*r->w[i].error || refuse_any_final(&r->w[i]))
			return true;
		answered |= r->w[i].streams && r->w[i].streams->nr;
	}
	return !answered;
}

/**
 * run_all - open the ports, run the threads until they end, close the ports
 * @r: run, with zeroed threads
 * @capture: packets of a replay
 * @ready: set when what is sent is received, or NULL: print that
 */
void run_all(struct run *r, const struct capture *capture, bool *ready)
{
	const struct config *cfg = r->cfg;
	pthread_t threads[MAX_THREADS];
	unsigned int i;
	sigset_t set;

	set_signals(&set);
	for (i = 0; i < cfg->nr_threads; i++) {
		r->w[i].cfg = cfg;
		r->w[i].capture = capture;
		r->w[i].out = r->out;
		r->w[i].nr = i;
		r->w[i].count = cfg->count / cfg->nr_threads +
				(i < cfg->count % cfg->nr_threads);
		open_port(&r->w[i]);
	}
	port_wait_link(cfg);
	r->speed = port_speed(cfg->ifname);
	if (cfg->rate.unit == RATE_PERCENT && !r->speed)
		errx(1, "%s: the speed of the link is unknown, so that there is no percentage of it",
		     cfg->ifname);
	for (i = 0; i < cfg->nr_threads; i++)
		r->w[i].speed = r->speed;

	if (ready)
		__atomic_store_n(ready, true, __ATOMIC_RELEASE);
	else if (cfg->mode == MODE_RX || cfg->mode == MODE_PONG)
		fprintf(stderr, "tpgen: %s: ready\n", cfg->ifname);
	start_threads(r, threads);
	watch(r, threads, &set);
	for (i = 0; i < cfg->nr_threads; i++) {
		pthread_join(threads[i], NULL);
		port_read_drops(&r->w[i]);
		port_close(&r->w[i]);
	}
}

int main(int argc, char **argv)
{
	static struct config cfg;
	static struct capture capture;
	static struct run r = { .cfg = &cfg };
	FILE *json, *plot;
	int status;

	options_parse(&cfg, argc, argv);
	json = open_output(cfg.json);
	plot = open_output(cfg.plot);
	r.stream = open_output(cfg.json_stream);
	r.out = open_output(cfg.write);
	if (r.out)
		pcapng_start(r.out, cfg.ifname);
	if (cfg.mode == MODE_SEARCH) {
		status = search_main(&cfg, json);
		if (json && !close_output(json, cfg.json))
			status = 1;
		return status;
	}
	r.w = aligned_alloc(64, sizeof(*r.w) * cfg.nr_threads);
	if (!r.w)
		err(1, "threads");
	memset(r.w, 0, sizeof(*r.w) * cfg.nr_threads);
	/* It may wait for another program, so signals still end the program. */
	if (cfg.mode == MODE_REPLAY)
		replay_load(&cfg, &capture);
	port_warn(&cfg);
	run_all(&r, &capture, NULL);
	status = !write_reports(&r, json, plot);
	status |= run_failed(&r);
	report_free(&r);
	replay_free(&capture);
	return status;
}
