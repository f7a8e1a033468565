// SPDX-License-Identifier: GPL-2.0
/* tp4 hold: an XDP program, so that the link stays up between captures
 *
 * Drivers that V4 uses through AF_XDP's interface receive for a socket only while the
 * device has an XDP program. Many reset the port when one is attached or removed. V4 does
 * both with its sockets, unless the device has a program already: here, one that passes all
 * packets.
 */

#include <errno.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <tpacket4_device.h>

#include "tp4.h"

static int call_bpf(enum bpf_cmd cmd, union bpf_attr *attr)
{
	int fd = syscall(__NR_bpf, cmd, attr, sizeof(*attr));

	return fd < 0 ? -errno : fd;
}

/* Return: a file descriptor of a program that passes all packets, or -errno. */
static int load_pass(void)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0,
		  .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_XDP,
		.insn_cnt = sizeof(insns) / sizeof(insns[0]),
		.insns = (uintptr_t)insns,
		.license = (uintptr_t)"GPL",
		.prog_flags = BPF_F_XDP_HAS_FRAGS,
		.prog_name = "tp4_hold",
	};

	return call_bpf(BPF_PROG_LOAD, &attr);
}

/* Return: a file descriptor that keeps the program attached, or -errno. */
static int attach(int prog, int ifindex)
{
	union bpf_attr attr = {
		.link_create.prog_fd = prog,
		.link_create.target_ifindex = ifindex,
		.link_create.attach_type = BPF_XDP,
		.link_create.flags = XDP_FLAGS_DRV_MODE,
	};

	return call_bpf(BPF_LINK_CREATE, &attr);
}

static int fail(const char *dev, int err)
{
	const char *hint = "";

	if (err == -EBUSY)
		hint = ": it has an XDP program already, with which its link stays up";
	else if (err == -EOPNOTSUPP || err == -EINVAL)
		hint = ": the driver has no XDP, or none for packets of this MTU";
	else if (err == -EPERM)
		hint = ": this needs CAP_NET_ADMIN and CAP_BPF";
	fprintf(stderr, "tp4: %s: %s%s\n", dev, strerror(-err), hint);
	return 1;
}

/**
 * hold_main - tp4 hold
 * @argc: number of arguments, from "hold" on
 * @argv: the arguments
 *
 * The kernel removes the program from the devices when this process ends, whatever ends it.
 *
 * Return: the exit status.
 */
int hold_main(int argc, char **argv)
{
	int i, prog, ifindex, err;
	sigset_t signals;

	if (argc < 2 || argv[1][0] == '-') {
		fprintf(stderr, "tp4: hold needs a device: tp4 --help\n");
		return 2;
	}
	prog = load_pass();
	if (prog < 0)
		return fail(argv[1], prog);
	for (i = 1; i < argc; i++) {
		ifindex = if_nametoindex(argv[i]);
		if (tp4_resets_link(ifindex) > 0)
			fprintf(stderr, "tp4: %s: the link goes down for some seconds, as the driver resets the port\n",
				argv[i]);
		err = ifindex ? attach(prog, ifindex) : -errno;
		if (err < 0)
			return fail(argv[i], err);
		printf("%s: the link stays up when captures start and stop, until Ctrl-C\n",
		       argv[i]);
	}
	fflush(stdout);
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	sigwait(&signals, &i);
	return 0;
}
