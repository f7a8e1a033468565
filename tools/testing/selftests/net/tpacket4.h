/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared helpers of the AF_PACKET V4 selftests: a private network namespace
 * with a veth pair, and packets whose contents can be checked. Helpers that
 * take _metadata end the test on failure.
 */
#ifndef TPACKET4_H
#define TPACKET4_H

#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../kselftest_harness.h"
#include "tpacket4_ring.h"

#define MTU		9000
#define MAX_PKT		(ETH_HLEN + MTU)
#define ETH_P_TEST	0x88b5		/* IEEE: local experimental */

static const char if_a[] = "v4a", if_b[] = "v4b";	/* the veth pair */

/* Fewer packets: asked for, or else on a kernel that looks for leaks, and so
 * for all the rest, and is slow.
 */
static inline bool tp4_fast(void)
{
	const char *s = getenv("TPACKET4_FAST");

	if (s && *s)
		return *s != '0';
	return !access("/sys/kernel/debug/kmemleak", F_OK);
}

/* A child that does not outlive a test that fails. */
static inline pid_t tp4_fork(void)
{
	pid_t pid = fork();

	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

/* Removes capabilities from the effective set; 0 or -errno. */
static inline int drop_cap(unsigned int cap)
{
	struct __user_cap_header_struct h = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct d[2];

	if (syscall(SYS_capget, &h, d))
		return -errno;
	d[cap / 32].effective &= ~(1u << (cap % 32));
	return syscall(SYS_capset, &h, d) ? -errno : 0;
}

/* Over a Unix socket, four at most; 0, or -errno or -1. */
static inline int send_fds(int sock, int *fds, int n)
{
	char ctl[CMSG_SPACE(4 * sizeof(int))] = { 0 }, byte = 0;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = ctl, .msg_controllen = CMSG_SPACE(n * sizeof(int)),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	return sendmsg(sock, &m, 0) == 1 ? 0 : -errno;
}

static inline int recv_fds(int sock, int *fds, int n)
{
	char ctl[CMSG_SPACE(4 * sizeof(int))] = { 0 }, byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = ctl, .msg_controllen = sizeof(ctl),
	};
	struct cmsghdr *c;

	if (recvmsg(sock, &m, 0) != 1)
		return -1;
	c = CMSG_FIRSTHDR(&m);
	if (!c || c->cmsg_len != CMSG_LEN(n * sizeof(int)))
		return -1;
	memcpy(fds, CMSG_DATA(c), n * sizeof(int));
	return 0;
}

/* ---- the network ---- */

/* Runs ip(8) or tc(8) with these commands, one a line; 0 if all succeeded. */
static inline int net_batch(const char *tool, const char *commands)
{
	char cmd[64];
	FILE *f;

	snprintf(cmd, sizeof(cmd), "%s -batch - >/dev/null", tool);
	f = popen(cmd, "w");
	if (!f)
		return -1;
	fputs(commands, f);
	return pclose(f);
}

static inline int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	n = n < 0 ? -errno : 0;
	close(fd);
	return n;
}

struct link_req {
	struct nlmsghdr h;
	struct ifinfomsg i;
	char attrs[256];
};

/* An attribute with @len bytes of @data; or the start of a nest. */
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
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), err = -EIO;
	struct {
		struct nlmsghdr h;
		struct nlmsgerr e;
		char more[1024];
	} ack;

	if (fd < 0)
		return -errno;
	if (send(fd, req, req->h.nlmsg_len, 0) > 0 &&
	    recv(fd, &ack, sizeof(ack), 0) > 0 &&
	    ack.h.nlmsg_type == NLMSG_ERROR)
		err = ack.e.error;
	close(fd);
	return err;
}

/* Without ip(8): each test wants a pair, and a debug kernel is slow to run a
 * program. 0 or -errno.
 */
static inline int add_veth(const char *name, const char *peer, __u32 mtu)
{
	struct link_req req = {
		.h.nlmsg_len = NLMSG_LENGTH(sizeof(req.i)),
		.h.nlmsg_type = RTM_NEWLINK,
		.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL |
				 NLM_F_ACK,
	};
	struct ifinfomsg none = { 0 };
	struct rtattr *info, *data, *end;

	add_attr(&req, IFLA_IFNAME, name, strlen(name) + 1);
	add_attr(&req, IFLA_MTU, &mtu, sizeof(mtu));
	info = add_attr(&req, IFLA_LINKINFO, NULL, 0);
	add_attr(&req, IFLA_INFO_KIND, "veth", 5);
	data = add_attr(&req, IFLA_INFO_DATA, NULL, 0);
	end = add_attr(&req, VETH_INFO_PEER, &none, sizeof(none));
	add_attr(&req, IFLA_IFNAME, peer, strlen(peer) + 1);
	add_attr(&req, IFLA_MTU, &mtu, sizeof(mtu));
	end_nest(&req, end);
	end_nest(&req, data);
	end_nest(&req, info);
	return ask_link(&req);
}

static inline int set_up(const char *name, bool up)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0), err = 0;
	struct ifreq ifr = { .ifr_flags = up ? IFF_UP : 0 };

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &ifr))
		err = -errno;
	close(fd);
	return err;
}

/* IF_OPER_UP; linux/if.h, which has it, and net/if.h exclude each other. */
#define OPER_UP		6

/* OPER_UP or another state, or a negative value. */
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

/* The stack learns of a carrier a little later, and until then loses what is
 * sent. 0 or -errno.
 */
static inline int wait_for_carrier(const char *name)
{
	uint64_t end = now_ms() + WAIT_MS;

	while (link_state(name) != OPER_UP) {
		if (now_ms() > end)
			return -ETIMEDOUT;
		usleep(1000);
	}
	return 0;
}

/* A pair that carries packets; 0 or -errno. */
static inline int add_pair(const char *name, const char *peer, __u32 mtu)
{
	int err = add_veth(name, peer, mtu);

	err = err ? err : set_up(name, true);
	err = err ? err : set_up(peer, true);
	err = err ? err : wait_for_carrier(name);
	return err ? err : wait_for_carrier(peer);
}

/* A fresh network namespace with a veth pair that carries our packets only. With
 * TPACKET4_PORTS set, if_a and if_b are there, wired to each other, and not veth.
 */
static inline void tp4_net_setup(struct __test_metadata *_metadata)
{
	signal(SIGPIPE, SIG_IGN);
	if (getenv("TPACKET4_PORTS")) {
		ASSERT_EQ(0, wait_for_carrier(if_a));
		ASSERT_EQ(0, wait_for_carrier(if_b));
		return;
	}
	ASSERT_EQ(0, unshare(CLONE_NEWNET)) {
		TH_LOG("unshare: %s (needs root)", strerror(errno));
	}
	/* no router solicitation or multicast report of IPv6's own */
	write_file("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
	ASSERT_EQ(0, set_up("lo", true));
	ASSERT_EQ(0, add_pair(if_a, if_b, MTU));
}

/* An ordinary packet socket; proto 0 only sends. */
static inline int plain_socket(struct __test_metadata *_metadata,
			       const char *ifname, int proto)
{
	int fd = socket(AF_PACKET, SOCK_RAW, 0), size = 8 << 20;

	ASSERT_LE(0, fd);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
	ASSERT_EQ(0, tp4_bind(fd, ifname, proto));
	return fd;
}

/* Length of the packet received within @ms, or -EAGAIN. */
static inline int plain_recv(int fd, void *buf, size_t size, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (poll(&p, 1, ms) != 1)
		return -EAGAIN;
	return recv(fd, buf, size, MSG_DONTWAIT | MSG_TRUNC);
}

/* A packet that no protocol wants; every byte depends on @seq and its place */
static inline void fill_packet(void *buf, size_t len, uint32_t seq)
{
	static const unsigned char head[ETH_HLEN] = {
		2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2,
		ETH_P_TEST >> 8, ETH_P_TEST & 0xff
	};
	unsigned char *p = buf;
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = (seq + i) * 31 + (i >> 8) + (seq >> 8);
	memcpy(p, head, len < ETH_HLEN ? len : ETH_HLEN);
	if (len >= ETH_HLEN + sizeof(seq))
		memcpy(p + ETH_HLEN, &seq, sizeof(seq));
}

/* UDP from a port of its own: one flow a port. */
static inline void fill_udp(char *p, unsigned int len, unsigned int port,
			    uint32_t seq)
{
	fill_packet(p, len, seq);
	p[12] = ETH_P_IP >> 8;
	p[13] = 0;
	memset(p + 14, 0, 28);
	p[14] = 0x45;
	p[17] = len - ETH_HLEN;
	p[22] = 64;
	p[23] = IPPROTO_UDP;
	p[26] = 10;
	p[30] = 10;
	p[33] = 1;
	p[34] = port >> 8;
	p[35] = port;
	p[39] = len - ETH_HLEN - 20;
	memcpy(p + 42, &seq, sizeof(seq));
}

static inline uint32_t packet_seq(const void *buf)
{
	uint32_t seq;

	memcpy(&seq, (const char *)buf + ETH_HLEN, sizeof(seq));
	return seq;
}

static inline bool packet_ok(const void *buf, int len, int want, uint32_t seq)
{
	static unsigned char expect[1 << 17];

	if (len != want)
		return false;
	fill_packet(expect, want, seq);
	return !memcmp(buf, expect, want);
}

/* ---- one packet at a time ---- */

/* Bytes of each packet. One that is short the kernel may copy and so return its
 * frame at once; of one that is not the frames are away until it is gone.
 */
static unsigned int pkt_len = 100;

#define LONG_LEN	1900

static inline int post_one(struct tp4 *s, uint32_t seq)
{
	char pkt[MAX_PKT];

	fill_packet(pkt, pkt_len, seq);
	return tp4_put(s, pkt, pkt_len, 2048, 0);
}

/* Bytes sent, or -errno. */
static inline int send_one(struct tp4 *s, uint32_t seq)
{
	tp4_reap(s);
	if (post_one(s, seq))
		return -ENOSPC;
	return tp4_kick(s, MSG_DONTWAIT);
}

/* The number in the next packet received, or -1. */
static inline int recv_one(struct tp4 *s, int ms)
{
	char buf[MAX_PKT];
	int len = tp4_recv(s, buf, sizeof(buf), ms);
	uint32_t seq;

	if (len < ETH_HLEN + 4)
		return -1;
	seq = packet_seq(buf);
	return packet_ok(buf, len, pkt_len, seq) ? (int)seq : -1;
}

static inline int set_qdisc(const char *spec)
{
	char cmd[160];

	snprintf(cmd, sizeof(cmd), "qdisc replace dev %s root %s\n", if_a,
		 spec);
	return net_batch("tc", cmd);
}

#endif
