// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4, zero-copy mode: a socket that feeds a fanout group. Each packet
 * of its queue goes to one member, the right one, and no frame is lost.
 */
#include <linux/virtio_net.h>
#include <sys/uio.h>

#include "zc_fanout.h"

#define PKTS		192
#define FLOWS		32

FIXTURE(fanout) {
	struct zc tx;			/* zero-copy on if_a */
	struct group g;
	char *buf;
	unsigned int got[NR_MEMBERS + 1];
	unsigned char seen[PKTS];	/* 1 plus the member that got it */
};

FIXTURE_VARIANT(fanout) {
	bool copy, meta;
};

FIXTURE_VARIANT_ADD(fanout, swap) { };

FIXTURE_VARIANT_ADD(fanout, copy) { .copy = true };

FIXTURE_VARIANT_ADD(fanout, swap_meta) { .meta = true };

FIXTURE_VARIANT_ADD(fanout, copy_meta) { .copy = true, .meta = true };

FIXTURE_SETUP(fanout)
{
	struct zc_cfg tx = { .ifname = if_a, .n = 1 };

	group_net_setup(_metadata);
	ASSERT_EQ(0, zc_open(&self->tx, &tx));
	self->buf = malloc(BUF_SIZE);
	ASSERT_TRUE(!!self->buf);
	group_init(&self->g, PACKET_FANOUT_LB);
	self->g.copy = variant->copy;
	self->g.meta = variant->meta;
}

FIXTURE_TEARDOWN(fanout)
{
	group_close(&self->g);
	zc_close(&self->tx);
	free(self->buf);
}

static int start(struct _test_data_fanout *self, int type)
{
	int err;

	self->g.type = type;
	err = group_open_all(&self->g);
	return err ? err : group_feed(&self->g, &self->g.feed, 1);
}

static struct zc *member_of(struct _test_data_fanout *self, unsigned int i)
{
	return i < NR_MEMBERS ? &self->g.member[i] : &self->g.feed;
}

/* Receives a packet on one of the first @nr sockets. Returns its length, 0 if
 * there was none, or < 0.
 */
static int recv_of(struct _test_data_fanout *self, unsigned int nr,
		   unsigned int *who, int ms)
{
	uint64_t end = now_ms() + ms;
	unsigned int i;
	int len;

	do {
		for (i = 0; i < nr; i++) {
			struct zc *z = member_of(self, i);

			if (z->s.fd < 0)
				continue;
			len = zc_recv(z, self->buf, BUF_SIZE, 0);
			if (len == -EAGAIN)
				continue;
			*who = i;
			return len;
		}
		sched_yield();
	} while (now_ms() < end);
	return 0;
}

static int recv_any(struct _test_data_fanout *self, unsigned int *who, int ms)
{
	return recv_of(self, NR_MEMBERS + 1, who, ms);
}

/* Receives a packet of the numbers below PKTS that was not yet received. Returns
 * who got it, or < 0.
 */
static int recv_seq(struct _test_data_fanout *self, int ms)
{
	unsigned int who = 0;
	uint32_t seq;
	int len;

	len = recv_any(self, &who, ms);
	if (len <= 0)
		return len ? len : -EAGAIN;
	seq = packet_seq(self->buf);
	if (seq >= PKTS || self->seen[seq] ||
	    !packet_ok(self->buf, len, len_of(seq), seq)) {
		printf("# packet %u of %d bytes\n", seq, len);
		return -EBADMSG;
	}
	self->seen[seq] = 1 + who;
	self->got[who]++;
	return who;
}

/* Sends PKTS packets in bursts, and checks that each arrives once. */
static void pass_all(struct __test_metadata *_metadata,
		     struct _test_data_fanout *self)
{
	unsigned int i, n, burst = 16;

	memset(self->seen, 0, sizeof(self->seen));
	memset(self->got, 0, sizeof(self->got));
	for (i = 0; i < PKTS; i += burst) {
		for (n = 0; n < burst; n++)
			ASSERT_EQ(0, zc_put_seq(&self->tx, len_of(i + n), i + n));
		ASSERT_EQ(0, zc_kick(&self->tx));
		for (n = 0; n < burst; n++)
			ASSERT_LE(0, recv_seq(self, WAIT_MS));
	}
	EXPECT_TRUE(zc_reap_all(&self->tx, WAIT_MS));
	EXPECT_EQ(-EAGAIN, recv_seq(self, 20));
	EXPECT_TRUE(group_balances(&self->g));
}

static void expect_counted(struct __test_metadata *_metadata,
			   struct _test_data_fanout *self)
{
	struct tpacket_stats_v4 st;
	unsigned int i;

	for (i = 0; i < NR_MEMBERS; i++) {
		ASSERT_EQ(0, pv4_stats(self->g.member[i].s.fd, &st));
		EXPECT_EQ(self->got[i], st.tp_packets);
		EXPECT_EQ(0U, st.tp_drops);
	}
}

/* ---- who gets a packet ---- */

TEST_F(fanout, lb)
{
	unsigned int i;

	ASSERT_EQ(0, start(self, PACKET_FANOUT_LB));
	pass_all(_metadata, self);
	for (i = 1; i < PKTS; i++)
		EXPECT_NE(self->seen[i - 1], self->seen[i]);
	EXPECT_EQ(PKTS / 2, self->got[0]);
	EXPECT_EQ(PKTS / 2, self->got[1]);
	expect_counted(_metadata, self);
	group_expect_back(_metadata, &self->g);
}

TEST_F(fanout, cpu)
{
	ASSERT_EQ(0, start(self, PACKET_FANOUT_CPU));
	pass_all(_metadata, self);
	EXPECT_EQ(PKTS, self->got[0] + self->got[1]);
	expect_counted(_metadata, self);
	group_expect_back(_metadata, &self->g);
}

TEST_F(fanout, rnd)
{
	ASSERT_EQ(0, start(self, PACKET_FANOUT_RND));
	pass_all(_metadata, self);
	EXPECT_LT(0U, self->got[0]);
	EXPECT_LT(0U, self->got[1]);
	EXPECT_EQ(PKTS, self->got[0] + self->got[1]);
	expect_counted(_metadata, self);
	group_expect_back(_metadata, &self->g);
}

/* The first queue has number 1, as the mapping of an skb has. */
TEST_F(fanout, qm)
{
	ASSERT_EQ(0, start(self, PACKET_FANOUT_QM));
	pass_all(_metadata, self);
	EXPECT_EQ(PKTS, self->got[1]);
	expect_counted(_metadata, self);
	group_expect_back(_metadata, &self->g);
}

/* The program sees the packet from the network header on: its number first. */
TEST_F(fanout, cbpf)
{
	struct sock_filter insns[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, LOW_BYTE),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};
	struct sock_filter ll[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, SKF_LL_OFF + ETH_HLEN + LOW_BYTE),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};
	struct sock_fprog prog = { .len = 2, .filter = insns };
	unsigned int i;

	ASSERT_EQ(0, start(self, PACKET_FANOUT_CBPF));
	/* without a program, the first one */
	pass_all(_metadata, self);
	EXPECT_EQ(PKTS, self->got[0]);
	expect_counted(_metadata, self);

	ASSERT_EQ(0, pv4_setopt(self->g.feed.s.fd, PACKET_FANOUT_DATA, &prog,
				sizeof(prog)));
	pass_all(_metadata, self);
	for (i = 0; i < PKTS; i++)
		EXPECT_EQ(1 + (i & 0xff) % 2, self->seen[i]);

	prog.filter = ll;
	ASSERT_EQ(0, pv4_setopt(self->g.member[0].s.fd, PACKET_FANOUT_DATA,
				&prog, sizeof(prog)));
	pass_all(_metadata, self);
	for (i = 0; i < PKTS; i++)
		EXPECT_EQ(1 + (i & 0xff) % 2, self->seen[i]);
	group_expect_back(_metadata, &self->g);
}

/* A program can read all of the packet's first frame, and knows its length. */
TEST_F(fanout, cbpf_reads_far)
{
	struct sock_filter insns[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 1000, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 1000),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};
	struct sock_fprog prog = { .len = 5, .filter = insns };
	char pkt[1400];
	unsigned int i;

	ASSERT_EQ(0, start(self, PACKET_FANOUT_CBPF));
	ASSERT_EQ(0, pv4_setopt(self->g.feed.s.fd, PACKET_FANOUT_DATA, &prog,
				sizeof(prog)));
	pass_all(_metadata, self);
	for (i = 0; i < PKTS; i++) {
		if (len_of(i) != sizeof(pkt))
			continue;
		fill_packet(pkt, sizeof(pkt), i);
		EXPECT_EQ(1 + (pkt[ETH_HLEN + 1000] & 1), self->seen[i]);
	}
	group_expect_back(_metadata, &self->g);
}

TEST_F(fanout, ebpf)
{
	struct bpf_insn insns[] = {
		MOV_X(BPF_REG_6, BPF_REG_1),
		INSN(BPF_LD | BPF_ABS | BPF_B, 0, 0, 0, LOW_BYTE),
		EXIT,
	};
	unsigned int i;
	int prog;

	ASSERT_EQ(0, start(self, PACKET_FANOUT_EBPF));
	prog = bpf_load(BPF_PROG_TYPE_SOCKET_FILTER, insns, ARRAY_SIZE(insns),
			0);
	ASSERT_LE(0, prog);
	ASSERT_EQ(0, pv4_setopt(self->g.feed.s.fd, PACKET_FANOUT_DATA, &prog,
				sizeof(prog)));
	pass_all(_metadata, self);
	for (i = 0; i < PKTS; i++)
		EXPECT_EQ(1 + (i & 0xff) % 2, self->seen[i]);
	group_expect_back(_metadata, &self->g);
}

/* Writes the lowest byte of the packet's number as metadata, but passes packets
 * whose number has bit 4 set without any.
 */
static int xdp_number(__u32 flags)
{
	struct bpf_insn prog[] = {
		MOV_X(BPF_REG_6, BPF_REG_1),
		LOAD(BPF_W, BPF_REG_2, BPF_REG_6, CTX_DATA),
		LOAD(BPF_W, BPF_REG_3, BPF_REG_6, CTX_DATA_END),
		MOV_X(BPF_REG_4, BPF_REG_2),
		ADD_K(BPF_REG_4, ETH_HLEN + 4),
		JMP_X(BPF_JGT, BPF_REG_4, BPF_REG_3, 14),
		LOAD(BPF_B, BPF_REG_7, BPF_REG_2, ETH_HLEN + LOW_BYTE),
		MOV_X(BPF_REG_8, BPF_REG_7),
		AND_K(BPF_REG_8, 16),
		JMP_K(BPF_JNE, BPF_REG_8, 0, 10),
		MOV_X(BPF_REG_1, BPF_REG_6),
		MOV_K(BPF_REG_2, -4),
		CALL(BPF_FUNC_xdp_adjust_meta),
		JMP_K(BPF_JNE, BPF_REG_0, 0, 6),
		LOAD(BPF_W, BPF_REG_2, BPF_REG_6, CTX_DATA_META),
		LOAD(BPF_W, BPF_REG_3, BPF_REG_6, CTX_DATA),
		MOV_X(BPF_REG_4, BPF_REG_2),
		ADD_K(BPF_REG_4, 4),
		JMP_X(BPF_JGT, BPF_REG_4, BPF_REG_3, 1),
		STORE(BPF_W, BPF_REG_2, BPF_REG_7, 0),
		MOV_K(BPF_REG_0, XDP_PASS),
		EXIT,
	};

	return xdp_load(prog, ARRAY_SIZE(prog), flags);
}

static unsigned int xdp_choice(uint32_t seq)
{
	return seq & 16 ? 0 : (seq & 0xff) % 2;
}

TEST_F(fanout, xdp)
{
	int prog = xdp_number(BPF_F_XDP_HAS_FRAGS);
	unsigned int i;

	ASSERT_LE(0, prog);
	ASSERT_EQ(0, start(self, PACKET_FANOUT_XDP));
	ASSERT_EQ(0, xdp_attach_native(if_b, prog));
	pass_all(_metadata, self);
	for (i = 0; i < PKTS; i++)
		EXPECT_EQ(1 + xdp_choice(i), self->seen[i]);
	expect_counted(_metadata, self);
	group_expect_back(_metadata, &self->g);
}

/* With rollover, the skb has the XDP metadata, too. */
TEST_F(fanout, xdp_or_rollover)
{
	int prog = xdp_number(BPF_F_XDP_HAS_FRAGS);
	unsigned int i;

	ASSERT_LE(0, prog);
	ASSERT_EQ(0, start(self, PACKET_FANOUT_XDP |
				 PACKET_FANOUT_FLAG_ROLLOVER));
	ASSERT_EQ(0, xdp_attach_native(if_b, prog));
	pass_all(_metadata, self);
	for (i = 0; i < PKTS; i++)
		EXPECT_EQ(1 + xdp_choice(i), self->seen[i]);
	group_expect_back(_metadata, &self->g);
}

TEST_F(fanout, rollover)
{
	unsigned int total, i, who, got[NR_MEMBERS] = { 0 };
	struct tpacket_stats_v4 st;

	ASSERT_EQ(0, start(self, PACKET_FANOUT_ROLLOVER));
	total = self->g.member[0].s.rx.size * 5 / 4;
	for (i = 0; i < total; i++) {
		zc_reap(&self->tx);
		ASSERT_EQ(0, zc_send_seq(&self->tx, 60, i));
		ASSERT_TRUE(zc_reap_all(&self->tx, WAIT_MS));
	}
	for (i = 0; i < total; i++) {
		ASSERT_EQ(60, recv_any(self, &who, WAIT_MS));
		ASSERT_GT((unsigned int)NR_MEMBERS, who);
		got[who]++;
	}
	TH_LOG("%u + %u", got[0], got[1]);
	EXPECT_LT(0U, got[0]);
	EXPECT_LT(0U, got[1]);
	for (i = 0; i < NR_MEMBERS; i++) {
		ASSERT_EQ(0, pv4_stats(self->g.member[i].s.fd, &st));
		EXPECT_EQ(got[i], st.tp_packets);
		EXPECT_EQ(0U, st.tp_drops);
	}
	group_expect_back(_metadata, &self->g);
}

/* ---- a flow goes to the same member by ring and by stack ---- */

enum { F_UDP, F_UDP_BACK, F_TAGGED, F_IPV6, F_FRAGMENT, F_OPTIONS, F_OTHER,
	NR_FORMS };

/* Fills a packet of a flow; returns its length. */
static unsigned int fill_flow(char *p, unsigned int form, unsigned int flow)
{
	unsigned int len = 90;
	char tmp[4];

	fill_udp(p, len, 1024 + flow, flow);
	switch (form) {
	case F_UDP_BACK:
		memcpy(tmp, p + 26, 4);
		memcpy(p + 26, p + 30, 4);
		memcpy(p + 30, tmp, 4);
		memcpy(tmp, p + 34, 2);
		memcpy(p + 34, p + 36, 2);
		memcpy(p + 36, tmp, 2);
		break;
	case F_TAGGED:
		return add_tag(p, len, ETH_P_8021Q, 5);
	case F_IPV6:
		memset(p + 14, 0, 48);
		p[12] = ETH_P_IPV6 >> 8;
		p[13] = ETH_P_IPV6 & 0xff;
		p[14] = 0x60;
		p[19] = len - 54;
		p[20] = IPPROTO_UDP;
		p[21] = 64;
		p[22] = 0xfd;
		p[37] = flow;
		p[38] = 0xfd;
		p[53] = 1;
		p[54] = 4;
		p[55] = flow;
		p[57] = 7;
		break;
	case F_FRAGMENT:
		p[20] = 0x20;
		p[29] = flow;		/* no ports: tell them by address */
		break;
	case F_OPTIONS:
		/* a header of 24 bytes, and the ports behind it */
		memmove(p + 38, p + 34, len - 38);
		memset(p + 34, 1, 4);
		p[14] = 0x46;
		break;
	case F_OTHER:
		fill_packet(p, len, flow);
		break;
	}
	return len;
}

/* Sends a packet of each flow of a form and notes who gets it. */
static void spread_flows(struct __test_metadata *_metadata,
			 struct _test_data_fanout *self, unsigned int form,
			 unsigned char *owner)
{
	unsigned int i, len, who = 0;
	char pkt[128];

	for (i = 0; i < FLOWS; i++) {
		len = fill_flow(pkt, form, i);
		zc_reap(&self->tx);
		ASSERT_EQ(0, zc_put(&self->tx, pkt, len, 2048, 0));
		ASSERT_EQ(0, zc_kick(&self->tx));
		ASSERT_EQ((int)len, recv_any(self, &who, WAIT_MS));
		ASSERT_EQ(0, memcmp(pkt, self->buf, len));
		owner[i] = who;
	}
}

/* Packets of which only the link layer header is linear in the skb have the
 * member of their flow, too.
 */
static void expect_same_for_paged(struct __test_metadata *_metadata,
				  struct _test_data_fanout *self,
				  const unsigned char *owner)
{
	struct virtio_net_hdr hdr = { .hdr_len = ETH_HLEN };
	unsigned int i, who = 0;
	static char pkt[5000];
	struct iovec iov[] = {
		{ &hdr, sizeof(hdr) }, { pkt, sizeof(pkt) },
	};
	int fd = plain_socket(_metadata, if_a, 0);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, pv4_setint(fd, PACKET_VNET_HDR, 1));
	for (i = 0; i < FLOWS; i++) {
		fill_udp(pkt, sizeof(pkt), 1024 + i, i);
		ASSERT_EQ((int)(sizeof(hdr) + sizeof(pkt)), writev(fd, iov, 2));
		ASSERT_EQ((int)sizeof(pkt), recv_any(self, &who, WAIT_MS));
		ASSERT_EQ(0, memcmp(pkt, self->buf, sizeof(pkt)));
		EXPECT_EQ(owner[i], who);
	}
	close(fd);
}

TEST_F(fanout, hash)
{
	unsigned char ring[NR_FORMS][FLOWS], stack[NR_FORMS][FLOWS];
	unsigned int i, form, second;

	ASSERT_EQ(0, start(self, PACKET_FANOUT_HASH));
	for (form = 0; form < NR_FORMS; form++)
		spread_flows(_metadata, self, form, ring[form]);
	group_expect_back(_metadata, &self->g);
	/* then it would be a member itself */
	zc_close(&self->g.member[0]);
	zc_close(&self->g.member[1]);
	zc_close(&self->g.feed);
	group_init(&self->g, PACKET_FANOUT_HASH);
	self->g.copy = variant->copy;
	self->g.meta = variant->meta;
	ASSERT_EQ(0, group_open(&self->g, &self->g.feed,
				&(struct zc_cfg){ .rx_empty = true }));
	for (i = 0; i < NR_MEMBERS; i++) {
		ASSERT_EQ(0, group_open(&self->g, &self->g.member[i],
					&(struct zc_cfg){
						.meta = variant->meta }));
		ASSERT_EQ(0, group_join(&self->g, self->g.member[i].s.fd));
	}
	for (form = 0; form < NR_FORMS; form++) {
		spread_flows(_metadata, self, form, stack[form]);
		for (i = 0, second = 0; i < FLOWS; i++) {
			EXPECT_EQ(ring[form][i], stack[form][i]) {
				TH_LOG("form %u, flow %u", form, i);
			}
			second += stack[form][i];
		}
		if (form != F_OTHER) {
			EXPECT_LT(0U, second);
			EXPECT_GT((unsigned int)FLOWS, second);
		}
	}
	for (i = 0; i < FLOWS; i++) {
		EXPECT_EQ(ring[F_UDP][i], ring[F_UDP_BACK][i]);
		EXPECT_EQ(ring[F_UDP][i], ring[F_TAGGED][i]);
		EXPECT_EQ(ring[F_UDP][i], ring[F_OPTIONS][i]);
	}
	if (!on_ports())
		expect_same_for_paged(_metadata, self, stack[F_UDP]);
}

static int set_cbpf(struct _test_data_fanout *self, struct sock_filter *insns,
		    unsigned int nr)
{
	struct sock_fprog prog = { .len = nr, .filter = insns };

	return pv4_setopt(self->g.feed.s.fd, PACKET_FANOUT_DATA, &prog,
			  sizeof(prog));
}

/* A program finds the port behind options and without the tag, and it can use
 * all that the skb of a packet has.
 */
TEST_F(fanout, cbpf_of_flows)
{
	struct sock_filter port[] = {
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
		BPF_STMT(BPF_LD | BPF_B | BPF_IND, 1),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};
	struct sock_filter is_ip[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, SKF_AD_OFF + SKF_AD_PROTOCOL),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const unsigned int forms[] = { F_UDP, F_TAGGED, F_OPTIONS };
	unsigned char owner[FLOWS];
	unsigned int i, k;

	ASSERT_EQ(0, start(self, PACKET_FANOUT_CBPF));
	ASSERT_EQ(0, set_cbpf(self, port, ARRAY_SIZE(port)));
	for (k = 0; k < ARRAY_SIZE(forms); k++) {
		spread_flows(_metadata, self, forms[k], owner);
		for (i = 0; i < FLOWS; i++)
			EXPECT_EQ(i % 2, owner[i]);
	}
	ASSERT_EQ(0, set_cbpf(self, is_ip, ARRAY_SIZE(is_ip)));
	for (k = 0; k < ARRAY_SIZE(forms); k++) {
		spread_flows(_metadata, self, forms[k], owner);
		for (i = 0; i < FLOWS; i++)
			EXPECT_EQ(1, owner[i]);
	}
	spread_flows(_metadata, self, F_IPV6, owner);
	for (i = 0; i < FLOWS; i++)
		EXPECT_EQ(0, owner[i]);
	/* the first kind again, after the second */
	ASSERT_EQ(0, set_cbpf(self, port, ARRAY_SIZE(port)));
	spread_flows(_metadata, self, F_UDP, owner);
	for (i = 0; i < FLOWS; i++)
		EXPECT_EQ(i % 2, owner[i]);
	group_expect_back(_metadata, &self->g);
}

/* ---- what a member gets ---- */

TEST_F(fanout, metadata)
{
	struct tpacket4_meta *m;
	unsigned int i, who = 0;
	uint32_t seq;

	if (!variant->meta)
		SKIP(return, "members without metadata");
	ASSERT_EQ(0, start(self, PACKET_FANOUT_LB));
	for (i = 0; i < 14; i++) {
		ASSERT_EQ(0, zc_send_seq(&self->tx, len_of(i), i));
		ASSERT_EQ((int)len_of(i), recv_any(self, &who, WAIT_MS));
		seq = packet_seq(self->buf);
		ASSERT_EQ(i, seq);
		ASSERT_GT((unsigned int)NR_MEMBERS, who);
		m = &self->g.member[who].s.got;
		EXPECT_EQ(len_of(i), m->wire_len);
		EXPECT_EQ(if_nametoindex(if_b), m->ifindex);
		EXPECT_EQ(htons(ETH_P_TEST), m->protocol);
		EXPECT_EQ(ETH_ALEN, m->halen);
		EXPECT_EQ(0, memcmp(m->addr, self->buf + ETH_ALEN, ETH_ALEN));
		EXPECT_NE(0ULL, m->tstamp);
		EXPECT_EQ(0, m->xdp_meta_len);
	}
	group_expect_back(_metadata, &self->g);
}

/* The program's metadata comes with the packet if there is room for it. */
TEST_F(fanout, xdp_metadata)
{
	int prog = xdp_number(BPF_F_XDP_HAS_FRAGS);
	struct tpacket4_desc d;
	struct zc *z;
	__u32 got;

	if (!variant->meta)
		SKIP(return, "members without metadata");
	ASSERT_LE(0, prog);
	ASSERT_EQ(0, start(self, PACKET_FANOUT_XDP));
	ASSERT_EQ(0, xdp_attach_native(if_b, prog));
	ASSERT_EQ(0, zc_send_seq(&self->tx, 100, 1));
	z = &self->g.member[1];
	ASSERT_TRUE(zc_take_wait(z, &z->s.rx, &d, WAIT_MS));
	ASSERT_EQ(TP4_META, d.flags);
	memcpy(&z->s.got, pv4_frame(&z->s, d.idx), sizeof(z->s.got));
	memcpy(&got, pv4_frame(&z->s, d.idx) + d.offset - 4, sizeof(got));
	if (variant->copy) {
		/* the headroom is all used for tpacket4_meta */
		EXPECT_EQ(0, z->s.got.xdp_meta_len);
	} else {
		EXPECT_EQ(4, z->s.got.xdp_meta_len);
		EXPECT_EQ(1U, got);
	}
	EXPECT_TRUE(packet_ok(pv4_frame(&z->s, d.idx) + d.offset, d.len, 100,
			      1));
	zc_rx_post(z, d.idx);
	group_expect_back(_metadata, &self->g);
}

/* A filter cuts packets, or keeps them from the member. They do not count. */
TEST_F(fanout, filter)
{
	struct sock_filter insns[] = {
		/* the number, with SOCK_RAW behind the link layer header */
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, ETH_HLEN + LOW_BYTE),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 1, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, 2500),
	};
	struct sock_fprog prog = { .len = 4, .filter = insns };
	unsigned int i, who = 0, want;
	struct tpacket_stats_v4 st;
	uint32_t seq;

	ASSERT_EQ(0, start(self, PACKET_FANOUT_QM));
	ASSERT_EQ(0, setsockopt(self->g.member[1].s.fd, SOL_SOCKET,
				SO_ATTACH_FILTER, &prog, sizeof(prog)));
	for (i = 0; i < 28; i++)
		ASSERT_EQ(0, zc_send_seq(&self->tx, len_of(i), i));
	for (i = 0; i < 28; i += 2) {
		want = len_of(i) > 2500 ? 2500 : len_of(i);
		ASSERT_EQ((int)want, recv_any(self, &who, WAIT_MS));
		ASSERT_EQ(1U, who);
		seq = packet_seq(self->buf);
		ASSERT_EQ(i, seq);
		if (variant->meta)
			EXPECT_EQ(len_of(i), self->g.member[1].s.got.wire_len);
	}
	EXPECT_EQ(0, recv_any(self, &who, 20));
	ASSERT_EQ(0, pv4_stats(self->g.member[1].s.fd, &st));
	EXPECT_EQ(14U, st.tp_packets);
	EXPECT_EQ(0U, st.tp_drops);
	group_expect_back(_metadata, &self->g);
}

/* SOCK_DGRAM leaves out the link layer header and the tag. */
TEST_F(fanout, dgram)
{
	unsigned int nr = pv4_min_descs(), i, tagged;
	unsigned int lens[] = { 60, 300, on_ports() ? 1400 : 4500 };
	struct pv4_cfg cfg = {
		.ifname = if_b, .rx_nr = nr, .headroom = 64,
		.type = SOCK_DGRAM, .meta = variant->meta,
	};
	struct group *g = &self->g;
	struct zc z = { .s.fd = -1 };
	char want[5000];
	size_t len;

	ASSERT_EQ(0, group_open(g, &g->feed, &(struct zc_cfg){ }));
	if (!variant->copy) {
		cfg.area = g->feed.s.area;
		cfg.mr_fd = g->feed.s.fd;
		cfg.frames = g->feed.s.frames;
	}
	ASSERT_EQ(0, pv4_open(&z.s, &cfg));
	z.min_offset = z.s.offset;
	z.held = calloc(z.s.frames, 1);
	ASSERT_TRUE(!!z.held);
	/* its frames are not the feeder's */
	for (i = 0; i < nr; i++)
		z.s.rx.desc[i].idx = z.s.frames - 1 - i;
	ASSERT_EQ(0, group_join(g, z.s.fd));
	ASSERT_EQ(0, group_feed(g, &g->feed, 1));
	for (i = 0; i < 2 * ARRAY_SIZE(lens); i++) {
		tagged = i % 2;
		len = lens[i / 2];
		fill_packet(want, len, i);
		if (tagged)
			len = add_tag(want, len, ETH_P_8021Q, 7);
		zc_reap(&self->tx);
		ASSERT_EQ(0, zc_put(&self->tx, want, len, 2048, 0));
		ASSERT_EQ(0, zc_kick(&self->tx));
		len -= ETH_HLEN + 4 * tagged;
		ASSERT_EQ((int)len, zc_recv(&z, self->buf, BUF_SIZE, WAIT_MS));
		EXPECT_EQ(0, memcmp(want + ETH_HLEN + 4 * tagged, self->buf,
				    len));
		if (variant->meta) {
			EXPECT_EQ(htons(ETH_P_TEST), z.s.got.protocol);
			EXPECT_EQ(tagged ? 7 : 0, z.s.got.vlan_tci);
		}
	}
	if (!variant->copy)
		z.s.area_len = 0;	/* not its own */
	free(z.held);
	pv4_close(&z.s);
}

/* ---- a packed ring ---- */

#define PACKED_LEN	131072

/* Takes the next packet of a packed ring, and gives it back. */
static bool packed_recv(struct __test_metadata *_metadata, struct pv4 *s,
			unsigned int len, uint32_t seq, bool meta)
{
	struct tpacket4_desc d;

	if (!pv4_take_wait(s, &s->rx, &d, WAIT_MS))
		return false;
	EXPECT_EQ(0, d.error);
	EXPECT_EQ(meta ? TP4_META : 0, d.flags);
	EXPECT_TRUE(packet_ok(pv4_frame(s, d.idx) + d.offset, d.len, len, seq)) {
		TH_LOG("packet %u of %u bytes", seq, d.len);
	}
	pv4_rx_post(s, d.idx);
	return d.len == len;
}

/* It gets its share, as libpcap's copy mode expects, over several laps. */
TEST_F(fanout, packed)
{
	__u32 flags = TP4_RING_PACKED | (variant->meta ? TP4_RING_META : 0);
	unsigned int i, nr = pv4_min_descs(), got, n = PACKED_LEN / 512;
	struct group *g = &self->g;
	struct tpacket_stats_v4 st;
	struct tpacket4_desc d;
	struct pv4 s = {
		.fd = pv4_socket(), .frame_size = 2048, .area_len = PACKED_LEN,
		.area = pv4_new_area(PACKED_LEN),
	};
	unsigned int who = 0;

	g->type = PACKET_FANOUT_LB;
	ASSERT_EQ(0, group_open(g, &g->feed, &(struct zc_cfg){ }));
	ASSERT_EQ(0, group_open(g, &g->member[0],
				&(struct zc_cfg){ .meta = g->meta }));
	ASSERT_EQ(0, group_join(g, g->member[0].s.fd));
	ASSERT_LE(0, s.fd);
	ASSERT_TRUE(s.area != MAP_FAILED);
	ASSERT_EQ(0, pv4_memreg(s.fd, s.area, PACKED_LEN, 2048, 64));
	ASSERT_EQ(0, pv4_set_ring_flags(s.fd, PACKET_RX_RING, s.fd, nr, flags));
	ASSERT_EQ(0, pv4_map_rings(&s, nr, 0));
	for (i = 0; i < nr; i++)
		pv4_rx_post(&s, 0);
	ASSERT_EQ(0, pv4_bind(s.fd, if_b, ETH_P_ALL));
	ASSERT_EQ(0, group_join(g, s.fd));
	ASSERT_EQ(0, group_feed(g, &g->feed, 1));
	for (i = 0; i < 300; i++) {
		zc_reap(&self->tx);
		ASSERT_EQ(0, zc_send_seq(&self->tx, len_of(i), i));
		/* LB begins with the second member */
		if (i % 2 == 0) {
			ASSERT_TRUE(packed_recv(_metadata, &s, len_of(i), i,
						variant->meta));
		} else {
			ASSERT_EQ((int)len_of(i), recv_any(self, &who, WAIT_MS));
		}
	}
	ASSERT_EQ(0, pv4_stats(s.fd, &st));
	EXPECT_EQ(150U, st.tp_packets);
	EXPECT_EQ(0U, st.tp_drops);

	/* Its memory is used up; what is in it stays. */
	for (i = 0; i < n; i++) {
		zc_reap(&self->tx);
		ASSERT_EQ(0, zc_send_seq(&self->tx, 1500, i));
		if (i % 2)
			ASSERT_EQ(1500, recv_any(self, &who, WAIT_MS));
	}
	ASSERT_EQ(0, pv4_stats_of(s.fd, n / 2, &st));
	got = st.tp_packets - st.tp_drops;
	EXPECT_LT(0U, st.tp_drops);
	EXPECT_LT(PACKED_LEN / 2000U, got);
	for (i = 0; i < got; i++)
		ASSERT_TRUE(packed_recv(_metadata, &s, 1500, 2 * i,
					variant->meta));
	EXPECT_FALSE(pv4_take(&s.rx, &d));
	EXPECT_EQ(g->feed.s.rx.size, g->feed.s.rx.avail - g->feed.s.rx.used);
	pv4_close(&s);
}

/* ---- too few frames, and no members ---- */

/* The packets of a member that has no frames are dropped and counted. The others
 * get theirs, and no frame is lost.
 */
TEST_F(fanout, no_frames)
{
	struct group *g = &self->g;
	struct tpacket_stats_v4 st;
	unsigned int i, who = 0;

	g->type = PACKET_FANOUT_LB;
	ASSERT_EQ(0, group_open(g, &g->feed, &(struct zc_cfg){ }));
	for (i = 0; i < NR_MEMBERS; i++) {
		ASSERT_EQ(0, group_open(g, &g->member[i],
					&(struct zc_cfg){
						.rx_empty = !i,
						.meta = g->meta }));
		ASSERT_EQ(0, group_join(g, g->member[i].s.fd));
	}
	ASSERT_EQ(0, group_feed(g, &g->feed, 1));
	for (i = 0; i < PKTS; i++) {
		zc_reap(&self->tx);
		ASSERT_EQ(0, zc_send_seq(&self->tx, len_of(i), i));
		/* the other packets are for the one without frames */
		if (i % 2)
			continue;
		ASSERT_EQ((int)len_of(i), recv_any(self, &who, WAIT_MS));
		ASSERT_EQ(1U, who);
		ASSERT_EQ(i, packet_seq(self->buf));
	}
	EXPECT_TRUE(zc_reap_all(&self->tx, WAIT_MS));
	EXPECT_EQ(0, recv_any(self, &who, 20));
	ASSERT_EQ(0, pv4_stats(g->member[0].s.fd, &st));
	EXPECT_EQ(PKTS / 2, st.tp_drops);
	EXPECT_EQ(PKTS / 2, st.rx_no_desc);
	EXPECT_EQ(PKTS / 2, st.tp_packets);
	ASSERT_EQ(0, pv4_stats(g->member[1].s.fd, &st));
	EXPECT_EQ(0U, st.tp_drops);
	EXPECT_EQ(PKTS / 2, st.tp_packets);
	/* with frames, it gets packets again */
	for (i = 0; i < 8; i++)
		zc_rx_post(&g->member[0],
			   g->member[0].first + i);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, zc_send_seq(&self->tx, 60, i));
		ASSERT_EQ(60, recv_any(self, &who, WAIT_MS));
	}
	group_expect_back(_metadata, g);
}

/* Without members, the feeder receives its packets itself. */
TEST_F(fanout, no_members)
{
	struct group *g = &self->g;
	unsigned int i;

	g->type = PACKET_FANOUT_LB;
	ASSERT_EQ(0, group_open(g, &g->feed, &(struct zc_cfg){ }));
	ASSERT_EQ(0, group_feed(g, &g->feed, 1));
	pass_all(_metadata, self);
	EXPECT_EQ(PKTS, self->got[NR_MEMBERS]);

	for (i = 0; i < NR_MEMBERS; i++) {
		ASSERT_EQ(0, group_open(g, &g->member[i],
					&(struct zc_cfg){ .meta = g->meta }));
		ASSERT_EQ(0, group_join(g, g->member[i].s.fd));
	}
	pass_all(_metadata, self);
	EXPECT_EQ(PKTS / 2, self->got[0]);
	EXPECT_EQ(PKTS / 2, self->got[1]);

	if (variant->copy) {
		for (i = 0; i < NR_MEMBERS; i++) {
			zc_close(&g->member[i]);
			g->member[i].s.fd = -1;
		}
		pass_all(_metadata, self);
		EXPECT_EQ(PKTS, self->got[NR_MEMBERS]);
	}
	group_expect_back(_metadata, g);
}

/* All members restart while the feeder's program does not read: the feeder has
 * kept frames, so the new members get packets.
 */
TEST_F(fanout, members_restart)
{
	struct group *g = &self->g;
	unsigned int i, n, who = 0, nr;
	struct tpacket_stats_v4 st;
	struct tpacket4_desc d;

	ASSERT_EQ(0, start(self, PACKET_FANOUT_LB));
	pass_all(_metadata, self);
	for (i = 0; i < NR_MEMBERS; i++) {
		zc_close(&g->member[i]);
		g->member[i].s.fd = -1;
	}
	/* more than it has frames for */
	nr = 2 * g->feed.s.rx.size;
	ASSERT_EQ(0, pv4_stats(g->feed.s.fd, &st));
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(0, zc_send_seq(&self->tx, 60, i));
		ASSERT_TRUE(zc_reap_all(&self->tx, WAIT_MS));
	}
	ASSERT_EQ(0, pv4_stats_of(g->feed.s.fd, nr, &st));
	EXPECT_EQ(nr, st.tp_packets);
	EXPECT_LT(g->feed.s.rx.size, st.tp_drops);

	for (i = 0; i < NR_MEMBERS; i++) {
		ASSERT_EQ(0, group_open(g, &g->member[i],
					&(struct zc_cfg){ .meta = g->meta }));
		ASSERT_EQ(0, group_join(g, g->member[i].s.fd));
	}
	memset(self->got, 0, sizeof(self->got));
	for (i = 0; i < PKTS; i++) {
		ASSERT_EQ(0, zc_send_seq(&self->tx, len_of(i), i));
		ASSERT_EQ((int)len_of(i),
			  recv_of(self, NR_MEMBERS, &who, WAIT_MS));
		EXPECT_TRUE(packet_ok(self->buf, len_of(i), len_of(i), i));
		ASSERT_TRUE(zc_reap_all(&self->tx, WAIT_MS));
		self->got[who]++;
	}
	EXPECT_EQ(PKTS / 2, self->got[0]);
	EXPECT_EQ(PKTS / 2, self->got[1]);
	expect_counted(_metadata, self);

	/* The feeder has what came when there were no members. */
	for (n = 0; zc_take(&g->feed, &g->feed.s.rx, &d); n++)
		EXPECT_EQ(n, packet_seq(pv4_frame(&g->feed.s, d.idx) + d.offset));
	EXPECT_EQ(nr - st.tp_drops, n);
	/* Frames that members had when they closed are lost. */
	EXPECT_TRUE(!variant->copy || group_balances(g));
}

/* A ring that is removed drops what it is fed. */
TEST_F(fanout, ring_removed)
{
	struct group *g = &self->g;
	struct tpacket_stats_v4 st;
	unsigned int i;
	int fd;

	if (!variant->copy || variant->meta)
		SKIP(return, "does not depend on it");
	g->type = PACKET_FANOUT_QM;
	ASSERT_EQ(0, group_open(g, &g->feed, &(struct zc_cfg){ }));
	fd = pv4_socket();
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, pv4_set_ring(fd, PACKET_RX_RING, g->feed.s.fd,
				  pv4_min_descs()));
	ASSERT_EQ(0, pv4_bind(fd, if_b, ETH_P_ALL));
	ASSERT_EQ(0, group_join(g, fd));
	ASSERT_EQ(0, group_feed(g, &g->feed, 1));
	ASSERT_EQ(0, pv4_set_ring(fd, PACKET_RX_RING, g->feed.s.fd, 0));
	for (i = 0; i < 10; i++)
		ASSERT_EQ(0, zc_send_seq(&self->tx, 60, i));
	EXPECT_TRUE(zc_reap_all(&self->tx, WAIT_MS));
	usleep(QUIET_MS * 1000);
	ASSERT_EQ(0, pv4_stats(fd, &st));
	EXPECT_EQ(10U, st.tp_drops);
	close(fd);
	group_expect_back(_metadata, g);
}

/* ---- setup ---- */

TEST_F(fanout, refused)
{
	struct group *g = &self->g;
	int plain, fd = -1;
	struct zc z, *f = &g->feed;

	if (variant->copy || variant->meta)
		SKIP(return, "does not depend on it");
	/* to the stack, too */
	ASSERT_EQ(0, group_open(g, f, &(struct zc_cfg){ .to_stack = true }));
	ASSERT_EQ(0, group_join(g, f->s.fd));
	EXPECT_EQ(-EINVAL, zc_set(f, 1));
	zc_close(f);
	/* no Rx ring */
	fd = pv4_socket();
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, pv4_set_ring(fd, PACKET_TX_RING, self->tx.s.fd,
				  pv4_min_descs()));
	ASSERT_EQ(0, pv4_bind(fd, if_b, ETH_P_ALL));
	ASSERT_EQ(0, group_join(g, fd));
	EXPECT_EQ(-EINVAL, pv4_setint(fd, PACKET_ZEROCOPY, 1));
	close(fd);
	/* packets would have to be defragmented */
	g->type = PACKET_FANOUT_HASH | PACKET_FANOUT_FLAG_DEFRAG;
	ASSERT_EQ(0, group_open(g, f, &(struct zc_cfg){ }));
	ASSERT_EQ(0, group_join(g, f->s.fd));
	EXPECT_EQ(-EINVAL, zc_set(f, 1));
	zc_close(f);
	/* a member without a V4 ring */
	g->type = PACKET_FANOUT_LB;
	plain = plain_socket(_metadata, if_b, ETH_P_ALL);
	ASSERT_EQ(0, group_join(g, plain));
	ASSERT_EQ(0, group_open(g, f, &(struct zc_cfg){ }));
	ASSERT_EQ(0, group_join(g, f->s.fd));
	EXPECT_EQ(-EINVAL, zc_set(f, 1));
	close(plain);
	EXPECT_EQ(0, zc_set(f, 1));
	/* nor can one join later */
	plain = plain_socket(_metadata, if_b, ETH_P_ALL);
	EXPECT_EQ(-EINVAL, group_join(g, plain));
	/* one queue, one socket */
	ASSERT_EQ(0, group_open(g, &z, &(struct zc_cfg){ }));
	ASSERT_EQ(0, group_join(g, z.s.fd));
	EXPECT_EQ(-EBUSY, zc_set(&z, 1));
	/* a refused feeder does not count */
	zc_close(&z);
	ASSERT_EQ(0, zc_set(f, 0));
	EXPECT_EQ(0, group_join(g, plain));
	close(plain);
}

/* Only the feeder needs CAP_NET_ADMIN; tpacket4_cap tests that it does. The
 * socket stays in the group, as getsockopt() and packet_diag tell.
 */
TEST_F(fanout, get)
{
	socklen_t len = sizeof(int);
	int val = 0;

	ASSERT_EQ(0, start(self, PACKET_FANOUT_QM));
	ASSERT_EQ(0, getsockopt(self->g.feed.s.fd, SOL_PACKET, PACKET_FANOUT,
				&val, &len));
	EXPECT_EQ(PACKET_FANOUT_QM << 16 | GROUP_ID, val);
	EXPECT_EQ(1, zc_get(&self->g.feed));
	/* it is a member again */
	ASSERT_EQ(0, zc_set(&self->g.feed, 0));
	EXPECT_EQ(0, zc_get(&self->g.feed));
	EXPECT_EQ((int)self->g.feed.s.rx.size,
		  zc_all_back(&self->g.feed, ECANCELED, WAIT_MS));
	zc_refill(&self->g.feed);
	self->g.feed.min_offset = self->g.feed.s.offset;
	pass_all(_metadata, self);
	EXPECT_EQ(PKTS, self->got[0] + self->got[1] + self->got[2]);
}

/* ---- several feeders ---- */

/* Two queues feed one group, at the same time. */
TEST_F_TIMEOUT(fanout, two_feeders, 120)
{
	struct zc_cfg tx = { .ifname = if_a, .n = 2 };
	struct group *g = &self->g;
	unsigned int i, n = pv4_fast() ? 2000 : 20000, sum = 0, who, got;
	uint32_t next[2] = { 0, 0 }, seq;
	struct zc feed2, tx2;
	pid_t pid;
	int len;

	if (on_ports())
		SKIP(return, "packets would have to be steered");
	zc_close(&self->tx);
	ASSERT_EQ(0, two_channels());
	ASSERT_EQ(0, zc_open(&tx2, &tx));
	tx.n = 1;
	ASSERT_EQ(0, zc_open(&self->tx, &tx));
	g->type = PACKET_FANOUT_LB;
	ASSERT_EQ(0, group_open_all(g));
	ASSERT_EQ(0, group_open(g, &feed2, &(struct zc_cfg){ }));
	ASSERT_EQ(0, group_feed(g, &g->feed, 1));
	ASSERT_EQ(0, group_feed(g, &feed2, 2));

	pid = pv4_fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		/* the first bit of the number tells the queue */
		for (i = 0; i < n; i++) {
			while (zc_put_seq(&tx2, 60, 2 * i + 1))
				sched_yield();
			zc_kick(&tx2);
		}
		_exit(zc_reap_all(&tx2, WAIT_MS) ? 0 : 1);
	}
	for (i = 0; i < n || sum < n; ) {
		if (i < n && !zc_put_seq(&self->tx, 60, 2 * i)) {
			zc_kick(&self->tx);
			i++;
		}
		do {
			got = 0;
			for (who = 0; who < NR_MEMBERS; who++) {
				len = zc_recv(&g->member[who], self->buf,
					      BUF_SIZE, 0);
				if (len == -EAGAIN)
					continue;
				seq = packet_seq(self->buf);
				ASSERT_TRUE(packet_ok(self->buf, len, 60, seq));
				next[seq % 2]++;
				got++;
			}
			sum += got;
		} while (got);
		if (i == n && !got)
			break;
	}
	EXPECT_EQ(0, wait_for_exit(pid));
	EXPECT_TRUE(zc_reap_all(&self->tx, WAIT_MS));
	while (recv_any(self, &who, QUIET_MS) > 0) {
		next[packet_seq(self->buf) % 2]++;
		sum++;
	}
	for (who = 0; who < NR_MEMBERS; who++) {
		struct tpacket_stats_v4 st;

		ASSERT_EQ(0, pv4_stats(g->member[who].s.fd, &st));
		sum += st.tp_drops;
		TH_LOG("%u packets, %u dropped", st.tp_packets, st.tp_drops);
	}
	EXPECT_EQ(2 * n, sum);
	EXPECT_LT(0U, next[0]);
	EXPECT_LT(0U, next[1]);
	ASSERT_EQ(0, zc_set(&feed2, 0));
	EXPECT_EQ((int)feed2.s.rx.size, zc_all_back(&feed2, ECANCELED, WAIT_MS));
	EXPECT_EQ(0U, feed2.strays);
	group_expect_back(_metadata, g);
	zc_close(&feed2);
	zc_close(&tx2);
}

/* ---- PACKET_FANOUT_XDP of other sockets ---- */

FIXTURE(plain) {
	int fd[2], tx;
};

FIXTURE_VARIANT(plain) {
	__u32 flags;
};

FIXTURE_VARIANT_ADD(plain, native) { .flags = XDP_FLAGS_DRV_MODE };

FIXTURE_VARIANT_ADD(plain, generic) { .flags = XDP_FLAGS_SKB_MODE };

FIXTURE_SETUP(plain)
{
	int i;

	group_net_setup(_metadata);
	for (i = 0; i < 2; i++) {
		self->fd[i] = plain_listener(_metadata, if_b);
		ASSERT_EQ(0, pv4_setint(self->fd[i], PACKET_FANOUT,
					(PACKET_FANOUT_XDP |
					 PACKET_FANOUT_FLAG_IGNORE_OUTGOING) <<
					16 | GROUP_ID));
	}
	self->tx = plain_socket(_metadata, if_a, 0);
}

FIXTURE_TEARDOWN(plain)
{
	/* or no queue of a port could enter zero-copy mode */
	xdp_attach(if_b, -1, variant->flags);
	close(self->fd[0]);
	close(self->fd[1]);
	close(self->tx);
}

/* Sockets without a ring, and any kind of XDP */
TEST_F(plain, xdp)
{
	int prog = xdp_number(BPF_F_XDP_HAS_FRAGS);
	char pkt[100], got[200];
	unsigned int i, to;

	ASSERT_LE(0, prog);
	/* without a program, there is no metadata */
	for (i = 0; i < 4; i++) {
		fill_packet(pkt, sizeof(pkt), i);
		ASSERT_EQ((int)sizeof(pkt), send(self->tx, pkt, sizeof(pkt), 0));
		ASSERT_EQ((int)sizeof(pkt), plain_recv(self->fd[0], got,
						       sizeof(got), WAIT_MS));
	}
	ASSERT_EQ(0, xdp_attach(if_b, prog, variant->flags));
	for (i = 0; i < 64; i++) {
		to = xdp_choice(i);
		fill_packet(pkt, sizeof(pkt), i);
		ASSERT_EQ((int)sizeof(pkt), send(self->tx, pkt, sizeof(pkt), 0));
		ASSERT_EQ((int)sizeof(pkt), plain_recv(self->fd[to], got,
						       sizeof(got), WAIT_MS));
		EXPECT_EQ(0, memcmp(pkt, got, sizeof(pkt)));
		EXPECT_EQ(-EAGAIN, plain_recv(self->fd[!to], got, sizeof(got),
					      0));
	}
}

TEST_HARNESS_MAIN
