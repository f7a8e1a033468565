/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Intel XL710: register offsets, fields, descriptor and admin queue constants
 *
 * The numbers are facts of the hardware, taken from what the Linux driver
 * knows of it (drivers/net/ethernet/intel/i40e/):
 *   registers                i40e_register.h
 *   descriptors, pctypes     i40e_type.h
 *   admin queue              i40e_adminq_cmd.h
 *   queue contexts           i40e_lan_hmc.c
 *   packet types             ../libie/rx.c
 * The names are those of the driver without the I40E_ prefix, so that either
 * side finds the other with grep.
 */
#ifndef XL710_REGS_H
#define XL710_REGS_H

/* Admin queue rings */
#define PF_ATQBAL               0x00080000
#define PF_ARQBAL               0x00080080
#define PF_ATQBAH               0x00080100
#define PF_ARQBAH               0x00080180
#define PF_ATQLEN               0x00080200
#define PF_ARQLEN               0x00080280
#define PF_ATQH                 0x00080300
#define PF_ARQH                 0x00080380
#define PF_ATQT                 0x00080400
#define PF_ARQT                 0x00080480
#define   AQLEN_LEN             0x000003ff
#define   AQLEN_VFE             (1u << 28)
#define   AQLEN_OVFL            (1u << 29)
#define   AQLEN_CRIT            (1u << 30)
#define   AQLEN_ENABLE          (1u << 31)

/* Reset, ports, NVM */
#define GLGEN_RSTAT             0x000b8188
#define   RSTAT_DEVSTATE        0x3
#define   RSTAT_RESET_TYPE_S    2
#define GLGEN_RSTCTL            0x000b8180
#define GLGEN_RTRIG             0x000b8190
#define   RTRIG_CORER           0x1
#define   RTRIG_GLOBR           0x2
#define PFGEN_CTRL              0x00092400
#define   PFGEN_CTRL_PFSWR      0x1
#define PFGEN_PORTNUM           0x001c0480
#define PRTGEN_CNF(i)           (0x000b8120 + (i) * 4)
#define GLGEN_PCIFCNCNT         0x001c0ab4
#define GLGEN_GPIO_CTL(i)       (0x00088100 + (i) * 4)
#define GLVFGEN_TIMER           0x000881bc
#define GLNVM_ULD               0x000b6008
#define   ULD_CONF_DONE         0x18
#define GLNVM_GENS              0x000b6100
#define GLNVM_FLA               0x000b6108
#define   FLA_LOCKED            (1u << 6)
#define GLNVM_SRCTL             0x000b6110
#define   SRCTL_ADDR_S          14
#define   SRCTL_START           (1u << 30)
#define   SRCTL_DONE            (1u << 31)
#define GLNVM_SRDATA            0x000b6114
#define GLPCI_CNF2              0x000be494
#define PF_FUNC_RID             0x0009c000
#define PF_PCI_CIAA             0x0009c080
#define PF_PCI_CIAD             0x0009c100
#define PFPCI_SUBSYSID          0x000be100
#define PFLAN_QALLOC            0x001c0400
#define GLLAN_RCTL_0            0x0012a500
#define PRTGL_SAL               0x001e2120
#define PRTGL_SAH               0x001e2140
/* IEEE 1588 */
#define PRTTSYN_CTL0            0x001e4200
#define   CTL0_TXTIME_INT_ENA   (1u << 1)
#define   TSYNENA               (1u << 31)      /* of both CTL0 and CTL1 */
#define PRTTSYN_CTL1            0x00085020
#define   CTL1_V2TYPE_S         16
#define   CTL1_TYPE_S           24
#define   CTL1_TYPE_V2          2
#define   CTL1_UDP_319          (1u << 26)
#define PRTTSYN_STAT_0          0x001e4220
#define   STAT_0_TXTIME         (1u << 4)
#define PRTTSYN_STAT_1          0x00085140
#define PRTTSYN_INC_L           0x001e4040
#define PRTTSYN_INC_H           0x001e4060
#define PRTTSYN_TIME_L          0x001e4100
#define PRTTSYN_TIME_H          0x001e4120
#define PRTTSYN_ADJ             0x001e4280
#define   ADJ_NS                0x3fffffff
#define   ADJ_MINUS             (1u << 31)
#define PRTTSYN_TXTIME_L        0x001e41c0
#define PRTTSYN_TXTIME_H        0x001e41e0
#define PRTTSYN_RXTIME_H(i)     (0x00085040 + (i) * 32)
#define PRTTSYN_RXTIME_L(i)     (0x000850c0 + (i) * 32)
#define   PTP_RX_TIMES          4
#define REG_MSS                 0x000e64dc
#define   REG_MSS_MIN_S         16
#define GLLAN_TSOMSK_F          0x000442d8
#define GLLAN_TSOMSK_M          0x000442dc
#define GLLAN_TSOMSK_L          0x000442e0

/* HMC */
#define GLHMC_LANTXOBJSZ        0x000c2004
#define GLHMC_LANQMAX           0x000c2008
#define GLHMC_LANRXOBJSZ        0x000c200c
#define GLHMC_FCOEDDPOBJSZ      0x000c2010
#define GLHMC_FCOEMAX           0x000c2014
#define GLHMC_FCOEFOBJSZ        0x000c2018
#define GLHMC_FCOEFMAX          0x000c20d0
#define GLHMC_LANTXBASE         0x000c6200
#define GLHMC_LANTXCNT          0x000c6300
#define GLHMC_LANRXBASE         0x000c6400
#define GLHMC_LANRXCNT          0x000c6500
#define PFHMC_SDCMD             0x000c0000
#define   SDCMD_WR              (1u << 31)
#define   SDCMD_IDX             0xfff
#define PFHMC_SDDATALOW         0x000c0100
#define   SDDATALOW_VALID       0x1
#define   SDDATALOW_DIRECT      0x2
#define PFHMC_SDDATAHIGH        0x000c0200
#define PFHMC_PDINV             0x000c0300
#define   PDINV_SD              0xfff
#define   PDINV_PD_S            16
#define   PDINV_PD              0x1ff
#define PFHMC_ERRORINFO         0x000c0400
#define PFHMC_ERRORDATA         0x000c0500

/* Queue contexts inside the device; the driver of iPXE writes them there */
#define PFCM_LANCTXDATA(i)      (0x0010c100 + (i) * 128)
#define PFCM_LANCTXCTL          0x0010c300
#define   LANCTXCTL_QUEUE       0xfff
#define   LANCTXCTL_LINE_S      12
#define   LANCTXCTL_LINE        0x7
#define   LANCTXCTL_TYPE_S      15
#define   LANCTXCTL_OP_S        17
#define   LANCTXCTL_OP_READ     0
#define   LANCTXCTL_OP_WRITE    1
#define PFCM_LANCTXSTAT         0x0010c380
#define   LANCTXSTAT_DONE       0x1
#define   LANCTXSTAT_MISS       0x2

/* Interrupts */
#define PFINT_ITRN(i, n)        (0x00030000 + (i) * 2048 + (n) * 4)
#define PFINT_DYN_CTLN(n)       (0x00034800 + (n) * 4)
#define PFINT_LNKLSTN(n)        (0x00035000 + (n) * 4)
#define PFINT_RATEN(n)          (0x00035800 + (n) * 4)
#define   RATEN_INTERVAL        0x3f
#define   RATEN_ENA             (1u << 6)
#define PFINT_ITR0(i)           (0x00038000 + (i) * 128)
#define PFINT_STAT_CTL0         0x00038400
#define PFINT_DYN_CTL0          0x00038480
#define   DYN_INTENA            (1u << 0)
#define   DYN_CLEARPBA          (1u << 1)
#define   DYN_SWINT_TRIG        (1u << 2)
#define   DYN_ITR_INDX_S        3
#define   DYN_INTERVAL_S        5
#define   DYN_INTERVAL_M        0xfff
#define   DYN_SW_ITR_ENA        (1u << 24)
#define   DYN_SW_ITR_S          25
#define   DYN_INTENA_MSK        (1u << 31)
#define PFINT_LNKLST0           0x00038500
#define   LNKLST_FIRSTQ         0x7ff
#define   LNKLST_TYPE_S         11
#define   QUEUE_TYPE_RX         0
#define   QUEUE_TYPE_TX         1
#define PFINT_ICR0              0x00038780
#define   ICR0_INTEVENT         (1u << 0)
#define   ICR0_QUEUE_0          (1u << 1)
#define   ICR0_MAL_DETECT       (1u << 19)
#define   ICR0_GRST             (1u << 20)
#define   ICR0_PCI_EXCEPTION    (1u << 21)
#define   ICR0_TIMESYNC         (1u << 23)
#define   ICR0_HMC_ERR          (1u << 26)
#define   ICR0_ADMINQ           (1u << 30)
#define   ICR0_SWINT            (1u << 31)
#define PFINT_ICR0_ENA          0x00038800
#define QINT_RQCTL(q)           (0x0003a000 + (q) * 4)
#define QINT_TQCTL(q)           (0x0003c000 + (q) * 4)
#define   QINT_MSIX_INDX        0xff
#define   QINT_ITR_INDX_S       11
#define   QINT_MSIX0_INDX_S     13
#define   QINT_NEXTQ_S          16
#define   QINT_NEXTQ_TYPE_S     27
#define   QINT_CAUSE_ENA        (1u << 30)
#define   QINT_INTEVENT         (1u << 31)

/* Queues */
#define QTX_HEAD(q)             (0x000e4000 + (q) * 4)
#define QTX_ENA(q)              (0x00100000 + (q) * 4)
#define QTX_CTL(q)              (0x00104000 + (q) * 4)
#define   QTX_CTL_PFVF          0x3
#define   QTX_CTL_VM            0x1
#define   QTX_CTL_PF            0x2
#define   QTX_CTL_PF_INDX       0x3c
#define   QTX_CTL_VM_INDX_S     7
#define   QTX_CTL_VM_INDX       0x1ff
#define QTX_TAIL(q)             (0x00108000 + (q) * 4)
#define QRX_ENA(q)              (0x00120000 + (q) * 4)
#define QRX_TAIL(q)             (0x00128000 + (q) * 4)
#define   QENA_REQ              0x1
#define   QENA_STAT             0x4
#define GLLAN_TXPRE_QDIS(i)     (0x000e6500 + (i) * 4)
#define   QDIS_QINDX            0x7ff
#define   QDIS_BLOCK            128
#define   QDIS_SET              (1u << 30)
#define   QDIS_CLEAR            (1u << 31)

/* Malicious driver detection */
#define PF_MDET_TX              0x000e6400
#define GL_MDET_TX              0x000e6480
#define   MDET_TX_PF_S          21
#define   MDET_TX_EVENT_S       25
#define   MDET_TX_VALID         (1u << 31)
#define PF_MDET_RX              0x0012a400
#define GL_MDET_RX              0x0012a510
#define   MDET_RX_EVENT_S       8
#define   MDET_RX_QUEUE_S       17
#define   MDET_RX_VALID         (1u << 31)

/* Steering */
#define PFQF_CTL_0              0x001c0ac0
#define   CTL_0_HASHLUTSIZE_512 (1u << 16)
#define   CTL_0_FD_ENA          (1u << 17)
#define PFQF_CTL_1              0x00245d80
#define PFQF_FDSTAT             0x00246380
#define GLQF_FDCNT_0            0x00269bac
#define GLQF_HKEY(i)            (0x00270140 + (i) * 4)
#define GLQF_PCNT(i)            (0x00266800 + (i) * 4)
#define PFQF_HENA(i)            (0x00245900 + (i) * 128)
#define PFQF_HKEY(i)            (0x00244800 + (i) * 128)
#define PFQF_HLUT(i)            (0x00240000 + (i) * 128)
#define PRTQF_FD_INSET(p, j)    (0x00250000 + (p) * 64 + (j) * 32)
#define PRTQF_FLX_PIT(i)        (0x00255200 + (i) * 32)
#define GLQF_HASH_INSET(j, p)   (0x00267600 + (j) * 4 + (p) * 8)

#define INSET_VLAN              (1ull << 55)
#define INSET_L3_SRC            (3ull << 47)
#define INSET_L3_DST            (3ull << 35)
#define INSET_L3_V6_SRC         (0xffull << 43)
#define INSET_L3_V6_DST         (0xffull << 35)
#define INSET_L4_SRC            (1ull << 34)
#define INSET_L4_DST            (1ull << 33)
#define INSET_VERIFY_TAG        (3ull << 31)
#define INSET_FLEX(i)           (1ull << (13 - (i)))    /* i = 0..7 */

/* Packet classifier types */
#define PCTYPE_IPV4_UDP         31
#define PCTYPE_IPV4_TCP         33
#define PCTYPE_IPV4_SCTP        34
#define PCTYPE_IPV4_OTHER       35
#define PCTYPE_FRAG_IPV4        36
#define PCTYPE_IPV6_UDP         41
#define PCTYPE_IPV6_TCP         43
#define PCTYPE_IPV6_SCTP        44
#define PCTYPE_IPV6_OTHER       45
#define PCTYPE_FRAG_IPV6        46
#define PCTYPE_L2_PAYLOAD       63

/* Packet types of the Rx descriptor; those of IPv6 follow 66 later */
#define PTYPE_L2                1
#define PTYPE_IPV4_FRAG         22
#define PTYPE_IPV4_OTHER        23
#define PTYPE_IPV4_UDP          24
#define PTYPE_IPV4_TCP          26
#define PTYPE_IPV4_SCTP         27
#define PTYPE_IPV4_ICMP         28
#define PTYPE_IPV6_STEP         66

/* Statistics; each pair of L, H is one 48-bit counter */
#define GLPRT_STATS             0x00300000
#define GLPRT_STATS_WORDS       0x290
#define GLPRT_GORC              0x00300000
#define GLPRT_RUC               0x00300100
#define GLPRT_ROC               0x00300120
#define GLPRT_PRC64             0x00300480
#define GLPRT_UPRC              0x003005a0
#define GLPRT_MPRC              0x003005c0
#define GLPRT_BPRC              0x003005e0
#define GLPRT_RDPC              0x00300600
#define GLPRT_GOTC              0x00300680
#define GLPRT_PTC64             0x003006a0
#define GLPRT_UPTC              0x003009c0
#define GLPRT_MPTC              0x003009e0
#define GLPRT_BPTC              0x00300a00
#define GLPRT_TDOLD             0x00300a20
#define GLV_RDPC(i)             (0x00310000 + (i) * 8)
#define GL_RXERR1(i)            (0x00318000 + (i) * 8)
#define GLV_GOTC(i)             (0x00328000 + (i) * 8)
#define GLV_UPTC(i)             (0x0033c000 + (i) * 8)
#define GLV_MPTC(i)             (0x0033cc00 + (i) * 8)
#define GLV_BPTC(i)             (0x0033d800 + (i) * 8)
#define GLV_TEPC(i)             (0x00344000 + (i) * 8)
#define GLV_GORC(i)             (0x00358000 + (i) * 8)
#define GLV_UPRC(i)             (0x0036c000 + (i) * 8)
#define GLV_MPRC(i)             (0x0036cc00 + (i) * 8)
#define GLV_BPRC(i)             (0x0036d800 + (i) * 8)
#define GLV_RUPP(i)             (0x0036e400 + (i) * 8)

/* Not of the hardware: what a test may set while the machine runs (knobs.c) */
#define XL710_KNOB(i)           (0x003ff000 + (i) * 4)

#define XL710_CSR_SIZE          0x00400000      /* what the driver may map */
#define XL710_MAX_QUEUES        1536
#define XL710_MAX_VECTORS       129
#define XL710_MAX_FRAME         9728            /* with tags and CRC */
#define XL710_MIN_TX            17              /* bytes of a packet to send */
#define XL710_MAX_TX_DESC       8               /* of a packet, or a segment */

/* Tx descriptors, quad word 1 */
#define TXD_DTYPE               0xf
#define TXD_DTYPE_DATA          0x0
#define TXD_DTYPE_CONTEXT       0x1
#define TXD_DTYPE_FILTER        0x8
#define TXD_DTYPE_DONE          0xf
#define TXD_CMD_S               4
#define   TXD_CMD_EOP           0x001
#define   TXD_CMD_RS            0x002
#define   TXD_CMD_IL2TAG1       0x008
#define   TXD_CMD_DUMMY         0x010
#define   TXD_CMD_IIPT          0x060
#define   TXD_CMD_IIPT_IPV4_CSUM 0x060
#define   TXD_CMD_L4T           0x300
#define   TXD_CMD_L4T_TCP       0x100
#define   TXD_CMD_L4T_SCTP      0x200
#define   TXD_CMD_L4T_UDP       0x300
#define TXD_OFFSET_S            16
#define TXD_BUF_SZ_S            34
#define TXD_L2TAG1_S            48
#define TXC_CMD_S               4
#define   TXC_CMD_TSO           0x01
#define   TXC_CMD_TSYN          0x02
#define   TXC_CMD_IL2TAG2       0x04
#define TXC_TSO_LEN_S           30
#define TXC_MSS_S               50
#define TXC_EIPT                0x3
#define   TXC_EIPT_IPV6         0x1
#define   TXC_EIPT_IPV4         0x3             /* with header checksum */
#define TXC_EIPLEN_S            2
#define TXC_NATT_S              9
#define   TXC_NATT_UDP          0x1
#define TXC_NATLEN_S            12
#define TXC_L4T_CS              (1u << 23)

/* Flow director programming descriptor */
#define FLTR_QINDEX             0x7ff
#define FLTR_PCTYPE_S           17
#define FLTR_DEST_VSI_S         23
#define FLTR_PCMD_S             4
#define   FLTR_PCMD_ADD         1
#define   FLTR_PCMD_REMOVE      2
#define FLTR_DEST_S             7
#define   FLTR_DEST_DROP        0
#define   FLTR_DEST_QINDEX      1
#define   FLTR_DEST_OTHER       2
#define FLTR_CNT_ENA            (1u << 11)
#define FLTR_STATUS_S           13
#define FLTR_ATR                (1u << 18)
#define FLTR_CNTINDEX_S         20

/* Rx descriptors, write-back quad word 1 */
#define RXD_DD                  (1ull << 0)
#define RXD_EOF                 (1ull << 1)
#define RXD_L2TAG1P             (1ull << 2)
#define RXD_L3L4P               (1ull << 3)
#define RXD_TSYNINDX_S          5
#define RXD_TSYNVALID           (1ull << 7)
#define RXD_UMBCAST_S           9
#define RXD_FLM                 (1ull << 11)
#define RXD_FLTSTAT_FD_ID       (1ull << 12)
#define RXD_FLTSTAT_RSS         (3ull << 12)
#define RXD_IPV6EXADD           (1ull << 15)
#define RXD_INT_UDP_0           (1ull << 18)
#define RXD_ERR_IPE             (1ull << 22)
#define RXD_ERR_L4E             (1ull << 23)
#define RXD_PTYPE_S             30
#define RXD_LEN_S               38
#define RXD_PROG_FD             ((1ull << 63) | (1ull << 2) | RXD_DD)
#define RXD_PROG_ERR_FULL       (1ull << 19)
#define RXD_PROG_ERR_NOENT      (1ull << 20)

/* Admin queue descriptor flags and return codes */
#define AQ_FLAG_DD              0x0001
#define AQ_FLAG_CMP             0x0002
#define AQ_FLAG_ERR             0x0004
#define AQ_FLAG_LB              0x0200
#define AQ_FLAG_RD              0x0400
#define AQ_FLAG_BUF             0x1000
#define AQ_FLAG_SI              0x2000

#define AQ_RC_OK                0
#define AQ_RC_EPERM             1
#define AQ_RC_ENOENT            2
#define AQ_RC_ESRCH             3
#define AQ_RC_ENXIO             6
#define AQ_RC_EBUSY             12
#define AQ_RC_EEXIST            13
#define AQ_RC_EINVAL            14
#define AQ_RC_ENOSPC            16
#define AQ_RC_ENOSYS            17
#define AQ_RC_ERANGE            18
#define AQ_RC_BAD_ADDR          20

#endif
