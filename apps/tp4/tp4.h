/* SPDX-License-Identifier: GPL-2.0 */
/* What the parts of tp4 share */
#ifndef __TP4_H
#define __TP4_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * struct v4_socket - a packet socket with TPACKET_V4
 * @ino: inode, by which processes know it
 * @ifindex: device that it is bound to, or 0
 * @rx_nr: number of Rx descriptors, or 0 without a ring
 * @tx_nr: number of Tx descriptors, or 0 without a ring
 * @zerocopy: it is in zero-copy mode
 * @queue: the queue pair, in zero-copy mode
 */
struct v4_socket {
	uint32_t ino;
	int ifindex;
	uint32_t rx_nr;
	uint32_t tx_nr;
	bool zerocopy;
	uint32_t queue;
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

/* sockets.c */
int find_sockets(struct v4_socket **sockets);
int find_holders(const struct v4_socket *sockets, int nr, struct holder **holders);

/* list.c */
int list_main(int argc, char **argv);

/* steer.c */
int steer_main(int argc, char **argv);

#endif
