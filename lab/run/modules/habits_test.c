// SPDX-License-Identifier: GPL-2.0
/* What the habits of AF_XDP's drivers do to V4's zero-copy mode, on the two ports of habits.c;
 * habits.sh says which test is for which habits. Where that tells more, an AF_XDP socket is
 * there for comparison.
 */
#include "netdev.h"
#include "xsk.h"
#include "zc_port.h"

#include <ifaddrs.h>

/* As in habits.c */
#define UNIT		64
#define DROP_EVERY	5

FIXTURE(habits) {
	struct zc a, b;
	char buf[BUF_SIZE];
};

FIXTURE_SETUP(habits)
{
	self->a.s.fd = -1;
	self->b.s.fd = -1;
	ports(_metadata);
	ASSERT_EQ(0, both_mtu(1500));
}

FIXTURE_TEARDOWN(habits)
{
	zc_close(&self->a);
	zc_close(&self->b);
}

static int open_both(struct _test_data_habits *self, const struct zc_cfg *b)
{
	struct zc_cfg cfg = { .ifname = if_a, .n = 1 };
	int err = port_open(&self->a, &cfg);

	return err ? err : port_open(&self->b, b);
}

/* Counters of v4b, as in ip -s */
static struct rtnl_link_stats link_stats(struct __test_metadata *_metadata)
{
	struct rtnl_link_stats stats = { 0 };
	struct ifaddrs *all, *addr;
	bool found = false;

	ASSERT_EQ(0, getifaddrs(&all));
	for (addr = all; addr && !found; addr = addr->ifa_next) {
		if (!addr->ifa_addr || addr->ifa_addr->sa_family != AF_PACKET ||
		    !addr->ifa_data || strcmp(addr->ifa_name, if_b))
			continue;
		memcpy(&stats, addr->ifa_data, sizeof(stats));
		found = true;
	}
	freeifaddrs(all);
	ASSERT_TRUE(found);
	return stats;
}

static void expect_back(struct __test_metadata *_metadata, struct zc *z)
{
	ASSERT_EQ(0, zc_set(z, 0));
	EXPECT_LE(0, zc_all_back(z, ECANCELED, WAIT_MS));
	EXPECT_TRUE(zc_books_closed(z));
}

/* An AF_XDP socket in zero-copy mode on v4b; returns the XDP program. */
static int open_xsk(struct __test_metadata *_metadata, struct xsk *x)
{
	int prog, map = bpf_map(BPF_MAP_TYPE_XSKMAP, 4, 1);
	const struct bpf_insn insns[] = {
		LOAD_MAP(1, map), LOAD_MAP_2,
		MOV_K(2, 0), MOV_K(3, XDP_PASS), CALL(BPF_FUNC_redirect_map),
		EXIT,
	};

	prog = bpf_load(BPF_PROG_TYPE_XDP, insns, ARRAY_SIZE(insns), BPF_F_XDP_HAS_FRAGS);
	EXPECT_LE(0, prog);
	EXPECT_EQ(0, xdp_attach_native(if_b, prog));
	EXPECT_EQ(0, xsk_open_mode(x, if_b, XDP_ZEROCOPY | XDP_USE_NEED_WAKEUP, 2048));
	EXPECT_EQ(0, bpf_set(map, 0, &x->fd));
	close(map);
	return prog;
}

static void close_xsk(struct xsk *x, int prog)
{
	close(x->fd);
	xdp_attach_native(if_b, -1);
	close(prog);
}

/* The driver has moved the packet to where V4 does not know it: it is dropped, and counted. */
TEST_F_TIMEOUT(habits, moved, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };
	unsigned int i, nr = 200, dropped;

	dropped = link_stats(_metadata).rx_dropped;
	ASSERT_EQ(0, open_both(self, &cfg));
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(0, zc_send_seq(&self->a, 200, i));
		ASSERT_TRUE(zc_reap_all(&self->a, WAIT_MS));
	}
	EXPECT_EQ(-EAGAIN, zc_recv(&self->b, self->buf, BUF_SIZE, QUIET_MS));
	EXPECT_LE(dropped + nr, link_stats(_metadata).rx_dropped);
	expect_back(_metadata, &self->b);
}

#define TWICE	"the driver has handed over a frame twice"

/* Number of such lines in the kernel's log since it was opened */
static unsigned int count_twice(int log)
{
	unsigned int n = 0;
	char buf[8192];
	ssize_t len;

	while ((len = read(log, buf, sizeof(buf) - 1)) > 0) {
		buf[len] = '\0';
		n += strstr(buf, if_b) && strstr(buf, TWICE);
	}
	return n;
}

static int open_log(struct __test_metadata *_metadata)
{
	int log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);

	ASSERT_LE(0, log);
	ASSERT_LE(0, lseek(log, 0, SEEK_END));
	return log;
}

/* The driver hands over a frame that it no longer has: the packet is dropped, counted, and
 * logged once.
 */
TEST_F_TIMEOUT(habits, twice, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };
	int log = open_log(_metadata);
	unsigned int dropped, i;

	dropped = link_stats(_metadata).rx_dropped;
	ASSERT_EQ(0, open_both(self, &cfg));
	for (i = 0; i < 2 * self->b.s.rx.size; i++) {
		ASSERT_EQ(0, zc_send_seq(&self->a, 200, i));
		ASSERT_TRUE(packet_ok(self->buf, zc_recv(&self->b, self->buf, BUF_SIZE, WAIT_MS),
				      200, i));
		ASSERT_EQ(++dropped, link_stats(_metadata).rx_dropped);
	}
	EXPECT_EQ(-EAGAIN, zc_recv(&self->b, self->buf, BUF_SIZE, QUIET_MS));
	EXPECT_EQ(1U, count_twice(log));
	close(log);
	expect_back(_metadata, &self->b);
}

/* Such a frame after others, which go back to the driver: without them, it would have too few.
 * The program keeps the frame, so that the driver cannot have got it again.
 */
TEST_F_TIMEOUT(habits, twice_in_packet, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };
	struct tpacket4_desc d;
	unsigned int dropped, i;
	uint64_t end;

	ASSERT_EQ(0, both_mtu(9000));
	dropped = link_stats(_metadata).rx_dropped;
	ASSERT_EQ(0, open_both(self, &cfg));
	for (i = 0; i < self->b.s.rx.size / 2; i++) {
		ASSERT_EQ(0, zc_send_seq(&self->a, 200, i));
		ASSERT_TRUE(zc_take_wait(&self->b, &self->b.s.rx, &d, WAIT_MS));
		EXPECT_EQ(200U, d.len);
		self->b.s.spare[self->b.s.nr_spare++] = d.idx;
		ASSERT_EQ(0, zc_send_seq(&self->a, 3000, i));
		dropped += 2;
		end = now_ms() + WAIT_MS;
		while (link_stats(_metadata).rx_dropped != dropped && now_ms() < end)
			;
		ASSERT_EQ(dropped, link_stats(_metadata).rx_dropped);
	}
	EXPECT_FALSE(zc_take_wait(&self->b, &self->b.s.rx, &d, QUIET_MS));
	zc_refill(&self->b);
	expect_back(_metadata, &self->b);
}

/* Named in the driver guide: no socket gets a queue pair. */
TEST_F_TIMEOUT(habits, not_supported, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };

	EXPECT_EQ(-EOPNOTSUPP, port_open(&self->b, &cfg));
	EXPECT_NE(0, run("ip link show %s | grep -w xdp", if_b));
	EXPECT_EQ(0U, xdp_features(if_b) & NETDEV_XDP_ACT_TP4_ZEROCOPY);
}

/* Why: a driver that mistakes the buffer gives wrong packets to AF_XDP, too. */
TEST_F_TIMEOUT(habits, wrong_buffer, 120)
{
	struct zc_cfg cfg = { .ifname = if_a, .n = 1 };
	unsigned int i, wrong = 0;
	struct xsk x;
	int prog;

	prog = open_xsk(_metadata, &x);
	ASSERT_EQ(0, port_open(&self->a, &cfg));
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, zc_send_seq(&self->a, 200, i));
		wrong += !packet_ok(self->buf, xsk_recv(&x, self->buf, WAIT_MS), 200, i);
	}
	EXPECT_LT(0U, wrong);
	close_xsk(&x, prog);
}

/* Parts of a packet that the driver takes for packets: here they are in AF_XDP's ring, too. */
TEST_F_TIMEOUT(habits, parts, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };
	struct xsk x;
	unsigned int i;
	int prog;

	ASSERT_EQ(0, open_both(self, &cfg));
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, zc_send_seq(&self->a, 1500, i));
		EXPECT_EQ(1024, zc_recv(&self->b, self->buf, BUF_SIZE, WAIT_MS));
		EXPECT_EQ(1500 - 1024, zc_recv(&self->b, self->buf, BUF_SIZE, WAIT_MS));
	}
	zc_close(&self->b);
	self->b.s.fd = -1;
	prog = open_xsk(_metadata, &x);
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, zc_send_seq(&self->a, 1500, i));
		EXPECT_EQ(1024, xsk_recv(&x, self->buf, WAIT_MS));
		EXPECT_EQ(1500 - 1024, xsk_recv(&x, self->buf, WAIT_MS));
	}
	close_xsk(&x, prog);
}

/* A driver that drops them loses the packet, and no other. */
TEST_F_TIMEOUT(habits, parts_dropped, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };
	unsigned int i;

	ASSERT_EQ(0, open_both(self, &cfg));
	for (i = 0; i < 400; i++) {
		ASSERT_EQ(0, zc_send_seq(&self->a, i & 1 ? 1500 : 1000, i));
		if (i & 1)
			continue;
		ASSERT_TRUE(packet_ok(self->buf, zc_recv(&self->b, self->buf, BUF_SIZE, WAIT_MS),
				      1000, i));
	}
	EXPECT_EQ(-EAGAIN, zc_recv(&self->b, self->buf, BUF_SIZE, QUIET_MS));
	expect_back(_metadata, &self->b);
}

/* The driver returns fewer packets than it takes. What it has returned is the program's, in
 * order and late; the rest is when the mode ends.
 */
TEST_F_TIMEOUT(habits, dropped_tx, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };
	unsigned int i, nr = 100, sent = nr - nr / DROP_EVERY;
	struct tpacket4_desc d;

	ASSERT_EQ(0, open_both(self, &cfg));
	for (i = 1; i <= nr; i++) {
		ASSERT_EQ(0, zc_put_seq(&self->a, 200, i));
		ASSERT_EQ(0, zc_kick(&self->a));
		if (i % DROP_EVERY)
			ASSERT_TRUE(packet_ok(self->buf, zc_recv(&self->b, self->buf, BUF_SIZE,
								 WAIT_MS), 200, i));
	}
	EXPECT_EQ(-EAGAIN, zc_recv(&self->b, self->buf, BUF_SIZE, QUIET_MS));
	while (self->a.s.tx.used < sent)
		ASSERT_TRUE(zc_take_wait(&self->a, &self->a.s.tx, &d, WAIT_MS));
	EXPECT_FALSE(zc_take_wait(&self->a, &self->a.s.tx, &d, QUIET_MS));
	ASSERT_EQ(0, zc_set(&self->a, 0));
	for (i = sent; i < nr; i++) {
		ASSERT_TRUE(zc_take_wait(&self->a, &self->a.s.tx, &d, WAIT_MS));
		EXPECT_EQ(ECANCELED, d.error);
	}
	EXPECT_EQ(0U, self->a.strays);
}

/* The driver returns packets that it has dropped, before those in flight. */
TEST_F_TIMEOUT(habits, early_tx, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };
	unsigned int i, round, got = 0;

	ASSERT_EQ(0, open_both(self, &cfg));
	for (round = 0; round < 20; round++) {
		for (i = 0; i < 40; i++)
			ASSERT_EQ(0, zc_put_seq(&self->a, 200, i));
		ASSERT_EQ(0, zc_kick(&self->a));
		ASSERT_TRUE(zc_reap_all(&self->a, WAIT_MS));
		while (zc_recv(&self->b, self->buf, BUF_SIZE, 0) > 0)
			got++;
	}
	EXPECT_LT(0U, got);
	EXPECT_TRUE(zc_books_balance(&self->a, NULL));
	expect_back(_metadata, &self->a);
	expect_back(_metadata, &self->b);
}

/* The driver takes as many frames as it wants, or none. */
TEST_F_TIMEOUT(habits, units, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1, .rx_empty = true };
	unsigned int i, n;

	ASSERT_EQ(0, open_both(self, &cfg));
	for (i = 0; i < UNIT - 1; i++)
		zc_rx_post(&self->b, i);
	ASSERT_EQ(0, zc_kick(&self->b));
	ASSERT_EQ(0, zc_send_seq(&self->a, 200, 0));
	EXPECT_EQ(-EAGAIN, zc_recv(&self->b, self->buf, BUF_SIZE, QUIET_MS));
	zc_rx_post(&self->b, i);
	ASSERT_EQ(0, zc_kick(&self->b));
	/* each frame is posted again, but the driver has to have all of them */
	for (n = 1; n < 5 * UNIT; n++) {
		ASSERT_EQ(0, zc_send_seq(&self->a, 200, n));
		ASSERT_TRUE(packet_ok(self->buf, zc_recv(&self->b, self->buf, BUF_SIZE, WAIT_MS),
				      200, n)) {
			TH_LOG("packet %u", n);
		}
		ASSERT_EQ(0, zc_kick(&self->b));
	}
	expect_back(_metadata, &self->b);
}

/* The driver fails after it has started the queue. Nobody else gets it, and all goes on. */
TEST_F_TIMEOUT(habits, fails, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };

	EXPECT_EQ(-EIO, port_open(&self->b, &cfg));
	EXPECT_NE(0, run("ip link show %s | grep -w xdp", if_b));
}

/* The queue does not stop: the frames that the device may write to do not come back. */
TEST_F_TIMEOUT(habits, stuck, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };

	ASSERT_EQ(0, port_open(&self->b, &cfg));
	ASSERT_EQ(0, zc_set(&self->b, 0));
	/* without a number, as the kernel does not know which frames these are */
	EXPECT_LT(0U, zc_held(&self->b));
	EXPECT_NE(0, run("ip link show %s | grep -w xdp", if_b));
}

#define PARAMETERS	"/sys/module/habits/parameters/"

static int in_flight(void)
{
	FILE *f = fopen(PARAMETERS "in_flight", "r");
	int n = -1;

	if (!f || fscanf(f, "%d", &n) != 1)
		n = -1;
	if (f)
		fclose(f);
	return n;
}

/* The driver does not wait until the device has stopped: the core does, before the program
 * gets its frames and may free them.
 */
TEST_F_TIMEOUT(habits, quiet, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };
	unsigned int i;

	for (i = 0; i < 5; i++) {
		ASSERT_EQ(0, port_open(&self->b, &cfg));
		EXPECT_EQ(0, in_flight());
		ASSERT_EQ(0, zc_set(&self->b, 0));
		EXPECT_EQ(0, in_flight());
		zc_close(&self->b);
		self->b.s.fd = -1;
	}
}

static void pass_both_ways(struct __test_metadata *_metadata, struct _test_data_habits *self)
{
	pass_one_by_one(_metadata, &self->a, &self->b, 200, 50);
	pass_one_by_one(_metadata, &self->b, &self->a, 200, 50);
}

/* The driver starts the queue only if there are frames when it is set up. */
TEST_F_TIMEOUT(habits, empty_at_first, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1, .rx_empty = true };
	uint64_t end = now_ms() + WAIT_MS;
	unsigned int i;
	int len;

	ASSERT_EQ(0, open_both(self, &cfg));
	for (i = 0; i < self->b.s.rx.size; i++)
		zc_rx_post(&self->b, i);
	ASSERT_EQ(0, zc_kick(&self->b));
	/* until the queue has been started again */
	do {
		ASSERT_EQ(0, zc_send_seq(&self->a, 200, 1));
		len = zc_recv(&self->b, self->buf, BUF_SIZE, 10);
	} while (len < 0 && now_ms() < end);
	ASSERT_TRUE(packet_ok(self->buf, len, 200, 1));
	while (zc_recv(&self->b, self->buf, BUF_SIZE, QUIET_MS) > 0)
		;
	pass_both_ways(_metadata, self);
	expect_back(_metadata, &self->b);
}

/* It does not ask for frames when it has used all of them, either. */
TEST_F_TIMEOUT(habits, ran_dry, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };
	uint64_t end = now_ms() + WAIT_MS;
	struct tpacket4_desc d;
	unsigned int i, size;
	int len;

	ASSERT_EQ(0, open_both(self, &cfg));
	size = self->b.s.rx.size;
	for (i = 0; i < size; i++) {
		ASSERT_EQ(0, zc_send_seq(&self->a, 200, i));
		ASSERT_TRUE(zc_reap_all(&self->a, WAIT_MS));
		ASSERT_TRUE(zc_take_wait(&self->b, &self->b.s.rx, &d, WAIT_MS));
		self->b.s.spare[self->b.s.nr_spare++] = d.idx;
	}
	/* lost */
	ASSERT_EQ(0, zc_send_seq(&self->a, 200, 0));
	zc_refill(&self->b);
	ASSERT_EQ(0, zc_kick(&self->b));
	do {
		ASSERT_EQ(0, zc_send_seq(&self->a, 200, 1));
		len = zc_recv(&self->b, self->buf, BUF_SIZE, 10);
	} while (len < 0 && now_ms() < end);
	ASSERT_LT(0, len);
	while (zc_recv(&self->b, self->buf, BUF_SIZE, QUIET_MS) > 0)
		;
	pass_both_ways(_metadata, self);
}

/* What became of packets that v4b was sent */
struct account {
	unsigned int sent, missed;
	struct tpacket_stats_v4 sum;
};

/* Send @n packets, each when the one before has been counted: once, by the socket or by the
 * port.
 */
static void send_counted(struct __test_metadata *_metadata, struct _test_data_habits *self,
			 struct account *acc, unsigned int n)
{
	const unsigned int before = link_stats(_metadata).rx_missed_errors - acc->missed;
	struct tpacket_stats_v4 st;
	uint64_t end;

	while (n--) {
		ASSERT_EQ(0, zc_send_seq(&self->a, 200, acc->sent++));
		ASSERT_TRUE(zc_reap_all(&self->a, WAIT_MS));
		end = now_ms() + WAIT_MS;
		do {
			ASSERT_EQ(0, pv4_stats(self->b.s.fd, &st));
			acc->sum.tp_packets += st.tp_packets;
			acc->sum.tp_drops += st.tp_drops;
			acc->sum.rx_no_desc += st.rx_no_desc;
			acc->sum.rx_ring_full += st.rx_ring_full;
			acc->sum.rx_invalid_descs += st.rx_invalid_descs;
			acc->missed = link_stats(_metadata).rx_missed_errors - before;
		} while (acc->sum.tp_packets + acc->missed < acc->sent && now_ms() < end);
		ASSERT_EQ(acc->sent, acc->sum.tp_packets + acc->missed);
	}
}

/* A packet for which there is no frame is lost, and counts once: by the port, or by the socket
 * if its ring keeps frames.
 */
TEST_F_TIMEOUT(habits, counted_once, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };
	unsigned int i, got, size;
	struct tpacket4_desc d;
	int keep;

	ASSERT_EQ(0, port_open(&self->a, &(struct zc_cfg){ .ifname = if_a, .n = 1 }));
	for (keep = 0; keep < 2; keep++) {
		struct account acc = { 0 };

		cfg.keep = keep;
		ASSERT_EQ(0, port_open(&self->b, &cfg));
		size = self->b.s.rx.size;
		send_counted(_metadata, self, &acc, size + 40);
		for (got = 0; zc_take(&self->b, &self->b.s.rx, &d); got++)
			self->b.s.spare[self->b.s.nr_spare++] = d.idx;
		/* These are no frames. */
		for (i = 0; i < 10; i++)
			zc_rx_post(&self->b, (__u64)self->b.s.frames + i);
		ASSERT_EQ(0, zc_kick(&self->b));
		send_counted(_metadata, self, &acc, 10);
		for (i = 0; i < 10; i++) {
			ASSERT_TRUE(zc_take_wait(&self->b, &self->b.s.rx, &d, WAIT_MS));
			EXPECT_EQ(EINVAL, d.error);
		}
		send_counted(_metadata, self, &acc, 1);

		EXPECT_EQ(got, acc.sum.tp_packets - acc.sum.tp_drops);
		EXPECT_EQ(10U, acc.sum.rx_invalid_descs);
		EXPECT_EQ(0U, acc.sum.rx_ring_full);
		if (keep) {
			EXPECT_EQ(0U, acc.missed);
			EXPECT_LE(51U, acc.sum.tp_drops);
			EXPECT_EQ(acc.sum.tp_drops, acc.sum.rx_no_desc);
		} else {
			EXPECT_EQ(size, got);
			EXPECT_EQ(0U, acc.sum.tp_drops);
			/* the times that the port found no frame */
			EXPECT_LT(0U, acc.sum.rx_no_desc);
		}
		zc_close(&self->b);
		self->b.s.fd = -1;
	}
}

/* netpoll calls the driver with interrupts disabled, when something is printed. That sends no
 * packets of a socket; they are sent by the next kick.
 */
TEST_F_TIMEOUT(habits, netpoll, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };
	unsigned int i;

	ASSERT_EQ(0, open_both(self, &cfg));
	for (i = 0; i < 100; i++) {
		ASSERT_EQ(0, zc_put_seq(&self->a, 200, i));
		ASSERT_EQ(0, write_file(PARAMETERS "netpoll", "1"));
		if (!i)
			EXPECT_EQ(-EAGAIN, zc_recv(&self->b, self->buf, BUF_SIZE, QUIET_MS));
		ASSERT_EQ(0, zc_kick(&self->a));
		ASSERT_TRUE(packet_ok(self->buf, zc_recv(&self->b, self->buf, BUF_SIZE, WAIT_MS),
				      200, i));
		ASSERT_TRUE(zc_reap_all(&self->a, WAIT_MS));
	}
	EXPECT_TRUE(zc_books_balance(&self->a, NULL));
}

/* A packet has all of its bytes, also those that the device strips. */
TEST_F_TIMEOUT(habits, tag_is_kept, 120)
{
	static const unsigned int lens[] = { 60, 500, 1500 };
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };
	int fd;

	ASSERT_EQ(0, run_ip("link add link %s name v4vlan type vlan id 7\n"
			    "link set v4vlan up\n", if_a));
	ASSERT_EQ(0, port_open(&self->b, &cfg));
	self->b.min_offset -= 4;
	fd = plain_listener(_metadata, "v4vlan");
	pass_tagged(_metadata, &self->b, fd, lens, ARRAY_SIZE(lens), 30);
	close(fd);
	run_ip("link del v4vlan\n");
}

static bool strips(const char *state)
{
	return !run("ethtool -k %s | grep 'rx-vlan-offload: %s'", if_b, state);
}

/* Only while a socket has a queue pair, as the user has set it before and after */
TEST_F_TIMEOUT(habits, stripping_is_off, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };

	EXPECT_TRUE(strips("on"));
	ASSERT_EQ(0, port_open(&self->b, &cfg));
	EXPECT_TRUE(strips("off"));
	run("ethtool -K %s rxvlan on", if_b);
	EXPECT_TRUE(strips("off"));
	ASSERT_EQ(0, zc_set(&self->b, 0));
	EXPECT_TRUE(strips("on"));
	run("ethtool -K %s rxvlan off", if_b);
	EXPECT_TRUE(strips("off"));
	ASSERT_EQ(0, zc_set(&self->b, 1));
	ASSERT_EQ(0, zc_set(&self->b, 0));
	EXPECT_TRUE(strips("off"));
	run("ethtool -K %s rxvlan on", if_b);
	EXPECT_TRUE(strips("on"));
}

TEST_HARNESS_MAIN
