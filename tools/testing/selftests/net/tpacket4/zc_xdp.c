// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4, zero-copy mode: XDP programs at the receiver. Every verdict in
 * zero-copy and in copy mode: where the packet is received and where not, its
 * content, and the counters.
 */
#include "fault.h"
#include "zc_stopped.h"
#include "zc_xdp_fixture.h"

#define PKTS		12	/* of each key */

FIXTURE_VARIANT_ADD(xdp, plain_to_copy) { .frags = false };

FIXTURE_VARIANT_ADD(xdp, generic_to_copy) { .generic = true };

FIXTURE_VARIANT_ADD(xdp, zc_to_copy) { .zc_tx = true };

FIXTURE_VARIANT_ADD(xdp, plain_to_zc) { .zc_rx = true };

FIXTURE_VARIANT_ADD(xdp, zc_to_zc) { .zc_tx = true, .zc_rx = true };

FIXTURE_VARIANT_ADD(xdp, frags_plain_to_copy) { .frags = true };

FIXTURE_VARIANT_ADD(xdp, frags_zc_to_zc) {
	.zc_tx = true, .zc_rx = true, .frags = true,
};

FIXTURE_VARIANT_ADD(xdp, plain_to_both) { .zc_rx = true, .to_stack = true };

FIXTURE_VARIANT_ADD(xdp, frags_zc_to_both) {
	.zc_tx = true, .zc_rx = true, .to_stack = true, .frags = true,
};

static unsigned int pkt_size(bool frags, uint32_t n)
{
	static const unsigned int size[] = {
		60, 64, 1514, 1000, 61, 300, 129, 1400,
		1792, 1793, 2048, 9000, 4096, 3585, 8191, MAX_PKT,
	};

	return size[n % (frags ? 16 : 8)];
}

/* As send_it(), but what a ring has waits for kick_a(). */
static int put_it(struct _test_data_xdp *self, unsigned int len, uint32_t seq)
{
	if (self->a.s.fd >= 0)
		return zc_put_seq(&self->a, len, seq);
	return send_it(self, len, seq);
}

static int kick_a(struct _test_data_xdp *self)
{
	return self->a.s.fd >= 0 ? zc_kick(&self->a) : 0;
}

enum place { RING, STACK, SENDER, OTHER, NOWHERE };

/* Every packet with this key is received here, unmodified and in order. */
static void expect_at(struct __test_metadata *_metadata,
		      struct _test_data_xdp *self, enum place place,
		      unsigned int key, bool frags)
{
	uint32_t i, seq;
	int len;

	for (i = 0; i < PKTS; i++) {
		switch (place) {
		case RING:
			len = recv_ring(self, WAIT_MS);
			break;
		case STACK:
			len = plain_recv(self->plain_b, self->buf, BUF_SIZE,
					 WAIT_MS);
			break;
		case SENDER:
			len = recv_a(self, WAIT_MS);
			break;
		case OTHER:
			len = plain_recv(self->plain_d, self->buf, BUF_SIZE,
					 WAIT_MS);
			break;
		default:
			return;
		}
		seq = key_seq(key, i);
		ASSERT_TRUE(packet_ok(self->buf, len, pkt_size(frags, i),
				      seq)) {
			TH_LOG("key %u, packet %u of %u bytes: %d at %u", key,
			       i, pkt_size(frags, i), len, place);
		}
	}
}

static void expect_silence(struct __test_metadata *_metadata,
			   struct _test_data_xdp *self)
{
	EXPECT_EQ(-EAGAIN, recv_ring(self, QUIET_MS / 4));
	EXPECT_EQ(-EAGAIN, recv_a(self, 0));
	EXPECT_EQ(-EAGAIN, plain_recv(self->plain_a, self->buf, BUF_SIZE, 0));
	EXPECT_EQ(-EAGAIN, plain_recv(self->plain_b, self->buf, BUF_SIZE, 0));
	EXPECT_EQ(-EAGAIN, plain_recv(self->plain_d, self->buf, BUF_SIZE, 0));
}

static void drain_plain(struct _test_data_xdp *self)
{
	const int fd[] = { self->plain_a, self->plain_b, self->plain_d };
	int i;

	for (i = 0; i < 3; i++)
		while (recv(fd[i], self->buf, BUF_SIZE, MSG_DONTWAIT) > 0)
			;
}

struct action {
	__u32 action;
	enum place copy, zc;	/* where a packet goes */
};

static const struct action actions[NR_KEYS] = {
	{ XDP_PASS, RING, RING },
	{ XDP_DROP, NOWHERE, NOWHERE },
	{ XDP_ABORTED, NOWHERE, NOWHERE },
	{ XDP_TX, SENDER, SENDER },
	{ XDP_REDIRECT, OTHER, OTHER },
	{ XDP_PASS_TO_KERNEL, RING, STACK },
	{ 77, NOWHERE, NOWHERE },
	{ XDP_PASS, RING, RING },
};

/* Does the stack get what this action gives the ring? Copy mode is a tap. */
static bool also_at_stack(const struct _fixture_variant_xdp *variant,
			  const struct action *act)
{
	if (!variant->zc_rx)
		return act->copy == RING;
	return variant->to_stack && act->zc == RING;
}

/* One action after the other. */
TEST_F_TIMEOUT(xdp, every_action, 120)
{
	__s64 drops, sent_back, redirected, packets;
	bool zc = variant->zc_rx;
	struct tpacket_stats_v4 st;
	unsigned int key, i;

	for (key = 0; key < NR_KEYS; key++) {
		const struct action *act = &actions[key];

		ASSERT_EQ(0, xdp_set_action(&self->x, key, act->action));
		drops = ethtool_stat(if_b, "rx_queue_0_xdp_drops");
		sent_back = ethtool_stat(if_b, "rx_queue_0_xdp_tx");
		redirected = ethtool_stat(if_b, "rx_queue_0_xdp_redirect");
		packets = ethtool_stat(if_b, "rx_queue_0_xdp_packets");
		ASSERT_LE(0, packets);
		for (i = 0; i < PKTS; i++)
			ASSERT_EQ(0, send_it(self, pkt_size(variant->frags, i),
					     key_seq(key, i)));
		expect_at(_metadata, self, zc ? act->zc : act->copy, key,
			  variant->frags);
		if (also_at_stack(variant, act))
			expect_at(_metadata, self, STACK, key, variant->frags);
		expect_silence(_metadata, self);
		expect_books(_metadata, self);
		EXPECT_EQ(PKTS, bpf_get(self->x.counts, key));
		/* the driver counts what its own program does */
		if (!variant->generic) {
			packets += PKTS;
			drops += act->zc == NOWHERE ? PKTS : 0;
			sent_back += act->action == XDP_TX ? PKTS : 0;
			redirected += act->action == XDP_REDIRECT ? PKTS : 0;
		}
		EXPECT_EQ(packets,
			  ethtool_stat(if_b, "rx_queue_0_xdp_packets"));
		EXPECT_EQ(drops, ethtool_stat(if_b, "rx_queue_0_xdp_drops"));
		EXPECT_EQ(sent_back,
			  ethtool_stat(if_b, "rx_queue_0_xdp_tx"));
		EXPECT_EQ(redirected,
			  ethtool_stat(if_b, "rx_queue_0_xdp_redirect"));
		/* a drop by the program is not a drop of the socket */
		ASSERT_EQ(0, pv4_stats(self->rx.s.fd, &st));
		EXPECT_EQ((zc ? act->zc : act->copy) == RING ? PKTS : 0,
			  (int)st.tp_packets);
		EXPECT_EQ(0U, st.tp_drops);
		if (_metadata->exit_code)
			TH_LOG("that was action %u", act->action);
	}
}

/* The stack gets the packets of both keys, each key's in order. */
static void expect_two_at_stack(struct __test_metadata *_metadata,
				struct _test_data_xdp *self, bool frags,
				unsigned int a, unsigned int b)
{
	uint32_t i, seq, next[NR_KEYS] = {};
	unsigned int key;
	int len;

	for (i = 0; i < 2 * PKTS; i++) {
		len = plain_recv(self->plain_b, self->buf, BUF_SIZE, WAIT_MS);
		ASSERT_LT(ETH_HLEN, len);
		key = ntohl(packet_seq(self->buf)) >> 24;
		ASSERT_TRUE(key == a || key == b);
		seq = next[key]++;
		ASSERT_TRUE(packet_ok(self->buf, len, pkt_size(frags, seq),
				      key_seq(key, seq)));
	}
	EXPECT_EQ(PKTS, next[a]);
	EXPECT_EQ(PKTS, next[b]);
}

/* All of them in one burst: one flush has every verdict. */
TEST_F_TIMEOUT(xdp, mixed_actions, 120)
{
	unsigned int key, i;

	for (key = 0; key < NR_KEYS; key++)
		ASSERT_EQ(0, xdp_set_action(&self->x, key, XDP_DROP));
	ASSERT_EQ(0, xdp_set_action(&self->x, 0, XDP_PASS));
	ASSERT_EQ(0, xdp_set_action(&self->x, 3, XDP_TX));
	ASSERT_EQ(0, xdp_set_action(&self->x, 4, XDP_REDIRECT));
	ASSERT_EQ(0, xdp_set_action(&self->x, 5, XDP_PASS_TO_KERNEL));
	for (i = 0; i < PKTS; i++)
		for (key = 0; key < NR_KEYS; key++)
			ASSERT_EQ(0, put_it(self, pkt_size(variant->frags, i),
					    key_seq(key, i)));
	ASSERT_EQ(0, kick_a(self));
	if (!variant->zc_rx) {
		/* in copy mode two keys are passed, in turns */
		for (i = 0; i < 2 * PKTS; i++) {
			uint32_t seq = key_seq(i & 1 ? 5 : 0, i / 2);
			unsigned int n = pkt_size(variant->frags, i / 2);

			ASSERT_TRUE(packet_ok(self->buf,
					      recv_ring(self, WAIT_MS), n,
					      seq));
			ASSERT_TRUE(packet_ok(self->buf,
					      plain_recv(self->plain_b,
							 self->buf, BUF_SIZE,
							 WAIT_MS), n, seq));
		}
	} else {
		expect_at(_metadata, self, RING, 0, variant->frags);
		if (variant->to_stack)
			expect_two_at_stack(_metadata, self, variant->frags, 0,
					    5);
		else
			expect_at(_metadata, self, STACK, 5, variant->frags);
	}
	expect_at(_metadata, self, SENDER, 3, variant->frags);
	expect_at(_metadata, self, OTHER, 4, variant->frags);
	expect_silence(_metadata, self);
	expect_books(_metadata, self);
	for (key = 0; key < NR_KEYS; key++)
		EXPECT_EQ(PKTS, bpf_get(self->x.counts, key));
}

/* Without a program: the stack gets what the ring gets where it is a tap. */
TEST_F(xdp, no_program)
{
	unsigned int i;

	ASSERT_EQ(0, attach_b(variant, -1));
	for (i = 0; i < PKTS; i++)
		ASSERT_EQ(0, put_it(self, pkt_size(variant->frags, i),
				    key_seq(0, i)));
	ASSERT_EQ(0, kick_a(self));
	expect_at(_metadata, self, RING, 0, variant->frags);
	if (also_at_stack(variant, &actions[0]))
		expect_at(_metadata, self, STACK, 0, variant->frags);
	expect_silence(_metadata, self);
	expect_books(_metadata, self);
}

/* In one burst, more than the driver has skbs for */
TEST_F(xdp, burst_to_stack)
{
	unsigned int i, n = 200;
	int k, len;

	if (!variant->to_stack)
		SKIP(return, "needs TP4_RING_TO_STACK");
	for (k = 0; k < 2; k++) {
		ASSERT_EQ(0, attach_b(variant, k ? -1 : self->x.prog));
		for (i = 0; i < n; i++)
			ASSERT_EQ(0, put_it(self, 100, key_seq(0, i)));
		ASSERT_EQ(0, kick_a(self));
		for (i = 0; i < n; i++) {
			ASSERT_TRUE(packet_ok(self->buf,
					      recv_ring(self, WAIT_MS), 100,
					      key_seq(0, i)));
			len = plain_recv(self->plain_b, self->buf, BUF_SIZE,
					 WAIT_MS);
			ASSERT_TRUE(packet_ok(self->buf, len, 100,
					      key_seq(0, i)));
		}
		expect_silence(_metadata, self);
		expect_books(_metadata, self);
	}
}

/* Nothing that the host needs waits for a program: by TP4_RING_TO_STACK, or by
 * TP4_RING_KEEP for what the program passes.
 */
TEST_F_TIMEOUT(xdp, stopped, 120)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1, .keep = true };
	unsigned int n = pv4_fast() ? 500 : 5000;

	if (!variant->zc_rx)
		SKIP(return, "the stack does not depend on the program");
	if (!variant->to_stack) {
		zc_close(&self->rx);
		ASSERT_EQ(0, zc_open(&self->rx, &cfg));
	}
	ASSERT_EQ(0, xdp_set_action(&self->x, STOPPED_STACK,
				    XDP_PASS_TO_KERNEL));
	pass_stopped(_metadata, &self->rx, self->plain_a, self->plain_b, n,
		     variant->to_stack);
	expect_books(_metadata, self);
}

/* From the first packet on */
TEST_F_TIMEOUT(xdp, not_started, 120)
{
	struct zc_cfg cfg = {
		.ifname = if_b, .n = 1, .to_stack = variant->to_stack,
		.keep = !variant->to_stack, .rx_empty = true,
	};
	unsigned int n = pv4_fast() ? 500 : 10000;

	if (!variant->zc_rx)
		SKIP(return, "the stack does not depend on the program");
	zc_close(&self->rx);
	ASSERT_EQ(0, zc_open(&self->rx, &cfg));
	ASSERT_EQ(0, xdp_set_action(&self->x, STOPPED_STACK,
				    XDP_PASS_TO_KERNEL));
	pass_dry(_metadata, &self->rx, self->plain_a, self->plain_b, n,
		 variant->to_stack, true);
}

/* A host whose filter is a generic program keeps it, or its packets. */
TEST(generic_program_is_not_bypassed)
{
	struct zc_cfg cfg = { .ifname = if_b, .n = 1 };
	struct zc z;
	int prog;

	pv4_net_setup(_metadata);
	prog = xdp_const(XDP_PASS, BPF_F_XDP_HAS_FRAGS);
	ASSERT_LE(0, prog);
	ASSERT_EQ(0, xdp_attach(if_b, prog, XDP_FLAGS_SKB_MODE));
	EXPECT_EQ(-EBUSY, zc_open(&z, &cfg));
	zc_close(&z);

	/* It sees what the stack gets. */
	cfg.to_stack = true;
	EXPECT_EQ(0, zc_open(&z, &cfg));
	EXPECT_EQ(0, xdp_attach(if_b, -1, XDP_FLAGS_SKB_MODE));
	EXPECT_EQ(0, xdp_attach(if_b, prog, XDP_FLAGS_SKB_MODE));
	EXPECT_EQ(0, xdp_attach(if_b, -1, XDP_FLAGS_SKB_MODE));
	zc_close(&z);

	cfg.to_stack = false;
	ASSERT_EQ(0, zc_open(&z, &cfg));
	EXPECT_EQ(-EBUSY, xdp_attach(if_b, prog, XDP_FLAGS_SKB_MODE));
	EXPECT_EQ(0, xdp_attach_native(if_b, prog));
	EXPECT_EQ(0, xdp_attach_native(if_b, -1));
	zc_close(&z);
	EXPECT_EQ(0, xdp_attach(if_b, prog, XDP_FLAGS_SKB_MODE));
	close(prog);
}

/* A tag is in the ring's packet, and is what the stack finds the VLAN by. */
TEST_F(xdp, vlan_to_stack)
{
	int fd, len, tagged;
	unsigned int i;

	if (!variant->to_stack)
		SKIP(return, "needs TP4_RING_TO_STACK");
	ASSERT_EQ(0, attach_b(variant, -1));
	ASSERT_EQ(0, run_ip("link add link %s name v4vlan type vlan id 7\n"
			    "link set v4vlan up\n", if_b));
	fd = plain_listener(_metadata, "v4vlan");
	for (i = 0; i < PKTS; i++) {
		len = pkt_size(variant->frags, i) - 4;
		fill_packet(self->buf, len, i);
		tagged = add_tag(self->buf, len, ETH_P_8021Q, 7);
		if (self->a.s.fd >= 0) {
			zc_reap(&self->a);
			ASSERT_EQ(0, zc_put(&self->a, self->buf, tagged, 2048,
					    0));
			ASSERT_EQ(0, zc_kick(&self->a));
		} else {
			ASSERT_EQ(tagged, send(self->plain_a, self->buf,
					       tagged, 0));
		}
		ASSERT_EQ(tagged, recv_ring(self, WAIT_MS));
		/* behind the tag it is the same packet */
		memmove(self->buf + 4, self->buf, 2 * ETH_ALEN);
		ASSERT_TRUE(packet_ok(self->buf + 4, tagged - 4, len, i));
		ASSERT_TRUE(packet_ok(self->buf,
				      plain_recv(fd, self->buf, BUF_SIZE,
						 WAIT_MS), len, i));
	}
	drain_plain(self);
	expect_silence(_metadata, self);
	expect_books(_metadata, self);
	close(fd);
}

/* In one burst, more than the driver sends at a time */
TEST_F(xdp, burst_xdp_tx)
{
	unsigned int i, n = 60;

	ASSERT_EQ(0, xdp_set_action(&self->x, 3, XDP_TX));
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, put_it(self, 100, key_seq(3, i)));
	ASSERT_EQ(0, kick_a(self));
	for (i = 0; i < n; i++)
		ASSERT_TRUE(packet_ok(self->buf, recv_a(self, WAIT_MS), 100,
				      key_seq(3, i)));
	expect_silence(_metadata, self);
	expect_books(_metadata, self);
}

#define CUT		300	/* more than the most metadata */
#define META_MAX	252

/* Sends back what is behind the first CUT bytes, with much metadata. Where the
 * packet is copied for that, the copy has room for both.
 */
static int send_back_cut(int flags)
{
	struct bpf_insn prog[] = {
		MOV_X(BPF_REG_6, BPF_REG_1),
		MOV_K(BPF_REG_2, CUT),
		CALL(BPF_FUNC_xdp_adjust_head),
		JMP_K(BPF_JNE, BPF_REG_0, 0, 6),
		MOV_X(BPF_REG_1, BPF_REG_6),
		MOV_K(BPF_REG_2, -META_MAX),
		CALL(BPF_FUNC_xdp_adjust_meta),
		JMP_K(BPF_JNE, BPF_REG_0, 0, 2),
		MOV_K(BPF_REG_0, XDP_TX),
		EXIT,
		MOV_K(BPF_REG_0, XDP_DROP),
		EXIT,
	};

	return xdp_load(prog, ARRAY_SIZE(prog), flags);
}

TEST_F(xdp, xdp_tx_with_metadata)
{
	int prog = send_back_cut(variant->frags ? BPF_F_XDP_HAS_FRAGS : 0);
	unsigned int i, len = 1000;
	char sent[1000];

	ASSERT_LE(0, prog);
	ASSERT_EQ(0, attach_b(variant, prog));
	close(prog);
	for (i = 0; i < PKTS; i++) {
		ASSERT_EQ(0, send_it(self, len, i));
		fill_packet(sent, len, i);
		ASSERT_EQ((int)len - CUT, recv_a(self, WAIT_MS));
		ASSERT_EQ(0, memcmp(self->buf, sent + CUT, len - CUT));
	}
	expect_silence(_metadata, self);
	expect_books(_metadata, self);
}

/* Every other packet, in one long run. */
TEST_F(xdp, drop_half)
{
	unsigned int i, n = pv4_fast() ? 256 : 2048;
	uint32_t seq;
	int len;

	ASSERT_EQ(0, xdp_set_action(&self->x, 1, XDP_DROP));
	for (i = 0; i < n; i++) {
		seq = key_seq(i & 1, i);
		len = pkt_size(variant->frags, i / 2);
		ASSERT_EQ(0, send_it(self, len, seq));
		if (i & 1)
			continue;
		ASSERT_TRUE(packet_ok(self->buf, recv_ring(self, WAIT_MS), len,
				      seq));
	}
	EXPECT_EQ(-EAGAIN, recv_ring(self, QUIET_MS));
	EXPECT_EQ(n / 2, bpf_get(self->x.counts, 1));
	expect_books(_metadata, self);
}

/* Without a target, the packet is dropped, and its frame is not lost. */
TEST_F(xdp, redirect_without_target)
{
	unsigned int i;
	__u32 key = 0;
	union bpf_attr attr = {
		.map_fd = self->devmap, .key = (uintptr_t)&key,
	};

	ASSERT_EQ(0, xdp_set_action(&self->x, 4, XDP_REDIRECT));
	for (i = 0; i < 600; i++) {
		/* first a device that takes none, then one that is down, then
		 * no entry at all
		 */
		if (i == 0)
			ASSERT_EQ(0, set_up(if_d, false));
		if (i == 200)
			ASSERT_EQ(0, set_up(if_c, false));
		if (i == 400)
			ASSERT_EQ(0, bpf_call(BPF_MAP_DELETE_ELEM, &attr));
		ASSERT_EQ(0, send_it(self, 100, key_seq(4, i)));
		if (i % 16)
			continue;
		ASSERT_EQ(0, send_it(self, 200, key_seq(0, i)));
		ASSERT_TRUE(packet_ok(self->buf, recv_ring(self, WAIT_MS), 200,
				      key_seq(0, i)));
	}
	expect_books(_metadata, self);
}

/* ---- without memory ---- */

static const char *const memory[] = { "failslab", "fail_page_alloc" };

/* Makes @of_hundred percent of the atomic allocations fail. */
static void fail_some(unsigned int of_hundred)
{
	unsigned int i;

	no_faults();
	set_fault("failslab", "cache-filter", "N");
	set_fault("fail_page_alloc", "min-order", "0");
	for (i = 0; i < ARRAY_SIZE(memory); i++) {
		set_fault(memory[i], "ignore-gfp-wait", "Y");
		set_fault(memory[i], "interval", "1");
		set_fault(memory[i], "task-filter", "N");
		set_fault(memory[i], "verbose", "0");
		set_number(memory[i], "times", MANY);
		set_number(memory[i], "probability", of_hundred);
	}
}

/* What is anywhere but in the receiver's ring is not looked at. */
static void drain(struct _test_data_xdp *self)
{
	while (self->a.s.fd >= 0 && recv_a(self, 0) > 0)
		;
	drain_plain(self);
}

/* Packets are lost for lack of memory, and nothing else is. */
TEST_F_TIMEOUT(xdp, no_memory, 120)
{
	const char *missing = faults_missing();
	unsigned int key, i, n, rounds = pv4_fast() ? 200 : 1000;
	int len, faults = 0, fd;
	pid_t guard;

	if (missing)
		SKIP(return, "%s", missing);
	/* after a timeout, too */
	guard = guard_faults(&fd);
	ASSERT_LE(0, guard);
	for (key = 0; key < NR_KEYS; key++)
		ASSERT_EQ(0, xdp_set_action(&self->x, key,
					    actions[key].action));
	for (i = 0; i < 2 * rounds; i++) {
		/* in the end there is none at all, and what is in stock ends */
		if (i % rounds == 0)
			fail_some(i ? 100 : 33);
		for (key = 0; key < NR_KEYS; key++)
			send_it(self, pkt_size(variant->frags, i),
				key_seq(key, i));
		while ((len = recv_ring(self, 0)) > 0) {
			n = ntohl(packet_seq(self->buf)) & 0xffffff;
			if (!packet_ok(self->buf, len,
				       pkt_size(variant->frags, n),
				       packet_seq(self->buf)))
				break;
		}
		if (len != -EAGAIN)
			break;
		drain(self);
	}
	for (n = 0; n < ARRAY_SIZE(memory); n++)
		faults += faults_of(memory[n]);
	close(fd);
	EXPECT_EQ(0, wait_for_exit(guard));
	ASSERT_EQ(-EAGAIN, len);
	TH_LOG("%d allocations failed", faults);
	EXPECT_LT(0, faults);

	while (recv_ring(self, QUIET_MS) > 0)
		;
	drain(self);
	for (i = 0; i < 100; i++) {
		ASSERT_EQ(0, send_it(self, 100, key_seq(0, i)));
		ASSERT_TRUE(packet_ok(self->buf, recv_ring(self, WAIT_MS), 100,
				      key_seq(0, i)));
	}
	expect_books(_metadata, self);
}

/* Does the number of packets sent agree with the two counters? They reach the
 * stack's socket, or there is no memory for them at the device or there.
 */
static bool each_counted(struct _test_data_xdp *self, __s64 drops, int sent)
{
	struct tpacket_stats st;
	socklen_t len = sizeof(st);
	__s64 counted = -drops;
	int ms;

	for (ms = 0; ms < WAIT_MS; ms++) {
		drain_plain(self);
		if (getsockopt(self->plain_b, SOL_PACKET, PACKET_STATISTICS,
			       &st, &len))
			break;
		counted += st.tp_packets;
		if (counted + ethtool_stat(if_b, "rx_queue_0_drops") >= sent)
			break;
		usleep(1000);
	}
	return counted + ethtool_stat(if_b, "rx_queue_0_drops") == sent;
}

TEST_F_TIMEOUT(xdp, no_memory_for_stack, 120)
{
	const char *missing = faults_missing();
	unsigned int i, sent = 0, n = 300;
	__s64 before, drops;
	pid_t guard;
	int fd;

	if (missing)
		SKIP(return, "%s", missing);
	if (!variant->zc_rx || variant->to_stack)
		SKIP(return, "other packets are in the counters, too");
	guard = guard_faults(&fd);
	ASSERT_LE(0, guard);
	ASSERT_EQ(0, xdp_set_action(&self->x, 5, XDP_PASS_TO_KERNEL));
	before = ethtool_stat(if_b, "rx_queue_0_drops");
	ASSERT_TRUE(each_counted(self, before, 0));
	fail_some(33);
	for (i = 0; i < n; i++) {
		sent += !send_it(self, pkt_size(variant->frags, i),
				 key_seq(5, i));
		drain_plain(self);
	}
	close(fd);
	EXPECT_EQ(0, wait_for_exit(guard));
	EXPECT_TRUE(each_counted(self, before, sent));
	drops = ethtool_stat(if_b, "rx_queue_0_drops") - before;
	TH_LOG("%u sent, %lld lost at the device", sent, drops);
	EXPECT_LT(0, drops);
	expect_books(_metadata, self);
}

/* ---- under traffic ---- */

/* A child that sends as fast as it can and ignores errors */
static pid_t flood(struct _test_data_xdp *self, unsigned int len)
{
	pid_t pid = pv4_fork();
	uint32_t n = 0;

	if (pid)
		return pid;
	for (;; n++) {
		if (send_it(self, len, key_seq(n % NR_KEYS, n)))
			usleep(200);
		kick_a(self);
		if (!(n % 64))
			sched_yield();
		if (self->a.s.fd < 0)
			continue;
		while (zc_recv(&self->a, self->buf, BUF_SIZE, 0) > 0)
			;
	}
}

/* All programs and none, one after another. Packets that are passed arrive in
 * order and complete, and no frame is lost.
 */
TEST_F_TIMEOUT(xdp, attach_under_traffic, 120)
{
	int i, k, len, rounds = pv4_fast() ? 20 : 100, prog[3];
	unsigned int size = variant->frags ? 5000 : 500;
	int flags = variant->frags ? BPF_F_XDP_HAS_FRAGS : 0;
	uint32_t last = 0, seq, key;
	unsigned int got = 0;
	pid_t pid;

	prog[0] = xdp_const(XDP_PASS, flags);
	prog[1] = xdp_const(XDP_PASS_TO_KERNEL, flags);
	prog[2] = xdp_const(XDP_TX, flags);
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, xdp_keep(prog[i]));
	ASSERT_EQ(0, xdp_keep(self->x.prog));
	for (key = 0; key < NR_KEYS; key++)
		ASSERT_EQ(0, xdp_set_action(&self->x, key,
					    actions[key].action));
	pid = flood(self, size);
	ASSERT_LE(0, pid);
	for (i = 0; i < rounds; i++) {
		switch (i % 5) {
		case 0:
			k = -1;
			break;
		case 4:
			k = self->x.prog;
			break;
		default:
			k = prog[i % 5 - 1];
			break;
		}
		ASSERT_EQ(0, attach_b(variant, k));
		for (k = 0; k < 30; k++) {
			/* without a program, and with one that passes them */
			len = recv_ring(self, !k && i % 5 < 2 ? WAIT_MS : 0);
			if (len == -EAGAIN && (k || i % 5 >= 2))
				break;
			ASSERT_EQ((int)size, len);
			seq = packet_seq(self->buf);
			ASSERT_TRUE(packet_ok(self->buf, len, size, seq));
			seq = ntohl(seq) & 0xffffff;
			ASSERT_TRUE(!got || seq > last) {
				TH_LOG("%u after %u", seq, last);
			}
			last = seq;
			got++;
		}
		drain_plain(self);
	}
	kill(pid, SIGKILL);
	EXPECT_EQ(-SIGKILL, wait_for_exit(pid));
	ASSERT_EQ(0, attach_b(variant, -1));
	while (recv_ring(self, QUIET_MS) > 0)
		got++;
	TH_LOG("%u packets received in %d changes", got, rounds);
	EXPECT_LT(0U, got);
	EXPECT_TRUE(zc_books_balance(&self->rx, NULL));
	EXPECT_EQ(self->rx.s.rx.size,
		  self->rx.s.rx.avail - self->rx.s.rx.used);
}

TEST_HARNESS_MAIN
