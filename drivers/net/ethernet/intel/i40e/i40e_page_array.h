/* SPDX-License-Identifier: GPL-2.0 */
/* Rx packet arrays whose frames are parts of pages
 *
 * For queues that are not in zero-copy mode: they receive for the stack. The
 * driver is the source and the sink of such an array. It therefore sets the
 * members of the array itself, and calls no function that needs the operations
 * of a source or sink, such as tp4a_flush().
 *
 * For each packet the driver gives the part of the page away with
 * i40e_page_give() or keeps it with i40e_page_keep(). Then it calls
 * i40e_page_array_flushed().
 */
#ifndef _I40E_PAGE_ARRAY_H_
#define _I40E_PAGE_ARRAY_H_

#include <linux/page_ref.h>
#include <linux/skbuff.h>
#include <linux/tpacket4.h>

/**
 * struct i40e_page - the page of a frame
 * @page:	the page, or NULL if the allocation failed
 * @dma:	its DMA address
 * @bias:	how many references to the page the array holds
 */
struct i40e_page {
	struct page		*page;
	dma_addr_t		dma;
	u32			bias;
};

/**
 * struct i40e_page_slots - the pages of an array
 * @nr:		number of frames, not more than the array can hold
 * @order:	allocation order of each page
 * @node:	NUMA node that the ring was last filled on
 * @to_check:	number of frames whose page has to be checked before it is kept:
 *		all of them after the node has changed
 * @holes:	some frames have no page
 * @allocated:	pages allocated
 * @failed:	page allocations that failed
 * @waived:	pages not reused because of their NUMA node, or because they
 *		come from the emergency reserves
 * @busy:	pages not reused because others still held references to them
 * @slots:	the pages, in the order of the array's items
 *
 * The driver reads and resets the counters.
 */
struct i40e_page_slots {
	u32			nr;
	u32			order;
	int			node;
	u32			to_check;
	bool			holes;
	u32			allocated;
	u32			failed;
	u32			waived;
	u32			busy;
	struct i40e_page	slots[];
};

static inline struct i40e_page_slots *
i40e_page_slots(const struct tp4_packet_array *a)
{
	return a->queue_opaque;
}

/* The page of the current frame of a set */
static inline struct i40e_page *i40e_page_of(const struct tp4_frame_set *p)
{
	return &i40e_page_slots(p->pkt_arr)->slots[p->curr & p->pkt_arr->mask];
}

/* The first byte of the current frame */
static inline void *i40e_page_frame_start(const struct tp4_frame_set *p)
{
	return (void *)(unsigned long)tp4f_frame(p)->idx;
}

/* DMA address of the data of the current frame, in a page of @size bytes */
static inline dma_addr_t i40e_page_dma(const struct tp4_frame_set *p, u32 size)
{
	return i40e_page_of(p)->dma + ((u32)tp4f_frame(p)->idx & (size - 1)) +
	       p->pkt_arr->offset;
}

/* Make data that the device wrote visible to the CPU. */
static inline void i40e_page_sync_for_cpu(const struct tp4_frame_set *p,
					  u32 len)
{
	struct device *dev = p->pkt_arr->dev;
	u32 order;

	if (!dma_dev_need_sync(dev))
		return;
	order = i40e_page_slots(p->pkt_arr)->order;
	dma_sync_single_for_cpu(dev, i40e_page_dma(p, PAGE_SIZE << order), len,
				DMA_FROM_DEVICE);
}

/* Get the frames that have been processed but not flushed.
 * Return: the number of frames.
 */
static inline u32 i40e_page_array_processed(struct tp4_packet_array *a,
					    struct tp4_frame_set *p)
{
	p->pkt_arr = a;
	p->start = a->start;
	p->curr = a->start;
	p->end = a->curr;
	return p->end - p->start;
}

struct tp4_packet_array *i40e_page_array_new(u32 nr, struct device *dev);
void i40e_page_array_free(struct tp4_packet_array *a);
void i40e_page_array_setup(struct tp4_packet_array *a, u32 order, u16 offset);
void i40e_page_array_empty(struct tp4_packet_array *a);
void i40e_page_array_fill(struct tp4_packet_array *a);
void i40e_page_array_move(struct tp4_packet_array *a);
void i40e_page_drop(struct tp4_packet_array *a, struct i40e_page *slot);
void i40e_page_discard(struct tp4_packet_array *a, struct i40e_page *slot);

/**
 * i40e_page_array_flushed() - mark all processed frames as flushed
 * @a:	the array
 *
 * If the array has as many items as frames, the first item becomes the last one
 * without being moved.
 *
 * Context: NAPI of the ring.
 */
static inline void i40e_page_array_flushed(struct tp4_packet_array *a)
{
	struct i40e_page_slots *pages = i40e_page_slots(a);

	if (unlikely(pages->to_check))
		pages->to_check -= min(pages->to_check, a->curr - a->start);
	if (likely(pages->nr == a->mask + 1))
		a->start = a->curr;
	else
		i40e_page_array_move(a);
}

/**
 * i40e_page_keep() - receive into a frame again
 * @p:		the frame set, at a frame that has been processed
 * @slot:	i40e_page_of() of the frame
 *
 * A page of another NUMA node, or of the emergency reserves, is released.
 *
 * Context: NAPI of the ring.
 */
static inline void i40e_page_keep(const struct tp4_frame_set *p,
				  struct i40e_page *slot)
{
	if (unlikely(i40e_page_slots(p->pkt_arr)->to_check) &&
	    !dev_page_is_reusable(slot->page))
		i40e_page_discard(p->pkt_arr, slot);
}

/**
 * i40e_page_give() - give a frame away
 * @p:		the frame set, at a frame that has been processed
 * @slot:	i40e_page_of() of the frame
 * @refs:	page_ref_count() of the page before any of the received data was
 *		passed on
 * @size:	bytes of the page that are given away: half of the page if pages
 *		are smaller than 8192 bytes
 * @next:	most bytes that the next frame in the page can need
 *
 * The receiver takes over one reference to the page. The frame then becomes
 * another part of the page, or a part of another page once the array is filled.
 *
 * Context: NAPI of the ring.
 */
static inline void i40e_page_give(const struct tp4_frame_set *p,
				  struct i40e_page *slot, u32 refs, u32 size,
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
		i40e_page_discard(p->pkt_arr, slot);
	} else if (unlikely(slot->bias == 1)) {
		page_ref_add(slot->page, USHRT_MAX - 1);
		slot->bias = USHRT_MAX;
	}
}

#endif /* _I40E_PAGE_ARRAY_H_ */
