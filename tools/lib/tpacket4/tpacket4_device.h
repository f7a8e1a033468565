/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * AF_PACKET V4: what a network device supports, by netlink. Separate from
 * tpacket4.h, as most programs do not need it.
 */
#ifndef __TPACKET4_DEVICE_H
#define __TPACKET4_DEVICE_H

#include <sys/ioctl.h>
#include <linux/ethtool.h>
#include <linux/genetlink.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <tpacket4.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * enum tp4_way - how a device does zero-copy mode
 * @TP4_WAY_NONE: not at all: sockets stay in copy mode
 * @TP4_WAY_DRIVER: the driver implements zero-copy mode of V4
 */
enum tp4_way {
	TP4_WAY_NONE,
	TP4_WAY_DRIVER,
};

/**
 * struct tp4_device - what a network device supports
 * @zerocopy: how it does zero-copy mode
 * @queues: number of queue pairs, for tp4_zerocopy() and ethtool -L; 0 while
 *          the device is down
 * @pass_to_kernel: not 0: XDP programs may return XDP_PASS_TO_KERNEL
 * @xdp_features: all features of the device, NETDEV_XDP_ACT_* of
 *                <linux/netdev.h>
 */
struct tp4_device {
	enum tp4_way zerocopy;
	unsigned int queues;
	int pass_to_kernel;
	__u64 xdp_features;
};

/* Of <linux/netdev.h>, which may be missing or older than V4 */
enum {
	__TP4_NETDEV_DEV_GET		= 1,
	__TP4_NETDEV_QUEUE_GET		= 10,
	__TP4_NETDEV_DEV_IFINDEX	= 1,
	__TP4_NETDEV_DEV_XDP_FEATURES	= 3,
	__TP4_NETDEV_QUEUE_IFINDEX	= 2,
	__TP4_NETDEV_QUEUE_TYPE		= 3,
	__TP4_NETDEV_XSK_ZEROCOPY	= 8,
	__TP4_NETDEV_TP4_ZEROCOPY	= 128,
	__TP4_NETDEV_PASS_TO_KERNEL	= 256,
};

/* A request with one attribute */
struct __tp4_genl {
	struct nlmsghdr nlh;
	struct genlmsghdr genlh;
	struct nlattr attr;
	char value[16];
};

/* A request for a link */
struct __tp4_getlink {
	struct nlmsghdr nlh;
	struct ifinfomsg link;
};

/* struct ifreq, of which <net/if.h> and <linux/if.h> have one each */
struct __tp4_ethtool {
	char name[16];
	void *data;
	char pad[16];
};

/* What the messages of an answer are read into */
struct __tp4_answer {
	struct tp4_device *device;
	__u16 family;
	unsigned int queues[2];		/* Rx, Tx */
	char name[16];
	__u8 xdp;			/* XDP_ATTACHED_* */
};

static inline __u32 __tp4_align(__u32 len)
{
	return (len + 3) & ~3u;
}

/* The value of an attribute if it has as many bytes, else 0 */
static inline __u64 __tp4_attr(const struct nlattr *attr, size_t len)
{
	__u64 value = 0;
	__u32 value32;
	__u16 value16;

	if (attr->nla_len != sizeof(*attr) + len)
		return 0;
	if (len == sizeof(value16)) {
		memcpy(&value16, attr + 1, len);
		return value16;
	}
	if (len == sizeof(value32)) {
		memcpy(&value32, attr + 1, len);
		return value32;
	}
	memcpy(&value, attr + 1, sizeof(value));
	return value;
}

static inline void __tp4_read_family(struct __tp4_answer *answer,
				     const struct nlattr *attr)
{
	if (attr->nla_type == CTRL_ATTR_FAMILY_ID)
		answer->family = (__u16)__tp4_attr(attr, 2);
}

static inline void __tp4_read_device(struct __tp4_answer *answer,
				     const struct nlattr *attr)
{
	struct tp4_device *device = answer->device;

	if (attr->nla_type != __TP4_NETDEV_DEV_XDP_FEATURES)
		return;
	device->xdp_features = __tp4_attr(attr, 8);
	device->pass_to_kernel =
		!!(device->xdp_features & __TP4_NETDEV_PASS_TO_KERNEL);
	if (device->xdp_features & __TP4_NETDEV_TP4_ZEROCOPY)
		device->zerocopy = TP4_WAY_DRIVER;
}

static inline void __tp4_read_queue(struct __tp4_answer *answer,
				    const struct nlattr *attr)
{
	if (attr->nla_type == __TP4_NETDEV_QUEUE_TYPE)
		answer->queues[!!__tp4_attr(attr, 4)]++;
}

static inline int __tp4_read_attrs(const char *pos, size_t left,
				   void (*read)(struct __tp4_answer *,
						const struct nlattr *),
				   struct __tp4_answer *answer)
{
	while (left >= sizeof(struct nlattr)) {
		const struct nlattr *attr =
			(const struct nlattr *)(const void *)pos;

		if (attr->nla_len < sizeof(*attr) || attr->nla_len > left)
			return -EBADMSG;
		read(answer, attr);
		if (__tp4_align(attr->nla_len) >= left)
			break;
		left -= __tp4_align(attr->nla_len);
		pos += __tp4_align(attr->nla_len);
	}
	return 0;
}

static inline void __tp4_read_xdp(struct __tp4_answer *answer,
				  const struct nlattr *attr)
{
	if (attr->nla_type == IFLA_XDP_ATTACHED &&
	    attr->nla_len > sizeof(*attr))
		answer->xdp = *(const __u8 *)(attr + 1);
}

static inline void __tp4_read_link(struct __tp4_answer *answer,
				   const struct nlattr *attr)
{
	const char *value = (const char *)(attr + 1);
	const size_t len = attr->nla_len - sizeof(*attr);

	if (attr->nla_type == IFLA_IFNAME && len <= sizeof(answer->name))
		memcpy(answer->name, value, len);
	if (attr->nla_type == IFLA_XDP)
		__tp4_read_attrs(value, len, __tp4_read_xdp, answer);
}

/* Read the messages of one datagram, of which each has more bytes of headers
 * before its attributes. Return 1 at the end of the answer, 0 if more follows,
 * or -errno.
 */
static inline int __tp4_read(const char *msg, size_t left, size_t more,
			     void (*read)(struct __tp4_answer *,
					  const struct nlattr *),
			     struct __tp4_answer *answer)
{
	const size_t header = sizeof(struct nlmsghdr);

	while (left >= header) {
		const struct nlmsghdr *nlh =
			(const struct nlmsghdr *)(const void *)msg;
		int err;

		if (nlh->nlmsg_len < header || nlh->nlmsg_len > left)
			return -EBADMSG;
		/* Both have an error code. */
		if (nlh->nlmsg_type == NLMSG_ERROR ||
		    nlh->nlmsg_type == NLMSG_DONE) {
			if (nlh->nlmsg_len < header + sizeof(err))
				return -EBADMSG;
			memcpy(&err, msg + header, sizeof(err));
			return err ? err : 1;
		}
		if (nlh->nlmsg_len < header + more)
			return -EBADMSG;
		err = __tp4_read_attrs(msg + header + more,
				       nlh->nlmsg_len - header - more, read,
				       answer);
		if (err)
			return err;
		if (__tp4_align(nlh->nlmsg_len) >= left)
			break;
		left -= __tp4_align(nlh->nlmsg_len);
		msg += __tp4_align(nlh->nlmsg_len);
	}
	return 0;
}

/* Send a request and read the answer. A single message ends with NLM_F_ACK's, a
 * dump with NLMSG_DONE.
 */
static inline int __tp4_ask(int fd, const void *req, size_t len, size_t more,
			    void (*read)(struct __tp4_answer *,
					 const struct nlattr *),
			    struct __tp4_answer *answer)
{
	union {
		struct nlmsghdr nlh;
		char buf[16384];
	} msg;
	ssize_t n;
	int ret = 0;

	if (send(fd, req, len, 0) < 0)
		return -errno;
	while (!ret) {
		n = recv(fd, &msg, sizeof(msg), 0);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n >= 0)
			ret = n ? __tp4_read(msg.buf, (size_t)n, more, read,
					     answer) : -EBADMSG;
	}
	return ret < 0 ? ret : 0;
}

static inline int __tp4_genl_ask(int fd, __u16 family, __u8 cmd, __u16 flags,
				 __u16 type, const void *value, __u16 len,
				 void (*read)(struct __tp4_answer *,
					      const struct nlattr *),
				 struct __tp4_answer *answer)
{
	struct __tp4_genl req;

	memset(&req, 0, sizeof(req));
	req.nlh.nlmsg_type = family;
	req.nlh.nlmsg_flags = (__u16)(NLM_F_REQUEST | flags);
	req.genlh.cmd = cmd;
	req.genlh.version = 1;
	req.attr.nla_type = type;
	req.attr.nla_len = (__u16)(sizeof(req.attr) + len);
	memcpy(req.value, value, len);
	req.nlh.nlmsg_len = (__u32)(offsetof(struct __tp4_genl, attr) +
				    __tp4_align(req.attr.nla_len));
	return __tp4_ask(fd, &req, req.nlh.nlmsg_len, sizeof(req.genlh), read,
			 answer);
}

/**
 * tp4_device - ask what a network device supports
 * @ifindex: interface, in the network namespace of the caller
 * @device: set to the answer
 *
 * Needs no privilege. Whether a queue pair is free is not part of the answer.
 *
 * Return: 0, or -errno: %ENODEV if there is no such interface, %ENOENT or
 * %EOPNOTSUPP if the kernel does not report this: it is older than Linux 6.8.
 */
TP4_API int tp4_device(int ifindex, struct tp4_device *device)
{
	struct __tp4_answer answer;
	int fd, err;

	memset(device, 0, sizeof(*device));
	if (ifindex <= 0)
		return -ENODEV;
	memset(&answer, 0, sizeof(answer));
	answer.device = device;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (fd < 0)
		return -errno;
	err = __tp4_genl_ask(fd, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, NLM_F_ACK,
			     CTRL_ATTR_FAMILY_NAME, "netdev", sizeof("netdev"),
			     __tp4_read_family, &answer);
	if (!err)
		err = __tp4_genl_ask(fd, answer.family, __TP4_NETDEV_DEV_GET,
				     NLM_F_ACK, __TP4_NETDEV_DEV_IFINDEX,
				     &ifindex, sizeof(ifindex),
				     __tp4_read_device, &answer);
	if (!err)
		err = __tp4_genl_ask(fd, answer.family, __TP4_NETDEV_QUEUE_GET,
				     NLM_F_DUMP, __TP4_NETDEV_QUEUE_IFINDEX,
				     &ifindex, sizeof(ifindex),
				     __tp4_read_queue, &answer);
	close(fd);
	device->queues = answer.queues[0] < answer.queues[1] ?
			 answer.queues[0] : answer.queues[1];
	return err;
}

/* Whether a driver, by its name in ethtool, resets the port for zero-copy mode */
static inline int __tp4_resets_port(const char *driver, __u64 xdp_features,
				    __u8 xdp)
{
	static const char *const drivers[] = {
		"fec", "gve", "i40e", "ice", "idpf", "igb", "igc", "ixgbe",
		"mlx5_core", "nfp", "nfp_netvf", "st_gmac", "st_mac100",
		"st_xgmac", NULL
	};
	const char *const *name;

	if (!(xdp_features & __TP4_NETDEV_XSK_ZEROCOPY) ||
	    xdp != XDP_ATTACHED_NONE)
		return 0;
	/* The i40e of a kernel that reports V4's zero-copy mode implements it. */
	if (xdp_features & __TP4_NETDEV_TP4_ZEROCOPY &&
	    !strcmp(driver, "i40e"))
		return 0;
	for (name = drivers; *name; name++) {
		if (!strcmp(driver, *name))
			return 1;
	}
	return 0;
}

/**
 * tp4_resets_link - ask whether zero-copy mode would take the link down
 * @ifindex: interface, in the network namespace of the caller
 *
 * Many drivers that V4 uses through AF_XDP's interface reset the port when the
 * device gets its first XDP program, and when it loses the last one. V4
 * attaches one when the first socket enters zero-copy mode, unless the device
 * has one already. A program that asks before can tell the user about it.
 *
 * Needs no privilege.
 *
 * Return: 1 if the link would go down, 0 if not, or -errno: that of
 * tp4_device(), or %EOPNOTSUPP if the device has no driver.
 */
TP4_API int tp4_resets_link(int ifindex)
{
	struct ethtool_drvinfo info;
	struct __tp4_ethtool ethtool;
	struct __tp4_answer answer;
	struct __tp4_getlink req;
	struct tp4_device device;
	int fd, err = tp4_device(ifindex, &device);

	if (err)
		return err;
	memset(&answer, 0, sizeof(answer));
	memset(&req, 0, sizeof(req));
	req.nlh.nlmsg_len = sizeof(req);
	req.nlh.nlmsg_type = RTM_GETLINK;
	req.nlh.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	req.link.ifi_index = ifindex;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0)
		return -errno;
	err = __tp4_ask(fd, &req, sizeof(req), sizeof(req.link),
			__tp4_read_link, &answer);
	memset(&info, 0, sizeof(info));
	info.cmd = ETHTOOL_GDRVINFO;
	memset(&ethtool, 0, sizeof(ethtool));
	memcpy(ethtool.name, answer.name, sizeof(ethtool.name));
	ethtool.data = &info;
	if (!err && ioctl(fd, SIOCETHTOOL, &ethtool))
		err = -errno;
	close(fd);
	return err ? err : __tp4_resets_port(info.driver, device.xdp_features,
					     answer.xdp);
}

#ifdef __cplusplus
}
#endif

#endif /* __TPACKET4_DEVICE_H */
