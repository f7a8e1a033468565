// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4, zero-copy mode: areas whose frames may start at each multiple of
 * a unit
 */
#include "huge.h"
#include "units.h"
#include "xdp.h"
#include "zc.h"

static const unsigned int lens[] = {
	60, 64, 590, 1514, 2111, 2112, 2113, 2367, 2368, 2369, 4096, 6000,
	MAX_PKT,
};

/* ---- frames of DPDK's size in huge pages, which cross normal pages ---- */

FIXTURE(huge) {
	struct zc a, b;			/* on if_a and if_b */
	char *buf;
	size_t size;
};

FIXTURE_VARIANT(huge) {
	bool shared;			/* b uses the area of a */
	bool keep;			/* TP4_RING_KEEP */
};

FIXTURE_VARIANT_ADD(huge, two_areas) {};

FIXTURE_VARIANT_ADD(huge, one_area) { .shared = true };

FIXTURE_VARIANT_ADD(huge, two_areas_keep) { .keep = true };

FIXTURE_SETUP(huge)
{
	struct zc_cfg cfg = {
		.ifname = if_a, .n = 1, .frame_size = 2368, .unit = 64,
		.step = 37, .sharers = variant->shared,
		.keep = variant->keep,
	};

	size_t i, k = 0, size;

	self->a.s.fd = -1;
	self->b.s.fd = -1;
	self->size = need_huge_pages(2);
	if (!self->size)
		SKIP(return, "no huge pages");
	pv4_net_setup(_metadata);
	/* a huge page each, or both for the two of them */
	size = variant->shared ? 2 * self->size : self->size;
	cfg.align = size;
	cfg.memory = map_huge_page(size);
	ASSERT_TRUE(cfg.memory != MAP_FAILED);
	ASSERT_EQ(0, zc_open(&self->a, &cfg));
	cfg.ifname = if_b;
	if (variant->shared) {
		cfg.area = &self->a;
		cfg.part = 1;
	} else {
		cfg.memory = map_huge_page(size);
		ASSERT_TRUE(cfg.memory != MAP_FAILED);
	}
	ASSERT_EQ(0, zc_open(&self->b, &cfg));
	/* one of the frames to send crosses the end of the first huge page */
	for (i = 0; i < self->b.s.nr_spare; i++)
		if (self->b.s.spare[i] * 64 % self->size + 2368 <= self->size)
			self->b.s.spare[k++] = self->b.s.spare[i];
	self->b.s.nr_spare = k;
	self->buf = malloc(BUF_SIZE);
	ASSERT_TRUE(!!self->buf);
}

FIXTURE_TEARDOWN(huge)
{
	zc_close(&self->b);
	zc_close(&self->a);
	free(self->buf);
	huge_pages_restore();
}

TEST_F_TIMEOUT(huge, contents, 120)
{
	unsigned int i, n, rounds = pv4_fast() ? 60 : 300;
	struct zc *from, *to;
	int len;

	for (i = 0; i < rounds * ARRAY_SIZE(lens); i++) {
		n = lens[i % ARRAY_SIZE(lens)];
		from = i % 2 ? &self->b : &self->a;
		to = i % 2 ? &self->a : &self->b;
		fill_packet(self->buf, n, i);
		zc_reap(from);
		/* with room for what the receiver wants, to be exchanged */
		ASSERT_EQ(0, zc_put(from, self->buf, n, 2368 - 256, 256));
		ASSERT_EQ(0, zc_kick(from));
		len = zc_recv(to, self->buf, BUF_SIZE, WAIT_MS);
		ASSERT_TRUE(packet_ok(self->buf, len, n, i)) {
			TH_LOG("packet %u of %u bytes: %d", i, n, len);
		}
	}
	EXPECT_TRUE(zc_reap_all(&self->a, WAIT_MS));
	EXPECT_TRUE(zc_reap_all(&self->b, WAIT_MS));
	EXPECT_TRUE(zc_books_balance(&self->a, variant->shared ? &self->b :
							       NULL));
	if (!variant->shared)
		EXPECT_TRUE(zc_books_balance(&self->b, NULL));
}

/* To the stack and from it, and in copy mode: the mode changes on the way. */
TEST_F_TIMEOUT(huge, mode_changes, 120)
{
	unsigned int i, k, n, seq = 0;
	int fd, len;

	if (variant->shared)
		SKIP(return, "the area's other user would keep its frames");
	fd = plain_listener(_metadata, if_a);
	ASSERT_EQ(0, zc_set(&self->a, 0));
	for (k = 0; k < 6; k++) {
		ASSERT_EQ(0, zc_set(&self->b, k % 2));
		zc_all_back(&self->b, ECANCELED, QUIET_MS);
		zc_refill(&self->b);
		self->b.min_offset = self->b.s.offset + (k % 2 ? 256 : 0);
		for (i = 0; i < ARRAY_SIZE(lens); i++, seq++) {
			n = lens[i];
			fill_packet(self->buf, n, seq);
			ASSERT_EQ((int)n, send(fd, self->buf, n, 0));
			len = zc_recv(&self->b, self->buf, BUF_SIZE, WAIT_MS);
			ASSERT_TRUE(packet_ok(self->buf, len, n, seq)) {
				TH_LOG("mode %u, %u bytes: %d", k % 2, n, len);
			}
		}
	}
	EXPECT_TRUE(zc_books_balance(&self->b, NULL));
	close(fd);
}

/* An XDP program gets such frames, and the stack copies of them. */
TEST_F_TIMEOUT(huge, xdp_copies, 120)
{
	unsigned int i, n;
	int prog, len, fd;

	prog = xdp_const(XDP_PASS_TO_KERNEL, BPF_F_XDP_HAS_FRAGS);
	ASSERT_LE(0, prog);
	ASSERT_EQ(0, xdp_attach_native(if_b, prog));
	fd = plain_listener(_metadata, if_b);
	for (i = 0; i < 4 * ARRAY_SIZE(lens); i++) {
		n = lens[i % ARRAY_SIZE(lens)];
		fill_packet(self->buf, n, i);
		zc_reap(&self->a);
		ASSERT_EQ(0, zc_put(&self->a, self->buf, n, 2368, 0));
		ASSERT_EQ(0, zc_kick(&self->a));
		len = plain_recv(fd, self->buf, BUF_SIZE, WAIT_MS);
		ASSERT_TRUE(packet_ok(self->buf, len, n, i));
	}
	close(fd);
}

/* ---- frames that cross pages which are not adjacent ---- */

FIXTURE(cross) {
	struct zc b;			/* on if_b, only to have its rings */
	struct pv4 *s;
	int fd;				/* an ordinary socket on if_a */
};

FIXTURE_VARIANT(cross) {
	__u32 flags;			/* of the Rx ring */
};

FIXTURE_VARIANT_ADD(cross, plain) {};

FIXTURE_VARIANT_ADD(cross, keep) { .flags = TP4_RING_KEEP };

FIXTURE_SETUP(cross)
{
	unsigned int nr = pv4_min_descs();
	struct pv4 *s = &self->b.s;

	pv4_net_setup(_metadata);
	*s = (struct pv4) {
		.fd = pv4_socket(), .frame_size = FRAME_SIZE, .unit = UNIT,
		.area_len = NR_PAGES * getpagesize(), .area = map_apart(NR_PAGES),
	};
	self->s = s;
	ASSERT_TRUE(s->area != MAP_FAILED);
	s->frames = (s->area_len - FRAME_SIZE) / UNIT + 1;
	ASSERT_EQ(0, pv4_memreg_unit(s->fd, s->area, s->area_len, FRAME_SIZE,
				     0, UNIT, 0));
	ASSERT_EQ(0, pv4_set_ring_flags(s->fd, PACKET_RX_RING, s->fd, nr,
					variant->flags));
	ASSERT_EQ(0, pv4_set_ring(s->fd, PACKET_TX_RING, s->fd, nr));
	ASSERT_EQ(0, pv4_map_rings(s, nr, nr));
	ASSERT_EQ(0, zc_set(&self->b, 1));
	ASSERT_EQ(0, pv4_bind(s->fd, if_b, ETH_P_ALL));
	self->fd = plain_listener(_metadata, if_a);
}

FIXTURE_TEARDOWN(cross)
{
	pv4_close(self->s);
	close(self->fd);
}

/* Every slot has a frame: each valid one gets a packet, each other one an error. */
TEST_F_TIMEOUT(cross, rx_refused, 120)
{
	unsigned int i, nr = self->s->rx.size, good = 0, bad = 0, rounds = 0;
	struct tpacket4_desc d;
	char pkt[60];

	for (i = 0; i < nr; i++)
		pv4_rx_post(self->s, i % self->s->frames);
	fill_packet(pkt, sizeof(pkt), 0);
	while (good < 3 * nr && rounds++ < 6 * nr) {
		ASSERT_EQ(60, send(self->fd, pkt, sizeof(pkt), 0));
		while (pv4_take(&self->s->rx, &d) ||
		       (!good && pv4_take_wait(self->s, &self->s->rx, &d,
					       WAIT_MS))) {
			ASSERT_GT(self->s->frames, d.idx);
			ASSERT_EQ(crosses(d.idx) ? EINVAL : 0, d.error);
			if (!d.error)
				ASSERT_TRUE(packet_ok(pv4_frame(self->s, d.idx) +
						      d.offset, d.len, 60, 0));
			good += !d.error;
			bad += !!d.error;
			pv4_rx_post(self->s, (d.idx + 7) % self->s->frames);
		}
	}
	EXPECT_LE(3 * nr, good);
	EXPECT_LT(nr / 4, bad);
}

TEST_F_TIMEOUT(cross, tx_refused, 120)
{
	unsigned int idx, n;
	struct tpacket4_desc d;
	char buf[FRAME_SIZE];
	int len;

	for (idx = 0; idx < self->s->frames; idx++) {
		bool bad = crosses(idx);

		/* a packet of one frame, or the second of two */
		for (n = 1; n <= 2; n++) {
			fill_packet(pv4_frame(self->s, idx), 60, idx);
			if (n == 2) {
				d = (struct tpacket4_desc) {
					.len = 60, .flags = TP4_PKT_CONT,
				};
				pv4_post(&self->s->tx, &d, 1);
			}
			d = (struct tpacket4_desc) { .idx = idx, .len = 60 };
			pv4_post(&self->s->tx, &d, 1);
			ASSERT_EQ(0, pv4_kick(self->s, 0));
			if (!bad) {
				len = plain_recv(self->fd, buf, sizeof(buf),
						 WAIT_MS);
				ASSERT_EQ(60 * (int)n, len);
			}
			if (n == 2) {
				while (!pv4_take(&self->s->tx, &d))
					usleep(100);
				ASSERT_EQ(bad ? ECANCELED : 0, d.error);
			}
			while (!pv4_take(&self->s->tx, &d))
				usleep(100);
			ASSERT_EQ(bad ? EINVAL : 0, d.error);
		}
	}
}

/* ---- small frames ---- */

/* Drivers do not receive into them. */
TEST(small_frames_only_send)
{
	struct zc_cfg cfg = {
		.ifname = if_a, .n = 1, .frame_size = 1024, .unit = 1024,
	};
	struct pv4_cfg tx = {
		.ifname = if_a, .tx_nr = pv4_min_descs(), .frame_size = 256,
		.unit = 64, .step = 4,
	};
	static char buf[BUF_SIZE];
	struct pv4 s;
	struct zc z;
	int fd, len;

	pv4_net_setup(_metadata);
	EXPECT_EQ(0, zc_open(&z, &(struct zc_cfg) {
				.frame_size = 1024, .unit = 1024,
			     }));
	EXPECT_EQ(0, pv4_bind(z.s.fd, if_a, ETH_P_ALL));
	EXPECT_EQ(-EINVAL, zc_set(&z, 1));
	zc_close(&z);
	EXPECT_EQ(-EINVAL, zc_open(&z, &cfg));
	zc_close(&z);

	ASSERT_EQ(0, pv4_open(&s, &tx));
	ASSERT_EQ(0, pv4_setint(s.fd, PACKET_ZEROCOPY, 1));
	fd = plain_listener(_metadata, if_b);
	fill_packet(buf, 1514, 3);
	ASSERT_EQ(0, pv4_put(&s, buf, 1514, 250, 6));
	ASSERT_EQ(0, pv4_kick(&s, 0));
	len = plain_recv(fd, buf, sizeof(buf), WAIT_MS);
	EXPECT_TRUE(packet_ok(buf, len, 1514, 3));
	pv4_close(&s);
	close(fd);
}

TEST_HARNESS_MAIN
