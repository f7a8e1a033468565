/* SPDX-License-Identifier: GPL-2.0 */
/* A switch and programs with ring ports, for its tests */
#ifndef __SWTEST_CLIENT_H
#define __SWTEST_CLIENT_H

#include <stdbool.h>

#include "tpacket4_port.h"

#define NR		256	/* slots of a ring */
#define SIZE		2048	/* bytes of a frame */

/* A program's end of a port: frames NR to 2 * NR - 1 are for Tx, the others for Rx */
struct client {
	struct tp4_socket s;
	struct tp4_area area;
	int port;
	unsigned int next;	/* frame to send next */
};

extern const char *binary;
extern char path[64];
extern pid_t switch_pid;
extern bool bad;
extern char dir[32];
extern char out[65536];
extern __u8 buf[70000];

#define check(cond, ...) check_at(__LINE__, cond, #cond, __VA_ARGS__)

__attribute__((format(printf, 4, 5)))
bool check_at(int line, bool ok, const char *cond, const char *format, ...);
void msleep(int ms);

void start(const char *arg1, const char *arg2);
bool end(int sig);
__attribute__((format(printf, 1, 2)))
bool ctl(const char *format, ...);
unsigned long counter(int port, const char *name);

int join_opt(struct client *c, struct tp4_options opt);
bool join(struct client *c);
void leave(struct client *c);
bool sent(struct client *c);
int post_one(struct client *c, struct tpacket4_desc d);
void set_mac(__u8 *p, unsigned int nr);
__u8 pattern(unsigned int i, unsigned int seed);
bool send_mac(struct client *c, unsigned int to, unsigned int from,
	      unsigned int len, unsigned int seed);
bool send_now(struct client *c, unsigned int to, unsigned int from);
unsigned int receive_in(struct client *c, int ms);
unsigned int receive(struct client *c);
unsigned int receive_packets(struct client *c, unsigned int want);
bool nothing(struct client *c);
unsigned int drain(struct client *c);
unsigned int check_csum(const __u8 *p, unsigned int len);
void make_tcp(struct client *c, struct tpacket4_desc *d, unsigned int len);
void post_gso(struct client *c, unsigned int to, unsigned int size);

/* swvlan.c */
void vlan_access(void);
void vlan_trunk(void);
void vlan_double_tags(void);
void vlan_metadata(void);
void vlan_turns(void);
void vlan_rewritten(void);
void vlan_commands(void);

#endif /* __SWTEST_CLIENT_H */
