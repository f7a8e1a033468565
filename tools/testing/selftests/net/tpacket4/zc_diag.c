// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4, zero-copy mode: the socket of a queue is reported by
 * packet_diag, with its statistics, and by the queue dump of the netdev family.
 */
#include "diag.h"
#include "netdev.h"
#include "zc.h"

#include <sys/stat.h>

FIXTURE(diag) {
	struct zc a, b;			/* bound to if_a and if_b */
	unsigned int ino_a, ino_b;
};

FIXTURE_SETUP(diag)
{
	struct zc_cfg cfg = { .ifname = if_a };
	struct stat st;

	pv4_net_setup(_metadata);
	ASSERT_EQ(0, two_channels());
	ASSERT_EQ(0, zc_open(&self->a, &cfg));
	cfg.ifname = if_b;
	ASSERT_EQ(0, zc_open(&self->b, &cfg));
	ASSERT_EQ(0, fstat(self->a.s.fd, &st));
	self->ino_a = st.st_ino;
	ASSERT_EQ(0, fstat(self->b.s.fd, &st));
	self->ino_b = st.st_ino;
}

FIXTURE_TEARDOWN(diag)
{
	zc_close(&self->a);
	zc_close(&self->b);
}

/* ---- packet_diag ---- */

/* Returns the value in packet_diag; -1 if there is none; < -1: an error. */
static long diag_zerocopy(unsigned int ino)
{
	struct diag d;
	int err = diag_find(ino, &d);

	return err ? err : d.zerocopy;
}

TEST_F(diag, packet_diag)
{
	if (diag_zerocopy(self->ino_a) == -ENOENT)
		SKIP(return, "needs CONFIG_PACKET_DIAG");
	EXPECT_EQ(-1, diag_zerocopy(self->ino_a));
	ASSERT_EQ(0, zc_set(&self->a, 2));
	ASSERT_EQ(0, zc_set(&self->b, 1));
	EXPECT_EQ(2, diag_zerocopy(self->ino_a));
	EXPECT_EQ(1, diag_zerocopy(self->ino_b));
	ASSERT_EQ(0, zc_set(&self->a, 0));
	EXPECT_EQ(-1, diag_zerocopy(self->ino_a));
	EXPECT_EQ(1, diag_zerocopy(self->ino_b));
	ASSERT_EQ(0, run_ip("link del %s\n", if_b));
	EXPECT_EQ(-1, diag_zerocopy(self->ino_b));
}

/* The counters of a socket in packet_diag */
static struct packet_diag_stats diag_stats(unsigned int ino)
{
	struct diag d;

	diag_find(ino, &d);
	return d.stats;
}

/* The same when it has got @packets, which may be counted after they arrive */
static struct packet_diag_stats diag_stats_of(unsigned int ino,
					      unsigned int packets)
{
	__u64 end = now_ms() + WAIT_MS;
	struct packet_diag_stats st;

	do {
		st = diag_stats(ino);
	} while (st.pds_packets < packets && now_ms() < end);
	return st;
}

/* The totals go on, whoever reads and clears PACKET_STATISTICS. */
TEST_F(diag, statistics)
{
	unsigned int nr = 2 * pv4_min_descs(), sent = 0, i;
	struct tpacket4_desc bad = { .idx = UINT32_MAX, .len = 60 };
	struct zc *a = &self->a, *b = &self->b;
	__u64 end = now_ms() + WAIT_MS;
	struct packet_diag_stats st;
	struct tpacket_stats_v4 own;

	if (diag_zerocopy(self->ino_a) == -ENOENT)
		SKIP(return, "needs CONFIG_PACKET_DIAG");
	ASSERT_EQ(0, zc_set(a, 1));
	ASSERT_EQ(0, zc_set(b, 1));
	st = diag_stats(self->ino_b);
	EXPECT_EQ(0U, st.pds_packets);
	EXPECT_EQ(0U, st.pds_drops);
	for (i = 0; i < 3; i++) {
		pass_one_by_one(_metadata, a, b, 100, 20);
		sent += 20;
		st = diag_stats_of(self->ino_b, sent);
		EXPECT_EQ(sent, st.pds_packets);
		EXPECT_EQ(sent, diag_stats(self->ino_a).pds_tx_descs);
		if (i != 1)
			continue;
		ASSERT_EQ(0, pv4_stats(b->s.fd, &own));
		EXPECT_EQ(sent, own.tp_packets);
	}

	/* more than there are frames for */
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(0, zc_send_seq(a, 100, i));
		ASSERT_TRUE(zc_reap_all(a, WAIT_MS));
	}
	sent += nr;
	st = diag_stats_of(self->ino_b, sent);
	EXPECT_EQ(sent, st.pds_packets);
	EXPECT_LT(0U, st.pds_drops);
	EXPECT_EQ(st.pds_drops, st.pds_rx_ring_full + st.pds_rx_no_desc);
	EXPECT_EQ(sent, diag_stats(self->ino_a).pds_tx_descs);
	ASSERT_EQ(0, pv4_stats(b->s.fd, &own));
	EXPECT_EQ(st.pds_drops, own.tp_drops);
	EXPECT_EQ(st.pds_drops, diag_stats(self->ino_b).pds_drops);
	EXPECT_EQ(sent, diag_stats(self->ino_b).pds_packets);

	/* a descriptor that is refused */
	EXPECT_EQ(0U, diag_stats(self->ino_a).pds_tx_invalid_descs);
	pv4_post(&a->s.tx, &bad, 1);
	ASSERT_EQ(0, zc_kick(a));
	do {
		st = diag_stats(self->ino_a);
	} while (!st.pds_tx_invalid_descs && now_ms() < end);
	EXPECT_EQ(1U, st.pds_tx_invalid_descs);
}

/* ---- the netdev family ---- */

struct queue_query {
	int ifindex;
	unsigned int queue, type, seen;
	long tp4;			/* -1: no such attribute */
};

static bool queue_each(struct nlmsghdr *h, void *arg)
{
	struct queue_query *q = arg;

	q->seen++;
	if (attr_u32(h, GENL_HDRLEN, NETDEV_A_QUEUE_IFINDEX) != q->ifindex ||
	    attr_u32(h, GENL_HDRLEN, NETDEV_A_QUEUE_ID) != q->queue ||
	    attr_u32(h, GENL_HDRLEN, NETDEV_A_QUEUE_TYPE) != q->type)
		return false;
	q->tp4 = attr_u32(h, GENL_HDRLEN, NETDEV_A_QUEUE_TP4);
	return true;
}

/* Returns the inode in the queue dump; -1 if there is none; < -1: an error. */
static long queue_tp4(const char *ifname, unsigned int queue,
		      unsigned int type)
{
	struct queue_query q = {
		.ifindex = if_nametoindex(ifname), .queue = queue,
		.type = type,
	};
	int err = netdev_ask(NETDEV_CMD_QUEUE_GET, NLM_F_DUMP,
			     NETDEV_A_QUEUE_IFINDEX, q.ifindex, queue_each, &q);

	return err ? err : q.tp4;
}

TEST_F(diag, queue_dump)
{
	static const unsigned int types[] = {
		NETDEV_QUEUE_TYPE_RX, NETDEV_QUEUE_TYPE_TX,
	};
	unsigned int i;

	ASSERT_LT(0, netdev_family());
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(-1, queue_tp4(if_a, 0, types[i]));
		EXPECT_EQ(-1, queue_tp4(if_a, 1, types[i]));
	}
	ASSERT_EQ(0, zc_set(&self->a, 2));
	ASSERT_EQ(0, zc_set(&self->b, 1));
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(-1, queue_tp4(if_a, 0, types[i]));
		EXPECT_EQ(self->ino_a, queue_tp4(if_a, 1, types[i]));
		EXPECT_EQ(self->ino_b, queue_tp4(if_b, 0, types[i]));
		EXPECT_EQ(-1, queue_tp4(if_b, 1, types[i]));
	}
	ASSERT_EQ(0, zc_set(&self->b, 0));
	zc_close(&self->a);
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(-1, queue_tp4(if_a, 1, types[i]));
		EXPECT_EQ(-1, queue_tp4(if_b, 0, types[i]));
	}
}

TEST_HARNESS_MAIN
