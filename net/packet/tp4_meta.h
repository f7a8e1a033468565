/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PACKET_TP4_META_H__
#define __PACKET_TP4_META_H__

#include <linux/if_packet.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/virtio_net.h>
#include <net/sock.h>

void tp4_meta_from_skb(struct tpacket4_meta *to, struct sk_buff *skb,
		       const struct sock *sk,
		       const struct net_device *orig_dev);
u32 tp4_meta_from_data(struct tpacket4_meta *to, const void *data, u32 len,
		       const struct net_device *dev);
int tp4_meta_to_vnet_hdr(const struct tpacket4_meta *from,
			 struct virtio_net_hdr *hdr);
int tp4_meta_to_skb(const struct tpacket4_meta *from, struct sk_buff *skb,
		    const struct sock *sk, u32 header);

#endif
