/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PACKET_TP4_FANOUT_H__
#define __PACKET_TP4_FANOUT_H__

#include <linux/list.h>
#include <linux/netdevice.h>
#include <linux/tpacket4.h>

#include "internal.h"
#include "tp4_array.h"

struct bpf_prog;
struct tp4_fanout;

#ifdef CONFIG_PACKET_V4
/**
 * struct tp4_group - state of a fanout group for zero-copy mode
 * @feeders:	the sockets that feed it, struct tp4_fanout; written under
 *		fanout_mutex and the group's lock
 * @setter:	the task that has set the program; under the group's lock
 * @loads:	the program if it only loads the first bytes of a packet, or NULL
 */
struct tp4_group {
	struct hlist_head	feeders;
	struct tp4_who		setter;
	struct bpf_prog __rcu	*loads;
};

bool tp4_fanout_init(struct packet_fanout *f);
void tp4_fanout_exit(struct packet_fanout *f);
int tp4_fanout_may_join(const struct packet_fanout *f,
			const struct packet_sock *po);
void tp4_fanout_joined(struct packet_sock *po);
void tp4_fanout_left(struct packet_sock *po);
int tp4_fanout_set_bpf(struct packet_fanout *f, struct bpf_prog *prog);
int tp4_fanout_start(struct tp4_zc_ring *ring, struct packet_sock *po,
		     struct net_device *dev, int queue_pair);
void tp4_fanout_stop(struct tp4_zc_ring *ring);
int tp4_fanout_flush(struct tp4_packet_array *a, u32 end);

#if IS_ENABLED(CONFIG_KUNIT)
struct tp4_fanout *tp4_fanout_new(struct packet_fanout *group,
				  struct net_device *dev, int queue_pair);
void tp4_fanout_free(struct tp4_fanout *fo);
#endif
#else
static inline bool tp4_fanout_init(struct packet_fanout *f)
{
	return true;
}

static inline void tp4_fanout_exit(struct packet_fanout *f)
{
}

static inline int tp4_fanout_may_join(const struct packet_fanout *f,
				      const struct packet_sock *po)
{
	return 0;
}

static inline void tp4_fanout_joined(struct packet_sock *po)
{
}

static inline void tp4_fanout_left(struct packet_sock *po)
{
}

static inline int tp4_fanout_set_bpf(struct packet_fanout *f,
				     struct bpf_prog *prog)
{
	return 0;
}
#endif

#endif
