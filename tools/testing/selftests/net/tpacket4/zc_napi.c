// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4, zero-copy mode: NAPI and waiting senders. Packets that cannot
 * be sent use no CPU time, and no sender waits for them forever. A budget of
 * one packet is shared fairly. An unbound queue pair has no NAPI.
 */
#include "diag.h"
#include "netdev.h"
#include "task.h"
#include "zc.h"

#include <linux/virtio_net.h>
#include <sys/mount.h>
#include <sys/stat.h>

FIXTURE(napi) {
	struct zc a, b;			/* on if_a and if_b */
	char *buf;
	char sysfs[32];			/* of this network namespace */
};

FIXTURE_VARIANT(napi) {
	bool stack;			/* if_b is the stack's */
};

FIXTURE_VARIANT_ADD(napi, to_zc) { .stack = false };

FIXTURE_VARIANT_ADD(napi, to_stack) { .stack = true };

static int mount_sysfs(char *dir)
{
	snprintf(dir, 32, "/tmp/tpacket4.XXXXXX");
	if (!mkdtemp(dir) || unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("sysfs", dir, "sysfs", 0, NULL))
		return -errno;
	return 0;
}

static int set_sysfs(const char *dir, const char *ifname, const char *file,
		     const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/class/net/%s/%s", dir, ifname, file);
	return write_file(path, text);
}

FIXTURE_SETUP(napi)
{
	struct zc_cfg cfg = { .ifname = if_a, .n = 1 };

	pv4_net_setup(_metadata);
	ASSERT_EQ(0, mount_sysfs(self->sysfs));
	ASSERT_EQ(0, zc_open(&self->a, &cfg));
	cfg.ifname = if_b;
	cfg.n = !variant->stack;
	ASSERT_EQ(0, zc_open(&self->b, &cfg));
	self->buf = malloc(BUF_SIZE);
	ASSERT_TRUE(!!self->buf);
}

FIXTURE_TEARDOWN(napi)
{
	zc_close(&self->a);
	zc_close(&self->b);
	free(self->buf);
	umount(self->sysfs);
	rmdir(self->sysfs);
}

#define NO_FRAME	0x100000

static void post_one_desc(struct zc *z, __u64 idx, unsigned int len, __u8 flags)
{
	struct tpacket4_desc d = { .idx = idx, .len = len, .flags = flags };

	/* frames returned from these are not used for sending */
	if (idx == NO_FRAME)
		z->s.nr_spare = 0;
	zc_post(z, &z->s.tx, &d, 1);
}

/* ---- incomplete chains ---- */

/* Clock ticks of all CPUs: total, or in softirqs only */
static unsigned long long ticks(bool softirq)
{
	unsigned long long v[8] = { 0 }, sum = 0;
	FILE *f = fopen("/proc/stat", "r");
	int i, n;

	if (!f)
		return 0;
	n = fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", v, v + 1,
		   v + 2, v + 3, v + 4, v + 5, v + 6, v + 7);
	fclose(f);
	for (i = 0; i < n; i++)
		sum += v[i];
	return softirq ? v[6] : sum;
}

/* Returns the percentage of one CPU that softirqs use while this program
 * sleeps.
 */
static unsigned int softirq_load(unsigned int ms)
{
	unsigned long long busy = ticks(true), all = ticks(false);

	usleep(ms * 1000);
	busy = ticks(true) - busy;
	all = ticks(false) - all;
	return all ? 100 * busy * sysconf(_SC_NPROCESSORS_ONLN) / all : 0;
}

static void expect_quiet(struct __test_metadata *_metadata, const char *what,
			 unsigned int idle)
{
	unsigned int load = softirq_load(1000);

	TH_LOG("%s: %u %% of a CPU, idle %u %%", what, load, idle);
	EXPECT_GT(idle + 20, load);
}

/* The end of the chain may be posted at any time, or never. */
TEST_F_TIMEOUT(napi, incomplete_chain_is_no_work, 120)
{
	unsigned int idle, i, len = 14 + 4 + 86;
	struct zc *a = &self->a;
	char pkt[256];

	idle = softirq_load(1000);
	for (i = 0; i < 3; i++) {
		unsigned int at = a->s.rx.size + 8 * i;

		/* alone, behind a complete packet, and several descriptors */
		fill_packet(pkt, len, 2 * i);
		if (i == 1) {
			memcpy(pv4_frame(&a->s, at + 4), pkt, len);
			post_one_desc(a, at + 4, len, 0);
		}
		fill_packet(pkt, len, 2 * i + 1);
		memcpy(pv4_frame(&a->s, at), pkt, 60);
		post_one_desc(a, at, 60, TP4_PKT_CONT);
		if (i == 2) {
			memcpy(pv4_frame(&a->s, at + 1), pkt + 60, 20);
			post_one_desc(a, at + 1, 20, TP4_PKT_CONT);
			memcpy(pv4_frame(&a->s, at + 2), pkt + 80, 24);
		} else {
			memcpy(pv4_frame(&a->s, at + 2), pkt + 60, 44);
		}
		ASSERT_EQ(0, zc_kick(a));
		expect_quiet(_metadata, i == 0 ? "alone" : i == 1 ?
			     "behind a packet" : "two of three", idle);
		if (i == 1)
			ASSERT_TRUE(packet_ok(self->buf,
					      zc_recv(&self->b, self->buf,
						      BUF_SIZE, WAIT_MS),
					      len, 2 * i));
		/* complete it */
		post_one_desc(a, at + 2, i == 2 ? 24 : 44, 0);
		ASSERT_EQ(0, zc_kick(a));
		ASSERT_TRUE(packet_ok(self->buf,
				      zc_recv(&self->b, self->buf, BUF_SIZE,
					      WAIT_MS), len, 2 * i + 1));
		ASSERT_TRUE(zc_reap_all(a, WAIT_MS));
	}
	expect_quiet(_metadata, "all sent", idle);
	EXPECT_TRUE(zc_books_balance(a, NULL));
}

/* ---- waiting senders ---- */

/*
 * Otherwise, NAPI processes the queue before the sendto() that kicks has
 * started to wait.
 */
static void use_threads(struct __test_metadata *_metadata, const char *sysfs)
{
	ASSERT_EQ(0, set_sysfs(sysfs, if_b, "threaded", "1"));
}

static int set_sndtimeo(int fd, int seconds)
{
	struct timeval tv = { .tv_sec = seconds };

	return setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) ?
	       -errno : 0;
}

/* None of the posted descriptors is a valid packet. */
TEST_F_TIMEOUT(napi, send_invalid_descs, 120)
{
	unsigned int i, k, n = 0;
	struct zc *a = &self->a;
	uint64_t start;

	use_threads(_metadata, self->sysfs);
	/* without a wake-up, it returns only at the timeout */
	ASSERT_EQ(0, set_sndtimeo(a->s.fd, WAIT_MS / 1000));
	for (i = 0; i < 200; i++) {
		for (k = 0; k < 1 + i % 9; k++, n++)
			post_one_desc(a, NO_FRAME, 60, 0);
		start = now_ms();
		ASSERT_EQ(0, pv4_kick(&a->s, 0));
		ASSERT_GT(WAIT_MS, now_ms() - start) {
			TH_LOG("round %u: not woken", i);
		}
		ASSERT_EQ(1 + i % 9, zc_reap(a));
	}
	EXPECT_EQ(n, a->s.errors[EINVAL]);
}

/* Same for a process in poll() on a full ring, while another one kicks. */
TEST_F_TIMEOUT(napi, poll_invalid_descs, 120)
{
	struct zc *a = &self->a;
	unsigned int i;
	uint64_t start;

	use_threads(_metadata, self->sysfs);
	for (i = 0; i < 50; i++) {
		while (a->s.tx.avail - a->s.tx.used < a->s.tx.size)
			post_one_desc(a, NO_FRAME, 60, 0);
		start = now_ms();
		/* poll() kicks by itself */
		ASSERT_EQ(POLLOUT, poll_for(a->s.fd, POLLOUT, WAIT_MS));
		ASSERT_GT(WAIT_MS, now_ms() - start) {
			TH_LOG("round %u: not woken", i);
		}
		ASSERT_TRUE(zc_reap_all(a, WAIT_MS));
	}
}

/* Nanoseconds, as many as the kernel's word size allows */
#define FAR_AWAY	(sizeof(long) == 8 ? "100000000000" : "4000000000")

/* From now on if_b's NAPI is deferred by a long timer: packets are not
 * processed.
 */
static void hold_what_is_sent(struct __test_metadata *_metadata,
			      struct _test_data_napi *self)
{
	ASSERT_EQ(0, set_sysfs(self->sysfs, if_b, "napi_defer_hard_irqs",
			       "1000"));
	ASSERT_EQ(0, set_sysfs(self->sysfs, if_b, "gro_flush_timeout",
			       FAR_AWAY));
	/* this one starts the timer */
	ASSERT_EQ(0, zc_send_seq(&self->a, 100, 0));
	ASSERT_EQ(100, zc_recv(&self->b, self->buf, BUF_SIZE, WAIT_MS));
	ASSERT_TRUE(zc_reap_all(&self->a, WAIT_MS));
}

/* A process that posts a descriptor and sleeps until it is returned. */
static pid_t blocking_send(struct __test_metadata *_metadata, struct zc *z,
			   __u8 flags)
{
	pid_t pid = pv4_fork();

	if (!pid) {
		post_one_desc(z, z->s.rx.size, 60, flags);
		_exit(pv4_kick(&z->s, 0) < 0);
	}
	ASSERT_LE(0, pid);
	return pid;
}

static pid_t waiting_send(struct __test_metadata *_metadata,
			  struct _test_data_napi *self)
{
	pid_t pid;

	hold_what_is_sent(_metadata, self);
	pid = blocking_send(_metadata, &self->a, 0);
	ASSERT_EQ(-EAGAIN, exit_within(pid, QUIET_MS)) {
		TH_LOG("the send did not wait");
	}
	return pid;
}

/* An incomplete chain is not waited for, as it cannot be sent. */
TEST_F_TIMEOUT(napi, send_incomplete_chain, 120)
{
	pid_t pid = blocking_send(_metadata, &self->a, TP4_PKT_CONT);

	EXPECT_EQ(0, exit_within(pid, WAIT_MS));
	kill(pid, SIGKILL);
	EXPECT_TRUE(desc_is_kernels(pv4_slot(&self->a.s.tx, 0)));
}

/* mmap() and packet_diag take a lock that a sleeping sender must not hold. */
TEST_F_TIMEOUT(napi, waiting_send_blocks_nobody, 120)
{
	pid_t sender = waiting_send(_metadata, self), other;
	struct pv4 *s = &self->a.s;
	struct stat st;
	struct diag d;
	int i, err;

	ASSERT_EQ(0, fstat(s->fd, &st));
	for (i = 0; i < 2; i++) {
		other = pv4_fork();
		ASSERT_LE(0, other);
		/* refused under the lock, as the area is another process's */
		if (!other && !i)
			_exit(mmap(NULL, s->map_len, PROT_READ, MAP_SHARED,
				   s->fd, 0) != MAP_FAILED || errno != EACCES);
		if (!other) {
			err = diag_find(st.st_ino, &d);
			_exit(err && err != -ENOENT);
		}
		EXPECT_EQ(0, exit_within(other, WAIT_MS / 2)) {
			TH_LOG("%s waits for it", i ? "packet_diag" : "mmap()");
		}
	}
	EXPECT_EQ(-EAGAIN, exit_within(sender, 0)) {
		TH_LOG("they must not wake it");
	}
	/* the sender can be killed, and then releases the other one */
	kill(sender, SIGKILL);
	EXPECT_EQ(-SIGKILL, exit_within(sender, WAIT_MS));
}

/* Leaving the mode does not wait either, and wakes the sender. */
TEST_F_TIMEOUT(napi, zerocopy_off_ends_send, 120)
{
	pid_t sender = waiting_send(_metadata, self), other;

	other = pv4_fork();
	ASSERT_LE(0, other);
	if (!other)
		_exit(!!zc_set(&self->a, 0));
	EXPECT_EQ(0, exit_within(other, WAIT_MS / 2)) {
		TH_LOG("PACKET_ZEROCOPY waits for it");
	}
	EXPECT_EQ(0, exit_within(sender, WAIT_MS / 2));
	kill(sender, SIGKILL);
	/* the first slot was that of the packet before */
	EXPECT_FALSE(desc_is_kernels(pv4_slot(&self->a.s.tx, 1)));
}

/* So does the device going down. */
TEST_F_TIMEOUT(napi, down_ends_send, 120)
{
	pid_t sender = waiting_send(_metadata, self);

	ASSERT_EQ(0, set_up(if_a, false));
	EXPECT_EQ(1, exit_within(sender, WAIT_MS / 2)) {
		kill(sender, SIGKILL);
	}
	ASSERT_EQ(0, set_up(if_a, true));
}

/* An error that was not read does not affect a later send. */
TEST_F_TIMEOUT(napi, send_after_down_and_up, 120)
{
	pid_t sender;

	ASSERT_EQ(0, set_up(if_a, false));
	ASSERT_EQ(0, set_up(if_a, true));
	sender = waiting_send(_metadata, self);
	kill(sender, SIGKILL);
	EXPECT_EQ(-SIGKILL, exit_within(sender, WAIT_MS));
}

/* ---- GSO packets ---- */

#define TINY_HEADERS	54
#define TINY_PAYLOAD	30000
#define TINY_SEGMENT	8
#define NR_TINY		32

/* Ethernet, IPv4 and TCP, without checksums */
static const unsigned char tiny_headers[TINY_HEADERS] = {
	2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0,
	0x45, 0, 0x75, 0x58, 0, 0, 0, 0, 64, IPPROTO_TCP, 0, 0,
	10, 0, 0, 1, 10, 0, 0, 2,
	3, 0xe8, 7, 0xd0, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10,
};

/* Bytes of unreclaimable kernel memory */
static long kernel_memory(void)
{
	char line[128];
	long kb = 0;
	FILE *f = fopen("/proc/meminfo", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "SUnreclaim: %ld kB", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb * 1024;
}

/* All packets are queued when NAPI runs. It must only hold the segments of one
 * of them at a time.
 */
TEST_F_TIMEOUT(napi, gso_segment_memory, 120)
{
	const struct virtio_net_hdr hdr = {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
		.gso_size = TINY_SEGMENT, .hdr_len = TINY_HEADERS,
		.csum_start = TINY_HEADERS - 20, .csum_offset = 16,
	};
	const int len = sizeof(hdr) + TINY_HEADERS + TINY_PAYLOAD;
	long before, *most = shared_memory(4096);
	int i, plain, fd = self->b.s.fd, on = 1;
	uint64_t end = now_ms() + 3 * WAIT_MS;
	static char pkt[1 << 16];
	__s64 all, got;
	char byte;
	pid_t pid;

	if (variant->stack)
		SKIP(return, "the stack receives GSO packets");
	if (!access("/sys/kernel/debug/kmemleak", F_OK))
		SKIP(return, "a debug kernel delays freeing");
	ASSERT_TRUE(most != MAP_FAILED);
	plain = plain_socket(_metadata, if_a, 0);
	ASSERT_EQ(0, setsockopt(plain, SOL_PACKET, PACKET_VNET_HDR, &on,
				sizeof(on)));
	hold_what_is_sent(_metadata, self);
	ASSERT_EQ(0, set_sockopt(fd, SO_BUSY_POLL, 2000));
	ASSERT_EQ(0, set_sockopt(fd, SO_BUSY_POLL_BUDGET, 64));
	ASSERT_EQ(0, set_sockopt(fd, SO_PREFER_BUSY_POLL, 1));
	all = ethtool_stat(if_b, "rx_queue_0_xdp_packets") + NR_TINY;
	memcpy(pkt, &hdr, sizeof(hdr));
	memcpy(pkt + sizeof(hdr), tiny_headers, TINY_HEADERS);
	for (i = 0; i < NR_TINY; i++)
		ASSERT_EQ(len, send(plain, pkt, len, 0));

	before = kernel_memory();
	pid = pv4_fork();
	ASSERT_LE(0, pid);
	while (!pid) {
		long now = kernel_memory();

		if (now > *most)
			*most = now;
	}
	do {
		recv(fd, &byte, 1, MSG_DONTWAIT);
		while (zc_recv(&self->b, self->buf, BUF_SIZE, 0) > 0)
			;
		got = ethtool_stat(if_b, "rx_queue_0_xdp_packets");
	} while ((!*most || got < all) && now_ms() < end);
	kill(pid, SIGKILL);
	EXPECT_LE(all, got);
	TH_LOG("%ld KiB additional", (*most - before) / 1024);
	/* all segments together have 100 MiB */
	EXPECT_GT(before + (32 << 20), *most);
	close(plain);
}

/* ---- budget of one packet ---- */

/* A program that busy polls with a budget of one packet receives packets both
 * from a zero-copy socket and from the stack.
 */
TEST_F_TIMEOUT(napi, busy_poll_budget_of_one, 120)
{
	int plain, fd = self->b.s.fd, i, len, nr = 20, got[2] = { 0 };
	uint64_t end = now_ms() + WAIT_MS;
	char pkt[100], byte;
	uint32_t seq;

	if (variant->stack)
		SKIP(return, "copy mode does not busy poll");
	plain = plain_socket(_metadata, if_a, 0);
	/* only the program polls the queue: the timer is long */
	ASSERT_EQ(0, set_sysfs(self->sysfs, if_b, "napi_defer_hard_irqs",
			       "1000"));
	ASSERT_EQ(0, set_sysfs(self->sysfs, if_b, "gro_flush_timeout",
			       FAR_AWAY));
	ASSERT_EQ(0, set_sockopt(fd, SO_BUSY_POLL, 2000));
	ASSERT_EQ(0, set_sockopt(fd, SO_BUSY_POLL_BUDGET, 1));
	ASSERT_EQ(0, set_sockopt(fd, SO_PREFER_BUSY_POLL, 1));
	/* the first packet gives the socket its NAPI ID */
	ASSERT_EQ(0, zc_send_seq(&self->a, 100, 0));
	ASSERT_EQ(100, zc_recv(&self->b, self->buf, BUF_SIZE, WAIT_MS));
	for (i = 0; i < 10; i++)
		recv(fd, &byte, 1, MSG_DONTWAIT);
	for (i = 0; i < nr; i++) {
		fill_packet(pkt, sizeof(pkt), 1000 + i);
		ASSERT_EQ(100, send(plain, pkt, sizeof(pkt), 0));
		ASSERT_EQ(0, zc_send_seq(&self->a, 100, 2000 + i));
	}
	while (got[0] + got[1] < 2 * nr && now_ms() < end) {
		recv(fd, &byte, 1, MSG_DONTWAIT);
		len = zc_recv(&self->b, self->buf, BUF_SIZE, 0);
		if (len == -EAGAIN)
			continue;
		seq = packet_seq(self->buf);
		ASSERT_TRUE(packet_ok(self->buf, len, 100, seq));
		i = seq >= 2000;
		ASSERT_EQ((i ? 2000U : 1000U) + got[i], seq);
		got[i]++;
	}
	EXPECT_EQ(nr, got[0]) {
		TH_LOG("from the stack");
	}
	EXPECT_EQ(nr, got[1]) {
		TH_LOG("from the other socket");
	}
	close(plain);
}

/* ---- unbound queues ---- */

/* Their packets are not affected: NAPI is only enabled for the bound queue
 * pair.
 */
TEST_F_TIMEOUT(napi, no_napi_on_other_queues, 120)
{
	struct zc_cfg cfg = { .ifname = if_a, .n = 1 };
	struct zc z;

	zc_close(&self->a);
	zc_close(&self->b);
	self->a.s.fd = -1;
	self->b.s.fd = -1;
	ASSERT_EQ(0, set_channels(if_a, 2, 2));
	ASSERT_EQ(0, set_channels(if_b, 2, 2));
	ASSERT_EQ(0, count_napi(if_a));
	ASSERT_EQ(0, count_napi(if_b));
	ASSERT_EQ(0, zc_open(&z, &cfg));
	EXPECT_EQ(1, count_napi(if_a));
	EXPECT_EQ(1, count_napi(if_b));
	/* also after down and up */
	ASSERT_EQ(0, set_up(if_b, false));
	ASSERT_EQ(0, set_up(if_b, true));
	ASSERT_EQ(0, set_up(if_a, false));
	ASSERT_EQ(0, set_up(if_a, true));
	EXPECT_EQ(1, count_napi(if_a));
	EXPECT_EQ(1, count_napi(if_b));
	zc_close(&z);
	EXPECT_EQ(0, count_napi(if_a));
	EXPECT_EQ(0, count_napi(if_b));
}

TEST_HARNESS_MAIN
