// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4, zero-copy mode on a queue that a netkit device in a container
 * leases from a physical device.
 *
 * Uses the ports and environment variables of zc_port. The queue is that of v4b.
 */
#include "netdev.h"
#include "xdp.h"
#include "xsk.h"
#include "zc.h"

#include <linux/capability.h>

static const char if_nk[] = "v4nk";

#define NK_QUEUE	1		/* queue 0 cannot be leased */

/* Missing in <linux/netdev.h> and <linux/if_link.h> of Linux 6.12 */
enum {
	CMD_QUEUE_CREATE = 16,		/* NETDEV_CMD_ */
	QUEUE_LEASE = 8,		/* NETDEV_A_ */
	LEASE_IFINDEX = 1, LEASE_QUEUE,	/* NETDEV_A_ */
	NETKIT_MODE = 5,		/* IFLA_ */
	NETKIT_PAIRING = 10,		/* IFLA_ */
	PAIR = 0, SINGLE,		/* NETKIT_DEVICE_ */
};

/* ---- the network ---- */

/* Adds a netkit device that can lease one queue, or one of a pair, which cannot.
 * Returns 0 or -errno.
 */
static int add_netkit(bool single)
{
	__u32 queues = NK_QUEUE + 1, l2 = 0, pairing = single ? SINGLE : PAIR;
	struct link_req req = {
		.h.nlmsg_len = NLMSG_LENGTH(sizeof(req.i)),
		.h.nlmsg_type = RTM_NEWLINK,
		.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL |
				 NLM_F_ACK,
	};
	struct rtattr *info, *data;

	add_attr(&req, IFLA_IFNAME, if_nk, sizeof(if_nk));
	add_attr(&req, IFLA_NUM_RX_QUEUES, &queues, sizeof(queues));
	info = add_attr(&req, IFLA_LINKINFO, NULL, 0);
	add_attr(&req, IFLA_INFO_KIND, "netkit", 7);
	data = add_attr(&req, IFLA_INFO_DATA, NULL, 0);
	add_attr(&req, NETKIT_MODE, &l2, sizeof(l2));
	add_attr(&req, NETKIT_PAIRING, &pairing, sizeof(pairing));
	end_nest(&req, data);
	end_nest(&req, info);
	return ask_link(&req);
}

static int del_netkit(void)
{
	struct link_req req = {
		.h.nlmsg_len = NLMSG_LENGTH(sizeof(req.i)),
		.h.nlmsg_type = RTM_DELLINK,
		.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
		.i.ifi_index = if_nametoindex(if_nk),
	};

	return ask_link(&req);
}

/* Moves it to a network namespace, a pid or fd by @type. 0 or -errno. */
static int move_netkit(int type, __u32 ns)
{
	struct link_req req = {
		.h.nlmsg_len = NLMSG_LENGTH(sizeof(req.i)),
		.h.nlmsg_type = RTM_NEWLINK,
		.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
		.i.ifi_index = if_nametoindex(if_nk),
	};

	add_attr(&req, type, &ns, sizeof(ns));
	return ask_link(&req);
}

static bool queue_each(struct nlmsghdr *h, void *arg)
{
	*(int *)arg = attr_u32(h, GENL_HDRLEN, NETDEV_A_QUEUE_ID);
	return true;
}

/* Leases queue 0 of v4b to the netkit device. Its number there, or -errno. */
static int lease(void)
{
	__u32 nk = if_nametoindex(if_nk), rx = NETDEV_QUEUE_TYPE_RX;
	struct {
		struct nlattr ifindex_attr;
		__u32 ifindex;
		struct nlattr queue_attr, id_attr;
		__u32 id;
		struct nlattr type_attr;
		__u32 type;
	} from = {
		.ifindex_attr = { NLA_HDRLEN + 4, LEASE_IFINDEX },
		.ifindex = if_nametoindex(if_b),
		.queue_attr = { NLA_HDRLEN + 16, LEASE_QUEUE | NLA_F_NESTED },
		.id_attr = { NLA_HDRLEN + 4, NETDEV_A_QUEUE_ID },
		.type_attr = { NLA_HDRLEN + 4, NETDEV_A_QUEUE_TYPE },
		.type = NETDEV_QUEUE_TYPE_RX,
	};
	struct genl_req req;
	int id = -ENOMSG, err = netdev_req(&req, CMD_QUEUE_CREATE, NLM_F_ACK);

	if (err)
		return err;
	genl_attr(&req, NETDEV_A_QUEUE_IFINDEX, &nk, sizeof(nk));
	genl_attr(&req, NETDEV_A_QUEUE_TYPE, &rx, sizeof(rx));
	genl_attr(&req, QUEUE_LEASE | NLA_F_NESTED, &from, sizeof(from));
	err = nl_dump(NETLINK_GENERIC, &req, queue_each, &id);
	return err ? err : id;
}

/* After its network namespace is deleted, a device keeps its lease for a while.
 */
static int lease_wait(void)
{
	uint64_t end = now_ms() + WAIT_MS;
	int err;

	do {
		err = lease();
	} while (err == -EBUSY && now_ms() < end && !usleep(1000));
	return err;
}

/* Without attributes, the command fails with EINVAL if it is known. */
static bool can_lease(void)
{
	struct genl_req req;

	return !netdev_req(&req, CMD_QUEUE_CREATE, NLM_F_ACK) &&
	       nl_ask(NETLINK_GENERIC, &req) != -EOPNOTSUPP;
}

/* All packets take one queue pair then. 0 or -errno. */
static int one_channel(const char *name)
{
	struct ethtool_channels ch = { .cmd = ETHTOOL_GCHANNELS };
	int err = ethtool_ioctl(name, &ch);

	if (err || ch.combined_count == 1)
		return err;
	ch.cmd = ETHTOOL_SCHANNELS;
	ch.combined_count = 1;
	return ethtool_ioctl(name, &ch);
}

/* In promiscuous mode: the packets have arbitrary addresses. */
static int port_up(const char *name, bool up)
{
	struct ifreq ifr = { .ifr_flags = IFF_PROMISC | (up ? IFF_UP : 0) };
	int err = dev_ioctl(name, SIOCSIFFLAGS, &ifr);

	return err || !up ? err : wait_for_carrier(name);
}

FIXTURE(netkit) {
	int home;			/* network namespace of the ports */
	pid_t container;		/* process in that of the netkit device */
	struct zc a, nk;		/* on v4a and on the leased queue */
};

/* Opens it in the container; 0 or -errno. */
static int open_cfg(struct _test_data_netkit *self, struct zc *z,
		    const struct zc_cfg *cfg)
{
	int err = enter_netns(self->container);

	if (!err)
		err = zc_open(z, cfg);
	return setns(self->home, CLONE_NEWNET) ? -errno : err;
}

static int open_nk(struct _test_data_netkit *self, struct zc *z, int n)
{
	struct zc_cfg cfg = { .ifname = if_nk, .n = n };

	return open_cfg(self, z, &cfg);
}

/* Enters zero-copy mode on v4b itself; 0 or -errno. */
static int open_b(struct zc *z)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };

	return zc_open(z, &cfg);
}

static int set_up_nk(struct _test_data_netkit *self, bool up)
{
	int err = enter_netns(self->container);

	if (!err)
		err = set_up(if_nk, up);
	return setns(self->home, CLONE_NEWNET) ? -errno : err;
}

FIXTURE_SETUP(netkit)
{
	struct zc_cfg cfg = { .ifname = if_a, .n = 1 };
	int err;

	self->home = -1;
	self->a.s.fd = -1;
	self->nk.s.fd = -1;
	if (!getenv("TPACKET4_PORTS"))
		SKIP(return, "TPACKET4_PORTS is not set");
	if (!can_lease())
		SKIP(return, "the kernel cannot lease queues");
	self->home = open("/proc/self/ns/net", O_RDONLY);
	ASSERT_LE(0, self->home);
	ASSERT_EQ(0, port_up(if_a, true));
	ASSERT_EQ(0, port_up(if_b, true));
	xdp_attach_native(if_b, -1);
	ASSERT_EQ(0, set_mtu(if_a, 1500));
	ASSERT_EQ(0, set_mtu(if_b, 1500));
	ASSERT_EQ(0, one_channel(if_a));
	ASSERT_EQ(0, one_channel(if_b));

	err = add_netkit(true);
	if (err == -EOPNOTSUPP)
		SKIP(return, "the kernel has no netkit");
	ASSERT_EQ(0, err);
	ASSERT_EQ(NK_QUEUE, lease_wait());
	self->container = other_netns();
	ASSERT_LT(0, self->container);
	ASSERT_EQ(0, move_netkit(IFLA_NET_NS_PID, self->container));
	ASSERT_EQ(0, set_up_nk(self, true));
	ASSERT_EQ(0, zc_open(&self->a, &cfg));
	ASSERT_EQ(0, open_nk(self, &self->nk, NK_QUEUE + 1));
}

FIXTURE_TEARDOWN(netkit)
{
	zc_close(&self->a);
	zc_close(&self->nk);
	if (self->container > 0 && !enter_netns(self->container)) {
		del_netkit();
		setns(self->home, CLONE_NEWNET);
	}
	if (self->container > 0)
		kill(self->container, SIGKILL);
	close(self->home);
}

static void expect_passes(struct __test_metadata *_metadata,
			  struct zc *a, struct zc *b)
{
	pass_one_by_one(_metadata, a, b, 1514, 100);
	pass_one_by_one(_metadata, b, a, 60, 100);
}

/* ---- packets ---- */

TEST_F(netkit, packets)
{
	EXPECT_EQ(NK_QUEUE + 1, zc_get(&self->nk));
	expect_passes(_metadata, &self->a, &self->nk);
}

/* They name the device that the socket is bound to. */
TEST_F(netkit, metadata)
{
	struct zc_cfg cfg = {
		.ifname = if_nk, .n = NK_QUEUE + 1, .headroom = 64,
		.meta = true,
	};
	char buf[BUF_SIZE];

	zc_close(&self->nk);
	ASSERT_EQ(0, open_cfg(self, &self->nk, &cfg));
	ASSERT_EQ(0, zc_send_seq(&self->a, 100, 0));
	ASSERT_EQ(100, zc_recv(&self->nk, buf, sizeof(buf), WAIT_MS));
	ASSERT_EQ(0, enter_netns(self->container));
	EXPECT_EQ(if_nametoindex(if_nk), self->nk.s.got.ifindex);
	ASSERT_EQ(0, setns(self->home, CLONE_NEWNET));
}

/* The lease outlives the socket. */
TEST_F(netkit, reopened)
{
	int i;

	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, zc_set(&self->nk, 0));
		EXPECT_EQ(0, zc_get(&self->nk));
		zc_close(&self->nk);
		ASSERT_EQ(0, open_nk(self, &self->nk, NK_QUEUE + 1));
		expect_passes(_metadata, &self->a, &self->nk);
	}
}

/* Packets pass the program of the physical device; netkit takes none. */
TEST_F(netkit, xdp)
{
	int drop = xdp_const(XDP_DROP, BPF_F_XDP_HAS_FRAGS);
	char buf[BUF_SIZE];

	ASSERT_LE(0, drop);
	ASSERT_EQ(0, enter_netns(self->container));
	EXPECT_EQ(-EOPNOTSUPP, xdp_attach_native(if_nk, drop));
	ASSERT_EQ(0, setns(self->home, CLONE_NEWNET));

	ASSERT_EQ(0, xdp_attach_native(if_b, drop));
	ASSERT_EQ(0, zc_send_seq(&self->a, 100, 0));
	EXPECT_EQ(-EAGAIN, zc_recv(&self->nk, buf, sizeof(buf), QUIET_MS));
	ASSERT_EQ(0, xdp_attach_native(if_b, -1));
	expect_passes(_metadata, &self->a, &self->nk);
	close(drop);
}

/* ---- refused ---- */

/* The stack's copies would be packets of the physical device. */
TEST_F(netkit, to_stack)
{
	struct zc_cfg cfg = {
		.ifname = if_nk, .n = NK_QUEUE + 1, .to_stack = true,
	};

	zc_close(&self->nk);
	EXPECT_EQ(-EOPNOTSUPP, open_cfg(self, &self->nk, &cfg));
}

TEST_F(netkit, second_socket)
{
	struct zc z;

	EXPECT_EQ(-EBUSY, open_nk(self, &z, NK_QUEUE + 1));
	zc_close(&z);
	/* the host, while the queue is in use and while it is only leased */
	EXPECT_EQ(-EBUSY, open_b(&z));
	zc_close(&z);
	zc_close(&self->nk);
	EXPECT_EQ(-EBUSY, open_b(&z));
	zc_close(&z);
	/* a queue that is not leased, and one that does not exist */
	EXPECT_EQ(-EOPNOTSUPP, open_nk(self, &self->nk, NK_QUEUE));
	zc_close(&self->nk);
	EXPECT_EQ(-ENXIO, open_nk(self, &self->nk, NK_QUEUE + 2));
}

/* One of a pair cannot lease a queue, and has no zero-copy mode of its own. */
TEST_F(netkit, no_such_pair)
{
	struct zc_cfg cfg = { .ifname = if_nk, .n = 1 };
	struct zc z;

	ASSERT_EQ(0, add_netkit(false));
	EXPECT_GT(0, lease());
	EXPECT_EQ(0, set_up(if_nk, true));
	EXPECT_EQ(-EOPNOTSUPP, zc_open(&z, &cfg));
	zc_close(&z);
	EXPECT_EQ(0, del_netkit());
}

TEST_F(netkit, af_xdp)
{
	void *umem = mmap(NULL, XSK_UMEM, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	uint64_t end;
	int fd, err;

	ASSERT_NE(MAP_FAILED, umem);
	EXPECT_EQ(-EBUSY, xsk_bind(if_b, 0, XDP_ZEROCOPY, umem));
	ASSERT_EQ(0, enter_netns(self->container));
	EXPECT_EQ(-EBUSY, xsk_bind(if_nk, NK_QUEUE, XDP_ZEROCOPY, umem));
	zc_close(&self->nk);
	fd = xsk_bind(if_nk, NK_QUEUE, XDP_ZEROCOPY, umem);
	ASSERT_EQ(0, setns(self->home, CLONE_NEWNET));
	if (fd == -EOPNOTSUPP || fd == -EINVAL)
		SKIP(return, "the driver has no zero-copy mode of AF_XDP");
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EBUSY, open_nk(self, &self->nk, NK_QUEUE + 1));
	zc_close(&self->nk);
	close(fd);
	/* AF_XDP releases the queue asynchronously */
	for (end = now_ms() + WAIT_MS;;) {
		err = open_nk(self, &self->nk, NK_QUEUE + 1);
		if (err != -EBUSY || now_ms() >= end)
			break;
		zc_close(&self->nk);
		usleep(1000);
	}
	ASSERT_EQ(0, err);
	expect_passes(_metadata, &self->a, &self->nk);
}

/* A queue that is in use cannot be leased. */
TEST_F(netkit, lease_of_busy_queue)
{
	struct zc b;

	ASSERT_EQ(0, enter_netns(self->container));
	ASSERT_EQ(0, del_netkit());
	ASSERT_EQ(0, setns(self->home, CLONE_NEWNET));
	ASSERT_EQ(0, open_b(&b));
	ASSERT_EQ(0, add_netkit(true));
	EXPECT_EQ(-EBUSY, lease());
	expect_passes(_metadata, &self->a, &b);
	zc_close(&b);
	EXPECT_EQ(NK_QUEUE, lease());
	ASSERT_EQ(0, del_netkit());
}

/* CAP_NET_ADMIN is needed over the network namespace of the netkit device only. */
TEST_F(netkit, capability)
{
	int p[2], q[2];
	pid_t pid;
	char c;

	zc_close(&self->nk);
	pid = pv4_fork();
	if (!pid) {
		int err;

		if (enter_netns(self->container) || drop_cap(CAP_NET_ADMIN))
			_exit(1);
		err = zc_open(&self->nk, &(struct zc_cfg) {
			.ifname = if_nk, .n = NK_QUEUE + 1,
		});
		_exit(err == -EPERM ? 0 : 2);
	}
	EXPECT_EQ(0, wait_for_exit(pid));

	ASSERT_EQ(0, pipe(p));
	ASSERT_EQ(0, pipe(q));
	pid = pv4_fork();
	if (!pid) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNET) ||
		    write(p[1], "x", 1) != 1 || read(q[0], &c, 1) != 1 ||
		    set_up(if_nk, true))
			_exit(1);
		_exit(zc_open(&self->nk, &(struct zc_cfg) {
			.ifname = if_nk, .n = NK_QUEUE + 1,
		}) ? 2 : 0);
	}
	ASSERT_EQ(1, read(p[0], &c, 1));
	ASSERT_EQ(0, enter_netns(self->container));
	EXPECT_EQ(0, move_netkit(IFLA_NET_NS_PID, pid));
	ASSERT_EQ(0, setns(self->home, CLONE_NEWNET));
	ASSERT_EQ(1, write(q[1], "x", 1));
	EXPECT_EQ(0, wait_for_exit(pid));
}

/* ---- removal ---- */

/* All frames have been returned with ENETDOWN. */
static void expect_gone(struct __test_metadata *_metadata, struct zc *z)
{
	EXPECT_TRUE(poll_for(z->s.fd, POLLIN, WAIT_MS) & POLLERR);
	EXPECT_EQ(ENETDOWN, socket_error(z->s.fd));
	EXPECT_LT(0, zc_all_back(z, ENETDOWN, WAIT_MS));
	EXPECT_TRUE(zc_books_closed(z));
	EXPECT_EQ(0, zc_get(z));
}

/* The host can use the queue again. */
static void expect_free(struct __test_metadata *_metadata, struct zc *a)
{
	uint64_t end = now_ms() + WAIT_MS;
	struct zc b;
	int err;

	while ((err = open_b(&b)) == -EBUSY && now_ms() < end) {
		zc_close(&b);
		usleep(1000);
	}
	ASSERT_EQ(0, err);
	expect_passes(_metadata, a, &b);
	zc_close(&b);
}

TEST_F(netkit, deleted)
{
	ASSERT_EQ(0, enter_netns(self->container));
	ASSERT_EQ(0, del_netkit());
	ASSERT_EQ(0, setns(self->home, CLONE_NEWNET));
	expect_gone(_metadata, &self->nk);
	expect_free(_metadata, &self->a);
}

/* The lease stays with the device. */
TEST_F(netkit, moved)
{
	struct zc_cfg cfg = { .ifname = if_nk, .n = NK_QUEUE + 1 };
	struct zc b;

	ASSERT_EQ(0, enter_netns(self->container));
	ASSERT_EQ(0, move_netkit(IFLA_NET_NS_FD, self->home));
	ASSERT_EQ(0, setns(self->home, CLONE_NEWNET));
	expect_gone(_metadata, &self->nk);
	zc_close(&self->nk);
	EXPECT_EQ(-EBUSY, open_b(&b));
	zc_close(&b);
	ASSERT_EQ(0, set_up(if_nk, true));
	ASSERT_EQ(0, zc_open(&self->nk, &cfg));
	expect_passes(_metadata, &self->a, &self->nk);
	ASSERT_EQ(0, del_netkit());
	expect_gone(_metadata, &self->nk);
}

TEST_F(netkit, netns_deleted)
{
	zc_close(&self->nk);
	ASSERT_EQ(0, kill(self->container, SIGKILL));
	wait_for_exit(self->container);
	self->container = 0;
	expect_free(_metadata, &self->a);
}

TEST_F(netkit, down)
{
	ASSERT_EQ(0, set_up_nk(self, false));
	EXPECT_EQ(ENETDOWN, socket_error(self->nk.s.fd));
	EXPECT_EQ(-ENETDOWN, zc_send_seq(&self->nk, 60, 0));
	ASSERT_EQ(0, set_up_nk(self, true));
	ASSERT_EQ(0, port_up(if_b, false));
	EXPECT_EQ(ENETDOWN, socket_error(self->nk.s.fd));
	EXPECT_EQ(-ENETDOWN, zc_kick(&self->nk));
	ASSERT_EQ(0, port_up(if_b, true));
	EXPECT_EQ(NK_QUEUE + 1, zc_get(&self->nk));
	/* packets posted in the meantime */
	EXPECT_EQ(0, zc_kick(&self->nk));
	EXPECT_TRUE(zc_reap_all(&self->nk, WAIT_MS));
}

TEST_F(netkit, device_removed)
{
	const char *cmd = getenv("TPACKET4_PORT_REPLUG");

	if (!cmd)
		SKIP(return, "TPACKET4_PORT_REPLUG is not set");
	ASSERT_EQ(0, system(cmd));
	expect_gone(_metadata, &self->nk);
	ASSERT_EQ(0, enter_netns(self->container));
	EXPECT_EQ(0U, if_nametoindex(if_nk));
	ASSERT_EQ(0, setns(self->home, CLONE_NEWNET));
}

TEST_HARNESS_MAIN
