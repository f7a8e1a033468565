/* SPDX-License-Identifier: GPL-2.0 */
/*
 * XDP for the AF_PACKET V4 selftests, with nothing but bpf(2) and rtnetlink:
 * the programs are written down as instructions, so that neither a compiler
 * for BPF nor libbpf is needed.
 */
#ifndef TPACKET4_XDP_H
#define TPACKET4_XDP_H

#include "tpacket4_zc.h"

#include <linux/bpf.h>
#include <linux/if_link.h>
#include <stddef.h>

/* ---- instructions ---- */

#define INSN(c, d, s, o, i) \
	((struct bpf_insn) { .code = (c), .dst_reg = (d), .src_reg = (s), \
			     .off = (o), .imm = (i) })
#define MOV_K(d, i)	INSN(BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, i)
#define MOV_X(d, s)	INSN(BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define ADD_K(d, i)	INSN(BPF_ALU64 | BPF_ADD | BPF_K, d, 0, 0, i)
#define AND_K(d, i)	INSN(BPF_ALU64 | BPF_AND | BPF_K, d, 0, 0, i)
#define LOAD(sz, d, s, o) INSN(BPF_LDX | (sz) | BPF_MEM, d, s, o, 0)
#define STORE(sz, d, s, o) INSN(BPF_STX | (sz) | BPF_MEM, d, s, o, 0)
#define STORE_K(sz, d, o, i) INSN(BPF_ST | (sz) | BPF_MEM, d, 0, o, i)
#define INC(d, s, o)	INSN(BPF_STX | BPF_DW | BPF_ATOMIC, d, s, o, BPF_ADD)
#define JMP_X(op, d, s, o) INSN(BPF_JMP | (op) | BPF_X, d, s, o, 0)
#define JMP_K(op, d, i, o) INSN(BPF_JMP | (op) | BPF_K, d, 0, o, i)
#define CALL(f)		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, f)
#define EXIT		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
/* two slots: the other half of the constant, always zero, is the second */
#define LOAD_MAP(d, fd)	\
	INSN(BPF_LD | BPF_DW | BPF_IMM, d, BPF_PSEUDO_MAP_FD, 0, fd)
#define LOAD_MAP_2	INSN(0, 0, 0, 0, 0)

#define CTX_DATA	offsetof(struct xdp_md, data)
#define CTX_DATA_END	offsetof(struct xdp_md, data_end)
#define CTX_DATA_META	offsetof(struct xdp_md, data_meta)

/* ---- bpf(2) ---- */

static inline int bpf_call(int cmd, union bpf_attr *attr)
{
	int ret = syscall(SYS_bpf, cmd, attr, sizeof(*attr));

	return ret < 0 ? -errno : ret;
}

static inline int bpf_map(int type, unsigned int value_size, unsigned int nr)
{
	union bpf_attr attr = {
		.map_type = type, .key_size = 4, .value_size = value_size,
		.max_entries = nr,
	};

	return bpf_call(BPF_MAP_CREATE, &attr);
}

static inline int bpf_set(int map, __u32 key, const void *value)
{
	union bpf_attr attr = {
		.map_fd = map, .key = (uintptr_t)&key,
		.value = (uintptr_t)value,
	};

	return bpf_call(BPF_MAP_UPDATE_ELEM, &attr);
}

static inline __u64 bpf_get(int map, __u32 key)
{
	__u64 value = 0;
	union bpf_attr attr = {
		.map_fd = map, .key = (uintptr_t)&key,
		.value = (uintptr_t)&value,
	};

	return bpf_call(BPF_MAP_LOOKUP_ELEM, &attr) ? ~0ULL : value;
}

/* Fd of the program, or -errno; says why the verifier did not like it. */
static inline int bpf_load(const struct bpf_insn *insns, unsigned int n,
			   __u32 flags)
{
	static char log[1 << 16];
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_XDP, .insn_cnt = n,
		.insns = (uintptr_t)insns, .license = (uintptr_t)"GPL",
		.log_level = 1, .log_size = sizeof(log),
		.log_buf = (uintptr_t)log, .prog_flags = flags,
	};
	int fd = bpf_call(BPF_PROG_LOAD, &attr);

	if (fd < 0)
		fprintf(stderr, "# bpf: %s\n%s\n", strerror(-fd), log);
	return fd;
}

/* A program that does nothing but return @action. */
static inline int xdp_const(int action, __u32 flags)
{
	struct bpf_insn prog[] = { MOV_K(BPF_REG_0, action), EXIT };

	return bpf_load(prog, ARRAY_SIZE(prog), flags);
}

/* ---- a program that does what the packet says ---- */

#define NR_KEYS		8

/* The packet's number carries the key in its first byte, on any machine. */
static inline uint32_t key_seq(unsigned int key, uint32_t seq)
{
	return htonl(key << 24 | (seq & 0xffffff));
}

struct xdp_keyed {
	int prog;
	int actions;			/* map: what to return for a key */
	int counts;			/* map: how many it has seen of each */
};

/*
 * Looks the action up by the first byte behind the link-layer header. Where
 * that is XDP_REDIRECT the packet goes to entry 0 of @target.
 */
static inline int xdp_keyed_prog(struct xdp_keyed *x, int target, __u32 flags)
{
	struct bpf_insn prog[] = {
		LOAD(BPF_W, BPF_REG_2, BPF_REG_1, CTX_DATA),
		LOAD(BPF_W, BPF_REG_3, BPF_REG_1, CTX_DATA_END),
		MOV_X(BPF_REG_4, BPF_REG_2),
		ADD_K(BPF_REG_4, ETH_HLEN + 1),
		MOV_K(BPF_REG_0, XDP_PASS),
		JMP_X(BPF_JGT, BPF_REG_4, BPF_REG_3, 24),
		LOAD(BPF_B, BPF_REG_0, BPF_REG_2, ETH_HLEN),
		AND_K(BPF_REG_0, NR_KEYS - 1),
		STORE(BPF_W, BPF_REG_10, BPF_REG_0, -4),
		MOV_X(BPF_REG_2, BPF_REG_10),
		ADD_K(BPF_REG_2, -4),
		LOAD_MAP(BPF_REG_1, x->counts), LOAD_MAP_2,
		CALL(BPF_FUNC_map_lookup_elem),
		JMP_K(BPF_JEQ, BPF_REG_0, 0, 15),
		MOV_K(BPF_REG_1, 1),
		INC(BPF_REG_0, BPF_REG_1, 0),
		MOV_X(BPF_REG_2, BPF_REG_10),
		ADD_K(BPF_REG_2, -4),
		LOAD_MAP(BPF_REG_1, x->actions), LOAD_MAP_2,
		CALL(BPF_FUNC_map_lookup_elem),
		JMP_K(BPF_JEQ, BPF_REG_0, 0, 7),
		LOAD(BPF_W, BPF_REG_0, BPF_REG_0, 0),
		JMP_K(BPF_JNE, BPF_REG_0, XDP_REDIRECT, 5),
		LOAD_MAP(BPF_REG_1, target), LOAD_MAP_2,
		MOV_K(BPF_REG_2, 0),
		MOV_K(BPF_REG_3, 0),
		CALL(BPF_FUNC_redirect_map),
		EXIT,
	};

	return bpf_load(prog, ARRAY_SIZE(prog), flags);
}

/* 0 or -errno. */
static inline int xdp_keyed_load(struct xdp_keyed *x, int target, __u32 flags)
{
	x->actions = bpf_map(BPF_MAP_TYPE_ARRAY, 4, NR_KEYS);
	if (x->actions < 0)
		return x->actions;
	x->counts = bpf_map(BPF_MAP_TYPE_ARRAY, 8, NR_KEYS);
	if (x->counts < 0)
		return x->counts;
	x->prog = xdp_keyed_prog(x, target, flags);
	return x->prog < 0 ? x->prog : 0;
}

static inline int xdp_set_action(struct xdp_keyed *x, unsigned int key,
				 __u32 action)
{
	return bpf_set(x->actions, key, &action);
}

/* ---- attaching ---- */

/* Attaches the program, or detaches what is there (-1); 0 or -errno. */
static inline int xdp_attach(const char *ifname, int prog, __u32 flags)
{
	struct link_req req = {
		.h.nlmsg_len = NLMSG_LENGTH(sizeof(req.i)),
		.h.nlmsg_type = RTM_SETLINK,
		.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
		.i.ifi_index = if_nametoindex(ifname),
	};
	struct rtattr *nest;

	nest = add_attr(&req, IFLA_XDP | NLA_F_NESTED, NULL, 0);
	add_attr(&req, IFLA_XDP_FD, &prog, sizeof(prog));
	add_attr(&req, IFLA_XDP_FLAGS, &flags, sizeof(flags));
	end_nest(&req, nest);
	return ask_link(&req);
}

static inline int xdp_attach_native(const char *ifname, int prog)
{
	return xdp_attach(ifname, prog, XDP_FLAGS_DRV_MODE);
}

/*
 * Attaches the program to a device of its own as well, so that to attach it
 * elsewhere, or to detach it, changes no code: the kernel patches its XDP
 * dispatcher for each program that comes or goes. Software emulation (QEMU
 * before 10) can trap on such code when another CPU runs it just then.
 */
static inline int xdp_keep(int prog)
{
	static int n;
	char name[2][IFNAMSIZ];
	int err;

	snprintf(name[0], IFNAMSIZ, "v4keep%da", n);
	snprintf(name[1], IFNAMSIZ, "v4keep%db", n++);
	err = prog < 0 ? prog : add_veth(name[0], name[1], 1500);
	return err ? err : xdp_attach_native(name[0], prog);
}

/* ---- the device's counters ---- */

#define NR_STATS	256

/* The counter that ethtool -S has under this name, or -1. */
static inline __s64 ethtool_stat(const char *ifname, const char *name)
{
	static struct {
		struct ethtool_gstrings h;
		char name[NR_STATS][ETH_GSTRING_LEN];
	} s;
	static struct {
		struct ethtool_stats h;
		__u64 value[NR_STATS];
	} v;
	struct {
		struct ethtool_sset_info h;
		__u32 nr;
	} n = {
		.h.cmd = ETHTOOL_GSSET_INFO,
		.h.sset_mask = 1 << ETH_SS_STATS,
	};
	unsigned int i;

	if (ethtool_ioctl(ifname, &n) || n.nr > NR_STATS)
		return -1;
	s.h = (struct ethtool_gstrings) {
		.cmd = ETHTOOL_GSTRINGS, .string_set = ETH_SS_STATS,
		.len = n.nr,
	};
	v.h = (struct ethtool_stats) {
		.cmd = ETHTOOL_GSTATS, .n_stats = n.nr,
	};
	if (ethtool_ioctl(ifname, &s) || ethtool_ioctl(ifname, &v))
		return -1;
	for (i = 0; i < s.h.len; i++)
		if (!strncmp(s.name[i], name, ETH_GSTRING_LEN))
			return v.value[i];
	return -1;
}

#endif
