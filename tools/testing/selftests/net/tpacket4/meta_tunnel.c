// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4: metadata of packets in tunnels and of SCTP packets, and GSO
 * packets that metadata cannot describe
 *
 * A packet is sent in copy mode or zero-copy mode and received by a tap, or by
 * a ring in zero-copy mode.
 */
#include "common.h"
#include "meta.h"
#include "tunnel.h"

#define HEADROOM	64
#define PAYLOAD		20000

static char buf[SIZE];

/* ---- the test ---- */

FIXTURE(tunnel) {
	struct pv4 a, b;		/* Tx on if_a, Rx on if_b */
};

FIXTURE_VARIANT(tunnel) {
	bool zc_a, zc_b;
};

FIXTURE_VARIANT_ADD(tunnel, copy) { };

FIXTURE_VARIANT_ADD(tunnel, ring_to_stack) { .zc_a = true };

FIXTURE_VARIANT_ADD(tunnel, stack_to_ring) { .zc_b = true };

FIXTURE_VARIANT_ADD(tunnel, ring_to_ring) { .zc_a = true, .zc_b = true };

FIXTURE_SETUP(tunnel)
{
	struct pv4_cfg cfg = {
		.ifname = if_a, .tx_nr = pv4_min_descs(), .headroom = HEADROOM,
		.meta = true,
	};

	pv4_net_setup(_metadata);
	ASSERT_EQ(0, pv4_open(&self->a, &cfg));
	cfg.rx_nr = cfg.tx_nr;
	cfg.tx_nr = 0;
	cfg.ifname = if_b;
	ASSERT_EQ(0, pv4_open(&self->b, &cfg));
	if (variant->zc_a)
		ASSERT_EQ(0, pv4_setint(self->a.fd, PACKET_ZEROCOPY, 1));
	if (variant->zc_b)
		ASSERT_EQ(0, pv4_setint(self->b.fd, PACKET_ZEROCOPY, 1));
}

FIXTURE_TEARDOWN(tunnel)
{
	pv4_close(&self->a);
	pv4_close(&self->b);
}

/* Sends @pkt in frames of @piece bytes; returns the error of its descriptors, or
 * -errno.
 */
static int send_pieces(struct pv4 *s, unsigned int piece)
{
	unsigned int i, before[256];
	int n;

	memcpy(before, s->errors, sizeof(before));
	s->put = &pkt.m;
	n = pv4_put(s, pkt.data, pkt.len, piece, HEADROOM);
	s->put = NULL;
	if (n)
		return n;
	pv4_kick(s, 0);
	if (!pv4_reap_all(s, WAIT_MS))
		return -ETIMEDOUT;
	for (i = 1; i < 256; i++)
		if (s->errors[i] != before[i])
			return i;
	return 0;
}

static int send_pkt(struct pv4 *s)
{
	return send_pieces(s, 1900);
}

/* In zero-copy mode, the data of each frame has headroom. */
static int recv_any(struct pv4 *s, bool zc)
{
	struct tpacket4_desc d;
	int len = 0;

	if (!zc)
		return pv4_recv(s, buf, sizeof(buf), WAIT_MS);
	do {
		if (!pv4_take_wait(s, &s->rx, &d, WAIT_MS) || d.error)
			return -EAGAIN;
		if (d.flags & TP4_META)
			memcpy(&s->got, pv4_frame(s, d.idx), sizeof(s->got));
		memcpy(buf + len, pv4_frame(s, d.idx) + d.offset, d.len);
		len += d.len;
		pv4_rx_post(s, d.idx);
	} while (d.flags & TP4_PKT_CONT);
	return len;
}

static int no_offloads(const char *name)
{
	int err = set_offload(name, ETHTOOL_STSO, false);

	err = err ? err : set_offload(name, ETHTOOL_SGSO, false);
	return err ? err : set_offload(name, ETHTOOL_STXCSUM, false);
}

/* It is received as it was sent, with the same metadata. */
static void expect_whole(struct __test_metadata *_metadata, struct pv4 *s)
{
	const __u32 mask = TP4_META_CSUM | TP4_META_CSUM_CRC32C |
			   TP4_META_GSO | TP4_META_TUNNEL;
	const struct tpacket4_meta *got = &s->got;

	ASSERT_EQ((int)pkt.len, recv_any(s, false));
	EXPECT_EQ(0, memcmp(pkt.data, buf, pkt.len));
	EXPECT_EQ(pkt.m.flags, got->flags & mask);
	EXPECT_EQ(pkt.m.csum_start, got->csum_start);
	EXPECT_EQ(pkt.m.csum_offset, got->csum_offset);
	EXPECT_EQ(pkt.m.inner_start, got->inner_start);
	EXPECT_EQ(pkt.m.gso_type, got->gso_type);
	EXPECT_EQ(pkt.m.gso_size, got->gso_size);
	EXPECT_EQ(pkt.len, got->wire_len);
}

static void expect_segments(struct __test_metadata *_metadata, struct pv4 *s,
			    bool zc)
{
	size_t from, payload = pkt.len - pkt.payload;
	int len;

	for (from = 0; from < payload; from += len - pkt.payload) {
		len = recv_any(s, zc);
		ASSERT_LT(0, len);
		ASSERT_TRUE(segment_ok(buf, len, from)) {
			TH_LOG("from byte %zu, %d bytes", from, len);
		}
		ASSERT_TRUE(!inners[pkt.what].gso_type ||
			    len == (int)pkt.payload + GSO_SIZE ||
			    from + len - pkt.payload == payload);
		EXPECT_EQ(0U, s->got.flags & (TP4_META_CSUM | TP4_META_GSO |
					      TP4_META_TUNNEL));
	}
	EXPECT_EQ(payload, from);
}

/* Can this kernel segment packets with labels? */
static bool has_mpls_gso(void)
{
	char line[256];
	bool has = false;
	FILE *f;

	f = fopen("/proc/kallsyms", "r");
	while (f && !has && fgets(line, sizeof(line), f))
		has = strstr(line, " mpls_gso_segment");
	if (f)
		fclose(f);
	return has;
}

/* All kinds of tunnels with all kinds of packets */
TEST_F(tunnel, kinds)
{
	bool whole, mpls = has_mpls_gso();
	unsigned int offload, i, k;

	if (!mpls)
		TH_LOG("this kernel cannot segment packets with MPLS labels");

	for (offload = 2; offload--; ) {
		/* A device in zero-copy mode has no offloads that the sender
		 * could disable.
		 */
		whole = !variant->zc_b && (offload || variant->zc_a);
		for (i = 0; i < ARRAY_SIZE(kinds) * ARRAY_SIZE(inners); i++) {
			k = i % ARRAY_SIZE(inners);
			fill_tunnel(i / ARRAY_SIZE(inners), k,
				    inners[k].gso_type ? PAYLOAD : 1001);
			if (!mpls && kinds[pkt.kind].encap == LABELS &&
			    (!variant->zc_a || variant->zc_b))
				continue;
			ASSERT_EQ(0, send_pkt(&self->a)) {
				TH_LOG("%s: %s", kinds[pkt.kind].name,
				       inners[k].name);
			}
			if (whole)
				expect_whole(_metadata, &self->b);
			else
				expect_segments(_metadata, &self->b,
						variant->zc_b);
			if (_metadata->exit_code)
				TH_LOG("%s: %s", kinds[pkt.kind].name,
				       inners[k].name);
		}
		if (offload)
			ASSERT_EQ(0, no_offloads(if_a));
	}
}

/* VLAN tags in front of a tunnel move its headers. */
TEST_F(tunnel, vlan)
{
	unsigned int tags, i;
	int len;

	for (tags = 1; tags < 3; tags++) {
		fill_tunnel(1, 0, PAYLOAD);
		for (i = 0; i < tags; i++)
			pkt.len = add_tag(pkt.data, pkt.len, ETH_P_8021Q, 5);
		pkt.m.csum_start += 4 * tags;
		pkt.m.inner_start += 4 * tags;
		ASSERT_EQ(0, send_pkt(&self->a));
		if (!variant->zc_b) {
			expect_whole(_metadata, &self->b);
			continue;
		}
		for (i = 0; i < PAYLOAD / GSO_SIZE; i++) {
			len = recv_any(&self->b, true);
			ASSERT_EQ((int)pkt.payload + 4 * (int)tags + GSO_SIZE,
				  len);
		}
	}
}

TEST_F(tunnel, sctp)
{
	unsigned int offload, tunnel;
	uint32_t crc;
	int fd;

	/* The kernel only computes the CRC while the module is loaded. */
	fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	if (fd < 0)
		SKIP(return, "no SCTP in this kernel");
	close(fd);

	for (offload = 2; offload--; ) {
		for (tunnel = 0; tunnel < 2; tunnel++) {
			fill_sctp(tunnel);
			ASSERT_EQ(0, send_pkt(&self->a));
			if (!variant->zc_b && (offload || variant->zc_a)) {
				expect_whole(_metadata, &self->b);
				continue;
			}
			ASSERT_EQ((int)pkt.len, recv_any(&self->b,
							 variant->zc_b));
			crc = htole32(crc32c(pkt.data + pkt.l4,
					     pkt.len - pkt.l4));
			EXPECT_EQ(0, memcmp(buf, pkt.data, pkt.l4 + 8));
			EXPECT_EQ(0, memcmp(buf + pkt.l4 + 8, &crc, 4));
			EXPECT_EQ(0, memcmp(buf + pkt.l4 + 12,
					    pkt.data + pkt.l4 + 12,
					    pkt.len - pkt.l4 - 12));
			EXPECT_EQ(0U, self->b.got.flags & TP4_META_CSUM);
		}
		if (offload)
			ASSERT_EQ(0, no_offloads(if_a));
	}
}

/* ---- hostile requests ---- */

static int send_bad(struct pv4 *s, int kind, int what)
{
	int err = send_pkt(s);

	fill_tunnel(kind, what, PAYLOAD);
	return err;
}

/* One byte of a header is another one. */
TEST_F(tunnel, wrong_headers)
{
	static const struct {
		int kind, what;
		enum { OUTER, ENCAP, INNER } at;
		int offset;
		unsigned char byte;
	} bad[] = {
		/* no IP header, shorter or longer ones, a fragment */
		{ 0, 0, OUTER, 0, 0x65 },
		{ 0, 0, OUTER, 0, 0x44 },
		{ 0, 0, OUTER, 0, 0x4f },
		{ 0, 0, OUTER, 6, 0x20 },
		{ 0, 0, OUTER, 7, 1 },
		{ 0, 0, INNER, 0, 0x55 },
		{ 0, 0, INNER, 0, 0x46 },
		{ 0, 0, INNER, 0, 0x40 },
		{ 0, 0, INNER, 6, 0x20 },
		{ 2, 0, OUTER, 0, 0x45 },
		/* another protocol, no tunnel at all */
		{ 0, 0, OUTER, 9, IPPROTO_TCP },
		{ 0, 0, OUTER, 9, IPPROTO_IPIP },
		{ 0, 0, OUTER, 9, IPPROTO_ESP },
		{ 2, 0, OUTER, 6, IPPROTO_DSTOPTS },
		{ 2, 0, OUTER, 6, IPPROTO_FRAGMENT },
		{ 3, 0, OUTER, 41, 255 },
		{ 3, 0, OUTER, 40, IPPROTO_ROUTING },
		{ 9, 0, OUTER, 9, IPPROTO_IPV6 },
		{ 9, 2, OUTER, 9, IPPROTO_IPIP },
		/* not what is to be segmented */
		{ 0, 0, INNER, 9, IPPROTO_UDP },
		{ 0, 3, INNER, 9, IPPROTO_TCP },
		{ 0, 2, INNER, 6, IPPROTO_HOPOPTS },
		/* GRE of another version, with a route, with too many fields */
		{ 4, 0, ENCAP, 1, 1 },
		{ 4, 0, ENCAP, 0, 0x60 },
		{ 4, 0, ENCAP, 0, 0xb0 },
		/* more and less labels */
		{ 12, 0, ENCAP, 6, 0 },
		{ 12, 0, ENCAP, 2, 1 },
	};
	unsigned int i;
	size_t at;
	int len;

	if (variant->zc_b)
		SKIP(return, "the sender is the same as without");
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		fill_tunnel(bad[i].kind, bad[i].what, PAYLOAD);
		at = bad[i].at == OUTER ? pkt.outer :
		     bad[i].at == ENCAP ? pkt.encap : pkt.inner;
		pkt.data[at + bad[i].offset] = bad[i].byte;
		EXPECT_EQ(EINVAL, send_pkt(&self->a)) {
			TH_LOG("header %u", i);
		}
	}
	fill_tunnel(0, 0, PAYLOAD);
	ASSERT_EQ(0, send_pkt(&self->a));
	len = recv_any(&self->b, false);
	ASSERT_EQ((int)pkt.len, len);
	EXPECT_EQ(0, memcmp(pkt.data, buf, len));
}

/* Offsets of the metadata */
TEST_F(tunnel, wrong_offsets)
{
	unsigned int i, k, inner, l4;

	if (variant->zc_b)
		SKIP(return, "the sender is the same as without");
	for (k = 0; k < ARRAY_SIZE(kinds); k++) {
		fill_tunnel(k, 0, PAYLOAD);
		inner = pkt.inner;
		l4 = pkt.l4;
		for (i = 0; i < l4 + 4; i++) {
			if (i == inner)
				continue;
			pkt.m.inner_start = i;
			EXPECT_EQ(EINVAL, send_bad(&self->a, k, 0)) {
				TH_LOG("%s: inner_start %u", kinds[k].name, i);
			}
		}
		for (i = 0; i < l4 + 4; i++) {
			if (i == l4)
				continue;
			pkt.m.csum_start = i;
			EXPECT_EQ(EINVAL, send_bad(&self->a, k, 0)) {
				TH_LOG("%s: csum_start %u", kinds[k].name, i);
			}
		}
		pkt.m.inner_start = 0xffff;
		EXPECT_EQ(EINVAL, send_bad(&self->a, k, 0));
		pkt.m.inner_start = pkt.len;
		EXPECT_EQ(EINVAL, send_bad(&self->a, k, 0));
		/* only with a checksum */
		pkt.m.flags &= ~TP4_META_CSUM;
		EXPECT_EQ(EINVAL, send_bad(&self->a, k, 0));
		/* of the other IP version, and not of TCP */
		pkt.m.gso_type = VIRTIO_NET_HDR_GSO_TCPV6;
		EXPECT_EQ(EINVAL, send_bad(&self->a, k, 0));
		pkt.m.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4;
		pkt.m.csum_offset = 6;
		EXPECT_EQ(EINVAL, send_bad(&self->a, k, 0));
		/* SCTP has no GSO, and this is not SCTP */
		pkt.m.flags |= TP4_META_CSUM_CRC32C;
		EXPECT_EQ(EINVAL, send_bad(&self->a, k, 0));
		pkt.m.flags &= ~TP4_META_GSO;
		pkt.m.flags |= TP4_META_CSUM_CRC32C;
		pkt.m.csum_offset = 8;
		pkt.len = 1000;
		EXPECT_EQ(EINVAL, send_bad(&self->a, k, 0));
		/* not in a tunnel: nobody can segment it */
		pkt.m.flags &= ~TP4_META_TUNNEL;
		EXPECT_EQ(EINVAL, send_bad(&self->a, k, 0)) {
			TH_LOG("%s: no tunnel", kinds[k].name);
		}
	}
}

static unsigned int rnd(unsigned int below)
{
	static unsigned int seed = 1;

	seed = seed * 1103515245 + 12345;
	return (seed >> 16 | seed << 16) % below;
}

static unsigned int any_of(const unsigned short *values, unsigned int n)
{
	return rnd(4) ? values[rnd(n)] : rnd(65536);
}

/* Change one thing of a packet and its request. */
static void spoil(void)
{
	static const unsigned short sizes[] = { 0, 1, 8, 1400 };
	static const unsigned short fields[] = { 4, 6, 8, 16 };
	static const unsigned char types[] = {
		VIRTIO_NET_HDR_GSO_NONE, VIRTIO_NET_HDR_GSO_TCPV4,
		VIRTIO_NET_HDR_GSO_TCPV6, VIRTIO_NET_HDR_GSO_UDP,
		VIRTIO_NET_HDR_GSO_UDP_L4, VIRTIO_NET_HDR_GSO_ECN,
	};
	static const unsigned int flags[] = {
		TP4_META_CSUM, TP4_META_GSO, TP4_META_TUNNEL,
		TP4_META_CSUM_CRC32C,
	};
	const unsigned short headers[] = {
		0, pkt.outer, pkt.encap, pkt.inner, pkt.l4, pkt.payload, pkt.len
	};

	switch (rnd(8)) {
	case 0:
		pkt.m.inner_start = any_of(headers, ARRAY_SIZE(headers));
		break;
	case 1:
		pkt.m.inner_start = rnd(pkt.payload + 4);
		break;
	case 2:
		pkt.m.csum_start = any_of(headers, ARRAY_SIZE(headers));
		break;
	case 3:
		pkt.m.csum_offset = any_of(fields, ARRAY_SIZE(fields));
		break;
	case 4:
		pkt.m.gso_size = any_of(sizes, ARRAY_SIZE(sizes));
		break;
	case 5:
		pkt.m.gso_type = types[rnd(ARRAY_SIZE(types))];
		break;
	case 6:
		pkt.m.flags ^= flags[rnd(ARRAY_SIZE(flags))];
		break;
	case 7:
		pkt.data[12 + rnd(pkt.payload - 12)] = rnd(256);
		break;
	}
}

/* A packet that is received as a GSO packet can be sent as one. */
static void drain(struct __test_metadata *_metadata, struct pv4 *s)
{
	const struct tpacket4_meta *m;
	struct tpacket4_desc d;

	while (pv4_take(&s->rx, &d)) {
		m = (void *)pv4_frame(s, d.idx);
		if (d.flags & TP4_META && m->flags & TP4_META_GSO)
			EXPECT_NE(VIRTIO_NET_HDR_GSO_NONE, m->gso_type);
		pv4_rx_post(s, d.idx);
	}
}

/* Requests of which one or several members are wrong, for any packet in pieces of
 * any size
 */
TEST_F(tunnel, random)
{
	unsigned int i, n, piece, rounds = pv4_fast() ? 500 : 2000;
	unsigned int sent = 0, refused = 0;
	int err;

	for (i = 0; i < rounds; i++) {
		if (i == rounds / 2)
			ASSERT_EQ(0, no_offloads(if_a));
		fill_tunnel(rnd(ARRAY_SIZE(kinds)), rnd(ARRAY_SIZE(inners)),
			    1 + rnd(rnd(8) ? 2000 : PAYLOAD));
		for (n = rnd(4); n; n--)
			spoil();
		if (!rnd(8))
			pkt.len = ETH_HLEN + rnd(pkt.len - ETH_HLEN);
		/* at most 64 frames */
		piece = pkt.len / 64 + 1;
		piece += rnd(1900 - piece);
		err = send_pieces(&self->a, piece);
		ASSERT_LE(0, err) {
			TH_LOG("packet %u", i);
		}
		sent += !err;
		refused += !!err;
		drain(_metadata, &self->b);
	}
	TH_LOG("%u sent, %u refused", sent, refused);
	EXPECT_LT(rounds / 10, sent);
	EXPECT_LT(rounds / 10, refused);
	/* What was right before still is. */
	do {
		drain(_metadata, &self->b);
	} while (poll_for(self->b.fd, POLLIN, QUIET_MS));
	fill_tunnel(0, 0, PAYLOAD);
	ASSERT_EQ(0, send_pkt(&self->a));
	if (!variant->zc_b && variant->zc_a)
		expect_whole(_metadata, &self->b);
	else
		expect_segments(_metadata, &self->b, variant->zc_b);
}

/* ---- what metadata cannot describe ---- */

#define LIST	8	/* UDP packets */

/* Receive packets of UDP that GRO has put in a list. The socket that was bound last
 * receives first.
 */
TEST_F(tunnel, fraglist)
{
	struct pv4_cfg cfg = {
		.ifname = if_b, .rx_nr = pv4_min_descs(), .headroom = HEADROOM,
	};
	const int len = L4 + 8 + 500, all = len + (LIST - 1) * 500;
	struct tpacket4_desc d;
	struct pv4 plain, packed, after;
	static char first[SIZE];
	char packet[600];
	unsigned int i;
	char cmd[64];

	if (variant->zc_a || variant->zc_b)
		SKIP(return, "in copy mode");
	snprintf(cmd, sizeof(cmd), "ethtool -K %s gro on rx-gro-list on", if_b);
	if (system(cmd))
		SKIP(return, "ethtool cannot enable rx-gro-list");
	/* veth leaves packets of a sender with TSO to the receiver's socket. */
	ASSERT_EQ(0, set_offload(if_a, ETHTOOL_STSO, false));

	pv4_close(&self->b);
	ASSERT_EQ(0, pv4_open(&after, &cfg));
	cfg.meta = true;
	ASSERT_EQ(0, pv4_open(&self->b, &cfg));
	cfg.meta = false;
	ASSERT_EQ(0, pv4_open(&plain, &cfg));
	packed = (struct pv4){
		.fd = pv4_socket(), .frame_size = 2048, .unit = 2048,
		.area_len = 262144, .area = pv4_new_area(262144),
		.frames = 128, .step = 1, .meta = true, .offset = HEADROOM,
	};
	ASSERT_EQ(0, pv4_memreg(packed.fd, packed.area, packed.area_len, 2048,
				HEADROOM));
	ASSERT_EQ(0, pv4_set_ring_flags(packed.fd, PACKET_RX_RING, packed.fd,
					pv4_min_descs(), TP4_RING_META |
					TP4_RING_PACKED));
	ASSERT_EQ(0, pv4_map_rings(&packed, pv4_min_descs(), 0));
	for (i = 0; i < pv4_min_descs(); i++)
		pv4_rx_post(&packed, 0);
	ASSERT_EQ(0, pv4_bind(packed.fd, if_b, ETH_P_ALL));

	/* in one poll of the receiver, to its own address */
	fill_ip4(packet, IPPROTO_UDP, 500, 1);
	ASSERT_EQ(0, get_mac(if_b, (void *)packet));
	put16(packet + L3 + 6, 0x4000);
	put16(packet + L3 + 10, 0);
	put16(packet + L3 + 10, ~sum_up(packet + L3, 20, 0));
	pkt.m = csum_meta(IPPROTO_UDP);
	self->a.put = &pkt.m;
	for (i = 0; i < LIST; i++)
		ASSERT_EQ(0, pv4_put(&self->a, packet, len, 1900, HEADROOM));
	self->a.put = NULL;
	ASSERT_EQ(LIST * len, pv4_kick(&self->a, 0));
	ASSERT_TRUE(pv4_reap_all(&self->a, WAIT_MS));

	/* a ring that could send them */
	for (i = 0; i < LIST; i++) {
		ASSERT_EQ(len, recv_any(&self->b, false));
		EXPECT_EQ(0, memcmp(packet, buf, ETH_HLEN));
		EXPECT_TRUE(ip4_ok(buf, len, IPPROTO_UDP, 500, 0, 1) ||
			    self->b.got.flags & TP4_META_CSUM);
		EXPECT_EQ(0U, self->b.got.flags & TP4_META_GSO);
	}
	/* and those that cannot, as with V1 to V3 */
	ASSERT_TRUE(pv4_take_wait(&packed, &packed.rx, &d, WAIT_MS));
	EXPECT_EQ((__u32)all, d.len);
	EXPECT_EQ(all, pv4_recv(&plain, first, sizeof(first), WAIT_MS));
	/* The others have the packet, too: it has not changed. */
	EXPECT_EQ(all, recv_any(&after, false));
	EXPECT_EQ(0, memcmp(first, buf, all));
	pv4_close(&plain);
	pv4_close(&after);
	munmap(packed.map, packed.map_len);
	close(packed.fd);
}

TEST_HARNESS_MAIN
