// SPDX-License-Identifier: GPL-2.0
/* The fuzzer's steps on sockets: creation, options, queries and use. */

#define _GNU_SOURCE
#include "fuzz.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/errqueue.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_xdp.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#ifndef AF_XDP
#define AF_XDP		44
#endif
#ifndef SOL_XDP
#define SOL_XDP		283
#endif

#define PAGE		4096UL

/* A future version; this kernel knows the first eight bytes. */
struct req4 {
	int mr_fd;
	unsigned int desc_nr;
	uint32_t flags;
	uint32_t reserved;
};

/* ---- creation ---- */

static int new_socket(struct rnd *r, unsigned int slot, int type, int proto)
{
	int fd = sys(C_SOCKET, socket(AF_PACKET, type | SOCK_CLOEXEC,
				      htons(proto)));
	struct timeval timeout = { .tv_usec = 1000 << rnd(r, 8) };

	if (fd < 0)
		return fd;
	/* Mostly with a timeout */
	if (!one_in(r, 16))
		sys(C_SOL_OPTION, setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO,
					     &timeout, sizeof(timeout)));
	memset(&rd.slots[slot], 0, sizeof(rd.slots[slot]));
	/* This closes the old socket while others use it. */
	sys(C_DUP, dup3(fd, slot_fd(slot), O_CLOEXEC));
	close(fd);
	return 0;
}

static void step_socket(struct rnd *r)
{
	static const int protos[] = { 0, 0, 0, ETH_P_ALL, ETH_P_IP, 0xffff };

	new_socket(r, rnd(r, NR_SLOTS), one_in(r, 8) ? SOCK_DGRAM : SOCK_RAW,
		   PICK(r, protos));
}

static void step_close(struct rnd *r)
{
	sys(C_CLOSE, close(slot_fd(rnd(r, NR_SLOTS))));
}

static void step_dup(struct rnd *r)
{
	unsigned int from = rnd(r, NR_SLOTS), to = rnd(r, NR_SLOTS);

	if (sys(C_DUP, dup3(slot_fd(from), slot_fd(to), O_CLOEXEC)) >= 0)
		rd.slots[to] = rd.slots[from];
}

/* ---- options ---- */

/* Sometimes the option has a wrong length, or a bad pointer. */
static int set(struct rnd *r, enum call call, unsigned int slot, int level,
	       int name, const void *val, unsigned int len)
{
	static const int odd[] = { 0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 24, 25,
		32, 63, 64, 4096, 0x7fffffff, -1 };
	char buf[8192];
	int asked = len;

	memset(buf, one_in(r, 4) ? 0xff : 0, sizeof(buf));
	memcpy(buf, val, len);
	if (one_in(r, 12))
		asked = PICK(r, odd);
	if (one_in(r, 48))
		return sys(call, setsockopt(slot_fd(slot), level, name,
					    rd.hole, asked));
	return sys(call, setsockopt(slot_fd(slot), level, name, buf, asked));
}

static int set_int(struct rnd *r, enum call call, unsigned int slot, int level,
		   int name, int val)
{
	return set(r, call, slot, level, name, &val, sizeof(val));
}

static int set_version(struct rnd *r, unsigned int slot)
{
	static const int versions[] = { TPACKET_V4, TPACKET_V4, TPACKET_V4,
		TPACKET_V1, TPACKET_V2, TPACKET_V3, 4, -1 };

	return set_int(r, C_VERSION, slot, SOL_PACKET, PACKET_VERSION,
		       PICK(r, versions));
}

static void step_version(struct rnd *r)
{
	set_version(r, rnd(r, NR_SLOTS));
}

static int set_memreg(struct rnd *r, unsigned int slot, bool good)
{
	static const uint32_t sizes[] = { 2048, 2048, 4096, 0, 1, 1024, 3000,
		8192, 0x80000000 };
	static const uint32_t units[] = { 64, 64, 128, 256, 1024, 2048, 4096,
		8192, 32, 96 };
	static const uint32_t unit_sizes[] = { 128, 192, 256, 512, 1024, 2048,
		2368, 4032, 4096, 64, 2400, 2049 };
	static const uint32_t headrooms[] = { 0, 0, 64, 1, 256, 1000, 1984,
		1985, 4032, 0x7fffffff, 0xffffffff };
	struct tpacket_memreg_req req = {
		.addr = (uintptr_t)rd.areas + rnd(r, NR_AREAS) * AREA,
		.len = AREA,
		.frame_size = 2048 << rnd(r, 2),
	};
	int err;

	if (one_in(r, 4))
		req.len = PAGE << rnd(r, 8);
	if (one_in(r, 2))
		req.flags = TP4_MEMREG_SHARED;
	if (one_in(r, 3)) {
		req.frame_unit = units[rnd(r, good ? 6 : ARRAY_SIZE(units))];
		req.frame_size = unit_sizes[rnd(r, good ? 9 :
						ARRAY_SIZE(unit_sizes))];
	}
	if (!good) {
		if (one_in(r, 12))
			req.flags = rnd64(r);
		if (one_in(r, 12))
			req.frame_unit = rnd64(r) >> rnd(r, 64);
		if (!req.frame_unit || one_in(r, 4))
			req.frame_size = PICK(r, sizes);
		req.data_headroom = PICK(r, headrooms);
		switch (rnd(r, 12)) {
		case 0:
			req.addr += rnd(r, 2 * PAGE);
			break;
		case 1:
			req.addr = (uintptr_t)rd.hole;
			break;
		case 2:
			/* The area extends into unmapped memory. */
			req.addr = (uintptr_t)rd.hole - PAGE;
			break;
		case 3:
			req.addr = rnd64(r) & ~(PAGE - 1);
			break;
		case 4:
			req.len = rnd64(r) >> rnd(r, 64);
			break;
		case 5:
			req.len = PAGE * rnd(r, 10);
			break;
		case 6:
			req.len = -PAGE << rnd(r, 20);
			break;
		case 7:
			/* A ring as an area */
			req.addr = (uintptr_t)slot_window(rnd(r, NR_SLOTS));
			break;
		}
	}
	if (good)
		err = sys(C_MEMREG, setsockopt(slot_fd(slot), SOL_PACKET,
					       PACKET_MEMREG, &req,
					       sizeof(req)));
	else
		err = set(r, C_MEMREG, slot, SOL_PACKET, PACKET_MEMREG, &req,
			  sizeof(req));
	if (!err && req.frame_size) {
		rd.slots[slot].nr_frames = req.len / (req.frame_unit ? :
						      req.frame_size);
		rd.slots[slot].frame_size = req.frame_size;
	}
	return err;
}

static void step_memreg(struct rnd *r)
{
	set_memreg(r, rnd(r, NR_SLOTS), one_in(r, 2));
}

/* Without CAP_IPC_LOCK, areas above RLIMIT_MEMLOCK are refused; without
 * CAP_NET_ADMIN, zero-copy mode is.
 */
static void drop_caps(uint32_t caps)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct d[2];

	if (syscall(SYS_capget, &h, d))
		return;
	d[0].effective = d[0].permitted & ~caps;
	syscall(SYS_capset, &h, d);
}

static void step_without_caps(struct rnd *r)
{
	unsigned int slot = rnd(r, NR_SLOTS);

	drop_caps(1 << CAP_IPC_LOCK | 1 << CAP_NET_ADMIN);
	set_memreg(r, slot, true);
	set_int(r, C_ZEROCOPY, slot, SOL_PACKET, PACKET_ZEROCOPY, 1);
	drop_caps(0);
}

static int set_ring(struct rnd *r, unsigned int slot, bool tx, int mr_fd,
		    bool good)
{
	static const unsigned int nrs[] = { 0, 0, 0, 256, 512, 1024, 4096, 1,
		128, 255, 257, 1 << 20, 1 << 21, 0x80000000, 0xffffffff };
	struct slot *s = &rd.slots[slot];
	struct req4 req = {
		.mr_fd = mr_fd,
		.desc_nr = 256 << rnd(r, 3),
	};
	int err;

	if (!tx && one_in(r, 4))
		req.flags = TP4_RING_PACKED;
	if (!good) {
		req.desc_nr = PICK(r, nrs);
		if (one_in(r, 12))
			req.flags = rnd64(r);
		if (one_in(r, 12))
			req.reserved = rnd64(r);
	}
	err = set(good ? &(struct rnd){ 1 } : r, tx ? C_TX_RING : C_RX_RING,
		  slot, SOL_PACKET, tx ? PACKET_TX_RING : PACKET_RX_RING, &req,
		  one_in(r, 4) ? sizeof(req) : 8);
	/* Rings larger than the window cannot be mapped. */
	if (err || req.desc_nr > 65536)
		return err;
	if (tx) {
		s->tx_nr = req.desc_nr;
		s->tx_pos = 0;
	} else {
		s->rx_nr = req.desc_nr;
		s->rx_pos = 0;
	}
	return 0;
}

static void step_ring(struct rnd *r)
{
	unsigned int slot = rnd(r, NR_SLOTS);
	int mr_fd = slot_fd(one_in(r, 3) ? rnd(r, NR_SLOTS) : slot);

	switch (rnd(r, 24)) {
	case 0:
		mr_fd = -1;
		break;
	case 1:
		mr_fd = 0;	/* no socket */
		break;
	case 2:
		mr_fd = rd.unix_fds[0];
		break;
	}
	set_ring(r, slot, one_in(r, 2), mr_fd, one_in(r, 2));
}

/* A ring of another version */
static void step_old_ring(struct rnd *r)
{
	struct tpacket_req3 req = {
		.tp_block_size = PAGE << rnd(r, 3),
		.tp_block_nr = 1 + rnd(r, 8),
		.tp_frame_size = 2048,
		.tp_retire_blk_tov = 1 + rnd(r, 10),
	};
	unsigned int slot = rnd(r, NR_SLOTS);
	bool tx = one_in(r, 2);

	req.tp_frame_nr = req.tp_block_size / 2048 * req.tp_block_nr;
	set_int(r, C_VERSION, slot, SOL_PACKET, PACKET_VERSION, rnd(r, 3));
	set(r, C_OPTION, slot, SOL_PACKET, tx ? PACKET_TX_RING : PACKET_RX_RING,
	    &req, sizeof(req));
}

static void step_zerocopy(struct rnd *r)
{
	static const int values[] = { 0, 0, 1, 1, 1, 2, 3, 4, 5, -1,
		0x7fffffff };

	set_int(r, C_ZEROCOPY, rnd(r, NR_SLOTS), SOL_PACKET, PACKET_ZEROCOPY,
		PICK(r, values));
}

static void step_fanout(struct rnd *r)
{
	static const unsigned int flags[] = { 0, 0, PACKET_FANOUT_FLAG_ROLLOVER,
		PACKET_FANOUT_FLAG_UNIQUEID, PACKET_FANOUT_FLAG_DEFRAG,
		PACKET_FANOUT_FLAG_IGNORE_OUTGOING };
	struct {
		uint32_t arg, max_num_members;
	} args = {
		.arg = rnd(r, 3) | (rnd(r, 9) | PICK(r, flags)) << 16,
		.max_num_members = rnd(r, 5),
	};

	set(r, C_FANOUT, rnd(r, NR_SLOTS), SOL_PACKET, PACKET_FANOUT, &args,
	    one_in(r, 2) ? 4 : 8);
}

static void step_fanout_data(struct rnd *r)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};
	struct sock_fprog prog = { .len = ARRAY_SIZE(code), .filter = code };
	unsigned int slot = rnd(r, NR_SLOTS);
	bool classic = one_in(r, 2);

	/* Only groups of these types accept it */
	if (!one_in(r, 3))
		set_int(r, C_FANOUT, slot, SOL_PACKET, PACKET_FANOUT,
			(5 + classic) | (classic ? PACKET_FANOUT_CBPF :
					 PACKET_FANOUT_EBPF) << 16);
	if (classic)
		set(r, C_FANOUT_DATA, slot, SOL_PACKET, PACKET_FANOUT_DATA,
		    &prog, sizeof(prog));
	else
		set_int(r, C_FANOUT_DATA, slot, SOL_PACKET, PACKET_FANOUT_DATA,
			rd.filter);
}

static void step_membership(struct rnd *r)
{
	struct packet_mreq mreq = {
		.mr_ifindex = dev_index(dev_any(r)),
		.mr_type = rnd(r, 5),
		.mr_alen = one_in(r, 8) ? rnd(r, 64) : 6,
		.mr_address = { one_in(r, 2), 0, 0x5e, rnd(r, 3) },
	};

	set(r, C_MEMBERSHIP, rnd(r, NR_SLOTS), SOL_PACKET,
	    one_in(r, 2) ? PACKET_ADD_MEMBERSHIP : PACKET_DROP_MEMBERSHIP,
	    &mreq, sizeof(mreq));
}

static void step_option(struct rnd *r)
{
	static const struct {
		int name, max;
	} options[] = {
		{ PACKET_RESERVE, 4096 }, { PACKET_LOSS, 2 },
		{ PACKET_VNET_HDR, 2 }, { PACKET_VNET_HDR_SZ, 16 },
		{ PACKET_QDISC_BYPASS, 2 }, { PACKET_COPY_THRESH, 100 },
		{ PACKET_TIMESTAMP, 128 }, { PACKET_TX_HAS_OFF, 2 },
		{ PACKET_AUXDATA, 2 }, { PACKET_ORIGDEV, 2 },
		{ PACKET_IGNORE_OUTGOING, 2 }, { 27, 2 }, { 99, 2 },
	};
	unsigned int i = rnd(r, ARRAY_SIZE(options));

	set_int(r, C_OPTION, rnd(r, NR_SLOTS), SOL_PACKET, options[i].name,
		one_in(r, 8) ? (int)rnd64(r) : (int)rnd(r, options[i].max));
}

static void step_sol_option(struct rnd *r)
{
	static const struct {
		int name, max;
	} options[] = {
		{ SO_SNDBUF, 100000 }, { SO_RCVBUF, 100000 },
		{ SO_SNDBUFFORCE, 1 << 23 }, { SO_PRIORITY, 7 },
		{ SO_MARK, 5 }, { SO_TIMESTAMP, 2 }, { SO_TIMESTAMPNS, 2 },
		{ SO_TIMESTAMPING, 1 << 15 }, { SO_RXQ_OVFL, 2 },
		{ SO_NOFCS, 2 }, { SO_SELECT_ERR_QUEUE, 2 }, { SO_KEEPALIVE, 2 },
		{ SO_PEEK_OFF, 2 }, { SO_INCOMING_CPU, 4 }, { SO_ZEROCOPY, 2 },
		{ SO_BROADCAST, 2 }, { SO_RCVLOWAT, 2 }, { SO_WIFI_STATUS, 2 },
	};
	struct sock_txtime txtime = { CLOCK_MONOTONIC, rnd(r, 4) };
	unsigned int i = rnd(r, ARRAY_SIZE(options)), slot = rnd(r, NR_SLOTS);

	if (one_in(r, 10))
		set(r, C_SOL_OPTION, slot, SOL_SOCKET, SO_TXTIME, &txtime,
		    sizeof(txtime));
	else
		set_int(r, C_SOL_OPTION, slot, SOL_SOCKET, options[i].name,
			rnd(r, options[i].max));
}

static void step_busy_poll(struct rnd *r)
{
	unsigned int slot = rnd(r, NR_SLOTS);

	set_int(r, C_BUSY_POLL, slot, SOL_SOCKET, SO_BUSY_POLL, rnd(r, 100));
	set_int(r, C_BUSY_POLL, slot, SOL_SOCKET, SO_PREFER_BUSY_POLL,
		rnd(r, 2));
	set_int(r, C_BUSY_POLL, slot, SOL_SOCKET, SO_BUSY_POLL_BUDGET,
		1 + rnd(r, one_in(r, 2) ? 2 : 64));
}

static void step_filter(struct rnd *r)
{
	static const unsigned int lens[] = { 0, 1, 14, 60, 1000, 0xffffffff };
	struct sock_filter code[] = {
		BPF_STMT(BPF_RET | BPF_K, PICK(r, lens)),
	};
	struct sock_filter vlan[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS,
			 SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT),
		BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, 2000),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};
	struct sock_fprog prog = { .len = ARRAY_SIZE(code), .filter = code };
	unsigned int slot = rnd(r, NR_SLOTS);

	if (one_in(r, 4)) {
		prog.filter = vlan;
		prog.len = ARRAY_SIZE(vlan);
	}
	switch (rnd(r, 4)) {
	case 0:
		set(r, C_FILTER, slot, SOL_SOCKET, SO_ATTACH_FILTER, &prog,
		    sizeof(prog));
		break;
	case 1:
		set_int(r, C_FILTER_BPF, slot, SOL_SOCKET, SO_ATTACH_BPF,
			rd.filter);
		break;
	default:
		set_int(r, C_FILTER_DETACH, slot, SOL_SOCKET, SO_DETACH_FILTER,
			0);
	}
}

static void step_getsockopt(struct rnd *r)
{
	unsigned int slot = rnd(r, NR_SLOTS);
	socklen_t len = one_in(r, 4) ? rnd(r, 256) : 128;
	int name = 1 + rnd(r, 28);
	char buf[256];

	if (one_in(r, 2))
		name = PACKET_STATISTICS;
	sys(name == PACKET_STATISTICS ? C_STATISTICS : C_GETOPT,
	    getsockopt(slot_fd(slot), SOL_PACKET, name,
		       one_in(r, 32) ? rd.hole : buf, &len));
	if (one_in(r, 2)) {
		len = sizeof(int);
		sys(C_GETOPT, getsockopt(slot_fd(slot), SOL_SOCKET, SO_ERROR,
					 buf, &len));
	}
}

/* ---- mappings ---- */

static int map_rings(struct rnd *r, unsigned int slot, bool good)
{
	const struct slot *s = &rd.slots[slot];
	size_t len = (s->rx_nr + s->tx_nr) * 16UL;
	int prot = PROT_READ | PROT_WRITE;
	off_t offset = 0;
	void *p;

	if (!len || len > WINDOW - PAGE)
		len = PAGE;
	if (one_in(r, 2))
		len += PAGE;
	if (!good) {
		switch (rnd(r, 6)) {
		case 0:
			len = PAGE * (1 + rnd(r, 64));
			break;
		case 1:
			len += PAGE;
			break;
		case 2:
			offset = PAGE * rnd(r, 3);
			break;
		case 3:
			prot = PROT_READ;
			break;
		}
	}
	p = mmap(slot_window(slot), len, prot,
		 MAP_FIXED | (one_in(r, 16) ? MAP_PRIVATE : MAP_SHARED),
		 slot_fd(slot), offset);
	return sys(C_MMAP, p == MAP_FAILED ? -1 : 0);
}

static void step_mmap(struct rnd *r)
{
	map_rings(r, rnd(r, NR_SLOTS), !one_in(r, 4));
}

static void step_munmap(struct rnd *r)
{
	unsigned int slot = rnd(r, NR_SLOTS);
	char *p = slot_window(slot);
	size_t len = WINDOW;

	/* Only a part: one or two mappings remain. */
	if (one_in(r, 4)) {
		p += PAGE * rnd(r, 4);
		len = PAGE * (1 + rnd(r, 4));
	}
	sys(C_MUNMAP, munmap(p, len));
	/* Keeps the window from other calls of mmap() */
	mem_map_anonymous(p, len);
}

static void step_vm(struct rnd *r)
{
	char *p = slot_window(rnd(r, NR_SLOTS)) + PAGE * rnd(r, 3);
	static const int advice[] = { MADV_DONTNEED, MADV_NORMAL, MADV_DONTFORK,
		MADV_DOFORK, MADV_DONTDUMP, MADV_REMOVE, MADV_POPULATE_WRITE };
	char *to;

	switch (rnd(r, 3)) {
	case 0:
		to = mremap(p, PAGE, PAGE * (1 + rnd(r, 2)), MREMAP_MAYMOVE);
		sys(C_MREMAP, to == MAP_FAILED ? -1 : 0);
		if (to != MAP_FAILED && to != p) {
			munmap(to, PAGE * 2);
			mem_map_anonymous(p, PAGE);
		}
		break;
	case 1:
		sys(C_MADVISE, madvise(p, PAGE * (1 + rnd(r, 4)),
				       PICK(r, advice)));
		break;
	case 2:
		sys(C_MPROTECT, mprotect(p, PAGE, PROT_READ));
		sys(C_MPROTECT, mprotect(p, PAGE, PROT_READ | PROT_WRITE));
		break;
	}
}

/* The program unmaps its area; the pages stay pinned. */
static void step_unmap_area(struct rnd *r)
{
	char *p = rd.areas + rnd(r, NR_AREAS) * AREA + PAGE * rnd(r, 200);

	if (one_in(r, 2)) {
		sys(C_MADVISE, madvise(p, PAGE * 8, MADV_DONTNEED));
		return;
	}
	sys(C_MUNMAP, munmap(p, PAGE * 8));
	mem_map_anonymous(p, PAGE * 8);
}

/* ---- use ---- */

static int bind_slot(struct rnd *r, unsigned int slot, const char *name,
		     int proto)
{
	struct sockaddr_ll ll = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(proto),
		.sll_ifindex = dev_index(name),
	};
	socklen_t len = one_in(r, 64) ? rnd(r, 24) : sizeof(ll);

	if (one_in(r, 32))
		ll.sll_ifindex = one_in(r, 2) ? 0 : (int)rnd64(r);
	return sys(C_BIND, bind(slot_fd(slot), (void *)&ll, len));
}

static void step_bind(struct rnd *r)
{
	static const int protos[] = { ETH_P_ALL, ETH_P_ALL, ETH_P_ALL, 0,
		ETH_P_IP };

	bind_slot(r, rnd(r, NR_SLOTS), one_in(r, 2) ? dev_any(r) : dev_zc(r),
		  PICK(r, protos));
}

/* A queue that feeds a fanout group: sockets of one device join it, and one of
 * them enters zero-copy mode. The others may have the same area or another one.
 */
static void step_feed(struct rnd *r)
{
	int group = rnd(r, 3) | rnd(r, 9) << 16, mr_fd;
	unsigned int i, slot = rnd(r, NR_SLOTS);
	const char *dev = dev_zc(r);

	mr_fd = slot_fd(rnd(r, NR_SLOTS));
	for (i = 0; i < 3; i++) {
		if (i)
			slot = rnd(r, NR_SLOTS);
		set_ring(r, slot, false, one_in(r, 2) ? mr_fd : slot_fd(slot),
			 true);
		bind_slot(r, slot, dev, ETH_P_ALL);
		set_int(r, C_FANOUT, slot, SOL_PACKET, PACKET_FANOUT, group);
	}
	set_int(r, C_ZEROCOPY, slot, SOL_PACKET, PACKET_ZEROCOPY,
		1 + rnd(r, 2));
}

static void step_kick(struct rnd *r)
{
	struct sockaddr_ll ll = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_IP),
		.sll_halen = 6,
	};
	unsigned int slot = rnd(r, NR_SLOTS);
	int flags = one_in(r, 8) ? 0 : MSG_DONTWAIT;
	bool addr = one_in(r, 12);

	if (addr)
		ll.sll_ifindex = dev_index(dev_any(r));
	sys(C_KICK, sendto(slot_fd(slot), NULL, 0, flags,
			   addr ? (void *)&ll : NULL,
			   addr ? sizeof(ll) - rnd(r, 2) : 0));
}

/* The main loop of a program */
static void step_burst(struct rnd *r)
{
	unsigned int slot = rnd(r, NR_SLOTS), n = 1 + rnd(r, 64);
	struct pollfd p = { .fd = slot_fd(slot), .events = POLLIN | POLLOUT };

	while (n--) {
		mem_post(r, slot);
		if (one_in(r, 8))
			sys(C_POLL, poll(&p, 1, 0));
		else
			sys(C_KICK, sendto(slot_fd(slot), NULL, 0, MSG_DONTWAIT,
					   NULL, 0));
	}
}

static void step_sendmsg(struct rnd *r)
{
	char data[2048], control[128] = "";
	struct iovec iov = { data, 1 + rnd(r, sizeof(data)) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = rnd(r, 2),
		.msg_control = control,
		.msg_controllen = CMSG_SPACE(8),
	};
	static const int types[] = { SO_MARK, SO_TXTIME, SO_TIMESTAMPING,
		SO_PRIORITY, 1000 };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	uint64_t value = rnd64(r) >> rnd(r, 64);

	memset(data, 0x11, sizeof(data));
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = PICK(r, types);
	cmsg->cmsg_len = CMSG_LEN(one_in(r, 2) ? 4 : 8);
	memcpy(CMSG_DATA(cmsg), &value, sizeof(value));
	if (one_in(r, 2))
		msg.msg_controllen = 0;
	sys(C_SEND, sendmsg(slot_fd(rnd(r, NR_SLOTS)), &msg,
			    one_in(r, 8) ? 0 : MSG_DONTWAIT));
}

static void step_recv(struct rnd *r)
{
	char data[2048], control[256];
	struct iovec iov = { data, sizeof(data) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};

	sys(C_RECV, recvmsg(slot_fd(rnd(r, NR_SLOTS)), &msg, MSG_DONTWAIT |
			    (one_in(r, 4) ? MSG_ERRQUEUE : 0)));
}

static void step_poll(struct rnd *r)
{
	struct pollfd p[4];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(p); i++)
		p[i] = (struct pollfd) {
			.fd = slot_fd(rnd(r, NR_SLOTS)),
			.events = 1 + rnd(r, 7),
		};
	sys(C_POLL, poll(p, 1 + rnd(r, 4), one_in(r, 16) ? 2 : 0));
}

static void step_epoll(struct rnd *r)
{
	static const int ops[] = { EPOLL_CTL_ADD, EPOLL_CTL_ADD, EPOLL_CTL_MOD,
		EPOLL_CTL_DEL };
	struct epoll_event events[8], ev = {
		.events = EPOLLIN | EPOLLOUT | (one_in(r, 2) ? EPOLLET : 0),
	};

	sys(C_EPOLL, epoll_ctl(rd.epoll, PICK(r, ops),
			       slot_fd(rnd(r, NR_SLOTS)), &ev));
	sys(C_POLL, epoll_wait(rd.epoll, events, ARRAY_SIZE(events), 0));
}

static void step_ioctl(struct rnd *r)
{
	static const int cmds[] = { SIOCINQ, SIOCOUTQ, SIOCGSTAMP_OLD,
		SIOCGIFINDEX, 0x12345678 };
	struct ifreq ifr = {};

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", dev_any(r));
	sys(C_IOCTL, ioctl(slot_fd(rnd(r, NR_SLOTS)), PICK(r, cmds), &ifr));
}

static void step_getname(struct rnd *r)
{
	struct sockaddr_ll ll;
	socklen_t len = sizeof(ll);

	sys(C_GETNAME, getsockname(slot_fd(rnd(r, NR_SLOTS)), (void *)&ll,
				   &len));
}

/* ---- a correct program, in one step ---- */

static void step_good(struct rnd *r)
{
	unsigned int slot = rnd(r, NR_SLOTS), other = rnd(r, NR_SLOTS);
	int version = TPACKET_V4, n = one_in(r, 3) ? 1 + rnd(r, 4) : 1;
	int fd = slot_fd(slot), mr_fd = fd;
	const char *dev = one_in(r, 5) ? dev_any(r) : dev_zc(r);
	bool zc = !one_in(r, 3), early = one_in(r, 2);
	unsigned int rings = one_in(r, 4) ? 1 + rnd(r, 2) : 3;

	/* Gives a correct program some time. */
	if (rd.slots[slot].nr_frames && !one_in(r, 4))
		return;
	if (new_socket(r, slot, SOCK_RAW, 0) < 0)
		return;
	sys(C_VERSION, setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version,
				  sizeof(version)));
	if (one_in(r, 3) && rd.slots[other].nr_frames) {
		mr_fd = slot_fd(other);
		rd.slots[slot].nr_frames = rd.slots[other].nr_frames;
		rd.slots[slot].frame_size = rd.slots[other].frame_size;
	} else {
		set_memreg(r, slot, true);
	}
	if (rings & 1)
		set_ring(r, slot, false, mr_fd, true);
	if (rings & 2)
		set_ring(r, slot, true, mr_fd, true);
	map_rings(r, slot, true);
	mem_post(r, slot);
	if (zc && early)
		sys(C_ZEROCOPY, setsockopt(fd, SOL_PACKET, PACKET_ZEROCOPY, &n,
					   sizeof(n)));
	bind_slot(r, slot, dev, ETH_P_ALL);
	if (zc && !early)
		sys(C_ZEROCOPY, setsockopt(fd, SOL_PACKET, PACKET_ZEROCOPY, &n,
					   sizeof(n)));
	sys(C_KICK, sendto(fd, NULL, 0, MSG_DONTWAIT, NULL, 0));
}

/* ---- AF_XDP, which uses the same queues ---- */

static void step_xsk(struct rnd *r)
{
	struct xdp_umem_reg umem = {
		.addr = (uintptr_t)rd.areas + rnd(r, NR_AREAS) * AREA,
		.len = AREA,
		.chunk_size = 2048 << rnd(r, 2),
	};
	struct sockaddr_xdp addr = {
		.sxdp_family = AF_XDP,
		.sxdp_flags = one_in(r, 2) ? XDP_ZEROCOPY : XDP_COPY,
		.sxdp_ifindex = dev_index(dev_zc(r)),
		.sxdp_queue_id = rnd(r, 4),
	};
	int i, nr = 64, fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &umem, sizeof(umem));
	for (i = 0; i < 4; i++) {
		static const int rings[] = { XDP_UMEM_FILL_RING,
			XDP_UMEM_COMPLETION_RING, XDP_RX_RING, XDP_TX_RING };

		setsockopt(fd, SOL_XDP, rings[i], &nr, sizeof(nr));
	}
	sys(C_XSK, bind(fd, (void *)&addr, sizeof(addr)));
	if (one_in(r, 2))
		usleep(rnd(r, 2000));
	close(fd);
}

static const struct step sock_steps[] = {
	{ "good program", 60, step_good },
	{ "socket", 6, step_socket },
	{ "close", 8, step_close },
	{ "dup", 2, step_dup },
	{ "PACKET_VERSION", 8, step_version },
	{ "PACKET_MEMREG", 12, step_memreg },
	{ "without capabilities", 4, step_without_caps },
	{ "rings", 24, step_ring },
	{ "rings of V1 to V3", 3, step_old_ring },
	{ "PACKET_ZEROCOPY", 24, step_zerocopy },
	{ "PACKET_FANOUT", 6, step_fanout },
	{ "PACKET_FANOUT_DATA", 3, step_fanout_data },
	{ "a queue that feeds a group", 12, step_feed },
	{ "memberships", 8, step_membership },
	{ "options", 12, step_option },
	{ "SOL_SOCKET options", 12, step_sol_option },
	{ "SO_BUSY_POLL", 4, step_busy_poll },
	{ "filters", 10, step_filter },
	{ "getsockopt", 12, step_getsockopt },
	{ "mmap", 16, step_mmap },
	{ "munmap", 8, step_munmap },
	{ "mremap, madvise, mprotect", 4, step_vm },
	{ "munmap of an area", 3, step_unmap_area },
	{ "bind", 16, step_bind },
	{ "kick", 80, step_kick },
	{ "burst", 60, step_burst },
	{ "sendmsg", 10, step_sendmsg },
	{ "recvmsg", 10, step_recv },
	{ "poll", 40, step_poll },
	{ "epoll", 6, step_epoll },
	{ "ioctl", 3, step_ioctl },
	{ "getsockname", 3, step_getname },
	{ "AF_XDP", 3, step_xsk },
};

const struct step_kind sock_kind = {
	"sockets", sock_steps, ARRAY_SIZE(sock_steps), 100, .faults = true,
};
