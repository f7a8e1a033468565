// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4, zero-copy mode: who has a queue is visible to the outside, in
 * packet_diag and in the queue dump of the netdev family.
 */
#include "tpacket4_zc.h"

#include <linux/genetlink.h>
#include <linux/netdev.h>
#include <linux/netlink.h>
#include <linux/packet_diag.h>
#include <linux/sock_diag.h>
#include <sys/stat.h>

FIXTURE(diag) {
	struct zc a, b;			/* bound to if_a and if_b */
	unsigned int ino_a, ino_b;
};

FIXTURE_SETUP(diag)
{
	struct zc_cfg cfg = { .ifname = if_a };
	struct stat st;

	tp4_net_setup(_metadata);
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

/* ---- netlink ---- */

static struct nlattr *attr_find(struct nlmsghdr *h, size_t head, int type)
{
	struct nlattr *a = (void *)((char *)NLMSG_DATA(h) + NLMSG_ALIGN(head));
	char *end = (char *)h + h->nlmsg_len;

	for (; (char *)(a + 1) <= end && a->nla_len >= sizeof(*a);
	     a = (void *)((char *)a + NLA_ALIGN(a->nla_len)))
		if ((a->nla_type & NLA_TYPE_MASK) == type)
			return a;
	return NULL;
}

static long attr_u32(struct nlmsghdr *h, size_t head, int type)
{
	struct nlattr *a = attr_find(h, head, type);
	__u32 v;

	if (!a || a->nla_len != NLA_HDRLEN + sizeof(v))
		return -1;
	memcpy(&v, a + 1, sizeof(v));
	return v;
}

/*
 * Sends @req and calls @each for every answer until that says true, or to the
 * end. 0 when it did, -ENODATA at the end, or what the kernel says.
 */
static int nl_dump(int proto, void *req,
		   bool (*each)(struct nlmsghdr *h, void *arg), void *arg)
{
	static uint64_t buf[8192];
	int fd = socket(AF_NETLINK, SOCK_RAW, proto), ret = 1;
	ssize_t n;

	if (fd < 0)
		return -errno;
	if (send(fd, req, ((struct nlmsghdr *)req)->nlmsg_len, 0) < 0)
		ret = -errno;
	while (ret == 1 && (n = recv(fd, buf, sizeof(buf), 0)) > 0) {
		struct nlmsghdr *h = (void *)buf;

		for (; ret == 1 && NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
			struct nlmsgerr *e = NLMSG_DATA(h);

			if (h->nlmsg_type == NLMSG_DONE)
				ret = -ENODATA;
			else if (h->nlmsg_type == NLMSG_ERROR)
				ret = e->error ? e->error : -ENODATA;
			else if (each(h, arg))
				ret = 0;
		}
	}
	close(fd);
	return ret == 1 ? -EIO : ret;
}

/* ---- packet_diag ---- */

struct diag_query {
	unsigned int ino;
	long zerocopy;			/* -1: no such attribute */
};

static bool diag_each(struct nlmsghdr *h, void *arg)
{
	struct packet_diag_msg *m = NLMSG_DATA(h);
	struct diag_query *q = arg;

	if (m->pdiag_ino != q->ino)
		return false;
	q->zerocopy = attr_u32(h, sizeof(*m), PACKET_DIAG_ZEROCOPY);
	return true;
}

/* What packet_diag says; -1: nothing of zero-copy; < -1: an errno. */
static long diag_zerocopy(unsigned int ino)
{
	struct {
		struct nlmsghdr h;
		struct packet_diag_req r;
	} req = {
		.h.nlmsg_len = sizeof(req),
		.h.nlmsg_type = SOCK_DIAG_BY_FAMILY,
		.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		.r.sdiag_family = AF_PACKET,
		.r.pdiag_show = PACKET_SHOW_INFO | PACKET_SHOW_RING_CFG,
	};
	struct diag_query q = { .ino = ino };
	int err = nl_dump(NETLINK_SOCK_DIAG, &req, diag_each, &q);

	return err ? err : q.zerocopy;
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
	struct nlattr *a = attr_find(h, GENL_HDRLEN, CTRL_ATTR_FAMILY_ID);
	__u16 id;

	if (!a)
		return false;
	memcpy(&id, a + 1, sizeof(id));
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
	int id, err;

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
