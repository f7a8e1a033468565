/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PACKET_TP4_AREA_H__
#define __PACKET_TP4_AREA_H__

#include <linux/refcount.h>
#include <linux/skbuff.h>
#include <linux/sockptr.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <net/sock.h>

/**
 * struct tp4_area - a packet buffer registered by PACKET_MEMREG
 * @addr:	kernel mapping of the whole area
 * @pages:	the pinned pages, @nr_pages of them
 * @nr_pages:	length of the area in pages
 * @nr_frames:	number of frames
 * @frame_size:	bytes in a frame, a power of two, at most PAGE_SIZE
 * @frame_shift: log2 of @frame_size
 * @headroom:	bytes reserved before received data, a multiple of 64
 * @users:	references: one of the socket that registered it, one of each
 *		ring
 * @mm:		address space of the process that registered it, which alone may
 *		use it, or NULL with TP4_MEMREG_SHARED
 * @mmp:	the account that the pages are charged to
 * @work:	releases the area if the last user cannot sleep
 *
 * Only @users changes after registration. User space may change the content of
 * the pages at any time.
 */
struct tp4_area {
	void			*addr;
	struct page		**pages;
	unsigned long		nr_pages;
	u32			nr_frames;
	u32			frame_size;
	u32			headroom;
	u8			frame_shift;
	refcount_t		users;
	struct mm_struct	*mm;
	struct mmpin		mmp;
	struct work_struct	work;
};

/**
 * tp4_area_frame() - get the kernel address of a frame
 * @area:	the area
 * @frame:	frame number, below @area->nr_frames
 *
 * Return: the address of the frame's first byte.
 */
static inline void *tp4_area_frame(const struct tp4_area *area, u32 frame)
{
	return area->addr + ((unsigned long)frame << area->frame_shift);
}

/**
 * tp4_area_frame_valid() - check the number of a frame
 * @area:	the area
 * @idx:	the number
 *
 * Return: true if the frame exists.
 */
static inline bool tp4_area_frame_valid(const struct tp4_area *area, u64 idx)
{
	return idx < area->nr_frames;
}

/**
 * tp4_area_page() - get the page of data in a frame
 * @area:	the area
 * @frame:	frame number, below @area->nr_frames
 * @offset:	bytes from the frame's start to the data, below the frame size;
 *		replaced by the offset in the page
 *
 * Return: the page, which has the rest of the frame, too.
 */
static inline struct page *tp4_area_page(const struct tp4_area *area,
					 u32 frame, u32 *offset)
{
	u64 pos = ((u64)frame << area->frame_shift) + *offset;

	*offset = offset_in_page(pos);
	return area->pages[pos >> PAGE_SHIFT];
}

int tp4_copy_option(void *to, size_t size, size_t least, sockptr_t optval,
		    unsigned int optlen);
bool tp4_area_is_allowed(const struct tp4_area *area);
void tp4_area_put(struct tp4_area *area);
void tp4_area_put_atomic(struct tp4_area *area);
struct tp4_area *tp4_area_get_by_fd(int fd);

#ifdef CONFIG_PACKET_V4
int tp4_memreg(struct sock *sk, sockptr_t optval, unsigned int optlen);
void tp4_memreg_release(struct sock *sk);
#else
static inline void tp4_memreg_release(struct sock *sk)
{
}
#endif

#endif
