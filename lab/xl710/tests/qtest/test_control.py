# SPDX-License-Identifier: GPL-2.0
"""Registers, resets, the admin queue, queue contexts."""

import struct

from base import Base
from packets import MAC0, MS, NOWHERE
from xl710dev import (
    AQ_CRIT,
    ARQH,
    ATQH,
    ATQLEN,
    ATQT,
    GL_MDET_RX,
    GL_MDET_TX,
    HENA0,
    ICR0,
    ICR0_ENA,
    PFGEN_CTRL,
    RC_BAD_ADDR,
    RC_EINVAL,
    RC_ENOENT,
    RC_ENOMEM,
    RC_ENOSYS,
    RC_EPERM,
    RC_ESRCH,
    RC_OK,
    RD,
    RSTAT,
    RTRIG,
    SDCMD,
    SDDATAHIGH,
    SDDATALOW,
    qrx_ena,
    qrx_tail,
    qtx_ena,
    qtx_tail,
)


class Registers(Base):
    def test_identity(self) -> None:
        self.assertEqual(self.a.cfg_read(0), 0x15838086)
        self.assertEqual(self.a.cfg_read(8) >> 16, 0x0200)

    def test_unknown_register(self) -> None:
        self.assertEqual(self.a.rd(0x10), 0xDEADBEEF)
        self.a.wr(0x10, 1)
        self.assertEqual(self.a.rd(0x10), 0xDEADBEEF)

    def test_beyond_csr_space(self) -> None:
        self.assertEqual(self.a.rd(0x7FFFFC), 0xDEADBEEF)
        self.a.wr(0x7FFFFC, 0)

    def test_read_only(self) -> None:
        before = self.a.rd(0x1C0400)
        self.a.wr(0x1C0400, ~before)
        self.assertEqual(self.a.rd(0x1C0400), before)

    def test_write_mask(self) -> None:
        self.a.wr(0x38000, 0xFFFFFFFF)
        self.assertEqual(self.a.rd(0x38000), 0xFFF)

    def test_pf_reset(self) -> None:
        self.a.aq_setup()
        self.a.wr(0x244800, 0x12345678)  # PFQF_HKEY: a core reset's
        self.a.pf_reset()
        self.assertEqual(self.a.rd(ATQLEN), 0)
        self.assertEqual(self.a.rd(0x244800), 0x12345678)

    def test_global_reset(self) -> None:
        for trigger, kind in ((1, 1), (2, 2)):
            self.a.aq_setup()
            self.a.wr(0x244800, 0x12345678)
            self.a.rd(ICR0)
            self.a.wr(RTRIG, trigger)
            self.assertEqual(self.a.rd(RSTAT), 1 | kind << 2)
            self.assertTrue(self.a.rd(ICR0) & 1 << 20)
            self.m.step(99 * MS)
            self.assertEqual(self.a.rd(RSTAT) & 3, 1)
            self.m.step(2 * MS)
            self.assertEqual(self.a.rd(RSTAT), kind << 2)
            self.assertEqual(self.a.rd(ATQLEN), 0)
            self.assertEqual(self.a.rd(0x244800), 0)

    def test_function_level_reset(self) -> None:
        self.a.aq_setup()
        self.a.wr(0x244800, 0x12345678)  # as a PF reset, it keeps this
        cap = self.a.cfg_read(0x34) & 0xFF
        while self.a.cfg_read(cap) & 0xFF != 0x10:
            cap = self.a.cfg_read(cap) >> 8 & 0xFF
        self.a.cfg_write(cap + 8, self.a.cfg_read(cap + 8) | 1 << 15)
        self.assertEqual(self.a.cfg_read(4) & 6, 0)
        self.a.cfg_write(4, 6)
        self.a.cfg_write(0x10, self.a.bar)
        self.assertEqual(self.a.rd(ATQLEN), 0)
        self.assertEqual(self.a.rd(0x244800), 0x12345678)

    def test_shadow_ram(self) -> None:
        total = 0
        self.a.aq_setup()
        words = []
        for off in range(0, 65536, 4096):
            ret, _, buf = self.a.aq(
                0x0701, struct.pack("<BBHI", 1, 0, 4096, off), bytes(4096)
            )
            self.assertEqual(ret, RC_OK)
            words += struct.unpack("<2048H", buf)
        vpd, alt = words[0x2F], words[0x3E]
        for i, word in enumerate(words):
            if not (vpd <= i < vpd + 512 or alt <= i < alt + 512):
                total += word
        self.assertEqual(total & 0xFFFF, 0xBABA)
        self.a.wr(0xB6110, 0x18 << 14 | 1 << 30)
        self.assertTrue(self.a.rd(0xB6110) & 1 << 31)
        self.assertEqual(self.a.rd(0xB6114) >> 16, words[0x18])


class AdminQueue(Base):
    def setUp(self) -> None:
        super().setUp()
        self.a.aq_setup()

    def test_version(self) -> None:
        ret, param, _ = self.a.aq(1)
        self.assertEqual(ret, RC_OK)
        self.assertEqual(struct.unpack("<IIHHHH", param)[4:], (1, 15))

    def test_many(self) -> None:
        for _ in range(100):
            self.assertEqual(self.a.aq(1)[0], RC_OK)

    def capabilities(self) -> dict[int, int]:
        ret, param, buf = self.a.aq(0xA, data=bytes(4096))
        self.assertEqual(ret, RC_OK)
        count = struct.unpack_from("<I", param, 4)[0]
        caps: dict[int, int] = {}
        for i in range(count):
            cap, _, _, number = struct.unpack_from("<HBBI", buf, 32 * i)
            caps[cap] = number
        return caps

    def test_capabilities(self) -> None:
        caps = self.capabilities()
        self.assertGreaterEqual(caps[0x41], 16)
        self.assertEqual(caps[0x43], 129)
        self.assertNotIn(0x13, caps)  # no VFs

    def test_switch_mode(self) -> None:
        """Channels need only the mode for filters without tunnels."""
        self.assertEqual(self.capabilities()[1], 0)
        for mode, ret, now in ((0x83, RC_ENOSYS, 0), (0x92, RC_OK, 7)):
            param = bytes(10) + bytes([mode]) + bytes(5)
            self.assertEqual(self.a.aq(0x205, param)[0], ret)
            self.assertEqual(self.capabilities()[1], now)
        self.a.pf_reset()
        self.a.aq_setup()
        self.assertEqual(self.capabilities()[1], 7)

    def test_capabilities_too_short(self) -> None:
        self.assertEqual(self.a.aq(0xA, data=bytes(64))[0], RC_ENOMEM)

    def test_unknown_opcode(self) -> None:
        for opcode in (0, 0x7777, 0xFFFF):
            self.assertEqual(self.a.aq(opcode)[0], RC_ESRCH)

    def test_no_buffer(self) -> None:
        self.assertEqual(self.a.aq(0x0210)[0], RC_EINVAL)
        self.assertEqual(self.a.aq(0x0210, data=bytes(16))[0], RC_EINVAL)

    def test_buffer_too_long(self) -> None:
        addr = self.m.alloc(65536)
        self.assertEqual(self.a.aq(0xA, data=bytes(4097), addr=addr)[0], RC_EINVAL)

    def test_buffer_address(self) -> None:
        self.assertEqual(
            self.a.aq(0x0211, struct.pack("<H", 390), bytes(128), RD, addr=NOWHERE)[0],
            RC_BAD_ADDR,
        )
        self.assertEqual(self.a.aq(0xA, data=bytes(4096), addr=NOWHERE)[0], RC_BAD_ADDR)
        # into the device itself
        self.a.aq(0xA, data=bytes(4096), addr=self.a.bar + ATQT)
        self.assertEqual(self.a.aq(1)[0], RC_OK)

    def test_ring_address(self) -> None:
        self.a.wr(0x80100, NOWHERE >> 32)
        self.a.wr(ATQT, 1)
        self.assertTrue(self.a.rd(ATQLEN) & AQ_CRIT)
        self.assertEqual(self.a.rd(ATQH), 0)

    def test_tail_beyond_ring(self) -> None:
        self.a.wr(ATQT, 16)
        self.assertTrue(self.a.rd(ATQLEN) & AQ_CRIT)

    def test_disabled(self) -> None:
        self.a.wr(ATQLEN, 16)
        self.a.wr(ATQT, 1)
        self.assertEqual(self.a.rd(ATQH), 0)

    def test_register_commands(self) -> None:
        ret, _, _ = self.a.aq(0x0207, struct.pack("<IIII", 0, HENA0, 0, 0x55))
        self.assertEqual(ret, RC_OK)
        ret, param, _ = self.a.aq(0x0206, struct.pack("<II", 0, HENA0))
        self.assertEqual(struct.unpack_from("<I", param, 12)[0], 0x55)
        self.assertEqual(self.a.aq(0x0206, struct.pack("<II", 0, 3))[0], RC_EINVAL)

    def test_tail_of_itself(self) -> None:
        """An admin command writes the tail register of its queue."""
        self.m.write(
            self.a.asq,
            struct.pack("<HHHHIIIIII", 0x2000, 0x0207, 0, 0, 0, 0, 0, ATQT, 0, 3),
        )
        self.a.wr(ATQT, 1)
        self.assertEqual((self.a.rd(ATQH), self.a.rd(ATQT)), (1, 3))
        self.a.wr(ATQT, 1)
        self.assertEqual(self.a.aq(1)[0], RC_OK)

    def test_reset_by_command(self) -> None:
        self.m.write(
            self.a.asq,
            struct.pack("<HHHHIIIIII", 0x2000, 0x0207, 0, 0, 0, 0, 0, PFGEN_CTRL, 0, 1),
        )
        self.a.wr(ATQT, 1)
        self.assertEqual(self.a.rd(PFGEN_CTRL), 1)
        self.m.step(10 * MS)
        self.assertEqual(self.a.rd(ATQLEN), 0)
        self.a.aq_setup()
        self.assertEqual(self.a.aq(1)[0], RC_OK)

    def test_vsi(self) -> None:
        info = bytearray(128)
        ret, param, _ = self.a.aq(
            0x0210, struct.pack("<HBBBBH", 2, 1, 0, 0, 0, 1), bytes(info), RD
        )
        self.assertEqual(ret, RC_OK)
        seid, number = struct.unpack_from("<HH", param)
        ret, param, _buf = self.a.aq(0x0212, struct.pack("<H", seid), bytes(128))
        self.assertEqual((ret, struct.unpack_from("<H", param, 2)[0]), (RC_OK, number))
        self.assertEqual(self.a.aq(0x0243, struct.pack("<H", seid))[0], RC_OK)
        self.assertEqual(self.a.aq(0x0243, struct.pack("<H", seid))[0], RC_ENOENT)
        self.assertEqual(self.a.aq(0x0243, struct.pack("<H", 390))[0], RC_EPERM)

    def test_vsis_run_out(self) -> None:
        for _ in range(100):
            ret, _, _ = self.a.aq(
                0x0210, struct.pack("<HBBBBH", 2, 1, 0, 0, 0, 1), bytes(128), RD
            )
            if ret:
                break
            self.m.next -= 4096
        self.assertEqual(ret, 16)

    def test_mac_filters(self) -> None:
        elem = bytes(MAC0) + struct.pack("<HHHI", 0, 4, 0, 0)
        cmd = struct.pack("<HH", 1, 0x8000 | 390)
        self.assertEqual(self.a.aq(0x0250, cmd, elem, RD)[0], RC_OK)
        rem = bytes(MAC0) + struct.pack("<HBBHBBH", 0, 8, 0, 0, 0, 0, 0)
        self.assertEqual(self.a.aq(0x0251, cmd, rem, RD)[0], RC_OK)
        self.assertEqual(self.a.aq(0x0251, cmd, rem, RD)[0], RC_OK)
        ret, _, _buf = self.a.aq(0x0251, cmd, rem, RD)
        self.assertEqual(ret, RC_ENOENT)
        # more elements than the buffer holds
        self.assertEqual(
            self.a.aq(0x0250, struct.pack("<HH", 300, 390), elem, RD)[0], RC_EINVAL
        )

    def test_nvm_is_owned(self) -> None:
        req = struct.pack("<HHII", 1, 1, 0, 0)
        self.assertEqual(self.a.aq(8, req)[0], RC_OK)
        self.assertEqual(self.a.aq(8, req)[0], 12)
        self.assertEqual(self.a.aq(9, req)[0], RC_OK)
        self.assertEqual(self.a.aq(8, req)[0], RC_OK)

    def test_nvm_range(self) -> None:
        self.assertEqual(
            self.a.aq(0x0701, struct.pack("<BBHI", 1, 0, 4096, 65534), bytes(4096))[0],
            RC_EPERM,
        )
        self.assertEqual(self.a.aq(0x0703, data=bytes(64), flags=RD)[0], RC_EPERM)

    def test_link_events(self) -> None:
        # events on, link changes not masked
        ret, param, _ = self.a.aq(0x0607, struct.pack("<H", 3))
        self.assertEqual((ret, param[0], param[3], param[4] & 1), (RC_OK, 1, 0x10, 1))
        self.a.aq(0x0613, bytes(8) + struct.pack("<H", 0xFEFD))
        self.a.wr(ICR0_ENA, 1 << 30)
        self.a.rd(ICR0)
        # the partner goes dark and comes back
        self.b.aq_setup()
        self.assertEqual(self.b.aq(0x0601, bytes(16))[0], RC_OK)
        self.assertTrue(self.a.rd(ICR0) & 1 << 30)
        self.assertEqual(len(self.a.arq_events()), 1)
        event = self.a.arq_events()[0]
        self.assertEqual(struct.unpack_from("<H", event, 2)[0], 0x0607)
        self.assertEqual(event[20] & 1, 0)
        self.b.aq(
            0x0601, struct.pack("<IBBHIBBBB", 0xFFFFFFFF, 0x10, 0x18, 0, 0, 0, 0, 0, 0)
        )
        self.m.step(60 * MS)
        self.assertEqual(len(self.a.arq_events()), 2)
        self.assertEqual(self.a.arq_events()[1][20] & 1, 1)

    def test_event_ring_full(self) -> None:
        self.a.aq(0x0607, struct.pack("<H", 3))
        self.a.aq(0x0613, bytes(8) + struct.pack("<H", 0xFEFD))
        self.b.aq_setup()
        for _ in range(100):
            self.b.aq(0x0601, bytes(16))
            self.b.aq(0x0601, struct.pack("<IBBH", 0xFFFFFFFF, 0x10, 0x18, 0))
            self.m.step(60 * MS)
        self.assertEqual(self.a.rd(ARQH), 15)
        self.assertTrue(self.a.rd(0x80280) & 1 << 29)  # overflow


class Contexts(Base):
    def setUp(self) -> None:
        super().setUp()
        self.a.aq_setup()

    def test_direct_and_paged(self) -> None:
        for paged in (False, True):
            self.a.pf_reset()
            self.a.aq_setup()
            self.a.hmc_setup(paged=paged)
            for q in (0, 15, 31):
                self.a.tx_queue(q)
                self.a.rx_queue(q)
                self.assertEqual(self.a.rd(qtx_ena(q)), 5)
                self.assertEqual(self.a.rd(qrx_ena(q)), 5)
                self.a.stop(qtx_ena(q))
                self.a.stop(qrx_ena(q))

    def fails(self, q: int) -> None:
        self.a.rd(ICR0)
        self.a.wr(qtx_ena(q), 1)
        self.assertEqual(self.a.rd(qtx_ena(q)) & 4, 0)
        self.assertTrue(self.a.rd(GL_MDET_TX) & 1 << 31)
        self.a.wr(GL_MDET_TX, 0xFFFFFFFF)
        self.a.wr(qrx_ena(q), 1)
        self.assertEqual(self.a.rd(qrx_ena(q)) & 4, 0)
        self.assertTrue(self.a.rd(GL_MDET_RX) & 1 << 31)
        self.a.wr(GL_MDET_RX, 0xFFFFFFFF)

    def test_no_segment(self) -> None:
        self.a.wr(0xC6300, 32)
        self.a.wr(0xC6500, 32)
        self.fails(0)
        self.assertTrue(self.a.rd(0xC0400) & 1 << 31)  # ERRORINFO

    def test_beyond_count(self) -> None:
        self.a.hmc_setup(queues=4)
        self.fails(4)

    def test_segment_nowhere(self) -> None:
        self.a.hmc_setup()
        self.a.wr(SDDATAHIGH, NOWHERE >> 32)
        for kind in (1, 3):  # paged, direct
            self.a.wr(SDDATALOW, kind)
            self.a.wr(SDCMD, 1 << 31)
            self.fails(0)

    def test_zero_context(self) -> None:
        self.a.hmc_setup()
        self.fails(0)

    def test_huge_context(self) -> None:
        self.a.hmc_setup()
        self.m.write(self.a.hmc, b"\xff" * 8192)
        self.fails(0)

    def test_all_queue_registers(self) -> None:
        self.a.hmc_setup()
        for q in (127, 128, 1535):
            self.a.wr(qtx_ena(q), 1)
            self.a.wr(qrx_ena(q), 1)
            self.a.wr(qtx_tail(q), 5)
            self.a.wr(qrx_tail(q), 5)
            self.assertEqual(self.a.rd(0xE4000 + 4 * q), 0)
