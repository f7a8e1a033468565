// SPDX-License-Identifier: GPL-2.0
/* veth: TPACKET_V4 zero-copy mode, included by veth.c
 *
 * The NAPI of an Rx queue takes the packets that the peer has posted on its Tx
 * ring, and passes them to the Rx ring or to the stack. It also receives
 * packets of the peer's stack, and of XDP, for a zero-copy queue. They use the
 * same ptr_ring as XDP does without V4.
 */

#include <linux/tpacket4_queue.h>

static struct sk_buff *veth_xdp_rcv_skb(struct veth_rq *rq,
					struct sk_buff *skb,
					struct veth_xdp_tx_bq *bq,
					struct veth_stats *stats);
static int veth_xdp_rcv(struct veth_rq *rq, int budget,
			struct veth_xdp_tx_bq *bq,
			struct veth_stats *stats);
static void veth_xdp_flush_bq(struct veth_rq *rq, struct veth_xdp_tx_bq *bq);
static int veth_napi_enable_range(struct net_device *dev, int start, int end);
static void veth_napi_del_range(struct net_device *dev, int start, int end);
static int veth_select_rxq(struct net_device *dev);
static bool veth_gro_requested(const struct net_device *dev);
static void veth_set_xdp_features(struct net_device *dev);

#ifdef CONFIG_PACKET_V4
#include <linux/tpacket4.h>
#include <net/gso.h>

/* Number of frames in a packet array */
#define VETH_TP4_FRAMES		128

/* Number of packets published at a time */
#define VETH_TP4_BATCH		32

/* Context of one veth_poll() */
struct veth_tp4_poll {
	struct veth_rq		*rq;
	struct veth_xdp_tx_bq	*bq;
	struct veth_stats	*stats;
	struct net_device	*peer_dev;
	struct veth_tp4		*local;	/* of the receiving queue, or NULL */
	struct veth_tp4		*peer;	/* of the sending queue, or NULL */
	struct tp4_packet_array	*to;	/* for packets of the peer */
	int			packets;	/* received, for statistics */
	int			work;	/* same with segments, for the budget */
};

/**
 * struct veth_tp4 - a zero-copy queue pair
 * @rx:		received packets, or NULL if the socket only sends
 * @xdp:	XDP program for packets in @rx
 * @xdp_buff:	context of the XDP program
 * @skbs:	skbs of the packets in @rx, by handle, for XDP metadata kfuncs
 *		and for the stack's copies
 * @from_stack:	skbs from the peer, to be copied to @rx
 * @rx_poll:	current poll of the Rx queue
 * @tx:		packets to send, or NULL if the socket only receives
 * @to_stack:	packets from @tx for a peer without a zero-copy socket
 * @tx_poll:	current poll of the peer's Rx queue
 *
 * The members up to @rx_poll are used by the NAPI of the Rx queue, those from
 * @tx on by the NAPI of the peer's Rx queue. No array is used by two contexts,
 * so there is no lock.
 */
struct veth_tp4 {
	struct tp4_packet_array	*rx;
	struct tp4_xdp		xdp;
	struct veth_xdp_buff	xdp_buff;
	struct sk_buff		*skbs[VETH_TP4_FRAMES];
	struct tp4_packet_array	*from_stack;
	struct veth_tp4_poll	*rx_poll;

	struct tp4_packet_array	*tx ____cacheline_aligned_in_smp;
	struct tp4_packet_array	*to_stack;
	struct veth_tp4_poll	*tx_poll;
};

static bool veth_tp4_is_bound(const struct veth_rq *rq)
{
	return rcu_access_pointer(rq->tp4);
}

/* With V4, NAPI may read the ptr_ring without an XDP program. */
static bool veth_tp4_ring_is_read(const struct veth_rq *rq)
{
	return rcu_access_pointer(rq->napi);
}

/* Check for a zero-copy queue pair at this end or the peer. */
static bool veth_tp4_users(const struct net_device *dev)
{
	const struct veth_priv *priv = netdev_priv(dev);
	unsigned int i;

	for (i = 0; i < dev->real_num_rx_queues; i++) {
		if (priv->rq[i].tp4_users)
			return true;
	}
	return false;
}

/* Check whether NAPI is enabled because of a zero-copy queue pair. */
static bool veth_tp4_has_napi(const struct veth_rq *rq)
{
	return rq->tp4_users && rcu_access_pointer(rq->napi);
}

static void veth_tp4_deliver_stack(void *opaque, struct sk_buff *skb)
{
	struct veth_tp4 *tp4 = opaque;
	struct veth_tp4_poll *poll = tp4->tx_poll;

	if (unlikely(!skb)) {
		poll->stats->rx_drops++;
		return;
	}
	skb->protocol = eth_type_trans(skb, poll->rq->dev);
	skb = veth_xdp_rcv_skb(poll->rq, skb, poll->bq, poll->stats);
	if (skb)
		napi_gro_receive(&poll->rq->xdp_napi, skb);
}

/* The XDP metadata kfuncs need the skb of a packet from the peer's stack. */
static void veth_tp4_xdp_prepare(void *arg, const struct tp4_frame_set *p)
{
	u32 handle = tp4f_get_handle(p);
	struct veth_tp4 *tp4 = arg;

	tp4->xdp_buff.skb = tp4->skbs[handle];
	tp4->skbs[handle] = NULL;
}

/* The stack's copy of a packet from the peer's stack is like the original. */
static struct sk_buff *veth_tp4_get_offloads(void *arg,
					     const struct tp4_frame_set *p)
{
	u32 handle = tp4f_get_handle(p);
	struct veth_tp4 *tp4 = arg;
	struct sk_buff *skb;

	if (tp4->xdp.prog)
		return tp4->xdp_buff.skb;
	skb = tp4->skbs[handle];
	tp4->skbs[handle] = NULL;
	return skb;
}

static int veth_tp4_xdp_tx(void *arg, struct xdp_frame *frame)
{
	const struct veth_tp4 *tp4 = arg;
	struct veth_tp4_poll *poll = tp4->rx_poll;

	if (unlikely(poll->bq->count == VETH_XDP_TX_BULK_SIZE))
		veth_xdp_flush_bq(poll->rq, poll->bq);
	poll->bq->q[poll->bq->count++] = frame;
	return 0;
}

/* Publish the packets to the receiver, and return the frames to the sender. */
static void veth_tp4_flush_peer(struct veth_tp4_poll *poll)
{
	tp4a_flush(poll->to);
	tp4a_flush(poll->peer->tx);
}

struct veth_tp4_cb {
	bool	is_frame;	/* the skb was built from an xdp_frame */
};

static struct veth_tp4_cb *veth_tp4_cb(struct sk_buff *skb)
{
	return (struct veth_tp4_cb *)skb->cb;
}

/* Copy skbs for a zero-copy socket to its ring. */
static void veth_tp4_copy_skbs(struct veth_tp4_poll *poll)
{
	struct tp4_packet_array *from = poll->local->from_stack;
	struct tp4_frame_set p;

	for (;;) {
		tp4a_populate(from);
		if (!tp4a_next_packet(from, &p))
			break;
		do {
			if (!tp4a_copy_packet(poll->local->rx, &p))
				poll->stats->rx_drops++;
		} while (tp4a_next_packet(from, &p));
		tp4a_flush(from);
	}
}

/* Same for rings with metadata, or if there may be copies for the stack. The
 * skbs are kept until an XDP program has run and the copies have been made.
 */
static void veth_tp4_copy_skbs_meta(struct veth_tp4_poll *poll)
{
	struct veth_tp4 *tp4 = poll->local;
	bool meta = tp4a_has_meta(tp4->rx);
	bool keep = tp4a_may_copy(tp4->rx);
	struct tp4_frame_set p, to;
	struct sk_buff *skb;

	for (;;) {
		tp4a_populate(tp4->from_stack);
		skb = tp4a_next_skb(tp4->from_stack, &p);
		if (!skb)
			break;
		do {
			u32 handle = tp4a_next_handle(tp4->rx);

			if (!tp4a_copy_packet(tp4->rx, &p)) {
				poll->stats->rx_drops++;
			} else {
				if (meta) {
					tp4a_get_packet(tp4->rx, handle, &to);
					tp4f_set_from_skb(&to, skb);
				}
				if (keep && !veth_tp4_cb(skb)->is_frame)
					tp4->skbs[handle] = skb;
			}
			skb = tp4a_next_skb(tp4->from_stack, &p);
		} while (skb);
		tp4a_flush(tp4->rx);
		tp4a_flush(tp4->from_stack);
	}
}

/* Copy the skbs in from_stack to the ring. */
static void veth_tp4_take_skbs(struct veth_tp4_poll *poll)
{
	const struct tp4_packet_array *rx = poll->local->rx;

	if (tp4a_may_copy(rx) || tp4a_has_meta(rx))
		veth_tp4_copy_skbs_meta(poll);
	else
		veth_tp4_copy_skbs(poll);
}

/* Number of packets that an skb is segmented into; an estimate, as its sender
 * need not say how many.
 */
static int veth_tp4_num_segs(const struct sk_buff *skb)
{
	const struct skb_shared_info *shinfo = skb_shinfo(skb);

	if (likely(!skb_is_gso(skb)))
		return 1;
	if (unlikely(shinfo->gso_size == GSO_BY_FRAGS))
		return max_t(int, shinfo->gso_segs, 2);
	return 1 + skb->len / shinfo->gso_size;
}

/* Deliver an skb to the stack of a peer without a zero-copy socket. As from
 * this end's stack, GSO packets are segmented before an XDP program.
 */
static void veth_tp4_rcv_skb(struct veth_tp4_poll *poll, struct sk_buff *skb)
{
	struct sk_buff *segs, *next;

	if (!skb_is_gso(skb) || !rcu_access_pointer(poll->rq->xdp_prog)) {
		veth_tp4_deliver_stack(poll->peer, skb);
		return;
	}
	poll->work += veth_tp4_num_segs(skb) - 1;
	segs = skb_gso_segment(skb, NETIF_F_SG);
	if (IS_ERR(segs)) {
		kfree_skb(skb);
		poll->stats->rx_drops++;
		return;
	}
	if (segs) {
		consume_skb(skb);
		skb = segs;
	}
	skb_list_walk_safe(skb, segs, next) {
		skb_mark_not_on_list(segs);
		veth_tp4_deliver_stack(poll->peer, segs);
	}
}

/* Receive a packet with a checksum or GSO request. It is copied to an skb; the
 * packets before it are flushed first, to keep the order.
 * Return: 0, or an error if it cannot be sent.
 */
static int veth_tp4_rcv_offload(struct veth_tp4_poll *poll,
				struct tp4_frame_set *p, u32 len,
				const struct tpacket4_meta *m)
{
	u32 max = READ_ONCE(poll->peer_dev->mtu) + ETH_HLEN + VLAN_HLEN;
	struct sk_buff *skb;

	skb = tp4f_build_skb(p, poll->peer_dev, m);
	if (IS_ERR(skb))
		return PTR_ERR(skb);
	/* A packet that is shorter than a segment is not GSO. */
	if (skb_is_gso(skb) ? !skb_gso_validate_mac_len(skb, max) : len > max) {
		kfree_skb(skb);
		return -EMSGSIZE;
	}

	if (tp4f_wants_stamp(p))
		tp4f_stamp(p);
	poll->stats->xdp_bytes += len;
	tp4a_flush(poll->to);
	if (poll->local) {
		veth_tp4_cb(skb)->is_frame = false;
		poll->work += veth_tp4_num_segs(skb) - 1;
		poll->stats->rx_drops +=
			tp4a_add_skb(poll->local->from_stack, skb);
		veth_tp4_take_skbs(poll);
	} else {
		veth_tp4_rcv_skb(poll, skb);
	}
	return 0;
}

/* Check the length of a packet that is not segmented.
 * Return: 0, 1 if it was dropped since the receiver's MTU is less, or an error if
 * it cannot be sent.
 */
static int veth_tp4_check_len(struct veth_tp4_poll *poll,
			      const struct tp4_frame_set *p, u32 len)
{
	u32 max = READ_ONCE(poll->rq->dev->mtu) + ETH_HLEN + VLAN_HLEN;
	int error = tp4f_check_len(p, poll->peer_dev, len);

	if (unlikely(error))
		return error;
	if (likely(len <= max))
		return 0;
	poll->stats->xdp_bytes += len;
	poll->stats->rx_drops++;
	return 1;
}

/* Do what a packet wants besides being sent.
 * Return: 0 if the caller shall receive it, 1 if it was received or dropped, or an
 * error if it cannot be sent.
 */
static int veth_tp4_rcv_more(struct veth_tp4_poll *poll,
			     struct tp4_frame_set *p, u32 len)
{
	struct tpacket4_meta m = {};
	int ret = 0;

	if (tp4f_has_meta(p))
		ret = tp4f_get_meta(p, &m);
	/* A GSO packet may have any length. */
	if (!ret && (!(m.flags & TP4_META_GSO) || len < ETH_HLEN))
		ret = veth_tp4_check_len(poll, p, len);
	if (unlikely(ret < 0))
		return ret;
	if (!ret && m.flags)
		return veth_tp4_rcv_offload(poll, p, len, &m) ? : 1;
	if (tp4f_wants_stamp(p))
		tp4f_stamp(p);
	return ret;
}

/* Receive a packet that tp4a_add_packets() has stopped at. */
static noinline void veth_tp4_rcv_packet(struct veth_tp4_poll *poll,
					 struct tp4_frame_set *p)
{
	u32 len = tp4f_packet_len(p);
	int ret;

	if (tp4f_wants_more(p))
		ret = veth_tp4_rcv_more(poll, p, len);
	else
		ret = veth_tp4_check_len(poll, p, len);
	if (unlikely(ret < 0)) {
		/* It counts for the budget, but was not sent. */
		poll->packets--;
		tp4f_set_error(p, -ret);
	}
	if (ret)
		return;

	poll->stats->xdp_bytes += len;
	if (unlikely(!tp4a_add_packet(poll->to, p)))
		poll->stats->rx_drops++;
}

/* Receive the packets that the peer has posted. */
static void veth_tp4_rcv_peer(struct veth_tp4_poll *poll, int budget)
{
	struct tp4_packet_array *tx = poll->peer->tx;
	struct tp4_frame_set p;
	u32 max_len;
	int done = 0;

	poll->to = poll->local ? poll->local->rx : poll->peer->to_stack;
	max_len = min(READ_ONCE(poll->rq->dev->mtu),
		      READ_ONCE(poll->peer_dev->mtu)) + ETH_HLEN;
	tp4a_populate(tx);
	while (poll->work < budget) {
		int nr, left = VETH_TP4_BATCH - done % VETH_TP4_BATCH;

		left = min(left, budget - poll->work);
		nr = tp4a_add_packets(poll->to, tx, left, ETH_HLEN, max_len,
				      &poll->stats->xdp_bytes);
		poll->work += nr;
		done += nr;
		if (nr < left) {
			if (!tp4a_next_packet(tx, &p))
				break;
			veth_tp4_rcv_packet(poll, &p);
			poll->work++;
			done++;
		}
		if (done % VETH_TP4_BATCH == 0)
			veth_tp4_flush_peer(poll);
	}
	veth_tp4_flush_peer(poll);
	poll->packets += done;
}

/* Receive packets of the peer's stack or XDP for a zero-copy ring. */
static void veth_tp4_rcv_skbs(struct veth_tp4_poll *poll, int budget)
{
	struct tp4_packet_array *from = poll->local->from_stack;
	struct veth_stats *stats = poll->stats;
	struct veth_rq *rq = poll->rq;

	while (poll->work < budget) {
		void *ptr = __ptr_ring_consume(&rq->xdp_ring);
		bool is_frame = veth_is_xdp_frame(ptr);
		struct sk_buff *skb = ptr;
		int segs;

		if (!ptr)
			break;
		poll->packets++;
		poll->work++;
		if (is_frame) {
			struct xdp_frame *frame = veth_ptr_to_xdp(ptr);

			skb = xdp_build_skb_from_frame(frame, rq->dev);
			if (unlikely(!skb)) {
				xdp_return_frame(frame);
				stats->rx_drops++;
				continue;
			}
		}
		stats->xdp_bytes += skb->len;
		__skb_push(skb, ETH_HLEN);
		veth_tp4_cb(skb)->is_frame = is_frame;
		segs = veth_tp4_num_segs(skb);
		stats->rx_drops += tp4a_add_skb(from, skb);
		if (unlikely(segs > 1)) {
			/* They may be thousands: have those of one packet only.
			 */
			poll->work += segs - 1;
			veth_tp4_take_skbs(poll);
		}
	}

	veth_tp4_take_skbs(poll);
}

static void veth_tp4_begin_rx(struct veth_tp4_poll *poll)
{
	struct veth_tp4 *tp4 = poll->local;
	struct veth_rq *rq = poll->rq;

	tp4->rx_poll = poll;
	tp4a_begin_rx(tp4->rx, &rq->xdp_napi, rcu_dereference_bh(rq->xdp_prog));
	tp4a_populate(tp4->rx);
}

/* Publish the received packets. */
static void veth_tp4_end_rx(struct veth_tp4_poll *poll)
{
	const struct tp4_xdp *xdp = &poll->local->xdp;

	tp4a_flush(poll->local->rx);
	poll->stats->xdp_drops += xdp->drops;
	poll->stats->rx_drops += xdp->errors;
	poll->stats->xdp_tx += xdp->tx;
	poll->stats->xdp_redirect += xdp->redirect;
}

static int veth_tp4_rcv(struct veth_tp4_poll *poll, int budget)
{
	struct veth_rq *rq = poll->rq;
	int share = budget;

	/* Share the budget, so that the peer's stack and its ring do not starve
	 * each other. The budget may be one packet.
	 */
	if (poll->peer) {
		rq->tp4_turn ^= 1;
		share = (budget + rq->tp4_turn) / 2;
	}
	if (poll->local) {
		veth_tp4_begin_rx(poll);
		veth_tp4_rcv_skbs(poll, share);
		/* The last packet may have had more segments. */
		poll->work = min(poll->work, share);
	} else if (!__ptr_ring_empty(&rq->xdp_ring)) {
		budget -= share;
	}

	if (poll->peer) {
		poll->peer->tx_poll = poll;
		tp4a_need_wakeup(poll->peer->tx, false);
		veth_tp4_rcv_peer(poll, budget);
	}
	if (poll->local)
		veth_tp4_end_rx(poll);

	/* veth_xdp_rcv() adds the rest of poll->stats. */
	u64_stats_update_begin(&rq->stats.syncp);
	/* On 64 bits, syncp lets others read what is being written. */
	data_race(rq->stats.vs.xdp_packets += poll->packets);
	u64_stats_update_end(&rq->stats.syncp);
	return min(poll->work, budget);
}

/* The zero-copy queue pair of this end, if it receives, or NULL */
static struct veth_tp4 *veth_tp4_local(const struct veth_rq *rq)
{
	struct veth_tp4 *tp4 = rcu_dereference_bh(rq->tp4);

	return tp4 && tp4->rx ? tp4 : NULL;
}

/* The zero-copy queue pair at the other end, if it sends, or NULL */
static struct veth_tp4 *veth_tp4_peer(const struct veth_rq *rq,
				      const struct net_device *peer_dev)
{
	const struct veth_priv *peer_priv, *priv = netdev_priv(rq->dev);
	int queue = rq - priv->rq;
	struct veth_tp4 *tp4;

	if (!peer_dev || !netif_running(peer_dev) ||
	    queue >= peer_dev->real_num_rx_queues)
		return NULL;
	peer_priv = netdev_priv(peer_dev);
	tp4 = rcu_dereference_bh(peer_priv->rq[queue].tp4);
	return tp4 && tp4->tx ? tp4 : NULL;
}

static int veth_rcv(struct veth_rq *rq, struct net_device *peer_dev, int budget,
		    struct veth_xdp_tx_bq *bq, struct veth_stats *stats)
{
	struct veth_tp4_poll poll = {
		.rq = rq,
		.bq = bq,
		.stats = stats,
		.peer_dev = peer_dev,
		.local = veth_tp4_local(rq),
		.peer = veth_tp4_peer(rq, peer_dev),
	};
	int done = 0;

	/* netpoll polls without a budget and does not schedule NAPI. */
	if (unlikely((poll.local || poll.peer) && budget))
		done = veth_tp4_rcv(&poll, budget);
	return done + veth_xdp_rcv(rq, poll.local ? 0 : budget - done, bq,
				   stats);
}

/* NAPI is about to complete. Check whether the peer has posted packets since.
 */
static bool veth_tp4_napi_done(struct veth_rq *rq, struct net_device *peer_dev)
{
	struct veth_tp4 *tp4 = veth_tp4_peer(rq, peer_dev);

	if (!tp4)
		return false;
	tp4a_need_wakeup(tp4->tx, true);
	return tp4a_has_work(tp4->tx);
}

/* The queue that receives what XDP sends: the CPU's, or, if only some have NAPI
 * for zero-copy queue pairs, the first of these.
 */
static struct veth_rq *veth_xdp_rq(struct net_device *dev)
{
	struct veth_priv *priv = netdev_priv(dev);
	struct veth_rq *rq = &priv->rq[veth_select_rxq(dev)];
	unsigned int i;

	for (i = 0; i < dev->real_num_rx_queues; i++) {
		if (likely(rcu_access_pointer(rq->napi)))
			break;
		rq = &priv->rq[i];
	}
	return rq;
}

/* Disable NAPI for a queue. The peer may have found the ptr_ring full after NAPI had
 * looked at it last.
 */
static void veth_tp4_napi_del(struct net_device *dev, int queue)
{
	struct veth_priv *priv = netdev_priv(dev);
	struct net_device *peer = rtnl_dereference(priv->peer);

	veth_napi_del_range(dev, queue, queue + 1);
	if (peer && queue < peer->real_num_tx_queues)
		netif_tx_wake_queue(netdev_get_tx_queue(peer, queue));
}

/* Disable NAPI for all queues that do not need it for a zero-copy queue pair.
 */
static void veth_tp4_napi_del_unbound(struct net_device *dev)
{
	struct veth_priv *priv = netdev_priv(dev);
	unsigned int i;

	for (i = 0; i < dev->real_num_rx_queues; i++) {
		struct veth_rq *rq = &priv->rq[i];

		if (!veth_tp4_has_napi(rq) && rcu_access_pointer(rq->napi))
			veth_tp4_napi_del(dev, i);
	}
}

/* Enable NAPI for these queues. @enable does so for a range of queues. */
static int veth_tp4_napi_enable_unbound(struct net_device *dev,
					int (*enable)(struct net_device *dev,
						      int start, int end))
{
	struct veth_priv *priv = netdev_priv(dev);
	unsigned int i;
	int err;

	/* While the device goes up, no queue has NAPI yet. */
	if (!(dev->flags & IFF_UP))
		return enable(dev, 0, dev->real_num_rx_queues);

	for (i = 0; i < dev->real_num_rx_queues; i++) {
		if (veth_tp4_has_napi(&priv->rq[i]))
			continue;
		err = enable(dev, i, i + 1);
		if (err) {
			veth_tp4_napi_del_unbound(dev);
			return err;
		}
	}
	return 0;
}

/* Check whether NAPI is needed without an XDP program, at least for some
 * queues.
 */
static bool veth_tp4_napi_requested(const struct net_device *dev)
{
	if (veth_tp4_users(dev))
		return true;
	return veth_gro_requested(dev);
}

/* The XDP features of a device depend on its peer's NAPI. */
static void veth_tp4_set_xdp_features(const struct veth_priv *priv)
{
	struct net_device *peer = rtnl_dereference(priv->peer);

	if (peer)
		veth_set_xdp_features(peer);
}

/* Check whether NAPI is enabled or disabled for all queues alike, whether or
 * not they are zero-copy.
 */
static bool veth_napi_is_common(const struct net_device *dev)
{
	const struct veth_priv *priv = netdev_priv(dev);

	return !netif_running(dev) || priv->_xdp_prog || veth_gro_requested(dev);
}

/* A zero-copy queue pair needs NAPI at both ends. */
static int veth_tp4_napi_get(struct net_device *dev, int queue)
{
	struct veth_priv *priv = netdev_priv(dev);
	struct veth_rq *rq = &priv->rq[queue];
	int err;

	if (!rq->tp4_users && !veth_napi_is_common(dev)) {
		err = veth_napi_enable_range(dev, queue, queue + 1);
		if (err)
			return err;
	}
	rq->tp4_users++;
	veth_tp4_set_xdp_features(priv);
	return 0;
}

static void veth_tp4_napi_put(struct net_device *dev, int queue)
{
	struct veth_priv *priv = netdev_priv(dev);
	struct veth_rq *rq = &priv->rq[queue];

	rq->tp4_users--;
	veth_tp4_set_xdp_features(priv);
	if (rq->tp4_users || veth_napi_is_common(dev))
		return;
	veth_tp4_napi_del(dev, queue);
}

/* The device goes up, and only zero-copy queue pairs need NAPI. */
static int veth_tp4_open(struct net_device *dev)
{
	struct veth_priv *priv = netdev_priv(dev);
	int err, i;

	for (i = 0; i < dev->real_num_rx_queues; i++) {
		if (!priv->rq[i].tp4_users)
			continue;
		err = veth_napi_enable_range(dev, i, i + 1);
		if (err)
			goto undo;
	}
	return 0;

undo:
	while (i--) {
		if (priv->rq[i].tp4_users)
			veth_tp4_napi_del(dev, i);
	}
	return err;
}

static void veth_tp4_close(struct net_device *dev)
{
	struct veth_priv *priv = netdev_priv(dev);
	int i;

	for (i = 0; i < dev->real_num_rx_queues; i++) {
		if (veth_tp4_has_napi(&priv->rq[i]))
			veth_tp4_napi_del(dev, i);
	}
}

static void veth_tp4_free(struct veth_tp4 *tp4)
{
	tp4a_free(tp4->rx);
	tp4a_free(tp4->from_stack);
	tp4a_free(tp4->tx);
	tp4a_free(tp4->to_stack);
	kfree(tp4);
}

static struct veth_tp4 *veth_tp4_alloc(struct veth_rq *rq,
				       const struct tp4_netdev_parms *parms)
{
	struct veth_tp4 *tp4;

	tp4 = kzalloc_obj(*tp4, GFP_KERNEL_ACCOUNT);
	if (!tp4)
		return NULL;

	tp4->from_stack = tp4a_skb_source_new(VETH_TP4_FRAMES);
	tp4->to_stack = tp4a_skb_sink_new(VETH_TP4_FRAMES, tp4,
					  veth_tp4_deliver_stack);
	if (!tp4->from_stack || !tp4->to_stack)
		goto free;
	if (parms->tx_opaque) {
		tp4->tx = tp4a_tx_new(parms->tx_opaque, VETH_TP4_FRAMES, NULL);
		if (!tp4->tx)
			goto free;
	}
	if (parms->rx_opaque) {
		tp4->rx = tp4a_rx_new(parms->rx_opaque, VETH_TP4_FRAMES, NULL);
		if (!tp4->rx)
			goto free;
		tp4->xdp.buff = &tp4->xdp_buff.xdp;
		tp4->xdp.rxq = &rq->xdp_rxq;
		tp4->xdp.prepare = veth_tp4_xdp_prepare;
		tp4->xdp.xmit = veth_tp4_xdp_tx;
		tp4->xdp.get_offloads = veth_tp4_get_offloads;
		tp4->xdp.arg = tp4;
		tp4a_set_xdp(tp4->rx, &tp4->xdp);
	}
	return tp4;

free:
	veth_tp4_free(tp4);
	return NULL;
}

static int veth_tp4_enable(struct net_device *dev,
			   const struct tp4_netdev_parms *parms)
{
	struct veth_priv *priv = netdev_priv(dev);
	struct net_device *peer = rtnl_dereference(priv->peer);
	int err, queue = parms->queue_pair;
	struct veth_tp4 *tp4;

	if (!peer || queue >= peer->real_num_rx_queues)
		return -ENXIO;
	err = tp4_set_stamps(parms->tx_opaque, TP4_SW_STAMPS);
	if (err)
		return err;

	err = veth_tp4_napi_get(dev, queue);
	if (err)
		return err;
	err = veth_tp4_napi_get(peer, queue);
	if (err)
		goto put_dev;

	err = -ENOMEM;
	tp4 = veth_tp4_alloc(&priv->rq[queue], parms);
	if (!tp4)
		goto put_peer;
	rcu_assign_pointer(priv->rq[queue].tp4, tp4);
	return 0;

put_peer:
	veth_tp4_napi_put(peer, queue);
put_dev:
	veth_tp4_napi_put(dev, queue);
	return err;
}

static int veth_tp4_disable(struct net_device *dev, int queue_pair)
{
	struct veth_priv *priv = netdev_priv(dev);
	struct net_device *peer = rtnl_dereference(priv->peer);
	struct veth_rq *rq = &priv->rq[queue_pair];
	struct veth_tp4 *tp4 = rtnl_dereference(rq->tp4);

	RCU_INIT_POINTER(rq->tp4, NULL);
	synchronize_net();
	veth_tp4_free(tp4);

	veth_tp4_napi_put(dev, queue_pair);
	/* Without a peer, both ends are being removed. */
	if (peer)
		veth_tp4_napi_put(peer, queue_pair);
	return 0;
}

static int veth_tp4_zerocopy(struct net_device *dev,
			     struct tp4_netdev_parms *parms)
{
	switch (parms->command) {
	case TP4_ENABLE:
		return veth_tp4_enable(dev, parms);
	case TP4_DISABLE:
		return veth_tp4_disable(dev, parms->queue_pair);
	}
	return -EINVAL;
}

static int veth_tp4_wake(struct net_device *dev, int queue)
{
	struct veth_priv *priv;

	if (!dev || queue >= dev->real_num_rx_queues)
		return -ENETDOWN;
	priv = netdev_priv(dev);
	/* If the peer is down, the packets wait for its veth_open(). */
	if (rcu_access_pointer(priv->rq[queue].napi))
		__veth_xdp_flush(&priv->rq[queue]);
	return 0;
}

/* The receiver's NAPI fills its Rx array and empties the sender's Tx array. It
 * never requests a kick for posted Rx frames, so this is for packets to send.
 */
static int veth_tp4_xmit(struct net_device *dev, int queue_pair, u32 flags)
{
	struct veth_priv *priv = netdev_priv(dev);
	int err;

	/* local_bh_enable() runs the NAPI scheduled here. */
	local_bh_disable();
	err = veth_tp4_wake(rcu_dereference_bh(priv->peer), queue_pair);
	local_bh_enable();
	return err;
}

/* Send packets that were posted while this end or the peer was down. */
static void veth_tp4_kick(struct net_device *dev)
{
	struct veth_priv *priv = netdev_priv(dev);
	unsigned int i;

	for (i = 0; i < dev->real_num_rx_queues; i++) {
		if (veth_tp4_is_bound(&priv->rq[i]))
			veth_tp4_xmit(dev, i, TP4_WAKEUP_TX);
	}
}
#else
static bool veth_tp4_is_bound(const struct veth_rq *rq)
{
	return false;
}

static bool veth_tp4_ring_is_read(const struct veth_rq *rq)
{
	return rcu_access_pointer(rq->xdp_prog);
}

static bool veth_tp4_users(const struct net_device *dev)
{
	return false;
}

static bool veth_tp4_has_napi(const struct veth_rq *rq)
{
	return false;
}

static int veth_rcv(struct veth_rq *rq, struct net_device *peer_dev, int budget,
		    struct veth_xdp_tx_bq *bq, struct veth_stats *stats)
{
	return veth_xdp_rcv(rq, budget, bq, stats);
}

static bool veth_tp4_napi_done(struct veth_rq *rq, struct net_device *peer_dev)
{
	return false;
}

static struct veth_rq *veth_xdp_rq(struct net_device *dev)
{
	struct veth_priv *priv = netdev_priv(dev);

	return &priv->rq[veth_select_rxq(dev)];
}

static void veth_tp4_napi_del_unbound(struct net_device *dev)
{
}

static int veth_tp4_napi_enable_unbound(struct net_device *dev,
					int (*enable)(struct net_device *dev,
						      int start, int end))
{
	return 0;
}

static bool veth_tp4_napi_requested(const struct net_device *dev)
{
	return veth_gro_requested(dev);
}

static int veth_tp4_open(struct net_device *dev)
{
	return 0;
}

static void veth_tp4_close(struct net_device *dev)
{
}

static void veth_tp4_kick(struct net_device *dev)
{
}
#endif
