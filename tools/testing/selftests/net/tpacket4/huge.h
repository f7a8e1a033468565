/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Huge pages for the selftests of AF_PACKET V4.
 */
#ifndef TPACKET4_HUGE_H
#define TPACKET4_HUGE_H

#include "common.h"

#define NR_HUGE_PAGES	"/proc/sys/vm/nr_hugepages"

/* Returns a number of /proc/meminfo, or -1. */
static inline long read_meminfo(const char *name)
{
	FILE *f = fopen("/proc/meminfo", "r");
	size_t len = strlen(name);
	char line[128];
	long n = -1;

	if (!f)
		return -1;
	while (n < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, len) && line[len] == ':')
			n = atol(line + len + 1);
	fclose(f);
	return n;
}

static long huge_pages_before = -1;	/* reserved before, if changed */

static inline void set_huge_pages(long n)
{
	char text[24];

	snprintf(text, sizeof(text), "%ld", n);
	write_file(NR_HUGE_PAGES, text);
}

static inline void huge_pages_restore(void)
{
	if (huge_pages_before >= 0)
		set_huge_pages(huge_pages_before);
}

/* Makes @n huge pages available, until huge_pages_restore(). Returns their
 * size, or 0 if that is not possible.
 */
static inline size_t need_huge_pages(long n)
{
	long total = read_meminfo("HugePages_Total"), size = read_meminfo("Hugepagesize");

	if (total < 0 || size <= 0)
		return 0;
	if (read_meminfo("HugePages_Free") < n) {
		huge_pages_before = total;
		set_huge_pages(total + n);
	}
	if (read_meminfo("HugePages_Free") >= n)
		return size << 10;
	huge_pages_restore();
	return 0;
}

/* Maps one huge page for a new area; may return MAP_FAILED. */
static inline void *map_huge_page(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	if (p != MAP_FAILED)
		memset(p, UNTOUCHED, size);
	return p;
}

/* Waits until @free of them are free again, which means that none is pinned. */
static inline bool huge_pages_back(long free)
{
	__u64 end = now_ms() + WAIT_MS;

	while (read_meminfo("HugePages_Free") < free) {
		if (now_ms() > end)
			return false;
		usleep(1000);
	}
	return true;
}

#endif
