// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET V4 as a module, for a kernel that does not have it
 *
 * From the moment it is loaded, each new packet socket is the module's. Older
 * ones stay the kernel's. Sockets keep the module loaded; once they are
 * closed, it can be removed, and AF_PACKET is the kernel's again.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kstrtox.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/rcupdate.h>
#include <linux/workqueue.h>

#include "live.h"

static bool live_enabled = true;

/* Both functions put the module. While it is being removed, it has no sockets,
 * and the kernel's functions do.
 */
static bool live_takes_socket(struct ftrace_regs *regs)
{
	return READ_ONCE(live_enabled) && try_module_get(THIS_MODULE);
}

static bool live_takes_event(struct ftrace_regs *regs)
{
	return try_module_get(THIS_MODULE);
}

static struct live_patch live_create_patch = {
	.name		= "packet_create",
	.function	= live_packet_create,
	.wanted		= live_takes_socket,
};

static struct live_patch live_notifier_patch = {
	.name		= "packet_notifier",
	.function	= live_packet_notifier,
	.wanted		= live_takes_event,
};

static int live_set_enabled(const char *val, const struct kernel_param *kp)
{
	bool on;
	int err;

	err = kstrtobool(val, &on);
	if (err)
		return err;
	WRITE_ONCE(live_enabled, on);
	if (!on)
		live_packet_report();
	return 0;
}

static const struct kernel_param_ops live_enabled_ops = {
	.set = live_set_enabled,
	.get = param_get_bool,
};
module_param_cb(enabled, &live_enabled_ops, &live_enabled, 0644);
MODULE_PARM_DESC(enabled, "New packet sockets are the module's. Writing 0 also logs which programs have some.");

static int __init live_init(void)
{
	int err;

	err = live_kernel_init() ?: live_hooks_init();
	if (err)
		return err;
	err = live_packet_init();
	if (err)
		return err;
	err = live_zc_init();
	if (err)
		goto packet;
	err = live_patch(&live_notifier_patch);
	if (err)
		goto zc;
	/* Last, as there may be sockets from here on. */
	err = live_patch(&live_create_patch);
	if (err)
		goto notifier;
	return 0;

notifier:
	live_unpatch(&live_notifier_patch);
zc:
	live_zc_exit();
packet:
	live_packet_exit();
	return err;
}

static void __exit live_exit(void)
{
	live_unpatch(&live_create_patch);
	live_unpatch(&live_notifier_patch);
	/* A task that has put the module may not have returned from it yet. */
	synchronize_rcu_tasks();
	live_hooks_exit();
	live_zc_exit();
	live_xsk_exit();
	live_packet_exit();
	rcu_barrier();
	/* The last packet of a socket may have left the release of its area to this. */
	__flush_workqueue(system_long_wq);
}

module_init(live_init);
module_exit(live_exit);
MODULE_DESCRIPTION("AF_PACKET with TPACKET_V4, next to the kernel's");
MODULE_LICENSE("GPL");
