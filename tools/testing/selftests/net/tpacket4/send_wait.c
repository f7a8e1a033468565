// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4: blocking sends and their results. A qdisc that delays packets
 * holds the frames that the kernel refers to.
 */
#include "task.h"

#include <pthread.h>
#include <sys/time.h>

struct ends {
	struct pv4 tx, rx;		/* on if_a and if_b */
	char *buf;
};

static void ends_open(struct __test_metadata *_metadata, struct ends *e)
{
	struct pv4_cfg tcfg = { .ifname = if_a, .tx_nr = pv4_min_descs() };
	struct pv4_cfg rcfg = { .ifname = if_b, .rx_nr = 4 * pv4_min_descs() };

	pv4_net_setup(_metadata);
	ASSERT_EQ(0, pv4_open(&e->tx, &tcfg));
	ASSERT_EQ(0, pv4_open(&e->rx, &rcfg));
	e->buf = malloc(MAX_PKT);
	ASSERT_TRUE(!!e->buf);
}

static void ends_close(struct ends *e)
{
	pv4_close(&e->tx);
	pv4_close(&e->rx);
	free(e->buf);
}

/* ---- all that was posted ---- */

FIXTURE(full) {
	struct ends e;
};

FIXTURE_VARIANT(full) {
	unsigned int len, piece;
};

FIXTURE_VARIANT_ADD(full, one_frame) { .len = 1900, .piece = 1900 };

FIXTURE_VARIANT_ADD(full, two_frames) { .len = 3000, .piece = 1500 };

FIXTURE_VARIANT_ADD(full, sixteen_frames) { .len = 8000, .piece = 500 };

FIXTURE_SETUP(full)
{
	ends_open(_metadata, &self->e);
}

FIXTURE_TEARDOWN(full)
{
	ends_close(&self->e);
}

/* A blocking send with every slot posted returns when all of them have been
 * returned, and not before.
 */
TEST_F_TIMEOUT(full, blocking_send_waits_for_all_slots, 120)
{
	struct pv4 *tx = &self->e.tx, *rx = &self->e.rx;
	unsigned int i, len = variant->len;
	unsigned int nr = tx->tx.size / (len / variant->piece);
	uint32_t seq = 0;
	int round, n;

	for (round = 0; round < 3; round++) {
		ASSERT_EQ(0, set_qdisc("netem limit 1000 delay 300ms"));
		for (i = 0; i < nr; i++) {
			fill_packet(self->e.buf, len, seq + i);
			ASSERT_EQ(0, pv4_put(tx, self->e.buf, len,
					     variant->piece, 0));
		}
		ASSERT_EQ(tx->tx.size, tx->tx.avail - tx->tx.used);
		EXPECT_EQ((int)(nr * len), pv4_kick(tx, 0));
		EXPECT_EQ(tx->tx.size, pv4_reap(tx));
		EXPECT_TRUE(pv4_reap_all(tx, WAIT_MS));
		EXPECT_EQ((round + 1) * tx->tx.size, tx->errors[0]);
		for (i = 0; i < nr; i++, seq++) {
			n = pv4_recv(rx, self->e.buf, MAX_PKT, WAIT_MS);
			ASSERT_TRUE(packet_ok(self->e.buf, n, len, seq));
		}
	}
}

/* It does not return while packets are in flight. */
TEST_F_TIMEOUT(full, blocking_send_waits_for_in_flight, 120)
{
	struct pv4 *tx = &self->e.tx;
	unsigned int i, len = variant->len;
	unsigned int nr = tx->tx.size / (len / variant->piece);
	pid_t pid;

	ASSERT_EQ(0, set_qdisc("netem limit 1000 delay 200s"));
	for (i = 0; i < nr; i++) {
		fill_packet(self->e.buf, len, i);
		ASSERT_EQ(0, pv4_put(tx, self->e.buf, len, variant->piece, 0));
	}
	pid = pv4_fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(pv4_kick(tx, 0) != (int)(nr * len));
	EXPECT_EQ('S', wait_until_idle(pid)) {
		TH_LOG("it did not wait");
	}
	EXPECT_EQ(-EAGAIN, exit_within(pid, QUIET_MS));
	/* the qdisc drops all of them, which frees the frames, too */
	ASSERT_EQ(0, set_qdisc("pfifo limit 1000"));
	EXPECT_EQ(0, exit_within(pid, WAIT_MS));
	EXPECT_TRUE(pv4_reap_all(tx, WAIT_MS));
}

/* ---- errors ---- */

FIXTURE(wait) {
	struct ends e;
};

FIXTURE_SETUP(wait)
{
	ends_open(_metadata, &self->e);
}

FIXTURE_TEARDOWN(wait)
{
	ends_close(&self->e);
}

static int set_sndtimeo(int fd, int ms)
{
	struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	return setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) ?
	       -errno : 0;
}

/* A full send buffer: EAGAIN for non-blocking, ETIMEDOUT for blocking calls. */
TEST_F_TIMEOUT(wait, sndtimeo_of_a_full_send_buffer, 120)
{
	struct pv4 *tx = &self->e.tx;
	int i, n, least = 2048;

	pkt_len = LONG_LEN;
	/* one packet passes, the next one after more than a minute */
	ASSERT_EQ(0, set_qdisc("tbf rate 200bit burst 3000 limit 1000000"));
	ASSERT_EQ(0, setsockopt(tx->fd, SOL_SOCKET, SO_SNDBUF, &least,
				sizeof(least)));
	ASSERT_EQ(0, set_sndtimeo(tx->fd, 100));
	for (i = 0; i < 40; i++)
		ASSERT_EQ(0, post_one(tx, i));
	n = pv4_kick(tx, MSG_DONTWAIT);
	ASSERT_LT(0, n);
	ASSERT_GT(40 * LONG_LEN, n);
	EXPECT_EQ(-EAGAIN, pv4_kick(tx, MSG_DONTWAIT));
	EXPECT_EQ(-ETIMEDOUT, pv4_kick(tx, 0));
	EXPECT_EQ(-ETIMEDOUT, pv4_kick(tx, 0));
	/* what does not fit stays posted, and is sent when there is room */
	EXPECT_TRUE(desc_is_kernels(pv4_slot(&tx->tx, 39)));
	ASSERT_EQ(0, set_qdisc("pfifo limit 1000"));
	ASSERT_EQ(0, set_sndtimeo(tx->fd, WAIT_MS));
	for (; n < 40 * LONG_LEN; n += i) {
		i = pv4_kick(tx, 0);
		ASSERT_LT(0, i);
	}
	EXPECT_TRUE(pv4_reap_all(tx, WAIT_MS));
	EXPECT_EQ(40U, tx->errors[0]);
}

/* A device that goes down while a call sleeps: the rest stays posted. The device
 * keeps its carrier, and the socket receives nothing, so no error is pending.
 */
TEST_F_TIMEOUT(wait, device_down, 120)
{
	const char *slow = "qdisc add dev v4dummy root tbf rate 200bit burst 3000 limit 1000000\n";
	struct pv4_cfg cfg = { .tx_nr = pv4_min_descs() };
	int i, n, least = 2048;
	struct pv4 tx;
	pid_t pid;

	pkt_len = LONG_LEN;
	ASSERT_EQ(0, run_ip("link add v4dummy mtu 9000 type dummy\n"));
	ASSERT_EQ(0, set_up("v4dummy", true));
	ASSERT_EQ(0, net_batch("tc", slow));
	ASSERT_EQ(0, pv4_open(&tx, &cfg));
	ASSERT_EQ(0, pv4_bind(tx.fd, "v4dummy", 0));
	ASSERT_EQ(0, setsockopt(tx.fd, SOL_SOCKET, SO_SNDBUF, &least,
				sizeof(least)));
	for (i = 0; i < 40; i++)
		ASSERT_EQ(0, post_one(&tx, i));
	pid = pv4_fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		n = pv4_kick(&tx, 0);
		/* it had sent something before it slept */
		_exit(n <= 0 || n >= 40 * LONG_LEN);
	}
	EXPECT_EQ('S', wait_until_idle(pid)) {
		TH_LOG("it did not wait");
	}
	ASSERT_EQ(0, set_up("v4dummy", false));
	EXPECT_EQ(0, exit_within(pid, WAIT_MS));
	EXPECT_TRUE(desc_is_kernels(pv4_slot(&tx.tx, 39)));
	EXPECT_EQ(-ENETDOWN, pv4_kick(&tx, 0));

	ASSERT_EQ(0, net_batch("tc", "qdisc replace dev v4dummy root pfifo\n"));
	ASSERT_EQ(0, set_up("v4dummy", true));
	EXPECT_LT(0, pv4_kick(&tx, 0));
	EXPECT_TRUE(pv4_reap_all(&tx, WAIT_MS));
	pv4_close(&tx);
}

/* ---- many refusals ---- */

/* Fills the ring with descriptors that are refused and sends, until a signal a
 * millisecond later. True if the call ended before it had refused all of them.
 */
static bool refused_in_part(struct pv4 *s, unsigned int nr)
{
	const struct itimerval soon = { .it_value.tv_usec = 1000 };
	struct tpacket4_desc d = { .idx = 16, .len = 60 };
	unsigned int i;

	for (i = 0; i < nr; i++)
		pv4_post(&s->tx, &d, 1);
	return !setitimer(ITIMER_REAL, &soon, NULL) && !pv4_kick(s, 0) &&
	       desc_is_kernels(pv4_slot(&s->tx, nr - 1));
}

/* A program cannot keep the kernel busy with packets that are refused: a signal
 * ends the call.
 */
TEST_F_TIMEOUT(wait, refusals_end_at_a_signal, 120)
{
	unsigned int rounds = 0, nr = pv4_fast() ? 1 << 17 : 1 << 20;
	struct pv4_cfg cfg = { .ifname = if_a, .tx_nr = nr, .frames = 16 };
	struct sigaction sa = { .sa_handler = interrupted };
	bool in_part;
	struct pv4 s;

	ASSERT_EQ(0, sigaction(SIGALRM, &sa, NULL));
	ASSERT_EQ(0, pv4_open(&s, &cfg));
	/* the signal may come before the call: then again */
	do {
		in_part = refused_in_part(&s, nr);
		while (pv4_reap(&s), s.tx.used != s.tx.avail)
			ASSERT_EQ(0, pv4_kick(&s, 0));
		rounds++;
	} while (!in_part && rounds < 100);
	EXPECT_TRUE(in_part);
	EXPECT_EQ(rounds * nr, s.errors[EINVAL]);
	TH_LOG("%u rounds", rounds);
	pv4_close(&s);
}

struct kicker {
	struct pv4 *s;
	int ifindex;			/* where to send */
	int stop;
	unsigned int errors;		/* ENETDOWN, as returned by sendto() */
	int other;			/* an unexpected errno */
};

/* Sends full batches to the address without a pause. */
static void *kick_all_the_time(void *arg)
{
	struct kicker *k = arg;
	struct sockaddr_ll ll = {
		.sll_family = AF_PACKET, .sll_ifindex = k->ifindex,
	};

	while (!__atomic_load_n(&k->stop, __ATOMIC_RELAXED)) {
		pv4_reap(k->s);
		while (!post_one(k->s, 1))
			;
		if (sendto(k->s->fd, NULL, 0, MSG_DONTWAIT,
			   (struct sockaddr *)&ll, sizeof(ll)) >= 0)
			continue;
		if (errno == ENETDOWN)
			__atomic_fetch_add(&k->errors, 1, __ATOMIC_RELAXED);
		else
			k->other = errno;
	}
	return NULL;
}

static bool downs_told(const struct kicker *k, unsigned int n)
{
	uint64_t end = now_ms() + WAIT_MS;

	while (__atomic_load_n(&k->errors, __ATOMIC_RELAXED) < n) {
		if (now_ms() > end)
			return false;
		usleep(1000);
	}
	return true;
}

/* The device that the socket is bound to goes down while batches are sent on
 * another one. Each time the socket's pending error is returned once, by
 * sendto() or SO_ERROR, and never lost.
 */
TEST_F_TIMEOUT(wait, pending_error, 120)
{
	struct kicker k = { .ifindex = if_nametoindex(if_a) };
	struct pv4_cfg cfg = { .tx_nr = pv4_min_descs() };
	unsigned int i, lost = 0, rounds = 20;
	struct pv4 s;
	pthread_t t;

	ASSERT_EQ(0, add_pair("v4c", "v4d", MTU));
	ASSERT_EQ(0, pv4_open(&s, &cfg));
	ASSERT_EQ(0, pv4_bind(s.fd, "v4c", ETH_P_ALL));
	k.s = &s;
	ASSERT_EQ(0, pthread_create(&t, NULL, kick_all_the_time, &k));
	for (i = 0; i < rounds; i++) {
		ASSERT_EQ(0, set_up("v4c", false));
		if (!downs_told(&k, i + 1 - lost))
			lost++;
		ASSERT_EQ(0, set_up("v4c", true));
	}
	__atomic_store_n(&k.stop, 1, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(t, NULL));
	EXPECT_EQ(0U, lost) {
		TH_LOG("of %u errors", rounds);
	}
	EXPECT_EQ(rounds, k.errors);
	EXPECT_EQ(0, k.other);
	EXPECT_TRUE(pv4_reap_all(&s, WAIT_MS));
	pv4_close(&s);
}

TEST_HARNESS_MAIN
