// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4: poll and epoll, blocking and non-blocking sends, and full
 * queues
 */
#include "common.h"

#include <linux/filter.h>
#include <linux/if_tun.h>
#include <linux/net_tstamp.h>
#include <sys/epoll.h>
#include <sys/mman.h>

FIXTURE(send) {
	struct pv4 tx, rx;
};

FIXTURE_SETUP(send)
{
	struct pv4_cfg tcfg = { .ifname = if_a, .tx_nr = pv4_min_descs() };
	struct pv4_cfg rcfg = { .ifname = if_b, .rx_nr = pv4_min_descs() };

	pv4_net_setup(_metadata);
	ASSERT_EQ(0, pv4_open(&self->tx, &tcfg));
	ASSERT_EQ(0, pv4_open(&self->rx, &rcfg));
}

FIXTURE_TEARDOWN(send)
{
	/* packets that a failed test has left there hold the namespace */
	release_queue(if_a);
	pv4_close(&self->tx);
	pv4_close(&self->rx);
}

/* ---- poll ---- */

/* POLLIN is set until the last returned slot is posted again. */
TEST_F(send, pollin)
{
	struct tpacket4_desc d[2];
	int i;

	EXPECT_EQ(0, poll_for(self->rx.fd, POLLIN, 0));
	for (i = 0; i < 600; i++) {
		ASSERT_EQ(100, send_one(&self->tx, 2 * i));
		ASSERT_EQ(100, send_one(&self->tx, 2 * i + 1));
		ASSERT_TRUE(pv4_take_wait(&self->rx, &self->rx.rx, &d[0],
					  WAIT_MS));
		ASSERT_TRUE(pv4_take_wait(&self->rx, &self->rx.rx, &d[1],
					  WAIT_MS));
		ASSERT_EQ(POLLIN, poll_for(self->rx.fd, POLLIN, 0));
		pv4_rx_post(&self->rx, d[0].idx);
		ASSERT_EQ(POLLIN, poll_for(self->rx.fd, POLLIN, 0));
		pv4_rx_post(&self->rx, d[1].idx);
		ASSERT_EQ(0, poll_for(self->rx.fd, POLLIN, 0));
	}
}

/* POLLOUT is set while a slot can be posted. */
TEST_F(send, pollout)
{
	unsigned int i, size = self->tx.tx.size;

	EXPECT_EQ(POLLOUT, poll_for(self->tx.fd, POLLOUT, 0));
	for (i = 0; i < size - 1; i++)
		ASSERT_EQ(0, post_one(&self->tx, i));
	EXPECT_EQ(POLLOUT, poll_for(self->tx.fd, POLLOUT, 0));
	ASSERT_EQ(0, post_one(&self->tx, i));
	EXPECT_EQ(0, poll_for(self->tx.fd, POLLOUT, 0));
	EXPECT_EQ((int)size * 100, pv4_kick(&self->tx, 0));
	EXPECT_EQ(POLLOUT, poll_for(self->tx.fd, POLLOUT, WAIT_MS));
}

TEST_F(send, poll_wakes)
{
	pid_t pid, self_pid = getpid();
	int i;

	for (i = 0; i < 20; i++) {
		pid = pv4_fork();
		ASSERT_LE(0, pid);
		if (!pid)
			_exit(!wait_until_asleep(self_pid) ||
			      send_one(&self->tx, 50) != 100);
		EXPECT_EQ(POLLIN, poll_for(self->rx.fd, POLLIN, WAIT_MS));
		EXPECT_EQ(50, recv_one(&self->rx, 0));
		EXPECT_EQ(0, wait_for_exit(pid));
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

/* A child that releases the packets in if_a's queue when this process sleeps;
 * its exit code is 0 if that succeeded.
 */
static pid_t release_when_asleep(void)
{
	pid_t parent = getpid(), pid = pv4_fork();

	if (!pid)
		_exit(!wait_until_asleep(parent) || release_queue(if_a));
	return pid;
}

TEST_F(send, pollout_wakes)
{
	unsigned int i, size = self->tx.tx.size;
	pid_t pid;

	pkt_len = LONG_LEN;
	ASSERT_EQ(0, hold_queue(if_a));
	for (i = 0; i < size; i++)
		ASSERT_EQ(0, post_one(&self->tx, i));
	ASSERT_EQ((int)size * LONG_LEN, pv4_kick(&self->tx, MSG_DONTWAIT));
	EXPECT_EQ(0, poll_for(self->tx.fd, POLLOUT, 0));
	pid = release_when_asleep();
	ASSERT_LE(0, pid);
	EXPECT_EQ(POLLOUT, poll_for(self->tx.fd, POLLOUT, WAIT_MS));
	EXPECT_EQ(0, wait_for_exit(pid));
	EXPECT_TRUE(pv4_reap_all(&self->tx, WAIT_MS));
	for (i = 0; i < size; i++)
		ASSERT_EQ((int)i, recv_one(&self->rx, WAIT_MS));
}

/* ---- sending ---- */

TEST_F(send, blocking_send)
{
	pid_t pid;
	int i;

	pkt_len = LONG_LEN;
	ASSERT_EQ(0, hold_queue(if_a));
	for (i = 0; i < 10; i++)
		ASSERT_EQ(0, post_one(&self->tx, i));
	EXPECT_EQ(10 * LONG_LEN, pv4_kick(&self->tx, MSG_DONTWAIT));
	EXPECT_EQ(0U, pv4_reap(&self->tx));

	for (i = 10; i < 20; i++)
		ASSERT_EQ(0, post_one(&self->tx, i));
	pid = release_when_asleep();
	ASSERT_LE(0, pid);
	EXPECT_EQ(10 * LONG_LEN, pv4_kick(&self->tx, 0));
	/* all have been returned, so it does not wait */
	EXPECT_EQ(20U, pv4_reap(&self->tx));
	EXPECT_EQ(20U, self->tx.errors[0]);
	EXPECT_EQ(0, wait_for_exit(pid));
	for (i = 0; i < 20; i++)
		EXPECT_EQ(i, recv_one(&self->rx, WAIT_MS));
}

/* A blocking send can be interrupted; the packets are still sent. It returns
 * the bytes sent, or an error if there are none.
 */
TEST_F(send, blocking_send_interrupted)
{
	struct timeval tv = { .tv_usec = 100000 };
	uint64_t start;
	pid_t pid;
	int i;

	pkt_len = LONG_LEN;
	ASSERT_EQ(0, hold_queue(if_a));
	ASSERT_EQ(0, post_one(&self->tx, 0));
	for (i = 0; i < 2; i++) {
		pid = signal_when_asleep();
		ASSERT_LE(0, pid);
		EXPECT_EQ(i ? -EINTR : LONG_LEN, pv4_kick(&self->tx, 0));
		EXPECT_EQ(0, wait_for_exit(pid));
		EXPECT_EQ(0U, pv4_reap(&self->tx));
	}

	ASSERT_EQ(0, setsockopt(self->tx.fd, SOL_SOCKET, SO_SNDTIMEO, &tv,
				sizeof(tv)));
	ASSERT_EQ(0, post_one(&self->tx, 1));
	for (i = 0; i < 2; i++) {
		start = now_ms();
		EXPECT_EQ(i ? -ETIMEDOUT : LONG_LEN, pv4_kick(&self->tx, 0));
		EXPECT_LE(90U, now_ms() - start);
		EXPECT_EQ(0U, pv4_reap(&self->tx));
	}
	ASSERT_EQ(0, release_queue(if_a));
	EXPECT_EQ(0, recv_one(&self->rx, WAIT_MS));
	EXPECT_EQ(1, recv_one(&self->rx, WAIT_MS));
	EXPECT_TRUE(pv4_reap_all(&self->tx, WAIT_MS));
	EXPECT_EQ(2U, self->tx.errors[0]);
}

/* A timestamp is of a clone of the packet. The frame is not returned before the
 * packet itself is freed, as a driver may have mapped it.
 */
TEST_F(send, stamped_packet_keeps_its_frame)
{
	int on = SOF_TIMESTAMPING_TX_SCHED | SOF_TIMESTAMPING_SOFTWARE;
	struct msghdr msg = { };

	pkt_len = LONG_LEN;
	ASSERT_EQ(0, setsockopt(self->tx.fd, SOL_SOCKET, SO_TIMESTAMPING, &on,
				sizeof(on)));
	ASSERT_EQ(0, hold_queue(if_a));
	ASSERT_EQ(0, post_one(&self->tx, 0));
	EXPECT_EQ(LONG_LEN, pv4_kick(&self->tx, MSG_DONTWAIT));
	EXPECT_EQ(0U, pv4_reap(&self->tx));
	EXPECT_LE(0, recvmsg(self->tx.fd, &msg, MSG_ERRQUEUE | MSG_DONTWAIT));
	EXPECT_EQ(0U, pv4_reap(&self->tx));
	ASSERT_EQ(0, release_queue(if_a));
	EXPECT_EQ(0, recv_one(&self->rx, WAIT_MS));
	EXPECT_TRUE(pv4_reap_all(&self->tx, WAIT_MS));
}

/* splice() relies on that no more is sent than what it has, but the ring may
 * hold more.
 */
static void splice_one_byte(struct __test_metadata *_metadata, int fd)
{
	int fds[2];

	ASSERT_EQ(0, pipe(fds));
	ASSERT_EQ(1, write(fds[1], "", 1));
	EXPECT_EQ(1, splice(fds[0], NULL, fd, NULL, 1, 0));
	close(fds[0]);
	close(fds[1]);
}

TEST_F(send, splice_length)
{
	ASSERT_EQ(0, post_one(&self->tx, 1));
	splice_one_byte(_metadata, self->tx.fd);
	EXPECT_EQ(1, recv_one(&self->rx, WAIT_MS));
	EXPECT_TRUE(pv4_reap_all(&self->tx, WAIT_MS));
}

TEST_F(send, splice_length_v2)
{
	struct tpacket_req req = {
		.tp_block_size = getpagesize(),
		.tp_block_nr = 1,
		.tp_frame_size = 2048,
		.tp_frame_nr = getpagesize() / 2048,
	};
	int fd = pv4_socket(), version = TPACKET_V2;
	struct tpacket2_hdr *hdr;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, pv4_setint(fd, PACKET_VERSION, version));
	ASSERT_EQ(0, pv4_setopt(fd, PACKET_TX_RING, &req, sizeof(req)));
	hdr = mmap(NULL, req.tp_block_size, PROT_READ | PROT_WRITE, MAP_SHARED,
		   fd, 0);
	ASSERT_TRUE(hdr != MAP_FAILED);
	ASSERT_EQ(0, pv4_bind(fd, if_a, ETH_P_ALL));
	fill_packet((char *)hdr + TPACKET2_HDRLEN - sizeof(struct sockaddr_ll),
		    pkt_len, 1);
	hdr->tp_len = pkt_len;
	hdr->tp_status = TP_STATUS_SEND_REQUEST;
	splice_one_byte(_metadata, fd);
	EXPECT_EQ(1, recv_one(&self->rx, WAIT_MS));
	munmap(hdr, req.tp_block_size);
	close(fd);
}

TEST_F(send, qdisc_bypass)
{
	int i;

	ASSERT_EQ(0, set_qdisc("netem loss 100%"));
	ASSERT_EQ(100, send_one(&self->tx, 1));
	EXPECT_EQ(-1, recv_one(&self->rx, QUIET_MS));
	ASSERT_EQ(0, pv4_setint(self->tx.fd, PACKET_QDISC_BYPASS, 1));
	for (i = 0; i < 300; i++) {
		ASSERT_EQ(100, send_one(&self->tx, i));
		ASSERT_EQ(i, recv_one(&self->rx, WAIT_MS));
	}
	EXPECT_TRUE(pv4_reap_all(&self->tx, WAIT_MS));
	EXPECT_EQ(301U, self->tx.errors[0]);
}

/* An address selects the device, as for V1 to V3. */
TEST_F(send, kick_with_address)
{
	struct pv4_cfg cfg = { .tx_nr = pv4_min_descs() };
	struct sockaddr_ll ll = {
		.sll_family = AF_PACKET,
		.sll_ifindex = if_nametoindex(if_a),
	};
	struct pv4 s;

	ASSERT_EQ(0, pv4_open(&s, &cfg));
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
	EXPECT_TRUE(desc_is_kernels(pv4_slot(&s.tx, 1)));
	pv4_close(&s);
}

static int kick_with_control(int fd, int type, __u32 value)
{
	char control[CMSG_SPACE(sizeof(value))] = { 0 };
	struct msghdr m = {
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(sizeof(value));
	memcpy(CMSG_DATA(c), &value, sizeof(value));
	return sendmsg(fd, &m, 0) < 0 ? -errno : 0;
}

/* Control messages apply to all packets of a call; if they are invalid, nothing
 * is sent.
 */
TEST_F(send, control_messages)
{
	struct sock_filter marked[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SKF_AD_OFF + SKF_AD_MARK),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 77, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0x40000),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog prog = { .filter = marked, .len = 4 };
	int fd = plain_socket(_metadata, if_a, ETH_P_ALL), i;
	char buf[200];

	ASSERT_EQ(0, setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog,
				sizeof(prog)));
	ASSERT_EQ(0, post_one(&self->tx, 0));
	EXPECT_EQ(-EINVAL, kick_with_control(self->tx.fd, 9999, 1));
	EXPECT_TRUE(desc_is_kernels(pv4_slot(&self->tx.tx, 0)));
	ASSERT_EQ(100, pv4_kick(&self->tx, 0));
	for (i = 1; i < 5; i++)
		ASSERT_EQ(0, post_one(&self->tx, i));
	ASSERT_EQ(0, kick_with_control(self->tx.fd, SO_MARK, 77));
	for (i = 0; i < 5; i++)
		EXPECT_EQ(i, recv_one(&self->rx, WAIT_MS));
	for (i = 1; i < 5; i++) {
		EXPECT_EQ(100, plain_recv(fd, buf, sizeof(buf), WAIT_MS));
		EXPECT_EQ((uint32_t)i, packet_seq(buf));
	}
	EXPECT_EQ(-EAGAIN, plain_recv(fd, buf, sizeof(buf), 0));
	close(fd);
}

/* ---- full queues ---- */

/* A device whose queue holds two packets and is not emptied at first */
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

/* A packet that the driver drops is returned, and does not block those behind
 * it.
 */
TEST_F(send, full_device)
{
	uint64_t end = now_ms() + WAIT_MS;
	int tap = open_tap(), i, n, got;
	char buf[MAX_PKT];

	if (tap == -ENOENT)
		SKIP(return, "no /dev/net/tun");
	ASSERT_LE(0, tap);
	ASSERT_EQ(0, pv4_bind(self->tx.fd, "v4tap", 0));
	ASSERT_EQ(0, pv4_setint(self->tx.fd, PACKET_QDISC_BYPASS, 1));
	for (i = 0; i < 9; i++)
		ASSERT_EQ(0, post_one(&self->tx, i));
	EXPECT_EQ(200, pv4_kick(&self->tx, MSG_DONTWAIT));
	EXPECT_TRUE(pv4_reap_all(&self->tx, WAIT_MS));
	EXPECT_EQ(2U, self->tx.errors[0]);
	EXPECT_EQ(7U, self->tx.errors[ENOBUFS]);
	for (got = 0; got < 2 && now_ms() < end; ) {
		while ((n = read(tap, buf, sizeof(buf))) > 0) {
			if (packet_seq(buf) < 9 && n == 100)
				ASSERT_EQ((uint32_t)got++, packet_seq(buf));
		}
	}
	EXPECT_EQ(2, got);
	ASSERT_EQ(0, post_one(&self->tx, 9));
	EXPECT_EQ(100, pv4_kick(&self->tx, MSG_DONTWAIT));
	EXPECT_TRUE(pv4_reap_all(&self->tx, WAIT_MS));
	EXPECT_EQ(3U, self->tx.errors[0]);
	close(tap);
}

/* Packets that a full qdisc drops are returned; none of them waits. */
TEST_F(send, full_qdisc)
{
	struct tpacket_stats_v4 st;
	struct tpacket4_desc d;
	int i;

	pkt_len = LONG_LEN;
	ASSERT_EQ(0, hold_queue(if_a));
	ASSERT_EQ(0, limit_queue(if_a, 4 * LONG_LEN));
	for (i = 0; i < 20; i++)
		ASSERT_EQ(0, post_one(&self->tx, i));
	EXPECT_EQ(4 * LONG_LEN, pv4_kick(&self->tx, MSG_DONTWAIT));
	for (i = 4; i < 20; i++) {
		ASSERT_TRUE(pv4_take(&self->tx.tx, &d)) {
			TH_LOG("only %d were returned", i - 4);
		}
		EXPECT_EQ(ENOBUFS, d.error);
	}
	/* those in the qdisc */
	EXPECT_FALSE(pv4_take(&self->tx.tx, &d));
	EXPECT_EQ(0, pv4_kick(&self->tx, MSG_DONTWAIT));
	ASSERT_EQ(0, pv4_stats(self->tx.fd, &st));
	EXPECT_EQ(0U, st.tx_ring_full);
	ASSERT_EQ(0, release_queue(if_a));
	EXPECT_TRUE(pv4_reap_all(&self->tx, WAIT_MS));
	EXPECT_EQ(4U, self->tx.errors[0]);
	for (i = 0; i < 4; i++)
		EXPECT_EQ(i, recv_one(&self->rx, WAIT_MS));
	EXPECT_EQ(-1, recv_one(&self->rx, QUIET_MS));
}

/* A full send buffer is not an error: the remaining packets stay posted. */
TEST_F(send, full_sndbuf)
{
	int i, n, sum = 0, least = 2048;

	pkt_len = LONG_LEN;
	ASSERT_EQ(0, set_qdisc("tbf rate 8kbit burst 10k limit 1000000"));
	ASSERT_EQ(0, setsockopt(self->tx.fd, SOL_SOCKET, SO_SNDBUF, &least,
				sizeof(least)));
	for (i = 0; i < 40; i++)
		ASSERT_EQ(0, post_one(&self->tx, i));
	n = pv4_kick(&self->tx, MSG_DONTWAIT);
	ASSERT_LT(0, n);
	ASSERT_GT(40 * LONG_LEN, n);
	sum = n;
	EXPECT_EQ(-EAGAIN, pv4_kick(&self->tx, MSG_DONTWAIT));
	EXPECT_TRUE(desc_is_kernels(pv4_slot(&self->tx.tx, 39)));
	ASSERT_EQ(0, set_qdisc("pfifo limit 1000"));
	while (sum < 40 * LONG_LEN) {
		n = pv4_kick(&self->tx, 0);
		ASSERT_LT(0, n);
		sum += n;
	}
	EXPECT_EQ(40 * LONG_LEN, sum);
}

TEST_HARNESS_MAIN
