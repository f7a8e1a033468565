// SPDX-License-Identifier: GPL-2.0
/*
 * AF_XDP, with libxdp: four rings and one area of frames (umem). A frame moves
 * from the fill ring to Rx, or from Tx to the completion ring. Forwarding moves
 * a packet from Rx to Tx and later its frame from the completion ring to the
 * fill ring.
 *
 * A link holds the XDP program, so that it is detached whenever tpbench ends.
 */
#include "tpbench.h"

#ifdef HAVE_LIBXDP
#include <stdlib.h>
#include <bpf/bpf.h>
#include <linux/if_link.h>
#include <xdp/xsk.h>

#ifndef SOL_XDP
#define SOL_XDP		283
#endif
#define BUSY_US		10000
#define BUSY_TRIES	100

struct xdp {
	struct xsk_umem *umem;
	struct xsk_socket *xsk;
	struct xsk_ring_prod fill, tx;
	struct xsk_ring_cons comp, rx;
	__u8 *area;
	unsigned int nr;	/* frames */
	__u64 fresh;		/* the first frame that was never used */
	unsigned int sending;	/* frames on the Tx ring or in the device */
	unsigned int idle;	/* frames peeked at on comp */
	__u64 drops;		/* by the kernel, already reported */
	bool forwards;		/* the last round has forwarded packets */
	bool redirects;		/* the program is attached */
};

/* One for each end: sockets that share an interface share its program. */
static struct redirect {
	unsigned int users;
	int map, prog, link;
} redirects[2];

static int check(int e, const char *what)
{
	if (e < 0)
		errx(1, "AF_XDP: %s: %s", what, strerror(-e));
	return e;
}

static __u32 xdp_flags(const struct config *cfg)
{
	return cfg->skb_mode ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE;
}

/* Redirect each packet to the socket of its queue, or pass it. */
static int redirect_load(int map)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts,
		    .prog_flags = BPF_F_XDP_HAS_FRAGS);
	const struct bpf_insn insns[] = {
		/* r2 = ctx->rx_queue_index */
		{ .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = BPF_REG_2,
		  .src_reg = BPF_REG_1,
		  .off = offsetof(struct xdp_md, rx_queue_index) },
		/* r1 = map */
		{ .code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = BPF_REG_1,
		  .src_reg = BPF_PSEUDO_MAP_FD, .imm = map },
		{ },
		/* r3 = XDP_PASS, for a queue without a socket */
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3,
		  .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect_map },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return bpf_prog_load(BPF_PROG_TYPE_XDP, "tpbench", "GPL", insns,
			     sizeof(insns) / sizeof(*insns), &opts);
}

static void redirect_get(const struct port *p)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = xdp_flags(p->cfg));
	struct redirect *r = &redirects[p->end];

	if (r->users++)
		return;
	r->map = check(bpf_map_create(BPF_MAP_TYPE_XSKMAP, "tpbench",
				      sizeof(int), sizeof(int),
				      p->cfg->zerocopy + p->cfg->queues, NULL),
		       "map");
	r->prog = check(redirect_load(r->map), "program");
	r->link = check(bpf_link_create(r->prog, p->ifindex, BPF_XDP, &opts),
			"attach the program");
}

static void redirect_put(const struct port *p)
{
	struct redirect *r = &redirects[p->end];

	if (--r->users)
		return;
	close(r->link);
	close(r->prog);
	close(r->map);
}

/* Reserve n entries; the ring has room for all frames. */
static inline __u32 reserve(struct xsk_ring_prod *r, unsigned int n)
{
	__u32 at = 0;

	xsk_ring_prod__reserve(r, n, &at);
	return at;
}

/* Put n frames, starting with this one, on the fill ring. */
static void lend(struct xdp *x, __u64 frame, unsigned int n)
{
	__u32 i, at = reserve(&x->fill, n);

	for (i = 0; i < n; i++)
		*xsk_ring_prod__fill_addr(&x->fill, at + i) =
			(frame + i) * FRAME_SIZE;
	xsk_ring_prod__submit(&x->fill, n);
}

static void make_umem(struct port *p, struct xdp *x)
{
	const struct config *cfg = p->cfg;
	struct xsk_umem_config conf = {
		.frame_size = FRAME_SIZE,
	};
	__u8 packet[FRAME_SIZE];
	unsigned int i;
	size_t len;

	/* Both rings have room for all frames. */
	x->nr = cfg->ring * (p->rx + p->tx);
	conf.fill_size = x->nr;
	conf.comp_size = x->nr;
	len = (size_t)x->nr * FRAME_SIZE;
	x->area = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (x->area == MAP_FAILED)
		err(1, "AF_XDP: packet memory");
	packet_make(packet, cfg->size, 0);
	for (i = 0; p->tx && i < x->nr; i++)
		memcpy(x->area + (size_t)i * FRAME_SIZE, packet, cfg->size);
	check(xsk_umem__create(&x->umem, x->area, len, &x->fill, &x->comp,
			       &conf), "packet memory");
}

static void xdp_open(struct port *p)
{
	const struct config *cfg = p->cfg;
	const struct xsk_socket_config conf = {
		.rx_size = cfg->ring,
		.tx_size = cfg->ring,
		.libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
		.xdp_flags = xdp_flags(cfg),
		.bind_flags = XDP_USE_NEED_WAKEUP |
			      (cfg->zerocopy ? XDP_ZEROCOPY : XDP_COPY),
	};
	struct xdp *x = calloc(1, sizeof(*x));
	int e, fd, tries = BUSY_TRIES;

	if (!x)
		err(1, "AF_XDP");
	p->ring = x;
	make_umem(p, x);
	if (p->rx) {
		lend(x, 0, cfg->ring);
		x->fresh = cfg->ring;
	}
	/* Some devices in zero-copy mode need a program even to send. */
	x->redirects = p->rx || cfg->zerocopy;
	if (x->redirects)
		redirect_get(p);
	/* The previous owner may still be releasing the queue. */
	do {
		e = xsk_socket__create(&x->xsk, cfg->ifname[p->end], p->queue,
				       x->umem, p->rx ? &x->rx : NULL,
				       p->tx ? &x->tx : NULL, &conf);
	} while (e == -EBUSY && tries-- && !usleep(BUSY_US));
	check(e, cfg->zerocopy ? "bind (zero-copy)" : "bind");
	fd = xsk_socket__fd(x->xsk);
	p->fd = fd;
	if (p->rx) {
		int key = p->queue;

		if (bpf_map_update_elem(redirects[p->end].map, &key, &fd, 0))
			err(1, "AF_XDP: map");
	}
}

static void xdp_close(struct port *p)
{
	struct xdp *x = p->ring;

	if (x->redirects)
		redirect_put(p);
	xsk_socket__delete(x->xsk);
	p->fd = -1;
	xsk_umem__delete(x->umem);
	munmap(x->area, (size_t)x->nr * FRAME_SIZE);
	free(x);
}

/* Nothing received: does the driver need a wake-up? */
static void starved(struct port *p, struct xdp *x)
{
	if (p->cfg->busy_poll || !xsk_ring_prod__needs_wakeup(&x->fill))
		return;
	p->n.kicks++;
	recv(p->fd, NULL, 0, MSG_DONTWAIT);
}

static unsigned int xdp_rx_drop(struct port *p, unsigned int max)
{
	const bool verify = p->cfg->verify;
	struct xdp *x = p->ring;
	/* Local copies, which stores to rings and packets do not invalidate */
	struct xsk_ring_prod fill = x->fill;
	struct xsk_ring_cons rx = x->rx;
	__u32 i, n, from, to;
	__u64 bytes = 0;

	n = xsk_ring_cons__peek(&x->rx, max, &from);
	if (!n) {
		starved(p, x);
		return 0;
	}
	to = reserve(&x->fill, n);
	for (i = 0; i < n; i++) {
		const struct xdp_desc *d;

		d = xsk_ring_cons__rx_desc(&rx, from + i);
		bytes += d->len;
		if (verify)
			packet_check(p, x->area + d->addr, d->len);
		*xsk_ring_prod__fill_addr(&fill, to + i) = d->addr;
	}
	xsk_ring_prod__submit(&x->fill, n);
	xsk_ring_cons__release(&x->rx, n);
	p->n.bytes += bytes;
	return n;
}

static inline void post(struct xsk_ring_prod *tx, __u32 at, __u64 addr,
			__u32 len)
{
	struct xdp_desc *d = xsk_ring_prod__tx_desc(tx, at);

	d->addr = addr;
	d->len = len;
	d->options = 0;
}

/*
 * The frames on the completion ring are sent next. They stay there until then,
 * because it has room for all frames.
 */
static unsigned int xdp_tx_fill(struct port *p, unsigned int max)
{
	const unsigned int size = p->cfg->size;
	struct xdp *x = p->ring;
	/* Copies, as in xdp_rx_drop() */
	struct xsk_ring_cons comp = x->comp;
	struct xsk_ring_prod tx = x->tx;
	unsigned int i, n, again, room;
	__u32 at, from;

	room = xsk_prod_nb_free(&x->tx, max);
	n = x->idle + (x->nr - x->fresh);
	if (n > max)
		n = max;
	if (n > room)
		n = room;
	if (!n)
		return 0;
	again = n < x->idle ? n : x->idle;
	at = reserve(&x->tx, n);
	from = x->comp.cached_cons - x->idle;
	for (i = 0; i < again; i++)
		post(&tx, at + i, *xsk_ring_cons__comp_addr(&comp, from + i),
		     size);
	if (again) {
		xsk_ring_cons__release(&x->comp, again);
		x->idle -= again;
	}
	for (; i < n; i++)
		post(&tx, at + i, x->fresh++ * FRAME_SIZE, size);
	for (i = 0; p->cfg->verify && i < n; i++)
		packet_make(x->area + xsk_ring_prod__tx_desc(&tx, at + i)->addr,
			    size, p->tx_seq++);
	xsk_ring_prod__submit(&x->tx, n);
	x->sending += n;
	return n;
}

static unsigned int xdp_tx_reap(struct port *p)
{
	struct xdp *x = p->ring;
	__u32 i, n, from, to;

	if (!x->sending)
		return 0;
	n = xsk_ring_cons__peek(&x->comp, x->sending, &from);
	if (!n)
		return 0;
	x->sending -= n;
	if (!p->rx) {
		x->idle += n;
		return n;
	}
	to = reserve(&x->fill, n);
	for (i = 0; i < n; i++)
		*xsk_ring_prod__fill_addr(&x->fill, to + i) =
			*xsk_ring_cons__comp_addr(&x->comp, from + i);
	xsk_ring_prod__submit(&x->fill, n);
	xsk_ring_cons__release(&x->comp, n);
	return n;
}

static bool xdp_tx_busy(struct port *p)
{
	struct xdp *x = p->ring;

	return x->sending;
}

/*
 * In zero-copy mode, receiving also sends: while packets are received, the
 * driver processes forwarded ones. Kick it for those left on the ring when no
 * more are received.
 */
static bool xdp_need_kick(struct port *p)
{
	struct xdp *x = p->ring;

	if (!p->cfg->zerocopy)
		return true;
	if (!xsk_ring_prod__needs_wakeup(&x->tx))
		return false;
	if (p->cfg->mode != MODE_L2FWD)
		return true;
	return !x->forwards && xsk_prod_nb_free(&x->tx, p->cfg->ring) <
			       p->cfg->ring;
}

static unsigned int xdp_forward(struct port *p, unsigned int max)
{
	const bool verify = p->cfg->verify;
	struct xdp *x = p->ring;
	/* Copies, as in xdp_rx_drop() */
	struct xsk_ring_cons rx = x->rx;
	struct xsk_ring_prod tx = x->tx;
	__u8 *area = x->area;
	__u32 i, n, room, from, to;
	__u64 bytes = 0;

	room = xsk_prod_nb_free(&x->tx, max);
	if (max > room)
		max = room;
	n = max ? xsk_ring_cons__peek(&x->rx, max, &from) : 0;
	x->forwards = n;
	if (!n) {
		starved(p, x);
		return 0;
	}
	to = reserve(&x->tx, n);
	for (i = 0; i < n; i++) {
		const struct xdp_desc *s = xsk_ring_cons__rx_desc(&rx,
								  from + i);
		__u8 *data = area + s->addr;

		swap_macs(data);
		bytes += s->len;
		if (verify)
			packet_check(p, data, s->len);
		post(&tx, to + i, s->addr, s->len);
	}
	xsk_ring_prod__submit(&x->tx, n);
	xsk_ring_cons__release(&x->rx, n);
	x->sending += n;
	p->n.bytes += bytes;
	return n;
}

static __u64 xdp_drops(struct port *p)
{
	struct xdp_statistics st = { 0 };
	struct xdp *x = p->ring;
	socklen_t len = sizeof(st);
	__u64 n;

	if (getsockopt(p->fd, SOL_XDP, XDP_STATISTICS, &st, &len))
		err(1, "XDP_STATISTICS");
	n = st.rx_dropped + st.rx_ring_full - x->drops;
	x->drops += n;
	return n;
}

const struct ring_ops ring_xdp = {
	.open = xdp_open,
	.close = xdp_close,
	.drops = xdp_drops,
	.rx_drop = xdp_rx_drop,
	.tx_fill = xdp_tx_fill,
	.tx_reap = xdp_tx_reap,
	.tx_busy = xdp_tx_busy,
	.need_kick = xdp_need_kick,
	.forward = xdp_forward,
};
#else
static void no_libxdp(struct port *p)
{
	(void)p;
	errx(1, "this tpbench was built without libxdp (package libxdp-dev)");
}

const struct ring_ops ring_xdp = {
	.open = no_libxdp,
};
#endif /* HAVE_LIBXDP */
