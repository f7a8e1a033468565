// SPDX-License-Identifier: GPL-2.0
/*
 * lib_test IF PEER: the library over real rings, on a veth pair of which nobody
 * else makes use. It is compiled as C11 and as C++11, both strict.
 *
 * A test ends at the first CHECK() that fails. Its sockets and areas are in
 * variables that all tests share, and are closed after each of them:
 * tp4_close() and tp4_area_destroy() can be called at any time.
 */
#include <errno.h>
#include <net/if.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <sys/ioctl.h>
#include <linux/if.h>
#include <tpacket4_device.h>

#define NR		256u	/* descriptors in a ring */
#define SIZE		2048u
#define WAIT_MS		20000	/* emulated, on a busy machine */
#define HUGE_PAGES	"/proc/sys/vm/nr_hugepages"
#define NO_IPV6(name)	"/proc/sys/net/ipv6/conf/" name "/disable_ipv6"

static const char *ifname;
static int ifindex, peerindex;
static const char *current;
static int failures;
static const char *skipped;	/* why, if the test is */
static jmp_buf end_of_test;

static struct tp4_area area;
static struct tp4_socket s, peer;
static struct tp4_queues queues;
static __u64 memory[4 * NR];
static struct tp4_pool pool;
static int huge_before = -1;	/* huge pages, if the test changes the number */

static void complain(int line, const char *what, long long got)
{
	printf("# error: %s:%d: %s (%lld)\n", current, line, what, got);
	failures++;
}

/* End the test if it is not so. */
static void check(int ok, int line, const char *what)
{
	if (ok)
		return;
	complain(line, what, errno);
	longjmp(end_of_test, 1);
}

static void check_eq(long long want, long long got, int line, const char *what)
{
	if (got == want)
		return;
	complain(line, what, got);
	longjmp(end_of_test, 1);
}

#define CHECK(cond)		check(!!(cond), __LINE__, #cond)
#define CHECK_EQ(want, expr)	\
	check_eq(want, expr, __LINE__, #want " == " #expr)

/* --- what the tests need -------------------------------------------------- */

static struct tp4_options options(unsigned int rx_nr, unsigned int tx_nr)
{
	struct tp4_options opt;

	memset(&opt, 0, sizeof(opt));
	opt.area = &area;
	opt.rx_nr = rx_nr;
	opt.tx_nr = tx_nr;
	return opt;
}

/* s, of its own area, bound to the interface, all of Rx posted. */
static int open_bound(unsigned int rx_nr, unsigned int tx_nr)
{
	struct tp4_options opt = options(rx_nr, tx_nr);
	int e = tp4_area_create(&area, 4 * NR, SIZE);

	if (!e)
		e = tp4_open(&s, &opt);
	if (e)
		return e;
	tp4_pool_init(&pool, memory, 0, 4 * NR);
	tp4_pool_fill(&pool, &s.rx);
	e = tp4_setopt(s.fd, PACKET_IGNORE_OUTGOING, 1);
	return e ? e : tp4_bind(&s, ifindex);
}

/* An ordinary packet socket on the other end. */
static int plain_socket(void)
{
	int fd = socket(AF_PACKET, SOCK_RAW, 0), size = 8 << 20;
	struct tp4_socket p;

	memset(&p, 0, sizeof(p));
	p.fd = fd;
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	tp4_setopt(fd, PACKET_IGNORE_OUTGOING, 1);
	if (tp4_bind(&p, peerindex)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* A packet of an ethertype that nobody wants; each has contents of its own. */
static void fill(__u8 *p, unsigned int len, unsigned int seq)
{
	static const __u8 head[] = {
		2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5
	};
	unsigned int i;

	memcpy(p, head, sizeof(head));
	for (i = sizeof(head); i < len; i++)
		p[i] = seq * 17 + i + i / 256;
}

/* One whose checksum every device can compute: UDP right behind the IP header */
static void fill_udp(__u8 *p, unsigned int len, unsigned int seq)
{
	static const __u8 head[] = {
		0x08, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0
	};

	fill(p, len, seq);
	memcpy(p + 12, head, sizeof(head));
}

static int is_packet(const __u8 *p, unsigned int len, unsigned int seq)
{
	static __u8 want[16384];

	fill(want, len, seq);
	return !memcmp(p, want, len);
}

/* n packets of len bytes from an ordinary socket, numbered from seq. */
static int plain_send(int fd, unsigned int n, unsigned int len,
		      unsigned int seq)
{
	static __u8 packet[16384];
	unsigned int i;

	for (i = 0; i < n; i++) {
		fill(packet, len, seq + i);
		if (send(fd, packet, len, 0) != (ssize_t)len)
			return -errno;
	}
	return 0;
}

/* The next packet that an ordinary socket gets; is it this one? */
static int plain_receives(int fd, unsigned int len, unsigned int seq)
{
	static __u8 packet[16384];
	struct pollfd p = { fd, POLLIN, 0 };

	return poll(&p, 1, WAIT_MS) == 1 &&
	       recv(fd, packet, sizeof(packet), 0) == (ssize_t)len &&
	       is_packet(packet, len, seq);
}

static long long now_ms(void)
{
	struct timespec ts;

	timespec_get(&ts, TIME_UTC);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

/* Wait until n slots have come back on Rx, or on Tx; how many there are. */
static unsigned int wait_rx(struct tp4_socket *from, unsigned int n)
{
	long long end = now_ms() + WAIT_MS;

	while (tp4_ring_peek(&from->rx, n) < n && now_ms() < end)
		if (tp4_wait(from, POLLIN, 100) < 0)
			break;
	return tp4_ring_peek(&from->rx, n);
}

static unsigned int wait_tx(struct tp4_socket *from, unsigned int n)
{
	long long end = now_ms() + WAIT_MS;

	while (tp4_ring_peek(&from->tx, n) < n && now_ms() < end)
		if (tp4_need_kick(from))
			tp4_kick(from, MSG_DONTWAIT);
	return tp4_ring_peek(&from->tx, n);
}

/* Put n packets of len bytes on a Tx ring, from frames of the pool's. */
static unsigned int put(struct tp4_socket *to, unsigned int n,
			unsigned int len, unsigned int seq)
{
	struct tpacket4_desc d;
	unsigned int i;

	memset(&d, 0, sizeof(d));
	for (i = 0; i < n; i++) {
		if (!tp4_pool_get(&pool, (__u64 *)&d.idx, 1))
			break;
		d.offset = TP4_ZC_HEADROOM;
		d.len = len;
		fill(tp4_data(&area, &d), len, seq + i);
		if (tp4_ring_send(&to->tx, &d, 1) != 1)
			break;
	}
	return i;
}

static int write_file(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");
	int bad = !f || fputs(text, f) < 0;

	return (f && fclose(f)) || bad ? -1 : 0;
}

static int read_number(const char *name)
{
	FILE *f = fopen(name, "r");
	int n = -1;

	if (f && fscanf(f, "%d", &n) != 1)
		n = -1;
	if (f)
		fclose(f);
	return n;
}

static void set_huge_pages(int n)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", n);
	write_file(HUGE_PAGES, text);
}

/* Reserve two huge pages for the test, in addition to those of others. */
static int reserve_huge_pages(void)
{
	huge_before = read_number(HUGE_PAGES);
	if (huge_before < 0)
		return -1;
	set_huge_pages(huge_before + 2);
	return read_number(HUGE_PAGES) < huge_before + 2 ? -1 : 0;
}

static int set_up(const char *name, int up)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0), e;
	struct ifreq ifr;

	memset(&ifr, 0, sizeof(ifr));
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	e = ioctl(fd, SIOCGIFFLAGS, &ifr);
	if (up)
		ifr.ifr_flags |= IFF_UP;
	else
		ifr.ifr_flags &= ~IFF_UP;
	e = e ? e : ioctl(fd, SIOCSIFFLAGS, &ifr);
	close(fd);
	return e;
}

static int is_promiscuous(const char *name)
{
	unsigned int flags = 0;
	char path[64];
	FILE *f;

	/* SIOCGIFFLAGS says what the administrator has set only. */
	snprintf(path, sizeof(path), "/sys/class/net/%s/flags", name);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%x", &flags) != 1)
		printf("# error: cannot read %s\n", path);
	if (f)
		fclose(f);
	return !!(flags & IFF_PROMISC);
}

/* --- the tests ------------------------------------------------------------ */

static void area_is_shared_by_its_memfd(void)
{
	struct tp4_area other;

	CHECK_EQ(0, tp4_area_create(&area, 3, SIZE));
	CHECK(area.len >= 3 * SIZE && !(area.len % sysconf(_SC_PAGESIZE)));
	memset(&other, 0, sizeof(other));
	other.memfd = dup(area.memfd);
	other.nr_frames = 3;
	other.frame_size = SIZE;
	CHECK_EQ(0, tp4_area_attach(&other));
	CHECK(other.addr != area.addr && other.len == area.len);
	tp4_frame(&area, 2)[SIZE - 1] = 0x5a;
	CHECK_EQ(0x5a, tp4_frame(&other, 2)[SIZE - 1]);
	tp4_area_destroy(&other);
}

static void area_that_is_too_short_is_refused(void)
{
	struct tp4_area other;

	CHECK_EQ(0, tp4_area_create(&area, 2, SIZE));
	memset(&other, 0, sizeof(other));
	other.memfd = area.memfd;
	other.nr_frames = 2 + sysconf(_SC_PAGESIZE) / SIZE;
	other.frame_size = SIZE;
	CHECK_EQ(-EINVAL, tp4_area_attach(&other));
	CHECK(!other.addr);
}

/* The number of a file that was closed belongs to someone else. */
static void destroying_an_area_twice_closes_nothing_else(void)
{
	int fd;

	CHECK_EQ(0, tp4_area_create(&area, 4, SIZE));
	fd = area.memfd;
	tp4_area_destroy(&area);
	CHECK_EQ(fd, dup(1));
	area.memfd = fd;	/* a copy that somebody has kept */
	tp4_area_destroy(&area);
	CHECK_EQ(0, close(fd));
	memset(&area, 0, sizeof(area));
	tp4_area_destroy(&area);	/* not file 0 */
	CHECK(dup2(0, 0) == 0);
}

static void receive_into_huge_pages(void)
{
	struct tp4_options opt = options(NR, 0);
	__u64 frames[NR];
	struct stat st;
	int fd;

	if (reserve_huge_pages()) {
		skipped = "there are no huge pages";
		return;
	}
	CHECK_EQ(0, tp4_area_create_huge(&area, NR, SIZE));
	CHECK_EQ(0, fstat(area.memfd, &st));
	CHECK(st.st_blksize > sysconf(_SC_PAGESIZE));
	CHECK_EQ(st.st_blksize, area.len);
	CHECK_EQ(0, tp4_open(&s, &opt));
	tp4_pool_init(&pool, memory, 0, NR);
	tp4_pool_get(&pool, frames, NR);
	CHECK_EQ(NR, tp4_ring_post(&s.rx, frames, NR));
	CHECK_EQ(0, tp4_bind(&s, ifindex));
	fd = plain_socket();
	CHECK_EQ(0, plain_send(fd, 3, 100, 7));
	CHECK_EQ(3, wait_rx(&s, 3));
	CHECK(is_packet(tp4_data(&area, tp4_ring_at(&s.rx, 2)), 100, 9));
	close(fd);
}

/* Each frame that holds a packet is kept, and another one posted. */
static void exchange_frames_of_any_size(void)
{
	struct tp4_options opt = options(NR, 0);
	const unsigned int size = 2368, step = size / 64;
	unsigned int i, n, seq = 0, next = NR;
	__u64 frames[NR];
	int fd;

	if (reserve_huge_pages()) {
		skipped = "there are no huge pages";
		return;
	}
	CHECK_EQ(0, tp4_area_create_huge(&area, 2 * NR, size));
	area.frame_unit = 64;
	CHECK_EQ(0, tp4_open(&s, &opt));
	for (i = 0; i < 2 * NR; i++)
		CHECK_EQ(i * step, tp4_area_idx(&area, area.addr + i * size));
	for (i = 0; i < NR; i++)
		frames[i] = i * step;
	CHECK_EQ(NR, tp4_ring_post(&s.rx, frames, NR));
	CHECK_EQ(0, tp4_bind(&s, ifindex));
	fd = plain_socket();
	while (seq < 5 * NR) {
		CHECK_EQ(0, plain_send(fd, 37, 1000, seq));
		n = wait_rx(&s, 37);
		CHECK_EQ(37, n);
		CHECK_EQ(0, tp4_ring_error(&s.rx, n));
		for (i = 0; i < n; i++, next++) {
			const struct tpacket4_desc *d = tp4_ring_at(&s.rx, i);

			/* in the order in which they were posted */
			CHECK_EQ((next - NR) % (2 * NR) * step, d->idx);
			CHECK(is_packet(tp4_data(&area, d), 1000, seq + i));
			frames[i] = (__u64)(next % (2 * NR)) * step;
		}
		tp4_ring_exchange(&s.rx, frames, n);
		CHECK_EQ(NR, tp4_ring_pending(&s.rx));
		CHECK_EQ(0, tp4_ring_free(&s.rx));
		seq += n;
	}
	close(fd);
}

static void small_frames_hold_a_packet_in_one_piece(void)
{
	struct tp4_options opt = options(NR, 0);
	unsigned int i, n;
	int fd;

	CHECK_EQ(0, tp4_area_create(&area, NR, 256));
	area.frame_unit = 256;
	CHECK_EQ(0, tp4_open(&s, &opt));
	CHECK_EQ(NR, tp4_ring_fill(&s.rx, 0, NR));
	CHECK_EQ(0, tp4_bind(&s, ifindex));
	fd = plain_socket();
	CHECK_EQ(0, plain_send(fd, 1, 1400, 3));
	n = (1400 + 255) / 256;
	CHECK_EQ(n, wait_rx(&s, n));
	for (i = 0; i < n; i++)
		CHECK_EQ(i + 1 < n ? TP4_PKT_CONT : 0,
			 tp4_ring_at(&s.rx, i)->flags);
	CHECK(is_packet(tp4_data(&area, tp4_ring_at(&s.rx, 0)), 1400, 3));
	close(fd);
}

static void without_huge_pages_an_area_is_ordinary(void)
{
	if (read_number(HUGE_PAGES) > 0) {
		skipped = "huge pages are reserved";
		return;
	}
	CHECK_EQ(0, tp4_area_create_huge(&area, 6, SIZE));
	CHECK(area.len < 6 * SIZE + (size_t)sysconf(_SC_PAGESIZE));
	CHECK(area.len >= 6 * SIZE);
	memset(area.addr, 1, area.len);
}

/* What tp4_open() refuses leaves no socket open, and the caller's alone. */
static void open_failed(int line, struct tp4_options opt, int want)
{
	int before = dup(1), after, e;

	close(before);
	memset(&s, 0x55, sizeof(s));
	e = tp4_open(&s, &opt);
	after = dup(1);
	close(after);
	if (e != want)
		complain(line, "wrong errno", e);
	else if (s.fd != -1 || s.map)
		complain(line, "the socket is not as if closed", s.fd);
	else if (after != before)
		complain(line, "a file was left open", after);
	tp4_close(&s);
}

static void open_refuses_what_makes_no_sense(void)
{
	struct tp4_options opt;

	CHECK_EQ(0, tp4_area_create(&area, 4 * NR, SIZE));
	memset(&opt, 0, sizeof(opt));
	open_failed(__LINE__, opt, -EINVAL);	/* nothing */
	open_failed(__LINE__, options(0, 0), -EINVAL);	/* no ring */
	opt.rx_nr = NR;
	open_failed(__LINE__, opt, -EINVAL);	/* no area, and 0 is no fd */
	opt = options(NR, NR);
	opt.mr_fd = 1;
	opt.headroom = 64;
	open_failed(__LINE__, opt, -EINVAL);	/* that of the other socket */
	opt = options(NR, 0);
	opt.fd = -1;
	open_failed(__LINE__, opt, -EBADF);
	opt = options(NR, 0);
	opt.headroom = 1 << 20;
	open_failed(__LINE__, opt, -EINVAL);	/* by PACKET_MEMREG */
	/* by the rings */
	open_failed(__LINE__, options(NR - 1, NR), -EINVAL);
	open_failed(__LINE__, options(NR, NR - 1), -EINVAL);
	opt = options(NR, NR);
	opt.area = NULL;
	opt.mr_fd = 1;		/* not a socket */
	open_failed(__LINE__, opt, -ENOTSOCK);
}

static void open_takes_a_socket_of_the_callers(void)
{
	struct tp4_options opt = options(NR, NR - 1);
	int fd = socket(AF_PACKET, SOCK_RAW, 0);

	CHECK_EQ(0, tp4_area_create(&area, 4 * NR, SIZE));
	opt.fd = fd;
	open_failed(__LINE__, opt, -EINVAL);
	/* still the caller's, who may use something else */
	CHECK_EQ(0, tp4_setopt(fd, PACKET_VERSION, TPACKET_V3));
	CHECK_EQ(0, close(fd));

	opt.fd = socket(AF_PACKET, SOCK_RAW, 0);
	opt.tx_nr = NR;
	CHECK_EQ(0, tp4_open(&s, &opt));
	CHECK_EQ(opt.fd, s.fd);
	tp4_close(&s);
	CHECK(close(opt.fd) < 0 && errno == EBADF);	/* now the library's */
}

static void open_leaves_the_rings_of_the_caller_alone(void)
{
	const socklen_t len = sizeof(struct tpacket_req);
	struct tp4_options opt = options(NR, NR);
	struct tpacket_req req;
	void *map;

	memset(&req, 0, sizeof(req));
	req.tp_block_size = sysconf(_SC_PAGESIZE);
	req.tp_block_nr = 1;
	req.tp_frame_size = req.tp_block_size;
	req.tp_frame_nr = 1;
	CHECK_EQ(0, tp4_area_create(&area, 4 * NR, SIZE));
	opt.fd = socket(AF_PACKET, SOCK_RAW, 0);
	CHECK_EQ(0, tp4_setopt(opt.fd, PACKET_VERSION, TPACKET_V2));
	CHECK_EQ(0, setsockopt(opt.fd, SOL_PACKET, PACKET_RX_RING, &req, len));
	open_failed(__LINE__, opt, -EBUSY);
	map = mmap(NULL, req.tp_block_size, PROT_READ, MAP_SHARED, opt.fd, 0);
	CHECK(map != MAP_FAILED);
	munmap(map, req.tp_block_size);
	CHECK_EQ(0, close(opt.fd));
}

static void closing_twice_closes_nothing_else(void)
{
	int fd;

	CHECK_EQ(0, open_bound(NR, NR));
	fd = s.fd;
	tp4_close(&s);
	CHECK_EQ(-1, s.fd);
	CHECK_EQ(fd, dup(1));
	s.fd = fd;
	tp4_close(&s);
	CHECK_EQ(0, close(fd));
	memset(&s, 0, sizeof(s));
	tp4_close(&s);		/* not file 0 */
	CHECK(dup2(0, 0) == 0);
}

static void received_packets_are_those_sent(void)
{
	unsigned int i, n, seq = 0, got = 0;
	int fd;

	CHECK_EQ(0, open_bound(NR, 0));
	fd = plain_socket();
	/* Several times round the ring, in batches that do not divide it. */
	while (got < 5 * NR) {
		CHECK_EQ(0, plain_send(fd, 37, 200, seq));
		seq += 37;
		n = wait_rx(&s, 37);
		CHECK_EQ(37, n);
		CHECK_EQ(0, tp4_ring_error(&s.rx, n));
		for (i = 0; i < n; i++, got++) {
			struct tpacket4_desc *d = tp4_ring_at(&s.rx, i);

			CHECK(d->len == 200 && !d->flags);
			CHECK(is_packet(tp4_data(&area, d), 200, got));
		}
		tp4_ring_recycle(&s.rx, n);
		CHECK(!tp4_rx_need_kick(&s));	/* copy mode */
	}
	close(fd);
}

static void packet_of_several_frames_is_a_chain(void)
{
	unsigned int i, n = 0, len = 0;
	static __u8 packet[16384];
	int fd;

	CHECK_EQ(0, open_bound(NR, 0));
	fd = plain_socket();
	CHECK_EQ(0, plain_send(fd, 1, 5000, 3));
	n = wait_rx(&s, 3);
	CHECK_EQ(3, n);
	for (i = 0; i < n; i++) {
		struct tpacket4_desc *d = tp4_ring_at(&s.rx, i);

		CHECK_EQ(i < 2 ? TP4_PKT_CONT : 0, d->flags);
		memcpy(packet + len, tp4_data(&area, d), d->len);
		len += d->len;
	}
	CHECK_EQ(5000, len);
	CHECK(is_packet(packet, len, 3));
	tp4_ring_recycle(&s.rx, n);
	close(fd);
}

static void sent_packets_arrive_and_frames_come_back(void)
{
	unsigned int i, round, free_frames;
	int fd;

	CHECK_EQ(0, open_bound(0, NR));
	fd = plain_socket();
	free_frames = pool.nr;
	for (round = 0; round < 12; round++) {
		CHECK_EQ(60, put(&s, 60, 1000, round * 60));
		CHECK(tp4_need_kick(&s));	/* copy mode */
		CHECK(tp4_kick(&s, 0) > 0);
		CHECK_EQ(60, wait_tx(&s, 60));
		CHECK_EQ(0, tp4_ring_error(&s.tx, 60));
		tp4_pool_put(&pool, &s.tx, 60);
		for (i = 0; i < 60; i++)
			CHECK(plain_receives(fd, 1000, round * 60 + i));
	}
	CHECK_EQ(free_frames, pool.nr);
	CHECK_EQ(0, tp4_ring_pending(&s.tx));
	close(fd);
}

static void refused_packet_comes_back_with_its_errno(void)
{
	unsigned int i, refused = 0;
	struct tpacket4_desc bad;
	int fd;

	CHECK_EQ(0, open_bound(0, NR));
	fd = plain_socket();
	memset(&bad, 0, sizeof(bad));
	bad.idx = 4 * NR;	/* no such frame */
	bad.len = 100;
	CHECK_EQ(1, put(&s, 1, 100, 0));
	CHECK_EQ(1, tp4_ring_send(&s.tx, &bad, 1));
	CHECK_EQ(1, put(&s, 1, 100, 1));
	CHECK(tp4_kick(&s, 0) > 0);
	CHECK_EQ(3, wait_tx(&s, 3));
	CHECK_EQ(-EINVAL, tp4_ring_error(&s.tx, 3));
	/* in which slot is the kernel's choice */
	for (i = 0; i < 3; i++)
		if (tp4_ring_at(&s.tx, i)->error) {
			CHECK_EQ(bad.idx, tp4_ring_at(&s.tx, i)->idx);
			CHECK_EQ(0, tp4_ring_error(&s.tx, i));
			refused++;
		}
	CHECK_EQ(1, refused);
	CHECK(plain_receives(fd, 100, 0));
	CHECK(plain_receives(fd, 100, 1));
	tp4_ring_take(&s.tx, 3);
	close(fd);
}

static void ring_that_is_full_takes_no_more(void)
{
	struct tpacket4_desc d;
	__u64 frame = 0;

	CHECK_EQ(0, open_bound(NR, NR));
	CHECK_EQ(0, tp4_ring_free(&s.rx));
	CHECK_EQ(0, tp4_ring_post(&s.rx, &frame, 1));
	CHECK_EQ(NR, put(&s, NR, 100, 0));
	memset(&d, 0, sizeof(d));
	CHECK_EQ(0, tp4_ring_send(&s.tx, &d, 1));
	CHECK_EQ(NR, tp4_ring_pending(&s.tx));
	CHECK_EQ(0, tp4_ring_forward(&s.rx, &s.tx, tp4_ring_peek(&s.rx, 1)));
}

/* Two sockets and one area: what the one receives the other sends. */
static void forwarded_packets_are_not_copied(void)
{
	struct tp4_options opt = options(0, NR);
	unsigned int i, round;
	int fd;

	CHECK_EQ(0, open_bound(NR, 0));
	opt.area = NULL;
	opt.mr_fd = s.fd;
	CHECK_EQ(0, tp4_open(&peer, &opt));
	CHECK_EQ(0, tp4_bind(&peer, ifindex));
	fd = plain_socket();
	for (round = 0; round < 2 * NR / 50 + 1; round++) {
		CHECK_EQ(0, plain_send(fd, 50, 1400, round * 50));
		CHECK_EQ(50, wait_rx(&s, 50));
		CHECK_EQ(50, tp4_ring_forward(&s.rx, &peer.tx, 50));
		CHECK(tp4_kick(&peer, 0) > 0);
		CHECK_EQ(50, wait_tx(&peer, 50));
		CHECK_EQ(0, tp4_ring_error(&peer.tx, 50));
		CHECK_EQ(50, tp4_ring_refill(&peer.tx, &s.rx, 50));
		for (i = 0; i < 50; i++)
			CHECK(plain_receives(fd, 1400, round * 50 + i));
	}
	CHECK_EQ(NR, tp4_ring_pending(&s.rx));
	CHECK_EQ(0, tp4_ring_pending(&peer.tx));
	close(fd);
}

/* The metadata of a received packet requests the same when it is forwarded. */
static void metadata_goes_along(void)
{
	struct tp4_options opt = options(NR, NR);
	__u64 frames[NR], before = now_ms() * 1000000ull;
	const struct tpacket4_meta *m;
	struct tpacket4_desc d;
	struct timespec t;
	int on = 1, fd, i;

	CHECK_EQ(0, tp4_area_create(&area, 2 * NR, SIZE));
	opt.meta = 1;
	CHECK_EQ(0, tp4_open(&s, &opt));
	tp4_pool_init(&pool, memory, 0, 2 * NR);
	tp4_pool_get(&pool, frames, NR);
	tp4_ring_post(&s.rx, frames, NR);
	CHECK_EQ(0, tp4_setopt(s.fd, PACKET_IGNORE_OUTGOING, 1));
	CHECK_EQ(0, tp4_bind(&s, ifindex));
	fd = plain_socket();
	/* as virtio_net has it, 10 bytes in front of a packet */
	CHECK_EQ(0, tp4_setopt(fd, PACKET_VNET_HDR, on));

	/* a packet of ours: its metadata is what the others see */
	memset(&d, 0, sizeof(d));
	tp4_pool_get(&pool, frames, 1);
	d.idx = frames[0];
	d.offset = 64;
	d.len = 300;
	CHECK(!tp4_meta(&area, &d));
	fill_udp(tp4_data(&area, &d), 300, 5);
	tp4_meta_csum(tp4_meta_new(&area, &d), 34, 6);
	CHECK_EQ(TP4_META, d.flags);
	CHECK_EQ(1, tp4_ring_send(&s.tx, &d, 1));
	CHECK_EQ(300, tp4_kick(&s, 0));
	CHECK_EQ(1, wait_tx(&s, 1));
	CHECK_EQ(0, tp4_ring_error(&s.tx, 1));
	tp4_pool_put(&pool, &s.tx, 1);
	for (i = 0; i < 2; i++) {
		__u8 packet[1000], sent[300];
		__u16 start_offset[2];

		CHECK_EQ(310, recv(fd, packet, sizeof(packet), 0));
		CHECK_EQ(1, packet[0]);		/* NEEDS_CSUM */
		CHECK_EQ(0, packet[1] | packet[2] | packet[3] | packet[4] |
			    packet[5]);
		memcpy(start_offset, packet + 6, 4);
		CHECK_EQ(34, start_offset[0]);
		CHECK_EQ(6, start_offset[1]);
		fill_udp(sent, 300, 5);
		CHECK(!memcmp(packet + 10, sent, 300));
		if (i)
			break;

		/* and back to us, and away again */
		CHECK_EQ(310, send(fd, packet, 310, 0));
		CHECK_EQ(1, wait_rx(&s, 1));
		m = tp4_meta(&area, tp4_ring_at(&s.rx, 0));
		CHECK(m && (m->flags & TP4_META_CSUM));
		CHECK_EQ(300, m->wire_len);
		CHECK_EQ(ifindex, m->ifindex);
		t = tp4_meta_time(m);
		CHECK(t.tv_sec * 1000000000ull + t.tv_nsec >= before);
		CHECK(t.tv_sec * 1000ll <= now_ms());
		CHECK_EQ(1, tp4_ring_forward(&s.rx, &s.tx, 1));
		CHECK_EQ(300, tp4_kick(&s, 0));
	}
	CHECK_EQ(1, wait_tx(&s, 1));
	CHECK_EQ(0, tp4_ring_error(&s.tx, 1));
	CHECK_EQ(1, tp4_ring_refill(&s.tx, &s.rx, 1));

	/* no launch time where the socket has no clock for it */
	fill(tp4_data(&area, &d), 300, 6);
	tp4_meta_launch(tp4_meta_new(&area, &d), 1);
	CHECK_EQ(1, tp4_ring_send(&s.tx, &d, 1));
	tp4_kick(&s, 0);
	CHECK_EQ(1, wait_tx(&s, 1));
	CHECK_EQ(-EINVAL, tp4_ring_error(&s.tx, 1));
	tp4_ring_take(&s.tx, 1);

	/* cut up: too long for its size, and no TCP */
	tp4_meta_gso(tp4_meta_new(&area, &d), 1, 50);
	CHECK_EQ(1, tp4_ring_send(&s.tx, &d, 1));
	tp4_kick(&s, 0);
	CHECK_EQ(1, wait_tx(&s, 1));
	CHECK_EQ(-EINVAL, tp4_ring_error(&s.tx, 1));
	tp4_ring_take(&s.tx, 1);
	close(fd);
}

/* On a ring with room for all of them, with room for some, and on a full one */
static void sent_frames_are_sent_again(void)
{
	static const unsigned int first[] = { 100, 200, NR };
	static const unsigned int again[] = { 60, 150, NR };
	unsigned int i, k, n;
	int fd;

	CHECK_EQ(0, open_bound(0, NR));
	fd = plain_socket();
	CHECK(fd >= 0);
	for (k = 0; k < 3; k++) {
		__u8 seen[4 * NR] = { 0 };

		CHECK_EQ(first[k], put(&s, first[k], 100, 0));
		CHECK_EQ(first[k], wait_tx(&s, first[k]));
		for (i = 0; i < first[k]; i++)
			CHECK(plain_receives(fd, 100, i));
		n = again[k];
		for (i = 0; i < n; i++)
			fill(tp4_frame(&area, tp4_ring_at(&s.tx, i)->idx) + 64,
			     200, 1000 + i);
		tp4_ring_resend(&s.tx, n, 200, 64);
		CHECK_EQ(first[k], tp4_ring_pending(&s.tx));
		CHECK_EQ(NR - first[k], tp4_ring_free(&s.tx));
		CHECK_EQ(first[k], wait_tx(&s, first[k]));
		CHECK_EQ(0, tp4_ring_error(&s.tx, first[k]));
		for (i = 0; i < n; i++)
			CHECK(plain_receives(fd, 200, 1000 + i));
		for (i = 0; i < first[k]; i++)
			CHECK_EQ(1, ++seen[tp4_ring_at(&s.tx, i)->idx]);
		tp4_pool_put(&pool, &s.tx, first[k]);
	}
	close(fd);
}

static void pool_gives_each_frame_once(void)
{
	__u64 got[10];
	unsigned int i;

	tp4_pool_init(&pool, memory, 100, 8);
	CHECK_EQ(5, tp4_pool_get(&pool, got, 5));
	CHECK_EQ(3, tp4_pool_get(&pool, got + 5, 5));
	CHECK_EQ(0, tp4_pool_get(&pool, got, 1));
	for (i = 0; i < 8; i++)
		CHECK_EQ(100 + i, got[i]);
}

/* Add up the statistics until n packets are in them: the last may be counted
 * after the ring is full.
 */
static struct tpacket_stats_v4 wait_stats(unsigned int n)
{
	long long end = now_ms() + WAIT_MS;
	struct tpacket_stats_v4 st, sum;

	memset(&sum, 0, sizeof(sum));
	do {
		CHECK_EQ(0, tp4_stats(&s, &st));
		sum.tp_packets += st.tp_packets;
		sum.tp_drops += st.tp_drops;
		sum.rx_ring_full += st.rx_ring_full;
		sum.rx_no_desc += st.rx_no_desc;
	} while (sum.tp_packets < n && now_ms() < end);
	return sum;
}

static void statistics_count_what_found_no_frame(void)
{
	struct tpacket_stats_v4 st;
	int fd;

	CHECK_EQ(0, open_bound(NR, 0));
	fd = plain_socket();
	CHECK_EQ(0, plain_send(fd, NR + 20, 100, 0));
	CHECK_EQ(NR, wait_rx(&s, NR));
	st = wait_stats(NR + 20);
	CHECK_EQ(NR + 20, st.tp_packets);
	CHECK_EQ(20, st.tp_drops);
	CHECK_EQ(20, st.rx_ring_full);
	CHECK_EQ(0, st.rx_no_desc);
	CHECK_EQ(0, tp4_stats(&s, &st));
	CHECK_EQ(0, st.tp_packets);
	close(fd);
}

/* Send to s until it receives: the stack loses packets until it has seen the
 * carrier.
 */
static int receives_again(int fd)
{
	long long end = now_ms() + WAIT_MS;
	int got;

	do {
		plain_send(fd, 1, 100, 0);
		got = tp4_wait(&s, POLLIN, 100);
	} while (!got && now_ms() < end);
	return got;
}

static void wait_tells_once_that_the_device_went_down(void)
{
	int fd;

	CHECK_EQ(0, open_bound(NR, NR));
	CHECK_EQ(0, tp4_wait(&s, POLLIN, 0));
	CHECK_EQ(0, set_up(ifname, 0));
	CHECK_EQ(-ENETDOWN, tp4_wait(&s, POLLIN, WAIT_MS));
	CHECK_EQ(0, tp4_wait(&s, POLLIN, 50));
	CHECK_EQ(-ENETDOWN, (put(&s, 1, 100, 0), tp4_kick(&s, MSG_DONTWAIT)));
	CHECK_EQ(0, set_up(ifname, 1));
	fd = plain_socket();
	CHECK_EQ(POLLIN, receives_again(fd));
	close(fd);
}

static void wait_says_that_a_socket_is_closed(void)
{
	struct tp4_socket closed;

	memset(&closed, 0, sizeof(closed));
	closed.fd = dup(1);
	close(closed.fd);
	CHECK_EQ(-EBADF, tp4_wait(&closed, POLLIN, WAIT_MS));
}

/* Neither waits, crashes, nor uses file 0: that is somebody else's socket. */
static void socket_that_is_not_open_is_refused(void)
{
	struct tp4_socket *both[2] = { &s, &peer };
	int sv[2], stdin_copy = dup(0), ready[2], i;
	struct tpacket_stats_v4 st;
	__u64 frame = 0;
	char c;

	CHECK_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, sv));
	CHECK_EQ(0, dup2(sv[0], 0));
	for (i = 0; i < 2; i++) {
		if (i) {
			CHECK_EQ(0, open_bound(NR, NR));
			tp4_close(&s);
		} else {
			memset(&s, 0, sizeof(s));
		}
		CHECK_EQ(-EBADF, tp4_wait(&s, POLLIN | POLLOUT, WAIT_MS));
		CHECK_EQ(-EBADF, tp4_wait_any(both, 1, POLLIN, WAIT_MS, ready));
		CHECK_EQ(-EBADF, tp4_kick(&s, MSG_DONTWAIT));
		CHECK_EQ(-EBADF, tp4_rx_kick(&s));
		CHECK_EQ(-EBADF, tp4_bind(&s, ifindex));
		CHECK_EQ(-EBADF, tp4_promisc(&s, ifindex));
		CHECK_EQ(-EBADF, tp4_zerocopy(&s, 1));
		CHECK_EQ(-EBADF, tp4_fanout(&s, 1, 0));
		CHECK_EQ(-EBADF, tp4_stats(&s, &st));
		CHECK_EQ(-EBADF, tp4_busy_poll_start(&s, 20, 64));
		CHECK_EQ(-EBADF, tp4_busy_poll(&s));
		CHECK(!tp4_need_kick(&s) && !tp4_rx_need_kick(&s));
		CHECK_EQ(0, tp4_ring_peek(&s.rx, NR));
		CHECK_EQ(0, tp4_ring_post(&s.rx, &frame, 1));
		CHECK_EQ(0, tp4_ring_fill(&s.rx, 0, NR));
		CHECK_EQ(0, tp4_ring_free(&s.tx));
		tp4_ring_prepare_poll(&s.rx);
		tp4_area_destroy(&area);
	}
	CHECK(recv(sv[1], &c, 1, MSG_DONTWAIT) < 0);
	CHECK_EQ(0, dup2(stdin_copy, 0));
	close(stdin_copy);
	close(sv[0]);
	close(sv[1]);
}

/* A socket without an Rx ring has no use for what its ordinary queue gets. */
static void sender_receives_nothing(void)
{
	struct tpacket_stats_v4 st;
	char packet[200];
	int fd;

	CHECK_EQ(0, open_bound(0, NR));
	fd = plain_socket();
	CHECK_EQ(0, plain_send(fd, 20, 100, 0));
	CHECK_EQ(1, put(&s, 1, 100, 7));
	CHECK_EQ(1, wait_tx(&s, 1));
	CHECK(plain_receives(fd, 100, 7));
	CHECK(recv(s.fd, packet, sizeof(packet), MSG_DONTWAIT) < 0);
	CHECK_EQ(EAGAIN, errno);
	CHECK_EQ(0, tp4_stats(&s, &st));
	CHECK_EQ(0, st.tp_packets);
	close(fd);
}

static void one_protocol_is_received(void)
{
	struct tp4_options opt = options(NR, 0);
	int fd;

	CHECK_EQ(0, tp4_area_create(&area, NR, SIZE));
	opt.protocol = ETH_P_ARP;
	CHECK_EQ(0, tp4_open(&s, &opt));
	CHECK_EQ(NR, tp4_ring_fill(&s.rx, 0, 2 * NR));
	CHECK_EQ(0, tp4_bind(&s, ifindex));
	fd = plain_socket();
	CHECK_EQ(0, plain_send(fd, 20, 100, 0));
	CHECK_EQ(0, tp4_wait(&s, POLLIN, 200));
	tp4_close(&s);
	opt.protocol = 0x88b5;
	CHECK_EQ(0, tp4_open(&s, &opt));
	CHECK_EQ(NR, tp4_ring_fill(&s.rx, 0, NR));
	CHECK_EQ(0, tp4_bind(&s, ifindex));
	CHECK_EQ(0, plain_send(fd, 20, 100, 0));
	CHECK_EQ(20, wait_rx(&s, 20));
	close(fd);
}

/* The one that has something to read is named, of many. */
static void wait_any_finds_the_one_that_is_ready(void)
{
	struct tp4_options opt = options(NR, 0);
	struct tp4_socket *both[2] = { &s, &peer }, *many[TP4_WAIT_MAX + 1];
	int fd, ready[TP4_WAIT_MAX + 1], i;

	CHECK_EQ(0, open_bound(NR, 0));
	opt.area = NULL;
	opt.mr_fd = s.fd;
	opt.protocol = ETH_P_ARP;
	CHECK_EQ(0, tp4_open(&peer, &opt));
	CHECK_EQ(NR, tp4_pool_fill(&pool, &peer.rx));
	CHECK_EQ(0, tp4_bind(&peer, peerindex));
	CHECK_EQ(0, tp4_wait_any(both, 2, POLLIN, 0, ready));
	fd = plain_socket();
	CHECK_EQ(0, plain_send(fd, 3, 100, 0));
	for (i = 0; i < 2; i++) {
		CHECK_EQ(1, tp4_wait_any(both, 2, POLLIN, WAIT_MS, ready));
		CHECK(ready[0] == POLLIN && !ready[1]);
	}
	CHECK_EQ(3, wait_rx(&s, 3));
	tp4_ring_take(&s.rx, 3);
	CHECK_EQ(0, tp4_wait_any(both, 2, POLLIN, 0, ready));
	CHECK(!ready[0] && !ready[1]);
	CHECK_EQ(0, set_up(ifname, 0));
	CHECK(tp4_wait_any(both, 2, POLLIN, WAIT_MS, ready) >= 1);
	CHECK_EQ(-ENETDOWN, ready[0]);
	CHECK_EQ(0, set_up(ifname, 1));
	for (i = 0; i <= TP4_WAIT_MAX; i++)
		many[i] = &s;
	CHECK_EQ(-EINVAL, tp4_wait_any(many, TP4_WAIT_MAX + 1, POLLIN, 0,
				       ready));
	CHECK_EQ(0, tp4_wait_any(many, TP4_WAIT_MAX, POLLIN, 0, ready));
	/* so that the next test loses nothing */
	CHECK_EQ(POLLIN, receives_again(fd));
	close(fd);
}

/* The step that has failed is known, although the errno is the same. */
static void failed_open_says_why(void)
{
	static const struct {
		unsigned int nr;
		const char *why;
	} sizes[] = {
		{ 128, "at least a page of descriptors (256 in 4 KiB)" },
		{ 1000, "power of two" },
		{ 1 << 21, "at most 1048576 (2^20)" },
		{ 0, "" },
	};
	struct tp4_options opt;
	struct tp4_socket other;
	struct tp4_area none;
	__u32 huge = 1 << 20;
	unsigned int i;

	CHECK_EQ(0, tp4_area_create(&area, 4 * NR, SIZE));
	opt = options(0, 0);
	CHECK_EQ(-EINVAL, tp4_open(&s, &opt));
	CHECK_EQ(TP4_IN_OPTIONS, s.failed);
	CHECK(strstr(tp4_strerror(s.failed, -EINVAL), "at least one ring"));
	opt = options(NR, 0);
	opt.headroom = huge;
	CHECK_EQ(-EINVAL, tp4_open(&s, &opt));
	CHECK(strstr(tp4_strerror(s.failed, -EINVAL), "headroom leaves less than 64"));
	for (i = 0; sizes[i].nr; i++) {
		opt = options(sizes[i].nr, 0);
		CHECK_EQ(-EINVAL, tp4_open(&s, &opt));
		CHECK(strstr(tp4_strerror(s.failed, -EINVAL), sizes[i].why));
		opt = options(NR, sizes[i].nr);
		CHECK_EQ(-EINVAL, tp4_open(&s, &opt));
		CHECK(strstr(tp4_strerror(s.failed, -EINVAL), sizes[i].why));
	}
	/* also of the rings, if their sizes are right */
	opt = options(NR, NR);
	opt.area = &none;
	CHECK_EQ(-ERANGE, tp4_area_create(&none, 0, SIZE));
	CHECK(strstr(tp4_strerror(TP4_IN_AREA, -ERANGE), "at least one frame"));
	CHECK_EQ(-EINVAL, tp4_open(&s, &opt));
	CHECK_EQ(TP4_IN_MEMREG, s.failed);
	opt = options(NR, 0);
	opt.fd = plain_socket();
	CHECK_EQ(0, tp4_setopt(opt.fd, PACKET_VNET_HDR, 1));
	CHECK_EQ(-EINVAL, tp4_open(&s, &opt));
	CHECK(strstr(tp4_strerror(s.failed, -EINVAL), "PACKET_VNET_HDR"));
	close(opt.fd);
	opt = options(NR, 0);
	CHECK_EQ(0, tp4_open(&s, &opt));
	memset(&other, 0, sizeof(other));
	opt.area = NULL;
	opt.mr_fd = plain_socket();
	CHECK_EQ(-EINVAL, tp4_open(&other, &opt));
	CHECK(strstr(tp4_strerror(other.failed, EINVAL), "mr_fd has no area"));
	close(opt.mr_fd);
	CHECK(!strcmp(strerror(EXDEV), tp4_strerror(TP4_IN_KICK, EXDEV)));
}

static void pool_fills_the_ring(void)
{
	unsigned int i;

	CHECK_EQ(0, open_bound(NR, NR));
	CHECK_EQ(3 * NR, pool.nr);
	CHECK_EQ(0, tp4_pool_fill(&pool, &s.rx));
	CHECK_EQ(NR, tp4_pool_fill(&pool, &s.tx));
	for (i = 0; i < NR; i++)
		CHECK(tp4_ring_at(&s.rx, i)->idx < NR &&
		      tp4_ring_at(&s.tx, i)->idx >= NR);
}

/* Another thread may be using the Rx ring, and writes to it without a lock. */
static void wait_for_one_ring_leaves_the_other_alone(void)
{
	int fd;

	CHECK_EQ(0, open_bound(NR, NR));
	fd = plain_socket();
	plain_send(fd, 1, 100, 0);
	CHECK_EQ(POLLIN, tp4_wait(&s, POLLIN, WAIT_MS));
	CHECK_EQ(1, tp4_ring_peek(&s.rx, 1));
	tp4_ring_recycle(&s.rx, 1);
	CHECK_EQ(1, s.rx.held);
	CHECK_EQ(POLLOUT, tp4_wait(&s, POLLOUT, 0));
	CHECK_EQ(1, s.rx.held);
	CHECK_EQ(0, tp4_wait(&s, POLLIN, 0));
	CHECK_EQ(0, s.rx.held);
	close(fd);
}

/* However many frames are kept, sent, or not there at all */
static void wait_sleeps_until_there_is_more(void)
{
	unsigned int i, kept = 0;
	int fd;

	CHECK_EQ(0, open_bound(NR, NR));
	fd = plain_socket();
	for (i = 0; kept < NR - 20; i++) {
		CHECK_EQ(0, tp4_wait(&s, POLLIN, 0));
		CHECK_EQ(0, plain_send(fd, 5, 100, 0));
		CHECK_EQ(POLLIN, tp4_wait(&s, POLLIN, WAIT_MS));
		CHECK_EQ(5, wait_rx(&s, 5));
		/* a slot that was not taken is still to be read */
		CHECK_EQ(POLLIN, tp4_wait(&s, POLLIN, 0));
		if (i % 3 == 0)
			tp4_ring_recycle(&s.rx, 5);
		else
			tp4_ring_take(&s.rx, 5);
		kept += i % 3 ? 5 : 0;
	}
	CHECK_EQ(0, tp4_wait(&s, POLLIN, 0));
	CHECK_EQ(0, plain_send(fd, 1, 1500, 0));
	CHECK_EQ(1, wait_rx(&s, 1));
	CHECK_EQ(1, tp4_ring_forward(&s.rx, &s.tx, 1));
	CHECK_EQ(0, tp4_wait(&s, POLLIN, 0));
	close(fd);
}

static void promiscuous_until_the_socket_is_closed(void)
{
	CHECK_EQ(0, open_bound(NR, 0));
	CHECK(!is_promiscuous(ifname));
	CHECK_EQ(0, tp4_promisc(&s, ifindex));
	CHECK(is_promiscuous(ifname));
	tp4_close(&s);
	CHECK(!is_promiscuous(ifname));
}

/* s and peer, of one area, in zero-copy mode at the two ends of the pair. */
static int open_zerocopy(void)
{
	struct tp4_options opt = options(NR, NR);
	__u64 frames[NR];
	int e = open_bound(NR, NR);

	if (e)
		return e;
	opt.area = NULL;
	opt.mr_fd = s.fd;
	e = tp4_open(&peer, &opt);
	if (e)
		return e;
	tp4_pool_get(&pool, frames, NR);
	tp4_ring_post(&peer.rx, frames, NR);
	e = tp4_bind(&peer, peerindex);
	e = e ? e : tp4_zerocopy(&s, 1);
	return e ? e : tp4_zerocopy(&peer, 1);
}

static void zero_copy_carries_packets_both_ways(void)
{
	unsigned int i, round, seq = 0;

	CHECK_EQ(0, open_zerocopy());
	for (round = 0; round < 3 * NR / 40; round++, seq += 40) {
		CHECK_EQ(40, put(&s, 40, 500, seq));
		CHECK_EQ(40, wait_tx(&s, 40));
		CHECK_EQ(0, tp4_ring_error(&s.tx, 40));
		tp4_pool_put(&pool, &s.tx, 40);
		CHECK_EQ(40, wait_rx(&peer, 40));
		for (i = 0; i < 40; i++) {
			struct tpacket4_desc *d = tp4_ring_at(&peer.rx, i);

			CHECK_EQ(500, d->len);
			CHECK(d->offset >= TP4_ZC_HEADROOM);
			CHECK(is_packet(tp4_data(&area, d), 500, seq + i));
		}
		/* and back as they are */
		CHECK_EQ(40, tp4_ring_forward(&peer.rx, &peer.tx, 40));
		CHECK_EQ(40, wait_tx(&peer, 40));
		CHECK_EQ(40, tp4_ring_refill(&peer.tx, &peer.rx, 40));
		CHECK_EQ(40, wait_rx(&s, 40));
		for (i = 0; i < 40; i++)
			CHECK(is_packet(tp4_data(&area,
						 tp4_ring_at(&s.rx, i)),
					500, seq + i));
		tp4_ring_recycle(&s.rx, 40);
	}
}

/* As in copy mode, a packet of the stack lacks its checksum. */
static void zero_copy_receives_what_the_stack_has(void)
{
	struct tp4_options opt = options(NR, 0);
	const __u16 start_offset[2] = { 34, 6 };
	__u8 packet[310] = { 1 };	/* NEEDS_CSUM */
	const struct tpacket4_meta *m;
	int fd;

	CHECK_EQ(0, tp4_area_create(&area, NR, SIZE));
	opt.meta = 1;
	opt.gso = 1;
	CHECK_EQ(0, tp4_open(&s, &opt));
	tp4_ring_fill(&s.rx, 0, NR);
	CHECK_EQ(0, tp4_bind(&s, ifindex));
	CHECK_EQ(0, tp4_zerocopy(&s, 1));
	fd = plain_socket();
	CHECK_EQ(0, tp4_setopt(fd, PACKET_VNET_HDR, 1));
	memcpy(packet + 6, start_offset, sizeof(start_offset));
	fill_udp(packet + 10, 300, 5);
	CHECK_EQ(310, send(fd, packet, 310, 0));
	CHECK_EQ(1, wait_rx(&s, 1));
	m = tp4_meta(&area, tp4_ring_at(&s.rx, 0));
	CHECK(m && (m->flags & TP4_META_CSUM));
	close(fd);
	tp4_close(&s);
	/* where that cannot be, it is ignored */
	opt.to_stack = 1;
	CHECK_EQ(0, tp4_open(&s, &opt));
}

/* A member of the group gets what the queue receives, in frames of the feeder. */
static void a_queue_feeds_a_fanout_group(void)
{
	struct tp4_options opt = options(NR, 0);
	struct tp4_socket member;
	__u64 frames[32];
	unsigned int i, k;

	CHECK_EQ(0, open_bound(NR, 0));
	opt.area = NULL;
	opt.mr_fd = s.fd;
	CHECK_EQ(0, tp4_open(&member, &opt));
	CHECK_EQ(32, tp4_pool_get(&pool, frames, 32));
	CHECK_EQ(32, tp4_ring_post(&member.rx, frames, 32));
	CHECK_EQ(0, tp4_bind(&member, ifindex));
	CHECK_EQ(0, tp4_fanout(&member, 7, PACKET_FANOUT_LB));
	CHECK_EQ(-EALREADY, tp4_fanout(&member, 7, PACKET_FANOUT_LB));
	CHECK_EQ(0, tp4_fanout(&s, 7, PACKET_FANOUT_LB));
	CHECK_EQ(0, tp4_zerocopy(&s, 1));
	opt.rx_nr = 0;
	opt.tx_nr = NR;
	CHECK_EQ(0, tp4_open(&peer, &opt));
	CHECK_EQ(0, tp4_bind(&peer, peerindex));

	CHECK_EQ(20, put(&peer, 20, 500, 0));
	CHECK_EQ(20, wait_tx(&peer, 20));
	CHECK_EQ(20, wait_rx(&member, 20));
	for (i = 0; i < 20; i++) {
		struct tpacket4_desc *d = tp4_ring_at(&member.rx, i);

		CHECK(is_packet(tp4_data(&area, d), 500, i));
		for (k = 0; k < 32; k++)
			CHECK(d->idx != frames[k]);
	}
	CHECK_EQ(0, tp4_ring_peek(&s.rx, NR));
	tp4_close(&member);
}

static int remove_pair(void)
{
	return if_nametoindex("tp4C") ? system("ip link del tp4C") : 0;
}

/* Another veth pair, tp4C and tp4D, with queues; return its first index. */
static int make_pair(unsigned int nr)
{
	char command[200], queues_of[60];

	CHECK_EQ(0, remove_pair());
	snprintf(queues_of, sizeof(queues_of), "numtxqueues %u numrxqueues %u",
		 nr, nr);
	snprintf(command, sizeof(command),
		 "ip link add tp4C %s type veth peer name tp4D %s", queues_of,
		 queues_of);
	CHECK_EQ(0, system(command));
	/* No neighbour discovery; without IPv6, there are no such files. */
	write_file(NO_IPV6("tp4C"), "1");
	write_file(NO_IPV6("tp4D"), "1");
	CHECK_EQ(0, set_up("tp4C", 1));
	CHECK_EQ(0, set_up("tp4D", 1));
	return (int)if_nametoindex("tp4C");
}

/* queues, of nr queue pairs of the device from first on, of its own area */
static void open_queues(unsigned int first, unsigned int nr, int index)
{
	struct tp4_options opt = options(NR, NR);
	unsigned int i;

	CHECK_EQ(0, tp4_area_create(&area, nr * NR + nr * 64 + 2 * NR, SIZE));
	CHECK_EQ(0, tp4_open_queues(&queues, first, nr, &opt));
	CHECK_EQ(nr, queues.nr);
	for (i = 0; i < nr; i++)
		CHECK_EQ(NR, tp4_ring_fill(&queues.s[i].rx, i * NR, NR));
	CHECK_EQ(0, tp4_bind_queues(&queues, index));
}

/* peer, in zero-copy mode on a queue pair of the other end, with frames of its
 * own, after those of nr rings: the receiver keeps what it gets.
 */
static void open_sender(unsigned int queue, unsigned int nr)
{
	struct tp4_options opt = options(0, NR);

	opt.area = NULL;
	opt.mr_fd = queues.s[0].fd;
	tp4_close(&peer);
	CHECK_EQ(0, tp4_open(&peer, &opt));
	CHECK_EQ(0, tp4_zerocopy(&peer, (int)queue + 1));
	CHECK_EQ(0, tp4_bind(&peer, (int)if_nametoindex("tp4D")));
	tp4_pool_init(&pool, memory, nr * NR + queue * 64, 64);
}

/* Send packets to a queue pair of the first end, until they are on a ring. */
static void send_to_queue(unsigned int queue, unsigned int n,
			  struct tp4_socket *to, unsigned int nr)
{
	open_sender(queue, nr);
	CHECK_EQ(n, put(&peer, n, 200, queue * 50));
	CHECK_EQ(n, wait_tx(&peer, n));
	CHECK_EQ(0, tp4_ring_error(&peer.tx, n));
	CHECK_EQ(n, wait_rx(to, n));
}

/* The socket that tp4_peek_queues() finds, sooner or later */
static struct tp4_socket *wait_queues(unsigned int max, unsigned int *n)
{
	long long end = now_ms() + WAIT_MS;
	struct tp4_socket *got;
	int e;

	do {
		got = tp4_peek_queues(&queues, max, n);
		if (got)
			return got;
		e = tp4_wait_queues(&queues, POLLIN, WAIT_MS);
		CHECK(e == POLLIN || !e);
	} while (now_ms() < end);
	return NULL;
}

/* Each packet comes once, from the queue pair that it was sent to. */
static void queues_receive(unsigned int nr)
{
	unsigned int i, n, q, all, got[TP4_WAIT_MAX] = { 0 };
	int index = make_pair(nr);
	struct tp4_socket *from;

	open_queues(0, nr, index);
	CHECK(!tp4_peek_queues(&queues, 64, &n));
	CHECK_EQ(0, n);
	CHECK_EQ(0, tp4_wait_queues(&queues, POLLIN, 0));
	for (q = 0; q < nr; q++)
		send_to_queue(q, 50, &queues.s[q], nr);
	CHECK_EQ(POLLIN, tp4_wait_queues(&queues, POLLIN, WAIT_MS));
	for (all = 0; all < 50 * nr; all += n) {
		from = wait_queues(20, &n);
		CHECK(from && n && n <= 20);
		CHECK_EQ(0, tp4_ring_error(&from->rx, n));
		q = (unsigned int)(from - queues.s);
		/* fair: none is ahead by more than one batch */
		for (i = 0; i < nr; i++)
			CHECK(got[q] <= got[i]);
		for (i = 0; i < n; i++)
			CHECK(is_packet(tp4_data(&area,
						 tp4_ring_at(&from->rx, i)),
					200, q * 50 + got[q]++));
		tp4_ring_recycle(&from->rx, n);
	}
	for (i = 0; i < nr; i++)
		CHECK_EQ(50, got[i]);
	CHECK(!tp4_peek_queues(&queues, 64, &n));
	CHECK_EQ(0, tp4_wait_queues(&queues, POLLIN, 0));

	/* They are told once that the device is down. */
	CHECK_EQ(0, set_up("tp4C", 0));
	CHECK_EQ(-ENETDOWN, tp4_wait_queues(&queues, POLLIN, WAIT_MS));
	CHECK_EQ(0, tp4_wait_queues(&queues, POLLIN, 0));
	tp4_close_queues(&queues);
	CHECK_EQ(0, queues.nr);
	CHECK_EQ(-EBADF, tp4_wait_queues(&queues, POLLIN, 0));
	CHECK(!tp4_peek_queues(&queues, 64, &n));
}

/* A program waits for a device that is down, and ends if it is gone. */
static void wait_until_gone(int index, int zerocopy)
{
	int err;

	CHECK_EQ(0, open_bound(NR, NR));
	CHECK_EQ(0, tp4_bind(&s, index));
	if (zerocopy)
		CHECK_EQ(0, tp4_zerocopy(&s, 1));
	CHECK_EQ(0, set_up("tp4C", 0));
	CHECK_EQ(-ENETDOWN, tp4_wait(&s, 0, WAIT_MS));
	CHECK(strstr(tp4_strerror(TP4_IN_WAIT, ENETDOWN), "is down"));
	CHECK_EQ(0, tp4_wait(&s, 0, 50));
	CHECK_EQ(0, remove_pair());
	do
		err = tp4_wait(&s, 0, WAIT_MS);
	while (err == -ENETDOWN);
	CHECK_EQ(-ENODEV, err);
	CHECK(strstr(tp4_strerror(TP4_IN_WAIT, err), "removed"));
	CHECK_EQ(-ENODEV, tp4_zerocopy(&s, 1));
	CHECK(strstr(tp4_strerror(TP4_IN_ZEROCOPY, -ENODEV), "removed"));
	tp4_close(&s);
	tp4_area_destroy(&area);
}

static void device_that_is_gone_is_not_down(void)
{
	wait_until_gone(make_pair(1), 0);
	wait_until_gone(make_pair(1), 1);
}

static void one_queue_receives(void)
{
	queues_receive(1);
}

static void two_queues_receive(void)
{
	queues_receive(2);
}

static void four_queues_receive(void)
{
	queues_receive(4);
}

static void all_queues_that_fit_receive(void)
{
	queues_receive(TP4_WAIT_MAX);
}

/* Whoever sends to one queue all the time cannot hide the packets of another. */
static void busy_queue_hides_no_other(void)
{
	unsigned int i, n, calls;
	struct tp4_socket *from;

	open_queues(0, 3, make_pair(3));
	for (i = 0; i < 4; i++)
		send_to_queue(0, 50, &queues.s[0], 3);
	for (calls = 0; calls < 100; calls++) {
		from = tp4_peek_queues(&queues, 1, &n);
		CHECK(from);
		if (from != queues.s)
			break;
		/* Now none but this one is known to have packets. */
		if (!calls)
			send_to_queue(2, 50, &queues.s[2], 3);
		tp4_ring_recycle(&from->rx, n);
	}
	CHECK(from == &queues.s[2] && calls <= 16);
	/* From then on they take turns. */
	for (i = 0; i < 40; i++) {
		from = tp4_peek_queues(&queues, 1, &n);
		CHECK(from == &queues.s[i % 2 ? 2 : 0]);
		tp4_ring_recycle(&from->rx, n);
	}
}

/* epoll_wait() does not kick a socket that has no event. */
static void waiting_for_all_queues_sends(void)
{
	struct tp4_socket *sock = &queues.s[1];
	const long long end = now_ms() + WAIT_MS;

	open_queues(0, 2, make_pair(2));
	tp4_pool_init(&pool, memory, 2 * NR, 64);
	CHECK_EQ(0, tp4_wait_queues(&queues, POLLIN, 0));
	CHECK_EQ(20, put(sock, 20, 200, 0));
	CHECK_EQ(0, tp4_wait_queues(&queues, POLLIN, 0));
	while (tp4_ring_peek(&sock->tx, 20) < 20 && now_ms() < end)
		tp4_cpu_relax();
	CHECK_EQ(20, tp4_ring_peek(&sock->tx, 20));
	CHECK_EQ(0, tp4_ring_error(&sock->tx, 20));
}

/* From queue pair 1 and 2 of four, out by 2, and the frames go where some lack. */
static void queues_forward_where_the_caller_wants(void)
{
	struct tp4_socket *from, *to = &queues.s[1];
	unsigned int n, all;

	open_queues(1, 2, make_pair(4));
	send_to_queue(1, 30, &queues.s[0], 2);
	send_to_queue(2, 60, &queues.s[1], 2);
	tp4_close(&peer);
	for (all = 0; all < 90; all += n) {
		from = wait_queues(64, &n);
		CHECK(from);
		CHECK_EQ(n, tp4_ring_forward(&from->rx, &to->tx, n));
		CHECK_EQ(30 * (1 + (unsigned int)(from - queues.s)), n);
	}
	CHECK(tp4_kick(to, 0) >= 0);
	CHECK_EQ(90, wait_tx(to, 90));
	CHECK_EQ(0, tp4_ring_error(&to->tx, 90));
	CHECK_EQ(30, tp4_ring_free(&queues.s[0].rx));
	CHECK_EQ(60, tp4_ring_free(&queues.s[1].rx));
	/* The emptier one first, then both alike */
	CHECK_EQ(29, tp4_refill_queues(&queues, &to->tx, 29));
	CHECK_EQ(30, tp4_ring_free(&queues.s[0].rx));
	CHECK_EQ(31, tp4_ring_free(&queues.s[1].rx));
	CHECK_EQ(31, tp4_refill_queues(&queues, &to->tx, 31));
	CHECK_EQ(15, tp4_ring_free(&queues.s[0].rx));
	CHECK_EQ(15, tp4_ring_free(&queues.s[1].rx));
	CHECK_EQ(30, tp4_ring_peek(&to->tx, NR));
	CHECK_EQ(30, tp4_refill_queues(&queues, &to->tx, 30));
	CHECK_EQ(0, tp4_ring_free(&queues.s[0].rx));
	CHECK_EQ(0, tp4_ring_free(&queues.s[1].rx));
}

/* A packet of several frames is not divided, whatever others send. */
static void queues_keep_packets_whole(void)
{
	struct tpacket4_desc d[6];
	struct tp4_socket *from;
	unsigned int i, n;

	open_queues(0, 2, make_pair(2));
	open_sender(0, 2);
	memset(d, 0, sizeof(d));
	for (i = 0; i < 6; i++) {
		d[i].idx = 2 * NR + i;
		d[i].len = 500;
		d[i].offset = TP4_ZC_HEADROOM;
		d[i].flags = i % 3 < 2 ? TP4_PKT_CONT : 0;
		fill(tp4_data(&area, &d[i]), 500, i);
	}
	CHECK_EQ(6, tp4_ring_send(&peer.tx, d, 6));
	CHECK(tp4_kick(&peer, 0) >= 0);
	CHECK_EQ(6, wait_tx(&peer, 6));
	CHECK_EQ(0, tp4_ring_error(&peer.tx, 6));
	for (i = 0; i < 2; i++) {
		from = wait_queues(5, &n);
		CHECK(from);
		CHECK(!(tp4_ring_at(&from->rx, n - 1)->flags & TP4_PKT_CONT));
		CHECK_EQ(3, n);
		tp4_ring_recycle(&from->rx, n);
	}
	CHECK(!tp4_peek_queues(&queues, 5, &n));
}

static void queues_are_opened_all_or_none(void)
{
	struct tp4_options opt = options(NR, 0);
	int index = make_pair(2);

	CHECK_EQ(0, tp4_area_create(&area, 4 * NR, SIZE));
	CHECK_EQ(-EINVAL, tp4_open_queues(&queues, 0, 0, &opt));
	CHECK_EQ(-EINVAL, tp4_open_queues(&queues, 0, TP4_WAIT_MAX + 1, &opt));
	opt.fd = 1;
	CHECK_EQ(-EINVAL, tp4_open_queues(&queues, 0, 1, &opt));
	CHECK_EQ(TP4_IN_OPTIONS, queues.failed);
	opt.fd = 0;
	opt.rx_nr = 3;
	CHECK_EQ(-EINVAL, tp4_open_queues(&queues, 0, 2, &opt));
	CHECK_EQ(TP4_IN_RING_POWER, queues.failed);
	CHECK_EQ(0, queues.nr);
	opt.rx_nr = NR;
	/* The device has two. */
	CHECK_EQ(0, tp4_open_queues(&queues, 1, 2, &opt));
	CHECK_EQ(-ENXIO, tp4_bind_queues(&queues, index));
	CHECK_EQ(TP4_IN_BIND, queues.failed);
	tp4_close_queues(&queues);
	/* Nothing is left in use. */
	CHECK_EQ(0, tp4_open_queues(&queues, 0, 2, &opt));
	CHECK_EQ(0, tp4_bind_queues(&queues, index));
}

/* A ring that has run dry is filled; is that all the device has to be told? */
static void dry_receiver_goes_on_when_told(void)
{
	unsigned int i, n, got = 0;
	__u64 frames[NR];

	CHECK_EQ(0, open_zerocopy());
	/* Take all that the peer has posted, and a little is lost. */
	CHECK_EQ(NR, put(&s, NR, 100, 0));
	CHECK_EQ(NR, wait_tx(&s, NR));
	tp4_pool_put(&pool, &s.tx, NR);
	CHECK_EQ(NR, wait_rx(&peer, NR));
	CHECK_EQ(10, put(&s, 10, 100, 0));
	CHECK_EQ(10, wait_tx(&s, 10));
	tp4_pool_put(&pool, &s.tx, 10);

	for (i = 0; i < NR; i++)
		frames[i] = tp4_ring_at(&peer.rx, i)->idx;
	tp4_ring_take(&peer.rx, NR);
	CHECK_EQ(NR, tp4_ring_post(&peer.rx, frames, NR));
	if (tp4_rx_need_kick(&peer))
		CHECK_EQ(0, tp4_rx_kick(&peer));
	CHECK_EQ(20, put(&s, 20, 100, 1000));
	CHECK_EQ(20, wait_tx(&s, 20));
	n = wait_rx(&peer, 20);
	CHECK_EQ(20, n);
	for (i = 0; i < n; i++)
		got += is_packet(tp4_data(&area, tp4_ring_at(&peer.rx, i)),
				 100, 1000 + i);
	CHECK_EQ(20, got);
}

/* Sends nothing but by need_kick(); then the device must have been told. */
static void sender_that_kicks_when_asked_loses_nothing(void)
{
	unsigned int i;

	CHECK_EQ(0, open_zerocopy());
	for (i = 0; i < 200; i++) {
		long long end = now_ms() + WAIT_MS;

		CHECK_EQ(1, put(&s, 1, 100, i));
		if (tp4_need_kick(&s))
			CHECK(tp4_kick(&s, MSG_DONTWAIT) >= 0);
		while (!tp4_ring_peek(&s.tx, 1) && now_ms() < end)
			tp4_cpu_relax();
		CHECK_EQ(1, tp4_ring_peek(&s.tx, 1));
		tp4_pool_put(&pool, &s.tx, 1);
		CHECK_EQ(1, wait_rx(&peer, 1));
		tp4_ring_recycle(&peer.rx, 1);
	}
}

static void end_of_zero_copy_is_an_error_of_each_frame(void)
{
	unsigned int i;

	CHECK_EQ(0, open_zerocopy());
	CHECK_EQ(0, tp4_zerocopy(&s, 0));
	CHECK_EQ(NR, wait_rx(&s, NR));
	CHECK_EQ(-ECANCELED, tp4_ring_error(&s.rx, 1));
	for (i = 0; i < NR; i++)
		CHECK_EQ(ECANCELED, tp4_ring_at(&s.rx, i)->error);
	tp4_ring_recycle(&s.rx, NR);
	CHECK_EQ(NR, tp4_ring_pending(&s.rx));
}

static void busy_polling_receives(void)
{
	unsigned int n = 0;
	long long end;

	CHECK_EQ(0, open_zerocopy());
	CHECK_EQ(0, tp4_busy_poll_start(&peer, 20, 64));
	CHECK_EQ(5, put(&s, 5, 100, 0));
	if (tp4_need_kick(&s))
		tp4_kick(&s, MSG_DONTWAIT);
	end = now_ms() + WAIT_MS;
	while (n < 5 && now_ms() < end) {
		CHECK_EQ(0, tp4_busy_poll(&peer));
		n = tp4_ring_peek(&peer.rx, 5);
	}
	CHECK_EQ(5, n);
	CHECK(is_packet(tp4_data(&area, tp4_ring_at(&peer.rx, 4)), 100, 4));
}

static void some_drivers_take_the_link_down(void)
{
	const __u64 xsk = __TP4_NETDEV_XSK_ZEROCOPY;
	const __u64 both = xsk | __TP4_NETDEV_TP4_ZEROCOPY;

	CHECK_EQ(0, tp4_resets_link(ifindex));
	CHECK_EQ(-ENODEV, tp4_resets_link(0));
	CHECK_EQ(-ENODEV, tp4_resets_link(1 << 30));
	CHECK_EQ(1, __tp4_resets_port("igb", both, XDP_ATTACHED_NONE));
	CHECK_EQ(1, __tp4_resets_port("igb", xsk, XDP_ATTACHED_NONE));
	CHECK_EQ(0, __tp4_resets_port("igb", xsk, XDP_ATTACHED_DRV));
	CHECK_EQ(0, __tp4_resets_port("igb", 0, XDP_ATTACHED_NONE));
	CHECK_EQ(0, __tp4_resets_port("i40e", both, XDP_ATTACHED_NONE));
	CHECK_EQ(1, __tp4_resets_port("i40e", xsk, XDP_ATTACHED_NONE));
	CHECK_EQ(0, __tp4_resets_port("virtio_net", both, XDP_ATTACHED_NONE));
}

#define TEST(name)	{ #name, name }

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	TEST(area_is_shared_by_its_memfd),
	TEST(area_that_is_too_short_is_refused),
	TEST(destroying_an_area_twice_closes_nothing_else),
	TEST(receive_into_huge_pages),
	TEST(exchange_frames_of_any_size),
	TEST(small_frames_hold_a_packet_in_one_piece),
	TEST(without_huge_pages_an_area_is_ordinary),
	TEST(open_refuses_what_makes_no_sense),
	TEST(open_takes_a_socket_of_the_callers),
	TEST(open_leaves_the_rings_of_the_caller_alone),
	TEST(closing_twice_closes_nothing_else),
	TEST(received_packets_are_those_sent),
	TEST(packet_of_several_frames_is_a_chain),
	TEST(sent_packets_arrive_and_frames_come_back),
	TEST(refused_packet_comes_back_with_its_errno),
	TEST(ring_that_is_full_takes_no_more),
	TEST(forwarded_packets_are_not_copied),
	TEST(metadata_goes_along),
	TEST(sent_frames_are_sent_again),
	TEST(pool_gives_each_frame_once),
	TEST(statistics_count_what_found_no_frame),
	TEST(wait_tells_once_that_the_device_went_down),
	TEST(wait_says_that_a_socket_is_closed),
	TEST(socket_that_is_not_open_is_refused),
	TEST(sender_receives_nothing),
	TEST(one_protocol_is_received),
	TEST(wait_any_finds_the_one_that_is_ready),
	TEST(failed_open_says_why),
	TEST(device_that_is_gone_is_not_down),
	TEST(pool_fills_the_ring),
	TEST(wait_for_one_ring_leaves_the_other_alone),
	TEST(wait_sleeps_until_there_is_more),
	TEST(promiscuous_until_the_socket_is_closed),
	TEST(zero_copy_carries_packets_both_ways),
	TEST(zero_copy_receives_what_the_stack_has),
	TEST(a_queue_feeds_a_fanout_group),
	TEST(one_queue_receives),
	TEST(two_queues_receive),
	TEST(four_queues_receive),
	TEST(all_queues_that_fit_receive),
	TEST(busy_queue_hides_no_other),
	TEST(waiting_for_all_queues_sends),
	TEST(queues_forward_where_the_caller_wants),
	TEST(queues_keep_packets_whole),
	TEST(queues_are_opened_all_or_none),
	TEST(dry_receiver_goes_on_when_told),
	TEST(sender_that_kicks_when_asked_loses_nothing),
	TEST(end_of_zero_copy_is_an_error_of_each_frame),
	TEST(busy_polling_receives),
	TEST(some_drivers_take_the_link_down),
	{ NULL, NULL }
};

/* Whether it passed */
static int run(unsigned int i)
{
	int before = failures;

	current = tests[i].name;
	skipped = NULL;
	if (!setjmp(end_of_test))
		tests[i].run();
	tp4_close_queues(&queues);
	/* not CHECK(), which would come back here */
	if (remove_pair())
		complain(__LINE__, "tp4C cannot be removed", 0);
	tp4_close(&peer);
	tp4_close(&s);
	tp4_area_destroy(&area);
	if (huge_before >= 0)
		set_huge_pages(huge_before);
	huge_before = -1;
	printf("%sok %u %s%s%s\n", failures > before ? "not " : "", i + 1,
	       current, skipped ? " # SKIP " : "", skipped ? skipped : "");
	return failures == before;
}

int main(int argc, char **argv)
{
	unsigned int i, passed = 0;

	if (argc == 3) {
		ifname = argv[1];
		ifindex = if_nametoindex(argv[1]);
		peerindex = if_nametoindex(argv[2]);
	}
	if (!ifindex || !peerindex) {
		fprintf(stderr, "usage: lib_test IF PEER\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("TAP version 13\n");
	for (i = 0; tests[i].run; i++)
		passed += run(i);
	printf("1..%u\n", i);
	return passed < i ? 1 : 0;
}
