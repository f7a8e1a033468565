// SPDX-License-Identifier: GPL-2.0
/*
 * tpgen: ping
 *
 * A ping is a numbered and stamped packet, which a pong sends back.
 */
#include <stdlib.h>

#include "echo.h"
#include "slots.h"
#include "stream.h"

#define TIMEOUT_NS	NSEC		/* for the answer to a ping */
#define LAST_NS		(NSEC / 5)	/* for the last ones at the end */
#define OFFSET		TP4_ZC_HEADROOM

/**
 * struct ping - sender of pings
 * @w: thread
 * @v: next ping
 * @pace: when it is due
 * @key: that of the signature of its pings
 * @slots: frames for pings
 * @cont: the next slot of the Rx ring continues a packet
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
	struct slots slots;
	bool cont;
	__u64 sent, answers, given_up;
	__u64 last;
};

static bool ping_init(struct ping *p, struct worker *w)
{
	const unsigned int room = w->area.frame_size - OFFSET;
	const unsigned int nr = w->area.nr_frames - w->rx_frames;
	unsigned int i, frames;

	memset(p, 0, sizeof(*p));
	p->w = w;
	vary_init(&p->v, w->cfg, w->nr);
	pace_init(&p->pace, w->cfg, w->speed, w->nr, w->cfg->nr_threads);
	p->key = signature_key(p->v.head + p->v.payload);
	frames = (vary_max_size(&w->cfg->pkt) + room - 1) / room;
	if (slots_init(&p->slots, w, frames, nr / frames)) {
		worker_fail(w, "no memory");
		return false;
	}
	for (i = 0; i < p->slots.nr; i++)
		memcpy(slots_data(&p->slots, i), p->v.head, p->v.len);
	if (w->cfg->pkt.fill)
		slots_fill(&p->slots, &w->cfg->pkt, p->v.len);
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
	struct tpacket4_desc d[TX_FRAMES];
	unsigned int slot, nr;

	if (!p->slots.nr_free)
		return;		/* the device is full */
	slot = slots_next(&p->slots);
	vary_stamp(&p->v, clock_ns(CLOCK_MONOTONIC));
	vary_write(&p->v, slots_data(&p->slots, slot));
	nr = slots_describe(&p->slots, slot, p->v.size, 0, d);
	slots_send(&p->slots, slot, d, nr);
	pace_sent(&p->pace, 1, p->v.size);
	vary_next(&p->v);
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
		worker_error(w, TP4_IN_RX, e);
		return false;
	}
	for (i = 0; i < n; i++) {
		const struct tpacket4_desc *d = tp4_ring_at(&w->sock.rx, i);
		const __u8 *data = tp4_data(&w->area, d);
		struct stream *s;
		bool first;

		first = !p->cont;
		p->cont = d->flags & TP4_PKT_CONT;
		packets += first;
		bytes += d->len;
		if (!first)
			continue;
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
	return echo_recycle(w, n);
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
		if (!echo_kick(w))
			return;
		slots_reap(&p->slots);
		if (!refuse_check(w, vary_hopeless(&p->v)))
			return;
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
		if (!echo_wait(w, &b, until))
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
		if (n ? !ping_receive(p, n) : !echo_wait(p->w, &b, end))
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
		w->span = pace_span(&p->pace);
		ping_finish(p);
	}
	slots_exit(&p->slots);
	free(p);
}
