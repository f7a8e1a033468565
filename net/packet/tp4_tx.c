// SPDX-License-Identifier: GPL-2.0
/* TPACKET_V4 Tx in copy mode: turns descriptors into skbs and returns them */

#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_vlan.h>
#include <linux/llist.h>
#include <linux/netdevice.h>
#include <linux/sched/signal.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <net/sock.h>

#include "internal.h"
#include "tp4_area.h"
#include "tp4_queue.h"
#include "tp4_tx.h"

/* Number of skbs built before the first one is sent */
#define TP4_TX_BATCH	32

/* Number of descriptors returned at a time */
#define TP4_TX_RETURNS	64

/* Packets up to this length are copied, which is cheaper than handling page
 * references: on a virtual device, whose receiver may have to copy the pages,
 * and on others. With the headroom, the former fits a slab object of 2048 bytes.
 */
#define TP4_TX_COPY		1536
#define TP4_TX_COPY_TO_CARD	256

/* Number of bytes of a longer packet that are copied for its headers */
#define TP4_TX_HEAD	64

/* Maximum number of descriptors of a packet: the longest packet that an Rx ring
 * can have, with the least room in its frames
 */
#define TP4_TX_CHAIN	(GSO_MAX_SIZE / TP4_ROOM_MIN + MAX_SKB_FRAGS)

/* Who returns the packet's descriptors */
enum tp4_tx_state {
	TP4_TX_IN_BATCH,	/* tp4_snd(), which has not sent the batch yet */
	TP4_TX_IN_FLIGHT,	/* whoever frees the skb or its frames */
	TP4_TX_FREED,		/* tp4_snd(); the frames are already free */
};

/**
 * struct tp4_tx_pkt - a packet taken from the ring, or one frame of it
 * @ubuf:	completion of the skb's references to the frames
 * @node:	entry of @tx->freed
 * @tx:		Tx state of the ring
 * @more:	the next frame of the packet, or the next entry of @tx->unused
 * @next:	the next packet of @tx->waiting
 * @frame:	frame number in the area
 * @len:	bytes of the packet in the frame
 * @offset:	offset of these bytes in the frame
 * @state:	enum tp4_tx_state, in the first frame of a packet
 */
struct tp4_tx_pkt {
	struct ubuf_info	ubuf;
	struct llist_node	node;
	struct tp4_tx		*tx;
	struct tp4_tx_pkt	*more;
	struct tp4_tx_pkt	*next;
	u32			frame;
	u32			len;
	u16			offset;
	int			state;
};

/**
 * struct tp4_tx - Tx state of a queue in copy mode
 * @q:		the queue
 * @unused:	free entries of @pkts
 * @waiting:	packets that a full device refused, and those behind them in the
 *		batch; the next kick sends them first
 * @batch:	number of packets to build at a time: 1 after a packet was
 *		refused, doubled after each batch that was sent completely
 * @nr_skbs:	number of packets in @skbs, @first and @lens
 * @skbs:	the skbs of the batch
 * @first:	first frame of each packet of the batch
 * @lens:	posted length of each packet of the batch
 * @nr_done:	number of descriptors in @done
 * @done:	descriptors that tp4_tx_flush() returns
 * @nr_sent:	number of packets that were in state TP4_TX_IN_FLIGHT
 * @waiters:	number of blocking calls that wait
 * @freed:	entries of @pkts freed by other contexts
 * @nr_returned: number of packets of @nr_sent that have been returned
 * @limit:	maximum number of descriptors of a packet
 * @descs:	copies of the descriptors of a packet
 * @pkts:	one entry for each slot of the ring
 *
 * Protected by pg_vec_lock, except for @freed, @nr_returned, the state of packets
 * that were sent, and decrements of @waiters.
 */
struct tp4_tx {
	struct tp4_queue	*q;
	struct tp4_tx_pkt	*unused;
	struct tp4_tx_pkt	*waiting;
	u32			batch;
	u32			nr_skbs;
	u32			nr_done;
	struct sk_buff		*skbs[TP4_TX_BATCH];
	struct tp4_tx_pkt	*first[TP4_TX_BATCH];
	u32			lens[TP4_TX_BATCH];
	u32			limit;
	struct tpacket4_desc	*descs;
	struct tpacket4_desc	done[TP4_TX_RETURNS];
	u32			nr_sent;
	atomic_t		waiters;

	struct llist_head	freed ____cacheline_aligned_in_smp;
	atomic_t		nr_returned;
	struct tp4_tx_pkt	pkts[];
};

/* State of one call of tp4_snd() */
struct tp4_tx_call {
	struct packet_sock	*po;
	const struct msghdr	*msg;
	struct tp4_tx		*tx;
	struct net_device	*dev;
	struct sockcm_cookie	sockc;
	const u8		*addr;
	__be16			proto;
	bool			wait;
	bool			raw;
	int			hard_header_len;
	int			reserve;	/* its length in the data */
	int			bytes;
	u32			copy;		/* maximum length to copy */
	u32			budget;
	bool			more;		/* packets may be left */
};

static void tp4_tx_flush(struct tp4_tx *tx)
{
	if (tx->nr_done)
		tp4q_return(tx->q, tx->done, tx->nr_done);
	tx->nr_done = 0;
}

static void tp4_tx_add_return(struct tp4_tx *tx, u64 idx, u8 error)
{
	if (tx->nr_done == TP4_TX_RETURNS)
		tp4_tx_flush(tx);
	tx->done[tx->nr_done++] = (struct tpacket4_desc) {
		.idx = idx,
		.error = error,
	};
}

static struct tp4_tx_pkt *tp4_tx_pkt_get(struct tp4_tx *tx)
{
	struct tp4_tx_pkt *pkt = tx->unused;

	if (pkt) {
		tx->unused = pkt->more;
	} else {
		struct llist_node *freed = llist_del_all(&tx->freed);

		pkt = llist_entry(freed, struct tp4_tx_pkt, node);
		for (freed = freed->next; freed; freed = freed->next) {
			struct tp4_tx_pkt *next;

			next = llist_entry(freed, struct tp4_tx_pkt, node);
			next->more = tx->unused;
			tx->unused = next;
		}
	}
	pkt->more = NULL;
	return pkt;
}

static void tp4_tx_pkt_put(struct tp4_tx *tx, struct tp4_tx_pkt *pkt)
{
	struct tp4_tx_pkt *more;

	for (; pkt; pkt = more) {
		more = pkt->more;
		pkt->more = tx->unused;
		tx->unused = pkt;
	}
}

/* Take the descriptors of a packet from the ring. */
static struct tp4_tx_pkt *tp4_tx_take(struct tp4_tx *tx,
				      const struct tpacket4_desc *descs, u32 nr)
{
	struct tp4_tx_pkt *first, **more = &first;
	u32 i;

	tp4q_tx_take(tx->q, nr);
	for (i = 0; i < nr; i++) {
		struct tp4_tx_pkt *pkt = tp4_tx_pkt_get(tx);

		pkt->frame = descs[i].idx;
		pkt->len = descs[i].len;
		pkt->offset = descs[i].offset;
		*more = pkt;
		more = &pkt->more;
	}
	return first;
}

/* The frames of a packet have been freed, in any context. While tp4_snd() is
 * still working on the batch, it returns them itself, with the right error.
 * Otherwise they are returned here.
 */
static void tp4_tx_freed(struct tp4_tx_pkt *pkt)
{
	struct tp4_tx *tx = pkt->tx;
	struct tp4_tx_pkt *more;
	struct sock *sk;

	if (cmpxchg(&pkt->state, TP4_TX_IN_BATCH, TP4_TX_FREED) ==
	    TP4_TX_IN_BATCH)
		return;

	/* The skb or the ubuf holds the socket, but nothing holds the ring. */
	sk = tx->q->sk;
	do {
		struct tpacket4_desc desc = { .idx = pkt->frame };

		more = pkt->more;
		/* Free the entry first: the sender needs one for each slot. */
		llist_add(&pkt->node, &tx->freed);
		__tp4q_return(tx->q, &desc, 1);
		pkt = more;
	} while (unlikely(pkt));
	/* Pairs with the acquire in tp4_tx_busy(): the ring may go now. */
	atomic_inc_return_release(&tx->nr_returned);
	tp4_wake_sender(sk);
}

static void tp4_tx_destruct_skb(struct sk_buff *skb)
{
	tp4_tx_freed(skb_shinfo(skb)->destructor_arg);
	sock_wfree(skb);
}

static void tp4_tx_ubuf_complete(struct sk_buff *skb, struct ubuf_info *ubuf,
				 bool success)
{
	struct tp4_tx_pkt *pkt = container_of(ubuf, struct tp4_tx_pkt, ubuf);
	struct sock *sk = pkt->tx->q->sk;

	if (!refcount_dec_and_test(&ubuf->refcnt))
		return;

	tp4_tx_freed(pkt);
	sk_free(sk);
}

static const struct ubuf_info_ops tp4_tx_ubuf_ops = {
	.complete = tp4_tx_ubuf_complete,
};

/* Add an skb to the batch. The packet's descriptors are returned when the skb
 * is freed, or, if the skb refers to the frames, when the last reference is
 * dropped.
 */
static void tp4_tx_add_to_batch(struct tp4_tx *tx, struct tp4_tx_pkt *pkt,
				u32 len, bool copied, struct sk_buff *skb)
{
	pkt->state = TP4_TX_IN_BATCH;
	tx->lens[tx->nr_skbs] = len;
	tx->first[tx->nr_skbs] = pkt;
	tx->skbs[tx->nr_skbs++] = skb;
	if (copied || !skb_is_nonlinear(skb)) {
		skb_shinfo(skb)->destructor_arg = pkt;
		skb->destructor = tp4_tx_destruct_skb;
		return;
	}

	pkt->ubuf.ops = &tp4_tx_ubuf_ops;
	/* A clone, for example for a timestamp, must not replace the frames of
	 * this skb by copies: the driver may have mapped them.
	 */
	pkt->ubuf.flags = SKBFL_ZEROCOPY_FRAG | SKBFL_DONT_ORPHAN;
	refcount_set(&pkt->ubuf.refcnt, 1);
	/* The pages may outlive the skb. */
	refcount_inc(&tx->q->sk->sk_wmem_alloc);
	skb_zcopy_init(skb, &pkt->ubuf);
}

static void tp4_tx_parse_headers(struct sk_buff *skb, bool raw)
{
	int depth;

	skb_reset_mac_header(skb);
	if ((!skb->protocol || skb->protocol == htons(ETH_P_ALL)) && raw)
		skb->protocol = dev_parse_header_protocol(skb);
	skb_probe_transport_header(skb);

	if (likely(skb->dev->type == ARPHRD_ETHER) &&
	    eth_type_vlan(skb->protocol) &&
	    vlan_get_protocol_and_depth(skb, skb->protocol, &depth))
		skb_set_network_header(skb, depth);
}

/* Copy the first @linear bytes of a packet, and add references to the rest. */
static void tp4_tx_fill(const struct tp4_tx *tx, struct sk_buff *skb, u8 *to,
			const struct tp4_tx_pkt *pkt, u32 linear)
{
	u32 bytes = 0;

	for (; pkt; pkt = pkt->more) {
		u32 nr = min(linear, pkt->len), offset = pkt->offset;
		struct page *page;

		memcpy(to, tp4_area_frame(tx->q->area, pkt->frame) + offset,
		       nr);
		to += nr;
		linear -= nr;
		if (nr == pkt->len)
			continue;

		offset += nr;
		page = tp4_area_page(tx->q->area, pkt->frame, &offset);
		get_page(page);
		skb_fill_page_desc(skb, skb_shinfo(skb)->nr_frags, page, offset,
				   pkt->len - nr);
		bytes += pkt->len - nr;
	}
	if (!bytes)
		return;

	skb->len += bytes;
	skb->data_len += bytes;
	skb->truesize += bytes;
	refcount_add(bytes, &tx->q->sk->sk_wmem_alloc);
}

/* Same for a packet of which all bytes are copied. The frags have been
 * allocated.
 */
static void tp4_tx_fill_copied(const struct tp4_tx *tx, struct sk_buff *skb,
			       u32 to, const struct tp4_tx_pkt *pkt)
{
	for (; pkt; pkt = pkt->more) {
		const void *frame = tp4_area_frame(tx->q->area, pkt->frame);

		skb_store_bits(skb, to, frame + pkt->offset, pkt->len);
		to += pkt->len;
	}
}

/* Check the link layer header, and pad it with zeroes if the packet is too
 * short.
 */
static bool tp4_tx_header_ok(const struct tp4_tx_call *call,
			     struct sk_buff *skb, u32 len)
{
	const struct net_device *dev = call->dev;

	if (likely(len >= call->reserve))
		return true;
	memset(skb->data + len, 0, skb->len - len);
	return call->hard_header_len == READ_ONCE(dev->hard_header_len) &&
	       dev_validate_header(dev, skb->data, len);
}

/* Check whether a packet may be longer than @max. */
static bool tp4_tx_long_ok(const struct net_device *dev,
			   const struct sk_buff *skb, u32 len, u32 max)
{
	return len <= max + VLAN_HLEN && dev->type == ARPHRD_ETHER &&
	       eth_type_vlan(eth_hdr(skb)->h_proto);
}

/* Build the skb of a packet of @len bytes, which is copied, or else refers to the
 * frames behind its first bytes.
 * Does not wait for the send buffer, since pg_vec_lock is held.
 * Return: the skb, or an ERR_PTR: -EINVAL or -EMSGSIZE if the packet cannot be
 * sent, any other error if it has to wait.
 */
static struct sk_buff *tp4_tx_build(const struct tp4_tx_call *call,
				    const struct tp4_tx_pkt *pkt, u32 len,
				    bool copied)
{
	const struct net_device *dev = call->dev;
	int reserve = call->reserve;
	u32 max = READ_ONCE(dev->mtu) + reserve;
	struct tp4_tx *tx = call->tx;
	u32 linear, rest, hlen;
	struct sk_buff *skb;
	int err;

	if (unlikely(len > max + VLAN_HLEN))
		return ERR_PTR(-EMSGSIZE);

	linear = len <= call->copy ? len : TP4_TX_HEAD;
	linear = max_t(u32, linear, reserve);
	rest = unlikely(copied) && len > linear ? len - linear : 0;
	hlen = LL_RESERVED_SPACE_EX(dev, call->hard_header_len);
	skb = sock_alloc_send_pskb(tx->q->sk, hlen + dev->needed_tailroom +
				   linear - reserve, rest, true, &err,
				   PAGE_ALLOC_COSTLY_ORDER);
	if (unlikely(!skb))
		return ERR_PTR(err);

	skb_reserve(skb, hlen);
	skb_reset_network_header(skb);
	skb_push(skb, reserve);
	if (unlikely(!call->raw) &&
	    dev_hard_header(skb, call->dev, ntohs(call->proto), call->addr,
			    NULL, len) < 0)
		goto bad;
	skb_put(skb, linear - reserve);
	if (unlikely(rest)) {
		skb->data_len = rest;
		skb->len += rest;
		tp4_tx_fill_copied(tx, skb, skb->len - len, pkt);
	} else {
		tp4_tx_fill(tx, skb, skb_tail_pointer(skb) - linear, pkt,
			    min(linear, len));
	}
	if (unlikely(!tp4_tx_header_ok(call, skb, len)))
		goto bad;

	skb->dev = call->dev;
	skb->protocol = call->proto;
	skb->priority = READ_ONCE(tx->q->sk->sk_priority);
	skb->mark = call->sockc.mark;
	skb_set_delivery_type_by_clockid(skb, call->sockc.transmit_time,
					 tx->q->sk->sk_clockid);
	tp4_tx_parse_headers(skb, call->raw);

	if (unlikely(len > max) && !tp4_tx_long_ok(dev, skb, len, max)) {
		kfree_skb(skb);
		return ERR_PTR(-EMSGSIZE);
	}
	return skb;

bad:
	kfree_skb(skb);
	return ERR_PTR(-EINVAL);
}

static void tp4_tx_return_pkt(struct tp4_tx *tx, struct tp4_tx_pkt *pkt,
			      u8 error)
{
	struct tp4_tx_pkt *more;

	for (more = pkt; more; more = more->more)
		tp4_tx_add_return(tx, more->frame, error);
	tp4_tx_pkt_put(tx, pkt);
}

/* Take the next posted packet if it has one frame, which is the common case, and is
 * valid.
 */
static struct tp4_tx_pkt *tp4_tx_take_plain(struct tp4_tx *tx)
{
	struct tp4_queue *q = tx->q;
	struct tpacket4_desc desc;

	if (unlikely(q->in_chain) || !tp4q_take_one(q, q->in, &desc) ||
	    desc.flags != TP4_DESC_KERNEL || !tp4q_desc_valid(q, &desc))
		return NULL;
	return tp4_tx_take(tx, &desc, 1);
}

/* Return the descriptors of an invalid packet. */
static void tp4_tx_refuse(struct tp4_tx *tx, u32 nr)
{
	u32 i;

	tp4q_tx_take(tx->q, nr);
	for (i = 0; i < nr; i++)
		tp4_tx_add_return(tx, tx->descs[i].idx, tx->descs[i].error);
	atomic_long_add(nr, &tx->q->invalid);
}

/* Take the next packet: the next one of those that wait, or else of the posted
 * ones.
 * Return: the packet, NULL if it was invalid, or -EAGAIN if no more packets are
 * posted or the budget of this call is used up.
 */
static struct tp4_tx_pkt *tp4_tx_next(struct tp4_tx_call *call)
{
	struct tp4_tx *tx = call->tx;
	struct tp4_tx_pkt *pkt;
	bool good;
	u32 nr;

	pkt = tx->waiting;
	if (unlikely(pkt)) {
		tx->waiting = pkt->next;
		return pkt;
	}
	pkt = call->budget ? tp4_tx_take_plain(tx) : NULL;
	if (likely(pkt)) {
		call->budget--;
		return pkt;
	}
	nr = tp4q_tx_next(tx->q, tx->descs, tx->limit, call->budget, &good);
	if (!nr)
		return ERR_PTR(-EAGAIN);
	call->budget -= nr;
	if (likely(good))
		return tp4_tx_take(tx, tx->descs, nr);
	tp4_tx_refuse(tx, nr);
	return NULL;
}

/* Get the length and the number of frames of a packet. No packet has INT_MAX
 * bytes.
 */
static u32 tp4_tx_len(const struct tp4_tx_pkt *pkt, u32 *nr)
{
	u64 len = 0;

	for (*nr = 0; pkt; pkt = pkt->more, ++*nr)
		len += pkt->len;
	return min_t(u64, len, INT_MAX);
}

/* An skb could not be allocated. The packets already in the batch are still
 * sent. A socket error, which sock_alloc_send_skb() has cleared, is stored
 * again for the next call.
 */
static int tp4_tx_build_error(const struct tp4_tx_call *call, int err)
{
	const struct tp4_tx *tx = call->tx;

	switch (err) {
	case -EAGAIN:
	case -ENOBUFS:
	case -EPIPE:
		break;
	default:
		if (tx->nr_skbs || call->bytes)
			WRITE_ONCE(tx->q->sk->sk_err, -err);
	}
	return tx->nr_skbs ? 0 : err;
}

/* Build a batch of skbs, first of waiting packets, then of posted ones. Invalid
 * packets count, so that a program cannot keep the kernel busy with them.
 * Return: 0, or the error because of which a packet has to wait.
 */
static int tp4_tx_fill_batch(struct tp4_tx_call *call)
{
	struct tp4_tx *tx = call->tx;
	u32 left;

	call->more = true;
	for (left = tx->batch; left; left--) {
		struct tp4_tx_pkt *pkt = tp4_tx_next(call);
		struct sk_buff *skb;
		bool copied;
		u32 len, nr;

		if (IS_ERR(pkt)) {
			call->more = false;
			break;
		}
		if (unlikely(!pkt))
			continue;

		len = tp4_tx_len(pkt, &nr);
		copied = nr > MAX_SKB_FRAGS;
		skb = tp4_tx_build(call, pkt, len, copied);
		if (!IS_ERR(skb)) {
			tp4_tx_add_to_batch(tx, pkt, len, copied, skb);
		} else if (PTR_ERR(skb) == -EINVAL ||
			   PTR_ERR(skb) == -EMSGSIZE) {
			tp4_tx_return_pkt(tx, pkt, -PTR_ERR(skb));
			atomic_long_add(nr, &tx->q->invalid);
		} else {
			pkt->next = tx->waiting;
			tx->waiting = pkt;
			return tp4_tx_build_error(call, PTR_ERR(skb));
		}
	}
	return 0;
}

static bool tp4_tx_is_freed(const struct tp4_tx_pkt *pkt)
{
	/* Pairs with the cmpxchg() in tp4_tx_freed(). */
	return smp_load_acquire(&pkt->state) == TP4_TX_FREED;
}

/* Return a packet's descriptors if its frames are free; else the context that
 * frees them does so.
 */
static void tp4_tx_finish_pkt(struct tp4_tx *tx, struct tp4_tx_pkt *pkt,
			      u8 error)
{
	if (!tp4_tx_is_freed(pkt) &&
	    cmpxchg(&pkt->state, TP4_TX_IN_BATCH, TP4_TX_IN_FLIGHT) ==
	    TP4_TX_IN_BATCH)
		tx->nr_sent++;
	else
		tp4_tx_return_pkt(tx, pkt, error);
}

/* Check whether a packet was sent or queued. Without a carrier, and while the device
 * goes down, the qdisc drops all and says NET_XMIT_CN.
 */
static bool tp4_tx_was_sent(const struct tp4_tx_call *call,
			    const struct tp4_tx_pkt *pkt, int ret)
{
	if (likely(!ret) || !tp4_tx_is_freed(pkt))
		return true;
	return ret == NET_XMIT_CN && netif_carrier_ok(call->dev) &&
	       netif_running(call->dev);
}

/* Send the batch. A packet that the device had no room for, and those behind it,
 * wait for the next kick. A packet that was dropped is returned with an error.
 * Return: the bytes sent; *err is set if not all of the batch was sent.
 */
static int tp4_tx_send_batch(struct tp4_tx_call *call, int *err)
{
	bool loss = packet_sock_flag(call->po, PACKET_SOCK_TP_LOSS);
	struct tp4_tx *tx = call->tx;
	struct sock *sk = tx->q->sk;
	u8 errors[TP4_TX_BATCH] = {};
	int bytes = 0, ret = 0;
	u32 i, sent;

	/* So that the receiver of a virtual device runs once per batch. */
	local_bh_disable();
	for (sent = 0; sent < tx->nr_skbs; sent++) {
		struct sk_buff *skb = tx->skbs[sent];
		int key = atomic_read(&sk->sk_tskey);

		skb_setup_tx_timestamp(skb, call->sockc.tsflags);
		ret = packet_xmit(call->po, skb);
		if (likely(tp4_tx_was_sent(call, tx->first[sent], ret))) {
			bytes += tx->lens[sent];
			continue;
		}
		if (ret == NET_XMIT_CN && !netif_running(call->dev))
			ret = -ENETDOWN;
		if (ret == -ENETDOWN || (ret == NETDEV_TX_BUSY && !loss)) {
			/* It is sent again, with the same number. */
			atomic_set(&sk->sk_tskey, key);
			if (ret == NETDEV_TX_BUSY)
				ret = -ENOBUFS;
			break;
		}
		errors[sent] = ret < 0 ? tp4_desc_error(-ret) : ENOBUFS;
	}
	local_bh_enable();

	if (unlikely(sent < tx->nr_skbs)) {
		*err = ret;
		if (ret == -ENOBUFS)
			atomic_long_inc(&tx->q->ring_full);
		tx->batch = 1;
	} else {
		tx->batch = min_t(u32, 2 * tx->batch, TP4_TX_BATCH);
	}
	for (i = tx->nr_skbs; i-- > sent;) {
		/* Not a drop: the skb will be built again. */
		if (i > sent)
			consume_skb(tx->skbs[i]);
		tx->first[i]->next = tx->waiting;
		tx->waiting = tx->first[i];
	}
	for (i = 0; i < sent; i++)
		tp4_tx_finish_pkt(tx, tx->first[i], errors[i]);
	tx->nr_skbs = 0;
	return bytes;
}

/* Send the packets that wait and those that are posted, until one has to wait. */
static int tp4_tx_loop(struct tp4_tx_call *call)
{
	struct tp4_tx *tx = call->tx;
	struct sock *sk = tx->q->sk;
	int err;

	do {
		/* Report it in the next call if this one has sent data. */
		if (unlikely(READ_ONCE(sk->sk_err)))
			return call->bytes ? 0 : sock_error(sk);
		err = tp4_tx_fill_batch(call);
		if (tx->nr_skbs)
			call->bytes += tp4_tx_send_batch(call, &err);
		tp4_tx_flush(tx);
		cond_resched();
	} while (!err && call->more && call->bytes < INT_MAX / 2 &&
		 !signal_pending(current));
	return err;
}

static struct net_device *tp4_tx_dev_get(struct packet_sock *po,
					 const struct msghdr *msg,
					 __be16 *proto, const u8 **addr)
{
	DECLARE_SOCKADDR(struct sockaddr_ll *, saddr, msg->msg_name);
	struct net_device *dev;

	if (likely(!saddr)) {
		*proto = READ_ONCE(po->num);
		rcu_read_lock();
		dev = rcu_dereference(po->cached_dev);
		dev_hold(dev);
		rcu_read_unlock();
	} else {
		if (msg->msg_namelen < sizeof(*saddr))
			return ERR_PTR(-EINVAL);
		*proto = saddr->sll_protocol;
		dev = dev_get_by_index(sock_net(&po->sk), saddr->sll_ifindex);
		if (dev && po->sk.sk_type == SOCK_DGRAM &&
		    msg->msg_namelen < dev->addr_len +
				       offsetof(struct sockaddr_ll, sll_addr)) {
			dev_put(dev);
			return ERR_PTR(-EINVAL);
		}
		*addr = saddr->sll_addr;
	}
	if (unlikely(!dev))
		return ERR_PTR(-ENXIO);
	if (unlikely(!(dev->flags & IFF_UP))) {
		dev_put(dev);
		return ERR_PTR(-ENETDOWN);
	}
	return dev;
}

/* Same, with the ring and the device as they are now. */
static int tp4_tx_send(struct tp4_tx_call *call)
{
	struct packet_sock *po = call->po;
	struct tp4_queue *q = po->tp4_queue[TP4_TX];
	int err;

	/* packet_sendmsg() checked it without the lock. */
	if (unlikely(!q))
		return -EBUSY;
	call->dev = tp4_tx_dev_get(po, call->msg, &call->proto, &call->addr);
	if (IS_ERR(call->dev))
		return PTR_ERR(call->dev);

	call->tx = q->tx;
	call->copy = call->dev->dev.parent ? TP4_TX_COPY_TO_CARD : TP4_TX_COPY;
	call->budget = min(call->budget, q->mask + 1);
	call->hard_header_len = READ_ONCE(call->dev->hard_header_len);
	call->reserve = call->raw ? call->hard_header_len : 0;
	err = tp4_tx_loop(call);
	if (call->budget == q->mask + 1 && !call->bytes && !err)
		atomic_long_inc(&q->no_desc);
	dev_put(call->dev);
	return err;
}

/* Check whether a blocking call has to wait after tp4_tx_send(), which has
 * returned @err: for the send buffer, or until @nr packets have been returned
 * since the ring was created. If it has, the ring stays until tp4_tx_wait().
 */
static bool tp4_tx_must_wait(const struct tp4_tx_call *call, int err, u32 *nr)
{
	u32 returned;

	if (!call->wait || (err && err != -EAGAIN && err != -ENOBUFS))
		return false;
	returned = atomic_read(&call->tx->nr_returned);
	/* With no packet in flight, nothing would end the wait. */
	if (err != -EAGAIN && returned == call->tx->nr_sent)
		return false;
	*nr = err ? returned + 1 : call->tx->nr_sent;
	atomic_inc(&call->tx->waiters);
	return true;
}

static bool tp4_tx_may_go_on(const struct tp4_tx_call *call, int err, u32 nr)
{
	const struct sock *sk = &call->po->sk;

	if (err == -EAGAIN)
		return sk_wmem_alloc_get(sk) < READ_ONCE(sk->sk_sndbuf) ||
		       READ_ONCE(sk->sk_err) ||
		       (READ_ONCE(sk->sk_shutdown) & SEND_SHUTDOWN);
	return (int)(atomic_read(&call->tx->nr_returned) - nr) >= 0;
}

/* Sleep until a blocking call may go on. Only the socket is held: the device, its
 * namespace and pg_vec_lock must not wait for a receiver of the packets.
 */
static int tp4_tx_wait(const struct tp4_tx_call *call, int err, u32 nr,
		       long *timeo)
{
	wait_queue_head_t *wq = sk_sleep(&call->po->sk);
	long left;

	left = wait_event_interruptible_timeout(*wq,
						tp4_tx_may_go_on(call, err, nr),
						*timeo);
	/* Pairs with the acquire in tp4_tx_busy(). */
	atomic_dec_return_release(&call->tx->waiters);
	if (left < 0)
		return sock_intr_errno(*timeo);
	*timeo = left;
	return left ? 0 : -ETIMEDOUT;
}

/**
 * tp4_tx_prepare() - allocate the Tx state of the pending Tx queue
 * @po:	the packet socket, after tp4_ring_request() for its Tx ring
 *
 * Context: Process context, under the socket lock.
 * Return: 0 or -ENOMEM.
 */
int tp4_tx_prepare(struct packet_sock *po)
{
	struct tp4_queue *q = po->tp4_pending[TP4_TX];
	struct tp4_tx *tx;
	u32 i, limit;

	if (!q)
		return 0;

	limit = min_t(u32, q->mask + 1, TP4_TX_CHAIN);
	tx = kvzalloc(size_add(struct_size(tx, pkts, q->mask + 1),
			       array_size(limit, sizeof(*tx->descs))),
		      GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!tx)
		return -ENOMEM;
	tx->q = q;
	tx->limit = limit;
	tx->descs = (void *)&tx->pkts[q->mask + 1];
	tx->batch = TP4_TX_BATCH;
	for (i = 0; i <= q->mask; i++) {
		tx->pkts[i].tx = tx;
		tp4_tx_pkt_put(tx, &tx->pkts[i]);
	}
	q->tx = tx;
	return 0;
}

/**
 * tp4_tx_busy() - check whether the Tx ring is in use
 * @po:	the packet socket, of version V4
 *
 * Context: Under pg_vec_lock.
 * Return: true if the ring cannot be removed yet: packets are in flight, or a
 * blocking call waits.
 */
bool tp4_tx_busy(const struct packet_sock *po)
{
	const struct tp4_queue *q = po->tp4_queue[TP4_TX];

	return q && (atomic_read_acquire(&q->tx->nr_returned) !=
		     q->tx->nr_sent ||
		     atomic_read_acquire(&q->tx->waiters));
}

/**
 * tp4_snd() - send the packets posted on a socket's V4 Tx ring
 * @po:		the packet socket
 * @msg:	message of sendmsg(): an optional sockaddr_ll, control messages,
 *		flags
 *
 * Takes at most as many descriptors as the ring has. Without MSG_DONTWAIT,
 * returns when as many packets as were sent are free again; while it waits,
 * other calls can send. If this call has sent something, a socket error is
 * reported by the next one.
 *
 * Context: Process context, may sleep; takes pg_vec_lock, but not while it waits.
 * Return: the bytes sent, or a negative errno if nothing was sent: -EBUSY (the
 * ring was removed), -ENXIO (no device), -ENETDOWN,
 * -ENOBUFS (device full), -EAGAIN (send buffer full), -ETIMEDOUT,
 * -EINTR, -ERESTARTSYS, or an error of sock_cmsg_send() or the device.
 */
int tp4_snd(struct packet_sock *po, struct msghdr *msg)
{
	struct tp4_tx_call call = {
		.po = po,
		.msg = msg,
		.wait = !(msg->msg_flags & MSG_DONTWAIT),
		.raw = po->sk.sk_type == SOCK_RAW,
		.budget = U32_MAX,
	};
	struct sock *sk = &po->sk;
	int err, ret;
	bool wait;
	long timeo;
	u32 nr;

	sockcm_init(&call.sockc, sk);
	call.sockc.mark = READ_ONCE(sk->sk_mark);
	if (msg->msg_controllen) {
		err = sock_cmsg_send(sk, msg, &call.sockc);
		if (unlikely(err))
			return err;
	}

	timeo = sock_sndtimeo(sk, !call.wait);
	do {
		mutex_lock(&po->pg_vec_lock);
		err = tp4_tx_send(&call);
		wait = tp4_tx_must_wait(&call, err, &nr);
		mutex_unlock(&po->pg_vec_lock);
		ret = wait ? tp4_tx_wait(&call, err, nr, &timeo) : err;
	} while (wait && err && !ret);

	return call.bytes ? : ret;
}
