/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PACKET_TP4_RX_H__
#define __PACKET_TP4_RX_H__

#include <linux/netdevice.h>
#include <linux/skbuff.h>

#include "internal.h"
#include "tp4_area.h"
#include "tp4_queue.h"

/**
 * tp4_rx_frames() - number of frames that a received packet takes
 * @q:		the Rx queue
 * @len:	bytes of the packet
 *
 * The first frame has headroom, and the others are filled from their start: if
 * the program posts consecutive frames, the packet then lies in one piece.
 *
 * Return: the number of frames.
 */
static inline u32 tp4_rx_frames(const struct tp4_queue *q, u32 len)
{
	if (likely(len <= q->room))
		return 1;
	return 1 + DIV_ROUND_UP(len - q->room, q->area->frame_size);
}

/* Without CONFIG_PACKET_V4 all calls are optimized out. */
bool tp4_rx_room(const struct packet_sock *po, unsigned int pow_off);
void tp4_rx_set_hook(struct packet_sock *po);

#endif
