/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Intel XL710: the admin queue rings
 *
 * The driver writes commands at the tail of the send queue (ATQ) and polls the
 * head; the "firmware" runs each at once. Events go to the buffers that the
 * driver posted on the receive queue (ARQ), and wait here while there is none.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "trace.h"
#include "xl710.h"
#include "xl710_aq.h"

#define AQ_BUF_SIZE     4096
#define ARQ_BACKLOG_MAX 64

static uint64_t ring_base(XL710State *s, uint32_t low, uint32_t high)
{
    return xl710_reg(s, low) | (uint64_t)xl710_reg(s, high) << 32;
}

static bool ring_ready(XL710State *s, uint32_t lenreg, unsigned *len)
{
    uint32_t v = xl710_reg(s, lenreg);

    *len = v & AQLEN_LEN;
    return (v & AQLEN_ENABLE) && !(v & AQLEN_CRIT) && *len;
}

static void ring_critical(XL710State *s, uint32_t lenreg)
{
    qemu_log_mask(LOG_GUEST_ERROR, "xl710: bad admin queue\n");
    xl710_set_reg(s, lenreg, xl710_reg(s, lenreg) | AQLEN_CRIT);
}

static const XL710AQCmd *find_cmd(const XL710AQCmd *c, uint16_t opcode)
{
    for (; c->run; c++) {
        if (c->opcode == opcode) {
            return c;
        }
    }
    return NULL;
}

static uint16_t run_cmd(XL710State *s, XL710AQDesc *d)
{
    PCIDevice *pci = PCI_DEVICE(s);
    uint16_t flags = le16_to_cpu(d->flags);
    uint16_t opcode = le16_to_cpu(d->opcode);
    uint32_t cap = le16_to_cpu(d->datalen);
    uint64_t addr = (uint64_t)ldl_le_p(d->param + AQP_ADDR_HIGH) << 32 |
                    ldl_le_p(d->param + AQP_ADDR_LOW);
    const XL710AQCmd *c = find_cmd(xl710_aq_cmds, opcode);
    bool indirect = flags & AQ_FLAG_BUF;
    uint32_t len = 0;
    uint16_t rc;

    c = c ?: find_cmd(xl710_switch_cmds, opcode);
    if (!c) {
        qemu_log_mask(LOG_UNIMP, "xl710: admin command 0x%04x\n", opcode);
        return AQ_RC_ESRCH;
    }
    if (indirect && cap > AQ_BUF_SIZE) {
        return AQ_RC_EINVAL;
    }
    if (c->min_len && (!indirect || cap < c->min_len)) {
        return AQ_RC_EINVAL;
    }
    memset(s->aq_buf, 0, AQ_BUF_SIZE);
    if (indirect) {
        len = cap;
        if ((flags & AQ_FLAG_RD) &&
            pci_dma_read(pci, addr, s->aq_buf, len) != MEMTX_OK) {
            return AQ_RC_BAD_ADDR;
        }
    }
    rc = c->run(s, d, s->aq_buf, &len);
    if (indirect && !rc) {
        len = MIN(len, cap);
        if (pci_dma_write(pci, addr, s->aq_buf, len) != MEMTX_OK) {
            return AQ_RC_BAD_ADDR;
        }
        d->datalen = cpu_to_le16(len);
    }
    return rc;
}

void xl710_asq_run(XL710State *s)
{
    uint64_t base = ring_base(s, PF_ATQBAL, PF_ATQBAH);
    PCIDevice *pci = PCI_DEVICE(s);
    unsigned len, head, tail;

    /* a command may write registers, the tail of this very ring too */
    if (s->asq_busy || !ring_ready(s, PF_ATQLEN, &len)) {
        return;
    }
    head = xl710_reg(s, PF_ATQH);
    tail = xl710_reg(s, PF_ATQT);
    if (head >= len || tail >= len) {
        ring_critical(s, PF_ATQLEN);
        return;
    }
    s->asq_busy = true;
    while (head != tail) {
        uint64_t addr = base + head * sizeof(XL710AQDesc);
        XL710AQDesc d;
        uint16_t rc, flags;

        if (pci_dma_read(pci, addr, &d, sizeof(d)) != MEMTX_OK) {
            ring_critical(s, PF_ATQLEN);
            break;
        }
        rc = run_cmd(s, &d);
        trace_xl710_aq(le16_to_cpu(d.opcode), le16_to_cpu(d.datalen), rc);

        flags = le16_to_cpu(d.flags) | AQ_FLAG_DD | AQ_FLAG_CMP;
        if (rc) {
            flags |= AQ_FLAG_ERR;
        }
        d.flags = cpu_to_le16(flags);
        d.retval = cpu_to_le16(rc);
        if (pci_dma_write(pci, addr, &d, sizeof(d)) != MEMTX_OK) {
            ring_critical(s, PF_ATQLEN);
            break;
        }
        head = head + 1 == len ? 0 : head + 1;
        /* the command may have taken the ring away */
        if (!ring_ready(s, PF_ATQLEN, &len) || head >= len) {
            break;
        }
        xl710_set_reg(s, PF_ATQH, head);
        if (!(flags & AQ_FLAG_SI)) {
            xl710_irq_other(s, ICR0_ADMINQ);
        }
    }
    s->asq_busy = false;
}

void xl710_arq_flush(XL710State *s)
{
    uint64_t base = ring_base(s, PF_ARQBAL, PF_ARQBAH);
    PCIDevice *pci = PCI_DEVICE(s);
    unsigned len, head, tail;
    bool posted = false;

    if (!ring_ready(s, PF_ARQLEN, &len)) {
        return;
    }
    head = xl710_reg(s, PF_ARQH);
    tail = xl710_reg(s, PF_ARQT);
    if (head >= len || tail >= len) {
        ring_critical(s, PF_ARQLEN);
        return;
    }
    while (head != tail && s->arq_backlog->len) {
        XL710AQDesc *e = g_ptr_array_index(s->arq_backlog, 0);

        if (pci_dma_write(pci, base + head * sizeof(*e), e, sizeof(*e)) !=
            MEMTX_OK) {
            ring_critical(s, PF_ARQLEN);
            return;
        }
        trace_xl710_arq(le16_to_cpu(e->opcode));
        g_ptr_array_remove_index(s->arq_backlog, 0);
        head = head + 1 == len ? 0 : head + 1;
        xl710_set_reg(s, PF_ARQH, head);
        posted = true;
    }
    if (posted) {
        xl710_irq_other(s, ICR0_ADMINQ);
    }
}

void xl710_arq_post(XL710State *s, uint16_t opcode, const void *param)
{
    XL710AQDesc *e;
    unsigned len;

    if (!ring_ready(s, PF_ARQLEN, &len)) {
        return;
    }
    if (s->arq_backlog->len == ARQ_BACKLOG_MAX) {
        xl710_set_reg(s, PF_ARQLEN, xl710_reg(s, PF_ARQLEN) | AQLEN_OVFL);
        return;
    }
    e = g_new0(XL710AQDesc, 1);
    e->flags = cpu_to_le16(AQ_FLAG_DD | AQ_FLAG_CMP);
    e->opcode = cpu_to_le16(opcode);
    memcpy(e->param, param, sizeof(e->param));
    g_ptr_array_add(s->arq_backlog, e);
    xl710_arq_flush(s);
}

void xl710_aq_reset(XL710State *s)
{
    g_ptr_array_set_size(s->arq_backlog, 0);
    s->nvm_owned = false;
    s->lse = false;
}
