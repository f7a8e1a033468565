// SPDX-License-Identifier: GPL-2.0
/* The metadata of a packet: from skbs, and to them. */

#include <linux/errno.h>
#include <linux/if_packet.h>
#include <linux/if_vlan.h>
#include <linux/ktime.h>
#include <linux/net_tstamp.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/stddef.h>
#include <linux/timekeeping.h>
#include <linux/virtio_byteorder.h>
#include <linux/virtio_net.h>
#include <net/sock.h>

#include "internal.h"
#include "tp4_meta.h"

/* What a received packet may have when it is sent as it is. */
#define TP4_META_RX	(TP4_META_RX_TS_SOFTWARE | TP4_META_RX_TS_HARDWARE | \
			 TP4_META_RX_CSUM_VALID | TP4_META_RX_HASH | \
			 TP4_META_RX_VLAN)
#define TP4_META_TX	(TP4_META_CSUM | TP4_META_GSO | TP4_META_TX_LAUNCH)

static_assert(sizeof(struct tpacket4_meta) == 64);
/* All that every capture reads */
static_assert(offsetof(struct tpacket4_meta, addr) == 32);

/* As tpacket_get_timestamp(), in one number. */
static u64 tp4_meta_stamp(struct sk_buff *skb, unsigned int which, u32 *flags)
{
	ktime_t stamp;

	stamp = skb_hwtstamps(skb)->hwtstamp;
	if ((which & SOF_TIMESTAMPING_RAW_HARDWARE) && stamp) {
		*flags |= TP4_META_RX_TS_HARDWARE;
		return ktime_to_ns(stamp);
	}
	stamp = skb_tstamp(skb);
	if (stamp) {
		*flags |= TP4_META_RX_TS_SOFTWARE;
		return ktime_to_ns(stamp);
	}
	return ktime_get_real_ns();
}

/* One that tp4_meta_to_skb() takes to mean the same, or none: the segments of a
 * tunnel's packets need more than virtio_net's header tells.
 */
static u8 tp4_meta_gso_type(unsigned int type)
{
	u8 ecn = type & SKB_GSO_TCP_ECN ? VIRTIO_NET_HDR_GSO_ECN : 0;

	switch (type & ~(SKB_GSO_TCP_ECN | SKB_GSO_TCP_FIXEDID |
			 SKB_GSO_DODGY)) {
	case SKB_GSO_TCPV4:
		return VIRTIO_NET_HDR_GSO_TCPV4 | ecn;
	case SKB_GSO_TCPV6:
		return VIRTIO_NET_HDR_GSO_TCPV6 | ecn;
	case SKB_GSO_UDP:
		return VIRTIO_NET_HDR_GSO_UDP;
	case SKB_GSO_UDP_L4:
		return VIRTIO_NET_HDR_GSO_UDP_L4;
	default:
		return VIRTIO_NET_HDR_GSO_NONE;
	}
}

/**
 * tp4_meta_from_skb() - tell what is known of a received packet
 * @to:		where to, in a frame that the program can write to
 * @skb:	the packet; its data starts where the socket's does
 * @sk:		the packet socket
 * @orig_dev:	the device it came in by
 *
 * With SOCK_RAW, a VLAN tag that @skb keeps apart goes back to the data, so what
 * lies behind it is that much further on.
 *
 * Context: In the socket's packet hook.
 */
void tp4_meta_from_skb(struct tpacket4_meta *to, struct sk_buff *skb,
		       const struct sock *sk,
		       const struct net_device *orig_dev)
{
	const struct packet_sock *po = pkt_sk(sk);
	const struct net_device *dev = skb->dev;
	u16 csum_start = 0, csum_offset = 0, gso_size = 0;
	u16 vlan_tci = 0, vlan_tpid = 0, tag_len = 0;
	__be16 protocol = skb->protocol;
	u32 flags = 0, hash = skb->hash;
	u8 gso_type = 0;

	to->tstamp = tp4_meta_stamp(skb, READ_ONCE(po->tp_tstamp), &flags);

	if (hash)
		flags |= TP4_META_RX_HASH;

	if (unlikely(skb_vlan_tag_present(skb))) {
		flags |= TP4_META_RX_VLAN;
		vlan_tci = skb_vlan_tag_get(skb);
		vlan_tpid = ntohs(skb->vlan_proto);
		if (sk->sk_type == SOCK_RAW)
			tag_len = VLAN_HLEN;
	} else if (unlikely(sk->sk_type == SOCK_DGRAM &&
			    eth_type_vlan(protocol))) {
		flags |= TP4_META_RX_VLAN;
		vlan_tci = vlan_get_tci(skb, skb->dev);
		vlan_tpid = ntohs(protocol);
	}
	if (sk->sk_type == SOCK_DGRAM)
		protocol = vlan_get_protocol_dgram(skb);

	if (skb->ip_summed == CHECKSUM_PARTIAL) {
		flags |= TP4_META_CSUM;
		if (skb_csum_is_sctp(skb))
			flags |= TP4_META_CSUM_CRC32C;
		csum_start = skb_checksum_start_offset(skb) + tag_len;
		csum_offset = skb->csum_offset;
	} else if (skb->pkt_type != PACKET_OUTGOING &&
		   skb_csum_unnecessary(skb)) {
		flags |= TP4_META_RX_CSUM_VALID;
	}
	if (skb_is_gso(skb)) {
		flags |= TP4_META_GSO;
		gso_size = skb_shinfo(skb)->gso_size;
		gso_type = tp4_meta_gso_type(skb_shinfo(skb)->gso_type);
	}

	to->flags = flags;
	to->wire_len = skb->len + tag_len;
	if (unlikely(packet_sock_flag(po, PACKET_SOCK_ORIGDEV)))
		to->ifindex = orig_dev->ifindex;
	else
		to->ifindex = dev->ifindex;
	to->protocol = protocol;
	to->hatype = dev->type;
	to->vlan_tci = vlan_tci;
	to->vlan_tpid = vlan_tpid;
	to->pkt_type = skb->pkt_type;
	memset(to->addr, 0, sizeof(to->addr));
	to->halen = dev_parse_header(skb, to->addr);
	to->xdp_meta_len = 0;
	to->hash = hash;
	to->gso_size = gso_size;
	to->csum_start = csum_start;
	to->csum_offset = csum_offset;
	to->gso_type = gso_type;
	to->reserved0 = 0;
	memset(to->reserved, 0, sizeof(to->reserved));
}

/**
 * tp4_meta_to_skb() - do as the metadata of a packet says
 * @from:	the metadata, in a frame that the program can write to
 * @skb:	the packet, complete, its headers parsed
 * @sk:		the packet socket
 * @header:	bytes of link layer header that the data did not have
 *
 * Each field is read once.
 *
 * Context: Process context.
 * Return: 0, or -EINVAL where the metadata does not fit the packet or the socket.
 */
int tp4_meta_to_skb(const struct tpacket4_meta *from, struct sk_buff *skb,
		    const struct sock *sk, u32 header)
{
	bool le = virtio_legacy_is_little_endian();
	u32 flags = READ_ONCE(from->flags);
	struct virtio_net_hdr hdr = {};
	u32 start;
	int err;

	if (flags & ~(TP4_META_TX | TP4_META_RX))
		return -EINVAL;

	if (flags & TP4_META_TX_LAUNCH) {
		if (!sock_flag(sk, SOCK_TXTIME))
			return -EINVAL;
		skb_set_delivery_type_by_clockid(skb, READ_ONCE(from->tstamp),
						 sk->sk_clockid);
	}

	if (!(flags & (TP4_META_CSUM | TP4_META_GSO)))
		return 0;
	if (flags & TP4_META_CSUM) {
		start = header + READ_ONCE(from->csum_start);
		if (start > U16_MAX)
			return -EINVAL;
		hdr.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
		hdr.csum_start = __cpu_to_virtio16(le, start);
		hdr.csum_offset =
			__cpu_to_virtio16(le, READ_ONCE(from->csum_offset));
	}
	if (flags & TP4_META_GSO) {
		hdr.gso_type = READ_ONCE(from->gso_type);
		if (hdr.gso_type == VIRTIO_NET_HDR_GSO_NONE)
			return -EINVAL;
		hdr.gso_size =
			__cpu_to_virtio16(le, READ_ONCE(from->gso_size));
	}
	err = virtio_net_hdr_to_skb(skb, &hdr, le);
	if (!err && hdr.gso_type)
		virtio_net_hdr_set_proto(skb, &hdr);
	return err;
}
