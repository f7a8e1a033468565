// SPDX-License-Identifier: GPL-2.0
/* Setup and removal of a socket's TPACKET_V4 rings, poll() and
 * PACKET_STATISTICS
 *
 * A ring is a packet_ring_buffer of one block. packet_set_ring() and
 * packet_mmap() allocate, replace, map and free it as for V1 to V3, under the
 * same locks. A tp4_queue has the kernel's state of the ring, which user space
 * must not be able to write to.
 */

#include <linux/log2.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "tp4_area.h"
#include "tp4_queue.h"
#include "tp4_ring.h"

#define TP4_DESC_NR_MIN		(PAGE_SIZE / sizeof(struct tpacket4_desc))
#define TP4_DESC_NR_MAX		BIT(20)

/* Size of the first version of struct tpacket_req4 */
#define TP4_REQ_SIZE_MIN	offsetofend(struct tpacket_req4, desc_nr)

static struct tp4_queue *tp4_queue_alloc(struct sock *sk, struct tp4_area *area,
					 const struct tpacket_req4 *req,
					 u32 offset)
{
	struct tp4_queue *q;

	q = kzalloc_obj(*q, GFP_KERNEL_ACCOUNT);
	if (!q)
		return NULL;

	q->held = kvmalloc_array(req->desc_nr, sizeof(*q->held),
				 GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!q->held) {
		kfree(q);
		return NULL;
	}
	memset32(q->held, TP4_NOT_HELD, req->desc_nr);
	q->sk = sk;
	q->area = area;
	q->mask = req->desc_nr - 1;
	q->offset = offset;
	q->room = area->frame_size - offset;
	return q;
}

static void tp4_queue_free(struct tp4_queue *q,
			   void (*area_put)(struct tp4_area *area))
{
	if (!q)
		return;

	area_put(q->area);
	kvfree(q->held);
	kvfree(q->tx);
	kfree(q);
}

/**
 * tp4_ring_request() - check a ring request and allocate the queue
 * @sk:		the packet socket, of version V4
 * @optval:	a struct tpacket_req4
 * @optlen:	size of @optval
 * @tx:		true for the Tx ring
 * @req_u:	set to the request for packet_set_ring()
 *
 * Context: Process context, under the socket lock. The caller must call
 * tp4_ring_free_pending() afterwards, also if the request failed.
 * Return: 0, -EINVAL for a malformed request, -ENOMEM, or an error of
 * tp4_copy_option() or tp4_area_get_by_fd().
 */
int tp4_ring_request(struct sock *sk, sockptr_t optval, unsigned int optlen,
		     bool tx, union tpacket_req_u *req_u)
{
	struct packet_sock *po = pkt_sk(sk);
	struct tpacket_req4 req4;
	struct tp4_area *area;
	struct tp4_queue *q;
	u64 offset;
	int err;

	memset(req_u, 0, sizeof(*req_u));
	err = tp4_copy_option(&req4, sizeof(req4), TP4_REQ_SIZE_MIN, optval,
			      optlen);
	if (err)
		return err;
	if (req4.reserved[0] || req4.reserved[1])
		return -EINVAL;
	if (!req4.desc_nr)
		return 0;
	if (!is_power_of_2(req4.desc_nr) || req4.desc_nr < TP4_DESC_NR_MIN ||
	    req4.desc_nr > TP4_DESC_NR_MAX)
		return -EINVAL;

	area = tp4_area_get_by_fd(req4.mr_fd);
	if (IS_ERR(area))
		return PTR_ERR(area);
	offset = (u64)area->headroom + po->tp_reserve;
	if (offset > area->frame_size - TP4_ROOM_MIN) {
		tp4_area_put(area);
		return -EINVAL;
	}

	q = tp4_queue_alloc(sk, area, &req4, offset);
	if (!q) {
		tp4_area_put(area);
		return -ENOMEM;
	}
	po->tp4_pending[tx] = q;

	po->tp_hdrlen = 0;
	req_u->req.tp_block_size = req4.desc_nr * sizeof(struct tpacket4_desc);
	req_u->req.tp_block_nr = 1;
	req_u->req.tp_frame_size = sizeof(struct tpacket4_desc);
	req_u->req.tp_frame_nr = req4.desc_nr;
	return 0;
}

/**
 * tp4_ring_swap() - replace a ring's queue by the pending one
 * @po:		the packet socket
 * @tx:		true for the Tx ring
 * @ring:	memory of the new ring, or NULL if the ring is removed
 *
 * Context: In packet_set_ring(), with the packet hook unregistered, under
 * pg_vec_lock and the lock of the ring's skb queue.
 */
void tp4_ring_swap(struct packet_sock *po, bool tx, void *ring)
{
	struct tp4_queue *q = po->tp4_pending[tx];

	if (q)
		q->ring = ring;
	swap(po->tp4_queue[tx], po->tp4_pending[tx]);
}

/**
 * tp4_ring_may_map() - check whether the current process may map the rings
 * @po:	the packet socket
 *
 * The socket may have been passed to another process, which could access all of
 * the area by writing descriptors.
 *
 * Context: Process context, under pg_vec_lock.
 * Return: true if it may.
 */
bool tp4_ring_may_map(const struct packet_sock *po)
{
	const struct tp4_queue *q;
	int i;

	for (i = 0; i < TP4_NR_RINGS; i++) {
		q = po->tp4_queue[i];
		if (q && !tp4_area_is_allowed(q->area))
			return false;
	}
	return true;
}

/**
 * tp4_ring_free_pending() - free the pending queue after packet_set_ring()
 * @sk:	the packet socket
 * @tx:	true for the Tx ring
 *
 * It is the replaced queue, or the new one if the request failed.
 *
 * Context: Process context, under the socket lock.
 */
void tp4_ring_free_pending(struct sock *sk, bool tx)
{
	struct packet_sock *po = pkt_sk(sk);
	struct tp4_queue *q = po->tp4_pending[tx];

	/* Keep the drops of the old ring for PACKET_STATISTICS. */
	if (q && !tx)
		atomic_add(atomic_long_read(&q->ring_full) +
			   atomic_long_read(&q->no_desc), &po->tp_drops);
	tp4_queue_free(q, tp4_area_put);
	po->tp4_pending[tx] = NULL;
}

/**
 * tp4_ring_release() - free the queues of a closing socket
 * @sk:	the packet socket, with its rings removed and its hook unregistered
 *
 * A Tx queue with packets in flight is freed by tp4_ring_destruct().
 *
 * Context: Process context, may sleep.
 */
void tp4_ring_release(struct sock *sk)
{
	tp4_ring_free_pending(sk, TP4_RX);
	if (!sk_wmem_alloc_get(sk))
		tp4_ring_free_pending(sk, TP4_TX);
}

/**
 * tp4_ring_destruct() - free a Tx queue after its last packet
 * @sk:	the packet socket, which has no references left
 *
 * Context: Any except hard interrupt.
 */
void tp4_ring_destruct(struct sock *sk)
{
	struct packet_sock *po = pkt_sk(sk);

	tp4_queue_free(po->tp4_pending[TP4_TX], tp4_area_put_atomic);
}

/**
 * tp4_ring_stats() - read and clear the statistics of a V4 socket
 * @sk:		the packet socket
 * @common:	statistics of all versions; the drops are those of removed rings
 * @st:		set to the statistics
 *
 * Context: Process context, may sleep; takes the socket lock.
 */
void tp4_ring_stats(struct sock *sk, const struct tpacket_stats *common,
		    struct tpacket_stats_v4 *st)
{
	struct packet_sock *po = pkt_sk(sk);
	struct tp4_queue *q;

	*st = (struct tpacket_stats_v4) {
		.tp_packets = common->tp_packets,
		.tp_drops = common->tp_drops,
	};

	lock_sock(sk);
	q = po->tp4_queue[TP4_RX];
	if (q) {
		st->rx_ring_full = atomic_long_xchg(&q->ring_full, 0);
		st->rx_no_desc = atomic_long_xchg(&q->no_desc, 0);
		st->rx_invalid_descs = atomic_long_xchg(&q->invalid, 0);
		/* A drop is counted in one of the two, so add both. */
		st->tp_drops += st->rx_ring_full + st->rx_no_desc;
		st->tp_packets += st->rx_ring_full + st->rx_no_desc;
	}
	q = po->tp4_queue[TP4_TX];
	if (q) {
		st->tx_ring_full = atomic_long_xchg(&q->ring_full, 0);
		st->tx_no_desc = atomic_long_xchg(&q->no_desc, 0);
		st->tx_invalid_descs = atomic_long_xchg(&q->invalid, 0);
	}
	release_sock(sk);
}

/**
 * tp4_rx_readable() - check whether poll() may report the Rx ring as readable
 * @po:	the packet socket, with an Rx ring
 *
 * Context: Under sk_receive_queue.lock.
 * Return: true while a returned slot is unread.
 */
bool tp4_rx_readable(const struct packet_sock *po)
{
	return tp4q_rx_readable(po->tp4_queue[TP4_RX]);
}

/**
 * tp4_tx_poll() - set the writable bits of poll()'s event mask
 * @po:		the packet socket, with a Tx ring
 * @mask:	the event mask, with the writable bits by the send buffer
 *
 * Context: Under sk_write_queue.lock.
 * Return: @mask, writable if the program owns at least one slot.
 */
__poll_t tp4_tx_poll(const struct packet_sock *po, __poll_t mask)
{
	mask &= ~(EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND);
	if (tp4q_program_owns_last(po->tp4_queue[TP4_TX]))
		mask |= EPOLLOUT | EPOLLWRNORM;
	return mask;
}
