// SPDX-License-Identifier: GPL-2.0
/*
 * tpgen: ping and pong
 *
 * A ping is a numbered and stamped packet. A pong sends it back, with addresses
 * and ports swapped, which leaves the checksums as they are.
 */
#include <netinet/in.h>
#include <stdlib.h>

#include "stream.h"

#define WAIT_MS		100
#define TIMEOUT_NS	NSEC		/* for the answer to a ping */
#define LAST_NS		(NSEC / 5)	/* for the last ones at the end */
#define OFFSET		TP4_ZC_HEADROOM

/* Number of slots that were returned on Tx; their errors are counted. */
static unsigned int tx_returned(struct worker *w, unsigned int max)
{
	unsigned int i, n = tp4_ring_peek(&w->sock.tx, max), sent = 0;
	__u64 bytes = 0;

	for (i = 0; i < n; i++) {
		const struct tpacket4_desc *d = tp4_ring_at(&w->sock.tx, i);

		if (d->error) {
			if (!w->refusal)
				w->refusal = d->error;
			count_up(&w->n.tx_refused, 1);
		} else {
			sent++;
			bytes += d->len;
		}
	}
	count_up(&w->n.tx_packets, sent);
	count_up(&w->n.tx_bytes, bytes);
	return n;
}

static bool kick(struct worker *w)
{
	int e = 0;

	if (tp4_ring_pending(&w->sock.tx))
		e = port_kick(w);
	if (e)
		worker_fail(w, "send: %s", strerror(-e));
	return !e;
}

/* Post frames again that were received, and let the driver have them. */
static bool recycle(struct worker *w, unsigned int n)
{
	int e = 0;

	tp4_ring_recycle(&w->sock.rx, n);
	if (tp4_rx_need_kick(&w->sock))
		e = tp4_rx_kick(&w->sock);
	if (e)
		worker_fail(w, "receive: %s", strerror(-e));
	return !e;
}

/* Sleep until something is received, but not past a time. */
static bool wait_rx(struct worker *w, struct tp4_backoff *b, __u64 until)
{
	__u64 now;
	int e, ms = WAIT_MS;

	tp4_ring_flush(&w->sock.rx);
	if (!tp4_backoff(b) || w->cfg->spin)
		return true;
	now = clock_ns(CLOCK_MONOTONIC);
	if (until <= now)
		return true;
	if ((until - now) / 1000000 < WAIT_MS)
		ms = (until - now) / 1000000;
	if (!ms) {
		pace_sleep(now, until, false);
		return true;
	}
	e = tp4_wait(&w->sock, POLLIN, ms);
	if (e < 0)
		worker_fail(w, "receive: %s", strerror(-e));
	return e >= 0;
}

/* --- ping ---------------------------------------------------------------- */

/**
 * struct ping - sender of pings
 * @w: thread
 * @v: next ping
 * @pace: when it is due
 * @key: that of the signature of its pings
 * @frames: frames for pings
 * @mem: memory of @frames
 * @sent: pings posted
 * @answers: of them that came back
 * @given_up: of them that are not waited for any more
 * @last: time when the last one was posted
 */
struct ping {
	struct worker *w;
	struct vary v;
	struct pace pace;
	__u64 key;
	struct tp4_pool frames;
	__u64 *mem;
	__u64 sent, answers, given_up;
	__u64 last;
};

static bool ping_init(struct ping *p, struct worker *w)
{
	const unsigned int nr = w->area.nr_frames - w->rx_frames;
	unsigned int i;

	memset(p, 0, sizeof(*p));
	p->w = w;
	vary_init(&p->v, w->cfg, w->nr);
	pace_init(&p->pace, w->cfg, w->speed, w->nr, w->cfg->nr_threads);
	p->key = signature_key(p->v.head + p->v.payload);
	p->mem = calloc(nr, sizeof(*p->mem));
	if (!p->mem) {
		worker_fail(w, "no memory");
		return false;
	}
	tp4_pool_init(&p->frames, p->mem, w->rx_frames, nr);
	for (i = 0; i < nr; i++)
		memcpy(tp4_frame(&w->area, w->rx_frames + i) + OFFSET,
		       p->v.head, p->v.len);
	return true;
}

/* Without a rate, the next ping is due when the last one was answered. */
static bool ping_due(const struct ping *p, __u64 now)
{
	if (p->w->count && p->sent == p->w->count)
		return false;
	if (p->pace.limited)
		return pace_next(&p->pace) <= now;
	return p->sent == p->answers + p->given_up;
}

static void ping_send(struct ping *p, __u64 now)
{
	struct tpacket4_desc d = { .offset = OFFSET };
	__u64 idx;

	if (!tp4_pool_get(&p->frames, &idx, 1))
		return;		/* the device is full */
	vary_stamp(&p->v, clock_ns(CLOCK_MONOTONIC));
	d.idx = idx;
	d.len = p->v.size;
	vary_write(&p->v, tp4_data(&p->w->area, &d));
	vary_next(&p->v);
	tp4_ring_send(&p->w->sock.tx, &d, 1);
	pace_sent(&p->pace, 1, d.len);
	p->sent++;
	p->last = now;
}

/* Count the answers to this thread's pings. */
static bool ping_receive(struct ping *p, unsigned int n)
{
	__u64 now = clock_ns(CLOCK_MONOTONIC), bytes = 0;
	struct worker *w = p->w;
	unsigned int i, at, packets = 0, other = 0;
	int e = tp4_ring_error(&w->sock.rx, n);

	if (e) {
		worker_fail(w, "receive: %s", strerror(-e));
		return false;
	}
	for (i = 0; i < n; i++) {
		const struct tpacket4_desc *d = tp4_ring_at(&w->sock.rx, i);
		const __u8 *data = tp4_data(&w->area, d);
		struct stream *s;

		packets += !(d->flags & TP4_PKT_CONT);
		bytes += d->len;
		at = signature_find(data, d->len);
		if (!at || signature_key(data + at) != p->key) {
			other++;
			continue;
		}
		s = stream_find(w->streams, p->key);
		if (s) {
			stream_seen(s, data + at, now);
			p->answers = s->received;
			/* One that was given up may come after all. */
			if (p->answers + p->given_up > p->sent)
				p->given_up = p->sent - p->answers;
		}
	}
	count_up(&w->n.rx_packets, packets);
	count_up(&w->n.rx_bytes, bytes);
	count_up(&w->n.other, other);
	return recycle(w, n);
}

/* Give up on pings that have had no answer for too long. */
static void ping_timeout(struct ping *p, __u64 now)
{
	__u64 open = p->sent - p->answers - p->given_up;

	if ((__s64)open <= 0 || now - p->last < TIMEOUT_NS)
		return;
	p->given_up += open;
	count_up(&p->w->n.timeouts, open);
}

static void ping_loop(struct ping *p)
{
	struct worker *w = p->w;
	struct tp4_backoff b = { 0 };
	unsigned int n;
	__u64 now, until;

	while (!stopped()) {
		now = clock_ns(CLOCK_MONOTONIC);
		if (ping_due(p, now))
			ping_send(p, now);
		if (!kick(w))
			return;
		n = tx_returned(w, w->cfg->ring);
		if (n)
			tp4_pool_put(&p->frames, &w->sock.tx, n);
		n = tp4_ring_peek(&w->sock.rx, BATCH);
		if (n) {
			b.pauses = 0;
			if (!ping_receive(p, n))
				return;
			continue;
		}
		ping_timeout(p, now);
		if (w->count && p->sent == w->count &&
		    p->sent <= p->answers + p->given_up)
			return;
		until = p->last + TIMEOUT_NS;
		if (p->pace.limited && pace_next(&p->pace) < until &&
		    (!w->count || p->sent < w->count))
			until = pace_next(&p->pace);
		if (!wait_rx(w, &b, until))
			return;
	}
}

/* Ctrl-C: pings that were sent may still be answered. */
static void ping_finish(struct ping *p)
{
	const __u64 end = clock_ns(CLOCK_MONOTONIC) + LAST_NS;
	struct tp4_backoff b = { 0 };
	unsigned int n;
	__u64 open;

	while (!*p->w->error && !impatient() &&
	       p->sent > p->answers + p->given_up &&
	       clock_ns(CLOCK_MONOTONIC) < end) {
		n = tp4_ring_peek(&p->w->sock.rx, BATCH);
		if (n ? !ping_receive(p, n) : !wait_rx(p->w, &b, end))
			return;
	}
	open = p->sent - p->answers - p->given_up;
	if ((__s64)open > 0)
		count_up(&p->w->n.timeouts, open);
}

/**
 * ping_run - send pings and measure their round trips
 * @w: thread, whose port is open
 */
void ping_run(struct worker *w)
{
	struct ping *p = aligned_alloc(64, (sizeof(*p) + 63) & ~63ul);

	if (!p) {
		worker_fail(w, "no memory");
		return;
	}
	if (ping_init(p, w)) {
		w->begin = clock_ns(CLOCK_MONOTONIC);
		pace_start(&p->pace, w->begin);
		ping_loop(p);
		w->end = clock_ns(CLOCK_MONOTONIC);
		ping_finish(p);
		free(p->mem);
	}
	free(p);
}

/* --- pong ---------------------------------------------------------------- */

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

/**
 * struct pong - what answers
 * @w: thread
 * @cont: the next slot continues a packet
 * @answer: of a packet that is answered
 */
struct pong {
	struct worker *w;
	bool cont, answer;
};

/* Answer the pings in the n slots, and post the frames of others again. */
static bool pong_receive(struct pong *p, unsigned int n)
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
			p->answer = at;
			if (at)
				turn(tp4_data(&w->area, d), at);
			else
				count_up(&w->n.other, 1);
		}
		p->cont = d->flags & TP4_PKT_CONT;
		packets += !p->cont;
		bytes += d->len;
		if (p->answer) {
			answers[nr_answers] = *d;
			answers[nr_answers++].flags = d->flags & TP4_PKT_CONT;
		} else {
			others[nr_others++] = d->idx;
		}
	}
	if (e) {
		worker_fail(w, "receive: %s", strerror(-e));
		return false;
	}
	count_up(&w->n.rx_packets, packets);
	count_up(&w->n.rx_bytes, bytes);
	tp4_ring_take(&w->sock.rx, n);
	tp4_ring_send(&w->sock.tx, answers, nr_answers);
	tp4_ring_post(&w->sock.rx, others, nr_others);
	return true;
}

static void pong_loop(struct pong *p)
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
			if (!pong_receive(p, n))
				return;
		}
		if (!kick(w))
			return;
		back = tx_returned(w, w->cfg->ring);
		if (back)
			tp4_ring_refill(&w->sock.tx, &w->sock.rx, back);
		if ((n || back) && !recycle(w, 0))
			return;
		if (n || back) {
			b.pauses = 0;
			continue;
		}
		/* What is being sent comes back soon, and is posted on Rx. */
		until = clock_ns(CLOCK_MONOTONIC) +
			(tp4_ring_pending(&w->sock.tx) ? 100000 : NSEC);
		if (!wait_rx(w, &b, until))
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

	pong_loop(&p);
}
