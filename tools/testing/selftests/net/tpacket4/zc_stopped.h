/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A program in zero-copy mode that has stopped. The stack must still get what is
 * not the program's alone.
 */
#ifndef TPACKET4_ZC_STOPPED_H
#define TPACKET4_ZC_STOPPED_H

#include "xdp.h"

#define STOPPED_LEN	100
#define STOPPED_KEEP	64	/* frames that the ring does not get, at most */

/* Keys of the packets: for the ring, and for the stack alone */
#define STOPPED_RING	0
#define STOPPED_STACK	5

/*
 * Sends @n packets of each key from @fd_a while nobody looks at @z. @fd_b listens
 * to the stack, which gets those of the second key, and with @to_stack all.
 */
static inline void pass_stopped(struct __test_metadata *_metadata, struct zc *z,
				int fd_a, int fd_b, unsigned int n,
				bool to_stack)
{
	struct tpacket_stats_v4 st;
	struct tpacket4_desc d;
	char buf[STOPPED_LEN];
	unsigned int i, got;
	uint32_t seq;
	int len;

	ASSERT_EQ(0, pv4_stats(z->s.fd, &st));
	for (i = 0; i < 2 * n; i++) {
		bool stack = i % 2;

		seq = key_seq(stack ? STOPPED_STACK : STOPPED_RING, i);
		fill_packet(buf, sizeof(buf), seq);
		ASSERT_EQ(STOPPED_LEN, send(fd_a, buf, sizeof(buf), 0));
		if (!stack && !to_stack)
			continue;
		len = plain_recv(fd_b, buf, sizeof(buf), WAIT_MS);
		ASSERT_TRUE(packet_ok(buf, len, STOPPED_LEN, seq)) {
			TH_LOG("packet %u: received %d", i, len);
		}
	}
	EXPECT_EQ(-EAGAIN, plain_recv(fd_b, buf, sizeof(buf), QUIET_MS));

	/* The ring has the first ones, except for the frames that it keeps. */
	for (got = 0; zc_take(z, &z->s.rx, &d); got++) {
		EXPECT_EQ(key_seq(STOPPED_RING, 2 * got),
			  packet_seq(pv4_frame(&z->s, d.idx) + d.offset));
		z->s.spare[z->s.nr_spare++] = d.idx;
	}
	EXPECT_GT(z->s.rx.size, got);
	EXPECT_LE(z->s.rx.size - STOPPED_KEEP, got);
	ASSERT_EQ(0, pv4_stats(z->s.fd, &st));
	EXPECT_EQ(n, st.tp_packets);
	EXPECT_EQ(n - got, st.tp_drops);
	EXPECT_EQ(n - got, st.rx_no_desc);
	EXPECT_EQ(0U, st.rx_ring_full);
	EXPECT_TRUE(zc_books_balance(z, NULL));

	/* It goes on. */
	zc_refill(z);
	for (i = 0; i < 2 * z->s.rx.size; i++) {
		seq = key_seq(STOPPED_RING, i);
		fill_packet(buf, sizeof(buf), seq);
		ASSERT_EQ(STOPPED_LEN, send(fd_a, buf, sizeof(buf), 0));
		len = zc_recv(z, buf, sizeof(buf), WAIT_MS);
		ASSERT_TRUE(packet_ok(buf, len, STOPPED_LEN, seq));
		if (!to_stack)
			continue;
		len = plain_recv(fd_b, buf, sizeof(buf), WAIT_MS);
		ASSERT_TRUE(packet_ok(buf, len, STOPPED_LEN, seq));
	}
	ASSERT_EQ(0, pv4_stats(z->s.fd, &st));
	EXPECT_EQ(0U, st.tp_drops);
}

#endif
