// SPDX-License-Identifier: GPL-2.0
/* The results of the fuzzer: how often each call ended how. */

#define _GNU_SOURCE
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define NR_ERRNOS	134		/* EHWPOISON is the last one */

/* Errors of calls that V4 adds or changes are documented in tpacket4(7). A slot
 * without a packet socket gives EBADF, ENOTSOCK or ENOPROTOOPT, a bad pointer
 * EFAULT.
 */
struct call_info {
	const char *name;
	bool optional;			/* it need not succeed */
	unsigned char errnos[12];	/* none: any */
};

static const struct call_info calls[NR_CALLS] = {
	[C_SOCKET] = { "socket" },
	[C_CLOSE] = { "close" },
	[C_DUP] = { "dup3" },
	[C_VERSION] = { "PACKET_VERSION", .errnos = { EINVAL, EBUSY } },
	[C_MEMREG] = { "PACKET_MEMREG", .errnos = {
		EINVAL, EBUSY, ENOBUFS, EFAULT, ENOMEM, E2BIG } },
	[C_RX_RING] = { "PACKET_RX_RING", .errnos = {
		EINVAL, EBUSY, EFAULT, ENOMEM, E2BIG, EACCES } },
	[C_TX_RING] = { "PACKET_TX_RING", .errnos = {
		EINVAL, EBUSY, EFAULT, ENOMEM, E2BIG, EACCES } },
	[C_ZEROCOPY] = { "PACKET_ZEROCOPY", .errnos = {
		EINVAL, EPERM, EOPNOTSUPP, ENXIO, EBUSY, EMSGSIZE, ENOMEM } },
	[C_BIND] = { "bind" },
	[C_MMAP] = { "mmap", .errnos = { EINVAL, EACCES, ENODEV, ENOMEM,
		EPERM } },
	[C_MUNMAP] = { "munmap" },
	[C_MREMAP] = { "mremap" },
	[C_MPROTECT] = { "mprotect" },
	[C_MADVISE] = { "madvise" },
	[C_KICK] = { "sendto, ring" },
	[C_SEND] = { "sendmsg" },
	[C_RECV] = { "recvmsg" },
	[C_POLL] = { "poll" },
	[C_EPOLL] = { "epoll_ctl" },
	[C_FANOUT] = { "PACKET_FANOUT" },
	[C_FANOUT_DATA] = { "PACKET_FANOUT_DATA" },
	[C_MEMBERSHIP] = { "PACKET_*_MEMBERSHIP" },
	[C_OPTION] = { "other PACKET_ option" },
	[C_SOL_OPTION] = { "SOL_SOCKET option" },
	[C_BUSY_POLL] = { "SO_BUSY_POLL" },
	[C_GETOPT] = { "getsockopt" },
	[C_STATISTICS] = { "PACKET_STATISTICS" },
	[C_FILTER] = { "SO_ATTACH_FILTER" },
	[C_FILTER_BPF] = { "SO_ATTACH_BPF" },
	[C_FILTER_DETACH] = { "SO_DETACH_FILTER" },
	[C_IOCTL] = { "ioctl" },
	[C_GETNAME] = { "getsockname" },
	[C_DIAG] = { "packet_diag" },
	[C_PROC] = { "/proc/net/packet" },
	[C_FORK] = { "fork" },
	[C_KILL] = { "kill -9" },
	[C_PASS] = { "SCM_RIGHTS, send" },
	[C_TAKE] = { "SCM_RIGHTS, receive" },
	[C_XSK] = { "AF_XDP bind" },
	[C_LINK_ADD] = { "new link" },
	[C_LINK_DEL] = { "delete link" },
	[C_LINK_UP] = { "link up" },
	[C_LINK_DOWN] = { "link down" },
	[C_MTU] = { "MTU" },
	[C_CHANNELS] = { "ethtool -L" },
	[C_RING_SIZE] = { "ethtool -G", .optional = true },
	[C_GRO] = { "ethtool -K gro" },
	[C_XDP] = { "XDP attach" },
	[C_XDP_DETACH] = { "XDP detach" },
	[C_NETNS] = { "netns move" },
	[C_PROMISC] = { "promiscuous" },
	[C_QDISC] = { "qdisc" },
	[C_QDISC_DEL] = { "delete qdisc" },
	[C_TUN_WRITE] = { "tun write" },
	[C_TUN_READ] = { "tun read" },
	[C_TRAFFIC] = { "packets sent" },
	[C_FAULT] = { "failed allocation", .optional = true },
};

/* For all processes */
static unsigned long (*counts)[NR_ERRNOS];

void counts_init(void)
{
	counts = mmap(NULL, NR_CALLS * sizeof(*counts), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (counts == MAP_FAILED)
		exit(1);
}

long did(enum call call, long ret)
{
	unsigned int err = ret < 0 ? -ret : 0;

	if (err >= NR_ERRNOS)
		err = NR_ERRNOS - 1;
	__atomic_fetch_add(&counts[call][err], 1, __ATOMIC_RELAXED);
	return ret;
}

long sys(enum call call, long ret)
{
	return did(call, ret == -1 ? -errno : ret);
}

unsigned long counts_total(void)
{
	unsigned long sum = 0;
	unsigned int i, err;

	for (i = 0; i < NR_CALLS; i++)
		for (err = 0; err < NR_ERRNOS; err++)
			sum += counts[i][err];
	return sum;
}

static bool is_documented(const struct call_info *info, unsigned int err)
{
	unsigned int i;

	if (!info->errnos[0] || err == EBADF || err == ENOTSOCK ||
	    err == ENOPROTOOPT || err == EFAULT)
		return true;
	for (i = 0; i < ARRAY_SIZE(info->errnos); i++)
		if (info->errnos[i] == err)
			return true;
	return false;
}

int counts_report(bool all)
{
	unsigned int i, err, k;
	int wrong = 0;

	printf("%-24s %10s %10s  refused with\n", "call", "times", "succeeded");
	for (i = 0; i < NR_CALLS; i++) {
		const struct call_info *info = &calls[i];
		unsigned long sum = 0;

		for (err = 0; err < NR_ERRNOS; err++)
			sum += counts[i][err];
		printf("%-24s %10lu %10lu ", info->name, sum, counts[i][0]);
		for (err = 1; err < NR_ERRNOS; err++)
			if (counts[i][err])
				printf(" %s %lu", strerrorname_np(err),
				       counts[i][err]);
		for (k = 0; k < ARRAY_SIZE(info->errnos); k++)
			if (info->errnos[k] && !counts[i][info->errnos[k]])
				printf(" (%s never)",
				       strerrorname_np(info->errnos[k]));
		printf("\n");
	}
	for (i = 0; i < NR_CALLS; i++) {
		if (all && !calls[i].optional && !counts[i][0]) {
			printf("not ok: %s has never succeeded\n",
			       calls[i].name);
			wrong++;
		}
		for (err = 1; err < NR_ERRNOS; err++) {
			if (!counts[i][err] || is_documented(&calls[i], err))
				continue;
			printf("not ok: %s fails with %s, which is not documented\n",
			       calls[i].name, strerrorname_np(err));
			wrong++;
		}
	}
	return wrong;
}
