// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4: areas whose frames may start at each multiple of a unit */
#include "common.h"
#include "units.h"

/* ---- PACKET_MEMREG ---- */

FIXTURE(memreg) {
	int fd;
	char *area;
	size_t len;
};

FIXTURE_SETUP(memreg)
{
	pv4_net_setup(_metadata);
	self->fd = pv4_socket();
	self->len = 8 * getpagesize();
	self->area = pv4_new_area(self->len);
	ASSERT_LE(0, self->fd);
	ASSERT_TRUE(self->area != MAP_FAILED);
}

FIXTURE_TEARDOWN(memreg)
{
	close(self->fd);
	munmap(self->area, self->len);
}

static int memreg(struct _test_data_memreg *self, unsigned int frame_size,
		  unsigned int headroom, unsigned int unit)
{
	return pv4_memreg_unit(self->fd, self->area, self->len, frame_size,
			       headroom, unit, 0);
}

TEST_F(memreg, refused)
{
	static const unsigned int units[] = { 1, 32, 63, 65, 96, 192, 3000 };
	static const unsigned int sizes[] = {
		0, 1, 64, 127, 129, 160, 2047, 2080, 0x80000000u, 0xffffffc0u,
	};
	unsigned int i, page = getpagesize();

	for (i = 0; i < ARRAY_SIZE(units); i++)
		EXPECT_EQ(-EINVAL, memreg(self, 2048, 0, units[i]));
	EXPECT_EQ(-EINVAL, memreg(self, 2048, 0, 2 * page));
	EXPECT_EQ(-EINVAL, memreg(self, 2048, 0, 0x80000000u));
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		EXPECT_EQ(-EINVAL, memreg(self, sizes[i], 0, 64));
	EXPECT_EQ(-EINVAL, memreg(self, page + 64, 0, 64));
	/* the headroom leaves no room */
	EXPECT_EQ(-EINVAL, memreg(self, 128, 65, 64));
	/* no unit: as before */
	EXPECT_EQ(-EINVAL, memreg(self, 2368, 0, 0));
	EXPECT_EQ(-EINVAL, memreg(self, 256, 0, 0));
	/* nothing is left behind */
	EXPECT_EQ(0, memreg(self, 128, 64, 64));
	ASSERT_EQ(0, pv4_setint(self->fd, PACKET_RESERVE, 64));
	EXPECT_EQ(-EINVAL, pv4_set_ring(self->fd, PACKET_RX_RING, self->fd,
					pv4_min_descs()));
}

/* The last number is that of the last frame that ends in the area. */
TEST_F(memreg, accepted)
{
	static const struct {
		unsigned int size, unit;
	} layouts[] = {
		{ 128, 64 }, { 128, 128 }, { 192, 64 }, { 256, 256 },
		{ 128, 4096 }, { 2048, 64 }, { 2368, 64 }, { 4032, 64 },
		{ 4096, 64 }, { 4096, 4096 }, { 4096, 2048 },
	};
	unsigned int i, k, errors, nr = pv4_min_descs();

	for (i = 0; i < ARRAY_SIZE(layouts); i++) {
		unsigned int size = layouts[i].size, unit = layouts[i].unit;
		struct pv4 s = { .fd = self->fd, .area = self->area };
		__u64 last = (self->len - size) / unit;
		struct tpacket4_desc d = { .idx = last, .len = size };
		int sender;
		char pkt[60];

		sender = plain_socket(_metadata, if_a, 0);
		s.frames = last + 1;
		s.frame_size = size;
		s.unit = unit;
		if (i)
			s.fd = pv4_socket();
		self->fd = s.fd;
		ASSERT_EQ(0, memreg(self, size, 0, unit));
		ASSERT_EQ(0, pv4_set_ring(s.fd, PACKET_RX_RING, s.fd, nr));
		ASSERT_EQ(0, pv4_set_ring(s.fd, PACKET_TX_RING, s.fd, nr));
		ASSERT_EQ(0, pv4_map_rings(&s, nr, nr));
		ASSERT_EQ(0, pv4_bind(s.fd, if_b, ETH_P_ALL));
		pv4_rx_post(&s, last + 1);
		pv4_rx_post(&s, last);
		fill_packet(pkt, sizeof(pkt), i);
		ASSERT_EQ(60, send(sender, pkt, sizeof(pkt), 0));
		ASSERT_TRUE(pv4_take_wait(&s, &s.rx, &d, WAIT_MS));
		EXPECT_EQ(EINVAL, d.error);
		EXPECT_EQ(last + 1, d.idx);
		ASSERT_TRUE(pv4_take_wait(&s, &s.rx, &d, WAIT_MS));
		EXPECT_EQ(0, d.error);
		EXPECT_EQ(last, d.idx);
		EXPECT_TRUE(packet_ok(pv4_frame(&s, last), d.len, 60, i));
		EXPECT_TRUE(untouched(pv4_frame(&s, last) - 64, 64));
		memset(pv4_frame(&s, last), UNTOUCHED, 60);

		/* likewise to send, up to the frame's last byte */
		fill_packet(pv4_frame(&s, last) + size - 60, 60, i);
		d = (struct tpacket4_desc) {
			.idx = last + 1, .len = 60, .offset = size - 60,
		};
		pv4_post(&s.tx, &d, 1);
		d.idx = last;
		pv4_post(&s.tx, &d, 1);
		d.offset++;
		pv4_post(&s.tx, &d, 1);
		EXPECT_EQ(60, pv4_kick(&s, 0));
		for (k = 0, errors = 0; k < 3; k++) {
			ASSERT_TRUE(pv4_take_wait(&s, &s.tx, &d, WAIT_MS));
			EXPECT_TRUE(!d.error || d.error == EINVAL);
			errors += !!d.error;
		}
		EXPECT_EQ(2U, errors);
		memset(pv4_frame(&s, last) + size - 60, UNTOUCHED, 60);
		munmap(s.map, s.map_len);
		close(s.fd);
		close(sender);
	}
	self->fd = -1;
}

/* ---- frames that cross pages ---- */

FIXTURE(cross) {
	struct pv4 s;			/* on if_b, in pages that do not adjoin */
	int fd;				/* an ordinary socket on if_a */
};

FIXTURE_SETUP(cross)
{
	unsigned int nr = pv4_min_descs();
	struct pv4 *s = &self->s;

	pv4_net_setup(_metadata);
	*s = (struct pv4) {
		.fd = pv4_socket(), .frame_size = FRAME_SIZE, .unit = UNIT,
		.area_len = NR_PAGES * getpagesize(),
	};
	s->area = map_apart(NR_PAGES);
	ASSERT_TRUE(s->area != MAP_FAILED);
	s->frames = (s->area_len - FRAME_SIZE) / UNIT + 1;
	ASSERT_EQ(0, pv4_memreg_unit(s->fd, s->area, s->area_len, FRAME_SIZE,
				     0, UNIT, 0));
	ASSERT_EQ(0, pv4_set_ring(s->fd, PACKET_RX_RING, s->fd, nr));
	ASSERT_EQ(0, pv4_set_ring(s->fd, PACKET_TX_RING, s->fd, nr));
	ASSERT_EQ(0, pv4_map_rings(s, nr, nr));
	ASSERT_EQ(0, pv4_bind(s->fd, if_b, ETH_P_ALL));
	self->fd = plain_listener(_metadata, if_a);
}

FIXTURE_TEARDOWN(cross)
{
	pv4_close(&self->s);
	close(self->fd);
}

TEST_F_TIMEOUT(cross, rx_refused, 120)
{
	unsigned int idx, refused = 0;
	struct tpacket_stats_v4 st;
	struct tpacket4_desc d;
	char pkt[60];

	for (idx = 0; idx < self->s.frames; idx++) {
		bool bad = crosses(idx);

		pv4_rx_post(&self->s, idx);
		/* one that a packet can take, whatever the other is */
		pv4_rx_post(&self->s, 0);
		fill_packet(pkt, sizeof(pkt), idx);
		ASSERT_EQ(60, send(self->fd, pkt, sizeof(pkt), 0));
		ASSERT_TRUE(pv4_take_wait(&self->s, &self->s.rx, &d, WAIT_MS));
		ASSERT_EQ(idx, d.idx);
		ASSERT_EQ(bad ? EINVAL : 0, d.error) {
			TH_LOG("frame at unit %u", idx);
		}
		if (!bad)
			ASSERT_EQ(60, send(self->fd, pkt, sizeof(pkt), 0));
		ASSERT_TRUE(pv4_take_wait(&self->s, &self->s.rx, &d, WAIT_MS));
		ASSERT_EQ(0U, d.idx);
		ASSERT_EQ(0, d.error);
		refused += bad;
	}
	ASSERT_EQ(0, pv4_stats(self->s.fd, &st));
	EXPECT_EQ(refused, st.rx_invalid_descs);
	EXPECT_LT(0U, refused);
}

TEST_F_TIMEOUT(cross, tx_refused, 120)
{
	static const unsigned int lens[] = { 60, 1600 };
	unsigned int idx, i, refused = 0;
	struct tpacket_stats_v4 st;
	struct tpacket4_desc d;
	char buf[FRAME_SIZE];
	int len;

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		for (idx = 0; idx < self->s.frames; idx++) {
			bool bad = crosses(idx);

			fill_packet(pv4_frame(&self->s, idx), lens[i], idx);
			d = (struct tpacket4_desc) {
				.idx = idx, .len = lens[i],
			};
			pv4_post(&self->s.tx, &d, 1);
			ASSERT_EQ(bad ? 0 : (int)lens[i],
				  pv4_kick(&self->s, MSG_DONTWAIT));
			len = bad ? 0 : plain_recv(self->fd, buf, sizeof(buf),
						   WAIT_MS);
			if (!bad)
				ASSERT_TRUE(packet_ok(buf, len, lens[i], idx));
			while (!pv4_take(&self->s.tx, &d))
				usleep(100);
			ASSERT_EQ(bad ? EINVAL : 0, d.error);
			ASSERT_EQ(idx, d.idx);
			refused += bad;
		}
	}
	ASSERT_EQ(0, pv4_stats(self->s.fd, &st));
	EXPECT_EQ(refused, st.tx_invalid_descs);
}

/* ---- small frames for packets of all sizes ---- */

FIXTURE(small) {
	struct pv4 s;			/* on if_b */
	int fd;				/* an ordinary socket on if_a */
	char *buf;
};

FIXTURE_VARIANT(small) {
	unsigned int frame_size, unit, step, headroom;
};

FIXTURE_VARIANT_ADD(small, frames_256) { .frame_size = 256, .unit = 256 };

FIXTURE_VARIANT_ADD(small, frames_256_headroom) {
	.frame_size = 256, .unit = 64, .step = 4, .headroom = 64,
};

FIXTURE_SETUP(small)
{
	struct pv4_cfg cfg = {
		.ifname = if_b, .rx_nr = 1024, .tx_nr = 1024,
		.frame_size = variant->frame_size, .unit = variant->unit,
		.step = variant->step, .headroom = variant->headroom,
	};

	if (getpagesize() > 4096) {
		cfg.rx_nr = pv4_min_descs();
		cfg.tx_nr = cfg.rx_nr;
	}
	pv4_net_setup(_metadata);
	ASSERT_EQ(0, set_mtu(if_a, 65535));
	ASSERT_EQ(0, set_mtu(if_b, 65535));
	ASSERT_EQ(0, pv4_open(&self->s, &cfg));
	self->fd = plain_listener(_metadata, if_a);
	self->buf = malloc(1 << 17);
	ASSERT_TRUE(!!self->buf);
}

FIXTURE_TEARDOWN(small)
{
	pv4_close(&self->s);
	close(self->fd);
	free(self->buf);
}

static const unsigned int small_lens[] = {
	60, 191, 192, 193, 255, 256, 257, 448, 449, 511, 512, 513, 1514, 4096,
	9014, 20000, 33333, 65000,
};

/* Frames are posted in order, so a packet lies in one piece, unless it wraps
 * around. What is received is then sent as it is.
 */
TEST_F_TIMEOUT(small, in_one_piece_and_back, 300)
{
	unsigned int i, k, n, len, room, total = 0, wraps = 0;
	struct tpacket4_desc d[300];
	struct pv4 *s = &self->s;
	int got;

	for (i = 0; i < 4 * ARRAY_SIZE(small_lens); i++) {
		len = small_lens[i % ARRAY_SIZE(small_lens)];
		fill_packet(self->buf, len, i);
		ASSERT_EQ((int)len, send(self->fd, self->buf, len, 0));
		room = s->frame_size - s->offset;
		for (n = 0, k = 0; k < len; n++) {
			ASSERT_GT(ARRAY_SIZE(d), n);
			ASSERT_TRUE(pv4_take_wait(s, &s->rx, &d[n], WAIT_MS));
			ASSERT_EQ(0, d[n].error);
			ASSERT_EQ(n ? 0 : s->offset, d[n].offset);
			ASSERT_EQ(len - k < room ? len - k : room, d[n].len);
			k += d[n].len;
			ASSERT_EQ(k < len ? TP4_PKT_CONT : 0, d[n].flags);
			room = s->frame_size;
		}
		if (d[n - 1].idx == d[0].idx + (n - 1) * s->step) {
			ASSERT_TRUE(packet_ok(pv4_frame(s, d[0].idx) +
					      d[0].offset, len, len, i));
		} else {
			wraps++;
		}

		pv4_post(&s->tx, d, n);
		ASSERT_EQ((int)len, pv4_kick(s, 0));
		got = plain_recv(self->fd, self->buf, 1 << 17, WAIT_MS);
		ASSERT_TRUE(packet_ok(self->buf, got, len, i)) {
			TH_LOG("%u bytes in %u frames: %d", len, n, got);
		}
		for (k = 0; k < n; k++) {
			ASSERT_TRUE(pv4_take_wait(s, &s->tx, &d[k], WAIT_MS));
			ASSERT_EQ(0, d[k].error);
		}
		/* in the order in which they were posted before */
		for (k = 0; k < n; k++)
			pv4_rx_post(s, (__u64)((total + k) % s->rx.size) *
				       s->step);
		total += n;
	}
	EXPECT_GE(8U, wraps);
}

/* A buffer of small frames holds as many packets as fit it. */
TEST_F(small, burst_while_not_read)
{
	unsigned int i, nr = self->s.rx.size;
	struct tpacket_stats_v4 st;
	char pkt[60];

	for (i = 0; i < nr + 5; i++) {
		fill_packet(pkt, sizeof(pkt), i);
		ASSERT_EQ(60, send(self->fd, pkt, sizeof(pkt), 0));
	}
	for (i = 0; i < nr; i++) {
		int len = pv4_recv(&self->s, self->buf, 1 << 17, WAIT_MS);

		ASSERT_TRUE(packet_ok(self->buf, len, 60, i));
	}
	ASSERT_EQ(0, pv4_stats(self->s.fd, &st));
	EXPECT_EQ(5U, st.tp_drops);
}

TEST_HARNESS_MAIN
