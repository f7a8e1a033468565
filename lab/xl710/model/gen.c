/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Intel XL710: a packet generator in place of a partner
 *
 * With gen-rate set, UDP packets of gen-size bytes (with the CRC, as the
 * papers count), in gen-flows flows, arrive at that rate of guest time as long
 * as the link is up. What the driver has no descriptors for is lost and
 * counted, as on a wire; the model pays for delivered packets only.
 */
#include "qemu/osdep.h"
#include "qemu/units.h"
#include "qemu/main-loop.h"
#include "net/checksum.h"
#include "net/eth.h"
#include "trace.h"
#include "xl710.h"

#define TICK_NS         (100 * SCALE_US)
#define SRC_IP          0x0a070a01              /* 10.7.10.1 */
#define DST_IP          0x0a070a02
#define SRC_PORT        1024
#define PORTS           60000
#define SCATTER         40507                   /* has no factor of PORTS */
#define DST_PORT        9
#define SIGNATURE       42                      /* offset: behind UDP */
#define SIGNATURE_MAGIC 0x7067

static uint64_t rate(XL710State *s)
{
    /* a packet takes 20 more bytes of the wire: preamble, start, gap */
    uint64_t line = s->gen_line * 1000000000ull / ((s->gen_size + 20) * 8);

    return MIN(s->gen_rate, line);
}

/* A packet of that length to that address, without a CRC and a flow */
void xl710_gen_build(uint8_t *p, uint32_t len, const uint8_t *mac)
{
    memset(p, 0, len);
    memcpy(p, mac, 6);
    p[6] = 0x02;
    p[11] = 0x01;
    stw_be_p(p + 12, ETH_P_IP);
    p[14] = 0x45;
    stw_be_p(p + 16, len - 14);
    p[22] = 64;
    p[23] = IPPROTO_UDP;
    stl_be_p(p + 26, SRC_IP);
    stl_be_p(p + 30, DST_IP);
    stw_be_p(p + 24, net_raw_checksum(p + 14, 20));
    stw_be_p(p + 36, DST_PORT);
    stw_be_p(p + 38, len - 34);
    /* no UDP checksum: then the flows differ in two bytes only */
}

/* The flows differ in their source port, in more than its lowest bits */
void xl710_gen_set_flow(uint8_t *p, uint32_t flow)
{
    stw_be_p(p + 34, SRC_PORT + (uint64_t)flow * SCATTER % PORTS);
}

/* What apps/tpgen numbers and stamps packets with, in guest time */
static void set_number(XL710State *s, int64_t now)
{
    uint8_t *p = s->gen_pkt + SIGNATURE;

    stl_be_p(p + 6, s->gen_number++);
    stq_be_p(p + 10, now);
}

static bool may_run(XL710State *s)
{
    return s->gen_rate && s->link_up &&
           (!s->gen_count || s->gen_sent + s->gen_dropped < s->gen_count);
}

static bool room(XL710State *s)
{
    unsigned q;

    for (q = 0; q < s->num_queues; q++) {
        if (s->rxq[q].ena && xl710_rx_room(s, q)) {
            return true;
        }
    }
    return false;
}

static void gen_tick(void *opaque)
{
    XL710State *s = opaque;
    int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
    uint64_t due, n, misses = 0;

    if (!may_run(s)) {
        return;
    }
    due = muldiv64(now - s->gen_start, rate(s), NANOSECONDS_PER_SECOND);
    n = due - s->gen_due;
    s->gen_due = due;
    if (s->gen_count) {
        n = MIN(n, s->gen_count - s->gen_sent - s->gen_dropped);
    }
    /*
     * Once each flow has lost a packet in a row there is room for none; what
     * is left is lost without being built.
     */
    if (!room(s)) {
        misses = s->gen_flows;
    }
    xl710_irq_hold(s);
    for (; n && misses < s->gen_flows; n--) {
        uint32_t delivered = xl710_reg(s, GLV_UPRC(0));

        xl710_gen_set_flow(s->gen_pkt, s->gen_flow);
        s->gen_flow = s->gen_flow + 1 < s->gen_flows ? s->gen_flow + 1 : 0;
        if (s->gen_seq) {
            set_number(s, now);
        }
        xl710_rx(s, s->gen_pkt, s->gen_size - 4, false);
        if (xl710_reg(s, GLV_UPRC(0)) != delivered) {
            s->gen_sent++;
            misses = 0;
        } else {
            s->gen_dropped++;
            misses++;
        }
    }
    xl710_irq_release(s);
    s->gen_dropped += n;
    s->gen_number += n;
    xl710_rx_count(s, s->gen_pkt, s->gen_size - 4, n);
    xl710_count32(s, GLPRT_RDPC, n);
    xl710_count32(s, GLV_RDPC(0), n);
    timer_mod(s->gen_timer, now + TICK_NS);
}

/* A property, the link or the queues changed: start or stop */
void xl710_gen_update(XL710State *s)
{
    if (!s->gen_timer) {
        return;
    }
    if (!may_run(s)) {
        timer_del(s->gen_timer);
    } else if (!timer_pending(s->gen_timer)) {
        xl710_gen_build(s->gen_pkt, s->gen_size - 4, s->conf.macaddr.a);
        if (s->gen_seq) {
            stw_be_p(s->gen_pkt + SIGNATURE, SIGNATURE_MAGIC);
        }
        s->gen_start = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
        s->gen_due = 0;
        timer_mod(s->gen_timer, s->gen_start + TICK_NS);
    }
}

void xl710_gen_init(XL710State *s)
{
    s->gen_pkt = g_malloc0(XL710_MAX_FRAME);
    s->gen_timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, gen_tick, s);
}

void xl710_gen_uninit(XL710State *s)
{
    timer_free(s->gen_timer);
    s->gen_timer = NULL;
    g_free(s->gen_pkt);
}
