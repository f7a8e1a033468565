/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PACKET_TP4_STATUS_H__
#define __PACKET_TP4_STATUS_H__

#include <linux/if_packet.h>
#include <linux/mm.h>
#include <linux/netdevice.h>
#include <net/sock.h>

#include "internal.h"

#ifdef CONFIG_PACKET_V4
/**
 * tp4_status_need_wakeup() - set whether the program must kick a ring
 * @sk:		the packet socket, or NULL
 * @tx:		true for the Tx ring
 * @need:	true if a kick is needed
 *
 * Context: Any.
 * Return: true if @need is, and a program has the page mapped to see it.
 */
static inline bool tp4_status_need_wakeup(const struct sock *sk, bool tx,
					  bool need)
{
	struct tpacket4_status *status;
	__u32 *field;

	status = sk ? READ_ONCE(pkt_sk(sk)->tp4_status) : NULL;
	if (!status)
		return false;
	field = tx ? &status->tx_need_wakeup : &status->rx_need_wakeup;
	if (READ_ONCE(*field) != need)
		WRITE_ONCE(*field, need);
	return need && folio_mapped(virt_to_folio(status));
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
