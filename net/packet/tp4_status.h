/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PACKET_TP4_STATUS_H__
#define __PACKET_TP4_STATUS_H__

#include <linux/if_packet.h>
#include <linux/mm_types.h>
#include <linux/netdevice.h>
#include <net/sock.h>

#include "internal.h"

#ifdef CONFIG_PACKET_V4
/**
 * tp4_status_need_wakeup() - tell the program whether sendto() is needed
 * @po:		the socket, or NULL
 * @need:	whether it is; what was posted before the program could see this
 *		must be looked for after it
 *
 * Context: Any.
 */
static inline void tp4_status_need_wakeup(const struct packet_sock *po,
					  bool need)
{
	struct tpacket4_status *status;

	status = po ? READ_ONCE(po->tp4_status) : NULL;
	if (!status)
		return;
	if (READ_ONCE(status->tx_need_wakeup) != need)
		WRITE_ONCE(status->tx_need_wakeup, need);
	if (need) {
		/* Pairs with the program's between posting and reading. */
		smp_mb();
	}
}

int tp4_status_mmap(struct packet_sock *po, struct vm_area_struct *vma,
		    unsigned long addr);
void tp4_status_free(struct packet_sock *po);
#else
static inline int tp4_status_mmap(struct packet_sock *po,
				  struct vm_area_struct *vma,
				  unsigned long addr)
{
	return -EINVAL;
}

static inline void tp4_status_free(struct packet_sock *po)
{
}
#endif

#endif
