/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tx of TPACKET_V2 and V3: a ring of frames, to which packets are copied. A
 * frame has a header, whose status shows its owner, and a packet. The versions
 * only differ in the header, so this file is compiled for both: before
 * including it, define tx_hdr as the name of the header's struct, and TX_OFFSET
 * as the position of the packet.
 *
 * struct tx_ring is the first member of the struct at p->ring.
 */
#ifndef TPBENCH_RING_TX_H
#define TPBENCH_RING_TX_H

#include "tpbench.h"

#define TX_BLOCK_SIZE	(64 * 1024)

struct tx_ring {
	__u8 *frames;
	unsigned int mask;
	unsigned int next;	/* frame to be sent next */
	unsigned int done;	/* frame to be completed next */
};

static inline __u32 status(const struct tx_hdr *h)
{
	return __atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE);
}

static inline void set_status(struct tx_hdr *h, __u32 s)
{
	__atomic_store_n(&h->tp_status, s, __ATOMIC_RELEASE);
}

static inline struct tx_hdr *tx_frame(const struct tx_ring *t, unsigned int i)
{
	return (void *)(t->frames + (size_t)(i & t->mask) * FRAME_SIZE);
}

static void tx_init(struct port *p, __u8 *frames)
{
	struct tx_ring *t = p->ring;
	__u8 packet[FRAME_SIZE];
	unsigned int i;

	t->frames = frames;
	t->mask = p->cfg->ring - 1;
	packet_make(packet, p->cfg->size, 0);
	for (i = 0; i < p->cfg->ring; i++)
		memcpy((__u8 *)tx_frame(t, i) + TX_OFFSET, packet,
		       p->cfg->size);
}

static inline unsigned int tx_room(const struct tx_ring *t)
{
	return t->mask + 1 - (t->next - t->done);
}

static unsigned int tx_fill(struct port *p, unsigned int max)
{
	struct tx_ring *t = p->ring;
	unsigned int n, room = tx_room(t);

	if (max > room)
		max = room;
	for (n = 0; n < max; n++) {
		struct tx_hdr *h = tx_frame(t, t->next++);

		if (p->cfg->verify)
			packet_make((__u8 *)h + TX_OFFSET, p->cfg->size,
				    p->tx_seq++);
		h->tp_len = p->cfg->size;
		set_status(h, TP_STATUS_SEND_REQUEST);
	}
	return n;
}

/*
 * Send received packets with swapped addresses. There must be room. A packet
 * longer than a frame, which V3 can receive, ends the run.
 */
static inline void tx_forward(struct port *p, const __u8 *data,
			      unsigned int len)
{
	struct tx_ring *t = p->ring;
	struct tx_hdr *h = tx_frame(t, t->next++);

	if (len > FRAME_SIZE - TX_OFFSET)
		errx(1, "V%d: cannot forward %u bytes, a Tx frame has %zu",
		     p->cfg->version, len, FRAME_SIZE - TX_OFFSET);
	copy_swapped((__u8 *)h + TX_OFFSET, data, len);
	h->tp_len = len;
	set_status(h, TP_STATUS_SEND_REQUEST);
}

static unsigned int tx_reap(struct port *p)
{
	struct tx_ring *t = p->ring;
	unsigned int n;

	for (n = 0; t->done != t->next; n++) {
		__u32 s = status(tx_frame(t, t->done));

		/* All packets are valid: an error ends the run. */
		if (s & TP_STATUS_WRONG_FORMAT)
			errx(1, "V%d: packet refused", p->cfg->version);
		if (s & (TP_STATUS_SEND_REQUEST | TP_STATUS_SENDING))
			break;
		t->done++;
	}
	return n;
}

static bool tx_busy(struct port *p)
{
	struct tx_ring *t = p->ring;

	return t->done != t->next;
}

#endif /* TPBENCH_RING_TX_H */
