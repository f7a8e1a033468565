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
 */
#include "qemu/osdep.h"
#include "hw/pci/msi.h"
#include "hw/pci/msix.h"
#include "trace.h"
#include "xl710.h"

#define ITR_NONE        3

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

static void fire(XL710State *s, int vec, int64_t now)
{
    XL710Vector *v = &s->vec[vec];
    uint32_t dyn = xl710_reg(s, dyn_addr(vec));
    int i;

    v->pending = 0;
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
    xl710_set_reg(s, dyn_addr(vec), dyn & ~DYN_INTENA);
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

void xl710_irq_queue(XL710State *s, int q, bool rx)
{
    uint32_t addr = rx ? QINT_RQCTL(q) : QINT_TQCTL(q);
    uint32_t ctl = xl710_reg(s, addr);
    unsigned vec = ctl & QINT_MSIX_INDX;
    unsigned itr = ctl >> QINT_ITR_INDX_S & 3;

    if (!(ctl & QINT_CAUSE_ENA) || vec >= XL710_MAX_VECTORS) {
        return;
    }
    if (!vec) {
        unsigned n = ctl >> QINT_MSIX0_INDX_S & 7;

        xl710_set_reg(s, PFINT_ICR0,
                      xl710_reg(s, PFINT_ICR0) | ICR0_QUEUE_0 << n);
    }
    pend(s, vec, itr);
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
