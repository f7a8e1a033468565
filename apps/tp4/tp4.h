/* SPDX-License-Identifier: GPL-2.0 */
/* What the parts of tp4 share */
#ifndef __TP4_H
#define __TP4_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <linux/packet_diag.h>

/**
 * struct v4_socket - a packet socket with TPACKET_V4
 * @ino: inode, by which processes know it
 * @ifindex: device that it is bound to, or 0
 * @rx_nr: number of Rx descriptors, or 0 without a ring
 * @tx_nr: number of Tx descriptors, or 0 without a ring
 * @zerocopy: it is in zero-copy mode
 * @queue: the queue pair, in zero-copy mode
 * @has_stats: the kernel reports the statistics
 * @stats: the statistics since the socket was created
 */
struct v4_socket {
	uint32_t ino;
	int ifindex;
	uint32_t rx_nr;
	uint32_t tx_nr;
	bool zerocopy;
	uint32_t queue;
	bool has_stats;
	struct packet_diag_stats stats;
};

/**
 * struct holder - a process that has a socket open
 * @ino: the socket's inode
 * @pid: the process
 * @name: its name, as ps shows it
 */
struct holder {
	uint32_t ino;
	pid_t pid;
	char name[17];
};

/**
 * struct listing - what is known
 * @sockets: V4 sockets
 * @nr_sockets: their number
 * @holders: processes that have them
 * @nr_holders: their number
 */
struct listing {
	struct v4_socket *sockets;
	int nr_sockets;
	struct holder *holders;
	int nr_holders;
};

/* sockets.c */
int find_all(struct listing *l);
void forget_all(struct listing *l);

/* output.c */
void print_string(const char *s);
void print_processes(const struct listing *l, uint32_t ino);
void print_json_processes(const struct listing *l, uint32_t ino);

/* list.c */
int list_main(int argc, char **argv);

/* stats.c */
int stats_main(int argc, char **argv);

/* hold.c */
int hold_main(int argc, char **argv);

/* steer.c */
int steer_main(int argc, char **argv);

#endif
