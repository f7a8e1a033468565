/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PACKET_TP4_ARRAY_H__
#define __PACKET_TP4_ARRAY_H__

#include <linux/hrtimer.h>
#include <linux/mm_types.h>
#include <linux/tpacket4.h>

#include "tp4_area.h"
#include "tp4_queue.h"

/**
 * struct tp4_zc_ring - one ring of a socket in zero-copy mode
 * @q:		the ring, or NULL if the socket has none
 * @area:	what the frames of its array lie in: the area of @q, or one that has
 *		it and spare frames, see tp4_area_add_spares()
 * @error:	errno that frames are returned with when the array is freed
 * @queue_pair:	queue pair of the device
 * @dev:	the device
 * @stamps:	timestamps that the driver supports, as SOF_TIMESTAMPING_TX_* (Tx)
 * @seen:	the device that the socket is bound to, for the program
 * @held:	the driver holds @area, see tp4a_hold_area()
 * @need_wakeup: last argument of tp4a_need_wakeup()
 * @kick:	lets the driver look for empty frames, in a softirq (Rx)
 * @refill:	calls @kick when too few frames were posted (Rx)
 * @refill_ns:	its interval
 *
 * rx_opaque and tx_opaque of struct tp4_netdev_parms point to this.
 */
struct tp4_zc_ring {
	struct tp4_queue	*q;
	struct tp4_area		*area;
	int			error;
	int			queue_pair;
	u32			stamps;
	struct net_device	*dev;
	struct net_device	*seen;
	bool			held;
	bool			need_wakeup;
	void			(*kick)(struct tp4_zc_ring *ring);
	struct hrtimer		refill;
	u32			refill_ns;
};

/* Number of frames that an array which keeps some always has, if its size allows,
 * and number of the kernel's own that it has for that. Packets that have not been
 * flushed may be in as many.
 */
#define TP4_KEEP	64
#define TP4_SPARES	(2 * TP4_KEEP)

/**
 * struct tp4_spares - frames of the kernel's own, for an Rx array
 * @first:	lowest number of a frame; all others above it are spare frames, too
 * @nr:		number of frames
 * @nr_free:	number of those that are not in the array
 * @free:	their numbers
 */
struct tp4_spares {
	u32	first;
	u32	nr;
	u32	nr_free;
	u32	free[TP4_SPARES];
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

static inline struct tp4_zc_ring *tp4a_zc_ring(const struct tp4_packet_array *a)
{
	return a->queue_opaque;
}

/* Check whether a frame, which the device has not got, is the kernel's own. */
static inline bool tp4a_is_spare(const struct tp4_packet_array *a,
				 const struct tp4_frame *frame)
{
	return a->spares && frame->idx >= a->spares->first;
}

static inline u32 tp4a_nr_spares(const struct tp4_packet_array *a)
{
	return a->spares ? a->spares->nr - a->spares->nr_free : 0;
}

struct tp4_packet_array *tp4a_new(const struct tp4_array_ops *ops,
				  size_t elems);
bool tp4a_map(struct tp4_packet_array *a);
void tp4a_unmap(struct tp4_packet_array *a);
void tp4a_rx_populate_checked(struct tp4_packet_array *a);
int tp4a_rx_flush(struct tp4_packet_array *a, u32 end);
void tp4a_count_no_desc(struct tp4_packet_array *a, u32 nr);
void tp4a_rx_count_drop(struct tp4_packet_array *a);
void tp4a_rx_free(struct tp4_packet_array *a);
struct tp4_area *tp4_area_add_spares(struct tp4_area *base);
const struct tp4_array_ops *tp4a_keep_ops(const struct tp4_zc_ring *ring);
bool tp4a_init_spares(struct tp4_packet_array *a);
int tp4a_run_xdp(struct tp4_packet_array *a);
void tp4a_copy_to_kernel(struct tp4_packet_array *a, u32 end);
void tp4a_write_meta_to(const struct tp4_packet_array *a,
			const struct tp4_frame *first, struct tpacket4_meta *to,
			u32 len, const struct sock *sk, u64 now);
bool tp4_can_stamp(const struct tp4_zc_ring *ring, u32 tsflags);

#endif
