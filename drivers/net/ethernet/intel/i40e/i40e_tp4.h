/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _I40E_TP4_H_
#define _I40E_TP4_H_

#include <linux/tpacket4_queue.h>
#include "i40e.h"

#ifdef CONFIG_PACKET_V4
#include <linux/tpacket4.h>

/**
 * struct i40e_tp4 - a queue pair in zero-copy mode
 * @parms:	parameters of ndo_tp4_zerocopy, for error reports
 * @rx:		received packets, or NULL if the socket only sends
 * @tx:		packets to send, or NULL if the socket only receives
 * @xdp:	XDP program for packets in @rx
 * @xdp_buff:	context of the XDP program
 * @meta_skb:	an skb without data, used to get metadata from descriptors
 * @q_vector:	the vector whose NAPI uses the queue pair, or NULL while NAPI is
 *		disabled
 * @tx_in_flight: number of frames of @tx in runs that have not completed
 * @rx_buf_len:	number of bytes of a frame that the hardware may write
 * @error:	why it was lost, as a positive errno, or 0 since it was started
 * @leaving:	the queue pair is going back to the stack; under tp4_lock
 * @stuck:	the hardware may still use the frames until the function is
 *		reset; written under tp4_lock
 */
struct i40e_tp4 {
	struct tp4_netdev_parms		parms;
	struct tp4_packet_array		*rx;
	struct tp4_packet_array		*tx;
	struct tp4_xdp			xdp;
	struct xdp_buff			xdp_buff;
	struct sk_buff			*meta_skb;
	struct i40e_q_vector __rcu	*q_vector;
	u32				tx_in_flight;
	u16				rx_buf_len;
	int				error;
	bool				leaving;
	bool				stuck;
};

static inline void i40e_tp4_init_vsi(struct i40e_vsi *vsi)
{
	xa_init(&vsi->tp4);
	mutex_init(&vsi->tp4_lock);
}

/* Protects against queue pairs being stopped or started. There is no main VSI
 * after a rebuild that has failed.
 */
static inline void i40e_tp4_lock(struct i40e_vsi *vsi)
{
	if (vsi)
		mutex_lock(&vsi->tp4_lock);
}

static inline void i40e_tp4_unlock(struct i40e_vsi *vsi)
{
	if (vsi)
		mutex_unlock(&vsi->tp4_lock);
}

/* Lock, unless the VSI has gone down while i40e_down() held the lock. */
static inline bool i40e_tp4_lock_up(struct i40e_vsi *vsi)
{
	mutex_lock(&vsi->tp4_lock);
	if (!test_bit(__I40E_VSI_DOWN, vsi->state))
		return true;
	mutex_unlock(&vsi->tp4_lock);
	return false;
}

/* Check whether requests for a reset have to wait for a queue pair that is being
 * switched.
 */
static inline bool i40e_tp4_delays_reset(const struct i40e_pf *pf)
{
	return test_bit(__I40E_CONFIG_BUSY, pf->state) &&
	       !test_bit(__I40E_RESET_INTR_RECEIVED, pf->state);
}

/* Tell the program that its queue pair is lost. */
static inline void i40e_tp4_report(struct i40e_tp4 *tp4, int error)
{
	WRITE_ONCE(tp4->error, error);
	tp4->parms.error_report(tp4->parms.error_report_opaque, error);
}

static inline bool i40e_ring_is_tp4(const struct i40e_ring *ring)
{
	return ring->tp4;
}

/* A copy of a ring does not own the queue pair, and the ring may be used until
 * the copy replaces it.
 */
static inline void i40e_tp4_forget(struct i40e_ring *copy)
{
	copy->tp4 = NULL;
	copy->has_atr = true;
}

/* An ATR filter is added that leads to the queue pair of a Tx ring. NAPI reads
 * the cache line, so it is not written for every filter.
 */
static inline void i40e_tp4_note_atr(struct i40e_ring *tx_ring)
{
	if (!tx_ring->has_atr)
		tx_ring->has_atr = true;
}

/* i40e_tp4.c */
struct i40e_tp4 *i40e_tp4_alloc(struct i40e_vsi *vsi,
				const struct tp4_netdev_parms *parms,
				u16 buf_len);
void i40e_tp4_free(struct i40e_tp4 *tp4);
void i40e_tp4_wake(const struct i40e_tp4 *tp4);
void i40e_tp4_alloc_rx_buffers(struct i40e_ring *rx_ring);
void i40e_tp4_return_tx(struct i40e_tp4 *tp4);
int i40e_tp4_clean_rx_irq(struct i40e_ring *rx_ring, int budget);
bool i40e_tp4_clean_tx_irq(struct i40e_ring *tx_ring);

/* i40e_tp4_pair.c */
int i40e_tp4_limit_frame(struct i40e_vsi *vsi, int frame_size);
void i40e_tp4_attach_ring(struct i40e_ring *ring);
void i40e_tp4_start(struct i40e_vsi *vsi);
void i40e_tp4_clean_rx_ring(struct i40e_ring *rx_ring);
void i40e_tp4_clean_tx_ring(struct i40e_ring *tx_ring);
bool i40e_tp4_needs_reset(struct i40e_pf *pf);
void i40e_tp4_reset_done(struct i40e_pf *pf, int err);
void i40e_tp4_rebuilt(struct i40e_pf *pf, bool rtnl_held);
void i40e_tp4_set_testing(struct i40e_vsi *vsi, bool testing);
void i40e_tp4_not_up(struct i40e_vsi *vsi);
int i40e_tp4_zerocopy(struct net_device *dev, struct tp4_netdev_parms *parms);
int i40e_tp4_xmit(struct net_device *dev, int queue_pair, u32 flags);

/* i40e_main.c */
int i40e_queue_pair_configure(struct i40e_vsi *vsi, int queue_pair);
void i40e_fdir_forget_atr(struct i40e_ring *tx_ring);
#else
static inline void i40e_tp4_init_vsi(struct i40e_vsi *vsi) { }

static inline bool i40e_ring_is_tp4(const struct i40e_ring *ring)
{
	return false;
}

static inline void i40e_tp4_forget(struct i40e_ring *copy) { }
static inline void i40e_tp4_note_atr(struct i40e_ring *tx_ring) { }
static inline void i40e_tp4_lock(struct i40e_vsi *vsi) { }
static inline void i40e_tp4_unlock(struct i40e_vsi *vsi) { }
static inline bool i40e_tp4_lock_up(struct i40e_vsi *vsi) { return true; }

static inline int i40e_tp4_limit_frame(struct i40e_vsi *vsi, int frame_size)
{
	return frame_size;
}

static inline void i40e_tp4_attach_ring(struct i40e_ring *ring) { }
static inline void i40e_tp4_start(struct i40e_vsi *vsi) { }
static inline void i40e_tp4_clean_rx_ring(struct i40e_ring *rx_ring) { }
static inline void i40e_tp4_clean_tx_ring(struct i40e_ring *tx_ring) { }

static inline bool i40e_tp4_delays_reset(const struct i40e_pf *pf)
{
	return false;
}

static inline bool i40e_tp4_needs_reset(struct i40e_pf *pf) { return false; }
static inline void i40e_tp4_reset_done(struct i40e_pf *pf, int err) { }
static inline void i40e_tp4_rebuilt(struct i40e_pf *pf, bool rtnl_held) { }
static inline void i40e_tp4_set_testing(struct i40e_vsi *vsi, bool testing) { }
static inline void i40e_tp4_not_up(struct i40e_vsi *vsi) { }

/* All calls of the following are optimized out. */
void i40e_tp4_alloc_rx_buffers(struct i40e_ring *rx_ring);
int i40e_tp4_clean_rx_irq(struct i40e_ring *rx_ring, int budget);
bool i40e_tp4_clean_tx_irq(struct i40e_ring *tx_ring);
#endif

#endif /* _I40E_TP4_H_ */
