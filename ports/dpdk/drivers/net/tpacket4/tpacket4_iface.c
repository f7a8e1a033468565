/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface of a port, and its events.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/ethtool.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>

#include "rte_eth_tpacket4.h"

const struct rte_eth_link tpacket4_no_link = {
	.link_speed = RTE_ETH_SPEED_NUM_UNKNOWN,
	.link_duplex = RTE_ETH_LINK_FULL_DUPLEX,
	.link_status = RTE_ETH_LINK_DOWN,
	.link_autoneg = RTE_ETH_LINK_AUTONEG,
};

/* The interface may have got another name. */
int
tpacket4_ask_interface(const struct port *port, unsigned long request, struct ifreq *ifr)
{
	struct ifreq name = { .ifr_ifindex = port->ifindex };

	if (ioctl(port->ctl, SIOCGIFNAME, &name))
		return -errno;
	memcpy(ifr->ifr_name, name.ifr_name, sizeof(ifr->ifr_name));
	return ioctl(port->ctl, request, ifr) ? -errno : 0;
}

int
tpacket4_set_flag(const struct port *port, short flag, bool on)
{
	struct ifreq ifr = { 0 };
	int err = tpacket4_ask_interface(port, SIOCGIFFLAGS, &ifr);

	if (err || !(ifr.ifr_flags & flag) == !on)
		return err;
	ifr.ifr_flags ^= flag;
	return tpacket4_ask_interface(port, SIOCSIFFLAGS, &ifr);
}

/* Mbit/s, or unknown, as for a virtual device */
static uint32_t
get_speed(const struct port *port)
{
	struct {
		struct ethtool_link_settings settings;
		uint32_t masks[3 * 127];
	} link = { .settings.cmd = ETHTOOL_GLINKSETTINGS };
	struct ifreq ifr = { .ifr_data = (void *)&link };

	/* The first call returns the size of the masks. */
	if (tpacket4_ask_interface(port, SIOCETHTOOL, &ifr))
		return RTE_ETH_SPEED_NUM_UNKNOWN;
	link.settings.link_mode_masks_nwords = -link.settings.link_mode_masks_nwords;
	link.settings.cmd = ETHTOOL_GLINKSETTINGS;
	if (tpacket4_ask_interface(port, SIOCETHTOOL, &ifr))
		return RTE_ETH_SPEED_NUM_UNKNOWN;
	return link.settings.speed;
}

int
tpacket4_link_update(struct rte_eth_dev *dev, int wait __rte_unused)
{
	const struct port *port = dev->data->dev_private;
	struct rte_eth_link link = tpacket4_no_link;
	struct ifreq ifr = { 0 };

	if (port->running && !tpacket4_ask_interface(port, SIOCGIFFLAGS, &ifr) &&
	    ifr.ifr_flags & IFF_RUNNING) {
		link.link_status = RTE_ETH_LINK_UP;
		link.link_speed = get_speed(port);
	}
	return rte_eth_linkstatus_set(dev, &link);
}

int
tpacket4_is_removed(struct rte_eth_dev *dev)
{
	const struct port *port = dev->data->dev_private;
	char name[IF_NAMESIZE];

	return !if_indextoname(port->ifindex, name);
}

int
tpacket4_set_mtu(const struct port *port, uint16_t mtu)
{
	struct ifreq ifr = { .ifr_mtu = mtu };

	return tpacket4_ask_interface(port, SIOCSIFMTU, &ifr);
}

int
tpacket4_get_mtu(const struct port *port)
{
	struct ifreq ifr = { 0 };
	int err = tpacket4_ask_interface(port, SIOCGIFMTU, &ifr);

	return err ? err : ifr.ifr_mtu;
}

/* Returns the number of queue pairs of the interface. */
unsigned int
tpacket4_count_queues(const struct port *port)
{
	struct ethtool_channels channels = { .cmd = ETHTOOL_GCHANNELS };
	struct ifreq ifr = { .ifr_data = (void *)&channels };

	if (tpacket4_ask_interface(port, SIOCETHTOOL, &ifr))
		return 1;
	return RTE_MAX(channels.combined_count,
		       RTE_MIN(channels.rx_count, channels.tx_count));
}

#define MAX_FEATURES	1024

/* Which of the device's features are on, by ethtool's names */
struct features {
	struct {
		struct ethtool_sset_info head;
		uint32_t nr;
	} set;
	struct {
		struct ethtool_gstrings head;
		char name[MAX_FEATURES][ETH_GSTRING_LEN];
	} strings;
	struct {
		struct ethtool_gfeatures head;
		struct ethtool_get_features_block block[MAX_FEATURES / 32];
	} state;
};

static int
read_features(const struct port *port, struct features *f)
{
	struct ifreq ifr = { .ifr_data = (void *)&f->set };
	int err;

	f->set.head.cmd = ETHTOOL_GSSET_INFO;
	f->set.head.sset_mask = UINT64_C(1) << ETH_SS_FEATURES;
	err = tpacket4_ask_interface(port, SIOCETHTOOL, &ifr);
	if (err)
		return err;
	if (f->set.nr > MAX_FEATURES)
		return -E2BIG;
	f->strings.head.cmd = ETHTOOL_GSTRINGS;
	f->strings.head.string_set = ETH_SS_FEATURES;
	f->strings.head.len = f->set.nr;
	ifr.ifr_data = (void *)&f->strings;
	err = tpacket4_ask_interface(port, SIOCETHTOOL, &ifr);
	if (err)
		return err;
	f->state.head.cmd = ETHTOOL_GFEATURES;
	f->state.head.size = RTE_DIM(f->state.block);
	ifr.ifr_data = (void *)&f->state;
	return tpacket4_ask_interface(port, SIOCETHTOOL, &ifr);
}

static bool
has_feature(const struct features *f, const char *name)
{
	unsigned int i;

	for (i = 0; i < f->set.nr; i++)
		if (!strncmp(f->strings.name[i], name, ETH_GSTRING_LEN))
			return f->state.block[i / 32].active & 1u << i % 32;
	return false;
}

/* In copy mode, the kernel does what the device cannot do. */
uint64_t
tpacket4_get_tx_offloads(const struct port *port)
{
	uint64_t found = RTE_ETH_TX_OFFLOAD_MULTI_SEGS | RTE_ETH_TX_OFFLOAD_VLAN_INSERT;
	struct features *f;

	if (!port->zerocopy) {
		found |= TX_META_OFFLOADS;
		/* A queueing discipline waits for the launch time. */
		if (!port->qdisc_bypass)
			found |= RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP;
		return found;
	}
	f = calloc(1, sizeof(*f));
	if (f && !read_features(port, f) &&
	    (has_feature(f, "tx-checksum-ip-generic") ||
	     (has_feature(f, "tx-checksum-ipv4") && has_feature(f, "tx-checksum-ipv6")))) {
		found |= RTE_ETH_TX_OFFLOAD_UDP_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM;
		if (has_feature(f, "tx-tcp-segmentation") &&
		    has_feature(f, "tx-tcp6-segmentation"))
			found |= RTE_ETH_TX_OFFLOAD_TCP_TSO;
		if (has_feature(f, "tx-udp-segmentation"))
			found |= RTE_ETH_TX_OFFLOAD_UDP_TSO;
	}
	free(f);
	return found;
}

/* --- events ---------------------------------------------------------------------------- */

/*
 * In the interrupt thread: an interface has changed. The messages are not read, as the kernel
 * can drop some of them.
 */
static void
handle_events(void *arg)
{
	struct rte_eth_dev *dev = arg;
	const struct rte_intr_conf *conf = &dev->data->dev_conf.intr_conf;
	struct port *port = dev->data->dev_private;
	int fd = rte_intr_fd_get(port->events);
	char message[8192];
	ssize_t n;

	do
		n = recv(fd, message, sizeof(message), 0);
	while (n > 0 || (n < 0 && (errno == ENOBUFS || errno == EINTR)));
	if (!tpacket4_link_update(dev, 0) && conf->lsc)
		rte_eth_dev_callback_process(dev, RTE_ETH_EVENT_INTR_LSC, NULL);
	if (tpacket4_is_removed(dev) && conf->rmv && !port->removed) {
		port->removed = true;
		rte_eth_dev_callback_process(dev, RTE_ETH_EVENT_INTR_RMV, NULL);
	}
}

void
tpacket4_stop_events(struct rte_eth_dev *dev)
{
	struct port *port = dev->data->dev_private;

	if (!port->events)
		return;
	rte_intr_callback_unregister_sync(port->events, handle_events, dev);
	close(rte_intr_fd_get(port->events));
	rte_intr_instance_free(port->events);
	port->events = NULL;
}

int
tpacket4_start_events(struct rte_eth_dev *dev)
{
	const struct rte_intr_conf *conf = &dev->data->dev_conf.intr_conf;
	const struct sockaddr_nl addr = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };
	struct port *port = dev->data->dev_private;
	int fd, err = -ENOMEM;

	if (!conf->lsc && !conf->rmv)
		return 0;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&addr, sizeof(addr))) {
		err = -errno;
		goto close;
	}
	port->events = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	if (!port->events)
		goto close;
	if (rte_intr_type_set(port->events, RTE_INTR_HANDLE_EXT) ||
	    rte_intr_fd_set(port->events, fd))
		goto free;
	err = rte_intr_callback_register(port->events, handle_events, dev);
	if (!err)
		return 0;
free:
	rte_intr_instance_free(port->events);
	port->events = NULL;
close:
	close(fd);
	return err;
}
