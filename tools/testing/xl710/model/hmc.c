/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Intel XL710: the host memory cache
 *
 * The contexts of the queues live in host memory, in the private address space
 * of the function. Segment descriptors map 2 MiB of it each, either directly or
 * through a page of 512 page descriptors (i40e_hmc.h, i40e_lan_hmc.c). A
 * context is read when its queue is enabled.
 */
#include "qemu/osdep.h"
#include "qemu/units.h"
#include "trace.h"
#include "xl710.h"

#define HMC_TX_SIZE     128
#define HMC_RX_SIZE     32

void xl710_hmc_reset(XL710State *s)
{
    memset(s->sd, 0, XL710_MAX_SD * sizeof(*s->sd));
}

void xl710_hmc_sdcmd(XL710State *s, uint32_t val)
{
    unsigned idx = val & SDCMD_IDX;
    uint64_t sd = xl710_reg(s, PFHMC_SDDATALOW) |
                  (uint64_t)xl710_reg(s, PFHMC_SDDATAHIGH) << 32;

    if (val & SDCMD_WR) {
        s->sd[idx] = sd;
    } else {
        xl710_set_reg(s, PFHMC_SDDATALOW, s->sd[idx]);
        xl710_set_reg(s, PFHMC_SDDATAHIGH, s->sd[idx] >> 32);
    }
    xl710_set_reg(s, PFHMC_SDCMD, val);
    trace_xl710_hmc_sd(idx, s->sd[idx]);
}

/* The error codes of PFHMC_ERRORINFO are not in the driver; these are ours */
static bool hmc_error(XL710State *s, unsigned type, uint64_t addr)
{
    xl710_set_reg(s, PFHMC_ERRORINFO, 1u << 31 | type << 8);
    xl710_set_reg(s, PFHMC_ERRORDATA, addr);
    trace_xl710_hmc_error(type, addr);
    xl710_irq_other(s, ICR0_HMC_ERR);
    return false;
}

/* Read an object, which never crosses a page: they are powers of two */
static bool hmc_read(XL710State *s, uint64_t addr, uint8_t *buf, unsigned len)
{
    PCIDevice *d = PCI_DEVICE(s);
    uint64_t idx = addr / (2 * MiB);
    uint64_t sd, pa;

    if (idx >= XL710_MAX_SD || !(s->sd[idx] & SDDATALOW_VALID)) {
        return hmc_error(s, 1, addr);
    }
    sd = s->sd[idx];
    if (sd & SDDATALOW_DIRECT) {
        pa = (sd & ~0xfffull) + addr % (2 * MiB);
    } else {
        uint64_t pd;
        unsigned n = addr % (2 * MiB) / 4096;

        if (pci_dma_read(d, (sd & ~0xfffull) + n * 8, &pd, 8) != MEMTX_OK) {
            return hmc_error(s, 2, addr);
        }
        pd = le64_to_cpu(pd);
        if (!(pd & 1)) {
            return hmc_error(s, 3, addr);
        }
        pa = (pd & ~0xfffull) + addr % 4096;
    }
    if (pci_dma_read(d, pa, buf, len) != MEMTX_OK) {
        return hmc_error(s, 4, addr);
    }
    return true;
}

/* Bits @lsb.. of a context, as i40e_lan_hmc.c tabulates them */
static uint64_t ctx_field(const uint8_t *ctx, unsigned lsb, unsigned width)
{
    uint64_t v = 0;
    unsigned i;

    for (i = 0; i < width; i++) {
        unsigned bit = lsb + i;

        v |= (uint64_t)(ctx[bit / 8] >> (bit % 8) & 1) << i;
    }
    return v;
}

static bool ctx_addr(XL710State *s, uint32_t base, uint32_t cnt, int q,
                     unsigned size, uint64_t *addr)
{
    if (q >= xl710_reg(s, cnt)) {
        return hmc_error(s, 5, q);
    }
    *addr = xl710_reg(s, base) * 512ull + (uint64_t)q * size;
    return true;
}

bool xl710_hmc_load_tx(XL710State *s, int q)
{
    XL710TxQueue *t = &s->txq[q];
    uint8_t ctx[HMC_TX_SIZE];
    uint64_t addr = 0;

    if (!ctx_addr(s, GLHMC_LANTXBASE, GLHMC_LANTXCNT, q, HMC_TX_SIZE, &addr) ||
        !hmc_read(s, addr, ctx, sizeof(ctx))) {
        return false;
    }
    t->head = ctx_field(ctx, 0, 13);
    t->base = ctx_field(ctx, 32, 57) * 128;
    t->fd_ena = ctx_field(ctx, 91, 1);
    t->head_wb = ctx_field(ctx, 128 + 32, 1);
    t->qlen = ctx_field(ctx, 128 + 33, 13);
    t->wb_addr = ctx_field(ctx, 128 + 64, 64);
    /* the queue set handle that the VSI got tells the VSI */
    t->vsi = ctx_field(ctx, 7 * 128 + 84, 10) % XL710_MAX_VSI;
    return t->qlen >= 8 && t->head < t->qlen;
}

bool xl710_hmc_load_rx(XL710State *s, int q)
{
    XL710RxQueue *r = &s->rxq[q];
    uint8_t ctx[HMC_RX_SIZE];
    unsigned dtype, split;
    uint64_t addr = 0;

    if (!ctx_addr(s, GLHMC_LANRXBASE, GLHMC_LANRXCNT, q, HMC_RX_SIZE, &addr) ||
        !hmc_read(s, addr, ctx, sizeof(ctx))) {
        return false;
    }
    r->head = ctx_field(ctx, 0, 13);
    r->base = ctx_field(ctx, 32, 57) * 128;
    r->qlen = ctx_field(ctx, 89, 13);
    r->dbuff = ctx_field(ctx, 102, 7) * 128;
    dtype = ctx_field(ctx, 114, 2);
    r->desc32 = ctx_field(ctx, 116, 1);
    split = ctx_field(ctx, 120, 6);
    r->rxmax = ctx_field(ctx, 174, 14);
    /* header split is not modelled, and the driver does not use it */
    return r->qlen >= 8 && r->head < r->qlen && r->dbuff >= 1024 &&
           r->rxmax && !dtype && !split;
}
