// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4, zero-copy mode: concurrent setup. Threads enable and disable
 * the mode on two sockets that use the same queue pairs, while others change
 * rings, bind to another device, send, poll, close, and take the devices down
 * and up. The kernel log shows most bugs. The test checks that only documented
 * errors occur, and that everything works afterwards.
 */
#include "racer.h"
#include "xdp.h"

#define SOCKETS		2

enum race_op {
	OP_ZEROCOPY, OP_COPY, OP_BIND, OP_RX_RING, OP_TX_RING, OP_MMAP, OP_KICK,
	OP_WAIT, OP_POLL, OP_STATS, OP_VERSION, OP_REOPEN, OP_UP_DOWN, OP_MTU,
	OP_XDP, OP_CHANNELS,
	NR_OPS
};

static const char * const op_names[NR_OPS] = {
	"zero-copy", "copy", "bind", "rx ring", "tx ring", "mmap", "kick",
	"wait", "poll", "statistics", "version", "close", "up and down", "mtu",
	"xdp", "channels",
};

static int race_fds[SOCKETS];	/* always these numbers */
static int race_progs[2];

static int race_wait(int fd)
{
	struct timeval tv = { .tv_usec = 2000 };

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	return sendto(fd, NULL, 0, 0, NULL, 0) < 0 ? -errno : 0;
}

static int race_step(struct race *r, unsigned int op, unsigned int *seed)
{
	unsigned int nr = pv4_min_descs() << (rand_r(seed) % 2);
	const char *name = rand_r(seed) % 2 ? if_a : if_b;
	int fd = race_fds[rand_r(seed) % SOCKETS], err;
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLOUT };
	struct tpacket_stats_v4 st;
	socklen_t len = sizeof(st);

	switch (op) {
	case OP_ZEROCOPY:
		return pv4_setint(fd, PACKET_ZEROCOPY, 1 + rand_r(seed) % 3);
	case OP_COPY:
		return pv4_setint(fd, PACKET_ZEROCOPY, 0);
	case OP_BIND:
		return pv4_bind(fd, rand_r(seed) % 8 ? name : "lo", ETH_P_ALL);
	case OP_RX_RING:
	case OP_TX_RING:
		return pv4_set_ring(fd, op == OP_RX_RING ? PACKET_RX_RING :
				    PACKET_TX_RING, race_fds[0],
				    rand_r(seed) % 4 ? nr : 0);
	case OP_MMAP:
		return race_mmap(fd, seed);
	case OP_KICK:
		return sendto(fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0 ?
		       -errno : 0;
	case OP_WAIT:
		return race_wait(fd);
	case OP_POLL:
		return poll(&p, 1, 1) < 0 ? -errno : 0;
	case OP_STATS:
		return getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &st,
				  &len) ? -errno : 0;
	case OP_VERSION:
		return pv4_setint(fd, PACKET_VERSION, rand_r(seed) % 4 ?
				  TPACKET_V4 : TPACKET_V2);
	case OP_REOPEN:
		return race_socket(r, fd);
	case OP_UP_DOWN:
		err = set_up(name, false);
		usleep(rand_r(seed) % 1000);
		return err ? err : set_up(name, true);
	case OP_MTU:
		return set_mtu(name, 1500 + rand_r(seed) % 1500);
	case OP_XDP:
		return xdp_attach_native(name, rand_r(seed) % 3 ?
					 race_progs[rand_r(seed) % 2] : -1);
	case OP_CHANNELS:
		return set_channels(name, 1 + rand_r(seed) % 2,
				    1 + rand_r(seed) % 2);
	default:
		return -EDOM;
	}
}

static bool race_error_is_expected(unsigned int op, int err)
{
	switch (-err) {
	case EBUSY:		/* rings, queue pair, mode */
	case EINVAL:		/* rings, version and option do not match */
	case ENXIO:		/* not bound, no such queue */
	case EOPNOTSUPP:	/* zero-copy mode of lo */
	case ENETDOWN:
	case ENOBUFS:
	case EAGAIN:
	case ETIMEDOUT:
	case EINTR:
	case EMSGSIZE:
	case ENOSPC:		/* XDP with fewer queues than the peer */
		return true;
	default:
		return false;
	}
}

FIXTURE(race) {
	struct race r;
};

FIXTURE_VARIANT(race) {
	unsigned int ops[2];
};

#define MODE_OPS	(OP(OP_ZEROCOPY) | OP(OP_COPY) | OP(OP_BIND))
#define RING_OPS	(OP(OP_RX_RING) | OP(OP_TX_RING) | OP(OP_MMAP))
#define DATA_OPS	(OP(OP_KICK) | OP(OP_WAIT) | OP(OP_POLL) | OP(OP_STATS))

FIXTURE_VARIANT_ADD(race, rings) {
	{ MODE_OPS | DATA_OPS | RING_OPS, MODE_OPS | RING_OPS },
};

FIXTURE_VARIANT_ADD(race, close) {
	{ MODE_OPS | DATA_OPS | RING_OPS,
	  MODE_OPS | RING_OPS | OP(OP_REOPEN) },
};

FIXTURE_VARIANT_ADD(race, version) {
	{ MODE_OPS | DATA_OPS | RING_OPS,
	  MODE_OPS | RING_OPS | OP(OP_VERSION) },
};

FIXTURE_VARIANT_ADD(race, device) {
	{ MODE_OPS | DATA_OPS | RING_OPS,
	  MODE_OPS | OP(OP_UP_DOWN) | OP(OP_MTU) | OP(OP_CHANNELS) },
};

FIXTURE_VARIANT_ADD(race, xdp) {
	{ MODE_OPS | DATA_OPS | RING_OPS, MODE_OPS | OP(OP_XDP) },
};

FIXTURE_VARIANT_ADD(race, all) {
	{ OP(NR_OPS) - 1, OP(NR_OPS) - 1 },
};

FIXTURE_SETUP(race)
{
	struct race *r = &self->r;
	int i;

	pv4_net_setup(_metadata);
	/* a size that XDP accepts */
	ASSERT_EQ(0, set_mtu(if_a, 1500));
	ASSERT_EQ(0, set_mtu(if_b, 1500));
	ASSERT_EQ(0, two_channels());
	*r = (struct race) {
		.step = race_step,
		.is_expected = race_error_is_expected,
		.names = op_names,
		.nr_ops = NR_OPS,
		.rare = OP(OP_REOPEN) | OP(OP_UP_DOWN) | OP(OP_XDP) |
			OP(OP_CHANNELS),
		.least = 5,
		.area = pv4_new_area(RACE_FRAMES * 2048),
	};
	ASSERT_TRUE(r->area != MAP_FAILED);
	race_progs[0] = xdp_const(XDP_PASS, BPF_F_XDP_HAS_FRAGS);
	race_progs[1] = xdp_const(XDP_PASS_TO_KERNEL, BPF_F_XDP_HAS_FRAGS);
	ASSERT_EQ(0, xdp_keep(race_progs[0]));
	ASSERT_EQ(0, xdp_keep(race_progs[1]));
	for (i = 0; i < SOCKETS; i++) {
		race_fds[i] = socket(AF_INET, SOCK_DGRAM, 0);
		ASSERT_LE(0, race_fds[i]);
		ASSERT_EQ(0, race_socket(r, race_fds[i]));
	}
}

static void close_sockets(void)
{
	int i;

	for (i = 0; i < SOCKETS; i++) {
		close(race_fds[i]);
		race_fds[i] = -1;
	}
}

FIXTURE_TEARDOWN(race)
{
	close_sockets();
}

/* Two new sockets work. */
static void check_alive(struct __test_metadata *_metadata)
{
	struct zc_cfg cfg = { .ifname = if_a, .n = 1 };
	struct zc a, b;

	set_mtu(if_a, MTU);
	set_mtu(if_b, MTU);
	xdp_attach_native(if_a, -1);
	xdp_attach_native(if_b, -1);
	ASSERT_EQ(0, set_up(if_a, true));
	ASSERT_EQ(0, set_up(if_b, true));
	ASSERT_EQ(0, wait_for_carrier(if_a));
	ASSERT_EQ(0, wait_for_carrier(if_b));
	ASSERT_EQ(0, zc_open(&a, &cfg));
	cfg.ifname = if_b;
	ASSERT_EQ(0, zc_open(&b, &cfg));
	pass_one_by_one(_metadata, &a, &b, 100, 600);
	zc_close(&a);
	zc_close(&b);
}

TEST_F_TIMEOUT(race, zerocopy, 240)
{
	race_run(_metadata, &self->r, variant->ops, 3000);
	close_sockets();
	check_alive(_metadata);
}

TEST_HARNESS_MAIN
