/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Intel XL710 40 GbE controller, physical function only (PCI 8086:1583)
 *
 * One device is one single-port card. The specification at hand is the Linux
 * driver, drivers/net/ethernet/intel/i40e; README.md tells how to use it.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "qemu/module.h"
#include "qemu/units.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "hw/net/net_rx_pkt.h"
#include "hw/pci/msi.h"
#include "hw/pci/msix.h"
#include "hw/pci/pcie.h"
#include "hw/qdev-properties.h"
#include "migration/vmstate.h"
#include "trace.h"
#include "xl710.h"
#include "xl710_aq.h"

#define PCI_DEVICE_ID_XL710     0x1583
#define BAR_CSR                 0
#define BAR_MSIX                3
#define BAR_CSR_SIZE            (8 * MiB)
#define BAR_MSIX_SIZE           (32 * KiB)
#define MSIX_PBA                0x1000
#define CAP_PM                  0x40
#define CAP_MSI                 0x50
#define CAP_MSIX                0x70
#define CAP_PCIE                0xa0
#define CAP_AER                 0x100
#define CAP_SERIAL              0x140
#define RESET_NS                (100 * SCALE_MS)
#define RESTART_NS              (200 * SCALE_MS)
#define RETRAIN_NS              (50 * SCALE_MS)
#define EVENT_LINK_UPDOWN       0x0002

/* ---- resets ---- */

static void phy_reset(XL710State *s)
{
    s->an_on = true;
    s->phy_types = ~0u;
    s->phy_types_ext = 0xff;
    s->phy_speeds = 0x10;
    s->phy_abilities = 0x08 | 0x10;     /* link enabled, autonegotiation */
    s->phy_mask = 0xffff;
    s->loopback = 0;
    s->max_frame = XL710_MAX_FRAME;
    s->training = false;
    timer_del(s->an_timer);
}

static void reset_common(XL710State *s, bool core)
{
    s->pfr_at = 0;
    timer_del(s->pfr_timer);
    xl710_set_reg(s, PFGEN_CTRL, 0);
    xl710_tx_reset(s, core);
    xl710_rx_reset(s);
    xl710_aq_reset(s);
    xl710_hmc_reset(s);
    xl710_regs_reset(s, core);
    xl710_irq_reset(s);
    xl710_switch_reset(s);
    xl710_fd_flush(s);
}

static void pf_reset_done(void *opaque)
{
    XL710State *s = opaque;

    trace_xl710_reset(0);
    reset_common(s, false);
    xl710_gen_update(s);
}

/* All goes on until it is over: only then the driver knows that it does not */
void xl710_start_pf_reset(XL710State *s)
{
    if (!s->pfr_at) {
        xl710_set_reg(s, PFGEN_CTRL, PFGEN_CTRL_PFSWR);
        s->pfr_at = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) +
                    s->knob[KNOB_RESET_DELAY];
        timer_mod(s->pfr_timer, s->pfr_at);
    }
}

void xl710_pf_reset_catch_up(XL710State *s)
{
    if (s->pfr_at && s->pfr_at <= qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL)) {
        pf_reset_done(s);
    }
}

static void core_reset(XL710State *s)
{
    reset_common(s, true);
    s->switch_mode = 0;
    xl710_steer_reset(s);
    xl710_ptp_reset(s);
    phy_reset(s);
    xl710_link_update(s);
}

static void reset_done(void *opaque)
{
    XL710State *s = opaque;

    trace_xl710_reset(s->reset_type);
    core_reset(s);
    xl710_set_reg(s, GLGEN_RSTAT, s->reset_type << RSTAT_RESET_TYPE_S);
}

void xl710_start_reset(XL710State *s, uint32_t trigger)
{
    if (!(trigger & (RTRIG_CORER | RTRIG_GLOBR)) ||
        timer_pending(s->reset_timer)) {
        return;
    }
    s->reset_type = trigger & RTRIG_GLOBR ? 2 : 1;
    xl710_set_reg(s, GLGEN_RSTAT, 1 | s->reset_type << RSTAT_RESET_TYPE_S);
    xl710_irq_other(s, ICR0_GRST);
    timer_mod(s->reset_timer,
              qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) + RESET_NS);
}

static bool in_function_reset(XL710State *s)
{
    PCIDevice *d = PCI_DEVICE(s);

    return pci_get_word(d->config + d->exp.exp_cap + PCI_EXP_DEVCTL) &
           PCI_EXP_DEVCTL_BCR_FLR;
}

/* A function level reset leaves alone what belongs to the port or the card */
static void xl710_qdev_reset(DeviceState *dev)
{
    XL710State *s = XL710(dev);

    if (in_function_reset(s)) {
        pf_reset_done(s);
        return;
    }
    timer_del(s->reset_timer);
    xl710_set_reg(s, GLGEN_RSTAT, 0);
    core_reset(s);
}

/* ---- malicious driver detection ---- */

void xl710_mdd_tx(XL710State *s, int q, int event)
{
    trace_xl710_mdd("tx", q, event);
    s->txq[q].ena = false;
    s->txq[q].stopping = false;
    xl710_set_reg(s, QTX_ENA(q), xl710_reg(s, QTX_ENA(q)) & ~QENA_STAT);
    xl710_set_reg(s, GL_MDET_TX, MDET_TX_VALID | event << MDET_TX_EVENT_S | q);
    xl710_set_reg(s, PF_MDET_TX, 1);
    xl710_irq_other(s, ICR0_MAL_DETECT);
}

void xl710_mdd_rx(XL710State *s, int q, int event)
{
    trace_xl710_mdd("rx", q, event);
    s->rxq[q].ena = false;
    s->rxq[q].stopping = false;
    xl710_set_reg(s, QRX_ENA(q), xl710_reg(s, QRX_ENA(q)) & ~QENA_STAT);
    xl710_set_reg(s, GL_MDET_RX, MDET_RX_VALID | event << MDET_RX_EVENT_S |
                                 q << MDET_RX_QUEUE_S);
    xl710_set_reg(s, PF_MDET_RX, 1);
    xl710_irq_other(s, ICR0_MAL_DETECT);
}

/* ---- link ---- */

/* Does this end send light? */
static bool phy_on(XL710State *s)
{
    return s->an_on && !s->training && s->phy_types &&
           s->phy_abilities & 0x08 && s->nic &&
           !qemu_get_queue(s->nic)->link_down;
}

static bool link_wanted(XL710State *s)
{
    if (s->loopback) {
        return true;
    }
    if (!phy_on(s)) {
        return false;
    }
    if (s->wire) {
        return phy_on(s->wire);
    }
    return qemu_get_queue(s->nic)->peer || s->gen_rate || s->sink;
}

static void link_set(XL710State *s)
{
    bool up = link_wanted(s);
    uint8_t param[16];

    if (up == s->link_up) {
        return;
    }
    s->link_up = up;
    trace_xl710_link(up);
    if (s->lse && !(s->phy_mask & EVENT_LINK_UPDOWN)) {
        xl710_fill_link_status(s, param);
        xl710_arq_post(s, AQ_GET_LINK_STATUS, param);
    }
    xl710_gen_update(s);
    if (up) {
        qemu_flush_queued_packets(qemu_get_queue(s->nic));
    }
}

void xl710_link_update(XL710State *s)
{
    link_set(s);
    if (s->wire) {
        link_set(s->wire);
    }
}

static void train(XL710State *s)
{
    s->training = true;
    xl710_link_update(s);
    timer_mod(s->an_timer, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) + RETRAIN_NS);
}

static void an_timer(void *opaque)
{
    XL710State *s = opaque;

    if (!s->training) {
        train(s);
    } else {
        s->training = false;
        xl710_link_update(s);
    }
}

/*
 * A link that is up stays so for a while: i40e_set_pauseparam() restarts
 * autonegotiation 75 ms after it has set the PHY, and disables the link for
 * good if it is down by then.
 */
void xl710_link_restart(XL710State *s)
{
    if (!s->link_up) {
        train(s);
    } else {
        timer_mod(s->an_timer,
                  qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) + RESTART_NS);
    }
}

/* ---- netdev ---- */

static bool xl710_can_receive(NetClientState *nc)
{
    return true;
}

static ssize_t xl710_receive(NetClientState *nc, const uint8_t *buf,
                             size_t size)
{
    XL710State *s = qemu_get_nic_opaque(nc);
    bool pause = s->phy_abilities & 1;          /* may we send PAUSE? */

    if (!s->link_up || s->loopback) {
        return size;
    }
    return xl710_rx(s, buf, MIN(size, UINT32_MAX), pause) ? size : 0;
}

static void xl710_link_status_changed(NetClientState *nc)
{
    xl710_link_update(qemu_get_nic_opaque(nc));
}

static NetClientInfo net_info = {
    .type = NET_CLIENT_DRIVER_NIC,
    .size = sizeof(NICState),
    .can_receive = xl710_can_receive,
    .receive = xl710_receive,
    .link_status_changed = xl710_link_status_changed,
};

/* Two NICs face each other without a netdev between them */
static bool connect_wire(XL710State *s, Error **errp)
{
    NetClientState *a, *b;

    if (!s->wire) {
        return true;
    }
    if (s->wire == s || s->wire->wire || !s->wire->nic ||
        qemu_get_queue(s->nic)->peer || qemu_get_queue(s->wire->nic)->peer) {
        error_setg(errp, "peer: the port at the other end is taken");
        s->wire = NULL;
        return false;
    }
    a = qemu_get_queue(s->nic);
    b = qemu_get_queue(s->wire->nic);
    a->peer = b;
    b->peer = a;
    s->wire->wire = s;
    return true;
}

static void cut_wire(XL710State *s)
{
    XL710State *other = s->wire;

    if (other && other->wire == s) {
        other->wire = NULL;
        s->wire = NULL;
        xl710_link_update(other);
    }
}

/* ---- registers ---- */

static uint64_t csr_read(void *opaque, hwaddr addr, unsigned size)
{
    return xl710_reg_read(opaque, addr);
}

static void csr_write(void *opaque, hwaddr addr, uint64_t val, unsigned size)
{
    xl710_reg_write(opaque, addr, val);
}

/* The driver reads counters with 64 bits: two accesses for the model */
static const MemoryRegionOps csr_ops = {
    .read = csr_read,
    .write = csr_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 4, .max_access_size = 8 },
    .impl = { .min_access_size = 4, .max_access_size = 4 },
};

/* ---- PCI ---- */

static void xl710_write_config(PCIDevice *d, uint32_t addr, uint32_t val,
                               int len)
{
    pci_default_write_config(d, addr, val, len);
    pcie_cap_flr_write_config(d, addr, val, len);
}

static void set_link_width(PCIDevice *d)
{
    uint8_t *exp = d->config + d->exp.exp_cap;

    /* 8 GT/s, 8 lanes: else the driver warns of too little bandwidth */
    pci_set_long(exp + PCI_EXP_LNKCAP,
                 (pci_get_long(exp + PCI_EXP_LNKCAP) &
                  ~(PCI_EXP_LNKCAP_SLS | PCI_EXP_LNKCAP_MLW)) | 3 | 8 << 4);
    pci_set_word(exp + PCI_EXP_LNKSTA,
                 (pci_get_word(exp + PCI_EXP_LNKSTA) &
                  ~(PCI_EXP_LNKSTA_CLS | PCI_EXP_LNKSTA_NLW)) | 3 | 8 << 4);
}

static bool realize_pci(XL710State *s, Error **errp)
{
    PCIDevice *d = PCI_DEVICE(s);
    unsigned v;

    pci_config_set_interrupt_pin(d->config, 1);
    memory_region_init_io(&s->csr, OBJECT(s), &csr_ops, s, "xl710-csr",
                          BAR_CSR_SIZE);
    pci_register_bar(d, BAR_CSR, PCI_BASE_ADDRESS_MEM_TYPE_64 |
                     PCI_BASE_ADDRESS_MEM_PREFETCH, &s->csr);
    memory_region_init(&s->msix_bar, OBJECT(s), "xl710-msix", BAR_MSIX_SIZE);
    pci_register_bar(d, BAR_MSIX, PCI_BASE_ADDRESS_MEM_TYPE_64 |
                     PCI_BASE_ADDRESS_MEM_PREFETCH, &s->msix_bar);

    if (pci_add_capability(d, PCI_CAP_ID_PM, CAP_PM, PCI_PM_SIZEOF, errp) < 0) {
        return false;
    }
    pci_set_word(d->config + CAP_PM + PCI_PM_PMC, PCI_PM_CAP_VER_1_1);
    pci_set_word(d->wmask + CAP_PM + PCI_PM_CTRL, PCI_PM_CTRL_STATE_MASK);
    if (s->msi_prop && msi_init(d, CAP_MSI, 1, true, false, errp)) {
        return false;
    }
    if (s->msix_prop) {
        if (msix_init(d, s->num_vectors, &s->msix_bar, BAR_MSIX, 0,
                      &s->msix_bar, BAR_MSIX, MSIX_PBA, CAP_MSIX, errp)) {
            return false;
        }
        for (v = 0; v < s->num_vectors; v++) {
            msix_vector_use(d, v);
        }
    }
    /* an endpoint with a link even on the root bus: the driver looks at it */
    if (pcie_cap_init(d, CAP_PCIE, PCI_EXP_TYPE_ENDPOINT, 0, errp) < 0) {
        return false;
    }
    set_link_width(d);
    pcie_cap_deverr_init(d);
    pcie_cap_flr_init(d);
    if (pcie_aer_init(d, PCI_ERR_VER, CAP_AER, PCI_ERR_SIZEOF, errp) < 0) {
        return false;
    }
    pcie_dev_ser_num_init(d, CAP_SERIAL,
                          (uint64_t)ldl_be_p(s->conf.macaddr.a) << 32 |
                          lduw_be_p(s->conf.macaddr.a + 4));
    return true;
}

/* Each of these looks whether there is something to undo */
static void unrealize_pci(XL710State *s)
{
    PCIDevice *d = PCI_DEVICE(s);

    pcie_aer_exit(d);
    pcie_cap_exit(d);
    msix_uninit(d, &s->msix_bar, &s->msix_bar);
    msi_uninit(d);
}

static void release(XL710State *s)
{
    xl710_gen_uninit(s);
    xl710_irq_uninit(s);
    xl710_tx_uninit(s);
    xl710_rx_uninit(s);
    xl710_hmc_uninit(s);
    timer_free(s->an_timer);
    timer_free(s->reset_timer);
    timer_free(s->pfr_timer);
    net_rx_pkt_uninit(s->parser);
    g_hash_table_destroy(s->fd);
    g_ptr_array_free(s->arq_backlog, true);
    g_array_free(s->mac_filters, true);
    g_array_free(s->etype_filters, true);
    g_free(s->aq_buf);
    g_free(s->tx_buf);
    g_free(s->seg_buf);
    g_free(s->sr);
    g_free(s->regs);
}

static void xl710_realize(PCIDevice *d, Error **errp)
{
    XL710State *s = XL710(d);
    DeviceState *dev = DEVICE(d);

    if (s->num_queues < 4 || s->num_queues > XL710_MAX_QUEUES) {
        error_setg(errp, "queues must be 4..%d", XL710_MAX_QUEUES);
        return;
    }
    if (s->num_vectors < 2 || s->num_vectors > XL710_MAX_VECTORS) {
        error_setg(errp, "vectors must be 2..%d", XL710_MAX_VECTORS);
        return;
    }
    if (s->gen_size < 64 || s->gen_size > XL710_MAX_FRAME ||
        s->gen_flows < 1 || s->gen_flows > 60000) {
        error_setg(errp, "gen-size must be 64..%d, gen-flows 1..60000",
                   XL710_MAX_FRAME);
        return;
    }
    qemu_macaddr_default_if_unset(&s->conf.macaddr);
    if (!realize_pci(s, errp)) {
        unrealize_pci(s);
        return;
    }

    s->aq_buf = g_malloc0(4096);
    s->arq_backlog = g_ptr_array_new_with_free_func(g_free);
    s->mac_filters = g_array_new(false, true, sizeof(XL710MacFilter));
    s->etype_filters = g_array_new(false, true, sizeof(XL710EtypeFilter));
    s->tx_buf = g_malloc0(XL710_TX_BUF);
    s->seg_buf = g_malloc0(XL710_MAX_FRAME + 512);
    s->an_timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, an_timer, s);
    s->reset_timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, reset_done, s);
    s->pfr_timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, pf_reset_done, s);
    xl710_regs_init(s);
    xl710_nvm_init(s);
    xl710_irq_init(s);
    xl710_hmc_init(s);
    xl710_tx_init(s);
    xl710_rx_init(s);
    xl710_steer_init(s);
    xl710_gen_init(s);

    s->nic = qemu_new_nic(&net_info, &s->conf, object_get_typename(OBJECT(s)),
                          dev->id, &dev->mem_reentrancy_guard, s);
    qemu_format_nic_info_str(qemu_get_queue(s->nic), s->conf.macaddr.a);
    if (!connect_wire(s, errp)) {
        qemu_del_nic(s->nic);
        s->nic = NULL;
        release(s);
        unrealize_pci(s);
    }
}

static void xl710_exit(PCIDevice *d)
{
    XL710State *s = XL710(d);

    cut_wire(s);
    qemu_del_nic(s->nic);
    s->nic = NULL;
    release(s);
    unrealize_pci(s);
}

/* ---- properties ---- */

static void set_gen_rate(Object *obj, Visitor *v, const char *name,
                         void *opaque, Error **errp)
{
    XL710State *s = XL710(obj);
    uint64_t val;

    if (visit_type_uint64(v, name, &val, errp)) {
        s->gen_rate = val;
        if (s->gen_timer) {
            timer_del(s->gen_timer);
            xl710_link_update(s);
            xl710_gen_update(s);
        }
    }
}

static void get_gen_rate(Object *obj, Visitor *v, const char *name,
                         void *opaque, Error **errp)
{
    visit_type_uint64(v, name, &XL710(obj)->gen_rate, errp);
}

static void xl710_instance_init(Object *obj)
{
    XL710State *s = XL710(obj);

    PCI_DEVICE(obj)->cap_present |= QEMU_PCI_CAP_EXPRESS;
    xl710_knobs_init(s);
    object_property_add(obj, "gen-rate", "uint64", get_gen_rate, set_gen_rate,
                        NULL, NULL);
    object_property_add_uint64_ptr(obj, "gen-sent", &s->gen_sent,
                                   OBJ_PROP_FLAG_READ);
    object_property_add_uint64_ptr(obj, "gen-dropped", &s->gen_dropped,
                                   OBJ_PROP_FLAG_READ);
    object_property_add_uint64_ptr(obj, "sink-packets", &s->sink_packets,
                                   OBJ_PROP_FLAG_READ);
    object_property_add_uint64_ptr(obj, "sink-bytes", &s->sink_bytes,
                                   OBJ_PROP_FLAG_READ);
}

static const Property xl710_properties[] = {
    DEFINE_NIC_PROPERTIES(XL710State, conf),
    DEFINE_PROP_LINK("peer", XL710State, wire, TYPE_XL710, XL710State *),
    DEFINE_PROP_UINT32("queues", XL710State, num_queues, 128),
    DEFINE_PROP_UINT32("vectors", XL710State, num_vectors, XL710_MAX_VECTORS),
    DEFINE_PROP_BOOL("msi", XL710State, msi_prop, true),
    DEFINE_PROP_BOOL("msix", XL710State, msix_prop, true),
    DEFINE_PROP_BOOL("sink", XL710State, sink, false),
    DEFINE_PROP_UINT32("gen-size", XL710State, gen_size, 64),
    DEFINE_PROP_UINT32("gen-line", XL710State, gen_line, 40),
    DEFINE_PROP_UINT32("gen-flows", XL710State, gen_flows, 1),
    DEFINE_PROP_UINT64("gen-count", XL710State, gen_count, 0),
    DEFINE_PROP_BOOL("gen-seq", XL710State, gen_seq, false),
    XL710_PROPERTIES_END
};

static const VMStateDescription xl710_vmstate = {
    .name = TYPE_XL710,
    .unmigratable = 1,
};

static void xl710_class_init(ObjectClass *klass, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    PCIDeviceClass *k = PCI_DEVICE_CLASS(klass);

    k->realize = xl710_realize;
    k->exit = xl710_exit;
    k->config_write = xl710_write_config;
    k->vendor_id = PCI_VENDOR_ID_INTEL;
    k->device_id = PCI_DEVICE_ID_XL710;
    k->subsystem_vendor_id = PCI_VENDOR_ID_INTEL;
    k->subsystem_id = 0x0002;
    k->revision = 2;
    k->class_id = PCI_CLASS_NETWORK_ETHERNET;
    dc->desc = "Intel XL710 40 GbE controller (PF only)";
    device_class_set_legacy_reset(dc, xl710_qdev_reset);
    dc->vmsd = &xl710_vmstate;
    device_class_set_props(dc, xl710_properties);
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
}

static const TypeInfo xl710_info = {
    .name = TYPE_XL710,
    .parent = TYPE_PCI_DEVICE,
    .instance_size = sizeof(XL710State),
    .instance_init = xl710_instance_init,
    .class_init = xl710_class_init,
    .interfaces = (InterfaceInfo[]) {
        { INTERFACE_PCIE_DEVICE },
        { }
    },
};

static void xl710_register(void)
{
    type_register_static(&xl710_info);
}

type_init(xl710_register)
