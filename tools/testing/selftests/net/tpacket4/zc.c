// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4, zero-copy mode: PACKET_ZEROCOPY, its errors, conflicts about a
 * queue, and what is returned when the mode is left or the device is removed.
 */
#include "diag.h"
#include "xsk.h"
#include "zc.h"

#include <pthread.h>
#include <stddef.h>
#include <sys/stat.h>

FIXTURE(zc) {
	struct zc z;			/* rings, all posted, not bound */
	char *buf;
};

FIXTURE_SETUP(zc)
{
	pv4_net_setup(_metadata);
	ASSERT_EQ(0, zc_open(&self->z, &(struct zc_cfg){ 0 }));
	self->z.min_offset += XDP_PACKET_HEADROOM;
	self->buf = malloc(BUF_SIZE);
	ASSERT_TRUE(!!self->buf);
}

FIXTURE_TEARDOWN(zc)
{
	/* packets that a failed test has left there hold the namespace */
	release_queue(if_a);
	release_queue(if_b);
	zc_close(&self->z);
	free(self->buf);
}

static int bind_b(struct zc *z)
{
	return pv4_bind(z->s.fd, if_b, ETH_P_ALL);
}

static bool send_plain(char *buf, uint32_t seq)
{
	int fd = socket(AF_PACKET, SOCK_RAW, 0), len = -1;

	fill_packet(buf, 300, seq);
	if (fd >= 0 && !pv4_bind(fd, if_a, 0))
		len = send(fd, buf, 300, 0);
	close(fd);
	return len == 300;
}

/* The socket, in zero-copy mode on if_b, receives packets sent on if_a. */
static bool receives(struct zc *z, char *buf, uint32_t seq)
{
	if (!send_plain(buf, seq))
		return false;
	return packet_ok(buf, zc_recv(z, buf, BUF_SIZE, WAIT_MS), 300, seq);
}

/* ---- the option ---- */

TEST_F(zc, malformed)
{
	int fd = self->z.s.fd, one = 1, v2;

	ASSERT_EQ(0, bind_b(&self->z));
	EXPECT_EQ(-EINVAL, pv4_setopt(fd, PACKET_ZEROCOPY, &one, 3));
	EXPECT_EQ(-EINVAL, pv4_setopt(fd, PACKET_ZEROCOPY, &one, 0));
	EXPECT_EQ(-EFAULT, pv4_setopt(fd, PACKET_ZEROCOPY, NULL, sizeof(int)));
	EXPECT_EQ(-EINVAL, zc_set(&self->z, -1));
	EXPECT_EQ(-EINVAL, zc_set(&self->z, INT_MIN));
	EXPECT_EQ(0, zc_get(&self->z));
	v2 = socket(AF_PACKET, SOCK_RAW, 0);
	ASSERT_LE(0, v2);
	EXPECT_EQ(-EINVAL, pv4_setint(v2, PACKET_ZEROCOPY, 1));
	ASSERT_EQ(0, pv4_setint(v2, PACKET_VERSION, TPACKET_V2));
	EXPECT_EQ(-EINVAL, pv4_setint(v2, PACKET_ZEROCOPY, 1));
	close(v2);
	/* none of it had an effect */
	EXPECT_EQ(0, zc_set(&self->z, 1));
	EXPECT_EQ(1, zc_get(&self->z));
}

static int from_other_userns(struct zc *z)
{
	if (unshare(CLONE_NEWUSER))
		return KSFT_SKIP;
	/* all capabilities, but not over the socket's namespace */
	return zc_set(z, 1) == -EPERM && zc_set(z, 0) == 0 ? 0 : 1;
}

TEST_F(zc, capability_other_userns)
{
	int status;
	pid_t pid;

	ASSERT_EQ(0, bind_b(&self->z));
	pid = pv4_fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(from_other_userns(&self->z));
	status = wait_for_exit(pid);
	if (status == KSFT_SKIP)
		SKIP(return, "needs CONFIG_USER_NS");
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, zc_get(&self->z));
}

TEST_F(zc, capability)
{
	ASSERT_EQ(0, bind_b(&self->z));
	ASSERT_EQ(0, zc_set(&self->z, 1));
	ASSERT_EQ(0, drop_cap(CAP_NET_ADMIN));
	EXPECT_EQ(-EPERM, zc_set(&self->z, 1));
	EXPECT_EQ(-EINVAL, zc_set(&self->z, -1));
	/* releasing the queue is allowed */
	EXPECT_EQ(0, zc_set(&self->z, 0));
	EXPECT_EQ(-EPERM, zc_set(&self->z, 1));
	EXPECT_EQ(0, zc_get(&self->z));
}

/* After bind() and before it. */
TEST_F(zc, on_and_off)
{
	socklen_t len = 8;
	int val[2], i;

	EXPECT_EQ(0, zc_set(&self->z, 0));
	ASSERT_EQ(0, bind_b(&self->z));
	EXPECT_EQ(0, zc_set(&self->z, 0));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, zc_set(&self->z, 1));
		EXPECT_EQ(1, zc_get(&self->z));
		EXPECT_EQ(0, zc_set(&self->z, 1));
		EXPECT_TRUE(receives(&self->z, self->buf, i));
		ASSERT_EQ(0, zc_set(&self->z, 0));
		EXPECT_EQ(0, zc_get(&self->z));
		EXPECT_EQ((int)self->z.s.rx.size,
			  zc_all_back(&self->z, ECANCELED, WAIT_MS));
		EXPECT_TRUE(zc_books_closed(&self->z));
		zc_refill(&self->z);
	}
	EXPECT_EQ(0, getsockopt(self->z.s.fd, SOL_PACKET, PACKET_ZEROCOPY, val,
				&len));
	EXPECT_EQ(sizeof(int), len);
}

TEST_F(zc, before_bind)
{
	ASSERT_EQ(0, zc_set(&self->z, 1));
	EXPECT_EQ(0, zc_get(&self->z));
	/* the last value counts, and 0 cancels it */
	ASSERT_EQ(0, zc_set(&self->z, 4711));
	ASSERT_EQ(0, zc_set(&self->z, 0));
	ASSERT_EQ(0, zc_set(&self->z, 4711));
	ASSERT_EQ(0, zc_set(&self->z, 1));
	ASSERT_EQ(0, bind_b(&self->z));
	EXPECT_EQ(1, zc_get(&self->z));
	EXPECT_TRUE(receives(&self->z, self->buf, 5));
}

/* If the requested mode is not possible, bind() fails. */
TEST_F(zc, bind_fails)
{
	struct zc_cfg other = { .ifname = if_b, .n = 1 };
	struct tpacket_stats_v4 st;
	struct zc z;

	ASSERT_EQ(0, zc_set(&self->z, 1));
	EXPECT_EQ(-EOPNOTSUPP, pv4_bind(self->z.s.fd, "lo", ETH_P_ALL));
	EXPECT_EQ(0, zc_get(&self->z));

	ASSERT_EQ(0, zc_open(&z, &other));
	EXPECT_EQ(-EBUSY, bind_b(&self->z));
	EXPECT_EQ(0, zc_get(&self->z));
	EXPECT_TRUE(receives(&z, self->buf, 1));
	zc_close(&z);

	/* bound, but the queue's packets are not what it asked for */
	ASSERT_TRUE(send_plain(self->buf, 2));
	EXPECT_EQ(-EAGAIN, zc_recv(&self->z, self->buf, BUF_SIZE, QUIET_MS));
	ASSERT_EQ(0, pv4_stats(self->z.s.fd, &st));
	EXPECT_EQ(0U, st.tp_packets);

	/* the queue is free: the next one works */
	ASSERT_EQ(0, bind_b(&self->z));
	EXPECT_EQ(1, zc_get(&self->z));
	EXPECT_TRUE(receives(&self->z, self->buf, 3));
}

/* After a failed bind(), the socket works in copy mode. */
TEST_F(zc, bind_fails_then_copy_mode)
{
	ASSERT_EQ(0, zc_set(&self->z, 9999));
	EXPECT_EQ(-ENXIO, bind_b(&self->z));
	ASSERT_EQ(0, zc_set(&self->z, 0));
	EXPECT_EQ(0, zc_get(&self->z));
	self->z.min_offset = 0;
	ASSERT_EQ(0, bind_b(&self->z));
	EXPECT_TRUE(receives(&self->z, self->buf, 4));
}

/* ---- errnos when it takes effect ---- */

TEST_F(zc, rings_missing)
{
	int fd = pv4_socket();

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, pv4_bind(fd, if_b, ETH_P_ALL));
	EXPECT_EQ(-EINVAL, pv4_setint(fd, PACKET_ZEROCOPY, 1));
	close(fd);

	/* the other way round */
	fd = pv4_socket();
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, pv4_setint(fd, PACKET_ZEROCOPY, 1));
	EXPECT_EQ(-EINVAL, pv4_bind(fd, if_b, ETH_P_ALL));
	close(fd);
}

/* Only copy mode supports SOCK_DGRAM, single protocols and all interfaces. The
 * socket stays in copy mode.
 */
TEST_F(zc, only_in_copy_mode)
{
	static const struct {
		int type, proto;
		const char *ifname;
	} kinds[] = {
		{ SOCK_DGRAM, ETH_P_ALL, if_b },
		{ SOCK_RAW, ETH_P_TEST, if_b },
		{ SOCK_RAW, ETH_P_ALL, "" },
	};
	struct pv4_cfg cfg = {
		.rx_nr = pv4_min_descs(), .tx_nr = pv4_min_descs(),
		.headroom = 64,
	};
	unsigned int i, before;
	struct pv4 s;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		for (before = 0; before < 2; before++) {
			cfg.type = kinds[i].type;
			ASSERT_EQ(0, pv4_open(&s, &cfg));
			if (before)
				ASSERT_EQ(0, pv4_setint(s.fd, PACKET_ZEROCOPY,
							1));
			EXPECT_EQ(before ? -EINVAL : 0,
				  pv4_bind(s.fd, kinds[i].ifname,
					   kinds[i].proto));
			EXPECT_EQ(-EINVAL,
				  pv4_setint(s.fd, PACKET_ZEROCOPY, 1)) {
				TH_LOG("kind %u", i);
			}
			ASSERT_EQ(0, pv4_setint(s.fd, PACKET_ZEROCOPY, 0));
			if (before)
				ASSERT_EQ(0, pv4_bind(s.fd, kinds[i].ifname,
						      kinds[i].proto));
			ASSERT_EQ(0, pv4_setint(s.fd, PACKET_IGNORE_OUTGOING,
						1));
			EXPECT_TRUE(send_plain(self->buf, i));
			EXPECT_LT(0, pv4_recv(&s, self->buf, BUF_SIZE,
					      WAIT_MS));
			pv4_close(&s);
		}
	}
}

TEST_F(zc, packed_ring)
{
	int before, fd, nr = pv4_min_descs();

	for (before = 0; before < 2; before++) {
		fd = pv4_socket();
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, pv4_set_ring_flags(fd, PACKET_RX_RING,
						self->z.s.fd, nr,
						TP4_RING_PACKED));
		if (before)
			ASSERT_EQ(0, pv4_setint(fd, PACKET_ZEROCOPY, 1));
		EXPECT_EQ(before ? -EINVAL : 0, pv4_bind(fd, if_b, ETH_P_ALL));
		EXPECT_EQ(-EINVAL, pv4_setint(fd, PACKET_ZEROCOPY, 1));
		close(fd);
	}
}

/* Copy mode needs 64 bytes behind the headroom; zero-copy mode needs 256 more.
 */
TEST_F(zc, no_room)
{
	struct zc_cfg cfg = {
		.ifname = if_b, .frame_size = 2048, .reserve = 2048 - 64,
	};
	struct zc z;

	ASSERT_EQ(0, zc_open(&z, &cfg));
	EXPECT_EQ(-EINVAL, zc_set(&z, 1));
	EXPECT_EQ(0, zc_get(&z));
	zc_close(&z);
	cfg.reserve = 0;
	cfg.headroom = 1920;
	ASSERT_EQ(0, zc_open(&z, &cfg));
	EXPECT_EQ(-EINVAL, zc_set(&z, 1));
	zc_close(&z);
	cfg.headroom = 1024;
	cfg.n = 1;
	EXPECT_EQ(0, zc_open(&z, &cfg));
	EXPECT_TRUE(receives(&z, self->buf, 5));
	zc_close(&z);
}

TEST_F(zc, fanout)
{
	int arg = PACKET_FANOUT_HASH << 16 | 4711, fd = self->z.s.fd, v4;

	/* not bound, but of a protocol: it can be in a group */
	v4 = pv4_socket_of(SOCK_RAW, ETH_P_ALL);
	ASSERT_LE(0, v4);
	ASSERT_EQ(0, pv4_setint(v4, PACKET_FANOUT, arg));
	EXPECT_EQ(-EINVAL, pv4_setint(v4, PACKET_ZEROCOPY, 1));
	close(v4);

	ASSERT_EQ(0, bind_b(&self->z));
	ASSERT_EQ(0, zc_set(&self->z, 1));
	EXPECT_EQ(-EINVAL, pv4_setint(fd, PACKET_FANOUT, arg));
	EXPECT_TRUE(receives(&self->z, self->buf, 5));
}

TEST_F(zc, no_driver)
{
	ASSERT_EQ(0, run_ip("link add v4dummy type dummy\n"));
	ASSERT_EQ(0, set_up("v4dummy", true));
	ASSERT_EQ(0, pv4_bind(self->z.s.fd, "v4dummy", ETH_P_ALL));
	EXPECT_EQ(-EOPNOTSUPP, zc_set(&self->z, 1));
	ASSERT_EQ(0, pv4_bind(self->z.s.fd, "lo", ETH_P_ALL));
	EXPECT_EQ(-EOPNOTSUPP, zc_set(&self->z, 1));
	ASSERT_EQ(0, bind_b(&self->z));
	EXPECT_EQ(0, zc_set(&self->z, 1));
}

TEST_F(zc, no_such_queue)
{
	ASSERT_EQ(0, bind_b(&self->z));
	EXPECT_EQ(-ENXIO, zc_set(&self->z, 2));
	EXPECT_EQ(-ENXIO, zc_set(&self->z, INT_MAX));
	/* a pair has two ends */
	ASSERT_EQ(0, set_channels(if_b, 2, 2));
	EXPECT_EQ(-ENXIO, zc_set(&self->z, 2));
	ASSERT_EQ(0, set_channels(if_b, 1, 1));
	ASSERT_EQ(0, set_channels(if_a, 2, 2));
	EXPECT_EQ(-ENXIO, zc_set(&self->z, 2));
	EXPECT_EQ(0, zc_get(&self->z));
	ASSERT_EQ(0, set_channels(if_b, 2, 2));
	EXPECT_EQ(-ENXIO, zc_set(&self->z, 3));
	EXPECT_EQ(0, zc_set(&self->z, 2));
	EXPECT_EQ(2, zc_get(&self->z));
}

TEST_F(zc, queue_is_taken)
{
	struct zc_cfg cfg = { .ifname = if_b };
	struct zc z[2];

	ASSERT_EQ(0, two_channels());
	ASSERT_EQ(0, bind_b(&self->z));
	ASSERT_EQ(0, zc_set(&self->z, 1));
	ASSERT_EQ(0, zc_open(&z[0], &cfg));
	EXPECT_EQ(-EBUSY, zc_set(&z[0], 1));
	EXPECT_EQ(0, zc_get(&z[0]));
	/* another queue is another queue, and so is another device's */
	EXPECT_EQ(0, zc_set(&z[0], 2));
	cfg.ifname = if_a;
	ASSERT_EQ(0, zc_open(&z[1], &cfg));
	EXPECT_EQ(0, zc_set(&z[1], 1));
	/* a socket that has one keeps it */
	EXPECT_EQ(-EBUSY, zc_set(&z[1], 2));
	EXPECT_EQ(1, zc_get(&z[1]));
	EXPECT_EQ(-EBUSY, zc_set(&z[0], 1));
	EXPECT_EQ(2, zc_get(&z[0]));
	EXPECT_EQ(0, zc_set(&z[0], 2));
	/* free once it is turned off, and once its socket is closed */
	ASSERT_EQ(0, zc_set(&z[0], 0));
	ASSERT_EQ(0, zc_set(&self->z, 0));
	EXPECT_EQ(0, zc_set(&self->z, 2));
	zc_close(&self->z);
	EXPECT_EQ(0, zc_set(&z[0], 2));
	zc_close(&z[0]);
	zc_close(&z[1]);
	/* or else a hash chooses the queue */
	ASSERT_EQ(0, set_channels(if_a, 1, 1));
	cfg.ifname = if_b;
	cfg.n = 1;
	EXPECT_EQ(0, zc_open(&self->z, &cfg));
	EXPECT_TRUE(receives(&self->z, self->buf, 5));
}

/* Zero-copy mode cannot be entered while packets of copy mode refer to frames.
 */
TEST_F(zc, copy_mode_in_flight)
{
	uint64_t end = now_ms() + WAIT_MS;
	int err;

	ASSERT_EQ(0, hold_queue(if_a));
	ASSERT_EQ(0, pv4_bind(self->z.s.fd, if_a, ETH_P_ALL));
	ASSERT_EQ(0, zc_send_seq(&self->z, LONG_LEN, 1));
	EXPECT_EQ(-EBUSY, zc_set(&self->z, 1));
	ASSERT_EQ(0, release_queue(if_a));
	while ((err = zc_set(&self->z, 1)) == -EBUSY && now_ms() < end)
		usleep(10000);
	EXPECT_EQ(0, err);
	EXPECT_TRUE(zc_reap_all(&self->z, WAIT_MS));
	EXPECT_EQ(1U, self->z.s.errors[0]);
}

/* Sends packets without a pause, and then says how many. */
static void send_until(int fd, int *stop, unsigned int *sent)
{
	char pkt[60];

	fill_packet(pkt, sizeof(pkt), 0);
	while (!__atomic_load_n(stop, __ATOMIC_ACQUIRE)) {
		*sent += send(fd, pkt, sizeof(pkt), 0) == sizeof(pkt);
		usleep(100);
	}
}

/* A refusal does not interrupt a capture in copy mode. */
TEST_F_TIMEOUT(zc, refused_without_loss, 120)
{
	struct tpacket_stats_v4 st;
	unsigned int i, seen = 0;
	struct {
		int stop;
		unsigned int sent;
	} *shared;
	int plain;
	pid_t pid;

	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_TRUE(shared != MAP_FAILED);
	plain = plain_socket(_metadata, if_a, 0);
	ASSERT_EQ(0, bind_b(&self->z));
	/* what is sent here stays here: zero-copy mode cannot be entered */
	ASSERT_EQ(0, net_batch("tc", "qdisc add dev v4b root plug\n"));
	pid = pv4_fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		send_until(plain, &shared->stop, &shared->sent);
		_exit(0);
	}
	for (i = 0; i < 100; i++) {
		EXPECT_EQ(-ENXIO, zc_set(&self->z, 100));
		usleep(1000);
	}
	ASSERT_EQ(0, zc_send_seq(&self->z, LONG_LEN, 1));
	for (i = 0; i < 100; i++) {
		EXPECT_EQ(-EBUSY, zc_set(&self->z, 1));
		usleep(1000);
	}
	__atomic_store_n(&shared->stop, 1, __ATOMIC_RELEASE);
	ASSERT_EQ(0, wait_for_exit(pid));
	ASSERT_EQ(0, pv4_stats_of(self->z.s.fd, shared->sent, &st));
	/* those that had no room were seen, too */
	seen = st.tp_packets;
	EXPECT_LT(0U, shared->sent);
	EXPECT_EQ(shared->sent, seen);
	/* The packet there holds the socket, and the socket the namespace. */
	ASSERT_EQ(0, net_batch("tc", "qdisc del dev v4b root\n"));
	close(plain);
}

/* packet_diag looks at rings for a moment, which does not make them busy. */
TEST_F_TIMEOUT(zc, not_busy_for_diag, 120)
{
	int i, err, busy = 0, rounds = pv4_fast() ? 100 : 500;
	struct diag d;
	struct stat st;
	pid_t pid;

	ASSERT_EQ(0, fstat(self->z.s.fd, &st));
	if (diag_find(st.st_ino, &d) == -ENOENT)
		SKIP(return, "no packet_diag");
	ASSERT_EQ(0, bind_b(&self->z));
	pid = pv4_fork();
	ASSERT_LE(0, pid);
	while (!pid)
		diag_find(0, &d);
	for (i = 0; i < rounds; i++) {
		err = zc_set(&self->z, 1);
		busy += err == -EBUSY;
		ASSERT_TRUE(!err || err == -EBUSY);
		ASSERT_EQ(0, zc_set(&self->z, 0));
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	EXPECT_EQ(0, busy) {
		TH_LOG("EBUSY %d times of %d", busy, rounds);
	}
}

TEST_F(zc, rings_fixed_while_on)
{
	int arg = PACKET_FANOUT_LB << 16 | 1, fd = self->z.s.fd;
	unsigned int nr = pv4_min_descs();

	ASSERT_EQ(0, bind_b(&self->z));
	ASSERT_EQ(0, zc_set(&self->z, 1));
	/* not because of the mapping */
	ASSERT_EQ(0, munmap(self->z.s.map, self->z.s.map_len));
	EXPECT_EQ(-EBUSY, pv4_set_ring(fd, PACKET_RX_RING, -1, 0));
	EXPECT_EQ(-EBUSY, pv4_set_ring(fd, PACKET_TX_RING, -1, 0));
	EXPECT_EQ(-EBUSY, pv4_set_ring(fd, PACKET_RX_RING, fd, 2 * nr));
	EXPECT_EQ(-EBUSY, pv4_setint(fd, PACKET_VERSION, TPACKET_V2));
	EXPECT_EQ(-EBUSY, pv4_setint(fd, PACKET_VERSION, TPACKET_V4));
	EXPECT_EQ(-EBUSY, pv4_bind(fd, if_b, ETH_P_ALL));
	EXPECT_EQ(-EBUSY, pv4_bind(fd, if_a, ETH_P_ALL));
	EXPECT_EQ(-EBUSY, pv4_bind(fd, "lo", 0));
	EXPECT_EQ(-EINVAL, pv4_setint(fd, PACKET_FANOUT, arg));
	ASSERT_EQ(0, zc_set(&self->z, 0));
	EXPECT_EQ(0, pv4_bind(fd, if_a, ETH_P_ALL));
	EXPECT_EQ(0, pv4_set_ring(fd, PACKET_RX_RING, -1, 0));
	EXPECT_EQ(0, pv4_set_ring(fd, PACKET_TX_RING, -1, 0));
	EXPECT_EQ(0, pv4_setint(fd, PACKET_VERSION, TPACKET_V2));
}

/* ---- who may have a queue ---- */

/* AF_XDP in copy mode can share the queue; veth supports no other. */
TEST_F(zc, af_xdp)
{
	void *umem = pv4_new_area(XSK_UMEM);
	int fd;

	ASSERT_TRUE(umem != MAP_FAILED);
	ASSERT_EQ(0, bind_b(&self->z));
	fd = xsk_bind(if_b, 0, XDP_COPY, umem);
	if (fd == -EAFNOSUPPORT)
		SKIP(return, "needs CONFIG_XDP_SOCKETS");
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, zc_set(&self->z, 1));
	EXPECT_TRUE(receives(&self->z, self->buf, 1));
	close(fd);
	fd = xsk_bind_wait(if_b, 0, XDP_COPY, umem);
	EXPECT_LE(0, fd);
	close(fd);
	EXPECT_EQ(-EBUSY, xsk_bind(if_b, 0, XDP_ZEROCOPY, umem));
	EXPECT_TRUE(receives(&self->z, self->buf, 2));
}

/* ethtool -L cannot remove a queue pair that is in use, from either end. */
TEST_F(zc, channels)
{
	ASSERT_EQ(0, two_channels());
	ASSERT_EQ(0, bind_b(&self->z));
	ASSERT_EQ(0, zc_set(&self->z, 2));
	EXPECT_EQ(-EINVAL, set_channels(if_b, 1, 1));
	EXPECT_EQ(-EINVAL, set_channels(if_b, 1, 2));
	EXPECT_EQ(-EINVAL, set_channels(if_b, 2, 1));
	EXPECT_EQ(-EINVAL, set_channels(if_a, 1, 1));
	EXPECT_EQ(-EINVAL, set_channels(if_a, 1, 2));
	EXPECT_EQ(0, set_channels(if_a, 2, 2));
	EXPECT_EQ(2, zc_get(&self->z));
	ASSERT_EQ(0, zc_set(&self->z, 0));
	EXPECT_EQ((int)self->z.s.rx.size,
		  zc_all_back(&self->z, ECANCELED, WAIT_MS));
	zc_refill(&self->z);
	EXPECT_EQ(0, set_channels(if_b, 1, 1));
	EXPECT_EQ(0, set_channels(if_a, 1, 1));
	/* other queues can be changed */
	ASSERT_EQ(0, zc_set(&self->z, 1));
	EXPECT_EQ(0, two_channels());
	EXPECT_EQ(0, set_channels(if_a, 1, 1));
	EXPECT_EQ(0, set_channels(if_b, 1, 1));
	EXPECT_TRUE(receives(&self->z, self->buf, 1));
}

/* ---- the status page ---- */

static int try_mmap(int fd, size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	munmap(p, len);
	return 0;
}

TEST_F(zc, status_page)
{
	size_t page = getpagesize(), rings = self->z.s.map_len - page;
	int fd = self->z.s.fd;
	unsigned int i;

	EXPECT_EQ(64U, sizeof(struct tpacket4_status));
	EXPECT_EQ(0, try_mmap(fd, rings));
	EXPECT_EQ(0, try_mmap(fd, rings + page));
	EXPECT_EQ(-EINVAL, try_mmap(fd, rings + 2 * page));
	EXPECT_EQ(-EINVAL, try_mmap(fd, rings - page));
	/* copy mode: always kick; the page has no other data */
	EXPECT_EQ(1U, self->z.status->tx_need_wakeup);
	for (i = 4; i < page; i++)
		ASSERT_EQ(0, ((char *)self->z.status)[i]);
	ASSERT_EQ(0, bind_b(&self->z));
	EXPECT_EQ(1U, self->z.status->tx_need_wakeup);
	ASSERT_EQ(0, zc_set(&self->z, 1));
	EXPECT_TRUE(receives(&self->z, self->buf, 1));
	ASSERT_EQ(0, zc_set(&self->z, 0));
	EXPECT_EQ(1U, self->z.status->tx_need_wakeup);
}

/* ---- how it ends ---- */

/* Both rings full of descriptors that were not taken */
static void fill_tx(struct __test_metadata *_metadata, struct zc *z)
{
	int i;

	for (i = 0; i < 20; i++)
		ASSERT_EQ(0, zc_put_seq(z, i & 1 ? 5000 : 60, i));
}

TEST_F(zc, off_returns_all)
{
	struct zc *z = &self->z;
	unsigned int tx;
	int i;

	ASSERT_EQ(0, bind_b(z));
	ASSERT_EQ(0, zc_set(z, 1));
	EXPECT_TRUE(receives(z, self->buf, 1));
	fill_tx(_metadata, z);
	tx = z->s.tx.avail - z->s.tx.used;
	ASSERT_EQ(0, zc_set(z, 0));
	EXPECT_EQ((int)(z->s.rx.size + tx),
		  zc_all_back(z, ECANCELED, WAIT_MS));
	EXPECT_TRUE(zc_books_closed(z));
	EXPECT_EQ(0, socket_error(z->s.fd));

	/* copy mode continues on both rings */
	for (i = 0; i < 100; i++)
		zc_rx_post(z, z->s.spare[--z->s.nr_spare]);
	z->min_offset = z->s.offset;
	ASSERT_TRUE(receives(z, self->buf, 2));
	EXPECT_EQ(0, zc_send_seq(z, 200, 3));
	EXPECT_TRUE(zc_reap_all(z, WAIT_MS));
	EXPECT_TRUE(zc_books_balance(z, NULL));
}

struct latency {
	uint64_t longest;		/* ns */
	int stop;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* Wants the CPU each millisecond, before all others. */
static void *wake_often(void *arg)
{
	struct sched_param param = { .sched_priority = 1 };
	struct latency *l = arg;
	uint64_t last, now;

	pthread_setschedparam(pthread_self(), SCHED_FIFO, &param);
	for (last = now_ns(); !__atomic_load_n(&l->stop, __ATOMIC_ACQUIRE);
	     last = now) {
		usleep(1000);
		now = now_ns();
		if (now - last > l->longest)
			l->longest = now - last;
	}
	return NULL;
}

/* When the mode is left, large rings do not keep the CPU from others. */
TEST_F_TIMEOUT(zc, off_with_large_rings, 300)
{
	unsigned int i, round, nr = pv4_fast() ? 1 << 18 : 1 << 20;
	struct pv4_cfg cfg = { .rx_nr = nr, .tx_nr = nr, .frames = 16 };
	uint64_t start, took = 0;
	struct latency l;
	struct pv4 s;
	pthread_t t;

	pin_to_cpu(0);
	ASSERT_EQ(0, pv4_open(&s, &cfg));
	memset(s.map, 0, s.map_len);
	ASSERT_EQ(0, pv4_bind(s.fd, if_b, ETH_P_ALL));
	for (round = 0; round < 5; round++) {
		ASSERT_EQ(0, pv4_setint(s.fd, PACKET_ZEROCOPY, 1));
		for (i = 0; i < nr; i++) {
			s.rx.desc[i] = (struct tpacket4_desc) {
				.flags = TP4_DESC_KERNEL,
			};
			s.tx.desc[i] = (struct tpacket4_desc) {
				.len = 60, .flags = TP4_DESC_KERNEL,
			};
		}
		l = (struct latency){ 0 };
		ASSERT_EQ(0, pthread_create(&t, NULL, wake_often, &l));
		usleep(10000);
		start = now_ns();
		ASSERT_EQ(0, pv4_setint(s.fd, PACKET_ZEROCOPY, 0));
		took = now_ns() - start;
		__atomic_store_n(&l.stop, 1, __ATOMIC_RELEASE);
		ASSERT_EQ(0, pthread_join(t, NULL));
		for (i = 0; i < nr; i++)
			ASSERT_FALSE((s.rx.desc[i].flags | s.tx.desc[i].flags) &
				     TP4_DESC_KERNEL);
		TH_LOG("%llu us, of which another thread waited %llu",
		       (unsigned long long)took / 1000,
		       (unsigned long long)l.longest / 1000);
		/* The machine may have been busy with something else. */
		if (l.longest < took / 3)
			break;
	}
	EXPECT_GT(5U, round);
	pv4_close(&s);
}

/* Entered with both rings already posted, and with neither */
TEST_F(zc, posted_before)
{
	struct zc_cfg cfg = { .ifname = if_a, .n = 1, .rx_empty = true };
	struct zc *z = &self->z, a;
	int i, len;

	fill_tx(_metadata, z);
	ASSERT_EQ(0, bind_b(z));
	ASSERT_EQ(0, zc_open(&a, &cfg));
	ASSERT_EQ(0, zc_set(z, 1));
	for (i = 0; i < 200; i++)
		zc_rx_post(&a, i);
	ASSERT_EQ(0, zc_kick(z));
	for (i = 0; i < 20; i++) {
		len = zc_recv(&a, self->buf, BUF_SIZE, WAIT_MS);
		ASSERT_TRUE(packet_ok(self->buf, len, i & 1 ? 5000 : 60, i));
	}
	EXPECT_TRUE(zc_reap_all(z, WAIT_MS));
	EXPECT_TRUE(zc_books_balance(z, NULL));
	EXPECT_TRUE(zc_books_balance(&a, NULL));
	zc_close(&a);
}

TEST_F(zc, down)
{
	struct zc_cfg cfg = { .ifname = if_a, .n = 1 };
	struct zc *z = &self->z, a;
	int i, len;

	ASSERT_EQ(0, zc_open(&a, &cfg));
	ASSERT_EQ(0, bind_b(z));
	ASSERT_EQ(0, set_up(if_b, false));
	socket_error(z->s.fd);
	/* the mode can be entered, but nothing is sent */
	ASSERT_EQ(0, zc_set(z, 1));
	ASSERT_EQ(0, zc_put_seq(z, 100, 0));
	EXPECT_EQ(-ENETDOWN, zc_kick(z));
	EXPECT_EQ(1U, z->s.tx.avail - z->s.tx.used);
	EXPECT_EQ(-EAGAIN, zc_recv(&a, self->buf, BUF_SIZE, QUIET_MS));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, set_up(if_b, true));
		ASSERT_EQ(0, zc_kick(z));
		len = zc_recv(&a, self->buf, BUF_SIZE, WAIT_MS);
		ASSERT_TRUE(packet_ok(self->buf, len, 100, i));
		ASSERT_EQ(1, zc_get(z));
		ASSERT_EQ(0, wait_for_carrier(if_a));
		EXPECT_TRUE(receives(z, self->buf, i));
		EXPECT_TRUE(zc_reap_all(z, WAIT_MS));
		ASSERT_EQ(0, set_up(if_b, false));
		/* the socket keeps the queue, and the kernel the frames */
		EXPECT_EQ(1, zc_get(z));
		EXPECT_TRUE(zc_books_balance(z, NULL));
		ASSERT_EQ(0, zc_put_seq(z, 100, i + 1));
		socket_error(z->s.fd);
	}
	/* left while down: all frames are returned */
	ASSERT_EQ(0, zc_set(z, 0));
	EXPECT_EQ((int)z->s.rx.size + 1, zc_all_back(z, ECANCELED, WAIT_MS));
	EXPECT_TRUE(zc_books_closed(z));
	zc_close(&a);
}

/* The other end is down: posted packets wait and are not lost. */
TEST_F(zc, peer_down)
{
	struct zc_cfg cfg = { .ifname = if_a, .n = 1 };
	struct zc *z = &self->z, a;
	int i, k, len;
	pid_t pid;

	ASSERT_EQ(0, zc_open(&a, &cfg));
	ASSERT_EQ(0, bind_b(z));
	ASSERT_EQ(0, zc_set(z, 1));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, set_up(if_a, false));
		for (k = 0; k < 20; k++)
			ASSERT_EQ(0, zc_put_seq(z, 3000, 20 * i + k));
		EXPECT_EQ(0, zc_kick(z));
		EXPECT_EQ(-EAGAIN, zc_recv(&a, self->buf, BUF_SIZE, 50));
		EXPECT_TRUE(zc_books_balance(z, NULL));
		/* a blocking send waits with them */
		pid = pv4_fork();
		ASSERT_LE(0, pid);
		if (!pid)
			_exit(-pv4_kick(&z->s, 0));
		EXPECT_TRUE(wait_until_asleep(pid));
		ASSERT_EQ(0, set_up(if_a, true));
		EXPECT_EQ(0, wait_for_exit(pid));
		for (k = 0; k < 20; k++) {
			len = zc_recv(&a, self->buf, BUF_SIZE, WAIT_MS);
			ASSERT_TRUE(packet_ok(self->buf, len, 3000,
					      20 * i + k));
		}
		EXPECT_TRUE(zc_reap_all(z, WAIT_MS));
		EXPECT_EQ(40U * (i + 1), z->s.errors[0]);
	}
	EXPECT_TRUE(zc_books_balance(&a, NULL));
	zc_close(&a);
}

/* Checks a socket whose device was removed. */
static void expect_gone(struct __test_metadata *_metadata, struct zc *z,
			unsigned int tx)
{
	struct sockaddr_ll ll;
	socklen_t len = sizeof(ll);

	EXPECT_TRUE(poll_for(z->s.fd, POLLIN, WAIT_MS) & POLLERR);
	EXPECT_EQ(ENETDOWN, socket_error(z->s.fd));
	EXPECT_EQ((int)(z->s.rx.size + tx),
		  zc_all_back(z, ENETDOWN, WAIT_MS));
	EXPECT_TRUE(zc_books_closed(z));
	EXPECT_EQ(0, zc_get(z));
	EXPECT_EQ(-ENXIO, pv4_kick(&z->s, MSG_DONTWAIT));
	ASSERT_EQ(0, getsockname(z->s.fd, (struct sockaddr *)&ll, &len));
	EXPECT_GE(0, ll.sll_ifindex);
	/* as good as new */
	zc_refill(z);
}

TEST_F(zc, device_unregistered)
{
	struct zc_cfg cfg = { .ifname = if_a, .n = 1 };
	struct zc *z = &self->z, a;
	unsigned int tx;

	ASSERT_EQ(0, zc_open(&a, &cfg));
	ASSERT_EQ(0, bind_b(z));
	ASSERT_EQ(0, zc_set(z, 1));
	fill_tx(_metadata, z);
	tx = z->s.tx.avail - z->s.tx.used;
	ASSERT_EQ(0, run_ip("link del %s\n", if_a));
	expect_gone(_metadata, z, tx);
	expect_gone(_metadata, &a, 0);
	EXPECT_EQ(-ENODEV, zc_set(z, 1));
	ASSERT_EQ(0, add_pair(if_a, if_b, MTU));
	ASSERT_EQ(0, bind_b(z));
	EXPECT_EQ(0, zc_get(z));
	ASSERT_EQ(0, zc_set(z, 1));
	EXPECT_TRUE(receives(z, self->buf, 1));
	zc_close(&a);
}

TEST_F(zc, device_moved)
{
	struct zc_cfg cfg = { .ifname = if_a, .n = 1 };
	pid_t ns = other_netns();
	struct zc a;

	ASSERT_LT(0, ns);
	ASSERT_EQ(0, zc_open(&a, &cfg));
	ASSERT_EQ(0, bind_b(&self->z));
	ASSERT_EQ(0, zc_set(&self->z, 1));
	ASSERT_EQ(0, run_ip("link set %s netns %d\n", if_b, ns));
	expect_gone(_metadata, &self->z, 0);
	/* the other end stays where it is, and what it is */
	EXPECT_EQ(1, zc_get(&a));
	EXPECT_TRUE(zc_books_balance(&a, NULL));
	zc_close(&a);
	kill(ns, SIGKILL);
	EXPECT_EQ(-SIGKILL, wait_for_exit(ns));
}

/* However the mode is left, the queue is free at once. */
TEST_F(zc, queue_free_after_exit)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };
	struct zc z;
	pid_t pid;
	int i;

	zc_close(&self->z);
	for (i = 0; i < 10; i++) {
		pid = pv4_fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			if (zc_open(&z, &cfg) || !receives(&z, self->buf, i))
				_exit(1);
			if (i & 1)
				kill(getpid(), SIGKILL);
			_exit(0);
		}
		EXPECT_EQ(i & 1 ? -SIGKILL : 0, wait_for_exit(pid));
	}
	ASSERT_EQ(0, zc_open(&self->z, &cfg));
	EXPECT_TRUE(receives(&self->z, self->buf, i));
}

TEST_HARNESS_MAIN
