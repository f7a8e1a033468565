/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Intel XL710: interrupts
 *
 * A vector fires when something is pending on it, its INTENA is set, and the
 * interval (ITR) of a pending cause and the vector's rate limit have passed
 * since it last fired. Firing clears INTENA (auto-mask) and what was pending;
 * what comes while it is masked stays pending. Vector 0 is special: its causes
 * show in ICR0, masked by ICR0_ENA, and without MSI-X it carries the queues
 * too (PFINT_LNKLST0), as QUEUE_n bits of ICR0.
 *
 * Before a vector fires, the queues in its linked list (LNKLST, NEXTQ) write
 * back what they have done: Rx descriptors that fill no cache line, packets
 * sent without RS. While INTENA is off they keep that to themselves. A queue
 * that is not in the list of the vector its control register names raises
 * nothing.
 */
#include "qemu/osdep.h"
#include "hw/pci/msi.h"
#include "hw/pci/msix.h"
#include "trace.h"
#include "xl710.h"

#define ITR_NONE        3
#define MAX_LIST        (2 * XL710_MAX_QUEUES)  /* the list may be a ring */

static int64_t now_ns(void)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

static uint32_t dyn_addr(int vec)
{
    return vec ? PFINT_DYN_CTLN(vec - 1) : PFINT_DYN_CTL0;
}

static uint32_t itr_addr(int vec, int itr)
{
    return vec ? PFINT_ITRN(itr, vec - 1) : PFINT_ITR0(itr);
}

static void signal_vector(XL710State *s, int vec)
{
    PCIDevice *d = PCI_DEVICE(s);

    trace_xl710_irq(vec);
    if (msix_enabled(d)) {
        msix_notify(d, vec);
    } else if (vec == 0) {
        if (msi_enabled(d)) {
            msi_notify(d, 0);
        } else {
            pci_irq_assert(d);
        }
    }
}

/* The queues of a vector, Rx and Tx alike: @q and @type go to the next one */
static bool first_queue(XL710State *s, int vec, unsigned *q, unsigned *type)
{
    uint32_t link = xl710_reg(s, vec ? PFINT_LNKLSTN(vec - 1) : PFINT_LNKLST0);

    *q = link & LNKLST_FIRSTQ;
    *type = link >> LNKLST_TYPE_S & 3;
    return *q < XL710_MAX_QUEUES && *type <= QUEUE_TYPE_TX;
}

static uint32_t queue_ctl(XL710State *s, unsigned q, unsigned type)
{
    return xl710_reg(s, type == QUEUE_TYPE_RX ? QINT_RQCTL(q) : QINT_TQCTL(q));
}

static bool next_queue(XL710State *s, unsigned *q, unsigned *type)
{
    uint32_t ctl = queue_ctl(s, *q, *type);
    unsigned q0 = *q, type0 = *type;

    *q = ctl >> QINT_NEXTQ_S & LNKLST_FIRSTQ;
    *type = ctl >> QINT_NEXTQ_TYPE_S & 3;
    return *q < XL710_MAX_QUEUES && *type <= QUEUE_TYPE_TX &&
           (*q != q0 || *type != type0);
}

#define for_each_queue(s, vec, q, type, n)                              \
    for ((n) = first_queue(s, vec, &(q), &(type)) ? MAX_LIST : 0; (n);  \
         (n) = next_queue(s, &(q), &(type)) ? (n) - 1 : 0)

static bool is_linked(XL710State *s, int vec, unsigned want, bool rx)
{
    unsigned q, type, n;

    for_each_queue(s, vec, q, type, n) {
        if (q == want && (type == QUEUE_TYPE_RX) == rx) {
            return true;
        }
    }
    return false;
}

static void icr0_queue(XL710State *s, uint32_t ctl)
{
    unsigned n = ctl >> QINT_MSIX0_INDX_S & 7;

    xl710_set_reg(s, PFINT_ICR0,
                  xl710_reg(s, PFINT_ICR0) | ICR0_QUEUE_0 << n);
}

static void write_back(XL710State *s, int vec)
{
    unsigned q, type, n;

    for_each_queue(s, vec, q, type, n) {
        uint32_t ctl = queue_ctl(s, q, type);

        if ((ctl & QINT_MSIX_INDX) != vec) {
            continue;
        }
        if ((type == QUEUE_TYPE_RX ? xl710_rx_write_back(s, q) :
                                     xl710_tx_write_back(s, q)) && !vec) {
            icr0_queue(s, ctl);
        }
    }
}

static void fire(XL710State *s, int vec, int64_t now)
{
    XL710Vector *v = &s->vec[vec];
    int i;

    v->pending = 0;
    write_back(s, vec);
    for (i = 0; i < ITR_NONE; i++) {
        v->next[i] = now + xl710_reg(s, itr_addr(vec, i)) * 2000ll;
    }
    if (vec) {
        uint32_t rate = xl710_reg(s, PFINT_RATEN(vec - 1));

        v->next_any = rate & RATEN_ENA ?
                      now + (rate & RATEN_INTERVAL) * 4000ll : 0;
    } else {
        xl710_set_reg(s, PFINT_ICR0,
                      xl710_reg(s, PFINT_ICR0) | ICR0_INTEVENT);
    }
    xl710_set_reg(s, dyn_addr(vec),
                  xl710_reg(s, dyn_addr(vec)) & ~DYN_INTENA);
    signal_vector(s, vec);
}

static void evaluate(XL710State *s, int vec)
{
    XL710Vector *v = &s->vec[vec];
    int64_t now, due = INT64_MAX;
    int i;

    if (!v->pending || !(xl710_reg(s, dyn_addr(vec)) & DYN_INTENA)) {
        return;
    }
    if (s->irq_held) {
        set_bit(vec, s->irq_wait);
        return;
    }
    if (v->pending & (1 << ITR_NONE)) {
        due = 0;
    }
    for (i = 0; i < ITR_NONE; i++) {
        if (v->pending & (1 << i)) {
            due = MIN(due, v->next[i]);
        }
    }
    due = MAX(due, v->next_any);
    now = now_ns();
    if (due <= now) {
        fire(s, vec, now);
    } else {
        timer_mod(v->timer, due);
    }
}

static void vector_timer(void *opaque)
{
    XL710Vector *v = opaque;

    evaluate(v->s, v - v->s->vec);
}

static void pend(XL710State *s, int vec, unsigned itr)
{
    XL710Vector *v = &s->vec[vec];

    if (!(v->pending & (1 << itr))) {
        v->pending |= 1 << itr;
        evaluate(s, vec);
    }
}

static unsigned other_itr(XL710State *s)
{
    return xl710_reg(s, PFINT_STAT_CTL0) >> 2 & 3;
}

void xl710_irq_other(XL710State *s, uint32_t cause)
{
    uint32_t icr = xl710_reg(s, PFINT_ICR0) | cause;

    xl710_set_reg(s, PFINT_ICR0, icr);
    if (icr & xl710_reg(s, PFINT_ICR0_ENA)) {
        pend(s, 0, other_itr(s));
    }
}

static void queue_event(XL710State *s, int q, bool rx, bool now)
{
    uint32_t ctl = queue_ctl(s, q, rx ? QUEUE_TYPE_RX : QUEUE_TYPE_TX);
    unsigned vec = ctl & QINT_MSIX_INDX;
    unsigned itr = now ? ITR_NONE : ctl >> QINT_ITR_INDX_S & 3;

    if (!(ctl & QINT_CAUSE_ENA) || vec >= s->num_vectors) {
        return;
    }
    /* what is pending already was looked at before */
    if (vec && s->vec[vec].pending & 1 << itr) {
        return;
    }
    if (!is_linked(s, vec, q, rx)) {
        return;
    }
    if (!vec) {
        icr0_queue(s, ctl);
    }
    pend(s, vec, itr);
}

void xl710_irq_queue(XL710State *s, int q, bool rx)
{
    queue_event(s, q, rx, false);
}

void xl710_irq_rx_low(XL710State *s, int q)
{
    queue_event(s, q, true, true);
}

void xl710_irq_hold(XL710State *s)
{
    s->irq_held = true;
}

void xl710_irq_release(XL710State *s)
{
    unsigned vec;

    s->irq_held = false;
    while ((vec = find_first_bit(s->irq_wait, XL710_MAX_VECTORS)) <
           XL710_MAX_VECTORS) {
        clear_bit(vec, s->irq_wait);
        evaluate(s, vec);
    }
}

void xl710_irq_dyn_write(XL710State *s, int vec, uint32_t val)
{
    uint32_t dyn = xl710_reg(s, dyn_addr(vec));
    unsigned itr = val >> DYN_ITR_INDX_S & 3;
    XL710Vector *v = &s->vec[vec];

    if (!(val & DYN_INTENA_MSK)) {
        dyn = (dyn & ~DYN_INTENA) | (val & DYN_INTENA);
    }
    xl710_set_reg(s, dyn_addr(vec), dyn);
    if (itr != ITR_NONE) {
        uint32_t old = xl710_reg(s, itr_addr(vec, itr));
        uint32_t new = val >> DYN_INTERVAL_S & DYN_INTERVAL_M;

        xl710_set_reg(s, itr_addr(vec, itr), new);
        v->next[itr] += ((int64_t)new - old) * 2000;
    }
    if (val & DYN_CLEARPBA) {
        v->pending = 0;
    }
    if (val & DYN_SWINT_TRIG) {
        unsigned sw = val & DYN_SW_ITR_ENA ? val >> DYN_SW_ITR_S & 3 : ITR_NONE;

        if (!vec) {
            xl710_set_reg(s, PFINT_ICR0,
                          xl710_reg(s, PFINT_ICR0) | ICR0_SWINT);
        }
        v->pending |= 1 << sw;
    }
    evaluate(s, vec);
}

/* Reading clears, and lowers INTx */
uint32_t xl710_irq_icr0_read(XL710State *s)
{
    uint32_t icr = xl710_reg(s, PFINT_ICR0);
    PCIDevice *d = PCI_DEVICE(s);

    xl710_set_reg(s, PFINT_ICR0, 0);
    if (!msix_enabled(d) && !msi_enabled(d)) {
        pci_irq_deassert(d);
    }
    return icr;
}

void xl710_irq_ena_write(XL710State *s, uint32_t val)
{
    xl710_set_reg(s, PFINT_ICR0_ENA, val & ~1u);
    if (xl710_reg(s, PFINT_ICR0) & val) {
        pend(s, 0, other_itr(s));
    }
}

void xl710_irq_reset(XL710State *s)
{
    int i;

    for (i = 0; i < XL710_MAX_VECTORS; i++) {
        XL710Vector *v = &s->vec[i];

        v->pending = 0;
        v->next_any = 0;
        memset(v->next, 0, sizeof(v->next));
        timer_del(v->timer);
    }
    bitmap_zero(s->irq_wait, XL710_MAX_VECTORS);
    pci_irq_deassert(PCI_DEVICE(s));
}

void xl710_irq_init(XL710State *s)
{
    int i;

    for (i = 0; i < XL710_MAX_VECTORS; i++) {
        s->vec[i].s = s;
        s->vec[i].timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, vector_timer,
                                       &s->vec[i]);
    }
}

void xl710_irq_uninit(XL710State *s)
{
    int i;

    for (i = 0; i < XL710_MAX_VECTORS; i++) {
        timer_free(s->vec[i].timer);
    }
}
