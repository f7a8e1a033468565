// SPDX-License-Identifier: GPL-2.0
/* Functions of the kernel that are not exported
 *
 * They are found by name and called directly (static_call()). A call by a
 * pointer would fail on a CPU that checks the targets of indirect calls (IBT):
 * at boot, the kernel removes the mark of most of these functions.
 *
 * The module is built for one kernel, and does not load on any other.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bpf.h>
#include <linux/crc32.h>
#include <linux/filter.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/netdevice.h>
#include <linux/static_call.h>
#include <linux/string.h>
#include <linux/utsname.h>
#include <net/xdp_sock.h>
#include <net/xsk_buff_pool.h>
#include <net/xsk_tp4.h>

#include "../net/xdp/xsk.h"
#include "live.h"

DEFINE_STATIC_CALL_NULL(each_symbol, kallsyms_on_each_match_symbol);
DEFINE_STATIC_CALL_NULL(change_xdp, live_bpf_prog_change_xdp);
DEFINE_STATIC_CALL_NULL(kallsyms_add, live_bpf_prog_kallsyms_add);
DEFINE_STATIC_CALL_NULL(copy_buf, live_bpf_xdp_copy_buf);
DEFINE_STATIC_CALL_NULL(mp_count, live_dev_get_min_mp_channel_count);
DEFINE_STATIC_CALL_NULL(assign_dev, live_xp_assign_dev);
DEFINE_STATIC_CALL_NULL(create_pool, live_xp_create_and_assign_umem);
DEFINE_STATIC_CALL_NULL(destroy_pool, live_xp_destroy);
DEFINE_STATIC_CALL_NULL(clear_pool, live_xsk_clear_pool_at_qid);

LIVE_SAME(kallsyms_on_each_match_symbol, kallsyms_on_each_match_symbol);
LIVE_SAME(live_bpf_prog_change_xdp, bpf_prog_change_xdp);
LIVE_SAME(live_bpf_prog_kallsyms_add, bpf_prog_kallsyms_add);
LIVE_SAME(live_bpf_xdp_copy_buf, bpf_xdp_copy_buf);
LIVE_SAME(live_dev_get_min_mp_channel_count, dev_get_min_mp_channel_count);
LIVE_SAME(live_xp_assign_dev, xp_assign_dev);
LIVE_SAME(live_xp_create_and_assign_umem, xp_create_and_assign_umem);
LIVE_SAME(live_xp_destroy, xp_destroy);
LIVE_SAME(live_xsk_clear_pool_at_qid, xsk_clear_pool_at_qid);

void live_bpf_prog_change_xdp(struct bpf_prog *prev_prog, struct bpf_prog *prog)
{
	static_call(change_xdp)(prev_prog, prog);
}

void live_bpf_prog_kallsyms_add(struct bpf_prog *prog)
{
	static_call(kallsyms_add)(prog);
}

void live_bpf_xdp_copy_buf(struct xdp_buff *xdp, unsigned long off, void *buf,
			   unsigned long len, bool flush)
{
	static_call(copy_buf)(xdp, off, buf, len, flush);
}

u32 live_dev_get_min_mp_channel_count(const struct net_device *dev)
{
	return static_call(mp_count)(dev);
}

int live_xp_assign_dev(struct xsk_buff_pool *pool, struct net_device *dev,
		       u16 queue_id, u16 flags)
{
	return static_call(assign_dev)(pool, dev, queue_id, flags);
}

struct xsk_buff_pool *
live_xp_create_and_assign_umem(struct xdp_sock *xs, struct xdp_umem *umem,
			       u32 max_segs)
{
	return static_call(create_pool)(xs, umem, max_segs);
}

void live_xp_destroy(struct xsk_buff_pool *pool)
{
	static_call(destroy_pool)(pool);
}

void live_xsk_clear_pool_at_qid(struct net_device *dev, u16 queue_id)
{
	static_call(clear_pool)(dev, queue_id);
}

struct live_symbol {
	unsigned long	addr;
	unsigned int	nr;
};

static int live_note_symbol(void *data, unsigned long addr)
{
	struct live_symbol *symbol = data;

	symbol->addr = addr;
	symbol->nr++;
	return 0;
}

/**
 * live_find() - find a symbol of the kernel
 * @name:	its name
 * @addr:	set to its address
 *
 * Return: 0, or -ENOENT if there is not exactly one of this name.
 */
int live_find(const char *name, unsigned long *addr)
{
	struct live_symbol symbol = {};

	static_call(each_symbol)(live_note_symbol, name, &symbol);
	if (symbol.nr != 1) {
		pr_err("this kernel has %u symbols %s; the module needs one\n",
		       symbol.nr, name);
		return -ENOENT;
	}
	*addr = symbol.addr;
	return 0;
}

/* A disarmed probe only looks up the address, and changes no code. */
static int live_find_kallsyms(void)
{
	struct kprobe probe = {
		.symbol_name = "kallsyms_on_each_match_symbol",
		.flags = KPROBE_FLAG_DISABLED,
	};
	char text[KSYM_SYMBOL_LEN];
	unsigned long offset;
	int err;

	err = register_kprobe(&probe);
	if (err) {
		pr_err("cannot look up the kernel's symbols: %pe\n",
		       ERR_PTR(err));
		return err;
	}
	/* The address may be behind the function's first instruction. */
	sprint_symbol(text, (unsigned long)probe.addr);
	if (sscanf(text, "kallsyms_on_each_match_symbol+%lx/", &offset) == 1)
		static_call_update(each_symbol, (void *)probe.addr - offset);
	else
		err = -ENOENT;
	unregister_kprobe(&probe);
	return err;
}

/* Check that the running kernel is the one that guard.py looked at. A kernel
 * can be built again without another release.
 */
static int live_check_kernel(void)
{
	unsigned long start, end;
	int err;

	if (strcmp(init_uts_ns.name.release, LIVE_RELEASE)) {
		pr_err("built for Linux %s, and this is %s\n", LIVE_RELEASE,
		       init_uts_ns.name.release);
		return -ENOEXEC;
	}
	err = live_find("__start_BTF", &start) ?: live_find("__stop_BTF", &end);
	if (err)
		return err;
	if (end - start != LIVE_BTF_SIZE ||
	    ~crc32_le(~0, (void *)start, end - start) != LIVE_BTF_CRC) {
		pr_err("built for another kernel that is called %s\n",
		       LIVE_RELEASE);
		return -ENOEXEC;
	}
	return 0;
}

#define LIVE_FIND(call, name) ({				\
	unsigned long addr;					\
	int error = live_find(name, &addr);			\
								\
	if (!error)						\
		static_call_update(call, (void *)addr);		\
	error;							\
})

/**
 * live_kernel_init() - check the kernel, and find the functions above
 *
 * Return: 0; -ENOEXEC if the module was built for another kernel, or another
 * error. The log has the reason.
 */
int live_kernel_init(void)
{
	return live_find_kallsyms() ?: live_check_kernel() ?:
	       LIVE_FIND(change_xdp, "bpf_prog_change_xdp") ?:
	       LIVE_FIND(kallsyms_add, "bpf_prog_kallsyms_add") ?:
	       LIVE_FIND(copy_buf, "bpf_xdp_copy_buf") ?:
	       LIVE_FIND(mp_count, "dev_get_min_mp_channel_count") ?:
	       LIVE_FIND(assign_dev, "xp_assign_dev") ?:
	       LIVE_FIND(create_pool, "xp_create_and_assign_umem") ?:
	       LIVE_FIND(destroy_pool, "xp_destroy") ?:
	       LIVE_FIND(clear_pool, "xsk_clear_pool_at_qid");
}
