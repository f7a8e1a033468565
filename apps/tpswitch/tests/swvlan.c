// SPDX-License-Identifier: GPL-2.0
/* Tests of tpswitch with ring ports: VLANs */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "client.h"

#define Q(tci)		(0x81000000u | (tci))
#define AD(tci)		(0x88a80000u | (tci))
#define PRIORITY	0xa000u		/* 5 */
#define ALL		0xffff
#define TYPE		0x88b6		/* local experimental type 2 */
#define LEN		60		/* without tags */

static unsigned int put_tags(__u8 *p, const __u32 *tags)
{
	unsigned int at = 12;

	for (; *tags; tags++, at += 4) {
		p[at] = *tags >> 24;
		p[at + 1] = *tags >> 16;
		p[at + 2] = *tags >> 8;
		p[at + 3] = *tags;
	}
	p[at] = TYPE >> 8;
	p[at + 1] = TYPE & 0xff;
	return at + 2;
}

/* Send a packet with tags, up to a 0. */
static bool send_tags(struct client *c, unsigned int to, unsigned int from,
		      const __u32 *tags)
{
	struct tpacket4_desc d = { .idx = NR };
	__u8 *p = tp4_frame(&c->area, NR);
	unsigned int at, i;

	set_mac(p, to);
	set_mac(p + 6, from);
	at = put_tags(p, tags);
	d.len = LEN + at - 14;
	for (i = at; i < d.len; i++)
		p[i] = pattern(i - at, from);
	return !post_one(c, d);
}

/* Is there a packet from an address, with these tags? */
static bool got_tags(struct client *c, unsigned int from, const __u32 *tags)
{
	unsigned int at, i, len = receive(c);
	__u8 head[64];

	at = put_tags(head, tags);
	if (len != LEN + at - 14 || memcmp(buf + 12, head + 12, at - 12) ||
	    buf[11] != (from & 0xff))
		goto wrong;
	for (i = at; i < len; i++)
		if (buf[i] != pattern(i - at, from))
			goto wrong;
	return true;
wrong:
	printf("# %u bytes from %u:", len, buf[11]);
	for (i = 12; i < len && i < 24; i++)
		printf(" %02x", buf[i]);
	printf("\n");
	return false;
}

#define send(c, to, from, ...) \
	check(send_tags(c, to, from, (const __u32[]){ __VA_ARGS__ }), "not sent")
#define got(c, from, ...) \
	check(got_tags(c, from, (const __u32[]){ __VA_ARGS__ }), "not as it should be")
#define silent(c) \
	check(!receive_in(c, 10), "type %02x%02x %02x%02x", buf[12], buf[13], \
	      buf[14], buf[15])

static bool join_all(struct client *c, int n)
{
	int i;

	start(NULL, NULL);
	for (i = 0; i < n; i++)
		if (!join(&c[i]))
			return false;
	return true;
}

static void leave_all(struct client *c, int n)
{
	while (n--)
		leave(&c[n]);
}

/* Send a packet that must not go anywhere. */
#define refused(c, n, from, ...) do { \
		unsigned long was = counter((from)->port, "in_vlan"); \
		int other; \
		send(from, ALL, 1, __VA_ARGS__); \
		check(counter((from)->port, "in_vlan") == was + 1, "%s", out); \
		for (other = 0; other < (n); other++) \
			silent(&(c)[other]); \
	} while (0)

void vlan_access(void)
{
	struct client c[5];
	int i;

	if (!join_all(c, 5))
		return;
	check(ctl("vlan ring1 10") && ctl("vlan ring2 10") &&
	      ctl("vlan ring3 20"), "%s", out);
	/* To all of the VLAN, and to an address that is there only */
	send(&c[0], ALL, 1, 0);
	got(&c[1], 1, 0);
	for (i = 2; i < 5; i++)
		silent(&c[i]);
	/* Both VLANs have this address, and so do ports without VLANs. */
	send(&c[1], ALL, 9, 0);
	got(&c[0], 9, 0);
	send(&c[2], ALL, 9, 0);
	send(&c[3], ALL, 9, 0);
	got(&c[4], 9, 0);
	send(&c[0], 9, 1, 0);
	got(&c[1], 1, 0);
	send(&c[2], 1, 9, 0);
	send(&c[4], 9, 2, 0);
	got(&c[3], 2, 0);
	/* Not known in that VLAN, known in another one */
	send(&c[1], 2, 9, 0);
	got(&c[0], 9, 0);
	for (i = 1; i < 5; i++)
		silent(&c[i]);
	/* Ports without VLANs do not look at tags. */
	send(&c[3], 2, 9, Q(10), Q(20), 0);
	got(&c[4], 9, Q(10), Q(20), 0);
	/* A priority is no VLAN. */
	send(&c[0], 9, 1, Q(PRIORITY), 0);
	got(&c[1], 1, 0);
	/* All other tags are refused, also the port's own. */
	refused(c, 5, &c[0], Q(10), 0);
	refused(c, 5, &c[0], Q(20), 0);
	refused(c, 5, &c[0], Q(4095), 0);
	refused(c, 5, &c[0], AD(10), 0);
	refused(c, 5, &c[0], AD(0), Q(20), 0);
	leave_all(c, 5);
}

void vlan_trunk(void)
{
	struct client c[4];

	if (!join_all(c, 4))
		return;
	check(ctl("trunk ring1 10,20-21 native=30") && ctl("vlan ring2 10") &&
	      ctl("vlan ring3 30") && ctl("trunk ring4 10,30"), "%s", out);
	/* From an access port: with a tag */
	send(&c[1], ALL, 2, 0);
	got(&c[0], 2, Q(10), 0);
	got(&c[3], 2, Q(10), 0);
	silent(&c[2]);
	send(&c[1], ALL, 2, Q(PRIORITY), 0);
	got(&c[0], 2, Q(PRIORITY | 10), 0);
	got(&c[3], 2, Q(PRIORITY | 10), 0);
	/* The native VLAN has none. */
	send(&c[2], ALL, 3, 0);
	got(&c[0], 3, 0);
	got(&c[3], 3, Q(30), 0);
	silent(&c[1]);
	send(&c[0], ALL, 1, 0);
	got(&c[2], 1, 0);
	got(&c[3], 1, Q(30), 0);
	send(&c[0], ALL, 1, Q(PRIORITY), 0);
	got(&c[2], 1, 0);
	got(&c[3], 1, Q(PRIORITY | 30), 0);
	/* A tag with its number means the same. */
	send(&c[0], ALL, 1, Q(PRIORITY | 30), 0);
	got(&c[2], 1, 0);
	got(&c[3], 1, Q(PRIORITY | 30), 0);
	/* From trunk to trunk, and to an access port */
	send(&c[0], ALL, 1, Q(PRIORITY | 10), 0);
	got(&c[1], 1, 0);
	got(&c[3], 1, Q(PRIORITY | 10), 0);
	silent(&c[2]);
	/* Addresses are learned from tagged packets. */
	send(&c[1], 1, 2, 0);
	got(&c[0], 2, Q(10), 0);
	silent(&c[3]);
	/* Nobody else has this one. */
	send(&c[0], ALL, 1, Q(21), 0);
	silent(&c[1]);
	silent(&c[2]);
	silent(&c[3]);
	refused(c, 4, &c[0], Q(22), 0);
	refused(c, 4, &c[0], Q(4095), 0);
	refused(c, 4, &c[0], AD(10), 0);
	/* Without a native VLAN, each packet needs one. */
	refused(c, 4, &c[3], 0);
	refused(c, 4, &c[3], Q(PRIORITY), 0);
	leave_all(c, 4);
}

/* A packet whose first frame ends within or behind a tag */
static void send_cut(struct client *c, unsigned int at)
{
	struct tpacket4_desc d[2] = {
		{ .idx = NR, .len = at, .flags = TP4_PKT_CONT },
		{ .idx = NR + 1, .len = LEN + 4 - at },
	};
	__u8 packet[LEN + 4];
	unsigned int i;

	set_mac(packet, ALL);
	set_mac(packet + 6, 4);
	for (i = put_tags(packet, (const __u32[]){ Q(10), 0 }); i < sizeof(packet); i++)
		packet[i] = pattern(i - 18, 4);
	memcpy(tp4_frame(&c->area, NR), packet, at);
	memcpy(tp4_frame(&c->area, NR + 1), packet + at, sizeof(packet) - at);
	tp4_ring_send(&c->s.tx, d, 2);
	tp4_kick(&c->s, MSG_DONTWAIT);
	check(sent(c), "not sent");
}

/* The tag that a port removes must not uncover one that a station has chosen. */
void vlan_double_tags(void)
{
	struct client c[4];

	if (!join_all(c, 4))
		return;
	check(ctl("trunk ring1 10,20 native=10") && ctl("vlan ring2 10") &&
	      ctl("vlan ring3 20") && ctl("trunk ring4 10,20"), "%s", out);
	refused(c, 4, &c[1], Q(0), Q(20), 0);
	refused(c, 4, &c[1], Q(0), AD(20), 0);
	refused(c, 4, &c[1], Q(10), Q(20), 0);
	refused(c, 4, &c[1], AD(10), Q(20), 0);
	refused(c, 4, &c[0], Q(0), Q(20), 0);
	refused(c, 4, &c[0], AD(20), 0);
	/* Both native and access ports would remove this one. */
	send(&c[3], ALL, 4, Q(10), Q(20), 0);
	silent(&c[0]);
	silent(&c[1]);
	silent(&c[2]);
	check(counter(1, "out_drops") == 1 && counter(2, "out_drops") == 1, "%s",
	      out);
	send(&c[3], ALL, 4, Q(10), AD(20), 0);
	silent(&c[0]);
	silent(&c[1]);
	/* Where the outer one stays, so does the inner one. */
	send(&c[0], ALL, 1, Q(20), Q(PRIORITY | 7), 0);
	got(&c[3], 1, Q(20), Q(PRIORITY | 7), 0);
	silent(&c[2]);
	/* The tag may end where the frame does, but not behind it. */
	send_cut(&c[3], 18);
	got(&c[1], 4, 0);
	got(&c[0], 4, 0);
	send_cut(&c[3], 17);
	send_cut(&c[3], 14);
	silent(&c[0]);
	silent(&c[1]);
	check(counter(4, "in_vlan") == 2, "%s", out);
	leave_all(c, 4);
}

/* The metadata of the next packet, with the frame's data in buf */
static const struct tpacket4_meta *next_meta(struct client *c, unsigned int *len)
{
	static struct tpacket4_meta m;
	const struct tpacket4_desc *d;
	const struct tpacket4_meta *from;

	*len = 0;
	if (tp4_wait(&c->s, POLLIN, 2000) != POLLIN || !tp4_ring_peek(&c->s.rx, 1))
		return NULL;
	d = tp4_ring_at(&c->s.rx, 0);
	from = tp4_meta(&c->area, d);
	if (from)
		m = *from;
	*len = receive(c);
	return from ? &m : NULL;
}

/* Check a tagged segment, and remove its tag, which check_csum() does not expect. */
static bool right_segment(unsigned int n, __u16 tci)
{
	if (buf[12] != 0x81 || buf[13] || (buf[14] << 8 | buf[15]) != tci)
		return false;
	memmove(buf + 12, buf + 16, n - 16);
	return !check_csum(buf, n - 4) && (buf[16] << 8 | buf[17]) == (int)n - 18;
}

/* Put a tag into the packet of make_tcp(). */
static void add_tag(struct client *c, struct tpacket4_desc *d, __u16 tci)
{
	__u8 *frame = tp4_frame(&c->area, NR), *p = frame + 64;
	struct tpacket4_meta *m = (struct tpacket4_meta *)frame;

	memmove(p + 16, p + 12, d->len - 12);
	p[12] = 0x81;
	p[13] = 0;
	p[14] = tci >> 8;
	p[15] = tci;
	d->len += 4;
	m->csum_start += 4;
}

/* Metadata follows the tag in the packet, which alone says what VLAN it has. */
void vlan_metadata(void)
{
	const struct tp4_options meta = { .meta = 1 };
	const struct tpacket4_meta *got_meta;
	struct tpacket4_meta *m;
	struct tpacket4_desc d;
	struct client c[5];
	unsigned int i, n;

	start(NULL, NULL);
	if (join_opt(&c[0], meta) < 0 || join_opt(&c[1], meta) < 0 || !join(&c[2]) ||
	    !join(&c[3]) || join_opt(&c[4], meta) < 0)
		return;
	check(ctl("vlan ring1 10") && ctl("trunk ring2 10,20") &&
	      ctl("trunk ring3 10") && ctl("vlan ring4 10") && ctl("vlan ring5 20"),
	      "%s", out);
	/* Segments to be, with a lie */
	make_tcp(&c[0], &d, 1954);
	m = (struct tpacket4_meta *)tp4_frame(&c[0].area, NR);
	tp4_meta_gso(m, 1, 300);
	m->flags |= TP4_META_RX_VLAN;
	m->vlan_tci = 20;
	m->vlan_tpid = 0x8100;
	check(!post_one(&c[0], d), "not sent");
	got_meta = next_meta(&c[1], &n);
	check(got_meta && n == 1958 && (got_meta->flags & TP4_META_GSO) &&
	      got_meta->gso_size == 300 && got_meta->csum_start == 38 &&
	      got_meta->wire_len == 1958 && (got_meta->flags & TP4_META_RX_VLAN) &&
	      got_meta->vlan_tci == 10 && got_meta->vlan_tpid == 0x8100 &&
	      buf[12] == 0x81 && buf[15] == 10, "%u bytes", n);
	for (i = 0; (n = receive_in(&c[2], i < 7 ? 2000 : 0)); i++)
		check(right_segment(n, 10), "segment %u of %u bytes", i, n);
	check(i == 7, "%u segments", i);
	for (i = 0; (n = receive_in(&c[3], i < 7 ? 2000 : 0)); i++)
		check(!check_csum(buf, n), "segment %u of %u bytes", i, n);
	check(i == 7, "%u segments", i);
	silent(&c[4]);
	/* The other way, with the same lie */
	make_tcp(&c[1], &d, 1954);
	m = (struct tpacket4_meta *)tp4_frame(&c[1].area, NR);
	tp4_meta_gso(m, 1, 300);
	m->flags |= TP4_META_RX_VLAN;
	m->vlan_tci = 20;
	add_tag(&c[1], &d, PRIORITY | 10);
	check(!post_one(&c[1], d), "not sent");
	got_meta = next_meta(&c[0], &n);
	check(got_meta && n == 1954 && (got_meta->flags & TP4_META_GSO) &&
	      got_meta->csum_start == 34 && !got_meta->vlan_tci &&
	      !(got_meta->flags & TP4_META_RX_VLAN) && buf[12] == 8, "%u bytes", n);
	for (i = 0; (n = receive_in(&c[2], i < 7 ? 2000 : 0)); i++)
		check(right_segment(n, PRIORITY | 10), "segment %u of %u bytes", i, n);
	check(i == 7, "%u segments", i);
	check(drain(&c[3]) == 7, "not 7 segments");
	silent(&c[4]);
	/* What it points to must not be in the header. */
	make_tcp(&c[1], &d, 1000);
	m = (struct tpacket4_meta *)tp4_frame(&c[1].area, NR);
	add_tag(&c[1], &d, 10);
	m->csum_start = 2;
	check(!post_one(&c[1], d), "not sent");
	make_tcp(&c[0], &d, 1000);
	m = (struct tpacket4_meta *)tp4_frame(&c[0].area, NR);
	m->flags |= TP4_META_TUNNEL;
	m->inner_start = 13;
	check(!post_one(&c[0], d), "not sent");
	check(counter(1, "in_errors") == 1, "%s", out);
	check(counter(2, "in_errors") == 1, "%s", out);
	silent(&c[3]);
	leave_all(c, 5);
}

/* A packet of more segments than there are in a turn */
void vlan_turns(void)
{
	enum { SEGMENTS = (32 * (SIZE - 64) - 54 + 47) / 48 };
	unsigned int n, i;
	struct client c[2];

	start(NULL, NULL);
	check(ctl("quota each slots=1M bytes=1G"), "%s", out);
	if (join_opt(&c[0], (struct tp4_options){ .meta = 1 }) < 0 ||
	    join_opt(&c[1], (struct tp4_options){ .rx_nr = 16 * NR }) < 0)
		return;
	check(ctl("vlan ring1 10") && ctl("trunk ring2 10"), "%s", out);
	post_gso(&c[0], 2, 48);
	check(sent(&c[0]), "not sent");
	for (i = 0; (n = receive_in(&c[1], i < SEGMENTS ? 2000 : 0)); i++)
		if (!check(right_segment(n, 10), "segment %u of %u bytes", i, n))
			break;
	check(i == SEGMENTS, "%u of %u segments", i, SEGMENTS);
	leave_all(c, 2);
}

static bool rewriting;

/* Write the number of a VLAN, or of a protocol, where the type is. */
static void *rewrite(void *arg)
{
	__u8 *type = arg;

	while (__atomic_load_n(&rewriting, __ATOMIC_RELAXED)) {
		__atomic_store_n(type, 0x81, __ATOMIC_RELAXED);
		__atomic_store_n(type, TYPE >> 8, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* A program changes the type while the switch looks at the packet. */
void vlan_rewritten(void)
{
	enum { PACKETS = 20000 };
	struct tpacket4_desc d = { .idx = NR, .len = 60 };
	unsigned int i, received = 0, tagged = 0;
	struct client c[3];
	pthread_t thread;
	__u8 *p;

	if (!join_all(c, 3))
		return;
	check(ctl("vlan ring1 10") && ctl("vlan ring2 10") &&
	      ctl("trunk ring3 10,20 native=10"), "%s", out);
	p = tp4_frame(&c[0].area, NR);
	set_mac(p, ALL);
	set_mac(p + 6, 1);
	/* As a tag, it is that of VLAN 20. */
	memset(p + 12, 0, 48);
	p[12] = TYPE >> 8;
	p[15] = 20;
	rewriting = true;
	if (pthread_create(&thread, NULL, rewrite, p + 12))
		exit(1);
	for (i = 0; i < PACKETS; i++) {
		while (!tp4_ring_free(&c[0].s.tx))
			if (!check(sent(&c[0]), "stuck"))
				break;
		tp4_ring_send(&c[0].s.tx, &d, 1);
		if (tp4_need_kick(&c[0].s))
			tp4_kick(&c[0].s, MSG_DONTWAIT);
		while (tp4_ring_peek(&c[1].s.rx, 1) || tp4_ring_peek(&c[2].s.rx, 1)) {
			unsigned int from = tp4_ring_peek(&c[1].s.rx, 1) ? 1 : 2;

			receive(&c[from]);
			received++;
			tagged += buf[12] == 0x81;
		}
	}
	check(sent(&c[0]), "stuck");
	__atomic_store_n(&rewriting, false, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	check(received && !tagged, "%u of %u tagged", tagged, received);
	leave_all(c, 3);
}

void vlan_commands(void)
{
	static const char *const wrong[] = {
		"vlan ring1", "vlan ring1 0", "vlan ring1 4095", "vlan ring1 10,11",
		"vlan ring1 10 20", "vlan ring1 -1", "trunk ring1", "trunk ring1 0",
		"trunk ring1 10-", "trunk ring1 10-9", "trunk ring1 10,,11",
		"trunk ring1 1-4095", "trunk ring1 10 native=", "trunk ring1 10 native=0",
		"trunk ring1 10 20", "trunk ring1 10 native=10 20", "trunk ring1 off",
		"trunk ring1 native=10", "vlan ring9 10", "trunk ring9 10",
	};
	struct client c[2];
	unsigned int i;

	if (!join_all(c, 2))
		return;
	check(ctl("trunk ring1 4094,20-22,10 native=21"), "%s", out);
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		check(!ctl("%s", wrong[i]), "%s", wrong[i]);
	check(ctl("list") && strstr(out, ", trunk 10,20-22,4094, native 21\n"), "%s",
	      out);
	check(ctl("vlan ring2 22") && ctl("list") && strstr(out, ", VLAN 22\n"), "%s",
	      out);
	/* An address is of a VLAN. */
	send(&c[1], ALL, 2, 0);
	got(&c[0], 2, Q(22), 0);
	check(ctl("macs") && strstr(out, "02:00:00:00:00:02 ring2 ") &&
	      strstr(out, " vlan 22\n"), "%s", out);
	check(ctl("fix ring1 02:00:00:00:00:07 22") && ctl("macs") &&
	      strstr(out, "02:00:00:00:00:07 ring1 fixed vlan 22\n"), "%s", out);
	check(!ctl("fix ring1 02:00:00:00:00:07 23") &&
	      !ctl("fix ring1 02:00:00:00:00:07 4095") &&
	      !ctl("unfix 02:00:00:00:00:07 21"), "%s", out);
	check(ctl("fix ring1 02:00:00:00:00:07") && ctl("macs") &&
	      strstr(out, "fixed vlan 21\n"), "%s", out);
	/* Where it is fixed, it cannot come from another port. */
	send(&c[1], ALL, 7, 0);
	silent(&c[0]);
	check(counter(2, "in_spoofed") == 1, "%s", out);
	check(ctl("unfix 02:00:00:00:00:07 22"), "%s", out);
	send(&c[1], ALL, 7, 0);
	got(&c[0], 7, Q(22), 0);
	check(ctl("unfix 02:00:00:00:00:07") && !ctl("unfix 02:00:00:00:00:07"), "%s",
	      out);
	/* The same again changes nothing; another VLAN has other addresses. */
	check(ctl("vlan ring2 22") && ctl("macs") && strstr(out, "ring2"), "%s", out);
	check(ctl("vlan ring2 21") && ctl("macs") && !strstr(out, "ring2"), "%s", out);
	send(&c[1], ALL, 2, 0);
	got(&c[0], 2, 0);
	check(ctl("vlan ring1 off") && ctl("vlan ring2 off"), "%s", out);
	check(ctl("list") && !strstr(out, "VLAN") && !strstr(out, "trunk"), "%s", out);
	send(&c[1], ALL, 2, Q(5), 0);
	got(&c[0], 2, Q(5), 0);
	leave_all(c, 2);
}
