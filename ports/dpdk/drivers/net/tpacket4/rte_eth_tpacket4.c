/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ethernet device on AF_PACKET V4 (TPACKET_V4) sockets of Linux.
 *
 * A queue pair is a socket with an Rx and a Tx ring. The memory of the Rx mempool is the
 * socket's area of frames: the buffer of an mbuf is a frame, which the kernel fills and
 * sends in place, and the frame number follows from the mbuf's address. If the kernel
 * cannot use the memory of a mempool, the queue pair has an area of its own, and packets
 * are copied.
 *
 * Rx and Tx of a queue pair may run on different lcores. They share the socket alone.
 *
 * Secondary processes get the sockets from the primary one. The queues are in shared memory,
 * and their pointers are valid in all processes: each maps the rings at the same address.
 */
#include <errno.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/sockios.h>

#include <ethdev_vdev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_kvargs.h>
#include <rte_malloc.h>
#include <rte_power_intrinsics.h>

#include "rte_eth_tpacket4.h"

/* Packets of a poll(): those of several bursts, so that there are fewer system calls */
#define DEFAULT_BUDGET	256
#define MIN_DESC	256
#define MAX_DESC	32768
#define DEFAULT_DESC	2048
#define MAX_PAIRS	64

#define ARG_IFACE	"iface"
#define ARG_START	"start_queue"
#define ARG_COUNT	"queue_count"
#define ARG_ZEROCOPY	"zerocopy"
#define ARG_TO_STACK	"to_stack"
#define ARG_BUDGET	"busy_budget"
#define ARG_FANOUT	"fanout_mode"
#define ARG_BYPASS	"qdisc_bypass"
#define ARG_LAUNCH	"launch"

RTE_LOG_REGISTER_DEFAULT(tpacket4_logtype, NOTICE);

/* --- the interface --------------------------------------------------------------------- */

static int
eth_link_up(struct rte_eth_dev *dev)
{
	return tpacket4_set_flag(dev->data->dev_private, IFF_UP, true);
}

static int
eth_link_down(struct rte_eth_dev *dev)
{
	return tpacket4_set_flag(dev->data->dev_private, IFF_UP, false);
}

/* The kernel counts memberships, and ethdev asks for them again at each start. */
static int
set_membership(struct rte_eth_dev *dev, int type, bool on)
{
	struct port *port = dev->data->dev_private;
	bool *is_on = type == PACKET_MR_PROMISC ? &port->promiscuous : &port->allmulticast;
	struct packet_mreq req = { .mr_ifindex = port->ifindex, .mr_type = type };

	if (*is_on == on)
		return 0;
	if (setsockopt(port->ctl, SOL_PACKET, on ? PACKET_ADD_MEMBERSHIP :
		       PACKET_DROP_MEMBERSHIP, &req, sizeof(req)))
		return -errno;
	*is_on = on;
	return 0;
}

static int
eth_promiscuous_enable(struct rte_eth_dev *dev)
{
	return set_membership(dev, PACKET_MR_PROMISC, true);
}

static int
eth_promiscuous_disable(struct rte_eth_dev *dev)
{
	return set_membership(dev, PACKET_MR_PROMISC, false);
}

static int
eth_allmulticast_enable(struct rte_eth_dev *dev)
{
	return set_membership(dev, PACKET_MR_ALLMULTI, true);
}

static int
eth_allmulticast_disable(struct rte_eth_dev *dev)
{
	return set_membership(dev, PACKET_MR_ALLMULTI, false);
}

static int
eth_mac_addr_set(struct rte_eth_dev *dev, struct rte_ether_addr *addr)
{
	struct ifreq ifr = { .ifr_hwaddr.sa_family = ARPHRD_ETHER };

	memcpy(ifr.ifr_hwaddr.sa_data, addr, sizeof(*addr));
	return tpacket4_ask_interface(dev->data->dev_private, SIOCSIFHWADDR, &ifr);
}

#define TOO_LONG "%s: MTU of %d: an mbuf of %s holds %u bytes of a packet, " \
		 "and longer ones need RTE_ETH_RX_OFFLOAD_SCATTER"

/* Checks whether the mbufs of all queues hold packets of that MTU. */
static int
check_mtu(const struct rte_eth_dev *dev, int mtu, bool notice)
{
	const uint32_t max = mtu + RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN;
	const struct port *port = dev->data->dev_private;
	unsigned int i;

	if (dev->data->dev_conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_SCATTER)
		return 0;
	for (i = 0; i < dev->data->nb_rx_queues; i++) {
		const struct rx_queue *q = rx_of(dev, i);
		uint32_t room;

		if (!q)
			continue;
		room = tpacket4_get_room(port, q->pool);
		if (max <= room)
			continue;
		if (notice)
			LOG(NOTICE, TOO_LONG, port->iface, mtu, q->pool->name, room);
		else
			LOG(ERR, TOO_LONG, port->iface, mtu, q->pool->name, room);
		return -EINVAL;
	}
	return 0;
}

static int
eth_mtu_set(struct rte_eth_dev *dev, uint16_t mtu)
{
	int err = check_mtu(dev, mtu, false);

	return err ? err : tpacket4_set_mtu(dev->data->dev_private, mtu);
}

/* --- start and stop of a port ---------------------------------------------------------- */

static void
set_queue_states(struct rte_eth_dev *dev, uint8_t state)
{
	unsigned int i;

	for (i = 0; i < dev->data->nb_rx_queues; i++)
		dev->data->rx_queue_state[i] = state;
	for (i = 0; i < dev->data->nb_tx_queues; i++)
		dev->data->tx_queue_state[i] = state;
}

/* Those that the application starts */
static void
defer_queues(struct rte_eth_dev *dev)
{
	unsigned int i;

	for (i = 0; i < dev->data->nb_rx_queues; i++)
		if (rx_of(dev, i)->deferred)
			dev->data->rx_queue_state[i] = RTE_ETH_QUEUE_STATE_STOPPED;
	for (i = 0; i < dev->data->nb_tx_queues; i++)
		if (tx_of(dev, i)->deferred)
			dev->data->tx_queue_state[i] = RTE_ETH_QUEUE_STATE_STOPPED;
}

static int
eth_stop(struct rte_eth_dev *dev)
{
	struct port *port = dev->data->dev_private;
	unsigned int i;

	if (!port->running)
		return 0;
	tpacket4_stop_events(dev);
	tpacket4_revoke_port(dev);
	port->running = false;
	dev->data->dev_link.link_status = RTE_ETH_LINK_DOWN;
	set_queue_states(dev, RTE_ETH_QUEUE_STATE_STOPPED);
	tpacket4_remove_interrupts(dev);
	for (i = 0; i < nr_pairs(dev); i++)
		tpacket4_stop_pair(&port->pairs[i], rx_of(dev, i), tx_of(dev, i));
	return 0;
}

/* Says if a mempool may run dry, which the kernel counts as missed packets. */
static void
check_mbufs(const struct rte_eth_dev *dev, const struct rte_mempool *pool)
{
	const struct port *port = dev->data->dev_private;
	const struct rx_queue *first = rx_of(dev, 0);
	unsigned int i, room = 0;

	for (i = 0; i < nr_pairs(dev); i++) {
		const struct rx_queue *rx = rx_of(dev, i);
		const struct tx_queue *tx = tx_of(dev, i);

		if (rx && rx->pool == pool)
			room += rx->nr + MAX_SPARE;
		if (tx && (rx ? rx : first)->pool == pool)
			room += tx->nr;
	}
	if (pool->size < room)
		LOG(NOTICE, "%s: mempool %s has %u mbufs, but the rings have room for %u: packets "
		    "are missed while it is empty", port->iface, pool->name, pool->size, room);
}

/* The port has started, but may not do all that the application expects. */
static void
give_notices(const struct rte_eth_dev *dev)
{
	const struct port *port = dev->data->dev_private;
	int i, nr = dev->data->nb_rx_queues;

	if (nr && nr < port->nr_queues && port->zerocopy)
		LOG(NOTICE, "%s: the port has %d Rx queues: the kernel receives the packets of "
		    "queues %d to %d", port->iface, nr, port->start_queue + nr,
		    port->start_queue + port->nr_queues - 1);
	check_mtu(dev, tpacket4_get_mtu(port), true);
	for (i = 0; i < nr && !port->copied; i++)
		if (!i || rx_of(dev, i)->pool != rx_of(dev, i - 1)->pool)
			check_mbufs(dev, rx_of(dev, i)->pool);
}

static int
eth_start(struct rte_eth_dev *dev)
{
	struct port *port = dev->data->dev_private;
	struct ifreq ifr = { 0 };
	unsigned int i;
	int err;

	err = check_mtu(dev, dev->data->mtu, false);
	if (err)
		return err;
	port->running = true;
	/* ethdev sets the address that it has, and the interface may have another one since. */
	if (!tpacket4_ask_interface(port, SIOCGIFHWADDR, &ifr))
		memcpy(&port->mac, ifr.ifr_hwaddr.sa_data, sizeof(port->mac));
	err = tpacket4_set_flag(port, IFF_UP, true);
	if (err)
		LOG(NOTICE, "%s: cannot be set up: %s", port->iface, strerror(-err));
	for (i = 0; i < nr_pairs(dev); i++)
		if (tpacket4_start_pair(dev, i))
			goto fail;
	port->copied = !port->pairs[0].shared;
	for (i = 1; i < nr_pairs(dev); i++)
		if (!port->pairs[i].shared != port->copied) {
			LOG(ERR, "%s: the mempool of only some queues can be an area", port->iface);
			goto fail;
		}
	if (dev->data->dev_conf.intr_conf.rxq && tpacket4_add_interrupts(dev)) {
		LOG(ERR, "%s: no memory for the interrupts", port->iface);
		goto fail;
	}
	err = tpacket4_start_events(dev);
	if (err) {
		LOG(ERR, "%s: no events of the interface: %s", port->iface, strerror(-err));
		goto fail;
	}
	tpacket4_set_functions(dev);
	set_queue_states(dev, RTE_ETH_QUEUE_STATE_STARTED);
	defer_queues(dev);
	tpacket4_offer_port(dev);
	tpacket4_link_update(dev, 0);
	give_notices(dev);
	return 0;
fail:
	eth_stop(dev);
	return -EIO;
}

/* --- configuration --------------------------------------------------------------------- */

static int
eth_configure(struct rte_eth_dev *dev)
{
	const struct port *port = dev->data->dev_private;
	uint16_t mtu = dev->data->dev_conf.rxmode.mtu;
	int err;

	/* 1500 may only be the default of ethdev, so the MTU is raised, but not lowered. */
	if (mtu > tpacket4_get_mtu(port)) {
		err = tpacket4_set_mtu(port, mtu);
		if (err) {
			LOG(ERR, "%s: MTU of %u: %s", port->iface, mtu, strerror(-err));
			return err;
		}
	}
	return tpacket4_register_times(dev);
}

static int
eth_infos_get(struct rte_eth_dev *dev, struct rte_eth_dev_info *info)
{
	const struct port *port = dev->data->dev_private;
	const struct rte_eth_desc_lim limits = {
		.nb_min = MIN_DESC, .nb_max = MAX_DESC, .nb_align = MIN_DESC,
		.nb_seg_max = UINT8_MAX, .nb_mtu_seg_max = UINT8_MAX,
	};

	info->if_index = port->ifindex;
	info->max_mac_addrs = 1;
	info->min_mtu = RTE_ETHER_MIN_MTU;
	info->max_mtu = UINT16_MAX - RTE_ETHER_HDR_LEN;
	info->max_rx_pktlen = UINT16_MAX;
	info->min_rx_bufsize = 0;
	info->max_rx_queues = port->nr_queues;
	info->max_tx_queues = port->nr_queues;
	info->rx_desc_lim = limits;
	info->tx_desc_lim = limits;
	info->default_rxportconf.ring_size = DEFAULT_DESC;
	info->default_txportconf.ring_size = DEFAULT_DESC;
	info->default_rxportconf.burst_size = 64;
	info->default_txportconf.burst_size = 64;
	info->rx_offload_capa = RX_META_OFFLOADS | RTE_ETH_RX_OFFLOAD_SCATTER |
				RTE_ETH_RX_OFFLOAD_VLAN_STRIP;
	info->tx_offload_capa = port->tx_offloads;
	/* The device hashes by the kernel's key and functions. */
	info->flow_type_rss_offloads = 0;
	return 0;
}

static uint16_t
ring_size(uint16_t nr)
{
	return rte_align32pow2(RTE_MAX(nr, MIN_DESC));
}

static int
eth_rx_queue_setup(struct rte_eth_dev *dev, uint16_t i, uint16_t nr,
		   unsigned int socket __rte_unused, const struct rte_eth_rxconf *conf,
		   struct rte_mempool *pool)
{
	struct port *port = dev->data->dev_private;
	struct rx_queue *q = &port->pairs[i].rx;

	q->nr = ring_size(nr);
	q->deferred = conf->rx_deferred_start;
	q->pool = pool;
	dev->data->rx_queues[i] = q;
	return 0;
}

static int
eth_tx_queue_setup(struct rte_eth_dev *dev, uint16_t i, uint16_t nr,
		   unsigned int socket __rte_unused, const struct rte_eth_txconf *conf)
{
	struct port *port = dev->data->dev_private;
	struct tx_queue *q = &port->pairs[i].tx;

	q->nr = ring_size(nr);
	q->deferred = conf->tx_deferred_start;
	dev->data->tx_queues[i] = q;
	return 0;
}

static void
eth_rxq_info_get(struct rte_eth_dev *dev, uint16_t i, struct rte_eth_rxq_info *info)
{
	const struct rx_queue *q = dev->data->rx_queues[i];

	info->mp = q->pool;
	info->nb_desc = q->nr;
	info->scattered_rx = q->scatter;
	info->conf.rx_deferred_start = q->deferred;
}

static void
eth_txq_info_get(struct rte_eth_dev *dev, uint16_t i, struct rte_eth_txq_info *info)
{
	const struct tx_queue *q = dev->data->tx_queues[i];

	info->nb_desc = q->nr;
	info->conf.tx_deferred_start = q->deferred;
}

/*
 * The kernel goes on to fill the ring of a queue that is stopped, since its socket may
 * send. When the queue is started, these packets are dropped.
 */
static int
eth_rx_queue_start(struct rte_eth_dev *dev, uint16_t i)
{
	struct rx_queue *q = rx_of(dev, i);

	q->pair->missed += tpacket4_drop_packets(q);
	dev->data->rx_queue_state[i] = RTE_ETH_QUEUE_STATE_STARTED;
	return 0;
}

static int
eth_rx_queue_stop(struct rte_eth_dev *dev, uint16_t i)
{
	tpacket4_stop_rx(rx_of(dev, i));
	dev->data->rx_queue_state[i] = RTE_ETH_QUEUE_STATE_STOPPED;
	return 0;
}

static int
eth_tx_queue_start(struct rte_eth_dev *dev, uint16_t i)
{
	dev->data->tx_queue_state[i] = RTE_ETH_QUEUE_STATE_STARTED;
	return 0;
}

static int
eth_tx_queue_stop(struct rte_eth_dev *dev, uint16_t i)
{
	tpacket4_stop_tx(tx_of(dev, i));
	dev->data->tx_queue_state[i] = RTE_ETH_QUEUE_STATE_STOPPED;
	return 0;
}

static int
eth_rx_intr_enable(struct rte_eth_dev *dev __rte_unused, uint16_t i __rte_unused)
{
	/* The socket is readable if the next slot is, as all others are posted. */
	return 0;
}

static int
eth_rx_intr_disable(struct rte_eth_dev *dev __rte_unused, uint16_t i __rte_unused)
{
	return 0;
}

#define WAKE_MASK	0

static int
is_received(const uint64_t value, const uint64_t opaque[RTE_POWER_MONITOR_OPAQUE_SZ])
{
	return value & opaque[WAKE_MASK] ? 0 : -1;
}

/* The next slot's last byte changes when a packet comes. */
static int
eth_get_monitor_addr(void *queue, struct rte_power_monitor_cond *cond)
{
	const struct rx_queue *q = queue;

	cond->addr = &q->ring.q.ring[q->next & q->ring.q.ring_mask].flags;
	cond->size = sizeof(uint8_t);
	cond->opaque[WAKE_MASK] = TP4_DESC_KERNEL;
	cond->fn = is_received;
	return 0;
}

/* The clock of launch times, if there are any, else that of the kernel's time stamps */
static int
eth_read_time(struct rte_eth_dev *dev, uint64_t *clock)
{
	const struct port *port = dev->data->dev_private;
	struct timespec now;
	bool launch = dev->data->dev_conf.txmode.offloads &
		      RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP;

	if (clock_gettime(launch ? port->clock : CLOCK_REALTIME, &now))
		return -errno;
	*clock = now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
	return 0;
}

static int
eth_tx_done_cleanup(void *queue, uint32_t max)
{
	struct tx_queue *q = queue;

	return tpacket4_free_packets(q, max ? max : UINT_MAX);
}

/* --- statistics ------------------------------------------------------------------------ */

/* Since DPDK 25.11, the counters of queues are not in struct rte_eth_stats. */
#if RTE_VER_YEAR * 100 + RTE_VER_MONTH < 2511
#define eth_queue_stats rte_eth_stats
#endif

static void
add_queue_stats(struct eth_queue_stats *stats, unsigned int i, const struct rx_queue *rx,
		const struct tx_queue *tx)
{
	if (!stats || i >= RTE_ETHDEV_QUEUE_STAT_CNTRS)
		return;
	if (rx) {
		stats->q_ipackets[i] = rx->packets;
		stats->q_ibytes[i] = rx->bytes;
		stats->q_errors[i] = rx->errors;
	}
	if (tx) {
		stats->q_opackets[i] = tx->packets;
		stats->q_obytes[i] = tx->bytes;
	}
}

static int
get_stats(struct rte_eth_dev *dev, struct rte_eth_stats *stats, struct eth_queue_stats *queues)
{
	struct port *port = dev->data->dev_private;
	unsigned int i, j;

	for (i = 0; i < nr_pairs(dev); i++) {
		struct queue_pair *pair = &port->pairs[i];
		const struct rx_queue *rx = rx_of(dev, i);
		const struct tx_queue *tx = tx_of(dev, i);

		if (rx) {
			tpacket4_read_missed(pair);
			stats->ipackets += rx->packets;
			stats->ibytes += rx->bytes;
			stats->ierrors += rx->errors;
			stats->imissed += pair->missed;
		}
		if (tx) {
			stats->opackets += tx->packets;
			stats->obytes += tx->bytes;
			for (j = 0; j < NR_TX_ERRORS; j++)
				stats->oerrors += tx->errors[j];
		}
		add_queue_stats(queues, i, rx, tx);
	}
	/* Packets that came back unsent were counted when they were posted. */
	stats->opackets -= RTE_MIN(stats->oerrors, stats->opackets);
	return 0;
}

#ifdef eth_queue_stats
static int
eth_stats_get(struct rte_eth_dev *dev, struct rte_eth_stats *stats)
{
	return get_stats(dev, stats, stats);
}
#else
static int
eth_stats_get(struct rte_eth_dev *dev, struct rte_eth_stats *stats,
	      struct eth_queue_stats *queues)
{
	return get_stats(dev, stats, queues);
}
#endif

static int
eth_stats_reset(struct rte_eth_dev *dev)
{
	struct port *port = dev->data->dev_private;
	unsigned int i;

	for (i = 0; i < nr_pairs(dev); i++) {
		struct queue_pair *pair = &port->pairs[i];

		tpacket4_read_missed(pair);
		pair->missed = 0;
		pair->rx.packets = 0;
		pair->rx.bytes = 0;
		pair->rx.errors = 0;
		pair->tx.packets = 0;
		pair->tx.bytes = 0;
		pair->tx.copied = 0;
		memset(pair->tx.errors, 0, sizeof(pair->tx.errors));
	}
	return 0;
}

#define NR_XSTATS	(NR_TX_ERRORS + 1)

static int
eth_xstats_get_names(struct rte_eth_dev *dev __rte_unused, struct rte_eth_xstat_name *names,
		     unsigned int size)
{
	unsigned int i;

	if (!names || size < NR_XSTATS)
		return NR_XSTATS;
	for (i = 0; i < NR_TX_ERRORS; i++)
		strlcpy(names[i].name, tpacket4_tx_errors[i].name, sizeof(names[i].name));
	strlcpy(names[i].name, "tx_copied_packets", sizeof(names[i].name));
	return NR_XSTATS;
}

static int
eth_xstats_get(struct rte_eth_dev *dev, struct rte_eth_xstat *xstats, unsigned int size)
{
	unsigned int i, q;

	if (size < NR_XSTATS)
		return NR_XSTATS;
	for (i = 0; i < NR_XSTATS; i++) {
		xstats[i].id = i;
		xstats[i].value = 0;
		for (q = 0; q < dev->data->nb_tx_queues; q++) {
			const struct tx_queue *tx = tx_of(dev, q);

			if (tx)
				xstats[i].value += i < NR_TX_ERRORS ? tx->errors[i] :
						   tx->copied;
		}
	}
	return NR_XSTATS;
}

/* --- probe and remove ------------------------------------------------------------------ */

static int
eth_close(struct rte_eth_dev *dev)
{
	struct port *port = dev->data->dev_private;

	if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
		tpacket4_detach_secondary(dev);
		return 0;
	}
	eth_stop(dev);
	close(port->ctl);
	rte_free(port->pairs);
	port->pairs = NULL;
	free(dev->process_private);
	dev->process_private = NULL;
	/* It lies in the port, which ethdev frees. */
	dev->data->mac_addrs = NULL;
	return 0;
}

const struct eth_dev_ops tpacket4_ops = {
	.dev_configure = eth_configure,
	.dev_start = eth_start,
	.dev_stop = eth_stop,
	.dev_set_link_up = eth_link_up,
	.dev_set_link_down = eth_link_down,
	.dev_close = eth_close,
	.dev_infos_get = eth_infos_get,
	.link_update = tpacket4_link_update,
	.is_removed = tpacket4_is_removed,
	.promiscuous_enable = eth_promiscuous_enable,
	.promiscuous_disable = eth_promiscuous_disable,
	.allmulticast_enable = eth_allmulticast_enable,
	.allmulticast_disable = eth_allmulticast_disable,
	.mac_addr_set = eth_mac_addr_set,
	.mtu_set = eth_mtu_set,
	.rx_queue_start = eth_rx_queue_start,
	.rx_queue_stop = eth_rx_queue_stop,
	.tx_queue_start = eth_tx_queue_start,
	.tx_queue_stop = eth_tx_queue_stop,
	.rx_queue_setup = eth_rx_queue_setup,
	.tx_queue_setup = eth_tx_queue_setup,
	.rxq_info_get = eth_rxq_info_get,
	.txq_info_get = eth_txq_info_get,
	.rx_queue_intr_enable = eth_rx_intr_enable,
	.rx_queue_intr_disable = eth_rx_intr_disable,
	.get_monitor_addr = eth_get_monitor_addr,
	.read_clock = eth_read_time,
	.tx_done_cleanup = eth_tx_done_cleanup,
	.stats_get = eth_stats_get,
	.stats_reset = eth_stats_reset,
	.xstats_get = eth_xstats_get,
	.xstats_get_names = eth_xstats_get_names,
	.xstats_reset = eth_stats_reset,
};

static int
eth_link_of_primary(struct rte_eth_dev *dev __rte_unused, int wait __rte_unused)
{
	return 0;	/* it is in shared memory */
}

/* The primary process configures the port. */
const struct eth_dev_ops tpacket4_secondary_ops = {
	.dev_close = eth_close,
	.dev_infos_get = eth_infos_get,
	.link_update = eth_link_of_primary,
	.is_removed = tpacket4_is_removed,
	.rxq_info_get = eth_rxq_info_get,
	.txq_info_get = eth_txq_info_get,
	.rx_queue_intr_enable = eth_rx_intr_enable,
	.rx_queue_intr_disable = eth_rx_intr_disable,
	.get_monitor_addr = eth_get_monitor_addr,
	.read_clock = eth_read_time,
	.tx_done_cleanup = eth_tx_done_cleanup,
	.stats_get = eth_stats_get,
	.stats_reset = eth_stats_reset,
	.xstats_get = eth_xstats_get,
	.xstats_get_names = eth_xstats_get_names,
	.xstats_reset = eth_stats_reset,
};

static int
parse_number(const char *key, const char *value, void *number)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(value, &end, 0);
	if (errno || !*value || *end || n < 0 || n > UINT16_MAX) {
		LOG(ERR, "%s=%s: not a number", key, value);
		return -EINVAL;
	}
	*(int *)number = n;
	return 0;
}

static int
parse_iface(const char *key, const char *value, void *name)
{
	if (strlen(value) >= IF_NAMESIZE || !if_nametoindex(value)) {
		LOG(ERR, "%s=%s: no such interface", key, value);
		return -ENODEV;
	}
	strlcpy(name, value, IF_NAMESIZE);
	return 0;
}

static int
parse_broker(const char *key, const char *value, void *broker)
{
	struct sockaddr_un *addr = broker;

	if (!*value || strlen(value) >= sizeof(addr->sun_path)) {
		LOG(ERR, "%s=%s: not the path of a socket", key, value);
		return -EINVAL;
	}
	addr->sun_family = AF_UNIX;
	strlcpy(addr->sun_path, value, sizeof(addr->sun_path));
	return 0;
}

static int
parse_fanout(const char *key, const char *value, void *mode)
{
	static const char * const names[] = {
		[PACKET_FANOUT_HASH] = "hash", [PACKET_FANOUT_LB] = "lb",
		[PACKET_FANOUT_CPU] = "cpu", [PACKET_FANOUT_ROLLOVER] = "rollover",
		[PACKET_FANOUT_RND] = "rnd", [PACKET_FANOUT_QM] = "qm",
	};
	unsigned int i;

	for (i = 0; i < RTE_DIM(names); i++)
		if (!strcmp(value, names[i])) {
			*(int *)mode = i;
			return 0;
		}
	LOG(ERR, "%s=%s: hash, lb, cpu, rollover, rnd or qm", key, value);
	return -EINVAL;
}

static int
parse_launch(const char *key, const char *value, void *clock)
{
	if (!strcmp(value, "fq")) {
		*(int *)clock = CLOCK_MONOTONIC;
		return 0;
	}
	if (!strcmp(value, "etf")) {
		*(int *)clock = CLOCK_TAI;
		return 0;
	}
	LOG(ERR, "%s=%s: fq or etf", key, value);
	return -EINVAL;
}

static int
parse_arguments(struct port *port, const char *text)
{
	static const char * const valid[] = {
		ARG_IFACE, ARG_START, ARG_COUNT, ARG_ZEROCOPY, ARG_TO_STACK, ARG_BUDGET,
		ARG_FANOUT, ARG_BYPASS, ARG_LAUNCH, ARG_BROKER, NULL
	};
	const struct {
		const char *name;
		arg_handler_t parse;
		void *value;
	} args[] = {
		{ ARG_IFACE, parse_iface, port->iface },
		{ ARG_START, parse_number, &port->start_queue },
		{ ARG_COUNT, parse_number, &port->nr_queues },
		{ ARG_ZEROCOPY, parse_number, &port->zerocopy },
		{ ARG_TO_STACK, parse_number, &port->to_stack },
		{ ARG_BUDGET, parse_number, &port->busy_budget },
		{ ARG_FANOUT, parse_fanout, &port->fanout_mode },
		{ ARG_BYPASS, parse_number, &port->qdisc_bypass },
		{ ARG_LAUNCH, parse_launch, &port->clock },
		{ ARG_BROKER, parse_broker, &port->broker },
	};
	struct rte_kvargs *kvargs = rte_kvargs_parse(text, valid);
	unsigned int i;
	int err = 0;

	if (!kvargs) {
		LOG(ERR, "invalid arguments: %s", text);
		return -EINVAL;
	}
	for (i = 0; i < RTE_DIM(args) && !err; i++)
		err = rte_kvargs_process(kvargs, args[i].name, args[i].parse, args[i].value);
	rte_kvargs_free(kvargs);
	if (!err && !port->iface[0]) {
		LOG(ERR, "iface=NAME is missing");
		err = -EINVAL;
	}
	return err;
}

static int
init_port(struct port *port, int numa_node)
{
	struct ifreq ifr = { 0 };
	int err, queues;

	port->ifindex = if_nametoindex(port->iface);
	port->ctl = tpacket4_open_socket(&port->broker, NULL);
	if (port->ctl < 0) {
		err = port->ctl;
		if (port->broker.sun_path[0]) {
			LOG(ERR, "%s=%s: %s", ARG_BROKER, port->broker.sun_path, strerror(-err));
			return err;
		}
		LOG(ERR, "%s: %s", port->iface, tp4_strerror(TP4_IN_SOCKET, err));
		return err;
	}
	err = tp4_setopt(port->ctl, PACKET_VERSION, TPACKET_V4);
	if (err) {
		LOG(ERR, "%s: %s", port->iface, tp4_strerror(TP4_IN_VERSION, err));
		goto close;
	}
	err = tpacket4_ask_interface(port, SIOCGIFHWADDR, &ifr);
	if (!err && ifr.ifr_hwaddr.sa_family != ARPHRD_ETHER)
		err = -EAFNOSUPPORT;
	if (err) {
		LOG(ERR, "%s: no Ethernet address: %s", port->iface, strerror(-err));
		goto close;
	}
	memcpy(&port->mac, ifr.ifr_hwaddr.sa_data, sizeof(port->mac));
	queues = port->zerocopy ? tpacket4_count_queues(port) : MAX_PAIRS;
	if (port->start_queue >= queues || port->nr_queues > queues - port->start_queue) {
		LOG(ERR, "%s has %d queues", port->iface, queues);
		err = -EINVAL;
		goto close;
	}
	port->tx_offloads = tpacket4_get_tx_offloads(port);
	if (!port->nr_queues)
		port->nr_queues = RTE_MIN(queues - port->start_queue, MAX_PAIRS);
	err = -ENOMEM;
	port->pairs = rte_zmalloc_socket("net_tpacket4", port->nr_queues * sizeof(*port->pairs),
					 RTE_CACHE_LINE_SIZE, numa_node);
	if (!port->pairs)
		goto close;
	return 0;
close:
	close(port->ctl);
	return err;
}

/* Drivers use internal structures, which change while the ABI does not. */
static bool
is_version_of_dpdk(void)
{
	if (rte_version_year() == RTE_VER_YEAR && rte_version_month() == RTE_VER_MONTH)
		return true;
	LOG(ERR, "this driver is for DPDK %d.%02d, but the program runs on %s", RTE_VER_YEAR,
	    RTE_VER_MONTH, rte_version());
	return false;
}

static int
tpacket4_probe(struct rte_vdev_device *vdev)
{
	struct port *port, options = {
		.zerocopy = 1, .busy_budget = DEFAULT_BUDGET, .clock = CLOCK_MONOTONIC,
	};
	struct tp4_socket *sockets;
	struct rte_eth_dev *dev;
	int i, err;

	if (!is_version_of_dpdk())
		return -ENOTSUP;
	if (rte_eal_process_type() != RTE_PROC_PRIMARY)
		return tpacket4_attach_secondary(vdev);
	err = parse_arguments(&options, rte_vdev_device_args(vdev));
	if (err)
		return err;
	if (vdev->device.numa_node == SOCKET_ID_ANY)
		vdev->device.numa_node = rte_socket_id();
	err = init_port(&options, vdev->device.numa_node);
	if (err)
		return err;
	tpacket4_register_messages(true);	/* without it, there are no other processes */
	sockets = calloc(options.nr_queues, sizeof(*sockets));
	dev = sockets ? rte_eth_vdev_allocate(vdev, sizeof(*port)) : NULL;
	if (!dev) {
		free(sockets);
		rte_free(options.pairs);
		close(options.ctl);
		return -ENOMEM;
	}
	dev->process_private = sockets;
	port = dev->data->dev_private;
	*port = options;
	for (i = 0; i < port->nr_queues; i++) {
		struct queue_pair *pair = &port->pairs[i];

		pair->id = i;
		pair->port = dev->data->port_id;
		pair->rx.pair = pair;
		pair->tx.pair = pair;
	}
	dev->data->dev_link = tpacket4_no_link;
	dev->data->mac_addrs = &port->mac;
	dev->data->mtu = RTE_MIN(tpacket4_get_mtu(port), UINT16_MAX - RTE_ETHER_HDR_LEN);
	dev->data->dev_flags |= RTE_ETH_DEV_AUTOFILL_QUEUE_XSTATS | RTE_ETH_DEV_INTR_LSC |
				RTE_ETH_DEV_INTR_RMV;
	dev->dev_ops = &tpacket4_ops;
	dev->rx_pkt_burst = rte_eth_pkt_burst_dummy;
	dev->tx_pkt_burst = rte_eth_pkt_burst_dummy;
	rte_eth_dev_probing_finish(dev);
	return 0;
}

static int
tpacket4_remove(struct rte_vdev_device *vdev)
{
	struct rte_eth_dev *dev = rte_eth_dev_allocated(rte_vdev_device_name(vdev));

	if (!dev)
		return 0;	/* it was closed */
	eth_close(dev);
	return rte_eth_dev_release_port(dev);
}

static struct rte_vdev_driver tpacket4_driver = {
	.probe = tpacket4_probe,
	.remove = tpacket4_remove,
};

RTE_PMD_REGISTER_VDEV(net_tpacket4, tpacket4_driver);
RTE_PMD_REGISTER_PARAM_STRING(net_tpacket4,
	ARG_IFACE "=<string> "
	ARG_START "=<int> "
	ARG_COUNT "=<int> "
	ARG_ZEROCOPY "=<0|1> "
	ARG_TO_STACK "=<0|1> "
	ARG_BUDGET "=<int> "
	ARG_FANOUT "=<hash|lb|cpu|rollover|rnd|qm> "
	ARG_BYPASS "=<0|1> "
	ARG_LAUNCH "=<fq|etf> "
	ARG_BROKER "=<string>");
