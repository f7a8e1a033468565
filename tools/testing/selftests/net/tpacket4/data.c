// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4: the data path: contents, order and counters */
#include "common.h"

#include <linux/filter.h>

static const unsigned int sizes[] = {
	60, 61, 64, 127, 128, 129, 590, 1000, 1514, 1984, 1985, 2047, 2048,
	2049, 3000, 4031, 4032, 4095, 4096, 4097, 6144, 6145, 8192, 8193, 9000,
	MAX_PKT,
};

FIXTURE(rx) {
	struct pv4 s;			/* receives on if_b */
	int tx;				/* an ordinary socket on if_a */
	char *buf;
};

FIXTURE_VARIANT(rx) {
	unsigned int frame_size, unit, step, headroom, reserve;
};

FIXTURE_VARIANT_ADD(rx, frames_2048) { .frame_size = 2048 };

FIXTURE_VARIANT_ADD(rx, frames_4096) { .frame_size = 4096 };

FIXTURE_VARIANT_ADD(rx, frames_256) { .frame_size = 256, .unit = 256 };

FIXTURE_VARIANT_ADD(rx, frames_128) {
	.frame_size = 128, .unit = 64, .step = 2, .headroom = 64,
};

FIXTURE_VARIANT_ADD(rx, headroom_1) { .frame_size = 2048, .headroom = 1 };

FIXTURE_VARIANT_ADD(rx, headroom_256) { .frame_size = 4096, .headroom = 256 };

FIXTURE_VARIANT_ADD(rx, reserve_10) { .frame_size = 2048, .reserve = 10 };

FIXTURE_VARIANT_ADD(rx, both_odd) {
	.frame_size = 2048, .headroom = 65, .reserve = 77,
};

FIXTURE_VARIANT_ADD(rx, least_room) {
	.frame_size = 2048, .headroom = 1900, .reserve = 64,
};

FIXTURE_SETUP(rx)
{
	struct pv4_cfg cfg = {
		.ifname = if_b,
		.rx_nr = pv4_min_descs(),
		.frame_size = variant->frame_size,
		.unit = variant->unit,
		.step = variant->step,
		.headroom = variant->headroom,
		.reserve = variant->reserve,
	};

	pv4_net_setup(_metadata);
	ASSERT_EQ(0, pv4_open(&self->s, &cfg));
	self->tx = plain_socket(_metadata, if_a, 0);
	self->buf = malloc(1 << 17);
	ASSERT_TRUE(!!self->buf);
}

FIXTURE_TEARDOWN(rx)
{
	pv4_close(&self->s);
	close(self->tx);
	free(self->buf);
}

/* Each size, with several wraps of the ring so that chains wrap at all
 * positions.
 */
TEST_F(rx, contents)
{
	struct tpacket_stats_v4 st;
	unsigned int i, n = 0, round;
	int len;

	for (round = 0; round < 4; round++) {
		for (i = 0; i < ARRAY_SIZE(sizes); i++, n++) {
			fill_packet(self->buf, sizes[i], n);
			ASSERT_EQ((int)sizes[i],
				  send(self->tx, self->buf, sizes[i], 0));
			memset(self->buf, 0, sizes[i]);
			len = pv4_recv(&self->s, self->buf, 1 << 17, WAIT_MS);
			ASSERT_TRUE(packet_ok(self->buf, len, sizes[i], n)) {
				TH_LOG("size %u, received %d", sizes[i], len);
			}
		}
	}
	EXPECT_EQ(-EAGAIN, pv4_recv(&self->s, self->buf, 1 << 17, QUIET_MS));
	ASSERT_EQ(0, pv4_stats(self->s.fd, &st));
	EXPECT_EQ(n, st.tp_packets);
	EXPECT_EQ(0U, st.tp_drops);
	/* reading has cleared it */
	ASSERT_EQ(0, pv4_stats(self->s.fd, &st));
	EXPECT_EQ(0U, st.tp_packets);
}

/* Only the packet is written to a frame. */
TEST_F(rx, frame_edges)
{
	const unsigned int small[] = { 60, 61, 63, 64 };
	struct tpacket4_desc d;
	unsigned int i, room = self->s.frame_size - self->s.offset;

	for (i = 0; i < 4 && small[i] <= room; i++) {
		char *f;

		fill_packet(self->buf, small[i], i);
		ASSERT_EQ((int)small[i],
			  send(self->tx, self->buf, small[i], 0));
		ASSERT_TRUE(pv4_take_wait(&self->s, &self->s.rx, &d, WAIT_MS));
		EXPECT_EQ(i * self->s.step, d.idx);
		EXPECT_EQ(small[i], d.len);
		EXPECT_EQ(self->s.offset, d.offset);
		EXPECT_EQ(0, d.error);
		EXPECT_EQ(0, d.flags);
		f = pv4_frame(&self->s, d.idx);
		EXPECT_TRUE(untouched(f, d.offset));
		EXPECT_TRUE(packet_ok(f + d.offset, d.len, small[i], i));
		f += d.offset + d.len;
		EXPECT_TRUE(untouched(f, room - d.len));
	}
}

/* All frames of a packet but the last are full and have TP4_PKT_CONT. Only the
 * first one has headroom, so that the packet lies in one piece.
 */
TEST_F(rx, chain_shape)
{
	unsigned int room = self->s.frame_size - self->s.offset;
	unsigned int size = self->s.frame_size, i, left = MAX_PKT;
	unsigned int want = 1 + (MAX_PKT - room + size - 1) / size;
	struct tpacket4_desc d;

	fill_packet(self->buf, MAX_PKT, 1);
	ASSERT_EQ(MAX_PKT, send(self->tx, self->buf, MAX_PKT, 0));
	for (i = 0; i < want; i++) {
		ASSERT_TRUE(pv4_take_wait(&self->s, &self->s.rx, &d, WAIT_MS));
		EXPECT_EQ(i * self->s.step, d.idx);
		EXPECT_EQ(left < room ? left : room, d.len);
		EXPECT_EQ(i ? 0 : self->s.offset, d.offset);
		EXPECT_EQ(i + 1 < want ? TP4_PKT_CONT : 0, d.flags);
		left -= d.len;
		room = size;
	}
	EXPECT_EQ(0U, left);
	/* frames lie side by side if they were posted in order */
	EXPECT_TRUE(packet_ok(self->s.area + self->s.offset, MAX_PKT, MAX_PKT,
			      1));
	EXPECT_FALSE(pv4_take(&self->s.rx, &d));
}

/* VLAN tags that the stack strips are put back. */
TEST_F(rx, vlan)
{
	const unsigned int lens[] = { 60, 500, 2040, 4090, 8000 };
	char *want = malloc(1 << 14);
	unsigned int i, j;
	size_t len;
	int got;

	ASSERT_TRUE(!!want);
	for (i = 0; i < 3 * 5; i++) {
		len = lens[i % 5];
		fill_packet(want, len, i);
		len = add_tag(want, len, ETH_P_8021Q, 0x6123);
		for (j = 0; j < i / 5; j++)
			len = add_tag(want, len, ETH_P_8021AD, 0x0456 + j);
		ASSERT_EQ((int)len, send(self->tx, want, len, 0));
		got = pv4_recv(&self->s, self->buf, 1 << 17, WAIT_MS);
		ASSERT_EQ((int)len, got);
		ASSERT_EQ(0, memcmp(want, self->buf, len)) {
			TH_LOG("%u tags, %zu bytes", i / 5 + 1, len);
		}
	}
	free(want);
}

FIXTURE(tx) {
	struct pv4 s;			/* sends on if_a */
	int rx;				/* an ordinary socket on if_b */
	char *buf;
};

FIXTURE_VARIANT(tx) {
	unsigned int frame_size;
	unsigned int piece;		/* bytes a frame */
	unsigned int offset;
};

FIXTURE_VARIANT_ADD(tx, frames_2048) { .frame_size = 2048, .piece = 2048 };

FIXTURE_VARIANT_ADD(tx, frames_4096) { .frame_size = 4096, .piece = 4096 };

FIXTURE_VARIANT_ADD(tx, offset_odd) {
	.frame_size = 4096, .piece = 4096 - 257, .offset = 257,
};

FIXTURE_VARIANT_ADD(tx, pieces_small) {
	.frame_size = 2048, .piece = 601, .offset = 11,
};

FIXTURE_SETUP(tx)
{
	struct pv4_cfg cfg = {
		.ifname = if_a,
		.tx_nr = pv4_min_descs(),
		.frame_size = variant->frame_size,
	};

	pv4_net_setup(_metadata);
	ASSERT_EQ(0, pv4_open(&self->s, &cfg));
	self->rx = plain_socket(_metadata, if_b, ETH_P_ALL);
	self->buf = malloc(1 << 17);
	ASSERT_TRUE(!!self->buf);
}

FIXTURE_TEARDOWN(tx)
{
	pv4_close(&self->s);
	close(self->rx);
	free(self->buf);
}

TEST_F(tx, contents)
{
	unsigned int i, n = 0, round, posted = 0;
	int len;

	for (round = 0; round < 4; round++) {
		for (i = 0; i < ARRAY_SIZE(sizes); i++, n++) {
			fill_packet(self->buf, sizes[i], n);
			ASSERT_EQ(0, pv4_put(&self->s, self->buf, sizes[i],
					     variant->piece,
					     variant->offset));
			posted += (sizes[i] + variant->piece - 1) /
				  variant->piece;
			ASSERT_EQ((int)sizes[i], pv4_kick(&self->s, 0));
			memset(self->buf, 0, sizes[i]);
			len = plain_recv(self->rx, self->buf, 1 << 17,
					 WAIT_MS);
			ASSERT_TRUE(packet_ok(self->buf, len, sizes[i], n)) {
				TH_LOG("size %u, received %d", sizes[i], len);
			}
			/* all frames are returned once the reader has freed
			 * them
			 */
			ASSERT_TRUE(pv4_reap_all(&self->s, WAIT_MS));
		}
	}
	EXPECT_EQ(posted, self->s.errors[0]);
	EXPECT_EQ(self->s.frames, self->s.nr_spare);
	EXPECT_EQ(-EAGAIN, plain_recv(self->rx, self->buf, 1 << 17, QUIET_MS));
}

/* Several packets per kick are sent in order; the return value is the number of
 * bytes.
 */
TEST_F(tx, batch)
{
	unsigned int i, sum = 0;
	int len;

	for (i = 0; i < 32; i++) {
		len = 60 + i * 37;
		fill_packet(self->buf, len, i);
		ASSERT_EQ(0, pv4_put(&self->s, self->buf, len, variant->piece,
				     variant->offset));
		sum += len;
	}
	ASSERT_EQ((int)sum, pv4_kick(&self->s, MSG_DONTWAIT));
	for (i = 0; i < 32; i++) {
		len = plain_recv(self->rx, self->buf, 1 << 17, WAIT_MS);
		ASSERT_TRUE(packet_ok(self->buf, len, 60 + i * 37, i));
	}
	ASSERT_TRUE(pv4_reap_all(&self->s, WAIT_MS));
	EXPECT_EQ(self->s.frames, self->s.nr_spare);
}

/* A link-layer header may span several frames. */
TEST_F(tx, split_header)
{
	const unsigned int piece[] = { 1, 7, 13, 14, 15 };
	struct tpacket4_desc d[17];
	unsigned int i, n;
	int len = 60, got;

	for (i = 0; i < 5; i++) {
		unsigned int done = 0;

		fill_packet(self->buf, len, i);
		for (n = 0; n < 4; n++) {
			unsigned int part = n < 3 ? piece[i] : len - done;

			d[n] = (struct tpacket4_desc) {
				.idx = n, .len = part,
				.flags = n < 3 ? TP4_PKT_CONT : 0,
			};
			memcpy(pv4_frame(&self->s, n), self->buf + done, part);
			done += part;
		}
		pv4_post(&self->s.tx, d, 4);
		ASSERT_EQ(len, pv4_kick(&self->s, 0));
		got = plain_recv(self->rx, self->buf, 1 << 17, WAIT_MS);
		ASSERT_TRUE(packet_ok(self->buf, got, len, i));
		for (n = 0; n < 4; n++) {
			ASSERT_TRUE(pv4_take_wait(&self->s, &self->s.tx, d,
						  WAIT_MS));
			EXPECT_EQ(0, d->error);
		}
	}
}

/* The rest of a chain may be posted later; a kick before that does nothing. */
TEST_F(tx, chain_posted_in_parts)
{
	struct tpacket4_desc d[3] = {
		{ .idx = 3, .len = 40, .flags = TP4_PKT_CONT },
		{ .idx = 5, .len = 50, .flags = TP4_PKT_CONT },
		{ .idx = 4, .len = 30 },
	};
	int got;

	fill_packet(self->buf, 120, 9);
	memcpy(pv4_frame(&self->s, 3), self->buf, 40);
	memcpy(pv4_frame(&self->s, 5), self->buf + 40, 50);
	memcpy(pv4_frame(&self->s, 4), self->buf + 90, 30);
	pv4_post(&self->s.tx, d, 1);
	EXPECT_EQ(0, pv4_kick(&self->s, MSG_DONTWAIT));
	pv4_post(&self->s.tx, d + 1, 1);
	EXPECT_EQ(0, pv4_kick(&self->s, MSG_DONTWAIT));
	EXPECT_TRUE(desc_is_kernels(pv4_slot(&self->s.tx, 0)));
	EXPECT_TRUE(desc_is_kernels(pv4_slot(&self->s.tx, 1)));
	pv4_post(&self->s.tx, d + 2, 1);
	EXPECT_EQ(120, pv4_kick(&self->s, 0));
	got = plain_recv(self->rx, self->buf, 1 << 17, WAIT_MS);
	EXPECT_TRUE(packet_ok(self->buf, got, 120, 9));
	EXPECT_TRUE(pv4_reap_all(&self->s, WAIT_MS));
	EXPECT_EQ(3U, self->s.errors[0]);
}

/* ---- V4 to V4 ---- */

FIXTURE(pair) {
	struct pv4 tx, rx;
	char *buf;
};

FIXTURE_SETUP(pair)
{
	struct pv4_cfg tcfg = { .ifname = if_a, .tx_nr = 1024 };
	struct pv4_cfg rcfg = { .ifname = if_b, .rx_nr = 4096 };

	pv4_net_setup(_metadata);
	ASSERT_EQ(0, pv4_open(&self->tx, &tcfg));
	ASSERT_EQ(0, pv4_open(&self->rx, &rcfg));
	self->buf = malloc(1 << 17);
	ASSERT_TRUE(!!self->buf);
}

FIXTURE_TEARDOWN(pair)
{
	pv4_close(&self->tx);
	pv4_close(&self->rx);
	free(self->buf);
}

/* Sends @total packets, at most @window ahead of *@done, in a child. */
static int send_sequence(struct pv4 *s, uint32_t total, uint32_t window,
			 uint32_t *done)
{
	char buf[60];
	uint32_t seq = 0;
	int n;

	/* moving to another CPU can reorder packets in veth's backlog */
	pin_to_cpu(0);
	while (seq < total) {
		for (n = 0; n < 64 && seq < total; n++, seq++) {
			fill_packet(buf, sizeof(buf), seq);
			if (pv4_put(s, buf, sizeof(buf), 2048, 0))
				break;
		}
		n = pv4_kick(s, 0);
		/* veth's backlog may be full: kick again */
		if (n < 0 && n != -ENOBUFS)
			return 1;
		pv4_reap(s);
		while (seq - __atomic_load_n(done, __ATOMIC_ACQUIRE) > window)
			usleep(50);
	}
	while (pv4_reap(s), s->tx.used != s->tx.avail) {
		n = pv4_kick(s, 0);
		if (n < 0 && n != -ENOBUFS)
			return 2;
	}
	return s->errors[0] == total ? 0 : 3;
}

/* No packet is lost or reordered if the receiver keeps up. */
TEST_F_TIMEOUT(pair, order, 120)
{
	uint32_t total = pv4_fast() ? 20000 : 1000000, seq, *done;
	struct tpacket_stats_v4 st;
	int status, len;
	pid_t pid;

	TH_LOG("%u packets%s", total,
	       pv4_fast() ? " (a debug kernel, or TPACKET4_FAST)" : "");
	done = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_TRUE(done != MAP_FAILED);
	pid = pv4_fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(send_sequence(&self->tx, total, 2048, done));
	for (seq = 0; seq < total; seq++) {
		len = pv4_recv(&self->rx, self->buf, 1 << 17, WAIT_MS);
		ASSERT_EQ(60, len);
		ASSERT_EQ(seq, packet_seq(self->buf));
		if (!(seq % 32) || seq + 1 == total)
			__atomic_store_n(done, seq, __ATOMIC_RELEASE);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	ASSERT_EQ(0, pv4_stats(self->rx.fd, &st));
	EXPECT_EQ(total, st.tp_packets);
	EXPECT_EQ(0U, st.tp_drops);
}

static int send_flood(struct pv4 *s, uint32_t total)
{
	uint32_t none = 0;

	return send_sequence(s, total, UINT32_MAX, &none);
}

static void add_stats(struct __test_metadata *_metadata, int fd,
		      struct tpacket_stats_v4 *sum)
{
	struct tpacket_stats_v4 st;

	ASSERT_EQ(0, pv4_stats(fd, &st));
	sum->tp_packets += st.tp_packets;
	sum->tp_drops += st.tp_drops;
	sum->rx_ring_full += st.rx_ring_full;
	sum->rx_no_desc += st.rx_no_desc;
}

/* A receiver that is too slow loses packets, and all of them are counted. */
TEST_F_TIMEOUT(pair, drop_count, 120)
{
	uint32_t total = pv4_fast() ? 20000 : 100000, got = 0, last = 0;
	struct tpacket_stats_v4 sum = { 0 };
	int status, len, i;
	pid_t pid;

	pid = pv4_fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(send_flood(&self->tx, total));
	/* let the ring overflow before reading */
	for (i = 0; i < WAIT_MS && !sum.tp_drops; i++) {
		usleep(1000);
		add_stats(_metadata, self->rx.fd, &sum);
	}
	EXPECT_LT(0U, sum.tp_drops);
	for (i = 0; ; i++) {
		len = pv4_recv(&self->rx, self->buf, 1 << 17, 1000);
		if (len == -EAGAIN && waitpid(pid, &status, WNOHANG) == pid)
			break;
		if (len == -EAGAIN)
			continue;
		ASSERT_EQ(60, len);
		if (got)
			ASSERT_LT(last, packet_seq(self->buf));
		last = packet_seq(self->buf);
		got++;
		/* reading the counters in between loses none */
		if (!(i % 500))
			add_stats(_metadata, self->rx.fd, &sum);
	}
	EXPECT_EQ(0, status);
	while (pv4_recv(&self->rx, self->buf, 1 << 17, QUIET_MS) == 60)
		got++;
	add_stats(_metadata, self->rx.fd, &sum);
	TH_LOG("sent %u, received %u, dropped %u", total, got, sum.tp_drops);
	EXPECT_EQ(total, sum.tp_packets);
	EXPECT_EQ(total, got + sum.tp_drops);
	EXPECT_EQ(sum.tp_drops, sum.rx_ring_full + sum.rx_no_desc);
}

/* With one area for both rings, packets are forwarded without copying. */
TEST_F(pair, forward_in_one_area)
{
	struct pv4_cfg cfg = {
		.ifname = if_b, .rx_nr = 256, .tx_nr = 256, .headroom = 64,
	};
	struct tpacket4_desc d[8];
	struct pv4 s;
	int i, n, len, out;

	out = plain_socket(_metadata, if_a, ETH_P_ALL);
	ASSERT_EQ(0, pv4_open(&s, &cfg));
	for (i = 0; i < 600; i++) {
		unsigned int want = i & 1 ? 5000 : 200;

		fill_packet(self->buf, want, i);
		ASSERT_EQ(0, pv4_put(&self->tx, self->buf, want, 2048, 0));
		ASSERT_EQ((int)want, pv4_kick(&self->tx, 0));
		pv4_reap(&self->tx);
		n = 0;
		do {
			ASSERT_TRUE(pv4_take_wait(&s, &s.rx, &d[n], WAIT_MS));
			ASSERT_EQ(0, d[n].error);
		} while (d[n++].flags & TP4_PKT_CONT);
		/* unchanged: idx, offset, len, flags */
		pv4_post(&s.tx, d, n);
		ASSERT_EQ((int)want, pv4_kick(&s, 0));
		while (n--) {
			ASSERT_TRUE(pv4_take_wait(&s, &s.tx, d, WAIT_MS));
			ASSERT_EQ(0, d->error);
			pv4_rx_post(&s, d->idx);
		}
		/* out also receives what self->tx has sent: outgoing, then
		 * incoming
		 */
		len = plain_recv(out, self->buf, 1 << 17, WAIT_MS);
		ASSERT_TRUE(packet_ok(self->buf, len, want, i));
		len = plain_recv(out, self->buf, 1 << 17, WAIT_MS);
		ASSERT_TRUE(packet_ok(self->buf, len, want, i));
	}
	pv4_close(&s);
	close(out);
}

TEST_HARNESS_MAIN
