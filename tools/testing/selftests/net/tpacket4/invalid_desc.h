/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Descriptors that the kernel must refuse, for the selftests of AF_PACKET V4 in
 * both modes. An invalid descriptor is returned with its error and does not
 * affect others.
 */
#ifndef TPACKET4_INVALID_DESC_H
#define TPACKET4_INVALID_DESC_H

#include "common.h"

#define TX_MTU		1500
#define MAX_LEN		(TX_MTU + ETH_HLEN)
#define AREA_FRAMES	512
#define GOOD_IDX	400	/* lowest idx of valid descriptors */

struct invalid_desc {
	struct tpacket4_desc d;
	int error;
	const char *what;
};

/* For an area of AREA_FRAMES frames */
static const struct invalid_desc invalid_descs[] = {
	{ { .idx = 512, .len = 60 }, EINVAL, "first frame outside" },
	{ { .idx = ~0ULL, .len = 60 }, EINVAL, "idx of all ones" },
	{ { .idx = 1ULL << 53, .len = 60 }, EINVAL, "idx << 11 is 0" },
	{ { .idx = 1ULL << 32, .len = 60 }, EINVAL, "low half of idx is 0" },
	{ { .idx = 301, .len = 0 }, EINVAL, "no bytes" },
	{ { .idx = 302, .len = 13 }, EINVAL, "shorter than the link header" },
	{ { .idx = 303, .len = 2049 }, EINVAL, "longer than a frame" },
	{ { .idx = 304, .len = UINT_MAX }, EINVAL, "len of all ones" },
	{ { .idx = 511, .len = 60, .offset = 2048 }, EINVAL, "next frame" },
	{ { .idx = 305, .len = 60, .offset = 1989 }, EINVAL, "a byte beyond" },
	{ { .idx = 306, .len = 60, .offset = 65535 }, EINVAL, "far offset" },
	{ { .idx = 307, .len = UINT_MAX - 99, .offset = 100 }, EINVAL,
	  "offset + len is 0" },
	{ { .idx = 308, .len = 60, .flags = 0x02 }, EINVAL, "flag 0x02" },
	{ { .idx = 309, .len = 60, .flags = 0x04 }, EINVAL, "flag 0x04" },
	{ { .idx = 310, .len = 60, .flags = 0x08 }, EINVAL, "flag 0x08" },
	{ { .idx = 311, .len = 60, .flags = 0x10 }, EINVAL, "flag 0x10" },
	{ { .idx = 312, .len = 60, .flags = 0x20 }, EINVAL, "flag 0x20" },
	{ { .idx = 313, .len = 60, .flags = 0x60 }, EINVAL, "flags 0x60" },
	{ { .idx = 314, .len = MAX_LEN + 1 }, EMSGSIZE, "more than the MTU" },
	{ { .idx = 315, .len = 2048 }, EMSGSIZE, "a whole frame, too long" },
};

/* ---- invalid descriptors between valid ones ---- */

#define BATCH_DESCS	(2 * ARRAY_SIZE(invalid_descs) + 1)

struct batch_back {
	unsigned int good;		/* number */
	unsigned int bad;		/* bit mask */
};

/* The valid packet number i, which is even, has 100 + i bytes. Returns their
 * sum.
 */
static inline int make_batch(struct pv4 *s, struct tpacket4_desc *d)
{
	unsigned int i, sum = 0;

	for (i = 0; i < BATCH_DESCS; i++) {
		if (i & 1) {
			d[i] = invalid_descs[i / 2].d;
			continue;
		}
		d[i] = (struct tpacket4_desc) {
			.idx = GOOD_IDX + i, .offset = 20 + i, .len = 100 + i,
			.error = 0x5a,	/* the kernel's to fill in */
		};
		fill_packet(pv4_frame(s, d[i].idx) + d[i].offset, d[i].len, i);
		sum += d[i].len;
	}
	return sum;
}

/* Checks one returned descriptor of the batch. Slots are in order, frames are
 * not.
 */
static inline void check_back(struct __test_metadata *_metadata,
			      const struct tpacket4_desc *d,
			      struct batch_back *back)
{
	const struct invalid_desc *b, *end = invalid_descs + ARRAY_SIZE(invalid_descs);

	EXPECT_EQ(0, d->flags);
	if (d->idx >= GOOD_IDX && d->idx < GOOD_IDX + BATCH_DESCS) {
		EXPECT_EQ(0, d->error);
		back->good++;
		return;
	}
	for (b = invalid_descs; b < end; b++)
		if (b->d.idx == d->idx)
			break;
	ASSERT_TRUE(b < end);
	EXPECT_EQ(b->error, d->error) {
		TH_LOG("%s", b->what);
	}
	EXPECT_EQ(0U, d->len);
	back->bad |= 1u << (b - invalid_descs);
}

static inline void check_all_back(struct __test_metadata *_metadata,
				  const struct batch_back *back)
{
	EXPECT_EQ(ARRAY_SIZE(invalid_descs) + 1, back->good);
	EXPECT_EQ((1u << ARRAY_SIZE(invalid_descs)) - 1, back->bad);
}

/* ---- an invalid descriptor in a chain, then a valid packet ---- */

#define CHAIN_GOOD	(GOOD_IDX + 20)

/* Checks whether it is invalid at every position of a chain. Some lengths are
 * only invalid alone or in sum.
 */
static inline bool is_bad_in_chain(const struct invalid_desc *bad)
{
	return bad->error != EMSGSIZE && bad->d.len != 13;
}

/* A chain of three with @bad at this position, then packet @seq of 99 bytes */
static inline void make_chain(struct pv4 *s, struct tpacket4_desc d[4],
			      const struct invalid_desc *bad, unsigned int place,
			      uint32_t seq)
{
	unsigned int i;

	for (i = 0; i < 3; i++) {
		d[i] = (struct tpacket4_desc) {
			.idx = GOOD_IDX + i, .len = 100,
		};
		if (i == place)
			d[i] = bad->d;
		if (i < 2)
			d[i].flags |= TP4_PKT_CONT;
	}
	d[3] = (struct tpacket4_desc){ .idx = CHAIN_GOOD, .len = 99 };
	fill_packet(pv4_frame(s, CHAIN_GOOD), 99, seq);
}

/* Checks returned descriptor @i of it. */
static inline void check_chain(struct __test_metadata *_metadata,
			       const struct tpacket4_desc d[4],
			       const struct tpacket4_desc *back,
			       const struct invalid_desc *bad, unsigned int place,
			       unsigned int i)
{
	int want = i == place ? bad->error : i < 3 ? ECANCELED : 0;

	EXPECT_EQ(want, back->error) {
		TH_LOG("%s at %u: slot %u", bad->what, place, i);
	}
	EXPECT_EQ(d[i].idx, back->idx);
	if (want)
		EXPECT_EQ(0U, back->len);
}

#endif
