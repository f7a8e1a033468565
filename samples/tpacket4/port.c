// SPDX-License-Identifier: GPL-2.0
/*
 * A port: one socket with its rings, of any version. Opening it, and one round
 * of each benchmark.
 */
#include <linux/net_tstamp.h>
#include <net/if.h>
#include <unistd.h>

#include "tpbench.h"

#define SNDBUF		(64 << 20)	/* large enough */
#define XSK_TX_BATCH	32		/* TX_BATCH_SIZE in net/xdp/xsk.c */

static const struct ring_ops *ring_of(const struct config *cfg)
{
	switch (cfg->version) {
	case 2:
		return &ring_v2;
	case 3:
		return &ring_v3;
	case 4:
		return &ring_v4;
	default:
		return &ring_xdp;
	}
}

/* Options of a packet socket that is not bound yet */
static void packet_options(struct port *p)
{
	int e, sndbuf = SNDBUF;

	if (p->tx) {
		e = tp4_setopt(p->fd, PACKET_QDISC_BYPASS, p->cfg->bypass);
		if (e)
			errx(1, "PACKET_QDISC_BYPASS: %s", strerror(-e));
		/* Without CAP_NET_ADMIN, the limit applies. */
		if (setsockopt(p->fd, SOL_SOCKET, SO_SNDBUFFORCE, &sndbuf,
			       sizeof(sndbuf)) &&
		    setsockopt(p->fd, SOL_SOCKET, SO_SNDBUF, &sndbuf,
			       sizeof(sndbuf)))
			err(1, "SO_SNDBUF");
	}
	if (p->cfg->stamps) {
		e = tp4_setopt(p->fd, PACKET_TIMESTAMP,
			       SOF_TIMESTAMPING_SOFTWARE);
		if (e)
			errx(1, "PACKET_TIMESTAMP: %s", strerror(-e));
	}
	/* Do not receive packets that this host sends. */
	e = tp4_setopt(p->fd, PACKET_IGNORE_OUTGOING, 1);
	if (e)
		errx(1, "PACKET_IGNORE_OUTGOING: %s", strerror(-e));
}

static void packet_bind(struct port *p)
{
	struct tp4_socket s = { .fd = p->fd };
	const struct config *cfg = p->cfg;
	int e;

	if (p->rx) {
		e = tp4_bind(&s, p->ifindex);
	} else {
		/* Protocol 0: send only, receive nothing. */
		struct sockaddr_ll ll = {
			.sll_family = AF_PACKET,
			.sll_ifindex = p->ifindex,
		};

		e = bind(p->fd, (struct sockaddr *)&ll, sizeof(ll)) ?
		    -errno : 0;
	}
	if (e && cfg->zerocopy)
		errx(1, "%s: zero-copy on queue pair %d: %s",
		     cfg->ifname[p->end], p->queue,
		     tp4_strerror(TP4_IN_BIND, e));
	if (e)
		errx(1, "%s: bind: %s", cfg->ifname[p->end], strerror(-e));
}

/* AF_XDP sockets lack this option: use an additional packet socket. */
static void promisc(struct port *p)
{
	struct tp4_socket s = { .fd = p->fd };
	int e;

	if (!p->ops->is_packet) {
		p->promisc_fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
		if (p->promisc_fd < 0)
			err(1, "socket");
		s.fd = p->promisc_fd;
	}
	e = tp4_promisc(&s, p->ifindex);
	if (e)
		errx(1, "%s: promiscuous mode: %s", p->cfg->ifname[p->end],
		     strerror(-e));
}

static void busy_poll_start(struct port *p)
{
	struct tp4_socket s = { .fd = p->fd };
	unsigned int budget = p->cfg->batch;
	int e;

	/*
	 * sendto() also receives a budget of packets, but only sends this many
	 * in AF_XDP's copy mode: l2fwd could not keep up.
	 */
	if (p->ops == &ring_xdp && !p->cfg->zerocopy && budget > XSK_TX_BATCH)
		budget = XSK_TX_BATCH;
	e = tp4_busy_poll_start(&s, p->cfg->busy_poll, budget);
	if (e)
		errx(1, "SO_BUSY_POLL: %s", strerror(-e));
}

/* The nr-th socket of an end */
void port_open(struct port *p, const struct config *cfg, int end,
	       unsigned int nr)
{
	/* V4 in zero-copy mode uses both rings of a queue pair. */
	const bool pair = cfg->version == 4 && cfg->zerocopy &&
			  cfg->fanout < 0;

	memset(p, 0, sizeof(*p));
	p->cfg = cfg;
	p->ops = ring_of(cfg);
	p->end = end;
	p->nr = nr;
	p->queue = nr + cfg->first_queue;
	p->part = cfg->fanout < 0 ? (unsigned int)end : nr;
	p->zerocopy = cfg->zerocopy && cfg->fanout < 0;
	p->fd = -1;
	p->promisc_fd = -1;
	p->rx = cfg->mode != MODE_TXPUSH || pair;
	p->tx = cfg->mode != MODE_RXDROP || pair;
	p->ifindex = if_nametoindex(cfg->ifname[end]);
	if (!p->ifindex)
		err(1, "%s", cfg->ifname[end]);

	/* With a queue of its own, open() makes the packet socket. */
	if (p->ops->is_packet && !p->zerocopy) {
		p->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
		if (p->fd < 0)
			err(1, "socket");
	}
	p->ops->open(p);
	if (p->ops->is_packet)
		packet_options(p);
	if (cfg->promisc)
		promisc(p);
	if (cfg->busy_poll)
		busy_poll_start(p);
	if (!p->ops->is_packet)
		return;
	packet_bind(p);
	if (cfg->fanout >= 0)
		fanout_join(p);
}

void port_close(struct port *p)
{
	p->ops->close(p);
	if (p->fd >= 0)
		close(p->fd);
	if (p->promisc_fd >= 0)
		close(p->promisc_fd);
}

/* Packets dropped since the last call because the ring was full. */
__u64 port_drops(struct port *p)
{
	struct tp4_socket s = { .fd = p->fd };
	struct tpacket_stats_v4 st;
	int e;

	if (!p->rx)
		return 0;
	if (p->ops->drops)
		return p->ops->drops(p);
	e = tp4_stats(&s, &st);
	if (e)
		errx(1, "PACKET_STATISTICS: %s", strerror(-e));
	return st.tp_drops;
}

void port_kick(struct port *p)
{
	struct tp4_socket s = { .fd = p->fd };
	int e;

	if (p->ops->need_kick && !p->ops->need_kick(p))
		return;
	p->n.kicks++;
	e = tp4_kick(&s, MSG_DONTWAIT);
	/* The device or socket is full or busy: retry later. */
	if (e < 0 && e != -EAGAIN && e != -ENOBUFS && e != -EINTR &&
	    e != -EBUSY)
		errx(1, "sendto: %s", strerror(-e));
}

static unsigned int step_rxdrop(struct port *p)
{
	unsigned int n = p->ops->rx_drop(p, p->max);

	p->n.packets += n;
	return n;
}

static unsigned int step_txpush(struct port *p)
{
	unsigned int n;

	p->posted += p->ops->tx_fill(p, p->max - p->posted);
	port_kick(p);
	n = p->ops->tx_reap(p);
	p->n.packets += n;
	p->n.bytes += (__u64)n * p->cfg->size;
	return n;
}

static unsigned int step_l2fwd(struct port *p, bool polls)
{
	unsigned int n = p->ops->forward(p, p->max);

	p->n.packets += n;
	if (n || p->ops->tx_busy(p)) {
		/* Busy polling sends, too. */
		if (!polls || n)
			port_kick(p);
		p->ops->tx_reap(p);
	}
	return n;
}

/* With polls, busy polling follows if there are no packets. */
static unsigned int step_once(struct port *p, bool polls)
{
	switch (p->cfg->mode) {
	case MODE_RXDROP:
		return step_rxdrop(p);
	case MODE_TXPUSH:
		return step_txpush(p);
	default:
		return step_l2fwd(p, polls);
	}
}

/* One round of the benchmark; returns the number of packets processed. */
unsigned int port_step(struct port *p)
{
	struct tp4_socket s = { .fd = p->fd };
	bool polls;
	unsigned int n;
	int e;

	/*
	 * A sender busy polls with sendto(). In copy mode, a packet socket does
	 * not busy poll a queue.
	 */
	polls = p->cfg->busy_poll && p->rx &&
		!(p->ops->is_packet && !p->cfg->zerocopy);
	n = step_once(p, polls);
	if (n || !polls)
		return n;
	e = tp4_busy_poll(&s);
	if (e)
		errx(1, "%s: %s", p->cfg->ifname[p->end], strerror(-e));
	return step_once(p, false);
}
