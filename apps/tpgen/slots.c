// SPDX-License-Identifier: GPL-2.0
/* tpgen: frames of packets of any size (see slots.h) */
#include <stdlib.h>

#include "slots.h"

#define OFFSET		TP4_ZC_HEADROOM

/**
 * slots_frame_size - choose the size of a frame
 * @max_size: size of the largest packet
 *
 * Return: bytes.
 */
unsigned int slots_frame_size(unsigned int max_size)
{
	return max_size > 2048 - OFFSET && sysconf(_SC_PAGESIZE) > 2048 ?
	       4096 : 2048;
}

/**
 * slots_max_size - get the size of the longest packet that can be sent
 *
 * Return: bytes.
 */
unsigned int slots_max_size(void)
{
	return TX_FRAMES * (slots_frame_size(UINT32_MAX) - OFFSET);
}

/**
 * slots_init - divide the frames into slots
 * @s: slots
 * @w: thread, whose port is open
 * @max_frames: most frames of a packet
 * @nr: number of slots; there are @nr * @max_frames frames or more
 *
 * Return: 0, or -ENOMEM.
 */
int slots_init(struct slots *s, struct worker *w, unsigned int max_frames,
	       unsigned int nr)
{
	unsigned int i;

	memset(s, 0, sizeof(*s));
	s->w = w;
	s->offset = OFFSET;
	s->room = w->area.frame_size - OFFSET;
	s->max_frames = max_frames;
	s->nr = nr;
	s->nr_free = nr;
	s->owned = calloc(nr, sizeof(*s->owned));
	s->len = calloc(nr, sizeof(*s->len));
	s->free = calloc(nr, sizeof(*s->free));
	if (!s->owned || !s->len || !s->free)
		return -ENOMEM;
	for (i = 0; i < nr; i++)
		s->free[i] = i;
	return 0;
}

/**
 * slots_exit - free the memory of slots
 * @s: slots, also after slots_init() has failed
 */
void slots_exit(struct slots *s)
{
	free(s->owned);
	free(s->len);
	free(s->free);
}

/**
 * slots_describe - divide a packet into the frames of a slot
 * @s: slots
 * @slot: slot
 * @size: bytes of the packet
 * @frames: number of frames, 0: as few as possible
 * @d: set to the descriptors, at most @s->max_frames
 *
 * Return: the number of descriptors.
 */
unsigned int slots_describe(const struct slots *s, unsigned int slot,
			    unsigned int size, unsigned int frames,
			    struct tpacket4_desc *d)
{
	const unsigned int tails = s->max_frames - 1;
	unsigned int i, part;

	if (!frames)
		frames = (size + s->room - 1) / s->room;
	part = (size + frames - 1) / frames;
	for (i = 0; i < frames; i++) {
		d[i].idx = s->w->rx_frames +
			   (i ? s->nr + slot * tails + i - 1 : slot);
		d[i].len = part < size ? part : size;
		d[i].offset = s->offset;
		d[i].error = 0;
		d[i].flags = i < frames - 1 ? TP4_PKT_CONT : 0;
		size -= d[i].len;
	}
	return frames;
}

/**
 * slots_fill - write the payload to the frames of all slots
 * @s: slots
 * @pkt: packets, which have a payload; if it is in several frames, they have one size
 * @head: bytes of the headers
 */
void slots_fill(const struct slots *s, const struct packet_spec *pkt, unsigned int head)
{
	unsigned int slot, i, nr, at, from, end;
	struct tpacket4_desc d[TX_FRAMES];

	for (slot = 0; slot < s->nr; slot++) {
		nr = slots_describe(s, slot, pkt->size.max, pkt->frames, d);
		for (i = 0, at = 0; i < nr; i++, at = end) {
			from = at < head ? head : at;
			end = at + d[i].len;
			if (from < end)
				memcpy(tp4_data(&s->w->area, &d[i]) + from - at,
				       pkt->fill->bytes + from - head, end - from);
		}
	}
}

/**
 * slots_send - post the packet of a slot
 * @s: slots
 * @slot: as returned by slots_next()
 * @d: as written by slots_describe()
 * @nr: number of descriptors
 */
void slots_send(struct slots *s, unsigned int slot,
		const struct tpacket4_desc *d, unsigned int nr)
{
	unsigned int i;

	if (++s->free_at == s->nr)
		s->free_at = 0;
	s->nr_free--;
	s->owned[slot] = nr;
	s->len[slot] = 0;
	for (i = 0; i < nr; i++)
		s->len[slot] += d[i].len;
	tp4_ring_send(&s->w->sock.tx, d, nr);
}

static void packet_done(struct slots *s, unsigned int slot, int error)
{
	unsigned int at = s->free_at + s->nr_free++;

	s->free[at < s->nr ? at : at - s->nr] = slot;
	if (error) {
		refuse_packet(s->w, error);
		return;
	}
	s->w->hopeless = 0;
	count_up(&s->w->n.tx_packets, 1);
	count_up(&s->w->n.tx_bytes, s->len[slot]);
}

/**
 * slots_reap - take the frames that were sent or refused, and count packets
 * @s: slots
 *
 * Return: the number of frames.
 */
unsigned int slots_reap(struct slots *s)
{
	struct tp4_ring *ring = &s->w->sock.tx;
	unsigned int i, n = tp4_ring_peek(ring, ring->q.ring_mask + 1);

	for (i = 0; i < n; i++) {
		const struct tpacket4_desc *d = tp4_ring_at(ring, i);
		unsigned int slot = d->idx - s->w->rx_frames;

		if (slot >= s->nr)
			slot = (slot - s->nr) / (s->max_frames - 1);
		if (!--s->owned[slot])
			packet_done(s, slot, d->error);
	}
	tp4_ring_take(ring, n);
	return n;
}
