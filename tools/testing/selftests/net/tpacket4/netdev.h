/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The netdev family of generic netlink, for the selftests of AF_PACKET V4:
 * devices, queues and NAPI instances
 */
#ifndef TPACKET4_NETDEV_H
#define TPACKET4_NETDEV_H

#include "common.h"

#include <linux/genetlink.h>
#include <linux/netdev.h>

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

static inline bool genl_family_each(struct nlmsghdr *h, void *arg)
{
	__u16 id;

	if (!attr_get(h, GENL_HDRLEN, CTRL_ATTR_FAMILY_ID, &id, sizeof(id)))
		return false;
	*(int *)arg = id;
	return true;
}

/* Returns the id of the netdev family, or -errno. */
static inline int netdev_family(void)
{
	struct genl_req req = {
		.h.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN),
		.h.nlmsg_type = GENL_ID_CTRL,
		.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
		.g.cmd = CTRL_CMD_GETFAMILY, .g.version = 1,
	};
	int id = 0, err;

	genl_attr(&req, CTRL_ATTR_FAMILY_NAME, NETDEV_FAMILY_NAME,
		  sizeof(NETDEV_FAMILY_NAME));
	err = nl_dump(NETLINK_GENERIC, &req, genl_family_each, &id);
	return err ? err : id;
}

/* Starts a request to the netdev family, without attributes. Returns 0 or
 * -errno.
 */
static inline int netdev_req(struct genl_req *req, int cmd, int flags)
{
	int id = netdev_family();

	*req = (struct genl_req) {
		.h.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN),
		.h.nlmsg_type = id,
		.h.nlmsg_flags = NLM_F_REQUEST | flags,
		.g.cmd = cmd, .g.version = 1,
	};
	return id < 0 ? id : 0;
}

/*
 * Queries a device, whose index is the attribute @type; returns the same as
 * nl_dump().
 */
static inline int netdev_ask(int cmd, int flags, int type, __u32 ifindex,
			     bool (*each)(struct nlmsghdr *h, void *arg),
			     void *arg)
{
	struct genl_req req;
	int err = netdev_req(&req, cmd, flags);

	if (err)
		return err;
	genl_attr(&req, type, &ifindex, sizeof(ifindex));
	return nl_dump(NETLINK_GENERIC, &req, each, arg);
}

/* Binds @dmabuf to a queue; returns 0 or -errno. */
static inline int bind_devmem(const char *ifname, __u32 queue, int dmabuf)
{
	__u32 ifindex = if_nametoindex(ifname);
	struct {
		struct nlattr id_attr;
		__u32 id;
		struct nlattr type_attr;
		__u32 type;
	} rx = {
		.id_attr = { NLA_HDRLEN + 4, NETDEV_A_QUEUE_ID },
		.id = queue,
		.type_attr = { NLA_HDRLEN + 4, NETDEV_A_QUEUE_TYPE },
		.type = NETDEV_QUEUE_TYPE_RX,
	};
	struct genl_req req;
	int err = netdev_req(&req, NETDEV_CMD_BIND_RX, NLM_F_ACK);

	if (err)
		return err;
	genl_attr(&req, NETDEV_A_DMABUF_IFINDEX, &ifindex, sizeof(ifindex));
	genl_attr(&req, NETDEV_A_DMABUF_QUEUES | NLA_F_NESTED, &rx, sizeof(rx));
	genl_attr(&req, NETDEV_A_DMABUF_FD, &dmabuf, sizeof(dmabuf));
	return nl_ask(NETLINK_GENERIC, &req);
}

struct napi_count {
	__u32 ifindex;
	int nr;
};

static inline bool napi_each(struct nlmsghdr *h, void *arg)
{
	struct napi_count *c = arg;

	c->nr += attr_u32(h, GENL_HDRLEN, NETDEV_A_NAPI_IFINDEX) == c->ifindex;
	return false;
}

/* Returns the number of NAPI instances of a device, or -errno. */
static inline int count_napi(const char *ifname)
{
	struct napi_count c = { .ifindex = if_nametoindex(ifname) };
	int err = netdev_ask(NETDEV_CMD_NAPI_GET, NLM_F_DUMP,
			     NETDEV_A_NAPI_IFINDEX, c.ifindex, napi_each, &c);

	return err == -ENODATA ? c.nr : err;
}

static inline bool features_each(struct nlmsghdr *h, void *arg)
{
	attr_get(h, GENL_HDRLEN, NETDEV_A_DEV_XDP_FEATURES, arg, sizeof(__u64));
	return true;
}

/* Returns the xdp-features of a device; 0 if it has none, ~0 if the query
 * failed.
 */
static inline __u64 xdp_features(const char *ifname)
{
	__u64 features = 0;

	return netdev_ask(NETDEV_CMD_DEV_GET, NLM_F_ACK, NETDEV_A_DEV_IFINDEX,
			  if_nametoindex(ifname), features_each, &features) ?
	       ~0ULL : features;
}

#endif
