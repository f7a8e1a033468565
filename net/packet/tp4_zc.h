/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PACKET_TP4_ZC_H__
#define __PACKET_TP4_ZC_H__

#include <linux/rcupdate.h>
#include <linux/sockptr.h>
#include <linux/socket.h>
#include <net/sock.h>

#include "internal.h"

#ifdef CONFIG_PACKET_V4
/* Check whether the socket is in zero-copy mode. Without RTNL it can leave it
 * at any time; without the socket lock it can also enter it.
 */
static inline bool tp4_zc_is_on(const struct packet_sock *po)
{
	/* Pairs with the release in tp4_zc_disable(). */
	return smp_load_acquire(&po->tp4_zc);
}

/* Check whether it is in zero-copy mode, or will be when it is bound. */
static inline bool tp4_zc_is_wanted(const struct packet_sock *po)
{
	return READ_ONCE(po->tp4_zc_pair);
}

int tp4_zc_setsockopt(struct sock *sk, sockptr_t optval, unsigned int optlen);
int tp4_zc_sol_socket(struct socket *sock, int optname, sockptr_t optval,
		      unsigned int optlen);
int tp4_zc_bind(struct sock *sk);
void tp4_zc_release(struct sock *sk);
int tp4_zc_queue_pair(const struct packet_sock *po);
int tp4_zc_snd(struct packet_sock *po, struct msghdr *msg);
void tp4_zc_poll(struct packet_sock *po);
void tp4_zc_unmapped(struct packet_sock *po);

#if IS_ENABLED(CONFIG_KUNIT)
bool tp4_zc_is_taken(struct net_device *dev, int queue_pair);
#endif
#else
static inline bool tp4_zc_is_on(const struct packet_sock *po)
{
	return false;
}

static inline bool tp4_zc_is_wanted(const struct packet_sock *po)
{
	return false;
}

static inline void tp4_zc_release(struct sock *sk)
{
}

/* All calls of the following are optimized out. */
int tp4_zc_setsockopt(struct sock *sk, sockptr_t optval, unsigned int optlen);
int tp4_zc_bind(struct sock *sk);
int tp4_zc_queue_pair(const struct packet_sock *po);
int tp4_zc_snd(struct packet_sock *po, struct msghdr *msg);
void tp4_zc_poll(struct packet_sock *po);
void tp4_zc_unmapped(struct packet_sock *po);
#endif

#endif
