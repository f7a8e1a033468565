// SPDX-License-Identifier: GPL-2.0
/* KUnit tests of the kernel's side of a TPACKET_V4 ring. The test acts as the
 * program: it owns and writes the descriptors, which the queue must not trust.
 */

#include <kunit/test.h>
#include <linux/module.h>
#include <linux/prandom.h>

#include "tp4_pack.h"
#include "tp4_queue.h"

#define SLOTS		16
#define FRAMES		64
#define FRAME_BYTES	2048

struct tp4_test {
	struct tp4_queue	q;
	struct tp4_area		area;
	struct tpacket4_desc	ring[SLOTS] __aligned(64);
	u32			held[SLOTS];
	unsigned long		posted;	/* the program's indices */
	unsigned long		reaped;
};

static int tp4_test_init(struct kunit *test)
{
	struct tp4_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	t->area.nr_frames = FRAMES;
	t->area.frame_size = FRAME_BYTES;
	t->area.frame_shift = ilog2(FRAME_BYTES);
	memset32(t->held, TP4_NOT_HELD, SLOTS);
	t->q.ring = t->ring;
	t->q.area = &t->area;
	t->q.held = t->held;
	t->q.mask = SLOTS - 1;
	t->q.room = FRAME_BYTES;
	test->priv = t;
	return 0;
}

static void post(struct tp4_test *t, u64 idx, u32 len, u16 offset, u8 flags)
{
	t->ring[t->posted++ % SLOTS] = (struct tpacket4_desc) {
		.idx = idx,
		.len = len,
		.offset = offset,
		.error = 0xaa,
		.flags = TP4_DESC_KERNEL | flags,
	};
}

/* Get the next returned descriptor, or NULL. */
static struct tpacket4_desc *reap(struct tp4_test *t)
{
	struct tpacket4_desc *desc = &t->ring[t->reaped % SLOTS];

	if (t->reaped == t->posted || desc->flags & TP4_DESC_KERNEL)
		return NULL;
	t->reaped++;
	return desc;
}

static void publish(struct tp4_test *t, unsigned long pos, u32 nr)
{
	while (nr--) {
		struct tpacket4_desc desc = {
			.idx = t->held[(pos + nr) % SLOTS],
			.len = 100,
		};

		tp4q_publish(&t->q, pos + nr, &desc);
	}
}

static void rx_take_posted(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	unsigned long pos;
	u32 lap, nr, i;

	/* Every fill level, from every position of the ring */
	for (lap = 0; lap < 3 * SLOTS; lap++) {
		for (nr = 1; nr <= SLOTS; nr++) {
			KUNIT_EXPECT_FALSE(test,
					   tp4q_rx_reserve(&t->q, 1, &pos));
			for (i = 0; i < nr; i++)
				post(t, i, 0, 0, 0);
			KUNIT_EXPECT_FALSE(test, tp4q_rx_reserve(&t->q, nr + 1,
								 &pos));
			KUNIT_ASSERT_TRUE(test,
					  tp4q_rx_reserve(&t->q, nr, &pos));
			KUNIT_EXPECT_EQ(test, pos, t->posted - nr);
			KUNIT_EXPECT_NULL(test, reap(t));
			publish(t, pos, nr);
			for (i = 0; i < nr; i++) {
				struct tpacket4_desc *desc = reap(t);

				KUNIT_ASSERT_NOT_NULL(test, desc);
				KUNIT_EXPECT_EQ(test, desc->idx, i);
				KUNIT_EXPECT_EQ(test, desc->flags, 0);
			}
		}
		/* Start the next round one slot further. */
		post(t, 0, 0, 0, 0);
		KUNIT_ASSERT_TRUE(test, tp4q_rx_reserve(&t->q, 1, &pos));
		publish(t, pos, 1);
		KUNIT_EXPECT_NOT_NULL(test, reap(t));
	}
}

/* A slot that is being filled has TP4_DESC_KERNEL set, like a posted one. */
static void rx_take_each_slot_once(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	unsigned long first, pos;
	u32 i;

	for (i = 0; i < SLOTS; i++)
		post(t, i, 0, 0, 0);
	KUNIT_ASSERT_TRUE(test, tp4q_rx_reserve(&t->q, 1, &first));
	KUNIT_ASSERT_TRUE(test, tp4q_rx_reserve(&t->q, SLOTS - 1, &pos));
	publish(t, pos, SLOTS - 1);

	KUNIT_EXPECT_FALSE(test, tp4q_rx_reserve(&t->q, 1, &pos));
	KUNIT_EXPECT_NULL(test, reap(t));
	publish(t, first, 1);
	for (i = 0; i < SLOTS; i++)
		KUNIT_EXPECT_NOT_NULL(test, reap(t));
}

static void rx_refuse_invalid_frames(struct kunit *test)
{
	static const u64 bad[] = { FRAMES, U32_MAX, 1ULL << 32, U64_MAX };
	struct tp4_test *t = test->priv;
	struct tpacket4_desc *desc;
	unsigned long pos;
	u32 at, i, k;

	for (k = 0; k < ARRAY_SIZE(bad); k++) {
		for (at = 0; at < 8; at++) {
			for (i = 0; i < 8; i++)
				post(t, i == at ? bad[k] : i, 0, 0, 0);
			KUNIT_EXPECT_FALSE(test,
					   tp4q_rx_reserve(&t->q, 8, &pos));
			KUNIT_ASSERT_TRUE(test,
					  tp4q_rx_reserve(&t->q, 7, &pos));
			publish(t, pos, 7);

			desc = reap(t);
			KUNIT_ASSERT_NOT_NULL(test, desc);
			KUNIT_EXPECT_EQ(test, desc->idx, bad[k]);
			KUNIT_EXPECT_EQ(test, desc->error, EINVAL);
			KUNIT_EXPECT_EQ(test, desc->len, 0);
			for (i = 0; i < 8; i++) {
				if (i == at)
					continue;
				desc = reap(t);
				KUNIT_ASSERT_NOT_NULL(test, desc);
				KUNIT_EXPECT_EQ(test, desc->idx, i);
				KUNIT_EXPECT_EQ(test, desc->error, 0);
			}
		}
	}
	KUNIT_EXPECT_EQ(test, atomic_long_read(&t->q.invalid),
			ARRAY_SIZE(bad) * 8);
}

/* Frames of 2048 bytes may start every 64 bytes, but must not cross the end of a
 * run of two pages.
 */
#define UNIT		64
#define RUN		(2 * PAGE_SIZE)

static void use_runs(struct tp4_test *t)
{
	t->area.frame_unit = UNIT;
	t->area.frame_shift = ilog2(UNIT);
	t->area.nr_frames = (4 * RUN - FRAME_BYTES) / UNIT + 1;
	t->area.run_pages = 2;
	t->area.run_mask = RUN / UNIT - 1;
	t->area.run_last = (RUN - FRAME_BYTES) / UNIT;
}

static bool within_run(u64 idx)
{
	return idx % (RUN / UNIT) * UNIT + FRAME_BYTES <= RUN;
}

static void rx_refuse_frames_across_runs(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	struct tpacket4_desc *desc;
	unsigned long pos;
	u64 idx;

	use_runs(t);
	for (idx = 0; idx < 4 * RUN / UNIT; idx++) {
		bool valid = within_run(idx);

		post(t, idx, 0, 0, 0);
		KUNIT_ASSERT_EQ(test, tp4q_rx_reserve(&t->q, 1, &pos), valid);
		if (valid)
			publish(t, pos, 1);
		desc = reap(t);
		KUNIT_ASSERT_NOT_NULL(test, desc);
		KUNIT_EXPECT_EQ(test, desc->idx, idx);
		KUNIT_EXPECT_EQ(test, desc->error, valid ? 0 : EINVAL);
	}
}

static void tx_refuse_frames_across_runs(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	u64 idx;

	use_runs(t);
	for (idx = 0; idx < 4 * RUN / UNIT; idx++) {
		struct tpacket4_desc desc = { .idx = idx, .len = 60 };

		desc.flags = TP4_DESC_KERNEL;
		/* Even if the data is before the end of the run */
		KUNIT_EXPECT_EQ(test, tp4q_tx_check(&t->q, &desc, 1),
				within_run(idx) ? 60 : -EINVAL);
	}
}

static void rx_refuse_full_ring_of_invalid_frames(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	unsigned long pos;
	u32 i;

	for (i = 0; i < SLOTS; i++)
		post(t, FRAMES + i, 0, 0, 0);
	KUNIT_EXPECT_FALSE(test, tp4q_rx_reserve(&t->q, 1, &pos));
	for (i = 0; i < SLOTS; i++) {
		struct tpacket4_desc *desc = reap(t);

		KUNIT_ASSERT_NOT_NULL(test, desc);
		KUNIT_EXPECT_EQ(test, desc->idx, FRAMES + i);
		KUNIT_EXPECT_EQ(test, desc->error, EINVAL);
	}
}

/* Zero-copy mode takes over a ring from which copy mode has taken frames for a
 * packet that needs more.
 */
static void rx_put_back_unused(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	struct tpacket4_desc *desc;
	unsigned long pos;
	u32 bad, i;

	for (bad = 0; bad < 9; bad++) {
		for (i = 0; i < 9; i++)
			post(t, i == bad ? FRAMES : i, 0, 0, 0);
		KUNIT_EXPECT_FALSE(test, tp4q_rx_reserve(&t->q, 9, &pos));
		desc = reap(t);
		KUNIT_ASSERT_NOT_NULL(test, desc);
		KUNIT_EXPECT_EQ(test, desc->error, EINVAL);
		KUNIT_EXPECT_NULL(test, reap(t));

		tp4q_rx_put_back(&t->q);
		KUNIT_EXPECT_EQ(test, t->q.in, atomic_long_read(&t->q.out));
		KUNIT_EXPECT_TRUE(test, tp4q_is_posted(&t->q));
		KUNIT_EXPECT_NULL(test, reap(t));

		KUNIT_ASSERT_TRUE(test, tp4q_rx_reserve(&t->q, 8, &pos));
		publish(t, pos, 8);
		for (i = 0; i < 9; i++) {
			if (i == bad)
				continue;
			desc = reap(t);
			KUNIT_ASSERT_NOT_NULL(test, desc);
			KUNIT_EXPECT_EQ(test, desc->idx, i);
		}
	}
}

static void tx_peek_whole_packets(struct kunit *test)
{
	struct tpacket4_desc descs[4], back[SLOTS] = {};
	struct tp4_test *t = test->priv;
	u32 start, nr, i;

	for (start = 0; start < SLOTS; start++) {
		for (nr = 1; nr <= ARRAY_SIZE(descs); nr++) {
			for (i = 0; i < nr; i++) {
				u8 cont = i < nr - 1 ? TP4_PKT_CONT : 0;

				KUNIT_EXPECT_EQ(test, 0,
						tp4q_tx_peek(&t->q, descs,
							     ARRAY_SIZE(descs)));
				post(t, i, 60 + i, 0, cont);
			}
			KUNIT_EXPECT_EQ(test, nr,
					tp4q_tx_peek(&t->q, descs,
						     ARRAY_SIZE(descs)));
			for (i = 0; i < nr; i++)
				KUNIT_EXPECT_EQ(test, descs[i].len, 60 + i);
			tp4q_tx_take(&t->q, nr);
			tp4q_return(&t->q, back, nr);
			for (i = 0; i < nr; i++)
				KUNIT_EXPECT_NOT_NULL(test, reap(t));
			KUNIT_EXPECT_NULL(test, reap(t));
		}
	}
}

static void tx_detect_too_long_chain(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	struct tpacket4_desc descs[4];
	u32 i;

	for (i = 0; i < 5; i++)
		post(t, i, 60, 0, TP4_PKT_CONT);
	KUNIT_EXPECT_EQ(test, 4, tp4q_tx_peek(&t->q, descs, 4));
	KUNIT_EXPECT_TRUE(test, descs[3].flags & TP4_PKT_CONT);
}

/* Zero-copy mode has a fixed limit, copy mode the ring's size. */
static void tx_chain_limit(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	struct tpacket4_desc descs[SLOTS];
	bool good = false;
	u32 i;

	for (i = 0; i < SLOTS - 1; i++)
		post(t, i, 1, 0, i < SLOTS - 2 ? TP4_PKT_CONT : 0);
	/* not within the budget */
	KUNIT_EXPECT_EQ(test, 0,
			tp4q_tx_next(&t->q, descs, SLOTS, SLOTS - 2, &good));
	KUNIT_EXPECT_EQ(test, SLOTS - 1,
			tp4q_tx_next(&t->q, descs, SLOTS, SLOTS, &good));
	KUNIT_EXPECT_TRUE(test, good);
	KUNIT_EXPECT_EQ(test, SLOTS - 2,
			tp4q_tx_next(&t->q, descs, SLOTS - 2, SLOTS, &good));
	KUNIT_EXPECT_FALSE(test, good);
	KUNIT_EXPECT_EQ(test, EMSGSIZE, descs[0].error);
}

/* A descriptor has room for 8 bits. */
static void desc_error(struct kunit *test)
{
	static const struct {
		int err;
		u8 want;
	} cases[] = {
		{ EINVAL, EINVAL },
		{ EOPNOTSUPP, EOPNOTSUPP },
		{ 256, EIO },
		{ MAX_ERRNO, EIO },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		KUNIT_EXPECT_EQ(test, cases[i].want,
				tp4_desc_error(cases[i].err));
}

static void tx_take_each_slot_once(struct kunit *test)
{
	struct tpacket4_desc desc, back = {};
	struct tp4_test *t = test->priv;
	u32 i;

	for (i = 0; i < SLOTS; i++)
		post(t, i, 60, 0, 0);
	for (i = 0; i < SLOTS; i++) {
		KUNIT_EXPECT_EQ(test, 1, tp4q_tx_peek(&t->q, &desc, 1));
		tp4q_tx_take(&t->q, 1);
	}
	KUNIT_EXPECT_EQ(test, 0, tp4q_tx_peek(&t->q, &desc, 1));
	tp4q_return(&t->q, &back, 1);
	KUNIT_EXPECT_EQ(test, 0, tp4q_tx_peek(&t->q, &desc, 1));
	KUNIT_EXPECT_NOT_NULL(test, reap(t));
	post(t, 0, 60, 0, 0);
	KUNIT_EXPECT_EQ(test, 1, tp4q_tx_peek(&t->q, &desc, 1));
}

static void tx_check_every_field(struct kunit *test)
{
	static const struct {
		struct tpacket4_desc desc;
		int ret;
	} cases[] = {
		{ { 0, 60, 0 }, 60 },
		{ { FRAMES - 1, FRAME_BYTES, 0 }, FRAME_BYTES },
		{ { 0, 1, FRAME_BYTES - 1 }, 1 },
		{ { 0, FRAME_BYTES - 64, 64 }, FRAME_BYTES - 64 },
		{ { FRAMES, 60, 0 }, -EINVAL },
		{ { 1ULL << 32, 60, 0 }, -EINVAL },
		{ { U64_MAX, 60, 0 }, -EINVAL },
		{ { 0, 0, 0 }, -EINVAL },
		{ { 0, FRAME_BYTES + 1, 0 }, -EINVAL },
		{ { 0, FRAME_BYTES, 1 }, -EINVAL },
		{ { 0, U32_MAX, 1 }, -EINVAL },
		{ { 0, U32_MAX, U16_MAX }, -EINVAL },
		{ { 0, 1, FRAME_BYTES }, -EINVAL },
		{ { 0, 1, U16_MAX }, -EINVAL },
		{ { 0, 60, 0, 0, 0x02 }, -EINVAL },
		{ { 0, 60, 0, 0, 0x04 }, -EINVAL },
		{ { 0, 60, 0, 0, 0x08 }, -EINVAL },
		{ { 0, 60, 0, 0, 0x10 }, -EINVAL },
		{ { 0, 60, 0, 0, 0x20 }, -EINVAL },
		{ { 0, 60, 0, 0, TP4_DESC_SEEN }, 60 },
	};
	struct tp4_test *t = test->priv;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct tpacket4_desc desc = cases[i].desc;
		u8 error = 0;

		if (cases[i].ret < 0)
			error = EINVAL;
		desc.error = 0xaa;
		desc.flags |= TP4_DESC_KERNEL;
		KUNIT_EXPECT_EQ_MSG(test, cases[i].ret,
				    tp4q_tx_check(&t->q, &desc, 1),
				    "case %u", i);
		KUNIT_EXPECT_EQ(test, desc.error, error);
	}
}

static void tx_mark_invalid_desc_of_chain(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	u32 at, i;

	for (at = 0; at < 4; at++) {
		struct tpacket4_desc descs[4];

		for (i = 0; i < 4; i++)
			descs[i] = (struct tpacket4_desc) {
				.idx = i == at ? FRAMES : i,
				.len = 60,
				.flags = TP4_DESC_KERNEL | TP4_PKT_CONT,
			};
		KUNIT_EXPECT_EQ(test, -EINVAL, tp4q_tx_check(&t->q, descs, 4));
		for (i = 0; i < 4; i++) {
			u8 error = i == at ? EINVAL : 0;

			KUNIT_EXPECT_EQ(test, descs[i].error, error);
		}
		descs[at].idx = at;
		KUNIT_EXPECT_EQ(test, 240, tp4q_tx_check(&t->q, descs, 4));
	}
}

static void poll_last_slot(struct kunit *test)
{
	struct tpacket4_desc desc, back = {};
	struct tp4_test *t = test->priv;
	u32 i;

	KUNIT_EXPECT_TRUE(test, tp4q_program_owns_last(&t->q));
	for (i = 0; i < SLOTS - 1; i++)
		post(t, i, 60, 0, 0);
	KUNIT_EXPECT_TRUE(test, tp4q_program_owns_last(&t->q));
	post(t, i, 60, 0, 0);
	KUNIT_EXPECT_FALSE(test, tp4q_program_owns_last(&t->q));

	KUNIT_EXPECT_EQ(test, 1, tp4q_tx_peek(&t->q, &desc, 1));
	tp4q_tx_take(&t->q, 1);
	KUNIT_EXPECT_FALSE(test, tp4q_program_owns_last(&t->q));
	tp4q_return(&t->q, &back, 1);
	KUNIT_EXPECT_TRUE(test, tp4q_program_owns_last(&t->q));
}

/* With 32-bit longs, the counters wrap around after 2^32 packets. */
static void poll_last_slot_after_wrap(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	unsigned long pos;

	KUNIT_EXPECT_FALSE(test, tp4q_rx_readable(&t->q, 1));
	t->q.in = ULONG_MAX - 1;
	atomic_long_set(&t->q.out, ULONG_MAX - 1);
	t->posted = ULONG_MAX - 1;
	t->reaped = ULONG_MAX - 1;
	while (t->posted != 2) {
		post(t, 0, 0, 0, 0);
		KUNIT_ASSERT_TRUE(test, tp4q_rx_reserve(&t->q, 1, &pos));
		publish(t, pos, 1);
		KUNIT_EXPECT_TRUE(test, tp4q_rx_readable(&t->q, 1));
		KUNIT_EXPECT_NOT_NULL(test, reap(t));
	}
}

/* As many slots as the program wants to be woken for, or all that there are */
static void poll_with_rcvlowat(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	unsigned long pos;
	u32 i, k;

	for (i = 0; i < SLOTS; i++)
		post(t, i, 0, 0, 0);
	for (i = 1; i <= SLOTS; i++) {
		KUNIT_ASSERT_TRUE(test, tp4q_rx_reserve(&t->q, 1, &pos));
		publish(t, pos, 1);
		for (k = 1; k <= SLOTS; k++)
			KUNIT_EXPECT_EQ(test, tp4q_rx_readable(&t->q, k),
					k <= i || i == SLOTS);
		KUNIT_EXPECT_EQ(test, tp4q_rx_readable(&t->q, INT_MAX),
				i == SLOTS);
	}
	/* The last three are kept: one more is new. */
	for (i = 0; i < SLOTS - 3; i++) {
		KUNIT_EXPECT_NOT_NULL(test, reap(t));
		post(t, i, 0, 0, 0);
	}
	KUNIT_EXPECT_TRUE(test, tp4q_rx_readable(&t->q, 3));
	KUNIT_EXPECT_FALSE(test, tp4q_rx_readable(&t->q, 4));
	KUNIT_ASSERT_TRUE(test, tp4q_rx_reserve(&t->q, 1, &pos));
	publish(t, pos, 1);
	KUNIT_EXPECT_TRUE(test, tp4q_rx_readable(&t->q, 4));
}

/* As a program does before it sleeps: in the slot that it has seen last */
static void mark(struct tp4_test *t)
{
	t->ring[(t->reaped - 1) % SLOTS].flags = TP4_DESC_SEEN;
}

static void receive(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	unsigned long pos;

	KUNIT_ASSERT_TRUE(test, tp4q_rx_reserve(&t->q, 1, &pos));
	publish(t, pos, 1);
}

/* With fewer frames than slots, the slot returned last is never posted. */
static void poll_up_to_seen_slot(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	struct tpacket4_desc *desc;
	u32 i;

	for (i = 0; i < SLOTS / 2; i++)
		post(t, i, 0, 0, 0);
	for (i = 0; i < 3 * SLOTS; i++) {
		KUNIT_EXPECT_FALSE(test, tp4q_rx_readable(&t->q, 1));
		receive(test);
		KUNIT_EXPECT_TRUE(test, tp4q_rx_readable(&t->q, 1));
		desc = reap(t);
		KUNIT_ASSERT_NOT_NULL(test, desc);
		KUNIT_EXPECT_EQ(test, desc->flags, 0);
		post(t, desc->idx, 0, 0, 0);
		KUNIT_EXPECT_TRUE(test, tp4q_rx_readable(&t->q, 1));
		mark(t);
	}
	/* A packet behind the mark */
	receive(test);
	receive(test);
	KUNIT_EXPECT_NOT_NULL(test, reap(t));
	mark(t);
	KUNIT_EXPECT_TRUE(test, tp4q_rx_readable(&t->q, 1));
}

/* SO_RCVLOWAT counts the slots behind the mark, not those that are kept. */
static void poll_with_rcvlowat_and_seen_slots(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	u32 i, k;

	for (i = 0; i < SLOTS; i++)
		post(t, i, 0, 0, 0);
	for (k = 1; k < SLOTS / 2; k++) {
		receive(test);
		KUNIT_EXPECT_NOT_NULL(test, reap(t));
		mark(t);
		KUNIT_EXPECT_FALSE(test, tp4q_rx_readable(&t->q, 1));
	}
	for (i = 1; i <= 4; i++) {
		receive(test);
		for (k = 1; k <= 4; k++)
			KUNIT_EXPECT_EQ(test, tp4q_rx_readable(&t->q, k),
					k <= i);
	}
}

/* The mark means nothing in a slot that is posted. */
static void seen_flag_of_posted_slot(struct kunit *test)
{
	struct tpacket4_desc descs[TP4_TX_DESCS];
	struct tp4_test *t = test->priv;
	bool good = false;

	post(t, 1, 60, 0, TP4_DESC_SEEN);
	KUNIT_EXPECT_EQ(test, 1, tp4q_tx_next(&t->q, descs, 1, 1, &good));
	KUNIT_EXPECT_TRUE(test, good);

	/* Posted again, with the mark, before the slot after it is returned */
	receive(test);
	KUNIT_EXPECT_NOT_NULL(test, reap(t));
	while (t->posted != SLOTS)
		post(t, 1, 0, 0, 0);
	post(t, 1, 0, 0, TP4_DESC_SEEN);
	KUNIT_EXPECT_FALSE(test, tp4q_rx_readable(&t->q, 1));
	KUNIT_EXPECT_EQ(test, t->q.seen, 0);
}

static void rx_room(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	u32 i;

	KUNIT_EXPECT_FALSE(test, tp4q_rx_room(&t->q, 0));
	post(t, 0, 0, 0, 0);
	KUNIT_EXPECT_TRUE(test, tp4q_rx_room(&t->q, 0));
	KUNIT_EXPECT_FALSE(test, tp4q_rx_room(&t->q, 2));
	for (i = 1; i <= SLOTS / 4; i++)
		post(t, i, 0, 0, 0);
	KUNIT_EXPECT_TRUE(test, tp4q_rx_room(&t->q, 2));
}

/* A program posts valid and invalid frames at random, and the kernel returns
 * batches at random: each frame is returned exactly once.
 */
static void each_frame_returned_once(struct kunit *test)
{
	u32 out[FRAMES] = {}, free[FRAMES], nr_free = FRAMES, i, bad = 0;
	struct tp4_test *t = test->priv;
	struct tpacket4_desc *desc;
	struct rnd_state rnd;
	unsigned long pos;

	prandom_seed_state(&rnd, 4);
	for (i = 0; i < FRAMES; i++)
		free[i] = i;

	for (i = 0; i < 100000; i++) {
		u32 dice = prandom_u32_state(&rnd), nr = 1 + (dice >> 8) % 5;

		switch (dice % 4) {
		case 0:
			if (t->posted - t->reaped == SLOTS)
				break;
			if (dice % 13 == 0) {
				post(t, FRAMES + dice, 0, 0, 0);
				bad++;
				break;
			}
			post(t, free[--nr_free], 0, 0, 0);
			out[free[nr_free]]++;
			break;
		case 1:
			if (tp4q_rx_reserve(&t->q, nr, &pos))
				publish(t, pos, nr);
			break;
		default:
			desc = reap(t);
			if (!desc)
				break;
			if (desc->error) {
				bad--;
				break;
			}
			KUNIT_ASSERT_LT(test, desc->idx, FRAMES);
			KUNIT_ASSERT_EQ(test, out[desc->idx], 1);
			out[desc->idx]--;
			free[nr_free++] = desc->idx;
		}
	}
	while (tp4q_rx_reserve(&t->q, 1, &pos))
		publish(t, pos, 1);
	while ((desc = reap(t))) {
		if (desc->error)
			bad--;
		else
			nr_free++;
	}
	KUNIT_EXPECT_EQ(test, nr_free, FRAMES);
	KUNIT_EXPECT_EQ(test, bad, 0);
}

/* A descriptor is counted as returned before it is published. */
static void idle_after_publish(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	struct tpacket4_desc desc = { .idx = 3 };
	u32 i;

	KUNIT_EXPECT_TRUE(test, tp4q_is_idle(&t->q));
	for (i = 0; i < SLOTS; i++)
		post(t, i, 60, 0, 0);
	tp4q_tx_take(&t->q, 1);
	KUNIT_EXPECT_FALSE(test, tp4q_is_idle(&t->q));
	atomic_long_inc(&t->q.out);
	KUNIT_EXPECT_FALSE(test, tp4q_is_idle(&t->q));
	tp4q_publish(&t->q, 0, &desc);
	KUNIT_EXPECT_TRUE(test, tp4q_is_idle(&t->q));
}

static void zc_held_by_counters(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	struct tpacket4_desc descs[] = {
		{ .idx = 40, .error = EINVAL, .len = 60, .offset = 1,
		  .flags = TP4_DESC_KERNEL },
		{ .idx = 41, .error = ECANCELED, .flags = TP4_DESC_KERNEL },
	};
	struct tpacket4_desc desc;
	u32 lap, i;

	for (lap = 0; lap < 3 * SLOTS; lap++) {
		unsigned long in = t->q.in;

		KUNIT_EXPECT_FALSE(test, tp4q_is_posted(&t->q));
		for (i = 0; i < SLOTS; i++)
			post(t, i, 60, 0, 0);
		KUNIT_EXPECT_TRUE(test, tp4q_is_posted(&t->q));
		tp4q_zc_took(&t->q, SLOTS - 3);
		KUNIT_EXPECT_TRUE(test, tp4q_is_posted(&t->q));
		KUNIT_EXPECT_TRUE(test, tp4q_tx_ready(&t->q, 1));

		/* In the oldest slots; the others stay taken */
		tp4q_zc_refuse(&t->q, descs, 2);
		for (i = 0; i < 2; i++) {
			struct tpacket4_desc *back = reap(t);

			KUNIT_ASSERT_NOT_NULL(test, back);
			KUNIT_EXPECT_PTR_EQ(test, back, &t->ring[(in + i) %
								 SLOTS]);
			KUNIT_EXPECT_EQ(test, back->idx, 40 + i);
			KUNIT_EXPECT_EQ(test, back->error, descs[i].error);
			KUNIT_EXPECT_EQ(test, back->len, 0);
			KUNIT_EXPECT_EQ(test, back->offset, 0);
			KUNIT_EXPECT_EQ(test, back->flags, 0);
		}
		KUNIT_EXPECT_NULL(test, reap(t));

		/* The whole ring: its marks are of descriptors taken long ago.
		 */
		post(t, 1, 60, 0, 0);
		post(t, 2, 60, 0, 0);
		tp4q_zc_took(&t->q, 3);
		KUNIT_EXPECT_EQ(test, t->ring[t->q.in % SLOTS].flags,
				TP4_DESC_KERNEL);
		KUNIT_EXPECT_FALSE(test, tp4q_is_posted(&t->q));
		KUNIT_EXPECT_FALSE(test, tp4q_tx_ready(&t->q, 1));

		for (i = SLOTS; i--;) {
			desc = (struct tpacket4_desc) { .idx = i };
			tp4q_store(&t->q, in + 2 + i, &desc);
		}
		KUNIT_EXPECT_FALSE(test, tp4q_is_idle(&t->q));
		tp4q_zc_returned(&t->q, SLOTS);
		KUNIT_EXPECT_TRUE(test, tp4q_is_idle(&t->q));
		for (i = 0; i < SLOTS; i++)
			KUNIT_ASSERT_NOT_NULL(test, reap(t));
	}
}

#define PACKED_BYTES	((unsigned long)FRAMES * FRAME_BYTES)

static void pack(struct tp4_test *t)
{
	u32 i;

	t->q.packed = true;
	t->q.offset = 64;
	t->q.pack.size = PACKED_BYTES;
	for (i = 0; i < SLOTS; i++)
		post(t, 0, 0, 0, 0);
}

/* Receive a packet that takes @bytes. Return: where it is, or -1. */
static long pack_one(struct tp4_test *t, unsigned long bytes)
{
	struct tpacket4_desc desc = { .len = 60 };
	unsigned long pos, start;

	if (!tp4_pack_reserve(&t->q, bytes, &pos, &start))
		return -1;
	desc.idx = start / FRAME_BYTES;
	tp4q_publish(&t->q, pos, &desc);
	return start;
}

/* Give the oldest packet back. */
static void unpack_one(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	struct tpacket4_desc *desc = reap(t);

	KUNIT_ASSERT_NOT_NULL(test, desc);
	post(t, desc->idx, 0, 0, 0);
}

static void pack_lengths(struct kunit *test)
{
	struct tp4_test *t = test->priv;

	pack(t);
	KUNIT_EXPECT_EQ(test, 64 + 64, tp4_pack_bytes(&t->q, 60));
	KUNIT_EXPECT_EQ(test, 64 + 64, tp4_pack_bytes(&t->q, 64));
	KUNIT_EXPECT_EQ(test, 64 + 72, tp4_pack_bytes(&t->q, 65));
	KUNIT_EXPECT_EQ(test, (1UL << 16) + 64,
			tp4_pack_bytes(&t->q, 1 << 16));
}

/* No packet overlaps another one that the program still has, and none is dropped
 * while there is room, but for what is lost where the area ends and where the
 * last packet given back lies.
 */
static void pack_random_lengths(struct kunit *test)
{
	struct {
		unsigned long start, bytes;
	} had[SLOTS];
	u32 i, step, in = 0, out = 0, drops = 0, laps = 0, max;
	struct tp4_test *t = test->priv;
	unsigned long used, last = 0;
	struct rnd_state rnd;

	prandom_seed_state(&rnd, 4);
	pack(t);
	for (step = 0; step < 200000; step++) {
		unsigned long bytes;
		long start;
		bool room;

		/* Phases with a slow program, and with a fast one */
		if (prandom_u32_state(&rnd) % 1000 >= (step / 100) % 1000) {
			if (out == in)
				continue;
			last = had[out++ % SLOTS].bytes;
			unpack_one(test);
			continue;
		}
		max = step / 2000 % 2 ? 200 : 40000;
		bytes = tp4_pack_bytes(&t->q, 1 + prandom_u32_state(&rnd) % max);
		room = tp4_pack_room(&t->q, bytes, 0);
		start = pack_one(t, bytes);
		KUNIT_ASSERT_EQ(test, room && in - out < SLOTS, start >= 0);
		for (used = 0, i = out; i != in; i++) {
			KUNIT_ASSERT_TRUE(test, start < 0 ||
					  start + bytes <=
					  had[i % SLOTS].start ||
					  start >= had[i % SLOTS].start +
						   had[i % SLOTS].bytes);
			used += had[i % SLOTS].bytes;
		}
		if (start < 0) {
			drops++;
			KUNIT_ASSERT_TRUE(test, in - out == SLOTS ||
					  used + last + 2 * bytes +
					  2 * FRAME_BYTES + 40000 >
					  PACKED_BYTES);
			continue;
		}
		KUNIT_ASSERT_GT(test, SLOTS, in - out);
		KUNIT_ASSERT_LE(test, start + bytes, PACKED_BYTES);
		KUNIT_ASSERT_EQ(test, 0, start % TP4_PACK_ALIGN);
		laps += !start;
		had[in % SLOTS].start = start;
		had[in++ % SLOTS].bytes = bytes;
	}
	KUNIT_EXPECT_LT(test, 100, drops);
	KUNIT_EXPECT_LT(test, 100, laps);
	KUNIT_EXPECT_LT(test, 10000, in);
}

/* With nothing in use, there is room for a packet that takes half of the area,
 * wherever the last one was.
 */
static void pack_all_given_back(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	u32 i;

	pack(t);
	for (i = 0; i < 5 * SLOTS; i++) {
		KUNIT_EXPECT_LE(test, 0, pack_one(t, PACKED_BYTES / 2 + 8));
		KUNIT_EXPECT_GT(test, 0, pack_one(t, PACKED_BYTES / 2 + 8));
		unpack_one(test);
	}
}

/* Whatever frame numbers and owners the program writes, packets are in the area.
 */
static void pack_hostile_program(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	struct rnd_state rnd;
	u32 i, k, stored = 0;

	prandom_seed_state(&rnd, 7);
	pack(t);
	for (i = 0; i < 100000; i++) {
		unsigned long bytes;
		long start;

		for (k = 0; k < 3; k++) {
			u32 slot = prandom_u32_state(&rnd) % SLOTS;

			t->ring[slot].idx = prandom_u32_state(&rnd) % 4 ?
					    prandom_u32_state(&rnd) % FRAMES :
					    prandom_u32_state(&rnd);
			t->ring[slot].flags = prandom_u32_state(&rnd) % 3 ?
					      TP4_DESC_KERNEL : 0;
		}
		bytes = tp4_pack_bytes(&t->q,
				       prandom_u32_state(&rnd) % 70000);
		start = pack_one(t, bytes);
		if (start < 0)
			continue;
		stored++;
		KUNIT_ASSERT_LE(test, start + bytes, PACKED_BYTES);
	}
	KUNIT_EXPECT_LT(test, 1000, stored);
}

/* There is room while a quarter of the area is free in one piece, or so much as
 * the packet takes.
 */
static void pack_room(struct kunit *test)
{
	struct tp4_test *t = test->priv;

	pack(t);
	KUNIT_EXPECT_TRUE(test, tp4_pack_room(&t->q, 8, 2));
	KUNIT_EXPECT_LE(test, 0, pack_one(t, PACKED_BYTES * 3 / 4 - 8));
	KUNIT_EXPECT_TRUE(test, tp4_pack_room(&t->q, 8, 2));
	KUNIT_EXPECT_LE(test, 0, pack_one(t, 16));
	KUNIT_EXPECT_FALSE(test, tp4_pack_room(&t->q, 8, 2));
	KUNIT_EXPECT_TRUE(test, tp4_pack_room(&t->q, PACKED_BYTES / 5, 0));
	KUNIT_EXPECT_FALSE(test, tp4_pack_room(&t->q, PACKED_BYTES / 4, 0));
	KUNIT_EXPECT_LE(test, 0, pack_one(t, 16));
	unpack_one(test);
	unpack_one(test);
	KUNIT_EXPECT_TRUE(test, tp4_pack_room(&t->q, PACKED_BYTES / 4, 2));
	/* Nothing of the queue has changed. */
	KUNIT_EXPECT_EQ(test, 0, t->q.pack.tail);
}

/* The reader is woken after a quarter of the area, for fewer slots than wanted.
 */
static void pack_wakes_by_bytes(struct kunit *test)
{
	struct tp4_test *t = test->priv;
	u32 i;

	pack(t);
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_LE(test, 0, pack_one(t, PACKED_BYTES / 12));
		KUNIT_EXPECT_FALSE(test, tp4q_rx_readable(&t->q, 10));
	}
	KUNIT_EXPECT_LE(test, 0, pack_one(t, PACKED_BYTES / 12));
	KUNIT_EXPECT_TRUE(test, tp4q_rx_readable(&t->q, 10));
	KUNIT_EXPECT_FALSE(test, tp4q_rx_readable(&t->q, 10));
}

static struct kunit_case tp4_queue_cases[] = {
	KUNIT_CASE(rx_take_posted),
	KUNIT_CASE(rx_take_each_slot_once),
	KUNIT_CASE(rx_refuse_invalid_frames),
	KUNIT_CASE(rx_refuse_frames_across_runs),
	KUNIT_CASE(tx_refuse_frames_across_runs),
	KUNIT_CASE(rx_refuse_full_ring_of_invalid_frames),
	KUNIT_CASE(rx_put_back_unused),
	KUNIT_CASE(tx_peek_whole_packets),
	KUNIT_CASE(tx_detect_too_long_chain),
	KUNIT_CASE(tx_chain_limit),
	KUNIT_CASE(desc_error),
	KUNIT_CASE(tx_take_each_slot_once),
	KUNIT_CASE(tx_check_every_field),
	KUNIT_CASE(tx_mark_invalid_desc_of_chain),
	KUNIT_CASE(poll_last_slot),
	KUNIT_CASE(poll_last_slot_after_wrap),
	KUNIT_CASE(poll_with_rcvlowat),
	KUNIT_CASE(poll_up_to_seen_slot),
	KUNIT_CASE(poll_with_rcvlowat_and_seen_slots),
	KUNIT_CASE(seen_flag_of_posted_slot),
	KUNIT_CASE(rx_room),
	KUNIT_CASE(idle_after_publish),
	KUNIT_CASE(zc_held_by_counters),
	KUNIT_CASE(each_frame_returned_once),
	KUNIT_CASE(pack_lengths),
	KUNIT_CASE(pack_random_lengths),
	KUNIT_CASE(pack_all_given_back),
	KUNIT_CASE(pack_hostile_program),
	KUNIT_CASE(pack_room),
	KUNIT_CASE(pack_wakes_by_bytes),
	{}
};

static struct kunit_suite tp4_queue_suite = {
	.name = "tp4_queue",
	.init = tp4_test_init,
	.test_cases = tp4_queue_cases,
};

kunit_test_suite(tp4_queue_suite);

MODULE_DESCRIPTION("KUnit tests of TPACKET_V4 rings");
MODULE_IMPORT_NS(EXPORTED_FOR_KUNIT_TESTING);
MODULE_LICENSE("GPL");
