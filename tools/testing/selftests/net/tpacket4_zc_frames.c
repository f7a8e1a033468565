// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4, zero-copy mode: where in a frame a packet stands, frames that
 * are exchanged within one area and not copied, queues and rings.
 */
#include "tpacket4_zc.h"

/* ---- frames ---- */

FIXTURE(frames) {
	struct zc z;			/* on if_b */
	int fd;				/* an ordinary socket on if_a */
	char *buf;
};

FIXTURE_VARIANT(frames) {
	unsigned int frame_size, headroom, reserve;
};

FIXTURE_VARIANT_ADD(frames, plain) { .frame_size = 2048 };

FIXTURE_VARIANT_ADD(frames, headroom) {
	.frame_size = 2048, .headroom = 100, .reserve = 30,
};

FIXTURE_VARIANT_ADD(frames, least_room) {
	.frame_size = 4096, .headroom = 3712, .reserve = 64,
};

FIXTURE_SETUP(frames)
{
	struct zc_cfg cfg = {
		.ifname = if_b, .n = 1, .frame_size = variant->frame_size,
		.headroom = variant->headroom, .reserve = variant->reserve,
	};

	tp4_net_setup(_metadata);
	ASSERT_EQ(0, zc_open(&self->z, &cfg));
	self->fd = plain_socket(_metadata, if_a, 0);
	self->buf = malloc(BUF_SIZE);
	ASSERT_TRUE(!!self->buf);
}

FIXTURE_TEARDOWN(frames)
{
	zc_close(&self->z);
	close(self->fd);
	free(self->buf);
}

static bool untouched(const char *p, size_t n)
{
	while (n--)
		if (*p++ != (char)UNTOUCHED)
			return false;
	return true;
}

/* Where the data starts, and that nothing else of a frame is written. */
TEST_F(frames, edges)
{
	unsigned int i, size = self->z.s.frame_size;
	struct tpacket4_desc d;
	char *f;

	for (i = 0; i < 20; i++) {
		fill_packet(self->buf, 64, i);
		ASSERT_EQ(64, send(self->fd, self->buf, 64, 0));
		ASSERT_TRUE(zc_take_wait(&self->z, &self->z.s.rx, &d,
					 WAIT_MS));
		EXPECT_EQ(64U, d.len);
		EXPECT_EQ(0, d.flags);
		EXPECT_EQ(self->z.min_offset, d.offset);
		f = tp4_frame(&self->z.s, d.idx);
		EXPECT_TRUE(untouched(f, d.offset));
		EXPECT_TRUE(packet_ok(f + d.offset, d.len, 64, i));
		f += d.offset + d.len;
		EXPECT_TRUE(untouched(f, size - d.offset - d.len));
	}
}

/* A packet of several frames: each is full, but the last. */
TEST_F(frames, chain_shape)
{
	unsigned int room = self->z.s.frame_size - self->z.min_offset;
	unsigned int left = room == 64 ? 1000 : 9000;
	struct tpacket4_desc d;

	fill_packet(self->buf, left, 1);
	ASSERT_EQ((int)left, send(self->fd, self->buf, left, 0));
	while (left) {
		ASSERT_TRUE(zc_take_wait(&self->z, &self->z.s.rx, &d,
					 WAIT_MS));
		EXPECT_EQ(left < room ? left : room, d.len);
		EXPECT_EQ(self->z.min_offset, d.offset);
		EXPECT_EQ(left > room ? TP4_PKT_CONT : 0, d.flags);
		ASSERT_GE(left, d.len);
		left -= d.len;
	}
	EXPECT_FALSE(zc_take(&self->z, &self->z.s.rx, &d));
}

FIXTURE(shared) {
	struct zc a, b;
};

FIXTURE_SETUP(shared)
{
	struct zc_cfg cfg = { .ifname = if_a, .n = 1, .sharers = 1 };

	tp4_net_setup(_metadata);
	ASSERT_EQ(0, zc_open(&self->a, &cfg));
	cfg = (struct zc_cfg) {
		.ifname = if_b, .n = 1, .area = &self->a, .part = 1,
	};
	ASSERT_EQ(0, zc_open(&self->b, &cfg));
}

FIXTURE_TEARDOWN(shared)
{
	zc_close(&self->b);
	zc_close(&self->a);
}

/*
 * No byte is copied: the packet arrives in the very frame it was sent from, at
 * the very offset, and the sender has one of the receiver's for it.
 */
TEST_F(shared, frames_are_exchanged)
{
	static const unsigned int offsets[] = { 256, 320, 512, 700, 1000 };
	struct tpacket4_desc d = { 0 }, back;
	struct tp4 *a = &self->a.s;
	unsigned int i, k;
	__u64 sent;

	for (i = 0; i < 400; i++) {
		k = offsets[i % ARRAY_SIZE(offsets)];
		sent = a->spare[--a->nr_spare];
		d = (struct tpacket4_desc) {
			.idx = sent, .offset = k, .len = 1000,
		};
		fill_packet(tp4_frame(a, sent) + k, 1000, i);
		zc_post(&self->a, &a->tx, &d, 1);
		ASSERT_EQ(0, zc_kick(&self->a));
		ASSERT_TRUE(zc_take_wait(&self->b, &self->b.s.rx, &d,
					 WAIT_MS));
		ASSERT_EQ(sent, d.idx);
		ASSERT_EQ(k, d.offset);
		ASSERT_EQ(1000U, d.len);
		ASSERT_EQ(0, d.error);
		EXPECT_TRUE(packet_ok(tp4_frame(a, d.idx) + k, 1000, 1000, i));
		ASSERT_TRUE(zc_take_wait(&self->a, &a->tx, &back, WAIT_MS));
		ASSERT_EQ(0, back.error);
		ASSERT_NE(sent, back.idx);
		a->spare[a->nr_spare++] = back.idx;
		zc_rx_post(&self->b, d.idx);
		ASSERT_TRUE(zc_books_balance(&self->a, &self->b));
	}
}

/* Without the headroom that XDP programs rely on it is copied, and arrives. */
TEST_F(shared, too_little_headroom)
{
	struct tpacket4_desc d = { 0 };
	struct tp4 *a = &self->a.s;
	unsigned int i;
	__u64 sent;

	for (i = 0; i < 256; i += 15) {
		sent = a->spare[--a->nr_spare];
		d = (struct tpacket4_desc) {
			.idx = sent, .offset = i, .len = 1700,
		};
		fill_packet(tp4_frame(a, sent) + i, 1700, i);
		zc_post(&self->a, &a->tx, &d, 1);
		ASSERT_EQ(0, zc_kick(&self->a));
		ASSERT_TRUE(zc_take_wait(&self->b, &self->b.s.rx, &d,
					 WAIT_MS));
		ASSERT_EQ(0, d.error);
		EXPECT_LE(256, d.offset);
		EXPECT_TRUE(packet_ok(tp4_frame(a, d.idx) + d.offset, d.len,
				      1700, i));
		ASSERT_TRUE(zc_reap_all(&self->a, WAIT_MS));
		zc_rx_post(&self->b, d.idx);
	}
	EXPECT_TRUE(zc_books_balance(&self->a, &self->b));
}

/* ---- queues, rings ---- */

/* Two pairs side by side, each with its own traffic, all in one area. */
TEST(two_queues)
{
	struct zc_cfg cfg = { .ifname = if_a, .n = 1, .sharers = 3 };
	struct zc z[4];
	char *buf = malloc(BUF_SIZE);
	int i, k, len;

	ASSERT_TRUE(!!buf);
	tp4_net_setup(_metadata);
	ASSERT_EQ(0, two_channels());
	for (i = 0; i < 4; i++) {
		cfg.ifname = i & 1 ? if_b : if_a;
		cfg.n = 1 + i / 2;
		cfg.part = i;
		ASSERT_EQ(0, zc_open(&z[i], &cfg));
		cfg.area = &z[0];
		cfg.sharers = 0;
	}
	for (k = 0; k < 500; k++) {
		for (i = 0; i < 4; i++)
			ASSERT_EQ(0, zc_send_seq(&z[i], 100 + 100 * i + k,
						 4 * k + i));
		for (i = 0; i < 4; i++) {
			len = zc_recv(&z[i ^ 1], buf, BUF_SIZE, WAIT_MS);
			ASSERT_TRUE(packet_ok(buf, len, 100 + 100 * i + k,
					      4 * k + i));
		}
	}
	for (i = 0; i < 4; i++) {
		EXPECT_TRUE(zc_reap_all(&z[i], WAIT_MS));
		EXPECT_EQ(0U, z[i].strays);
	}
	for (i = 4; i-- > 0; )
		zc_close(&z[i]);
	free(buf);
}

/* Packets of the other queues go where they always went. */
TEST(other_queue_unharmed)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 2 };
	unsigned int i, got = 0, others = 0, total = 512;
	char *buf = malloc(BUF_SIZE);
	struct zc z;
	int fd, out;

	ASSERT_TRUE(!!buf);
	tp4_net_setup(_metadata);
	ASSERT_EQ(0, two_channels());
	ASSERT_EQ(0, zc_open(&z, &cfg));
	fd = plain_listener(_metadata, if_b);
	out = plain_socket(_metadata, if_a, 0);
	for (i = 0; i < total; i++) {
		fill_udp(buf, 90, 1024 + i % 64, i);
		ASSERT_EQ(90, send(out, buf, 90, 0));
		while (zc_recv(&z, buf, BUF_SIZE, 0) == 90)
			got++;
	}
	while (plain_recv(fd, buf, BUF_SIZE, QUIET_MS) == 90)
		others++;
	while (zc_recv(&z, buf, BUF_SIZE, QUIET_MS) == 90)
		got++;
	TH_LOG("%u on the queue, %u on the other", got, others);
	EXPECT_EQ(total, got + others);
	EXPECT_LT(0U, got);
	EXPECT_LT(0U, others);
	close(fd);
	close(out);
	zc_close(&z);
	free(buf);
}

/* The least and rather large rings, unequal ones too. */
TEST(ring_sizes)
{
	static const unsigned int nr[][2] = {
		{ 256, 256 }, { 256, 4096 }, { 4096, 256 }, { 16384, 16384 },
	};
	char *buf = malloc(BUF_SIZE);
	unsigned int i, k;
	struct zc a, b;
	int len;

	ASSERT_TRUE(!!buf);
	tp4_net_setup(_metadata);
	for (i = 0; i < ARRAY_SIZE(nr); i++) {
		struct zc_cfg cfg = {
			.ifname = if_a, .n = 1, .rx_nr = nr[i][0],
			.tx_nr = nr[i][1],
		};

		if (nr[i][0] < tp4_min_descs() || nr[i][1] < tp4_min_descs())
			continue;
		ASSERT_EQ(0, zc_open(&a, &cfg));
		cfg.ifname = if_b;
		ASSERT_EQ(0, zc_open(&b, &cfg));
		for (k = 0; k < 600; k++) {
			ASSERT_EQ(0, zc_send_seq(&a, 200, k));
			len = zc_recv(&b, buf, BUF_SIZE, WAIT_MS);
			ASSERT_TRUE(packet_ok(buf, len, 200, k));
		}
		EXPECT_TRUE(zc_reap_all(&a, WAIT_MS));
		EXPECT_TRUE(zc_books_balance(&a, NULL));
		EXPECT_TRUE(zc_books_balance(&b, NULL));
		zc_close(&a);
		zc_close(&b);
	}
	free(buf);
}

TEST_HARNESS_MAIN
