// SPDX-License-Identifier: GPL-2.0
/* Segmentation for TPACKET_V4 in zero-copy mode on AF_XDP's drivers
 *
 * AF_XDP has no segmentation. A packet whose metadata requests it is copied to an
 * skb, which the stack segments and checks as one of its own, and each segment is
 * copied to frames of the kernel's own behind the area. The driver gets them in the
 * place of the packet, whose frames return when the last segment has been sent.
 *
 * Only one packet at a time is in segments that have no frames yet. Those behind it
 * wait, so that the number of the frames does not limit the length of a packet.
 */

#include <linux/err.h>
#include <linux/minmax.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/tpacket4.h>
#include <net/gso.h>

#include "xsk_tp4.h"

/* Maximum number of segments of a packet, which all are skbs at the same time */
#define XSK_TP4_SEGS_MAX	1024

/**
 * struct xsk_tp4_gso - segmentation on a queue pair
 * @frames:	address of the kernel's own frames
 * @addr:	their address in the pool
 * @segs:	segments that have no frames yet
 * @stamp:	what the time at which the driver gets the last one is for, or NULL
 * @filled:	how many frames have got data; the positions in @frames wrap
 * @out:	how many of them the driver has got
 * @done:	how many have been sent; written under tx_lock
 * @waits:	@segs wait until frames have been sent
 * @descs:	descriptors of the frames
 */
struct xsk_tp4_gso {
	void			*frames;
	u64			addr;
	struct sk_buff		*segs;
	struct sk_buff		*stamp;
	u32			filled;
	u32			out;
	u32			done;
	bool			waits;
	struct xdp_desc		descs[XSK_TP4_GSO_NR];
};

/**
 * xsk_tp4_gso_new() - allocate what segmentation needs
 *
 * Context: Process context, may sleep.
 * Return: the segmentation of a queue pair, or NULL if there is no memory.
 */
struct xsk_tp4_gso *xsk_tp4_gso_new(void)
{
	return kzalloc_obj(struct xsk_tp4_gso, GFP_KERNEL_ACCOUNT);
}

/**
 * xsk_tp4_gso_set_frames() - set the frames for segments
 * @g:		the segmentation
 * @frames:	address of XSK_TP4_GSO_SIZE bytes
 * @addr:	their address in the pool
 *
 * Context: Process context, before the driver gets the pool.
 */
void xsk_tp4_gso_set_frames(struct xsk_tp4_gso *g, void *frames, u64 addr)
{
	g->frames = frames;
	g->addr = addr;
}

/**
 * xsk_tp4_gso_free() - free them, with the segments that were not sent
 * @g:	the segmentation, or NULL
 *
 * Context: Process context, when the driver does not call the pool any more.
 */
void xsk_tp4_gso_free(struct xsk_tp4_gso *g)
{
	if (!g)
		return;
	kfree_skb_list(g->segs);
	kfree_skb(g->stamp);
	kfree(g);
}

/**
 * xsk_tp4_gso_busy() - check whether a packet is being sent in segments
 * @g:	the segmentation
 *
 * Context: NAPI of the queue.
 * Return: true until the driver has got the last one.
 */
bool xsk_tp4_gso_busy(const struct xsk_tp4_gso *g)
{
	return g->segs || g->filled != g->out;
}

static u32 xsk_tp4_gso_frames(const struct sk_buff *skb)
{
	return DIV_ROUND_UP(skb->len, XSK_TP4_OWN_SIZE);
}

/* Segment a packet, which is consumed, and finish the checksums. */
static struct sk_buff *xsk_tp4_gso_segment(struct sk_buff *skb)
{
	struct sk_buff *segs;

	/* It may be no longer than a segment. */
	if (!skb_is_gso(skb)) {
		if (likely(!skb_checksum_help(skb)))
			return skb;
		kfree_skb(skb);
		return ERR_PTR(-ENOMEM);
	}
	segs = skb_gso_segment(skb, NETIF_F_SG);
	if (IS_ERR_OR_NULL(segs)) {
		kfree_skb(skb);
		return ERR_PTR(segs == ERR_PTR(-ENOMEM) ? -ENOMEM : -EINVAL);
	}
	consume_skb(skb);
	return segs;
}

/* Check segments. Their headers need not be those that tp4f_get_offload() has seen.
 * Return: the number of frames that they need, or an error.
 */
static int xsk_tp4_gso_check(const struct sk_buff *segs,
			     const struct tp4_frame_set *p,
			     const struct net_device *dev)
{
	const struct sk_buff *skb;
	int err, nr = 0;

	for (skb = segs; skb; skb = skb->next) {
		if (xsk_tp4_gso_frames(skb) > dev->xdp_zc_max_segs)
			return -EMSGSIZE;
		err = tp4f_check_len(p, dev, skb->len);
		if (err)
			return err;
		nr += xsk_tp4_gso_frames(skb);
	}
	return nr;
}

/**
 * xsk_tp4_gso_start() - segment a packet
 * @g:		the segmentation, which is not busy
 * @p:		the packet, the next one of the Tx array
 * @dev:	the device
 * @o:		its request, from tp4f_get_offload(), for segmentation
 *
 * The first frame of the packet gets the flag XSK_TP4_SEGMENTED, and the number of
 * frames of its segments as its length.
 *
 * Context: NAPI of the queue.
 * Return: 0, or an error to return the packet with: -EINVAL, -EMSGSIZE or -ENOMEM.
 */
int xsk_tp4_gso_start(struct xsk_tp4_gso *g, struct tp4_frame_set *p,
		      struct net_device *dev, const struct tp4_offload *o)
{
	const struct tpacket4_meta m = {
		.flags = TP4_META_CSUM | TP4_META_GSO,
		.gso_size = o->mss,
		.csum_start = o->start,
		.csum_offset = o->csum_offset,
		.gso_type = o->gso_type,
	};
	struct sk_buff *skb;
	int nr;

	if (tp4f_packet_len(p) - o->hdr_len > o->mss * XSK_TP4_SEGS_MAX)
		return -EMSGSIZE;
	skb = tp4f_build_skb(p, dev, &m);
	if (IS_ERR(skb))
		return PTR_ERR(skb);
	tp4f_reset(p);
	skb = xsk_tp4_gso_segment(skb);
	if (IS_ERR(skb))
		return PTR_ERR(skb);
	nr = xsk_tp4_gso_check(skb, p, dev);
	if (nr < 0) {
		kfree_skb_list(skb);
		return nr;
	}
	g->segs = skb;
	if (tp4f_wants_stamp(p))
		g->stamp = tp4f_stamp_skb(p);
	tp4f_frame(p)->len = nr;
	tp4f_frame(p)->flags |= XSK_TP4_SEGMENTED;
	return 0;
}

/* Copy the next segment to frames, if the driver has got those of the last one.
 * Return: the number of frames that it has not got, or 0 if it has to wait.
 */
static u32 xsk_tp4_gso_fill(struct xsk_tp4_gso *g)
{
	struct sk_buff *skb = g->segs;
	u32 pos, len, at;

	if (g->filled != g->out)
		return g->filled - g->out;
	if (!skb || xsk_tp4_gso_frames(skb) >
		    XSK_TP4_GSO_NR - (g->filled - READ_ONCE(g->done)))
		return 0;
	for (pos = 0; pos < skb->len; pos += len, g->filled++) {
		len = min_t(u32, skb->len - pos, XSK_TP4_OWN_SIZE);
		at = g->filled % XSK_TP4_GSO_NR;
		skb_copy_bits(skb, pos, g->frames + at * XSK_TP4_OWN_SIZE, len);
		g->descs[at] = (struct xdp_desc) {
			.addr = g->addr + at * XSK_TP4_OWN_SIZE,
			.len = len,
			.options = pos + len < skb->len ? XDP_PKT_CONTD : 0,
		};
	}
	g->segs = skb->next;
	skb_mark_not_on_list(skb);
	consume_skb(skb);
	/* The driver gets the last one next. */
	if (!g->segs && g->stamp) {
		tp4_stamp_skb(g->stamp);
		g->stamp = NULL;
	}
	return g->filled - g->out;
}

/**
 * xsk_tp4_gso_next() - get the next frames of segments
 * @g:		the segmentation
 * @descs:	set to the descriptors of the frames
 * @max:	maximum number of frames
 * @whole:	only whole segments
 *
 * Context: NAPI of the queue.
 * Return: the number of frames. With fewer than @max, xsk_tp4_gso_busy() says that
 * the rest has to wait.
 */
u32 xsk_tp4_gso_next(struct xsk_tp4_gso *g, struct xdp_desc *descs, u32 max,
		     bool whole)
{
	u32 nr = 0, frames;

	while (nr < max) {
		frames = xsk_tp4_gso_fill(g);
		if (!frames || (whole && frames > max - nr))
			break;
		for (; frames && nr < max; frames--) {
			descs[nr++] = g->descs[g->out % XSK_TP4_GSO_NR];
			WRITE_ONCE(g->out, g->out + 1);
		}
	}
	WRITE_ONCE(g->waits, g->segs && nr < max);
	return nr;
}

/**
 * xsk_tp4_gso_sent() - count frames of segments that have been sent
 * @g:		the segmentation
 * @frame:	the first frame of their packet
 * @nr:		number of frames that the device has completed
 * @again:	set to true if the driver has to look for packets again
 *
 * Context: Under tx_lock.
 * Return: how many of @nr are of later packets. The packet has been sent if the
 * length of @frame is 0.
 */
u32 xsk_tp4_gso_sent(struct xsk_tp4_gso *g, struct tp4_frame *frame, u32 nr,
		     bool *again)
{
	u32 sent = min3(nr, frame->len, READ_ONCE(g->out) - g->done);

	frame->len -= sent;
	WRITE_ONCE(g->done, g->done + sent);
	if (READ_ONCE(g->waits)) {
		WRITE_ONCE(g->waits, false);
		*again = true;
	}
	return nr - sent;
}
