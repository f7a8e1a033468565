// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4, zero-copy mode: who may have the packets of a queue that feeds a
 * fanout group. They are gone for the stack, so CAP_NET_RAW is not enough.
 */
#include "process.h"
#include "zc_fanout.h"

#define PKTS	64

enum {
	RAW	= 1u << CAP_NET_RAW,
	ADMIN	= 1u << CAP_NET_ADMIN,
};

struct who {
	uid_t uid;
	unsigned int caps;
	bool ns;			/* in a user namespace of its own */
};

static const struct who root = { 0, RAW | ADMIN };
static const struct who other = { 65534, RAW };

/* Those that may try; the first ones are always trusted. */
#define NR_ADMINS	2
static const struct who those[] = {
	{ 0, RAW | ADMIN }, { 2000, RAW | ADMIN },
	{ 1000, RAW }, { 65534, RAW }, { 0, RAW },
	{ 1000, RAW, true }, { 65534, RAW, true }, { 0, RAW, true },
};

/* What to do, with the socket @fd of this process, or one of its own if @own */
struct act {
	struct group *g;
	int fd;
	bool own;
	int id;
	const struct sock_fprog *prog;
	int ebpf;			/* a program, or -1 */
	int n;				/* PACKET_ZEROCOPY */
};

FIXTURE(user) {
	struct group g;
	struct zc extra;		/* in copy mode, not yet a member */
	struct act a;
	int plain;			/* sends to if_b */
	struct sock_filter insns[1];
	struct sock_fprog prog;
};

FIXTURE_VARIANT(user) {
	struct who feeder;
	int type;
};

FIXTURE_VARIANT_ADD(user, root_lb) {
	.feeder = { 0, RAW | ADMIN }, .type = PACKET_FANOUT_LB,
};

FIXTURE_VARIANT_ADD(user, user_hash) {
	.feeder = { 1000, RAW | ADMIN }, .type = PACKET_FANOUT_HASH,
};

FIXTURE_VARIANT_ADD(user, root_cbpf) {
	.feeder = { 0, RAW | ADMIN }, .type = PACKET_FANOUT_CBPF,
};

FIXTURE_VARIANT_ADD(user, user_ebpf) {
	.feeder = { 1000, RAW | ADMIN }, .type = PACKET_FANOUT_EBPF,
};

FIXTURE_VARIANT_ADD(user, user_rollover) {
	.feeder = { 1000, RAW | ADMIN },
	.type = PACKET_FANOUT_LB | PACKET_FANOUT_FLAG_ROLLOVER,
};

/* Becomes another user, with these capabilities alone. */
static int become(const struct who *w)
{
	struct __user_cap_header_struct h = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct d[2] = {
		{ .effective = w->caps, .permitted = w->caps },
	};

	if (prctl(PR_SET_KEEPCAPS, 1) ||
	    setresgid(w->uid, w->uid, w->uid) ||
	    setresuid(w->uid, w->uid, w->uid) ||
	    syscall(SYS_capset, &h, d))
		return -errno;
	return 0;
}

static int do_act(const struct act *a)
{
	if (a->n)
		return pv4_setint(a->fd, PACKET_ZEROCOPY, a->n);
	if (a->prog)
		return pv4_setopt(a->fd, PACKET_FANOUT_DATA, a->prog,
				  sizeof(*a->prog));
	if (a->ebpf >= 0)
		return pv4_setopt(a->fd, PACKET_FANOUT_DATA, &a->ebpf,
				  sizeof(a->ebpf));
	return pv4_setint(a->fd, PACKET_FANOUT, a->g->type << 16 | a->id);
}

/* Does something in a process of somebody; 0 or -errno. */
static int as(const struct who *w, struct act a)
{
	struct zc_cfg cfg = { .ifname = if_b, .headroom = 64 };
	struct zc z;
	pid_t pid;
	int err;

	pid = pv4_fork();
	if (pid)
		return pid < 0 ? -ECHILD : -wait_for_exit(pid);
	err = become(w);
	if (!err && a.own) {
		err = zc_open(&z, &cfg);
		a.fd = z.s.fd;
	}
	if (!err && w->ns && unshare(CLONE_NEWUSER))
		err = -errno;
	_exit(-(err ? err : do_act(&a)));
}

static bool is_trusted(const struct who *w, const struct who *feeder)
{
	if (w->caps & ADMIN)
		return !w->ns;
	return w->uid && w->uid == feeder->uid && !w->ns;
}

static int feed(const struct _test_data_user *self, const struct who *w)
{
	struct act a = self->a;

	a.fd = self->g.feed.s.fd;
	a.n = 1;
	return as(w, a);
}

/* Opens a socket that has not joined yet. */
static int open_extra(struct _test_data_user *self)
{
	struct zc_cfg none = { };

	zc_close(&self->extra);
	self->g.part = NR_MEMBERS;
	return group_open(&self->g, &self->extra, &none);
}

FIXTURE_SETUP(user)
{
	struct zc_cfg none = { };

	pv4_net_setup(_metadata);
	self->extra.s.fd = -1;
	self->plain = plain_socket(_metadata, if_a, 0);
	self->insns[0] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 1);
	self->prog = (struct sock_fprog) { .len = 1, .filter = self->insns };
	group_init(&self->g, variant->type);
	ASSERT_EQ(0, group_open_all(&self->g));
	ASSERT_EQ(0, group_open(&self->g, &self->extra, &none));
	ASSERT_EQ(0, group_join(&self->g, self->g.feed.s.fd));
	self->a = (struct act) { .g = &self->g, .id = GROUP_ID, .ebpf = -1 };
}

FIXTURE_TEARDOWN(user)
{
	zc_close(&self->extra);
	group_close(&self->g);
	close(self->plain);
}

static unsigned int receive_all(struct zc *z, char *buf)
{
	unsigned int n = 0;

	while (zc_recv(z, buf, BUF_SIZE, 0) > 0)
		n++;
	return n;
}

/* The members get all packets of the queue. */
static void expect_members_only(struct __test_metadata *_metadata,
				struct _test_data_user *self)
{
	unsigned int i, k, n = 0;
	char buf[BUF_SIZE];
	__u64 end;

	for (i = 0; i < PKTS; i++) {
		fill_packet(buf, 60, i);
		ASSERT_EQ(60, send(self->plain, buf, 60, 0));
	}
	for (end = now_ms() + WAIT_MS; n < PKTS && now_ms() < end;)
		for (k = 0; k < NR_MEMBERS; k++)
			n += receive_all(&self->g.member[k], buf);
	EXPECT_EQ(PKTS, n);
	EXPECT_EQ(0U, receive_all(&self->extra, buf));
	EXPECT_EQ(0U, receive_all(&self->g.feed, buf));
}

/* By a socket of one's own, or by one that was passed and has not joined. */
TEST_F(user, join)
{
	unsigned int i;

	ASSERT_EQ(0, feed(self, &variant->feeder));
	for (i = 0; i < ARRAY_SIZE(those); i++) {
		const struct who *w = &those[i];
		int want = is_trusted(w, &variant->feeder) ? 0 : -EPERM;

		self->a.own = true;
		EXPECT_EQ(want, as(w, self->a)) {
			TH_LOG("uid %d, case %u", w->uid, i);
		}
		self->a.own = false;
		ASSERT_EQ(0, open_extra(self));
		self->a.fd = self->extra.s.fd;
		EXPECT_EQ(want, as(w, self->a)) {
			TH_LOG("uid %d, case %u, passed", w->uid, i);
		}
	}
	ASSERT_EQ(0, open_extra(self));
	expect_members_only(_metadata, self);
}

/* A group with another number is another one. */
TEST_F(user, other_group)
{
	ASSERT_EQ(0, feed(self, &variant->feeder));
	self->a.fd = self->extra.s.fd;
	self->a.id = GROUP_ID + 1;
	EXPECT_EQ(0, as(&other, self->a));
	/* It gets the packets that the device gives to the stack, and no others. */
	expect_members_only(_metadata, self);
}

/* A member may be passed on, but whoever has it does not choose. */
TEST_F(user, program)
{
	const struct bpf_insn insns[] = {
		MOV_K(BPF_REG_0, 1), EXIT,
	};
	unsigned int i;

	if (variant->type == PACKET_FANOUT_CBPF)
		self->a.prog = &self->prog;
	else if (variant->type == PACKET_FANOUT_EBPF)
		self->a.ebpf = bpf_load(BPF_PROG_TYPE_SOCKET_FILTER, insns,
					ARRAY_SIZE(insns), 0);
	else
		SKIP(return, "has no program");
	self->a.fd = self->g.member[0].s.fd;

	/* Who sets it before counts, too, even if he has left. */
	EXPECT_EQ(0, as(&other, self->a));
	EXPECT_EQ(-EPERM, feed(self, &variant->feeder));
	EXPECT_EQ(0, as(&root, self->a));
	ASSERT_EQ(0, feed(self, &variant->feeder));

	for (i = 0; i < ARRAY_SIZE(those); i++)
		EXPECT_EQ(is_trusted(&those[i], &variant->feeder) ? 0 : -EPERM,
			  as(&those[i], self->a)) {
			TH_LOG("uid %d, case %u", those[i].uid, i);
		}
	expect_members_only(_metadata, self);
}

/* A group with members of others does not get a feeder, also if they do not
 * receive anything for now.
 */
TEST_F(user, joined_before)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(those); i++) {
		bool trusted = is_trusted(&those[i], &variant->feeder);

		ASSERT_EQ(0, open_extra(self));
		self->a.fd = self->extra.s.fd;
		ASSERT_EQ(0, as(&those[i], self->a));
		EXPECT_EQ(trusted ? 0 : -EPERM, feed(self, &variant->feeder)) {
			TH_LOG("uid %d, case %u", those[i].uid, i);
		}
		if (trusted) {
			ASSERT_EQ(0, zc_set(&self->g.feed, 0));
			continue;
		}
		ASSERT_EQ(0, set_up(if_b, false));
		EXPECT_EQ(-EPERM, feed(self, &variant->feeder));
		ASSERT_EQ(0, set_up(if_b, true));
		ASSERT_EQ(0, wait_for_carrier(if_a));
	}
	ASSERT_EQ(0, open_extra(self));
	ASSERT_EQ(0, feed(self, &variant->feeder));
	expect_members_only(_metadata, self);
}

/* Another feeder needs the capability, as the first one does. */
TEST_F(user, second_feeder)
{
	unsigned int i;

	ASSERT_EQ(0, feed(self, &variant->feeder));
	ASSERT_EQ(0, group_join(&self->g, self->extra.s.fd));
	self->a.fd = self->extra.s.fd;
	self->a.n = 2;
	for (i = NR_ADMINS; i < ARRAY_SIZE(those); i++)
		EXPECT_EQ(-EPERM, as(&those[i], self->a));
	ASSERT_EQ(0, open_extra(self));
	expect_members_only(_metadata, self);
}

TEST_HARNESS_MAIN
