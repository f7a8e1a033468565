/* SPDX-License-Identifier: GPL-2.0 */
/* Queue pairs in TPACKET_V4 zero-copy mode */
#ifndef _LINUX_TPACKET4_QUEUE_H
#define _LINUX_TPACKET4_QUEUE_H

#include <linux/netdevice.h>

#ifdef CONFIG_PACKET_V4
#include <net/netdev_rx_queue.h>

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
	       READ_ONCE(dev->_rx[queue_pair].tp4);
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
