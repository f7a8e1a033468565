// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4: binding, filters and fanout work as for any packet socket. */
#include "bpf.h"

#include <linux/filter.h>

FIXTURE(sock) {
	struct pv4 tx, rx;
	char *buf;
};

FIXTURE_SETUP(sock)
{
	struct pv4_cfg tcfg = { .ifname = if_a, .tx_nr = pv4_min_descs() };
	struct pv4_cfg rcfg = { .ifname = if_b, .rx_nr = pv4_min_descs() };

	pv4_net_setup(_metadata);
	ASSERT_EQ(0, pv4_open(&self->tx, &tcfg));
	ASSERT_EQ(0, pv4_open(&self->rx, &rcfg));
	self->buf = malloc(1 << 17);
	ASSERT_TRUE(!!self->buf);
}

FIXTURE_TEARDOWN(sock)
{
	pv4_close(&self->tx);
	pv4_close(&self->rx);
	free(self->buf);
}

/* ---- binding ---- */

/* Not even a socket created for all protocols receives before bind(): V1 to V3
 * then receive from all interfaces, as V2 does here.
 */
TEST_F(sock, nothing_before_bind)
{
	struct pv4_cfg cfg = { .rx_nr = pv4_min_descs(), .proto = ETH_P_ALL };
	int other = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
	struct tpacket_stats_v4 st;
	struct pv4 s;
	int i;

	ASSERT_LE(0, other);
	ASSERT_EQ(0, pv4_open(&s, &cfg));
	for (i = 0; i < 10; i++)
		ASSERT_EQ(100, send_one(&self->tx, i));
	for (i = 0; i < 10; i++)
		EXPECT_EQ(i, recv_one(&self->rx, WAIT_MS));
	/* out of if_a, and into if_b */
	for (i = 0; i < 20; i++)
		EXPECT_EQ(100, plain_recv(other, self->buf, 100, WAIT_MS));
	EXPECT_EQ(-1, recv_one(&s, 0));
	ASSERT_EQ(0, pv4_stats(s.fd, &st));
	EXPECT_EQ(0U, st.tp_packets);
	EXPECT_EQ(0U, st.tp_drops);
	/* that changes with bind() */
	ASSERT_EQ(0, pv4_bind(s.fd, if_b, ETH_P_ALL));
	ASSERT_EQ(100, send_one(&self->tx, 10));
	EXPECT_EQ(10, recv_one(&s, WAIT_MS));
	pv4_close(&s);
	close(other);
}

TEST_F(sock, kick_unbound)
{
	struct pv4_cfg cfg = { .tx_nr = pv4_min_descs() };
	struct pv4 s;

	ASSERT_EQ(0, pv4_open(&s, &cfg));
	ASSERT_EQ(0, post_one(&s, 77));
	EXPECT_EQ(-ENXIO, pv4_kick(&s, MSG_DONTWAIT));
	EXPECT_TRUE(desc_is_kernels(pv4_slot(&s.tx, 0)));
	ASSERT_EQ(0, pv4_bind(s.fd, if_a, 0));
	EXPECT_EQ(100, pv4_kick(&s, 0));
	EXPECT_EQ(77, recv_one(&self->rx, WAIT_MS));
	EXPECT_TRUE(pv4_reap_all(&s, WAIT_MS));
	pv4_close(&s);
}

TEST_F(sock, rebind)
{
	int i, tx = plain_socket(_metadata, if_b, 0);
	char pkt[100];

	for (i = 0; i < 20; i++) {
		/* from if_b to if_a and from if_a to if_b in turn */
		ASSERT_EQ(0, pv4_bind(self->rx.fd, i & 1 ? if_a : if_b,
				      ETH_P_ALL));
		fill_packet(pkt, sizeof(pkt), i);
		ASSERT_EQ(100, i & 1 ? send(tx, pkt, sizeof(pkt), 0) :
				       send_one(&self->tx, i));
		ASSERT_EQ(i, recv_one(&self->rx, WAIT_MS));
	}
	close(tx);
}

/* Outgoing packets are received unless the socket ignores them. */
TEST_F(sock, outgoing)
{
	ASSERT_EQ(0, pv4_bind(self->rx.fd, if_a, ETH_P_ALL));
	ASSERT_EQ(100, send_one(&self->tx, 1));
	EXPECT_EQ(1, recv_one(&self->rx, WAIT_MS));
	ASSERT_EQ(0, pv4_setint(self->rx.fd, PACKET_IGNORE_OUTGOING, 1));
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

/* Sends forty packets, of which the filter accepts every other one. */
static void expect_odd(struct __test_metadata *_metadata,
		       struct _test_data_sock *self)
{
	struct tpacket_stats_v4 st;
	int i;

	ASSERT_EQ(0, pv4_stats(self->rx.fd, &st));
	for (i = 0; i < 40; i++)
		ASSERT_EQ(100, send_one(&self->tx, htonl(i << 24 | i)));
	for (i = 1; i < 40; i += 2)
		ASSERT_EQ((int)htonl(i << 24 | i),
			  recv_one(&self->rx, WAIT_MS));
	EXPECT_EQ(-1, recv_one(&self->rx, QUIET_MS));
	ASSERT_EQ(0, pv4_stats(self->rx.fd, &st));
	/* filtered packets are neither received nor dropped */
	EXPECT_EQ(20U, st.tp_packets);
	EXPECT_EQ(0U, st.tp_drops);
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
	/* the filter returns how many bytes to keep */
	struct sock_filter snap[] = { BPF_STMT(BPF_RET | BPF_K, 30) };
	struct sock_filter odd_len[] = { BPF_STMT(BPF_RET | BPF_K, 2049) };
	struct tpacket4_desc d;
	int dummy = 0, len;

	ASSERT_EQ(0, set_filter(self->rx.fd, odd, ARRAY_SIZE(odd)));
	expect_odd(_metadata, self);

	ASSERT_EQ(0, set_filter(self->rx.fd, snap, ARRAY_SIZE(snap)));
	ASSERT_EQ(100, send_one(&self->tx, 5));
	ASSERT_TRUE(pv4_take_wait(&self->rx, &self->rx.rx, &d, WAIT_MS));
	EXPECT_EQ(30U, d.len);
	EXPECT_EQ(0, d.flags);
	EXPECT_TRUE(packet_ok(pv4_frame(&self->rx, d.idx), 30, 30, 5));
	EXPECT_EQ((char)UNTOUCHED, pv4_frame(&self->rx, d.idx)[30 + 70]);
	pv4_rx_post(&self->rx, d.idx);

	/* cut right behind a frame's end: the chain has two, of 2048 and 1 */
	ASSERT_EQ(0, set_filter(self->rx.fd, odd_len, ARRAY_SIZE(odd_len)));
	fill_packet(self->buf, 9000, 6);
	ASSERT_EQ(0, pv4_put(&self->tx, self->buf, 9000, 2048, 0));
	ASSERT_EQ(9000, pv4_kick(&self->tx, 0));
	len = pv4_recv(&self->rx, self->buf, 1 << 17, WAIT_MS);
	EXPECT_TRUE(packet_ok(self->buf, len, 2049, 6));

	ASSERT_EQ(0, setsockopt(self->rx.fd, SOL_SOCKET, SO_DETACH_FILTER,
				&dummy, sizeof(dummy)));
	ASSERT_EQ(100, send_one(&self->tx, 4));
	EXPECT_EQ(4, recv_one(&self->rx, WAIT_MS));
}

/* SO_ATTACH_BPF */
TEST_F(sock, bpf)
{
	struct bpf_insn odd[] = {
		/* for loads from the packet, the context is here */
		MOV_X(BPF_REG_6, BPF_REG_1),
		INSN(BPF_LD | BPF_B | BPF_ABS, 0, 0, 0, ETH_HLEN),
		AND_K(BPF_REG_0, 1),
		JMP_K(BPF_JEQ, BPF_REG_0, 0, 1),
		MOV_K(BPF_REG_0, 0x40000),
		EXIT,
	};
	struct bpf_insn snap[] = { MOV_K(BPF_REG_0, 30), EXIT };
	int fd = self->rx.fd, prog, dummy = 0;
	struct tpacket4_desc d;

	prog = bpf_load(BPF_PROG_TYPE_SOCKET_FILTER, odd, ARRAY_SIZE(odd), 0);
	ASSERT_LE(0, prog);
	ASSERT_EQ(0, setsockopt(fd, SOL_SOCKET, SO_ATTACH_BPF, &prog,
				sizeof(prog)));
	close(prog);
	expect_odd(_metadata, self);

	prog = bpf_load(BPF_PROG_TYPE_SOCKET_FILTER, snap, ARRAY_SIZE(snap),
			0);
	ASSERT_LE(0, prog);
	ASSERT_EQ(0, setsockopt(fd, SOL_SOCKET, SO_ATTACH_BPF, &prog,
				sizeof(prog)));
	close(prog);
	ASSERT_EQ(100, send_one(&self->tx, 5));
	ASSERT_TRUE(pv4_take_wait(&self->rx, &self->rx.rx, &d, WAIT_MS));
	EXPECT_EQ(30U, d.len);
	pv4_rx_post(&self->rx, d.idx);

	ASSERT_EQ(0, setsockopt(fd, SOL_SOCKET, SO_DETACH_BPF, &dummy,
				sizeof(dummy)));
	ASSERT_EQ(100, send_one(&self->tx, 4));
	EXPECT_EQ(4, recv_one(&self->rx, WAIT_MS));
}

/* While the filter runs, a VLAN tag is in the skb's metadata, as for every
 * socket. In the ring it is back in the packet, and is added to the bytes that
 * the filter keeps.
 */
TEST_F(sock, filter_vlan)
{
	struct sock_filter vid_7[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 6),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 SKF_AD_OFF + SKF_AD_VLAN_TAG),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xfff),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 7, 0, 3),
		/* the protocol behind the tag */
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 2 * ETH_ALEN),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_TEST, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0x40000),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	static const unsigned int snaps[] = { 1, 11, 12, 13, 30, 2044, 2045 };
	unsigned int i, len;
	char want[3004];
	int got;

	ASSERT_EQ(0, set_filter(self->rx.fd, vid_7, ARRAY_SIZE(vid_7)));
	/* no tag, another tag, this tag */
	for (i = 0; i < 60; i++) {
		fill_packet(want, 200, i);
		len = 200;
		if (i % 3)
			len = add_tag(want, len, ETH_P_8021Q,
				      0x6000 | (i % 3 == 2 ? 7 : 8));
		ASSERT_EQ(0, pv4_put(&self->tx, want, len, 2048, 0));
		ASSERT_EQ((int)len, pv4_kick(&self->tx, 0));
		pv4_reap(&self->tx);
		if (i % 3 != 2)
			continue;
		got = pv4_recv(&self->rx, self->buf, 1 << 17, WAIT_MS);
		ASSERT_EQ((int)len, got);
		ASSERT_EQ(0, memcmp(want, self->buf, len));
	}
	for (i = 0; i < ARRAY_SIZE(snaps); i++) {
		struct sock_filter snap[] = {
			BPF_STMT(BPF_RET | BPF_K, snaps[i]),
		};

		ASSERT_EQ(0, set_filter(self->rx.fd, snap, 1));
		fill_packet(want, 3000, i);
		len = add_tag(want, 3000, ETH_P_8021Q, 7);
		ASSERT_EQ(0, pv4_put(&self->tx, want, len, 2048, 0));
		ASSERT_EQ((int)len, pv4_kick(&self->tx, 0));
		got = pv4_recv(&self->rx, self->buf, 1 << 17, WAIT_MS);
		ASSERT_EQ((int)snaps[i] + 4, got);
		ASSERT_EQ(0, memcmp(want, self->buf, got));
		ASSERT_TRUE(pv4_reap_all(&self->tx, WAIT_MS));
	}
}

/* ---- memberships ---- */

static int change_membership(int fd, bool add, int type, const char *mac)
{
	struct packet_mreq mreq = {
		.mr_ifindex = if_nametoindex("v4mac"),
		.mr_type = type, .mr_alen = ETH_ALEN,
	};

	memcpy(mreq.mr_address, mac, ETH_ALEN);
	return pv4_setopt(fd, add ? PACKET_ADD_MEMBERSHIP :
			  PACKET_DROP_MEMBERSHIP, &mreq, sizeof(mreq));
}

/* Sends to this multicast address and then to all: returns 1 if both are
 * received, 0 if only the second is, which always is.
 */
static int multicast_arrives(struct _test_data_sock *self, struct pv4 *s,
			     const char *mac)
{
	char pkt[100], got[100];
	int i, n = 0;

	for (i = 0; i < 2; i++) {
		fill_packet(pkt, sizeof(pkt), i);
		memcpy(pkt, i ? "\xff\xff\xff\xff\xff\xff" : mac, ETH_ALEN);
		pv4_reap(&self->tx);
		if (pv4_put(&self->tx, pkt, sizeof(pkt), 2048, 0) ||
		    pv4_kick(&self->tx, 0) != sizeof(pkt))
			return -1;
	}
	do {
		if (pv4_recv(s, got, sizeof(got), WAIT_MS) != sizeof(got))
			return -2;
		n++;
	} while (memcmp(pkt, got, sizeof(got)));
	return n - 1;
}

/* The same, until it returns @want: newer kernels update the filter of a macvlan
 * from a work queue.
 */
static int multicast_is(struct _test_data_sock *self, struct pv4 *s,
			const char *mac, int want)
{
	uint64_t end = now_ms() + WAIT_MS;
	int got;

	do
		got = multicast_arrives(self, s, mac);
	while (got >= 0 && got != want && now_ms() < end);
	return got;
}

/* A macvlan updates its filter before it removes an address, so trigger another
 * update.
 */
static int make_filter_anew(int fd, const char *mac)
{
	int err = change_membership(fd, true, PACKET_MR_ALLMULTI, mac);

	return err ? err : change_membership(fd, false, PACKET_MR_ALLMULTI,
					     mac);
}

/* A macvlan only accepts multicast addresses that were requested. */
TEST_F(sock, memberships)
{
	static const int types[] = {
		PACKET_MR_MULTICAST, PACKET_MR_ALLMULTI, PACKET_MR_PROMISC,
	};
	struct pv4_cfg cfg = { .ifname = "v4mac", .rx_nr = pv4_min_descs() };
	char mac[] = { 1, 0, 0x5e, 1, 2, 0 };
	struct pv4 s;
	int i;

	ASSERT_EQ(0, run_ip("link add link %s name v4mac type macvlan mode bridge\n"
			    "link set v4mac up\n", if_b));
	ASSERT_EQ(0, pv4_open(&s, &cfg));
	/* its filter is a hash: find an address that shares no bucket */
	for (; mac[5] < 16; mac[5]++)
		if (!multicast_arrives(self, &s, mac))
			break;
	ASSERT_GT(16, mac[5]);
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		ASSERT_EQ(0, change_membership(s.fd, true, types[i], mac));
		EXPECT_EQ(1, multicast_is(self, &s, mac, 1));
		ASSERT_EQ(0, change_membership(s.fd, false, types[i], mac));
		ASSERT_EQ(0, make_filter_anew(s.fd, mac));
		EXPECT_EQ(0, multicast_is(self, &s, mac, 0)) {
			TH_LOG("after membership of type %d", types[i]);
		}
	}
	/* it is also removed with the socket */
	ASSERT_EQ(0, change_membership(s.fd, true, PACKET_MR_MULTICAST, mac));
	EXPECT_EQ(1, multicast_is(self, &s, mac, 1));
	pv4_close(&s);
	ASSERT_EQ(0, pv4_open(&s, &cfg));
	ASSERT_EQ(0, make_filter_anew(s.fd, mac));
	EXPECT_EQ(0, multicast_is(self, &s, mac, 0));
	pv4_close(&s);
}

/* ---- fanout ---- */

#define NR_FANOUT	3

FIXTURE(fanout) {
	struct pv4 tx, rx[NR_FANOUT];
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
	struct pv4_cfg tcfg = { .ifname = if_a, .tx_nr = pv4_min_descs() };
	struct pv4_cfg rcfg = { .ifname = if_b, .rx_nr = pv4_min_descs() };
	int i;

	pv4_net_setup(_metadata);
	ASSERT_EQ(0, pv4_open(&self->tx, &tcfg));
	for (i = 0; i < NR_FANOUT; i++) {
		ASSERT_EQ(0, pv4_open(&self->rx[i], &rcfg));
		ASSERT_EQ(0, pv4_setint(self->rx[i].fd, PACKET_FANOUT,
					variant->mode << 16 | 4711));
	}
	memset(self->owner, 0xff, sizeof(self->owner));
}

FIXTURE_TEARDOWN(fanout)
{
	int i;

	for (i = 0; i < NR_FANOUT; i++)
		pv4_close(&self->rx[i]);
	pv4_close(&self->tx);
}

static void drain_fanout(struct _test_data_fanout *self)
{
	char buf[256];
	int i, *owner;

	for (i = 0; i < NR_FANOUT; i++) {
		while (pv4_recv(&self->rx[i], buf, sizeof(buf), 20) > 0) {
			owner = &self->owner[buf[35] % 64];
			self->got[i]++;
			self->split |= *owner >= 0 && *owner != i;
			*owner = i;
		}
	}
}

/* Every packet is received by one socket of the group, the right one. */
TEST_F(fanout, spread)
{
	unsigned int i, sum = 0, busy = 0, used = 0, total = 1920;
	struct tpacket_stats_v4 st;
	char buf[90];

	pin_to_cpu(0);
	for (i = 0; i < total; i++) {
		fill_udp(buf, sizeof(buf), 1024 + i % 64, i);
		ASSERT_EQ(0, pv4_put(&self->tx, buf, sizeof(buf), 2048, 0));
		ASSERT_EQ((int)sizeof(buf), pv4_kick(&self->tx, 0));
		pv4_reap(&self->tx);
		if (!(i % 96))
			drain_fanout(self);
	}
	drain_fanout(self);
	for (i = 0; i < NR_FANOUT; i++) {
		ASSERT_EQ(0, pv4_stats(self->rx[i].fd, &st));
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

/* Leaving the group loses no packet. */
TEST_F(fanout, leave)
{
	unsigned int i, sum = 0;
	char buf[90];

	pv4_close(&self->rx[2]);
	for (i = 0; i < 128; i++) {
		fill_udp(buf, sizeof(buf), 1024 + i % 64, i);
		ASSERT_EQ(0, pv4_put(&self->tx, buf, sizeof(buf), 2048, 0));
		ASSERT_EQ((int)sizeof(buf), pv4_kick(&self->tx, 0));
		pv4_reap(&self->tx);
	}
	for (i = 0; i < 2; i++)
		while (pv4_recv(&self->rx[i], buf, sizeof(buf), QUIET_MS) > 0)
			sum++;
	EXPECT_EQ(128U, sum);
}

/* With rollover, packets for a full ring go to the other sockets. */
TEST_F(sock, fanout_rollover)
{
	struct pv4_cfg cfg = { .ifname = if_b, .rx_nr = pv4_min_descs() };
	unsigned int nr = pv4_min_descs(), total = 2 * nr, i, got[2] = { 0 };
	int arg = PACKET_FANOUT_ROLLOVER << 16 | 17;
	struct tpacket_stats_v4 st;
	struct pv4 more[2], *s;

	pv4_close(&self->rx);
	for (i = 0; i < 2; i++) {
		/* the second one always has room */
		cfg.rx_nr = nr << (2 * i);
		ASSERT_EQ(0, pv4_open(&more[i], &cfg));
		ASSERT_EQ(0, pv4_setint(more[i].fd, PACKET_FANOUT, arg));
	}
	for (i = 0; i < total; i++)
		ASSERT_EQ(100, send_one(&self->tx, i));
	for (i = 0; i < 2; i++) {
		s = &more[i];
		while (recv_one(s, QUIET_MS) >= 0)
			got[i]++;
		ASSERT_EQ(0, pv4_stats(s->fd, &st));
		EXPECT_EQ(0U, st.tp_drops);
	}
	TH_LOG("%u + %u", got[0], got[1]);
	EXPECT_EQ(total, got[0] + got[1]);
	EXPECT_LT(0U, got[0]);
	EXPECT_GE(nr, got[0]);
	for (i = 0; i < 2; i++)
		pv4_close(&more[i]);
	/* for the teardown */
	ASSERT_EQ(0, pv4_open(&self->rx, &cfg));
}

/* The same for packed rings, whose memory is full long before the slots are
 * used: the reader has stopped.
 */
#define NR_PACKED	64		/* packets that fit */
#define PACKED_LEN	2000

static void open_packed(struct __test_metadata *_metadata, struct pv4 *s)
{
	unsigned int i, nr = 4 * NR_PACKED;

	if (nr < pv4_min_descs())
		nr = pv4_min_descs();
	*s = (struct pv4) {
		.fd = pv4_socket(), .frame_size = 2048,
		.area_len = NR_PACKED * 2048,
		.area = pv4_new_area(NR_PACKED * 2048),
	};
	ASSERT_LE(0, s->fd);
	ASSERT_TRUE(s->area != MAP_FAILED);
	ASSERT_EQ(0, pv4_memreg(s->fd, s->area, s->area_len, 2048, 0));
	ASSERT_EQ(0, pv4_set_ring_flags(s->fd, PACKET_RX_RING, s->fd, nr,
					TP4_RING_PACKED));
	ASSERT_EQ(0, pv4_map_rings(s, nr, 0));
	for (i = 0; i < nr; i++)
		pv4_rx_post(s, 0);
	ASSERT_EQ(0, pv4_bind(s->fd, if_b, ETH_P_ALL));
}

static void send_udp(struct __test_metadata *_metadata, struct pv4 *tx,
		     unsigned int len, unsigned int port)
{
	char buf[PACKED_LEN];

	fill_udp(buf, len, port, 0);
	pv4_reap(tx);
	ASSERT_EQ(0, pv4_put(tx, buf, len, 2048, 0));
	ASSERT_EQ((int)len, pv4_kick(tx, MSG_DONTWAIT));
}

/* Number of packets that were received and not dropped since the last call */
static unsigned int received(struct __test_metadata *_metadata, struct pv4 *s)
{
	struct tpacket_stats_v4 st;

	ASSERT_EQ(0, pv4_stats(s->fd, &st));
	EXPECT_EQ(0U, st.tp_drops);
	return st.tp_packets - st.tp_drops;
}

FIXTURE(rollover_packed) {
	struct pv4 tx, rx[2];
};

FIXTURE_VARIANT(rollover_packed) {
	int mode;
	unsigned int least;		/* packets for the first socket */
};

FIXTURE_VARIANT_ADD(rollover_packed, rollover) {
	.mode = PACKET_FANOUT_ROLLOVER, .least = NR_PACKED / 2,
};

/* to the last packet that fits */
FIXTURE_VARIANT_ADD(rollover_packed, hash) {
	.mode = PACKET_FANOUT_HASH | PACKET_FANOUT_FLAG_ROLLOVER,
	.least = NR_PACKED - 4,
};

FIXTURE_SETUP(rollover_packed)
{
	struct pv4_cfg tcfg = { .ifname = if_a, .tx_nr = pv4_min_descs() };
	int i;

	pv4_net_setup(_metadata);
	ASSERT_EQ(0, pv4_open(&self->tx, &tcfg));
	for (i = 0; i < 2; i++) {
		open_packed(_metadata, &self->rx[i]);
		ASSERT_EQ(0, pv4_setint(self->rx[i].fd, PACKET_FANOUT,
					variant->mode << 16 | 18));
	}
}

FIXTURE_TEARDOWN(rollover_packed)
{
	pv4_close(&self->rx[0]);
	pv4_close(&self->rx[1]);
	pv4_close(&self->tx);
}

TEST_F(rollover_packed, memory_is_full)
{
	unsigned int i, got[2] = { 0 }, total = NR_PACKED * 5 / 4;
	unsigned int ports[64], nr = 0;
	struct tpacket4_desc d;

	/* flows of the first socket */
	for (i = 0; i < ARRAY_SIZE(ports); i++) {
		send_udp(_metadata, &self->tx, 100, 1024 + i);
		if (received(_metadata, &self->rx[0]))
			ports[nr++] = 1024 + i;
		else
			EXPECT_EQ(1U, received(_metadata, &self->rx[1]));
	}
	ASSERT_LE(16U, nr);
	for (i = 0; i < 2; i++)
		while (pv4_take(&self->rx[i].rx, &d))
			pv4_rx_post(&self->rx[i], d.idx);

	for (i = 0; i < total; i++) {
		send_udp(_metadata, &self->tx, PACKED_LEN, ports[i % nr]);
		got[0] += received(_metadata, &self->rx[0]);
		got[1] += received(_metadata, &self->rx[1]);
		ASSERT_EQ(i + 1, got[0] + got[1]);
	}
	TH_LOG("%u + %u", got[0], got[1]);
	EXPECT_LE(variant->least, got[0]);
	EXPECT_LT(0U, got[1]);
}

TEST_HARNESS_MAIN
