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

/* The kernel holds no descriptor of this slot. No area has as many frames. */
#define TP4_NOT_HELD	U32_MAX

/* Most descriptors of a packet that is sent */
#define TP4_TX_DESCS	MAX_SKB_FRAGS

/* Most descriptors that are refused for one packet, or by one NAPI run: each
 * costs a walk over those that were taken and not returned.
 */
#define TP4_RX_REFUSALS	64

#define TP4_DESCS_PER_LINE	(SMP_CACHE_BYTES > 16 ? SMP_CACHE_BYTES / 16 : 1)

/**
 * struct tp4_queue - the kernel's side of one ring
 * @ring:	the descriptors, shared with the program and never trusted
 * @area:	the frames that they name
 * @held:	by slot, the frame of a descriptor that the kernel has taken and
 *		not returned yet, else TP4_NOT_HELD; all are that in zero-copy
 *		mode
 * @tx:		what only Tx needs, see tp4_tx.c
 * @sk:		the socket, or NULL in a test without one
 * @mask:	slots of the ring, less one
 * @offset:	bytes from the start of a frame to received data
 * @room:	bytes of received data that a frame takes
 * @flags:	TP4_RING_*, what the program has asked for
 * @meta:	TP4_META where packets have metadata, else 0
 * @zerocopy:	the driver reads the ring, not the socket
 * @in_chain:	the descriptors of a packet that was refused as too long are
 *		being skipped (Tx)
 * @returned:	poll() has seen that a descriptor was returned (Rx)
 * @in:		descriptors taken so far: the next one to read
 * @out:	descriptors returned so far, or promised: the next one to write
 * @ring_full:	packets dropped since the whole ring is with the program (Rx),
 *		kicks that a full device stopped (Tx)
 * @no_desc:	packets dropped for want of posted frames (Rx), kicks that found
 *		nothing posted (Tx)
 * @invalid:	descriptors refused
 *
 * Up to and with @meta nothing changes while the ring is in use. Readers of
 * the ring take turns: @in belongs to sk_receive_queue.lock on Rx, to
 * pg_vec_lock on Tx, and so does @in_chain; in zero-copy mode they belong to
 * the driver. @zerocopy is set under pg_vec_lock; it is cleared, with release
 * semantics, once the driver has let go of the ring. @returned belongs to
 * sk_receive_queue.lock. On Rx @out
 * moves under the same lock as @in, on Tx it is claimed by whoever returns a
 * descriptor, in any context. A slot of @held is the taker's from @in on, and
 * the returner's once that slot of @out is his.
 *
 * Slots come back in the order of the ring whatever the order of the frames:
 * the oldest slot that is out names the frame that is ready.
 *
 * In zero-copy mode the one who takes descriptors is the one who returns them,
 * and counts them in @out once they are published. So @in and @out alone say
 * which slots the kernel has, and nothing is noted a slot: tp4q_zc_*().
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
	u32			flags;
	u8			meta;
	bool			zerocopy;
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

/* Is a slot posted, or was it taken and not returned? */
static inline bool tp4q_kernel_owns(const struct tp4_queue *q,
				    unsigned long pos)
{
	/* Pairs with the program's release of a descriptor it posts. */
	return smp_load_acquire(&tp4q_slot(q, pos)->flags) & TP4_DESC_KERNEL;
}

/* Copy a descriptor, if the program has posted it. Every access has the size of
 * the field, as the program's have.
 */
static inline bool tp4q_load_slot(const struct tpacket4_desc *from,
				  struct tpacket4_desc *to)
{
	/* Pairs with the program's release of a descriptor it posts. */
	to->flags = smp_load_acquire(&from->flags);
	if (!(to->flags & TP4_DESC_KERNEL))
		return false;
	to->idx = READ_ONCE(from->idx);
	to->len = READ_ONCE(from->len);
	to->offset = READ_ONCE(from->offset);
	to->error = 0;
	return true;
}

static inline bool tp4q_load(const struct tp4_queue *q, unsigned long pos,
			     struct tpacket4_desc *to)
{
	return tp4q_load_slot(tp4q_slot(q, pos), to);
}

/* Copy what counts of an empty frame. */
static inline bool tp4q_load_idx(const struct tpacket4_desc *from, u64 *idx)
{
	/* Pairs with the program's release of a descriptor it posts. */
	if (!(smp_load_acquire(&from->flags) & TP4_DESC_KERNEL))
		return false;
	*idx = READ_ONCE(from->idx);
	return true;
}

static inline void tp4q_store_slot(struct tpacket4_desc *to,
				   const struct tpacket4_desc *from)
{
	WRITE_ONCE(to->idx, from->idx);
	WRITE_ONCE(to->len, from->len);
	WRITE_ONCE(to->offset, from->offset);
	WRITE_ONCE(to->error, from->error);
	/* Pairs with the program's acquire of what came back. */
	smp_store_release(&to->flags, from->flags);
}

static inline void tp4q_store(struct tp4_queue *q, unsigned long pos,
			      const struct tpacket4_desc *from)
{
	tp4q_store_slot(tp4q_slot(q, pos), from);
}

/* A descriptor stays marked as the kernel's until it is returned, so the mark
 * alone would let the kernel take it twice.
 */
static inline bool tp4q_is_held(const struct tp4_queue *q, unsigned long pos)
{
	/* Pairs with the release in tp4q_zc_returned(). */
	unsigned long out = atomic_long_read_acquire(&q->out);

	if ((long)(pos - out) > (long)q->mask)
		return true;
	/* Pairs with the release in tp4q_publish(). */
	return smp_load_acquire(&q->held[pos & q->mask]) != TP4_NOT_HELD;
}

/* Is a descriptor posted? A hint without the queue's lock. */
static inline bool tp4q_is_posted(const struct tp4_queue *q)
{
	unsigned long pos = READ_ONCE(q->in);
	struct tpacket4_desc desc;

	return !tp4q_is_held(q, pos) && tp4q_load(q, pos, &desc);
}

static inline bool tp4q_take_one(const struct tp4_queue *q, unsigned long pos,
				 struct tpacket4_desc *desc)
{
	return !tp4q_is_held(q, pos) && tp4q_load(q, pos, desc);
}

/* Take the next slot. Others look at both without the lock. */
static inline void tp4q_hold(struct tp4_queue *q, u32 frame)
{
	WRITE_ONCE(q->held[q->in & q->mask], frame);
	WRITE_ONCE(q->in, q->in + 1);
}

/* Does the copy of a descriptor name data within a frame? */
static inline bool tp4q_desc_valid(const struct tp4_queue *q,
				   const struct tpacket4_desc *desc)
{
	/* No bytes are very many here. */
	u64 last = (u64)(desc->len - 1) + desc->offset;

	return !(desc->flags & ~(TP4_DESC_KERNEL | TP4_PKT_CONT | TP4_META)) &&
	       desc->idx < q->area->nr_frames && last < q->area->frame_size;
}

/* May the copy of a descriptor, the packet's @nr-th, have the flags that it has?
 * Metadata is in the first frame, and not under the data.
 */
static inline bool tp4q_meta_valid(const struct tp4_queue *q,
				   const struct tpacket4_desc *desc, u32 nr)
{
	if (likely(!(desc->flags & TP4_META)))
		return true;
	return q->meta && !nr && desc->offset >= sizeof(struct tpacket4_meta);
}

/**
 * tp4q_publish() - hand a descriptor to the program
 * @q:		the queue
 * @pos:	position that the caller has claimed from @q->out
 * @desc:	what to write; @desc->flags without TP4_DESC_KERNEL
 *
 * Positions of one packet or batch are published last to first, so that a
 * program that finds the first one ready finds them all.
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
 * __tp4q_return() - hand a batch of descriptors to the program, and wake nobody
 * @q:		the queue
 * @descs:	what to write, in the order of the ring
 * @nr:		how many, no more than were taken and not returned
 *
 * For a caller who must do more before tp4_wake_sender(), or who returns what
 * nobody waits for.
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

/* Has the program as many of the slots that were returned as it wants to be
 * woken for? If it has posted too few for that, all of them have to do.
 */
static inline bool tp4q_rx_enough(const struct tp4_queue *q, u32 wanted)
{
	unsigned long out = atomic_long_read(&q->out);

	return !tp4q_kernel_owns(q, out - min(wanted, q->mask + 1)) ||
	       !tp4q_kernel_owns(q, out);
}

/**
 * tp4q_wake_reader() - wake whoever waits for packets, if there are enough
 * @q:	an Rx queue with a socket, after descriptors were published
 *
 * Context: Any but hard interrupt.
 */
static inline void tp4q_wake_reader(const struct tp4_queue *q)
{
	int wanted = READ_ONCE(q->sk->sk_rcvlowat);

	if (unlikely(wanted > 1)) {
		/* Of two that publish at a time, the second one must see what
		 * both have.
		 */
		smp_mb();
		if (!tp4q_rx_enough(q, wanted))
			return;
	}
	q->sk->sk_data_ready(q->sk);
}

/**
 * tp4q_wake() - wake whoever waits for descriptors of a ring
 * @q:	the queue, after descriptors were published
 *
 * Context: Any but hard interrupt.
 */
static inline void tp4q_wake(const struct tp4_queue *q)
{
	if (unlikely(!q->sk))
		return;
	if (q->tx)
		tp4_wake_sender(q->sk);
	else
		tp4q_wake_reader(q);
}

/**
 * tp4q_return() - hand a batch of descriptors to the program, and wake it
 * @q:		the queue
 * @descs:	what to write, in the order of the ring
 * @nr:		how many, no more than were taken and not returned
 *
 * Context: Any but hard interrupt.
 */
static inline void tp4q_return(struct tp4_queue *q,
			       const struct tpacket4_desc *descs, u32 nr)
{
	__tp4q_return(q, descs, nr);
	tp4q_wake(q);
}

void tp4q_rx_refuse(struct tp4_queue *q, u64 idx);
void tp4q_rx_take(struct tp4_queue *q, u32 nr);
void tp4q_rx_put_back(struct tp4_queue *q);
void tp4q_rx_count_drop(struct tp4_queue *q);

/**
 * tp4q_rx_take_one() - take the next posted frame
 * @q:		an Rx queue
 * @frame:	set to its number, or to TP4_NOT_HELD where the descriptor named
 *		none and was returned
 *
 * Context: Under the queue's Rx lock.
 * Return: whether a descriptor was posted.
 */
static inline bool tp4q_rx_take_one(struct tp4_queue *q, u32 *frame)
{
	u64 idx;

	if (tp4q_is_held(q, q->in) ||
	    !tp4q_load_idx(tp4q_slot(q, q->in), &idx))
		return false;

	if (likely(idx < q->area->nr_frames)) {
		*frame = idx;
		tp4q_hold(q, idx);
	} else {
		*frame = TP4_NOT_HELD;
		tp4q_rx_refuse(q, idx);
	}
	return true;
}

/**
 * tp4q_rx_reserve() - claim posted frames for a packet
 * @q:		an Rx queue
 * @nr:		frames that the packet needs
 * @pos:	set to the position of the first; frame i of the packet is
 *		@q->held at @pos + i
 *
 * Context: Under the queue's Rx lock.
 * Return: whether so many are posted; if not, none is claimed.
 */
static inline bool tp4q_rx_reserve(struct tp4_queue *q, u32 nr,
				   unsigned long *pos)
{
	unsigned long out = atomic_long_read(&q->out);

	if (q->in - out < nr) {
		tp4q_rx_take(q, nr);
		/* A refused descriptor has been returned, and moved this on. */
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
 * @nr:		how many, as tp4q_tx_next() found them
 *
 * Context: Under the queue's Tx lock.
 */
static inline void tp4q_tx_take(struct tp4_queue *q, u32 nr)
{
	while (nr--)
		tp4q_hold(q, 0);
}

/**
 * tp4q_zc_took() - count descriptors as taken
 * @q:	a queue in zero-copy mode
 * @nr:	how many of those that are posted were copied, from @q->in on
 *
 * Once a batch. Until then, who looks from outside finds them posted.
 *
 * Context: Where the ring is read.
 */
static inline void tp4q_zc_took(struct tp4_queue *q, u32 nr)
{
	WRITE_ONCE(q->in, q->in + nr);
}

/**
 * tp4q_zc_returned() - count descriptors as returned
 * @q:	a queue in zero-copy mode
 * @nr:	how many were written by tp4q_store(), from @q->out on
 *
 * They are written last to first, so that a program that finds the first one
 * ready finds them all, and counted once a batch.
 *
 * Context: Where the ring is read.
 */
static inline void tp4q_zc_returned(struct tp4_queue *q, u32 nr)
{
	/* Pairs with the acquires in tp4q_is_held() and tp4_zc_is_sent(). */
	atomic_long_set_release(&q->out, atomic_long_read(&q->out) + nr);
}

bool tp4q_is_idle(const struct tp4_queue *q);
void tp4q_zc_refuse(struct tp4_queue *q, const struct tpacket4_desc *descs,
		    u32 nr);
u32 tp4q_tx_peek(const struct tp4_queue *q, struct tpacket4_desc *descs,
		 u32 max);
bool tp4q_tx_ready(const struct tp4_queue *q, u32 room);
int tp4q_tx_check(const struct tp4_queue *q, struct tpacket4_desc *descs,
		  u32 nr);
u32 tp4q_tx_next(struct tp4_queue *q, struct tpacket4_desc *descs, u32 budget,
		 bool *good);
void tp4q_tx_refuse(struct tp4_queue *q, struct tpacket4_desc *descs, u32 nr);
bool tp4q_rx_room(const struct tp4_queue *q, unsigned int pow_off);
bool tp4q_rx_readable(struct tp4_queue *q, int wanted);
bool tp4q_program_owns_last(const struct tp4_queue *q);

#endif
