// SPDX-License-Identifier: GPL-2.0
/*
 * --fanout: the group that a queue in zero-copy mode feeds. The programs of the
 * types cbpf and xdp choose by the low byte of the source port of UDP over IPv4.
 */
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/if_link.h>
#include <unistd.h>

#include "tpbench.h"

#define UDP_SPORT_LOW	21	/* from the IPv4 header on */

static void cbpf_program(struct port *p)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, UDP_SPORT_LOW),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};
	struct sock_fprog prog = { .len = 2, .filter = code };

	if (setsockopt(p->fd, SOL_PACKET, PACKET_FANOUT_DATA, &prog,
		       sizeof(prog)))
		err(1, "PACKET_FANOUT_DATA");
}

#define INSN(c, d, s, o, i) \
	{ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) }
#define MOV(d, s)	INSN(BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define ADD(d, i)	INSN(BPF_ALU64 | BPF_ADD | BPF_K, d, 0, 0, i)
#define LOAD(size, d, s, o) INSN(BPF_LDX | BPF_MEM | (size), d, s, o, 0)

static int bpf(int cmd, union bpf_attr *attr)
{
	return syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

/* Attach a program that puts the byte in front of each packet. It is gone when
 * the process ends.
 */
static void xdp_program(struct port *p)
{
	struct bpf_insn code[] = {
		MOV(6, 1),
		/* room for the u32, or else the packet has none */
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, -4),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_xdp_adjust_meta),
		INSN(BPF_JMP | BPF_JNE | BPF_K, 0, 0, 11, 0),
		LOAD(BPF_W, 2, 6, offsetof(struct xdp_md, data)),
		LOAD(BPF_W, 3, 6, offsetof(struct xdp_md, data_end)),
		LOAD(BPF_W, 4, 6, offsetof(struct xdp_md, data_meta)),
		MOV(5, 2),
		ADD(5, ETH_HEADER + UDP_SPORT_LOW + 1),
		INSN(BPF_JMP | BPF_JGT | BPF_X, 5, 3, 5, 0),
		LOAD(BPF_B, 7, 2, ETH_HEADER + UDP_SPORT_LOW),
		MOV(5, 4),
		ADD(5, 4),
		INSN(BPF_JMP | BPF_JGT | BPF_X, 5, 2, 1, 0),
		INSN(BPF_STX | BPF_MEM | BPF_W, 4, 7, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, XDP_PASS),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	union bpf_attr load = {
		.prog_type = BPF_PROG_TYPE_XDP,
		.insns = (uintptr_t)code,
		.insn_cnt = sizeof(code) / sizeof(struct bpf_insn),
		.license = (uintptr_t)"GPL",
		/* for a large MTU */
		.prog_flags = BPF_F_XDP_HAS_FRAGS,
	};
	union bpf_attr link = {
		.link_create.target_ifindex = p->ifindex,
		.link_create.attach_type = BPF_XDP,
		.link_create.flags = XDP_FLAGS_DRV_MODE,
	};
	int fd = bpf(BPF_PROG_LOAD, &load);

	if (fd < 0)
		err(1, "XDP program");
	link.link_create.prog_fd = fd;
	/* The link stays open. */
	if (bpf(BPF_LINK_CREATE, &link) < 0)
		err(1, "%s: XDP program", p->cfg->ifname[p->end]);
	close(fd);
}

/* Let a socket join the group. */
void fanout_join(struct port *p)
{
	unsigned int type = p->cfg->fanout |
			    PACKET_FANOUT_FLAG_IGNORE_OUTGOING;
	struct tp4_socket s = { .fd = p->fd };
	int e;

	e = tp4_fanout(&s, getpid(), type);
	if (e)
		errx(1, "PACKET_FANOUT: %s", strerror(-e));
	if (p->cfg->fanout == PACKET_FANOUT_CBPF)
		cbpf_program(p);
}

/* Let the queue of this socket feed the group that it has joined. */
void fanout_feed(struct port *p)
{
	struct tp4_socket s = { .fd = p->fd };
	int e;

	if (p->cfg->fanout == PACKET_FANOUT_XDP)
		xdp_program(p);
	e = tp4_zerocopy(&s, p->cfg->zerocopy);
	if (e)
		errx(1, "%s: zero-copy on queue pair %d: %s",
		     p->cfg->ifname[p->end], p->cfg->zerocopy - 1,
		     tp4_strerror(TP4_IN_ZEROCOPY, e));
	/* Nobody else gives back the frames of packets that it has received until
	 * then.
	 */
	while (p->ops->rx_drop(p, MAX_BATCH))
		;
}
