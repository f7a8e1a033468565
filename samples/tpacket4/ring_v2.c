// SPDX-License-Identifier: GPL-2.0
/*
 * TPACKET_V2: a ring of frames, each with a header whose status says whose
 * the frame is. Packets are received into the Rx ring and sent from the Tx
 * ring; to forward one is to copy it.
 */
#include <stdlib.h>

#include "tpbench.h"

/* Where the kernel expects the packet of a Tx frame. */
#define TX_OFFSET	(TPACKET2_HDRLEN - sizeof(struct sockaddr_ll))
#define BLOCK_SIZE	(64 * 1024)

struct v2 {
	__u8 *map;
	size_t map_len;
	__u8 *rx, *tx;
	unsigned int mask;
	unsigned int rx_next;	/* frame to be received next */
	unsigned int tx_next;	/* frame to be sent next */
	unsigned int tx_done;	/* frame to be completed next */
};

static struct tpacket2_hdr *frame(__u8 *ring, const struct v2 *v,
				  unsigned int i)
{
	return (void *)(ring + (size_t)(i & v->mask) * FRAME_SIZE);
}

static __u32 status(const struct tpacket2_hdr *h)
{
	return __atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE);
}

static void set_status(struct tpacket2_hdr *h, __u32 s)
{
	__atomic_store_n(&h->tp_status, s, __ATOMIC_RELEASE);
}

static void v2_open(struct port *p)
{
	size_t len = (size_t)p->cfg->ring * FRAME_SIZE;
	struct tpacket_req req = {
		.tp_frame_size = FRAME_SIZE,
		.tp_frame_nr = p->cfg->ring,
		.tp_block_size = BLOCK_SIZE,
		.tp_block_nr = len / BLOCK_SIZE,
	};
	struct v2 *v = calloc(1, sizeof(*v));
	__u8 packet[FRAME_SIZE];
	unsigned int i;
	int e;

	if (!v)
		err(1, "V2");
	p->ring = v;
	v->mask = p->cfg->ring - 1;
	e = tp4_setopt(p->fd, PACKET_VERSION, TPACKET_V2);
	if (e)
		errx(1, "PACKET_VERSION V2: %s", strerror(-e));
	if (p->rx && setsockopt(p->fd, SOL_PACKET, PACKET_RX_RING, &req,
				sizeof(req)))
		err(1, "V2: PACKET_RX_RING");
	if (p->tx && setsockopt(p->fd, SOL_PACKET, PACKET_TX_RING, &req,
				sizeof(req)))
		err(1, "V2: PACKET_TX_RING");

	v->map_len = len * (p->rx + p->tx);
	v->map = mmap(NULL, v->map_len, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_POPULATE, p->fd, 0);
	if (v->map == MAP_FAILED)
		err(1, "V2: mmap");
	v->rx = v->map;
	v->tx = v->map + (p->rx ? len : 0);
	packet_make(packet, p->cfg->size, 0);
	for (i = 0; p->tx && i < p->cfg->ring; i++)
		memcpy((__u8 *)frame(v->tx, v, i) + TX_OFFSET, packet,
		       p->cfg->size);
}

static void v2_close(struct port *p)
{
	struct v2 *v = p->ring;

	munmap(v->map, v->map_len);
	free(v);
}

static unsigned int v2_rx_drop(struct port *p, unsigned int max)
{
	const bool verify = p->cfg->verify;
	struct v2 *v = p->ring;
	__u64 bytes = 0;
	unsigned int n;

	for (n = 0; n < max; n++) {
		struct tpacket2_hdr *h = frame(v->rx, v, v->rx_next);

		if (!(status(h) & TP_STATUS_USER))
			break;
		__builtin_prefetch(frame(v->rx, v, v->rx_next + 1));
		bytes += h->tp_snaplen;
		if (verify)
			packet_check(p, (__u8 *)h + h->tp_mac, h->tp_snaplen);
		set_status(h, TP_STATUS_KERNEL);
		v->rx_next++;
	}
	p->n.bytes += bytes;
	return n;
}

static unsigned int tx_room(const struct v2 *v)
{
	return v->mask + 1 - (v->tx_next - v->tx_done);
}

static unsigned int v2_tx_fill(struct port *p, unsigned int max)
{
	struct v2 *v = p->ring;
	unsigned int n, room = tx_room(v);

	if (max > room)
		max = room;
	for (n = 0; n < max; n++) {
		struct tpacket2_hdr *h = frame(v->tx, v, v->tx_next++);

		if (p->cfg->verify)
			packet_make((__u8 *)h + TX_OFFSET, p->cfg->size,
				    p->tx_seq++);
		h->tp_len = p->cfg->size;
		set_status(h, TP_STATUS_SEND_REQUEST);
	}
	return n;
}

static unsigned int v2_tx_reap(struct port *p)
{
	struct v2 *v = p->ring;
	unsigned int n;

	for (n = 0; v->tx_done != v->tx_next; n++) {
		struct tpacket2_hdr *h = frame(v->tx, v, v->tx_done);
		__u32 s = status(h);

		/* Our packets are good: one that is refused ends the run. */
		if (s & TP_STATUS_WRONG_FORMAT)
			errx(1, "V2: packet refused");
		if (s & (TP_STATUS_SEND_REQUEST | TP_STATUS_SENDING))
			break;
		v->tx_done++;
	}
	return n;
}

static bool v2_tx_busy(struct port *p)
{
	struct v2 *v = p->ring;

	return v->tx_done != v->tx_next;
}

static unsigned int v2_forward(struct port *p, unsigned int max)
{
	const bool verify = p->cfg->verify;
	struct v2 *v = p->ring;
	unsigned int n, room = tx_room(v);
	__u64 bytes = 0;

	if (max > room)
		max = room;
	for (n = 0; n < max; n++) {
		struct tpacket2_hdr *h = frame(v->rx, v, v->rx_next);
		struct tpacket2_hdr *t;
		__u8 *data;

		if (!(status(h) & TP_STATUS_USER))
			break;
		__builtin_prefetch(frame(v->rx, v, v->rx_next + 1));
		data = (__u8 *)h + h->tp_mac;
		bytes += h->tp_snaplen;
		if (verify)
			packet_check(p, data, h->tp_snaplen);

		t = frame(v->tx, v, v->tx_next++);
		copy_swapped((__u8 *)t + TX_OFFSET, data, h->tp_snaplen);
		t->tp_len = h->tp_snaplen;
		set_status(t, TP_STATUS_SEND_REQUEST);
		set_status(h, TP_STATUS_KERNEL);
		v->rx_next++;
	}
	p->n.bytes += bytes;
	return n;
}

const struct ring_ops ring_v2 = {
	.version = TPACKET_V2,
	.open = v2_open,
	.close = v2_close,
	.rx_drop = v2_rx_drop,
	.tx_fill = v2_tx_fill,
	.tx_reap = v2_tx_reap,
	.tx_busy = v2_tx_busy,
	.forward = v2_forward,
};
