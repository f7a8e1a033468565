// SPDX-License-Identifier: GPL-2.0
/* TPACKET_V4 in zero-copy mode: who has which queue pair, and when.
 *
 * A queue pair changes hands while the others run: it is stopped, its rings are
 * set up for the new owner, and it is started again. Three things must not run
 * beside that, or find a pair half stopped: other reconfiguration, which takes
 * RTNL; i40e_vsi_reinit_locked(), which takes __I40E_CONFIG_BUSY; and what the
 * service task and PCI error handlers do without either, which takes tp4_lock.
 * They are taken in this order.
 *
 * The card may write to a frame until it is known to have stopped. If a queue
 * does not stop when it is told to, the frames stay mapped, and in the arrays,
 * and the function is reset. A card that cannot be reset either may no longer
 * use the bus.
 */

#include <linux/iopoll.h>
#include <linux/pci.h>
#include <linux/tpacket4.h>
#include "i40e_lan_hmc.h"
#include "i40e_tp4.h"

/* The least that the hardware takes for a receive buffer */
#define I40E_TP4_BUF_MIN	1024
#define I40E_TP4_BUF_ALIGN	BIT(I40E_RXQ_CTX_DBUFF_SHIFT)

/* A queue that takes longer to stop than this does not stop */
#define I40E_TP4_STOP_US	(50 * USEC_PER_MSEC)

/* The hardware may say that an Rx queue has stopped too early by so much */
#define I40E_TP4_RX_DRAIN_MS	50

/* How long others may be busy with the configuration: whoever wants a queue
 * pair is told so, whoever leaves it can only wait.
 */
#define I40E_TP4_BUSY_MS	100
#define I40E_TP4_LEAVE_MS	5000

/* The longest that a reset takes, with a global one under way */
#define I40E_TP4_RESET_MS	20000

/* ---- rings that come and go ---- */

/**
 * i40e_tp4_limit_frame() - what may a packet be long at most?
 * @vsi:	the VSI
 * @frame_size:	limit of the VSI's other queues
 *
 * A packet can take as many frames of a zero-copy queue pair as the hardware
 * chains buffers.
 *
 * Context: Under RTNL.
 * Return: the limit for all queues.
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
 * i40e_tp4_attach_ring() - set up a ring as one of a zero-copy queue pair
 * @ring:	the Rx or Tx ring, about to be configured; nothing is done if its
 *		pair is not in zero-copy mode. What the socket has no ring for
 *		stays with the stack.
 *
 * Context: While the pair's NAPI is off.
 */
void i40e_tp4_attach_ring(struct i40e_ring *ring)
{
	struct i40e_tp4 *tp4 = xa_load(&ring->vsi->tp4, ring->queue_index);

	ring->tp4 = NULL;
	if (!tp4 || tp4->leaving || tp4->stuck)
		return;
	if (i40e_tp4_is_rx(ring)) {
		if (!tp4->rx)
			return;
		ring->rx_buf_len = tp4->rx_buf_len;
	} else {
		/* The stack may send here, but what is received is not its. */
		if (tp4->rx)
			ring->atr_sample_rate = 0;
		if (!tp4->tx)
			return;
	}
	ring->tp4 = tp4;
}

/**
 * i40e_tp4_start() - let zero-copy queue pairs begin, or go on
 * @vsi:	the VSI, up
 *
 * Context: Under RTNL, or while __I40E_CONFIG_BUSY is set.
 */
void i40e_tp4_start(struct i40e_vsi *vsi)
{
	struct i40e_tp4 *tp4;
	unsigned long i;

	rcu_read_lock();
	xa_for_each(&vsi->tp4, i, tp4) {
		if (i >= vsi->num_queue_pairs) {
			/* The VSI was set up anew with fewer of them. */
			i40e_tp4_report(tp4, ENXIO);
			continue;
		}
		if (tp4->leaving || tp4->stuck)
			continue;
		rcu_assign_pointer(tp4->q_vector, vsi->rx_rings[i]->q_vector);
		i40e_tp4_wake(tp4);
	}
	rcu_read_unlock();
}

/* Nothing reaches the NAPI of a queue pair from here on. */
static void i40e_tp4_detach(struct i40e_tp4 *tp4)
{
	if (!rcu_access_pointer(tp4->q_vector))
		return;
	RCU_INIT_POINTER(tp4->q_vector, NULL);
	/* After this no kick is under way. */
	synchronize_net();
}

/* Is the hardware done with a queue that it was told to stop? */
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

/* Keep all frames until the function has been reset. */
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
 * i40e_tp4_clean_rx_ring() - leave a zero-copy queue pair alone, on shutdown
 * @rx_ring:	its Rx ring, or one that is not of such a pair
 *
 * The frames that the hardware had are filled when the ring is up again.
 *
 * Context: While the pair's NAPI is off; may sleep.
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
 * i40e_tp4_clean_tx_ring() - give back what is being sent, on shutdown
 * @tx_ring:	Tx ring of a zero-copy queue pair, or another one
 *
 * As of what the stack has sent, some of it may not be on the wire.
 *
 * Context: While the pair's NAPI is off; may sleep.
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
 * i40e_tp4_needs_reset() - is there a queue that has not stopped?
 * @pf:	the function
 *
 * Context: Service task.
 * Return: whether only a reset ends what the card does.
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
 * i40e_tp4_reset_done() - the function has been reset, so no queue runs
 * @pf:		the function
 * @err:	0, or why it could not be reset
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
	if (err && i40e_tp4_needs_reset(pf))
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
 * i40e_tp4_rebuilt() - tell who has lost a queue pair in a reset
 * @pf:	the function, which works again, or not
 *
 * Context: Process context, takes the lock of the main VSI.
 */
void i40e_tp4_rebuilt(struct i40e_pf *pf)
{
	struct i40e_vsi *vsi = i40e_pf_get_main_vsi(pf);
	struct i40e_tp4 *tp4;
	unsigned long i;

	if (!vsi || !vsi->netdev || !netif_running(vsi->netdev) ||
	    !test_bit(__I40E_VSI_DOWN, vsi->state))
		return;
	mutex_lock(&vsi->tp4_lock);
	xa_for_each(&vsi->tp4, i, tp4)
		i40e_tp4_report(tp4, EIO);
	mutex_unlock(&vsi->tp4_lock);
}

static bool i40e_tp4_ring_has(struct i40e_ring **rings, int queue_pair,
			      const struct i40e_tp4 *tp4)
{
	/* A reset that fails leaves none. */
	return rings && rings[queue_pair] && rings[queue_pair]->tp4 == tp4;
}

/* Are rings set up for a queue pair's frames? */
static bool i40e_tp4_is_attached(const struct i40e_vsi *vsi, int queue_pair,
				 const struct i40e_tp4 *tp4)
{
	return i40e_tp4_ring_has(vsi->rx_rings, queue_pair, tp4) ||
	       i40e_tp4_ring_has(vsi->tx_rings, queue_pair, tp4);
}

/* Are all frames of a queue pair ours? */
static bool i40e_tp4_is_idle(struct i40e_vsi *vsi, int queue_pair,
			     const struct i40e_tp4 *tp4)
{
	bool idle;

	mutex_lock(&vsi->tp4_lock);
	idle = !tp4->stuck && !i40e_tp4_is_attached(vsi, queue_pair, tp4);
	mutex_unlock(&vsi->tp4_lock);
	return idle;
}

/* Is somebody else about to reset the function? He may need RTNL, but after the
 * reset only, to set everything up again.
 */
static bool i40e_tp4_in_reset(const struct i40e_pf *pf)
{
	return test_bit(__I40E_RESET_RECOVERY_PENDING, pf->state) ||
	       test_bit(__I40E_RESET_INTR_RECEIVED, pf->state);
}

/* Reset the function, so that a queue pair stops. */
static void i40e_tp4_reset(struct i40e_vsi *vsi, int queue_pair,
			   const struct i40e_tp4 *tp4)
{
	struct i40e_pf *pf = vsi->back;
	int ms;

	if (test_bit(__I40E_IN_REMOVE, pf->state))
		i40e_tp4_reset_done(pf, i40e_pf_reset(&pf->hw));
	else if (!i40e_tp4_in_reset(pf))
		i40e_do_reset(pf, I40E_PF_RESET_FLAG, true);

	for (ms = 0; ms < I40E_TP4_RESET_MS; ms += 20) {
		if (i40e_tp4_is_idle(vsi, queue_pair, tp4))
			return;
		msleep(20);
	}
	dev_err(&pf->pdev->dev, "cannot be reset, taken off the bus\n");
	pci_clear_master(pf->pdev);
}

/* ---- queue pairs that change hands ---- */

/* Keep the configuration to oneself. */
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

/* Is the queue pair running? If not, it is set up when the device goes up. */
static bool i40e_tp4_pair_is_up(const struct i40e_vsi *vsi, int queue_pair)
{
	return !test_bit(__I40E_VSI_DOWN, vsi->state) &&
	       queue_pair < vsi->num_queue_pairs;
}

/* Start or stop the hardware.
 * Return: 0, or an errno, with all queues told all the same.
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

/* Let the stack send by the queue pair, or not. */
static void i40e_tp4_toggle_stack(struct i40e_vsi *vsi, int queue_pair,
				  bool enable)
{
	struct netdev_queue *nq = netdev_get_tx_queue(vsi->netdev, queue_pair);

	__netif_tx_lock_bh(nq);
	if (!enable)
		netif_tx_stop_queue(nq);
	else if (netif_carrier_ok(vsi->netdev))
		netif_tx_wake_queue(nq);
	__netif_tx_unlock_bh(nq);
}

/* A vector may serve further queue pairs, whose interrupts it has missed
 * meanwhile. With MSI and INTx, all else needs the interrupt, too, and one that
 * comes while NAPI is off does no harm.
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

/* Stop a queue pair, whoever has it, and clean its rings.
 * Return: false if the hardware does not stop; then only the stack's sending
 * has ended, and the function must be reset.
 */
static bool i40e_tp4_stop_pair(struct i40e_vsi *vsi, int queue_pair)
{
	struct i40e_ring *tx_ring = vsi->tx_rings[queue_pair];
	struct i40e_ring *rx_ring = vsi->rx_rings[queue_pair];
	bool xdp = i40e_enabled_xdp_vsi(vsi);

	i40e_tp4_toggle_stack(vsi, queue_pair, false);
	i40e_tp4_toggle_napi(vsi, queue_pair, false);
	i40e_tp4_toggle_rings(vsi, queue_pair, false);
	if (!i40e_tp4_has_stopped(tx_ring) || !i40e_tp4_has_stopped(rx_ring) ||
	    (xdp && !i40e_tp4_has_stopped(vsi->xdp_rings[queue_pair]))) {
		i40e_tp4_toggle_napi(vsi, queue_pair, true);
		return false;
	}
	msleep(I40E_TP4_RX_DRAIN_MS);

	i40e_clean_tx_ring(tx_ring);
	if (xdp) {
		/* After this no ndo_xdp_xmit is under way. */
		synchronize_net();
		i40e_clean_tx_ring(vsi->xdp_rings[queue_pair]);
	}
	i40e_clean_rx_ring(rx_ring);
	return true;
}

/* Set up and start a queue pair for whoever it belongs to. NAPI is on after
 * this in any case, so that the device can go down.
 */
static int i40e_tp4_start_pair(struct i40e_vsi *vsi, int queue_pair)
{
	struct i40e_ring *rx_ring = vsi->rx_rings[queue_pair];
	struct i40e_tp4 *tp4 = xa_load(&vsi->tp4, queue_pair);
	int err;

	err = i40e_queue_pair_configure(vsi, queue_pair);
	if (!err)
		err = i40e_tp4_toggle_rings(vsi, queue_pair, true);
	/* What is kicked before NAPI is on is seen when it runs first. */
	if (!err && tp4 && !tp4->leaving)
		rcu_assign_pointer(tp4->q_vector, rx_ring->q_vector);
	i40e_tp4_toggle_napi(vsi, queue_pair, true);
	if (!err)
		i40e_tp4_toggle_stack(vsi, queue_pair, true);
	return err;
}

/* Take a queue pair from the program that has it. The hardware is done with its
 * frames after this.
 */
static void i40e_tp4_leave(struct i40e_vsi *vsi, int queue_pair,
			   struct i40e_tp4 *tp4)
{
	bool stopped = false, busy;
	int err = 0;

	/* Who is busy for so long has failed, and forgotten to say so. */
	busy = i40e_tp4_enter_busy(vsi->back, I40E_TP4_LEAVE_MS);
	mutex_lock(&vsi->tp4_lock);
	/* From here on it is not set up for the program again. */
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
	/* After this nobody has found it there. */
	synchronize_net();
	i40e_tp4_free(tp4);
}

/* Hand a running queue pair over, without a reset if the hardware allows. */
static int i40e_tp4_switch_pair(struct i40e_vsi *vsi, int queue_pair,
				const struct i40e_tp4 *tp4)
{
	if (!i40e_tp4_stop_pair(vsi, queue_pair))
		return -EAGAIN;
	/* What the stack has sent by it is answered elsewhere from here on. */
	if (tp4->rx)
		i40e_fdir_forget_atr(vsi->back);
	return i40e_tp4_start_pair(vsi, queue_pair);
}

/* Let a program have a queue pair, now, or when the device goes up. */
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
		i40e_fdir_forget_atr(pf);
	mutex_unlock(&vsi->tp4_lock);

	/* A reset sets everything up as it belongs. */
	if (err && i40e_tp4_in_reset(pf))
		return 0;
	if (err != -EAGAIN)
		return err;
	i40e_do_reset(pf, I40E_PF_RESET_FLAG, true);
	return i40e_tp4_pair_is_up(vsi, queue_pair) ? 0 : -EIO;
}

/* Bytes of a frame that the hardware fills: it counts in steps, and must not
 * write behind the frame.
 */
static u32 i40e_tp4_buf_len(const struct tp4_netdev_parms *parms)
{
	u32 room = min_t(u32, tp4_frame_room(parms->rx_opaque),
			 I40E_MAX_RXBUFFER);

	return ALIGN_DOWN(room, I40E_TP4_BUF_ALIGN);
}

static int i40e_tp4_enable(struct i40e_vsi *vsi,
			   const struct tp4_netdev_parms *parms)
{
	u32 chain_len = vsi->back->hw.func_caps.rx_buf_chain_len;
	int err, queue_pair = parms->queue_pair;
	struct i40e_tp4 *tp4;
	u32 buf_len = 0;

	if (vsi->type != I40E_VSI_MAIN)
		return -EOPNOTSUPP;
	if (queue_pair >= vsi->num_queue_pairs)
		return -ENXIO;
	/* A traffic class or a macvlan device has it. */
	if (vsi->rx_rings[queue_pair]->ch)
		return -EBUSY;

	if (parms->rx_opaque) {
		buf_len = i40e_tp4_buf_len(parms);
		if (buf_len < I40E_TP4_BUF_MIN)
			return -EINVAL;
		if (vsi->netdev->mtu + I40E_PACKET_HDR_PAD >
		    chain_len * buf_len)
			return -EMSGSIZE;
	}

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
 * @parms:	what to do
 *
 * If the device is up, the queue pair stops for some 50 ms; the others, and the
 * link, stay as they are. If it does not stop, the function is reset.
 *
 * Context: Under RTNL, may sleep.
 * Return: 0, -EOPNOTSUPP on a netdevice that is not the port's own, -ENXIO
 * without such a queue pair, -EBUSY if a traffic class or macvlan offload has
 * it, or while the device is being reconfigured, -EINVAL if a frame takes less
 * than 1024 bytes, -EMSGSIZE if a packet of the device's MTU needs more frames
 * than the hardware chains, -ENOMEM, or what the hardware fails with.
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
 * @flags:	which side; one NAPI looks after both
 *
 * What is posted while the device is being reset is sent after that.
 *
 * Context: Any but hard interrupt, under RCU.
 * Return: 0, or -ENXIO if the mode has just been left.
 */
int i40e_tp4_xmit(struct net_device *dev, int queue_pair, u32 flags)
{
	struct i40e_netdev_priv *np = netdev_priv(dev);
	const struct i40e_tp4 *tp4 = xa_load(&np->vsi->tp4, queue_pair);

	if (unlikely(!tp4))
		return -ENXIO;
	i40e_tp4_wake(tp4);
	return 0;
}

/**
 * i40e_tp4_has_pair() - is there a queue pair in zero-copy mode?
 * @vsi:	the VSI
 * @first:	the least number of those asked about
 *
 * Context: Under RTNL.
 * Return: whether a program has one of them.
 */
bool i40e_tp4_has_pair(struct i40e_vsi *vsi, unsigned long first)
{
	return xa_find(&vsi->tp4, &first, ULONG_MAX, XA_PRESENT);
}
