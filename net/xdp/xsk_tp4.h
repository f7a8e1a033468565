/* SPDX-License-Identifier: GPL-2.0 */
/* Buffer pools whose frames belong to a TPACKET_V4 socket, see xsk_tp4.c */
#ifndef XSK_TP4_H_
#define XSK_TP4_H_

#include <linux/jump_label.h>
#include <net/xdp_sock.h>
#include <net/xsk_buff_pool.h>

struct xdp_desc;

#ifdef CONFIG_PACKET_V4
DECLARE_STATIC_KEY_FALSE(xsk_tp4_key);

/* Owner of a pool's frames, or NULL if that is an AF_XDP socket */
static inline struct xsk_tp4 *xsk_tp4_of(const struct xsk_buff_pool *pool)
{
	return READ_ONCE(pool->tp4);
}

static inline void xsk_tp4_set(struct xsk_buff_pool *pool, struct xsk_tp4 *t)
{
	WRITE_ONCE(pool->tp4, t);
}

/* Check whether a pool takes its frames from packet arrays, not from rings. */
static inline bool xsk_is_tp4(const struct xsk_buff_pool *pool)
{
	return static_branch_unlikely(&xsk_tp4_key) && xsk_tp4_of(pool);
}

/* Same for what a packet is redirected to, see xs in struct xsk_tp4. A map can have
 * AF_XDP sockets that are not bound, whose pool is missing or about to be freed.
 */
static inline bool xsk_is_tp4_sock(const struct xdp_sock *xs)
{
	return static_branch_unlikely(&xsk_tp4_key) &&
	       xs->sk.sk_family != AF_XDP;
}

/* So that packets of V4 do not save the registers that AF_XDP's path needs */
#define xsk_tp4_noinline	noinline
#else
/* Constants, so that without V4 the object code stays the same */
#define xsk_is_tp4(pool)	(false && (pool))
#define xsk_is_tp4_sock(xs)	(false && (xs))
#define xsk_tp4_noinline
#endif

/* Without CONFIG_PACKET_V4, all calls of the following are optimized out. */
struct xdp_buff_xsk *xsk_tp4_alloc(struct xsk_buff_pool *pool);
u32 xsk_tp4_alloc_batch(struct xsk_buff_pool *pool, struct xdp_buff **xdp,
			u32 max);
u32 xsk_tp4_nr_free(struct xsk_buff_pool *pool, u32 max);
int xsk_tp4_rcv(struct xsk_buff_pool *pool, struct xdp_buff *xdp);
bool xsk_tp4_flush(struct xsk_buff_pool *pool);
void xsk_tp4_set_up(struct xsk_buff_pool *pool);
bool xsk_tp4_tx_peek(struct xsk_buff_pool *pool, struct xdp_desc *desc);
u32 xsk_tp4_tx_peek_batch(struct xsk_buff_pool *pool, u32 max);
void xsk_tp4_tx_completed(struct xsk_buff_pool *pool, u32 nr);

#endif /* XSK_TP4_H_ */
