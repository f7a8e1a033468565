// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4: socket options and their errors, statistics, /proc/net/packet
 * and packet_diag
 */
#include "common.h"
#include "diag.h"

#include <assert.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* The ABI is the same for 32-bit and 64-bit programs. */
static_assert(sizeof(struct tpacket4_desc) == 16, "descriptor");
static_assert(offsetof(struct tpacket4_desc, len) == 8, "len");
static_assert(offsetof(struct tpacket4_desc, offset) == 12, "offset");
static_assert(offsetof(struct tpacket4_desc, error) == 14, "error");
static_assert(offsetof(struct tpacket4_desc, flags) == 15, "flags");
static_assert(sizeof(struct tpacket_req4) == 16, "req4");
static_assert(sizeof(struct tpacket_memreg_req) == 32, "memreg");
static_assert(offsetof(struct tpacket_memreg_req, frame_size) == 16, "fs");
static_assert(offsetof(struct tpacket_memreg_req, frame_unit) == 24, "fu");
static_assert(offsetof(struct tpacket_memreg_req, flags) == 28, "flags");
static_assert(sizeof(struct tpacket_stats_v4) == 56, "statistics");
static_assert(offsetof(struct tpacket_stats_v4, rx_ring_full) == 8, "stats");
static_assert(PACKET_MEMREG == 25, "option");
static_assert(PACKET_ZEROCOPY == 26, "option");
static_assert(TPACKET_V4 == 3, "version");

FIXTURE(opt) {
	int fd;				/* a V4 socket without options */
	unsigned int nr;		/* size of the smallest ring */
	size_t page;
	size_t len;			/* of the area */
	char *area;
};

FIXTURE_SETUP(opt)
{
	pv4_net_setup(_metadata);
	self->fd = pv4_socket();
	ASSERT_LE(0, self->fd);
	self->nr = pv4_min_descs();
	self->page = getpagesize();
	self->len = 64 * self->page;
	self->area = pv4_new_area(self->len);
	ASSERT_TRUE(self->area != MAP_FAILED);
}

FIXTURE_TEARDOWN(opt)
{
	close(self->fd);
}

TEST_F(opt, version)
{
	socklen_t len = sizeof(int);
	int val = -1, fd;

	ASSERT_EQ(0, getsockopt(self->fd, SOL_PACKET, PACKET_VERSION, &val,
				&len));
	EXPECT_EQ(TPACKET_V4, val);
	EXPECT_EQ(-EINVAL, pv4_setint(self->fd, PACKET_VERSION, 4));
	EXPECT_EQ(-EINVAL, pv4_setint(self->fd, PACKET_VERSION, -1));

	/* without rings, the version can be changed */
	EXPECT_EQ(0, pv4_setint(self->fd, PACKET_VERSION, TPACKET_V2));
	EXPECT_EQ(0, pv4_setint(self->fd, PACKET_VERSION, TPACKET_V4));

	/* with one it is not */
	ASSERT_EQ(0, pv4_memreg(self->fd, self->area, self->len, 2048, 0));
	ASSERT_EQ(0, pv4_set_ring(self->fd, PACKET_RX_RING, self->fd,
				  self->nr));
	EXPECT_EQ(-EBUSY, pv4_setint(self->fd, PACKET_VERSION, TPACKET_V3));
	EXPECT_EQ(-EBUSY, pv4_setint(self->fd, PACKET_VERSION, TPACKET_V4));
	ASSERT_EQ(0, pv4_set_ring(self->fd, PACKET_RX_RING, -1, 0));
	ASSERT_EQ(0, pv4_set_ring(self->fd, PACKET_TX_RING, self->fd,
				  self->nr));
	EXPECT_EQ(-EBUSY, pv4_setint(self->fd, PACKET_VERSION, TPACKET_V1));
	ASSERT_EQ(0, pv4_set_ring(self->fd, PACKET_TX_RING, -1, 0));
	EXPECT_EQ(0, pv4_setint(self->fd, PACKET_VERSION, TPACKET_V3));

	fd = socket(AF_PACKET, SOCK_DGRAM, 0);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, pv4_setint(fd, PACKET_VERSION, TPACKET_V4));
	close(fd);

	fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_IP));
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, pv4_setint(fd, PACKET_VERSION, TPACKET_V4));
	close(fd);

	fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, pv4_setint(fd, PACKET_VERSION, TPACKET_V4));
	close(fd);
}

TEST_F(opt, bind)
{
	EXPECT_EQ(0, pv4_bind(self->fd, if_a, ETH_P_IP));
	EXPECT_EQ(0, pv4_bind(self->fd, if_a, ETH_P_ALL));
	EXPECT_EQ(0, pv4_bind(self->fd, if_b, ETH_P_ARP));
	EXPECT_EQ(0, pv4_bind(self->fd, if_b, 0));
	/* bound to one protocol as V2, then switched to V4 */
	ASSERT_EQ(0, pv4_setint(self->fd, PACKET_VERSION, TPACKET_V2));
	ASSERT_EQ(0, pv4_bind(self->fd, if_b, ETH_P_ARP));
	EXPECT_EQ(0, pv4_setint(self->fd, PACKET_VERSION, TPACKET_V4));
}

TEST_F(opt, memreg_einval)
{
	struct tpacket_memreg_req req = {
		.addr = (uintptr_t)self->area,
		.len = self->len,
		.frame_size = 2048,
	};
	char *a = self->area;
	size_t len = self->len;
	int fd = self->fd, i;

	/* the struct of the first version without its last byte */
	EXPECT_EQ(-EINVAL, pv4_setopt(fd, PACKET_MEMREG, &req, 23));
	EXPECT_EQ(-EINVAL, pv4_setopt(fd, PACKET_MEMREG, &req, 0));
	EXPECT_EQ(-EINVAL, pv4_memreg(fd, a + 64, len - self->page, 2048, 0));
	EXPECT_EQ(-EINVAL, pv4_memreg(fd, a, len - 64, 2048, 0));
	EXPECT_EQ(-EINVAL, pv4_memreg(fd, a, 0, 2048, 0));
	EXPECT_EQ(-EINVAL, pv4_memreg(fd, a, len, 0, 0));
	EXPECT_EQ(-EINVAL, pv4_memreg(fd, a, len, 1024, 0));
	EXPECT_EQ(-EINVAL, pv4_memreg(fd, a, len, 3000, 0));
	EXPECT_EQ(-EINVAL, pv4_memreg(fd, a, len, 4001, 0));
	EXPECT_EQ(-EINVAL, pv4_memreg(fd, a, len, 2 * self->page, 0));
	EXPECT_EQ(-EINVAL, pv4_memreg(fd, a, len, 0x80000000u, 0));
	EXPECT_EQ(-EINVAL, pv4_memreg(fd, a, len, 2048, 2048));
	/* rounded up to 64, it fills the frame */
	EXPECT_EQ(-EINVAL, pv4_memreg(fd, a, len, 2048, 2048 - 63));
	EXPECT_EQ(-EINVAL, pv4_memreg(fd, a, len, 2048, UINT_MAX));
	EXPECT_EQ(-EINVAL, pv4_memreg(fd, a, len, 2048, UINT_MAX - 62));

	for (i = 0; i < 32; i++) {
		req.frame_unit = 1U << i;
		if (i < 6 || req.frame_unit > self->page)
			EXPECT_EQ(-EINVAL, pv4_setopt(fd, PACKET_MEMREG, &req,
						      sizeof(req)));
		req.frame_unit = 0;
		req.flags = 1U << i;
		if (req.flags == TP4_MEMREG_SHARED)
			continue;
		EXPECT_EQ(-EINVAL, pv4_setopt(fd, PACKET_MEMREG, &req,
					      sizeof(req))) {
			TH_LOG("flag %d", i);
		}
	}
	req.flags = 0;

	/* addr + len wraps around */
	req.len = -(uint64_t)self->page;
	EXPECT_EQ(-EINVAL, pv4_setopt(fd, PACKET_MEMREG, &req, sizeof(req)));
	req.addr = -(uint64_t)self->page;
	req.len = 2 * self->page;
	EXPECT_EQ(-EINVAL, pv4_setopt(fd, PACKET_MEMREG, &req, sizeof(req)));

	/* more frames than a ring can refer to */
	req.addr = (uintptr_t)a;
	req.len = 1ULL << 43;
	EXPECT_EQ(-EINVAL, pv4_setopt(fd, PACKET_MEMREG, &req, sizeof(req)));

	/* the refused calls have left nothing behind */
	EXPECT_EQ(0, pv4_memreg(fd, a, len, 2048, 64));
	EXPECT_EQ(-EBUSY, pv4_memreg(fd, a, len, 2048, 64));
	EXPECT_EQ(-EBUSY, pv4_memreg(fd, a, self->page, 4096, 0));
}

TEST_F(opt, memreg_efault)
{
	char *hole = self->area + self->len / 2;
	char *ro;

	EXPECT_EQ(-EFAULT, pv4_setopt(self->fd, PACKET_MEMREG, NULL,
				      sizeof(struct tpacket_memreg_req)));
	ASSERT_EQ(0, munmap(hole, self->page));
	EXPECT_EQ(-EFAULT, pv4_memreg(self->fd, self->area, self->len, 2048,
				      0));
	EXPECT_EQ(-EFAULT, pv4_memreg(self->fd, hole, self->page, 2048, 0));

	ro = mmap(NULL, self->len, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1,
		  0);
	ASSERT_TRUE(ro != MAP_FAILED);
	EXPECT_EQ(-EFAULT, pv4_memreg(self->fd, ro, self->len, 2048, 0));
	EXPECT_EQ(0, pv4_memreg(self->fd, self->area, self->len / 2, 2048, 0));
}

/* Mappings whose first write the kernel has to see cannot be pinned, such as
 * those of files on a disk. That of a perf event needs no disk.
 */
TEST_F(opt, memreg_not_pinned)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
	};
	int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	char *p;

	if (fd < 0)
		SKIP(return, "no perf event: %s", strerror(errno));
	p = mmap(NULL, 2 * self->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		 0);
	ASSERT_TRUE(p != MAP_FAILED);
	EXPECT_EQ(-EFAULT, pv4_memreg(self->fd, p, 2 * self->page, 2048, 0));
	close(fd);
}

/* Private memory and a memfd work alike; huge_pages.c tests huge pages. */
TEST_F(opt, memreg_memory_types)
{
	int mem = memfd_create("tpacket4", 0), fd;
	char *p;

	p = mmap(NULL, self->len, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_TRUE(p != MAP_FAILED);
	EXPECT_EQ(0, pv4_memreg(self->fd, p, self->len, 4096, 0));

	ASSERT_LE(0, mem);
	ASSERT_EQ(0, ftruncate(mem, self->len));
	p = mmap(NULL, self->len, PROT_READ | PROT_WRITE, MAP_SHARED, mem, 0);
	ASSERT_TRUE(p != MAP_FAILED);
	/* any packet socket works, of any version and type */
	fd = socket(AF_PACKET, SOCK_DGRAM, 0);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, pv4_memreg(fd, p, self->len, 2048, 256));
	EXPECT_EQ(0, pv4_set_ring(self->fd, PACKET_TX_RING, fd, self->nr));
	close(fd);
	close(mem);
}

/* Registered memory is charged once, and uncharged with the area. */
TEST_F(opt, memlock)
{
	/* the kernel may charge up to two more pages */
	size_t max = self->len + 2 * self->page;
	struct rlimit rl = { .rlim_cur = max, .rlim_max = max };
	int fd, i;

	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &rl));
	/* other tests of root are charged, too, so use another user */
	ASSERT_EQ(0, setreuid(54321, -1));
	ASSERT_EQ(0, drop_cap(CAP_IPC_LOCK));

	for (i = 0; i < 3; i++) {
		int a = socket(AF_PACKET, SOCK_RAW, 0);
		int b = socket(AF_PACKET, SOCK_RAW, 0);

		ASSERT_LE(0, a);
		ASSERT_LE(0, b);
		EXPECT_EQ(0, pv4_memreg(a, self->area, self->len, 2048, 0));
		EXPECT_EQ(-ENOBUFS, pv4_memreg(b, self->area, self->page, 2048,
					       0));
		close(a);
		/* close() has uncharged it, as no ring uses the area */
		EXPECT_EQ(0, pv4_memreg(b, self->area, self->page, 2048, 0));
		close(b);
	}

	/* a ring that uses the area keeps the charge after close() */
	fd = socket(AF_PACKET, SOCK_RAW, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, pv4_memreg(fd, self->area, self->len, 2048, 0));
	ASSERT_EQ(0, pv4_set_ring(self->fd, PACKET_RX_RING, fd, self->nr));
	close(fd);
	EXPECT_EQ(-ENOBUFS, pv4_memreg(self->fd, self->area, self->page, 2048,
				       0));
	ASSERT_EQ(0, pv4_set_ring(self->fd, PACKET_RX_RING, -1, 0));
	EXPECT_EQ(0, pv4_memreg(self->fd, self->area, self->len, 2048, 0));
}

TEST_F(opt, memlock_privileged)
{
	struct rlimit rl = { 0 };

	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &rl));
	EXPECT_EQ(0, pv4_memreg(self->fd, self->area, self->len, 2048, 0));
}

FIXTURE_VARIANT(opt_ring) {
	int opt;
};

FIXTURE(opt_ring) {
	int fd;
	int mr;				/* another socket, with an area */
	unsigned int nr;
	size_t len;
	char *area;
};

FIXTURE_VARIANT_ADD(opt_ring, rx) { .opt = PACKET_RX_RING };
FIXTURE_VARIANT_ADD(opt_ring, tx) { .opt = PACKET_TX_RING };

FIXTURE_SETUP(opt_ring)
{
	pv4_net_setup(_metadata);
	self->fd = pv4_socket();
	self->mr = socket(AF_PACKET, SOCK_RAW, 0);
	ASSERT_LE(0, self->fd);
	ASSERT_LE(0, self->mr);
	self->nr = pv4_min_descs();
	self->len = 64 * getpagesize();
	self->area = pv4_new_area(self->len);
	ASSERT_EQ(0, pv4_memreg(self->mr, self->area, self->len, 2048, 0));
}

FIXTURE_TEARDOWN(opt_ring)
{
	close(self->fd);
	close(self->mr);
}

TEST_F(opt_ring, errnos)
{
	struct tpacket_req4 req = { .mr_fd = self->mr, .desc_nr = self->nr };
	int opt = variant->opt, fd = self->fd, mr = self->mr, other;
	struct tpacket_req3 req3 = { 0 };
	unsigned int nr = self->nr;

	EXPECT_EQ(-EINVAL, pv4_setopt(fd, opt, &req, sizeof(req) / 2 - 1));
	EXPECT_EQ(-EINVAL, pv4_setopt(fd, opt, &req, 0));
	EXPECT_EQ(-EINVAL, pv4_set_ring(fd, opt, mr, 1));
	EXPECT_EQ(-EINVAL, pv4_set_ring(fd, opt, mr, nr / 2));
	EXPECT_EQ(-EINVAL, pv4_set_ring(fd, opt, mr, nr + 1));
	EXPECT_EQ(-EINVAL, pv4_set_ring(fd, opt, mr, 3 * nr));
	EXPECT_EQ(-EINVAL, pv4_set_ring(fd, opt, mr, 1 << 21));
	EXPECT_EQ(-EINVAL, pv4_set_ring(fd, opt, mr, 0x80000000u));
	EXPECT_EQ(-EINVAL, pv4_set_ring(fd, opt, mr, UINT_MAX));

	EXPECT_EQ(-EBADF, pv4_set_ring(fd, opt, -1, nr));
	EXPECT_EQ(-EBADF, pv4_set_ring(fd, opt, 12345, nr));
	other = open("/dev/null", O_RDWR);
	EXPECT_EQ(-ENOTSOCK, pv4_set_ring(fd, opt, other, nr));
	close(other);
	other = socket(AF_UNIX, SOCK_STREAM, 0);
	EXPECT_EQ(-EINVAL, pv4_set_ring(fd, opt, other, nr));
	close(other);
	/* packet sockets without an area: another one, and itself */
	other = socket(AF_PACKET, SOCK_RAW, 0);
	EXPECT_EQ(-EINVAL, pv4_set_ring(fd, opt, other, nr));
	close(other);
	EXPECT_EQ(-EINVAL, pv4_set_ring(fd, opt, fd, nr));

	/* requests of V1 to V3 are refused, whatever their size */
	req3.tp_block_size = getpagesize();
	req3.tp_block_nr = 1;
	req3.tp_frame_size = 2048;
	req3.tp_frame_nr = getpagesize() / 2048;
	EXPECT_GT(0, pv4_setopt(fd, opt, &req3, sizeof(req3)));

	EXPECT_EQ(0, pv4_set_ring(fd, opt, -1, 0));	/* none to remove */
	ASSERT_EQ(0, pv4_set_ring(fd, opt, mr, nr));
	EXPECT_EQ(-EBUSY, pv4_set_ring(fd, opt, mr, nr));
	EXPECT_EQ(-EBUSY, pv4_set_ring(fd, opt, mr, 2 * nr));
	EXPECT_EQ(0, pv4_set_ring(fd, opt, -1, 0));
	EXPECT_EQ(0, pv4_set_ring(fd, opt, mr, 4 * nr));
	EXPECT_EQ(0, pv4_set_ring(fd, opt, 12345, 0));
	EXPECT_EQ(0, pv4_set_ring(fd, opt, mr, 1 << 20));
}

TEST_F(opt_ring, reserve)
{
	int opt = PACKET_RX_RING;
	socklen_t len = sizeof(int);
	int val = -1;

	/* at least 64 bytes of room */
	ASSERT_EQ(0, pv4_setint(self->fd, PACKET_RESERVE, 2048 - 63));
	EXPECT_EQ(-EINVAL, pv4_set_ring(self->fd, opt, self->mr, self->nr));
	ASSERT_EQ(0, pv4_setint(self->fd, PACKET_RESERVE, INT_MAX));
	EXPECT_EQ(-EINVAL, pv4_set_ring(self->fd, opt, self->mr, self->nr));
	ASSERT_EQ(0, pv4_setint(self->fd, PACKET_RESERVE, 2048 - 64));
	EXPECT_EQ(0, pv4_set_ring(self->fd, opt, self->mr, self->nr));
	EXPECT_EQ(-EBUSY, pv4_setint(self->fd, PACKET_RESERVE, 0));
	ASSERT_EQ(0, getsockopt(self->fd, SOL_PACKET, PACKET_RESERVE, &val,
				&len));
	EXPECT_EQ(2048 - 64, val);
}

static int try_mmap(int fd, size_t len, off_t off)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, off);

	if (p == MAP_FAILED)
		return -errno;
	munmap(p, len);
	return 0;
}

TEST_F(opt_ring, mmap)
{
	size_t page = getpagesize();
	void *map;

	EXPECT_EQ(-EINVAL, try_mmap(self->fd, page, 0));
	ASSERT_EQ(0, pv4_set_ring(self->fd, variant->opt, self->mr,
				  2 * self->nr));
	EXPECT_EQ(-EINVAL, try_mmap(self->fd, page, 0));
	EXPECT_EQ(-EINVAL, try_mmap(self->fd, 4 * page, 0));
	EXPECT_EQ(-EINVAL, try_mmap(self->fd, 3 * page, page));
	EXPECT_EQ(-EINVAL, try_mmap(self->fd, 2 * page, page));
	EXPECT_EQ(0, try_mmap(self->fd, 3 * page, 0));
	EXPECT_EQ(-EINVAL, try_mmap(self->fd, page, page));
	EXPECT_EQ(0, try_mmap(self->fd, 2 * page, 0));

	map = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED,
		   self->fd, 0);
	ASSERT_TRUE(map != MAP_FAILED);
	/* a mapped ring cannot be changed, and no second one added */
	EXPECT_EQ(-EBUSY, pv4_set_ring(self->fd, variant->opt, -1, 0));
	EXPECT_EQ(-EBUSY, pv4_set_ring(self->fd, PACKET_RX_RING, self->mr,
				       self->nr));
	EXPECT_EQ(-EBUSY, pv4_set_ring(self->fd, PACKET_TX_RING, self->mr,
				       self->nr));
	/* new descriptors belong to the program and are zeroed */
	EXPECT_EQ(0, memcmp(map, map + 1, 2 * page - 1));
	EXPECT_EQ(0, *(char *)map);
	munmap(map, 2 * page);
	EXPECT_EQ(0, pv4_set_ring(self->fd, variant->opt, -1, 0));
}

/* One mapping has the Rx ring followed by the Tx ring. */
TEST_F(opt, mmap_both)
{
	struct pv4_cfg cfg = { .rx_nr = self->nr, .tx_nr = 4 * self->nr };
	struct tpacket4_desc d = { .idx = 7, .len = 60 };
	struct pv4 s;

	ASSERT_EQ(0, pv4_open(&s, &cfg));
	EXPECT_EQ(-EINVAL, try_mmap(s.fd, self->page, 0));
	EXPECT_EQ(-EINVAL, try_mmap(s.fd, 4 * self->page, 0));
	EXPECT_EQ(-EINVAL, try_mmap(s.fd, 4 * self->page, self->page));
	EXPECT_EQ(-EINVAL, try_mmap(s.fd, 7 * self->page, 0));
	/* the kernel reads Tx descriptors only there */
	pv4_post(&s.tx, &d, 1);
	ASSERT_EQ(0, pv4_bind(s.fd, if_a, 0));
	EXPECT_EQ(60, pv4_kick(&s, 0));
	EXPECT_FALSE(desc_is_kernels(&s.tx.desc[0]));
	EXPECT_TRUE(desc_is_kernels(&s.rx.desc[0]));
	pv4_close(&s);
}

/* The page behind the rings: in copy mode a kick is always needed. */
TEST_F(opt, mmap_status)
{
	struct pv4_cfg cfg = { .rx_nr = self->nr, .tx_nr = self->nr };
	struct tpacket4_status *status;
	size_t page = self->page;
	struct pv4 s;
	int i, lap;
	char *map;

	ASSERT_EQ(0, pv4_open(&s, &cfg));
	for (lap = 0; lap < 2; lap++) {
		map = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_SHARED,
			   s.fd, 0);
		ASSERT_TRUE(map != MAP_FAILED);
		status = (void *)(map + 2 * page);
		EXPECT_EQ(1, status->tx_need_wakeup);
		for (i = 0; i < ARRAY_SIZE(status->reserved); i++)
			EXPECT_EQ(0, status->reserved[i]);
		/* no other kernel memory is there */
		EXPECT_EQ(0, memcmp(status + 1, (char *)(status + 1) + 1,
				    page - sizeof(*status) - 1));
		EXPECT_EQ(0, *(char *)(status + 1));
		ASSERT_EQ(0, munmap(map, 3 * page));
	}
	pv4_close(&s);
}

TEST_F(opt, zerocopy)
{
	struct pv4_cfg cfg = { .rx_nr = self->nr, .tx_nr = self->nr };
	int one = 1, val = -1;
	socklen_t len = sizeof(val);
	struct pv4 s;

	EXPECT_EQ(-EINVAL, pv4_setopt(self->fd, PACKET_ZEROCOPY, &one,
				      sizeof(one) - 1));
	EXPECT_EQ(-EINVAL, pv4_setint(self->fd, PACKET_ZEROCOPY, -1));
	EXPECT_EQ(-EINVAL, pv4_setint(self->fd, PACKET_ZEROCOPY, INT_MIN));
	EXPECT_EQ(-EFAULT, pv4_setopt(self->fd, PACKET_ZEROCOPY, NULL,
				      sizeof(int)));
	ASSERT_EQ(0, pv4_bind(self->fd, "lo", 0));
	/* no rings */
	EXPECT_EQ(-EINVAL, pv4_setint(self->fd, PACKET_ZEROCOPY, 1));
	EXPECT_EQ(0, pv4_setint(self->fd, PACKET_ZEROCOPY, 0));

	ASSERT_EQ(0, pv4_open(&s, &cfg));
	ASSERT_EQ(0, pv4_bind(s.fd, "lo", 0));
	/* lo will never have it */
	EXPECT_EQ(-EOPNOTSUPP, pv4_setint(s.fd, PACKET_ZEROCOPY, 1));
	EXPECT_EQ(0, pv4_setint(s.fd, PACKET_ZEROCOPY, 0));
	EXPECT_EQ(0, getsockopt(s.fd, SOL_PACKET, PACKET_ZEROCOPY, &val, &len));
	EXPECT_EQ(0, val);
	pv4_close(&s);

	ASSERT_EQ(0, drop_cap(CAP_NET_ADMIN));
	EXPECT_EQ(-EPERM, pv4_setint(self->fd, PACKET_ZEROCOPY, 1));
	EXPECT_EQ(-EINVAL, pv4_setint(self->fd, PACKET_ZEROCOPY, -1));
}

TEST_F(opt, statistics_size)
{
	struct tpacket_stats_v4 st;
	socklen_t len;

	ASSERT_EQ(0, pv4_stats(self->fd, &st));
	EXPECT_EQ(0U, st.tp_packets);
	EXPECT_EQ(0U, st.tp_drops);
	EXPECT_EQ(0U, st.rx_ring_full);
	EXPECT_EQ(0U, st.tx_invalid_descs);
	/* a program that passes struct tpacket_stats gets just that */
	len = sizeof(struct tpacket_stats);
	memset(&st, 0xff, sizeof(st));
	ASSERT_EQ(0, getsockopt(self->fd, SOL_PACKET, PACKET_STATISTICS, &st,
				&len));
	EXPECT_EQ(sizeof(struct tpacket_stats), len);
	EXPECT_EQ(0U, st.tp_packets);
	EXPECT_EQ(UINT64_MAX, st.rx_ring_full);
	/* V2 and V3 get the same as before */
	ASSERT_EQ(0, pv4_setint(self->fd, PACKET_VERSION, TPACKET_V3));
	len = sizeof(st);
	ASSERT_EQ(0, getsockopt(self->fd, SOL_PACKET, PACKET_STATISTICS, &st,
				&len));
	EXPECT_EQ(sizeof(struct tpacket_stats_v3), len);
}

TEST_F(opt, statistics_efault)
{
	struct tpacket_stats_v4 st;
	socklen_t len = sizeof(st), *ro;

	EXPECT_EQ(-1, getsockopt(self->fd, SOL_PACKET, PACKET_STATISTICS, NULL,
				 &len));
	EXPECT_EQ(EFAULT, errno);
	ro = mmap(NULL, self->page, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_TRUE(ro != MAP_FAILED);
	*ro = sizeof(st);
	ASSERT_EQ(0, mprotect(ro, self->page, PROT_READ));
	EXPECT_EQ(-1, getsockopt(self->fd, SOL_PACKET, PACKET_STATISTICS, &st,
				 ro));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(0, pv4_stats(self->fd, &st));
}

TEST_F(opt, proc_net_packet)
{
	unsigned int type, iface, running, rmem, uid;
	unsigned long inode, want;
	bool seen = false;
	char line[256];
	struct stat st;
	int refs, proto;
	FILE *f;

	ASSERT_EQ(0, fstat(self->fd, &st));
	want = st.st_ino;
	ASSERT_EQ(0, pv4_bind(self->fd, if_a, ETH_P_ALL));
	f = fopen("/proc/thread-self/net/packet", "r");
	ASSERT_TRUE(!!f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*s %d %u %x %u %u %u %u %lu", &refs, &type,
			   (unsigned int *)&proto, &iface, &running, &rmem,
			   &uid, &inode) != 8 || inode != want)
			continue;
		seen = true;
		EXPECT_EQ((unsigned int)SOCK_RAW, type);
		EXPECT_EQ(ETH_P_ALL, proto);
		EXPECT_EQ(if_nametoindex(if_a), iface);
		EXPECT_EQ(1U, running);
	}
	fclose(f);
	EXPECT_TRUE(seen);
}

TEST_F(opt, packet_diag)
{
	struct pv4_cfg cfg = {
		.ifname = if_b,
		.rx_nr = self->nr, .tx_nr = 2 * self->nr,
		.frame_size = 4096, .headroom = 100,
	};
	struct diag d;
	struct stat st;
	struct pv4 s;
	int err;

	ASSERT_EQ(0, pv4_open(&s, &cfg));
	ASSERT_EQ(0, fstat(s.fd, &st));
	err = diag_find(st.st_ino, &d);
	if (err == -ENOENT)
		SKIP(return, "needs CONFIG_PACKET_DIAG");
	ASSERT_EQ(0, err);
	EXPECT_EQ(if_nametoindex(if_b), d.info.pdi_index);
	EXPECT_EQ((unsigned int)TPACKET_V4, d.info.pdi_version);
	/* one "frame" per descriptor, ring pages as blocks */
	EXPECT_EQ(self->nr, d.rx.pdr_frame_nr);
	EXPECT_EQ(2 * self->nr, d.tx.pdr_frame_nr);
	EXPECT_EQ(16U, d.rx.pdr_frame_size);
	EXPECT_EQ(3 * self->nr, d.memreg.pdm_frame_nr);
	EXPECT_EQ(4096U, d.memreg.pdm_frame_size);
	EXPECT_EQ(128U, d.memreg.pdm_headroom);
	EXPECT_EQ(0U, d.memreg.pdm_frame_unit);
	/* one of the socket, and one of each ring */
	EXPECT_EQ(3U, d.memreg.pdm_users);
	pv4_close(&s);
}

/* Rx and Tx rings of minimum size, on lo */
static bool send_to_oneself(int fd, char *area)
{
	struct pv4 s = { .fd = fd, .area = area, .frame_size = 2048 };
	struct tpacket4_desc d = { .idx = 1, .len = 60 };
	unsigned int nr = pv4_min_descs();

	if (pv4_map_rings(&s, nr, nr))
		return false;
	fill_packet(pv4_frame(&s, 1), 60, 5);
	pv4_rx_post(&s, 0);
	pv4_post(&s.tx, &d, 1);
	if (pv4_kick(&s, 0) != 60 || !pv4_take_wait(&s, &s.rx, &d, WAIT_MS))
		return false;
	munmap(s.map, s.map_len);
	return packet_ok(pv4_frame(&s, 0), d.len, 60, 5);
}

/* V4 needs the same privileges as any packet socket. */
static int in_userns(void)
{
	struct tpacket_memreg_req req = { .frame_size = 2048 };
	unsigned int nr = pv4_min_descs();
	size_t len = 16 * getpagesize();
	char *area;
	int fd;

	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		return 1;
	fd = socket(AF_PACKET, SOCK_RAW, 0);
	if (fd >= 0 || errno != EPERM)
		return 2;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return KSFT_SKIP;
	fd = pv4_socket();
	if (fd < 0)
		return 3;
	if (set_up("lo", true))
		return 4;
	area = pv4_new_area(len);
	req.addr = (uintptr_t)area;
	req.len = len;
	if (pv4_setopt(fd, PACKET_MEMREG, &req, sizeof(req)))
		return 5;
	if (pv4_set_ring(fd, PACKET_RX_RING, fd, nr) ||
	    pv4_set_ring(fd, PACKET_TX_RING, fd, nr))
		return 6;
	if (pv4_bind(fd, "lo", ETH_P_ALL))
		return 7;
	if (!send_to_oneself(fd, area))
		return 8;
	/* root of its own namespace: only the driver lacks support */
	if (pv4_setint(fd, PACKET_ZEROCOPY, 1) != -EOPNOTSUPP)
		return 9;
	if (drop_cap(CAP_NET_ADMIN))
		return 10;
	if (pv4_setint(fd, PACKET_ZEROCOPY, 1) != -EPERM)
		return 11;
	/* an area in its own user namespace is charged to the real user */
	if (setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){ 0 }))
		return 12;
	fd = socket(AF_PACKET, SOCK_RAW, 0);
	if (fd < 0)
		return 13;
	/* CAP_IPC_LOCK there does not apply to the memory of the machine */
	return pv4_memreg(fd, area, len, 2048, 0) == -ENOBUFS ? 0 : 14;
}

TEST_F(opt, user_namespace)
{
	int status;
	pid_t pid;

	pid = pv4_fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(in_userns());
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFEXITED(status));
	if (WEXITSTATUS(status) == KSFT_SKIP)
		SKIP(return, "no unprivileged user namespaces");
	EXPECT_EQ(0, WEXITSTATUS(status)) {
		TH_LOG("see the step with this number in in_userns()");
	}
}

TEST_HARNESS_MAIN
