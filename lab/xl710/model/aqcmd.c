/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Intel XL710: admin commands that are not of the switch
 *
 * Layouts are those of xl710_aq.h; the comment before each handler names the
 * structure of the driver.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "trace.h"
#include "xl710.h"
#include "xl710_aq.h"

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
    stl_le_p(d->param + VERSION_ROM, 1);
    stl_le_p(d->param + VERSION_FW_BUILD, 73618);
    stw_le_p(d->param + VERSION_FW_MAJOR, 9);           /* firmware 9.130 */
    stw_le_p(d->param + VERSION_FW_MINOR, 130);
    stw_le_p(d->param + VERSION_API_MAJOR, 1);          /* API 1.15 */
    stw_le_p(d->param + VERSION_API_MINOR, 15);
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
    uint16_t id = lduw_le_p(d->param + RESOURCE_ID);
    uint16_t access = lduw_le_p(d->param + RESOURCE_ACCESS);

    if (id != 1 || access < 1 || access > 2) {
        return AQ_RC_EINVAL;
    }
    stl_le_p(d->param + RESOURCE_TIMEOUT, 3000);        /* ms */
    if (s->nvm_owned) {
        return AQ_RC_EBUSY;
    }
    s->nvm_owned = true;
    return AQ_RC_OK;
}

static uint16_t cmd_release_resource(XL710State *s, XL710AQDesc *d,
                                     uint8_t *buf, uint32_t *len)
{
    if (lduw_le_p(d->param + RESOURCE_ID) != 1) {
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
        { 0x0001, 1, s->switch_mode, 0, 0 },            /* switch mode */
        { 0x0002, 1, 0, 0, 0 },                         /* management mode */
        { 0x0005, 1, 1, 0, 0 },                         /* valid functions */
        { 0x0014, 1, 1, 0, 0 },                         /* VMDq */
        { 0x0017, 1, XL710_MAX_VSI - 2, 0, 0 },         /* VSIs */
        { 0x0018, 1, 1, 0x1, 8 },                       /* DCB */
        { 0x0040, 1, 512, 6, 0 },                       /* RSS: 512 x 6 bits */
        { 0x0041, 1, s->num_queues, 0, 0 },             /* Rx queues */
        { 0x0042, 1, s->num_queues, 0, 0 },             /* Tx queues */
        { 0x0043, 1, s->num_vectors, 0, 0 },            /* MSI-X vectors */
        { 0x0045, 1, XL710_FD_GUARANTEED,
          XL710_FD_BEST_EFFORT, 0 },                    /* flow director */
        { 0x0061, 1, 1, 0, 22 },                        /* LED on GPIO 22 */
        { 0x0063, 1, 1, 0, 0 },                         /* MDIO */
        { 0x0080, 1, 0, 0, 0 },                         /* NVM management */
    };
    unsigned i, n = ARRAY_SIZE(caps);

    if (*len < n * CAP_SIZE) {
        *len = n * CAP_SIZE;
        d->datalen = cpu_to_le16(*len);
        return 9;                                       /* ENOMEM */
    }
    for (i = 0; i < n; i++, buf += CAP_SIZE) {
        stw_le_p(buf + CAP_ID, caps[i].id);
        buf[CAP_MAJOR] = caps[i].major;
        stl_le_p(buf + CAP_NUMBER, caps[i].number);
        stl_le_p(buf + CAP_LOGICAL_ID, caps[i].logical);
        stl_le_p(buf + CAP_PHYS_ID, caps[i].phys);
    }
    *len = n * CAP_SIZE;
    stl_le_p(d->param + CAPS_COUNT, n);
    return AQ_RC_OK;
}

/* i40e_aqc_mac_address_read_data */
static uint16_t cmd_mac_read(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                             uint32_t *len)
{
    memcpy(buf + MAC_READ_LAN, s->conf.macaddr.a, 6);
    memcpy(buf + MAC_READ_PORT, s->conf.macaddr.a, 6);
    stw_le_p(d->param + MAC_READ_FLAGS, 0x10 | 0x40);   /* those are valid */
    *len = MAC_READ_SIZE;
    return AQ_RC_OK;
}

/* i40e_aqc_rx_ctl_reg_read_write: address at 4, value at 12 */
static uint16_t cmd_rx_ctl_read(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                uint32_t *len)
{
    uint32_t addr = ldl_le_p(d->param + REG_ADDRESS);

    if (addr & 3) {
        return AQ_RC_EINVAL;
    }
    stl_le_p(d->param + REG_VALUE, xl710_reg_read(s, addr));
    return AQ_RC_OK;
}

static uint16_t cmd_rx_ctl_write(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                 uint32_t *len)
{
    uint32_t addr = ldl_le_p(d->param + REG_ADDRESS);

    if (addr & 3) {
        return AQ_RC_EINVAL;
    }
    xl710_reg_write(s, addr, ldl_le_p(d->param + REG_VALUE));
    return AQ_RC_OK;
}

/* i40e_aqc_debug_reg_read_write: address at 4, high at 8, low at 12 */
static uint16_t cmd_debug_read(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                               uint32_t *len)
{
    uint32_t addr = ldl_le_p(d->param + REG_ADDRESS);

    if (addr & 3) {
        return AQ_RC_EINVAL;
    }
    stl_le_p(d->param + REG_VALUE_HIGH, 0);
    stl_le_p(d->param + REG_VALUE, xl710_reg_read(s, addr));
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
    bool initial = lduw_le_p(d->param + PHY_GET_FLAGS) & 0x2;

    if (initial) {
        stl_le_p(buf + PHY_TYPES, 1u << PHY_40GBASE_CR4_CU);
        buf[PHY_SPEED] = SPEED_40GB;
        buf[PHY_ABILITIES] = PHY_ENABLE_LINK | PHY_ENABLE_AN;
    } else {
        stl_le_p(buf + PHY_TYPES, s->phy_types & 1u << PHY_40GBASE_CR4_CU);
        buf[PHY_SPEED] = s->phy_types & 1u << PHY_40GBASE_CR4_CU ?
                         s->phy_speeds : 0;
        buf[PHY_ABILITIES] = s->phy_abilities;
    }
    buf[PHY_MODULE_TYPE] = 0x0d;                        /* a QSFP+ module */
    *len = PHY_RESP_SIZE;
    return AQ_RC_OK;
}

/* i40e_aq_set_phy_config */
static uint16_t cmd_set_phy(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                            uint32_t *len)
{
    bool was_on = s->phy_types && s->phy_abilities & PHY_ENABLE_LINK;

    s->phy_types = ldl_le_p(d->param + PHY_TYPES);
    s->phy_types_ext = d->param[PHY_TYPES_EXT];
    s->phy_speeds = d->param[PHY_SPEED] & SPEED_40GB;
    s->phy_abilities = d->param[PHY_ABILITIES] & ~PHY_ATOMIC;
    if (d->param[PHY_ABILITIES] & PHY_ATOMIC || (!was_on && s->phy_types)) {
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
    uint16_t max = lduw_le_p(d->param + MAC_CONFIG_MAX_FRAME);

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
    s->an_on = d->param[RESTART_AN_COMMAND] & AN_LINK_ENABLE;
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
    memset(p, 0, LINK_SIZE);
    p[LINK_FLAGS] = s->lse;
    p[LINK_PHY_TYPE] = PHY_40GBASE_CR4_CU;
    p[LINK_SPEED] = s->link_up ? SPEED_40GB : 0;
    p[LINK_INFO] = 0x40;                                /* media available */
    p[LINK_AN_INFO] = 0x80;                             /* qualified module */
    if (s->link_up) {
        p[LINK_INFO] |= 0x01 | 0x02 | 0x20;             /* up, signal */
        p[LINK_AN_INFO] |= 0x01 | 0x02;                 /* AN completed */
        p[LINK_AN_INFO] |= s->phy_abilities & 1 ? 0x20 : 0; /* Tx pause */
        p[LINK_AN_INFO] |= s->phy_abilities & 2 ? 0x40 : 0; /* Rx pause */
    }
    p[LINK_LOOPBACK] = s->loopback & 0x7;
    stw_le_p(p + LINK_MAX_FRAME, s->max_frame);
    p[LINK_CONFIG] = 0x04;                              /* CRC enabled */
    stl_le_p(p + LINK_TYPES, 1u << PHY_40GBASE_CR4_CU);
}

static uint16_t cmd_get_link(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                             uint32_t *len)
{
    uint16_t flags = lduw_le_p(d->param + LINK_FLAGS);

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
    s->phy_mask = lduw_le_p(d->param + PHY_INT_MASK);
    return AQ_RC_OK;
}

/* i40e_aqc_set_lb_mode */
static uint16_t cmd_set_lb(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                           uint32_t *len)
{
    uint16_t mode = lduw_le_p(d->param + LB_MODE);

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
    uint32_t reg = ldl_le_p(d->param + PHY_REG_ADDRESS);
    uint32_t val = 0;

    if (d->param[PHY_REG_INTERFACE] != 2) {             /* external module */
        return AQ_RC_ENXIO;
    }
    reg &= 0xff;
    if (d->param[PHY_REG_DEV] == 0 && reg < sizeof(low)) {
        val = low[reg];
    } else if (d->param[PHY_REG_DEV] == 0 && reg >= 128) {
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
    stl_le_p(d->param + PHY_REG_VALUE, val);
    return AQ_RC_OK;
}

/* i40e_aqc_nvm_update: module at 1, length at 2, offset at 4, in bytes */
static uint16_t cmd_nvm_read(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                             uint32_t *len)
{
    uint32_t n = lduw_le_p(d->param + NVM_LENGTH);
    uint32_t off = ldl_le_p(d->param + NVM_OFFSET) & 0xffffff;
    uint32_t i;

    if (d->param[NVM_MODULE] || (off & 1) || (n & 1) || n > *len) {
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
    buf[VSI_BW_TC_VALID] = 1;                           /* TC 0 */
    stw_le_p(buf + VSI_BW_LIMIT, s->bw_limit);
    *len = VSI_BW_SIZE;
    return AQ_RC_OK;
}

static uint16_t cmd_query_vsi_ets(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                  uint32_t *len)
{
    buf[VSI_ETS_TC_VALID] = 1;
    buf[VSI_ETS_CREDITS] = 1;
    *len = VSI_ETS_SIZE;
    return AQ_RC_OK;
}

static uint16_t cmd_query_port_ets(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                   uint32_t *len)
{
    buf[PORT_ETS_TC_VALID] = 1;
    buf[PORT_ETS_CREDITS] = 1;
    *len = PORT_ETS_SIZE;
    return AQ_RC_OK;
}

static uint16_t cmd_query_comp_ets(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                   uint32_t *len)
{
    buf[COMP_ETS_TC_VALID] = 1;
    *len = COMP_ETS_SIZE;
    return AQ_RC_OK;
}

static uint16_t cmd_query_comp_bw(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                  uint32_t *len)
{
    buf[COMP_BW_TC_VALID] = 1;
    buf[COMP_BW_CREDITS] = 1;
    *len = COMP_BW_SIZE;
    return AQ_RC_OK;
}

/* i40e_aqc_configure_vsi_bw_limit: kept, not enforced */
static uint16_t cmd_vsi_bw_limit(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                 uint32_t *len)
{
    s->bw_limit = lduw_le_p(d->param + BW_LIMIT_CREDIT);
    return AQ_RC_OK;
}

/* i40e_aqc_configure_vsi_tc_bw_data: the reply has the queue set handles */
static uint16_t cmd_vsi_tc_bw(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                              uint32_t *len)
{
    uint16_t vsi = lduw_le_p(d->param + TC_BW_SEID) - XL710_SEID_VSI;
    unsigned i;

    if (vsi >= XL710_MAX_VSI || !s->vsi[vsi].used) {
        return AQ_RC_ENOENT;
    }
    for (i = 0; i < 8; i++) {
        stw_le_p(buf + TC_BW_QS_HANDLE + 2 * i,
                 buf[TC_BW_VALID] & 1 << i ? vsi : 0xffff);
    }
    return AQ_RC_OK;
}

/* i40e_aqc_add_udp_tunnel: port at 0; the reply has the index at 2 */
static uint16_t cmd_add_udp_tunnel(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                   uint32_t *len)
{
    uint16_t port = lduw_le_p(d->param + UDP_TUNNEL_PORT);
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(s->udp_tunnel); i++) {
        if (!s->udp_tunnel[i]) {
            s->udp_tunnel[i] = port;
            d->param[UDP_TUNNEL_INDEX] = i;
            return AQ_RC_OK;
        }
    }
    return AQ_RC_ENOSPC;
}

static uint16_t cmd_del_udp_tunnel(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                   uint32_t *len)
{
    unsigned i = d->param[UDP_TUNNEL_INDEX];

    if (i >= ARRAY_SIZE(s->udp_tunnel) || !s->udp_tunnel[i]) {
        return AQ_RC_ENOENT;
    }
    s->udp_tunnel[i] = 0;
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
    unsigned vsi = lduw_le_p(d->param + RSS_VSI) & 0x3ff;
    bool pf = lduw_le_p(d->param + RSS_FLAGS) & 1;
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
    { AQ_GET_VERSION, 0, cmd_get_version },
    { AQ_DRIVER_VERSION, 0, cmd_nop },
    { AQ_QUEUE_SHUTDOWN, 0, cmd_queue_shutdown },
    { AQ_SET_PF_CONTEXT, 0, cmd_nop },
    { AQ_REQUEST_RESOURCE, 0, cmd_request_resource },
    { AQ_RELEASE_RESOURCE, 0, cmd_release_resource },
    { AQ_LIST_FUNC_CAPABILITIES, CAP_SIZE, cmd_capabilities },
    { AQ_LIST_DEV_CAPABILITIES, CAP_SIZE, cmd_capabilities },
    { AQ_MAC_ADDRESS_READ, MAC_READ_SIZE, cmd_mac_read },
    { AQ_MAC_ADDRESS_WRITE, 0, cmd_nop },     /* for wake-up */
    { AQ_CLEAR_PXE_MODE, 0, cmd_nop },
    { AQ_RX_CTL_REG_READ, 0, cmd_rx_ctl_read },
    { AQ_RX_CTL_REG_WRITE, 0, cmd_rx_ctl_write },
    { AQ_DCB_IGNORE_PFC, 0, cmd_nop },
    { AQ_DCB_UPDATED, 0, cmd_nop },
    { AQ_SET_DCB_PARAMETERS, 0, cmd_nop },
    { AQ_CONFIGURE_VSI_BW_LIMIT, 0, cmd_vsi_bw_limit },
    { AQ_CONFIGURE_VSI_TC_BW, 0x20, cmd_vsi_tc_bw },
    { AQ_QUERY_VSI_BW_CONFIG, VSI_BW_SIZE, cmd_query_vsi_bw },
    { AQ_QUERY_VSI_ETS_SLA_CONFIG, VSI_ETS_SIZE, cmd_query_vsi_ets },
    /* the ETS of the port: there is one traffic class */
    { AQ_ENABLE_SWITCHING_COMP_ETS, 0, cmd_nop },
    { AQ_MODIFY_SWITCHING_COMP_ETS, 0, cmd_nop },
    { AQ_DISABLE_SWITCHING_COMP_ETS, 0, cmd_nop },
    { AQ_CONFIGURE_SWITCHING_COMP_BW, 0x20, cmd_nop },
    { AQ_QUERY_SWITCHING_COMP_ETS, COMP_ETS_SIZE, cmd_query_comp_ets },
    { AQ_QUERY_PORT_ETS_CONFIG, PORT_ETS_SIZE, cmd_query_port_ets },
    { AQ_QUERY_SWITCHING_COMP_BW, COMP_BW_SIZE, cmd_query_comp_bw },
    { AQ_SUSPEND_PORT_TX, 0, cmd_nop },
    { AQ_RESUME_PORT_TX, 0, cmd_nop },
    { AQ_GET_PHY_ABILITIES, PHY_RESP_SIZE, cmd_get_phy },
    { AQ_SET_PHY_CONFIG, 0, cmd_set_phy },
    { AQ_SET_MAC_CONFIG, 0, cmd_set_mac_config },
    { AQ_SET_LINK_RESTART_AN, 0, cmd_restart_an },
    { AQ_GET_LINK_STATUS, 0, cmd_get_link },
    { AQ_SET_PHY_INT_MASK, 0, cmd_set_phy_int_mask },
    { AQ_SET_LB_MODES, 0, cmd_set_lb },
    { AQ_SET_PHY_DEBUG, 0, cmd_nop },
    { AQ_GET_PHY_REGISTER, 0, cmd_get_phy_reg },
    { AQ_NVM_READ, 2, cmd_nvm_read },
    { AQ_NVM_ERASE, 0, cmd_eperm },
    { AQ_NVM_UPDATE, 0, cmd_eperm },
    /* the LLDP agent is off */
    { AQ_LLDP_GET_MIB, 0, cmd_eperm },
    { AQ_LLDP_UPDATE_MIB, 0, cmd_eperm },
    { AQ_LLDP_STOP, 0, cmd_eperm },
    { AQ_LLDP_START, 0, cmd_eperm },
    { AQ_GET_CEE_DCB_CFG, 0, cmd_eperm },
    { AQ_LLDP_SET_LOCAL_MIB, 0, cmd_nop },     /* for nobody */
    { AQ_LLDP_STOP_START_SPEC_AGENT, 0, cmd_eperm },
    { AQ_ADD_UDP_TUNNEL, 0, cmd_add_udp_tunnel },
    { AQ_DEL_UDP_TUNNEL, 0, cmd_del_udp_tunnel },
    { AQ_SET_RSS_KEY, 52, cmd_set_rss_key },
    { AQ_SET_RSS_LUT, 4, cmd_set_rss_lut },
    { AQ_GET_RSS_KEY, 52, cmd_get_rss_key },
    { AQ_GET_RSS_LUT, 4, cmd_get_rss_lut },
    { AQ_DEBUG_READ_REG, 0, cmd_debug_read },
    { AQ_DEBUG_WRITE_REG, 0, cmd_debug_write },
    { }
};
