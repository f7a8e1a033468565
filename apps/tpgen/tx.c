// SPDX-License-Identifier: GPL-2.0
/*
 * tpgen: sending
 *
 * Frames keep their packets. If all packets that differ fit into the frames,
 * nothing is written to them after the start.
 */
#include <stdlib.h>

#include "slots.h"
#include "vary.h"

#define OFFSET		TP4_ZC_HEADROOM	/* of packets in their frames */
#define DRAIN_NS	NSEC		/* wait for the last packets */
#define RETRY_NS	1000000

/**
 * struct tx - sender
 * @w: thread
 * @v: next packet
 * @pace: when it is due
 * @slots: packets and their frames, unless @in_place
 * @nr: number of packets in the frames
 * @write: packets are written to their frames
 * @in_place: each packet is one frame of the same size, which can stay in its
 *            slot of the ring
 * @fresh: frames that were never posted (@in_place)
 * @idle: slots of the ring that were returned, and are still to be taken
 *        (@in_place)
 * @size: size of the packet that each frame has (not @in_place)
 * @posted: number of packets posted so far
 * @bytes: and of their bytes
 * @dump: those that are printed
 */
struct tx {
	struct worker *w;
	struct vary v;
	struct pace pace;
	struct slots slots;
	unsigned int nr;
	bool write;
	bool in_place;
	unsigned int fresh, idle;
	__u32 *size;
	__u64 posted, bytes;
	struct dump dump;
};

/* --- frames -------------------------------------------------------------- */

/* How many packets the frames hold, so that they repeat if they can */
static unsigned int count_packets(struct tx *t, unsigned int ring,
				  unsigned int max_frames)
{
	unsigned int n = ring / max_frames;
	__u64 cycle = vary_cycle(&t->v);

	t->write = t->w->cfg->launch || !cycle || cycle > n;
	if (t->write)
		return n;
	n -= n % cycle;
	/* Slots of the ring that move in small steps are slow. */
	while (t->in_place && n != ring && ring - n < BATCH && n > cycle)
		n -= cycle;
	return n;
}

static void fill_frames(struct tx *t)
{
	const struct fill *fill = t->w->cfg->pkt.fill;
	unsigned int i;
	__u8 *p;

	if (fill && !t->in_place)
		slots_fill(&t->slots, &t->w->cfg->pkt, t->v.len);
	for (i = 0; i < t->nr; i++) {
		p = tp4_frame(&t->w->area, i) + OFFSET;
		if (fill && t->in_place)
			memcpy(p + t->v.len, fill->bytes, t->v.size - t->v.len);
		memcpy(p, t->v.head, t->v.len);
		if (t->size)
			t->size[i] = t->v.size;
		if (!t->write)
			vary_next(&t->v);
	}
}

static bool tx_init(struct tx *t, struct worker *w)
{
	const unsigned int ring = w->sock.tx.q.ring_mask + 1;
	const unsigned int room = w->area.frame_size - OFFSET;
	const struct config *cfg = w->cfg;
	unsigned int max_frames = cfg->pkt.frames;

	memset(t, 0, sizeof(*t));
	t->w = w;
	vary_init(&t->v, cfg, w->nr);
	if (!max_frames)
		max_frames = (vary_max_size(&cfg->pkt) + room - 1) / room;
	t->in_place = max_frames == 1 && !t->v.has_sizes && !cfg->launch &&
		      !cfg->dump;
	t->nr = count_packets(t, ring, max_frames);
	if (t->in_place) {
		t->fresh = t->nr;
	} else {
		t->size = calloc(t->nr, sizeof(*t->size));
		if (!t->size || slots_init(&t->slots, w, max_frames, t->nr)) {
			worker_fail(w, "no memory");
			return false;
		}
	}
	fill_frames(t);
	return true;
}

static void tx_exit(struct tx *t)
{
	slots_exit(&t->slots);
	free(t->size);
}

/* --- posting ------------------------------------------------------------- */

static unsigned int available(const struct tx *t)
{
	return t->in_place ? t->fresh + t->idle : t->slots.nr_free;
}

/* Packets in frames that were never posted */
static void post_fresh(struct tx *t, unsigned int n)
{
	struct tpacket4_desc d[BATCH];
	unsigned int i;

	for (i = 0; i < n; i++) {
		d[i].idx = t->nr - t->fresh--;
		d[i].len = t->v.size;
		d[i].offset = OFFSET;
		d[i].flags = 0;
		if (t->write) {
			vary_write(&t->v, tp4_data(&t->w->area, &d[i]));
			vary_next(&t->v);
		}
	}
	tp4_ring_send(&t->w->sock.tx, d, n);
}

/* Write packets that differ in one field, as far as they do; returns how many. */
static unsigned int write_run(struct tx *t, const struct tp4_ring *ring,
			      const struct tp4_area *area, unsigned int at,
			      unsigned int n)
{
	struct vary *v = &t->v;

	n = vary_run_length(v, n);
	switch (n ? v->words : 0) {
	case 0:
		break;
	case 1:
		vary_run(v, ring, area, OFFSET, at, n, 1);
		break;
	case 2:
		vary_run(v, ring, area, OFFSET, at, n, 2);
		break;
	case 3:
		vary_run(v, ring, area, OFFSET, at, n, 3);
		break;
	case 4:
		vary_run(v, ring, area, OFFSET, at, n, 4);
		break;
	case 5:
		vary_run(v, ring, area, OFFSET, at, n, 5);
		break;
	default:
		vary_run(v, ring, area, OFFSET, at, n, v->words);
	}
	return n;
}

static void write_again(struct tx *t, unsigned int n)
{
	/* Copies, which no store to a packet makes invalid */
	const struct tp4_ring ring = t->w->sock.tx;
	const struct tp4_area area = t->w->area;
	unsigned int at = 0;

	for (;;) {
		at += write_run(t, &ring, &area, at, n - at);
		if (at == n)
			return;
		vary_write(&t->v, tp4_frame(&area, tp4_ring_at(&ring, at)->idx) +
			   OFFSET);
		vary_next(&t->v);
		at++;
	}
}

/* Packets in slots that were returned */
static void post_again(struct tx *t, unsigned int n)
{
	if (t->write)
		write_again(t, n);
	tp4_ring_resend(&t->w->sock.tx, n, t->v.size, OFFSET);
	t->idle -= n;
}

static void post_in_place(struct tx *t, unsigned int n)
{
	unsigned int fresh = n < t->fresh ? n : t->fresh;

	if (fresh)
		post_fresh(t, fresh);
	if (n > fresh)
		post_again(t, n - fresh);
	t->bytes += (__u64)n * t->v.size;
}

static void set_launch(struct tx *t, struct tpacket4_desc *d)
{
	struct tpacket4_meta *m = tp4_meta_new(&t->w->area, d);
	const bool etf = t->w->cfg->launch == LAUNCH_ETF;
	__u64 due = pace_next(&t->pace);

	/* The schedule is CLOCK_MONOTONIC. */
	if (etf)
		due += clock_ns(CLOCK_TAI) - clock_ns(CLOCK_MONOTONIC);
	tp4_meta_launch(m, due);
	if (t->v.has_seq)
		vary_stamp(&t->v, pace_next(&t->pace) +
			   clock_ns(CLOCK_REALTIME) -
			   clock_ns(CLOCK_MONOTONIC));
}

/* Any packet: its size differs, or it takes several frames. */
static void post_one(struct tx *t)
{
	const struct config *cfg = t->w->cfg;
	unsigned int i, nr, slot = slots_next(&t->slots);
	__u8 *data = slots_data(&t->slots, slot);
	struct tpacket4_desc d[TX_FRAMES];

	if (t->write)
		t->size[slot] = t->v.size;
	nr = slots_describe(&t->slots, slot, t->size[slot], cfg->pkt.frames, d);
	if (cfg->launch)
		set_launch(t, d);
	if (t->write) {
		vary_write(&t->v, data);
		vary_next(&t->v);
	}
	for (i = 0; i < nr && t->dump.packets < cfg->dump; i++)
		dump_frame(&t->dump, "sent", tp4_data(&t->w->area, &d[i]),
			   d[i].len, i + 1 < nr);
	t->bytes += t->size[slot];
	slots_send(&t->slots, slot, d, nr);
}

/* Post n packets, at most those that are available. */
static void post(struct tx *t, unsigned int n)
{
	unsigned int i;

	t->posted += n;
	if (t->v.has_seq && !t->w->cfg->launch)
		vary_stamp(&t->v, clock_ns(CLOCK_REALTIME));
	if (!t->in_place) {
		while (n--)
			post_one(t);
		return;
	}
	for (; n; n -= i) {
		i = n < BATCH ? n : BATCH;
		post_in_place(t, i);
	}
}

/* --- what was sent ------------------------------------------------------- */

/* Slots stay where they are, so only the new ones are looked at. */
static unsigned int reap_in_place(struct tx *t)
{
	unsigned int i, n, refused = 0;
	struct tp4_ring ring;
	__u8 error = 0;

	n = tp4_ring_peek(&t->w->sock.tx, t->w->sock.tx.q.ring_mask + 1);
	ring = t->w->sock.tx;
	for (i = t->idle; i < n; i++)
		error |= tp4_ring_at(&ring, i)->error;
	for (i = t->idle; error && i < n; i++) {
		if (tp4_ring_at(&ring, i)->error) {
			refuse_packet(t->w, tp4_ring_at(&ring, i)->error);
			refused++;
		}
	}
	i = n - t->idle - refused;
	n -= t->idle;
	t->idle += n;
	if (i) {
		t->w->hopeless = 0;
		count_up(&t->w->n.tx_packets, i);
		count_up(&t->w->n.tx_bytes, (__u64)i * t->v.size);
	}
	return n;
}

static unsigned int reap(struct tx *t)
{
	return t->in_place ? reap_in_place(t) : slots_reap(&t->slots);
}

static bool in_flight(const struct tx *t)
{
	return tp4_ring_pending(&t->w->sock.tx) != t->idle;
}

static bool kick(struct tx *t)
{
	int e = port_kick(t->w);

	if (e)
		worker_error(t->w, TP4_IN_KICK, e);
	return !e;
}

/* --- the loop ------------------------------------------------------------ */

/* Post what is due; returns the number of packets. */
static unsigned int post_due(struct tx *t, unsigned int max, __u64 now)
{
	const struct config *cfg = t->w->cfg;
	unsigned int n = 0, burst = cfg->burst ? cfg->burst : 1;
	__u64 bytes, until = now + cfg->ahead;

	if (burst > t->nr)
		burst = t->nr;
	while (n < max && pace_next(&t->pace) <= until) {
		if (burst > max - n)
			burst = max - n;
		if (burst > available(t))
			break;
		bytes = t->bytes;
		post(t, burst);
		pace_sent(&t->pace, burst, t->bytes - bytes);
		n += burst;
	}
	return n;
}

static unsigned int step(struct tx *t, unsigned int max, __u64 *now)
{
	const struct config *cfg = t->w->cfg;
	unsigned int n;
	__s64 late;

	if (t->pace.limited) {
		*now = clock_ns(CLOCK_MONOTONIC);
		late = *now - pace_next(&t->pace);
		if (late > (__s64)t->w->late)
			t->w->late = late;
		pace_catch_up(&t->pace, *now, vary_mean_size(&cfg->pkt));
		if ((__u64)t->pace.missed != t->w->n.missed)
			count_up(&t->w->n.missed,
				 (__u64)t->pace.missed - t->w->n.missed);
		return post_due(t, max, *now);
	}
	n = available(t);
	if (n > max)
		n = max;
	if (n)
		post(t, n);
	return n;
}

/* There was nothing to post and nothing has come back. */
static bool idle(struct tx *t, struct tp4_backoff *b, __u64 now)
{
	const struct config *cfg = t->w->cfg;
	__u64 due = pace_next(&t->pace) - cfg->ahead;
	int e;

	if (t->pace.limited) {
		/* The kernel may have to be kicked again. */
		if (in_flight(t) && (__s64)(due - now) > RETRY_NS)
			due = now + RETRY_NS;
		if ((__s64)(due - now) > 0)
			pace_sleep(now, due, cfg->spin);
		return true;
	}
	if (!tp4_backoff(b) || cfg->spin)
		return true;
	e = tp4_wait(&t->w->sock, POLLOUT, 1);
	if (e < 0)
		worker_error(t->w, TP4_IN_WAIT, e);
	return e >= 0;
}

static void loop(struct tx *t)
{
	const __u64 count = t->w->count;
	const unsigned int batch = t->w->cfg->burst ? t->w->cfg->burst : BATCH;
	const __u64 hopeless = vary_hopeless(&t->v);
	struct tp4_backoff b = { 0 };
	unsigned int max, n;
	__u64 left, now = 0;

	while (!stopped()) {
		max = batch;
		if (count) {
			left = count + t->w->n.tx_refused - t->posted;
			if (!left && !in_flight(t))
				return;
			if (max > left)
				max = left;
		}
		n = step(t, max, &now);
		if (in_flight(t) && !kick(t))
			return;
		n |= reap(t);
		if (!refuse_check(t->w, hopeless))
			return;
		if (n)
			b.pauses = 0;
		else if (!idle(t, &b, now))
			return;
	}
}

/* Wait until the last packets were sent. */
static void drain(struct tx *t)
{
	const __u64 end = clock_ns(CLOCK_MONOTONIC) + DRAIN_NS +
			  t->w->cfg->ahead;
	struct tp4_backoff b = { 0 };

	while (in_flight(t) && !impatient() &&
	       clock_ns(CLOCK_MONOTONIC) < end) {
		if (port_kick(t->w))
			return;
		if (reap(t))
			b.pauses = 0;
		else if (tp4_backoff(&b))
			tp4_wait(&t->w->sock, POLLOUT, 1);
	}
}

/**
 * tx_run - send packets
 * @w: thread, whose port is open
 */
void tx_run(struct worker *w)
{
	struct tx *t = aligned_alloc(64, (sizeof(*t) + 63) & ~63ul);

	if (!t) {
		worker_fail(w, "no memory");
		return;
	}
	if (!tx_init(t, w))
		goto out;
	pace_init(&t->pace, w->cfg, w->speed, w->nr, w->cfg->nr_threads);
	w->begin = clock_ns(CLOCK_MONOTONIC);
	/* Also the first packets are posted before their launch time. */
	pace_start(&t->pace, w->begin + w->cfg->ahead);
	loop(t);
	w->end = clock_ns(CLOCK_MONOTONIC);
	drain(t);
	if (!t->pace.limited)
		w->end = clock_ns(CLOCK_MONOTONIC);
	w->span = pace_span(&t->pace);
out:
	tx_exit(t);
	free(t);
}
