// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4: what every packet socket has works on V4 too: binding,
 * filters, fanout, poll, blocking and non-blocking sends, queueing
 * disciplines.
 */
#include "tpacket4.h"

#include <linux/filter.h>
#include <sys/epoll.h>

FIXTURE(sock) {
	struct tp4 tx, rx;
	char *buf;
};

FIXTURE_SETUP(sock)
{
	struct tp4_cfg tcfg = { .ifname = if_a, .tx_nr = tp4_min_descs() };
	struct tp4_cfg rcfg = { .ifname = if_b, .rx_nr = tp4_min_descs() };

	tp4_net_setup(_metadata);
	ASSERT_EQ(0, tp4_open(&self->tx, &tcfg));
	ASSERT_EQ(0, tp4_open(&self->rx, &rcfg));
	self->buf = malloc(1 << 17);
	ASSERT_TRUE(!!self->buf);
}

FIXTURE_TEARDOWN(sock)
{
	tp4_close(&self->tx);
	tp4_close(&self->rx);
	free(self->buf);
}

static int post_one(struct tp4 *s, uint32_t seq)
{
	char pkt[100];

	fill_packet(pkt, sizeof(pkt), seq);
	return tp4_put(s, pkt, sizeof(pkt), 2048, 0);
}

/* Bytes sent, or -errno. */
static int send_one(struct tp4 *s, uint32_t seq)
{
	tp4_reap(s);
	if (post_one(s, seq))
		return -ENOSPC;
	return tp4_kick(s, MSG_DONTWAIT);
}

/* The number in the next packet received, or -1. */
static int recv_one(struct tp4 *s, int ms)
{
	char buf[MAX_PKT];
	int len = tp4_recv(s, buf, sizeof(buf), ms);
	uint32_t seq;

	if (len < ETH_HLEN + 4)
		return -1;
	seq = packet_seq(buf);
	return packet_ok(buf, len, 100, seq) ? (int)seq : -1;
}

static int set_qdisc(const char *spec)
{
	char cmd[160];

	snprintf(cmd, sizeof(cmd), "qdisc replace dev %s root %s\n", if_a,
		 spec);
	return net_batch("tc", cmd);
}

/* ---- binding ---- */

TEST_F(sock, nothing_before_bind)
{
	struct tp4_cfg cfg = { .rx_nr = tp4_min_descs() };
	struct tpacket_stats_v4 st;
	struct tp4 s;
	int i;

	ASSERT_EQ(0, tp4_open(&s, &cfg));
	for (i = 0; i < 10; i++)
		ASSERT_EQ(100, send_one(&self->tx, i));
	EXPECT_EQ(-1, recv_one(&s, QUIET_MS));
	ASSERT_EQ(0, tp4_stats(s.fd, &st));
	EXPECT_EQ(0U, st.tp_packets);
	/* not even by way of a protocol without an interface at socket() */
	tp4_close(&s);
	for (i = 0; i < 10; i++)
		EXPECT_EQ(i, recv_one(&self->rx, WAIT_MS));
}

TEST_F(sock, kick_unbound)
{
	struct tp4_cfg cfg = { .tx_nr = tp4_min_descs() };
	struct tp4 s;

	ASSERT_EQ(0, tp4_open(&s, &cfg));
	ASSERT_EQ(0, post_one(&s, 77));
	EXPECT_EQ(-ENXIO, tp4_kick(&s, MSG_DONTWAIT));
	EXPECT_TRUE(desc_is_kernels(tp4_slot(&s.tx, 0)));
	ASSERT_EQ(0, tp4_bind(s.fd, if_a, 0));
	EXPECT_EQ(100, tp4_kick(&s, 0));
	EXPECT_EQ(77, recv_one(&self->rx, WAIT_MS));
	EXPECT_TRUE(tp4_reap_all(&s, WAIT_MS));
	tp4_close(&s);
}

TEST_F(sock, rebind)
{
	int i, tx = plain_socket(_metadata, if_b, 0);
	char pkt[100];

	for (i = 0; i < 20; i++) {
		/* from if_b to if_a and from if_a to if_b in turn */
		ASSERT_EQ(0, tp4_bind(self->rx.fd, i & 1 ? if_a : if_b,
				      ETH_P_ALL));
		fill_packet(pkt, sizeof(pkt), i);
		ASSERT_EQ(100, i & 1 ? send(tx, pkt, sizeof(pkt), 0) :
				       send_one(&self->tx, i));
		ASSERT_EQ(i, recv_one(&self->rx, WAIT_MS));
	}
	close(tx);
}

/* ---- filters ---- */

static int set_filter(int fd, struct sock_filter *code, unsigned int n)
{
	struct sock_fprog prog = { .filter = code, .len = n };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog,
			  sizeof(prog)) ? -errno : 0;
}

TEST_F(sock, filter)
{
	/* sequence numbers (little or big endian) with byte 14 odd */
	struct sock_filter odd[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, ETH_HLEN),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 1),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0x40000),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	/* the filter's value is how much of the packet is wanted */
	struct sock_filter snap[] = { BPF_STMT(BPF_RET | BPF_K, 30) };
	struct sock_filter odd_len[] = { BPF_STMT(BPF_RET | BPF_K, 2049) };
	struct tpacket_stats_v4 st;
	struct tpacket4_desc d;
	int i, dummy = 0, len;

	ASSERT_EQ(0, set_filter(self->rx.fd, odd, ARRAY_SIZE(odd)));
	for (i = 0; i < 40; i++)
		ASSERT_EQ(100, send_one(&self->tx, htonl(i << 24 | i)));
	for (i = 1; i < 40; i += 2)
		ASSERT_EQ((int)htonl(i << 24 | i),
			  recv_one(&self->rx, WAIT_MS));
	EXPECT_EQ(-1, recv_one(&self->rx, QUIET_MS));
	ASSERT_EQ(0, tp4_stats(self->rx.fd, &st));
	/* what is filtered out is neither received nor dropped */
	EXPECT_EQ(20U, st.tp_packets);
	EXPECT_EQ(0U, st.tp_drops);

	ASSERT_EQ(0, set_filter(self->rx.fd, snap, ARRAY_SIZE(snap)));
	ASSERT_EQ(100, send_one(&self->tx, 5));
	ASSERT_TRUE(tp4_take_wait(&self->rx, &self->rx.rx, &d, WAIT_MS));
	EXPECT_EQ(30U, d.len);
	EXPECT_EQ(0, d.flags);
	EXPECT_TRUE(packet_ok(tp4_frame(&self->rx, d.idx), 30, 30, 5));
	EXPECT_EQ((char)UNTOUCHED, tp4_frame(&self->rx, d.idx)[30 + 70]);
	tp4_rx_post(&self->rx, d.idx);

	/* cut right behind a frame's end: the chain has two, of 2048 and 1 */
	ASSERT_EQ(0, set_filter(self->rx.fd, odd_len, ARRAY_SIZE(odd_len)));
	fill_packet(self->buf, 9000, 6);
	ASSERT_EQ(0, tp4_put(&self->tx, self->buf, 9000, 2048, 0));
	ASSERT_EQ(9000, tp4_kick(&self->tx, 0));
	len = tp4_recv(&self->rx, self->buf, 1 << 17, WAIT_MS);
	EXPECT_TRUE(packet_ok(self->buf, len, 2049, 6));

	ASSERT_EQ(0, setsockopt(self->rx.fd, SOL_SOCKET, SO_DETACH_FILTER,
				&dummy, sizeof(dummy)));
	ASSERT_EQ(100, send_one(&self->tx, 4));
	EXPECT_EQ(4, recv_one(&self->rx, WAIT_MS));
}

/* ---- fanout ---- */

#define NR_FANOUT	3

/* UDP from a port of its own: one flow a port */
static void fill_udp(char *p, unsigned int len, unsigned int port,
		     uint32_t seq)
{
	fill_packet(p, len, seq);
	p[12] = ETH_P_IP >> 8;
	p[13] = 0;
	memset(p + 14, 0, 28);
	p[14] = 0x45;
	p[17] = len - ETH_HLEN;
	p[22] = 64;
	p[23] = IPPROTO_UDP;
	p[26] = 10;
	p[30] = 10;
	p[33] = 1;
	p[34] = port >> 8;
	p[35] = port;
	p[39] = len - ETH_HLEN - 20;
	memcpy(p + 42, &seq, sizeof(seq));
}

FIXTURE(fanout) {
	struct tp4 tx, rx[NR_FANOUT];
	unsigned int got[NR_FANOUT];
	int owner[64];			/* which socket saw this flow */
	bool split;			/* or several did */
};

FIXTURE_VARIANT(fanout) {
	int mode;
};

FIXTURE_VARIANT_ADD(fanout, hash) { .mode = PACKET_FANOUT_HASH };
FIXTURE_VARIANT_ADD(fanout, lb) { .mode = PACKET_FANOUT_LB };
FIXTURE_VARIANT_ADD(fanout, cpu) { .mode = PACKET_FANOUT_CPU };

FIXTURE_SETUP(fanout)
{
	struct tp4_cfg tcfg = { .ifname = if_a, .tx_nr = tp4_min_descs() };
	struct tp4_cfg rcfg = { .ifname = if_b, .rx_nr = tp4_min_descs() };
	int i;

	tp4_net_setup(_metadata);
	ASSERT_EQ(0, tp4_open(&self->tx, &tcfg));
	for (i = 0; i < NR_FANOUT; i++) {
		ASSERT_EQ(0, tp4_open(&self->rx[i], &rcfg));
		ASSERT_EQ(0, tp4_setint(self->rx[i].fd, PACKET_FANOUT,
					variant->mode << 16 | 4711));
	}
	memset(self->owner, 0xff, sizeof(self->owner));
}

FIXTURE_TEARDOWN(fanout)
{
	int i;

	for (i = 0; i < NR_FANOUT; i++)
		tp4_close(&self->rx[i]);
	tp4_close(&self->tx);
}

static void drain_fanout(struct _test_data_fanout *self)
{
	char buf[256];
	int i, *owner;

	for (i = 0; i < NR_FANOUT; i++) {
		while (tp4_recv(&self->rx[i], buf, sizeof(buf), 20) > 0) {
			owner = &self->owner[buf[35] % 64];
			self->got[i]++;
			self->split |= *owner >= 0 && *owner != i;
			*owner = i;
		}
	}
}

/* Every packet at one socket of the group, and at the right one. */
TEST_F(fanout, spread)
{
	unsigned int i, sum = 0, busy = 0, used = 0, total = 1920;
	struct tpacket_stats_v4 st;
	cpu_set_t cpu;
	char buf[90];

	CPU_ZERO(&cpu);
	CPU_SET(0, &cpu);
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(cpu), &cpu));
	for (i = 0; i < total; i++) {
		fill_udp(buf, sizeof(buf), 1024 + i % 64, i);
		ASSERT_EQ(0, tp4_put(&self->tx, buf, sizeof(buf), 2048, 0));
		ASSERT_EQ((int)sizeof(buf), tp4_kick(&self->tx, 0));
		tp4_reap(&self->tx);
		if (!(i % 96))
			drain_fanout(self);
	}
	drain_fanout(self);
	for (i = 0; i < NR_FANOUT; i++) {
		ASSERT_EQ(0, tp4_stats(self->rx[i].fd, &st));
		EXPECT_EQ(self->got[i], st.tp_packets);
		EXPECT_EQ(0U, st.tp_drops);
		sum += self->got[i];
		busy += self->got[i] > 0;
	}
	for (i = 0; i < 64; i++)
		used += self->owner[i] >= 0;
	TH_LOG("%u + %u + %u", self->got[0], self->got[1], self->got[2]);
	EXPECT_EQ(total, sum);
	EXPECT_EQ(64U, used);
	switch (variant->mode) {
	case PACKET_FANOUT_HASH:
		EXPECT_FALSE(self->split);
		EXPECT_LE(2U, busy);
		break;
	case PACKET_FANOUT_LB:
		for (i = 0; i < NR_FANOUT; i++)
			EXPECT_EQ(total / NR_FANOUT, self->got[i]);
		break;
	case PACKET_FANOUT_CPU:
		EXPECT_EQ(1U, busy);
		EXPECT_EQ(total, self->got[0]);
		break;
	}
}

/* A member that leaves takes nothing with it. */
TEST_F(fanout, leave)
{
	unsigned int i, sum = 0;
	char buf[90];

	tp4_close(&self->rx[2]);
	for (i = 0; i < 128; i++) {
		fill_udp(buf, sizeof(buf), 1024 + i % 64, i);
		ASSERT_EQ(0, tp4_put(&self->tx, buf, sizeof(buf), 2048, 0));
		ASSERT_EQ((int)sizeof(buf), tp4_kick(&self->tx, 0));
		tp4_reap(&self->tx);
	}
	for (i = 0; i < 2; i++)
		while (tp4_recv(&self->rx[i], buf, sizeof(buf), QUIET_MS) > 0)
			sum++;
	EXPECT_EQ(128U, sum);
}

/* ---- poll ---- */

static int poll_for(int fd, int events, int ms)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, ms) < 0 ? -errno : p.revents;
}

/* POLLIN as long as the last slot that came back is not posted again. */
TEST_F(sock, pollin)
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
TEST_F(sock, pollout)
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

TEST_F(sock, poll_wakes)
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

TEST_F(sock, epoll_edge)
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

TEST_F(sock, pollout_wakes)
{
	unsigned int i, size = self->tx.tx.size;
	uint64_t start;

	ASSERT_EQ(0, set_qdisc("netem limit 1000 delay 400ms"));
	for (i = 0; i < size; i++)
		ASSERT_EQ(0, post_one(&self->tx, i));
	start = now_ms();
	ASSERT_EQ((int)size * 100, tp4_kick(&self->tx, MSG_DONTWAIT));
	EXPECT_EQ(0, poll_for(self->tx.fd, POLLOUT, 0));
	EXPECT_EQ(POLLOUT, poll_for(self->tx.fd, POLLOUT, WAIT_MS));
	EXPECT_LE(300U, now_ms() - start);
	EXPECT_TRUE(tp4_reap_all(&self->tx, WAIT_MS));
	for (i = 0; i < size; i++)
		ASSERT_EQ((int)i, recv_one(&self->rx, WAIT_MS));
}

/* ---- sending ---- */

TEST_F(sock, blocking_send)
{
	uint64_t start;
	int i;

	ASSERT_EQ(0, set_qdisc("netem limit 1000 delay 400ms"));
	for (i = 0; i < 10; i++)
		ASSERT_EQ(0, post_one(&self->tx, i));
	start = now_ms();
	EXPECT_EQ(1000, tp4_kick(&self->tx, 0));
	EXPECT_LE(300U, now_ms() - start);
	/* all are back: there is nothing to wait for any more */
	EXPECT_EQ(10U, tp4_reap(&self->tx));
	EXPECT_EQ(10U, self->tx.errors[0]);

	for (i = 10; i < 20; i++)
		ASSERT_EQ(0, post_one(&self->tx, i));
	EXPECT_EQ(1000, tp4_kick(&self->tx, MSG_DONTWAIT));
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
TEST_F(sock, blocking_send_ends)
{
	struct sigaction sa = { .sa_handler = on_alarm }, old;
	struct timeval tv = { .tv_usec = 100000 };
	uint64_t start;
	pid_t pid;
	int ret;

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
	EXPECT_TRUE(ret == 100 || ret == -EINTR) {
		TH_LOG("a signal makes it return %d", ret);
	}
	EXPECT_GT(1500U, now_ms() - start);
	EXPECT_EQ(pid, waitpid(pid, NULL, 0));

	ASSERT_EQ(0, setsockopt(self->tx.fd, SOL_SOCKET, SO_SNDTIMEO, &tv,
				sizeof(tv)));
	ASSERT_EQ(0, post_one(&self->tx, 2));
	start = now_ms();
	ret = tp4_kick(&self->tx, 0);
	EXPECT_TRUE(ret == 100 || ret == -ETIMEDOUT || ret == -EAGAIN) {
		TH_LOG("SO_SNDTIMEO makes it return %d", ret);
	}
	EXPECT_GT(1500U, now_ms() - start);
	EXPECT_EQ(1, recv_one(&self->rx, WAIT_MS));
	EXPECT_EQ(2, recv_one(&self->rx, WAIT_MS));
	EXPECT_TRUE(tp4_reap_all(&self->tx, WAIT_MS));
	EXPECT_EQ(2U, self->tx.errors[0]);
}

/* What a full qdisc does not take stays posted, and is sent later, in order,
 * once.
 */
TEST_F(sock, full_qdisc)
{
	struct tpacket_stats_v4 st;
	int i, n, sum = 0, full = 0;
	uint64_t end;

	ASSERT_EQ(0, set_qdisc("netem limit 4 delay 500ms"));
	for (i = 0; i < 20; i++)
		ASSERT_EQ(0, post_one(&self->tx, i));
	EXPECT_EQ(400, tp4_kick(&self->tx, MSG_DONTWAIT));
	EXPECT_EQ(-ENOBUFS, tp4_kick(&self->tx, MSG_DONTWAIT));
	EXPECT_EQ(0U, tp4_reap(&self->tx));
	for (i = 4; i < 20; i++)
		EXPECT_TRUE(desc_is_kernels(tp4_slot(&self->tx.tx, i)));
	ASSERT_EQ(0, tp4_stats(self->tx.fd, &st));
	EXPECT_EQ(2U, st.tx_ring_full);

	for (end = now_ms() + WAIT_MS; sum < 1600 && now_ms() < end; ) {
		n = tp4_kick(&self->tx, MSG_DONTWAIT);
		ASSERT_TRUE(n > 0 || n == -ENOBUFS);
		sum += n > 0 ? n : 0;
		full += n < 0;
		usleep(20000);
	}
	EXPECT_EQ(1600, sum);
	EXPECT_LT(0, full);
	EXPECT_TRUE(tp4_reap_all(&self->tx, WAIT_MS));
	EXPECT_EQ(20U, self->tx.errors[0]);
	for (i = 0; i < 20; i++)
		EXPECT_EQ(i, recv_one(&self->rx, WAIT_MS));
	EXPECT_EQ(-1, recv_one(&self->rx, QUIET_MS));
}

/* PACKET_LOSS: what would have to wait is dropped, and said to be. */
TEST_F(sock, packet_loss)
{
	struct tpacket4_desc d;
	int i, one = 1;

	ASSERT_EQ(0, set_qdisc("netem limit 4 delay 500ms"));
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
	EXPECT_EQ(400, tp4_kick(&self->tx, MSG_DONTWAIT));
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

TEST_F(sock, qdisc_bypass)
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
TEST_F(sock, kick_with_address)
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

/* Outgoing packets are seen, unless the socket says it wants none of them. */
TEST_F(sock, outgoing)
{
	ASSERT_EQ(0, tp4_bind(self->rx.fd, if_a, ETH_P_ALL));
	ASSERT_EQ(100, send_one(&self->tx, 1));
	EXPECT_EQ(1, recv_one(&self->rx, WAIT_MS));
	ASSERT_EQ(0, tp4_setint(self->rx.fd, PACKET_IGNORE_OUTGOING, 1));
	ASSERT_EQ(100, send_one(&self->tx, 2));
	EXPECT_EQ(-1, recv_one(&self->rx, QUIET_MS));
}

TEST_HARNESS_MAIN
