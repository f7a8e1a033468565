// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4, zero-copy mode: the data path. Every mix of ends, every size,
 * contents, order, and books that say where each frame is.
 *
 * What AF_XDP's test, tools/testing/selftests/bpf/xskxceiver.c, looks at, and
 * where it is looked at for V4:
 *
 *	SEND_RECEIVE, *_2K_FRAME		zc_data mix.contents, burst
 *	SEND_RECEIVE_SINGLE_PKT			zc_data mix.contents
 *	SEND_RECEIVE_9K_PACKETS			zc_data mix.contents, pieces
 *	*UNALIGNED*				zc_units: frames at multiples of
 *						64 bytes. Data at any offset, up
 *						to a frame's last byte: zc_data
 *						pieces
 *	*_4001_FRAME_SIZE			abi memreg_einval
 *	POLL_RX, POLL_TX			zc_wake wake.poll_in, poll_out
 *	POLL_RXQ_FULL, POLL_TXQ_FULL		zc_wake wake.poll_timeout
 *	ALIGNED_INV_DESC*, UNALIGNED_INV_DESC*	zc_desc invalid_between_valid,
 *						invalid_rx_idx
 *	*_INV_DESC_MULTI_BUFF			zc_desc invalid_in_chain
 *	TOO_MANY_FRAGS				zc_desc too_long
 *	UMEM_HEADROOM				zc_data mix with headroom,
 *						zc_frames edges
 *	TEARDOWN				zc off_returns_all, zc_life
 *						on_and_off_1000
 *	BIDIRECTIONAL				zc_data both_ways
 *	STAT_RX_DROPPED				zc_redirect
 *						too_long_without_frags (no
 *						other packet is too long for
 *						V4: it takes several frames,
 *						or zc_data none_posted)
 *	STAT_TX_INVALID				zc_desc invalid_between_valid
 *	STAT_RX_FULL, STAT_FILL_EMPTY		zc_data all_taken, none_posted
 *	XDP_PROG_CLEANUP			zc_xdp attach_under_traffic
 *	XDP_DROP_HALF				zc_xdp drop_half
 *	XDP_SHARED_UMEM				zc_frames two_queues,
 *						shared.*
 *	XDP_METADATA_COPY*			zc_adjust metadata
 *	HW_SW_MIN_RING_SIZE, *_MAX_*		zc_frames ring_sizes; with
 *						hardware's, zc_port ring_sizes
 *
 * and how it runs them:
 *
 *	SKB mode (generic XDP)			zc_xdp generic_to_copy;
 *						zc_redirect generic
 *	DRV mode, zero-copy mode		the variants of zc_xdp
 *	busy polling, all of them		zc_busy.sh; zc_wake busy
 */
#include "zc.h"
#include "zc_many.h"

static const unsigned int sizes[] = {
	60, 61, 64, 127, 128, 129, 590, 1000, 1514, 1728, 1729, 1791, 1792,
	1793, 2047, 2048, 2049, 3000, 3584, 3585, 3839, 3840, 3841, 4096, 6144,
	8192, 9000, MAX_PKT,
};

enum end { PLAIN, COPY, ZC };

/* Any kind of sender or receiver of whole packets */
struct end_point {
	enum end kind;
	int fd;				/* PLAIN */
	struct zc z;			/* COPY, ZC */
};

static int open_end(struct __test_metadata *_metadata, struct end_point *e,
		    enum end kind, struct zc_cfg *cfg)
{
	e->kind = kind;
	e->z.s.fd = -1;
	if (kind == PLAIN) {
		e->fd = plain_listener(_metadata, cfg->ifname);
		return 0;
	}
	e->fd = -1;
	cfg->n = kind == ZC;
	return zc_open(&e->z, cfg);
}

static void close_end(struct end_point *e)
{
	close(e->fd);
	zc_close(&e->z);
}

static int put_end(struct end_point *e, const void *buf, size_t len)
{
	if (e->kind == PLAIN)
		return send(e->fd, buf, len, 0) == (ssize_t)len ? 0 : -errno;
	zc_reap(&e->z);
	return zc_put(&e->z, buf, len, e->z.s.frame_size, 0);
}

static int kick_end(struct end_point *e)
{
	return e->kind == PLAIN ? 0 : zc_kick(&e->z);
}

static int recv_end(struct end_point *e, void *buf, int ms)
{
	if (e->kind == PLAIN)
		return plain_recv(e->fd, buf, BUF_SIZE, ms);
	return zc_recv(&e->z, buf, BUF_SIZE, ms);
}

/* ---- every mix of ends, one of them at least in zero-copy mode ---- */

FIXTURE(mix) {
	struct end_point tx, rx;	/* on if_a, on if_b */
	char *buf;
};

FIXTURE_VARIANT(mix) {
	enum end tx, rx;
	unsigned int frame_size, headroom, reserve;
};

FIXTURE_VARIANT_ADD(mix, zc_to_zc) {
	.tx = ZC, .rx = ZC, .frame_size = 2048,
};

FIXTURE_VARIANT_ADD(mix, zc_to_copy) {
	.tx = ZC, .rx = COPY, .frame_size = 2048,
};

FIXTURE_VARIANT_ADD(mix, zc_to_plain) {
	.tx = ZC, .rx = PLAIN, .frame_size = 2048,
};

FIXTURE_VARIANT_ADD(mix, copy_to_zc) {
	.tx = COPY, .rx = ZC, .frame_size = 2048,
};

FIXTURE_VARIANT_ADD(mix, plain_to_zc) {
	.tx = PLAIN, .rx = ZC, .frame_size = 2048,
};

FIXTURE_VARIANT_ADD(mix, frames_4096) {
	.tx = ZC, .rx = ZC, .frame_size = 4096,
};

FIXTURE_VARIANT_ADD(mix, zc_to_zc_headroom) {
	.tx = ZC, .rx = ZC, .frame_size = 2048, .headroom = 65, .reserve = 77,
};

FIXTURE_VARIANT_ADD(mix, plain_to_zc_headroom) {
	.tx = PLAIN, .rx = ZC, .frame_size = 4096, .headroom = 256,
	.reserve = 10,
};

FIXTURE_SETUP(mix)
{
	struct zc_cfg cfg = {
		.frame_size = variant->frame_size,
		.headroom = variant->headroom, .reserve = variant->reserve,
	};

	pv4_net_setup(_metadata);
	cfg.ifname = if_a;
	ASSERT_EQ(0, open_end(_metadata, &self->tx, variant->tx, &cfg));
	cfg.ifname = if_b;
	ASSERT_EQ(0, open_end(_metadata, &self->rx, variant->rx, &cfg));
	self->buf = malloc(BUF_SIZE);
	ASSERT_TRUE(!!self->buf);
}

FIXTURE_TEARDOWN(mix)
{
	close_end(&self->tx);
	close_end(&self->rx);
	free(self->buf);
}

/* Checks at the end of a test that no packet and no frame was lost. */
static void settle(struct __test_metadata *_metadata, struct end_point *e,
		   unsigned int packets)
{
	struct tpacket_stats_v4 st;
	struct zc *z = &e->z;

	if (e->kind == PLAIN)
		return;
	ASSERT_TRUE(zc_reap_all(z, WAIT_MS));
	EXPECT_TRUE(zc_books_balance(z, NULL));
	ASSERT_EQ(0, pv4_stats(z->s.fd, &st));
	EXPECT_EQ(packets, st.tp_packets);
	EXPECT_EQ(0U, st.tp_drops);
	EXPECT_EQ(0U, st.tx_invalid_descs);
	EXPECT_EQ(0U, st.rx_invalid_descs);
	if (e->kind == COPY)
		return;
	ASSERT_EQ(0, zc_set(z, 0));
	EXPECT_EQ((int)z->s.rx.size, zc_all_back(z, ECANCELED, WAIT_MS));
	EXPECT_TRUE(zc_books_closed(z));
	EXPECT_EQ(0U, z->s.errors[ECANCELED]);
}

/* One packet at a time, several wraps of the rings. */
TEST_F(mix, contents)
{
	unsigned int i, n = 0, round, rounds = pv4_fast() ? 2 : 6;
	int len;

	for (round = 0; round < rounds; round++) {
		for (i = 0; i < ARRAY_SIZE(sizes); i++, n++) {
			fill_packet(self->buf, sizes[i], n);
			ASSERT_EQ(0, put_end(&self->tx, self->buf, sizes[i]));
			ASSERT_EQ(0, kick_end(&self->tx));
			memset(self->buf, 0, sizes[i]);
			len = recv_end(&self->rx, self->buf, WAIT_MS);
			ASSERT_TRUE(packet_ok(self->buf, len, sizes[i], n)) {
				TH_LOG("size %u, received %d", sizes[i], len);
			}
		}
	}
	EXPECT_EQ(-EAGAIN, recv_end(&self->rx, self->buf, QUIET_MS));
	settle(_metadata, &self->tx, 0);
	settle(_metadata, &self->rx, n);
}

/* Many packets in flight, but not too many for any queue on the way */
TEST_F(mix, burst)
{
	unsigned int i, round, rounds = pv4_fast() ? 10 : 60, seq, n = 0;
	int len;

	for (round = 0; round < rounds; round++) {
		for (i = 0; i < 24; i++, n++) {
			fill_packet(self->buf, sizes[n * 7 % ARRAY_SIZE(sizes)],
				    n);
			ASSERT_EQ(0, put_end(&self->tx, self->buf,
					     sizes[n * 7 % ARRAY_SIZE(sizes)]));
		}
		ASSERT_EQ(0, kick_end(&self->tx));
		for (i = 0; i < 24; i++) {
			seq = n - 24 + i;
			len = recv_end(&self->rx, self->buf, WAIT_MS);
			ASSERT_TRUE(packet_ok(self->buf, len,
					      sizes[seq * 7 %
						    ARRAY_SIZE(sizes)], seq)) {
				TH_LOG("packet %u: received %d bytes", seq,
				       len);
			}
		}
	}
	EXPECT_EQ(-EAGAIN, recv_end(&self->rx, self->buf, QUIET_MS));
	settle(_metadata, &self->tx, 0);
	settle(_metadata, &self->rx, n);
}

/* ---- VLAN tags ---- */

/* A VLAN tag that the stack offloads is in the packet on the ring. A tagged
 * packet that a program sends is received by its VLAN.
 */
TEST(vlan)
{
	static const unsigned int lens[] = { 60, 500, 1788, 2040, 4090, 9000 };
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };
	struct zc z;
	int fd;

	pv4_net_setup(_metadata);
	ASSERT_EQ(0, run_ip("link add link %s name v4vlan type vlan id 7\n"
			    "link set v4vlan up\n", if_a));
	ASSERT_EQ(0, zc_open(&z, &cfg));
	fd = plain_listener(_metadata, "v4vlan");
	pass_tagged(_metadata, &z, fd, lens, ARRAY_SIZE(lens), 60);
	close(fd);
	zc_close(&z);
}

/* ---- zero-copy at both ends ---- */

FIXTURE(pair) {
	struct zc a, b;			/* on if_a and if_b */
	char *buf;
};

FIXTURE_VARIANT(pair) {
	bool shared;			/* one area for both */
};

FIXTURE_VARIANT_ADD(pair, own_areas) { .shared = false };

FIXTURE_VARIANT_ADD(pair, shared_area) { .shared = true };

FIXTURE_SETUP(pair)
{
	struct zc_cfg cfg = {
		.ifname = if_a, .n = 1, .sharers = variant->shared,
	};

	pv4_net_setup(_metadata);
	ASSERT_EQ(0, zc_open(&self->a, &cfg));
	cfg.ifname = if_b;
	cfg.area = variant->shared ? &self->a : NULL;
	cfg.part = 1;
	cfg.sharers = 0;
	ASSERT_EQ(0, zc_open(&self->b, &cfg));
	self->buf = malloc(BUF_SIZE);
	ASSERT_TRUE(!!self->buf);
}

FIXTURE_TEARDOWN(pair)
{
	zc_close(&self->b);
	zc_close(&self->a);
	free(self->buf);
}

static bool balance(struct _test_data_pair *self, bool shared)
{
	if (shared)
		return !self->a.strays && zc_books_balance(&self->b, &self->a);
	return zc_books_balance(&self->a, NULL) &&
	       zc_books_balance(&self->b, NULL);
}

static bool settled(struct _test_data_pair *self, bool shared)
{
	return zc_reap_all(&self->a, WAIT_MS) &&
	       zc_reap_all(&self->b, WAIT_MS) && balance(self, shared);
}

/* Data in pieces of any length at any offset, down to a byte. */
TEST_F(pair, pieces)
{
	static const struct { unsigned int piece, offset; } p[] = {
		{ 2048, 0 }, { 2047, 1 }, { 1537, 511 }, { 1792, 256 },
		{ 1500, 300 }, { 601, 11 }, { 541, 1507 }, { 1700, 320 },
	};
	unsigned int i, k, n = 0;
	int len;

	for (i = 0; i < ARRAY_SIZE(p); i++) {
		for (k = 0; k < ARRAY_SIZE(sizes); k++, n++) {
			if (sizes[k] > 17 * p[i].piece)
				continue;
			fill_packet(self->buf, sizes[k], n);
			zc_reap(&self->a);
			ASSERT_EQ(0, zc_put(&self->a, self->buf, sizes[k],
					    p[i].piece, p[i].offset));
			ASSERT_EQ(0, zc_kick(&self->a));
			len = zc_recv(&self->b, self->buf, BUF_SIZE, WAIT_MS);
			ASSERT_TRUE(packet_ok(self->buf, len, sizes[k], n)) {
				TH_LOG("%u bytes in pieces of %u at %u: %d",
				       sizes[k], p[i].piece, p[i].offset, len);
			}
		}
	}
	/* 14 bytes of link-layer header in pieces, then the rest */
	for (i = 1; i < 14; i++, n++) {
		struct tpacket4_desc d[3] = {
			{ .len = i, .flags = TP4_PKT_CONT },
			{ .len = 14 - i, .flags = TP4_PKT_CONT },
			{ .len = 86 },
		};
		unsigned int done = 0;

		fill_packet(self->buf, 100, n);
		zc_reap(&self->a);
		for (k = 0; k < 3; done += d[k++].len) {
			d[k].idx = self->a.s.spare[--self->a.s.nr_spare];
			memcpy(pv4_frame(&self->a.s, d[k].idx),
			       self->buf + done, d[k].len);
		}
		zc_post(&self->a, &self->a.s.tx, d, 3);
		ASSERT_EQ(0, zc_kick(&self->a));
		len = zc_recv(&self->b, self->buf, BUF_SIZE, WAIT_MS);
		ASSERT_TRUE(packet_ok(self->buf, len, 100, n));
	}
	EXPECT_TRUE(settled(self, variant->shared));
	EXPECT_EQ(0U, self->a.s.errors[EINVAL]);
}

/* An incomplete chain waits. */
TEST_F(pair, chain_posted_in_parts)
{
	struct tpacket4_desc d[3] = {
		{ .len = 400, .flags = TP4_PKT_CONT },
		{ .len = 500, .flags = TP4_PKT_CONT },
		{ .len = 300 },
	};
	unsigned int i, done = 0;
	int len;

	fill_packet(self->buf, 1200, 9);
	for (i = 0; i < 3; done += d[i++].len) {
		d[i].idx = self->a.s.spare[--self->a.s.nr_spare];
		memcpy(pv4_frame(&self->a.s, d[i].idx), self->buf + done,
		       d[i].len);
	}
	zc_post(&self->a, &self->a.s.tx, d, 1);
	ASSERT_EQ(0, zc_kick(&self->a));
	zc_post(&self->a, &self->a.s.tx, d + 1, 1);
	ASSERT_EQ(0, zc_kick(&self->a));
	EXPECT_EQ(-EAGAIN, zc_recv(&self->b, self->buf, BUF_SIZE, QUIET_MS));
	EXPECT_EQ(0U, zc_reap(&self->a));
	zc_post(&self->a, &self->a.s.tx, d + 2, 1);
	ASSERT_EQ(0, zc_kick(&self->a));
	len = zc_recv(&self->b, self->buf, BUF_SIZE, WAIT_MS);
	EXPECT_TRUE(packet_ok(self->buf, len, 1200, 9));
	EXPECT_TRUE(settled(self, variant->shared));
	EXPECT_EQ(3U, self->a.s.errors[0]);
}

/* A blocking call returns when all packets have been returned. */
TEST_F(pair, blocking_send)
{
	unsigned int i, n = 0;
	int len;

	for (i = 0; i < 50; i++) {
		for (n = 0; n < 8; n++)
			ASSERT_EQ(0, zc_put_seq(&self->a, 3000, 8 * i + n));
		ASSERT_LE(0, pv4_kick(&self->a.s, 0));
		/* a poll before that may have sent some */
		zc_reap(&self->a);
		EXPECT_EQ(self->a.s.tx.avail, self->a.s.tx.used);
		for (n = 0; n < 8; n++) {
			len = zc_recv(&self->b, self->buf, BUF_SIZE, WAIT_MS);
			ASSERT_TRUE(packet_ok(self->buf, len, 3000, 8 * i + n));
		}
	}
	EXPECT_TRUE(settled(self, variant->shared));
}

TEST_F(pair, both_ways)
{
	unsigned int i, k, n = 0, rounds = pv4_fast() ? 50 : 300;
	int len;

	for (i = 0; i < rounds; i++, n += 16) {
		for (k = 0; k < 16; k++) {
			ASSERT_EQ(0, zc_put_seq(&self->a, 60 + n + k, n + k));
			ASSERT_EQ(0, zc_put_seq(&self->b, 160 + n + k, ~n - k));
		}
		ASSERT_EQ(0, zc_kick(&self->a));
		ASSERT_EQ(0, zc_kick(&self->b));
		for (k = 0; k < 16; k++) {
			len = zc_recv(&self->a, self->buf, BUF_SIZE, WAIT_MS);
			ASSERT_TRUE(packet_ok(self->buf, len, 160 + n + k,
					      ~n - k));
			len = zc_recv(&self->b, self->buf, BUF_SIZE, WAIT_MS);
			ASSERT_TRUE(packet_ok(self->buf, len, 60 + n + k,
					      n + k));
		}
	}
	EXPECT_TRUE(settled(self, variant->shared));
}

/* ---- a million packets ---- */

TEST_F_TIMEOUT(pair, million_packets, 600)
{
	pass_many(_metadata, &self->a, &self->b, pv4_fast() ? 20000 : 1000000,
		  self->b.s.rx.size);
}

/* ---- a receiver without posted frames ---- */

/* Packets are dropped and counted; the sender still gets its frames back. */
TEST_F(pair, all_taken)
{
	unsigned int i, n = self->b.s.rx.size + 40;
	struct tpacket_stats_v4 st;
	struct tpacket4_desc d;

	for (i = 0; i < n; i++) {
		ASSERT_EQ(0, zc_send_seq(&self->a, 60, i));
		ASSERT_TRUE(zc_reap_all(&self->a, WAIT_MS));
	}
	EXPECT_EQ(n, self->a.s.errors[0]);
	ASSERT_EQ(0, pv4_stats(self->b.s.fd, &st));
	EXPECT_EQ(n, st.tp_packets);
	EXPECT_EQ(40U, st.tp_drops);
	EXPECT_EQ(40U, st.rx_no_desc);
	EXPECT_EQ(0U, st.rx_ring_full);
	for (i = 0; i < self->b.s.rx.size; i++) {
		ASSERT_TRUE(zc_take(&self->b, &self->b.s.rx, &d));
		EXPECT_EQ(i, packet_seq(pv4_frame(&self->b.s, d.idx) +
					d.offset));
		self->b.s.spare[self->b.s.nr_spare++] = d.idx;
	}
	EXPECT_FALSE(zc_take(&self->b, &self->b.s.rx, &d));
	EXPECT_TRUE(balance(self, variant->shared));
	/* and the queue continues */
	zc_refill(&self->b);
	ASSERT_EQ(0, zc_send_seq(&self->a, 900, 7));
	EXPECT_EQ(900, zc_recv(&self->b, self->buf, BUF_SIZE, WAIT_MS));
	EXPECT_TRUE(settled(self, variant->shared));
}

/* A chain has all its frames or none; smaller packets still get theirs. */
TEST_F(pair, none_posted)
{
	struct tpacket_stats_v4 st;
	struct tpacket4_desc d;
	unsigned int i;
	int len;

	/* use up all but three frames */
	for (i = 0; i < self->b.s.rx.size - 3; i++) {
		ASSERT_EQ(0, zc_send_seq(&self->a, 60, i));
		ASSERT_TRUE(zc_take_wait(&self->b, &self->b.s.rx, &d,
					 WAIT_MS));
		self->b.s.spare[self->b.s.nr_spare++] = d.idx;
	}
	ASSERT_EQ(0, pv4_stats(self->b.s.fd, &st));
	for (i = 0; i < 5; i++) {
		ASSERT_EQ(0, zc_send_seq(&self->a, 9000, i));
		ASSERT_TRUE(zc_reap_all(&self->a, WAIT_MS));
	}
	ASSERT_EQ(0, pv4_stats(self->b.s.fd, &st));
	EXPECT_EQ(5U, st.tp_drops);
	EXPECT_EQ(5U, st.rx_no_desc);
	EXPECT_EQ(3U, self->b.s.rx.avail - self->b.s.rx.used);
	EXPECT_EQ(-EAGAIN, zc_recv(&self->b, self->buf, BUF_SIZE, QUIET_MS));
	ASSERT_EQ(0, zc_send_seq(&self->a, 3000, 77));
	len = zc_recv(&self->b, self->buf, BUF_SIZE, WAIT_MS);
	EXPECT_TRUE(packet_ok(self->buf, len, 3000, 77));
	EXPECT_TRUE(settled(self, variant->shared));
}

TEST_HARNESS_MAIN
