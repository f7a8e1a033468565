/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PACKET_TP4_QUEUE_H__
#define __PACKET_TP4_QUEUE_H__

#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/if_packet.h>
#include <linux/skbuff.h>
#include <linux/types.h>
#include <net/sock.h>

#include "tp4_area.h"

struct tp4_tx;

/* The kernel does not hold a descriptor of this slot. Not a valid frame number.
 */
#define TP4_NOT_HELD	U32_MAX

/* Minimum number of data bytes in a frame of a ring */
#define TP4_ROOM_MIN	64

/* Maximum number of descriptors refused per packet: each one costs a walk over
 * the descriptors that were taken but not returned.
 */
#define TP4_RX_REFUSALS	64

#define TP4_DESCS_PER_LINE	(SMP_CACHE_BYTES > 16 ? SMP_CACHE_BYTES / 16 : 1)

/**
 * struct tp4_queue - the kernel's side of one ring
 * @ring:	the descriptors, shared with user space and never trusted
 * @area:	the packet buffer that the descriptors refer to
 * @held:	per slot, the frame of a descriptor that was taken but not
 *		returned yet, or TP4_NOT_HELD
 * @tx:		Tx state, see tp4_tx.c
 * @sk:		the socket
 * @mask:	number of slots minus one
 * @offset:	offset of received data in a frame
 * @room:	bytes of received data that fit a frame
 * @in_chain:	skipping the rest of a packet that was refused because it has
 *		too many descriptors (Tx)
 * @returned:	poll() has seen a returned descriptor (Rx)
 * @in:		number of descriptors taken: position of the next one to read
 * @out:	number of descriptors returned, or claimed to be returned:
 *		position of the next one to write
 * @ring_full:	packets dropped because the program owns all slots (Rx), kicks
 *		stopped by a full device (Tx)
 * @no_desc:	packets dropped because too few frames were posted (Rx), kicks
 *		that found nothing posted (Tx)
 * @invalid:	descriptors refused
 *
 * The members up to and including @room are constant while the ring is in use.
 * @in and @in_chain are protected by sk_receive_queue.lock for Rx and by
 * pg_vec_lock for Tx. @returned is protected by sk_receive_queue.lock.
 *
 * For Rx, @out is protected by the same lock as @in. For Tx, a position of @out
 * is claimed atomically by the context that returns a descriptor, which can be
 * any context. The slots of @held that have not been taken belong to the
 * context that owns @in; a taken one belongs to the context that claims its
 * position of @out.
 *
 * Slots are returned in ring order, whatever the order of the frames: the
 * oldest slot not yet returned gets the frame that completes next.
 */
struct tp4_queue {
	struct tpacket4_desc	*ring;
	struct tp4_area		*area;
	u32			*held;
	struct tp4_tx		*tx;
	struct sock		*sk;
	u32			mask;
	u32			offset;
	u32			room;
	bool			in_chain;
	bool			returned;

	unsigned long		in ____cacheline_aligned_in_smp;
	atomic_long_t		out;
	atomic_long_t		ring_full;
	atomic_long_t		no_desc;
	atomic_long_t		invalid;
};

static inline struct tpacket4_desc *tp4q_slot(const struct tp4_queue *q,
					      unsigned long pos)
{
	return &q->ring[pos & q->mask];
}

/* Read the flags of a descriptor. If it is posted, its other fields may be read
 * after that.
 */
static inline u8 tp4q_load_flags(const struct tpacket4_desc *desc)
{
	/* Pairs with the program's release of a descriptor it posts. */
	return smp_load_acquire(&desc->flags);
}

/* True for a slot that is posted, or taken and not returned */
static inline bool tp4q_kernel_owns(const struct tp4_queue *q,
				    unsigned long pos)
{
	return tp4q_load_flags(tp4q_slot(q, pos)) & TP4_DESC_KERNEL;
}

/* Copy a posted descriptor. Every access is as wide as the field, like those of
 * user space.
 */
static inline bool tp4q_load(const struct tp4_queue *q, unsigned long pos,
			     struct tpacket4_desc *to)
{
	const struct tpacket4_desc *from = tp4q_slot(q, pos);

	to->flags = tp4q_load_flags(from);
	if (!(to->flags & TP4_DESC_KERNEL))
		return false;
	to->idx = READ_ONCE(from->idx);
	to->len = READ_ONCE(from->len);
	to->offset = READ_ONCE(from->offset);
	to->error = 0;
	return true;
}

/* Same for an Rx descriptor, of which only @idx matters */
static inline bool tp4q_load_idx(const struct tpacket4_desc *from, u64 *idx)
{
	if (!(tp4q_load_flags(from) & TP4_DESC_KERNEL))
		return false;
	*idx = READ_ONCE(from->idx);
	return true;
}

static inline void tp4q_store(struct tp4_queue *q, unsigned long pos,
			      const struct tpacket4_desc *from)
{
	struct tpacket4_desc *to = tp4q_slot(q, pos);

	WRITE_ONCE(to->idx, from->idx);
	WRITE_ONCE(to->len, from->len);
	WRITE_ONCE(to->offset, from->offset);
	WRITE_ONCE(to->error, from->error);
	/* Pairs with the program's acquire of a returned descriptor. */
	smp_store_release(&to->flags, from->flags);
}

/* Get the error of a descriptor, which has 8 bits, from a positive errno. Some of
 * those that only the kernel knows are larger.
 */
static inline u8 tp4_desc_error(int err)
{
	return likely(err <= U8_MAX) ? err : EIO;
}

/* TP4_DESC_KERNEL stays set until a descriptor is returned. Without this check
 * the kernel would take it twice.
 */
static inline bool tp4q_is_held(const struct tp4_queue *q, unsigned long pos)
{
	if ((long)(pos - atomic_long_read(&q->out)) > (long)q->mask)
		return true;
	/* Pairs with the release in tp4q_publish(). */
	return smp_load_acquire(&q->held[pos & q->mask]) != TP4_NOT_HELD;
}

static inline bool tp4q_take_one(const struct tp4_queue *q, unsigned long pos,
				 struct tpacket4_desc *desc)
{
	return !tp4q_is_held(q, pos) && tp4q_load(q, pos, desc);
}

/* Take the next slot. Both are read without the lock. */
static inline void tp4q_hold(struct tp4_queue *q, u32 frame)
{
	WRITE_ONCE(q->held[q->in & q->mask], frame);
	WRITE_ONCE(q->in, q->in + 1);
}

/* Position in the frame of the last byte of data. With a length of 0, it wraps
 * around and is in no frame.
 */
static inline u64 tp4q_data_last(const struct tpacket4_desc *desc)
{
	return (u64)(desc->len - 1) + desc->offset;
}

/* Check that the copy of a descriptor refers to data within a frame. */
static inline bool tp4q_desc_valid(const struct tp4_queue *q,
				   const struct tpacket4_desc *desc)
{
	return !(desc->flags & ~(TP4_DESC_KERNEL | TP4_DESC_SEEN |
				 TP4_PKT_CONT)) &&
	       tp4_area_frame_valid(q->area, desc->idx) &&
	       tp4q_data_last(desc) < q->area->frame_size;
}

/**
 * tp4q_publish() - return a descriptor to the program
 * @q:		the queue
 * @pos:	position that the caller has claimed from @q->out
 * @desc:	the descriptor to write, without TP4_DESC_KERNEL in @desc->flags
 *
 * The descriptors of a packet or batch are published last to first: when the
 * program sees the first one, it can read all of them.
 *
 * Context: Any.
 */
static inline void tp4q_publish(struct tp4_queue *q, unsigned long pos,
				const struct tpacket4_desc *desc)
{
	tp4q_store(q, pos, desc);
	/* Pairs with the acquire in tp4q_is_held(). */
	smp_store_release(&q->held[pos & q->mask], TP4_NOT_HELD);
}

/**
 * __tp4q_return() - return a batch of descriptors without waking the program
 * @q:		the queue
 * @descs:	the descriptors, in ring order
 * @nr:		how many; not more than were taken and not returned
 *
 * For callers that have more to do before tp4_wake_sender().
 *
 * Context: Any.
 */
static inline void __tp4q_return(struct tp4_queue *q,
				 const struct tpacket4_desc *descs, u32 nr)
{
	unsigned long pos = atomic_long_fetch_add(nr, &q->out);

	while (nr--)
		tp4q_publish(q, pos + nr, &descs[nr]);
}

void tp4_wake_sender(struct sock *sk);

/**
 * tp4q_return() - return a batch of descriptors and wake the program
 * @q:		a Tx queue
 * @descs:	the descriptors, in ring order
 * @nr:		how many; not more than were taken and not returned
 *
 * Context: Any except hard interrupt.
 */
static inline void tp4q_return(struct tp4_queue *q,
			       const struct tpacket4_desc *descs, u32 nr)
{
	__tp4q_return(q, descs, nr);
	tp4_wake_sender(q->sk);
}

void tp4q_rx_take(struct tp4_queue *q, u32 nr);
void tp4q_rx_count_drop(struct tp4_queue *q);

/**
 * tp4q_rx_reserve() - claim posted frames for a packet
 * @q:		an Rx queue
 * @nr:		number of frames that the packet needs
 * @pos:	set to the position of the first; frame i of the packet is
 *		@q->held at @pos + i
 *
 * Context: Under the queue's Rx lock.
 * Return: true if so many frames are posted; else none is claimed.
 */
static inline bool tp4q_rx_reserve(struct tp4_queue *q, u32 nr,
				   unsigned long *pos)
{
	unsigned long out = atomic_long_read(&q->out);

	if (q->in - out < nr) {
		tp4q_rx_take(q, nr);
		/* Refused descriptors have been returned and counted in it. */
		out = atomic_long_read(&q->out);
		if (q->in - out < nr)
			return false;
	}
	*pos = out;
	atomic_long_set(&q->out, out + nr);
	return true;
}

/**
 * tp4q_tx_take() - take the descriptors of a packet
 * @q:		a Tx queue
 * @nr:		how many, the return value of tp4q_tx_next()
 *
 * Context: Under the queue's Tx lock.
 */
static inline void tp4q_tx_take(struct tp4_queue *q, u32 nr)
{
	while (nr--)
		tp4q_hold(q, 0);
}

u32 tp4q_tx_peek(const struct tp4_queue *q, struct tpacket4_desc *descs,
		 u32 max);
int tp4q_tx_check(const struct tp4_queue *q, struct tpacket4_desc *descs,
		  u32 nr);
u32 tp4q_tx_next(struct tp4_queue *q, struct tpacket4_desc *descs, u32 limit,
		 u32 budget, bool *good);
bool tp4q_rx_room(const struct tp4_queue *q, unsigned int pow_off);
bool tp4q_rx_readable(struct tp4_queue *q);
bool tp4q_program_owns_last(const struct tp4_queue *q);

#endif
