/* SPDX-License-Identifier: GPL-2.0 */
/* Queue pairs in TPACKET_V4 zero-copy mode */
#ifndef _LINUX_TPACKET4_QUEUE_H
#define _LINUX_TPACKET4_QUEUE_H

#include <linux/netdevice.h>
#include <net/netdev_rx_queue.h>

#ifdef CONFIG_PACKET_V4
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

unsigned long tp4_queue_inode(const struct net_device *dev,
			      unsigned int queue_pair);
bool tp4_hides_packets(const struct net_device *dev);
#else
static inline bool tp4_queue_is_bound(const struct net_device *dev,
				      unsigned int queue_pair)
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
