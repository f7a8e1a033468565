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

bool tp4_pack_reserve(struct tp4_queue *q, unsigned long bytes,
		      unsigned long *pos, unsigned long *start);
bool tp4_pack_room(const struct tp4_queue *q, unsigned long bytes,
		   unsigned int pow_off);

#endif
