// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the parts of tpgen that need no kernel: headers and checksums,
 * streams, histograms, rates, and capture files with any content. They compare
 * with plain code that does the same. Built with AddressSanitizer and
 * UndefinedBehaviorSanitizer. Prints TAP.
 */
#include <math.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdlib.h>

#include "pcap.h"
#include "stream.h"

static unsigned int number;
static bool failed, any_failed;

static void check(bool ok, const char *format, ...)
{
	va_list args;

	if (ok || failed)
		return;
	failed = true;
	printf("# ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

static void end(const char *name)
{
	printf("%sok %u %s\n", failed ? "not " : "", ++number, name);
	any_failed |= failed;
	failed = false;
}

static __u64 rng = 88172645463325252ull;

static __u32 rnd(__u32 below)
{
	return (random_next(&rng) >> 32) % below;
}

/* --- headers and checksums ----------------------------------------------- */

static __u32 sum(const __u8 *p, unsigned int len, __u32 s)
{
	unsigned int i;

	for (i = 0; i < len; i++)
		s += i & 1 ? p[i] : p[i] << 8;
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return s;
}

/* Is this packet right, as a receiver sees it? */
static void check_packet(const __u8 *p, unsigned int size,
			 const struct packet_spec *pkt, unsigned int i)
{
	const __u8 *ip = p + (pkt->tagged ? 18 : 14), *l4;
	unsigned int len = size - (ip - p), l4_len;
	__u32 s;

	check(get16(ip - 2) == (pkt->family == AF_INET ? 0x800 : 0x86dd),
	      "packet %u: ethertype", i);
	if (pkt->family == AF_INET) {
		check(get16(ip + 2) == len, "packet %u: length of IPv4", i);
		check(sum(ip, 20, 0) == 0xffff, "packet %u: sum of IPv4", i);
		l4 = ip + 20;
		l4_len = len - 20;
		s = sum(ip + 12, 8, ip[9] + l4_len);
		if (ip[9] == IPPROTO_ICMP)
			s = 0;
	} else {
		check(get16(ip + 4) == len - 40, "packet %u: length of IPv6", i);
		l4 = ip + 40;
		l4_len = len - 40;
		s = sum(ip + 8, 32, ip[6] + l4_len);
	}
	if (pkt->protocol == IPPROTO_UDP) {
		check(get16(l4 + 4) == l4_len, "packet %u: length of UDP", i);
		check(get16(l4 + 6), "packet %u: no UDP checksum", i);
	}
	check(sum(l4, l4_len, s) == 0xffff,
	      "packet %u: checksum: %04x, family %d, protocol %u, size %u", i,
	      sum(l4, l4_len, s), pkt->family, pkt->protocol, size);
}

static void random_range(struct range *r, __u32 max)
{
	__u32 a = rnd(max) + rnd(2), b = rnd(3) ? a + rnd(5) : rnd(max);

	if (rnd(3) == 0) {
		r->min = r->max = a;
		return;
	}
	r->min = a < b ? a : b;
	r->max = a < b ? b : a;
	r->random = rnd(2);
}

static void random_address(struct address *a, unsigned int low)
{
	unsigned int i;

	for (i = 0; i < sizeof(a->bytes); i++)
		a->bytes[i] = rnd(256);
	random_range(&a->low, UINT32_MAX - 8);
	put32(a->bytes + low, a->low.min);
}

static void random_spec(struct config *cfg)
{
	static const __u8 protocols[] = { IPPROTO_UDP, IPPROTO_TCP,
					  IPPROTO_ICMP };
	struct packet_spec *pkt = &cfg->pkt;
	unsigned int low, min;

	memset(cfg, 0, sizeof(*cfg));
	pkt->family = rnd(2) ? AF_INET : AF_INET6;
	low = pkt->family == AF_INET ? 0 : 12;
	pkt->protocol = protocols[rnd(3)];
	if (pkt->protocol == IPPROTO_ICMP && pkt->family == AF_INET6)
		pkt->protocol = IPPROTO_ICMPV6;
	random_address(&pkt->dmac, 2);
	random_address(&pkt->smac, 2);
	random_address(&pkt->src, low);
	random_address(&pkt->dst, low);
	if (pkt->protocol == IPPROTO_UDP || pkt->protocol == IPPROTO_TCP) {
		random_range(&pkt->sport, 65530);
		random_range(&pkt->dport, 65530);
	}
	pkt->tagged = rnd(2);
	if (pkt->tagged)
		random_range(&pkt->vlan, 4090);
	pkt->priority = rnd(8);
	pkt->ttl = rnd(256);
	pkt->tos = rnd(256);
	pkt->seq = rnd(2);
	pkt->stream = rnd(65536);
	pkt->run = rnd(65536);
	min = vary_min_size(pkt);
	pkt->size.min = min + rnd(100);
	pkt->size.max = pkt->size.min;
	if (rnd(2)) {
		pkt->size.max += rnd(50);
		pkt->size.random = rnd(2);
	}
	pkt->imix = min <= 60 && rnd(4) == 0;
}

/*
 * What is copied to a frame that has another packet must make all of it right,
 * and the image itself must be that packet, too.
 */
static void test_packets(void)
{
	__u8 frame[2048] __attribute__((__aligned__(8)));
	struct config cfg;
	struct vary v;
	unsigned int i, round;

	for (round = 0; round < 3000; round++) {
		random_spec(&cfg);
		vary_init(&v, &cfg, rnd(4));
		memset(frame, 0, sizeof(frame));
		memcpy(frame, v.head, v.len);
		for (i = 0; i < 60; i++) {
			if (cfg.pkt.seq && rnd(3) == 0)
				vary_stamp(&v, random_next(&rng));
			vary_write(&v, frame);
			check(!memcmp(frame, v.head, v.len),
			      "packet %u: the frame has another packet", i);
			check_packet(frame, v.size, &cfg.pkt, i);
			if (cfg.pkt.seq)
				check(signature_find(frame, v.size) ==
				      v.payload &&
				      signature_seq(frame + v.payload) == i,
				      "packet %u: signature", i);
			vary_next(&v);
		}
	}
	end("headers and checksums of random packets");
}

#define RUN_FRAMES	64

/* vary_run() writes the packets that vary_next() makes. */
static void test_runs(void)
{
	static __u8 memory[RUN_FRAMES * 2048]
		__attribute__((__aligned__(4096)));
	const struct tp4_area area = { .addr = memory, .frame_size = 2048 };
	struct tpacket4_desc desc[RUN_FRAMES];
	unsigned int i, n, round, at, runs = 0;
	struct vary v, w;
	struct tp4_ring ring;
	struct config cfg;

	tp4_ring_init(&ring, desc, RUN_FRAMES);
	for (i = 0; i < RUN_FRAMES; i++)
		desc[i].idx = RUN_FRAMES - 1 - i;
	for (round = 0; round < 20000; round++) {
		random_spec(&cfg);
		if (rnd(2))
			cfg.pkt.seq = false;
		cfg.pkt.imix = cfg.pkt.size.random = false;
		cfg.pkt.size.min = cfg.pkt.size.max = 120;
		vary_init(&v, &cfg, 0);
		for (i = rnd(70000); rnd(2) && i; i--)
			vary_next(&v);
		w = v;
		w.alone = v.alone ? (void *)&w + ((void *)v.alone -
						  (void *)&v) : NULL;
		n = vary_run_length(&v, rnd(RUN_FRAMES));
		if (!n)
			continue;
		runs++;
		at = rnd(RUN_FRAMES);
		for (i = 0; i < RUN_FRAMES; i++)
			memcpy(memory + i * 2048 + 256, v.head, v.len);
		vary_run(&v, &ring, &area, 256, at, n, v.words);
		for (i = 0; i < n; i++) {
			const __u8 *p = memory + 256 + 2048 *
					tp4_ring_at(&ring, at + i)->idx;

			check(!memcmp(p, w.head, w.len), "run: packet %u", i);
			vary_next(&w);
		}
		check(!memcmp(v.head, w.head, v.len), "run: next packet");
		check(v.l4_sum == w.l4_sum && v.ip_sum == w.ip_sum,
		      "run: sums");
	}
	check(runs > 1000, "%u runs", runs);
	end("packets that differ in one field");
}

/* All combinations come, in turn, and then again. */
static void test_cycle(void)
{
	struct config cfg = {
		.pkt = {
			.family = AF_INET,
			.protocol = IPPROTO_UDP,
			.sport = { 65533, 65535, false },
			.dport = { 0, 1, false },
			.size = { 60, 63, false },
		},
	};
	struct vary v;
	unsigned int i;

	vary_init(&v, &cfg, 0);
	check(vary_cycle(&v) == 12, "cycle of %llu", vary_cycle(&v));
	for (i = 0; i < 24; i++) {
		unsigned int sport = get16(v.head + v.l4) - 65533;
		unsigned int dport = get16(v.head + v.l4 + 2);

		check(sport == i % 3 && dport == i / 3 % 2 &&
		      v.size == 60 + i % 4, "packet %u", i);
		vary_next(&v);
	}
	cfg.pkt.src.low.max = UINT32_MAX;
	vary_init(&v, &cfg, 0);
	check(vary_cycle(&v) > UINT32_MAX, "a long cycle");
	cfg.pkt.src.low.random = true;
	vary_init(&v, &cfg, 0);
	check(!vary_cycle(&v), "no cycle");
	end("fields in turn");
}

/* --- streams ------------------------------------------------------------- */

#define SEQS	30000

/* Compare with a bit for each number. */
static void one_stream(__u32 first)
{
	static __u8 got[SEQS + 4000];
	struct stream_table *t = stream_table_new();
	struct stream *s = stream_find(t, 5);
	__u64 unique = 0, reordered = 0, duplicates = 0, low, high;
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
	check(stream_lost(s) == high - low + 1 - unique, "lost %llu, not %llu",
	      stream_lost(s), high - low + 1 - unique);
	check(hist_count(&s->latency) == unique + duplicates, "latencies");
	stream_table_free(t);
}

static void test_streams(void)
{
	unsigned int i;

	for (i = 0; i < 300; i++)
		one_stream(i % 3 ? rnd(UINT32_MAX) : UINT32_MAX - rnd(9000));
	end("lost, reordered and duplicate packets");
}

/* Two threads share a stream; together nothing is lost. */
static void test_merge(void)
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
static void test_any_packet(void)
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

/* --- histograms and rates ------------------------------------------------ */

static void test_histograms(void)
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
	      hist_percentile(&h, 100) >= 1000, "percentiles");
	check(hist_percentile(&h, 0.1) == 1, "lowest");
	other = h;
	hist_merge(&other, &h);
	check(hist_count(&other) == 2000, "merge");
	hist_subtract(&other, &h);
	check(hist_count(&other) == 1000, "subtract");
	end("histograms");
}

static void test_rates(void)
{
	static const struct {
		const char *rate;
		double gap;		/* of 125 bytes, in ns */
	} cases[] = {
		{ "1k", 1e6 }, { "1.5Mpps", 1e3 / 1.5 }, { "1Mbps", 1e6 },
		{ "1Gbit", 1e3 }, { "1Gbpsl1", 1192 }, { "10%", 1192 },
		{ "0.5", 2e9 },
	};
	struct config cfg = { .nr_threads = 1 };
	struct pace p;
	double sum = 0, squares = 0, gap, mean;
	unsigned int i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		parse_rate(cases[i].rate, &cfg.rate);
		pace_init(&p, &cfg, 10000000000ull, 0, 1);
		pace_start(&p, 7);
		pace_sent(&p, 1, 125);
		check(fabs(p.next / cases[i].gap - 1) < 1e-9,
		      "%s: gap of %g ns", cases[i].rate, p.next);
		pace_sent(&p, 3, 375);
		check(fabs(p.next / cases[i].gap - 4) < 1e-9, "burst");
	}
	/* a day with a gap that is no whole number */
	parse_rate("3Mpps", &cfg.rate);
	pace_init(&p, &cfg, 0, 0, 1);
	p.next = 86400e9;
	for (i = 0; i < 3000000; i++)
		pace_sent(&p, 1, 60);
	check(fabs(p.next - 86401e9) < 1e5, "rounding: %g", p.next - 86401e9);

	cfg.poisson = true;
	parse_rate("1M", &cfg.rate);
	pace_init(&p, &cfg, 0, 0, 1);
	for (i = 0; i < 1000000; i++) {
		gap = -p.next;
		pace_sent(&p, 1, 60);
		gap += p.next;
		sum += gap;
		squares += gap * gap;
	}
	mean = sum / i;
	check(fabs(mean - 1000) < 5, "mean of random gaps: %g", mean);
	check(fabs(sqrt(squares / i - mean * mean) - 1000) < 10,
	      "deviation of random gaps");
	pace_start(&p, 0);
	pace_catch_up(&p, PACE_LATE + 1000000, 60);
	check(fabs(p.missed - 1000) < 1e-6 && p.next == 1000000,
	      "left out: %g", p.missed);
	pace_start(&p, 1000);
	pace_catch_up(&p, 10, 60);
	check(p.missed < 1001 && !p.next, "a start that is to come");
	end("rates and gaps");
}

/* --- capture files ------------------------------------------------------- */

struct buffer {
	__u8 data[4096];
	unsigned int len;
	bool swap;
};

static void add32(struct buffer *b, __u32 n)
{
	n = b->swap ? __builtin_bswap32(n) : n;
	memcpy(b->data + b->len, &n, sizeof(n));
	b->len += sizeof(n);
}

static void add16(struct buffer *b, __u16 n)
{
	n = b->swap ? __builtin_bswap16(n) : n;
	memcpy(b->data + b->len, &n, sizeof(n));
	b->len += sizeof(n);
}

static void add_bytes(struct buffer *b, unsigned int len)
{
	unsigned int i;

	for (i = 0; i < len; i++)
		b->data[b->len++] = i;
}

static void make_pcap(struct buffer *b, bool swap, bool nano)
{
	unsigned int i;

	b->len = 0;
	b->swap = swap;
	add32(b, nano ? 0xa1b23c4d : 0xa1b2c3d4);
	add16(b, 2);
	add16(b, 4);
	add32(b, 0);
	add32(b, 0);
	add32(b, 65535);
	add32(b, 1);
	for (i = 0; i < 3; i++) {
		add32(b, 1000000000);
		add32(b, 5 + i);
		add32(b, 60 + i);
		add32(b, 60 + i);
		add_bytes(b, 60 + i);
	}
}

static void make_pcapng(struct buffer *b, bool swap)
{
	unsigned int i;

	b->len = 0;
	b->swap = swap;
	add32(b, 0x0a0d0d0a);
	add32(b, 28);
	add32(b, 0x1a2b3c4d);
	add16(b, 1);
	add16(b, 0);
	add32(b, ~0u);
	add32(b, ~0u);
	add32(b, 28);
	add32(b, 1);		/* an interface with nanoseconds */
	add32(b, 32);
	add16(b, 1);
	add16(b, 0);
	add32(b, 0);
	add16(b, 9);
	add16(b, 1);
	b->data[b->len++] = 9;
	add_bytes(b, 3);
	add16(b, 0);
	add16(b, 0);
	add32(b, 32);
	add32(b, 0xbad);	/* a block that nobody knows */
	add32(b, 16);
	add32(b, 0);
	add32(b, 16);
	for (i = 0; i < 3; i++) {
		add32(b, 6);
		add32(b, 32 + 64);
		add32(b, 0);
		add32(b, 1);
		add32(b, 5 + i);
		add32(b, 60 + i);
		add32(b, 60 + i);
		add_bytes(b, 64);
		add32(b, 32 + 64);
	}
}

/* Parse a copy of exactly that size, so that reading behind it is found. */
static int parse(const struct buffer *b, unsigned int len, struct capture *c,
		 char *error)
{
	__u8 *copy = malloc(len + 1);
	__u64 total = 0;
	size_t i;
	unsigned int j;
	int e;

	memcpy(copy, b->data, len);
	copy = realloc(copy, len ? len : 1);
	e = capture_parse(c, copy, len, error);
	for (i = 0; !e && i < c->nr; i++)
		for (j = 0; j < c->packet[i].len; j++)
			total += c->packet[i].data[j];
	check(e || total < ~0ull, "-");
	free(copy);
	return e;
}

static void good_file(const struct buffer *b, __u64 first, __u64 step)
{
	char error[CAPTURE_ERROR];
	struct capture c;
	size_t i;

	check(!parse(b, b->len, &c, error), "%s", error);
	check(c.nr == 3 && !c.incomplete && !c.cut && !c.skipped,
	      "%zu packets", c.nr);
	for (i = 0; i < c.nr; i++)
		check(c.packet[i].len == 60 + i &&
		      c.packet[i].ns == first + i * step,
		      "packet %zu: %u bytes at %llu", i, c.packet[i].len,
		      c.packet[i].ns);
	capture_free(&c);
}

static void test_good_files(void)
{
	struct buffer b;
	int swap;

	for (swap = 0; swap < 2; swap++) {
		make_pcap(&b, swap, false);
		good_file(&b, 1000000000 * 1000000000ull + 5000, 1000);
		make_pcap(&b, swap, true);
		good_file(&b, 1000000000 * 1000000000ull + 5, 1);
		make_pcapng(&b, swap);
		good_file(&b, (1ull << 32) + 5, 1);
	}
	end("pcap and pcapng in both byte orders");
}

static void make_any(struct buffer *b, unsigned int kind)
{
	if (kind < 4)
		make_pcap(b, kind & 1, kind & 2);
	else
		make_pcapng(b, kind & 1);
}

static void test_truncated_files(void)
{
	char error[CAPTURE_ERROR];
	struct buffer b;
	struct capture c;
	unsigned int kind, len, last;

	for (kind = 0; kind < 6; kind++) {
		make_any(&b, kind);
		last = 0;
		for (len = 0; len <= b.len; len++) {
			if (parse(&b, len, &c, error)) {
				check(*error && !last, "%u bytes: %s", len,
				      error);
				continue;
			}
			check(c.nr >= last && c.nr <= 3, "%zu packets", c.nr);
			last = c.nr;
			capture_free(&c);
		}
		check(last == 3, "all of it");
	}
	end("truncated files");
}

static void bad_word(unsigned int kind, unsigned int at, __u32 value,
		     const char *why)
{
	char error[CAPTURE_ERROR];
	struct buffer b;
	struct capture c;
	unsigned int len;

	make_any(&b, kind);
	len = b.len;
	b.len = at;
	add32(&b, value);
	check(parse(&b, len, &c, error) && strstr(error, why),
	      "kind %u, %#x at %u: %s", kind, value, at, error);
}

static void test_bad_files(void)
{
	unsigned int kind;

	for (kind = 0; kind < 4; kind++) {
		bad_word(kind, 0, 0x12345678, "neither");
		bad_word(kind, 20, 113, "link type");
		bad_word(kind, 24 + 8, 0xffffffff, "too long");
		bad_word(kind, 24 + 8, 0x7fffffff, "too long");
		bad_word(kind, 24 + 8, 65536, "too long");
	}
	for (; kind < 6; kind++) {
		bad_word(kind, 0, 0x12345678, "neither");
		bad_word(kind, 8, 0x11111111, "byte order");
		bad_word(kind, 4, 11, "invalid length");
		bad_word(kind, 4, 29, "invalid length");
		bad_word(kind, 24, 32, "two lengths");
		bad_word(kind, 28 + 4, 0, "invalid length");
		bad_word(kind, 76 + 4, 12, "two lengths");
		bad_word(kind, 76 + 8, 1, "not described");
		bad_word(kind, 76 + 20, 0xffffffff, "longer than its block");
		bad_word(kind, 76 + 20, 65, "longer than its block");
	}
	end("bad lengths, links and byte orders");
}

static void test_random_files(void)
{
	char error[CAPTURE_ERROR];
	struct buffer b;
	struct capture c;
	unsigned int i, j, parsed = 0;

	for (i = 0; i < 300000; i++) {
		make_any(&b, rnd(6));
		for (j = 1 + rnd(4); j; j--) {
			switch (rnd(3)) {
			case 0:
				b.data[rnd(b.len)] = rnd(256);
				break;
			case 1:
				b.data[rnd(b.len)] ^= 1 << rnd(8);
				break;
			default:
				put32(b.data + rnd(b.len - 4) / 4 * 4,
				      rnd(2) ? rnd(64) : ~rnd(64));
			}
		}
		if (!parse(&b, rnd(2) ? b.len : rnd(b.len), &c, error)) {
			parsed++;
			capture_free(&c);
		}
	}
	check(parsed > 1000 && parsed < 299000, "%u were parsed", parsed);
	end("300000 damaged files");
}

int main(void)
{
	printf("TAP version 13\n1..12\n");
	test_packets();
	test_runs();
	test_cycle();
	test_streams();
	test_merge();
	test_any_packet();
	test_histograms();
	test_rates();
	test_good_files();
	test_truncated_files();
	test_bad_files();
	test_random_files();
	return any_failed;
}
