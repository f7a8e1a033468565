// SPDX-License-Identifier: GPL-2.0
/* Headers of packets in tunnels, for checksum and GSO requests
 *
 * The same function describes received packets and checks packets to send, so
 * that metadata describes no packet that cannot be sent again.
 */

#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/if_tunnel.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/mpls.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/udp.h>
#include <net/gre.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/mpls.h>

#include "tp4_tunnel.h"

/* Get the position and the protocol of the network header. VLAN tags in the
 * data are before it.
 */
static __be16 tp4_find_network(const struct sk_buff *skb, u32 *pos)
{
	int offset = skb_mac_offset(skb) + offsetof(struct ethhdr, h_proto);
	int end = offset + VLAN_MAX_DEPTH * VLAN_HLEN;
	__be16 *proto, buf;

	if (skb->dev->type != ARPHRD_ETHER) {
		*pos = skb_network_offset(skb);
		return skb->protocol;
	}
	for (; offset < end; offset += VLAN_HLEN) {
		proto = skb_header_pointer(skb, offset, sizeof(buf), &buf);
		if (!proto)
			break;
		if (!eth_type_vlan(*proto)) {
			*pos = offset + sizeof(*proto);
			return *proto;
		}
	}
	return 0;
}

/* Get the protocol behind the IP header at @pos, which has extension headers
 * before @end only, and advance @pos to it.
 * Return: the protocol, or -1.
 */
static int tp4_skip_ipv4(const struct sk_buff *skb, u32 *pos)
{
	struct iphdr buf, *ip;

	ip = skb_header_pointer(skb, *pos, sizeof(buf), &buf);
	if (!ip || ip->version != 4 || ip->ihl < 5 || ip_is_fragment(ip))
		return -1;
	*pos += ip->ihl * 4;
	return ip->protocol;
}

static int tp4_skip_ipv6(const struct sk_buff *skb, u32 *pos, u32 end)
{
	struct ipv6hdr buf, *ip;
	u8 next;

	ip = skb_header_pointer(skb, *pos, sizeof(buf), &buf);
	if (!ip || ip->version != 6)
		return -1;
	next = ip->nexthdr;
	*pos += sizeof(*ip);
	while (*pos < end && (next == NEXTHDR_HOP || next == NEXTHDR_ROUTING ||
			      next == NEXTHDR_DEST)) {
		struct ipv6_opt_hdr opt_buf, *opt;

		opt = skb_header_pointer(skb, *pos, sizeof(opt_buf), &opt_buf);
		if (!opt)
			return -1;
		next = opt->nexthdr;
		*pos += ipv6_optlen(opt);
	}
	return next;
}

static int tp4_skip_ip(const struct sk_buff *skb, __be16 protocol, u32 *pos,
		       u32 end)
{
	switch (protocol) {
	case htons(ETH_P_IP):
		return tp4_skip_ipv4(skb, pos);
	case htons(ETH_P_IPV6):
		return tp4_skip_ipv6(skb, pos, end);
	default:
		return -1;
	}
}

/**
 * tp4_transport_at() - get the protocol of the transport header at a position
 * @skb:	the packet
 * @pos:	offset of the header
 *
 * Context: Any. Does not change the skb.
 * Return: the protocol, or -1 if the header that follows the IP header is not
 * there.
 */
int tp4_transport_at(const struct sk_buff *skb, u32 pos)
{
	__be16 protocol;
	int transport;
	u32 at;

	protocol = tp4_find_network(skb, &at);
	transport = tp4_skip_ip(skb, protocol, &at, pos);
	return at == pos ? transport : -1;
}

static bool tp4_tunnel_mpls(const struct sk_buff *skb, struct tp4_tunnel *t)
{
	struct mpls_label *label, buf;
	u32 pos = t->outer_nh;

	do {
		label = skb_header_pointer(skb, pos, sizeof(buf), &buf);
		pos += sizeof(*label);
		if (!label || pos > t->inner_nh)
			return false;
	} while (!(label->entry & htonl(MPLS_LS_S_MASK)));
	t->mpls = true;
	return pos == t->inner_nh;
}

static bool tp4_tunnel_udp(const struct sk_buff *skb, struct tp4_tunnel *t)
{
	struct udphdr *udp, buf;

	udp = skb_header_pointer(skb, t->outer_th, sizeof(buf), &buf);
	if (!udp || t->inner_nh < t->outer_th + sizeof(*udp))
		return false;
	/* The rest, up to the inner IP header, is the same in all segments. */
	t->gso_type = udp->check ? SKB_GSO_UDP_TUNNEL_CSUM : SKB_GSO_UDP_TUNNEL;
	return true;
}

static bool tp4_tunnel_gre(const struct sk_buff *skb, struct tp4_tunnel *t)
{
	struct gre_base_hdr *gre, buf;
	u32 len = sizeof(*gre);

	gre = skb_header_pointer(skb, t->outer_th, sizeof(buf), &buf);
	if (!gre || gre->flags & (GRE_VERSION | GRE_ROUTING))
		return false;
	len += 4 * (!!GRE_IS_CSUM(gre->flags) + !!GRE_IS_KEY(gre->flags) +
		    !!GRE_IS_SEQ(gre->flags));
	t->gso_type = GRE_IS_CSUM(gre->flags) ? SKB_GSO_GRE_CSUM : SKB_GSO_GRE;
	return t->inner_nh >= t->outer_th + len;
}

/* Check the headers up to the inner IP header. */
static bool tp4_tunnel_outer(const struct sk_buff *skb, struct tp4_tunnel *t)
{
	__be16 protocol = tp4_find_network(skb, &t->outer_nh);

	if (eth_p_mpls(protocol))
		return tp4_tunnel_mpls(skb, t);

	t->outer_th = t->outer_nh;
	switch (tp4_skip_ip(skb, protocol, &t->outer_th, t->inner_nh)) {
	case IPPROTO_UDP:
		return tp4_tunnel_udp(skb, t);
	case IPPROTO_GRE:
		return tp4_tunnel_gre(skb, t);
	case IPPROTO_IPIP:
		if (t->inner_protocol != htons(ETH_P_IP))
			return false;
		break;
	case IPPROTO_IPV6:
		if (t->inner_protocol != htons(ETH_P_IPV6))
			return false;
		break;
	default:
		return false;
	}
	t->gso_type = protocol == htons(ETH_P_IP) ? SKB_GSO_IPXIP4 :
						    SKB_GSO_IPXIP6;
	return t->inner_nh == t->outer_th;
}

/**
 * tp4_tunnel_find() - find the headers of a packet in a tunnel
 * @skb:	the packet
 * @inner_nh:	offset of its inner IP header
 * @inner_th:	offset of its inner transport header
 * @t:		set to the headers
 *
 * Context: Any. Does not change the skb.
 * Return: false if they are not there, or a part of the packet is not known.
 */
bool tp4_tunnel_find(const struct sk_buff *skb, u32 inner_nh, u32 inner_th,
		     struct tp4_tunnel *t)
{
	u8 *version, buf;
	int transport;
	u32 pos;

	*t = (struct tp4_tunnel) {
		.inner_nh = inner_nh,
		.inner_th = inner_th,
	};
	version = skb_header_pointer(skb, inner_nh, sizeof(buf), &buf);
	if (!version)
		return false;
	t->inner_protocol = *version >> 4 == 4 ? htons(ETH_P_IP) :
						 htons(ETH_P_IPV6);
	pos = inner_nh;
	transport = tp4_skip_ip(skb, t->inner_protocol, &pos, inner_th);
	if (transport < 0 || pos != inner_th)
		return false;
	t->transport = transport;
	return tp4_tunnel_outer(skb, t);
}

/**
 * tp4_tunnel_find_skb() - same for a packet of the stack
 * @skb:	the packet, without its transport checksum
 * @t:		set to the headers
 *
 * Context: Any. Does not change the skb.
 * Return: false if the checksum is not that of a packet in a tunnel, or the
 * tunnel is not known.
 */
bool tp4_tunnel_find_skb(const struct sk_buff *skb, struct tp4_tunnel *t)
{
	int inner_nh = skb_inner_network_offset(skb);
	int inner_th = skb_checksum_start_offset(skb);

	if (!skb_inner_network_header_was_set(skb) || inner_nh < 0 ||
	    inner_nh >= inner_th)
		return false;
	return tp4_tunnel_find(skb, inner_nh, inner_th, t);
}

/**
 * tp4_tunnel_set() - let the stack and drivers know of a tunnel
 * @skb:	the packet to send, with its GSO type
 * @t:		its headers
 *
 * Context: Any.
 */
void tp4_tunnel_set(struct sk_buff *skb, const struct tp4_tunnel *t)
{
	skb_set_network_header(skb, t->outer_nh);
	skb_set_inner_protocol(skb, t->inner_protocol);
	skb_set_inner_mac_header(skb, t->inner_nh);
	skb_set_inner_network_header(skb, t->inner_nh);
	skb_set_inner_transport_header(skb, t->inner_th);
	if (!t->mpls) {
		skb_set_transport_header(skb, t->outer_th);
		skb->encapsulation = 1;
	}
	if (skb_is_gso(skb))
		skb_shinfo(skb)->gso_type |= t->gso_type;
}
