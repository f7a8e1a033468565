// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4: set-up against itself. Threads change one socket in all ways
 * at once while packets come and go; then every allocation of the set-up is
 * made to fail, one after the other. The kernel's log tells about most
 * mistakes (use after free, lockdep, leaks); what can be seen from here is
 * that only documented errors come, and that all works as before afterwards.
 */
#include "tpacket4.h"

#include <glob.h>
#include <linux/filter.h>
#include <pthread.h>
#include <sys/mount.h>

#define AREA_FRAMES	512

/* ---- races ---- */

enum race_op {
	OP_RX_RING, OP_TX_RING, OP_VERSION, OP_BIND, OP_FANOUT, OP_MMAP,
	OP_KICK, OP_MEMREG, OP_POLL, OP_STATS, OP_REOPEN, OP_FILTER,
	NR_OPS
};

#define OP(op)	(1u << (op))

static const char * const op_names[NR_OPS] = {
	"rx ring", "tx ring", "version", "bind", "fanout", "mmap", "kick",
	"memreg", "poll", "statistics", "close", "filter",
};

struct race {
	int fd;				/* always this number */
	char *area;
	int stop;
	unsigned int done[NR_OPS], ok[NR_OPS];
	int unexpected[NR_OPS];		/* an errno nobody expects */
};

struct racer {
	struct race *r;
	pthread_t thread;
	unsigned int seed;
	unsigned int ops;		/* bit mask of enum race_op */
};

/* Descriptors good and bad, posted wherever the ring may be just now. */
static void scribble_ring(char *p, size_t len, unsigned int *seed)
{
	struct tpacket4_desc *d = (void *)p;
	unsigned int i;

	for (i = 0; i < len / sizeof(*d); i += 1 + rand_r(seed) % 4) {
		d[i].idx = rand_r(seed) % (AREA_FRAMES + 8);
		d[i].len = 60 + rand_r(seed) % 1000;
		d[i].offset = rand_r(seed) % 1000;
		__atomic_store_n(&d[i].flags, TP4_DESC_KERNEL |
				 (rand_r(seed) % 8 ? 0 : TP4_PKT_CONT),
				 __ATOMIC_RELEASE);
	}
}

static int race_mmap(struct race *r, unsigned int *seed)
{
	/* one of these may be the right length */
	size_t len = (1 + rand_r(seed) % 4) * getpagesize();
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd,
		       0);

	if (p == MAP_FAILED)
		return -errno;
	scribble_ring(p, len, seed);
	if (sendto(r->fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0)
		(void)errno;
	usleep(rand_r(seed) % 1000);
	munmap(p, len);
	return 0;
}

static int race_reopen(struct race *r)
{
	int fd = tp4_socket();

	if (fd < 0)
		return -errno;
	tp4_memreg(fd, r->area, AREA_FRAMES * 2048, 2048, 64);
	/* closes the old socket under the other threads' hands */
	dup2(fd, r->fd);
	close(fd);
	return 0;
}

static int race_step(struct race *r, enum race_op op, unsigned int *seed)
{
	struct sock_filter code[] = { BPF_STMT(BPF_RET | BPF_K, 1000) };
	struct sock_fprog prog = { .filter = code, .len = 1 };
	unsigned int nr = tp4_min_descs() << (rand_r(seed) % 2);
	static const char * const names[] = { if_a, if_b, "lo" };
	struct pollfd p = { .fd = r->fd, .events = POLLIN | POLLOUT };
	struct tpacket_stats_v4 st;
	socklen_t len = sizeof(st);
	int ring = op == OP_RX_RING ? PACKET_RX_RING : PACKET_TX_RING;

	switch (op) {
	case OP_RX_RING:
	case OP_TX_RING:
		return tp4_set_ring(r->fd, ring, r->fd,
				    rand_r(seed) % 3 ? nr : 0);
	case OP_VERSION:
		return tp4_setint(r->fd, PACKET_VERSION,
				  rand_r(seed) % 3 ? TPACKET_V4 :
				  rand_r(seed) % 3);
	case OP_BIND:
		return tp4_bind(r->fd, names[rand_r(seed) % 3],
				rand_r(seed) % 8 ? ETH_P_ALL : 0);
	case OP_FANOUT:
		return tp4_setint(r->fd, PACKET_FANOUT,
				  (rand_r(seed) % 3) << 16 | 42);
	case OP_MMAP:
		return race_mmap(r, seed);
	case OP_KICK:
		return sendto(r->fd, NULL, 0, rand_r(seed) % 4 ?
			      MSG_DONTWAIT : 0, NULL, 0) < 0 ? -errno : 0;
	case OP_MEMREG:
		return tp4_memreg(r->fd, r->area, AREA_FRAMES * 2048, 2048, 0);
	case OP_POLL:
		return poll(&p, 1, 1) < 0 ? -errno : 0;
	case OP_STATS:
		return getsockopt(r->fd, SOL_PACKET, PACKET_STATISTICS, &st,
				  &len) ? -errno : 0;
	case OP_REOPEN:
		return race_reopen(r);
	case OP_FILTER:
		return setsockopt(r->fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog,
				  sizeof(prog)) ? -errno : 0;
	default:
		return -EDOM;
	}
}

static bool error_is_expected(int err)
{
	switch (-err) {
	case 0:
	case EBUSY:		/* rings, fanout */
	case EINVAL:		/* version and ring do not match any more */
	case EALREADY:		/* fanout twice */
	case ENXIO:		/* not bound */
	case ENETDOWN:
	case ENOBUFS:
	case EAGAIN:
	case EINTR:
	case ENOSPC:		/* fanout group full */
	case EMSGSIZE:
		return true;
	default:
		return false;
	}
}

static void *racer_main(void *arg)
{
	struct racer *me = arg;
	struct race *r = me->r;

	while (!__atomic_load_n(&r->stop, __ATOMIC_RELAXED)) {
		enum race_op op = rand_r(&me->seed) % NR_OPS;
		int err;

		if (!(me->ops & OP(op)))
			continue;
		/* closing is rare, or nothing else gets anywhere */
		if (op == OP_REOPEN && rand_r(&me->seed) % 16)
			continue;
		err = race_step(r, op, &me->seed);
		r->done[op]++;
		r->ok[op] += !err;
		if (!error_is_expected(err))
			r->unexpected[op] = -err;
	}
	return NULL;
}

FIXTURE(race) {
	struct race r;
};

FIXTURE_VARIANT(race) {
	unsigned int ops[2];
	unsigned int ms;
};

#define RING_OPS	(OP(OP_RX_RING) | OP(OP_TX_RING) | OP(OP_MMAP))
#define DATA_OPS	(OP(OP_KICK) | OP(OP_POLL) | OP(OP_STATS))

FIXTURE_VARIANT_ADD(race, version) {
	{ RING_OPS | DATA_OPS | OP(OP_BIND), RING_OPS | OP(OP_VERSION) },
	2000,
};

FIXTURE_VARIANT_ADD(race, bind) {
	{ RING_OPS | DATA_OPS, RING_OPS | OP(OP_BIND) }, 2000,
};

FIXTURE_VARIANT_ADD(race, fanout) {
	{ RING_OPS | DATA_OPS | OP(OP_BIND) | OP(OP_REOPEN),
	  RING_OPS | OP(OP_FANOUT) | OP(OP_VERSION) }, 2000,
};

FIXTURE_VARIANT_ADD(race, close) {
	{ RING_OPS | DATA_OPS | OP(OP_BIND) | OP(OP_MEMREG),
	  RING_OPS | OP(OP_REOPEN) }, 2000,
};

FIXTURE_VARIANT_ADD(race, all) {
	{ OP(NR_OPS) - 1, OP(NR_OPS) - 1 }, 4000,
};

FIXTURE_SETUP(race)
{
	struct race *r = &self->r;

	tp4_net_setup(_metadata);
	r->area = tp4_new_area(AREA_FRAMES * 2048);
	ASSERT_TRUE(r->area != MAP_FAILED);
	r->fd = tp4_socket();
	ASSERT_LE(0, r->fd);
	ASSERT_EQ(0, tp4_memreg(r->fd, r->area, AREA_FRAMES * 2048, 2048, 64));
	ASSERT_EQ(0, tp4_bind(r->fd, if_b, ETH_P_ALL));
}

FIXTURE_TEARDOWN(race)
{
	close(self->r.fd);
}

/* A socket of its own still does what it should. */
static void check_alive(struct __test_metadata *_metadata, char *area)
{
	struct tp4_cfg rcfg = {
		.ifname = if_b, .rx_nr = tp4_min_descs(), .area = area,
	};
	struct tp4_cfg tcfg = { .ifname = if_a, .tx_nr = tp4_min_descs() };
	struct tp4 rx, tx;
	char buf[100];
	int len;

	ASSERT_EQ(0, tp4_open(&rx, &rcfg));
	ASSERT_EQ(0, tp4_open(&tx, &tcfg));
	fill_packet(buf, sizeof(buf), 1);
	ASSERT_EQ(0, tp4_put(&tx, buf, sizeof(buf), 2048, 0));
	ASSERT_EQ(100, tp4_kick(&tx, 0));
	do {
		len = tp4_recv(&rx, buf, sizeof(buf), WAIT_MS);
	} while (len > 0 && !packet_ok(buf, len, 100, 1));
	EXPECT_EQ(100, len);
	EXPECT_TRUE(tp4_reap_all(&tx, WAIT_MS));
	close(rx.fd);
	close(tx.fd);
}

/* Whether all has succeeded once: what never got through raced with nothing. */
static bool raced(struct race *r, unsigned int ops)
{
	int i;

	/* the area is registered all the time */
	ops &= ~OP(OP_MEMREG);
	for (i = 0; i < NR_OPS; i++)
		if (ops & OP(i) && !__atomic_load_n(&r->ok[i],
						    __ATOMIC_RELAXED))
			return false;
	return true;
}

TEST_F_TIMEOUT(race, threads, 120)
{
	unsigned int ops = variant->ops[0] | variant->ops[1];
	struct race *r = &self->r;
	struct racer t[2];
	char pkt[1500];
	uint64_t end;
	int i, plain;

	for (i = 0; i < 2; i++) {
		t[i] = (struct racer) {
			.r = r, .seed = 17 + i, .ops = variant->ops[i],
		};
		ASSERT_EQ(0, pthread_create(&t[i].thread, NULL, racer_main,
					    &t[i]));
	}
	/* this thread sends to the socket, wherever it is bound just now */
	plain = plain_socket(_metadata, if_a, 0);
	fill_packet(pkt, sizeof(pkt), 0);
	/* longer where the machine is too slow for all to have had its turn */
	end = now_ms() + variant->ms;
	while (now_ms() < end || (!raced(r, ops) && now_ms() < end + 60000)) {
		for (i = 0; i < 16; i++)
			send(plain, pkt, 60 + i * 90, MSG_DONTWAIT);
		usleep(200);
	}
	__atomic_store_n(&r->stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_join(t[i].thread, NULL));
	close(plain);
	for (i = 0; i < NR_OPS; i++) {
		if (!(ops & OP(i)))
			continue;
		TH_LOG("%-10s %7u times, %7u succeeded", op_names[i],
		       r->done[i], r->ok[i]);
		EXPECT_EQ(0, r->unexpected[i]) {
			TH_LOG("%s: %s", op_names[i],
			       strerror(r->unexpected[i]));
		}
	}
	EXPECT_TRUE(raced(r, ops));
	close(r->fd);
	r->fd = -1;
	check_alive(_metadata, r->area);
}

/* ---- failing allocations ---- */

#define FAIL_NTH	"/proc/thread-self/fail-nth"

FIXTURE(fail) {
	char *area;
	int nth;			/* FAIL_NTH, open */
};

/* Lets allocations that may sleep fail too. */
static void allow_faults(void)
{
	static const char * const files[][2] = {
		{ "fail*/ignore-gfp-wait", "N" },
		{ "fail*/ignore-gfp-highmem", "N" },
		{ "fail*/min-order", "0" },
		{ "failslab/cache-filter", "N" },
		/* a failure that was asked for is no news for the log */
		{ "fail*/verbose", "0" },
	};
	char pattern[128];
	glob_t paths;
	size_t i, k;

	if (access("/sys/kernel/debug/failslab", F_OK))
		mount("none", "/sys/kernel/debug", "debugfs", 0, NULL);
	for (i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(pattern, sizeof(pattern), "/sys/kernel/debug/%s",
			 files[i][0]);
		if (glob(pattern, 0, NULL, &paths))
			continue;
		for (k = 0; k < paths.gl_pathc; k++)
			write_file(paths.gl_pathv[k], files[i][1]);
		globfree(&paths);
	}
}

FIXTURE_SETUP(fail)
{
	self->nth = open(FAIL_NTH, O_RDWR);
	if (self->nth < 0)
		SKIP(return, "no " FAIL_NTH ": needs CONFIG_FAULT_INJECTION");
	allow_faults();
	tp4_net_setup(_metadata);
	self->area = tp4_new_area(AREA_FRAMES * 2048);
	ASSERT_TRUE(self->area != MAP_FAILED);
}

FIXTURE_TEARDOWN(fail)
{
	close(self->nth);
}

static int arm(int nth, unsigned int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", n);

	return pwrite(nth, text, len, 0) == len ? 0 : -errno;
}

/* True if the failure that was asked for has happened. */
static bool disarm(int nth)
{
	char text[16] = "";
	bool happened;

	happened = pread(nth, text, sizeof(text) - 1, 0) > 0 && !atoi(text);
	arm(nth, 0);
	return happened;
}

struct fail_ctx {
	char *area;
	int fd;
	void *map;
};

static int fail_memreg(struct fail_ctx *c)
{
	return tp4_memreg(c->fd, c->area, AREA_FRAMES * 2048, 2048, 0);
}

static int fail_rx_ring(struct fail_ctx *c)
{
	return tp4_set_ring(c->fd, PACKET_RX_RING, c->fd, 4096);
}

static int fail_tx_ring(struct fail_ctx *c)
{
	return tp4_set_ring(c->fd, PACKET_TX_RING, c->fd, 4096);
}

static int fail_mmap(struct fail_ctx *c)
{
	c->map = mmap(NULL, 8192 * sizeof(struct tpacket4_desc),
		      PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, 0);
	return c->map == MAP_FAILED ? -errno : 0;
}

static int fail_bind(struct fail_ctx *c)
{
	return tp4_bind(c->fd, if_a, ETH_P_ALL);
}

static int fail_kick(struct fail_ctx *c)
{
	struct tpacket4_desc *tx = (struct tpacket4_desc *)c->map + 4096;

	tx->idx = 3;
	tx->len = 1500;
	tx->flags = TP4_DESC_KERNEL;
	return sendto(c->fd, NULL, 0, 0, NULL, 0) < 0 ? -errno : 0;
}

static const struct fail_step {
	int (*fn)(struct fail_ctx *c);
	const char *name;
	unsigned int least;		/* failures that must be seen */
} fail_steps[] = {
	{ fail_memreg, "memreg", 2 },
	{ fail_rx_ring, "rx ring", 1 },
	{ fail_tx_ring, "tx ring", 1 },
	{ fail_mmap, "mmap", 1 },
	{ fail_bind, "bind", 0 },
	{ fail_kick, "kick", 1 },
};

/* A socket on which the first @n steps have succeeded. */
static void fail_prepare(struct __test_metadata *_metadata, struct fail_ctx *c,
			 unsigned int n)
{
	unsigned int i;

	c->map = MAP_FAILED;
	c->fd = tp4_socket();
	ASSERT_LE(0, c->fd);
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, fail_steps[i].fn(c));
}

static void fail_clean(struct fail_ctx *c)
{
	if (c->map != MAP_FAILED)
		munmap(c->map, 8192 * sizeof(struct tpacket4_desc));
	close(c->fd);
}

/* Each step with its first allocation failing, its second, ... until it needs
 * no more. After a failure the same step must succeed: nothing is left behind.
 */
TEST_F_TIMEOUT(fail, each_allocation, 120)
{
	struct fail_ctx c = { .area = self->area };
	unsigned int i, n, failed;
	bool happened;
	int err;

	for (i = 0; i < ARRAY_SIZE(fail_steps); i++) {
		const struct fail_step *step = &fail_steps[i];

		for (n = 1, failed = 0, happened = true; happened; n++) {
			ASSERT_GT(1000U, n);
			fail_prepare(_metadata, &c, i);
			ASSERT_EQ(0, arm(self->nth, n));
			err = step->fn(&c);
			happened = disarm(self->nth);
			failed += err < 0;
			ASSERT_TRUE(!err || (happened &&
					     (err == -ENOMEM ||
					      err == -ENOBUFS ||
					      err == -EFAULT))) {
				TH_LOG("%s, allocation %u: %s", step->name, n,
				       strerror(-err));
			}
			if (err)
				ASSERT_EQ(0, step->fn(&c));
			fail_clean(&c);
		}
		TH_LOG("%-8s %u allocations, %u failures", step->name, n - 2,
		       failed);
		EXPECT_LE(step->least, failed);
	}
	check_alive(_metadata, self->area);
}

TEST_HARNESS_MAIN
