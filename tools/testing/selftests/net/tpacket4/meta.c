// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4: metadata of received packets, metadata of packets to send, and
 * forwarding with metadata.
 */
#include "common.h"
#include "diag.h"
#include "meta.h"

#include <linux/filter.h>
#include <linux/net_tstamp.h>
#include <sys/stat.h>

#define HEADROOM	64

static const char if_c[] = "v4c", if_d[] = "v4d";	/* another pair */

static char buf[SIZE];

/* ---- two sockets ---- */

FIXTURE(meta) {
	struct pv4 a, b;		/* Tx on if_a, Rx on if_b */
};

static int open_one(struct pv4 *s, const char *ifname, bool rx, bool tx)
{
	struct pv4_cfg cfg = {
		.ifname = ifname,
		.rx_nr = rx ? pv4_min_descs() : 0,
		.tx_nr = tx ? pv4_min_descs() : 0,
		.headroom = HEADROOM,
		.meta = true,
	};

	return pv4_open(s, &cfg);
}

FIXTURE_SETUP(meta)
{
	pv4_net_setup(_metadata);
	ASSERT_EQ(0, open_one(&self->a, if_a, false, true));
	ASSERT_EQ(0, open_one(&self->b, if_b, true, false));
}

FIXTURE_TEARDOWN(meta)
{
	pv4_close(&self->a);
	pv4_close(&self->b);
}

/* Sends one packet; returns the error of its descriptor, or -errno. */
static int send_meta(struct pv4 *s, const struct tpacket4_meta *m,
		     const char *p, size_t len, unsigned int piece,
		     unsigned int offset)
{
	unsigned int i, before[256];
	int n;

	memcpy(before, s->errors, sizeof(before));
	s->put = m;
	n = pv4_put(s, p, len, piece, offset);
	s->put = NULL;
	if (n)
		return n;
	n = pv4_kick(s, 0);
	if (!pv4_reap_all(s, WAIT_MS))
		return -ETIMEDOUT;
	for (i = 1; i < 256; i++)
		if (s->errors[i] != before[i])
			return i;
	return n == (int)len ? 0 : n < 0 ? n : -EIO;
}

static int send_plain(struct pv4 *s, const char *p, size_t len)
{
	return send_meta(s, NULL, p, len, 1900, HEADROOM);
}

static int recv_meta(struct pv4 *s)
{
	return pv4_recv(s, buf, sizeof(buf), WAIT_MS);
}

/* Disables segmentation and checksum offload: the stack must do them. */
static int no_offloads(const char *name)
{
	int err = set_offload(name, ETHTOOL_STSO, false);

	err = err ? err : set_offload(name, ETHTOOL_SGSO, false);
	return err ? err : set_offload(name, ETHTOOL_STXCSUM, false);
}

/* ---- the ring ---- */

TEST_F(meta, ring_request)
{
	unsigned int nr = pv4_min_descs(), i;
	static const int opts[] = { PACKET_RX_RING, PACKET_TX_RING };
	char *area = pv4_new_area(nr * 2048);
	struct diag d;
	struct stat st;
	int fd, mr, err;

	ASSERT_TRUE(area != MAP_FAILED);
	EXPECT_EQ(64U, sizeof(struct tpacket4_meta));
	for (i = 0; i < ARRAY_SIZE(opts); i++) {
		/* no room for it */
		fd = pv4_socket();
		ASSERT_EQ(0, pv4_memreg(fd, area, nr * 2048, 2048, 0));
		EXPECT_EQ(-EINVAL, pv4_set_ring_flags(fd, opts[i], fd, nr,
						      TP4_RING_META));
		EXPECT_EQ(0, pv4_set_ring(fd, opts[i], fd, nr));
		close(fd);
		/* 1 is rounded up to 64 */
		mr = pv4_socket();
		fd = pv4_socket();
		ASSERT_EQ(0, pv4_memreg(mr, area, nr * 2048, 2048, 1));
		EXPECT_EQ(-EINVAL, pv4_set_ring_flags(fd, opts[i], mr, nr,
						      TP4_RING_META << 7));
		EXPECT_EQ(0, pv4_set_ring_flags(fd, opts[i], mr, nr,
						TP4_RING_META));
		ASSERT_EQ(0, fstat(fd, &st));
		err = diag_find(st.st_ino, &d);
		if (err == -ENOENT) {
			TH_LOG("no packet_diag");
		} else {
			ASSERT_EQ(0, err);
			EXPECT_EQ(i ? 0U : TP4_RING_META, d.rx.pdr_features);
			EXPECT_EQ(i ? TP4_RING_META : 0U, d.tx.pdr_features);
		}
		close(fd);
		close(mr);
	}
}

/* On a ring without metadata, nothing is written and no flag is set. */
TEST_F(meta, not_requested)
{
	struct pv4_cfg cfg = {
		.ifname = if_b, .rx_nr = pv4_min_descs(),
		.headroom = HEADROOM,
	};
	struct tpacket4_desc d;
	char pkt[200];
	struct pv4 s;

	ASSERT_EQ(0, pv4_open(&s, &cfg));
	fill_packet(pkt, sizeof(pkt), 1);
	ASSERT_EQ(0, send_plain(&self->a, pkt, sizeof(pkt)));
	ASSERT_TRUE(pv4_take_wait(&s, &s.rx, &d, WAIT_MS));
	EXPECT_EQ(0, d.flags);
	EXPECT_TRUE(untouched(pv4_frame(&s, d.idx), HEADROOM));
	pv4_close(&s);

	/* on Tx it is an unknown flag */
	cfg.rx_nr = 0;
	cfg.tx_nr = pv4_min_descs();
	cfg.ifname = if_a;
	ASSERT_EQ(0, pv4_open(&s, &cfg));
	EXPECT_EQ(EINVAL, send_meta(&s, &(struct tpacket4_meta){ 0 }, pkt,
				    sizeof(pkt), 2048, HEADROOM));
	EXPECT_EQ(0, send_plain(&s, pkt, sizeof(pkt)));
	pv4_close(&s);
}

/* ---- Rx ---- */

/* Checks every field, for all kinds of destinations. */
TEST_F(meta, fields)
{
	struct tpacket4_meta *m = &self->b.got;
	unsigned int i, len = 400;
	__u64 before, after;
	char pkt[400];
	int type;

	for (i = 0; i < DESTS; i++) {
		fill_packet(pkt, len, i);
		type = set_dest(pkt, i);
		ASSERT_LE(0, type);
		/* here the same device */
		ASSERT_EQ(0, pv4_setint(self->b.fd, PACKET_ORIGDEV, i % 2));
		before = real_ns();
		ASSERT_EQ(0, send_plain(&self->a, pkt, len));
		ASSERT_EQ((int)len, recv_meta(&self->b));
		after = real_ns();
		ASSERT_EQ(0, memcmp(pkt, buf, len));
		EXPECT_LE(before, m->tstamp);
		EXPECT_GE(after, m->tstamp);
		expect_fields(_metadata, m, len, type);
	}
}

TEST_F(meta, outgoing)
{
	struct pv4 out;
	char pkt[100];

	ASSERT_EQ(0, open_one(&out, if_a, true, false));
	fill_packet(pkt, sizeof(pkt), 7);
	ASSERT_EQ(0, send_plain(&self->a, pkt, sizeof(pkt)));
	ASSERT_EQ((int)sizeof(pkt), recv_meta(&out));
	EXPECT_EQ(PACKET_OUTGOING, out.got.pkt_type);
	EXPECT_EQ(if_nametoindex(if_a), out.got.ifindex);
	EXPECT_EQ(0U, out.got.flags & TP4_META_RX_CSUM_VALID);
	pv4_close(&out);
}

/* With a filter, and with a packet of many frames */
TEST_F(meta, lengths)
{
	static const unsigned int lens[] = { 60, 1514, 2048, 6000, MAX_PKT };
	struct sock_filter cut = { .code = BPF_RET, .k = 100 };
	struct sock_fprog prog = { .len = 1, .filter = &cut };
	static char pkt[MAX_PKT];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		fill_packet(pkt, lens[i], i);
		ASSERT_EQ(0, send_plain(&self->a, pkt, lens[i]));
		ASSERT_EQ((int)lens[i], recv_meta(&self->b));
		EXPECT_TRUE(packet_ok(buf, lens[i], lens[i], i));
		EXPECT_EQ(lens[i], self->b.got.wire_len);
	}
	ASSERT_EQ(0, setsockopt(self->b.fd, SOL_SOCKET, SO_ATTACH_FILTER,
				&prog, sizeof(prog)));
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		fill_packet(pkt, lens[i], i);
		ASSERT_EQ(0, send_plain(&self->a, pkt, lens[i]));
		ASSERT_EQ(lens[i] < 100 ? (int)lens[i] : 100,
			  recv_meta(&self->b));
		EXPECT_EQ(lens[i], self->b.got.wire_len);
	}
}

/* A stripped VLAN tag is put back into the data and reported. */
TEST_F(meta, vlan)
{
	struct tpacket4_meta m = csum_meta(IPPROTO_UDP);
	struct tpacket4_meta *got = &self->b.got;
	char pkt[200];
	size_t len;

	fill_ip4(pkt, IPPROTO_UDP, 100, 3);
	len = add_tag(pkt, L4 + 108, ETH_P_8021AD, 0x6007);
	m.csum_start += 4;
	ASSERT_EQ(0, send_meta(&self->a, &m, pkt, len, 2048, HEADROOM));
	ASSERT_EQ((int)len, recv_meta(&self->b));
	EXPECT_EQ(0, memcmp(pkt, buf, len));
	EXPECT_EQ(TP4_META_RX_VLAN | TP4_META_CSUM,
		  got->flags & (TP4_META_RX_VLAN | TP4_META_CSUM));
	EXPECT_EQ(0x6007, got->vlan_tci);
	EXPECT_EQ(ETH_P_8021AD, got->vlan_tpid);
	EXPECT_EQ(htons(ETH_P_IP), got->protocol);
	EXPECT_EQ(len, got->wire_len);
	/* where it is with the tag */
	EXPECT_EQ(L4 + 4, got->csum_start);
	EXPECT_EQ(6, got->csum_offset);
}

/* A timestamp of the stack, when some socket requests one, is distinguished
 * from that of the copy.
 */
TEST_F(meta, software_timestamp)
{
	__u64 end = now_ms() + WAIT_MS, before;
	int fd, on = 1;
	char pkt[100];

	fd = socket(AF_INET, SOCK_DGRAM, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on,
				sizeof(on)));
	fill_packet(pkt, sizeof(pkt), 0);
	do {
		before = real_ns();
		ASSERT_EQ(0, send_plain(&self->a, pkt, sizeof(pkt)));
		ASSERT_EQ((int)sizeof(pkt), recv_meta(&self->b));
		EXPECT_LE(before, self->b.got.tstamp);
		EXPECT_GE(real_ns(), self->b.got.tstamp);
	} while (!(self->b.got.flags & TP4_META_RX_TS_SOFTWARE) &&
		 now_ms() < end);
	EXPECT_EQ(TP4_META_RX_TS_SOFTWARE, self->b.got.flags &
		  (TP4_META_RX_TS_SOFTWARE | TP4_META_RX_TS_HARDWARE));
	/* a device without a clock */
	ASSERT_EQ(0, pv4_setint(self->b.fd, PACKET_TIMESTAMP,
				SOF_TIMESTAMPING_RAW_HARDWARE));
	ASSERT_EQ(0, send_plain(&self->a, pkt, sizeof(pkt)));
	ASSERT_EQ((int)sizeof(pkt), recv_meta(&self->b));
	EXPECT_EQ(0U, self->b.got.flags & TP4_META_RX_TS_HARDWARE);
	close(fd);
}

/* Without the link-layer header, for one protocol, from all devices. */
TEST_F(meta, dgram)
{
	struct pv4_cfg cfg = {
		.rx_nr = pv4_min_descs(), .headroom = HEADROOM,
		.type = SOCK_DGRAM, .proto = ETH_P_IP, .meta = true,
	};
	struct tpacket4_meta m = csum_meta(IPPROTO_UDP);
	struct pv4 s;
	char pkt[300];
	size_t len;

	/* bound to no device: to all */
	ASSERT_EQ(0, pv4_open(&s, &cfg));
	ASSERT_EQ(0, pv4_bind(s.fd, "", ETH_P_IP));
	fill_packet(pkt, 100, 0);
	ASSERT_EQ(0, send_plain(&self->a, pkt, 100));
	fill_ip4(pkt, IPPROTO_UDP, 200, 1);
	ASSERT_EQ(0, send_meta(&self->a, &m, pkt, L4 + 208, 2048, HEADROOM));
	/* not one of another protocol */
	ASSERT_EQ(20 + 208, recv_meta(&s));
	EXPECT_EQ(0, memcmp(pkt + L3, buf, 20 + 208));
	EXPECT_EQ(20U + 208, s.got.wire_len);
	EXPECT_EQ(if_nametoindex(if_b), s.got.ifindex);
	EXPECT_EQ(htons(ETH_P_IP), s.got.protocol);
	EXPECT_EQ(20, s.got.csum_start);
	EXPECT_EQ(0, memcmp(s.got.addr, "\2\0\0\0\0\2\0\0", 8));
	EXPECT_EQ(6, s.got.halen);

	pv4_close(&s);

	/* the tag is only in the metadata */
	cfg.proto = ETH_P_ALL;
	cfg.ifname = if_b;
	ASSERT_EQ(0, pv4_open(&s, &cfg));
	len = add_tag(pkt, L4 + 208, ETH_P_8021Q, 9);
	ASSERT_EQ(0, send_plain(&self->a, pkt, len));
	ASSERT_EQ(20 + 208, recv_meta(&s));
	EXPECT_EQ(0, memcmp(pkt + L3 + 4, buf, 20 + 208));
	EXPECT_EQ(20U + 208, s.got.wire_len);
	EXPECT_EQ(TP4_META_RX_VLAN, s.got.flags & TP4_META_RX_VLAN);
	EXPECT_EQ(9, s.got.vlan_tci);
	EXPECT_EQ(ETH_P_8021Q, s.got.vlan_tpid);
	EXPECT_EQ(htons(ETH_P_IP), s.got.protocol);
	pv4_close(&s);

	/* outgoing packets of all protocols, also without a header */
	cfg.ifname = if_a;
	ASSERT_EQ(0, pv4_open(&s, &cfg));
	fill_packet(pkt, 100, 5);
	ASSERT_EQ(0, send_plain(&self->a, pkt, 100));
	ASSERT_EQ(100 - ETH_HLEN, recv_meta(&s));
	EXPECT_EQ(0, memcmp(pkt + ETH_HLEN, buf, 100 - ETH_HLEN));
	EXPECT_EQ(PACKET_OUTGOING, s.got.pkt_type);
	EXPECT_EQ(htons(ETH_P_TEST), s.got.protocol);
	/* a tag in front of the data is reported */
	len = add_tag(pkt, 100, ETH_P_8021Q, 0x2005);
	ASSERT_EQ(0, send_plain(&self->a, pkt, len));
	ASSERT_LT(0, recv_meta(&s));
	EXPECT_EQ(TP4_META_RX_VLAN, s.got.flags & TP4_META_RX_VLAN);
	EXPECT_EQ(0x2005, s.got.vlan_tci);
	EXPECT_EQ(ETH_P_8021Q, s.got.vlan_tpid);
	EXPECT_EQ(htons(ETH_P_TEST), s.got.protocol);
	pv4_close(&s);
}

/* The header is built from the address, and the checksum is behind it. */
TEST_F(meta, dgram_tx)
{
	struct pv4_cfg cfg = {
		.ifname = if_a, .tx_nr = pv4_min_descs(),
		.headroom = HEADROOM, .type = SOCK_DGRAM, .meta = true,
	};
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP),
		.sll_ifindex = if_nametoindex(if_a), .sll_halen = 6,
		.sll_addr = { 2, 0, 0, 0, 0, 1 },
	};
	static const unsigned int lens[] = { 10, 1400, 1900, 5000, MTU - 28 };
	struct tpacket4_meta m = csum_meta(IPPROTO_UDP);
	static char pkt[MAX_PKT];
	unsigned int i, len;
	struct pv4 s;

	ASSERT_EQ(0, no_offloads(if_a));
	ASSERT_EQ(0, pv4_open(&s, &cfg));
	m.csum_start -= ETH_HLEN;
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		len = 28 + lens[i];
		fill_ip4(pkt, IPPROTO_UDP, lens[i], i);
		s.put = &m;
		ASSERT_EQ(0, pv4_put(&s, pkt + ETH_HLEN, len, 1900, HEADROOM));
		ASSERT_EQ((ssize_t)len, sendto(s.fd, NULL, 0, 0,
					       (struct sockaddr *)&to,
					       sizeof(to)));
		ASSERT_EQ(ETH_HLEN + (int)len, recv_meta(&self->b));
		EXPECT_EQ(0, memcmp(pkt, buf, 6));
		EXPECT_TRUE(ip4_ok(buf, ETH_HLEN + len, IPPROTO_UDP, lens[i],
				   0, i));
		ASSERT_TRUE(pv4_reap_all(&s, WAIT_MS));
	}
	/* one byte too many, and no address to send to */
	s.put = NULL;
	ASSERT_EQ(0, pv4_put(&s, pkt, MTU + 1, 1900, HEADROOM));
	ASSERT_EQ(0, pv4_put(&s, pkt, 100, 1900, HEADROOM));
	EXPECT_EQ(100, sendto(s.fd, NULL, 0, 0, (struct sockaddr *)&to,
			      sizeof(to)));
	ASSERT_TRUE(pv4_reap_all(&s, WAIT_MS));
	EXPECT_EQ(5U, s.errors[EMSGSIZE]);
	ASSERT_EQ(0, pv4_put(&s, pkt, 100, 1900, HEADROOM));
	EXPECT_GE(0, pv4_kick(&s, 0));
	ASSERT_TRUE(pv4_reap_all(&s, WAIT_MS));
	EXPECT_EQ(1U, s.errors[EINVAL]);
	pv4_close(&s);
}

/* ---- Tx ---- */

/* With checksum offload, a missing checksum is received unchanged; without it,
 * the stack computes it.
 */
TEST_F(meta, checksum)
{
	static const unsigned int lens[] = { 1, 18, 1400, 1600, 4000, 8900 };
	static const int protos[] = { IPPROTO_UDP, IPPROTO_TCP };
	struct tpacket4_meta *got = &self->b.got, m;
	static char pkt[MAX_PKT];
	unsigned int i, k, offload;
	int len;

	for (offload = 2; offload--; ) {
		for (i = 0; i < ARRAY_SIZE(lens) * 2; i++) {
			k = protos[i % 2];
			fill_ip4(pkt, k, lens[i / 2], i);
			len = L4 + header_len(k) + lens[i / 2];
			m = csum_meta(k);
			ASSERT_EQ(0, send_meta(&self->a, &m, pkt, len, 1900,
					       HEADROOM + i));
			ASSERT_EQ(len, recv_meta(&self->b));
			if (!offload) {
				EXPECT_TRUE(ip4_ok(buf, len, k, lens[i / 2],
						   0, i));
				EXPECT_EQ(0U, got->flags & TP4_META_CSUM);
				continue;
			}
			EXPECT_EQ(0, memcmp(pkt, buf, len));
			EXPECT_EQ(TP4_META_CSUM, got->flags &
				  (TP4_META_CSUM | TP4_META_CSUM_CRC32C |
				   TP4_META_RX_CSUM_VALID | TP4_META_GSO));
			EXPECT_EQ(L4, got->csum_start);
			EXPECT_EQ(check_at(k), got->csum_offset);
		}
		if (offload)
			ASSERT_EQ(0, no_offloads(if_a));
	}
}

static const struct {
	int proto, type, size;
	size_t payload;
} gso[] = {
	{ IPPROTO_TCP, VIRTIO_NET_HDR_GSO_TCPV4, 1448, 1449 },
	{ IPPROTO_TCP, VIRTIO_NET_HDR_GSO_TCPV4, 1000, 25000 },
	{ IPPROTO_TCP, VIRTIO_NET_HDR_GSO_TCPV4 | VIRTIO_NET_HDR_GSO_ECN,
	  1448, 30000 },
	{ IPPROTO_UDP, VIRTIO_NET_HDR_GSO_UDP_L4, 1400, 20000 },
	/* more frames than an skb has fragments */
	{ IPPROTO_TCP, VIRTIO_NET_HDR_GSO_TCPV4, 1448, 65000 },
	{ IPPROTO_UDP, VIRTIO_NET_HDR_GSO_UDP_L4, 1400, 60000 },
};

/* Sends packet @i of gso[], built in @pkt; returns its length. */
static int send_gso(struct __test_metadata *_metadata, struct pv4 *s, char *pkt,
		    unsigned int i)
{
	int len = L4 + header_len(gso[i].proto) + gso[i].payload;
	struct tpacket4_meta m = gso_meta(gso[i].proto, gso[i].type,
					  gso[i].size);

	fill_ip4(pkt, gso[i].proto, gso[i].payload, i);
	ASSERT_EQ(0, send_meta(s, &m, pkt, len, 1900, HEADROOM)) {
		TH_LOG("packet %u", i);
	}
	return len;
}

/* Checks whether it was received as a whole, not segmented. */
static void expect_gso(struct __test_metadata *_metadata, struct pv4 *s,
		       const char *pkt, int len, unsigned int i)
{
	struct tpacket4_meta *got = &s->got;

	ASSERT_EQ(len, recv_meta(s));
	EXPECT_EQ(0, memcmp(pkt, buf, len));
	EXPECT_EQ(TP4_META_CSUM | TP4_META_GSO,
		  got->flags & (TP4_META_CSUM | TP4_META_GSO));
	EXPECT_EQ(gso[i].type, got->gso_type);
	EXPECT_EQ(gso[i].size, got->gso_size);
	EXPECT_EQ(L4, got->csum_start);
	EXPECT_EQ((unsigned int)len, got->wire_len);
}

/* Or its segments, in order? */
static void expect_segments(struct __test_metadata *_metadata, struct pv4 *s,
			    unsigned int i)
{
	int head = L4 + header_len(gso[i].proto), len;
	size_t from, payload = gso[i].payload;

	for (from = 0; from < payload; from += len - head) {
		len = recv_meta(s);
		ASSERT_TRUE(ip4_ok(buf, len, gso[i].proto, payload, from, i)) {
			TH_LOG("packet %u, from %zu", i, from);
		}
		ASSERT_TRUE(len == head + gso[i].size ||
			    from + len - head == payload);
		EXPECT_EQ(0U, s->got.flags & (TP4_META_GSO | TP4_META_CSUM));
	}
	EXPECT_EQ(payload, from);
}

TEST_F(meta, gso)
{
	static char pkt[SIZE];
	struct tpacket4_meta m;
	unsigned int i, offload;
	int len;

	for (offload = 2; offload--; ) {
		for (i = 0; i < ARRAY_SIZE(gso); i++) {
			len = send_gso(_metadata, &self->a, pkt, i);
			if (offload)
				expect_gso(_metadata, &self->b, pkt, len, i);
			else
				expect_segments(_metadata, &self->b, i);
		}
		if (offload)
			ASSERT_EQ(0, no_offloads(if_a));
	}
	/* a packet that needs no segmentation has the maximum length */
	fill_ip4(pkt, IPPROTO_TCP, 20000, 9);
	m = gso_meta(IPPROTO_TCP, VIRTIO_NET_HDR_GSO_TCPV4, 20000);
	EXPECT_EQ(EMSGSIZE, send_meta(&self->a, &m, pkt, L4 + 20020, 1900,
				      HEADROOM));
}

TEST_F(meta, gso_types)
{
	struct tpacket4_meta m = gso_meta(IPPROTO_TCP,
					  VIRTIO_NET_HDR_GSO_TCPV6, 1000);
	int len = L4_IP6 + header_len(IPPROTO_TCP) + 5000;
	static char pkt[SIZE];

	m.csum_start = L4_IP6;
	fill_ip6(pkt, 5000, 1);
	ASSERT_EQ(0, send_meta(&self->a, &m, pkt, len, 1900, HEADROOM));
	ASSERT_EQ(len, recv_meta(&self->b));
	EXPECT_EQ(0, memcmp(pkt, buf, len));
	EXPECT_EQ(VIRTIO_NET_HDR_GSO_TCPV6, self->b.got.gso_type);
	EXPECT_EQ(1000, self->b.got.gso_size);
	EXPECT_EQ(L4_IP6, self->b.got.csum_start);
	EXPECT_EQ(htons(ETH_P_IPV6), self->b.got.protocol);
}

/* A checksum that some device cannot compute is computed by the kernel: it is not
 * that of TCP or UDP right behind the IP header.
 */
TEST_F(meta, unusual_checksums)
{
	static const struct {
		int proto;
		unsigned int at, byte;		/* a change of the packet */
		unsigned int start, offset;
	} to[] = {
		/* where that of the other protocol is */
		{ IPPROTO_UDP, 0, 0, L4, 16 },
		{ IPPROTO_TCP, 0, 0, L4, 6 },
		/* in the header, and in the data */
		{ IPPROTO_TCP, 0, 0, L4 + 2, 16 },
		{ IPPROTO_UDP, 0, 0, L4 + 8, 6 },
		/* another protocol, a fragment, and no IP at all */
		{ IPPROTO_UDP, L3 + 9, IPPROTO_ICMP, L4, 2 },
		{ IPPROTO_UDP, L3 + 6, 0x20, L4, 6 },
		{ IPPROTO_UDP, L3, 0x65, L4, 6 },
		{ IPPROTO_UDP, 12, 0x12, L4, 6 },
		/* IP headers that end elsewhere, and a short one of TCP */
		{ IPPROTO_UDP, L3, 0x46, L4, 6 },
		{ IPPROTO_UDP, L3, 0x44, L4, 6 },
		{ IPPROTO_TCP, L4 + 12, 0x40, L4, 16 },
	};
	unsigned int i, sum;

	for (i = 0; i < ARRAY_SIZE(to); i++) {
		struct tpacket4_meta m = {
			.flags = TP4_META_CSUM,
			.csum_start = to[i].start,
			.csum_offset = to[i].offset,
		};
		unsigned int start = to[i].start;
		int len = L4 + header_len(to[i].proto) + 300;
		char pkt[400];

		fill_ip4(pkt, to[i].proto, 300, i);
		if (to[i].at)
			pkt[to[i].at] = to[i].byte;
		ASSERT_EQ(0, send_meta(&self->a, &m, pkt, len, 200, HEADROOM)) {
			TH_LOG("request %u", i);
		}
		ASSERT_EQ(len, recv_meta(&self->b));
		sum = ~sum_up(pkt + start, len - start, 0) & 0xffff;
		put16(pkt + start + to[i].offset, sum ? sum : 0xffff);
		EXPECT_EQ(0, memcmp(pkt, buf, len)) {
			TH_LOG("request %u", i);
		}
		EXPECT_EQ(0U, self->b.got.flags & TP4_META_CSUM);
	}
}

/* Invalid metadata is returned, and the next packet is sent. */
TEST_F(meta, invalid_requests)
{
	static const struct tpacket4_meta bad[] = {
		{ .flags = 0x80000000 },
		{ .flags = TP4_META_TX_LAUNCH << 1 },
		{ .flags = TP4_META_TUNNEL << 1 },
		/* alone */
		{ .flags = TP4_META_TUNNEL, .inner_start = L3 },
		{ .flags = TP4_META_CSUM_CRC32C },
		/* no SO_TXTIME */
		{ .flags = TP4_META_TX_LAUNCH, .tstamp = 1 },
		{ .flags = TP4_META_CSUM | TP4_META_CSUM_CRC32C,
		  .csum_start = L4, .csum_offset = 8 },
		/* beyond the packet, by one byte and by many */
		{ .flags = TP4_META_CSUM, .csum_start = 141 },
		{ .flags = TP4_META_CSUM, .csum_start = L4,
		  .csum_offset = 142 - L4 - 1 },
		{ .flags = TP4_META_CSUM, .csum_start = 0xffff,
		  .csum_offset = 0xffff },
		{ .flags = TP4_META_CSUM, .csum_start = L4,
		  .csum_offset = 0xffff },
		/* where the IP header is */
		{ .flags = TP4_META_CSUM, .csum_start = L3, .csum_offset = 6 },
		/* not that of such a packet */
		{ .flags = TP4_META_GSO | TP4_META_CSUM, .gso_size = 50,
		  .gso_type = VIRTIO_NET_HDR_GSO_TCPV4, .csum_start = L4,
		  .csum_offset = 6 },
		{ .flags = TP4_META_GSO, .gso_size = 50,
		  .gso_type = VIRTIO_NET_HDR_GSO_TCPV4 },
		{ .flags = TP4_META_GSO, .gso_size = 50,
		  .gso_type = VIRTIO_NET_HDR_GSO_TCPV6 },
		/* an unknown type, and the one received if there is none */
		{ .flags = TP4_META_GSO, .gso_size = 50, .gso_type = 0x7f },
		{ .flags = TP4_META_GSO, .gso_size = 50,
		  .gso_type = VIRTIO_NET_HDR_GSO_ECN },
		{ .flags = TP4_META_GSO, .gso_size = 50 },
		/* of no or of endless size */
		{ .flags = TP4_META_GSO | TP4_META_CSUM, .csum_start = L4,
		  .csum_offset = 6,
		  .gso_type = VIRTIO_NET_HDR_GSO_UDP_L4 },
		{ .flags = TP4_META_GSO | TP4_META_CSUM, .csum_start = L4,
		  .csum_offset = 6, .gso_size = 0xffff,
		  .gso_type = VIRTIO_NET_HDR_GSO_UDP_L4 },
		{ .flags = TP4_META_GSO, .gso_size = 50,
		  .gso_type = VIRTIO_NET_HDR_GSO_UDP_L4 },
	};
	struct tpacket4_meta m = csum_meta(IPPROTO_UDP);
	struct tpacket_stats_v4 st;
	struct tpacket4_desc d[MAX_CHAIN];
	unsigned int i, len = L4 + 8 + 100;
	char pkt[200];
	int n;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		fill_ip4(pkt, IPPROTO_UDP, 100, i);
		EXPECT_EQ(EINVAL, send_meta(&self->a, &bad[i], pkt, len, 2048,
					    HEADROOM)) {
			TH_LOG("metadata %u", i);
		}
	}
	/* on top of the data */
	EXPECT_EQ(EINVAL, send_meta(&self->a, &m, pkt, len, 2048,
				    HEADROOM - 1));
	/* in a frame other than the first */
	n = pv4_cut(&self->a, pkt, len, 100, HEADROOM, d);
	ASSERT_EQ(2, n);
	d[1].flags |= TP4_META;
	pv4_post(&self->a.tx, d, n);
	EXPECT_GE(0, pv4_kick(&self->a, 0));
	ASSERT_TRUE(pv4_reap_all(&self->a, WAIT_MS));
	EXPECT_EQ(1U, self->a.errors[ECANCELED]);
	ASSERT_EQ(0, pv4_stats(self->a.fd, &st));
	EXPECT_EQ(i + 3, st.tx_invalid_descs);

	/* nothing of it was sent, and valid packets still are */
	ASSERT_EQ(0, send_meta(&self->a, &m, pkt, len, 2048, HEADROOM));
	ASSERT_EQ((int)len, recv_meta(&self->b));
	EXPECT_EQ(0, memcmp(pkt, buf, len));
}

/* ---- from Rx to Tx ---- */

/* Posts the received packet unchanged on the Tx ring of another socket with the
 * same area. Returns 0 or -errno.
 */
static int forward_one(struct pv4 *from, struct pv4 *to)
{
	struct tpacket4_desc d[MAX_CHAIN];
	unsigned int n = 0;
	__u64 end = now_ms() + WAIT_MS;
	int ret;

	do {
		if (n == MAX_CHAIN ||
		    !pv4_take_wait(from, &from->rx, &d[n], WAIT_MS))
			return -ETIMEDOUT;
	} while (d[n++].flags & TP4_PKT_CONT);
	pv4_post(&to->tx, d, n);
	ret = pv4_kick(to, 0);
	if (ret < 0)
		return ret;
	while (n) {
		if (!pv4_take(&to->tx, d)) {
			if (now_ms() > end)
				return -ETIMEDOUT;
			usleep(1000);
			continue;
		}
		if (d->error)
			return -d->error;
		pv4_rx_post(from, d->idx);
		n--;
	}
	return 0;
}

/* Forwards packets unchanged from one pair to another, with the checksum
 * missing or unsegmented, until an end without offloads.
 */
TEST_F(meta, forward)
{
	struct tpacket4_meta m;
	static char pkt[SIZE];
	struct pv4 c, d;
	struct pv4_cfg cfg = {
		.ifname = if_c, .tx_nr = pv4_min_descs(),
		.mr_fd = self->b.fd, .frames = 1, .meta = true,
	};
	unsigned int i, offload;
	int len;

	ASSERT_EQ(0, add_pair(if_c, if_d, MTU));
	ASSERT_EQ(0, open_one(&d, if_d, true, false));
	ASSERT_EQ(0, pv4_open(&c, &cfg));
	for (offload = 2; offload--; ) {
		/* a missing checksum, and one that is present */
		fill_ip4(pkt, IPPROTO_TCP, 3000, 77);
		len = L4 + 3020;
		m = csum_meta(IPPROTO_TCP);
		ASSERT_EQ(0, send_meta(&self->a, &m, pkt, len, 1900,
				       HEADROOM));
		ASSERT_EQ(0, forward_one(&self->b, &c));
		ASSERT_EQ(len, recv_meta(&d));
		EXPECT_EQ(offload ? TP4_META_CSUM : 0,
			  d.got.flags & TP4_META_CSUM);
		EXPECT_EQ(!offload, ip4_ok(buf, len, IPPROTO_TCP, 3000, 0,
					   77));
		fill_packet(pkt, len, 78);
		ASSERT_EQ(0, send_plain(&self->a, pkt, len));
		ASSERT_EQ(0, forward_one(&self->b, &c));
		ASSERT_EQ(len, recv_meta(&d));
		EXPECT_TRUE(packet_ok(buf, len, len, 78));
		EXPECT_EQ(0U, d.got.flags & TP4_META_CSUM);

		for (i = 0; i < ARRAY_SIZE(gso); i++) {
			len = send_gso(_metadata, &self->a, pkt, i);
			ASSERT_EQ(0, forward_one(&self->b, &c)) {
				TH_LOG("packet %u", i);
			}
			if (offload)
				expect_gso(_metadata, &d, pkt, len, i);
			else
				expect_segments(_metadata, &d, i);
		}
		if (offload)
			ASSERT_EQ(0, no_offloads(if_c));
	}
	pv4_close(&d);
	pv4_close(&c);
}

/* ---- launch time ---- */

/* Held back until the launch time; a receive timestamp is not one. */
TEST_F(meta, launch_time)
{
	struct sock_txtime txtime = { .clockid = CLOCK_MONOTONIC };
	struct tpacket4_meta m = { .flags = TP4_META_TX_LAUNCH };
	const unsigned int delay = 300;
	char pkt[100];
	__u64 start;

	if (set_qdisc("fq"))
		SKIP(return, "no fq qdisc");
	ASSERT_EQ(0, setsockopt(self->a.fd, SOL_SOCKET, SO_TXTIME, &txtime,
				sizeof(txtime)));
	fill_packet(pkt, sizeof(pkt), 1);
	start = now_ms();
	m.tstamp = (start + delay) * 1000000;
	ASSERT_EQ(0, send_meta(&self->a, &m, pkt, sizeof(pkt), 2048,
			       HEADROOM));
	ASSERT_EQ((int)sizeof(pkt), recv_meta(&self->b));
	EXPECT_LE(start + delay, now_ms());

	m.flags = TP4_META_RX_TS_SOFTWARE;
	start = now_ms();
	m.tstamp = (start + WAIT_MS) * 1000000;
	ASSERT_EQ(0, send_meta(&self->a, &m, pkt, sizeof(pkt), 2048,
			       HEADROOM));
	ASSERT_EQ((int)sizeof(pkt), recv_meta(&self->b));
	EXPECT_GT(start + WAIT_MS, now_ms());
}

/* A launch time that fq does not accept holds up no other packet. */
TEST_F(meta, launch_time_too_far)
{
	struct sock_txtime txtime = { .clockid = CLOCK_MONOTONIC };
	struct tpacket4_meta m = { .flags = TP4_META_TX_LAUNCH };
	const unsigned int delays[] = { 300, 100000, 400 };
	struct tpacket4_desc d;
	unsigned int i;
	char pkt[100];

	if (set_qdisc("fq horizon 20s"))
		SKIP(return, "no fq qdisc");
	ASSERT_EQ(0, setsockopt(self->a.fd, SOL_SOCKET, SO_TXTIME, &txtime,
				sizeof(txtime)));
	self->a.put = &m;
	for (i = 0; i < ARRAY_SIZE(delays); i++) {
		fill_packet(pkt, sizeof(pkt), i);
		m.tstamp = (now_ms() + delays[i]) * 1000000;
		ASSERT_EQ(0, pv4_put(&self->a, pkt, sizeof(pkt), 2048,
				     HEADROOM));
	}
	self->a.put = NULL;
	EXPECT_EQ(2 * (int)sizeof(pkt), pv4_kick(&self->a, MSG_DONTWAIT));
	/* the first one that is back */
	ASSERT_TRUE(pv4_take(&self->a.tx, &d));
	EXPECT_EQ(ENOBUFS, d.error);
	ASSERT_EQ((int)sizeof(pkt), recv_meta(&self->b));
	EXPECT_EQ(0U, packet_seq(buf));
	ASSERT_EQ((int)sizeof(pkt), recv_meta(&self->b));
	EXPECT_EQ(2U, packet_seq(buf));
}

TEST_HARNESS_MAIN
