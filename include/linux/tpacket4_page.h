/* SPDX-License-Identifier: GPL-2.0 */
/* Rx packet arrays whose frames are parts of a driver's pages
 *
 * For queues that are not in zero-copy mode: they receive for the stack, as in
 * any driver that recycles its pages. The driver itself is the sink. For each
 * packet it either gives the part of the page away with tp4f_give_page() or
 * keeps it. Then it calls tp4a_mark_flushed().
 *
 * Such an array is always full, except for frames whose page could not be
 * allocated. A frame that is flushed at the start therefore becomes the frame
 * at the end without being moved, and keeping a frame costs nothing.
 */
#ifndef _LINUX_TPACKET4_PAGE_H
#define _LINUX_TPACKET4_PAGE_H

#include <linux/page_ref.h>
#include <linux/skbuff.h>
#include <linux/tpacket4.h>

/**
 * struct tp4_page - the page of a frame
 * @page:	the page, or NULL if the allocation failed
 * @dma:	its DMA address
 * @bias:	how many references to the page the array holds
 */
struct tp4_page {
	struct page		*page;
	dma_addr_t		dma;
	u32			bias;
};

/**
 * struct tp4_pages - the pages of an array
 * @order:	allocation order of each page
 * @holes:	some frames have no page
 * @allocated:	pages allocated
 * @failed:	page allocations that failed
 * @busy:	pages not reused because others still held references to them
 * @slots:	the pages, in the order of the array's items
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
 * tp4a_pages() - get the pages of an array
 * @a:	the array
 *
 * Return: the pages.
 */
static inline struct tp4_pages *tp4a_pages(const struct tp4_packet_array *a)
{
	return a->queue_opaque;
}

/**
 * tp4f_page() - get the page of a frame
 * @p:	the frame set
 *
 * Return: the page; there is one for each frame between the array's start and
 * end.
 */
static inline struct tp4_page *tp4f_page(const struct tp4_frame_set *p)
{
	return &tp4a_pages(p->pkt_arr)->slots[p->curr & p->pkt_arr->mask];
}

/**
 * tp4f_page_dma() - get the DMA address of a frame's data
 * @p:		the frame set
 * @size:	size of each page, by the order passed to tp4a_page_setup()
 *
 * Return: the DMA address of the data.
 */
static inline dma_addr_t tp4f_page_dma(const struct tp4_frame_set *p, u32 size)
{
	return tp4f_page(p)->dma + ((u32)tp4f_frame(p)->idx & (size - 1)) +
	       p->pkt_arr->offset;
}

/**
 * tp4f_page_sync_for_cpu() - make data that the device wrote visible to the CPU
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
 * tp4f_page_start() - get the start of a frame
 * @p:	the frame set
 *
 * Return: the kernel address of its first byte.
 */
static inline void *tp4f_page_start(const struct tp4_frame_set *p)
{
	return (void *)(unsigned long)tp4f_frame(p)->idx;
}

/**
 * tp4a_get_processed() - get the frames that are processed but not flushed
 * @a:	the array
 * @p:	set to the frames; the driver may walk them by @p->curr
 *
 * Return: the number of frames.
 */
static inline u32 tp4a_get_processed(struct tp4_packet_array *a,
				     struct tp4_frame_set *p)
{
	p->pkt_arr = a;
	p->start = a->start;
	p->curr = a->start;
	p->end = a->curr;
	return p->end - p->start;
}

/**
 * tp4a_mark_flushed() - mark all processed frames as flushed
 * @a:	the array
 *
 * Frames that tp4f_give_page() was not called for are received into again.
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
 * @slot:	tp4f_page() of the frame
 * @refs:	page_ref_count() of the page before any of the received data was
 *		passed on
 * @size:	bytes of the page that are given away: half of the page if pages
 *		are smaller than 8192 bytes
 * @next:	most bytes that the next frame in the page can need
 *
 * The receiver takes over one reference to the page. The frame then becomes
 * another part of the page, or a part of another page once the array is
 * populated.
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
	/* Nobody else uses the other half. */
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
