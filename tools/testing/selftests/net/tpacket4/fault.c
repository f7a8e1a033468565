// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4: setup with fault injection. Each call that sets up a socket, in
 * copy and in zero-copy mode, and then changes its device, is repeated with its
 * first allocation or user copy failing, then its second, and so on until it
 * succeeds without a fault; then with all allocations failing from one on.
 * Every failure must return a documented error and leave nothing behind.
 */
#include "fault.h"
#include "xdp.h"

#define FAIL_NTH	"/proc/thread-self/fail-nth"
#define MAKE_IT_FAIL	"/proc/thread-self/make-it-fail"
#define NR		4096		/* slots: too many for kmalloc() */
#define AREA_FRAMES	1024

struct ctx {
	char *area;
	int ifindex;
	int fd;
	void *map;
	size_t map_len;
	int inet;			/* for ioctl() */
	int prog;			/* XDP's */
	int link;			/* which attaches it to if_a, or -1 */
};

/* ---- the calls ---- */

static int do_memreg(struct ctx *c)
{
	return pv4_memreg(c->fd, c->area, AREA_FRAMES * 2048, 2048, 0);
}

static int do_version(struct ctx *c)
{
	return pv4_setint(c->fd, PACKET_VERSION, TPACKET_V4);
}

static int do_rx_ring(struct ctx *c)
{
	return pv4_set_ring(c->fd, PACKET_RX_RING, c->fd, NR);
}

static int do_tx_ring(struct ctx *c)
{
	return pv4_set_ring(c->fd, PACKET_TX_RING, c->fd, NR);
}

static int do_mmap(struct ctx *c)
{
	c->map = mmap(NULL, c->map_len, PROT_READ | PROT_WRITE, MAP_SHARED,
		      c->fd, 0);
	return c->map == MAP_FAILED ? -errno : 0;
}

static int do_bind(struct ctx *c)
{
	struct sockaddr_ll sll = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = c->ifindex,
	};

	/* not pv4_bind(): it asks the kernel for the index first */
	return bind(c->fd, (struct sockaddr *)&sll, sizeof(sll)) ? -errno : 0;
}

static int do_zerocopy(struct ctx *c)
{
	return pv4_setint(c->fd, PACKET_ZEROCOPY, 1);
}

static int do_copy(struct ctx *c)
{
	return pv4_setint(c->fd, PACKET_ZEROCOPY, 0);
}

static int do_kick(struct ctx *c)
{
	struct tpacket4_desc *tx = (struct tpacket4_desc *)c->map + NR;

	if (!desc_is_kernels(tx)) {
		*tx = (struct tpacket4_desc){ .idx = 3, .len = 1900 };
		__atomic_store_n(&tx->flags, TP4_DESC_KERNEL, __ATOMIC_RELEASE);
	}
	return sendto(c->fd, NULL, 0, 0, NULL, 0) < 0 ? -errno : 0;
}

static int do_remove_rx(struct ctx *c)
{
	return pv4_set_ring(c->fd, PACKET_RX_RING, -1, 0);
}

static int do_statistics(struct ctx *c)
{
	struct tpacket_stats_v4 st;

	return pv4_stats(c->fd, &st);
}

static int do_flags(struct ctx *c, int flags)
{
	struct ifreq ifr = { .ifr_flags = flags };

	memcpy(ifr.ifr_name, if_a, sizeof(if_a));
	return ioctl(c->inet, SIOCSIFFLAGS, &ifr) ? -errno : 0;
}

static int do_down(struct ctx *c)
{
	return do_flags(c, 0);
}

static int do_up(struct ctx *c)
{
	return do_flags(c, IFF_UP);
}

/* If only some of its queues come up, this must undo them. */
static int do_up_or_copy(struct ctx *c)
{
	int err = do_up(c);

	if (err)
		do_copy(c);
	return err;
}

static int do_gro(struct ctx *c, bool on)
{
	struct ethtool_value v = { .cmd = ETHTOOL_SGRO, .data = on };
	struct ifreq ifr = { .ifr_data = (void *)&v };

	memcpy(ifr.ifr_name, if_a, sizeof(if_a));
	return ioctl(c->inet, SIOCETHTOOL, &ifr) ? -errno : 0;
}

static int do_gro_on(struct ctx *c)
{
	return do_gro(c, true);
}

static int do_gro_off(struct ctx *c)
{
	return do_gro(c, false);
}

static int do_xdp(struct ctx *c)
{
	union bpf_attr attr = {
		.link_create.prog_fd = c->prog,
		.link_create.target_ifindex = c->ifindex,
		.link_create.attach_type = BPF_XDP,
		.link_create.flags = XDP_FLAGS_DRV_MODE,
	};

	c->link = bpf_call(BPF_LINK_CREATE, &attr);
	return c->link < 0 ? c->link : 0;
}

static int do_no_xdp(struct ctx *c)
{
	int err = close(c->link) ? -errno : 0;

	c->link = -1;
	return err;
}

struct step {
	int (*fn)(struct ctx *c);
	const char *name;
	/* The number of faults until it fails varies, because the kernel has
	 * reserves.
	 */
	enum { MAY_FAIL, COPIES, ALLOCATES } what;
};

/* bind() last, as in the paper, or first, as in the RFC's sample */
static const struct step after_bind[] = {
	{ do_memreg, "memreg", ALLOCATES },
	{ do_version, "version", COPIES },
	{ do_rx_ring, "rx ring", ALLOCATES },
	{ do_tx_ring, "tx ring", ALLOCATES },
	{ do_mmap, "mmap", ALLOCATES },
	{ do_bind, "bind", MAY_FAIL },
	{ do_kick, "kick", COPIES },
	{ do_zerocopy, "zero-copy", ALLOCATES },
	{ do_statistics, "statistics", COPIES },
	{ do_copy, "copy", COPIES },
	{ NULL },
};

static const struct step before_bind[] = {
	{ do_version, "version", COPIES },
	{ do_memreg, "memreg", ALLOCATES },
	{ do_zerocopy, "zero-copy", COPIES },
	{ do_tx_ring, "tx ring", ALLOCATES },
	{ do_rx_ring, "rx ring", ALLOCATES },
	{ do_mmap, "mmap", ALLOCATES },
	{ do_bind, "bind, zero-copy", ALLOCATES },
	{ do_copy, "copy", COPIES },
	{ do_zerocopy, "zero-copy again", ALLOCATES },
	{ do_copy, "copy again", COPIES },
	{ NULL },
};

static const struct step without_map[] = {
	{ do_version, "version", COPIES },
	{ do_memreg, "memreg", ALLOCATES },
	{ do_rx_ring, "rx ring", ALLOCATES },
	{ do_remove_rx, "no rx ring", COPIES },
	{ do_rx_ring, "rx ring again", ALLOCATES },
	{ NULL },
};

/* Its device has two queues. */
static const struct step device[] = {
	{ do_version, "version", COPIES },
	{ do_memreg, "memreg", ALLOCATES },
	{ do_rx_ring, "rx ring", ALLOCATES },
	{ do_bind, "bind", MAY_FAIL },
	{ do_zerocopy, "zero-copy, rx only", ALLOCATES },
	{ do_down, "down", COPIES },
	{ do_up, "up", ALLOCATES },
	{ do_gro_on, "GRO", COPIES },
	{ do_gro_off, "no GRO", COPIES },
	{ do_xdp, "XDP", ALLOCATES },
	{ do_down, "down with XDP", COPIES },
	{ do_up_or_copy, "up with XDP", ALLOCATES },
	{ do_no_xdp, "no XDP", MAY_FAIL },
	{ NULL },
};

/* One of two queue pairs, with nothing else of the device to be set up */
static const struct step pair[] = {
	{ do_version, "version", COPIES },
	{ do_memreg, "memreg", ALLOCATES },
	{ do_rx_ring, "rx ring", ALLOCATES },
	{ do_bind, "bind", MAY_FAIL },
	{ do_zerocopy, "zero-copy", ALLOCATES },
	{ do_copy, "copy", COPIES },
	{ NULL },
};

/* ---- faults ---- */

FIXTURE(fault) {
	struct zc other;		/* has the second queue, or no fd */
	int inet, prog;
	char *area;
	int ifindex;			/* of if_a */
	int nth;			/* FAIL_NTH, open */
	int make_it_fail;		/* MAKE_IT_FAIL, open */
};

FIXTURE_VARIANT(fault) {
	const struct step *steps;
	bool other;			/* has the second queue */
};

FIXTURE_VARIANT_ADD(fault, zerocopy_after_bind) { after_bind };

FIXTURE_VARIANT_ADD(fault, zerocopy_before_bind) { before_bind };

FIXTURE_VARIANT_ADD(fault, without_map) { without_map };

FIXTURE_VARIANT_ADD(fault, device) { device };

FIXTURE_VARIANT_ADD(fault, device_of_two) { device, .other = true };

FIXTURE_VARIANT_ADD(fault, pair_of_two) { pair, .other = true };

/* Allocations that may sleep fail too, and so does every size of them. */
static void allow_faults(void)
{
	no_faults();
	set_fault("fail*", "ignore-gfp-wait", "N");
	set_fault("fail*", "ignore-gfp-highmem", "N");
	set_fault("fail*", "min-order", "0");
	set_fault("fail*", "interval", "1");
	set_fault("fail*", "task-filter", "Y");
	set_fault("failslab", "cache-filter", "N");
	/* an injected failure is not logged */
	set_fault("fail*", "verbose", "0");
}

FIXTURE_SETUP(fault)
{
	const char *missing = faults_missing();

	self->other.s.fd = -1;
	self->nth = open(FAIL_NTH, O_RDWR);
	if (self->nth < 0)
		SKIP(return, "no " FAIL_NTH ": needs CONFIG_FAULT_INJECTION");
	/* while allocations fail, no file can be opened */
	self->make_it_fail = open(MAKE_IT_FAIL, O_WRONLY);
	ASSERT_LE(0, self->make_it_fail);
	if (missing)
		SKIP(return, "%s", missing);
	if (access(DEBUGFS "/fail_usercopy", F_OK))
		SKIP(return, "needs CONFIG_FAULT_INJECTION_USERCOPY");
	allow_faults();
	pv4_net_setup(_metadata);
	self->ifindex = if_nametoindex(if_a);
	ASSERT_LT(0, self->ifindex);
	self->area = pv4_new_area(AREA_FRAMES * 2048);
	ASSERT_TRUE(self->area != MAP_FAILED);
	self->inet = socket(AF_INET, SOCK_DGRAM, 0);
	ASSERT_LE(0, self->inet);
	if (variant->steps == device) {
		/* needed for its MTU */
		self->prog = xdp_const(XDP_PASS, BPF_F_XDP_HAS_FRAGS);
		ASSERT_LE(0, self->prog);
	}
	if (variant->steps == device || variant->steps == pair)
		ASSERT_EQ(0, two_channels());
	if (variant->other) {
		struct zc_cfg cfg = { .ifname = if_a, .n = 2 };

		ASSERT_EQ(0, zc_open(&self->other, &cfg));
	}
}

FIXTURE_TEARDOWN(fault)
{
	no_faults();
	zc_close(&self->other);
	close(self->make_it_fail);
	close(self->nth);
}

/* A socket on which the first @n steps have succeeded. */
static void prepare(struct __test_metadata *_metadata, struct ctx *c,
		    const struct step *steps, unsigned int n)
{
	unsigned int i;

	c->map = MAP_FAILED;
	c->link = -1;
	c->map_len = 2 * NR * sizeof(struct tpacket4_desc) + getpagesize();
	c->fd = socket(AF_PACKET, SOCK_RAW, 0);
	ASSERT_LE(0, c->fd);
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, steps[i].fn(c)) {
			TH_LOG("%s", steps[i].name);
		}
}

static void clean(struct ctx *c)
{
	if (c->map != MAP_FAILED)
		munmap(c->map, c->map_len);
	if (c->link >= 0)
		close(c->link);
	close(c->fd);
}

/* Returns whether an injected fault may cause this error. */
static bool error_is_documented(int err)
{
	return err == -ENOMEM || err == -ENOBUFS || err == -EFAULT;
}

/* Checks that the call succeeded, or that it failed with a documented error
 * after a fault and succeeds when repeated.
 */
static void check_step(struct __test_metadata *_metadata, struct ctx *c,
		       const struct step *step, int err, bool injected,
		       const char *what, unsigned int n)
{
	ASSERT_TRUE(!err || (injected && error_is_documented(err))) {
		TH_LOG("%s, %s %u: %s", step->name, what, n, strerror(-err));
	}
	if (err)
		ASSERT_EQ(0, step->fn(c)) {
			TH_LOG("%s, after %s %u", step->name, what, n);
		}
}

/* Packets go from one socket to another, in zero-copy mode on if_a. */
static void check_alive(struct __test_metadata *_metadata)
{
	struct zc_cfg cfg = { .ifname = if_a, .n = 1 };
	struct zc a, b;

	ASSERT_EQ(0, zc_open(&a, &cfg));
	cfg.ifname = if_b;
	cfg.n = 0;
	ASSERT_EQ(0, zc_open(&b, &cfg));
	pass_one_by_one(_metadata, &a, &b, 100, 300);
	zc_close(&a);
	zc_close(&b);
}

/* ---- fail the n-th allocation ---- */

static int arm(int nth, unsigned int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", n);

	return pwrite(nth, text, len, 0) == len ? 0 : -errno;
}

/* Returns whether the requested fault has been injected. */
static bool disarm(int nth)
{
	char text[16] = "";
	bool happened;

	happened = pread(nth, text, sizeof(text) - 1, 0) > 0 && !atoi(text);
	arm(nth, 0);
	return happened;
}

/* The next allocation to fail after the nth. On a card, the mode has hundreds, and
 * each try resets a queue pair: of the later ones, some are tried.
 */
static unsigned int next_nth(const struct step *steps, unsigned int n)
{
	return n + 1 + (steps == pair && pv4_fast() ? n / 16 : 0);
}

TEST_F_TIMEOUT(fault, fail_nth, 600)
{
	struct ctx c = {
		.area = self->area, .ifindex = self->ifindex,
		.inet = self->inet, .prog = self->prog,
	};
	const struct step *step;
	unsigned int n, failed;
	bool happened;
	int err;

	for (step = variant->steps; step->fn; step++) {
		for (n = 1, failed = 0, happened = true; happened;
		     n = next_nth(variant->steps, n)) {
			ASSERT_GT(1000U, n);
			prepare(_metadata, &c, variant->steps,
				step - variant->steps);
			ASSERT_EQ(0, arm(self->nth, n));
			err = step->fn(&c);
			happened = disarm(self->nth);
			failed += err < 0;
			check_step(_metadata, &c, step, err, happened,
				   "fault", n);
			clean(&c);
		}
		TH_LOG("%-16s %3u places to fail, %3u failures", step->name,
		       n - 2, failed);
		EXPECT_LE(step->what != MAY_FAIL, failed);
	}
	check_alive(_metadata);
}

/* ---- fail all allocations from the n-th on ---- */

static const struct kind {
	const char *name;
	unsigned int by;		/* of what its space counts */
} kinds[] = {
	/* bytes: less than any relevant object */
	{ "failslab", 32 },
	/* pages */
	{ "fail_page_alloc", 1 },
};

static int start_after(int make_it_fail, const char *kind, unsigned int space)
{
	set_number(kind, "space", space);
	set_number(kind, "times", MANY);
	set_number(kind, "probability", 100);
	return pwrite(make_it_fail, "1", 1, 0) == 1 ? 0 : -errno;
}

/* Stops fault injection; returns the number of faults, or -errno. */
static int stop(int make_it_fail, const char *kind)
{
	int faults;

	if (pwrite(make_it_fail, "0", 1, 0) != 1)
		return -errno;
	faults = faults_of(kind);
	no_faults();
	return faults;
}

/* Returns the next amount to allow; the short form skips amounts. */
static unsigned int more_than(unsigned int space, unsigned int by)
{
	unsigned int step = pv4_fast() ? space / 8 : 0;

	return space + (step > by ? step : by);
}

/* After a number of objects or pages, all allocations fail, including those of
 * the large tables that fall back to contiguous and then to single pages.
 */
TEST_F_TIMEOUT(fault, fail_from_nth, 900)
{
	unsigned int space, failed[ARRAY_SIZE(kinds)], k;
	struct ctx c = {
		.area = self->area, .ifindex = self->ifindex,
		.inet = self->inet, .prog = self->prog,
	};
	const struct step *step;
	int err, faults;

	for (step = variant->steps; step->fn; step++) {
		for (k = 0; k < ARRAY_SIZE(kinds); k++) {
			failed[k] = 0;
			for (space = 0, faults = 1; faults;
			     space = more_than(space, kinds[k].by)) {
				ASSERT_GT(1U << 20, space);
				prepare(_metadata, &c, variant->steps,
					step - variant->steps);
				ASSERT_EQ(0, start_after(self->make_it_fail,
							 kinds[k].name, space));
				err = step->fn(&c);
				faults = stop(self->make_it_fail,
					      kinds[k].name);
				ASSERT_LE(0, faults);
				failed[k] += err < 0;
				check_step(_metadata, &c, step, err, faults,
					   kinds[k].name, space);
				clean(&c);
			}
		}
		TH_LOG("%-16s %3u failures without objects, %3u without pages",
		       step->name, failed[0], failed[1]);
		EXPECT_LE(step->what == ALLOCATES, failed[0] + failed[1]);
	}
	check_alive(_metadata);
}

TEST_HARNESS_MAIN
