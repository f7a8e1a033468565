/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Intel XL710: the internal switch
 *
 * One uplink (the port), VEBs, VSIs, their MAC/VLAN filters and promiscuous
 * modes, and which VSIs a received packet goes to. VEBs are there for the
 * driver to build its tree; traffic between VSIs of one VEB does not turn
 * around inside (SR-IOV would need that, and there are no VFs).
 *
 * Layouts: xl710_aq.h.
 */
#include "qemu/osdep.h"
#include "qemu/bitmap.h"
#include "net/eth.h"
#include "trace.h"
#include "xl710.h"
#include "xl710_aq.h"

#define MAX_MAC_FILTERS         1536
#define MAX_ETYPE_FILTERS       64

#define PROMISC_UNICAST         0x01
#define PROMISC_MULTICAST       0x02
#define PROMISC_BROADCAST       0x04
#define PROMISC_DEFAULT         0x08
#define PROMISC_VLAN            0x10

#define MACVLAN_ADD_PERFECT     0x0001
#define MACVLAN_ADD_HASH        0x0002
#define MACVLAN_ADD_IGNORE_VLAN 0x0004
#define MACVLAN_DEL_IGNORE_VLAN 0x08

#define SWITCH_MODE_VALID       0x80
#define SWITCH_MODE_CLOUD       0x0f
#define SWITCH_MODE_NON_TUNNEL  0x02
#define CLOUD_FILTER_MODE2      7

#define ETYPE_IGNORE_MAC        0x0001
#define ETYPE_DROP              0x0002
#define ETYPE_TX                0x0008

static const struct {
    uint16_t section, off, len;
} info_sections[] = {
    { 0x0001, 2, 4 },           /* switch */
    { 0x0002, 6, 2 },           /* security */
    { 0x0004, 8, 8 },           /* VLAN */
    { 0x0008, 24, 4 },          /* cascaded PV */
    { 0x0010, 16, 4 },          /* ingress UP */
    { 0x0020, 20, 4 },          /* egress UP */
    { 0x0040, 28, 50 },         /* queue mapping */
    { 0x0080, 78, 4 },          /* queueing options */
    { 0x0100, 84, 4 },          /* outer UP */
    { 0x0200, 82, 2 },          /* scheduler */
};

static XL710VSI *vsi_by_seid(XL710State *s, uint16_t seid)
{
    unsigned i = seid - XL710_SEID_VSI;

    return i < XL710_MAX_VSI && s->vsi[i].used ? &s->vsi[i] : NULL;
}

static int veb_by_seid(XL710State *s, uint16_t seid)
{
    unsigned i = seid - XL710_SEID_VEB;

    return i < XL710_MAX_VEB && s->veb_used[i] ? i : -1;
}

static uint16_t vsi_num(XL710State *s, const XL710VSI *v)
{
    return v - s->vsi;
}

static unsigned vsi_count(XL710State *s)
{
    unsigned i, n = 0;

    for (i = 0; i < XL710_MAX_VSI; i++) {
        n += s->vsi[i].used;
    }
    return n;
}

static void vsi_free(XL710State *s, XL710VSI *v)
{
    unsigned i;

    for (i = 0; i < s->mac_filters->len; ) {
        if (g_array_index(s->mac_filters, XL710MacFilter, i).vsi ==
            vsi_num(s, v)) {
            g_array_remove_index_fast(s->mac_filters, i);
        } else {
            i++;
        }
    }
    for (i = 0; i < ARRAY_SIZE(v->vlan_promisc); i++) {
        g_free(v->vlan_promisc[i]);
    }
    if (s->default_vsi == vsi_num(s, v)) {
        s->default_vsi = -1;
    }
    memset(v, 0, sizeof(*v));
}

static void vsi_new(XL710State *s, XL710VSI *v, uint16_t uplink, uint16_t type)
{
    unsigned i, n = vsi_num(s, v);

    memset(v, 0, sizeof(*v));
    v->used = true;
    v->uplink = uplink;
    v->type = type;
    for (i = 0; i < 8; i++) {
        stw_le_p(v->info + INFO_QS_HANDLE + 2 * i, i ? 0xffff : n);
    }
    stw_le_p(v->info + INFO_STAT_IDX, n);
}

/* Apply the sections that the driver marks as valid */
static void vsi_update(XL710VSI *v, const uint8_t *buf)
{
    uint16_t valid = lduw_le_p(buf + INFO_SECTIONS);
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(info_sections); i++) {
        if (valid & info_sections[i].section) {
            memcpy(v->info + info_sections[i].off,
                   buf + info_sections[i].off, info_sections[i].len);
        }
    }
}

static void vsi_reply(XL710State *s, XL710VSI *v, XL710AQDesc *d, uint8_t *buf,
                      uint32_t *len)
{
    unsigned used = vsi_count(s);

    stw_le_p(d->param + VSI_SEID, XL710_SEID_VSI + vsi_num(s, v));
    stw_le_p(d->param + VSI_NUMBER, vsi_num(s, v));
    stw_le_p(d->param + VSI_USED, used);
    stw_le_p(d->param + VSI_FREE, XL710_MAX_VSI - used);
    memcpy(buf, v->info, sizeof(v->info));
    *len = sizeof(v->info);
}

void xl710_switch_reset(XL710State *s)
{
    XL710MacFilter f = { .any_vlan = true };
    unsigned i;

    for (i = 0; i < XL710_MAX_VSI; i++) {
        vsi_free(s, &s->vsi[i]);
    }
    memset(s->veb_used, 0, sizeof(s->veb_used));
    memset(s->udp_tunnel, 0, sizeof(s->udp_tunnel));
    g_array_set_size(s->etype_filters, 0);
    s->default_vsi = -1;
    s->bw_limit = 0;

    /* the firmware makes the main VSI, with a filter for the MAC address */
    vsi_new(s, &s->vsi[0], XL710_SEID_PORT, 2);
    memcpy(f.mac, s->conf.macaddr.a, 6);
    g_array_append_val(s->mac_filters, f);
}

int xl710_vsi_queue(XL710State *s, const XL710VSI *v, unsigned idx)
{
    unsigned q;

    if (lduw_le_p(v->info + INFO_MAP_FLAGS) & 1) {
        if (idx >= 16) {
            return -1;
        }
        q = lduw_le_p(v->info + INFO_QUEUE_MAP + 2 * idx) & 0x7ff;
    } else {
        q = (lduw_le_p(v->info + INFO_QUEUE_MAP) & 0x7ff) + idx;
    }
    return q < s->num_queues ? q : -1;
}

void xl710_vsi_tc0(const XL710VSI *v, unsigned *off, unsigned *pow)
{
    uint16_t map = lduw_le_p(v->info + INFO_TC_MAP);

    *off = map & 0x1ff;
    *pow = map >> 9 & 7;
}

bool xl710_vsi_strips_vlan(const XL710VSI *v)
{
    return (v->info[INFO_VLAN_FLAGS] & 0x18) != 0x18;
}

static bool mac_match(XL710State *s, unsigned vsi, const uint8_t *mac,
                      uint16_t vlan)
{
    unsigned i;

    for (i = 0; i < s->mac_filters->len; i++) {
        const XL710MacFilter *f = &g_array_index(s->mac_filters,
                                                 XL710MacFilter, i);

        if (f->vsi == vsi && !memcmp(f->mac, mac, 6) &&
            (f->any_vlan || f->vlan == vlan)) {
            return true;
        }
    }
    return false;
}

static bool vsi_accepts(XL710State *s, unsigned n, const uint8_t *mac,
                        uint16_t vlan)
{
    const XL710VSI *v = &s->vsi[n];
    unsigned kind = is_broadcast_ether_addr(mac) ? 2 :
                    is_multicast_ether_addr(mac) ? 1 : 0;

    if (v->promisc & (PROMISC_UNICAST << kind)) {
        return true;
    }
    if (v->vlan_promisc[kind] && test_bit(vlan, v->vlan_promisc[kind])) {
        return true;
    }
    return mac_match(s, n, mac, vlan);
}

int xl710_switch_rx(XL710State *s, const XL710Pkt *p, uint16_t *out)
{
    uint16_t vlan = p->vlan ? p->tci & 0xfff : 0;
    unsigned i;
    int n = 0;

    for (i = 0; i < XL710_MAX_VSI; i++) {
        if (s->vsi[i].used && vsi_accepts(s, i, p->data, vlan)) {
            out[n++] = i;
        }
    }
    if (!n && s->default_vsi >= 0) {
        out[n++] = s->default_vsi;
    }
    return n;
}

bool xl710_switch_tx_drop(XL710State *s, const uint8_t *data, uint32_t len)
{
    uint16_t etype = lduw_be_p(data + 12);
    unsigned i;

    for (i = 0; i < s->etype_filters->len; i++) {
        const XL710EtypeFilter *f = &g_array_index(s->etype_filters,
                                                   XL710EtypeFilter, i);

        if (f->etype == etype && (f->flags & ETYPE_TX) &&
            (f->flags & ETYPE_DROP)) {
            return true;
        }
    }
    return false;
}

/* i40e_aqc_switch_config_element_resp */
static void config_element(uint8_t *e, uint8_t type, uint16_t seid,
                           uint16_t uplink, uint16_t downlink, uint16_t info)
{
    e[ELEMENT_TYPE] = type;
    e[ELEMENT_REVISION] = 1;
    stw_le_p(e + ELEMENT_SEID, seid);
    stw_le_p(e + ELEMENT_UPLINK, uplink);
    stw_le_p(e + ELEMENT_DOWNLINK, downlink);
    e[ELEMENT_CONNECTION] = 1;
    stw_le_p(e + ELEMENT_INFO, info);
}

/* As long as there is but the main VSI, it is all that is reported */
static uint16_t cmd_get_switch(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                               uint32_t *len)
{
    unsigned room = (*len - SWITCH_HEAD_SIZE) / ELEMENT_SIZE;
    unsigned start = lduw_le_p(d->param + SWITCH_SEID);
    unsigned i, n = 0, total = 0;

    for (i = 0; i < XL710_MAX_VEB + XL710_MAX_VSI; i++) {
        unsigned v = i - XL710_MAX_VEB;
        uint8_t *e = buf + SWITCH_HEAD_SIZE + ELEMENT_SIZE * n;

        if (i < XL710_MAX_VEB ? !s->veb_used[i] : !s->vsi[v].used) {
            continue;
        }
        total++;
        if (i + 1 <= start || n == room) {
            continue;
        }
        if (i < XL710_MAX_VEB) {
            config_element(e, 17, XL710_SEID_VEB + i, s->veb_uplink[i], 0, 0);
        } else {
            config_element(e, 19, XL710_SEID_VSI + v, s->vsi[v].uplink,
                           XL710_SEID_PF, v);
        }
        start = i;
        n++;
    }
    stw_le_p(buf + SWITCH_HEAD_COUNT, n);
    stw_le_p(buf + SWITCH_HEAD_TOTAL, total);
    /* where to go on: one more than the index of the last one reported */
    stw_le_p(d->param + SWITCH_SEID, n == room && n < total ? start + 1 : 0);
    *len = SWITCH_HEAD_SIZE + ELEMENT_SIZE * n;
    return AQ_RC_OK;
}

/* i40e_aqc_switch_resource_alloc_element_resp */
static uint16_t cmd_get_resources(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                  uint32_t *len)
{
    const struct {
        uint8_t type;
        uint16_t total, used;
    } res[] = {
        { 0x00, XL710_MAX_VEB, 0 },                     /* VEB */
        { 0x01, XL710_MAX_VSI, vsi_count(s) },          /* VSI */
        { 0x02, MAX_MAC_FILTERS, s->mac_filters->len }, /* perfect MAC */
    };
    unsigned i, n = MIN(ARRAY_SIZE(res), *len / ALLOC_SIZE);

    for (i = 0; i < n; i++, buf += ALLOC_SIZE) {
        buf[ALLOC_TYPE] = res[i].type;
        stw_le_p(buf + ALLOC_GUARANTEED, res[i].total);
        stw_le_p(buf + ALLOC_TOTAL, res[i].total);
        stw_le_p(buf + ALLOC_USED, res[i].used);
        stw_le_p(buf + ALLOC_FREE, res[i].total - res[i].used);
    }
    d->param[ALLOC_COUNT] = n;
    *len = ALLOC_SIZE * n;
    return AQ_RC_OK;
}

static uint16_t cmd_set_switch(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                               uint32_t *len)
{
    uint8_t mode = d->param[SET_SWITCH_MODE];

    if (!(mode & SWITCH_MODE_VALID)) {
        return AQ_RC_OK;
    }
    switch (mode & SWITCH_MODE_CLOUD) {
    case 0:
        s->switch_mode = 0;
        return AQ_RC_OK;
    case SWITCH_MODE_NON_TUNNEL:
        /* Channels of mqprio want it, and do without its filters. */
        s->switch_mode = CLOUD_FILTER_MODE2;
        return AQ_RC_OK;
    }
    return AQ_RC_ENOSYS;
}

static uint16_t cmd_add_vsi(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                            uint32_t *len)
{
    uint16_t uplink = lduw_le_p(d->param + VSI_UPLINK);
    uint16_t type = lduw_le_p(d->param + VSI_FLAGS) & 3;
    unsigned i;

    if (uplink != XL710_SEID_PORT && veb_by_seid(s, uplink) < 0 &&
        !vsi_by_seid(s, uplink)) {
        return AQ_RC_ENOENT;
    }
    if (type == 0) {
        return AQ_RC_EINVAL;                            /* no VFs */
    }
    for (i = 0; i < XL710_MAX_VSI; i++) {
        if (!s->vsi[i].used) {
            vsi_new(s, &s->vsi[i], uplink, type);
            vsi_update(&s->vsi[i], buf);
            vsi_reply(s, &s->vsi[i], d, buf, len);
            return AQ_RC_OK;
        }
    }
    return AQ_RC_ENOSPC;
}

static uint16_t cmd_update_vsi(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                               uint32_t *len)
{
    XL710VSI *v = vsi_by_seid(s, lduw_le_p(d->param + VSI_SEID));

    if (!v) {
        return AQ_RC_ENOENT;
    }
    vsi_update(v, buf);
    vsi_reply(s, v, d, buf, len);
    return AQ_RC_OK;
}

static uint16_t cmd_get_vsi(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                            uint32_t *len)
{
    XL710VSI *v = vsi_by_seid(s, lduw_le_p(d->param + VSI_SEID));

    if (!v) {
        return AQ_RC_ENOENT;
    }
    vsi_reply(s, v, d, buf, len);
    return AQ_RC_OK;
}

/* i40e_aqc_add_veb: the VSI @downlink moves below the new VEB */
static uint16_t cmd_add_veb(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                            uint32_t *len)
{
    uint16_t uplink = lduw_le_p(d->param + VEB_UPLINK);
    uint16_t downlink = lduw_le_p(d->param + VEB_DOWNLINK);
    XL710VSI *v = vsi_by_seid(s, downlink);
    unsigned i;

    if (downlink && !v) {
        return AQ_RC_ENOENT;
    }
    if (uplink && uplink != XL710_SEID_PORT && veb_by_seid(s, uplink) < 0) {
        return AQ_RC_ENOENT;
    }
    for (i = 0; i < XL710_MAX_VEB; i++) {
        if (!s->veb_used[i]) {
            s->veb_used[i] = true;
            s->veb_uplink[i] = uplink;
            if (v) {
                v->uplink = XL710_SEID_VEB + i;
            }
            stw_le_p(d->param + VEB_SWITCH_SEID, 1);
            stw_le_p(d->param + VEB_SEID, XL710_SEID_VEB + i);
            stw_le_p(d->param + VEB_STAT_IDX, i);
            stw_le_p(d->param + VEB_USED, i + 1);
            stw_le_p(d->param + VEB_FREE, XL710_MAX_VEB - i - 1);
            return AQ_RC_OK;
        }
    }
    return AQ_RC_ENOSPC;
}

/* i40e_aqc_get_veb_parameters_completion */
static uint16_t cmd_get_veb(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                            uint32_t *len)
{
    uint16_t seid = lduw_le_p(d->param + VEB_GET_SEID);
    int i = veb_by_seid(s, seid);

    if (i < 0) {
        return AQ_RC_ENOENT;
    }
    stw_le_p(d->param + VEB_GET_SWITCH_ID, 1);
    stw_le_p(d->param + VEB_GET_FLAGS, 0);
    stw_le_p(d->param + VEB_GET_STAT_IDX, i);
    stw_le_p(d->param + VEB_GET_USED, 1);
    stw_le_p(d->param + VEB_GET_FREE, XL710_MAX_VEB - 1);
    return AQ_RC_OK;
}

static uint16_t cmd_delete(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                           uint32_t *len)
{
    uint16_t seid = lduw_le_p(d->param + VSI_SEID);
    XL710VSI *v = vsi_by_seid(s, seid);
    int veb = veb_by_seid(s, seid);
    unsigned i;

    if (v && vsi_num(s, v) == 0) {
        return AQ_RC_EPERM;                             /* the main VSI */
    }
    if (v) {
        vsi_free(s, v);
        return AQ_RC_OK;
    }
    if (veb < 0) {
        return AQ_RC_ENOENT;
    }
    for (i = 0; i < XL710_MAX_VSI; i++) {
        if (s->vsi[i].used && s->vsi[i].uplink == seid) {
            s->vsi[i].uplink = s->veb_uplink[veb];
        }
    }
    s->veb_used[veb] = false;
    return AQ_RC_OK;
}

/* i40e_aqc_macvlan, i40e_aqc_add_macvlan_element_data */
static uint16_t cmd_add_macvlan(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                uint32_t *len)
{
    unsigned n = lduw_le_p(d->param + MACVLAN_COUNT), i;
    uint16_t seid = lduw_le_p(d->param + MACVLAN_SEID) & 0x3ff;
    XL710VSI *v = vsi_by_seid(s, seid);
    uint16_t rc = AQ_RC_OK;

    if (!v) {
        return AQ_RC_ENOENT;
    }
    if (n * MACVLAN_SIZE > *len) {
        return AQ_RC_EINVAL;
    }
    for (i = 0; i < n; i++, buf += MACVLAN_SIZE) {
        uint16_t flags = lduw_le_p(buf + MACVLAN_FLAGS);
        XL710MacFilter f = {
            .vlan = lduw_le_p(buf + MACVLAN_VLAN) & 0xfff,
            .any_vlan = flags & MACVLAN_ADD_IGNORE_VLAN,
            .vsi = vsi_num(s, v),
        };

        memcpy(f.mac, buf + MACVLAN_MAC, 6);
        if (s->mac_filters->len == MAX_MAC_FILTERS) {
            buf[MACVLAN_RESULT] = 0xff;                 /* no resource */
            rc = AQ_RC_ENOSPC;
            continue;
        }
        /* how it matches */
        buf[MACVLAN_RESULT] = flags & MACVLAN_ADD_HASH ? 2 : 1;
        g_array_append_val(s->mac_filters, f);
        trace_xl710_mac_add(f.mac[0], f.mac[1], f.mac[2], f.mac[3], f.mac[4],
                            f.mac[5], f.vlan, f.any_vlan, f.vsi);
    }
    stw_le_p(d->param + MACVLAN_PERFECT_USED, s->mac_filters->len);
    stw_le_p(d->param + MACVLAN_PERFECT_FREE,
             MAX_MAC_FILTERS - s->mac_filters->len);
    stw_le_p(d->param + MACVLAN_UNICAST_FREE, 0);
    stw_le_p(d->param + MACVLAN_MULTICAST_FREE, 0);
    return rc;
}

/* i40e_aqc_remove_macvlan_element_data */
static uint16_t cmd_del_macvlan(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                uint32_t *len)
{
    unsigned n = lduw_le_p(d->param + MACVLAN_COUNT), i, j;
    uint16_t seid = lduw_le_p(d->param + MACVLAN_SEID) & 0x3ff;
    XL710VSI *v = vsi_by_seid(s, seid);
    uint16_t rc = AQ_RC_OK;

    if (!v) {
        return AQ_RC_ENOENT;
    }
    if (n * MACVLAN_SIZE > *len) {
        return AQ_RC_EINVAL;
    }
    for (i = 0; i < n; i++, buf += MACVLAN_SIZE) {
        uint16_t vlan = lduw_le_p(buf + MACVLAN_VLAN) & 0xfff;
        bool any = buf[MACVLAN_FLAGS] & MACVLAN_DEL_IGNORE_VLAN;

        buf[MACVLAN_RESULT] = 0xff;                     /* not found */
        for (j = 0; j < s->mac_filters->len; j++) {
            XL710MacFilter *f = &g_array_index(s->mac_filters,
                                               XL710MacFilter, j);

            if (f->vsi == vsi_num(s, v) &&
                !memcmp(f->mac, buf + MACVLAN_MAC, 6) &&
                f->any_vlan == any && (any || f->vlan == vlan)) {
                g_array_remove_index_fast(s->mac_filters, j);
                buf[MACVLAN_RESULT] = 0;
                break;
            }
        }
        if (buf[MACVLAN_RESULT]) {
            rc = AQ_RC_ENOENT;
        }
    }
    stw_le_p(d->param + MACVLAN_PERFECT_USED, s->mac_filters->len);
    stw_le_p(d->param + MACVLAN_PERFECT_FREE,
             MAX_MAC_FILTERS - s->mac_filters->len);
    return rc;
}

/* i40e_aqc_set_vsi_promiscuous_modes */
static uint16_t cmd_promisc(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                            uint32_t *len)
{
    uint16_t flags = lduw_le_p(d->param + PROMISC_FLAGS);
    uint16_t valid = lduw_le_p(d->param + PROMISC_VALID);
    XL710VSI *v = vsi_by_seid(s, lduw_le_p(d->param + PROMISC_SEID));
    uint16_t tag = lduw_le_p(d->param + PROMISC_VLAN_TAG);
    unsigned i;

    if (!v) {
        return AQ_RC_ENOENT;
    }
    if (tag & 0x8000) {                                 /* on one VLAN */
        for (i = 0; i < ARRAY_SIZE(v->vlan_promisc); i++) {
            if (!(valid & 1 << i)) {
                continue;
            }
            if (!v->vlan_promisc[i]) {
                v->vlan_promisc[i] = bitmap_new(4096);
            }
            if (flags & 1 << i) {
                set_bit(tag & 0xfff, v->vlan_promisc[i]);
            } else {
                clear_bit(tag & 0xfff, v->vlan_promisc[i]);
            }
        }
        return AQ_RC_OK;
    }
    if (valid & PROMISC_DEFAULT) {
        if (flags & PROMISC_DEFAULT) {
            s->default_vsi = vsi_num(s, v);
        } else if (s->default_vsi == vsi_num(s, v)) {
            s->default_vsi = -1;
        }
    }
    v->promisc = (v->promisc & ~valid) | (flags & valid);
    trace_xl710_promisc(vsi_num(s, v), v->promisc);
    return AQ_RC_OK;
}

/* i40e_aqc_add_remove_control_packet_filter: reads it; its place, or -1 */
static int find_etype(XL710State *s, XL710AQDesc *d, XL710EtypeFilter *f)
{
    unsigned i;

    *f = (XL710EtypeFilter) {
        .etype = lduw_le_p(d->param + ETYPE_ETYPE),
        .flags = lduw_le_p(d->param + ETYPE_FLAGS),
        .vsi = lduw_le_p(d->param + ETYPE_SEID),
    };
    for (i = 0; i < s->etype_filters->len; i++) {
        if (!memcmp(&g_array_index(s->etype_filters, XL710EtypeFilter, i), f,
                    sizeof(*f))) {
            return i;
        }
    }
    return -1;
}

static uint16_t cmd_add_etype(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                              uint32_t *len)
{
    XL710EtypeFilter f;
    int place = find_etype(s, d, &f);

    if (!vsi_by_seid(s, f.vsi)) {
        return AQ_RC_ENOENT;
    }
    if (!(f.flags & ETYPE_IGNORE_MAC)) {
        return AQ_RC_ENOSYS;
    }
    if (place >= 0) {
        return AQ_RC_EEXIST;
    }
    if (s->etype_filters->len == MAX_ETYPE_FILTERS) {
        return AQ_RC_ENOSPC;
    }
    g_array_append_val(s->etype_filters, f);
    memset(d->param, 0, sizeof(d->param));
    stw_le_p(d->param + ETYPE_USED, s->etype_filters->len);
    stw_le_p(d->param + ETYPE_FREE, MAX_ETYPE_FILTERS - s->etype_filters->len);
    return AQ_RC_OK;
}

static uint16_t cmd_del_etype(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                              uint32_t *len)
{
    XL710EtypeFilter f;
    int place = find_etype(s, d, &f);

    if (place < 0) {
        return AQ_RC_ENOENT;
    }
    g_array_remove_index_fast(s->etype_filters, place);
    return AQ_RC_OK;
}

static uint16_t cmd_accept(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                           uint32_t *len)
{
    return AQ_RC_OK;
}

const XL710AQCmd xl710_switch_cmds[] = {
    { AQ_GET_SWITCH_CONFIG, SWITCH_HEAD_SIZE + ELEMENT_SIZE, cmd_get_switch },
    { AQ_SET_PORT_PARAMETERS, 0, cmd_accept },
    { AQ_GET_SWITCH_RESOURCE_ALLOC, ALLOC_SIZE, cmd_get_resources },
    { AQ_SET_SWITCH_CONFIG, 0, cmd_set_switch },
    { AQ_ADD_VSI, VSI_INFO_SIZE, cmd_add_vsi },
    { AQ_UPDATE_VSI_PARAMETERS, VSI_INFO_SIZE, cmd_update_vsi },
    { AQ_GET_VSI_PARAMETERS, VSI_INFO_SIZE, cmd_get_vsi },
    { AQ_ADD_VEB, 0, cmd_add_veb },
    { AQ_GET_VEB_PARAMETERS, 0, cmd_get_veb },
    { AQ_DELETE_ELEMENT, 0, cmd_delete },
    { AQ_ADD_MACVLAN, MACVLAN_SIZE, cmd_add_macvlan },
    { AQ_REMOVE_MACVLAN, MACVLAN_SIZE, cmd_del_macvlan },
    { AQ_SET_VSI_PROMISCUOUS_MODES, 0, cmd_promisc },
    { AQ_ADD_CONTROL_PACKET_FILTER, 0, cmd_add_etype },
    { AQ_REMOVE_CONTROL_PACKET_FILTER, 0, cmd_del_etype },
    { }
};
