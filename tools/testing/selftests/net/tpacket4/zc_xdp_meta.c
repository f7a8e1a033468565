// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4, zero-copy mode: XDP metadata, which must be kept with the
 * packet for all verdicts, packets of several frames that a program extends,
 * and the XDP metadata kfuncs.
 */
#include "zc_xdp_fixture.h"

#define META		0x12345678

FIXTURE_VARIANT_ADD(xdp, plain_to_zc) { .zc_rx = true };

FIXTURE_VARIANT_ADD(xdp, zc_to_zc) { .zc_tx = true, .zc_rx = true };

FIXTURE_VARIANT_ADD(xdp, frags_plain_to_zc) { .zc_rx = true, .frags = true };

FIXTURE_VARIANT_ADD(xdp, frags_zc_to_zc) {
	.zc_tx = true, .zc_rx = true, .frags = true,
};

FIXTURE_VARIANT_ADD(xdp, zc_to_both) {
	.zc_tx = true, .zc_rx = true, .to_stack = true,
};

/* ---- XDP metadata ---- */

/* Writes META and returns @action. XDP_REDIRECT uses entry 0 of @target. */
static int write_meta(int action, int target, int flags)
{
	struct bpf_insn prog[] = {
		MOV_X(BPF_REG_6, BPF_REG_1),
		MOV_K(BPF_REG_2, -4),
		CALL(BPF_FUNC_xdp_adjust_meta),
		JMP_K(BPF_JNE, BPF_REG_0, 0, 13),
		LOAD(BPF_W, BPF_REG_2, BPF_REG_6, CTX_DATA_META),
		LOAD(BPF_W, BPF_REG_3, BPF_REG_6, CTX_DATA),
		MOV_X(BPF_REG_4, BPF_REG_2),
		ADD_K(BPF_REG_4, 4),
		JMP_X(BPF_JGT, BPF_REG_4, BPF_REG_3, 8),
		STORE_K(BPF_W, BPF_REG_2, 0, META),
		MOV_K(BPF_REG_0, action),
		JMP_K(BPF_JNE, BPF_REG_0, XDP_REDIRECT, 6),
		LOAD_MAP(BPF_REG_1, target), LOAD_MAP_2,
		MOV_K(BPF_REG_2, 0),
		MOV_K(BPF_REG_3, 0),
		CALL(BPF_FUNC_redirect_map),
		EXIT,
		MOV_K(BPF_REG_0, XDP_DROP),
		EXIT,
	};

	/* jumps to the drop and to the end */
	prog[3].off = ARRAY_SIZE(prog) - 2 - 4;
	prog[8].off = ARRAY_SIZE(prog) - 2 - 9;
	prog[11].off = ARRAY_SIZE(prog) - 3 - 12;
	return xdp_load(prog, ARRAY_SIZE(prog), flags);
}

/*
 * An XDP or tc program that passes packets and counts those with META in entry
 * 0 of @counts and those without in entry 1.
 */
static int read_meta(int type, int counts, int flags)
{
	bool xdp = type == BPF_PROG_TYPE_XDP;
	int meta = xdp ? CTX_DATA_META : offsetof(struct __sk_buff, data_meta);
	int data = xdp ? CTX_DATA : offsetof(struct __sk_buff, data);
	struct bpf_insn prog[] = {
		LOAD(BPF_W, BPF_REG_2, BPF_REG_1, meta),
		LOAD(BPF_W, BPF_REG_3, BPF_REG_1, data),
		STORE_K(BPF_W, BPF_REG_10, -4, 1),
		MOV_X(BPF_REG_4, BPF_REG_2),
		ADD_K(BPF_REG_4, 4),
		JMP_X(BPF_JGT, BPF_REG_4, BPF_REG_3, 3),
		LOAD(BPF_W, BPF_REG_4, BPF_REG_2, 0),
		JMP_K(BPF_JNE, BPF_REG_4, META, 1),
		STORE_K(BPF_W, BPF_REG_10, -4, 0),
		MOV_X(BPF_REG_2, BPF_REG_10),
		ADD_K(BPF_REG_2, -4),
		LOAD_MAP(BPF_REG_1, counts), LOAD_MAP_2,
		CALL(BPF_FUNC_map_lookup_elem),
		JMP_K(BPF_JEQ, BPF_REG_0, 0, 2),
		MOV_K(BPF_REG_1, 1),
		INC(BPF_REG_0, BPF_REG_1, 0),
		MOV_K(BPF_REG_0, xdp ? XDP_PASS : TCX_PASS),
		EXIT,
	};

	return bpf_load(type, prog, ARRAY_SIZE(prog), flags);
}

#define PKTS		40

/* Sends packets to a program that writes META and returns @action, and receives
 * them with @recv. @counts is that of a program at the receiver.
 */
static void expect_meta(struct __test_metadata *_metadata,
			struct _test_data_xdp *self, int action, bool frags,
			int (*recv)(struct _test_data_xdp *self, int ms),
			int counts)
{
	int prog, i, len;

	prog = write_meta(action, self->devmap, frags ? BPF_F_XDP_HAS_FRAGS : 0);
	ASSERT_LE(0, prog);
	ASSERT_EQ(0, xdp_attach_native(if_b, prog));
	for (i = 0; i < PKTS; i++) {
		len = frags && i % 2 ? 5000 : 60 + 20 * i;
		ASSERT_EQ(0, send_it(self, len, i));
		ASSERT_TRUE(packet_ok(self->buf, recv(self, WAIT_MS), len, i)) {
			TH_LOG("action %d, packet %d of %d bytes", action, i,
			       len);
		}
	}
	EXPECT_EQ(PKTS, bpf_get(counts, 0)) {
		TH_LOG("%llu packets without it", bpf_get(counts, 1));
	}
	close(prog);
}

static int recv_stack(struct _test_data_xdp *self, int ms)
{
	return plain_recv(self->plain_b, self->buf, BUF_SIZE, ms);
}

static int recv_other(struct _test_data_xdp *self, int ms)
{
	return plain_recv(self->plain_d, self->buf, BUF_SIZE, ms);
}

static int new_counts(void)
{
	return bpf_map(BPF_MAP_TYPE_ARRAY, 8, 2);
}

TEST_F_TIMEOUT(xdp, metadata_pass_to_kernel, 120)
{
	int counts = new_counts(), prog;

	ASSERT_LE(0, counts);
	prog = read_meta(BPF_PROG_TYPE_SCHED_CLS, counts, 0);
	ASSERT_LE(0, prog);
	ASSERT_EQ(0, attach_tc(if_b, prog, BPF_TCX_INGRESS));
	expect_meta(_metadata, self, XDP_PASS_TO_KERNEL, variant->frags,
		    recv_stack, counts);
	expect_books(_metadata, self);
}

/* The copy for the stack has the metadata, too. */
TEST_F_TIMEOUT(xdp, metadata_to_stack, 120)
{
	int counts = new_counts(), prog;

	if (!variant->to_stack)
		SKIP(return, "needs TP4_RING_TO_STACK");
	ASSERT_LE(0, counts);
	prog = read_meta(BPF_PROG_TYPE_SCHED_CLS, counts, 0);
	ASSERT_LE(0, prog);
	ASSERT_EQ(0, attach_tc(if_b, prog, BPF_TCX_INGRESS));
	expect_meta(_metadata, self, XDP_PASS, variant->frags, recv_stack,
		    counts);
	while (recv_ring(self, 0) > 0)
		;
	expect_books(_metadata, self);
}

TEST_F_TIMEOUT(xdp, metadata_xdp_tx, 120)
{
	int counts = new_counts(), prog;

	if (variant->zc_tx)
		SKIP(return, "covered by the other variants");
	ASSERT_LE(0, counts);
	prog = read_meta(BPF_PROG_TYPE_XDP, counts, BPF_F_XDP_HAS_FRAGS);
	ASSERT_LE(0, prog);
	ASSERT_EQ(0, xdp_attach_native(if_a, prog));
	expect_meta(_metadata, self, XDP_TX, variant->frags, recv_a, counts);
	expect_books(_metadata, self);
}

TEST_F_TIMEOUT(xdp, metadata_redirected, 120)
{
	int counts = new_counts(), prog;

	ASSERT_LE(0, counts);
	prog = read_meta(BPF_PROG_TYPE_XDP, counts, BPF_F_XDP_HAS_FRAGS);
	ASSERT_LE(0, prog);
	ASSERT_EQ(0, xdp_attach_native(if_d, prog));
	expect_meta(_metadata, self, XDP_REDIRECT, variant->frags, recv_other,
		    counts);
	expect_books(_metadata, self);
}

/* ---- packets that grow ---- */

static int grow_tail(int delta, int flags)
{
	struct bpf_insn prog[] = {
		MOV_K(BPF_REG_2, delta),
		CALL(BPF_FUNC_xdp_adjust_tail),
		JMP_K(BPF_JEQ, BPF_REG_0, 0, 2),
		MOV_K(BPF_REG_0, XDP_ABORTED),
		EXIT,
		MOV_K(BPF_REG_0, XDP_PASS),
		EXIT,
	};

	return xdp_load(prog, ARRAY_SIZE(prog), flags);
}

/* A packet of several frames can be extended in its last page. */
TEST_F_TIMEOUT(xdp, last_frame_grows, 120)
{
	/* tailroom in the last frame of the ring */
	static const int deltas[] = { 1, 64, 300 };
	int prog, i, len, size = 5000;
	unsigned int k;

	if (!variant->frags)
		SKIP(return, "packets of one frame only");
	for (k = 0; k < ARRAY_SIZE(deltas); k++) {
		/* with enough tailroom in the last frame of the ring */
		prog = grow_tail(deltas[k], BPF_F_XDP_HAS_FRAGS);
		ASSERT_LE(0, prog);
		ASSERT_EQ(0, xdp_attach_native(if_b, prog));
		for (i = 0; i < 30; i++) {
			ASSERT_EQ(0, send_it(self, size, i));
			memset(self->buf, 0x77, size + 1000);
			len = recv_ring(self, WAIT_MS);
			ASSERT_EQ(size + deltas[k], len) {
				TH_LOG("by %d", deltas[k]);
			}
			ASSERT_TRUE(packet_ok(self->buf, size, size, i));
			/* new bytes are zero, not old data */
			while (len-- > size)
				ASSERT_EQ(0, self->buf[len]);
		}
		close(prog);
	}
	expect_books(_metadata, self);
}

/* ---- metadata kfuncs ---- */

/* The kernel's BTF, in memory */
struct btf {
	struct btf_head {
		__u16 magic;
		__u8 version, flags;
		__u32 hdr_len, type_off, type_len, str_off, str_len;
	} *head;
	size_t len;
};

static bool btf_open(struct btf *b)
{
	int fd = open("/sys/kernel/btf/vmlinux", O_RDONLY);
	ssize_t n;

	b->head = malloc(1 << 26);	/* freed with the process */
	b->len = 0;
	while (fd >= 0 && b->head &&
	       (n = read(fd, (char *)b->head + b->len,
			 (1 << 26) - b->len)) > 0)
		b->len += n;
	close(fd);
	return b->len > sizeof(*b->head) && b->head->magic == 0xeb9f;
}

/* Number of bytes behind the header of a BTF type */
static unsigned int btf_tail(unsigned int kind, unsigned int nr)
{
	switch (kind) {
	case 1:			/* int */
	case 14:		/* variable */
	case 17:		/* declaration tag */
		return 4;
	case 3:			/* array */
		return 12;
	case 4: case 5:		/* struct, union */
	case 15:		/* section */
	case 19:		/* 64-bit enum */
		return 12 * nr;
	case 6:			/* enum */
	case 13:		/* function prototype */
		return 8 * nr;
	default:
		return 0;
	}
}

#define BTF_KIND_FUNC	12

/* The BTF ID of a function, or 0. */
static int btf_func(const struct btf *b, const char *name)
{
	const char *base = (char *)b->head + b->head->hdr_len;
	const char *p = base + b->head->type_off;
	const char *end = p + b->head->type_len;
	unsigned int kind, id;
	__u32 head[3];

	for (id = 1; p + sizeof(head) <= end; id++) {
		memcpy(head, p, sizeof(head));
		kind = head[1] >> 24 & 0x1f;
		if (kind == BTF_KIND_FUNC &&
		    !strcmp(base + b->head->str_off + head[0], name))
			return id;
		p += sizeof(head) + btf_tail(kind, head[1] & 0xffff);
	}
	return 0;
}

#define KFUNC(id)	INSN(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_KFUNC_CALL, 0, id)

/* Calls the kfunc and stores its result in @answers: 0 or -errno, then both
 * values, which are zero if they were not written.
 */
static int ask_hint(const char *ifname, int func, int answers, int flags)
{
	struct bpf_insn prog[] = {
		STORE_K(BPF_W, BPF_REG_10, -4, 0),
		STORE_K(BPF_DW, BPF_REG_10, -16, 0),
		STORE_K(BPF_DW, BPF_REG_10, -24, 0),
		MOV_X(BPF_REG_2, BPF_REG_10),
		ADD_K(BPF_REG_2, -16),
		MOV_X(BPF_REG_3, BPF_REG_10),
		ADD_K(BPF_REG_3, -24),
		KFUNC(func),
		MOV_X(BPF_REG_6, BPF_REG_0),
		MOV_X(BPF_REG_2, BPF_REG_10),
		ADD_K(BPF_REG_2, -4),
		LOAD_MAP(BPF_REG_1, answers), LOAD_MAP_2,
		CALL(BPF_FUNC_map_lookup_elem),
		JMP_K(BPF_JEQ, BPF_REG_0, 0, 5),
		STORE(BPF_DW, BPF_REG_0, BPF_REG_6, 0),
		LOAD(BPF_DW, BPF_REG_1, BPF_REG_10, -16),
		STORE(BPF_DW, BPF_REG_0, BPF_REG_1, 8),
		LOAD(BPF_DW, BPF_REG_1, BPF_REG_10, -24),
		STORE(BPF_DW, BPF_REG_0, BPF_REG_1, 16),
		MOV_K(BPF_REG_0, XDP_PASS),
		EXIT,
	};

	return bpf_load_for(BPF_PROG_TYPE_XDP, prog, ARRAY_SIZE(prog),
			    flags | BPF_F_XDP_DEV_BOUND_ONLY,
			    if_nametoindex(ifname));
}

struct hint {
	__s64 err;
	__u64 values[2];
};

static int clear_hint(int answers)
{
	const struct hint none = { .err = 0x55 };

	return bpf_set(answers, 0, &none);
}

static int get_hint(int answers, struct hint *hint)
{
	__u32 key = 0;
	union bpf_attr attr = {
		.map_fd = answers, .key = (uintptr_t)&key,
		.value = (uintptr_t)hint,
	};
	int err = bpf_call(BPF_MAP_LOOKUP_ELEM, &attr);

	/* It returns an int: the upper half of the register is undefined. */
	hint->err = (__s32)hint->err;
	return err;
}

#define TAG		0x7123

/* Adds a VLAN tag to all packets, outside of the data. */
static int push_tag(void)
{
	const struct bpf_insn prog[] = {
		MOV_K(BPF_REG_2, htons(ETH_P_8021Q)),
		MOV_K(BPF_REG_3, TAG),
		CALL(BPF_FUNC_skb_vlan_push),
		MOV_K(BPF_REG_0, TCX_PASS),
		EXIT,
	};

	return bpf_load(BPF_PROG_TYPE_SCHED_CLS, prog, ARRAY_SIZE(prog), 0);
}

/* Receives a packet, and removes the VLAN tag if it must have one. */
static int recv_untagged(struct _test_data_xdp *self, bool tagged)
{
	const __u16 tag[] = { htons(ETH_P_8021Q), htons(TAG) };
	int len = recv_ring(self, WAIT_MS), at = 2 * ETH_ALEN;

	if (!tagged || len < at + (int)sizeof(tag))
		return len;
	if (memcmp(self->buf + at, tag, sizeof(tag)))
		return -EBADMSG;
	len -= sizeof(tag);
	memmove(self->buf + at, self->buf + at + sizeof(tag), len - at);
	return len;
}

struct hints {
	int plain_c;		/* sends to the device without V4 */
	int v4, plain;		/* maps: results with V4, and without */
	int func;		/* 0: hash, 1: timestamp, 2: tag */
	bool tagged;
};

/* Packets of a ring have no metadata. For packets of the stack, the results are
 * those without V4.
 */
static void expect_hints(struct __test_metadata *_metadata,
			 struct _test_data_xdp *self, const struct hints *h,
			 bool from_ring, bool frags)
{
	struct hint v4, plain;
	int i, len;

	for (i = 0; i < 40; i++) {
		len = frags && i % 2 ? 5000 : 60 + 20 * i;
		ASSERT_EQ(0, clear_hint(h->v4));
		ASSERT_EQ(0, send_it(self, len, i));
		ASSERT_TRUE(packet_ok(self->buf, recv_untagged(self, h->tagged),
				      len, i));
		ASSERT_EQ(0, get_hint(h->v4, &v4));
		if (from_ring) {
			ASSERT_EQ(-ENODATA, v4.err);
			continue;
		}
		ASSERT_EQ(h->func == 2 && !h->tagged ? -ENODATA : 0, v4.err);
		if (h->func == 2 && h->tagged) {
			ASSERT_EQ(htons(ETH_P_8021Q), v4.values[0]);
			ASSERT_EQ(TAG, v4.values[1]);
		}

		ASSERT_EQ(0, clear_hint(h->plain));
		fill_packet(self->buf, len, i);
		ASSERT_EQ(len, send(h->plain_c, self->buf, len, 0));
		ASSERT_EQ(len, recv_other(self, WAIT_MS));
		ASSERT_EQ(0, get_hint(h->plain, &plain));
		ASSERT_EQ(0, memcmp(&v4, &plain, sizeof(v4))) {
			TH_LOG("%lld, %#llx, %#llx with V4; %lld, %#llx, %#llx",
			       v4.err, v4.values[0], v4.values[1], plain.err,
			       plain.values[0], plain.values[1]);
		}
	}
}

/* The kfuncs must not read outside of the driver's buffer, which KASAN detects.
 */
TEST_F_TIMEOUT(xdp, metadata_kfuncs, 120)
{
	static const char * const funcs[] = {
		"bpf_xdp_metadata_rx_hash", "bpf_xdp_metadata_rx_timestamp",
		"bpf_xdp_metadata_rx_vlan_tag",
	};
	int flags = variant->frags ? BPF_F_XDP_HAS_FRAGS : 0;
	int func, prog, i, nr = ARRAY_SIZE(funcs);
	struct hints h = {};
	struct btf btf;

	if (!btf_open(&btf))
		SKIP(return, "no BTF: needs CONFIG_DEBUG_INFO_BTF");
	h.plain_c = plain_listener(_metadata, if_c);
	h.v4 = bpf_map(BPF_MAP_TYPE_ARRAY, sizeof(struct hint), 1);
	h.plain = bpf_map(BPF_MAP_TYPE_ARRAY, sizeof(struct hint), 1);
	ASSERT_LE(0, h.v4);
	ASSERT_LE(0, h.plain);
	/* again with a tag: packets of a ring do not pass the tc program */
	for (i = 0; i < (variant->zc_tx ? 1 : 2) * nr; i++) {
		h.func = i % nr;
		h.tagged = i >= nr;
		if (i == nr) {
			prog = push_tag();
			ASSERT_LE(0, prog);
			ASSERT_EQ(0, attach_tc(if_a, prog, BPF_TCX_EGRESS));
			ASSERT_EQ(0, attach_tc(if_c, prog, BPF_TCX_EGRESS));
			close(prog);
		}
		func = btf_func(&btf, funcs[h.func]);
		ASSERT_LT(0, func);
		prog = ask_hint(if_b, func, h.v4, flags);
		ASSERT_LE(0, prog);
		ASSERT_EQ(0, xdp_attach_native(if_b, prog));
		close(prog);
		prog = ask_hint(if_d, func, h.plain, BPF_F_XDP_HAS_FRAGS);
		ASSERT_LE(0, prog);
		ASSERT_EQ(0, xdp_attach_native(if_d, prog));
		close(prog);
		expect_hints(_metadata, self, &h, variant->zc_tx,
			     variant->frags);
		ASSERT_EQ(0, xdp_attach_native(if_b, -1));
	}
	expect_books(_metadata, self);
}

TEST_HARNESS_MAIN
