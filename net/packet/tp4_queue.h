/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PACKET_TP4_QUEUE_H__
#define __PACKET_TP4_QUEUE_H__

#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/if_packet.h>
#include <linux/jiffies.h>
#include <linux/skbuff.h>
#include <linux/timer.h>
#include <linux/types.h>
#include <net/sock.h>

#include "tp4_area.h"

struct tp4_tx;

/* The kernel does not hold a descriptor of this slot. Not a valid frame number.
 */
#define TP4_NOT_HELD	U32_MAX

/* Maximum number of descriptors of a Tx packet in zero-copy mode */
#define TP4_TX_DESCS	MAX_SKB_FRAGS

/* Minimum number of data bytes in a frame of a ring */
#define TP4_ROOM_MIN	64

/* Maximum number of descriptors refused per packet or NAPI run: each one costs
 * a walk over the descriptors that were taken but not returned.
 */
#define TP4_RX_REFUSALS	64

/* Number of slots after which a reader in copy mode is woken again, or the next
 * tick, if it has not called poll() since
 */
#define TP4_WAKE_SLOTS		64

#define TP4_DESCS_PER_LINE	(SMP_CACHE_BYTES > 16 ? SMP_CACHE_BYTES / 16 : 1)

/**
 * struct tp4_pack - the memory of an Rx ring with TP4_RING_PACKED
 * @size:	bytes of the area that packets are stored in; 0 if the ring is
 *		not packed
 * @head:	where the next packet is stored
 * @tail:	start of the oldest memory that the program has not given back,
 *		as far as is known
 * @posted:	position of a slot that is known to have been posted
 * @recent:	bytes stored since the reader was last woken for their number
 *
 * @size is constant, the others are protected by sk_receive_queue.lock.
 */
struct tp4_pack {
	unsigned long		size;
	unsigned long		head;
	unsigned long		tail;
	unsigned long		posted;
	unsigned long		recent;
};

/**
 * struct tp4_queue - the kernel's side of one ring
 * @ring:	the descriptors, shared with user space and never trusted
 * @area:	the packet buffer that the descriptors refer to
 * @held:	per slot, the frame of a descriptor that was taken but not
 *		returned yet, or TP4_NOT_HELD; always TP4_NOT_HELD in zero-copy
 *		mode
 * @tx:		Tx state of copy mode, see tp4_tx.c
 * @sk:		the socket, or NULL in a KUnit test
 * @mask:	number of slots minus one
 * @offset:	offset of received data in a frame
 * @room:	bytes of received data that fit a frame
 * @flags:	TP4_RING_*, as requested by the program
 * @meta:	TP4_META if packets have metadata, else 0
 * @packed:	the ring has TP4_RING_PACKED
 * @zerocopy:	the ring is read by the driver instead of the socket
 * @in_chain:	skipping the rest of a packet that was refused because it has
 *		too many descriptors (Tx)
 * @returned:	poll() has seen a returned descriptor (Rx)
 * @starved:	a packet has found too few frames, or a packed ring has become
 *		a quarter fuller, and poll() has not been called since (Rx)
 * @in:		number of descriptors taken: position of the next one to read
 * @out:	number of descriptors returned, or claimed to be returned:
 *		position of the next one to write
 * @ring_full:	packets dropped because the program owns all slots (Rx), kicks
 *		stopped by a full device (Tx)
 * @no_desc:	packets dropped because too few frames were posted (Rx), kicks
 *		that found nothing posted (Tx)
 * @invalid:	descriptors refused
 * @seen:	@out when poll() last found the slot returned last marked with
 *		TP4_DESC_SEEN (Rx)
 * @wake_at:	position from which on the reader is to be woken again if it does
 *		not call poll() before (Rx, copy mode)
 * @woken:	jiffies when it was woken last (Rx, copy mode)
 * @pack:	where packets are stored, see tp4_pack.c (Rx)
 * @late:	wakes the reader for packets that it was not woken for (Rx, copy
 *		mode)
 *
 * The members up to and including @packed are constant while the ring is in use.
 * @in and @in_chain are protected by sk_receive_queue.lock for Rx and by
 * pg_vec_lock for Tx; in zero-copy mode they belong to the driver. @zerocopy is
 * set under pg_vec_lock and cleared with release semantics when the driver no
 * longer uses the ring. @returned is protected by sk_receive_queue.lock, and so
 * are writes to @seen. @starved is set by the context that @in belongs to.
 *
 * For Rx, @out is protected by the same lock as @in. For Tx, a position of @out
 * is claimed atomically by the context that returns a descriptor, which can be
 * any context. The slots of @held that have not been taken belong to the
 * context that owns @in; a taken one belongs to the context that claims its
 * position of @out.
 *
 * Slots are returned in ring order, whatever the order of the frames: the
 * oldest slot not yet returned gets the frame that completes next.
 *
 * In zero-copy mode, descriptors are taken and returned by the same context,
 * and counted in @out after they are published. @in and @out alone then define
 * the slots that the kernel owns, and @held is not used: see tp4q_zc_*().
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
	bool			packed;
	bool			zerocopy;
	bool			in_chain;
	bool			returned;
	bool			starved;

	unsigned long		in ____cacheline_aligned_in_smp;
	atomic_long_t		out;
	atomic_long_t		ring_full;
	atomic_long_t		no_desc;
	atomic_long_t		invalid;
	unsigned long		seen;
	unsigned long		wake_at;
	unsigned long		woken;
	struct tp4_pack		pack;
	struct timer_list	late;
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

/* Copy the other fields of a posted descriptor. Every access is as wide as the
 * field, like those of user space.
 */
static inline void tp4q_load_data(const struct tpacket4_desc *from,
				  struct tpacket4_desc *to)
{
	to->idx = READ_ONCE(from->idx);
	to->len = READ_ONCE(from->len);
	to->offset = READ_ONCE(from->offset);
	to->error = 0;
}

static inline bool tp4q_load(const struct tp4_queue *q, unsigned long pos,
			     struct tpacket4_desc *to)
{
	const struct tpacket4_desc *from = tp4q_slot(q, pos);

	to->flags = tp4q_load_flags(from);
	if (!(to->flags & TP4_DESC_KERNEL))
		return false;
	tp4q_load_data(from, to);
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

static inline void tp4q_store_slot(struct tpacket4_desc *to,
				   const struct tpacket4_desc *from)
{
	WRITE_ONCE(to->idx, from->idx);
	WRITE_ONCE(to->len, from->len);
	WRITE_ONCE(to->offset, from->offset);
	WRITE_ONCE(to->error, from->error);
	/* Pairs with the program's acquire of a returned descriptor. */
	smp_store_release(&to->flags, from->flags);
}

static inline void tp4q_store(struct tp4_queue *q, unsigned long pos,
			      const struct tpacket4_desc *from)
{
	tp4q_store_slot(tp4q_slot(q, pos), from);
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
	/* Pairs with the release in tp4q_zc_returned(). */
	unsigned long out = atomic_long_read_acquire(&q->out);

	if ((long)(pos - out) > (long)q->mask)
		return true;
	/* Pairs with the release in tp4q_publish(). */
	return smp_load_acquire(&q->held[pos & q->mask]) != TP4_NOT_HELD;
}

/* Check whether a descriptor is posted. Only a hint without the queue's lock.
 */
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
				 TP4_PKT_CONT | TP4_META)) &&
	       tp4_area_frame_valid(q->area, desc->idx) &&
	       tp4q_data_last(desc) < q->area->frame_size;
}

/* Check TP4_META in the copy of a packet's @nr-th descriptor. Metadata is
 * allowed in the first frame only and must not overlap the data.
 */
static inline bool tp4q_meta_valid(const struct tp4_queue *q,
				   const struct tpacket4_desc *desc, u32 nr)
{
	if (likely(!(desc->flags & TP4_META)))
		return true;
	return q->meta && !nr && desc->offset >= sizeof(struct tpacket4_meta);
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
 * For callers that have more to do before tp4_wake_sender(), or that return
 * descriptors nobody waits for.
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

/* Check whether enough returned slots are unread to wake the program, by
 * SO_RCVLOWAT. A slot counts as read if it has been posted again, or if poll()
 * has found it marked. If the program has posted fewer frames than wanted, it is
 * woken when all of them are used.
 */
static inline bool tp4q_rx_enough(const struct tp4_queue *q, u32 wanted)
{
	unsigned long out = atomic_long_read(&q->out);

	if (!tp4q_kernel_owns(q, out))
		return true;
	wanted = min(wanted, q->mask + 1);
	return out - READ_ONCE(q->seen) >= wanted &&
	       !tp4q_kernel_owns(q, out - wanted);
}

/**
 * tp4q_rx_is_due() - check whether there are enough packets to wake the reader
 * @q:	an Rx queue with a socket, after descriptors were published
 *
 * Context: Any.
 * Return: true if there are.
 */
static inline bool tp4q_rx_is_due(const struct tp4_queue *q)
{
	int wanted = READ_ONCE(q->sk->sk_rcvlowat);

	if (likely(wanted <= 1))
		return true;
	/* If two CPUs publish at the same time, the later one must see the
	 * descriptors of both.
	 */
	smp_mb();
	return tp4q_rx_enough(q, wanted) || READ_ONCE(q->starved);
}

/**
 * tp4q_wake_once() - wake the reader, and note that it need not be woken again
 * @q:		an Rx queue in copy mode, with a socket
 * @out:	its @out, read before
 *
 * Context: Any except hard interrupt.
 */
static inline void tp4q_wake_once(struct tp4_queue *q, unsigned long out)
{
	/* Before the reader is woken: its poll() sets it back. */
	WRITE_ONCE(q->wake_at, out + TP4_WAKE_SLOTS);
	WRITE_ONCE(q->woken, jiffies);
	q->sk->sk_data_ready(q->sk);
}

/**
 * tp4q_wake_reader() - wake the reader of an Rx ring if there are enough
 * packets
 * @q:	an Rx queue with a socket, after descriptors were published
 *
 * Context: Any except hard interrupt.
 */
static inline void tp4q_wake_reader(const struct tp4_queue *q)
{
	if (tp4q_rx_is_due(q))
		q->sk->sk_data_ready(q->sk);
}

/**
 * tp4q_wake() - wake the program that waits for descriptors of a ring
 * @q:	the queue, after descriptors were published
 *
 * Context: Any except hard interrupt.
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
 * tp4q_return() - return a batch of descriptors and wake the program
 * @q:		the queue
 * @descs:	the descriptors, in ring order
 * @nr:		how many; not more than were taken and not returned
 *
 * Context: Any except hard interrupt.
 */
static inline void tp4q_return(struct tp4_queue *q,
			       const struct tpacket4_desc *descs, u32 nr)
{
	__tp4q_return(q, descs, nr);
	tp4q_wake(q);
}

void tp4q_rx_take(struct tp4_queue *q, u32 nr);
void tp4q_rx_put_back(struct tp4_queue *q);
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

/**
 * tp4q_zc_took() - count descriptors as taken
 * @q:	a queue in zero-copy mode
 * @nr:	how many posted descriptors were copied, starting at @q->in
 *
 * Called once per batch. Until then other contexts see them as posted.
 *
 * Context: NAPI that reads the ring, or while none does.
 */
static inline void tp4q_zc_took(struct tp4_queue *q, u32 nr)
{
	WRITE_ONCE(q->in, q->in + nr);
}

/**
 * tp4q_zc_returned() - count descriptors as returned
 * @q:	a queue in zero-copy mode
 * @nr:	how many were written by tp4q_store(), starting at @q->out
 *
 * Called once per batch, whose descriptors are written last to first, see
 * tp4q_publish().
 *
 * Context: NAPI that reads the ring, or while none does.
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
u32 tp4q_tx_next(struct tp4_queue *q, struct tpacket4_desc *descs, u32 limit,
		 u32 budget, bool *good);
bool tp4q_rx_room(const struct tp4_queue *q, unsigned int pow_off);
bool tp4q_rx_readable(struct tp4_queue *q, int wanted);
bool tp4q_program_owns_last(const struct tp4_queue *q);

#endif
