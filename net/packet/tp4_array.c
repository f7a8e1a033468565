// SPDX-License-Identifier: GPL-2.0
/* Packet arrays: functions that do not depend on the source or sink */

#include <linux/export.h>
#include <linux/log2.h>
#include <linux/slab.h>
#include <linux/tpacket4.h>

#include "tp4_array.h"
#include "tp4_meta.h"

/**
 * tp4a_new() - allocate an empty array
 * @ops:	operations of its source and sink
 * @elems:	minimum number of frames that it can hold
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
 * @a:	the array, which is no longer in use, or NULL
 *
 * Frames in the array are returned to their owner. If the device has not given
 * all frames back, see tp4a_handed_out(), nobody knows which ones it may still
 * write to. As many slots are then returned with the error EIO and no frame, and
 * the packet buffer is never released.
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
 * tp4a_populate() - fill the array from its source
 * @a:	the array
 *
 * Invalid descriptors are returned to user space at once.
 *
 * Context: Softirq (NAPI).
 */
void tp4a_populate(struct tp4_packet_array *a)
{
	a->ops->populate(a);
}
EXPORT_SYMBOL_GPL(tp4a_populate);

/**
 * tp4a_flush() - pass processed frames to the sink
 * @a:	the array
 *
 * Runs the XDP program, if there is one; frames of packets that do not go to
 * the sink are used again. Wakes a program that waits for packets or frames.
 *
 * Context: Softirq (NAPI).
 * Return: the number of packets passed to the sink.
 */
int tp4a_flush(struct tp4_packet_array *a)
{
	if (a->start == a->curr)
		return 0;
	return a->ops->flush(a, a->curr);
}
EXPORT_SYMBOL_GPL(tp4a_flush);

/**
 * tp4a_flush_sent() - flush the oldest frames
 * @a:	the Tx array
 * @nr:	number of frames, not more than have been processed
 *
 * For devices that complete packets in order, so that the driver only has to
 * count them.
 *
 * Context: Softirq (NAPI).
 */
void tp4a_flush_sent(struct tp4_packet_array *a, u32 nr)
{
	if (nr)
		a->ops->flush(a, a->start + nr);
}
EXPORT_SYMBOL_GPL(tp4a_flush_sent);

/**
 * tp4a_flush_completed() - flush completed packets
 * @a:	the array
 *
 * Same as tp4a_flush(), but stops at the first frame that is not marked by
 * tp4f_packet_completed().
 *
 * Context: Softirq (NAPI).
 * Return: the number of packets passed to the sink.
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
 * tp4a_recycle() - make processed frames empty again instead of flushing them
 * @a:	the Rx array
 *
 * The frames move to the end of the array.
 *
 * Context: Softirq (NAPI).
 */
void tp4a_recycle(struct tp4_packet_array *a)
{
	tp4a_recycle_to(a, a->curr);
}
EXPORT_SYMBOL_GPL(tp4a_recycle);

/* Reverse the order of the frames from @from to @to. */
static void tp4a_reverse(struct tp4_packet_array *a, u32 from, u32 to)
{
	for (; from != to && from != --to; from++)
		swap(a->items[from & a->mask], a->items[to & a->mask]);
}

/**
 * tp4a_reuse() - make the frames processed last empty again
 * @a:	the Rx array
 * @nr:	number of frames
 *
 * For frames that the hardware has used for something other than a valid
 * packet. They move to the end of the array. Frames processed before them move
 * up by @nr and are still to be flushed.
 *
 * Context: Softirq (NAPI).
 */
void tp4a_reuse(struct tp4_packet_array *a, u32 nr)
{
	const u32 pos = a->curr - nr;

	if (pos != a->start) {
		/* Rotate, in time that does not grow with the product of both. */
		tp4a_reverse(a, a->start, pos);
		tp4a_reverse(a, pos, a->curr);
		tp4a_reverse(a, a->start, a->curr);
	}
	/* In a full array, the first and the next free element are the same. */
	while (nr--) {
		struct tp4_frame frame = a->items[a->start++ & a->mask];

		tp4a_reset_frame(a, &frame);
		a->items[a->end++ & a->mask] = frame;
	}
}
EXPORT_SYMBOL_GPL(tp4a_reuse);

/* Make sure that the array has @nr empty frames: flush to make room, and
 * populate.
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
	a->ops->count_drop(a);
	return false;
}

/* Copy a packet to the next frames of @a, whose size may differ. */
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

/* Copy a packet of several frames, or one that does not fit the next frame.
 * noinline, so that tp4a_copy_packet() saves no registers.
 */
static noinline bool tp4a_copy_long(struct tp4_packet_array *a,
				    struct tp4_frame_set *p)
{
	u32 len = tp4f_packet_len(p);
	u32 nr = DIV_ROUND_UP(len, a->room);

	if (unlikely(!tp4a_make_room(a, nr)))
		return false;
	tp4f_reset(p);
	tp4a_copy_frames(a, nr, p, len);
	return true;
}

/**
 * tp4a_copy_packet() - copy a packet to empty frames
 * @a:	the Rx array
 * @p:	the packet, of any other array
 *
 * Flushes and populates the array if it has too few empty frames. If there are
 * still too few, the packet is counted as dropped.
 *
 * Context: Softirq (NAPI).
 * Return: true if the packet was copied to @a.
 */
bool tp4a_copy_packet(struct tp4_packet_array *a, struct tp4_frame_set *p)
{
	const struct tp4_frame *from = tp4f_first(p);
	struct tp4_frame *to;
	u32 len = from->len;

	if (unlikely(tp4f_num_frames(p) != 1 || len > a->room ||
		     a->curr == a->end))
		return tp4a_copy_long(a, p);

	to = &a->items[a->curr++ & a->mask];
	to->len = len;
	memcpy(tp4f_start(a, to) + to->offset,
	       tp4f_start(p->pkt_arr, from) + from->offset, len);
	return true;
}
EXPORT_SYMBOL_GPL(tp4a_copy_packet);

/* Swap the frames of a packet that has several, or of one for which there is no
 * empty frame yet. noinline, so that tp4a_add_packet() saves no registers.
 */
static noinline bool tp4a_swap_long(struct tp4_packet_array *a,
				    struct tp4_frame_set *p)
{
	struct tp4_packet_array *from = p->pkt_arr;
	u32 i;

	for (i = p->start; i != p->end; i++) {
		if (from->items[i & from->mask].offset < a->offset)
			return tp4a_copy_packet(a, p);
	}
	if (unlikely(!tp4a_make_room(a, tp4f_num_frames(p))))
		return false;
	/* Frames of another buffer may have made the room. */
	if (unlikely(a->area != from->area))
		return tp4a_copy_packet(a, p);

	for (i = p->start; i != p->end; i++) {
		struct tp4_frame *empty = &a->items[a->curr++ & a->mask];
		struct tp4_frame *sent = &from->items[i & from->mask];

		swap(*sent, *empty);
		/* It is returned as a part of the packet that was sent. */
		sent->flags = empty->flags;
	}
	return true;
}

/**
 * tp4a_add_packet() - move or copy a packet to an array
 * @a:	the Rx array
 * @p:	the packet, of any other array
 *
 * If both arrays use the same packet buffer, their frames are swapped: the
 * packet moves to @a, and its own array gets empty frames to return instead.
 * Otherwise, or if the packet has too little headroom, it is copied.
 *
 * Context: Softirq (NAPI).
 * Return: same as tp4a_copy_packet().
 */
bool tp4a_add_packet(struct tp4_packet_array *a, struct tp4_frame_set *p)
{
	struct tp4_frame *sent, *empty;

	if (!a->area || a->area != p->pkt_arr->area)
		return tp4a_copy_packet(a, p);
	if (unlikely(tp4f_num_frames(p) != 1 || a->curr == a->end))
		return tp4a_swap_long(a, p);

	sent = tp4f_first(p);
	if (unlikely(sent->offset < a->offset))
		return tp4a_copy_packet(a, p);
	empty = &a->items[a->curr++ & a->mask];
	swap(*sent, *empty);
	return true;
}
EXPORT_SYMBOL_GPL(tp4a_add_packet);

/* Check for a packet of one frame that requests nothing. */
static bool tp4f_requests_nothing(const struct tp4_packet_array *a,
				  const struct tp4_frame *frame)
{
	if (likely(!(frame->flags & (TP4_PKT_CONT | TP4_META | TP4F_STAMP))))
		return true;
	return !(frame->flags & (TP4_PKT_CONT | TP4F_STAMP)) &&
	       tp4_meta_is_plain(tp4f_start(a, frame));
}

/* Move or copy the next @max packets, up to the first that needs more. There are
 * as many empty frames. @same is a constant: true if both arrays use the same
 * packet buffer.
 */
static __always_inline u32
tp4a_add_run(struct tp4_packet_array *a, struct tp4_packet_array *from, u32 max,
	     u32 min_len, u32 max_len, bool same, u64 *bytes)
{
	struct tp4_frame *sent = &from->items[from->curr & from->mask];
	struct tp4_frame *empty = &a->items[a->curr & a->mask];
	const struct tp4_frame *last = sent + max;
	u64 sum = 0;
	u32 nr;

	for (; sent != last; sent++, empty++) {
		u32 len = sent->len;

		if (unlikely(len < min_len || len > max_len ||
			     !tp4f_requests_nothing(from, sent)))
			break;
		if (!same) {
			empty->len = len;
			memcpy(tp4f_start(a, empty) + empty->offset,
			       tp4f_start(from, sent) + sent->offset, len);
		} else if (likely(sent->offset >= a->offset)) {
			swap(*sent, *empty);
		} else {
			break;
		}
		sum += len;
	}
	nr = max - (last - sent);
	from->curr += nr;
	a->curr += nr;
	*bytes += sum;
	return nr;
}

/**
 * tp4a_add_packets() - move or copy the packets that need nothing else
 * @a:		the Rx array
 * @from:	any other array, whose unprocessed packets are moved or copied
 * @max:	maximum number of packets
 * @min_len:	minimum number of bytes of a packet
 * @max_len:	maximum number of bytes of a packet
 * @bytes:	the bytes of the packets are added to this
 *
 * Same as tp4a_next_packet() and tp4a_add_packet() for each packet, but faster.
 * Stops at a packet that has several frames, another length or a request in its
 * metadata, or that tp4f_wants_stamp() is true for, or for which there is no empty
 * frame yet. May also stop at another packet. The caller then handles one packet
 * with those functions.
 *
 * Context: Softirq (NAPI).
 * Return: the number of packets.
 */
u32 tp4a_add_packets(struct tp4_packet_array *a, struct tp4_packet_array *from,
		     u32 max, u32 min_len, u32 max_len, u64 *bytes)
{
	max = min3(max, tp4a_nr_unprocessed(from), tp4a_nr_unprocessed(a));
	max = min3(max, tp4a_run(from, from->curr), tp4a_run(a, a->curr));
	if (a->area && a->area == from->area)
		return tp4a_add_run(a, from, max, min_len, max_len, true,
				    bytes);
	return tp4a_add_run(a, from, max, min_len, min(max_len, a->room), false,
			    bytes);
}
EXPORT_SYMBOL_GPL(tp4a_add_packets);

/**
 * tp4f_push_vlan() - put a VLAN tag that the device has stripped into a packet
 * @p:		the received packet, at its first frame
 * @proto:	the tag's protocol
 * @tci:	its tag control information
 *
 * The tag uses some of the frame's headroom.
 *
 * Context: Softirq (NAPI).
 */
void tp4f_push_vlan(struct tp4_frame_set *p, __be16 proto, u16 tci)
{
	struct tp4_frame *frame = tp4f_frame(p);
	struct vlan_ethhdr *eth;

	frame->offset -= VLAN_HLEN;
	frame->len += VLAN_HLEN;
	eth = tp4f_get_data(p);
	memmove(eth, (void *)eth + VLAN_HLEN, 2 * ETH_ALEN);
	eth->h_vlan_proto = proto;
	eth->h_vlan_TCI = htons(tci);
}
EXPORT_SYMBOL_GPL(tp4f_push_vlan);

/**
 * tp4f_get_meta() - get the checksum and GSO request of a packet to send
 * @p:		the packet, of a Tx array, for which tp4f_has_meta() is true
 * @m:		set to the flags of the request, 0 if there is none, and to the
 *		members that belong to them; offsets and sizes have not been
 *		checked
 *
 * Reads the metadata once. The driver must not read it again, as user space can
 * change it.
 *
 * Context: Any.
 * Return: 0, or an error to return the packet with: -EINVAL, or -EOPNOTSUPP for
 * a request that no driver supports.
 */
int tp4f_get_meta(const struct tp4_frame_set *p, struct tpacket4_meta *m)
{
	int err;

	err = tp4_meta_read(tp4f_meta(p), m);
	if (!err && m->flags & TP4_META_TX_LAUNCH)
		err = -EOPNOTSUPP;
	return err;
}
EXPORT_SYMBOL_GPL(tp4f_get_meta);
