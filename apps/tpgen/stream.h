/* SPDX-License-Identifier: GPL-2.0 */
/*
 * tpgen: streams of numbered packets that were received
 *
 * Most packets are the next one of their stream. For these, a number is
 * counted; the window of bits is written when another one comes.
 */
#ifndef TPGEN_STREAM_H
#define TPGEN_STREAM_H

#include <endian.h>

#include "tpgen.h"
#include "vary.h"

#define STREAM_WINDOW	8192		/* packets, a power of two */

/**
 * struct stream - one stream, as one thread sees it
 * @key: magic number, run and stream, as in the packet
 * @next: number behind the highest one received
 * @run: the numbers from here to @next were all received
 * @first: lowest number
 * @received: packets, without duplicates
 * @reordered: packets with a lower number than one before
 * @duplicates: packets that were received before
 * @negative: packets that seem to have been received before they were sent
 * @latency: the others
 * @window: bit of each number from @next - STREAM_WINDOW to @run: received
 */
struct stream {
	__u64 key;
	__u64 next;
	__u64 run;
	__u64 first;
	__u64 received;
	__u64 reordered;
	__u64 duplicates;
	__u64 negative;
	struct hist latency;
	__u64 window[STREAM_WINDOW / 64];
};

/**
 * struct stream_table - streams of one thread
 * @last: the one of the last packet, or a stream without packets
 * @nr: number of streams
 * @stream: these; the main thread reads them
 */
struct stream_table {
	struct stream *last;
	unsigned int nr;
	struct stream *stream[MAX_STREAMS];
	struct stream none;
};

struct stream_table *stream_table_new(void);
void stream_table_free(struct stream_table *t);
struct stream *stream_find(struct stream_table *t, __u64 key);
void stream_out_of_order(struct stream *s, __u32 seq);
void stream_odd_latency(struct stream *s, __u64 ns);
void stream_merge(struct stream *to, const struct stream *from);
__u64 stream_head(const struct stream *s);
__u64 stream_lost(const struct stream *s);
unsigned int signature_find(const __u8 *data, unsigned int len);

/* The members of a signature before the number, as they are in the packet */
static inline __u64 signature_key(const __u8 *p)
{
	__u64 key;

	memcpy(&key, p, sizeof(key));
	return key & htobe64(0xffffffffffff0000ull);
}

static inline unsigned int stream_number(__u64 key)
{
	return be64toh(key) >> 16 & 0xffff;
}

static inline unsigned int stream_run(__u64 key)
{
	return be64toh(key) >> 32 & 0xffff;
}

static inline bool signature_ok(const __u8 *p)
{
	return p[0] == SIGNATURE_MAGIC >> 8 && p[1] == (SIGNATURE_MAGIC & 0xff);
}

static inline __u32 signature_seq(const __u8 *p)
{
	__u32 seq;

	memcpy(&seq, p + offsetof(struct signature, seq), sizeof(seq));
	return ntohl(seq);
}

static inline __u64 signature_stamp(const __u8 *p)
{
	__u64 stamp;

	memcpy(&stamp, p + offsetof(struct signature, stamp), sizeof(stamp));
	return be64toh(stamp);
}

/**
 * stream_seen - count a packet
 * @s: its stream
 * @p: its signature
 * @now: when it was received
 */
static inline void stream_seen(struct stream *s, const __u8 *p, __u64 now)
{
	__u32 seq = signature_seq(p);
	__u64 ns = now - signature_stamp(p);

	if (seq == (__u32)s->next) {
		s->next++;
		s->received++;
	} else {
		stream_out_of_order(s, seq);
	}
	/* A negative one is a large number, too. */
	if (ns >> HIST_TOP)
		stream_odd_latency(s, ns);
	else
		hist_add(&s->latency, ns);
}

#endif /* TPGEN_STREAM_H */
