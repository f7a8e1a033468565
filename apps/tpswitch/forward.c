// SPDX-License-Identifier: GPL-2.0
/* From a batch of frames to the ports that get its packets */

#include "tpswitch.h"

/**
 * sw_flush - publish the packets that ports have been given
 * @sw: switch
 */
void sw_flush(struct sw *sw)
{
	unsigned int i;

	for (i = 0; i < sw->nr_dirty; i++) {
		struct sw_port *port = sw->dirty[i];

		port->dirty = false;
		port->ops->flush(port);
		if (unlikely(port->mirror))
			sw_mirror_flush(port->mirror);
	}
	sw->nr_dirty = 0;
}

static void deliver(struct sw_port *out, struct sw_packet *pkt)
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
		if (sw->list[i] != in)
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

/**
 * sw_forward - deliver a batch of packets
 * @src: where they come from
 * @frag: their frames
 * @n: number of frames, of whole packets
 */
void sw_forward(struct sw_source *src, struct sw_frag *frag, unsigned int n)
{
	struct sw_port *in = src->port;
	struct sw *sw = in->sw;
	struct tpacket4_meta meta;
	u64 packets = 0, bytes = 0;
	struct sw_packet pkt;
	unsigned int i, to;

	src->kept = 0;
	for (i = 0; i < n; i += pkt.nr) {
		struct sw_frag *f = frag + i;
		bool bad = f->error;

		pkt.frag = f;
		pkt.nr = 1;
		pkt.len = f->len;
		pkt.meta = NULL;
		pkt.from = src;
		while (unlikely(f->flags & TP4_PKT_CONT) && i + pkt.nr < n) {
			f++;
			pkt.nr++;
			pkt.len += f->len;
			bad |= f->error;
		}
		f = pkt.frag;
		__builtin_prefetch(f[pkt.nr].data);
		if (unlikely(bad))
			continue;
		if (unlikely(f->len < ETH_HLEN || pkt.len > SW_LEN) ||
		    (unlikely(f->flags & TP4_META) &&
		     !read_meta(&pkt, &meta))) {
			in->count.in_errors++;
			continue;
		}
		packets++;
		bytes += pkt.len;
		if (unlikely(in->special) && !special(in, &pkt))
			continue;
		to = sw_lookup(sw, in, f->data, f->len);
		if (to <= SW_PORTS && likely(sw->ports[to]) &&
		    sw->ports[to] != in && !sw->ports[to]->gone)
			deliver(sw->ports[to], &pkt);
		else if (to == TPSWITCH_FLOOD)
			flood(sw, in, &pkt);
		else
			in->count.in_nowhere++;
	}
	in->count.in += packets;
	in->count.in_bytes += bytes;
	/* All is copied, or kept: a program that does both is woken up once. */
	src->ops->done(src, frag, n);
	sw_flush(sw);
}
