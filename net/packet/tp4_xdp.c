// SPDX-License-Identifier: GPL-2.0
/* XDP for packets of a zero-copy ring, before they are published
 *
 * The XDP program runs on packets of one frame in place. Packets of several
 * frames, and packets that the kernel keeps, are copied: the kernel must not
 * rely on data that user space can write to.
 */

#include <linux/bpf.h>
#include <linux/bpf_trace.h>
#include <linux/filter.h>
#include <linux/mm.h>
#include <linux/skbuff.h>
#include <linux/tpacket4.h>
#include <net/xdp.h>

#include "tp4_array.h"

#define TP4_XDP_TAIL	SKB_DATA_ALIGN(sizeof(struct skb_shared_info))

/* Allocate an XDP buffer of @len bytes in pages, with room for a struct
 * xdp_frame before @meta bytes of metadata.
 */
static bool tp4_xdp_alloc(struct xdp_buff *buff, struct xdp_rxq_info *rxq,
			  u32 len, u32 meta)
{
	u32 headroom = XDP_PACKET_HEADROOM + SKB_DATA_ALIGN(meta);
	u32 part = min_t(u32, len, PAGE_SIZE - headroom - TP4_XDP_TAIL);
	struct page *page = dev_alloc_page();
	struct skb_shared_info *sinfo;

	if (unlikely(!page))
		return false;

	xdp_init_buff(buff, PAGE_SIZE, rxq);
	xdp_prepare_buff(buff, page_address(page), headroom, part, true);
	if (likely(part == len))
		return true;

	sinfo = xdp_get_shared_info_from_buff(buff);
	sinfo->nr_frags = 0;
	sinfo->xdp_frags_size = 0;
	xdp_buff_set_frags_flag(buff);
	while ((len -= part)) {
		part = min_t(u32, len, PAGE_SIZE);
		page = sinfo->nr_frags < MAX_SKB_FRAGS ? dev_alloc_page() :
							 NULL;
		if (unlikely(!page)) {
			xdp_return_buff(buff);
			return false;
		}
		skb_frag_fill_page_desc(&sinfo->frags[sinfo->nr_frags++], page,
					0, part);
		sinfo->xdp_frags_size += part;
	}
	return true;
}

/* Copy a packet and its XDP metadata out of its frames. */
static bool tp4_xdp_copy(struct xdp_buff *buff, struct xdp_rxq_info *rxq,
			 struct tp4_frame_set *p, u32 meta)
{
	u32 pos = 0;

	if (!tp4_xdp_alloc(buff, rxq, tp4f_packet_len(p), meta))
		return false;

	tp4f_reset(p);
	buff->data_meta = buff->data - meta;
	memcpy(buff->data_meta, tp4f_get_data(p) - meta, meta);
	do {
		u32 len = tp4f_get_frame_len(p);

		bpf_xdp_copy_buf(buff, pos, tp4f_get_data(p), len, true);
		pos += len;
	} while (tp4f_next_frame(p));
	return true;
}

/* Copy a packet back into its frames after the XDP program has run. If the
 * packet has grown, the new bytes go to the headroom or to the last frame. The
 * copy was made without metadata, so the program starts with none. The bytes
 * before the headroom belong to user space.
 * Return: false if the packet does not fit the frames.
 */
static bool tp4_xdp_copy_back(struct xdp_buff *buff, struct tp4_frame_set *p)
{
	int grown = buff->data_hard_start + XDP_PACKET_HEADROOM - buff->data;
	u8 meta_flags = tp4f_first(p)->flags & TP4F_META_MASK;
	struct tp4_packet_array *a = p->pkt_arr;
	u32 pos = 0, len = xdp_get_buff_len(buff);
	int meta = buff->data - buff->data_meta;
	int size = a->frame_size;

	for (p->curr = p->start; pos != len; p->curr++) {
		int offset;
		u32 part;

		if (p->curr == p->end)
			return false;
		/* The driver may have used some bytes before that. */
		offset = min_t(int, a->offset, tp4f_get_data_offset(p));
		if (p->curr == p->start) {
			offset = max(offset - grown,
				     (int)a->offset - XDP_PACKET_HEADROOM + meta);
			if (offset >= size)
				offset = a->offset;
		}
		part = min_t(u32, len - pos, size - offset);
		tp4f_set_frame(p, part, offset, pos + part == len);
		if (p->curr == p->start)
			memcpy(tp4f_get_data(p) - meta, buff->data_meta, meta);
		bpf_xdp_copy_buf(buff, pos, tp4f_get_data(p), part, false);
		pos += part;
	}
	/* The remaining frames are free. */
	p->end = p->curr;
	tp4f_first(p)->flags |= meta_flags;
	return p->end != p->start;
}

static u32 tp4_xdp_run_on_frame(struct tp4_xdp *xdp, struct tp4_frame_set *p)
{
	const struct tp4_packet_array *a = p->pkt_arr;
	struct tp4_frame *frame = tp4f_frame(p);
	void *hard_start, *start = tp4f_start(a, frame);
	struct xdp_buff *buff = xdp->buff;
	u32 act, headroom = XDP_PACKET_HEADROOM;

	/* A VLAN tag that was put back has used some of the headroom. The bytes
	 * before the headroom belong to user space.
	 */
	if (unlikely(frame->offset < a->offset))
		headroom -= a->offset - frame->offset;
	/* Without skb_shared_info, the whole frame can be used as tailroom. */
	hard_start = start + frame->offset - headroom;
	xdp_init_buff(buff, a->frame_size - frame->offset + headroom +
			    TP4_XDP_TAIL, xdp->rxq);
	xdp_prepare_buff(buff, hard_start, headroom, frame->len, true);
	act = __bpf_prog_run_xdp(xdp->prog, buff);
	frame->offset = buff->data - start;
	frame->len = buff->data_end - buff->data;
	return act;
}

static void tp4_xdp_tx(struct tp4_xdp *xdp, struct xdp_buff *buff)
{
	struct xdp_frame *frame = xdp_convert_buff_to_frame(buff);

	if (unlikely(!frame)) {
		xdp_return_buff(buff);
	} else if (unlikely(xdp->xmit(xdp->arg, frame))) {
		xdp_return_frame(frame);
	} else {
		xdp->tx++;
		return;
	}
	xdp->errors++;
	trace_xdp_exception(xdp->rxq->dev, xdp->prog, XDP_TX);
}

static void tp4_xdp_redirect(struct tp4_xdp *xdp, struct xdp_buff *buff)
{
	if (unlikely(xdp_do_redirect(xdp->rxq->dev, buff, xdp->prog))) {
		xdp_return_buff(buff);
		xdp->errors++;
		return;
	}
	xdp->redirect++;
}

static void tp4_xdp_to_kernel(struct tp4_xdp *xdp, struct tp4_frame_set *p,
			      u32 meta)
{
	struct tp4_packet_array *to = p->pkt_arr->to_kernel;
	struct sk_buff *skb = NULL;
	struct tp4_frame *first;
	u32 pos = to->curr;

	if (xdp->get_offloads)
		skb = xdp->get_offloads(xdp->arg, p);
	if (unlikely(!tp4a_copy_packet(to, p))) {
		xdp->errors++;
		return;
	}
	to->ops->set_offloads(to, pos, p, skb);
	if (likely(!meta))
		return;

	first = &to->items[pos & to->mask];
	first->meta_len = meta;
	tp4f_reset(p);
	memcpy(tp4f_start(to, first) + first->offset - meta,
	       tp4f_get_data(p) - meta, meta);
}

/* Run the program on a packet. @rxq describes the memory of copies.
 * Return: true if the packet goes to the ring, in the remaining frames of @p;
 * else all its frames are free.
 */
static bool tp4_xdp_packet(struct tp4_xdp *xdp, struct xdp_rxq_info *rxq,
			   struct tp4_frame_set *p)
{
	struct xdp_buff *buff = xdp->buff;
	bool copied = false;
	u32 act, meta;

	if (xdp->prepare)
		xdp->prepare(xdp->arg, p);
	if (likely(tp4f_num_frames(p) == 1)) {
		act = tp4_xdp_run_on_frame(xdp, p);
	} else if (xdp->prog->aux->xdp_has_frags) {
		copied = tp4_xdp_copy(buff, rxq, p, 0);
		if (unlikely(!copied))
			goto error;
		act = __bpf_prog_run_xdp(xdp->prog, buff);
	} else {
		goto error;
	}
	meta = buff->data - buff->data_meta;

	switch (act) {
	case XDP_PASS:
	case XDP_PASS_TO_KERNEL:
		if (copied) {
			bool ok = tp4_xdp_copy_back(buff, p);

			xdp_return_buff(buff);
			if (!ok)
				goto error;
		}
		if (act == XDP_PASS) {
			if (unlikely(meta))
				tp4f_first(p)->meta_len = meta;
			return true;
		}
		tp4_xdp_to_kernel(xdp, p, meta);
		return false;
	case XDP_TX:
	case XDP_REDIRECT:
		if (!copied && !tp4_xdp_copy(buff, rxq, p, meta))
			goto error;
		if (act == XDP_TX)
			tp4_xdp_tx(xdp, buff);
		else
			tp4_xdp_redirect(xdp, buff);
		return false;
	default:
		bpf_warn_invalid_xdp_action(rxq->dev, xdp->prog, act);
		fallthrough;
	case XDP_ABORTED:
		trace_xdp_exception(rxq->dev, xdp->prog, act);
		fallthrough;
	case XDP_DROP:
		if (copied)
			xdp_return_buff(buff);
		xdp->drops++;
		return false;
	}

error:
	xdp->errors++;
	return false;
}

/**
 * tp4a_copy_to_kernel() - copy packets for the stack
 * @a:		an Rx array of a V4 ring that tp4a_set_xdp() was called for
 * @end:	position after the last frame to copy
 *
 * Called before the packets are published, after which user space may modify
 * them. The caller must flush the copies.
 *
 * Context: Softirq (NAPI).
 */
void tp4a_copy_to_kernel(struct tp4_packet_array *a, u32 end)
{
	struct tp4_frame_set p;
	u32 pos;

	for (pos = a->start; pos != end; pos = p.end) {
		tp4a_get_packet(a, pos, &p);
		tp4_xdp_to_kernel(a->xdp, &p, tp4f_first(&p)->meta_len);
	}
}

/**
 * tp4a_run_xdp() - run the XDP program on received packets, and flush them
 * @a:	an Rx array of a V4 ring with an XDP program and frames to flush
 *
 * Called by tp4a_flush().
 *
 * Context: Softirq (NAPI).
 * Return: the number of packets published on the ring.
 */
int tp4a_run_xdp(struct tp4_packet_array *a)
{
	u32 keep = a->start, pos = a->start, next;
	const bool to_stack = a->to_stack;
	struct tp4_xdp *xdp = a->xdp;
	struct xdp_rxq_info rxq = *xdp->rxq;
	int packets = 0;

	/* Copies are made in whole pages. */
	rxq.mem.type = MEM_TYPE_PAGE_SHARED;
	rxq.mem.id = 0;
	rxq.frag_size = PAGE_SIZE;
	for (; pos != a->curr; pos = next) {
		struct tp4_frame_set p;

		tp4a_get_packet(a, pos, &p);
		next = p.end;
		if (!tp4_xdp_packet(xdp, &rxq, &p))
			continue;
		if (unlikely(to_stack))
			tp4_xdp_to_kernel(xdp, &p, tp4f_first(&p)->meta_len);
		if (likely(keep == p.start)) {
			keep = p.end;
			continue;
		}
		for (; p.start != p.end; p.start++, keep++)
			swap(a->items[keep & a->mask],
			     a->items[p.start & a->mask]);
	}

	if (keep != a->start)
		packets = a->ops->publish(a, keep);
	tp4a_recycle(a);
	tp4a_flush(a->to_kernel);
	return packets;
}
