// SPDX-License-Identifier: GPL-2.0
/* Rx of ordinary queues: from pages to the stack
 *
 * The Rx loop is that of zero-copy queue pairs. The frames of the packet array
 * are parts of pages. Its sink is in this file: XDP, then skbs built around the
 * frames. While packets are in the array, their descriptors are not reused, so
 * the sink can still read the write-back of a packet.
 */

#include <linux/bpf_trace.h>
#include <linux/etherdevice.h>
#include <linux/prefetch.h>
#include <net/xdp.h>
#include "i40e_page_array.h"
#include "i40e_rx_pages.h"
#include "i40e_tp4_rx.h"
#include "i40e_trace.h"

/* A stripped VLAN tag and a timestamp go to the skb. */
#define I40E_PAGES_PLAIN_MASK	(I40E_TP4_RX_PLAIN_MASK & \
				 ~BIT_ULL(I40E_RX_DESC_STATUS_L2TAG1P_SHIFT) & \
				 ~BIT_ULL(I40E_RX_DESC_STATUS_TSYNVALID_SHIFT))

/**
 * struct i40e_pages_run - context of one i40e_pages_clean_rx_irq()
 * @prog:	the XDP program, or NULL
 * @xdp:	its results: I40E_XDP_TX, I40E_XDP_REDIR
 * @change:	by how many bytes XDP has made packets for the stack longer, and
 *		how many packets got no skb
 * @no_memory:	the ring could not be refilled
 */
struct i40e_pages_run {
	struct bpf_prog			*prog;
	unsigned int			xdp;
	struct i40e_tp4_rx_change	change;
	bool				no_memory;
};

/* Number of bytes of a page that a packet uses */
static u32 i40e_pages_truesize(const struct i40e_ring *rx_ring, u32 len)
{
#if PAGE_SIZE < 8192
	return rx_ring->xdp.frame_sz;
#else
	/* With legacy-rx, XDP still needs the skb_shared_info. */
	return SKB_DATA_ALIGN(len + rx_ring->rx_offset) +
	       SKB_DATA_ALIGN(sizeof(struct skb_shared_info));
#endif
}

static void i40e_pages_give(const struct i40e_ring *rx_ring,
			    const struct tp4_frame_set *p,
			    struct i40e_page *slot, u32 refs, u32 size)
{
	i40e_page_give(p, slot, refs, size,
		       i40e_pages_truesize(rx_ring, rx_ring->rx_buf_len));
}

/* Hand empty frames to the hardware.
 * Return: true if there was not enough memory.
 */
static bool i40e_pages_fill(struct i40e_ring *rx_ring)
{
	struct i40e_rx_queue_stats *stats = &rx_ring->rx_stats;
	u32 nr, unused = I40E_DESC_UNUSED(rx_ring);
	struct tp4_packet_array *rx = rx_ring->pages;
	struct i40e_page_slots *pages = i40e_page_slots(rx);
	const bool sync = dma_dev_need_sync(rx_ring->dev);
	const u32 size = PAGE_SIZE << pages->order;
	u32 ntu = rx_ring->next_to_use;
	struct tp4_frame_set p;
	bool no_memory;

	/* The flow director's ring receives no packets. */
	if (!rx_ring->netdev)
		return false;
	i40e_page_array_fill(rx);
	nr = min(tp4a_get_unprocessed(rx, rx_ring->count - 1 - unused, &p),
		 unused);
	no_memory = nr < unused;
	stats->page_alloc_count += pages->allocated;
	stats->page_reuse_count += nr - min(nr, pages->allocated);
	stats->alloc_page_failed += pages->failed;
	stats->page_waive_count += pages->waived;
	stats->page_busy_count += pages->busy;
	pages->allocated = 0;
	pages->failed = 0;
	pages->waived = 0;
	pages->busy = 0;
	if (!nr)
		return no_memory;

	for (; nr; nr--, p.curr++) {
		union i40e_rx_desc *rx_desc = I40E_RX_DESC(rx_ring, ntu);
		dma_addr_t dma = i40e_page_dma(&p, size);

		if (unlikely(sync))
			dma_sync_single_for_device(rx_ring->dev, dma,
						   rx_ring->rx_buf_len,
						   DMA_FROM_DEVICE);
		rx_desc->read.pkt_addr = cpu_to_le64(dma);
		/* Also clears the status of the write-back format. */
		rx_desc->read.hdr_addr = 0;
		if (unlikely(++ntu == rx_ring->count))
			ntu = 0;
	}
	i40e_release_rx_desc(rx_ring, ntu);
	return no_memory;
}

/**
 * i40e_pages_setup() - allocate the array of a ring, without pages
 * @rx_ring:	the ring; if it is a copy, it still has the array of the ring
 *		that it was copied from
 *
 * Context: Process context, may sleep.
 * Return: 0 or -ENOMEM.
 */
int i40e_pages_setup(struct i40e_ring *rx_ring)
{
	rx_ring->pages = i40e_page_array_new(rx_ring->count, rx_ring->dev);
	return rx_ring->pages ? 0 : -ENOMEM;
}

/**
 * i40e_pages_free() - free the array of a ring
 * @rx_ring:	the ring, which has been cleaned
 *
 * Context: Process context.
 */
void i40e_pages_free(struct i40e_ring *rx_ring)
{
	i40e_page_array_free(rx_ring->pages);
	rx_ring->pages = NULL;
}

/**
 * i40e_pages_clean_ring() - free the pages of a ring
 * @rx_ring:	the ring, which the hardware does not use
 *
 * Context: Process context.
 */
void i40e_pages_clean_ring(struct i40e_ring *rx_ring)
{
	i40e_page_array_empty(rx_ring->pages);
}

/**
 * i40e_pages_alloc_rx_buffers() - hand the first pages to the hardware
 * @rx_ring:	the ring, which has no descriptors yet
 *
 * Context: Process context, while the ring is not in use.
 * Return: true if there was not enough memory.
 */
bool i40e_pages_alloc_rx_buffers(struct i40e_ring *rx_ring)
{
	i40e_page_array_setup(rx_ring->pages, i40e_rx_pg_order(rx_ring),
			      rx_ring->rx_offset);
	return i40e_pages_fill(rx_ring);
}

/* A packet gets no skb. As in i40e_clean_rx_irq(), it is not counted as
 * received.
 */
static void i40e_pages_lost(struct i40e_ring *rx_ring,
			    struct i40e_pages_run *run)
{
	const struct xdp_buff *xdp = &rx_ring->xdp;

	rx_ring->rx_stats.alloc_buff_failed++;
	run->change.grown -= xdp->data_end - xdp->data;
	run->change.lost++;
}

static __always_inline void i40e_pages_deliver(struct i40e_ring *rx_ring,
					       union i40e_rx_desc *rx_desc,
					       struct sk_buff *skb)
{
	if (eth_skb_pad(skb))
		return;
	i40e_process_skb_fields(rx_ring, rx_desc, skb);
	i40e_trace(clean_rx_irq_rx, rx_ring, rx_desc, &rx_ring->xdp);
	napi_gro_receive(&rx_ring->q_vector->napi, skb);
}

/* Build an skb of rx_ring->xdp around the first frame. */
static __always_inline struct sk_buff *
i40e_pages_build_skb(struct i40e_ring *rx_ring)
{
	struct xdp_buff *xdp = &rx_ring->xdp;
	struct skb_shared_info *sinfo;
	u32 nr_frags = 0, meta;
	struct sk_buff *skb;

	if (unlikely(xdp_buff_has_frags(xdp))) {
		sinfo = xdp_get_shared_info_from_buff(xdp);
		nr_frags = sinfo->nr_frags;
	}
	net_prefetch(xdp->data_meta);
	skb = napi_build_skb(xdp->data_hard_start, xdp->frame_sz);
	if (unlikely(!skb))
		return NULL;

	skb_reserve(skb, xdp->data - xdp->data_hard_start);
	__skb_put(skb, xdp->data_end - xdp->data);
	meta = xdp->data - xdp->data_meta;
	if (unlikely(meta))
		skb_metadata_set(skb, meta);
	if (unlikely(xdp_buff_has_frags(xdp)))
		xdp_update_skb_shared_info(skb, nr_frags, sinfo->xdp_frags_size,
					   nr_frags * xdp->frame_sz,
					   xdp_buff_is_frag_pfmemalloc(xdp));
	return skb;
}

/* Build an skb of rx_ring->xdp and @p with a copied header, for legacy-rx,
 * which leaves no room around the data.
 * Return: the skb; *@given is set to true if it uses the first frame.
 */
static noinline struct sk_buff *
i40e_pages_copy_skb(struct i40e_ring *rx_ring, const struct tp4_frame_set *p,
		    bool *given)
{
	struct xdp_buff *xdp = &rx_ring->xdp;
	u32 headlen, len = xdp->data_end - xdp->data;
	struct page *page = i40e_page_of(p)->page;
	struct skb_shared_info *sinfo, *to;
	u32 i, nr_frags = 0;
	struct sk_buff *skb;

	if (xdp_buff_has_frags(xdp)) {
		sinfo = xdp_get_shared_info_from_buff(xdp);
		nr_frags = sinfo->nr_frags;
	}
	net_prefetch(xdp->data);
	skb = napi_alloc_skb(&rx_ring->q_vector->napi, I40E_RX_HDR_SIZE);
	if (unlikely(!skb))
		return NULL;

	headlen = len;
	if (headlen > I40E_RX_HDR_SIZE)
		headlen = eth_get_headlen(skb->dev, xdp->data,
					  I40E_RX_HDR_SIZE);
	memcpy(__skb_put(skb, headlen), xdp->data, ALIGN(headlen, sizeof(long)));
	*given = len > headlen;
	if (*given) {
		if (unlikely(nr_frags == MAX_SKB_FRAGS)) {
			dev_kfree_skb(skb);
			return NULL;
		}
		skb_add_rx_frag(skb, 0, page,
				xdp->data + headlen - page_address(page),
				len - headlen, xdp->frame_sz);
	}
	if (nr_frags) {
		to = skb_shinfo(skb);
		for (i = 0; i < nr_frags; i++)
			to->frags[to->nr_frags + i] = sinfo->frags[i];
		xdp_update_skb_shared_info(skb, to->nr_frags + nr_frags,
					   sinfo->xdp_frags_size,
					   nr_frags * xdp->frame_sz,
					   xdp_buff_is_frag_pfmemalloc(xdp));
	}
	return skb;
}

/* Run XDP on the packets of one frame in the array, pass them to the stack, and
 * refill the ring.
 */
static void i40e_pages_flush(struct i40e_ring *rx_ring, void *arg)
{
	struct tp4_packet_array *rx = rx_ring->pages;
	struct xdp_buff *xdp = &rx_ring->xdp;
	struct i40e_pages_run *run = arg;
	u32 ntc, nr, count = rx_ring->count;
	struct tp4_frame_set p;

	nr = i40e_page_array_processed(rx, &p);
	ntc = rx_ring->next_to_clean + (rx_ring->next_to_clean < nr ? count : 0);
	for (ntc -= nr; nr; nr--, p.curr++) {
		union i40e_rx_desc *rx_desc = I40E_RX_DESC(rx_ring, ntc);
		struct i40e_page *slot = i40e_page_of(&p);
		u32 refs = page_ref_count(slot->page);
		u32 len = tp4f_get_frame_len(&p);
		struct sk_buff *skb;
		bool given = true;

		if (unlikely(++ntc == count))
			ntc = 0;
		xdp_prepare_buff(xdp, i40e_page_frame_start(&p), rx_ring->rx_offset,
				 len, true);
		xdp->frame_sz = i40e_pages_truesize(rx_ring, len);
		i40e_trace(clean_rx_irq, rx_ring, rx_desc, xdp);
		if (run->prog) {
			int res = i40e_run_xdp_prog(rx_ring, xdp, run->prog);

			if (res & (I40E_XDP_TX | I40E_XDP_REDIR)) {
				run->xdp |= res;
				i40e_pages_give(rx_ring, &p, slot, refs,
						xdp->frame_sz);
				continue;
			}
			if (res) {
				i40e_page_keep(&p, slot);
				continue;
			}
			run->change.grown += (int)(xdp->data_end - xdp->data) - len;
		}
		skb = likely(ring_uses_build_skb(rx_ring)) ?
		      i40e_pages_build_skb(rx_ring) :
		      i40e_pages_copy_skb(rx_ring, &p, &given);
		if (unlikely(!skb)) {
			i40e_pages_lost(rx_ring, run);
			i40e_page_keep(&p, slot);
			continue;
		}
		if (likely(given))
			i40e_pages_give(rx_ring, &p, slot, refs,
					xdp->frame_sz);
		else
			i40e_page_keep(&p, slot);
		i40e_pages_deliver(rx_ring, rx_desc, skb);
	}
	i40e_page_array_flushed(rx);
	/* Refill in batches. */
	if (I40E_DESC_UNUSED(rx_ring) >= I40E_RX_BUFFER_WRITE)
		run->no_memory |= i40e_pages_fill(rx_ring);
}

/* Receive the next packet, which has @nr descriptors, to the array and
 * rx_ring->xdp. For programming status descriptors the array gets frames
 * without data.
 * Return: its length, or 0 if the descriptors hold no valid packet.
 */
static u32 i40e_pages_take(struct i40e_ring *rx_ring, u32 nr, u32 *refs)
{
	struct tp4_packet_array *rx = rx_ring->pages;
	u32 bytes = 0, ntc = rx_ring->next_to_clean;
	struct xdp_buff *xdp = &rx_ring->xdp;
	struct skb_shared_info *sinfo;
	union i40e_rx_desc *rx_desc;
	struct tp4_frame_set p;
	bool frags_ok = true;
	u64 qword;

	for (; nr; nr--) {
		struct page *page;
		u32 size;

		qword = i40e_tp4_rx_status(rx_ring, ntc);
		rx_desc = i40e_tp4_rx_next(rx_ring, &ntc, rx, &p);
		tp4f_set_len(&p, 0);
		if (i40e_tp4_rx_report(rx_ring, rx_desc, qword))
			continue;
		size = FIELD_GET(I40E_RXD_QW1_LENGTH_PBUF_MASK, qword);
		i40e_page_sync_for_cpu(&p, size);
		page = i40e_page_of(&p)->page;
		if (!bytes) {
			xdp_prepare_buff(xdp, i40e_page_frame_start(&p),
					 rx_ring->rx_offset, size, true);
			xdp->frame_sz = i40e_pages_truesize(rx_ring, size);
			sinfo = xdp_get_shared_info_from_buff(xdp);
		} else if (!xdp_buff_has_frags(xdp)) {
			sinfo->nr_frags = 0;
			sinfo->xdp_frags_size = 0;
			xdp_buff_set_frags_flag(xdp);
		}
		if (bytes) {
			rx_ring->rx_stats.non_eop_descs++;
			frags_ok = sinfo->nr_frags < MAX_SKB_FRAGS;
			if (unlikely(!frags_ok))
				continue;
			__skb_fill_page_desc_noacc(sinfo, sinfo->nr_frags++,
						   page, i40e_page_frame_start(&p) +
						   rx_ring->rx_offset -
						   page_address(page), size);
			sinfo->xdp_frags_size += size;
			if (page_is_pfmemalloc(page))
				xdp_buff_set_frag_pfmemalloc(xdp);
		}
		tp4f_set_len(&p, size);
		*refs++ = page_ref_count(page);
		bytes += size;
	}
	i40e_tp4_rx_taken(rx_ring, ntc);
	if (!bytes || !frags_ok || qword & BIT_ULL(I40E_RXD_QW1_ERROR_SHIFT))
		return 0;
	i40e_trace(clean_rx_irq, rx_ring, rx_desc, xdp);
	return bytes;
}

/* Receive a packet that i40e_tp4_rx_plain() cannot handle.
 * Return: its length, or 0 if it is not counted.
 */
static u32 i40e_pages_packet(struct i40e_ring *rx_ring, u32 nr, void *arg)
{
	struct tp4_packet_array *rx = rx_ring->pages;
	struct xdp_buff *xdp = &rx_ring->xdp;
	struct i40e_pages_run *run = arg;
	skb_frag_t *frag = NULL, *frags_end = NULL;
	u32 bytes, i = 0, refs[MAX_SKB_FRAGS + 1];
	bool given = true, lost = false;
	struct skb_shared_info *sinfo;
	struct sk_buff *skb = NULL;
	struct tp4_frame_set p;
	int res = I40E_XDP_PASS;

	/* i40e_pages_flush() finds the descriptors of packets by next_to_clean,
	 * so flush first.
	 */
	i40e_pages_flush(rx_ring, arg);
	bytes = i40e_pages_take(rx_ring, nr, refs);
	if (!bytes)
		res = I40E_XDP_CONSUMED;
	else if (run->prog)
		res = i40e_run_xdp_prog(rx_ring, xdp, run->prog);
	/* The first frame has data: i40e_tp4_rx_ready() returns a leading status
	 * descriptor on its own.
	 */
	i40e_page_array_processed(rx, &p);
	if (!res) {
		skb = ring_uses_build_skb(rx_ring) ?
		      i40e_pages_build_skb(rx_ring) :
		      i40e_pages_copy_skb(rx_ring, &p, &given);
		if (likely(skb)) {
			bytes = skb->len;
		} else {
			rx_ring->rx_stats.alloc_buff_failed++;
			lost = true;
			res = I40E_XDP_CONSUMED;
		}
	}
	run->xdp |= res & (I40E_XDP_TX | I40E_XDP_REDIR);

	/* Keep the frames of a dropped packet. The program may have freed some
	 * fragments at either end.
	 */
	if (res == I40E_XDP_CONSUMED && xdp_buff_has_frags(xdp)) {
		sinfo = xdp_get_shared_info_from_buff(xdp);
		frag = sinfo->frags;
		frags_end = frag + sinfo->nr_frags;
	}
	for (; p.curr != p.end; p.curr++) {
		struct i40e_page *slot = i40e_page_of(&p);
		bool keep;

		if (!tp4f_get_frame_len(&p)) {
			i40e_page_keep(&p, slot);
			continue;
		}
		if (!bytes) {
			keep = true;
		} else if (!i) {
			keep = !given || res == I40E_XDP_CONSUMED;
		} else {
			keep = frag != frags_end &&
			       skb_frag_page(frag) == slot->page;
			frag += keep;
		}
		if (keep)
			i40e_page_keep(&p, slot);
		else
			i40e_pages_give(rx_ring, &p, slot, refs[i],
					xdp->frame_sz);
		i++;
	}
	if (skb) {
		u32 eop = rx_ring->next_to_clean ?: rx_ring->count;

		i40e_pages_deliver(rx_ring, I40E_RX_DESC(rx_ring, eop - 1), skb);
	}
	xdp->flags = 0;
	i40e_page_array_flushed(rx);
	return lost ? 0 : bytes;
}

static const struct i40e_tp4_rx_ops i40e_pages_ops = {
	.sync = i40e_page_sync_for_cpu,
	.packet = i40e_pages_packet,
	.flush = i40e_pages_flush,
};

/**
 * i40e_pages_clean_rx_irq() - receive on an ordinary queue
 * @rx_ring:	its Rx ring
 * @budget:	maximum number of packets
 * @rx_cleaned:	set to the number of packets
 *
 * Context: NAPI of the ring.
 * Return: packets received, or @budget if there is more to do.
 */
int i40e_pages_clean_rx_irq(struct i40e_ring *rx_ring, int budget,
			    unsigned int *rx_cleaned)
{
	struct i40e_pages_run run = { READ_ONCE(rx_ring->xdp_prog) };

	*rx_cleaned = i40e_tp4_receive(rx_ring, rx_ring->pages,
				       &i40e_pages_ops, I40E_PAGES_PLAIN_MASK,
				       budget, &run.change, &run);
	i40e_finalize_xdp_rx(rx_ring, run.xdp);
	/* Poll again after a failure to allocate. */
	return run.no_memory ? budget : *rx_cleaned;
}
