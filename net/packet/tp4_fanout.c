// SPDX-License-Identifier: GPL-2.0
/* Fanout of a queue in zero-copy mode
 *
 * A socket in zero-copy mode that has joined a fanout group feeds it: the
 * packets of its queue go to the members of the group, which are in copy mode
 * and get all other packets of the device from their packet hook. A member that
 * uses the area of the feeder gets the frames of a packet, and the feeder gets
 * empty frames of the member in exchange. Any other member gets a copy, and so
 * does one whose ring is packed.
 *
 * Packets are distributed in batches: choose a member for each packet; then, for
 * each member, claim the frames for all its packets at once, fill them, publish
 * them last to first, and wake the program. The frames of the feeder, or those
 * that it got for them, are empty then. It never loses one.
 *
 * Nearly all packets are plain: they have one frame, which is exchanged, and there
 * is nothing else to do. The loops over them are short.
 *
 * The members are in an RCU read side critical section, like in a packet hook:
 * packet_set_ring() and packet_release() take a socket off the group and wait
 * for a grace period before they free anything that is used here.
 */

#include <kunit/visibility.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/etherdevice.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <linux/if_vlan.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/rcupdate.h>
#include <linux/rculist.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/tpacket4.h>
#include <linux/uidgid.h>
#include <linux/unaligned.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#include "internal.h"
#include "tp4_area.h"
#include "tp4_array.h"
#include "tp4_fanout.h"
#include "tp4_pack.h"
#include "tp4_queue.h"
#include "tp4_rx.h"

/* Maximum number of packets distributed at a time, with one frame each */
#define TP4_FANOUT_BATCH	64

/* In the skb: room for XDP metadata, and bytes of a packet that are copied */
#define TP4_FANOUT_HEADROOM	64
#define TP4_FANOUT_HEAD		128

/* Bytes of a packet that a BPF program can load without an skb of all of it. No
 * packet on a wire is shorter.
 */
#define TP4_FANOUT_LOADS	ETH_ZLEN

#define TP4_FANOUT_NONE		U8_MAX

/**
 * struct tp4_fanout_how - what to do with a packet that is not plain
 * @len:	bytes that the member receives
 * @frames:	frames that the packet has
 * @need:	frames needed of the member
 * @skip:	bytes at its start that the member does not receive
 * @swap:	its frames are exchanged, not copied
 */
struct tp4_fanout_how {
	u32	len;
	u16	frames;
	u16	need;
	u8	skip;
	bool	swap;
};

/**
 * struct tp4_fanout_member - a member that has packets in the batch
 * @sk:		its socket
 * @q:		its ring; NULL if it has removed it
 * @need:	frames that its packets need
 * @more:	those but one for each packet
 * @index:	its number in the group
 * @offset:	of the data in the frame of a plain packet, at least; no packet is
 *		plain unless the ring uses the area of the feeder and has no
 *		metadata, and the member has no filter and receives the link layer
 *		header
 * @stored:	packets that have been stored in its packed ring
 * @last:	the last packet that it gets
 * @plain:	all its packets are plain
 * @drops:	a packet was dropped as its packed ring is full
 */
struct tp4_fanout_member {
	struct sock		*sk;
	struct tp4_queue	*q;
	u32			need;
	u32			more;
	u32			offset;
	u16			index;
	u8			stored;
	u8			last;
	bool			plain;
	bool			drops;
};

/* No frame has its data there. */
#define TP4_FANOUT_NEVER	U32_MAX

/**
 * struct tp4_fanout - a feeder
 * @node:	entry of struct tp4_group's feeders
 * @cred:	credentials of whoever let it feed the group
 * @group:	the group that it feeds
 * @dev:	its device
 * @skb:	a packet, for BPF programs and the flow dissector
 * @loads:	the first bytes of a packet, for BPF programs that only load these
 * @eth:	the link layer header of the packet that @skb is set to
 * @form:	the form of that packet, if a packet with the same header and form only
 *		differs from it in its data: it has no VLAN tag and is short, see
 *		tp4_fanout_is_short(); else 0
 * @dev_addr:	the address of the device when @eth was set
 * @queue:	its queue, counted from 1, as skb_get_queue_mapping() does
 * @rollover:	the choice depends on the frames that members have left
 * @nr_members:	number of @members that are used
 * @in_place:	the array is full and all packets are plain: the frames are where
 *		they belong when they have been exchanged
 * @stride:	distance between packets for the same member, if it is constant and all
 *		packets are plain, or 0
 * @odd:	packets that are not plain
 * @prev:	for each packet, the one before it for the same member; without @stride
 * @how:	for packets that are not plain
 * @members:	the members that have packets in the batch, from 1 on
 * @member_of:	for each index in the group, that in @members, or 0
 *
 * A packet of the batch is identified by the position of its first frame, less
 * that of the first frame of the batch.
 *
 * All members from @nr_members on belong to the NAPI instance of the queue, and so
 * do all members from @skb to @dev_addr.
 */
struct tp4_fanout {
	struct hlist_node		node;
	const struct cred		*cred;
	struct packet_fanout		*group;
	struct net_device		*dev;
	struct sk_buff			*skb;
	struct sk_buff			*loads;
	u64				eth[2];
	u64				form;
	u8				dev_addr[ETH_ALEN + 2];
	u32				stride;
	u16				queue;
	bool				rollover;
	bool				in_place;
	u8				nr_members;
	u64				odd;
	u8				prev[TP4_FANOUT_BATCH];
	struct tp4_fanout_how		how[TP4_FANOUT_BATCH];
	struct tp4_fanout_member	members[TP4_FANOUT_BATCH + 1];
	u8				member_of[];
};

static const struct tp4_frame *tp4_fanout_frame(const struct tp4_packet_array *a,
						u32 pos)
{
	return &a->items[pos & a->mask];
}

static void *tp4_fanout_data(const struct tp4_packet_array *a,
			     const struct tp4_frame *frame)
{
	return tp4f_start(a, frame) + frame->offset;
}

/* Read a link layer header to compare it. The two parts overlap. */
static void tp4_fanout_read_eth(const void *head, u64 *eth)
{
	eth[0] = get_unaligned((const u64 *)head);
	eth[1] = get_unaligned((const u64 *)(head + ETH_HLEN - sizeof(u64)));
}

/* All of a frame but its number, to compare it. Not 0, as data has headroom. */
static u64 tp4_fanout_form(const struct tp4_frame *frame)
{
	const size_t at = offsetof(struct tp4_frame, len);
	u64 form;

	static_assert(sizeof(struct tp4_frame) -
		      offsetof(struct tp4_frame, len) == sizeof(form));
	memcpy(&form, (const void *)frame + at, sizeof(form));
	return form;
}

/* Check that the copy of a packet has all of it, that it has no XDP metadata, and
 * that a copy of the full size is within its frame.
 */
static bool tp4_fanout_is_short(const struct tp4_packet_array *a,
				const struct tp4_frame *frame)
{
	return frame->len >= ETH_HLEN && frame->len <= TP4_FANOUT_HEAD &&
	       frame->meta_len < sizeof(u32) &&
	       frame->offset + TP4_FANOUT_HEAD <= a->frame_size;
}

/* Let the skb be a packet as packet hooks see it: without its VLAN tag, and with
 * the data behind the link layer header. It has the first frame only. Its headers
 * are copied, so that user space cannot change them. Nobody keeps the skb, which
 * therefore needs no reference to the page.
 */
static noinline struct sk_buff *
tp4_fanout_set_all(struct tp4_fanout *fo, struct tp4_packet_array *a, u32 pos)
{
	struct tp4_frame_set p = {
		.pkt_arr = a, .start = pos, .curr = pos, .end = pos + 1,
	};
	const struct tp4_frame *frame = tp4f_frame(&p);
	const void *data = tp4f_get_data(&p);
	struct sk_buff *skb = fo->skb;
	u32 tag_len = 0, len, rest;
	struct vlan_ethhdr eth;
	void *head;

	if (likely(frame->len >= sizeof(eth))) {
		memcpy(&eth, data, sizeof(eth));
	} else {
		memset(&eth, 0, sizeof(eth));
		memcpy(&eth, data, frame->len);
	}
	if (unlikely(eth_type_vlan(eth.h_vlan_proto) &&
		     frame->len >= sizeof(eth)))
		tag_len = VLAN_HLEN;
	len = min_t(u32, frame->len - tag_len, TP4_FANOUT_HEAD);
	rest = frame->len - tag_len - len;

	skb->data = skb->head + TP4_FANOUT_HEADROOM;
	skb->len = 0;
	skb->data_len = 0;
	skb_reset_tail_pointer(skb);
	skb_shinfo(skb)->nr_frags = 0;
	/* At least, as eth_type_trans() and BPF expect it */
	head = __skb_put(skb, max_t(u32, len, ETH_HLEN));
	memcpy(head, &eth, ETH_HLEN);
	if (likely(!tag_len)) {
		__vlan_hwaccel_clear_tag(skb);
		memcpy(head, data, len);
	} else {
		__vlan_hwaccel_put_tag(skb, eth.h_vlan_proto,
				       ntohs(eth.h_vlan_TCI));
		memcpy(head + 2 * ETH_ALEN, data + 2 * ETH_ALEN + tag_len,
		       len - 2 * ETH_ALEN);
	}
	if (rest) {
		skb_frag_fill_page_desc(&skb_shinfo(skb)->frags[0],
					tp4f_get_page(&p),
					offset_in_page(data) + tag_len + len,
					rest);
		skb_shinfo(skb)->nr_frags = 1;
		skb->data_len = rest;
		skb->len += rest;
	}

	if (unlikely(frame->meta_len >= sizeof(u32))) {
		memcpy(head - sizeof(u32), data - sizeof(u32), sizeof(u32));
		skb_metadata_set(skb, sizeof(u32));
	} else {
		skb_metadata_clear(skb);
	}
	skb_clear_hash(skb);
	skb->pkt_type = PACKET_HOST;
	skb->protocol = eth_type_trans(skb, fo->dev);
	skb_reset_network_header(skb);

	/* For 802.2, the protocol depends on the data. */
	fo->form = 0;
	if (likely(!tag_len && tp4_fanout_is_short(a, frame) &&
		   eth_proto_is_802_3(eth.h_vlan_proto))) {
		tp4_fanout_read_eth(head, fo->eth);
		ether_addr_copy(fo->dev_addr, fo->dev->dev_addr);
		fo->form = tp4_fanout_form(frame);
	}
	return skb;
}

/* Same for a batch of packets. Few of them have another link layer header than the
 * one before; then, only the data and its length differ.
 */
static __always_inline struct sk_buff *
tp4_fanout_set_skb(struct tp4_fanout *fo, struct tp4_packet_array *a, u32 pos)
{
	const struct tp4_frame *frame = tp4_fanout_frame(a, pos);
	const void *data = tp4_fanout_data(a, frame);
	struct sk_buff *skb = fo->skb;
	void *head;
	u64 eth[2];

	if (unlikely(tp4_fanout_form(frame) != fo->form)) {
		if (!fo->form || !tp4_fanout_is_short(a, frame))
			return tp4_fanout_set_all(fo, a, pos);
		fo->form = tp4_fanout_form(frame);
		skb->len = frame->len - ETH_HLEN;
		skb_set_tail_pointer(skb, skb->len);
	}
	/* A constant number of bytes is copied faster. Those behind the packet
	 * are in the frame as well, and nobody looks at them.
	 */
	head = skb->data - ETH_HLEN;
	memcpy(head, data, TP4_FANOUT_HEAD / 2);
	tp4_fanout_read_eth(head, eth);
	if (unlikely((eth[0] ^ fo->eth[0]) | (eth[1] ^ fo->eth[1])))
		return tp4_fanout_set_all(fo, a, pos);
	if (frame->len > TP4_FANOUT_HEAD / 2)
		memcpy(head + TP4_FANOUT_HEAD / 2, data + TP4_FANOUT_HEAD / 2,
		       TP4_FANOUT_HEAD / 2);
	return skb;
}

/* Hash a plain packet as fanout_demux_hash() does. The stack removes one tag. */
static __always_inline bool tp4_fanout_hash(const struct tp4_packet_array *a,
					    const struct tp4_frame *frame,
					    u32 *hash)
{
	const void *data = tp4_fanout_data(a, frame);
	u32 header = ETH_HLEN;
	__be16 proto;

	if (unlikely(frame->len <= VLAN_ETH_HLEN))
		return false;
	proto = READ_ONCE(((const struct ethhdr *)data)->h_proto);
	if (unlikely(eth_type_vlan(proto))) {
		header = VLAN_ETH_HLEN;
		proto = READ_ONCE(((const struct vlan_ethhdr *)data)
				  ->h_vlan_encapsulated_proto);
	}
	return fanout_hash_plain(proto, data + header, frame->len - header,
				 hash);
}

/* The choice of any type, with an skb */
static noinline u32 tp4_fanout_demux(struct tp4_fanout *fo,
				     struct tp4_packet_array *a, u32 pos,
				     u32 num)
{
	u32 index = fanout_demux(fo->group, tp4_fanout_set_skb(fo, a, pos), num);

	/* The skb may have a hash now. */
	fo->form = 0;
	return index;
}

static u32 tp4_fanout_run_bpf(struct tp4_fanout *fo, struct tp4_packet_array *a,
			      u32 pos, const struct bpf_prog *prog)
{
	struct sk_buff *skb = tp4_fanout_set_skb(fo, a, pos);

	if (unlikely(prog->cb_access))
		memset(bpf_skb_cb(skb), 0, BPF_SKB_CB_LEN);
	return bpf_prog_run(prog, skb);
}

/* Run a program for a packet that is shorter, or that the stack removes a VLAN tag
 * from.
 */
static noinline u32 tp4_fanout_run_odd(struct tp4_fanout *fo,
				       struct tp4_packet_array *a, u32 pos,
				       const struct bpf_prog *prog)
{
	return bpf_prog_run(prog, tp4_fanout_set_all(fo, a, pos));
}

/* Run a program that only loads some bytes of the packet, on a copy of them. */
static __always_inline u32
tp4_fanout_run_loads(struct tp4_fanout *fo, struct tp4_packet_array *a,
		     const struct tp4_frame *frame, u32 pos,
		     const struct bpf_prog *prog)
{
	struct sk_buff *skb = fo->loads;
	struct ethhdr *eth = (struct ethhdr *)skb->head;

	if (unlikely(frame->len < TP4_FANOUT_LOADS))
		return tp4_fanout_run_odd(fo, a, pos, prog);
	memcpy(eth, tp4_fanout_data(a, frame), TP4_FANOUT_LOADS);
	if (unlikely(eth_type_vlan(eth->h_proto)))
		return tp4_fanout_run_odd(fo, a, pos, prog);
	return bpf_prog_run(prog, skb);
}

/* Same as @value % @num. Numbers of programs are seldom too large. */
static u32 tp4_fanout_modulo(u32 value, u32 num)
{
	return likely(value < num) ? value : value % num;
}

/* Choose a member: its index in the group, below @num. Same as fanout_demux(),
 * with no skb where none is needed. @type is TP4_FANOUT_NONE for a choice that
 * needs one. @next is a number that the choice depends on.
 */
static __always_inline u32 tp4_fanout_choose(struct tp4_fanout *fo,
					     struct tp4_packet_array *a,
					     const struct tp4_frame *frame,
					     u32 pos, u8 type, u32 num,
					     const struct bpf_prog *prog,
					     u32 *next)
{
	u32 value = *next;

	switch (type) {
	case PACKET_FANOUT_LB:
		*next = value + 1 == num ? 0 : value + 1;
		return value;
	case PACKET_FANOUT_CPU:
	case PACKET_FANOUT_QM:
		return value;
	case PACKET_FANOUT_RND:
		return fanout_demux_rnd(num);
	case PACKET_FANOUT_HASH:
		if (unlikely(!tp4_fanout_hash(a, frame, &value)))
			break;
		return reciprocal_scale(value, num);
	case PACKET_FANOUT_CBPF:
		value = tp4_fanout_run_loads(fo, a, frame, pos, prog);
		return tp4_fanout_modulo(value, num);
	case PACKET_FANOUT_EBPF:
		return tp4_fanout_modulo(tp4_fanout_run_bpf(fo, a, pos, prog),
					 num);
	case PACKET_FANOUT_XDP:
		if (frame->meta_len < sizeof(u32))
			return 0;
		value = get_unaligned((const u32 *)(tp4_fanout_data(a, frame) -
						    sizeof(u32)));
		/* User space may change it: do not load it again. */
		OPTIMIZER_HIDE_VAR(value);
		return tp4_fanout_modulo(value, num);
	}
	return tp4_fanout_demux(fo, a, pos, num);
}

static noinline struct tp4_fanout_member *
tp4_fanout_add_member(struct tp4_fanout *fo, const struct tp4_packet_array *a,
		      u32 index)
{
	struct tp4_fanout_member *m = &fo->members[++fo->nr_members];
	struct sock *sk = rcu_dereference(fo->group->arr[index]);
	struct tp4_queue *q = READ_ONCE(pkt_sk(sk)->tp4_queue[TP4_RX]);
	bool plain = q && !q->packed && q->area == a->area && !q->meta &&
		     sk->sk_type == SOCK_RAW && !rcu_access_pointer(sk->sk_filter);

	fo->member_of[index] = fo->nr_members;
	*m = (struct tp4_fanout_member) {
		.sk = sk,
		.q = q,
		.index = index,
		.offset = plain ? q->offset : TP4_FANOUT_NEVER,
		.last = TP4_FANOUT_NONE,
		.plain = true,
	};
	return m;
}

static __always_inline struct tp4_fanout_member *
tp4_fanout_get_member(struct tp4_fanout *fo, const struct tp4_packet_array *a,
		      u32 index)
{
	u8 nr = fo->member_of[index];

	return likely(nr) ? &fo->members[nr] :
			    tp4_fanout_add_member(fo, a, index);
}

static bool tp4_fanout_is_plain(const struct tp4_fanout_member *m,
				const struct tp4_frame *frame)
{
	return !(frame->flags & TP4_PKT_CONT) && frame->offset >= m->offset;
}

/* Let the member's filter and type of socket decide what it gets of a packet of
 * @len bytes: those from @skip on.
 * Return: the number of bytes, 0 for none of it.
 */
static u32 tp4_fanout_filter(struct tp4_fanout *fo, struct tp4_packet_array *a,
			     u32 pos, u32 len, const struct sock *sk, u8 *skip)
{
	struct sk_buff *skb = tp4_fanout_set_all(fo, a, pos);
	u32 tag_len = skb_vlan_tag_present(skb) ? VLAN_HLEN : 0;

	/* The filter sees the link layer header. */
	fo->form = 0;
	*skip = 0;
	len -= tag_len;
	if (sk->sk_type == SOCK_RAW) {
		skb_push(skb, ETH_HLEN);
	} else {
		*skip = ETH_HLEN + tag_len;
		tag_len = 0;
		if (len <= ETH_HLEN || tp4_fanout_frame(a, pos)->len <= *skip)
			return 0;
		len -= ETH_HLEN;
	}
	len = tp4_run_filter(skb, sk, len);
	return len ? len + tag_len : 0;
}

/* Find out what to do with a packet of @frames frames that is not plain.
 * Return: the number of frames that it needs; 0 if the member does not get it.
 */
static u32 tp4_fanout_measure(struct tp4_fanout *fo,
			      struct tp4_packet_array *a, u32 pos, u32 frames,
			      const struct tp4_fanout_member *m,
			      struct tp4_fanout_how *how)
{
	const struct tp4_queue *q = m->q;
	const struct sock *sk = m->sk;
	u32 i, len = 0, got;
	u8 skip = 0;
	bool swap;

	if (unlikely(!q)) {
		atomic_inc(&pkt_sk(m->sk)->tp_drops);
		return 0;
	}
	swap = q->area == a->area && !q->packed;
	for (i = 0; i < frames; i++) {
		const struct tp4_frame *frame = tp4_fanout_frame(a, pos + i);

		/* The member has asked for the headroom. */
		if (frame->offset < q->offset)
			swap = false;
		len += frame->len;
	}
	got = len;
	if (sk->sk_type != SOCK_RAW || rcu_access_pointer(sk->sk_filter)) {
		got = tp4_fanout_filter(fo, a, pos, len, sk, &skip);
		if (!got)
			return 0;
		if (frames > 1 && got + skip != len)
			swap = false;
	}
	*how = (struct tp4_fanout_how) {
		.len = got,
		.frames = frames,
		.skip = skip,
		.swap = swap,
	};
	if (unlikely(q->packed))
		how->need = 1;
	else
		how->need = swap ? frames : tp4_rx_frames(q, got);
	return how->need;
}

/* Copy @len bytes of a packet. @pos and @off say from which frame on, and from
 * which byte of that.
 */
static void tp4_fanout_read(const struct tp4_packet_array *a, u32 *pos,
			    u32 *off, void *to, u32 len)
{
	while (len) {
		const struct tp4_frame *from = tp4_fanout_frame(a, *pos);
		u32 part = min(len, from->len - *off);

		memcpy(to, tp4_fanout_data(a, from) + *off, part);
		to += part;
		len -= part;
		*off += part;
		if (*off == from->len) {
			++*pos;
			*off = 0;
		}
	}
}

/* Write the metadata of a packet to the start of the frame that will be its first,
 * or of its memory. XDP metadata stays in front of the packet, or is copied if
 * there is room for it.
 */
static void tp4_fanout_meta(const struct tp4_packet_array *a,
			    const struct tp4_fanout_member *m, u32 from,
			    const struct tp4_fanout_how *how, void *to)
{
	const struct tp4_frame *first = tp4_fanout_frame(a, from);
	const struct tp4_queue *q = m->q;
	u32 i, len = 0, offset;

	for (i = 0; i < how->frames; i++)
		len += tp4_fanout_frame(a, from + i)->len;
	tp4a_write_meta_to(a, first, to, len, m->sk, ktime_get_real_ns());
	if (likely(!first->meta_len))
		return;

	/* The ring of the feeder need not have left room for struct
	 * tpacket4_meta in front of it.
	 */
	offset = how->swap ? first->offset : q->offset;
	if (how->skip ||
	    first->meta_len > offset - sizeof(struct tpacket4_meta))
		((struct tpacket4_meta *)to)->xdp_meta_len = 0;
	else if (!how->swap)
		memcpy(to + q->offset - first->meta_len,
		       tp4_fanout_data(a, first) - first->meta_len,
		       first->meta_len);
}

/* Store a packet in a packed ring. Its memory is used in the order of the packets,
 * so this cannot wait until the other packets of the member are known.
 */
static noinline void tp4_fanout_pack(const struct tp4_packet_array *a,
				     struct tp4_fanout_member *m, u32 from,
				     const struct tp4_fanout_how *how)
{
	struct packet_sock *po = pkt_sk(m->sk);
	struct tp4_queue *q = m->q;
	struct tpacket4_desc desc;
	unsigned long pos, start;
	u32 off = how->skip;
	void *to;
	bool ok;

	spin_lock(&po->sk.sk_receive_queue.lock);
	ok = tp4_pack_reserve(q, tp4_pack_bytes(q, how->len), &pos, &start);
	if (likely(ok))
		po->stats.stats1.tp_packets++;
	else
		tp4q_rx_count_drop(q);
	spin_unlock(&po->sk.sk_receive_queue.lock);
	if (unlikely(!ok)) {
		m->drops = true;
		return;
	}
	to = q->area->addr + start;
	if (q->meta)
		tp4_fanout_meta(a, m, from, how, to);
	tp4_fanout_read(a, &from, &off, to + q->offset, how->len);
	desc = tp4_pack_desc(q, start, how->len);
	tp4q_publish(q, pos, &desc);
	m->stored++;
}

static u32 tp4_fanout_count_frames(const struct tp4_packet_array *a, u32 pos)
{
	u32 nr = 1;

	while (tp4_fanout_frame(a, pos++)->flags & TP4_PKT_CONT)
		nr++;
	return nr;
}

/* Add a packet that is not plain. Return: the number of its frames. */
static noinline u32 tp4_fanout_add_odd(struct tp4_fanout *fo,
				       struct tp4_packet_array *a, u32 pos,
				       struct tp4_fanout_member *m)
{
	u32 frames = tp4_fanout_count_frames(a, pos), nr = pos - a->start;
	u32 need = tp4_fanout_measure(fo, a, pos, frames, m, &fo->how[nr]);

	fo->in_place = false;
	if (unlikely(need && m->q->packed)) {
		tp4_fanout_pack(a, m, pos, &fo->how[nr]);
	} else if (need) {
		fo->odd |= BIT_ULL(nr);
		fo->prev[nr] = m->last;
		m->last = nr;
		m->need += need;
		m->more += need - 1;
		m->plain = false;
	}
	return frames;
}

/* Return the number of packets of a batch, if they have one frame each. */
static u32 tp4_fanout_batch_size(const struct tp4_packet_array *a, u32 end)
{
	return min_t(u32, end - a->start, TP4_FANOUT_BATCH);
}

/* Choose the members of a batch of packets up to @end. @type, @prog and @next are
 * as for tp4_fanout_choose(); @type is a constant.
 * Return: the position after the last packet of the batch.
 */
static __always_inline u32 tp4_fanout_choose_by(struct tp4_fanout *fo,
						struct tp4_packet_array *a,
						u32 end, u32 num, u8 type,
						const struct bpf_prog *prog,
						u32 next)
{
	const u32 max = tp4_fanout_batch_size(a, end), start = a->start;
	unsigned long nr = 0;
	u32 packets = 0;

	do {
		const u32 pos = start + nr;
		const struct tp4_frame *frame = tp4_fanout_frame(a, pos);
		struct tp4_fanout_member *m;
		u32 index;

		index = tp4_fanout_choose(fo, a, frame, pos, type, num, prog,
					  &next);
		m = tp4_fanout_get_member(fo, a, index);
		if (likely(tp4_fanout_is_plain(m, frame))) {
			fo->prev[nr] = m->last;
			m->last = nr;
			m->need++;
			nr++;
		} else {
			nr += tp4_fanout_add_odd(fo, a, pos, m);
		}
		packets++;
	} while (nr < max);
	/* With packets of several frames, there are less than expected. */
	if (type == PACKET_FANOUT_LB)
		atomic_sub(max - packets, &fo->group->rr_cur);
	return start + nr;
}

/* For types without a function of their own, and for packets that need an skb */
static noinline u32 tp4_fanout_choose_any(struct tp4_fanout *fo,
					  struct tp4_packet_array *a, u32 end,
					  u32 num)
{
	return tp4_fanout_choose_by(fo, a, end, num, TP4_FANOUT_NONE, NULL, 0);
}

static noinline u32 tp4_fanout_choose_hash(struct tp4_fanout *fo,
					   struct tp4_packet_array *a, u32 end,
					   u32 num)
{
	if (unlikely(fanout_has_dissector(read_pnet(&fo->group->net))))
		return tp4_fanout_choose_any(fo, a, end, num);
	return tp4_fanout_choose_by(fo, a, end, num, PACKET_FANOUT_HASH, NULL,
				    0);
}

static noinline u32 tp4_fanout_choose_rnd(struct tp4_fanout *fo,
					  struct tp4_packet_array *a, u32 end,
					  u32 num)
{
	return tp4_fanout_choose_by(fo, a, end, num, PACKET_FANOUT_RND, NULL, 0);
}

static noinline u32 tp4_fanout_choose_bpf(struct tp4_fanout *fo,
					  struct tp4_packet_array *a, u32 end,
					  u32 num)
{
	const struct bpf_prog *prog = rcu_dereference(fo->group->bpf_prog);

	if (unlikely(!prog))
		return tp4_fanout_choose_any(fo, a, end, num);
	if (unlikely(!ether_addr_equal_64bits(fo->dev_addr, fo->dev->dev_addr)))
		fo->form = 0;
	/* Once, not for each packet */
	migrate_disable();
	end = tp4_fanout_choose_by(fo, a, end, num, PACKET_FANOUT_EBPF, prog, 0);
	migrate_enable();
	return end;
}

/* For classic BPF, which mostly does nothing but load data */
static noinline u32 tp4_fanout_choose_cbpf(struct tp4_fanout *fo,
					   struct tp4_packet_array *a, u32 end,
					   u32 num)
{
	const struct bpf_prog *prog = rcu_dereference(fo->group->tp4->loads);

	if (unlikely(!prog))
		return tp4_fanout_choose_bpf(fo, a, end, num);
	migrate_disable();
	end = tp4_fanout_choose_by(fo, a, end, num, PACKET_FANOUT_CBPF, prog, 0);
	migrate_enable();
	return end;
}

static noinline u32 tp4_fanout_choose_xdp(struct tp4_fanout *fo,
					  struct tp4_packet_array *a, u32 end,
					  u32 num)
{
	return tp4_fanout_choose_by(fo, a, end, num, PACKET_FANOUT_XDP, NULL, 0);
}

/* Choose @nr members in turn, starting with @index: the first number of a batch.
 * That is quicker if all packets are plain.
 */
static __always_inline u32 tp4_fanout_choose_turns(struct tp4_fanout *fo,
						   struct tp4_packet_array *a,
						   u32 end, u32 num, u8 type,
						   u32 index, u32 nr)
{
	const u32 max = tp4_fanout_batch_size(a, end), start = a->start;
	u32 i, next = index, offset = 0;

	for (i = 0; i < nr && i < max; i++) {
		offset = max(offset, tp4_fanout_get_member(fo, a, next)->offset);
		next = next + 1 == num ? 0 : next + 1;
	}
	for (i = 0; i < max; i++) {
		const struct tp4_frame *frame = tp4_fanout_frame(a, start + i);

		if (unlikely(frame->flags & TP4_PKT_CONT ||
			     frame->offset < offset))
			return tp4_fanout_choose_by(fo, a, end, num, type, NULL,
						    index);
	}
	fo->stride = nr;
	for (i = 1; i <= fo->nr_members; i++) {
		struct tp4_fanout_member *m = &fo->members[i];

		m->need = (max - i) / nr + 1;
		m->last = i - 1 + (m->need - 1) * nr;
	}
	return start + max;
}

static noinline u32 tp4_fanout_choose_lb(struct tp4_fanout *fo,
					 struct tp4_packet_array *a, u32 end,
					 u32 num)
{
	u32 first = fanout_demux_lb(fo->group, tp4_fanout_batch_size(a, end),
				    num);

	return tp4_fanout_choose_turns(fo, a, end, num, PACKET_FANOUT_LB, first,
				       num);
}

/* All packets go to the member @index. */
static noinline u32 tp4_fanout_choose_one(struct tp4_fanout *fo,
					  struct tp4_packet_array *a, u32 end,
					  u32 num, u32 index)
{
	return tp4_fanout_choose_turns(fo, a, end, num, PACKET_FANOUT_QM, index,
				       1);
}

/* Choose the members of a batch of packets up to @end.
 * Return: the position after the last packet of the batch.
 */
static u32 tp4_fanout_choose_all(struct tp4_fanout *fo,
				 struct tp4_packet_array *a, u32 end, u32 num)
{
	if (unlikely(fo->rollover)) {
		/* Each packet changes what the next choice depends on. */
		return tp4_fanout_choose_any(fo, a, a->start + 1, num);
	}
	switch (fo->group->type) {
	case PACKET_FANOUT_LB:
		return tp4_fanout_choose_lb(fo, a, end, num);
	case PACKET_FANOUT_CPU:
		return tp4_fanout_choose_one(fo, a, end, num,
					     fanout_demux_cpu(num));
	case PACKET_FANOUT_QM:
		return tp4_fanout_choose_one(fo, a, end, num,
					     fanout_demux_qm(fo->queue, num));
	case PACKET_FANOUT_RND:
		return tp4_fanout_choose_rnd(fo, a, end, num);
	case PACKET_FANOUT_HASH:
		return tp4_fanout_choose_hash(fo, a, end, num);
	case PACKET_FANOUT_CBPF:
		return tp4_fanout_choose_cbpf(fo, a, end, num);
	case PACKET_FANOUT_EBPF:
		return tp4_fanout_choose_bpf(fo, a, end, num);
	case PACKET_FANOUT_XDP:
		return tp4_fanout_choose_xdp(fo, a, end, num);
	}
	return tp4_fanout_choose_any(fo, a, end, num);
}

/* Exchange the frame of a plain packet for that of a slot, which is posted, and
 * publish it. The frame that the feeder gets is empty.
 */
static __always_inline void tp4_fanout_swap_one(struct tp4_frame *frame,
						u16 offset,
						struct tpacket4_desc *slot,
						u32 *held)
{
	struct tpacket4_desc desc = {
		.idx = frame->idx,
		.len = frame->len,
		.offset = frame->offset,
	};

	*frame = (struct tp4_frame) {
		.idx = *held,
		.offset = offset,
	};
	tp4q_store_slot(slot, &desc);
	/* As tp4q_publish() does it: pairs with the acquire in tp4q_is_held(). */
	smp_store_release(held, TP4_NOT_HELD);
}

/* Give a member plain packets, the last of which gets the slot before @pos. */
static noinline void tp4_fanout_swap_plain(struct tp4_fanout *fo,
					   struct tp4_packet_array *a,
					   const struct tp4_fanout_member *m,
					   unsigned long pos)
{
	/* Copies, which the compiler need not load again for each packet */
	const u32 start = a->start, mask = a->mask, slots = m->q->mask;
	struct tpacket4_desc *const ring = m->q->ring;
	u32 *const held = m->q->held;
	const u32 stride = fo->stride;
	const u16 offset = a->offset;
	unsigned long slot, first;
	u32 i, from;

	if (!fo->stride) {
		for (i = m->last; i != TP4_FANOUT_NONE; i = fo->prev[i]) {
			slot = --pos & slots;
			tp4_fanout_swap_one(&a->items[(start + i) & mask],
					    offset, &ring[slot], &held[slot]);
		}
		return;
	}
	from = start + m->last;
	for (first = pos - m->need; pos != first; from -= stride) {
		slot = --pos & slots;
		tp4_fanout_swap_one(&a->items[from & mask], offset, &ring[slot],
				    &held[slot]);
	}
}

/* Exchange the frames of a packet for those from @pos on, and publish it. */
static void tp4_fanout_swap(struct tp4_packet_array *a, struct tp4_queue *q,
			    u32 from,
			    const struct tp4_fanout_how *how,
			    unsigned long pos)
{
	u32 i = how->need;

	while (i--) {
		struct tp4_frame *frame = &a->items[(from + i) & a->mask];
		struct tpacket4_desc desc = {
			.idx = frame->idx,
			.len = frame->len,
			.offset = frame->offset,
			.flags = frame->flags & TP4_PKT_CONT,
		};

		if (!i) {
			desc.offset += how->skip;
			desc.len -= how->skip;
			if (how->need == 1)
				desc.len = how->len;
			desc.flags |= q->meta;
		}
		frame->idx = q->held[(pos + i) & q->mask];
		tp4q_publish(q, pos + i, &desc);
	}
}

/* Copy a packet to the frames from @pos on, and publish it. */
static void tp4_fanout_copy(const struct tp4_packet_array *a,
			    struct tp4_queue *q,
			    u32 from_pos,
			    const struct tp4_fanout_how *how,
			    unsigned long pos)
{
	u32 from_off = how->skip, left = how->len, i;
	const u32 size = q->area->frame_size;
	struct tpacket4_desc desc = {};

	for (i = 0; i < how->need; i++) {
		void *to = tp4_area_frame(q->area, q->held[(pos + i) & q->mask]);
		u32 len = min(left, i ? size : q->room);

		if (!i)
			to += q->offset;
		left -= len;
		desc.len = len;
		tp4_fanout_read(a, &from_pos, &from_off, to, len);
	}
	/* The last frame has the rest, all others are full. */
	while (i--) {
		desc.idx = q->held[(pos + i) & q->mask];
		if (!i) {
			desc.offset = q->offset;
			desc.len = min(desc.len, q->room);
			desc.flags |= q->meta;
		}
		tp4q_publish(q, pos + i, &desc);
		desc.len = size;
		desc.flags = TP4_PKT_CONT;
	}
}

/* Give a member packets some of which are not plain, the last of which gets the
 * slots before @pos.
 */
static noinline void tp4_fanout_give(struct tp4_fanout *fo,
				     struct tp4_packet_array *a,
				     const struct tp4_fanout_member *m,
				     unsigned long pos)
{
	struct tp4_queue *q = m->q;
	u32 i;

	for (i = m->last; i != TP4_FANOUT_NONE; i = fo->prev[i]) {
		const struct tp4_fanout_how *how = &fo->how[i];
		u32 from = a->start + i;

		if (!(fo->odd & BIT_ULL(i))) {
			pos--;
			tp4_fanout_swap_one(&a->items[from & a->mask], a->offset,
					    tp4q_slot(q, pos),
					    &q->held[pos & q->mask]);
			continue;
		}
		pos -= how->need;
		if (q->meta)
			tp4_fanout_meta(a, m, from, how, how->swap ?
					tp4f_start(a, tp4_fanout_frame(a, from)) :
					tp4_area_frame(q->area,
						       q->held[pos & q->mask]));
		if (how->swap)
			tp4_fanout_swap(a, q, from, how, pos);
		else
			tp4_fanout_copy(a, q, from, how, pos);
	}
}

/* Drop packets of a member, the last ones, that there are no frames for.
 * Return: their number.
 */
static noinline u32 tp4_fanout_drop(struct tp4_fanout *fo,
				    struct tp4_fanout_member *m)
{
	struct tp4_queue *q = m->q;
	u32 avail = q->in - atomic_long_read(&q->out), drops = 0;

	fo->in_place = false;
	do {
		u8 i = m->last;
		u32 less = 1;

		if (fo->odd & BIT_ULL(i))
			less = fo->how[i].need;
		m->last = fo->stride ? i - fo->stride : fo->prev[i];
		m->need -= less;
		m->more -= less - 1;
		tp4q_rx_count_drop(q);
		drops++;
	} while (m->need > avail);
	return drops;
}

/* Claim frames for all packets of a member, or for as many as have frames. The
 * others are dropped.
 * Return: the number of packets that are dropped.
 */
static u32 tp4_fanout_reserve(struct tp4_fanout *fo, struct tp4_fanout_member *m,
			      unsigned long *pos)
{
	struct sock *sk = m->sk;
	u32 drops = 0;

	spin_lock(&sk->sk_receive_queue.lock);
	while (unlikely(m->need && !tp4q_rx_reserve(m->q, m->need, pos)))
		drops += tp4_fanout_drop(fo, m);
	pkt_sk(sk)->stats.stats1.tp_packets += m->need - m->more;
	spin_unlock(&sk->sk_receive_queue.lock);
	return drops;
}

/* Wake a member that has a packed ring. Return: the number of its packets. */
static noinline u32 tp4_fanout_wake_packed(const struct tp4_fanout_member *m)
{
	if (m->drops)
		m->sk->sk_data_ready(m->sk);
	else if (m->stored)
		tp4q_wake_reader(m->q);
	return m->stored;
}

/* Give a member its packets, last to first. Return: their number. */
static u32 tp4_fanout_deliver(struct tp4_fanout *fo, struct tp4_packet_array *a,
			      struct tp4_fanout_member *m)
{
	unsigned long pos = 0;
	u32 drops;

	if (unlikely(!m->need))
		return tp4_fanout_wake_packed(m);
	drops = tp4_fanout_reserve(fo, m, &pos);
	pos += m->need;
	if (likely(m->plain))
		tp4_fanout_swap_plain(fo, a, m, pos);
	else
		tp4_fanout_give(fo, a, m, pos);
	/* A program that waits for more packets by SO_RCVLOWAT may wait for those
	 * that it has lost.
	 */
	if (unlikely(drops))
		m->sk->sk_data_ready(m->sk);
	else
		tp4q_wake_reader(m->q);
	return m->need - m->more;
}

/* Distribute a batch. Return: the number of packets that members got. */
static u32 tp4_fanout_batch(struct tp4_fanout *fo, struct tp4_packet_array *a,
			    u32 end, u32 num)
{
	struct tp4_fanout_member *m, *last;
	u32 packets = 0;

	fo->odd = 0;
	fo->stride = 0;
	fo->in_place = a->end - a->start == a->mask + 1;
	end = tp4_fanout_choose_all(fo, a, end, num);
	last = &fo->members[fo->nr_members];
	for (m = &fo->members[1]; m <= last; m++) {
		fo->member_of[m->index] = 0;
		packets += tp4_fanout_deliver(fo, a, m);
	}
	fo->nr_members = 0;
	if (likely(fo->in_place)) {
		a->end += end - a->start;
		a->start = end;
	} else {
		tp4a_recycle_posted(a, end);
	}
	return packets;
}

/**
 * tp4_fanout_flush() - distribute received packets
 * @a:		the Rx array of a feeder
 * @end:	position after the last frame to flush
 *
 * While the group has no member, the feeder receives the packets itself.
 *
 * Context: Softirq (NAPI).
 * Return: the number of packets that were received.
 */
int tp4_fanout_flush(struct tp4_packet_array *a, u32 end)
{
	const struct tp4_zc_ring *ring = a->queue_opaque;
	struct tp4_fanout *fo = ring->fanout;
	int packets = 0;
	u32 num;

	rcu_read_lock();
	num = READ_ONCE(fo->group->num_members);
	if (likely(num)) {
		while (a->start != end)
			packets += tp4_fanout_batch(fo, a, end, num);
	}
	rcu_read_unlock();
	return likely(num) ? packets : tp4a_rx_flush_keep(a, end);
}

/* Allocate a feeder. */
VISIBLE_IF_KUNIT struct tp4_fanout *
tp4_fanout_new(struct packet_fanout *group, struct net_device *dev,
	       int queue_pair)
{
	const u8 flag = PACKET_FANOUT_FLAG_ROLLOVER >> 8;
	struct tp4_fanout *fo;

	fo = kvzalloc(struct_size(fo, member_of, group->max_num_members),
		      GFP_KERNEL_ACCOUNT);
	if (!fo)
		return NULL;
	fo->skb = alloc_skb(TP4_FANOUT_HEADROOM + TP4_FANOUT_HEAD,
			    GFP_KERNEL_ACCOUNT);
	fo->loads = alloc_skb(TP4_FANOUT_LOADS, GFP_KERNEL_ACCOUNT);
	if (!fo->skb || !fo->loads) {
		consume_skb(fo->skb);
		consume_skb(fo->loads);
		kvfree(fo);
		return NULL;
	}
	fo->cred = get_current_cred();
	fo->group = group;
	fo->dev = dev;
	fo->queue = queue_pair + 1;
	fo->rollover = group->type == PACKET_FANOUT_ROLLOVER ||
		       group->flags & flag;
	fo->skb->skb_iif = dev->ifindex;
	skb_record_rx_queue(fo->skb, queue_pair);
	skb_put(fo->loads, TP4_FANOUT_LOADS);
	skb_reset_mac_header(fo->loads);
	skb_pull(fo->loads, ETH_HLEN);
	skb_reset_network_header(fo->loads);
	return fo;
}
EXPORT_SYMBOL_IF_KUNIT(tp4_fanout_new);

VISIBLE_IF_KUNIT void tp4_fanout_free(struct tp4_fanout *fo)
{
	/* The page of the last packet is not ours to release. */
	skb_shinfo(fo->skb)->nr_frags = 0;
	fo->skb->len -= fo->skb->data_len;
	fo->skb->data_len = 0;
	consume_skb(fo->skb);
	consume_skb(fo->loads);
	put_cred(fo->cred);
	kvfree(fo);
}
EXPORT_SYMBOL_IF_KUNIT(tp4_fanout_free);

/* Check whether an instruction reads nothing of a packet but the first bytes.
 * Offsets count from the end of the link layer header.
 */
static bool tp4_fanout_may_load(const struct sock_filter *insn)
{
	const u32 class = BPF_CLASS(insn->code);

	if (class != BPF_LD && class != BPF_LDX)
		return true;
	switch (BPF_MODE(insn->code)) {
	case BPF_IMM:
	case BPF_MEM:
		return true;
	case BPF_ABS:
	case BPF_MSH:
		return insn->k <= TP4_FANOUT_LOADS - ETH_HLEN - sizeof(u32);
	default:
		return false;
	}
}

/* Check whether a program only loads the first bytes of a packet. */
static bool tp4_fanout_only_loads(const struct bpf_prog *prog)
{
	const struct sock_fprog_kern *classic = prog->orig_prog;
	unsigned int i;

	if (!classic)
		return false;
	for (i = 0; i < classic->len; i++) {
		if (!tp4_fanout_may_load(&classic->filter[i]))
			return false;
	}
	return true;
}

/**
 * tp4_fanout_init() - set up what a new fanout group has for zero-copy mode
 * @f:	the group
 *
 * Context: Process context, may sleep.
 * Return: false if there is no memory; to be undone by tp4_fanout_exit().
 */
bool tp4_fanout_init(struct packet_fanout *f)
{
	struct tp4_group *group;

	group = kzalloc_obj(*group);
	if (!group)
		return false;
	f->tp4 = group;
	return true;
}

static void tp4_fanout_forget(struct tp4_who *who)
{
	put_cred(who->cred);
	who->cred = NULL;
}

/**
 * tp4_fanout_exit() - undo tp4_fanout_init()
 * @f:	the group, which nobody uses any more
 *
 * Context: Process context.
 */
void tp4_fanout_exit(struct packet_fanout *f)
{
	tp4_fanout_forget(&f->tp4->setter);
	kfree(f->tp4);
}

/* Remember the current task: the group may get a feeder later. */
static void tp4_fanout_remember(struct tp4_who *who,
				const struct packet_fanout *f)
{
	who->cred = get_current_cred();
	who->admin = ns_capable_noaudit(read_pnet(&f->net)->user_ns,
					CAP_NET_ADMIN);
}

/* Check for the user that has let a socket feed its group. A process may run as
 * that user and yet be confined: it has to be in the same user namespace, and must
 * not be root without the capability.
 */
static bool tp4_fanout_is_user(const struct tp4_fanout *fo,
			       const struct cred *cred)
{
	struct user_namespace *ns = cred->user_ns;

	return uid_eq(cred->euid, fo->cred->euid) &&
	       ns == fo->cred->user_ns &&
	       !uid_eq(cred->euid, make_kuid(ns, 0));
}

/* Check whether a task may have the packets that a feeder takes from the stack: it
 * could take the queue itself, or is the feeder's user, so that programs of members
 * need no more than CAP_NET_RAW.
 */
static bool tp4_fanout_trusts(const struct tp4_fanout *fo,
			      const struct tp4_who *who)
{
	return who->admin || tp4_fanout_is_user(fo, who->cred);
}

/* Same for the current task */
static bool tp4_fanout_trusts_current(const struct tp4_fanout *fo)
{
	return tp4_fanout_is_user(fo, current_cred()) ||
	       ns_capable(read_pnet(&fo->group->net)->user_ns, CAP_NET_ADMIN);
}

/**
 * tp4_fanout_may_join() - check whether a socket may join a group that is fed
 * @f:	the group
 * @po:	the packet socket
 *
 * If the socket removes its ring later, it drops what it is fed.
 *
 * Context: Process context, under fanout_mutex.
 * Return: 0; -EINVAL if the group has a feeder and the socket has no V4 Rx ring;
 * -EPERM if the current task may not have the packets.
 */
int tp4_fanout_may_join(const struct packet_fanout *f,
			const struct packet_sock *po)
{
	const struct tp4_fanout *fo;

	hlist_for_each_entry(fo, &f->tp4->feeders, node) {
		if (!READ_ONCE(po->tp4_queue[TP4_RX]))
			return -EINVAL;
		if (!tp4_fanout_trusts_current(fo))
			return -EPERM;
	}
	return 0;
}

/**
 * tp4_fanout_joined() - remember who has let a socket join a group
 * @po:	the packet socket
 *
 * Context: Process context, under fanout_mutex.
 */
void tp4_fanout_joined(struct packet_sock *po)
{
	tp4_fanout_remember(&po->tp4_joined, po->fanout);
}

/**
 * tp4_fanout_left() - undo tp4_fanout_joined()
 * @po:	the packet socket, which has left the group
 *
 * Context: Process context, under fanout_mutex.
 */
void tp4_fanout_left(struct packet_sock *po)
{
	tp4_fanout_forget(&po->tp4_joined);
}

/* Check whether the current task may set the program of a group. */
static bool tp4_fanout_may_set(const struct packet_fanout *f)
{
	const struct tp4_fanout *fo;

	hlist_for_each_entry(fo, &f->tp4->feeders, node) {
		if (!tp4_fanout_trusts_current(fo))
			return false;
	}
	return true;
}

/**
 * tp4_fanout_set_bpf() - set the BPF program of a group
 * @f:		the group
 * @prog:	the program, which has its original if it is a classic one, or NULL
 *
 * The program decides which member gets a packet, and may show packets to others.
 *
 * Context: Process context, under the group's lock. The caller waits for a grace
 * period before it frees the previous program.
 * Return: 0, or -EPERM if the group has a feeder and the current task may not have
 * its packets.
 */
int tp4_fanout_set_bpf(struct packet_fanout *f, struct bpf_prog *prog)
{
	struct tp4_group *group = f->tp4;

	if (prog) {
		if (!tp4_fanout_may_set(f))
			return -EPERM;
		tp4_fanout_forget(&group->setter);
		tp4_fanout_remember(&group->setter, f);
		if (!tp4_fanout_only_loads(prog))
			prog = NULL;
	}
	rcu_assign_pointer(group->loads, prog);
	return 0;
}

/* Check whether a member may be fed: it has a V4 ring, and the feeder trusts the
 * task that has let it join.
 */
static int tp4_fanout_check_member(const struct tp4_fanout *fo,
				   const struct packet_sock *po)
{
	if (!READ_ONCE(po->tp4_queue[TP4_RX]))
		return -EINVAL;
	return tp4_fanout_trusts(fo, &po->tp4_joined) ? 0 : -EPERM;
}

/* Check all members, also those that are not in the group's array as their hook is
 * unregistered for now.
 */
static int tp4_fanout_check_members(const struct tp4_fanout *fo,
				    const struct packet_sock *feeder)
{
	const struct packet_fanout *f = fo->group;
	const struct sock *sk;
	int err = 0;

	rcu_read_lock();
	sk_for_each_rcu(sk, &read_pnet(&f->net)->packet.sklist) {
		const struct packet_sock *po = pkt_sk(sk);

		if (READ_ONCE(po->fanout) != f || po == feeder)
			continue;
		err = tp4_fanout_check_member(fo, po);
		if (err)
			break;
	}
	rcu_read_unlock();
	return err;
}

/* Add a feeder to its group, unless it does not trust the group's program, or a
 * member that is being closed and no longer in the list of sockets.
 */
static int tp4_fanout_add_feeder(struct tp4_fanout *fo,
				 const struct packet_sock *feeder)
{
	struct packet_fanout *f = fo->group;
	const struct packet_sock *po;
	int err = 0;
	u32 i;

	spin_lock(&f->lock);
	if (f->tp4->setter.cred && !tp4_fanout_trusts(fo, &f->tp4->setter))
		err = -EPERM;
	for (i = 0; !err && i < f->num_members; i++) {
		po = pkt_sk(rcu_dereference_protected(f->arr[i],
						      lockdep_is_held(&f->lock)));
		if (po != feeder)
			err = tp4_fanout_check_member(fo, po);
	}
	if (!err)
		hlist_add_head(&fo->node, &f->tp4->feeders);
	spin_unlock(&f->lock);
	return err;
}

/**
 * tp4_fanout_start() - let a socket in a fanout group feed it
 * @ring:	the Rx ring
 * @po:		the packet socket, which is about to enter zero-copy mode
 * @dev:	the device
 * @queue_pair:	the queue pair
 *
 * Context: Process context, may sleep; under the socket lock and RTNL; takes
 * fanout_mutex.
 * Return: 0; -ENOMEM; -EINVAL if the socket has no Rx ring, its packets also go to
 * the stack, a member has no V4 Rx ring, or the group defragments; -EPERM if a task
 * that may not have the packets has let a socket join or has set the program.
 */
int tp4_fanout_start(struct tp4_zc_ring *ring, struct packet_sock *po,
		     struct net_device *dev, int queue_pair)
{
	/* The socket leaves the group only when it is closed. */
	struct packet_fanout *f = READ_ONCE(po->fanout);
	struct tp4_fanout *fo;
	int err;

	if (!ring->q || (ring->q->flags & TP4_RING_TO_STACK) ||
	    (f->flags & (PACKET_FANOUT_FLAG_DEFRAG >> 8)))
		return -EINVAL;
	fo = tp4_fanout_new(f, dev, queue_pair);
	if (!fo)
		return -ENOMEM;

	mutex_lock(&fanout_mutex);
	err = tp4_fanout_check_members(fo, po);
	if (!err)
		err = tp4_fanout_add_feeder(fo, po);
	mutex_unlock(&fanout_mutex);
	if (err) {
		tp4_fanout_free(fo);
		return err;
	}
	ring->fanout = fo;
	return 0;
}

/**
 * tp4_fanout_stop() - let a socket no longer feed its group
 * @ring:	its Rx ring, which the driver no longer uses
 *
 * Context: Process context, may sleep; takes fanout_mutex.
 */
void tp4_fanout_stop(struct tp4_zc_ring *ring)
{
	struct tp4_fanout *fo = ring->fanout;

	if (!fo)
		return;
	mutex_lock(&fanout_mutex);
	spin_lock(&fo->group->lock);
	hlist_del(&fo->node);
	spin_unlock(&fo->group->lock);
	mutex_unlock(&fanout_mutex);
	ring->fanout = NULL;
	tp4_fanout_free(fo);
}
