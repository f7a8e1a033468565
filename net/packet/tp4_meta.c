// SPDX-License-Identifier: GPL-2.0
/* Packet metadata: written for received packets, read for packets to send */

#include <kunit/visibility.h>
#include <linux/errno.h>
#include <linux/etherdevice.h>
#include <linux/if_packet.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/ktime.h>
#include <linux/net_tstamp.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/stddef.h>
#include <linux/tcp.h>
#include <linux/timekeeping.h>
#include <linux/udp.h>
#include <linux/virtio_byteorder.h>
#include <linux/virtio_net.h>
#include <net/ip.h>
#include <net/sock.h>

#include "internal.h"
#include "tp4_meta.h"

#define TP4_META_TX	(TP4_META_CSUM | TP4_META_GSO | TP4_META_TX_LAUNCH)

static_assert(sizeof(struct tpacket4_meta) == 64);
/* The members that every capture reads are in the first 32 bytes. */
static_assert(offsetof(struct tpacket4_meta, addr) == 32);

/* Same as tpacket_get_timestamp(), in nanoseconds */
static u64 tp4_meta_stamp(struct sk_buff *skb, unsigned int which, u32 *flags)
{
	ktime_t stamp;

	if (unlikely(which & SOF_TIMESTAMPING_RAW_HARDWARE)) {
		stamp = skb_hwtstamps(skb)->hwtstamp;
		if (stamp) {
			*flags |= TP4_META_RX_TS_HARDWARE;
			return ktime_to_ns(stamp);
		}
	}
	stamp = skb_tstamp(skb);
	if (stamp) {
		*flags |= TP4_META_RX_TS_SOFTWARE;
		return ktime_to_ns(stamp);
	}
	return ktime_get_real_ns();
}

/* Return VIRTIO_NET_HDR_GSO_NONE for types that virtio_net_hdr cannot describe,
 * such as tunnels.
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
 * tp4_meta_from_skb() - write the metadata of a received skb
 * @to:		the metadata, in a frame that user space can write to
 * @skb:	the packet; its data starts where that of the socket does
 * @sk:		the packet socket
 * @orig_dev:	the device that received it
 *
 * With SOCK_RAW, a VLAN tag in the skb's metadata is put back into the data,
 * which shifts the offsets behind it.
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
	if (unlikely(sk->sk_type == SOCK_DGRAM && eth_type_vlan(protocol)))
		protocol = __vlan_get_protocol_offset(skb, protocol,
						      skb_mac_offset(skb),
						      NULL);

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
EXPORT_SYMBOL_IF_KUNIT(tp4_meta_from_skb);

/**
 * tp4_meta_from_data() - write the metadata of a received packet without an skb
 * @to:		the metadata, in a frame that user space can write to
 * @data:	start of the Ethernet packet, which user space can write to
 * @len:	bytes at @data
 * @dev:	the device that received it
 *
 * Does not write @tstamp, @flags, @wire_len, @xdp_meta_len and @hash of struct
 * tpacket4_meta, which only the caller knows.
 *
 * Context: Softirq (NAPI).
 * Return: the flags for the members that were written.
 */
u32 tp4_meta_from_data(struct tpacket4_meta *to, const void *data, u32 len,
		       const struct net_device *dev)
{
	struct vlan_ethhdr eth;
	__be16 protocol;
	u32 flags = 0;

	if (likely(len >= sizeof(eth))) {
		memcpy(&eth, data, sizeof(eth));
	} else {
		memset(&eth, 0, sizeof(eth));
		memcpy(&eth, data, len);
	}
	protocol = eth.h_vlan_proto;
	to->vlan_tci = 0;
	to->vlan_tpid = 0;
	if (unlikely(eth_type_vlan(protocol)) && len >= sizeof(eth)) {
		flags |= TP4_META_RX_VLAN;
		to->vlan_tci = ntohs(eth.h_vlan_TCI);
		to->vlan_tpid = ntohs(protocol);
		protocol = eth.h_vlan_encapsulated_proto;
	}
	/* Same as eth_type_trans() */
	if (unlikely(!eth_proto_is_802_3(protocol)))
		protocol = !flags && eth.h_vlan_TCI == htons(0xffff) ?
			   htons(ETH_P_802_3) : htons(ETH_P_802_2);

	to->ifindex = dev->ifindex;
	to->protocol = protocol;
	to->hatype = dev->type;
	if (likely(ether_addr_equal(eth.h_dest, dev->dev_addr)))
		to->pkt_type = PACKET_HOST;
	else if (is_broadcast_ether_addr(eth.h_dest))
		to->pkt_type = PACKET_BROADCAST;
	else if (is_multicast_ether_addr(eth.h_dest))
		to->pkt_type = PACKET_MULTICAST;
	else
		to->pkt_type = PACKET_OTHERHOST;
	to->halen = ETH_ALEN;
	memcpy(to->addr, eth.h_source, ETH_ALEN);
	memset(to->addr + ETH_ALEN, 0, sizeof(to->addr) - ETH_ALEN);
	to->gso_size = 0;
	to->csum_start = 0;
	to->csum_offset = 0;
	to->gso_type = 0;
	to->reserved0 = 0;
	memset(to->reserved, 0, sizeof(to->reserved));
	return flags;
}

/* Convert checksum and GSO metadata to a virtio_net_hdr. @header is the length
 * of the link layer header if the data does not include it.
 */
static int tp4_meta_read(const struct tpacket4_meta *from, u32 flags,
			 u32 header, struct virtio_net_hdr *hdr)
{
	bool le = virtio_legacy_is_little_endian();
	u32 start;

	memset(hdr, 0, sizeof(*hdr));
	if (flags & TP4_META_CSUM) {
		start = header + READ_ONCE(from->csum_start);
		if (start > U16_MAX)
			return -EINVAL;
		hdr->flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
		hdr->csum_start = __cpu_to_virtio16(le, start);
		hdr->csum_offset =
			__cpu_to_virtio16(le, READ_ONCE(from->csum_offset));
	}
	if (flags & TP4_META_GSO) {
		hdr->gso_type = READ_ONCE(from->gso_type);
		if (hdr->gso_type == VIRTIO_NET_HDR_GSO_NONE)
			return -EINVAL;
		hdr->gso_size =
			__cpu_to_virtio16(le, READ_ONCE(from->gso_size));
	}
	return 0;
}

/**
 * tp4_meta_to_vnet_hdr() - convert the metadata of a packet for a driver
 * @from:	the metadata, in a frame that user space can write to
 * @hdr:	set to the checksum and GSO request
 *
 * Reads each member once.
 *
 * Context: Any.
 * Return: 0, -EINVAL if the metadata is invalid, or -EOPNOTSUPP for a launch
 * time, which no driver supports.
 */
int tp4_meta_to_vnet_hdr(const struct tpacket4_meta *from,
			 struct virtio_net_hdr *hdr)
{
	u32 flags = READ_ONCE(from->flags);

	if (flags & ~(TP4_META_TX | TP4_META_RX))
		return -EINVAL;
	if (flags & TP4_META_TX_LAUNCH)
		return -EOPNOTSUPP;
	return tp4_meta_read(from, flags, 0, hdr);
}

/* Check for the checksum of a TCP or UDP header. */
static bool tp4_meta_csum_is_of(const struct sk_buff *skb, u8 proto)
{
	switch (proto) {
	case IPPROTO_TCP:
		return skb->csum_offset == offsetof(struct tcphdr, check) &&
		       tcp_hdrlen(skb) >= sizeof(struct tcphdr);
	case IPPROTO_UDP:
		return skb->csum_offset == offsetof(struct udphdr, check);
	default:
		return false;
	}
}

/* Check whether each device that offloads checksums has this one: that of TCP or
 * UDP, right behind the IP header. Drivers go by the headers. For one elsewhere,
 * some compute another checksum, or give the hardware an invalid descriptor.
 */
static bool tp4_meta_csum_is_usual(const struct sk_buff *skb)
{
	int nh = skb_network_offset(skb), th = skb_transport_offset(skb);
	const struct ipv6hdr *ip6h = ipv6_hdr(skb);
	const struct iphdr *iph = ip_hdr(skb);

	switch (vlan_get_protocol(skb)) {
	case htons(ETH_P_IP):
		return th - nh >= (int)sizeof(*iph) && iph->version == 4 &&
		       th - nh == 4 * iph->ihl && !ip_is_fragment(iph) &&
		       tp4_meta_csum_is_of(skb, iph->protocol);
	case htons(ETH_P_IPV6):
		return th - nh == sizeof(*ip6h) && ip6h->version == 6 &&
		       tp4_meta_csum_is_of(skb, ip6h->nexthdr);
	default:
		return false;
	}
}

/**
 * tp4_meta_to_skb() - apply the metadata of a packet to its skb
 * @from:	the metadata, in a frame that user space can write to
 * @skb:	the complete packet, with parsed headers
 * @sk:		the packet socket
 * @header:	length of the link layer header if the data did not include it
 *
 * Reads each member once. A checksum that a device may not be able to compute is
 * computed here.
 *
 * Context: Process context.
 * Return: 0, or an error if the metadata is invalid for the packet or the
 * socket.
 */
int tp4_meta_to_skb(const struct tpacket4_meta *from, struct sk_buff *skb,
		    const struct sock *sk, u32 header)
{
	u32 flags = READ_ONCE(from->flags);
	struct virtio_net_hdr hdr;
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
	err = tp4_meta_read(from, flags, header, &hdr);
	if (err)
		return err;
	err = virtio_net_hdr_to_skb(skb, &hdr,
				    virtio_legacy_is_little_endian());
	if (err)
		return err;
	if (hdr.gso_type)
		virtio_net_hdr_set_proto(skb, &hdr);
	else if (!tp4_meta_csum_is_usual(skb))
		return skb_checksum_help(skb);
	return 0;
}
