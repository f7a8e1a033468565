// SPDX-License-Identifier: GPL-2.0
/* tpgen: receiving */
#include <stdlib.h>

#include "pcapng.h"
#include "stream.h"

/* A signal ends it earlier, unless it comes just before: see stop(). */
#define WAIT_MS		1000

/**
 * struct rx - receiver
 * @w: thread
 * @cont: the next slot continues a packet
 * @offset: of the signature in the last packet that had one
 * @dump: those that are printed
 * @stored: packet whose last frames are still to come, for a file
 * @stored_len: bytes of it
 * @stored_at: its time stamp
 */
struct rx {
	struct worker *w;
	bool cont;
	unsigned int offset;
	struct dump dump;
	__u8 *stored;
	size_t stored_len;
	__u64 stored_at;
};

/* When a packet was received, by the clock that was asked for */
static __u64 stamp_of(struct rx *r, const struct tpacket4_desc *d, __u64 now)
{
	const struct tpacket4_meta *m = tp4_meta(&r->w->area, d);

	if (!m || r->w->cfg->stamps == STAMPS_PROGRAM)
		return now;
	if (m->flags & TP4_META_RX_TS_HARDWARE)
		r->w->hw_stamps++;
	else if (r->w->cfg->stamps == STAMPS_HARDWARE)
		return now;
	return m->tstamp;
}

static void write_failed(struct worker *w)
{
	worker_fail(w, "%s: %s", w->cfg->write, strerror(errno));
}

/* Add a frame to the packet that is stored; false if there is no memory. */
static bool store_part(struct rx *r, const struct tpacket4_desc *d)
{
	__u8 *all = realloc(r->stored, r->stored_len + d->len);

	if (!all)
		return false;
	r->stored = all;
	memcpy(all + r->stored_len, tp4_data(&r->w->area, d), d->len);
	r->stored_len += d->len;
	return true;
}

/* Write packets to the file. */
static void store(struct rx *r, unsigned int n)
{
	const __u64 now = clock_ns(CLOCK_REALTIME);
	const __u64 counted = r->w->hw_stamps;
	struct worker *w = r->w;
	unsigned int i;

	for (i = 0; i < n; i++) {
		const struct tpacket4_desc *d = tp4_ring_at(&w->sock.rx, i);
		const bool more = d->flags & TP4_PKT_CONT;

		if (!r->stored_len)
			r->stored_at = stamp_of(r, d, now);
		if (!more && !r->stored_len) {
			pcapng_packet(w->out, r->stored_at, tp4_data(&w->area, d),
				      d->len);
			continue;
		}
		if (!store_part(r, d)) {
			worker_fail(w, "no memory");
			return;
		}
		if (more)
			continue;
		pcapng_packet(w->out, r->stored_at, r->stored, r->stored_len);
		r->stored_len = 0;
	}
	/* Those of the streams were counted before. */
	if (w->streams)
		w->hw_stamps = counted;
	if (ferror(w->out))
		write_failed(w);
}

/* A packet that is not like the last one */
static struct stream *find_stream(struct rx *r, const __u8 *data,
				  unsigned int len)
{
	unsigned int at = signature_find(data, len);

	if (!at)
		return NULL;
	r->offset = at;
	return stream_find(r->w->streams, signature_key(data + at));
}

static void dump(struct rx *r, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n && r->dump.packets < r->w->cfg->dump; i++) {
		const struct tpacket4_desc *d = tp4_ring_at(&r->w->sock.rx, i);

		dump_frame(&r->dump, "received", tp4_data(&r->w->area, d),
			   d->len, d->flags & TP4_PKT_CONT);
	}
}

/*
 * Look at n slots. Inlined for each kind of receiver: with streams, and with
 * time stamps of packets.
 */
static inline __attribute__((__always_inline__))
int look(struct rx *r, unsigned int n, bool streams, bool stamps)
{
	/* Copies, which no store to a stream makes invalid */
	const struct tp4_ring ring = r->w->sock.rx;
	const struct tp4_area area = r->w->area;
	const __u64 now = streams ? clock_ns(CLOCK_REALTIME) : 0;
	struct stream *s = streams ? r->w->streams->last : NULL;
	unsigned int i, at = r->offset, packets = n, other = 0;
	bool cont = r->cont;
	__u64 bytes = 0;
	__u8 error = 0;

	for (i = 0; i < n; i++) {
		const struct tpacket4_desc *d = tp4_ring_at(&ring, i);
		const __u8 *data = tp4_data(&area, d);
		const bool first = !cont;

		bytes += d->len;
		error |= d->error;
		cont = d->flags & TP4_PKT_CONT;
		packets -= cont;
		if (!streams || !first)
			continue;
		if (d->len < at + sizeof(struct signature) ||
		    signature_key(data + at) != s->key) {
			struct stream *found = find_stream(r, data, d->len);

			if (!found) {
				other++;
				continue;
			}
			s = found;
			at = r->offset;
		}
		stream_seen(s, data + at, stamps ? stamp_of(r, d, now) : now);
	}
	if (error)
		return tp4_ring_error(&ring, n);
	if (r->dump.packets < r->w->cfg->dump)
		dump(r, n);
	if (r->w->out)
		store(r, n);
	r->cont = cont;
	if (other)
		count_up(&r->w->n.other, other);
	count_up(&r->w->n.rx_packets, packets);
	count_up(&r->w->n.rx_bytes, bytes);
	return 0;
}

static int look_at(struct rx *r, unsigned int n)
{
	if (!r->w->streams)
		return look(r, n, false, false);
	if (r->w->cfg->stamps == STAMPS_PROGRAM)
		return look(r, n, true, false);
	return look(r, n, true, true);
}

static int step(struct rx *r, struct tp4_backoff *b, unsigned int max)
{
	struct tp4_socket *sock = &r->w->sock;
	unsigned int n = tp4_ring_peek(&sock->rx, max);
	int e = 0;

	if (n) {
		b->pauses = 0;
		e = look_at(r, n);
		if (e)
			return e;
		tp4_ring_recycle(&sock->rx, n);
		if (tp4_rx_need_kick(sock))
			e = tp4_rx_kick(sock);
		return e;
	}
	if (!tp4_backoff(b) || r->w->cfg->spin) {
		tp4_ring_flush(&sock->rx);
		return 0;
	}
	/* Who reads it need not wait for more. */
	if (r->w->out && fflush(r->w->out))
		write_failed(r->w);
	e = tp4_wait(sock, POLLIN, WAIT_MS);
	return e < 0 ? e : 0;
}

/**
 * rx_run - receive packets
 * @w: thread, whose port is open
 */
void rx_run(struct worker *w)
{
	struct rx r = { .w = w };
	struct tp4_backoff b = { 0 };
	unsigned int max = BATCH;
	__u64 seen = 0;
	int e = 0;

	while (!stopped() && !e && !*w->error && (!w->count || seen < w->count)) {
		/* A packet has a slot at least, so it is not one too many. */
		if (w->count && w->count - seen < max)
			max = w->count - seen;
		e = step(&r, &b, max);
		if (w->n.rx_packets == seen)
			continue;
		seen = w->n.rx_packets;
		w->end = clock_ns(CLOCK_MONOTONIC);
		if (w->begin)
			continue;
		w->begin = w->end;
		w->first_packets = seen;
		w->first_bytes = w->n.rx_bytes;
	}
	if (e)
		worker_error(w, e == -ENETDOWN || e == -ENODEV ?
			     TP4_IN_WAIT : TP4_IN_RX, e);
	free(r.dump.data);
	free(r.stored);
}
