// SPDX-License-Identifier: GPL-2.0
/*
 * TPACKET_V3: Rx uses a ring of blocks, which the kernel fills with packets of
 * any length. Tx uses a ring of frames as in V2.
 *
 * A program may only read a block that the kernel has closed, because the next
 * packet did not fit or the retire timer expired. With few packets in flight V3
 * waits for this timer, so that l2fwd-1 forwards at most one packet per timer
 * tick and direction. Reading an open block would be faster but is not allowed.
 */
#include <stdlib.h>

#include <linux/if_packet.h>

#define tx_hdr		tpacket3_hdr
#define TX_OFFSET	(TPACKET3_HDRLEN - sizeof(struct sockaddr_ll))
#include "ring_tx.h"

/*
 * Large blocks have the lowest cost per packet. With a fixed number of packets
 * in flight, all of them may be in two open blocks, so use the smallest blocks.
 */
#define RX_BLOCK_SIZE	(64 * 1024)
#define FWD_BLOCK_SIZE	4096
#define RETIRE_MS	1

struct v3 {
	struct tx_ring tx;
	__u8 *map;
	size_t map_len;

	unsigned int block_size;
	unsigned int nr_blocks;
	unsigned int cur;		/* block being read, or waited for */
	unsigned int left;		/* packets not read yet in it */
	struct tpacket3_hdr *pkt;	/* the next packet */
};

static struct tpacket_block_desc *block(const struct v3 *v)
{
	return (void *)(v->map + (size_t)v->cur * v->block_size);
}

static void v3_open(struct port *p)
{
	size_t len = (size_t)p->cfg->ring * FRAME_SIZE;
	struct tpacket_req3 req = {
		.tp_frame_size = FRAME_SIZE,
		.tp_frame_nr = p->cfg->ring,
	};
	struct v3 *v = calloc(1, sizeof(*v));
	int e;

	if (!v)
		err(1, "V3");
	p->ring = v;
	v->block_size = p->cfg->block;
	if (!v->block_size)
		v->block_size = p->cfg->in_flight ? FWD_BLOCK_SIZE :
						    RX_BLOCK_SIZE;
	v->nr_blocks = len / v->block_size;

	e = tp4_setopt(p->fd, PACKET_VERSION, TPACKET_V3);
	if (e)
		errx(1, "PACKET_VERSION V3: %s", strerror(-e));
	if (p->rx) {
		req.tp_block_size = v->block_size;
		req.tp_block_nr = v->nr_blocks;
		req.tp_retire_blk_tov = RETIRE_MS;
		if (setsockopt(p->fd, SOL_PACKET, PACKET_RX_RING, &req,
			       sizeof(req)))
			err(1, "V3: PACKET_RX_RING");
	}
	if (p->tx) {
		req.tp_block_size = TX_BLOCK_SIZE;
		req.tp_block_nr = len / TX_BLOCK_SIZE;
		req.tp_retire_blk_tov = 0;
		if (setsockopt(p->fd, SOL_PACKET, PACKET_TX_RING, &req,
			       sizeof(req)))
			err(1, "V3: PACKET_TX_RING");
	}

	v->map_len = len * (p->rx + p->tx);
	v->map = mmap(NULL, v->map_len, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_POPULATE, p->fd, 0);
	if (v->map == MAP_FAILED)
		err(1, "V3: mmap");
	if (p->tx)
		tx_init(p, v->map + (p->rx ? len : 0));
}

static void v3_close(struct port *p)
{
	struct v3 *v = p->ring;

	munmap(v->map, v->map_len);
	free(v);
}

/* The next block, if the kernel has closed it. */
static bool block_open(struct v3 *v)
{
	struct tpacket_block_desc *b = block(v);

	if (!(__atomic_load_n(&b->hdr.bh1.block_status, __ATOMIC_ACQUIRE) &
	      TP_STATUS_USER))
		return false;
	v->left = b->hdr.bh1.num_pkts;
	v->pkt = (void *)((__u8 *)b + b->hdr.bh1.offset_to_first_pkt);
	return true;
}

/* The block has been read: return it. */
static void block_close(struct v3 *v)
{
	__atomic_store_n(&block(v)->hdr.bh1.block_status, TP_STATUS_KERNEL,
			 __ATOMIC_RELEASE);
	if (++v->cur == v->nr_blocks)
		v->cur = 0;
}

/* Advance to the next packet, or to the next block after the last one. */
static void pkt_next(struct v3 *v)
{
	if (--v->left)
		v->pkt = (void *)((__u8 *)v->pkt + v->pkt->tp_next_offset);
	else
		block_close(v);
}

static bool pkt_ready(struct v3 *v)
{
	while (!v->left) {
		if (!block_open(v))
			return false;
		if (!v->left)		/* a block can be closed empty */
			block_close(v);
	}
	__builtin_prefetch((__u8 *)v->pkt + v->pkt->tp_next_offset);
	return true;
}

static unsigned int v3_rx_drop(struct port *p, unsigned int max)
{
	const bool verify = p->cfg->verify;
	struct v3 *v = p->ring;
	__u64 bytes = 0;
	unsigned int n;

	for (n = 0; n < max && pkt_ready(v); n++) {
		bytes += v->pkt->tp_snaplen;
		if (verify)
			packet_check(p, (__u8 *)v->pkt + v->pkt->tp_mac,
				     v->pkt->tp_snaplen);
		pkt_next(v);
	}
	p->n.bytes += bytes;
	return n;
}

static unsigned int v3_forward(struct port *p, unsigned int max)
{
	const bool verify = p->cfg->verify;
	struct v3 *v = p->ring;
	unsigned int n, room = tx_room(&v->tx);
	__u64 bytes = 0;

	if (max > room)
		max = room;
	for (n = 0; n < max && pkt_ready(v); n++) {
		__u8 *data = (__u8 *)v->pkt + v->pkt->tp_mac;

		bytes += v->pkt->tp_snaplen;
		if (verify)
			packet_check(p, data, v->pkt->tp_snaplen);
		tx_forward(p, data, v->pkt->tp_snaplen);
		pkt_next(v);
	}
	p->n.bytes += bytes;
	return n;
}

const struct ring_ops ring_v3 = {
	.is_packet = true,
	.open = v3_open,
	.close = v3_close,
	.rx_drop = v3_rx_drop,
	.tx_fill = tx_fill,
	.tx_reap = tx_reap,
	.tx_busy = tx_busy,
	.forward = v3_forward,
};
