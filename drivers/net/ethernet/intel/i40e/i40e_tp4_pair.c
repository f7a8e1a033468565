// SPDX-License-Identifier: GPL-2.0
/* TPACKET_V4 zero-copy mode: switching of queue pairs
 *
 * A queue pair is switched between the stack and a socket while the others keep
 * running: it is stopped, its rings are set up for the new owner, and it is
 * started again. Three other activities must not run at the same time:
 * reconfiguration under RTNL; i40e_vsi_reinit_locked() under
 * __I40E_CONFIG_BUSY; and the parts of the service task and of the PCI error
 * handlers that hold neither, which take tp4_lock. The locks are taken in this
 * order.
 *
 * The card may write to a frame until the queue has stopped. If it does not
 * stop, the frames stay mapped and in the arrays, and the function is reset. If
 * the reset fails, too, bus mastering is disabled.
 */

#include <linux/iopoll.h>
#include <linux/pci.h>
#include <linux/rtnetlink.h>
#include <linux/tpacket4.h>
#include "i40e_lan_hmc.h"
#include "i40e_tp4.h"

/* Minimum size of a receive buffer */
#define I40E_TP4_BUF_MIN	1024
#define I40E_TP4_BUF_ALIGN	BIT(I40E_RXQ_CTX_DBUFF_SHIFT)

/* Time after which a queue is considered not to stop */
#define I40E_TP4_STOP_US	(50 * USEC_PER_MSEC)

/* The hardware may report an Rx queue as stopped this much too early. */
#define I40E_TP4_RX_DRAIN_MS	50

/* How long to wait for __I40E_CONFIG_BUSY: entering zero-copy mode fails after
 * that, leaving it goes on.
 */
#define I40E_TP4_BUSY_MS	100
#define I40E_TP4_LEAVE_MS	5000

/* Maximum duration of a reset, including a global reset in progress */
#define I40E_TP4_RESET_MS	20000

/* ---- setup and teardown of rings ---- */

/**
 * i40e_tp4_limit_frame() - get the maximum packet size of a VSI
 * @vsi:	the VSI
 * @frame_size:	maximum packet size of its other queues
 *
 * A packet can use as many frames of a zero-copy queue pair as the hardware
 * chains buffers.
 *
 * Context: Under RTNL.
 * Return: the maximum packet size of all queues.
 */
int i40e_tp4_limit_frame(struct i40e_vsi *vsi, int frame_size)
{
	u32 chain_len = vsi->back->hw.func_caps.rx_buf_chain_len;
	struct i40e_tp4 *tp4;
	unsigned long i;

	xa_for_each(&vsi->tp4, i, tp4) {
		if (tp4->rx)
			frame_size = min_t(u32, frame_size,
					   chain_len * tp4->rx_buf_len);
	}
	return frame_size;
}

static bool i40e_tp4_is_rx(struct i40e_ring *ring)
{
	return !ring_is_xdp(ring) &&
	       ring == ring->vsi->rx_rings[ring->queue_index];
}

/**
 * i40e_tp4_attach_ring() - attach a ring to its zero-copy queue pair
 * @ring:	the Rx or Tx ring, about to be configured
 *
 * Does nothing if the queue pair is not in zero-copy mode, or if the socket has
 * no ring for this direction.
 *
 * Context: While the NAPI of the queue pair is disabled.
 */
void i40e_tp4_attach_ring(struct i40e_ring *ring)
{
	struct i40e_tp4 *tp4;

	ring->tp4 = NULL;
	/* Its index is not that of a queue pair. */
	if (ring_is_xdp(ring))
		return;
	tp4 = xa_load(&ring->vsi->tp4, ring->queue_index);
	if (!tp4 || tp4->leaving || tp4->stuck)
		return;
	if (i40e_tp4_is_rx(ring)) {
		if (!tp4->rx)
			return;
		ring->rx_buf_len = tp4->rx_buf_len;
	} else {
		/* The stack may send here, but must not steer replies here. */
		if (tp4->rx)
			ring->atr_sample_rate = 0;
		if (!tp4->tx)
			return;
	}
	ring->tp4 = tp4;
}

/* Let kicks schedule the NAPI of a ring. */
static void i40e_tp4_attach(struct i40e_tp4 *tp4, const struct i40e_ring *ring)
{
	WRITE_ONCE(tp4->error, 0);
	rcu_assign_pointer(tp4->q_vector, ring->q_vector);
}

/**
 * i40e_tp4_start() - start the zero-copy queue pairs of a VSI
 * @vsi:	the VSI; nothing is done if it is down
 *
 * Context: Under RTNL, or while __I40E_CONFIG_BUSY is set.
 */
void i40e_tp4_start(struct i40e_vsi *vsi)
{
	struct i40e_tp4 *tp4;
	unsigned long i;

	if (test_bit(__I40E_VSI_DOWN, vsi->state))
		return;
	rcu_read_lock();
	xa_for_each(&vsi->tp4, i, tp4) {
		if (i >= vsi->num_queue_pairs) {
			/* The VSI was rebuilt with fewer queue pairs. */
			i40e_tp4_report(tp4, ENXIO);
			continue;
		}
		if (tp4->leaving || tp4->stuck)
			continue;
		i40e_tp4_attach(tp4, vsi->rx_rings[i]);
		i40e_tp4_wake(tp4);
	}
	rcu_read_unlock();
}

/* Stop kicks of a queue pair. */
static void i40e_tp4_detach(struct i40e_tp4 *tp4)
{
	if (!rcu_access_pointer(tp4->q_vector))
		return;
	RCU_INIT_POINTER(tp4->q_vector, NULL);
	/* Wait for kicks in progress. */
	synchronize_net();
}

/* Wait for the hardware to stop a queue. Return false if it does not. */
static bool i40e_tp4_has_stopped(struct i40e_ring *ring)
{
	const struct i40e_vsi *vsi = ring->vsi;
	u32 q = vsi->base_queue + ring->queue_index;
	struct pci_dev *pdev = vsi->back->pdev;
	struct i40e_hw *hw = &vsi->back->hw;
	u32 reg, mask, val;
	int err;

	if (i40e_tp4_is_rx(ring)) {
		reg = I40E_QRX_ENA(q);
		mask = I40E_QRX_ENA_QENA_STAT_MASK;
	} else {
		reg = I40E_QTX_ENA(q);
		mask = I40E_QTX_ENA_QENA_STAT_MASK;
	}
	err = read_poll_timeout(rd32, val, !(val & mask), 20, I40E_TP4_STOP_US,
				false, hw, reg);
	return !err || pci_channel_offline(pdev) ||
	       !pci_device_is_present(pdev);
}

/* Keep all frames until the function has been reset, and schedule the reset. */
static void i40e_tp4_set_stuck(struct i40e_ring *ring, struct i40e_tp4 *tp4)
{
	if (!tp4->stuck)
		dev_warn(&ring->vsi->back->pdev->dev,
			 "queue pair %d does not stop, resetting\n",
			 ring->queue_index);
	WRITE_ONCE(tp4->stuck, true);
	i40e_service_event_schedule(ring->vsi->back);
}

/**
 * i40e_tp4_clean_rx_ring() - detach an Rx ring from its zero-copy queue pair
 * @rx_ring:	the Rx ring, in zero-copy mode or not
 *
 * The frames that the hardware had are used again when the ring is up.
 *
 * Context: While the NAPI of the queue pair is disabled; may sleep.
 */
void i40e_tp4_clean_rx_ring(struct i40e_ring *rx_ring)
{
	struct i40e_tp4 *tp4 = rx_ring->tp4;

	if (!tp4)
		return;
	i40e_tp4_detach(tp4);
	if (!i40e_tp4_has_stopped(rx_ring))
		i40e_tp4_set_stuck(rx_ring, tp4);
	rx_ring->tp4 = NULL;
}

/**
 * i40e_tp4_clean_tx_ring() - detach a Tx ring from its zero-copy queue pair
 * @tx_ring:	the Tx ring, in zero-copy mode or not
 *
 * Returns the frames in flight. As with packets of the stack, some may not have
 * been sent.
 *
 * Context: While the NAPI of the queue pair is disabled; may sleep.
 */
void i40e_tp4_clean_tx_ring(struct i40e_ring *tx_ring)
{
	struct i40e_tp4 *tp4 = tx_ring->tp4;

	if (!tp4)
		return;
	i40e_tp4_detach(tp4);
	if (i40e_tp4_has_stopped(tx_ring))
		i40e_tp4_return_tx(tp4);
	else
		i40e_tp4_set_stuck(tx_ring, tp4);
	tx_ring->tp4 = NULL;
}

/* ---- resets ---- */

/**
 * i40e_tp4_needs_reset() - check for a queue that did not stop
 * @pf:	the function
 *
 * Context: Service task.
 * Return: true if the function must be reset.
 */
bool i40e_tp4_needs_reset(struct i40e_pf *pf)
{
	struct i40e_vsi *vsi = i40e_pf_get_main_vsi(pf);
	struct i40e_tp4 *tp4;
	bool stuck = false;
	unsigned long i;

	if (!vsi)
		return false;
	rcu_read_lock();
	xa_for_each(&vsi->tp4, i, tp4)
		stuck |= READ_ONCE(tp4->stuck);
	rcu_read_unlock();
	return stuck;
}

/**
 * i40e_tp4_reset_done() - handle the end of a reset, when no queue is running
 * @pf:		the function
 * @err:	0, or the error of the reset
 *
 * Context: Process context, takes the lock of the main VSI.
 */
void i40e_tp4_reset_done(struct i40e_pf *pf, int err)
{
	struct i40e_vsi *vsi = i40e_pf_get_main_vsi(pf);
	struct i40e_tp4 *tp4;
	unsigned long i;

	if (!vsi)
		return;
	mutex_lock(&vsi->tp4_lock);
	/* Off the bus until a reset has worked */
	if (!err)
		pci_set_master(pf->pdev);
	else if (i40e_tp4_needs_reset(pf))
		pci_clear_master(pf->pdev);
	xa_for_each(&vsi->tp4, i, tp4) {
		if (tp4->stuck) {
			i40e_tp4_return_tx(tp4);
			WRITE_ONCE(tp4->stuck, false);
		}
		if (err)
			i40e_tp4_report(tp4, -err);
	}
	mutex_unlock(&vsi->tp4_lock);
}

/**
 * i40e_tp4_rebuilt() - report queue pairs lost in a reset
 * @pf:		the function, after the rebuild
 * @rtnl_held:	whether the caller holds the RTNL
 *
 * Context: Process context, takes the RTNL and the lock of the main VSI.
 */
void i40e_tp4_rebuilt(struct i40e_pf *pf, bool rtnl_held)
{
	struct i40e_vsi *vsi = i40e_pf_get_main_vsi(pf);
	struct i40e_tp4 *tp4;
	unsigned long i;

	if (!vsi || !vsi->netdev || xa_empty(&vsi->tp4))
		return;
	/* A change of the MTU takes the VSI down for a moment. */
	if (!rtnl_held)
		rtnl_lock();
	mutex_lock(&vsi->tp4_lock);
	if (netif_running(vsi->netdev) &&
	    test_bit(__I40E_VSI_DOWN, vsi->state) && !vsi->tp4_testing) {
		xa_for_each(&vsi->tp4, i, tp4)
			i40e_tp4_report(tp4, EIO);
	}
	mutex_unlock(&vsi->tp4_lock);
	if (!rtnl_held)
		rtnl_unlock();
}

/**
 * i40e_tp4_set_testing() - begin or end an offline self-test
 * @vsi:	the main VSI
 * @testing:	true to begin
 *
 * The test closes the VSI itself, so a reset does not open it again. At the
 * end, its queue pairs are lost if the test could not open it, either.
 *
 * Context: Under RTNL, takes the lock of the main VSI.
 */
void i40e_tp4_set_testing(struct i40e_vsi *vsi, bool testing)
{
	vsi->tp4_testing = testing;
	if (!testing)
		i40e_tp4_rebuilt(vsi->back, true);
}

/**
 * i40e_tp4_not_up() - handle a VSI that was down and does not come up again
 * @vsi:	the VSI
 *
 * Its queue pairs are lost until it is closed and opened.
 *
 * Context: Under RTNL, or while __I40E_CONFIG_BUSY is set; takes the lock of
 * the VSI.
 */
void i40e_tp4_not_up(struct i40e_vsi *vsi)
{
	struct i40e_tp4 *tp4;
	unsigned long i;

	mutex_lock(&vsi->tp4_lock);
	xa_for_each(&vsi->tp4, i, tp4) {
		if (i < vsi->num_queue_pairs) {
			i40e_tp4_clean_tx_ring(vsi->tx_rings[i]);
			i40e_tp4_clean_rx_ring(vsi->rx_rings[i]);
		}
		i40e_tp4_report(tp4, EIO);
	}
	mutex_unlock(&vsi->tp4_lock);
}

static bool i40e_tp4_ring_has(struct i40e_ring **rings, int queue_pair,
			      const struct i40e_tp4 *tp4)
{
	return rings[queue_pair] && rings[queue_pair]->tp4 == tp4;
}

/* Check whether rings are attached to a queue pair. */
static bool i40e_tp4_is_attached(const struct i40e_vsi *vsi, int queue_pair,
				 const struct i40e_tp4 *tp4)
{
	/* There are no rings after a failed reset, and fewer after one with
	 * fewer queue pairs.
	 */
	return vsi->tx_rings && queue_pair < vsi->alloc_queue_pairs &&
	       (i40e_tp4_ring_has(vsi->rx_rings, queue_pair, tp4) ||
		i40e_tp4_ring_has(vsi->tx_rings, queue_pair, tp4));
}

/* Check that the hardware does not use frames of a queue pair. */
static bool i40e_tp4_is_idle(struct i40e_vsi *vsi, int queue_pair,
			     const struct i40e_tp4 *tp4)
{
	bool idle;

	mutex_lock(&vsi->tp4_lock);
	idle = !tp4->stuck && !i40e_tp4_is_attached(vsi, queue_pair, tp4);
	mutex_unlock(&vsi->tp4_lock);
	return idle;
}

/* Check for a reset that is pending or in progress. */
static bool i40e_tp4_in_reset(const struct i40e_pf *pf)
{
	return test_bit(__I40E_RESET_RECOVERY_PENDING, pf->state) ||
	       test_bit(__I40E_RESET_INTR_RECEIVED, pf->state);
}

/* ---- switching of queue pairs ---- */

static bool i40e_tp4_enter_busy(struct i40e_pf *pf, int ms)
{
	while (test_and_set_bit(__I40E_CONFIG_BUSY, pf->state)) {
		if (!ms--)
			return false;
		usleep_range(1000, 1500);
	}
	return true;
}

static void i40e_tp4_exit_busy(struct i40e_pf *pf)
{
	clear_bit(__I40E_CONFIG_BUSY, pf->state);
}

/* Check whether the queue pair is running. If not, it is set up when the device
 * goes up.
 */
static bool i40e_tp4_pair_is_up(const struct i40e_vsi *vsi, int queue_pair)
{
	return !test_bit(__I40E_VSI_DOWN, vsi->state) &&
	       queue_pair < vsi->num_queue_pairs;
}

/* Start or stop the hardware queues.
 * Return: 0, or the first error; all queues are started or stopped in any case.
 */
static int i40e_tp4_toggle_rings(struct i40e_vsi *vsi, int queue_pair,
				 bool enable)
{
	int q = vsi->base_queue + queue_pair, xdp_err = 0, tx_err, rx_err;
	struct i40e_pf *pf = vsi->back;

	tx_err = i40e_control_wait_tx_q(vsi->seid, pf, q, false, enable);
	rx_err = i40e_control_wait_rx_q(pf, q, enable);
	if (i40e_enabled_xdp_vsi(vsi))
		xdp_err = i40e_control_wait_tx_q(vsi->seid, pf,
						 q + vsi->alloc_queue_pairs,
						 true, enable);
	return tx_err ? : rx_err ? : xdp_err;
}

/* The watchdog must not take a queue that is stopped here for one that hangs. */
static void i40e_tp4_calm_watchdog(const struct i40e_vsi *vsi, int queue_pair)
{
	txq_trans_cond_update(netdev_get_tx_queue(vsi->netdev, queue_pair));
}

/* Start or stop the stack's Tx queue. */
static void i40e_tp4_toggle_stack(struct i40e_vsi *vsi, int queue_pair,
				  bool enable)
{
	struct netdev_queue *nq = netdev_get_tx_queue(vsi->netdev, queue_pair);

	__netif_tx_lock_bh(nq);
	i40e_tp4_calm_watchdog(vsi, queue_pair);
	if (!enable)
		netif_tx_stop_queue(nq);
	else if (netif_carrier_ok(vsi->netdev))
		netif_tx_wake_queue(nq);
	__netif_tx_unlock_bh(nq);
}

/* Enable or disable NAPI. The vector may serve other queue pairs, whose
 * interrupts may have been missed, so NAPI is scheduled. With MSI and INTx the
 * interrupt has other uses and stays enabled; it does no harm while NAPI is
 * disabled.
 */
static void i40e_tp4_toggle_napi(struct i40e_vsi *vsi, int queue_pair,
				 bool enable)
{
	struct i40e_q_vector *q_vector = vsi->rx_rings[queue_pair]->q_vector;
	bool msix = test_bit(I40E_FLAG_MSIX_ENA, vsi->back->flags);
	u32 vec = vsi->base_vector + q_vector->v_idx;
	struct i40e_hw *hw = &vsi->back->hw;

	if (enable) {
		napi_enable(&q_vector->napi);
		if (msix)
			i40e_irq_dynamic_enable(vsi, q_vector->v_idx);
		local_bh_disable();
		napi_schedule(&q_vector->napi);
		local_bh_enable();
		return;
	}
	if (msix) {
		wr32(hw, I40E_PFINT_DYN_CTLN(vec - 1), 0);
		i40e_flush(hw);
		synchronize_irq(vsi->back->msix_entries[vec].vector);
	}
	napi_disable(&q_vector->napi);
}

/* Clean the rings of a queue pair, whose NAPI is disabled. */
static void i40e_tp4_clean_pair(struct i40e_vsi *vsi, int queue_pair)
{
	i40e_clean_tx_ring(vsi->tx_rings[queue_pair]);
	if (i40e_enabled_xdp_vsi(vsi)) {
		/* Wait for ndo_xdp_xmit in progress. */
		synchronize_net();
		i40e_clean_tx_ring(vsi->xdp_rings[queue_pair]);
	}
	i40e_clean_rx_ring(vsi->rx_rings[queue_pair]);
}

/* Stop a queue pair, and clean its rings.
 * Return: false if the hardware does not stop. Then only the stack's Tx queue
 * is stopped, and the function must be reset.
 */
static bool i40e_tp4_stop_pair(struct i40e_vsi *vsi, int queue_pair)
{
	struct i40e_ring *tx_ring = vsi->tx_rings[queue_pair];
	struct i40e_ring *rx_ring = vsi->rx_rings[queue_pair];
	bool xdp = i40e_enabled_xdp_vsi(vsi);

	/* NAPI would wake the stack's queue. */
	i40e_tp4_toggle_napi(vsi, queue_pair, false);
	i40e_tp4_toggle_stack(vsi, queue_pair, false);
	i40e_tp4_toggle_rings(vsi, queue_pair, false);
	if (!i40e_tp4_has_stopped(tx_ring) || !i40e_tp4_has_stopped(rx_ring) ||
	    (xdp && !i40e_tp4_has_stopped(vsi->xdp_rings[queue_pair]))) {
		i40e_tp4_toggle_napi(vsi, queue_pair, true);
		return false;
	}
	i40e_tp4_calm_watchdog(vsi, queue_pair);
	msleep(I40E_TP4_RX_DRAIN_MS);
	i40e_tp4_clean_pair(vsi, queue_pair);
	i40e_tp4_calm_watchdog(vsi, queue_pair);
	return true;
}

/* Set up and start a queue pair for its owner. NAPI is enabled even on failure,
 * so that the device can go down.
 */
static int i40e_tp4_start_pair(struct i40e_vsi *vsi, int queue_pair)
{
	struct i40e_ring *rx_ring = vsi->rx_rings[queue_pair];
	struct i40e_tp4 *tp4 = xa_load(&vsi->tp4, queue_pair);
	int err;

	err = i40e_queue_pair_configure(vsi, queue_pair);
	if (!err)
		err = i40e_tp4_toggle_rings(vsi, queue_pair, true);
	/* A kick before NAPI is enabled is handled by its first run. */
	if (!err && tp4 && !tp4->leaving)
		i40e_tp4_attach(tp4, rx_ring);
	i40e_tp4_toggle_napi(vsi, queue_pair, true);
	if (!err)
		i40e_tp4_toggle_stack(vsi, queue_pair, true);
	return err;
}

/* Detach the rings of a queue pair that the hardware no longer uses, but that
 * no reset has cleaned.
 */
static void i40e_tp4_drop_rings(struct i40e_vsi *vsi, int queue_pair,
				const struct i40e_tp4 *tp4)
{
	/* For ndo_xdp_xmit, see i40e_tp4_leave() */
	bool busy = i40e_tp4_enter_busy(vsi->back, I40E_TP4_LEAVE_MS);

	mutex_lock(&vsi->tp4_lock);
	if (i40e_tp4_is_attached(vsi, queue_pair, tp4)) {
		i40e_tp4_toggle_napi(vsi, queue_pair, false);
		i40e_tp4_toggle_stack(vsi, queue_pair, false);
		i40e_tp4_clean_pair(vsi, queue_pair);
		i40e_tp4_toggle_napi(vsi, queue_pair, true);
	}
	mutex_unlock(&vsi->tp4_lock);
	if (busy)
		i40e_tp4_exit_busy(vsi->back);
}

/* Reset the function to stop a queue pair. */
static void i40e_tp4_reset(struct i40e_vsi *vsi, int queue_pair,
			   const struct i40e_tp4 *tp4)
{
	struct i40e_pf *pf = vsi->back;
	int err, ms;

	if (test_bit(__I40E_IN_REMOVE, pf->state)) {
		err = i40e_pf_reset(&pf->hw);
		if (err)
			pci_clear_master(pf->pdev);
		i40e_tp4_reset_done(pf, err);
		goto drop;
	}
	/* A reset that the service task has begun needs RTNL only for the
	 * rebuild. One that it is still to begin may have to wait for us.
	 */
	if (!test_bit(__I40E_RESET_RECOVERY_PENDING, pf->state))
		i40e_do_reset(pf, I40E_PF_RESET_FLAG, true);

	for (ms = 0; ms < I40E_TP4_RESET_MS; ms += 20) {
		if (i40e_tp4_is_idle(vsi, queue_pair, tp4))
			return;
		i40e_tp4_calm_watchdog(vsi, queue_pair);
		msleep(20);
	}
	mutex_lock(&vsi->tp4_lock);
	/* A reset may have worked meanwhile. */
	if (tp4->stuck || i40e_tp4_is_attached(vsi, queue_pair, tp4)) {
		dev_err(&pf->pdev->dev, "cannot be reset, taken off the bus\n");
		pci_clear_master(pf->pdev);
	}
	mutex_unlock(&vsi->tp4_lock);
drop:
	i40e_tp4_drop_rings(vsi, queue_pair, tp4);
}

/* Take a queue pair back from its socket. The hardware no longer uses the
 * frames when this returns.
 */
static void i40e_tp4_leave(struct i40e_vsi *vsi, int queue_pair,
			   struct i40e_tp4 *tp4)
{
	bool stopped = false, busy;
	int err = 0;

	/* If the flag is set for so long, it has been leaked; go on. */
	busy = i40e_tp4_enter_busy(vsi->back, I40E_TP4_LEAVE_MS);
	mutex_lock(&vsi->tp4_lock);
	/* A rebuild does not set it up for the socket from here on. */
	tp4->leaving = true;
	i40e_tp4_detach(tp4);
	if (i40e_tp4_is_attached(vsi, queue_pair, tp4))
		stopped = i40e_tp4_stop_pair(vsi, queue_pair);
	if (stopped)
		err = i40e_tp4_start_pair(vsi, queue_pair);
	mutex_unlock(&vsi->tp4_lock);
	if (busy)
		i40e_tp4_exit_busy(vsi->back);

	if (err && !i40e_tp4_in_reset(vsi->back))
		netdev_err(vsi->netdev, "queue pair %d does not start: %pe\n",
			   queue_pair, ERR_PTR(err));
	if (!i40e_tp4_is_idle(vsi, queue_pair, tp4))
		i40e_tp4_reset(vsi, queue_pair, tp4);

	mutex_lock(&vsi->tp4_lock);
	xa_erase(&vsi->tp4, queue_pair);
	mutex_unlock(&vsi->tp4_lock);
	/* Wait for users that have found it in the xarray. */
	synchronize_net();
	i40e_tp4_free(tp4);
}

/* Switch a running queue pair. Return -EAGAIN if it needs a reset. */
static int i40e_tp4_switch_pair(struct i40e_vsi *vsi, int queue_pair,
				const struct i40e_tp4 *tp4)
{
	if (!i40e_tp4_stop_pair(vsi, queue_pair))
		return -EAGAIN;
	/* Replies to the stack's flows must no longer arrive here. */
	if (tp4->rx)
		i40e_fdir_forget_atr(vsi->tx_rings[queue_pair]);
	return i40e_tp4_start_pair(vsi, queue_pair);
}

/* Give a queue pair to a socket, at once or when the device goes up. */
static int i40e_tp4_hand_over(struct i40e_vsi *vsi, int queue_pair,
			      struct i40e_tp4 *tp4)
{
	struct i40e_pf *pf = vsi->back;
	int err;

	err = xa_err(xa_store(&vsi->tp4, queue_pair, tp4, GFP_KERNEL));
	if (err)
		return err;
	mutex_lock(&vsi->tp4_lock);
	if (i40e_tp4_pair_is_up(vsi, queue_pair))
		err = i40e_tp4_switch_pair(vsi, queue_pair, tp4);
	else if (tp4->rx)
		i40e_fdir_forget_atr(vsi->tx_rings[queue_pair]);
	mutex_unlock(&vsi->tp4_lock);

	/* The reset in progress sets up the queue pair. */
	if (err && i40e_tp4_in_reset(pf))
		return 0;
	if (err != -EAGAIN)
		return err;
	i40e_do_reset(pf, I40E_PF_RESET_FLAG, true);
	return i40e_tp4_pair_is_up(vsi, queue_pair) ? 0 : -EIO;
}

/* Number of bytes of a frame that the hardware may write, or an error */
static int i40e_tp4_buf_len(const struct i40e_vsi *vsi,
			    const struct tp4_netdev_parms *parms)
{
	const struct tp4_limits limits = {
		.buf_unit = I40E_TP4_BUF_ALIGN,
		.buf_min = I40E_TP4_BUF_MIN,
		.buf_max = I40E_MAX_RXBUFFER,
		.buf_chain = vsi->back->hw.func_caps.rx_buf_chain_len,
	};

	return tp4_rx_buf_len(parms->rx_opaque, &limits,
			      vsi->netdev->mtu + I40E_PACKET_HDR_PAD);
}

static int i40e_tp4_enable(struct i40e_vsi *vsi,
			   const struct tp4_netdev_parms *parms)
{
	int err, queue_pair = parms->queue_pair, buf_len = 0;
	u32 stamps = TP4_SW_STAMPS;
	struct i40e_tp4 *tp4;

	if (vsi->type != I40E_VSI_MAIN)
		return -EOPNOTSUPP;
	if (queue_pair >= vsi->num_queue_pairs)
		return -ENXIO;
	/* Used by a traffic class or a macvlan device. */
	if (vsi->rx_rings[queue_pair]->ch)
		return -EBUSY;

	if (parms->rx_opaque) {
		buf_len = i40e_tp4_buf_len(vsi, parms);
		if (buf_len < 0)
			return buf_len;
	}
	if (test_bit(I40E_FLAG_PTP_ENA, vsi->back->flags))
		stamps |= SOF_TIMESTAMPING_TX_HARDWARE;
	err = tp4_set_stamps(parms->tx_opaque, stamps);
	if (err)
		return err;

	if (!i40e_tp4_enter_busy(vsi->back, I40E_TP4_BUSY_MS))
		return -EBUSY;
	err = -ENOMEM;
	tp4 = i40e_tp4_alloc(vsi, parms, buf_len);
	if (tp4)
		err = i40e_tp4_hand_over(vsi, queue_pair, tp4);
	i40e_tp4_exit_busy(vsi->back);
	if (tp4 && err)
		i40e_tp4_leave(vsi, queue_pair, tp4);
	return err;
}

/**
 * i40e_tp4_zerocopy() - implements ndo_tp4_zerocopy
 * @dev:	the netdevice
 * @parms:	command and parameters
 *
 * If the device is up, the queue pair is stopped for about 50 ms. The other
 * queue pairs and the link are not affected. If it does not stop, the function
 * is reset.
 *
 * Context: Under RTNL, may sleep.
 * Return: 0, -EOPNOTSUPP if the netdevice is not the port's main one, or if the
 * port cannot take the timestamps that the socket wants, -ENXIO if
 * there is no such queue pair, -EBUSY if a traffic class or macvlan offload
 * uses it or while the device is being reconfigured, -EINVAL if a frame has
 * room for less than 1024 bytes, -EMSGSIZE if a packet of the device's MTU
 * needs more frames than the hardware can chain, -ENOMEM, or an error of the
 * hardware.
 */
int i40e_tp4_zerocopy(struct net_device *dev, struct tp4_netdev_parms *parms)
{
	struct i40e_netdev_priv *np = netdev_priv(dev);
	struct i40e_vsi *vsi = np->vsi;

	switch (parms->command) {
	case TP4_ENABLE:
		return i40e_tp4_enable(vsi, parms);
	case TP4_DISABLE:
		i40e_tp4_leave(vsi, parms->queue_pair,
			       xa_load(&vsi->tp4, parms->queue_pair));
		return 0;
	}
	return -EINVAL;
}

/**
 * i40e_tp4_xmit() - implements ndo_tp4_xmit
 * @dev:	the netdevice
 * @queue_pair:	the queue pair, in zero-copy mode
 * @flags:	TP4_WAKEUP_*; not used, as one NAPI serves both directions
 *
 * Packets posted during a reset are sent afterwards.
 *
 * Context: Any except hard interrupt, under RCU.
 * Return: 0, -ENXIO if the queue pair is no longer in zero-copy mode, or the
 * error with which it was lost.
 */
int i40e_tp4_xmit(struct net_device *dev, int queue_pair, u32 flags)
{
	struct i40e_netdev_priv *np = netdev_priv(dev);
	const struct i40e_tp4 *tp4 = xa_load(&np->vsi->tp4, queue_pair);

	if (unlikely(!tp4))
		return -ENXIO;
	i40e_tp4_wake(tp4);
	return -READ_ONCE(tp4->error);
}
