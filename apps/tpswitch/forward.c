// SPDX-License-Identifier: GPL-2.0
/* From a batch of frames to the ports that get its packets */

#include "tpswitch.h"

/*
 * Batches in a row for which nobody is woken up: a program that sleeps after each of
 * them would need more time for this than for its packets.
 */
#define DEFER		8

/* Publish the packets that ports have been given. */
static void flush(struct sw *sw)
{
	unsigned int i;

	for (i = 0; i < sw->nr_dirty; i++) {
		struct sw_port *port = sw->dirty[i];

		port->dirty = false;
		port->ops->flush(port);
		if (port->ops->wake)
			sw_mark_waking(port);
		if (unlikely(port->mirror))
			sw_mirror_flush(port->mirror);
	}
	sw->nr_dirty = 0;
}

/**
 * sw_wake - wake up the programs that wait for what was published
 * @sw: switch
 */
void sw_wake(struct sw *sw)
{
	unsigned int i;

	for (i = 0; i < sw->nr_waking; i++) {
		struct sw_port *port = sw->waking[i];

		port->waking = false;
		port->ops->wake(port);
	}
	sw->nr_waking = 0;
	sw->deferred = 0;
}

static inline void deliver(struct sw_port *out, struct sw_packet *pkt)
{
	bool ok;

	sw_mark_dirty(out);
	if (unlikely(out->mirror))
		sw_mirror_packet(out, pkt);
	if (sw_needs_offload(out, pkt))
		ok = sw_offload(out, pkt);
	else
		ok = out->ops->output(out, pkt);
	if (likely(ok)) {
		out->count.out++;
		out->count.out_bytes += pkt->len;
	} else {
		out->count.out_drops++;
	}
}

static void flood(struct sw *sw, struct sw_port *in, struct sw_packet *pkt)
{
	struct sw_source *from = pkt->from;
	unsigned int i;

	/* The frames stay with the source: all others get copies. */
	pkt->from = NULL;
	for (i = 0; i < sw->nr_ports; i++)
		if (sw->list[i] != in && !(in->isolated && sw->list[i]->isolated))
			deliver(sw->list[i], pkt);
	pkt->from = from;
}

/* Limits and the mirror of the port that a packet comes from */
static bool special(struct sw_port *in, struct sw_packet *pkt)
{
	if (sw_port_limited(in, pkt->len)) {
		in->count.in_limited++;
		return false;
	}
	if (in->mirror) {
		sw_mirror_packet(in, pkt);
		sw_mark_dirty(in);
	}
	return true;
}

/* Copy and check the metadata of a packet. */
static bool read_meta(struct sw_packet *pkt, struct tpacket4_meta *meta)
{
	const struct sw_frag *f = pkt->frag;

	memcpy(meta, f->data - f->offset, sizeof(*meta));
	/* It may be in memory that changes: only the copy counts. */
	__asm__ __volatile__("" ::: "memory");
	pkt->meta = meta;
	return sw_meta_ok(meta, pkt->len);
}

/* A packet of several frames, with metadata, or that is refused */
static bool odd(struct sw_port *in, struct sw_packet *pkt, unsigned int n,
		struct tpacket4_meta *meta)
{
	const struct sw_frag *f = pkt->frag;
	bool bad = f->error;

	while ((f->flags & TP4_PKT_CONT) && pkt->nr < n) {
		f++;
		pkt->nr++;
		pkt->len += f->len;
		bad |= f->error;
	}
	if (bad)
		return false;
	if ((pkt->frag->flags & TP4_META) && !read_meta(pkt, meta)) {
		in->count.in_errors++;
		return false;
	}
	return true;
}

/* Deliver a packet to the port, or ports, that lookup has found. */
static void forward(struct sw_port *in, struct sw_packet *pkt, unsigned int to)
{
	struct sw *sw = in->sw;
	struct sw_port *out = to <= SW_PORTS ? sw->ports[to] : NULL;

	if (out && out != in && !out->gone && !(in->isolated && out->isolated))
		deliver(out, pkt);
	else if (to == TPSWITCH_FLOOD)
		flood(sw, in, pkt);
	else if (to == SW_TO_REFUSED)
		in->count.in_spoofed++;
	else
		in->count.in_nowhere++;
}

/* Does one of the frames of a device have metadata that a port needs? */
static bool any_meta(const struct sw_port *out, const struct sw_frag *frag,
		     unsigned int n)
{
	u8 flags = 0;

	while (n--)
		if (out->meta || sw_asks_offload(&frag[n]))
			flags |= frag[n].flags;
	return flags & TP4_META;
}

/* Deliver a packet of one frame, perhaps with metadata. */
static void forward_one(struct sw_source *src, struct sw_frag *frag,
			unsigned int to)
{
	struct sw_packet pkt = {
		.frag = frag, .nr = 1, .len = frag->len, .from = src,
	};
	struct tpacket4_meta meta;

	if ((frag->flags & TP4_META) && !read_meta(&pkt, &meta))
		src->port->count.in_errors++;
	else
		forward(src->port, &pkt, to);
}

/* Deliver packets of one frame that are for the same port. */
static void forward_run(struct sw_source *src, struct sw_frag *frag,
			unsigned int n, const struct sw_run *run)
{
	struct sw_port *in = src->port, *out;
	u64 bytes = run->bytes;
	struct sw *sw = in->sw;
	unsigned int i;

	in->count.in += n;
	in->count.in_bytes += bytes;
	out = run->to <= SW_PORTS ? sw->ports[run->to] : NULL;
	if (unlikely(!out || out == in || out->gone || out->mirror ||
		     (in->isolated && out->isolated)))
		goto one_by_one;
	if (src->is_dev && out->ops->forward &&
	    (out->meta || !src->port->meta || !any_meta(out, frag, n)))
		i = out->ops->forward(out, src, frag, n, &bytes);
	else if (out->ops->burst &&
		 !(src->is_dev && src->port->meta && any_meta(out, frag, n)))
		i = out->ops->burst(out, frag, n, &bytes);
	else
		goto one_by_one;
	sw_mark_dirty(out);
	out->count.out += i;
	out->count.out_bytes += bytes;
	out->count.out_drops += n - i;
	return;

one_by_one:
	for (i = 0; i < n; i++)
		forward_one(src, frag + i, run->to);
}

/* Deliver a packet that needs attention; return its number of frames. */
static unsigned int forward_odd(struct sw_source *src, struct sw_frag *frag,
				unsigned int n)
{
	struct sw_port *in = src->port;
	struct tpacket4_meta meta;
	struct sw_packet pkt = {
		.frag = frag, .nr = 1, .len = frag->len, .from = src,
	};

	if (!odd(in, &pkt, n, &meta))
		return pkt.nr;
	if (frag->len < ETH_HLEN || pkt.len > SW_LEN) {
		in->count.in_errors++;
		return pkt.nr;
	}
	in->count.in++;
	in->count.in_bytes += pkt.len;
	if (!in->special || special(in, &pkt))
		forward(in, &pkt, sw_lookup(in->sw, in, frag->data, frag->len));
	return pkt.nr;
}

/**
 * sw_forward - deliver a batch of packets
 * @src: where they come from
 * @frag: their frames
 * @n: number of frames, of whole packets
 */
void sw_forward(struct sw_source *src, struct sw_frag *frag, unsigned int n)
{
	struct sw_port *in = src->port;
	struct sw_run runs[SW_FRAGS + 1], *run = runs;
	unsigned int i = 0, nr = 1;

	src->kept = 0;
	if (likely(!in->special))
		nr = sw_lookup_batch(in->sw, src, frag, n, runs);
	else
		*run = (struct sw_run){ .to = SW_TO_ODD, .end = n };
	for (; nr; nr--, run++) {
		if (likely(run->to != SW_TO_ODD) && i < run->end) {
			forward_run(src, frag + i, run->end - i, run);
			i = run->end;
		}
		while (unlikely(i < run->end))
			i += forward_odd(src, frag + i, run->end - i);
	}
	/* All is copied, or kept: a program that does both is woken up once. */
	src->ops->done(src, frag, n);
	flush(in->sw);
	/* After a full batch there is another one, or poll_sources() sees none. */
	if (n < SW_BATCH || ++in->sw->deferred >= DEFER)
		sw_wake(in->sw);
}
