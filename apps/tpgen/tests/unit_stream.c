// SPDX-License-Identifier: GPL-2.0
/* Tests of streams and histograms */
#include <stdlib.h>

#include "stream.h"
#include "unit.h"

#define SEQS	30000

/* Compare with a bit for each number. */
static void one_stream(__u32 first)
{
	static __u8 got[SEQS + 4000];
	struct stream_table *t = stream_table_new();
	struct stream *s = stream_find(t, 5);
	__u64 unique = 0, reordered = 0, duplicates = 0, low, high, lost;
	__u8 p[sizeof(struct signature)] = { 0 };
	unsigned int i, at = 0;

	memset(got, 0, sizeof(got));
	low = high = 2000;
	for (i = 0; i < SEQS / 2; i++) {
		unsigned int n = at;

		switch (rnd(20)) {
		case 0:
			at += rnd(4);
			break;
		case 1:
			n = at > 100 ? at - rnd(100) : at;
			break;
		case 2:
			if (rnd(100) == 0)
				at += rnd(9000);
			break;
		}
		if (n == at)
			n = at++;
		n += 2000;
		if (n >= sizeof(got))
			break;
		if (!i)
			low = high = n;
		if (got[n]) {
			duplicates++;
		} else {
			unique++;
			if (n < high)
				reordered++;
		}
		got[n] = 1;
		if (n < low)
			low = n;
		if (n > high)
			high = n;
		put32(p + offsetof(struct signature, seq), first + n);
		stream_seen(s, p, 0);
	}
	check(s->received == unique, "received %llu, not %llu", s->received,
	      unique);
	check(s->reordered == reordered, "reordered %llu, not %llu",
	      s->reordered, reordered);
	check(s->duplicates == duplicates, "duplicates %llu, not %llu",
	      s->duplicates, duplicates);
	lost = high - low + 1 - unique;
	/* and those before the first, unless the numbers have wrapped around */
	if ((__u32)(first + low) >> 31 == 0)
		lost += (__u32)(first + low);
	check(stream_lost(s) == lost, "lost %llu, not %llu", stream_lost(s),
	      lost);
	check(hist_count(&s->latency) == unique + duplicates, "latencies");
	stream_table_free(t);
}

void test_streams(void)
{
	unsigned int i;

	for (i = 0; i < 300; i++)
		one_stream(i % 3 ? rnd(UINT32_MAX) : UINT32_MAX - rnd(9000));
	end("lost, reordered and duplicate packets");
}

/* Two threads share a stream; together nothing is lost. */
void test_merge(void)
{
	struct stream_table *t[2] = { stream_table_new(), stream_table_new() };
	__u8 p[sizeof(struct signature)] = { 0 };
	struct stream all = { 0 };
	unsigned int i;

	hist_init(&all.latency);
	for (i = 0; i < 5000; i++) {
		put32(p + offsetof(struct signature, seq), i);
		stream_seen(stream_find(t[rnd(2)], 9), p, 10);
	}
	stream_merge(&all, t[0]->stream[0]);
	stream_merge(&all, t[1]->stream[0]);
	check(all.received == 5000 && !stream_lost(&all), "%llu, lost %llu",
	      all.received, stream_lost(&all));
	check(!all.reordered && !all.duplicates, "order");
	stream_table_free(t[0]);
	stream_table_free(t[1]);

	t[0] = stream_table_new();
	for (i = 0; i < MAX_STREAMS; i++)
		check(stream_find(t[0], i), "stream %u", i);
	check(!stream_find(t[0], i), "more streams than there is room for");
	check(stream_find(t[0], 3) == t[0]->stream[3], "the old ones stay");
	stream_table_free(t[0]);
	end("streams of several threads");
}

/* No packet makes signature_find() read behind its end. */
void test_any_packet(void)
{
	unsigned int i, j, at, len;
	__u8 *p;

	for (i = 0; i < 200000; i++) {
		len = rnd(80);
		p = malloc(len + 1) + 1;
		for (j = 0; j < len; j++)
			p[j] = rnd(256);
		if (len >= 14 && rnd(4)) {
			put16(p + 12, rnd(2) ? 0x800 : rnd(2) ? 0x86dd :
			      0x8100);
			if (len >= 24)
				p[23] = rnd(2) ? 6 : 17;
		}
		for (j = 0; j + 1 < len && rnd(2); j++)
			put16(p + rnd(len - 1), SIGNATURE_MAGIC);
		at = signature_find(p, len);
		check(!at || at + sizeof(struct signature) <= len,
		      "signature behind the end");
		free(p - 1);
	}
	end("signatures in any packet");
}

void test_histograms(void)
{
	static struct hist h, other;
	__u64 ns, low, high;
	unsigned int i;

	for (i = 0; i < 1000000; i++) {
		ns = random_next(&rng) >> (64 - 1 - i % HIST_TOP);
		if (ns >> HIST_TOP)
			continue;
		low = hist_bin_start(hist_index(ns));
		high = hist_bin_start(hist_index(ns) + 1) - 1;
		check(ns >= low && ns <= high, "%llu is in %llu to %llu", ns,
		      low, high);
		check(high - low <= low / 32, "bin of %llu is too wide", low);
	}
	check(hist_index((1ull << HIST_TOP) - 1) == HIST_BINS - 1, "last bin");

	hist_init(&h);
	check(!hist_count(&h) && !hist_percentile(&h, 99), "empty");
	for (i = 1; i <= 1000; i++)
		hist_add(&h, i);
	check(h.min == 1 && h.max == 1000 && h.sum == 500500, "1 to 1000");
	check(llabs((long long)hist_percentile(&h, 50) - 500) <= 16 &&
	      llabs((long long)hist_percentile(&h, 99) - 990) <= 31 &&
	      hist_percentile(&h, 99.9) <= h.max &&
	      hist_percentile(&h, 100) == 1000, "percentiles");
	check(hist_percentile(&h, 0.1) == 1, "lowest");
	other = h;
	hist_merge(&other, &h);
	check(hist_count(&other) == 2000, "merge");
	hist_subtract(&other, &h);
	check(hist_count(&other) == 1000, "subtract");
	end("histograms");
}

