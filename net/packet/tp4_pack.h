/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PACKET_TP4_PACK_H__
#define __PACKET_TP4_PACK_H__

#include <linux/align.h>
#include <linux/bits.h>

#include "tp4_queue.h"

/* Alignment of packets in a ring with TP4_RING_PACKED */
#define TP4_PACK_ALIGN		8

/**
 * tp4_pack_bytes() - get the memory that a received packet takes
 * @q:		an Rx queue with TP4_RING_PACKED
 * @len:	bytes of the packet
 *
 * Return: the number of bytes, with the headroom.
 */
static inline unsigned long tp4_pack_bytes(const struct tp4_queue *q, u32 len)
{
	return ALIGN((unsigned long)q->offset + len, TP4_PACK_ALIGN);
}

/**
 * tp4_pack_desc() - describe a packet in the memory of a packed ring
 * @q:		an Rx queue with TP4_RING_PACKED
 * @start:	where its memory starts in the area, see tp4_pack_reserve()
 * @len:	bytes of the packet
 *
 * Return: the descriptor.
 */
static inline struct tpacket4_desc tp4_pack_desc(const struct tp4_queue *q,
						 unsigned long start, u32 len)
{
	const u8 shift = q->area->frame_shift;

	return (struct tpacket4_desc) {
		.idx = start >> shift,
		.len = len,
		.offset = (start & (BIT(shift) - 1)) + q->offset,
		.flags = q->meta,
	};
}

/* Find room in one piece. One byte at least stays free, so that equal positions
 * mean that all is.
 */
static inline bool tp4_pack_find(const struct tp4_pack *p, unsigned long bytes,
				 unsigned long *start)
{
	*start = p->head;
	if (p->head < p->tail)
		return bytes < p->tail - p->head;
	if (bytes < p->size - p->head ||
	    (bytes == p->size - p->head && p->tail))
		return true;
	*start = 0;
	return bytes < p->tail;
}

void tp4_pack_refresh(const struct tp4_queue *q, struct tp4_pack *p);

/**
 * tp4_pack_reserve() - claim a slot and memory for a packet
 * @q:		an Rx queue with TP4_RING_PACKED
 * @bytes:	what the packet takes, see tp4_pack_bytes()
 * @pos:	set to the position of the slot
 * @start:	set to the position in the area of the memory
 *
 * A program that gives back memory too early only damages its own packets: what
 * is claimed is within the area. After a quarter of the area, the reader is to
 * be woken for however few packets, as poll() may wait for more slots than
 * there is memory for.
 *
 * Context: Under the queue's Rx lock.
 * Return: true if there are both; else none is claimed.
 */
static inline bool tp4_pack_reserve(struct tp4_queue *q, unsigned long bytes,
				    unsigned long *pos, unsigned long *start)
{
	struct tp4_pack *p = &q->pack;
	unsigned long head;

	if (unlikely(!tp4_pack_find(p, bytes, start))) {
		tp4_pack_refresh(q, p);
		if (!tp4_pack_find(p, bytes, start))
			return false;
	}
	if (unlikely(!tp4q_rx_reserve(q, 1, pos)))
		return false;
	head = *start + bytes;
	WRITE_ONCE(p->head, likely(head != p->size) ? head : 0);
	p->recent += bytes;
	if (unlikely(p->recent > p->size / 4)) {
		p->recent = 0;
		WRITE_ONCE(q->starved, true);
	}
	return true;
}

bool tp4_pack_room(const struct tp4_queue *q, unsigned long bytes,
		   unsigned int pow_off);

#endif
