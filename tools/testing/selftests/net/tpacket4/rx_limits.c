// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4: a socket receives nothing before bind(), and the packets of one
 * or of all devices afterwards. A program cannot cause unlimited work in the
 * kernel.
 */
#include "common.h"

FIXTURE(rx) {
	struct pv4 s;			/* not bound */
	int out_a, out_c;		/* send on if_a, and on v4c */
};

FIXTURE_SETUP(rx)
{
	struct pv4_cfg cfg = { .rx_nr = pv4_min_descs() };

	pv4_net_setup(_metadata);
	ASSERT_EQ(0, add_pair("v4c", "v4d", MTU));
	ASSERT_EQ(0, pv4_open(&self->s, &cfg));
	ASSERT_EQ(0, pv4_setint(self->s.fd, PACKET_IGNORE_OUTGOING, 1));
	self->out_a = plain_socket(_metadata, if_a, 0);
	self->out_c = plain_socket(_metadata, "v4c", 0);
}

FIXTURE_TEARDOWN(rx)
{
	pv4_close(&self->s);
	close(self->out_a);
	close(self->out_c);
}

static int send_plain(int fd, uint32_t seq)
{
	char pkt[100];

	fill_packet(pkt, sizeof(pkt), seq);
	return send(fd, pkt, sizeof(pkt), 0);
}

/* ---- from all devices ---- */

TEST_F_TIMEOUT(rx, any_device, 120)
{
	int i;

	ASSERT_EQ(100, send_plain(self->out_a, 1));
	EXPECT_EQ(-1, recv_one(&self->s, QUIET_MS));
	ASSERT_EQ(0, pv4_bind(self->s.fd, "", ETH_P_ALL));
	for (i = 0; i < 600; i++) {
		ASSERT_EQ(100, send_plain(i & 1 ? self->out_a : self->out_c,
					  i));
		ASSERT_EQ(i, recv_one(&self->s, WAIT_MS));
	}
	/* also one that is added later */
	ASSERT_EQ(0, add_pair("v4e", "v4f", MTU));
	i = plain_socket(_metadata, "v4e", 0);
	ASSERT_EQ(100, send_plain(i, 7));
	EXPECT_EQ(7, recv_one(&self->s, WAIT_MS));
	close(i);

	/* one device only, then all again */
	ASSERT_EQ(0, pv4_bind(self->s.fd, if_b, ETH_P_ALL));
	ASSERT_EQ(100, send_plain(self->out_c, 2));
	ASSERT_EQ(100, send_plain(self->out_a, 3));
	EXPECT_EQ(3, recv_one(&self->s, WAIT_MS));
	EXPECT_EQ(-1, recv_one(&self->s, QUIET_MS));
	ASSERT_EQ(0, pv4_bind(self->s.fd, "", ETH_P_ALL));
	ASSERT_EQ(100, send_plain(self->out_c, 4));
	EXPECT_EQ(4, recv_one(&self->s, WAIT_MS));
}

/* With a protocol in socket(), V1 to V3 receive at once. V4 does not. */
TEST_F_TIMEOUT(rx, nothing_before_bind, 120)
{
	unsigned int i, nr = pv4_min_descs();
	struct pv4 s = { .frames = nr, .frame_size = 2048 };

	s.fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
	ASSERT_LE(0, s.fd);
	ASSERT_EQ(0, pv4_setint(s.fd, PACKET_VERSION, TPACKET_V4));
	s.area_len = nr * 2048;
	s.area = pv4_new_area(s.area_len);
	ASSERT_TRUE(s.area != MAP_FAILED);
	ASSERT_EQ(0, pv4_memreg(s.fd, s.area, s.area_len, 2048, 0));
	ASSERT_EQ(0, pv4_set_ring(s.fd, PACKET_RX_RING, s.fd, nr));
	ASSERT_EQ(0, pv4_map_rings(&s, nr, 0));
	for (i = 0; i < nr; i++)
		pv4_rx_post(&s, i);
	ASSERT_EQ(100, send_plain(self->out_a, 1));
	EXPECT_EQ(-1, recv_one(&s, QUIET_MS));
	ASSERT_EQ(0, pv4_setint(s.fd, PACKET_IGNORE_OUTGOING, 1));
	ASSERT_EQ(0, pv4_bind(s.fd, "", ETH_P_ALL));
	ASSERT_EQ(100, send_plain(self->out_a, 2));
	EXPECT_EQ(2, recv_one(&s, WAIT_MS));
	pv4_close(&s);
}

/* ---- invalid descriptors ---- */

static unsigned int count_back(struct pv4 *s)
{
	struct tpacket4_desc d;
	unsigned int n = 0;

	for (; pv4_take(&s->rx, &d); n++)
		s->errors[d.error]++;
	return n;
}

/* A ring full of invalid descriptors: the kernel only checks a few of them per
 * packet. With more packets, all are returned.
 */
TEST_F_TIMEOUT(rx, invalid_descs_per_packet, 120)
{
	unsigned int nr = 1 << 15, limit = 64, i, back = 0;
	struct pv4_cfg cfg = { .ifname = if_b, .rx_nr = nr, .frames = 256 };
	struct tpacket4_desc bad = { .idx = 1 << 20 };
	struct tpacket_stats_v4 st;
	struct pv4 s;

	ASSERT_EQ(0, pv4_open(&s, &cfg));
	/* as many valid ones as there are frames are posted before them */
	for (i = s.rx.avail; i < nr; i++)
		pv4_post(&s.rx, &bad, 1);
	for (i = 0; i < 256; i++) {
		ASSERT_EQ(100, send_plain(self->out_a, i));
		ASSERT_TRUE(pv4_take_wait(&s, &s.rx, &bad, WAIT_MS));
		ASSERT_EQ(0, bad.error);
	}
	ASSERT_EQ(0, pv4_stats(s.fd, &st));
	for (i = 0; back < nr - 256 && i < nr; i++) {
		ASSERT_EQ(100, send_plain(self->out_a, i));
		back += count_back(&s);
	}
	TH_LOG("%u packets for %u invalid descriptors", i, back);
	/* more if packets arrive late */
	EXPECT_LE((nr - 256) / limit, i);
	EXPECT_EQ(nr - 256, back);
	EXPECT_EQ(nr - 256, s.errors[EINVAL]);
	ASSERT_EQ(0, pv4_stats_of(s.fd, i, &st));
	EXPECT_EQ(nr - 256, st.rx_invalid_descs);
	EXPECT_EQ(i, st.tp_drops);

	/* the socket works as before */
	for (i = 0; i < 256; i++)
		pv4_rx_post(&s, i);
	for (i = 0; i < 256; i++) {
		ASSERT_EQ(100, send_plain(self->out_a, i));
		ASSERT_EQ((int)i, recv_one(&s, WAIT_MS));
	}
	pv4_close(&s);
}

TEST_HARNESS_MAIN
