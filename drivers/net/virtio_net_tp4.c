// SPDX-License-Identifier: GPL-2.0
/* virtio_net: TPACKET_V4 zero-copy mode, included by virtio_net.c
 *
 * The device may complete buffers out of order. They are identified by the
 * number of the frame (Rx) or the handle of the packet (Tx).
 *
 * The virtio header of an Rx buffer is placed at the end of the XDP headroom,
 * so that the data is at its usual offset. Tx headers are in kernel memory, as
 * user space could change a header in the frame after it was checked. All
 * packets without a checksum or GSO request share one header; the others have a
 * header each.
 *
 * The virtqueues map the buffers, as they do for skbs. For devices that bypass
 * the DMA API, which is the common case, this costs nothing.
 */

static int virtnet_xdp_xmit(struct net_device *dev, int n,
			    struct xdp_frame **frames, u32 flags);
static void virtnet_rx_pause(struct virtnet_info *vi, struct receive_queue *rq);
static void virtnet_rx_resume(struct virtnet_info *vi,
			      struct receive_queue *rq);
static void virtnet_tx_pause(struct virtnet_info *vi, struct send_queue *sq);
static void virtnet_tx_resume(struct virtnet_info *vi, struct send_queue *sq);
static void virtnet_rq_unmap_free_buf(struct virtqueue *vq, void *buf);
static void virtio_skb_set_hash(const struct virtio_net_hdr_v1_hash *hdr_hash,
				struct sk_buff *skb);
static int virtnet_clear_guest_offloads(struct virtnet_info *vi);
static int virtnet_restore_guest_offloads(struct virtnet_info *vi);

#ifdef CONFIG_PACKET_V4
#include <linux/tpacket4.h>

/* Send queue tokens with both flags set are not pointers but handles of
 * packets.
 */
#define VIRTNET_TP4_FLAGS	(VIRTIO_XDP_FLAG | VIRTIO_ORPHAN_FLAG)
#define VIRTNET_TP4_SHIFT	2

/* Number of send queue descriptors that zero-copy packets leave free. The
 * stack's packets then always find room and do not stop the queue.
 */
#define VIRTNET_TP4_TX_ROOM	(2 * (2 + MAX_SKB_FRAGS))

/**
 * struct virtnet_tp4 - a zero-copy queue pair
 * @next:	next entry of the device's list, under RTNL
 * @queue_pair:	its index
 * @rq:		its receive queue
 * @rx:		received packets, or NULL if the socket only sends
 * @buf_len:	number of bytes of a frame that the device may write, including
 *		the header
 * @xdp:	XDP program for packets in @rx
 * @xdp_buff:	context of the XDP program
 * @xdp_hdr:	header of the packet that it runs on, for XDP metadata kfuncs
 * @meta_skb:	an skb without data, for the hash in @xdp_hdr, or NULL if the
 *		device reports none
 * @tx:		packets to send, or NULL if the socket only receives; protected
 *		by the lock of the netdev Tx queue
 * @napi_weight: that of the send queue's NAPI outside of zero-copy mode
 * @hdr:	header of all packets without a checksum or GSO request
 * @hdrs:	headers of the other packets, by handle, or NULL if the Tx ring
 *		has no metadata
 * @areas:	packet buffers that the device may use after the arrays are freed
 *
 * The members for Rx are used by the NAPI of the receive queue.
 */
struct virtnet_tp4 {
	struct virtnet_tp4	*next;
	int			queue_pair;
	struct receive_queue	*rq;
	struct tp4_packet_array	*rx;
	u32			buf_len;
	struct tp4_xdp		xdp;
	struct xdp_buff		xdp_buff;
	struct virtio_net_hdr_v1_hash xdp_hdr;
	struct sk_buff		*meta_skb;

	struct tp4_packet_array	*tx;
	int			napi_weight;
	struct virtio_net_common_hdr hdr;
	struct virtio_net_common_hdr *hdrs;
	void			*areas[2];
};

/* ---- receiving ---- */

static bool virtnet_tp4_has_rx(const struct receive_queue *rq)
{
	return rq->tp4;
}

/* A frame's number, as a pointer that is not NULL */
static void *virtnet_tp4_id_to_ptr(u64 id)
{
	return (void *)(unsigned long)(id + 1);
}

/* Get a frame that the device has returned. */
static bool virtnet_tp4_rx_next(struct virtnet_tp4 *tp4, void *ptr,
				struct tp4_frame_set *p)
{
	return tp4a_next_by_id(tp4->rx, (unsigned long)ptr - 1, p);
}

/* Recycle a frame that the device has returned unused.
 * Return: true if @ptr is a frame.
 */
static bool virtnet_tp4_rx_unused(struct receive_queue *rq, void *ptr)
{
	struct tp4_frame_set p;

	if (!virtnet_tp4_has_rx(rq))
		return false;
	if (virtnet_tp4_rx_next(rq->tp4, ptr, &p))
		tp4a_recycle(rq->tp4->rx);
	return true;
}

/* Hand an empty frame to the device. */
static int virtnet_tp4_add_frame(const struct virtnet_info *vi,
				 struct receive_queue *rq,
				 const struct tp4_frame_set *p)
{
	const void *start = tp4f_get_data(p) - vi->hdr_len;
	struct virtnet_tp4 *tp4 = rq->tp4;

	sg_set_page(rq->sg, tp4a_get_page(tp4->rx, start), tp4->buf_len,
		    offset_in_page(start));
	return virtqueue_add_inbuf(rq->vq, rq->sg, 1,
				   virtnet_tp4_id_to_ptr(tp4f_get_frame_id(p)),
				   GFP_ATOMIC);
}

/* Hand empty frames to the device. */
static void virtnet_tp4_fill(struct virtnet_info *vi, struct receive_queue *rq)
{
	struct virtnet_tp4 *tp4 = rq->tp4;
	struct tp4_frame_set p;
	u32 nr, left;

	nr = tp4a_refill(tp4->rx, tp4a_nr_handed_out(tp4->rx), rq->vq->num_free,
			 &p);
	sg_init_table(rq->sg, 1);
	for (left = nr; left; left--, p.curr++) {
		if (unlikely(virtnet_tp4_add_frame(vi, rq, &p))) {
			tp4a_refill_later(tp4->rx, false);
			break;
		}
	}
	tp4a_handed_out(tp4->rx, nr - left);

	if (left != nr && virtqueue_kick_prepare(rq->vq) &&
	    virtqueue_notify(rq->vq)) {
		u64_stats_update_begin(&rq->stats.syncp);
		u64_stats_inc(&rq->stats.kicks);
		u64_stats_update_end(&rq->stats.syncp);
	}
}

/* Read the header in a packet's first buffer, each field once, as user space
 * can write to it. @nr is set to the packet's number of buffers, @flags to its
 * flags.
 * Return: false if the header is invalid, or asks for offloads that the device
 * was told not to use.
 */
static __always_inline bool
virtnet_tp4_rx_header(const struct virtnet_info *vi,
		      const struct tp4_frame_set *p, u32 len, u32 *nr,
		      u8 *flags)
{
	const struct virtio_net_common_hdr *hdr;

	*nr = 1;
	*flags = 0;
	if (unlikely(len < vi->hdr_len + ETH_HLEN))
		return false;
	hdr = tp4f_get_data(p) - vi->hdr_len;
	if (vi->mergeable_rx_bufs)
		*nr = virtio16_to_cpu(vi->vdev,
				      READ_ONCE(hdr->mrg_hdr.num_buffers));
	*flags = READ_ONCE(hdr->hdr.flags);
	return !(*flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) &&
	       !READ_ONCE(hdr->hdr.gso_type);
}

/* Set the metadata of a packet from its header. */
static void virtnet_tp4_set_meta(const struct virtnet_info *vi,
				 const struct tp4_packet_array *rx,
				 struct tp4_frame_set *p, u8 flags)
{
	const struct virtio_net_hdr_v1_hash *hdr = tp4f_get_data(p) -
						   vi->hdr_len;

	if (flags & VIRTIO_NET_HDR_F_DATA_VALID)
		tp4f_set_csum_valid(p);
	if (tp4a_has_meta(rx) && vi->has_rss_hash_report &&
	    vi->dev->features & NETIF_F_RXHASH && READ_ONCE(hdr->hash_report))
		tp4f_set_hash(p, le32_to_cpu(READ_ONCE(hdr->hash_value)));
}

/* Receive a packet that is invalid or has several frames, starting with @first.
 * @nr and @good are the results of virtnet_tp4_rx_header().
 * Return: its length, or 0 if it was dropped.
 */
static noinline u32 virtnet_tp4_rx_slow(struct virtnet_info *vi,
					struct receive_queue *rq,
					const struct tp4_frame_set *first,
					u32 len, u32 nr, bool good)
{
	u32 i, bytes = 0, hdr_len = vi->hdr_len;
	struct virtnet_tp4 *tp4 = rq->tp4;
	struct tp4_frame_set p = *first;
	void *ptr;

	for (i = 1;; i++) {
		good = good && len <= tp4->buf_len;
		tp4f_set_frame(&p, len - hdr_len,
			       tp4f_get_data_offset(&p) - vi->hdr_len + hdr_len,
			       i >= nr);
		bytes += len - hdr_len;
		if (i >= nr)
			break;

		ptr = virtqueue_get_buf(rq->vq, &len);
		if (unlikely(!ptr)) {
			good = false;
			break;
		}
		/* Only the first one has a header. */
		if (unlikely(!virtnet_tp4_rx_next(tp4, ptr, &p))) {
			good = false;
			break;
		}
		hdr_len = 0;
		good = good && len;
	}
	if (likely(good))
		return bytes;
	DEV_STATS_INC(vi->dev, rx_frame_errors);
	tp4a_reuse(tp4->rx, i);
	return 0;
}

/* Receive a packet whose first buffer is @ptr. @meta says whether its metadata
 * is needed, for the ring or for the stack's copy, and is a constant.
 * Return: its length, or 0 if it was dropped.
 */
static __always_inline u32 virtnet_tp4_rx_packet(struct virtnet_info *vi,
						 struct receive_queue *rq,
						 void *ptr, u32 len, bool meta)
{
	struct virtnet_tp4 *tp4 = rq->tp4;
	struct tp4_frame_set p;
	u32 nr, bytes;
	bool good;
	u8 flags;

	if (unlikely(!virtnet_tp4_rx_next(tp4, ptr, &p)))
		return 0;
	good = virtnet_tp4_rx_header(vi, &p, len, &nr, &flags);
	if (likely(good && nr == 1 && len <= tp4->buf_len)) {
		bytes = len - vi->hdr_len;
		tp4f_set_len(&p, bytes);
	} else {
		bytes = virtnet_tp4_rx_slow(vi, rq, &p, len, nr, good);
	}
	if (meta && bytes)
		virtnet_tp4_set_meta(vi, tp4->rx, &p, flags);
	return bytes;
}

static __always_inline int virtnet_tp4_rx_packets(struct virtnet_info *vi,
						  struct receive_queue *rq,
						  int budget,
						  struct virtnet_rq_stats *stats,
						  bool meta)
{
	u32 bytes, len, all = 0;
	int packets = 0;
	void *ptr;

	while (packets < budget && (ptr = virtqueue_get_buf(rq->vq, &len))) {
		bytes = virtnet_tp4_rx_packet(vi, rq, ptr, len, meta);
		if (unlikely(!bytes))
			u64_stats_inc(&stats->drops);
		all += bytes;
		packets++;
	}
	u64_stats_add(&stats->bytes, all);
	return packets;
}

/* Publish the received packets. */
static void virtnet_tp4_rx_flush(struct virtnet_tp4 *tp4, unsigned int *xdp_xmit,
				 struct virtnet_rq_stats *stats)
{
	const struct tp4_xdp *xdp = &tp4->xdp;

	tp4a_flush(tp4->rx);
	if (!xdp->prog && likely(!xdp->errors))
		return;
	if (xdp->tx)
		*xdp_xmit |= VIRTIO_XDP_TX;
	if (xdp->redirect)
		*xdp_xmit |= VIRTIO_XDP_REDIR;
	u64_stats_add(&stats->drops, xdp->drops + xdp->errors);
	u64_stats_add(&stats->xdp_drops, xdp->drops + xdp->errors);
	u64_stats_add(&stats->xdp_tx, xdp->tx);
	u64_stats_add(&stats->xdp_redirects, xdp->redirect);
}

static int virtnet_tp4_poll_rx(struct virtnet_info *vi,
			       struct receive_queue *rq, int budget,
			       unsigned int *xdp_xmit,
			       struct virtnet_rq_stats *stats)
{
	struct virtnet_tp4 *tp4 = rq->tp4;
	int packets;

	if (unlikely(!budget))
		return 0;
	tp4a_begin_rx(tp4->rx, &rq->napi, rcu_dereference_bh(rq->xdp_prog));
	packets = tp4a_has_meta(tp4->rx) || tp4a_may_copy(tp4->rx) ?
		  virtnet_tp4_rx_packets(vi, rq, budget, stats, true) :
		  virtnet_tp4_rx_packets(vi, rq, budget, stats, false);
	if (tp4->xdp.prog)
		u64_stats_add(&stats->xdp_packets, packets);
	virtnet_tp4_rx_flush(tp4, xdp_xmit, stats);
	virtnet_tp4_fill(vi, rq);
	return packets;
}

/* The XDP program may run on a copy of the packet, without the header. */
static void virtnet_tp4_xdp_prepare(void *arg, const struct tp4_frame_set *p)
{
	struct virtnet_tp4 *tp4 = arg;
	const struct virtnet_info *vi = tp4->rq->vq->vdev->priv;

	memcpy(&tp4->xdp_hdr, tp4f_get_data(p) - vi->hdr_len,
	       sizeof(tp4->xdp_hdr));
}

/* The packet's header has the hash, or the copy of it that was made before the
 * XDP program ran. The array has the checksum state.
 */
static struct sk_buff *virtnet_tp4_get_offloads(void *arg,
						const struct tp4_frame_set *p)
{
	struct virtnet_tp4 *tp4 = arg;
	const struct virtnet_info *vi = tp4->rq->vq->vdev->priv;

	if (!tp4->xdp.prog)
		virtnet_tp4_xdp_prepare(arg, p);
	skb_clear_hash(tp4->meta_skb);
	if (vi->dev->features & NETIF_F_RXHASH)
		virtio_skb_set_hash(&tp4->xdp_hdr, tp4->meta_skb);
	return tp4->meta_skb;
}

static struct virtio_net_hdr_v1_hash *
virtnet_tp4_xdp_hdr(const struct virtnet_info *vi, const struct xdp_buff *xdp)
{
	struct virtnet_tp4 *tp4 = vi->rq[xdp->rxq->queue_index].tp4;

	return tp4 ? &tp4->xdp_hdr : NULL;
}

static int virtnet_tp4_xdp_tx(void *arg, struct xdp_frame *frame)
{
	const struct virtnet_tp4 *tp4 = arg;
	int ret;

	ret = virtnet_xdp_xmit(tp4->xdp.rxq->dev, 1, &frame, 0);
	if (ret < 0)
		return ret;
	return ret ? 0 : -ENOSPC;
}

/* ---- sending, under the lock of the netdev's Tx queue ---- */

static bool virtnet_tp4_is_packet(const void *ptr)
{
	return ((unsigned long)ptr & VIRTNET_TP4_FLAGS) == VIRTNET_TP4_FLAGS;
}

static void *virtnet_tp4_handle_to_ptr(unsigned long handle)
{
	return (void *)(handle << VIRTNET_TP4_SHIFT | VIRTNET_TP4_FLAGS);
}

/* The device has completed a Tx buffer. Return: true if it is a zero-copy
 * packet.
 */
static bool virtnet_tp4_packet_sent(struct send_queue *sq, void *ptr)
{
	if (!virtnet_tp4_is_packet(ptr))
		return false;
	tp4a_packet_completed(sq->tp4->tx,
			      (unsigned long)ptr >> VIRTNET_TP4_SHIFT);
	return true;
}

/* Return the packets that the device has sent. NAPI may be waiting for room in
 * the queue, and another context may have made room by freeing zero-copy
 * packets or, with @freed_others, packets of the stack or XDP.
 */
static void virtnet_tp4_flush_sent(struct send_queue *sq, bool freed_others)
{
	struct virtnet_tp4 *tp4 = sq->tp4;

	if (!tp4)
		return;
	/* netpoll may send in a hard interrupt. */
	if (unlikely(irqs_disabled())) {
		napi_schedule(&sq->napi);
		return;
	}
	if (!tp4a_flush_completed(tp4->tx) && !freed_others)
		return;
	if (!napi_is_scheduled(&sq->napi) && tp4a_has_work(tp4->tx))
		napi_schedule(&sq->napi);
}

/* Check whether the device supports this type of GSO. */
static bool virtnet_tp4_can_gso(const struct virtnet_info *vi, u8 gso_type)
{
	if (gso_type & VIRTIO_NET_HDR_GSO_ECN &&
	    !virtio_has_feature(vi->vdev, VIRTIO_NET_F_HOST_ECN))
		return false;
	switch (gso_type & ~VIRTIO_NET_HDR_GSO_ECN) {
	case VIRTIO_NET_HDR_GSO_TCPV4:
		return virtio_has_feature(vi->vdev, VIRTIO_NET_F_HOST_TSO4);
	case VIRTIO_NET_HDR_GSO_TCPV6:
		return virtio_has_feature(vi->vdev, VIRTIO_NET_F_HOST_TSO6);
	case VIRTIO_NET_HDR_GSO_UDP_L4:
		return virtio_has_feature(vi->vdev, VIRTIO_NET_F_HOST_USO);
	default:
		return false;
	}
}

/* Write the checksum or GSO request of a packet to its virtio header. @hdr is
 * set to that header, or left unchanged if there is no request.
 * Return: 0, or an error, for example if the device does not support it.
 */
static int virtnet_tp4_do_meta(const struct virtnet_info *vi,
			       const struct virtnet_tp4 *tp4,
			       const struct tp4_frame_set *p, u32 len,
			       const struct virtio_net_common_hdr **hdr)
{
	struct virtio_net_common_hdr *to = &tp4->hdrs[tp4f_get_handle(p)];
	struct tp4_offload o;
	int err;

	err = tp4f_get_offload(p, vi->dev, &o);
	if (err || !o.start)
		return err;
	if (!virtio_has_feature(vi->vdev, VIRTIO_NET_F_CSUM) ||
	    (o.gso_type && !virtnet_tp4_can_gso(vi, o.gso_type)))
		return -EOPNOTSUPP;
	if (o.gso_type && len > READ_ONCE(vi->dev->gso_max_size))
		return -EMSGSIZE;
	*to = (struct virtio_net_common_hdr) {
		.hdr.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.hdr.csum_start = cpu_to_virtio16(vi->vdev, o.start),
		.hdr.csum_offset = cpu_to_virtio16(vi->vdev, o.csum_offset),
		.hdr.gso_type = o.gso_type,
		.hdr.gso_size = cpu_to_virtio16(vi->vdev, o.mss),
		.hdr.hdr_len = cpu_to_virtio16(vi->vdev, o.hdr_len),
	};
	*hdr = to;
	return 0;
}

/* Do what a packet wants besides being sent. @hdr is as in virtnet_tp4_do_meta().
 * Return: 0, or the error to return the packet with.
 */
static noinline int virtnet_tp4_do_more(const struct virtnet_info *vi,
					const struct virtnet_tp4 *tp4,
					struct tp4_frame_set *p, u32 len,
					const struct virtio_net_common_hdr **hdr)
{
	int err;

	if (tp4f_has_meta(p))
		err = virtnet_tp4_do_meta(vi, tp4, p, len, hdr);
	else
		err = tp4f_check_len(p, vi->dev, len);
	if (!err && tp4f_wants_stamp(p))
		tp4f_stamp(p);
	return err;
}

/* Hand a packet to the device. */
static int virtnet_tp4_add_packet(const struct virtnet_info *vi,
				  struct send_queue *sq,
				  struct tp4_frame_set *p,
				  const struct virtio_net_common_hdr *hdr)
{
	int nr = 1 + tp4f_num_frames(p);
	struct scatterlist *sg = sq->sg;

	sg_init_table(sg, nr);
	sg_set_buf(sg, hdr, vi->hdr_len);
	do {
		sg_set_page(++sg, tp4f_get_page(p), tp4f_get_frame_len(p),
			    offset_in_page(tp4f_get_data(p)));
	} while (tp4f_next_frame(p));
	return virtqueue_add_outbuf(sq->vq, sq->sg, nr,
				    virtnet_tp4_handle_to_ptr(tp4f_get_handle(p)),
				    GFP_ATOMIC);
}

/* Return: 0, or the error to return the packet with. */
static int virtnet_tp4_xmit_packet(struct virtnet_info *vi,
				   struct send_queue *sq,
				   struct tp4_frame_set *p, u32 len)
{
	const struct virtio_net_common_hdr *hdr = &sq->tp4->hdr;
	int err;

	if (unlikely(tp4f_wants_more(p)))
		err = virtnet_tp4_do_more(vi, sq->tp4, p, len, &hdr);
	else
		err = tp4f_check_len(p, vi->dev, len);
	if (unlikely(err))
		return err;
	return virtnet_tp4_add_packet(vi, sq, p, hdr);
}

/* Send posted packets.
 * Return: false if NAPI must be scheduled again, as there are more packets and
 * no interrupt is going to do so.
 */
static bool virtnet_tp4_xmit(struct virtnet_info *vi, struct send_queue *sq,
			     int budget)
{
	u32 packets = 0, bytes = 0, kicks = 0;
	struct virtnet_tp4 *tp4 = sq->tp4;
	bool room = true, refused = false;
	struct tp4_frame_set p;

	if (!tp4 || !budget)
		return true;

	tp4a_need_wakeup(tp4->tx, false);
	tp4a_populate(tp4->tx);
	while (budget-- && tp4a_nr_unprocessed(tp4->tx)) {
		int err;
		u32 len;

		room = sq->vq->num_free >= VIRTNET_TP4_TX_ROOM;
		if (!room)
			break;
		tp4a_next_packet(tp4->tx, &p);
		len = tp4f_packet_len(&p);
		err = virtnet_tp4_xmit_packet(vi, sq, &p, len);
		if (unlikely(err)) {
			tp4f_set_error(&p, -err);
			tp4f_packet_completed(&p);
			refused = true;
			continue;
		}
		packets++;
		bytes += len;
	}
	if (unlikely(refused))
		tp4a_flush_completed(tp4->tx);
	if (packets && virtqueue_kick_prepare(sq->vq) &&
	    virtqueue_notify(sq->vq))
		kicks = 1;

	u64_stats_update_begin(&sq->stats.syncp);
	u64_stats_add(&sq->stats.packets, packets);
	u64_stats_add(&sq->stats.bytes, bytes);
	u64_stats_add(&sq->stats.kicks, kicks);
	u64_stats_update_end(&sq->stats.syncp);

	/* If the queue is full, an interrupt schedules NAPI. */
	if (!room)
		return true;
	if (tp4a_nr_unprocessed(tp4->tx))
		return false;
	tp4a_need_wakeup(tp4->tx, true);
	return !tp4a_has_work(tp4->tx);
}

/* Check whether the send queue needs NAPI for zero-copy packets. */
static bool virtnet_tp4_has_tx(const struct virtnet_info *vi, int queue)
{
	return vi->sq[queue].tp4;
}

/* ---- setup and teardown ---- */

/* Check for a zero-copy Rx ring. It gets packets as they were on the wire, so
 * guest offloads are disabled for the whole device.
 */
static bool virtnet_tp4_any_rx(const struct virtnet_info *vi)
{
	const struct virtnet_tp4 *tp4;

	for (tp4 = vi->tp4; tp4; tp4 = tp4->next) {
		if (tp4->rx)
			return true;
	}
	return false;
}

static void virtnet_tp4_free_arrays(struct virtnet_tp4 *tp4)
{
	tp4a_free(tp4->rx);
	tp4a_free(tp4->tx);
	kfree_skb(tp4->meta_skb);
}

/* Free what the device may use, too. */
static void virtnet_tp4_free_rest(struct virtnet_tp4 *tp4)
{
	tp4_release_area(tp4->areas[0]);
	tp4_release_area(tp4->areas[1]);
	kfree(tp4->hdrs);
	kfree(tp4);
}

static void virtnet_tp4_free(struct virtnet_tp4 *tp4)
{
	virtnet_tp4_free_arrays(tp4);
	virtnet_tp4_free_rest(tp4);
}

static struct virtnet_tp4 *virtnet_tp4_alloc(struct virtnet_info *vi,
					     const struct tp4_netdev_parms *parms)
{
	int queue = parms->queue_pair;
	u32 nr = vi->sq[queue].vq->num_max;
	struct virtnet_tp4 *tp4;

	tp4 = kzalloc_obj(*tp4, GFP_KERNEL_ACCOUNT);
	if (!tp4)
		return NULL;

	tp4->queue_pair = queue;
	/* Rings may be resized up to num_max. */
	if (parms->tx_opaque) {
		tp4->tx = tp4a_tx_new(parms->tx_opaque, nr, NULL);
		if (!tp4->tx)
			goto free;
		nr = roundup_pow_of_two(max_t(u32, nr, TP4_MAX_FRAMES));
		if (tp4a_has_meta(tp4->tx)) {
			tp4->hdrs = kcalloc(nr, sizeof(*tp4->hdrs),
					    GFP_KERNEL_ACCOUNT);
			if (!tp4->hdrs)
				goto free;
		}
	}
	if (parms->rx_opaque) {
		tp4->rx = tp4a_rx_new(parms->rx_opaque,
				      vi->rq[queue].vq->num_max, NULL);
		if (!tp4->rx)
			goto free;
		tp4->buf_len = tp4_frame_room(parms->rx_opaque) + vi->hdr_len;
		tp4->xdp.buff = &tp4->xdp_buff;
		if (vi->has_rss_hash_report) {
			tp4->meta_skb = alloc_skb(0, GFP_KERNEL);
			if (!tp4->meta_skb)
				goto free;
			tp4->xdp.prepare = virtnet_tp4_xdp_prepare;
			tp4->xdp.get_offloads = virtnet_tp4_get_offloads;
		}
		tp4->xdp.xmit = virtnet_tp4_xdp_tx;
		tp4->xdp.arg = tp4;
		tp4a_set_xdp(tp4->rx, &tp4->xdp);
	}
	return tp4;

free:
	virtnet_tp4_free(tp4);
	return NULL;
}

/* Bind the queues, which are not in use, to the queue pair. */
static void virtnet_tp4_attach_rx(struct virtnet_info *vi,
				  struct virtnet_tp4 *tp4)
{
	struct receive_queue *rq = &vi->rq[tp4->queue_pair];

	tp4->rq = rq;
	tp4->xdp.rxq = &rq->xdp_rxq;
	if (tp4->rx)
		rq->tp4 = tp4;
}

static void virtnet_tp4_attach_tx(struct virtnet_info *vi,
				  struct virtnet_tp4 *tp4)
{
	struct send_queue *sq = &vi->sq[tp4->queue_pair];

	if (!tp4->tx)
		return;
	tp4->napi_weight = sq->napi.weight;
	sq->tp4 = tp4;
}

/* Reset a virtqueue, which gives all buffers to @recycle. The device of a broken
 * one may be gone, and would not answer.
 */
static int virtnet_tp4_reset(struct virtnet_info *vi, struct virtqueue *vq,
			     void (*recycle)(struct virtqueue *vq, void *buf),
			     void (*recycle_done)(struct virtqueue *vq))
{
	int err = -EIO;

	if (!virtqueue_is_broken(vq))
		err = virtqueue_reset(vq, recycle, recycle_done);
	if (err)
		netdev_err(vi->dev, "reset of %s failed: %d\n", vq->name, err);
	return err;
}

/* Take the buffers back from a virtqueue that was not reset.
 * Return: true if there were any, which the device may still use.
 */
static bool virtnet_tp4_detach(struct virtqueue *vq,
			       void (*recycle)(struct virtqueue *vq, void *buf))
{
	bool used = false;
	void *buf;

	__virtqueue_break(vq);
	while ((buf = virtqueue_detach_unused_buf(vq))) {
		recycle(vq, buf);
		used = true;
	}
	return used;
}

static int virtnet_tp4_enable_rx(struct virtnet_info *vi,
				 struct virtnet_tp4 *tp4)
{
	struct receive_queue *rq = &vi->rq[tp4->queue_pair];
	int err;

	virtnet_rx_pause(vi, rq);
	err = virtnet_tp4_reset(vi, rq->vq, virtnet_rq_unmap_free_buf, NULL);
	if (!err)
		virtnet_tp4_attach_rx(vi, tp4);
	virtnet_rx_resume(vi, rq);
	return err;
}

static void virtnet_tp4_disable_rx(struct virtnet_info *vi,
				   struct virtnet_tp4 *tp4)
{
	struct receive_queue *rq = &vi->rq[tp4->queue_pair];

	virtnet_rx_pause(vi, rq);
	if (virtnet_tp4_reset(vi, rq->vq, virtnet_rq_unmap_free_buf, NULL) &&
	    virtnet_tp4_detach(rq->vq, virtnet_rq_unmap_free_buf))
		tp4->areas[0] = tp4a_hold_area(tp4->rx);
	rq->tp4 = NULL;
	virtnet_rx_resume(vi, rq);
}

static void virtnet_tp4_enable_tx(struct virtnet_info *vi,
				  struct virtnet_tp4 *tp4)
{
	struct send_queue *sq = &vi->sq[tp4->queue_pair];

	virtnet_tx_pause(vi, sq);
	virtnet_tp4_attach_tx(vi, tp4);
	virtnet_tx_resume(vi, sq);
}

static void virtnet_tp4_disable_tx(struct virtnet_info *vi,
				   struct virtnet_tp4 *tp4)
{
	struct send_queue *sq = &vi->sq[tp4->queue_pair];

	virtnet_tx_pause(vi, sq);
	if (virtnet_tp4_reset(vi, sq->vq, virtnet_sq_free_unused_buf,
			      virtnet_sq_free_unused_buf_done) &&
	    virtnet_tp4_detach(sq->vq, virtnet_sq_free_unused_buf))
		tp4->areas[1] = tp4a_hold_area(tp4->tx);
	sq->tp4 = NULL;
	sq->napi.weight = tp4->napi_weight;
	virtnet_tx_resume(vi, sq);
}

/* Check whether the device supports zero-copy mode.
 * Return: 0, or the error to refuse the socket with.
 */
static int virtnet_tp4_check(const struct virtnet_info *vi,
			     const struct tp4_netdev_parms *parms)
{
	const struct virtqueue *sq = vi->sq[parms->queue_pair].vq;
	u32 max = vi->dev->mtu + ETH_HLEN + VLAN_HLEN;

	/* Without RING_RESET, the device does not return its buffers. */
	if (!virtio_has_feature(vi->vdev, VIRTIO_F_RING_RESET) ||
	    !vi->any_header_sg)
		return -EOPNOTSUPP;
	if (parms->tx_opaque &&
	    virtqueue_get_vring_size(sq) <= VIRTNET_TP4_TX_ROOM)
		return -EOPNOTSUPP;
	if (tp4_set_stamps(parms->tx_opaque, TP4_SW_STAMPS))
		return -EOPNOTSUPP;
	if (!parms->rx_opaque)
		return 0;
	if (vi->guest_offloads_capable &&
	    !virtio_has_feature(vi->vdev, VIRTIO_NET_F_CTRL_GUEST_OFFLOADS))
		return -EOPNOTSUPP;
	if (!vi->mergeable_rx_bufs && tp4_frame_room(parms->rx_opaque) < max)
		return -EMSGSIZE;
	return 0;
}

static int virtnet_tp4_enable(struct virtnet_info *vi,
			      const struct tp4_netdev_parms *parms)
{
	struct virtnet_tp4 *tp4;
	int err;

	err = virtnet_tp4_check(vi, parms);
	if (err)
		return err;
	tp4 = virtnet_tp4_alloc(vi, parms);
	if (!tp4)
		return -ENOMEM;

	if (tp4->rx) {
		if (!virtnet_tp4_any_rx(vi) && !vi->xdp_enabled) {
			err = virtnet_clear_guest_offloads(vi);
			if (err)
				goto free;
		}
		err = virtnet_tp4_enable_rx(vi, tp4);
		if (err)
			goto restore;
	}
	if (tp4->tx)
		virtnet_tp4_enable_tx(vi, tp4);
	tp4->next = vi->tp4;
	vi->tp4 = tp4;
	return 0;

restore:
	if (!vi->xdp_enabled)
		virtnet_restore_guest_offloads(vi);
free:
	virtnet_tp4_free(tp4);
	return err;
}

static int virtnet_tp4_disable(struct virtnet_info *vi, int queue)
{
	struct virtnet_tp4 *tp4, **link = &vi->tp4;

	while ((*link)->queue_pair != queue)
		link = &(*link)->next;
	tp4 = *link;
	*link = tp4->next;

	if (tp4->rx) {
		virtnet_tp4_disable_rx(vi, tp4);
		if (!vi->xdp_enabled)
			virtnet_restore_guest_offloads(vi);
	}
	if (tp4->tx)
		virtnet_tp4_disable_tx(vi, tp4);
	virtnet_tp4_free_arrays(tp4);
	if (unlikely(tp4->areas[0] || tp4->areas[1])) {
		tp4->next = vi->tp4_not_reset;
		vi->tp4_not_reset = tp4;
	} else {
		virtnet_tp4_free_rest(tp4);
	}
	return 0;
}

/* The device has been reset, and uses no memory. */
static void virtnet_tp4_reset_done(struct virtnet_info *vi)
{
	struct virtnet_tp4 *tp4;

	while ((tp4 = vi->tp4_not_reset)) {
		vi->tp4_not_reset = tp4->next;
		virtnet_tp4_free_rest(tp4);
	}
}

static int virtnet_tp4_zerocopy(struct net_device *dev,
				struct tp4_netdev_parms *parms)
{
	struct virtnet_info *vi = netdev_priv(dev);

	switch (parms->command) {
	case TP4_ENABLE:
		return virtnet_tp4_enable(vi, parms);
	case TP4_DISABLE:
		return virtnet_tp4_disable(vi, parms->queue_pair);
	}
	return -EINVAL;
}

static int virtnet_tp4_wakeup(struct net_device *dev, int queue_pair, u32 flags)
{
	struct virtnet_info *vi = netdev_priv(dev);

	/* A suspended device has no queues; they are freed after a grace
	 * period.
	 */
	if (!netif_running(dev) || !netif_device_present(dev))
		return -ENETDOWN;

	/* local_bh_enable() runs the NAPI scheduled here. */
	local_bh_disable();
	if (flags & TP4_WAKEUP_RX)
		napi_schedule(&vi->rq[queue_pair].napi);
	if (flags & TP4_WAKEUP_TX)
		napi_schedule(&vi->sq[queue_pair].napi);
	local_bh_enable();
	return 0;
}

/* The queues are new, and the device has its initial offloads. */
static void virtnet_tp4_restore(struct virtnet_info *vi)
{
	struct virtnet_tp4 *tp4;

	for (tp4 = vi->tp4; tp4; tp4 = tp4->next) {
		virtnet_tp4_attach_rx(vi, tp4);
		virtnet_tp4_attach_tx(vi, tp4);
	}
	if (virtnet_tp4_any_rx(vi))
		virtnet_clear_guest_offloads(vi);
}

static bool virtnet_tp4_can_resize_tx(const struct send_queue *sq, u32 ring_num)
{
	return !sq->tp4 || ring_num > VIRTNET_TP4_TX_ROOM;
}
#else
static bool virtnet_tp4_has_rx(const struct receive_queue *rq) { return false; }

static bool virtnet_tp4_rx_unused(struct receive_queue *rq, void *ptr)
{
	return false;
}

static int virtnet_tp4_poll_rx(struct virtnet_info *vi,
			       struct receive_queue *rq, int budget,
			       unsigned int *xdp_xmit,
			       struct virtnet_rq_stats *stats)
{
	return 0;
}

static struct virtio_net_hdr_v1_hash *
virtnet_tp4_xdp_hdr(const struct virtnet_info *vi, const struct xdp_buff *xdp)
{
	return NULL;
}

static bool virtnet_tp4_packet_sent(struct send_queue *sq, void *ptr)
{
	return false;
}

static void virtnet_tp4_flush_sent(struct send_queue *sq, bool freed_others) { }

static bool virtnet_tp4_xmit(struct virtnet_info *vi, struct send_queue *sq,
			     int budget)
{
	return true;
}

static bool virtnet_tp4_has_tx(const struct virtnet_info *vi, int queue)
{
	return false;
}

static bool virtnet_tp4_any_rx(const struct virtnet_info *vi) { return false; }
static void virtnet_tp4_restore(struct virtnet_info *vi) { }
static void virtnet_tp4_reset_done(struct virtnet_info *vi) { }

static bool virtnet_tp4_can_resize_tx(const struct send_queue *sq, u32 ring_num)
{
	return true;
}
#endif
