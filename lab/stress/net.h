/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Network devices and XDP programs, with system calls only. All functions return
 * 0 or the requested value, or -errno, and may be called from any thread.
 */
#ifndef NET_H
#define NET_H

#include <linux/bpf.h>
#include <linux/pkt_sched.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- rtnetlink ---- */

int link_add(const char *name, const char *kind);
int link_add_veth(const char *a, const char *b, unsigned int queues);
int link_add_vlan(const char *name, const char *lower, int id);
int link_del(const char *name);
int link_set_up(const char *name, bool up);
/* 1 with a carrier, else 0 */
int link_is_running(const char *name);
int link_set_mtu(const char *name, int mtu);
int link_set_netns(const char *name, int netns);
int link_rename(const char *name, const char *to);
int link_set_xdp(const char *name, int prog, uint32_t flags);
int link_set_promisc(const char *name, bool on);
int qdisc_set(const char *name, const char *kind, const void *options,
	      unsigned int len);
int qdisc_del(const char *name);

/* Its counters of IFLA_STATS64 */
struct rtnl_link_stats64;
int link_stats(const char *name, struct rtnl_link_stats64 *stats);

/* Like `ss -0 -e`: reads all data and discards it. */
int packet_diag(void);

/* ---- ethtool ---- */

int set_channels(const char *name, unsigned int nr);
int set_ring_size(const char *name, unsigned int nr);
int set_gro(const char *name, bool on);
int ethtool_reset(const char *name);
/* Sum of the counters whose name ends in @suffix, or -errno */
int64_t ethtool_sum(const char *name, const char *suffix);

/* ---- BPF ---- */

int bpf_load(enum bpf_prog_type type, const struct bpf_insn *insns,
	     unsigned int n, uint32_t flags);
int xdp_return(int action, bool frags);
/* These two drop some packets. */
int xdp_send_back(bool frags);
int xdp_redirect(int ifindex, bool frags);
int xdp_adjust(int helper, int delta, bool frags);
int filter_return(int len);

/* ---- the rest ---- */

/* Monotonic time */
uint64_t now_ms(void);
int write_file(const char *path, const char *text);
/* A number in a file of lines of "name number" */
int64_t read_number(const char *path, const char *name);
/* A new network namespace; the caller stays in its own. */
int new_netns(void);

#endif
