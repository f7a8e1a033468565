/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PACKET_TP4_META_H__
#define __PACKET_TP4_META_H__

#include <linux/if_packet.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <net/sock.h>

void tp4_meta_from_skb(struct tpacket4_meta *to, struct sk_buff *skb,
		       const struct sock *sk,
		       const struct net_device *orig_dev);
int tp4_meta_to_skb(const struct tpacket4_meta *from, struct sk_buff *skb,
		    const struct sock *sk, u32 header);

#endif
