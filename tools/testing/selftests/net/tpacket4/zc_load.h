/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For selftests that change a queue while it is used in zero-copy mode: a
 * process that sends on if_a regardless of errors, and a receiver on if_b that
 * detects packets that are corrupt, out of order or not returned
 */
#ifndef TPACKET4_ZC_LOAD_H
#define TPACKET4_ZC_LOAD_H

#include "xdp.h"

struct load {
	uint32_t sent;
	bool stop;
};

struct pair {
	struct zc a, b;			/* zero-copy on if_a, if_b */
	struct load *load;
	char *buf;
	uint32_t next;			/* minimum number of the next packet */
	pid_t pid;			/* the load on if_a */
};

static inline unsigned int seq_len(uint32_t seq)
{
	static const unsigned int len[] = { 60, 300, 1400, 60, 4500, 61, 1792 };

	return len[seq % ARRAY_SIZE(len)];
}

/* Checks of an end for the load; data may be at any offset. */
static inline int open_loose(struct zc *z, const char *ifname)
{
	struct zc_cfg cfg = { .ifname = ifname, .n = 1 };
	int err = zc_open(z, &cfg);

	z->min_offset = 0;
	return err;
}

static inline void pair_open(struct __test_metadata *_metadata, struct pair *p)
{
	pv4_net_setup(_metadata);
	ASSERT_EQ(0, open_loose(&p->a, if_a));
	ASSERT_EQ(0, open_loose(&p->b, if_b));
	p->load = shared_memory(4096);
	ASSERT_TRUE(p->load != MAP_FAILED);
	p->buf = malloc(BUF_SIZE);
	ASSERT_TRUE(!!p->buf);
}

static inline void pair_close(struct pair *p)
{
	zc_close(&p->a);
	zc_close(&p->b);
	free(p->buf);
}

/* Receives packets and posts their frames again. */
static inline void discard(struct zc *z, char *buf)
{
	while (zc_recv(z, buf, BUF_SIZE, 0) > 0)
		;
}

static inline bool has_carrier(const char *name)
{
	struct ethtool_value v = { .cmd = ETHTOOL_GLINK };

	return !ethtool_ioctl(name, &v) && v.data;
}

/*
 * Sends until it is stopped, and takes returned frames. Then all frames posted
 * for sending must be returned. The exit code tells which check has failed.
 */
static inline int load_main(struct zc *z, struct load *load, char *buf)
{
	int n, err;

	while (!__atomic_load_n(&load->stop, __ATOMIC_RELAXED)) {
		for (n = 0; n < 8; n++) {
			if (zc_put_seq(z, seq_len(load->sent), load->sent))
				break;
			load->sent++;
		}
		/* down or removed: not checked here */
		if (zc_kick(z))
			usleep(1000);
		zc_reap(z);
		discard(z, buf);
		sched_yield();
	}
	/* it stays posted without a device, or without one at the other end */
	err = zc_kick(z);
	if (err != -ENXIO && err != -ENETDOWN && has_carrier(if_a) &&
	    !zc_reap_all(z, WAIT_MS))
		return 1;
	if (z->strays)
		return 2;
	return zc_held(z) == zc_away(z) ? 0 : 3;
}

/* Starts the load. Each process then uses one of the sockets exclusively. */
static inline void start_load(struct __test_metadata *_metadata,
			      struct pair *p)
{
	p->load->stop = false;
	p->pid = pv4_fork();
	ASSERT_LE(0, p->pid);
	if (!p->pid) {
		zc_close(&p->b);
		_exit(load_main(&p->a, p->load, p->buf));
	}
	zc_close(&p->a);
	p->a.s.fd = -1;
}

static inline void stop_load(struct __test_metadata *_metadata,
			     struct pair *p)
{
	p->load->stop = true;
	EXPECT_EQ(0, wait_for_exit(p->pid)) {
		TH_LOG("see load_main() for the code");
	}
}

/* Receives on if_b for @ms; returns the number of packets, or -1 if one was
 * wrong.
 */
static inline int receive(struct pair *p, int ms)
{
	uint64_t end = now_ms() + ms;
	int n = 0, len;
	uint32_t seq;

	do {
		len = zc_recv(&p->b, p->buf, BUF_SIZE, 1);
		if (len == -EAGAIN)
			continue;
		if (len < 0)
			return -1;
		seq = packet_seq(p->buf);
		if (seq < p->next ||
		    !packet_ok(p->buf, len, seq_len(seq), seq)) {
			printf("# packet %u of %d bytes, expected %u or later\n",
			       seq, len, p->next);
			return -1;
		}
		p->next = seq + 1;
		n++;
	} while (now_ms() < end);
	return n;
}

/* Waits until packets are received; returns true if they are. */
static inline bool flows(struct pair *p)
{
	uint64_t end = now_ms() + WAIT_MS;
	int n = 0, got;

	while (n < 50 && now_ms() < end) {
		got = receive(p, 20);
		if (got < 0)
			return false;
		n += got;
	}
	return n >= 50;
}

/* Checks that b still has the queue, with all its frames. */
static inline void expect_intact(struct __test_metadata *_metadata,
				 struct pair *p)
{
	struct zc *b = &p->b;

	EXPECT_EQ(1, zc_get(b));
	while (receive(p, QUIET_MS) > 0)
		;
	EXPECT_TRUE(zc_books_balance(b, NULL));
	EXPECT_EQ(b->s.rx.size, b->s.rx.avail - b->s.rx.used);
	EXPECT_EQ(0U, b->rx_errors[ECANCELED] + b->rx_errors[ENETDOWN]);
	ASSERT_EQ(0, zc_set(b, 0));
	EXPECT_EQ((int)b->s.rx.size, zc_all_back(b, ECANCELED, WAIT_MS));
	EXPECT_TRUE(zc_books_closed(b));
}

#endif
