// SPDX-License-Identifier: GPL-2.0
/* The status page, which follows a TPACKET_V4 socket's rings in its mapping */

#include <linux/gfp.h>
#include <linux/mm.h>

#include "tp4_status.h"

/**
 * tp4_status_mmap() - map the status page
 * @po:		the packet socket, with V4 rings
 * @vma:	the mapping
 * @addr:	address of the page in @vma
 *
 * Context: Process context, may sleep, under pg_vec_lock.
 * Return: 0, -ENOMEM, or an error of vm_insert_page().
 */
int tp4_status_mmap(struct packet_sock *po, struct vm_area_struct *vma,
		    unsigned long addr)
{
	struct tpacket4_status *status = po->tp4_status;

	if (!status) {
		status = (void *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
		if (!status)
			return -ENOMEM;
		status->tx_need_wakeup = 1;
		/* Pairs with the READ_ONCE() in tp4_status_need_wakeup(). */
		smp_store_release(&po->tp4_status, status);
	}
	return vm_insert_page(vma, addr, virt_to_page(status));
}

/**
 * tp4_status_free() - free a closing socket's status page
 * @po:	the packet socket, whose rings are no longer in use
 *
 * Context: Any.
 */
void tp4_status_free(struct packet_sock *po)
{
	free_page((unsigned long)po->tp4_status);
	po->tp4_status = NULL;
}
