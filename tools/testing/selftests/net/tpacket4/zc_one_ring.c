// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4, zero-copy mode: a socket with one ring. The other direction
 * stays with the stack. Also the features of a device.
 */
#include "netdev.h"
#include "zc.h"

FIXTURE(one_ring) {
	struct pv4 s;			/* on if_a, in zero-copy mode */
	int plain_a, plain_b;		/* receive packets of the stack */
	char *buf;
};

FIXTURE_VARIANT(one_ring) {
	bool rx;			/* only an Rx ring, otherwise only Tx */
	bool late;			/* the option comes after bind() */
};

FIXTURE_VARIANT_ADD(one_ring, rx_only) { .rx = true };

FIXTURE_VARIANT_ADD(one_ring, rx_only_bound) { .rx = true, .late = true };

FIXTURE_VARIANT_ADD(one_ring, tx_only) { .rx = false };

FIXTURE_VARIANT_ADD(one_ring, tx_only_bound) { .late = true };

static int get_zerocopy(int fd)
{
	socklen_t len = sizeof(int);
	int n = -1;

	if (getsockopt(fd, SOL_PACKET, PACKET_ZEROCOPY, &n, &len))
		return -errno;
	return n;
}

FIXTURE_SETUP(one_ring)
{
	unsigned int nr = pv4_min_descs();
	struct pv4_cfg cfg = { .rx_nr = nr };

	if (!variant->rx)
		cfg = (struct pv4_cfg){ .tx_nr = nr };
	pv4_net_setup(_metadata);
	self->plain_a = plain_listener(_metadata, if_a);
	self->plain_b = plain_listener(_metadata, if_b);
	self->buf = malloc(BUF_SIZE);
	ASSERT_TRUE(!!self->buf);
	ASSERT_EQ(0, pv4_open(&self->s, &cfg));
	if (!variant->late)
		ASSERT_EQ(0, pv4_setint(self->s.fd, PACKET_ZEROCOPY, 1));
	ASSERT_EQ(0, pv4_bind(self->s.fd, if_a, ETH_P_ALL)) {
		TH_LOG("with one ring");
	}
	if (variant->late) {
		ASSERT_EQ(0, pv4_setint(self->s.fd, PACKET_ZEROCOPY, 1)) {
			TH_LOG("with one ring");
		}
	}
	ASSERT_EQ(1, get_zerocopy(self->s.fd));
}

FIXTURE_TEARDOWN(one_ring)
{
	pv4_close(&self->s);
	close(self->plain_a);
	close(self->plain_b);
	free(self->buf);
}

/* The XDP headroom moves the data, compared to copy mode. */
static int recv_zc(struct pv4 *s, char *buf, int ms)
{
	struct tpacket4_desc d;

	if (!pv4_take_wait(s, &s->rx, &d, ms))
		return -EAGAIN;
	if (d.error || d.flags || d.idx >= s->frames || d.offset < 256)
		return -EBADMSG;
	memcpy(buf, pv4_frame(s, d.idx) + d.offset, d.len);
	pv4_rx_post(s, d.idx);
	return d.len;
}

static bool send_to_a(struct _test_data_one_ring *self, uint32_t seq)
{
	fill_packet(self->buf, 100, seq);
	return send(self->plain_b, self->buf, 100, 0) == 100;
}

static bool stack_has(int fd, char *buf, uint32_t seq)
{
	return packet_ok(buf, plain_recv(fd, buf, BUF_SIZE, WAIT_MS), 100, seq);
}

/* In each direction, several wraps of the ring: by the ring or by the stack */
static void expect_flow(struct __test_metadata *_metadata,
			struct _test_data_one_ring *self, bool rx, uint32_t seq)
{
	struct pv4 *s = &self->s;
	uint32_t end = seq + 600;

	for (; seq < end; seq++) {
		ASSERT_TRUE(send_to_a(self, seq));
		if (rx) {
			int len = recv_zc(s, self->buf, WAIT_MS);

			ASSERT_TRUE(packet_ok(self->buf, len, 100, seq));
		} else {
			ASSERT_TRUE(stack_has(self->plain_a, self->buf, seq));
		}
		fill_packet(self->buf, 100, seq);
		if (rx) {
			ASSERT_EQ(100, send(self->plain_a, self->buf, 100, 0));
		} else {
			pv4_reap(s);
			ASSERT_EQ(0, pv4_put(s, self->buf, 100, 2048, 0));
			ASSERT_EQ(0, pv4_kick(s, MSG_DONTWAIT));
		}
		ASSERT_TRUE(stack_has(self->plain_b, self->buf, seq));
	}
	EXPECT_TRUE(rx || pv4_reap_all(s, WAIT_MS));
	/* packets on the ring do not go to the stack */
	EXPECT_EQ(-EAGAIN, plain_recv(self->plain_a, self->buf, BUF_SIZE, 0));
}

TEST_F_TIMEOUT(one_ring, other_direction, 120)
{
	expect_flow(_metadata, self, variant->rx, 1);
}

TEST_F_TIMEOUT(one_ring, poll, 120)
{
	int fd = self->s.fd;
	unsigned int i;

	if (variant->rx) {
		EXPECT_EQ(0, poll_for(fd, POLLIN, 0));
		ASSERT_TRUE(send_to_a(self, 1));
		EXPECT_EQ(POLLIN, poll_for(fd, POLLIN, WAIT_MS));
		EXPECT_EQ(100, recv_zc(&self->s, self->buf, 0));
		return;
	}
	for (i = 0; i < self->s.tx.size; i++) {
		fill_packet(self->buf, 100, i);
		ASSERT_EQ(0, pv4_put(&self->s, self->buf, 100, 2048, 0));
	}
	/* poll() kicks */
	EXPECT_EQ(POLLOUT, poll_for(fd, POLLOUT, WAIT_MS));
	for (i = 0; i < self->s.tx.size; i++)
		ASSERT_TRUE(stack_has(self->plain_b, self->buf, i));
	EXPECT_EQ(0, pv4_kick(&self->s, 0));
	EXPECT_EQ(self->s.tx.size, pv4_reap(&self->s));
}

/* Down and up, off and on, and an XDP program: each direction works as before.
 */
TEST_F_TIMEOUT(one_ring, on_and_off, 120)
{
	int fd = self->s.fd;
	struct tpacket4_desc d;
	unsigned int i, n = 0;

	ASSERT_EQ(0, set_up(if_a, false));
	ASSERT_EQ(0, set_up(if_a, true));
	ASSERT_EQ(0, wait_for_carrier(if_a));
	ASSERT_EQ(0, wait_for_carrier(if_b));
	/* each has got the error of the device going down */
	socket_error(fd);
	socket_error(self->plain_a);
	expect_flow(_metadata, self, variant->rx, 1);
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, pv4_setint(fd, PACKET_ZEROCOPY, 0));
		while (variant->rx && pv4_take(&self->s.rx, &d)) {
			EXPECT_EQ(ECANCELED, d.error);
			EXPECT_EQ(0U, d.len);
			n++;
		}
		/* without zero-copy mode it is a tap, and without a ring an
		 * ordinary socket
		 */
		if (variant->rx)
			for (; n; n--)
				pv4_rx_post(&self->s, n - 1);
		ASSERT_EQ(0, pv4_setint(fd, PACKET_ZEROCOPY, 1));
	}
	expect_flow(_metadata, self, variant->rx, 1000);
}

/* Without a ring, the mode cannot be entered. */
TEST(no_ring)
{
	int fd;

	pv4_net_setup(_metadata);
	fd = pv4_socket();
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, pv4_bind(fd, if_a, ETH_P_ALL));
	EXPECT_EQ(-EINVAL, pv4_setint(fd, PACKET_ZEROCOPY, 1));
	EXPECT_EQ(0, get_zerocopy(fd));
	close(fd);
}

/* ---- features of the device ---- */

#ifdef NETDEV_XDP_ACT_TP4_ZEROCOPY
#define ACT_TP4_ZEROCOPY	NETDEV_XDP_ACT_TP4_ZEROCOPY
#else
#define ACT_TP4_ZEROCOPY	128
#endif
#ifdef NETDEV_XDP_ACT_PASS_TO_KERNEL
#define ACT_PASS_TO_KERNEL	NETDEV_XDP_ACT_PASS_TO_KERNEL
#else
#define ACT_PASS_TO_KERNEL	256
#endif

TEST(xdp_features_of_devices)
{
	__u64 veth, dummy;

	pv4_net_setup(_metadata);
	ASSERT_EQ(0, net_batch("ip", "link add v4dum type dummy\n"));
	veth = xdp_features(if_a);
	dummy = xdp_features("v4dum");
	ASSERT_NE(~0ULL, veth);
	ASSERT_NE(~0ULL, dummy);
	EXPECT_TRUE(!!(veth & ACT_TP4_ZEROCOPY));
	EXPECT_TRUE(!!(veth & ACT_PASS_TO_KERNEL));
	EXPECT_FALSE(!!(dummy & ACT_TP4_ZEROCOPY));
	TH_LOG("veth 0x%llx, dummy 0x%llx", veth, dummy);
}

TEST_HARNESS_MAIN
