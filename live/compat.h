/* SPDX-License-Identifier: GPL-2.0 */
/* What the series adds to the kernel elsewhere; included before each source
 * file
 */
#ifndef LIVE_COMPAT_H
#define LIVE_COMPAT_H

#include <linux/export.h>

#define CONFIG_PACKET_V4	1

/* include/uapi/linux/bpf.h */
#define XDP_PASS_TO_KERNEL	5
/* include/net/xdp.h */
#define __bpf_prog_run_xdp	bpf_prog_run_xdp

/* Functions of the kernel that are not exported. The kernel's own headers
 * declare them by these names, so the definitions in kernel.c must have the
 * kernel's types.
 */
#define bpf_prog_change_xdp		live_bpf_prog_change_xdp
#define bpf_prog_kallsyms_add		live_bpf_prog_kallsyms_add
#define bpf_xdp_copy_buf		live_bpf_xdp_copy_buf
#define dev_get_min_mp_channel_count	live_dev_get_min_mp_channel_count
#define xp_assign_dev			live_xp_assign_dev
#define xp_create_and_assign_umem	live_xp_create_and_assign_umem
#define xp_destroy			live_xp_destroy
#define xsk_clear_pool_at_qid		live_xsk_clear_pool_at_qid

/* Nobody else calls the module. */
#undef EXPORT_SYMBOL
#define EXPORT_SYMBOL(name)
#undef EXPORT_SYMBOL_GPL
#define EXPORT_SYMBOL_GPL(name)

#endif /* LIVE_COMPAT_H */
