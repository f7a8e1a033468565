// SPDX-License-Identifier: GPL-2.0
/*
 * TPACKET_V4: one ring of 16-byte descriptors, each with a flag that shows the
 * owner. The library implements the program's end. The kernel's end is here,
 * and looks ahead in batches as the kernel does.
 */
#include "ringtest.h"

#define LOOK_AHEAD	64

struct tp4 {
	struct tpacket4_desc *desc;
	unsigned int mask;
	/* kernel */
	OWN_LINES unsigned int next;	/* slot to fill next */
	unsigned int fetched;		/* slots from there that were copied */
	__u64 idx[LOOK_AHEAD];		/* their frames, by slot number */
	/* program */
	OWN_LINES struct tp4_ring ring;
};

static void *tp4_ring_new(unsigned int size)
{
	struct tp4 *t = ring_alloc(sizeof(*t));
	__u64 i;

	t->desc = ring_alloc(size * sizeof(*t->desc));
	t->mask = size - 1;
	tp4_ring_init(&t->ring, t->desc, size);
	for (i = 0; i < size; i++)
		tp4_ring_post(&t->ring, &i, 1);
	return t;
}

/* Copy posted descriptors once, up to n slots ahead. */
static unsigned int fetch(struct tp4 *t, unsigned int n)
{
	while (t->fetched < n) {
		unsigned int slot = t->next + t->fetched;
		struct tpacket4_desc *d = &t->desc[slot & t->mask];

		if (tp4_desc_ready(d))
			break;
		t->idx[slot % LOOK_AHEAD] = d->idx;
		t->fetched++;
	}
	return t->fetched < n ? t->fetched : n;
}

static unsigned int tp4_produce(void *ring, unsigned int n, __u32 seq)
{
	struct tp4 *t = ring;
	unsigned int i;

	if (t->fetched < n)
		fetch(t, LOOK_AHEAD);
	if (n > t->fetched)
		n = t->fetched;
	for (i = n; i--; ) {
		unsigned int slot = t->next + i;
		struct tpacket4_desc *d = &t->desc[slot & t->mask];

		d->idx = t->idx[slot % LOOK_AHEAD];
#if UINTPTR_MAX > 0xffffffffu
		__atomic_store_n((tp4_word *)&d->len, TP4_WORD(seq + i, 64, 0),
				 __ATOMIC_RELEASE);
#else
		d->len = seq + i;
		d->offset = 64;
		d->error = 0;
		__atomic_store_n(&d->flags, 0, __ATOMIC_RELEASE);
#endif
	}
	t->next += n;
	t->fetched -= n;
	return n;
}

static unsigned int tp4_consume(void *ring, unsigned int n, __u32 seq)
{
	struct tp4 *t = ring;
	unsigned int i;

	n = tp4_ring_peek(&t->ring, n);
	for (i = 0; i < n; i++)
		check_seq("tp4", tp4_ring_at(&t->ring, i)->len, seq + i);
	tp4_ring_recycle(&t->ring, n);
	return n;
}

const struct ring_ops ring_tp4 = {
	.name = "tp4",
	.open = tp4_ring_new,
	.produce = tp4_produce,
	.consume = tp4_consume,
};
