/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PACKET_TP4_TX_H__
#define __PACKET_TP4_TX_H__

#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/socket.h>
#include <net/sock.h>

#include "internal.h"

/* Without CONFIG_PACKET_V4 all calls are optimized out. */
int tp4_tx_prepare(struct packet_sock *po);
bool tp4_tx_busy(const struct packet_sock *po);
int tp4_snd(struct packet_sock *po, struct msghdr *msg);

#endif
