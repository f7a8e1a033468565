/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PACKET_TP4_PACK_H__
#define __PACKET_TP4_PACK_H__

#include <linux/align.h>

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

bool tp4_pack_reserve(struct tp4_queue *q, unsigned long bytes,
		      unsigned long *pos, unsigned long *start);
bool tp4_pack_room(const struct tp4_queue *q, unsigned long bytes,
		   unsigned int pow_off);

#endif
