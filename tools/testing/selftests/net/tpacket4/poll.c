// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4: one thread sleeps in poll() until it can post, another kicks.
 * Whichever way the descriptors are returned, the sleeper is woken after they
 * are visible. A reader is woken for as many packets as it wants, and not for
 * those that it has seen.
 */
#include "task.h"
#include "zc.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/time_types.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

FIXTURE(pollout) {
	struct pv4 tx, rx;
};

FIXTURE_SETUP(pollout)
{
	struct pv4_cfg tcfg = { .ifname = if_a, .tx_nr = pv4_min_descs() };
	struct pv4_cfg rcfg = { .ifname = if_b, .rx_nr = pv4_min_descs() };

	pv4_net_setup(_metadata);
	ASSERT_EQ(0, pv4_open(&self->tx, &tcfg));
	ASSERT_EQ(0, pv4_open(&self->rx, &rcfg));
}

FIXTURE_TEARDOWN(pollout)
{
	pv4_close(&self->tx);
	pv4_close(&self->rx);
}

/* A reader that relies on signals need not call poll(). */
TEST_F(pollout, signal_for_each_packet)
{
	struct timespec wait = { .tv_sec = WAIT_MS / 1000 };
	sigset_t set;
	int i;

	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	ASSERT_EQ(0, sigprocmask(SIG_BLOCK, &set, NULL));
	ASSERT_EQ(0, fcntl(self->rx.fd, F_SETOWN, getpid()));
	ASSERT_EQ(0, fcntl(self->rx.fd, F_SETFL, O_ASYNC));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ((int)pkt_len, send_one(&self->tx, i));
		ASSERT_EQ(SIGIO, sigtimedwait(&set, NULL, &wait));
	}
}

enum poll_result { READY, TIMED_OUT, FAILED };

/*
 * A process that sleeps until the ring is writable. If it is not woken, it only
 * checks after the timeout, which the test detects.
 */
static pid_t sleeper(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	uint64_t start = now_ms();
	pid_t pid = pv4_fork();
	int n;

	if (pid)
		return pid;
	n = poll(&p, 1, WAIT_MS);
	if (now_ms() - start >= WAIT_MS)
		_exit(TIMED_OUT);
	_exit(n == 1 && p.revents == POLLOUT ? READY : FAILED);
}

/* With the ring full of unsent packets: sleeps, kicks, and checks that the
 * sleeper wakes up.
 */
static void kick_and_wake(struct __test_metadata *_metadata, struct pv4 *tx,
			  const char *what)
{
	pid_t pid = sleeper(tx->fd);

	ASSERT_LE(0, pid);
	ASSERT_EQ('S', wait_until_idle(pid));
	/* its result depends on the packets */
	pv4_kick(tx, MSG_DONTWAIT);
	ASSERT_EQ(READY, exit_within(pid, 2 * WAIT_MS)) {
		TH_LOG("%s: %d would be: not woken", what, TIMED_OUT);
	}
}

static void post_bad(struct pv4 *s, unsigned int n, __u8 flags)
{
	struct tpacket4_desc d = { .idx = 1 << 20, .len = 60, .flags = flags };

	/* returned descriptors have no frame, and nobody sends from them */
	s->nr_spare = 0;
	while (n--)
		pv4_post(&s->tx, &d, 1);
}

/* Fills the ring with packets of @nr_frames descriptors. */
static void post_ring(struct __test_metadata *_metadata, struct pv4 *s,
		      unsigned int nr_frames, unsigned int piece)
{
	unsigned int i, len = nr_frames * piece;
	char pkt[MAX_PKT];

	/* no frame is in flight, so use any */
	s->nr_spare = 0;
	for (i = 0; i < s->tx.size; i++)
		s->spare[s->nr_spare++] = i;
	for (i = 0; i < s->tx.size / nr_frames; i++) {
		fill_packet(pkt, len, i);
		ASSERT_EQ(0, pv4_put(s, pkt, len, piece, 0));
	}
	ASSERT_EQ(s->tx.size, s->tx.avail - s->tx.used);
}

/* One batch of long chains fills the ring. All frames are free, and reported as
 * free, before the first descriptor is returned.
 */
TEST_F_TIMEOUT(pollout, one_batch, 120)
{
	int round;

	for (round = 0; round < 5; round++) {
		post_ring(_metadata, &self->tx, 16, 64);
		kick_and_wake(_metadata, &self->tx, "chains, copied");
		ASSERT_TRUE(pv4_reap_all(&self->tx, WAIT_MS));
		post_ring(_metadata, &self->tx, 16, 500);
		kick_and_wake(_metadata, &self->tx, "chains of pages");
		ASSERT_TRUE(pv4_reap_all(&self->tx, WAIT_MS));
	}
}

TEST_F_TIMEOUT(pollout, many_batches, 120)
{
	post_ring(_metadata, &self->tx, 1, 100);
	kick_and_wake(_metadata, &self->tx, "one frame each");
}

/* Nothing is sent, and all frames are free. */
TEST_F_TIMEOUT(pollout, all_refused, 120)
{
	post_bad(&self->tx, self->tx.tx.size, 0);
	kick_and_wake(_metadata, &self->tx, "bad descriptors");
	ASSERT_TRUE(pv4_reap_all(&self->tx, WAIT_MS));
	EXPECT_EQ(self->tx.tx.size, self->tx.errors[EINVAL]);
	/* a chain that is longer than any packet may be */
	post_bad(&self->tx, self->tx.tx.size, TP4_PKT_CONT);
	kick_and_wake(_metadata, &self->tx, "a chain without end");
	ASSERT_TRUE(pv4_reap_all(&self->tx, WAIT_MS));
	/* too long for the device */
	post_ring(_metadata, &self->tx, 8, 1000);
	ASSERT_EQ(0, net_batch("ip", "link set v4a mtu 1500\n"));
	kick_and_wake(_metadata, &self->tx, "longer than the MTU");
	ASSERT_TRUE(pv4_reap_all(&self->tx, WAIT_MS));
	EXPECT_LE(self->tx.tx.size, self->tx.errors[EMSGSIZE]);
}

/* A rule refuses all of them. */
TEST_F_TIMEOUT(pollout, all_dropped_by_rule, 120)
{
	ASSERT_EQ(0, net_batch("tc", "qdisc add dev v4a clsact\n"));
	ASSERT_EQ(0, net_batch("tc",
			       "filter add dev v4a egress matchall action drop\n"));
	post_ring(_metadata, &self->tx, 16, 64);
	kick_and_wake(_metadata, &self->tx, "dropped");
	ASSERT_TRUE(pv4_reap_all(&self->tx, WAIT_MS));
	EXPECT_EQ(0U, self->tx.errors[0]);
}

/* Packets in a full queue free their frames much later. */
TEST_F_TIMEOUT(pollout, held_by_qdisc, 120)
{
	pid_t pid;

	ASSERT_EQ(0, set_qdisc("netem limit 1000 delay 200s"));
	post_ring(_metadata, &self->tx, 16, 500);
	pid = sleeper(self->tx.fd);
	ASSERT_LE(0, pid);
	ASSERT_LT(0, pv4_kick(&self->tx, MSG_DONTWAIT));
	EXPECT_EQ('S', wait_until_idle(pid));
	EXPECT_EQ(-EAGAIN, exit_within(pid, QUIET_MS));
	ASSERT_EQ(0, set_qdisc("pfifo limit 1000"));
	EXPECT_EQ(READY, exit_within(pid, 2 * WAIT_MS));
	EXPECT_TRUE(pv4_reap_all(&self->tx, WAIT_MS));
}

/* ---- SO_RCVLOWAT ---- */

FIXTURE(pollin) {
	struct pv4 tx;			/* on if_a */
	struct zc rx;			/* on if_b */
};

FIXTURE_VARIANT(pollin) {
	int n;				/* PACKET_ZEROCOPY */
};

FIXTURE_VARIANT_ADD(pollin, copy) { .n = 0 };

FIXTURE_VARIANT_ADD(pollin, zero_copy) { .n = 1 };

FIXTURE_SETUP(pollin)
{
	struct pv4_cfg tcfg = { .ifname = if_a, .tx_nr = pv4_min_descs() };
	struct zc_cfg rcfg = { .ifname = if_b, .n = variant->n };

	pv4_net_setup(_metadata);
	ASSERT_EQ(0, pv4_open(&self->tx, &tcfg));
	ASSERT_EQ(0, zc_open(&self->rx, &rcfg));
}

FIXTURE_TEARDOWN(pollin)
{
	pv4_close(&self->tx);
	zc_close(&self->rx);
}

static int want(int fd, int slots)
{
	return setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &slots, sizeof(slots)) ?
	       -errno : 0;
}

/* A process that sleeps until the ring is readable. */
static pid_t reader(int fd)
{
	uint64_t start = now_ms();
	pid_t pid = pv4_fork();

	if (pid)
		return pid;
	if (poll_for(fd, POLLIN, 2 * WAIT_MS) != POLLIN)
		_exit(FAILED);
	_exit(now_ms() - start >= 2 * WAIT_MS ? TIMED_OUT : READY);
}

/* Takes received packets, and posts or keeps them; returns the number of slots.
 */
static unsigned int take_all(struct zc *z, bool keep)
{
	struct tpacket4_desc d;
	unsigned int n = 0;

	for (; zc_take(z, &z->s.rx, &d); n++)
		if (!keep)
			zc_rx_post(z, d.idx);
	return n;
}

/* The last one of this many packets wakes the reader, and none before it. */
static void wake_at(struct __test_metadata *_metadata, struct pv4 *tx,
		    struct zc *rx, unsigned int slots)
{
	pid_t pid = reader(rx->s.fd);
	unsigned int i;

	ASSERT_LE(0, pid);
	ASSERT_EQ('S', wait_until_idle(pid));
	for (i = 1; i < slots; i++)
		ASSERT_EQ((int)pkt_len, send_one(tx, i));
	EXPECT_EQ(-EAGAIN, exit_within(pid, QUIET_MS));
	EXPECT_EQ(0, poll_for(rx->s.fd, POLLIN, 0));
	ASSERT_EQ((int)pkt_len, send_one(tx, i));
	EXPECT_EQ(READY, exit_within(pid, 2 * WAIT_MS));
	EXPECT_EQ(POLLIN, poll_for(rx->s.fd, POLLIN, 0));
}

TEST_F_TIMEOUT(pollin, rcvlowat, 120)
{
	unsigned int nr = self->rx.s.rx.size, i;
	const unsigned int slots[] = { 1, 2, 7, nr / 4, nr - 1, nr };

	for (i = 0; i < ARRAY_SIZE(slots); i++) {
		ASSERT_EQ(0, want(self->rx.s.fd, slots[i]));
		wake_at(_metadata, &self->tx, &self->rx, slots[i]);
		EXPECT_EQ(slots[i], take_all(&self->rx, false));
		EXPECT_EQ(0, poll_for(self->rx.s.fd, POLLIN, 0));
	}
	/* with more than there are, all are needed */
	ASSERT_EQ(0, want(self->rx.s.fd, 1 << 30));
	wake_at(_metadata, &self->tx, &self->rx, nr);
}

/* A program that keeps frames and waits for the next one */
TEST_F_TIMEOUT(pollin, frames_kept, 120)
{
	unsigned int i;

	for (i = 1; i <= 10; i++) {
		ASSERT_EQ(0, want(self->rx.s.fd, i));
		wake_at(_metadata, &self->tx, &self->rx, 1);
		EXPECT_EQ(1U, take_all(&self->rx, true));
		/* it is kept, and not posted again */
		EXPECT_EQ(POLLIN, poll_for(self->rx.s.fd, POLLIN, 0));
		ASSERT_EQ(0, want(self->rx.s.fd, i + 1));
		EXPECT_EQ(0, poll_for(self->rx.s.fd, POLLIN, 0));
	}
}

/* If fewer are posted than wanted, all of them are needed. */
TEST_F_TIMEOUT(pollin, fewer_posted, 120)
{
	unsigned int i, nr = self->rx.s.rx.size;

	for (i = 0; i < nr - 5; i++)
		ASSERT_EQ((int)pkt_len, send_one(&self->tx, i));
	ASSERT_EQ(POLLIN, poll_for(self->rx.s.fd, POLLIN, WAIT_MS));
	usleep(QUIET_MS * 1000);
	ASSERT_EQ(nr - 5, take_all(&self->rx, true));
	ASSERT_EQ(0, want(self->rx.s.fd, nr));
	EXPECT_EQ(0, poll_for(self->rx.s.fd, POLLIN, 0));
	wake_at(_metadata, &self->tx, &self->rx, 5);
}

/* Too few frames are left for a packet, and so, perhaps, for any other. */
TEST_F_TIMEOUT(pollin, too_few_frames, 120)
{
	unsigned int i, nr = self->rx.s.rx.size;
	pid_t pid;

	ASSERT_EQ(0, want(self->rx.s.fd, nr - 1));
	for (i = 0; i < nr - 3; i++)
		ASSERT_EQ((int)pkt_len, send_one(&self->tx, i));
	pid = reader(self->rx.s.fd);
	ASSERT_LE(0, pid);
	ASSERT_EQ('S', wait_until_idle(pid));
	EXPECT_EQ(-EAGAIN, exit_within(pid, QUIET_MS));
	pkt_len = MAX_PKT;
	ASSERT_EQ(MAX_PKT, send_one(&self->tx, i));
	EXPECT_EQ(READY, exit_within(pid, 2 * WAIT_MS));
	/* said once */
	EXPECT_EQ(0, poll_for(self->rx.s.fd, POLLIN, 0));
	EXPECT_EQ(nr - 3, take_all(&self->rx, false));
}

/* ---- io_uring ---- */

struct uring {
	int fd;
	char *rings;
	size_t rings_len, sqes_len;
	struct io_uring_sqe *sqes;
	struct io_uring_params p;
};

static int uring_open(struct uring *u)
{
	size_t cq_len;

	memset(u, 0, sizeof(*u));
	u->fd = syscall(__NR_io_uring_setup, 4, &u->p);
	if (u->fd < 0)
		return -errno;
	u->sqes_len = u->p.sq_entries * sizeof(*u->sqes);
	u->rings_len = u->p.sq_off.array +
		       u->p.sq_entries * sizeof(unsigned int);
	cq_len = u->p.cq_off.cqes +
		 u->p.cq_entries * sizeof(struct io_uring_cqe);
	if (u->rings_len < cq_len)
		u->rings_len = cq_len;
	u->rings = mmap(NULL, u->rings_len, PROT_READ | PROT_WRITE, MAP_SHARED,
			u->fd, IORING_OFF_SQ_RING);
	u->sqes = mmap(NULL, u->sqes_len, PROT_READ | PROT_WRITE, MAP_SHARED,
		       u->fd, IORING_OFF_SQES);
	return u->rings == MAP_FAILED || u->sqes == MAP_FAILED ? -ENOMEM : 0;
}

static void uring_close(struct uring *u)
{
	munmap(u->sqes, u->sqes_len);
	munmap(u->rings, u->rings_len);
	close(u->fd);
}

static unsigned int *uring_word(struct uring *u, unsigned int offset)
{
	return (unsigned int *)(u->rings + offset);
}

/* Asks for a completion whenever the socket becomes readable: 1 or -errno. */
static int uring_poll(struct uring *u, int fd)
{
	unsigned int *tail = uring_word(u, u->p.sq_off.tail);
	int n;

	memset(u->sqes, 0, sizeof(*u->sqes));
	u->sqes->opcode = IORING_OP_POLL_ADD;
	u->sqes->fd = fd;
	u->sqes->poll_events = POLLIN;
	u->sqes->len = IORING_POLL_ADD_MULTI;
	*uring_word(u, u->p.sq_off.array) = 0;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	n = syscall(__NR_io_uring_enter, u->fd, 1, 0, 0, NULL, 0);
	return n < 0 ? -errno : n;
}

/* Returns the events of the next completion, or -errno. The socket's poll() is
 * not called.
 */
static int uring_wait(struct uring *u, int ms)
{
	unsigned int *head = uring_word(u, u->p.cq_off.head);
	unsigned int *tail = uring_word(u, u->p.cq_off.tail);
	struct __kernel_timespec ts = {
		.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000,
	};
	struct io_uring_getevents_arg arg = { .ts = (uintptr_t)&ts };
	struct io_uring_cqe *cqes, *cqe;

	while (__atomic_load_n(tail, __ATOMIC_ACQUIRE) == *head)
		if (syscall(__NR_io_uring_enter, u->fd, 0, 1,
			    IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG,
			    &arg, sizeof(arg)) < 0 && errno != EINTR)
			return -errno;
	cqes = (struct io_uring_cqe *)(u->rings + u->p.cq_off.cqes);
	cqe = &cqes[*head & (u->p.cq_entries - 1)];
	ms = cqe->flags & IORING_CQE_F_MORE ? cqe->res : -ECANCELED;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return ms;
}

/* A request that stays armed completes once per wake-up, without a call of
 * poll(). The next packet follows while the last one is being handled.
 */
TEST_F_TIMEOUT(pollin, io_uring_multishot, 120)
{
	struct uring u;
	int i, err;

	err = uring_open(&u);
	if (u.fd < 0)
		SKIP(return, "io_uring_setup: %s", strerror(-err));
	ASSERT_EQ(0, err);
	if (!(u.p.features & IORING_FEAT_EXT_ARG))
		SKIP(return, "io_uring cannot wait with a timeout");
	ASSERT_EQ(1, uring_poll(&u, self->rx.s.fd));
	ASSERT_EQ((int)pkt_len, send_one(&self->tx, 0));
	for (i = 1; i <= 100; i++) {
		do {
			ASSERT_EQ(POLLIN, uring_wait(&u, WAIT_MS)) {
				TH_LOG("packet %d", i);
			}
		} while (!take_all(&self->rx, false));
		ASSERT_EQ((int)pkt_len, send_one(&self->tx, i));
	}
	uring_close(&u);
}

/* ---- TP4_DESC_SEEN ---- */

FIXTURE(seen) {
	struct pv4 tx;			/* on if_a */
	struct zc rx;			/* on if_b, half as many frames as slots */
	int epfd;
};

FIXTURE_VARIANT(seen) {
	int n;				/* PACKET_ZEROCOPY */
	int epoll;			/* events; 0: poll() */
};

FIXTURE_VARIANT_ADD(seen, copy) { .n = 0 };

FIXTURE_VARIANT_ADD(seen, copy_epoll) { .n = 0, .epoll = EPOLLIN };

FIXTURE_VARIANT_ADD(seen, copy_edge) { .n = 0, .epoll = EPOLLIN | EPOLLET };

FIXTURE_VARIANT_ADD(seen, zero_copy) { .n = 1 };

FIXTURE_VARIANT_ADD(seen, zero_copy_epoll) { .n = 1, .epoll = EPOLLIN };

FIXTURE_VARIANT_ADD(seen, zero_copy_edge) {
	.n = 1, .epoll = EPOLLIN | EPOLLET,
};

FIXTURE_SETUP(seen)
{
	struct pv4_cfg tcfg = { .ifname = if_a, .tx_nr = pv4_min_descs() };
	struct zc_cfg rcfg = {
		.ifname = if_b, .n = variant->n, .rx_empty = true,
	};
	struct epoll_event e = { .events = variant->epoll };
	unsigned int i;

	pv4_net_setup(_metadata);
	ASSERT_EQ(0, pv4_open(&self->tx, &tcfg));
	ASSERT_EQ(0, zc_open(&self->rx, &rcfg));
	for (i = 0; i < self->rx.s.rx.size / 2; i++)
		zc_rx_post(&self->rx, i);
	self->epfd = -1;
	if (variant->epoll) {
		self->epfd = epoll_create1(0);
		ASSERT_LE(0, self->epfd);
		ASSERT_EQ(0, epoll_ctl(self->epfd, EPOLL_CTL_ADD,
				       self->rx.s.fd, &e));
	}
}

FIXTURE_TEARDOWN(seen)
{
	if (self->epfd >= 0)
		close(self->epfd);
	pv4_close(&self->tx);
	zc_close(&self->rx);
}

/* Mark the slot that was seen last, unless it has been posted again. */
static void mark_seen(struct pv4_ring *r)
{
	if (r->avail - r->used < r->size)
		__atomic_store_n(&pv4_slot(r, r->used - 1)->flags,
				 TP4_DESC_SEEN, __ATOMIC_RELAXED);
}

/* Number of sockets that are readable: 0 or 1, or less if it fails */
static int readable(int fd, int epfd, int ms)
{
	struct epoll_event e;

	if (epfd < 0)
		return poll_for(fd, POLLIN, ms) / POLLIN;
	return epoll_wait(epfd, &e, 1, ms);
}

/* The reader sleeps although slots are not posted, and a packet wakes it. */
static void sleep_and_wake(struct __test_metadata *_metadata, struct pv4 *tx,
			   int fd, int epfd)
{
	uint64_t start = now_ms();
	pid_t pid = pv4_fork();

	ASSERT_LE(0, pid);
	if (!pid) {
		if (readable(fd, epfd, 2 * WAIT_MS) != 1)
			_exit(FAILED);
		_exit(now_ms() - start >= 2 * WAIT_MS ? TIMED_OUT : READY);
	}
	ASSERT_EQ('S', wait_until_idle(pid));
	EXPECT_EQ(-EAGAIN, exit_within(pid, QUIET_MS));
	ASSERT_EQ((int)pkt_len, send_one(tx, 1));
	EXPECT_EQ(READY, exit_within(pid, 2 * WAIT_MS));
}

/* All packets are taken and posted again, but in other slots. */
TEST_F_TIMEOUT(seen, fewer_frames_than_slots, 120)
{
	struct pv4_ring *r = &self->rx.s.rx;
	unsigned int i;

	EXPECT_EQ(0, readable(self->rx.s.fd, self->epfd, 0));
	for (i = 0; i < 2 * r->size + 3; i++) {
		ASSERT_EQ((int)pkt_len, send_one(&self->tx, i));
		ASSERT_EQ(1, readable(self->rx.s.fd, self->epfd, WAIT_MS));
		ASSERT_EQ(1U, take_all(&self->rx, false));
		mark_seen(r);
		ASSERT_EQ(0, readable(self->rx.s.fd, self->epfd, 0)) {
			TH_LOG("after packet %u", i);
		}
	}
	for (i = 0; i < 5; i++) {
		sleep_and_wake(_metadata, &self->tx, self->rx.s.fd, self->epfd);
		EXPECT_EQ(1U, take_all(&self->rx, false));
		mark_seen(r);
	}
}

/* Frames are kept until all but one are. */
TEST_F_TIMEOUT(seen, frames_are_kept, 120)
{
	struct pv4_ring *r = &self->rx.s.rx;
	unsigned int i;

	for (i = 0; i < r->size / 2 - 1; i++) {
		if (i < 5) {
			sleep_and_wake(_metadata, &self->tx, self->rx.s.fd,
				       self->epfd);
		} else {
			ASSERT_EQ((int)pkt_len, send_one(&self->tx, i));
			ASSERT_EQ(1, readable(self->rx.s.fd, self->epfd,
					      WAIT_MS));
		}
		ASSERT_EQ(1U, take_all(&self->rx, true));
		mark_seen(r);
		ASSERT_EQ(0, readable(self->rx.s.fd, self->epfd, 0)) {
			TH_LOG("after packet %u", i);
		}
	}
	sleep_and_wake(_metadata, &self->tx, self->rx.s.fd, self->epfd);
}

/* As a program that forwards: each frame comes back a little later. */
TEST_F_TIMEOUT(seen, frames_come_back_later, 120)
{
	struct pv4_ring *r = &self->rx.s.rx;
	struct tpacket4_desc d;
	unsigned int i, k;
	__u64 away[7];

	for (i = 0; i < r->size; i++) {
		k = i % ARRAY_SIZE(away);
		if (i % 50 == 49)
			sleep_and_wake(_metadata, &self->tx, self->rx.s.fd,
				       self->epfd);
		else
			ASSERT_EQ((int)pkt_len, send_one(&self->tx, i));
		if (i % 50 != 49)
			ASSERT_EQ(1, readable(self->rx.s.fd, self->epfd,
					      WAIT_MS));
		ASSERT_TRUE(zc_take(&self->rx, r, &d));
		if (i >= ARRAY_SIZE(away))
			zc_rx_post(&self->rx, away[k]);
		away[k] = d.idx;
		mark_seen(r);
		ASSERT_EQ(0, readable(self->rx.s.fd, self->epfd, 0)) {
			TH_LOG("after packet %u", i);
		}
	}
}

/* The mark says nothing of a packet behind it. */
TEST_F_TIMEOUT(seen, packet_behind_the_mark, 120)
{
	struct tpacket4_desc d;

	ASSERT_EQ((int)pkt_len, send_one(&self->tx, 1));
	ASSERT_EQ(1, readable(self->rx.s.fd, self->epfd, WAIT_MS));
	ASSERT_TRUE(zc_take(&self->rx, &self->rx.s.rx, &d));
	ASSERT_EQ((int)pkt_len, send_one(&self->tx, 2));
	mark_seen(&self->rx.s.rx);
	EXPECT_EQ(1, readable(self->rx.s.fd, self->epfd, WAIT_MS));
	ASSERT_TRUE(zc_take(&self->rx, &self->rx.s.rx, &d));
	mark_seen(&self->rx.s.rx);
	sleep_and_wake(_metadata, &self->tx, self->rx.s.fd, self->epfd);
}

/* SO_RCVLOWAT counts what has not been seen. */
TEST_F_TIMEOUT(seen, as_many_as_wanted, 120)
{
	unsigned int i, round;

	if (variant->epoll & EPOLLET)
		SKIP(return, "the kernel does not look at the mark in between");
	ASSERT_EQ(0, want(self->rx.s.fd, 3));
	for (round = 0; round < 5; round++) {
		for (i = 0; i < 2; i++)
			ASSERT_EQ((int)pkt_len, send_one(&self->tx, i));
		EXPECT_EQ(0, readable(self->rx.s.fd, self->epfd, QUIET_MS));
		sleep_and_wake(_metadata, &self->tx, self->rx.s.fd, self->epfd);
		EXPECT_EQ(3U, take_all(&self->rx, true));
		mark_seen(&self->rx.s.rx);
		EXPECT_EQ(0, readable(self->rx.s.fd, self->epfd, 0));
	}
}

/* A reader that only sleeps when it has seen all, and a sender that does not
 * wait for it: none of its packets is left behind.
 */
TEST_F_TIMEOUT(seen, under_load, 240)
{
	struct pv4_ring *r = &self->rx.s.rx;
	unsigned int i, *got, nr = 1000;
	pid_t pid;

	got = mmap(NULL, sizeof(*got), PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_TRUE(got != MAP_FAILED);
	pid = pv4_fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		for (i = 0; i < nr; i++) {
			/* but no more than there are frames for */
			while (i - __atomic_load_n(got, __ATOMIC_RELAXED) >=
			       r->size / 2)
				usleep(100);
			if (send_one(&self->tx, i) != (int)pkt_len)
				_exit(1);
			if (i % 100 == 0)
				usleep(1000);
		}
		_exit(0);
	}
	while (*got < nr) {
		ASSERT_EQ(1, readable(self->rx.s.fd, self->epfd, WAIT_MS)) {
			TH_LOG("packet %u", *got);
		}
		__atomic_fetch_add(got, take_all(&self->rx, false),
				   __ATOMIC_RELAXED);
		mark_seen(r);
	}
	EXPECT_EQ(nr, *got);
	EXPECT_EQ(0, wait_for_exit(pid));
	munmap(got, sizeof(*got));
}

TEST_HARNESS_MAIN
