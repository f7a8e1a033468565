/* SPDX-License-Identifier: GPL-2.0 */
/*
 * tpbench: AF_PACKET V2, V3 and V4, and AF_XDP, measured by the same program
 *
 * tpbench.c	options
 * run.c	the benchmark loops and processes
 * port.c	one socket, and a round of each benchmark
 * ring_*.c	one ring version each, behind struct ring_ops
 * ring_tx.h	common to V2 and V3
 * fanout.c	the group of --fanout
 * packet.c	packets: creation, checks and the generator
 * split.c	share of the kernel in the time
 * report.c	rates while it runs, JSON at the end
 */
#ifndef TPBENCH_H
#define TPBENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <err.h>
#include <errno.h>
#include <string.h>

#include <tpacket4.h>

#define FRAME_SIZE	2048		/* all versions */
#define MAX_BATCH	1024
#define MAX_QUEUES	64
#define FANOUT_MEMBERS	2
#define VERSION_XDP	5		/* not a version of AF_PACKET */
#define TEST_ETHERTYPE	0x88b5		/* IEEE 802: local experiments */
#define ETH_HEADER	14
#define MIN_SIZE	(ETH_HEADER + 8)	/* room for the number */

enum mode { MODE_NONE, MODE_RXDROP, MODE_TXPUSH, MODE_L2FWD };

struct config {
	int version;
	enum mode mode;
	const char *ifname[2];	/* [1]: the other end, or NULL */
	int cpu[2];		/* of the two processes; -1: any */
	unsigned int in_flight;	/* --veth: packets in flight, or 0 */
	unsigned int size;	/* bytes a packet, from MAC header to end */
	unsigned int batch;
	unsigned int ring;	/* packets of FRAME_SIZE bytes */
	unsigned int block;	/* V3: bytes a block */
	unsigned int busy_poll;	/* microseconds */
	int zerocopy;		/* V4, AF_XDP: queue pair + 1, or 0 */
	unsigned int queues;	/* V4+ZC, AF_XDP: number; 0: all */
	unsigned int first_queue;
	bool range;		/* -Q A-B, or all */
	bool skb_mode;		/* AF_XDP: not the driver's XDP */
	bool shared;		/* V4: one area for both ends */
	bool meta;		/* V4: rings with metadata */
	bool stamps;		/* V4: and a timestamp a packet */
	int fanout;		/* V4+ZC: type of the group that is fed, or -1 */
	double duration;	/* seconds; 0: no limit */
	__u64 count;		/* packets; 0: no limit */
	__u64 warmup;	/* packets before the clock starts */
	bool poll;
	bool bypass;
	bool verify;
	bool lockstep;
	bool split;
	bool promisc;
	bool quiet;
};

/* Results of --verify. A stream is numbered from any start. */
struct verify {
	__u64 next;
	bool started;
	__u64 checked;
	__u64 lost;
	__u64 reordered;
	__u64 corrupt;
	__u64 foreign;	/* not ours */
};

/* Counters of a port */
struct counters {
	__u64 packets;	/* received; or sent and completed */
	__u64 bytes;
	__u64 kicks;
	__u64 idle;		/* rounds that found nothing to do */
};

struct ring_ops;

/* One socket with its rings. */
struct port {
	const struct config *cfg;
	const struct ring_ops *ops;
	void *ring;		/* of the ring version */
	int fd;
	int promisc_fd;	/* packet socket for promiscuous mode, or -1 */
	int ifindex;
	int end;		/* which of ifname[] and cpu[] */
	unsigned int nr;	/* of the sockets of the end */
	int queue;		/* if the socket owns a queue */
	unsigned int part;	/* of the shared area */
	bool zerocopy;		/* the socket owns a queue when it is bound */
	bool rx, tx;
	unsigned int max;	/* packets of a round, at most */
	unsigned int posted;	/* txpush: sent in the last round, and */
	unsigned int lost;	/* dropped by a full queue, of those sent */
	__u64 tx_seq;	/* number of the next packet to be made */
	struct counters n;	/* without idle rounds, which run.c knows */
	struct verify verify;
};

/*
 * A ring version. Numbers returned are of packets. No call blocks, and none but
 * open() and close() enters the kernel, unless a V4 device waits to be told of
 * frames.
 */
struct ring_ops {
	/* p->fd is a packet socket, unless it is to own a queue, for which open()
	 * makes one; or else open() makes a socket and binds it
	 */
	bool is_packet;
	/* set up p->rx and p->tx */
	void (*open)(struct port *p);
	void (*close)(struct port *p);
	/* packets dropped since the last call; NULL: PACKET_STATISTICS */
	__u64 (*drops)(struct port *p);
	/* take up to max packets and give their room back at once */
	unsigned int (*rx_drop)(struct port *p, unsigned int max);
	/* put up to max test packets on the Tx ring */
	unsigned int (*tx_fill)(struct port *p, unsigned int max);
	/* take back what the kernel has sent */
	unsigned int (*tx_reap)(struct port *p);
	/* is anything on the Tx ring? */
	bool (*tx_busy)(struct port *p);
	/* must sendto() be called for it? NULL: always */
	bool (*need_kick)(struct port *p);
	/* up to max packets from Rx to Tx, MAC addresses swapped */
	unsigned int (*forward)(struct port *p, unsigned int max);
};

extern const struct ring_ops ring_v2, ring_v3, ring_v4, ring_xdp;

/* V4: make the area of --shared; to be called before fork() */
void v4_share_area(const struct config *cfg);

/* Shared by the processes of a run. */
struct shared {
	bool stop;		/* all: finish */
	bool ready;		/* the child's rings are bound */
	bool go;		/* the generator may start */
	__u64 received;		/* by the port the generator sends to */
	struct verify child_verify;
};

struct result {
	double seconds;
	double drain_seconds;	/* lockstep: of which in rx_drop() */
	double alone_seconds;	/* lockstep: a packet of the generator's alone */
	__u64 warmup;		/* packets before the clock started */
	struct counters n;
	struct verify verify;
	__u64 drops;		/* of the measured end, by its statistics */
	double idle_seconds;	/* --poll: nothing ran; less than 0: unknown */
	double user_seconds;	/* --split: of all, the program's part */
};

/* run.c */
bool has_carrier(const char *ifname);
void run(const struct config *cfg, struct result *res);

/* port.c */
void port_open(struct port *p, const struct config *cfg, int end,
	       unsigned int nr);
void port_close(struct port *p);
__u64 port_drops(struct port *p);
void port_kick(struct port *p);
unsigned int port_step(struct port *p);

/* fanout.c */
void fanout_join(struct port *p);
void fanout_feed(struct port *p);

/* split.c */
#define SPLIT_SECONDS	0.2
void split_start(void);
double split_stop(double *seconds);
double idle_seconds(void);

/* packet.c */
struct generator;
void packet_make(__u8 *data, unsigned int size, __u64 seq);
void packet_check(struct port *p, const __u8 *data, unsigned int len);
struct generator *generator_open(const struct config *cfg);
unsigned int generator_send(struct generator *g);
void generator_close(struct generator *g);

/* Ordered as fields of a packet, not as integers. */
static inline void swap_macs(__u8 *data)
{
	__u32 dst_lo, src_lo;
	__u16 dst_hi, src_hi;

	memcpy(&dst_lo, data, 4);
	memcpy(&dst_hi, data + 4, 2);
	memcpy(&src_lo, data + 6, 4);
	memcpy(&src_hi, data + 10, 2);
	memcpy(data, &src_lo, 4);
	memcpy(data + 4, &src_hi, 2);
	memcpy(data + 6, &dst_lo, 4);
	memcpy(data + 10, &dst_hi, 2);
}

/* A copy with the addresses swapped; the source stays as it is. */
static inline void copy_swapped(__u8 *to, const __u8 *from,
				unsigned int len)
{
	memcpy(to, from + 6, 6);
	memcpy(to + 6, from, 6);
	memcpy(to + 12, from + 12, len - 12);
}

/* report.c */
bool report_due(void);	/* call report_tick() */
void report_start(double duration);
bool report_tick(const struct config *cfg, __u64 packets);
void report_stop(void);
void report_json(const struct config *cfg, const struct result *res);
double now(void);

#endif /* TPBENCH_H */
