/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The soak test: two *ends*, processes with a V4 socket each, send to each other
 * all the time, while the main process changes the devices and the ends. Both
 * count in shared memory, which survives a killed end.
 */
#ifndef SOAK_H
#define SOAK_H

#include "rnd.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define NR_ERRNOS	134
#define WAIT_MS		180000	/* a debug kernel on a busy machine */
#define SLOTS		256
#define FRAMES		(2 * SLOTS)
#define FRAME_SIZE	2048
#define SEEN		65536	/* packets that are remembered */

enum command {
	CMD_NONE,
	CMD_OPEN,	/* a new socket, its rings mapped and filled */
	CMD_BIND,	/* to the end's device */
	CMD_ZC_ON,
	CMD_ZC_OFF,	/* all frames must be returned then */
	CMD_HOLD,	/* post nothing until CMD_BIND: the device will be removed */
	CMD_GONE,	/* the device is removed: as after CMD_ZC_OFF */
	CMD_CLOSE,
	CMD_DRAIN,	/* until all sent frames are returned */
	CMD_SYNC,	/* add up the sockets' statistics */
	CMD_MEMBER_OPEN, /* a socket in a fanout group with the first one */
	CMD_MEMBER_CLOSE, /* the first one stays in the group */
	CMD_QUIT,
};

/* Counters of one end, in descriptors unless marked as packets */
struct books {
	uint64_t tx_lent, rx_lent;
	uint64_t tx_back[NR_ERRNOS], rx_back[NR_ERRNOS];
	uint64_t tx_lost, rx_lost;	/* lent to sockets that were closed */
	uint64_t sent[NR_ERRNOS];	/* returned packets, by error */
	uint64_t posted;		/* packets */
	uint64_t posted_lost;		/* packets, on sockets that were closed */
	uint64_t received;		/* packets of the other end */
	uint64_t foreign;		/* packets of other senders */
	uint64_t reordered;		/* packets */
	uint64_t tp_packets, tp_drops;	/* PACKET_STATISTICS, summed up */
	uint64_t ring_full, no_desc;
};

struct end {
	char ifname[16];
	int nr;				/* 0 or 1 */
	pid_t pid;

	/* Written by the main process: the command */
	enum command command;
	uint32_t asked, done;		/* numbers of the commands */
	int result;			/* 0 or -errno */
	bool tx_on;
	uint32_t phase;			/* written into each packet */
	uint32_t quota;			/* packets still to be sent */
	uint32_t max_len;
	int fanout_type;
	bool own_area;			/* of the member */

	/* Written by the end */
	bool is_open;
	char why[320];			/* the failure, if any */
	uint32_t life;			/* of the socket */
	uint32_t next;			/* packet to send */
	uint64_t here;			/* packets received with this socket */
	uint64_t here_stats;		/* of them, in its statistics */
	uint32_t in_phase;		/* the phase counted by @phase_nr */
	uint32_t phase_nr;		/* packets received of it */
	struct books books;

	/* Received packets of the other end */
	uint32_t seen_life, seen_top;
	uint8_t seen[SEEN];
};

extern struct end *ends;		/* two of them */

/* Frames still in use are lost: the ring is gone. */
void end_lost_socket(struct end *e);
/* No frame is in use, and each was returned or lost with its socket. */
bool end_is_settled(const struct end *e);

/* Runs in the process of the end; never returns. */
void end_main(struct end *e, uint64_t seed) __attribute__((__noreturn__));

#endif
