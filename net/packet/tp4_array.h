/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PACKET_TP4_ARRAY_H__
#define __PACKET_TP4_ARRAY_H__

#include <linux/hrtimer.h>
#include <linux/mm_types.h>
#include <linux/tpacket4.h>

#include "tp4_queue.h"

/**
 * struct tp4_zc_ring - one ring of a socket in zero-copy mode
 * @q:		the ring, or NULL if the socket has none
 * @error:	errno that frames are returned with when the array is freed
 * @queue_pair:	queue pair of the device
 * @dev:	the device
 * @seen:	the device that the socket is bound to, for the program
 * @need_wakeup: last argument of tp4a_need_wakeup()
 * @kick:	lets the driver look for empty frames, in a softirq (Rx)
 * @refill:	calls @kick when too few frames were posted (Rx)
 * @refill_ns:	its interval
 *
 * rx_opaque and tx_opaque of struct tp4_netdev_parms point to this.
 */
struct tp4_zc_ring {
	struct tp4_queue	*q;
	int			error;
	int			queue_pair;
	struct net_device	*dev;
	struct net_device	*seen;
	bool			need_wakeup;
	void			(*kick)(struct tp4_zc_ring *ring);
	struct hrtimer		refill;
	u32			refill_ns;
};

/**
 * enum tp4_validation - validation of the descriptors that a source takes
 * @TP4_VALIDATION_NONE: none, the source is the kernel
 * @TP4_VALIDATION_IDX:	check the frame number (Rx)
 * @TP4_VALIDATION_DESC: check the whole descriptor (Tx)
 */
enum tp4_validation {
	TP4_VALIDATION_NONE,
	TP4_VALIDATION_IDX,
	TP4_VALIDATION_DESC,
};

/**
 * struct tp4_array_ops - operations of an array's source and sink
 * @validation: what @populate checks
 * @populate:	add frames at the end of the array
 * @flush:	take the frames up to @end; returns the number of packets
 * @publish:	same, if XDP has run and the stack's copies have been made (Rx ring)
 * @set_offloads: set the hash, checksum state and hardware timestamp of the
 *		packet @p, whose copy is at @pos; @skb has them, or is NULL (skbs)
 * @count_drop:	count a packet that found too few frames (Rx)
 * @free:	take all frames, in any state
 */
struct tp4_array_ops {
	enum tp4_validation	validation;
	void	(*populate)(struct tp4_packet_array *a);
	int	(*flush)(struct tp4_packet_array *a, u32 end);
	int	(*publish)(struct tp4_packet_array *a, u32 end);
	void	(*set_offloads)(struct tp4_packet_array *a, u32 pos,
				const struct tp4_frame_set *p,
				struct sk_buff *skb);
	void	(*count_drop)(struct tp4_packet_array *a);
	void	(*free)(struct tp4_packet_array *a);
};

/* Make a frame empty again. */
static inline void tp4a_reset_frame(const struct tp4_packet_array *a,
				    struct tp4_frame *frame)
{
	frame->offset = a->offset;
	frame->error = 0;
	frame->flags = 0;
}

/* Make the frames up to @end empty and move them to the end of the array. */
static inline void tp4a_recycle_to(struct tp4_packet_array *a, u32 end)
{
	u32 from = a->start, to = a->end;

	for (; from != end; from++, to++)
		a->items[to & a->mask] = (struct tp4_frame) {
			.idx = a->items[from & a->mask].idx,
			.offset = a->offset,
		};
	a->start = from;
	a->end = to;
}

struct tp4_packet_array *tp4a_new(const struct tp4_array_ops *ops,
				  size_t elems);
bool tp4a_map(struct tp4_packet_array *a);
void tp4a_unmap(struct tp4_packet_array *a);
int tp4a_run_xdp(struct tp4_packet_array *a);
void tp4a_copy_to_kernel(struct tp4_packet_array *a, u32 end);
void tp4a_write_meta_to(const struct tp4_packet_array *a,
			const struct tp4_frame *first, struct tpacket4_meta *to,
			u32 len, const struct sock *sk, u64 now);

#endif
