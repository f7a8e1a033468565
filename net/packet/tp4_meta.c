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
#include <linux/sctp.h>
#include <linux/skbuff.h>
#include <linux/stddef.h>
#include <linux/tcp.h>
#include <linux/timekeeping.h>
#include <linux/udp.h>
#include <linux/virtio_byteorder.h>
#include <linux/virtio_net.h>
#include <net/ip.h>
#include <net/mpls.h>
#include <net/sock.h>

#include "internal.h"
#include "tp4_meta.h"
#include "tp4_tunnel.h"

#define TP4_META_OF_CSUM	(TP4_META_CSUM_CRC32C | TP4_META_TUNNEL)
#define TP4_META_TX		(TP4_META_CSUM | TP4_META_GSO | \
				 TP4_META_OF_CSUM | TP4_META_TX_LAUNCH)

#define TP4_GSO_UDP		(SKB_GSO_UDP_TUNNEL | SKB_GSO_UDP_TUNNEL_CSUM)

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

static bool tp4_meta_is_tunnel(const struct sk_buff *skb)
{
	return skb->encapsulation || eth_p_mpls(skb->protocol);
}

/* Remove the type of the tunnel from a GSO type. */
static unsigned int tp4_meta_inner_type(unsigned int type,
					unsigned int tunnel)
{
	/* GRO does not always tell these from those without checksums. */
	if (type & SKB_GSO_GRE && tunnel & SKB_GSO_GRE_CSUM)
		type ^= SKB_GSO_GRE | SKB_GSO_GRE_CSUM;
	/* The header of another tunnel in UDP (fou, gue) is constant. */
	if (tunnel & TP4_GSO_UDP)
		type &= ~(SKB_GSO_IPXIP4 | SKB_GSO_IPXIP6 | SKB_GSO_GRE);
	return type ^ tunnel;
}

/* Check that the headers of a GSO packet are those of its type. @t is its
 * tunnel, or NULL.
 */
static bool tp4_meta_match_gso(const struct sk_buff *skb,
			       const struct tp4_tunnel *t)
{
	int transport = t ? t->transport :
		tp4_transport_at(skb, skb_checksum_start_offset(skb));
	unsigned int type = skb_shinfo(skb)->gso_type;

	if (type & SKB_GSO_UDP_L4 || (!t && type & SKB_GSO_UDP))
		return transport == IPPROTO_UDP;
	if (t && !(type & (t->inner_protocol == htons(ETH_P_IP) ?
			   SKB_GSO_TCPV4 : SKB_GSO_TCPV6)))
		return false;
	return transport == IPPROTO_TCP;
}

/* Return VIRTIO_NET_HDR_GSO_NONE for packets that metadata cannot describe. */
static u8 tp4_meta_gso_type(const struct sk_buff *skb)
{
	unsigned int type = skb_shinfo(skb)->gso_type;
	u8 ecn = type & SKB_GSO_TCP_ECN ? VIRTIO_NET_HDR_GSO_ECN : 0;
	bool partial = skb->ip_summed == CHECKSUM_PARTIAL;
	struct tp4_tunnel t;

	type &= ~(SKB_GSO_TCP_ECN | SKB_GSO_TCP_FIXEDID | SKB_GSO_DODGY);
	if (unlikely(tp4_meta_is_tunnel(skb))) {
		if (!partial || !tp4_tunnel_find_skb(skb, &t) ||
		    !tp4_meta_match_gso(skb, &t))
			return VIRTIO_NET_HDR_GSO_NONE;
		type = tp4_meta_inner_type(type, t.gso_type);
	} else if (partial && !tp4_meta_match_gso(skb, NULL)) {
		return VIRTIO_NET_HDR_GSO_NONE;
	}
	switch (type) {
	case SKB_GSO_TCPV4:
		return VIRTIO_NET_HDR_GSO_TCPV4 | ecn;
	case SKB_GSO_TCPV6:
		return VIRTIO_NET_HDR_GSO_TCPV6 | ecn;
	case SKB_GSO_UDP:
		return VIRTIO_NET_HDR_GSO_UDP;
	case SKB_GSO_UDP_L4:
		if (partial)
			return VIRTIO_NET_HDR_GSO_UDP_L4;
		fallthrough;
	default:
		return VIRTIO_NET_HDR_GSO_NONE;
	}
}

/**
 * tp4_meta_can_describe() - check whether a GSO packet can be sent again
 * @skb:	the packet
 *
 * Context: Any. Does not change the skb.
 * Return: true if its metadata would have a GSO type.
 */
bool tp4_meta_can_describe(const struct sk_buff *skb)
{
	return tp4_meta_gso_type(skb) != VIRTIO_NET_HDR_GSO_NONE;
}
EXPORT_SYMBOL_IF_KUNIT(tp4_meta_can_describe);

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
	struct tp4_tunnel tunnel;
	u16 inner_start = 0;
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
		if (unlikely(tp4_meta_is_tunnel(skb)) &&
		    tp4_tunnel_find_skb(skb, &tunnel)) {
			flags |= TP4_META_TUNNEL;
			inner_start = tunnel.inner_nh + tag_len;
		}
	} else if (skb->pkt_type != PACKET_OUTGOING &&
		   skb_csum_unnecessary(skb)) {
		flags |= TP4_META_RX_CSUM_VALID;
	}
	if (skb_is_gso(skb)) {
		flags |= TP4_META_GSO;
		gso_size = skb_shinfo(skb)->gso_size;
		gso_type = tp4_meta_gso_type(skb);
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
	to->inner_start = inner_start;
	to->reserved1 = 0;
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
	to->inner_start = 0;
	to->reserved1 = 0;
	memset(to->reserved, 0, sizeof(to->reserved));
	return flags;
}

/**
 * tp4_meta_read() - copy the request of a packet to send
 * @from:	the metadata, in a frame that user space can write to
 * @to:		set to the flags that request something, and to the members that
 *		belong to them
 *
 * Reads each member once.
 *
 * Context: Any.
 * Return: 0, or -EINVAL for an invalid flag or no GSO type.
 */
int tp4_meta_read(const struct tpacket4_meta *from, struct tpacket4_meta *to)
{
	u32 flags = READ_ONCE(from->flags);

	if (flags & ~(TP4_META_TX | TP4_META_RX) ||
	    (flags & TP4_META_OF_CSUM && !(flags & TP4_META_CSUM)))
		return -EINVAL;

	to->flags = flags & TP4_META_TX;
	if (flags & TP4_META_TX_LAUNCH)
		to->tstamp = READ_ONCE(from->tstamp);
	if (flags & TP4_META_CSUM) {
		to->csum_start = READ_ONCE(from->csum_start);
		to->csum_offset = READ_ONCE(from->csum_offset);
	}
	if (flags & TP4_META_GSO) {
		to->gso_type = READ_ONCE(from->gso_type);
		to->gso_size = READ_ONCE(from->gso_size);
		if (to->gso_type == VIRTIO_NET_HDR_GSO_NONE)
			return -EINVAL;
	}
	if (flags & TP4_META_TUNNEL)
		to->inner_start = READ_ONCE(from->inner_start);
	return 0;
}

/* Convert a checksum and GSO request to a virtio_net_hdr. */
static int tp4_meta_to_vnet_hdr(const struct tpacket4_meta *m, u32 header,
				struct virtio_net_hdr *hdr)
{
	bool le = virtio_legacy_is_little_endian();
	u32 start;

	memset(hdr, 0, sizeof(*hdr));
	if (m->flags & TP4_META_CSUM) {
		start = header + m->csum_start;
		if (start > U16_MAX)
			return -EINVAL;
		hdr->flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
		hdr->csum_start = __cpu_to_virtio16(le, start);
		hdr->csum_offset = __cpu_to_virtio16(le, m->csum_offset);
	}
	if (m->flags & TP4_META_GSO) {
		hdr->gso_type = m->gso_type;
		hdr->gso_size = __cpu_to_virtio16(le, m->gso_size);
	}
	return 0;
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

static int tp4_meta_set_tunnel(struct sk_buff *skb, u32 inner_nh)
{
	u32 start = skb_checksum_start_offset(skb);
	struct tp4_tunnel t;

	if (!tp4_tunnel_find(skb, inner_nh, start, &t) ||
	    (skb_is_gso(skb) && !tp4_meta_match_gso(skb, &t)))
		return -EINVAL;
	if (!skb_csum_is_sctp(skb) && !tp4_meta_csum_is_of(skb, t.transport))
		return -EINVAL;
	tp4_tunnel_set(skb, &t);
	return 0;
}

/* Request a CRC32c instead of a checksum. Devices find it by the headers. */
static int tp4_meta_set_crc32c(struct sk_buff *skb, u32 inner_nh)
{
#if IS_ENABLED(CONFIG_IP_SCTP)
	u32 start = skb_checksum_start_offset(skb);
	struct tp4_tunnel t;
	int transport;

	if (skb_is_gso(skb) ||
	    !pskb_may_pull(skb, start + sizeof(struct sctphdr)) ||
	    skb->csum_offset != offsetof(struct sctphdr, checksum))
		return -EINVAL;
	if (!inner_nh)
		transport = tp4_transport_at(skb, start);
	else
		transport = tp4_tunnel_find(skb, inner_nh, start, &t) ?
			    t.transport : -1;
	if (transport != IPPROTO_SCTP)
		return -EINVAL;
	skb->csum_not_inet = 1;
	return 0;
#else
	return -EINVAL;
#endif
}

/**
 * tp4_meta_apply() - apply the checksum and GSO request of a packet to its skb
 * @m:		the request, from tp4_meta_read()
 * @skb:	the complete packet, with its device and its network header
 * @header:	length of the link layer header if the data did not include it
 *
 * Context: Any.
 * Return: 0, or -EINVAL if the request is invalid for the packet.
 */
int tp4_meta_apply(const struct tpacket4_meta *m, struct sk_buff *skb,
		   u32 header)
{
	u32 inner_nh = m->flags & TP4_META_TUNNEL ? header + m->inner_start : 0;
	struct virtio_net_hdr hdr;
	int err;

	if (!(m->flags & (TP4_META_CSUM | TP4_META_GSO)))
		return 0;
	err = tp4_meta_to_vnet_hdr(m, header, &hdr);
	if (!err)
		err = virtio_net_hdr_to_skb(skb, &hdr,
					    virtio_legacy_is_little_endian());
	if (err)
		return err;
	if (hdr.gso_type)
		virtio_net_hdr_set_proto(skb, &hdr);
	if (likely(!(m->flags & TP4_META_OF_CSUM)))
		return skb_is_gso(skb) && skb->ip_summed == CHECKSUM_PARTIAL &&
		       !tp4_meta_match_gso(skb, NULL) ? -EINVAL : 0;
	if (m->flags & TP4_META_CSUM_CRC32C)
		err = tp4_meta_set_crc32c(skb, inner_nh);
	if (!err && m->flags & TP4_META_TUNNEL)
		err = tp4_meta_set_tunnel(skb, inner_nh);
	return err;
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
	struct tpacket4_meta m;
	int err;

	err = tp4_meta_read(from, &m);
	if (err)
		return err;

	if (m.flags & TP4_META_TX_LAUNCH) {
		if (!sock_flag(sk, SOCK_TXTIME))
			return -EINVAL;
		skb_set_delivery_type_by_clockid(skb, m.tstamp, sk->sk_clockid);
	}
	err = tp4_meta_apply(&m, skb, header);
	if (err || skb->ip_summed != CHECKSUM_PARTIAL || skb_is_gso(skb) ||
	    m.flags & TP4_META_OF_CSUM)
		return err;
	return tp4_meta_csum_is_usual(skb) ? 0 : skb_checksum_help(skb);
}
