/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Intel XL710 40 GbE controller: what the files of the model share
 *
 *   xl710.c    PCI device, resets, link, netdev, properties
 *   regs.c     the register file: what exists, what sticks, which functions are called
 *   irq.c      MSI-X/MSI/INTx, interrupt moderation, causes
 *   adminq.c   the two admin queue rings, dispatch
 *   aqcmd.c    admin commands: identity, capabilities, PHY, NVM, registers
 *   nvm.c      shadow RAM
 *   switch.c   admin commands of the switch (VSI, VEB, filters), Rx filtering
 *   hmc.c      host memory cache: backing pages, queue contexts
 *   tx.c       transmit queues: descriptors, completion, stopping
 *   txpkt.c    one packet to send: offloads, segmentation
 *   rx.c       receive queues
 *   steer.c    packet classification, RSS, flow director
 *   gen.c      packet generator
 *   knobs.c    what a test may set while the machine runs
 *
 * Everything runs under the big QEMU lock.
 */
#ifndef XL710_H
#define XL710_H

#include "compat.h"
#include "net/net.h"
#include "qemu/bitmap.h"
#include "qemu/timer.h"
#include "qemu/units.h"
#include "qom/object.h"
#include "xl710_regs.h"

#define TYPE_XL710 "xl710"
OBJECT_DECLARE_SIMPLE_TYPE(XL710State, XL710)

#define XL710_MAX_VSI           64
#define XL710_MAX_VEB           16
#define XL710_MAX_SD            4096
#define XL710_MAX_TX_FRAGS      256             /* of all segments */
#define XL710_PREFETCH          64              /* descriptors */
#define XL710_WB_LINE           64              /* bytes written back at once */
#define XL710_TX_BUF            (256 * KiB + 512)
#define XL710_SR_WORDS          32768           /* 64 KiB of shadow RAM */
#define XL710_SEID_PORT         2
#define XL710_SEID_PF           16
#define XL710_SEID_VEB          288             /* + index */
#define XL710_SEID_VSI          390             /* + VSI number */
#define XL710_FD_GUARANTEED     512
#define XL710_FD_BEST_EFFORT    7680

typedef struct XL710AQDesc {
    uint16_t flags;
    uint16_t opcode;
    uint16_t datalen;
    uint16_t retval;
    uint32_t cookie_high;
    uint32_t cookie_low;
    uint8_t param[16];
} QEMU_PACKED XL710AQDesc;

/* What a test may set; knobs.c says what each does */
typedef enum XL710Knob {
    KNOB_TX_DELAY,
    KNOB_TX_BURST,
    KNOB_RS_ONLY,
    KNOB_STOP_DELAY,
    KNOB_RESET_DELAY,
    KNOB_STUCK_TX,
    KNOB_STUCK_RX,
    XL710_KNOBS
} XL710Knob;

/*
 * A Tx queue. Descriptors go from the ring, between fetch and tail, to the
 * prefetched ones; those of a packet are collected, and when it is sent, done
 * moves. The driver knows of what head write-back last said.
 */
typedef struct XL710TxQueue {
    XL710State *s;
    QEMUTimer *timer;
    int64_t due;                /* ns: when the timer has work */
    int64_t stop_at;            /* ns: not to stop before */
    bool predis;                /* pre-disabled: fetches no descriptors */
    bool ena;
    bool stopping;
    bool busy;
    /* the context */
    bool head_wb;
    bool fd_ena;
    bool ts_ena;
    uint16_t qlen;
    uint16_t vsi;
    uint64_t base;
    uint64_t wb_addr;
    /* places in the ring */
    uint16_t tail;
    uint16_t fetch;
    uint16_t head;              /* next to look at */
    uint16_t done;              /* behind the last packet that was sent */
    uint16_t reported;          /* what the driver knows of that */
    /* prefetched, not looked at: pos to num */
    uint16_t pos, num;
    uint64_t desc[XL710_PREFETCH][2];
    /* of the packet in progress */
    bool have_ctx;
    bool have_fltr;
    uint16_t nfrags;
    uint32_t len;
    uint64_t ctx[2];
    uint64_t fltr[2];
    struct {
        uint64_t addr;
        uint32_t len;
    } frag[XL710_MAX_TX_FRAGS];
} XL710TxQueue;

typedef struct XL710RxQueue {
    XL710State *s;
    QEMUTimer *timer;
    int64_t stop_at;
    bool ena;
    bool stopping;
    /* the context */
    bool desc32;
    bool prefetch;
    uint16_t qlen;
    uint16_t low;               /* fewer free descriptors: interrupt at once */
    uint32_t dbuff;             /* bytes of one buffer */
    uint32_t rxmax;
    uint64_t base;
    /* places in the ring */
    uint16_t fetch;
    uint16_t head;              /* next to fill */
    /* buffers of prefetched descriptors that are not filled: pos to num */
    uint16_t pos, num;
    uint64_t addr[XL710_PREFETCH];
    /* filled descriptors that are not written back: those before head */
    uint16_t wb_num;
    uint64_t wb[XL710_WB_LINE / 16][4];
} XL710RxQueue;

typedef struct XL710Vector {
    uint8_t pending;            /* one bit an ITR index */
    int64_t next[3];            /* ns: not to fire before, by ITR index */
    int64_t next_any;           /* ns: the rate limit */
    QEMUTimer *timer;
    XL710State *s;
} XL710Vector;

typedef struct XL710VSI {
    bool used;
    uint16_t uplink;
    uint16_t type;
    uint16_t promisc;
    uint8_t info[128];          /* as the driver wrote it, little endian */
    uint8_t lut[64];
    unsigned long *vlan_promisc[3];     /* unicast, multicast, broadcast */
} XL710VSI;

typedef struct XL710MacFilter {
    uint8_t mac[6];
    uint16_t vlan;
    bool any_vlan;
    uint16_t vsi;
} XL710MacFilter;

typedef struct XL710EtypeFilter {
    uint16_t etype;
    uint16_t flags;
    uint16_t vsi;
} XL710EtypeFilter;

/* What the parser found in a packet */
typedef struct XL710Pkt {
    const uint8_t *data;
    uint32_t len;
    bool ip4, ip6, frag, csum_done, ip_bad, l4_bad, udp_zero, ip6_ext;
    uint8_t proto;
    uint8_t pctype;
    uint8_t ptype;
    bool vlan;
    uint16_t tci;
    uint32_t l3, l4, l5;
    uint64_t tsyn;              /* bits of the descriptor */
} XL710Pkt;

typedef struct XL710FdFilter {
    uint32_t fd_id;
    uint16_t queue;
    uint16_t vsi;
    uint8_t dest;
    uint8_t status;
    bool cnt_ena;
    uint16_t cnt_index;
    bool best_effort;
} XL710FdFilter;

struct XL710State {
    PCIDevice parent_obj;

    MemoryRegion csr;
    MemoryRegion msix_bar;
    NICState *nic;
    NICConf conf;
    XL710State *wire;           /* the port at the other end of the cable */

    /* properties */
    bool msi_prop, msix_prop;
    uint32_t num_queues, num_vectors;
    bool sink, gen_seq;
    uint32_t gen_size, gen_flows, gen_line;
    uint64_t gen_rate;
    uint64_t gen_count;
    int64_t knob[XL710_KNOBS];

    uint32_t *regs;
    uint16_t *sr;               /* shadow RAM */

    /* admin queue */
    uint8_t *aq_buf;
    GPtrArray *arq_backlog;
    bool asq_busy;
    bool nvm_owned;

    /* PHY and link */
    bool lse;
    bool an_on;                 /* the link is enabled */
    bool link_up;
    bool training;
    uint16_t phy_mask;
    uint32_t phy_types;
    uint8_t phy_types_ext;
    uint8_t phy_abilities;
    uint8_t phy_speeds;
    uint8_t loopback;
    uint16_t max_frame;
    QEMUTimer *an_timer;
    QEMUTimer *reset_timer;
    uint32_t reset_type;
    QEMUTimer *pfr_timer;
    int64_t pfr_at;             /* ns: when the PF reset is over, or 0 */

    /* switch */
    XL710VSI vsi[XL710_MAX_VSI];
    uint16_t veb_uplink[XL710_MAX_VEB];
    bool veb_used[XL710_MAX_VEB];
    GArray *mac_filters;
    GArray *etype_filters;
    int default_vsi;
    uint16_t udp_tunnel[16];    /* 0: free */
    uint16_t bw_limit;
    uint8_t switch_mode;        /* as the capability says it */

    /* HMC */
    uint64_t *sd;               /* XL710_MAX_SD segment descriptors */
    GHashTable *pd;             /* page descriptors that were read */
    uint8_t *cm_tx, *cm_rx;     /* queue contexts inside the device */
    unsigned long *cm_tx_valid, *cm_rx_valid;   /* written by the driver */

    XL710TxQueue *txq;
    XL710RxQueue *rxq;
    uint8_t *tx_buf;
    uint8_t *seg_buf;
    struct NetRxPkt *parser;

    /* steering */
    GHashTable *fd;
    uint32_t fd_guaranteed, fd_best_effort;

    XL710Vector vec[XL710_MAX_VECTORS];
    bool irq_held;
    DECLARE_BITMAP(irq_wait, XL710_MAX_VECTORS);

    /* IEEE 1588 */
    uint64_t ptp_time;          /* ns of the clock at */
    int64_t ptp_at;             /* this guest time */
    uint64_t ptp_inc;
    bool ptp_tx_full;           /* TXTIME is taken */

    /* generator and sink */
    QEMUTimer *gen_timer;
    int64_t gen_start;
    uint64_t gen_due;           /* packets since gen_start */
    uint32_t gen_flow;
    uint32_t gen_number;
    uint8_t *gen_pkt;
    uint64_t gen_sent, gen_dropped;
    uint64_t sink_packets, sink_bytes;
};

static inline uint32_t xl710_reg(const XL710State *s, uint32_t addr)
{
    return s->regs[addr >> 2];
}

static inline void xl710_set_reg(XL710State *s, uint32_t addr, uint32_t val)
{
    s->regs[addr >> 2] = val;
}

/* Add to a 48-bit counter of which @addr is the low half */
static inline void xl710_count(XL710State *s, uint32_t addr, uint64_t n)
{
    uint64_t v = xl710_reg(s, addr) |
                 (uint64_t)xl710_reg(s, addr + 4) << 32;

    v = (v + n) & MAKE_64BIT_MASK(0, 48);
    xl710_set_reg(s, addr, v);
    xl710_set_reg(s, addr + 4, v >> 32);
}

static inline void xl710_count32(XL710State *s, uint32_t addr, uint32_t n)
{
    s->regs[addr >> 2] += n;
}

/* xl710.c */

/* Start a reset of the PF (RTRIG and FLR do more) */
void xl710_start_pf_reset(XL710State *s);
/* End it, if it is time, whether the timer came or not */
void xl710_pf_reset_catch_up(XL710State *s);
/* Start a core (RTRIG_CORER) or global reset; it ends 100 ms later */
void xl710_start_reset(XL710State *s, uint32_t trigger);
/* The link may have changed: tell both ends */
void xl710_link_update(XL710State *s);
/* Let the PHY negotiate again: the link drops and comes back in 250 ms */
void xl710_link_restart(XL710State *s);
/* A malicious driver event on a queue; the queue stops */
void xl710_mdd_tx(XL710State *s, int q, int event);
void xl710_mdd_rx(XL710State *s, int q, int event);

/* regs.c */
void xl710_regs_init(XL710State *s);
void xl710_regs_reset(XL710State *s, bool core);
uint32_t xl710_reg_read(XL710State *s, uint32_t addr);
void xl710_reg_write(XL710State *s, uint32_t addr, uint32_t val);

/* irq.c */
void xl710_irq_init(XL710State *s);
void xl710_irq_uninit(XL710State *s);
void xl710_irq_reset(XL710State *s);
/* Something happened on a queue: raise its vector, moderated */
void xl710_irq_queue(XL710State *s, int q, bool rx);
/* An Rx queue runs out of descriptors: raise its vector, now */
void xl710_irq_rx_low(XL710State *s, int q);
/* In between, vectors wait to be looked at: all of it happens at once */
void xl710_irq_hold(XL710State *s);
void xl710_irq_release(XL710State *s);
/* Something else happened: set the bit(s) in ICR0, raise vector 0 */
void xl710_irq_other(XL710State *s, uint32_t cause);
void xl710_irq_dyn_write(XL710State *s, int vec, uint32_t val);
uint32_t xl710_irq_icr0_read(XL710State *s);
void xl710_irq_ena_write(XL710State *s, uint32_t val);

/* adminq.c */
void xl710_asq_run(XL710State *s);
void xl710_arq_flush(XL710State *s);
void xl710_aq_reset(XL710State *s);
/* Post an event with @param (16 bytes) on the admin receive queue */
void xl710_arq_post(XL710State *s, uint16_t opcode, const void *param);
/*
 * A command handler: @d is the descriptor, the reply is written over its
 * param; @buf holds the *@len bytes of the indirect buffer and has room for
 * 4096; what *@len says on return is written back if the command is indirect.
 * Returns AQ_RC_*.
 */
typedef uint16_t XL710AQHandler(XL710State *s, XL710AQDesc *d, uint8_t *buf,
                                uint32_t *len);
typedef struct XL710AQCmd {
    uint16_t opcode;
    uint16_t min_len;           /* of the buffer; 0: no buffer needed */
    XL710AQHandler *run;
} XL710AQCmd;
extern const XL710AQCmd xl710_aq_cmds[];
extern const XL710AQCmd xl710_switch_cmds[];

/* aqcmd.c */
void xl710_fill_link_status(XL710State *s, uint8_t *param);

/* nvm.c */
void xl710_nvm_init(XL710State *s);
void xl710_nvm_srctl(XL710State *s, uint32_t val);

/* switch.c */
void xl710_switch_reset(XL710State *s);
/*
 * Which VSIs get a received packet: fills @out (XL710_MAX_VSI entries) and
 * returns how many.
 */
int xl710_switch_rx(XL710State *s, const XL710Pkt *p, uint16_t *out);
/* Queue of the PF that is queue @idx of the VSI, or -1 */
int xl710_vsi_queue(XL710State *s, const XL710VSI *v, unsigned idx);
/* First queue and width (in bits) of the VSI's traffic class 0 */
void xl710_vsi_tc0(const XL710VSI *v, unsigned *off, unsigned *pow);
bool xl710_vsi_strips_vlan(const XL710VSI *v);
/* Does a control packet filter drop this packet on its way out? */
bool xl710_switch_tx_drop(XL710State *s, const uint8_t *data, uint32_t len);

/* hmc.c */
void xl710_hmc_init(XL710State *s);
void xl710_hmc_uninit(XL710State *s);
void xl710_hmc_reset(XL710State *s);
void xl710_hmc_sdcmd(XL710State *s, uint32_t val);
void xl710_hmc_pdinv(XL710State *s, uint32_t val);
/* Read or write a part of a context inside the device (PFCM_LANCTXCTL) */
void xl710_hmc_lanctx(XL710State *s, uint32_t val);
bool xl710_hmc_load_tx(XL710State *s, int q);
bool xl710_hmc_load_rx(XL710State *s, int q);

/* tx.c */
void xl710_tx_init(XL710State *s);
void xl710_tx_uninit(XL710State *s);
void xl710_tx_reset(XL710State *s, bool core);
void xl710_tx_enable(XL710State *s, int q, bool on);
void xl710_tx_pre_disable(XL710State *s, int q, bool on);
/* The tail moved */
void xl710_tx_tail(XL710State *s, int q);
/* Do what was due by now, though the timer may not have come yet */
void xl710_tx_catch_up(XL710State *s, int q);
/* Report all that was sent. Returns whether the driver did not know of it */
bool xl710_tx_write_back(XL710State *s, int q);
/* Queues need not be stuck any more */
void xl710_tx_unstick(XL710State *s);

/* txpkt.c */
/* MDD events; the numbers of the hardware are not in the driver */
enum {
    MDD_TX_BAD_CONTEXT = 1,
    MDD_TX_BAD_TAIL,
    MDD_TX_BAD_DTYPE,
    MDD_TX_BAD_LENGTH,
    MDD_TX_TOO_MANY_DESC,
    MDD_TX_BAD_TSO,
    MDD_TX_BAD_HEADER,
    MDD_TX_BAD_ADDRESS,
};
bool xl710_tx_is_tso(const XL710TxQueue *t);
/*
 * Send the packet whose fragments @t has; @qw1 is of its last descriptor.
 * Returns 0 or an MDD event.
 */
int xl710_tx_packet(XL710State *s, XL710TxQueue *t, int q, uint64_t qw1);

/* rx.c */
void xl710_rx_init(XL710State *s);
void xl710_rx_uninit(XL710State *s);
void xl710_rx_reset(XL710State *s);
void xl710_rx_enable(XL710State *s, int q, bool on);
/* The tail moved */
void xl710_rx_tail(XL710State *s, int q);
/* As those of Tx */
void xl710_rx_catch_up(XL710State *s, int q);
bool xl710_rx_write_back(XL710State *s, int q);
void xl710_rx_unstick(XL710State *s);
/* Descriptors that the driver has posted, and that are not filled */
unsigned xl710_rx_room(const XL710State *s, int q);
/*
 * Receive one frame (without CRC). Returns false if @may_wait and the frame
 * must wait for buffers (flow control), true if it is dealt with.
 */
bool xl710_rx(XL710State *s, const uint8_t *data, uint32_t len, bool may_wait);
/* Count @n such frames as received by the port (dropped later or not) */
void xl710_rx_count(XL710State *s, const uint8_t *data, uint32_t len,
                    uint64_t n);
/* Report a flow director programming error on an Rx queue */
void xl710_rx_prog_status(XL710State *s, int q, uint64_t error, uint32_t fd_id);

/* steer.c */
void xl710_steer_init(XL710State *s);
void xl710_steer_reset(XL710State *s);
void xl710_fd_flush(XL710State *s);
void xl710_parse(XL710State *s, XL710Pkt *p, const uint8_t *data,
                 uint32_t len);
uint32_t xl710_rss_hash(XL710State *s, const XL710Pkt *p);
bool xl710_rss_enabled(XL710State *s, const XL710Pkt *p);
unsigned xl710_rss_lut(XL710State *s, const XL710VSI *v, int vsi,
                       uint32_t hash);
const XL710FdFilter *xl710_fd_lookup(XL710State *s, const XL710Pkt *p);
void xl710_fd_program(XL710State *s, int q, const uint64_t *desc,
                      const uint8_t *data, uint32_t len);

/* ptp.c */
void xl710_ptp_reset(XL710State *s);
/* A packet with TSYN was sent */
void xl710_ptp_sent(XL710State *s);
/* Stamp a received packet. Returns the bits of its descriptor that say so */
uint64_t xl710_ptp_received(XL710State *s, const XL710Pkt *p);
/* Registers, where they are not just stored */
uint32_t xl710_ptp_read_time(XL710State *s);
void xl710_ptp_write_time(XL710State *s, uint32_t high);
void xl710_ptp_set_rate(XL710State *s);
void xl710_ptp_adjust(XL710State *s, uint32_t adj);
uint32_t xl710_ptp_read_stat(XL710State *s);
uint32_t xl710_ptp_read_tx(XL710State *s);
uint32_t xl710_ptp_read_rx(XL710State *s, unsigned i);

/* gen.c */
void xl710_gen_init(XL710State *s);
void xl710_gen_uninit(XL710State *s);
void xl710_gen_update(XL710State *s);
void xl710_gen_build(uint8_t *p, uint32_t len, const uint8_t *mac);
void xl710_gen_set_flow(uint8_t *p, uint32_t flow);

/* knobs.c */
void xl710_knobs_init(XL710State *s);
/* The same as registers */
uint32_t xl710_knob_read(XL710State *s, unsigned knob);
void xl710_knob_write(XL710State *s, unsigned knob, uint32_t val);

#endif
