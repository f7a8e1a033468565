// SPDX-License-Identifier: GPL-2.0
/* Packet arrays whose frames are parts of a driver's pages, for Rx. */

#include <linux/dma-mapping.h>
#include <linux/export.h>
#include <linux/gfp.h>
#include <linux/slab.h>
#include <linux/tpacket4_page.h>

#include "tp4_array.h"

/* Only what a packet was received into is made visible, see
 * tp4f_page_sync_for_cpu().
 */
#define TP4_PAGE_ATTRS	(DMA_ATTR_SKIP_CPU_SYNC | DMA_ATTR_WEAK_ORDERING)

static u32 tp4_page_size(const struct tp4_pages *pages)
{
	return PAGE_SIZE << pages->order;
}

/* Get a page for a frame that has none. */
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

	/* So that the count is not touched for each frame that is given away */
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
 * tp4a_page_drop() - let go of the page that a frame is in
 * @a:		the array
 * @slot:	the page
 *
 * The page is unmapped, and freed when all who have a part of it have freed that.
 *
 * Context: NAPI of the array's user, or any while nobody uses the array.
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
 * tp4a_page_empty() - free all pages of an array
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
 * tp4a_page_setup() - say what the pages of an array are like
 * @a:		the array, just made or emptied
 * @order:	of each page
 * @offset:	bytes from a frame's start to the data
 *
 * Context: Any, while nobody uses the array.
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
 * tp4a_page_new() - make an array of parts of pages to receive into
 * @elems:	frames that it must have room for
 * @dev:	device that pages are mapped for
 *
 * It is for tp4a_populate() and tp4a_free(), and what is in this file's header;
 * tp4a_flush() is not for it, as the driver is the sink itself.
 *
 * Context: Process context, may sleep.
 * Return: the array, or NULL where there is no memory.
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
	a->validation = TP4_VALIDATION_NONE;
	a->dev = dev;
	return a;
}
EXPORT_SYMBOL_GPL(tp4a_page_new);
