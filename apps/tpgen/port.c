// SPDX-License-Identifier: GPL-2.0
/* tpgen: a socket, its rings and its frames */
#include <net/if.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <linux/ethtool.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <tpacket4_device.h>

#include "tpgen.h"

#define SNDBUF		(64 << 20)	/* never the limit */

static void check(int e, const struct config *cfg, const char *what)
{
	if (e)
		errx(1, "%s: %s: %s", cfg->ifname, what, strerror(-e));
}

/* The same for an error of the library, which knows what it means */
static void check_at(int e, const struct config *cfg, const char *what,
		     enum tp4_where where)
{
	if (e)
		errx(1, "%s: %s: %s", cfg->ifname, what,
		     tp4_strerror(where, e));
}

static void set_socket(int fd, const struct config *cfg, int name,
		       const void *value, socklen_t len, const char *what)
{
	if (setsockopt(fd, SOL_SOCKET, name, value, len))
		err(1, "%s: %s", cfg->ifname, what);
}

static void set_up_tx(int fd, const struct config *cfg)
{
	struct sock_txtime txtime = {
		.clockid = cfg->launch == LAUNCH_ETF ? CLOCK_TAI :
						       CLOCK_MONOTONIC,
	};
	int sndbuf = SNDBUF;

	check(tp4_setopt(fd, PACKET_QDISC_BYPASS, !cfg->qdisc), cfg,
	      "PACKET_QDISC_BYPASS");
	/* The limit is only for those who do not have CAP_NET_ADMIN. */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &sndbuf,
		       sizeof(sndbuf)))
		set_socket(fd, cfg, SO_SNDBUF, &sndbuf, sizeof(sndbuf),
			   "SO_SNDBUF");
	if (cfg->launch)
		set_socket(fd, cfg, SO_TXTIME, &txtime, sizeof(txtime),
			   "SO_TXTIME");
}

/* Let the card stamp all packets, and the socket get these stamps. */
static void set_up_stamps(int fd, const struct config *cfg)
{
	struct hwtstamp_config hw = { .rx_filter = HWTSTAMP_FILTER_ALL };
	struct ifreq ifr = { .ifr_data = (void *)&hw };
	int flags = SOF_TIMESTAMPING_SOFTWARE;

	if (cfg->stamps == STAMPS_HARDWARE) {
		flags = SOF_TIMESTAMPING_RAW_HARDWARE;
		strncpy(ifr.ifr_name, cfg->ifname, sizeof(ifr.ifr_name) - 1);
		if (ioctl(fd, SIOCSHWTSTAMP, &ifr))
			err(1, "%s: the device cannot stamp all packets",
			    cfg->ifname);
	}
	check(tp4_setopt(fd, PACKET_TIMESTAMP, flags), cfg,
	      "PACKET_TIMESTAMP");
}

static void set_up_fanout(int fd, const struct config *cfg)
{
	int group = (getpid() & 0xffff) |
		    PACKET_FANOUT_HASH << 16;

	check(tp4_setopt(fd, PACKET_FANOUT, group), cfg, "PACKET_FANOUT");
}

/* Without an Rx ring, nothing is received. */
static int bind_to(int fd, int ifindex, bool rx)
{
	struct sockaddr_ll ll = {
		.sll_family = AF_PACKET,
		.sll_protocol = rx ? htons(ETH_P_ALL) : 0,
		.sll_ifindex = ifindex,
	};

	return bind(fd, (struct sockaddr *)&ll, sizeof(ll)) ? -errno : 0;
}

static void post_rx_frames(struct worker *w)
{
	__u64 frames[BATCH];
	unsigned int i, n;

	for (n = 0; n < w->rx_frames; n += i) {
		for (i = 0; i < BATCH && n + i < w->rx_frames; i++)
			frames[i] = n + i;
		tp4_ring_post(&w->sock.rx, frames, i);
	}
}

/**
 * port_open - open the socket of a thread
 * @w: thread
 * @rx_nr: slots of the Rx ring, 0: none. Frames from 0 on are posted
 * @tx_nr: slots of the Tx ring, 0: none
 * @tx_frames: number of frames behind those of the Rx ring
 * @frame_size: bytes per frame
 *
 * Ends the program with a message if it fails.
 */
void port_open(struct worker *w, unsigned int rx_nr, unsigned int tx_nr,
	       unsigned int tx_frames, unsigned int frame_size)
{
	const struct config *cfg = w->cfg;
	const bool meta = (rx_nr && cfg->stamps != STAMPS_PROGRAM) ||
			  cfg->launch;
	int e, fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	struct tp4_options opt = {
		.rx_nr = rx_nr,
		.tx_nr = tx_nr,
		.area = &w->area,
		.fd = fd,
		.meta = meta,
	};

	if (fd < 0)
		err(1, "packet socket");
	if (tx_nr)
		set_up_tx(fd, cfg);
	if (rx_nr && cfg->stamps != STAMPS_PROGRAM)
		set_up_stamps(fd, cfg);
	check(tp4_setopt(fd, PACKET_IGNORE_OUTGOING, 1), cfg,
	      "PACKET_IGNORE_OUTGOING");
	check_at(tp4_area_create(&w->area, rx_nr + tx_frames, frame_size), cfg,
		 "packet memory", TP4_IN_AREA);
	e = tp4_open(&w->sock, &opt);
	if (e == -ENOBUFS)
		errx(1, "%zu bytes of packet memory: %s", w->area.len,
		     tp4_strerror(w->sock.failed, e));
	check_at(e, cfg, "rings", w->sock.failed);
	w->rx_frames = rx_nr;
	post_rx_frames(w);
	if (cfg->promisc)
		check(tp4_promisc(&w->sock, cfg->ifindex), cfg,
		      "promiscuous mode");
	if (cfg->zerocopy) {
		e = tp4_zerocopy(&w->sock, cfg->queue[w->nr] + 1);
		check_at(e, cfg, "zero-copy mode", TP4_IN_ZEROCOPY);
	}
	e = bind_to(fd, cfg->ifindex, rx_nr);
	if (e && cfg->zerocopy)
		errx(1, "%s: zero-copy mode on queue %u: %s", cfg->ifname,
		     cfg->queue[w->nr], tp4_strerror(TP4_IN_BIND, e));
	check_at(e, cfg, "bind", TP4_IN_BIND);
	if (rx_nr && !cfg->zerocopy && cfg->nr_threads > 1)
		set_up_fanout(fd, cfg);
}

/**
 * port_warn - say that zero-copy mode takes the link down, if it does
 * @cfg: command line
 */
void port_warn(const struct config *cfg)
{
	if (cfg->zerocopy && tp4_resets_link(cfg->ifindex) > 0)
		warnx("%s: the link goes down for some seconds, as the driver resets the port for zero-copy mode; \"tp4 hold %s\" keeps it up between programs",
		      cfg->ifname, cfg->ifname);
}

/**
 * port_close - close the socket of a thread
 * @w: thread
 */
void port_close(struct worker *w)
{
	tp4_close(&w->sock);
	tp4_area_destroy(&w->area);
}

/**
 * port_read_drops - add the packets that the socket has dropped
 * @w: thread, whose rx_drops is written
 */
void port_read_drops(struct worker *w)
{
	struct tpacket_stats_v4 st;

	if (w->rx_frames && !tp4_stats(&w->sock, &st))
		w->rx_drops += st.tp_drops;
}

/**
 * port_kick - let the kernel send
 * @w: thread
 *
 * Return: 0, also if the device is full; or -errno.
 */
int port_kick(struct worker *w)
{
	int e;

	if (!tp4_need_kick(&w->sock))
		return 0;
	e = tp4_kick(&w->sock, MSG_DONTWAIT);
	if (e >= 0 || e == -EAGAIN || e == -ENOBUFS || e == -EINTR ||
	    e == -EBUSY)
		return 0;
	return e;
}

/* Ask the device of that name in this network namespace, of which /sys need not be. */
static bool ask_device(const char *ifname, int request, struct ifreq *ifr)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;

	snprintf(ifr->ifr_name, sizeof(ifr->ifr_name), "%s", ifname);
	err = ioctl(fd, request, ifr);
	close(fd);
	return !err;
}

static bool has_link(const char *ifname)
{
	struct ethtool_value link = { .cmd = ETHTOOL_GLINK };
	struct ifreq ifr = { .ifr_data = (void *)&link };

	if (ask_device(ifname, SIOCETHTOOL, &ifr))
		return link.data;
	/* Of a driver that has no such operation */
	return ask_device(ifname, SIOCGIFFLAGS, &ifr) &&
	       ifr.ifr_flags & IFF_RUNNING;
}

/**
 * port_speed - get the speed of the link
 * @ifname: interface
 *
 * Return: bits per second, or 0 if it is unknown.
 */
__u64 port_speed(const char *ifname)
{
	struct ethtool_cmd cmd = { .cmd = ETHTOOL_GSET };
	struct ifreq ifr = { .ifr_data = (void *)&cmd };
	__u32 mbit;

	if (!ask_device(ifname, SIOCETHTOOL, &ifr))
		return 0;
	mbit = ethtool_cmd_speed(&cmd);
	return mbit == (__u32)SPEED_UNKNOWN ? 0 : mbit * 1000000ull;
}

/**
 * port_wait_link - wait until the interface has a link
 * @cfg: command line
 *
 * Ends the program if there is none in time. Returns early after Ctrl-C.
 */
void port_wait_link(const struct config *cfg)
{
	const __u64 end = clock_ns(CLOCK_MONOTONIC) + cfg->wait_link * NSEC;

	for (;;) {
		if (has_link(cfg->ifname))
			return;
		if (interrupted())
			return;
		if (clock_ns(CLOCK_MONOTONIC) >= end)
			errx(1, "%s: no link", cfg->ifname);
		usleep(10000);
	}
}
