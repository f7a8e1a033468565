// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4, zero-copy mode: the members and the feeder of a fanout group come
 * and go under traffic. Each frame is returned once to whoever has posted it.
 */
#include "zc_fanout.h"

FIXTURE(fanout_life) {
	struct zc tx;			/* zero-copy on if_a */
	struct group g;
	uint32_t *stop;			/* shared with the sender */
	pid_t pid;			/* the sender */
	char *buf;
};

FIXTURE_VARIANT(fanout_life) {
	bool copy, meta;
	int type;
};

FIXTURE_VARIANT_ADD(fanout_life, swap) { .type = PACKET_FANOUT_LB };

FIXTURE_VARIANT_ADD(fanout_life, copy) {
	.copy = true, .type = PACKET_FANOUT_LB,
};

FIXTURE_VARIANT_ADD(fanout_life, rnd_meta) {
	.meta = true, .type = PACKET_FANOUT_RND,
};

FIXTURE_VARIANT_ADD(fanout_life, rollover) { .type = PACKET_FANOUT_ROLLOVER };

FIXTURE_VARIANT_ADD(fanout_life, cbpf) { .type = PACKET_FANOUT_CBPF };

/* Closes a socket in this process. Its mappings would keep it open. The area may
 * be used by others.
 */
static void let_go(struct zc *z)
{
	if (z->s.fd < 0)
		return;
	munmap(z->s.map, z->s.map_len);
	close(z->s.fd);
	z->s.fd = -1;
}

static void let_go_of_members(struct group *g)
{
	int i;

	for (i = 0; i < NR_MEMBERS; i++)
		let_go(&g->member[i]);
}

/* Sends until it is stopped, whatever happens at the other end. The exit code
 * tells which check has failed.
 */
static int send_main(struct zc *z, uint32_t *stop)
{
	uint32_t seq = 0;
	unsigned int n;

	while (!__atomic_load_n(stop, __ATOMIC_RELAXED)) {
		for (n = 0; n < 8; n++, seq++)
			if (zc_put_seq(z, len_of(seq), seq))
				break;
		if (zc_kick(z))
			usleep(1000);
		zc_reap(z);
		sched_yield();
	}
	if (z->strays)
		return 1;
	return zc_held(z) == zc_away(z) ? 0 : 2;
}

static void start_sender(struct __test_metadata *_metadata,
			 struct _test_data_fanout_life *self)
{
	*self->stop = 0;
	self->pid = pv4_fork();
	ASSERT_LE(0, self->pid);
	if (!self->pid) {
		/* or they would stay open when they are closed or killed */
		let_go(&self->g.feed);
		let_go_of_members(&self->g);
		_exit(send_main(&self->tx, self->stop));
	}
}

static void stop_sender(struct __test_metadata *_metadata,
			struct _test_data_fanout_life *self)
{
	__atomic_store_n(self->stop, 1, __ATOMIC_RELAXED);
	EXPECT_EQ(0, wait_for_exit(self->pid)) {
		TH_LOG("see send_main() for the code");
	}
	self->pid = 0;
}

FIXTURE_SETUP(fanout_life)
{
	struct zc_cfg tx = { .ifname = if_a, .n = 1 };
	struct sock_filter insns[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, LOW_BYTE),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};
	struct sock_fprog prog = { .len = 2, .filter = insns };

	group_net_setup(_metadata);
	ASSERT_EQ(0, zc_open(&self->tx, &tx));
	self->stop = shared_memory(4096);
	ASSERT_TRUE(self->stop != MAP_FAILED);
	self->buf = malloc(BUF_SIZE);
	ASSERT_TRUE(!!self->buf);
	group_init(&self->g, variant->type);
	self->g.copy = variant->copy;
	self->g.meta = variant->meta;
	ASSERT_EQ(0, group_open_all(&self->g));
	ASSERT_EQ(0, group_feed(&self->g, &self->g.feed, 1));
	if (variant->type == PACKET_FANOUT_CBPF)
		ASSERT_EQ(0, pv4_setopt(self->g.feed.s.fd, PACKET_FANOUT_DATA,
					&prog, sizeof(prog)));
	start_sender(_metadata, self);
}

FIXTURE_TEARDOWN(fanout_life)
{
	/* after a failure, or if the test is skipped */
	if (self->pid > 0) {
		kill(self->pid, SIGKILL);
		wait_for_exit(self->pid);
	}
	group_close(&self->g);
	zc_close(&self->tx);
	free(self->buf);
}

/* Receives a packet and checks it. Returns false if it is wrong. */
static bool receive_one(struct zc *z, char *buf, unsigned int *got)
{
	int len = zc_recv(z, buf, BUF_SIZE, 0);
	uint32_t seq;

	if (len == -EAGAIN)
		return true;
	if (len < 0)
		return false;
	seq = packet_seq(buf);
	if (!packet_ok(buf, len, len_of(seq), seq))
		return false;
	(*got)++;
	return true;
}

/* Receives on all sockets until @n more packets have arrived. */
static bool flows(struct _test_data_fanout_life *self, unsigned int n)
{
	uint64_t end = now_ms() + WAIT_MS;
	unsigned int i, got = 0;

	while (got < n) {
		for (i = 0; i < NR_MEMBERS; i++)
			if (self->g.member[i].s.fd >= 0 &&
			    !receive_one(&self->g.member[i], self->buf, &got))
				return false;
		if (self->g.feed.s.fd >= 0 &&
		    !receive_one(&self->g.feed, self->buf, &got))
			return false;
		if (now_ms() > end)
			return false;
	}
	return true;
}

/* Receives what is left, and checks that no frame is missing. */
static void expect_all(struct __test_metadata *_metadata,
		       struct _test_data_fanout_life *self)
{
	unsigned int i, got, last;

	do {
		last = 0;
		for (i = 0; i <= NR_MEMBERS; i++) {
			struct zc *z = i < NR_MEMBERS ? &self->g.member[i] :
							&self->g.feed;

			if (z->s.fd < 0)
				continue;
			do {
				got = 0;
				ASSERT_TRUE(receive_one(z, self->buf, &got));
				last += got;
			} while (got);
		}
		usleep(20000);
	} while (last);
}

/* More packets than the members' rings hold: some of them are new. */
static bool goes_on(struct _test_data_fanout_life *self)
{
	return flows(self, NR_MEMBERS * pv4_min_descs() + 50);
}

#define ROUNDS		(pv4_fast() ? 5 : 20)

/* A member with an area of its own closes, and another one joins. The frames in
 * the area of a feeder that a member had posted are gone with it: then nobody
 * checks the total.
 */
TEST_F_TIMEOUT(fanout_life, member_closes, 180)
{
	struct zc *m = &self->g.member[1];
	int i;

	for (i = 0; i < ROUNDS; i++) {
		ASSERT_TRUE(flows(self, 50));
		let_go(m);
		ASSERT_TRUE(flows(self, 20));
		/* what the kernel owned of its ring was not returned: so it can
		 * be used by nobody else
		 */
		if (!variant->copy)
			break;
		munmap(m->s.area, m->s.area_len);
		free(m->s.spare);
		munmap(m->held, m->s.frames);
		ASSERT_EQ(0, group_open(&self->g, m,
					&(struct zc_cfg){ .meta = self->g.meta }));
		ASSERT_EQ(0, group_join(&self->g, m->s.fd));
	}
	stop_sender(_metadata, self);
	expect_all(_metadata, self);
	EXPECT_EQ(0U, self->g.feed.strays);
	EXPECT_EQ(0U, self->g.member[0].strays);
	EXPECT_EQ(self->g.feed.s.rx.size,
		  self->g.feed.s.rx.avail - self->g.feed.s.rx.used);
	ASSERT_EQ(0, zc_set(&self->g.feed, 0));
	EXPECT_EQ((int)self->g.feed.s.rx.size,
		  zc_all_back(&self->g.feed, ECANCELED, WAIT_MS));
	EXPECT_EQ(0U, self->g.feed.strays);
}

/* A member is killed while it receives. */
TEST_F_TIMEOUT(fanout_life, member_killed, 180)
{
	struct zc *m = &self->g.member[1];
	unsigned int n = 0;
	uint32_t *ready = shared_memory(4096);
	pid_t pid;

	ASSERT_TRUE(ready != MAP_FAILED);
	ASSERT_TRUE(flows(self, 50));
	pid = pv4_fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		let_go(&self->g.feed);
		let_go(&self->g.member[0]);
		while (receive_one(m, self->buf, &n))
			__atomic_store_n(ready, n, __ATOMIC_RELEASE);
		_exit(1);
	}
	let_go(m);
	/* by rollover, the first one must be full before it gets one */
	if (variant->type != PACKET_FANOUT_ROLLOVER) {
		while (!__atomic_load_n(ready, __ATOMIC_ACQUIRE))
			ASSERT_TRUE(flows(self, 1));
	}
	kill(pid, SIGKILL);
	EXPECT_EQ(-SIGKILL, wait_for_exit(pid));
	ASSERT_TRUE(goes_on(self));
	stop_sender(_metadata, self);
	expect_all(_metadata, self);
	EXPECT_EQ(0U, self->g.feed.strays);
	EXPECT_EQ(0U, self->g.member[0].strays);
	ASSERT_EQ(0, zc_set(&self->g.feed, 0));
	EXPECT_EQ((int)self->g.feed.s.rx.size,
		  zc_all_back(&self->g.feed, ECANCELED, WAIT_MS));
	EXPECT_EQ(0U, self->g.feed.strays);
}

/* The feeder leaves zero-copy mode and enters it again. */
TEST_F_TIMEOUT(fanout_life, feeder_leaves, 180)
{
	struct zc *f = &self->g.feed;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		ASSERT_TRUE(flows(self, 50));
		ASSERT_EQ(0, zc_set(f, 0));
		f->min_offset = f->s.offset;
		/* some may have been used already, by copy mode */
		ASSERT_TRUE(flows(self, 20));
		ASSERT_EQ(0, zc_set(f, 1));
	}
	ASSERT_TRUE(flows(self, 50));
	stop_sender(_metadata, self);
	expect_all(_metadata, self);
	group_expect_back(_metadata, &self->g);
}

/* The feeder closes: its frames are gone, those of the members are not. */
TEST_F_TIMEOUT(fanout_life, feeder_closes, 180)
{
	struct zc *f = &self->g.feed, more;
	unsigned int i;

	ASSERT_TRUE(flows(self, 50));
	ASSERT_EQ(0, group_open(&self->g, &more,
				&(struct zc_cfg){ .rx_empty = true }));
	let_go(f);
	/* from the stack */
	ASSERT_TRUE(goes_on(self));
	ASSERT_EQ(0, group_feed(&self->g, &more, 1));
	for (i = 0; i < more.s.rx.size; i++)
		zc_rx_post(&more, more.first + i);
	ASSERT_EQ(0, zc_kick(&more));
	ASSERT_TRUE(goes_on(self));
	stop_sender(_metadata, self);
	expect_all(_metadata, self);
	for (i = 0; i < NR_MEMBERS; i++)
		EXPECT_EQ(0U, self->g.member[i].strays);
	ASSERT_EQ(0, zc_set(&more, 0));
	EXPECT_EQ((int)more.s.rx.size, zc_all_back(&more, ECANCELED, WAIT_MS));
	EXPECT_EQ(0U, more.strays);
	zc_close(&more);
}

/* The feeder is killed. */
TEST_F_TIMEOUT(fanout_life, feeder_killed, 180)
{
	struct zc *f = &self->g.feed;
	unsigned int i;
	pid_t pid;

	pid = pv4_fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		let_go_of_members(&self->g);
		pause();
		_exit(1);
	}
	let_go(f);
	ASSERT_TRUE(flows(self, 50));
	kill(pid, SIGKILL);
	EXPECT_EQ(-SIGKILL, wait_for_exit(pid));
	ASSERT_TRUE(goes_on(self));
	stop_sender(_metadata, self);
	expect_all(_metadata, self);
	for (i = 0; i < NR_MEMBERS; i++)
		EXPECT_EQ(0U, self->g.member[i].strays);
}

/* The device goes down and up. */
TEST_F_TIMEOUT(fanout_life, down_up, 180)
{
	unsigned int i;

	if (on_ports())
		SKIP(return, "not a device of the test");
	for (i = 0; i < 3; i++) {
		ASSERT_TRUE(flows(self, 50));
		ASSERT_EQ(0, set_up(if_b, false));
		ASSERT_EQ(0, set_up(if_b, true));
		ASSERT_TRUE(goes_on(self));
	}
	EXPECT_EQ(1, zc_get(&self->g.feed));
	stop_sender(_metadata, self);
	expect_all(_metadata, self);
	group_expect_back(_metadata, &self->g);
}

/* The device is removed, or its other end. The feeder gets all frames back; the
 * members keep theirs.
 */
static void device_goes(struct __test_metadata *_metadata,
			struct _test_data_fanout_life *self, const char *name)
{
	struct zc *f = &self->g.feed;

	if (on_ports())
		SKIP(return, "not a device of the test");
	ASSERT_TRUE(flows(self, 50));
	ASSERT_EQ(0, run_ip("link del %s\n", name));
	/* all slots are returned, as packets or with an error */
	EXPECT_LE(0, zc_all_back(f, ENETDOWN, WAIT_MS));
	EXPECT_EQ(0, zc_get(f));
	stop_sender(_metadata, self);
	expect_all(_metadata, self);
	EXPECT_TRUE(group_balances(&self->g));
}

TEST_F_TIMEOUT(fanout_life, device_removed, 180)
{
	device_goes(_metadata, self, if_b);
}

TEST_F_TIMEOUT(fanout_life, peer_removed, 180)
{
	device_goes(_metadata, self, if_a);
}

TEST_F_TIMEOUT(fanout_life, netns, 180)
{
	struct zc *f = &self->g.feed;
	pid_t ns;

	if (on_ports())
		SKIP(return, "not a device of the test");
	ns = other_netns();
	ASSERT_LE(0, ns);
	ASSERT_TRUE(flows(self, 50));
	ASSERT_EQ(0, run_ip("link set %s netns %d\n", if_b, ns));
	EXPECT_LE(0, zc_all_back(f, ENETDOWN, WAIT_MS));
	EXPECT_EQ(0, zc_get(f));
	stop_sender(_metadata, self);
	expect_all(_metadata, self);
	EXPECT_TRUE(group_balances(&self->g));
	kill(ns, SIGKILL);
	wait_for_exit(ns);
}

TEST_HARNESS_MAIN
