// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4: Rx rings with TP4_RING_PACKED */
#include <linux/filter.h>

#include "common.h"

#define HEADROOM	64
#define AREA_LEN	262144

FIXTURE(packed) {
	struct pv4 s;			/* on if_b */
	int fd;				/* an ordinary socket on if_a */
	char *buf;
	unsigned int offset;		/* from the metadata to the data */
};

FIXTURE_VARIANT(packed) {
	int type;
	bool meta;
	unsigned int unit, reserve;
};

FIXTURE_VARIANT_ADD(packed, raw) { .type = SOCK_RAW };

FIXTURE_VARIANT_ADD(packed, raw_meta) { .type = SOCK_RAW, .meta = true };

FIXTURE_VARIANT_ADD(packed, dgram_meta_units) {
	.type = SOCK_DGRAM, .meta = true, .unit = 64, .reserve = 20,
};

FIXTURE_SETUP(packed)
{
	__u32 flags = TP4_RING_PACKED | (variant->meta ? TP4_RING_META : 0);
	unsigned int i, nr = pv4_min_descs();
	struct pv4 *s = &self->s;

	pv4_net_setup(_metadata);
	ASSERT_EQ(0, set_mtu(if_a, 65535));
	ASSERT_EQ(0, set_mtu(if_b, 65535));
	*s = (struct pv4) {
		.fd = pv4_socket_of(variant->type, 0), .frame_size = 2048,
		.unit = variant->unit, .area_len = AREA_LEN,
		.area = pv4_new_area(AREA_LEN),
	};
	ASSERT_LE(0, s->fd);
	ASSERT_TRUE(s->area != MAP_FAILED);
	ASSERT_EQ(0, pv4_setint(s->fd, PACKET_RESERVE, variant->reserve));
	self->offset = HEADROOM + variant->reserve;
	ASSERT_EQ(0, pv4_memreg_unit(s->fd, s->area, AREA_LEN, 2048, HEADROOM,
				     variant->unit, 0));
	ASSERT_EQ(0, pv4_set_ring_flags(s->fd, PACKET_RX_RING, s->fd, nr,
					flags));
	ASSERT_EQ(0, pv4_map_rings(s, nr, 0));
	for (i = 0; i < nr; i++)
		pv4_rx_post(s, 0);
	ASSERT_EQ(0, pv4_bind(s->fd, if_b, ETH_P_ALL));
	self->fd = plain_socket(_metadata, if_a, 0);
	self->buf = malloc(1 << 17);
	ASSERT_TRUE(!!self->buf);
}

FIXTURE_TEARDOWN(packed)
{
	pv4_close(&self->s);
	close(self->fd);
	free(self->buf);
}

/* Where the packet of a descriptor starts in the area. */
static unsigned long start_of(struct _test_data_packed *self,
			      const struct tpacket4_desc *d)
{
	return pv4_frame(&self->s, d->idx) - self->s.area + d->offset -
	       self->offset;
}

static void send_packet(struct __test_metadata *_metadata,
			struct _test_data_packed *self, unsigned int len,
			uint32_t seq)
{
	fill_packet(self->buf, len, seq);
	ASSERT_EQ((int)len, send(self->fd, self->buf, len, 0));
}

/* Check a received packet, which was sent with @len bytes. */
static void check_packet(struct __test_metadata *_metadata,
			 struct _test_data_packed *self, bool meta, int type,
			 const struct tpacket4_desc *d, unsigned int len,
			 uint32_t seq)
{
	unsigned int header = type == SOCK_RAW ? 0 : ETH_HLEN;
	unsigned long start = start_of(self, d);
	char *packet = self->s.area + start;

	fill_packet(self->buf, len, seq);
	ASSERT_EQ(0, d->error);
	ASSERT_EQ(meta ? TP4_META : 0, d->flags);
	ASSERT_EQ(len - header, d->len);
	ASSERT_EQ(0U, start % 8);
	ASSERT_GE((unsigned long)AREA_LEN, start + self->offset + d->len);
	ASSERT_EQ(0, memcmp(packet + self->offset, self->buf + header, d->len)) {
		TH_LOG("packet %u of %u bytes at %lu", seq, len, start);
	}
	if (meta) {
		struct tpacket4_meta m;

		memcpy(&m, packet, sizeof(m));
		ASSERT_EQ(len - header, m.wire_len);
		ASSERT_EQ(if_nametoindex(if_b), m.ifindex);
		ASSERT_EQ(htons(ETH_P_TEST), m.protocol);
	}
}

static const unsigned int lens[] = {
	60, 61, 9014, 64, 65, 1514, 100, 2048, 65000, 60, 20000, 4096, 33333,
};

/* Packets of all lengths in one piece and in order, one behind the other, over
 * many laps of the area and of the ring.
 */
TEST_F_TIMEOUT(packed, any_length, 300)
{
	unsigned int i, len, laps = 0;
	unsigned long start, end = 0;
	struct tpacket4_desc d;

	for (i = 0; i < 80 * ARRAY_SIZE(lens); i++) {
		len = lens[i % ARRAY_SIZE(lens)];
		send_packet(_metadata, self, len, i);
		ASSERT_TRUE(pv4_take_wait(&self->s, &self->s.rx, &d, WAIT_MS));
		check_packet(_metadata, self, variant->meta, variant->type, &d,
			     len, i);
		start = start_of(self, &d);
		if (!start)
			laps++;
		else
			ASSERT_EQ(end, start);
		end = start + ((self->offset + d.len + 7) & ~7);
		pv4_rx_post(&self->s, d.idx);
	}
	EXPECT_LT(10U, laps);
}

/* What the program has not given back is not overwritten. It holds as many
 * packets as fit one behind the other.
 */
TEST_F_TIMEOUT(packed, burst_while_not_read, 300)
{
	static const unsigned int sizes[] = { 1500, 1003, 9000 };
	struct tpacket_stats_v4 st;
	struct tpacket4_desc d;
	unsigned int i, k, fit, len, lap;

	for (lap = 0; lap < 4 * ARRAY_SIZE(sizes); lap++) {
		len = sizes[lap % ARRAY_SIZE(sizes)];
		fit = AREA_LEN / ((self->offset + len -
				   (variant->type == SOCK_RAW ? 0 : ETH_HLEN) +
				   7) & ~7);
		for (i = 0; i < fit + 20; i++)
			send_packet(_metadata, self, len, i);
		ASSERT_EQ(0, pv4_stats_of(self->s.fd, fit + 20, &st));
		k = st.tp_packets - st.tp_drops;
		/* less at the end of the area, and what was given back last */
		EXPECT_GE(fit, k);
		EXPECT_LE(fit - 3 - (2048 + 9000 * !!lap) / len, k) {
			TH_LOG("lap %u: %u of %u packets", lap, k, fit);
		}
		EXPECT_EQ(fit + 20, st.tp_packets);
		for (i = 0; i < k; i++) {
			ASSERT_TRUE(pv4_take_wait(&self->s, &self->s.rx, &d,
						  WAIT_MS));
			check_packet(_metadata, self, variant->meta,
				     variant->type, &d, len, i);
			pv4_rx_post(&self->s, d.idx);
		}
		EXPECT_FALSE(pv4_take(&self->s.rx, &d));
	}
}

/* Small packets are limited by the slots. */
TEST_F(packed, all_slots)
{
	unsigned int i, nr = self->s.rx.size;
	struct tpacket_stats_v4 st;
	struct tpacket4_desc d;

	for (i = 0; i < nr + 5; i++)
		send_packet(_metadata, self, 60, i);
	ASSERT_EQ(0, pv4_stats_of(self->s.fd, nr + 5, &st));
	EXPECT_EQ(5U, st.tp_drops);
	for (i = 0; i < nr; i++) {
		ASSERT_TRUE(pv4_take_wait(&self->s, &self->s.rx, &d, WAIT_MS));
		check_packet(_metadata, self, variant->meta, variant->type, &d,
			     60, i);
	}
	EXPECT_FALSE(pv4_take(&self->s.rx, &d));
}

/* A program that waits for many packets is woken when a quarter of the memory is
 * used: more of them may not fit.
 */
TEST_F(packed, rcvlowat)
{
	int i, lowat = self->s.rx.size;
	struct tpacket4_desc d;

	ASSERT_EQ(0, setsockopt(self->s.fd, SOL_SOCKET, SO_RCVLOWAT, &lowat,
				sizeof(lowat)));
	for (i = 0; i < 6; i++)
		send_packet(_metadata, self, 9000, i);
	EXPECT_EQ(0, poll_for(self->s.fd, POLLIN, QUIET_MS));
	for (; i < 8; i++)
		send_packet(_metadata, self, 9000, i);
	EXPECT_EQ(POLLIN, poll_for(self->s.fd, POLLIN, WAIT_MS));
	while (pv4_take(&self->s.rx, &d))
		pv4_rx_post(&self->s, d.idx);
	EXPECT_EQ(0, poll_for(self->s.fd, POLLIN, QUIET_MS));
}

/* What a filter cuts takes no memory. */
TEST_F(packed, cut)
{
	struct sock_filter code[] = { { 0x06, 0, 0, 100 } };
	struct sock_fprog prog = { 1, code };
	unsigned long end = 0;
	struct tpacket4_desc d;
	unsigned int i;

	ASSERT_EQ(0, setsockopt(self->s.fd, SOL_SOCKET, SO_ATTACH_FILTER,
				&prog, sizeof(prog)));
	for (i = 0; i < 20; i++) {
		send_packet(_metadata, self, 9000, i);
		ASSERT_TRUE(pv4_take_wait(&self->s, &self->s.rx, &d, WAIT_MS));
		EXPECT_EQ(100U, d.len);
		EXPECT_EQ(end, start_of(self, &d));
		end += (self->offset + 100 + 7) & ~7;
		pv4_rx_post(&self->s, d.idx);
	}
}

/* ---- refusals ---- */

TEST(options)
{
	unsigned int nr = pv4_min_descs();
	int fd, fd2, page = getpagesize();
	char *area;

	pv4_net_setup(_metadata);
	fd = pv4_socket();
	fd2 = pv4_socket();
	area = pv4_new_area(8 * page);
	ASSERT_TRUE(area != MAP_FAILED);
	ASSERT_EQ(0, pv4_memreg(fd, area, 8 * page, 2048, 64));
	/* for Rx only */
	EXPECT_EQ(-EINVAL, pv4_set_ring_flags(fd, PACKET_TX_RING, fd, nr,
					      TP4_RING_PACKED));
	EXPECT_EQ(0, pv4_set_ring_flags(fd, PACKET_RX_RING, fd, nr,
					TP4_RING_PACKED));
	/* another ring may use the area as frames */
	EXPECT_EQ(0, pv4_set_ring(fd2, PACKET_RX_RING, fd, nr));
	close(fd);
	close(fd2);
	munmap(area, 8 * page);
}

TEST_HARNESS_MAIN
