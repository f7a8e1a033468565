/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PACKET_TP4_RX_H__
#define __PACKET_TP4_RX_H__

#include <linux/netdevice.h>
#include <linux/skbuff.h>

/* Without CONFIG_PACKET_V4 all calls are optimized out. */
int tp4_rcv(struct sk_buff *skb, struct net_device *dev,
	    struct packet_type *pt, struct net_device *orig_dev);

#endif
