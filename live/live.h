/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of the module share */
#ifndef LIVE_H
#define LIVE_H

#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/ftrace.h>
#include <linux/netdevice.h>

#include "live_btf.h"

/* Assert that a function has the prototype that one of the kernel has by its
 * BTF.
 */
#define LIVE_SAME(function, kernels)					\
	static_assert(__same_type(function, btf_##kernels),		\
		      "this kernel has another prototype of " #kernels)

/**
 * struct live_patch - a function of the kernel that one of the module replaces
 * @name:	name of the kernel's
 * @function:	the module's
 * @wanted:	whether the module's is to run now; must not sleep
 * @ops:	where the kernel's function begins
 * @on:		it is replaced
 */
struct live_patch {
	const char		*name;
	void			*function;
	bool			(*wanted)(struct ftrace_regs *regs);
	struct ftrace_ops	ops;
	bool			on;
};

/* kernel.c */
int live_kernel_init(void);
int live_find(const char *name, unsigned long *addr);

/* patch.c */
int live_patch(struct live_patch *patch);
void live_unpatch(struct live_patch *patch);
int live_failed(const char *name, int err);

/* hooks.c */
int live_hooks_init(void);
int live_hooks_get(void);
void live_hooks_put(void);
void live_hooks_exit(void);

/* packet.c */
int live_packet_create(struct net *net, struct socket *sock, int protocol,
		       int kern);
int live_packet_notifier(struct notifier_block *nb, unsigned long event,
			 void *ptr);
int live_packet_init(void);
void live_packet_exit(void);
void live_packet_report(void);

/* zc.c */
int live_zc_init(void);
void live_zc_exit(void);

/* xsk.c */
int live_update_features(struct net_device *dev);
int live_check_mtu(const struct net_device *dev, bool before);
void live_xsk_exit(void);

/* xdp.c */
typedef int live_xdp_op(struct net_device *dev, struct netdev_bpf *bpf);
live_xdp_op *live_choose_xdp_op(struct net_device *dev, enum bpf_xdp_mode mode,
				live_xdp_op *op);
u8 live_xdp_prog_count(struct net_device *dev);
u32 live_xdp_prog_id(struct net_device *dev, enum bpf_xdp_mode mode);

#endif /* LIVE_H */
