// SPDX-License-Identifier: GPL-2.0
/* Tests of capture files with any content */
#include <stdlib.h>

#include "pcap.h"
#include "unit.h"
#include "vary.h"

#define MAX_PACKET	9000

struct buffer {
	__u8 data[3 * MAX_PACKET];
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
	e = capture_parse(c, copy, len, MAX_PACKET, error);
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

void test_good_files(void)
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

void test_truncated_files(void)
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

void test_bad_files(void)
{
	unsigned int kind;

	for (kind = 0; kind < 4; kind++) {
		bad_word(kind, 0, 0x12345678, "neither");
		bad_word(kind, 20, 113, "link type");
		bad_word(kind, 24 + 8, 0xffffffff, "impossible");
		bad_word(kind, 24 + 8, 0x7fffffff, "impossible");
		bad_word(kind, 24 + 8, CAPTURE_MAX_RECORD + 1, "impossible");
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

/* Damage behind a packet leaves that packet. */
static void damaged_word(unsigned int kind, unsigned int at, __u32 value)
{
	char error[CAPTURE_ERROR];
	struct buffer b;
	struct capture c;
	unsigned int len;

	make_any(&b, kind);
	len = b.len;
	b.len = at;
	add32(&b, value);
	check(!parse(&b, len, &c, error), "kind %u: %s", kind, error);
	check(c.nr == 1 && *c.damage, "kind %u: %zu packets, '%s'", kind, c.nr,
	      c.damage);
	capture_free(&c);
}

void test_damage(void)
{
	unsigned int kind;

	for (kind = 0; kind < 4; kind++)
		damaged_word(kind, 24 + 76 + 8, ~0u);
	for (; kind < 6; kind++) {
		damaged_word(kind, 76 + 96 + 4, 11);
		damaged_word(kind, 76 + 96 + 8, 7);
		damaged_word(kind, 76 + 96 + 20, 65);
	}
	end("packets before a damage");
}

static void one_packet(struct buffer *b, unsigned int len, unsigned int wire)
{
	add32(b, 1);
	add32(b, 0);
	add32(b, len);
	add32(b, wire);
	add_bytes(b, len);
}

/* What is not data of a packet, and packets that cannot be sent */
void test_left_out(void)
{
	char error[CAPTURE_ERROR];
	struct buffer b;
	struct capture c;

	make_pcap(&b, false, false);
	b.len = 20;
	add32(&b, 1 | 0x24000000);	/* 4 bytes of FCS */
	one_packet(&b, 64, 64);
	one_packet(&b, 60, 64);		/* captured without it */
	one_packet(&b, 62, 64);
	one_packet(&b, 40, 64);
	check(!parse(&b, b.len, &c, error), "%s", error);
	check(c.nr == 4 && c.packet[0].len == 60 && c.packet[1].len == 60 &&
	      c.packet[2].len == 60 && c.packet[3].len == 40 && c.cut == 1,
	      "FCS: %zu packets, %llu cut", c.nr, c.cut);
	capture_free(&c);

	make_pcap(&b, false, false);
	one_packet(&b, MAX_PACKET + 1, MAX_PACKET + 1);
	one_packet(&b, 0, 0);
	one_packet(&b, MAX_PACKET, MAX_PACKET);
	check(!parse(&b, b.len, &c, error), "%s", error);
	check(c.nr == 4 && c.too_long == 1 && c.empty == 1 &&
	      c.max_len == MAX_PACKET, "%zu packets, %llu too long", c.nr,
	      c.too_long);
	capture_free(&c);

	/* pcapng: by the interface, and by flags of a packet */
	make_pcapng(&b, false);
	b.data[28 + 16] = 13;
	b.data[28 + 20] = 4;
	b.data[76 + 4] += 4;		/* four bytes less, eight of an option */
	b.len = 76 + 28 + 60;
	add16(&b, 2);
	add16(&b, 4);
	add32(&b, 2 << 5);
	add32(&b, 32 + 60 + 8);
	check(!parse(&b, b.len, &c, error), "%s", error);
	check(c.nr == 1 && c.packet[0].len == 58, "%zu packets", c.nr);
	capture_free(&c);
	end("check sequences, packets that are too long or empty");
}

static void schedule(const __u64 *stamps, const __u64 *due, unsigned int nr,
		     __u64 length)
{
	struct captured packet[8] = { 0 };
	struct capture c = { .packet = packet, .nr = nr };
	unsigned int i;

	for (i = 0; i < nr; i++)
		packet[i].ns = 1700000000 * NSEC + stamps[i];
	capture_schedule(&c);
	for (i = 0; i < nr; i++)
		check(packet[i].due == due[i], "packet %u of %u: due at %llu",
		      i, nr, packet[i].due);
	check(c.length == length, "length %llu", c.length);
}

void test_schedule(void)
{
	static const __u64 even[] = { 0, 10, 20, 30 };
	static const __u64 mixed[] = { 500, 600, 400, 700 };
	static const __u64 mixed_due[] = { 100, 200, 0, 300 };
	static const __u64 ahead[] = { 0, 65536 * NSEC, 20000, 40000 };
	static const __u64 ahead_due[] = { 0, 20000, 20000, 40000 };
	static const __u64 late[] = { 100 * NSEC, 1000, 2000 };
	static const __u64 late_due[] = { 0, 0, 1000 };
	/* It is long, but nothing says that it is wrong. */
	static const __u64 pause[] = { 0, 5, 65536 * NSEC, 65536 * NSEC + 5 };

	schedule(even, even, 4, 40);
	schedule(mixed, mixed_due, 4, 400);
	schedule(ahead, ahead_due, 4, 40000 + 40000 / 3);
	schedule(late, late_due, 3, 1500);
	schedule(pause, pause, 4, 65536 * NSEC + 5 + (65536 * NSEC + 5) / 3);
	schedule(even, even, 1, 0);
	end("when the packets of a file are due");
}

void test_random_files(void)
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
