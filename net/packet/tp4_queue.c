// SPDX-License-Identifier: GPL-2.0
/* Taking, checking and returning the descriptors of a TPACKET_V4 ring */

#include <linux/poll.h>
#include <linux/wait.h>

#include "tp4_queue.h"

/**
 * tp4_wake_sender() - wake a program that waits for Tx descriptors
 * @sk:	the packet socket
 *
 * sk_write_space() does not wake while much of the send buffer is in use, but
 * Tx slots may be free at that point.
 *
 * Context: Any except hard interrupt.
 */
void tp4_wake_sender(struct sock *sk)
{
	struct socket_wq *wq;

	rcu_read_lock();
	wq = rcu_dereference(sk->sk_wq);
	if (skwq_has_sleeper(wq))
		wake_up_interruptible_poll(&wq->wait, EPOLLOUT | EPOLLWRNORM |
						      EPOLLWRBAND);
	sk_wake_async_rcu(sk, SOCK_WAKE_SPACE, POLL_OUT);
	rcu_read_unlock();
}

/* Return a posted descriptor with an invalid frame number. It is returned in the
 * oldest slot. The valid descriptors taken before it move up by one slot.
 */
static noinline void tp4q_rx_refuse(struct tp4_queue *q, u64 idx)
{
	struct tpacket4_desc desc = { .idx = idx, .error = EINVAL };
	unsigned long out = atomic_long_read(&q->out);
	unsigned long pos;

	for (pos = q->in; pos != out; pos--)
		WRITE_ONCE(q->held[pos & q->mask],
			   q->held[(pos - 1) & q->mask]);
	WRITE_ONCE(q->in, q->in + 1);
	atomic_long_set(&q->out, out + 1);
	tp4q_publish(q, out, &desc);
	atomic_long_inc(&q->invalid);
}

/* Get the position up to which to take frames, so that there are @nr from @out on:
 * the end of a cache line, but not of another round.
 */
static unsigned long tp4q_rx_take_end(const struct tp4_queue *q,
				      unsigned long out, u32 nr)
{
	unsigned long last = (out + nr - 1) | (TP4_DESCS_PER_LINE - 1);

	return out + min(last + 1 - out, q->mask + 1UL);
}

/**
 * tp4q_rx_take() - take posted frames
 * @q:	an Rx queue
 * @nr:	number of frames that the caller needs between @q->out and @q->in
 *
 * Also takes the other posted descriptors on the same cache line, so that the
 * line is not read again for each packet. After TP4_RX_REFUSALS invalid
 * descriptors the rest has to wait for the next packet.
 *
 * Context: Under the queue's Rx lock, so that nobody else moves @in and @out.
 */
void tp4q_rx_take(struct tp4_queue *q, u32 nr)
{
	unsigned long in = q->in, out = atomic_long_read(&q->out);
	unsigned long end = tp4q_rx_take_end(q, out, nr);
	const u32 nr_frames = q->area->nr_frames, mask = q->mask;
	const struct tpacket4_desc *ring = q->ring;
	u32 *const held = q->held;
	u32 refusals = 0;
	u64 idx;

	while (in != end) {
		/* As in tp4q_is_held(), pairs with the release in
		 * tp4q_publish().
		 */
		if (smp_load_acquire(&held[in & mask]) != TP4_NOT_HELD ||
		    !tp4q_load_idx(&ring[in & mask], &idx))
			break;
		if (likely(idx < nr_frames)) {
			WRITE_ONCE(held[in & mask], idx);
			in++;
			continue;
		}
		WRITE_ONCE(q->in, in);
		tp4q_rx_refuse(q, idx);
		in = q->in;
		out = atomic_long_read(&q->out);
		end = tp4q_rx_take_end(q, out, nr);
		if (++refusals == TP4_RX_REFUSALS)
			break;
	}
	WRITE_ONCE(q->in, in);
}

/**
 * tp4q_rx_count_drop() - count a packet for which too few frames are posted
 * @q:	an Rx queue
 *
 * The ring is full if it has wrapped around and the next slot holds a
 * descriptor that was returned to the program and not posted again.
 *
 * Context: Under the queue's Rx lock.
 */
void tp4q_rx_count_drop(struct tp4_queue *q)
{
	unsigned long out = atomic_long_read(&q->out);

	if (q->in == out && out > q->mask)
		atomic_long_inc(&q->ring_full);
	else
		atomic_long_inc(&q->no_desc);
}

/**
 * tp4q_tx_peek() - copy the descriptors of the next posted packet
 * @q:		a Tx queue
 * @descs:	set to the copies
 * @max:	number of elements of @descs
 *
 * Context: Under the queue's Tx lock.
 * Return: the number of descriptors of the packet; 0 if no complete packet is
 * posted; @max, with TP4_PKT_CONT in the last one, if the packet has more.
 */
u32 tp4q_tx_peek(const struct tp4_queue *q, struct tpacket4_desc *descs,
		 u32 max)
{
	u32 nr = 0;

	if (!max)
		return 0;
	do {
		if (!tp4q_take_one(q, q->in + nr, &descs[nr]))
			return 0;
	} while ((descs[nr++].flags & TP4_PKT_CONT) && nr < max);

	return nr;
}

/**
 * tp4q_tx_check() - check the descriptors of a packet
 * @q:		the Tx queue that they were copied from
 * @descs:	the copies; the error of each one is set
 * @nr:		how many, at least one
 *
 * Context: Any.
 * Return: the length of the packet, or -EINVAL if a descriptor is invalid.
 */
int tp4q_tx_check(const struct tp4_queue *q, struct tpacket4_desc *descs,
		  u32 nr)
{
	int len = 0, err = 0;
	u32 i;

	for (i = 0; i < nr; i++) {
		descs[i].error = 0;
		if (unlikely(!tp4q_desc_valid(q, &descs[i]))) {
			descs[i].error = EINVAL;
			err = -EINVAL;
			continue;
		}
		len += descs[i].len;
	}
	return err ? : len;
}

/**
 * tp4q_tx_next() - copy and check the descriptors of the next posted packet
 * @q:		a Tx queue
 * @descs:	set to the copies and their errors; has @limit elements
 * @limit:	maximum number of descriptors of a packet
 * @budget:	maximum number of descriptors
 * @good:	set to true if the packet is valid; else the caller must return
 *		the descriptors with their errors
 *
 * If one descriptor of a packet is invalid, the others get the error ECANCELED.
 * If there are more than @limit, all get EMSGSIZE, also those that are posted
 * later.
 *
 * Context: Under the queue's Tx lock.
 * Return: the number of descriptors; 0 if no complete packet is posted, or if
 * it has more than @budget.
 */
u32 tp4q_tx_next(struct tp4_queue *q, struct tpacket4_desc *descs, u32 limit,
		 u32 budget, bool *good)
{
	u32 max = min(budget, limit);
	bool whole;
	u32 i, nr;

	nr = tp4q_tx_peek(q, descs, q->in_chain ? min_t(u32, max, 1) : max);
	if (!nr)
		return 0;

	whole = !(descs[nr - 1].flags & TP4_PKT_CONT);
	if (unlikely(q->in_chain || !whole)) {
		if (!q->in_chain && max < limit)
			return 0;
		WRITE_ONCE(q->in_chain, !whole);
		*good = false;
		for (i = 0; i < nr; i++)
			descs[i].error = EMSGSIZE;
		return nr;
	}

	*good = tp4q_tx_check(q, descs, nr) >= 0;
	if (unlikely(!*good)) {
		for (i = 0; i < nr; i++)
			descs[i].error = descs[i].error ? : ECANCELED;
	}
	return nr;
}

/**
 * tp4q_rx_room() - check whether frames are posted
 * @q:		an Rx queue
 * @pow_off:	0 to check for one frame, n to check for 1/2^n of the ring
 *
 * Context: Any in which the queue cannot go away; without its lock, the result
 * is only a hint.
 * Return: true if they are.
 */
bool tp4q_rx_room(const struct tp4_queue *q, unsigned int pow_off)
{
	unsigned long pos = atomic_long_read(&q->out);
	struct tpacket4_desc desc;

	if (pow_off)
		pos += (q->mask + 1) >> pow_off;
	return tp4q_load(q, pos, &desc);
}

/**
 * tp4q_rx_readable() - check whether poll() may report the ring as readable
 * @q:	an Rx queue
 *
 * A slot is unread until the program has posted it again or has marked it, or a
 * later one, with TP4_DESC_SEEN. Only the mark of the slot returned last is
 * found. If the program has marked another slot, it has not seen the last one.
 *
 * Context: Under sk_receive_queue.lock.
 * Return: true while a returned slot is unread.
 */
bool tp4q_rx_readable(struct tp4_queue *q)
{
	unsigned long out = atomic_long_read(&q->out);
	u8 flags;

	/* On 32-bit machines, @out wraps around to 0. */
	if (out && !q->returned)
		q->returned = true;
	if (!q->returned)
		return false;
	/* Pairs with the program's release of a descriptor it posts. */
	flags = smp_load_acquire(&tp4q_slot(q, out - 1)->flags);
	return !(flags & (TP4_DESC_KERNEL | TP4_DESC_SEEN));
}

/**
 * tp4q_program_owns_last() - check whether the program owns the slot returned
 * last
 * @q:	the queue
 *
 * For a Tx ring, it does unless every slot is posted.
 *
 * Context: Any in which the queue cannot go away.
 * Return: true if it does. Before the first return, the last slot of the ring
 * counts as returned.
 */
bool tp4q_program_owns_last(const struct tp4_queue *q)
{
	return !tp4q_kernel_owns(q, atomic_long_read(&q->out) - 1);
}
