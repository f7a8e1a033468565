// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4, zero-copy mode: bursts of long packets between sockets, stack
 * and XDP. None is dropped while frames are posted. No frame is lost or
 * duplicated if the mode is entered when copy mode has taken frames.
 */
#include "zc.h"
#include "xdp.h"

#include <netinet/in.h>
#include <netinet/udp.h>

#define BIG_MTU		65535

FIXTURE(burst) {
	struct zc a, b;			/* on if_a and if_b */
	int plain_a, plain_b;
	char *buf, *pkt;
};

FIXTURE_SETUP(burst)
{
	pv4_net_setup(_metadata);
	ASSERT_EQ(0, set_mtu(if_a, BIG_MTU));
	ASSERT_EQ(0, set_mtu(if_b, BIG_MTU));
	self->a.s.fd = -1;
	self->b.s.fd = -1;
	self->plain_a = plain_listener(_metadata, if_a);
	self->plain_b = plain_listener(_metadata, if_b);
	self->buf = malloc(BUF_SIZE);
	self->pkt = malloc(BUF_SIZE);
	ASSERT_TRUE(self->buf && self->pkt);
}

FIXTURE_TEARDOWN(burst)
{
	zc_close(&self->a);
	zc_close(&self->b);
	close(self->plain_a);
	close(self->plain_b);
	free(self->buf);
	free(self->pkt);
}

static int open_zc(struct zc *z, const char *ifname, unsigned int nr,
		   unsigned int frame_size)
{
	struct zc_cfg cfg = {
		.ifname = ifname, .n = 1, .rx_nr = nr, .tx_nr = nr,
		.frame_size = frame_size,
	};

	return zc_open(z, &cfg);
}

/* A sender in copy mode: many packets at a time arrive from the stack. */
static int open_copy(struct zc *z, const char *ifname)
{
	struct zc_cfg cfg = { .ifname = ifname, .frame_size = 4096 };

	return zc_open(z, &cfg);
}

/* Posts a packet without a kick. */
static int put_long(struct _test_data_burst *self, unsigned int len,
		    uint32_t seq)
{
	fill_packet(self->pkt, len, seq);
	zc_reap(&self->a);
	return zc_put(&self->a, self->pkt, len, self->a.s.frame_size, 0);
}

/* A burst of @n packets of @len bytes from if_a's ring in one kick is received
 * completely on if_b, by the stack or on the ring.
 */
static void expect_burst(struct __test_metadata *_metadata,
			 struct _test_data_burst *self, unsigned int n,
			 unsigned int len, bool ring, uint32_t seq)
{
	unsigned int i;
	int got;

	for (i = 0; i < n; i++)
		ASSERT_EQ(0, put_long(self, len, seq + i));
	ASSERT_EQ(0, zc_kick(&self->a));
	for (i = 0; i < n; i++) {
		got = ring ? zc_recv(&self->b, self->buf, BUF_SIZE, WAIT_MS) :
		      plain_recv(self->plain_b, self->buf, BUF_SIZE, WAIT_MS);
		ASSERT_TRUE(packet_ok(self->buf, got, len, seq + i)) {
			TH_LOG("packet %u of %u, %u bytes: %d, number %u", i,
			       n, len, got, packet_seq(self->buf) - seq);
		}
	}
	ASSERT_TRUE(zc_reap_all(&self->a, WAIT_MS));
	EXPECT_TRUE(zc_books_balance(&self->a, NULL));
}

static const unsigned int lens[] = {
	9014, 12014, 16014, 20000, 33000, 34800, 50000, 65000, BIG_MTU,
};

/* As many as the sender's ring has room for */
static unsigned int burst(struct zc *a, unsigned int len)
{
	return a->s.tx.size / ((len + a->s.frame_size - 1) / a->s.frame_size);
}

TEST_F_TIMEOUT(burst, zc_to_stack, 300)
{
	unsigned int i, k;

	ASSERT_EQ(0, open_zc(&self->a, if_a, 0, 4096));
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		for (k = 1; k < burst(&self->a, lens[i]); k += 1 + k)
			expect_burst(_metadata, self, k, lens[i], false,
				     1000 * i + 100 * k);
		expect_burst(_metadata, self, burst(&self->a, lens[i]), lens[i],
			     false, 1000 * i);
	}
	EXPECT_EQ(0, ethtool_stat(if_b, "rx_queue_0_drops"));
}

TEST_F_TIMEOUT(burst, zc_to_zc, 300)
{
	unsigned int i, n;

	/* the same MTU at both ends, with room for XDP */
	ASSERT_EQ(0, open_zc(&self->a, if_a, 0, 4096));
	ASSERT_EQ(0, open_zc(&self->b, if_b, 1024, 2048));
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		n = burst(&self->a, lens[i]);
		expect_burst(_metadata, self, n, lens[i], true, 1000 * i);
		expect_burst(_metadata, self, n, lens[i], true, 1000 * i);
	}
	EXPECT_EQ(0, ethtool_stat(if_b, "rx_queue_0_drops"));
	EXPECT_TRUE(zc_books_balance(&self->b, NULL));
}

/* XDP passes packets of long and short frames to the stack. */
static void pass_to_kernel(struct __test_metadata *_metadata,
			   struct _test_data_burst *self,
			   unsigned int frame_size)
{
	unsigned int i;
	int prog;

	ASSERT_EQ(0, open_zc(&self->b, if_b, 1024, frame_size));
	prog = xdp_const(XDP_PASS_TO_KERNEL, BPF_F_XDP_HAS_FRAGS);
	ASSERT_LE(0, prog);
	ASSERT_EQ(0, xdp_attach_native(if_b, prog));
	for (i = 0; i < 5; i++) {
		expect_burst(_metadata, self, burst(&self->a, 9000), 9000,
			     false, 1000 * i);
		expect_burst(_metadata, self, burst(&self->a, 4000), 4000,
			     false, 1000 * i);
	}
	EXPECT_EQ(0, ethtool_stat(if_b, "rx_queue_0_drops"));
	EXPECT_TRUE(zc_books_balance(&self->b, NULL));
	EXPECT_EQ(self->b.s.rx.size,
		  self->b.s.rx.avail - self->b.s.rx.used);
}

TEST_F_TIMEOUT(burst, zc_pass_to_kernel, 300)
{
	ASSERT_EQ(0, set_mtu(if_a, MTU));
	ASSERT_EQ(0, set_mtu(if_b, MTU));
	ASSERT_EQ(0, open_zc(&self->a, if_a, 0, 4096));
	pass_to_kernel(_metadata, self, 4096);
}

TEST_F_TIMEOUT(burst, stack_pass_to_kernel, 300)
{
	ASSERT_EQ(0, set_mtu(if_a, MTU));
	ASSERT_EQ(0, set_mtu(if_b, MTU));
	ASSERT_EQ(0, open_copy(&self->a, if_a));
	pass_to_kernel(_metadata, self, 4096);
}

/* ---- from the stack ---- */

/* A packet with more frames than most, but fewer than are posted. */
TEST_F_TIMEOUT(burst, stack_to_zc, 300)
{
	unsigned int i, n;

	ASSERT_EQ(0, open_copy(&self->a, if_a));
	ASSERT_EQ(0, open_zc(&self->b, if_b, 1024, 2048));
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		n = burst(&self->a, lens[i]);
		expect_burst(_metadata, self, 1, lens[i], true, 1000 * i);
		expect_burst(_metadata, self, n, lens[i], true, 1000 * i);
		expect_burst(_metadata, self, n, lens[i], true, 1000 * i);
	}
	EXPECT_EQ(0, ethtool_stat(if_b, "rx_queue_0_drops"));
	EXPECT_TRUE(zc_books_balance(&self->b, NULL));
}

/* An address of if_a, and a permanent neighbour behind if_b. */
static int add_route(int mtu)
{
	char cmd[256];

	snprintf(cmd, sizeof(cmd),
		 "link set v4a mtu %d\nlink set v4b mtu %d\n"
		 "addr add 10.9.0.1/24 dev v4a\n"
		 "neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev v4a\n",
		 mtu, mtu);
	return net_batch("ip", cmd);
}

/* 64 KiB in one send(): one packet for the stack, many for the ring. */
TEST_F_TIMEOUT(burst, gso_to_zc, 300)
{
	static const int mtus[] = { 1500, 9000 };
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(9),
		.sin_addr.s_addr = htonl(0x0a090002),
	};
	int fd = socket(AF_INET, SOCK_DGRAM, 0), i, k, size, len, left, off;
	unsigned int bufsize = 8 << 20;

	ASSERT_LE(0, fd);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bufsize, sizeof(bufsize));
	ASSERT_EQ(0, open_zc(&self->b, if_b, 0, 2048));
	for (i = 0; i < 2; i++) {
		if (i)
			net_batch("ip", "addr flush dev v4a\n");
		ASSERT_EQ(0, add_route(mtus[i]));
		size = mtus[i] - 28;
		ASSERT_EQ(0, setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &size,
					sizeof(size)));
		for (k = 0; k < 40; k++) {
			fill_packet(self->pkt, 65000, k);
			ASSERT_EQ(65000, sendto(fd, self->pkt, 65000, 0,
						(void *)&to, sizeof(to)));
			for (off = 0; off < 65000; off += left) {
				left = 65000 - off < size ? 65000 - off : size;
				len = zc_recv(&self->b, self->buf, BUF_SIZE,
					      WAIT_MS);
				ASSERT_EQ(left + 42, len) {
					TH_LOG("MTU %d, send %d, byte %d",
					       mtus[i], k, off);
				}
				ASSERT_EQ(0, memcmp(self->buf + 42,
						    self->pkt + off, left));
			}
		}
	}
	EXPECT_TRUE(zc_books_balance(&self->b, NULL));
	close(fd);
}

/* ---- frames that copy mode has taken ---- */

FIXTURE(mode_change) {
	struct zc b;
	int plain_a;
	char *buf;
};

FIXTURE_VARIANT(mode_change) {
	unsigned int posted;		/* frames, too few for the packet */
};

FIXTURE_VARIANT_ADD(mode_change, one) { .posted = 1 };

FIXTURE_VARIANT_ADD(mode_change, some) { .posted = 20 };

FIXTURE_VARIANT_ADD(mode_change, most) { .posted = 31 };

#define LEAST_ROOM	320		/* that zero-copy mode accepts */

/* Length of a packet that needs one frame more in copy mode: only the first one
 * has headroom
 */
#define NEEDS_MORE(frames)	(LEAST_ROOM + (frames) * 2048)

FIXTURE_SETUP(mode_change)
{
	struct zc_cfg cfg = {
		.ifname = if_b, .rx_empty = true, .headroom = 2048 - LEAST_ROOM,
	};
	unsigned int i;

	pv4_net_setup(_metadata);
	ASSERT_EQ(0, set_mtu(if_a, BIG_MTU));
	ASSERT_EQ(0, set_mtu(if_b, BIG_MTU));
	ASSERT_EQ(0, zc_open(&self->b, &cfg));
	self->plain_a = plain_socket(_metadata, if_a, 0);
	self->buf = malloc(BUF_SIZE);
	ASSERT_TRUE(!!self->buf);
	for (i = 0; i < variant->posted; i++)
		zc_rx_post(&self->b, i);
}

FIXTURE_TEARDOWN(mode_change)
{
	zc_close(&self->b);
	close(self->plain_a);
	free(self->buf);
}

static int send_len(struct _test_data_mode_change *self, unsigned int len,
		    uint32_t seq)
{
	fill_packet(self->buf, len, seq);
	return send(self->plain_a, self->buf, len, 0);
}

/*
 * One packet needs more frames than are posted and is dropped. The kernel still
 * owns the frames that it has taken for this packet when zero-copy mode is
 * entered. Each of them must be returned once, with a packet or when the mode
 * is left.
 */
TEST_F_TIMEOUT(mode_change, enter, 120)
{
	unsigned int i, n, posted = variant->posted;
	struct zc *b = &self->b;
	struct tpacket4_desc d;
	uint64_t end;

	n = NEEDS_MORE(posted);
	ASSERT_EQ((int)n, send_len(self, n, 1));
	ASSERT_FALSE(zc_take(b, &b->s.rx, &d));
	ASSERT_EQ(0, zc_set(b, 1));
	/* post all others behind them */
	for (i = posted; i < b->s.rx.size; i++)
		zc_rx_post(b, i);
	for (i = 0; i < 3 * b->s.rx.size; i++) {
		ASSERT_EQ(60, send_len(self, 60, i));
		ASSERT_TRUE(zc_take_wait(b, &b->s.rx, &d, WAIT_MS)) {
			TH_LOG("packet %u", i);
		}
		ASSERT_EQ(0, d.error);
		ASSERT_EQ(0U, b->strays) {
			TH_LOG("packet %u is in frame %llu", i, d.idx);
		}
		ASSERT_TRUE(packet_ok(pv4_frame(&b->s, d.idx) + d.offset,
				      d.len, 60, i));
		/* keep a third of them for a while */
		if (i % 3 == 0 && i < b->s.rx.size)
			b->s.spare[b->s.nr_spare++] = d.idx;
		else
			zc_rx_post(b, d.idx);
	}
	EXPECT_TRUE(zc_books_balance(b, NULL));
	ASSERT_EQ(0, zc_set(b, 0));
	end = now_ms() + WAIT_MS;
	while (b->s.rx.used != b->s.rx.avail && now_ms() < end)
		if (zc_take(b, &b->s.rx, &d))
			EXPECT_EQ(ECANCELED, d.error);
	EXPECT_TRUE(zc_books_closed(b)) {
		TH_LOG("%u strays, %u held, %u away", b->strays, zc_held(b),
		       zc_away(b));
	}
}

/* Leave the mode immediately. */
TEST_F_TIMEOUT(mode_change, leave, 120)
{
	unsigned int i, n = NEEDS_MORE(variant->posted);
	struct zc *b = &self->b;

	for (i = 0; i < 3; i++) {
		ASSERT_EQ((int)n, send_len(self, n, 1));
		ASSERT_EQ(0, zc_set(b, 1));
		ASSERT_EQ(0, zc_set(b, 0));
		ASSERT_EQ((int)variant->posted, zc_all_back(b, ECANCELED,
							    WAIT_MS));
		ASSERT_TRUE(zc_books_closed(b));
		while (b->s.rx.avail - b->s.rx.used < variant->posted)
			zc_rx_post(b, b->s.spare[--b->s.nr_spare]);
	}
}

TEST_HARNESS_MAIN
