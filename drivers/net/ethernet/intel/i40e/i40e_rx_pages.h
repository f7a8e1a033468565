/* SPDX-License-Identifier: GPL-2.0 */
/* Rx of ordinary queues by packet arrays. It replaces i40e_clean_rx_irq() if
 * i40e_rx_pages.o is built, see the Makefile.
 */
#ifndef _I40E_RX_PAGES_H_
#define _I40E_RX_PAGES_H_

#include <linux/types.h>

struct i40e_ring;

#define I40E_RX_PAGES	IS_ENABLED(CONFIG_PACKET_V4)

#ifdef CONFIG_PACKET_V4
int i40e_pages_setup(struct i40e_ring *rx_ring);
void i40e_pages_free(struct i40e_ring *rx_ring);
#else
static inline int i40e_pages_setup(struct i40e_ring *rx_ring)
{
	return 0;
}

static inline void i40e_pages_free(struct i40e_ring *rx_ring)
{
}
#endif

/* Without I40E_RX_PAGES, all calls of the following are optimized out. */
void i40e_pages_clean_ring(struct i40e_ring *rx_ring);
bool i40e_pages_alloc_rx_buffers(struct i40e_ring *rx_ring);
int i40e_pages_clean_rx_irq(struct i40e_ring *rx_ring, int budget,
			    unsigned int *rx_cleaned);

#endif /* _I40E_RX_PAGES_H_ */
