/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ringtest: descriptor rings between two threads, similar to
 * tools/virtio/ringtest.
 *
 * One thread has the role of the kernel and fills buffers. The other one has
 * the role of the program, checks the packets and returns the buffers.
 */
#ifndef RINGTEST_H
#define RINGTEST_H

#include <stdalign.h>
#include <stdlib.h>
#include <err.h>

#include "../tpacket4.h"

#define FRAME_SIZE	2048

/*
 * A ring and its buffers. Each end is used by one thread, which has its private
 * state in separate memory.
 */
struct ring_ops {
	const char *name;
	void *(*open)(unsigned int size);
	/*
	 * Kernel: fill up to n buffers with packets numbered from seq, and
	 * publish them as a batch. Returns their number.
	 */
	unsigned int (*produce)(void *ring, unsigned int n, __u32 seq);
	/*
	 * Program: take up to n packets, which must be numbered from seq, and
	 * return their buffers. Returns their number.
	 */
	unsigned int (*consume)(void *ring, unsigned int n, __u32 seq);
};

extern const struct ring_ops ring_tp4, ring_index, ring_status;

static inline void *ring_alloc(size_t size)
{
	void *p = aligned_alloc(4096, (size + 4095) & ~(size_t)4095);

	if (!p)
		err(1, "out of memory");
	memset(p, 0, size);
	return p;
}

static inline void check_seq(const char *ring, __u32 got, __u32 want)
{
	if (got != want)
		errx(1, "%s: packet %u came as %u", ring, want, got);
}

/* In separate cache lines, also from those that are prefetched with them */
#define OWN_LINES	alignas(256)

#endif /* RINGTEST_H */
