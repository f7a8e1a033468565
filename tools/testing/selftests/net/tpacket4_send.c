// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4: waiting and sending. poll and epoll, blocking and non-blocking
 * sends, and queues that are full.
 */
#include "tpacket4.h"

#include <linux/if_tun.h>
#include <sys/epoll.h>

FIXTURE(send) {
	struct tp4 tx, rx;
};

FIXTURE_SETUP(send)
{
	struct tp4_cfg tcfg = { .ifname = if_a, .tx_nr = tp4_min_descs() };
	struct tp4_cfg rcfg = { .ifname = if_b, .rx_nr = tp4_min_descs() };

	tp4_net_setup(_metadata);
	ASSERT_EQ(0, tp4_open(&self->tx, &tcfg));
	ASSERT_EQ(0, tp4_open(&self->rx, &rcfg));
}

FIXTURE_TEARDOWN(send)
{
	tp4_close(&self->tx);
	tp4_close(&self->rx);
}

/* ---- poll ---- */

static int poll_for(int fd, int events, int ms)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, ms) < 0 ? -errno : p.revents;
}

/* POLLIN as long as the last slot that came back is not posted again. */
TEST_F(send, pollin)
{
	struct tpacket4_desc d[2];
	int i;

	EXPECT_EQ(0, poll_for(self->rx.fd, POLLIN, 0));
	for (i = 0; i < 600; i++) {
		ASSERT_EQ(100, send_one(&self->tx, 2 * i));
		ASSERT_EQ(100, send_one(&self->tx, 2 * i + 1));
		ASSERT_TRUE(tp4_take_wait(&self->rx, &self->rx.rx, &d[0],
					  WAIT_MS));
		ASSERT_TRUE(tp4_take_wait(&self->rx, &self->rx.rx, &d[1],
					  WAIT_MS));
		ASSERT_EQ(POLLIN, poll_for(self->rx.fd, POLLIN, 0));
		tp4_rx_post(&self->rx, d[0].idx);
		ASSERT_EQ(POLLIN, poll_for(self->rx.fd, POLLIN, 0));
		tp4_rx_post(&self->rx, d[1].idx);
		ASSERT_EQ(0, poll_for(self->rx.fd, POLLIN, 0));
	}
}

/* POLLOUT as long as a slot is free to post. */
TEST_F(send, pollout)
{
	unsigned int i, size = self->tx.tx.size;

	EXPECT_EQ(POLLOUT, poll_for(self->tx.fd, POLLOUT, 0));
	for (i = 0; i < size - 1; i++)
		ASSERT_EQ(0, post_one(&self->tx, i));
	EXPECT_EQ(POLLOUT, poll_for(self->tx.fd, POLLOUT, 0));
	ASSERT_EQ(0, post_one(&self->tx, i));
	EXPECT_EQ(0, poll_for(self->tx.fd, POLLOUT, 0));
	EXPECT_EQ((int)size * 100, tp4_kick(&self->tx, 0));
	EXPECT_EQ(POLLOUT, poll_for(self->tx.fd, POLLOUT, WAIT_MS));
}

TEST_F(send, poll_wakes)
{
	uint64_t start;
	pid_t pid;
	int i;

	for (i = 0; i < 3; i++) {
		start = now_ms();
		pid = tp4_fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			usleep(200000);
			_exit(send_one(&self->tx, 50) != 100);
		}
		EXPECT_EQ(POLLIN, poll_for(self->rx.fd, POLLIN, WAIT_MS));
		EXPECT_LE(100U, now_ms() - start);
		EXPECT_EQ(50, recv_one(&self->rx, 0));
		EXPECT_EQ(pid, waitpid(pid, NULL, 0));
		/* the child has posted and sent; its indices are its own */
		self->tx.tx.avail++;
		self->tx.tx.used++;
	}
}

TEST_F(send, epoll_edge)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	int ep = epoll_create1(0), i;

	ASSERT_LE(0, ep);
	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, self->rx.fd, &ev));
	EXPECT_EQ(0, epoll_wait(ep, &ev, 1, 0));
	for (i = 0; i < 300; i++) {
		ASSERT_EQ(100, send_one(&self->tx, i));
		ASSERT_EQ(1, epoll_wait(ep, &ev, 1, WAIT_MS));
		ASSERT_TRUE(ev.events == EPOLLIN);
		ASSERT_EQ(i, recv_one(&self->rx, WAIT_MS));
		ASSERT_EQ(0, epoll_wait(ep, &ev, 1, 0));
	}
	close(ep);
}

TEST_F(send, pollout_wakes)
{
	unsigned int i, size = self->tx.tx.size;
	uint64_t start;

	pkt_len = LONG_LEN;
	/* long enough to fill the ring and look before the first is back */
	ASSERT_EQ(0, set_qdisc(tp4_fast() ? "netem limit 1000 delay 4s" :
			       "netem limit 1000 delay 400ms"));
	for (i = 0; i < size; i++)
		ASSERT_EQ(0, post_one(&self->tx, i));
	start = now_ms();
	ASSERT_EQ((int)size * LONG_LEN, tp4_kick(&self->tx, MSG_DONTWAIT));
	EXPECT_EQ(0, poll_for(self->tx.fd, POLLOUT, 0));
	EXPECT_EQ(POLLOUT, poll_for(self->tx.fd, POLLOUT, WAIT_MS));
	EXPECT_LE(300U, now_ms() - start);
	EXPECT_TRUE(tp4_reap_all(&self->tx, WAIT_MS));
	for (i = 0; i < size; i++)
		ASSERT_EQ((int)i, recv_one(&self->rx, WAIT_MS));
}

/* ---- sending ---- */

TEST_F(send, blocking_send)
{
	uint64_t start;
	int i;

	pkt_len = LONG_LEN;
	ASSERT_EQ(0, set_qdisc("netem limit 1000 delay 400ms"));
	for (i = 0; i < 10; i++)
		ASSERT_EQ(0, post_one(&self->tx, i));
	start = now_ms();
	EXPECT_EQ(10 * LONG_LEN, tp4_kick(&self->tx, 0));
	EXPECT_LE(300U, now_ms() - start);
	/* all are back: there is nothing to wait for any more */
	EXPECT_EQ(10U, tp4_reap(&self->tx));
	EXPECT_EQ(10U, self->tx.errors[0]);

	for (i = 10; i < 20; i++)
		ASSERT_EQ(0, post_one(&self->tx, i));
	EXPECT_EQ(10 * LONG_LEN, tp4_kick(&self->tx, MSG_DONTWAIT));
	EXPECT_EQ(0U, tp4_reap(&self->tx));
	EXPECT_TRUE(tp4_reap_all(&self->tx, WAIT_MS));
	for (i = 0; i < 20; i++)
		EXPECT_EQ(i, recv_one(&self->rx, WAIT_MS));
}

static void on_alarm(int sig)
{
	(void)sig;
}

/* A blocking send can be given up; the packets are on their way still. */
TEST_F(send, blocking_send_ends)
{
	struct sigaction sa = { .sa_handler = on_alarm }, old;
	struct timeval tv = { .tv_usec = 100000 };
	uint64_t start;
	pid_t pid;
	int ret;

	pkt_len = LONG_LEN;
	ASSERT_EQ(0, set_qdisc("netem limit 1000 delay 2500ms"));
	ASSERT_EQ(0, sigaction(SIGUSR1, &sa, &old));
	ASSERT_EQ(0, post_one(&self->tx, 1));
	pid = tp4_fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		usleep(200000);
		kill(getppid(), SIGUSR1);
		_exit(0);
	}
	start = now_ms();
	ret = tp4_kick(&self->tx, 0);
	EXPECT_TRUE(ret == LONG_LEN || ret == -EINTR) {
		TH_LOG("a signal makes it return %d", ret);
	}
	EXPECT_GT(1500U, now_ms() - start);
	EXPECT_EQ(pid, waitpid(pid, NULL, 0));

	ASSERT_EQ(0, setsockopt(self->tx.fd, SOL_SOCKET, SO_SNDTIMEO, &tv,
				sizeof(tv)));
	ASSERT_EQ(0, post_one(&self->tx, 2));
	start = now_ms();
	ret = tp4_kick(&self->tx, 0);
	EXPECT_TRUE(ret == LONG_LEN || ret == -ETIMEDOUT || ret == -EAGAIN) {
		TH_LOG("SO_SNDTIMEO makes it return %d", ret);
	}
	EXPECT_GT(1500U, now_ms() - start);
	EXPECT_EQ(1, recv_one(&self->rx, WAIT_MS));
	EXPECT_EQ(2, recv_one(&self->rx, WAIT_MS));
	EXPECT_TRUE(tp4_reap_all(&self->tx, WAIT_MS));
	EXPECT_EQ(2U, self->tx.errors[0]);
}

TEST_F(send, qdisc_bypass)
{
	int i;

	ASSERT_EQ(0, set_qdisc("netem loss 100%"));
	ASSERT_EQ(100, send_one(&self->tx, 1));
	EXPECT_EQ(-1, recv_one(&self->rx, QUIET_MS));
	ASSERT_EQ(0, tp4_setint(self->tx.fd, PACKET_QDISC_BYPASS, 1));
	for (i = 0; i < 300; i++) {
		ASSERT_EQ(100, send_one(&self->tx, i));
		ASSERT_EQ(i, recv_one(&self->rx, WAIT_MS));
	}
	EXPECT_TRUE(tp4_reap_all(&self->tx, WAIT_MS));
	EXPECT_EQ(301U, self->tx.errors[0]);
}

/* An address says where to, as for V1 to V3. */
TEST_F(send, kick_with_address)
{
	struct tp4_cfg cfg = { .tx_nr = tp4_min_descs() };
	struct sockaddr_ll ll = {
		.sll_family = AF_PACKET,
		.sll_ifindex = if_nametoindex(if_a),
	};
	struct tp4 s;

	ASSERT_EQ(0, tp4_open(&s, &cfg));
	ASSERT_EQ(0, post_one(&s, 31));
	EXPECT_EQ(100, sendto(s.fd, NULL, 0, 0, (struct sockaddr *)&ll,
			      sizeof(ll)));
	EXPECT_EQ(31, recv_one(&self->rx, WAIT_MS));
	ASSERT_EQ(0, post_one(&s, 32));
	EXPECT_EQ(-1, sendto(s.fd, NULL, 0, 0, (struct sockaddr *)&ll, 5));
	EXPECT_EQ(EINVAL, errno);
	ll.sll_ifindex = 9999;
	EXPECT_EQ(-1, sendto(s.fd, NULL, 0, 0, (struct sockaddr *)&ll,
			     sizeof(ll)));
	EXPECT_EQ(ENXIO, errno);
	EXPECT_TRUE(desc_is_kernels(tp4_slot(&s.tx, 1)));
	tp4_close(&s);
}

/* ---- full queues ---- */

/* A device whose queue holds two packets and which nobody empties at first. */
static int open_tap(void)
{
	struct ifreq ifr = {
		.ifr_name = "v4tap", .ifr_flags = IFF_TAP | IFF_NO_PI,
	};
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	if (ioctl(fd, TUNSETIFF, &ifr) ||
	    net_batch("ip", "link set v4tap txqueuelen 2 up\n")) {
		close(fd);
		return -EINVAL;
	}
	return fd;
}

/* What the device itself refuses waits, too, without a qdisc. */
TEST_F(send, full_device)
{
	int tap = open_tap(), i, n, sum = 0, got = 0;
	uint64_t end = now_ms() + WAIT_MS;
	char buf[MAX_PKT];

	if (tap == -ENOENT)
		SKIP(return, "no /dev/net/tun");
	ASSERT_LE(0, tap);
	ASSERT_EQ(0, tp4_bind(self->tx.fd, "v4tap", 0));
	ASSERT_EQ(0, tp4_setint(self->tx.fd, PACKET_QDISC_BYPASS, 1));
	for (i = 0; i < 9; i++)
		ASSERT_EQ(0, post_one(&self->tx, i));
	EXPECT_EQ(200, tp4_kick(&self->tx, MSG_DONTWAIT));
	EXPECT_EQ(-ENOBUFS, tp4_kick(&self->tx, MSG_DONTWAIT));
	EXPECT_EQ(-ENOBUFS, tp4_kick(&self->tx, 0));
	EXPECT_TRUE(desc_is_kernels(tp4_slot(&self->tx.tx, 2)));
	for (sum = 200; got < 9 && now_ms() < end; ) {
		while ((n = read(tap, buf, sizeof(buf))) > 0) {
			if (packet_seq(buf) < 9 && n == 100)
				ASSERT_EQ((uint32_t)got++, packet_seq(buf));
		}
		n = tp4_kick(&self->tx, MSG_DONTWAIT);
		sum += n > 0 ? n : 0;
	}
	EXPECT_EQ(9, got);
	EXPECT_EQ(900, sum);
	EXPECT_TRUE(tp4_reap_all(&self->tx, WAIT_MS));
	EXPECT_EQ(9U, self->tx.errors[0]);
	close(tap);
}

FIXTURE(qdisc) {
	struct tp4 tx, rx;
};

FIXTURE_VARIANT(qdisc) {
	unsigned int len;
};

FIXTURE_VARIANT_ADD(qdisc, short_packets) { .len = 100 };
FIXTURE_VARIANT_ADD(qdisc, long_packets) { .len = LONG_LEN };

FIXTURE_SETUP(qdisc)
{
	struct tp4_cfg tcfg = { .ifname = if_a, .tx_nr = tp4_min_descs() };
	struct tp4_cfg rcfg = { .ifname = if_b, .rx_nr = tp4_min_descs() };

	tp4_net_setup(_metadata);
	ASSERT_EQ(0, tp4_open(&self->tx, &tcfg));
	ASSERT_EQ(0, tp4_open(&self->rx, &rcfg));
	pkt_len = variant->len;
	ASSERT_EQ(0, set_qdisc(tp4_fast() ? "netem limit 4 delay 1500ms" :
			       "netem limit 4 delay 500ms"));
}

FIXTURE_TEARDOWN(qdisc)
{
	tp4_close(&self->tx);
	tp4_close(&self->rx);
}

/* What a full qdisc does not take stays posted, and is sent later, in order,
 * once.
 */
TEST_F(qdisc, full)
{
	struct tpacket_stats_v4 st;
	int i, n, sum = 0, full = 0;
	uint64_t end;

	for (i = 0; i < 20; i++)
		ASSERT_EQ(0, post_one(&self->tx, i));
	EXPECT_EQ(4 * (int)pkt_len, tp4_kick(&self->tx, MSG_DONTWAIT));
	EXPECT_EQ(-ENOBUFS, tp4_kick(&self->tx, MSG_DONTWAIT));
	/* short ones may be back already, those that wait may not */
	EXPECT_GE(variant->len > 1000 ? 0U : 4U, tp4_reap(&self->tx));
	for (i = 4; i < 20; i++)
		EXPECT_TRUE(desc_is_kernels(tp4_slot(&self->tx.tx, i)));
	ASSERT_EQ(0, tp4_stats(self->tx.fd, &st));
	EXPECT_EQ(2U, st.tx_ring_full);

	end = now_ms() + WAIT_MS;
	while (sum < 16 * (int)pkt_len && now_ms() < end) {
		n = tp4_kick(&self->tx, MSG_DONTWAIT);
		ASSERT_TRUE(n > 0 || n == -ENOBUFS);
		sum += n > 0 ? n : 0;
		full += n < 0;
		usleep(20000);
	}
	EXPECT_EQ(16 * (int)pkt_len, sum);
	EXPECT_LT(0, full);
	EXPECT_TRUE(tp4_reap_all(&self->tx, WAIT_MS));
	EXPECT_EQ(20U, self->tx.errors[0]);
	for (i = 0; i < 20; i++)
		EXPECT_EQ(i, recv_one(&self->rx, WAIT_MS));
	EXPECT_EQ(-1, recv_one(&self->rx, QUIET_MS));
}

/* PACKET_LOSS: what would have to wait is dropped, and said to be. */
TEST_F(qdisc, packet_loss)
{
	struct tpacket4_desc d;
	int i, one = 1;

	/* as for V1 to V3: not while there is a ring */
	EXPECT_EQ(-EBUSY, tp4_setint(self->tx.fd, PACKET_LOSS, one));
	munmap(self->tx.map, self->tx.map_len);
	ASSERT_EQ(0, tp4_set_ring(self->tx.fd, PACKET_TX_RING, -1, 0));
	ASSERT_EQ(0, tp4_setint(self->tx.fd, PACKET_LOSS, one));
	ASSERT_EQ(0, tp4_set_ring(self->tx.fd, PACKET_TX_RING, self->tx.fd,
				  tp4_min_descs()));
	ASSERT_EQ(0, tp4_map_rings(&self->tx, 0, tp4_min_descs()));

	for (i = 0; i < 20; i++)
		ASSERT_EQ(0, post_one(&self->tx, i));
	EXPECT_EQ(4 * (int)pkt_len, tp4_kick(&self->tx, MSG_DONTWAIT));
	EXPECT_TRUE(tp4_reap_all(&self->tx, WAIT_MS));
	EXPECT_EQ(4U, self->tx.errors[0]);
	EXPECT_EQ(16U, self->tx.errors[ENOBUFS]);
	for (i = 0; i < 4; i++)
		EXPECT_EQ(i, recv_one(&self->rx, WAIT_MS));
	EXPECT_EQ(-1, recv_one(&self->rx, QUIET_MS));

	/* a bad descriptor tells its own error, with PACKET_LOSS or without */
	d = (struct tpacket4_desc){ .idx = 1 << 20, .len = 60 };
	tp4_post(&self->tx.tx, &d, 1);
	EXPECT_EQ(0, tp4_kick(&self->tx, MSG_DONTWAIT));
	ASSERT_TRUE(tp4_take(&self->tx.tx, &d));
	EXPECT_EQ(EINVAL, d.error);
}

/* A full send buffer is no error: what did not fit stays posted. */
TEST_F(send, full_sndbuf)
{
	int i, n, sum = 0, least = 2048;

	pkt_len = LONG_LEN;
	ASSERT_EQ(0, set_qdisc("tbf rate 8kbit burst 10k limit 1000000"));
	ASSERT_EQ(0, setsockopt(self->tx.fd, SOL_SOCKET, SO_SNDBUF, &least,
				sizeof(least)));
	for (i = 0; i < 40; i++)
		ASSERT_EQ(0, post_one(&self->tx, i));
	n = tp4_kick(&self->tx, MSG_DONTWAIT);
	ASSERT_LT(0, n);
	ASSERT_GT(40 * LONG_LEN, n);
	sum = n;
	EXPECT_EQ(-EAGAIN, tp4_kick(&self->tx, MSG_DONTWAIT));
	EXPECT_TRUE(desc_is_kernels(tp4_slot(&self->tx.tx, 39)));
	ASSERT_EQ(0, set_qdisc("pfifo limit 1000"));
	while (sum < 40 * LONG_LEN) {
		n = tp4_kick(&self->tx, 0);
		ASSERT_LT(0, n);
		sum += n;
	}
	EXPECT_EQ(40 * LONG_LEN, sum);
}

TEST_HARNESS_MAIN
