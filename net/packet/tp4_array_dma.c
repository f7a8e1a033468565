// SPDX-License-Identifier: GPL-2.0
/* DMA mappings of the packet buffers of packet arrays */

#include <linux/dma-mapping.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/tpacket4.h>

#include "tp4_area.h"
#include "tp4_array.h"

/**
 * struct tp4_mapping - DMA mapping of an area
 * @list:	entry of tp4_mappings
 * @area:	the area
 * @base:	the mapping of @area->base, or NULL if there is none
 * @dev:	the device
 * @users:	number of arrays and mappings that use it
 * @contiguous:	the DMA addresses are contiguous, so that @dma[0] is enough
 * @dma:	DMA address of each page
 *
 * Each run of pages of the area is mapped in one piece, so that the addresses of a
 * frame that crosses pages are contiguous, too. The mapping is shared by all
 * arrays of the area, as frames may move from one to another, and by those whose
 * area has spare frames behind it.
 */
struct tp4_mapping {
	struct list_head	list;
	const struct tp4_area	*area;
	struct tp4_mapping	*base;
	struct device		*dev;
	unsigned int		users;
	bool			contiguous;
	dma_addr_t		dma[];
};

static LIST_HEAD(tp4_mappings);
static DEFINE_MUTEX(tp4_mappings_lock);

static struct tp4_mapping *tp4_mapping_find(const struct tp4_area *area,
					    const struct device *dev)
{
	struct tp4_mapping *m;

	list_for_each_entry(m, &tp4_mappings, list) {
		if (m->area == area && m->dev == dev)
			return m;
	}
	return NULL;
}

/* Number of pages that another mapping has mapped */
static unsigned long tp4_mapping_first(const struct tp4_area *area)
{
	return tp4_area_has_spares(area) ? area->base->nr_pages : 0;
}

/* Number of pages of the run that starts at @page; the last run may be shorter. */
static unsigned long tp4_mapping_run(const struct tp4_area *area,
				     unsigned long page)
{
	return min(area->run_pages, area->nr_pages - page);
}

static void tp4_mapping_put(struct tp4_mapping *m);

/* Unmap the runs before @pages. */
static void tp4_mapping_free(struct tp4_mapping *m, unsigned long pages)
{
	unsigned long i, nr;

	for (i = tp4_mapping_first(m->area); i < pages; i += nr) {
		nr = tp4_mapping_run(m->area, i);
		dma_unmap_page_attrs(m->dev, m->dma[i], nr << PAGE_SHIFT,
				     DMA_BIDIRECTIONAL, DMA_ATTR_SKIP_CPU_SYNC);
	}
	if (m->base)
		tp4_mapping_put(m->base);
	kvfree(m);
}

static void tp4_mapping_put(struct tp4_mapping *m)
{
	if (--m->users)
		return;
	list_del(&m->list);
	tp4_mapping_free(m, m->area->nr_pages);
}

static struct tp4_mapping *tp4_mapping_get(const struct tp4_area *area,
					   struct device *dev);

static struct tp4_mapping *tp4_mapping_new(const struct tp4_area *area,
					   struct device *dev)
{
	unsigned long i, k, nr, first = tp4_mapping_first(area);
	struct tp4_mapping *m;

	m = kvzalloc(struct_size(m, dma, area->nr_pages),
		     GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!m)
		return NULL;

	m->area = area;
	m->dev = dev;
	m->contiguous = true;
	if (first) {
		m->base = tp4_mapping_get(area->base, dev);
		if (!m->base) {
			kvfree(m);
			return NULL;
		}
		m->contiguous = m->base->contiguous;
		memcpy(m->dma, m->base->dma, first * sizeof(*m->dma));
	}
	for (i = first; i < area->nr_pages; i += nr) {
		nr = tp4_mapping_run(area, i);
		m->dma[i] = dma_map_page_attrs(dev, area->pages[i], 0,
					       nr << PAGE_SHIFT,
					       DMA_BIDIRECTIONAL,
					       DMA_ATTR_SKIP_CPU_SYNC);
		if (dma_mapping_error(dev, m->dma[i])) {
			tp4_mapping_free(m, i);
			return NULL;
		}
		for (k = 1; k < nr; k++)
			m->dma[i + k] = m->dma[i] + (k << PAGE_SHIFT);
		if (m->dma[i] != m->dma[0] + i * PAGE_SIZE)
			m->contiguous = false;
	}
	list_add(&m->list, &tp4_mappings);
	return m;
}

/* Find a mapping or make it, and count a user. */
static struct tp4_mapping *tp4_mapping_get(const struct tp4_area *area,
					   struct device *dev)
{
	struct tp4_mapping *m = tp4_mapping_find(area, dev);

	if (!m)
		m = tp4_mapping_new(area, dev);
	if (m)
		m->users++;
	return m;
}

/**
 * tp4a_map() - map the packet buffer of an array for its device
 * @a:	the array, with its ring and @a->dev set
 *
 * Context: Process context, may sleep.
 * Return: true, or false if there is no memory; to be undone by tp4a_unmap().
 */
bool tp4a_map(struct tp4_packet_array *a)
{
	struct tp4_mapping *m;

	mutex_lock(&tp4_mappings_lock);
	m = tp4_mapping_get(tp4a_zc_ring(a)->area, a->dev);
	if (m) {
		a->dma = m->contiguous ? NULL : m->dma;
		a->dma_base = m->dma[0];
	}
	mutex_unlock(&tp4_mappings_lock);
	return m;
}

/**
 * tp4a_unmap() - undo tp4a_map()
 * @a:	an array of a V4 ring, which the device no longer uses
 *
 * Context: Process context, may sleep.
 */
void tp4a_unmap(struct tp4_packet_array *a)
{
	if (!a->dev)
		return;
	mutex_lock(&tp4_mappings_lock);
	tp4_mapping_put(tp4_mapping_find(tp4a_zc_ring(a)->area, a->dev));
	mutex_unlock(&tp4_mappings_lock);
}
