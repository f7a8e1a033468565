/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A program in zero-copy mode that has stopped, or has not started yet. The stack
 * must still get what is not the program's alone.
 */
#ifndef TPACKET4_ZC_STOPPED_H
#define TPACKET4_ZC_STOPPED_H

#include "xdp.h"

#define STOPPED_LEN	100
#define STOPPED_KEEP	64	/* frames that the ring does not get, at most */

/* Keys of the packets: for the ring, and for the stack alone */
#define STOPPED_RING	0
#define STOPPED_STACK	5

/* Packets that are under way at the same time */
#define STOPPED_BURST	16

/*
 * Sends @n packets of each key from @fd_a. @fd_b listens to the stack, which gets
 * those of the second key, and with @to_stack all.
 */
static inline void pass_to_stack(struct __test_metadata *_metadata, int fd_a,
				 int fd_b, unsigned int n, bool to_stack)
{
	unsigned int i, k;
	char buf[STOPPED_LEN];
	int len;

	for (i = 0; i < 2 * n; i += STOPPED_BURST) {
		for (k = i; k < 2 * n && k < i + STOPPED_BURST; k++) {
			fill_packet(buf, sizeof(buf),
				    key_seq(k % 2 ? STOPPED_STACK :
						    STOPPED_RING, k));
			ASSERT_EQ(STOPPED_LEN, send(fd_a, buf, sizeof(buf), 0));
		}
		for (k = i; k < 2 * n && k < i + STOPPED_BURST; k++) {
			if (!(k % 2) && !to_stack)
				continue;
			len = plain_recv(fd_b, buf, sizeof(buf), WAIT_MS);
			ASSERT_TRUE(packet_ok(buf, len, STOPPED_LEN,
					      key_seq(k % 2 ? STOPPED_STACK :
							      STOPPED_RING,
						      k))) {
				TH_LOG("packet %u: received %d", k, len);
			}
		}
	}
	EXPECT_EQ(-EAGAIN, plain_recv(fd_b, buf, sizeof(buf), QUIET_MS));
}

/* The ring gets each packet. */
static inline void pass_to_ring(struct __test_metadata *_metadata, struct zc *z,
				int fd_a, int fd_b, bool to_stack)
{
	struct tpacket_stats_v4 st;
	char buf[STOPPED_LEN];
	unsigned int i;
	uint32_t seq;
	int len;

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
	EXPECT_EQ(2 * z->s.rx.size, st.tp_packets);
	EXPECT_EQ(0U, st.tp_drops);
}

/* As pass_stopped(), with a ring @z for which nothing has been posted. Then, only
 * invalid frames are, and then a single one. Without a program, the packets of both
 * keys are for the ring.
 */
static inline void pass_dry(struct __test_metadata *_metadata, struct zc *z,
			    int fd_a, int fd_b, unsigned int n, bool to_stack,
			    bool prog)
{
	const unsigned int drops = prog ? n : 2 * n;
	struct tpacket_stats_v4 st;
	struct tpacket4_desc d;
	unsigned int i, state;

	ASSERT_EQ(0, pv4_stats(z->s.fd, &st));
	for (state = 0; state < 3; state++) {
		if (state == 1)
			for (i = 0; i < z->s.rx.size; i++)
				zc_rx_post(z, (__u64)z->s.frames + i);
		else if (state == 2)
			zc_rx_post(z, 0);
		pass_to_stack(_metadata, fd_a, fd_b, n, to_stack);
		ASSERT_EQ(0, pv4_stats(z->s.fd, &st));
		EXPECT_EQ(drops, st.tp_packets);
		EXPECT_EQ(drops, st.tp_drops);
		EXPECT_EQ(drops, st.rx_no_desc);
		EXPECT_EQ(state == 1 ? z->s.rx.size : 0U, st.rx_invalid_descs);
		for (i = 0; zc_take(z, &z->s.rx, &d); i++)
			EXPECT_EQ(EINVAL, d.error);
		EXPECT_EQ(state == 1 ? z->s.rx.size : 0U, i);
	}
	for (i = 1; i < z->s.rx.size; i++)
		zc_rx_post(z, i);
	pass_to_ring(_metadata, z, fd_a, fd_b, to_stack);
	EXPECT_TRUE(zc_books_balance(z, NULL));
}

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
	unsigned int got;

	ASSERT_EQ(0, pv4_stats(z->s.fd, &st));
	pass_to_stack(_metadata, fd_a, fd_b, n, to_stack);

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
	pass_to_ring(_metadata, z, fd_a, fd_b, to_stack);
}

#endif
