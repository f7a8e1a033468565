/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PACKET_TP4_META_H__
#define __PACKET_TP4_META_H__

#include <linux/if_packet.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <net/sock.h>

/* Flags that are ignored on Tx, so that received packets can be sent unchanged
 */
#define TP4_META_RX	(TP4_META_RX_TS_SOFTWARE | TP4_META_RX_TS_HARDWARE | \
			 TP4_META_RX_CSUM_VALID | TP4_META_RX_HASH | \
			 TP4_META_RX_VLAN)

/* Check that the metadata of a packet to send is valid and requests nothing. */
static inline bool tp4_meta_is_plain(const struct tpacket4_meta *from)
{
	return !(READ_ONCE(from->flags) & ~TP4_META_RX);
}

void tp4_meta_from_skb(struct tpacket4_meta *to, struct sk_buff *skb,
		       const struct sock *sk,
		       const struct net_device *orig_dev);
u32 tp4_meta_from_data(struct tpacket4_meta *to, const void *data, u32 len,
		       const struct net_device *dev);
bool tp4_meta_can_describe(const struct sk_buff *skb);
int tp4_meta_read(const struct tpacket4_meta *from, struct tpacket4_meta *to);
int tp4_meta_apply(const struct tpacket4_meta *m, struct sk_buff *skb,
		   u32 header);
int tp4_meta_to_skb(const struct tpacket4_meta *from, struct sk_buff *skb,
		    const struct sock *sk, u32 header);

#endif
