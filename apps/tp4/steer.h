/* SPDX-License-Identifier: GPL-2.0 */
/* What making rules and listing them share */
#ifndef __STEER_H
#define __STEER_H

#include <stdbool.h>
#include <linux/types.h>

struct ethtool_rxnfc;

/**
 * struct flow_type - a first word of a flow
 * @name: the word; NULL behind the last one
 * @ip4: the kernel's number of it for IPv4
 * @ip6: the same for IPv6
 * @has_ports: it has ports
 */
struct flow_type {
	const char *name;
	__u32 ip4, ip6;
	bool has_ports;
};

/* steer.c */
extern const struct flow_type flow_types[];
int ask_device(const char *dev, void *data);
int find_rules(const char *dev, struct ethtool_rxnfc **all);

/* rules.c */
int list_rules(const char *dev);

#endif
