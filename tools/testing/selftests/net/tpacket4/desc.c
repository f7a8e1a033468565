// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4: descriptors. Invalid ones are returned with an error and do not
 * affect others, missing ones cause drops that are counted, and none is lost.
 */
#include "invalid_desc.h"

/* ---- sending ---- */

FIXTURE(tx_desc) {
	struct pv4 s;			/* sends on if_a, whose MTU is TX_MTU */
	int rx;
	char *buf;
};

FIXTURE_SETUP(tx_desc)
{
	struct pv4_cfg cfg = {
		.ifname = if_a, .tx_nr = pv4_min_descs(),
		.frames = AREA_FRAMES,
	};

	pv4_net_setup(_metadata);
	ASSERT_EQ(0, set_mtu(if_a, TX_MTU));
	ASSERT_EQ(0, pv4_open(&self->s, &cfg));
	self->rx = plain_socket(_metadata, if_b, ETH_P_ALL);
	self->buf = malloc(1 << 17);
	ASSERT_TRUE(!!self->buf);
}

FIXTURE_TEARDOWN(tx_desc)
{
	pv4_close(&self->s);
	close(self->rx);
	free(self->buf);
}

/* Each invalid descriptor between two valid ones, posted as one batch. */
TEST_F(tx_desc, invalid_between_valid)
{
	struct tpacket4_desc d[BATCH_DESCS], back;
	struct batch_back seen = { 0 };
	struct tpacket_stats_v4 st;
	unsigned int i;
	int len;

	len = make_batch(&self->s, d);
	pv4_post(&self->s.tx, d, BATCH_DESCS);
	EXPECT_EQ(len, pv4_kick(&self->s, 0));
	for (i = 0; i < BATCH_DESCS; i++) {
		ASSERT_TRUE(pv4_take_wait(&self->s, &self->s.tx, &back,
					  WAIT_MS));
		check_back(_metadata, &back, &seen);
	}
	check_all_back(_metadata, &seen);
	for (i = 0; i < BATCH_DESCS; i += 2) {
		len = plain_recv(self->rx, self->buf, 1 << 17, WAIT_MS);
		EXPECT_TRUE(packet_ok(self->buf, len, 100 + i, i));
	}
	EXPECT_EQ(-EAGAIN, plain_recv(self->rx, self->buf, 1 << 17, QUIET_MS));
	ASSERT_EQ(0, pv4_stats(self->s.fd, &st));
	EXPECT_EQ(ARRAY_SIZE(invalid_descs), st.tx_invalid_descs);
	EXPECT_EQ(0U, st.tx_no_desc);
	EXPECT_EQ(0, pv4_kick(&self->s, MSG_DONTWAIT));
	ASSERT_EQ(0, pv4_stats(self->s.fd, &st));
	EXPECT_EQ(0U, st.tx_invalid_descs);
	EXPECT_EQ(1U, st.tx_no_desc);
}

/* A chain of three with each invalid descriptor at each position, also across
 * the end of the ring, followed by a valid packet.
 */
TEST_F(tx_desc, invalid_in_chain)
{
	const struct invalid_desc *end = invalid_descs +
					 ARRAY_SIZE(invalid_descs);
	const struct invalid_desc *bad;
	unsigned int place, i, n = 0, size = self->s.tx.size;
	struct tpacket4_desc d[4], back;
	int len;

	for (bad = invalid_descs; bad < end; bad++) {
		if (!is_bad_in_chain(bad))
			continue;
		for (place = 0; place < 3; place++, n++) {
			make_chain(&self->s, d, bad, place, n);
			pv4_post(&self->s.tx, d, 4);
			ASSERT_EQ(99, pv4_kick(&self->s, 0));
			for (i = 0; i < 4; i++) {
				ASSERT_TRUE(pv4_take_wait(&self->s,
							  &self->s.tx, &back,
							  WAIT_MS));
				check_chain(_metadata, d, &back, bad, place, i);
			}
			len = plain_recv(self->rx, self->buf, 1 << 17,
					 WAIT_MS);
			ASSERT_TRUE(packet_ok(self->buf, len, 99, n));
		}
		/* advance to the slots before the end, so that the next chain
		 * wraps
		 */
		while (self->s.tx.avail % size != size - 2 &&
		       (bad - invalid_descs) % 2) {
			pv4_post(&self->s.tx, &(struct tpacket4_desc) {
				 .idx = 1ULL << 40 }, 1);
			pv4_kick(&self->s, 0);
			ASSERT_TRUE(pv4_take(&self->s.tx, &back));
			EXPECT_EQ(EINVAL, back.error);
		}
	}
	EXPECT_EQ(-EAGAIN, plain_recv(self->rx, self->buf, 1 << 17, QUIET_MS));
}

/* Two invalid descriptors in one chain: each gets its own error. */
TEST_F(tx_desc, two_invalid_in_chain)
{
	struct tpacket4_desc d[3] = {
		{ .idx = 999, .len = 60, .flags = TP4_PKT_CONT },
		{ .idx = 2, .len = 60, .flags = TP4_PKT_CONT },
		{ .idx = 3, .len = 0 },
	}, back;
	int i, want[] = { EINVAL, ECANCELED, EINVAL };

	pv4_post(&self->s.tx, d, 3);
	EXPECT_EQ(0, pv4_kick(&self->s, 0));
	for (i = 0; i < 3; i++) {
		ASSERT_TRUE(pv4_take(&self->s.tx, &back));
		EXPECT_EQ(want[i], back.error);
	}
}

/* Posts @n descriptors of @len bytes as one chain and counts those returned. */
static int send_chain(struct pv4 *s, unsigned int n, unsigned int len,
		      unsigned int errors[256])
{
	struct tpacket4_desc d[256];
	unsigned int i;
	int ret;

	memset(errors, 0, 256 * sizeof(*errors));
	for (i = 0; i < n; i++)
		d[i] = (struct tpacket4_desc) {
			.idx = i, .len = len,
			.flags = i + 1 < n ? TP4_PKT_CONT : 0,
		};
	pv4_post(&s->tx, d, n);
	ret = pv4_kick(s, 0);
	for (i = 0; i < n && pv4_take_wait(s, &s->tx, d, WAIT_MS); i++)
		errors[d->error]++;
	return ret;
}

TEST_F(tx_desc, packet_too_long)
{
	static const int tags[] = { 0, ETH_P_8021Q, ETH_P_8021AD };
	unsigned int errors[256], i;
	char *f = pv4_frame(&self->s, 0);

	EXPECT_EQ(MAX_LEN, send_chain(&self->s, 1, MAX_LEN, errors));
	EXPECT_EQ(0, send_chain(&self->s, 1, MAX_LEN + 1, errors));
	EXPECT_EQ(1U, errors[EMSGSIZE]);
	/* room for a VLAN tag is additional */
	for (i = 0; i < ARRAY_SIZE(tags); i++) {
		fill_packet(f, 2048, 0);
		if (tags[i]) {
			f[12] = tags[i] >> 8;
			f[13] = tags[i];
		}
		EXPECT_EQ(tags[i] ? MAX_LEN + 4 : 0,
			  send_chain(&self->s, 1, MAX_LEN + 4, errors));
		EXPECT_EQ(tags[i] ? 0U : 1U, errors[EMSGSIZE]);
	}
	EXPECT_EQ(0, send_chain(&self->s, 1, MAX_LEN + 5, errors));
	EXPECT_EQ(1U, errors[EMSGSIZE]);
	/* the sum is checked; every descriptor of the chain is returned */
	EXPECT_EQ(0, send_chain(&self->s, 3, 700, errors));
	EXPECT_LE(1U, errors[EMSGSIZE]);
	EXPECT_EQ(3U, errors[EMSGSIZE] + errors[ECANCELED]);
	/* and it cannot overflow, as with 255 * 2048 */
	EXPECT_EQ(0, send_chain(&self->s, 255, 2048, errors));
	EXPECT_LE(1U, errors[EMSGSIZE]);
	EXPECT_EQ(255U, errors[EMSGSIZE] + errors[ECANCELED]);
	EXPECT_EQ(700, send_chain(&self->s, 1, 700, errors));
	EXPECT_EQ(1U, errors[0]);
}

/* A chain can have any number of frames. What an skb has no fragments for is
 * copied: CONFIG_MAX_SKB_FRAGS is between 17 and 45.
 */
TEST_F(tx_desc, chain_of_any_length)
{
	static const unsigned int lens[] = { 60, 255, 1514, 1600, 9014 };
	unsigned int i, n, got, piece, size = self->s.tx.size;
	static const unsigned int frames[] = { 1, 17, 18, 44, 45, 47, 255 };
	uint32_t seq = 0;

	ASSERT_EQ(0, set_mtu(if_a, MTU));
	for (i = 0; i < ARRAY_SIZE(lens) * ARRAY_SIZE(frames); i++, seq++) {
		n = lens[i / ARRAY_SIZE(frames)];
		piece = n / frames[i % ARRAY_SIZE(frames)];
		piece = piece ? piece : 1;
		piece = piece < 2048 ? piece : 2048;
		if ((n + piece - 1) / piece > size)
			piece++;
		fill_packet(self->buf, n, seq);
		ASSERT_EQ(0, pv4_put(&self->s, self->buf, n, piece, 0));
		EXPECT_EQ((int)n, pv4_kick(&self->s, 0));
		ASSERT_TRUE(pv4_reap_all(&self->s, WAIT_MS));
		got = plain_recv(self->rx, self->buf, 1 << 17, WAIT_MS);
		EXPECT_TRUE(packet_ok(self->buf, got, n, seq)) {
			TH_LOG("%u bytes in pieces of %u", n, piece);
		}
	}
	for (i = 1; i < 256; i++)
		EXPECT_EQ(0U, self->s.errors[i]);
}

/* Same if the kernel builds the link-layer header */
TEST_F(tx_desc, chain_behind_a_header)
{
	struct pv4_cfg cfg = {
		.ifname = if_a, .tx_nr = pv4_min_descs(), .type = SOCK_DGRAM,
	};
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_TEST),
		.sll_ifindex = if_nametoindex(if_a), .sll_halen = ETH_ALEN,
		.sll_addr = { 2, 0, 0, 0, 0, 1 },
	};
	unsigned int i, pieces[] = { 2000, 100, 40 };
	static char pkt[MTU];
	struct pv4 s;

	ASSERT_EQ(0, set_mtu(if_a, MTU));
	ASSERT_EQ(0, pv4_open(&s, &cfg));
	for (i = 0; i < ARRAY_SIZE(pieces); i++) {
		fill_packet(pkt, sizeof(pkt), i);
		ASSERT_EQ(0, pv4_put(&s, pkt, sizeof(pkt), pieces[i], 0));
		EXPECT_EQ((ssize_t)sizeof(pkt),
			  sendto(s.fd, NULL, 0, 0, (struct sockaddr *)&to,
				 sizeof(to)));
		ASSERT_EQ((int)sizeof(pkt) + ETH_HLEN,
			  plain_recv(self->rx, self->buf, 1 << 17, WAIT_MS));
		EXPECT_EQ(0, memcmp(pkt, self->buf + ETH_HLEN, sizeof(pkt)));
		EXPECT_TRUE(pv4_reap_all(&s, WAIT_MS));
	}
	EXPECT_EQ(5U + 90U + 225U, s.errors[0]);
	pv4_close(&s);
}

/* A packet that takes the whole ring and goes on must not block it. */
TEST_F(tx_desc, chain_without_end)
{
	struct tpacket4_desc d = { .len = 20, .flags = TP4_PKT_CONT };
	unsigned int errors[256], i, size = self->s.tx.size;

	for (i = 0; i < size; i++)
		pv4_post(&self->s.tx, &d, 1);
	EXPECT_EQ(0, pv4_kick(&self->s, 0));
	EXPECT_EQ(size, pv4_reap(&self->s));
	EXPECT_EQ(size, self->s.errors[EMSGSIZE]);
	/* nor is its end sent */
	EXPECT_EQ(0, send_chain(&self->s, 3, 20, errors));
	EXPECT_EQ(3U, errors[EMSGSIZE]);
	EXPECT_EQ(60, send_chain(&self->s, 1, 60, errors));
	EXPECT_EQ(1U, errors[0]);
}

/* ---- receiving ---- */

FIXTURE(rx_desc) {
	struct pv4 s;			/* on if_b, nothing posted */
	int tx;
	unsigned int nr, seq;
	char *buf;
};

FIXTURE_SETUP(rx_desc)
{
	struct pv4_cfg cfg = { .rx_nr = pv4_min_descs() };

	pv4_net_setup(_metadata);
	ASSERT_EQ(0, pv4_open(&self->s, &cfg));
	/* not bound yet: take the descriptors that pv4_open() posted */
	memset(self->s.rx.desc, 0, cfg.rx_nr * sizeof(*self->s.rx.desc));
	self->s.rx.avail = 0;
	ASSERT_EQ(0, pv4_bind(self->s.fd, if_b, ETH_P_ALL));
	self->tx = plain_socket(_metadata, if_a, 0);
	self->nr = cfg.rx_nr;
	self->buf = malloc(1 << 17);
	ASSERT_TRUE(!!self->buf);
}

FIXTURE_TEARDOWN(rx_desc)
{
	pv4_close(&self->s);
	close(self->tx);
	free(self->buf);
}

/* Sends packets and waits until the socket has counted them. */
static void inject(struct __test_metadata *_metadata,
		   struct _test_data_rx_desc *self, unsigned int n,
		   unsigned int len, struct tpacket_stats_v4 *sum)
{
	uint64_t end = now_ms() + WAIT_MS;
	struct tpacket_stats_v4 st;
	unsigned int i, seen = 0;

	memset(sum, 0, sizeof(*sum));
	for (i = 0; i < n; i++) {
		fill_packet(self->buf, len, self->seq++);
		ASSERT_EQ((int)len, send(self->tx, self->buf, len, 0));
	}
	while (seen < n) {
		ASSERT_LT(now_ms(), end);
		ASSERT_EQ(0, pv4_stats(self->s.fd, &st));
		seen += st.tp_packets;
		sum->tp_drops += st.tp_drops;
		sum->rx_ring_full += st.rx_ring_full;
		sum->rx_no_desc += st.rx_no_desc;
		sum->rx_invalid_descs += st.rx_invalid_descs;
		if (!st.tp_packets)
			usleep(1000);
	}
	sum->tp_packets = seen;
}

TEST_F(rx_desc, none_posted)
{
	struct tpacket_stats_v4 st;

	inject(_metadata, self, 20, 60, &st);
	EXPECT_EQ(20U, st.tp_packets);
	EXPECT_EQ(20U, st.tp_drops);
	EXPECT_EQ(20U, st.rx_ring_full + st.rx_no_desc);
	/* those are lost; later ones are received when frames are posted */
	pv4_rx_post(&self->s, 11);
	inject(_metadata, self, 1, 60, &st);
	EXPECT_EQ(0U, st.tp_drops);
	EXPECT_EQ(60, pv4_recv(&self->s, self->buf, 1 << 17, WAIT_MS));
	EXPECT_EQ(20U, packet_seq(self->buf));
}

/* Drops of a ring are reported once, also after its removal. */
TEST_F(rx_desc, removed_ring)
{
	int other = plain_socket(_metadata, if_b, ETH_P_ALL);
	struct tpacket_stats_v4 st;
	unsigned int i;

	for (i = 0; i < 20; i++) {
		fill_packet(self->buf, 60, self->seq++);
		ASSERT_EQ(60, send(self->tx, self->buf, 60, 0));
		ASSERT_EQ(60, recv(other, self->buf, 1 << 17, 0));
	}
	close(other);
	ASSERT_EQ(0, munmap(self->s.map, self->s.map_len));
	self->s.map = NULL;
	ASSERT_EQ(0, pv4_set_ring(self->s.fd, PACKET_RX_RING, -1, 0));
	ASSERT_EQ(0, pv4_stats(self->s.fd, &st));
	EXPECT_EQ(20U, st.tp_packets);
	EXPECT_EQ(20U, st.tp_drops);
	EXPECT_EQ(0U, st.rx_ring_full + st.rx_no_desc);
	ASSERT_EQ(0, pv4_stats(self->s.fd, &st));
	EXPECT_EQ(0U, st.tp_packets + st.tp_drops);
}

TEST_F(rx_desc, full_ring)
{
	struct tpacket_stats_v4 st;
	struct tpacket4_desc d;
	unsigned int i, round;

	for (round = 0; round < 3; round++) {
		/* frames in any order, also adjacent ones */
		for (i = 0; i < self->nr; i++)
			pv4_rx_post(&self->s, (i * 7 + round) % self->nr);
		self->seq = 0;
		inject(_metadata, self, self->nr + 33, 60, &st);
		EXPECT_EQ(self->nr + 33, st.tp_packets);
		EXPECT_EQ(33U, st.tp_drops);
		EXPECT_EQ(33U, st.rx_ring_full);
		EXPECT_EQ(0U, st.rx_no_desc);
		for (i = 0; i < self->nr; i++) {
			ASSERT_TRUE(pv4_take(&self->s.rx, &d));
			/* each frame once, in the order of posting */
			EXPECT_EQ((i * 7 + round) % self->nr, d.idx);
			EXPECT_EQ(i, packet_seq(pv4_frame(&self->s, d.idx)));
		}
		EXPECT_FALSE(pv4_take(&self->s.rx, &d));
	}
}

/* A chain needs all its frames at once, or takes none. */
TEST_F(rx_desc, chain_does_not_fit)
{
	struct tpacket_stats_v4 st;
	struct tpacket4_desc d;
	unsigned int i;

	for (i = 0; i < 4; i++)
		pv4_rx_post(&self->s, i);
	inject(_metadata, self, 3, 8193, &st);	/* five frames */
	EXPECT_EQ(3U, st.tp_drops);
	EXPECT_EQ(3U, st.rx_no_desc);
	EXPECT_EQ(0U, st.rx_ring_full);
	for (i = 0; i < 4; i++)
		EXPECT_TRUE(desc_is_kernels(pv4_slot(&self->s.rx, i)));
	/* smaller packets still get frames */
	inject(_metadata, self, 1, 60, &st);
	EXPECT_EQ(0U, st.tp_drops);
	ASSERT_TRUE(pv4_take_wait(&self->s, &self->s.rx, &d, WAIT_MS));
	EXPECT_EQ(0U, d.idx);
	EXPECT_EQ(3U, packet_seq(pv4_frame(&self->s, 0)));
	/* three frames are left: exactly 6144 bytes fit */
	inject(_metadata, self, 1, 6145, &st);
	EXPECT_EQ(1U, st.rx_no_desc);
	inject(_metadata, self, 1, 6144, &st);
	EXPECT_EQ(0U, st.tp_drops);
	EXPECT_EQ(6144, pv4_recv(&self->s, self->buf, 1 << 17, WAIT_MS));
	EXPECT_EQ(5U, packet_seq(self->buf));
}

/* An invalid idx uses up its slot, but loses no packet. */
TEST_F(rx_desc, invalid_idx)
{
	const uint64_t bad[] = {
		self->nr, ~0ULL, 1ULL << 32, 1ULL << 53, 1ULL << 63,
	};
	struct tpacket_stats_v4 st;
	struct tpacket4_desc d;
	unsigned int i, k, n = ARRAY_SIZE(bad), good = 0, seen = 0;

	for (i = 0; i < n; i++) {
		pv4_rx_post(&self->s, bad[i]);
		pv4_rx_post(&self->s, i);
	}
	inject(_metadata, self, n, 60, &st);
	EXPECT_EQ(0U, st.tp_drops);
	EXPECT_EQ(n, st.rx_invalid_descs);
	/* valid frames are in order; an invalid one may be returned early */
	for (i = 0; i < 2 * n; i++) {
		ASSERT_TRUE(pv4_take_wait(&self->s, &self->s.rx, &d, WAIT_MS));
		EXPECT_EQ(0, d.flags);
		if (!d.error) {
			EXPECT_EQ(good, d.idx);
			EXPECT_EQ(good, packet_seq(pv4_frame(&self->s, good)));
			good++;
			continue;
		}
		EXPECT_EQ(EINVAL, d.error);
		EXPECT_EQ(0U, d.len);
		for (k = 0; k < n; k++)
			if (bad[k] == d.idx)
				seen |= 1u << k;
	}
	EXPECT_EQ(n, good);
	EXPECT_EQ((1u << n) - 1, seen);
}

/* In the middle of a chain: the next packet is complete, and every frame is
 * returned once.
 */
TEST_F(rx_desc, invalid_idx_in_chain)
{
	unsigned int place, i, good = 0, base = 0;
	struct tpacket_stats_v4 st;
	struct tpacket4_desc d;

	for (place = 0; place < 5; place++, base += 12) {
		unsigned int n = 12, whole = 0, bad = 0, seen[12] = { 0 };
		size_t len = 0;

		for (i = 0; i < n; i++)
			pv4_rx_post(&self->s, i == place ? 5000 : i);
		inject(_metadata, self, 2, 9000, &st);	/* five frames each */
		EXPECT_EQ(1U, st.rx_invalid_descs);
		EXPECT_GE(1U, st.tp_drops);
		while (pv4_take_wait(&self->s, &self->s.rx, &d, QUIET_MS)) {
			if (d.error) {
				EXPECT_EQ(EINVAL, d.error);
				EXPECT_EQ(0U, d.len);
				EXPECT_EQ(5000U, d.idx);
				bad++;
				continue;
			}
			ASSERT_GT(12U, d.idx);
			seen[d.idx]++;
			memcpy(self->buf + len, pv4_frame(&self->s, d.idx) +
			       d.offset, d.len);
			len += d.len;
			if (d.flags & TP4_PKT_CONT)
				continue;
			EXPECT_TRUE(packet_ok(self->buf, len, 9000,
					      packet_seq(self->buf)));
			whole++;
			len = 0;
		}
		EXPECT_EQ(1U, bad);
		EXPECT_EQ(2U, whole + st.tp_drops);
		EXPECT_EQ(0U, len);
		good += whole;
		for (i = 0; i < n; i++)
			EXPECT_GE(1U, seen[i]);
		/* use up the remaining frames for the next round */
		while (self->s.rx.used != self->s.rx.avail) {
			inject(_metadata, self, 1, 60, &st);
			ASSERT_TRUE(pv4_take_wait(&self->s, &self->s.rx, &d,
						  WAIT_MS));
		}
	}
	EXPECT_LE(5U, good);
}

/* All fields of a posted Rx descriptor but idx are ignored. */
TEST_F(rx_desc, other_fields_ignored)
{
	struct tpacket4_desc d = {
		.idx = 3, .len = UINT_MAX, .offset = 0xffff, .error = 0xff,
	}, back;
	struct tpacket_stats_v4 st;

	pv4_post(&self->s.rx, &d, 1);
	inject(_metadata, self, 1, 60, &st);
	ASSERT_TRUE(pv4_take_wait(&self->s, &self->s.rx, &back, WAIT_MS));
	EXPECT_EQ(3U, back.idx);
	EXPECT_EQ(60U, back.len);
	EXPECT_EQ(self->s.offset, back.offset);
	EXPECT_EQ(0, back.error);
	EXPECT_EQ(0, back.flags);
}

/* Posting a slot behind an empty one returns no slot out of order. */
TEST_F(rx_desc, slots_in_order)
{
	struct tpacket_stats_v4 st;
	struct tpacket4_desc d;

	self->s.rx.avail = 1;
	pv4_rx_post(&self->s, 8);		/* slot 1 */
	inject(_metadata, self, 1, 60, &st);
	EXPECT_EQ(1U, st.tp_drops);
	EXPECT_TRUE(desc_is_kernels(pv4_slot(&self->s.rx, 1)));
	self->s.rx.avail = 0;
	pv4_rx_post(&self->s, 9);		/* slot 0 */
	self->s.rx.avail = 2;
	inject(_metadata, self, 2, 60, &st);
	EXPECT_EQ(0U, st.tp_drops);
	ASSERT_TRUE(pv4_take_wait(&self->s, &self->s.rx, &d, WAIT_MS));
	EXPECT_EQ(9U, d.idx);
	ASSERT_TRUE(pv4_take_wait(&self->s, &self->s.rx, &d, WAIT_MS));
	EXPECT_EQ(8U, d.idx);
}

/* A program that overwrites the whole ring only harms itself. */
TEST_F(rx_desc, random_descriptors)
{
	struct tpacket_stats_v4 st;
	unsigned int i, k, errors = 0;
	struct pv4 *s = &self->s;
	uint32_t x = 12345;
	char *p;

	for (k = 0; k < 50; k++) {
		p = s->map;
		for (i = 0; i < s->map_len; i++) {
			x = x * 1664525 + 1013904223;
			p[i] = x >> 24;
		}
		inject(_metadata, self, 20, k & 1 ? 9000 : 60, &st);
		EXPECT_EQ(20U, st.tp_packets);
		errors += st.rx_invalid_descs;
	}
	EXPECT_LT(0U, errors);
	/* the kernel keeps its own position: with all slots posted, the next
	 * packet is in one of them
	 */
	for (i = 0; i < self->nr; i++)
		pv4_rx_post(s, i);
	inject(_metadata, self, 1, 60, &st);
	EXPECT_EQ(0U, st.tp_drops);
	for (i = 0, k = 0; i < self->nr; i++)
		k += !desc_is_kernels(&s->rx.desc[i]);
	EXPECT_EQ(1U, k);
}

TEST_HARNESS_MAIN
