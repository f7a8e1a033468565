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
#define xsk_tp4_zerocopy	live_zerocopy
#undef pr_fmt
#include "../net/xdp/xsk_tp4.c"
#undef xsk_tp4_zerocopy

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
 * @unit:	the device knows the room in a frame in units of so many bytes;
 *		a longer packet arrives as several packets
 */
struct live_driver {
	const char	*name;
	u32		unit;
};

static const struct live_driver live_drivers[] = {
	{ .name = "igb", .unit = 1024 },
	{ .name = "igc", .unit = 1024 },
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

/* Check whether the driver would cut packets in pieces. */
static int live_check_driver(const struct net_device *dev,
			     const struct tp4_netdev_parms *parms)
{
	const struct live_driver *driver = live_find_driver(dev);
	struct tp4_area_info area;
	u32 room;

	if (!driver || !parms->rx_opaque)
		return 0;
	tp4_get_area(parms->rx_opaque, &area);
	room = area.frame_size - area.headroom - XDP_PACKET_HEADROOM;
	room = rounddown(room, driver->unit);
	if (dev->mtu + XSK_TP4_PAD <= room)
		return 0;
	netdev_warn(dev, "tpacket4: %s of this kernel cuts packets over %u bytes in frames of %u; use frames of %lu bytes\n",
		    driver->name, room, area.frame_size, PAGE_SIZE);
	return -EMSGSIZE;
}

int xsk_tp4_zerocopy(struct net_device *dev, struct tp4_netdev_parms *parms)
{
	bool enable = parms->command == TP4_ENABLE;
	int before, after, err;

	before = static_key_count(&xsk_tp4_key.key);
	if (enable) {
		err = live_check_driver(dev, parms) ?: live_hooks_get();
		if (err)
			return err;
	}
	err = live_zerocopy(dev, parms);
	after = static_key_count(&xsk_tp4_key.key);
	/* A driver that does not stop a queue keeps its pool. Without the
	 * hooks, it would be one of AF_XDP.
	 */
	if (enable ? err && after > before : after == before)
		__module_get(THIS_MODULE);
	if (!after)
		live_hooks_put();
	return err;
}

void live_xsk_exit(void)
{
	if (xsk_tp4_prog)
		bpf_prog_put(xsk_tp4_prog);
}
