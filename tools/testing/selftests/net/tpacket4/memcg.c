// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4: kernel memory for rings and areas is charged to the memory
 * cgroup of the program.
 */
#include "common.h"

#include <sys/mount.h>
#include <sys/stat.h>

#define NR		262144		/* slots of a large ring */
#define AREA_LEN	(64UL << 20)

FIXTURE(memcg) {
	char root[32], dir[64];		/* the hierarchy and a group in it */
	char *area;
	int fd;
};

/* Returns the first number in @file of the group, or the one after @key, or -1.
 */
static long long group_get(const char *dir, const char *file, const char *key)
{
	long long v = -1;
	char path[128], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	f = fopen(path, "r");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		if (!key || !strncmp(line, key, strlen(key))) {
			v = atoll(line + (key ? strlen(key) : 0));
			break;
		}
	}
	fclose(f);
	return v;
}

static int group_set(const char *dir, const char *file, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	return write_file(path, text);
}

FIXTURE_SETUP(memcg)
{
	char path[128], pid[16];

	self->fd = -1;
	snprintf(self->root, sizeof(self->root), "/tmp/tpacket4.XXXXXX");
	ASSERT_TRUE(!!mkdtemp(self->root));
	if (unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", self->root, "cgroup2", 0, NULL))
		SKIP(return, "no cgroup2 hierarchy: %s", strerror(errno));
	if (group_set(self->root, "cgroup.subtree_control", "+memory"))
		SKIP(return, "needs CONFIG_MEMCG");
	snprintf(self->dir, sizeof(self->dir), "%s/v4", self->root);
	snprintf(path, sizeof(path), "%s/memory.stat", self->dir);
	ASSERT_EQ(0, mkdir(self->dir, 0700));
	ASSERT_EQ(0, access(path, F_OK));
	snprintf(pid, sizeof(pid), "%d", getpid());
	ASSERT_EQ(0, group_set(self->dir, "cgroup.procs", pid));
	pv4_net_setup(_metadata);
	self->area = pv4_new_area(AREA_LEN);
	ASSERT_TRUE(self->area != MAP_FAILED);
	self->fd = pv4_socket();
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(memcg)
{
	char pid[16];

	close(self->fd);
	snprintf(pid, sizeof(pid), "%d", getpid());
	group_set(self->root, "cgroup.procs", pid);
	rmdir(self->dir);
	umount(self->root);
	rmdir(self->root);
}

/* Returns the kernel memory charged to the group. */
static long long charged(const char *dir)
{
	return group_get(dir, "memory.stat", "kernel ");
}

/* The kernel only sums up its per-CPU counters from time to time. Waits until
 * the charge is @bytes or more, or less; returns the last value.
 */
static long long wait_for_charge(const char *dir, long long bytes, bool more)
{
	uint64_t end = now_ms() + WAIT_MS;
	long long now;

	for (;;) {
		now = charged(dir);
		if ((more ? now >= bytes : now <= bytes) || now_ms() > end)
			return now;
		usleep(10000);
	}
}

static void expect_charge(struct __test_metadata *_metadata, const char *dir,
			  int fd, int opt, long long least)
{
	long long before = charged(dir), with;

	ASSERT_LE(0, before);
	ASSERT_EQ(0, pv4_set_ring(fd, opt, fd, NR));
	with = wait_for_charge(dir, before + least, true);
	TH_LOG("a ring of %u slots: %lld bytes", NR, with - before);
	EXPECT_LE(least, with - before);
	ASSERT_EQ(0, pv4_set_ring(fd, opt, -1, 0));
	EXPECT_GE(with - least / 2, wait_for_charge(dir, with - least / 2,
						    false));
}

/* Without its descriptors, which are not charged for V1 to V3 either. */
TEST_F_TIMEOUT(memcg, rings_are_charged, 120)
{
	ASSERT_EQ(0, pv4_memreg(self->fd, self->area, AREA_LEN, 2048, 0));
	/* at least one word per slot */
	expect_charge(_metadata, self->dir, self->fd, PACKET_RX_RING, 4 * NR);
	/* and a packet to be */
	expect_charge(_metadata, self->dir, self->fd, PACKET_TX_RING, 32 * NR);
}

/* A pointer to each page, and the kernel mapping */
TEST_F_TIMEOUT(memcg, area_is_charged, 120)
{
	long long before, least, with;

	/* Its page tables are charged when it is touched. Wait until they are
	 * counted, so that they are not mistaken for the area.
	 */
	memset(self->area, 1, AREA_LEN);
	sleep(3);
	before = charged(self->dir);
	ASSERT_LE(0, before);
	ASSERT_EQ(0, pv4_memreg(self->fd, self->area, AREA_LEN, 2048, 0));
	least = AREA_LEN / getpagesize() * sizeof(void *);
	with = wait_for_charge(self->dir, before + least, true);
	TH_LOG("an area of %lu pages: %lld bytes", AREA_LEN / getpagesize(),
	       with - before);
	EXPECT_LE(least, with - before);
}

TEST_HARNESS_MAIN
