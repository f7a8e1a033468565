// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4: who receives what. Binding, filters and fanout work as they do
 * for every packet socket.
 */
#include "tpacket4.h"

#include <linux/filter.h>

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

/* A socket whose ring fills up leaves the rest to the others. */
TEST_F(sock, fanout_rollover)
{
	struct tp4_cfg cfg = { .ifname = if_b, .rx_nr = tp4_min_descs() };
	unsigned int nr = tp4_min_descs(), total = 2 * nr, i, got[2] = { 0 };
	int arg = PACKET_FANOUT_ROLLOVER << 16 | 17;
	struct tpacket_stats_v4 st;
	struct tp4 more[2], *s;

	tp4_close(&self->rx);
	for (i = 0; i < 2; i++) {
		/* the second is never short of room */
		cfg.rx_nr = nr << (2 * i);
		ASSERT_EQ(0, tp4_open(&more[i], &cfg));
		ASSERT_EQ(0, tp4_setint(more[i].fd, PACKET_FANOUT, arg));
	}
	for (i = 0; i < total; i++)
		ASSERT_EQ(100, send_one(&self->tx, i));
	for (i = 0; i < 2; i++) {
		s = &more[i];
		while (recv_one(s, QUIET_MS) >= 0)
			got[i]++;
		ASSERT_EQ(0, tp4_stats(s->fd, &st));
		EXPECT_EQ(0U, st.tp_drops);
	}
	TH_LOG("%u + %u", got[0], got[1]);
	EXPECT_EQ(total, got[0] + got[1]);
	EXPECT_LT(0U, got[0]);
	EXPECT_GE(nr, got[0]);
	for (i = 0; i < 2; i++)
		tp4_close(&more[i]);
	/* for the teardown */
	ASSERT_EQ(0, tp4_open(&self->rx, &cfg));
}

TEST_HARNESS_MAIN
