// SPDX-License-Identifier: GPL-2.0
/* Hides the operations of V4's zero-copy mode from drivers that also support AF_XDP's, so
 * that V4 uses that interface. For tests and comparisons.
 */
#include <linux/list.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/slab.h>

/* A device without these operations */
struct hidden {
	struct list_head list;
	struct net_device *dev;
	const struct net_device_ops *real;
	struct net_device_ops ops;
};

static LIST_HEAD(all);	/* under RTNL */

static void hide(struct net_device *dev)
{
	struct hidden *h;

	if (!dev->netdev_ops->ndo_tp4_zerocopy ||
	    !(dev->xdp_features & NETDEV_XDP_ACT_XSK_ZEROCOPY))
		return;
	h = kmalloc(sizeof(*h), GFP_KERNEL);
	if (!h)
		return;
	h->dev = dev;
	h->real = dev->netdev_ops;
	h->ops = *h->real;
	h->ops.ndo_tp4_zerocopy = NULL;
	h->ops.ndo_tp4_xmit = NULL;
	dev->netdev_ops = &h->ops;
	list_add(&h->list, &all);
}

static void show(struct net_device *dev)
{
	struct hidden *h, *tmp;

	list_for_each_entry_safe(h, tmp, &all, list) {
		if (h->dev != dev)
			continue;
		dev->netdev_ops = h->real;
		list_del(&h->list);
		/* Whoever calls an operation of the copy holds RTNL or is in an RCU section. */
		synchronize_net();
		kfree(h);
	}
}

/* The notifier is called for all devices that there are, too. */
static int notify(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct net_device *dev = netdev_notifier_info_to_dev(ptr);

	if (event == NETDEV_REGISTER)
		hide(dev);
	else if (event == NETDEV_UNREGISTER)
		show(dev);
	return NOTIFY_DONE;
}

static struct notifier_block notifier = {
	.notifier_call = notify,
	.priority = INT_MIN,	/* after the core's, which unbinds sockets */
};

static int __init afxdp_only_init(void)
{
	return register_netdevice_notifier(&notifier);
}
module_init(afxdp_only_init);

static void __exit afxdp_only_exit(void)
{
	unregister_netdevice_notifier(&notifier);
}
module_exit(afxdp_only_exit);

MODULE_DESCRIPTION("Hide the operations of TPACKET_V4 from drivers that support AF_XDP");
MODULE_LICENSE("GPL");
