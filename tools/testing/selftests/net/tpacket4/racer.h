/* SPDX-License-Identifier: GPL-2.0 */
/* Threads that change sockets randomly and concurrently while they receive
 * packets, and the errors that are allowed
 */
#ifndef TPACKET4_RACER_H
#define TPACKET4_RACER_H

#include "common.h"

#include <pthread.h>

#define RACE_FRAMES	1024		/* of 2048 bytes, in the area */
#define RACE_MAX_OPS	16
#define RACE_THREADS	2

#define OP(op)		(1u << (op))

/**
 * struct race - what the threads of a race share
 * @step:	does one operation; 0 or -errno
 * @is_expected: may the operation fail with this -errno?
 * @names:	of the operations
 * @nr_ops:	how many there are
 * @rare:	bit mask of operations of which seven in eight are left out, or
 *		nothing else would get anywhere
 * @any:	bit mask of operations that need not succeed
 * @least:	how often all others must succeed: what never got through raced
 *		with nothing
 * @area:	of RACE_FRAMES frames, registered with each socket
 * @stop:	set at the end
 * @done:	how often each operation was tried
 * @ok:		how often it succeeded
 * @unexpected:	an errno that @is_expected did not expect, of each
 */
struct race {
	int (*step)(struct race *r, unsigned int op, unsigned int *seed);
	bool (*is_expected)(unsigned int op, int err);
	const char * const *names;
	unsigned int nr_ops;
	unsigned int rare;
	unsigned int any;
	unsigned int least;
	char *area;
	int stop;
	unsigned int done[RACE_MAX_OPS];
	unsigned int ok[RACE_MAX_OPS];
	int unexpected[RACE_MAX_OPS];
};

struct racer {
	struct race *r;
	pthread_t thread;
	unsigned int seed;
	unsigned int ops;		/* bit mask */
};

/* Replaces socket number @to by a new one; the old one is closed while others
 * use it.
 */
static inline int race_socket(struct race *r, int to)
{
	int fd = pv4_socket(), err;

	if (fd < 0)
		return -errno;
	err = pv4_memreg(fd, r->area, RACE_FRAMES * 2048, 2048, 0);
	if (!err && dup2(fd, to) < 0)
		err = -errno;
	close(fd);
	return err;
}

/* Posts valid and invalid descriptors, chains and incomplete chains, at the
 * current position of the rings.
 */
static inline int race_mmap(int fd, unsigned int *seed)
{
	/* one of these may be the right length, also with the status page */
	size_t i, len = (1 + rand_r(seed) % 5) * getpagesize();
	struct tpacket4_desc *d;

	d = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (d == MAP_FAILED)
		return -errno;
	for (i = 0; i < len / sizeof(*d); i += 1 + rand_r(seed) % 4) {
		d[i].idx = rand_r(seed) % (RACE_FRAMES + 8);
		d[i].len = 60 + rand_r(seed) % 1000;
		d[i].offset = rand_r(seed) % 1000;
		__atomic_store_n(&d[i].flags, TP4_DESC_KERNEL |
				 (rand_r(seed) % 8 ? 0 : TP4_PKT_CONT),
				 __ATOMIC_RELEASE);
	}
	if (sendto(fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0)
		(void)errno;
	usleep(rand_r(seed) % 500);
	munmap(d, len);
	return 0;
}

static inline void *racer_main(void *arg)
{
	struct racer *me = arg;
	struct race *r = me->r;

	while (!__atomic_load_n(&r->stop, __ATOMIC_RELAXED)) {
		unsigned int op = rand_r(&me->seed) % r->nr_ops;
		int err;

		if (!(me->ops & OP(op)))
			continue;
		if (r->rare & OP(op) && rand_r(&me->seed) % 8)
			continue;
		err = r->step(r, op, &me->seed);
		__atomic_fetch_add(&r->done[op], 1, __ATOMIC_RELAXED);
		if (!err)
			__atomic_fetch_add(&r->ok[op], 1, __ATOMIC_RELAXED);
		else if (!r->is_expected(op, err))
			__atomic_store_n(&r->unexpected[op], -err,
					 __ATOMIC_RELAXED);
	}
	return NULL;
}

static inline bool race_is_over(struct race *r, unsigned int ops)
{
	unsigned int i;

	for (i = 0; i < r->nr_ops; i++)
		if (ops & ~r->any & OP(i) &&
		    __atomic_load_n(&r->ok[i], __ATOMIC_RELAXED) < r->least)
			return false;
	return true;
}

/* Lets the threads run for @ms milliseconds, while this thread sends to if_b.
 * On a slow machine, continues for up to two minutes until all operations have
 * run often enough.
 */
static inline void race_run(struct __test_metadata *_metadata, struct race *r,
			    const unsigned int ops[RACE_THREADS],
			    unsigned int ms)
{
	struct racer t[RACE_THREADS];
	unsigned int i, all = 0;
	char pkt[1500];
	uint64_t end;
	int plain;

	for (i = 0; i < RACE_THREADS; i++) {
		t[i] = (struct racer) {
			.r = r, .seed = 17 + i, .ops = ops[i],
		};
		all |= ops[i];
		ASSERT_EQ(0, pthread_create(&t[i].thread, NULL, racer_main,
					    &t[i]));
	}
	plain = plain_socket(_metadata, if_a, 0);
	fill_packet(pkt, sizeof(pkt), 0);
	end = now_ms() + ms;
	while (now_ms() < end ||
	       (!race_is_over(r, all) && now_ms() < end + 120000)) {
		for (i = 0; i < 16; i++)
			send(plain, pkt, 60 + i * 90, MSG_DONTWAIT);
		usleep(200);
	}
	__atomic_store_n(&r->stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < RACE_THREADS; i++)
		ASSERT_EQ(0, pthread_join(t[i].thread, NULL));
	close(plain);
	for (i = 0; i < r->nr_ops; i++) {
		if (!(all & OP(i)))
			continue;
		TH_LOG("%-11s %7u times, %7u succeeded", r->names[i],
		       r->done[i], r->ok[i]);
		EXPECT_EQ(0, r->unexpected[i]) {
			TH_LOG("%s: %s", r->names[i],
			       strerror(r->unexpected[i]));
		}
	}
	EXPECT_TRUE(race_is_over(r, all));
}

#endif
