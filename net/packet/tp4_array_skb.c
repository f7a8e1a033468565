// SPDX-License-Identifier: GPL-2.0
/* Packet arrays with skbs as source or sink */

#include <linux/errqueue.h>
#include <linux/etherdevice.h>
#include <linux/export.h>
#include <linux/if_vlan.h>
#include <linux/mm.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/tpacket4.h>
#include <net/gso.h>
#include <net/sock.h>

#include "tp4_array.h"
#include "tp4_meta.h"

/* A frame that becomes an skb has headroom for XDP and the stack, and room for
 * a packet of the usual size.
 */
#define TP4_SKB_OFFSET	(NET_SKB_PAD + NET_IP_ALIGN + XDP_PACKET_HEADROOM)
#define TP4_SKB_ROOM	1536
#define TP4_SKB_SIZE	(SKB_DATA_ALIGN(TP4_SKB_OFFSET + TP4_SKB_ROOM) + \
			 SKB_DATA_ALIGN(sizeof(struct skb_shared_info)))

/* queue_opaque of an array with skbs as its source: a list of skbs. Those
 * before @next are in the array. tp4a_next_skb() continues at @curr.
 */
struct tp4_skb_source {
	struct sk_buff	*head;
	struct sk_buff	*next;
	struct sk_buff	**curr;
	struct sk_buff	**tail;
};

/* What a device knew of a packet */
struct tp4_skb_offloads {
	ktime_t		hwtstamp;
	u32		hash;
	u8		l4_hash:1;
	u8		sw_hash:1;
	u8		csum_level:2;
};

/* queue_opaque of an array with skbs as its sink. @offloads belongs to the first
 * frame of a packet, whose flags say which members are valid.
 */
struct tp4_skb_sink {
	void			*opaque;
	void			(*deliver)(void *opaque, struct sk_buff *skb);
	struct tp4_skb_offloads	offloads[];
};

static u32 tp4_skb_frames(const struct sk_buff *skb)
{
	return !!skb_headlen(skb) + skb_shinfo(skb)->nr_frags;
}

/* Finish the checksum of a packet, and linearize it if it cannot be described
 * by TP4_MAX_FRAMES frames.
 */
static bool tp4_skb_finish(struct sk_buff *skb)
{
	if (skb->ip_summed == CHECKSUM_PARTIAL) {
		if (skb_csum_hwoffload_help(skb, 0))
			return false;
		skb->ip_summed = CHECKSUM_UNNECESSARY;
	}
	if (unlikely(!skb_frags_readable(skb)))
		return false;
	if (IS_ENABLED(CONFIG_HIGHMEM) || skb_has_frag_list(skb) ||
	    unlikely(tp4_skb_frames(skb) > TP4_MAX_FRAMES))
		return !skb_linearize(skb);
	return true;
}

/**
 * tp4a_add_skb() - add an skb to an array's source
 * @a:		an array with skbs as its source
 * @skb:	the skb, with its data at the link layer header; it is consumed
 *
 * Segments GSO packets, finishes checksums and puts a VLAN tag back into the
 * data. The other fields of the skb stay as they are; the checksum state is
 * updated.
 *
 * Context: Softirq (NAPI).
 * Return: the number of packets dropped.
 */
int tp4a_add_skb(struct tp4_packet_array *a, struct sk_buff *skb)
{
	struct tp4_skb_source *source = a->queue_opaque;
	struct sk_buff *segs, *next;
	u32 vlan_all = 0;
	__be16 protocol;
	int drops = 0;

	skb = skb_share_check(skb, GFP_ATOMIC);
	if (skb && skb_vlan_tag_present(skb)) {
		vlan_all = skb->vlan_all;
		protocol = skb->protocol;
		skb = __vlan_hwaccel_push_inside(skb);
	}
	if (unlikely(!skb))
		return 1;

	if (skb_is_gso(skb)) {
		segs = skb_gso_segment(skb, NETIF_F_SG);
		if (IS_ERR(segs)) {
			kfree_skb(skb);
			return 1;
		}
		if (segs) {
			consume_skb(skb);
			skb = segs;
		}
	}

	for (; skb; skb = next) {
		next = skb->next;
		skb_mark_not_on_list(skb);
		if (unlikely(!tp4_skb_finish(skb))) {
			kfree_skb(skb);
			drops++;
			continue;
		}
		if (unlikely(vlan_all)) {
			skb->vlan_all = vlan_all;
			skb->protocol = protocol;
		}
		*source->tail = skb;
		source->tail = &skb->next;
		if (!source->next)
			source->next = skb;
	}
	return drops;
}
EXPORT_SYMBOL_GPL(tp4a_add_skb);

/**
 * tp4a_next_skb() - get the next packet and its skb
 * @a:	an array with skbs as its source
 * @p:	set to the packet
 *
 * Between two flushes, use either this function or tp4a_next_packet(), not
 * both.
 *
 * Context: Softirq (NAPI).
 * Return: the skb, which is freed when the packet is flushed, or NULL if there
 * is none.
 */
struct sk_buff *tp4a_next_skb(struct tp4_packet_array *a,
			      struct tp4_frame_set *p)
{
	struct tp4_skb_source *source = a->queue_opaque;
	struct sk_buff *skb = *source->curr;

	if (!tp4a_next_packet(a, p))
		return NULL;
	source->curr = &skb->next;
	return skb;
}
EXPORT_SYMBOL_GPL(tp4a_next_skb);

/**
 * tp4f_set_from_skb() - set the metadata of a received packet from an skb
 * @p:		the packet, of an Rx array for which tp4a_has_meta() is true;
 *		call this after tp4f_set_frame() or tp4f_set_len()
 * @skb:	the skb
 *
 * Calls tp4f_set_hash() and similar functions for the fields that the skb has.
 *
 * Context: Softirq (NAPI).
 */
void tp4f_set_from_skb(struct tp4_frame_set *p, struct sk_buff *skb)
{
	ktime_t stamp = skb_hwtstamps(skb)->hwtstamp;

	if (skb->hash)
		tp4f_set_hash(p, skb->hash);
	if (skb->ip_summed == CHECKSUM_UNNECESSARY)
		tp4f_set_csum_valid(p);
	if (stamp)
		tp4f_set_hwtstamp(p, ktime_to_ns(stamp));
}
EXPORT_SYMBOL_GPL(tp4f_set_from_skb);

/* Copy a packet to a new skb. */
static struct sk_buff *tp4f_copy_to_skb(struct tp4_frame_set *p)
{
	u32 len = tp4f_packet_len(p), linear = min_t(u32, len, TP4_SKB_ROOM);
	struct sk_buff *skb;
	u32 pos = 0;
	int err;

	skb = alloc_skb_with_frags(TP4_SKB_OFFSET + linear, len - linear,
				   PAGE_ALLOC_COSTLY_ORDER, &err, GFP_ATOMIC);
	if (unlikely(!skb))
		return NULL;

	skb_reserve(skb, TP4_SKB_OFFSET);
	skb_put(skb, linear);
	skb->data_len = len - linear;
	skb->len = len;
	tp4f_reset(p);
	do {
		len = tp4f_get_frame_len(p);
		skb_store_bits(skb, pos, tp4f_get_data(p), len);
		pos += len;
	} while (tp4f_next_frame(p));
	return skb;
}

/**
 * tp4f_build_skb() - copy a packet with a checksum or GSO request to an skb
 * @p:		the packet, of a Tx array, at least as long as a link layer
 *		header
 * @dev:	the device that sends it
 * @m:		the request, from tp4f_get_meta()
 *
 * Context: Softirq (NAPI).
 * Return: the skb, with its data at the link layer header, or an ERR_PTR:
 * -EINVAL if @m is invalid for the packet, or -ENOMEM.
 */
struct sk_buff *tp4f_build_skb(struct tp4_frame_set *p, struct net_device *dev,
			       const struct tpacket4_meta *m)
{
	struct sk_buff *skb = tp4f_copy_to_skb(p);
	int err, depth = ETH_HLEN;

	if (unlikely(!skb))
		return ERR_PTR(-ENOMEM);

	skb->dev = dev;
	skb_reset_mac_header(skb);
	skb->protocol = eth_hdr(skb)->h_proto;
	if (eth_type_vlan(skb->protocol))
		vlan_get_protocol_and_depth(skb, skb->protocol, &depth);
	skb_set_network_header(skb, depth);
	skb_probe_transport_header(skb);
	err = tp4_meta_apply(m, skb, 0);
	if (unlikely(err)) {
		kfree_skb(skb);
		return ERR_PTR(err);
	}
	return skb;
}
EXPORT_SYMBOL_GPL(tp4f_build_skb);

/**
 * tp4f_stamp_skb() - get an skb that stands for a packet to be timestamped
 * @p:	the packet, of a Tx array, which is going to be sent and for which
 *	tp4f_wants_stamp() is true; it is false after this call
 *
 * For devices that can stamp packets. The skb has the socket and what
 * SO_TIMESTAMPING asks for, so that the driver can handle it as that of a packet
 * of the stack, up to skb_tstamp_tx() with the device's timestamp. It has the
 * data of the packet only if the socket wants it back. Call tp4_stamp_skb() when
 * the packet is handed to the device. The current frame of @p does not change.
 *
 * Context: Softirq (NAPI).
 * Return: the skb, or NULL if there is no memory.
 */
struct sk_buff *tp4f_stamp_skb(struct tp4_frame_set *p)
{
	const struct tp4_zc_ring *ring = p->pkt_arr->queue_opaque;
	struct tp4_frame_set frames = *p;
	struct sock *sk = ring->q->sk;
	struct sockcm_cookie sockc;
	struct sk_buff *skb;
	u8 tx_flags = 0;
	u32 tskey = 0;

	tp4f_first(p)->flags &= ~TP4F_STAMP;
	sockcm_init(&sockc, sk);
	/* Even without memory, the packet counts for SOF_TIMESTAMPING_OPT_ID. */
	_sock_tx_timestamp(sk, sockc.tsflags, &tx_flags, &tskey);
	skb = sockc.tsflags & SOF_TIMESTAMPING_OPT_TSONLY ?
	      alloc_skb(0, GFP_ATOMIC) : tp4f_copy_to_skb(&frames);
	if (unlikely(!skb))
		return NULL;

	skb_set_owner_w(skb, sk);
	skb_shinfo(skb)->tx_flags = tx_flags;
	skb_shinfo(skb)->tskey = tskey;
	/* There is no packet scheduler. */
	if (tx_flags & SKBTX_SCHED_TSTAMP)
		__skb_tstamp_tx(skb, NULL, NULL, sk, SCM_TSTAMP_SCHED);
	return skb;
}
EXPORT_SYMBOL_GPL(tp4f_stamp_skb);

/**
 * tp4_stamp_skb() - take the software timestamp of a packet
 * @skb:	the return value of tp4f_stamp_skb(), which is consumed; its
 *		SKBTX_IN_PROGRESS says whether the device stamps the packet
 *
 * If the socket only wants the device's timestamp, and the device is not going
 * to stamp this packet, it gets a software timestamp instead.
 *
 * Context: Softirq (NAPI).
 */
void tp4_stamp_skb(struct sk_buff *skb)
{
	u8 tx_flags = skb_shinfo(skb)->tx_flags;

	if (tx_flags & SKBTX_HW_TSTAMP && !(tx_flags & SKBTX_IN_PROGRESS))
		skb_shinfo(skb)->tx_flags |= SKBTX_SW_TSTAMP;
	if (skb_shinfo(skb)->tx_flags & SKBTX_SW_TSTAMP)
		skb_tstamp_tx(skb, NULL);
	consume_skb(skb);
}
EXPORT_SYMBOL_GPL(tp4_stamp_skb);

/**
 * tp4f_stamp() - timestamp a packet
 * @p:	as for tp4f_stamp_skb()
 *
 * For devices that cannot stamp packets. Called when the packet is handed to the
 * device.
 *
 * Context: Softirq (NAPI).
 */
void tp4f_stamp(struct tp4_frame_set *p)
{
	struct sk_buff *skb = tp4f_stamp_skb(p);

	if (likely(skb))
		tp4_stamp_skb(skb);
}
EXPORT_SYMBOL_GPL(tp4f_stamp);

static void tp4a_add_data(struct tp4_packet_array *a, void *data, u32 len)
{
	a->items[a->end++ & a->mask] = (struct tp4_frame) {
		.idx = (unsigned long)data,
		.len = len,
		.flags = TP4_PKT_CONT,
	};
}

static void tp4a_populate_skbs(struct tp4_packet_array *a)
{
	struct tp4_skb_source *source = a->queue_opaque;
	struct sk_buff *skb;
	int i;

	for (; (skb = source->next); source->next = skb->next) {
		const struct skb_shared_info *shinfo = skb_shinfo(skb);

		if (a->end - a->start + tp4_skb_frames(skb) > a->mask + 1)
			break;
		if (skb_headlen(skb))
			tp4a_add_data(a, skb->data, skb_headlen(skb));
		for (i = 0; i < shinfo->nr_frags; i++)
			tp4a_add_data(a, skb_frag_address(&shinfo->frags[i]),
				      skb_frag_size(&shinfo->frags[i]));
		a->items[(a->end - 1) & a->mask].flags = 0;
	}
}

static int tp4a_consume_skbs(struct tp4_packet_array *a, u32 end)
{
	struct tp4_skb_source *source = a->queue_opaque;
	int packets = 0;

	for (; a->start != end; a->start++) {
		struct sk_buff *skb = source->head;

		if (a->items[a->start & a->mask].flags & TP4_PKT_CONT)
			continue;
		source->head = skb->next;
		if (!source->head)
			source->tail = &source->head;
		skb_mark_not_on_list(skb);
		consume_skb(skb);
		packets++;
	}
	source->curr = &source->head;
	return packets;
}

static void tp4a_free_source(struct tp4_packet_array *a)
{
	struct tp4_skb_source *source = a->queue_opaque;

	kfree_skb_list(source->head);
	kfree(source);
}

/* The caller of tp4a_copy_packet() counts it. */
static void tp4a_skb_count_drop(struct tp4_packet_array *a)
{
}

static const struct tp4_array_ops tp4a_skb_source_ops = {
	.validation = TP4_VALIDATION_NONE,
	.populate = tp4a_populate_skbs,
	.flush = tp4a_consume_skbs,
	.count_drop = tp4a_skb_count_drop,
	.free = tp4a_free_source,
};

/**
 * tp4a_skb_source_new() - allocate an array with skbs as its source
 * @elems:	minimum number of frames that it can hold
 *
 * tp4a_add_skb() adds skbs to the source, tp4a_populate() adds their frames to
 * the array, and tp4a_flush() frees the skbs that have been processed.
 *
 * Context: Process context, may sleep.
 * Return: the array, or NULL if there is no memory.
 */
struct tp4_packet_array *tp4a_skb_source_new(size_t elems)
{
	struct tp4_skb_source *source;
	struct tp4_packet_array *a;

	source = kzalloc_obj(*source);
	if (!source)
		return NULL;

	a = tp4a_new(&tp4a_skb_source_ops, elems);
	if (!a) {
		kfree(source);
		return NULL;
	}
	source->curr = &source->head;
	source->tail = &source->head;
	a->queue_opaque = source;
	return a;
}
EXPORT_SYMBOL_GPL(tp4a_skb_source_new);

static void tp4a_populate_empty(struct tp4_packet_array *a)
{
	while (a->end - a->start <= a->mask) {
		void *base = napi_alloc_frag(TP4_SKB_SIZE);

		if (unlikely(!base))
			break;
		a->items[a->end++ & a->mask] = (struct tp4_frame) {
			.idx = (unsigned long)base,
			.offset = a->offset,
		};
	}
}

/* Set the hash, checksum state and hardware timestamp of a packet for the stack:
 * those of @skb, if there is one, and what the driver has set.
 */
static void tp4a_set_offloads(struct tp4_packet_array *a, u32 pos,
			      const struct tp4_frame_set *p,
			      struct sk_buff *skb)
{
	struct tp4_skb_sink *sink = a->queue_opaque;
	struct tp4_skb_offloads *to = &sink->offloads[pos & a->mask];
	u8 flags = tp4f_first(p)->flags & (TP4F_CSUM_VALID | TP4F_HWTSTAMP);

	to->csum_level = 0;
	/* A driver may be able to read it only once. */
	if (flags & TP4F_HWTSTAMP)
		to->hwtstamp = ns_to_ktime(READ_ONCE(tp4f_meta(p)->tstamp));
	if (skb) {
		if (skb->hash) {
			to->hash = skb->hash;
			to->l4_hash = skb->l4_hash;
			to->sw_hash = skb->sw_hash;
			flags |= TP4F_HASH;
		}
		if (skb->ip_summed == CHECKSUM_UNNECESSARY) {
			to->csum_level = skb->csum_level;
			flags |= TP4F_CSUM_VALID;
		}
		if (skb_hwtstamps(skb)->hwtstamp) {
			to->hwtstamp = skb_hwtstamps(skb)->hwtstamp;
			flags |= TP4F_HWTSTAMP;
		}
	}
	a->items[pos & a->mask].flags |= flags;
}

static void tp4_skb_set_offloads(struct sk_buff *skb, u8 flags,
				 const struct tp4_skb_offloads *from)
{
	if (flags & TP4F_HASH)
		__skb_set_hash(skb, from->hash, from->sw_hash, from->l4_hash);
	if (flags & TP4F_CSUM_VALID) {
		skb->ip_summed = CHECKSUM_UNNECESSARY;
		skb->csum_level = from->csum_level;
	}
	if (flags & TP4F_HWTSTAMP)
		skb_hwtstamps(skb)->hwtstamp = from->hwtstamp;
}

/* Build an skb around one frame; free the frame on failure. */
static struct sk_buff *tp4a_frame_skb(const struct tp4_packet_array *a,
				      const struct tp4_frame *frame)
{
	void *start = tp4f_start(a, frame);
	struct sk_buff *skb;

	skb = napi_build_skb(start, TP4_SKB_SIZE);
	if (unlikely(!skb)) {
		skb_free_frag(start);
		return NULL;
	}
	skb_reserve(skb, frame->offset);
	__skb_put(skb, frame->len);
	return skb;
}

/* Append an skb to the frag_list of another one. */
static void tp4a_chain_skb(struct sk_buff *skb, struct sk_buff *last,
			   struct sk_buff *next)
{
	if (last == skb)
		skb_shinfo(skb)->frag_list = next;
	else
		last->next = next;
	skb->len += next->len;
	skb->data_len += next->len;
	skb->truesize += next->truesize;
}

/* Add the data of one frame to the last part of an skb.
 * Return: the new last part, or NULL if there is no memory.
 */
static struct sk_buff *tp4a_add_frame(const struct tp4_packet_array *a,
				      struct sk_buff *skb, struct sk_buff *last,
				      const struct tp4_frame *frame)
{
	void *data = tp4f_start(a, frame) + frame->offset;
	struct page *page = virt_to_head_page(data);
	struct sk_buff *next;

	if (unlikely(skb_shinfo(last)->nr_frags == MAX_SKB_FRAGS)) {
		next = tp4a_frame_skb(a, frame);
		if (likely(next))
			tp4a_chain_skb(skb, last, next);
		return next;
	}

	skb_add_rx_frag(last, skb_shinfo(last)->nr_frags, page,
			data - page_address(page), frame->len, TP4_SKB_SIZE);
	if (unlikely(last != skb)) {
		skb->len += frame->len;
		skb->data_len += frame->len;
		skb->truesize += TP4_SKB_SIZE;
	}
	return last;
}

/* Build an skb of the frames of a packet, and remove them from the array. */
static struct sk_buff *tp4a_build_skb(struct tp4_packet_array *a)
{
	const struct tp4_skb_sink *sink = a->queue_opaque;
	u32 first = a->start++ & a->mask;
	const struct tp4_frame *frame = &a->items[first];
	struct sk_buff *skb = tp4a_frame_skb(a, frame), *last = skb;

	if (skb && frame->flags & TP4F_META_MASK)
		tp4_skb_set_offloads(skb, frame->flags, &sink->offloads[first]);
	if (unlikely(skb && frame->meta_len))
		skb_metadata_set(skb, frame->meta_len);

	while (frame->flags & TP4_PKT_CONT) {
		frame = &a->items[a->start++ & a->mask];
		if (unlikely(!last)) {
			skb_free_frag(tp4f_start(a, frame));
			continue;
		}
		last = tp4a_add_frame(a, skb, last, frame);
		if (unlikely(!last)) {
			kfree_skb(skb);
			skb = NULL;
		}
	}
	return skb;
}

static int tp4a_deliver_skbs(struct tp4_packet_array *a, u32 end)
{
	const struct tp4_skb_sink *sink = a->queue_opaque;
	int packets = 0;

	while (a->start != end) {
		struct sk_buff *skb = tp4a_build_skb(a);

		sink->deliver(sink->opaque, skb);
		packets += !!skb;
	}
	return packets;
}

static void tp4a_free_sink(struct tp4_packet_array *a)
{
	for (; a->start != a->end; a->start++)
		skb_free_frag(tp4f_start(a, &a->items[a->start & a->mask]));
	kfree(a->queue_opaque);
}

static const struct tp4_array_ops tp4a_skb_sink_ops = {
	.validation = TP4_VALIDATION_NONE,
	.populate = tp4a_populate_empty,
	.flush = tp4a_deliver_skbs,
	.set_offloads = tp4a_set_offloads,
	.count_drop = tp4a_skb_count_drop,
	.free = tp4a_free_sink,
};

/**
 * tp4a_skb_sink_new() - allocate an array with skbs as its sink
 * @elems:	minimum number of frames that it can hold
 * @opaque:	first argument of @deliver
 * @deliver:	called by tp4a_flush() with the skb of each packet, whose data
 *		is at the link layer header, or with NULL for one that is lost
 *		because there is no memory
 *
 * Context: Process context, may sleep.
 * Return: the array, or NULL if there is no memory.
 */
struct tp4_packet_array *
tp4a_skb_sink_new(size_t elems, void *opaque,
		  void (*deliver)(void *opaque, struct sk_buff *skb))
{
	struct tp4_packet_array *a;
	struct tp4_skb_sink *sink;

	a = tp4a_new(&tp4a_skb_sink_ops, elems);
	if (!a)
		return NULL;

	sink = kzalloc(struct_size(sink, offloads, a->mask + 1), GFP_KERNEL);
	if (!sink) {
		kvfree(a);
		return NULL;
	}
	sink->opaque = opaque;
	sink->deliver = deliver;
	a->queue_opaque = sink;
	a->offset = TP4_SKB_OFFSET;
	a->room = TP4_SKB_ROOM;
	return a;
}
EXPORT_SYMBOL_GPL(tp4a_skb_sink_new);
