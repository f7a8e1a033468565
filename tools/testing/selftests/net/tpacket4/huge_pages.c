// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4: areas in huge pages, also with frames that cross normal pages */
#include "huge.h"

static const unsigned int sizes[] = {
	60, 128, 1514, 1537, 2047, 2048, 2049, 4096, 6145, 8192, MAX_PKT,
};

FIXTURE(huge) {
	struct pv4 tx, rx;		/* on if_a and if_b, a huge page each */
	long free;			/* before them */
	char *buf;
};

FIXTURE_VARIANT(huge) {
	unsigned int frame_size, unit, step;
};

FIXTURE_VARIANT_ADD(huge, plain) { .frame_size = 2048 };

/* as in DPDK's memory pools */
FIXTURE_VARIANT_ADD(huge, units) {
	.frame_size = 2368, .unit = 64, .step = 37,
};

FIXTURE_SETUP(huge)
{
	size_t size = need_huge_pages(2);
	struct pv4_cfg cfg = {
		.ifname = if_a, .tx_nr = pv4_min_descs(),
		.frames = size / variant->frame_size,
		.frame_size = variant->frame_size, .unit = variant->unit,
		.step = variant->step, .area_align = size,
	};

	self->tx.fd = -1;
	self->rx.fd = -1;
	if (!size)
		SKIP(return, "no huge pages");
	self->free = read_meminfo("HugePages_Free");
	pv4_net_setup(_metadata);
	cfg.area = map_huge_page(size);
	ASSERT_TRUE(cfg.area != MAP_FAILED);
	ASSERT_EQ(0, pv4_open(&self->tx, &cfg));
	cfg.ifname = if_b;
	cfg.rx_nr = cfg.tx_nr;
	cfg.tx_nr = 0;
	cfg.area = map_huge_page(size);
	ASSERT_TRUE(cfg.area != MAP_FAILED);
	ASSERT_EQ(0, pv4_open(&self->rx, &cfg));
	self->buf = malloc(1 << 17);
	ASSERT_TRUE(!!self->buf);
}

FIXTURE_TEARDOWN(huge)
{
	/* packets that a failed test has left there hold the namespace */
	release_queue(if_a);
	if (self->tx.fd >= 0)
		pv4_close(&self->tx);
	if (self->rx.fd >= 0)
		pv4_close(&self->rx);
	free(self->buf);
	huge_pages_restore();
}

/* Uses all frames of a huge page; then none of it is pinned. */
TEST_F(huge, contents)
{
	unsigned int n, len, rounds = 3 * self->tx.frames / 2;
	int got;

	for (n = 0; n < rounds; n++) {
		len = sizes[n % ARRAY_SIZE(sizes)];
		fill_packet(self->buf, len, n);
		/* least recently used frames first */
		if (self->tx.nr_spare > 8) {
			__u64 *spare = self->tx.spare;
			__u64 last = spare[self->tx.nr_spare - 1];

			memmove(spare + 1, spare, (self->tx.nr_spare - 1) *
				sizeof(*spare));
			spare[0] = last;
		}
		ASSERT_EQ(0, pv4_put(&self->tx, self->buf, len,
				     variant->frame_size, 0));
		ASSERT_EQ((int)len, pv4_kick(&self->tx, 0));
		got = pv4_recv(&self->rx, self->buf, 1 << 17, WAIT_MS);
		ASSERT_TRUE(packet_ok(self->buf, got, len, n)) {
			TH_LOG("packet %u of %u bytes: %d", n, len, got);
		}
		ASSERT_TRUE(pv4_reap_all(&self->tx, WAIT_MS));
	}
	EXPECT_EQ(self->tx.frames, self->tx.nr_spare);
	pv4_close(&self->tx);
	pv4_close(&self->rx);
	EXPECT_TRUE(huge_pages_back(self->free));
}

/* Packets in flight keep the page pinned, and release it. */
TEST_F(huge, closed_in_flight)
{
	unsigned int i, n = 30;
	int got;

	ASSERT_EQ(0, hold_queue(if_a));
	for (i = 0; i < n; i++) {
		fill_packet(self->buf, MAX_PKT, i);
		ASSERT_EQ(0, pv4_put(&self->tx, self->buf, MAX_PKT,
				     variant->frame_size, 0));
	}
	ASSERT_EQ((int)n * MAX_PKT, pv4_kick(&self->tx, MSG_DONTWAIT));
	pv4_close(&self->tx);
	EXPECT_GT(self->free, read_meminfo("HugePages_Free") + 1);
	ASSERT_EQ(0, release_queue(if_a));
	for (i = 0; i < n; i++) {
		got = pv4_recv(&self->rx, self->buf, 1 << 17, WAIT_MS);
		ASSERT_TRUE(packet_ok(self->buf, got, MAX_PKT, i));
	}
	pv4_close(&self->rx);
	EXPECT_TRUE(huge_pages_back(self->free));
}

TEST_HARNESS_MAIN
