// SPDX-License-Identifier: GPL-2.0
/* Rx packet arrays whose frames are parts of pages */

#include <linux/dma-mapping.h>
#include <linux/gfp.h>
#include <linux/log2.h>
#include <linux/slab.h>
#include <linux/topology.h>
#include "i40e.h"
#include "i40e_page_array.h"

static u32 i40e_page_size(const struct i40e_page_slots *pages)
{
	return PAGE_SIZE << pages->order;
}

/* Allocate the page of the frame at @pos. */
static bool i40e_page_alloc(struct tp4_packet_array *a, u32 pos)
{
	struct i40e_page_slots *pages = i40e_page_slots(a);
	struct i40e_page *slot = &pages->slots[pos & a->mask];
	struct page *page;
	dma_addr_t dma;

	page = dev_alloc_pages(pages->order);
	if (unlikely(!page))
		goto fail;
	dma = dma_map_page_attrs(a->dev, page, 0, i40e_page_size(pages),
				 DMA_FROM_DEVICE, I40E_RX_DMA_ATTR);
	if (unlikely(dma_mapping_error(a->dev, dma)))
		goto free;

	if (unlikely(!dev_page_is_reusable(page)))
		pages->to_check = pages->nr;
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

/**
 * i40e_page_array_fill() - add empty frames up to the size of the array
 * @a:	the array
 *
 * If there is too little memory, the array gets fewer.
 *
 * Context: NAPI of the ring, or any while the ring is not in use.
 */
void i40e_page_array_fill(struct tp4_packet_array *a)
{
	struct i40e_page_slots *pages = i40e_page_slots(a);
	u32 full = a->start + pages->nr;

	if (unlikely(pages->node != numa_mem_id())) {
		pages->node = numa_mem_id();
		pages->to_check = pages->nr;
	}
	if (likely(!pages->holes)) {
		a->end = full;
		return;
	}
	for (; a->end != full; a->end++) {
		if (!pages->slots[a->end & a->mask].page &&
		    !i40e_page_alloc(a, a->end))
			return;
	}
	pages->holes = false;
}

/**
 * i40e_page_array_move() - move processed frames behind the last frame
 * @a:	an array with more items than frames
 *
 * The slow path of i40e_page_array_flushed(), for rings whose number of
 * descriptors is no power of two.
 *
 * Context: NAPI of the ring.
 */
void i40e_page_array_move(struct tp4_packet_array *a)
{
	struct i40e_page_slots *pages = i40e_page_slots(a);

	for (; a->start != a->curr; a->start++) {
		u32 to = (a->start + pages->nr) & a->mask;
		u32 from = a->start & a->mask;

		a->items[to] = a->items[from];
		pages->slots[to] = pages->slots[from];
		pages->slots[from].page = NULL;
	}
}

/**
 * i40e_page_drop() - release the page of a frame
 * @a:		the array
 * @slot:	the page
 *
 * Unmaps the page and drops the array's references to it.
 *
 * Context: NAPI of the ring, or any while the ring is not in use.
 */
void i40e_page_drop(struct tp4_packet_array *a, struct i40e_page *slot)
{
	struct i40e_page_slots *pages = i40e_page_slots(a);

	dma_unmap_page_attrs(a->dev, slot->dma, i40e_page_size(pages),
			     DMA_FROM_DEVICE, I40E_RX_DMA_ATTR);
	__page_frag_cache_drain(slot->page, slot->bias);
	slot->page = NULL;
	pages->holes = true;
}

/**
 * i40e_page_discard() - release and count a page that is not received into again
 * @a:		the array
 * @slot:	the page
 *
 * Context: NAPI of the ring.
 */
void i40e_page_discard(struct tp4_packet_array *a, struct i40e_page *slot)
{
	if (dev_page_is_reusable(slot->page))
		i40e_page_slots(a)->busy++;
	else
		i40e_page_slots(a)->waived++;
	i40e_page_drop(a, slot);
}

/**
 * i40e_page_array_empty() - release all pages of an array
 * @a:	the array
 *
 * Context: Any, while the device does not use the array.
 */
void i40e_page_array_empty(struct tp4_packet_array *a)
{
	struct i40e_page_slots *pages = i40e_page_slots(a);
	u32 i;

	for (i = 0; i <= a->mask; i++) {
		if (pages->slots[i].page)
			i40e_page_drop(a, &pages->slots[i]);
	}
	a->start = 0;
	a->curr = 0;
	a->end = 0;
}

/**
 * i40e_page_array_setup() - set the size of an array's pages and the data offset
 * @a:		the array, just allocated or emptied
 * @order:	allocation order of each page
 * @offset:	offset of the data in a frame
 *
 * Context: Any, while the array is not in use.
 */
void i40e_page_array_setup(struct tp4_packet_array *a, u32 order, u16 offset)
{
	i40e_page_slots(a)->order = order;
	a->offset = offset;
}

/**
 * i40e_page_array_new() - allocate an Rx array whose frames are parts of pages
 * @nr:		number of frames
 * @dev:	device to map the pages for
 *
 * Context: Process context, may sleep.
 * Return: the array without pages, or NULL if there is no memory.
 */
struct tp4_packet_array *i40e_page_array_new(u32 nr, struct device *dev)
{
	u32 items = roundup_pow_of_two(nr);
	struct i40e_page_slots *pages;
	struct tp4_packet_array *a;

	a = kvzalloc(struct_size(a, items, items), GFP_KERNEL);
	if (!a)
		return NULL;
	pages = kvzalloc(struct_size(pages, slots, items), GFP_KERNEL);
	if (!pages) {
		kvfree(a);
		return NULL;
	}
	pages->nr = nr;
	pages->node = numa_mem_id();
	pages->holes = true;
	a->mask = items - 1;
	a->queue_opaque = pages;
	a->dev = dev;
	return a;
}

/**
 * i40e_page_array_free() - free an array
 * @a:	the array, or NULL
 *
 * Context: Process context, while the device does not use the array.
 */
void i40e_page_array_free(struct tp4_packet_array *a)
{
	if (!a)
		return;
	i40e_page_array_empty(a);
	kvfree(i40e_page_slots(a));
	kvfree(a);
}
