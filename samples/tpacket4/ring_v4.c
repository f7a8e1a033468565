// SPDX-License-Identifier: GPL-2.0
/*
 * TPACKET_V4: two rings of descriptors and one area of frames. To forward a
 * packet is to move its descriptor from one ring to the other. Zero-copy mode
 * is the same rings, and more room before the data.
 */
#include <stdlib.h>

#include "tpbench.h"

/*
 * Packets that are only received lie one behind the other, as in V3's blocks.
 * For each frame of the other rings, there are so many slots, and slots and
 * packets take as much memory as V3's ring.
 */
#define PACKED_SLOTS	16

struct v4 {
	struct tp4_socket *sock;	/* own, or of the queues of the end */
	struct tp4_socket own;
	struct tp4_area area;
	struct tp4_pool pool;		/* frames for packets of our own */
	__u64 *frames;			/* the pool's memory */
	struct tpacket4_desc *batch;	/* for tx_fill() */
	__u16 offset;			/* of packets of our own */
	unsigned int idle;		/* were sent, and are to be sent again */
	bool cont;			/* Rx is in the middle of a packet */
	bool busy;			/* the last batch was full */
};

/* --shared: one area for both ends, registered with a socket of its own. */
static struct tp4_area shared_area;
static int shared_fd = -1;

/* Zero-copy mode: the queues of each end, and their packet memory */
static struct tp4_queues queues[2];
static struct tp4_area queue_area[2];

static void check(int e, enum tp4_where where, const char *what)
{
	if (e)
		errx(1, "V4: %s: %s", what, tp4_strerror(where, e));
}

void v4_share_area(const struct config *cfg)
{
	/* two ends, two rings each */
	check(tp4_area_create(&shared_area, 4 * cfg->ring, FRAME_SIZE),
	      TP4_IN_AREA, "packet memory");
	shared_area.shared = 1;
	shared_fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (shared_fd < 0)
		err(1, "socket");
	check(tp4_area_register(&shared_area, shared_fd, 0), TP4_IN_MEMREG,
	      "packet memory (has this kernel CONFIG_PACKET_V4?)");
}

/* Open the sockets of all queues with the first one, and take that of this one. */
static void queue_open(struct port *p, struct v4 *v, struct tp4_options *opt,
		       unsigned int nr)
{
	struct tp4_area *area = &queue_area[p->end];
	struct tp4_queues *q = &queues[p->end];
	int e;

	if (p->nr == 0) {
		if (!p->cfg->shared) {
			check(tp4_area_create(area, nr * p->cfg->queues,
					      FRAME_SIZE),
			      TP4_IN_AREA, "packet memory");
			opt->area = area;
		}
		opt->fd = 0;
		e = tp4_open_queues(q, p->queue, p->cfg->queues, opt);
		check(e, q->failed, "set-up");
	}
	if (!p->cfg->shared)
		v->area = *area;
	v->offset = TP4_ZC_HEADROOM;
	v->sock = &q->s[p->nr];
	p->fd = v->sock->fd;
}

static void socket_open(struct port *p, struct v4 *v, struct tp4_options *opt,
			unsigned int nr)
{
	int e;

	if (!p->cfg->shared) {
		check(tp4_area_create(&v->area, nr, FRAME_SIZE), TP4_IN_AREA,
		      "packet memory");
		opt->area = &v->area;
	}
	v->sock = &v->own;
	e = tp4_open(v->sock, opt);
	check(e, v->own.failed, "set-up");
}

/* Receive only: post all slots of a packed ring. */
static void packed_open(struct port *p, struct v4 *v)
{
	unsigned int i, slots = p->cfg->ring * PACKED_SLOTS;
	const __u64 frame = 0;
	struct tp4_options opt = {
		.rx_nr = slots,
		.fd = p->fd,
		.meta = p->cfg->meta,
		.packed = 1,
	};

	socket_open(p, v, &opt, p->cfg->ring - slots *
		    sizeof(struct tpacket4_desc) / FRAME_SIZE);
	for (i = 0; i < slots; i++)
		tp4_ring_post(&v->sock->rx, &frame, 1);
}

static void v4_open(struct port *p)
{
	unsigned int nr = p->cfg->ring * (p->rx + p->tx), first = 0;
	struct tp4_options opt = {
		.rx_nr = p->rx ? p->cfg->ring : 0,
		.tx_nr = p->tx ? p->cfg->ring : 0,
		.fd = p->fd,
		.meta = p->cfg->meta,
	};
	struct v4 *v = calloc(1, sizeof(*v));
	__u8 packet[FRAME_SIZE];
	unsigned int i;

	if (!v)
		err(1, "V4");
	p->ring = v;
	if (!p->tx && !p->zerocopy && !p->cfg->shared) {
		packed_open(p, v);
		return;
	}
	v->frames = calloc(nr, sizeof(*v->frames));
	v->batch = calloc(p->cfg->batch, sizeof(*v->batch));
	if (!v->frames || !v->batch)
		err(1, "V4");

	if (p->cfg->shared) {
		v->area = shared_area;
		first = p->part * nr;
		opt.mr_fd = shared_fd;
	} else if (p->zerocopy) {
		first = p->nr * nr;
	}
	if (p->zerocopy)
		queue_open(p, v, &opt, nr);
	else
		socket_open(p, v, &opt, nr);

	packet_make(packet, p->cfg->size, 0);
	for (i = first; p->tx && i < first + nr; i++)
		memcpy(tp4_frame(&v->area, i) + v->offset, packet,
		       p->cfg->size);
	tp4_pool_init(&v->pool, v->frames, first, nr);
	if (p->rx) {
		v->pool.nr -= tp4_ring_post(&v->sock->rx,
					    v->frames + nr - p->cfg->ring,
					    p->cfg->ring);
	}
}

static void v4_close(struct port *p)
{
	struct v4 *v = p->ring;

	tp4_close(v->sock);
	p->fd = -1;
	/* With several queues, it is the memory of all of them. */
	if (!p->cfg->shared && (!p->zerocopy || p->nr == 0))
		tp4_area_destroy(&v->area);
	free(v->batch);
	free(v->frames);
	free(v);
}

/* Swap the addresses of the packets that start in these slots. */
static void swap_packets(const struct v4 *v, const struct tpacket4_desc *d,
			 const struct tpacket4_desc *end, bool cont)
{
	/* A copy, which no store to a packet makes the compiler load again */
	const struct tp4_area area = v->area;

	for (; d != end; d++) {
		if (!cont)
			swap_macs(tp4_data(&area, d));
		cont = d->flags & TP4_PKT_CONT;
	}
}

static unsigned int count_packets(const struct tpacket4_desc *d,
				  const struct tpacket4_desc *end)
{
	unsigned int n = 0;

	for (; d != end; d++)
		n += !(d->flags & TP4_PKT_CONT);
	return n;
}

/*
 * Look at n descriptors that have come back on Rx; return how many packets
 * end among them. With swap, do what l2fwd does to each packet.
 */
static inline unsigned int look(struct port *p, struct v4 *v, unsigned int n,
				bool swap)
{
	const struct tp4_ring *rx = &v->sock->rx;
	unsigned int i, m, packets = 0;
	__u8 error = 0;

	for (i = 0; i < n; i += m) {
		const struct tpacket4_desc *d, *end, *from = tp4_ring_at(rx, i);
		__u64 bytes = 0;
		__u8 flags = 0;

		m = tp4_ring_contiguous(rx, i, n - i);
		end = from + m;
		for (d = from; d != end; d++) {
			bytes += d->len;
			error |= d->error;
			flags |= d->flags;
		}
		p->n.bytes += bytes;
		packets += flags & TP4_PKT_CONT ? count_packets(from, end) : m;
		if (swap)
			swap_packets(v, from, end, v->cont);
		for (d = from; p->cfg->verify && d != end; d++)
			packet_check(p, tp4_data(&v->area, d), d->len);
		v->cont = end[-1].flags & TP4_PKT_CONT;
	}
	if (error)
		check(tp4_ring_error(rx, n), TP4_IN_RX, "receive");
	return packets;
}

/* Frames were lent: tell the device, should it wait for that. */
static void rx_lent(struct port *p, struct v4 *v)
{
	if (!tp4_rx_need_kick(v->sock))
		return;
	p->n.kicks++;
	check(tp4_rx_kick(v->sock), TP4_IN_WAIT, "poll");
}

static unsigned int v4_rx_drop(struct port *p, unsigned int max)
{
	struct v4 *v = p->ring;
	unsigned int packets, n = tp4_ring_peek(&v->sock->rx, max);

	packets = look(p, v, n, false);
	tp4_ring_recycle(&v->sock->rx, n);
	if (n)
		rx_lent(p, v);
	else if (p->cfg->poll)
		tp4_ring_prepare_poll(&v->sock->rx);
	return packets;
}

/* Packets in frames that were never used */
static unsigned int send_fresh(struct port *p, struct v4 *v, unsigned int max)
{
	unsigned int i;

	if (max > v->pool.nr)
		max = v->pool.nr;
	if (max > tp4_ring_free(&v->sock->tx))
		max = tp4_ring_free(&v->sock->tx);
	for (i = 0; i < max; i++) {
		struct tpacket4_desc *d = &v->batch[i];

		d->idx = v->pool.frames[--v->pool.nr];
		d->len = p->cfg->size;
		d->offset = v->offset;
		if (p->cfg->verify)
			packet_make(tp4_data(&v->area, d), p->cfg->size,
				    p->tx_seq++);
	}
	return tp4_ring_send(&v->sock->tx, v->batch, max);
}

/* Packets in frames that were sent, and stay on the ring until they are again */
static unsigned int send_again(struct port *p, struct v4 *v, unsigned int max)
{
	unsigned int i;

	if (max > v->idle)
		max = v->idle;
	for (i = 0; p->cfg->verify && i < max; i++) {
		struct tpacket4_desc *d = tp4_ring_at(&v->sock->tx, i);

		packet_make(tp4_frame(&v->area, d->idx) + v->offset,
			    p->cfg->size, p->tx_seq++);
	}
	tp4_ring_resend(&v->sock->tx, max, p->cfg->size, v->offset);
	v->idle -= max;
	return max;
}

static unsigned int v4_tx_fill(struct port *p, unsigned int max)
{
	struct v4 *v = p->ring;
	unsigned int n = send_fresh(p, v, max);

	/* On a full ring, a frame goes out in the slot that it came back in. */
	return n == max ? n : n + send_again(p, v, max - n);
}

/*
 * How many of the n slots that have come back were dropped by a full queue. Our
 * packets are good: one that is refused for another reason ends the run.
 */
static unsigned int tx_lost(const struct v4 *v, unsigned int n)
{
	unsigned int i, lost = 0;

	for (i = v->idle; i < n; i++) {
		int error = tp4_ring_at(&v->sock->tx, i)->error;

		if (error == ENOBUFS)
			lost++;
		else
			check(-error, TP4_IN_TX, "packet refused");
	}
	return lost;
}

/* Returned slots, without the idle ones */
static unsigned int tx_ready(struct v4 *v, unsigned int max, unsigned int *lost)
{
	unsigned int i, m, n = tp4_ring_peek(&v->sock->tx, max);
	const struct tpacket4_desc *d, *end;
	__u8 error = 0;

	for (i = v->idle; i < n; i += m) {
		d = tp4_ring_at(&v->sock->tx, i);
		m = tp4_ring_contiguous(&v->sock->tx, i, n - i);
		for (end = d + m; d != end; d++)
			error |= d->error;
	}
	*lost = error ? tx_lost(v, n) : 0;
	return n - v->idle;
}

static unsigned int v4_tx_reap(struct port *p)
{
	struct v4 *v = p->ring;
	unsigned int lost, n = tx_ready(v, p->cfg->ring, &lost);
	unsigned int refill = 0;

	p->lost += lost;
	if (p->cfg->mode == MODE_TXPUSH) {
		v->idle += n;
		return n - lost;
	}

	/* Rx wants its frames back first; what is left is for tx_fill(). */
	if (p->rx)
		refill = tp4_ring_refill(&v->sock->tx, &v->sock->rx, n);
	if (refill)
		rx_lent(p, v);
	if (n > refill)
		tp4_pool_put(&v->pool, &v->sock->tx, n - refill);
	return n - lost;
}

static bool v4_tx_busy(struct port *p)
{
	struct v4 *v = p->ring;

	return tp4_ring_pending(&v->sock->tx);
}

/* After a full batch, there may be more: kick the driver for all of them. */
static bool v4_need_kick(struct port *p)
{
	struct v4 *v = p->ring;

	return !v->busy && tp4_need_kick(v->sock);
}

static unsigned int v4_forward(struct port *p, unsigned int max)
{
	struct v4 *v = p->ring;
	unsigned int n, packets;

	if (max > tp4_ring_free(&v->sock->tx))
		max = tp4_ring_free(&v->sock->tx);
	n = tp4_ring_peek(&v->sock->rx, max);
	if (!n && p->cfg->poll)
		tp4_ring_prepare_poll(&v->sock->rx);
	v->busy = p->zerocopy && n == p->cfg->batch;
	packets = look(p, v, n, true);
	tp4_ring_forward(&v->sock->rx, &v->sock->tx, n);
	return packets;
}

const struct ring_ops ring_v4 = {
	.is_packet = true,
	.open = v4_open,
	.close = v4_close,
	.rx_drop = v4_rx_drop,
	.tx_fill = v4_tx_fill,
	.tx_reap = v4_tx_reap,
	.tx_busy = v4_tx_busy,
	.need_kick = v4_need_kick,
	.forward = v4_forward,
};
