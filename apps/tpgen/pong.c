// SPDX-License-Identifier: GPL-2.0
/*
 * tpgen: pong
 *
 * Sends pings back in the frames that they came in, with addresses and ports
 * swapped, which leaves the checksums as they are.
 */
#include <netinet/in.h>
#include <stdlib.h>

#include "echo.h"
#include "stream.h"

#define CONT		(1u << 31)	/* the packet goes on in another frame */

/**
 * struct pong - what answers
 * @w: thread
 * @len: bytes in each frame that is sent
 * @cont: the next slot continues a packet
 * @answer: of a packet that is answered
 * @answered: number of answers posted
 */
struct pong {
	struct worker *w;
	__u32 *len;
	bool cont, answer;
	__u64 answered;
};

static void swap(__u8 *a, __u8 *b, unsigned int len)
{
	__u8 tmp[16];

	memcpy(tmp, a, len);
	memcpy(a, b, len);
	memcpy(b, tmp, len);
}

/* An echo request becomes a reply: its type is smaller by 8, or larger by 1. */
static void turn_icmp(__u8 *icmp, bool v6)
{
	__u32 sum = icmp[2] << 8 | icmp[3];

	if (icmp[0] != (v6 ? 128 : 8))
		return;
	icmp[0] = v6 ? 129 : 0;
	/* RFC 1624: the complement of the sum moves the other way. */
	sum += v6 ? 0xffff - 0x100 : 0x800;
	put16(icmp + 2, fold(sum));
}

/* Turn round a packet with a signature at @at. */
static void turn(__u8 *data, unsigned int at)
{
	__u8 *ip = data + 2 * ETH_ALEN, *l4, protocol;
	bool v6;

	swap(data, data + ETH_ALEN, ETH_ALEN);
	while (ip[0] == 0x81 || (ip[0] == 0x88 && ip[1] == 0xa8))
		ip += 4;
	v6 = ip[0] == 0x86;
	ip += 2;
	protocol = v6 ? ip[6] : ip[9];
	if (v6)
		swap(ip + 8, ip + 24, 16);
	else
		swap(ip + 12, ip + 16, 4);
	l4 = v6 ? ip + 40 : ip + (ip[0] & 0xf) * 4;
	if (l4 + 8 > data + at)
		return;
	if (protocol == IPPROTO_UDP || protocol == IPPROTO_TCP)
		swap(l4, l4 + 2, 2);
	else if (protocol == (v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP))
		turn_icmp(l4, v6);
}

static void post_answer(struct pong *p, const struct tpacket4_desc *d,
			struct tpacket4_desc *answer)
{
	const __u8 cont = d->flags & TP4_PKT_CONT;

	*answer = *d;
	answer->flags = cont;
	p->len[d->idx] = d->len | (cont ? CONT : 0);
	p->answered += !cont;
}

/* Answer the pings in the n slots, and post the frames of others again. */
static bool receive(struct pong *p, unsigned int n)
{
	struct tpacket4_desc answers[BATCH];
	unsigned int i, at, nr_answers = 0, nr_others = 0, packets = 0;
	struct worker *w = p->w;
	__u64 others[BATCH], bytes = 0;
	int e = tp4_ring_error(&w->sock.rx, n);

	for (i = 0; i < n && !e; i++) {
		const struct tpacket4_desc *d = tp4_ring_at(&w->sock.rx, i);

		if (!p->cont) {
			at = signature_find(tp4_data(&w->area, d), d->len);
			p->answer = at && (!w->count || p->answered < w->count);
			if (p->answer)
				turn(tp4_data(&w->area, d), at);
			else
				count_up(&w->n.other, 1);
		}
		p->cont = d->flags & TP4_PKT_CONT;
		packets += !p->cont;
		bytes += d->len;
		if (p->answer)
			post_answer(p, d, &answers[nr_answers++]);
		else
			others[nr_others++] = d->idx;
	}
	if (e) {
		worker_error(w, TP4_IN_RX, e);
		return false;
	}
	count_up(&w->n.rx_packets, packets);
	count_up(&w->n.rx_bytes, bytes);
	tp4_ring_take(&w->sock.rx, n);
	tp4_ring_send(&w->sock.tx, answers, nr_answers);
	tp4_ring_post(&w->sock.rx, others, nr_others);
	return true;
}

/* Count the answers that were sent; returns the number of their frames. */
static unsigned int sent(struct pong *p)
{
	struct worker *w = p->w;
	unsigned int i, n = tp4_ring_peek(&w->sock.tx, w->cfg->ring);
	__u64 packets = 0, bytes = 0;

	for (i = 0; i < n; i++) {
		const struct tpacket4_desc *d = tp4_ring_at(&w->sock.tx, i);
		__u32 len = p->len[d->idx];

		if (!d->error) {
			packets += !(len & CONT);
			bytes += len & ~CONT;
		} else if (!(len & CONT)) {
			refuse_packet(w, d->error);
		}
	}
	count_up(&w->n.tx_packets, packets);
	count_up(&w->n.tx_bytes, bytes);
	return n;
}

static void loop(struct pong *p)
{
	struct worker *w = p->w;
	struct tp4_backoff b = { 0 };
	unsigned int room, n, back;
	__u64 until;

	while (!stopped() && (!w->count || w->n.tx_packets < w->count)) {
		room = tp4_ring_free(&w->sock.tx);
		n = tp4_ring_peek(&w->sock.rx, room < BATCH ? room : BATCH);
		if (n) {
			w->end = clock_ns(CLOCK_MONOTONIC);
			if (!w->begin)
				w->begin = w->end;
			if (!receive(p, n))
				return;
		}
		if (!echo_kick(w))
			return;
		back = sent(p);
		if (!refuse_check(w, UINT32_MAX))
			return;
		if (back)
			tp4_ring_refill(&w->sock.tx, &w->sock.rx, back);
		if ((n || back) && !echo_recycle(w, 0))
			return;
		if (n || back) {
			b.pauses = 0;
			continue;
		}
		/* What is being sent comes back soon, and is posted on Rx. */
		until = clock_ns(CLOCK_MONOTONIC) +
			(tp4_ring_pending(&w->sock.tx) ? 100000 : NSEC);
		if (!echo_wait(w, &b, until))
			return;
	}
}

/**
 * pong_run - send pings back
 * @w: thread, whose port is open
 */
void pong_run(struct worker *w)
{
	struct pong p = { .w = w };

	p.len = calloc(w->area.nr_frames, sizeof(*p.len));
	if (p.len)
		loop(&p);
	else
		worker_fail(w, "no memory");
	free(p.len);
}
