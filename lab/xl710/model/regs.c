/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Intel XL710: the register file
 *
 * A table lists the registers, the bits that the driver may set, the reset that
 * clears them, and the functions to call on an access. Other addresses read as
 * 0xdeadbeef, as on the hardware.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "qemu/units.h"
#include "trace.h"
#include "xl710.h"

typedef uint32_t RegRead(XL710State *s, unsigned idx, uint32_t addr);
typedef void RegWrite(XL710State *s, unsigned idx, uint32_t addr, uint32_t val);

enum { KEEP, CORE, PF };        /* POR or PCIR; CORER or GLOBR; PFR */

typedef struct RegRange {
    uint32_t base;
    uint16_t count;
    uint16_t stride;
    uint32_t wmask;
    uint8_t reset;
    RegRead *read;
    RegWrite *write;
} RegRange;

#define RW      0xffffffff
#define RO      0

static void atqt_write(XL710State *s, unsigned idx, uint32_t addr, uint32_t val)
{
    xl710_set_reg(s, addr, val & AQLEN_LEN);
    xl710_asq_run(s);
}

static void arqt_write(XL710State *s, unsigned idx, uint32_t addr, uint32_t val)
{
    xl710_set_reg(s, addr, val & AQLEN_LEN);
    xl710_arq_flush(s);
}

static void rtrig_write(XL710State *s, unsigned idx, uint32_t addr,
                        uint32_t val)
{
    xl710_start_reset(s, val);
}

static void pfgen_ctrl_write(XL710State *s, unsigned idx, uint32_t addr,
                             uint32_t val)
{
    if (val & PFGEN_CTRL_PFSWR) {
        xl710_start_pf_reset(s);
    }
}

static uint32_t pfgen_ctrl_read(XL710State *s, unsigned idx, uint32_t addr)
{
    xl710_pf_reset_catch_up(s);
    return xl710_reg(s, addr);
}

/* A free running counter of microseconds */
static uint32_t timer_read(XL710State *s, unsigned idx, uint32_t addr)
{
    return qemu_clock_get_us(QEMU_CLOCK_VIRTUAL);
}

static void srctl_write(XL710State *s, unsigned idx, uint32_t addr,
                        uint32_t val)
{
    xl710_nvm_srctl(s, val);
}

static void sdcmd_write(XL710State *s, unsigned idx, uint32_t addr,
                        uint32_t val)
{
    xl710_hmc_sdcmd(s, val);
}

static void pdinv_write(XL710State *s, unsigned idx, uint32_t addr,
                        uint32_t val)
{
    xl710_hmc_pdinv(s, val);
}

static void lanctxctl_write(XL710State *s, unsigned idx, uint32_t addr,
                            uint32_t val)
{
    xl710_set_reg(s, addr, val);
    xl710_hmc_lanctx(s, val);
}

static void dyn0_write(XL710State *s, unsigned idx, uint32_t addr, uint32_t val)
{
    xl710_irq_dyn_write(s, 0, val);
}

static void dynn_write(XL710State *s, unsigned idx, uint32_t addr, uint32_t val)
{
    if (idx + 1 < s->num_vectors) {
        xl710_irq_dyn_write(s, idx + 1, val);
    }
}

static uint32_t icr0_read(XL710State *s, unsigned idx, uint32_t addr)
{
    return xl710_irq_icr0_read(s);
}

static void icr0_ena_write(XL710State *s, unsigned idx, uint32_t addr,
                           uint32_t val)
{
    xl710_irq_ena_write(s, val);
}

static void qtx_ena_write(XL710State *s, unsigned idx, uint32_t addr,
                          uint32_t val)
{
    xl710_tx_enable(s, idx, val & QENA_REQ);
}

static void qrx_ena_write(XL710State *s, unsigned idx, uint32_t addr,
                          uint32_t val)
{
    xl710_rx_enable(s, idx, val & QENA_REQ);
}

/* Some of a queue's work may be due, though its timer was not served yet */
static uint32_t qtx_ena_read(XL710State *s, unsigned idx, uint32_t addr)
{
    xl710_tx_catch_up(s, idx);
    return xl710_reg(s, addr);
}

static uint32_t qrx_ena_read(XL710State *s, unsigned idx, uint32_t addr)
{
    xl710_rx_catch_up(s, idx);
    return xl710_reg(s, addr);
}

static void qdis_write(XL710State *s, unsigned idx, uint32_t addr, uint32_t val)
{
    unsigned q = idx * QDIS_BLOCK + (val & QDIS_QINDX);

    xl710_set_reg(s, addr, val & QDIS_QINDX);
    if (q < s->num_queues && val & (QDIS_SET | QDIS_CLEAR)) {
        xl710_tx_pre_disable(s, q, val & QDIS_SET);
    }
}

static uint32_t qtx_head_read(XL710State *s, unsigned idx, uint32_t addr)
{
    xl710_tx_catch_up(s, idx);
    return s->txq[idx].head;
}

static void qtx_tail_write(XL710State *s, unsigned idx, uint32_t addr,
                           uint32_t val)
{
    xl710_set_reg(s, addr, val & 0x1fff);
    xl710_tx_tail(s, idx);
}

static void qrx_tail_write(XL710State *s, unsigned idx, uint32_t addr,
                           uint32_t val)
{
    xl710_set_reg(s, addr, val & 0x1fff);
    xl710_rx_tail(s, idx);
}

/* Written with anything but 0, a flow director counter starts again */
static void pcnt_write(XL710State *s, unsigned idx, uint32_t addr, uint32_t val)
{
    if (val) {
        xl710_set_reg(s, addr, 0);
    }
}

static void w1c_write(XL710State *s, unsigned idx, uint32_t addr, uint32_t val)
{
    xl710_set_reg(s, addr, xl710_reg(s, addr) & ~val);
}

static void ctl1_write(XL710State *s, unsigned idx, uint32_t addr, uint32_t val)
{
    if (val & 1) {
        xl710_fd_flush(s);
    }
}

static uint32_t fdstat_read(XL710State *s, unsigned idx, uint32_t addr)
{
    return s->fd_guaranteed | s->fd_best_effort << 16;
}

static uint32_t fdcnt_read(XL710State *s, unsigned idx, uint32_t addr)
{
    return s->fd_guaranteed | s->fd_best_effort << 13;
}

static void tsyn_ctl0_write(XL710State *s, unsigned idx, uint32_t addr,
                            uint32_t val)
{
    xl710_set_reg(s, addr, val & 0x80000006);
    xl710_ptp_set_rate(s);
}

static void tsyn_inc_write(XL710State *s, unsigned idx, uint32_t addr,
                           uint32_t val)
{
    xl710_set_reg(s, addr, val);
    xl710_ptp_set_rate(s);
}

static uint32_t tsyn_time_read(XL710State *s, unsigned idx, uint32_t addr)
{
    return xl710_ptp_read_time(s);
}

static void tsyn_time_write(XL710State *s, unsigned idx, uint32_t addr,
                            uint32_t val)
{
    xl710_ptp_write_time(s, val);
}

static void tsyn_adj_write(XL710State *s, unsigned idx, uint32_t addr,
                           uint32_t val)
{
    xl710_ptp_adjust(s, val);
}

static uint32_t tsyn_stat_read(XL710State *s, unsigned idx, uint32_t addr)
{
    return xl710_ptp_read_stat(s);
}

static uint32_t tsyn_tx_read(XL710State *s, unsigned idx, uint32_t addr)
{
    return xl710_ptp_read_tx(s);
}

static uint32_t tsyn_rx_read(XL710State *s, unsigned idx, uint32_t addr)
{
    return xl710_ptp_read_rx(s, idx);
}

static uint32_t knob_read(XL710State *s, unsigned idx, uint32_t addr)
{
    return xl710_knob_read(s, idx);
}

static void knob_write(XL710State *s, unsigned idx, uint32_t addr, uint32_t val)
{
    xl710_knob_write(s, idx, val);
}

static const RegRange ranges[] = {
    /* admin queue */
    { PF_ATQBAL, 1, 4, 0xffffffc0, PF },
    { PF_ARQBAL, 1, 4, 0xffffffc0, PF },
    { PF_ATQBAH, 1, 4, RW, PF },
    { PF_ARQBAH, 1, 4, RW, PF },
    { PF_ATQLEN, 1, 4, 0xf00003ff, PF },
    { PF_ARQLEN, 1, 4, 0xf00003ff, PF },
    { PF_ATQH, 1, 4, AQLEN_LEN, PF },
    { PF_ARQH, 1, 4, AQLEN_LEN, PF },
    { PF_ATQT, 1, 4, RW, PF, NULL, atqt_write },
    { PF_ARQT, 1, 4, RW, PF, NULL, arqt_write },

    /* data centre bridging and packet buffer: stored */
    { 0x00083000, 1, 4, RW, CORE },             /* PRTDCB_GENC */
    { 0x00083020, 1, 4, RO, CORE },             /* PRTDCB_GENS */
    { 0x00098060, 1, 4, RW, CORE },             /* PRTDCB_TETSC_TPB */
    { 0x000a0040, 8, 32, RW, CORE },            /* PRTDCB_TCMSTC */
    { 0x000a0180, 1, 4, RW, CORE },             /* PRTDCB_TDPMC */
    { 0x000a2040, 8, 32, RW, CORE },            /* PRTDCB_TCWSTC */
    { 0x000a21a0, 1, 4, RW, CORE },             /* PRTDCB_TCPMC */
    { 0x000ac100, 8, 32, RW, CORE },            /* PRTRPB_DHW */
    { 0x000ac220, 8, 32, RW, CORE },            /* PRTRPB_DLW */
    { 0x000ac320, 8, 32, RW, CORE },            /* PRTRPB_DPS */
    { 0x000ac480, 8, 32, RW, CORE },            /* PRTRPB_SHT */
    { 0x000ac580, 1, 4, RW, CORE },             /* PRTRPB_SHW */
    { 0x000ac5a0, 8, 32, RW, CORE },            /* PRTRPB_SLT */
    { 0x000ac6a0, 1, 4, RW, CORE },             /* PRTRPB_SLW */
    { 0x000ac7c0, 1, 4, RW, CORE },             /* PRTRPB_SPS */
    { 0x000ae060, 1, 4, RW, CORE },             /* PRTDCB_TETSC_TCB */
    { 0x00122180, 8, 32, RW, CORE },            /* PRTDCB_RETSTCC */
    { 0x001223a0, 1, 4, RW, CORE },             /* PRTDCB_RPPMC */
    { 0x001223e0, 1, 4, RW, CORE },             /* PRTDCB_RETSC */
    { 0x00122400, 8, 32, RW, CORE },            /* PRTDCB_RUPTQ */
    { 0x001c0980, 1, 4, RW, CORE },             /* PRTDCB_TC2PFC */
    { 0x001c09a0, 1, 4, RW, CORE },             /* PRTDCB_RUP2TC */
    { 0x001c0b00, 1, 4, RW, CORE },             /* PRTDCB_RUP */
    { 0x001e2400, 1, 4, RW, CORE },             /* PRTDCB_MFLCN */
    { 0x001e30c0, 1, 4, RW, CORE },             /* PRTMAC_HSEC_RX_PAUSE */
    { 0x001e30d0, 1, 4, RW, CORE },             /* PRTMAC_HSEC_TX_PAUSE */
    { 0x001e3260, 1, 4, RW, CORE },             /* PRTMAC_HSEC_GPP */
    { 0x001e32e0, 1, 4, RW, CORE },             /* PRTMAC_HSEC_PPP */
    { 0x001e3400, 9, 16, RW, CORE },            /* PRTMAC_HSEC_TX_REFRESH */
    { 0x001e4560, 1, 4, RO, CORE },             /* PRTDCB_TFCS */
    { 0x001e4640, 1, 4, RW, CORE },             /* PRTDCB_FCCFG */
    { 0x001e4660, 8, 32, RW, CORE },            /* PRTDCB_TPFCTS */
    { 0x0026cd00, 1, 4, RW, CORE },             /* PRT_SWR_PM_THR */

    /* general, NVM, PCI */
    { 0x00083048, 1, 4, RO, KEEP },             /* GL_FWSTS */
    { GLGEN_GPIO_CTL(0), 30, 4, RW, KEEP },
    { 0x00088184, 1, 4, RW, KEEP },             /* GLGEN_GPIO_SET */
    { 0x0008818c, 4, 4, 0x7fffffff, KEEP },     /* GLGEN_MSCA */
    { 0x0008819c, 4, 4, 0x0000ffff, KEEP },     /* GLGEN_MSRWD */
    { 0x000881c0, 4, 4, RW, KEEP },             /* GLGEN_MDIO_I2C_SEL */
    { GLVFGEN_TIMER, 1, 4, RO, KEEP, timer_read },
    { PFGEN_CTRL, 1, 4, RW, KEEP, pfgen_ctrl_read, pfgen_ctrl_write },
    { 0x00092600, 4, 4, RW, CORE },             /* GLGEN_VFLRSTAT */
    { PF_FUNC_RID, 1, 4, RO, KEEP },
    { PF_PCI_CIAA, 1, 4, RW, KEEP },
    { PF_PCI_CIAD, 1, 4, RO, KEEP },
    { GLNVM_ULD, 1, 4, RO, KEEP },
    { GLNVM_GENS, 1, 4, RO, KEEP },
    { GLNVM_FLA, 1, 4, RO, KEEP },
    { GLNVM_SRCTL, 1, 4, RW, KEEP, NULL, srctl_write },
    { GLNVM_SRDATA, 1, 4, RO, KEEP },
    { 0x000b612c, 1, 4, RO, KEEP },             /* GLGEN_STAT */
    { 0x000b8080, 1, 4, RW, KEEP },             /* PFPM_APM */
    { 0x000b8100, 1, 4, RO, KEEP },             /* PRTGEN_STATUS */
    { PRTGEN_CNF(0), 4, 4, RO, KEEP },
    { GLGEN_RSTCTL, 1, 4, 0x3f, KEEP },
    { GLGEN_RSTAT, 1, 4, RO, KEEP },
    { GLGEN_RTRIG, 1, 4, RW, CORE, NULL, rtrig_write },
    { PFPCI_SUBSYSID, 1, 4, RO, KEEP },
    { 0x000be484, 1, 4, RO, KEEP },             /* GLPCI_LBARCTRL */
    { GLPCI_CNF2, 1, 4, RO, KEEP },
    { 0x000be4a8, 1, 4, RO, KEEP },             /* GLPCI_CAPSUP */
    { 0x0006b400, 1, 4, RW, KEEP },             /* PFPM_WUFC */
    { PFGEN_PORTNUM, 1, 4, RO, KEEP },
    { GLGEN_PCIFCNCNT, 1, 4, RO, KEEP },
    { 0x001c0500, 1, 4, RO, KEEP },             /* PF_VT_PFALLOC: no VFs */
    { PRTGL_SAL, 1, 4, RW, KEEP },
    { PRTGL_SAH, 1, 4, RW, KEEP },
    { 0x001e4320, 1, 4, RO, KEEP },             /* PRTPM_EEE_STAT */
    { 0x001e43a0, 1, 4, RO, KEEP },             /* PRTPM_RLPIC */
    { 0x001e43c0, 1, 4, RO, KEEP },             /* PRTPM_TLPIC */

    /* IEEE 1588: PF 0 has it; events and outputs are stored */
    { PRTTSYN_CTL0, 1, 4, RW, CORE, NULL, tsyn_ctl0_write },
    { PRTTSYN_CTL1, 1, 4, 0x8f0f00ff, CORE },
    { PRTTSYN_STAT_0, 1, 4, RO, CORE, tsyn_stat_read },
    { PRTTSYN_STAT_1, 1, 4, RO, CORE },
    { PRTTSYN_INC_L, 1, 4, RW, CORE },
    { PRTTSYN_INC_H, 1, 4, RW, CORE, NULL, tsyn_inc_write },
    { 0x001e4080, 2, 32, RO, CORE },            /* PRTTSYN_EVNT_L */
    { 0x001e40c0, 2, 32, RO, CORE },            /* PRTTSYN_EVNT_H */
    { PRTTSYN_TIME_L, 1, 4, RW, CORE, tsyn_time_read },
    { PRTTSYN_TIME_H, 1, 4, RW, CORE, NULL, tsyn_time_write },
    { 0x001e4140, 2, 32, RW, CORE },            /* PRTTSYN_TGT_L */
    { 0x001e4180, 2, 32, RW, CORE },            /* PRTTSYN_TGT_H */
    { PRTTSYN_TXTIME_L, 1, 4, RO, CORE },
    { PRTTSYN_TXTIME_H, 1, 4, RO, CORE, tsyn_tx_read },
    { PRTTSYN_RXTIME_L(0), PTP_RX_TIMES, 32, RO, CORE },
    { PRTTSYN_RXTIME_H(0), PTP_RX_TIMES, 32, RO, CORE, tsyn_rx_read },
    { 0x001e4240, 2, 32, RW, CORE },            /* PRTTSYN_CLKO */
    { PRTTSYN_ADJ, 1, 4, RW, CORE, NULL, tsyn_adj_write },
    { 0x001e42a0, 2, 32, RW, CORE },            /* PRTTSYN_AUX_0 */
    { 0x001e42e0, 2, 32, RW, CORE },            /* PRTTSYN_AUX_1 */

    /* host memory cache */
    { PFHMC_SDCMD, 1, 4, RW, PF, NULL, sdcmd_write },
    { PFHMC_SDDATALOW, 1, 4, RW, PF },
    { PFHMC_SDDATAHIGH, 1, 4, RW, PF },
    { PFHMC_PDINV, 1, 4, RW, PF, NULL, pdinv_write },
    { PFHMC_ERRORINFO, 1, 4, RW, PF },
    { PFHMC_ERRORDATA, 1, 4, RW, PF },
    { GLHMC_LANTXOBJSZ, 6, 4, RO, KEEP },
    { GLHMC_FCOEFMAX, 1, 4, RO, KEEP },
    { GLHMC_LANTXBASE, 512, 4, 0x00ffffff, CORE },      /* all BASE and CNT */
    { PFCM_LANCTXDATA(0), 4, 128, RW, CORE },
    { PFCM_LANCTXCTL, 1, 4, RW, CORE, NULL, lanctxctl_write },
    { PFCM_LANCTXSTAT, 1, 4, RO, CORE },

    /* interrupts */
    { PFINT_ITRN(0, 0), 1536, 4, 0xfff, PF },
    { PFINT_DYN_CTLN(0), 512, 4, RW, PF, NULL, dynn_write },
    { PFINT_LNKLSTN(0), 512, 4, 0x1fff, PF },
    { PFINT_RATEN(0), 512, 4, 0x7f, PF },
    { 0x00036800, 512, 4, RW, CORE },           /* PFINT_CEQCTL */
    { PFINT_ITR0(0), 3, 128, 0xfff, PF },
    { PFINT_STAT_CTL0, 1, 4, 0xc, CORE },
    { PFINT_DYN_CTL0, 1, 4, RW, PF, NULL, dyn0_write },
    { PFINT_LNKLST0, 1, 4, 0x1fff, PF },
    { 0x00038700, 1, 4, RW, CORE },             /* PFINT_AEQCTL */
    { PFINT_ICR0, 1, 4, RO, CORE, icr0_read },
    { PFINT_ICR0_ENA, 1, 4, 0xfffffffe, CORE, NULL, icr0_ena_write },
    { QINT_RQCTL(0), 1536, 4, 0x7fffffff, CORE },
    { QINT_TQCTL(0), 1536, 4, 0x7fffffff, CORE },
    { 0x0003f100, 1, 4, RW, CORE },             /* PFGEN_PORTMDIO_NUM */
    { 0x0003f800, 1, 4, RW, CORE },             /* GLINT_CTL */

    /* queues */
    { GLLAN_TSOMSK_F, 3, 4, 0xfff, CORE },
    { QTX_HEAD(0), 1536, 4, RO, CORE, qtx_head_read },
    { REG_MSS, 1, 4, 0x03ff0000, CORE },
    { GLLAN_TXPRE_QDIS(0), 12, 4, RW, CORE, NULL, qdis_write },
    { QTX_ENA(0), 1536, 4, RW, PF, qtx_ena_read, qtx_ena_write },
    { QTX_CTL(0), 1536, 4, 0x0000ffff, CORE },
    { QTX_TAIL(0), 1536, 4, RW, PF, NULL, qtx_tail_write },
    { QRX_ENA(0), 1536, 4, RW, PF, qrx_ena_read, qrx_ena_write },
    { QRX_TAIL(0), 1536, 4, RW, CORE, NULL, qrx_tail_write },
    { GLLAN_RCTL_0, 1, 4, 0x1, CORE },
    { PFLAN_QALLOC, 1, 4, RO, KEEP },
    { 0x00200000, 4096, 4, RW, PF },            /* VSILAN_QTABLE */
    { 0x0020c800, 384, 4, RW, PF },             /* VSILAN_QBASE */

    /* malicious driver detection */
    { PF_MDET_TX, 1, 4, RW, CORE, NULL, w1c_write },
    { GL_MDET_TX, 1, 4, RW, CORE, NULL, w1c_write },
    { PF_MDET_RX, 1, 4, RW, CORE, NULL, w1c_write },
    { GL_MDET_RX, 1, 4, RW, CORE, NULL, w1c_write },

    /* steering */
    { PFQF_CTL_0, 1, 4, 0x000fffff, CORE },
    { PFQF_HLUT(0), 128, 128, 0x3f3f3f3f, CORE },
    { PFQF_HKEY(0), 13, 128, RW, CORE },
    { PFQF_HENA(0), 2, 128, RW, CORE },
    { PFQF_CTL_1, 1, 4, RW, CORE, NULL, ctl1_write },
    { PFQF_FDSTAT, 1, 4, RO, CORE, fdstat_read },
    { PRTQF_FD_INSET(0, 0), 128, 32, RW, KEEP },
    { PRTQF_FLX_PIT(0), 9, 32, 0xffff, KEEP },
    { GLQF_PCNT(0), 512, 4, RW, CORE, NULL, pcnt_write },
    { GLQF_HASH_INSET(0, 0), 128, 4, RW, KEEP },
    { 0x00268900, 64, 4, RW, KEEP },            /* GLQF_ORT */
    { GLQF_FDCNT_0, 1, 4, RO, CORE, fdcnt_read },
    { GLQF_HKEY(0), 13, 4, RW, KEEP },
    { 0x00270384, 2, 4, RW, CORE },             /* GLQF_FDEVICTENA */

    /* statistics; the driver takes differences, only a core reset clears */
    { GLPRT_STATS, GLPRT_STATS_WORDS, 4, RO, CORE },
    { GLV_RDPC(0), 768, 4, RO, CORE },
    { GL_RXERR1(0), 288, 4, RO, CORE },
    { GLV_GOTC(0), 768, 4, RO, CORE },
    { 0x0032c000, 32, 4, RO, CORE },            /* GLSW_GOTC */
    { 0x00334000, 1024, 4, RO, CORE },          /* GLVEBTC_TBC */
    { 0x00338000, 1024, 4, RO, CORE },          /* GLVEBTC_TPC */
    { GLV_UPTC(0), 768, 4, RO, CORE },
    { GLV_MPTC(0), 768, 4, RO, CORE },
    { GLV_BPTC(0), 768, 4, RO, CORE },
    { 0x00340000, 96, 4, RO, CORE },            /* GLSW_{UPTC,MPTC,BPTC} */
    { GLV_TEPC(0), 768, 4, RO, CORE },
    { 0x00348000, 32, 4, RO, CORE },            /* GLSW_TDPC */
    { GLV_GORC(0), 768, 4, RO, CORE },
    { 0x0035c000, 32, 4, RO, CORE },            /* GLSW_GORC */
    { 0x00364000, 1024, 4, RO, CORE },          /* GLVEBTC_RBC */
    { 0x00368000, 1024, 4, RO, CORE },          /* GLVEBTC_RPC */
    { GLV_UPRC(0), 768, 4, RO, CORE },
    { GLV_MPRC(0), 768, 4, RO, CORE },
    { GLV_BPRC(0), 768, 4, RO, CORE },
    { GLV_RUPP(0), 768, 4, RO, CORE },
    { 0x00370000, 128, 4, RO, CORE },           /* GLSW_{UPRC,MPRC,BPRC,RUPP} */
    { 0x00390004, 1, 4, RW, CORE },             /* GLGEN_STAT_CLEAR */

    { XL710_KNOB(0), XL710_KNOBS, 4, RW, KEEP, knob_read, knob_write },
};

/* For each 32-bit word of the BAR, 1 + the index of its range, or 0 */
static uint8_t *range_of;

static void range_map_init(void)
{
    unsigned i, j;

    QEMU_BUILD_BUG_ON(ARRAY_SIZE(ranges) > 255);
    if (range_of) {
        return;
    }
    range_of = g_malloc0(XL710_CSR_SIZE / 4);
    for (i = 0; i < ARRAY_SIZE(ranges); i++) {
        for (j = 0; j < ranges[i].count; j++) {
            uint32_t addr = ranges[i].base + j * ranges[i].stride;

            assert(!range_of[addr >> 2]);
            range_of[addr >> 2] = i + 1;
        }
    }
}

void xl710_regs_reset(XL710State *s, bool core)
{
    unsigned i, j;

    for (i = 0; i < ARRAY_SIZE(ranges); i++) {
        if (ranges[i].reset == PF || (core && ranges[i].reset == CORE)) {
            for (j = 0; j < ranges[i].count; j++) {
                xl710_set_reg(s, ranges[i].base + j * ranges[i].stride, 0);
            }
        }
    }
    if (core) {
        /* TCP flags that segments do not have: first, middle, last */
        xl710_set_reg(s, GLLAN_TSOMSK_F, 0x009);        /* FIN, PSH */
        xl710_set_reg(s, GLLAN_TSOMSK_M, 0x089);        /* and CWR */
        xl710_set_reg(s, GLLAN_TSOMSK_L, 0x080);        /* CWR */
        xl710_set_reg(s, REG_MSS, 88 << REG_MSS_MIN_S);
    }
}

void xl710_regs_init(XL710State *s)
{
    range_map_init();
    s->regs = g_malloc0(XL710_CSR_SIZE);

    xl710_set_reg(s, GLGEN_RSTCTL, 1);                  /* 100 ms */
    xl710_set_reg(s, GLNVM_ULD, ULD_CONF_DONE);
    xl710_set_reg(s, GLNVM_GENS, 6 << 5);               /* 64 KiB */
    xl710_set_reg(s, GLNVM_FLA, FLA_LOCKED);
    xl710_set_reg(s, GLNVM_SRCTL, SRCTL_DONE);
    xl710_set_reg(s, GLPCI_CNF2, s->num_vectors << 2);
    xl710_set_reg(s, PFPCI_SUBSYSID, 0x0002);
    xl710_set_reg(s, GLGEN_PCIFCNCNT, 1);
    xl710_set_reg(s, PRTGEN_CNF(1), 1);                 /* one port only */
    xl710_set_reg(s, PRTGEN_CNF(2), 1);
    xl710_set_reg(s, PRTGEN_CNF(3), 1);
    xl710_set_reg(s, PFLAN_QALLOC, (s->num_queues - 1) << 16 | 1u << 31);
    xl710_set_reg(s, PRTGL_SAL, ldl_le_p(s->conf.macaddr.a));
    xl710_set_reg(s, PRTGL_SAH, XL710_MAX_FRAME << 16 |
                                lduw_le_p(s->conf.macaddr.a + 4));
    xl710_set_reg(s, GLHMC_LANTXOBJSZ, 7);              /* 128 bytes */
    xl710_set_reg(s, GLHMC_LANQMAX, XL710_MAX_QUEUES);
    xl710_set_reg(s, GLHMC_LANRXOBJSZ, 5);              /* 32 bytes */
    xl710_set_reg(s, GLHMC_FCOEDDPOBJSZ, 6);
    xl710_set_reg(s, GLHMC_FCOEFOBJSZ, 6);
    xl710_set_reg(s, GLHMC_FCOEMAX, 0x1000);
    xl710_set_reg(s, GLHMC_FCOEFMAX, 0x2000);
}

static const RegRange *find_range(uint32_t addr)
{
    uint8_t r = addr < XL710_CSR_SIZE ? range_of[addr >> 2] : 0;

    return r ? &ranges[r - 1] : NULL;
}

uint32_t xl710_reg_read(XL710State *s, uint32_t addr)
{
    const RegRange *range = find_range(addr);
    uint32_t val;

    if (!range) {
        qemu_log_mask(LOG_UNIMP, "xl710: read of register 0x%x\n", addr);
        return 0xdeadbeef;
    }
    if (range->read) {
        val = range->read(s, (addr - range->base) / range->stride, addr);
    } else {
        val = xl710_reg(s, addr);
    }
    trace_xl710_reg_read(addr, val);
    return val;
}

void xl710_reg_write(XL710State *s, uint32_t addr, uint32_t val)
{
    const RegRange *range = find_range(addr);

    trace_xl710_reg_write(addr, val);
    if (!range) {
        qemu_log_mask(LOG_UNIMP, "xl710: write of register 0x%x = 0x%x\n",
                      addr, val);
        return;
    }
    if (range->write) {
        range->write(s, (addr - range->base) / range->stride, addr, val);
    } else {
        val &= range->wmask;
        val |= xl710_reg(s, addr) & ~range->wmask;
        xl710_set_reg(s, addr, val);
    }
}
