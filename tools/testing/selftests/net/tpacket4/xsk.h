/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A minimal AF_XDP socket, for the selftests that combine it with AF_PACKET
 * V4's zero-copy mode
 */
#ifndef TPACKET4_XSK_H
#define TPACKET4_XSK_H

#include "common.h"

#include <linux/if_xdp.h>

#ifndef AF_XDP
#define AF_XDP		44
#endif
#ifndef SOL_XDP
#define SOL_XDP		283
#endif

#define XSK_NR		64	/* descriptors of each ring */
#define XSK_UMEM	(2 * XSK_NR * 4096)

/* Opens a socket with unused rings; @umem has XSK_UMEM bytes. Returns its fd,
 * or -errno.
 */
static inline int xsk_bind(const char *ifname, int queue, int flags, void *umem)
{
	struct xdp_umem_reg reg = {
		.addr = (uintptr_t)umem, .len = XSK_UMEM, .chunk_size = 4096,
	};
	struct sockaddr_xdp sxdp = {
		.sxdp_family = AF_XDP, .sxdp_flags = flags,
		.sxdp_ifindex = if_nametoindex(ifname),
		.sxdp_queue_id = queue,
	};
	int fd = socket(AF_XDP, SOCK_RAW, 0), nr = XSK_NR, err;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &reg, sizeof(reg)) ||
	    setsockopt(fd, SOL_XDP, XDP_UMEM_FILL_RING, &nr, sizeof(nr)) ||
	    setsockopt(fd, SOL_XDP, XDP_UMEM_COMPLETION_RING, &nr,
		       sizeof(nr)) ||
	    setsockopt(fd, SOL_XDP, XDP_RX_RING, &nr, sizeof(nr)) ||
	    setsockopt(fd, SOL_XDP, XDP_TX_RING, &nr, sizeof(nr)) ||
	    bind(fd, (struct sockaddr *)&sxdp, sizeof(sxdp))) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

/* Binds again until it succeeds, as a closed socket releases its queue
 * asynchronously.
 */
static inline int xsk_bind_wait(const char *ifname, int queue, int flags,
				void *umem)
{
	uint64_t end = now_ms() + WAIT_MS;
	int fd;

	do {
		fd = xsk_bind(ifname, queue, flags, umem);
	} while (fd == -EBUSY && now_ms() < end && !usleep(1000));
	return fd;
}

/* ---- one that sends and receives ---- */

struct xsk {
	int fd;
	unsigned int chunk;		/* bytes of a frame */
	char *umem;
	struct xsk_ring {
		__u32 *producer, *consumer;
		void *desc;
	} rx, tx, fill, done;
};

static inline int xsk_map(struct xsk *x, struct xsk_ring *r, int opt,
			  __u64 off, const struct xdp_ring_offset *o,
			  size_t desc)
{
	int nr = XSK_NR;
	char *p;

	if (setsockopt(x->fd, SOL_XDP, opt, &nr, sizeof(nr)))
		return -errno;
	p = mmap64(NULL, o->desc + XSK_NR * desc, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_POPULATE, x->fd, off);
	if (p == MAP_FAILED)
		return -errno;
	r->producer = (void *)(p + o->producer);
	r->consumer = (void *)(p + o->consumer);
	r->desc = p + o->desc;
	return 0;
}

/* @flags: XDP_COPY or XDP_ZEROCOPY */
static inline int xsk_open_mode(struct xsk *x, const char *ifname, int flags,
				unsigned int chunk)
{
	struct xdp_umem_reg reg = {
		.len = 2 * XSK_NR * chunk, .chunk_size = chunk,
	};
	struct sockaddr_xdp sxdp = {
		.sxdp_family = AF_XDP, .sxdp_flags = flags,
		.sxdp_ifindex = if_nametoindex(ifname),
	};
	struct xdp_mmap_offsets off;
	socklen_t len = sizeof(off);
	int i, err;

	x->fd = socket(AF_XDP, SOCK_RAW, 0);
	x->chunk = chunk;
	x->umem = pv4_new_area(reg.len);
	reg.addr = (uintptr_t)x->umem;
	if (x->fd < 0 ||
	    setsockopt(x->fd, SOL_XDP, XDP_UMEM_REG, &reg, sizeof(reg)) ||
	    getsockopt(x->fd, SOL_XDP, XDP_MMAP_OFFSETS, &off, &len))
		return -errno;
	err = xsk_map(x, &x->fill, XDP_UMEM_FILL_RING,
		      XDP_UMEM_PGOFF_FILL_RING, &off.fr, 8);
	if (!err)
		err = xsk_map(x, &x->done, XDP_UMEM_COMPLETION_RING,
			      XDP_UMEM_PGOFF_COMPLETION_RING, &off.cr, 8);
	if (!err)
		err = xsk_map(x, &x->rx, XDP_RX_RING, XDP_PGOFF_RX_RING,
			      &off.rx, sizeof(struct xdp_desc));
	if (!err)
		err = xsk_map(x, &x->tx, XDP_TX_RING, XDP_PGOFF_TX_RING,
			      &off.tx, sizeof(struct xdp_desc));
	if (err)
		return err;
	for (i = 0; i < XSK_NR; i++)
		((__u64 *)x->fill.desc)[i] = i * chunk;
	__atomic_store_n(x->fill.producer, XSK_NR, __ATOMIC_RELEASE);
	return bind(x->fd, (struct sockaddr *)&sxdp, sizeof(sxdp)) ? -errno : 0;
}

static inline int xsk_open(struct xsk *x, const char *ifname)
{
	return xsk_open_mode(x, ifname, XDP_COPY, 4096);
}

static inline int xsk_recv(struct xsk *x, char *buf, int ms)
{
	struct xdp_desc *d = x->rx.desc;
	__u64 end = now_ms() + ms;
	__u32 n = *x->rx.consumer;

	while (__atomic_load_n(x->rx.producer, __ATOMIC_ACQUIRE) == n) {
		if (now_ms() >= end)
			return -EAGAIN;
		poll_for(x->fd, POLLIN, 1);
	}
	d += n % XSK_NR;
	memcpy(buf, x->umem + d->addr, d->len);
	((__u64 *)x->fill.desc)[*x->fill.producer % XSK_NR] =
		d->addr & -(__u64)x->chunk;
	__atomic_store_n(x->fill.producer, *x->fill.producer + 1,
			 __ATOMIC_RELEASE);
	__atomic_store_n(x->rx.consumer, n + 1, __ATOMIC_RELEASE);
	return d->len;
}

static inline int xsk_send(struct xsk *x, const char *buf, int len)
{
	struct xdp_desc *d = x->tx.desc;
	__u32 n = *x->tx.producer;

	/* one packet at a time is sent, so all frames sent are free again */
	__atomic_store_n(x->done.consumer,
			 __atomic_load_n(x->done.producer, __ATOMIC_ACQUIRE),
			 __ATOMIC_RELEASE);
	d += n % XSK_NR;
	d->addr = (XSK_NR + n % XSK_NR) * x->chunk;
	d->len = len;
	d->options = 0;
	memcpy(x->umem + d->addr, buf, len);
	__atomic_store_n(x->tx.producer, n + 1, __ATOMIC_RELEASE);
	return sendto(x->fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0 ? -errno : 0;
}

#endif
