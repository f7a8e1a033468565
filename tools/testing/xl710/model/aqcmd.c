/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Intel XL710: admin commands that are not of the switch
 *
 * Layouts are those of i40e_adminq_cmd.h; the comment before each handler
 * names the structure. All fields are little endian.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "trace.h"
#include "xl710.h"

#define PHY_40GBASE_CR4_CU      0x0a
#define SPEED_40GB              0x10
#define PHY_ENABLE_LINK         0x08
#define PHY_ENABLE_AN           0x10
#define PHY_ATOMIC              0x20
#define PHY_PAUSE               0x03
#define AN_LINK_ENABLE          0x04
#define EVENT_LINK_UPDOWN       0x0002
#define LB_MAC_LOCAL            0x01
#define LB_PHY_LOCAL            0x05
#define LB_PHY_REMOTE           0x06

static uint16_t cmd_nop(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                        uint32_t *len)
{
    return AQ_RC_OK;
}

/* i40e_aqc_get_version */
static uint16_t cmd_get_version(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                uint32_t *len)
{
    stl_le_p(d->param, 1);                      /* ROM */
    stl_le_p(d->param + 4, 73618);              /* firmware build */
    stw_le_p(d->param + 8, 9);                  /* firmware 9.130 */
    stw_le_p(d->param + 10, 130);
    stw_le_p(d->param + 12, 1);                 /* API 1.15 */
    stw_le_p(d->param + 14, 15);
    return AQ_RC_OK;
}

/* i40e_aqc_queue_shutdown; the driver then writes 0 to the length registers */
static uint16_t cmd_queue_shutdown(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                   uint32_t *len)
{
    s->lse = false;
    return AQ_RC_OK;
}

/* i40e_aqc_request_resource: 1 is the NVM, 2 the SDP pins */
static uint16_t cmd_request_resource(XL710State *s, XL710AQDesc *d,
                                     uint8_t *buf, uint32_t *len)
{
    uint16_t id = lduw_le_p(d->param);
    uint16_t access = lduw_le_p(d->param + 2);

    if (id != 1 || access < 1 || access > 2) {
        return AQ_RC_EINVAL;
    }
    stl_le_p(d->param + 4, 3000);               /* ms it may be held */
    if (s->nvm_owned) {
        return AQ_RC_EBUSY;
    }
    s->nvm_owned = true;
    return AQ_RC_OK;
}

static uint16_t cmd_release_resource(XL710State *s, XL710AQDesc *d,
                                     uint8_t *buf, uint32_t *len)
{
    if (lduw_le_p(d->param) != 1) {
        return AQ_RC_EINVAL;
    }
    s->nvm_owned = false;
    return AQ_RC_OK;
}

/* i40e_aqc_list_capabilities_element_resp */
static uint16_t cmd_capabilities(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                 uint32_t *len)
{
    const struct {
        uint16_t id;
        uint8_t major;
        uint32_t number, logical, phys;
    } caps[] = {
        { 0x0001, 1, 0, 0, 0 },                         /* switch mode */
        { 0x0002, 1, 0, 0, 0 },                         /* management mode */
        { 0x0005, 1, 1, 0, 0 },                         /* valid functions */
        { 0x0014, 1, 1, 0, 0 },                         /* VMDq */
        { 0x0017, 1, XL710_MAX_VSI - 2, 0, 0 },         /* VSIs */
        { 0x0018, 1, 1, 0x1, 8 },                       /* DCB */
        { 0x0040, 1, 512, 6, 0 },                       /* RSS: 512 x 6 bits */
        { 0x0041, 1, s->num_queues, 0, 0 },             /* Rx queues */
        { 0x0042, 1, s->num_queues, 0, 0 },             /* Tx queues */
        { 0x0043, 1, XL710_MAX_VECTORS, 0, 0 },         /* MSI-X vectors */
        { 0x0045, 1, XL710_FD_GUARANTEED,
          XL710_FD_BEST_EFFORT, 0 },                    /* flow director */
        { 0x0061, 1, 1, 0, 22 },                        /* LED on GPIO 22 */
        { 0x0063, 1, 1, 0, 0 },                         /* MDIO */
        { 0x0080, 1, 0, 0, 0 },                         /* NVM management */
    };
    unsigned i, n = ARRAY_SIZE(caps);

    if (*len < n * 32) {
        *len = n * 32;
        d->datalen = cpu_to_le16(*len);
        return 9;                                       /* ENOMEM */
    }
    for (i = 0; i < n; i++, buf += 32) {
        stw_le_p(buf, caps[i].id);
        buf[2] = caps[i].major;
        stl_le_p(buf + 4, caps[i].number);
        stl_le_p(buf + 8, caps[i].logical);
        stl_le_p(buf + 12, caps[i].phys);
    }
    *len = n * 32;
    stl_le_p(d->param + 4, n);
    return AQ_RC_OK;
}

/* i40e_aqc_mac_address_read_data */
static uint16_t cmd_mac_read(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                             uint32_t *len)
{
    memcpy(buf, s->conf.macaddr.a, 6);                  /* LAN */
    memcpy(buf + 12, s->conf.macaddr.a, 6);             /* port */
    stw_le_p(d->param, 0x10 | 0x40);                    /* those are valid */
    *len = 24;
    return AQ_RC_OK;
}

/* i40e_aqc_rx_ctl_reg_read_write: address at 4, value at 12 */
static uint16_t cmd_rx_ctl_read(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                uint32_t *len)
{
    uint32_t addr = ldl_le_p(d->param + 4);

    if (addr & 3) {
        return AQ_RC_EINVAL;
    }
    stl_le_p(d->param + 12, xl710_reg_read(s, addr));
    return AQ_RC_OK;
}

static uint16_t cmd_rx_ctl_write(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                 uint32_t *len)
{
    uint32_t addr = ldl_le_p(d->param + 4);

    if (addr & 3) {
        return AQ_RC_EINVAL;
    }
    xl710_reg_write(s, addr, ldl_le_p(d->param + 12));
    return AQ_RC_OK;
}

/* i40e_aqc_debug_reg_read_write: address at 4, high at 8, low at 12 */
static uint16_t cmd_debug_read(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                               uint32_t *len)
{
    uint32_t addr = ldl_le_p(d->param + 4);

    if (addr & 3) {
        return AQ_RC_EINVAL;
    }
    stl_le_p(d->param + 8, 0);
    stl_le_p(d->param + 12, xl710_reg_read(s, addr));
    return AQ_RC_OK;
}

static uint16_t cmd_debug_write(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                uint32_t *len)
{
    return cmd_rx_ctl_write(s, d, buf, len);
}

/* i40e_aq_get_phy_abilities_resp */
static uint16_t cmd_get_phy(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                            uint32_t *len)
{
    bool initial = lduw_le_p(d->param) & 0x2;

    if (initial) {
        stl_le_p(buf, 1u << PHY_40GBASE_CR4_CU);
        buf[4] = SPEED_40GB;
        buf[5] = PHY_ENABLE_LINK | PHY_ENABLE_AN;
    } else {
        stl_le_p(buf, s->phy_types & 1u << PHY_40GBASE_CR4_CU);
        buf[4] = s->phy_types & 1u << PHY_40GBASE_CR4_CU ? s->phy_speeds : 0;
        buf[5] = s->phy_abilities;
    }
    buf[20] = 0x0d;                                     /* a QSFP+ module */
    *len = 0x218;
    return AQ_RC_OK;
}

/* i40e_aq_set_phy_config */
static uint16_t cmd_set_phy(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                            uint32_t *len)
{
    bool was_on = s->phy_types && s->phy_abilities & PHY_ENABLE_LINK;

    s->phy_types = ldl_le_p(d->param);
    s->phy_types_ext = d->param[13];
    s->phy_speeds = d->param[4] & SPEED_40GB;
    s->phy_abilities = d->param[5] & ~PHY_ATOMIC;
    if (d->param[5] & PHY_ATOMIC || (!was_on && s->phy_types)) {
        xl710_link_restart(s);
    } else {
        xl710_link_update(s);
    }
    return AQ_RC_OK;
}

/* i40e_aq_set_mac_config */
static uint16_t cmd_set_mac_config(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                   uint32_t *len)
{
    uint16_t max = lduw_le_p(d->param);

    if (max < 64 || max > XL710_MAX_FRAME) {
        return AQ_RC_EINVAL;
    }
    s->max_frame = max;
    return AQ_RC_OK;
}

/* i40e_aqc_set_link_restart_an */
static uint16_t cmd_restart_an(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                               uint32_t *len)
{
    s->an_on = d->param[0] & AN_LINK_ENABLE;
    if (s->an_on) {
        xl710_link_restart(s);
    } else {
        xl710_link_update(s);
    }
    return AQ_RC_OK;
}

/* i40e_aqc_get_link_status, also the event */
void xl710_fill_link_status(XL710State *s, uint8_t *p)
{
    memset(p, 0, 16);
    p[0] = s->lse;
    p[2] = PHY_40GBASE_CR4_CU;
    p[3] = s->link_up ? SPEED_40GB : 0;
    p[4] = 0x40;                                        /* media available */
    p[5] = 0x80;                                        /* qualified module */
    if (s->link_up) {
        p[4] |= 0x01 | 0x02 | 0x20;                     /* up, signal */
        p[5] |= 0x01 | 0x02;                            /* AN completed */
        p[5] |= s->phy_abilities & 1 ? 0x20 : 0;        /* Tx pause */
        p[5] |= s->phy_abilities & 2 ? 0x40 : 0;        /* Rx pause */
    }
    p[7] = s->loopback & 0x7;
    stw_le_p(p + 8, s->max_frame);
    p[10] = 0x04;                                       /* CRC enabled */
    stl_le_p(p + 11, 1u << PHY_40GBASE_CR4_CU);         /* link types */
}

static uint16_t cmd_get_link(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                             uint32_t *len)
{
    uint16_t flags = lduw_le_p(d->param);

    if (flags & 0x2) {
        s->lse = flags & 0x1;
    }
    xl710_fill_link_status(s, d->param);
    return AQ_RC_OK;
}

/* i40e_aqc_set_phy_int_mask: a bit that is set hides the event */
static uint16_t cmd_set_phy_int_mask(XL710State *s, XL710AQDesc *d,
                                     uint8_t *buf, uint32_t *len)
{
    s->phy_mask = lduw_le_p(d->param + 8);
    return AQ_RC_OK;
}

/* i40e_aqc_set_lb_mode */
static uint16_t cmd_set_lb(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                           uint32_t *len)
{
    uint16_t mode = lduw_le_p(d->param);

    if (mode && mode != LB_MAC_LOCAL && mode != LB_PHY_LOCAL) {
        return mode == LB_PHY_REMOTE ? AQ_RC_ENOSYS : AQ_RC_EINVAL;
    }
    s->loopback = mode;
    xl710_link_update(s);
    return AQ_RC_OK;
}

/*
 * i40e_aqc_phy_register_access: the EEPROM of the cable, as SFF-8636 has it.
 * Only what identifies it is filled in.
 */
static uint16_t cmd_get_phy_reg(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                uint32_t *len)
{
    static const uint8_t low[] = { 0x0d, 0x07, 0x06 };
    static const char vendor[] = "QEMU            ";
    uint32_t reg = ldl_le_p(d->param + 4);
    uint32_t val = 0;

    if (d->param[0] != 2) {                             /* external module */
        return AQ_RC_ENXIO;
    }
    reg &= 0xff;
    if (d->param[1] == 0 && reg < sizeof(low)) {
        val = low[reg];
    } else if (d->param[1] == 0 && reg >= 128) {
        switch (reg) {
        case 128:
            val = 0x0d;                                 /* QSFP+ */
            break;
        case 130:
            val = 0x23;                                 /* no separable */
            break;
        case 131:
            val = 0x08;                                 /* 40GBASE-CR4 */
            break;
        case 146:
            val = 1;                                    /* 1 m of copper */
            break;
        case 147:
            val = 0xa0;
            break;
        case 148 ... 163:
            val = vendor[reg - 148];
            break;
        }
    }
    stl_le_p(d->param + 8, val);
    return AQ_RC_OK;
}

/* i40e_aqc_nvm_update: module at 1, length at 2, offset at 4, in bytes */
static uint16_t cmd_nvm_read(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                             uint32_t *len)
{
    uint32_t n = lduw_le_p(d->param + 2);
    uint32_t off = ldl_le_p(d->param + 4) & 0xffffff;
    uint32_t i;

    if (d->param[1] || (off & 1) || (n & 1) || n > *len) {
        return AQ_RC_EINVAL;
    }
    if (off + n > XL710_SR_WORDS * 2) {
        return AQ_RC_EPERM;
    }
    for (i = 0; i < n; i += 2) {
        stw_le_p(buf + i, s->sr[(off + i) / 2]);
    }
    *len = n;
    return AQ_RC_OK;
}

/* The flash cannot be written: it is the model's */
static uint16_t cmd_eperm(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                          uint32_t *len)
{
    *len = 0;
    return AQ_RC_EPERM;
}

/*
 * i40e_aqc_tx_sched_ind: one traffic class with all of the bandwidth is all
 * that this scheduler has.
 */
static uint16_t cmd_query_vsi_bw(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                 uint32_t *len)
{
    buf[0] = 1;                                         /* TC 0 */
    stw_le_p(buf + 36, s->bw_limit);
    *len = 0x40;
    return AQ_RC_OK;
}

static uint16_t cmd_query_vsi_ets(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                  uint32_t *len)
{
    buf[0] = 1;
    buf[4] = 1;                                         /* share credits */
    *len = 0x20;
    return AQ_RC_OK;
}

static uint16_t cmd_query_port_ets(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                   uint32_t *len)
{
    buf[4] = 1;
    buf[8] = 1;
    *len = 0x44;
    return AQ_RC_OK;
}

static uint16_t cmd_query_comp_ets(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                   uint32_t *len)
{
    buf[0] = 1;
    *len = 0x40;
    return AQ_RC_OK;
}

static uint16_t cmd_query_comp_bw(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                  uint32_t *len)
{
    buf[0] = 1;
    buf[4] = 1;
    *len = 0x20;
    return AQ_RC_OK;
}

/* i40e_aqc_configure_vsi_bw_limit: kept, not enforced */
static uint16_t cmd_vsi_bw_limit(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                 uint32_t *len)
{
    s->bw_limit = lduw_le_p(d->param + 4);
    return AQ_RC_OK;
}

/* i40e_aqc_configure_vsi_tc_bw_data: the reply has the queue set handles */
static uint16_t cmd_vsi_tc_bw(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                              uint32_t *len)
{
    uint16_t vsi = lduw_le_p(d->param) - XL710_SEID_VSI;
    unsigned i;

    if (vsi >= XL710_MAX_VSI || !s->vsi[vsi].used) {
        return AQ_RC_ENOENT;
    }
    for (i = 0; i < 8; i++) {
        stw_le_p(buf + 16 + 2 * i, buf[0] & 1 << i ? vsi : 0xffff);
    }
    return AQ_RC_OK;
}

/* i40e_aqc_add_udp_tunnel: port at 0; the reply has the index at 2 */
static uint16_t cmd_add_udp_tunnel(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                   uint32_t *len)
{
    uint16_t port = lduw_le_p(d->param);
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(s->udp_tunnel); i++) {
        if (!s->udp_tunnel[i]) {
            s->udp_tunnel[i] = port;
            d->param[2] = i;
            return AQ_RC_OK;
        }
    }
    return AQ_RC_ENOSPC;
}

static uint16_t cmd_del_udp_tunnel(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                   uint32_t *len)
{
    if (d->param[2] >= ARRAY_SIZE(s->udp_tunnel) ||
        !s->udp_tunnel[d->param[2]]) {
        return AQ_RC_ENOENT;
    }
    s->udp_tunnel[d->param[2]] = 0;
    return AQ_RC_OK;
}

/* i40e_aqc_get_set_rss_key: the key of the PF is in registers */
static uint16_t cmd_set_rss_key(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                uint32_t *len)
{
    unsigned i;

    for (i = 0; i < 13; i++) {
        xl710_set_reg(s, PFQF_HKEY(i), ldl_le_p(buf + 4 * i));
    }
    return AQ_RC_OK;
}

static uint16_t cmd_get_rss_key(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                uint32_t *len)
{
    unsigned i;

    for (i = 0; i < 13; i++) {
        stl_le_p(buf + 4 * i, xl710_reg(s, PFQF_HKEY(i)));
    }
    *len = 52;
    return AQ_RC_OK;
}

/* i40e_aqc_get_set_rss_lut: the table of the PF, or of a VSI (64 entries) */
static uint16_t rss_lut(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                        uint32_t *len, bool set)
{
    unsigned vsi = lduw_le_p(d->param) & 0x3ff;
    bool pf = lduw_le_p(d->param + 2) & 1;
    unsigned i;

    if (pf) {
        *len = MIN(*len, 512) & ~3u;
        for (i = 0; i < *len / 4; i++) {
            if (set) {
                xl710_set_reg(s, PFQF_HLUT(i), ldl_le_p(buf + 4 * i) &
                                               0x3f3f3f3f);
            } else {
                stl_le_p(buf + 4 * i, xl710_reg(s, PFQF_HLUT(i)));
            }
        }
        return AQ_RC_OK;
    }
    if (vsi >= XL710_MAX_VSI || !s->vsi[vsi].used) {
        return AQ_RC_ENOENT;
    }
    *len = MIN(*len, sizeof(s->vsi[vsi].lut));
    if (set) {
        memcpy(s->vsi[vsi].lut, buf, *len);
    } else {
        memcpy(buf, s->vsi[vsi].lut, *len);
    }
    return AQ_RC_OK;
}

static uint16_t cmd_set_rss_lut(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                uint32_t *len)
{
    return rss_lut(s, d, buf, len, true);
}

static uint16_t cmd_get_rss_lut(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                uint32_t *len)
{
    return rss_lut(s, d, buf, len, false);
}

const XL710AQCmd xl710_aq_cmds[] = {
    { 0x0001, 0, cmd_get_version },
    { 0x0002, 0, cmd_nop },                     /* driver version */
    { 0x0003, 0, cmd_queue_shutdown },
    { 0x0004, 0, cmd_nop },                     /* set PF context */
    { 0x0008, 0, cmd_request_resource },
    { 0x0009, 0, cmd_release_resource },
    { 0x000a, 32, cmd_capabilities },           /* of the function */
    { 0x000b, 32, cmd_capabilities },           /* of the device */
    { 0x0107, 24, cmd_mac_read },
    { 0x0108, 0, cmd_nop },                     /* MAC write: for wake-up */
    { 0x0110, 0, cmd_nop },                     /* clear PXE mode */
    { 0x0206, 0, cmd_rx_ctl_read },
    { 0x0207, 0, cmd_rx_ctl_write },
    { 0x0301, 0, cmd_nop },                     /* ignore PFC */
    { 0x0302, 0, cmd_nop },                     /* DCB updated */
    { 0x0303, 0, cmd_nop },                     /* set DCB parameters */
    { 0x0400, 0, cmd_vsi_bw_limit },
    { 0x0407, 0x20, cmd_vsi_tc_bw },
    { 0x0408, 0x40, cmd_query_vsi_bw },
    { 0x040a, 0x20, cmd_query_vsi_ets },
    { 0x0413, 0, cmd_nop },                     /* enable, modify and disable */
    { 0x0414, 0, cmd_nop },                     /* the port's ETS: there is */
    { 0x0415, 0, cmd_nop },                     /* one traffic class */
    { 0x0417, 0x20, cmd_nop },
    { 0x0418, 0x40, cmd_query_comp_ets },
    { 0x0419, 0x44, cmd_query_port_ets },
    { 0x041a, 0x20, cmd_query_comp_bw },
    { 0x041b, 0, cmd_nop },                     /* suspend port Tx */
    { 0x041c, 0, cmd_nop },                     /* resume port Tx */
    { 0x0600, 0x218, cmd_get_phy },
    { 0x0601, 0, cmd_set_phy },
    { 0x0603, 0, cmd_set_mac_config },
    { 0x0605, 0, cmd_restart_an },
    { 0x0607, 0, cmd_get_link },
    { 0x0613, 0, cmd_set_phy_int_mask },
    { 0x0618, 0, cmd_set_lb },
    { 0x0622, 0, cmd_nop },                     /* set PHY debug */
    { 0x0629, 0, cmd_get_phy_reg },
    { 0x0701, 2, cmd_nvm_read },
    { 0x0702, 0, cmd_eperm },                   /* NVM erase */
    { 0x0703, 0, cmd_eperm },                   /* NVM update */
    { 0x0a00, 0, cmd_eperm },                   /* LLDP: the agent is off */
    { 0x0a01, 0, cmd_eperm },
    { 0x0a05, 0, cmd_eperm },
    { 0x0a06, 0, cmd_eperm },
    { 0x0a07, 0, cmd_eperm },
    { 0x0a08, 0, cmd_nop },                     /* MIB: for nobody */
    { 0x0a09, 0, cmd_eperm },
    { 0x0b00, 0, cmd_add_udp_tunnel },
    { 0x0b01, 0, cmd_del_udp_tunnel },
    { 0x0b02, 52, cmd_set_rss_key },
    { 0x0b03, 4, cmd_set_rss_lut },
    { 0x0b04, 52, cmd_get_rss_key },
    { 0x0b05, 4, cmd_get_rss_lut },
    { 0xff03, 0, cmd_debug_read },
    { 0xff04, 0, cmd_debug_write },
    { }
};
