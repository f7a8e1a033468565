// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4, zero-copy mode by AF_XDP's driver interface, on the two ports of
 * zc_port: what differs from a driver with operations of V4.
 */
#include "meta.h"
#include "netdev.h"
#include "xsk.h"
#include "zc_port.h"
#include "zc_stopped.h"

/* In zero-copy mode, there is a program of the kernel. */
static int xdp_is_shown(const char *name)
{
	return !run("ip link show %s | grep -w xdp", name);
}

/* One that is not the kernel's has an ID. V4 as a module shows this one, which no
 * program has.
 */
static int own_is_shown(const char *name)
{
	return !run("ip link show %s | grep -w prog/xdp | grep -vw 4294967295",
		    name);
}

FIXTURE(xsk) {
	struct zc a, b;
};

/* As a module, V4 refuses shorter frames for the kernel's igb. */
FIXTURE_SETUP(xsk)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1, .frame_size = 4096 };
	int shown;

	self->a.s.fd = -1;
	self->b.s.fd = -1;
	ports(_metadata);
	ASSERT_EQ(0, both_mtu(1500));
	ASSERT_EQ(0, port_open(&self->b, &cfg));
	shown = xdp_is_shown(if_b);
	zc_close(&self->b);
	self->b.s.fd = -1;
	if (!shown)
		SKIP(return, "the driver has operations of V4");
}

FIXTURE_TEARDOWN(xsk)
{
	zc_close(&self->a);
	zc_close(&self->b);
}

static int bound_load(void)
{
	struct bpf_insn insns[] = { MOV_K(BPF_REG_0, XDP_PASS), EXIT };

	return bpf_load_for(BPF_PROG_TYPE_XDP, insns, ARRAY_SIZE(insns),
			    BPF_F_XDP_DEV_BOUND_ONLY | BPF_F_XDP_HAS_FRAGS,
			    if_nametoindex(if_b));
}

static int xdp_link(const char *name, int prog)
{
	union bpf_attr attr = {
		.link_create.prog_fd = prog,
		.link_create.target_ifindex = if_nametoindex(name),
		.link_create.attach_type = BPF_XDP,
		.link_create.flags = XDP_FLAGS_DRV_MODE,
	};

	return bpf_call(BPF_LINK_CREATE, &attr);
}

static int xdp_link_update(int link, int prog)
{
	union bpf_attr attr = {
		.link_update.link_fd = link, .link_update.new_prog_fd = prog,
	};

	return bpf_call(BPF_LINK_UPDATE, &attr);
}

/* The program of the kernel comes and goes with the first and last queue. */
TEST_F_TIMEOUT(xsk, program, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };
	int prog = xdp_const(XDP_PASS, BPF_F_XDP_HAS_FRAGS);

	ASSERT_LE(0, prog);
	ASSERT_EQ(0, xdp_keep(prog));
	EXPECT_FALSE(xdp_is_shown(if_b));
	ASSERT_EQ(0, port_open(&self->b, &cfg));
	EXPECT_TRUE(xdp_is_shown(if_b));
	EXPECT_EQ(-EBUSY, xdp_attach(if_b, prog, XDP_FLAGS_SKB_MODE));
	EXPECT_EQ(0, xdp_attach_native(if_b, -1));
	EXPECT_TRUE(xdp_is_shown(if_b));

	cfg.ifname = if_a;
	ASSERT_EQ(0, port_open(&self->a, &cfg));
	pass_one_by_one(_metadata, &self->a, &self->b, 60, 20);
	pass_one_by_one(_metadata, &self->b, &self->a, 1514, 20);

	zc_close(&self->b);
	self->b.s.fd = -1;
	EXPECT_FALSE(xdp_is_shown(if_b));
	close(prog);
}

/* Sends packets from the stack of if_a, whose key says what happens to them.
 * Without a ring, XDP_PASS is to the stack.
 */
static void every_verdict(struct __test_metadata *_metadata, struct zc *z,
			  int fd_a, int fd_b, unsigned int len)
{
	static char buf[BUF_SIZE];
	int act, got;

	for (act = XDP_ABORTED; act <= XDP_PASS_TO_KERNEL; act++) {
		uint32_t seq = key_seq(act, len);

		/* virtio_net has no room for its header in front of a copy of a
		 * frame of AF_XDP.
		 */
		if (act == XDP_REDIRECT || (act == XDP_TX && !z && is_virtio()))
			continue;
		fill_packet(buf, len, seq);
		ASSERT_EQ((int)len, send(fd_a, buf, len, 0));
		if (act == XDP_TX)
			got = plain_recv(fd_a, buf, sizeof(buf), WAIT_MS);
		else if (act == XDP_PASS && z)
			got = zc_recv(z, buf, sizeof(buf), WAIT_MS);
		else if (act == XDP_PASS || act == XDP_PASS_TO_KERNEL)
			got = plain_recv(fd_b, buf, sizeof(buf), WAIT_MS);
		else
			continue;
		ASSERT_TRUE(packet_ok(buf, got, len, seq)) {
			TH_LOG("action %d, %u bytes: %d", act, len, got);
		}
	}
	EXPECT_EQ(-EAGAIN, plain_recv(fd_a, buf, sizeof(buf), QUIET_MS));
	EXPECT_EQ(-EAGAIN, plain_recv(fd_b, buf, sizeof(buf), 0));
	if (z)
		EXPECT_EQ(-EAGAIN, zc_recv(z, buf, sizeof(buf), 0));
}

/* XDP_REDIRECT is to the first entry of @map. */
static void load_verdicts(struct __test_metadata *_metadata,
			  struct xdp_keyed *x, int map)
{
	int i;

	ASSERT_LE(0, map);
	ASSERT_EQ(0, xdp_keyed_load(x, map, BPF_F_XDP_HAS_FRAGS));
	for (i = 0; i <= XDP_PASS_TO_KERNEL; i++)
		ASSERT_EQ(0, xdp_set_action(x, i, i));
}

/* The device's own program was there before, and stays. */
TEST_F_TIMEOUT(xsk, own_program, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };
	int fd_a, fd_b, prog, link, i;
	struct xdp_keyed x;
	char buf[2048];

	load_verdicts(_metadata, &x, bpf_map(BPF_MAP_TYPE_DEVMAP, 4, 1));
	ASSERT_EQ(0, xdp_attach_native(if_b, x.prog));
	EXPECT_TRUE(own_is_shown(if_b));
	ASSERT_EQ(0, wait_for_carrier(if_a));
	fd_a = plain_listener(_metadata, if_a);
	fd_b = plain_listener(_metadata, if_b);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, port_open(&self->b, &cfg));
		EXPECT_TRUE(own_is_shown(if_b));
		every_verdict(_metadata, &self->b, fd_a, fd_b, 60);
		every_verdict(_metadata, &self->b, fd_a, fd_b, 1514);
		EXPECT_TRUE(zc_books_balance(&self->b, NULL));
		zc_close(&self->b);
		self->b.s.fd = -1;
		EXPECT_TRUE(own_is_shown(if_b));
		ASSERT_EQ(0, wait_for_carrier(if_a));
		ASSERT_EQ(0, wait_for_carrier(if_b));
	}

	/* replaced and removed while there is a socket, also by links */
	prog = xdp_const(XDP_DROP, BPF_F_XDP_HAS_FRAGS);
	ASSERT_LE(0, prog);
	ASSERT_EQ(0, port_open(&self->b, &cfg));
	ASSERT_EQ(0, xdp_attach_native(if_b, prog));
	fill_packet(buf, 100, 0);
	ASSERT_EQ(100, send(fd_a, buf, 100, 0));
	EXPECT_EQ(-EAGAIN, zc_recv(&self->b, buf, sizeof(buf), QUIET_MS));
	ASSERT_EQ(0, xdp_attach_native(if_b, -1));
	EXPECT_FALSE(own_is_shown(if_b));
	ASSERT_EQ(100, send(fd_a, buf, 100, 0));
	EXPECT_EQ(100, zc_recv(&self->b, buf, sizeof(buf), WAIT_MS));

	link = xdp_link(if_b, prog);
	ASSERT_LE(0, link);
	EXPECT_EQ(-EBUSY, xdp_attach_native(if_b, x.prog));
	ASSERT_EQ(100, send(fd_a, buf, 100, 0));
	EXPECT_EQ(-EAGAIN, zc_recv(&self->b, buf, sizeof(buf), QUIET_MS));
	ASSERT_EQ(0, xdp_link_update(link, x.prog));
	every_verdict(_metadata, &self->b, fd_a, fd_b, 1000);
	close(link);
	EXPECT_TRUE(xdp_is_shown(if_b));
	EXPECT_FALSE(own_is_shown(if_b));
	ASSERT_EQ(100, send(fd_a, buf, 100, 0));
	EXPECT_EQ(100, zc_recv(&self->b, buf, sizeof(buf), WAIT_MS));

	/* a socket that leaves first */
	link = xdp_link(if_b, x.prog);
	ASSERT_LE(0, link);
	zc_close(&self->b);
	self->b.s.fd = -1;
	EXPECT_TRUE(own_is_shown(if_b));
	close(link);
	EXPECT_FALSE(xdp_is_shown(if_b));
	close(fd_a);
	close(fd_b);
}

/* It runs for queues without a socket. */
TEST_F_TIMEOUT(xsk, own_program_on_other_queues, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 2 };
	struct xdp_keyed x;
	int fd_a, fd_b;

	if (is_virtio() || channels(2))
		SKIP(return, "needs a second queue that gets IP packets only");
	load_verdicts(_metadata, &x, bpf_map(BPF_MAP_TYPE_DEVMAP, 4, 1));
	ASSERT_EQ(0, port_open(&self->b, &cfg));
	ASSERT_EQ(0, xdp_attach_native(if_b, x.prog));
	fd_a = plain_listener(_metadata, if_a);
	fd_b = plain_listener(_metadata, if_b);
	every_verdict(_metadata, NULL, fd_a, fd_b, 60);
	every_verdict(_metadata, NULL, fd_a, fd_b, 1514);
	EXPECT_EQ(0, xdp_attach_native(if_b, -1));
	close(fd_a);
	close(fd_b);
}

/* Send a packet from the stack of if_a. */
static void send_key(struct __test_metadata *_metadata, int fd, int act,
		     unsigned int len)
{
	static char buf[BUF_SIZE];

	fill_packet(buf, len, key_seq(act, len));
	ASSERT_EQ((int)len, send(fd, buf, len, 0));
}

#define CPUMAP_NR	16	/* packets at a time: two of the map's batches */

/* A thread gives the packets to the stack. */
static void redirect_to_cpumap(struct __test_metadata *_metadata, struct zc *z,
			       int fd_a)
{
	int map = bpf_map(BPF_MAP_TYPE_CPUMAP, 4, 1), fd_b, i, n, got;
	static char buf[BUF_SIZE];
	struct xdp_keyed x;
	__u32 size = 192;

	load_verdicts(_metadata, &x, map);
	ASSERT_EQ(0, bpf_set(map, 0, &size));
	ASSERT_EQ(0, xdp_attach_native(if_b, x.prog));
	fd_b = plain_listener(_metadata, if_b);
	for (n = 60; n < 1514 - CPUMAP_NR; n += 20) {
		for (i = n; i < n + CPUMAP_NR; i++) {
			send_key(_metadata, fd_a, XDP_REDIRECT, i);
			send_key(_metadata, fd_a, XDP_PASS, i);
		}
		for (i = n; i < n + CPUMAP_NR; i++) {
			got = plain_recv(fd_b, buf, sizeof(buf), WAIT_MS);
			ASSERT_TRUE(packet_ok(buf, got, i,
					      key_seq(XDP_REDIRECT, i)))
				TH_LOG("redirected packet %d: got %d", i, got);
			got = zc_recv(z, buf, sizeof(buf), WAIT_MS);
			ASSERT_TRUE(packet_ok(buf, got, i,
					      key_seq(XDP_PASS, i)))
				TH_LOG("passed packet %d: got %d", i, got);
		}
	}
	EXPECT_EQ(-EAGAIN, plain_recv(fd_b, buf, sizeof(buf), QUIET_MS));
	close(fd_b);
}

/* An AF_XDP socket only gets packets of its own queue, which is never V4's. */
static void redirect_to_af_xdp(struct __test_metadata *_metadata, struct zc *z,
			       int fd_a, const char *name, int queue)
{
	int map = bpf_map(BPF_MAP_TYPE_XSKMAP, 4, 1), xsk, i, got;
	void *umem = pv4_new_area(XSK_UMEM);
	static char buf[BUF_SIZE];
	struct xdp_keyed x;
	long before;

	ASSERT_TRUE(umem != MAP_FAILED);
	xsk = xsk_bind(name, queue, XDP_COPY, umem);
	ASSERT_LE(0, xsk);
	load_verdicts(_metadata, &x, map);
	ASSERT_EQ(0, bpf_set(map, 0, &xsk));
	ASSERT_EQ(0, xdp_attach_native(if_b, x.prog));
	EXPECT_EQ(-EBUSY, xsk_bind(if_b, 0, XDP_COPY, umem));
	before = dropped(if_b);
	ASSERT_LE(0, before);
	for (i = 60; i < 80; i++) {
		send_key(_metadata, fd_a, XDP_REDIRECT, i);
		send_key(_metadata, fd_a, XDP_PASS, i);
		got = zc_recv(z, buf, sizeof(buf), WAIT_MS);
		ASSERT_TRUE(packet_ok(buf, got, i, key_seq(XDP_PASS, i)));
	}
	EXPECT_EQ(before + 20, wait_for_drops(if_b, before + 20));
	EXPECT_EQ(20U, bpf_get(x.counts, XDP_REDIRECT));
	close(xsk);
}

TEST_F_TIMEOUT(xsk, own_program_redirects, 120)
{
	bool two = !is_virtio() && !channels(2);
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };
	int fd;

	ASSERT_EQ(0, port_open(&self->b, &cfg));
	fd = plain_listener(_metadata, if_a);
	redirect_to_cpumap(_metadata, &self->b, fd);
	redirect_to_af_xdp(_metadata, &self->b, fd, if_a, 0);
	if (two)
		redirect_to_af_xdp(_metadata, &self->b, fd, if_b, 1);
	EXPECT_TRUE(zc_books_balance(&self->b, NULL));
	EXPECT_EQ(0, xdp_attach_native(if_b, -1));
	close(fd);
}

/* AF_XDP has another queue than V4, which comes and goes. */
TEST_F_TIMEOUT(xsk, af_xdp_on_other_queue, 120)
{
	int map = bpf_map(BPF_MAP_TYPE_XSKMAP, 4, 1), fd_a, fd_b, i, n, got;
	struct zc_cfg cfg = { .ifname = if_b, .n = 2 };
	static char buf[BUF_SIZE];
	struct xdp_keyed x;
	struct xsk xsk;

	if (is_virtio() || channels(2))
		SKIP(return, "needs a second queue that gets IP packets only");
	load_verdicts(_metadata, &x, map);
	ASSERT_EQ(0, xdp_attach_native(if_b, x.prog));
	for (i = 0; i < 3; i++) {
		if (i == 1) {
			zc_close(&self->b);
			self->b.s.fd = -1;
		} else {
			ASSERT_EQ(0, port_open(&self->b, &cfg));
		}
		if (!i) {
			ASSERT_EQ(0, xsk_open_mode(&xsk, if_b, XDP_ZEROCOPY |
						   XDP_USE_NEED_WAKEUP, 4096));
			ASSERT_EQ(0, bpf_set(map, 0, &xsk.fd));
		}
		ASSERT_EQ(0, wait_for_carrier(if_a));
		ASSERT_EQ(0, wait_for_carrier(if_b));
		fd_a = plain_listener(_metadata, if_a);
		fd_b = plain_listener(_metadata, if_b);
		for (n = 60; n < 1514; n += 20) {
			send_key(_metadata, fd_a, XDP_REDIRECT, n);
			got = xsk_recv(&xsk, buf, WAIT_MS);
			ASSERT_TRUE(packet_ok(buf, got, n,
					      key_seq(XDP_REDIRECT, n)));
			send_key(_metadata, fd_a, XDP_PASS, n);
			got = plain_recv(fd_b, buf, sizeof(buf), WAIT_MS);
			ASSERT_TRUE(packet_ok(buf, got, n,
					      key_seq(XDP_PASS, n)));
		}
		EXPECT_EQ(-EAGAIN, xsk_recv(&xsk, buf, QUIET_MS));
		close(fd_a);
		close(fd_b);
	}
	EXPECT_EQ(0, xdp_attach_native(if_b, -1));
	close(xsk.fd);
}

/* Loads one of libxdp's programs: alw passes all packets, dny drops them. */
static int libxdp_load(const char *name)
{
	return run("xdp-loader load -p /sys/fs/bpf/tpacket4 %s /usr/lib/*/bpf/xdpfilt_%s_eth.o",
		   if_b, name);
}

static int libxdp_unload(const char *name)
{
	return run("xdp-loader unload %s -i $(xdp-loader status %s | awk '/%s/{print $4}')",
		   if_b, if_b, name);
}

/* Check that all tools find a dispatcher that calls @n programs. */
static bool libxdp_has(int n)
{
	return own_is_shown(if_b) &&
	       !run("bpftool net show | grep '%s.*driver id'", if_b) &&
	       !run("xdp-loader status %s | grep -c '=>' | grep -x %d", if_b,
		    n);
}

static void expect_ring(struct __test_metadata *_metadata, struct zc *z, int fd,
			int len)
{
	static char buf[BUF_SIZE];

	send_key(_metadata, fd, XDP_PASS, 100);
	EXPECT_EQ(len, zc_recv(z, buf, sizeof(buf),
			       len < 0 ? QUIET_MS : WAIT_MS));
}

/* Several programs, which libxdp's dispatcher calls. With each one that comes or
 * goes, a new dispatcher takes the place of the one before.
 */
TEST_F_TIMEOUT(xsk, dispatcher, 300)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };
	int fd, i;

	if (access("/sys/kernel/btf/vmlinux", F_OK) || libxdp_load("alw") ||
	    !libxdp_has(1)) {
		xdp_attach_native(if_b, -1);
		SKIP(return, "needs xdp-loader, bpftool and CONFIG_DEBUG_INFO_BTF");
	}
	fd = plain_listener(_metadata, if_a);
	/* attached before there is a socket, then after */
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, port_open(&self->b, &cfg));
		if (i)
			ASSERT_EQ(0, libxdp_load("alw"));
		EXPECT_TRUE(libxdp_has(1));
		expect_ring(_metadata, &self->b, fd, 100);
		ASSERT_EQ(0, libxdp_load("dny"));
		EXPECT_TRUE(libxdp_has(2));
		expect_ring(_metadata, &self->b, fd, -EAGAIN);
		ASSERT_EQ(0, libxdp_unload("dny"));
		EXPECT_TRUE(libxdp_has(1));
		expect_ring(_metadata, &self->b, fd, 100);
		if (i) {
			ASSERT_EQ(0, run("xdp-loader unload -a %s", if_b));
			EXPECT_FALSE(own_is_shown(if_b));
			expect_ring(_metadata, &self->b, fd, 100);
		}
		zc_close(&self->b);
		self->b.s.fd = -1;
		if (!i) {
			EXPECT_TRUE(libxdp_has(1));
			ASSERT_EQ(0, run("xdp-loader unload -a %s", if_b));
		}
		EXPECT_FALSE(xdp_is_shown(if_b));
	}
	run("rm -r /sys/fs/bpf/tpacket4");
	close(fd);
}

/* Functions of the driver would not find what they return. */
TEST_F_TIMEOUT(xsk, device_bound_program, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };
	int prog = bound_load();

	ASSERT_LE(0, prog);
	ASSERT_EQ(0, port_open(&self->b, &cfg));
	EXPECT_EQ(-EBUSY, xdp_attach_native(if_b, prog));
	zc_close(&self->b);
	ASSERT_EQ(0, xdp_attach_native(if_b, prog));
	EXPECT_EQ(-EBUSY, port_open(&self->b, &cfg));
	EXPECT_TRUE(own_is_shown(if_b));
	EXPECT_EQ(0, xdp_attach_native(if_b, -1));
	close(prog);
}

/* Other programs redirect as before, also to an AF_XDP socket without a queue. */
TEST_F_TIMEOUT(xsk, unbound_target, 120)
{
	int map = bpf_map(BPF_MAP_TYPE_XSKMAP, 4, 1);
	const struct bpf_insn insns[] = {
		LOAD_MAP(1, map), LOAD_MAP_2,
		MOV_K(2, 0), MOV_K(3, XDP_PASS), CALL(BPF_FUNC_redirect_map),
		EXIT,
	};
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };
	int xsk, prog, fd, i, nr = XSK_NR;
	static char buf[BUF_SIZE];

	ASSERT_EQ(0, port_open(&self->b, &cfg));
	xsk = socket(AF_XDP, SOCK_RAW, 0);
	ASSERT_LE(0, xsk);
	ASSERT_EQ(0, setsockopt(xsk, SOL_XDP, XDP_RX_RING, &nr, sizeof(nr)));
	ASSERT_LE(0, map);
	ASSERT_EQ(0, bpf_set(map, 0, &xsk));
	prog = bpf_load(BPF_PROG_TYPE_XDP, insns, ARRAY_SIZE(insns),
			BPF_F_XDP_HAS_FRAGS);
	ASSERT_LE(0, prog);
	ASSERT_EQ(0, xdp_attach_native(if_a, prog));
	fd = plain_listener(_metadata, if_a);
	for (i = 0; i < 20; i++)
		ASSERT_EQ(0, zc_send_seq(&self->b, 200, i));
	EXPECT_TRUE(zc_reap_all(&self->b, WAIT_MS));
	/* Without the program, or an entry of the map, they would be here. */
	EXPECT_EQ(-EAGAIN, plain_recv(fd, buf, sizeof(buf), QUIET_MS));
	EXPECT_EQ(0, xdp_attach_native(if_a, -1));
	close(prog);
	close(xsk);
	close(map);
	close(fd);
}

/* A program that is killed leaves neither the XDP program nor frames behind. */
TEST_F_TIMEOUT(xsk, killed, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };
	int status;
	pid_t pid;

	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (!port_open(&self->b, &cfg))
			raise(SIGKILL);
		_exit(1);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFSIGNALED(status));
	EXPECT_FALSE(xdp_is_shown(if_b));
	EXPECT_EQ(0, port_open(&self->b, &cfg));
}

TEST_F_TIMEOUT(xsk, refused, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1, .headroom = 960 };

	/* less than 1024 bytes of room */
	EXPECT_EQ(-EINVAL, port_open(&self->b, &cfg));
	zc_close(&self->b);
	/* frames that do not lie side by side */
	cfg = (struct zc_cfg) {
		.ifname = if_b, .n = 1, .unit = 64, .frame_size = 2048,
		.step = 32,
	};
	EXPECT_EQ(-EOPNOTSUPP, port_open(&self->b, &cfg));
	EXPECT_FALSE(xdp_is_shown(if_b));
}

/* Opens a socket on if_b that only sends. */
static int tx_open(struct pv4 *s)
{
	struct pv4_cfg cfg = { .tx_nr = pv4_min_descs(), .frame_size = 4096 };
	int err = pv4_open(s, &cfg);

	err = err ? err : pv4_bind(s->fd, if_b, ETH_P_ALL);
	err = err ? err : pv4_setint(s->fd, PACKET_ZEROCOPY, 1);
	err = err ? err : wait_for_carrier(if_a);
	return err ? err : wait_for_carrier(if_b);
}

#define TX_BURST	16

/* Passes @n packets each way: the ring's, and the stack's. */
static void both_ways(struct __test_metadata *_metadata, struct pv4 *s,
		      int fd_a, int fd_b, unsigned int len, unsigned int n)
{
	static char buf[BUF_SIZE];
	unsigned int i, k;

	for (i = 0; i < n; i += TX_BURST) {
		pv4_reap(s);
		for (k = i; k < i + TX_BURST; k++) {
			fill_packet(buf, len, 2 * k);
			ASSERT_EQ((int)len, send(fd_a, buf, len, 0));
			if (len > 4096)
				continue;
			fill_packet(buf, len, 2 * k + 1);
			ASSERT_EQ(0, pv4_put(s, buf, len, 4096, 0));
		}
		ASSERT_EQ(0, pv4_kick(s, MSG_DONTWAIT));
		for (k = i; k < i + TX_BURST; k++) {
			ASSERT_EQ((int)len, plain_recv(fd_b, buf, sizeof(buf),
						       WAIT_MS));
			ASSERT_TRUE(packet_ok(buf, len, len, 2 * k));
			if (len > 4096)
				continue;
			ASSERT_EQ((int)len, plain_recv(fd_a, buf, sizeof(buf),
						       WAIT_MS));
			ASSERT_TRUE(packet_ok(buf, len, len, 2 * k + 1));
		}
	}
	EXPECT_TRUE(pv4_reap_all(s, WAIT_MS));
	EXPECT_EQ(-EAGAIN, plain_recv(fd_b, buf, sizeof(buf), QUIET_MS));
}

/* Receives what has been sent so far. */
static void drain(int fd)
{
	static char buf[BUF_SIZE];

	while (plain_recv(fd, buf, sizeof(buf), QUIET_MS) != -EAGAIN)
		;
}

/* The packets that the queue of a socket without an Rx ring receives are the
 * stack's, more than the kernel has frames for them.
 */
TEST_F_TIMEOUT(xsk, tx_alone, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };
	static char buf[BUF_SIZE];
	int fd_a, fd_b;
	struct pv4 s;

	ASSERT_EQ(0, tx_open(&s));
	EXPECT_TRUE(xdp_is_shown(if_b));
	fd_a = plain_listener(_metadata, if_a);
	fd_b = plain_listener(_metadata, if_b);
	both_ways(_metadata, &s, fd_a, fd_b, 300, 1104);
	both_ways(_metadata, &s, fd_a, fd_b, 1514, 64);
	EXPECT_EQ(-EBUSY, port_open(&self->b, &cfg));
	zc_close(&self->b);
	self->b.s.fd = -1;
	both_ways(_metadata, &s, fd_a, fd_b, 60, 64);
	pv4_close(&s);
	EXPECT_FALSE(xdp_is_shown(if_b));

	/* one that receives has the queue next */
	ASSERT_EQ(0, port_open(&self->b, &cfg));
	drain(fd_b);
	fill_packet(buf, 100, 1);
	ASSERT_EQ(100, send(fd_a, buf, 100, 0));
	EXPECT_EQ(100, zc_recv(&self->b, buf, sizeof(buf), WAIT_MS));
	EXPECT_EQ(-EAGAIN, plain_recv(fd_b, buf, sizeof(buf), QUIET_MS));
	close(fd_a);
	close(fd_b);
}

/* Packets of several of the kernel's frames, or as long as one of them takes */
TEST_F_TIMEOUT(xsk, tx_alone_long_packets, 120)
{
	int mtu = port_mtu(PORT_MTU), fd_a, fd_b, err;
	struct pv4 s;

	ASSERT_EQ(0, both_mtu(mtu));
	err = tx_open(&s);
	if (err == -EMSGSIZE) {
		mtu = 2900;
		pv4_close(&s);
		ASSERT_EQ(0, both_mtu(mtu));
		err = tx_open(&s);
		/* as a module, because of the kernel's driver */
		if (!access("/sys/module/tpacket4", F_OK)) {
			EXPECT_NE(0, both_mtu(port_mtu(PORT_MTU)));
			ASSERT_EQ(0, both_mtu(mtu));
		}
	}
	ASSERT_EQ(0, err);
	fd_a = plain_listener(_metadata, if_a);
	fd_b = plain_listener(_metadata, if_b);
	both_ways(_metadata, &s, fd_a, fd_b, mtu + ETH_HLEN, 64);
	both_ways(_metadata, &s, fd_a, fd_b, 200, 16);
	pv4_close(&s);
	close(fd_a);
	close(fd_b);
	ASSERT_EQ(0, both_mtu(1500));
}

/* The driver runs the user's program on them. */
TEST_F_TIMEOUT(xsk, tx_alone_own_program, 120)
{
	struct xdp_keyed x;
	int fd_a, fd_b, i;
	struct pv4 s;

	load_verdicts(_metadata, &x, bpf_map(BPF_MAP_TYPE_DEVMAP, 4, 1));
	for (i = 0; i < 2; i++) {
		if (i)
			ASSERT_EQ(0, xdp_attach_native(if_b, x.prog));
		ASSERT_EQ(0, tx_open(&s));
		if (!i)
			ASSERT_EQ(0, xdp_attach_native(if_b, x.prog));
		ASSERT_EQ(0, wait_for_carrier(if_a));
		ASSERT_EQ(0, wait_for_carrier(if_b));
		EXPECT_TRUE(own_is_shown(if_b));
		fd_a = plain_listener(_metadata, if_a);
		fd_b = plain_listener(_metadata, if_b);
		every_verdict(_metadata, NULL, fd_a, fd_b, 60);
		every_verdict(_metadata, NULL, fd_a, fd_b, 1514);
		ASSERT_EQ(0, xdp_attach_native(if_b, -1));
		ASSERT_EQ(0, wait_for_carrier(if_a));
		ASSERT_EQ(0, wait_for_carrier(if_b));
		both_ways(_metadata, &s, fd_a, fd_b, 100, 16);
		pv4_close(&s);
		close(fd_a);
		close(fd_b);
	}
}

/* It comes and goes under traffic, which the stack has afterwards. */
TEST_F_TIMEOUT(xsk, tx_alone_closed, 120)
{
	static char buf[BUF_SIZE];
	int fd_a, fd_b, i;
	struct pv4 s;
	pid_t pid;

	fd_a = plain_listener(_metadata, if_a);
	fd_b = plain_listener(_metadata, if_b);
	fill_packet(buf, 500, 0);
	pid = pv4_fork();
	ASSERT_LE(0, pid);
	while (!pid) {
		send(fd_a, buf, 500, MSG_DONTWAIT);
		usleep(100);
	}
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, tx_open(&s));
		while (!pv4_put(&s, buf, 500, 4096, 0))
			;
		ASSERT_EQ(0, pv4_kick(&s, MSG_DONTWAIT));
		/* Packets come in and go out. */
		EXPECT_LT(0, plain_recv(fd_a, buf, sizeof(buf), WAIT_MS));
		EXPECT_LT(0, plain_recv(fd_b, buf, sizeof(buf), WAIT_MS));
		if (i % 2)
			ASSERT_EQ(0, pv4_setint(s.fd, PACKET_ZEROCOPY, 0));
		pv4_close(&s);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ASSERT_EQ(0, wait_for_carrier(if_a));
	ASSERT_EQ(0, wait_for_carrier(if_b));
	drain(fd_a);
	drain(fd_b);
	ASSERT_EQ(0, tx_open(&s));
	both_ways(_metadata, &s, fd_a, fd_b, 500, 64);
	pv4_close(&s);
	EXPECT_FALSE(xdp_is_shown(if_b));
	close(fd_a);
	close(fd_b);
}

/* A queue of AF_XDP has one area. */
TEST_F_TIMEOUT(xsk, two_areas, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .no_status = true };
	unsigned int nr = pv4_min_descs();
	char *area = pv4_new_area(nr * 2048);
	int fd = pv4_socket();

	ASSERT_TRUE(area != MAP_FAILED);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, pv4_memreg(fd, area, nr * 2048, 2048, 0));
	ASSERT_EQ(0, port_open(&self->b, &cfg));
	munmap(self->b.s.map, self->b.s.map_len);
	self->b.s.map_len = 0;
	ASSERT_EQ(0, pv4_set_ring(self->b.s.fd, PACKET_TX_RING, -1, 0));
	ASSERT_EQ(0, pv4_set_ring(self->b.s.fd, PACKET_TX_RING, fd, nr));
	EXPECT_EQ(-EOPNOTSUPP, zc_set(&self->b, 1));
	EXPECT_FALSE(xdp_is_shown(if_b));
	close(fd);
}

/* Whatever a program posts, the driver gets a frame once. */
TEST_F_TIMEOUT(xsk, posted_twice, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1, .rx_empty = true };
	struct tpacket4_desc d;
	unsigned int i, got = 0;

	ASSERT_EQ(0, port_open(&self->b, &cfg));
	cfg = (struct zc_cfg) { .ifname = if_a, .n = 1 };
	ASSERT_EQ(0, port_open(&self->a, &cfg));
	for (i = 0; i < self->b.s.rx.size; i++)
		pv4_rx_post(&self->b.s, i % 3);
	ASSERT_EQ(0, zc_kick(&self->b));
	for (i = 0; i < 500; i++) {
		ASSERT_EQ(0, zc_send_seq(&self->a, 200, i));
		ASSERT_TRUE(zc_reap_all(&self->a, WAIT_MS));
		while (pv4_take(&self->b.s.rx, &d)) {
			EXPECT_EQ(0, d.error);
			EXPECT_GT(3U, d.idx);
			pv4_rx_post(&self->b.s, d.idx);
			got++;
		}
	}
	EXPECT_LT(0U, got);
	ASSERT_EQ(0, zc_set(&self->b, 0));
	/* every slot comes back */
	for (i = 0; i < self->b.s.rx.size; i++) {
		ASSERT_TRUE(pv4_take_wait(&self->b.s, &self->b.s.rx, &d,
					  WAIT_MS));
	}
}

/* The stack gets a copy of each packet. */
TEST_F_TIMEOUT(xsk, to_stack, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1, .to_stack = true };
	static char buf[BUF_SIZE];
	unsigned int i;
	int fd;

	ASSERT_EQ(0, port_open(&self->b, &cfg));
	cfg = (struct zc_cfg) { .ifname = if_a, .n = 1 };
	ASSERT_EQ(0, port_open(&self->a, &cfg));
	fd = plain_listener(_metadata, if_b);
	for (i = 0; i < 50; i++) {
		ASSERT_EQ(0, zc_send_seq(&self->a, 300, i));
		ASSERT_TRUE(packet_ok(buf, zc_recv(&self->b, buf, sizeof(buf),
						   WAIT_MS), 300, i));
		ASSERT_TRUE(packet_ok(buf, plain_recv(fd, buf, sizeof(buf),
						      WAIT_MS), 300, i));
	}
	EXPECT_TRUE(zc_reap_all(&self->a, WAIT_MS));
	EXPECT_TRUE(zc_books_balance(&self->b, NULL));
	close(fd);
}

/* The host keeps its packets, whatever has been posted. */
TEST_F_TIMEOUT(xsk, not_started, 300)
{
	struct zc_cfg cfg = {
		.ifname = if_b, .n = 1, .to_stack = true, .rx_empty = true,
	};
	int fd_a, fd_b;

	ASSERT_EQ(0, port_open(&self->b, &cfg));
	fd_a = plain_listener(_metadata, if_a);
	fd_b = plain_listener(_metadata, if_b);
	pass_dry(_metadata, &self->b, fd_a, fd_b, pv4_fast() ? 250 : 5000, true,
		 false);
	close(fd_a);
	close(fd_b);
}

/* Packets that are refused stand between others; slots keep their order. */
TEST_F_TIMEOUT(xsk, refused_packets, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };
	unsigned int i, n, refused = 0, len;
	char pkt[BUF_SIZE];
	struct tpacket4_desc d;

	ASSERT_EQ(0, port_open(&self->b, &cfg));
	cfg.ifname = if_a;
	ASSERT_EQ(0, port_open(&self->a, &cfg));
	for (n = 0; n < 20; n++) {
		fill_packet(pkt, 1600, n);
		for (i = 0; i < 30; i++) {
			len = i % 5 == 2 ? 16 : i % 7 == 3 ? 1600 : 100;
			ASSERT_EQ(0, zc_put(&self->a, pkt, len, 2048, 0));
			refused += len != 100;
		}
		ASSERT_EQ(0, zc_kick(&self->a));
		for (i = 0; i < 30; i++) {
			len = i % 5 == 2 ? 16 : i % 7 == 3 ? 1600 : 100;
			ASSERT_TRUE(zc_take_wait(&self->a, &self->a.s.tx, &d,
						 WAIT_MS));
			EXPECT_EQ(len == 16 ? EINVAL :
				  len == 1600 ? EMSGSIZE : 0, d.error);
			self->a.s.spare[self->a.s.nr_spare++] = d.idx;
		}
		for (i = 0; i < 30; i++) {
			if (i % 5 == 2 || i % 7 == 3)
				continue;
			ASSERT_EQ(100, zc_recv(&self->b, pkt, sizeof(pkt),
					       WAIT_MS));
		}
	}
	EXPECT_LT(0U, refused);
	EXPECT_TRUE(zc_books_balance(&self->a, NULL));
	EXPECT_TRUE(zc_books_balance(&self->b, NULL));
}

#define SUM_HEADROOM	64
#define SUM_PACKETS	240U

static int proto_of(unsigned int i)
{
	return i % 2 ? IPPROTO_UDP : IPPROTO_TCP;
}

/* Sends a packet with the request @m, and returns its error. */
static int send_request(struct zc *z, const struct tpacket4_meta *m,
			const char *pkt, unsigned int len, unsigned int piece)
{
	struct tpacket4_desc d;
	int error = 0;

	z->s.put = m;
	if (zc_put(z, pkt, len, piece, SUM_HEADROOM) || zc_kick(z))
		return -1;
	z->s.put = NULL;
	for (; len; len -= len < piece ? len : piece) {
		if (!zc_take_wait(z, &z->s.tx, &d, WAIT_MS))
			return -1;
		error = d.error;
		z->s.spare[z->s.nr_spare++] = d.idx;
	}
	return error;
}

/* Each is computed once, also if the driver has no descriptors left for the packet. */
TEST_F_TIMEOUT(xsk, checksums, 120)
{
	struct zc_cfg cfg = {
		.ifname = if_b, .n = 1, .headroom = SUM_HEADROOM, .meta = true,
		.rx_nr = 1024, .tx_nr = 1024,
	};
	unsigned int i, n, got, payload = 901, piece = 400;
	static char pkt[BUF_SIZE], buf[BUF_SIZE];
	struct tpacket4_meta m, gso;
	int proto, len, err;

	ASSERT_EQ(0, port_open(&self->b, &cfg));
	cfg.ifname = if_a;
	ASSERT_EQ(0, port_open(&self->a, &cfg));
	fill_ip4(pkt, IPPROTO_UDP, payload, 0);
	len = L4 + header_len(IPPROTO_UDP) + payload;
	m = csum_meta(IPPROTO_UDP);
	err = send_request(&self->a, &m, pkt, len, piece);
	if (err == EMSGSIZE) {
		TH_LOG("no packets of several frames");
		piece = 2048 - SUM_HEADROOM;
		err = send_request(&self->a, &m, pkt, len, piece);
	}
	ASSERT_EQ(0, err);
	ASSERT_EQ(len, zc_recv(&self->b, buf, sizeof(buf), WAIT_MS));
	EXPECT_TRUE(ip4_ok(buf, len, IPPROTO_UDP, payload, 0, 0));

	gso = gso_meta(IPPROTO_TCP, VIRTIO_NET_HDR_GSO_UDP, 500);
	for (n = 0; n < 4; n++) {
		for (i = 0; i < SUM_PACKETS; i++) {
			proto = proto_of(i);
			fill_ip4(pkt, proto, payload, i);
			m = csum_meta(proto);
			self->a.s.put = i % 10 == 4 ? &gso : &m;
			ASSERT_EQ(0, zc_put(&self->a, pkt,
					    L4 + header_len(proto) + payload,
					    piece, SUM_HEADROOM));
		}
		self->a.s.put = NULL;
		ASSERT_EQ(0, zc_kick(&self->a));
		ASSERT_TRUE(zc_reap_all(&self->a, WAIT_MS));
		/* QEMU's igb drops some of so many packets. */
		for (i = 0, got = 0; ; i++, got++) {
			len = zc_recv(&self->b, buf, sizeof(buf), 5 * QUIET_MS);
			if (len < 0)
				break;
			while (i < SUM_PACKETS &&
			       !ip4_ok(buf, len, proto_of(i), payload, 0, i))
				i++;
			ASSERT_GT(SUM_PACKETS, i) {
				TH_LOG("no packet is like the one after %u", got);
			}
		}
		EXPECT_LT(SUM_PACKETS / 4, got);
	}
	EXPECT_LT(0U, self->a.s.errors[EOPNOTSUPP]);
	EXPECT_EQ(0U, self->a.s.errors[EINVAL]);

	/* a sum of 0, which UDP has another value for */
	fill_ip4(pkt, IPPROTO_UDP, 100, 0);
	m = csum_meta(IPPROTO_UDP);
	put16(pkt + L4 + 8, 0);
	put16(pkt + L4 + 8, 0xffff - sum_up(pkt + L4, 108, 0));
	ASSERT_EQ(0, send_request(&self->a, &m, pkt, L4 + 108, piece));
	ASSERT_EQ(L4 + 108, zc_recv(&self->b, buf, sizeof(buf), WAIT_MS));
	EXPECT_EQ(0xffffU, get16(buf + L4 + check_at(IPPROTO_UDP)));
	EXPECT_TRUE(zc_books_balance(&self->a, NULL));
	EXPECT_TRUE(zc_books_balance(&self->b, NULL));
}

TEST_HARNESS_MAIN
