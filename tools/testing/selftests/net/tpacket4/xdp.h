/* SPDX-License-Identifier: GPL-2.0 */
/*
 * XDP for the AF_PACKET V4 selftests, using only bpf(2) and rtnetlink
 */
#ifndef TPACKET4_XDP_H
#define TPACKET4_XDP_H

#include "bpf.h"
#include "zc.h"

#include <linux/if_link.h>
#include <stddef.h>

#define CTX_DATA	offsetof(struct xdp_md, data)
#define CTX_DATA_END	offsetof(struct xdp_md, data_end)
#define CTX_DATA_META	offsetof(struct xdp_md, data_meta)

/* Returns the fd of the program, or -errno. */
static inline int xdp_load(const struct bpf_insn *insns, unsigned int n,
			   __u32 flags)
{
	return bpf_load(BPF_PROG_TYPE_XDP, insns, n, flags);
}

/* Loads a program that returns @action. */
static inline int xdp_const(int action, __u32 flags)
{
	struct bpf_insn prog[] = { MOV_K(BPF_REG_0, action), EXIT };

	return xdp_load(prog, ARRAY_SIZE(prog), flags);
}

/* ---- a program that does what the packet says ---- */

#define NR_KEYS		8

/* The first byte of the packet's number is the key, in any byte order. */
static inline uint32_t key_seq(unsigned int key, uint32_t seq)
{
	return htonl(key << 24 | (seq & 0xffffff));
}

struct xdp_keyed {
	int prog;
	int actions;			/* map: action for a key */
	int counts;			/* map: number of packets per key */
};

/*
 * Looks up the action by the first byte after the link-layer header. With
 * XDP_REDIRECT, the packet goes to entry 0 of @target.
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

	return xdp_load(prog, ARRAY_SIZE(prog), flags);
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

/* Attaches the program, or detaches it with -1; returns 0 or -errno. */
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
 * Also attaches the program to a device of its own, so that attaching or
 * detaching it elsewhere modifies no code: the kernel patches its XDP
 * dispatcher for each program that is added or removed. QEMU before 10, in
 * software emulation, can trap if another CPU executes such code at that time.
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

#endif
