// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4, zero-copy mode: operations on a device whose queue is in use,
 * under load. The queue keeps its frames through most of them; when the device
 * is removed, they are returned.
 */
#include "zc_life.h"

/* ---- operations on the device ---- */

static int op_down_up(int i)
{
	const char *name = i & 1 ? if_a : if_b;
	int err = set_up(name, false);

	usleep(1000);
	return err ? err : set_up(name, true);
}

static int op_mtu(int i)
{
	static const int mtu[] = { 68, 1500, 2000, 576, 9000 };

	return set_mtu(i & 1 ? if_a : if_b, mtu[i / 2 % 5]);
}

static int op_channels(int i)
{
	int nr = i / 2 & 1 ? 1 : 2;

	return set_channels(i & 1 ? if_a : if_b, nr, nr);
}

static int op_gro(int i)
{
	return set_offload(i & 1 ? if_a : if_b, ETHTOOL_SGRO, !(i / 2 & 1));
}

static int pass, kernel;		/* XDP programs */

static int load_programs(void)
{
	int err;

	pass = xdp_const(XDP_PASS, BPF_F_XDP_HAS_FRAGS);
	kernel = xdp_const(XDP_PASS_TO_KERNEL, BPF_F_XDP_HAS_FRAGS);
	err = xdp_keep(pass);
	if (!err)
		err = xdp_keep(kernel);
	/* generic programs also modify kernel code */
	return err ? err : xdp_attach("lo", pass, XDP_FLAGS_SKB_MODE);
}

/* Native programs at both ends, and none. Generic ones, which would not see the
 * packets of the queue, are refused.
 */
static int op_xdp(int i)
{
	const char *name = i & 1 ? if_a : if_b;
	int err;

	switch (i / 2 % 4) {
	case 0:
		return xdp_attach_native(name, pass);
	case 1:
		return xdp_attach_native(name, kernel);
	case 2:
		err = xdp_attach_native(name, -1);
		if (err)
			return err;
		err = xdp_attach(name, pass, XDP_FLAGS_SKB_MODE);
		if (err == -EBUSY)
			return 0;
		return err ? err : -EEXIST;
	default:
		return xdp_attach_native(name, pass);
	}
}

static int op_promisc_and_rename(int i)
{
	int err;

	err = run_ip("link set %s promisc on\n"
		     "link set %s name v4x\nlink set v4x name %s\n"
		     "link set %s promisc off\n", if_b, if_b, if_b, if_b);
	return err ? -EIO : 0;
}

/* All operations, in varying order */
static int op_any(int i)
{
	static int n[5];
	static uint32_t x = 99;

	x = x * 1664525 + 1013904223;
	switch (x >> 24 & 7) {
	case 0:
		return op_down_up(i);
	case 1:
		return op_mtu(n[1]++);
	case 2:
		return op_channels(n[2]++);
	case 3:
		return op_gro(n[3]++);
	default:
		return op_xdp(n[4]++);
	}
}

FIXTURE(op) {
	struct pair p;
};

FIXTURE_VARIANT(op) {
	int (*op)(int i);
	int rounds;
	bool may_fail;			/* in states left by others */
};

FIXTURE_VARIANT_ADD(op, down_up) { .op = op_down_up, .rounds = 20 };

FIXTURE_VARIANT_ADD(op, mtu) { .op = op_mtu, .rounds = 40 };

FIXTURE_VARIANT_ADD(op, channels) { .op = op_channels, .rounds = 40 };

FIXTURE_VARIANT_ADD(op, gro) { .op = op_gro, .rounds = 40 };

FIXTURE_VARIANT_ADD(op, xdp) { .op = op_xdp, .rounds = 60 };

FIXTURE_VARIANT_ADD(op, rename) {
	.op = op_promisc_and_rename, .rounds = 5,
};

FIXTURE_VARIANT_ADD(op, any) {
	.op = op_any, .rounds = 100, .may_fail = true,
};

FIXTURE_SETUP(op)
{
	pair_open(_metadata, &self->p);
	ASSERT_EQ(0, load_programs());
}

FIXTURE_TEARDOWN(op)
{
	pair_close(&self->p);
}

/* Restores the initial state. */
static void op_reset(void)
{
	static const char * const name[] = { if_a, if_b };
	int i;

	for (i = 0; i < 2; i++) {
		xdp_attach(name[i], -1, XDP_FLAGS_SKB_MODE);
		xdp_attach_native(name[i], -1);
		set_offload(name[i], ETHTOOL_SGRO, false);
		set_mtu(name[i], MTU);
		set_up(name[i], true);
	}
}

/* One operation after another, under load, while @poll processes the queue */
static void do_rounds(struct __test_metadata *_metadata, struct pair *p,
		      const struct _fixture_variant_op *op, int rounds,
		      int (*poll)(int fd))
{
	unsigned int failed = 0;
	int i, err;

	start_load(_metadata, p);
	ASSERT_TRUE(flows(p));
	for (i = 0; i < rounds; i++) {
		err = op->op(i);
		failed += !!err;
		if (!op->may_fail)
			ASSERT_EQ(0, err);
		ASSERT_LE(0, receive(p, 2));
		ASSERT_EQ(1, zc_get(&p->b));
		ASSERT_EQ(0, poll(p->b.s.fd));
		/* each socket gets ENETDOWN once */
		socket_error(p->b.s.fd);
	}
	op_reset();
	EXPECT_GE(rounds / 2, (int)failed);
	EXPECT_TRUE(flows(p));
	stop_load(_metadata, p);
	expect_intact(_metadata, p);
}

static int no_poll(int fd)
{
	(void)fd;
	return 0;
}

TEST_F_TIMEOUT(op, under_load, 300)
{
	do_rounds(_metadata, &self->p, variant,
		  variant->rounds / (pv4_fast() ? 2 : 1), no_poll);
}

static int poll_by_sendto(int fd)
{
	if (!sendto(fd, NULL, 0, MSG_DONTWAIT, NULL, 0) || errno == ENETDOWN)
		return 0;
	return -errno;
}

/* The same while the program busy polls the queue */
TEST_F_TIMEOUT(op, under_load_busy_polling, 300)
{
	ASSERT_EQ(0, set_sockopt(self->p.b.s.fd, SO_BUSY_POLL, 50));
	do_rounds(_metadata, &self->p, variant, variant->rounds / 4,
		  poll_by_sendto);
}

/* ---- removal ---- */

/* All frames are returned with the right error; the socket can be used again.
 */
static void expect_gone(struct __test_metadata *_metadata, struct zc *z)
{
	EXPECT_TRUE(poll_for(z->s.fd, POLLIN, WAIT_MS) & POLLERR);
	EXPECT_EQ(ENETDOWN, socket_error(z->s.fd));
	/* some may still have been returned with packets */
	EXPECT_LE(0, zc_all_back(z, ENETDOWN, WAIT_MS));
	EXPECT_TRUE(zc_books_closed(z));
	EXPECT_EQ(0, zc_get(z));
	zc_refill(z);
}

/* Under load, either end is deleted or moved, or its namespace is deleted. */
FIXTURE(gone) {
	struct pair p;
};

FIXTURE_VARIANT(gone) {
	const char *what;		/* ip(8): with a process in %d */
	bool b_stays;
};

FIXTURE_VARIANT_ADD(gone, del_a) { .what = "link del v4a\n" };

FIXTURE_VARIANT_ADD(gone, del_b) { .what = "link del v4b\n" };

FIXTURE_VARIANT_ADD(gone, move_a) {
	.what = "link set v4a netns %d\n", .b_stays = true,
};

FIXTURE_VARIANT_ADD(gone, move_b) { .what = "link set v4b netns %d\n" };

FIXTURE_SETUP(gone)
{
	pair_open(_metadata, &self->p);
}

FIXTURE_TEARDOWN(gone)
{
	pair_close(&self->p);
}

TEST_F_TIMEOUT(gone, under_load, 120)
{
	int i, rounds = pv4_fast() ? 2 : 6;
	struct zc *b = &self->p.b;
	uint64_t start;
	pid_t ns;

	for (i = 0; i < rounds; i++) {
		if (i) {
			/* the same socket, another device of that name */
			ASSERT_EQ(0, add_pair(if_a, if_b, MTU));
			ASSERT_EQ(0, open_loose(&self->p.a, if_a));
			ASSERT_EQ(0, pv4_bind(b->s.fd, if_b, ETH_P_ALL));
			ASSERT_EQ(0, zc_set(b, 1));
			self->p.next = 0;
			self->p.load->sent = 0;
		}
		ns = other_netns();
		ASSERT_LT(0, ns);
		start_load(_metadata, &self->p);
		ASSERT_TRUE(flows(&self->p));
		start = now_ms();
		ASSERT_EQ(0, run_ip(variant->what, ns));
		/* No reference to the device is left. The kernel warns after
		 * ten seconds; this waits longer, as the machine may be slow.
		 */
		EXPECT_GT(60000U, now_ms() - start);
		if (variant->b_stays) {
			EXPECT_EQ(1, zc_get(b));
			EXPECT_LE(0, receive(&self->p, 20));
			EXPECT_TRUE(zc_books_balance(b, NULL));
			/* deleted, with its peer */
			ASSERT_EQ(0, run_ip("link del %s\n", if_b));
		}
		expect_gone(_metadata, b);
		if (i & 1) {
			kill(self->p.pid, SIGKILL);
			EXPECT_EQ(-SIGKILL, wait_for_exit(self->p.pid));
		} else {
			stop_load(_metadata, &self->p);
		}
		kill(ns, SIGKILL);
		EXPECT_EQ(-SIGKILL, wait_for_exit(ns));
		/* Deleting the end in the removed namespace deletes this end,
		 * maybe just before ip(8) does.
		 */
		if (if_nametoindex(if_a) && run_ip("link del %s\n", if_a))
			ASSERT_EQ(0, if_nametoindex(if_a));
	}
}

/* The device is removed at any time during close(). */
TEST_F_TIMEOUT(life, close_while_unregistered, 120)
{
	unsigned int i, rounds = pv4_fast() ? 15 : 60, took = 30, x = 815;

	for (i = 0; i < rounds; i++) {
		uint64_t start = now_ms();
		pid_t pid = pv4_fork();

		ASSERT_LE(0, pid);
		if (!pid) {
			close(self->p.b.s.fd);
			_exit(run_ip("link del %s\n", if_a) ? 1 : 0);
		}
		x = x * 1664525 + 1013904223;
		usleep(took * (x >> 16) * 1000ULL >> 16);
		zc_close(&self->p.b);
		EXPECT_EQ(0, wait_for_exit(pid));
		took = now_ms() - start;

		zc_close(&self->p.a);
		pv4_net_setup(_metadata);
		ASSERT_EQ(0, open_loose(&self->p.a, if_a));
		ASSERT_EQ(0, open_loose(&self->p.b, if_b));
	}
}

/* The namespace is deleted while its devices are in use. */
TEST_F(life, netns_deleted)
{
	int i;

	for (i = 0; i < 5; i++) {
		self->p.next = 0;
		self->p.load->sent = 0;
		start_load(_metadata, &self->p);
		ASSERT_LE(0, receive(&self->p, 50));
		ASSERT_EQ(0, unshare(CLONE_NEWNET));
		kill(self->p.pid, SIGKILL);
		EXPECT_EQ(-SIGKILL, wait_for_exit(self->p.pid));
		zc_close(&self->p.b);
		pv4_net_setup(_metadata);
		ASSERT_EQ(0, open_loose(&self->p.a, if_a));
		ASSERT_EQ(0, open_loose(&self->p.b, if_b));
	}
}

TEST_HARNESS_MAIN
