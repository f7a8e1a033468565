// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4, zero-copy mode: descriptors. Invalid ones are returned with
 * their error and do not affect others, and a program that writes garbage to
 * the rings only harms itself. The other end runs in softirq.
 */
#include "invalid_desc.h"
#include "zc.h"

FIXTURE(zc_desc) {
	struct zc a, b;			/* on if_a and if_b */
	unsigned int frames;
	char *buf;
};

FIXTURE_SETUP(zc_desc)
{
	struct zc_cfg cfg = { .ifname = if_a, .n = 1 };

	pv4_net_setup(_metadata);
	ASSERT_EQ(0, set_mtu(if_a, TX_MTU));
	ASSERT_EQ(0, zc_open(&self->a, &cfg));
	cfg.ifname = if_b;
	ASSERT_EQ(0, zc_open(&self->b, &cfg));
	self->frames = self->a.s.frames;
	self->buf = malloc(BUF_SIZE);
	ASSERT_TRUE(!!self->buf);
}

FIXTURE_TEARDOWN(zc_desc)
{
	zc_close(&self->a);
	zc_close(&self->b);
	free(self->buf);
}

/* Each invalid descriptor between two valid ones, posted as one batch. */
TEST_F(zc_desc, invalid_between_valid)
{
	struct tpacket4_desc d[BATCH_DESCS], back;
	struct batch_back seen = { 0 };
	struct tpacket_stats_v4 st;
	unsigned int i;
	int len;

	ASSERT_EQ(AREA_FRAMES, self->frames);
	make_batch(&self->a.s, d);
	zc_post(&self->a, &self->a.s.tx, d, BATCH_DESCS);
	ASSERT_EQ(0, zc_kick(&self->a));
	for (i = 0; i < BATCH_DESCS; i++) {
		ASSERT_TRUE(zc_take_wait(&self->a, &self->a.s.tx, &back,
					 WAIT_MS));
		check_back(_metadata, &back, &seen);
	}
	check_all_back(_metadata, &seen);
	for (i = 0; i < BATCH_DESCS; i += 2) {
		len = zc_recv(&self->b, self->buf, BUF_SIZE, WAIT_MS);
		EXPECT_TRUE(packet_ok(self->buf, len, 100 + i, i));
	}
	EXPECT_EQ(-EAGAIN, zc_recv(&self->b, self->buf, BUF_SIZE, QUIET_MS));
	ASSERT_EQ(0, pv4_stats(self->a.s.fd, &st));
	EXPECT_EQ(ARRAY_SIZE(invalid_descs), st.tx_invalid_descs);
	EXPECT_TRUE(zc_books_balance(&self->a, NULL));
	EXPECT_TRUE(zc_books_balance(&self->b, NULL));
}

/* A chain of three with each invalid descriptor at each position, followed by a
 * valid packet.
 */
TEST_F(zc_desc, invalid_in_chain)
{
	const struct invalid_desc *end = invalid_descs +
					 ARRAY_SIZE(invalid_descs);
	const struct invalid_desc *bad;
	struct tpacket4_desc d[4], back;
	unsigned int place, i, n = 0;
	int len;

	for (bad = invalid_descs; bad < end; bad++) {
		if (!is_bad_in_chain(bad))
			continue;
		for (place = 0; place < 3; place++, n++) {
			make_chain(&self->a.s, d, bad, place, n);
			zc_post(&self->a, &self->a.s.tx, d, 4);
			ASSERT_EQ(0, zc_kick(&self->a));
			for (i = 0; i < 4; i++) {
				ASSERT_TRUE(zc_take_wait(&self->a,
							 &self->a.s.tx, &back,
							 WAIT_MS));
				check_chain(_metadata, d, &back, bad, place, i);
			}
			len = zc_recv(&self->b, self->buf, BUF_SIZE, WAIT_MS);
			ASSERT_TRUE(packet_ok(self->buf, len, 99, n));
		}
	}
	EXPECT_EQ(-EAGAIN, zc_recv(&self->b, self->buf, BUF_SIZE, QUIET_MS));
	EXPECT_TRUE(zc_books_balance(&self->a, NULL));
}

/* Posts @n descriptors of @len bytes as one chain, counts those returned, and
 * checks whether the packet was received.
 */
static int send_chain(struct _test_data_zc_desc *self, unsigned int n,
		      unsigned int len, unsigned int errors[256])
{
	struct tpacket4_desc d[256];
	struct zc *a = &self->a;
	unsigned int i;

	memset(errors, 0, 256 * sizeof(*errors));
	for (i = 0; i < n; i++)
		d[i] = (struct tpacket4_desc) {
			.idx = 256 + i, .len = len,
			.flags = i + 1 < n ? TP4_PKT_CONT : 0,
		};
	zc_post(a, &a->s.tx, d, n);
	if (zc_kick(a))
		return -1;
	for (i = 0; i < n && zc_take_wait(a, &a->s.tx, d, WAIT_MS); i++)
		errors[d->error]++;
	return zc_recv(&self->b, self->buf, BUF_SIZE,
		       errors[0] ? WAIT_MS : 20);
}

TEST_F(zc_desc, too_long)
{
	char *f = pv4_frame(&self->a.s, 256);
	unsigned int errors[256], i, tag;

	EXPECT_EQ(MAX_LEN, send_chain(self, 1, MAX_LEN, errors));
	EXPECT_EQ(-EAGAIN, send_chain(self, 1, MAX_LEN + 1, errors));
	EXPECT_EQ(1U, errors[EMSGSIZE]);
	/* room for a VLAN tag is additional */
	for (tag = 0; tag < 2; tag++) {
		fill_packet(f, 2048, 0);
		if (tag) {
			f[12] = ETH_P_8021Q >> 8;
			f[13] = ETH_P_8021Q & 0xff;
		}
		EXPECT_EQ(tag ? MAX_LEN + 4 : -EAGAIN,
			  send_chain(self, 1, MAX_LEN + 4, errors));
		EXPECT_EQ(1 - tag, errors[EMSGSIZE]);
	}
	EXPECT_EQ(-EAGAIN, send_chain(self, 1, MAX_LEN + 5, errors));
	EXPECT_EQ(1U, errors[EMSGSIZE]);
	/* the sum is checked; every descriptor of the chain is returned */
	EXPECT_EQ(-EAGAIN, send_chain(self, 3, 700, errors));
	EXPECT_LE(1U, errors[EMSGSIZE]);
	EXPECT_EQ(3U, errors[EMSGSIZE] + errors[ECANCELED]);
	EXPECT_EQ(-EAGAIN, send_chain(self, 255, 2048, errors));
	EXPECT_LE(1U, errors[EMSGSIZE]);
	EXPECT_EQ(255U, errors[EMSGSIZE] + errors[ECANCELED]);
	/* too many descriptors, though few bytes */
	for (i = 1; i <= 17; i++) {
		EXPECT_EQ((int)i * 60, send_chain(self, i, 60, errors));
		EXPECT_EQ(i, errors[0]);
	}
	EXPECT_EQ(-EAGAIN, send_chain(self, 47, 20, errors));
	EXPECT_LE(1U, errors[EMSGSIZE]);
	EXPECT_EQ(47U, errors[EMSGSIZE] + errors[ECANCELED]);
	EXPECT_EQ(700, send_chain(self, 1, 700, errors));
	EXPECT_EQ(1U, errors[0]);
	EXPECT_TRUE(zc_books_balance(&self->a, NULL));
}

/* A ring full of TP4_PKT_CONT must not block forever. */
TEST_F(zc_desc, endless_chain)
{
	struct tpacket4_desc d = { .len = 20, .flags = TP4_PKT_CONT };
	unsigned int i, errors[256];
	struct zc *a = &self->a;

	for (i = 0; i < a->s.tx.size; i++) {
		d.idx = 256 + i;
		zc_post(a, &a->s.tx, &d, 1);
	}
	ASSERT_EQ(0, zc_kick(a));
	while (zc_take_wait(a, &a->s.tx, &d, QUIET_MS))
		a->s.errors[d.error]++;
	EXPECT_LE(1U, a->s.errors[EMSGSIZE]);
	EXPECT_LE(17U, a->s.errors[EMSGSIZE] + a->s.errors[ECANCELED]);
	EXPECT_EQ(0U, a->s.errors[0]);
	EXPECT_TRUE(zc_books_balance(a, NULL));
	ASSERT_EQ(0, zc_set(a, 0));
	EXPECT_LT(0, zc_all_back(a, ECANCELED, WAIT_MS));
	EXPECT_TRUE(zc_books_closed(a));
	zc_refill(a);
	ASSERT_EQ(0, zc_set(a, 1));
	EXPECT_EQ(200, send_chain(self, 1, 200, errors));
}

/* An invalid idx uses up its slot, but loses no packet. */
TEST_F(zc_desc, invalid_rx_idx)
{
	const uint64_t bad[] = {
		self->frames, ~0ULL, 1ULL << 32, 1ULL << 53, 1ULL << 63,
	};
	unsigned int i, k, n = ARRAY_SIZE(bad), good = 0, seen = 0;
	struct zc_cfg cfg = { .ifname = if_b, .n = 1, .rx_empty = true };
	struct tpacket_stats_v4 st;
	struct tpacket4_desc d;

	zc_close(&self->b);
	ASSERT_EQ(0, zc_open(&self->b, &cfg));
	for (i = 0; i < n; i++) {
		zc_rx_post(&self->b, bad[i]);
		zc_rx_post(&self->b, i);
	}
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, zc_send_seq(&self->a, 60, i));
	for (i = 0; i < 2 * n; i++) {
		ASSERT_TRUE(zc_take_wait(&self->b, &self->b.s.rx, &d,
					 WAIT_MS));
		EXPECT_EQ(0, d.flags);
		if (!d.error) {
			EXPECT_EQ(good, d.idx);
			EXPECT_EQ(good, packet_seq(pv4_frame(&self->b.s,
							     d.idx) +
						   d.offset));
			good++;
			continue;
		}
		EXPECT_EQ(EINVAL, d.error);
		EXPECT_EQ(0U, d.len);
		for (k = 0; k < n; k++)
			if (bad[k] == d.idx)
				seen |= 1u << k;
	}
	EXPECT_EQ(n, good);
	EXPECT_EQ((1u << n) - 1, seen);
	ASSERT_EQ(0, pv4_stats(self->b.s.fd, &st));
	EXPECT_EQ(0U, st.tp_drops);
	EXPECT_EQ(n, st.rx_invalid_descs);
}

/* All fields of a posted Rx descriptor but idx are ignored. */
TEST_F(zc_desc, other_rx_fields_ignored)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1, .rx_empty = true };
	struct tpacket4_desc d = {
		.idx = 3, .len = UINT_MAX, .offset = 0xffff, .error = 0xff,
	}, back;

	zc_close(&self->b);
	ASSERT_EQ(0, zc_open(&self->b, &cfg));
	zc_post(&self->b, &self->b.s.rx, &d, 1);
	ASSERT_EQ(0, zc_send_seq(&self->a, 60, 1));
	ASSERT_TRUE(zc_take_wait(&self->b, &self->b.s.rx, &back, WAIT_MS));
	EXPECT_EQ(3U, back.idx);
	EXPECT_EQ(60U, back.len);
	EXPECT_EQ(self->b.min_offset, back.offset);
	EXPECT_EQ(0, back.error);
	EXPECT_EQ(0, back.flags);
}

/* Writes noise to a ring: all of it, or plausible descriptors. */
static void scribble(struct zc *z, uint32_t *x, unsigned int n)
{
	size_t len = (z->s.rx.size + z->s.tx.size) * sizeof(z->s.rx.desc[0]);
	struct tpacket4_desc *d;

	while (n--) {
		*x = *x * 1664525 + 1013904223;
		if (*x & 1 << 20) {
			((char *)z->s.map)[(*x >> 4) % len] = *x >> 24;
			continue;
		}
		d = &z->s.rx.desc[(*x >> 4) % (len / sizeof(*d))];
		d->idx = *x >> 21;
		d->len = *x >> 18 & 0xfff;
		d->offset = *x >> 22 & 0x3ff;
		__atomic_store_n(&d->flags, TP4_DESC_KERNEL | (*x >> 31),
				 __ATOMIC_RELEASE);
	}
}

/*
 * Both ends write noise to their rings while packets are sent. Then two correct
 * sockets work.
 */
TEST_F_TIMEOUT(zc_desc, random_descriptors, 120)
{
	struct zc_cfg cfg = { .ifname = if_a, .n = 1 };
	int len, ms = pv4_fast() ? 1500 : 3000;
	uint32_t x = 12345;
	unsigned int i;
	pid_t pid;

	pid = pv4_fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		uint64_t end = now_ms() + ms;
		uint32_t y = 54321;
		int err;

		for (i = 0; now_ms() < end; i++) {
			scribble(&self->b, &y, 200);
			if (i % 2)
				sendto(self->b.s.fd, NULL, 0, MSG_DONTWAIT,
				       NULL, 0);
			if (i % 64)
				continue;
			/* random packets of copy mode may be in flight */
			err = zc_set(&self->b, i / 64 % 2);
			if (err && err != -EBUSY)
				_exit(1);
		}
		_exit(0);
	}
	for (i = 0; waitpid(pid, &len, WNOHANG) == 0; i++) {
		scribble(&self->a, &x, 200);
		sendto(self->a.s.fd, NULL, 0, MSG_DONTWAIT, NULL, 0);
	}
	EXPECT_EQ(0, len);
	ASSERT_EQ(0, zc_set(&self->a, 0));
	ASSERT_EQ(0, zc_set(&self->b, 0));
	zc_close(&self->a);
	zc_close(&self->b);

	ASSERT_EQ(0, zc_open(&self->a, &cfg));
	cfg.ifname = if_b;
	ASSERT_EQ(0, zc_open(&self->b, &cfg));
	for (i = 0; i < 600; i++) {
		ASSERT_EQ(0, zc_send_seq(&self->a, 500, i));
		len = zc_recv(&self->b, self->buf, BUF_SIZE, WAIT_MS);
		ASSERT_TRUE(packet_ok(self->buf, len, 500, i));
	}
	EXPECT_TRUE(zc_reap_all(&self->a, WAIT_MS));
	EXPECT_TRUE(zc_books_balance(&self->a, NULL));
	EXPECT_TRUE(zc_books_balance(&self->b, NULL));
}

/* A frame posted in two slots, or on two rings, is returned from each. */
TEST_F(zc_desc, frame_posted_twice)
{
	struct zc *a = &self->a;
	struct tpacket4_desc d[8], back;
	unsigned int i;

	fill_packet(pv4_frame(&a->s, 300), 100, 1);
	for (i = 0; i < 8; i++)
		d[i] = (struct tpacket4_desc){ .idx = 300, .len = 100 };
	pv4_post(&a->s.tx, d, 8);
	ASSERT_EQ(0, zc_kick(a));
	for (i = 0; i < 8; i++) {
		EXPECT_EQ(100, zc_recv(&self->b, self->buf, BUF_SIZE,
				       WAIT_MS));
		EXPECT_TRUE(packet_ok(self->buf, 100, 100, 1));
	}
	for (i = 0; i < 8; i++) {
		while (!pv4_take(&a->s.tx, &back))
			usleep(100);
		EXPECT_EQ(300U, back.idx);
		EXPECT_EQ(0, back.error);
	}
	/* frame 0 is on a's Rx ring: the packet is what b reads there */
	d[0].idx = 0;
	fill_packet(pv4_frame(&a->s, 0), 100, 2);
	pv4_post(&a->s.tx, d, 1);
	ASSERT_EQ(0, zc_kick(a));
	EXPECT_EQ(100, zc_recv(&self->b, self->buf, BUF_SIZE, WAIT_MS));
	ASSERT_EQ(0, zc_set(a, 0));
	i = 0;
	while (a->s.rx.used != a->s.rx.avail && pv4_take(&a->s.rx, &back))
		i += back.error == ECANCELED;
	EXPECT_EQ(a->s.rx.size, i);
}

TEST_HARNESS_MAIN
