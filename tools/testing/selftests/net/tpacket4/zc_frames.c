// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4, zero-copy mode: position of a packet in its frame, frames
 * swapped within one area, queues and rings
 */
#include "huge.h"
#include "zc.h"

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

	pv4_net_setup(_metadata);
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

/* Checks where the data starts, and that nothing else is written. */
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
		f = pv4_frame(&self->z.s, d.idx);
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

	pv4_net_setup(_metadata);
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
 * The packet is not copied: it is received in the frame and at the offset from
 * which it was sent, and the sender gets a frame of the receiver.
 */
TEST_F(shared, frames_are_exchanged)
{
	static const unsigned int offsets[] = { 256, 320, 512, 700, 1000 };
	struct tpacket4_desc d = { 0 }, back;
	struct pv4 *a = &self->a.s;
	unsigned int i, k;
	__u64 sent;

	for (i = 0; i < 400; i++) {
		k = offsets[i % ARRAY_SIZE(offsets)];
		sent = a->spare[--a->nr_spare];
		d = (struct tpacket4_desc) {
			.idx = sent, .offset = k, .len = 1000,
		};
		fill_packet(pv4_frame(a, sent) + k, 1000, i);
		zc_post(&self->a, &a->tx, &d, 1);
		ASSERT_EQ(0, zc_kick(&self->a));
		ASSERT_TRUE(zc_take_wait(&self->b, &self->b.s.rx, &d,
					 WAIT_MS));
		ASSERT_EQ(sent, d.idx);
		ASSERT_EQ(k, d.offset);
		ASSERT_EQ(1000U, d.len);
		ASSERT_EQ(0, d.error);
		EXPECT_TRUE(packet_ok(pv4_frame(a, d.idx) + k, 1000, 1000, i));
		ASSERT_TRUE(zc_take_wait(&self->a, &a->tx, &back, WAIT_MS));
		ASSERT_EQ(0, back.error);
		ASSERT_NE(sent, back.idx);
		a->spare[a->nr_spare++] = back.idx;
		zc_rx_post(&self->b, d.idx);
		ASSERT_TRUE(zc_books_balance(&self->a, &self->b));
	}
}

/* Without the headroom for XDP, the packet is copied. */
TEST_F(shared, too_little_headroom)
{
	struct tpacket4_desc d = { 0 };
	struct pv4 *a = &self->a.s;
	unsigned int i;
	__u64 sent;

	for (i = 0; i < 256; i += 15) {
		sent = a->spare[--a->nr_spare];
		d = (struct tpacket4_desc) {
			.idx = sent, .offset = i, .len = 1700,
		};
		fill_packet(pv4_frame(a, sent) + i, 1700, i);
		zc_post(&self->a, &a->tx, &d, 1);
		ASSERT_EQ(0, zc_kick(&self->a));
		ASSERT_TRUE(zc_take_wait(&self->b, &self->b.s.rx, &d,
					 WAIT_MS));
		ASSERT_EQ(0, d.error);
		EXPECT_LE(256, d.offset);
		EXPECT_TRUE(packet_ok(pv4_frame(a, d.idx) + d.offset, d.len,
				      1700, i));
		ASSERT_TRUE(zc_reap_all(&self->a, WAIT_MS));
		zc_rx_post(&self->b, d.idx);
	}
	EXPECT_TRUE(zc_books_balance(&self->a, &self->b));
}

FIXTURE(huge) {
	size_t size;			/* of a page */
};

FIXTURE_SETUP(huge)
{
	self->size = need_huge_pages(1);
	if (!self->size)
		SKIP(return, "no huge pages");
}

FIXTURE_TEARDOWN(huge)
{
	huge_pages_restore();
}

/* An area of huge pages: frames are swapped as in any other, and none of it
 * stays pinned.
 */
TEST_F(huge, pages)
{
	unsigned int frames = 4 * pv4_min_descs(), i, len;
	size_t size = self->size;
	struct zc owner = { 0 }, a, b;
	struct zc_cfg cfg = { .ifname = if_a, .n = 1, .area = &owner };
	char *buf = malloc(BUF_SIZE);
	long free_before;

	ASSERT_TRUE(!!buf);
	free_before = read_meminfo("HugePages_Free");
	pv4_net_setup(_metadata);
	owner.s.area_len = size;
	owner.s.area = map_huge_page(size);
	ASSERT_TRUE(owner.s.area != MAP_FAILED);
	owner.s.frames = size / 2048;
	ASSERT_LE(frames, owner.s.frames);
	owner.held = calloc(owner.s.frames, 1);
	owner.s.fd = socket(AF_PACKET, SOCK_RAW, 0);
	ASSERT_LE(0, owner.s.fd);
	ASSERT_EQ(0, pv4_memreg(owner.s.fd, owner.s.area, size, 2048, 0));
	ASSERT_EQ(0, zc_open(&a, &cfg));
	cfg.ifname = if_b;
	cfg.part = 1;
	ASSERT_EQ(0, zc_open(&b, &cfg));
	for (i = 0; i < 600; i++) {
		len = i % 3 ? 1500 : 9000;
		ASSERT_EQ(0, zc_send_seq(&a, len, i));
		ASSERT_TRUE(packet_ok(buf, zc_recv(&b, buf, BUF_SIZE, WAIT_MS),
				      len, i));
	}
	EXPECT_TRUE(zc_reap_all(&a, WAIT_MS));
	EXPECT_TRUE(zc_books_balance(&a, &b));
	zc_close(&a);
	zc_close(&b);
	close(owner.s.fd);
	munmap(owner.s.area, size);
	EXPECT_TRUE(huge_pages_back(free_before));
	free(owner.held);
	free(buf);
}

/* ---- queues, rings ---- */

/* Two queue pairs at a time, all in one area. */
TEST(two_queues)
{
	struct zc_cfg cfg = { .ifname = if_a, .n = 1, .sharers = 3 };
	struct zc z[4];
	char *buf = malloc(BUF_SIZE);
	int i, k, len;

	ASSERT_TRUE(!!buf);
	pv4_net_setup(_metadata);
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

/* Packets of other queues are not affected. */
TEST(other_queue_unaffected)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 2 };
	unsigned int i, got = 0, others = 0, total = 512;
	char *buf = malloc(BUF_SIZE);
	int fd, out, len;
	struct zc z;

	ASSERT_TRUE(!!buf);
	pv4_net_setup(_metadata);
	ASSERT_EQ(0, two_channels());
	ASSERT_EQ(0, zc_open(&z, &cfg));
	fd = plain_listener(_metadata, if_b);
	out = plain_socket(_metadata, if_a, 0);
	for (i = 0; i < total; i++) {
		/* the peer's queue is full where its NAPI waits for a timer */
		do {
			fill_udp(buf, 90, 1024 + i % 64, i);
			len = send(out, buf, 90, 0);
			ASSERT_TRUE(len == 90 || errno == ENOBUFS);
		} while (len != 90 && !usleep(100));
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

/* Minimum and large ring sizes, also unequal ones. */
TEST(ring_sizes)
{
	/* With 32 bits, the kernel has little room to map areas to. */
	unsigned int large = sizeof(long) == 8 ? 64 : 16;
	const unsigned int nr[][2] = {
		{ 1, 1 }, { 1, 16 }, { 16, 1 }, { large, large },
	};
	struct zc a, b;
	unsigned int i;

	pv4_net_setup(_metadata);
	for (i = 0; i < ARRAY_SIZE(nr); i++) {
		struct zc_cfg cfg = {
			.ifname = if_a, .n = 1,
			.rx_nr = nr[i][0] * pv4_min_descs(),
			.tx_nr = nr[i][1] * pv4_min_descs(),
		};

		ASSERT_EQ(0, zc_open(&a, &cfg));
		cfg.ifname = if_b;
		ASSERT_EQ(0, zc_open(&b, &cfg));
		pass_one_by_one(_metadata, &a, &b, 200, 600);
		zc_close(&a);
		zc_close(&b);
	}
}

TEST_HARNESS_MAIN
