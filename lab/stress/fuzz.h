/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fuzzer of packet sockets, mainly of V4. A *round* is a process in a new
 * network namespace, in which *workers* do *steps*: most of them one system
 * call. A step depends only on the seed of the round, the worker and the number
 * of the step.
 *
 * All workers share sockets in slots (a slot is the number of a file
 * descriptor), a window of address space for the rings of each slot, areas of
 * memory for packets, and devices with fixed names.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include "net.h"
#include "rnd.h"

#include <errno.h>
#include <stddef.h>
#include <sys/types.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* ---- calls and their results ---- */

enum call {
	C_SOCKET, C_CLOSE, C_DUP, C_VERSION, C_MEMREG, C_RX_RING, C_TX_RING,
	C_ZEROCOPY, C_BIND, C_MMAP, C_MUNMAP, C_MREMAP, C_MPROTECT, C_MADVISE,
	C_KICK, C_SEND, C_RECV, C_POLL, C_EPOLL, C_FANOUT, C_FANOUT_DATA,
	C_MEMBERSHIP, C_OPTION, C_SOL_OPTION, C_BUSY_POLL, C_GETOPT,
	C_STATISTICS, C_FILTER, C_FILTER_BPF, C_FILTER_DETACH, C_IOCTL,
	C_GETNAME, C_DIAG, C_PROC, C_FORK, C_KILL, C_PASS, C_TAKE, C_XSK,
	C_LINK_ADD, C_LINK_DEL, C_LINK_UP, C_LINK_DOWN, C_MTU, C_CHANNELS,
	C_RING_SIZE, C_GRO, C_XDP, C_XDP_DETACH, C_NETNS, C_PROMISC, C_QDISC,
	C_QDISC_DEL, C_TUN_WRITE, C_TUN_READ, C_TRAFFIC, C_FAULT,
	NR_CALLS
};

/* Counts a call; @ret is its result or, below 0, the errno. Returns @ret. */
long did(enum call call, long ret);
/* The same as did(), for the result of a libc function */
long sys(enum call call, long ret);
void counts_init(void);
unsigned long counts_total(void);
/* Prints all results; returns the number of faults: calls that failed with an
 * undocumented errno and, with @all, calls that never succeeded.
 */
int counts_report(bool all);

/* ---- a round ---- */

#define NR_SLOTS	8
#define SLOT_FD		100
#define WINDOW		(2UL << 20)
#define NR_AREAS	4
#define AREA		(1UL << 20)
#define NR_PROGS	16

struct slot {
	/* The assumed state; another thread may have changed it. */
	unsigned int rx_nr, tx_nr;
	unsigned int rx_pos, tx_pos;	/* next to post */
	unsigned int nr_frames;
	unsigned int frame_size;	/* at least */
};

struct round {
	uint64_t seed;
	bool faults;			/* there is fault injection */
	struct slot slots[NR_SLOTS];
	char *windows;			/* NR_SLOTS * WINDOW */
	char *areas;			/* NR_AREAS * AREA */
	char *hole;			/* unmapped memory */
	int home, away;			/* network namespaces */
	int progs[NR_PROGS];		/* of XDP */
	unsigned int nr_progs;
	int filter;			/* of eBPF, for sockets */
	int unix_fds[2];
	int epoll;
	int tun;
	bool ports;			/* hardware is present: fzp0, fzp1 */
};

extern struct round rd;

struct step {
	const char *name;
	unsigned int weight;
	void (*fn)(struct rnd *r);
};

struct step_kind {
	const char *name;
	const struct step *steps;
	unsigned int nr_steps;
	unsigned int percent;		/* of the steps of other workers */
	bool faults;			/* allocations may be made to fail */
};

extern const struct step_kind sock_kind, dev_kind, ring_kind, traffic_kind,
	proc_kind;

/* A step of this kind, selected by weight */
const struct step *step_choose(const struct step_kind *kind, struct rnd *r);

static inline int slot_fd(unsigned int slot)
{
	return SLOT_FD + slot;
}

static inline char *slot_window(unsigned int slot)
{
	return rd.windows + slot * WINDOW;
}

/* ---- devices ---- */

#define NR_DEVS		10

extern const char * const dev_names[NR_DEVS];

/* Creates missing devices. */
void devs_make(void);
const char *dev_any(struct rnd *r);
/* One with zero-copy mode, if present */
const char *dev_zc(struct rnd *r);
int dev_index(const char *name);

/* ---- memory ---- */

int mem_init(void);
int mem_map_anonymous(void *addr, size_t len);
/* Posts valid frames on both rings of a slot. */
void mem_post(struct rnd *r, unsigned int slot);

#endif
