// SPDX-License-Identifier: GPL-2.0
/* XDP programs of a device that has V4's as well
 *
 * As in net/core/dev.c of a kernel with V4: the driver has a program of V4's,
 * which calls the device's own. The device knows only of its own.
 */

#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/netdevice.h>
#include <linux/netlink.h>
#include <net/xsk_tp4.h>

#include "live.h"
#include "live_layout.h"

/* No program has this ID. ip link shows it: "prog/xdp id 4294967295" */
#define LIVE_PROG_ID	U32_MAX

/* Private to the kernel's net/core/dev.c */
struct bpf_xdp_link {
	struct bpf_link		link;
	struct net_device	*dev;
	int			flags;
};
LIVE_LAYOUT_bpf_xdp_link

static struct bpf_prog *live_own_prog(const struct net_device *dev,
				      enum bpf_xdp_mode mode)
{
	const struct bpf_xdp_entity *state = &dev->xdp_state[mode];

	return state->link ? state->link->link.prog : state->prog;
}

static bool live_upper_has_prog(struct net_device *dev)
{
	struct net_device *upper;
	struct list_head *iter;

	netdev_for_each_upper_dev_rcu(dev, upper, iter) {
		if (dev_xdp_prog_count(upper))
			return true;
	}
	return false;
}

/* In the BPF dispatcher, the device's own program stays next to @prog. */
int dev_xdp_attach_kernel(struct net_device *dev, struct bpf_prog *prog,
			  struct bpf_prog **own)
{
	struct netdev_bpf bpf = {
		.command = XDP_SETUP_PROG, .flags = XDP_FLAGS_DRV_MODE,
	};
	int err;

	*own = live_own_prog(dev, XDP_MODE_DRV);
	if (!xsk_tp4_may_wrap(*own) || dev_get_min_mp_channel_count(dev))
		return -EBUSY;
	if (live_upper_has_prog(dev))
		return -EEXIST;
	bpf.prog = xsk_tp4_wrap(*own);
	if (!bpf.prog)
		return -ENOMEM;
	err = dev->netdev_ops->ndo_bpf(dev, &bpf);
	if (err) {
		bpf_prog_put(bpf.prog);
		return err;
	}
	bpf_prog_change_xdp(NULL, prog);
	return 0;
}

void dev_xdp_detach_kernel(struct net_device *dev, struct bpf_prog *prog)
{
	struct netdev_bpf bpf = { .command = XDP_SETUP_PROG };

	bpf.prog = live_own_prog(dev, XDP_MODE_DRV);
	if (bpf.prog)
		bpf_prog_inc(bpf.prog);
	if (WARN_ON(dev->netdev_ops->ndo_bpf(dev, &bpf)) && bpf.prog)
		bpf_prog_put(bpf.prog);
	bpf_prog_change_xdp(prog, NULL);
}

static int live_no_generic_prog(struct net_device *dev, struct netdev_bpf *bpf)
{
	NL_SET_ERR_MSG(bpf->extack,
		       "Generic XDP does not see the packets of a zerocopy packet socket");
	return -EBUSY;
}

/* Only what it is called with */
int live_xdp_install(struct net_device *dev, enum bpf_xdp_mode mode,
		     live_xdp_op *op, struct netlink_ext_ack *extack,
		     u32 flags, struct bpf_prog *prog);
LIVE_SAME(live_xdp_install, dev_xdp_install);

/**
 * live_choose_xdp_op() - choose how to set a program of a device
 * @dev:	the device
 * @mode:	where the program runs
 * @op:		what the kernel would call for that
 *
 * Return: what it is to call.
 */
live_xdp_op *live_choose_xdp_op(struct net_device *dev, enum bpf_xdp_mode mode,
				live_xdp_op *op)
{
	if (!xsk_tp4_holds_xdp(dev))
		return op;
	switch (mode) {
	case XDP_MODE_DRV:
		return xsk_tp4_setup_prog;
	case XDP_MODE_SKB:
		return live_no_generic_prog;
	default:
		return op;
	}
}

/**
 * live_xdp_prog_count() - dev_xdp_prog_count() of a device that has V4's program
 * @dev:	the device
 *
 * Return: the number of its own, or 1 if it has none.
 */
u8 live_xdp_prog_count(struct net_device *dev)
{
	u8 count = 0;
	int i;

	for (i = 0; i < __MAX_XDP_MODE; i++)
		count += live_own_prog(dev, i) != NULL;
	return count ?: 1;
}
LIVE_SAME(live_xdp_prog_count, dev_xdp_prog_count);

/**
 * live_xdp_prog_id() - dev_xdp_prog_id() of a device that has V4's program
 * @dev:	the device
 * @mode:	where the program runs
 *
 * Return: the ID of its own, LIVE_PROG_ID if V4's is alone, or 0.
 */
u32 live_xdp_prog_id(struct net_device *dev, enum bpf_xdp_mode mode)
{
	const struct bpf_prog *own = live_own_prog(dev, mode);

	if (own)
		return own->aux->id;
	return mode == XDP_MODE_DRV ? LIVE_PROG_ID : 0;
}
LIVE_SAME(live_xdp_prog_id, dev_xdp_prog_id);
