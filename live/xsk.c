// SPDX-License-Identifier: GPL-2.0
/* Zero-copy mode on AF_XDP's drivers: their code is the kernel's, and may have
 * faults that the series has fixed
 */

#include <linux/device.h>
#include <linux/filter.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <net/xsk_tp4.h>

#include "live.h"

static int live_zerocopy(struct net_device *dev,
			 struct tp4_netdev_parms *parms);
static void live_unregister(const struct net_device *dev);

/* The kernel's drivers do not know XDP_PASS_TO_KERNEL. */
static u32 live_prog_run(const struct bpf_prog *prog, const void *xdp)
{
	u32 act = bpf_prog_run(prog, xdp);

	return act == XDP_PASS_TO_KERNEL ? XDP_PASS : act;
}

#define bpf_prog_run		live_prog_run
#define xsk_tp4_zerocopy	live_zerocopy
#define xsk_tp4_unregister	live_unregister
#undef pr_fmt
#include "../net/xdp/xsk_tp4.c"
#undef bpf_prog_run
#undef xsk_tp4_zerocopy
#undef xsk_tp4_unregister

#include "live_layout.h"

LIVE_LAYOUT_bpf_redirect_info
LIVE_LAYOUT_bpf_xdp_entity
LIVE_LAYOUT_netdev_bpf
LIVE_LAYOUT_netdev_rx_queue
LIVE_LAYOUT_xdp_buff
LIVE_LAYOUT_xdp_buff_xsk
LIVE_LAYOUT_xdp_ring
LIVE_LAYOUT_xdp_rxq_info
LIVE_LAYOUT_xdp_sock
LIVE_LAYOUT_xdp_umem
LIVE_LAYOUT_xsk_buff_pool
LIVE_LAYOUT_xsk_dma_map
LIVE_LAYOUT_xsk_queue

/**
 * struct live_driver - a driver that is wrong for V4 without the series
 * @name:	its name
 * @does:	what it does with a packet for which a frame has no room, while
 *		the device knows that room in units of @unit bytes
 * @unit:	a power of two
 * @to_stack:	it does so when it passes the packet to the stack, for a socket
 *		that only sends
 */
struct live_driver {
	const char	*name;
	const char	*does;
	u32		unit;
	bool		to_stack;
};

static const struct live_driver live_drivers[] = {
	{ "i40e", "crashes when it passes packets to the stack", 128, true },
	{ "igb", "passes the parts of packets as packets", 1024 },
	{ "igc", "passes the parts of packets as packets", 1024 },
	{ "ixgbe", "drops packets on 82599", 1024 },
};

static const struct live_driver *live_find_driver(const struct net_device *dev)
{
	const struct device *parent = dev->dev.parent;
	int i;

	if (!parent || !parent->driver)
		return NULL;
	for (i = 0; i < ARRAY_SIZE(live_drivers); i++)
		if (!strcmp(live_drivers[i].name, parent->driver->name))
			return &live_drivers[i];
	return NULL;
}

/* Check whether the driver would pass each packet as it is. Frames have @size
 * bytes, and room for @room.
 */
static int live_check_driver(const struct net_device *dev, u32 size, u32 room,
			     bool only_sends)
{
	const struct live_driver *driver = live_find_driver(dev);

	if (!driver || driver->to_stack > only_sends)
		return 0;
	room = ALIGN_DOWN(room, driver->unit);
	if (dev->mtu + XSK_TP4_PAD <= room)
		return 0;
	if (size < PAGE_SIZE)
		netdev_warn(dev, "tpacket4: %s of this kernel %s if they have more than %u bytes, in frames of %u; use frames of %lu bytes\n",
			    driver->name, driver->does, room, size, PAGE_SIZE);
	else
		netdev_warn(dev, "tpacket4: %s of this kernel %s if they have more than %u bytes; use an MTU of at most %zu\n",
			    driver->name, driver->does, room,
			    room - XSK_TP4_PAD);
	return -EMSGSIZE;
}

static int live_check_parms(const struct net_device *dev,
			    const struct tp4_netdev_parms *parms)
{
	struct tp4_area_info area;

	if (!parms->rx_opaque)
		return live_check_driver(dev, XSK_TP4_OWN_SIZE,
					 XSK_TP4_OWN_SIZE - XDP_PACKET_HEADROOM,
					 true);
	tp4_get_area(parms->rx_opaque, &area);
	return live_check_driver(dev, area.frame_size,
				 area.frame_size - area.headroom -
				 XDP_PACKET_HEADROOM, false);
}

/**
 * live_check_mtu() - check whether a device may get another MTU
 * @dev:	the device
 * @before:	it has the old one; the new one is not known
 *
 * The kernel restores the old MTU if the new one is refused. That is too late
 * for a driver that crashes with long packets, whose MTU does not change then.
 *
 * Context: Under RTNL.
 * Return: 0, or -EBUSY or -EMSGSIZE if the driver is wrong for it, as the log
 * says.
 */
int live_check_mtu(const struct net_device *dev, bool before)
{
	const struct live_driver *driver = live_find_driver(dev);
	const struct xsk_tp4 *t;
	unsigned int i;
	int err = 0;

	if (!driver || !static_branch_unlikely(&xsk_tp4_key))
		return 0;
	for (i = 0; !err && i < dev->num_rx_queues; i++) {
		t = xsk_tp4_of_queue(dev, i);
		if (!t)
			continue;
		if (!before) {
			err = live_check_driver(dev, t->umem.chunk_size,
						t->umem.chunk_size -
						t->umem.headroom -
						XDP_PACKET_HEADROOM, t->nr_own);
		} else if (driver->to_stack && t->nr_own) {
			netdev_warn(dev, "tpacket4: %s of this kernel %s if they are long; the MTU stays while a socket only sends\n",
				    driver->name, driver->does);
			err = -EBUSY;
		}
	}
	return err;
}

/**
 * struct live_tags - what live_update_features() has turned off
 * @list:	in live_tags
 * @dev:	the device
 * @features:	the user wants these
 */
struct live_tags {
	struct list_head	list;
	struct net_device	*dev;
	netdev_features_t	features;
};

/* Under RTNL */
static LIST_HEAD(live_tags);

static struct live_tags *live_find_tags(const struct net_device *dev)
{
	struct live_tags *tags;

	list_for_each_entry(tags, &live_tags, list)
		if (tags->dev == dev)
			return tags;
	return NULL;
}

/* The device does not strip VLAN tags while V4 needs them, whatever the user
 * wants. It does afterwards.
 */
int live_update_features(struct net_device *dev)
{
	netdev_features_t strip = XSK_TP4_STRIP & dev->hw_features;
	struct live_tags *tags;

	ASSERT_RTNL();
	strip &= dev->wanted_features;
	if (!strip || !xsk_tp4_keeps_tags(dev))
		return 0;
	tags = live_find_tags(dev);
	if (!tags) {
		tags = kzalloc(sizeof(*tags), GFP_KERNEL);
		if (!tags)
			return 0; /* The socket is refused. */
		tags->dev = dev;
		list_add(&tags->list, &live_tags);
	}
	tags->features |= strip;
	dev->wanted_features &= ~strip;
	return 0;
}
LIVE_SAME(live_update_features, __netdev_update_features);

static void live_restore_tags(struct net_device *dev)
{
	struct live_tags *tags = live_find_tags(dev);

	if (!tags || xsk_tp4_holds_xdp(dev))
		return;
	dev->wanted_features |= tags->features;
	list_del(&tags->list);
	kfree(tags);
	if (dev->reg_state == NETREG_REGISTERED)
		netdev_update_features(dev);
}

int xsk_tp4_zerocopy(struct net_device *dev, struct tp4_netdev_parms *parms)
{
	bool enable = parms->command == TP4_ENABLE;
	int before, after, err;

	before = static_key_count(&xsk_tp4_key.key);
	if (enable) {
		err = live_check_parms(dev, parms) ?: live_hooks_get();
		if (err)
			return err;
	}
	err = live_zerocopy(dev, parms);
	after = static_key_count(&xsk_tp4_key.key);
	live_restore_tags(dev);
	/* A driver that does not stop a queue keeps its pool. Without the
	 * hooks, it would be one of AF_XDP.
	 */
	if (enable ? err && after > before : after == before)
		__module_get(THIS_MODULE);
	if (!after)
		live_hooks_put();
	return err;
}

void xsk_tp4_unregister(const struct net_device *dev)
{
	int before, after;

	before = static_key_count(&xsk_tp4_key.key);
	live_unregister(dev);
	after = static_key_count(&xsk_tp4_key.key);
	if (before > after && !after)
		live_hooks_put();
	/* Each pool that was kept has a reference. */
	for (; before > after; before--)
		module_put(THIS_MODULE);
}

void live_xsk_exit(void)
{
	if (xsk_tp4_prog)
		bpf_prog_put(xsk_tp4_prog);
}
