// SPDX-License-Identifier: GPL-2.0
/* Rx rings with TP4_RING_PACKED: packets lie one behind the other in the area
 *
 * Memory is used in the order of the ring, so two positions describe what is
 * free: where the next packet goes, and where the oldest packet starts that the
 * program has not given back. The program tells the latter by the descriptors
 * that it posts. Only that posted last matters. It is looked for when there
 * seems to be no room, not for each packet.
 */

#include <kunit/visibility.h>

#include "tp4_pack.h"

static bool tp4_pack_is_posted(const struct tp4_queue *q, unsigned long pos)
{
	return !tp4q_is_held(q, pos) && tp4q_kernel_owns(q, pos);
}

/* Get the position of the slot posted last, from @last on and before @end. The
 * program posts slots in order, so one half of the rest is posted, or it is
 * not. If it does not, any slot can be the result.
 */
static unsigned long tp4_pack_last_posted(const struct tp4_queue *q,
					  unsigned long last,
					  unsigned long end)
{
	unsigned long step = 1;

	while (end - last > step && tp4_pack_is_posted(q, last + step)) {
		last += step;
		step *= 2;
	}
	end = min(end, last + step);
	while (end - last > 1) {
		unsigned long mid = last + (end - last) / 2;

		if (tp4_pack_is_posted(q, mid))
			last = mid;
		else
			end = mid;
	}
	return last;
}

/**
 * tp4_pack_refresh() - see which memory the program has given back since
 * @q:	an Rx queue with TP4_RING_PACKED
 * @p:	that of the queue, or a copy, which may not belong to the positions
 *
 * Context: Under the queue's Rx lock; with a copy, any in which the queue cannot
 * go away.
 */
void tp4_pack_refresh(const struct tp4_queue *q, struct tp4_pack *p)
{
	unsigned long in = READ_ONCE(q->in), out = atomic_long_read(&q->out);
	unsigned long last = in - 1, end = out + q->mask + 1;
	u64 idx;

	if ((long)(p->posted - last) > 0)
		last = p->posted;
	if ((long)(in - out) < 0 || (long)(end - last) <= 0)
		return;
	last = tp4_pack_last_posted(q, last, end);
	/* After all memory was given back, what was posted before says nothing.
	 */
	if (last == out - 1 || last == p->posted)
		return;
	WRITE_ONCE(p->posted, last);
	if (last == end - 1) {
		/* All slots are posted, so nothing is in use. */
		WRITE_ONCE(p->head, 0);
		WRITE_ONCE(p->tail, 0);
		return;
	}
	idx = (long)(last - in) < 0 ? READ_ONCE(q->held[last & q->mask]) :
				      READ_ONCE(tp4q_slot(q, last)->idx);
	if (idx < q->area->nr_frames)
		WRITE_ONCE(p->tail, (unsigned long)idx << q->area->frame_shift);
}
EXPORT_SYMBOL_IF_KUNIT(tp4_pack_refresh);

/**
 * tp4_pack_room() - check whether there is memory for a packet
 * @q:		an Rx queue with TP4_RING_PACKED
 * @bytes:	what the packet takes, see tp4_pack_bytes()
 * @pow_off:	0 to check for the packet only, n to check for 1/2^n of the area,
 *		too
 *
 * Context: Any in which the queue cannot go away; without its lock, the result
 * is only a hint.
 * Return: true if there is, in one piece.
 */
bool tp4_pack_room(const struct tp4_queue *q, unsigned long bytes,
		   unsigned int pow_off)
{
	struct tp4_pack p = {
		.size = q->pack.size,
		.head = READ_ONCE(q->pack.head),
		.tail = READ_ONCE(q->pack.tail),
		.posted = READ_ONCE(q->pack.posted),
	};
	unsigned long start;

	if (pow_off)
		bytes = max(bytes, p.size >> pow_off);
	if (tp4_pack_find(&p, bytes, &start))
		return true;
	tp4_pack_refresh(q, &p);
	return tp4_pack_find(&p, bytes, &start);
}
EXPORT_SYMBOL_IF_KUNIT(tp4_pack_room);
