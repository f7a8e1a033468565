/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Areas for tests of frames that cross pages
 */
#ifndef TPACKET4_UNITS_H
#define TPACKET4_UNITS_H

#include "common.h"

#define FRAME_SIZE	2048
#define UNIT		64
#define NR_PAGES	4

/* Maps the same page @nr times, so that no two pages are adjacent in memory. May
 * return MAP_FAILED.
 */
static inline char *map_apart(unsigned int nr)
{
	size_t page = getpagesize();
	int fd = memfd_create("apart", 0);
	unsigned int i;
	char *p;

	if (fd < 0 || ftruncate(fd, page))
		return MAP_FAILED;
	p = mmap(NULL, nr * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (i = 0; i < nr && p != MAP_FAILED; i++)
		if (mmap(p + i * page, page, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
			p = MAP_FAILED;
	close(fd);
	return p;
}

/* Does the frame at this unit cross the end of a page? */
static inline bool crosses(unsigned int idx)
{
	unsigned int page = getpagesize();

	return idx * UNIT % page + FRAME_SIZE > page;
}

#endif
