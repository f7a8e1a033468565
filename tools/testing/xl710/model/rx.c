/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Intel XL710: receive
 *
 * A frame is classified once, goes to every VSI whose filters take it, and
 * there to one queue: flow director first, then RSS. A frame that finds too few
 * descriptors is dropped and counted, unless link flow control is on (ethtool
 * -A tx on): then it waits in QEMU's net queue, in place of a paused partner.
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

void xl710_rx_enable(XL710State *s, int q, bool on)
{
    XL710RxQueue *r = &s->rxq[q];

    if (q >= s->num_queues) {
        return;
    }
    if (on && !r->ena) {
        if (!xl710_hmc_load_rx(s, q)) {
            qemu_log_mask(LOG_GUEST_ERROR, "xl710: bad context of Rx queue "
                          "%d\n", q);
            xl710_mdd_rx(s, q, MDD_RX_BAD_CONTEXT);
            return;
        }
        r->ena = true;
        trace_xl710_rx_enable(q, r->base, r->qlen, r->dbuff, r->rxmax);
    } else if (!on) {
        r->ena = false;
    }
    xl710_set_reg(s, QRX_ENA(q), on ? QENA_REQ | QENA_STAT : 0);
    if (on && s->nic) {
        qemu_flush_queued_packets(qemu_get_queue(s->nic));
    }
}

/* Descriptors that the driver has posted */
unsigned xl710_rx_room(XL710State *s, int q)
{
    XL710RxQueue *r = &s->rxq[q];
    uint32_t tail = xl710_reg(s, QRX_TAIL(q));

    if (!r->ena) {
        return 0;
    }
    if (tail >= r->qlen) {
        xl710_mdd_rx(s, q, MDD_RX_BAD_TAIL);
        return 0;
    }
    return tail >= r->head ? tail - r->head : tail + r->qlen - r->head;
}

static uint64_t desc_addr(XL710RxQueue *r, unsigned i)
{
    return r->base + i * (r->desc32 ? 32ull : 16ull);
}

/* Write back one descriptor, what makes it valid last */
static bool put_desc(XL710State *s, XL710RxQueue *r, uint64_t qw0, uint64_t qw1,
                     uint64_t qw2, uint64_t qw3)
{
    PCIDevice *d = PCI_DEVICE(s);
    uint64_t addr = desc_addr(r, r->head);
    uint64_t v[4] = { cpu_to_le64(qw0), cpu_to_le64(qw1), cpu_to_le64(qw2),
                      cpu_to_le64(qw3) };
    MemTxResult res = MEMTX_OK;

    if (r->desc32) {
        res |= pci_dma_write(d, addr + 16, &v[2], 16);
    }
    res |= pci_dma_write(d, addr, &v[0], 8);
    smp_wmb();          /* DD is in what follows */
    res |= pci_dma_write(d, addr + 8, &v[1], 8);
    r->head = r->head + 1 == r->qlen ? 0 : r->head + 1;
    return res == MEMTX_OK;
}

void xl710_rx_prog_status(XL710State *s, int q, uint64_t error, uint32_t fd_id)
{
    XL710RxQueue *r = &s->rxq[q];

    if (xl710_rx_room(s, q)) {
        put_desc(s, r, (uint64_t)fd_id << 32, RXD_PROG_FD | error, 0, 0);
        xl710_irq_queue(s, q, true);
    }
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
    uint64_t st = (uint64_t)p->ptype << RXD_PTYPE_S;

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

        if (pci_dma_read(d, desc_addr(r, r->head), &addr, 8) != MEMTX_OK) {
            return false;
        }
        addr = le64_to_cpu(addr);
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
        if (!put_desc(s, r, qw0, qw1 | (uint64_t)n << RXD_LEN_S | RXD_DD |
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
    XL710RxQueue *r;
    unsigned need;

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
    if (need > xl710_rx_room(s, q)) {
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
