/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For the selftests of AF_PACKET V4's zero-copy mode: many packets from one
 * socket to another. They arrive in order, none is lost, and each frame is
 * returned exactly once each time that it was posted.
 */
#ifndef TPACKET4_ZC_MANY_H
#define TPACKET4_ZC_MANY_H

#include "zc.h"

/* The part of a child; returns its exit code. It is never more than @window
 * ahead of @received.
 */
static inline int send_many(struct zc *z, uint32_t total, uint32_t window,
			    const uint32_t *received)
{
	uint32_t seq = 0, n;
	char buf[60];

	pin_to_cpu(1);
	fill_packet(buf, sizeof(buf), 0);
	while (seq < total) {
		zc_reap(z);
		for (n = 0; n < 64 && seq < total; n++, seq++) {
			if (seq - __atomic_load_n(received, __ATOMIC_ACQUIRE) >=
			    window)
				break;
			memcpy(buf + ETH_HLEN, &seq, sizeof(seq));
			if (zc_put(z, buf, sizeof(buf), 2048, 256))
				break;
		}
		if (n && zc_kick(z))
			return 1;
		if (!n)
			sched_yield();
	}
	if (!zc_reap_all(z, WAIT_MS))
		return 2;
	if (z->strays)
		return 3;
	return z->s.errors[0] == total ? 0 : 4;
}

/* Sends from @a to @b, which then has left zero-copy mode and got its frames
 * back.
 */
static inline void pass_many(struct __test_metadata *_metadata, struct zc *a,
			     struct zc *b, uint32_t total, uint32_t window)
{
	uint32_t *received = shared_memory(4096), *seen, seq, sum = 0, i;
	struct tpacket_stats_v4 st;
	struct tpacket4_desc d;
	pid_t pid;

	TH_LOG("%u packets%s", total,
	       pv4_fast() ? " (a debug kernel, or TPACKET4_FAST)" : "");
	seen = calloc(b->s.frames, sizeof(*seen));
	ASSERT_TRUE(received != MAP_FAILED && seen);
	pid = pv4_fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(send_many(a, total, window, received));
	pin_to_cpu(0);
	for (seq = 0; seq < total; seq++) {
		ASSERT_TRUE(zc_take_wait(b, &b->s.rx, &d, WAIT_MS)) {
			TH_LOG("nothing after packet %u", seq);
		}
		ASSERT_EQ(0, d.error);
		ASSERT_EQ(60U, d.len);
		ASSERT_GT(b->s.frames, d.idx);
		ASSERT_EQ(seq, packet_seq(pv4_frame(&b->s, d.idx) + d.offset));
		seen[d.idx]++;
		zc_rx_post(b, d.idx);
		if (!(seq % 16) || seq + 1 == total)
			__atomic_store_n(received, seq, __ATOMIC_RELEASE);
	}
	EXPECT_EQ(0, wait_for_exit(pid));
	EXPECT_EQ(0U, b->strays);
	for (i = 0; i < b->s.frames; i++)
		sum += seen[i];
	EXPECT_EQ(total, sum);
	EXPECT_EQ(b->s.rx.avail, total + b->s.rx.size);
	/* all frames are still posted, each as often as before */
	ASSERT_EQ(0, zc_set(b, 0));
	EXPECT_EQ((int)b->s.rx.size, zc_all_back(b, ECANCELED, WAIT_MS));
	EXPECT_EQ(0U, b->strays);
	ASSERT_EQ(0, pv4_stats(b->s.fd, &st));
	EXPECT_EQ(total, st.tp_packets);
	EXPECT_EQ(0U, st.tp_drops);
	munmap(received, 4096);
	free(seen);
}

#endif
