/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PACKET_TP4_TX_H__
#define __PACKET_TP4_TX_H__

#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/socket.h>
#include <net/sock.h>

#include "internal.h"

/* How af_packet.c sends an skb: returns what dev_queue_xmit() does. */
typedef int (*tp4_xmit_t)(const struct packet_sock *po, struct sk_buff *skb);

/* Only declared where CONFIG_PACKET_V4 is off: no call is left then. */
int tp4_tx_prepare(struct packet_sock *po);
bool tp4_tx_busy(const struct packet_sock *po);
int tp4_snd(struct packet_sock *po, struct msghdr *msg, tp4_xmit_t xmit);

#endif
