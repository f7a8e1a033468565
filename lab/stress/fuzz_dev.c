// SPDX-License-Identifier: GPL-2.0
/* The fuzzer's steps on devices. */

#define _GNU_SOURCE
#include "fuzz.h"

#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

const char * const dev_names[NR_DEVS] = {
	"fz0a", "fz0b", "fz1a", "fz1b", "fzdum", "fztap", "fzvlan", "lo",
	"fzp0", "fzp1",
};

int dev_index(const char *name)
{
	return if_nametoindex(name);
}

const char *dev_any(struct rnd *r)
{
	return dev_names[rnd(r, rd.ports ? NR_DEVS : NR_DEVS - 2)];
}

const char *dev_zc(struct rnd *r)
{
	if (rd.ports && !one_in(r, 4))
		return dev_names[NR_DEVS - 2 + rnd(r, 2)];
	return dev_names[rnd(r, 4)];
}

/* For a device that may be removed */
static const char *dev_virtual(struct rnd *r)
{
	return dev_names[rnd(r, 7)];
}

static void make_tap(void)
{
	struct ifreq ifr = {
		.ifr_name = "fztap",
		.ifr_flags = IFF_TAP | IFF_NO_PI,
	};
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return;
	if (sys(C_LINK_ADD, ioctl(fd, TUNSETIFF, &ifr)) < 0) {
		close(fd);
		return;
	}
	/* This closes the last file of the old one, if it is still open. */
	dup3(fd, rd.tun, O_CLOEXEC);
	close(fd);
}

void devs_make(void)
{
	unsigned int i;

	if (!dev_index("fz0a") || !dev_index("fz0b"))
		did(C_LINK_ADD, link_add_veth("fz0a", "fz0b", 4));
	if (!dev_index("fz1a") || !dev_index("fz1b"))
		did(C_LINK_ADD, link_add_veth("fz1a", "fz1b", 1));
	if (!dev_index("fzdum"))
		did(C_LINK_ADD, link_add("fzdum", "dummy"));
	if (!dev_index("fzvlan"))
		did(C_LINK_ADD, link_add_vlan("fzvlan", "fz0a", 42));
	if (!dev_index("fztap"))
		make_tap();
	for (i = 0; i < (rd.ports ? NR_DEVS : NR_DEVS - 2); i++)
		did(C_LINK_UP, link_set_up(dev_names[i], true));
}

static void step_make(struct rnd *r)
{
	devs_make();
}

static void step_up(struct rnd *r)
{
	did(C_LINK_UP, link_set_up(dev_any(r), true));
}

static void step_down(struct rnd *r)
{
	const char *dev = one_in(r, 2) ? dev_any(r) : dev_zc(r);

	did(C_LINK_DOWN, link_set_up(dev, false));
	if (!one_in(r, 3))
		did(C_LINK_UP, link_set_up(dev, true));
}

static void step_mtu(struct rnd *r)
{
	static const int mtus[] = { 68, 576, 1280, 1500, 1500, 3000, 8900, 9000,
		16000, 65535, 0, -1 };

	did(C_MTU, link_set_mtu(dev_any(r), PICK(r, mtus)));
}

static void step_channels(struct rnd *r)
{
	did(C_CHANNELS, set_channels(dev_zc(r), rnd(r, 6)));
}

static void step_ring_size(struct rnd *r)
{
	did(C_RING_SIZE, set_ring_size(dev_zc(r), 64 << rnd(r, 7)));
}

static void step_gro(struct rnd *r)
{
	did(C_GRO, set_gro(dev_any(r), one_in(r, 2)));
}

static void step_xdp(struct rnd *r)
{
	static const uint32_t modes[] = { 0, XDP_FLAGS_DRV_MODE,
		XDP_FLAGS_DRV_MODE, XDP_FLAGS_DRV_MODE, XDP_FLAGS_SKB_MODE };
	const char *dev = one_in(r, 4) ? dev_any(r) : dev_zc(r);
	int prog = rd.progs[rnd(r, rd.nr_progs)];

	if (one_in(r, 3)) {
		did(C_XDP_DETACH, link_set_xdp(dev, -1, 0));
		did(C_XDP_DETACH, link_set_xdp(dev, -1, XDP_FLAGS_SKB_MODE));
		return;
	}
	did(C_XDP, link_set_xdp(dev, prog, PICK(r, modes)));
}

static void step_del(struct rnd *r)
{
	did(C_LINK_DEL, link_del(dev_virtual(r)));
	if (!one_in(r, 4))
		devs_make();
}

/* Moved and moved back, immediately or some steps later */
static void step_netns(struct rnd *r)
{
	const char *dev = dev_names[rnd(r, 6)];

	if (!one_in(r, 3))
		did(C_NETNS, link_set_netns(dev, rd.away));
	if (one_in(r, 2) || setns(rd.away, CLONE_NEWNET))
		return;
	if (one_in(r, 2))
		link_set_up(dev, true);
	did(C_NETNS, link_set_netns(dev, rd.home));
	setns(rd.home, CLONE_NEWNET);
	link_set_up(dev, true);
}

static void step_promisc(struct rnd *r)
{
	did(C_PROMISC, link_set_promisc(dev_any(r), one_in(r, 2)));
}

static void step_qdisc(struct rnd *r)
{
	struct tc_netem_qopt netem = {
		.latency = rnd(r, 200000),
		.limit = 1 + rnd(r, 1000),
		.loss = one_in(r, 4) ? rnd64(r) : 0,
		.duplicate = one_in(r, 4) ? rnd64(r) : 0,
	};
	struct tc_fifo_qopt fifo = { .limit = rnd(r, 20) };
	const char *dev = dev_any(r);

	switch (rnd(r, 4)) {
	case 0:
		did(C_QDISC, qdisc_set(dev, "netem", &netem, sizeof(netem)));
		break;
	case 1:
		did(C_QDISC, qdisc_set(dev, "pfifo", &fifo, sizeof(fifo)));
		break;
	default:
		did(C_QDISC_DEL, qdisc_del(dev));
	}
}

static const struct step dev_steps[] = {
	{ "make devices", 10, step_make },
	{ "link up", 10, step_up },
	{ "link down", 10, step_down },
	{ "MTU", 8, step_mtu },
	{ "ethtool -L", 10, step_channels },
	{ "ethtool -G", 2, step_ring_size },
	{ "GRO", 6, step_gro },
	{ "XDP", 20, step_xdp },
	{ "delete", 5, step_del },
	{ "netns move", 5, step_netns },
	{ "promiscuous", 3, step_promisc },
	{ "qdisc", 10, step_qdisc },
};

const struct step_kind dev_kind = {
	"devices", dev_steps, ARRAY_SIZE(dev_steps), 15,
};
