// SPDX-License-Identifier: GPL-2.0
/* Tests of headers, checksums and what differs from packet to packet */
#include <netinet/in.h>
#include <stdlib.h>

#include "stream.h"
#include "unit.h"

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
	const __u8 *ip = p + (pkt->stacked ? 22 : pkt->tagged ? 18 : 14), *l4;
	unsigned int len = size - (ip - p), l4_len;
	__u32 s;

	if (pkt->tagged)
		check(get16(ip - 6) == 0x8100 && get16(ip - 4) >> 13 == pkt->priority,
		      "packet %u: tag", i);
	if (pkt->stacked)
		check(get16(ip - 10) == 0x88a8 && get16(ip - 8) >> 13 == pkt->priority,
		      "packet %u: outer tag", i);
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
	unsigned int i, low, min;

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
	pkt->stacked = pkt->tagged && rnd(2);
	if (pkt->stacked)
		random_range(&pkt->outer, 4090);
	pkt->priority = rnd(8);
	pkt->ttl = rnd(256);
	pkt->tos = rnd(256);
	pkt->seq = rnd(2);
	pkt->stream = rnd(65536);
	pkt->run = rnd(65536);
	if (rnd(2))
		parse_payload(rnd(2) ? "0xffab01" : "0x0000ff00", pkt);
	min = vary_min_size(pkt);
	pkt->size.min = min + rnd(100);
	pkt->size.max = pkt->size.min;
	if (rnd(2)) {
		pkt->size.max += rnd(50);
		pkt->size.random = rnd(2);
	}
	if (rnd(4) == 0) {
		pkt->nr_sizes = 1 + rnd(20);
		for (i = 0; i < pkt->nr_sizes; i++)
			pkt->sizes[i] = pkt->size.min +
				rnd(pkt->size.max - pkt->size.min + 1);
	}
}

/*
 * What is copied to a frame that has another packet must make all of it right,
 * and the image itself must be that packet, too.
 */
void test_packets(void)
{
	__u8 frame[2048] __attribute__((__aligned__(8)));
	struct config cfg;
	struct vary v;
	unsigned int i, round;

	for (round = 0; round < 3000; round++) {
		random_spec(&cfg);
		vary_init(&v, &cfg, rnd(4));
		memset(frame, 0, sizeof(frame));
		if (cfg.pkt.fill)
			memcpy(frame + v.len, cfg.pkt.fill->bytes, sizeof(frame) - v.len);
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
void test_runs(void)
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
		cfg.pkt.nr_sizes = 0;
		cfg.pkt.size.random = false;
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
void test_cycle(void)
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
