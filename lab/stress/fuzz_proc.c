// SPDX-License-Identifier: GPL-2.0
/* The fuzzer's steps on processes and files, and the traffic. */

#define _GNU_SOURCE
#include "fuzz.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- processes ---- */

/* A message with room for a byte and for a file descriptor */
struct fd_msg {
	struct msghdr msg;
	struct iovec iov;
	char data;
	char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
};

static struct msghdr *fd_msg_init(struct fd_msg *m)
{
	*m = (struct fd_msg) {
		.msg.msg_iov = &m->iov,
		.msg.msg_iovlen = 1,
		.msg.msg_control = m->control,
		.msg.msg_controllen = sizeof(m->control),
		.iov = { &m->data, 1 },
	};
	return &m->msg;
}

/* Sends a socket in a message, to be received in another slot, or never. */
static void step_pass(struct rnd *r)
{
	struct fd_msg m;
	struct msghdr *msg = fd_msg_init(&m);
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg);
	int fd = slot_fd(rnd(r, NR_SLOTS));

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	sys(C_PASS, sendmsg(rd.unix_fds[0], msg, MSG_DONTWAIT));
}

static void step_take(struct rnd *r)
{
	struct fd_msg m;
	struct msghdr *msg = fd_msg_init(&m);
	struct cmsghdr *cmsg;
	int fd;

	if (sys(C_TAKE, recvmsg(rd.unix_fds[1], msg,
				MSG_DONTWAIT | MSG_CMSG_CLOEXEC)) < 0)
		return;
	cmsg = CMSG_FIRSTHDR(msg);
	if (!cmsg || cmsg->cmsg_type != SCM_RIGHTS)
		return;
	memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
	if (one_in(r, 2))
		dup3(fd, slot_fd(rnd(r, NR_SLOTS)), O_CLOEXEC);
	close(fd);
}

/* A child with all of the sockets, their rings included: it takes some steps,
 * also in another network namespace, passes sockets to and fro, and goes, or is
 * killed at it. An area is not its own unless TP4_MEMREG_SHARED is set.
 */
static void child_step(struct rnd *r)
{
	switch (rnd(r, 8)) {
	case 0:
		step_pass(r);
		break;
	case 1:
		step_take(r);
		break;
	default:
		step_choose(one_in(r, 2) ? &sock_kind : &ring_kind, r)->fn(r);
	}
}

static void step_fork(struct rnd *r)
{
	unsigned int steps = rnd(r, 30), usecs = rnd(r, 5000), ms;
	bool killed = one_in(r, 2), away = one_in(r, 3);
	uint64_t seed = rnd64(r);
	int status;
	pid_t pid;

	pid = sys(C_FORK, fork());
	if (pid < 0)
		return;
	if (!pid) {
		if (away)
			setns(rd.away, CLONE_NEWNET);
		while (steps-- || killed) {
			struct rnd own = rnd_stream(seed, 0, steps);

			child_step(&own);
		}
		_exit(0);
	}
	usleep(usecs);
	/* Nobody interrupts what the child sleeps in, but this. */
	for (ms = 0; !killed && ms < 2000; ms++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return;
		usleep(1000);
	}
	sys(C_KILL, kill(pid, SIGKILL));
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
}

static void step_diag(struct rnd *r)
{
	did(C_DIAG, packet_diag());
}

static void step_proc(struct rnd *r)
{
	int fd = open("/proc/self/net/packet", O_RDONLY | O_CLOEXEC);
	char buf[4096];
	int n = 1;

	while (fd >= 0 && n > 0)
		n = read(fd, buf, sizeof(buf));
	sys(C_PROC, fd < 0 ? -1 : n);
	close(fd);
}

static const struct step proc_steps[] = {
	{ "fork", 10, step_fork },
	{ "SCM_RIGHTS, send", 15, step_pass },
	{ "SCM_RIGHTS, receive", 15, step_take },
	{ "packet_diag", 10, step_diag },
	{ "/proc/net/packet", 5, step_proc },
};

const struct step_kind proc_kind = {
	"processes", proc_steps, ARRAY_SIZE(proc_steps), 15,
};

/* ---- traffic ---- */

/* TCP in IPv4 with a length that matches the GSO request */
static unsigned int fill_tcp(struct rnd *r, unsigned char *p, unsigned int len)
{
	uint16_t total = htons(len - ETH_HLEN), sum;
	unsigned int i, csum = 0;

	memset(p, 0xff, 6);
	memset(p + 6, 2, 6);
	p[12] = 8;
	p[13] = 0;
	memset(p + 14, 0, 40);
	p[14] = 0x45;
	memcpy(p + 16, &total, 2);
	p[22] = 64;
	p[23] = 6;
	p[26] = 10;
	p[30] = 10;
	p[33] = 1 + rnd(r, 3);
	for (i = 14; i < 34; i += 2)
		csum += p[i] << 8 | p[i + 1];
	csum = (csum & 0xffff) + (csum >> 16);
	sum = htons(~csum);
	memcpy(p + 24, &sum, 2);
	p[35] = 80;
	p[37] = rnd(r, 4);
	p[46] = 0x50;
	p[47] = 0x10;
	return len;
}

static int open_sender(const char *dev, bool vnet)
{
	struct sockaddr_ll ll = {
		.sll_family = AF_PACKET,
		.sll_ifindex = dev_index(dev),
	};
	int one = 1, fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return fd;
	if (vnet)
		setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one));
	if (bind(fd, (void *)&ll, sizeof(ll))) {
		close(fd);
		return -1;
	}
	return fd;
}

static void step_packets(struct rnd *r)
{
	static const unsigned int lens[] = { 14, 60, 64, 590, 1514, 3000, 9014 };
	unsigned char data[9014];
	int fd = open_sender(one_in(r, 2) ? dev_any(r) : dev_zc(r), false);
	unsigned int n = 1 + rnd(r, 64);

	if (fd < 0)
		return;
	fill_tcp(r, data, sizeof(data));
	/* With a tag, as another type, or unchanged */
	if (one_in(r, 3)) {
		data[12] = 0x81;
		data[15] = 42;
		data[16] = 8;
	} else if (one_in(r, 4)) {
		data[12] = rnd(r, 256);
	}
	while (n--)
		sys(C_TRAFFIC, send(fd, data, PICK(r, lens), MSG_DONTWAIT));
	close(fd);
}

/* Packets that still need segmentation or a checksum */
static void step_gso(struct rnd *r)
{
	static unsigned char data[sizeof(struct virtio_net_hdr) + 60000];
	struct virtio_net_hdr *vnet = (void *)data;
	unsigned int len = 60 + rnd(r, 59000), n = 1 + rnd(r, 4);
	int fd = open_sender(dev_zc(r), true);

	if (fd < 0)
		return;
	memset(vnet, 0, sizeof(*vnet));
	vnet->flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	vnet->csum_start = 34;
	vnet->csum_offset = 16;
	vnet->hdr_len = 54;
	if (len > 1514 || one_in(r, 4)) {
		vnet->gso_type = VIRTIO_NET_HDR_GSO_TCPV4;
		vnet->gso_size = 100 + rnd(r, 1400);
	}
	if (one_in(r, 16))
		vnet->gso_size = rnd64(r);
	fill_tcp(r, data + sizeof(*vnet), len);
	while (n--)
		sys(C_TRAFFIC, send(fd, data, sizeof(*vnet) + len,
				    MSG_DONTWAIT));
	close(fd);
}

static void step_tun_write(struct rnd *r)
{
	unsigned char data[2000];

	fill_tcp(r, data, sizeof(data));
	sys(C_TUN_WRITE, write(rd.tun, data, 14 + rnd(r, 1500)));
}

static void step_tun_read(struct rnd *r)
{
	char data[2000];

	sys(C_TUN_READ, read(rd.tun, data, sizeof(data)));
}

static const struct step traffic_steps[] = {
	{ "packets", 30, step_packets },
	{ "GSO", 15, step_gso },
	{ "tun write", 5, step_tun_write },
	{ "tun read", 5, step_tun_read },
};

const struct step_kind traffic_kind = {
	"traffic", traffic_steps, ARRAY_SIZE(traffic_steps), 20,
};
