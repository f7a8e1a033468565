// SPDX-License-Identifier: GPL-2.0
/* KUnit tests of the distribution of packets to a fanout group. The test acts as
 * driver and as the programs of all sockets.
 */

#include <kunit/test.h>
#include <linux/bottom_half.h>
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/tpacket4.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#include "internal.h"
#include "tp4_array.h"
#include "tp4_fanout.h"
#include "tp4_queue.h"

#define SLOTS		128
#define FRAMES		512
#define FRAME_BYTES	2048
#define ELEMS		128
#define NR_MEMBERS	2
#define HEADROOM	64

/* A ring, and what its program has posted and reaped */
struct end {
	struct tp4_queue	q;
	struct tpacket4_desc	ring[SLOTS] __aligned(64);
	u32			held[SLOTS];
	unsigned long		posted;
	unsigned long		reaped;
};

struct fanout_test {
	struct tp4_area		area[2];
	struct page		*pages[2][FRAMES * FRAME_BYTES / PAGE_SIZE];
	struct end		feed;
	struct end		member[NR_MEMBERS];
	struct packet_sock	*po[NR_MEMBERS];
	struct tp4_zc_ring	ring;
	struct packet_fanout	*group;
	struct net_device	*dev;
	struct tp4_packet_array	*a;
	/* Which frames of the areas the kernel has */
	u8			posted[2][FRAMES];
};

static unsigned int wakeups;

static void count_wakeup(struct sock *sk)
{
	wakeups++;
}

static void end_init(struct end *end, struct tp4_area *area)
{
	memset32(end->held, TP4_NOT_HELD, SLOTS);
	end->q.ring = end->ring;
	end->q.area = area;
	end->q.held = end->held;
	end->q.mask = SLOTS - 1;
	end->q.offset = HEADROOM;
	end->q.room = area->frame_size - HEADROOM;
}

static void area_init(struct kunit *test, unsigned int i)
{
	struct fanout_test *t = test->priv;
	struct tp4_area *area = &t->area[i];
	u32 k;

	area->addr = kunit_kzalloc(test, FRAMES * FRAME_BYTES, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, area->addr);
	area->pages = t->pages[i];
	area->nr_pages = ARRAY_SIZE(t->pages[i]);
	for (k = 0; k < area->nr_pages; k++)
		area->pages[k] = virt_to_page(area->addr + k * PAGE_SIZE);
	area->nr_frames = FRAMES;
	area->frame_size = FRAME_BYTES;
	area->frame_shift = ilog2(FRAME_BYTES);
	refcount_set(&area->users, 1);
}

static int fanout_init(struct kunit *test)
{
	struct fanout_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, t);
	test->priv = t;
	area_init(test, 0);
	area_init(test, 1);
	t->dev = alloc_etherdev(0);
	KUNIT_ASSERT_NOT_NULL(test, t->dev);
	t->group = kunit_kzalloc(test, struct_size(t->group, arr, NR_MEMBERS),
				 GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, t->group);
	t->group->max_num_members = NR_MEMBERS;
	write_pnet(&t->group->net, &init_net);
	spin_lock_init(&t->group->lock);
	for (i = 0; i < NR_MEMBERS; i++) {
		t->po[i] = kunit_kzalloc(test, sizeof(*t->po[i]), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, t->po[i]);
		skb_queue_head_init(&t->po[i]->sk.sk_receive_queue);
		t->po[i]->sk.sk_type = SOCK_RAW;
		t->po[i]->sk.sk_rcvlowat = 1;
		t->po[i]->sk.sk_data_ready = count_wakeup;
	}
	wakeups = 0;
	return 0;
}

static void fanout_exit(struct kunit *test)
{
	struct fanout_test *t = test->priv;

	tp4a_free(t->a);
	if (t->ring.fanout)
		tp4_fanout_free(t->ring.fanout);
	free_netdev(t->dev);
}

static void free_spares(void *area)
{
	tp4_area_free_spares(area);
}

/* Set up a feeder in area 0, and members in area 0, or in area 1 if @copy. */
static void start_with_spares(struct kunit *test, u8 type, bool copy)
{
	struct fanout_test *t = test->priv;
	unsigned int i;

	t->group->type = type;
	end_init(&t->feed, &t->area[0]);
	for (i = 0; i < NR_MEMBERS; i++) {
		end_init(&t->member[i], &t->area[copy]);
		t->member[i].q.sk = &t->po[i]->sk;
		t->po[i]->tp4_queue[TP4_RX] = &t->member[i].q;
		rcu_assign_pointer(t->group->arr[i], &t->po[i]->sk);
	}
	t->group->num_members = NR_MEMBERS;
	t->ring.q = &t->feed.q;
	t->ring.error = ECANCELED;
	t->ring.dev = t->dev;
	t->ring.seen = t->dev;
	t->ring.area = tp4_area_add_spares(&t->area[0]);
	KUNIT_ASSERT_NOT_NULL(test, t->ring.area);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, free_spares,
							t->ring.area), 0);
	t->ring.fanout = tp4_fanout_new(t->group, t->dev, 0);
	KUNIT_ASSERT_NOT_NULL(test, t->ring.fanout);
	t->a = tp4a_rx_new(&t->ring, ELEMS, NULL);
	KUNIT_ASSERT_NOT_NULL(test, t->a);
}

/* Frames are not exchanged while the feeder has spare ones, which it has unless
 * many have been posted.
 */
static void start(struct kunit *test, u8 type, bool copy)
{
	struct fanout_test *t = test->priv;

	start_with_spares(test, type, copy);
	t->a->spares->nr = 0;
	t->a->spares->nr_free = 0;
}

static unsigned int area_of(struct fanout_test *t, const struct end *end)
{
	return end->q.area - t->area;
}

static void post(struct kunit *test, struct end *end, u64 idx)
{
	struct fanout_test *t = test->priv;
	u8 *posted = &t->posted[area_of(t, end)][idx];

	KUNIT_ASSERT_EQ(test, *posted, 0);
	*posted = 1;
	end->ring[end->posted++ % SLOTS] = (struct tpacket4_desc) {
		.idx = idx,
		.flags = TP4_DESC_KERNEL,
	};
}

/* Post @nr frames from @idx on. */
static void post_many(struct kunit *test, struct end *end, u64 idx, u32 nr)
{
	while (nr--)
		post(test, end, idx++);
}

static struct tpacket4_desc *reap(struct kunit *test, struct end *end)
{
	struct tpacket4_desc *desc = &end->ring[end->reaped % SLOTS];
	struct fanout_test *t = test->priv;

	if (end->reaped == end->posted || desc->flags & TP4_DESC_KERNEL)
		return NULL;
	end->reaped++;
	KUNIT_EXPECT_EQ(test, t->posted[area_of(t, end)][desc->idx], 1);
	t->posted[area_of(t, end)][desc->idx] = 0;
	return desc;
}

static u8 *data_of(const struct end *end, const struct tpacket4_desc *desc)
{
	return tp4_area_frame(end->q.area, desc->idx) + desc->offset;
}

static u8 byte_of(u32 seq, u32 pos)
{
	return seq * 7 + pos + (pos >> 8);
}

/* Receive a packet of @len bytes in @nr frames, the first of which has its data
 * @less bytes before where the array wants it.
 */
static void receive(struct kunit *test, u32 seq, u32 len, u32 nr, u32 less)
{
	struct fanout_test *t = test->priv;
	u32 i, k, part, pos = 0;
	struct tp4_frame_set p;

	for (i = 0; i < nr; i++, pos += part) {
		part = i + 1 < nr ? len / nr : len - pos;
		KUNIT_ASSERT_TRUE(test, tp4a_next_frame(t->a, &p));
		tp4f_set_frame(&p, part, tp4f_get_data_offset(&p) - less,
			       i + 1 == nr);
		for (k = 0; k < part; k++)
			((u8 *)tp4f_get_data(&p))[k] = byte_of(seq, pos + k);
		less = 0;
	}
}

static int flush(struct fanout_test *t)
{
	int nr;

	local_bh_disable();
	nr = tp4a_flush(t->a);
	local_bh_enable();
	return nr;
}

/* Reap a packet of @len bytes and check it. Return: its number of frames. */
static u32 expect(struct kunit *test, struct end *end, u32 seq, u32 len)
{
	struct tpacket4_desc *desc;
	u32 pos = 0, k, nr = 0;

	do {
		desc = reap(test, end);
		KUNIT_ASSERT_NOT_NULL(test, desc);
		KUNIT_EXPECT_EQ(test, desc->error, 0);
		/* Other frames of copies are filled from their start. */
		if (!nr)
			KUNIT_EXPECT_GE(test, desc->offset, end->q.offset);
		for (k = 0; k < desc->len; k++, pos++) {
			if (data_of(end, desc)[k] == byte_of(seq, pos))
				continue;
			KUNIT_FAIL(test, "packet %u, byte %u", seq, pos);
			return 0;
		}
		nr++;
	} while (desc->flags & TP4_PKT_CONT);
	KUNIT_EXPECT_EQ(test, pos, len);
	return nr;
}

/* The feeder has all its frames, and they are empty. */
static void expect_whole(struct kunit *test, u32 nr)
{
	struct fanout_test *t = test->priv;

	KUNIT_EXPECT_EQ(test, t->a->start, t->a->curr);
	KUNIT_EXPECT_EQ(test, tp4a_nr_unprocessed(t->a), nr);
	KUNIT_EXPECT_NULL(test, reap(test, &t->feed));
}

/* Packets of one frame, at each position of rings and arrays */
static void pass_at_any_index(struct kunit *test, bool copy)
{
	struct fanout_test *t = test->priv;
	u32 round, i, nr, base = copy ? 0 : ELEMS;

	start(test, PACKET_FANOUT_LB, copy);
	post_many(test, &t->feed, 0, ELEMS);
	for (i = 0; i < NR_MEMBERS; i++)
		post_many(test, &t->member[i], base + i * SLOTS, SLOTS);
	tp4a_populate(t->a);
	for (round = 0; round < 40; round++) {
		nr = 2 * (1 + round % (ELEMS / 2 - 1));
		for (i = 0; i < nr; i++)
			receive(test, i, 60 + i, 1, 0);
		wakeups = 0;
		KUNIT_ASSERT_EQ(test, flush(t), nr);
		/* once for each batch of 64 */
		KUNIT_EXPECT_EQ(test, wakeups, 2 * DIV_ROUND_UP(nr, 64));
		/* the first number is 1 */
		for (i = 0; i < nr; i++) {
			struct end *end = &t->member[(i + 1) % 2];

			KUNIT_EXPECT_EQ(test, expect(test, end, i, 60 + i), 1);
			post(test, end, end->ring[(end->reaped - 1) % SLOTS].idx);
		}
		expect_whole(test, ELEMS);
	}
	for (i = 0; i < NR_MEMBERS; i++) {
		struct packet_sock *po = t->po[i];

		KUNIT_EXPECT_NULL(test, reap(test, &t->member[i]));
		KUNIT_EXPECT_NE(test, po->stats.stats1.tp_packets, 0);
		KUNIT_EXPECT_EQ(test,
				atomic_long_read(&t->member[i].q.no_desc), 0);
	}
}

static void swap_at_any_index(struct kunit *test)
{
	pass_at_any_index(test, false);
}

static void copy_at_any_index(struct kunit *test)
{
	pass_at_any_index(test, true);
}

/* When the array is freed, the feeder gets as many frames as it has posted, and
 * none twice.
 */
static void freed_after_swap(struct kunit *test)
{
	struct fanout_test *t = test->priv;
	u32 i;

	start(test, PACKET_FANOUT_LB, false);
	post_many(test, &t->feed, 0, 16);
	post_many(test, &t->member[0], 100, 8);
	post_many(test, &t->member[1], 200, 8);
	tp4a_populate(t->a);
	for (i = 0; i < 10; i++)
		receive(test, i, 60, 1, 0);
	KUNIT_EXPECT_EQ(test, flush(t), 10);
	tp4a_free(t->a);
	t->a = NULL;
	for (i = 0; i < 16; i++) {
		struct tpacket4_desc *desc = reap(test, &t->feed);

		KUNIT_ASSERT_NOT_NULL(test, desc);
		KUNIT_EXPECT_EQ(test, desc->error, ECANCELED);
	}
	for (i = 0; i < 10; i++)
		expect(test, &t->member[(i + 1) % 2], i, 60);
}

/* Chains stay whole. A copy has as many frames of @size bytes as the member
 * needs.
 */
static void pass_chains(struct kunit *test, bool copy, u32 size, u32 frames)
{
	struct fanout_test *t = test->priv;
	u32 i, k, nr;

	t->area[copy].frame_size = size;
	start(test, PACKET_FANOUT_LB, copy);
	for (i = 0; i < NR_MEMBERS; i++) {
		post_many(test, &t->member[i], copy ? i * SLOTS :
						      ELEMS + i * SLOTS, SLOTS);
	}
	post_many(test, &t->feed, 0, ELEMS);
	tp4a_populate(t->a);
	for (k = 0; k < 4; k++) {
		for (i = 0; i < 6; i++)
			receive(test, i, 3000, 3, 0);
		KUNIT_EXPECT_EQ(test, flush(t), 6);
		for (i = 0; i < 6; i++) {
			nr = expect(test, &t->member[(i + 1) % 2], i, 3000);
			KUNIT_EXPECT_EQ(test, nr, frames);
		}
		expect_whole(test, ELEMS);
	}
}

static void swap_chains(struct kunit *test)
{
	pass_chains(test, false, FRAME_BYTES, 3);
}

static void copy_chains(struct kunit *test)
{
	pass_chains(test, true, FRAME_BYTES, 2);
}

static void copy_chains_to_small_frames(struct kunit *test)
{
	pass_chains(test, true, 320, 10);
}

/* A packet that begins before the headroom that the member has asked for is
 * copied, although the area is the same.
 */
static void too_little_headroom(struct kunit *test)
{
	struct fanout_test *t = test->priv;
	const u32 less = HEADROOM + XDP_PACKET_HEADROOM - HEADROOM / 2;
	struct tpacket4_desc *desc;
	u32 i;

	start(test, PACKET_FANOUT_LB, false);
	post_many(test, &t->feed, 0, 8);
	post_many(test, &t->member[0], 100, 8);
	post_many(test, &t->member[1], 200, 8);
	tp4a_populate(t->a);
	for (i = 0; i < 2; i++)
		receive(test, i, 100, 1, less);
	KUNIT_EXPECT_EQ(test, flush(t), 2);
	for (i = 0; i < 2; i++) {
		struct end *end = &t->member[(i + 1) % 2];

		desc = &end->ring[end->reaped % SLOTS];
		KUNIT_EXPECT_EQ(test, desc->idx, i ? 100 : 200);
		KUNIT_EXPECT_EQ(test, desc->offset, HEADROOM);
		expect(test, end, i, 100);
	}
	expect_whole(test, 8);
}

/* A member gets the first packets, as many as it has frames for. The others are
 * dropped, and nobody loses a frame.
 */
static void too_few_frames(struct kunit *test, bool copy)
{
	struct fanout_test *t = test->priv;
	u32 i;

	start(test, PACKET_FANOUT_LB, copy);
	post_many(test, &t->feed, 0, 64);
	post_many(test, &t->member[1], 200, 3);
	tp4a_populate(t->a);
	for (i = 0; i < 20; i++)
		receive(test, i, 60, 1, 0);
	KUNIT_EXPECT_EQ(test, flush(t), 3);
	for (i = 0; i < 6; i += 2)
		expect(test, &t->member[1], i, 60);
	KUNIT_EXPECT_NULL(test, reap(test, &t->member[1]));
	KUNIT_EXPECT_EQ(test, atomic_long_read(&t->member[0].q.no_desc), 10);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&t->member[1].q.no_desc), 7);
	KUNIT_EXPECT_EQ(test, t->po[0]->stats.stats1.tp_packets, 0);
	KUNIT_EXPECT_EQ(test, t->po[1]->stats.stats1.tp_packets, 3);
	expect_whole(test, 64);

	/* A chain needs more than there are, a later packet does not. */
	post_many(test, &t->member[1], 300, 1);
	receive(test, 0, 2500, 2, 0);
	receive(test, 1, 60, 1, 0);
	KUNIT_EXPECT_EQ(test, flush(t), 0);
	receive(test, 2, 60, 1, 0);
	KUNIT_EXPECT_EQ(test, flush(t), 1);
	expect(test, &t->member[1], 2, 60);
	expect_whole(test, 64);
}

static void swap_too_few_frames(struct kunit *test)
{
	too_few_frames(test, false);
}

static void copy_too_few_frames(struct kunit *test)
{
	too_few_frames(test, true);
}

/* Invalid descriptors of a member are its own problem. */
static void invalid_frames(struct kunit *test)
{
	struct fanout_test *t = test->priv;
	struct tpacket4_desc *desc;
	u32 i;

	start(test, PACKET_FANOUT_QM, false);
	post_many(test, &t->feed, 0, 8);
	for (i = 0; i < 4; i++) {
		t->member[1].ring[t->member[1].posted++] =
			(struct tpacket4_desc) {
				.idx = FRAMES + i, .flags = TP4_DESC_KERNEL,
			};
		post(test, &t->member[1], 100 + i);
	}
	tp4a_populate(t->a);
	for (i = 0; i < 4; i++)
		receive(test, i, 60, 1, 0);
	KUNIT_EXPECT_EQ(test, flush(t), 4);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&t->member[1].q.invalid), 4);
	for (i = 0; i < 4; i++) {
		desc = &t->member[1].ring[t->member[1].reaped++];
		KUNIT_EXPECT_EQ(test, desc->error, EINVAL);
		KUNIT_EXPECT_EQ(test, desc->idx, FRAMES + i);
	}
	for (i = 0; i < 4; i++)
		expect(test, &t->member[1], i, 60);
	expect_whole(test, 8);
}

#define UNIT		64
#define RUN		(8 * FRAME_BYTES)

/* Frames of the feeder and of a member that cross the end of a run of pages are
 * refused. Else the device would write to a page of somebody else.
 */
static void frames_across_runs(struct kunit *test)
{
	struct fanout_test *t = test->priv;
	struct tp4_area *area = &t->area[0];
	struct tpacket4_desc *desc;
	u32 i;

	area->frame_unit = UNIT;
	area->frame_shift = ilog2(UNIT);
	area->nr_frames = (FRAMES - 1) * FRAME_BYTES / UNIT + 1;
	area->nr_safe = 0;
	area->run_mask = RUN / UNIT - 1;
	area->run_last = (RUN - FRAME_BYTES) / UNIT;
	start(test, PACKET_FANOUT_QM, false);
	post(test, &t->feed, area->run_last);
	post(test, &t->feed, area->run_last + 1);
	post(test, &t->feed, RUN / UNIT);
	post(test, &t->member[1], 0);
	post(test, &t->member[1], area->run_mask);
	post(test, &t->member[1], FRAME_BYTES / UNIT);
	tp4a_populate(t->a);
	desc = reap(test, &t->feed);
	KUNIT_ASSERT_NOT_NULL(test, desc);
	KUNIT_EXPECT_EQ(test, desc->error, EINVAL);
	KUNIT_EXPECT_EQ(test, desc->idx, area->run_last + 1);
	expect_whole(test, 2);

	for (i = 0; i < 2; i++)
		receive(test, i, 1000, 1, 0);
	KUNIT_EXPECT_EQ(test, flush(t), 2);
	desc = reap(test, &t->member[1]);
	KUNIT_ASSERT_NOT_NULL(test, desc);
	KUNIT_EXPECT_EQ(test, desc->error, EINVAL);
	KUNIT_EXPECT_EQ(test, desc->idx, area->run_mask);
	for (i = 0; i < 2; i++)
		expect(test, &t->member[1], i, 1000);
	expect_whole(test, 2);
}

/* XDP metadata may be where a member wants struct tpacket4_meta. */
static void metadata_of_both(struct kunit *test)
{
	static const u32 room[] = { 0, 28, 32 };
	const u32 xdp_len = 32;
	struct fanout_test *t = test->priv;
	u32 i;

	start(test, PACKET_FANOUT_QM, false);
	t->member[1].q.meta = TP4_META;
	post_many(test, &t->feed, 0, 8);
	post_many(test, &t->member[1], 200, 8);
	tp4a_populate(t->a);
	for (i = 0; i < ARRAY_SIZE(room); i++) {
		const struct tpacket4_meta *meta;
		struct tpacket4_desc *desc;
		u32 pos = t->a->curr;

		receive(test, i, 100, 1, XDP_PACKET_HEADROOM - room[i]);
		t->a->items[pos & t->a->mask].meta_len = xdp_len;
		KUNIT_EXPECT_EQ(test, flush(t), 1);
		desc = &t->member[1].ring[t->member[1].reaped % SLOTS];
		KUNIT_EXPECT_EQ(test, expect(test, &t->member[1], i, 100), 1);
		KUNIT_EXPECT_EQ(test, desc->flags, TP4_META);
		meta = tp4_area_frame(&t->area[0], desc->idx);
		KUNIT_EXPECT_EQ(test, meta->wire_len, 100);
		KUNIT_EXPECT_EQ(test, meta->xdp_meta_len,
				room[i] < xdp_len ? 0 : xdp_len);
	}
}

/* It keeps a quarter of its frames. */
static void no_member(struct kunit *test)
{
	struct fanout_test *t = test->priv;
	u32 i;

	start(test, PACKET_FANOUT_LB, false);
	t->group->num_members = 0;
	post_many(test, &t->feed, 0, 8);
	tp4a_populate(t->a);
	for (i = 0; i < 8; i++)
		receive(test, i, 60, 1, 0);
	KUNIT_EXPECT_EQ(test, flush(t), 6);
	for (i = 0; i < 6; i++)
		expect(test, &t->feed, i, 60);
	expect_whole(test, 2);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&t->feed.q.no_desc), 2);

	/* Members find them. */
	t->group->num_members = NR_MEMBERS;
	post_many(test, &t->member[0], 100, 8);
	post_many(test, &t->member[1], 200, 8);
	for (i = 0; i < 8; i++) {
		receive(test, i, 60, 1, 0);
		KUNIT_EXPECT_EQ(test, flush(t), 1);
		expect(test, &t->member[(i + 1) % NR_MEMBERS], i, 60);
	}
	expect_whole(test, 2);
}

/* A feeder for which nothing is posted: no member gets a spare frame. */
static void feed_from_spares(struct kunit *test, bool copy)
{
	u32 i, base = copy ? 0 : ELEMS, frames = 0;
	struct fanout_test *t = test->priv;

	start_with_spares(test, PACKET_FANOUT_LB, copy);
	for (i = 0; i < NR_MEMBERS; i++)
		post_many(test, &t->member[i], base + 16 * i, 16);
	for (i = 0; i < 20; i++) {
		tp4a_populate(t->a);
		receive(test, i, 60 + i, 1, 0);
		KUNIT_EXPECT_EQ(test, flush(t), 1);
		frames += expect(test, &t->member[(i + 1) % NR_MEMBERS], i,
				 60 + i);
	}
	KUNIT_EXPECT_EQ(test, frames, 20);

	/* As soon as there are enough, the spare ones go, and are in no ring. */
	post_many(test, &t->feed, ELEMS + 64, ELEMS);
	for (i = 0; i < 2 * ELEMS; i++) {
		tp4a_populate(t->a);
		receive(test, i, 60, 1, 0);
		flush(t);
	}
	KUNIT_EXPECT_EQ(test, tp4a_nr_spares(t->a), 0);
	expect_whole(test, ELEMS);
}

static void swap_from_spares(struct kunit *test)
{
	feed_from_spares(test, false);
}

static void copy_from_spares(struct kunit *test)
{
	feed_from_spares(test, true);
}

/* A packed ring gets its share, in the order in which it came, until its memory
 * is used up.
 */
static void packed_member(struct kunit *test)
{
	struct fanout_test *t = test->priv;
	struct end *packed = &t->member[1];
	u32 i, nr = 0, pos = 0;

	start(test, PACKET_FANOUT_LB, false);
	packed->q.packed = true;
	packed->q.pack.size = 12 * FRAME_BYTES;
	packed->q.area = &t->area[1];
	post_many(test, &t->feed, 0, ELEMS);
	post_many(test, &t->member[0], ELEMS, 32);
	for (i = 0; i < 32; i++)
		packed->ring[packed->posted++] = (struct tpacket4_desc) {
			.flags = TP4_DESC_KERNEL,
		};
	tp4a_populate(t->a);
	wakeups = 0;
	/* Packets of one and of three frames; the member gets half of them. */
	for (i = 0; i < 32; i++)
		receive(test, i, i % 3 ? 1000 : 3000, i % 3 ? 1 : 3, 0);
	flush(t);
	KUNIT_EXPECT_EQ(test, wakeups, 2);
	for (i = 0; i < 32; i += 2) {
		struct tpacket4_desc *desc = &packed->ring[packed->reaped];
		u32 k, len = i % 3 ? 1000 : 3000;
		const u8 *data = t->area[1].addr;

		if (desc->flags & TP4_DESC_KERNEL)
			break;
		packed->reaped++;
		KUNIT_EXPECT_EQ(test, desc->flags, 0);
		KUNIT_ASSERT_EQ(test, desc->len, len);
		data += desc->idx * FRAME_BYTES + desc->offset;
		pos += HEADROOM;
		KUNIT_EXPECT_EQ(test, data - (u8 *)t->area[1].addr, pos);
		for (k = 0; k < len && data[k] == byte_of(i, k); k++)
			;
		KUNIT_EXPECT_EQ(test, k, len);
		pos = ALIGN(pos + len, 8);
		nr++;
	}
	KUNIT_EXPECT_GT(test, nr, 10);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&packed->q.no_desc) +
			      atomic_long_read(&packed->q.ring_full), 16 - nr);
	KUNIT_EXPECT_EQ(test, t->po[1]->stats.stats1.tp_packets, nr);
	expect_whole(test, ELEMS);
}

static void removed_ring(struct kunit *test)
{
	struct fanout_test *t = test->priv;
	u32 i;

	start(test, PACKET_FANOUT_LB, false);
	t->po[0]->tp4_queue[TP4_RX] = NULL;
	post_many(test, &t->feed, 0, 8);
	post_many(test, &t->member[1], 100, 8);
	tp4a_populate(t->a);
	for (i = 0; i < 8; i++)
		receive(test, i, 60, 1, 0);
	KUNIT_EXPECT_EQ(test, flush(t), 4);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->po[0]->tp_drops), 4);
	for (i = 0; i < 8; i += 2)
		expect(test, &t->member[1], i, 60);
	expect_whole(test, 8);
}

/* Packets of any length, tagged or not, are hashed by an skb, and arrive. */
static void any_length_by_skb(struct kunit *test)
{
	struct fanout_test *t = test->priv;
	u32 len, tagged, n;

	start(test, PACKET_FANOUT_HASH, false);
	post_many(test, &t->feed, 0, 8);
	post_many(test, &t->member[0], 100, 1);
	post_many(test, &t->member[1], 200, 1);
	tp4a_populate(t->a);
	for (len = 1; len < 1700; len += len < 160 ? 1 : 97) {
		for (tagged = 0; tagged < 2; tagged++) {
			struct tp4_frame_set p;
			struct end *end;

			if (tagged && len < 14)
				continue;
			receive(test, len, len, 1, 0);
			tp4a_get_packet(t->a, t->a->start, &p);
			if (tagged) {
				((u8 *)tp4f_get_data(&p))[12] = 0x81;
				((u8 *)tp4f_get_data(&p))[13] = 0;
			}
			KUNIT_ASSERT_EQ(test, flush(t), 1);
			for (n = 0; n < NR_MEMBERS; n++) {
				struct tpacket4_desc *desc;

				end = &t->member[n];
				desc = reap(test, end);
				if (!desc)
					continue;
				KUNIT_EXPECT_EQ(test, desc->len, len);
				post(test, end, desc->idx);
				break;
			}
			KUNIT_ASSERT_LT(test, n, NR_MEMBERS);
			expect_whole(test, 8);
		}
	}
}

static struct kunit_case fanout_cases[] = {
	KUNIT_CASE(swap_at_any_index),
	KUNIT_CASE(copy_at_any_index),
	KUNIT_CASE(freed_after_swap),
	KUNIT_CASE(swap_chains),
	KUNIT_CASE(copy_chains),
	KUNIT_CASE(copy_chains_to_small_frames),
	KUNIT_CASE(too_little_headroom),
	KUNIT_CASE(swap_too_few_frames),
	KUNIT_CASE(copy_too_few_frames),
	KUNIT_CASE(invalid_frames),
	KUNIT_CASE(frames_across_runs),
	KUNIT_CASE(metadata_of_both),
	KUNIT_CASE(no_member),
	KUNIT_CASE(swap_from_spares),
	KUNIT_CASE(copy_from_spares),
	KUNIT_CASE(packed_member),
	KUNIT_CASE(removed_ring),
	KUNIT_CASE(any_length_by_skb),
	{}
};

static struct kunit_suite fanout_suite = {
	.name = "tp4_fanout",
	.init = fanout_init,
	.exit = fanout_exit,
	.test_cases = fanout_cases,
};

kunit_test_suite(fanout_suite);

MODULE_DESCRIPTION("KUnit tests of fanout of TPACKET_V4 zero-copy queues");
MODULE_IMPORT_NS(EXPORTED_FOR_KUNIT_TESTING);
MODULE_LICENSE("GPL");
