// SPDX-License-Identifier: GPL-2.0
/* TPACKET_V4 in zero-copy mode: queue pairs that belong to a packet socket.
 *
 * The hardware takes frames in the order in which the packet arrays have them,
 * and is done with them in that order. So a frame's place in its array follows
 * from its descriptor's distance from next_to_clean, and nothing is kept a
 * descriptor:
 *
 *	Rx	next_to_clean is the array's frame at curr; further frames that
 *		the hardware has follow it
 *	Tx	the oldest descriptor that is not sent is the array's frame at
 *		start, refused ones left out
 *
 * Tx goes through the pair's ordinary ring, which the stack may be using, too,
 * under the lock of its netdev queue, taken once a batch. That ring is always
 * there, so the mode is entered without a reset of the port, and XDP programs
 * that come and go do not move it. The XDP rings would be no better: they are
 * written to without a lock, by XDP_TX and by redirects from other devices.
 *
 * What is sent in one go is a run of descriptors, with one request for a status
 * report at its end and one note in tx_bi at its start. As no next_to_watch is
 * set there, i40e_clean_tx_irq() stops at a run, and i40e_tp4_clean_tx_irq()
 * goes on from there.
 */

#include <linux/bitfield.h>
#include <linux/hrtimer.h>
#include <linux/if_vlan.h>
#include <linux/tpacket4.h>
#include "i40e_lan_hmc.h"
#include "i40e_tp4.h"
#include "i40e_txrx_common.h"
#include "i40e_xsk.h"

/* The least that the hardware takes for a receive buffer */
#define I40E_TP4_BUF_MIN	1024
#define I40E_TP4_BUF_ALIGN	BIT(I40E_RXQ_CTX_DBUFF_SHIFT)

/* Received packets that are published at a time */
#define I40E_TP4_RX_BATCH	16

/* Frames of packets on their way to the stack; a batch of the longest fits */
#define I40E_TP4_TO_KERNEL	128

/* Descriptors in a run, or some more, and runs before Rx has its turn */
#define I40E_TP4_RUN		64
#define I40E_TP4_RUNS		4

/* Descriptors that are left to the stack. i40e_clean_tx_irq() wakes a stopped
 * queue for so many, and so it finds them whatever is left here.
 */
#define I40E_TP4_TX_SPARE	(2 * DESC_NEEDED)

/* With so few frames to receive into, look again after so long */
#define I40E_TP4_RX_LOW		I40E_RX_BUFFER_WRITE
#define I40E_TP4_REFILL_MIN	(50 * NSEC_PER_USEC)
#define I40E_TP4_REFILL_MAX	(10 * NSEC_PER_MSEC)

/**
 * struct i40e_tp4 - a queue pair in zero-copy mode
 * @parms:	whom to call when something has been flushed
 * @rx:		what it receives
 * @tx:		what it sends
 * @to_kernel:	packets that XDP passes to the stack instead
 * @rx_ring:	the ring that is being cleaned, for @to_kernel
 * @q_vector:	whose NAPI all of this belongs to, or NULL while that is off
 * @refill:	wakes NAPI when there were not enough frames to receive into
 * @refill_ns:	after so long
 * @rx_buf_len:	bytes that the hardware may write to a frame
 */
struct i40e_tp4 {
	struct tp4_netdev_parms		parms;
	struct tp4_packet_array		*rx;
	struct tp4_packet_array		*tx;
	struct tp4_packet_array		*to_kernel;
	struct i40e_ring		*rx_ring;
	struct i40e_q_vector __rcu	*q_vector;
	struct hrtimer			refill;
	u32				refill_ns;
	u16				rx_buf_len;
};

/* If NAPI does not run just now, it is an interrupt that starts it, so that it
 * runs where the interrupt's affinity wants it.
 */
static void i40e_tp4_wake(const struct i40e_tp4 *tp4)
{
	struct i40e_q_vector *q_vector = rcu_dereference(tp4->q_vector);

	if (q_vector && !napi_if_scheduled_mark_missed(&q_vector->napi))
		i40e_force_wb(q_vector->vsi, q_vector);
}

/* ---- Rx ---- */

/* No interrupt comes from a ring without descriptors, and the program need not
 * tell when it posts frames.
 */
static void i40e_tp4_refill_later(struct i40e_tp4 *tp4, bool some)
{
	if (some)
		tp4->refill_ns = I40E_TP4_REFILL_MIN;
	else if (tp4->refill_ns < I40E_TP4_REFILL_MAX)
		tp4->refill_ns *= 2;
	hrtimer_start(&tp4->refill, ns_to_ktime(tp4->refill_ns),
		      HRTIMER_MODE_REL_SOFT);
}

static enum hrtimer_restart i40e_tp4_refill(struct hrtimer *timer)
{
	rcu_read_lock();
	i40e_tp4_wake(container_of(timer, struct i40e_tp4, refill));
	rcu_read_unlock();
	return HRTIMER_NORESTART;
}

/* Hand empty frames to the hardware. */
static void i40e_tp4_fill_rx(struct i40e_ring *rx_ring)
{
	struct tp4_packet_array *rx = rx_ring->tp4->rx;
	u32 nr, unused = I40E_DESC_UNUSED(rx_ring);
	u32 posted = rx_ring->count - 1 - unused;
	u32 ntu = rx_ring->next_to_use;
	struct tp4_frame_set p = {
		.pkt_arr = rx,
		.curr = rx->curr + posted,
	};

	tp4a_populate(rx);
	nr = min(rx->end - p.curr, unused);
	if (unlikely(posted + nr < I40E_TP4_RX_LOW))
		i40e_tp4_refill_later(rx_ring->tp4, nr);
	else if (nr < I40E_RX_BUFFER_WRITE && posted >= I40E_TP4_RX_LOW)
		return;
	if (!nr)
		return;

	for (; nr; nr--, p.curr++) {
		union i40e_rx_desc *rx_desc = I40E_RX_DESC(rx_ring, ntu);

		tp4f_dma_sync_for_device(&p, rx_ring->rx_buf_len);
		rx_desc->read.pkt_addr = cpu_to_le64(tp4f_get_dma(&p));
		/* The status is here, too. */
		rx_desc->read.hdr_addr = 0;
		if (unlikely(++ntu == rx_ring->count))
			ntu = 0;
	}
	i40e_release_rx_desc(rx_ring, ntu);
}

static u64 i40e_tp4_rx_status(const struct i40e_ring *rx_ring, u32 ntc)
{
	return le64_to_cpu(I40E_RX_DESC(rx_ring, ntc)->wb.qword1.status_error_len);
}

/* Descriptors of the next packet if all of it has been written, else 0. One
 * that reports on a filter counts as a packet, or a part of the one it is in.
 */
static u32 i40e_tp4_rx_ready(const struct i40e_ring *rx_ring)
{
	u32 nr, ntc = rx_ring->next_to_clean;

	for (nr = 1; ntc != rx_ring->next_to_use; nr++) {
		u64 qword = i40e_tp4_rx_status(rx_ring, ntc);

		if (unlikely(i40e_rx_is_programming_status(qword))) {
			if (nr == 1)
				return 1;
		} else if (!(qword & I40E_RXD_QW1_LENGTH_PBUF_MASK)) {
			return 0;
		} else if (qword & BIT_ULL(I40E_RX_DESC_STATUS_EOF_SHIFT)) {
			return nr;
		}
		if (unlikely(++ntc == rx_ring->count))
			ntc = 0;
	}
	return 0;
}

/* Put a tag that the hardware has taken off back in its place. */
static void i40e_tp4_push_tag(struct tp4_frame_set *p, __le16 tag)
{
	u32 offset = tp4f_get_data_offset(p) - VLAN_HLEN;
	void *data = tp4f_get_data(p);
	struct vlan_ethhdr *eth;

	memmove(data - VLAN_HLEN, data, 2 * ETH_ALEN);
	tp4f_set_frame(p, tp4f_get_frame_len(p) + VLAN_HLEN, offset,
		       tp4f_is_last_frame(p));
	eth = tp4f_get_data(p);
	eth->h_vlan_proto = htons(ETH_P_8021Q);
	eth->h_vlan_TCI = htons(le16_to_cpu(tag));
}

/* Take the next packet, of @nr descriptors, from the hardware.
 * Return: its bytes, or 0 if there is no packet in them.
 */
static u32 i40e_tp4_rx_packet(struct i40e_ring *rx_ring, u32 nr)
{
	struct tp4_packet_array *rx = rx_ring->tp4->rx;
	u32 bytes = 0, frames = 0, ntc = rx_ring->next_to_clean;
	const union i40e_rx_desc *rx_desc;
	struct tp4_frame_set p, first;
	u64 qword;

	/* What else is in a descriptor is read after its status was. */
	dma_rmb();
	do {
		u32 size;

		rx_desc = I40E_RX_DESC(rx_ring, ntc);
		qword = i40e_tp4_rx_status(rx_ring, ntc);
		if (unlikely(++ntc == rx_ring->count))
			ntc = 0;
		tp4a_next_frame(rx, &p);
		if (unlikely(i40e_rx_is_programming_status(qword))) {
			i40e_clean_programming_status(rx_ring,
						      rx_desc->raw.qword[0],
						      qword);
			tp4a_reuse(rx, 1);
			/* What came before has moved up. */
			if (frames)
				first.curr++;
			continue;
		}
		size = FIELD_GET(I40E_RXD_QW1_LENGTH_PBUF_MASK, qword);
		tp4f_dma_sync_for_cpu(&p, size);
		tp4f_set_frame(&p, size, tp4f_get_data_offset(&p),
			       qword & BIT_ULL(I40E_RX_DESC_STATUS_EOF_SHIFT));
		bytes += size;
		if (!frames++)
			first = p;
	} while (--nr);
	rx_ring->next_to_clean = ntc;
	rx_ring->next_to_process = ntc;

	if (unlikely(!frames))
		return 0;
	rx_ring->rx_stats.non_eop_descs += frames - 1;
	if (unlikely(qword & BIT_ULL(I40E_RXD_QW1_ERROR_SHIFT))) {
		/* The port has counted it. */
		tp4a_reuse(rx, frames);
		return 0;
	}
	if (qword & BIT_ULL(I40E_RX_DESC_STATUS_L2TAG1P_SHIFT))
		i40e_tp4_push_tag(&first, rx_desc->wb.qword0.lo_dword.l2tag1);
	return bytes;
}

static int i40e_tp4_xdp_tx(void *arg, struct xdp_frame *frame)
{
	const struct i40e_ring *rx_ring = arg;
	struct i40e_ring *xdp_ring;

	xdp_ring = rx_ring->vsi->xdp_rings[rx_ring->queue_index];
	if (i40e_xmit_xdp_frame(frame, xdp_ring) != I40E_XDP_TX)
		return -ENOBUFS;
	return 0;
}

static void i40e_tp4_deliver_kernel(void *opaque, struct sk_buff *skb)
{
	const struct i40e_tp4 *tp4 = opaque;
	const struct i40e_ring *rx_ring = tp4->rx_ring;

	skb->protocol = eth_type_trans(skb, rx_ring->netdev);
	skb_record_rx_queue(skb, rx_ring->queue_index);
	napi_gro_receive(&rx_ring->q_vector->napi, skb);
}

/**
 * i40e_tp4_clean_rx_irq() - receive on a zero-copy queue pair
 * @rx_ring:	its Rx ring
 * @budget:	most packets to receive
 *
 * Context: NAPI of the ring.
 * Return: packets received.
 */
int i40e_tp4_clean_rx_irq(struct i40e_ring *rx_ring, int budget)
{
	struct i40e_tp4 *tp4 = rx_ring->tp4;
	struct tp4_xdp xdp = {
		.prog = READ_ONCE(rx_ring->xdp_prog),
		.rxq = &rx_ring->xdp_rxq,
		.to_kernel = tp4->to_kernel,
		.xmit = i40e_tp4_xdp_tx,
		.arg = rx_ring,
	};
	int flushed = 0, done = 0;
	u32 bytes = 0, packets = 0;

	tp4->rx_ring = rx_ring;
	tp4a_set_napi(tp4->rx, &rx_ring->q_vector->napi);
	while (done < budget) {
		u32 len, nr = i40e_tp4_rx_ready(rx_ring);

		if (!nr)
			break;
		len = i40e_tp4_rx_packet(rx_ring, nr);
		bytes += len;
		packets += !!len;
		if (++done % I40E_TP4_RX_BATCH == 0)
			flushed += tp4a_flush_xdp(tp4->rx, &xdp);
	}
	flushed += tp4a_flush_xdp(tp4->rx, &xdp);
	if (flushed)
		tp4->parms.data_ready(tp4->parms.data_ready_opaque);
	i40e_finalize_xdp_rx(rx_ring, (xdp.tx ? I40E_XDP_TX : 0) |
				      (xdp.redirect ? I40E_XDP_REDIR : 0));
	i40e_update_rx_stats(rx_ring, bytes, packets);
	i40e_tp4_fill_rx(rx_ring);
	return done;
}

/* ---- Tx ---- */

static void i40e_tp4_flush_tx(struct i40e_tp4 *tp4)
{
	if (tp4a_flush_completed(tp4->tx))
		tp4->parms.write_space(tp4->parms.write_space_opaque);
}

static bool i40e_tp4_is_run(const struct i40e_ring *tx_ring, u32 ntc)
{
	/* The stack may be writing there, but not this flag. */
	return READ_ONCE(tx_ring->tx_bi[ntc].tx_flags) & I40E_TX_FLAGS_TP4;
}

/* Give back what has been sent.
 * Return: whether what has been sent as well is the stack's.
 */
static bool i40e_tp4_reap(struct i40e_ring *tx_ring)
{
	struct tp4_packet_array *tx = tx_ring->tp4->tx;
	u32 head = i40e_get_head(tx_ring), ntc = tx_ring->next_to_clean;
	struct tp4_frame_set p = {
		.pkt_arr = tx,
		.start = tx->start,
		.curr = tx->start,
		.end = tx->start + 1,
	};
	u32 sent = 0;

	while (i40e_tp4_is_run(tx_ring, ntc)) {
		struct i40e_tx_buffer *tx_bi = &tx_ring->tx_bi[ntc];
		u32 ready = head < ntc ? head + tx_ring->count : head;

		if (ready - ntc < tx_bi->bytecount)
			break;
		sent += tx_bi->bytecount;
		ntc += tx_bi->bytecount;
		if (ntc >= tx_ring->count)
			ntc -= tx_ring->count;
		tx_bi->tx_flags = 0;
	}
	if (!sent)
		return false;

	tx_ring->next_to_clean = ntc;
	for (; sent; p.start = p.curr = p.end++) {
		/* It was refused, and had no descriptor. */
		if (tp4f_frame(&p)->flags & TP4F_COMPLETED)
			continue;
		tp4f_packet_completed(&p);
		sent--;
	}
	i40e_tp4_flush_tx(tx_ring->tp4);
	return ntc != head && !i40e_tp4_is_run(tx_ring, ntc);
}

/* What is wrong with a packet that was posted? */
static int i40e_tp4_check(const struct net_device *dev,
			  const struct tp4_frame_set *p)
{
	u32 len = tp4f_packet_len(p);

	if (unlikely(len < I40E_MIN_TX_LEN))
		return -EINVAL;
	if (unlikely(tp4f_num_frames(p) > I40E_MAX_BUFFER_TXD))
		return -EMSGSIZE;
	return tp4f_check_len(p, dev, len);
}

/* Write the descriptors of a packet, from @ntu on.
 * Return: what is next to use.
 */
static u32 i40e_tp4_post(struct i40e_ring *tx_ring, u32 ntu,
			 struct tp4_frame_set *p, u32 *bytes)
{
	do {
		struct i40e_tx_desc *tx_desc = I40E_TX_DESC(tx_ring, ntu);
		u32 len = tp4f_get_frame_len(p);
		u32 cmd = I40E_TX_DESC_CMD_ICRC;

		if (tp4f_is_last_frame(p))
			cmd |= I40E_TX_DESC_CMD_EOP;
		tp4f_dma_sync_for_device(p, len);
		tx_desc->buffer_addr = cpu_to_le64(tp4f_get_dma(p));
		tx_desc->cmd_type_offset_bsz = build_ctob(cmd, 0, len, 0);
		*bytes += len;
		if (unlikely(++ntu == tx_ring->count))
			ntu = 0;
	} while (tp4f_next_frame(p));
	return ntu;
}

/* Send a run of @descs descriptors, those from next_to_use up to @ntu. */
static void i40e_tp4_end_run(struct i40e_ring *tx_ring, u32 ntu, u32 descs)
{
	struct i40e_tx_buffer *first = &tx_ring->tx_bi[tx_ring->next_to_use];
	u32 last = (ntu ? : tx_ring->count) - 1;

	first->bytecount = descs;
	first->tx_flags = I40E_TX_FLAGS_TP4;
	I40E_TX_DESC(tx_ring, last)->cmd_type_offset_bsz |=
		cpu_to_le64(I40E_TX_DESC_CMD_RS << I40E_TXD_QW1_CMD_SHIFT);
	tx_ring->next_to_use = ntu;
	i40e_xdp_ring_update_tail(tx_ring);
	txq_trans_cond_update(txring_txq(tx_ring));
}

/* Hand packets to the hardware.
 * Return: false if the ring has no room.
 */
static bool i40e_tp4_xmit_run(struct i40e_ring *tx_ring)
{
	struct netdev_queue *nq = txring_txq(tx_ring);
	struct tp4_packet_array *tx = tx_ring->tp4->tx;
	u32 ntu, unused, descs = 0, packets = 0, bytes = 0;
	struct tp4_frame_set p;
	bool refused = false;

	__netif_tx_lock(nq, smp_processor_id());
	ntu = tx_ring->next_to_use;
	unused = I40E_DESC_UNUSED(tx_ring);
	while (descs < I40E_TP4_RUN &&
	       descs + I40E_MAX_BUFFER_TXD + I40E_TP4_TX_SPARE <= unused &&
	       tp4a_next_packet(tx, &p)) {
		int err = i40e_tp4_check(tx_ring->netdev, &p);

		if (unlikely(err)) {
			tp4f_set_error(&p, -err);
			tp4f_packet_completed(&p);
			refused = true;
			continue;
		}
		ntu = i40e_tp4_post(tx_ring, ntu, &p, &bytes);
		descs += tp4f_num_frames(&p);
		packets++;
	}
	if (descs)
		i40e_tp4_end_run(tx_ring, ntu, descs);
	__netif_tx_unlock(nq);

	if (unlikely(refused))
		i40e_tp4_flush_tx(tx_ring->tp4);
	i40e_update_tx_stats(tx_ring, packets, bytes);
	return descs || refused;
}

/**
 * i40e_tp4_clean_tx_irq() - send on a zero-copy queue pair
 * @tx_ring:	its Tx ring, of which i40e_clean_tx_irq() has taken what is the
 *		stack's
 *
 * Gives sent frames back first.
 *
 * Context: NAPI of the ring; takes the lock of its netdev queue.
 * Return: false if NAPI must come again without an interrupt.
 */
bool i40e_tp4_clean_tx_irq(struct i40e_ring *tx_ring)
{
	struct tp4_packet_array *tx = tx_ring->tp4->tx;
	bool done = !i40e_tp4_reap(tx_ring);
	int runs = 0;

	tp4a_need_wakeup(tx, false);
	tp4a_populate(tx);
	for (; tx->curr != tx->end; runs++) {
		if (runs == I40E_TP4_RUNS)
			return false;
		/* What fills the ring brings an interrupt when it is sent. */
		if (!i40e_tp4_xmit_run(tx_ring))
			return done;
	}

	/* What is posted from here on comes with a kick, which is not lost
	 * while NAPI runs.
	 */
	tp4a_need_wakeup(tx, true);
	return done && !tp4a_has_work(tx);
}

/* ---- rings that come and go ---- */

/**
 * i40e_tp4_limit_frame() - what may a packet be long at most?
 * @vsi:	the VSI
 * @frame_size:	limit of the VSI's other queues
 *
 * A packet can take as many frames of a zero-copy queue pair as the hardware
 * chains buffers.
 *
 * Context: Under RTNL.
 * Return: the limit for all queues.
 */
int i40e_tp4_limit_frame(struct i40e_vsi *vsi, int frame_size)
{
	u32 chain_len = vsi->back->hw.func_caps.rx_buf_chain_len;
	struct i40e_tp4 *tp4;
	unsigned long i;

	xa_for_each(&vsi->tp4, i, tp4)
		frame_size = min_t(u32, frame_size,
				   chain_len * tp4->rx_buf_len);
	return frame_size;
}

/**
 * i40e_tp4_attach_ring() - set up a ring as one of a zero-copy queue pair
 * @ring:	the Rx or Tx ring, about to be configured; nothing is done if its
 *		pair is not in zero-copy mode
 *
 * Context: While the pair's NAPI is off.
 */
void i40e_tp4_attach_ring(struct i40e_ring *ring)
{
	ring->tp4 = xa_load(&ring->vsi->tp4, ring->queue_index);
	if (ring->tp4 && ring == ring->vsi->rx_rings[ring->queue_index])
		ring->rx_buf_len = ring->tp4->rx_buf_len;
}

/**
 * i40e_tp4_alloc_rx_buffers() - hand the first frames to the hardware
 * @rx_ring:	Rx ring of a zero-copy queue pair, configured
 *
 * So that nothing is lost from when the ring is enabled until NAPI runs.
 *
 * Context: Process context, while the pair's NAPI is off.
 */
void i40e_tp4_alloc_rx_buffers(struct i40e_ring *rx_ring)
{
	local_bh_disable();
	i40e_tp4_fill_rx(rx_ring);
	local_bh_enable();
}

/**
 * i40e_tp4_start() - let zero-copy queue pairs begin, or go on
 * @vsi:	the VSI, up
 *
 * Context: Under RTNL.
 */
void i40e_tp4_start(struct i40e_vsi *vsi)
{
	struct i40e_tp4 *tp4;
	unsigned long i;

	rcu_read_lock();
	xa_for_each_range(&vsi->tp4, i, tp4, 0, vsi->num_queue_pairs - 1) {
		rcu_assign_pointer(tp4->q_vector, vsi->rx_rings[i]->q_vector);
		i40e_tp4_wake(tp4);
	}
	rcu_read_unlock();
}

/**
 * i40e_tp4_clean_rx_ring() - leave a zero-copy queue pair alone, on shutdown
 * @rx_ring:	its Rx ring, or one that is not of such a pair
 *
 * The frames that the hardware had are filled when the ring is up again.
 *
 * Context: While the pair's NAPI is off; may sleep.
 */
void i40e_tp4_clean_rx_ring(struct i40e_ring *rx_ring)
{
	struct i40e_tp4 *tp4 = rx_ring->tp4;

	if (!tp4)
		return;
	rx_ring->tp4 = NULL;
	RCU_INIT_POINTER(tp4->q_vector, NULL);
	/* After this no kick is under way. */
	synchronize_net();
}

/**
 * i40e_tp4_clean_tx_ring() - give back what is being sent, on shutdown
 * @tx_ring:	Tx ring of a zero-copy queue pair, or another one
 *
 * As of what the stack has sent, some of it may not be on the wire.
 *
 * Context: Process context, while the pair's NAPI is off.
 */
void i40e_tp4_clean_tx_ring(struct i40e_ring *tx_ring)
{
	struct i40e_tp4 *tp4 = tx_ring->tp4;
	struct tp4_frame_set p;

	if (!tp4)
		return;
	tx_ring->tp4 = NULL;
	p = (struct tp4_frame_set) {
		.pkt_arr = tp4->tx,
		.start = tp4->tx->start,
		.end = tp4->tx->curr,
	};
	tp4f_packet_completed(&p);
	local_bh_disable();
	i40e_tp4_flush_tx(tp4);
	tp4a_need_wakeup(tp4->tx, true);
	local_bh_enable();
}

/* ---- the operations ---- */

static void i40e_tp4_free(struct i40e_tp4 *tp4)
{
	hrtimer_cancel(&tp4->refill);
	tp4a_free(tp4->rx);
	tp4a_free(tp4->tx);
	tp4a_free(tp4->to_kernel);
	kfree(tp4);
}

static struct i40e_tp4 *i40e_tp4_alloc(struct i40e_vsi *vsi,
				       const struct tp4_netdev_parms *parms)
{
	struct device *dev = &vsi->back->pdev->dev;
	struct i40e_tp4 *tp4;

	tp4 = kzalloc(sizeof(*tp4), GFP_KERNEL);
	if (!tp4)
		return NULL;

	tp4->parms = *parms;
	tp4->refill_ns = I40E_TP4_REFILL_MIN;
	hrtimer_init(&tp4->refill, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	tp4->refill.function = i40e_tp4_refill;
	tp4->to_kernel = tp4a_skb_sink_new(I40E_TP4_TO_KERNEL, tp4,
					   i40e_tp4_deliver_kernel);
	/* Rx takes over what copy mode had, so it comes last. */
	if (tp4->to_kernel)
		tp4->tx = tp4a_tx_new(parms->tx_opaque, vsi->num_tx_desc, dev);
	if (tp4->tx)
		tp4->rx = tp4a_rx_new(parms->rx_opaque, vsi->num_rx_desc, dev);
	if (!tp4->rx) {
		i40e_tp4_free(tp4);
		return NULL;
	}
	return tp4;
}

/* Stop a queue pair. If the hardware does not, all else has been stopped. */
static void i40e_tp4_stop_pair(struct i40e_vsi *vsi, int queue_pair)
{
	/* Whoever is at the configuration just now will be done soon. */
	while (i40e_queue_pair_disable(vsi, queue_pair) == -EBUSY)
		;
}

/* Is the queue pair running? If not, it is set up when the device goes up. */
static bool i40e_tp4_pair_is_up(const struct i40e_vsi *vsi, int queue_pair)
{
	return !test_bit(__I40E_VSI_DOWN, vsi->state) &&
	       queue_pair < vsi->num_queue_pairs;
}

/* Let the stack have a queue pair that has been stopped, if it was @up. */
static void i40e_tp4_give_back(struct i40e_vsi *vsi, int queue_pair, bool up)
{
	int err = 0;

	xa_erase(&vsi->tp4, queue_pair);
	/* After this no kick is under way. */
	synchronize_net();
	if (up)
		err = i40e_queue_pair_enable(vsi, queue_pair);
	if (err)
		netdev_err(vsi->netdev, "queue pair %d does not start: %pe\n",
			   queue_pair, ERR_PTR(err));
	else if (up)
		i40e_tp4_start(vsi);
}

static int i40e_tp4_enable(struct i40e_vsi *vsi,
			   const struct tp4_netdev_parms *parms)
{
	u32 chain_len = vsi->back->hw.func_caps.rx_buf_chain_len;
	int err, queue_pair = parms->queue_pair;
	struct i40e_tp4 *tp4;
	u32 buf_len;

	if (vsi->type != I40E_VSI_MAIN)
		return -EOPNOTSUPP;
	if (queue_pair >= vsi->num_queue_pairs)
		return -ENXIO;

	/* The hardware counts in steps, and must not write behind the frame. */
	buf_len = min_t(u32, tp4_frame_room(parms->rx_opaque),
			I40E_MAX_RXBUFFER);
	buf_len = ALIGN_DOWN(buf_len, I40E_TP4_BUF_ALIGN);
	if (buf_len < I40E_TP4_BUF_MIN)
		return -EINVAL;
	if (vsi->netdev->mtu + I40E_PACKET_HDR_PAD > chain_len * buf_len)
		return -EMSGSIZE;

	tp4 = i40e_tp4_alloc(vsi, parms);
	if (!tp4)
		return -ENOMEM;
	tp4->rx_buf_len = buf_len;
	err = xa_err(xa_store(&vsi->tp4, queue_pair, tp4, GFP_KERNEL));
	if (err)
		goto free;
	if (!i40e_tp4_pair_is_up(vsi, queue_pair))
		return 0;

	i40e_tp4_stop_pair(vsi, queue_pair);
	err = i40e_queue_pair_enable(vsi, queue_pair);
	if (err)
		goto give_back;
	i40e_tp4_start(vsi);
	return 0;

give_back:
	/* NAPI is on if the configuration is no longer busy. */
	if (!test_bit(__I40E_CONFIG_BUSY, vsi->back->state))
		i40e_tp4_stop_pair(vsi, queue_pair);
	i40e_tp4_clean_tx_ring(vsi->tx_rings[queue_pair]);
	i40e_tp4_clean_rx_ring(vsi->rx_rings[queue_pair]);
	i40e_tp4_give_back(vsi, queue_pair, true);
free:
	i40e_tp4_free(tp4);
	return err;
}

static int i40e_tp4_disable(struct i40e_vsi *vsi, int queue_pair)
{
	struct i40e_tp4 *tp4 = xa_load(&vsi->tp4, queue_pair);
	bool up = i40e_tp4_pair_is_up(vsi, queue_pair);

	if (up)
		i40e_tp4_stop_pair(vsi, queue_pair);
	i40e_tp4_give_back(vsi, queue_pair, up);
	i40e_tp4_free(tp4);
	return 0;
}

/**
 * i40e_tp4_zerocopy() - implements ndo_tp4_zerocopy
 * @dev:	the netdevice
 * @parms:	what to do
 *
 * If the device is up, the queue pair stops for some 50 ms; the others, and the
 * link, stay as they are.
 *
 * Context: Under RTNL, may sleep.
 * Return: 0, -EOPNOTSUPP on a netdevice that is not the port's own, -ENXIO
 * without such a queue pair, -EINVAL if a frame takes less than 1024 bytes,
 * -EMSGSIZE if a packet of the device's MTU needs more frames than the hardware
 * chains, -ENOMEM, or what the hardware fails with.
 */
int i40e_tp4_zerocopy(struct net_device *dev, struct tp4_netdev_parms *parms)
{
	struct i40e_netdev_priv *np = netdev_priv(dev);

	switch (parms->command) {
	case TP4_ENABLE:
		return i40e_tp4_enable(np->vsi, parms);
	case TP4_DISABLE:
		return i40e_tp4_disable(np->vsi, parms->queue_pair);
	}
	return -EINVAL;
}

/**
 * i40e_tp4_xmit() - implements ndo_tp4_xmit
 * @dev:	the netdevice
 * @queue_pair:	the queue pair, in zero-copy mode
 *
 * What is posted while the device is being reset is sent after that.
 *
 * Context: Any but hard interrupt, under RCU.
 * Return: 0, or -ENXIO if the mode has just been left.
 */
int i40e_tp4_xmit(struct net_device *dev, int queue_pair)
{
	struct i40e_netdev_priv *np = netdev_priv(dev);
	const struct i40e_tp4 *tp4 = xa_load(&np->vsi->tp4, queue_pair);

	if (unlikely(!tp4))
		return -ENXIO;
	i40e_tp4_wake(tp4);
	return 0;
}
