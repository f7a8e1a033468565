// SPDX-License-Identifier: GPL-2.0
/*
 * TPACKET_V2: a ring of frames, each with a header whose status shows the owner
 * of the frame. Packets are received on the Rx ring and sent from the Tx ring.
 * Forwarding a packet copies it.
 */
#include <stdlib.h>

#include <linux/if_packet.h>

#define tx_hdr		tpacket2_hdr
#define TX_OFFSET	(TPACKET2_HDRLEN - sizeof(struct sockaddr_ll))
#include "ring_tx.h"

struct v2 {
	struct tx_ring tx;
	__u8 *map;
	size_t map_len;
	unsigned int mask;
	unsigned int rx_next;	/* frame to be received next */
};

static struct tpacket2_hdr *rx_frame(const struct v2 *v, unsigned int i)
{
	return (void *)(v->map + (size_t)(i & v->mask) * FRAME_SIZE);
}

static void v2_open(struct port *p)
{
	size_t len = (size_t)p->cfg->ring * FRAME_SIZE;
	struct tpacket_req req = {
		.tp_frame_size = FRAME_SIZE,
		.tp_frame_nr = p->cfg->ring,
		.tp_block_size = TX_BLOCK_SIZE,
		.tp_block_nr = len / TX_BLOCK_SIZE,
	};
	struct v2 *v = calloc(1, sizeof(*v));
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
	if (p->tx)
		tx_init(p, v->map + (p->rx ? len : 0));
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
		struct tpacket2_hdr *h = rx_frame(v, v->rx_next);

		if (!(status(h) & TP_STATUS_USER))
			break;
		__builtin_prefetch(rx_frame(v, v->rx_next + 1));
		bytes += h->tp_snaplen;
		if (verify)
			packet_check(p, (__u8 *)h + h->tp_mac, h->tp_snaplen);
		set_status(h, TP_STATUS_KERNEL);
		v->rx_next++;
	}
	p->n.bytes += bytes;
	return n;
}

static unsigned int v2_forward(struct port *p, unsigned int max)
{
	const bool verify = p->cfg->verify;
	struct v2 *v = p->ring;
	unsigned int n, room = tx_room(&v->tx);
	__u64 bytes = 0;

	if (max > room)
		max = room;
	for (n = 0; n < max; n++) {
		struct tpacket2_hdr *h = rx_frame(v, v->rx_next);
		__u8 *data;

		if (!(status(h) & TP_STATUS_USER))
			break;
		__builtin_prefetch(rx_frame(v, v->rx_next + 1));
		data = (__u8 *)h + h->tp_mac;
		bytes += h->tp_snaplen;
		if (verify)
			packet_check(p, data, h->tp_snaplen);

		tx_forward(p, data, h->tp_snaplen);
		set_status(h, TP_STATUS_KERNEL);
		v->rx_next++;
	}
	p->n.bytes += bytes;
	return n;
}

const struct ring_ops ring_v2 = {
	.is_packet = true,
	.open = v2_open,
	.close = v2_close,
	.rx_drop = v2_rx_drop,
	.tx_fill = tx_fill,
	.tx_reap = tx_reap,
	.tx_busy = tx_busy,
	.forward = v2_forward,
};
