/* SPDX-License-Identifier: GPL-2.0 */
/* TPACKET_V4 zero-copy mode on drivers that support AF_XDP's */
#ifndef _NET_XSK_TP4_H
#define _NET_XSK_TP4_H

#include <linux/errno.h>
#include <linux/types.h>

struct bpf_prog;
struct net_device;
struct netdev_bpf;
struct tp4_netdev_parms;

#if defined(CONFIG_PACKET_V4) && defined(CONFIG_XDP_SOCKETS)
bool xsk_tp4_supports(const struct net_device *dev);
bool xsk_tp4_holds_xdp(const struct net_device *dev);
bool xsk_tp4_keeps_tags(const struct net_device *dev);
struct bpf_prog *xsk_tp4_wrap(struct bpf_prog *own);
bool xsk_tp4_may_wrap(const struct bpf_prog *own);
int xsk_tp4_setup_prog(struct net_device *dev, struct netdev_bpf *bpf);
void xsk_tp4_unregister(const struct net_device *dev);
int xsk_tp4_zerocopy(struct net_device *dev, struct tp4_netdev_parms *parms);
int xsk_tp4_xmit(struct net_device *dev, int queue_pair, u32 flags,
		 bool posted);

/* In net/core/dev.c */
int dev_xdp_attach_kernel(struct net_device *dev, struct bpf_prog *prog,
			  struct bpf_prog **own);
void dev_xdp_detach_kernel(struct net_device *dev, struct bpf_prog *prog);
#else
static inline bool xsk_tp4_supports(const struct net_device *dev)
{
	return false;
}

static inline bool xsk_tp4_holds_xdp(const struct net_device *dev)
{
	return false;
}

static inline int xsk_tp4_setup_prog(struct net_device *dev,
				     struct netdev_bpf *bpf)
{
	return -EOPNOTSUPP;
}

static inline bool xsk_tp4_keeps_tags(const struct net_device *dev)
{
	return false;
}

static inline void xsk_tp4_unregister(const struct net_device *dev)
{
}

static inline int xsk_tp4_zerocopy(struct net_device *dev,
				   struct tp4_netdev_parms *parms)
{
	return -EOPNOTSUPP;
}

static inline int xsk_tp4_xmit(struct net_device *dev, int queue_pair,
			       u32 flags, bool posted)
{
	return -EOPNOTSUPP;
}
#endif

#endif /* _NET_XSK_TP4_H */
