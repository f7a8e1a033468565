// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4, zero-copy mode: XDP redirects from and to the queue (cpumap,
 * devmap, AF_XDP on the same queue and on the peer), multi-frame packets and
 * programs that do not support fragments, and XDP_PASS_TO_KERNEL on other
 * devices.
 */
#include "xdp.h"
#include "xsk.h"

#include <linux/if_tun.h>

#define XDP_MTU		1500	/* small for programs without frags */

static const char if_c[] = "v4c", if_d[] = "v4d";	/* another pair */

FIXTURE(target) {
	struct zc a, b;			/* zero-copy on if_a, if_b */
	struct xdp_keyed x;
	char *buf;
};

FIXTURE_SETUP(target)
{
	struct zc_cfg cfg = { .ifname = if_a, .n = 1 };

	pv4_net_setup(_metadata);
	ASSERT_EQ(0, set_mtu(if_a, XDP_MTU));
	ASSERT_EQ(0, set_mtu(if_b, XDP_MTU));
	ASSERT_EQ(0, zc_open(&self->a, &cfg));
	cfg.ifname = if_b;
	ASSERT_EQ(0, zc_open(&self->b, &cfg));
	self->buf = malloc(BUF_SIZE);
	ASSERT_TRUE(!!self->buf);
}

FIXTURE_TEARDOWN(target)
{
	zc_close(&self->a);
	zc_close(&self->b);
	free(self->buf);
}

static void use_target(struct __test_metadata *_metadata,
		       struct _test_data_target *self, int map)
{
	ASSERT_EQ(0, xdp_keyed_load(&self->x, map, 0));
	ASSERT_EQ(0, xdp_set_action(&self->x, 0, XDP_PASS));
	ASSERT_EQ(0, xdp_set_action(&self->x, 4, XDP_REDIRECT));
	ASSERT_EQ(0, xdp_attach_native(if_b, self->x.prog));
}

/* To the stack on another CPU. */
TEST_F(target, cpumap)
{
	int map = bpf_map(BPF_MAP_TYPE_CPUMAP, 4, 1), fd, i;
	__u32 size = 192;

	ASSERT_LE(0, map);
	ASSERT_EQ(0, bpf_set(map, 0, &size));
	use_target(_metadata, self, map);
	fd = plain_listener(_metadata, if_b);
	for (i = 0; i < 300; i++) {
		ASSERT_EQ(0, zc_send_seq(&self->a, 100 + i, key_seq(4, i)));
		ASSERT_TRUE(packet_ok(self->buf,
				      plain_recv(fd, self->buf, BUF_SIZE,
						 WAIT_MS), 100 + i,
				      key_seq(4, i)));
		ASSERT_EQ(0, zc_send_seq(&self->a, 100 + i, key_seq(0, i)));
		ASSERT_TRUE(packet_ok(self->buf,
				      zc_recv(&self->b, self->buf, BUF_SIZE,
					      WAIT_MS), 100 + i,
				      key_seq(0, i)));
	}
	EXPECT_TRUE(zc_reap_all(&self->a, WAIT_MS));
	EXPECT_TRUE(zc_books_balance(&self->a, NULL));
	EXPECT_TRUE(zc_books_balance(&self->b, NULL));
	close(fd);
}

/* A program is detached while NAPI runs it and redirects packets. */
TEST_F_TIMEOUT(target, detach_while_redirecting, 120)
{
	int map = bpf_map(BPF_MAP_TYPE_DEVMAP, 4, 1), ifindex, i, n;
	int rounds = pv4_fast() ? 100 : 500;
	struct zc_cfg cfg = { .ifname = if_a, .n = 1 };
	uint32_t seq = 0;
	uint64_t end;
	pid_t pid;

	ASSERT_LE(0, map);
	ASSERT_EQ(0, add_pair(if_c, if_d, XDP_MTU));
	ASSERT_EQ(0, xdp_attach_native(if_d, xdp_const(XDP_DROP, 0)));
	ifindex = if_nametoindex(if_c);
	ASSERT_EQ(0, bpf_set(map, 0, &ifindex));
	use_target(_metadata, self, map);
	ASSERT_EQ(0, xdp_keep(self->x.prog));

	pid = pv4_fork();
	ASSERT_LE(0, pid);
	while (!pid) {
		if (zc_put_seq(&self->a, 100, key_seq(4, seq)) || !(++seq % 64))
			zc_kick(&self->a);
	}
	zc_close(&self->a);
	for (end = now_ms() + WAIT_MS; now_ms() < end; usleep(1000)) {
		if (bpf_get(self->x.counts, 4))
			break;
	}
	EXPECT_LT(0U, bpf_get(self->x.counts, 4));
	for (i = 0; i < rounds; i++) {
		ASSERT_EQ(0, xdp_attach_native(if_b, -1));
		for (n = 0; n < 64; n++)
			zc_recv(&self->b, self->buf, BUF_SIZE, 0);
		ASSERT_EQ(0, xdp_attach_native(if_b, self->x.prog));
	}
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(-SIGKILL, wait_for_exit(pid));

	ASSERT_EQ(0, zc_open(&self->a, &cfg));
	while (zc_recv(&self->b, self->buf, BUF_SIZE, QUIET_MS) > 0)
		;
	ASSERT_EQ(0, zc_send_seq(&self->a, 100, key_seq(0, 1)));
	EXPECT_TRUE(packet_ok(self->buf,
			      zc_recv(&self->b, self->buf, BUF_SIZE, WAIT_MS),
			      100, key_seq(0, 1)));
	EXPECT_TRUE(zc_books_balance(&self->b, NULL));
}

/* An AF_XDP socket on the queue of the zero-copy socket: the program selects
 * the socket for each packet.
 */
TEST_F(target, af_xdp_redirect)
{
	int map = bpf_map(BPF_MAP_TYPE_XSKMAP, 4, 1), i, err;
	struct xsk x;

	err = xsk_open(&x, if_b);
	if (x.fd < 0)
		SKIP(return, "needs CONFIG_XDP_SOCKETS: %s", strerror(-err));
	ASSERT_EQ(0, err);
	ASSERT_LE(0, map);
	ASSERT_EQ(0, bpf_set(map, 0, &x.fd));
	use_target(_metadata, self, map);
	for (i = 0; i < 300; i++) {
		ASSERT_EQ(0, zc_send_seq(&self->a, 100 + i, key_seq(4, i)));
		ASSERT_TRUE(packet_ok(self->buf,
				      xsk_recv(&x, self->buf, WAIT_MS),
				      100 + i, key_seq(4, i)));
		ASSERT_EQ(0, zc_send_seq(&self->a, 100 + i, key_seq(0, i)));
		ASSERT_TRUE(packet_ok(self->buf,
				      zc_recv(&self->b, self->buf, BUF_SIZE,
					      WAIT_MS), 100 + i,
				      key_seq(0, i)));
	}
	EXPECT_EQ(-EAGAIN, xsk_recv(&x, self->buf, QUIET_MS));
	EXPECT_TRUE(zc_reap_all(&self->a, WAIT_MS));
	EXPECT_TRUE(zc_books_balance(&self->b, NULL));
	close(x.fd);
}

/* AF_XDP on the peer sends to the zero-copy socket. */
TEST_F(target, af_xdp_tx)
{
	struct xsk x;
	int i, err;

	zc_close(&self->a);
	err = xsk_open(&x, if_a);
	if (x.fd < 0)
		SKIP(return, "needs CONFIG_XDP_SOCKETS: %s", strerror(-err));
	ASSERT_EQ(0, err);
	for (i = 0; i < 300; i++) {
		fill_packet(self->buf, 100 + i, i);
		ASSERT_EQ(0, xsk_send(&x, self->buf, 100 + i));
		ASSERT_TRUE(packet_ok(self->buf,
				      zc_recv(&self->b, self->buf, BUF_SIZE,
					      WAIT_MS), 100 + i, i));
	}
	EXPECT_TRUE(zc_books_balance(&self->b, NULL));
	close(x.fd);
}

/* Packets that XDP of another device redirects to if_a are received on if_b's
 * ring.
 */
TEST_F(target, redirect_to_zc)
{
	int map = bpf_map(BPF_MAP_TYPE_DEVMAP, 4, 1), ifindex, fd, i, round;

	ASSERT_LE(0, map);
	ASSERT_EQ(0, add_pair(if_c, if_d, XDP_MTU));
	ifindex = if_nametoindex(if_a);
	ASSERT_EQ(0, bpf_set(map, 0, &ifindex));
	ASSERT_EQ(0, xdp_keyed_load(&self->x, map, 0));
	ASSERT_EQ(0, xdp_set_action(&self->x, 4, XDP_REDIRECT));
	ASSERT_EQ(0, xdp_attach_native(if_d, self->x.prog));
	fd = plain_socket(_metadata, if_c, 0);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < 300; i++) {
			fill_packet(self->buf, 100 + i, key_seq(4, i));
			ASSERT_EQ(100 + i, send(fd, self->buf, 100 + i, 0));
			ASSERT_TRUE(packet_ok(self->buf,
					      zc_recv(&self->b, self->buf,
						      BUF_SIZE, WAIT_MS),
					      100 + i, key_seq(4, i)));
		}
		/* in the second round, if_b has a program, too */
		ASSERT_EQ(0, xdp_attach_native(if_b, xdp_const(XDP_PASS, 0)));
	}
	EXPECT_TRUE(zc_books_balance(&self->b, NULL));
	close(fd);
}

/* Packets of several frames are dropped if the program does not support
 * fragments.
 */
TEST_F(target, too_long_without_frags)
{
	unsigned int i;
	__s64 drops;

	ASSERT_EQ(0, set_mtu(if_a, 3000));
	ASSERT_EQ(0, set_mtu(if_b, 3000));
	use_target(_metadata, self, bpf_map(BPF_MAP_TYPE_DEVMAP, 4, 1));
	drops = ethtool_stat(if_b, "rx_queue_0_drops");
	ASSERT_LE(0, drops);
	for (i = 0; i < 300; i++) {
		ASSERT_EQ(0, zc_send_seq(&self->a, 2500, key_seq(0, i)));
		ASSERT_EQ(0, zc_send_seq(&self->a, 1700, key_seq(0, i)));
		ASSERT_TRUE(packet_ok(self->buf,
				      zc_recv(&self->b, self->buf, BUF_SIZE,
					      WAIT_MS), 1700, key_seq(0, i)));
	}
	EXPECT_EQ(300U, bpf_get(self->x.counts, 0));
	EXPECT_EQ(-EAGAIN, zc_recv(&self->b, self->buf, BUF_SIZE, QUIET_MS));
	EXPECT_EQ(drops + 300, ethtool_stat(if_b, "rx_queue_0_drops"));
	EXPECT_TRUE(zc_reap_all(&self->a, WAIT_MS));
	EXPECT_EQ(0U, self->a.s.errors[EINVAL] + self->a.s.errors[EMSGSIZE]);
	EXPECT_TRUE(zc_books_balance(&self->b, NULL));
	/* without a program they are received */
	ASSERT_EQ(0, xdp_attach_native(if_b, -1));
	ASSERT_EQ(0, zc_send_seq(&self->a, 2500, 1));
	EXPECT_TRUE(packet_ok(self->buf,
			      zc_recv(&self->b, self->buf, BUF_SIZE, WAIT_MS),
			      2500, 1));
}

/* On another queue XDP_PASS_TO_KERNEL is XDP_PASS, on this one it is not. */
TEST_F(target, other_queue)
{
	int prog = xdp_const(XDP_PASS_TO_KERNEL, 0), fd, i;
	struct zc_cfg cfg = { .ifname = if_a, .n = 2 };
	struct zc a2;

	ASSERT_LE(0, prog);
	ASSERT_EQ(0, two_channels());
	ASSERT_EQ(0, zc_open(&a2, &cfg));
	ASSERT_EQ(0, xdp_attach_native(if_b, prog));
	fd = plain_listener(_metadata, if_b);
	for (i = 0; i < 100; i++) {
		struct zc *z = i & 1 ? &a2 : &self->a;

		ASSERT_EQ(0, zc_send_seq(z, 100 + i, i));
		ASSERT_TRUE(packet_ok(self->buf,
				      plain_recv(fd, self->buf, BUF_SIZE,
						 WAIT_MS), 100 + i, i));
	}
	EXPECT_EQ(-EAGAIN, zc_recv(&self->b, self->buf, BUF_SIZE, QUIET_MS));
	zc_close(&a2);
	close(fd);
}

/* Generic XDP programs run in the stack, would not see the packets of the queue,
 * and are refused.
 */
TEST_F(target, generic)
{
	unsigned int i;

	ASSERT_EQ(0, xdp_keyed_load(&self->x, bpf_map(BPF_MAP_TYPE_DEVMAP, 4,
						      1), 0));
	for (i = 0; i < NR_KEYS; i++)
		ASSERT_EQ(0, xdp_set_action(&self->x, i, XDP_DROP));
	ASSERT_EQ(-EBUSY, xdp_attach(if_b, self->x.prog, XDP_FLAGS_SKB_MODE));
	for (i = 0; i < 300; i++) {
		ASSERT_EQ(0, zc_send_seq(&self->a, 100 + i, key_seq(0, i)));
		ASSERT_TRUE(packet_ok(self->buf,
				      zc_recv(&self->b, self->buf, BUF_SIZE,
					      WAIT_MS), 100 + i,
				      key_seq(0, i)));
	}
	EXPECT_EQ(0U, bpf_get(self->x.counts, 0));
	/* after zero-copy mode it sees them */
	ASSERT_EQ(0, zc_set(&self->b, 0));
	ASSERT_EQ(0, xdp_attach(if_b, self->x.prog, XDP_FLAGS_SKB_MODE));
	ASSERT_LE(0, zc_all_back(&self->b, ECANCELED, WAIT_MS));
	zc_refill(&self->b);
	ASSERT_EQ(0, zc_send_seq(&self->a, 100, key_seq(0, i)));
	ASSERT_TRUE(zc_reap_all(&self->a, WAIT_MS));
	EXPECT_EQ(-EAGAIN, zc_recv(&self->b, self->buf, BUF_SIZE, QUIET_MS));
	EXPECT_EQ(1U, bpf_get(self->x.counts, 0));
}

/* ---- XDP_PASS_TO_KERNEL on other devices ---- */

/* Without zero-copy mode, the action is XDP_PASS. */
TEST(pass_to_kernel_other_devices)
{
	int prog, in, out, lo, i;
	char buf[300];

	pv4_net_setup(_metadata);
	ASSERT_EQ(0, set_mtu(if_a, XDP_MTU));
	prog = xdp_const(XDP_PASS_TO_KERNEL, 0);
	ASSERT_LE(0, prog);
	/* veth: native, then generic */
	out = plain_socket(_metadata, if_a, 0);
	in = plain_listener(_metadata, if_b);
	for (i = 0; i < 20; i++) {
		if (!i)
			ASSERT_EQ(0, xdp_attach_native(if_b, prog));
		if (i == 10) {
			ASSERT_EQ(0, xdp_attach_native(if_b, -1));
			ASSERT_EQ(0, xdp_attach(if_b, prog,
						XDP_FLAGS_SKB_MODE));
		}
		fill_packet(buf, 300, i);
		ASSERT_EQ(300, send(out, buf, 300, 0));
		EXPECT_TRUE(packet_ok(buf, plain_recv(in, buf, 300, WAIT_MS),
				      300, i));
	}
	close(in);
	close(out);
	/* loopback, generic */
	ASSERT_EQ(0, xdp_attach("lo", prog, XDP_FLAGS_SKB_MODE));
	lo = plain_listener(_metadata, "lo");
	for (i = 0; i < 10; i++) {
		fill_packet(buf, 300, i);
		ASSERT_EQ(300, send(lo, buf, 300, 0));
		EXPECT_TRUE(packet_ok(buf, plain_recv(lo, buf, 300, WAIT_MS),
				      300, i));
	}
	close(lo);
}

/* native mode of tun */
TEST(pass_to_kernel_on_tap)
{
	struct ifreq ifr = { .ifr_flags = IFF_TAP | IFF_NO_PI };
	static const char if_t[] = "v4tap";
	int prog, tap, in, i;
	char buf[300];

	pv4_net_setup(_metadata);
	tap = open("/dev/net/tun", O_RDWR);
	if (tap < 0)
		SKIP(return, "no /dev/net/tun: %s", strerror(errno));
	prog = xdp_const(XDP_PASS_TO_KERNEL, 0);
	ASSERT_LE(0, prog);
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", if_t);
	ASSERT_EQ(0, ioctl(tap, TUNSETIFF, &ifr));
	ASSERT_EQ(0, set_up(if_t, true));
	ASSERT_EQ(0, xdp_attach_native(if_t, prog));
	in = plain_listener(_metadata, if_t);
	for (i = 0; i < 10; i++) {
		fill_packet(buf, 300, i);
		ASSERT_EQ(300, write(tap, buf, 300));
		EXPECT_TRUE(packet_ok(buf, plain_recv(in, buf, 300, WAIT_MS),
				      300, i));
	}
	close(in);
	close(tap);
}

/* Its number follows XDP_REDIRECT, and test_run returns it. */
TEST(pass_to_kernel_uapi)
{
	char pkt[64] = { 0 };
	union bpf_attr attr = { 0 };
	int prog = xdp_const(XDP_PASS_TO_KERNEL, 0);

	EXPECT_EQ(5, XDP_PASS_TO_KERNEL);
	ASSERT_LE(0, prog);
	attr.test.prog_fd = prog;
	attr.test.data_in = (uintptr_t)pkt;
	attr.test.data_size_in = sizeof(pkt);
	ASSERT_EQ(0, bpf_call(BPF_PROG_TEST_RUN, &attr));
	EXPECT_EQ((unsigned int)XDP_PASS_TO_KERNEL, attr.test.retval);
}

/* With several queues, only those of zero-copy queue pairs have NAPI. XDP_TX
 * must find one from each CPU.
 */
TEST(xdp_tx_on_each_cpu)
{
	struct zc_cfg acfg = { .ifname = "v4q", .n = 1 };
	struct zc_cfg bcfg = { .ifname = "v4r", .n = 1 };
	static const char queues[] = "numrxqueues 2 numtxqueues 2";
	long i, cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct zc a, b;
	char buf[100];
	int prog;

	if (cpus < 2)
		SKIP(return, "one CPU");
	pv4_net_setup(_metadata);
	ASSERT_EQ(0, run_ip("link add v4q mtu %d %s type veth peer name v4r mtu %d %s",
			    XDP_MTU, queues, XDP_MTU, queues));
	ASSERT_EQ(0, set_up("v4q", true));
	ASSERT_EQ(0, set_up("v4r", true));
	ASSERT_EQ(0, wait_for_carrier("v4q"));
	ASSERT_EQ(0, wait_for_carrier("v4r"));
	ASSERT_EQ(0, zc_open(&a, &acfg));
	ASSERT_EQ(0, zc_open(&b, &bcfg));
	prog = xdp_const(XDP_TX, 0);
	ASSERT_LE(0, prog);
	ASSERT_EQ(0, xdp_attach_native("v4r", prog));
	for (i = 0; i < cpus; i++) {
		pin_to_cpu(i);
		ASSERT_EQ(0, zc_send_seq(&a, sizeof(buf), i));
		EXPECT_TRUE(packet_ok(buf, zc_recv(&a, buf, sizeof(buf),
						   WAIT_MS), sizeof(buf), i)) {
			TH_LOG("CPU %ld", i);
		}
	}
	close(prog);
	zc_close(&a);
	zc_close(&b);
}

TEST_HARNESS_MAIN
