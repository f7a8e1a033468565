// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4, zero-copy mode: enabled and disabled under load, and processes
 * that share a queue or an area, compete for one, or are killed.
 */
#include "zc_life.h"

/* ---- on and off ---- */

TEST_F_TIMEOUT(life, on_and_off_1000, 300)
{
	int i, n, rounds = pv4_fast() ? 150 : 1000;
	struct zc *b = &self->p.b;
	unsigned int canceled = 0;

	TH_LOG("%d times%s", rounds,
	       pv4_fast() ? " (a debug kernel, or TPACKET4_FAST)" : "");
	start_load(_metadata, &self->p);
	ASSERT_TRUE(flows(&self->p));
	for (i = 0; i < rounds; i++) {
		ASSERT_EQ(0, zc_set(b, 0));
		n = zc_all_back(b, ECANCELED, WAIT_MS);
		ASSERT_LE(0, n);
		ASSERT_TRUE(zc_books_closed(b));
		ASSERT_EQ(0, zc_get(b));
		canceled += n;
		zc_refill(b);
		ASSERT_EQ(0, zc_set(b, 1));
		ASSERT_EQ(1, zc_get(b));
		if (!(i % 50))
			ASSERT_TRUE(flows(&self->p));
	}
	ASSERT_TRUE(flows(&self->p));
	EXPECT_LT(0U, canceled);
	stop_load(_metadata, &self->p);
	expect_intact(_metadata, &self->p);
}

/* On the sender's side, the frames are with the NAPI of the other end. */
TEST_F_TIMEOUT(life, sender_on_and_off, 300)
{
	int i, k, n, rounds = pv4_fast() ? 50 : 300;
	unsigned int canceled = 0, sent = 0;
	struct zc *a = &self->p.a;

	for (i = 0; i < rounds; i++) {
		for (k = 0; k < 100; k++) {
			if (zc_put_seq(a, seq_len(sent), sent))
				break;
			sent++;
			if (!(k % 32))
				zc_kick(a);
		}
		zc_kick(a);
		ASSERT_EQ(0, zc_set(a, 0));
		n = zc_all_back(a, ECANCELED, WAIT_MS);
		ASSERT_LE(0, n);
		canceled += n;
		ASSERT_TRUE(zc_books_closed(a));
		for (k = 0; k < 256 && a->s.nr_spare > 200; k++)
			zc_rx_post(a, a->s.spare[--a->s.nr_spare]);
		ASSERT_EQ(0, zc_set(a, 1));
		ASSERT_LE(0, receive(&self->p, 1));
	}
	TH_LOG("%u packets, %u descriptors canceled", sent, canceled);
	EXPECT_LT(0U, self->p.next);
	expect_intact(_metadata, &self->p);
}

/* A slow filter */
static int slow_filter(void)
{
	const struct bpf_insn prog[] = {
		MOV_K(BPF_REG_6, 0),
		CALL(BPF_FUNC_ktime_get_ns),
		ADD_K(BPF_REG_6, 1),
		JMP_K(BPF_JLT, BPF_REG_6, 250000, -3),
		MOV_K(BPF_REG_0, 0xffff),
		EXIT,
	};
	/* not bpf_load(): the verifier's log of it is long */
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
		.insn_cnt = ARRAY_SIZE(prog), .insns = (uintptr_t)prog,
		.license = (uintptr_t)"GPL",
	};

	return bpf_call(BPF_PROG_LOAD, &attr);
}

static void send_plain_for_ever(int fd)
{
	char pkt[100];

	fill_packet(pkt, sizeof(pkt), 0);
	pin_to_cpu(1);
	while (send(fd, pkt, sizeof(pkt), 0) != 1)
		;
}

/* When the device goes down, it unregisters the socket's hook, and does not
 * wait for packets that are being received. They must not find the ring in
 * zero-copy mode.
 */
TEST_F_TIMEOUT(life, on_and_off_while_down, 300)
{
	int i, plain, prog, rounds = pv4_fast() ? 20 : 60;
	uint64_t end, stop = now_ms() + 120000;
	struct zc *b = &self->p.b;
	pid_t pid;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "needs two CPUs");
	zc_close(&self->p.a);
	ASSERT_EQ(0, zc_set(b, 0));
	ASSERT_LE(0, zc_all_back(b, ECANCELED, WAIT_MS));
	zc_refill(b);
	prog = slow_filter();
	ASSERT_LE(0, prog);
	ASSERT_EQ(0, setsockopt(b->s.fd, SOL_SOCKET, SO_ATTACH_BPF, &prog,
				sizeof(prog)));
	plain = plain_socket(_metadata, if_a, 0);
	pid = pv4_fork();
	ASSERT_LE(0, pid);
	if (!pid)
		send_plain_for_ever(plain);
	pin_to_cpu(0);
	/* With KCSAN, the filter can take seconds, and each round waits for it
	 * several times.
	 */
	for (i = 0; i < rounds && now_ms() < stop; i++) {
		end = now_ms() + WAIT_MS;
		while (zc_recv(b, self->p.buf, BUF_SIZE, 1) <= 0)
			ASSERT_GT(end, now_ms());
		ASSERT_EQ(0, set_up(if_b, false));
		ASSERT_EQ(0, zc_set(b, 1));
		ASSERT_EQ(0, zc_set(b, 0));
		ASSERT_LE(0, zc_all_back(b, ECANCELED, WAIT_MS)) {
			TH_LOG("round %d: descriptors are lost", i);
		}
		ASSERT_TRUE(zc_books_closed(b));
		zc_refill(b);
		ASSERT_EQ(0, set_up(if_b, true));
	}
	TH_LOG("%d times", i);
	kill(pid, SIGKILL);
	close(plain);
}

/* Two processes compete for a queue: at most one has it at any time. */
TEST_F_TIMEOUT(life, compete_for_queue, 120)
{
	int ms = pv4_fast() ? 1000 : 2000, i, won, status;
	uint32_t *owner = shared_memory(4096);
	pid_t pid[3];

	ASSERT_TRUE(owner != MAP_FAILED);
	zc_close(&self->p.b);
	start_load(_metadata, &self->p);
	for (i = 0; i < 3; i++) {
		pid[i] = pv4_fork();
		ASSERT_LE(0, pid[i]);
		if (!pid[i]) {
			struct zc_cfg cfg = { .ifname = if_b };
			int n = 0, err;
			uint64_t end;
			struct zc z;

			if (zc_open(&z, &cfg))
				_exit(255);
			z.min_offset = 0;
			end = now_ms() + ms;
			/* on a slow machine until each has had it twice */
			while (now_ms() < end ||
			       (n < 2 && now_ms() < end + WAIT_MS)) {
				err = zc_set(&z, 1);
				if (err && err != -EBUSY)
					_exit(254);
				if (err)
					continue;
				if (__atomic_add_fetch(owner, 1,
						       __ATOMIC_SEQ_CST) != 1)
					_exit(253);
				n += n < 200;
				discard(&z, self->p.buf);
				__atomic_sub_fetch(owner, 1, __ATOMIC_SEQ_CST);
				if (zc_set(&z, 0))
					_exit(252);
				if (zc_all_back(&z, ECANCELED, WAIT_MS) < 0 ||
				    !zc_books_closed(&z))
					_exit(251);
				zc_refill(&z);
			}
			_exit(n);
		}
	}
	for (won = 0, i = 0; i < 3; i++) {
		status = wait_for_exit(pid[i]);
		EXPECT_LE(0, status);
		EXPECT_GT(250, status);
		won += status;
	}
	TH_LOG("taken %d times", won);
	EXPECT_LT(3, won);
	stop_load(_metadata, &self->p);
}

/* ---- processes ---- */

/* Killed while using it; the next process finds the queue free. */
TEST_F_TIMEOUT(life, kill_sender, 120)
{
	int i, rounds = pv4_fast() ? 6 : 15;

	for (i = 0; i < rounds; i++) {
		if (i)
			ASSERT_EQ(0, open_loose(&self->p.a, if_a));
		self->p.next = 0;
		self->p.load->sent = 0;
		start_load(_metadata, &self->p);
		ASSERT_TRUE(flows(&self->p));
		usleep(i * 300);
		ASSERT_EQ(0, kill(self->p.pid, SIGKILL));
		ASSERT_EQ(-SIGKILL, wait_for_exit(self->p.pid));
		/* what it has sent before is older than what is next */
		while (receive(&self->p, QUIET_MS / 4) > 0)
			;
		EXPECT_TRUE(zc_books_balance(&self->p.b, NULL));
	}
	expect_intact(_metadata, &self->p);
}

TEST_F_TIMEOUT(life, kill_receiver, 120)
{
	int i, rounds = pv4_fast() ? 6 : 15;
	uint32_t *got = shared_memory(4096);
	uint64_t end;
	pid_t pid;

	ASSERT_TRUE(got != MAP_FAILED);
	zc_close(&self->p.b);
	start_load(_metadata, &self->p);
	for (i = 0; i < rounds; i++) {
		*got = 0;
		pid = pv4_fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			if (open_loose(&self->p.b, if_b))
				_exit(1);
			for (;;) {
				int n = receive(&self->p, 5);

				if (n < 0)
					_exit(2);
				__atomic_add_fetch(got, n, __ATOMIC_RELAXED);
			}
		}
		end = now_ms() + WAIT_MS;
		while (__atomic_load_n(got, __ATOMIC_RELAXED) < 50 &&
		       now_ms() < end)
			usleep(1000);
		EXPECT_LE(50U, *got);
		usleep(i * 300);
		ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(-SIGKILL, wait_for_exit(pid));
	}
	stop_load(_metadata, &self->p);
}

/* fork(): the queue is released with the last fd of the socket. */
TEST_F(life, rings_after_fork)
{
	struct zc other;
	pid_t pid;
	int p[2];
	char c;

	ASSERT_EQ(0, pipe(p));
	start_load(_metadata, &self->p);
	ASSERT_TRUE(flows(&self->p));
	pid = pv4_fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		close(p[1]);
		if (read(p[0], &c, 1) != 1)
			_exit(1);
		if (!flows(&self->p))
			_exit(2);
		_exit(zc_get(&self->p.b) == 1 ? 0 : 3);
	}
	close(p[0]);
	/* this process's part of it: memory and descriptor */
	zc_close(&self->p.b);
	EXPECT_EQ(-EBUSY, open_loose(&other, if_b));
	zc_close(&other);
	ASSERT_EQ(1, write(p[1], "x", 1));
	EXPECT_EQ(0, wait_for_exit(pid));
	close(p[1]);
	EXPECT_EQ(0, open_loose(&other, if_b));
	zc_close(&other);
	stop_load(_metadata, &self->p);
}

/* Opens a socket on the second half of the area, with its tracking data. */
static int open_part(struct zc *z, struct zc *owner, const char *ifname)
{
	struct zc_cfg cfg = {
		.ifname = ifname, .n = 1, .area = owner, .part = 1,
	};

	return zc_open(z, &cfg);
}

#define AREA_FRAMES	(4 * pv4_min_descs())

/*
 * The other process gets the area and its memory, with the tracking data behind
 * the frames, over a UNIX socket. It sends one packet on if_a per byte that it
 * reads, and reports which frame it has sent.
 */
static int peer_main(int sock, int total)
{
	size_t len = AREA_FRAMES * 2048 + AREA_FRAMES;
	struct zc owner = { 0 }, z;
	struct tpacket4_desc d;
	int fds[2], i;

	if (recv_fds(sock, fds, 2))
		return 1;
	owner.s.fd = fds[0];
	owner.s.frames = AREA_FRAMES;
	owner.s.area = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED,
			    fds[1], 0);
	if (owner.s.area == MAP_FAILED)
		return 2;
	owner.held = (void *)(owner.s.area + AREA_FRAMES * 2048);
	if (open_part(&z, &owner, if_a))
		return 3;
	/* the ring holds the area, so its first socket can be closed */
	close(fds[0]);
	close(fds[1]);
	for (i = 0; i < total; i++) {
		d = (struct tpacket4_desc) {
			.idx = z.s.spare[--z.s.nr_spare], .offset = 300,
			.len = 1500,
		};
		fill_packet(pv4_frame(&z.s, d.idx) + 300, 1500, i);
		zc_post(&z, &z.s.tx, &d, 1);
		if (zc_kick(&z))
			return 4;
		if (send(sock, &d.idx, sizeof(d.idx), 0) != sizeof(d.idx))
			return 5;
		if (!zc_take_wait(&z, &z.s.tx, &d, WAIT_MS) || d.error)
			return 6;
		z.s.spare[z.s.nr_spare++] = d.idx;
		/* the next one when this has been seen */
		if (recv(sock, &d, 1, 0) != 1)
			return 7;
	}
	return z.strays ? 8 : 0;
}

/* Packets between unrelated processes are not copied. */
TEST_F(life, area_of_two_processes)
{
	size_t len = AREA_FRAMES * 2048 + AREA_FRAMES;
	struct zc owner = { 0 }, *b = &self->p.b;
	int sv[2], fds[2], i, total = 400;
	struct tpacket4_desc d;
	pid_t pid;
	__u64 idx;

	zc_close(&self->p.a);
	zc_close(b);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv));
	pid = pv4_fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		close(sv[0]);
		_exit(peer_main(sv[1], total));
	}
	close(sv[1]);
	fds[0] = socket(AF_PACKET, SOCK_RAW, 0);
	fds[1] = memfd_create("tpacket4", MFD_CLOEXEC);
	ASSERT_LE(0, fds[0]);
	ASSERT_LE(0, fds[1]);
	ASSERT_EQ(0, ftruncate(fds[1], len));
	owner.s.fd = fds[0];
	owner.s.frames = AREA_FRAMES;
	owner.s.area = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED,
			    fds[1], 0);
	ASSERT_TRUE(owner.s.area != MAP_FAILED);
	owner.held = (void *)(owner.s.area + AREA_FRAMES * 2048);
	ASSERT_EQ(0, pv4_memreg_flags(fds[0], owner.s.area, AREA_FRAMES * 2048,
				      2048, 0, TP4_MEMREG_SHARED));
	ASSERT_EQ(0, zc_open(b, &(struct zc_cfg) {
		.ifname = if_b, .n = 1, .area = &owner, .part = 0,
	}));
	ASSERT_EQ(0, send_fds(sv[0], fds, 2));
	close(fds[0]);
	close(fds[1]);
	for (i = 0; i < total; i++) {
		ASSERT_EQ((ssize_t)sizeof(idx),
			  recv(sv[0], &idx, sizeof(idx), 0));
		ASSERT_TRUE(zc_take_wait(b, &b->s.rx, &d, WAIT_MS));
		ASSERT_EQ(0, d.error);
		/* the same frame and offset */
		EXPECT_EQ(idx, d.idx);
		EXPECT_EQ(300, d.offset);
		EXPECT_TRUE(packet_ok(pv4_frame(&b->s, d.idx) + d.offset,
				      d.len, 1500, i));
		zc_rx_post(b, d.idx);
		ASSERT_EQ(1, send(sv[0], "x", 1, 0));
	}
	EXPECT_EQ(0, wait_for_exit(pid));
	EXPECT_EQ(0U, b->strays);
	close(sv[0]);
}

TEST_HARNESS_MAIN
