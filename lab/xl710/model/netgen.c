/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A packet generator and sink for any network card of QEMU
 *
 *     -device netgen,id=g0,rate=1000000 -device virtio-net-pci,netdev=g0,...
 *
 * The same as the generator in the XL710 model, as a netdev: similar packets
 * arrive at this rate in guest time, and sent packets are dropped immediately. So
 * with -icount, everything depends on instructions only. Packets for which the
 * card has no buffers are lost.
 */
#include "qemu/osdep.h"
#include "qemu/host-utils.h"
#include "qemu/module.h"
#include "qemu/timer.h"
#include "qemu/units.h"
#include "net/net.h"
#include "hw/qdev-core.h"
#include "qapi/error.h"
#include "xl710.h"

#define TYPE_NETGEN     "netgen"
#define TICK_NS         (100 * SCALE_US)

OBJECT_DECLARE_SIMPLE_TYPE(NetGen, NETGEN)

struct NetGen {
    DeviceState parent_obj;

    uint64_t rate;
    uint32_t size, flows;
    NetClientState *nc;
    QEMUTimer *timer;
    int64_t start;
    uint64_t due;               /* packets since start */
    uint32_t flow;
    bool full;                  /* a packet waits for a buffer */
    uint8_t *pkt;
};

typedef struct {
    NetClientState nc;
    NetGen *gen;
} NetGenClient;

static NetGen *netgen_of(NetClientState *nc)
{
    return DO_UPCAST(NetGenClient, nc, nc)->gen;
}

static ssize_t netgen_receive(NetClientState *nc, const uint8_t *buf,
                              size_t len)
{
    return len;
}

static void netgen_sent(NetClientState *nc, ssize_t ret)
{
    netgen_of(nc)->full = false;
}

static void netgen_tick(void *opaque)
{
    NetGen *g = opaque;
    int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
    uint64_t due = muldiv64(now - g->start, g->rate, NANOSECONDS_PER_SECOND);
    uint64_t n = due - g->due;

    g->due = due;
    for (; n && !g->full && qemu_can_send_packet(g->nc); n--) {
        xl710_gen_set_flow(g->pkt, g->flow);
        g->flow = g->flow + 1 < g->flows ? g->flow + 1 : 0;
        /* Cleared by what may be called before this returns. */
        g->full = true;
        if (qemu_send_packet_async(g->nc, g->pkt, g->size, netgen_sent)) {
            g->full = false;
        }
    }
    timer_mod(g->timer, now + TICK_NS);
}

static NetClientInfo netgen_info = {
    /* any but a card's, or one that QEMU does more with */
    .type = NET_CLIENT_DRIVER_SOCKET,
    .size = sizeof(NetGenClient),
    .receive = netgen_receive,
};

static void netgen_realize(DeviceState *dev, Error **errp)
{
    static const uint8_t mac[6] = { 0x02, 0, 0, 0, 0, 0x02 };
    NetGen *g = NETGEN(dev);

    if (!dev->id || g->size < 60 || g->size > XL710_MAX_FRAME || !g->flows) {
        error_setg(errp, "netgen: needs an id, 60 <= size <= %u and a flow",
                   XL710_MAX_FRAME);
        return;
    }
    g->nc = qemu_new_net_client(&netgen_info, NULL, TYPE_NETGEN, dev->id);
    DO_UPCAST(NetGenClient, nc, g->nc)->gen = g;
    g->pkt = g_malloc0(g->size);
    xl710_gen_build(g->pkt, g->size, mac);
    if (!g->rate) {
        return;
    }
    g->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, netgen_tick, g);
    g->start = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
    timer_mod(g->timer, g->start + TICK_NS);
}

static const Property netgen_properties[] = {
    DEFINE_PROP_UINT64("rate", NetGen, rate, 0),
    DEFINE_PROP_UINT32("size", NetGen, size, 60),
    DEFINE_PROP_UINT32("flows", NetGen, flows, 1),
    XL710_PROPERTIES_END
};

static void netgen_class_init(ObjectClass *klass, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);

    dc->desc = "Packet generator and sink";
    dc->realize = netgen_realize;
    dc->user_creatable = true;
    dc->hotpluggable = false;
    device_class_set_props(dc, netgen_properties);
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
}

static const TypeInfo netgen_type = {
    .name = TYPE_NETGEN,
    .parent = TYPE_DEVICE,
    .instance_size = sizeof(NetGen),
    .class_init = netgen_class_init,
};

static void netgen_register(void)
{
    type_register_static(&netgen_type);
}

type_init(netgen_register)
