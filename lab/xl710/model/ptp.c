/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Intel XL710: IEEE 1588
 *
 * The clock counts nanoseconds of guest time, at the rate that the driver sets:
 * each 1.6 ns it adds INC / 2^32 ns. It is the function's, as that of a port
 * whose only function is 0.
 *
 * A packet whose context descriptor has TSYN, on a queue whose context allows it,
 * latches its time in TXTIME, unless that holds the time of another one, which the
 * driver frees by reading the upper half. A received PTP event message latches
 * its time in a free one of four registers, whose number is in its descriptor.
 */
#include "qemu/osdep.h"
#include "qemu/host-utils.h"
#include "net/eth.h"
#include "trace.h"
#include "xl710.h"

#define PTP_ETHERTYPE   0x88f7
#define PTP_PORT        319             /* of UDP, for event messages */
#define PTP_EVENTS      0xf             /* V2MESSTYPE0: all of them */
#define PTP_GENERAL     8               /* the first type that is no event */

static int64_t guest_ns(void)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

static uint64_t clock_now(const XL710State *s)
{
    int64_t ns = guest_ns() - s->ptp_at;
    uint64_t low, high;

    /* 5 / 8: of 1.6 ns */
    mulu64(&low, &high, ns * 5 / 8, s->ptp_inc);
    return s->ptp_time + (high << 32 | low >> 32);
}

static void set_clock(XL710State *s, uint64_t time, uint64_t inc)
{
    s->ptp_time = time;
    s->ptp_at = guest_ns();
    s->ptp_inc = xl710_reg(s, PRTTSYN_CTL0) & TSYNENA ? inc : 0;
}

static uint64_t inc(const XL710State *s)
{
    return xl710_reg(s, PRTTSYN_INC_L) |
           (uint64_t)xl710_reg(s, PRTTSYN_INC_H) << 32;
}

uint32_t xl710_ptp_read_time(XL710State *s)
{
    uint64_t now = clock_now(s);

    /* for the read that follows */
    xl710_set_reg(s, PRTTSYN_TIME_H, now >> 32);
    return now;
}

/* Both halves count once the upper one is written */
void xl710_ptp_write_time(XL710State *s, uint32_t high)
{
    set_clock(s, xl710_reg(s, PRTTSYN_TIME_L) | (uint64_t)high << 32, inc(s));
}

void xl710_ptp_set_rate(XL710State *s)
{
    set_clock(s, clock_now(s), inc(s));
}

void xl710_ptp_adjust(XL710State *s, uint32_t adj)
{
    int64_t ns = adj & ADJ_NS;

    set_clock(s, clock_now(s) + (adj & ADJ_MINUS ? -ns : ns), inc(s));
}

uint32_t xl710_ptp_read_tx(XL710State *s)
{
    s->ptp_tx_full = false;
    return xl710_reg(s, PRTTSYN_TXTIME_H);
}

uint32_t xl710_ptp_read_rx(XL710State *s, unsigned i)
{
    xl710_set_reg(s, PRTTSYN_STAT_1, xl710_reg(s, PRTTSYN_STAT_1) & ~(1u << i));
    return xl710_reg(s, PRTTSYN_RXTIME_H(i));
}

uint32_t xl710_ptp_read_stat(XL710State *s)
{
    uint32_t val = xl710_reg(s, PRTTSYN_STAT_0);

    xl710_set_reg(s, PRTTSYN_STAT_0, 0);
    return val;
}

void xl710_ptp_sent(XL710State *s)
{
    uint64_t now = clock_now(s);

    if (!(xl710_reg(s, PRTTSYN_CTL0) & TSYNENA) || s->ptp_tx_full) {
        return;
    }
    trace_xl710_ptp("tx", 0, now);
    s->ptp_tx_full = true;
    xl710_set_reg(s, PRTTSYN_TXTIME_L, now);
    xl710_set_reg(s, PRTTSYN_TXTIME_H, now >> 32);
    xl710_set_reg(s, PRTTSYN_STAT_0,
                  xl710_reg(s, PRTTSYN_STAT_0) | STAT_0_TXTIME);
    if (xl710_reg(s, PRTTSYN_CTL0) & CTL0_TXTIME_INT_ENA) {
        xl710_irq_other(s, ICR0_TIMESYNC);
    }
}

/* The message that is to be stamped, or NULL */
static const uint8_t *event_message(const XL710State *s, const XL710Pkt *p)
{
    uint32_t ctl = xl710_reg(s, PRTTSYN_CTL1), at = 14 + (p->vlan ? 4 : 0);
    uint32_t type = ctl >> CTL1_TYPE_S & 3;

    if (!(ctl & TSYNENA) || type != CTL1_TYPE_V2) {
        return NULL;                    /* version 1 is not implemented */
    }
    if (p->len > at && lduw_be_p(p->data + at - 2) == PTP_ETHERTYPE) {
        return p->data + at;
    }
    if (ctl & CTL1_UDP_319 && p->proto == IP_PROTO_UDP && !p->frag &&
        p->len > p->l4 + 8 && lduw_be_p(p->data + p->l4 + 2) == PTP_PORT) {
        return p->data + p->l4 + 8;
    }
    return NULL;
}

uint64_t xl710_ptp_received(XL710State *s, const XL710Pkt *p)
{
    uint32_t want = xl710_reg(s, PRTTSYN_CTL1) >> CTL1_V2TYPE_S & 0xf;
    uint32_t used = xl710_reg(s, PRTTSYN_STAT_1);
    const uint8_t *msg = event_message(s, p);
    unsigned i = ctz32(~used);
    uint64_t now;

    if (!msg || i >= PTP_RX_TIMES) {
        return 0;
    }
    if (want == PTP_EVENTS ? (msg[0] & 0xf) >= PTP_GENERAL :
                             (msg[0] & 0xf) != want) {
        return 0;
    }
    now = clock_now(s);
    trace_xl710_ptp("rx", i, now);
    xl710_set_reg(s, PRTTSYN_RXTIME_L(i), now);
    xl710_set_reg(s, PRTTSYN_RXTIME_H(i), now >> 32);
    xl710_set_reg(s, PRTTSYN_STAT_1, used | 1u << i);
    return RXD_TSYNVALID | (uint64_t)i << RXD_TSYNINDX_S;
}

void xl710_ptp_reset(XL710State *s)
{
    s->ptp_tx_full = false;
    s->ptp_time = 0;
    s->ptp_inc = 0;
    s->ptp_at = guest_ns();
}
