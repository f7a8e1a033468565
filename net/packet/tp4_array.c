// SPDX-License-Identifier: GPL-2.0
/* Packet arrays: what they do whatever their source and sink are. */

#include <linux/export.h>
#include <linux/log2.h>
#include <linux/slab.h>
#include <linux/tpacket4.h>

#include "tp4_array.h"
#include "tp4_meta.h"

/**
 * tp4a_new() - make an empty array
 * @ops:	its kind
 * @elems:	frames that it must have room for
 *
 * Context: Process context, may sleep.
 * Return: the array, or NULL.
 */
struct tp4_packet_array *tp4a_new(const struct tp4_array_ops *ops, size_t elems)
{
	struct tp4_packet_array *a;

	elems = roundup_pow_of_two(max_t(size_t, elems, TP4_MAX_FRAMES));
	a = kvzalloc(struct_size(a, items, elems),
		     GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!a)
		return NULL;

	a->mask = elems - 1;
	a->ops = ops;
	return a;
}

/**
 * tp4a_free() - free an array
 * @a:	the array, which nobody uses any more, or NULL
 *
 * The frames in it are given back to their owner.
 *
 * Context: Process context, may sleep.
 */
void tp4a_free(struct tp4_packet_array *a)
{
	if (!a)
		return;

	a->ops->free(a);
	kvfree(a);
}
EXPORT_SYMBOL_GPL(tp4a_free);

/**
 * tp4a_populate() - let the source fill the array
 * @a:	the array
 *
 * What the program posted and is malformed goes straight back to it.
 *
 * Context: Softirq, as NAPI.
 */
void tp4a_populate(struct tp4_packet_array *a)
{
	a->ops->populate(a);
}
EXPORT_SYMBOL_GPL(tp4a_populate);

/**
 * tp4a_flush() - give the sink what has been processed
 * @a:	the array
 *
 * If packets have an XDP program to meet, frames of those that do not go to the
 * sink are used again. Whoever waits for packets or frames is woken.
 *
 * Context: Softirq, as NAPI.
 * Return: packets given.
 */
int tp4a_flush(struct tp4_packet_array *a)
{
	if (a->start == a->curr)
		return 0;
	if (a->xdp && a->xdp->prog)
		return tp4a_run_xdp(a);
	return a->ops->flush(a, a->curr);
}
EXPORT_SYMBOL_GPL(tp4a_flush);

/**
 * tp4a_flush_sent() - flush the oldest frames
 * @a:	the array, for Tx
 * @nr:	how many, no more than have been processed
 *
 * For a device that is done with packets in the order in which it got them, so
 * that a number is all that has to be kept.
 *
 * Context: Softirq, as NAPI.
 */
void tp4a_flush_sent(struct tp4_packet_array *a, u32 nr)
{
	if (nr)
		a->ops->flush(a, a->start + nr);
}
EXPORT_SYMBOL_GPL(tp4a_flush_sent);

/**
 * tp4a_flush_completed() - flush as far as packets are completed
 * @a:	the array
 *
 * As tp4a_flush(), but stops at the first frame that the driver has processed
 * and not marked by tp4f_packet_completed().
 *
 * Context: Softirq, as NAPI.
 * Return: packets given to the sink.
 */
int tp4a_flush_completed(struct tp4_packet_array *a)
{
	u32 end = a->start;

	while (end != a->curr && a->items[end & a->mask].flags & TP4F_COMPLETED)
		a->items[end++ & a->mask].flags &= ~TP4F_COMPLETED;

	return end == a->start ? 0 : a->ops->flush(a, end);
}
EXPORT_SYMBOL_GPL(tp4a_flush_completed);

/**
 * tp4a_recycle() - let frames be filled again instead of flushed
 * @a:	the array, for Rx
 *
 * What has been processed goes to the array's end.
 *
 * Context: Softirq, as NAPI.
 */
void tp4a_recycle(struct tp4_packet_array *a)
{
	while (a->start != a->curr) {
		struct tp4_frame *frame = &a->items[a->end++ & a->mask];

		*frame = a->items[a->start++ & a->mask];
		tp4a_reset_frame(a, frame);
	}
}
EXPORT_SYMBOL_GPL(tp4a_recycle);

/**
 * tp4a_reuse() - let the frames that were processed last be filled again
 * @a:	the array, for Rx
 * @nr:	how many
 *
 * For what the hardware has taken frames for and is no packet, or no good one.
 * They go to the array's end. Those processed before them move up by @nr, and
 * wait to be flushed as before.
 *
 * Context: Softirq, as NAPI.
 */
void tp4a_reuse(struct tp4_packet_array *a, u32 nr)
{
	while (nr--) {
		u32 pos = a->curr - 1;
		struct tp4_frame frame = a->items[pos & a->mask];

		for (; pos != a->start; pos--)
			a->items[pos & a->mask] =
				a->items[(pos - 1) & a->mask];
		a->start++;
		tp4a_reset_frame(a, &frame);
		a->items[a->end++ & a->mask] = frame;
	}
}
EXPORT_SYMBOL_GPL(tp4a_reuse);

/* See to it that there are empty frames for a packet: what the sink can take
 * makes room for what the source still has.
 */
static bool tp4a_make_room(struct tp4_packet_array *a, u32 nr)
{
	if (likely(nr <= a->end - a->curr))
		return true;
	if (nr <= a->mask + 1) {
		tp4a_flush(a);
		tp4a_populate(a);
		if (nr <= a->end - a->curr)
			return true;
	}
	a->ops->no_frame(a);
	return false;
}

/* Fill the next frames of @a from the frames of a packet of another size. */
static void tp4a_copy_frames(struct tp4_packet_array *a, u32 nr,
			     struct tp4_frame_set *p, u32 len)
{
	u32 from_pos = 0;

	while (nr--) {
		struct tp4_frame *to = &a->items[a->curr++ & a->mask];
		u32 pos = 0;

		to->len = min(len, a->room);
		to->flags = nr ? TP4_PKT_CONT : 0;
		len -= to->len;
		while (pos < to->len) {
			const struct tp4_frame *from = tp4f_frame(p);
			u32 bytes = min(to->len - pos, from->len - from_pos);

			memcpy(tp4f_start(a, to) + to->offset + pos,
			       tp4f_get_data(p) + from_pos, bytes);
			pos += bytes;
			from_pos += bytes;
			if (from_pos == from->len) {
				tp4f_next_frame(p);
				from_pos = 0;
			}
		}
	}
}

/**
 * tp4a_copy_packet() - fill empty frames with the data of a packet
 * @a:	the array, for Rx
 * @p:	the packet, of any other array
 *
 * If the array is full, it is flushed and populated first. A packet for which
 * there are too few frames even then is counted as dropped.
 *
 * Context: Softirq, as NAPI.
 * Return: whether the packet is in @a now.
 */
bool tp4a_copy_packet(struct tp4_packet_array *a, struct tp4_frame_set *p)
{
	u32 nr, len;

	tp4f_reset(p);
	len = tp4f_get_frame_len(p);
	if (likely(tp4f_num_frames(p) == 1 && len <= a->room &&
		   a->curr != a->end)) {
		struct tp4_frame *to = &a->items[a->curr++ & a->mask];

		to->len = len;
		memcpy(tp4f_start(a, to) + to->offset, tp4f_get_data(p), len);
		return true;
	}

	len = tp4f_packet_len(p);
	nr = DIV_ROUND_UP(len, a->room);
	if (unlikely(!tp4a_make_room(a, nr)))
		return false;
	tp4a_copy_frames(a, nr, p, len);
	return true;
}
EXPORT_SYMBOL_GPL(tp4a_copy_packet);

/**
 * tp4a_add_packet() - put a packet into an array
 * @a:	the array, for Rx
 * @p:	the packet, of any other array
 *
 * Where both arrays are over one area, their frames are exchanged: the packet
 * moves to @a, and its own array gets empty frames instead, which it gives back
 * as it would have given those of the packet. A packet without enough headroom,
 * or one from elsewhere, is copied.
 *
 * Context: Softirq, as NAPI.
 * Return: as tp4a_copy_packet().
 */
bool tp4a_add_packet(struct tp4_packet_array *a, struct tp4_frame_set *p)
{
	struct tp4_packet_array *from = p->pkt_arr;
	u32 i, nr = tp4f_num_frames(p);

	if (!a->area || a->area != from->area)
		return tp4a_copy_packet(a, p);
	if (likely(nr == 1 && a->curr != a->end)) {
		struct tp4_frame *sent = &from->items[p->start & from->mask];
		struct tp4_frame *empty = &a->items[a->curr & a->mask];

		if (unlikely(sent->offset < a->offset))
			return tp4a_copy_packet(a, p);
		swap(*sent, *empty);
		a->curr++;
		return true;
	}
	for (i = p->start; i != p->end; i++) {
		if (from->items[i & from->mask].offset < a->offset)
			return tp4a_copy_packet(a, p);
	}
	if (unlikely(!tp4a_make_room(a, nr)))
		return false;

	for (i = p->start; i != p->end; i++) {
		struct tp4_frame *empty = &a->items[a->curr++ & a->mask];
		struct tp4_frame *sent = &from->items[i & from->mask];

		swap(*sent, *empty);
		/* It is still a part of what was sent. */
		sent->flags = empty->flags;
	}
	return true;
}
EXPORT_SYMBOL_GPL(tp4a_add_packet);

/**
 * tp4f_get_vnet_hdr() - what does a packet want done when it is sent?
 * @p:		the packet, of an array for Tx, that tp4f_has_meta()
 * @hdr:	set to checksum and segmentation, in the byte order that
 *		virtio_legacy_is_little_endian() tells; of its offsets and sizes
 *		nothing has been checked
 *
 * The program's metadata is read once, and must not be read again.
 *
 * Context: Any.
 * Return: 0, or an errno to return the packet with: -EINVAL, or -EOPNOTSUPP for
 * what no driver does.
 */
int tp4f_get_vnet_hdr(const struct tp4_frame_set *p, struct virtio_net_hdr *hdr)
{
	return tp4_meta_to_vnet_hdr(tp4f_meta(p), hdr);
}
EXPORT_SYMBOL_GPL(tp4f_get_vnet_hdr);
