/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Intel XL710: the host memory cache
 *
 * The contexts of the queues live in host memory, in the private address space
 * of the function. Segment descriptors map 2 MiB of it each, either directly or
 * through a page of 512 page descriptors (i40e_hmc.h, i40e_lan_hmc.c). Page
 * descriptors are cached until PDINV or a change of the segment: without it, a
 * replaced page is still used.
 *
 * A context is read when its queue is enabled, unless the driver has written it
 * to the device (PFCM_LANCTX*), as that of iPXE does.
 */
#include "qemu/osdep.h"
#include "qemu/units.h"
#include "trace.h"
#include "xl710.h"

#define HMC_TX_SIZE     128
#define HMC_RX_SIZE     32
#define LINE_SIZE       16              /* of PFCM_LANCTXDATA */
#define SD_PAGES        512

static gboolean is_of_sd(gpointer key, gpointer value, gpointer sd)
{
    return GPOINTER_TO_UINT(key) / SD_PAGES == GPOINTER_TO_UINT(sd);
}

void xl710_hmc_init(XL710State *s)
{
    s->sd = g_new0(uint64_t, XL710_MAX_SD);
    s->pd = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    s->cm_tx = g_malloc0(XL710_MAX_QUEUES * HMC_TX_SIZE);
    s->cm_rx = g_malloc0(XL710_MAX_QUEUES * HMC_RX_SIZE);
    s->cm_tx_valid = bitmap_new(XL710_MAX_QUEUES);
    s->cm_rx_valid = bitmap_new(XL710_MAX_QUEUES);
}

void xl710_hmc_uninit(XL710State *s)
{
    g_free(s->sd);
    g_hash_table_destroy(s->pd);
    g_free(s->cm_tx);
    g_free(s->cm_rx);
    g_free(s->cm_tx_valid);
    g_free(s->cm_rx_valid);
}

void xl710_hmc_reset(XL710State *s)
{
    memset(s->sd, 0, XL710_MAX_SD * sizeof(*s->sd));
    g_hash_table_remove_all(s->pd);
    bitmap_zero(s->cm_tx_valid, XL710_MAX_QUEUES);
    bitmap_zero(s->cm_rx_valid, XL710_MAX_QUEUES);
}

void xl710_hmc_sdcmd(XL710State *s, uint32_t val)
{
    unsigned idx = val & SDCMD_IDX;
    uint64_t sd = xl710_reg(s, PFHMC_SDDATALOW) |
                  (uint64_t)xl710_reg(s, PFHMC_SDDATAHIGH) << 32;

    if (val & SDCMD_WR) {
        s->sd[idx] = sd;
        g_hash_table_foreach_remove(s->pd, is_of_sd, GUINT_TO_POINTER(idx));
    } else {
        xl710_set_reg(s, PFHMC_SDDATALOW, s->sd[idx]);
        xl710_set_reg(s, PFHMC_SDDATAHIGH, s->sd[idx] >> 32);
    }
    xl710_set_reg(s, PFHMC_SDCMD, val);
    trace_xl710_hmc_sd(idx, s->sd[idx]);
}

void xl710_hmc_pdinv(XL710State *s, uint32_t val)
{
    unsigned key = (val & PDINV_SD) * SD_PAGES +
                   (val >> PDINV_PD_S & PDINV_PD);

    g_hash_table_remove(s->pd, GUINT_TO_POINTER(key));
}

void xl710_hmc_lanctx(XL710State *s, uint32_t val)
{
    bool tx = val >> LANCTXCTL_TYPE_S & 1;
    unsigned q = val & LANCTXCTL_QUEUE;
    unsigned line = val >> LANCTXCTL_LINE_S & LANCTXCTL_LINE;
    unsigned size = tx ? HMC_TX_SIZE : HMC_RX_SIZE, i;
    unsigned long *valid = tx ? s->cm_tx_valid : s->cm_rx_valid;
    uint8_t *at;

    if (q >= s->num_queues || (line + 1) * LINE_SIZE > size) {
        xl710_set_reg(s, PFCM_LANCTXSTAT, LANCTXSTAT_DONE | LANCTXSTAT_MISS);
        return;
    }
    at = (tx ? s->cm_tx : s->cm_rx) + q * size + line * LINE_SIZE;
    for (i = 0; i < LINE_SIZE / 4; i++) {
        if (val >> LANCTXCTL_OP_S & LANCTXCTL_OP_WRITE) {
            stl_le_p(at + 4 * i, xl710_reg(s, PFCM_LANCTXDATA(i)));
            set_bit(q, valid);
        } else {
            xl710_set_reg(s, PFCM_LANCTXDATA(i), ldl_le_p(at + 4 * i));
        }
    }
    xl710_set_reg(s, PFCM_LANCTXSTAT, LANCTXSTAT_DONE);
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
        unsigned n = addr % (2 * MiB) / 4096;
        gpointer key = GUINT_TO_POINTER(idx * SD_PAGES + n);
        uint64_t *known = g_hash_table_lookup(s->pd, key);
        uint64_t pd;

        if (known) {
            pd = *known;
        } else if (pci_dma_read(d, (sd & ~0xfffull) + n * 8, &pd, 8) !=
                   MEMTX_OK) {
            return hmc_error(s, 2, addr);
        } else {
            pd = le64_to_cpu(pd);
        }
        if (!(pd & 1)) {
            return hmc_error(s, 3, addr);
        }
        if (!known) {
            g_hash_table_insert(s->pd, key, g_memdup2(&pd, sizeof(pd)));
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

/* The context of a queue: the one that is inside, or that of @base */
static bool ctx_load(XL710State *s, uint32_t base, uint32_t cnt, int q,
                     const unsigned long *inside, uint8_t *ctx, unsigned size)
{
    if (test_bit(q, inside)) {
        return true;
    }
    if (q >= xl710_reg(s, cnt)) {
        return hmc_error(s, 5, q);
    }
    return hmc_read(s, xl710_reg(s, base) * 512ull + (uint64_t)q * size, ctx,
                    size);
}

bool xl710_hmc_load_tx(XL710State *s, int q)
{
    XL710TxQueue *t = &s->txq[q];
    uint8_t *ctx = s->cm_tx + q * HMC_TX_SIZE;

    if (!ctx_load(s, GLHMC_LANTXBASE, GLHMC_LANTXCNT, q, s->cm_tx_valid, ctx,
                  HMC_TX_SIZE)) {
        return false;
    }
    t->head = ctx_field(ctx, 0, 13);
    t->base = ctx_field(ctx, 32, 57) * 128;
    t->ts_ena = ctx_field(ctx, 90, 1);
    t->fd_ena = ctx_field(ctx, 91, 1);
    t->head_wb = ctx_field(ctx, 128 + 32, 1);
    t->qlen = ctx_field(ctx, 128 + 33, 13);
    t->wb_addr = ctx_field(ctx, 128 + 64, 64);
    /* RDYLIST: the queue set handle that the VSI got, and so its number */
    t->vsi = ctx_field(ctx, 7 * 128 + 84, 10);
    return t->qlen >= 8 && t->head < t->qlen && t->vsi < XL710_MAX_VSI &&
           s->vsi[t->vsi].used;
}

bool xl710_hmc_load_rx(XL710State *s, int q)
{
    XL710RxQueue *r = &s->rxq[q];
    uint8_t *ctx = s->cm_rx + q * HMC_RX_SIZE;
    unsigned dtype, split;

    if (!ctx_load(s, GLHMC_LANRXBASE, GLHMC_LANRXCNT, q, s->cm_rx_valid, ctx,
                  HMC_RX_SIZE)) {
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
    r->low = ctx_field(ctx, 198, 3) * 64;       /* LRXQTHRESH */
    r->prefetch = ctx_field(ctx, 201, 1);       /* PREFENA */
    /* header split is not modelled, and the driver does not use it */
    return r->qlen >= 8 && r->head < r->qlen && r->dbuff >= 1024 &&
           r->rxmax && !dtype && !split;
}
