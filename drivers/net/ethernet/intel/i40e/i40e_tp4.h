/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _I40E_TP4_H_
#define _I40E_TP4_H_

#include "i40e.h"

struct tp4_netdev_parms;

#ifdef CONFIG_PACKET_V4
static inline void i40e_tp4_init_vsi(struct i40e_vsi *vsi)
{
	xa_init(&vsi->tp4);
}

static inline bool i40e_ring_is_tp4(const struct i40e_ring *ring)
{
	return ring->tp4;
}

/* A copy of a ring does not own what the ring owns. */
static inline void i40e_tp4_disown(struct i40e_ring *copy)
{
	copy->tp4 = NULL;
}

int i40e_tp4_limit_frame(struct i40e_vsi *vsi, int frame_size);
void i40e_tp4_attach_ring(struct i40e_ring *ring);
void i40e_tp4_alloc_rx_buffers(struct i40e_ring *rx_ring);
void i40e_tp4_start(struct i40e_vsi *vsi);
void i40e_tp4_clean_rx_ring(struct i40e_ring *rx_ring);
void i40e_tp4_clean_tx_ring(struct i40e_ring *tx_ring);
int i40e_tp4_clean_rx_irq(struct i40e_ring *rx_ring, int budget);
bool i40e_tp4_clean_tx_irq(struct i40e_ring *tx_ring);
int i40e_tp4_zerocopy(struct net_device *dev, struct tp4_netdev_parms *parms);
int i40e_tp4_xmit(struct net_device *dev, int queue_pair);
#else
static inline void i40e_tp4_init_vsi(struct i40e_vsi *vsi)
{
}

static inline bool i40e_ring_is_tp4(const struct i40e_ring *ring)
{
	return false;
}

static inline void i40e_tp4_disown(struct i40e_ring *copy)
{
}

static inline int i40e_tp4_limit_frame(struct i40e_vsi *vsi, int frame_size)
{
	return frame_size;
}

static inline void i40e_tp4_attach_ring(struct i40e_ring *ring)
{
}

static inline void i40e_tp4_start(struct i40e_vsi *vsi)
{
}

static inline void i40e_tp4_clean_rx_ring(struct i40e_ring *rx_ring)
{
}

static inline void i40e_tp4_clean_tx_ring(struct i40e_ring *tx_ring)
{
}

/* Only declared here: no call is left. */
void i40e_tp4_alloc_rx_buffers(struct i40e_ring *rx_ring);
int i40e_tp4_clean_rx_irq(struct i40e_ring *rx_ring, int budget);
bool i40e_tp4_clean_tx_irq(struct i40e_ring *tx_ring);
#endif

#endif /* _I40E_TP4_H_ */
