// SPDX-License-Identifier: GPL-2.0
/* Functions of the kernel that are replaced
 *
 * This is what the kernel's own live patches do, by the same means (ftrace).
 * Those also wait until no task is in the old function, as a fix may change
 * what several functions agree on. Here, each call is by itself: a socket that
 * was begun by the kernel's function is the kernel's. So a patch is complete
 * at once, the module can be removed like any other, and Linux need not have
 * CONFIG_LIVEPATCH.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/container_of.h>
#include <linux/err.h>
#include <linux/ftrace.h>
#include <linux/printk.h>
#include <linux/string.h>

#include "live.h"

static void notrace live_enter(unsigned long ip, unsigned long parent_ip,
			       struct ftrace_ops *ops, struct ftrace_regs *regs)
{
	struct live_patch *patch = container_of(ops, struct live_patch, ops);

	if (patch->wanted(regs))
		ftrace_regs_set_instruction_pointer(regs, (unsigned long)
						    patch->function);
}

/**
 * live_failed() - log why a function cannot be replaced
 * @name:	its name
 * @err:	the error of ftrace
 *
 * Return: @err.
 */
int live_failed(const char *name, int err)
{
	if (err == -EBUSY)
		pr_err("%s: another live patch or BPF program has it, or kernel.ftrace_enabled is 0\n",
		       name);
	else
		pr_err("%s: %pe\n", name, ERR_PTR(err));
	return err;
}

/**
 * live_patch() - replace a function of the kernel
 * @patch:	the patch
 *
 * Context: Process context, may sleep.
 * Return: 0, or an error, which is in the log.
 */
int live_patch(struct live_patch *patch)
{
	unsigned long addr;
	int err;

	err = live_find(patch->name, &addr);
	if (err)
		return err;
	/* ftrace_free_filter() leaves pointers to what it has freed. */
	memset(&patch->ops, 0, sizeof(patch->ops));
	patch->ops.func = live_enter;
	/* PERMANENT: while a patch is on, kernel.ftrace_enabled stays 1. */
	patch->ops.flags = FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_PERMANENT;
	err = ftrace_set_filter_ip(&patch->ops, addr, 0, 1);
	if (!err)
		err = register_ftrace_function(&patch->ops);
	if (err) {
		ftrace_free_filter(&patch->ops);
		return live_failed(patch->name, err);
	}
	patch->on = true;
	return 0;
}

/**
 * live_unpatch() - give a function back to the kernel, if it was replaced
 * @patch:	the patch
 *
 * Context: Process context, may sleep. Waits until no task is in live_enter(),
 * or has left it and has not slept since.
 */
void live_unpatch(struct live_patch *patch)
{
	if (!patch->on)
		return;
	WARN_ON(unregister_ftrace_function(&patch->ops));
	ftrace_free_filter(&patch->ops);
	patch->on = false;
}
