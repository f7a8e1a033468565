// SPDX-License-Identifier: GPL-2.0
/* tpgen: rates each second, the summary */
#include <stdlib.h>

#include "stream.h"

static bool sends(const struct config *cfg)
{
	return cfg->mode != MODE_RX;
}

static bool receives(const struct config *cfg)
{
	return cfg->mode == MODE_RX || cfg->mode == MODE_PING ||
	       cfg->mode == MODE_PONG;
}

static void add_counters(struct counters *to, const struct counters *n)
{
	to->tx_packets += counter_read(&n->tx_packets);
	to->tx_bytes += counter_read(&n->tx_bytes);
	to->tx_refused += counter_read(&n->tx_refused);
	to->rx_packets += counter_read(&n->rx_packets);
	to->rx_bytes += counter_read(&n->rx_bytes);
	to->other += counter_read(&n->other);
	to->timeouts += counter_read(&n->timeouts);
	to->missed += counter_read(&n->missed);
}

/* A number with three digits and a prefix, such as 1.49 M */
static const char *human(char *buf, size_t len, double value)
{
	static const char prefix[] = " kMGT";
	unsigned int i = 0;

	while (value >= 999.5 && prefix[i + 1]) {
		value /= 1000;
		i++;
	}
	snprintf(buf, len, "%.*f %.*s", value < 9.995 ? 2 : value < 99.95,
		 value, i ? 1 : 0, prefix + i);
	return buf;
}

static const char *human_ns(char *buf, size_t len, __u64 ns)
{
	if (ns < 1000)
		snprintf(buf, len, "%llu ns", ns);
	else if (ns < 1000000)
		snprintf(buf, len, "%.2f us", ns / 1e3);
	else if (ns < NSEC)
		snprintf(buf, len, "%.2f ms", ns / 1e6);
	else
		snprintf(buf, len, "%.2f s", ns / 1e9);
	return buf;
}

/* --- each second --------------------------------------------------------- */

/* Sum of the latencies of all threads and streams; NULL: no memory. */
static struct hist *all_latencies(const struct run *r)
{
	struct hist *sum = malloc(sizeof(*sum));
	unsigned int i, j, nr;

	if (!sum)
		return NULL;
	hist_init(sum);
	for (i = 0; i < r->cfg->nr_threads; i++) {
		const struct stream_table *t = r->w[i].streams;

		nr = t ? __atomic_load_n(&t->nr, __ATOMIC_ACQUIRE) : 0;
		for (j = 0; j < nr; j++)
			hist_merge(sum, &t->stream[j]->latency);
	}
	return sum;
}

static void sample_latency(struct run *r, struct sample *s)
{
	struct hist *now = all_latencies(r), *new;

	new = malloc(sizeof(*new));
	if (now && new) {
		*new = *now;
		hist_subtract(new, &r->measured);
		s->latencies = hist_count(new);
		s->p50 = hist_percentile(new, 50);
		s->p99 = hist_percentile(new, 99);
		s->max = hist_top(new);
		r->measured = *now;
	}
	free(new);
	free(now);
}

static void print_rate(const char *what, double pps, double bps)
{
	char a[16], b[16];

	fprintf(stderr, "  %s %spps %sbps", what, human(a, sizeof(a), pps),
		human(b, sizeof(b), bps));
}

static void print_sample(const struct run *r, const struct sample *s)
{
	char a[16], b[16], c[16];

	fprintf(stderr, "%7.1f s", s->at);
	if (sends(r->cfg))
		print_rate("sent", s->tx_pps, s->tx_bps);
	if (receives(r->cfg))
		print_rate("received", s->rx_pps, s->rx_bps);
	if (s->latencies)
		fprintf(stderr, "  latency p50 %s, p99 %s, max %s",
			human_ns(a, sizeof(a), s->p50),
			human_ns(b, sizeof(b), s->p99),
			human_ns(c, sizeof(c), s->max));
	fputc('\n', stderr);
}

/**
 * report_sample - note, and print, what happened since the last sample
 * @r: run
 */
void report_sample(struct run *r)
{
	__u64 now = clock_ns(CLOCK_MONOTONIC);
	struct counters n = { 0 }, *old = &r->counted;
	struct sample *s;
	double seconds;
	unsigned int i;

	s = realloc(r->sample, (r->nr_samples + 1) * sizeof(*s));
	if (!s)
		return;
	r->sample = s;
	s += r->nr_samples++;
	memset(s, 0, sizeof(*s));
	for (i = 0; i < r->cfg->nr_threads; i++)
		add_counters(&n, &r->w[i].n);
	seconds = (now - (r->sampled ? r->sampled : r->start)) / 1e9;
	s->at = (now - r->start) / 1e9;
	s->tx_pps = (n.tx_packets - old->tx_packets) / seconds;
	s->rx_pps = (n.rx_packets - old->rx_packets) / seconds;
	s->tx_bps = (n.tx_bytes - old->tx_bytes) * 8 / seconds;
	s->rx_bps = (n.rx_bytes - old->rx_bytes) * 8 / seconds;
	sample_latency(r, s);
	r->sampled = now;
	r->counted = n;
	if (!r->cfg->quiet)
		print_sample(r, s);
	if (r->stream)
		json_sample(r, s);
}

/* --- the summary --------------------------------------------------------- */

static double asked_pps(const struct run *r, double mean)
{
	const struct rate *rate = &r->cfg->rate;
	double value = rate->value;

	switch (rate->unit) {
	case RATE_PACKETS:
		return value;
	case RATE_BITS:
		return mean ? value / (mean * 8) : 0;
	case RATE_PERCENT:
		value = value / 100 * r->speed;
		/* fall through */
	case RATE_WIRE_BITS:
		return mean ? value / ((mean + WIRE_OVERHEAD) * 8) : 0;
	default:
		return 0;
	}
}

/**
 * report_totals - add up the results of all threads
 * @r: run that has ended
 * @t: set to the sums
 */
void report_totals(const struct run *r, struct totals *t)
{
	__u64 begin = 0, end = 0, first_packets = 0, first_bytes = 0;
	__u64 packets, bytes;
	unsigned int i, j;
	double span = 0;

	memset(t, 0, sizeof(*t));
	for (i = 0; i < r->cfg->nr_threads; i++) {
		const struct worker *w = &r->w[i];

		add_counters(&t->n, &w->n);
		t->drops += w->rx_drops;
		t->hw_stamps += w->hw_stamps;
		if (w->late > t->late)
			t->late = w->late;
		for (j = 0; j < REFUSALS; j++)
			t->refused[j] += w->refused[j];
		if (!w->begin)
			continue;
		if (!begin || w->begin < begin) {
			begin = w->begin;
			first_packets = w->first_packets;
			first_bytes = w->first_bytes;
		}
		if (w->end > end)
			end = w->end;
		if (w->span > span)
			span = w->span;
	}
	packets = sends(r->cfg) ? t->n.tx_packets : t->n.rx_packets;
	bytes = sends(r->cfg) ? t->n.tx_bytes : t->n.rx_bytes;
	if (end > begin) {
		t->seconds = (end - begin) / 1e9;
		if (span < t->seconds)
			span = t->seconds;
		t->pps = (packets - first_packets) / span;
		t->bps = (bytes - first_bytes) * 8 / span;
	}
	t->asked = asked_pps(r, packets ? (double)bytes / packets : 0);
}

/**
 * report_streams - merge the streams of all threads
 * @r: run that has ended
 * @merged: set to an array, to be freed; NULL without streams or memory
 *
 * Return: the number of streams.
 */
unsigned int report_streams(const struct run *r, struct stream **merged)
{
	struct stream *all = NULL, *new;
	unsigned int i, j, k, n = 0;

	for (i = 0; i < r->cfg->nr_threads; i++) {
		const struct stream_table *t = r->w[i].streams;

		for (j = 0; t && j < t->nr; j++) {
			for (k = 0; k < n; k++)
				if (all[k].key == t->stream[j]->key)
					break;
			if (k == n) {
				new = realloc(all, (n + 1) * sizeof(*all));
				if (!new)
					break;
				all = new;
				memset(&all[n], 0, sizeof(*all));
				hist_init(&all[n].latency);
				all[n++].key = t->stream[j]->key;
			}
			stream_merge(&all[k], t->stream[j]);
		}
	}
	*merged = all;
	return n;
}

static void print_stream(FILE *f, const struct stream *s, bool ping)
{
	const struct hist *h = &s->latency;
	__u64 n = hist_count(h);
	char buf[6][16];

	fprintf(f, "stream %u: %llu received, %llu lost, %llu reordered, %llu duplicate\n",
		stream_number(s->key), s->received, stream_lost(s),
		s->reordered, s->duplicates);
	if (stream_head(s))
		fprintf(f, "  %llu of the lost ones were sent before the first one received\n",
			stream_head(s));
	if (n)
		fprintf(f, "  %s min %s, p50 %s, p99 %s, p99.9 %s, max %s, mean %s\n",
			ping ? "round trip" : "latency",
			human_ns(buf[0], 16, h->min),
			human_ns(buf[1], 16, hist_percentile(h, 50)),
			human_ns(buf[2], 16, hist_percentile(h, 99)),
			human_ns(buf[3], 16, hist_percentile(h, 99.9)),
			human_ns(buf[4], 16, h->max),
			human_ns(buf[5], 16, h->sum / n));
	if (s->negative)
		fprintf(f, "  %llu packets seem to have been received before they were sent: the clocks differ\n",
			s->negative);
}

static void print_sent(FILE *f, const struct totals *t)
{
	char a[16], b[16], c[16];
	unsigned int error;

	fprintf(f, "sent %llu packets, %llu bytes in %.3f s: %spps, %sbps",
		t->n.tx_packets, t->n.tx_bytes, t->seconds,
		human(a, sizeof(a), t->pps), human(b, sizeof(b), t->bps));
	if (t->asked)
		fprintf(f, "; asked for %spps, reached %.2f %%",
			human(c, sizeof(c), t->asked),
			t->pps / t->asked * 100);
	fputc('\n', f);
	for (error = 0; error < REFUSALS; error++)
		if (t->refused[error])
			fprintf(f, "%llu packets were refused: %s\n",
				t->refused[error],
				tp4_strerror(TP4_IN_TX, error));
	if (t->n.missed)
		fprintf(f, "%llu packets were left out: this machine was too slow or too busy\n",
			t->n.missed);
}

/**
 * report_tail - count the packets that are missing after the last one
 * @r: run that has ended
 * @s: its streams
 * @n: number of these
 *
 * Return: how many of the packets that one thread should receive were lost
 * after the highest number received; 0 if they have come, or were not counted.
 */
__u64 report_tail(const struct run *r, const struct stream *s, unsigned int n)
{
	const struct config *cfg = r->cfg;
	__u64 left = cfg->count;

	if (cfg->mode != MODE_RX || !cfg->pkt.seq || cfg->nr_threads > 1 ||
	    r->w->n.rx_packets >= left)
		return 0;
	for (; n; n--, s++) {
		__u64 known = s->received + stream_lost(s);

		left -= known < left ? known : left;
	}
	return left;
}

static void print_received(FILE *f, const struct run *r,
			   const struct totals *t)
{
	char a[16], b[16];

	fprintf(f, "received %llu packets, %llu bytes", t->n.rx_packets,
		t->n.rx_bytes);
	if (!sends(r->cfg))
		fprintf(f, " in %.3f s: %spps, %sbps", t->seconds,
			human(a, sizeof(a), t->pps),
			human(b, sizeof(b), t->bps));
	fprintf(f, "; %llu dropped\n", t->drops);
	if (t->n.other)
		fprintf(f, "%llu of them were not numbered by tpgen\n",
			t->n.other);
	if (t->n.timeouts)
		fprintf(f, "%llu pings had no answer in time\n",
			t->n.timeouts);
	if (r->cfg->stamps == STAMPS_HARDWARE)
		fprintf(f, "%llu packets had a hardware time stamp\n",
			t->hw_stamps);
}

/**
 * report_summary - print the summary in words
 * @r: run that has ended
 * @f: where to print it
 */
void report_summary(struct run *r, FILE *f)
{
	const struct config *cfg = r->cfg;
	struct stream *streams;
	struct totals t;
	unsigned int i, n;
	__u64 tail;

	report_totals(r, &t);
	if (sends(cfg))
		print_sent(f, &t);
	if (receives(cfg))
		print_received(f, r, &t);
	n = report_streams(r, &streams);
	for (i = 0; i < n; i++)
		print_stream(f, &streams[i], cfg->mode == MODE_PING);
	tail = report_tail(r, streams, n);
	if (tail)
		fprintf(f, "%llu packets were lost after the last one received\n",
			tail);
	free(streams);
	fflush(f);
	for (i = 0; i < cfg->nr_threads; i++)
		if (*r->w[i].error)
			warnx("%s, thread %u: %s", cfg->ifname, i,
			      r->w[i].error);
}

/**
 * report_free - free the samples and streams
 * @r: run
 */
void report_free(struct run *r)
{
	unsigned int i;

	for (i = 0; i < r->cfg->nr_threads; i++)
		stream_table_free(r->w[i].streams);
	free(r->sample);
	free(r->w);
}
