// SPDX-License-Identifier: GPL-2.0
/* The kernel's side of a TPACKET_V4 ring, net/packet/tp4_queue.c, compiled for
 * user space and run against correct and hostile programs.
 *
 * It has two parts. In the *model* part, one thread is the program and the kernel
 * in turns. The result of each call is compared with the content of the ring
 * before it. The program writes anything anywhere. In the *race* part, program
 * and kernel are threads. A correct program must get each frame back exactly
 * once, in the order of the slots and intact, and a packet as a whole. A hostile
 * one writes all the time.
 *
 * A descriptor that the kernel accepts must never be out of range. A failure is
 * reported with the seed, and ends the program.
 */

#include "rings_shim.h"

#include "tp4_queue.h"

#include "rnd.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define FRAMES		96
#define FRAME_SIZE	2048
#define MAX_SLOTS	256

/* Weak: not defined after every patch of the series */
void tp4q_rx_put_back(struct tp4_queue *q) __attribute__((weak));
bool tp4q_tx_ready(const struct tp4_queue *q, u32 room) __attribute__((weak));

struct ring {
	struct tp4_queue q;
	struct tp4_area area;
	struct tpacket4_desc desc[MAX_SLOTS] __aligned(64);
	u32 held[MAX_SLOTS];
	u32 slots;

	/* The program's view */
	unsigned long posted;
	unsigned long reaped;
};

static uint64_t seed = 1;
static unsigned long lap;		/* printed with a failure */

#define CHECK(cond) \
	do { \
		if (unlikely(!(cond))) \
			fail(#cond, __func__, __LINE__); \
	} while (0)

static void __attribute__((__noreturn__, __cold__))
fail(const char *what, const char *where, int line)
{
	printf("not ok: rings: %s:%d: %s, seed %llu, lap %lu\n", where, line,
	       what, (unsigned long long)seed, lap);
	fflush(stdout);
	abort();
}

/* With a frame unit, the last frames of a run of pages cross its end. */
#define RUN		32
#define RUN_LAST	24

static void ring_init(struct ring *ring, u32 slots, bool runs)
{
	memset(ring, 0, sizeof(*ring));
	ring->slots = slots;
	ring->area.nr_frames = FRAMES;
	ring->area.nr_safe = runs ? 0 : FRAMES;
	ring->area.run_mask = runs ? RUN - 1 : 0;
	ring->area.run_last = runs ? RUN_LAST : 0;
	ring->area.frame_size = FRAME_SIZE;
	ring->area.frame_shift = 11;
	memset32(ring->held, TP4_NOT_HELD, MAX_SLOTS);
	ring->q.ring = ring->desc;
	ring->q.area = &ring->area;
	ring->q.held = ring->held;
	ring->q.mask = slots - 1;
	ring->q.room = FRAME_SIZE;
}

static bool is_frame(const struct ring *ring, u64 idx)
{
	return idx < FRAMES &&
	       (!ring->area.run_mask || idx % RUN <= RUN_LAST);
}

static struct tpacket4_desc *slot(struct ring *ring, unsigned long pos)
{
	return &ring->desc[pos & (ring->slots - 1)];
}

/* The second half of a descriptor in one store, as a program may write it */
static void give(struct tpacket4_desc *d, u64 idx, u32 len, u16 offset,
		 u8 error, u8 flags)
{
	struct tpacket4_desc new = { idx, len, offset, error, flags };
	u64 word;

	__atomic_store_n(&d->idx, idx, __ATOMIC_RELAXED);
	memcpy(&word, &new.len, sizeof(word));
	__atomic_store_n((u64 *)&d->len, word, __ATOMIC_RELEASE);
}

static struct tpacket4_desc look(const struct tpacket4_desc *d)
{
	struct tpacket4_desc copy;
	u64 word = __atomic_load_n((u64 *)&d->len, __ATOMIC_ACQUIRE);

	copy.idx = __atomic_load_n(&d->idx, __ATOMIC_RELAXED);
	memcpy(&copy.len, &word, sizeof(word));
	return copy;
}

static u64 odd_number(struct rnd *r)
{
	static const u64 values[] = {
		0, 1, FRAMES - 1, FRAMES, 2047, 2048, 2049, 0xffff, 0x10000,
		0x7fffffff, 0xffffffff, 0x100000000ULL, UINT64_MAX,
	};

	return one_in(r, 4) ? rnd64(r) : PICK(r, values);
}

/* ---- the model part ---- */

/* Invariants after each call */
static void check_queue(const struct ring *ring)
{
	unsigned long in = ring->q.in, out = atomic_long_read(&ring->q.out);
	unsigned long pos;

	CHECK(in - out <= ring->slots);
	for (pos = out; pos != out + ring->slots; pos++) {
		u32 held = ring->held[pos & (ring->slots - 1)];

		CHECK((held != TP4_NOT_HELD) == (pos - out < in - out));
	}
}

static void write_anything(struct rnd *r, struct ring *ring, unsigned long pos)
{
	struct tpacket4_desc *d = slot(ring, pos);

	switch (rnd(r, 8)) {
	case 0:
		give(d, odd_number(r), odd_number(r), odd_number(r),
		     rnd(r, 256), odd_number(r));
		break;
	case 1:
		d->flags ^= 1 << rnd(r, 8);
		break;
	case 2:
		give(d, odd_number(r), 1 + rnd(r, 2048), 0, 0, TP4_DESC_KERNEL);
		break;
	case 3:
		give(d, rnd(r, FRAMES), odd_number(r), odd_number(r), 0,
		     TP4_DESC_KERNEL);
		break;
	default:
		give(d, rnd(r, FRAMES), 1 + rnd(r, 1024), rnd(r, 1024), 0,
		     TP4_DESC_KERNEL | TP4_PKT_CONT * one_in(r, 3));
	}
}

static void program(struct rnd *r, struct ring *ring)
{
	unsigned int n = 1 + rnd(r, 8);

	/* Mostly the slots that the kernel reads next */
	if (one_in(r, 6)) {
		write_anything(r, ring, rnd(r, ring->slots));
		return;
	}
	while (n--) {
		if (ring->posted - atomic_long_read(&ring->q.out) >= ring->slots)
			ring->posted = ring->q.in;
		write_anything(r, ring, ring->posted++);
	}
}

static bool is_valid_tx(const struct ring *ring, const struct tpacket4_desc *d)
{
	return !(d->flags & ~(TP4_DESC_KERNEL | TP4_DESC_SEEN | TP4_PKT_CONT)) &&
	       is_frame(ring, d->idx) && d->len &&
	       (u64)d->offset + d->len <= FRAME_SIZE;
}

/*
 * Replays a call that took frames from an Rx ring with the content @before:
 * valid frames in order after those taken earlier, and invalid ones returned to
 * the oldest slots, with their errors.
 */
static void check_rx_took(struct ring *ring, const struct ring *before,
			  unsigned long claimed)
{
	unsigned long out = atomic_long_read(&before->q.out), pos;
	u32 mask = ring->slots - 1, good[2 * MAX_SLOTS], nr = 0, i;
	u64 bad[MAX_SLOTS];
	u32 nr_bad = 0;

	for (pos = out; pos != before->q.in; pos++)
		good[nr++] = before->held[pos & mask];
	CHECK(ring->q.in - before->q.in <= ring->slots);
	for (pos = before->q.in; pos != ring->q.in; pos++) {
		const struct tpacket4_desc *d = &before->desc[pos & mask];

		CHECK(d->flags & TP4_DESC_KERNEL);
		/* After two laps of the ring, all slots have changed. */
		CHECK(pos - out < ring->slots + nr_bad);
		if (is_frame(ring, d->idx))
			good[nr++] = d->idx;
		else
			bad[nr_bad++] = d->idx;
	}
	CHECK(atomic_long_read(&ring->q.invalid) ==
	      atomic_long_read(&before->q.invalid) + (long)nr_bad);
	CHECK((unsigned long)atomic_long_read(&ring->q.out) ==
	      out + nr_bad + claimed);
	for (i = 0; i < nr_bad; i++) {
		const struct tpacket4_desc *d = slot(ring, out + i);

		CHECK(!d->flags && d->error == EINVAL && !d->len &&
		      d->idx == bad[i]);
	}
	CHECK(claimed <= nr);
	for (i = 0; i < nr; i++)
		CHECK(ring->held[(out + nr_bad + i) & mask] == good[i]);
}

static void publish(struct rnd *r, struct ring *ring, unsigned long pos, u32 nr)
{
	while (nr--) {
		struct tpacket4_desc desc = {
			.idx = ring->held[(pos + nr) & (ring->slots - 1)],
			.len = 1 + rnd(r, FRAME_SIZE),
		};
		const struct tpacket4_desc *d = slot(ring, pos + nr);

		CHECK(is_frame(ring, desc.idx));
		tp4q_publish(&ring->q, pos + nr, &desc);
		CHECK(!memcmp(d, &desc, sizeof(desc)));
	}
}

/* Frames that copy mode has taken and not used return to their slots when another
 * reader takes over.
 */
static void model_put_back(struct ring *ring)
{
	unsigned long pos, in = ring->q.in, out = atomic_long_read(&ring->q.out);
	u32 held[MAX_SLOTS], mask = ring->slots - 1;

	for (pos = out; pos != in; pos++)
		held[pos & mask] = ring->held[pos & mask];
	tp4q_rx_put_back(&ring->q);
	CHECK(ring->q.in == out);
	CHECK((unsigned long)atomic_long_read(&ring->q.out) == out);
	for (pos = out; pos != in; pos++)
		CHECK(slot(ring, pos)->idx == held[pos & mask] &&
		      slot(ring, pos)->flags == TP4_DESC_KERNEL);
}

static void model_rx(struct rnd *r, struct ring *ring)
{
	unsigned long pos;
	u32 nr = 1 + rnd(r, one_in(r, 4) ? ring->slots + 2 : 4);
	struct ring before;

	if (tp4q_rx_put_back && one_in(r, 64)) {
		model_put_back(ring);
		return;
	}
	before.q = ring->q;
	memcpy(before.desc, ring->desc, ring->slots * sizeof(ring->desc[0]));
	memcpy(before.held, ring->held, ring->slots * sizeof(ring->held[0]));
	if (one_in(r, 4)) {
		tp4q_rx_take(&ring->q, nr);
		check_rx_took(ring, &before, 0);
		return;
	}
	if (!tp4q_rx_reserve(&ring->q, nr, &pos)) {
		check_rx_took(ring, &before, 0);
		CHECK(ring->q.in - atomic_long_read(&ring->q.out) < nr);
		tp4q_rx_count_drop(&ring->q);
		return;
	}
	CHECK(pos + nr == (unsigned long)atomic_long_read(&ring->q.out));
	check_rx_took(ring, &before, nr);
	publish(r, ring, pos, nr);
}

/* Return the descriptors of an invalid packet with their errors. */
static void refuse(struct tp4_queue *q, struct tpacket4_desc *descs, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++)
		descs[i] = (struct tpacket4_desc) {
			.idx = descs[i].idx, .error = descs[i].error,
		};
	tp4q_tx_take(q, nr);
	tp4q_return(q, descs, nr);
}

static void model_tx(struct rnd *r, struct ring *ring)
{
	unsigned long in = ring->q.in, out = atomic_long_read(&ring->q.out);
	u32 limit = one_in(r, 2) ? TP4_TX_DESCS : max(ring->slots, TP4_TX_DESCS);
	struct tpacket4_desc descs[MAX_SLOTS + 1], back[MAX_SLOTS];
	bool was_in_chain = ring->q.in_chain, good = false;
	u32 budget = 1 + rnd(r, one_in(r, 2) ? 4 : 40);
	u32 i, nr, bad = 0, taken = in - out;
	bool ready = false;

	/* Return some, in another order and with other frames */
	if (one_in(r, 2) && taken) {
		nr = 1 + rnd(r, taken);
		for (i = 0; i < nr; i++)
			back[i] = (struct tpacket4_desc) {
				.idx = rnd64(r), .error = rnd(r, 100),
			};
		tp4q_return(&ring->q, back, nr);
		CHECK((u64)atomic_long_read(&ring->q.out) == out + nr);
		for (i = 0; i < nr; i++)
			CHECK(!memcmp(slot(ring, out + i), &back[i],
				      sizeof(back[0])));
		return;
	}
	if (tp4q_tx_ready)
		ready = tp4q_tx_ready(&ring->q, budget);
	descs[limit].idx = out;
	nr = tp4q_tx_next(&ring->q, descs, limit, budget, &good);
	CHECK(descs[limit].idx == out);
	/* Otherwise NAPI runs without work, or sleeps despite work. */
	CHECK(!tp4q_tx_ready || ready == !!nr || limit != TP4_TX_DESCS);
	CHECK(nr <= min_t(u32, budget, limit));
	CHECK(ring->q.in == in && nr <= ring->slots - taken);
	if (!nr) {
		/* No complete packet, or none within the budget */
		u32 max = min_t(u32, budget, limit);

		for (i = 0; i < max && i < ring->slots - taken; i++) {
			u8 flags = slot(ring, in + i)->flags;

			if (!(flags & TP4_DESC_KERNEL))
				break;
			CHECK(flags & TP4_PKT_CONT && !was_in_chain);
		}
		return;
	}
	for (i = 0; i < nr; i++) {
		const struct tpacket4_desc *d = slot(ring, in + i);

		CHECK(descs[i].idx == d->idx && descs[i].len == d->len &&
		      descs[i].offset == d->offset &&
		      descs[i].flags == d->flags);
		CHECK(d->flags & TP4_DESC_KERNEL);
		CHECK(i == nr - 1 || d->flags & TP4_PKT_CONT);
		bad += !is_valid_tx(ring, &descs[i]);
		CHECK(!descs[i].error == good);
	}
	if (good) {
		CHECK(!bad && !(descs[nr - 1].flags & TP4_PKT_CONT));
		CHECK(!was_in_chain);
		tp4q_tx_take(&ring->q, nr);
		CHECK(ring->q.in == in + nr);
		return;
	}
	CHECK(bad || was_in_chain || descs[nr - 1].flags & TP4_PKT_CONT);
	refuse(&ring->q, descs, nr);
	CHECK(ring->q.in == in + nr);
	CHECK((u64)atomic_long_read(&ring->q.out) == out + nr);
	for (i = 0; i < nr; i++) {
		const struct tpacket4_desc *d = slot(ring, out + i);

		CHECK(!d->flags && !d->len && d->error == descs[i].error &&
		      d->error && d->idx == descs[i].idx);
	}
}

/* Returns the operations. */
static unsigned long model(uint64_t stream, unsigned long laps)
{
	struct rnd r = rnd_stream(seed, stream, 0);
	static __thread struct ring ring;
	unsigned long i;
	bool tx = false;

	for (i = 0; i < laps; i++) {
		if (i % 4096 == 0) {
			tx = one_in(&r, 2);
			/* A Tx ring has room for the longest packet. */
			ring_init(&ring, (tx ? 32 : 4) << rnd(&r, 2),
				  one_in(&r, 2));
			/* Positions can wrap around. */
			if (one_in(&r, 4)) {
				ring.q.in = -(unsigned long)rnd(&r, 2000);
				ring.q.in &= -4UL;
				ring.posted = ring.q.in;
				atomic_long_set(&ring.q.out, ring.q.in);
			}
		}
		lap = i;
		program(&r, &ring);
		if (tx)
			model_tx(&r, &ring);
		else
			model_rx(&r, &ring);
		check_queue(&ring);
	}
	return 2 * laps;
}

/* ---- the race part ---- */

struct race {
	struct ring ring;
	bool tx;
	bool zc;
	bool hostile;
	bool stop;
	unsigned long ops;		/* of a correct program */
	uint64_t stream;
	u32 len[FRAMES];		/* length of the posted frame */
	bool mine[FRAMES];		/* owned by the program */
};

/* The offset of a valid descriptor follows from its length. */
static u16 offset_of(u32 len)
{
	return len * 5 % 509;
}

static void pause_a_little(unsigned int *idle)
{
	if (++*idle % 16 == 0)
		sched_yield();
}

/* A correct program, which tracks the frames that it owns */
static void good_program(struct race *race)
{
	struct rnd r = rnd_stream(seed, race->stream, 1);
	u32 free[FRAMES], nr_free = 0, i, n, idle = 0;
	struct ring *ring = &race->ring;

	for (i = 0; i < FRAMES; i++) {
		free[nr_free++] = i;
		race->mine[i] = true;
	}
	while (!__atomic_load_n(&race->stop, __ATOMIC_RELAXED)) {
		unsigned long room = ring->slots - (ring->posted - ring->reaped);
		u32 chain = race->tx ? 1 + rnd(&r, 4) : 1;

		n = rnd(&r, min_t(u32, room, nr_free) + 1);
		/* The last slot first */
		for (i = n; i--;) {
			struct tpacket4_desc *d = slot(ring, ring->posted + i);
			u32 idx = free[nr_free - 1 - i];

			race->mine[idx] = false;
			race->len[idx] = 1 + rnd(&r, 1500);
			give(d, idx, race->len[idx],
			     offset_of(race->len[idx]), 0, TP4_DESC_KERNEL |
			     ((i + 1) % chain && i + 1 < n ? TP4_PKT_CONT : 0));
		}
		ring->posted += n;
		nr_free -= n;
		race->ops += n;

		for (n = 0, i = rnd(&r, 64); i && ring->reaped != ring->posted;
		     i--, n++) {
			struct tpacket4_desc d = look(slot(ring, ring->reaped));

			if (d.flags & TP4_DESC_KERNEL) {
				/* If it sees the first one, it must see all. */
				CHECK(race->tx || !n || !(look(slot(ring,
				      ring->reaped - 1)).flags & TP4_PKT_CONT));
				break;
			}
			CHECK(d.idx < FRAMES && !race->mine[d.idx]);
			CHECK(!d.error);
			CHECK(race->tx ? !d.len :
			      d.len && d.offset == offset_of(d.len));
			race->mine[d.idx] = true;
			free[nr_free++] = d.idx;
			ring->reaped++;
		}
		race->ops += n;
		if (!n)
			pause_a_little(&idle);
	}
}

static void hostile_program(struct race *race)
{
	struct rnd r = rnd_stream(seed, race->stream, 2);
	unsigned int n = 0;

	while (!__atomic_load_n(&race->stop, __ATOMIC_RELAXED)) {
		write_anything(&r, &race->ring, rnd(&r, race->ring.slots));
		pause_a_little(&n);
	}
}

static void *program_main(void *arg)
{
	struct race *race = arg;

	if (race->hostile)
		hostile_program(race);
	else
		good_program(race);
	return NULL;
}

static bool kernel_rx(struct rnd *r, struct race *race)
{
	u32 nr = 1 + rnd(r, 6), mask = race->ring.slots - 1, i;
	struct tp4_queue *q = &race->ring.q;
	unsigned long pos;

	if (!tp4q_rx_reserve(q, nr, &pos))
		return false;
	for (i = nr; i--;) {
		struct tpacket4_desc desc = {
			.idx = race->ring.held[(pos + i) & mask],
			.len = 1 + rnd(r, 1500),
			.flags = i == nr - 1 ? 0 : TP4_PKT_CONT,
		};

		CHECK(desc.idx < FRAMES);
		desc.offset = offset_of(desc.len);
		tp4q_publish(q, pos + i, &desc);
	}
	return true;
}

struct in_flight {
	struct tpacket4_desc descs[MAX_SLOTS];
	u32 nr;
};

static bool kernel_tx(struct rnd *r, struct race *race, struct in_flight *w)
{
	struct tpacket4_desc descs[TP4_TX_DESCS];
	struct tp4_queue *q = &race->ring.q;
	bool good, some = false;
	u32 i, nr;

	nr = tp4q_tx_next(q, descs, TP4_TX_DESCS, race->ring.slots, &good);
	if (nr && good) {
		tp4q_tx_take(q, nr);
		for (i = 0; i < nr; i++) {
			CHECK(is_valid_tx(&race->ring, &descs[i]));
			CHECK(race->hostile ||
			      (race->len[descs[i].idx] == descs[i].len &&
			       descs[i].offset == offset_of(descs[i].len)));
			w->descs[w->nr++] = (struct tpacket4_desc) {
				.idx = descs[i].idx,
			};
		}
	} else if (nr) {
		CHECK(race->hostile);
		/* Refused descriptors are returned immediately, before the others. */
		refuse(q, descs, nr);
	}
	some = nr;
	/* They complete in any order. */
	for (i = w->nr; one_in(r, 2) && i > 1;) {
		u32 k = rnd(r, i--);

		swap(w->descs[k], w->descs[i]);
	}
	nr = rnd(r, w->nr + 1);
	if (nr) {
		w->nr -= nr;
		tp4q_return(q, &w->descs[w->nr], nr);
	}
	return some || nr;
}

/* Zero-copy mode: one reader, which returns all in order, and counts */
static bool kernel_zc(struct rnd *r, struct race *race, struct in_flight *w)
{
	struct tp4_queue *q = &race->ring.q;
	unsigned long out = atomic_long_read(&q->out);
	u32 i, nr, room = race->ring.slots - w->nr;
	struct tpacket4_desc desc;
	bool bad = false, refused = false;

	CHECK(q->in - out == w->nr);
	/* Marked slots there were taken a lap ago. */
	CHECK(room || !tp4q_is_posted(q));
	for (nr = 0; nr < room && tp4q_load(q, q->in + nr, &desc); nr++) {
		bad = !tp4q_desc_valid(q, &desc) ||
		      !tp4q_meta_valid(q, &desc, 0);
		/* Sometimes a valid one, so that a correct program reads it */
		refused = bad || one_in(r, 16);
		if (refused)
			break;
		CHECK(is_valid_tx(&race->ring, &desc));
		CHECK(race->hostile ||
		      (race->len[desc.idx] == desc.len &&
		       desc.offset == offset_of(desc.len)));
		w->descs[w->nr + nr] = (struct tpacket4_desc) {
			.idx = desc.idx,
		};
	}
	tp4q_zc_took(q, nr);
	w->nr += nr;
	if (refused) {
		CHECK(race->hostile || !bad);
		desc.error = bad ? EINVAL : 0;
		tp4q_zc_refuse(q, &desc, 1);
		out++;
	}

	i = rnd(r, w->nr + 1);
	if (i) {
		w->nr -= i;
		for (nr = i; nr--;)
			tp4q_store(q, out + nr, &w->descs[nr]);
		tp4q_zc_returned(q, i);
		memmove(w->descs, w->descs + i, w->nr * sizeof(desc));
	}
	return i || refused;
}

/* Returns the operations. */
static unsigned long race(uint64_t stream, unsigned long laps)
{
	struct rnd r = rnd_stream(seed, stream, 0);
	static struct race race;
	static struct in_flight in_flight;
	unsigned int idle = 0;
	unsigned long i = 0;
	pthread_t thread;

	memset(&race, 0, sizeof(race));
	in_flight.nr = 0;
	race.zc = stream & 4;
	/* Sometimes, the kernel must own the whole ring. */
	ring_init(&race.ring, race.zc ? 32 : 32 << rnd(&r, 3), false);
	race.stream = stream;
	race.tx = stream & 1 || race.zc;
	race.hostile = stream & 2;
	if (pthread_create(&thread, NULL, program_main, &race))
		fail("no thread", __func__, __LINE__);
	while (i < laps) {
		lap = i;
		if (race.zc ? kernel_zc(&r, &race, &in_flight) :
		    race.tx ? kernel_tx(&r, &race, &in_flight) :
		    kernel_rx(&r, &race))
			i++;
		else
			pause_a_little(&idle);
		CHECK(race.ring.q.in - atomic_long_read(&race.ring.q.out) <=
		      race.ring.slots);
	}
	__atomic_store_n(&race.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	if (race.zc) {
		/* No state is kept per slot. */
		for (i = 0; i < race.ring.slots; i++)
			CHECK(race.ring.held[i] == TP4_NOT_HELD);
	} else {
		check_queue(&race.ring);
	}
	return race.ops + laps;
}

/* ---- both ---- */

static void *model_main(void *arg)
{
	unsigned long *ops = arg, nr = *ops;

	*ops = model(2000 + (nr & 1), nr / 2);
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned long ops = 1000000000, done = 0, told = 0, n = 0;
	unsigned long part[2] = { 4000000, 4000001 };
	time_t start = time(NULL);
	pthread_t thread;
	int c;

	while ((c = getopt(argc, argv, "s:n:")) != -1) {
		if (c == 's') {
			seed = strtoull(optarg, NULL, 0);
		} else if (c == 'n') {
			ops = strtoul(optarg, NULL, 0);
		} else {
			printf("usage: rings [-s SEED] [-n OPERATIONS]\n");
			return 2;
		}
	}
	for (; done < ops; n++, seed++) {
		part[0] = 4000000;
		part[1] = 4000001;
		if (pthread_create(&thread, NULL, model_main, &part[0]))
			return 1;
		model_main(&part[1]);
		pthread_join(thread, NULL);
		done += part[0] + part[1];
		for (c = 0; c < 8; c++)
			done += race(c, 50000);
		if (done - told > 100000000) {
			told = done;
			printf("rings: %lu operations, %ld s\n", done,
			       (long)(time(NULL) - start));
			fflush(stdout);
		}
	}
	printf("rings: %lu operations, seeds %llu to %llu, %ld s: nothing lost, doubled or out of range\n",
	       done, (unsigned long long)seed - n,
	       (unsigned long long)seed - 1, (long)(time(NULL) - start));
	return 0;
}
