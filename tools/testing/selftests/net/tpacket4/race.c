// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4: concurrent setup. Threads change one socket in all ways while
 * packets are sent and received. The kernel log shows most bugs (use after
 * free, lockdep, leaks). The test checks that only documented errors occur, and
 * that everything works afterwards.
 */
#include "racer.h"

#include <linux/filter.h>

enum race_op {
	OP_RX_RING, OP_TX_RING, OP_VERSION, OP_BIND, OP_FANOUT, OP_MMAP,
	OP_KICK, OP_MEMREG, OP_POLL, OP_STATS, OP_REOPEN, OP_FILTER,
	NR_OPS
};

static const char * const op_names[NR_OPS] = {
	"rx ring", "tx ring", "version", "bind", "fanout", "mmap", "kick",
	"memreg", "poll", "statistics", "close", "filter",
};

static int race_fd;		/* always this number */

static int race_step(struct race *r, unsigned int op, unsigned int *seed)
{
	struct sock_filter code[] = { BPF_STMT(BPF_RET | BPF_K, 1000) };
	struct sock_fprog prog = { .filter = code, .len = 1 };
	unsigned int nr = pv4_min_descs() << (rand_r(seed) % 2);
	static const char * const names[] = { if_a, if_b, "lo" };
	struct pollfd p = { .fd = race_fd, .events = POLLIN | POLLOUT };
	struct tpacket_stats_v4 st;
	socklen_t len = sizeof(st);
	int ring = op == OP_RX_RING ? PACKET_RX_RING : PACKET_TX_RING;

	switch (op) {
	case OP_RX_RING:
	case OP_TX_RING:
		return pv4_set_ring(race_fd, ring, race_fd,
				    rand_r(seed) % 3 ? nr : 0);
	case OP_VERSION:
		return pv4_setint(race_fd, PACKET_VERSION,
				  rand_r(seed) % 3 ? TPACKET_V4 :
				  rand_r(seed) % 3);
	case OP_BIND:
		return pv4_bind(race_fd, names[rand_r(seed) % 3],
				rand_r(seed) % 8 ? ETH_P_ALL : 0);
	case OP_FANOUT:
		return pv4_setint(race_fd, PACKET_FANOUT,
				  (rand_r(seed) % 3) << 16 | 42);
	case OP_MMAP:
		return race_mmap(race_fd, seed);
	case OP_KICK:
		return sendto(race_fd, NULL, 0, rand_r(seed) % 4 ?
			      MSG_DONTWAIT : 0, NULL, 0) < 0 ? -errno : 0;
	case OP_MEMREG:
		return pv4_memreg(race_fd, r->area, RACE_FRAMES * 2048, 2048, 0);
	case OP_POLL:
		return poll(&p, 1, 1) < 0 ? -errno : 0;
	case OP_STATS:
		return getsockopt(race_fd, SOL_PACKET, PACKET_STATISTICS, &st,
				  &len) ? -errno : 0;
	case OP_REOPEN:
		return race_socket(r, race_fd);
	case OP_FILTER:
		return setsockopt(race_fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog,
				  sizeof(prog)) ? -errno : 0;
	default:
		return -EDOM;
	}
}

/* The errors that an operation may return. */
static const int expected[NR_OPS][8] = {
	/* mapped, exists already; the socket has another version now */
	[OP_RX_RING] = { EBUSY, EINVAL },
	[OP_TX_RING] = { EBUSY, EINVAL },
	[OP_VERSION] = { EBUSY },		/* there are rings */
	[OP_BIND] = { EINVAL },			/* in a fanout group */
	/* not bound; twice; another mode; the group is full */
	[OP_FANOUT] = { EINVAL, EALREADY, ENOSPC },
	[OP_MMAP] = { EINVAL },			/* not as long as the rings */
	/* not bound; no ring, or it was removed; full queue or buffer */
	[OP_KICK] = { ENXIO, EINVAL, EBUSY, ENOBUFS, EAGAIN, ENETDOWN },
	[OP_MEMREG] = { EBUSY },		/* there is one */
};

static bool race_error_is_expected(unsigned int op, int err)
{
	int i;

	for (i = 0; expected[op][i]; i++)
		if (expected[op][i] == -err)
			return true;
	return false;
}

FIXTURE(race) {
	struct race r;
};

FIXTURE_VARIANT(race) {
	unsigned int ops[2];
	unsigned int ms;
};

#define RING_OPS	(OP(OP_RX_RING) | OP(OP_TX_RING) | OP(OP_MMAP))
#define DATA_OPS	(OP(OP_KICK) | OP(OP_POLL) | OP(OP_STATS))

FIXTURE_VARIANT_ADD(race, version) {
	{ RING_OPS | DATA_OPS | OP(OP_BIND), RING_OPS | OP(OP_VERSION) },
	2000,
};

FIXTURE_VARIANT_ADD(race, bind) {
	{ RING_OPS | DATA_OPS, RING_OPS | OP(OP_BIND) }, 2000,
};

FIXTURE_VARIANT_ADD(race, fanout) {
	{ RING_OPS | DATA_OPS | OP(OP_BIND) | OP(OP_REOPEN),
	  RING_OPS | OP(OP_FANOUT) | OP(OP_VERSION) }, 2000,
};

FIXTURE_VARIANT_ADD(race, close) {
	{ RING_OPS | DATA_OPS | OP(OP_BIND) | OP(OP_MEMREG),
	  RING_OPS | OP(OP_REOPEN) }, 2000,
};

FIXTURE_VARIANT_ADD(race, all) {
	{ OP(NR_OPS) - 1, OP(NR_OPS) - 1 }, 4000,
};

FIXTURE_SETUP(race)
{
	struct race *r = &self->r;

	pv4_net_setup(_metadata);
	*r = (struct race) {
		.step = race_step,
		.is_expected = race_error_is_expected,
		.names = op_names,
		.nr_ops = NR_OPS,
		.rare = OP(OP_REOPEN),
		/* the area is registered all the time */
		.any = OP(OP_MEMREG),
		.least = 1,
		.area = pv4_new_area(RACE_FRAMES * 2048),
	};
	ASSERT_TRUE(r->area != MAP_FAILED);
	race_fd = socket(AF_INET, SOCK_DGRAM, 0);
	ASSERT_LE(0, race_fd);
	ASSERT_EQ(0, race_socket(r, race_fd));
	ASSERT_EQ(0, pv4_bind(race_fd, if_b, ETH_P_ALL));
}

FIXTURE_TEARDOWN(race)
{
	close(race_fd);
}

/* A new socket still works. */
static void check_alive(struct __test_metadata *_metadata, char *area)
{
	struct pv4_cfg rcfg = {
		.ifname = if_b, .rx_nr = pv4_min_descs(), .area = area,
	};
	struct pv4_cfg tcfg = { .ifname = if_a, .tx_nr = pv4_min_descs() };
	struct pv4 rx, tx;
	char buf[100];
	int len;

	ASSERT_EQ(0, pv4_open(&rx, &rcfg));
	ASSERT_EQ(0, pv4_open(&tx, &tcfg));
	fill_packet(buf, sizeof(buf), 1);
	ASSERT_EQ(0, pv4_put(&tx, buf, sizeof(buf), 2048, 0));
	ASSERT_EQ(100, pv4_kick(&tx, 0));
	do {
		len = pv4_recv(&rx, buf, sizeof(buf), WAIT_MS);
	} while (len > 0 && !packet_ok(buf, len, 100, 1));
	EXPECT_EQ(100, len);
	EXPECT_TRUE(pv4_reap_all(&tx, WAIT_MS));
	close(rx.fd);
	close(tx.fd);
}

TEST_F_TIMEOUT(race, threads, 240)
{
	race_run(_metadata, &self->r, variant->ops, variant->ms);
	close(race_fd);
	race_fd = -1;
	check_alive(_metadata, self->r.area);
}

TEST_HARNESS_MAIN
