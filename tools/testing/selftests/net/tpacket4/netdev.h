/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The netdev family of generic netlink, for the selftests of AF_PACKET V4: what
 * the kernel tells of devices and of their queues and NAPI instances.
 */
#ifndef TPACKET4_NETDEV_H
#define TPACKET4_NETDEV_H

#include "common.h"

#include <linux/genetlink.h>
#include <linux/netdev.h>
#include <linux/netlink.h>

struct genl_req {
	struct nlmsghdr h;
	struct genlmsghdr g;
	char attrs[64];
};

static inline void genl_attr(struct genl_req *req, int type, const void *data,
			     size_t len)
{
	struct nlattr *a = (void *)((char *)req + req->h.nlmsg_len);

	a->nla_type = type;
	a->nla_len = NLA_HDRLEN + len;
	memcpy(a + 1, data, len);
	req->h.nlmsg_len += NLA_ALIGN(a->nla_len);
}

/* Copies the attribute; false if the message has none of this length. */
static inline bool genl_find(struct nlmsghdr *h, int type, void *to, size_t len)
{
	struct nlattr *a = (void *)((char *)NLMSG_DATA(h) + GENL_HDRLEN);
	char *end = (char *)h + h->nlmsg_len;

	for (; (char *)(a + 1) <= end && a->nla_len >= sizeof(*a);
	     a = (void *)((char *)a + NLA_ALIGN(a->nla_len))) {
		if ((a->nla_type & NLA_TYPE_MASK) != type ||
		    a->nla_len != NLA_HDRLEN + len)
			continue;
		memcpy(to, a + 1, len);
		return true;
	}
	return false;
}

/*
 * Sends @req and calls @each for every answer, as long as that says true. 0, or
 * what the kernel says.
 */
static inline int genl_ask(struct genl_req *req,
			   bool (*each)(struct nlmsghdr *h, void *arg),
			   void *arg)
{
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC), ret = 1;
	static uint64_t buf[8192];
	ssize_t n;

	if (fd < 0)
		return -errno;
	if (send(fd, req, req->h.nlmsg_len, 0) < 0)
		ret = -errno;
	while (ret == 1 && (n = recv(fd, buf, sizeof(buf), 0)) > 0) {
		struct nlmsghdr *h = (void *)buf;

		for (; ret == 1 && NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
			struct nlmsgerr *e = NLMSG_DATA(h);

			if (h->nlmsg_type == NLMSG_DONE)
				ret = 0;
			else if (h->nlmsg_type == NLMSG_ERROR)
				ret = e->error;
			else if (!each(h, arg))
				ret = 0;
		}
	}
	close(fd);
	return ret == 1 ? -EIO : ret;
}

static inline bool genl_family_each(struct nlmsghdr *h, void *arg)
{
	__u16 id;

	if (genl_find(h, CTRL_ATTR_FAMILY_ID, &id, sizeof(id)))
		*(int *)arg = id;
	return true;
}

/* A request of the netdev family; without an id where there is no such. */
static inline struct genl_req netdev_req(int cmd, int flags)
{
	struct genl_req req = {
		.h.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN),
		.h.nlmsg_type = GENL_ID_CTRL,
		.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
		.g.cmd = CTRL_CMD_GETFAMILY, .g.version = 1,
	};
	int id = 0;

	genl_attr(&req, CTRL_ATTR_FAMILY_NAME, NETDEV_FAMILY_NAME,
		  sizeof(NETDEV_FAMILY_NAME));
	if (genl_ask(&req, genl_family_each, &id))
		id = 0;
	return (struct genl_req) {
		.h.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN),
		.h.nlmsg_type = id,
		.h.nlmsg_flags = NLM_F_REQUEST | flags,
		.g.cmd = cmd, .g.version = 1,
	};
}

struct napi_count {
	__u32 ifindex;
	int nr;
};

static inline bool napi_each(struct nlmsghdr *h, void *arg)
{
	struct napi_count *c = arg;
	__u32 ifindex;

	if (genl_find(h, NETDEV_A_NAPI_IFINDEX, &ifindex, sizeof(ifindex)) &&
	    ifindex == c->ifindex)
		c->nr++;
	return true;
}

/* How many NAPI instances a device has, or -errno. */
static inline int count_napi(const char *ifname)
{
	struct genl_req req = netdev_req(NETDEV_CMD_NAPI_GET, NLM_F_DUMP);
	struct napi_count c = { .ifindex = if_nametoindex(ifname) };
	int err;

	genl_attr(&req, NETDEV_A_NAPI_IFINDEX, &c.ifindex, sizeof(c.ifindex));
	err = genl_ask(&req, napi_each, &c);
	return err ? err : c.nr;
}

static inline bool features_each(struct nlmsghdr *h, void *arg)
{
	genl_find(h, NETDEV_A_DEV_XDP_FEATURES, arg, sizeof(__u64));
	return true;
}

/* A device's xdp-features; 0 where it has none, ~0 if it cannot be asked. */
static inline __u64 xdp_features(const char *ifname)
{
	struct genl_req req = netdev_req(NETDEV_CMD_DEV_GET, NLM_F_ACK);
	__u32 ifindex = if_nametoindex(ifname);
	__u64 features = 0;

	genl_attr(&req, NETDEV_A_DEV_IFINDEX, &ifindex, sizeof(ifindex));
	return genl_ask(&req, features_each, &features) ? ~0ULL : features;
}

#endif
