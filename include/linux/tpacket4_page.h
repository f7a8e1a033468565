/* SPDX-License-Identifier: GPL-2.0 */
/* Packet arrays for Rx whose frames are parts of a driver's pages.
 *
 * For queues that no program has: what is received is the stack's, as it is with
 * any driver that keeps its pages. The driver is the sink. It gives the part of a
 * page that a packet is in away, by tp4f_give_page(), or keeps it, and moves
 * start to curr by tp4a_mark_flushed().
 *
 * Such an array is always full, but for frames that there was no memory for. So
 * what is flushed from its start is its end in the same place: nothing is moved,
 * and a frame that is kept costs nothing.
 */
#ifndef _LINUX_TPACKET4_PAGE_H
#define _LINUX_TPACKET4_PAGE_H

#include <linux/page_ref.h>
#include <linux/skbuff.h>
#include <linux/tpacket4.h>

/**
 * struct tp4_page - the page that a frame is in
 * @page:	the page, or NULL where there was no memory
 * @dma:	its DMA address
 * @bias:	how many of the page's references are the array's
 */
struct tp4_page {
	struct page		*page;
	dma_addr_t		dma;
	u32			bias;
};

/**
 * struct tp4_pages - the pages of an array
 * @order:	of each
 * @holes:	some frames have none
 * @allocated:	pages that were allocated
 * @failed:	pages that could not be
 * @busy:	pages given up because others still had a part of them
 * @slots:	those of the frames, in the order of the array's items
 *
 * The driver reads and resets the counters.
 */
struct tp4_pages {
	u32			order;
	bool			holes;
	u32			allocated;
	u32			failed;
	u32			busy;
	struct tp4_page		slots[];
};

/**
 * tp4a_pages() - the pages of an array
 * @a:	the array
 *
 * Return: what is behind its frames.
 */
static inline struct tp4_pages *tp4a_pages(const struct tp4_packet_array *a)
{
	return a->queue_opaque;
}

/**
 * tp4f_page() - the page that a frame is in
 * @p:	the frame set
 *
 * Return: the page; there is one for each frame between the array's start and end.
 */
static inline struct tp4_page *tp4f_page(const struct tp4_frame_set *p)
{
	return &tp4a_pages(p->pkt_arr)->slots[p->curr & p->pkt_arr->mask];
}

/**
 * tp4f_page_dma() - data of a frame, for the device
 * @p:		the frame set
 * @size:	bytes of each page, as tp4a_page_setup() was told
 *
 * Return: DMA address of the data.
 */
static inline dma_addr_t tp4f_page_dma(const struct tp4_frame_set *p, u32 size)
{
	return tp4f_page(p)->dma + ((u32)tp4f_frame(p)->idx & (size - 1)) +
	       p->pkt_arr->offset;
}

/**
 * tp4f_page_sync_for_cpu() - make what the device wrote visible
 * @p:		the frame set
 * @len:	bytes
 */
static inline void tp4f_page_sync_for_cpu(const struct tp4_frame_set *p,
					  u32 len)
{
	struct device *dev = p->pkt_arr->dev;

	if (dma_dev_need_sync(dev))
		dma_sync_single_for_cpu(dev, tp4f_page_dma(p, PAGE_SIZE <<
						tp4a_pages(p->pkt_arr)->order),
					len, DMA_FROM_DEVICE);
}

/**
 * tp4f_page_start() - first byte of a frame
 * @p:	the frame set
 *
 * Return: its kernel address.
 */
static inline void *tp4f_page_start(const struct tp4_frame_set *p)
{
	return (void *)(unsigned long)tp4f_frame(p)->idx;
}

/**
 * tp4a_done() - get the frames that wait to be flushed
 * @a:	the array
 * @p:	set to the frames; the driver may walk over them by @p->curr
 *
 * Return: how many there are.
 */
static inline u32 tp4a_done(struct tp4_packet_array *a, struct tp4_frame_set *p)
{
	p->pkt_arr = a;
	p->start = a->start;
	p->curr = a->start;
	p->end = a->curr;
	return p->end - p->start;
}

/**
 * tp4a_mark_flushed() - all frames that were processed are flushed
 * @a:	the array
 *
 * What tp4f_give_page() has not given away is received into again as it is.
 */
static inline void tp4a_mark_flushed(struct tp4_packet_array *a)
{
	a->start = a->curr;
}

struct tp4_packet_array *tp4a_page_new(size_t elems, struct device *dev);
void tp4a_page_setup(struct tp4_packet_array *a, u32 order, u16 offset);
void tp4a_page_empty(struct tp4_packet_array *a);
void tp4a_page_drop(struct tp4_packet_array *a, struct tp4_page *slot);

/**
 * tp4f_give_page() - give a frame away
 * @p:		the frame set, at a frame that has been processed
 * @slot:	tp4f_page() of it
 * @refs:	page_ref_count() of its page before any of what was received into
 *		the frame was given to anybody
 * @size:	bytes of the page that go with it: half of it where pages are
 *		smaller than 8192 bytes
 * @next:	bytes that the next frame in the page takes at most
 *
 * One of the page's references goes with it. The frame is another part of the
 * page from here on, or of another page once the array is populated.
 *
 * Context: NAPI of the array's user.
 */
static inline void tp4f_give_page(const struct tp4_frame_set *p,
				  struct tp4_page *slot, u32 refs, u32 size,
				  u32 next)
{
	struct tp4_frame *frame = tp4f_frame(p);
	bool reuse = dev_page_is_reusable(slot->page);

#if PAGE_SIZE < 8192
	/* Nobody has the other half. */
	reuse &= refs == slot->bias;
	frame->idx ^= size;
#else
	reuse &= offset_in_page(frame->idx) + size + next <= PAGE_SIZE;
	frame->idx += size;
#endif
	slot->bias--;
	if (unlikely(!reuse)) {
		tp4a_page_drop(p->pkt_arr, slot);
	} else if (unlikely(slot->bias == 1)) {
		page_ref_add(slot->page, USHRT_MAX - 1);
		slot->bias = USHRT_MAX;
	}
}

#endif /* _LINUX_TPACKET4_PAGE_H */
