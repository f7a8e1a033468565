// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4: areas, rings, sockets, processes and devices are removed in
 * every order while packets are in flight.
 */
#include "common.h"

#include <sys/un.h>

/* Two frames: too long for the kernel to copy the packet and release the frames
 * at once
 */
#define PKT_LEN		3000
#define PKT_DESCS	2
#define SHORT_LEN	1000	/* one frame */

FIXTURE(life) {
	struct pv4 tx, rx;
	int out;			/* an ordinary socket on if_b */
	char *buf;
};

FIXTURE_SETUP(life)
{
	struct pv4_cfg tcfg = { .ifname = if_a, .tx_nr = pv4_min_descs() };
	struct pv4_cfg rcfg = { .ifname = if_b, .rx_nr = pv4_min_descs() };

	pv4_net_setup(_metadata);
	ASSERT_EQ(0, pv4_open(&self->tx, &tcfg));
	ASSERT_EQ(0, pv4_open(&self->rx, &rcfg));
	self->out = plain_socket(_metadata, if_b, ETH_P_ALL);
	self->buf = malloc(1 << 17);
	ASSERT_TRUE(!!self->buf);
}

FIXTURE_TEARDOWN(life)
{
	/* packets that a failed test has left there hold the namespace */
	release_queue(if_a);
	close(self->tx.fd);
	close(self->rx.fd);
	close(self->out);
	free(self->buf);
}

static int post_len(struct pv4 *s, uint32_t seq, int len)
{
	char pkt[PKT_LEN];

	fill_packet(pkt, len, seq);
	return pv4_put(s, pkt, len, 2048, 0);
}

static int post_seq(struct pv4 *s, uint32_t seq)
{
	return post_len(s, seq, PKT_LEN);
}

static bool recv_seq(int fd, char *buf, uint32_t seq)
{
	int len = plain_recv(fd, buf, 1 << 17, WAIT_MS);

	return packet_ok(buf, len, PKT_LEN, seq);
}

/* Sends @n packets to the queue of if_a, which holds them. */
static void fly(struct __test_metadata *_metadata, struct pv4 *s, int n)
{
	int i;

	ASSERT_EQ(0, hold_queue(if_a));
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, post_seq(s, i));
	ASSERT_EQ(n * PKT_LEN, pv4_kick(s, MSG_DONTWAIT));
	ASSERT_EQ(0U, pv4_reap(s));
}

/* Releases and receives them. */
static void land(struct __test_metadata *_metadata, int out, char *buf, int n)
{
	int i;

	ASSERT_EQ(0, release_queue(if_a));
	for (i = 0; i < n; i++) {
		ASSERT_TRUE(recv_seq(out, buf, i)) {
			TH_LOG("packet %d of %d", i, n);
		}
	}
}

/* ---- with packets in flight ---- */

/* Reuses memory that was just freed, and writes to it. */
static bool reuse_memory(size_t len)
{
	int i;

	for (i = 0; i < 8; i++) {
		char *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1,
			       0);

		if (p == MAP_FAILED)
			return false;
		memset(p, 0xee, len);
		munmap(p, len);
	}
	return true;
}

/* The packets hold the pages and are received unmodified. */
TEST_F(life, close_in_flight)
{
	fly(_metadata, &self->tx, 50);
	munmap(self->tx.map, self->tx.map_len);
	close(self->tx.fd);
	munmap(self->tx.area, self->tx.area_len);
	self->tx.fd = -1;
	ASSERT_TRUE(reuse_memory(self->tx.area_len));
	land(_metadata, self->out, self->buf, 50);
}

TEST_F(life, munmap_in_flight)
{
	struct tpacket4_desc *ring;

	fly(_metadata, &self->tx, 50);
	munmap(self->tx.map, self->tx.map_len);
	munmap(self->tx.area, self->tx.area_len);
	/* unmapping does not remove it: packets are in flight */
	EXPECT_EQ(-EBUSY, pv4_set_ring(self->tx.fd, PACKET_TX_RING, -1, 0));
	land(_metadata, self->out, self->buf, 50);
	/* the ring is unchanged, and has the returned descriptors */
	ring = mmap(NULL, self->tx.map_len, PROT_READ | PROT_WRITE, MAP_SHARED,
		    self->tx.fd, 0);
	ASSERT_TRUE(ring != MAP_FAILED);
	self->tx.tx.desc = ring;
	EXPECT_TRUE(pv4_reap_all(&self->tx, WAIT_MS));
	EXPECT_EQ(50U * PKT_DESCS, self->tx.errors[0]);
	munmap(ring, self->tx.map_len);
	EXPECT_EQ(0, pv4_set_ring(self->tx.fd, PACKET_TX_RING, -1, 0));
}

TEST_F(life, ring_change_in_flight)
{
	uint64_t end = now_ms() + WAIT_MS;

	fly(_metadata, &self->tx, 20);
	munmap(self->tx.map, self->tx.map_len);
	EXPECT_EQ(-EBUSY, pv4_set_ring(self->tx.fd, PACKET_TX_RING, -1, 0));
	EXPECT_EQ(-EBUSY, pv4_setint(self->tx.fd, PACKET_VERSION, TPACKET_V2));
	EXPECT_EQ(0, pv4_bind(self->tx.fd, if_b, ETH_P_ALL));
	land(_metadata, self->out, self->buf, 20);
	while (pv4_set_ring(self->tx.fd, PACKET_TX_RING, -1, 0) == -EBUSY &&
	       now_ms() < end)
		usleep(1000);
	EXPECT_EQ(0, pv4_setint(self->tx.fd, PACKET_VERSION, TPACKET_V2));
}

/* Runs @fn in a process that is killed when it is ready. */
static void kill_while(struct __test_metadata *_metadata, struct pv4 *s,
		       int (*fn)(struct pv4 *s))
{
	int status, p[2];
	pid_t pid;
	char c;

	ASSERT_EQ(0, pipe(p));
	pid = pv4_fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		/* this process will be the only user of the socket */
		if (fn(s) || write(p[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(p[1]);
	munmap(s->map, s->map_len);
	close(s->fd);
	munmap(s->area, s->area_len);
	s->fd = -1;
	ASSERT_EQ(1, read(p[0], &c, 1));
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFSIGNALED(status));
	close(p[0]);
}

static int fly_in_child(struct pv4 *s)
{
	int i;

	for (i = 0; i < 50; i++)
		if (post_seq(s, i))
			return 1;
	return pv4_kick(s, MSG_DONTWAIT) != 50 * PKT_LEN;
}

TEST_F(life, kill_in_flight)
{
	ASSERT_EQ(0, hold_queue(if_a));
	kill_while(_metadata, &self->tx, fly_in_child);
	land(_metadata, self->out, self->buf, 50);
}

static pid_t blocked_sender(struct pv4 *s)
{
	pid_t pid = pv4_fork();

	if (!pid) {
		post_seq(s, 0);
		pv4_kick(s, 0);
		_exit(0);
	}
	return pid;
}

/* Killed during a blocking send */
TEST_F(life, kill_in_blocking_send)
{
	int status;
	pid_t pid;

	ASSERT_EQ(0, hold_queue(if_a));
	pid = blocked_sender(&self->tx);
	ASSERT_LE(0, pid);
	ASSERT_TRUE(wait_until_asleep(pid));
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	land(_metadata, self->out, self->buf, 1);
}

/* Packets in the queue of another socket keep their pages for as long as they
 * are there.
 */
TEST_F(life, received_after_close)
{
	size_t len = self->tx.area_len;
	int i;

	for (i = 0; i < 30; i++)
		ASSERT_EQ(0, post_seq(&self->tx, i));
	ASSERT_EQ(30 * PKT_LEN, pv4_kick(&self->tx, MSG_DONTWAIT));
	pv4_close(&self->tx);
	ASSERT_TRUE(reuse_memory(len));
	for (i = 0; i < 30; i++)
		ASSERT_TRUE(recv_seq(self->out, self->buf, i));
}

/* ---- areas ---- */

/* The area exists as long as its rings. */
TEST_F(life, area_outlives_its_fd)
{
	struct pv4_cfg cfg = {
		.ifname = if_a, .tx_nr = pv4_min_descs(), .mr_fd = -1,
	};
	struct pv4 a, b;
	int i, mr;

	mr = socket(AF_PACKET, SOCK_DGRAM, 0);
	ASSERT_LE(0, mr);
	cfg.mr_fd = mr;
	cfg.frames = 2 * cfg.tx_nr;
	cfg.area = pv4_new_area(cfg.frames * 2048);
	ASSERT_EQ(0, pv4_memreg(mr, cfg.area, cfg.frames * 2048, 2048, 0));
	ASSERT_EQ(0, pv4_open(&a, &cfg));
	ASSERT_EQ(0, pv4_open(&b, &cfg));
	close(mr);
	/* its number may be reused, which changes nothing */
	EXPECT_GT(0, pv4_set_ring(a.fd, PACKET_RX_RING, mr, pv4_min_descs()));
	for (i = 0; i < 100; i++) {
		struct pv4 *s = i < 50 && i & 1 ? &b : &a;

		ASSERT_EQ(0, post_seq(s, i));
		ASSERT_EQ(PKT_LEN, pv4_kick(s, 0));
		ASSERT_TRUE(recv_seq(self->out, self->buf, i));
		ASSERT_TRUE(pv4_reap_all(s, WAIT_MS));
		if (i == 50)
			close(b.fd);
	}
	/* posted packets can be sent without the program's mapping */
	ASSERT_EQ(0, post_seq(&a, 7));
	munmap(a.area, a.area_len);
	ASSERT_EQ(PKT_LEN, pv4_kick(&a, 0));
	ASSERT_TRUE(recv_seq(self->out, self->buf, 7));
	close(a.fd);
}

TEST_F(life, many_rings_one_area)
{
	unsigned int nr = pv4_min_descs();
	int fd[64], i;

	for (i = 0; i < 64; i++) {
		fd[i] = pv4_socket();
		ASSERT_LE(0, fd[i]);
		/* each uses the previous one, which only has a ring of the area
		 */
		ASSERT_EQ(-EINVAL, pv4_set_ring(fd[i], PACKET_RX_RING,
						i ? fd[i - 1] : fd[i], nr));
		ASSERT_EQ(0, pv4_set_ring(fd[i], PACKET_RX_RING, self->rx.fd,
					  nr));
		ASSERT_EQ(0, pv4_set_ring(fd[i], PACKET_TX_RING, self->tx.fd,
					  nr));
	}
	pv4_close(&self->rx);
	pv4_close(&self->tx);
	for (i = 0; i < 64; i++)
		close(fd[i]);
}

/* The other process only gets what is passed over the socket. It receives on
 * if_b to frames of the shared area and reports their numbers.
 */
static int rx_process(int sock, size_t len, int total)
{
	struct pv4_cfg cfg = {
		.ifname = if_b, .rx_nr = pv4_min_descs(), .frames = len / 2048,
	};
	struct tpacket4_desc d;
	int fds[2], i;
	struct pv4 s;

	if (recv_fds(sock, fds, 2))
		return 1;
	cfg.mr_fd = fds[0];
	cfg.area = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fds[1],
			0);
	if (cfg.area == MAP_FAILED)
		return 2;
	if (pv4_open(&s, &cfg))
		return 3;
	close(fds[0]);
	close(fds[1]);
	if (write(sock, "r", 1) != 1)
		return 4;
	for (i = 0; i < total; i++) {
		if (!pv4_take_wait(&s, &s.rx, &d, WAIT_MS) || d.error ||
		    !packet_ok(pv4_frame(&s, d.idx), d.len, SHORT_LEN, i) ||
		    write(sock, &d, sizeof(d)) != sizeof(d))
			return 5;
		pv4_rx_post(&s, d.idx);
	}
	return 0;
}

TEST_F(life, area_of_two_processes)
{
	unsigned int frames = 2 * pv4_min_descs(), total = 500, i;
	int sv[2], fds[2], status;
	size_t len = frames * 2048;
	struct tpacket4_desc d;
	char *area, c;
	pid_t pid;

	fds[0] = socket(AF_PACKET, SOCK_RAW, 0);
	fds[1] = memfd_create("tpacket4", MFD_CLOEXEC);
	ASSERT_LE(0, fds[0]);
	ASSERT_LE(0, fds[1]);
	ASSERT_EQ(0, ftruncate(fds[1], len));
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv));
	pid = pv4_fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		/* does not inherit the fd numbers either */
		close(fds[0]);
		close(fds[1]);
		_exit(rx_process(sv[1], len, total));
	}
	close(sv[1]);
	area = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0);
	ASSERT_TRUE(area != MAP_FAILED);
	ASSERT_EQ(0, pv4_memreg_flags(fds[0], area, len, 2048, 0,
				      TP4_MEMREG_SHARED));
	ASSERT_EQ(0, send_fds(sv[0], fds, 2));
	close(fds[0]);
	close(fds[1]);
	ASSERT_EQ(1, read(sv[0], &c, 1));
	for (i = 0; i < total; i++) {
		ASSERT_EQ(0, post_len(&self->tx, i, SHORT_LEN));
		ASSERT_EQ(SHORT_LEN, pv4_kick(&self->tx, 0));
		pv4_reap(&self->tx);
		ASSERT_EQ((ssize_t)sizeof(d), read(sv[0], &d, sizeof(d)));
		/* this process sees the packet in the other's ring */
		ASSERT_TRUE(packet_ok(area + d.idx * 2048 + d.offset, d.len,
				      SHORT_LEN, i));
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

/* A V4 socket is passed on, its rings are mapped by another process, and its
 * creator has exited.
 */
TEST_F(life, socket_passed)
{
	int sv[2], fd, i, status;
	pid_t pid;
	char c;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv));
	pid = pv4_fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		struct pv4_cfg cfg = {
			.rx_nr = pv4_min_descs(), .shared = true,
		};
		struct pv4 s;

		if (pv4_open(&s, &cfg) || send_fds(sv[1], &s.fd, 1) ||
		    read(sv[1], &c, 1) != 1)
			_exit(1);
		_exit(0);
	}
	ASSERT_EQ(0, recv_fds(sv[0], &fd, 1));
	pv4_close(&self->rx);
	self->rx.fd = fd;
	ASSERT_EQ(0, pv4_map_rings(&self->rx, pv4_min_descs(), 0));
	ASSERT_EQ(1, write(sv[0], "x", 1));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
	/* its descriptors are still posted, its memory still registered */
	ASSERT_EQ(0, pv4_bind(fd, if_b, ETH_P_ALL));
	self->rx.rx.avail = pv4_min_descs();
	for (i = 0; i < 20; i++) {
		struct tpacket4_desc d;

		ASSERT_EQ(0, post_len(&self->tx, i, SHORT_LEN));
		ASSERT_EQ(SHORT_LEN, pv4_kick(&self->tx, 0));
		ASSERT_TRUE(pv4_take_wait(&self->rx, &self->rx.rx, &d,
					  WAIT_MS));
		EXPECT_EQ(0, d.error);
		EXPECT_EQ((unsigned int)SHORT_LEN, d.len);
	}
}

/* Everything by which a process gets at an area that another one has registered
 * with @fd. Each has to end with @want; returns 0, or the step that has not.
 */
static int use_area(int fd, unsigned int nr, int want)
{
	struct pv4 s = { .fd = fd };
	int other = pv4_socket();

	if (other < 0)
		return 1;
	if (pv4_set_ring(other, PACKET_TX_RING, fd, nr) != want)
		return 2;
	if (pv4_set_ring(other, PACKET_RX_RING, fd, nr) != want)
		return 3;
	close(other);
	return pv4_map_rings(&s, nr, nr) == want ? 0 : 4;
}

static int use_area_of_parent(int fd, unsigned int nr, int want, bool netns)
{
	pid_t pid = pv4_fork();

	if (!pid)
		_exit(netns && unshare(CLONE_NEWNET) ? 5 :
		      use_area(fd, nr, want));
	return wait_for_exit(pid);
}

/* A process that was passed a socket does not get the memory. */
TEST_F(life, area_is_private)
{
	unsigned int nr = pv4_min_descs();
	struct pv4_cfg cfg = { .rx_nr = nr, .tx_nr = nr };
	struct pv4 s;
	int i;

	ASSERT_EQ(0, pv4_open(&s, &cfg));
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(0, use_area(s.fd, nr, 0));
		EXPECT_EQ(0, use_area_of_parent(s.fd, nr, -EACCES, i));
	}
	pv4_close(&s);

	cfg.shared = true;
	ASSERT_EQ(0, pv4_open(&s, &cfg));
	for (i = 0; i < 2; i++)
		EXPECT_EQ(0, use_area_of_parent(s.fd, nr, 0, i));
	pv4_close(&s);
}

/* Nor does it when the process that registered the memory has exited. */
TEST_F(life, area_of_a_process_that_has_exited)
{
	unsigned int i, nr = pv4_min_descs();
	int sv[2], fd;
	pid_t pid;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv));
	pid = pv4_fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		struct pv4_cfg cfg = { .rx_nr = nr, .tx_nr = nr };
		struct pv4 s;

		_exit(pv4_open(&s, &cfg) || send_fds(sv[1], &s.fd, 1));
	}
	ASSERT_EQ(0, recv_fds(sv[0], &fd, 1));
	ASSERT_EQ(0, wait_for_exit(pid));
	EXPECT_EQ(0, use_area(fd, nr, -EACCES));
	for (i = 0; i < 20; i++)
		ASSERT_EQ(0, use_area_of_parent(fd, nr, -EACCES, false));
	close(fd);
	close(sv[0]);
	close(sv[1]);
}

/* After fork() with shared memory, either side may use the rings. */
TEST_F(life, rings_after_fork)
{
	int status, i;
	pid_t pid;

	pid = pv4_fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		for (i = 0; i < 100; i++)
			if (post_seq(&self->tx, i) ||
			    pv4_kick(&self->tx, 0) != PKT_LEN ||
			    !pv4_reap_all(&self->tx, WAIT_MS))
				_exit(1);
		_exit(0);
	}
	/* close the fd and the mappings of this side at once */
	pv4_close(&self->tx);
	for (i = 0; i < 100; i++)
		ASSERT_TRUE(recv_seq(self->out, self->buf, i));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	for (i = 0; i < 100; i++) {
		int len = pv4_recv(&self->rx, self->buf, 1 << 17, WAIT_MS);

		ASSERT_TRUE(packet_ok(self->buf, len, PKT_LEN, i));
	}
}

/* ---- devices ---- */

/* A process that sends all the time and ignores errors */
static pid_t traffic(struct pv4 *s)
{
	pid_t pid = pv4_fork();
	uint32_t seq = 0;

	if (pid)
		return pid;
	for (;; seq++) {
		post_seq(s, seq);
		if (pv4_kick(s, MSG_DONTWAIT) < 0)
			usleep(1000);
		pv4_reap(s);
	}
}

static void stop(struct __test_metadata *_metadata, pid_t pid)
{
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
}

static int drain(struct pv4 *s, char *buf, int ms)
{
	uint64_t end = now_ms() + ms;
	int n = 0, len;

	while (now_ms() < end) {
		len = pv4_recv(s, buf, 1 << 17, 20);
		if (len == -EBADMSG)
			return len;
		if (len > 0 && !packet_ok(buf, len, PKT_LEN, packet_seq(buf)))
			return -EILSEQ;
		n += len > 0;
	}
	return n;
}

/* Same, but go on until a packet has arrived: the machine may be slow. */
static int drain_some(struct pv4 *s, char *buf, int ms)
{
	uint64_t end = now_ms() + WAIT_MS;
	int n;

	do {
		n = drain(s, buf, ms);
	} while (!n && now_ms() < end);
	return n;
}

TEST_F(life, device_down)
{
	socklen_t len = sizeof(int);
	int i, err = 0;

	ASSERT_EQ(0, post_seq(&self->tx, 0));
	ASSERT_EQ(PKT_LEN, pv4_kick(&self->tx, 0));
	ASSERT_EQ(0, set_up(if_a, false));
	for (i = 1; i < 10; i++)
		ASSERT_EQ(0, post_seq(&self->tx, i));
	/* the socket gets the error once, as every packet socket */
	ASSERT_EQ(0, getsockopt(self->tx.fd, SOL_SOCKET, SO_ERROR, &err,
				&len));
	EXPECT_EQ(ENETDOWN, err);
	EXPECT_EQ(-ENETDOWN, pv4_kick(&self->tx, MSG_DONTWAIT));
	EXPECT_EQ(-ENETDOWN, pv4_kick(&self->tx, 0));
	pv4_reap(&self->tx);
	for (i = PKT_DESCS; i < 10 * PKT_DESCS; i++)
		EXPECT_TRUE(desc_is_kernels(pv4_slot(&self->tx.tx, i)));
	ASSERT_EQ(0, set_up(if_a, true));
	EXPECT_EQ(9 * PKT_LEN, pv4_kick(&self->tx, 0));
	for (i = 0; i < 10; i++)
		ASSERT_TRUE(recv_seq(self->out, self->buf, i));
	EXPECT_TRUE(pv4_reap_all(&self->tx, WAIT_MS));
	EXPECT_EQ(10U * PKT_DESCS, self->tx.errors[0]);
}

TEST_F(life, device_down_under_traffic)
{
	pid_t pid = traffic(&self->tx);
	int i;

	ASSERT_LE(0, pid);
	for (i = 0; i < 4; i++) {
		EXPECT_LT(0, drain_some(&self->rx, self->buf, 300));
		ASSERT_EQ(0, set_up(i & 1 ? if_a : if_b, false));
		EXPECT_LE(0, drain(&self->rx, self->buf, 100));
		ASSERT_EQ(0, set_up(i & 1 ? if_a : if_b, true));
	}
	EXPECT_LT(0, drain_some(&self->rx, self->buf, 300));
	stop(_metadata, pid);
}

TEST_F(life, device_unregistered_under_traffic)
{
	struct pollfd p = { .fd = self->rx.fd, .events = POLLIN };
	socklen_t len = sizeof(int);
	int err = 0, pid;
	uint64_t start;

	/* some packets are in flight, and dropped with the qdisc */
	ASSERT_EQ(0, set_qdisc("netem limit 10000 delay 50ms"));
	pid = traffic(&self->tx);
	ASSERT_LE(0, pid);
	EXPECT_LT(0, drain_some(&self->rx, self->buf, 500));
	start = now_ms();
	ASSERT_EQ(0, run_ip("link del %s\n", if_a));
	/* No reference to the device is left. The kernel warns after ten
	 * seconds; this waits longer, as the machine may be slow.
	 */
	EXPECT_GT(60000U, now_ms() - start);
	EXPECT_LE(0, drain(&self->rx, self->buf, 100));
	EXPECT_EQ(1, poll(&p, 1, WAIT_MS));
	EXPECT_TRUE(p.revents & POLLERR);
	ASSERT_EQ(0, getsockopt(self->rx.fd, SOL_SOCKET, SO_ERROR, &err, &len));
	EXPECT_EQ(ENETDOWN, err);
	stop(_metadata, pid);
	ASSERT_EQ(0, getsockopt(self->tx.fd, SOL_SOCKET, SO_ERROR, &err, &len));
	EXPECT_EQ(-ENXIO, pv4_kick(&self->tx, MSG_DONTWAIT));

	/* the sockets can be used on another device */
	ASSERT_EQ(0, run_ip("link add %s type dummy\n", if_a));
	ASSERT_EQ(0, set_up(if_a, true));
	EXPECT_EQ(0, pv4_bind(self->rx.fd, if_a, ETH_P_ALL));
	EXPECT_EQ(0, pv4_bind(self->tx.fd, if_a, ETH_P_ALL));
}

TEST_F(life, netns_move_under_traffic)
{
	pid_t pid, ns = other_netns();

	ASSERT_LT(0, ns);
	pid = traffic(&self->tx);
	ASSERT_LE(0, pid);
	EXPECT_LT(0, drain_some(&self->rx, self->buf, 300));
	/* first the end of the receiver, then that of the sender */
	ASSERT_EQ(0, run_ip("link set %s netns %d\n", if_b, ns));
	EXPECT_LE(0, drain(&self->rx, self->buf, 100));
	ASSERT_EQ(0, run_ip("link set %s netns %d\n", if_a, ns));
	EXPECT_EQ(0U, if_nametoindex(if_a));
	/* nothing of the other namespace is received or sent here */
	EXPECT_LE(0, drain(&self->rx, self->buf, 100));
	EXPECT_EQ(0, drain(&self->rx, self->buf, 100));
	stop(_metadata, pid);
	EXPECT_EQ(-ENXIO, pv4_kick(&self->tx, MSG_DONTWAIT));
	stop(_metadata, ns);
}

/* The namespace is removed when the last packet of its sockets is gone. A veth
 * pair with one end in it is removed, too.
 */
TEST(netns_deleted)
{
	static const char if_c[] = "v4c", if_d[] = "v4d";
	struct pv4_cfg tcfg = { .ifname = if_a, .tx_nr = pv4_min_descs() };
	struct pv4_cfg rcfg = { .ifname = if_b, .rx_nr = pv4_min_descs() };
	pid_t ns, helper;
	struct pv4 tx, rx;
	uint64_t end;
	int p[2];
	char c;

	pv4_net_setup(_metadata);
	/* before sockets are opened that these could inherit */
	ns = other_netns();
	ASSERT_LT(0, ns);
	ASSERT_EQ(0, pipe(p));
	helper = pv4_fork();
	ASSERT_LE(0, helper);
	if (!helper)
		_exit(read(p[0], &c, 1) != 1 || release_queue(if_a));
	ASSERT_EQ(0, add_veth(if_c, if_d, MTU));
	ASSERT_EQ(0, run_ip("link set %s netns %d\n", if_d, ns));
	ASSERT_EQ(0, pv4_open(&tx, &tcfg));
	ASSERT_EQ(0, pv4_open(&rx, &rcfg));
	fly(_metadata, &tx, 50);
	ASSERT_EQ(0, enter_netns(ns));
	ASSERT_NE(0U, if_nametoindex(if_d));
	pv4_close(&tx);
	pv4_close(&rx);
	ASSERT_EQ(1, write(p[1], "x", 1));
	EXPECT_EQ(0, wait_for_exit(helper));
	end = now_ms() + WAIT_MS;
	while (if_nametoindex(if_d) && now_ms() < end)
		usleep(1000);
	EXPECT_EQ(0U, if_nametoindex(if_d));
	kill(ns, SIGKILL);
	EXPECT_EQ(-SIGKILL, wait_for_exit(ns));
}

TEST_HARNESS_MAIN
