// SPDX-License-Identifier: GPL-2.0
/*
 * Like TPACKET_V2: a ring of frames, with a header before each packet whose
 * status shows the owner.
 */
#include "ringtest.h"

struct status {
	__u8 *frames;
	unsigned int mask;
	/* kernel */
	OWN_LINES unsigned int produced;
	/* program */
	OWN_LINES unsigned int consumed;
};

static struct tpacket2_hdr *frame(struct status *s, unsigned int i)
{
	return (void *)(s->frames + (size_t)(i & s->mask) * FRAME_SIZE);
}

static void *status_new(unsigned int size)
{
	struct status *s = ring_alloc(sizeof(*s));

	s->frames = ring_alloc((size_t)size * FRAME_SIZE);
	s->mask = size - 1;
	return s;
}

static unsigned int status_produce(void *ring, unsigned int n, __u32 seq)
{
	struct status *s = ring;
	unsigned int i;

	for (i = 0; i < n; i++) {
		struct tpacket2_hdr *h = frame(s, s->produced);

		if (__atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE) !=
		    TP_STATUS_KERNEL)
			break;
		h->tp_len = seq + i;
		h->tp_snaplen = 64;
		h->tp_mac = 66;
		h->tp_net = 80;
		__atomic_store_n(&h->tp_status, TP_STATUS_USER,
				 __ATOMIC_RELEASE);
		s->produced++;
	}
	return i;
}

static unsigned int status_consume(void *ring, unsigned int n, __u32 seq)
{
	struct status *s = ring;
	unsigned int i;

	for (i = 0; i < n; i++) {
		struct tpacket2_hdr *h = frame(s, s->consumed);

		if (!(__atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE) &
		      TP_STATUS_USER))
			break;
		__builtin_prefetch(frame(s, s->consumed + 1));
		check_seq("status", h->tp_len, seq + i);
		__atomic_store_n(&h->tp_status, TP_STATUS_KERNEL,
				 __ATOMIC_RELEASE);
		s->consumed++;
	}
	return i;
}

const struct ring_ops ring_status = {
	.name = "status",
	.open = status_new,
	.produce = status_produce,
	.consume = status_consume,
};
