// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4: two ports that are suspended and resumed while a queue is in
 * zero-copy mode, and while none is
 *
 * The environment is that of zc_port. The kernel stops short of sleeping
 * (CONFIG_PM_DEBUG), so nothing has to wake the machine. TPACKET4_PM_TEST tells
 * where, see /sys/power/pm_test; "devices" is the default.
 */
#include "zc_load.h"
#include "zc_port.h"

#define SUSPEND_LEN	200

static const char pm_test[] = "/sys/power/pm_test";
/* seconds to wait in between */
static const char delay[] = "/sys/module/suspend/parameters/pm_test_delay";

/* Returns when the machine has resumed: 0, or -errno. */
static int suspend(void)
{
	return write_file("/sys/power/state", "freeze");
}

static int both_up(bool up)
{
	int err = port_up(if_a, up);

	err = err ? err : port_up(if_b, up);
	if (err || !up)
		return err;
	err = wait_for_carrier(if_a);
	return err ? err : wait_for_carrier(if_b);
}

/* Suspends the machine until it resumes, and waits for the link. */
#define SUSPEND() do {							\
	ASSERT_EQ(0, suspend()) {					\
		TH_LOG("is CONFIG_PM_SLEEP_DEBUG on?");			\
	}								\
	ASSERT_EQ(0, wait_for_carrier(if_a));				\
	ASSERT_EQ(0, wait_for_carrier(if_b));				\
} while (0)

FIXTURE(suspend) {
	struct zc a, b;
	int fd_a, fd_b;		/* the stack's ends */
	char *buf;
	char old_delay[16];
};

FIXTURE_SETUP(suspend)
{
	const char *level = getenv("TPACKET4_PM_TEST");
	int fd;

	self->a.s.fd = -1;
	self->b.s.fd = -1;
	if (access(pm_test, W_OK))
		SKIP(return, "no %s: CONFIG_PM_DEBUG is off", pm_test);
	ports(_metadata);
	self->fd_a = plain_listener(_metadata, if_a);
	self->fd_b = plain_listener(_metadata, if_b);
	self->buf = malloc(BUF_SIZE);
	ASSERT_TRUE(!!self->buf);
	/* last, as a failed setup is not torn down */
	ASSERT_EQ(0, write_file(pm_test, level ? level : "devices"));
	fd = open(delay, O_RDONLY);
	if (fd >= 0 &&
	    read(fd, self->old_delay, sizeof(self->old_delay) - 1) > 0)
		write_file(delay, "1");
	close(fd);
}

FIXTURE_TEARDOWN(suspend)
{
	write_file(pm_test, "none");
	write_file(delay, self->old_delay);
	zc_close(&self->a);
	zc_close(&self->b);
	close(self->fd_a);
	close(self->fd_b);
	free(self->buf);
}

static int open_both(struct _test_data_suspend *self)
{
	int err = open_loose(&self->a, if_a);

	return err ? err : open_loose(&self->b, if_b);
}

/* Packets in both directions, each in order, none lost */
static void pass_both_ways(struct __test_metadata *_metadata,
			   struct _test_data_suspend *self)
{
	unsigned int n = pv4_fast() ? 100 : 1000;

	pass_one_by_one(_metadata, &self->a, &self->b, SUSPEND_LEN, n);
	pass_one_by_one(_metadata, &self->b, &self->a, SUSPEND_LEN, n);
}

/* From one stack to the other */
static void pass_stack(struct __test_metadata *_metadata, int from, int to)
{
	unsigned int i;
	int len;

	while (plain_recv(to, NULL, 0, 0) >= 0)
		;
	for (i = 0; i < 100; i++) {
		char buf[SUSPEND_LEN];

		fill_packet(buf, sizeof(buf), i);
		ASSERT_EQ(SUSPEND_LEN, send(from, buf, sizeof(buf), 0));
		len = plain_recv(to, buf, sizeof(buf), WAIT_MS);
		ASSERT_TRUE(packet_ok(buf, len, SUSPEND_LEN, i)) {
			TH_LOG("packet %u: received %d", i, len);
		}
	}
}

/* Ends what is bound, and gets all frames back. */
static void end(struct __test_metadata *_metadata, struct zc *z)
{
	ASSERT_EQ(0, zc_set(z, 0));
	EXPECT_LE(0, zc_all_back(z, ECANCELED, WAIT_MS));
	EXPECT_TRUE(zc_books_closed(z));
}

TEST_F_TIMEOUT(suspend, idle, 300)
{
	int i;

	ASSERT_EQ(0, open_both(self));
	pass_both_ways(_metadata, self);
	for (i = 0; i < 2; i++) {
		SUSPEND();
		EXPECT_EQ(1, zc_get(&self->a));
		EXPECT_EQ(1, zc_get(&self->b));
		pass_both_ways(_metadata, self);
	}
	EXPECT_EQ(0U, self->b.rx_errors[ECANCELED] +
		      self->b.rx_errors[ENETDOWN]);
	end(_metadata, &self->a);
	end(_metadata, &self->b);
}

TEST_F_TIMEOUT(suspend, under_load, 300)
{
	struct pair p = {};
	int i;

	pair_open(_metadata, &p);
	start_load(_metadata, &p);
	ASSERT_TRUE(flows(&p));
	for (i = 0; i < 2; i++) {
		SUSPEND();
		ASSERT_EQ(1, zc_get(&p.b));
		ASSERT_TRUE(flows(&p));
	}
	stop_load(_metadata, &p);
	expect_intact(_metadata, &p);
	pair_close(&p);
}

TEST_F_TIMEOUT(suspend, down, 300)
{
	ASSERT_EQ(0, open_both(self));
	pass_both_ways(_metadata, self);
	ASSERT_EQ(0, both_up(false));
	ASSERT_EQ(0, suspend());
	ASSERT_EQ(0, both_up(true));
	EXPECT_EQ(1, zc_get(&self->b));
	pass_both_ways(_metadata, self);
	/* bound while it is down, which is what resume finds */
	end(_metadata, &self->b);
	zc_close(&self->b);
	ASSERT_EQ(0, both_up(false));
	ASSERT_EQ(0, open_loose(&self->b, if_b));
	ASSERT_EQ(0, suspend());
	ASSERT_EQ(0, both_up(true));
	pass_both_ways(_metadata, self);
	end(_metadata, &self->a);
	end(_metadata, &self->b);
}

TEST_F_TIMEOUT(suspend, copy_mode, 300)
{
	struct pv4_cfg cfg = { .ifname = if_b, .rx_nr = pv4_min_descs() };
	struct pv4 s;
	int i, k;

	cfg.proto = ETH_P_ALL;
	ASSERT_EQ(0, pv4_open(&s, &cfg));
	ASSERT_EQ(0, pv4_setint(s.fd, PACKET_IGNORE_OUTGOING, 1));
	for (i = 0; i < 2; i++) {
		for (k = 0; k < 100; k++) {
			fill_packet(self->buf, SUSPEND_LEN, k);
			ASSERT_EQ(SUSPEND_LEN, send(self->fd_a, self->buf,
						    SUSPEND_LEN, 0));
			ASSERT_EQ(SUSPEND_LEN, pv4_recv(&s, self->buf,
							BUF_SIZE, WAIT_MS));
			ASSERT_TRUE(packet_ok(self->buf, SUSPEND_LEN,
					      SUSPEND_LEN, k));
		}
		if (!i)
			SUSPEND();
	}
	pass_stack(_metadata, self->fd_b, self->fd_a);
	pv4_close(&s);
}

/* The mode is off while the machine is suspended. */
TEST_F_TIMEOUT(suspend, off, 300)
{
	ASSERT_EQ(0, open_both(self));
	pass_both_ways(_metadata, self);
	end(_metadata, &self->b);
	SUSPEND();
	ASSERT_EQ(0, zc_set(&self->b, 1));
	zc_refill(&self->b);
	pass_one_by_one(_metadata, &self->b, &self->a, SUSPEND_LEN, 100);
	pass_one_by_one(_metadata, &self->a, &self->b, SUSPEND_LEN, 100);
	end(_metadata, &self->a);
	end(_metadata, &self->b);
	SUSPEND();
	pass_stack(_metadata, self->fd_a, self->fd_b);
	pass_stack(_metadata, self->fd_b, self->fd_a);
}

/* One end is in zero-copy mode, the other one the stack's. */
TEST_F_TIMEOUT(suspend, one_end, 300)
{
	int i, k, len;

	ASSERT_EQ(0, open_loose(&self->a, if_a));
	for (i = 0; i < 2; i++) {
		while (plain_recv(self->fd_b, NULL, 0, 0) >= 0)
			;
		for (k = 0; k < 100; k++) {
			fill_packet(self->buf, SUSPEND_LEN, k);
			ASSERT_EQ(SUSPEND_LEN, send(self->fd_b, self->buf,
						    SUSPEND_LEN, 0));
			len = zc_recv(&self->a, self->buf, BUF_SIZE, WAIT_MS);
			ASSERT_TRUE(packet_ok(self->buf, len, SUSPEND_LEN, k));
			ASSERT_EQ(0, zc_send_seq(&self->a, SUSPEND_LEN, k));
			len = plain_recv(self->fd_b, self->buf, BUF_SIZE,
					 WAIT_MS);
			ASSERT_TRUE(packet_ok(self->buf, len, SUSPEND_LEN, k));
		}
		if (!i)
			SUSPEND();
	}
	EXPECT_TRUE(zc_reap_all(&self->a, WAIT_MS));
	end(_metadata, &self->a);
}

/* The sockets end right after resume, and the stack has the ports back. */
TEST_F_TIMEOUT(suspend, closed, 300)
{
	ASSERT_EQ(0, open_both(self));
	pass_both_ways(_metadata, self);
	ASSERT_EQ(0, suspend());
	zc_close(&self->a);
	zc_close(&self->b);
	self->a.s.fd = -1;
	self->b.s.fd = -1;
	SUSPEND();
	pass_stack(_metadata, self->fd_a, self->fd_b);
	pass_stack(_metadata, self->fd_b, self->fd_a);
}

TEST_HARNESS_MAIN
