/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PACKET_TP4_RING_H__
#define __PACKET_TP4_RING_H__

#include <linux/if_packet.h>
#include <linux/netdevice.h>
#include <linux/poll.h>
#include <linux/sockptr.h>
#include <net/sock.h>

#include "internal.h"

#ifdef CONFIG_PACKET_V4
int tp4_ring_request(struct sock *sk, sockptr_t optval, unsigned int optlen,
		     bool tx, union tpacket_req_u *req_u);
void tp4_ring_swap(struct packet_sock *po, bool tx, void *ring);
bool tp4_ring_may_map(const struct packet_sock *po);
void tp4_ring_free_pending(struct sock *sk, bool tx);
void tp4_ring_release(struct sock *sk);
void tp4_ring_destruct(struct sock *sk);
void tp4_ring_stats(struct sock *sk, const struct tpacket_stats *common,
		    struct tpacket_stats_v4 *st);
bool tp4_rx_readable(const struct packet_sock *po);
__poll_t tp4_tx_poll(const struct packet_sock *po, __poll_t mask);
#else
static inline void tp4_ring_swap(struct packet_sock *po, bool tx, void *ring)
{
}

static inline bool tp4_ring_may_map(const struct packet_sock *po)
{
	return true;
}

static inline void tp4_ring_free_pending(struct sock *sk, bool tx)
{
}

static inline void tp4_ring_release(struct sock *sk)
{
}

static inline void tp4_ring_destruct(struct sock *sk)
{
}

static inline bool tp4_rx_readable(const struct packet_sock *po)
{
	return false;
}

static inline __poll_t tp4_tx_poll(const struct packet_sock *po, __poll_t mask)
{
	return mask;
}
#endif

#endif
