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

/*
 * Deliver a packet, from its byte *at on; set *at to where to go on if this takes more
 * than the budget, or else to 0.
 */
static inline void deliver(struct sw_port *out, struct sw_packet *pkt, u32 *at)
{
	struct sw *sw = out->sw;
	bool ok;

	sw_mark_dirty(out);
	if (unlikely(out->mirror) && !*at) {
		sw->budget -= pkt->len;
		sw_mirror_packet(out, pkt);
	}
	if (sw_needs_offload(out, pkt)) {
		ok = sw_offload(out, pkt, at);
		if (*at)
			return;
	} else {
		sw->budget -= SW_COST + pkt->len;
		ok = out->ops->output(out, pkt);
	}
	if (likely(ok)) {
		out->count.out++;
		out->count.out_bytes += pkt->len;
	} else {
		out->count.out_drops++;
	}
}

/* The same with the tag that the packet has at the port */
static void deliver_vlan(struct sw_port *out, struct sw_packet *pkt, u32 *at)
{
	struct sw_vlan_packet other;

	pkt = sw_vlan_output(out, pkt, &other);
	if (pkt) {
		deliver(out, pkt, at);
	} else {
		out->count.out_drops++;
		*at = 0;
	}
}

/* May packets of a VLAN go from a port to another one? */
static inline bool may_go(const struct sw_port *in, const struct sw_port *out, u16 vid)
{
	return out && out != in && !out->gone && !(in->isolated && out->isolated) &&
	       sw_vlan_has(out, vid);
}

static inline u16 vid_of(const struct sw_packet *pkt)
{
	return pkt->vlan ? pkt->vlan->vid : 0;
}

/* Deliver a packet to all ports from task->next on, or up to where the budget ends. */
static void flood(struct sw_port *in, struct sw_packet *pkt, struct sw_task *task)
{
	struct sw_source *from = pkt->from;
	struct sw *sw = in->sw;

	/* The frames stay with the source: all others get copies. */
	pkt->from = NULL;
	for (; task->next <= sw->last_port; task->next++) {
		struct sw_port *out = sw->ports[task->next];

		if (!may_go(in, out, vid_of(pkt)))
			continue;
		if (sw->budget <= 0)
			break;
		/* Another port may have that number now. */
		if (task->id != out->id)
			task->at = 0;
		task->id = out->id;
		if (unlikely(pkt->vlan))
			deliver_vlan(out, pkt, &task->at);
		else
			deliver(out, pkt, &task->at);
		if (task->at)
			break;
	}
	pkt->from = from;
}

/* Do what is to be done with a packet; return true if nothing is left. */
static bool perform(struct sw_port *in, struct sw_packet *pkt, struct sw_task *task)
{
	struct sw *sw = in->sw;
	struct sw_port *out = task->to <= SW_PORTS ? sw->ports[task->to] : NULL;

	if (task->to == TPSWITCH_FLOOD) {
		flood(in, pkt, task);
		return task->next > sw->last_port;
	}
	if (may_go(in, out, vid_of(pkt)) && (!task->id || task->id == out->id)) {
		task->id = out->id;
		if (unlikely(pkt->vlan))
			deliver_vlan(out, pkt, &task->at);
		else
			deliver(out, pkt, &task->at);
		return !task->at;
	}
	if (task->to == SW_TO_REFUSED)
		in->count.in_spoofed++;
	else
		in->count.in_nowhere++;
	return true;
}

/* Limits and the mirror of the port that a packet comes from */
static bool special(struct sw_port *in, struct sw_packet *pkt)
{
	if (sw_port_limited(in, pkt)) {
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

/*
 * Deliver a packet to the port, or ports, that lookup has found; return false if more is
 * to be done by sw_resume().
 */
static bool forward(struct sw_source *src, struct sw_packet *pkt, unsigned int to)
{
	struct sw_task task = { .to = to, .next = 1 };
	struct sw_job *job = &src->job;

	if (likely(perform(src->port, pkt, &task)))
		return true;
	job->nr = pkt->nr;
	job->len = pkt->len;
	job->task = task;
	job->has_meta = pkt->meta;
	if (pkt->meta)
		job->meta = *pkt->meta;
	job->has_vlan = pkt->vlan;
	if (pkt->vlan)
		job->vlan = *pkt->vlan;
	memcpy(job->frag, pkt->frag, pkt->nr * sizeof(*pkt->frag));
	return false;
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

/* Deliver a packet of one frame, perhaps with metadata; false: not all of it. */
static bool forward_one(struct sw_source *src, struct sw_frag *frag,
			unsigned int to)
{
	struct sw_packet pkt = {
		.frag = frag, .nr = 1, .len = frag->len, .from = src,
	};
	struct tpacket4_meta meta;

	if (!(frag->flags & TP4_META) || read_meta(&pkt, &meta))
		return forward(src, &pkt, to);
	src->port->count.in_errors++;
	return true;
}

static unsigned int forward_each(struct sw_source *src, struct sw_frag *frag,
				 unsigned int n, unsigned int to)
{
	struct sw_port *in = src->port;
	unsigned int i;

	for (i = 0; i < n && in->sw->budget > 0; i++) {
		in->count.in++;
		in->count.in_bytes += frag[i].len;
		if (!forward_one(src, frag + i, to))
			break;
	}
	return i;
}

/*
 * Deliver packets of one frame that are for the same port; return the number of those
 * with which nothing more is to be done.
 */
static unsigned int forward_run(struct sw_source *src, struct sw_frag *frag,
				unsigned int n, const struct sw_run *run)
{
	struct sw_port *in = src->port, *out;
	u64 bytes = run->bytes;
	struct sw *sw = in->sw;
	unsigned int i;

	out = run->to <= SW_PORTS ? sw->ports[run->to] : NULL;
	if (unlikely(!may_go(in, out, 0) || out->mirror ||
		     (long)run->bytes > sw->budget))
		return forward_each(src, frag, n, run->to);
	if (src->is_dev && out->ops->forward &&
	    (out->meta || !src->port->meta || !any_meta(out, frag, n)))
		i = out->ops->forward(out, src, frag, n, &bytes);
	else if (out->ops->burst &&
		 !(src->is_dev && src->port->meta && any_meta(out, frag, n)))
		i = out->ops->burst(out, frag, n, &bytes);
	else
		return forward_each(src, frag, n, run->to);
	sw_mark_dirty(out);
	in->count.in += n;
	in->count.in_bytes += run->bytes;
	out->count.out += i;
	out->count.out_bytes += bytes;
	out->count.out_drops += n - i;
	sw->budget -= run->bytes + n * SW_COST;
	return n;
}

/*
 * Deliver a packet that needs attention; return its number of frames, or 0 if more is to
 * be done with it.
 */
static unsigned int forward_odd(struct sw_source *src, struct sw_frag *frag,
				unsigned int n)
{
	struct sw_port *in = src->port;
	struct tpacket4_meta meta;
	struct sw_packet pkt = {
		.frag = frag, .nr = 1, .len = frag->len, .from = src,
		.is_dev = src->is_dev,
	};
	struct sw_vlan vlan = { 0 };
	unsigned int to;

	if (!odd(in, &pkt, n, &meta))
		return pkt.nr;
	if (frag->len < ETH_HLEN || pkt.len > SW_LEN) {
		in->count.in_errors++;
		return pkt.nr;
	}
	in->count.in++;
	in->count.in_bytes += pkt.len;
	if (in->special && !special(in, &pkt))
		return pkt.nr;
	if ((in->untagged || in->trunk) && !sw_vlan_input(in, &pkt, &vlan))
		return pkt.nr;
	to = sw_lookup(in->sw, in, vlan.vid, frag->data, frag->len);
	return forward(src, &pkt, to) ? pkt.nr : 0;
}

/* Publish what was delivered. */
static void publish(struct sw *sw, bool more)
{
	flush(sw);
	/* After a full batch there is another one, or poll_sources() sees none. */
	if (!more || ++sw->deferred >= DEFER)
		sw_wake(sw);
}

/**
 * sw_forward - deliver a batch of packets, or as many as the budget is for
 * @src: where they come from
 * @frag: their frames
 * @n: number of frames, of whole packets
 */
void sw_forward(struct sw_source *src, struct sw_frag *frag, unsigned int n)
{
	struct sw_port *in = src->port;
	struct sw_run runs[SW_FRAGS + 1], *run = runs;
	unsigned int i = 0, nr = 1, odd;
	struct sw *sw = in->sw;

	src->kept = 0;
	sw->budget = SW_BUDGET;
	if (likely(!in->special))
		nr = sw_lookup_batch(sw, src, frag, n, runs);
	else
		*run = (struct sw_run){ .to = SW_TO_ODD, .end = n };
	for (; nr; nr--, run++) {
		if (likely(run->to != SW_TO_ODD) && i < run->end)
			i += forward_run(src, frag + i, run->end - i, run);
		else while (i < run->end && sw->budget > 0) {
			odd = forward_odd(src, frag + i, run->end - i);
			if (!odd)
				break;
			i += odd;
		}
		if (unlikely(i < run->end))
			break;
	}
	/* All is copied, or kept: a program that does both is woken up once. */
	src->ops->done(src, frag, i);
	publish(sw, n >= SW_BATCH || i < n);
}

/**
 * sw_send - send a packet of the switch
 * @out: port
 * @data: packet of one frame
 * @len: its length
 */
void sw_send(struct sw_port *out, const u8 *data, u32 len)
{
	struct sw_frag frag = { .len = len, .data = data };
	struct sw_packet pkt = { .frag = &frag, .nr = 1, .len = len };
	u32 at = 0;

	out->sw->budget = SW_BUDGET;
	deliver(out, &pkt, &at);
	publish(out->sw, false);
}

/**
 * sw_resume - go on with a packet that took more than the budget
 * @src: where it comes from
 */
void sw_resume(struct sw_source *src)
{
	struct sw_job *job = &src->job;
	struct sw_packet pkt = {
		.frag = job->frag, .nr = job->nr, .len = job->len,
		.is_dev = src->is_dev,
		.meta = job->has_meta ? &job->meta : NULL,
		.vlan = job->has_vlan ? &job->vlan : NULL,
	};

	src->kept = 0;
	src->port->sw->budget = SW_BUDGET;
	if (perform(src->port, &pkt, &job->task)) {
		src->ops->done(src, job->frag, job->nr);
		job->nr = 0;
	}
	publish(src->port->sw, true);
}
