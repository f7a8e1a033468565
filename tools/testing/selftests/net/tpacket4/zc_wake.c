// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4, zero-copy mode: wake-ups. No packet is lost if the program only
 * kicks when the ring says so; poll, busy polling and plain sendto work.
 */
#include "zc.h"

#include <sys/epoll.h>

FIXTURE(wake) {
	struct zc a, b;			/* on if_a and if_b */
	char *buf;
};

FIXTURE_SETUP(wake)
{
	struct zc_cfg cfg = { .ifname = if_a, .n = 1 };

	pv4_net_setup(_metadata);
	ASSERT_EQ(0, zc_open(&self->a, &cfg));
	cfg.ifname = if_b;
	ASSERT_EQ(0, zc_open(&self->b, &cfg));
	self->buf = malloc(BUF_SIZE);
	ASSERT_TRUE(!!self->buf);
}

FIXTURE_TEARDOWN(wake)
{
	zc_close(&self->a);
	zc_close(&self->b);
	free(self->buf);
}

/* After posting: does the kernel need a kick? */
static bool need_wakeup(struct zc *z)
{
	/* the posted descriptor must be visible before this is read */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&z->status->tx_need_wakeup, __ATOMIC_RELAXED);
}

static int take_seq(struct zc *z, uint32_t seq, int ms)
{
	struct tpacket4_desc d;
	bool ok;

	if (!zc_take_wait(z, &z->s.rx, &d, ms))
		return -EAGAIN;
	ok = !d.error && d.idx < z->s.frames &&
	     packet_seq(pv4_frame(&z->s, d.idx) + d.offset) == seq;
	zc_rx_post(z, d.idx);
	return ok ? 0 : -EBADMSG;
}

/* ---- poll ---- */

TEST_F(wake, poll_in)
{
	pid_t pid, self_pid = getpid();
	int i;

	EXPECT_EQ(0, poll_for(self->b.s.fd, POLLIN, 0));
	for (i = 0; i < 300; i++) {
		ASSERT_EQ(0, zc_send_seq(&self->a, 100, i));
		ASSERT_EQ(POLLIN, poll_for(self->b.s.fd, POLLIN, WAIT_MS));
		ASSERT_EQ(POLLIN, poll_for(self->b.s.fd, POLLIN, 0));
		ASSERT_EQ(0, take_seq(&self->b, i, 0));
		ASSERT_EQ(0, poll_for(self->b.s.fd, POLLIN, 0));
	}
	for (i = 0; i < 20; i++) {
		pid = pv4_fork();
		ASSERT_LE(0, pid);
		if (!pid)
			_exit(!wait_until_asleep(self_pid) ||
			      zc_send_seq(&self->a, 100, 500));
		EXPECT_EQ(POLLIN, poll_for(self->b.s.fd, POLLIN, WAIT_MS));
		EXPECT_EQ(0, take_seq(&self->b, 500, 0));
		EXPECT_EQ(0, wait_for_exit(pid));
		/* the child has posted and sent with its copy of the indices */
		self->a.s.tx.avail++;
		self->a.s.tx.used++;
	}
}

TEST_F(wake, epoll_edge)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	int ep = epoll_create1(0), i;

	ASSERT_LE(0, ep);
	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, self->b.s.fd, &ev));
	EXPECT_EQ(0, epoll_wait(ep, &ev, 1, 0));
	for (i = 0; i < 300; i++) {
		ASSERT_EQ(0, zc_send_seq(&self->a, 100, i));
		ASSERT_EQ(1, epoll_wait(ep, &ev, 1, WAIT_MS));
		ASSERT_EQ(0, take_seq(&self->b, i, 0));
	}
	close(ep);
}

/* Writable while a slot is free; woken when one becomes free. poll() kicks. */
TEST_F(wake, poll_out)
{
	unsigned int i, size = self->a.s.tx.size;

	EXPECT_EQ(POLLOUT, poll_for(self->a.s.fd, POLLOUT, 0));
	for (i = 0; i < size; i++)
		ASSERT_EQ(0, zc_put_seq(&self->a, 60, i));
	EXPECT_EQ(POLLOUT, poll_for(self->a.s.fd, POLLOUT, WAIT_MS));
	for (i = 0; i < size; i++)
		ASSERT_EQ(0, take_seq(&self->b, i, WAIT_MS));
	EXPECT_TRUE(zc_reap_all(&self->a, WAIT_MS));
	/* post one, so that no free slot ends poll() */
	for (i = 0; i < 100; i++) {
		ASSERT_EQ(0, zc_put_seq(&self->a, 60, i));
		ASSERT_LE(0, poll_for(self->a.s.fd, POLLIN, 0));
		ASSERT_EQ(0, take_seq(&self->b, i, WAIT_MS));
	}
}

/* Nothing to read and no room to write: poll() times out, and not earlier. */
TEST_F(wake, poll_timeout)
{
	uint64_t start = now_ms();
	unsigned int i;

	EXPECT_EQ(0, poll_for(self->b.s.fd, POLLIN, 300));
	EXPECT_LE(290U, now_ms() - start);
	/* a device that is down sends nothing */
	ASSERT_EQ(0, set_up(if_a, false));
	socket_error(self->a.s.fd);
	for (i = 0; i < self->a.s.tx.size; i++)
		ASSERT_EQ(0, zc_put_seq(&self->a, 60, i));
	start = now_ms();
	EXPECT_EQ(0, poll_for(self->a.s.fd, POLLOUT, 300));
	EXPECT_LE(290U, now_ms() - start);
	ASSERT_EQ(0, set_up(if_a, true));
	EXPECT_EQ(POLLOUT, poll_for(self->a.s.fd, POLLOUT, WAIT_MS));
	for (i = 0; i < self->a.s.tx.size; i++)
		ASSERT_EQ(0, take_seq(&self->b, i, WAIT_MS));
}

/* ---- kicks ---- */

/* An idle ring needs a kick, and is not processed before it. */
TEST_F(wake, idle_needs_a_kick)
{
	int i;

	for (i = 0; i < 50; i++) {
		uint64_t end = now_ms() + WAIT_MS;

		/* the kernel may look for a little longer than it needs to */
		while (!need_wakeup(&self->a) && now_ms() < end)
			usleep(100);
		ASSERT_TRUE(need_wakeup(&self->a));
		ASSERT_EQ(0, zc_put_seq(&self->a, 60, i));
		ASSERT_TRUE(need_wakeup(&self->a));
		if (i < 3) {
			usleep(50000);
			EXPECT_EQ(0U, zc_reap(&self->a));
		}
		ASSERT_EQ(0, zc_kick(&self->a));
		ASSERT_EQ(0, take_seq(&self->b, i, WAIT_MS));
		ASSERT_TRUE(zc_reap_all(&self->a, WAIT_MS));
	}
}

struct shared {
	uint32_t received;
	uint32_t posted;
	uint32_t kicks;			/* system calls of the sender */
	uint32_t silent;		/* posts without a system call */
	bool stop;
};

/*
 * Kicks exactly when it is requested. A lost wake-up would leave the last
 * packets unsent. Bursts of all lengths, with pauses of all lengths between
 * them.
 */
static int send_by_need(struct zc *z, uint32_t total, uint32_t window,
			struct shared *sh)
{
	uint32_t seq = 0, x = 4711;
	unsigned int n, spin;
	char buf[60];

	fill_packet(buf, sizeof(buf), 0);
	while (seq < total) {
		x = x * 1664525 + 1013904223;
		zc_reap(z);
		for (n = 0; n < 1 + (x >> 28) && seq < total; n++) {
			if (seq - __atomic_load_n(&sh->received,
						  __ATOMIC_ACQUIRE) >= window)
				break;
			memcpy(buf + ETH_HLEN, &seq, sizeof(seq));
			if (zc_put(z, buf, sizeof(buf), 2048, 256))
				break;
			seq++;
			if (!need_wakeup(z)) {
				sh->silent++;
				continue;
			}
			sh->kicks++;
			if (zc_kick(z))
				return 1;
		}
		if (!n)
			sched_yield();
		for (spin = x >> 12 & 0x3ff; spin; spin--)
			__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (!(x >> 8 & 0xff))
			usleep(x >> 16 & 0xff);
	}
	if (!zc_reap_all(z, WAIT_MS))
		return 2;
	return z->strays || z->s.errors[0] != total ? 3 : 0;
}

/* The receiver busy polls the queue only some of the time, so that the queue
 * becomes idle at any point of the sender.
 */
TEST_F_TIMEOUT(wake, no_kick_lost, 300)
{
	uint32_t total = pv4_fast() ? 10000 : 200000, seq, x = 815;
	struct shared *sh = shared_memory(4096);
	struct tpacket4_desc d;
	pid_t pid;
	char c;

	TH_LOG("%u packets%s", total,
	       pv4_fast() ? " (a debug kernel, or TPACKET4_FAST)" : "");
	ASSERT_TRUE(sh != MAP_FAILED);
	ASSERT_EQ(0, set_sockopt(self->b.s.fd, SO_BUSY_POLL, 20));
	pid = pv4_fork();
	ASSERT_LE(0, pid);
	/* on one CPU, the queue is rarely running when a packet is posted */
	pin_to_cpu(!pid);
	if (!pid)
		_exit(send_by_need(&self->a, total, self->b.s.rx.size, sh));
	for (seq = 0; seq < total; seq++) {
		uint64_t end = now_ms() + WAIT_MS;
		unsigned int looks = 0, polls;

		x = x * 1664525 + 1013904223;
		polls = x >> 28 < 4 ? 0 : x >> 22 & 0x3f;
		while (!zc_take(&self->b, &self->b.s.rx, &d)) {
			/* from now on it only reads the ring: the sender has to
			 * kick
			 */
			if (polls) {
				recv(self->b.s.fd, &c, 1, MSG_DONTWAIT);
				polls--;
			}
			if (++looks % 64)
				continue;
			sched_yield();
			ASSERT_GT(end, now_ms()) {
				TH_LOG("packet %u was not received", seq);
			}
		}
		ASSERT_EQ(0, d.error);
		ASSERT_EQ(seq, packet_seq(pv4_frame(&self->b.s, d.idx) +
					  d.offset));
		zc_rx_post(&self->b, d.idx);
		__atomic_store_n(&sh->received, seq + 1, __ATOMIC_RELEASE);
	}
	EXPECT_EQ(0, wait_for_exit(pid));
	TH_LOG("%u kicks, %u packets without one", sh->kicks, sh->silent);
	/* Posts without a kick depend on two CPUs running at the same time,
	 * which a virtual machine does not guarantee. The prefer variants of
	 * busy test this.
	 */
	EXPECT_LT(0U, sh->kicks);
}

/* A program without the status page calls sendto() after each post. */
TEST_F(wake, sendto_alone)
{
	unsigned int i, k, n = 0, rounds = pv4_fast() ? 50 : 500;
	struct pv4 *a = &self->a.s;
	size_t len = (a->rx.size + a->tx.size) * sizeof(struct tpacket4_desc);

	/* the page is not mapped */
	munmap(a->map, a->map_len);
	a->map_len = len;
	a->map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, a->fd, 0);
	ASSERT_TRUE(a->map != MAP_FAILED);
	a->rx.desc = a->map;
	a->tx.desc = a->rx.desc + a->rx.size;
	self->a.status = NULL;
	for (i = 0; i < rounds; i++) {
		for (k = 0; k < 1 + i % 7; k++) {
			ASSERT_EQ(0, zc_put_seq(&self->a, 60, n + k));
			ASSERT_EQ(0, sendto(a->fd, NULL, 0, MSG_DONTWAIT, NULL,
					    0));
		}
		for (k = 0; k < 1 + i % 7; k++, n++)
			ASSERT_EQ(0, take_seq(&self->b, n, WAIT_MS));
	}
	ASSERT_TRUE(zc_reap_all(&self->a, WAIT_MS));
	EXPECT_TRUE(zc_books_balance(&self->a, NULL));
}

/* In copy mode, a kick is always needed. */
TEST_F(wake, copy_mode_always)
{
	unsigned int i;

	ASSERT_EQ(0, zc_set(&self->a, 0));
	ASSERT_LE(0, zc_all_back(&self->a, ECANCELED, WAIT_MS));
	for (i = 0; i < 50; i++) {
		EXPECT_TRUE(need_wakeup(&self->a));
		ASSERT_EQ(0, zc_put_seq(&self->a, 60, i));
		EXPECT_TRUE(need_wakeup(&self->a));
		ASSERT_EQ(0, zc_kick(&self->a));
		ASSERT_EQ(0, take_seq(&self->b, i, WAIT_MS));
	}
}

/* ---- busy polling ---- */

enum busy { BY_POLL, BY_SENDTO, BY_RECVMSG };

FIXTURE(busy) {
	struct zc a, b;
	struct shared *sh;
	int sysctl;			/* net.core.busy_poll */
	char old[16];			/* its value */
};

FIXTURE_VARIANT(busy) {
	enum busy how;
	bool prefer;
};

FIXTURE_VARIANT_ADD(busy, poll) { .how = BY_POLL };

FIXTURE_VARIANT_ADD(busy, sendto) { .how = BY_SENDTO };

FIXTURE_VARIANT_ADD(busy, recvmsg) { .how = BY_RECVMSG };

FIXTURE_VARIANT_ADD(busy, prefer_poll) { .how = BY_POLL, .prefer = true };

FIXTURE_VARIANT_ADD(busy, prefer_sendto) { .how = BY_SENDTO, .prefer = true };

FIXTURE_VARIANT_ADD(busy, prefer_recvmsg) {
	.how = BY_RECVMSG, .prefer = true,
};

FIXTURE_SETUP(busy)
{
	struct zc_cfg cfg = { .ifname = if_a, .n = 1 };
	ssize_t n;
	int fd;

	/* the sysctl is global and not visible in other namespaces */
	self->sysctl = open("/proc/sys/net/core/busy_poll", O_RDWR);
	ASSERT_LE(0, self->sysctl);
	n = read(self->sysctl, self->old, sizeof(self->old) - 1);
	ASSERT_LT(0, n);
	pv4_net_setup(_metadata);
	if (variant->prefer)
		ASSERT_EQ(0, defer_irqs(if_b, "100", "20000000"));
	ASSERT_EQ(0, zc_open(&self->a, &cfg));
	cfg.ifname = if_b;
	ASSERT_EQ(0, zc_open(&self->b, &cfg));
	fd = self->b.s.fd;
	ASSERT_EQ(0, set_sockopt(fd, SO_BUSY_POLL, 2000));
	ASSERT_EQ(0, set_sockopt(fd, SO_BUSY_POLL_BUDGET, 64));
	if (variant->prefer)
		ASSERT_EQ(0, set_sockopt(fd, SO_PREFER_BUSY_POLL, 1));
	self->sh = shared_memory(4096);
	ASSERT_TRUE(self->sh != MAP_FAILED);
	/* last, as a failed setup is not torn down */
	ASSERT_EQ(2, pwrite(self->sysctl, "50", 2, 0));
}

FIXTURE_TEARDOWN(busy)
{
	zc_close(&self->a);
	zc_close(&self->b);
	if (pwrite(self->sysctl, self->old, strlen(self->old), 0) < 0)
		TH_LOG("net.core.busy_poll is not changed");
	close(self->sysctl);
}

/* One poll of the receiver. */
static void busy_poll(int fd, enum busy how)
{
	char byte;

	switch (how) {
	case BY_POLL:
		poll_for(fd, POLLIN, 1);
		break;
	case BY_SENDTO:
		sendto(fd, NULL, 0, MSG_DONTWAIT, NULL, 0);
		break;
	case BY_RECVMSG:
		recv(fd, &byte, 1, MSG_DONTWAIT);
		break;
	}
}

/* A sender whose only system call is the first kick */
static int send_silently(struct zc *z, uint32_t total, struct shared *sh)
{
	uint32_t seq = 0;
	char buf[60];

	fill_packet(buf, sizeof(buf), 0);
	while (seq < total) {
		zc_reap(z);
		if (seq - __atomic_load_n(&sh->received, __ATOMIC_ACQUIRE) >=
		    64)
			continue;
		memcpy(buf + ETH_HLEN, &seq, sizeof(seq));
		if (zc_put(z, buf, sizeof(buf), 2048, 256))
			continue;
		seq++;
		if (need_wakeup(z))
			sh->kicks++;
		else
			sh->silent++;
		if (__atomic_load_n(&sh->stop, __ATOMIC_RELAXED))
			return 1;
	}
	while (z->s.tx.used != z->s.tx.avail)
		if (!zc_reap(z) && __atomic_load_n(&sh->stop, __ATOMIC_RELAXED))
			return 2;
	return z->strays ? 3 : 0;
}

/* The receiver's CPU does all the work, the sender only writes to memory. */
TEST_F_TIMEOUT(busy, sender_without_syscalls, 120)
{
	uint32_t total = pv4_fast() ? 500 : 5000, seq;
	struct zc *b = &self->b;
	struct tpacket4_desc d;
	uint64_t end;
	int status;
	pid_t pid;

	/* the first packet gives the socket its NAPI ID */
	ASSERT_EQ(0, zc_send_seq(&self->a, 60, 0));
	ASSERT_EQ(0, take_seq(b, 0, WAIT_MS));
	ASSERT_TRUE(zc_reap_all(&self->a, WAIT_MS));
	pid = pv4_fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		pin_to_cpu(1);
		_exit(send_silently(&self->a, total, self->sh));
	}
	pin_to_cpu(0);
	for (seq = 0; seq < total; seq++) {
		end = now_ms() + WAIT_MS;
		while (!zc_take(b, &b->s.rx, &d)) {
			busy_poll(b->s.fd, variant->how);
			if (now_ms() < end)
				continue;
			self->sh->stop = true;
			ASSERT_GT(end, now_ms()) {
				TH_LOG("packet %u was not received", seq);
			}
		}
		ASSERT_EQ(0, d.error);
		ASSERT_EQ(seq, packet_seq(pv4_frame(&b->s, d.idx) + d.offset));
		zc_rx_post(b, d.idx);
		__atomic_store_n(&self->sh->received, seq + 1,
				 __ATOMIC_RELEASE);
	}
	/* return the last received frames */
	end = now_ms() + WAIT_MS;
	while (waitpid(pid, &status, WNOHANG) == 0) {
		busy_poll(b->s.fd, variant->how);
		if (now_ms() < end)
			continue;
		self->sh->stop = true;
		ASSERT_GT(end, now_ms()) {
			TH_LOG("frames of the sender are not returned");
		}
	}
	EXPECT_EQ(0, status);
	TH_LOG("the flag was clear for %u of %u packets", self->sh->silent,
	       total);
	/* Otherwise, this depends on two CPUs running at the same time. */
	if (variant->prefer)
		EXPECT_LT(0U, self->sh->silent);
}

/* Both ends busy poll their own queues, and send to each other. */
TEST_F_TIMEOUT(busy, ping_pong, 120)
{
	uint32_t total = pv4_fast() ? 200 : 1000, seq;
	struct zc *a = &self->a, *b = &self->b, *z;
	struct tpacket4_desc d;
	uint64_t end;
	pid_t pid;

	ASSERT_EQ(0, set_sockopt(a->s.fd, SO_BUSY_POLL, 2000));
	if (variant->prefer)
		ASSERT_EQ(0, set_sockopt(a->s.fd, SO_PREFER_BUSY_POLL, 1));
	pid = pv4_fork();
	ASSERT_LE(0, pid);
	z = pid ? b : a;
	pin_to_cpu(pid ? 0 : 1);
	for (seq = 0; seq < total; seq++) {
		end = now_ms() + WAIT_MS;
		if (!pid) {
			if (zc_put_seq(z, 60, seq) ||
			    (need_wakeup(z) && zc_kick(z)))
				_exit(1);
		}
		while (!zc_take(z, &z->s.rx, &d)) {
			busy_poll(z->s.fd, variant->how);
			if (now_ms() < end)
				continue;
			if (!pid)
				_exit(2);
			ASSERT_GT(end, now_ms()) {
				TH_LOG("packet %u was not received", seq);
			}
		}
		if (packet_seq(pv4_frame(&z->s, d.idx) + d.offset) != seq) {
			if (!pid)
				_exit(3);
			ASSERT_EQ(seq, packet_seq(pv4_frame(&z->s, d.idx) +
						  d.offset));
		}
		zc_rx_post(z, d.idx);
		if (pid) {
			ASSERT_EQ(0, zc_put_seq(z, 60, seq));
			if (need_wakeup(z))
				ASSERT_EQ(0, zc_kick(z));
		}
	}
	if (!pid)
		_exit(z->strays ? 4 : 0);
	/* its last kick may wait for this end's NAPI */
	EXPECT_EQ(0, wait_for_exit(pid));
	EXPECT_EQ(0U, b->strays);
}

TEST_HARNESS_MAIN
