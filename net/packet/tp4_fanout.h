/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PACKET_TP4_FANOUT_H__
#define __PACKET_TP4_FANOUT_H__

#include <linux/netdevice.h>
#include <linux/tpacket4.h>

#include "internal.h"
#include "tp4_array.h"

struct bpf_prog;
struct tp4_fanout;

#ifdef CONFIG_PACKET_V4
/**
 * tp4_fanout_may_join() - check whether a socket may join a group that is fed
 * @f:	the group
 * @po:	the packet socket
 *
 * If the socket removes its ring later, it drops what it is fed.
 *
 * Context: Under fanout_mutex.
 * Return: false if the group has a feeder and the socket has no V4 Rx ring.
 */
static inline bool tp4_fanout_may_join(const struct packet_fanout *f,
				       const struct packet_sock *po)
{
	return !f->tp4_feeders || READ_ONCE(po->tp4_queue[TP4_RX]);
}

int tp4_fanout_start(struct tp4_zc_ring *ring, struct packet_sock *po,
		     struct net_device *dev, int queue_pair);
void tp4_fanout_stop(struct tp4_zc_ring *ring);
int tp4_fanout_flush(struct tp4_packet_array *a, u32 end);
void tp4_fanout_set_bpf(struct packet_fanout *f, struct bpf_prog *prog);

#if IS_ENABLED(CONFIG_KUNIT)
struct tp4_fanout *tp4_fanout_new(struct packet_fanout *group,
				  struct net_device *dev, int queue_pair);
void tp4_fanout_free(struct tp4_fanout *fo);
#endif
#else
static inline bool tp4_fanout_may_join(const struct packet_fanout *f,
				       const struct packet_sock *po)
{
	return true;
}

static inline void tp4_fanout_set_bpf(struct packet_fanout *f,
				      struct bpf_prog *prog)
{
}
#endif

#endif
