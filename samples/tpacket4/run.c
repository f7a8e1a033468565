// SPDX-License-Identifier: GPL-2.0
/*
 * The loops that tpbench measures, and their processes.
 *
 * rxdrop, txpush	this process; the generator, if asked for, is a child
 * l2fwd		the same, or, with packets in flight, ping-pong between
 *			this process and a child
 * lockstep		all of it in this process, in turns: the time a packet
 *			is then the cost of all its work, on one CPU. Under
 *			"qemu -icount shift=0" a nanosecond is an instruction.
 */
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tpbench.h"

#define POLL_MS		100
/*
 * The generator stays so far ahead of the receiver, in parts of a ring. It
 * could overrun it, but then a receiver that loses its CPU for a moment loses
 * packets, and we would measure that. Packets that are lost all the same give
 * their credit back after a while.
 */
#define WINDOW(cfg)	((cfg)->ring * 3 / 4)
#define LOST_SECONDS	0.2
#define CARRIER_SECONDS	5
/* Lockstep times the drain alone in one round of so many (a prime). */
#define DRAIN_SAMPLE	17

static struct shared *shared;

static bool stopped(void)
{
	return __atomic_load_n(&shared->stop, __ATOMIC_RELAXED);
}

static void wait_flag(const bool *flag)
{
	while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE) && !stopped())
		usleep(1000);
}

static void set_flag(bool *flag)
{
	__atomic_store_n(flag, true, __ATOMIC_RELEASE);
}

static void pin(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err(1, "CPU %d", cpu);
}

/* --- the queues of an end ------------------------------------------------ */

/* Sockets of one end, which one process serves in turn */
struct end {
	const struct config *cfg;
	struct port *ports;
	struct port feeder;	/* of a fanout group, which the ports are in */
	unsigned int nr;
	__u64 packets;		/* done by all of them */
	__u64 started;		/* the same, and those that are being sent */
	__u64 limit;		/* start no more than these, or 0 */
	__u64 idle;		/* rounds in which none found anything to do */
	bool posted;		/* txpush: the last round sent something */
	struct tp4_backoff backoff;
};

static void end_open(struct end *e, const struct config *cfg, int which)
{
	unsigned int i;

	memset(e, 0, sizeof(*e));
	e->cfg = cfg;
	e->nr = cfg->fanout < 0 ? cfg->queues : FANOUT_MEMBERS;
	e->ports = calloc(e->nr, sizeof(*e->ports));
	if (!e->ports)
		err(1, "%s", cfg->ifname[which]);
	for (i = 0; i < e->nr; i++)
		port_open(&e->ports[i], cfg, which, i);
	if (cfg->fanout < 0)
		return;
	port_open(&e->feeder, cfg, which, e->nr);
	fanout_feed(&e->feeder);
}

static void end_close(struct end *e)
{
	unsigned int i;

	for (i = 0; i < e->nr; i++)
		port_close(&e->ports[i]);
	if (e->cfg->fanout >= 0)
		port_close(&e->feeder);
	free(e->ports);
}

/* Packets dropped without a free slot since the last call */
static __u64 end_drops(struct end *e)
{
	__u64 n = 0;
	unsigned int i;

	for (i = 0; i < e->nr; i++)
		n += port_drops(&e->ports[i]);
	return n;
}

static struct counters end_counters(const struct end *e)
{
	struct counters n = { .packets = e->packets, .idle = e->idle };
	unsigned int i;

	for (i = 0; i < e->nr; i++) {
		n.bytes += e->ports[i].n.bytes;
		n.kicks += e->ports[i].n.kicks;
	}
	return n;
}

static void add_verify(struct verify *to, const struct verify *v)
{
	to->checked += v->checked;
	to->lost += v->lost;
	to->reordered += v->reordered;
	to->corrupt += v->corrupt;
	to->foreign += v->foreign;
}

static struct verify end_verify(const struct end *e)
{
	struct verify sum = { 0 };
	unsigned int i;

	for (i = 0; i < e->nr; i++)
		add_verify(&sum, &e->ports[i].verify);
	return sum;
}

static unsigned int step(struct end *e)
{
	unsigned int i, done, n = 0;

	e->posted = false;
	for (i = 0; i < e->nr; i++) {
		struct port *p = &e->ports[i];

		p->max = e->cfg->batch;
		if (e->limit && e->limit - e->started < p->max)
			p->max = e->limit - e->started;
		p->posted = 0;
		p->lost = 0;
		done = port_step(p);
		e->started += e->cfg->mode == MODE_TXPUSH ?
			      p->posted - p->lost : done;
		e->posted |= p->posted;
		n += done;
	}
	e->packets += n;
	return n;
}

/* Sleep until a socket needs attention. */
static void end_wait(struct end *e)
{
	short events = e->cfg->mode == MODE_TXPUSH ? POLLOUT : POLLIN;
	struct pollfd pfd[MAX_QUEUES];
	socklen_t len = sizeof(int);
	int error = 0;
	unsigned int i;

	for (i = 0; i < e->nr; i++) {
		pfd[i].fd = e->ports[i].fd;
		pfd[i].events = events;
	}
	if (poll(pfd, e->nr, POLL_MS) < 0 && errno != EINTR)
		err(1, "poll");
	for (i = 0; i < e->nr; i++)
		if ((pfd[i].revents & POLLERR) &&
		    !getsockopt(pfd[i].fd, SOL_SOCKET, SO_ERROR, &error,
				&len) && error)
			errx(1, "%s: %s", e->cfg->ifname[e->ports[i].end],
			     strerror(error));
}

/* Nothing to do: the same wait for every version. */
static void idle(struct end *e)
{
	e->idle++;
	if (e->cfg->poll)
		end_wait(e);
	else
		tp4_backoff(&e->backoff);
}

static void step_or_idle(struct end *e)
{
	/* After sending a batch, another one may have been returned already. */
	if (step(e) || e->posted)
		e->backoff.pauses = 0;
	else
		idle(e);
}

/* Put the packets of a ping-pong on their way, by each queue so many. */
static void serve(struct end *e)
{
	unsigned int i;

	for (i = 0; i < e->nr; i++) {
		unsigned int left = e->cfg->in_flight;
		struct port *p = &e->ports[i];

		while (left && !stopped()) {
			unsigned int n = left;

			if (n > e->cfg->batch)
				n = e->cfg->batch;
			left -= p->ops->tx_fill(p, n);
			port_kick(p);
			p->ops->tx_reap(p);
		}
	}
}

bool has_carrier(const char *ifname)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = { 0 };
	bool carrier = true;

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", ifname);
	if (!ioctl(fd, SIOCGIFFLAGS, &ifr))
		carrier = ifr.ifr_flags & IFF_RUNNING;
	close(fd);
	return carrier;
}

/* A card may reset when a socket or an XDP program is attached to a queue. */
static void wait_for_carrier(const struct config *cfg)
{
	double until = now() + CARRIER_SECONDS;
	unsigned int i;

	for (i = 0; i < 2; i++)
		while (cfg->ifname[i] && !has_carrier(cfg->ifname[i]) &&
		       !stopped() && now() < until)
			usleep(10000);
}

/* --- lockstep ------------------------------------------------------------ */

struct lockstep {
	struct end *other;		/* ping-pong, or */
	struct generator *gen;
	unsigned int round;
	double drain;
};

static void lockstep_round(struct end *e, struct lockstep *l)
{
	double start = 0;

	if (l->other) {
		if (!(step(e) + step(l->other)))
			idle(e);
		else
			e->backoff.pauses = 0;
		return;
	}
	generator_send(l->gen);
	if (++l->round == DRAIN_SAMPLE) {
		l->round = 0;
		start = now();
	}
	while (step(e))
		;
	if (start)
		l->drain += (now() - start) * DRAIN_SAMPLE;
}

/* Seconds per packet of the generator alone: rxdrop without its socket */
static double generator_alone(struct generator *g)
{
	unsigned int i, n = 0;
	double start;

	for (i = 0; i < 64; i++)
		generator_send(g);
	start = now();
	for (i = 0; i < 256; i++)
		n += generator_send(g);
	return n ? (now() - start) / n : 0;
}

/* --- runs ---------------------------------------------------------------- */

/* Until told to stop, the end has done so many packets, or time is up. */
static void loop(struct end *e, struct lockstep *l, __u64 limit)
{
	/* Otherwise, what a batch is too much does no harm. */
	e->limit = e->cfg->count ? limit : 0;
	while (!stopped() && (!limit || e->packets < limit)) {
		__u64 before = e->packets;

		if (l)
			lockstep_round(e, l);
		else
			step_or_idle(e);
		if (e->packets != before)
			__atomic_store_n(&shared->received, e->packets,
					 __ATOMIC_RELAXED);
		if (report_due() && report_tick(e->cfg, e->packets))
			break;
	}
}

/* The same for a moment longer, sampling whether kernel or program runs */
static void measure_split(struct end *e, struct lockstep *l,
			  struct result *res)
{
	__u64 before = e->packets;
	double share, seconds;

	split_start();
	report_start(SPLIT_SECONDS);
	loop(e, l, 0);
	report_stop();
	share = split_stop(&seconds);
	res->user_seconds = res->seconds * share;
	/* With poll(), the kernel also works while the program sleeps. */
	if (e->cfg->poll && e->packets != before)
		res->user_seconds = seconds / (e->packets - before) *
				    res->n.packets;
}

static void measure(struct end *e, struct lockstep *l, struct result *res)
{
	const struct config *cfg = e->cfg;
	struct counters base, n;
	double start;

	report_start(cfg->duration);
	if (cfg->warmup)
		loop(e, l, cfg->warmup);
	if (stopped())
		errx(1, "stopped during the warm-up: nothing was measured");
	if (e->packets < cfg->warmup)
		warnx("only %llu of %llu packets of the warm-up in %g seconds, see --warmup",
		      e->packets, cfg->warmup, cfg->duration);

	base = end_counters(e);
	res->warmup = base.packets;
	end_drops(e);
	if (l)
		l->drain = 0;
	report_start(cfg->duration);
	if (cfg->poll)
		res->idle_seconds = -idle_seconds();
	start = now();
	loop(e, l, cfg->count ? base.packets + cfg->count : 0);
	res->seconds = now() - start;
	if (cfg->poll)
		res->idle_seconds += idle_seconds();
	report_stop();

	n = end_counters(e);
	res->n.packets = n.packets - base.packets;
	res->n.bytes = n.bytes - base.bytes;
	res->n.kicks = n.kicks - base.kicks;
	res->n.idle = n.idle - base.idle;
	res->verify = end_verify(e);
	res->drops = end_drops(e);
	res->drain_seconds = l ? l->drain : 0;

	if (cfg->split)
		measure_split(e, l, res);
}

static void run_lockstep(const struct config *cfg, struct result *res)
{
	struct lockstep l = { 0 };
	struct end e, other;

	pin(cfg->cpu[0]);
	if (!cfg->in_flight) {
		l.gen = generator_open(cfg);
		res->alone_seconds = generator_alone(l.gen);
	}
	end_open(&e, cfg, 0);
	if (cfg->in_flight) {
		end_open(&other, cfg, 1);
		l.other = &other;
	}
	wait_for_carrier(cfg);
	if (l.other)
		serve(&e);
	measure(&e, &l, res);
	if (l.other)
		end_close(&other);
	else
		generator_close(l.gen);
	end_close(&e);
}

static void child_pingpong(const struct config *cfg)
{
	struct end e;

	end_open(&e, cfg, 1);
	set_flag(&shared->ready);
	while (!stopped())
		step_or_idle(&e);
	shared->child_verify = end_verify(&e);
	end_close(&e);
}

static void child_generator(const struct config *cfg)
{
	struct generator *g = generator_open(cfg);
	struct tp4_backoff b = { 0 };
	__u64 sent = 0, lost = 0;	/* lost: given up, or nearly */
	double since = 0;		/* waiting since */

	set_flag(&shared->ready);
	wait_flag(&shared->go);
	while (!stopped()) {
		__u64 got = __atomic_load_n(&shared->received,
					    __ATOMIC_RELAXED);

		/* signed: packets counted as lost may still arrive */
		if ((__s64)(sent - lost - got) < (__s64)WINDOW(cfg)) {
			sent += generator_send(g);
			b.pauses = 0;
			since = 0;
		} else if (tp4_backoff(&b)) {
			if (!since)
				since = now();
			else if (now() - since > LOST_SECONDS)
				lost = sent - got;
		}
	}
	generator_close(g);
}

static pid_t start_child(const struct config *cfg)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		err(1, "fork");
	if (pid)
		return pid;

	/* The parent stops us; if it dies, its death does. */
	signal(SIGINT, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	pin(cfg->cpu[1]);
	if (cfg->in_flight)
		child_pingpong(cfg);
	else
		child_generator(cfg);
	_exit(0);
}

static void on_stop(int sig)
{
	(void)sig;
	set_flag(&shared->stop);
}

void run(const struct config *cfg, struct result *res)
{
	struct end e;
	pid_t child = 0;
	int status;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		err(1, "mmap");
	signal(SIGINT, on_stop);
	signal(SIGTERM, on_stop);
	memset(res, 0, sizeof(*res));
	if (cfg->shared)
		v4_share_area(cfg);

	if (cfg->lockstep) {
		run_lockstep(cfg, res);
		return;
	}

	/* If the child fails, its packets never arrive. */
	signal(SIGCHLD, on_stop);
	if (cfg->ifname[1])
		child = start_child(cfg);
	pin(cfg->cpu[0]);
	end_open(&e, cfg, 0);
	if (child)
		wait_flag(&shared->ready);
	wait_for_carrier(cfg);
	if (child)
		set_flag(&shared->go);
	if (cfg->in_flight)
		serve(&e);
	measure(&e, NULL, res);
	set_flag(&shared->stop);
	end_close(&e);
	if (child) {
		if (waitpid(child, &status, 0) < 0)
			err(1, "wait");
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			exit(1);	/* it has said why */
		add_verify(&res->verify, &shared->child_verify);
	}
}
