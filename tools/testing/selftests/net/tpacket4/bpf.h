/* SPDX-License-Identifier: GPL-2.0 */
/*
 * BPF for the AF_PACKET V4 selftests, using only bpf(2). The programs are
 * arrays of instructions, so that neither a BPF compiler nor libbpf is needed.
 */
#ifndef TPACKET4_BPF_H
#define TPACKET4_BPF_H

#include "common.h"

#include <linux/bpf.h>

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
/* takes two slots; the other half of the constant, always zero, is the second
 */
#define LOAD_MAP(d, fd)	\
	INSN(BPF_LD | BPF_DW | BPF_IMM, d, BPF_PSEUDO_MAP_FD, 0, fd)
#define LOAD_MAP_2	INSN(0, 0, 0, 0, 0)

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

/* Attaches it to tcx; @type is BPF_TCX_INGRESS or BPF_TCX_EGRESS. */
static inline int attach_tc(const char *ifname, int prog, int type)
{
	union bpf_attr attr = {
		.target_ifindex = if_nametoindex(ifname),
		.attach_bpf_fd = prog, .attach_type = type,
	};

	return bpf_call(BPF_PROG_ATTACH, &attr);
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

/* Returns the fd of a program for the device @ifindex, or for any with 0, or
 * -errno. Prints the verifier's log on failure.
 */
static inline int bpf_load_for(int type, const struct bpf_insn *insns,
			       unsigned int n, __u32 flags, __u32 ifindex)
{
	static char log[1 << 16];
	union bpf_attr attr = {
		.prog_type = type, .insn_cnt = n,
		.insns = (uintptr_t)insns, .license = (uintptr_t)"GPL",
		.log_level = 1, .log_size = sizeof(log),
		.log_buf = (uintptr_t)log, .prog_flags = flags,
		.prog_ifindex = ifindex,
	};
	int fd;

	/* User Mode Linux takes unaligned accesses for slow. Programs for one
	 * device do not have the flag.
	 */
	if (!ifindex)
		attr.prog_flags |= BPF_F_ANY_ALIGNMENT;
	fd = bpf_call(BPF_PROG_LOAD, &attr);
	if (fd < 0)
		fprintf(stderr, "# bpf: %s\n%s\n", strerror(-fd), log);
	return fd;
}

static inline int bpf_load(int type, const struct bpf_insn *insns,
			   unsigned int n, __u32 flags)
{
	return bpf_load_for(type, insns, n, flags, 0);
}

#endif
