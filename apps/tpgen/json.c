// SPDX-License-Identifier: GPL-2.0
/* tpgen: the summary as JSON */
#include <stdlib.h>

#include "stream.h"

static const char *const modes[] = {
	[MODE_TX] = "tx",
	[MODE_RX] = "rx",
	[MODE_PING] = "ping",
	[MODE_PONG] = "pong",
	[MODE_REPLAY] = "replay",
	[MODE_SEARCH] = "search",
};

/* Bytes of the character at @s in UTF-8, or 0 if it is none */
static unsigned int utf8_len(const unsigned char *s)
{
	static const __u32 first[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned int i, len = *s < 0x80 ? 1 : *s < 0xc0 ? 0 : *s < 0xe0 ? 2 :
			      *s < 0xf0 ? 3 : *s < 0xf8 ? 4 : 0;
	__u32 code = *s & (0x7f >> len);

	if (len < 2)
		return len;
	for (i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3f);
	}
	/* Not longer than needed, no half of a pair, and in Unicode */
	if (code < first[len] || code >> 11 == 0x1b || code > 0x10ffff)
		return 0;
	return len;
}

/**
 * json_string - write a string
 * @f: file
 * @s: string; a byte that is not UTF-8 becomes what Python's os.fsdecode() makes
 *     of it
 */
void json_string(FILE *f, const char *s)
{
	unsigned int len;

	putc('"', f);
	for (; *s; s += len) {
		len = utf8_len((const unsigned char *)s);
		if (!len) {
			fprintf(f, "\\udc%02x", (unsigned char)*s);
			len = 1;
		} else if (*s == '"' || *s == '\\') {
			fprintf(f, "\\%c", *s);
		} else if ((unsigned char)*s < 0x20 || *s == 0x7f) {
			fprintf(f, "\\u%04x", *s);
		} else {
			fwrite(s, 1, len, f);
		}
	}
	putc('"', f);
}

static void write_latency(FILE *f, const struct hist *h)
{
	__u64 n = hist_count(h);
	const char *comma = "";
	unsigned int i;

	fprintf(f, "{\"count\": %llu", n);
	if (n)
		fprintf(f, ", \"min_ns\": %llu, \"p50_ns\": %llu, \"p99_ns\": %llu, \"p99_9_ns\": %llu, \"max_ns\": %llu, \"mean_ns\": %llu",
			h->min, hist_percentile(h, 50), hist_percentile(h, 99),
			hist_percentile(h, 99.9), h->max, h->sum / n);
	fputs(", \"histogram\": [", f);
	for (i = 0; i < HIST_BINS; i++) {
		if (!h->bin[i])
			continue;
		fprintf(f, "%s[%llu, %llu]", comma, hist_bin_start(i),
			h->bin[i]);
		comma = ", ";
	}
	fputs("]}", f);
}

static void write_streams(FILE *f, const struct run *r)
{
	const char *comma = "";
	struct stream *streams;
	unsigned int i, n = report_streams(r, &streams);

	fputs(",\n \"streams\": [", f);
	for (i = 0; i < n; i++) {
		const struct stream *s = &streams[i];

		fprintf(f, "%s\n  {\"stream\": %u, \"run\": %u, \"received\": %llu, \"lost\": %llu, \"lost_before_first\": %llu, \"reordered\": %llu, \"duplicate\": %llu, \"negative_latency\": %llu, \"latency\": ",
			comma, stream_number(s->key), stream_run(s->key),
			s->received, stream_lost(s), stream_head(s),
			s->reordered, s->duplicates, s->negative);
		write_latency(f, &s->latency);
		putc('}', f);
		comma = ",";
	}
	fprintf(f, "],\n \"lost_after_last\": %llu", report_tail(r, streams, n));
	free(streams);
}

/* The errors that packets were refused with, by their names */
static void write_refused(FILE *f, const struct totals *t)
{
	const char *comma = "";
	unsigned int i;

	fputs(",\n \"refused\": {", f);
	for (i = 0; i < REFUSALS; i++) {
		if (!t->refused[i])
			continue;
		fprintf(f, "%s\"%s\": %llu", comma, strerrorname_np(i),
			t->refused[i]);
		comma = ", ";
	}
	putc('}', f);
}

/* Begin an object; its end is up to the caller. */
static void write_sample(FILE *f, const struct sample *s)
{
	fprintf(f, "{\"seconds\": %.3f, \"tx_pps\": %.1f, \"tx_bps\": %.1f, \"rx_pps\": %.1f, \"rx_bps\": %.1f, \"latencies\": %llu, \"p50_ns\": %llu, \"p99_ns\": %llu, \"max_ns\": %llu",
		s->at, s->tx_pps, s->tx_bps, s->rx_pps, s->rx_bps, s->latencies,
		s->p50, s->p99, s->max);
}

/**
 * json_sample - write a sample as a line
 * @r: run
 * @s: its last sample
 */
void json_sample(const struct run *r, const struct sample *s)
{
	const struct counters *n = &r->counted;

	write_sample(r->stream, s);
	fprintf(r->stream, ", \"tx_packets\": %llu, \"tx_bytes\": %llu, \"rx_packets\": %llu, \"rx_bytes\": %llu}\n",
		n->tx_packets, n->tx_bytes, n->rx_packets, n->rx_bytes);
	fflush(r->stream);
}

static void write_samples(FILE *f, const struct run *r)
{
	unsigned int i;

	fputs(",\n \"samples\": [", f);
	for (i = 0; i < r->nr_samples; i++) {
		fputs(i ? ",\n  " : "\n  ", f);
		write_sample(f, &r->sample[i]);
		putc('}', f);
	}
	putc(']', f);
}

static void write_errors(FILE *f, const struct run *r)
{
	const char *comma = "";
	unsigned int i;

	fputs(",\n \"errors\": [", f);
	for (i = 0; i < r->cfg->nr_threads; i++) {
		if (!*r->w[i].error)
			continue;
		fputs(comma, f);
		json_string(f, r->w[i].error);
		comma = ", ";
	}
	putc(']', f);
}

/**
 * json_write - write the summary as one JSON object
 * @r: run that has ended
 * @f: file
 */
void json_write(struct run *r, FILE *f)
{
	const struct config *cfg = r->cfg;
	struct totals t;

	report_totals(r, &t);
	fprintf(f, "{\"mode\": \"%s\", \"interface\": ", modes[cfg->mode]);
	json_string(f, cfg->ifname);
	fprintf(f, ", \"zerocopy\": %s, \"threads\": %u",
		cfg->zerocopy ? "true" : "false", cfg->nr_threads);
	fprintf(f, ",\n \"seconds\": %.6f, \"pps\": %.3f, \"bps\": %.3f, \"asked_pps\": %.3f",
		t.seconds, t.pps, t.bps, t.asked);
	fprintf(f, ",\n \"tx_packets\": %llu, \"tx_bytes\": %llu, \"tx_refused\": %llu, \"left_out\": %llu",
		t.n.tx_packets, t.n.tx_bytes, t.n.tx_refused, t.n.missed);
	fprintf(f, ",\n \"rx_packets\": %llu, \"rx_bytes\": %llu, \"rx_dropped\": %llu, \"rx_other\": %llu, \"timeouts\": %llu, \"hardware_stamps\": %llu",
		t.n.rx_packets, t.n.rx_bytes, t.drops, t.n.other,
		t.n.timeouts, t.hw_stamps);
	write_refused(f, &t);
	write_streams(f, r);
	write_samples(f, r);
	write_errors(f, r);
	fputs("}\n", f);
}
