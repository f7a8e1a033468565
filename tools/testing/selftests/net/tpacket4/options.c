// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4: socket options. Their structs can grow: a longer struct is
 * accepted unless it uses members that this kernel does not know. Options that
 * do not apply to a V4 socket are refused and not ignored.
 */
#include "common.h"
#include "diag.h"

#include <sys/stat.h>

#define AREA_FRAMES	512

FIXTURE(options) {
	char *area;
	int fd;
};

FIXTURE_SETUP(options)
{
	pv4_net_setup(_metadata);
	self->area = pv4_new_area(AREA_FRAMES * 2048);
	ASSERT_TRUE(self->area != MAP_FAILED);
	self->fd = pv4_socket();
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(options)
{
	close(self->fd);
}

/* ---- structs that grow ---- */

/* Room for members of a later kernel */
union ring_opt {
	struct {
		int mr_fd;
		__u32 desc_nr;
		__u32 flags;
		__u32 reserved;
	};
	char bytes[4096];
};

union memreg_opt {
	struct tpacket_memreg_req req;
	char bytes[4096];
};

static const int ring_opts[] = { PACKET_RX_RING, PACKET_TX_RING };

static union ring_opt ring_opt(int mr_fd, unsigned int nr)
{
	return (union ring_opt){ .mr_fd = mr_fd, .desc_nr = nr };
}

static int register_area(int fd, char *area)
{
	return pv4_memreg(fd, area, AREA_FRAMES * 2048, 2048, 0);
}

TEST_F(options, ring_request_sizes)
{
	static const struct {
		unsigned int len;
		int err;
	} sizes[] = {
		{ 0, EINVAL }, { 1, EINVAL }, { 4, EINVAL }, { 7, EINVAL },
		{ 8, 0 }, { 16, 0 }, { 17, 0 }, { 24, 0 }, { 64, 0 },
		{ 4096, 0 },
	};
	unsigned int i, k, nr = pv4_min_descs();
	union ring_opt req;

	ASSERT_EQ(0, register_area(self->fd, self->area));
	for (k = 0; k < ARRAY_SIZE(ring_opts); k++) {
		for (i = 0; i < ARRAY_SIZE(sizes); i++) {
			req = ring_opt(self->fd, nr);
			EXPECT_EQ(-sizes[i].err,
				  pv4_setopt(self->fd, ring_opts[k], &req,
					     sizes[i].len)) {
				TH_LOG("%u bytes", sizes[i].len);
			}
			if (sizes[i].err)
				continue;
			/* removing the ring frees as many */
			req = ring_opt(-1, 0);
			EXPECT_EQ(0, pv4_setopt(self->fd, ring_opts[k], &req,
						sizes[i].len));
		}
	}
}

/* The bytes behind the struct that this kernel knows must be zero. */
TEST_F(options, ring_request_tail)
{
	static const unsigned int lens[] = { 17, 24, 4096 };
	unsigned int i, k, nr = pv4_min_descs();
	struct pv4 s = { .fd = self->fd };
	union ring_opt req;

	ASSERT_EQ(0, register_area(self->fd, self->area));
	for (k = 0; k < ARRAY_SIZE(ring_opts); k++) {
		for (i = 0; i < ARRAY_SIZE(lens); i++) {
			req = ring_opt(self->fd, nr);
			req.bytes[lens[i] - 1] = 1;
			EXPECT_EQ(-E2BIG, pv4_setopt(self->fd, ring_opts[k],
						     &req, lens[i])) {
				TH_LOG("byte %u", lens[i] - 1);
			}
			/* nor are the bytes after that read */
			EXPECT_EQ(0, pv4_setopt(self->fd, ring_opts[k], &req,
						lens[i] - 1));
			EXPECT_EQ(0, pv4_set_ring(self->fd, ring_opts[k], -1,
						  0));
		}
	}
	/* the refused calls have left no ring behind */
	EXPECT_EQ(-EINVAL, pv4_map_rings(&s, nr, 0));
}

TEST_F(options, ring_request_flags)
{
	const __u32 known = TP4_RING_META | TP4_RING_TO_STACK | TP4_RING_KEEP |
			    TP4_RING_PACKED;
	unsigned int i, k, nr = pv4_min_descs();
	union ring_opt req;

	ASSERT_EQ(0, register_area(self->fd, self->area));
	for (k = 0; k < ARRAY_SIZE(ring_opts); k++) {
		for (i = 0; i < 32; i++) {
			req = ring_opt(self->fd, nr);
			req.flags = 1U << i;
			if (req.flags & known)
				continue;
			ASSERT_EQ(-EINVAL, pv4_setopt(self->fd, ring_opts[k],
						      &req, 16)) {
				TH_LOG("flag %u", i);
			}
		}
		for (i = 0; i < 32; i++) {
			req = ring_opt(self->fd, nr);
			req.reserved = 1U << i;
			ASSERT_EQ(-EINVAL, pv4_setopt(self->fd, ring_opts[k],
						      &req, 16)) {
				TH_LOG("reserved %u", i);
			}
			req = ring_opt(-1, 0);
			req.reserved = 1U << i;
			ASSERT_EQ(-EINVAL, pv4_setopt(self->fd, ring_opts[k],
						      &req, 16));
		}
	}
}

/* Only an Rx ring gives copies to the stack, or keeps frames. */
TEST_F(options, to_stack_only_for_rx)
{
	unsigned int nr = pv4_min_descs();
	struct stat st;
	struct diag d;
	int err;

	ASSERT_EQ(0, register_area(self->fd, self->area));
	EXPECT_EQ(-EINVAL, pv4_set_ring_flags(self->fd, PACKET_TX_RING,
					      self->fd, nr, TP4_RING_TO_STACK));
	EXPECT_EQ(-EINVAL, pv4_set_ring_flags(self->fd, PACKET_TX_RING,
					      self->fd, nr, TP4_RING_KEEP));
	ASSERT_EQ(0, pv4_set_ring_flags(self->fd, PACKET_RX_RING, self->fd, nr,
					TP4_RING_TO_STACK));
	ASSERT_EQ(0, fstat(self->fd, &st));
	err = diag_find(st.st_ino, &d);
	if (err == -ENOENT)
		SKIP(return, "needs CONFIG_PACKET_DIAG");
	ASSERT_EQ(0, err);
	EXPECT_EQ(TP4_RING_TO_STACK, d.rx.pdr_features);
	ASSERT_EQ(0, pv4_set_ring(self->fd, PACKET_RX_RING, -1, 0));
	ASSERT_EQ(0, diag_find(st.st_ino, &d));
	EXPECT_EQ(0U, d.rx.pdr_features);
}

/* The length includes a tail that is not mapped. */
TEST_F(options, tail_not_mapped)
{
	size_t page = getpagesize();
	struct tpacket_memreg_req *memreg;
	char *p = pv4_new_area(2 * page);
	struct tpacket_req4 *req;

	ASSERT_TRUE(p != MAP_FAILED);
	ASSERT_EQ(0, munmap(p + page, page));
	memreg = (void *)(p + page - sizeof(*memreg));
	*memreg = (struct tpacket_memreg_req) {
		.addr = (uintptr_t)self->area, .len = AREA_FRAMES * 2048,
		.frame_size = 2048,
	};
	EXPECT_EQ(-EFAULT, pv4_setopt(self->fd, PACKET_MEMREG, memreg,
				      sizeof(*memreg) + 8));
	EXPECT_EQ(0, pv4_setopt(self->fd, PACKET_MEMREG, memreg,
				sizeof(*memreg)));
	memset(p, 0, page);
	req = (void *)(p + page - 16);
	req->mr_fd = self->fd;
	req->desc_nr = pv4_min_descs();
	EXPECT_EQ(-EFAULT, pv4_setopt(self->fd, PACKET_RX_RING, req, 24));
	EXPECT_EQ(0, pv4_setopt(self->fd, PACKET_RX_RING, req, 16));
}

TEST_F(options, memreg_sizes_and_tail)
{
	static const unsigned int lens[] = { 33, 40, 4096 };
	union memreg_opt opt = {
		.req = {
			.addr = (uintptr_t)self->area,
			.len = AREA_FRAMES * 2048, .frame_size = 2048,
		},
	};
	unsigned int i;
	int fd;

	ASSERT_EQ(32U, sizeof(opt.req));
	for (i = 0; i < 24; i++)
		EXPECT_EQ(-EINVAL, pv4_setopt(self->fd, PACKET_MEMREG, &opt,
					      i));
	/* The first version of the struct: the rest is not read. */
	opt.req.frame_unit = 1;
	opt.req.flags = ~0U;
	fd = pv4_socket();
	EXPECT_EQ(0, pv4_setopt(fd, PACKET_MEMREG, &opt, 24));
	close(fd);
	opt.req.frame_unit = 0;
	opt.req.flags = TP4_MEMREG_SHARED;
	for (i = 25; i <= 32; i++) {
		fd = pv4_socket();
		EXPECT_EQ(0, pv4_setopt(fd, PACKET_MEMREG, &opt, i));
		close(fd);
	}
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		opt.bytes[lens[i] - 1] = 1;
		fd = pv4_socket();
		EXPECT_EQ(-E2BIG, pv4_setopt(fd, PACKET_MEMREG, &opt,
					     lens[i])) {
			TH_LOG("byte %u", lens[i] - 1);
		}
		close(fd);
		opt.bytes[lens[i] - 1] = 0;
		fd = pv4_socket();
		EXPECT_EQ(0, pv4_setopt(fd, PACKET_MEMREG, &opt, lens[i]));
		close(fd);
	}
	EXPECT_EQ(0, pv4_setopt(self->fd, PACKET_MEMREG, &opt,
				sizeof(opt.req)));
}

TEST_F(options, structs_longer_than_a_page)
{
	long page = sysconf(_SC_PAGESIZE);
	struct tpacket_memreg_req req = {
		.addr = (unsigned long)self->area,
		.len = AREA_FRAMES * 2048,
		.frame_size = 2048,
	};
	char *opt = calloc(1, page + 1);
	unsigned int k;

	ASSERT_TRUE(!!opt);
	memcpy(opt, &req, sizeof(req));
	EXPECT_EQ(-E2BIG, pv4_setopt(self->fd, PACKET_MEMREG, opt, page + 1));
	EXPECT_EQ(0, pv4_setopt(self->fd, PACKET_MEMREG, opt, page));
	memset(opt, 0, page);
	for (k = 0; k < ARRAY_SIZE(ring_opts); k++) {
		EXPECT_EQ(-E2BIG, pv4_setopt(self->fd, ring_opts[k], opt,
					     page + 1));
		EXPECT_EQ(0, pv4_setopt(self->fd, ring_opts[k], opt, page));
	}
	free(opt);
}

/* ---- options of V1 to V3 ---- */

static int get_int(int fd, int opt)
{
	socklen_t len = sizeof(int);
	int val = -1;

	return getsockopt(fd, SOL_PACKET, opt, &val, &len) ? -errno : val;
}

TEST_F(options, unsupported_by_v4)
{
	static const int opts[] = {
		PACKET_TX_HAS_OFF, PACKET_COPY_THRESH, PACKET_VNET_HDR,
	};
	unsigned int i;
	int fd;

	for (i = 0; i < ARRAY_SIZE(opts); i++) {
		EXPECT_EQ(-EINVAL, pv4_setint(self->fd, opts[i], 1)) {
			TH_LOG("option %d", opts[i]);
		}
		/* nor V4 for a socket that has it */
		fd = socket(AF_PACKET, SOCK_RAW, 0);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, pv4_setint(fd, opts[i], 1));
		EXPECT_EQ(-EINVAL, pv4_setint(fd, PACKET_VERSION,
					      TPACKET_V4)) {
			TH_LOG("V4 after option %d", opts[i]);
		}
		EXPECT_EQ(TPACKET_V1, get_int(fd, PACKET_VERSION));
		EXPECT_EQ(0, pv4_setint(fd, PACKET_VERSION, TPACKET_V2));
		ASSERT_EQ(0, pv4_setint(fd, opts[i], 0));
		EXPECT_EQ(0, pv4_setint(fd, PACKET_VERSION, TPACKET_V4));
		close(fd);
	}
}

TEST_F(options, timestamp)
{
	/* raw hardware and software, of linux/net_tstamp.h */
	static const int vals[] = { 1 << 6, 1 << 4, 0 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(vals); i++) {
		EXPECT_EQ(0, pv4_setint(self->fd, PACKET_TIMESTAMP, vals[i]));
		EXPECT_EQ(vals[i], get_int(self->fd, PACKET_TIMESTAMP));
	}
}

TEST_HARNESS_MAIN
