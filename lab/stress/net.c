// SPDX-License-Identifier: GPL-2.0
/* Network devices and XDP programs, see net.h. */

#define _GNU_SOURCE
#include "net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/packet_diag.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <linux/veth.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- rtnetlink ---- */

struct request {
	struct nlmsghdr h;
	union {
		struct ifinfomsg link;
		struct tcmsg tc;
	};
	char attrs[1024];
};

static void init_link(struct request *req, int type, int flags)
{
	memset(req, 0, sizeof(*req));
	req->h.nlmsg_len = NLMSG_LENGTH(sizeof(req->link));
	req->h.nlmsg_type = type;
	req->h.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
}

static struct rtattr *add_attr(struct request *req, int type, const void *data,
			       unsigned int len)
{
	struct rtattr *attr = (void *)((char *)req +
				       NLMSG_ALIGN(req->h.nlmsg_len));

	attr->rta_type = type;
	attr->rta_len = RTA_LENGTH(len);
	if (len)
		memcpy(RTA_DATA(attr), data, len);
	req->h.nlmsg_len = NLMSG_ALIGN(req->h.nlmsg_len) + RTA_ALIGN(attr->rta_len);
	return attr;
}

static struct rtattr *add_nest(struct request *req, int type)
{
	return add_attr(req, type, NULL, 0);
}

static void end_nest(struct request *req, struct rtattr *nest)
{
	nest->rta_len = (char *)req + req->h.nlmsg_len - (char *)nest;
}

static void add_string(struct request *req, int type, const char *text)
{
	add_attr(req, type, text, strlen(text) + 1);
}

static int nl_socket(int protocol)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);

	return fd < 0 ? -errno : fd;
}

/* Sends it and waits for the answer, which goes to @buf if there is one. */
static int ask(struct request *req, void *buf, unsigned int size)
{
	char own[4096];
	struct nlmsghdr *h = buf ? buf : (void *)own;
	int fd = nl_socket(NETLINK_ROUTE), n;

	if (fd < 0)
		return fd;
	do {
		n = send(fd, req, req->h.nlmsg_len, 0);
	} while (n < 0 && errno == EINTR);
	if (n >= 0) {
		do {
			n = recv(fd, h, buf ? size : sizeof(own), 0);
		} while (n < 0 && errno == EINTR);
	}
	if (n < 0)
		n = -errno;
	else if (h->nlmsg_type == NLMSG_ERROR)
		n = ((struct nlmsgerr *)NLMSG_DATA(h))->error;
	close(fd);
	return n;
}

static int change(struct request *req)
{
	return ask(req, NULL, 0);
}

static int init_set(struct request *req, const char *name)
{
	init_link(req, RTM_SETLINK, 0);
	req->link.ifi_index = if_nametoindex(name);
	return req->link.ifi_index ? 0 : -ENODEV;
}

static void add_queues(struct request *req, unsigned int queues)
{
	add_attr(req, IFLA_NUM_TX_QUEUES, &queues, sizeof(queues));
	add_attr(req, IFLA_NUM_RX_QUEUES, &queues, sizeof(queues));
}

int link_add(const char *name, const char *kind)
{
	struct request req;
	struct rtattr *info;

	init_link(&req, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
	add_string(&req, IFLA_IFNAME, name);
	info = add_nest(&req, IFLA_LINKINFO);
	add_string(&req, IFLA_INFO_KIND, kind);
	end_nest(&req, info);
	return change(&req);
}

int link_add_veth(const char *a, const char *b, unsigned int queues)
{
	struct rtattr *info, *data, *peer;
	struct ifinfomsg peer_link = {};
	struct request req;

	init_link(&req, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
	add_string(&req, IFLA_IFNAME, a);
	add_queues(&req, queues);
	info = add_nest(&req, IFLA_LINKINFO);
	add_string(&req, IFLA_INFO_KIND, "veth");
	data = add_nest(&req, IFLA_INFO_DATA);
	peer = add_attr(&req, VETH_INFO_PEER, &peer_link, sizeof(peer_link));
	add_string(&req, IFLA_IFNAME, b);
	add_queues(&req, queues);
	end_nest(&req, peer);
	end_nest(&req, data);
	end_nest(&req, info);
	return change(&req);
}

int link_add_vlan(const char *name, const char *lower, int id)
{
	unsigned int ifindex = if_nametoindex(lower);
	struct rtattr *info, *data;
	struct request req;
	uint16_t vid = id;

	init_link(&req, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
	add_string(&req, IFLA_IFNAME, name);
	add_attr(&req, IFLA_LINK, &ifindex, sizeof(ifindex));
	info = add_nest(&req, IFLA_LINKINFO);
	add_string(&req, IFLA_INFO_KIND, "vlan");
	data = add_nest(&req, IFLA_INFO_DATA);
	add_attr(&req, IFLA_VLAN_ID, &vid, sizeof(vid));
	end_nest(&req, data);
	end_nest(&req, info);
	return change(&req);
}

int link_del(const char *name)
{
	struct request req;
	int err = init_set(&req, name);

	req.h.nlmsg_type = RTM_DELLINK;
	return err ? err : change(&req);
}

int link_set_up(const char *name, bool up)
{
	struct request req;
	int err = init_set(&req, name);

	req.link.ifi_flags = up ? IFF_UP : 0;
	req.link.ifi_change = IFF_UP;
	return err ? err : change(&req);
}

int link_is_running(const char *name)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret;
	struct ifreq ifr = {};

	if (fd < 0)
		return -errno;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	ret = ioctl(fd, SIOCGIFFLAGS, &ifr) ? -errno :
	      !!(ifr.ifr_flags & IFF_RUNNING);
	close(fd);
	return ret;
}

int link_set_promisc(const char *name, bool on)
{
	struct request req;
	int err = init_set(&req, name);

	req.link.ifi_flags = on ? IFF_PROMISC : 0;
	req.link.ifi_change = IFF_PROMISC;
	return err ? err : change(&req);
}

int link_set_mtu(const char *name, int mtu)
{
	struct request req;
	int err = init_set(&req, name);

	add_attr(&req, IFLA_MTU, &mtu, sizeof(mtu));
	return err ? err : change(&req);
}

int link_set_netns(const char *name, int netns)
{
	struct request req;
	int err = init_set(&req, name);

	add_attr(&req, IFLA_NET_NS_FD, &netns, sizeof(netns));
	return err ? err : change(&req);
}

int link_rename(const char *name, const char *to)
{
	struct request req;
	int err = init_set(&req, name);

	add_string(&req, IFLA_IFNAME, to);
	return err ? err : change(&req);
}

int link_set_xdp(const char *name, int prog, uint32_t flags)
{
	struct request req;
	struct rtattr *nest;
	int err = init_set(&req, name);

	nest = add_nest(&req, IFLA_XDP | NLA_F_NESTED);
	add_attr(&req, IFLA_XDP_FD, &prog, sizeof(prog));
	add_attr(&req, IFLA_XDP_FLAGS, &flags, sizeof(flags));
	end_nest(&req, nest);
	return err ? err : change(&req);
}

static int init_tc(struct request *req, const char *name, int type, int flags)
{
	init_link(req, type, flags);
	req->h.nlmsg_len = NLMSG_LENGTH(sizeof(req->tc));
	req->tc.tcm_ifindex = if_nametoindex(name);
	req->tc.tcm_parent = TC_H_ROOT;
	return req->tc.tcm_ifindex ? 0 : -ENODEV;
}

int qdisc_set(const char *name, const char *kind, const void *options,
	      unsigned int len)
{
	struct request req;
	int err = init_tc(&req, name, RTM_NEWQDISC,
			  NLM_F_CREATE | NLM_F_REPLACE);

	add_string(&req, TCA_KIND, kind);
	add_attr(&req, TCA_OPTIONS, options, len);
	return err ? err : change(&req);
}

int qdisc_del(const char *name)
{
	struct request req;
	int err = init_tc(&req, name, RTM_DELQDISC, 0);

	return err ? err : change(&req);
}

int link_stats(const char *name, struct rtnl_link_stats64 *stats)
{
	char buf[16384];
	struct nlmsghdr *h = (void *)buf;
	struct request req;
	struct rtattr *attr;
	int n = init_set(&req, name);

	req.h.nlmsg_type = RTM_GETLINK;
	req.h.nlmsg_flags = NLM_F_REQUEST;
	if (!n)
		n = ask(&req, buf, sizeof(buf));
	if (n < 0)
		return n;
	n = h->nlmsg_len - NLMSG_LENGTH(sizeof(struct ifinfomsg));
	attr = IFLA_RTA(NLMSG_DATA(h));
	for (; RTA_OK(attr, n); attr = RTA_NEXT(attr, n)) {
		if (attr->rta_type == IFLA_STATS64) {
			memcpy(stats, RTA_DATA(attr), sizeof(*stats));
			return 0;
		}
	}
	return -ENODATA;
}

int packet_diag(void)
{
	struct {
		struct nlmsghdr h;
		struct packet_diag_req r;
	} req = {
		.h = {
			.nlmsg_len = sizeof(req),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		},
		.r = { .sdiag_family = AF_PACKET, .pdiag_show = ~0 },
	};
	int n, fd = nl_socket(NETLINK_SOCK_DIAG);
	char buf[16384];
	struct nlmsghdr *h = (void *)buf;

	if (fd < 0)
		return fd;
	n = send(fd, &req, sizeof(req), 0);
	while (n > 0) {
		n = recv(fd, buf, sizeof(buf), 0);
		if (n > 0 && h->nlmsg_type == NLMSG_ERROR) {
			errno = -((struct nlmsgerr *)NLMSG_DATA(h))->error;
			n = -1;
		} else if (n > 0 && h->nlmsg_type == NLMSG_DONE) {
			n = 0;
		}
	}
	n = n < 0 ? -errno : 0;
	close(fd);
	return n;
}

/* ---- ethtool ---- */

static int ethtool(const char *name, void *data)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;
	struct ifreq ifr = { .ifr_data = data };

	if (fd < 0)
		return -errno;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	if (ioctl(fd, SIOCETHTOOL, &ifr))
		err = -errno;
	close(fd);
	return err;
}

/* Some devices count Rx and Tx queues separately, some together. */
int set_channels(const char *name, unsigned int nr)
{
	struct ethtool_channels ch = { .cmd = ETHTOOL_GCHANNELS };
	int err = ethtool(name, &ch);

	if (err)
		return err;
	ch.cmd = ETHTOOL_SCHANNELS;
	if (ch.max_combined) {
		ch.combined_count = nr;
	} else {
		ch.rx_count = nr;
		ch.tx_count = nr;
	}
	return ethtool(name, &ch);
}

int set_ring_size(const char *name, unsigned int nr)
{
	struct ethtool_ringparam rp = { .cmd = ETHTOOL_GRINGPARAM };
	int err = ethtool(name, &rp);

	if (err)
		return err;
	rp.cmd = ETHTOOL_SRINGPARAM;
	rp.rx_pending = nr;
	rp.tx_pending = nr;
	return ethtool(name, &rp);
}

int set_gro(const char *name, bool on)
{
	struct ethtool_value v = { .cmd = ETHTOOL_SGRO, .data = on };

	return ethtool(name, &v);
}

int ethtool_reset(const char *name)
{
	struct ethtool_value v = { .cmd = ETHTOOL_RESET, .data = ETH_RESET_ALL };

	return ethtool(name, &v);
}

static bool ends_in(const char *name, const char *suffix)
{
	size_t len = strnlen(name, ETH_GSTRING_LEN), n = strlen(suffix);

	return len >= n && !strncmp(name + len - n, suffix, n);
}

int64_t ethtool_sum(const char *name, const char *suffix)
{
	struct {
		struct ethtool_sset_info h;
		uint32_t nr;
	} set = {
		.h = { .cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1 << ETH_SS_STATS },
	};
	struct ethtool_gstrings *names = NULL;
	struct ethtool_stats *values = NULL;
	int64_t sum = ethtool(name, &set);
	unsigned int i;

	if (sum)
		return sum;
	/* The device may have more of them now. */
	names = calloc(1, sizeof(*names) + (set.nr + 1024) * ETH_GSTRING_LEN);
	values = calloc(1, sizeof(*values) + (set.nr + 1024) * sizeof(uint64_t));
	names->cmd = ETHTOOL_GSTRINGS;
	names->string_set = ETH_SS_STATS;
	names->len = set.nr;
	values->cmd = ETHTOOL_GSTATS;
	values->n_stats = set.nr;
	sum = ethtool(name, names);
	if (!sum)
		sum = ethtool(name, values);
	if (sum)
		goto out;
	for (i = 0; i < names->len && i < values->n_stats; i++)
		if (ends_in((char *)names->data + i * ETH_GSTRING_LEN, suffix))
			sum += values->data[i];
out:
	free(names);
	free(values);
	return sum;
}

/* ---- BPF ---- */

#define INSN(c, d, s, o, i) \
	((struct bpf_insn) { .code = (c), .dst_reg = (d), .src_reg = (s), \
			     .off = (o), .imm = (i) })
#define MOV(d, i)	INSN(BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, i)
#define CALL(f)		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, f)
#define EXIT		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
/* Drops one packet of 16: otherwise, some would loop and use all CPU time. */
#define DROP_SOME \
	CALL(BPF_FUNC_get_prandom_u32), \
	INSN(BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_0, 0, 0, 15), \
	INSN(BPF_JMP | BPF_JNE | BPF_K, BPF_REG_0, 0, 2, 0), \
	MOV(BPF_REG_0, XDP_DROP), \
	EXIT
#define LEN(array)	(sizeof(array) / sizeof((array)[0]))

int bpf_load(enum bpf_prog_type type, const struct bpf_insn *insns,
	     unsigned int n, uint32_t flags)
{
	union bpf_attr attr = {
		.prog_type = type,
		.insn_cnt = n,
		.insns = (uintptr_t)insns,
		.license = (uintptr_t)"GPL",
		.prog_flags = flags,
	};
	int fd = syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));

	return fd < 0 ? -errno : fd;
}

static int xdp_load(const struct bpf_insn *insns, unsigned int n, bool frags)
{
	return bpf_load(BPF_PROG_TYPE_XDP, insns, n,
			frags ? BPF_F_XDP_HAS_FRAGS : 0);
}

int xdp_return(int action, bool frags)
{
	struct bpf_insn prog[] = { MOV(BPF_REG_0, action), EXIT };

	return xdp_load(prog, LEN(prog), frags);
}

int xdp_send_back(bool frags)
{
	struct bpf_insn prog[] = { DROP_SOME, MOV(BPF_REG_0, XDP_TX), EXIT };

	return xdp_load(prog, LEN(prog), frags);
}

int xdp_redirect(int ifindex, bool frags)
{
	struct bpf_insn prog[] = {
		DROP_SOME,
		MOV(BPF_REG_1, ifindex),
		MOV(BPF_REG_2, 0),
		CALL(BPF_FUNC_redirect),
		EXIT,
	};

	return xdp_load(prog, LEN(prog), frags);
}

/* Moves one end of the packet, and passes it. */
int xdp_adjust(int helper, int delta, bool frags)
{
	struct bpf_insn prog[] = {
		MOV(BPF_REG_2, delta),
		CALL(helper),
		MOV(BPF_REG_0, XDP_PASS),
		EXIT,
	};

	return xdp_load(prog, LEN(prog), frags);
}

int filter_return(int len)
{
	struct bpf_insn prog[] = { MOV(BPF_REG_0, len), EXIT };

	return bpf_load(BPF_PROG_TYPE_SOCKET_FILTER, prog, LEN(prog), 0);
}

/* ---- the rest ---- */

uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

int64_t read_number(const char *path, const char *name)
{
	FILE *file = fopen(path, "re");
	int64_t value = -ENOENT;
	char line[256];
	size_t len = strlen(name);

	if (!file)
		return -errno;
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, name, len) && line[len] == ' ')
			value = strtoll(line + len, NULL, 10);
	fclose(file);
	return value;
}

static void *netns_main(void *arg)
{
	int fd = unshare(CLONE_NEWNET) ? -errno :
		 open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	*(int *)arg = fd;
	return NULL;
}

int new_netns(void)
{
	pthread_t thread;
	int fd = -EAGAIN;

	if (!pthread_create(&thread, NULL, netns_main, &fd))
		pthread_join(thread, NULL);
	return fd;
}
