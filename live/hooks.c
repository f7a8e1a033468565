// SPDX-License-Identifier: GPL-2.0
/* Hooks in net/xdp and net/core, for pools of V4
 *
 * Drivers call functions in which the series has branches to V4. Here, ftrace
 * lets each of these functions begin with a call of one of ours, which does
 * what the branch does:
 *
 *	instead	for a pool of V4, V4's function runs, and the kernel's does not
 *	before	V4's function runs first, and prepares what the kernel's finds
 *
 * For all others it returns at once, and the kernel's function goes on. The
 * hooks are only there while a queue pair is in zero-copy mode.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <asm/ibt.h>
#include <asm/orc_types.h>
#include <linux/dma-mapping.h>
#include <linux/filter.h>
#include <linux/ftrace.h>
#include <linux/linkage.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/objtool.h>
#include <linux/string.h>
#include <linux/workqueue.h>
#include <net/xdp_sock.h>
#include <net/xdp_sock_drv.h>
#include <net/xsk_buff_pool.h>
#include <net/xsk_tp4.h>

#include "../net/xdp/xdp_umem.h"
#include "../net/xdp/xsk_tp4.h"
#include "live.h"

/* When to remove hooks that are no longer needed: not each time that one
 * program leaves zero-copy mode and another one enters it
 */
#define LIVE_HOOKS_DELAY	(5 * HZ)

/* ---- what is done for pools of V4 ---- */

LIVE_SAME(xsk_tp4_tx_completed, xsk_tx_completed);
LIVE_SAME(xsk_tp4_tx_peek, xsk_tx_peek_desc);
LIVE_SAME(xsk_tp4_tx_peek_batch, xsk_tx_peek_release_desc_batch);

/* Called by assembler code only */
int live_map_redirect(struct xdp_sock *xs, struct xdp_buff *xdp);
void live_map_flush(struct list_head *flush_list);
struct xdp_buff *live_alloc(struct xsk_buff_pool *pool);
u32 live_alloc_batch(struct xsk_buff_pool *pool, struct xdp_buff **xdp,
		     u32 max);
bool live_can_alloc(struct xsk_buff_pool *pool, u32 count);
void live_set_rxq_info(struct xsk_buff_pool *pool, struct xdp_rxq_info *rxq);

int live_map_redirect(struct xdp_sock *xs, struct xdp_buff *xdp)
{
	return xsk_tp4_rcv(xs->pool, xdp);
}
LIVE_SAME(live_map_redirect, __xsk_map_redirect);

/* Flush the pools of V4, and leave AF_XDP's sockets to the kernel. It has flushed
 * the other maps, to which an XDP program has now redirected packets.
 */
void live_map_flush(struct list_head *flush_list)
{
	struct xdp_sock *xs, *tmp;
	bool redirected = false;

	list_for_each_entry_safe(xs, tmp, flush_list, flush_node) {
		if (!xsk_is_tp4_sock(xs))
			continue;
		redirected |= xsk_tp4_flush(xs->pool);
		__list_del_clearprev(&xs->flush_node);
	}
	if (unlikely(redirected))
		xdp_do_flush();
}
LIVE_SAME(live_map_flush, __xsk_map_flush);

/* Give the pool @nr frames, as if the driver had returned them. */
static void live_fill(struct xsk_buff_pool *pool, u32 nr)
{
	struct xdp_buff *xdp[16];
	struct xdp_buff_xsk *xskb;
	u32 i, got;

	while (pool->free_list_cnt < nr) {
		got = min_t(u32, nr - pool->free_list_cnt, ARRAY_SIZE(xdp));
		got = xsk_tp4_alloc_batch(pool, xdp, got);
		if (!got)
			return;
		for (i = 0; i < got; i++) {
			xskb = container_of(xdp[i], struct xdp_buff_xsk, xdp);
			list_add_tail(&xskb->list_node, &pool->free_list);
		}
		pool->free_list_cnt += got;
	}
}

/* Get the frames that the driver has returned. */
static u32 live_alloc_reused(struct xsk_buff_pool *pool, struct xdp_buff **xdp,
			     u32 max)
{
	struct xdp_buff_xsk *xskb;
	u32 i, nr;

	nr = min(max, pool->free_list_cnt);
	for (i = 0; i < nr; i++) {
		xskb = list_first_entry(&pool->free_list, struct xdp_buff_xsk,
					list_node);
		list_del_init(&xskb->list_node);
		xdp[i] = &xskb->xdp;
	}
	pool->free_list_cnt -= nr;
	return nr;
}

/* Not by way of the pool's list, for speed */
u32 live_alloc_batch(struct xsk_buff_pool *pool, struct xdp_buff **xdp, u32 max)
{
	u32 i, nr = 0;

	if (unlikely(pool->free_list_cnt))
		nr = live_alloc_reused(pool, xdp, max);
	if (likely(nr < max))
		nr += xsk_tp4_alloc_batch(pool, xdp + nr, max - nr);
	if (likely(!pool->dev || !dma_dev_need_sync(pool->dev)))
		return nr;
	for (i = 0; i < nr; i++)
		xp_dma_sync_for_device(pool, xsk_buff_xdp_get_dma(xdp[i]),
				       pool->frame_len);
	return nr;
}
LIVE_SAME(live_alloc_batch, xp_alloc_batch);

/* The kernel's function, which goes on, returns the result of these. */
struct xdp_buff *live_alloc(struct xsk_buff_pool *pool)
{
	live_fill(pool, 1);
	return NULL;
}
LIVE_SAME(live_alloc, xp_alloc);


bool live_can_alloc(struct xsk_buff_pool *pool, u32 count)
{
	live_fill(pool, count);
	return false;
}
LIVE_SAME(live_can_alloc, xp_can_alloc);

void live_set_rxq_info(struct xsk_buff_pool *pool, struct xdp_rxq_info *rxq)
{
	xsk_tp4_set_up(pool);
}
LIVE_SAME(live_set_rxq_info, xp_set_rxq_info);

/* ---- how the kernel's functions get there ---- */

/* ftrace makes the first instruction of the kernel's function a call of the
 * hook. All arguments are still in their registers; r11 is free.
 */
#define LIVE_BEGIN(name)						\
	".pushsection .text.live_hooks, \"ax\"\n"			\
	".balign 16\n"							\
	".globl live_hook_" #name "\n"					\
	".type live_hook_" #name ", @function\n"			\
	"live_hook_" #name ":\n\t"					\
	ASM_ENDBR

#define LIVE_END(name)							\
	".size live_hook_" #name ", . - live_hook_" #name "\n"		\
	".popsection\n"

/* Return to the kernel's function unless the first argument is a pool of V4. */
#define LIVE_IF_POOL							\
	"mov %c[umem](%%rdi), %%r11\n\t"				\
	"testb $1, %c[user](%%r11)\n\t"					\
	"jnz 1f\n\t"							\
	ASM_RET								\
	"1:\n\t"

/* Return unless it is what packets for V4 are redirected to. */
#define LIVE_IF_SOCK							\
	"cmpw %[af_xdp], %c[family](%%rdi)\n\t"				\
	"jne 1f\n\t"							\
	ASM_RET								\
	"1:\n\t"

/* Drop the return address, which is in the kernel's function. */
#define LIVE_INSTEAD(function)						\
	"add $8, %%rsp\n\t"						\
	UNWIND_HINT(UNWIND_HINT_TYPE_FUNC, ORC_REG_SP, 8, 0)		\
	"jmp " #function "\n"

#define LIVE_BEFORE(function)						\
	"push %%rdi\n\t"						\
	"push %%rsi\n\t"						\
	"push %%rdx\n\t"						\
	"call " #function "\n\t"					\
	"pop %%rdx\n\t"							\
	"pop %%rsi\n\t"							\
	"pop %%rdi\n\t"							\
	ASM_RET

/* The kernel's function gets what ours returns for its third argument. */
#define LIVE_ARGUMENT_3(function)					\
	"push %%rdi\n\t"						\
	"push %%rsi\n\t"						\
	"push %%rcx\n\t"						\
	"push %%r8\n\t"							\
	"push %%r9\n\t"							\
	"call " #function "\n\t"					\
	"mov %%rax, %%rdx\n\t"						\
	"pop %%r9\n\t"							\
	"pop %%r8\n\t"							\
	"pop %%rcx\n\t"							\
	"pop %%rsi\n\t"							\
	"pop %%rdi\n\t"							\
	ASM_RET

#define LIVE_CODE(name, condition, action)				\
	LIVE_BEGIN(name) condition action LIVE_END(name)

/* Never called: an asm outside of a function has no operands. */
static void __used live_hook_code(void)
{
	asm volatile(
	LIVE_CODE(__xsk_map_redirect, LIVE_IF_SOCK,
		  LIVE_INSTEAD(live_map_redirect))
	LIVE_CODE(__xsk_map_flush, "", LIVE_BEFORE(live_map_flush))
	LIVE_CODE(__netdev_update_features, "",
		  LIVE_BEFORE(live_update_features))
	LIVE_CODE(dev_xdp_install, "", LIVE_ARGUMENT_3(live_choose_xdp_op))
	LIVE_CODE(xp_alloc, LIVE_IF_POOL, LIVE_BEFORE(live_alloc))
	LIVE_CODE(xp_alloc_batch, LIVE_IF_POOL, LIVE_INSTEAD(live_alloc_batch))
	LIVE_CODE(xp_can_alloc, LIVE_IF_POOL, LIVE_BEFORE(live_can_alloc))
	LIVE_CODE(xp_set_rxq_info, LIVE_IF_POOL, LIVE_BEFORE(live_set_rxq_info))
	LIVE_CODE(xsk_tx_completed, LIVE_IF_POOL,
		  LIVE_INSTEAD(xsk_tp4_tx_completed))
	LIVE_CODE(xsk_tx_peek_desc, LIVE_IF_POOL, LIVE_INSTEAD(xsk_tp4_tx_peek))
	LIVE_CODE(xsk_tx_peek_release_desc_batch, LIVE_IF_POOL,
		  LIVE_INSTEAD(xsk_tp4_tx_peek_batch))
	:: [umem] "i" (offsetof(struct xsk_buff_pool, umem)),
	   [user] "i" (offsetof(struct xdp_umem, user)),
	   [family] "i" (offsetof(struct xdp_sock, sk.sk_family)),
	   [af_xdp] "i" (AF_XDP));
}

/**
 * struct live_hook - a function of the kernel with a hook
 * @name:	its name
 * @code:	the hook
 * @addr:	its address
 * @ops:	where it begins
 * @on:		it has the hook
 */
struct live_hook {
	const char		*name;
	void			(*code)(void);
	unsigned long		addr;
	struct ftrace_ops	ops;
	bool			on;
};

#define LIVE_DECLARE(name)	void live_hook_##name(void)
#define LIVE_HOOK(name)		{ #name, live_hook_##name }

LIVE_DECLARE(__xsk_map_redirect);
LIVE_DECLARE(__xsk_map_flush);
LIVE_DECLARE(__netdev_update_features);
LIVE_DECLARE(dev_xdp_install);
LIVE_DECLARE(xp_alloc);
LIVE_DECLARE(xp_alloc_batch);
LIVE_DECLARE(xp_can_alloc);
LIVE_DECLARE(xp_set_rxq_info);
LIVE_DECLARE(xsk_tx_completed);
LIVE_DECLARE(xsk_tx_peek_desc);
LIVE_DECLARE(xsk_tx_peek_release_desc_batch);

static struct live_hook live_hooks[] = {
	LIVE_HOOK(__xsk_map_redirect),
	LIVE_HOOK(__xsk_map_flush),
	LIVE_HOOK(__netdev_update_features),
	LIVE_HOOK(dev_xdp_install),
	LIVE_HOOK(xp_alloc),
	LIVE_HOOK(xp_alloc_batch),
	LIVE_HOOK(xp_can_alloc),
	LIVE_HOOK(xp_set_rxq_info),
	LIVE_HOOK(xsk_tx_completed),
	LIVE_HOOK(xsk_tx_peek_desc),
	LIVE_HOOK(xsk_tx_peek_release_desc_batch),
};

static bool live_holds_xdp(struct ftrace_regs *regs)
{
	return xsk_tp4_holds_xdp((void *)ftrace_regs_get_argument(regs, 0));
}

/* V4's XDP program is one of the kernel's that the device does not know. */
static struct live_patch live_patches[] = {
	{
		.name		= "dev_xdp_prog_count",
		.function	= live_xdp_prog_count,
		.wanted		= live_holds_xdp,
	}, {
		.name		= "dev_xdp_prog_id",
		.function	= live_xdp_prog_id,
		.wanted		= live_holds_xdp,
	},
};

/* Protects the rest; taken under RTNL, for one hook at a time */
static DEFINE_MUTEX(live_hooks_lock);
static bool live_hooks_wanted;

static int live_hook_on(struct live_hook *hook)
{
	int err;

	if (hook->on)
		return 0;
	/* ftrace_free_filter() leaves pointers to what it has freed. */
	memset(&hook->ops, 0, sizeof(hook->ops));
	err = ftrace_set_filter_ip(&hook->ops, hook->addr, 0, 1);
	if (!err)
		err = register_ftrace_direct(&hook->ops,
					     (unsigned long)hook->code);
	if (err) {
		ftrace_free_filter(&hook->ops);
		return live_failed(hook->name, err);
	}
	hook->on = true;
	return 0;
}

static void live_hook_off(struct live_hook *hook)
{
	if (!hook->on)
		return;
	WARN_ON(unregister_ftrace_direct(&hook->ops, (unsigned long)hook->code,
					 true));
	hook->on = false;
}

/* Removing a hook waits for all tasks. Hooks can be needed again meanwhile. */
static void live_remove_hooks(struct work_struct *work)
{
	const int nr_hooks = ARRAY_SIZE(live_hooks);
	int i;

	for (i = 0; i < nr_hooks + ARRAY_SIZE(live_patches); i++) {
		mutex_lock(&live_hooks_lock);
		if (live_hooks_wanted)
			; /* It stays. */
		else if (i < nr_hooks)
			live_hook_off(&live_hooks[i]);
		else
			live_unpatch(&live_patches[i - nr_hooks]);
		mutex_unlock(&live_hooks_lock);
	}
}
static DECLARE_DELAYED_WORK(live_hooks_work, live_remove_hooks);

/**
 * live_hooks_get() - make sure that the hooks are there
 *
 * Context: Under RTNL, may sleep.
 * Return: 0, or an error, which is in the log.
 */
int live_hooks_get(void)
{
	int i, err = 0;

	mutex_lock(&live_hooks_lock);
	live_hooks_wanted = true;
	for (i = 0; !err && i < ARRAY_SIZE(live_patches); i++)
		if (!live_patches[i].on)
			err = live_patch(&live_patches[i]);
	for (i = 0; !err && i < ARRAY_SIZE(live_hooks); i++)
		err = live_hook_on(&live_hooks[i]);
	mutex_unlock(&live_hooks_lock);
	return err;
}

/**
 * live_hooks_put() - remove the hooks some time, as no pool of V4 needs them
 *
 * Context: Under RTNL, may sleep.
 */
void live_hooks_put(void)
{
	mutex_lock(&live_hooks_lock);
	live_hooks_wanted = false;
	mutex_unlock(&live_hooks_lock);
	mod_delayed_work(system_long_wq, &live_hooks_work, LIVE_HOOKS_DELAY);
}

/**
 * live_hooks_init() - find the functions that get hooks
 *
 * Return: 0, or an error, which is in the log.
 */
int live_hooks_init(void)
{
	int i, err;

	for (i = 0; i < ARRAY_SIZE(live_hooks); i++) {
		err = live_find(live_hooks[i].name, &live_hooks[i].addr);
		if (err)
			return err;
	}
	return 0;
}

void live_hooks_exit(void)
{
	cancel_delayed_work_sync(&live_hooks_work);
	live_remove_hooks(NULL);
}
