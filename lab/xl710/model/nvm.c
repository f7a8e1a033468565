/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Intel XL710: the shadow RAM, read through GLNVM_SRCTL or the admin queue
 *
 * The words are those the driver looks at (i40e_type.h, I40E_SR_*); all words
 * with the checksum add up to 0xBABA (i40e_nvm.c).
 */
#include "qemu/osdep.h"
#include "xl710.h"

#define SR_CONTROL      0x00
#define SR_PBA_FLAGS    0x15
#define SR_PBA_PTR      0x16
#define SR_BOOT_CONFIG  0x17
#define SR_VERSION      0x18
#define SR_WOL          0x19
#define SR_OEM_PTR      0x1b
#define SR_EETRACK_LO   0x2d
#define SR_EETRACK_HI   0x2e
#define SR_VPD_PTR      0x2f
#define SR_PCIE_ALT_PTR 0x3e
#define SR_CHECKSUM     0x3f
#define SR_EMP_SETTINGS 0x48

#define BOOT_CONFIG     0x100
#define PBA_BLOCK       0x200
#define EMP_SETTINGS    0x300
#define VPD             0x400           /* 1 KiB = 512 words */
#define PCIE_ALT        0x600           /* so is this */
#define MODULE_WORDS    512

void xl710_nvm_srctl(XL710State *s, uint32_t val)
{
    if (val & SRCTL_START) {
        uint32_t word = val >> SRCTL_ADDR_S & (XL710_SR_WORDS - 1);

        xl710_set_reg(s, GLNVM_SRDATA, (uint32_t)s->sr[word] << 16);
    }
    xl710_set_reg(s, GLNVM_SRCTL, (val & ~SRCTL_START) | SRCTL_DONE);
}

void xl710_nvm_init(XL710State *s)
{
    static const char pba[] = "K65000-000";     /* an even length */
    uint16_t sum = 0;
    unsigned i;

    s->sr = g_new0(uint16_t, XL710_SR_WORDS);
    s->sr[SR_CONTROL] = 1 << 6;                 /* valid */
    s->sr[SR_PBA_FLAGS] = 0xfafa;               /* the block is there */
    s->sr[SR_PBA_PTR] = PBA_BLOCK;
    s->sr[SR_BOOT_CONFIG] = BOOT_CONFIG;
    s->sr[SR_VERSION] = 0x9030;
    s->sr[SR_WOL] = 0xf;                        /* off on every port */
    s->sr[SR_OEM_PTR] = 0xffff;
    s->sr[SR_EETRACK_LO] = 0x0710;
    s->sr[SR_EETRACK_HI] = 0x8000;
    s->sr[SR_VPD_PTR] = VPD;
    s->sr[SR_PCIE_ALT_PTR] = PCIE_ALT;
    s->sr[SR_EMP_SETTINGS] = EMP_SETTINGS;
    s->sr[PBA_BLOCK] = strlen(pba) / 2 + 1;
    for (i = 0; i < strlen(pba) / 2; i++) {
        s->sr[PBA_BLOCK + 1 + i] = pba[2 * i] << 8 | pba[2 * i + 1];
    }
    for (i = 0; i < XL710_SR_WORDS; i++) {
        if (i >= VPD && i < PCIE_ALT + MODULE_WORDS) {
            continue;
        }
        sum += s->sr[i];
    }
    s->sr[SR_CHECKSUM] = 0xbaba - sum;
}
