// SPDX-License-Identifier: GPL-2.0
/*
 * What tpbench measures: the loops, and the processes they run in.
 *
 * rxdrop, txpush	this process; the generator, if asked for, is a child
 * l2fwd		the same, or, with packets in flight, ping-pong between
 *			this process and a child
 * lockstep		all of it in this process, in turns: the time a packet
 *			is then the cost of all its work, on one CPU. Under
 *			"qemu -icount shift=0" a nanosecond is an instruction.
 */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <net/if.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tpbench.h"

#define SNDBUF		(64 << 20)	/* never the limit */
#define POLL_MS		100
/*
 * The generator stays so far ahead of the receiver, in parts of a ring. It
 * could overrun it, but then a receiver that loses its CPU for a moment loses
 * packets, and we would measure that. Packets that are lost all the same give
 * their credit back after a while.
 */
#define WINDOW(cfg)	((cfg)->ring * 3 / 4)
#define LOST_SECONDS	0.2
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

/* --- ports --------------------------------------------------------------- */

static void port_open(struct port *p, const struct config *cfg, int end)
{
	const char *ifname = cfg->ifname[end];
	static const struct ring_ops *const versions[] = {
		&ring_v2, &ring_v3, &ring_v4
	};
	struct tp4_sock s;
	int e, sndbuf = SNDBUF;

	memset(p, 0, sizeof(*p));
	p->cfg = cfg;
	p->ops = versions[cfg->version - 2];
	p->end = end;
	/* A queue pair, and so zero-copy mode, is always both. */
	p->rx = cfg->mode != MODE_TXPUSH || cfg->zerocopy;
	p->tx = cfg->mode != MODE_RXDROP || cfg->zerocopy;
	p->ifindex = if_nametoindex(ifname);
	if (!p->ifindex)
		err(1, "%s", ifname);
	p->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (p->fd < 0)
		err(1, "socket");

	if (p->tx) {
		e = tp4_setopt(p->fd, PACKET_QDISC_BYPASS, cfg->bypass);
		if (e)
			errx(1, "PACKET_QDISC_BYPASS: %s", strerror(-e));
		if (setsockopt(p->fd, SOL_SOCKET, SO_SNDBUFFORCE, &sndbuf,
			       sizeof(sndbuf)))
			err(1, "SO_SNDBUFFORCE");
	}
	/* Do not receive what we, or others here, send. */
	e = tp4_setopt(p->fd, PACKET_IGNORE_OUTGOING, 1);
	if (e)
		errx(1, "PACKET_IGNORE_OUTGOING: %s", strerror(-e));
	s.fd = p->fd;
	e = cfg->busy_poll ? tp4_busy_poll_start(&s, cfg->busy_poll,
						 cfg->batch) : 0;
	if (e)
		errx(1, "SO_BUSY_POLL: %s", strerror(-e));

	p->ops->open(p);

	e = cfg->promisc ? tp4_promisc(&s, p->ifindex) : 0;
	if (e)
		errx(1, "%s: promiscuous mode: %s", ifname, strerror(-e));
	if (p->rx) {
		e = tp4_bind(&s, p->ifindex);
	} else {
		/* Protocol 0: bound to send, with nothing to receive. */
		struct sockaddr_ll ll = {
			.sll_family = AF_PACKET,
			.sll_ifindex = p->ifindex,
		};

		e = bind(p->fd, (struct sockaddr *)&ll, sizeof(ll)) ?
		    -errno : 0;
	}
	if (e && cfg->zerocopy)
		errx(1, "%s: zero-copy on queue pair %d: %s", ifname,
		     cfg->zerocopy - 1, strerror(-e));
	if (e)
		errx(1, "%s: bind: %s", ifname, strerror(-e));
}

static void port_close(struct port *p)
{
	p->ops->close(p);
	close(p->fd);
}

/* Packets dropped for want of room since the last call. */
static __u64 port_drops(struct port *p)
{
	struct tpacket_stats_v4 st = { 0 };	/* the longest of all */
	socklen_t len = sizeof(st);

	if (getsockopt(p->fd, SOL_PACKET, PACKET_STATISTICS, &st, &len))
		err(1, "PACKET_STATISTICS");
	return st.tp_drops;
}

/* --- one round of each benchmark ----------------------------------------- */

static void kick(struct port *p)
{
	if (p->ops->need_kick && !p->ops->need_kick(p))
		return;
	p->n.kicks++;
	if (sendto(p->fd, NULL, 0, MSG_DONTWAIT, NULL, 0) >= 0)
		return;
	/* A full device or socket: what is on the ring goes next time. */
	if (errno != EAGAIN && errno != ENOBUFS && errno != EINTR)
		err(1, "sendto");
}

static unsigned int step_rxdrop(struct port *p)
{
	unsigned int n = p->ops->rx_drop(p, p->cfg->batch);

	p->n.packets += n;
	return n;
}

static unsigned int step_txpush(struct port *p)
{
	unsigned int n;

	p->ops->tx_fill(p, p->cfg->batch);
	kick(p);
	n = p->ops->tx_reap(p);
	p->n.packets += n;
	p->n.bytes += (__u64)n * p->cfg->size;
	return n;
}

static unsigned int step_l2fwd(struct port *p)
{
	unsigned int n = p->ops->forward(p, p->cfg->batch);

	p->n.packets += n;
	if (n || p->ops->tx_busy(p)) {
		kick(p);
		p->ops->tx_reap(p);
	}
	return n;
}

static unsigned int step_once(struct port *p)
{
	switch (p->cfg->mode) {
	case MODE_RXDROP:
		return step_rxdrop(p);
	case MODE_TXPUSH:
		return step_txpush(p);
	default:
		return step_l2fwd(p);
	}
}

static unsigned int step(struct port *p)
{
	struct tp4_sock s = { .fd = p->fd };
	unsigned int n = step_once(p);
	int e;

	/* In copy mode nobody but the driver has a queue to run. */
	if (n || !p->cfg->busy_poll || !p->cfg->zerocopy)
		return n;
	e = tp4_busy_poll(&s);
	if (e)
		errx(1, "%s: %s", p->cfg->ifname[p->end], strerror(-e));
	return step_once(p);
}

/* Nothing to do: the same wait for every version. */
static void idle(struct port *p)
{
	struct pollfd pfd = {
		.fd = p->fd,
		.events = p->cfg->mode == MODE_TXPUSH ? POLLOUT : POLLIN,
	};

	p->n.idle++;
	if (!p->cfg->poll)
		tp4_backoff(&p->backoff);
	else if (poll(&pfd, 1, POLL_MS) < 0 && errno != EINTR)
		err(1, "poll");
}

static void step_or_idle(struct port *p)
{
	if (step(p))
		p->backoff.pauses = 0;
	else
		idle(p);
}

/* Put the packets of a ping-pong on their way. */
static void serve(struct port *p)
{
	unsigned int left = p->cfg->in_flight;

	while (left && !stopped()) {
		unsigned int n = left < p->cfg->batch ? left : p->cfg->batch;

		left -= p->ops->tx_fill(p, n);
		kick(p);
		p->ops->tx_reap(p);
	}
}

/* --- lockstep ------------------------------------------------------------ */

struct lockstep {
	struct port *other;		/* ping-pong, or */
	struct generator *gen;
	unsigned int round;
	double drain;
};

static void lockstep_round(struct port *p, struct lockstep *l)
{
	double start = 0;

	if (l->other) {
		if (!(step(p) + step(l->other)))
			idle(p);
		else
			p->backoff.pauses = 0;
		return;
	}
	generator_send(l->gen);
	if (++l->round == DRAIN_SAMPLE) {
		l->round = 0;
		start = now();
	}
	while (step(p))
		;
	if (start)
		l->drain += (now() - start) * DRAIN_SAMPLE;
}

/* Seconds a packet that nobody receives: what rxdrop costs but for V2..V4. */
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

/* Until told to stop, p has done so many packets, or time is up. */
static void loop(struct port *p, struct lockstep *l, __u64 limit)
{
	while (!stopped() && (!limit || p->n.packets < limit)) {
		__u64 before = p->n.packets;

		if (l)
			lockstep_round(p, l);
		else
			step_or_idle(p);
		if (p->n.packets != before)
			__atomic_store_n(&shared->received, p->n.packets,
					 __ATOMIC_RELAXED);
		if (report_due() && report_tick(p->cfg, &p->n))
			break;
	}
}

static void measure(struct port *p, struct lockstep *l, struct result *res)
{
	const struct config *cfg = p->cfg;
	struct counters base;
	double start;

	report_start(cfg->duration);
	if (cfg->warmup)
		loop(p, l, cfg->warmup);

	base = p->n;
	if (p->rx)
		port_drops(p);
	if (l)
		l->drain = 0;
	report_start(cfg->duration);
	start = now();
	loop(p, l, cfg->count ? base.packets + cfg->count : 0);
	res->seconds = now() - start;
	report_stop();

	res->n.packets = p->n.packets - base.packets;
	res->n.bytes = p->n.bytes - base.bytes;
	res->n.kicks = p->n.kicks - base.kicks;
	res->n.idle = p->n.idle - base.idle;
	res->verify = p->verify;
	res->drops = p->rx ? port_drops(p) : 0;
	res->drain_seconds = l ? l->drain : 0;
}

static void run_lockstep(const struct config *cfg, struct result *res)
{
	struct lockstep l = { 0 };
	struct port p, other;

	pin(cfg->cpu[0]);
	if (!cfg->in_flight) {
		l.gen = generator_open(cfg);
		res->alone_seconds = generator_alone(l.gen);
	}
	port_open(&p, cfg, 0);
	if (cfg->in_flight) {
		port_open(&other, cfg, 1);
		l.other = &other;
		serve(&p);
	}
	measure(&p, &l, res);
	if (l.other)
		port_close(&other);
	else
		generator_close(l.gen);
	port_close(&p);
}

static void child_pingpong(const struct config *cfg)
{
	struct port p;

	port_open(&p, cfg, 1);
	set_flag(&shared->ready);
	while (!stopped())
		step_or_idle(&p);
	shared->child_verify = p.verify;
	port_close(&p);
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

		/* signed: what was given up may arrive after all */
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
	struct port p;
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

	/* Should the child fail, we would wait for its packets for ever. */
	signal(SIGCHLD, on_stop);
	if (cfg->ifname[1])
		child = start_child(cfg);
	pin(cfg->cpu[0]);
	port_open(&p, cfg, 0);
	if (child) {
		wait_flag(&shared->ready);
		set_flag(&shared->go);
	}
	if (cfg->in_flight)
		serve(&p);
	measure(&p, NULL, res);
	set_flag(&shared->stop);
	port_close(&p);
	if (child) {
		if (waitpid(child, &status, 0) < 0)
			err(1, "wait");
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			exit(1);	/* it has said why */
		res->verify.checked += shared->child_verify.checked;
		res->verify.lost += shared->child_verify.lost;
		res->verify.reordered += shared->child_verify.reordered;
		res->verify.corrupt += shared->child_verify.corrupt;
		res->verify.foreign += shared->child_verify.foreign;
	}
}
