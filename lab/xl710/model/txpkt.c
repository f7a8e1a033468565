/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Intel XL710: one packet to send
 *
 * The offloads work from the header lengths that the descriptors give, as in
 * the hardware, so tunnels need nothing special. net_tx_pkt is not used: in
 * QEMU 7.2 it cuts a TSO packet into IP fragments, and it wants to find the
 * headers itself.
 */
#include "qemu/osdep.h"
#include "qemu/crc32c.h"
#include "qemu/units.h"
#include "net/checksum.h"
#include "net/eth.h"
#include "trace.h"
#include "xl710.h"

#define MSS_MIN         64              /* regardless of the driver */

/* The offloads that the descriptors of a packet request */
typedef struct TxOffload {
    uint32_t cmd;
    bool tso;
    uint32_t tso_len;
    uint32_t mss;
    /* offsets of the headers; outer is 0 without a tunnel */
    uint32_t outer, natt, ip, l4, payload;
    uint32_t eipt, l4t;
    bool outer_l4_csum;
    bool natt_udp;
} TxOffload;

/* ---- checksums and segmentation ---- */

static void put_ip_csum(uint8_t *ip, uint32_t len)
{
    stw_be_p(ip + 10, 0);
    stw_be_p(ip + 10, net_raw_checksum(ip, len));
}

/*
 * The driver left the sum of the pseudo header in the checksum field; for TSO
 * without the length, which is then @add.
 */
static void put_l4_csum(uint8_t *l4, uint32_t len, uint32_t off, uint32_t add,
                        bool nonzero)
{
    uint32_t sum = net_checksum_add(len, l4) + add;
    uint16_t v = net_checksum_finish(sum);

    stw_be_p(l4 + off, v || !nonzero ? v : 0xffff);
}

static bool l4_csum(const TxOffload *o, uint8_t *pkt, uint32_t len)
{
    uint8_t *l4 = pkt + o->l4;
    uint32_t l4len = len - o->l4;
    uint32_t add = o->tso ? l4len : 0;

    switch (o->l4t) {
    case TXD_CMD_L4T_TCP:
        if (l4len < 20) {
            return false;
        }
        put_l4_csum(l4, l4len, 16, add, false);
        break;
    case TXD_CMD_L4T_UDP:
        if (l4len < 8) {
            return false;
        }
        put_l4_csum(l4, l4len, 6, add, true);
        break;
    case TXD_CMD_L4T_SCTP:
        if (l4len < 12) {
            return false;
        }
        stl_le_p(l4 + 8, 0);
        stl_le_p(l4 + 8, crc32c(0xffffffff, l4, l4len));
        break;
    }
    return true;
}

static bool parse_offload(const XL710TxQueue *t, uint64_t qw1, uint32_t len,
                          TxOffload *o)
{
    uint32_t off = qw1 >> TXD_OFFSET_S & 0x3ffff;
    uint32_t maclen = (off & 0x7f) * 2;
    uint32_t iplen = (off >> 7 & 0x7f) * 4;
    uint32_t l4len = (off >> 14 & 0xf) * 4;
    uint32_t tun = t->have_ctx ? t->ctx[0] : 0;

    memset(o, 0, sizeof(*o));
    o->cmd = qw1 >> TXD_CMD_S & 0xfff;
    o->l4t = o->cmd & TXD_CMD_L4T;
    o->eipt = tun & TXC_EIPT;
    o->ip = maclen;
    if (o->eipt) {
        o->outer = maclen;
        o->natt = o->outer + (tun >> TXC_EIPLEN_S & 0x7f) * 4;
        o->ip = o->natt + (tun >> TXC_NATLEN_S & 0x7f) * 2;
        o->natt_udp = (tun >> TXC_NATT_S & 3) == TXC_NATT_UDP;
        o->outer_l4_csum = tun & TXC_L4T_CS;
    }
    o->l4 = o->ip + iplen;
    o->payload = o->l4 + l4len;
    if (t->have_ctx) {
        o->tso = xl710_tx_is_tso(t);
        o->tso_len = t->ctx[1] >> TXC_TSO_LEN_S & 0x3ffff;
        o->mss = t->ctx[1] >> TXC_MSS_S & 0x3fff;
    }
    if (o->l4t && (maclen < 14 || iplen < 20 || o->l4 >= len)) {
        return false;
    }
    return o->payload <= len;
}

/* Correct the headers of one segment. @n counts the segments */
static void fix_segment(XL710State *s, const TxOffload *o, uint8_t *pkt,
                        uint32_t len, uint32_t n, bool last, uint32_t done)
{
    uint8_t *ip = pkt + o->ip, *l4 = pkt + o->l4;

    if (o->eipt) {
        uint8_t *outer = pkt + o->outer;

        if (o->eipt == TXC_EIPT_IPV6) {
            stw_be_p(outer + 4, len - o->outer - 40);
        } else {
            stw_be_p(outer + 2, len - o->outer);
            stw_be_p(outer + 4, lduw_be_p(outer + 4) + n);
        }
        if (o->natt_udp) {
            stw_be_p(pkt + o->natt + 4, len - o->natt);
        }
    }
    if (ip[0] >> 4 == 6) {
        stw_be_p(ip + 4, len - o->ip - 40);
    } else {
        stw_be_p(ip + 2, len - o->ip);
        stw_be_p(ip + 4, lduw_be_p(ip + 4) + n);
        if ((o->cmd & TXD_CMD_IIPT) == TXD_CMD_IIPT_IPV4_CSUM) {
            put_ip_csum(ip, o->l4 - o->ip);
        }
    }
    if (o->l4t == TXD_CMD_L4T_TCP) {
        uint32_t mask = xl710_reg(s, last ? GLLAN_TSOMSK_L :
                                     n ? GLLAN_TSOMSK_M : GLLAN_TSOMSK_F);

        if (!n && last) {
            mask = 0;
        }
        stl_be_p(l4 + 4, ldl_be_p(l4 + 4) + done);
        l4[13] &= ~mask;
    } else if (o->l4t == TXD_CMD_L4T_UDP) {
        stw_be_p(l4 + 4, len - o->l4);
    }
}

/* The outer headers' checksums, once what is inside is final */
static void outer_csum(const TxOffload *o, uint8_t *pkt, uint32_t len)
{
    if (!o->eipt) {
        return;
    }
    if (o->eipt == TXC_EIPT_IPV4) {
        put_ip_csum(pkt + o->outer, o->natt - o->outer);
    }
    if (o->outer_l4_csum && o->natt_udp) {
        uint32_t l4len = len - o->natt;

        put_l4_csum(pkt + o->natt, l4len, 6, o->tso ? l4len : 0, true);
    }
}

/* ---- the wire ---- */

static void count_tx(XL710State *s, unsigned vsi, const uint8_t *data,
                     uint32_t len)
{
    uint32_t wire = len + 4;            /* with the CRC */
    unsigned kind = is_broadcast_ether_addr(data) ? 2 :
                    is_multicast_ether_addr(data) ? 1 : 0;
    static const uint32_t prt[] = { GLPRT_UPTC, GLPRT_MPTC, GLPRT_BPTC };
    static const uint32_t glv[] = { GLV_UPTC(0), GLV_MPTC(0), GLV_BPTC(0) };
    unsigned size = wire <= 64 ? 0 : wire <= 127 ? 1 : wire <= 255 ? 2 :
                    wire <= 511 ? 3 : wire <= 1023 ? 4 : wire <= 1522 ? 5 : 6;

    xl710_count(s, GLPRT_GOTC, wire);
    xl710_count(s, prt[kind], 1);
    xl710_count(s, GLPRT_PTC64 + size * 32, 1);
    xl710_count(s, GLV_GOTC(vsi), wire);
    xl710_count(s, glv[kind] + vsi * 8, 1);
}

static void emit(XL710State *s, unsigned vsi, uint8_t *data, uint32_t len)
{
    NetClientState *nc = qemu_get_queue(s->nic);

    if (len < 60) {
        memset(data + len, 0, 60 - len);
        len = 60;
    }
    if (xl710_switch_tx_drop(s, data, len)) {
        return;
    }
    if (!s->link_up) {
        xl710_count32(s, GLPRT_TDOLD, 1);
        return;
    }
    trace_xl710_tx(len);
    count_tx(s, vsi, data, len);
    if (s->loopback) {
        xl710_rx(s, data, len, false);
    } else if (s->sink) {
        s->sink_packets++;
        s->sink_bytes += len;
    } else {
        qemu_send_packet(nc, data, len);
    }
}

static bool wants_stamp(const XL710TxQueue *t)
{
    return t->have_ctx && t->ts_ena &&
           (t->ctx[1] >> TXC_CMD_S & TXC_CMD_TSYN);
}

bool xl710_tx_is_tso(const XL710TxQueue *t)
{
    return t->have_ctx && (t->ctx[1] >> TXC_CMD_S & TXC_CMD_TSO);
}

/*
 * Descriptors that a segment takes: those with its headers, which end at
 * @payload, and those with the bytes @from to @to
 */
static unsigned segment_descs(const XL710TxQueue *t, uint32_t payload,
                              uint32_t from, uint32_t to)
{
    uint32_t start = 0;
    unsigned i, n = 0;

    for (i = 0; i < t->nfrags; i++) {
        uint32_t end = start + t->frag[i].len;

        n += start < payload || (start < to && end > from);
        start = end;
    }
    return n;
}

int xl710_tx_packet(XL710State *s, XL710TxQueue *t, int q, uint64_t qw1)
{
    PCIDevice *d = PCI_DEVICE(s);
    uint8_t *buf = s->tx_buf + 8;       /* room for two tags in front */
    uint32_t len = 0, tags = 0, headers, mss_min;
    TxOffload o;
    unsigned i;

    for (i = 0; i < t->nfrags; i++) {
        if (pci_dma_read(d, t->frag[i].addr, buf + len, t->frag[i].len) !=
            MEMTX_OK) {
            return MDD_TX_BAD_ADDRESS;
        }
        len += t->frag[i].len;
    }
    if (t->have_fltr && t->fd_ena) {
        xl710_fd_program(s, q, t->fltr, buf, len);
    }
    if (qw1 >> TXD_CMD_S & TXD_CMD_DUMMY) {
        return 0;
    }
    if (len < XL710_MIN_TX) {
        return MDD_TX_BAD_LENGTH;
    }
    if (!parse_offload(t, qw1, len, &o)) {
        return MDD_TX_BAD_HEADER;
    }
    if (!o.tso && len > s->max_frame) {
        return MDD_TX_BAD_LENGTH;
    }

    headers = o.payload;
    /* tags go in first, they move all that follows the addresses */
    if (o.cmd & TXD_CMD_IL2TAG1) {
        tags++;
        memmove(buf - 4, buf, 12);
        buf -= 4;
        stw_be_p(buf + 12, ETH_P_VLAN);
        stw_be_p(buf + 14, qw1 >> TXD_L2TAG1_S);
    }
    if (t->have_ctx && (t->ctx[1] >> TXC_CMD_S & TXC_CMD_IL2TAG2)) {
        tags++;
        memmove(buf - 4, buf, 12);
        buf -= 4;
        stw_be_p(buf + 12, ETH_P_VLAN);
        stw_be_p(buf + 14, t->ctx[0] >> 32);
    }
    len += tags * 4;
    o.outer += o.eipt ? tags * 4 : 0;
    o.natt += o.eipt ? tags * 4 : 0;
    o.ip += tags * 4;
    o.l4 += tags * 4;
    o.payload += tags * 4;

    if (!o.tso) {
        if (o.l4t) {
            if ((o.cmd & TXD_CMD_IIPT) == TXD_CMD_IIPT_IPV4_CSUM) {
                put_ip_csum(buf + o.ip, o.l4 - o.ip);
            }
            if (!l4_csum(&o, buf, len)) {
                return MDD_TX_BAD_HEADER;
            }
        }
        outer_csum(&o, buf, len);
        emit(s, t->vsi, buf, len);
        if (wants_stamp(t)) {
            xl710_ptp_sent(s);
        }
        return 0;
    }

    mss_min = MAX(xl710_reg(s, REG_MSS) >> REG_MSS_MIN_S & 0x3ff, MSS_MIN);
    if (o.mss < mss_min || o.mss > XL710_MAX_FRAME ||
        o.tso_len != len - o.payload ||
        (o.l4t != TXD_CMD_L4T_TCP && o.l4t != TXD_CMD_L4T_UDP) ||
        o.payload - o.l4 < (o.l4t == TXD_CMD_L4T_TCP ? 20 : 8) ||
        o.payload + o.mss > XL710_MAX_FRAME) {
        return MDD_TX_BAD_TSO;
    }
    for (i = 0; i * o.mss < o.tso_len; i++) {
        uint32_t done = i * o.mss;
        uint32_t n = MIN(o.mss, o.tso_len - done);
        bool last = done + n == o.tso_len;

        if (segment_descs(t, headers, headers + done, headers + done + n) >
            XL710_MAX_TX_DESC) {
            return MDD_TX_TOO_MANY_DESC;
        }
        memcpy(s->seg_buf, buf, o.payload);
        memcpy(s->seg_buf + o.payload, buf + o.payload + done, n);
        fix_segment(s, &o, s->seg_buf, o.payload + n, i, last, done);
        if (!l4_csum(&o, s->seg_buf, o.payload + n)) {
            return MDD_TX_BAD_TSO;
        }
        outer_csum(&o, s->seg_buf, o.payload + n);
        emit(s, t->vsi, s->seg_buf, o.payload + n);
    }
    return 0;
}
