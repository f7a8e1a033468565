/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Netlink for the selftests of AF_PACKET V4. Each test sets up its own network,
 * and running a program for it is slow on a debug kernel.
 */
#ifndef TPACKET4_NETLINK_H
#define TPACKET4_NETLINK_H

#include <errno.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- requests ---- */

/* Sends it and waits for the answer; 0 or -errno. */
static inline int nl_ask(int proto, const void *req)
{
	const struct nlmsghdr *h = req;
	int fd = socket(AF_NETLINK, SOCK_RAW, proto), err = -EIO;
	struct {
		struct nlmsghdr h;
		struct nlmsgerr e;
		char more[1024];
	} ack;

	if (fd < 0)
		return -errno;
	if (send(fd, h, h->nlmsg_len, 0) > 0 &&
	    recv(fd, &ack, sizeof(ack), 0) > 0 &&
	    ack.h.nlmsg_type == NLMSG_ERROR)
		err = ack.e.error;
	close(fd);
	return err;
}

struct link_req {
	struct nlmsghdr h;
	struct ifinfomsg i;
	char attrs[256];
};

/* Adds an attribute with @len bytes of @data, or starts a nested one. */
static inline struct rtattr *add_attr(struct link_req *req, int type,
				      const void *data, size_t len)
{
	struct rtattr *a = (void *)((char *)req + req->h.nlmsg_len);

	a->rta_type = type;
	a->rta_len = RTA_LENGTH(len);
	if (data)
		memcpy(RTA_DATA(a), data, len);
	req->h.nlmsg_len += RTA_SPACE(len);
	return a;
}

static inline void end_nest(struct link_req *req, struct rtattr *a)
{
	a->rta_len = (char *)req + req->h.nlmsg_len - (char *)a;
}

/* Sends it and waits for the answer; 0 or -errno. */
static inline int ask_link(const struct link_req *req)
{
	return nl_ask(NETLINK_ROUTE, req);
}

/* Queues that a veth device can have, also on a machine with one CPU */
#define VETH_QUEUES	2U

/* A veth pair that uses all its queues; 0 or -errno. */
static inline int add_veth(const char *name, const char *peer, __u32 mtu)
{
	struct link_req req = {
		.h.nlmsg_len = NLMSG_LENGTH(sizeof(req.i)),
		.h.nlmsg_type = RTM_NEWLINK,
		.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL |
				 NLM_F_ACK,
	};
	const __u32 queues = VETH_QUEUES;
	struct ifinfomsg none = { 0 };
	struct rtattr *info, *data, *end;

	add_attr(&req, IFLA_IFNAME, name, strlen(name) + 1);
	add_attr(&req, IFLA_MTU, &mtu, sizeof(mtu));
	add_attr(&req, IFLA_NUM_RX_QUEUES, &queues, sizeof(queues));
	add_attr(&req, IFLA_NUM_TX_QUEUES, &queues, sizeof(queues));
	info = add_attr(&req, IFLA_LINKINFO, NULL, 0);
	add_attr(&req, IFLA_INFO_KIND, "veth", 5);
	data = add_attr(&req, IFLA_INFO_DATA, NULL, 0);
	end = add_attr(&req, VETH_INFO_PEER, &none, sizeof(none));
	add_attr(&req, IFLA_IFNAME, peer, strlen(peer) + 1);
	add_attr(&req, IFLA_MTU, &mtu, sizeof(mtu));
	add_attr(&req, IFLA_NUM_RX_QUEUES, &queues, sizeof(queues));
	add_attr(&req, IFLA_NUM_TX_QUEUES, &queues, sizeof(queues));
	end_nest(&req, end);
	end_nest(&req, data);
	end_nest(&req, info);
	return ask_link(&req);
}

/* IF_OPER_UP of linux/if.h, which conflicts with net/if.h */
#define OPER_UP		6

/* Returns OPER_UP or another state, or a negative value. */
static inline int link_state(const char *name)
{
	struct link_req req = {
		.h.nlmsg_len = NLMSG_LENGTH(sizeof(req.i)),
		.h.nlmsg_type = RTM_GETLINK,
		.h.nlmsg_flags = NLM_F_REQUEST,
		.i.ifi_index = if_nametoindex(name),
	};
	union {
		struct nlmsghdr h;
		char bytes[1 << 14];
	} answer;
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), state = -1, left;
	struct rtattr *a;

	if (fd >= 0 && send(fd, &req, req.h.nlmsg_len, 0) > 0 &&
	    recv(fd, &answer, sizeof(answer), 0) > 0 &&
	    answer.h.nlmsg_type == RTM_NEWLINK) {
		a = IFLA_RTA(NLMSG_DATA(&answer.h));
		left = IFLA_PAYLOAD(&answer.h);
		for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
			if (a->rta_type == IFLA_OPERSTATE)
				state = *(uint8_t *)RTA_DATA(a);
	}
	close(fd);
	return state;
}

static inline int ask_plug(const char *ifname, int flags, int action,
			   __u32 limit)
{
	struct {
		struct nlmsghdr h;
		struct tcmsg t;
		struct rtattr kind;
		char name[8];
		struct rtattr options;
		struct tc_plug_qopt plug;
	} req = {
		.h.nlmsg_len = sizeof(req),
		.h.nlmsg_type = RTM_NEWQDISC,
		.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags,
		.t.tcm_ifindex = if_nametoindex(ifname),
		.t.tcm_parent = TC_H_ROOT,
		.kind.rta_type = TCA_KIND,
		.kind.rta_len = RTA_LENGTH(sizeof("plug")),
		.name = "plug",
		.options.rta_type = TCA_OPTIONS,
		.options.rta_len = RTA_LENGTH(sizeof(req.plug)),
		.plug.action = action,
		.plug.limit = limit,
	};

	return nl_ask(NETLINK_ROUTE, &req);
}

/* Lets the queue of a device hold all packets until release_queue(). Returns 0
 * or -errno.
 */
static inline int hold_queue(const char *ifname)
{
	return ask_plug(ifname, NLM_F_CREATE | NLM_F_REPLACE, TCQ_PLUG_BUFFER,
			1 << 30);
}

/* Limits the bytes that it holds; it drops what exceeds them. */
static inline int limit_queue(const char *ifname, __u32 bytes)
{
	return ask_plug(ifname, 0, TCQ_PLUG_LIMIT, bytes);
}

/* Releases held packets, in order, and holds no more. */
static inline int release_queue(const char *ifname)
{
	return ask_plug(ifname, 0, TCQ_PLUG_RELEASE_INDEFINITE, 0);
}

/* ---- dumps ---- */

static inline struct nlattr *attr_find(struct nlmsghdr *h, size_t head,
				       int type)
{
	struct nlattr *a = (void *)((char *)NLMSG_DATA(h) + NLMSG_ALIGN(head));
	char *end = (char *)h + h->nlmsg_len;

	for (; (char *)(a + 1) <= end && a->nla_len >= sizeof(*a);
	     a = (void *)((char *)a + NLA_ALIGN(a->nla_len)))
		if ((a->nla_type & NLA_TYPE_MASK) == type)
			return a;
	return NULL;
}

/* Copies the content of an attribute; returns false if it is missing or
 * shorter.
 */
static inline bool attr_get(struct nlmsghdr *h, size_t head, int type,
			    void *to, size_t len)
{
	struct nlattr *a = attr_find(h, head, type);

	if (!a || a->nla_len != NLA_HDRLEN + len)
		return false;
	memcpy(to, a + 1, len);
	return true;
}

static inline long attr_u32(struct nlmsghdr *h, size_t head, int type)
{
	__u32 v;

	return attr_get(h, head, type, &v, sizeof(v)) ? (long)v : -1;
}

/*
 * Sends @req and calls @each for every reply until it returns true. Returns 0
 * if it did, -ENODATA at the end, or the kernel's error.
 */
static inline int nl_dump(int proto, void *req,
			  bool (*each)(struct nlmsghdr *h, void *arg),
			  void *arg)
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

#endif
