// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4: a blocking send can last for as long as a receiver wants. Nobody
 * else waits for it: no device and no namespace that is deleted, no listing of
 * sockets, no other user of the socket.
 *
 * v4g is the sender's device, v4h its peer in another network namespace. A bridge
 * there, and a pair of devices, bring the packets back to a second bridge, whose
 * other ports hold them, or not:
 *
 *	v4g - v4h | bridge | v4i - v4j | v4br | v4x, v4y
 */
#include "diag.h"
#include "task.h"
#include "zc.h"

#include <sys/stat.h>

#define PKT_LEN		3000		/* two frames, which are not copied */
#define NR_SENT		20

FIXTURE(blocked) {
	pid_t far, sender;
	struct zc z;
};

FIXTURE_VARIANT(blocked) {
	const char *hold[2];		/* whose queues hold the packets */
	bool defer;			/* NAPI of v4h does not run */
	bool small;			/* the send buffer */
	bool zerocopy;
};

/* in the qdisc of the sender's device */
FIXTURE_VARIANT_ADD(blocked, qdisc) { .hold = { "v4g" } };

/* in the queue of the veth, which the peer's NAPI empties */
FIXTURE_VARIANT_ADD(blocked, device) { .defer = true };

/* in the queue of another device */
FIXTURE_VARIANT_ADD(blocked, elsewhere) { .hold = { "v4x" } };

/* each packet in the queues of two other devices, which share its frames */
FIXTURE_VARIANT_ADD(blocked, twice) { .hold = { "v4x", "v4y" } };

/* waiting for the send buffer */
FIXTURE_VARIANT_ADD(blocked, buffer) { .hold = { "v4x" }, .small = true };

FIXTURE_VARIANT_ADD(blocked, zerocopy) { .defer = true, .zerocopy = true };

/* Runs @fn in the namespace of @pid. */
static int run_in(pid_t ns, int (*fn)(void))
{
	pid_t pid = pv4_fork();

	if (!pid)
		_exit(!!(enter_netns(ns) || fn()));
	return pid < 0 ? -1 : wait_for_exit(pid);
}

static int set_up_far(void)
{
	static const char no_ipv6[] =
		"/proc/sys/net/ipv6/conf/default/disable_ipv6";
	int err = write_file(no_ipv6, "1");

	err = err ? err : run_ip("link add v4br type bridge\n"
				 "link set v4br mtu 9000 up\n"
				 "link set v4h master v4br up\n"
				 "link set v4i master v4br up\n");
	/* so that the veth has NAPI */
	return err ? err : set_offload("v4h", ETHTOOL_SGRO, true);
}

static int far_is_ready(void)
{
	int err = wait_for_carrier("v4h");

	return err ? err : wait_for_carrier("v4i");
}

static int defer_napi(void)
{
	/* as many nanoseconds as the kernel's word size allows */
	return defer_irqs("v4h", "1000", sizeof(long) == 8 ? "100000000000" :
							     "4000000000");
}

static void set_up_path(struct __test_metadata *_metadata, pid_t far)
{
	ASSERT_EQ(0, add_pair("v4x", "v4xp", MTU));
	ASSERT_EQ(0, add_pair("v4y", "v4yp", MTU));
	ASSERT_EQ(0, add_veth("v4g", "v4h", MTU));
	ASSERT_EQ(0, add_veth("v4i", "v4j", MTU));
	ASSERT_EQ(0, run_ip("link set v4h netns %d\n"
			    "link set v4i netns %d\n"
			    "link add v4br type bridge\n"
			    "link set v4br mtu 9000 up\n"
			    "link set v4x master v4br\n"
			    "link set v4y master v4br\n"
			    "link set v4j master v4br up\n"
			    "link set v4g up\n", far, far));
	ASSERT_EQ(0, run_in(far, set_up_far));
	ASSERT_EQ(0, wait_for_carrier("v4g"));
	ASSERT_EQ(0, wait_for_carrier("v4j"));
	ASSERT_EQ(0, run_in(far, far_is_ready));
}

FIXTURE_SETUP(blocked)
{
	struct zc_cfg cfg = { .ifname = "v4g", .n = variant->zerocopy };
	int i, least = 2048;

	pv4_net_setup(_metadata);
	self->far = other_netns();
	ASSERT_LT(0, self->far);
	set_up_path(_metadata, self->far);
	ASSERT_EQ(0, zc_open(&self->z, &cfg));
	if (variant->small)
		ASSERT_EQ(0, setsockopt(self->z.s.fd, SOL_SOCKET, SO_SNDBUF,
					&least, sizeof(least)));
	if (variant->defer) {
		/* else the veth does without NAPI for packets of its kind */
		ASSERT_EQ(0, set_offload("v4g", ETHTOOL_STSO, false));
		ASSERT_EQ(0, run_in(self->far, defer_napi));
		/* this one starts the timer */
		ASSERT_EQ(0, zc_put_seq(&self->z, PKT_LEN, 0));
		ASSERT_LE(0, pv4_kick(&self->z.s, 0));
	}
	for (i = 0; i < 2 && variant->hold[i]; i++)
		ASSERT_EQ(0, hold_queue(variant->hold[i]));

	for (i = 0; i < NR_SENT; i++)
		ASSERT_EQ(0, zc_put_seq(&self->z, PKT_LEN, i));
	self->sender = pv4_fork();
	ASSERT_LE(0, self->sender);
	if (!self->sender)
		_exit(pv4_kick(&self->z.s, 0) < 0);
	ASSERT_EQ('S', wait_until_idle(self->sender));
	ASSERT_EQ(-EAGAIN, exit_within(self->sender, QUIET_MS)) {
		TH_LOG("it does not wait");
	}
}

FIXTURE_TEARDOWN(blocked)
{
	int i;

	kill(self->sender, SIGKILL);
	/* Packets hold their socket, and that the namespace with these queues. */
	for (i = 0; i < 2 && variant->hold[i]; i++)
		release_queue(variant->hold[i]);
	kill(self->far, SIGKILL);
	zc_close(&self->z);
}

/* ---- what others do ---- */

static int list_sockets(struct zc *z)
{
	struct stat st;
	struct diag d;
	int err;

	if (fstat(z->s.fd, &st))
		return -errno;
	err = diag_find(st.st_ino, &d);
	return err == -ENOENT ? 0 : err;	/* no packet_diag */
}

static int new_socket(struct zc *z)
{
	int fd = socket(AF_PACKET, SOCK_RAW, 0);

	(void)z;
	return fd < 0 ? -errno : close(fd);
}

/* refused to another process, but not before it has the lock */
static int map_rings(struct zc *z)
{
	return mmap(NULL, z->s.map_len, PROT_READ, MAP_SHARED, z->s.fd, 0) !=
	       MAP_FAILED || errno != EACCES;
}

static int remove_ring(struct zc *z)
{
	return pv4_set_ring(z->s.fd, PACKET_TX_RING, -1, 0) != -EBUSY;
}

static int set_option(struct zc *z)
{
	return pv4_setint(z->s.fd, PACKET_QDISC_BYPASS, 0);
}

static int read_stats(struct zc *z)
{
	struct tpacket_stats_v4 st;

	return pv4_stats(z->s.fd, &st);
}

static int kick(struct zc *z)
{
	int n = pv4_kick(&z->s, MSG_DONTWAIT);

	return n < 0 && n != -EAGAIN;
}

static int wait_writable(struct zc *z)
{
	return poll_for(z->s.fd, POLLOUT, 0) < 0;
}

static const struct {
	const char *name;
	int (*fn)(struct zc *z);
} others[] = {
	{ "packet_diag", list_sockets },
	{ "socket()", new_socket },
	{ "mmap()", map_rings },
	{ "PACKET_TX_RING", remove_ring },
	{ "PACKET_QDISC_BYPASS", set_option },
	{ "PACKET_STATISTICS", read_stats },
	{ "poll()", wait_writable },
	{ "sendto()", kick },
};

TEST_F_TIMEOUT(blocked, blocks_nobody, 180)
{
	unsigned int i;
	pid_t pid;

	for (i = 0; i < ARRAY_SIZE(others); i++) {
		pid = pv4_fork();
		ASSERT_LE(0, pid);
		if (!pid)
			_exit(!!others[i].fn(&self->z));
		EXPECT_EQ(0, exit_within(pid, WAIT_MS / 2)) {
			TH_LOG("%s", others[i].name);
			kill(pid, SIGKILL);
		}
	}
	EXPECT_EQ(-EAGAIN, exit_within(self->sender, 0)) {
		TH_LOG("they must not wake it");
	}
	kill(self->sender, SIGKILL);
	EXPECT_EQ(-SIGKILL, exit_within(self->sender, WAIT_MS));
}

/* The sender's device is gone. It cannot send the rest, but waits for the frames
 * that are elsewhere.
 */
static void expect_end(struct __test_metadata *_metadata,
		       struct _test_data_blocked *self,
		       const struct _fixture_variant_blocked *variant)
{
	const char *const *hold = variant->hold;
	int i;

	EXPECT_EQ(0, if_nametoindex("v4g"));
	if (!variant->small && hold[0] && !strcmp(hold[0], "v4x")) {
		EXPECT_EQ(-EAGAIN, exit_within(self->sender, QUIET_MS));
		for (i = 0; i < 2 && hold[i]; i++)
			EXPECT_EQ(0, release_queue(hold[i]));
	}
	/* it had sent something, or, in zero-copy mode, ENETDOWN ends it */
	EXPECT_LE(0, exit_within(self->sender, WAIT_MS));
}

TEST_F_TIMEOUT(blocked, delete_device, 180)
{
	pid_t pid = pv4_fork();

	ASSERT_LE(0, pid);
	if (!pid)
		_exit(!!run_ip("link del v4g\n"));
	EXPECT_EQ(0, exit_within(pid, WAIT_MS)) {
		TH_LOG("ip link del waits for it");
	}
	expect_end(_metadata, self, variant);
}

/* Deletes the namespace of a process that keeps it alive. Returns whether the
 * device @name, whose peer was there, is deleted, too.
 */
static bool delete_netns(pid_t pid, const char *name)
{
	uint64_t end = now_ms() + 2 * WAIT_MS;

	if (kill(pid, SIGKILL) || wait_for_exit(pid) != -SIGKILL)
		return false;
	while (if_nametoindex(name) && now_ms() < end)
		usleep(1000);
	return !if_nametoindex(name);
}

/* The peer is deleted with its namespace, and the device with it. One worker
 * deletes all namespaces, so the next one shows that it is not waiting.
 */
TEST_F_TIMEOUT(blocked, delete_namespace, 180)
{
	pid_t next = other_netns();

	ASSERT_LT(0, next);
	ASSERT_EQ(0, add_veth("v4k", "v4l", MTU));
	ASSERT_EQ(0, run_ip("link set v4l netns %d\n", next));
	EXPECT_TRUE(delete_netns(self->far, "v4g"));
	EXPECT_TRUE(delete_netns(next, "v4k"));
	expect_end(_metadata, self, variant);
}

TEST_HARNESS_MAIN
