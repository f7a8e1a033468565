// SPDX-License-Identifier: GPL-2.0
/* The driver of Documentation/networking/tpacket4_driver.rst
 *
 * guide_blocks.py writes the page's code blocks to block_N.h. They are included
 * here, each where a driver has such code. The hardware is simulated: two ports,
 * v4a and v4b, that are wired to each other. It accesses the frames by their DMA
 * addresses, so that with bounce buffers (swiotlb=force), the data is wrong if
 * the page lacks a sync.
 */
#include <linux/bpf.h>
#include <linux/dma-direct.h>
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/filter.h>
#include <linux/module.h>
#include <linux/net_tstamp.h>
#include <linux/platform_device.h>
#include <linux/tpacket4.h>

enum mode {
	MODE_SIMPLE,		/* the page's first loops */
	MODE_BATCH,		/* those for hardware that completes in order */
	MODE_ANY_ORDER,		/* and for hardware that does not */
};

static int mode;
module_param(mode, int, 0444);
MODULE_PARM_DESC(mode, "0: simple, 1: batches, 2: completed out of order");

#define RX_DESCS	512	/* as many frames as the page's Rx array has */
#define TX_DESCS	32
#define MAX_LEN		SZ_16K
#define HASH		0x12345678	/* which the tests know, as the time */
#define HWTSTAMP	1234567890123

struct hw_rx {
	dma_addr_t addr;
	u64 id;
	u32 len;
	bool eop;
};

struct hw_tx {
	struct tp4_frame_set p;
	u32 cookie;
};

struct mydriver_buff {
	struct xdp_buff xdp;
};

struct mydriver_tp4 {
	struct tp4_packet_array *rx, *tx;
	struct tp4_xdp xdp;
	struct mydriver_buff mydriver_buff;
	struct mydriver *port;
	struct sk_buff *offloads;	/* the same for all packets */
	u32 buf_len;
	u32 posted;			/* not MODE_ANY_ORDER: Rx frames the hardware has */
	u32 handles[RX_DESCS];		/* of packets received in this poll */
	u32 nr_handles;
};

struct mydriver {
	struct net_device *dev;
	struct mydriver *peer;
	struct napi_struct napi;
	struct xdp_rxq_info xdp_rxq;
	struct bpf_prog *xdp_prog;
	struct mydriver_tp4 __rcu *tp4;
	bool clock_on;

	/* Rx, which the peer's NAPI and stack fill: */
	spinlock_t lock;
	bool rx_on;
	struct hw_rx empty[RX_DESCS], written[RX_DESCS];
	u32 nr_empty, nr_written, next_written;
	/* Tx, which NAPI uses: */
	struct hw_tx sent[TX_DESCS];
	u32 nr_sent;
	int err;			/* of the packet that is being posted */
	u32 len;
	u8 packet[MAX_LEN];
};

static struct mydriver *ports[2];
static struct platform_device *bus;

/* ---- the hardware ---- */

static void *hw_memory(dma_addr_t addr)
{
	return phys_to_virt(dma_to_phys(&bus->dev, addr));
}

/* Take an empty frame, in the order in which they were posted or in the opposite one. */
static struct hw_rx hw_take_empty(struct mydriver *port)
{
	struct hw_rx hw = port->empty[0];

	port->nr_empty--;
	if (mode == MODE_ANY_ORDER)
		return port->empty[port->nr_empty];
	memmove(port->empty, port->empty + 1, port->nr_empty * sizeof(hw));
	return hw;
}

static void hw_to_stack(struct mydriver *port, const void *data, u32 len)
{
	struct sk_buff *skb = netdev_alloc_skb(port->dev, len);

	if (!skb)
		return;
	skb_put_data(skb, data, len);
	skb->protocol = eth_type_trans(skb, port->dev);
	netif_rx(skb);
}

/* A packet from the wire */
static void hw_receive(struct mydriver *port, const u8 *data, u32 len)
{
	struct mydriver_tp4 *tp4;

	rcu_read_lock();
	spin_lock_bh(&port->lock);
	tp4 = rcu_dereference(port->tp4);
	if (!netif_running(port->dev)) {
		len = 0;
	} else if (!port->rx_on) {
		hw_to_stack(port, data, len);
		len = 0;
	} else if (port->nr_written + DIV_ROUND_UP(len, tp4->buf_len) > RX_DESCS ||
		   port->nr_empty < DIV_ROUND_UP(len, tp4->buf_len)) {
		len = 0;	/* no frames */
	}
	while (len) {
		struct hw_rx *hw = &port->written[port->nr_written++];

		*hw = hw_take_empty(port);
		hw->len = min(len, tp4->buf_len);
		memcpy(hw_memory(hw->addr), data, hw->len);
		data += hw->len;
		len -= hw->len;
		hw->eop = !len;
	}
	if (port->nr_written)
		napi_schedule(&port->napi);
	spin_unlock_bh(&port->lock);
	rcu_read_unlock();
}

/* Get a frame that the hardware has written. */
static bool hw_written(struct mydriver_tp4 *tp4, u32 *len, bool *eop, u64 *id)
{
	struct mydriver *port = tp4->port;
	const struct hw_rx *hw;
	bool begins;

	spin_lock_bh(&port->lock);
	begins = !port->next_written || port->written[port->next_written - 1].eop;
	if (port->next_written == port->nr_written) {
		port->next_written = 0;
		port->nr_written = 0;
		spin_unlock_bh(&port->lock);
		return false;
	}
	hw = &port->written[port->next_written++];
	*len = hw->len;
	*eop = hw->eop;
	*id = hw->id;
	spin_unlock_bh(&port->lock);
	if (begins)
		tp4->handles[tp4->nr_handles++] = tp4a_next_handle(tp4->rx);
	if (mode != MODE_ANY_ORDER)
		tp4->posted--;
	return true;
}

static void hw_post(struct mydriver *port, dma_addr_t addr, u64 id)
{
	spin_lock_bh(&port->lock);
	port->empty[port->nr_empty++] = (struct hw_rx){ .addr = addr, .id = id };
	spin_unlock_bh(&port->lock);
}

static u32 hw_room(struct mydriver *port)
{
	return RX_DESCS - READ_ONCE(port->nr_empty);
}

/* ---- Tx ---- */

static int check_packet(struct mydriver *port, struct tp4_frame_set p)
{
	const struct net_device *dev = port->dev;
	struct tp4_offload offload = {};
	int err = 0;

#include "block_12.h"
	if (!err && offload.start)
		err = -EOPNOTSUPP;
	if (!err)
		err = tp4f_check_len(&p, dev, tp4f_packet_len(&p));
#include "block_12b.h"
	return err;
}

static u32 get_cookie(struct tp4_frame_set p)
{
	u32 cookie;

#include "block_9.h"
	return cookie;
}

/* Post a frame of packet @p. */
static void hw_send(struct mydriver *port, struct tp4_frame_set p, dma_addr_t addr,
		    u32 len, bool last)
{
	if (p.curr == p.start) {
		port->err = check_packet(port, p);
		port->len = 0;
	}
	if (!port->err && port->len + len <= MAX_LEN) {
		memcpy(port->packet + port->len, hw_memory(addr), len);
		port->len += len;
	}
	if (!last)
		return;
	if (!port->err)
		hw_receive(port->peer, port->packet, port->len);
	port->sent[port->nr_sent++] = (struct hw_tx){
		.p = p, .cookie = get_cookie(p),
	};
}

static void send(struct mydriver *port, struct mydriver_tp4 *tp4)
{
	struct tp4_frame_set p;

#define there_is_room		(port->nr_sent < TX_DESCS)
#define post(addr, len, last)	hw_send(port, p, addr, len, last)
#include "block_6.h"
#undef post
}

static void send_batch(struct mydriver *port, struct mydriver_tp4 *tp4)
{
	u32 i, nr, room = TX_DESCS - port->nr_sent;
	struct tp4_frame_set p;
	struct tp4_dma dma;
	dma_addr_t addr;

	tp4a_populate(tp4->tx);
#define post(addr, len) ({					\
	struct tp4_frame_set one = p;				\
								\
	one.start = p.curr;					\
	one.end = p.curr + 1;					\
	hw_send(port, one, addr, len, true); })
#include "block_7.h"
#undef post
}

/* Without an order, the last packet is completed first. */
static void complete_sent(struct mydriver *port, struct mydriver_tp4 *tp4)
{
	u32 i, nr = port->nr_sent, frames = 0;

	for (i = 0; i < nr; i++) {
		struct tp4_frame_set sent = port->sent[i].p;
		u32 cookie = port->sent[nr - 1 - i].cookie;

		frames += tp4f_num_frames(&sent);
		if (mode == MODE_SIMPLE) {
#include "block_6b.h"
		} else if (mode == MODE_ANY_ORDER) {
#include "block_9b.h"
		}
	}
	if (mode == MODE_BATCH) {
		u32 sent = frames;

#include "block_7b.h"
	}
	port->nr_sent = 0;
}

static void poll_tx(struct mydriver *port, struct mydriver_tp4 *tp4)
{
	tp4a_need_wakeup(tp4->tx, false);
	if (mode == MODE_BATCH)
		send_batch(port, tp4);
	/* and what is not for batches */
	send(port, tp4);
	complete_sent(port, tp4);
}

/* ---- Rx ---- */

/* If the clock is on, it is a second ahead, so that it is not mistaken for the kernel's. */
static u64 hw_time(const struct mydriver_tp4 *tp4)
{
	return READ_ONCE(tp4->port->clock_on) ? ktime_get_real_ns() + NSEC_PER_SEC : HWTSTAMP;
}

static void set_meta(struct mydriver_tp4 *tp4)
{
	u64 ns = hw_time(tp4);
	u32 i, hash = HASH;

	for (i = 0; i < tp4->nr_handles; i++) {
		struct tp4_frame_set p;

		tp4a_get_packet(tp4->rx, tp4->handles[i], &p);
#include "block_11.h"
	}
	tp4->nr_handles = 0;
}

static void receive(struct mydriver_tp4 *tp4)
{
	struct tp4_frame_set p;
	bool end_of_packet;
	u64 id;
	u32 len;

#define the_hardware_has_written_a_frame	hw_written(tp4, &len, &end_of_packet, &id)
#define tp4a_flush(rx)	(set_meta(tp4), tp4a_flush(rx))
#include "block_5.h"
#undef tp4a_flush
}

static void fill(struct mydriver *port, struct mydriver_tp4 *tp4)
{
	u32 i, nr, posted = tp4->posted, buf_len = tp4->buf_len, room = hw_room(port);
	struct tp4_dma dma = tp4a_get_dma(tp4->rx);
	struct tp4_frame_set p;
	dma_addr_t addr;

#define post(addr)	hw_post(port, addr, 0)
#include "block_8.h"
#undef post
	tp4->posted = posted;
}

static void receive_any(struct mydriver_tp4 *tp4, u64 cookie, u32 len, bool end_of_packet)
{
	struct tp4_frame_set p;

#include "block_10b.h"
}

static void fill_any(struct mydriver *port, struct mydriver_tp4 *tp4)
{
	u32 i, nr, buf_len = tp4->buf_len, room = hw_room(port);
	struct tp4_frame_set p;

#define post(addr, id)	hw_post(port, addr, id)
#include "block_10.h"
#undef post
}

static void poll_rx(struct mydriver *port, struct mydriver_tp4 *tp4)
{
	struct mydriver *rx_ring = port, *queue = port;
	bool end_of_packet;
	u32 len;
	u64 id;

#include "block_3.h"
	if (mode == MODE_ANY_ORDER) {
		while (hw_written(tp4, &len, &end_of_packet, &id))
			receive_any(tp4, id, len, end_of_packet);
		set_meta(tp4);
		tp4a_flush(tp4->rx);
	} else {
		receive(tp4);
	}
	if (tp4->xdp.redirect)
		xdp_do_flush();
	DEV_STATS_ADD(port->dev, rx_dropped, tp4->xdp.errors);
	if (mode == MODE_ANY_ORDER)
		fill_any(port, tp4);
	else
		fill(port, tp4);
}

/* ---- XDP and the stack ---- */

static int mydriver_xdp_tx(void *arg, struct xdp_frame *frame)
{
	struct mydriver_tp4 *tp4 = arg;
	struct mydriver *port = tp4->port;
	struct skb_shared_info *frags;
	u32 i, len = frame->len;

	memcpy(port->packet, frame->data, len);
	if (xdp_frame_has_frags(frame)) {
		frags = xdp_get_shared_info_from_frame(frame);
		for (i = 0; i < frags->nr_frags; i++) {
			skb_frag_t *frag = &frags->frags[i];

			memcpy(port->packet + len, skb_frag_address(frag), skb_frag_size(frag));
			len += skb_frag_size(frag);
		}
	}
	hw_receive(port->peer, port->packet, len);
	xdp_return_frame(frame);
	return 0;
}

static struct sk_buff *mydriver_get_offloads(void *arg, const struct tp4_frame_set *p)
{
	struct mydriver_tp4 *tp4 = arg;
	struct sk_buff *skb = tp4->offloads;

	skb_hwtstamps(skb)->hwtstamp = ns_to_ktime(hw_time(tp4));
	skb_set_hash(skb, HASH, PKT_HASH_TYPE_L4);
	return skb;
}

static int mydriver_bpf(struct net_device *dev, struct netdev_bpf *bpf)
{
	struct mydriver *port = netdev_priv(dev);
	struct bpf_prog *old = port->xdp_prog;

	if (bpf->command != XDP_SETUP_PROG)
		return -EINVAL;
	WRITE_ONCE(port->xdp_prog, bpf->prog);
	if (old)
		bpf_prog_put(old);
	return 0;
}

static netdev_tx_t mydriver_start_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct mydriver *port = netdev_priv(dev);

	if (!skb_linearize(skb))
		hw_receive(port->peer, skb->data, skb->len);
	consume_skb(skb);
	return NETDEV_TX_OK;
}

/* ---- the queue pair ---- */

static int mydriver_poll(struct napi_struct *napi, int budget)
{
	struct mydriver *port = container_of(napi, struct mydriver, napi);
	struct mydriver_tp4 *tp4 = rcu_dereference_bh(port->tp4);

	if (!budget)
		return 0;
	if (tp4 && tp4->tx)
		poll_tx(port, tp4);
	if (tp4 && tp4->rx)
		poll_rx(port, tp4);
	if (tp4 && tp4->tx) {
		tp4a_need_wakeup(tp4->tx, true);
		if (tp4a_has_work(tp4->tx))
			return budget;
	}
	napi_complete_done(napi, 0);
	return 0;
}

static void kick(struct mydriver *port)
{
	local_bh_disable();
	if (netif_running(port->dev))
		napi_schedule(&port->napi);
	local_bh_enable();
}

static int mydriver_xmit(struct net_device *dev, int queue_pair, u32 flags)
{
	kick(netdev_priv(dev));
	return 0;
}

static void mydriver_free(struct mydriver_tp4 *tp4)
{
	kfree_skb(tp4->offloads);
	kfree(tp4);
}

static int mydriver_enable(struct mydriver *rx_ring, struct tp4_netdev_parms *parms)
{
	struct mydriver_tp4 *tp4 = kzalloc(sizeof(*tp4), GFP_KERNEL);
	struct device *dev = &bus->dev;

	if (!tp4)
		return -ENOMEM;
	tp4->port = rx_ring;
	tp4->offloads = alloc_skb(0, GFP_KERNEL);
#include "block_1.h"
	if (tp4->rx) {
#include "block_2.h"
		tp4->buf_len = tp4_frame_room(parms->rx_opaque);
	}
	if (!tp4->offloads || !parms->tx_opaque != !tp4->tx ||
	    !parms->rx_opaque != !tp4->rx) {
		tp4a_free(tp4->rx);
		tp4a_free(tp4->tx);
		mydriver_free(tp4);
		return -ENOMEM;
	}
	spin_lock_bh(&rx_ring->lock);
	rcu_assign_pointer(rx_ring->tp4, tp4);
	rx_ring->rx_on = tp4->rx;
	spin_unlock_bh(&rx_ring->lock);
	kick(rx_ring);
	return 0;
}

static void mydriver_disable(struct mydriver *queue)
{
	struct mydriver_tp4 *tp4 = rtnl_dereference(queue->tp4);
	bool running = netif_running(queue->dev), eop;
	u32 len;
	u64 id;

	if (running)
		napi_disable(&queue->napi);
	spin_lock_bh(&queue->lock);
	queue->rx_on = false;
	spin_unlock_bh(&queue->lock);
	if (mode == MODE_ANY_ORDER && tp4->rx) {
		while (hw_written(tp4, &len, &eop, &id))
			receive_any(tp4, id, len, eop);
		while (queue->nr_empty)
			receive_any(tp4, queue->empty[--queue->nr_empty].id, 0, true);
		tp4a_recycle(tp4->rx);
	}
	queue->nr_empty = 0;
	queue->nr_written = 0;
	queue->next_written = 0;
#include "block_4.h"
	mydriver_free(tp4);
	if (running)
		napi_enable(&queue->napi);
}

static int mydriver_zerocopy(struct net_device *dev, struct tp4_netdev_parms *parms)
{
	struct mydriver *port = netdev_priv(dev);

	if (parms->command == TP4_ENABLE)
		return mydriver_enable(port, parms);
	mydriver_disable(port);
	return 0;
}

/* ---- the device ---- */

static int mydriver_open(struct net_device *dev)
{
	struct mydriver *port = netdev_priv(dev);

	napi_enable(&port->napi);
	netif_carrier_on(dev);
	local_bh_disable();
	napi_schedule(&port->napi);
	local_bh_enable();
	return 0;
}

static int mydriver_stop(struct net_device *dev)
{
	struct mydriver *port = netdev_priv(dev);

	netif_carrier_off(dev);
	napi_disable(&port->napi);
	return 0;
}

static int mydriver_hwtstamp_set(struct net_device *dev, struct kernel_hwtstamp_config *cfg,
				 struct netlink_ext_ack *extack)
{
	struct mydriver *port = netdev_priv(dev);

	WRITE_ONCE(port->clock_on, cfg->rx_filter == HWTSTAMP_FILTER_ALL);
	return 0;
}

static const struct net_device_ops mydriver_ops = {
	.ndo_open = mydriver_open,
	.ndo_stop = mydriver_stop,
	.ndo_start_xmit = mydriver_start_xmit,
	.ndo_bpf = mydriver_bpf,
	.ndo_tp4_zerocopy = mydriver_zerocopy,
	.ndo_tp4_xmit = mydriver_xmit,
	.ndo_hwtstamp_set = mydriver_hwtstamp_set,
};

static void mydriver_get_channels(struct net_device *dev, struct ethtool_channels *ch)
{
	ch->max_combined = 1;
	ch->combined_count = 1;
}

static const struct ethtool_ops mydriver_ethtool_ops = {
	.get_channels = mydriver_get_channels,
	.get_link = ethtool_op_get_link,
};

static void remove_port(struct mydriver *port)
{
	if (port->dev->reg_state == NETREG_REGISTERED)
		unregister_netdev(port->dev);
	if (xdp_rxq_info_is_reg(&port->xdp_rxq))
		xdp_rxq_info_unreg(&port->xdp_rxq);
	netif_napi_del(&port->napi);
	free_netdev(port->dev);
}

static void guide_remove(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (ports[i])
			remove_port(ports[i]);
	}
	platform_device_unregister(bus);
}

static int add_port(int i)
{
	struct net_device *dev = alloc_etherdev(sizeof(struct mydriver));
	struct mydriver *port;

	if (!dev)
		return -ENOMEM;
	port = netdev_priv(dev);
	port->dev = dev;
	ports[i] = port;
	spin_lock_init(&port->lock);
	SET_NETDEV_DEV(dev, &bus->dev);
	snprintf(dev->name, sizeof(dev->name), "v4%c", 'a' + i);
	eth_hw_addr_random(dev);
	dev->netdev_ops = &mydriver_ops;
	dev->ethtool_ops = &mydriver_ethtool_ops;
	dev->max_mtu = 9200;
	dev->xdp_features = NETDEV_XDP_ACT_BASIC | NETDEV_XDP_ACT_REDIRECT |
			    NETDEV_XDP_ACT_RX_SG;
	netif_carrier_off(dev);
	netif_napi_add(dev, &port->napi, mydriver_poll);
	return xdp_rxq_info_reg(&port->xdp_rxq, dev, 0, port->napi.napi_id);
}

static int __init guide_init(void)
{
	int i, err;

	bus = platform_device_register_simple("guide", PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(bus))
		return PTR_ERR(bus);
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
		guide_remove();
	return err;
}
module_init(guide_init);
module_exit(guide_remove);

MODULE_DESCRIPTION("The driver of the guide to TPACKET_V4 for authors of drivers");
MODULE_LICENSE("GPL");
