// SPDX-License-Identifier: GPL-2.0
/*
 * Like AF_XDP: two rings with a producer and a consumer index each. One passes
 * filled descriptors to the program, the other returns free buffers. Each side
 * caches the index of the other side.
 */
#include "ringtest.h"

struct xdesc {			/* as struct xdp_desc */
	__u64 addr;
	__u32 len;
	__u32 options;
};

struct index {			/* layout of the kernel's mapping */
	OWN_LINES unsigned int producer;
	OWN_LINES unsigned int consumer;
};

/* One side's view of one ring. */
struct view {
	unsigned int cached_prod;
	unsigned int cached_cons;
};

struct xring {
	struct index *rx_index;
	struct index *fill_index;
	struct xdesc *rx;
	__u64 *fill;
	unsigned int size;
	/* kernel */
	OWN_LINES struct view krx;
	struct view kfill;
	/* program */
	OWN_LINES struct view urx;
	struct view ufill;
};

static unsigned int load(const unsigned int *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static void store(unsigned int *p, unsigned int v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

/* Entries for the consumer, up to n; rereads the index only if there are less.
 */
static unsigned int avail(struct view *v, struct index *x, unsigned int n)
{
	if (v->cached_prod - v->cached_cons < n)
		v->cached_prod = load(&x->producer);
	if (v->cached_prod - v->cached_cons < n)
		return v->cached_prod - v->cached_cons;
	return n;
}

/* Same for free entries of the producer */
static unsigned int room(struct view *v, struct index *x, unsigned int size,
			 unsigned int n)
{
	if (size - (v->cached_prod - v->cached_cons) < n)
		v->cached_cons = load(&x->consumer);
	if (size - (v->cached_prod - v->cached_cons) < n)
		return size - (v->cached_prod - v->cached_cons);
	return n;
}

static void *index_new(unsigned int size)
{
	struct xring *x = ring_alloc(sizeof(*x));
	unsigned int i;

	x->rx_index = ring_alloc(sizeof(*x->rx_index));
	x->fill_index = ring_alloc(sizeof(*x->fill_index));
	x->rx = ring_alloc(size * sizeof(*x->rx));
	x->fill = ring_alloc(size * sizeof(*x->fill));
	x->size = size;
	for (i = 0; i < size; i++)
		x->fill[i] = (__u64)i * FRAME_SIZE;
	x->fill_index->producer = size;
	x->ufill.cached_prod = size;
	return x;
}

static unsigned int index_produce(void *ring, unsigned int n, __u32 seq)
{
	struct xring *x = ring;
	unsigned int i;

	n = avail(&x->kfill, x->fill_index, n);
	n = room(&x->krx, x->rx_index, x->size, n);
	if (!n)
		return 0;
	for (i = 0; i < n; i++) {
		struct xdesc *d = &x->rx[x->krx.cached_prod++ & (x->size - 1)];

		d->addr = x->fill[x->kfill.cached_cons++ & (x->size - 1)];
		d->len = seq + i;
		d->options = 0;
	}
	store(&x->fill_index->consumer, x->kfill.cached_cons);
	store(&x->rx_index->producer, x->krx.cached_prod);
	return n;
}

static unsigned int index_consume(void *ring, unsigned int n, __u32 seq)
{
	struct xring *x = ring;
	unsigned int i;

	n = avail(&x->urx, x->rx_index, n);
	n = room(&x->ufill, x->fill_index, x->size, n);
	if (!n)
		return 0;
	for (i = 0; i < n; i++) {
		struct xdesc *d = &x->rx[x->urx.cached_cons++ & (x->size - 1)];

		check_seq("index", d->len, seq + i);
		x->fill[x->ufill.cached_prod++ & (x->size - 1)] = d->addr;
	}
	store(&x->rx_index->consumer, x->urx.cached_cons);
	store(&x->fill_index->producer, x->ufill.cached_prod);
	return n;
}

const struct ring_ops ring_index = {
	.name = "index",
	.open = index_new,
	.produce = index_produce,
	.consume = index_consume,
};
