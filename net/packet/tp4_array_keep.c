// SPDX-License-Identifier: GPL-2.0
/* Rx arrays that always have frames: TP4_RING_TO_STACK and TP4_RING_KEEP
 *
 * The host needs some packets of such a ring, whatever its program does. The
 * array therefore keeps the last frames that the program has posted. As long as
 * it has few, it has spare frames, too, in pages of the kernel's own. Packets in
 * them go through XDP and to the stack like any others. The ring gets a copy in a
 * frame that has been posted meanwhile, or a drop is counted.
 *
 * Spare frames have numbers behind those of the area. To drivers, they are frames
 * like any others. Neither the ring nor another array ever gets one: while the
 * array has some, its frames are not all in the area, so that they are copied
 * and not exchanged.
 */

#include <kunit/visibility.h>
#include <linux/gfp.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/tpacket4.h>
#include <linux/vmalloc.h>

#include "tp4_area.h"
#include "tp4_array.h"
#include "tp4_queue.h"

/* Bytes from one spare frame to the next. They do not cross pages. */
static u32 tp4_spare_size(const struct tp4_area *area)
{
	return roundup_pow_of_two(area->frame_size);
}

static unsigned long tp4_spare_pages(const struct tp4_area *base)
{
	return TP4_SPARES * tp4_spare_size(base) / PAGE_SIZE;
}

/**
 * tp4_area_free_spares() - free an area with spare frames
 * @area:	the area
 *
 * Called by tp4_area_put().
 *
 * Context: Process context, may sleep.
 */
void tp4_area_free_spares(struct tp4_area *area)
{
	unsigned long i;

	vunmap(area->addr);
	for (i = area->base->nr_pages; area->pages && i < area->nr_pages; i++) {
		if (area->pages[i])
			__free_page(area->pages[i]);
	}
	kvfree(area->pages);
	tp4_area_put(area->base);
	kfree(area);
}
EXPORT_SYMBOL_IF_KUNIT(tp4_area_free_spares);

/* Map the pages of @area->base, and new ones behind them. */
static bool tp4_area_map_spares(struct tp4_area *area)
{
	const struct tp4_area *base = area->base;
	unsigned long i;

	area->pages = kvcalloc(area->nr_pages, sizeof(*area->pages),
			       GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!area->pages)
		return false;
	memcpy(area->pages, base->pages, base->nr_pages * sizeof(*base->pages));
	for (i = base->nr_pages; i < area->nr_pages; i++) {
		area->pages[i] = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!area->pages[i])
			return false;
	}
	area->addr = vmap(area->pages, area->nr_pages, VM_MAP, PAGE_KERNEL);
	return area->addr;
}

/**
 * tp4_area_add_spares() - map an area with spare frames behind it
 * @base:	the area of a ring
 *
 * Context: Process context, may sleep.
 * Return: the area with both, which has a reference to @base, or NULL if there is
 * no memory; to be released by tp4_area_put().
 */
struct tp4_area *tp4_area_add_spares(struct tp4_area *base)
{
	struct tp4_area *area;

	area = kzalloc_obj(*area, GFP_KERNEL_ACCOUNT);
	if (!area)
		return NULL;
	refcount_set(&area->users, 1);
	refcount_inc(&base->users);
	area->base = base;
	area->frame_size = base->frame_size;
	area->frame_shift = base->frame_shift;
	area->run_pages = 1;
	area->nr_pages = base->nr_pages + tp4_spare_pages(base);
	area->nr_frames = (u64)area->nr_pages << PAGE_SHIFT >>
			  area->frame_shift;
	if (!tp4_area_map_spares(area)) {
		tp4_area_put(area);
		return NULL;
	}
	return area;
}
EXPORT_SYMBOL_IF_KUNIT(tp4_area_add_spares);

/**
 * tp4a_init_spares() - let an array have the spare frames of its area
 * @a:	the Rx array of a V4 ring whose area has some
 *
 * Context: Process context, may sleep.
 * Return: false if there is no memory.
 */
bool tp4a_init_spares(struct tp4_packet_array *a)
{
	const struct tp4_area *area = tp4a_zc_ring(a)->area;
	const u32 units = tp4_spare_size(area) >> area->frame_shift;
	struct tp4_spares *s;
	u32 i;

	s = kzalloc_obj(*s, GFP_KERNEL_ACCOUNT);
	if (!s)
		return false;
	s->first = (u64)area->base->nr_pages << PAGE_SHIFT >> area->frame_shift;
	s->nr = TP4_SPARES;
	s->nr_free = TP4_SPARES;
	for (i = 0; i < TP4_SPARES; i++)
		s->free[i] = s->first + i * units;
	a->spares = s;
	return true;
}

/* Let the driver have spare frames until it has enough. */
static noinline void tp4a_use_spares(struct tp4_packet_array *a)
{
	struct tp4_spares *s = a->spares;

	while (a->end - a->curr < TP4_KEEP && a->end - a->start <= a->mask &&
	       s->nr_free) {
		a->items[a->end++ & a->mask] = (struct tp4_frame) {
			.idx = s->free[--s->nr_free],
			.offset = a->offset,
		};
		a->area = NULL;
	}
}

static void tp4a_put_spare(struct tp4_packet_array *a, u32 idx)
{
	struct tp4_spares *s = a->spares;

	s->free[s->nr_free++] = idx;
	if (s->nr_free == s->nr)
		a->area = tp4a_zc_ring(a)->q->area;
}

/* Number of frames of the ring that the array has */
static u32 tp4a_nr_posted(const struct tp4_packet_array *a)
{
	return a->end - a->start - tp4a_nr_spares(a);
}

/* Keep 64 frames, or a quarter of the most that the array has held. */
static void tp4a_rx_take_keep(struct tp4_packet_array *a)
{
	u32 keep;

	tp4a_rx_populate_checked(a);
	keep = min(DIV_ROUND_UP(tp4a_nr_posted(a), 4), TP4_KEEP);
	if (unlikely(keep > a->keep))
		a->keep = keep;
}

static void tp4a_rx_populate_keep(struct tp4_packet_array *a)
{
	tp4a_rx_take_keep(a);
	if (unlikely(a->end - a->curr < TP4_KEEP))
		tp4a_use_spares(a);
}

/* Take the next posted frame, for a packet in a spare one. */
static bool tp4a_rx_take_one(struct tp4_packet_array *a, u64 *idx)
{
	struct tp4_queue *q = tp4a_zc_ring(a)->q;
	struct tpacket4_desc desc = { .error = EINVAL };
	u32 refusals;

	for (refusals = 0; refusals < TP4_RX_REFUSALS; refusals++) {
		if (!tp4q_load_idx(tp4q_slot(q, q->in), &desc.idx))
			return false;
		if (likely(tp4_area_frame_valid(q->area, desc.idx))) {
			tp4q_zc_took(q, 1);
			*idx = desc.idx;
			return true;
		}
		tp4q_zc_refuse(q, &desc, 1);
		atomic_long_inc(&q->invalid);
	}
	return false;
}

/* Copy a packet out of its spare frames, to frames that have been posted.
 * Return: false if there are too few.
 */
static bool tp4a_copy_spares(struct tp4_packet_array *a,
			     const struct tp4_frame_set *p)
{
	u32 pos;

	for (pos = p->start; pos != p->end; pos++) {
		struct tp4_frame *frame = &a->items[pos & a->mask];
		u32 start = frame->offset - frame->meta_len;
		void *from = tp4f_start(a, frame), *to;
		u64 idx;

		if (!tp4a_is_spare(a, frame))
			continue;
		if (!tp4a_rx_take_one(a, &idx))
			return false;
		tp4a_put_spare(a, frame->idx);
		frame->idx = idx;
		to = tp4f_start(a, frame);
		memcpy(to + start, from + start,
		       frame->offset - start + frame->len);
		/* What the driver knows of the packet */
		if (a->meta && pos == p->start)
			memcpy(to, from, sizeof(struct tpacket4_meta));
	}
	return true;
}

/* Make the frames up to the current one empty again, except for spare ones. */
static void tp4a_recycle_posted(struct tp4_packet_array *a)
{
	for (; a->start != a->curr; a->start++) {
		const struct tp4_frame frame = a->items[a->start & a->mask];

		if (tp4a_is_spare(a, &frame)) {
			tp4a_put_spare(a, frame.idx);
			continue;
		}
		a->items[a->end++ & a->mask] = (struct tp4_frame) {
			.idx = frame.idx,
			.offset = a->offset,
		};
	}
}

/* Number of frames of a packet that are not spare ones */
static u32 tp4a_own_frames(const struct tp4_packet_array *a,
			   const struct tp4_frame_set *p)
{
	u32 pos, nr = 0;

	for (pos = p->start; pos != p->end; pos++)
		nr += !tp4a_is_spare(a, &a->items[pos & a->mask]);
	return nr;
}

/* Publish the packets that the frames to keep are not needed for, and that are
 * in frames of the ring. The frames of the others are used again.
 */
static noinline int tp4a_rx_flush_some(struct tp4_packet_array *a, u32 end)
{
	u32 pos, next, to = a->start, left, drops = 0;
	int packets = 0;

	tp4a_rx_take_keep(a);
	left = tp4a_nr_posted(a);
	for (pos = a->start; pos != end; pos = next) {
		struct tp4_frame_set p;
		u32 own;

		tp4a_get_packet(a, pos, &p);
		next = p.end;
		own = tp4a_own_frames(a, &p);
		if (left - own < a->keep || !tp4a_copy_spares(a, &p)) {
			drops++;
			continue;
		}
		left -= own;
		for (; p.start != p.end; p.start++, to++)
			swap(a->items[to & a->mask],
			     a->items[p.start & a->mask]);
	}
	if (to != a->start)
		packets = tp4a_rx_flush(a, to);
	if (drops)
		tp4a_count_no_desc(a, drops);
	tp4a_recycle_posted(a);
	return packets;
}

/* The ring does not get the last frames, as a program that is slow may not post
 * others, and the stack needs some for its packets.
 */
static int tp4a_rx_flush_keep(struct tp4_packet_array *a, u32 end)
{
	if (likely(a->area && a->end - end >= a->keep))
		return tp4a_rx_flush(a, end);
	return tp4a_rx_flush_some(a, end);
}

/* With TP4_RING_TO_STACK, the stack gets copies of the packets. */
static int tp4a_rx_flush_to_both(struct tp4_packet_array *a, u32 end)
{
	int packets;

	tp4a_copy_to_kernel(a, end);
	packets = tp4a_rx_flush_keep(a, end);
	tp4a_flush(a->to_kernel);
	return packets;
}

static const struct tp4_array_ops tp4a_rx_keep_ops = {
	.validation = TP4_VALIDATION_IDX,
	.populate = tp4a_rx_populate_keep,
	.flush = tp4a_rx_flush_keep,
	.publish = tp4a_rx_flush_keep,
	.count_drop = tp4a_rx_count_drop,
	.free = tp4a_rx_free,
};

static const struct tp4_array_ops tp4a_rx_to_stack_ops = {
	.validation = TP4_VALIDATION_IDX,
	.populate = tp4a_rx_populate_keep,
	.flush = tp4a_rx_flush_to_both,
	.publish = tp4a_rx_flush_keep,
	.count_drop = tp4a_rx_count_drop,
	.free = tp4a_rx_free,
};

/**
 * tp4a_keep_ops() - get the operations of an Rx array that keeps frames
 * @ring:	its ring
 *
 * Context: Any.
 * Return: the operations.
 */
const struct tp4_array_ops *tp4a_keep_ops(const struct tp4_zc_ring *ring)
{
	if (ring->q->flags & TP4_RING_TO_STACK)
		return &tp4a_rx_to_stack_ops;
	return &tp4a_rx_keep_ops;
}
