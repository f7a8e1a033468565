// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4: packets that are dropped, and packets that wait for room in the
 * device. The former are returned with an error and do not block others; the
 * latter stay posted.
 */
#include "task.h"

#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <sys/mount.h>

#define REFUSED		0x88b6		/* IEEE: also local experimental */

FIXTURE(refused) {
	struct pv4 tx, rx;		/* on if_a and if_b */
};

FIXTURE_VARIANT(refused) {
	unsigned int len;
};

FIXTURE_VARIANT_ADD(refused, short_packets) { .len = 100 };

FIXTURE_VARIANT_ADD(refused, long_packets) { .len = LONG_LEN };

FIXTURE_SETUP(refused)
{
	struct pv4_cfg tcfg = { .ifname = if_a, .tx_nr = pv4_min_descs() };
	struct pv4_cfg rcfg = { .ifname = if_b, .rx_nr = pv4_min_descs() };

	pv4_net_setup(_metadata);
	ASSERT_EQ(0, pv4_open(&self->tx, &tcfg));
	ASSERT_EQ(0, pv4_open(&self->rx, &rcfg));
	pkt_len = variant->len;
}

FIXTURE_TEARDOWN(refused)
{
	/* A qdisc holds its packets, they hold the socket, and it holds the
	 * network namespace with the device and its qdisc.
	 */
	set_qdisc("pfifo");
	pv4_close(&self->tx);
	pv4_close(&self->rx);
}

/* An egress rule that drops only the packets of this type */
static int drop_on_egress(const char *ifname, int type)
{
	char cmd[256];

	snprintf(cmd, sizeof(cmd), "qdisc add dev %s clsact\n"
		 "filter add dev %s egress protocol 0x%x matchall action drop\n",
		 ifname, ifname, type);
	return net_batch("tc", cmd);
}

static int post_typed(struct pv4 *s, uint32_t seq, int type)
{
	char pkt[MAX_PKT];

	fill_packet(pkt, pkt_len, seq);
	pkt[12] = type >> 8;
	pkt[13] = type;
	return pv4_put(s, pkt, pkt_len, 2048, 0);
}

/* Kicks until all posted packets are returned; returns false if they are not.
 */
static bool kick_all_back(struct pv4 *s)
{
	uint64_t end = now_ms() + WAIT_MS;

	while (pv4_reap(s), s->tx.used != s->tx.avail) {
		pv4_kick(s, MSG_DONTWAIT);
		if (now_ms() > end)
			return false;
		usleep(1000);
	}
	return true;
}

/* Every third packet of a batch and more is dropped by the rule. */
TEST_F_TIMEOUT(refused, egress_drop, 120)
{
	unsigned int i, nr = 100, good = 0, bad = 0;
	struct pv4 *tx = &self->tx;
	struct tpacket4_desc d;
	int n, sum = 0;

	ASSERT_EQ(0, drop_on_egress(if_a, REFUSED));
	for (i = 0; i < nr; i++)
		ASSERT_EQ(0, post_typed(tx, i, i % 3 ? ETH_P_TEST : REFUSED));
	n = pv4_kick(tx, 0);
	EXPECT_LT(0, n) {
		TH_LOG("kick: %d", n);
	}
	/* in ring order, as no packet is in flight for long */
	for (i = 0; i < nr; i++) {
		ASSERT_TRUE(pv4_take_wait(tx, &tx->tx, &d, WAIT_MS)) {
			TH_LOG("only %u of %u were returned", i, nr);
		}
		good += !d.error;
		bad += d.error == ENOBUFS;
		sum += d.error ? 0 : pkt_len;
	}
	EXPECT_EQ(nr / 3 + 1, bad);
	EXPECT_EQ(nr - nr / 3 - 1, good);
	for (i = 0; i < nr; i++) {
		if (i % 3)
			ASSERT_EQ((int)i, recv_one(&self->rx, WAIT_MS));
	}
	/* none of them is tried again once the rule is gone */
	ASSERT_EQ(0, net_batch("tc", "qdisc del dev v4a clsact\n"));
	EXPECT_EQ(0, pv4_kick(tx, 0));
	EXPECT_EQ(-1, recv_one(&self->rx, QUIET_MS));
}

/* All of them, repeatedly: the ring does not block. */
TEST_F_TIMEOUT(refused, egress_drops_all, 120)
{
	struct pv4 *tx = &self->tx;
	unsigned int i, k, size = tx->tx.size;

	ASSERT_EQ(0, drop_on_egress(if_a, ETH_P_TEST));
	for (k = 0; k < 4; k++) {
		for (i = 0; i < size; i++)
			ASSERT_EQ(0, post_one(tx, i));
		ASSERT_TRUE(kick_all_back(tx));
		EXPECT_EQ((k + 1) * size, tx->errors[ENOBUFS]);
		EXPECT_EQ(0U, tx->errors[0]);
	}
	ASSERT_EQ(0, net_batch("tc", "qdisc del dev v4a clsact\n"));
	for (i = 0; i < size; i++)
		ASSERT_EQ(0, post_one(tx, 1000 + i));
	EXPECT_EQ((int)(size * pkt_len), pv4_kick(tx, 0));
	EXPECT_TRUE(pv4_reap_all(tx, WAIT_MS));
	EXPECT_EQ(size, tx->errors[0]);
	for (i = 0; i < size; i++)
		ASSERT_EQ(1000 + (int)i, recv_one(&self->rx, WAIT_MS));
	EXPECT_EQ(-1, recv_one(&self->rx, QUIET_MS));
}

/* A blocking send of packets that the rule drops returns. */
TEST_F_TIMEOUT(refused, blocking_send_returns, 120)
{
	struct pv4 *tx = &self->tx;
	pid_t pid;
	int i;

	ASSERT_EQ(0, drop_on_egress(if_a, ETH_P_TEST));
	for (i = 0; i < 40; i++)
		ASSERT_EQ(0, post_one(tx, i));
	pid = pv4_fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		pv4_kick(tx, 0);
		_exit(0);
	}
	EXPECT_EQ(0, exit_within(pid, WAIT_MS));
	EXPECT_EQ(40U, pv4_reap(tx));
	EXPECT_EQ(40U, tx->errors[ENOBUFS]);
}

/* A device without a carrier drops packets, too. */
TEST_F_TIMEOUT(refused, no_carrier, 120)
{
	struct pv4 *tx = &self->tx;
	int i;

	ASSERT_EQ(0, pv4_setint(tx->fd, PACKET_QDISC_BYPASS, 1));
	ASSERT_EQ(0, set_up(if_b, false));
	for (i = 0; i < 40; i++)
		ASSERT_EQ(0, post_one(tx, i));
	pv4_kick(tx, MSG_DONTWAIT);
	EXPECT_EQ(40U, pv4_reap(tx));
	EXPECT_EQ(40U, tx->errors[ENOBUFS]);
	ASSERT_EQ(0, set_up(if_b, true));
	ASSERT_EQ(0, wait_for_carrier(if_a));
	ASSERT_EQ(0, wait_for_carrier(if_b));
	for (i = 100; i < 110; i++)
		ASSERT_EQ(0, post_one(tx, i));
	EXPECT_EQ(10 * (int)pkt_len, pv4_kick(tx, 0));
	for (i = 100; i < 110; i++)
		EXPECT_EQ(i, recv_one(&self->rx, WAIT_MS));
	EXPECT_EQ(-1, recv_one(&self->rx, QUIET_MS));
}

/* With a qdisc: depending on timing, the qdisc, the driver, or the stack after
 * the qdisc was removed drops them. They are returned in any case.
 */
TEST_F_TIMEOUT(refused, peer_down, 120)
{
	struct pv4 *tx = &self->tx;
	int i, round;

	for (round = 0; round < 3; round++) {
		ASSERT_EQ(0, set_up(if_b, false));
		for (i = 0; i < 40; i++)
			ASSERT_EQ(0, post_one(tx, i));
		pv4_kick(tx, MSG_DONTWAIT);
		EXPECT_TRUE(pv4_reap_all(tx, QUIET_MS));
		/* and so are those that are sent a second later */
		if (round == 2) {
			unsigned int told = tx->errors[ENOBUFS];

			sleep(2);
			for (i = 0; i < 40; i++)
				ASSERT_EQ(0, post_one(tx, i));
			pv4_kick(tx, MSG_DONTWAIT);
			EXPECT_TRUE(pv4_reap_all(tx, QUIET_MS));
			EXPECT_EQ(told + 40, tx->errors[ENOBUFS]);
		}
		ASSERT_EQ(0, set_up(if_b, true));
		ASSERT_EQ(0, wait_for_carrier(if_a));
		ASSERT_EQ(0, wait_for_carrier(if_b));
		ASSERT_EQ(0, post_one(tx, 100 + round));
		EXPECT_EQ((int)pkt_len, pv4_kick(tx, 0));
		EXPECT_EQ(100 + round, recv_one(&self->rx, WAIT_MS));
		EXPECT_TRUE(pv4_reap_all(tx, WAIT_MS));
	}
	EXPECT_EQ(-1, recv_one(&self->rx, QUIET_MS));
}

/* Packets of others fill the qdisc: ours are returned at once, by either kind of
 * send, and do not wait for those.
 */
TEST_F_TIMEOUT(refused, queue_full_of_others, 120)
{
	int plain = plain_socket(_metadata, if_a, 0);
	struct pv4 *tx = &self->tx;
	char pkt[100];
	int i;

	ASSERT_EQ(0, drop_on_egress(if_a, REFUSED));
	ASSERT_EQ(0, set_qdisc("netem limit 4 delay 200s"));
	fill_packet(pkt, sizeof(pkt), 0);
	for (i = 0; i < 4; i++)
		ASSERT_EQ((int)sizeof(pkt), send(plain, pkt, sizeof(pkt), 0));
	for (i = 0; i < 20; i++)
		ASSERT_EQ(0, post_typed(tx, i, i % 2 ? ETH_P_TEST : REFUSED));
	EXPECT_EQ(0, pv4_kick(tx, MSG_DONTWAIT));
	EXPECT_EQ(20U, pv4_reap(tx));
	for (i = 0; i < 20; i++)
		ASSERT_EQ(0, post_one(tx, i));
	EXPECT_EQ(0, pv4_kick(tx, 0));
	EXPECT_EQ(20U, pv4_reap(tx));
	EXPECT_EQ(40U, tx->errors[ENOBUFS]);
	/* none of them is sent when there is room */
	ASSERT_EQ(0, set_qdisc("pfifo limit 1000"));
	EXPECT_EQ(0, pv4_kick(tx, MSG_DONTWAIT));
	EXPECT_EQ(-1, recv_one(&self->rx, QUIET_MS));
	close(plain);
}

/* A packet that is too long for the qdisc is refused and does not wait. */
TEST_F_TIMEOUT(refused, too_long_for_qdisc, 120)
{
	struct pv4 *tx = &self->tx;
	int i;

	ASSERT_EQ(0, set_qdisc("tbf rate 1gbit burst 3000 limit 1000000"));
	for (i = 0; i < 20; i++) {
		pkt_len = i % 2 ? variant->len : 5000;
		ASSERT_EQ(0, post_one(tx, i));
	}
	ASSERT_TRUE(kick_all_back(tx)) {
		TH_LOG("%u are still posted", tx->tx.avail - tx->tx.used);
	}
	/* a packet of 5000 bytes has three frames */
	EXPECT_EQ(30U, tx->errors[ENOBUFS]);
	EXPECT_EQ(10U, tx->errors[0]);
	pkt_len = variant->len;
	for (i = 1; i < 20; i += 2)
		EXPECT_EQ(i, recv_one(&self->rx, WAIT_MS));
}

/* ---- what has to wait ---- */

#define N_AX25		5		/* asm-generic: linux/tty.h */
#define AX25_DEV	"ax0"

/*
 * An amateur radio device, in the first network namespace. It takes one packet,
 * and is full until that has been read from the modem. No other kind that needs
 * no hardware has a link-layer header of variable length.
 */
FIXTURE(modem) {
	struct pv4 tx;
	int master, tty;
};

/* Returns whether there is such a device, made from a pty. */
static bool open_ax25(struct _test_data_modem *m)
{
	int n = N_AX25;

	m->master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
	m->tty = -1;
	if (m->master >= 0 && !grantpt(m->master) && !unlockpt(m->master))
		m->tty = open(ptsname(m->master), O_RDWR | O_NOCTTY);
	return m->tty >= 0 && !ioctl(m->tty, TIOCSETD, &n) &&
	       if_nametoindex(AX25_DEV);
}

FIXTURE_SETUP(modem)
{
	struct pv4_cfg cfg = { .tx_nr = pv4_min_descs() };

	if (!open_ax25(self))
		SKIP(return, "no AX.25 device: needs CONFIG_AX25, CONFIG_MKISS");
	ASSERT_EQ(0, set_up(AX25_DEV, true));
	ASSERT_EQ(0, pv4_open(&self->tx, &cfg));
	ASSERT_EQ(0, pv4_bind(self->tx.fd, AX25_DEV, ETH_P_TEST));
	pkt_len = 100;
}

FIXTURE_TEARDOWN(modem)
{
	pv4_close(&self->tx);
	close(self->tty);
	close(self->master);
}

/* Reads the packet that was sent: then the device has room for another one. */
static void drain_modem(int modem)
{
	char buf[512];

	poll_for(modem, POLLIN, WAIT_MS);
	while (read(modem, buf, sizeof(buf)) > 0)
		;
}

/* Posts @nr packets for the full device, of which it takes the first. */
static void fill_modem(struct __test_metadata *_metadata, struct pv4 *tx,
		       unsigned int nr)
{
	unsigned int i;

	ASSERT_EQ(0, pv4_setint(tx->fd, PACKET_QDISC_BYPASS, 1));
	for (i = 0; i < nr; i++)
		ASSERT_EQ(0, post_one(tx, i));
	ASSERT_EQ((int)pkt_len, pv4_kick(tx, MSG_DONTWAIT));
}

/* The packets stay posted until the device has room, in order. */
TEST_F(modem, full_device_waits)
{
	struct tpacket_stats_v4 st;
	struct pv4 *tx = &self->tx;
	unsigned int i, n = 10;

	fill_modem(_metadata, tx, n);
	EXPECT_EQ(1U, pv4_reap(tx));
	EXPECT_EQ(-ENOBUFS, pv4_kick(tx, MSG_DONTWAIT));
	/* a blocking send cannot wait for the device */
	EXPECT_EQ(-ENOBUFS, pv4_kick(tx, 0));
	EXPECT_EQ(0U, pv4_reap(tx));
	ASSERT_EQ(0, pv4_stats(tx->fd, &st));
	EXPECT_EQ(3U, st.tx_ring_full);
	for (i = 1; i < n; i++) {
		drain_modem(self->master);
		EXPECT_EQ((int)pkt_len, pv4_kick(tx, MSG_DONTWAIT));
		EXPECT_EQ(1U, pv4_reap(tx));
	}
	EXPECT_EQ(n, tx->errors[0]);
}

/* With PACKET_LOSS, they are dropped and reported. */
TEST_F(modem, packet_loss)
{
	struct pv4 *tx = &self->tx;
	struct tpacket4_desc d;
	int one = 1;

	/* as for V1 to V3, not while there is a ring */
	EXPECT_EQ(-EBUSY, pv4_setint(tx->fd, PACKET_LOSS, one));
	munmap(tx->map, tx->map_len);
	ASSERT_EQ(0, pv4_set_ring(tx->fd, PACKET_TX_RING, -1, 0));
	ASSERT_EQ(0, pv4_setint(tx->fd, PACKET_LOSS, one));
	ASSERT_EQ(0, pv4_set_ring(tx->fd, PACKET_TX_RING, tx->fd,
				  pv4_min_descs()));
	ASSERT_EQ(0, pv4_map_rings(tx, 0, pv4_min_descs()));

	fill_modem(_metadata, tx, 10);
	EXPECT_EQ(10U, pv4_reap(tx));
	EXPECT_EQ(1U, tx->errors[0]);
	EXPECT_EQ(9U, tx->errors[ENOBUFS]);
	/* an invalid descriptor gets its own error all the same */
	d = (struct tpacket4_desc){ .idx = 1 << 20, .len = 60 };
	pv4_post(&tx->tx, &d, 1);
	EXPECT_EQ(0, pv4_kick(tx, MSG_DONTWAIT));
	ASSERT_TRUE(pv4_take(&tx->tx, &d));
	EXPECT_EQ(EINVAL, d.error);
}

/* The number of the next timestamp in the error queue, or -errno */
static int next_stamp(int fd)
{
	char control[512];
	struct msghdr msg = {
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;

	if (recvmsg(fd, &msg, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
		return -errno;
	for (c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		struct sock_extended_err err;

		if (c->cmsg_level != SOL_PACKET ||
		    c->cmsg_type != PACKET_TX_TIMESTAMP)
			continue;
		memcpy(&err, CMSG_DATA(c), sizeof(err));
		return err.ee_data;
	}
	return -ENOMSG;
}

/* Packets are built again at each kick. Their timestamps are numbered as the
 * packets are.
 */
TEST_F(modem, timestamps_count_packets)
{
	int on = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE |
		 SOF_TIMESTAMPING_OPT_ID | SOF_TIMESTAMPING_OPT_TSONLY;
	struct sockaddr_ll ll = { .sll_family = AF_PACKET };
	struct pv4 *tx = &self->tx;
	int i, n = 40;

	ASSERT_EQ(0, add_pair("v4c", "v4d", MTU));
	ll.sll_ifindex = if_nametoindex("v4c");
	ASSERT_EQ(0, setsockopt(tx->fd, SOL_SOCKET, SO_TIMESTAMPING, &on,
				sizeof(on)));
	fill_modem(_metadata, tx, n);
	for (i = 0; i < 5; i++)
		EXPECT_EQ(-ENOBUFS, pv4_kick(tx, MSG_DONTWAIT));
	/* The modem takes no timestamps; let the other device send the rest. */
	EXPECT_EQ((n - 1) * (int)pkt_len,
		  sendto(tx->fd, NULL, 0, 0, (struct sockaddr *)&ll,
			 sizeof(ll)));
	for (i = 1; i < n; i++)
		ASSERT_EQ(i, next_stamp(tx->fd));
	EXPECT_EQ(-EAGAIN, next_stamp(tx->fd));
	EXPECT_EQ(0, run_ip("link del v4c"));
}

/* ---- what a try costs ---- */

#define TRACEFS	"/sys/kernel/tracing"

/* Returns why skb events cannot be traced, or NULL. */
static const char *no_events(void)
{
	/* The mount ends with this process. */
	if (access(TRACEFS "/events/skb", F_OK) &&
	    (unshare(CLONE_NEWNS) ||
	     mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	     mount("none", TRACEFS, "tracefs", 0, NULL)))
		return "no tracefs: needs CONFIG_ENABLE_DEFAULT_TRACERS";
	return access(TRACEFS "/events/skb/kfree_skb", F_OK) ?
	       "no tracepoint skb:kfree_skb" : NULL;
}

/* Reads @file in tracefs to @buf; returns its length or -errno. */
static ssize_t read_trace(const char *file, char *buf, size_t size)
{
	char path[256];
	ssize_t n, len = 0;
	int fd;

	snprintf(path, sizeof(path), TRACEFS "/%s", file);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return -errno;
	while ((n = read(fd, buf + len, size - 1 - len)) > 0)
		len += n;
	close(fd);
	buf[len] = 0;
	return len;
}

/* Empties @file, which writing an empty text to it does not. */
static int clear_trace(const char *file)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), TRACEFS "/%s", file);
	fd = open(path, O_WRONLY | O_TRUNC);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int write_trace(const char *file, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), TRACEFS "/%s", file);
	return write_file(path, text);
}

/* A full device, more than a batch behind it, and ten kicks. Returns the number
 * of events of this kind with @text.
 */
static unsigned int events_of_ten_tries(struct __test_metadata *_metadata,
					struct pv4 *tx, const char *event,
					const char *text)
{
	static char trace[1 << 18];
	char enable[64], pid[16], head[32], *p;
	unsigned int i, n = 0;

	fill_modem(_metadata, tx, 36);
	snprintf(pid, sizeof(pid), "%d", getpid());
	snprintf(head, sizeof(head), "%s:", event);
	snprintf(enable, sizeof(enable), "events/skb/%s/enable", event);
	/* events of earlier tests */
	ASSERT_EQ(0, clear_trace("trace"));
	ASSERT_EQ(0, write_trace("set_event_pid", pid));
	EXPECT_EQ(0, write_trace(enable, "1"));
	for (i = 0; i < 10; i++)
		EXPECT_EQ(-ENOBUFS, pv4_kick(tx, MSG_DONTWAIT));
	EXPECT_EQ(0, write_trace(enable, "0"));
	EXPECT_EQ(0, clear_trace("set_event_pid"));
	ASSERT_LT(0, read_trace("trace", trace, sizeof(trace)));
	for (p = strtok(trace, "\n"); p; p = strtok(NULL, "\n"))
		n += strstr(p, head) && strstr(p, text);
	return n;
}

/* A full device costs at most one packet per kick. The packets that wait behind
 * it are not reported as drops.
 */
TEST_F(modem, waiting_is_no_drop)
{
	unsigned int drops;
	char ours[32];

	if (no_events())
		SKIP(return, "%s", no_events());
	/* An interrupt may free another packet. */
	snprintf(ours, sizeof(ours), " protocol=%d ", ETH_P_TEST);
	drops = events_of_ten_tries(_metadata, &self->tx, "kfree_skb", ours);
	EXPECT_GE(10U, drops) {
		TH_LOG("10 kicks, %u events", drops);
	}
}

/* Nor are the packets behind it built and freed at each kick. */
TEST_F(modem, waiting_packets_are_not_built)
{
	unsigned int freed;

	if (no_events())
		SKIP(return, "%s", no_events());
	freed = events_of_ten_tries(_metadata, &self->tx, "consume_skb", "");
	EXPECT_GE(10U, freed) {
		TH_LOG("10 kicks, %u packets freed", freed);
	}
}

/* ---- headers of varying length ---- */

/* V4 may send what a plain send of as many bytes may. */
TEST_F(modem, short_header)
{
	int plain = plain_socket(_metadata, AX25_DEV, 0), len, got, want;
	char pkt[128] = { 1 };		/* a command to the modem */
	struct pv4 *tx = &self->tx;
	struct tpacket4_desc d;

	for (len = 1; len < (int)sizeof(pkt); len += 7) {
		want = send(plain, pkt, len, 0) == len ? len : -errno;
		if (want > 0)
			drain_modem(self->master);
		ASSERT_EQ(0, pv4_put(tx, pkt, len, 2048, 0));
		got = pv4_kick(tx, MSG_DONTWAIT);
		EXPECT_EQ(want < 0 ? 0 : len, got) {
			TH_LOG("%d bytes, send() returns %d", len, want);
		}
		if (got > 0)
			drain_modem(self->master);
		if (want > 0)
			continue;
		ASSERT_TRUE(pv4_take_wait(tx, &tx->tx, &d, WAIT_MS));
		EXPECT_EQ(-want, d.error);
	}
	close(plain);
}

TEST_HARNESS_MAIN
