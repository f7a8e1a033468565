// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of offload.c: packets in all kinds of tunnels, for a port without metadata
 */

#include <stdlib.h>

#include "tpswitch.h"
#include "tunnel.h"

#define PAYLOAD		20000

static int bad;

#define check(cond, ...) do { \
		if (!(cond)) { \
			printf("# line %d: EXPECT %s: ", __LINE__, #cond); \
			printf(__VA_ARGS__); \
			printf("\n"); \
			bad = 1; \
		} \
	} while (0)

/* What the port has got */
static struct {
	size_t from;		/* bytes of payload */
	unsigned int packets, wrong;
	u32 crc;
} got;

static bool output_segment(struct sw_port *port, struct sw_packet *p)
{
	const char *data = (const char *)p->frag->data;

	(void)port;
	got.packets++;
	got.wrong += p->nr != 1 || !segment_ok(data, p->len, got.from);
	if (p->len > pkt.payload)
		got.from += p->len - pkt.payload;
	return true;
}

static bool output_sctp(struct sw_port *port, struct sw_packet *p)
{
	const char *data = (const char *)p->frag->data;

	(void)port;
	got.packets++;
	memcpy(&got.crc, data + pkt.l4 + 8, sizeof(got.crc));
	got.wrong += p->len != pkt.len || memcmp(data, pkt.data, pkt.l4 + 8);
	return true;
}

static bool output_any(struct sw_port *port, struct sw_packet *p)
{
	(void)port;
	got.packets++;
	got.wrong += p->len > SW_LEN;
	return true;
}

/* Deliver the packet in two pieces, as frames have them. */
static bool offload(bool (*output)(struct sw_port *port, struct sw_packet *p))
{
	static struct sw_port_ops ops;
	struct sw sw = { .budget = 1000000 };
	struct sw_port port = { .ops = &ops, .sw = &sw };
	struct sw_frag frag[2] = {
		{ .data = (u8 *)pkt.data, .len = pkt.len / 2 },
		{ .data = (u8 *)pkt.data + pkt.len / 2,
		  .len = pkt.len - pkt.len / 2 },
	};
	struct sw_packet p = {
		.frag = frag, .nr = 2, .len = pkt.len, .meta = &pkt.m,
	};

	u32 at = 0;

	ops.output = output;
	memset(&got, 0, sizeof(got));
	return sw_meta_ok(&pkt.m, pkt.len) && sw_offload(&port, &p, &at) &&
	       !at;
}

static void test_kinds(void)
{
	unsigned int i, k, want;

	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		for (k = 0; k < sizeof(inners) / sizeof(*inners); k++) {
			want = inners[k].gso_type ? PAYLOAD : 1001;
			fill_tunnel(i, k, want);
			check(offload(output_segment) && !got.wrong &&
			      got.from == want, "%s, %s: %u of %u are wrong",
			      kinds[i].name, inners[k].name, got.wrong,
			      got.packets);
			want = inners[k].gso_type ? PAYLOAD / GSO_SIZE : 1;
			check(got.packets == want, "%s, %s: %u packets",
			      kinds[i].name, inners[k].name, got.packets);
		}
	}
}

static void test_sctp(void)
{
	unsigned int tunnel;

	for (tunnel = 0; tunnel < 2; tunnel++) {
		fill_sctp(tunnel);
		check(offload(output_sctp) && !got.wrong && got.packets == 1 &&
		      got.crc == htole32(crc32c(pkt.data + pkt.l4,
						pkt.len - pkt.l4)),
		      "SCTP: %08x", got.crc);
	}
}

/* Metadata and headers of a hostile program: with AddressSanitizer */
static void test_hostile(void)
{
	unsigned int i, k, n;

	srand(1);
	for (i = 0; i < 20000; i++) {
		fill_tunnel(rand() % (sizeof(kinds) / sizeof(*kinds)),
			    rand() % (sizeof(inners) / sizeof(*inners)), 1200);
		n = rand() % 4;
		for (k = 0; k < n; k++)
			pkt.data[12 + rand() % 100] = rand();
		switch (rand() % 8) {
		case 0:
			pkt.m.inner_start = rand();
			break;
		case 1:
			pkt.m.inner_start = rand() % 200;
			break;
		case 2:
			pkt.m.csum_start = rand() % 1400;
			break;
		case 3:
			pkt.m.csum_offset = rand();
			break;
		case 4:
			pkt.m.flags = rand() % 16;
			break;
		case 5:
			pkt.len = ETH_HLEN + rand() % 150;
			break;
		case 6:
			pkt.m.inner_start = pkt.m.csum_start - rand() % 30;
			break;
		}
		if (offload(output_any))
			check(!got.wrong, "packet %u", i);
	}
}

int main(void)
{
	test_kinds();
	test_sctp();
	test_hostile();
	printf("%sok - offload\n", bad ? "not " : "");
	return bad;
}
