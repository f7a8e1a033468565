// SPDX-License-Identifier: GPL-2.0
/* The soak test: state changes (edges) of devices and sockets, in random order,
 * under traffic in both directions, see soak.h; and the counters, which must add
 * up.
 *
 * Every CALM_EDGES edges there is a *calm*: the devices are up, and earlier packets
 * have arrived. Each packet sent then must arrive, and the statistics must match
 * the counts of the programs.
 */

#define _GNU_SOURCE
#include "soak.h"

#include "kmsg.h"
#include "net.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <glob.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define CALM_EDGES	20		/* edges between two checks of the counters */
#define CALM_PACKETS	100		/* less than a ring has slots */
#define CALM_LEN	1514		/* one frame each */

struct end *ends;

static struct {
	uint64_t seed;
	unsigned int seconds;
	unsigned int edges;		/* 0: until the time is over */
} opt = {
	.seed = 1,
	.seconds = 60,
};

static struct rnd r;
static int home, away;			/* network namespaces */
static bool ports;			/* hardware, not veth */
static bool by_af_xdp;			/* zero-copy mode by AF_XDP's interface */
static char reset_file[2][300];		/* written to request a reset of a port */
static int pass, pass_frags, drop;	/* XDP programs */
static bool zc[2];			/* the modes of the ends */
static bool in_group[2], has_member[2];	/* of their sockets */
static bool lost_frames[2];		/* a member of the same area has closed */
static uint32_t phase;
static unsigned int edges_done;
static uint64_t calm_packets;		/* that had to arrive, and did */

static bool __attribute__((format(printf, 1, 2))) failed(const char *fmt, ...)
{
	va_list ap;

	printf("not ok: soak: seed %llu, after %u edges: ",
	       (unsigned long long)opt.seed, edges_done);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
	return false;
}

/* ---- the ends ---- */

/* The state of an end, for messages */
static const char *state(int i)
{
	static char text[2][80];
	int nr = snprintf(text[i], sizeof(text[i]), "%s",
			  zc[i] ? "zero-copy" : "copy");

	if (in_group[i])
		snprintf(text[i] + nr, sizeof(text[i]) - nr,
			 ", fanout of type %d, %s", ends[i].fanout_type,
			 !has_member[i] ? "no member" :
			 ends[i].own_area ? "a member of its own area" :
					    "a member of the same area");
	return text[i];
}

static bool end_is_well(struct end *e)
{
	int status;

	if (__atomic_load_n(&e->why[0], __ATOMIC_ACQUIRE))
		return failed("%s (%s): %s", e->ifname, state(e->nr), e->why);
	if (e->pid > 0 && waitpid(e->pid, &status, WNOHANG) == e->pid) {
		e->pid = 0;
		return failed("%s: its process has ended: status %#x",
			      e->ifname, status);
	}
	return true;
}

/* Without @result, the command must succeed. */
static bool tell(struct end *e, enum command command, int *result)
{
	uint64_t stop = now_ms() + WAIT_MS;

	e->command = command;
	__atomic_store_n(&e->asked, e->asked + 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&e->done, __ATOMIC_ACQUIRE) != e->asked) {
		if (!end_is_well(e))
			return false;
		if (now_ms() > stop)
			return failed("%s: no answer to command %d", e->ifname,
				      command);
		usleep(200);
	}
	if (result)
		*result = e->result;
	else if (e->result)
		return failed("%s (%s): command %d: %s", e->ifname,
			      state(e->nr), command, strerror(-e->result));
	return end_is_well(e);
}

static bool start_end(struct end *e)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		end_main(e, opt.seed);
	e->pid = pid;
	return tell(e, CMD_OPEN, NULL);
}

static void set_max_len(uint32_t len)
{
	ends[0].max_len = len;
	ends[1].max_len = len;
}

/* In copy mode, packets of the other end may arrive later. */
static bool zc_on(int i)
{
	uint64_t stop = now_ms() + WAIT_MS;
	int err;

	/* It has a program of its own, and igb no packets of several frames. */
	if (by_af_xdp) {
		link_set_xdp(ends[i].ifname, -1, XDP_FLAGS_DRV_MODE);
		link_set_mtu(ends[i].ifname, 1500);
		link_set_mtu(ends[!i].ifname, 1500);
		set_max_len(1514);
	}
	do {
		if (!tell(&ends[i], CMD_ZC_ON, &err))
			return false;
	} while (err == -EBUSY && now_ms() < stop);
	if (err)
		return failed("%s: PACKET_ZEROCOPY: %s", ends[i].ifname,
			      strerror(-err));
	zc[i] = true;
	return true;
}

static bool zc_off(int i)
{
	zc[i] = false;
	lost_frames[i] = false;
	return tell(&ends[i], CMD_ZC_OFF, NULL);
}

static void forget_member(int i)
{
	in_group[i] = false;
	has_member[i] = false;
	lost_frames[i] = false;
}

/* A socket in a fanout group cannot be bound again. */
static bool reopen(int i)
{
	forget_member(i);
	return tell(&ends[i], CMD_CLOSE, NULL) && tell(&ends[i], CMD_OPEN, NULL);
}

/* Bound, in the previous mode */
static bool join(int i)
{
	if (in_group[i] && !reopen(i))
		return false;
	return tell(&ends[i], CMD_BIND, NULL) && (!zc[i] || zc_on(i));
}

/* ---- edges ---- */

static bool links_up(void)
{
	uint64_t stop = now_ms() + WAIT_MS;
	int i;

	for (i = 0; i < 2; i++)
		link_set_up(ends[i].ifname, true);
	for (i = 0; i < 2;) {
		if (link_is_running(ends[i].ifname) > 0)
			i++;
		else if (now_ms() > stop)
			return failed("%s has no carrier", ends[i].ifname);
		else
			usleep(1000);
	}
	return true;
}

static bool make_pair(void)
{
	int err = link_add_veth(ends[0].ifname, ends[1].ifname, 4);

	if (err)
		return failed("no veth pair: %s", strerror(-err));
	set_channels(ends[0].ifname, 1);
	set_channels(ends[1].ifname, 1);
	return links_up();
}

static void let_run(void)
{
	usleep(rnd(&r, one_in(&r, 4) ? 30000 : 3000));
}

static bool edge_down(int i)
{
	int err = link_set_up(ends[i].ifname, false);

	let_run();
	return err ? failed("down: %s", strerror(-err)) : links_up();
}

static bool edge_channels(int i)
{
	set_channels(ends[i].ifname, 1 + rnd(&r, 4));
	if (one_in(&r, 2))
		set_channels(ends[!i].ifname, 1 + rnd(&r, 4));
	return links_up();
}

static bool edge_ring_size(int i)
{
	/* CALM_PACKETS may arrive at once, while part of the ring is not refilled,
	 * and a bound pair keeps its size.
	 */
	set_ring_size(ends[i].ifname, 256 << rnd(&r, 2));
	return links_up();
}

static bool edge_mtu(int i)
{
	static const int mtus[] = { 1500, 1600, 3000, 8900 };
	int mtu = PICK(&r, mtus);

	/* Packets that are too long are returned with an error and counted. */
	if (link_set_mtu(ends[i].ifname, mtu) ||
	    link_set_mtu(ends[!i].ifname, mtu))
		mtu = 1500;
	set_max_len(mtu + 14);
	return links_up();
}

static bool edge_xdp(int i)
{
	const int some[] = { pass, pass_frags, pass_frags, drop, -1 };

	link_set_xdp(ends[i].ifname, PICK(&r, some), XDP_FLAGS_DRV_MODE);
	return links_up();
}

static bool edge_gro(int i)
{
	set_gro(ends[i].ifname, one_in(&r, 2));
	return true;
}

static bool edge_reset(int i)
{
	int err;

	if (access(reset_file[i], W_OK))
		return edge_down(i);
	err = write_file(reset_file[i], "pfr\n");
	if (err)
		return failed("reset by %s: %s", reset_file[i], strerror(-err));
	let_run();
	return links_up();
}

static bool edge_mode(int i)
{
	return zc[i] ? zc_off(i) : zc_on(i);
}

static bool edge_off_and_on(int i)
{
	return !zc[i] || (zc_off(i) && zc_on(i));
}

/* With frames in use, and moved back */
static bool edge_reopen(int i)
{
	return reopen(i) && join(i);
}

static bool edge_rebind(int i)
{
	bool was = zc[i];

	if (was && !zc_off(i))
		return false;
	zc[i] = was;
	return join(i);
}

static bool edge_kill(int i)
{
	struct end *e = &ends[i];
	int status;

	kill(e->pid, SIGKILL);
	if (waitpid(e->pid, &status, 0) != e->pid)
		return failed("%s does not die", e->ifname);
	end_lost_socket(e);
	forget_member(i);
	e->done = e->asked;
	return start_end(e) && join(i);
}

/* Another socket joins a fanout group with that of the end, which in zero-copy
 * mode feeds it; or the other socket closes.
 */
static bool edge_member(int i)
{
	static const int types[] = {
		PACKET_FANOUT_LB, PACKET_FANOUT_HASH, PACKET_FANOUT_RND,
		PACKET_FANOUT_QM, PACKET_FANOUT_CPU, PACKET_FANOUT_ROLLOVER,
	};
	bool was = zc[i];

	if (has_member[i]) {
		has_member[i] = false;
		lost_frames[i] = !ends[i].own_area;
		return tell(&ends[i], CMD_MEMBER_CLOSE, NULL);
	}
	/* Only a socket in copy mode can join. */
	if (was && (!in_group[i] || lost_frames[i]) && !zc_off(i))
		return false;
	/* Leaving the mode tells which frames are lost. */
	if (lost_frames[i] && !(zc_on(i) && zc_off(i)))
		return false;
	/* The type of a group stays. */
	if (!in_group[i])
		ends[i].fanout_type = PICK(&r, types);
	ends[i].own_area = one_in(&r, 2);
	if (!tell(&ends[i], CMD_MEMBER_OPEN, NULL))
		return false;
	in_group[i] = true;
	has_member[i] = true;
	return zc[i] == was || zc_on(i);
}

static bool gone(int i)
{
	return !zc[i] || tell(&ends[i], CMD_GONE, NULL);
}

static bool edge_netns(int i)
{
	int err;

	if (!tell(&ends[i], CMD_HOLD, NULL))
		return false;
	err = link_set_netns(ends[i].ifname, away);
	if (err)
		return failed("netns move: %s", strerror(-err));
	let_run();
	if (setns(away, CLONE_NEWNET))
		return failed("setns");
	link_set_up(ends[i].ifname, one_in(&r, 2));
	err = link_set_netns(ends[i].ifname, home);
	if (setns(home, CLONE_NEWNET) || err)
		return failed("netns move back: %s", strerror(-err));
	/* It has lost its ring size, but not its queues. */
	return links_up() && gone(i) && join(i);
}

static bool edge_unregister(int i)
{
	int err;

	if (ports)
		return edge_netns(i);
	if (!tell(&ends[0], CMD_HOLD, NULL) || !tell(&ends[1], CMD_HOLD, NULL))
		return false;
	err = link_del(ends[i].ifname);
	if (err)
		return failed("delete: %s", strerror(-err));
	let_run();
	set_max_len(1514);
	return make_pair() && gone(0) && gone(1) && join(0) && join(1);
}

static struct edge {
	const char *name;
	unsigned int weight;
	bool (*fn)(int i);
	unsigned long done;
} edges[] = {
	{ "down and up", 10, edge_down },
	{ "ethtool -L", 10, edge_channels },
	{ "ethtool -G", 3, edge_ring_size },
	{ "MTU", 8, edge_mtu },
	{ "XDP", 16, edge_xdp },
	{ "GRO", 4, edge_gro },
	{ "reset", 4, edge_reset },
	{ "PACKET_ZEROCOPY on or off", 12, edge_mode },
	{ "PACKET_ZEROCOPY off and on", 12, edge_off_and_on },
	{ "close and open", 8, edge_reopen },
	{ "bind again", 6, edge_rebind },
	{ "kill -9", 8, edge_kill },
	{ "fanout member", 16, edge_member },
	{ "netns move", 5, edge_netns },
	{ "unregister", 5, edge_unregister },
};

static bool do_edge(void)
{
	unsigned int sum = 0, n, i;
	int which;

	for (i = 0; i < ARRAY_SIZE(edges); i++)
		sum += edges[i].weight;
	n = rnd(&r, sum);
	for (i = 0; n >= edges[i].weight; i++)
		n -= edges[i].weight;
	which = rnd(&r, 2);
	kmsg_note("<6>soak: edge %u: %s of %s\n", edges_done, edges[i].name,
		  ends[which].ifname);
	if (!edges[i].fn(which)) {
		printf("that was edge %u: %s of %s\n", edges_done,
		       edges[i].name, ends[which].ifname);
		return false;
	}
	edges[i].done++;
	edges_done++;
	return end_is_well(&ends[0]) && end_is_well(&ends[1]);
}

/* ---- calm ---- */

static void send_on(bool on)
{
	int i;

	for (i = 0; i < 2; i++) {
		__atomic_store_n(&ends[i].quota, on ? UINT32_MAX : 0,
				 __ATOMIC_RELEASE);
		__atomic_store_n(&ends[i].tx_on, on, __ATOMIC_RELEASE);
	}
}

static void begin_phase(void)
{
	int i;

	phase++;
	for (i = 0; i < 2; i++) {
		ends[i].phase = phase;
		ends[i].in_phase = phase;
		__atomic_store_n(&ends[i].phase_nr, 0, __ATOMIC_RELEASE);
	}
}

/* True when @nr packets of the phase have arrived at the other end of @i. */
static bool arrive(int i, uint32_t nr, int ms)
{
	const struct end *to = &ends[!i];
	uint64_t stop = now_ms() + ms;

	while (__atomic_load_n(&to->phase_nr, __ATOMIC_ACQUIRE) < nr) {
		if (now_ms() > stop || ends[0].why[0] || ends[1].why[0])
			return false;
		usleep(500);
	}
	return true;
}

static void send_some(int i, uint32_t nr)
{
	__atomic_store_n(&ends[i].quota, nr, __ATOMIC_RELEASE);
	__atomic_store_n(&ends[i].tx_on, true, __ATOMIC_RELEASE);
}

/* Earlier packets arrive before this one. */
static bool flush(int i)
{
	uint64_t stop = now_ms() + WAIT_MS;

	do {
		send_some(i, 1);
		if (arrive(i, 1, 1000))
			return true;
	} while (now_ms() < stop && end_is_well(&ends[0]) &&
		 end_is_well(&ends[1]));
	return failed("from %s nothing arrives (%s to %s)", ends[i].ifname,
		      state(i), state(!i));
}

static bool calm_way(int i)
{
	struct books *from = &ends[i].books, *to = &ends[!i].books;
	uint64_t sent = from->sent[0], drops;

	begin_phase();
	if (!flush(i) || !tell(&ends[i], CMD_DRAIN, NULL))
		return false;
	begin_phase();
	sent = from->sent[0];
	drops = to->tp_drops;
	send_some(i, CALM_PACKETS);
	if (!arrive(i, CALM_PACKETS, WAIT_MS)) {
		if (!end_is_well(&ends[0]) || !end_is_well(&ends[1]))
			return false;
		tell(&ends[!i], CMD_SYNC, NULL);
		return failed("calm, %s (%s) to %s (%s): %u sent, %llu came back, %u arrived, %llu dropped without a frame",
			      ends[i].ifname, state(i), ends[!i].ifname,
			      state(!i),
			      CALM_PACKETS,
			      (unsigned long long)(from->sent[0] - sent),
			      ends[!i].phase_nr,
			      (unsigned long long)(to->tp_drops - drops));
	}
	calm_packets += CALM_PACKETS;
	return tell(&ends[i], CMD_DRAIN, NULL);
}

static bool check_statistics(struct end *e)
{
	const struct books *b = &e->books;

	if (!tell(e, CMD_SYNC, NULL))
		return false;
	if (e->here != e->here_stats)
		return failed("%s (%s): %llu packets received, PACKET_STATISTICS: %llu",
			      e->ifname, state(e->nr),
			      (unsigned long long)e->here,
			      (unsigned long long)e->here_stats);
	/* no_desc also counts how often a card had no frame. */
	if (b->tp_drops > b->ring_full + b->no_desc ||
	    (!ports && b->tp_drops != b->ring_full + b->no_desc))
		return failed("%s: tp_drops %llu, ring_full %llu, no_desc %llu",
			      e->ifname, (unsigned long long)b->tp_drops,
			      (unsigned long long)b->ring_full,
			      (unsigned long long)b->no_desc);
	return true;
}

static bool calm(void)
{
	uint32_t max_len = ends[0].max_len;
	int i, err;

	send_on(false);
	/* With a program, a veth needs a queue for each Tx queue of its peer. */
	for (i = 0; i < 2; i++)
		link_set_xdp(ends[i].ifname, -1, XDP_FLAGS_DRV_MODE);
	for (i = 0; i < 2; i++) {
		/* Packets of the stack go to the first queue. */
		err = set_channels(ends[i].ifname, 1);
		if (err)
			return failed("%s: one channel: %s", ends[i].ifname,
				      strerror(-err));
	}
	for (i = 0; i < 2; i++)
		if (one_in(&r, 2))
			link_set_xdp(ends[i].ifname, pass_frags,
				     XDP_FLAGS_DRV_MODE);
	if (!links_up())
		return false;
	set_max_len(CALM_LEN);
	for (i = 0; i < 2; i++)
		if (!tell(&ends[i], CMD_DRAIN, NULL))
			return false;
	if (!calm_way(0) || !calm_way(1) || !check_statistics(&ends[0]) ||
	    !check_statistics(&ends[1]))
		return false;
	set_max_len(max_len);
	send_on(true);
	return true;
}

/* ---- the end ---- */

static bool is_plausible(int i)
{
	const struct books *from = &ends[i].books, *to = &ends[!i].books;
	/* Some of these may have been sent. */
	uint64_t maybe = from->posted_lost + from->sent[ECANCELED] +
			 from->sent[ENETDOWN];

	if (to->received > from->sent[0] + maybe)
		return failed("%s has received %llu packets, of %llu sent and %llu that may have been",
			      ends[!i].ifname,
			      (unsigned long long)to->received,
			      (unsigned long long)from->sent[0],
			      (unsigned long long)maybe);
	return true;
}

/* All posted frames are returned when zero-copy mode ends. */
static bool settle(void)
{
	int i;

	send_on(false);
	for (i = 0; i < 2; i++)
		if (!zc[i] && !zc_on(i))
			return false;
	for (i = 0; i < 2; i++)
		if (!tell(&ends[i], CMD_DRAIN, NULL))
			return false;
	for (i = 0; i < 2; i++)
		if (!zc_off(i) || !tell(&ends[i], CMD_CLOSE, NULL))
			return false;
	return is_plausible(0) && is_plausible(1);
}

static void print_counts(const char *what, const uint64_t *counts)
{
	unsigned int i;

	printf("  %-28s", what);
	for (i = 0; i < NR_ERRNOS; i++)
		if (counts[i])
			printf(" %s %llu", i ? strerrorname_np(i) : "ok",
			       (unsigned long long)counts[i]);
	printf("\n");
}

static void print_books(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(edges); i++)
		printf("%-28s %8lu times\n", edges[i].name, edges[i].done);
	for (i = 0; i < 2; i++) {
		const struct books *b = &ends[i].books, *o = &ends[!i].books;
		const struct {
			const char *name;
			uint64_t nr;
		} lines[] = {
			{ "packets posted", b->posted },
			{ "  lost with their socket", b->posted_lost },
			{ "packets received", b->received },
			{ "  out of order", b->reordered },
			{ "  of somebody else", b->foreign },
			{ "PACKET_STATISTICS, packets", b->tp_packets },
			{ "  dropped, ring full", b->ring_full },
			{ "  dropped, no descriptor", b->no_desc },
			{ "frames lent to Tx", b->tx_lent },
			{ "  lost with their socket", b->tx_lost },
			{ "frames lent to Rx", b->rx_lent },
			{ "  lost with their socket", b->rx_lost },
		};
		unsigned int k;

		printf("%s:\n", ends[i].ifname);
		for (k = 0; k < ARRAY_SIZE(lines); k++)
			printf("  %-28s %llu\n", lines[k].name,
			       (unsigned long long)lines[k].nr);
		print_counts("packets back from Tx", b->sent);
		print_counts("frames back from Tx", b->tx_back);
		print_counts("frames back from Rx", b->rx_back);
		printf("  %-28s %lld\n", "sent, lost at an edge",
		       (long long)(b->sent[0] - o->received - o->tp_drops));
	}
}

/* ---- all of it ---- */

static void find_ports(void)
{
	unsigned int i;
	glob_t paths;

	if (glob("/sys/class/net/*/device", 0, NULL, &paths) ||
	    paths.gl_pathc < 2)
		return;
	ports = true;
	for (i = 0; i < 2; i++) {
		char link[256] = "", *path = paths.gl_pathv[i];
		char *name = path + strlen("/sys/class/net/");

		if (readlink(path, link, sizeof(link) - 1) < 0)
			continue;
		snprintf(reset_file[i], sizeof(reset_file[i]),
			 "/sys/kernel/debug/i40e/%s/command",
			 strrchr(link, '/') + 1);
		name[strcspn(name, "/")] = 0;
		link_set_up(name, false);
		if (link_rename(name, ends[i].ifname) ||
		    link_set_netns(ends[i].ifname, home))
			ports = false;
	}
	globfree(&paths);
}

/* A program that stays attached to a separate device. Otherwise, the kernel would
 * patch its XDP dispatcher with each first and last program, and software
 * emulation (QEMU before 10) can trap on code that is patched while another CPU
 * runs it.
 */
static int keep_prog(int prog)
{
	static int nr;
	char name[2][16];
	int err;

	snprintf(name[0], sizeof(name[0]), "keep%da", nr);
	snprintf(name[1], sizeof(name[1]), "keep%db", nr++);
	err = prog < 0 ? prog : link_add_veth(name[0], name[1], 1);
	err = err ? err : link_set_xdp(name[0], prog, XDP_FLAGS_DRV_MODE);
	return err ? err : prog;
}

static bool start(void)
{
	int err, i;

	ends = mmap(NULL, 2 * sizeof(*ends), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (ends == MAP_FAILED)
		return failed("no memory");
	for (i = 0; i < 2; i++) {
		snprintf(ends[i].ifname, sizeof(ends[i].ifname), "sk%d", i);
		ends[i].nr = i;
		zc[i] = true;
	}
	set_max_len(1514);
	/* Most edges wait for RCU. */
	write_file("/sys/kernel/rcu_expedited", "1");
	home = new_netns();
	away = new_netns();
	find_ports();
	if (home < 0 || away < 0 || setns(home, CLONE_NEWNET))
		return failed("no network namespace");
	/* Only packets of the test */
	write_file("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
	write_file("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
	if (ports) {
		set_channels("sk0", 1);
		set_channels("sk1", 1);
	}
	if (ports ? !links_up() : !make_pair())
		return false;
	pass = keep_prog(xdp_return(XDP_PASS, false));
	pass_frags = keep_prog(xdp_return(XDP_PASS, true));
	drop = keep_prog(xdp_return(XDP_DROP, true));
	if (pass < 0 || pass_frags < 0 || drop < 0)
		return failed("no XDP programs");
	if (!start_end(&ends[0]) || !start_end(&ends[1]) || !join(0) ||
	    !join(1))
		return false;
	err = link_set_xdp("sk0", pass, XDP_FLAGS_DRV_MODE |
					XDP_FLAGS_UPDATE_IF_NOEXIST);
	by_af_xdp = err == -EBUSY;
	if (!err)
		link_set_xdp("sk0", -1, XDP_FLAGS_DRV_MODE);
	return true;
}

static bool soak(void)
{
	uint64_t begun = now_ms(), told = begun;

	if (!start())
		return false;
	send_on(true);
	while (opt.edges ? edges_done < opt.edges :
	       now_ms() - begun < opt.seconds * 1000ULL) {
		if (!do_edge())
			return false;
		let_run();
		if (edges_done % CALM_EDGES == 0 && !calm())
			return false;
		if (kmsg_complains())
			return failed("the kernel has complained");
		if (now_ms() - told > 10000) {
			told = now_ms();
			printf("soak: %u edges, %llu and %llu packets received, %llu s\n",
			       edges_done,
			       (unsigned long long)ends[0].books.received,
			       (unsigned long long)ends[1].books.received,
			       (unsigned long long)(told - begun) / 1000);
			fflush(stdout);
		}
	}
	if (!calm() || !settle() || kmsg_complains())
		return false;
	print_books();
	printf("soak: %s, seed %llu, %u edges in %llu s; all of %llu packets arrived in calm, every frame came back once\n",
	       !ports ? "veth" : by_af_xdp ? "ports by AF_XDP's interface" :
	       "ports", (unsigned long long)opt.seed,
	       edges_done, (unsigned long long)(now_ms() - begun) / 1000,
	       (unsigned long long)calm_packets);
	return true;
}

int main(int argc, char **argv)
{
	bool ok;
	int c, i;

	while ((c = getopt(argc, argv, "s:t:e:h")) != -1) {
		switch (c) {
		case 's':
			opt.seed = strtoull(optarg, NULL, 0);
			break;
		case 't':
			opt.seconds = atoi(optarg);
			break;
		case 'e':
			opt.edges = atoi(optarg);
			break;
		default:
			printf("usage: soak [-s SEED] [-t SECONDS] [-e EDGES]\n"
			       "on two ports if the machine has them, else on veth\n");
			return c == 'h' ? 0 : 2;
		}
	}
	r = rnd_stream(opt.seed, 1, 0);
	if (kmsg_open())
		printf("no /dev/kmsg: splats will not be noticed here\n");
	ok = soak();
	for (i = 0; ends && i < 2; i++)
		if (ends[i].pid > 0)
			kill(ends[i].pid, SIGKILL);
	if (!ok && ends)
		print_books();
	return !ok;
}
