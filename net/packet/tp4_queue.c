// SPDX-License-Identifier: GPL-2.0
/* The descriptors of one TPACKET_V4 ring: taken once, checked, returned once. */

#include <linux/export.h>
#include <linux/poll.h>
#include <linux/wait.h>

#include "tp4_queue.h"

/**
 * tp4_wake_sender() - wake whoever waits for Tx descriptors or their packets
 * @sk:	the packet socket
 *
 * sk_write_space() would be silent while much of the send buffer is in use,
 * which says nothing of the ring.
 *
 * Context: Any but hard interrupt.
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
EXPORT_SYMBOL_GPL(tp4_wake_sender);

/**
 * tp4q_rx_refuse() - return a posted descriptor that names no frame
 * @q:		an Rx queue
 * @idx:	what it names
 *
 * It goes to the oldest slot, and the good ones taken before it move up by
 * one.
 *
 * Context: Under the queue's Rx lock.
 */
void tp4q_rx_refuse(struct tp4_queue *q, u64 idx)
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

/**
 * tp4q_rx_take() - take posted frames
 * @q:	an Rx queue
 * @nr:	frames that the caller wants to find between @q->out and @q->in
 *
 * Takes what else is posted on the same cache line, so that the line is read
 * once and not once a packet. After a number of bad descriptors the rest has to
 * wait for the next packet.
 *
 * Context: Under the queue's Rx lock.
 */
void tp4q_rx_take(struct tp4_queue *q, u32 nr)
{
	u32 refusals = 0, frame;

	while (q->in - atomic_long_read(&q->out) < nr ||
	       q->in % TP4_DESCS_PER_LINE) {
		if (!tp4q_rx_take_one(q, &frame))
			break;
		if (unlikely(frame == TP4_NOT_HELD) &&
		    ++refusals == TP4_RX_REFUSALS)
			break;
	}
}
EXPORT_SYMBOL_GPL(tp4q_rx_take);

/**
 * tp4q_rx_put_back() - put taken frames back as posted ones
 * @q:	an Rx queue
 *
 * For whoever reads the ring from here on, and keeps account of what he takes
 * elsewhere.
 *
 * Context: Where nobody reads the ring.
 */
void tp4q_rx_put_back(struct tp4_queue *q)
{
	unsigned long pos, out = atomic_long_read(&q->out);

	for (pos = out; pos != q->in; pos++) {
		/* A refused one may have moved it away from where it was. */
		struct tpacket4_desc desc = {
			.idx = q->held[pos & q->mask],
			.flags = TP4_DESC_KERNEL,
		};

		tp4q_publish(q, pos, &desc);
	}
	WRITE_ONCE(q->in, out);
}
EXPORT_SYMBOL_GPL(tp4q_rx_put_back);

/**
 * tp4q_rx_count_drop() - count a packet for which too few frames are posted
 * @q:	an Rx queue
 *
 * The ring is full where it has gone all the way round: what the next slot
 * holds is something the program was given and has not posted again.
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
EXPORT_SYMBOL_GPL(tp4q_rx_count_drop);

/**
 * tp4q_is_idle() - tell whether all that was taken is back on the ring
 * @q:	a queue in copy mode
 *
 * In copy mode a descriptor is counted before it is published, so that the
 * counts are not enough for who goes by them alone.
 *
 * Context: Where nobody reads the ring.
 * Return: whether it is.
 */
bool tp4q_is_idle(const struct tp4_queue *q)
{
	unsigned long i;

	if (atomic_long_read(&q->out) != q->in)
		return false;
	for (i = 0; i <= q->mask; i++) {
		if (tp4q_is_held(q, q->in + i))
			return false;
	}
	return true;
}
EXPORT_SYMBOL_GPL(tp4q_is_idle);

/**
 * tp4q_zc_refuse() - return posted descriptors without having taken them
 * @q:		a queue in zero-copy mode
 * @descs:	their copies, each with the error that it comes back with
 * @nr:		how many, from @q->in on
 *
 * They go to the oldest slots, for what was taken before them is not noted in
 * the ring. Wakes nobody.
 *
 * Context: Where the ring is read.
 */
void tp4q_zc_refuse(struct tp4_queue *q, const struct tpacket4_desc *descs,
		    u32 nr)
{
	unsigned long out = atomic_long_read(&q->out);
	u32 i = nr;

	tp4q_zc_took(q, nr);
	while (i--) {
		struct tpacket4_desc desc = {
			.idx = descs[i].idx,
			.error = descs[i].error,
		};

		tp4q_store(q, out + i, &desc);
	}
	tp4q_zc_returned(q, nr);
}
EXPORT_SYMBOL_GPL(tp4q_zc_refuse);

/**
 * tp4q_tx_peek() - copy the descriptors of the next posted packet
 * @q:		a Tx queue
 * @descs:	where to
 * @max:	room at @descs
 *
 * Context: Under the queue's Tx lock.
 * Return: how many the packet has; 0 where no packet is posted to its end;
 * @max with TP4_PKT_CONT in the last one where it is longer than that.
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
EXPORT_SYMBOL_GPL(tp4q_tx_peek);

/**
 * tp4q_tx_ready() - tell whether tp4q_tx_next() would find something
 * @q:		a Tx queue
 * @room:	descriptors that the caller could take
 *
 * Half a chain is nothing, unless it is longer than a packet may be.
 *
 * Context: Any in which the queue cannot go away; a hint without its lock.
 * Return: whether it would.
 */
bool tp4q_tx_ready(const struct tp4_queue *q, u32 room)
{
	unsigned long pos = READ_ONCE(q->in);
	u32 nr, max = min_t(u32, room, TP4_TX_DESCS);
	struct tpacket4_desc desc;

	for (nr = 0; nr < max; nr++) {
		if (!tp4q_take_one(q, pos + nr, &desc))
			return false;
		if (!(desc.flags & TP4_PKT_CONT) || READ_ONCE(q->in_chain))
			return true;
	}
	return max == TP4_TX_DESCS;
}
EXPORT_SYMBOL_GPL(tp4q_tx_ready);

/**
 * tp4q_tx_check() - check the descriptors of a packet
 * @q:		the Tx queue that they were copied from
 * @descs:	the copies; the error of each is set
 * @nr:		how many, at least one
 *
 * Context: Any.
 * Return: the bytes of the packet, or -EINVAL where a descriptor is bad.
 */
int tp4q_tx_check(const struct tp4_queue *q, struct tpacket4_desc *descs,
		  u32 nr)
{
	int len = 0, err = 0;
	u32 i;

	for (i = 0; i < nr; i++) {
		descs[i].error = 0;
		if (unlikely(!tp4q_desc_valid(q, &descs[i]) ||
			     !tp4q_meta_valid(q, &descs[i], i))) {
			descs[i].error = EINVAL;
			err = -EINVAL;
			continue;
		}
		len += descs[i].len;
	}
	return err ? : len;
}
EXPORT_SYMBOL_GPL(tp4q_tx_check);

/**
 * tp4q_tx_next() - copy and check the descriptors of the next posted packet
 * @q:		a Tx queue
 * @descs:	where to, room for TP4_TX_DESCS; the error of each is set
 * @budget:	most descriptors to look at
 * @good:	set to whether tp4q_tx_take() may follow, else it must be
 *		tp4q_tx_refuse()
 *
 * Where one of several descriptors is at fault, it has its own error, and the
 * others are cancelled.
 *
 * Context: Under the queue's Tx lock.
 * Return: how many descriptors; 0 where no packet is posted to its end, or is
 * longer than @budget.
 */
u32 tp4q_tx_next(struct tp4_queue *q, struct tpacket4_desc *descs, u32 budget,
		 bool *good)
{
	u32 max = min_t(u32, budget, TP4_TX_DESCS);
	bool whole;
	u32 i, nr;

	nr = tp4q_tx_peek(q, descs, q->in_chain ? min_t(u32, max, 1) : max);
	if (!nr)
		return 0;

	whole = !(descs[nr - 1].flags & TP4_PKT_CONT);
	if (unlikely(q->in_chain || !whole)) {
		if (!q->in_chain && max < TP4_TX_DESCS)
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
EXPORT_SYMBOL_GPL(tp4q_tx_next);

/**
 * tp4q_tx_refuse() - return what is no packet
 * @q:		a Tx queue
 * @descs:	what tp4q_tx_next() found
 * @nr:		how many
 *
 * Context: Under the queue's Tx lock.
 */
void tp4q_tx_refuse(struct tp4_queue *q, struct tpacket4_desc *descs, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++)
		descs[i] = (struct tpacket4_desc) {
			.idx = descs[i].idx,
			.error = descs[i].error,
		};
	tp4q_tx_take(q, nr);
	tp4q_return(q, descs, nr);
	atomic_long_add(nr, &q->invalid);
}
EXPORT_SYMBOL_GPL(tp4q_tx_refuse);

/**
 * tp4q_rx_room() - tell whether frames are posted
 * @q:		an Rx queue
 * @pow_off:	0 to ask for one frame, n to ask for the ring's 2^n-th part
 *
 * Context: Any in which the queue cannot go away; a hint without its lock.
 * Return: whether they are.
 */
bool tp4q_rx_room(const struct tp4_queue *q, unsigned int pow_off)
{
	unsigned long pos = atomic_long_read(&q->out);
	struct tpacket4_desc desc;

	if (pow_off)
		pos += (q->mask + 1) >> pow_off;
	return tp4q_load(q, pos, &desc);
}
EXPORT_SYMBOL_GPL(tp4q_rx_room);

/**
 * tp4q_rx_readable() - tell whether poll() finds something received
 * @q:		an Rx queue
 * @wanted:	slots that it is to find; none is one
 *
 * Context: Under sk_receive_queue.lock.
 * Return: true until the program has posted the slot that was returned last, or
 * so many slots before it that fewer than @wanted are left.
 */
bool tp4q_rx_readable(struct tp4_queue *q, int wanted)
{
	/* @out comes by 0 again where a long has 32 bits. */
	if (atomic_long_read(&q->out))
		q->returned = true;
	return q->returned && tp4q_program_owns_last(q) &&
	       (wanted <= 1 || tp4q_rx_enough(q, wanted));
}
EXPORT_SYMBOL_GPL(tp4q_rx_readable);

/**
 * tp4q_program_owns_last() - tell whose the slot is that was returned last
 * @q:	the queue
 *
 * On Rx, it is the program's until the program has read and posted all that
 * was received. On Tx, it is the kernel's where every slot is posted.
 *
 * Context: Any in which the queue cannot go away.
 * Return: true if it is the program's. The slot before the first one counts
 * as returned.
 */
bool tp4q_program_owns_last(const struct tp4_queue *q)
{
	return !tp4q_kernel_owns(q, atomic_long_read(&q->out) - 1);
}
EXPORT_SYMBOL_GPL(tp4q_program_owns_last);
