// SPDX-License-Identifier: GPL-2.0
/* A driver with AF_XDP's zero-copy interface, and with the habits of others
 *
 * Two ports, v4a and v4b, are wired to each other. Their hardware is simulated: it reads
 * and writes frames by DMA addresses. The parameter habits lists what the driver does in
 * the way of a driver of the kernel that no model of hardware runs; see the names below,
 * and Documentation/networking/tpacket4_driver.rst.
 */
#include <linux/bpf_trace.h>
#include <linux/dma-direct.h>
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/filter.h>
#include <linux/if_vlan.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/rtnetlink.h>
#include <linux/timer.h>
#include <net/xdp_sock_drv.h>

enum habit {
	CHAIN,		/* i40e, ice, idpf: packets of several buffers */
	COPY,		/* gve: receives to memory of its own, and allocates the buffer when the
			 * program has returned; in 7.3 sets no rxq for the pool's buffers
			 */
	DROP_TX,	/* stmmac, dpaa2: takes packets that it drops, and never returns */
	EARLY_TX,	/* virtio_net: returns packets that it drops before those in flight */
	FAIL,		/* icssg: fails when the queue has been started */
	HARD_START,	/* dpaa2: other addresses in the xdp_buff */
	KIB,		/* igb, igc, ixgbe: the hardware counts buffers in KiB */
	LATE,		/* igb, igc: does not wait until the queue has stopped */
	LINK,		/* igb, stmmac: the link goes down, and wake-ups are refused */
	NEED_FRAMES,	/* idpf: a queue that finds no buffer at set-up never gets one */
	NO_EOP,		/* igb, igc: each part of a packet becomes a packet */
	OFFSET,		/* igc, nfp, tsnep: metadata before the data */
	OTHER_NAPI,	/* gve, mlx5: another NAPI instance completes what was sent */
	SINGLE,		/* igc, ixgbe, tsnep: one buffer or packet at a time */
	STACK,		/* octeontx2: takes the buffer that was allocated last */
	STUCK,		/* the queue does not stop */
	TWICE,		/* igb: hands over a buffer again, as a packet and, with CHAIN, as
			 * the last part of the next packet of several buffers
			 */
	UNITS,		/* mlx5: takes 64 buffers, or none */
	VLAN,		/* the hardware strips VLAN tags */
	VLAN_FIXED,	/* same, and it cannot be turned off */
	VLAN_KFUNC,	/* ice, mlx5: a function of the driver returns the tag */
	NR_HABITS,
};

static const char *const habit_names[NR_HABITS] = {
	[CHAIN] = "chain", [COPY] = "copy", [DROP_TX] = "drop_tx",
	[EARLY_TX] = "early_tx", [FAIL] = "fail", [HARD_START] = "hard_start",
	[KIB] = "kib", [LATE] = "late", [LINK] = "link",
	[NEED_FRAMES] = "need_frames", [NO_EOP] = "no_eop", [OFFSET] = "offset",
	[OTHER_NAPI] = "other_napi", [SINGLE] = "single", [STACK] = "stack",
	[STUCK] = "stuck", [TWICE] = "twice", [UNITS] = "units", [VLAN] = "vlan",
	[VLAN_FIXED] = "vlan_fixed", [VLAN_KFUNC] = "vlan_kfunc",
};

static char *habits = "";
module_param(habits, charp, 0444);
MODULE_PARM_DESC(habits, "names, separated by commas");

static char *driver = "habits";
module_param(driver, charp, 0444);
MODULE_PARM_DESC(driver, "name of the driver");

#define RX_DESCS	256
#define TX_DESCS	64
#define UNIT		64	/* buffers, of the habit UNITS */
#define META_LEN	16	/* of the habit OFFSET */
#define MAX_LEN		SZ_16K
#define MAX_SEGS	8	/* of the habit CHAIN */
#define DROP_EVERY	5	/* packets, of the habit DROP_TX */
#define LINK_MS		20

struct rx_desc {
	struct xdp_buff *xdp;
	dma_addr_t dma;
	u32 len;
	bool eop;
	u16 tci;
};

struct tx_desc {
	dma_addr_t dma;
	u32 len;
	bool eop;
};

/* What the driver keeps behind an xdp_buff */
struct habits_buff {
	struct xdp_buff xdp;
	u16 tci;
};

struct port {
	struct net_device *dev;
	struct port *peer;
	struct napi_struct napi, done_napi;
	struct xdp_rxq_info rxq, zc_rxq;
	struct bpf_prog *prog;
	struct xsk_buff_pool *pool;	/* of Tx, */
	struct xsk_buff_pool *rx_pool;	/* and of Rx */
	struct delayed_work link;
	struct timer_list late;
	ktime_t writes_until;		/* of the habit LATE */

	/* Rx: the hardware writes descriptors from written on, under lock. */
	spinlock_t lock;
	struct rx_desc rx[RX_DESCS];
	u32 posted, written, cleaned;
	u32 buf_len;
	struct xdp_buff *stack[RX_DESCS];
	u32 top;
	struct xdp_buff *first;		/* of a packet of several buffers */
	struct xdp_buff *again;		/* of the habit TWICE */
	struct sk_buff_head wire;	/* packets in memory of the driver */
	dma_addr_t last;

	struct tx_desc tx[TX_DESCS];
	u32 nr_tx;			/* to be sent at the doorbell */
	u32 nr_sent;			/* to be completed */
	u32 nr_peeked;
	u8 packet[MAX_LEN];
};

static unsigned long habit_bits;
static struct port *ports[2];
static struct platform_device *bus;

static bool has(enum habit habit)
{
	return test_bit(habit, &habit_bits);
}

/* ---- the hardware ---- */

static void *hw_memory(dma_addr_t addr)
{
	return phys_to_virt(dma_to_phys(&bus->dev, addr));
}

static bool hw_strips(const struct port *port, const struct vlan_ethhdr *eth, u32 len)
{
	return (has(VLAN) || has(VLAN_KFUNC) || has(VLAN_FIXED)) && len > VLAN_ETH_HLEN &&
	       (port->dev->features & NETIF_F_HW_VLAN_CTAG_RX || has(VLAN_FIXED)) &&
	       eth->h_vlan_proto == htons(ETH_P_8021Q);
}

static bool hw_write(struct port *port, const u8 *data, u32 len, u16 tci)
{
	u32 nr = DIV_ROUND_UP(len, port->buf_len);

	if (port->posted - port->written < nr)
		return false;
	while (len) {
		struct rx_desc *desc = &port->rx[port->written++ % RX_DESCS];

		desc->len = min(len, port->buf_len);
		memcpy(hw_memory(desc->dma) + (has(OFFSET) ? META_LEN : 0), data, desc->len);
		data += desc->len;
		len -= desc->len;
		desc->eop = !len;
		desc->tci = tci;
		port->last = desc->dma;
	}
	return true;
}

/* A packet from the wire */
static void hw_receive(struct port *port, u8 *data, u32 len)
{
	struct vlan_ethhdr *eth = (struct vlan_ethhdr *)data;
	struct sk_buff *skb = NULL;
	u16 tci = 0;

	spin_lock_bh(&port->lock);
	if (!netif_running(port->dev) || !netif_carrier_ok(port->dev) ||
	    skb_queue_len(&port->wire) > RX_DESCS)
		goto unlock;
	if (hw_strips(port, eth, len)) {
		tci = ntohs(eth->h_vlan_TCI);
		memmove(data + VLAN_HLEN, data, 2 * ETH_ALEN);
		data += VLAN_HLEN;
		len -= VLAN_HLEN;
	}
	if (port->rx_pool && !has(COPY)) {
		if (!hw_write(port, data, len, tci))
			DEV_STATS_INC(port->dev, rx_missed_errors);
	} else {
		skb = netdev_alloc_skb(port->dev, len);
		if (!skb)
			goto unlock;
		skb_put_data(skb, data, len);
		if (tci)
			__vlan_hwaccel_put_tag(skb, htons(ETH_P_8021Q), tci);
		__skb_queue_tail(&port->wire, skb);
	}
	napi_schedule(&port->napi);
unlock:
	spin_unlock_bh(&port->lock);
}

/* The doorbell: gather packets from the descriptors, and send them. */
static void hw_send(struct port *port)
{
	u32 i, len = 0;

	for (i = 0; i < port->nr_tx; i++) {
		const struct tx_desc *desc = &port->tx[i];

		if (len + desc->len <= MAX_LEN)
			memcpy(port->packet + len, hw_memory(desc->dma), desc->len);
		len += desc->len;
		if (!desc->eop)
			continue;
		if (len <= MAX_LEN)
			hw_receive(port->peer, port->packet, len);
		len = 0;
	}
	port->nr_sent += port->nr_tx;
	port->nr_tx = 0;
	if (port->nr_sent)
		napi_schedule(has(OTHER_NAPI) ? &port->done_napi : &port->napi);
}

static bool hw_writes(const struct port *port)
{
	return ktime_before(ktime_get(), READ_ONCE(port->writes_until));
}

/* The last write of a queue that has just been told to stop. A device is not as late as
 * this timer can be.
 */
static void hw_late(struct timer_list *timer)
{
	struct port *port = container_of(timer, struct port, late);

	if (port->last && hw_writes(port))
		memset(hw_memory(port->last), 0xee, ETH_ZLEN);
}

static void hw_link(struct work_struct *work)
{
	struct port *port = container_of(work, struct port, link.work);

	netif_carrier_on(port->dev);
}

/* ---- Rx ---- */

static void post(struct port *port, struct xdp_buff **xdp, u32 nr)
{
	u32 i;

	spin_lock_bh(&port->lock);
	for (i = 0; i < nr; i++) {
		/* Hardware that has a stack of its own need not have the same order. */
		if (has(STACK))
			port->stack[port->top++] = xdp[i];
		port->rx[port->posted++ % RX_DESCS] = (struct rx_desc) {
			.xdp = xdp[i], .dma = xsk_buff_xdp_get_dma(xdp[i]),
		};
	}
	spin_unlock_bh(&port->lock);
}

/* All or nothing, as mlx5e_xsk_alloc_rx_mpwqe() */
static u32 alloc_unit(struct xsk_buff_pool *pool, struct xdp_buff **xdp)
{
	u32 nr;

	if (!xsk_buff_can_alloc(pool, UNIT))
		return 0;
	nr = xsk_buff_alloc_batch(pool, xdp, UNIT);
	for (; nr < UNIT; nr++) {
		xdp[nr] = xsk_buff_alloc(pool);
		if (!xdp[nr])
			break;
	}
	if (nr == UNIT)
		return nr;
	while (nr)
		xsk_buff_free(xdp[--nr]);
	return 0;
}

static void fill(struct port *port)
{
	u32 nr, room = RX_DESCS - (port->posted - port->cleaned);
	struct xsk_buff_pool *pool = port->rx_pool;
	struct xdp_buff *xdp[UNIT];

	while (room) {
		if (has(UNITS))
			nr = room < UNIT ? 0 : alloc_unit(pool, xdp);
		else if (has(SINGLE))
			nr = !!(xdp[0] = xsk_buff_alloc(pool));
		else
			nr = xsk_buff_alloc_batch(pool, xdp, min(room, UNIT));
		if (!nr)
			break;
		post(port, xdp, nr);
		room -= nr;
	}
	if (room && xsk_uses_need_wakeup(pool))
		xsk_set_rx_need_wakeup(pool);
	else
		xsk_clear_rx_need_wakeup(pool);
}

static int habits_xdp_xmit(struct net_device *dev, int n, struct xdp_frame **frames, u32 flags)
{
	struct port *port = netdev_priv(dev);
	struct sk_buff *skb;
	int i;

	for (i = 0; i < n; i++) {
		skb = xdp_build_skb_from_frame(frames[i], dev);
		if (!skb)
			break;
		/* which has pulled the header */
		skb_push(skb, ETH_HLEN);
		if (!skb_linearize(skb) && !skb_cow(skb, 0))
			hw_receive(port->peer, skb->data, skb->len);
		consume_skb(skb);
	}
	return i;
}

static void to_stack(struct port *port, struct xdp_buff *xdp)
{
	struct sk_buff *skb = napi_alloc_skb(&port->napi, xdp_get_buff_len(xdp));
	struct xdp_buff_xsk *frag;

	if (!skb)
		return;
	skb_put_data(skb, xdp->data, xdp->data_end - xdp->data);
	if (xdp_buff_has_frags(xdp)) {
		list_for_each_entry(frag, &port->pool->xskb_list, list_node)
			skb_put_data(skb, frag->xdp.data, frag->xdp.data_end - frag->xdp.data);
	}
	skb->protocol = eth_type_trans(skb, port->dev);
	napi_gro_receive(&port->napi, skb);
}

/* Returns true if the packet was redirected or sent. */
static bool run_prog(struct port *port, struct xdp_buff *xdp)
{
	u32 act = port->prog ? bpf_prog_run_xdp(port->prog, xdp) : XDP_PASS;
	struct xdp_frame *frame;

	if (act == XDP_TX) {
		frame = xdp_convert_buff_to_frame(xdp);
		if (frame)
			habits_xdp_xmit(port->dev, 1, &frame, 0);
		return frame;
	}
	if (act == XDP_REDIRECT && !xdp_do_redirect(port->dev, xdp, port->prog))
		return true;
	if (act == XDP_PASS)
		to_stack(port, xdp);
	else
		DEV_STATS_INC(port->dev, rx_errors);
	return false;
}

static bool add_frag(struct port *port, struct xdp_buff *xdp, u32 len)
{
	struct xdp_buff_xsk *frag = container_of(xdp, struct xdp_buff_xsk, xdp);
	struct skb_shared_info *info = xdp_get_shared_info_from_buff(port->first);

	if (!xdp_buff_has_frags(port->first)) {
		info->nr_frags = 0;
		info->xdp_frags_size = 0;
		xdp_buff_set_frags_flag(port->first);
	}
	if (info->nr_frags == MAX_SKB_FRAGS)
		return false;
	__skb_fill_page_desc_noacc(info, info->nr_frags++, virt_to_page(hw_memory(port->last)),
				   0, len);
	info->xdp_frags_size += len;
	list_add_tail(&frag->list_node, &frag->pool->xskb_list);
	return true;
}

/* One descriptor that the hardware has written */
static void receive(struct port *port, const struct rx_desc *desc)
{
	struct xdp_buff *xdp = has(STACK) ? port->stack[--port->top] : desc->xdp;
	u32 shift = has(OFFSET) ? META_LEN : 0;

	xsk_buff_set_size(xdp, desc->len + shift);
	xsk_buff_dma_sync_for_cpu(xdp);
	xdp->data += shift;
	xdp->data_meta += shift;
	if (has(HARD_START)) {
		xdp->data_hard_start = hw_memory(xsk_buff_xdp_get_frame_dma(xdp));
		xdp->data = hw_memory(desc->dma);
		xdp->data_end = xdp->data + desc->len;
		xdp_set_data_meta_invalid(xdp);
		xdp->rxq = &port->zc_rxq;
	}
	((struct habits_buff *)xdp)->tci = desc->tci;
	if (!has(CHAIN)) {
		/* KIB without NO_EOP drops the parts of a long packet, as ixgbe. */
		bool part = !desc->eop || port->first;

		if (part && !has(NO_EOP)) {
			port->first = desc->eop ? NULL : xdp;
			xsk_buff_free(xdp);
			return;
		}
		port->first = xdp;
	} else if (!port->first) {
		port->first = xdp;
	} else if (!add_frag(port, xdp, desc->len)) {
		xsk_buff_free(xdp);
	}
	if (!desc->eop && !has(NO_EOP))
		return;
	if (port->again && xdp_buff_has_frags(port->first))
		add_frag(port, port->again, ETH_ZLEN);
	port->again = NULL;
	if (!run_prog(port, port->first)) {
		xsk_buff_free(port->first);
	} else if (has(TWICE) && !xdp_buff_has_frags(port->first)) {
		port->again = port->first;
		run_prog(port, port->again);
	}
	port->first = NULL;
}

/* A packet in memory of the driver. gve copies it to a buffer of the pool, and, in 7.3,
 * says that it is in one when the program runs.
 */
static void receive_copy(struct port *port, struct sk_buff *skb)
{
	struct xdp_buff buff, *xdp = &buff;
	u32 act = XDP_PASS;

	xdp_init_buff(xdp, skb->len + skb_headroom(skb), has(COPY) && port->rx_pool ?
		      &port->zc_rxq : &port->rxq);
	xdp_prepare_buff(xdp, skb->head, skb_headroom(skb), skb->len, false);
	if (port->prog)
		act = bpf_prog_run_xdp(port->prog, xdp);
	if (act == XDP_PASS) {
		skb->protocol = eth_type_trans(skb, port->dev);
		napi_gro_receive(&port->napi, skb);
		return;
	}
	if (act == XDP_REDIRECT && port->rx_pool) {
		xdp = xsk_buff_alloc(port->rx_pool);
		if (!xdp) {
			DEV_STATS_INC(port->dev, rx_missed_errors);
		} else if (skb->len > port->buf_len) {
			xsk_buff_free(xdp);
		} else {
			xdp->data_end = xdp->data + skb->len;
			memcpy(xdp->data, skb->data, skb->len);
			if (xdp_do_redirect(port->dev, xdp, port->prog))
				xsk_buff_free(xdp);
		}
	} else {
		DEV_STATS_INC(port->dev, rx_errors);
	}
	dev_kfree_skb(skb);
}

static int poll_rx(struct port *port, int budget)
{
	struct sk_buff *skb;
	u32 end;
	int nr = 0;

	for (; nr < budget; nr++) {
		spin_lock_bh(&port->lock);
		skb = __skb_dequeue(&port->wire);
		spin_unlock_bh(&port->lock);
		if (!skb)
			break;
		receive_copy(port, skb);
	}
	end = smp_load_acquire(&port->written);
	for (; nr < budget && port->cleaned != end; nr++)
		receive(port, &port->rx[port->cleaned++ % RX_DESCS]);
	if (nr)
		xdp_do_flush();
	/* idpf refills only the queues from which it has received. */
	if (port->rx_pool && !has(COPY) && (nr || !has(NEED_FRAMES)))
		fill(port);
	return nr;
}

/* ---- Tx ---- */

/* Takes a descriptor to be sent. */
static void send_desc(struct port *port, const struct xdp_desc *desc)
{
	dma_addr_t dma = xsk_buff_raw_get_dma(port->pool, desc->addr);

	xsk_buff_raw_dma_sync_for_device(port->pool, dma, desc->len);
	port->tx[port->nr_tx++] = (struct tx_desc) {
		.dma = dma, .len = desc->len, .eop = xsk_is_eop_desc(desc),
	};
}

static void poll_tx(struct port *port)
{
	struct xsk_buff_pool *pool = port->pool;
	u32 i, nr, room = TX_DESCS - port->nr_sent, lost = 0;
	struct xdp_desc desc;

	if (has(LINK) && !netif_carrier_ok(port->dev))
		return;
	if (has(SINGLE) || has(DROP_TX)) {
		while (port->nr_tx < room && xsk_tx_peek_desc(pool, &desc)) {
			if (has(DROP_TX) && !(++port->nr_peeked % DROP_EVERY))
				continue;
			send_desc(port, &desc);
		}
		xsk_tx_release(pool);
	} else {
		nr = xsk_tx_peek_release_desc_batch(pool, room);
		if (has(EARLY_TX) && nr > UNIT / 4)
			lost = nr - UNIT / 4;
		for (i = 0; i < nr - lost; i++)
			send_desc(port, &pool->tx_descs[i]);
		if (lost)
			xsk_tx_completed(pool, lost);
	}
	hw_send(port);
	if (xsk_uses_need_wakeup(pool))
		xsk_set_tx_need_wakeup(pool);
}

static void complete_tx(struct port *port)
{
	u32 nr = port->nr_sent;

	if (!nr || !port->pool)
		return;
	port->nr_sent = 0;
	xsk_tx_completed(port->pool, nr);
}

static int habits_poll(struct napi_struct *napi, int budget)
{
	struct port *port = container_of(napi, struct port, napi);
	int nr = 0;

	if (!has(OTHER_NAPI))
		complete_tx(port);
	if (port->pool)
		poll_tx(port);
	if (budget)
		nr = poll_rx(port, budget);
	if (nr < budget)
		napi_complete_done(napi, nr);
	return nr;
}

static int habits_poll_done(struct napi_struct *napi, int budget)
{
	struct port *port = container_of(napi, struct port, done_napi);

	complete_tx(port);
	napi_complete_done(napi, 0);
	/* for what had no room */
	napi_schedule(&port->napi);
	return 0;
}

/* ---- the queue pair ---- */

static void stop(struct port *port)
{
	if (!netif_running(port->dev))
		return;
	napi_disable(&port->napi);
	napi_disable(&port->done_napi);
}

static void start(struct port *port)
{
	if (!netif_running(port->dev))
		return;
	napi_enable(&port->napi);
	napi_enable(&port->done_napi);
	local_bh_disable();
	napi_schedule(&port->napi);
	local_bh_enable();
}

static void link_down(struct port *port)
{
	if (!has(LINK) || !netif_running(port->dev))
		return;
	netif_carrier_off(port->dev);
	mod_delayed_work(system_wq, &port->link, msecs_to_jiffies(LINK_MS));
}

static void set_buf_len(struct port *port)
{
	port->buf_len = xsk_pool_get_rx_frame_size(port->pool);
	if (has(OFFSET))
		port->buf_len -= META_LEN;
	if (has(KIB))
		port->buf_len = ALIGN_DOWN(port->buf_len, SZ_1K);
}

/* Sets up the rings, with NAPI off. */
static void configure(struct port *port)
{
	struct xsk_buff_pool *pool = port->pool;

	set_buf_len(port);
	port->last = 0;
	if (!has(COPY))
		xsk_pool_set_rxq_info(pool, &port->zc_rxq);
	if (has(NEED_FRAMES) && !xsk_buff_can_alloc(pool, 1))
		return;
	spin_lock_bh(&port->lock);
	port->rx_pool = pool;
	spin_unlock_bh(&port->lock);
	if (!has(COPY))
		fill(port);
}

/* Gives all buffers back, with NAPI off. */
static void clean(struct port *port)
{
	spin_lock_bh(&port->lock);
	port->rx_pool = NULL;
	spin_unlock_bh(&port->lock);
	if (port->first && has(CHAIN))
		xsk_buff_free(port->first);
	port->first = NULL;
	port->again = NULL;
	while (has(STACK) && port->top)
		xsk_buff_free(port->stack[--port->top]);
	for (; port->cleaned != port->posted; port->cleaned++) {
		if (!has(STACK))
			xsk_buff_free(port->rx[port->cleaned % RX_DESCS].xdp);
	}
	port->written = port->posted;
	complete_tx(port);
	if (has(LATE)) {
		WRITE_ONCE(port->writes_until, ktime_add_ms(ktime_get(), 9));
		mod_timer(&port->late, jiffies + 1);
	}
}

static int enable(struct port *port, struct xsk_buff_pool *pool)
{
	int err = xsk_pool_dma_map(pool, &bus->dev, 0);

	if (err)
		return err;
	stop(port);
	port->pool = pool;
	if (netif_running(port->dev))
		configure(port);
	start(port);
	link_down(port);
	return has(FAIL) ? -EIO : 0;
}

static int disable(struct port *port)
{
	if (has(STUCK))
		return -EBUSY;
	stop(port);
	clean(port);
	xsk_pool_dma_unmap(port->pool, 0);
	port->pool = NULL;
	start(port);
	link_down(port);
	return 0;
}

static int habits_bpf(struct net_device *dev, struct netdev_bpf *bpf)
{
	struct port *port = netdev_priv(dev);
	struct bpf_prog *old;

	switch (bpf->command) {
	case XDP_SETUP_PROG:
		stop(port);
		old = port->prog;
		port->prog = bpf->prog;
		start(port);
		link_down(port);
		if (old)
			bpf_prog_put(old);
		return 0;
	case XDP_SETUP_XSK_POOL:
		if (bpf->xsk.queue_id)
			return -EINVAL;
		return bpf->xsk.pool ? enable(port, bpf->xsk.pool) : disable(port);
	default:
		return -EINVAL;
	}
}

static int habits_wakeup(struct net_device *dev, u32 queue, u32 flags)
{
	struct port *port = netdev_priv(dev);

	if (has(LINK) && !netif_carrier_ok(dev))
		return -ENETDOWN;
	if (!port->pool || !port->prog)
		return -EINVAL;
	if (!napi_if_scheduled_mark_missed(&port->napi)) {
		local_bh_disable();
		napi_schedule(&port->napi);
		local_bh_enable();
	}
	return 0;
}

static int habits_rx_vlan_tag(const struct xdp_md *ctx, __be16 *proto, u16 *tci)
{
	const struct habits_buff *buff = (const void *)ctx;

	if (!buff->tci)
		return -ENODATA;
	*proto = htons(ETH_P_8021Q);
	*tci = buff->tci;
	return 0;
}

static const struct xdp_metadata_ops habits_metadata_ops = {
	.xmo_rx_vlan_tag = habits_rx_vlan_tag,
};

/* ---- the device ---- */

static netdev_tx_t habits_start_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct port *port = netdev_priv(dev);

	if (!skb_linearize(skb) && !skb_cow(skb, 0))
		hw_receive(port->peer, skb->data, skb->len);
	consume_skb(skb);
	return NETDEV_TX_OK;
}

static int habits_open(struct net_device *dev)
{
	struct port *port = netdev_priv(dev);

	if (port->pool)
		configure(port);
	netif_carrier_on(dev);
	start(port);
	return 0;
}

static int habits_stop(struct net_device *dev)
{
	struct port *port = netdev_priv(dev);

	cancel_delayed_work_sync(&port->link);
	netif_carrier_off(dev);
	napi_disable(&port->napi);
	napi_disable(&port->done_napi);
	if (port->pool)
		clean(port);
	skb_queue_purge(&port->wire);
	return 0;
}

static const struct net_device_ops habits_ops = {
	.ndo_open = habits_open,
	.ndo_stop = habits_stop,
	.ndo_start_xmit = habits_start_xmit,
	.ndo_bpf = habits_bpf,
	.ndo_xdp_xmit = habits_xdp_xmit,
	.ndo_xsk_wakeup = habits_wakeup,
};

static void habits_get_channels(struct net_device *dev, struct ethtool_channels *ch)
{
	ch->max_combined = 1;
	ch->combined_count = 1;
}

static const struct ethtool_ops habits_ethtool_ops = {
	.get_channels = habits_get_channels,
	.get_link = ethtool_op_get_link,
};

/* Polls as netpoll does, when it is about to print something: with interrupts off, and no
 * budget.
 */
static int netpoll_set(const char *val, const struct kernel_param *kp)
{
	unsigned long flags;
	struct port *port;

	port = ports[0];
	if (!port)
		return -ENODEV;
	rtnl_lock();
	if (port->pool && netif_running(port->dev)) {
		napi_disable(&port->napi);
		local_irq_save(flags);
		habits_poll(&port->napi, 0);
		local_irq_restore(flags);
		napi_enable(&port->napi);
	}
	rtnl_unlock();
	return 0;
}

static const struct kernel_param_ops netpoll_ops = { .set = netpoll_set };
module_param_cb(netpoll, &netpoll_ops, NULL, 0200);
MODULE_PARM_DESC(netpoll, "write to it to poll v4a as netpoll does");

static int in_flight_get(char *buf, const struct kernel_param *kp)
{
	int i, nr = 0;

	for (i = 0; i < 2; i++)
		nr += ports[i] && hw_writes(ports[i]);
	return sysfs_emit(buf, "%d\n", nr);
}

static const struct kernel_param_ops in_flight_ops = { .get = in_flight_get };
module_param_cb(in_flight, &in_flight_ops, NULL, 0444);
MODULE_PARM_DESC(in_flight, "queues that still write to frames");

static int parse_habits(void)
{
	char *all = kstrdup(habits, GFP_KERNEL), *rest = all, *name;
	int i, err = 0;

	if (!all)
		return -ENOMEM;
	while (!err && (name = strsep(&rest, ","))) {
		if (!*name)
			continue;
		i = match_string(habit_names, NR_HABITS, name);
		if (i < 0)
			err = -EINVAL;
		else
			set_bit(i, &habit_bits);
	}
	kfree(all);
	return err;
}

static void remove_port(struct port *port)
{
	if (port->dev->reg_state == NETREG_REGISTERED)
		unregister_netdev(port->dev);
	timer_delete_sync(&port->late);
	if (xdp_rxq_info_is_reg(&port->rxq))
		xdp_rxq_info_unreg(&port->rxq);
	if (xdp_rxq_info_is_reg(&port->zc_rxq))
		xdp_rxq_info_unreg(&port->zc_rxq);
	netif_napi_del(&port->napi);
	netif_napi_del(&port->done_napi);
	free_netdev(port->dev);
}

static int add_port(int i)
{
	struct net_device *dev = alloc_etherdev(sizeof(struct port));
	struct port *port;
	int err;

	if (!dev)
		return -ENOMEM;
	XSK_CHECK_PRIV_TYPE(struct habits_buff);
	port = netdev_priv(dev);
	port->dev = dev;
	ports[i] = port;
	spin_lock_init(&port->lock);
	__skb_queue_head_init(&port->wire);
	INIT_DELAYED_WORK(&port->link, hw_link);
	timer_setup(&port->late, hw_late, 0);
	SET_NETDEV_DEV(dev, &bus->dev);
	snprintf(dev->name, sizeof(dev->name), "v4%c", 'a' + i);
	eth_hw_addr_random(dev);
	dev->netdev_ops = &habits_ops;
	dev->ethtool_ops = &habits_ethtool_ops;
	dev->max_mtu = 9200;
	dev->xdp_features = NETDEV_XDP_ACT_BASIC | NETDEV_XDP_ACT_REDIRECT |
			    NETDEV_XDP_ACT_XSK_ZEROCOPY | NETDEV_XDP_ACT_NDO_XMIT;
	if (has(CHAIN)) {
		dev->xdp_features |= NETDEV_XDP_ACT_RX_SG | NETDEV_XDP_ACT_NDO_XMIT_SG;
		dev->xdp_zc_max_segs = MAX_SEGS;
	}
	if (has(VLAN) || has(VLAN_KFUNC) || has(VLAN_FIXED))
		dev->features |= NETIF_F_HW_VLAN_CTAG_RX;
	if (!has(VLAN_FIXED))
		dev->hw_features |= dev->features & NETIF_F_HW_VLAN_CTAG_RX;
	if (has(VLAN_KFUNC))
		dev->xdp_metadata_ops = &habits_metadata_ops;
	netif_carrier_off(dev);
	netif_napi_add(dev, &port->napi, habits_poll);
	netif_napi_add(dev, &port->done_napi, habits_poll_done);
	err = xdp_rxq_info_reg(&port->rxq, dev, 0, 0);
	if (!err)
		err = xdp_rxq_info_reg(&port->zc_rxq, dev, 0, 0);
	if (!err)
		err = xdp_rxq_info_reg_mem_model(&port->zc_rxq, MEM_TYPE_XSK_BUFF_POOL, NULL);
	return err;
}

static int habits_probe(struct platform_device *pdev)
{
	return 0;
}

static struct platform_driver habits_driver = { .probe = habits_probe };

static void habits_remove(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (ports[i])
			remove_port(ports[i]);
	}
	platform_device_unregister(bus);
	platform_driver_unregister(&habits_driver);
}

static int __init habits_init(void)
{
	int i, err;

	err = parse_habits();
	if (err)
		return err;
	habits_driver.driver.name = driver;
	err = platform_driver_register(&habits_driver);
	if (err)
		return err;
	bus = platform_device_register_simple(driver, PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(bus)) {
		platform_driver_unregister(&habits_driver);
		return PTR_ERR(bus);
	}
	err = dma_coerce_mask_and_coherent(&bus->dev, DMA_BIT_MASK(64));
	for (i = 0; i < 2 && !err; i++)
		err = add_port(i);
	if (!err) {
		ports[0]->peer = ports[1];
		ports[1]->peer = ports[0];
	}
	for (i = 0; i < 2 && !err; i++)
		err = register_netdev(ports[i]->dev);
	if (err)
		habits_remove();
	return err;
}
module_init(habits_init);
module_exit(habits_remove);

MODULE_DESCRIPTION("A driver with AF_XDP's zero-copy interface and the habits of others");
MODULE_LICENSE("GPL");
