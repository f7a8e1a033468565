// SPDX-License-Identifier: GPL-2.0
/* TPACKET_V4 zero-copy mode on drivers that support AF_XDP's
 *
 * To the V4 core, this is a driver with packet arrays. Its hardware is a buffer
 * pool on a queue, by the interface that drivers implement for AF_XDP. To these
 * drivers, the pool is one of AF_XDP:
 *
 *	xsk_buff_alloc()	the next empty frames of the Rx array
 *	xdp_do_redirect()	a packet for the Rx array, found by the place of its
 *				buffer in the pool, as the device may complete out of
 *				order, and the driver may have changed all addresses
 *	xdp_do_flush()		flushes the Rx array
 *	xsk_tx_peek_desc()	the next frames of the Tx array
 *	xsk_tx_completed()	flushes the Tx array
 *
 * Such drivers only receive for AF_XDP while the device has an XDP program. They
 * get one of the kernel's own, which redirects the packets of the pools here and
 * passes all others to the stack. If the device has a program of the user's, the
 * kernel's calls it for those others, and it runs on packets of the pools when the
 * Rx array is flushed, as with drivers that have operations of V4.
 *
 * User space can write to a frame at any time, while drivers keep the
 * skb_shared_info of a packet with several frames behind the first one's data,
 * and trust it. A pool therefore maps a page of the kernel behind the area, and
 * the frame size in each xdp_buff is such that skb_shared_info is in that page.
 * One is enough, as the pool has only one list of frames of unfinished packets.
 *
 * If the socket has no Rx ring, the driver still needs frames to receive into. They
 * are the kernel's own, behind the area, too. The program leaves their packets to
 * the driver, which copies them for the stack and frees the frames to the pool.
 *
 * A program can post a frame that it has posted before. The pool never has a
 * frame twice, since drivers link frames in lists.
 */

#define pr_fmt(fmt) "tp4: " fmt

#include <linux/bitmap.h>
#include <linux/bpf.h>
#include <linux/delay.h>
#include <linux/device.h>
#include <linux/ethtool.h>
#include <linux/filter.h>
#include <linux/hrtimer.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/tpacket4.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>
#include <net/netdev_rx_queue.h>
#include <net/xdp_sock.h>
#include <net/xdp_sock_drv.h>
#include <net/xsk_buff_pool.h>
#include <net/xsk_tp4.h>

#include "xsk.h"
#include "xsk_queue.h"
#include "xsk_tp4.h"

/* With fewer frames at the device than this, the program is asked for a kick. */
#define XSK_TP4_RX_LOW		32

/* When to call a driver that has been set up, or that has completed packets with
 * interrupts disabled
 */
#define XSK_TP4_SOON		(50 * NSEC_PER_USEC)

/* When to call a driver again that could not be woken up */
#define XSK_TP4_RETRY		(10 * NSEC_PER_MSEC)

/* Number of these times after which a queue that takes no frame is set up again */
#define XSK_TP4_WAITS		3

/* How often to see whether there is a carrier again */
#define XSK_TP4_NO_CARRIER	(100 * NSEC_PER_MSEC)

/* Minimum room in a frame: igb counts buffers in KiB, and takes 0 for 2 KiB. */
#define XSK_TP4_ROOM_MIN	1024

/* Minimum length of a packet. i40e stops a queue for a shorter one. */
#define XSK_TP4_TX_MIN		17

/* Size of a Tx array: as many descriptors as large rings have. It limits how many
 * packets are refused in one go.
 */
#define XSK_TP4_TX_SIZE		8192

/* A device may write to a frame for so long after the driver has turned off its
 * queue: some drivers do not wait until it has stopped.
 */
#define XSK_TP4_QUIET_US	10000

/* Size of a frame of the kernel's own, and how many a driver gets that does not tell
 * the size of its ring
 */
#define XSK_TP4_OWN_SIZE	4096
#define XSK_TP4_OWN_NR		1024

/* Bytes that a driver adds to the MTU, see xp_assign_dev() */
#define XSK_TP4_PAD		(ETH_HLEN + 2 * VLAN_HLEN + ETH_FCS_LEN)

#define XSK_TP4_STRIP		(NETIF_F_HW_VLAN_CTAG_RX | NETIF_F_HW_VLAN_STAG_RX)

DEFINE_STATIC_KEY_FALSE(xsk_tp4_key);

/* A device whose first queue pair is about to enter the mode, under RTNL */
static const struct net_device *xsk_tp4_entering;

/* Pools that drivers may use until their device is removed, under RTNL */
static LIST_HEAD(xsk_tp4_kept);

/* The XDP program of all devices without one of their own, allocated when the
 * first one needs it
 */
static struct bpf_prog *xsk_tp4_prog;

/**
 * struct xsk_tp4 - a queue pair in zero-copy mode
 * @pool:	its buffer pool
 * @dev:	the device
 * @queue_pair:	its index
 * @rx:		empty frames, and received packets, or NULL if the socket only sends;
 *		used by the NAPI instance that receives
 * @no_rx:	there is no @rx, or the queue pair is about to leave the mode
 * @nr_own:	frames of the kernel's own that the pool has behind the area, if the
 *		socket only sends
 * @nr_lent:	how many of them the driver or the pool's free list has
 * @at_device:	frames of @rx that the pool has, by number
 * @nr_frames:	size of @at_device
 * @heads:	the pool's buffers, one for each frame, those of @nr_own last
 * @rxq:	their Rx queue until the driver sets it; gve does not in Linux 7.3
 * @headroom:	bytes of a frame that are not for a packet, but for metadata and a
 *		VLAN tag that the device has stripped
 * @room:	bytes after it
 * @shift:	log2 of the size of the program's frames
 * @has_meta:	packets may have metadata that has to be asked for, or the queue pair
 *		is about to leave the mode
 * @no_frames:	the pool got fewer frames than it asked for
 * @twice:	the driver has handed over a frame that it no longer had
 * @xdp:	runs @prog, and delivers the stack's copies
 * @xdp_buff:	context of @prog. A program bound to the device, whose kfuncs expect
 *		the driver's, is refused.
 * @prog:	the device's own XDP program, or NULL
 * @tx:		packets to send, or NULL if the socket only receives; used by the
 *		NAPI instance that sends
 * @tx_lock:	protects the ends of @tx, as drivers such as gve complete packets in
 *		another NAPI instance
 * @no_tx:	there is no @tx, or the queue pair is about to leave the mode
 * @tx_left:	frames of a packet of which xsk_tx_peek_desc() has returned some
 * @tx_mixed:	there may be refused packets among those in flight
 * @tx_late:	completions that were reported with interrupts disabled
 * @timer:	wakes the driver up
 * @restart:	sets the queue up again, see xsk_tp4_check_dry()
 * @fills:	the driver asks for frames when it sets up the queue. gve does not if it
 *		copies each packet to a frame.
 * @dry:	frames were posted while the driver had none
 * @asked:	it has asked for frames since then
 * @waits:	how often @timer has waited for that
 * @leaving:	the queue pair is about to leave the mode
 * @kept:	in xsk_tp4_kept, if the driver may use @pool until the device is removed
 * @area:	return value of tp4a_hold_area() then
 * @pages:	those of the area and the kernel's own behind it, of which the last one
 *		has the skb_shared_info of a packet with several frames
 * @nr_pages:	their number, after @nr_area_pages of the area
 * @nr_area_pages: number of the area's
 * @addrs:	mapping of @pages
 * @umem:	the area, as the pool sees it
 * @xs:		what packets are redirected to; only @flush_node and @pool are used,
 *		and its socket has no family
 * @fill:	fill ring of the pool, which stays empty
 * @complete:	its completion ring, which is not used
 * @send:	has the number of Tx descriptors
 * @ring:	head of @fill
 */
struct xsk_tp4 {
	struct xsk_buff_pool	*pool;
	struct net_device	*dev;
	int			queue_pair;

	struct tp4_packet_array	*rx;
	bool			no_rx;
	u32			nr_own;
	u32			nr_lent;
	unsigned long		*at_device;
	u32			nr_frames;
	struct xdp_buff_xsk	*heads;
	struct xdp_rxq_info	rxq;
	u32			headroom;
	u32			room;
	u8			shift;
	bool			has_meta;
	bool			no_frames;
	bool			twice;
	struct tp4_xdp		xdp;
	struct xdp_buff		xdp_buff;
	struct bpf_prog		*prog;

	struct tp4_packet_array	*tx;
	spinlock_t		tx_lock;	/* for the ends of @tx */
	u32			tx_left;
	bool			no_tx;
	bool			tx_mixed;
	atomic_t		tx_late;

	struct hrtimer		timer;
	struct delayed_work	restart;
	bool			fills;
	bool			dry;
	bool			asked;
	u8			waits;
	bool			leaving;

	struct list_head	kept;
	void			*area;
	struct page		**pages;
	unsigned long		nr_pages;
	unsigned long		nr_area_pages;
	void			*addrs;
	struct xdp_umem		umem;
	struct xdp_sock		xs;
	struct xsk_queue	fill;
	struct xsk_queue	complete;
	struct xsk_queue	send;
	struct xdp_ring		ring;
};

/* The arrays are for softirqs. Drivers also set up and clean queues in process
 * context, while NAPI is disabled.
 */
static bool xsk_tp4_enter(void)
{
	if (likely(in_softirq()))
		return false;
	local_bh_disable();
	return true;
}

static void xsk_tp4_exit(bool entered)
{
	if (unlikely(entered))
		local_bh_enable();
}

static void xsk_tp4_start_timer(struct xsk_tp4 *t, u32 ns)
{
	if (!READ_ONCE(t->leaving))
		hrtimer_start(&t->timer, ns_to_ktime(ns), HRTIMER_MODE_REL_SOFT);
}

/* ---- receiving ---- */

/* Take a frame that has been posted twice away from the pool; it moves to the
 * end of the array. The pool already has @nr of the frames that are to do.
 */
static noinline void xsk_tp4_skip(struct xsk_tp4 *t, u64 idx)
{
	struct tp4_frame_set p;

	tp4a_handed_out(t->rx, 1);
	if (tp4a_next_by_id(t->rx, idx, &p))
		tp4a_reuse(t->rx, 1);
}

/* Get up to @max empty frames from the array. */
static u32 xsk_tp4_take(struct xsk_tp4 *t, struct xdp_buff **xdp, u32 max)
{
	struct tp4_frame_set p;
	u32 i, nr;

	nr = tp4a_get_unprocessed(t->rx, tp4a_nr_handed_out(t->rx), &p);
	nr = min(nr, max);
	for (i = 0; i < nr; i++, p.curr++) {
		u64 idx = tp4f_get_frame_id(&p);

		if (unlikely(__test_and_set_bit(idx, t->at_device))) {
			tp4a_handed_out(t->rx, i);
			xsk_tp4_skip(t, idx);
			return i;
		}
		xdp[i] = &t->heads[idx].xdp;
	}
	tp4a_handed_out(t->rx, nr);
	return nr;
}

/* Number of frames that the driver has */
static u32 xsk_tp4_posted(const struct xsk_tp4 *t)
{
	u32 nr = t->nr_own ? t->nr_lent : tp4a_nr_handed_out(t->rx);

	return nr - t->pool->free_list_cnt;
}

/* The array has too few frames. A device without frames raises no interrupt, and
 * a driver may wait for a kick. @some says whether the array had any.
 */
static void xsk_tp4_is_low(struct xsk_tp4 *t, bool some)
{
	if (xsk_tp4_posted(t) >= XSK_TP4_RX_LOW)
		return;
	t->no_frames = true;
	WRITE_ONCE(t->asked, true);
	if (tp4a_need_wakeup(t->rx, true))
		tp4a_populate(t->rx);
	else
		tp4a_refill_later(t->rx, some);
	if (!xsk_tp4_posted(t) &&
	    tp4a_nr_unprocessed(t->rx) == tp4a_nr_handed_out(t->rx))
		tp4a_count_no_frame(t->rx);
}

static void xsk_tp4_has_frames(struct xsk_tp4 *t)
{
	if (likely(!t->no_frames))
		return;
	if (xsk_tp4_posted(t) < XSK_TP4_RX_LOW)
		return;
	t->no_frames = false;
	tp4a_need_wakeup(t->rx, false);
}

/**
 * xsk_tp4_set_up() - note that a driver is setting up the queue
 * @pool:	the pool
 *
 * The driver may not look for packets to send when it has finished.
 *
 * Context: Process context.
 */
void xsk_tp4_set_up(struct xsk_buff_pool *pool)
{
	xsk_tp4_start_timer(xsk_tp4_of(pool), XSK_TP4_RETRY);
}

/* The driver is setting up the queue, and may not look at it again. */
static void xsk_tp4_sets_up(struct xsk_tp4 *t)
{
	WRITE_ONCE(t->fills, true);
	xsk_tp4_start_timer(t, XSK_TP4_RETRY);
}

/* Get up to @max frames of the kernel's own. The driver frees each after use, so the
 * pool has it from then on.
 */
static noinline u32 xsk_tp4_lend(struct xsk_tp4 *t, struct xdp_buff **xdp,
				 u32 max)
{
	u32 i, nr = min(t->nr_own - t->nr_lent, max);

	if (!in_softirq())
		xsk_tp4_sets_up(t);
	for (i = 0; i < nr; i++)
		xdp[i] = &t->heads[t->nr_frames + t->nr_lent++].xdp;
	return nr;
}

/**
 * xsk_tp4_alloc_batch() - get empty frames for a driver
 * @pool:	the pool
 * @xdp:	set to the buffers
 * @max:	maximum number of buffers
 *
 * Context: NAPI of the queue, or process context while it is disabled.
 * Return: the number of buffers.
 */
u32 xsk_tp4_alloc_batch(struct xsk_buff_pool *pool, struct xdp_buff **xdp,
			u32 max)
{
	struct xsk_tp4 *t = xsk_tp4_of(pool);
	bool entered;
	u32 nr;

	if (unlikely(READ_ONCE(t->no_rx)))
		return xsk_tp4_lend(t, xdp, max);
	entered = xsk_tp4_enter();
	if (unlikely(entered))
		xsk_tp4_sets_up(t);
	tp4a_populate(t->rx);
	nr = xsk_tp4_take(t, xdp, max);
	if (nr < max) {
		xsk_tp4_is_low(t, nr);
		nr += xsk_tp4_take(t, xdp + nr, max - nr);
	}
	xsk_tp4_has_frames(t);
	xsk_tp4_exit(entered);
	return nr;
}

/**
 * xsk_tp4_alloc() - get an empty frame for a driver
 * @pool:	the pool
 *
 * Context: As xsk_tp4_alloc_batch().
 * Return: the buffer, or NULL.
 */
struct xdp_buff_xsk *xsk_tp4_alloc(struct xsk_buff_pool *pool)
{
	struct xsk_tp4 *t = xsk_tp4_of(pool);
	struct xdp_buff *xdp;

	/* Populate a batch at a time. */
	if (unlikely(READ_ONCE(t->no_rx)) ||
	    tp4a_nr_unprocessed(t->rx) == tp4a_nr_handed_out(t->rx) ||
	    unlikely(!xsk_tp4_take(t, &xdp, 1))) {
		if (!xsk_tp4_alloc_batch(pool, &xdp, 1))
			return NULL;
	}
	return container_of(xdp, struct xdp_buff_xsk, xdp);
}

/**
 * xsk_tp4_nr_free() - count empty frames
 * @pool:	the pool
 * @max:	number of frames that the driver needs
 *
 * Context: As xsk_tp4_alloc_batch().
 * Return: the number of frames, or @max if there are more.
 */
u32 xsk_tp4_nr_free(struct xsk_buff_pool *pool, u32 max)
{
	struct xsk_tp4 *t = xsk_tp4_of(pool);
	struct tp4_frame_set p;
	bool entered;
	u32 nr;

	if (unlikely(READ_ONCE(t->no_rx)))
		return min(t->nr_own - t->nr_lent, max);
	entered = xsk_tp4_enter();
	nr = tp4a_get_unprocessed(t->rx, tp4a_nr_handed_out(t->rx), &p);
	if (nr < max) {
		tp4a_populate(t->rx);
		nr = tp4a_get_unprocessed(t->rx, tp4a_nr_handed_out(t->rx), &p);
	}
	if (nr < max) {
		xsk_tp4_is_low(t, nr);
		nr = tp4a_get_unprocessed(t->rx, tp4a_nr_handed_out(t->rx), &p);
	}
	if (unlikely(entered))
		xsk_tp4_sets_up(t);
	xsk_tp4_exit(entered);
	return min(nr, max);
}

/* Find the frame of a buffer by its place in the pool.
 * Return: false if it is not in the pool.
 */
static __always_inline bool xsk_tp4_find(const struct xsk_tp4 *t,
					 const struct xdp_buff *xdp,
					 struct tp4_frame *frame)
{
	const struct xdp_buff_xsk *xskb;
	unsigned long pos;

	xskb = container_of(xdp, struct xdp_buff_xsk, xdp);
	pos = (const void *)xskb - (const void *)t->heads;
	frame->idx = pos / sizeof(*xskb);
	return pos < t->nr_frames * sizeof(*xskb);
}

/* Get the position of a packet's data.
 * Return: false if it is not in the frame.
 */
static __always_inline bool xsk_tp4_get_data(const struct xsk_tp4 *t,
					     const struct xdp_buff *xdp,
					     struct tp4_frame *frame)
{
	unsigned long start = (unsigned long)t->addrs +
			      (frame->idx << t->shift) + t->headroom;
	unsigned long pos = (unsigned long)xdp->data - start;
	unsigned long end = (unsigned long)xdp->data_end - start;

	if (unlikely(pos > end || end > t->room))
		return false;
	frame->len = end - pos;
	frame->offset = pos + t->headroom;
	return true;
}

/* Move a frame from the pool to the received ones. */
static __always_inline bool xsk_tp4_add_frame(struct xsk_tp4 *t,
					      const struct tp4_frame *frame,
					      bool is_eop,
					      struct tp4_frame_set *p)
{
	if (unlikely(!__test_and_clear_bit(frame->idx, t->at_device) ||
		     !tp4a_next_by_id(t->rx, frame->idx, p)))
		return false;
	tp4f_set_frame(p, frame->len, frame->offset, is_eop);
	return true;
}

/* Check the frames of a packet after the first one.
 * @twice: set to true if the driver has handed over one of them before
 */
static bool xsk_tp4_check_frags(const struct xsk_tp4 *t, bool *twice)
{
	const struct xdp_buff_xsk *frag;
	struct tp4_frame frame;

	list_for_each_entry(frag, &t->pool->xskb_list, list_node) {
		if (!xsk_tp4_find(t, &frag->xdp, &frame) ||
		    !xsk_tp4_get_data(t, &frag->xdp, &frame))
			return false;
		if (!test_bit(frame.idx, t->at_device))
			*twice = true;
	}
	return true;
}

/* Move them. */
static noinline void xsk_tp4_add_frags(struct xsk_tp4 *t)
{
	struct list_head *list = &t->pool->xskb_list;
	struct xdp_buff_xsk *frag, *tmp;
	struct tp4_frame_set p;
	struct tp4_frame frame;

	list_for_each_entry_safe(frag, tmp, list, list_node) {
		xsk_tp4_find(t, &frag->xdp, &frame);
		xsk_tp4_get_data(t, &frag->xdp, &frame);
		xsk_tp4_add_frame(t, &frame, list_is_singular(list), &p);
		list_del_init(&frag->list_node);
	}
}

/* The return value of a function that xsk_tp4_rcv() tail-calls. GCC 14 and later do
 * not if they know it, and then save registers for each packet.
 */
static __always_inline int xsk_tp4_hide(int err)
{
	OPTIMIZER_HIDE_VAR(err);
	return err;
}

/* The driver has placed the data elsewhere. It keeps the frame. */
static noinline int xsk_tp4_reject(struct xsk_tp4 *t)
{
	netdev_warn_once(t->dev,
			 "the driver has moved a packet out of its frame\n");
	dev_core_stats_rx_dropped_inc(t->dev);
	return xsk_tp4_hide(-EINVAL);
}

/* The driver has handed over a frame twice. The program may already have it, so
 * the packet is dropped, but the frame is not given back to the pool.
 */
static noinline int xsk_tp4_drop_twice(struct xsk_tp4 *t)
{
	if (!t->twice)
		netdev_warn(t->dev, "the driver has handed over a frame twice\n");
	t->twice = true;
	dev_core_stats_rx_dropped_inc(t->dev);
	return xsk_tp4_hide(0);
}

/* Give a frame of a dropped packet back to the pool, if it is the pool's. */
static void xsk_tp4_put_back(struct xsk_tp4 *t, struct xdp_buff_xsk *xskb)
{
	struct tp4_frame frame;

	xsk_tp4_find(t, &xskb->xdp, &frame);
	if (test_bit(frame.idx, t->at_device))
		xp_free(xskb);
}

/* The driver has handed over a frame of this packet twice. */
static int xsk_tp4_drop_frags(struct xsk_tp4 *t, struct xdp_buff *xdp)
{
	struct xdp_buff_xsk *frag, *tmp;

	list_for_each_entry_safe(frag, tmp, &t->pool->xskb_list, list_node) {
		list_del_init(&frag->list_node);
		xsk_tp4_put_back(t, frag);
	}
	xsk_tp4_put_back(t, container_of(xdp, struct xdp_buff_xsk, xdp));
	return xsk_tp4_drop_twice(t);
}

/* Get what the driver knows of a packet, while it still has its descriptor. */
static void xsk_tp4_set_meta(struct xsk_tp4 *t, struct xdp_buff *xdp,
			     struct tp4_frame_set *p)
{
	const struct xdp_metadata_ops *ops = t->dev->xdp_metadata_ops;
	const struct xdp_md *ctx = (const struct xdp_md *)xdp;
	enum xdp_rss_hash_type type;
	__be16 proto;
	u64 tstamp;
	u32 hash;
	u16 tci;

	if (ops->xmo_rx_vlan_tag && !ops->xmo_rx_vlan_tag(ctx, &proto, &tci))
		tp4f_push_vlan(p, proto, tci);
	if (!tp4a_has_meta(t->rx))
		return;
	if (ops->xmo_rx_hash && !ops->xmo_rx_hash(ctx, &hash, &type))
		tp4f_set_hash(p, hash);
	if (ops->xmo_rx_timestamp && !ops->xmo_rx_timestamp(ctx, &tstamp))
		tp4f_set_hwtstamp(p, tstamp);
}

/* Flush the pool at the next xdp_do_flush(). */
static noinline int xsk_tp4_start_flush(struct xsk_tp4 *t)
{
	list_add(&t->xs.flush_node, bpf_net_ctx_get_xskmap_flush_list());
	return xsk_tp4_hide(0);
}

/* Receive a packet that may have several frames or metadata. noinline, so that
 * others do not pay for it.
 */
static noinline int xsk_tp4_rcv_any(struct xsk_tp4 *t, struct xdp_buff *xdp)
{
	struct tp4_frame_set p;
	struct tp4_frame frame;
	bool frags, twice = false;

	if (unlikely(READ_ONCE(t->leaving)))
		return -EINVAL;
	frags = xdp_buff_has_frags(xdp) && !list_empty(&t->pool->xskb_list);
	xsk_tp4_find(t, xdp, &frame);
	if (unlikely(!xsk_tp4_get_data(t, xdp, &frame) ||
		     (frags && !xsk_tp4_check_frags(t, &twice))))
		return xsk_tp4_reject(t);
	if (unlikely(twice || !xsk_tp4_add_frame(t, &frame, !frags, &p)))
		return xsk_tp4_drop_frags(t, xdp);
	if (frags)
		xsk_tp4_add_frags(t);
	if (t->has_meta)
		xsk_tp4_set_meta(t, xdp, &p);
	return t->xs.flush_node.prev ? 0 : xsk_tp4_start_flush(t);
}

/**
 * xsk_tp4_rcv() - receive a packet
 * @pool:	the pool
 * @xdp:	the packet
 *
 * Context: NAPI of the queue.
 * Return: 0, or -EINVAL if the packet is not in a frame of the pool, as the driver
 * has not set up the queue yet, if its data is not in that frame, or if the queue
 * pair has left the mode. The frame then still belongs to the driver.
 */
int xsk_tp4_rcv(struct xsk_buff_pool *pool, struct xdp_buff *xdp)
{
	struct tp4_frame_set p __uninitialized;
	struct xsk_tp4 *t = xsk_tp4_of(pool);
	struct tp4_frame frame;

	if (unlikely(!xsk_tp4_find(t, xdp, &frame)))
		return -EINVAL;
	if (unlikely(xdp_buff_has_frags(xdp) || t->has_meta))
		return xsk_tp4_rcv_any(t, xdp);
	if (unlikely(!xsk_tp4_get_data(t, xdp, &frame)))
		return xsk_tp4_reject(t);
	if (unlikely(!xsk_tp4_add_frame(t, &frame, true, &p)))
		return xsk_tp4_drop_twice(t);
	return likely(t->xs.flush_node.prev) ? 0 : xsk_tp4_start_flush(t);
}

static void xsk_tp4_set_napi(struct xsk_tp4 *t)
{
	const struct xdp_rxq_info *rxq = t->pool->heads[0].xdp.rxq;

	if (likely(rxq))
		tp4a_set_napi_id(t->rx, rxq->napi_id);
}

/**
 * xsk_tp4_flush() - run XDP on the received packets, and publish them
 * @pool:	the pool
 *
 * Context: NAPI of the queue.
 * Return: true if packets were redirected, so that the maps have to be flushed.
 */
bool xsk_tp4_flush(struct xsk_buff_pool *pool)
{
	struct xsk_tp4 *t = xsk_tp4_of(pool);

	if (unlikely(READ_ONCE(t->leaving)))
		return false;
	xsk_tp4_set_napi(t);
	t->xdp.prog = READ_ONCE(t->prog);
	t->xdp.redirect = 0;
	tp4a_flush(t->rx);
	for (; unlikely(t->xdp.errors); t->xdp.errors--)
		dev_core_stats_rx_dropped_inc(t->dev);
	return t->xdp.redirect;
}

static bool xsk_tp4_xdp_xmit(struct net_device *dev, struct xdp_frame *frame)
{
	u32 needed = NETDEV_XDP_ACT_NDO_XMIT;

	if (xdp_frame_has_frags(frame))
		needed |= NETDEV_XDP_ACT_NDO_XMIT_SG;
	if ((READ_ONCE(dev->xdp_features) & needed) != needed)
		return false;
	return dev->netdev_ops->ndo_xdp_xmit(dev, 1, &frame,
					     XDP_XMIT_FLUSH) == 1;
}

/* A driver may have that function only on its first CPUs: i40e on as many as it
 * has channels. Elsewhere, the packet goes the way of the stack's.
 */
static int xsk_tp4_xdp_tx(void *arg, struct xdp_frame *frame)
{
	const struct xsk_tp4 *t = arg;
	struct net_device *dev = t->dev;
	struct sk_buff *skb;

	if (likely(xsk_tp4_xdp_xmit(dev, frame)))
		return 0;
	skb = xdp_build_skb_from_frame(frame, dev);
	if (unlikely(!skb))
		return -ENOMEM;
	__skb_push(skb, ETH_HLEN);
	/* The frame is the skb's, and the device counts it if it is dropped. */
	dev_direct_xmit(skb, t->queue_pair);
	return 0;
}

/* ---- sending ---- */

/* Inline, so that packets that want no more do not pay for it. */
static __always_inline int xsk_tp4_check_packet(const struct xsk_tp4 *t,
						const struct tp4_frame_set *p)
{
	const struct tp4_limits limits = {
		.tx_min = XSK_TP4_TX_MIN, .tx_chain = t->dev->xdp_zc_max_segs,
	};

	return tp4f_check_packet(p, t->dev, &limits);
}

/* Check a packet that wants more than to be sent, and do it. Its timestamp is taken
 * now: the driver gets it next.
 */
static noinline int xsk_tp4_do_more(const struct xsk_tp4 *t,
				    struct tp4_frame_set *p)
{
	struct tp4_offload o = {};
	int err = 0;

	if (tp4f_has_meta(p))
		err = tp4f_get_offload(p, t->dev, &o);
	if (!err && o.gso_type)
		err = -EOPNOTSUPP;
	if (!err)
		err = xsk_tp4_check_packet(t, p);
	if (err)
		return err;
	if (o.start)
		tp4f_checksum(p, &o);
	if (tp4f_wants_stamp(p))
		tp4f_stamp(p);
	return 0;
}

/* Check whether a packet can be sent. xsk_tp4_fill() may check it more than once. */
static int xsk_tp4_check(const struct xsk_tp4 *t, struct tp4_frame_set *p)
{
	if (unlikely(tp4f_wants_more(p)))
		return xsk_tp4_do_more(t, p);
	return xsk_tp4_check_packet(t, p);
}

static void xsk_tp4_set_desc(const struct xsk_tp4 *t, struct xdp_desc *desc,
			     const struct tp4_frame_set *p)
{
	desc->addr = (tp4f_get_frame_id(p) << t->shift) +
		     tp4f_get_data_offset(p);
	desc->len = tp4f_get_frame_len(p);
	desc->options = tp4f_is_last_frame(p) ? 0 : XDP_PKT_CONTD;
}

/* Return the refused packets that no packet in flight stands before, under
 * tx_lock.
 */
static void xsk_tp4_return_refused(struct xsk_tp4 *t)
{
	tp4a_flush_completed(t->tx);
	if (!tp4a_nr_processed(t->tx))
		t->tx_mixed = false;
}

/* Find the next packet that can be sent, and refuse those before it.
 * Return: its number of frames, which are not counted as processed yet, or 0.
 */
static noinline u32 xsk_tp4_next(struct xsk_tp4 *t)
{
	struct tp4_frame_set p;
	int err;

	while (tp4a_nr_unprocessed(t->tx)) {
		tp4a_get_packet(t->tx, tp4a_next_handle(t->tx), &p);
		err = xsk_tp4_check(t, &p);
		if (likely(!err))
			return tp4f_num_frames(&p);
		spin_lock(&t->tx_lock);
		tp4f_set_error(&p, -err);
		tp4f_packet_completed(&p);
		tp4a_advance(t->tx, tp4f_num_frames(&p));
		t->tx_mixed = true;
		spin_unlock(&t->tx_lock);
	}
	spin_lock(&t->tx_lock);
	if (t->tx_mixed)
		xsk_tp4_return_refused(t);
	spin_unlock(&t->tx_lock);
	return 0;
}

/* Write descriptors of packets of one frame, the common case, up to one that has
 * more frames, wants more, or is shorter or longer than usual, or to the end of
 * the array's memory.
 */
static u32 xsk_tp4_fill_plain(struct xsk_tp4 *t, struct xdp_desc *descs, u32 max)
{
	u32 max_len = READ_ONCE(t->dev->mtu) + ETH_HLEN;
	const struct tp4_frame *frame;
	struct xdp_desc *desc = descs;
	struct tp4_frame_set p;
	const u8 shift = t->shift;
	u32 nr;

	nr = tp4a_get_unprocessed(t->tx, 0, &p);
	max = min3(max, nr, tp4a_run(t->tx, p.curr));
	frame = tp4f_frame(&p);
	for (; desc != descs + max; desc++, frame++) {
		if (unlikely(frame->len < XSK_TP4_TX_MIN ||
			     frame->len > max_len ||
			     frame->flags & (TP4_PKT_CONT | TP4_META |
					     TP4F_STAMP)))
			break;
		desc->addr = (frame->idx << shift) + frame->offset;
		desc->len = frame->len;
		desc->options = 0;
	}
	nr = desc - descs;
	tp4a_advance(t->tx, nr);
	return nr;
}

/* Write descriptors of whole packets.
 * Return: their number, at most @max.
 */
static u32 xsk_tp4_fill(struct xsk_tp4 *t, struct xdp_desc *descs, u32 max)
{
	struct tp4_frame_set p;
	u32 nr = 0, frames;

	for (;;) {
		nr += xsk_tp4_fill_plain(t, descs + nr, max - nr);
		if (nr == max || !tp4a_nr_unprocessed(t->tx))
			return nr;
		frames = xsk_tp4_next(t);
		if (!frames || frames > max - nr)
			return nr;
		tp4a_get_unprocessed(t->tx, 0, &p);
		tp4a_advance(t->tx, frames);
		for (; frames; frames--, p.curr++)
			xsk_tp4_set_desc(t, &descs[nr++], &p);
	}
}

/* Return frames that have been sent, under tx_lock. */
static void xsk_tp4_return_sent(struct xsk_tp4 *t, u32 nr)
{
	struct tp4_packet_array *tx = t->tx;
	struct tp4_frame_set p;
	u32 left;

	if (unlikely(atomic_read(&t->tx_late)))
		nr += atomic_xchg(&t->tx_late, 0);
	if (likely(!t->tx_mixed)) {
		tp4a_flush_sent(tx, min(nr, tp4a_nr_processed(tx)));
		return;
	}
	/* The driver does not know of those that were refused. */
	left = tp4a_nr_processed(tx);
	p = (struct tp4_frame_set) {
		.pkt_arr = tx,
		.curr = tx->start,
	};
	for (; left && nr; left--, p.curr++) {
		struct tp4_frame *frame = tp4f_frame(&p);

		if (frame->flags & TP4F_COMPLETED)
			continue;
		frame->flags |= TP4F_COMPLETED;
		nr--;
	}
	xsk_tp4_return_refused(t);
}

static void xsk_tp4_tx_populate(struct xsk_tp4 *t)
{
	spin_lock(&t->tx_lock);
	if (unlikely(atomic_read(&t->tx_late)))
		xsk_tp4_return_sent(t, 0);
	tp4a_populate(t->tx);
	spin_unlock(&t->tx_lock);
}

/**
 * xsk_tp4_tx_peek_batch() - get packets to send
 * @pool:	the pool; its tx_descs are set
 * @max:	maximum number of descriptors
 *
 * Context: NAPI of the queue. netpoll calls it with interrupts disabled; packets
 * of sockets then wait for the next run.
 * Return: the number of descriptors.
 */
u32 xsk_tp4_tx_peek_batch(struct xsk_buff_pool *pool, u32 max)
{
	struct xsk_tp4 *t = xsk_tp4_of(pool);
	bool entered;
	u32 nr;

	if (READ_ONCE(t->no_tx) || unlikely(irqs_disabled()))
		return 0;
	entered = xsk_tp4_enter();
	xsk_tp4_tx_populate(t);
	nr = xsk_tp4_fill(t, pool->tx_descs, min(max, pool->tx_descs_nentries));
	xsk_tp4_exit(entered);
	return nr;
}

/**
 * xsk_tp4_tx_peek() - get a frame to send
 * @pool:	the pool
 * @desc:	set to the frame's descriptor
 *
 * Context: As xsk_tp4_tx_peek_batch().
 * Return: false if there is none.
 */
bool xsk_tp4_tx_peek(struct xsk_buff_pool *pool, struct xdp_desc *desc)
{
	struct xsk_tp4 *t = xsk_tp4_of(pool);
	struct tp4_frame_set p;
	bool entered;

	if (READ_ONCE(t->no_tx) || unlikely(irqs_disabled()))
		return false;
	entered = xsk_tp4_enter();
	if (!tp4a_nr_unprocessed(t->tx))
		xsk_tp4_tx_populate(t);
	if (!t->tx_left)
		t->tx_left = xsk_tp4_next(t);
	xsk_tp4_exit(entered);
	if (!t->tx_left)
		return false;
	t->tx_left--;
	tp4a_next_frame(t->tx, &p);
	xsk_tp4_set_desc(t, desc, &p);
	return true;
}

/**
 * xsk_tp4_tx_completed() - return frames that have been sent
 * @pool:	the pool
 * @nr:		number of descriptors that the device has completed, in the order
 *		of xsk_tx_peek_desc()
 *
 * Context: Any except NMI; by one context at a time, which need not be that of
 * xsk_tp4_tx_peek_batch().
 */
void xsk_tp4_tx_completed(struct xsk_buff_pool *pool, u32 nr)
{
	struct xsk_tp4 *t = xsk_tp4_of(pool);
	bool entered;

	if (unlikely(READ_ONCE(t->no_tx)))
		return;
	/* netpoll may send in a hard interrupt. */
	if (unlikely(irqs_disabled())) {
		atomic_add(nr, &t->tx_late);
		xsk_tp4_start_timer(t, XSK_TP4_SOON);
		return;
	}
	entered = xsk_tp4_enter();
	spin_lock(&t->tx_lock);
	xsk_tp4_return_sent(t, nr);
	spin_unlock(&t->tx_lock);
	xsk_tp4_exit(entered);
}

/* ---- wakeups ---- */

/* Call ndo_xsk_wakeup. A driver that is being reconfigured refuses, and does not
 * look at the rings when it has finished. Without a carrier, as for a while after
 * the program has been attached, some keep packets, and others refuse; they do not
 * look at the rings when it comes either.
 */
static int xsk_tp4_wake(struct xsk_tp4 *t, u32 flags)
{
	int err;

	err = t->dev->netdev_ops->ndo_xsk_wakeup(t->dev, t->queue_pair, flags);
	if (likely(!err && netif_carrier_ok(t->dev)))
		return 0;
	/* ndo_open may not have returned yet. */
	if (!netif_running(t->dev))
		return -ENETDOWN;
	xsk_tp4_start_timer(t, netif_carrier_ok(t->dev) ? XSK_TP4_RETRY :
							  XSK_TP4_NO_CARRIER);
	return 0;
}

/* The program has posted frames, and the driver has none. idpf, which refills a
 * queue when it has received from it, then never asks for one, and does not start
 * a queue that finds no frame at set-up.
 */
static void xsk_tp4_check_dry(struct xsk_tp4 *t)
{
	if (!READ_ONCE(t->fills))
		return;
	if (!READ_ONCE(t->dry)) {
		WRITE_ONCE(t->asked, false);
		WRITE_ONCE(t->waits, 0);
		WRITE_ONCE(t->dry, true);
	}
	if (!hrtimer_is_queued(&t->timer))
		xsk_tp4_start_timer(t, XSK_TP4_RETRY);
}

/* Wait until the driver has got frames or asks for some, and otherwise set up the
 * queue again.
 */
static void xsk_tp4_wait_dry(struct xsk_tp4 *t)
{
	/* If this misses frames, the timer looks again. */
	if (READ_ONCE(t->asked) || data_race(xsk_tp4_posted(t))) {
		WRITE_ONCE(t->dry, false);
	} else if (++t->waits < XSK_TP4_WAITS || !netif_carrier_ok(t->dev)) {
		if (!hrtimer_is_queued(&t->timer))
			xsk_tp4_start_timer(t, XSK_TP4_RETRY);
	} else {
		schedule_delayed_work(&t->restart, 0);
	}
}

static enum hrtimer_restart xsk_tp4_timer(struct hrtimer *timer)
{
	struct xsk_tp4 *t = container_of(timer, struct xsk_tp4, timer);

	rcu_read_lock();
	if (!READ_ONCE(t->leaving) && netif_running(t->dev)) {
		xsk_tp4_wake(t, XDP_WAKEUP_RX | (t->tx ? XDP_WAKEUP_TX : 0));
		if (unlikely(READ_ONCE(t->dry)))
			xsk_tp4_wait_dry(t);
	}
	rcu_read_unlock();
	return HRTIMER_NORESTART;
}

/**
 * xsk_tp4_xmit() - ndo_tp4_xmit for drivers that support AF_XDP's zero-copy mode
 * @dev:	the device
 * @queue_pair:	the queue pair, in zero-copy mode
 * @flags:	TP4_WAKEUP_*
 * @posted:	whether empty frames are posted; valid with TP4_WAKEUP_RX
 *
 * Context: Any except hard interrupt, under RCU.
 * Return: 0, -ENXIO if the queue pair is no longer in zero-copy mode, or
 * -ENETDOWN.
 */
int xsk_tp4_xmit(struct net_device *dev, int queue_pair, u32 flags, bool posted)
{
	struct xsk_buff_pool *pool;
	struct xsk_tp4 *t;
	u32 xdp_flags = 0;

	pool = READ_ONCE(dev->_rx[queue_pair].pool);
	t = pool ? xsk_tp4_of(pool) : NULL;
	if (!t)
		return -ENXIO;
	if (flags & TP4_WAKEUP_RX)
		xdp_flags |= XDP_WAKEUP_RX;
	/* If this misses frames, the next check finds them. */
	if (flags & TP4_WAKEUP_RX && posted && !data_race(xsk_tp4_posted(t)))
		xsk_tp4_check_dry(t);
	if (flags & TP4_WAKEUP_TX)
		xdp_flags |= XDP_WAKEUP_TX;
	return xsk_tp4_wake(t, xdp_flags);
}

/* ---- the XDP program ---- */

/* Find the owner of a packet's queue. The buffer need not be one of the pool,
 * whatever its Rx queue says: gve copies a packet to a frame of the pool after the
 * program has returned.
 */
static __always_inline struct xsk_tp4 *xsk_tp4_of_xdp(const struct xdp_buff *xdp)
{
	const struct xdp_rxq_info *rxq = xdp->rxq;
	const struct xsk_buff_pool *pool;

	pool = READ_ONCE(rxq->dev->_rx[rxq->queue_index].pool);
	return pool ? xsk_tp4_of(pool) : NULL;
}

static __always_inline u32 xsk_tp4_redirect_to(struct xsk_tp4 *t)
{
	struct bpf_redirect_info *ri = bpf_net_ctx_get_ri();

	ri->tgt_value = &t->xs;
	ri->tgt_index = t->queue_pair;
	ri->map_id = INT_MAX;
	ri->map_type = BPF_MAP_TYPE_XSKMAP;
	return XDP_REDIRECT;
}

/* Check whether a packet is for a socket. */
static __always_inline bool xsk_tp4_receives(const struct xsk_tp4 *t)
{
	return t && likely(!t->nr_own);
}

/* The program's only instruction is a call of this, so that it needs no map. It
 * runs for all queues of a device.
 */
BPF_CALL_1(xsk_tp4_redirect, struct xdp_buff *, xdp)
{
	struct xsk_tp4 *t = xsk_tp4_of_xdp(xdp);

	return xsk_tp4_receives(t) ? xsk_tp4_redirect_to(t) : XDP_PASS;
}

/* Same for a device with a program of its own */
BPF_CALL_2(xsk_tp4_redirect_or_run, struct xdp_buff *, xdp,
	   const struct bpf_prog *, prog)
{
	struct xsk_tp4 *t = xsk_tp4_of_xdp(xdp);

	return xsk_tp4_receives(t) ? xsk_tp4_redirect_to(t) :
				     bpf_prog_run(prog, xdp);
}

static struct bpf_prog *xsk_tp4_new_prog(const struct bpf_insn *insns, u32 nr)
{
	struct bpf_prog *prog;
	int err;

	prog = bpf_prog_alloc(bpf_prog_size(nr), 0);
	if (!prog)
		return NULL;
	prog->len = nr;
	prog->type = BPF_PROG_TYPE_XDP;
	prog->gpl_compatible = 1;
	prog->aux->xdp_has_frags = true;
	strscpy(prog->aux->name, "tp4_redirect", sizeof(prog->aux->name));
	atomic64_set(&prog->aux->refcnt, 1);
	memcpy(prog->insnsi, insns, nr * sizeof(*insns));
	prog = bpf_prog_select_runtime(prog, &err);
	if (err) {
		bpf_prog_free(prog);
		return NULL;
	}
	bpf_prog_kallsyms_add(prog);
	return prog;
}

static struct bpf_prog *xsk_tp4_get_prog(void)
{
	const struct bpf_insn insns[] = {
		BPF_EMIT_CALL(xsk_tp4_redirect),
		BPF_EXIT_INSN(),
	};

	if (!xsk_tp4_prog)
		xsk_tp4_prog = xsk_tp4_new_prog(insns, ARRAY_SIZE(insns));
	if (xsk_tp4_prog)
		bpf_prog_inc(xsk_tp4_prog);
	return xsk_tp4_prog;
}

/**
 * xsk_tp4_wrap() - get the program for a driver
 * @own:	the device's own program, or NULL
 *
 * Context: Under RTNL, may sleep.
 * Return: a program of the kernel's, with a reference for the driver, or NULL if
 * there is no memory. It holds @own.
 */
struct bpf_prog *xsk_tp4_wrap(struct bpf_prog *own)
{
	const struct bpf_insn insns[] = {
		BPF_LD_IMM64(BPF_REG_2, (unsigned long)own),
		BPF_EMIT_CALL(xsk_tp4_redirect_or_run),
		BPF_EXIT_INSN(),
	};
	struct bpf_prog *prog;

	if (!own)
		return xsk_tp4_get_prog();
	prog = xsk_tp4_new_prog(insns, ARRAY_SIZE(insns));
	if (!prog)
		return NULL;
	/* Drivers refuse a program without frags if packets are too long. */
	prog->aux->xdp_has_frags = own->aux->xdp_has_frags;
	bpf_prog_inc(own);
	prog->aux->dst_prog = own;
	return prog;
}

/**
 * xsk_tp4_may_wrap() - check whether the kernel's program can call another
 * @own:	the other one, or NULL
 *
 * Functions of the driver that return metadata need its buffers, which the program
 * does not get for packets of sockets.
 *
 * Return: true if @own is not bound to the device.
 */
bool xsk_tp4_may_wrap(const struct bpf_prog *own)
{
	return !own || !bpf_prog_is_dev_bound(own->aux);
}

static struct xsk_tp4 *xsk_tp4_of_queue(const struct net_device *dev,
					unsigned int i)
{
	const struct xsk_buff_pool *pool = dev->_rx[i].pool;

	return pool ? xsk_tp4_of(pool) : NULL;
}

/**
 * xsk_tp4_setup_prog() - ndo_bpf for XDP_SETUP_PROG while xsk_tp4_holds_xdp()
 * @dev:	the device
 * @bpf:	the device's own program, or NULL; the reference moves here
 *
 * Context: Under RTNL and the lock of the device, if it has one; may sleep.
 * Return: 0, -EBUSY if the program is bound to the device, -ENOMEM, or an error of
 * the driver.
 */
int xsk_tp4_setup_prog(struct net_device *dev, struct netdev_bpf *bpf)
{
	struct bpf_prog *own = bpf->prog;
	struct xsk_tp4 *t;
	unsigned int i;
	int err;

	if (!xsk_tp4_may_wrap(own)) {
		NL_SET_ERR_MSG(bpf->extack,
			       "A zerocopy packet socket excludes device-bound XDP programs");
		return -EBUSY;
	}
	bpf->prog = xsk_tp4_wrap(own);
	if (!bpf->prog)
		return -ENOMEM;
	err = dev->netdev_ops->ndo_bpf(dev, bpf);
	if (err) {
		bpf_prog_put(bpf->prog);
		return err;
	}
	for (i = 0; i < dev->num_rx_queues; i++) {
		t = xsk_tp4_of_queue(dev, i);
		if (t)
			WRITE_ONCE(t->prog, own);
	}
	/* The device still has a reference, and the kernel's program another. */
	if (own)
		bpf_prog_put(own);
	return 0;
}

/* Give the driver the kernel's program, if it does not have it. */
static int xsk_tp4_attach_prog(struct xsk_tp4 *t)
{
	struct net_device *dev = t->dev;
	struct bpf_prog *prog;
	unsigned int i;
	int err;

	if (xsk_tp4_holds_xdp(dev)) {
		for (i = 0; !xsk_tp4_of_queue(dev, i); i++)
			;
		t->prog = xsk_tp4_of_queue(dev, i)->prog;
		return 0;
	}
	prog = xsk_tp4_get_prog();
	if (!prog)
		return -ENOMEM;
	err = dev_xdp_attach_kernel(dev, prog, &t->prog);
	bpf_prog_put(prog);
	return err;
}

static void xsk_tp4_detach_prog(struct net_device *dev)
{
	if (!xsk_tp4_holds_xdp(dev))
		dev_xdp_detach_kernel(dev, xsk_tp4_prog);
}

/**
 * xsk_tp4_holds_xdp() - check whether the driver has the kernel's XDP program
 * @dev:	the device
 *
 * While it has, the device's own program is called by the kernel's.
 *
 * Context: Under RTNL.
 * Return: true if a queue pair is in zero-copy mode by AF_XDP's interface.
 */
bool xsk_tp4_holds_xdp(const struct net_device *dev)
{
	unsigned int i;

	if (!static_branch_unlikely(&xsk_tp4_key))
		return false;
	for (i = 0; i < dev->num_rx_queues; i++) {
		if (xsk_tp4_of_queue(dev, i))
			return true;
	}
	return false;
}

/* ---- VLAN tags ---- */

/* Check whether the driver returns the tag that the device has stripped. */
static bool xsk_tp4_gets_tag(const struct net_device *dev)
{
	const struct xdp_metadata_ops *ops = dev->xdp_metadata_ops;

	return ops && ops->xmo_rx_vlan_tag;
}

/**
 * xsk_tp4_keeps_tags() - check whether a device must not strip VLAN tags
 * @dev:	the device
 *
 * If the driver does not return the tag, packets of the sockets would lack it.
 *
 * Context: Under RTNL.
 * Return: true if a queue pair is in zero-copy mode by AF_XDP's interface, and the
 * driver does not return tags.
 */
bool xsk_tp4_keeps_tags(const struct net_device *dev)
{
	return (dev == xsk_tp4_entering || xsk_tp4_holds_xdp(dev)) &&
	       !xsk_tp4_gets_tag(dev);
}

/* Check whether stripping cannot be turned off. Of service tags, stmmac only says
 * that it strips them.
 */
static bool xsk_tp4_loses_tags(const struct net_device *dev)
{
	return dev->features & NETIF_F_HW_VLAN_CTAG_RX & ~dev->hw_features &&
	       !xsk_tp4_gets_tag(dev);
}

/* Turn it off before the first queue pair enters the mode. */
static int xsk_tp4_keep_tags(struct net_device *dev)
{
	const netdev_features_t strip = XSK_TP4_STRIP & dev->hw_features;

	if (!(dev->features & strip) || xsk_tp4_gets_tag(dev))
		return 0;
	xsk_tp4_entering = dev;
	netdev_update_features(dev);
	xsk_tp4_entering = NULL;
	return dev->features & strip ? -EOPNOTSUPP : 0;
}

/* Turn it on again, if it was on, after the last one has left. */
static void xsk_tp4_release_tags(struct net_device *dev)
{
	if (dev->reg_state == NETREG_REGISTERED && !xsk_tp4_holds_xdp(dev))
		netdev_update_features(dev);
}

/* ---- setup and teardown ---- */

/* Drivers that no socket can use */
static const char * const xsk_tp4_unusable[] = {
	/* dpaa2 keeps a kernel address in the frame, where user space can write. */
	"fsl_dpaa2_eth",
	/* octeontx2 takes the buffer that was allocated last for the one that the
	 * device has written.
	 */
	"rvu_nicpf",
	"rvu_nicvf",
};

static bool xsk_tp4_is_usable(const struct net_device *dev)
{
	const struct device *parent = dev->dev.parent;

	return !parent || match_string(xsk_tp4_unusable,
				       ARRAY_SIZE(xsk_tp4_unusable),
				       dev_driver_string(parent)) < 0;
}

/**
 * xsk_tp4_supports() - check whether a device supports AF_XDP's zero-copy mode
 * @dev:	the device
 *
 * Context: Under RTNL.
 * Return: true if it does, in a way that V4 can use.
 */
bool xsk_tp4_supports(const struct net_device *dev)
{
	const u32 needed = NETDEV_XDP_ACT_BASIC | NETDEV_XDP_ACT_REDIRECT |
			   NETDEV_XDP_ACT_XSK_ZEROCOPY;

	return (dev->xdp_features & needed) == needed &&
	       dev->netdev_ops->ndo_bpf && dev->netdev_ops->ndo_xsk_wakeup &&
	       xsk_tp4_is_usable(dev) && !xsk_tp4_loses_tags(dev);
}

static void xsk_tp4_free(struct xsk_tp4 *t)
{
	tp4a_free(t->rx);
	tp4a_free(t->tx);
	t->rx = NULL;
	t->tx = NULL;
}

/* The driver may still use the pool, which gets no more frames. */
static void xsk_tp4_keep(struct xsk_tp4 *t)
{
	t->area = tp4a_hold_area(t->rx ?: t->tx);
	list_add(&t->kept, &xsk_tp4_kept);
	xsk_tp4_free(t);
}

/* Free what the driver may use, too. */
static void xsk_tp4_free_pool(struct xsk_tp4 *t)
{
	xp_destroy(t->pool);
	bitmap_free(t->at_device);
	vunmap(t->addrs);
	while (t->nr_pages > t->nr_area_pages)
		__free_page(t->pages[--t->nr_pages]);
	kvfree(t->pages);
	kfree(t);
}

/* Map the area, with pages behind it that user space cannot write to. */
static int xsk_tp4_map(struct xsk_tp4 *t, const struct tp4_area_info *area)
{
	unsigned long nr = area->nr_pages + 1 +
			   DIV_ROUND_UP((u64)t->nr_own * XSK_TP4_OWN_SIZE,
					PAGE_SIZE);
	struct page *page;

	/* frame_sz of struct xdp_buff has 32 bits. */
	if (nr > U32_MAX >> PAGE_SHIFT)
		return -EOPNOTSUPP;
	BUILD_BUG_ON(SKB_DATA_ALIGN(sizeof(struct skb_shared_info)) > PAGE_SIZE);
	t->pages = kvmalloc_array(nr, sizeof(*t->pages), GFP_KERNEL_ACCOUNT);
	if (!t->pages)
		return -ENOMEM;
	memcpy(t->pages, area->pages, area->nr_pages * sizeof(*t->pages));
	t->nr_area_pages = area->nr_pages;
	for (t->nr_pages = area->nr_pages; t->nr_pages < nr; t->nr_pages++) {
		page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!page)
			return -ENOMEM;
		t->pages[t->nr_pages] = page;
	}
	t->addrs = vmap(t->pages, nr, VM_MAP, PAGE_KERNEL);
	return t->addrs ? 0 : -ENOMEM;
}

static int xsk_tp4_new_pool(struct xsk_tp4 *t, const struct tp4_area_info *area)
{
	void *end;
	u32 i;
	int err;

	err = xsk_tp4_map(t, area);
	if (err)
		return err;
	t->nr_frames = area->nr_frames;
	t->shift = ilog2(area->frame_unit);
	t->at_device = bitmap_zalloc(area->nr_frames, GFP_KERNEL_ACCOUNT);
	if (!t->at_device)
		return -ENOMEM;

	t->umem.addrs = t->addrs;
	t->umem.size = (u64)(t->nr_pages - 1) << PAGE_SHIFT;
	t->umem.headroom = area->headroom;
	t->umem.chunk_size = area->frame_size;
	t->umem.chunks = t->nr_frames + t->nr_own;
	t->umem.pgs = t->pages;
	t->umem.npgs = t->nr_pages - 1;
	INIT_LIST_HEAD(&t->umem.xsk_dma_list);
	refcount_set(&t->umem.users, 1);
	t->fill.ring = &t->ring;
	t->send.nentries = area->nr_descs;
	t->xs.fq_tmp = &t->fill;
	t->xs.cq_tmp = &t->complete;
	t->xs.tx = &t->send;
	t->pool = xp_create_and_assign_umem(&t->xs, &t->umem,
					    t->dev->xdp_zc_max_segs);
	if (!t->pool)
		return -ENOMEM;
	t->xs.pool = t->pool;
	t->heads = t->pool->heads;
	t->headroom = area->headroom + VLAN_HLEN;
	t->room = area->frame_size - t->headroom;
	t->rxq.dev = t->dev;
	t->rxq.queue_index = t->queue_pair;
	t->rxq.mem.type = MEM_TYPE_XSK_BUFF_POOL;

	/* Place skb_shared_info at the end of the last page. */
	end = t->addrs + (t->nr_pages << PAGE_SHIFT);
	for (i = 0; i < t->pool->heads_cnt; i++) {
		struct xdp_buff *xdp = &t->heads[i].xdp;

		xdp->rxq = &t->rxq;
		if (!t->nr_own)
			xdp->frame_sz = end - xdp->data_hard_start;
	}
	return 0;
}

static int xsk_tp4_new_arrays(struct xsk_tp4 *t,
			      const struct tp4_netdev_parms *parms)
{
	const struct xdp_metadata_ops *ops = t->dev->xdp_metadata_ops;

	spin_lock_init(&t->tx_lock);
	if (parms->tx_opaque) {
		t->tx = tp4a_tx_new(parms->tx_opaque, XSK_TP4_TX_SIZE, NULL);
		if (!t->tx)
			return -ENOMEM;
	}
	t->no_tx = !t->tx;
	t->no_rx = t->nr_own;
	if (t->nr_own)
		return 0;

	/* tp4a_rx_new() takes over frames of copy mode, so call it last. */
	t->rx = tp4a_rx_new(parms->rx_opaque, SIZE_MAX, NULL);
	if (!t->rx)
		return -ENOMEM;
	t->xdp.buff = &t->xdp_buff;
	t->xdp.rxq = &t->rxq;
	t->xdp.xmit = xsk_tp4_xdp_tx;
	t->xdp.arg = t;
	tp4a_set_xdp(t->rx, &t->xdp);
	t->has_meta = ops && (ops->xmo_rx_vlan_tag || tp4a_has_meta(t->rx));
	return 0;
}

/* Check whether packets fit, with *@flags set to XDP_USE_SG if they need several
 * frames.
 */
static int xsk_tp4_check_mtu(const struct net_device *dev,
			     const struct tp4_area_info *area, u16 *flags)
{
	u32 room = area->frame_size - area->headroom - XDP_PACKET_HEADROOM;
	u32 needed = dev->mtu + XSK_TP4_PAD;

	if (room < XSK_TP4_ROOM_MIN)
		return -EINVAL;
	if (needed <= ALIGN_DOWN(room, 128))
		return 0;
	if (dev->xdp_zc_max_segs < 2)
		return -EMSGSIZE;
	*flags = XDP_USE_SG;
	room = ALIGN_DOWN(room - xsk_pool_get_tailroom(true), 128);
	return needed > room * dev->xdp_zc_max_segs ? -EMSGSIZE : 0;
}

/* Put frames that the driver no longer has back into the array. */
static void xsk_tp4_reclaim(struct xsk_tp4 *t)
{
	struct tp4_frame_set p;
	unsigned long idx;

	if (!t->rx)
		return;
	local_bh_disable();
	for_each_set_bit(idx, t->at_device, t->nr_frames) {
		if (tp4a_next_by_id(t->rx, idx, &p))
			tp4a_recycle(t->rx);
	}
	bitmap_zero(t->at_device, t->nr_frames);
	local_bh_enable();
}

static void xsk_tp4_stop(struct xsk_tp4 *t)
{
	WRITE_ONCE(t->leaving, true);
	WRITE_ONCE(t->has_meta, true);
	WRITE_ONCE(t->no_rx, true);
	WRITE_ONCE(t->no_tx, true);
	/* Wait for kicks, which may start the timer, and for a driver that has
	 * not stopped.
	 */
	synchronize_net();
	hrtimer_cancel(&t->timer);
	cancel_delayed_work_sync(&t->restart);
	if (netif_running(t->dev))
		usleep_range(XSK_TP4_QUIET_US, XSK_TP4_QUIET_US + 1000);
}

static int xsk_tp4_set_pool(const struct xsk_tp4 *t, struct xsk_buff_pool *pool)
{
	struct netdev_bpf bpf = {
		.command = XDP_SETUP_XSK_POOL,
		.xsk.pool = pool,
		.xsk.queue_id = t->queue_pair,
	};

	return t->dev->netdev_ops->ndo_bpf(t->dev, &bpf);
}

static void xsk_tp4_restart(struct work_struct *work)
{
	struct xsk_tp4 *t = container_of(to_delayed_work(work), struct xsk_tp4,
					 restart);
	int err = 0;

	/* Whoever waits for this work holds it. */
	if (!rtnl_trylock()) {
		schedule_delayed_work(&t->restart, 1);
		return;
	}
	if (!t->leaving && netif_running(t->dev) && !xsk_tp4_posted(t)) {
		err = xsk_tp4_set_pool(t, NULL);
		if (!err)
			err = xsk_tp4_set_pool(t, t->pool);
	}
	if (err)
		netdev_err(t->dev, "queue %d does not start again: %pe\n",
			   t->queue_pair, ERR_PTR(err));
	WRITE_ONCE(t->dry, false);
	rtnl_unlock();
}

/* Get the number of frames that a driver needs for its Rx queue. */
static u32 xsk_tp4_nr_own(struct net_device *dev)
{
	struct ethtool_ringparam ring = { .cmd = ETHTOOL_GRINGPARAM };
	const struct ethtool_ops *ops = dev->ethtool_ops;
	struct kernel_ethtool_ringparam more = {};

	if (!ops || !ops->get_ringparam)
		return XSK_TP4_OWN_NR;
	ops->get_ringparam(dev, &ring, &more, NULL);
	return max(ring.rx_pending, XSK_TP4_OWN_NR);
}

static int xsk_tp4_enable(struct net_device *dev,
			  const struct tp4_netdev_parms *parms)
{
	struct tp4_area_info area, tx_area;
	u16 flags = 0;
	struct xsk_tp4 *t;
	int err;

	if (!xsk_tp4_supports(dev))
		return -EOPNOTSUPP;
	tp4_get_area(parms->rx_opaque ?: parms->tx_opaque, &area);
	if (area.frame_unit != area.frame_size)
		return -EOPNOTSUPP;
	if (!parms->rx_opaque) {
		/* from here on, those of the kernel's own frames */
		area.frame_size = XSK_TP4_OWN_SIZE;
		area.nr_frames = area.nr_pages * (PAGE_SIZE / XSK_TP4_OWN_SIZE);
		area.headroom = 0;
	} else if (parms->tx_opaque) {
		tp4_get_area(parms->tx_opaque, &tx_area);
		if (tx_area.id != area.id)
			return -EOPNOTSUPP;
		area.nr_descs = max(area.nr_descs, tx_area.nr_descs);
	}
	err = xsk_tp4_check_mtu(dev, &area, &flags);
	if (err)
		return err;
	err = tp4_set_stamps(parms->tx_opaque, TP4_SW_STAMPS);
	if (err)
		return err;

	t = kzalloc_obj(*t, GFP_KERNEL_ACCOUNT);
	if (!t)
		return -ENOMEM;
	t->dev = dev;
	t->queue_pair = parms->queue_pair;
	if (!parms->rx_opaque)
		t->nr_own = xsk_tp4_nr_own(dev);
	hrtimer_init(&t->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	t->timer.function = xsk_tp4_timer;
	INIT_DELAYED_WORK(&t->restart, xsk_tp4_restart);
	err = xsk_tp4_new_pool(t, &area);
	if (err)
		goto free;
	err = xsk_tp4_attach_prog(t);
	if (err)
		goto free;
	err = xsk_tp4_keep_tags(dev);
	if (err)
		goto detach;
	err = xsk_tp4_new_arrays(t, parms);
	if (err)
		goto detach;

	static_branch_inc(&xsk_tp4_key);
	xsk_tp4_set(t->pool, t);
	err = xp_assign_dev(t->pool, dev, parms->queue_pair,
			    XDP_ZEROCOPY | XDP_USE_NEED_WAKEUP | flags);
	if (err)
		goto stop;

	/* Drivers do not clear this, or only as long as they work anyway. */
	if (t->tx)
		tp4a_need_wakeup(t->tx, true);
	if (t->rx)
		xsk_tp4_set_napi(t);
	if (netif_running(dev))
		xsk_tp4_start_timer(t, XSK_TP4_SOON);
	return 0;

stop:
	xsk_tp4_stop(t);
	/* Some drivers fail after they have started the queue. */
	if (t->pool->dma_pages || xsk_tp4_posted(t)) {
		xsk_tp4_detach_prog(dev);
		xsk_tp4_release_tags(dev);
		xsk_tp4_keep(t);
		return err;
	}
	static_branch_dec(&xsk_tp4_key);
	xsk_tp4_reclaim(t);
detach:
	xsk_tp4_detach_prog(dev);
	xsk_tp4_release_tags(dev);
free:
	xsk_tp4_free(t);
	xsk_tp4_free_pool(t);
	return err;
}

/* Take the queue pair away from the driver.
 * Return: false if the device may still use the frames.
 */
static bool xsk_tp4_clear_dev(struct xsk_tp4 *t)
{
	int err;

	err = xsk_tp4_set_pool(t, NULL);
	xsk_clear_pool_at_qid(t->dev, t->queue_pair);
	dev_put(t->dev);
	if (err)
		netdev_err(t->dev, "queue %d does not stop: %pe\n",
			   t->queue_pair, ERR_PTR(err));
	return !err && !t->pool->dma_pages;
}

static void xsk_tp4_disable(struct net_device *dev, int queue_pair)
{
	struct xsk_tp4 *t = xsk_tp4_of(dev->_rx[queue_pair].pool);
	bool stopped;

	stopped = xsk_tp4_clear_dev(t);
	xsk_tp4_detach_prog(dev);
	xsk_tp4_release_tags(dev);
	xsk_tp4_stop(t);
	if (!stopped) {
		xsk_tp4_keep(t);
		return;
	}
	xsk_tp4_set(t->pool, NULL);
	static_branch_dec(&xsk_tp4_key);
	xsk_tp4_reclaim(t);
	xsk_tp4_free(t);
	xsk_tp4_free_pool(t);
}

/**
 * xsk_tp4_unregister() - free what the driver of a device may have used until now
 * @dev:	the device, which NETDEV_UNREGISTER is for
 *
 * A queue pair that does not leave the mode keeps its pool and the packet buffer.
 * The driver has freed the queue when the device has been stopped to be removed,
 * and is not called again. A move to another namespace is no such end.
 *
 * Context: Under RTNL, may sleep.
 */
void xsk_tp4_unregister(const struct net_device *dev)
{
	struct xsk_tp4 *t, *tmp;

	if (dev->reg_state != NETREG_UNREGISTERING)
		return;
	list_for_each_entry_safe(t, tmp, &xsk_tp4_kept, kept) {
		if (t->dev != dev)
			continue;
		list_del(&t->kept);
		xsk_tp4_set(t->pool, NULL);
		static_branch_dec(&xsk_tp4_key);
		xp_dma_unmap(t->pool, DMA_ATTR_SKIP_CPU_SYNC);
		tp4_release_area(t->area);
		xsk_tp4_free_pool(t);
	}
}

/**
 * xsk_tp4_zerocopy() - ndo_tp4_zerocopy for drivers that support AF_XDP's
 *			zero-copy mode
 * @dev:	the device
 * @parms:	command and parameters
 *
 * Context: Under RTNL and the lock of the device, if it has one; may sleep.
 * Return: 0; -EOPNOTSUPP if the device does not support it, or does not stop to
 * strip VLAN tags, if the socket's rings have different areas, if frames do not lie
 * side by side, or if the area has 4 GiB or more; -EINVAL if a frame of an Rx ring
 * has room for less than 1024 bytes; -EMSGSIZE if a packet of the device's MTU needs
 * more frames than the driver can chain; -EBUSY if the device has an XDP program that
 * is bound to it; -ENOMEM, or another error of the driver.
 */
int xsk_tp4_zerocopy(struct net_device *dev, struct tp4_netdev_parms *parms)
{
	switch (parms->command) {
	case TP4_ENABLE:
		return xsk_tp4_enable(dev, parms);
	case TP4_DISABLE:
		xsk_tp4_disable(dev, parms->queue_pair);
		return 0;
	}
	return -EINVAL;
}
