// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4, zero-copy mode on two ports of hardware that are wired to each
 * other: what a driver with rings and DMA has to do right that veth has not.
 *
 * TPACKET4_PORTS must be set, and the ports be called v4a and v4b, be up and
 * without addresses; they are of i40e or of virtio_net. TPACKET4_PORT_RESET is a
 * shell command that resets v4b, TPACKET4_PORT_REPLUG one that removes it from
 * its bus and has it found again. TPACKET4_PORT_MTU is the largest MTU that the
 * tests of contents are to set. TPACKET4_PORT_VALID is set if virtio's devices vouch
 * for checksums that are right.
 */
#include "huge.h"
#include "meta.h"
#include "netdev.h"
#include "task.h"
#include "xsk.h"
#include "zc_load.h"
#include "zc_many.h"
#include "zc_port.h"
#include "zc_stopped.h"

#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/mman.h>

static const char if_c[] = "v4c", if_d[] = "v4d";	/* veth, to redirect to */

FIXTURE(port) {
};

FIXTURE_SETUP(port)
{
	ports(_metadata);
}

FIXTURE_TEARDOWN(port)
{
}

/* ---- contents ---- */

static const unsigned int sizes[] = {
	60, 61, 64, 127, 128, 129, 590, 1000, 1514, 1518, 1663, 1664, 1665,
	1791, 1792, 1793, 2047, 2048, 2049, 3000, 3584, 3585, 3839, 3840, 3841,
	5376, 5377, 7168, 7169, 8191, 8914, 9014,
};

FIXTURE(contents) {
	struct zc a, b;			/* on if_a and if_b, or no fd */
	int fd_a, fd_b;			/* else these */
	char *buf;
};

FIXTURE_VARIANT(contents) {
	bool zc_a, zc_b;
	unsigned int frame_size, unit, step, headroom, mtu;
};

FIXTURE_VARIANT_ADD(contents, to_stack) {
	.zc_a = true, .frame_size = 2048, .mtu = PORT_MTU,
};

FIXTURE_VARIANT_ADD(contents, from_stack) {
	.zc_b = true, .frame_size = 2048, .mtu = PORT_MTU,
};

FIXTURE_VARIANT_ADD(contents, both) {
	.zc_a = true, .zc_b = true, .frame_size = 2048, .mtu = PORT_MTU,
};

/* The hardware fills such frames in steps of 128 bytes only. */
FIXTURE_VARIANT_ADD(contents, headroom) {
	.zc_a = true, .zc_b = true, .frame_size = 2048, .headroom = 64,
	.mtu = 8200,
};

FIXTURE_VARIANT_ADD(contents, page) {
	.zc_a = true, .zc_b = true, .frame_size = 4096, .mtu = 9000,
};

/* Frames of DPDK's size in huge pages, which cross normal pages. */
FIXTURE_VARIANT_ADD(contents, units) {
	.zc_a = true, .zc_b = true, .frame_size = 2368, .unit = 64,
	.step = 37, .mtu = PORT_MTU,
};

FIXTURE_SETUP(contents)
{
	struct zc_cfg cfg = {
		.ifname = if_a, .n = 1, .frame_size = variant->frame_size,
		.unit = variant->unit, .step = variant->step,
		.headroom = variant->headroom, .rx_nr = 512,
	};

	self->a.s.fd = -1;
	self->b.s.fd = -1;
	self->fd_a = -1;
	self->fd_b = -1;
	if (variant->unit) {
		/* a huge page each: no frame crosses it */
		cfg.align = need_huge_pages(2);
		cfg.tx_nr = 256;
		if (!cfg.align ||
		    (cfg.rx_nr + cfg.tx_nr) * cfg.frame_size > cfg.align) {
			huge_pages_restore();
			SKIP(return, "needs two huge pages of 2 MiB");
		}
		cfg.memory = map_huge_page(cfg.align);
		ASSERT_TRUE(cfg.memory != MAP_FAILED);
	}
	ports(_metadata);
	ASSERT_EQ(0, both_mtu(port_mtu(variant->mtu)));
	if (variant->zc_a)
		ASSERT_EQ(0, port_open(&self->a, &cfg));
	cfg.ifname = if_b;
	if (variant->unit) {
		cfg.memory = map_huge_page(cfg.align);
		ASSERT_TRUE(cfg.memory != MAP_FAILED);
	}
	if (variant->zc_b)
		ASSERT_EQ(0, port_open(&self->b, &cfg));
	self->fd_a = plain_listener(_metadata, if_a);
	self->fd_b = plain_listener(_metadata, if_b);
	self->buf = malloc(BUF_SIZE);
	ASSERT_TRUE(!!self->buf);
}

FIXTURE_TEARDOWN(contents)
{
	zc_close(&self->a);
	zc_close(&self->b);
	close(self->fd_a);
	close(self->fd_b);
	free(self->buf);
	huge_pages_restore();
}

static int put_a(struct _test_data_contents *self, unsigned int len,
		 uint32_t seq)
{
	if (self->a.s.fd >= 0)
		return zc_put_seq(&self->a, len, seq);
	fill_packet(self->buf, len, seq);
	return send(self->fd_a, self->buf, len, 0) == (int)len ? 0 : -errno;
}

static int kick_a(struct _test_data_contents *self)
{
	return self->a.s.fd < 0 ? 0 : zc_kick(&self->a);
}

static int recv_b(struct _test_data_contents *self, int ms)
{
	if (self->b.s.fd >= 0)
		return zc_recv(&self->b, self->buf, BUF_SIZE, ms);
	return plain_recv(self->fd_b, self->buf, BUF_SIZE, ms);
}

static void expect_settled(struct __test_metadata *_metadata,
			   struct _test_data_contents *self)
{
	EXPECT_EQ(-EAGAIN, recv_b(self, QUIET_MS));
	if (self->a.s.fd >= 0) {
		EXPECT_TRUE(zc_reap_all(&self->a, WAIT_MS));
		EXPECT_TRUE(zc_books_balance(&self->a, NULL));
		EXPECT_EQ(0U, self->a.s.errors[EMSGSIZE]);
	}
	if (self->b.s.fd >= 0) {
		EXPECT_TRUE(zc_books_balance(&self->b, NULL));
		/* the stack of the other end does not see it */
		EXPECT_EQ(-EAGAIN, plain_recv(self->fd_b, self->buf, BUF_SIZE,
					      0));
	}
}

TEST_F_TIMEOUT(contents, one_by_one, 120)
{
	unsigned int i, round, n = 0, max = port_mtu(variant->mtu) + ETH_HLEN;
	int len;

	for (round = 0; round < 3; round++) {
		for (i = 0; i < ARRAY_SIZE(sizes) && sizes[i] <= max; i++, n++) {
			ASSERT_EQ(0, put_a(self, sizes[i], n));
			ASSERT_EQ(0, kick_a(self));
			len = recv_b(self, WAIT_MS);
			ASSERT_TRUE(packet_ok(self->buf, len, sizes[i], n)) {
				TH_LOG("size %u, received %d", sizes[i], len);
			}
		}
	}
	expect_settled(_metadata, self);
}

/* Many under way at once, all chains in a row. */
TEST_F_TIMEOUT(contents, burst, 120)
{
	unsigned int i, round, rounds = pv4_fast() ? 10 : 60, n = 0, seq;
	unsigned int len[20], max = port_mtu(variant->mtu) + ETH_HLEN;
	int got;

	for (round = 0; round < rounds; round++) {
		for (i = 0; i < ARRAY_SIZE(len); i++, n++) {
			len[i] = sizes[n * 7 % ARRAY_SIZE(sizes)];
			if (len[i] > max)
				len[i] = max;
			ASSERT_EQ(0, put_a(self, len[i], n));
		}
		ASSERT_EQ(0, kick_a(self));
		for (i = 0; i < ARRAY_SIZE(len); i++) {
			seq = n - ARRAY_SIZE(len) + i;
			got = recv_b(self, WAIT_MS);
			ASSERT_TRUE(packet_ok(self->buf, got, len[i], seq)) {
				TH_LOG("packet %u: received %d", seq, got);
			}
		}
	}
	expect_settled(_metadata, self);
}

/* Pieces of any length at any offset, up to as many as the hardware takes. */
TEST_F_TIMEOUT(contents, pieces, 120)
{
	static const struct { unsigned int piece, offset; } p[] = {
		{ 2048, 0 }, { 2047, 1 }, { 1537, 511 }, { 1792, 256 },
		{ 601, 11 }, { 541, 1507 }, { 61, 3 }, { 13, 700 },
	};
	unsigned int i, k, n = 0, max = port_mtu(variant->mtu) + ETH_HLEN;
	int len;

	if (!variant->zc_a)
		SKIP(return, "needs a ring that sends");
	for (i = 0; i < ARRAY_SIZE(p); i++) {
		for (k = 0; k < ARRAY_SIZE(sizes); k++, n++) {
			if (sizes[k] > 8 * p[i].piece || sizes[k] > max)
				continue;
			fill_packet(self->buf, sizes[k], n);
			zc_reap(&self->a);
			ASSERT_EQ(0, zc_put(&self->a, self->buf, sizes[k],
					    p[i].piece, p[i].offset));
			ASSERT_EQ(0, zc_kick(&self->a));
			len = recv_b(self, WAIT_MS);
			ASSERT_TRUE(packet_ok(self->buf, len, sizes[k], n)) {
				TH_LOG("%u bytes in pieces of %u at %u: %d",
				       sizes[k], p[i].piece, p[i].offset, len);
			}
		}
	}
	expect_settled(_metadata, self);
}

/* ---- what the hardware does not do ---- */

TEST_F_TIMEOUT(port, refused, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };
	struct tpacket4_desc d[9];
	struct zc z, other;
	unsigned int i, k;
	char *buf;

	if (is_virtio())
		SKIP(return, "these are the limits of i40e's hardware");
	buf = malloc(BUF_SIZE);
	ASSERT_TRUE(!!buf);
	/* five frames of 1792 bytes do not take a packet of this MTU */
	ASSERT_EQ(0, both_mtu(9000));
	EXPECT_EQ(-EMSGSIZE, port_open(&z, &cfg));
	EXPECT_FALSE(zc_take(&z, &z.s.rx, &d[0]));
	zc_close(&z);
	ASSERT_EQ(0, both_mtu(1500));
	/* 960 bytes of a frame are too few for it, 1024 not */
	cfg.headroom = 832;
	EXPECT_EQ(-EINVAL, port_open(&z, &cfg));
	zc_close(&z);
	cfg.headroom = 768;
	EXPECT_EQ(0, port_open(&z, &cfg));
	zc_close(&z);
	cfg.headroom = 0;
	cfg.n = 2;
	EXPECT_EQ(-ENXIO, port_open(&z, &cfg));
	zc_close(&z);

	cfg.n = 1;
	ASSERT_EQ(0, port_open(&z, &cfg));
	EXPECT_EQ(-EBUSY, port_open(&other, &cfg));
	zc_close(&other);
	EXPECT_EQ(0, set_mtu(if_b, 8900));
	EXPECT_EQ(-EINVAL, set_mtu(if_b, 9000));
	EXPECT_EQ(0, set_mtu(if_b, 1500));
	ASSERT_EQ(0, wait_for_carrier(if_b));

	/* too long; too many frames; and shorter than it can send */
	ASSERT_EQ(0, zc_put_seq(&z, 1515, 0));
	for (i = 0; i < 9; i++) {
		d[i] = (struct tpacket4_desc) {
			.idx = z.s.spare[--z.s.nr_spare],
			.len = 20,
			.flags = i == 8 ? 0 : TP4_PKT_CONT,
		};
	}
	zc_post(&z, &z.s.tx, d, 9);
	/* not zc_put_seq(), which takes what has come back by now */
	fill_packet(buf, 60, 0);
	ASSERT_EQ(0, zc_put(&z, buf, 16, 16, 0));
	ASSERT_EQ(0, zc_put(&z, buf, 60, 60, 0));
	ASSERT_EQ(0, zc_kick(&z));
	for (k = 0; k < 12; k++) {
		ASSERT_TRUE(zc_take_wait(&z, &z.s.tx, &d[0], WAIT_MS));
		EXPECT_EQ(k < 10 ? EMSGSIZE : k < 11 ? EINVAL : 0, d[0].error);
		z.s.spare[z.s.nr_spare++] = d[0].idx;
	}
	EXPECT_TRUE(zc_books_balance(&z, NULL));
	zc_close(&z);
	free(buf);
}

/* A port without chains wants frames that take any packet of the MTU. */
TEST_F_TIMEOUT(port, one_frame_per_packet, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };
	struct zc z;

	if (port_mtu(PORT_MTU) == PORT_MTU)
		SKIP(return, "the port supports packets of several frames");
	ASSERT_EQ(0, both_mtu(3000));
	EXPECT_EQ(-EMSGSIZE, port_open(&z, &cfg));
	zc_close(&z);
	cfg.frame_size = 4096;
	EXPECT_EQ(0, port_open(&z, &cfg));
	zc_close(&z);
}

/* A queue pair that is bound does not go, and one that is not may. */
TEST_F_TIMEOUT(port, channels_stay, 120)
{
	struct ethtool_channels ch = { .cmd = ETHTOOL_GCHANNELS };
	struct zc_cfg cfg = { .ifname = if_b, .n = 2 };
	struct zc z;

	if (channels(2))
		SKIP(return, "the ports have one queue only");
	ASSERT_EQ(0, port_open(&z, &cfg));
	ASSERT_EQ(0, ethtool_ioctl(if_b, &ch));
	ASSERT_EQ(2U, ch.combined_count);
	ch.cmd = ETHTOOL_SCHANNELS;
	ch.combined_count = 1;
	EXPECT_EQ(-EINVAL, ethtool_ioctl(if_b, &ch));
	EXPECT_EQ(2, zc_get(&z));
	zc_close(&z);
	EXPECT_EQ(0, channels(1));
}

/* As port_open(), once AF_XDP has let go of the queue, which takes a while. */
static int open_when_free(struct zc *z, const struct zc_cfg *cfg, __u64 end)
{
	int err;

	do {
		err = port_open(z, cfg);
		if (err)
			zc_close(z);
	} while (err == -EBUSY && now_ms() < end);
	return err;
}

TEST_F_TIMEOUT(port, af_xdp, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };
	uint64_t end = now_ms() + WAIT_MS;
	void *umem;
	struct zc z;
	int fd;

	umem = pv4_new_area(XSK_UMEM);
	ASSERT_TRUE(umem != MAP_FAILED);
	/* AF_XDP wants packets of one frame */
	ASSERT_EQ(0, both_mtu(1500));
	fd = xsk_bind(if_b, 0, XDP_ZEROCOPY, umem);
	if (fd == -EOPNOTSUPP)
		SKIP(return, "the driver has no zero-copy mode of AF_XDP");
	if (fd >= 0)
		close(fd);
	ASSERT_EQ(0, open_when_free(&z, &cfg, end));
	EXPECT_EQ(-EBUSY, xsk_bind(if_b, 0, XDP_ZEROCOPY, umem));
	zc_close(&z);
	fd = xsk_bind_wait(if_b, 0, XDP_ZEROCOPY, umem);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EBUSY, port_open(&z, &cfg));
	zc_close(&z);
	close(fd);
	EXPECT_EQ(0, open_when_free(&z, &cfg, end));
	zc_close(&z);
}

/* Memory for DMA, or -errno */
static int new_dmabuf(void)
{
	struct udmabuf_create create = { .size = 64 * getpagesize() };
	int dev = open("/dev/udmabuf", O_RDWR), fd = -1;

	if (dev < 0)
		return -errno;
	create.memfd = memfd_create("udmabuf", MFD_ALLOW_SEALING);
	if (!ftruncate(create.memfd, create.size) &&
	    !fcntl(create.memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		fd = ioctl(dev, UDMABUF_CREATE, &create);
	if (fd < 0)
		fd = -errno;
	close(create.memfd);
	close(dev);
	return fd;
}

/* A queue whose packets go to our frames gets no memory from anybody else. */
TEST_F(port, devmem)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };
	struct zc z;
	int fd;

	if (is_virtio())
		SKIP(return, "the device does no DMA by itself");
	fd = new_dmabuf();
	if (fd == -ENOENT)
		SKIP(return, "no /dev/udmabuf: CONFIG_UDMABUF is off");
	ASSERT_LE(0, fd);
	/* what the driver itself says */
	EXPECT_EQ(-EOPNOTSUPP, bind_devmem(if_b, 0, fd));
	ASSERT_EQ(0, port_open(&z, &cfg));
	EXPECT_EQ(-EBUSY, bind_devmem(if_b, 0, fd));
	zc_close(&z);
	EXPECT_EQ(-EOPNOTSUPP, bind_devmem(if_b, 0, fd));
	close(fd);
}

/* The least and the most descriptors of the hardware's rings, and of ours. */
TEST_F_TIMEOUT(port, ring_sizes, 300)
{
	const int hw[] = { 64, is_virtio() ? 256 : 4096 };
	unsigned int i;
	struct zc a, b;

	for (i = 0; i < 4; i++) {
		unsigned int nr = pv4_min_descs() << (i & 1 ? 4 : 0);
		struct zc_cfg cfg = {
			.ifname = if_a, .n = 1, .rx_nr = nr, .tx_nr = nr,
		};

		/* it is an error to ask for what is there */
		run("ethtool -G %s rx %d tx %d", if_a, hw[i / 2], hw[i / 2]);
		run("ethtool -G %s rx %d tx %d", if_b, hw[i / 2], hw[i / 2]);
		ASSERT_EQ(0, run("ethtool -g %s | tail -n +6 | grep -w 'RX:.*%d'",
				 if_b, hw[i / 2]));
		ASSERT_EQ(0, port_open(&a, &cfg));
		cfg.ifname = if_b;
		ASSERT_EQ(0, port_open(&b, &cfg));
		ASSERT_EQ(0, wait_for_carrier(if_a));
		ASSERT_EQ(0, wait_for_carrier(if_b));
		pass_one_by_one(_metadata, &a, &b, 200, pv4_fast() ? 300 :
								     2000);
		zc_close(&a);
		zc_close(&b);
	}
}

/* ---- many ---- */

TEST_F_TIMEOUT(port, hundred_thousand_packets, 300)
{
	struct zc_cfg cfg = { .ifname = if_a, .n = 1, .rx_nr = 512 };
	struct zc a, b;

	ASSERT_EQ(0, port_open(&a, &cfg));
	cfg.ifname = if_b;
	ASSERT_EQ(0, port_open(&b, &cfg));
	/* less than is posted for sure: nothing may be lost */
	pass_many(_metadata, &a, &b, pv4_fast() ? 10000 : 100000, 128);
	EXPECT_TRUE(zc_books_closed(&b));
	zc_close(&a);
	zc_close(&b);
}

/* Take a packet that arrives within @ms. */
static bool take_within(struct zc *z, struct tpacket4_desc *d, int ms)
{
	uint64_t end = now_ms() + ms;

	while (!zc_take(z, &z->s.rx, d)) {
		if (now_ms() >= end)
			return false;
	}
	return true;
}

/* Post frames on an empty ring, and receive into them. @got counts. */
static void post_and_receive(struct __test_metadata *_metadata, struct zc *z,
			     int fd, unsigned int *got)
{
	struct tpacket4_desc d = { 0 };
	int i;

	for (i = 0; i < 8; i++)
		zc_rx_post(z, i);
	/* The timer that looks for them is slow by now. A virtual device may
	 * have kept packets while there were no frames.
	 */
	for (; take_within(z, &d, QUIET_MS); ++*got)
		zc_rx_post(z, d.idx);
	for (i = 0; i < 8; i++, ++*got) {
		char buf[60];

		fill_packet(buf, sizeof(buf), i);
		ASSERT_EQ(60, send(fd, buf, sizeof(buf), 0));
		ASSERT_TRUE(take_within(z, &d, WAIT_MS));
		EXPECT_EQ((uint32_t)i,
			  packet_seq(pv4_frame(&z->s, d.idx) + d.offset));
	}
}

/* A ring with nothing to receive into goes on when there is something, without
 * a system call of a program that cannot know whether it must make one.
 */
TEST_F_TIMEOUT(port, out_of_frames, 120)
{
	struct zc_cfg cfg = {
		.ifname = if_b, .n = 1, .rx_empty = true, .no_status = true,
	};
	struct tpacket4_desc d = { 0 };
	struct tpacket_stats_v4 st;
	unsigned int got = 0;
	struct zc z;
	int i, fd;

	ASSERT_EQ(0, port_open(&z, &cfg));
	fd = plain_listener(_metadata, if_a);
	for (i = 0; i < 300; i++) {
		char buf[60];

		fill_packet(buf, sizeof(buf), i);
		ASSERT_EQ(60, send(fd, buf, sizeof(buf), 0));
	}
	EXPECT_FALSE(zc_take(&z, &z.s.rx, &d));
	post_and_receive(_metadata, &z, fd, &got);
	/* the timer expires while the device goes up */
	ASSERT_EQ(0, port_up(if_b, false));
	ASSERT_EQ(0, port_up(if_b, true));
	ASSERT_EQ(0, wait_for_carrier(if_a));
	ASSERT_EQ(0, wait_for_carrier(if_b));
	post_and_receive(_metadata, &z, fd, &got);
	EXPECT_TRUE(zc_books_closed(&z));
	ASSERT_EQ(0, pv4_stats(z.s.fd, &st));
	/* The card has dropped the packets, nobody else. */
	EXPECT_LT(0U, st.rx_no_desc);
	EXPECT_EQ(0U, st.rx_ring_full);
	EXPECT_EQ(0U, st.tp_drops);
	EXPECT_EQ(got, st.tp_packets);
	close(fd);
	zc_close(&z);
}

/* True once rx_need_wakeup is @want. */
static bool rx_asks(struct zc *z, uint32_t want)
{
	uint64_t end = now_ms() + WAIT_MS;

	while (__atomic_load_n(&z->status->rx_need_wakeup, __ATOMIC_RELAXED) !=
	       want) {
		if (now_ms() >= end)
			return false;
		usleep(1000);
	}
	return true;
}

/* A program that reads the status page is asked for a kick, and no timer looks
 * at the ring instead.
 */
TEST_F_TIMEOUT(port, empty_ring_needs_kick, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1, .rx_empty = true };
	struct tpacket4_desc d = { 0 };
	struct tpacket_stats_v4 st;
	unsigned int seq = 1;
	char buf[60];
	struct zc z;
	int i, fd;

	ASSERT_EQ(0, port_open(&z, &cfg));
	fd = plain_listener(_metadata, if_a);
	ASSERT_TRUE(rx_asks(&z, 1));
	/* The card drops what comes, and only this tells of it. */
	ASSERT_EQ(0, pv4_stats(z.s.fd, &st));
	EXPECT_LT(0U, st.rx_no_desc);
	for (i = 0; i < 8; i++)
		zc_rx_post(&z, i);
	usleep(50000);
	fill_packet(buf, sizeof(buf), 1);
	ASSERT_EQ(60, send(fd, buf, sizeof(buf), 0));
	usleep(QUIET_MS * 1000);	/* and no poll(), which kicks */
	EXPECT_FALSE(zc_take(&z, &z.s.rx, &d));
	ASSERT_TRUE(rx_asks(&z, 1));
	ASSERT_EQ(0, zc_kick(&z));
	/* the driver may take its time, and what comes before that is lost */
	do {
		ASSERT_GT(7U, ++seq);
		fill_packet(buf, sizeof(buf), seq);
		ASSERT_EQ(60, send(fd, buf, sizeof(buf), 0));
		usleep(QUIET_MS * 1000);
	} while (!zc_take(&z, &z.s.rx, &d));
	/* where the wire can wait, the earlier ones come first */
	while (packet_seq(pv4_frame(&z.s, d.idx) + d.offset) != seq)
		ASSERT_TRUE(zc_take_wait(&z, &z.s.rx, &d, WAIT_MS));
	/* with enough of them it asks no more */
	for (; i < (int)z.s.rx.size; i++)
		zc_rx_post(&z, i);
	ASSERT_EQ(0, zc_kick(&z));
	EXPECT_TRUE(rx_asks(&z, 0));
	EXPECT_TRUE(zc_books_balance(&z, NULL));
	close(fd);
	zc_close(&z);
}

/* Once the page is unmapped, no kick is expected: neither for frames posted
 * before, nor after the rings were mapped again without the page.
 */
TEST_F_TIMEOUT(port, status_unmapped, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1, .rx_empty = true };
	size_t page = getpagesize();
	unsigned int got = 0;
	struct zc z;
	int fd;

	ASSERT_EQ(0, port_open(&z, &cfg));
	fd = plain_listener(_metadata, if_a);
	ASSERT_TRUE(rx_asks(&z, 1));
	z.s.map_len -= page;
	ASSERT_EQ(0, munmap((char *)z.s.map + z.s.map_len, page));
	post_and_receive(_metadata, &z, fd, &got);
	EXPECT_TRUE(zc_books_closed(&z));
	zc_close(&z);

	ASSERT_EQ(0, port_open(&z, &cfg));
	ASSERT_TRUE(rx_asks(&z, 1));
	z.s.map_len -= page;
	ASSERT_EQ(0, munmap(z.s.map, z.s.map_len + page));
	z.s.map = mmap(NULL, z.s.map_len, PROT_READ | PROT_WRITE, MAP_SHARED,
		       z.s.fd, 0);
	ASSERT_TRUE(z.s.map != MAP_FAILED);
	z.s.rx.desc = z.s.map;
	z.s.tx.desc = z.s.rx.desc + z.s.rx.size;
	post_and_receive(_metadata, &z, fd, &got);
	EXPECT_TRUE(zc_books_closed(&z));
	zc_close(&z);
	close(fd);
}

/* The stack may go on sending by the same queue. */
TEST_F_TIMEOUT(port, stack_sends, 120)
{
	struct zc_cfg cfg = { .ifname = if_a, .n = 1 };
	unsigned int i, k, n[2] = { 0 }, rounds = pv4_fast() ? 20 : 200;
	int fd_a, fd_b, len;
	char *buf;
	struct zc z;

	buf = malloc(BUF_SIZE);
	ASSERT_TRUE(!!buf);
	ASSERT_EQ(0, port_open(&z, &cfg));
	fd_a = plain_listener(_metadata, if_a);
	fd_b = plain_listener(_metadata, if_b);
	for (i = 0; i < rounds; i++) {
		for (k = 0; k < 10; k++) {
			ASSERT_EQ(0, zc_send_seq(&z, 60 + 70 * k, 2 * k));
			fill_packet(buf, 60 + 600 * k, 2 * k + 1);
			ASSERT_EQ(60 + 600 * (int)k,
				  send(fd_a, buf, 60 + 600 * k, 0));
		}
		for (k = 0; k < 20; k++) {
			uint32_t seq;

			len = plain_recv(fd_b, buf, BUF_SIZE, WAIT_MS);
			ASSERT_LE(60, len);
			seq = packet_seq(buf);
			ASSERT_GT(20U, seq);
			ASSERT_TRUE(packet_ok(buf, len, 60 + seq / 2 *
					      (seq % 2 ? 600 : 70), seq));
			n[seq % 2]++;
		}
	}
	EXPECT_EQ(10 * rounds, n[0]);
	EXPECT_EQ(10 * rounds, n[1]);
	EXPECT_TRUE(zc_reap_all(&z, WAIT_MS));
	EXPECT_TRUE(zc_books_balance(&z, NULL));
	close(fd_a);
	close(fd_b);
	zc_close(&z);
	free(buf);
}

/* A socket on if_b with one ring only: the stack has the other direction. */
TEST_F_TIMEOUT(port, one_ring, 120)
{
	unsigned int i, rx, rounds = pv4_fast() ? 300 : 1000;
	char buf[1000], *data;

	for (rx = 0; rx < 2; rx++) {
		struct pv4_cfg cfg = {
			.rx_nr = rx ? pv4_min_descs() : 0,
			.tx_nr = rx ? 0 : pv4_min_descs(),
		};
		int len = sizeof(buf), fd_a, fd_b;
		struct tpacket4_desc d;
		struct pv4 s;

		ASSERT_EQ(0, pv4_open(&s, &cfg));
		ASSERT_EQ(0, pv4_setint(s.fd, PACKET_ZEROCOPY, 1));
		ASSERT_EQ(0, pv4_bind(s.fd, if_b, ETH_P_ALL));
		ASSERT_EQ(0, wait_for_carrier(if_a));
		ASSERT_EQ(0, wait_for_carrier(if_b));
		fd_a = plain_listener(_metadata, if_a);
		fd_b = plain_listener(_metadata, if_b);
		for (i = 0; i < rounds; i++) {
			fill_packet(buf, len, 2 * i);
			ASSERT_EQ(len, send(fd_a, buf, len, 0));
			if (rx) {
				ASSERT_TRUE(pv4_take_wait(&s, &s.rx, &d,
							  WAIT_MS));
				data = pv4_frame(&s, d.idx) + d.offset;
				ASSERT_TRUE(packet_ok(data, d.len, len, 2 * i));
				pv4_rx_post(&s, d.idx);
			} else {
				ASSERT_EQ(len, plain_recv(fd_b, buf, len,
							  WAIT_MS));
				ASSERT_TRUE(packet_ok(buf, len, len, 2 * i));
			}
			fill_packet(buf, len, 2 * i + 1);
			if (rx) {
				ASSERT_EQ(len, send(fd_b, buf, len, 0));
			} else {
				pv4_reap(&s);
				ASSERT_EQ(0, pv4_put(&s, buf, len, 2048, 0));
				ASSERT_EQ(0, pv4_kick(&s, MSG_DONTWAIT));
			}
			ASSERT_EQ(len, plain_recv(fd_a, buf, len, WAIT_MS));
			ASSERT_TRUE(packet_ok(buf, len, len, 2 * i + 1));
		}
		/* packets on the ring do not go to the stack */
		EXPECT_EQ(-EAGAIN, plain_recv(fd_b, buf, len, 0));
		EXPECT_TRUE(rx || pv4_reap_all(&s, WAIT_MS));
		close(fd_a);
		close(fd_b);
		pv4_close(&s);
	}
}

/* It may do so where a short ring has no more room than V4 leaves it, too: V4
 * sends as much as it can. It may be slow, but its queue does not stop.
 */
TEST_F_TIMEOUT(port, stack_sends_with_full_ring, 120)
{
	struct zc_cfg cfg = { .ifname = if_a, .n = 1 };
	int i, fd, err, queued, nr = pv4_fast() ? 2000 : 10000;
	uint64_t enough, end = now_ms() + 3 * WAIT_MS;
	uint32_t seq = 0;
	char pkt[60];
	struct zc z;
	pid_t pid;

	run("ethtool -G %s tx 64", if_a);
	ASSERT_EQ(0, port_open(&z, &cfg));
	ASSERT_EQ(0, wait_for_carrier(if_a));
	fd = plain_socket(_metadata, if_a, 0);
	pid = pv4_fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		pin_to_cpu(0);	/* has this queue */
		fill_packet(pkt, sizeof(pkt), 0);
		enough = now_ms() + WAIT_MS;
		for (i = 0; i < nr && now_ms() < enough; i++) {
			while (send(fd, pkt, sizeof(pkt), 0) < 0)
				if (errno != ENOBUFS)
					_exit(1);
		}
		do {
			usleep(10000);	/* NAPI needs this CPU */
			if (ioctl(fd, SIOCOUTQ, &queued))
				_exit(1);
		} while (queued);
		_exit(0);
	}
	do {
		while (!zc_put_seq(&z, 60, seq))
			seq++;
		ASSERT_EQ(0, zc_kick(&z));
		err = exit_within(pid, 0);
	} while (err == -EAGAIN && now_ms() < end);
	EXPECT_EQ(0, err) {
		TH_LOG("the stack's queue has stopped");
		kill(pid, SIGKILL);
	}
	EXPECT_TRUE(zc_reap_all(&z, WAIT_MS));
	close(fd);
	zc_close(&z);
}

/* More packets than the device has descriptors, one blocking call for all, and
 * MTU changes meanwhile. Nothing is received, so only the sender itself can make
 * the driver go on.
 */
TEST_F_TIMEOUT(port, blocked_sender, 300)
{
	struct zc_cfg cfg = {
		.ifname = if_a, .n = 1, .rx_nr = 4096, .tx_nr = 4096,
	};
	int i, err, rounds = pv4_fast() ? 3 : 10;
	uint64_t end;
	struct zc z;
	pid_t pid;

	ASSERT_EQ(0, port_open(&z, &cfg));
	ASSERT_EQ(0, wait_for_carrier(if_a));
	pid = pv4_fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		for (i = 0; i < rounds; i++) {
			while (!zc_put_seq(&z, 60, 0))
				;
			if (pv4_kick(&z.s, 0))
				_exit(1);
			zc_reap(&z);
		}
		_exit(0);
	}
	end = now_ms() + 3 * WAIT_MS;
	for (i = 0; (err = exit_within(pid, 20)) == -EAGAIN; i++) {
		ASSERT_GT(end, now_ms()) {
			TH_LOG("it sleeps for ever");
			kill(pid, SIGKILL);
		}
		/* and time without one, to see whether it goes on */
		if (i % 64 < 16)
			ASSERT_EQ(0, set_mtu(if_a, i % 2 ? 1400 : 1500));
	}
	EXPECT_EQ(0, err);
	zc_close(&z);
	ASSERT_EQ(0, both_mtu(port_mtu(PORT_MTU)));
}

/* A tag that the hardware takes off is in its place in the ring, and one that a
 * program sends finds its VLAN.
 */
TEST_F_TIMEOUT(port, vlan, 120)
{
	static const unsigned int lens[] = { 60, 500, 1784, 1788, 4090, 8000 };
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };
	struct zc z;
	int fd;

	ASSERT_EQ(0, run_ip("link add link %s name v4vlan type vlan id 7\n"
			    "link set v4vlan up\n", if_a));
	ASSERT_EQ(0, port_open(&z, &cfg));
	z.min_offset -= 4;
	fd = plain_listener(_metadata, "v4vlan");
	pass_tagged(_metadata, &z, fd, lens, ARRAY_SIZE(lens), 30);
	close(fd);
	zc_close(&z);
	run_ip("link del v4vlan\n");
}

/* ---- a copy for the stack ---- */

/* Each packet is in the ring, and once more at the stack; with a program that
 * passes it, and without.
 */
TEST_F_TIMEOUT(port, to_stack, 120)
{
	static const unsigned int lens[] = { 60, 500, 1514, 1784, 1800, 5000 };
	struct zc_cfg cfg = { .ifname = if_b, .n = 1, .to_stack = true };
	unsigned int i, n, rounds = pv4_fast() ? 30 : 300;
	int fd_a, fd_b, k, pass;
	struct zc z;
	char *buf;

	pass = xdp_const(XDP_PASS, BPF_F_XDP_HAS_FRAGS);
	ASSERT_LE(0, pass);
	buf = malloc(BUF_SIZE);
	ASSERT_TRUE(!!buf);
	ASSERT_EQ(0, port_open(&z, &cfg));
	fd_a = plain_listener(_metadata, if_a);
	fd_b = plain_listener(_metadata, if_b);
	for (k = 0; k < 2; k++) {
		if (k)
			ASSERT_EQ(0, xdp_attach_native(if_b, pass));
		ASSERT_EQ(0, wait_for_carrier(if_a));
		ASSERT_EQ(0, wait_for_carrier(if_b));
		for (i = 0; i < rounds; i++) {
			n = lens[i % ARRAY_SIZE(lens)];
			fill_packet(buf, n, i);
			ASSERT_EQ((int)n, send(fd_a, buf, n, 0));
			ASSERT_TRUE(packet_ok(buf, zc_recv(&z, buf, BUF_SIZE,
							   WAIT_MS), n, i));
			ASSERT_TRUE(packet_ok(buf, plain_recv(fd_b, buf,
							      BUF_SIZE,
							      WAIT_MS), n, i));
		}
		EXPECT_EQ(-EAGAIN, zc_recv(&z, buf, BUF_SIZE, QUIET_MS));
		EXPECT_EQ(-EAGAIN, plain_recv(fd_b, buf, BUF_SIZE, 0));
	}
	EXPECT_TRUE(zc_books_balance(&z, NULL));
	EXPECT_EQ(z.s.rx.size, z.s.rx.avail - z.s.rx.used);
	EXPECT_EQ(0, xdp_attach_native(if_b, -1));
	close(fd_a);
	close(fd_b);
	close(pass);
	zc_close(&z);
	free(buf);
}

/* Let a program of @cfg stop, or not start: nothing that the host needs waits for
 * it.
 */
static void stop_program(struct __test_metadata *_metadata, bool to_stack,
			 bool dry)
{
	struct zc_cfg cfg = {
		.ifname = if_b, .n = 1, .to_stack = to_stack, .keep = !to_stack,
		.rx_empty = dry,
	};
	unsigned int n = pv4_fast() ? 500 : 10000;
	int fd_a, fd_b;
	struct xdp_keyed x;
	struct zc z;

	fd_a = plain_listener(_metadata, if_a);
	fd_b = plain_listener(_metadata, if_b);
	ASSERT_EQ(0, port_open(&z, &cfg));
	ASSERT_EQ(0, xdp_keyed_load(&x, bpf_map(BPF_MAP_TYPE_DEVMAP, 4, 1),
				    BPF_F_XDP_HAS_FRAGS));
	ASSERT_EQ(0, xdp_set_action(&x, STOPPED_RING, XDP_PASS));
	ASSERT_EQ(0, xdp_set_action(&x, STOPPED_STACK, XDP_PASS_TO_KERNEL));
	ASSERT_EQ(0, xdp_attach_native(if_b, x.prog));
	ASSERT_EQ(0, wait_for_carrier(if_a));
	ASSERT_EQ(0, wait_for_carrier(if_b));
	if (dry)
		pass_dry(_metadata, &z, fd_a, fd_b, n, to_stack, true);
	else
		pass_stopped(_metadata, &z, fd_a, fd_b, n, to_stack);
	EXPECT_EQ(0, xdp_attach_native(if_b, -1));
	zc_close(&z);
	close(x.prog);
	close(fd_a);
	close(fd_b);
}

TEST_F_TIMEOUT(port, stopped, 300)
{
	stop_program(_metadata, false, false);
	stop_program(_metadata, true, false);
}

TEST_F_TIMEOUT(port, not_started, 300)
{
	stop_program(_metadata, false, true);
	stop_program(_metadata, true, true);
}

/* ---- XDP ---- */

TEST_F_TIMEOUT(port, xdp, 300)
{
	static const unsigned int len[] = {
		60, 61, 1000, 1514, 1800, 5000,
		/* on virtio_net, the second frame has no header, and more data */
		3590,
	};
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };
	unsigned int i, k, n = 0, rounds = pv4_fast() ? 5 : 20;
	int fd_a, fd_b, fd_d, map, ifindex, pass;
	struct xdp_keyed x;
	uint32_t seq;
	long before;
	struct zc z;
	char *buf;

	buf = malloc(BUF_SIZE);
	ASSERT_TRUE(!!buf);
	ASSERT_EQ(0, add_pair(if_c, if_d, 9000));
	pass = xdp_const(XDP_PASS, BPF_F_XDP_HAS_FRAGS);
	ASSERT_LE(0, pass);
	ASSERT_EQ(0, xdp_attach_native(if_d, pass));
	map = bpf_map(BPF_MAP_TYPE_DEVMAP, 4, 1);
	ASSERT_LE(0, map);
	ifindex = if_nametoindex(if_c);
	ASSERT_EQ(0, bpf_set(map, 0, &ifindex));
	ASSERT_EQ(0, xdp_keyed_load(&x, map, BPF_F_XDP_HAS_FRAGS));
	for (i = 0; i < NR_KEYS; i++)
		ASSERT_EQ(0, xdp_set_action(&x, i, i <= XDP_PASS_TO_KERNEL ?
						   i : XDP_PASS));
	ASSERT_EQ(0, port_open(&z, &cfg));
	ASSERT_EQ(0, xdp_attach_native(if_b, x.prog));
	ASSERT_EQ(0, wait_for_carrier(if_a));
	ASSERT_EQ(0, wait_for_carrier(if_b));
	fd_a = plain_listener(_metadata, if_a);
	fd_b = plain_listener(_metadata, if_b);
	fd_d = plain_listener(_metadata, if_d);

	for (i = 0; i < rounds; i++) {
		for (k = 0; k < ARRAY_SIZE(len); k++) {
			for (int act = 0; act <= XDP_PASS_TO_KERNEL; act++, n++) {
				int got = -EAGAIN;

				seq = key_seq(act, n);
				fill_packet(buf, len[k], seq);
				ASSERT_EQ((int)len[k],
					  send(fd_a, buf, len[k], 0));
				switch (act) {
				case XDP_PASS:
					got = zc_recv(&z, buf, BUF_SIZE,
						      WAIT_MS);
					break;
				case XDP_TX:
					got = plain_recv(fd_a, buf, BUF_SIZE,
							 WAIT_MS);
					break;
				case XDP_REDIRECT:
					got = plain_recv(fd_d, buf, BUF_SIZE,
							 WAIT_MS);
					break;
				case XDP_PASS_TO_KERNEL:
					got = plain_recv(fd_b, buf, BUF_SIZE,
							 WAIT_MS);
					break;
				default:
					continue;
				}
				ASSERT_TRUE(packet_ok(buf, got, len[k], seq)) {
					TH_LOG("action %d, %u bytes: %d", act,
					       len[k], got);
				}
			}
		}
	}
	/* to where they should have gone and nowhere else */
	EXPECT_EQ(-EAGAIN, zc_recv(&z, buf, BUF_SIZE, QUIET_MS));
	EXPECT_EQ(-EAGAIN, plain_recv(fd_a, buf, BUF_SIZE, 0));
	EXPECT_EQ(-EAGAIN, plain_recv(fd_b, buf, BUF_SIZE, 0));
	EXPECT_EQ(-EAGAIN, plain_recv(fd_d, buf, BUF_SIZE, 0));
	for (i = 0; i <= XDP_PASS_TO_KERNEL; i++)
		EXPECT_EQ(rounds * ARRAY_SIZE(len), bpf_get(x.counts, i));

	/* A packet that cannot be redirected is lost. */
	before = dropped(if_b);
	ASSERT_LE(0, before);
	ASSERT_EQ(0, set_up(if_c, false));
	for (i = 0; i < 3; i++, n++) {
		fill_packet(buf, 100, key_seq(XDP_REDIRECT, n));
		ASSERT_EQ(100, send(fd_a, buf, 100, 0));
	}
	EXPECT_EQ(-EAGAIN, plain_recv(fd_d, buf, BUF_SIZE, QUIET_MS));
	EXPECT_EQ(before + 3, wait_for_drops(if_b, before + 3));
	EXPECT_TRUE(zc_books_balance(&z, NULL));
	EXPECT_EQ(z.s.rx.size, z.s.rx.avail - z.s.rx.used);
	EXPECT_EQ(0, xdp_attach_native(if_b, -1));
	EXPECT_EQ(1, zc_get(&z));
	run_ip("link del %s\n", if_c);
	close(fd_a);
	close(fd_b);
	close(fd_d);
	close(pass);
	zc_close(&z);
	free(buf);
}

/* virtio_net: XDP has no queues of its own if the stack has all of them. */
TEST_F_TIMEOUT(port, xdp_shares_queues, 120)
{
	int cpus = sysconf(_SC_NPROCESSORS_ONLN), i, fd, prog;
	static char buf[BUF_SIZE];

	if (!is_virtio() ||
	    run("ethtool -L %s combined %d", if_b, 2 * cpus))
		SKIP(return, "needs virtio_net with two queues for each CPU");
	ASSERT_EQ(0, both_mtu(1500));
	prog = xdp_const(XDP_TX, 0);
	ASSERT_LE(0, prog);
	ASSERT_EQ(0, xdp_attach_native(if_b, prog));
	fd = plain_listener(_metadata, if_a);
	for (i = 0; i < 20; i++) {
		fill_packet(buf, 200, i);
		ASSERT_EQ(200, send(fd, buf, 200, 0));
		ASSERT_EQ(200, plain_recv(fd, buf, sizeof(buf), WAIT_MS));
	}
	EXPECT_EQ(0, xdp_attach_native(if_b, -1));
	close(prog);
	close(fd);
}

/* ---- steering ---- */

TEST_F_TIMEOUT(port, steering, 120)
{
	static const char flow[] = "flow-type udp4 src-port 4242 dst-port 9";
	struct zc_cfg cfg = { .ifname = if_b, .n = 2 };
	unsigned int i, n = pv4_fast() ? 50 : 500;
	char buf[200], got[2048];
	int fd_a, fd_b, len;
	struct zc z;

	if (is_virtio())
		SKIP(return, "the driver has no filters");
	if (channels(2))
		SKIP(return, "the ports have one queue only");
	/* all to queue 0, but for one flow */
	ASSERT_EQ(0, run("ethtool -X %s equal 1", if_b));
	ASSERT_EQ(0, run("ethtool -K %s ntuple on", if_b));
	ASSERT_EQ(0, run("ethtool -N %s %s action 1 loc 3", if_b, flow));
	ASSERT_EQ(0, port_open(&z, &cfg));
	ASSERT_EQ(0, wait_for_carrier(if_b));
	fd_a = plain_listener(_metadata, if_a);
	fd_b = plain_listener(_metadata, if_b);
	for (i = 0; i < n; i++) {
		fill_udp(buf, sizeof(buf), 4243, i);
		buf[37] = 9;
		ASSERT_EQ((int)sizeof(buf), send(fd_a, buf, sizeof(buf), 0));
		len = plain_recv(fd_b, got, sizeof(got), WAIT_MS);
		ASSERT_EQ((int)sizeof(buf), len);
		ASSERT_EQ(0, memcmp(buf, got, len));
		fill_udp(buf, sizeof(buf), 4242, i);
		buf[37] = 9;
		ASSERT_EQ((int)sizeof(buf), send(fd_a, buf, sizeof(buf), 0));
		len = zc_recv(&z, got, sizeof(got), WAIT_MS);
		ASSERT_EQ((int)sizeof(buf), len);
		ASSERT_EQ(0, memcmp(buf, got, len));
	}
	EXPECT_EQ(-EAGAIN, plain_recv(fd_b, got, sizeof(got), QUIET_MS));
	EXPECT_EQ(-EAGAIN, zc_recv(&z, got, sizeof(got), 0));
	EXPECT_TRUE(zc_books_balance(&z, NULL));
	run("ethtool -N %s delete 3", if_b);
	close(fd_a);
	close(fd_b);
	zc_close(&z);
	EXPECT_EQ(0, run("ethtool -X %s default", if_b));
	EXPECT_EQ(0, channels(1));
}

/* ---- what happens to a port under load ---- */

static int pass_prog = -1;

static int op_down_up(int i)
{
	return port_up(i % 2 ? if_a : if_b, false) |
	       port_up(i % 2 ? if_a : if_b, true);
}

/* virtio's rings are powers of two, and QEMU's those that it has at first. */
static int op_ring(int i)
{
	static const int i40e[] = { 64, 1024, 4096, 96, 512 };
	static const int virtio[] = { 64, 256, 128, 256, 128 };
	const int *nr = is_virtio() ? virtio : i40e;

	return run("ethtool -G %s rx %d tx %d", i % 2 ? if_a : if_b,
		   nr[i / 2 % 5], nr[(i / 2 + i % 2) % 5]);
}

static int op_mtu(int i)
{
	static const int mtu[] = { 8000, 5000, 8900 };

	return set_mtu(if_a, mtu[i % 3]) | set_mtu(if_b, mtu[i % 3]);
}

static int op_xdp(int i)
{
	return xdp_attach_native(i / 2 % 2 ? if_a : if_b,
				 i % 2 ? -1 : pass_prog);
}

static int op_channels(int i)
{
	return run("ethtool -L %s combined %d", i / 2 % 2 ? if_a : if_b,
		   2 - i % 2);
}

static int op_reset(int i)
{
	const char *cmd = getenv("TPACKET4_PORT_RESET");

	return i < 0 ? !cmd : run("%s", cmd);
}

FIXTURE(op) {
	struct pair p;
};

FIXTURE_VARIANT(op) {
	int (*op)(int i);
	int rounds;
};

FIXTURE_VARIANT_ADD(op, down_up) { .op = op_down_up, .rounds = 6 };

FIXTURE_VARIANT_ADD(op, ring) { .op = op_ring, .rounds = 10 };

FIXTURE_VARIANT_ADD(op, mtu) { .op = op_mtu, .rounds = 6 };

FIXTURE_VARIANT_ADD(op, xdp) { .op = op_xdp, .rounds = 8 };

FIXTURE_VARIANT_ADD(op, channels) { .op = op_channels, .rounds = 6 };

FIXTURE_VARIANT_ADD(op, reset) { .op = op_reset, .rounds = 4 };

FIXTURE_SETUP(op)
{
	ports(_metadata);
	pass_prog = xdp_const(XDP_PASS, BPF_F_XDP_HAS_FRAGS);
	ASSERT_LE(0, pass_prog);
	pair_open(_metadata, &self->p);
}

FIXTURE_TEARDOWN(op)
{
	pair_close(&self->p);
	close(pass_prog);
}

TEST_F_TIMEOUT(op, under_load, 600)
{
	int i, rounds = pv4_fast() ? (variant->rounds + 1) / 2 : variant->rounds;

	if (variant->op == op_reset && op_reset(-1))
		SKIP(return, "TPACKET4_PORT_RESET is not set");
	if (variant->op == op_channels) {
		if (run("ethtool -L %s combined 2", if_a))
			SKIP(return, "the ports have one queue only");
		run("ethtool -L %s combined 1", if_a);
	}
	start_load(_metadata, &self->p);
	ASSERT_TRUE(flows(&self->p));
	for (i = 0; i < rounds; i++) {
		ASSERT_EQ(0, variant->op(i)) {
			TH_LOG("round %d", i);
		}
		ASSERT_EQ(1, zc_get(&self->p.b));
		ASSERT_TRUE(flows(&self->p)) {
			TH_LOG("round %d", i);
		}
		/* a device that went down tells its sockets, once */
		socket_error(self->p.b.s.fd);
	}
	xdp_attach_native(if_a, -1);
	xdp_attach_native(if_b, -1);
	ASSERT_EQ(0, both_mtu(port_mtu(PORT_MTU)));
	EXPECT_TRUE(flows(&self->p));
	stop_load(_metadata, &self->p);
	expect_intact(_metadata, &self->p);
}

/* A program that dies, and one that turns the mode on and off. */
TEST_F_TIMEOUT(port, kill_under_load, 300)
{
	unsigned int i, rounds = pv4_fast() ? 4 : 15;
	struct pair p = { 0 };
	pid_t pid;

	pair_open(_metadata, &p);
	zc_close(&p.b);
	p.b.s.fd = -1;
	p.pid = pv4_fork();
	ASSERT_LE(0, p.pid);
	if (!p.pid)
		_exit(load_main(&p.a, p.load, p.buf));
	zc_close(&p.a);
	p.a.s.fd = -1;
	for (i = 0; i < rounds; i++) {
		pid = pv4_fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			if (open_loose(&p.b, if_b))
				_exit(1);
			load_main(&p.b, p.load, p.buf);
			_exit(2);
		}
		usleep(200000 + 10000 * i);
		ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(-SIGKILL, wait_for_exit(pid));
	}
	ASSERT_EQ(0, open_loose(&p.b, if_b));
	for (i = 0; i < rounds; i++) {
		ASSERT_TRUE(flows(&p));
		ASSERT_EQ(0, zc_set(&p.b, 0));
		ASSERT_LE(0, zc_all_back(&p.b, ECANCELED, WAIT_MS));
		ASSERT_TRUE(zc_books_closed(&p.b));
		zc_refill(&p.b);
		ASSERT_EQ(0, zc_set(&p.b, 1));
	}
	EXPECT_TRUE(flows(&p));
	stop_load(_metadata, &p);
	expect_intact(_metadata, &p);
	pair_close(&p);
}

/* ---- metadata ---- */

#define HEADROOM	64
#define TX_LEN		(L4 + header_len(IPPROTO_TCP) + 1000)

static int send_meta(struct zc *z, const struct tpacket4_meta *m,
		     const char *pkt, unsigned int len)
{
	unsigned int i, before[256];
	int err;

	memcpy(before, z->s.errors, sizeof(before));
	z->s.put = m;
	err = zc_put(z, pkt, len, 900, HEADROOM);
	z->s.put = NULL;
	err = err ? err : zc_kick(z);
	if (err)
		return err;
	if (!zc_reap_all(z, WAIT_MS))
		return -ETIMEDOUT;
	for (i = 1; i < 256; i++)
		if (z->s.errors[i] != before[i])
			return i;
	return 0;
}

/* Receives the segments that a packet of fill_ip4() was cut up into. */
static void recv_segments(struct __test_metadata *_metadata, struct zc *z,
			  int proto, unsigned int payload, unsigned int size,
			  uint32_t seq)
{
	unsigned int from, head = L4 + header_len(proto);
	static char buf[BUF_SIZE];
	int len;

	for (from = 0; from < payload; from += len - head) {
		len = zc_recv(z, buf, sizeof(buf), WAIT_MS);
		ASSERT_TRUE(ip4_ok(buf, len, proto, payload, from, seq)) {
			TH_LOG("from %u: received %d", from, len);
		}
		ASSERT_TRUE(len == (int)(head + size) ||
			    from + len - head == payload);
		EXPECT_EQ(0U, z->s.got.flags & (TP4_META_CSUM | TP4_META_GSO));
	}
}

/* The hardware finishes checksums of what is sent, and says of what is received
 * whether they are right, and its hash.
 */
TEST_F_TIMEOUT(port, metadata, 120)
{
	static const struct {
		int proto;
		bool wrong;
	} kinds[] = {
		{ IPPROTO_UDP }, { IPPROTO_TCP }, { IPPROTO_TCP, true },
	};
	struct pv4_cfg copy_cfg = {
		.ifname = if_b, .rx_nr = pv4_min_descs(), .headroom = HEADROOM,
		.meta = true,
	};
	struct zc_cfg cfg = {
		.ifname = if_a, .n = 1, .headroom = HEADROOM, .meta = true,
	};
	struct tpacket4_meta m, *got;
	static char pkt[BUF_SIZE], buf[BUF_SIZE];
	unsigned int i, k, len, hash = 0;
	struct pv4 copy;
	struct zc a, b;
	__u64 before;
	int proto;

	if (is_virtio())
		SKIP(return, "these are the offloads of i40e's hardware");
	/* with that headroom, fewer bytes fit in five frames */
	ASSERT_EQ(0, both_mtu(4000));
	ASSERT_EQ(0, port_open(&a, &cfg));
	cfg.ifname = if_b;
	ASSERT_EQ(0, port_open(&b, &cfg));
	got = &b.s.got;
	for (i = 0; i < 4 * ARRAY_SIZE(kinds); i++) {
		k = i % ARRAY_SIZE(kinds);
		/* one frame, two, and more */
		fill_ip4(pkt, kinds[k].proto, 100 + 800 * (i / 3), i);
		len = L4 + header_len(kinds[k].proto) + 100 + 800 * (i / 3);
		m = csum_meta(kinds[k].proto);
		before = real_ns();
		/* once as it is: with a checksum that is not finished */
		ASSERT_EQ(0, send_meta(&a, kinds[k].wrong ? NULL : &m, pkt,
				       len)) {
			TH_LOG("packet %u", i);
		}
		ASSERT_EQ((int)len, zc_recv(&b, buf, sizeof(buf), WAIT_MS));
		EXPECT_EQ(!kinds[k].wrong, ip4_ok(buf, len, kinds[k].proto,
						  100 + 800 * (i / 3), 0, i));
		EXPECT_EQ(kinds[k].wrong ? 0 : TP4_META_RX_CSUM_VALID,
			  got->flags & TP4_META_RX_CSUM_VALID);
		EXPECT_EQ(TP4_META_RX_HASH, got->flags & TP4_META_RX_HASH);
		/* the same flow as last time */
		if (k == 2)
			EXPECT_EQ(hash, got->hash);
		hash = got->hash;
		EXPECT_EQ(len, got->wire_len);
		EXPECT_EQ(htons(ETH_P_IP), got->protocol);
		EXPECT_LE(before, got->tstamp);
		EXPECT_GE(real_ns(), got->tstamp);
	}

	/* headers that are elsewhere, and what a sum is right for */
	m = csum_meta(IPPROTO_TCP);
	m.csum_start = L4_IP6;
	fill_ip6(pkt, 700, 1);
	len = L4_IP6 + header_len(IPPROTO_TCP) + 700;
	ASSERT_EQ(0, send_meta(&a, &m, pkt, len));
	ASSERT_EQ((int)len, zc_recv(&b, buf, sizeof(buf), WAIT_MS));
	EXPECT_EQ(0xffffU, sum_up(buf + L4_IP6, len - L4_IP6,
				  sum_up(buf + L3 + 8, 32,
					 IPPROTO_TCP + len - L4_IP6)));
	EXPECT_EQ(TP4_META_RX_CSUM_VALID, got->flags & TP4_META_RX_CSUM_VALID);
	m = csum_meta(IPPROTO_UDP);
	m.csum_start += 4;
	fill_ip4(pkt, IPPROTO_UDP, 500, 2);
	len = add_tag(pkt, L4 + 508, ETH_P_8021Q, 9);
	/* the tag is put back in front of where data is */
	b.min_offset -= 4;
	ASSERT_EQ(0, send_meta(&a, &m, pkt, len));
	ASSERT_EQ((int)len, zc_recv(&b, buf, sizeof(buf), WAIT_MS));
	EXPECT_EQ(0, memcmp(pkt, buf, L3 + 4));
	memmove(buf + 12, buf + 16, len - 16);
	EXPECT_TRUE(ip4_ok(buf, len - 4, IPPROTO_UDP, 500, 0, 2));

	/* segments, of a packet in one frame and in as many as it may have */
	b.min_offset += 4;
	for (i = 0; i < 24; i++) {
		proto = i % 2 ? IPPROTO_UDP : IPPROTO_TCP;
		k = 1000 + 1200 * (i / 2);
		fill_ip4(pkt, proto, k, i);
		m = gso_meta(proto, i % 2 ? VIRTIO_NET_HDR_GSO_UDP_L4 :
					    VIRTIO_NET_HDR_GSO_TCPV4, 500 + i);
		ASSERT_EQ(0, send_meta(&a, &m, pkt,
				       L4 + header_len(proto) + k)) {
			TH_LOG("%u bytes, protocol %d", k, proto);
		}
		recv_segments(_metadata, &b, proto, k, 500 + i, i);
	}
	fill_ip6(pkt, 3000, 1);
	m = gso_meta(IPPROTO_TCP, VIRTIO_NET_HDR_GSO_TCPV6, 1400);
	m.csum_start = L4_IP6;
	ASSERT_EQ(0, send_meta(&a, &m, pkt, L4_IP6 + 20 + 3000));
	for (i = 0; i < 3; i++)
		ASSERT_EQ(L4_IP6 + 20 + (i < 2 ? 1400 : 200),
			  zc_recv(&b, buf, sizeof(buf), WAIT_MS));
	/* no segments: too short, too long, or not of that kind */
	fill_ip4(pkt, IPPROTO_TCP, 1000, 1);
	m = gso_meta(IPPROTO_TCP, VIRTIO_NET_HDR_GSO_TCPV4, 63);
	EXPECT_EQ(EINVAL, send_meta(&a, &m, pkt, TX_LEN));
	m.gso_size = 20000;
	EXPECT_EQ(EMSGSIZE, send_meta(&a, &m, pkt, TX_LEN));
	m.gso_size = 500;
	m.gso_type = VIRTIO_NET_HDR_GSO_TCPV6;
	EXPECT_EQ(EINVAL, send_meta(&a, &m, pkt, TX_LEN));
	m.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4;
	EXPECT_EQ(EINVAL, send_meta(&a, &m, pkt, TX_LEN));
	fill_ip4(pkt, IPPROTO_UDP, 1000, 1);
	m = gso_meta(IPPROTO_UDP, VIRTIO_NET_HDR_GSO_UDP_L4, 500);
	m.gso_type |= VIRTIO_NET_HDR_GSO_ECN;
	EXPECT_EQ(EOPNOTSUPP, send_meta(&a, &m, pkt, L4 + 8 + 1000));
	m.gso_type = VIRTIO_NET_HDR_GSO_UDP;
	EXPECT_EQ(EOPNOTSUPP, send_meta(&a, &m, pkt, L4 + 8 + 1000));

	/* what the hardware does not do */
	fill_ip4(pkt, IPPROTO_TCP, 1000, 1);
	m = csum_meta(IPPROTO_UDP);	/* not where that of TCP is */
	EXPECT_EQ(EOPNOTSUPP, send_meta(&a, &m, pkt, TX_LEN));
	m = csum_meta(IPPROTO_TCP);
	m.csum_start += 4;
	EXPECT_EQ(EOPNOTSUPP, send_meta(&a, &m, pkt, TX_LEN));
	m = csum_meta(IPPROTO_TCP);
	pkt[L4 + 12] = 0x40;		/* a header of 16 bytes */
	EXPECT_EQ(EINVAL, send_meta(&a, &m, pkt, TX_LEN));
	pkt[L4 + 12] = (char)0xf0;	/* and one that goes beyond the end */
	EXPECT_EQ(EINVAL, send_meta(&a, &m, pkt, L4 + 40));
	m.flags = TP4_META_TX_LAUNCH;
	EXPECT_EQ(EOPNOTSUPP, send_meta(&a, &m, pkt, TX_LEN));
	EXPECT_EQ(-EAGAIN, zc_recv(&b, buf, sizeof(buf), QUIET_MS));
	EXPECT_TRUE(zc_books_balance(&a, NULL));
	EXPECT_TRUE(zc_books_balance(&b, NULL));
	zc_close(&b);

	/* the same of what the hardware says, by an skb */
	ASSERT_EQ(0, pv4_open(&copy, &copy_cfg));
	m = csum_meta(IPPROTO_TCP);
	fill_ip4(pkt, IPPROTO_TCP, 1000, 3);
	ASSERT_EQ(0, send_meta(&a, &m, pkt, TX_LEN));
	ASSERT_EQ(TX_LEN, pv4_recv(&copy, buf, sizeof(buf), WAIT_MS));
	EXPECT_EQ(TP4_META_RX_CSUM_VALID | TP4_META_RX_HASH, copy.got.flags &
		  (TP4_META_RX_CSUM_VALID | TP4_META_RX_HASH));
	pv4_close(&copy);
	zc_close(&a);
}

static bool offers(const char *offload)
{
	return !run("ethtool -k %s | grep '%s: on'", if_a, offload);
}

/* Sums elsewhere, in no packet that anybody knows, and where none can be */
static void expect_sums(struct __test_metadata *_metadata, struct zc *a,
			struct zc *b)
{
	const struct {
		unsigned int start, offset;
	} bad[] = {
		{ TX_LEN - 1, 0 }, { TX_LEN - 2, 1 }, { 40, TX_LEN - 41 },
		{ 0xffff, 0xffff }, { 0, 40 }, { L4 - 1, 20 },
	};
	struct tpacket4_meta m = { .flags = TP4_META_CSUM };
	static char pkt[BUF_SIZE], buf[BUF_SIZE];
	unsigned int i, start;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		fill_packet(pkt, TX_LEN, i);
		m.csum_start = bad[i].start;
		m.csum_offset = bad[i].offset;
		EXPECT_EQ(EINVAL, send_meta(a, &m, pkt, TX_LEN)) {
			TH_LOG("bad sum %u", i);
		}
	}
	for (start = L4; start < TX_LEN - 32; start += 94) {
		fill_packet(pkt, TX_LEN, start);
		put16(pkt + start + 20, 0);
		m.csum_start = start;
		m.csum_offset = 20;
		ASSERT_EQ(0, send_meta(a, &m, pkt, TX_LEN));
		ASSERT_EQ(TX_LEN, zc_recv(b, buf, sizeof(buf), WAIT_MS));
		EXPECT_EQ(0xffffU, sum_up(buf + start, TX_LEN - start, 0));
		memset(buf + start + 20, 0, 2);
		EXPECT_EQ(0, memcmp(pkt, buf, TX_LEN));
	}
}

static void expect_segments(struct __test_metadata *_metadata, struct zc *a,
			    struct zc *b)
{
	const struct {
		unsigned int size, start, offset;
		char doff;
		int error;
	} bad[] = {
		{ 0, L4, 16, 0x50, EINVAL },
		{ 20000, L4, 16, 0x50, EMSGSIZE },
		{ 500, L4, 6, 0x50, EINVAL },		/* UDP's */
		{ 500, L4, 16, 0x40, EINVAL },
		{ 500, TX_LEN - 30, 16, (char)0xf0, EINVAL },
		{ 500, TX_LEN - 18, 16, 0x50, EINVAL },
	};
	static char pkt[BUF_SIZE], buf[BUF_SIZE];
	unsigned int i, k, payload;
	struct tpacket4_meta m;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		fill_ip4(pkt, IPPROTO_TCP, 1000, i);
		m = gso_meta(IPPROTO_TCP, VIRTIO_NET_HDR_GSO_TCPV4, bad[i].size);
		m.csum_start = bad[i].start;
		m.csum_offset = bad[i].offset;
		if (bad[i].start + 12 < TX_LEN)
			pkt[bad[i].start + 12] = bad[i].doff;
		EXPECT_EQ(bad[i].error, send_meta(a, &m, pkt, TX_LEN)) {
			TH_LOG("bad segments %u", i);
		}
	}
	/* each packet has a header of its own: all at once */
	for (k = 0; k < 10; k++) {
		for (i = 0; i < 4; i++) {
			payload = i == 2 ? 5000 + 500 * k : 700;
			fill_ip4(pkt, IPPROTO_TCP, payload, 4 * k + i);
			m = csum_meta(IPPROTO_TCP);
			if (i == 2)
				m = gso_meta(IPPROTO_TCP,
					     VIRTIO_NET_HDR_GSO_TCPV4, 1000 + k);
			a->s.put = i ? &m : NULL;
			ASSERT_EQ(0, zc_put(a, pkt, L4 + 20 + payload, 900,
					    HEADROOM));
			a->s.put = NULL;
		}
		ASSERT_EQ(0, zc_kick(a));
		ASSERT_EQ(L4 + 20 + 700, zc_recv(b, buf, sizeof(buf), WAIT_MS));
		fill_ip4(pkt, IPPROTO_TCP, 700, 4 * k);
		EXPECT_EQ(0, memcmp(pkt, buf, L4 + 20 + 700));
		recv_segments(_metadata, b, IPPROTO_TCP, 700, 700, 4 * k + 1);
		recv_segments(_metadata, b, IPPROTO_TCP, 5000 + 500 * k,
			      1000 + k, 4 * k + 2);
		recv_segments(_metadata, b, IPPROTO_TCP, 700, 700, 4 * k + 3);
		ASSERT_TRUE(zc_reap_all(a, WAIT_MS));
	}
}

/* A queue that is stopped while its pair is switched has not hung, however long
 * the stack has sent nothing on it.
 */
TEST_F_TIMEOUT(port, switching_is_no_hang, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };
	__s64 before = ethtool_stat(if_b, "port.tx_timeout");
	uint64_t end = now_ms() + 20000;
	struct zc z;

	if (is_virtio())
		SKIP(return, "its queues are not stopped");
	ASSERT_LE(0, before);
	ASSERT_EQ(0, port_open(&z, &cfg));
	/* Whenever the watchdog looks, every five seconds */
	while (now_ms() < end) {
		ASSERT_EQ(0, zc_set(&z, 0));
		ASSERT_EQ(0, zc_set(&z, 1));
	}
	EXPECT_EQ(before, ethtool_stat(if_b, "port.tx_timeout"));
	zc_close(&z);
}

/* With the copy that the stack gets goes what the card knows of the packet. */
TEST_F_TIMEOUT(port, copies_have_offloads, 120)
{
	bool valid = !is_virtio() || getenv("TPACKET4_PORT_VALID");
	bool hash = !is_virtio() || !run("ethtool -K %s rxhash on", if_b);
	struct zc_cfg cfg = { .ifname = if_b, .n = 1, .headroom = HEADROOM };
	struct pv4_cfg copy_cfg = {
		.ifname = if_b, .rx_nr = pv4_min_descs(), .headroom = HEADROOM,
		.meta = true,
	};
	static char pkt[BUF_SIZE], buf[BUF_SIZE];
	unsigned int i, k, len, last = 0;
	__s64 csum_bad;
	int fd_a, prog;
	struct pv4 tap;
	struct zc z;

	ASSERT_EQ(0, both_mtu(port_mtu(4000)));
	prog = xdp_const(XDP_PASS_TO_KERNEL, BPF_F_XDP_HAS_FRAGS);
	ASSERT_LE(0, prog);
	fd_a = plain_listener(_metadata, if_a);
	for (k = 0; k < 4; k++) {
		cfg.meta = k & 1;
		cfg.to_stack = k & 2;
		ASSERT_EQ(0, port_open(&z, &cfg));
		if (!cfg.to_stack)
			ASSERT_EQ(0, xdp_attach_native(if_b, prog));
		ASSERT_EQ(0, wait_for_carrier(if_a));
		ASSERT_EQ(0, wait_for_carrier(if_b));
		ASSERT_EQ(0, pv4_open(&tap, &copy_cfg));
		ASSERT_EQ(0, pv4_setint(tap.fd, PACKET_IGNORE_OUTGOING, 1));
		csum_bad = ethtool_stat(if_b, "port.rx_csum_bad");
		for (i = 0; i < 16; i++) {
			unsigned int payload = i < 8 ? 400 : port_mtu(4000) - 40;
			bool right = i % 4 != 3;

			fill_ip4(pkt, IPPROTO_UDP, payload, i);
			put16(pkt + L4, i % 2);		/* two flows */
			len = L4 + header_len(IPPROTO_UDP) + payload;
			if (right)
				put16(pkt + L4 + check_at(IPPROTO_UDP),
				      ~sum_up(pkt + L4, len - L4, 0));
			ASSERT_EQ((int)len, send(fd_a, pkt, len, 0));
			ASSERT_EQ((int)len, pv4_recv(&tap, buf, sizeof(buf),
						     WAIT_MS));
			EXPECT_EQ(0, memcmp(pkt, buf, len));
			/* GRO computes what the card does not vouch for. */
			if (valid || !right)
				EXPECT_EQ(right ? TP4_META_RX_CSUM_VALID : 0U,
					  tap.got.flags &
					  TP4_META_RX_CSUM_VALID);
			EXPECT_EQ(hash ? TP4_META_RX_HASH : 0U,
				  tap.got.flags & TP4_META_RX_HASH);
			if (hash && i)
				EXPECT_NE(last, tap.got.hash);
			last = tap.got.hash;
			if (cfg.to_stack)
				EXPECT_EQ((int)len, zc_recv(&z, buf, sizeof(buf),
							    WAIT_MS));
		}
		/* Each is counted once, also if two readers ask the card. */
		if (csum_bad >= 0)
			EXPECT_EQ(csum_bad + 16 / 4,
				  ethtool_stat(if_b, "port.rx_csum_bad"));
		EXPECT_TRUE(zc_books_balance(&z, NULL));
		pv4_close(&tap);
		if (!cfg.to_stack)
			EXPECT_EQ(0, xdp_attach_native(if_b, -1));
		zc_close(&z);
	}
	close(fd_a);
	close(prog);
}

/* A virtio_net device has the offloads that the machine offers: none, or sums
 * anywhere in a packet and segments of TCP, and hashes of what is received. By
 * AF_XDP's interface, each device has these sums and segments.
 */
TEST_F_TIMEOUT(port, offloads, 120)
{
	static const int protos[] = { IPPROTO_UDP, IPPROTO_TCP };
	static char pkt[BUF_SIZE], buf[BUF_SIZE];
	struct zc_cfg cfg = {
		.ifname = if_a, .n = 1, .headroom = HEADROOM, .meta = true,
	};
	unsigned int i, len, payload, last = 0;
	bool csum, tso, uso, hash, af_xdp, valid = getenv("TPACKET4_PORT_VALID");
	struct tpacket4_meta m;
	struct zc a, b;
	__u64 before;

	ASSERT_EQ(0, both_mtu(port_mtu(4000)));
	ASSERT_EQ(0, port_open(&a, &cfg));
	af_xdp = by_af_xdp();
	if (!af_xdp && !is_virtio()) {
		zc_close(&a);
		SKIP(return, "port.metadata is for i40e");
	}
	csum = af_xdp || offers("tx-checksum-ip-generic");
	tso = af_xdp || offers("tx-tcp-segmentation");
	uso = af_xdp || offers("tx-udp-segmentation");
	hash = is_virtio() && !run("ethtool -K %s rxhash on", if_b);
	TH_LOG("checksums: %d, TSO: %d, USO: %d, hashes: %d", csum, tso, uso,
	       hash);
	cfg.ifname = if_b;
	ASSERT_EQ(0, port_open(&b, &cfg));

	/* nobody has looked at a checksum that nobody has finished */
	for (i = 0; i < 8; i++) {
		payload = 100 + 300 * (i / 2);
		fill_ip4(pkt, protos[i % 2], payload, i);
		put16(pkt + L4, i % 2);		/* two flows */
		len = L4 + header_len(protos[i % 2]) + payload;
		before = real_ns();
		ASSERT_EQ(0, send_meta(&a, NULL, pkt, len));
		ASSERT_EQ((int)len, zc_recv(&b, buf, sizeof(buf), WAIT_MS));
		EXPECT_EQ(0, memcmp(pkt, buf, len));
		EXPECT_EQ(hash ? TP4_META_RX_HASH : 0U, b.s.got.flags);
		if (hash && i > 1)
			EXPECT_EQ(i % 2, last != b.s.got.hash);
		if (i % 2 == 0)
			last = b.s.got.hash;
		EXPECT_EQ(len, b.s.got.wire_len);
		EXPECT_EQ(htons(ETH_P_IP), b.s.got.protocol);
		EXPECT_LE(before, b.s.got.tstamp);
		EXPECT_GE(real_ns(), b.s.got.tstamp);
	}

	/* right ones */
	for (i = 0; i < 4; i++) {
		fill_ip4(pkt, protos[i % 2], 500, i);
		len = L4 + header_len(protos[i % 2]) + 500;
		put16(pkt + L4 + check_at(protos[i % 2]),
		      ~sum_up(pkt + L4, len - L4, 0));
		ASSERT_EQ(0, send_meta(&a, NULL, pkt, len));
		ASSERT_EQ((int)len, zc_recv(&b, buf, sizeof(buf), WAIT_MS));
		EXPECT_EQ(0, memcmp(pkt, buf, len));
		EXPECT_EQ(valid ? TP4_META_RX_CSUM_VALID : 0U,
			  b.s.got.flags & TP4_META_RX_CSUM_VALID);
	}

	/* one that it finishes, of a packet in one frame and in several */
	for (i = 0; i < 8; i++) {
		payload = i < 6 ? 100 + 600 * (i / 2) : port_mtu(4000) - 40;
		fill_ip4(pkt, protos[i % 2], payload, i);
		len = L4 + header_len(protos[i % 2]) + payload;
		m = csum_meta(protos[i % 2]);
		ASSERT_EQ(csum ? 0 : EOPNOTSUPP, send_meta(&a, &m, pkt, len));
		if (!csum)
			continue;
		ASSERT_EQ((int)len, zc_recv(&b, buf, sizeof(buf), WAIT_MS));
		EXPECT_TRUE(ip4_ok(buf, len, protos[i % 2], payload, 0, i));
		EXPECT_EQ(0U, b.s.got.flags & TP4_META_CSUM);
	}

	/* what no device does, or not as the packet is */
	fill_ip4(pkt, IPPROTO_TCP, 1000, 1);
	m = csum_meta(IPPROTO_TCP);
	m.flags = TP4_META_TX_LAUNCH;
	EXPECT_EQ(EOPNOTSUPP, send_meta(&a, &m, pkt, TX_LEN));
	m = gso_meta(IPPROTO_TCP, VIRTIO_NET_HDR_GSO_TCPV4, 500);
	m.flags = TP4_META_GSO;
	EXPECT_EQ(EOPNOTSUPP, send_meta(&a, &m, pkt, TX_LEN));
	m = gso_meta(IPPROTO_UDP, VIRTIO_NET_HDR_GSO_UDP, 500);
	EXPECT_EQ(EOPNOTSUPP, send_meta(&a, &m, pkt, TX_LEN));
	m = gso_meta(IPPROTO_UDP, VIRTIO_NET_HDR_GSO_UDP_L4, 500);
	if (!uso)
		EXPECT_EQ(EOPNOTSUPP, send_meta(&a, &m, pkt, TX_LEN));
	m = gso_meta(IPPROTO_TCP, VIRTIO_NET_HDR_GSO_TCPV4, 500);
	if (!tso)
		EXPECT_EQ(EOPNOTSUPP, send_meta(&a, &m, pkt, TX_LEN));
	if (csum)
		expect_sums(_metadata, &a, &b);
	if (tso)
		expect_segments(_metadata, &a, &b);
	EXPECT_EQ(-EAGAIN, zc_recv(&b, buf, sizeof(buf), QUIET_MS));
	EXPECT_TRUE(zc_books_balance(&a, NULL));
	EXPECT_TRUE(zc_books_balance(&b, NULL));
	zc_close(&b);
	zc_close(&a);
	run("ethtool -K %s rxhash off", if_b);
}

/* A device that goes away gives everything back. The last test: what the load
 * sends meanwhile may be on the wire for long.
 */
TEST_F_TIMEOUT(port, unplug_under_load, 300)
{
	const char *cmd = getenv("TPACKET4_PORT_REPLUG");
	struct pair p = { 0 };

	if (!cmd)
		SKIP(return, "TPACKET4_PORT_REPLUG is not set");
	pair_open(_metadata, &p);
	start_load(_metadata, &p);
	ASSERT_TRUE(flows(&p));
	ASSERT_EQ(0, run("%s", cmd));
	EXPECT_LE(0, zc_all_back(&p.b, ENETDOWN, WAIT_MS));
	EXPECT_TRUE(zc_books_closed(&p.b));
	EXPECT_EQ(0, zc_get(&p.b));
	stop_load(_metadata, &p);
	pair_close(&p);
}

TEST_HARNESS_MAIN
