// SPDX-License-Identifier: GPL-2.0
/* TPACKET_V4 Rx in copy mode: a tap, like V1 to V3 */

#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_vlan.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <net/sock.h>

#include "internal.h"
#include "tp4_area.h"
#include "tp4_queue.h"
#include "tp4_rx.h"

#ifdef CONFIG_SMP
/* Every packet reads tp4_queue, and every dropped packet writes tp_drops. */
static_assert(offsetof(struct packet_sock, tp4_queue) / SMP_CACHE_BYTES !=
	      offsetof(struct packet_sock, tp_drops) / SMP_CACHE_BYTES);
#endif

/* Get the number of bytes of the packet that the socket receives. */
static u32 tp4_run_filter(struct sk_buff *skb, const struct sock *sk, u32 len)
{
	const struct sk_filter *filter;

	filter = rcu_dereference(sk->sk_filter);
	if (filter)
		len = min(len, bpf_prog_run_clear_cb(filter->prog, skb));
	return len;
}

/* Copy a part of the packet, and put a VLAN tag that the device or the stack
 * has stripped back behind the addresses, as it was on the wire.
 */
static noinline void tp4_copy_tagged(const struct sk_buff *skb, u32 pos,
				     void *to, u32 len)
{
	struct {
		__be16 proto;
		__be16 tci;
	} tag = { skb->vlan_proto, htons(skb_vlan_tag_get(skb)) };
	const u32 tag_pos = 2 * ETH_ALEN;
	u32 nr;

	if (pos < tag_pos) {
		nr = min(len, tag_pos - pos);
		skb_copy_bits(skb, pos, to, nr);
		pos += nr;
		to += nr;
		len -= nr;
	}
	if (len && pos < tag_pos + VLAN_HLEN) {
		nr = min(len, tag_pos + VLAN_HLEN - pos);
		memcpy(to, (void *)&tag + pos - tag_pos, nr);
		pos += nr;
		to += nr;
		len -= nr;
	}
	if (len)
		skb_copy_bits(skb, pos - VLAN_HLEN, to, len);
}

/* Inlined: with small packets, calls cost as much as the copy. */
static __always_inline void tp4_rx_copy(const struct sk_buff *skb, u32 from,
					bool tagged, void *to, u32 len)
{
	if (unlikely(tagged))
		tp4_copy_tagged(skb, from, to, len);
	else if (from + len <= skb_headlen(skb))
		skb_copy_from_linear_data_offset(skb, from, to, len);
	else
		skb_copy_bits(skb, from, to, len);
}

/* Fill the frame at @pos from byte @from of the packet on, and publish @desc. */
static __always_inline void
tp4_rx_fill_one(struct tp4_queue *q, unsigned long pos,
		const struct sk_buff *skb, u32 from, bool tagged,
		struct tpacket4_desc *desc)
{
	void *to;

	desc->idx = q->held[pos & q->mask];
	to = tp4_area_frame(q->area, desc->idx) + desc->offset;
	tp4_rx_copy(skb, from, tagged, to, desc->len);
	tp4q_publish(q, pos, desc);
}

/* Same for the frames of a packet after the first, last to first */
static noinline void tp4_rx_fill_rest(struct tp4_queue *q, unsigned long pos,
				      u32 nr, const struct sk_buff *skb,
				      u32 len, bool tagged)
{
	u32 size = q->area->frame_size, from = q->room + (nr - 2) * size;
	struct tpacket4_desc desc = { .len = len - from };

	while (--nr) {
		tp4_rx_fill_one(q, pos + nr, skb, from, tagged, &desc);
		from -= size;
		desc.len = size;
		desc.flags = TP4_PKT_CONT;
	}
}

/* Fill the frames of a packet and publish its descriptors, last to first. */
static void tp4_rx_fill(struct tp4_queue *q, unsigned long pos, u32 nr,
			const struct sk_buff *skb, u32 len, bool tagged)
{
	struct tpacket4_desc desc = {
		.offset = q->offset,
		.len = len,
	};

	if (unlikely(nr > 1)) {
		tp4_rx_fill_rest(q, pos, nr, skb, len, tagged);
		desc.len = q->room;
		desc.flags |= TP4_PKT_CONT;
	}
	tp4_rx_fill_one(q, pos, skb, 0, tagged, &desc);
}

/**
 * tp4_rx_room() - check whether a socket's Rx ring has room for a packet
 * @po:		the packet socket, with an Rx ring
 * @pow_off:	0 to check for one frame, n to check for 1/2^n of the ring
 *
 * Context: The socket's packet hook, or under sk_receive_queue.lock, so that
 * packet_set_ring() cannot replace the ring.
 * Return: true if it has; without the lock, this is only a hint.
 */
bool tp4_rx_room(const struct packet_sock *po, unsigned int pow_off)
{
	return tp4q_rx_room(po->tp4_queue[TP4_RX], pow_off);
}

/* Packet hook of a socket with a V4 Rx ring, in softirq, or in process context
 * with bottom halves disabled, on the RCU read side
 */
static int tp4_rcv(struct sk_buff *skb, struct net_device *dev,
		   struct packet_type *pt, struct net_device *orig_dev)
{
	enum skb_drop_reason reason = SKB_CONSUMED;
	struct sock *sk = pt->af_packet_priv;
	u8 *skb_head = skb->data;
	struct packet_sock *po;
	struct tp4_queue *q;
	int skb_len = skb->len;
	bool tagged = false;
	unsigned long pos;
	u32 len, nr;

	/* Nothing is received before bind(). */
	po = pkt_sk(sk);
	if (skb->pkt_type == PACKET_LOOPBACK ||
	    unlikely(!packet_sock_flag(po, PACKET_SOCK_TP4_BOUND)) ||
	    !net_eq(dev_net(dev), sock_net(sk)))
		goto drop;

	q = po->tp4_queue[TP4_RX];
	if (dev_has_header(dev)) {
		if (likely(sk->sk_type == SOCK_RAW))
			skb_push(skb, skb->data - skb_mac_header(skb));
		else if (skb->pkt_type == PACKET_OUTGOING)
			skb_pull(skb, skb_network_offset(skb));
	}

	len = skb_frags_readable(skb) ? skb->len : skb_headlen(skb);
	len = tp4_run_filter(skb, sk, len);
	if (!len)
		goto restore;
	if (unlikely(skb_vlan_tag_present(skb) && sk->sk_type == SOCK_RAW)) {
		tagged = true;
		len += VLAN_HLEN;
	}
	nr = tp4_rx_frames(q, len);

	spin_lock(&sk->sk_receive_queue.lock);
	if (unlikely(!tp4q_rx_reserve(q, nr, &pos))) {
		tp4q_rx_count_drop(q);
		spin_unlock(&sk->sk_receive_queue.lock);
		reason = SKB_DROP_REASON_PACKET_SOCK_ERROR;
		sk->sk_data_ready(sk);
		goto restore;
	}
	po->stats.stats1.tp_packets++;
	spin_unlock(&sk->sk_receive_queue.lock);

	tp4_rx_fill(q, pos, nr, skb, len, tagged);
	sk->sk_data_ready(sk);
restore:
	if (skb_head != skb->data && skb_shared(skb)) {
		skb->data = skb_head;
		skb->len = skb_len;
	}
drop:
	sk_skb_reason_drop(sk, skb, reason);
	return 0;
}

/**
 * tp4_rx_set_hook() - set the packet hook of a socket with a V4 Rx ring
 * @po:	the packet socket; without the ring, nothing is done
 *
 * Context: Under pg_vec_lock, while the hook is not registered.
 */
void tp4_rx_set_hook(struct packet_sock *po)
{
	if (po->tp4_queue[TP4_RX])
		po->prot_hook.func = tp4_rcv;
}
