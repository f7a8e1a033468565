/* SPDX-License-Identifier: GPL-2.0 */
/*
 * tpgen: frames of packets of any size. Each of a number of slots holds one
 * packet; its first frame has the number of the slot, counted from the first
 * frame behind those of the Rx ring. Slots are used in turn, as their frames
 * come back.
 */
#ifndef TPGEN_SLOTS_H
#define TPGEN_SLOTS_H

#include "tpgen.h"

/**
 * struct slots - packets in frames
 * @w: thread
 * @offset: of a packet in each frame
 * @room: bytes of a packet in one frame
 * @max_frames: most frames of a packet
 * @nr: number of slots
 * @owned: frames of each packet that the kernel has
 * @len: size of each packet
 * @free: slots that the kernel has no frame of, in the order of their return
 * @free_at: position of the first one
 * @nr_free: number of these
 */
struct slots {
	struct worker *w;
	unsigned int offset;
	unsigned int room, max_frames;
	unsigned int nr;
	__u8 *owned;
	__u32 *len;
	__u32 *free;
	unsigned int free_at, nr_free;
};

unsigned int slots_frame_size(unsigned int max_size);
unsigned int slots_max_size(void);
int slots_init(struct slots *s, struct worker *w, unsigned int max_frames,
	       unsigned int nr);
void slots_exit(struct slots *s);
unsigned int slots_describe(const struct slots *s, unsigned int slot,
			    unsigned int size, unsigned int frames,
			    struct tpacket4_desc *d);
void slots_send(struct slots *s, unsigned int slot,
		const struct tpacket4_desc *d, unsigned int nr);
unsigned int slots_reap(struct slots *s);
void slots_fill(const struct slots *s, const struct packet_spec *pkt, unsigned int head);

/* The slot that slots_send() sends next, if there is a free one */
static inline unsigned int slots_next(const struct slots *s)
{
	return s->free[s->free_at];
}

/* First byte of the packet in a slot */
static inline __u8 *slots_data(const struct slots *s, unsigned int slot)
{
	return tp4_frame(&s->w->area, s->w->rx_frames + slot) + s->offset;
}

#endif /* TPGEN_SLOTS_H */
