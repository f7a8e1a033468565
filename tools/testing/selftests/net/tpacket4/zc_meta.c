// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4, zero-copy mode: metadata of packets received from another ring,
 * from the stack and through XDP; metadata of packets sent to a ring and to the
 * stack; and forwarding with metadata.
 */
#include "meta.h"
#include "xdp.h"

#define HEADROOM	64
#define HASH		0x12345678
#define XDP_META	8
#define BESIDE		(L4 + 108)	/* bytes of another packet in flight */

static char buf[SIZE], pkt[SIZE];

FIXTURE(zc_meta) {
	struct zc a;			/* zero-copy mode on if_a, or no fd */
	struct pv4 copy_a;		/* else copy mode, so the stack sends */
	struct zc b;			/* zero-copy mode on if_b, or no fd */
	struct pv4 copy_b;		/* else copy mode: what the stack gets */
};

FIXTURE_VARIANT(zc_meta) {
	bool zc_a, zc_b;
};

FIXTURE_VARIANT_ADD(zc_meta, ring_to_ring) { .zc_a = true, .zc_b = true };

FIXTURE_VARIANT_ADD(zc_meta, stack_to_ring) { .zc_b = true };

FIXTURE_VARIANT_ADD(zc_meta, ring_to_stack) { .zc_a = true };

static int open_one(struct zc *z, struct pv4 *copy, const char *ifname, bool zc)
{
	struct pv4_cfg cfg = {
		.ifname = ifname, .headroom = HEADROOM, .meta = true,
		.rx_nr = pv4_min_descs(), .tx_nr = pv4_min_descs(),
	};
	struct zc_cfg zc_cfg = {
		.ifname = ifname, .n = 1, .headroom = HEADROOM, .meta = true,
	};

	z->s.fd = -1;
	copy->fd = -1;
	return zc ? zc_open(z, &zc_cfg) : pv4_open(copy, &cfg);
}

FIXTURE_SETUP(zc_meta)
{
	pv4_net_setup(_metadata);
	ASSERT_EQ(0, open_one(&self->a, &self->copy_a, if_a, variant->zc_a));
	ASSERT_EQ(0, open_one(&self->b, &self->copy_b, if_b, variant->zc_b));
	if (self->copy_b.fd >= 0)
		ASSERT_EQ(0, pv4_setint(self->copy_b.fd,
					PACKET_IGNORE_OUTGOING, 1));
}

FIXTURE_TEARDOWN(zc_meta)
{
	struct zc *ends[] = { &self->a, &self->b };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		if (ends[i]->s.fd < 0)
			continue;
		EXPECT_TRUE(zc_reap_all(ends[i], WAIT_MS));
		EXPECT_TRUE(zc_books_balance(ends[i], NULL));
	}
	zc_close(&self->a);
	zc_close(&self->b);
	if (self->copy_a.fd >= 0)
		pv4_close(&self->copy_a);
	if (self->copy_b.fd >= 0)
		pv4_close(&self->copy_b);
}

/* Posts a packet with or without metadata; returns 0 or -ENOBUFS. */
static int put_a(struct _test_data_zc_meta *self,
		 const struct tpacket4_meta *m, unsigned int len)
{
	struct pv4 *s = self->a.s.fd < 0 ? &self->copy_a : &self->a.s;
	int err;

	s->put = m;
	err = self->a.s.fd < 0 ? pv4_put(s, pkt, len, 1900, HEADROOM) :
				 zc_put(&self->a, pkt, len, 1900, HEADROOM);
	s->put = NULL;
	return err;
}

/* Sends it; returns the error of its descriptor, or -errno. */
static int send_a(struct _test_data_zc_meta *self,
		  const struct tpacket4_meta *m, unsigned int len)
{
	struct pv4 *s = self->a.s.fd < 0 ? &self->copy_a : &self->a.s;
	unsigned int i, before[256];
	int err;

	memcpy(before, s->errors, sizeof(before));
	err = put_a(self, m, len);
	if (err)
		return err;
	err = pv4_kick(s, MSG_DONTWAIT);
	if (err < 0)
		return err;
	if (!(self->a.s.fd < 0 ? pv4_reap_all(s, WAIT_MS) :
				 zc_reap_all(&self->a, WAIT_MS)))
		return -ETIMEDOUT;
	for (i = 1; i < 256; i++)
		if (s->errors[i] != before[i])
			return i;
	return 0;
}

static int recv_b(struct _test_data_zc_meta *self, int ms)
{
	if (self->b.s.fd < 0)
		return pv4_recv(&self->copy_b, buf, sizeof(buf), ms);
	return zc_recv(&self->b, buf, sizeof(buf), ms);
}

static const struct tpacket4_meta *got_b(struct _test_data_zc_meta *self)
{
	return self->b.s.fd < 0 ? &self->copy_b.got : &self->b.s.got;
}

/* ---- Rx ---- */

/* Checks every field, for all kinds of destinations. */
TEST_F(zc_meta, fields)
{
	static const unsigned int lens[] = { 60, 1514, 2048, 6000, MAX_PKT };
	const struct tpacket4_meta *m = got_b(self);
	unsigned int i, len;
	__u64 before, after;
	int type;

	for (i = 0; i < DESTS * ARRAY_SIZE(lens); i++) {
		len = lens[i / DESTS];
		fill_packet(pkt, len, i);
		type = set_dest(pkt, i % DESTS);
		ASSERT_LE(0, type);
		before = real_ns();
		ASSERT_EQ(0, send_a(self, NULL, len));
		ASSERT_EQ((int)len, recv_b(self, WAIT_MS));
		after = real_ns();
		ASSERT_EQ(0, memcmp(pkt, buf, len));
		EXPECT_LE(before, m->tstamp);
		EXPECT_GE(after, m->tstamp);
		expect_fields(_metadata, m, len, type);
	}
}

/* A VLAN tag is in the data and in the metadata, with the inner protocol. */
TEST_F(zc_meta, vlan)
{
	const struct tpacket4_meta *m = got_b(self);
	unsigned int len;

	fill_packet(pkt, 100, 1);
	len = add_tag(pkt, 100, ETH_P_8021Q, 0xa007);
	ASSERT_EQ(0, send_a(self, NULL, len));
	ASSERT_EQ((int)len, recv_b(self, WAIT_MS));
	EXPECT_EQ(0, memcmp(pkt, buf, len));
	EXPECT_EQ(TP4_META_RX_VLAN, m->flags & TP4_META_RX_VLAN);
	EXPECT_EQ(0xa007, m->vlan_tci);
	EXPECT_EQ(ETH_P_8021Q, m->vlan_tpid);
	EXPECT_EQ(htons(ETH_P_TEST), m->protocol);
}

/* IEEE 802.3 frames have a length instead of a type. */
TEST_F(zc_meta, protocol_802)
{
	static const struct {
		unsigned int len, first, protocol;
	} to[] = {
		{ 0x0100, 0xaaaa, ETH_P_802_2 },
		{ 0x0100, 0xffff, ETH_P_802_3 },
		{ 0x05ff, 0x4242, ETH_P_802_2 },
		{ 0x0600, 0xffff, 0x0600 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(to); i++) {
		fill_packet(pkt, 100, i);
		put16(pkt + 12, to[i].len);
		put16(pkt + 14, to[i].first);
		ASSERT_EQ(0, send_a(self, NULL, 100));
		ASSERT_EQ(100, recv_b(self, WAIT_MS));
		EXPECT_EQ(htons(to[i].protocol), got_b(self)->protocol);
	}
}

/* Metadata of packets that the stack sends */
TEST_F(zc_meta, from_stack)
{
	struct bpf_insn set_hash[] = {
		MOV_K(BPF_REG_2, HASH),
		CALL(BPF_FUNC_set_hash),
		MOV_K(BPF_REG_0, TCX_PASS),
		EXIT,
	};
	struct tpacket4_meta m = csum_meta(IPPROTO_UDP);
	const struct tpacket4_meta *got = got_b(self);
	unsigned int i, len;
	int prog;

	if (variant->zc_a)
		SKIP(return, "packets of a ring have no XDP metadata");
	prog = bpf_load(BPF_PROG_TYPE_SCHED_CLS, set_hash, ARRAY_SIZE(set_hash),
			0);
	ASSERT_LE(0, prog);
	ASSERT_EQ(0, attach_tc(if_a, prog, BPF_TCX_EGRESS));
	for (i = 0; i < 4; i++) {
		fill_ip4(pkt, IPPROTO_UDP, 500 + i * 1500, i);
		len = L4 + 508 + i * 1500;
		/* once unchanged, with a checksum that was not verified */
		ASSERT_EQ(0, send_a(self, i ? &m : NULL, len));
		ASSERT_EQ((int)len, recv_b(self, WAIT_MS));
		EXPECT_EQ(TP4_META_RX_HASH, got->flags & TP4_META_RX_HASH);
		EXPECT_EQ(HASH, got->hash);
		EXPECT_EQ(i ? TP4_META_RX_CSUM_VALID : 0,
			  got->flags & TP4_META_RX_CSUM_VALID);
	}
	close(prog);
}

/* With the copy that the stack gets goes what was known of the packet. */
TEST_F(zc_meta, copies_have_offloads)
{
	struct bpf_insn set_hash[] = {
		MOV_K(BPF_REG_2, HASH),
		CALL(BPF_FUNC_set_hash),
		MOV_K(BPF_REG_0, TCX_PASS),
		EXIT,
	};
	struct pv4_cfg copy_cfg = {
		.ifname = if_b, .headroom = HEADROOM, .meta = true,
		.rx_nr = pv4_min_descs(),
	};
	struct zc_cfg cfg = { .ifname = if_b, .n = 1, .headroom = HEADROOM };
	struct tpacket4_meta m = csum_meta(IPPROTO_UDP);
	unsigned int i, k, len;
	struct pv4 tap;
	int prog, xdp;

	if (variant->zc_a || !variant->zc_b)
		SKIP(return, "the stack sends, and a ring receives");
	prog = bpf_load(BPF_PROG_TYPE_SCHED_CLS, set_hash, ARRAY_SIZE(set_hash),
			0);
	ASSERT_LE(0, prog);
	ASSERT_EQ(0, attach_tc(if_a, prog, BPF_TCX_EGRESS));
	xdp = xdp_const(XDP_PASS_TO_KERNEL, BPF_F_XDP_HAS_FRAGS);
	ASSERT_LE(0, xdp);
	for (k = 0; k < 4; k++) {
		zc_close(&self->b);
		cfg.meta = k & 1;
		cfg.to_stack = k & 2;
		ASSERT_EQ(0, zc_open(&self->b, &cfg));
		ASSERT_EQ(0, xdp_attach_native(if_b, cfg.to_stack ? -1 : xdp));
		ASSERT_EQ(0, pv4_open(&tap, &copy_cfg));
		ASSERT_EQ(0, pv4_setint(tap.fd, PACKET_IGNORE_OUTGOING, 1));
		for (i = 0; i < 6; i++) {
			fill_ip4(pkt, IPPROTO_UDP, 500 + i * 1500, i);
			len = L4 + 508 + i * 1500;
			ASSERT_EQ(0, send_a(self, i ? &m : NULL, len));
			ASSERT_EQ((int)len, pv4_recv(&tap, buf, sizeof(buf),
						     WAIT_MS));
			EXPECT_EQ(TP4_META_RX_HASH,
				  tap.got.flags & TP4_META_RX_HASH);
			EXPECT_EQ(HASH, tap.got.hash);
			EXPECT_EQ(i ? TP4_META_RX_CSUM_VALID : 0,
				  tap.got.flags & TP4_META_RX_CSUM_VALID);
			if (cfg.to_stack)
				ASSERT_EQ((int)len, recv_b(self, WAIT_MS));
		}
		pv4_close(&tap);
	}
	close(prog);
	close(xdp);
}

/* XDP metadata in front of the data, with the rest of the metadata */
TEST_F(zc_meta, xdp)
{
	struct bpf_insn prog[] = {
		MOV_K(BPF_REG_2, -XDP_META),
		CALL(BPF_FUNC_xdp_adjust_meta),
		MOV_K(BPF_REG_0, XDP_PASS),
		EXIT,
	};
	static const unsigned int lens[] = { 60, 1500, 4000, 9000 };
	const struct tpacket4_meta *m = got_b(self);
	unsigned int i;
	int fd;

	if (!variant->zc_b)
		SKIP(return, "needs a ring behind XDP");
	fd = xdp_load(prog, ARRAY_SIZE(prog), BPF_F_XDP_HAS_FRAGS);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, xdp_attach_native(if_b, fd));
	close(fd);
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		fill_packet(pkt, lens[i], i);
		ASSERT_EQ(0, send_a(self, NULL, lens[i]));
		ASSERT_EQ((int)lens[i], recv_b(self, WAIT_MS));
		EXPECT_TRUE(packet_ok(buf, lens[i], lens[i], i));
		EXPECT_EQ(XDP_META, m->xdp_meta_len);
		EXPECT_EQ(lens[i], m->wire_len);
		EXPECT_EQ(0U, m->flags & TP4_META_RX_CSUM_VALID);
	}
	ASSERT_EQ(0, xdp_attach_native(if_b, -1));
	ASSERT_EQ(0, send_a(self, NULL, 60));
	ASSERT_EQ(60, recv_b(self, WAIT_MS));
	EXPECT_EQ(0, m->xdp_meta_len);
}

/* ---- Tx ---- */

/* A ring receives it with a computed checksum, in order. The stack receives it
 * unchanged.
 */
TEST_F(zc_meta, checksum)
{
	static const unsigned int lens[] = { 1, 18, 1400, 1600, 4000, 8900 };
	static const int protos[] = { IPPROTO_UDP, IPPROTO_TCP };
	const struct tpacket4_meta *got = got_b(self);
	static char before[BESIDE], after[BESIDE];
	struct tpacket4_meta m;
	unsigned int i, k;
	int len;

	for (i = 0; i < ARRAY_SIZE(lens) * 2; i++) {
		k = protos[i % 2];
		m = csum_meta(k);
		/* all IP: the stack's taps do not keep the order of others */
		fill_ip4(pkt, IPPROTO_UDP, 100, 2 * i);
		memcpy(before, pkt, BESIDE);
		ASSERT_EQ(0, put_a(self, NULL, BESIDE));
		fill_ip4(pkt, k, lens[i / 2], i);
		len = L4 + header_len(k) + lens[i / 2];
		ASSERT_EQ(0, put_a(self, &m, len));
		fill_ip4(pkt, IPPROTO_UDP, 100, 2 * i + 1);
		memcpy(after, pkt, BESIDE);
		ASSERT_EQ(0, send_a(self, NULL, BESIDE));

		ASSERT_EQ(BESIDE, recv_b(self, WAIT_MS));
		EXPECT_EQ(0, memcmp(before, buf, BESIDE));
		EXPECT_EQ(0U, got->flags & TP4_META_RX_CSUM_VALID);
		ASSERT_EQ(len, recv_b(self, WAIT_MS));
		if (variant->zc_b) {
			EXPECT_TRUE(ip4_ok(buf, len, k, lens[i / 2], 0, i));
			EXPECT_EQ(TP4_META_RX_CSUM_VALID, got->flags &
				  (TP4_META_RX_CSUM_VALID | TP4_META_CSUM));
		} else {
			fill_ip4(pkt, k, lens[i / 2], i);
			EXPECT_EQ(0, memcmp(pkt, buf, len));
			EXPECT_EQ(TP4_META_CSUM, got->flags &
				  (TP4_META_RX_CSUM_VALID | TP4_META_CSUM));
			EXPECT_EQ(L4, got->csum_start);
			EXPECT_EQ(check_at(k), got->csum_offset);
		}
		ASSERT_EQ(BESIDE, recv_b(self, WAIT_MS));
		EXPECT_EQ(0, memcmp(after, buf, BESIDE));
	}
}

/* Receives all segments of a packet of fill_ip4(). */
static void expect_segments(struct __test_metadata *_metadata,
			    struct _test_data_zc_meta *self, int proto, int size,
			    unsigned int payload, unsigned int seq)
{
	const struct tpacket4_meta *got = got_b(self);
	unsigned int from, head = L4 + header_len(proto);
	int len;

	for (from = 0; from < payload; from += len - head) {
		len = recv_b(self, WAIT_MS);
		ASSERT_TRUE(ip4_ok(buf, len, proto, payload, from, seq));
		EXPECT_TRUE(len == (int)head + size ||
			    from + len - head == payload);
		EXPECT_EQ(0U, got->flags & (TP4_META_GSO | TP4_META_CSUM));
	}
	EXPECT_EQ(payload, from);
}

/* A ring receives segments. The stack receives it unchanged. */
TEST_F(zc_meta, gso)
{
	static const struct {
		int proto, type, size;
		unsigned int payload;
	} gso[] = {
		{ IPPROTO_TCP, VIRTIO_NET_HDR_GSO_TCPV4, 1448, 1449 },
		{ IPPROTO_TCP, VIRTIO_NET_HDR_GSO_TCPV4, 1000, 25000 },
		{ IPPROTO_UDP, VIRTIO_NET_HDR_GSO_UDP_L4, 1400, 20000 },
	};
	const struct tpacket4_meta *got = got_b(self);
	unsigned int i, from, head;
	struct tpacket4_meta m;
	int len;

	for (i = 0; i < ARRAY_SIZE(gso); i++) {
		head = L4 + header_len(gso[i].proto);
		m = gso_meta(gso[i].proto, gso[i].type, gso[i].size);
		fill_ip4(pkt, gso[i].proto, gso[i].payload, i);
		ASSERT_EQ(0, send_a(self, &m, head + gso[i].payload));
		if (!variant->zc_b) {
			len = recv_b(self, WAIT_MS);
			ASSERT_EQ((int)(head + gso[i].payload), len);
			EXPECT_EQ(0, memcmp(pkt, buf, len));
			EXPECT_EQ(TP4_META_CSUM | TP4_META_GSO, got->flags &
				  (TP4_META_CSUM | TP4_META_GSO));
			EXPECT_EQ(gso[i].type, got->gso_type);
			EXPECT_EQ(gso[i].size, got->gso_size);
			continue;
		}
		expect_segments(_metadata, self, gso[i].proto, gso[i].size,
				gso[i].payload, i);
	}
	/* behind a VLAN tag, which moves the IP header */
	fill_ip4(pkt, IPPROTO_UDP, 20000, i);
	m = gso_meta(IPPROTO_UDP, VIRTIO_NET_HDR_GSO_UDP_L4, 1400);
	m.csum_start += 4;
	ASSERT_EQ(0, send_a(self, &m, add_tag(pkt, L4 + 20008, ETH_P_8021Q, 5)));
	for (from = 0; from < 20000; from += len - L4 - 12) {
		len = recv_b(self, WAIT_MS);
		ASSERT_LT(L4 + 12, len);
		EXPECT_EQ(0, memcmp(pkt, buf, L3 + 2));
	}
	EXPECT_EQ(20000U, from);
	/* a segment is no longer than a packet may be; copy mode trusts the sender */
	if (!variant->zc_a)
		return;
	m = gso_meta(IPPROTO_TCP, VIRTIO_NET_HDR_GSO_TCPV4, 20000);
	fill_ip4(pkt, IPPROTO_TCP, 20001, i);
	EXPECT_EQ(EMSGSIZE, send_a(self, &m, L4 + 20 + 20001));
	/* nor is an unsegmented packet */
	fill_ip4(pkt, IPPROTO_TCP, 19999, i);
	EXPECT_EQ(EMSGSIZE, send_a(self, &m, L4 + 20 + 19999));
}

/* With TP4_RING_GSO, a ring receives it unchanged. */
static int open_gso_b(struct _test_data_zc_meta *self, unsigned int frame_size)
{
	struct zc_cfg cfg = {
		.ifname = if_b, .n = 1, .headroom = HEADROOM, .meta = true,
		.gso = true, .frame_size = frame_size,
	};

	zc_close(&self->b);
	return zc_open(&self->b, &cfg);
}

TEST_F(zc_meta, gso_whole)
{
	static const struct {
		int proto, type, size;
	} gso[] = {
		{ IPPROTO_TCP, VIRTIO_NET_HDR_GSO_TCPV4, 1448 },
		{ IPPROTO_UDP, VIRTIO_NET_HDR_GSO_UDP_L4, 1400 },
		{ IPPROTO_UDP, 0, 0 },
	};
	const __u32 flags = TP4_META_CSUM | TP4_META_GSO |
			    TP4_META_RX_CSUM_VALID | TP4_META_RX_VLAN;
	const struct tpacket4_meta *got = got_b(self);
	struct tpacket4_meta m;
	unsigned int i, len;

	if (!variant->zc_b)
		SKIP(return, "needs an Rx ring");
	ASSERT_EQ(0, open_gso_b(self, 4096));
	for (i = 0; i < 2 * ARRAY_SIZE(gso); i++) {
		int proto = gso[i / 2].proto, tag = i % 2 ? 4 : 0;

		/* a Tx ring sends 17 frames at most, of 1900 bytes */
		len = !gso[i / 2].type ? 700 : variant->zc_a ? 32000 : 65400;
		m = !gso[i / 2].type ? csum_meta(proto) :
		    gso_meta(proto, gso[i / 2].type, gso[i / 2].size);
		m.csum_start += tag;
		fill_ip4(pkt, proto, len, i);
		len += L4 + header_len(proto);
		if (tag)
			len = add_tag(pkt, len, ETH_P_8021Q, 0xa007);
		ASSERT_EQ(0, send_a(self, &m, len));
		ASSERT_EQ((int)len, recv_b(self, WAIT_MS));
		EXPECT_EQ(0, memcmp(pkt, buf, len));
		EXPECT_EQ(m.flags | (tag ? TP4_META_RX_VLAN : 0),
			  got->flags & flags);
		EXPECT_EQ(len, got->wire_len);
		EXPECT_EQ(m.gso_type, got->gso_type);
		EXPECT_EQ(m.gso_size, got->gso_size);
		EXPECT_EQ(m.csum_start, got->csum_start);
		EXPECT_EQ(m.csum_offset, got->csum_offset);
		EXPECT_EQ(0, got->inner_start);
	}
	/* the next packet in these frames has none of it */
	fill_packet(pkt, 60, i);
	ASSERT_EQ(0, send_a(self, NULL, 60));
	ASSERT_EQ(60, recv_b(self, WAIT_MS));
	EXPECT_EQ(0U, got->flags & flags);
	EXPECT_EQ(0, got->gso_size);
	EXPECT_EQ(0, got->csum_start);
}

/* It is segmented before an XDP program, or if the ring's frames are too small. */
TEST_F(zc_meta, gso_not_whole)
{
	struct tpacket4_meta m = gso_meta(IPPROTO_TCP,
					  VIRTIO_NET_HDR_GSO_TCPV4, 1448);
	unsigned int payload = 30000;
	int fd;

	if (!variant->zc_b)
		SKIP(return, "needs an Rx ring");
	ASSERT_EQ(0, open_gso_b(self, 4096));
	fd = xdp_const(XDP_PASS, BPF_F_XDP_HAS_FRAGS);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, xdp_attach_native(if_b, fd));
	close(fd);
	fill_ip4(pkt, IPPROTO_TCP, payload, 1);
	ASSERT_EQ(0, send_a(self, &m, L4 + 20 + payload));
	expect_segments(_metadata, self, IPPROTO_TCP, 1448, payload, 1);
	ASSERT_EQ(0, xdp_attach_native(if_b, -1));
	ASSERT_EQ(0, send_a(self, &m, L4 + 20 + payload));
	ASSERT_EQ((int)(L4 + 20 + payload), recv_b(self, WAIT_MS));
	EXPECT_EQ(0, memcmp(pkt, buf, L4 + 20 + payload));
	if (variant->zc_a)
		return;
	ASSERT_EQ(0, open_gso_b(self, 2048));
	payload = 50000;
	fill_ip4(pkt, IPPROTO_TCP, payload, 2);
	ASSERT_EQ(0, send_a(self, &m, L4 + 20 + payload));
	expect_segments(_metadata, self, IPPROTO_TCP, 1448, payload, 2);
}

/* It is sent again as it is, by its frames. */
TEST_F(zc_meta, gso_forward)
{
	struct tpacket4_meta m = gso_meta(IPPROTO_TCP,
					  VIRTIO_NET_HDR_GSO_TCPV4, 1448);
	unsigned int i, n, len = L4 + 20 + 65400;
	const struct tpacket4_meta *got;
	struct tpacket4_desc d[17];

	if (variant->zc_a || !variant->zc_b)
		SKIP(return, "needs a stack that sends to a ring");
	ASSERT_EQ(0, pv4_setint(self->copy_a.fd, PACKET_IGNORE_OUTGOING, 1));
	ASSERT_EQ(0, open_gso_b(self, 4096));
	for (i = 0; i < 3; i++) {
		fill_ip4(pkt, IPPROTO_TCP, 65400, i);
		ASSERT_EQ(0, send_a(self, &m, len));
		n = 0;
		do {
			ASSERT_LT(n, ARRAY_SIZE(d));
			ASSERT_TRUE(zc_take_wait(&self->b, &self->b.s.rx, &d[n],
						 WAIT_MS));
		} while (d[n++].flags & TP4_PKT_CONT);
		zc_post(&self->b, &self->b.s.tx, d, n);
		ASSERT_EQ(0, zc_kick(&self->b));
		ASSERT_TRUE(zc_reap_all(&self->b, WAIT_MS));
		EXPECT_EQ(0U, self->b.s.errors[EMSGSIZE]);
		ASSERT_EQ((int)len, pv4_recv(&self->copy_a, buf, sizeof(buf),
					     WAIT_MS));
		EXPECT_EQ(0, memcmp(pkt, buf, len));
		got = &self->copy_a.got;
		EXPECT_EQ(m.flags, got->flags &
			  (TP4_META_CSUM | TP4_META_GSO));
		EXPECT_EQ(m.gso_type, got->gso_type);
		EXPECT_EQ(m.gso_size, got->gso_size);
		while (n--)
			zc_rx_post(&self->b,
				   self->b.s.spare[--self->b.s.nr_spare]);
	}
}

/* It needs metadata, and is for Rx rings from which the stack gets nothing. */
TEST_F(zc_meta, gso_refused)
{
	static const __u32 flags[] = {
		TP4_RING_GSO, TP4_RING_GSO | TP4_RING_TO_STACK,
		TP4_RING_GSO | TP4_RING_META | TP4_RING_TO_STACK,
		TP4_RING_GSO | TP4_RING_META | TP4_RING_KEEP,
		TP4_RING_GSO | TP4_RING_META | TP4_RING_PACKED,
	};
	unsigned int i, nr = pv4_min_descs();
	size_t size = 2048 * nr;
	char *area = pv4_new_area(size);
	int fd = pv4_socket();

	if (variant->zc_a)
		SKIP(return, "once is enough");
	ASSERT_TRUE(area != MAP_FAILED);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, pv4_memreg(fd, area, size, 2048, HEADROOM));
	for (i = 0; i < ARRAY_SIZE(flags); i++)
		EXPECT_EQ(-EINVAL, pv4_set_ring_flags(fd, PACKET_RX_RING, fd,
						      nr, flags[i]));
	EXPECT_EQ(-EINVAL, pv4_set_ring_flags(fd, PACKET_TX_RING, fd, nr,
					      TP4_RING_GSO | TP4_RING_META));
	EXPECT_EQ(0, pv4_set_ring_flags(fd, PACKET_RX_RING, fd, nr,
					TP4_RING_GSO | TP4_RING_META));
	munmap(area, size);
	close(fd);
}

/* XDP programs only see segments, whether a ring or the stack sends. */
TEST_F(zc_meta, gso_to_xdp)
{
	struct tpacket4_meta m = gso_meta(IPPROTO_TCP,
					  VIRTIO_NET_HDR_GSO_TCPV4, 1000);
	unsigned int from, payload = 25000, head = L4 + 20;
	int fd, len;

	if (!variant->zc_a || variant->zc_b)
		SKIP(return, "needs a ring that sends to the stack");
	ASSERT_EQ(0, set_mtu(if_a, 1500));
	ASSERT_EQ(0, set_mtu(if_b, 1500));
	fd = xdp_const(XDP_PASS, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, xdp_attach_native(if_b, fd));
	close(fd);
	fill_ip4(pkt, IPPROTO_TCP, payload, 7);
	ASSERT_EQ(0, send_a(self, &m, head + payload));
	for (from = 0; from < payload; from += len - head) {
		len = recv_b(self, WAIT_MS);
		ASSERT_EQ((int)head + 1000, len);
		EXPECT_TRUE(ip4_ok(buf, len, IPPROTO_TCP, payload, from, 7));
	}
	/* a header length that TCP cannot have */
	pkt[L4 + 12] = 0;
	ASSERT_EQ(0, send_a(self, &m, head + payload));
	fill_packet(pkt, 60, 8);
	ASSERT_EQ(0, send_a(self, NULL, 60));
	ASSERT_EQ(60, recv_b(self, WAIT_MS));
	EXPECT_TRUE(packet_ok(buf, 60, 60, 8));
	ASSERT_EQ(0, xdp_attach_native(if_b, -1));
}

/* Invalid metadata is returned, and the next packet is sent. */
TEST_F(zc_meta, invalid_requests)
{
	static const struct tpacket4_meta bad[] = {
		{ .flags = 0x80000000 },
		{ .flags = TP4_META_TUNNEL << 1 },
		{ .flags = TP4_META_CSUM | TP4_META_CSUM_CRC32C,
		  .csum_start = L4, .csum_offset = 8 },
		/* beyond the packet, by one byte and by far */
		{ .flags = TP4_META_CSUM, .csum_start = 141 },
		{ .flags = TP4_META_CSUM, .csum_start = L4,
		  .csum_offset = 142 - L4 - 1 },
		{ .flags = TP4_META_CSUM, .csum_start = 0xffff,
		  .csum_offset = 0xffff },
		/* not that of such a packet, and no such type */
		{ .flags = TP4_META_GSO, .gso_size = 50,
		  .gso_type = VIRTIO_NET_HDR_GSO_TCPV6 },
		{ .flags = TP4_META_GSO, .gso_size = 50, .gso_type = 0x7f },
		{ .flags = TP4_META_GSO, .gso_size = 50 },
		{ .flags = TP4_META_GSO | TP4_META_CSUM, .csum_start = L4,
		  .csum_offset = 6,
		  .gso_type = VIRTIO_NET_HDR_GSO_UDP_L4 },
	};
	static const struct tpacket4_meta launch = {
		.flags = TP4_META_TX_LAUNCH, .tstamp = 1,
	};
	struct tpacket4_meta m = csum_meta(IPPROTO_UDP);
	unsigned int i, len = L4 + 8 + 100;
	struct tpacket_stats_v4 st;

	if (!variant->zc_a)
		SKIP(return, "meta tests copy mode");
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		fill_ip4(pkt, IPPROTO_UDP, 100, i);
		EXPECT_EQ(EINVAL, send_a(self, &bad[i], len)) {
			TH_LOG("metadata %u", i);
		}
	}
	EXPECT_EQ(EOPNOTSUPP, send_a(self, &launch, len));
	/* and too short for a link layer header */
	EXPECT_EQ(EINVAL, send_a(self, &m, 13));
	m = gso_meta(IPPROTO_UDP, VIRTIO_NET_HDR_GSO_UDP_L4, 50);
	EXPECT_EQ(EINVAL, send_a(self, &m, 13));
	ASSERT_EQ(0, pv4_stats(self->a.s.fd, &st));
	EXPECT_EQ(i + 3, st.tx_invalid_descs);

	/* nothing of it was sent, and valid packets still are */
	m = csum_meta(IPPROTO_UDP);
	fill_ip4(pkt, IPPROTO_UDP, 100, 9);
	ASSERT_EQ(0, send_a(self, &m, len));
	ASSERT_EQ((int)len, recv_b(self, WAIT_MS));
	if (variant->zc_b)
		EXPECT_TRUE(ip4_ok(buf, len, IPPROTO_UDP, 100, 0, 9));
	EXPECT_EQ(-EAGAIN, recv_b(self, QUIET_MS));
}

/* A ring without metadata refuses it, and does not show that of another ring.
 */
TEST_F(zc_meta, not_requested)
{
	struct tpacket4_meta m = { .flags = TP4_META_RX_HASH };
	struct zc_cfg cfg = {
		.ifname = if_a, .n = 1, .headroom = HEADROOM, .meta = true,
		.sharers = 1,
	};
	struct tpacket4_desc d;
	unsigned int i;

	if (!variant->zc_a || !variant->zc_b)
		SKIP(return, "needs a ring at both ends");
	/* one area for both: the frames are exchanged */
	zc_close(&self->a);
	zc_close(&self->b);
	ASSERT_EQ(0, zc_open(&self->a, &cfg));
	cfg = (struct zc_cfg) {
		.ifname = if_b, .n = 1, .area = &self->a, .part = 1,
	};
	ASSERT_EQ(0, zc_open(&self->b, &cfg));
	for (i = 0; i < 4; i++) {
		fill_packet(pkt, 100, i);
		ASSERT_EQ(0, send_a(self, i % 2 ? &m : NULL, 100));
		ASSERT_TRUE(zc_take_wait(&self->b, &self->b.s.rx, &d, WAIT_MS));
		EXPECT_EQ(0, d.flags);
		EXPECT_EQ(100U, d.len);
		zc_rx_post(&self->b, d.idx);
	}
	self->b.s.put = &m;
	ASSERT_EQ(0, zc_put(&self->b, pkt, 100, 1900, HEADROOM));
	ASSERT_EQ(0, zc_kick(&self->b));
	ASSERT_TRUE(zc_reap_all(&self->b, WAIT_MS));
	EXPECT_EQ(1U, self->b.s.errors[EINVAL]);
	EXPECT_EQ(-EAGAIN, zc_recv(&self->a, buf, sizeof(buf), QUIET_MS));
	zc_close(&self->b);
	self->b.s.fd = -1;
	zc_close(&self->a);
	self->a.s.fd = -1;
}

/* Without a posted frame, a packet with metadata is dropped like any other. */
TEST_F(zc_meta, none_posted)
{
	struct zc_cfg cfg = {
		.ifname = if_b, .n = 1, .headroom = HEADROOM, .meta = true,
		.rx_empty = true,
	};
	struct tpacket4_meta m = csum_meta(IPPROTO_UDP);
	struct tpacket_stats_v4 st;
	unsigned int i;

	if (!variant->zc_b)
		SKIP(return, "needs an Rx ring");
	zc_close(&self->b);
	ASSERT_EQ(0, zc_open(&self->b, &cfg));
	fill_ip4(pkt, IPPROTO_UDP, 100, 1);
	for (i = 0; i < 6; i++)
		ASSERT_EQ(0, send_a(self, i % 2 ? &m : NULL, L4 + 108));
	zc_rx_post(&self->b, 0);
	ASSERT_EQ(0, send_a(self, &m, L4 + 108));
	ASSERT_EQ(L4 + 108, recv_b(self, WAIT_MS));
	EXPECT_TRUE(ip4_ok(buf, L4 + 108, IPPROTO_UDP, 100, 0, 1));
	ASSERT_EQ(0, pv4_stats(self->b.s.fd, &st));
	EXPECT_EQ(6U, st.tp_drops);
	EXPECT_EQ(6U, st.rx_no_desc);
}

/* A received packet is forwarded unchanged: the same frame with its metadata.
 */
TEST_F(zc_meta, forward)
{
	struct tpacket4_meta m = csum_meta(IPPROTO_UDP);
	struct tpacket4_desc d;
	unsigned int i, len;
	int fd, got;

	if (!variant->zc_b)
		SKIP(return, "needs an Rx ring");
	fd = plain_listener(_metadata, if_a);
	for (i = 0; i < 20; i++) {
		len = L4 + 8 + 50 * i;
		fill_ip4(pkt, IPPROTO_UDP, 50 * i, i);
		ASSERT_EQ(0, send_a(self, i % 2 ? &m : NULL, len));
		ASSERT_TRUE(zc_take_wait(&self->b, &self->b.s.rx, &d, WAIT_MS));
		ASSERT_EQ(TP4_META, d.flags);
		zc_post(&self->b, &self->b.s.tx, &d, 1);
		ASSERT_EQ(0, zc_kick(&self->b));
		ASSERT_TRUE(zc_take_wait(&self->b, &self->b.s.tx, &d, WAIT_MS));
		ASSERT_EQ(0, d.error);
		zc_rx_post(&self->b, d.idx);
		got = variant->zc_a ?
		      zc_recv(&self->a, buf, sizeof(buf), WAIT_MS) :
		      plain_recv(fd, buf, sizeof(buf), WAIT_MS);
		ASSERT_EQ((int)len, got);
		EXPECT_EQ(i % 2, ip4_ok(buf, len, IPPROTO_UDP, 50 * i, 0, i));
		EXPECT_EQ(i % 2, !!memcmp(pkt, buf, len));
	}
	close(fd);
}

TEST_HARNESS_MAIN
