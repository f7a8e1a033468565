/* SPDX-License-Identifier: GPL-2.0 */
/*
 * packet_diag, for the selftests of AF_PACKET V4
 */
#ifndef TPACKET4_DIAG_H
#define TPACKET4_DIAG_H

#include "netlink.h"

#include <linux/if_packet.h>
#include <linux/packet_diag.h>
#include <linux/sock_diag.h>

struct diag {
	unsigned int ino;		/* whose */
	struct packet_diag_info info;
	struct packet_diag_ring rx, tx;
	struct packet_diag_memreg memreg;
	long zerocopy;			/* -1: no such attribute */
	struct packet_diag_stats stats;
};

static inline bool diag_each(struct nlmsghdr *h, void *arg)
{
	struct packet_diag_msg *m = NLMSG_DATA(h);
	struct diag *d = arg;

	if (m->pdiag_ino != d->ino)
		return false;
	attr_get(h, sizeof(*m), PACKET_DIAG_INFO, &d->info, sizeof(d->info));
	attr_get(h, sizeof(*m), PACKET_DIAG_RX_RING, &d->rx, sizeof(d->rx));
	attr_get(h, sizeof(*m), PACKET_DIAG_TX_RING, &d->tx, sizeof(d->tx));
	attr_get(h, sizeof(*m), PACKET_DIAG_MEMREG, &d->memreg,
		 sizeof(d->memreg));
	d->zerocopy = attr_u32(h, sizeof(*m), PACKET_DIAG_ZEROCOPY);
	attr_get(h, sizeof(*m), PACKET_DIAG_STATS, &d->stats,
		 sizeof(d->stats));
	return true;
}

/* Finds the socket with this inode. Returns 0 or -errno; -ENOENT without
 * packet_diag.
 */
static inline int diag_find(unsigned int ino, struct diag *d)
{
	struct {
		struct nlmsghdr h;
		struct packet_diag_req r;
	} req = {
		.h.nlmsg_len = sizeof(req),
		.h.nlmsg_type = SOCK_DIAG_BY_FAMILY,
		.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		.r.sdiag_family = AF_PACKET,
		.r.pdiag_show = PACKET_SHOW_INFO | PACKET_SHOW_RING_CFG |
				PACKET_SHOW_STATS,
	};

	memset(d, 0, sizeof(*d));
	d->ino = ino;
	return nl_dump(NETLINK_SOCK_DIAG, &req, diag_each, d);
}

#endif
