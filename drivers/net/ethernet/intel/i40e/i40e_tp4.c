// SPDX-License-Identifier: GPL-2.0
/* TPACKET_V4 zero-copy mode: Rx and Tx of a queue pair
 *
 * The hardware takes and completes frames in the order of the packet arrays.
 * The position of a frame in its array therefore follows from the distance of
 * its descriptor from next_to_clean, and no per-descriptor state is needed:
 *
 *	Rx	the descriptor at next_to_clean has the array's frame at curr;
 *		the following descriptors have the following frames
 *	Tx	a run of descriptors has a number of frames, starting at start;
 *		refused frames have no descriptor and are counted with the next
 *		run, if there is one
 *
 * Tx uses the ordinary ring of the queue pair, under the lock of its netdev
 * queue, which is taken once per batch. The stack may use this ring at the same
 * time. As the ring always exists, zero-copy mode can be entered without a
 * reset of the port, and does not depend on XDP programs. The XDP rings would
 * not do, as XDP_TX and redirects from other devices write to them without a
 * lock.
 *
 * The packets sent in one go are a run of descriptors, with one RS bit at its
 * end and one entry of tx_bi at its start. next_to_watch is not set in this
 * entry, so i40e_clean_tx_irq() stops at a run and i40e_tp4_clean_tx_irq()
 * continues from there.
 */

#include <linux/bitfield.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tpacket4.h>
#include <net/checksum.h>
#include "i40e_lan_hmc.h"
#include "i40e_tp4.h"
#include "i40e_tp4_rx.h"
#include "i40e_txrx_common.h"
#include "i40e_xsk.h"

/* Minimum number of descriptors after which a run ends, and maximum number of
 * runs in one poll
 */
#define I40E_TP4_RUN		64
#define I40E_TP4_RUNS		4

/* Maximum number of descriptors of a packet: one for each frame, and a context
 * descriptor
 */
#define I40E_TP4_MAX_DESCS	(TP4_MAX_FRAMES + 1)

/* Limits of the hardware for TSO: bytes of a segment, and of the packet */
#define I40E_TP4_MSS_MIN	64
#define I40E_TP4_TSO_MAX	(SZ_256K - 1)

/* Number of descriptors reserved for the stack, the same number for which
 * i40e_clean_tx_irq() wakes a stopped queue. In a short ring, half of the
 * descriptors are reserved.
 */
#define I40E_TP4_TX_RESERVED	(2 * DESC_NEEDED)

/**
 * i40e_tp4_wake() - schedule the NAPI of a queue pair
 * @tp4:	the queue pair
 *
 * If NAPI is not running, triggers an interrupt, so that NAPI runs on the CPU
 * that the interrupt's affinity selects. With MSI and INTx, i40e_intr() would
 * not attribute a software interrupt to a queue, so NAPI is scheduled directly.
 *
 * Context: Any except hard interrupt, under RCU.
 */
void i40e_tp4_wake(const struct i40e_tp4 *tp4)
{
	struct i40e_q_vector *q_vector = rcu_dereference(tp4->q_vector);

	if (!q_vector || napi_if_scheduled_mark_missed(&q_vector->napi))
		return;
	if (test_bit(I40E_FLAG_MSIX_ENA, q_vector->vsi->back->flags)) {
		i40e_force_wb(q_vector->vsi, q_vector);
		return;
	}
	local_bh_disable();
	napi_schedule(&q_vector->napi);
	local_bh_enable();
}

/* ---- Rx ---- */

/* Hand empty frames to the hardware. */
static void i40e_tp4_fill_rx(struct i40e_ring *rx_ring)
{
	struct tp4_packet_array *rx = rx_ring->tp4->rx;
	u32 nr, unused = I40E_DESC_UNUSED(rx_ring);
	u32 posted = rx_ring->count - 1 - unused;
	u32 ntu = rx_ring->next_to_use;
	const u32 count = rx_ring->count;
	union i40e_rx_desc *rx_desc;
	struct tp4_frame_set p, to;
	struct tp4_dma dma;

	nr = tp4a_refill(rx, posted, unused, &to);
	if (!nr ||
	    (nr < I40E_RX_BUFFER_WRITE && posted >= I40E_RX_BUFFER_WRITE))
		return;

	dma = tp4a_get_dma(rx);
	rx_desc = I40E_RX_DESC(rx_ring, ntu);
	/* A copy that has no address can be kept in registers. */
	for (p = to; nr; nr--, p.curr++) {
		dma_addr_t addr = tp4f_get_dma_of(&p, &dma);

		tp4_dma_sync_for_device(&dma, addr, rx_ring->rx_buf_len);
		rx_desc->read.pkt_addr = cpu_to_le64(addr);
		/* Also clears the status of the write-back format. */
		rx_desc->read.hdr_addr = 0;
		rx_desc++;
		if (unlikely(++ntu == count)) {
			ntu = 0;
			rx_desc = I40E_RX_DESC(rx_ring, 0);
		}
	}
	i40e_release_rx_desc(rx_ring, ntu);
}

/**
 * i40e_tp4_alloc_rx_buffers() - hand the first frames to the hardware
 * @rx_ring:	Rx ring of a zero-copy queue pair, configured
 *
 * So that no packet is lost between enabling the ring and the first NAPI run.
 *
 * Context: Process context, while the pair's NAPI is off.
 */
void i40e_tp4_alloc_rx_buffers(struct i40e_ring *rx_ring)
{
	local_bh_disable();
	i40e_tp4_fill_rx(rx_ring);
	local_bh_enable();
}

/* Get what an EOP descriptor says of its packet.
 * Return: an skb that has it, and no data.
 */
static struct sk_buff *i40e_tp4_meta_skb(struct i40e_ring *rx_ring,
					 union i40e_rx_desc *rx_desc)
{
	struct sk_buff *skb = rx_ring->tp4->meta_skb;

	skb_clear_hash(skb);
	skb->csum_level = 0;
	skb_hwtstamps(skb)->hwtstamp = 0;
	i40e_process_skb_offloads(rx_ring, rx_desc, skb);
	return skb;
}

/* Get the rest of what an EOP descriptor says of a packet whose metadata is set.
 * Its timestamp is in the metadata, and reading the register again would take
 * that of another packet. A checksum error has been counted.
 */
static struct sk_buff *i40e_tp4_meta_skb_again(struct i40e_ring *rx_ring,
					       const union i40e_rx_desc *rx_desc)
{
	u64 qword = le64_to_cpu(rx_desc->wb.qword1.status_error_len);
	u32 errors = BIT(I40E_RX_DESC_ERROR_IPE_SHIFT) |
		     BIT(I40E_RX_DESC_ERROR_EIPE_SHIFT) |
		     BIT(I40E_RX_DESC_ERROR_L4E_SHIFT);
	union i40e_rx_desc copy = *rx_desc;

	qword &= ~BIT_ULL(I40E_RX_DESC_STATUS_TSYNVALID_SHIFT);
	/* As if the hardware had not checked it */
	if (FIELD_GET(I40E_RXD_QW1_ERROR_MASK, qword) & errors)
		qword &= ~BIT_ULL(I40E_RX_DESC_STATUS_L3L4P_SHIFT);
	copy.wb.qword1.status_error_len = cpu_to_le64(qword);
	return i40e_tp4_meta_skb(rx_ring, &copy);
}

/* The descriptors of the packets in the array are not used again before the
 * array is flushed. If XDP has made the packet shorter, the array no longer has
 * its last frame, so look for the EOP descriptor from its first one on.
 */
static struct sk_buff *i40e_tp4_get_offloads(void *arg,
					     const struct tp4_frame_set *p)
{
	struct i40e_ring *rx_ring = arg;
	u32 ntd = rx_ring->next_to_clean + rx_ring->count - tp4f_get_age(p);

	for (;; ntd++) {
		u64 qword;

		if (ntd >= rx_ring->count)
			ntd -= rx_ring->count;
		qword = i40e_tp4_rx_status(rx_ring, ntd);
		if (qword & BIT_ULL(I40E_RX_DESC_STATUS_EOF_SHIFT) &&
		    !i40e_rx_is_programming_status(qword))
			break;
	}
	return tp4a_has_meta(rx_ring->tp4->rx) ?
	       i40e_tp4_meta_skb_again(rx_ring, I40E_RX_DESC(rx_ring, ntd)) :
	       i40e_tp4_meta_skb(rx_ring, I40E_RX_DESC(rx_ring, ntd));
}

/* Free the register with the timestamp of a packet if nobody will read it. There
 * are only four, and other queues need them.
 */
static void i40e_tp4_rx_drop_stamp(struct i40e_ring *rx_ring, u64 qword)
{
	u32 status = FIELD_GET(I40E_RXD_QW1_STATUS_MASK, qword);

	if (tp4a_may_copy(rx_ring->tp4->rx))
		return;
	i40e_ptp_rx_hwtstamp(rx_ring->vsi->back, rx_ring->tp4->meta_skb,
			     FIELD_GET(I40E_RXD_QW1_STATUS_TSYNINDX_MASK,
				       status));
}

/* Check for descriptors whose frames go back to the end of the array. */
static bool i40e_tp4_rx_is_odd(const struct i40e_ring *rx_ring, u32 nr)
{
	u32 ntc = rx_ring->next_to_clean;
	u64 qword;

	do {
		qword = i40e_tp4_rx_status(rx_ring, ntc);
		if (i40e_rx_is_programming_status(qword))
			return true;
		if (unlikely(++ntc == rx_ring->count))
			ntc = 0;
	} while (--nr);
	return qword & BIT_ULL(I40E_RXD_QW1_ERROR_SHIFT);
}

/* Receive the next packet, which has @nr descriptors.
 * Return: its length, or 0 if the descriptors hold no valid packet.
 */
static u32 i40e_tp4_rx_packet(struct i40e_ring *rx_ring, u32 nr, void *arg)
{
	struct tp4_packet_array *rx = rx_ring->tp4->rx;
	u32 bytes = 0, frames = 0, ntc = rx_ring->next_to_clean;
	union i40e_rx_desc *rx_desc;
	struct tp4_frame_set p, first;
	u64 qword;

	/* i40e_tp4_get_offloads() finds the descriptors of packets by
	 * next_to_clean.
	 */
	if (unlikely(i40e_tp4_rx_is_odd(rx_ring, nr)))
		tp4a_flush(rx);
	do {
		u32 size;

		qword = i40e_tp4_rx_status(rx_ring, ntc);
		rx_desc = i40e_tp4_rx_next(rx_ring, &ntc, rx, &p);
		if (i40e_tp4_rx_report(rx_ring, rx_desc, qword)) {
			tp4a_reuse(rx, 1);
			/* The frames before it have moved up. */
			if (frames) {
				first.start++;
				first.curr++;
			}
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
	i40e_tp4_rx_taken(rx_ring, ntc);

	if (unlikely(!frames))
		return 0;
	rx_ring->rx_stats.non_eop_descs += frames - 1;
	if (unlikely(qword & BIT_ULL(I40E_RXD_QW1_ERROR_SHIFT))) {
		/* Counted by the port's statistics. */
		tp4a_reuse(rx, frames);
		return 0;
	}
	if (qword & BIT_ULL(I40E_RX_DESC_STATUS_L2TAG1P_SHIFT))
		tp4f_push_vlan(&first, htons(ETH_P_8021Q),
			       le16_to_cpu(rx_desc->wb.qword0.lo_dword.l2tag1));
	if (tp4a_has_meta(rx))
		tp4f_set_from_skb(&first, i40e_tp4_meta_skb(rx_ring, rx_desc));
	else if (unlikely(qword & BIT_ULL(I40E_RX_DESC_STATUS_TSYNVALID_SHIFT)))
		i40e_tp4_rx_drop_stamp(rx_ring, qword);
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

static void i40e_tp4_rx_flush(struct i40e_ring *rx_ring, void *arg)
{
	tp4a_flush(rx_ring->tp4->rx);
}

static void i40e_tp4_rx_meta(struct i40e_ring *rx_ring, u32 ntc,
			     struct tp4_frame_set *p)
{
	tp4f_set_from_skb(p, i40e_tp4_meta_skb(rx_ring,
					       I40E_RX_DESC(rx_ring, ntc)));
}

static const struct i40e_tp4_rx_ops i40e_tp4_rx_ops = {
	.sync = tp4f_dma_sync_for_cpu,
	.packet = i40e_tp4_rx_packet,
	.flush = i40e_tp4_rx_flush,
};

static const struct i40e_tp4_rx_ops i40e_tp4_rx_meta_ops = {
	.sync = tp4f_dma_sync_for_cpu,
	.packet = i40e_tp4_rx_packet,
	.flush = i40e_tp4_rx_flush,
	.meta = i40e_tp4_rx_meta,
};

/* noinline, so that rings without metadata are not slowed down */
static noinline int i40e_tp4_receive_meta(struct i40e_ring *rx_ring, int budget)
{
	return i40e_tp4_receive(rx_ring, rx_ring->tp4->rx,
				&i40e_tp4_rx_meta_ops, I40E_TP4_RX_PLAIN_MASK,
				budget, NULL, NULL);
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
	int done;

	tp4->xdp.rxq = &rx_ring->xdp_rxq;
	tp4->xdp.arg = rx_ring;
	tp4a_begin_rx(tp4->rx, &rx_ring->q_vector->napi,
		      READ_ONCE(rx_ring->xdp_prog));
	if (tp4a_has_meta(tp4->rx))
		done = i40e_tp4_receive_meta(rx_ring, budget);
	else
		done = i40e_tp4_receive(rx_ring, tp4->rx, &i40e_tp4_rx_ops,
					I40E_TP4_RX_PLAIN_MASK, budget, NULL,
					NULL);
	/* The ordinary path does not count what the program drops, either. */
	for (; unlikely(tp4->xdp.errors); tp4->xdp.errors--)
		dev_core_stats_rx_dropped_inc(rx_ring->netdev);
	i40e_finalize_xdp_rx(rx_ring,
			     (tp4->xdp.tx ? I40E_XDP_TX : 0) |
			     (tp4->xdp.redirect ? I40E_XDP_REDIR : 0));
	i40e_tp4_fill_rx(rx_ring);
	return done;
}

/* ---- Tx ---- */

static bool i40e_tp4_is_run(const struct i40e_ring *tx_ring, u32 ntc)
{
	/* The stack may write to the entry, but never sets this flag. */
	return READ_ONCE(tx_ring->tx_bi[ntc].tx_flags) & I40E_TX_FLAGS_TP4;
}

/* Return the frames that have been sent.
 * Return: true if completed descriptors of the stack follow.
 */
static bool i40e_tp4_reap(struct i40e_ring *tx_ring)
{
	u32 head = i40e_get_head(tx_ring), ntc = tx_ring->next_to_clean;
	struct i40e_tp4 *tp4 = tx_ring->tp4;
	u32 frames = 0;

	while (i40e_tp4_is_run(tx_ring, ntc)) {
		struct i40e_tx_buffer *tx_bi = &tx_ring->tx_bi[ntc];
		u32 ready = head < ntc ? head + tx_ring->count : head;

		if (ready - ntc < tx_bi->bytecount)
			break;
		frames += tx_bi->gso_segs;
		ntc += tx_bi->bytecount;
		if (ntc >= tx_ring->count)
			ntc -= tx_ring->count;
		tx_bi->tx_flags = 0;
	}
	if (!frames)
		return false;

	tx_ring->next_to_clean = ntc;
	tp4->tx_in_flight -= frames;
	/* Frames refused since are behind the last run. */
	if (!tp4->tx_in_flight)
		frames = tp4a_nr_processed(tp4->tx);
	tp4a_flush_sent(tp4->tx, frames);
	return ntc != head && !i40e_tp4_is_run(tx_ring, ntc);
}

/* Descriptors written but not yet handed to the hardware */
struct i40e_tp4_run {
	u32	ntu;		/* next to use */
	u32	descs;
	u32	packets;
	u32	bytes;
};

/* Write the Tx descriptor of a frame. */
static void i40e_tp4_write_desc(const struct i40e_ring *tx_ring,
				struct i40e_tx_desc *tx_desc,
				dma_addr_t dma, u32 len, u32 cmd, u32 offset)
{
	dma_sync_single_for_device(tx_ring->dev, dma, len, DMA_BIDIRECTIONAL);
	tx_desc->buffer_addr = cpu_to_le64(dma);
	tx_desc->cmd_type_offset_bsz =
		build_ctob(cmd | I40E_TX_DESC_CMD_ICRC, offset, len, 0);
}

/* Post packets of one frame, the common case, up to one that has more frames,
 * wants more, or is shorter or longer than usual.
 */
static void i40e_tp4_post_plain(const struct i40e_ring *tx_ring,
				struct i40e_tp4_run *run, u32 max)
{
	u32 max_len = READ_ONCE(tx_ring->netdev->mtu) + ETH_HLEN;
	struct tp4_packet_array *tx = tx_ring->tp4->tx;
	const struct tp4_dma dma = tp4a_get_dma(tx);
	const u32 count = tx_ring->count;
	u32 nr, bytes = 0, ntu = run->ntu;
	struct i40e_tx_desc *tx_desc;
	struct tp4_frame_set p;

	max = min(max, tp4a_get_unprocessed(tx, 0, &p));
	tx_desc = I40E_TX_DESC(tx_ring, ntu);
	for (nr = 0; nr < max; nr++) {
		u32 len = tp4f_get_frame_len(&p);

		if (unlikely(len < I40E_MIN_TX_LEN || len > max_len ||
			     !tp4f_is_plain(&p)))
			break;
		i40e_tp4_write_desc(tx_ring, tx_desc, tp4f_get_dma_of(&p, &dma),
				    len, I40E_TX_DESC_CMD_EOP, 0);
		bytes += len;
		p.curr++;
		tx_desc++;
		if (unlikely(++ntu == count)) {
			ntu = 0;
			tx_desc = I40E_TX_DESC(tx_ring, 0);
		}
	}
	tp4a_advance(tx, nr);
	run->ntu = ntu;
	run->descs += nr;
	run->packets += nr;
	run->bytes += bytes;
}

/* Check whether a packet can be sent. */
static int i40e_tp4_check(const struct net_device *dev,
			  const struct tp4_frame_set *p)
{
	static const struct tp4_limits limits = {
		.tx_min = I40E_MIN_TX_LEN, .tx_chain = I40E_MAX_BUFFER_TXD,
	};

	return tp4f_check_packet(p, dev, &limits);
}

/* Offload request of a packet in the hardware's format */
struct i40e_tp4_offload {
	u32	td_cmd;
	u32	td_offset;
	u64	ctx;		/* second half of a context descriptor, or 0 */
};

/* Frames can be longer than a descriptor allows if pages are large. A segment may
 * use eight descriptors: one for the headers, and, if the frames before and after
 * only have a byte of it, six other frames.
 */
static bool i40e_tp4_can_segment(const struct tp4_frame_set *p, u32 mss)
{
	const u32 window = I40E_MAX_BUFFER_TXD - 2;
	u32 i, sum = 0, nr = tp4f_num_frames(p) - 1;
	struct tp4_frame_set add = *p, drop = *p;

	do {
		if (tp4f_get_frame_len(&add) > I40E_MAX_DATA_PER_TXD)
			return false;
	} while (tp4f_next_frame(&add));
	if (nr <= window)
		return true;
	add = *p;
	tp4f_next_frame(&drop);
	for (i = 0; i < nr; i++) {
		tp4f_next_frame(&add);
		sum += tp4f_get_frame_len(&add);
		if (i + 1 < window)
			continue;
		if (sum + 1 < mss)
			return false;
		sum -= tp4f_get_frame_len(&drop);
		tp4f_next_frame(&drop);
	}
	return true;
}

/* Set the descriptor fields for TSO, and prepare the headers in the frame for it
 * as i40e_tso() does.
 */
static int i40e_tp4_tso(const struct tp4_frame_set *p,
			const struct tp4_offload *o,
			struct i40e_tp4_offload *to)
{
	u32 len = tp4f_packet_len(p), payload = len - o->hdr_len;
	void *data = tp4f_get_data(p), *ip = data + o->l2_len;
	__sum16 check;

	if (o->mss < I40E_TP4_MSS_MIN)
		return -EINVAL;
	if (payload > I40E_TP4_TSO_MAX || !i40e_tp4_can_segment(p, o->mss))
		return -EMSGSIZE;

	/* The hardware fills in the length of each segment. */
	memcpy(&check, data + o->start + o->csum_offset, sizeof(check));
	csum_replace_by_diff(&check, (__force __wsum)htonl(len - o->start));
	memcpy(data + o->start + o->csum_offset, &check, sizeof(check));
	if (o->ipv6) {
		memset(ip + offsetof(struct ipv6hdr, payload_len), 0,
		       sizeof(__be16));
	} else {
		memset(ip + offsetof(struct iphdr, tot_len), 0, sizeof(__be16));
		memset(ip + offsetof(struct iphdr, check), 0, sizeof(__sum16));
		to->td_cmd |= I40E_TX_DESC_CMD_IIPT_IPV4_CSUM;
	}
	to->ctx = I40E_TX_DESC_DTYPE_CONTEXT |
		  (u64)I40E_TX_CTX_DESC_TSO << I40E_TXD_CTX_QW1_CMD_SHIFT |
		  (u64)payload << I40E_TXD_CTX_QW1_TSO_LEN_SHIFT |
		  (u64)o->mss << I40E_TXD_CTX_QW1_MSS_SHIFT;
	return 0;
}

/* Set the descriptor fields for the metadata of a packet. */
static int i40e_tp4_do_meta(const struct net_device *dev,
			    const struct tp4_frame_set *p,
			    struct i40e_tp4_offload *to)
{
	struct tp4_offload o;
	int err;

	err = tp4f_get_offload(p, dev, &o);
	if (err || !o.start)
		return err;
	err = tp4f_find_headers(p, &o);
	if (err)
		return err;
	to->td_cmd = (o.ipv6 ? I40E_TX_DESC_CMD_IIPT_IPV6 :
			       I40E_TX_DESC_CMD_IIPT_IPV4) |
		     (o.udp ? I40E_TX_DESC_CMD_L4T_EOFT_UDP :
			      I40E_TX_DESC_CMD_L4T_EOFT_TCP);
	to->td_offset =
		(o.l2_len / 2) << I40E_TX_DESC_LENGTH_MACLEN_SHIFT |
		((o.start - o.l2_len) / 4) << I40E_TX_DESC_LENGTH_IPLEN_SHIFT |
		((o.hdr_len - o.start) / 4) << I40E_TX_DESC_LENGTH_L4_FC_LEN_SHIFT;
	return o.gso_type ? i40e_tp4_tso(p, &o, to) : 0;
}

/* Timestamp a packet, and have the hardware do it if it can. */
static void i40e_tp4_stamp(struct i40e_ring *tx_ring, struct tp4_frame_set *p,
			   struct i40e_tp4_offload *to)
{
	u32 tx_flags = to->ctx ? I40E_TX_FLAGS_TSO : 0;
	u64 ctx = I40E_TX_DESC_DTYPE_CONTEXT;
	struct sk_buff *skb;

	skb = tp4f_stamp_skb(p);
	if (unlikely(!skb))
		return;
	if (i40e_tp4_tsyn(tx_ring, skb, tx_flags, &ctx))
		to->ctx = ctx;
	tp4_stamp_skb(skb);
}

/* Prepare a packet that wants more than to be sent. With TSO, the limits are
 * those of the segments.
 */
static noinline int i40e_tp4_do_more(struct i40e_ring *tx_ring,
				     struct tp4_frame_set *p,
				     struct i40e_tp4_offload *to)
{
	int err = 0;

	if (tp4f_has_meta(p))
		err = i40e_tp4_do_meta(tx_ring->netdev, p, to);
	if (!err && !to->ctx)
		err = i40e_tp4_check(tx_ring->netdev, p);
	if (!err && tp4f_wants_stamp(p))
		i40e_tp4_stamp(tx_ring, p, to);
	return err;
}

static void i40e_tp4_next_desc(const struct i40e_ring *tx_ring,
			       struct i40e_tp4_run *run)
{
	run->descs++;
	if (unlikely(++run->ntu == tx_ring->count))
		run->ntu = 0;
}

/* Write the context descriptor of a packet. */
static void i40e_tp4_write_ctx(const struct i40e_ring *tx_ring,
			       struct i40e_tp4_run *run, u64 ctx)
{
	*I40E_TX_CTXTDESC(tx_ring, run->ntu) = (struct i40e_tx_context_desc) {
		.type_cmd_tso_mss = cpu_to_le64(ctx),
	};
	i40e_tp4_next_desc(tx_ring, run);
}

/* Post the next packet, or set its error. */
static void i40e_tp4_post_packet(struct i40e_ring *tx_ring,
				 struct i40e_tp4_run *run)
{
	struct i40e_tp4_offload offload = {};
	struct tp4_frame_set p;
	int err;

	if (!tp4a_next_packet(tx_ring->tp4->tx, &p))
		return;
	if (unlikely(tp4f_wants_more(&p)))
		err = i40e_tp4_do_more(tx_ring, &p, &offload);
	else
		err = i40e_tp4_check(tx_ring->netdev, &p);
	if (unlikely(err)) {
		tp4f_set_error(&p, -err);
		return;
	}
	if (offload.ctx)
		i40e_tp4_write_ctx(tx_ring, run, offload.ctx);
	do {
		u32 len = tp4f_get_frame_len(&p);

		i40e_tp4_write_desc(tx_ring, I40E_TX_DESC(tx_ring, run->ntu),
				    tp4f_get_dma(&p), len,
				    offload.td_cmd |
				    (tp4f_is_last_frame(&p) ?
				     I40E_TX_DESC_CMD_EOP : 0),
				    offload.td_offset);
		run->bytes += len;
		i40e_tp4_next_desc(tx_ring, run);
	} while (tp4f_next_frame(&p));
	run->packets++;
}

/* Hand the run of descriptors at next_to_use to the hardware. */
static void i40e_tp4_end_run(struct i40e_ring *tx_ring,
			     const struct i40e_tp4_run *run)
{
	struct i40e_tx_buffer *first = &tx_ring->tx_bi[tx_ring->next_to_use];
	u32 last = (run->ntu ? : tx_ring->count) - 1;
	struct i40e_tp4 *tp4 = tx_ring->tp4;

	first->bytecount = run->descs;
	first->gso_segs = tp4a_nr_processed(tp4->tx) - tp4->tx_in_flight;
	first->tx_flags = I40E_TX_FLAGS_TP4;
	tp4->tx_in_flight += first->gso_segs;
	I40E_TX_DESC(tx_ring, last)->cmd_type_offset_bsz |=
		cpu_to_le64(I40E_TX_DESC_CMD_RS << I40E_TXD_QW1_CMD_SHIFT);
	tx_ring->next_to_use = run->ntu;
	i40e_xdp_ring_update_tail(tx_ring);
	txq_trans_cond_update(txring_txq(tx_ring));
}

/* Number of descriptors that are left to the stack. A packet must fit besides, even
 * if it may have many frames and the ring is short.
 */
static u32 i40e_tp4_reserved(const struct i40e_ring *tx_ring)
{
	const u32 count = tx_ring->count;

	return min3((u32)I40E_TP4_TX_RESERVED, count / 2,
		    count - 1 - I40E_TP4_MAX_DESCS);
}

/* Wake the stack's queue. i40e_clean_tx_irq() only does so when it has cleaned
 * packets of the stack, and, if the ring is short, with more room than there
 * ever is.
 */
static void i40e_tp4_wake_stack(struct i40e_ring *tx_ring)
{
	struct net_device *dev = tx_ring->netdev;

	/* A queue pair that is being switched has none. */
	if (unlikely(!rcu_access_pointer(tx_ring->tp4->q_vector)))
		return;
	/* Whoever stops the queue after this sees the new next_to_clean. */
	smp_mb();
	if (likely(!__netif_subqueue_stopped(dev, tx_ring->queue_index)) ||
	    I40E_DESC_UNUSED(tx_ring) < i40e_tp4_reserved(tx_ring) ||
	    !netif_carrier_ok(dev) ||
	    test_bit(__I40E_VSI_DOWN, tx_ring->vsi->state))
		return;
	netif_wake_subqueue(dev, tx_ring->queue_index);
	tx_ring->tx_stats.restart_queue++;
}

/* Send a run of packets.
 * Return: false if the ring has no room.
 */
static bool i40e_tp4_xmit_run(struct i40e_ring *tx_ring)
{
	u32 reserved = i40e_tp4_reserved(tx_ring);
	struct netdev_queue *nq = txring_txq(tx_ring);
	struct tp4_packet_array *tx = tx_ring->tp4->tx;
	u32 room, before = tp4a_nr_unprocessed(tx);
	struct i40e_tp4_run run = {};

	__netif_tx_lock(nq, smp_processor_id());
	run.ntu = tx_ring->next_to_use;
	room = I40E_DESC_UNUSED(tx_ring);
	/* Leave room for one packet of the maximum number of descriptors. */
	room -= min(room, reserved + I40E_TP4_MAX_DESCS - 1);
	room = min_t(u32, room, I40E_TP4_RUN);
	while (run.descs < room && tp4a_nr_unprocessed(tx) &&
	       before - tp4a_nr_unprocessed(tx) < I40E_TP4_RUN) {
		i40e_tp4_post_plain(tx_ring, &run, room - run.descs);
		if (unlikely(run.descs < room))
			i40e_tp4_post_packet(tx_ring, &run);
	}
	if (run.descs)
		i40e_tp4_end_run(tx_ring, &run);
	__netif_tx_unlock(nq);

	/* If all packets were refused, no completion returns them. */
	if (unlikely(!tx_ring->tp4->tx_in_flight))
		tp4a_flush(tx);
	i40e_update_tx_stats(tx_ring, run.packets, run.bytes);
	return tp4a_nr_unprocessed(tx) != before;
}

/**
 * i40e_tp4_clean_tx_irq() - send on a zero-copy queue pair
 * @tx_ring:	its Tx ring, after i40e_clean_tx_irq() has cleaned the stack's
 *		packets
 *
 * Returns completed frames first.
 *
 * Context: NAPI of the ring; takes the lock of its netdev queue.
 * Return: false if NAPI must run again without an interrupt.
 */
bool i40e_tp4_clean_tx_irq(struct i40e_ring *tx_ring)
{
	struct tp4_packet_array *tx = tx_ring->tp4->tx;
	bool done = !i40e_tp4_reap(tx_ring);
	int runs = 0;

	i40e_tp4_wake_stack(tx_ring);
	tp4a_need_wakeup(tx, false);
	tp4a_populate(tx);
	for (; tp4a_nr_unprocessed(tx); runs++) {
		if (runs == I40E_TP4_RUNS)
			return false;
		/* If the ring is full, an interrupt schedules NAPI. */
		if (!i40e_tp4_xmit_run(tx_ring))
			return done;
	}

	/* The program kicks for packets posted from here on. A kick while NAPI
	 * is running is not lost.
	 */
	tp4a_need_wakeup(tx, true);
	return done && !tp4a_has_work(tx);
}

/**
 * i40e_tp4_return_tx() - return all Tx frames
 * @tp4:	the queue pair
 *
 * Context: Process context, while NAPI is disabled and the hardware has
 * stopped.
 */
void i40e_tp4_return_tx(struct i40e_tp4 *tp4)
{
	if (!tp4->tx)
		return;
	tp4->tx_in_flight = 0;
	local_bh_disable();
	tp4a_flush(tp4->tx);
	tp4a_need_wakeup(tp4->tx, true);
	local_bh_enable();
}

/* ---- setup and teardown ---- */

/**
 * i40e_tp4_free() - free a queue pair's arrays
 * @tp4:	the queue pair, which is no longer attached to rings
 *
 * Returns the frames in them to the program.
 *
 * Context: Process context, may sleep.
 */
void i40e_tp4_free(struct i40e_tp4 *tp4)
{
	tp4a_free(tp4->rx);
	tp4a_free(tp4->tx);
	kfree_skb(tp4->meta_skb);
	kfree(tp4);
}

/**
 * i40e_tp4_alloc() - allocate the arrays of a queue pair
 * @vsi:	its VSI
 * @parms:	parameters of ndo_tp4_zerocopy
 * @buf_len:	number of bytes that the hardware may write to a frame
 *
 * Context: In ndo_tp4_zerocopy, may sleep.
 * Return: the queue pair, or NULL if there is no memory.
 */
struct i40e_tp4 *i40e_tp4_alloc(struct i40e_vsi *vsi,
				const struct tp4_netdev_parms *parms,
				u16 buf_len)
{
	struct device *dev = &vsi->back->pdev->dev;
	struct i40e_tp4 *tp4;

	tp4 = kzalloc_obj(*tp4);
	if (!tp4)
		return NULL;

	tp4->parms = *parms;
	tp4->rx_buf_len = buf_len;
	if (parms->tx_opaque) {
		tp4->tx = tp4a_tx_new(parms->tx_opaque, vsi->num_tx_desc, dev);
		if (!tp4->tx)
			goto free;
	}
	/* tp4a_rx_new() takes over frames of copy mode, so call it last. */
	if (parms->rx_opaque) {
		tp4->rx = tp4a_rx_new(parms->rx_opaque, vsi->num_rx_desc, dev);
		if (!tp4->rx)
			goto free;
		tp4->meta_skb = alloc_skb(0, GFP_KERNEL);
		if (!tp4->meta_skb)
			goto free;
		tp4->xdp.buff = &tp4->xdp_buff;
		tp4->xdp.xmit = i40e_tp4_xdp_tx;
		tp4->xdp.get_offloads = i40e_tp4_get_offloads;
		tp4a_set_xdp(tp4->rx, &tp4->xdp);
	}
	return tp4;

free:
	i40e_tp4_free(tp4);
	return NULL;
}
