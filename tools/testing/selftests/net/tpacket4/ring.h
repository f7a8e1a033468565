/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A minimal user of the AF_PACKET V4 rings, for the selftests. It is written
 * from the ABI and does not use the user-space library on purpose, so that a
 * bug in the library cannot hide one in the kernel.
 */
#ifndef TPACKET4_RING_H
#define TPACKET4_RING_H

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS		20000		/* long, for emulation */
#define QUIET_MS	200		/* nothing more is coming */
#define UNTOUCHED	0xa5		/* initial content of frames */

struct pv4_ring {
	struct tpacket4_desc *desc;
	unsigned int size;
	unsigned int avail;		/* next slot the program posts */
	unsigned int used;		/* next slot to come back */
};

struct pv4_cfg {
	const char *ifname;		/* NULL: not bound */
	unsigned int rx_nr, tx_nr;	/* size; 0: no such ring */
	unsigned int frames;		/* 0: rx_nr + tx_nr */
	unsigned int frame_size;	/* 0: 2048 */
	unsigned int unit;		/* frame_unit */
	unsigned int step;		/* units between frames; 0: 1 */
	unsigned int headroom;
	unsigned int reserve;
	int mr_fd;			/* 0: an area of its own */
	int type;			/* of socket(2); 0: SOCK_RAW */
	int proto;
	bool meta;			/* TP4_RING_META */
	bool shared;			/* TP4_MEMREG_SHARED */
	char *area;			/* 0: map a new one */
	size_t area_align;		/* of its length; 0: a page */
};

/* Rx uses frames 0 .. rx_nr - 1, Tx the others. Frame i has the number i * step.
 */
struct pv4 {
	int fd;
	char *area;
	size_t area_len;
	unsigned int frames, frame_size, unit, step;
	unsigned int offset;		/* expected offset of received data */
	void *map;
	size_t map_len;
	struct pv4_ring rx, tx;
	__u64 *spare;			/* frames to send from */
	unsigned int nr_spare;
	unsigned int errors[256];	/* descriptors returned, by errno */
	bool meta;			/* packets have metadata: */
	struct tpacket4_meta got;	/* of the last one received */
	const struct tpacket4_meta *put; /* of the next packets sent, or NULL */
};

static inline unsigned int pv4_min_descs(void)
{
	return getpagesize() / sizeof(struct tpacket4_desc);
}

static inline __u64 now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

/* ---- set-up ---- */

static inline int pv4_setopt(int fd, int opt, const void *val, socklen_t len)
{
	return setsockopt(fd, SOL_PACKET, opt, val, len) ? -errno : 0;
}

static inline int pv4_setint(int fd, int opt, int val)
{
	return pv4_setopt(fd, opt, &val, sizeof(val));
}

static inline int pv4_memreg_unit(int fd, const void *addr, size_t len,
				  unsigned int frame_size,
				  unsigned int headroom, unsigned int unit,
				  __u32 flags)
{
	struct tpacket_memreg_req req = {
		.addr = (uintptr_t)addr,
		.len = len,
		.frame_size = frame_size,
		.data_headroom = headroom,
		.frame_unit = unit,
		.flags = flags,
	};

	return pv4_setopt(fd, PACKET_MEMREG, &req, sizeof(req));
}

static inline int pv4_memreg_flags(int fd, const void *addr, size_t len,
				   unsigned int frame_size,
				   unsigned int headroom, __u32 flags)
{
	return pv4_memreg_unit(fd, addr, len, frame_size, headroom, 0, flags);
}

static inline int pv4_memreg(int fd, const void *addr, size_t len,
			     unsigned int frame_size, unsigned int headroom)
{
	return pv4_memreg_flags(fd, addr, len, frame_size, headroom, 0);
}

static inline int pv4_set_ring_flags(int fd, int opt, int mr_fd,
				     unsigned int nr, __u32 flags)
{
	struct tpacket_req4 req = {
		.mr_fd = mr_fd,
		.desc_nr = nr,
		.flags = flags,
	};

	return pv4_setopt(fd, opt, &req, sizeof(req));
}

static inline int pv4_set_ring(int fd, int opt, int mr_fd, unsigned int nr)
{
	return pv4_set_ring_flags(fd, opt, mr_fd, nr, 0);
}

/* @proto is the protocol of socket(2). Before they are bound, sockets of older
 * versions receive all packets of this protocol on every interface.
 */
static inline int pv4_socket_of(int type, int proto)
{
	int fd = socket(AF_PACKET, type, htons(proto));

	if (fd >= 0 && pv4_setint(fd, PACKET_VERSION, TPACKET_V4)) {
		close(fd);
		return -1;
	}
	return fd;
}

static inline int pv4_socket(void)
{
	return pv4_socket_of(SOCK_RAW, 0);
}

static inline void *pv4_new_area(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p != MAP_FAILED)
		memset(p, UNTOUCHED, len);
	return p;
}

static inline int pv4_stats(int fd, struct tpacket_stats_v4 *st)
{
	socklen_t len = sizeof(*st);

	memset(st, 0xff, sizeof(*st));
	if (getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, st, &len))
		return -errno;
	return len == sizeof(*st) ? 0 : -EBADMSG;
}

/* Adds up the counters of Rx until there are @packets, which may be after they
 * were sent. Those of full and empty rings are not set. Returns 0 or -errno.
 */
static inline int pv4_stats_of(int fd, unsigned int packets,
			       struct tpacket_stats_v4 *st)
{
	__u64 end = now_ms() + WAIT_MS;
	struct tpacket_stats_v4 more;
	int err;

	memset(st, 0, sizeof(*st));
	do {
		err = pv4_stats(fd, &more);
		if (err)
			return err;
		st->tp_packets += more.tp_packets;
		st->tp_drops += more.tp_drops;
		st->rx_invalid_descs += more.rx_invalid_descs;
	} while (st->tp_packets < packets && now_ms() < end);
	return 0;
}

static inline int pv4_bind(int fd, const char *ifname, int proto)
{
	struct sockaddr_ll ll = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(proto),
		.sll_ifindex = if_nametoindex(ifname),
	};

	return bind(fd, (struct sockaddr *)&ll, sizeof(ll)) ? -errno : 0;
}

/* ---- the rings ---- */

static inline struct tpacket4_desc *pv4_slot(struct pv4_ring *r, unsigned int i)
{
	return &r->desc[i & (r->size - 1)];
}

static inline bool desc_is_kernels(struct tpacket4_desc *d)
{
	return __atomic_load_n(&d->flags, __ATOMIC_ACQUIRE) & TP4_DESC_KERNEL;
}

/* Posts @n descriptors, last to first, so that the batch appears as a whole. */
static inline void pv4_post(struct pv4_ring *r, const struct tpacket4_desc *d,
			    unsigned int n)
{
	unsigned int i;

	for (i = n; i-- > 0; ) {
		struct tpacket4_desc *slot = pv4_slot(r, r->avail + i);

		slot->idx = d[i].idx;
		slot->len = d[i].len;
		slot->offset = d[i].offset;
		slot->error = d[i].error;
		__atomic_store_n(&slot->flags, d[i].flags | TP4_DESC_KERNEL,
				 __ATOMIC_RELEASE);
	}
	r->avail += n;
}

static inline void pv4_rx_post(struct pv4 *s, __u64 idx)
{
	struct tpacket4_desc d = { .idx = idx };

	pv4_post(&s->rx, &d, 1);
}

/* Gets the next returned descriptor; false if there is none. */
static inline bool pv4_take(struct pv4_ring *r, struct tpacket4_desc *d)
{
	struct tpacket4_desc *slot = pv4_slot(r, r->used);

	if (r->used == r->avail || desc_is_kernels(slot))
		return false;
	*d = *slot;
	r->used++;
	return true;
}

static inline bool pv4_take_wait(struct pv4 *s, struct pv4_ring *r,
				 struct tpacket4_desc *d, int ms)
{
	__u64 end = now_ms() + ms;
	struct pollfd p = {
		.fd = s->fd,
		.events = r == &s->rx ? POLLIN : 0,
	};

	while (!pv4_take(r, d)) {
		if (now_ms() >= end)
			return false;
		poll(&p, 1, 1);
	}
	return true;
}

/* 0 or -errno. */
static inline int pv4_map_rings(struct pv4 *s, unsigned int rx_nr,
				unsigned int tx_nr)
{
	s->map_len = (rx_nr + tx_nr) * sizeof(struct tpacket4_desc);
	s->map = mmap(NULL, s->map_len, PROT_READ | PROT_WRITE, MAP_SHARED,
		      s->fd, 0);
	if (s->map == MAP_FAILED)
		return -errno;
	s->rx.desc = s->map;
	s->rx.size = rx_nr;
	s->tx.desc = s->rx.desc + rx_nr;
	s->tx.size = tx_nr;
	return 0;
}

/* Opens a V4 socket and posts every Rx descriptor; returns 0 or -errno. */
static inline int pv4_open(struct pv4 *s, const struct pv4_cfg *cfg)
{
	__u32 flags = cfg->meta ? TP4_RING_META : 0;
	int mr_fd, err, sndbuf = 8 << 20;
	unsigned int i;

	memset(s, 0, sizeof(*s));
	s->meta = cfg->meta;
	s->frames = cfg->frames ? cfg->frames : cfg->rx_nr + cfg->tx_nr;
	s->frame_size = cfg->frame_size ? cfg->frame_size : 2048;
	s->unit = cfg->unit ? cfg->unit : s->frame_size;
	s->step = cfg->step ? cfg->step : 1;
	s->area_len = (size_t)s->frames * s->step * s->unit;
	s->area_len += -s->area_len & ((cfg->area_align ? cfg->area_align :
					getpagesize()) - 1);
	s->offset = ((cfg->headroom + 63) & ~63u) + cfg->reserve;
	s->area = cfg->area ? cfg->area : pv4_new_area(s->area_len);
	/* with room for frames that a test posts itself */
	s->spare = calloc(s->frames + cfg->tx_nr + 1, sizeof(*s->spare));
	if (s->area == MAP_FAILED || !s->spare)
		return -ENOMEM;
	s->fd = pv4_socket_of(cfg->type ? cfg->type : SOCK_RAW, cfg->proto);
	if (s->fd < 0)
		return -errno;
	setsockopt(s->fd, SOL_SOCKET, SO_SNDBUFFORCE, &sndbuf, sizeof(sndbuf));
	mr_fd = cfg->mr_fd ? cfg->mr_fd : s->fd;
	err = cfg->mr_fd ? 0 : pv4_memreg_unit(s->fd, s->area, s->area_len,
					       s->frame_size, cfg->headroom,
					       cfg->unit,
					       cfg->shared ?
					       TP4_MEMREG_SHARED : 0);
	if (!err && cfg->reserve)
		err = pv4_setint(s->fd, PACKET_RESERVE, cfg->reserve);
	if (!err && cfg->rx_nr)
		err = pv4_set_ring_flags(s->fd, PACKET_RX_RING, mr_fd,
					 cfg->rx_nr, flags);
	if (!err && cfg->tx_nr)
		err = pv4_set_ring_flags(s->fd, PACKET_TX_RING, mr_fd,
					 cfg->tx_nr, flags);
	if (!err)
		err = pv4_map_rings(s, cfg->rx_nr, cfg->tx_nr);
	if (err)
		return err;
	for (i = 0; i < cfg->rx_nr && i < s->frames; i++)
		pv4_rx_post(s, i * s->step);
	for (i = s->frames; i > cfg->rx_nr; i--)
		s->spare[s->nr_spare++] = (i - 1) * s->step;
	return cfg->ifname ? pv4_bind(s->fd, cfg->ifname,
				      cfg->proto ? cfg->proto : ETH_P_ALL) : 0;
}

static inline void pv4_close(struct pv4 *s)
{
	munmap(s->map, s->map_len);
	close(s->fd);
	munmap(s->area, s->area_len);
	free(s->spare);
	memset(s, 0, sizeof(*s));
	s->fd = -1;
}

static inline char *pv4_frame(struct pv4 *s, __u64 idx)
{
	return s->area + idx * (s->unit ? s->unit : s->frame_size);
}

/* Is it the number of one of the frames? */
static inline bool pv4_is_frame(const struct pv4 *s, __u64 idx)
{
	__u64 step = s->step ? s->step : 1;

	return idx < s->frames * step && !(idx % step);
}

/*
 * Receives one packet to @buf and posts its frames again. Descriptors returned
 * with an error are counted in s->errors and posted again with the frame @idx
 * of their slot. In copy mode, only the first frame of a packet has headroom.
 * Returns the length, -EAGAIN if none was received within @ms, or -EBADMSG if the
 * kernel violated the protocol.
 */
static inline int pv4_recv(struct pv4 *s, void *buf, size_t size, int ms)
{
	struct tpacket4_desc d;
	size_t len = 0;

	for (;;) {
		if (!pv4_take_wait(s, &s->rx, &d, len ? WAIT_MS : ms))
			return len ? -EBADMSG : -EAGAIN;
		if (d.error) {
			s->errors[d.error]++;
			if (d.len)
				return -EBADMSG;
			pv4_rx_post(s, ((s->rx.used - 1) & (s->rx.size - 1)) *
				       s->step);
			continue;
		}
		if (!pv4_is_frame(s, d.idx) ||
		    d.offset != (len ? 0 : s->offset) || !d.len ||
		    d.len > s->frame_size - d.offset ||
		    (d.flags & ~TP4_PKT_CONT) != (s->meta && !len ?
						  TP4_META : 0) ||
		    len + d.len > size)
			return -EBADMSG;
		if (d.flags & TP4_META)
			memcpy(&s->got, pv4_frame(s, d.idx), sizeof(s->got));
		memcpy((char *)buf + len, pv4_frame(s, d.idx) + d.offset,
		       d.len);
		len += d.len;
		pv4_rx_post(s, d.idx);
		if (!(d.flags & TP4_PKT_CONT))
			return len;
	}
}

/* Bytes sent, or -errno. */
static inline int pv4_kick(struct pv4 *s, int flags)
{
	int n = sendto(s->fd, NULL, 0, flags, NULL, 0);

	return n < 0 ? -errno : n;
}

#define MAX_CHAIN	512

/* Writes one packet to spare frames, in pieces of @piece bytes at @offset of
 * each. Returns the number of descriptors, or -ENOBUFS.
 */
static inline int pv4_cut(struct pv4 *s, const void *buf, size_t len,
			  unsigned int piece, unsigned int offset,
			  struct tpacket4_desc d[MAX_CHAIN])
{
	unsigned int n = 0;
	size_t done;

	for (done = 0; done < len; done += d[n].len, n++) {
		if (n == MAX_CHAIN || n == s->nr_spare ||
		    s->tx.avail - s->tx.used + n == s->tx.size)
			return -ENOBUFS;
		d[n] = (struct tpacket4_desc) {
			.idx = s->spare[s->nr_spare - 1 - n],
			.len = len - done < piece ? len - done : piece,
			.offset = offset,
			.flags = len - done <= piece ? 0 : TP4_PKT_CONT,
		};
		memcpy(pv4_frame(s, d[n].idx) + offset,
		       (const char *)buf + done, d[n].len);
	}
	if (s->put && n) {
		memcpy(pv4_frame(s, d[0].idx), s->put, sizeof(*s->put));
		d[0].flags |= TP4_META;
	}
	s->nr_spare -= n;
	return n;
}

/* Posts one packet for sending, cut by pv4_cut(). Returns 0 or -ENOBUFS. */
static inline int pv4_put(struct pv4 *s, const void *buf, size_t len,
			  unsigned int piece, unsigned int offset)
{
	struct tpacket4_desc d[MAX_CHAIN];
	int n = pv4_cut(s, buf, len, piece, offset, d);

	if (n < 0)
		return n;
	pv4_post(&s->tx, d, n);
	return 0;
}

/* Takes returned Tx descriptors and counts errors; returns how many there were.
 */
static inline unsigned int pv4_reap(struct pv4 *s)
{
	struct tpacket4_desc d;
	unsigned int n = 0;

	for (; pv4_take(&s->tx, &d); n++) {
		s->errors[d.error]++;
		/* a bad descriptor has no frame of the program */
		if (pv4_is_frame(s, d.idx))
			s->spare[s->nr_spare++] = d.idx;
	}
	return n;
}

/* Waits until every Tx descriptor has been returned. */
static inline bool pv4_reap_all(struct pv4 *s, int ms)
{
	__u64 end = now_ms() + ms;

	while (pv4_reap(s), s->tx.used != s->tx.avail) {
		if (now_ms() >= end)
			return false;
		usleep(1000);
	}
	return true;
}

#endif
