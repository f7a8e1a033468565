// SPDX-License-Identifier: GPL-2.0
/* tpgen: streams of numbered packets that were received (see stream.h) */
#include <netinet/in.h>
#include <stdlib.h>

#include "stream.h"

/* Number of a packet 0, so that numbers before the first one are positive */
#define FIRST		(1ull << 32)
#define BIT_WORD(n)	(((n) & (STREAM_WINDOW - 1)) / 64)
#define BIT_MASK(n)	(1ull << ((n) & 63))

/**
 * stream_table_new - make a table without streams
 *
 * Return: the table, or NULL without memory.
 */
struct stream_table *stream_table_new(void)
{
	struct stream_table *t = calloc(1, sizeof(*t));

	if (t) {
		t->none.key = ~0ull;	/* of no packet */
		t->last = &t->none;
	}
	return t;
}

/**
 * stream_table_free - free a table and its streams
 * @t: table, or NULL
 */
void stream_table_free(struct stream_table *t)
{
	unsigned int i;

	if (!t)
		return;
	for (i = 0; i < t->nr; i++)
		free(t->stream[i]);
	free(t);
}

/**
 * stream_find - find the stream of a packet, or add it
 * @t: table
 * @key: as returned by signature_key()
 *
 * Return: the stream, or NULL if there are too many.
 */
struct stream *stream_find(struct stream_table *t, __u64 key)
{
	struct stream *s;
	unsigned int i;

	for (i = 0; i < t->nr; i++)
		if (t->stream[i]->key == key)
			return t->last = t->stream[i];
	if (t->nr == MAX_STREAMS)
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->key = key;
	s->first = s->run = s->next = FIRST;
	hist_init(&s->latency);
	t->stream[t->nr] = s;
	__atomic_store_n(&t->nr, t->nr + 1, __ATOMIC_RELEASE);
	return t->last = s;
}

/* Set or clear the bits of the numbers from @from to before @to. */
static void fill(struct stream *s, __u64 from, __u64 to, bool set)
{
	__u64 mask;

	if (to - from >= STREAM_WINDOW) {
		memset(s->window, set ? 0xff : 0, sizeof(s->window));
		return;
	}
	while (from < to) {
		__u64 n = 64 - (from & 63);

		mask = ~0ull << (from & 63);
		if (n > to - from) {
			n = to - from;
			mask &= BIT_MASK(to) - 1;
		}
		if (set)
			s->window[BIT_WORD(from)] |= mask;
		else
			s->window[BIT_WORD(from)] &= ~mask;
		from += n;
	}
}

/**
 * stream_out_of_order - count a packet that is not the next one
 * @s: stream
 * @seq: low bits of its number
 */
void stream_out_of_order(struct stream *s, __u32 seq)
{
	__u64 n;

	if (!s->received) {
		s->first = s->run = FIRST + seq;
		s->next = s->first + 1;
		s->received = 1;
		return;
	}
	n = s->next + (__s32)(seq - (__u32)s->next);
	fill(s, s->run, s->next, true);
	s->run = s->next;
	if (n >= s->next) {
		fill(s, s->next, n, false);
		s->run = n;
		s->next = n + 1;
		s->received++;
		return;
	}
	if (s->next - n <= STREAM_WINDOW) {
		if (s->window[BIT_WORD(n)] & BIT_MASK(n)) {
			s->duplicates++;
			return;
		}
		s->window[BIT_WORD(n)] |= BIT_MASK(n);
	}
	s->received++;
	s->reordered++;
	if (n < s->first)
		s->first = n;
}

/**
 * stream_odd_latency - count a latency that is negative or very long
 * @s: stream
 * @ns: latency
 */
void stream_odd_latency(struct stream *s, __u64 ns)
{
	if ((__s64)ns < 0)
		s->negative++;
	else
		hist_add(&s->latency, (1ull << HIST_TOP) - 1);
}

/**
 * stream_merge - add what another thread has received of a stream
 * @to: stream that it is added to; its window is not used any more
 * @from: the same stream of the other thread
 */
void stream_merge(struct stream *to, const struct stream *from)
{
	if (!from->received)
		return;
	if (!to->received || from->first < to->first)
		to->first = from->first;
	if (from->next > to->next)
		to->next = from->next;
	to->received += from->received;
	to->reordered += from->reordered;
	to->duplicates += from->duplicates;
	to->negative += from->negative;
	hist_merge(&to->latency, &from->latency);
}

/**
 * stream_head - count the packets that are missing before the first
 * @s: stream, whose sender has started from 0
 *
 * Return: their number; 0 if the numbers seem to have wrapped around.
 */
__u64 stream_head(const struct stream *s)
{
	__u64 head = s->first - FIRST;

	return s->received && head < 1ull << 31 ? head : 0;
}

/**
 * stream_lost - count the packets that are missing up to the last
 * @s: stream
 *
 * Return: their number, with those of stream_head().
 */
__u64 stream_lost(const struct stream *s)
{
	__u64 all = s->next - s->first;

	return stream_head(s) +
	       (s->received && all > s->received ? all - s->received : 0);
}

/**
 * signature_find - find the signature of a packet
 * @data: packet
 * @len: its length
 *
 * Return: the offset of the signature, or 0 if it has none.
 */
unsigned int signature_find(const __u8 *data, unsigned int len)
{
	unsigned int at = 2 * ETH_ALEN, type = 0;
	__u8 protocol;

	while (len >= at + 2) {
		type = get16(data + at);
		at += 2;
		if (type != ETH_P_8021Q && type != ETH_P_8021AD)
			break;
		at += 2;
	}
	if (type == ETH_P_IP && len >= at + 20) {
		protocol = data[at + 9];
		at += (data[at] & 0xf) * 4;
	} else if (type == ETH_P_IPV6 && len >= at + 40) {
		protocol = data[at + 6];
		at += 40;
	} else {
		return 0;
	}
	if (protocol == IPPROTO_TCP && len >= at + 20)
		at += (data[at + 12] >> 4) * 4;
	else
		at += 8;
	if (len < at + sizeof(struct signature) || !signature_ok(data + at))
		return 0;
	return at;
}
