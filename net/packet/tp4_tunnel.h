/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PACKET_TP4_TUNNEL_H__
#define __PACKET_TP4_TUNNEL_H__

#include <linux/skbuff.h>
#include <linux/types.h>

/**
 * struct tp4_tunnel - the headers of a packet in a tunnel
 * @outer_nh:	the first IP header or MPLS label, from the start of the data
 * @outer_th:	the header behind the outer IP header
 * @inner_nh:	the inner IP header
 * @inner_th:	the inner transport header
 * @inner_protocol: ETH_P_IP or ETH_P_IPV6
 * @transport:	the inner transport protocol
 * @mpls:	the packet has MPLS labels, not an outer IP header
 * @gso_type:	SKB_GSO_* of the tunnel
 */
struct tp4_tunnel {
	u32	outer_nh;
	u32	outer_th;
	u32	inner_nh;
	u32	inner_th;
	__be16	inner_protocol;
	u8	transport;
	bool	mpls;
	u32	gso_type;
};

int tp4_transport_at(const struct sk_buff *skb, u32 pos);
bool tp4_tunnel_find(const struct sk_buff *skb, u32 inner_nh, u32 inner_th,
		     struct tp4_tunnel *t);
bool tp4_tunnel_find_skb(const struct sk_buff *skb, struct tp4_tunnel *t);
void tp4_tunnel_set(struct sk_buff *skb, const struct tp4_tunnel *t);

#endif
