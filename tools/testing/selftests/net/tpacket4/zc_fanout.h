/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For the selftests of AF_PACKET V4's zero-copy mode: a fanout group on if_b that
 * is fed by sockets in zero-copy mode. All sockets of the group have parts of one
 * area, or areas of their own.
 */
#ifndef TPACKET4_ZC_FANOUT_H
#define TPACKET4_ZC_FANOUT_H

#include "xdp.h"

#include <linux/filter.h>

#define NR_MEMBERS	2
#define GROUP_ID	4711
#define SHARERS		7		/* parts of the area, less one */
/* Where a packet's number has its lowest byte */
#define LOW_BYTE	(htons(1) == 1 ? 3 : 0)

struct group {
	struct zc feed;			/* the area is its */
	struct zc member[NR_MEMBERS];
	unsigned int part;		/* the next free part of the area */
	bool copy;			/* members have areas of their own */
	bool meta;			/* members want metadata */
	int type;			/* with flags << 8 */
};

/* Is the pair of devices hardware? Then they are shared by all tests. */
static inline bool on_ports(void)
{
	return getenv("TPACKET4_PORTS");
}

/* All packets arrive, by one queue. */
static inline int port_reset(const char *name)
{
	struct ifreq ifr = { .ifr_flags = IFF_PROMISC | IFF_UP };
	char cmd[128];

	snprintf(cmd, sizeof(cmd),
		 "ethtool -L %s combined 1 >/dev/null 2>&1 || :", name);
	if (system(cmd))
		return -ECHILD;
	xdp_attach_native(name, -1);
	return dev_ioctl(name, SIOCSIFFLAGS, &ifr);
}

static inline void group_net_setup(struct __test_metadata *_metadata)
{
	pv4_net_setup(_metadata);
	if (!on_ports())
		return;
	ASSERT_EQ(0, port_reset(if_a));
	ASSERT_EQ(0, port_reset(if_b));
	ASSERT_EQ(0, wait_for_carrier(if_a));
	ASSERT_EQ(0, wait_for_carrier(if_b));
}

/* Packets of various lengths. The ports have an MTU of 1500. */
static inline unsigned int len_of(uint32_t seq)
{
	static const unsigned int len[] = { 60, 300, 1400, 61, 4500, 1792, 8000 };
	unsigned int n = len[seq % ARRAY_SIZE(len)];

	return on_ports() && n > 1514 ? 1514 : n;
}

static inline int group_join(const struct group *g, int fd)
{
	return pv4_setint(fd, PACKET_FANOUT, g->type << 16 | GROUP_ID);
}

static inline void group_init(struct group *g, int type)
{
	unsigned int i;

	memset(g, 0, sizeof(*g));
	g->feed.s.fd = -1;
	for (i = 0; i < NR_MEMBERS; i++)
		g->member[i].s.fd = -1;
	g->type = type;
}

/* Opens a socket of the group in copy mode, not yet a member. */
static inline int group_open(struct group *g, struct zc *z,
			     const struct zc_cfg *how)
{
	struct zc_cfg cfg = *how;

	cfg.ifname = if_b;
	cfg.headroom = 64;
	if (z == &g->feed) {
		cfg.sharers = SHARERS;
	} else if (!g->copy) {
		cfg.area = &g->feed;
		cfg.part = ++g->part;
	}
	return zc_open(z, &cfg);
}

/* Opens all sockets. The members join in order. */
static inline int group_open_all(struct group *g)
{
	struct zc_cfg none = { }, member = { .meta = g->meta };
	unsigned int i;
	int err;

	err = group_open(g, &g->feed, &none);
	for (i = 0; i < NR_MEMBERS && !err; i++) {
		err = group_open(g, &g->member[i], &member);
		err = err ? err : group_join(g, g->member[i].s.fd);
	}
	return err;
}

/* Lets the feeder start: it joins and enters zero-copy mode. */
static inline int group_feed(struct group *g, struct zc *z, int n)
{
	int err = group_join(g, z->s.fd);

	err = err ? err : zc_set(z, n);
	if (!err)
		z->min_offset = z->s.offset + XDP_PACKET_HEADROOM;
	return err;
}

static inline void group_close(struct group *g)
{
	unsigned int i;

	for (i = 0; i < NR_MEMBERS; i++)
		zc_close(&g->member[i]);
	zc_close(&g->feed);
}

/* The kernel owns exactly the frames that are posted by any socket. */
static inline bool group_balances(struct group *g)
{
	unsigned int i, away = zc_away(&g->feed);
	bool ok = !g->feed.strays;

	for (i = 0; i < NR_MEMBERS; i++) {
		struct zc *m = &g->member[i];

		if (m->s.fd < 0)
			continue;
		ok &= !m->strays;
		if (g->copy)
			ok &= zc_held(m) == zc_away(m);
		else
			away += zc_away(m);
	}
	return ok && zc_held(&g->feed) == away;
}

/* No socket but the feeder has lost or got a slot, and it gets all its own back.
 */
static inline void group_expect_back(struct __test_metadata *_metadata,
				     struct group *g)
{
	struct zc *f = &g->feed;

	EXPECT_TRUE(group_balances(g));
	EXPECT_EQ(f->s.rx.size, f->s.rx.avail - f->s.rx.used);
	ASSERT_EQ(0, zc_set(f, 0));
	EXPECT_EQ((int)f->s.rx.size, zc_all_back(f, ECANCELED, WAIT_MS));
	EXPECT_TRUE(group_balances(g));
}

#endif
