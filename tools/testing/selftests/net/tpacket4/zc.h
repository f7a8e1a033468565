/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared helpers of the selftests of AF_PACKET V4's zero-copy mode, in addition
 * to those of copy mode
 */
#ifndef TPACKET4_ZC_H
#define TPACKET4_ZC_H

#include "common.h"
#include "zc_ring.h"

/* Posts packet number @seq of @len bytes on the Tx ring; returns 0 or -ENOBUFS.
 */
static inline int zc_put_seq(struct zc *z, size_t len, uint32_t seq)
{
	char pkt[MAX_PKT];

	fill_packet(pkt, len, seq);
	zc_reap(z);
	return zc_put(z, pkt, len, z->s.frame_size, 0);
}

/* Sends it; 0 or -errno. */
static inline int zc_send_seq(struct zc *z, size_t len, uint32_t seq)
{
	int err = zc_put_seq(z, len, seq);

	return err ? err : zc_kick(z);
}

/* Sends packets of @len bytes one by one from @a to @b. Their frames are then
 * back with their owners.
 */
static inline void pass_one_by_one(struct __test_metadata *_metadata,
				   struct zc *a, struct zc *b,
				   unsigned int len, unsigned int n)
{
	static char buf[BUF_SIZE];
	unsigned int i;
	int got;

	for (i = 0; i < n; i++) {
		ASSERT_EQ(0, zc_send_seq(a, len, i));
		got = zc_recv(b, buf, sizeof(buf), WAIT_MS);
		ASSERT_TRUE(packet_ok(buf, got, len, i)) {
			TH_LOG("packet %u: %d bytes", i, got);
		}
	}
	EXPECT_TRUE(zc_reap_all(a, WAIT_MS));
	EXPECT_TRUE(zc_books_balance(a, NULL));
	EXPECT_TRUE(zc_books_balance(b, NULL));
}

/* Packets of VLAN 7, to whose device at the other end @fd is bound. On the ring
 * they have their tag in the data. Then the same in the other direction.
 */
static inline void pass_tagged(struct __test_metadata *_metadata, struct zc *z,
			       int fd, const unsigned int *lens,
			       unsigned int nr, unsigned int rounds)
{
	static char want[BUF_SIZE], buf[BUF_SIZE];
	unsigned int i, n;
	int len;

	for (i = 0; i < rounds; i++) {
		n = lens[i % nr];
		fill_packet(buf, n, i);
		memcpy(want, buf, n);
		ASSERT_EQ((int)n, send(fd, buf, n, 0));
		len = zc_recv(z, buf, sizeof(buf), WAIT_MS);
		n = add_tag(want, n, ETH_P_8021Q, 7);
		ASSERT_EQ((int)n, len);
		ASSERT_EQ(0, memcmp(want, buf, n));

		ASSERT_EQ(0, zc_put(z, want, n, 2048, 0));
		ASSERT_EQ(0, zc_kick(z));
		len = plain_recv(fd, buf, sizeof(buf), WAIT_MS);
		ASSERT_TRUE(packet_ok(buf, len, n - 4, i));
		zc_reap(z);
	}
	EXPECT_TRUE(zc_reap_all(z, WAIT_MS));
	EXPECT_TRUE(zc_books_balance(z, NULL));
}

/* ---- the network ---- */

/* Sets two queue pairs at both ends; the fixture's veth pair has one. */
static inline int two_channels(void)
{
	int err = set_channels(if_a, 2, 2);

	return err ? err : set_channels(if_b, 2, 2);
}

/* ---- the device's counters ---- */

#define NR_STATS	256

/* Returns the counter of ethtool -S with this name, or -1. */
static inline __s64 ethtool_stat(const char *ifname, const char *name)
{
	static struct {
		struct ethtool_gstrings h;
		char name[NR_STATS][ETH_GSTRING_LEN];
	} s;
	static struct {
		struct ethtool_stats h;
		__u64 value[NR_STATS];
	} v;
	struct {
		struct ethtool_sset_info h;
		__u32 nr;
	} n = {
		.h.cmd = ETHTOOL_GSSET_INFO,
		.h.sset_mask = 1 << ETH_SS_STATS,
	};
	unsigned int i;

	if (ethtool_ioctl(ifname, &n) || n.nr > NR_STATS)
		return -1;
	s.h = (struct ethtool_gstrings) {
		.cmd = ETHTOOL_GSTRINGS, .string_set = ETH_SS_STATS,
		.len = n.nr,
	};
	v.h = (struct ethtool_stats) {
		.cmd = ETHTOOL_GSTATS, .n_stats = n.nr,
	};
	if (ethtool_ioctl(ifname, &s) || ethtool_ioctl(ifname, &v))
		return -1;
	for (i = 0; i < s.h.len; i++)
		if (!strncmp(s.name[i], name, ETH_GSTRING_LEN))
			return v.value[i];
	return -1;
}

#endif
