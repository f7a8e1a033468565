/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Intel XL710: receive
 *
 * A frame is classified once, goes to every VSI with a matching filter, and
 * there to one queue: flow director first, then RSS. A frame that finds too few
 * descriptors is dropped and counted, unless link flow control is on (ethtool
 * -A tx on): then it waits in QEMU's net queue, instead of at a paused partner.
 *
 * Descriptors are prefetched when the tail moves, many at a time if the context
 * has PREFENA; later writes of the driver to them have no effect. Filled ones
 * are written back a cache line at a time, four short ones or two long ones;
 * the rest is written back with the next interrupt of the vector (irq.c).
 *
 * A queue that the driver disables continues to receive for stop-delay.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "net/eth.h"
#include "trace.h"
#include "xl710.h"

#define MAX_CHAIN       5               /* descriptors a packet */
#define RXERR1_PF       128             /* index of PF 0; VFs come before */

enum {
    MDD_RX_BAD_CONTEXT = 1,
    MDD_RX_BAD_TAIL,
    MDD_RX_BAD_ADDRESS,
};

static int64_t now_ns(void)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

static int number(const XL710RxQueue *r)
{
    return r - r->s->rxq;
}

unsigned xl710_rx_room(const XL710State *s, int q)
{
    const XL710RxQueue *r = &s->rxq[q];
    uint32_t tail = xl710_reg(s, QRX_TAIL(q));

    if (!r->ena) {
        return 0;
    }
    return tail >= r->head ? tail - r->head : tail + r->qlen - r->head;
}

/* ---- descriptors ---- */

static unsigned desc_size(const XL710RxQueue *r)
{
    return r->desc32 ? 32 : 16;
}

/* Have up to @most descriptors inside. Returns false on a bad address */
static bool prefetch(XL710RxQueue *r, unsigned most)
{
    uint32_t tail = xl710_reg(r->s, QRX_TAIL(number(r)));
    unsigned size = desc_size(r), i;
    uint64_t ring[XL710_PREFETCH * 4];

    if (r->pos) {
        r->num -= r->pos;
        memmove(r->addr, r->addr + r->pos, r->num * sizeof(*r->addr));
        r->pos = 0;
    }
    while (r->fetch != tail && r->num < most) {
        unsigned n = tail > r->fetch ? tail - r->fetch : r->qlen - r->fetch;

        n = MIN(n, most - r->num);
        if (pci_dma_read(PCI_DEVICE(r->s), r->base + r->fetch * size, ring,
                         n * size) != MEMTX_OK) {
            return false;
        }
        for (i = 0; i < n; i++) {
            r->addr[r->num++] = le64_to_cpu(ring[i * size / 8]);
        }
        r->fetch += n;
        if (r->fetch == r->qlen) {
            r->fetch = 0;
        }
    }
    return true;
}

/* Where to put what goes to the next descriptor; there must be room */
static bool next_buffer(XL710RxQueue *r, uint64_t *addr)
{
    /* a buffer may be a register, and what was written there have stopped us */
    if (!r->ena) {
        return false;
    }
    if (r->pos == r->num && !prefetch(r, r->prefetch ? XL710_PREFETCH : 1)) {
        return false;
    }
    if (r->pos == r->num) {
        return false;
    }
    *addr = r->addr[r->pos++];
    return true;
}

/* Write back what is filled, of each descriptor what makes it valid last */
static bool write_back(XL710RxQueue *r)
{
    PCIDevice *d = PCI_DEVICE(r->s);
    unsigned n = r->wb_num, i;
    unsigned at = (r->head + r->qlen - n) % r->qlen;
    MemTxResult res = MEMTX_OK;

    r->wb_num = 0;
    for (i = 0; i < n; i++) {
        uint64_t addr = r->base + at * desc_size(r);

        if (r->desc32) {
            res |= pci_dma_write(d, addr + 16, &r->wb[i][2], 16);
        }
        res |= pci_dma_write(d, addr, &r->wb[i][0], 8);
        smp_wmb();          /* DD is in what follows */
        res |= pci_dma_write(d, addr + 8, &r->wb[i][1], 8);
        at = at + 1 == r->qlen ? 0 : at + 1;
    }
    return res == MEMTX_OK;
}

static bool put_desc(XL710RxQueue *r, uint64_t qw0, uint64_t qw1, uint64_t qw2,
                     uint64_t qw3)
{
    uint64_t *wb;

    if (!r->ena) {
        return false;
    }
    wb = r->wb[r->wb_num++];
    wb[0] = cpu_to_le64(qw0);
    wb[1] = cpu_to_le64(qw1);
    wb[2] = cpu_to_le64(qw2);
    wb[3] = cpu_to_le64(qw3);
    r->head = r->head + 1 == r->qlen ? 0 : r->head + 1;
    if (r->head * desc_size(r) % XL710_WB_LINE) {
        return true;
    }
    return write_back(r);
}

bool xl710_rx_write_back(XL710State *s, int q)
{
    XL710RxQueue *r = &s->rxq[q];

    if (!r->ena || !r->wb_num) {
        return false;
    }
    if (!write_back(r)) {
        xl710_mdd_rx(s, q, MDD_RX_BAD_ADDRESS);
    }
    return true;
}

/* ---- what the driver asks for ---- */

static bool stuck(const XL710RxQueue *r)
{
    return r->s->knob[KNOB_STUCK_RX] == number(r);
}

static void stop_due(void *opaque)
{
    XL710RxQueue *r = opaque;
    int q = number(r);

    if (r->stopping && !stuck(r)) {
        xl710_rx_write_back(r->s, q);
        r->stopping = false;
        r->ena = false;
        xl710_set_reg(r->s, QRX_ENA(q), 0);
        trace_xl710_stopped("rx", q);
    }
}

void xl710_rx_catch_up(XL710State *s, int q)
{
    XL710RxQueue *r = &s->rxq[q];

    if (r->stopping && r->stop_at <= now_ns()) {
        stop_due(r);
    }
}

void xl710_rx_unstick(XL710State *s)
{
    int q;

    for (q = 0; q < s->num_queues; q++) {
        xl710_rx_catch_up(s, q);
    }
}

/* Look at the tail. Returns whether it is one */
static bool new_tail(XL710RxQueue *r)
{
    int q = number(r);

    if (xl710_reg(r->s, QRX_TAIL(q)) >= r->qlen) {
        xl710_mdd_rx(r->s, q, MDD_RX_BAD_TAIL);
        return false;
    }
    if (r->prefetch && !prefetch(r, XL710_PREFETCH)) {
        xl710_mdd_rx(r->s, q, MDD_RX_BAD_ADDRESS);
        return false;
    }
    return true;
}

void xl710_rx_tail(XL710State *s, int q)
{
    if (s->rxq[q].ena && new_tail(&s->rxq[q]) && s->nic) {
        qemu_flush_queued_packets(qemu_get_queue(s->nic));
    }
}

static void start(XL710State *s, int q)
{
    XL710RxQueue *r = &s->rxq[q];

    timer_del(r->timer);
    *r = (XL710RxQueue) { .s = s, .timer = r->timer };
    if (!xl710_hmc_load_rx(s, q)) {
        qemu_log_mask(LOG_GUEST_ERROR, "xl710: bad context of Rx queue %d\n",
                      q);
        xl710_mdd_rx(s, q, MDD_RX_BAD_CONTEXT);
        return;
    }
    r->fetch = r->head;
    r->ena = true;
    trace_xl710_rx_enable(q, r->base, r->qlen, r->dbuff, r->rxmax);
    new_tail(r);
}

void xl710_rx_enable(XL710State *s, int q, bool on)
{
    XL710RxQueue *r = &s->rxq[q];

    if (q >= s->num_queues) {
        return;
    }
    if (!on) {
        if (r->ena && !r->stopping) {
            r->stopping = true;
            r->stop_at = now_ns() + s->knob[KNOB_STOP_DELAY];
            timer_mod(r->timer, r->stop_at);
        }
        xl710_set_reg(s, QRX_ENA(q), r->ena ? QENA_STAT : 0);
        return;
    }
    if (r->ena) {
        r->stopping = false;    /* it goes on as it is */
    } else {
        start(s, q);
    }
    xl710_set_reg(s, QRX_ENA(q), QENA_REQ | (r->ena ? QENA_STAT : 0));
    if (r->ena && s->nic) {
        qemu_flush_queued_packets(qemu_get_queue(s->nic));
    }
}

void xl710_rx_reset(XL710State *s)
{
    int q;

    for (q = 0; q < s->num_queues; q++) {
        s->rxq[q].ena = false;
        s->rxq[q].stopping = false;
        timer_del(s->rxq[q].timer);
    }
}

void xl710_rx_init(XL710State *s)
{
    int q;

    /* there are registers for all, whatever the function may use */
    s->rxq = g_new0(XL710RxQueue, XL710_MAX_QUEUES);
    for (q = 0; q < XL710_MAX_QUEUES; q++) {
        s->rxq[q].s = s;
        s->rxq[q].timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, stop_due,
                                       &s->rxq[q]);
    }
}

void xl710_rx_uninit(XL710State *s)
{
    int q;

    for (q = 0; q < XL710_MAX_QUEUES; q++) {
        timer_free(s->rxq[q].timer);
    }
    g_free(s->rxq);
}

/* ---- packets ---- */

/* A descriptor of @before was taken, or several: are they running low? */
static void check_low(XL710State *s, int q, unsigned before)
{
    unsigned low = s->rxq[q].low;

    if (before >= low && xl710_rx_room(s, q) < low) {
        xl710_irq_rx_low(s, q);
    }
}

void xl710_rx_prog_status(XL710State *s, int q, uint64_t error, uint32_t fd_id)
{
    unsigned room = xl710_rx_room(s, q);
    XL710RxQueue *r = &s->rxq[q];
    uint64_t addr;

    if (!room) {
        return;
    }
    if (!next_buffer(r, &addr) ||
        !put_desc(r, (uint64_t)fd_id << 32, RXD_PROG_FD | error, 0, 0)) {
        xl710_mdd_rx(s, q, MDD_RX_BAD_ADDRESS);
        return;
    }
    check_low(s, q, room);
    xl710_irq_queue(s, q, true);
}

void xl710_rx_count(XL710State *s, const uint8_t *data, uint32_t len,
                    uint64_t n)
{
    static const uint32_t prt[] = { GLPRT_UPRC, GLPRT_MPRC, GLPRT_BPRC };
    uint32_t wire = len + 4;
    unsigned kind = is_broadcast_ether_addr(data) ? 2 :
                    is_multicast_ether_addr(data) ? 1 : 0;
    unsigned size = wire <= 64 ? 0 : wire <= 127 ? 1 : wire <= 255 ? 2 :
                    wire <= 511 ? 3 : wire <= 1023 ? 4 : wire <= 1522 ? 5 : 6;

    xl710_count(s, GLPRT_GORC, wire * n);
    xl710_count(s, prt[kind], n);
    xl710_count(s, GLPRT_PRC64 + size * 32, n);
}

static void count_vsi(XL710State *s, unsigned vsi, const uint8_t *data,
                      uint32_t len)
{
    static const uint32_t glv[] = { GLV_UPRC(0), GLV_MPRC(0), GLV_BPRC(0) };
    unsigned kind = is_broadcast_ether_addr(data) ? 2 :
                    is_multicast_ether_addr(data) ? 1 : 0;

    xl710_count(s, GLV_GORC(vsi), len + 4);
    xl710_count(s, glv[kind] + vsi * 8, 1);
}

static void count_drop(XL710State *s, unsigned vsi)
{
    xl710_count32(s, GLPRT_RDPC, 1);
    xl710_count32(s, GLV_RDPC(vsi), 1);
}

/* Quad word 1 but for length, DD and EOF */
static uint64_t packet_status(const XL710Pkt *p, bool strip)
{
    uint64_t st = (uint64_t)p->ptype << RXD_PTYPE_S | p->tsyn;

    if (strip) {
        st |= RXD_L2TAG1P;
    }
    if (is_broadcast_ether_addr(p->data)) {
        st |= 2ull << RXD_UMBCAST_S;
    } else if (is_multicast_ether_addr(p->data)) {
        st |= 1ull << RXD_UMBCAST_S;
    }
    if (p->csum_done) {
        st |= RXD_L3L4P;
        st |= p->ip_bad ? RXD_ERR_IPE : 0;
        st |= p->l4_bad ? RXD_ERR_L4E : 0;
        st |= p->ip6_ext ? RXD_IPV6EXADD : 0;
        st |= p->udp_zero ? RXD_INT_UDP_0 : 0;
    }
    return st;
}

/*
 * Put the frame into the buffers of the queue. With @strip its tag goes to the
 * descriptor. Returns false if an address is bad.
 */
static bool fill(XL710State *s, XL710RxQueue *r, const XL710Pkt *p, bool strip,
                 uint64_t qw0, uint64_t qw1, uint64_t qw3)
{
    PCIDevice *d = PCI_DEVICE(s);
    uint32_t len = p->len - (strip ? 4 : 0);
    uint32_t off = 0;

    while (off < len) {
        uint32_t n = MIN(len - off, r->dbuff), at = 0;
        bool last = off + n == len;
        uint64_t addr;

        if (!next_buffer(r, &addr)) {
            return false;
        }
        if (!off && strip) {
            if (pci_dma_write(d, addr, p->data, 12) != MEMTX_OK) {
                return false;
            }
            at = 12;
        }
        if (pci_dma_write(d, addr + at, p->data + off + at + (strip ? 4 : 0),
                          n - at) != MEMTX_OK) {
            return false;
        }
        if (!put_desc(r, qw0, qw1 | (uint64_t)n << RXD_LEN_S | RXD_DD |
                              (last ? RXD_EOF : 0), 0, qw3)) {
            return false;
        }
        off += n;
    }
    return true;
}

/* The queue of the VSI that the packet goes to, or -1 for dropped by a rule */
static int steer(XL710State *s, unsigned vsi, const XL710Pkt *p, uint64_t *qw0,
                 uint64_t *qw1, uint64_t *qw3)
{
    const XL710VSI *v = &s->vsi[vsi];
    const XL710FdFilter *f = xl710_fd_lookup(s, p);
    unsigned off, pow;
    int q = -1;

    if (f && f->vsi != vsi) {
        f = NULL;
    }
    if (f && f->dest == FLTR_DEST_DROP) {
        if (f->cnt_ena) {
            xl710_count32(s, GLQF_PCNT(f->cnt_index), 1);
        }
        return -1;
    }
    xl710_vsi_tc0(v, &off, &pow);
    if (xl710_rss_enabled(s, p)) {
        uint32_t hash = xl710_rss_hash(s, p);

        *qw0 |= (uint64_t)hash << 32;
        *qw1 |= RXD_FLTSTAT_RSS;
        q = xl710_vsi_queue(s, v, off + (xl710_rss_lut(s, v, vsi, hash) &
                                         ((1u << pow) - 1)));
    } else {
        q = xl710_vsi_queue(s, v, off);
    }
    if (f) {
        if (f->cnt_ena) {
            xl710_count32(s, GLQF_PCNT(f->cnt_index), 1);
        }
        if (f->dest == FLTR_DEST_QINDEX) {
            q = xl710_vsi_queue(s, v, f->queue);
        }
        *qw1 |= RXD_FLM;
        if (f->status == 1) {           /* report the filter's id */
            *qw3 = (uint64_t)f->fd_id << 32;
            if (q < 0 || !s->rxq[q].desc32) {
                *qw0 = (uint32_t)*qw0 | (uint64_t)f->fd_id << 32;
                *qw1 = (*qw1 & ~RXD_FLTSTAT_RSS) | RXD_FLTSTAT_FD_ID;
            }
        }
    }
    return q;
}

/* Returns false if the packet should wait */
static bool rx_vsi(XL710State *s, unsigned vsi, const XL710Pkt *p,
                   bool may_wait)
{
    bool strip = p->vlan && xl710_vsi_strips_vlan(&s->vsi[vsi]);
    uint64_t qw0 = strip ? (uint64_t)p->tci << 16 : 0;
    uint64_t qw1 = packet_status(p, strip), qw3 = 0;
    uint32_t len = p->len - (strip ? 4 : 0);
    int q = steer(s, vsi, p, &qw0, &qw1, &qw3);
    unsigned need, room;
    XL710RxQueue *r;

    if (q < 0 || !s->rxq[q].ena) {
        trace_xl710_rx_drop(vsi, q, "no queue");
        return true;
    }
    r = &s->rxq[q];
    need = DIV_ROUND_UP(len, r->dbuff);
    if (len > r->rxmax || need > MAX_CHAIN) {
        trace_xl710_rx_drop(vsi, q, "too long");
        xl710_count32(s, GL_RXERR1(RXERR1_PF), 1);
        return true;
    }
    room = xl710_rx_room(s, q);
    if (need > room) {
        if (may_wait) {
            return false;
        }
        trace_xl710_rx_drop(vsi, q, "no descriptors");
        count_drop(s, vsi);
        return true;
    }
    if (!fill(s, r, p, strip, qw0, qw1, qw3)) {
        xl710_mdd_rx(s, q, MDD_RX_BAD_ADDRESS);
        return true;
    }
    count_vsi(s, vsi, p->data, p->len);
    trace_xl710_rx(vsi, q, len, p->pctype, qw0 >> 32);
    check_low(s, q, room);
    xl710_irq_queue(s, q, true);
    return true;
}

bool xl710_rx(XL710State *s, const uint8_t *data, uint32_t len, bool may_wait)
{
    uint16_t vsi[XL710_MAX_VSI];
    XL710Pkt p;
    int i, n;

    if (len < 14) {
        xl710_count32(s, GLPRT_RUC, 1);
        return true;
    }
    if (len + 4 > s->max_frame) {
        xl710_count32(s, GLPRT_ROC, 1);
        return true;
    }
    xl710_parse(s, &p, data, len);
    p.tsyn = xl710_ptp_received(s, &p);
    n = xl710_switch_rx(s, &p, vsi);
    for (i = 0; i < n; i++) {
        /* once one VSI has it, it cannot come again */
        if (!rx_vsi(s, vsi[i], &p, may_wait && n == 1)) {
            return false;
        }
    }
    xl710_rx_count(s, data, len, 1);
    return true;
}
