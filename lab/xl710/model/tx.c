/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Intel XL710: transmit queues
 *
 * When the tail moves, descriptors are prefetched immediately, as many as there
 * is room for; later writes of the driver to them have no effect. After
 * tx-delay, a burst of packets (tx-burst) is read from memory and sent, and so
 * on until nothing is left. So the device has descriptors of packets that it has
 * not read yet, and the driver must change neither until they are completed.
 *
 * Head write-back, or DD in the descriptor, reports packets up to one with RS in
 * its last descriptor, and no further. Packets without RS are reported with the
 * next interrupt of the queue's vector (irq.c), which they trigger unless
 * rs-only is set.
 *
 * A queue that the driver disables sends what it has fetched, and its state
 * changes after stop-delay. Time is that of the guest, and a read of the state
 * first does all due work, so the delay of timers does not matter.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "trace.h"
#include "xl710.h"

static int64_t now_ns(void)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

static int number(const XL710TxQueue *t)
{
    return t - t->s->txq;
}

static bool stuck(const XL710TxQueue *t)
{
    return t->s->knob[KNOB_STUCK_TX] == number(t);
}

static uint16_t after(const XL710TxQueue *t, uint16_t i)
{
    return i + 1 == t->qlen ? 0 : i + 1;
}

/* ---- descriptors ---- */

/* Returns false if the ring cannot be read */
static bool prefetch(XL710TxQueue *t)
{
    if (t->pos) {
        t->num -= t->pos;
        memmove(t->desc[0], t->desc[t->pos], t->num * 16);
        t->pos = 0;
    }
    while (!t->predis && t->fetch != t->tail && t->num < XL710_PREFETCH) {
        unsigned n = t->tail > t->fetch ? t->tail - t->fetch :
                                          t->qlen - t->fetch;

        n = MIN(n, XL710_PREFETCH - t->num);
        if (pci_dma_read(PCI_DEVICE(t->s), t->base + t->fetch * 16ull,
                         t->desc[t->num], n * 16) != MEMTX_OK) {
            return false;
        }
        t->num += n;
        t->fetch += n;
        if (t->fetch == t->qlen) {
            t->fetch = 0;
        }
    }
    return true;
}

static int data_desc(XL710TxQueue *t, uint64_t addr, uint64_t qw1)
{
    uint32_t size = qw1 >> TXD_BUF_SZ_S & 0x3fff;
    unsigned most = xl710_tx_is_tso(t) ? XL710_MAX_TX_FRAGS :
                                         XL710_MAX_TX_DESC;

    if (!size || t->len + size > XL710_TX_BUF - 256) {
        return MDD_TX_BAD_LENGTH;
    }
    if (t->nfrags == most) {
        return MDD_TX_TOO_MANY_DESC;
    }
    t->frag[t->nfrags].addr = addr;
    t->frag[t->nfrags].len = size;
    t->nfrags++;
    t->len += size;
    return 0;
}

/* Look at the next descriptor. Returns 0 or an MDD event */
static int next_desc(XL710TxQueue *t, bool *eop, bool *rs)
{
    uint64_t qw0 = le64_to_cpu(t->desc[t->pos][0]);
    uint64_t qw1 = le64_to_cpu(t->desc[t->pos][1]);
    uint32_t cmd = qw1 >> TXD_CMD_S;
    uint64_t slot = t->base + t->head * 16ull;
    int event;

    *eop = false;
    t->pos++;
    t->head = after(t, t->head);
    switch (qw1 & TXD_DTYPE) {
    case TXD_DTYPE_DATA:
        event = data_desc(t, qw0, qw1);
        break;
    case TXD_DTYPE_CONTEXT:
        t->ctx[0] = qw0;
        t->ctx[1] = qw1;
        t->have_ctx = true;
        return t->nfrags ? MDD_TX_BAD_DTYPE : 0;
    case TXD_DTYPE_FILTER:
        t->fltr[0] = qw0;
        t->fltr[1] = qw1;
        t->have_fltr = true;
        return t->nfrags ? MDD_TX_BAD_DTYPE : 0;
    default:
        return MDD_TX_BAD_DTYPE;
    }
    if (event || !(cmd & TXD_CMD_EOP)) {
        return event;
    }
    event = xl710_tx_packet(t->s, t, number(t), qw1);
    *eop = true;
    t->nfrags = 0;
    t->len = 0;
    t->have_ctx = false;
    t->have_fltr = false;
    if (event || !t->ena) {
        return event;
    }
    t->done = t->head;
    if (cmd & TXD_CMD_RS) {
        *rs = true;
        if (!t->head_wb) {
            uint64_t dd = cpu_to_le64(TXD_DTYPE_DONE);

            pci_dma_write(PCI_DEVICE(t->s), slot + 8, &dd, 8);
        }
    }
    return 0;
}

/* ---- completion ---- */

static void report(XL710TxQueue *t, uint16_t head)
{
    uint32_t v = cpu_to_le32(head);

    t->reported = head;
    pci_dma_write(PCI_DEVICE(t->s), t->wb_addr, &v, 4);
}

bool xl710_tx_write_back(XL710State *s, int q)
{
    XL710TxQueue *t = &s->txq[q];

    if (!t->ena || !t->head_wb || t->reported == t->done) {
        return false;
    }
    report(t, t->done);
    return true;
}

/* Returns whether something is left that can be sent */
static bool send_burst(XL710TxQueue *t)
{
    XL710State *s = t->s;
    bool rs = false, done = false;
    unsigned n = s->knob[KNOB_TX_BURST];
    uint16_t head = 0;
    int event = 0;

    t->busy = true;
    while (n && t->ena && !event) {
        bool eop, this_rs = false;

        if (t->pos == t->num && !prefetch(t)) {
            event = MDD_TX_BAD_ADDRESS;
            break;
        }
        if (t->pos == t->num) {
            break;
        }
        event = next_desc(t, &eop, &this_rs);
        if (this_rs) {
            rs = true;
            head = t->done;
        }
        done |= eop;
        n -= eop;
    }
    t->busy = false;
    if (event) {
        xl710_mdd_tx(s, number(t), event);
    }
    if (!t->ena) {
        return false;
    }
    if (rs && t->head_wb) {
        report(t, head);
    }
    if (rs || (done && t->head_wb && !s->knob[KNOB_RS_ONLY])) {
        xl710_irq_queue(s, number(t), false);
    }
    return t->pos != t->num || (!t->predis && t->fetch != t->tail);
}

/* ---- time ---- */

static void arm(XL710TxQueue *t, int64_t due)
{
    t->due = due;
    timer_mod(t->timer, due);
}

static void stopped(XL710TxQueue *t)
{
    int q = number(t);

    t->ena = false;
    t->stopping = false;
    xl710_set_reg(t->s, QTX_ENA(q), 0);
    trace_xl710_stopped("tx", q);
}

static void tx_due(void *opaque)
{
    XL710TxQueue *t = opaque;
    int64_t now = t->due;

    if (!t->ena) {
        return;
    }
    if (send_burst(t)) {
        arm(t, now + MAX(t->s->knob[KNOB_TX_DELAY], 1));
    } else if (t->ena && t->stopping && !stuck(t)) {
        if (now < t->stop_at) {
            arm(t, t->stop_at);
        } else {
            stopped(t);
        }
    }
}

void xl710_tx_catch_up(XL710State *s, int q)
{
    XL710TxQueue *t = &s->txq[q];

    while (!t->busy && timer_pending(t->timer) && t->due <= now_ns()) {
        timer_del(t->timer);
        tx_due(t);
    }
}

void xl710_tx_unstick(XL710State *s)
{
    int q;

    for (q = 0; q < s->num_queues; q++) {
        XL710TxQueue *t = &s->txq[q];

        if (t->stopping && !timer_pending(t->timer)) {
            arm(t, now_ns());
        }
    }
}

/* ---- what the driver asks for ---- */

static void fetch_and_wake(XL710TxQueue *t)
{
    if (!prefetch(t)) {
        xl710_mdd_tx(t->s, number(t), MDD_TX_BAD_ADDRESS);
    } else if (t->pos != t->num && !timer_pending(t->timer)) {
        arm(t, now_ns() + t->s->knob[KNOB_TX_DELAY]);
    }
}

void xl710_tx_tail(XL710State *s, int q)
{
    uint32_t tail = xl710_reg(s, QTX_TAIL(q));
    XL710TxQueue *t = &s->txq[q];

    if (!t->ena || !s->nic || (t->stopping && !stuck(t))) {
        return;
    }
    if (tail >= t->qlen) {
        xl710_mdd_tx(s, q, MDD_TX_BAD_TAIL);
        return;
    }
    t->tail = tail;
    fetch_and_wake(t);
}

void xl710_tx_pre_disable(XL710State *s, int q, bool on)
{
    XL710TxQueue *t = &s->txq[q];

    t->predis = on;
    if (!on && t->ena) {
        fetch_and_wake(t);
    }
}

/* Does the queue belong to this function and to the VSI in its context? */
static bool is_ours(XL710State *s, int q)
{
    uint32_t ctl = xl710_reg(s, QTX_CTL(q));

    if (ctl & QTX_CTL_PF_INDX) {
        return false;
    }
    switch (ctl & QTX_CTL_PFVF) {
    case QTX_CTL_PF:
        return true;
    case QTX_CTL_VM:
        return (ctl >> QTX_CTL_VM_INDX_S & QTX_CTL_VM_INDX) == s->txq[q].vsi;
    }
    return false;
}

static void start(XL710State *s, int q)
{
    XL710TxQueue *t = &s->txq[q];

    timer_del(t->timer);
    *t = (XL710TxQueue) { .s = s, .timer = t->timer, .predis = t->predis };
    if (!xl710_hmc_load_tx(s, q) || !is_ours(s, q)) {
        qemu_log_mask(LOG_GUEST_ERROR, "xl710: bad context or QTX_CTL of Tx "
                      "queue %d\n", q);
        xl710_mdd_tx(s, q, MDD_TX_BAD_CONTEXT);
        return;
    }
    t->tail = t->fetch = t->done = t->reported = t->head;
    t->ena = true;
    trace_xl710_tx_enable(q, t->base, t->qlen, t->head, t->vsi);
}

void xl710_tx_enable(XL710State *s, int q, bool on)
{
    XL710TxQueue *t = &s->txq[q];

    if (q >= s->num_queues || t->busy) {
        return;
    }
    if (!on) {
        if (t->ena && !t->stopping) {
            t->stopping = true;
            t->stop_at = now_ns() + s->knob[KNOB_STOP_DELAY];
            if (!timer_pending(t->timer)) {
                arm(t, t->stop_at);
            }
        }
        xl710_set_reg(s, QTX_ENA(q), t->ena ? QENA_STAT : 0);
        return;
    }
    if (t->ena) {
        t->stopping = false;    /* it goes on as it is */
    } else {
        start(s, q);
    }
    xl710_set_reg(s, QTX_ENA(q), QENA_REQ | (t->ena ? QENA_STAT : 0));
}

void xl710_tx_reset(XL710State *s, bool core)
{
    int q;

    for (q = 0; q < s->num_queues; q++) {
        XL710TxQueue *t = &s->txq[q];

        t->ena = false;
        t->stopping = false;
        t->predis &= !core;
        timer_del(t->timer);
    }
}

void xl710_tx_init(XL710State *s)
{
    int q;

    /* there are registers for all, whatever the function may use */
    s->txq = g_new0(XL710TxQueue, XL710_MAX_QUEUES);
    for (q = 0; q < XL710_MAX_QUEUES; q++) {
        s->txq[q].s = s;
        s->txq[q].timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, tx_due, &s->txq[q]);
    }
}

void xl710_tx_uninit(XL710State *s)
{
    int q;

    for (q = 0; q < XL710_MAX_QUEUES; q++) {
        timer_free(s->txq[q].timer);
    }
    g_free(s->txq);
}
