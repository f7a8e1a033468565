// SPDX-License-Identifier: GPL-2.0
/* Rx packet arrays whose frames are parts of a driver's pages */

#include <linux/dma-mapping.h>
#include <linux/export.h>
#include <linux/gfp.h>
#include <linux/slab.h>
#include <linux/tpacket4_page.h>

#include "tp4_array.h"

/* tp4f_page_sync_for_cpu() only syncs the part that a packet was received into.
 */
#define TP4_PAGE_ATTRS	(DMA_ATTR_SKIP_CPU_SYNC | DMA_ATTR_WEAK_ORDERING)

static u32 tp4_page_size(const struct tp4_pages *pages)
{
	return PAGE_SIZE << pages->order;
}

/* Allocate the page of a frame. */
static bool tp4_page_fill(struct tp4_packet_array *a, u32 pos)
{
	struct tp4_pages *pages = tp4a_pages(a);
	struct tp4_page *slot = &pages->slots[pos & a->mask];
	struct page *page;
	dma_addr_t dma;

	page = dev_alloc_pages(pages->order);
	if (unlikely(!page))
		goto fail;
	dma = dma_map_page_attrs(a->dev, page, 0, tp4_page_size(pages),
				 DMA_FROM_DEVICE, TP4_PAGE_ATTRS);
	if (unlikely(dma_mapping_error(a->dev, dma)))
		goto free;

	/* Giving a frame away then only changes the bias. */
	page_ref_add(page, USHRT_MAX - 1);
	slot->bias = USHRT_MAX;
	slot->page = page;
	slot->dma = dma;
	a->items[pos & a->mask] = (struct tp4_frame) {
		.idx = (unsigned long)page_address(page),
		.offset = a->offset,
	};
	pages->allocated++;
	return true;

free:
	__free_pages(page, pages->order);
fail:
	pages->failed++;
	return false;
}

static void tp4a_populate_pages(struct tp4_packet_array *a)
{
	struct tp4_pages *pages = tp4a_pages(a);
	u32 full = a->start + a->mask + 1;

	if (likely(!pages->holes)) {
		a->end = full;
		return;
	}
	for (; a->end != full; a->end++) {
		if (!pages->slots[a->end & a->mask].page &&
		    !tp4_page_fill(a, a->end))
			return;
	}
	pages->holes = false;
}

/**
 * tp4a_page_drop() - release the page of a frame
 * @a:		the array
 * @slot:	the page
 *
 * Unmaps the page and drops the array's references to it.
 *
 * Context: NAPI of the array's user, or any while the array is not in use.
 */
void tp4a_page_drop(struct tp4_packet_array *a, struct tp4_page *slot)
{
	struct tp4_pages *pages = tp4a_pages(a);

	dma_unmap_page_attrs(a->dev, slot->dma, tp4_page_size(pages),
			     DMA_FROM_DEVICE, TP4_PAGE_ATTRS);
	__page_frag_cache_drain(slot->page, slot->bias);
	slot->page = NULL;
	pages->holes = true;
	pages->busy++;
}
EXPORT_SYMBOL_GPL(tp4a_page_drop);

/**
 * tp4a_page_empty() - release all pages of an array
 * @a:	the array, or NULL
 *
 * Context: Any, while the device does not use the array.
 */
void tp4a_page_empty(struct tp4_packet_array *a)
{
	struct tp4_pages *pages;
	u32 i;

	if (!a)
		return;
	pages = tp4a_pages(a);
	for (i = 0; i <= a->mask; i++) {
		if (pages->slots[i].page)
			tp4a_page_drop(a, &pages->slots[i]);
	}
	a->start = 0;
	a->curr = 0;
	a->end = 0;
	pages->busy = 0;
}
EXPORT_SYMBOL_GPL(tp4a_page_empty);

/**
 * tp4a_page_setup() - set the size of an array's pages and the data offset
 * @a:		the array, just allocated or emptied
 * @order:	allocation order of each page
 * @offset:	offset of the data in a frame
 *
 * Context: Any, while the array is not in use.
 */
void tp4a_page_setup(struct tp4_packet_array *a, u32 order, u16 offset)
{
	tp4a_pages(a)->order = order;
	a->offset = offset;
}
EXPORT_SYMBOL_GPL(tp4a_page_setup);

static void tp4a_free_pages(struct tp4_packet_array *a)
{
	tp4a_page_empty(a);
	kvfree(tp4a_pages(a));
}

static const struct tp4_array_ops tp4a_page_ops = {
	.populate = tp4a_populate_pages,
	.free = tp4a_free_pages,
};

/**
 * tp4a_page_new() - allocate an Rx array whose frames are parts of pages
 * @elems:	minimum number of frames that it can hold
 * @dev:	device to map the pages for
 *
 * Use it with tp4a_populate(), tp4a_free() and the functions of
 * linux/tpacket4_page.h. There is no tp4a_flush(), as the driver itself is the
 * sink.
 *
 * Context: Process context, may sleep.
 * Return: the array, or NULL if there is no memory.
 */
struct tp4_packet_array *tp4a_page_new(size_t elems, struct device *dev)
{
	struct tp4_packet_array *a;
	struct tp4_pages *pages;

	a = tp4a_new(&tp4a_page_ops, elems);
	if (!a)
		return NULL;

	pages = kvzalloc(struct_size(pages, slots, a->mask + 1), GFP_KERNEL);
	if (!pages) {
		kvfree(a);
		return NULL;
	}
	pages->holes = true;
	a->queue_opaque = pages;
	a->dev = dev;
	return a;
}
EXPORT_SYMBOL_GPL(tp4a_page_new);
