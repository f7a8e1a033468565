// SPDX-License-Identifier: GPL-2.0
/* KUnit tests of packet arrays and frame sets. The test acts as program, driver
 * and stack.
 */

#include <kunit/device.h>
#include <kunit/test.h>
#include <linux/bpf.h>
#include <linux/delay.h>
#include <linux/dma-direct.h>
#include <linux/etherdevice.h>
#include <linux/filter.h>
#include <linux/if_vlan.h>
#include <linux/module.h>
#include <linux/net_tstamp.h>
#include <linux/prandom.h>
#include <linux/sched.h>
#include <linux/skbuff.h>
#include <linux/tpacket4.h>
#include <linux/unaligned.h>
#include <linux/virtio_net.h>
#include <net/sock.h>

#include "internal.h"
#include "tp4_array.h"
#include "tp4_meta.h"
#include "tp4_queue.h"

#define SLOTS		128
#define FRAMES		256
#define FRAME_BYTES	2048
#define ELEMS		64
#define ROOM		(FRAME_BYTES - XDP_PACKET_HEADROOM)

/* A ring, its area, and the state of the program */
struct end {
	struct tp4_zc_ring	end;
	struct tp4_queue	q;
	struct tpacket4_desc	ring[SLOTS] __aligned(64);
	u32			held[SLOTS];
	unsigned long		posted;
	unsigned long		reaped;
	u32			kicks;
};

struct tp4_test {
	struct tp4_area		area[2];
	struct page		*pages[2][FRAMES * FRAME_BYTES / PAGE_SIZE];
	struct end		rx;
	struct end		tx;
	struct tp4_packet_array	*rxa;
	struct tp4_packet_array	*txa;
	struct sk_buff		*skb;	/* what a sink delivered last */
	u32			skbs;
	u32			lost;	/* packets that got no skb */
	bool			first_only; /* what a sink delivered first */
};

static void end_init(struct end *end, struct tp4_area *area)
{
	memset32(end->held, TP4_NOT_HELD, SLOTS);
	end->q.ring = end->ring;
	end->q.area = area;
	end->q.held = end->held;
	end->q.mask = SLOTS - 1;
	end->q.room = FRAME_BYTES;
	end->end.q = &end->q;
	end->end.area = area;
	end->end.error = ECANCELED;
}

static void free_spares(void *area)
{
	tp4_area_free_spares(area);
}

/* Let a ring that keeps frames have spare ones. */
static void add_spares(struct kunit *test, struct end *end)
{
	struct tp4_area *area;

	if (!(end->q.flags & (TP4_RING_KEEP | TP4_RING_TO_STACK)))
		return;
	area = tp4_area_add_spares(end->q.area);
	KUNIT_ASSERT_NOT_NULL(test, area);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, free_spares,
							area), 0);
	end->end.area = area;
}

static void arrays_new(struct kunit *test, bool shared)
{
	struct tp4_test *t = test->priv;

	end_init(&t->rx, &t->area[0]);
	end_init(&t->tx, &t->area[shared ? 0 : 1]);
	add_spares(test, &t->rx);
	t->rxa = tp4a_rx_new(&t->rx.end, ELEMS, NULL);
	t->txa = tp4a_tx_new(&t->tx.end, ELEMS, NULL);
	KUNIT_ASSERT_NOT_NULL(test, t->rxa);
	KUNIT_ASSERT_NOT_NULL(test, t->txa);
	KUNIT_ASSERT_EQ(test, t->rxa->mask, ELEMS - 1);
	KUNIT_ASSERT_EQ(test, t->rxa->room, ROOM);
}

static int tp4_array_init(struct kunit *test)
{
	struct tp4_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	u32 i, k;

	KUNIT_ASSERT_NOT_NULL(test, t);
	for (i = 0; i < 2; i++) {
		struct tp4_area *area = &t->area[i];

		area->addr = kunit_kzalloc(test, FRAMES * FRAME_BYTES,
					   GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, area->addr);
		area->pages = t->pages[i];
		area->nr_pages = ARRAY_SIZE(t->pages[i]);
		for (k = 0; k < area->nr_pages; k++)
			area->pages[k] = virt_to_page(area->addr +
						      k * PAGE_SIZE);
		area->nr_frames = FRAMES;
		area->frame_size = FRAME_BYTES;
		area->frame_shift = ilog2(FRAME_BYTES);
		area->nr_safe = FRAMES;
		area->run_pages = 1;
		refcount_set(&area->users, 1);
	}
	test->priv = t;
	return 0;
}

static void tp4_array_exit(struct kunit *test)
{
	struct tp4_test *t = test->priv;

	tp4a_free(t->rxa);
	tp4a_free(t->txa);
	kfree_skb(t->skb);
}

static void post(struct end *end, u64 idx, u32 len, u16 offset, u8 flags)
{
	end->ring[end->posted++ % SLOTS] = (struct tpacket4_desc) {
		.idx = idx,
		.len = len,
		.offset = offset,
		.flags = TP4_DESC_KERNEL | flags,
	};
}

static struct tpacket4_desc *reap(struct end *end)
{
	struct tpacket4_desc *desc = &end->ring[end->reaped % SLOTS];

	if (end->reaped == end->posted || desc->flags & TP4_DESC_KERNEL)
		return NULL;
	end->reaped++;
	return desc;
}

static u8 *data_of(const struct end *end, const struct tpacket4_desc *desc)
{
	return tp4_area_frame(end->q.area, desc->idx) + desc->offset;
}

/* Post a packet of @nr frames of @len bytes, starting with @first. */
static void post_packet(struct tp4_test *t, u32 frame, u32 nr, u32 len,
			u8 first)
{
	u32 i, k;

	for (i = 0; i < nr; i++) {
		struct tpacket4_desc desc = { .idx = frame + i, .offset = 64 };
		u8 *data = data_of(&t->tx, &desc);

		for (k = 0; k < len; k++)
			data[k] = first + i * len + k;
		post(&t->tx, frame + i, len, 64, i + 1 < nr ? TP4_PKT_CONT : 0);
	}
}

static u32 give(struct tp4_test *t, bool (*how)(struct tp4_packet_array *a,
						struct tp4_frame_set *p))
{
	struct tp4_frame_set p;
	u32 ok = 0;

	tp4a_populate(t->rxa);
	tp4a_populate(t->txa);
	while (tp4a_next_packet(t->txa, &p))
		ok += how(t->rxa, &p);
	return ok;
}

static void put_back_all(struct tp4_test *t)
{
	tp4a_recycle(t->rxa);
}

static void put_back_last(struct tp4_test *t)
{
	tp4a_reuse(t->rxa, 4);
}

static void populate_and_flush_at_any_index(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	struct tp4_frame_set p;
	u32 nr, i;

	arrays_new(test, false);
	/* An odd number per round: each position of ring and array is the first
	 * one.
	 */
	for (nr = 1; nr <= ELEMS; nr++) {
		for (i = 0; i < nr; i++) {
			post(&t->rx, i, 0, 0, 0);
			post_packet(t, i, 1, 60, i);
		}
		tp4a_populate(t->rxa);
		tp4a_populate(t->txa);
		KUNIT_ASSERT_EQ(test, t->rxa->end - t->rxa->curr, nr);
		KUNIT_ASSERT_EQ(test, t->txa->end - t->txa->curr, nr);
		KUNIT_EXPECT_EQ(test, tp4a_flush(t->txa), 0);
		for (i = 0; i < nr; i++) {
			KUNIT_ASSERT_TRUE(test, tp4a_next_packet(t->txa, &p));
			KUNIT_EXPECT_EQ(test, tp4f_get_frame_id(&p), i);
			KUNIT_EXPECT_EQ(test, tp4f_get_frame_len(&p), 60);
			KUNIT_EXPECT_EQ(test, tp4f_get_data_offset(&p), 64);
			KUNIT_EXPECT_TRUE(test, tp4f_is_last_frame(&p));
			KUNIT_EXPECT_TRUE(test, tp4a_copy_packet(t->rxa, &p));
		}
		KUNIT_EXPECT_FALSE(test, tp4a_next_packet(t->txa, &p));
		KUNIT_EXPECT_NULL(test, reap(&t->rx));
		KUNIT_EXPECT_NULL(test, reap(&t->tx));
		KUNIT_EXPECT_EQ(test, tp4a_flush(t->rxa), nr);
		KUNIT_EXPECT_EQ(test, tp4a_flush(t->txa), nr);
		for (i = 0; i < nr; i++) {
			struct tpacket4_desc *desc = reap(&t->rx);

			KUNIT_ASSERT_NOT_NULL(test, desc);
			KUNIT_EXPECT_EQ(test, desc->idx, i);
			KUNIT_EXPECT_EQ(test, desc->len, 60);
			KUNIT_EXPECT_EQ(test, desc->offset,
					XDP_PACKET_HEADROOM);
			KUNIT_EXPECT_EQ(test, data_of(&t->rx, desc)[59],
					(u8)(i + 59));
			desc = reap(&t->tx);
			KUNIT_ASSERT_NOT_NULL(test, desc);
			KUNIT_EXPECT_EQ(test, desc->idx, i);
			KUNIT_EXPECT_EQ(test, desc->error, 0);
		}
	}
}

/* Post all slots, and let the arrays take as many as they can, which is @nr. */
static void take_all(struct kunit *test, u32 nr)
{
	struct tp4_test *t = test->priv;
	u32 i;

	for (i = 0; i < SLOTS; i++) {
		post(&t->rx, i, 0, 0, 0);
		post_packet(t, i, 1, 60, 0);
	}
	for (i = 0; i < 3; i++) {
		tp4a_populate(t->rxa);
		tp4a_populate(t->txa);
		KUNIT_EXPECT_EQ(test, t->rxa->end - t->rxa->start, nr);
		KUNIT_EXPECT_EQ(test, t->txa->end - t->txa->start, nr);
	}
}

static void populate_stops_at_array_size(struct kunit *test)
{
	struct tp4_test *t = test->priv;

	arrays_new(test, false);
	take_all(test, ELEMS);
	KUNIT_EXPECT_TRUE(test, tp4a_has_work(t->txa));
}

static void has_work_with_unprocessed_frames(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	struct tp4_frame_set p;

	arrays_new(test, false);
	KUNIT_EXPECT_FALSE(test, tp4a_has_work(t->txa));
	post_packet(t, 0, 1, 60, 0);
	post_packet(t, 1, 1, 60, 0);
	KUNIT_EXPECT_TRUE(test, tp4a_has_work(t->txa));
	tp4a_populate(t->txa);
	KUNIT_EXPECT_TRUE(test, tp4a_has_work(t->txa));
	KUNIT_ASSERT_TRUE(test, tp4a_next_packet(t->txa, &p));
	KUNIT_EXPECT_TRUE(test, tp4a_has_work(t->txa));
	KUNIT_ASSERT_TRUE(test, tp4a_next_packet(t->txa, &p));
	KUNIT_EXPECT_FALSE(test, tp4a_has_work(t->txa));
	KUNIT_EXPECT_EQ(test, tp4a_flush(t->txa), 2);
	KUNIT_EXPECT_FALSE(test, tp4a_has_work(t->txa));
}

/* Otherwise NAPI would never complete. */
static void no_work_with_incomplete_packet(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	u32 i;

	arrays_new(test, false);
	for (i = 0; i + 1 < TP4_TX_DESCS; i++) {
		post(&t->tx, i, 60, 0, TP4_PKT_CONT);
		KUNIT_EXPECT_FALSE(test, tp4a_has_work(t->txa));
		tp4a_populate(t->txa);
		KUNIT_EXPECT_EQ(test, t->txa->end, 0);
	}
	/* A packet with too many frames is refused, and so is the rest of it.
	 */
	post(&t->tx, i, 60, 0, TP4_PKT_CONT);
	KUNIT_EXPECT_TRUE(test, tp4a_has_work(t->txa));
	tp4a_populate(t->txa);
	KUNIT_EXPECT_FALSE(test, tp4a_has_work(t->txa));
	post(&t->tx, i, 60, 0, TP4_PKT_CONT);
	KUNIT_EXPECT_TRUE(test, tp4a_has_work(t->txa));
	post(&t->tx, i, 60, 0, 0);
	tp4a_populate(t->txa);
	KUNIT_EXPECT_FALSE(test, tp4a_has_work(t->txa));
	for (i = 0; i < TP4_TX_DESCS + 2; i++) {
		struct tpacket4_desc *desc = reap(&t->tx);

		KUNIT_ASSERT_NOT_NULL(test, desc);
		KUNIT_EXPECT_EQ(test, desc->error, EMSGSIZE);
	}
	post_packet(t, 0, 1, 60, 0);
	KUNIT_EXPECT_TRUE(test, tp4a_has_work(t->txa));
}

static void no_work_without_room(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	struct tp4_frame_set p;
	u32 i;

	arrays_new(test, false);
	for (i = 0; i < ELEMS - 1; i++)
		post_packet(t, i, 1, 60, 0);
	post_packet(t, i, 2, 60, 0);
	tp4a_populate(t->txa);
	while (tp4a_next_packet(t->txa, &p))
		;
	KUNIT_EXPECT_EQ(test, t->txa->curr, ELEMS - 1);
	KUNIT_EXPECT_FALSE(test, tp4a_has_work(t->txa));
	tp4a_flush(t->txa);
	KUNIT_EXPECT_TRUE(test, tp4a_has_work(t->txa));
}

static void rx_buffers_within_limits(struct kunit *test)
{
	struct tp4_limits limits = {
		.buf_unit = 128, .buf_min = 1024, .buf_max = SZ_16K,
		.buf_chain = 1,
	};
	struct tp4_test *t = test->priv;
	void *ring = &t->rx.end;

	arrays_new(test, false);
	KUNIT_EXPECT_EQ(test, tp4_rx_buf_len(ring, &limits, ROOM), ROOM);
	KUNIT_EXPECT_EQ(test, tp4_rx_buf_len(ring, &limits, ROOM + 1),
			-EMSGSIZE);
	limits.buf_unit = 1024;
	KUNIT_EXPECT_EQ(test, tp4_rx_buf_len(ring, &limits, 1024), 1024);
	KUNIT_EXPECT_EQ(test, tp4_rx_buf_len(ring, &limits, 1500), -EMSGSIZE);
	limits.buf_chain = 2;
	KUNIT_EXPECT_EQ(test, tp4_rx_buf_len(ring, &limits, 2048), 1024);
	limits.buf_min = 1025;
	KUNIT_EXPECT_EQ(test, tp4_rx_buf_len(ring, &limits, 60), -EINVAL);
	limits.buf_min = 60;
	limits.buf_max = 1000;
	limits.buf_unit = 64;
	KUNIT_EXPECT_EQ(test, tp4_rx_buf_len(ring, &limits, 60), 960);
}

static void tx_packets_within_limits(struct kunit *test)
{
	const struct tp4_limits limits = { .tx_min = 17, .tx_chain = 2 };
	struct net_device *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	static const int want[] = { -EINVAL, 0, 0, -EMSGSIZE, -EMSGSIZE };
	struct tp4_test *t = test->priv;
	struct tp4_frame_set p;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, dev);
	dev->mtu = 1500;
	dev->hard_header_len = ETH_HLEN;
	arrays_new(test, false);
	post_packet(t, 0, 1, 16, 0);
	post_packet(t, 1, 1, 17, 0);
	post_packet(t, 2, 2, 60, 0);
	post_packet(t, 4, 3, 60, 0);
	post_packet(t, 7, 1, 1515, 0);
	tp4a_populate(t->txa);
	for (i = 0; i < ARRAY_SIZE(want); i++) {
		KUNIT_ASSERT_TRUE(test, tp4a_next_packet(t->txa, &p));
		KUNIT_EXPECT_EQ(test, tp4f_check_packet(&p, dev, &limits),
				want[i]);
	}
}

static void count_kick(struct tp4_zc_ring *ring)
{
	struct end *end = container_of(ring, struct end, end);

	WRITE_ONCE(end->kicks, end->kicks + 1);
}

/* Wait for the timer that looks for empty frames, if it is running.
 * Return: how often it has expired.
 */
static u32 count_kicks(struct end *end)
{
	u32 ms;

	for (ms = 0; hrtimer_active(&end->end.refill) && ms < 1000; ms++)
		usleep_range(1000, 2000);
	return READ_ONCE(end->kicks);
}

/* The program does not know that the driver needs a kick. */
static void refill_without_enough_frames(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	struct tp4_frame_set p;
	u32 i;

	arrays_new(test, false);
	t->rx.end.kick = count_kick;
	KUNIT_EXPECT_EQ(test, tp4a_refill(t->rxa, 0, ELEMS, &p), 0);
	KUNIT_EXPECT_EQ(test, count_kicks(&t->rx), 1);
	/* That is not a packet. */
	KUNIT_EXPECT_EQ(test, atomic_long_read(&t->rx.q.dry), 1);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&t->rx.q.no_desc), 0);
	for (i = 0; i < 40; i++)
		post(&t->rx, i, 0, 0, 0);
	/* The device takes fewer than there are. */
	KUNIT_EXPECT_EQ(test, tp4a_refill(t->rxa, 0, 20, &p), 20);
	KUNIT_EXPECT_EQ(test, tp4f_get_frame_id(&p), 0);
	KUNIT_EXPECT_EQ(test, count_kicks(&t->rx), 2);
	KUNIT_EXPECT_EQ(test, tp4a_refill(t->rxa, 20, ELEMS, &p), 20);
	KUNIT_EXPECT_EQ(test, tp4f_get_frame_id(&p), 20);
	KUNIT_EXPECT_EQ(test, count_kicks(&t->rx), 2);
	KUNIT_EXPECT_EQ(test, tp4a_refill(t->rxa, 40, ELEMS, &p), 0);
	KUNIT_EXPECT_EQ(test, count_kicks(&t->rx), 2);
}

/* The timer may be about to kick. */
static void free_without_enough_frames(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	struct tp4_frame_set p;

	arrays_new(test, false);
	t->rx.end.kick = count_kick;
	tp4a_refill(t->rxa, 0, ELEMS, &p);
	tp4a_free(t->rxa);
	t->rxa = NULL;
	KUNIT_EXPECT_FALSE(test, hrtimer_active(&t->rx.end.refill));
}

static void push_vlan_tag(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	const struct vlan_ethhdr *eth;
	struct tp4_frame_set p;
	u8 *data;
	u32 i;

	arrays_new(test, false);
	post(&t->rx, 3, 0, 0, 0);
	post(&t->rx, 4, 0, 0, 0);
	tp4a_populate(t->rxa);
	KUNIT_ASSERT_TRUE(test, tp4a_next_frame(t->rxa, &p));
	tp4f_set_frame(&p, 60, XDP_PACKET_HEADROOM, false);
	data = tp4f_get_data(&p);
	for (i = 0; i < 60; i++)
		data[i] = i;
	tp4f_push_vlan(&p, htons(ETH_P_8021AD), 0x6123);
	KUNIT_EXPECT_EQ(test, tp4f_get_frame_len(&p), 64);
	KUNIT_EXPECT_EQ(test, tp4f_get_data_offset(&p),
			XDP_PACKET_HEADROOM - VLAN_HLEN);
	KUNIT_EXPECT_FALSE(test, tp4f_is_last_frame(&p));
	eth = tp4f_get_data(&p);
	for (i = 0; i < 2 * ETH_ALEN; i++)
		KUNIT_EXPECT_EQ(test, ((const u8 *)eth)[i], i);
	KUNIT_EXPECT_EQ(test, ntohs(eth->h_vlan_proto), ETH_P_8021AD);
	KUNIT_EXPECT_EQ(test, ntohs(eth->h_vlan_TCI), 0x6123);
	for (i = 2 * ETH_ALEN; i < 60; i++)
		KUNIT_EXPECT_EQ(test, data[i], i);
}

static void populate_limits_refusals(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	unsigned long pos;
	u32 i;

	end_init(&t->rx, &t->area[0]);
	for (i = 0; i < SLOTS; i++)
		post(&t->rx, FRAMES, 0, 0, 0);
	KUNIT_EXPECT_FALSE(test, tp4q_rx_reserve(&t->rx.q, 1, &pos));
	KUNIT_EXPECT_EQ(test, atomic_long_read(&t->rx.q.invalid),
			TP4_RX_REFUSALS);
	t->rxa = tp4a_rx_new(&t->rx.end, ELEMS, NULL);
	KUNIT_ASSERT_NOT_NULL(test, t->rxa);
	post(&t->rx, 0, 0, 0, 0);
	tp4a_populate(t->rxa);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&t->rx.q.invalid), SLOTS);
	KUNIT_EXPECT_EQ(test, t->rxa->end, 0);
	tp4a_populate(t->rxa);
	KUNIT_EXPECT_EQ(test, t->rxa->end, 1);
}

static void copy_to_smaller_frames(struct kunit *test)
{
	static const u32 lens[][2] = {	/* frames, bytes of each */
		{ 1, ROOM }, { 2, 30 }, { 2, ROOM }, { 3, 1000 }, { 17, 100 },
		{ 5, ROOM + 64 },
	};
	struct tp4_test *t = test->priv;
	u32 i, k, len, pos;

	arrays_new(test, false);
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		len = lens[i][0] * lens[i][1];
		for (k = 0; k < DIV_ROUND_UP(len, ROOM); k++)
			post(&t->rx, k, 0, 0, 0);
		post_packet(t, 0, lens[i][0], lens[i][1], i);
		KUNIT_ASSERT_EQ(test, give(t, tp4a_copy_packet), 1);
		KUNIT_EXPECT_EQ(test, tp4a_flush(t->rxa), 1);
		KUNIT_EXPECT_EQ(test, tp4a_flush(t->txa), 1);
		for (pos = 0; pos < len;) {
			struct tpacket4_desc *desc = reap(&t->rx);

			KUNIT_ASSERT_NOT_NULL(test, desc);
			for (k = 0; k < desc->len; k++, pos++)
				KUNIT_ASSERT_EQ(test, data_of(&t->rx, desc)[k],
						(u8)(i + pos));
			KUNIT_EXPECT_EQ(test, desc->flags,
					pos < len ? TP4_PKT_CONT : 0);
		}
		KUNIT_EXPECT_NULL(test, reap(&t->rx));
		for (k = 0; k < lens[i][0]; k++)
			KUNIT_EXPECT_NOT_NULL(test, reap(&t->tx));
	}
}

static void frame_set_iteration(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	struct tp4_frame_set p;
	u32 i;

	arrays_new(test, false);
	post_packet(t, 7, 5, 10, 0);
	tp4a_populate(t->txa);
	KUNIT_ASSERT_TRUE(test, tp4a_next_packet(t->txa, &p));
	KUNIT_EXPECT_EQ(test, tp4f_num_frames(&p), 5);
	KUNIT_EXPECT_EQ(test, tp4f_packet_len(&p), 50);
	for (i = 0; i < 5; i++) {
		KUNIT_EXPECT_EQ(test, tp4f_get_frame_id(&p), 7 + i);
		KUNIT_EXPECT_EQ(test, tp4f_is_last_frame(&p), i == 4);
		KUNIT_EXPECT_EQ(test, tp4f_next_frame(&p), i != 4);
	}
	tp4f_reset(&p);
	KUNIT_EXPECT_EQ(test, tp4f_get_frame_id(&p), 7);
}

static void populate_returns_invalid_descs(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	struct tpacket4_desc *desc;
	u32 good = 0, bad = 0;

	arrays_new(test, false);
	post(&t->rx, FRAMES, 0, 0, 0);
	post(&t->rx, 1, 0, 0, 0);
	post(&t->rx, U64_MAX, 0, 0, 0);
	tp4a_populate(t->rxa);
	KUNIT_EXPECT_EQ(test, t->rxa->end - t->rxa->start, 1);
	while ((desc = reap(&t->rx))) {
		KUNIT_EXPECT_EQ(test, desc->error, EINVAL);
		bad++;
	}
	KUNIT_EXPECT_EQ(test, bad, 2);

	bad = 0;
	post(&t->tx, 0, 60, 0, 0);
	post(&t->tx, FRAMES, 60, 0, 0);
	post(&t->tx, 2, 0, 0, 0);
	post(&t->tx, 3, 60, FRAME_BYTES, 0);
	post(&t->tx, 4, U32_MAX, 1, 0);
	post(&t->tx, 5, FRAME_BYTES, 1, 0);
	post(&t->tx, 6, 60, 0, 0x20);
	post(&t->tx, 7, 60, 0, TP4_PKT_CONT);
	post(&t->tx, FRAMES, 60, 0, 0);
	post(&t->tx, 9, FRAME_BYTES, 0, 0);
	tp4a_populate(t->txa);
	KUNIT_EXPECT_EQ(test, t->txa->end - t->txa->start, 2);
	t->txa->curr = t->txa->end;
	KUNIT_EXPECT_EQ(test, tp4a_flush(t->txa), 2);
	while ((desc = reap(&t->tx))) {
		if (desc->error == 0)
			good++;
		else if (desc->idx == 7)
			KUNIT_EXPECT_EQ(test, desc->error, ECANCELED);
		else
			KUNIT_EXPECT_EQ(test, desc->error, EINVAL);
		bad += !!desc->error;
	}
	KUNIT_EXPECT_EQ(test, good, 2);
	KUNIT_EXPECT_EQ(test, bad, 8);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&t->tx.q.invalid), 8);
}

static u32 wakeups;

static void count_wakeup(struct sock *sk)
{
	wakeups++;
}

/* Descriptors that are refused one by one wake the program once. */
static void refusals_wake_once(struct kunit *test)
{
	struct packet_sock *po = kunit_kzalloc(test, sizeof(*po), GFP_KERNEL);
	struct tp4_test *t = test->priv;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, po);
	arrays_new(test, false);
	/* This way of waking is easier to see, and is common to both rings. */
	po->sk.sk_data_ready = count_wakeup;
	t->tx.q.sk = &po->sk;
	for (i = 0; i < 8; i++)
		post(&t->tx, i % 2 ? FRAMES : i, 60, 0, 0);
	wakeups = 0;
	tp4a_populate(t->txa);
	KUNIT_EXPECT_EQ(test, t->txa->end - t->txa->start, 4);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&t->tx.q.invalid), 4);
	KUNIT_EXPECT_EQ(test, wakeups, 1);
}

static void driver_error_is_returned(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	struct tpacket4_desc *desc;
	struct tp4_frame_set p;

	arrays_new(test, false);
	post_packet(t, 1, 2, 60, 0);
	post_packet(t, 3, 1, 60, 0);
	tp4a_populate(t->txa);
	KUNIT_ASSERT_TRUE(test, tp4a_next_packet(t->txa, &p));
	tp4f_set_error(&p, EMSGSIZE);
	KUNIT_ASSERT_TRUE(test, tp4a_next_packet(t->txa, &p));
	tp4a_flush(t->txa);
	while ((desc = reap(&t->tx)))
		KUNIT_EXPECT_EQ(test, desc->error,
				desc->idx == 3 ? 0 : EMSGSIZE);
	KUNIT_EXPECT_EQ(test, t->tx.reaped, 3);
}

static void flush_completed_packets(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	struct tp4_frame_set p[4];
	u32 i;

	arrays_new(test, false);
	for (i = 0; i < 4; i++)
		post_packet(t, 2 * i, 2, 60, 0);
	tp4a_populate(t->txa);
	for (i = 0; i < 4; i++)
		KUNIT_ASSERT_TRUE(test, tp4a_next_packet(t->txa, &p[i]));

	KUNIT_EXPECT_EQ(test, tp4a_flush_completed(t->txa), 0);
	tp4f_packet_completed(&p[1]);
	KUNIT_EXPECT_EQ(test, tp4a_flush_completed(t->txa), 0);
	tp4f_packet_completed(&p[0]);
	KUNIT_EXPECT_EQ(test, tp4a_flush_completed(t->txa), 2);
	tp4f_packet_completed(&p[3]);
	KUNIT_EXPECT_EQ(test, tp4a_flush_completed(t->txa), 0);
	tp4f_packet_completed(&p[2]);
	KUNIT_EXPECT_EQ(test, tp4a_flush_completed(t->txa), 2);
	for (i = 0; i < 8; i++) {
		struct tpacket4_desc *desc = reap(&t->tx);

		KUNIT_ASSERT_NOT_NULL(test, desc);
		KUNIT_EXPECT_EQ(test, desc->flags, 0);
	}
}

static struct sk_buff *skb_of(struct kunit *test, u32 linear, u32 frags,
			      u32 frag_len)
{
	struct sk_buff *skb = alloc_skb(linear + 64, GFP_KERNEL);
	u32 i, k, pos = linear;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb_reserve(skb, 32);
	for (i = 0; i < linear; i++)
		skb_put_u8(skb, i);
	for (i = 0; i < frags; i++) {
		struct page *page = alloc_page(GFP_KERNEL);
		u8 *data;

		KUNIT_ASSERT_NOT_NULL(test, page);
		data = page_address(page);
		for (k = 0; k < frag_len; k++)
			data[k] = pos++;
		skb_add_rx_frag(skb, i, page, 0, frag_len, PAGE_SIZE);
	}
	return skb;
}

static void no_wakeup(struct sock *sk)
{
}

/* Metadata of the driver moves with the frames of a packet, and the hardware
 * timestamp is used if the program has requested it.
 */
static void driver_metadata_reaches_ring(struct kunit *test)
{
	struct packet_sock *po = kunit_kzalloc(test, sizeof(*po), GFP_KERNEL);
	struct net_device *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	static const u8 mac[ETH_ALEN] = { 2, 0, 0, 0, 0, 1 };
	const struct tpacket4_desc *desc;
	struct tp4_test *t = test->priv;
	const struct tpacket4_meta *m;
	struct tp4_frame_set p, first;
	struct sk_buff *skb;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, po);
	KUNIT_ASSERT_NOT_NULL(test, dev);
	dev->dev_addr = mac;
	dev->ifindex = 7;
	po->sk.sk_data_ready = no_wakeup;
	skb_queue_head_init(&po->sk.sk_receive_queue);
	end_init(&t->rx, &t->area[0]);
	t->rx.q.meta = TP4_META;
	t->rx.q.sk = &po->sk;
	t->rx.end.dev = dev;
	t->rx.end.seen = dev;
	t->rxa = tp4a_rx_new(&t->rx.end, ELEMS, NULL);
	KUNIT_ASSERT_NOT_NULL(test, t->rxa);
	KUNIT_ASSERT_TRUE(test, tp4a_has_meta(t->rxa));
	for (i = 0; i < 10; i++)
		post(&t->rx, i, 0, 0, 0);
	memset(t->area[0].addr, 0xff, 10 * FRAME_BYTES);
	tp4a_populate(t->rxa);

	/* Two packets, the second of two frames, and a frame without a packet,
	 * for which the frames before it move. Then a packet without metadata.
	 */
	for (i = 0; i < 5; i++) {
		u32 offset = t->rxa->offset;

		KUNIT_ASSERT_TRUE(test, tp4a_next_frame(t->rxa, &p));
		memcpy(tp4f_get_data(&p), i ? "BCDEFG" : (const char *)mac,
		       ETH_ALEN);
		tp4f_set_frame(&p, 100 + i, offset, i != 1);
		if (i == 0) {
			tp4f_set_hash(&p, 0x1234);
			tp4f_set_hwtstamp(&p, 5555);
		} else if (i == 1) {
			first = p;
		} else if (i == 2) {
			tp4f_set_csum_valid(&first);
			tp4f_set_hwtstamp(&first, 6666);
		} else if (i == 3) {
			tp4a_reuse(t->rxa, 1);
		}
	}
	po->tp_tstamp = SOF_TIMESTAMPING_RAW_HARDWARE;
	KUNIT_EXPECT_EQ(test, tp4a_flush(t->rxa), 3);

	desc = reap(&t->rx);
	KUNIT_ASSERT_NOT_NULL(test, desc);
	KUNIT_EXPECT_EQ(test, desc->flags, TP4_META);
	m = tp4_area_frame(&t->area[0], desc->idx);
	KUNIT_EXPECT_EQ(test, m->flags,
			TP4_META_RX_HASH | TP4_META_RX_TS_HARDWARE);
	KUNIT_EXPECT_EQ(test, m->hash, 0x1234);
	KUNIT_EXPECT_EQ(test, m->tstamp, 5555);
	KUNIT_EXPECT_EQ(test, m->wire_len, 100);
	KUNIT_EXPECT_EQ(test, m->ifindex, 7);
	KUNIT_EXPECT_EQ(test, m->pkt_type, PACKET_HOST);

	desc = reap(&t->rx);
	KUNIT_ASSERT_NOT_NULL(test, desc);
	KUNIT_EXPECT_EQ(test, desc->flags, TP4_META | TP4_PKT_CONT);
	m = tp4_area_frame(&t->area[0], desc->idx);
	KUNIT_EXPECT_EQ(test, m->flags,
			TP4_META_RX_CSUM_VALID | TP4_META_RX_TS_HARDWARE);
	KUNIT_EXPECT_EQ(test, m->hash, 0);
	KUNIT_EXPECT_EQ(test, m->tstamp, 6666);
	KUNIT_EXPECT_EQ(test, m->wire_len, 101 + 102);
	KUNIT_EXPECT_EQ(test, m->pkt_type, PACKET_OTHERHOST);
	desc = reap(&t->rx);
	KUNIT_ASSERT_NOT_NULL(test, desc);
	KUNIT_EXPECT_EQ(test, desc->flags, 0);

	desc = reap(&t->rx);
	KUNIT_ASSERT_NOT_NULL(test, desc);
	m = tp4_area_frame(&t->area[0], desc->idx);
	KUNIT_EXPECT_EQ(test, m->flags, 0);
	KUNIT_EXPECT_EQ(test, m->wire_len, 104);
	KUNIT_EXPECT_GT(test, m->tstamp, 6666);

	/* Not asked for */
	po->tp_tstamp = 0;
	KUNIT_ASSERT_TRUE(test, tp4a_next_frame(t->rxa, &p));
	tp4f_set_frame(&p, 60, t->rxa->offset, true);
	tp4f_set_hwtstamp(&p, 7777);
	KUNIT_EXPECT_EQ(test, tp4a_flush(t->rxa), 1);
	desc = reap(&t->rx);
	KUNIT_ASSERT_NOT_NULL(test, desc);
	m = tp4_area_frame(&t->area[0], desc->idx);
	KUNIT_EXPECT_EQ(test, m->flags, 0);
	KUNIT_EXPECT_GT(test, m->tstamp, 7777);

	/* What an skb tells */
	po->tp_tstamp = SOF_TIMESTAMPING_RAW_HARDWARE;
	skb = skb_of(test, 60, 0, 0);
	skb->hash = 0x5678;
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	skb_hwtstamps(skb)->hwtstamp = ns_to_ktime(8888);
	KUNIT_ASSERT_TRUE(test, tp4a_next_frame(t->rxa, &p));
	tp4f_set_frame(&p, 60, t->rxa->offset, true);
	tp4f_set_from_skb(&p, skb);
	kfree_skb(skb);
	KUNIT_EXPECT_EQ(test, tp4a_flush(t->rxa), 1);
	desc = reap(&t->rx);
	KUNIT_ASSERT_NOT_NULL(test, desc);
	m = tp4_area_frame(&t->area[0], desc->idx);
	KUNIT_EXPECT_EQ(test, m->flags,
			TP4_META_RX_HASH | TP4_META_RX_CSUM_VALID |
			TP4_META_RX_TS_HARDWARE);
	KUNIT_EXPECT_EQ(test, m->hash, 0x5678);
	KUNIT_EXPECT_EQ(test, m->tstamp, 8888);
	KUNIT_EXPECT_EQ(test, po->stats.stats1.tp_packets, 5);
}

/* Metadata of skbs that no device of the selftests receives or sends */
static void skb_metadata_reaches_ring(struct kunit *test)
{
	struct packet_sock *po = kunit_kzalloc(test, sizeof(*po), GFP_KERNEL);
	struct net_device *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	static const unsigned int unknown_types[] = {
		SKB_GSO_TCPV4 | SKB_GSO_UDP_TUNNEL,
		SKB_GSO_TCPV4 | SKB_GSO_PARTIAL,
		SKB_GSO_TCPV4 | SKB_GSO_ESP,
		SKB_GSO_TCPV4 | SKB_GSO_TUNNEL_REMCSUM,
		SKB_GSO_UDP_L4 | SKB_GSO_FRAGLIST,
		SKB_GSO_UDP_L4,
		SKB_GSO_SCTP,
	};
	struct tpacket4_meta m;
	struct sk_buff *skb;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, po);
	KUNIT_ASSERT_NOT_NULL(test, dev);
	skb = skb_of(test, 60, 0, 0);
	skb->dev = dev;
	skb_reset_mac_header(skb);

	/* The time that the device tells, if it tells any */
	po->sk.sk_type = SOCK_RAW;
	po->tp_tstamp = SOF_TIMESTAMPING_RAW_HARDWARE;
	tp4_meta_from_skb(&m, skb, &po->sk, dev);
	KUNIT_EXPECT_EQ(test, m.flags, 0);
	skb_hwtstamps(skb)->hwtstamp = ns_to_ktime(4444);
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	tp4_meta_from_skb(&m, skb, &po->sk, dev);
	KUNIT_EXPECT_EQ(test, m.flags,
			TP4_META_RX_TS_HARDWARE | TP4_META_RX_CSUM_VALID);
	skb->ip_summed = CHECKSUM_NONE;
	KUNIT_EXPECT_EQ(test, m.tstamp, 4444);

	/* Segments of types that metadata cannot describe */
	skb_shinfo(skb)->gso_size = 20;
	for (i = 0; i < ARRAY_SIZE(unknown_types); i++) {
		skb_shinfo(skb)->gso_type = unknown_types[i];
		tp4_meta_from_skb(&m, skb, &po->sk, dev);
		KUNIT_EXPECT_EQ(test, m.flags,
				TP4_META_RX_TS_HARDWARE | TP4_META_GSO);
		KUNIT_EXPECT_EQ(test, m.gso_size, 20);
		KUNIT_EXPECT_EQ(test, m.gso_type, VIRTIO_NET_HDR_GSO_NONE);
		KUNIT_EXPECT_FALSE(test, tp4_meta_can_describe(skb));
	}

	/* The inner of two tags, which a VLAN device that puts the outer one
	 * into the data sends
	 */
	skb_shinfo(skb)->gso_size = 0;
	po->sk.sk_type = SOCK_DGRAM;
	dev->min_header_len = ETH_HLEN;
	dev->hard_header_len = VLAN_ETH_HLEN;
	skb->protocol = htons(ETH_P_8021Q);
	memcpy(skb->data + ETH_HLEN, "\x60\x07\x08\x00", VLAN_HLEN);
	skb_pull(skb, ETH_HLEN);
	tp4_meta_from_skb(&m, skb, &po->sk, dev);
	KUNIT_EXPECT_EQ(test, m.vlan_tci, 0);
	dev->priv_flags |= IFF_802_1Q_VLAN;
	tp4_meta_from_skb(&m, skb, &po->sk, dev);
	KUNIT_EXPECT_EQ(test, m.flags,
			TP4_META_RX_TS_HARDWARE | TP4_META_RX_VLAN);
	KUNIT_EXPECT_EQ(test, m.vlan_tci, 0x6007);
	KUNIT_EXPECT_EQ(test, m.vlan_tpid, ETH_P_8021Q);
	KUNIT_EXPECT_EQ(test, ntohs(m.protocol), ETH_P_IP);
	KUNIT_EXPECT_EQ(test, m.wire_len, 60 - ETH_HLEN);
	kfree_skb(skb);
}

/* As for a device that completes packets in order */
static void flush_sent_frames(struct kunit *test)
{
	static const u32 sent[] = { 0, 1, 3, 4 };
	struct tp4_test *t = test->priv;
	struct tp4_frame_set p;
	u32 i, k, nr = 0;

	arrays_new(test, false);
	KUNIT_EXPECT_EQ(test, tp4a_get_unprocessed(t->txa, 0, &p), 0);
	for (i = 0; i < 10; i++)
		post_packet(t, i, 1, 60 + i, 0);
	tp4a_populate(t->txa);
	KUNIT_ASSERT_EQ(test, tp4a_get_unprocessed(t->txa, 0, &p), 10);
	for (i = 0; i < 8; i++, p.curr++) {
		KUNIT_EXPECT_EQ(test, tp4f_get_frame_id(&p), i);
		KUNIT_EXPECT_EQ(test, tp4f_get_frame_len(&p), 60 + i);
	}
	tp4a_advance(t->txa, 7);
	/* The eighth is no good. */
	KUNIT_ASSERT_TRUE(test, tp4a_next_packet(t->txa, &p));
	KUNIT_EXPECT_EQ(test, tp4f_get_frame_id(&p), 7);
	tp4f_set_error(&p, EMSGSIZE);
	KUNIT_EXPECT_EQ(test, tp4a_get_unprocessed(t->txa, 0, &p), 2);
	KUNIT_EXPECT_EQ(test, tp4f_get_frame_id(&p), 8);

	for (k = 0; k < ARRAY_SIZE(sent); k++) {
		tp4a_flush_sent(t->txa, sent[k]);
		for (i = 0; i < sent[k]; i++, nr++) {
			struct tpacket4_desc *desc = reap(&t->tx);

			KUNIT_ASSERT_NOT_NULL(test, desc);
			KUNIT_EXPECT_EQ(test, desc->idx, nr);
			KUNIT_EXPECT_EQ(test, desc->error,
					nr == 7 ? EMSGSIZE : 0);
			KUNIT_EXPECT_EQ(test, desc->len, 0);
		}
		KUNIT_EXPECT_NULL(test, reap(&t->tx));
	}
	KUNIT_EXPECT_EQ(test, atomic_long_read(&t->tx.q.invalid), 1);
	KUNIT_EXPECT_EQ(test, t->txa->end - t->txa->start, 2);
	KUNIT_EXPECT_EQ(test, tp4a_get_unprocessed(t->txa, 0, &p), 2);
}

/* A packet of one frame only needs its length, whatever the frame was before.
 */
static void reset_of_reused_frames(struct kunit *test)
{
	void (*how[])(struct tp4_test *t) = { put_back_all, put_back_last };
	struct tp4_test *t = test->priv;
	struct tp4_frame_set p;
	u32 i, k;

	arrays_new(test, false);
	for (k = 0; k < ARRAY_SIZE(how); k++) {
		for (i = 0; i < 4; i++)
			post(&t->rx, i, 1234, 77, TP4_PKT_CONT);
		tp4a_populate(t->rxa);
		KUNIT_ASSERT_EQ(test, tp4a_get_unprocessed(t->rxa, 0, &p), 4);
		for (i = 0; i < 4; i++) {
			KUNIT_ASSERT_TRUE(test, tp4a_next_frame(t->rxa, &p));
			tp4f_set_frame(&p, 60, 300, i == 3);
			tp4f_set_error(&p, EINVAL);
		}
		how[k](t);
		KUNIT_ASSERT_EQ(test, tp4a_get_unprocessed(t->rxa, 0, &p), 4);
		for (; p.curr != p.end; p.curr++)
			tp4f_set_len(&p, 99);
		tp4a_advance(t->rxa, 4);
		KUNIT_EXPECT_EQ(test, tp4a_flush(t->rxa), 4);
		for (i = 0; i < 4; i++) {
			struct tpacket4_desc *desc = reap(&t->rx);

			KUNIT_ASSERT_NOT_NULL(test, desc);
			KUNIT_EXPECT_EQ(test, desc->len, 99);
			KUNIT_EXPECT_EQ(test, desc->offset,
					XDP_PACKET_HEADROOM);
			KUNIT_EXPECT_EQ(test, desc->error, 0);
			KUNIT_EXPECT_EQ(test, desc->flags, 0);
		}
	}
}

/* Descriptors that the kernel owns are marked on the ring until they are
 * returned, also if it owns all of them.
 */
static void populate_each_slot_once(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	struct tp4_frame_set p;
	u32 i;

	end_init(&t->rx, &t->area[0]);
	end_init(&t->tx, &t->area[1]);
	t->rxa = tp4a_rx_new(&t->rx.end, 4 * SLOTS, NULL);
	t->txa = tp4a_tx_new(&t->tx.end, 4 * SLOTS, NULL);
	KUNIT_ASSERT_NOT_NULL(test, t->rxa);
	KUNIT_ASSERT_NOT_NULL(test, t->txa);
	take_all(test, SLOTS);
	tp4a_get_unprocessed(t->txa, 0, &p);
	tp4a_advance(t->txa, SLOTS);
	KUNIT_EXPECT_FALSE(test, tp4a_has_work(t->txa));
	KUNIT_EXPECT_EQ(test, tp4a_flush(t->txa), SLOTS);
	for (i = 0; i < SLOTS; i++)
		KUNIT_ASSERT_NOT_NULL(test, reap(&t->tx));
}

static void recycle_frames(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	struct tp4_frame_set p;
	u32 nr, i, lap;

	arrays_new(test, false);
	for (nr = 1; nr <= ELEMS; nr++) {
		post(&t->rx, nr - 1, 0, 0, 0);
		tp4a_populate(t->rxa);
		for (lap = 0; lap < 3; lap++) {
			for (i = 0; i < nr; i++) {
				KUNIT_ASSERT_TRUE(test,
						  tp4a_next_frame(t->rxa, &p));
				tp4f_set_frame(&p, 60, 300, true);
			}
			KUNIT_EXPECT_FALSE(test, tp4a_next_frame(t->rxa, &p));
			tp4a_recycle(t->rxa);
		}
		KUNIT_EXPECT_EQ(test, t->rxa->end - t->rxa->start, nr);
		KUNIT_EXPECT_EQ(test, t->rxa->items[t->rxa->start &
						    t->rxa->mask].offset,
				XDP_PACKET_HEADROOM);
	}
	KUNIT_EXPECT_NULL(test, reap(&t->rx));
}

static void reuse_moves_frames_to_end(struct kunit *test)
{
	/* Content of the array then: 0 to 2 to flush, the others empty */
	static const u32 last[] = { 5, 6, ELEMS - 1, 3, 4 };
	struct tp4_test *t = test->priv;
	struct tp4_frame_set p;
	u32 i;

	arrays_new(test, false);
	for (i = 0; i < ELEMS; i++)
		post(&t->rx, i, 0, 0, 0);
	tp4a_populate(t->rxa);
	for (i = 0; i < 5; i++) {
		KUNIT_ASSERT_TRUE(test, tp4a_next_frame(t->rxa, &p));
		tp4f_set_frame(&p, 60 + i, 300, true);
	}
	tp4a_reuse(t->rxa, 2);
	KUNIT_EXPECT_EQ(test, t->rxa->end - t->rxa->start, ELEMS);
	KUNIT_EXPECT_EQ(test, tp4a_flush(t->rxa), 3);
	for (i = 0; i < 3; i++) {
		struct tpacket4_desc *desc = reap(&t->rx);

		KUNIT_ASSERT_NOT_NULL(test, desc);
		KUNIT_EXPECT_EQ(test, desc->idx, i);
		KUNIT_EXPECT_EQ(test, desc->len, 60 + i);
	}
	KUNIT_EXPECT_NULL(test, reap(&t->rx));
	for (i = 0; i < ELEMS - 3; i++) {
		KUNIT_ASSERT_TRUE(test, tp4a_next_frame(t->rxa, &p));
		KUNIT_EXPECT_EQ(test, tp4f_get_data_offset(&p),
				XDP_PACKET_HEADROOM);
		if (i < 2)
			KUNIT_EXPECT_EQ(test, tp4f_get_frame_id(&p), last[i]);
		else if (i >= ELEMS - 6)
			KUNIT_EXPECT_EQ(test, tp4f_get_frame_id(&p),
					last[i - (ELEMS - 6) + 2]);
	}
	KUNIT_EXPECT_FALSE(test, tp4a_next_frame(t->rxa, &p));
}

static void add_packet_swaps_frames_of_one_area(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	struct tpacket4_desc *desc;
	u32 i;

	arrays_new(test, true);
	for (i = 0; i < 4; i++)
		post(&t->rx, 100 + i, 0, 0, 0);
	/* With enough headroom, as a chain, and with too little */
	post(&t->tx, 1, 60, XDP_PACKET_HEADROOM, 0);
	post(&t->tx, 2, 60, 300, TP4_PKT_CONT);
	post(&t->tx, 3, 60, 400, 0);
	post(&t->tx, 4, 60, 64, 0);
	KUNIT_ASSERT_EQ(test, give(t, tp4a_add_packet), 3);
	KUNIT_EXPECT_EQ(test, tp4a_flush(t->rxa), 3);
	KUNIT_EXPECT_EQ(test, tp4a_flush(t->txa), 3);

	for (i = 0; i < 4; i++) {
		static const u16 offsets[] = { 256, 300, 400, 256 };

		desc = reap(&t->rx);
		KUNIT_ASSERT_NOT_NULL(test, desc);
		KUNIT_EXPECT_EQ(test, desc->idx, i < 3 ? i + 1 : 103);
		KUNIT_EXPECT_EQ(test, desc->offset, offsets[i]);
		KUNIT_EXPECT_EQ(test, desc->flags, i == 1 ? TP4_PKT_CONT : 0);
		desc = reap(&t->tx);
		KUNIT_ASSERT_NOT_NULL(test, desc);
		KUNIT_EXPECT_EQ(test, desc->idx, i < 3 ? i + 100 : 4);
	}
}

/* A packet of one frame that does not request anything, with metadata or not */
static void post_meta(struct tp4_test *t, u64 idx, u32 flags)
{
	struct tpacket4_meta *meta = tp4_area_frame(t->tx.q.area, idx);

	meta->flags = flags;
	post(&t->tx, idx, 60, XDP_PACKET_HEADROOM, TP4_META);
}

/* Let tp4a_add_packets() take @nr packets, and tp4a_next_packet() the next one. */
static void add_packets_up_to(struct kunit *test, u32 nr)
{
	struct tp4_test *t = test->priv;
	struct tp4_frame_set p;
	u64 bytes = 1;

	KUNIT_EXPECT_EQ(test, tp4a_add_packets(t->rxa, t->txa, ELEMS, 20, 100,
					       &bytes), nr);
	KUNIT_EXPECT_EQ(test, bytes, 1 + 60 * nr);
	KUNIT_ASSERT_TRUE(test, tp4a_next_packet(t->txa, &p));
}

static void add_simple_packets(struct kunit *test, bool shared)
{
	struct tp4_test *t = test->priv;
	u64 bytes = 0;
	u32 i, nr;

	t->tx.q.meta = TP4_META;
	arrays_new(test, shared);
	for (i = 0; i < ELEMS - 2; i++)
		post(&t->rx, 100 + i, 0, 0, 0);
	post_packet(t, 0, 2, 50, 0);		/* several frames */
	post_packet(t, 2, 1, 19, 0);		/* too short */
	post_packet(t, 3, 1, 101, 0);		/* too long */
	post(&t->tx, 4, 60, XDP_PACKET_HEADROOM, 0);
	post_meta(t, 5, TP4_META_RX_HASH);
	post_meta(t, 6, 0);
	post_meta(t, 7, TP4_META_CSUM);		/* a request */
	post(&t->tx, 8, 60, XDP_PACKET_HEADROOM, 0);
	post_meta(t, 9, BIT(31));		/* not a valid flag */
	for (nr = 0; nr < ELEMS; nr++)
		post(&t->tx, 10 + nr, 60, XDP_PACKET_HEADROOM, 0);
	tp4a_populate(t->rxa);
	tp4a_populate(t->txa);

	add_packets_up_to(test, 0);
	add_packets_up_to(test, 0);
	add_packets_up_to(test, 0);
	add_packets_up_to(test, 3);
	add_packets_up_to(test, 1);
	/* To the end of the array, and on from its start */
	nr = tp4a_add_packets(t->rxa, t->txa, ELEMS, 20, 100, &bytes);
	KUNIT_EXPECT_EQ(test, nr, ELEMS - 10);
	tp4a_flush(t->txa);
	tp4a_populate(t->txa);
	nr += tp4a_add_packets(t->rxa, t->txa, 1, 20, 100, &bytes);
	KUNIT_EXPECT_EQ(test, nr, ELEMS - 9);
	/* To the last posted frame */
	nr += tp4a_add_packets(t->rxa, t->txa, ELEMS, 20, 100, &bytes);
	KUNIT_EXPECT_EQ(test, nr, ELEMS - 6);
	KUNIT_EXPECT_EQ(test, bytes, 60 * nr);
	KUNIT_EXPECT_EQ(test, tp4a_flush(t->rxa), 4 + nr);
	tp4a_flush(t->txa);

	for (i = 0; i < 4 + nr; i++) {
		u64 sent = i < 3 ? 4 + i : i == 3 ? 8 : 10 + i - 4;
		struct tpacket4_desc *desc = reap(&t->rx);

		KUNIT_ASSERT_NOT_NULL(test, desc);
		KUNIT_EXPECT_EQ(test, desc->idx, shared ? sent : 100 + i);
		KUNIT_EXPECT_EQ(test, desc->len, 60);
		KUNIT_EXPECT_EQ(test, desc->offset, XDP_PACKET_HEADROOM);
		KUNIT_EXPECT_EQ(test, desc->flags, 0);
		desc->idx = sent;
		KUNIT_EXPECT_EQ(test, memcmp(data_of(&t->rx, desc),
					     data_of(&t->tx, desc), 60), 0);
	}
	KUNIT_EXPECT_NULL(test, reap(&t->rx));
}

static void add_packets_copies(struct kunit *test)
{
	add_simple_packets(test, false);
}

static void add_packets_swaps_frames_of_one_area(struct kunit *test)
{
	add_simple_packets(test, true);
}

static void drop_without_posted_frame(struct kunit *test)
{
	struct tp4_test *t = test->priv;

	arrays_new(test, false);
	post(&t->rx, 0, 0, 0, 0);
	post_packet(t, 0, 2, ROOM, 0);	/* two frames, and one is posted */
	post_packet(t, 2, 1, 60, 0);
	post_packet(t, 3, 1, 60, 0);
	KUNIT_EXPECT_EQ(test, give(t, tp4a_copy_packet), 1);
	/* The lack of frames has flushed the array. */
	KUNIT_EXPECT_NOT_NULL(test, reap(&t->rx));
	KUNIT_EXPECT_EQ(test, tp4a_flush(t->rxa), 0);
	KUNIT_EXPECT_EQ(test, tp4a_flush(t->txa), 3);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&t->rx.q.no_desc), 2);
}

/* More frames are taken from the ring. */
static void copy_flushes_full_array(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	u32 i;

	arrays_new(test, false);
	for (i = 0; i < SLOTS; i++)
		post(&t->rx, i, 0, 0, 0);
	for (i = 0; i < SLOTS; i += ELEMS) {
		u32 k;

		for (k = 0; k < ELEMS; k += 2)
			post_packet(t, k, 2, ROOM, 0);
		KUNIT_EXPECT_EQ(test, give(t, tp4a_copy_packet), ELEMS / 2);
		tp4a_flush(t->txa);
		while (reap(&t->tx))
			;
	}
	tp4a_flush(t->rxa);
	for (i = 0; i < SLOTS; i++)
		KUNIT_ASSERT_NOT_NULL(test, reap(&t->rx));
	KUNIT_EXPECT_EQ(test, atomic_long_read(&t->rx.q.no_desc), 0);
}

/* With TP4_RING_KEEP, a quarter of the frames is not for the ring, whatever the
 * program does. There are spare frames meanwhile.
 */
static void keep_some_frames(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	u32 i, k;

	t->rx.q.flags = TP4_RING_KEEP;
	arrays_new(test, false);
	for (i = 0; i < ELEMS; i++)
		post(&t->rx, i, 0, 0, 0);
	for (i = 0; i < 3; i++) {
		/* Of three frames each: 16 of them use three quarters. */
		for (k = 0; k < 20; k++)
			post_packet(t, 3 * k, 3, ROOM, 0);
		KUNIT_EXPECT_EQ(test, give(t, tp4a_copy_packet), 20);
		KUNIT_EXPECT_EQ(test, tp4a_flush(t->rxa), i ? 0 : 16);
		tp4a_flush(t->txa);
		while (reap(&t->tx))
			;
		KUNIT_EXPECT_EQ(test, tp4a_nr_unprocessed(t->rxa) -
				      tp4a_nr_spares(t->rxa), ELEMS / 4);
	}
	for (i = 0; i < ELEMS * 3 / 4; i++)
		KUNIT_ASSERT_NOT_NULL(test, reap(&t->rx));
	KUNIT_EXPECT_NULL(test, reap(&t->rx));
	/* More than the array has room for in addition to the packets */
	for (i = 0; i < SLOTS - ELEMS / 4; i++)
		post(&t->rx, i, 0, 0, 0);
	for (i = 0; i < SLOTS - ELEMS / 4; i += k) {
		for (k = 0; k < 14; k++)
			post_packet(t, k, 1, 60, 0);
		KUNIT_EXPECT_EQ(test, give(t, tp4a_copy_packet), k);
		KUNIT_EXPECT_EQ(test, tp4a_flush(t->rxa), k);
		tp4a_flush(t->txa);
		while (reap(&t->tx))
			;
	}
}

static void expect_packet(struct kunit *test, u64 idx, u32 len, u8 first)
{
	struct tp4_test *t = test->priv;
	struct tpacket4_desc *desc = reap(&t->rx);

	KUNIT_ASSERT_NOT_NULL(test, desc);
	KUNIT_EXPECT_EQ(test, desc->idx, idx);
	KUNIT_EXPECT_EQ(test, desc->error, 0);
	KUNIT_ASSERT_EQ(test, desc->len, len);
	KUNIT_EXPECT_EQ(test, data_of(&t->rx, desc)[0], first);
	KUNIT_EXPECT_EQ(test, data_of(&t->rx, desc)[len - 1],
			(u8)(first + len - 1));
}

/* Send @nr packets of one frame. Return: how many the ring gets. */
static u32 send_some(struct kunit *test, u32 nr, u8 first)
{
	struct tp4_test *t = test->priv;
	u32 i;

	for (i = 0; i < nr; i++)
		post_packet(t, i, 1, 60 + i, first + i);
	KUNIT_EXPECT_EQ(test, give(t, tp4a_copy_packet), nr);
	nr = tp4a_flush(t->rxa);
	tp4a_flush(t->txa);
	for (; i; i--)
		KUNIT_EXPECT_NOT_NULL(test, reap(&t->tx));
	return nr;
}

/* There are frames before any is posted, or if only invalid ones are. They get
 * packets, which go to frames that are posted, if there are some.
 */
static void keep_spare_frames(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	u32 i, round;

	t->rx.q.flags = TP4_RING_KEEP;
	arrays_new(test, false);
	KUNIT_EXPECT_EQ(test, send_some(test, 20, 1), 0);
	for (i = 0; i < 8; i++)
		post(&t->rx, FRAMES + i, 0, 0, 0);
	KUNIT_EXPECT_EQ(test, send_some(test, 20, 1), 0);
	for (i = 0; i < 8; i++)
		KUNIT_EXPECT_EQ(test, reap(&t->rx)->error, EINVAL);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&t->rx.q.no_desc), 40);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&t->rx.q.invalid), 8);
	KUNIT_EXPECT_NULL(test, t->rxa->area);

	/* The array is full of spare frames, and the packets are in those. */
	tp4a_populate(t->rxa);
	KUNIT_ASSERT_EQ(test, tp4a_nr_spares(t->rxa), ELEMS);
	for (i = 0; i < 9; i++)
		post(&t->rx, i == 4 ? FRAMES : 100 + i, 0, 0, 0);
	KUNIT_EXPECT_EQ(test, send_some(test, 20, 7), 8);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&t->rx.q.no_desc), 52);
	KUNIT_EXPECT_EQ(test, reap(&t->rx)->error, EINVAL);
	for (i = 0; i < 8; i++)
		expect_packet(test, 100 + i + (i >= 4), 60 + i, 7 + i);

	/* Enough frames are posted: the spare ones go. */
	for (round = 0; round < 5; round++) {
		for (i = 0; i < ELEMS; i++)
			post(&t->rx, i, 0, 0, 0);
		KUNIT_EXPECT_EQ(test, send_some(test, 20, round), 20);
		for (i = 0; i < 20; i++)
			KUNIT_ASSERT_NOT_NULL(test, reap(&t->rx));
		while (t->rx.posted - t->rx.reaped > SLOTS - ELEMS) {
			KUNIT_EXPECT_EQ(test, send_some(test, 1, round), 1);
			KUNIT_ASSERT_NOT_NULL(test, reap(&t->rx));
		}
	}
	KUNIT_EXPECT_EQ(test, tp4a_nr_spares(t->rxa), 0);
	KUNIT_EXPECT_PTR_EQ(test, t->rxa->area, (const void *)&t->area[0]);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&t->rx.q.no_desc), 52);
}

/* A packet may have frames of both kinds. */
static void keep_spare_frames_of_chains(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	u32 i, k;

	t->rx.q.flags = TP4_RING_KEEP;
	arrays_new(test, false);
	for (i = 0; i < 8; i++)
		post(&t->rx, i, 0, 0, 0);
	/* Four frames are enough for one packet, and a quarter is kept. */
	for (i = 0; i < 4; i++)
		post_packet(t, 3 * i, 3, ROOM, 10 * i);
	KUNIT_EXPECT_EQ(test, give(t, tp4a_copy_packet), 4);
	for (i = 0; i < 2; i++)
		post(&t->rx, 8 + i, 0, 0, 0);
	/* The third one would use the frames to keep, and the fourth one needs
	 * more than are posted.
	 */
	KUNIT_EXPECT_EQ(test, tp4a_flush(t->rxa), 2);
	tp4a_flush(t->txa);
	for (i = 0; i < 2; i++) {
		for (k = 0; k < 3; k++)
			expect_packet(test, 3 * i + k, ROOM,
				      10 * i + k * ROOM);
	}
	KUNIT_EXPECT_NULL(test, reap(&t->rx));
	KUNIT_EXPECT_EQ(test, atomic_long_read(&t->rx.q.no_desc), 2);
	tp4a_free(t->rxa);
	t->rxa = NULL;
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, reap(&t->rx)->error, ECANCELED);
	KUNIT_EXPECT_EQ(test, t->rx.posted, t->rx.reaped);
}

/* A sender in the same area gets its own frames back. */
static void spare_frames_are_not_swapped(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	u32 i, nr, round;
	u64 bytes = 0;

	t->rx.q.flags = TP4_RING_KEEP;
	arrays_new(test, true);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < 11; i++)
			post(&t->tx, i, 60, XDP_PACKET_HEADROOM,
			     i == 8 || i == 9 ? TP4_PKT_CONT : 0);
		if (!round) {
			KUNIT_EXPECT_EQ(test, give(t, tp4a_add_packet), 9);
		} else {
			tp4a_populate(t->rxa);
			tp4a_populate(t->txa);
			nr = tp4a_add_packets(t->rxa, t->txa, 8, 60, 60,
					      &bytes);
			KUNIT_EXPECT_EQ(test, nr, 8);
			KUNIT_EXPECT_EQ(test, give(t, tp4a_add_packet), 1);
		}
		KUNIT_EXPECT_EQ(test, tp4a_flush(t->rxa), 0);
		tp4a_flush(t->txa);
		for (i = 0; i < 11; i++)
			KUNIT_EXPECT_EQ(test, reap(&t->tx)->idx, i);
	}
	KUNIT_EXPECT_EQ(test, atomic_long_read(&t->rx.q.no_desc), 18);
}

/* A device that completes in any order may have returned only some. */
static void spare_frames_out_of_order(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	struct tpacket4_desc *desc;
	struct tp4_frame_set p;
	u32 i, nr;
	u64 spare;

	t->rx.q.flags = TP4_RING_KEEP;
	arrays_new(test, false);
	for (i = 0; i < 2; i++)
		post(&t->rx, i, 0, 0, 0);
	tp4a_populate(t->rxa);
	nr = tp4a_get_unprocessed(t->rxa, 0, &p);
	KUNIT_ASSERT_EQ(test, nr, TP4_KEEP);
	p.curr += nr - 1;
	spare = tp4f_get_frame_id(&p);
	tp4a_handed_out(t->rxa, nr);
	KUNIT_EXPECT_TRUE(test, tp4a_next_by_id(t->rxa, spare, &p));
	KUNIT_EXPECT_TRUE(test, tp4a_next_by_id(t->rxa, 1, &p));
	tp4a_free(t->rxa);
	t->rxa = NULL;
	/* One frame of the ring is missing. */
	desc = reap(&t->rx);
	KUNIT_ASSERT_NOT_NULL(test, desc);
	KUNIT_EXPECT_EQ(test, desc->error, EIO);
	KUNIT_EXPECT_EQ(test, desc->idx, U64_MAX);
	desc = reap(&t->rx);
	KUNIT_ASSERT_NOT_NULL(test, desc);
	KUNIT_EXPECT_EQ(test, desc->error, ECANCELED);
	KUNIT_EXPECT_EQ(test, desc->idx, 1);
	KUNIT_EXPECT_NULL(test, reap(&t->rx));
	tp4_release_area(t->rx.end.area);
}

static void free_returns_all_frames(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	struct tpacket4_desc *desc;
	struct tp4_frame_set p;
	u32 i;

	arrays_new(test, false);
	for (i = 0; i < 10; i++) {
		post(&t->rx, i, 0, 0, 0);
		post_packet(t, i, 1, 60, 0);
	}
	tp4a_populate(t->rxa);
	tp4a_populate(t->txa);
	KUNIT_ASSERT_TRUE(test, tp4a_next_packet(t->txa, &p));
	KUNIT_ASSERT_TRUE(test, tp4a_copy_packet(t->rxa, &p));
	tp4a_free(t->rxa);
	tp4a_free(t->txa);
	t->rxa = NULL;
	t->txa = NULL;
	for (i = 0; i < 10; i++) {
		desc = reap(&t->rx);
		KUNIT_ASSERT_NOT_NULL(test, desc);
		KUNIT_EXPECT_EQ(test, desc->error, ECANCELED);
		KUNIT_EXPECT_EQ(test, desc->len, 0);
		desc = reap(&t->tx);
		KUNIT_ASSERT_NOT_NULL(test, desc);
		KUNIT_EXPECT_EQ(test, desc->error, ECANCELED);
	}
}

static void rx_new_takes_frames_of_copy_mode(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	unsigned long pos;
	u32 i;

	/* More than fits the array */
	end_init(&t->rx, &t->area[0]);
	for (i = 0; i < SLOTS - 1; i++)
		post(&t->rx, 10 + i, 0, 0, 0);
	KUNIT_ASSERT_FALSE(test, tp4q_rx_reserve(&t->rx.q, SLOTS, &pos));
	KUNIT_ASSERT_EQ(test, t->rx.q.in, SLOTS - 1);
	t->rxa = tp4a_rx_new(&t->rx.end, ELEMS, NULL);
	KUNIT_ASSERT_NOT_NULL(test, t->rxa);
	tp4a_populate(t->rxa);
	KUNIT_EXPECT_EQ(test, t->rxa->end - t->rxa->start, ELEMS);
	KUNIT_EXPECT_EQ(test, t->rxa->items[ELEMS - 1].idx, 10 + ELEMS - 1);
	KUNIT_EXPECT_EQ(test, t->rx.q.in - atomic_long_read(&t->rx.q.out),
			ELEMS);
}

static void skb_source(struct kunit *test)
{
	static const u32 skbs[][3] = {	/* linear, frags, bytes of each */
		{ 60, 0, 0 }, { 1500, 0, 0 }, { 14, 1, 1500 }, { 54, 3, 900 },
		{ 0, 2, 700 }, { 20, 17, 500 },
	};
	struct tp4_test *t = test->priv;
	struct tp4_packet_array *from;
	struct tp4_frame_set p;
	u32 i, k, len, pos;

	arrays_new(test, false);
	from = tp4a_skb_source_new(ELEMS);
	KUNIT_ASSERT_NOT_NULL(test, from);
	for (i = 0; i < ARRAY_SIZE(skbs); i++) {
		len = skbs[i][0] + skbs[i][1] * skbs[i][2];
		for (k = 0; k < DIV_ROUND_UP(len, ROOM); k++)
			post(&t->rx, k, 0, 0, 0);
		tp4a_populate(t->rxa);
		KUNIT_EXPECT_EQ(test, tp4a_add_skb(from, skb_of(test,
								skbs[i][0],
								skbs[i][1],
								skbs[i][2])),
				0);
		tp4a_populate(from);
		KUNIT_ASSERT_TRUE(test, tp4a_next_packet(from, &p));
		KUNIT_EXPECT_EQ(test, tp4f_packet_len(&p), len);
		KUNIT_ASSERT_TRUE(test, tp4a_copy_packet(t->rxa, &p));
		KUNIT_EXPECT_FALSE(test, tp4a_next_packet(from, &p));
		KUNIT_EXPECT_EQ(test, tp4a_flush(from), 1);
		KUNIT_EXPECT_EQ(test, tp4a_flush(t->rxa), 1);
		for (pos = 0; pos < len;) {
			struct tpacket4_desc *desc = reap(&t->rx);

			KUNIT_ASSERT_NOT_NULL(test, desc);
			for (k = 0; k < desc->len; k++, pos++)
				KUNIT_ASSERT_EQ(test, data_of(&t->rx, desc)[k],
						(u8)pos);
		}
	}
	/* Packets not flushed are freed with the array; kmemleak would report
	 * them.
	 */
	tp4a_add_skb(from, skb_of(test, 60, 1, 100));
	tp4a_populate(from);
	tp4a_add_skb(from, skb_of(test, 60, 1, 100));
	tp4a_free(from);
}

/* Let the next allocation fail. Return false if that is not supported. */
static bool no_memory(void)
{
#ifdef CONFIG_FAILSLAB
	current->fail_nth = 1;
	return true;
#else
	return false;
#endif
}

static void enough_memory(void)
{
#ifdef CONFIG_FAILSLAB
	current->fail_nth = 0;
#endif
}

/* An skb that the source must modify, so that it is copied */
static struct sk_buff *skb_to_copy(struct kunit *test, u32 kind)
{
	struct sk_buff *skb;

	switch (kind) {
	case 0:
		/* More frames than a packet may have */
		return skb_of(test, 20, TP4_MAX_FRAMES, 50);
	case 1:
		/* A VLAN tag without headroom for it */
		skb = skb_of(test, 60, 1, 100);
		skb_push(skb, 32);
		__vlan_hwaccel_put_tag(skb, htons(ETH_P_8021Q), 7);
		return skb;
	default:
		/* A checksum in shared data */
		skb = skb_of(test, 60, 1, 100);
		skb->ip_summed = CHECKSUM_PARTIAL;
		skb->csum_start = skb_headroom(skb) + 34;
		skb->csum_offset = 6;
		return skb;
	}
}

static void skb_source_without_memory(struct kunit *test)
{
	struct tp4_packet_array *from = tp4a_skb_source_new(ELEMS);
	struct tp4_frame_set p;
	u32 kind, lap;

	KUNIT_ASSERT_NOT_NULL(test, from);
	for (kind = 0; kind < 3; kind++) {
		for (lap = 0; lap < 2; lap++) {
			struct sk_buff *skb = skb_to_copy(test, kind);
			struct sk_buff *other = skb_clone(skb, GFP_KERNEL);
			int drops;

			KUNIT_ASSERT_NOT_NULL(test, other);
			if (lap && !no_memory()) {
				kfree_skb(skb);
				kfree_skb(other);
				tp4a_free(from);
				kunit_skip(test, "needs CONFIG_FAILSLAB");
			}
			drops = tp4a_add_skb(from, skb);
			enough_memory();
			kfree_skb(other);
			KUNIT_EXPECT_EQ(test, drops, lap);
			tp4a_populate(from);
			KUNIT_EXPECT_EQ(test, tp4a_next_packet(from, &p), !lap);
			tp4a_flush(from);
		}
	}
	tp4a_free(from);
}

/* Data that the CPU must not read, and a GSO type that cannot be segmented */
static void skb_source_drops_invalid_skbs(struct kunit *test)
{
	struct tp4_packet_array *from = tp4a_skb_source_new(ELEMS);
	struct tp4_frame_set p;
	struct sk_buff *skb;

	KUNIT_ASSERT_NOT_NULL(test, from);
	skb = skb_of(test, 60, 1, 100);
	skb->unreadable = 1;
	KUNIT_EXPECT_EQ(test, tp4a_add_skb(from, skb), 1);
	skb = skb_of(test, 60, 3, 1000);
	skb_reset_mac_header(skb);
	skb->protocol = htons(ETH_P_LOOPBACK);
	skb_shinfo(skb)->gso_size = 1000;
	skb_shinfo(skb)->gso_type = SKB_GSO_TCPV4;
	KUNIT_EXPECT_EQ(test, tp4a_add_skb(from, skb), 1);
	tp4a_populate(from);
	KUNIT_EXPECT_FALSE(test, tp4a_next_packet(from, &p));
	tp4a_free(from);
}

static void skb_source_with_full_array(struct kunit *test)
{
	struct tp4_packet_array *from = tp4a_skb_source_new(ELEMS);
	struct tp4_frame_set p;
	u32 i, nr = 0;

	KUNIT_ASSERT_NOT_NULL(test, from);
	for (i = 0; i < 3 * ELEMS; i++)
		tp4a_add_skb(from, skb_of(test, 60 + i % 7, i % 3, 10));
	for (;;) {
		tp4a_populate(from);
		if (!tp4a_next_packet(from, &p))
			break;
		do {
			KUNIT_EXPECT_EQ(test, tp4f_packet_len(&p),
					60 + nr % 7 + nr % 3 * 10);
			nr++;
		} while (tp4a_next_packet(from, &p));
		tp4a_flush(from);
	}
	KUNIT_EXPECT_EQ(test, nr, 3 * ELEMS);
	tp4a_free(from);
}

static void keep_skb(void *opaque, struct sk_buff *skb)
{
	struct tp4_test *t = opaque;

	if (!skb) {
		t->lost++;
		return;
	}
	if (t->skbs++ && t->first_only) {
		kfree_skb(skb);
		return;
	}
	kfree_skb(t->skb);
	t->skb = skb;
}

static void skb_sink(struct kunit *test)
{
	static const u32 lens[][2] = {	/* frames, bytes of each */
		{ 1, 60 }, { 1, 1514 }, { 1, FRAME_BYTES - 64 }, { 2, 30 },
		{ 5, 1900 }, { 17, 1000 }, { 17, FRAME_BYTES - 64 },
	};
	struct tp4_test *t = test->priv;
	struct tp4_packet_array *to;
	struct tp4_frame_set p;
	u32 i, k, len;

	arrays_new(test, false);
	to = tp4a_skb_sink_new(ELEMS, t, keep_skb);
	KUNIT_ASSERT_NOT_NULL(test, to);
	local_bh_disable();
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		len = lens[i][0] * lens[i][1];
		post_packet(t, 0, lens[i][0], lens[i][1], i);
		tp4a_populate(to);
		tp4a_populate(t->txa);
		KUNIT_EXPECT_TRUE(test, tp4a_next_packet(t->txa, &p));
		KUNIT_EXPECT_TRUE(test, tp4a_copy_packet(to, &p));
		KUNIT_EXPECT_EQ(test, tp4a_flush(to), 1);
		KUNIT_EXPECT_EQ(test, tp4a_flush(t->txa), 1);
		KUNIT_EXPECT_EQ(test, t->skbs, i + 1);
		if (!t->skb || t->skb->len != len) {
			KUNIT_FAIL(test, "no skb of %u bytes", len);
			break;
		}
		KUNIT_EXPECT_GE(test, skb_headroom(t->skb),
				XDP_PACKET_HEADROOM);
		for (k = 0; k < len; k++) {
			u8 byte;

			skb_copy_bits(t->skb, k, &byte, 1);
			if (byte != (u8)(i + k))
				break;
		}
		KUNIT_EXPECT_EQ(test, k, len);
		while (reap(&t->tx))
			;
	}
	local_bh_enable();
	tp4a_free(to);
}

/* More bytes than the frags of two skbs hold */
static void skb_sink_with_many_frames(struct kunit *test)
{
	struct sk_buff *skb = skb_of(test, 0, TP4_MAX_FRAMES, 3500);
	struct tp4_packet_array *from, *to;
	struct tp4_test *t = test->priv;
	struct tp4_frame_set p;
	u32 k, len = skb->len;

	from = tp4a_skb_source_new(ELEMS);
	to = tp4a_skb_sink_new(4 * ELEMS, t, keep_skb);
	KUNIT_ASSERT_NOT_NULL(test, from);
	KUNIT_ASSERT_NOT_NULL(test, to);
	KUNIT_ASSERT_GT(test, len, 2 * (1 + MAX_SKB_FRAGS) * to->room);
	KUNIT_EXPECT_EQ(test, tp4a_add_skb(from, skb), 0);
	local_bh_disable();
	tp4a_populate(from);
	tp4a_populate(to);
	KUNIT_EXPECT_TRUE(test, tp4a_next_packet(from, &p));
	KUNIT_EXPECT_TRUE(test, tp4a_copy_packet(to, &p));
	KUNIT_EXPECT_EQ(test, tp4a_flush(from), 1);
	KUNIT_EXPECT_EQ(test, tp4a_flush(to), 1);
	local_bh_enable();
	KUNIT_EXPECT_TRUE(test, t->skb && t->skb->len == len);
	for (k = 0; t->skb && k < len; k++) {
		u8 byte;

		if (skb_copy_bits(t->skb, k, &byte, 1) || byte != (u8)k)
			break;
	}
	KUNIT_EXPECT_EQ(test, k, len);
	tp4a_free(from);
	tp4a_free(to);
}

/* A packet is dropped, and this is reported, if an skb, or a second one for it,
 * cannot be allocated. Packets after it are not dropped.
 */
static void skb_sink_without_memory(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	struct tp4_packet_array *to;
	struct tp4_frame_set p;
	struct rnd_state rnd;
	u32 i, wrong = 0;

	if (!no_memory())
		kunit_skip(test, "needs CONFIG_FAILSLAB");
	enough_memory();
	arrays_new(test, false);
	to = tp4a_skb_sink_new(ELEMS, t, keep_skb);
	KUNIT_ASSERT_NOT_NULL(test, to);
	prandom_seed_state(&rnd, 6);
	local_bh_disable();
	for (i = 0; i < 1000; i++) {
		u32 what = prandom_u32_state(&rnd);
		u32 nr = what & 1 ? TP4_MAX_FRAMES : 1, skbs = t->skbs;

		post_packet(t, 0, nr, FRAME_BYTES - 64, i);
		tp4a_populate(to);
		tp4a_populate(t->txa);
		tp4a_next_packet(t->txa, &p);
		wrong += !tp4a_copy_packet(to, &p);
		if (what & 2)
			no_memory();
		tp4a_flush(to);
		enough_memory();
		wrong += t->skbs + t->lost != i + 1;
		if (t->skbs != skbs)
			wrong += t->skb->len != nr * (FRAME_BYTES - 64);
		wrong += to->start != to->curr;
		tp4a_flush(t->txa);
		while (reap(&t->tx))
			;
	}
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, wrong, 0);
	KUNIT_EXPECT_GT(test, t->lost, 0);
	tp4a_free(to);
}

#define UNIT		64
#define RUN_PAGES	4
#define RUN		(RUN_PAGES * PAGE_SIZE)

/* Let frames start every 64 bytes, and consist of parts of four pages. */
static void use_runs(struct tp4_test *t)
{
	int i;

	for (i = 0; i < 2; i++) {
		struct tp4_area *area = &t->area[i];

		area->frame_unit = UNIT;
		area->frame_shift = ilog2(UNIT);
		area->nr_frames = (FRAMES - 1) * FRAME_BYTES / UNIT + 1;
		area->nr_safe = 0;
		area->run_pages = RUN_PAGES;
		area->run_mask = RUN / UNIT - 1;
		area->run_last = (RUN - FRAME_BYTES) / UNIT;
	}
}

static void expect_returned(struct kunit *test, struct end *end, u64 idx,
			    u8 error)
{
	struct tpacket4_desc *desc = reap(end);

	KUNIT_ASSERT_NOT_NULL(test, desc);
	KUNIT_EXPECT_EQ(test, desc->idx, idx);
	KUNIT_EXPECT_EQ(test, desc->error, error);
}

static void without_spares(struct tp4_packet_array *a)
{
	if (!a->spares)
		return;
	a->spares->nr = 0;
	a->spares->nr_free = 0;
}

static void populate_refuses_frames_across_runs(struct kunit *test)
{
	static const u32 flags[] = { 0, TP4_RING_KEEP };
	struct tp4_test *t = test->priv;
	u64 idx, last;
	u32 i;

	use_runs(t);
	last = t->area[0].run_last;
	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		t->rx.q.flags = flags[i];
		t->tx.q.flags = 0;
		arrays_new(test, false);
		without_spares(t->rxa);
		for (idx = 0; idx < t->area[0].nr_frames; idx++) {
			u8 error = idx % (RUN / UNIT) > last ? EINVAL : 0;

			post(&t->rx, idx, 0, 0, 0);
			post(&t->tx, idx, 60, 0, 0);
			tp4a_populate(t->rxa);
			tp4a_populate(t->txa);
			KUNIT_ASSERT_EQ(test, tp4a_nr_unprocessed(t->rxa),
					!error);
			KUNIT_ASSERT_EQ(test, tp4a_nr_unprocessed(t->txa),
					!error);
			t->txa->curr = t->txa->end;
			tp4a_flush(t->txa);
			expect_returned(test, &t->tx, idx, error);
			if (!error) {
				tp4a_advance(t->rxa, 1);
				t->rxa->keep = 0;
				tp4a_flush(t->rxa);
			}
			expect_returned(test, &t->rx, idx, error);
		}
		tp4a_free(t->rxa);
		tp4a_free(t->txa);
		t->rxa = NULL;
		t->txa = NULL;
		memset(&t->rx, 0, sizeof(t->rx));
		memset(&t->tx, 0, sizeof(t->tx));
	}
}

/* The data of a frame at any position is where its page says. */
static void page_of_data(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	struct tp4_frame_set p;
	u64 idx;

	use_runs(t);
	arrays_new(test, false);
	for (idx = 0; idx <= t->area[0].run_last; idx++) {
		u64 pos = idx * UNIT + XDP_PACKET_HEADROOM;
		void *data = t->area[0].addr + pos;

		post(&t->rx, idx, 0, 0, 0);
		tp4a_populate(t->rxa);
		KUNIT_ASSERT_TRUE(test, tp4a_next_frame(t->rxa, &p));
		KUNIT_EXPECT_PTR_EQ(test, tp4f_get_data(&p), data);
		KUNIT_EXPECT_PTR_EQ(test, tp4f_get_page(&p),
				    virt_to_page(data));
		KUNIT_EXPECT_PTR_EQ(test, tp4a_get_page(t->rxa, data - 12),
				    virt_to_page(data - 12));
		tp4a_flush(t->rxa);
		expect_returned(test, &t->rx, idx, 0);
	}
}

static void expect_dma(struct kunit *test, bool contiguous)
{
	struct device *dev = kunit_device_register(test, "tp4_array");
	struct tp4_test *t = test->priv;
	struct tp4_frame_set p;
	u32 i;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, dev);
	dev->dma_mask = &dev->coherent_dma_mask;
	KUNIT_ASSERT_EQ(test, dma_set_mask_and_coherent(dev, DMA_BIT_MASK(64)),
			0);

	end_init(&t->rx, &t->area[0]);
	end_init(&t->tx, &t->area[0]);
	add_spares(test, &t->rx);
	t->rxa = tp4a_rx_new(&t->rx.end, ELEMS, dev);
	KUNIT_ASSERT_NOT_NULL(test, t->rxa);
	t->txa = tp4a_tx_new(&t->tx.end, ELEMS, dev);
	KUNIT_ASSERT_NOT_NULL(test, t->txa);
	if (!t->rxa->spares)
		KUNIT_EXPECT_PTR_EQ(test, t->rxa->dma, t->txa->dma);
	KUNIT_EXPECT_EQ(test, !t->rxa->dma, contiguous);
	for (i = 0; i < 8; i++)
		post(&t->rx, t->area[0].nr_frames - 1 - 31 * i, 0, 0, 0);
	tp4a_populate(t->rxa);
	for (i = 0; i < 8; i++) {
		u64 pos = ((t->area[0].nr_frames - 1 - 31ULL * i) <<
			   t->area[0].frame_shift) + XDP_PACKET_HEADROOM;
		struct page *page = t->area[0].pages[pos / PAGE_SIZE];

		KUNIT_ASSERT_TRUE(test, tp4a_next_frame(t->rxa, &p));
		KUNIT_EXPECT_EQ(test, tp4f_get_dma(&p),
				phys_to_dma(dev, page_to_phys(page)) +
				pos % PAGE_SIZE);
		tp4f_dma_sync_for_device(&p, 64);
		tp4f_dma_sync_for_cpu(&p, 64);
	}
	/* DMA_API_DEBUG reports pages that stay mapped. */
	tp4a_free(t->rxa);
	t->rxa = NULL;
	tp4a_free(t->txa);
	t->txa = NULL;
	kunit_device_unregister(test, dev);
}

static void contiguous_dma_addresses(struct kunit *test)
{
	expect_dma(test, true);
}

/* All pages but one have contiguous DMA addresses. */
static void scattered_dma_addresses(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	u32 nr = t->area[0].nr_pages;

	swap(t->area[0].pages[nr - 2], t->area[0].pages[nr - 1]);
	expect_dma(test, false);
}

/* Runs of pages are mapped in one piece. */
static void dma_addresses_of_runs(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	u32 i, nr = t->area[0].nr_pages;

	use_runs(t);
	/* The last two runs change places. */
	for (i = 0; i < RUN_PAGES; i++)
		swap(t->area[0].pages[nr - 2 * RUN_PAGES + i],
		     t->area[0].pages[nr - RUN_PAGES + i]);
	expect_dma(test, false);
}

static void each_frame_returned_once(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	struct tpacket4_desc *desc;
	u8 where[FRAMES] = {};		/* 0: free, 1: posted */
	struct rnd_state rnd;
	u32 round, i, nr_free = 0;

	arrays_new(test, true);
	prandom_seed_state(&rnd, 4);
	for (round = 0; round < 5000; round++) {
		u32 what = prandom_u32_state(&rnd);
		u32 frame = what >> 8 & (FRAMES - 1);
		struct tp4_frame_set p;

		switch (what % 6) {
		case 0:
		case 1:
			if (where[frame] || t->rx.posted - t->rx.reaped == SLOTS)
				break;
			where[frame] = 1;
			post(&t->rx, frame, 0, 0, 0);
			break;
		case 2:
			if (where[frame] || t->tx.posted - t->tx.reaped == SLOTS)
				break;
			where[frame] = 1;
			post(&t->tx, frame, 60, what >> 16 & 0x1ff, 0);
			break;
		case 3:
			tp4a_populate(t->rxa);
			tp4a_populate(t->txa);
			while (tp4a_next_packet(t->txa, &p))
				tp4a_add_packet(t->rxa, &p);
			break;
		case 4:
			if (what & 0x10000)
				tp4a_recycle(t->rxa);
			tp4a_flush(t->rxa);
			tp4a_flush(t->txa);
			break;
		case 5:
			while ((desc = reap(&t->rx)) || (desc = reap(&t->tx))) {
				KUNIT_ASSERT_LT(test, desc->idx, FRAMES);
				KUNIT_ASSERT_EQ(test, where[desc->idx], 1);
				where[desc->idx] = 0;
			}
			break;
		}
	}

	for (i = 0; i < 4; i++) {
		tp4a_populate(t->rxa);
		tp4a_populate(t->txa);
		t->txa->curr = t->txa->end;
		t->rxa->curr = t->rxa->end;
		tp4a_flush(t->rxa);
		tp4a_flush(t->txa);
	}
	while ((desc = reap(&t->rx)) || (desc = reap(&t->tx))) {
		KUNIT_ASSERT_EQ(test, where[desc->idx], 1);
		where[desc->idx] = 0;
	}
	for (i = 0; i < FRAMES; i++)
		nr_free += !where[i];
	KUNIT_EXPECT_EQ(test, nr_free, FRAMES);
}

/* Packets of one to three frames that the device completes out of order. The
 * slots of the ring are returned in order.
 */
static void tx_out_of_order_completion(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	struct {
		u32	handle;
		bool	sent;
	} way[ELEMS];
	u32 first = 0, last = 0, round, i;
	struct tpacket4_desc *desc;
	struct tp4_frame_set p;
	struct rnd_state rnd;
	u8 ids[SLOTS];

	arrays_new(test, false);
	prandom_seed_state(&rnd, 5);
	for (round = 0; round < 5000 || t->tx.reaped != t->tx.posted; round++) {
		u32 what = prandom_u32_state(&rnd), nr = 1 + what % 3;
		u32 packets = 0;

		if (round < 5000 &&
		    t->tx.posted + nr <= t->tx.reaped + SLOTS) {
			for (i = 0; i < nr; i++)
				ids[(t->tx.posted + i) % SLOTS] = round % 200 + i;
			post_packet(t, round % 200, nr, 10, 0);
		}
		tp4a_populate(t->txa);
		while (tp4a_next_packet(t->txa, &p)) {
			i = last++ % ELEMS;
			way[i].handle = tp4f_get_handle(&p);
			way[i].sent = false;
			KUNIT_ASSERT_LT(test, way[i].handle, ELEMS);
		}
		for (i = 0; i < (what >> 8 & 3) && first != last; i++) {
			u32 k = prandom_u32_state(&rnd) % (last - first);

			k = (first + k) % ELEMS;
			if (way[k].sent)
				continue;
			tp4a_packet_completed(t->txa, way[k].handle);
			way[k].sent = true;
		}
		for (; first != last && way[first % ELEMS].sent; first++)
			packets++;
		KUNIT_ASSERT_EQ(test, tp4a_flush_completed(t->txa), packets);
		while ((desc = reap(&t->tx))) {
			i = (t->tx.reaped - 1) % SLOTS;
			KUNIT_ASSERT_EQ(test, desc->idx, ids[i]);
			KUNIT_ASSERT_EQ(test, desc->error, 0);
		}
		KUNIT_ASSERT_LT(test, round, 50000);
	}
	KUNIT_EXPECT_EQ(test, first, last);
}

/* Frames that a device fills out of order */
struct any_order {
	struct rnd_state	rnd;
	bool			posted[FRAMES];
	u64			has[ELEMS];	/* the device, this many: */
	u32			nr;
};

static void any_order_take(struct kunit *test, struct any_order *any)
{
	struct tp4_test *t = test->priv;
	struct tp4_frame_set p;
	u32 nr, i;

	tp4a_populate(t->rxa);
	KUNIT_ASSERT_EQ(test, tp4a_nr_handed_out(t->rxa), any->nr);
	nr = tp4a_get_unprocessed(t->rxa, any->nr, &p);
	KUNIT_ASSERT_LE(test, any->nr + nr, ELEMS);
	nr = min(nr, prandom_u32_state(&any->rnd) % 16);
	tp4a_handed_out(t->rxa, nr);
	for (; nr; nr--, p.curr++) {
		u64 id = tp4f_get_frame_id(&p);

		KUNIT_ASSERT_LT(test, id, FRAMES);
		KUNIT_ASSERT_TRUE(test, any->posted[id]);
		for (i = 0; i < any->nr; i++)
			KUNIT_ASSERT_NE(test, id, any->has[i]);
		any->has[any->nr++] = id;
	}
}

/* The device returns any of its frames. */
static void any_order_next(struct kunit *test, struct any_order *any, bool last)
{
	u32 i = prandom_u32_state(&any->rnd) % any->nr;
	struct tp4_test *t = test->priv;
	struct tp4_frame_set p;
	u64 id = any->has[i];

	any->has[i] = any->has[--any->nr];
	KUNIT_ASSERT_TRUE(test, tp4a_next_by_id(t->rxa, id, &p));
	KUNIT_ASSERT_EQ(test, tp4f_get_frame_id(&p), id);
	KUNIT_ASSERT_EQ(test, tp4f_get_data_offset(&p), XDP_PACKET_HEADROOM);
	KUNIT_ASSERT_TRUE(test, tp4f_is_last_frame(&p));
	/* So that the program can check that it is the frame that was filled */
	tp4f_set_frame(&p, 64 + id, tp4f_get_data_offset(&p), last);
}

static void any_order_reap(struct kunit *test, struct any_order *any)
{
	struct tp4_test *t = test->priv;
	struct tpacket4_desc *desc;

	while ((desc = reap(&t->rx))) {
		KUNIT_ASSERT_LT(test, desc->idx, FRAMES);
		KUNIT_ASSERT_TRUE(test, any->posted[desc->idx]);
		any->posted[desc->idx] = false;
		if (desc->error)
			KUNIT_ASSERT_EQ(test, desc->len, 0);
		else
			KUNIT_ASSERT_EQ(test, desc->len, 64 + desc->idx);
	}
}

static void any_order_run(struct kunit *test)
{
	struct any_order *any = kunit_kzalloc(test, sizeof(*any), GFP_KERNEL);
	struct tp4_test *t = test->priv;
	u32 round, i;

	KUNIT_ASSERT_NOT_NULL(test, any);
	prandom_seed_state(&any->rnd, 6);
	for (round = 0; round < 20000; round++) {
		u32 what = prandom_u32_state(&any->rnd);
		u32 nr = 1 + (what >> 8) % 3, frame = what >> 16 & (FRAMES - 1);

		switch (what % 8) {
		case 0:
		case 1:
		case 2:
			if (any->posted[frame] ||
			    t->rx.posted - t->rx.reaped == SLOTS)
				break;
			any->posted[frame] = true;
			post(&t->rx, frame, 0, 0, 0);
			break;
		case 3:
			any_order_take(test, any);
			break;
		case 4:
		case 5:
			/* A packet, which may be invalid */
			if (any->nr < nr)
				break;
			for (i = 0; i < nr; i++)
				any_order_next(test, any, i + 1 == nr);
			if (what & 0x1000)
				tp4a_reuse(t->rxa, nr);
			break;
		case 6:
			if ((what >> 8) % 8 == 0)
				tp4a_recycle(t->rxa);
			local_bh_disable();
			tp4a_flush(t->rxa);
			local_bh_enable();
			break;
		case 7:
			any_order_reap(test, any);
			break;
		}
	}

	/* Frames that the device has not used, and packets not flushed */
	any_order_take(test, any);
	KUNIT_EXPECT_GT(test, any->nr, 0);
	while (any->nr)
		any_order_next(test, any, true);
	tp4a_free(t->rxa);
	t->rxa = NULL;
	any_order_reap(test, any);
	/* Descriptors that did not fit the array are still posted. */
	for (; t->rx.reaped != t->rx.posted; t->rx.reaped++)
		any->posted[t->rx.ring[t->rx.reaped % SLOTS].idx] = false;
	for (i = 0; i < FRAMES; i++)
		KUNIT_EXPECT_FALSE(test, any->posted[i]);
}

static void rx_out_of_order_completion(struct kunit *test)
{
	arrays_new(test, false);
	any_order_run(test);
}

/* A device returns two of three frames, and then one that it does not have. */
static void no_frame_given_out_twice(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	struct tpacket4_desc *desc;
	struct tp4_frame_set p;
	u32 i, errors = 0;

	arrays_new(test, false);
	for (i = 0; i < 5; i++)
		post(&t->rx, i, 0, 0, 0);
	tp4a_populate(t->rxa);
	KUNIT_EXPECT_FALSE(test, tp4a_next_by_id(t->rxa, 0, &p));
	KUNIT_EXPECT_EQ(test, tp4a_get_unprocessed(t->rxa, 0, &p), 5);
	tp4a_handed_out(t->rxa, 3);
	KUNIT_EXPECT_TRUE(test, tp4a_next_by_id(t->rxa, 2, &p));
	KUNIT_EXPECT_TRUE(test, tp4a_next_by_id(t->rxa, 1, &p));
	KUNIT_EXPECT_EQ(test, tp4a_nr_handed_out(t->rxa), 1);

	/* Nobody knows which frame the device still has, so none is named. */
	tp4a_free(t->rxa);
	t->rxa = NULL;
	KUNIT_EXPECT_EQ(test, refcount_read(&t->area[0].users), 2);
	for (i = 0; i < 5; i++) {
		desc = reap(&t->rx);
		KUNIT_ASSERT_NOT_NULL(test, desc);
		if (desc->error == EIO) {
			KUNIT_EXPECT_EQ(test, desc->idx, U64_MAX);
			errors++;
			continue;
		}
		KUNIT_EXPECT_EQ(test, desc->error, ECANCELED);
		KUNIT_EXPECT_NE(test, desc->idx, 0);
	}
	KUNIT_EXPECT_EQ(test, errors, 1);

	/* All are back. */
	tp4a_free(t->txa);
	arrays_new(test, false);
	KUNIT_EXPECT_EQ(test, tp4a_nr_handed_out(t->rxa), 0);
}

/* An XDP program, as used by the arrays */
static unsigned int drop_odd(const void *ctx, const struct bpf_insn *insn)
{
	const struct xdp_buff *xdp = ctx;

	return (xdp->data_end - xdp->data) % 2 ? XDP_DROP : XDP_PASS;
}

static unsigned int send_all(const void *ctx, const struct bpf_insn *insn)
{
	return XDP_TX;
}

/* As if the driver's ring was full */
static int xmit_full(void *arg, struct xdp_frame *frame)
{
	return -ENOBUFS;
}

/* Run a program on packets of the Rx array. */
static void xdp_new(struct kunit *test, struct tp4_xdp *xdp,
		    unsigned int (*func)(const void *ctx,
					 const struct bpf_insn *insn))
{
	struct bpf_prog *prog = kunit_kzalloc(test, sizeof(*prog), GFP_KERNEL);
	struct tp4_test *t = test->priv;
	struct bpf_prog_aux *aux;

	aux = kunit_kzalloc(test, sizeof(*aux), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, prog);
	KUNIT_ASSERT_NOT_NULL(test, aux);
	prog->bpf_func = func;
	prog->aux = aux;
	xdp->prog = prog;
	arrays_new(test, false);
	tp4a_set_xdp(t->rxa, xdp);
}

static unsigned int pass(const void *ctx, const struct bpf_insn *insn)
{
	return XDP_PASS;
}

static unsigned int pass_to_kernel(const void *ctx, const struct bpf_insn *insn)
{
	return XDP_PASS_TO_KERNEL;
}

static struct sk_buff *get_offloads(void *arg, const struct tp4_frame_set *p)
{
	return tp4f_get_age(p) == 3 ? arg : NULL;
}

/* Receive three packets, and get the stack's copy of the first or the last one.
 */
static struct sk_buff *copy_of_one(struct kunit *test, struct tp4_xdp *xdp)
{
	struct tp4_test *t = test->priv;
	struct tp4_frame_set p;
	struct sk_buff *skb;
	u32 i;

	tp4a_free(t->rxa->to_kernel);
	t->rxa->to_kernel = tp4a_skb_sink_new(ELEMS, t, keep_skb);
	KUNIT_ASSERT_NOT_NULL(test, t->rxa->to_kernel);
	tp4a_populate(t->rxa);
	for (i = 0; i < 3; i++) {
		KUNIT_ASSERT_TRUE(test, tp4a_next_frame(t->rxa, &p));
		tp4f_set_len(&p, 60);
		/* Only the last one has what the driver has set. */
		if (i == 2) {
			tp4f_set_csum_valid(&p);
			if (tp4a_has_meta(t->rxa))
				tp4f_set_hwtstamp(&p, 77);
		}
	}
	local_bh_disable();
	tp4a_flush(t->rxa);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, t->skbs, 3);
	t->skbs = 0;
	skb = t->skb;
	KUNIT_ASSERT_NOT_NULL(test, skb);
	return skb;
}

/* Whether the ring or the program lets the stack have it */
static void copies_have_offloads(struct kunit *test)
{
	static const struct {
		u32 flags;
		unsigned int (*func)(const void *ctx,
				     const struct bpf_insn *insn);
	} ways[] = {
		{ 0, pass_to_kernel },
		{ TP4_RING_KEEP, pass_to_kernel },
		{ TP4_RING_TO_STACK, pass },
		{ TP4_RING_TO_STACK, pass_to_kernel },
		{ TP4_RING_TO_STACK, NULL },
	};
	struct sk_buff *skb, *from = alloc_skb(0, GFP_KERNEL);
	static const u8 mac[ETH_ALEN] = { 2, 0, 0, 0, 0, 1 };
	struct tp4_test *t = test->priv;
	struct xdp_rxq_info rxq = {};
	struct net_device *dev;
	struct xdp_buff buff;
	u32 i, k;

	dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, dev);
	KUNIT_ASSERT_NOT_NULL(test, from);
	dev->dev_addr = mac;
	__skb_set_hash(from, 0x12345, false, true);
	from->ip_summed = CHECKSUM_UNNECESSARY;
	from->csum_level = 1;
	skb_hwtstamps(from)->hwtstamp = ns_to_ktime(99);
	for (i = 0; i < 2 * ARRAY_SIZE(ways); i++) {
		struct tp4_xdp xdp = {
			.buff = &buff,
			.rxq = &rxq,
			.get_offloads = get_offloads,
			.arg = from,
		};

		memset(&t->rx, 0, sizeof(t->rx));
		memset(&t->tx, 0, sizeof(t->tx));
		t->rx.q.flags = ways[i / 2].flags;
		t->rx.q.meta = i % 2 ? TP4_META : 0;
		t->rx.end.dev = dev;
		t->rx.end.seen = dev;
		xdp_new(test, &xdp, ways[i / 2].func);
		if (!ways[i / 2].func)
			xdp.prog = NULL;
		for (k = 0; k < 20; k++)
			post(&t->rx, k, 0, 0, 0);

		/* The first of three packets */
		t->first_only = true;
		skb = copy_of_one(test, &xdp);
		KUNIT_EXPECT_EQ(test, skb->hash, 0x12345);
		KUNIT_EXPECT_TRUE(test, skb->l4_hash);
		KUNIT_EXPECT_TRUE(test, skb_csum_unnecessary(skb));
		KUNIT_EXPECT_EQ(test, (u32)skb->csum_level, 1);
		KUNIT_EXPECT_EQ(test, skb_hwtstamps(skb)->hwtstamp,
				ns_to_ktime(99));

		/* The last one has only what the array knows. */
		t->first_only = false;
		skb = copy_of_one(test, &xdp);
		KUNIT_EXPECT_EQ(test, skb->hash, 0);
		KUNIT_EXPECT_TRUE(test, skb_csum_unnecessary(skb));
		KUNIT_EXPECT_EQ(test, (u32)skb->csum_level, 0);
		KUNIT_EXPECT_EQ(test, skb_hwtstamps(skb)->hwtstamp,
				i % 2 ? ns_to_ktime(77) : 0);
			tp4a_free(t->rxa);
		tp4a_free(t->txa);
		t->rxa = NULL;
		t->txa = NULL;
	}
	kfree_skb(from);
}

/* The copy and the packet are dropped; the frame is reused. */
static void xdp_tx_with_full_queue(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	struct xdp_rxq_info rxq = {};
	struct xdp_buff buff;
	struct tp4_xdp xdp = {
		.buff = &buff,
		.rxq = &rxq,
		.xmit = xmit_full,
	};
	struct tp4_frame_set p;

	xdp_new(test, &xdp, send_all);
	post(&t->rx, 5, 0, 0, 0);
	tp4a_populate(t->rxa);
	KUNIT_ASSERT_TRUE(test, tp4a_next_frame(t->rxa, &p));
	tp4f_set_frame(&p, 60, tp4f_get_data_offset(&p), true);
	local_bh_disable();
	KUNIT_EXPECT_EQ(test, tp4a_flush(t->rxa), 0);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, xdp.errors, 1);
	KUNIT_EXPECT_EQ(test, xdp.tx, 0);
	KUNIT_EXPECT_NULL(test, reap(&t->rx));
	KUNIT_ASSERT_TRUE(test, tp4a_next_frame(t->rxa, &p));
	KUNIT_EXPECT_EQ(test, tp4f_get_frame_id(&p), 5);
}

/* More bytes than helpers for XDP programs can reach */
#define LONG_FRAMES	40

static u8 long_byte(u32 pos)
{
	return pos ^ pos >> 8 ^ pos >> 16;
}

static bool long_bytes_ok(const u8 *data, u32 len, u32 *pos)
{
	u32 i;

	for (i = 0; i < len; i++) {
		if (data[i] != long_byte((*pos)++))
			return false;
	}
	return true;
}

static int xmit_long(void *arg, struct xdp_frame *frame)
{
	struct skb_shared_info *sinfo = xdp_get_shared_info_from_frame(frame);
	u32 i, pos = 0;
	bool ok;

	ok = long_bytes_ok(frame->data, frame->len, &pos);
	for (i = 0; i < sinfo->nr_frags; i++) {
		const skb_frag_t *frag = &sinfo->frags[i];

		ok = ok && long_bytes_ok(skb_frag_address(frag),
					 skb_frag_size(frag), &pos);
	}
	*(bool *)arg = ok && pos == LONG_FRAMES * ROOM;
	xdp_return_frame(frame);
	return 0;
}

static void xdp_with_many_frames(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	struct xdp_rxq_info rxq = {};
	struct xdp_buff buff;
	bool ok = false;
	struct tp4_xdp xdp = {
		.buff = &buff,
		.rxq = &rxq,
		.xmit = xmit_long,
		.arg = &ok,
	};
	struct tp4_frame_set p;
	u32 i, k, pos = 0;

	xdp_new(test, &xdp, send_all);
	xdp.prog->aux->xdp_has_frags = true;
	for (i = 0; i < LONG_FRAMES; i++)
		post(&t->rx, i, 0, 0, 0);
	tp4a_populate(t->rxa);
	for (i = 0; i < LONG_FRAMES; i++) {
		u8 *data;

		KUNIT_ASSERT_TRUE(test, tp4a_next_frame(t->rxa, &p));
		tp4f_set_frame(&p, ROOM, tp4f_get_data_offset(&p),
			       i + 1 == LONG_FRAMES);
		data = tp4f_get_data(&p);
		for (k = 0; k < ROOM; k++)
			data[k] = long_byte(pos++);
	}
	local_bh_disable();
	KUNIT_EXPECT_EQ(test, tp4a_flush(t->rxa), 0);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, xdp.tx, 1);
	KUNIT_EXPECT_TRUE(test, ok);
}

/* Three frames, each with so many bytes before the array's offset, and full */
static const u32 bytes_before[] = { VLAN_HLEN, 12, 12 };

/* Run @func on a packet in such frames, and find it in the ring from byte @pos
 * on.
 */
static void xdp_passes_frames(struct kunit *test, u32 pos,
			      unsigned int (*func)(const void *ctx,
						   const struct bpf_insn *insn))
{
	struct tp4_test *t = test->priv;
	struct xdp_rxq_info rxq = {};
	struct xdp_buff buff;
	struct tp4_xdp xdp = {
		.buff = &buff,
		.rxq = &rxq,
	};
	struct tpacket4_desc *desc;
	struct tp4_frame_set p;
	u32 i, k, size = 0;

	xdp_new(test, &xdp, func);
	xdp.prog->aux->xdp_has_frags = true;
	for (i = 0; i < ARRAY_SIZE(bytes_before); i++)
		post(&t->rx, i, 0, 0, 0);
	tp4a_populate(t->rxa);
	for (i = 0; i < ARRAY_SIZE(bytes_before); i++) {
		u32 len = ROOM + bytes_before[i];
		u8 *data;

		KUNIT_ASSERT_TRUE(test, tp4a_next_frame(t->rxa, &p));
		tp4f_set_frame(&p, len, t->rxa->offset - bytes_before[i],
			       i + 1 == ARRAY_SIZE(bytes_before));
		data = tp4f_get_data(&p);
		for (k = 0; k < len; k++)
			data[k] = long_byte(size++);
	}
	local_bh_disable();
	KUNIT_EXPECT_EQ(test, tp4a_flush(t->rxa), 1);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, xdp.errors, 0);
	while ((desc = reap(&t->rx)))
		KUNIT_EXPECT_TRUE(test, long_bytes_ok(t->rxa->addr +
						      desc->idx * FRAME_BYTES +
						      desc->offset, desc->len,
						      &pos));
	KUNIT_EXPECT_EQ(test, pos, size);
}

static unsigned int pass_all(const void *ctx, const struct bpf_insn *insn)
{
	return XDP_PASS;
}

/* A driver may use bytes before the array's offset: for a VLAN tag, or where
 * only the first frame has a header.
 */
static void xdp_copy_back_to_all_frames(struct kunit *test)
{
	xdp_passes_frames(test, 0, pass_all);
}

static unsigned int take_a_frame(const void *ctx, const struct bpf_insn *insn)
{
	struct xdp_buff *xdp = (struct xdp_buff *)ctx;

	xdp->data += FRAME_BYTES;
	xdp->data_meta = xdp->data;
	return XDP_PASS;
}

static void xdp_shrinks_by_more_than_a_frame(struct kunit *test)
{
	xdp_passes_frames(test, FRAME_BYTES, take_a_frame);
}

static unsigned int expect_headroom(const void *ctx,
				    const struct bpf_insn *insn)
{
	const struct xdp_buff *xdp = ctx;

	return xdp->data - xdp->data_hard_start ==
	       XDP_PACKET_HEADROOM - VLAN_HLEN ? XDP_PASS : XDP_DROP;
}

/* A tag that the driver puts back takes some of it. */
static void xdp_headroom_before_vlan_tag(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	struct xdp_rxq_info rxq = {};
	struct xdp_buff buff;
	struct tp4_xdp xdp = {
		.buff = &buff,
		.rxq = &rxq,
	};
	struct tpacket4_desc *desc;
	struct tp4_frame_set p;
	u32 i;

	xdp_new(test, &xdp, expect_headroom);
	for (i = 0; i < 2; i++)
		post(&t->rx, i, 0, 0, 0);
	tp4a_populate(t->rxa);
	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_TRUE(test, tp4a_next_frame(t->rxa, &p));
		tp4f_set_frame(&p, 60,
			       tp4f_get_data_offset(&p) - i * VLAN_HLEN, true);
	}
	local_bh_disable();
	KUNIT_EXPECT_EQ(test, tp4a_flush(t->rxa), 1);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, xdp.drops, 1);
	desc = reap(&t->rx);
	KUNIT_ASSERT_NOT_NULL(test, desc);
	KUNIT_EXPECT_EQ(test, desc->offset, t->rxa->offset - VLAN_HLEN);
	KUNIT_EXPECT_EQ(test, desc->len, 60);
	KUNIT_EXPECT_NULL(test, reap(&t->rx));
}

static void xdp_with_out_of_order_completion(struct kunit *test)
{
	struct xdp_rxq_info rxq = {};
	struct xdp_buff buff;
	struct tp4_xdp xdp = {
		.buff = &buff,
		.rxq = &rxq,
	};

	xdp_new(test, &xdp, drop_odd);
	any_order_run(test);
	/* Packets of several frames are not for this program. */
	KUNIT_EXPECT_GT(test, xdp.drops, 0);
	KUNIT_EXPECT_GT(test, xdp.errors, 0);
}

/* ---- requests of packets to send ---- */

#define REQ_AT		64	/* offset of the data, behind the metadata */
#define REQ_MTU		1500

/* A packet with a request, and what the driver gets to know */
struct request {
	const char	*what;
	u32		meta;		/* flags of the metadata */
	u16		start;
	u16		csum_offset;
	u16		gso_size;
	u8		gso_type;
	u8		vlans;
	u8		ip;		/* first byte of the IP header */
	u8		l4;
	u8		doff;
	u16		len;
	u16		first_len;	/* bytes in the first frame, or 0: all */
	int		get;		/* result of tp4f_get_offload() */
	int		find;		/* and of tp4f_find_headers() */
	u16		hdr_len;
};

#define CSUM	TP4_META_CSUM
#define GSO	(TP4_META_CSUM | TP4_META_GSO)
#define TCPV4	VIRTIO_NET_HDR_GSO_TCPV4
#define TCPV6	VIRTIO_NET_HDR_GSO_TCPV6
#define UDP_L4	VIRTIO_NET_HDR_GSO_UDP_L4
#define ECN	VIRTIO_NET_HDR_GSO_ECN
#define TCP	IPPROTO_TCP
#define UDP	IPPROTO_UDP

static const struct request requests[] = {
	{ "none", 0, 34, 16, 500, TCPV4, 0, 0x45, TCP, 5, 200, 0, 0, 0, 0 },
	{ "TCP", CSUM, 34, 16, 0, 0, 0, 0x45, TCP, 5, 200, 0, 0, 0, 54 },
	{ "TCP ack", CSUM, 34, 16, 0, 0, 0, 0x45, TCP, 5, 54, 0, 0, 0, 54 },
	{ "UDP", CSUM, 34, 6, 0, 0, 0, 0x45, UDP, 5, 200, 0, 0, 0, 42 },
	{ "IP options", CSUM, 38, 16, 0, 0, 0, 0x46, TCP, 15, 200, 0, 0, 0, 98 },
	{ "VLAN", CSUM, 38, 16, 0, 0, 1, 0x45, TCP, 5, 200, 0, 0, 0, 58 },
	{ "2 VLANs", CSUM, 42, 6, 0, 0, 2, 0x45, UDP, 5, 200, 0, 0, 0, 50 },
	{ "IPv6", CSUM, 54, 6, 0, 0, 0, 0x60, UDP, 5, 200, 0, 0, 0, 62 },
	{ "TSO", GSO, 34, 16, 500, TCPV4, 0, 0x45, TCP, 8, 1900, 0, 0, 0, 66 },
	{ "TSO, ECN", GSO, 34, 16, 500, TCPV4 | ECN, 0, 0x45, TCP, 5, 1900, 0,
	  0, 0, 54 },
	{ "TSO6", GSO, 58, 16, 500, TCPV6, 1, 0x60, TCP, 5, 1900, 0, 0, 0, 78 },
	{ "USO", GSO, 34, 6, 100, UDP_L4, 0, 0x45, UDP, 5, 1900, 0, 0, 0, 42 },

	{ "in the IP header", CSUM, 33, 16, 0, 0, 0, 0x45, TCP, 5, 200, 0,
	  -EINVAL },
	{ "at the end", CSUM, 182, 16, 0, 0, 0, 0x45, TCP, 5, 200, 0, 0,
	  -EOPNOTSUPP },
	{ "beyond the end", CSUM, 183, 16, 0, 0, 0, 0x45, TCP, 5, 200, 0,
	  -EINVAL },
	{ "last byte", CSUM, 34, 165, 0, 0, 0, 0x45, TCP, 5, 200, 0, -EINVAL },
	{ "huge", CSUM, U16_MAX, U16_MAX, 0, 0, 0, 0x45, TCP, 5, 200, 0,
	  -EINVAL },
	{ "tunnel", CSUM | TP4_META_TUNNEL, 34, 16, 0, 0, 0, 0x45, TCP, 5, 200,
	  0, -EOPNOTSUPP },
	{ "SCTP", CSUM | TP4_META_CSUM_CRC32C, 34, 8, 0, 0, 0, 0x45,
	  IPPROTO_SCTP, 5, 200, 0, -EOPNOTSUPP },
	{ "tunnel alone", TP4_META_TUNNEL, 34, 16, 0, 0, 0, 0x45, TCP, 5, 200,
	  0, -EINVAL },
	{ "too long", CSUM, 34, 16, 0, 0, 0, 0x45, TCP, 5, 1600, 0, -EMSGSIZE },
	{ "too long, none", 0, 34, 16, 0, 0, 0, 0x45, TCP, 5, 1600, 0,
	  -EMSGSIZE },
	{ "GSO alone", TP4_META_GSO, 34, 16, 500, TCPV4, 0, 0x45, TCP, 5, 1900,
	  0, -EOPNOTSUPP },
	{ "UFO", GSO, 34, 6, 500, VIRTIO_NET_HDR_GSO_UDP, 0, 0x45, UDP, 5, 1900,
	  0, -EOPNOTSUPP },
	{ "USO, ECN", GSO, 34, 6, 500, UDP_L4 | ECN, 0, 0x45, UDP, 5, 1900, 0,
	  -EOPNOTSUPP },
	{ "segments of 0", GSO, 34, 16, 0, TCPV4, 0, 0x45, TCP, 5, 1900, 0,
	  -EINVAL },
	{ "long segments", GSO, 34, 16, 1447, TCPV4, 0, 0x45, TCP, 5, 1900, 0, 0,
	  0, 54 },
	{ "too long ones", GSO, 34, 16, 1461, TCPV4, 0, 0x45, TCP, 5, 1900, 0,
	  -EMSGSIZE },
	{ "no payload", GSO, 34, 16, 500, TCPV4, 0, 0x45, TCP, 5, 54, 0,
	  -EINVAL },
	{ "offset of UDP", GSO, 34, 6, 500, TCPV4, 0, 0x45, TCP, 5, 1900, 0,
	  -EINVAL },
	{ "short doff", GSO, 34, 16, 500, TCPV4, 0, 0x45, TCP, 4, 1900, 0,
	  -EINVAL },
	{ "128 segments", GSO, 34, 6, 1, UDP_L4, 0, 0x45, UDP, 5, 170, 0, 0, 0,
	  42 },
	{ "129 segments", GSO, 34, 6, 1, UDP_L4, 0, 0x45, UDP, 5, 171, 0,
	  -EINVAL },
	{ "split headers", GSO, 34, 16, 500, TCPV4, 0, 0x45, TCP, 5, 1900, 53,
	  -EINVAL },
	{ "split TCP options", GSO, 34, 16, 500, TCPV4, 0, 0x45, TCP, 8, 1900,
	  65, -EINVAL },
	{ "whole headers", GSO, 34, 16, 500, TCPV4, 0, 0x45, TCP, 8, 1900, 66, 0,
	  0, 66 },

	{ "other protocol", CSUM, 34, 8, 0, 0, 0, 0x45, IPPROTO_SCTP, 5, 200, 0,
	  0, -EOPNOTSUPP },
	{ "wrong offset", CSUM, 34, 6, 0, 0, 0, 0x45, TCP, 5, 200, 0, 0,
	  -EOPNOTSUPP },
	{ "wrong start", CSUM, 36, 16, 0, 0, 0, 0x45, TCP, 5, 200, 0, 0,
	  -EOPNOTSUPP },
	{ "short ihl", CSUM, 34, 16, 0, 0, 0, 0x44, TCP, 5, 200, 0, 0,
	  -EOPNOTSUPP },
	{ "3 VLANs", CSUM, 46, 16, 0, 0, 3, 0x45, TCP, 5, 200, 0, 0,
	  -EOPNOTSUPP },
	{ "TSO6 of IPv4", GSO, 34, 16, 500, TCPV6, 0, 0x45, TCP, 5, 1900, 0, 0,
	  -EINVAL },
	{ "TSO of UDP", GSO, 34, 16, 500, TCPV4, 0, 0x45, UDP, 5, 1900, 0, 0,
	  -EINVAL },
	{ "USO of TCP", GSO, 34, 6, 500, UDP_L4, 0, 0x45, TCP, 5, 1900, 0, 0,
	  -EINVAL },
	{ "doff of 0", CSUM, 34, 16, 0, 0, 0, 0x45, TCP, 0, 200, 0, 0, -EINVAL },
	{ "split TCP", CSUM, 34, 16, 0, 0, 0, 0x45, TCP, 5, 200, 53, 0, -EINVAL },
	{ "split IP", CSUM, 34, 16, 0, 0, 0, 0x45, TCP, 5, 200, 33, 0,
	  -EOPNOTSUPP },
	{ "short UDP", CSUM, 34, 6, 0, 0, 0, 0x45, UDP, 5, 42, 0, 0, 0, 42 },
};

/* Post the packet of a request in frames 0 and 1. */
static void post_request(struct tp4_test *t, const struct request *r)
{
	struct tpacket4_meta *m = tp4_area_frame(&t->area[1], 0);
	u8 *data = (u8 *)m + REQ_AT, *ip = data + ETH_HLEN;
	u32 i, first_len = r->first_len ? : r->len;

	memset(m, 0, 2 * FRAME_BYTES);
	m->flags = r->meta;
	m->csum_start = r->start;
	m->csum_offset = r->csum_offset;
	m->gso_size = r->gso_size;
	m->gso_type = r->gso_type;
	for (i = 0; i < r->vlans; i++, ip += VLAN_HLEN)
		put_unaligned_be16(ETH_P_8021Q, ip - 2);
	put_unaligned_be16(r->ip >> 4 == 4 ? ETH_P_IP : ETH_P_IPV6, ip - 2);
	*ip = r->ip;
	ip[r->ip >> 4 == 4 ? 9 : 6] = r->l4;
	if (r->start + 12 < first_len && r->start > ip - data)
		data[r->start + 12] = r->doff << 4;
	post(&t->tx, 0, first_len, REQ_AT,
	     TP4_META | (first_len < r->len ? TP4_PKT_CONT : 0));
	if (first_len < r->len)
		post(&t->tx, 1, r->len - first_len, REQ_AT, 0);
}

static void offload_requests(struct kunit *test)
{
	struct net_device *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	struct tp4_test *t = test->priv;
	struct tp4_frame_set p;
	struct tp4_offload o;
	const struct request *r;

	KUNIT_ASSERT_NOT_NULL(test, dev);
	dev->mtu = REQ_MTU;
	dev->hard_header_len = ETH_HLEN;
	end_init(&t->tx, &t->area[1]);
	t->tx.q.meta = TP4_META;
	t->txa = tp4a_tx_new(&t->tx.end, ELEMS, NULL);
	KUNIT_ASSERT_NOT_NULL(test, t->txa);
	for (r = requests; r < requests + ARRAY_SIZE(requests); r++) {
		post_request(t, r);
		tp4a_populate(t->txa);
		KUNIT_ASSERT_TRUE_MSG(test, tp4a_next_packet(t->txa, &p), "%s",
				      r->what);
		KUNIT_ASSERT_TRUE(test, tp4f_has_meta(&p));
		KUNIT_EXPECT_EQ_MSG(test, tp4f_get_offload(&p, dev, &o), r->get,
				    "%s", r->what);
		if (!r->get && !r->meta) {
			KUNIT_EXPECT_EQ(test, o.start, 0);
			KUNIT_EXPECT_EQ(test, o.gso_type, 0);
		} else if (!r->get) {
			KUNIT_EXPECT_EQ_MSG(test, tp4f_find_headers(&p, &o),
					    r->find, "%s", r->what);
		}
		if (!r->get && !r->find && r->meta) {
			KUNIT_EXPECT_EQ(test, o.start, r->start);
			KUNIT_EXPECT_EQ(test, o.csum_offset, r->csum_offset);
			KUNIT_EXPECT_EQ_MSG(test, o.hdr_len, r->hdr_len, "%s",
					    r->what);
			KUNIT_EXPECT_EQ(test, o.l2_len,
					ETH_HLEN + r->vlans * VLAN_HLEN);
			KUNIT_EXPECT_EQ(test, o.mss, r->gso_size);
			KUNIT_EXPECT_EQ(test, o.gso_type, r->gso_type);
			KUNIT_EXPECT_EQ(test, o.ipv6, r->ip >> 4 == 6);
			KUNIT_EXPECT_EQ(test, o.udp, r->l4 == UDP);
		}
		tp4a_flush(t->txa);
		while (reap(&t->tx))
			;
	}
}

#define SUM_FRAMES	3
#define SUM_LEN		90

/* The parts of a packet of SUM_LEN bytes in each frame */
static const u32 sum_parts[][SUM_FRAMES] = {
	{ 90 }, { 89, 1 }, { 54, 36 }, { 51, 39 }, { 50, 40 }, { 35, 55 },
	{ 34, 56 }, { 33, 57 }, { 1, 89 }, { 50, 1, 39 }, { 51, 1, 38 },
	{ 35, 16, 39 }, { 14, 20, 56 }, { 15, 36, 39 },
};

/* Post a packet whose frames start at odd and even addresses. */
static void post_parts(struct tp4_test *t, const u32 *parts, const u8 *pkt,
		       u16 start, u16 csum_offset)
{
	struct tpacket4_meta *m = tp4_area_frame(&t->area[1], 0);
	u32 i, k;

	memset(m, 0, sizeof(*m));
	m->flags = TP4_META_CSUM;
	m->csum_start = start;
	m->csum_offset = csum_offset;
	for (i = 0, k = 0; k < SUM_LEN; k += parts[i++]) {
		struct tpacket4_desc desc = { .idx = i, .offset = REQ_AT + i };

		memcpy(data_of(&t->tx, &desc), pkt + k, parts[i]);
		post(&t->tx, i, parts[i], REQ_AT + i,
		     (i ? 0 : TP4_META) |
		     (k + parts[i] < SUM_LEN ? TP4_PKT_CONT : 0));
	}
}

/* Read it back as it is sent. */
static void read_parts(struct tp4_test *t, const u32 *parts, u8 *pkt)
{
	u32 i, k;

	for (i = 0, k = 0; k < SUM_LEN; k += parts[i++]) {
		struct tpacket4_desc desc = { .idx = i, .offset = REQ_AT + i };

		memcpy(pkt + k, data_of(&t->tx, &desc), parts[i]);
	}
}

static void checksum_of(struct kunit *test, const u32 *parts, const u8 *pkt,
			u16 start, u16 csum_offset)
{
	const struct tp4_offload o = {
		.start = start, .csum_offset = csum_offset,
	};
	u8 got[SUM_LEN], want[SUM_LEN];
	struct tp4_test *t = test->priv;
	struct tp4_frame_set p;
	u32 sum = 0, i;

	for (i = 0; start + i < SUM_LEN; i++)
		sum += i % 2 ? pkt[start + i] : pkt[start + i] << 8;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~((sum & 0xffff) + (sum >> 16)) & 0xffff;
	memcpy(want, pkt, SUM_LEN);
	put_unaligned_be16(sum ? : 0xffff, want + start + csum_offset);

	post_parts(t, parts, pkt, start, csum_offset);
	tp4a_populate(t->txa);
	KUNIT_ASSERT_TRUE(test, tp4a_next_packet(t->txa, &p));
	KUNIT_ASSERT_TRUE(test, tp4f_has_meta(&p));
	tp4f_checksum(&p, &o);
	KUNIT_EXPECT_FALSE(test, tp4f_has_meta(&p));
	KUNIT_EXPECT_EQ(test, tp4f_get_frame_len(&p), parts[0]);
	read_parts(t, parts, got);
	KUNIT_EXPECT_MEMEQ_MSG(test, got, want, SUM_LEN,
			       "%u, %u, %u: start %u, offset %u", parts[0],
			       parts[1], parts[2], start, csum_offset);
	tp4a_flush(t->txa);
	while (reap(&t->tx))
		;
}

/* At any address, with frames that end anywhere, also inside of the checksum */
static void checksums(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	u16 start, csum_offset;
	u8 pkt[SUM_LEN];
	u32 i;

	end_init(&t->tx, &t->area[1]);
	t->tx.q.meta = TP4_META;
	t->txa = tp4a_tx_new(&t->tx.end, ELEMS, NULL);
	KUNIT_ASSERT_NOT_NULL(test, t->txa);
	for (i = 0; i < ARRAY_SIZE(sum_parts); i++) {
		for (start = 34; start < 38; start++) {
			for (csum_offset = 6; csum_offset < 18; csum_offset++) {
				get_random_bytes(pkt, sizeof(pkt));
				checksum_of(test, sum_parts[i], pkt, start,
					    csum_offset);
			}
		}
		/* the last bytes, and a sum of 0 */
		checksum_of(test, sum_parts[i], pkt, 34, SUM_LEN - 36);
		checksum_of(test, sum_parts[i], pkt, SUM_LEN - 2, 0);
		memset(pkt, 0, sizeof(pkt));
		put_unaligned_be16(0xffff, pkt + 50);
		checksum_of(test, sum_parts[i], pkt, 34, 16);
	}
}

static struct kunit_case tp4_array_cases[] = {
	KUNIT_CASE(populate_and_flush_at_any_index),
	KUNIT_CASE(populate_stops_at_array_size),
	KUNIT_CASE(has_work_with_unprocessed_frames),
	KUNIT_CASE(no_work_with_incomplete_packet),
	KUNIT_CASE(no_work_without_room),
	KUNIT_CASE(rx_buffers_within_limits),
	KUNIT_CASE(tx_packets_within_limits),
	KUNIT_CASE(refill_without_enough_frames),
	KUNIT_CASE(free_without_enough_frames),
	KUNIT_CASE(push_vlan_tag),
	KUNIT_CASE(populate_limits_refusals),
	KUNIT_CASE(copy_to_smaller_frames),
	KUNIT_CASE(frame_set_iteration),
	KUNIT_CASE(populate_returns_invalid_descs),
	KUNIT_CASE(refusals_wake_once),
	KUNIT_CASE(driver_error_is_returned),
	KUNIT_CASE(flush_completed_packets),
	KUNIT_CASE(offload_requests),
	KUNIT_CASE(checksums),
	KUNIT_CASE(driver_metadata_reaches_ring),
	KUNIT_CASE(skb_metadata_reaches_ring),
	KUNIT_CASE(flush_sent_frames),
	KUNIT_CASE(reset_of_reused_frames),
	KUNIT_CASE(populate_each_slot_once),
	KUNIT_CASE(recycle_frames),
	KUNIT_CASE(reuse_moves_frames_to_end),
	KUNIT_CASE(add_packet_swaps_frames_of_one_area),
	KUNIT_CASE(add_packets_copies),
	KUNIT_CASE(add_packets_swaps_frames_of_one_area),
	KUNIT_CASE(drop_without_posted_frame),
	KUNIT_CASE(copy_flushes_full_array),
	KUNIT_CASE(keep_some_frames),
	KUNIT_CASE(keep_spare_frames),
	KUNIT_CASE(keep_spare_frames_of_chains),
	KUNIT_CASE(spare_frames_are_not_swapped),
	KUNIT_CASE(spare_frames_out_of_order),
	KUNIT_CASE(free_returns_all_frames),
	KUNIT_CASE(rx_new_takes_frames_of_copy_mode),
	KUNIT_CASE(skb_source),
	KUNIT_CASE(skb_source_without_memory),
	KUNIT_CASE(skb_source_drops_invalid_skbs),
	KUNIT_CASE(skb_source_with_full_array),
	KUNIT_CASE(skb_sink),
	KUNIT_CASE(skb_sink_with_many_frames),
	KUNIT_CASE(skb_sink_without_memory),
	KUNIT_CASE(contiguous_dma_addresses),
	KUNIT_CASE(scattered_dma_addresses),
	KUNIT_CASE(dma_addresses_of_runs),
	KUNIT_CASE(populate_refuses_frames_across_runs),
	KUNIT_CASE(page_of_data),
	KUNIT_CASE(each_frame_returned_once),
	KUNIT_CASE(tx_out_of_order_completion),
	KUNIT_CASE(rx_out_of_order_completion),
	KUNIT_CASE(no_frame_given_out_twice),
	KUNIT_CASE(xdp_with_out_of_order_completion),
	KUNIT_CASE(copies_have_offloads),
	KUNIT_CASE(xdp_tx_with_full_queue),
	KUNIT_CASE(xdp_with_many_frames),
	KUNIT_CASE(xdp_copy_back_to_all_frames),
	KUNIT_CASE(xdp_shrinks_by_more_than_a_frame),
	KUNIT_CASE(xdp_headroom_before_vlan_tag),
	{}
};

static struct kunit_suite tp4_array_suite = {
	.name = "tp4_array",
	.init = tp4_array_init,
	.exit = tp4_array_exit,
	.test_cases = tp4_array_cases,
};

kunit_test_suite(tp4_array_suite);

MODULE_DESCRIPTION("KUnit tests of TPACKET_V4 packet arrays");
MODULE_IMPORT_NS(EXPORTED_FOR_KUNIT_TESTING);
MODULE_LICENSE("GPL");
