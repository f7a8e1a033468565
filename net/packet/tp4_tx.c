// SPDX-License-Identifier: GPL-2.0
/* TPACKET_V4 Tx in copy mode: descriptors to skbs, in batches, and back. */

#include <linux/export.h>
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
#include <net/gen_stats.h>
#include <net/sch_generic.h>
#include <net/sock.h>

#include "internal.h"
#include "tp4_area.h"
#include "tp4_meta.h"
#include "tp4_queue.h"
#include "tp4_tx.h"

/* Packets that are built before the first of them is sent */
#define TP4_TX_BATCH	32

/* Descriptors that are returned at a time */
#define TP4_TX_RETURNS	64

/* A packet of at most so many bytes is copied: that costs less than to look
 * after pages, as a send() of the same packet knows. With its headroom it fits
 * a slab of 2048 bytes.
 */
#define TP4_TX_COPY	1536

/* Of a longer packet, so much is copied for the headers. */
#define TP4_TX_HEAD	128

/* A packet that a full queue has thrown away is tried again when the queue has
 * become shorter, else once a jiffy: each try costs an skb and a drop event.
 */
#define TP4_TX_RETRY	1

/* Whose it is to return the packet's descriptors */
enum tp4_tx_state {
	TP4_TX_IN_BATCH,	/* tp4_snd(), which has not sent the batch yet */
	TP4_TX_IN_FLIGHT,	/* whoever frees the skb or its frames */
	TP4_TX_FREED,		/* tp4_snd(); the frames are already free */
};

/**
 * struct tp4_tx_pkt - a packet that was taken from the ring, or a frame of it
 * @ubuf:	tells when the frames are free, where the skb refers to them
 * @node:	on @tx->freed
 * @tx:		the ring's
 * @more:	the packet's next frame; or the next one on @tx->unused
 * @next:	the next packet on @tx->waiting
 * @frame:	number of the frame in the area
 * @len:	bytes of the packet in the frame
 * @offset:	bytes from the frame's start to them
 * @meta:	not 0 if the frame starts with metadata
 * @state:	enum tp4_tx_state, of a packet's first frame
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
	u8			meta;
	int			state;
};

/**
 * struct tp4_tx_load - how full the queues of a device are
 * @len:	packets queued, or queues stopped where the qdisc is bypassed
 * @drops:	packets that the qdiscs have dropped
 */
struct tp4_tx_load {
	u32	len;
	u32	drops;
};

/**
 * struct tp4_tx - what Tx needs beside the queue
 * @q:		the queue
 * @unused:	entries of @pkts, for the sender alone
 * @waiting:	packets that a full device or qdisc has refused, and those that
 *		were behind them in the batch: first to be sent by the next kick
 * @is_full:	the first of @waiting was refused by a full device
 * @full_since:	jiffies then
 * @load:	how full the device was when this was last looked at
 * @ifindex:	which device that was
 * @batch:	packets to build at a time: one after a packet was refused, and
 *		twice as many after each batch that went out
 * @nr_skbs:	packets in @skbs and @first
 * @skbs:	the batch
 * @first:	first frame of each packet of the batch
 * @lens:	bytes of each packet of the batch, as they were posted
 * @nr_returns: descriptors in @returns
 * @returns:	what tp4_tx_flush() is to return
 * @freed:	entries of @pkts, from whoever freed them
 * @in_flight:	packets in state TP4_TX_IN_FLIGHT
 * @pkts:	one for each slot of the ring, which is as many as can be needed
 *
 * All but @freed, @in_flight and the state of a packet that was sent belongs to
 * pg_vec_lock.
 */
struct tp4_tx {
	struct tp4_queue	*q;
	struct tp4_tx_pkt	*unused;
	struct tp4_tx_pkt	*waiting;
	bool			is_full;
	unsigned long		full_since;
	struct tp4_tx_load	load;
	int			ifindex;
	u32			batch;
	u32			nr_skbs;
	u32			nr_returns;
	struct sk_buff		*skbs[TP4_TX_BATCH];
	struct tp4_tx_pkt	*first[TP4_TX_BATCH];
	u32			lens[TP4_TX_BATCH];
	struct tpacket4_desc	returns[TP4_TX_RETURNS];

	struct llist_head	freed ____cacheline_aligned_in_smp;
	atomic_t		in_flight;
	struct tp4_tx_pkt	pkts[];
};

/* One call of tp4_snd() */
struct tp4_tx_call {
	struct packet_sock	*po;
	struct tp4_tx		*tx;
	struct net_device	*dev;
	struct sockcm_cookie	sockc;
	const u8		*addr;
	__be16			proto;
	bool			wait;
	bool			raw;
	int			hard_header_len;
	int			reserve;	/* of it, what the data has */
	int			bytes;
	u32			budget;
};

static void tp4_tx_flush(struct tp4_tx *tx)
{
	if (tx->nr_returns)
		tp4q_return(tx->q, tx->returns, tx->nr_returns);
	tx->nr_returns = 0;
}

static void tp4_tx_add_return(struct tp4_tx *tx, u64 idx, u8 error)
{
	if (tx->nr_returns == TP4_TX_RETURNS)
		tp4_tx_flush(tx);
	tx->returns[tx->nr_returns++] = (struct tpacket4_desc) {
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
		pkt->meta = descs[i].flags & TP4_META;
		*more = pkt;
		more = &pkt->more;
	}
	return first;
}

/* The frames of a packet are free, in whatever context. While the sender is at
 * its batch it returns them itself, with the others and knowing whether the
 * packet was sent. Later, they are returned here.
 */
static void tp4_tx_freed(struct tp4_tx_pkt *pkt)
{
	struct tpacket4_desc descs[TP4_TX_DESCS];
	struct tp4_tx *tx = pkt->tx;
	struct tp4_tx_pkt *more;
	struct sock *sk;
	u32 nr = 0;

	if (cmpxchg(&pkt->state, TP4_TX_IN_BATCH, TP4_TX_FREED) ==
	    TP4_TX_IN_BATCH)
		return;

	for (more = pkt; more; more = more->more)
		descs[nr++] = (struct tpacket4_desc) { .idx = more->frame };
	/* The sender must find an entry for each slot that it finds posted. */
	for (; pkt; pkt = more) {
		more = pkt->more;
		llist_add(&pkt->node, &tx->freed);
	}
	/* The skb, or the ubuf, keeps the socket; nothing keeps the ring. */
	sk = tx->q->sk;
	__tp4q_return(tx->q, descs, nr);
	/* Pairs with the acquire in tp4_tx_busy(): the ring may go now. */
	atomic_dec_return_release(&tx->in_flight);
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

/* Let the skb's end return the packet's descriptors: that of the skb where all
 * was copied, else that of the last reference to its pages.
 */
static void tp4_tx_add_to_batch(struct tp4_tx *tx, struct tp4_tx_pkt *pkt,
				u32 len, struct sk_buff *skb)
{
	pkt->state = TP4_TX_IN_BATCH;
	tx->lens[tx->nr_skbs] = len;
	tx->first[tx->nr_skbs] = pkt;
	tx->skbs[tx->nr_skbs++] = skb;
	if (!skb_is_nonlinear(skb)) {
		skb_shinfo(skb)->destructor_arg = pkt;
		skb->destructor = tp4_tx_destruct_skb;
		return;
	}

	pkt->ubuf.ops = &tp4_tx_ubuf_ops;
	pkt->ubuf.flags = SKBFL_ZEROCOPY_FRAG;
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

/* Copy the first @linear bytes of a packet, and refer to the rest. */
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

/* Is there a link layer header that the device understands? What a shorter one
 * lacks is zero.
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

/* Do as the metadata of a packet of @len bytes says, if it is right. */
static noinline bool tp4_tx_do_meta(const struct tp4_tx_call *call,
				    const struct tp4_tx_pkt *pkt, u32 len,
				    struct sk_buff *skb)
{
	const struct tp4_queue *q = call->tx->q;
	u32 header = call->raw ? 0 : skb->len - len;

	return !tp4_meta_to_skb(tp4_area_frame(q->area, pkt->frame), skb,
				q->sk, header);
}

/* May the device send a packet that is longer than @max? */
static bool tp4_tx_long_ok(const struct net_device *dev,
			   const struct sk_buff *skb, u32 len, u32 max)
{
	if (skb_is_gso(skb))
		return true;
	return len <= max + VLAN_HLEN && dev->type == ARPHRD_ETHER &&
	       eth_hdr(skb)->h_proto == htons(ETH_P_8021Q);
}

/* Build the skb of a packet of @len bytes.
 * Return: the skb, or an ERR_PTR: -EINVAL or -EMSGSIZE where the device will
 * never take the packet, else an errno with which it must wait.
 */
static struct sk_buff *tp4_tx_build(const struct tp4_tx_call *call,
				    const struct tp4_tx_pkt *pkt, u32 len)
{
	const struct net_device *dev = call->dev;
	int reserve = call->reserve;
	u32 max = READ_ONCE(dev->mtu) + reserve;
	struct tp4_tx *tx = call->tx;
	struct sk_buff *skb;
	u32 linear, hlen;
	bool noblock;
	int err;

	/* What metadata says is to be segmented may have any length. */
	if (unlikely(len > max + VLAN_HLEN) && !pkt->meta)
		return ERR_PTR(-EMSGSIZE);

	linear = len <= TP4_TX_COPY ? len : TP4_TX_HEAD;
	linear = max_t(u32, linear, reserve);
	/* Memory of this batch comes back only once it is sent. */
	noblock = !call->wait || tx->nr_skbs;
	if (!noblock)
		tp4_tx_flush(tx);
	hlen = LL_RESERVED_SPACE_EX(dev, call->hard_header_len);
	skb = sock_alloc_send_skb(tx->q->sk, hlen + dev->needed_tailroom +
				  linear - reserve, noblock, &err);
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
	tp4_tx_fill(tx, skb, skb_tail_pointer(skb) - linear, pkt,
		    min(linear, len));
	if (unlikely(!tp4_tx_header_ok(call, skb, len)))
		goto bad;

	skb->dev = call->dev;
	skb->protocol = call->proto;
	skb->priority = READ_ONCE(tx->q->sk->sk_priority);
	skb->mark = call->sockc.mark;
	skb_set_delivery_type_by_clockid(skb, call->sockc.transmit_time,
					 tx->q->sk->sk_clockid);
	skb_setup_tx_timestamp(skb, call->sockc.tsflags);
	tp4_tx_parse_headers(skb, call->raw);

	if (unlikely(pkt->meta) && !tp4_tx_do_meta(call, pkt, len, skb))
		goto bad;
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

/* Take the next posted packet from the ring; refuse what is none.
 * Return: the packet, or NULL where no more are posted or the call's budget
 * is used up.
 */
static struct tp4_tx_pkt *tp4_tx_next(struct tp4_tx_call *call)
{
	struct tpacket4_desc descs[TP4_TX_DESCS];
	struct tp4_tx *tx = call->tx;
	bool good;
	u32 nr;

	while ((nr = tp4q_tx_next(tx->q, descs, call->budget, &good))) {
		call->budget -= nr;
		if (likely(good))
			return tp4_tx_take(tx, descs, nr);
		tp4q_tx_refuse(tx->q, descs, nr);
	}
	return NULL;
}

/* Memory for an skb was not to be had, or not in time. What is in the batch is
 * sent all the same, and if that was no reason but an error of the socket, which
 * is told only once, then the next call tells it.
 */
static int tp4_tx_build_error(const struct tp4_tx_call *call, int err)
{
	const struct tp4_tx *tx = call->tx;

	if (err == -EAGAIN && call->wait && !tx->nr_skbs)
		return -ETIMEDOUT;
	switch (err) {
	case -EAGAIN:
	case -ENOBUFS:
	case -EPIPE:
	case -EINTR:
	case -ERESTARTSYS:
		break;
	default:
		if (tx->nr_skbs || call->bytes)
			WRITE_ONCE(tx->q->sk->sk_err, -err);
	}
	return tx->nr_skbs ? 0 : err;
}

/* Turn waiting and then posted packets into a batch of skbs.
 * Return: 0, or the errno with which a packet has to wait.
 */
static int tp4_tx_fill_batch(struct tp4_tx_call *call)
{
	struct tp4_tx *tx = call->tx;

	while (tx->nr_skbs < tx->batch) {
		struct tp4_tx_pkt *pkt = tx->waiting, *more;
		u32 len = 0, nr = 0;
		struct sk_buff *skb;

		if (pkt)
			tx->waiting = pkt->next;
		else
			pkt = tp4_tx_next(call);
		if (!pkt)
			break;

		for (more = pkt; more; more = more->more, nr++)
			len += more->len;
		skb = tp4_tx_build(call, pkt, len);
		if (!IS_ERR(skb)) {
			tp4_tx_add_to_batch(tx, pkt, len, skb);
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

/* Return a packet's descriptors now if its frames are free, or leave that to
 * whoever frees them.
 */
static void tp4_tx_finish_pkt(struct tp4_tx *tx, struct tp4_tx_pkt *pkt,
			      u8 error)
{
	if (!tp4_tx_is_freed(pkt)) {
		atomic_inc(&tx->in_flight);
		if (cmpxchg(&pkt->state, TP4_TX_IN_BATCH, TP4_TX_IN_FLIGHT) ==
		    TP4_TX_IN_BATCH)
			return;
		atomic_dec(&tx->in_flight);
	}
	tp4_tx_return_pkt(tx, pkt, error);
}

/* How full are the queues of the device, all taken together? */
static struct tp4_tx_load tp4_tx_get_load(const struct tp4_tx_call *call)
{
	bool bypass = packet_sock_flag(call->po, PACKET_SOCK_QDISC_BYPASS);
	struct gnet_stats_queue stats = {};
	struct tp4_tx_load load = {};
	unsigned int i;

	rcu_read_lock();
	for (i = 0; i < call->dev->real_num_tx_queues; i++) {
		struct netdev_queue *txq = netdev_get_tx_queue(call->dev, i);
		struct Qdisc *q = rcu_dereference(txq->qdisc);

		if (bypass) {
			load.len += netif_xmit_frozen_or_drv_stopped(txq);
		} else if (q && q->enqueue) {
			load.len += qdisc_qlen_sum(q);
			gnet_stats_add_queue(&stats, q->cpu_qstats, &q->qstats);
		}
	}
	rcu_read_unlock();
	load.drops = stats.drops;
	return load;
}

/* May a device that was full have room now? */
static bool tp4_tx_may_retry(const struct tp4_tx_call *call)
{
	const struct tp4_tx *tx = call->tx;

	return time_after_eq(jiffies, tx->full_since + TP4_TX_RETRY) ||
	       tp4_tx_get_load(call).len < tx->load.len;
}

/* A packet was freed and not sent. Was there no room for it, or does a rule, a
 * driver or a missing carrier keep such packets back? A qdisc that has dropped
 * nothing since it was looked at was not full. Nor was one that was empty before
 * the second try; before the first one, nobody has looked.
 */
static bool tp4_tx_was_full(const struct tp4_tx_call *call, int ret)
{
	struct tp4_tx *tx = call->tx;
	struct tp4_tx_load before = tx->load;

	tx->load = tp4_tx_get_load(call);
	if (ret != NETDEV_TX_BUSY &&
	    (packet_sock_flag(call->po, PACKET_SOCK_QDISC_BYPASS) ||
	     tx->load.drops == before.drops || (tx->is_full && !before.len)))
		return false;
	tx->is_full = true;
	tx->full_since = jiffies;
	return true;
}

/* Send the batch. A packet that a full device or qdisc has thrown away, and
 * those behind it, wait for the next kick. One that was refused otherwise is
 * the program's again, with an error.
 * Return: the bytes sent; *err is set where the batch was not sent whole.
 */
static int tp4_tx_send_batch(struct tp4_tx_call *call, tp4_xmit_t xmit,
			     int *err)
{
	bool loss = packet_sock_flag(call->po, PACKET_SOCK_TP_LOSS);
	struct tp4_tx *tx = call->tx;
	u8 errors[TP4_TX_BATCH] = {};
	int bytes = 0, ret = 0;
	u32 i, sent;

	if (unlikely(tx->is_full || tx->ifindex != call->dev->ifindex)) {
		tx->ifindex = call->dev->ifindex;
		tx->load = tp4_tx_get_load(call);
	}

	/* The receiving end of a virtual device runs once a batch so. */
	local_bh_disable();
	for (sent = 0; sent < tx->nr_skbs; sent++) {
		ret = xmit(call->po, tx->skbs[sent]);
		if (likely(!ret || ret == NET_XMIT_CN) ||
		    !tp4_tx_is_freed(tx->first[sent])) {
			bytes += tx->lens[sent];
			continue;
		}
		if (ret == -ENETDOWN)
			break;
		if (ret > 0 && !loss && tp4_tx_was_full(call, ret)) {
			ret = -ENOBUFS;
			break;
		}
		errors[sent] = ret < 0 ? -ret : ENOBUFS;
	}
	local_bh_enable();

	if (unlikely(sent < tx->nr_skbs)) {
		*err = ret;
		if (ret == -ENOBUFS)
			atomic_long_inc(&tx->q->ring_full);
		tx->batch = 1;
	} else {
		tx->batch = min_t(u32, 2 * tx->batch, TP4_TX_BATCH);
		tx->is_full = false;
	}
	for (i = tx->nr_skbs; i-- > sent;) {
		/* It was not dropped, it is going to be built again. */
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

/* Sleep until no more than @max packets are on their way. */
static int tp4_tx_wait(const struct tp4_tx *tx, int max, long *timeo)
{
	wait_queue_head_t *wq = sk_sleep(tx->q->sk);
	const atomic_t *in_flight = &tx->in_flight;
	long ret;

	ret = wait_event_interruptible_timeout(*wq,
					       atomic_read(in_flight) <= max,
					       *timeo);
	if (ret < 0)
		return ret;
	*timeo = ret;
	return ret ? 0 : -ETIMEDOUT;
}

static int tp4_tx_loop(struct tp4_tx_call *call, tp4_xmit_t xmit, long timeo)
{
	unsigned long start = call->tx->q->in;
	struct tp4_tx *tx = call->tx;
	int bytes = 0, err = 0, in_flight;

	if (unlikely(tx->is_full && !tp4_tx_may_retry(call))) {
		err = -ENOBUFS;
		atomic_long_inc(&tx->q->ring_full);
		goto wait;
	}
again:
	do {
		/* What is not told in this call is told in the next one. */
		if (unlikely(READ_ONCE(tx->q->sk->sk_err))) {
			if (!bytes)
				err = sock_error(tx->q->sk);
			break;
		}
		err = tp4_tx_fill_batch(call);
		if (!tx->nr_skbs)
			break;
		bytes += tp4_tx_send_batch(call, xmit, &err);
		call->bytes = bytes;
		tp4_tx_flush(tx);
		cond_resched();
	} while (!err && bytes < INT_MAX / 2 && !signal_pending(current));
	tp4_tx_flush(tx);

wait:
	in_flight = atomic_read(&tx->in_flight);
	if (call->wait && in_flight && (!err || err == -ENOBUFS)) {
		bool full = err;

		err = tp4_tx_wait(tx, full ? in_flight - 1 : 0, &timeo);
		if (full && !err)
			goto again;
	}

	if (tx->q->in == start && !bytes && !err)
		atomic_long_inc(&tx->q->no_desc);
	return bytes ? : err;
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

/**
 * tp4_tx_prepare() - give the prepared Tx queue what only Tx needs
 * @po:	the packet socket, after tp4_ring_request() for its Tx ring
 *
 * Context: Process context, under the socket lock.
 * Return: 0 or -ENOMEM.
 */
int tp4_tx_prepare(struct packet_sock *po)
{
	struct tp4_queue *q = po->tp4_pending[TP4_TX];
	struct tp4_tx *tx;
	u32 i;

	if (!q)
		return 0;

	tx = kvzalloc(struct_size(tx, pkts, q->mask + 1),
		      GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!tx)
		return -ENOMEM;
	tx->q = q;
	tx->batch = TP4_TX_BATCH;
	for (i = 0; i <= q->mask; i++) {
		tx->pkts[i].tx = tx;
		tp4_tx_pkt_put(tx, &tx->pkts[i]);
	}
	q->tx = tx;
	return 0;
}
EXPORT_SYMBOL_GPL(tp4_tx_prepare);

/**
 * tp4_tx_busy() - tell whether packets of the Tx ring are on their way
 * @po:	the packet socket, of version V4
 *
 * Context: Under pg_vec_lock or the socket lock.
 * Return: true if the ring cannot be removed yet.
 */
bool tp4_tx_busy(const struct packet_sock *po)
{
	const struct tp4_queue *q = po->tp4_queue[TP4_TX];

	return q && atomic_read_acquire(&q->tx->in_flight);
}
EXPORT_SYMBOL_GPL(tp4_tx_busy);

/**
 * tp4_snd() - send what is posted on a socket's V4 Tx ring
 * @po:		the packet socket
 * @msg:	of sendmsg(): an optional sockaddr_ll, control messages, flags
 * @xmit:	how to send an skb
 *
 * Takes at most as many descriptors as the ring has. Without MSG_DONTWAIT
 * returns when what was sent is free again. An error that is the socket's comes
 * with the next call where this one has sent something.
 *
 * Context: Process context, may sleep; takes pg_vec_lock.
 * Return: the bytes sent, or a negative errno where nothing was: -EBUSY (the
 * ring is gone, or the driver has it), -ENXIO (no device), -ENETDOWN, -ENOBUFS
 * (device or qdisc full), -EAGAIN (send buffer full), -ETIMEDOUT, -EINTR and
 * -ERESTARTSYS, or what sock_cmsg_send() and the device return.
 */
int tp4_snd(struct packet_sock *po, struct msghdr *msg, tp4_xmit_t xmit)
{
	struct tp4_tx_call call = {
		.po = po,
		.wait = !(msg->msg_flags & MSG_DONTWAIT),
		.raw = po->sk.sk_type == SOCK_RAW,
	};
	struct sock *sk = &po->sk;
	struct tp4_queue *q;
	int err;

	mutex_lock(&po->pg_vec_lock);
	/* packet_sendmsg() looked without the lock. */
	q = po->tp4_queue[TP4_TX];
	/* Pairs with the release in tp4_zc_disable(). */
	if (unlikely(!q || smp_load_acquire(&q->zerocopy))) {
		err = -EBUSY;
		goto unlock;
	}

	call.dev = tp4_tx_dev_get(po, msg, &call.proto, &call.addr);
	if (IS_ERR(call.dev)) {
		err = PTR_ERR(call.dev);
		goto unlock;
	}

	sockcm_init(&call.sockc, sk);
	call.sockc.mark = READ_ONCE(sk->sk_mark);
	if (msg->msg_controllen) {
		err = sock_cmsg_send(sk, msg, &call.sockc);
		if (unlikely(err))
			goto put_dev;
	}

	call.tx = q->tx;
	call.budget = q->mask + 1;
	call.hard_header_len = READ_ONCE(call.dev->hard_header_len);
	call.reserve = call.raw ? call.hard_header_len : 0;
	err = tp4_tx_loop(&call, xmit, sock_sndtimeo(sk, !call.wait));
put_dev:
	dev_put(call.dev);
unlock:
	mutex_unlock(&po->pg_vec_lock);
	return err;
}
EXPORT_SYMBOL_GPL(tp4_snd);
