// SPDX-License-Identifier: GPL-2.0
/* Zero-copy mode of V4, for a kernel whose Rx queues do not have its sockets */

#include <linux/init.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/netdev_rx_queue.h>

#include "live.h"

/* main.c has the module's parameters, and calls the initcall. */
#undef device_initcall
#define device_initcall(function)
#undef module_param_named
#define module_param_named(name, value, type, perm)

/* Newer kernels can lease a queue to another device, and do not export this.
 * The queue pair then belongs to the device that the socket is bound to, and
 * is refused, as it has a lease.
 */
#define __netif_get_rx_queue_lease(dev, queue_pair, direction)	\
	do { } while (0)

#include "../net/packet/tp4_zc.c"

/* Queue pairs in zero-copy mode, under RTNL */
static LIST_HEAD(live_queues);

struct live_queue {
	struct list_head	list;
	const struct net_device	*dev;
	unsigned int		queue_pair;
	struct tp4_zc		*owner;
};

static struct live_queue *live_find_queue(const struct net_device *dev,
					  unsigned int queue_pair)
{
	struct live_queue *q;

	ASSERT_RTNL();
	list_for_each_entry(q, &live_queues, list)
		if (q->dev == dev && q->queue_pair == queue_pair)
			return q;
	return NULL;
}

struct tp4_zc *tp4_queue_owner(const struct net_device *dev,
			       unsigned int queue_pair)
{
	const struct live_queue *q = live_find_queue(dev, queue_pair);

	return q ? q->owner : NULL;
}

void tp4_queue_set_owner(struct net_device *dev, unsigned int queue_pair,
			 struct tp4_zc *zc)
{
	struct live_queue *q = live_find_queue(dev, queue_pair);

	if (!zc) {
		if (q)
			list_del(&q->list);
		kfree(q);
		return;
	}
	if (!q) {
		/* The driver has the queue pair already. */
		q = kzalloc(sizeof(*q), GFP_KERNEL | __GFP_NOFAIL);
		q->dev = dev;
		q->queue_pair = queue_pair;
		list_add(&q->list, &live_queues);
	}
	q->owner = zc;
}

int __init live_zc_init(void)
{
	return tp4_zc_init();
}

void live_zc_exit(void)
{
	unregister_netdevice_notifier(&tp4_zc_notifier);
}
