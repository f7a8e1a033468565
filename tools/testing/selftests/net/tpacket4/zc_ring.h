/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A minimal user of AF_PACKET V4's zero-copy mode: a socket with the status
 * page mapped behind its rings. It tracks which of its frames the kernel owns,
 * to detect frames that are returned twice or never. It can also use copy mode.
 */
#ifndef TPACKET4_ZC_RING_H
#define TPACKET4_ZC_RING_H

#include "busy.h"
#include "ring.h"

#include <linux/bpf.h>

#define BUF_SIZE	131072		/* more than any packet has */

struct zc {
	struct pv4 s;
	struct tpacket4_status *status;
	unsigned char *held;		/* 1: the kernel owns it */
	unsigned int first, count;	/* this socket's frames of the area */
	bool guest;			/* the area of another socket */
	unsigned int min_offset;	/* of received data */
	unsigned int strays;		/* frames returned but not posted */
	unsigned int rx_errors[256];	/* s.errors is the Tx ring's */
};

struct zc_cfg {
	const char *ifname;		/* NULL: not bound */
	int n;				/* PACKET_ZEROCOPY; 0: copy mode */
	unsigned int rx_nr, tx_nr;	/* 0: the least that may be */
	unsigned int frame_size;	/* 0: 2048 */
	unsigned int unit, step;	/* as in struct pv4_cfg, */
	char *memory;			/* with the memory of the area, */
	size_t align;			/* and what its length is rounded up to */
	unsigned int headroom, reserve;
	unsigned int sharers;		/* parts of the area */
	struct zc *area;		/* whose area to use, */
	unsigned int part;		/* and which part of it */
	bool rx_empty;			/* post nothing */
	bool no_status;			/* map no status page */
	bool meta;			/* TP4_RING_META */
	bool to_stack;			/* TP4_RING_TO_STACK */
	bool keep;			/* TP4_RING_KEEP */
	bool gso;			/* TP4_RING_GSO, with meta */
};

/* ---- the books ---- */

static inline void zc_post(struct zc *z, struct pv4_ring *r,
			   const struct tpacket4_desc *d, unsigned int n)
{
	unsigned int i;

	/* before the kernel can have passed them on */
	for (i = 0; i < n; i++)
		if (pv4_is_frame(&z->s, d[i].idx))
			__atomic_store_n(&z->held[d[i].idx / z->s.step], 1,
					 __ATOMIC_RELEASE);
	pv4_post(r, d, n);
}

static inline void zc_rx_post(struct zc *z, __u64 idx)
{
	struct tpacket4_desc d = { .idx = idx };

	zc_post(z, &z->s.rx, &d, 1);
}

static inline bool zc_take(struct zc *z, struct pv4_ring *r,
			   struct tpacket4_desc *d)
{
	if (!pv4_take(r, d))
		return false;
	if (pv4_is_frame(&z->s, d->idx))
		z->strays += !__atomic_exchange_n(&z->held[d->idx / z->s.step],
						  0, __ATOMIC_ACQ_REL);
	else
		z->strays += d->error != EINVAL;
	return true;
}

static inline bool zc_take_wait(struct zc *z, struct pv4_ring *r,
				struct tpacket4_desc *d, int ms)
{
	struct pollfd p = { .fd = z->s.fd, .events = POLLIN };
	__u64 end = now_ms() + ms;
	char c;

	while (!zc_take(z, r, d)) {
		if (now_ms() >= end)
			return false;
		/* poll() would kick, and hide a missing kick for Tx */
		if (r == &z->s.rx && all_busy_poll())
			recv(z->s.fd, &c, 1, MSG_DONTWAIT);
		else if (r == &z->s.rx)
			poll(&p, 1, 1);
		else
			usleep(100);
	}
	return true;
}

/* Counts the frames that the kernel owns; in a shared area, those of all
 * sockets.
 */
static inline unsigned int zc_held(struct zc *z)
{
	unsigned int i, n = 0;

	for (i = 0; i < z->s.frames; i++)
		n += z->held[i];
	return n;
}

/* Counts the descriptors that are posted and not returned. */
static inline unsigned int zc_away(struct zc *z)
{
	return z->s.rx.avail - z->s.rx.used + z->s.tx.avail - z->s.tx.used;
}

/* ---- set-up ---- */

static inline int zc_set(struct zc *z, int n)
{
	return pv4_setint(z->s.fd, PACKET_ZEROCOPY, n);
}

static inline int zc_get(struct zc *z)
{
	socklen_t len = sizeof(int);
	int n = -1;

	if (getsockopt(z->s.fd, SOL_PACKET, PACKET_ZEROCOPY, &n, &len))
		return -errno;
	return len == sizeof(n) ? n : -EBADMSG;
}

/* Maps the rings again, with the status page behind them. */
static inline int zc_map_status(struct zc *z)
{
	size_t len = z->s.map_len, page = getpagesize();
	void *p;

	munmap(z->s.map, len);
	z->s.map_len = len + page;
	p = mmap(NULL, len + page, PROT_READ | PROT_WRITE, MAP_SHARED, z->s.fd,
		 0);
	z->s.map = p;
	if (p == MAP_FAILED)
		return -errno;
	z->s.rx.desc = p;
	z->s.tx.desc = z->s.rx.desc + z->s.rx.size;
	z->status = (void *)((char *)p + len);
	return 0;
}

/* Opens a socket and posts every Rx descriptor; returns 0 or -errno. */
static inline int zc_open(struct zc *z, const struct zc_cfg *cfg)
{
	unsigned int rx_nr = cfg->rx_nr ? cfg->rx_nr : pv4_min_descs();
	unsigned int tx_nr = cfg->tx_nr ? cfg->tx_nr : pv4_min_descs();
	struct pv4_cfg base = {
		.rx_nr = rx_nr, .tx_nr = tx_nr,
		.frame_size = cfg->frame_size, .headroom = cfg->headroom,
		.unit = cfg->unit, .step = cfg->step,
		.area = cfg->memory, .area_align = cfg->align,
		.reserve = cfg->reserve, .meta = cfg->meta,
		.to_stack = cfg->to_stack, .keep = cfg->keep, .gso = cfg->gso,
		.frames = (rx_nr + tx_nr) * (1 + cfg->sharers),
	};
	unsigned int i;
	int err;

	memset(z, 0, sizeof(*z));
	z->s.fd = -1;
	z->count = rx_nr + tx_nr;
	if (cfg->area) {
		base.area = cfg->area->s.area;
		base.mr_fd = cfg->area->s.fd;
		base.frames = cfg->area->s.frames;
		z->first = cfg->part * z->count;
		z->guest = true;
	}
	err = pv4_open(&z->s, &base);
	if (err)
		return err;
	err = cfg->no_status ? 0 : zc_map_status(z);
	if (err)
		return err;
	z->held = cfg->area ? cfg->area->held :
		  mmap(NULL, z->s.frames, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (z->held == MAP_FAILED)
		return -ENOMEM;
	/* frames that pv4_open() posted were not tracked, and may be another
	 * socket's
	 */
	memset(z->s.rx.desc, 0, rx_nr * sizeof(*z->s.rx.desc));
	z->s.rx.avail = 0;
	z->s.nr_spare = 0;
	for (i = 0; i < rx_nr && !cfg->rx_empty; i++)
		zc_rx_post(z, (z->first + i) * z->s.step);
	for (i = z->count; i > rx_nr; i--)
		z->s.spare[z->s.nr_spare++] = (z->first + i - 1) * z->s.step;
	z->min_offset = z->s.offset + (cfg->n ? XDP_PACKET_HEADROOM : 0);
	/* in this order, nothing is received in copy mode, which uses another
	 * offset
	 */
	if (cfg->n)
		err = zc_set(z, cfg->n);
	if (!err && cfg->n && all_busy_poll())
		err = busy_poll_by_default(z->s.fd, cfg->ifname);
	if (!err && cfg->ifname)
		err = pv4_bind(z->s.fd, cfg->ifname, ETH_P_ALL);
	return err;
}

static inline void zc_close(struct zc *z)
{
	if (z->s.fd < 0)
		return;
	if (z->guest)
		z->s.area_len = 0;	/* not ours to unmap */
	else
		munmap(z->held, z->s.frames);
	pv4_close(&z->s);
}

/* ---- packets ---- */

/* As pv4_put(). */
static inline int zc_put(struct zc *z, const void *buf, size_t len,
			 unsigned int piece, unsigned int offset)
{
	struct tpacket4_desc d[MAX_CHAIN];
	int n = pv4_cut(&z->s, buf, len, piece, offset, d);

	if (n < 0)
		return n;
	zc_post(z, &z->s.tx, d, n);
	return 0;
}

static inline unsigned int zc_reap(struct zc *z)
{
	struct tpacket4_desc d;
	unsigned int n = 0;

	for (; zc_take(z, &z->s.tx, &d); n++) {
		z->s.errors[d.error]++;
		if (pv4_is_frame(&z->s, d.idx))
			z->s.spare[z->s.nr_spare++] = d.idx;
	}
	return n;
}

static inline bool zc_reap_all(struct zc *z, int ms)
{
	__u64 end = now_ms() + ms;

	while (zc_reap(z), z->s.tx.used != z->s.tx.avail) {
		if (now_ms() >= end)
			return false;
		usleep(100);
	}
	return true;
}

static inline int zc_kick(struct zc *z)
{
	int ret = pv4_kick(&z->s, MSG_DONTWAIT);

	return ret < 0 ? ret : 0;	/* copy mode: the bytes sent */
}

/*
 * Receives one packet to @buf and posts its frames again, also frames returned
 * with an error, which are counted. Returns the length, -EAGAIN if none was
 * received within @ms, or -EBADMSG if the kernel violated the protocol.
 */
static inline int zc_recv(struct zc *z, void *buf, size_t size, int ms)
{
	struct pv4 *s = &z->s;
	struct tpacket4_desc d;
	size_t len = 0;

	for (;;) {
		if (!zc_take_wait(z, &s->rx, &d, len ? WAIT_MS : ms))
			return len ? -EBADMSG : -EAGAIN;
		if (!pv4_is_frame(s, d.idx))
			return -EBADMSG;
		if (d.error) {
			z->rx_errors[d.error]++;
			if (d.len || len)
				return -EBADMSG;
			zc_rx_post(z, d.idx);
			continue;
		}
		/* only the first frame of a packet has XDP headroom, or, in
		 * copy mode, any
		 */
		if (d.offset < (!len ? z->min_offset :
				z->min_offset > s->offset ? s->offset : 0) ||
		    d.offset > s->frame_size ||
		    !d.len || d.len > s->frame_size - d.offset ||
		    (d.flags & ~TP4_PKT_CONT) != (s->meta && !len ?
						  TP4_META : 0) ||
		    len + d.len > size)
			return -EBADMSG;
		if (d.flags & TP4_META)
			memcpy(&s->got, pv4_frame(s, d.idx), sizeof(s->got));
		memcpy((char *)buf + len, pv4_frame(s, d.idx) + d.offset,
		       d.len);
		len += d.len;
		zc_rx_post(z, d.idx);
		if (!(d.flags & TP4_PKT_CONT))
			return len;
	}
}

/*
 * Waits until all descriptors posted on both rings have been returned, and
 * keeps the frames. Returns the number of descriptors with @error, -EAGAIN if
 * some were not returned, or -EBADMSG if one had another error, or an error
 * with a length.
 */
static inline int zc_all_back(struct zc *z, int error, int ms)
{
	struct tpacket4_desc d;
	int i, n = 0;

	for (i = 0; i < 2; i++) {
		struct pv4_ring *r = i ? &z->s.tx : &z->s.rx;

		while (r->used != r->avail) {
			if (!zc_take_wait(z, r, &d, ms))
				return -EAGAIN;
			if (d.error && (d.error != error || d.len))
				return -EBADMSG;
			n += d.error == error;
			z->s.spare[z->s.nr_spare++] = d.idx;
		}
	}
	return n;
}

/* Posts the frames from zc_all_back() on Rx. */
static inline void zc_refill(struct zc *z)
{
	while (z->s.nr_spare && z->s.rx.avail - z->s.rx.used < z->s.rx.size)
		zc_rx_post(z, z->s.spare[--z->s.nr_spare]);
}

/* Checks that the program owns every frame of the area, and that none was
 * returned twice.
 */
static inline bool zc_books_closed(struct zc *z)
{
	return !z->strays && !zc_held(z) && !zc_away(z);
}

/* Checks that the kernel owns exactly the frames that are posted; @o shares the
 * area.
 */
static inline bool zc_books_balance(struct zc *z, struct zc *o)
{
	return !z->strays && zc_held(z) == zc_away(z) + (o ? zc_away(o) : 0);
}

#endif
