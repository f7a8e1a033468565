// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4, zero-copy mode: who has a queue is visible to the outside, in
 * packet_diag and in the queue dump of the netdev family.
 */
#include "diag.h"
#include "zc.h"

#include <linux/genetlink.h>
#include <linux/netdev.h>
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

/* What packet_diag says; -1: nothing of zero-copy; < -1: an errno. */
static long diag_zerocopy(unsigned int ino)
{
	struct diag d;
	int err = diag_find(ino, &d);

	return err ? err : d.zerocopy;
}

TEST_F(diag, packet_diag)
{
	if (diag_zerocopy(self->ino_a) == -ENOENT)
		SKIP(return, "no packet_diag in this kernel");
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

/* ---- the netdev family ---- */

struct genl_req {
	struct nlmsghdr h;
	struct genlmsghdr g;
	char attrs[64];
};

static void genl_attr(struct genl_req *req, int type, const void *data,
		      size_t len)
{
	struct nlattr *a = (void *)((char *)req + req->h.nlmsg_len);

	a->nla_type = type;
	a->nla_len = NLA_HDRLEN + len;
	memcpy(a + 1, data, len);
	req->h.nlmsg_len += NLA_ALIGN(a->nla_len);
}

static bool family_each(struct nlmsghdr *h, void *arg)
{
	__u16 id;

	if (!attr_get(h, GENL_HDRLEN, CTRL_ATTR_FAMILY_ID, &id, sizeof(id)))
		return false;
	*(int *)arg = id;
	return true;
}

static int genl_family(const char *name)
{
	struct genl_req req = {
		.h.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN),
		.h.nlmsg_type = GENL_ID_CTRL,
		.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
		.g.cmd = CTRL_CMD_GETFAMILY, .g.version = 1,
	};
	int id = 0, err;

	genl_attr(&req, CTRL_ATTR_FAMILY_NAME, name, strlen(name) + 1);
	err = nl_dump(NETLINK_GENERIC, &req, family_each, &id);
	return err ? err : id;
}

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

/* What the queue's dump says: an inode, -1 for none; < -1: an errno. */
static long queue_tp4(const char *ifname, unsigned int queue,
		      unsigned int type)
{
	struct genl_req req = {
		.h.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN),
		.h.nlmsg_type = genl_family(NETDEV_FAMILY_NAME),
		.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		.g.cmd = NETDEV_CMD_QUEUE_GET, .g.version = 1,
	};
	struct queue_query q = {
		.ifindex = if_nametoindex(ifname), .queue = queue,
		.type = type,
	};
	int err;

	genl_attr(&req, NETDEV_A_QUEUE_IFINDEX, &q.ifindex, sizeof(q.ifindex));
	err = nl_dump(NETLINK_GENERIC, &req, queue_each, &q);
	return err ? err : q.tp4;
}

TEST_F(diag, queue_dump)
{
	static const unsigned int types[] = {
		NETDEV_QUEUE_TYPE_RX, NETDEV_QUEUE_TYPE_TX,
	};
	unsigned int i;

	ASSERT_LT(0, genl_family(NETDEV_FAMILY_NAME));
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
