/* SPDX-License-Identifier: GPL-2.0 */
/* Queue pairs in TPACKET_V4 zero-copy mode */
#ifndef _LINUX_TPACKET4_QUEUE_H
#define _LINUX_TPACKET4_QUEUE_H

#include <linux/netdevice.h>

#ifdef CONFIG_PACKET_V4
#include <net/netdev_rx_queue.h>

struct tp4_netdev_parms;
struct tp4_zc;

/* The following access members that only a kernel with CONFIG_PACKET_V4 has.
 */
static inline struct tp4_zc *tp4_queue_owner(const struct net_device *dev,
					     unsigned int queue_pair)
{
	return READ_ONCE(dev->_rx[queue_pair].tp4);
}

static inline void tp4_queue_set_owner(struct net_device *dev,
				       unsigned int queue_pair,
				       struct tp4_zc *zc)
{
	WRITE_ONCE(dev->_rx[queue_pair].tp4, zc);
}

static inline bool tp4_dev_has_ops(const struct net_device *dev)
{
	return dev->netdev_ops->ndo_tp4_zerocopy &&
	       dev->netdev_ops->ndo_tp4_xmit;
}

static inline int tp4_dev_zerocopy(struct net_device *dev,
				   struct tp4_netdev_parms *parms)
{
	return dev->netdev_ops->ndo_tp4_zerocopy(dev, parms);
}

static inline int tp4_dev_xmit(struct net_device *dev, int queue_pair,
			       u32 flags)
{
	return dev->netdev_ops->ndo_tp4_xmit(dev, queue_pair, flags);
}

/**
 * tp4_queue_is_bound() - check whether a queue pair is in zero-copy mode
 * @dev:	the device
 * @queue_pair:	the queue pair; may be out of range
 *
 * Context: Under RTNL, else the result is only a hint.
 * Return: true if it is.
 */
static inline bool tp4_queue_is_bound(const struct net_device *dev,
				      unsigned int queue_pair)
{
	return queue_pair < dev->num_rx_queues &&
	       tp4_queue_owner(dev, queue_pair);
}

/**
 * tp4_any_queue_is_bound() - check for queue pairs in zero-copy mode
 * @dev:	the device
 * @first:	the first queue pair to check; may be out of range
 *
 * For drivers whose reconfiguration would move or remove queue pairs.
 *
 * Context: Under RTNL.
 * Return: true if @first or one after it is in zero-copy mode.
 */
static inline bool tp4_any_queue_is_bound(const struct net_device *dev,
					  unsigned int first)
{
	for (; first < dev->num_rx_queues; first++) {
		if (tp4_queue_is_bound(dev, first))
			return true;
	}
	return false;
}

unsigned long tp4_queue_inode(const struct net_device *dev,
			      unsigned int queue_pair);
bool tp4_hides_packets(const struct net_device *dev);
#else
static inline bool tp4_queue_is_bound(const struct net_device *dev,
				      unsigned int queue_pair)
{
	return false;
}

static inline bool tp4_any_queue_is_bound(const struct net_device *dev,
					  unsigned int first)
{
	return false;
}

static inline unsigned long tp4_queue_inode(const struct net_device *dev,
					    unsigned int queue_pair)
{
	return 0;
}

static inline bool tp4_hides_packets(const struct net_device *dev)
{
	return false;
}
#endif

#endif /* _LINUX_TPACKET4_QUEUE_H */
