/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Intel XL710: classification, RSS and the flow director
 *
 * A packet's classifier type selects an input set: a bitmap of the 16-bit words
 * of its field vector that matter (PRTQF_FD_INSET for the flow director,
 * GLQF_HASH_INSET for RSS). The flow director is an exact match of those words;
 * a filter is programmed by a Tx descriptor and the packet behind it, with
 * source and destination exchanged, since the hardware looks at that packet as
 * sent (i40e_ethtool.c, i40e_add_fdir_ethtool()).
 */
#include "qemu/osdep.h"
#include "hw/net/net_rx_pkt.h"
#include "net/checksum.h"
#include "net/eth.h"
#include "trace.h"
#include "xl710.h"

#define KEY_MAX         64

static uint64_t fd_inset(XL710State *s, unsigned pctype)
{
    return xl710_reg(s, PRTQF_FD_INSET(pctype, 0)) |
           (uint64_t)xl710_reg(s, PRTQF_FD_INSET(pctype, 1)) << 32;
}

static uint64_t hash_inset(XL710State *s, unsigned pctype)
{
    return xl710_reg(s, GLQF_HASH_INSET(0, pctype)) |
           (uint64_t)xl710_reg(s, GLQF_HASH_INSET(1, pctype)) << 32;
}

#if QEMU_VERSION_MAJOR >= 10
static void get_protocols(struct NetRxPkt *parser, bool *ip4, bool *ip6,
                          bool *udp, bool *tcp)
{
    EthL4HdrProto l4;

    net_rx_pkt_get_protocols(parser, ip4, ip6, &l4);
    *udp = l4 == ETH_L4_HDR_PROTO_UDP;
    *tcp = l4 == ETH_L4_HDR_PROTO_TCP;
}
#else
#define get_protocols           net_rx_pkt_get_protocols
#define net_rx_pkt_init(pkt)    net_rx_pkt_init(pkt, false)
#endif

void xl710_parse(XL710State *s, XL710Pkt *p, const uint8_t *data, uint32_t len)
{
    bool ip4, ip6, udp, tcp, ok = true;

    memset(p, 0, sizeof(*p));
    p->data = data;
    p->len = len;
    p->pctype = PCTYPE_L2_PAYLOAD;
    p->ptype = PTYPE_L2;
    if (len >= 18 && lduw_be_p(data + 12) == ETH_P_VLAN) {
        p->vlan = true;
        p->tci = lduw_be_p(data + 14);
    }
    net_rx_pkt_attach_data(s->parser, data, len, false);
    get_protocols(s->parser, &ip4, &ip6, &udp, &tcp);
    if (!ip4 && !ip6) {
        return;
    }
    p->l3 = eth_get_l2_hdr_length(data);
    if (len < p->l3 + (ip4 ? 20 : 40)) {
        return;
    }
    p->l4 = net_rx_pkt_get_l4_hdr_offset(s->parser);
    if (ip4) {
        eth_ip4_hdr_info *info = net_rx_pkt_get_ip4_info(s->parser);

        if (IP_HEADER_VERSION(&info->ip4_hdr) != 4 || p->l4 < p->l3 + 20 ||
            p->l4 > len) {
            return;
        }
        p->ip4 = true;
        p->proto = info->ip4_hdr.ip_p;
        p->frag = info->fragment;
        p->csum_done = true;
        p->ip_bad = !net_rx_pkt_validate_l3_csum(s->parser, &ok) || !ok;
    } else {
        eth_ip6_hdr_info *info = net_rx_pkt_get_ip6_info(s->parser);

        if (info->full_hdr_len < 40 || p->l4 < p->l3 + 40 || p->l4 > len) {
            return;
        }
        p->ip6 = true;
        p->proto = info->l4proto;
        p->frag = info->fragment;
        p->csum_done = true;
        p->ip6_ext = info->rss_ex_src_valid || info->rss_ex_dst_valid;
    }

    p->l5 = p->l4;
    if (p->frag) {
        p->pctype = PCTYPE_FRAG_IPV4;
        p->ptype = PTYPE_IPV4_FRAG;
    } else if (tcp) {
        p->pctype = PCTYPE_IPV4_TCP;
        p->ptype = PTYPE_IPV4_TCP;
        p->l5 = net_rx_pkt_get_l5_hdr_offset(s->parser);
    } else if (udp) {
        p->pctype = PCTYPE_IPV4_UDP;
        p->ptype = PTYPE_IPV4_UDP;
        p->l5 = p->l4 + 8;
        p->udp_zero = !lduw_be_p(data + p->l4 + 6);
    } else if (p->proto == IPPROTO_SCTP && len >= p->l4 + 12) {
        p->pctype = PCTYPE_IPV4_SCTP;
        p->ptype = PTYPE_IPV4_SCTP;
        p->l5 = p->l4 + 12;
    } else {
        bool icmp = p->proto == (p->ip4 ? IPPROTO_ICMP : IPPROTO_ICMPV6);

        p->pctype = PCTYPE_IPV4_OTHER;
        p->ptype = icmp ? PTYPE_IPV4_ICMP : PTYPE_IPV4_OTHER;
    }
    if (p->ip6) {
        p->pctype += PCTYPE_IPV6_UDP - PCTYPE_IPV4_UDP;
        p->ptype += PTYPE_IPV6_STEP;
    }
    if ((tcp || udp) && !p->frag &&
        net_rx_pkt_validate_l4_csum(s->parser, &ok)) {
        p->l4_bad = !ok;
    }
}

static void add(uint8_t *key, unsigned *n, const uint8_t *from, unsigned len)
{
    memcpy(key + *n, from, len);
    *n += len;
}

/* The words of a packet that @inset selects, in the order of a Toeplitz hash */
static unsigned extract(XL710State *s, const XL710Pkt *p, uint64_t inset,
                        bool swap, uint8_t *key)
{
    const uint8_t *l3 = p->data + p->l3, *l4 = p->data + p->l4;
    unsigned a = p->ip4 ? 4 : 16;
    const uint8_t *src = l3 + (p->ip4 ? 12 : 8), *dst = src + a;
    uint64_t s_mask = p->ip4 ? INSET_L3_SRC : INSET_L3_V6_SRC;
    uint64_t d_mask = p->ip4 ? INSET_L3_DST : INSET_L3_V6_DST;
    bool ports = p->l5 >= p->l4 + 8;
    unsigned i, j, n = 0;

    if (p->ip4 || p->ip6) {
        if (inset & s_mask) {
            add(key, &n, swap ? dst : src, a);
        }
        if (inset & d_mask) {
            add(key, &n, swap ? src : dst, a);
        }
    }
    if (ports) {
        if (inset & INSET_L4_SRC) {
            add(key, &n, swap ? l4 + 2 : l4, 2);
        }
        if (inset & INSET_L4_DST) {
            add(key, &n, swap ? l4 : l4 + 2, 2);
        }
        if ((inset & INSET_VERIFY_TAG) && p->proto == IPPROTO_SCTP) {
            add(key, &n, l4 + 4, 4);
        }
    }
    if (inset & INSET_VLAN) {
        uint8_t tci[2];

        stw_be_p(tci, p->vlan ? p->tci : 0);
        add(key, &n, tci, 2);
    }
    /* flexible words of the payload, at the offsets in FLX_PIT */
    for (i = 0; i < 8; i++) {
        unsigned first = ports ? 6 : 3;
        uint8_t word[2] = { 0, 0 };

        if (!(inset & INSET_FLEX(i))) {
            continue;
        }
        for (j = first; j < first + 3; j++) {
            uint32_t pit = xl710_reg(s, PRTQF_FLX_PIT(j));
            uint32_t off = p->l5 + 2 * (pit & 0x1f);

            if ((pit >> 10 & 0x3f) == 50 + i && off + 2 <= p->len) {
                memcpy(word, p->data + off, 2);
            }
        }
        add(key, &n, word, 2);
    }
    return n;
}

/* ---- RSS ---- */

bool xl710_rss_enabled(XL710State *s, const XL710Pkt *p)
{
    return xl710_reg(s, PFQF_HENA(p->pctype / 32)) & 1u << p->pctype % 32;
}

uint32_t xl710_rss_hash(XL710State *s, const XL710Pkt *p)
{
    uint8_t rss_key[52 + 4], input[KEY_MAX];
    net_toeplitz_key key;
    uint32_t hash = 0;
    unsigned i, n;

    for (i = 0; i < 13; i++) {
        stl_le_p(rss_key + 4 * i, xl710_reg(s, PFQF_HKEY(i)));
    }
    n = extract(s, p, hash_inset(s, p->pctype), false, input);
    net_toeplitz_key_init(&key, rss_key);
    net_toeplitz_add(&hash, input, MIN(n, 48), &key);
    return hash;
}

unsigned xl710_rss_lut(XL710State *s, const XL710VSI *v, int vsi, uint32_t hash)
{
    unsigned mask = xl710_reg(s, PFQF_CTL_0) & CTL_0_HASHLUTSIZE_512 ? 511 :
                                                                       127;
    unsigned i = hash & mask;

    if (vsi) {
        return v->lut[hash & 63];
    }
    return xl710_reg(s, PFQF_HLUT(i / 4)) >> 8 * (i % 4) & 0x3f;
}

/* ---- flow director ---- */

static unsigned make_key(XL710State *s, const XL710Pkt *p, bool swap,
                         uint8_t *key)
{
    key[0] = p->pctype;
    return 1 + extract(s, p, fd_inset(s, p->pctype), swap, key + 1);
}

void xl710_fd_flush(XL710State *s)
{
    g_hash_table_remove_all(s->fd);
    s->fd_guaranteed = 0;
    s->fd_best_effort = 0;
}

const XL710FdFilter *xl710_fd_lookup(XL710State *s, const XL710Pkt *p)
{
    uint8_t key[KEY_MAX];
    unsigned n;
    GBytes *k;
    XL710FdFilter *f;

    if (!g_hash_table_size(s->fd) ||
        !(xl710_reg(s, PFQF_CTL_0) & CTL_0_FD_ENA)) {
        return NULL;
    }
    n = make_key(s, p, false, key);
    k = g_bytes_new_static(key, n);
    f = g_hash_table_lookup(s->fd, k);
    g_bytes_unref(k);
    return f;
}

static void uncount(XL710State *s, XL710FdFilter *f)
{
    if (f->best_effort) {
        s->fd_best_effort--;
    } else {
        s->fd_guaranteed--;
    }
}

/* @desc as struct i40e_filter_program_desc; @data is the packet behind it */
void xl710_fd_program(XL710State *s, int q, const uint64_t *desc,
                      const uint8_t *data, uint32_t len)
{
    uint32_t lo = desc[0], cmd = desc[1], fd_id = desc[1] >> 32;
    unsigned pctype = lo >> FLTR_PCTYPE_S & 0x3f;
    unsigned pcmd = cmd >> FLTR_PCMD_S & 7;
    uint8_t key[KEY_MAX];
    XL710FdFilter *f, *old;
    XL710Pkt p;
    GBytes *k;

    xl710_parse(s, &p, data, len);
    p.pctype = pctype;
    k = g_bytes_new(key, make_key(s, &p, true, key));
    old = g_hash_table_lookup(s->fd, k);
    trace_xl710_fd(q, pcmd, pctype, lo & FLTR_QINDEX, fd_id, old != NULL);

    switch (pcmd) {
    case FLTR_PCMD_ADD:
        f = g_new0(XL710FdFilter, 1);
        if (old) {
            f->best_effort = old->best_effort;
        } else if (s->fd_guaranteed < XL710_FD_GUARANTEED) {
            s->fd_guaranteed++;
        } else if (s->fd_best_effort < XL710_FD_BEST_EFFORT) {
            f->best_effort = true;
            s->fd_best_effort++;
        } else {
            xl710_rx_prog_status(s, q, RXD_PROG_ERR_FULL, fd_id);
            g_free(f);
            break;
        }
        f->fd_id = fd_id;
        f->queue = lo & FLTR_QINDEX;
        f->vsi = lo >> FLTR_DEST_VSI_S & 0x1ff;
        f->dest = cmd >> FLTR_DEST_S & 3;
        f->status = cmd >> FLTR_STATUS_S & 3;
        f->cnt_ena = cmd & FLTR_CNT_ENA;
        f->cnt_index = cmd >> FLTR_CNTINDEX_S & 0x1ff;
        g_hash_table_replace(s->fd, g_bytes_ref(k), f);
        break;
    case FLTR_PCMD_REMOVE:
        if (old) {
            uncount(s, old);
            g_hash_table_remove(s->fd, k);
        } else {
            xl710_rx_prog_status(s, q, RXD_PROG_ERR_NOENT, fd_id);
        }
        break;
    }
    g_bytes_unref(k);
}

/* The defaults of the NVM: the fields that ethtool calls the 4-tuple */
void xl710_steer_reset(XL710State *s)
{
    const struct {
        uint8_t pctype;
        uint64_t inset;
    } def[] = {
        { PCTYPE_IPV4_UDP, INSET_L3_SRC | INSET_L3_DST | INSET_L4_SRC |
                           INSET_L4_DST },
        { PCTYPE_IPV4_TCP, INSET_L3_SRC | INSET_L3_DST | INSET_L4_SRC |
                           INSET_L4_DST },
        { PCTYPE_IPV4_SCTP, INSET_L3_SRC | INSET_L3_DST | INSET_L4_SRC |
                            INSET_L4_DST | INSET_VERIFY_TAG },
        { PCTYPE_IPV4_OTHER, INSET_L3_SRC | INSET_L3_DST },
        { PCTYPE_FRAG_IPV4, INSET_L3_SRC | INSET_L3_DST },
        { PCTYPE_IPV6_UDP, INSET_L3_V6_SRC | INSET_L3_V6_DST | INSET_L4_SRC |
                           INSET_L4_DST },
        { PCTYPE_IPV6_TCP, INSET_L3_V6_SRC | INSET_L3_V6_DST | INSET_L4_SRC |
                           INSET_L4_DST },
        { PCTYPE_IPV6_SCTP, INSET_L3_V6_SRC | INSET_L3_V6_DST | INSET_L4_SRC |
                            INSET_L4_DST | INSET_VERIFY_TAG },
        { PCTYPE_IPV6_OTHER, INSET_L3_V6_SRC | INSET_L3_V6_DST },
        { PCTYPE_FRAG_IPV6, INSET_L3_V6_SRC | INSET_L3_V6_DST },
    };
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(def); i++) {
        unsigned p = def[i].pctype;

        xl710_set_reg(s, PRTQF_FD_INSET(p, 0), def[i].inset);
        xl710_set_reg(s, PRTQF_FD_INSET(p, 1), def[i].inset >> 32);
        xl710_set_reg(s, GLQF_HASH_INSET(0, p), def[i].inset);
        xl710_set_reg(s, GLQF_HASH_INSET(1, p), def[i].inset >> 32);
    }
    for (i = 0; i < 9; i++) {
        xl710_set_reg(s, PRTQF_FLX_PIT(i), 63 << 10);   /* unused */
    }
    xl710_fd_flush(s);
}

void xl710_steer_init(XL710State *s)
{
    net_rx_pkt_init(&s->parser);
    s->fd = g_hash_table_new_full(g_bytes_hash, g_bytes_equal,
                                  (GDestroyNotify)g_bytes_unref, g_free);
}
