#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The registers, admin queue and data path of the XL710 model, from outside.

Run by run-qtest.sh; QEMU names the binary.
"""

import random
import struct
import sys
import unittest
from typing import Dict, Optional

from xl710dev import (
    AQ_CRIT, AQ_ENABLE, ARQBAL, ARQH, ATQH, ATQLEN, ATQT, BUF, DYN_CTL0,
    GL_MDET_RX, GL_MDET_TX, HENA0, HENA1, ICR0, ICR0_ENA, PFGEN_CTRL,
    PFQF_CTL_0, RC_BAD_ADDR, RC_EINVAL, RC_ENOENT, RC_ENOMEM, RC_EPERM,
    RC_ESRCH, RC_OK, RD, RSTAT, RTRIG, SDCMD, SDDATAHIGH, SDDATALOW, Machine,
    Port, qrx_ena, qrx_tail, qtx_ena, qtx_tail)

MAC0 = bytes.fromhex("525400000001")
MAC1 = bytes.fromhex("525400000002")
NOWHERE = 0xF000000000
MS = 1000000


def csum(data: bytes) -> int:
    if len(data) & 1:
        data += b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def eth(payload: bytes, dst: bytes = MAC1, src: bytes = MAC0,
        etype: int = 0x0800) -> bytes:
    return dst + src + struct.pack(">H", etype) + payload


def ipv4(proto: int, src: str, dst: str, payload: bytes) -> bytes:
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 7, 0, 64,
                       proto, 0, bytes(map(int, src.split("."))),
                       bytes(map(int, dst.split("."))))
    return head[:10] + struct.pack(">H", csum(head)) + head[12:] + payload


def pseudo(src: str, dst: str, proto: int, length: int) -> bytes:
    return (bytes(map(int, src.split("."))) + bytes(map(int, dst.split("."))) +
            struct.pack(">HH", proto, length))


def udp4(sport: int, dport: int, payload: bytes, src: str = "10.0.0.1",
         dst: str = "10.0.0.2") -> bytes:
    return ipv4(17, src, dst, struct.pack(">HHHH", sport, dport,
                                          8 + len(payload), 0) + payload)


def tcp4(sport: int, dport: int, payload: bytes, src: str, dst: str,
         check: int = 0, flags: int = 0x10, seq: int = 1000) -> bytes:
    return ipv4(6, src, dst, struct.pack(
        ">HHIIBBHHH", sport, dport, seq, 1, 0x50, flags, 1000, check, 0) +
        payload)


class Base(unittest.TestCase):
    args = ["-device", "xl710,id=p0,addr=4,mac=52:54:00:00:00:01",
            "-device", "xl710,id=p1,addr=5,mac=52:54:00:00:00:02,peer=p0"]

    def setUp(self) -> None:
        self.m = Machine(*self.args)
        self.a = Port(self.m, 4, 0xE0000000)
        self.b = Port(self.m, 5, 0xE1000000)

    def tearDown(self) -> None:
        self.assertEqual(self.m.close(), 0, "QEMU did not end well")

    def ready(self, port: Port, **kw: int) -> None:
        port.aq_setup()
        port.hmc_setup(**kw)
        port.vsi_queues(0)


class Registers(Base):
    def test_identity(self) -> None:
        self.assertEqual(self.a.cfg_read(0), 0x15838086)
        self.assertEqual(self.a.cfg_read(8) >> 16, 0x0200)

    def test_unknown_register(self) -> None:
        self.assertEqual(self.a.rd(0x10), 0xDEADBEEF)
        self.a.wr(0x10, 1)
        self.assertEqual(self.a.rd(0x10), 0xDEADBEEF)

    def test_beyond_csr_space(self) -> None:
        self.assertEqual(self.a.rd(0x7ffffc), 0xDEADBEEF)
        self.a.wr(0x7ffffc, 0)

    def test_read_only(self) -> None:
        before = self.a.rd(0x1C0400)
        self.a.wr(0x1C0400, ~before)
        self.assertEqual(self.a.rd(0x1C0400), before)

    def test_write_mask(self) -> None:
        self.a.wr(0x38000, 0xffffffff)
        self.assertEqual(self.a.rd(0x38000), 0xfff)

    def test_pf_reset(self) -> None:
        self.a.aq_setup()
        self.a.wr(0x244800, 0x12345678)     # PFQF_HKEY: a core reset's
        self.a.wr(PFGEN_CTRL, 1)
        self.assertEqual(self.a.rd(PFGEN_CTRL) & 1, 0)
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
        cap = self.a.cfg_read(0x34) & 0xff
        while self.a.cfg_read(cap) & 0xff != 0x10:
            cap = self.a.cfg_read(cap) >> 8 & 0xff
        self.a.cfg_write(cap + 8, self.a.cfg_read(cap + 8) | 1 << 15)
        self.assertEqual(self.a.cfg_read(4) & 6, 0)
        self.a.cfg_write(4, 6)
        self.a.cfg_write(0x10, self.a.bar)
        self.assertEqual(self.a.rd(ATQLEN), 0)

    def test_shadow_ram(self) -> None:
        total = 0
        self.a.aq_setup()
        words = []
        for off in range(0, 65536, 4096):
            ret, _, buf = self.a.aq(0x0701, struct.pack("<BBHI", 1, 0, 4096,
                                                        off), bytes(4096))
            self.assertEqual(ret, RC_OK)
            words += struct.unpack("<2048H", buf)
        vpd, alt = words[0x2F], words[0x3E]
        for i, word in enumerate(words):
            if not (vpd <= i < vpd + 512 or alt <= i < alt + 512):
                total += word
        self.assertEqual(total & 0xffff, 0xBABA)
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

    def test_capabilities(self) -> None:
        ret, param, buf = self.a.aq(0xA, data=bytes(4096))
        self.assertEqual(ret, RC_OK)
        count = struct.unpack_from("<I", param, 4)[0]
        caps: Dict[int, int] = {}
        for i in range(count):
            cap, _, _, number = struct.unpack_from("<HBBI", buf, 32 * i)
            caps[cap] = number
        self.assertGreaterEqual(caps[0x41], 16)
        self.assertEqual(caps[0x43], 129)
        self.assertNotIn(0x13, caps)        # no VFs

    def test_capabilities_too_short(self) -> None:
        self.assertEqual(self.a.aq(0xA, data=bytes(64))[0], RC_ENOMEM)

    def test_unknown_opcode(self) -> None:
        for opcode in (0, 0x7777, 0xffff):
            self.assertEqual(self.a.aq(opcode)[0], RC_ESRCH)

    def test_no_buffer(self) -> None:
        self.assertEqual(self.a.aq(0x0210)[0], RC_EINVAL)
        self.assertEqual(self.a.aq(0x0210, data=bytes(16))[0], RC_EINVAL)

    def test_buffer_too_long(self) -> None:
        addr = self.m.alloc(65536)
        self.assertEqual(self.a.aq(0xA, data=bytes(4097), addr=addr)[0],
                         RC_EINVAL)

    def test_buffer_address(self) -> None:
        self.assertEqual(self.a.aq(0x0211, struct.pack("<H", 390), bytes(128),
                                   RD, addr=NOWHERE)[0], RC_BAD_ADDR)
        self.assertEqual(self.a.aq(0xA, data=bytes(4096), addr=NOWHERE)[0],
                         RC_BAD_ADDR)
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
        self.assertEqual(self.a.aq(0x0206, struct.pack("<II", 0, 3))[0],
                         RC_EINVAL)

    def test_tail_of_itself(self) -> None:
        """A command that writes the tail register of its own queue."""
        self.m.write(self.a.asq, struct.pack("<HHHHIIIIII", 0x2000, 0x0207, 0,
                                             0, 0, 0, 0, ATQT, 0, 3))
        self.a.wr(ATQT, 1)
        self.assertEqual((self.a.rd(ATQH), self.a.rd(ATQT)), (1, 3))
        self.a.wr(ATQT, 1)
        self.assertEqual(self.a.aq(1)[0], RC_OK)

    def test_reset_by_command(self) -> None:
        self.m.write(self.a.asq, struct.pack("<HHHHIIIIII", 0x2000, 0x0207, 0,
                                             0, 0, 0, 0, PFGEN_CTRL, 0, 1))
        self.a.wr(ATQT, 1)
        self.assertEqual(self.a.rd(ATQLEN), 0)
        self.a.aq_setup()
        self.assertEqual(self.a.aq(1)[0], RC_OK)

    def test_vsi(self) -> None:
        info = bytearray(128)
        ret, param, _ = self.a.aq(0x0210, struct.pack("<HBBBBH", 2, 1, 0, 0, 0,
                                                      1), bytes(info), RD)
        self.assertEqual(ret, RC_OK)
        seid, number = struct.unpack_from("<HH", param)
        ret, param, buf = self.a.aq(0x0212, struct.pack("<H", seid), bytes(128))
        self.assertEqual((ret, struct.unpack_from("<H", param, 2)[0]),
                         (RC_OK, number))
        self.assertEqual(self.a.aq(0x0243, struct.pack("<H", seid))[0], RC_OK)
        self.assertEqual(self.a.aq(0x0243, struct.pack("<H", seid))[0],
                         RC_ENOENT)
        self.assertEqual(self.a.aq(0x0243, struct.pack("<H", 390))[0], RC_EPERM)

    def test_vsis_run_out(self) -> None:
        for _ in range(100):
            ret, _, _ = self.a.aq(0x0210, struct.pack("<HBBBBH", 2, 1, 0, 0, 0,
                                                      1), bytes(128), RD)
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
        ret, _, buf = self.a.aq(0x0251, cmd, rem, RD)
        self.assertEqual(ret, RC_ENOENT)
        # more elements than the buffer holds
        self.assertEqual(self.a.aq(0x0250, struct.pack("<HH", 300, 390), elem,
                                   RD)[0], RC_EINVAL)

    def test_nvm_is_owned(self) -> None:
        req = struct.pack("<HHII", 1, 1, 0, 0)
        self.assertEqual(self.a.aq(8, req)[0], RC_OK)
        self.assertEqual(self.a.aq(8, req)[0], 12)
        self.assertEqual(self.a.aq(9, req)[0], RC_OK)
        self.assertEqual(self.a.aq(8, req)[0], RC_OK)

    def test_nvm_range(self) -> None:
        self.assertEqual(self.a.aq(0x0701, struct.pack("<BBHI", 1, 0, 4096,
                                                       65534), bytes(4096))[0],
                         RC_EPERM)
        self.assertEqual(self.a.aq(0x0703, data=bytes(64), flags=RD)[0],
                         RC_EPERM)

    def test_link_events(self) -> None:
        # events on, link changes not masked
        ret, param, _ = self.a.aq(0x0607, struct.pack("<H", 3))
        self.assertEqual((ret, param[0], param[3], param[4] & 1),
                         (RC_OK, 1, 0x10, 1))
        self.a.aq(0x0613, bytes(8) + struct.pack("<H", 0xfefd))
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
        self.b.aq(0x0601, struct.pack("<IBBHIBBBB", 0xffffffff, 0x10, 0x18, 0,
                                      0, 0, 0, 0, 0))
        self.m.step(60 * MS)
        self.assertEqual(len(self.a.arq_events()), 2)
        self.assertEqual(self.a.arq_events()[1][20] & 1, 1)

    def test_event_ring_full(self) -> None:
        self.a.aq(0x0607, struct.pack("<H", 3))
        self.a.aq(0x0613, bytes(8) + struct.pack("<H", 0xfefd))
        self.b.aq_setup()
        for _ in range(100):
            self.b.aq(0x0601, bytes(16))
            self.b.aq(0x0601, struct.pack("<IBBH", 0xffffffff, 0x10, 0x18, 0))
            self.m.step(60 * MS)
        self.assertEqual(self.a.rd(ARQH), 15)
        self.assertTrue(self.a.rd(0x80280) & 1 << 29)       # overflow


class Contexts(Base):
    def setUp(self) -> None:
        super().setUp()
        self.a.aq_setup()

    def test_direct_and_paged(self) -> None:
        for paged in (False, True):
            self.a.wr(PFGEN_CTRL, 1)
            self.a.aq_setup()
            self.a.hmc_setup(paged=paged)
            for q in (0, 15, 31):
                self.a.tx_queue(q)
                self.a.rx_queue(q)
                self.assertEqual(self.a.rd(qtx_ena(q)), 5)
                self.assertEqual(self.a.rd(qrx_ena(q)), 5)
                self.a.wr(qtx_ena(q), 0)
                self.assertEqual(self.a.rd(qtx_ena(q)), 0)

    def fails(self, q: int) -> None:
        self.a.rd(ICR0)
        self.a.wr(qtx_ena(q), 1)
        self.assertEqual(self.a.rd(qtx_ena(q)) & 4, 0)
        self.assertTrue(self.a.rd(GL_MDET_TX) & 1 << 31)
        self.a.wr(GL_MDET_TX, 0xffffffff)
        self.a.wr(qrx_ena(q), 1)
        self.assertEqual(self.a.rd(qrx_ena(q)) & 4, 0)
        self.assertTrue(self.a.rd(GL_MDET_RX) & 1 << 31)
        self.a.wr(GL_MDET_RX, 0xffffffff)

    def test_no_segment(self) -> None:
        self.a.wr(0xC6300, 32)
        self.a.wr(0xC6500, 32)
        self.fails(0)
        self.assertTrue(self.a.rd(0xC0400) & 1 << 31)       # ERRORINFO

    def test_beyond_count(self) -> None:
        self.a.hmc_setup(queues=4)
        self.fails(4)

    def test_segment_nowhere(self) -> None:
        self.a.hmc_setup()
        self.a.wr(SDDATAHIGH, NOWHERE >> 32)
        for kind in (1, 3):                                 # paged, direct
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


class Traffic(Base):
    def setUp(self) -> None:
        super().setUp()
        for port in (self.a, self.b):
            self.ready(port)

    def test_one(self) -> None:
        tx = self.a.tx_queue(0)
        rx = self.b.rx_queue(0)
        pkt = eth(udp4(1, 2, b"x" * 100))
        tx.send(pkt)
        got = rx.get()
        assert got
        self.assertEqual(got[0], pkt)
        qw1 = got[1][0][1]
        self.assertEqual(qw1 >> 30 & 0xff, 24)              # IPv4 UDP
        self.assertTrue(qw1 & 8)                            # checksums looked at
        self.assertEqual(qw1 >> 19 & 0xff, 0)
        self.assertEqual(tx.head(), 1)
        self.assertEqual(self.a.rd(0x3009C0), 1)            # UPTC
        self.assertEqual(self.b.rd(0x3005A0), 1)            # UPRC
        self.assertEqual(self.b.rd(0x300000), len(pkt) + 4)

    def test_descriptor_done(self) -> None:
        tx = self.a.tx_queue(0, head_wb=False)
        self.b.rx_queue(0)
        tx.send(eth(b"y" * 60, etype=0x88B5))
        desc = struct.unpack("<QQ", self.m.read(tx.ring, 16))
        self.assertEqual(desc[1] & 0xf, 0xf)

    def test_padding(self) -> None:
        tx = self.a.tx_queue(0)
        rx = self.b.rx_queue(0)
        tx.send(eth(b"z" * 4, etype=0x88B5))
        got = rx.get()
        assert got
        self.assertEqual(len(got[0]), 60)

    def test_ring_wraps(self) -> None:
        tx = self.a.tx_queue(0, qlen=32)
        rx = self.b.rx_queue(0, qlen=32)
        for i in range(200):
            pkt = eth(struct.pack(">I", i).ljust(60, b"-"), etype=0x88B5)
            tx.send(pkt)
            got = rx.get()
            assert got
            self.assertEqual(got[0], pkt)
            rx.post(1)

    def test_jumbo_in_fragments(self) -> None:
        """9724 bytes: 5 pieces out, 5 buffers in, 16- and 32-byte form."""
        for q, desc32 in ((0, False), (1, True)):
            tx = self.a.tx_queue(q)
            self.b.vsi_queues(0, base=q)
            rx = self.b.rx_queue(q, desc32=desc32)
            pkt = eth(random.randbytes(9710), etype=0x88B5)
            parts = [pkt[i:i + 2000] for i in range(0, len(pkt), 2000)]
            tx.raw(*[tx.data(p, cmd=3 if p is parts[-1] else 0)
                     for p in parts])
            got = rx.get()
            assert got
            self.assertEqual(got[0], pkt)
            self.assertEqual(len(got[1]), 5)

    def test_too_long(self) -> None:
        tx = self.a.tx_queue(0)
        rx = self.b.rx_queue(0, rxmax=1522)
        tx.send(eth(bytes(2000), etype=0x88B5))
        self.assertIsNone(rx.get())
        self.assertEqual(self.b.rd(0x318400), 1)            # RXERR1
        tx.send(eth(bytes(1500), etype=0x88B5))
        self.assertIsNotNone(rx.get())

    def test_no_descriptors(self) -> None:
        tx = self.a.tx_queue(0)
        rx = self.b.rx_queue(0, qlen=8)
        for _ in range(10):
            tx.send(eth(bytes(60), etype=0x88B5))
        self.assertEqual(self.b.rd(0x300600), 3)            # RDPC
        for _ in range(7):
            self.assertIsNotNone(rx.get())
        self.assertIsNone(rx.get())

    def test_flow_control_waits(self) -> None:
        self.b.aq(0x0601, struct.pack("<IBB", 0xffffffff, 0x10, 0x1B))
        tx = self.a.tx_queue(0)
        rx = self.b.rx_queue(0, qlen=8)
        for _ in range(10):
            tx.send(eth(bytes(60), etype=0x88B5))
        self.assertEqual(self.b.rd(0x300600), 0)
        for _ in range(7):
            self.assertIsNotNone(rx.get())
        self.assertIsNone(rx.get())
        rx.post(7)
        for _ in range(3):
            self.assertIsNotNone(rx.get())

    def test_filters(self) -> None:
        tx = self.a.tx_queue(0)
        rx = self.b.rx_queue(0)
        other = bytes.fromhex("525400000099")
        multi = bytes.fromhex("01005e000001")
        for dst in (other, multi, b"\xff" * 6):
            tx.send(eth(bytes(60), dst=dst, etype=0x88B5))
            self.assertIsNone(rx.get())
        self.b.promisc()
        for dst in (other, multi, b"\xff" * 6):
            tx.send(eth(bytes(60), dst=dst, etype=0x88B5))
            got = rx.get()
            assert got
            self.assertEqual(got[0][:6], dst)

    def test_vlan_filter(self) -> None:
        tx = self.a.tx_queue(0)
        rx = self.b.rx_queue(0)
        other = bytes.fromhex("525400000099")
        elem = other + struct.pack("<HHHI", 5, 1, 0, 0)
        self.b.aq(0x0250, struct.pack("<HH", 1, 0x8000 | 390), elem, RD)
        for tag, want in ((5, True), (6, False)):
            tx.send(eth(struct.pack(">HH", tag, 0x88B5) + bytes(60), dst=other,
                        etype=0x8100))
            self.assertEqual(rx.get() is not None, want)

    def test_vlan_offload(self) -> None:
        tx = self.a.tx_queue(0)
        rx = self.b.rx_queue(0)
        pkt = eth(b"v" * 60, etype=0x88B5)
        tx.send(pkt, cmd=0x3 | 0x8, tag=0x6123)
        got = rx.get()
        assert got
        self.assertEqual(got[0], pkt[:12] + struct.pack(">HH", 0x8100, 0x6123)
                         + pkt[12:])
        info = bytearray(128)
        struct.pack_into("<H", info, 0, 0x0004)
        info[12] = 0x03                                     # strip
        self.b.aq(0x0211, struct.pack("<H", 390), bytes(info), RD)
        tx.send(pkt, cmd=0x3 | 0x8, tag=0x6123)
        got = rx.get()
        assert got
        self.assertEqual(got[0], pkt)
        self.assertEqual(got[1][0][0] >> 16 & 0xffff, 0x6123)
        self.assertTrue(got[1][0][1] & 4)

    def test_checksum_offload(self) -> None:
        tx = self.a.tx_queue(0)
        rx = self.b.rx_queue(0)
        src, dst = "10.0.0.1", "10.0.0.2"
        for proto, l4len, at in ((6, 20, 16), (17, 8, 6)):
            data = b"checksum" * 9 + b"!"
            seed = ~csum(pseudo(src, dst, proto, l4len + len(data))) & 0xffff
            if proto == 6:
                ip = tcp4(1, 2, data, src, dst, check=seed)
                cmd = 0x3 | 0x40 | 0x100
            else:
                ip = bytearray(udp4(1, 2, data))
                struct.pack_into(">H", ip, 26, seed)
                cmd = 0x3 | 0x40 | 0x300
            tx.send(eth(bytes(ip)), cmd=cmd,
                    offset=7 | 5 << 7 | (l4len // 4) << 14)
            got = rx.get()
            assert got
            l4 = got[0][34:]
            self.assertEqual(csum(pseudo(src, dst, proto, len(l4)) + l4), 0)
            self.assertEqual(got[1][0][1] >> 19 & 0xff, 0)
            # without the offload it is wrong, and seen to be
            tx.send(eth(bytes(ip)))
            got = rx.get()
            assert got
            self.assertTrue(got[1][0][1] & 1 << 23)

    def tso(self, size: int, mss: int, flags: int = 0x19) -> list:
        tx = self.a.tx_queue(0)
        rx = self.b.rx_queue(0)
        src, dst = "10.0.0.1", "10.0.0.2"
        data = random.randbytes(size)
        seed = ~csum(pseudo(src, dst, 6, 0)) & 0xffff
        pkt = eth(tcp4(1, 2, data, src, dst, check=seed, flags=flags))
        ctx = (0, 1 | 1 << 4 | size << 30 | mss << 50)
        parts = [pkt[i:i + 8000] for i in range(0, len(pkt), 8000)]
        cmd, off = 0x60 | 0x100, 7 | 5 << 7 | 5 << 14
        tx.raw(ctx, *[tx.data(p, cmd=cmd | (3 if p is parts[-1] else 0),
                              offset=off) for p in parts])
        segs = []
        while True:
            got = rx.get()
            if not got:
                break
            segs.append(got[0])
            self.assertEqual(got[1][0][1] >> 19 & 0xff, 0, "bad checksum")
        self.assertEqual(b"".join(s[54:54 + mss] for s in segs)[:size], data)
        for i, seg in enumerate(segs):
            length, ident = struct.unpack_from(">HH", seg, 16)
            seq = struct.unpack_from(">I", seg, 38)[0]
            self.assertEqual(ident, 7 + i)
            self.assertEqual(seq, 1000 + i * mss)
            self.assertEqual(length, 40 + min(mss, size - i * mss))
            last = i == len(segs) - 1
            self.assertEqual(seg[47], flags if last else flags & ~9)
        self.assertEqual(len(segs), -(-size // mss))
        return segs

    def test_tso(self) -> None:
        self.tso(60000, 1460)

    def test_tso_one_segment(self) -> None:
        self.tso(1000, 1460)

    def test_rss(self) -> None:
        """The verification suite's key and its first vector."""
        key = bytes.fromhex("6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b4"
                            "77cb2da38030f20c6a42b73bbeac01fa").ljust(52, b"\0")
        for i in range(13):
            self.b.wr(0x244800 + 128 * i, struct.unpack_from("<I", key,
                                                             4 * i)[0])
        self.b.vsi_queues(2)
        for i in range(32):
            self.b.wr(0x240000 + 128 * i, 0x03020100)
        self.b.wr(HENA1, 1 << (33 - 32))
        tx = self.a.tx_queue(0)
        queues = [self.b.rx_queue(q) for q in range(4)]
        pkt = eth(tcp4(2794, 1766, b"", "66.9.149.187", "161.142.100.80"))
        tx.send(pkt)
        want = 0x51CCC178
        got = queues[want & 127 & 3].get()
        assert got
        self.assertEqual(got[1][0][0] >> 32, want)
        self.assertEqual(got[1][0][1] >> 12 & 3, 3)

    def test_sixteen_queue_pairs(self) -> None:
        txs = [self.a.tx_queue(q) for q in range(16)]
        self.b.vsi_queues(4)
        rxs = [self.b.rx_queue(q) for q in range(16)]
        for i in range(32):
            base = 4 * i % 16
            self.b.wr(0x240000 + 128 * i, sum(
                (base + j) << 8 * j for j in range(4)))
        for i in range(13):
            self.b.wr(0x244800 + 128 * i, 0x9e3779b1 * (i + 1))
        self.b.wr(HENA0, 1 << 31)
        for port in range(256):
            txs[port % 16].send(eth(udp4(port, 9, b"q" * 20)))
        hit = 0
        for rx in rxs:
            n = 0
            while rx.get():
                n += 1
            hit += n > 0
        self.assertEqual(hit, 16)
        for tx in txs:
            self.assertEqual(tx.head(), 16)

    def program(self, tx, port: int, queue: int, pcmd: int = 1, dest: int = 1,
                fd_id: int = 77) -> None:
        """A UDP rule for 10.0.0.1:port -> 10.0.0.2:9, as the driver writes."""
        dummy = eth(udp4(9, port, b"", src="10.0.0.2", dst="10.0.0.1"))
        lo = queue | 31 << 17
        cmd = 8 | pcmd << 4 | dest << 7 | 1 << 11 | 1 << 13 | 5 << 20
        tx.raw((lo, cmd | fd_id << 32),
               tx.data(dummy.ljust(512, b"\0"), cmd=0x13))

    def test_flow_director(self) -> None:
        self.b.vsi_queues(2)
        self.b.wr(PFQF_CTL_0, 1 << 17)
        ctl = self.b.tx_queue(8)
        rxs = [self.b.rx_queue(q) for q in range(4)]
        errors = self.b.rx_queue(8)
        tx = self.a.tx_queue(0)
        self.program(ctl, 1000, 3)
        self.assertEqual(self.b.rd(0x246380), 1)            # FDSTAT
        tx.send(eth(udp4(1000, 9, b"m" * 20)))
        got = rxs[3].get()
        assert got
        self.assertEqual(got[1][0][0] >> 32, 77)
        self.assertEqual(got[1][0][1] >> 12 & 3, 1)
        self.assertEqual(self.b.rd(0x266800 + 4 * 5), 1)    # PCNT
        self.b.wr(0x266800 + 4 * 5, 1)
        self.assertEqual(self.b.rd(0x266800 + 4 * 5), 0)
        tx.send(eth(udp4(1001, 9, b"m" * 20)))
        self.assertIsNotNone(rxs[0].get())
        self.assertIsNone(rxs[3].get())
        self.program(ctl, 1000, 2)                          # update
        self.assertEqual(self.b.rd(0x246380), 1)
        tx.send(eth(udp4(1000, 9, b"m" * 20)))
        self.assertIsNotNone(rxs[2].get())
        self.program(ctl, 1000, 0, dest=0)                  # drop
        tx.send(eth(udp4(1000, 9, b"m" * 20)))
        self.assertTrue(all(rx.get() is None for rx in rxs))
        self.program(ctl, 1000, 0, pcmd=2)                  # remove
        self.assertEqual(self.b.rd(0x246380), 0)
        self.assertIsNone(errors.get())
        self.program(ctl, 1000, 0, pcmd=2)                  # not there
        got = errors.get()
        assert got
        self.assertEqual(got[1][0][1] >> 19 & 0x3f, 2)
        self.program(ctl, 1000, 3)
        self.b.wr(0x245D80, 1)                              # flush
        self.assertEqual(self.b.rd(0x246380), 0)

    def test_loopback(self) -> None:
        self.a.aq(0x0618, struct.pack("<H", 1))
        tx = self.a.tx_queue(0)
        rx = self.a.rx_queue(0)
        tx.send(eth(bytes(60), dst=MAC0, etype=0x88B5))
        self.assertIsNotNone(rx.get())

    def test_link_down_drops(self) -> None:
        self.b.aq(0x0601, bytes(16))
        tx = self.a.tx_queue(0)
        tx.send(eth(bytes(60), etype=0x88B5))
        self.assertEqual(self.a.rd(0x300A20), 1)            # TDOLD
        self.assertEqual(tx.head(), 1)


class Malformed(Base):
    def setUp(self) -> None:
        super().setUp()
        for port in (self.a, self.b):
            self.ready(port)
        self.tx = self.a.tx_queue(0)
        self.rx = self.b.rx_queue(0)

    def tearDown(self) -> None:
        # after all, the port works
        self.a.wr(qtx_ena(0), 0)
        self.tx = self.a.tx_queue(0)
        self.tx.send(eth(b"after" * 20, etype=0x88B5))
        while True:
            got = self.rx.get()
            self.assertIsNotNone(got)
            assert got
            if got[0][14:19] == b"after":
                break
        super().tearDown()

    def mdd(self, *descs) -> None:
        self.a.rd(ICR0)
        self.tx.raw(*descs)
        reg = self.a.rd(GL_MDET_TX)
        self.assertTrue(reg & 1 << 31, "no MDD event")
        self.assertEqual(reg & 0xfff, 0)
        self.assertTrue(self.a.rd(ICR0) & 1 << 19)
        self.assertEqual(self.a.rd(qtx_ena(0)) & 4, 0)
        self.a.wr(GL_MDET_TX, 0xffffffff)
        self.assertEqual(self.a.rd(GL_MDET_TX), 0)

    def test_dtype(self) -> None:
        self.mdd((0x100000, 0x7))

    def test_zero_length(self) -> None:
        self.mdd((0x100000, 0x30))

    def test_bad_address(self) -> None:
        self.mdd((NOWHERE, 0x30 | 100 << 34))

    def test_own_registers(self) -> None:
        """A frame that is read from the device's own registers."""
        self.tx.raw((self.a.bar + 0x108000, 0x30 | 100 << 34))
        self.a.wr(GL_MDET_TX, 0xffffffff)

    def test_too_short(self) -> None:
        self.mdd((0x100000, 0x30 | 5 << 34))

    def test_too_long(self) -> None:
        self.mdd((0x100000, 0x30 | 10000 << 34))

    def test_too_many(self) -> None:
        tx = self.tx = self.a.tx_queue(1, qlen=512)
        tx.raw(*[(0x100000, 100 << 34)] * 300)
        self.assertTrue(self.a.rd(GL_MDET_TX) & 1 << 31)
        self.a.wr(GL_MDET_TX, 0xffffffff)

    def test_headers_beyond_packet(self) -> None:
        for offset in (0x3ffff, 7 | 0x7f << 7, 7 | 5 << 7 | 15 << 14, 0):
            self.a.wr(qtx_ena(0), 0)
            self.tx = self.a.tx_queue(0)
            self.mdd((0x100000, (0x3 | 0x40 | 0x100) << 4 | offset << 16 |
                      40 << 34))

    def test_tso(self) -> None:
        off = 7 | 5 << 7 | 5 << 14
        for length, mss in ((1000, 0), (1000, 10), (1000, 16383), (5, 1460),
                            (0x3ffff, 1460)):
            self.a.wr(qtx_ena(0), 0)
            self.tx = self.a.tx_queue(0)
            self.mdd((0, 1 | 1 << 4 | length << 30 | mss << 50),
                     (0x100000, (0x3 | 0x60 | 0x100) << 4 | off << 16 |
                      1054 << 34))

    def test_tail(self) -> None:
        self.a.wr(qtx_tail(0), 64)
        self.assertTrue(self.a.rd(GL_MDET_TX) & 1 << 31)
        self.a.wr(GL_MDET_TX, 0xffffffff)

    def test_rx_tail(self) -> None:
        self.b.wr(qrx_tail(0), 4000)
        self.tx.send(eth(bytes(60), etype=0x88B5))
        self.assertTrue(self.b.rd(GL_MDET_RX) & 1 << 31)
        self.b.wr(GL_MDET_RX, 0xffffffff)
        self.b.wr(qrx_ena(0), 0)
        self.rx = self.b.rx_queue(0)

    def test_rx_buffer(self) -> None:
        self.m.write(self.rx.ring, struct.pack("<QQ", NOWHERE, 0))
        self.tx.send(eth(bytes(60), etype=0x88B5))
        self.assertTrue(self.b.rd(GL_MDET_RX) & 1 << 31)
        self.b.wr(GL_MDET_RX, 0xffffffff)
        self.b.wr(qrx_ena(0), 0)
        self.rx = self.b.rx_queue(0)

    def test_odd_packets(self) -> None:
        """Headers that lie; nothing but survival is asked."""
        self.b.promisc()
        self.b.wr(HENA0, 0xffffffff)
        self.b.wr(HENA1, 0xffffffff)
        base = bytearray(eth(tcp4(1, 2, b"x" * 40, "1.2.3.4", "5.6.7.8")))
        rng = random.Random(710)
        for _ in range(400):
            pkt = bytearray(base)
            for _ in range(rng.randrange(1, 6)):
                pkt[rng.randrange(12, 54)] = rng.randrange(256)
            if rng.random() < 0.3:
                pkt[12:14] = b"\x86\xdd"
            del pkt[rng.randrange(15, len(pkt)):]
            self.tx.send(bytes(pkt))
            while self.rx.get():
                self.rx.post(1)
            if not self.a.rd(qtx_ena(0)) & 4:
                self.a.wr(qtx_ena(0), 0)
                self.tx = self.a.tx_queue(0)


class Fuzz(Base):
    """Nonsense from a fixed seed. QEMU must live, the port must recover."""

    def survive(self) -> None:
        self.a.wr(PFGEN_CTRL, 1)
        self.a.aq_setup()
        self.assertEqual(self.a.aq(1)[0], RC_OK)

    def test_registers(self) -> None:
        rng = random.Random(1)
        spots = [0x80000, 0x30000, 0x34800, 0x38000, 0x3A000, 0x3C000, 0xC0000,
                 0xC6200, 0x100000, 0x104000, 0x108000, 0x120000, 0x128000,
                 0x1C0AC0, 0x240000, 0x250000, 0x266800, 0xB6100, 0x92400]
        for _ in range(4000):
            reg = rng.choice(spots) + rng.randrange(0, 0x800, 4)
            self.a.wr(reg, rng.choice((0, 1, 0xffffffff, rng.getrandbits(32))))
            self.a.rd(reg)
        self.survive()

    def test_admin_commands(self) -> None:
        rng = random.Random(2)
        ops = [*range(0x0A), 0x0A, 0x0B, 0x107, *range(0x200, 0x20A),
               *range(0x210, 0x213), 0x230, 0x232, 0x243, *range(0x250, 0x25E),
               *range(0x400, 0x41E), *range(0x600, 0x62A), 0x701, 0x702, 0x703,
               *range(0xA00, 0xA0A), *range(0xB00, 0xB06), 0xFF03]
        self.a.aq_setup()
        buf = self.m.alloc(4096)
        for _ in range(3000):
            size = rng.choice((0, 1, 16, 32, 128, 600, 4096))
            self.m.write(buf, rng.randbytes(64))
            self.a.aq(rng.choice(ops), rng.choice((
                bytes(16), rng.randbytes(16), struct.pack("<HHHH", 390, 390,
                                                          390, 1) + bytes(8))),
                      bytes(size) if size else None, rng.choice((0, RD)),
                      addr=buf)
        self.survive()

    def test_descriptors(self) -> None:
        rng = random.Random(3)
        for port in (self.a, self.b):
            self.ready(port)
        self.b.promisc()
        rx = self.b.rx_queue(0)
        data = self.m.alloc(16384)
        self.m.write(data, rng.randbytes(4096))
        pkt = eth(tcp4(1, 2, b"t" * 1000, "1.2.3.4", "5.6.7.8"))
        self.m.write(data, pkt)
        for _ in range(150):
            self.a.wr(qtx_ena(0), 0)
            self.m.next = max(self.m.next, data + 16384)
            mark = self.m.next
            tx = self.a.tx_queue(0)
            descs = []
            for _ in range(rng.randrange(1, 12)):
                kind = rng.choice((0, 0, 0, 1, 8, rng.randrange(16)))
                qw1 = rng.getrandbits(60) << 4 | kind
                if kind == 0 and rng.random() < 0.7:
                    qw1 = (kind | rng.getrandbits(10) << 4 |
                           (7 | 5 << 7 | 5 << 14) << 16 |
                           rng.choice((60, 1054, 16383)) << 34)
                descs.append((data, qw1))
            tx.raw(*descs)
            self.m.next = mark
            while rx.get():
                rx.post(1)
        self.survive()


class Interrupts(Base):
    def msix(self, port: Port, vectors: int) -> int:
        """Vectors write their number + 1 to words of RAM."""
        ram = self.m.alloc(4096)
        for i in range(vectors):
            entry = port.bar + 0x800000 + 16 * i
            self.m.cmd(f"writel {entry:#x} {ram + 4 * i:#x}")
            self.m.cmd(f"writel {entry + 4:#x} 0")
            self.m.cmd(f"writel {entry + 8:#x} {i + 1:#x}")
            self.m.cmd(f"writel {entry + 12:#x} 0")
        port.cfg_write(0x70, port.cfg_read(0x70) | 1 << 31)
        return ram

    def fired(self, ram: int, vec: int) -> bool:
        hit = self.m.read(ram + 4 * vec, 4) != bytes(4)
        self.m.write(ram + 4 * vec, bytes(4))
        return hit

    def test_software(self) -> None:
        ram = self.msix(self.a, 2)
        self.a.wr(DYN_CTL0, 1 | 4 | 3 << 3)
        self.assertTrue(self.fired(ram, 0))
        self.assertEqual(self.a.rd(ICR0) & 0x80000001, 0x80000001)
        self.assertEqual(self.a.rd(ICR0), 0)
        self.assertEqual(self.a.rd(DYN_CTL0) & 1, 0)        # masked itself

    def test_masked_stays_pending(self) -> None:
        ram = self.msix(self.a, 2)
        self.a.wr(0x34800, 4 | 3 << 3)
        self.assertFalse(self.fired(ram, 1))
        self.a.wr(0x34800, 1 | 3 << 3)
        self.assertTrue(self.fired(ram, 1))

    def test_moderation(self) -> None:
        for port in (self.a, self.b):
            self.ready(port)
        ram = self.msix(self.b, 4)
        self.b.wr(0x30000, 50)                              # 100 us
        self.b.wr(0x3A000, 1 | 1 << 30)
        tx = self.a.tx_queue(0)
        self.b.rx_queue(0)
        self.b.wr(0x34800, 1 | 3 << 3)
        tx.send(eth(bytes(60), etype=0x88B5))
        self.assertTrue(self.fired(ram, 1))
        self.b.wr(0x34800, 1 | 3 << 3)
        tx.send(eth(bytes(60), etype=0x88B5))
        self.assertFalse(self.fired(ram, 1))
        self.m.step(90000)
        self.assertFalse(self.fired(ram, 1))
        self.m.step(20000)
        self.assertTrue(self.fired(ram, 1))

    def test_admin_cause(self) -> None:
        ram = self.msix(self.a, 1)
        self.a.aq_setup()
        self.a.wr(ICR0_ENA, 1 << 30)
        self.a.wr(DYN_CTL0, 1 | 3 << 3)
        self.m.write(self.a.asq, struct.pack("<HH", 0, 1).ljust(32, b"\0"))
        self.a.wr(ATQT, 1)
        self.assertTrue(self.fired(ram, 0))
        self.assertTrue(self.a.rd(ICR0) & 1 << 30)


class Legacy(Base):
    args = ["-device", "xl710,id=p0,addr=4,msi=off,msix=off",
            "-device", "xl710,id=p1,addr=5,msix=off,peer=p0"]

    def test_intx(self) -> None:
        self.a.wr(DYN_CTL0, 1 | 4 | 3 << 3)
        self.assertTrue(self.a.cfg_read(4) >> 16 & 8)       # status: asserted
        self.a.rd(ICR0)
        self.assertFalse(self.a.cfg_read(4) >> 16 & 8)

    def test_msi(self) -> None:
        ram = self.m.alloc(64)
        self.b.cfg_write(0x54, ram)
        self.b.cfg_write(0x58, 0)
        self.b.cfg_write(0x5C, 0x1234)
        self.b.cfg_write(0x50, self.b.cfg_read(0x50) | 1 << 16)
        self.b.wr(DYN_CTL0, 1 | 4 | 3 << 3)
        self.assertEqual(self.m.read(ram, 2), b"\x34\x12")

    def test_queue_on_vector_0(self) -> None:
        for port in (self.a, self.b):
            self.ready(port)
        self.a.promisc()
        self.a.rx_queue(0)
        self.a.wr(0x3A000, 1 << 30)
        self.a.wr(DYN_CTL0, 1 | 3 << 3)
        tx = self.b.tx_queue(0)
        tx.send(eth(bytes(60), etype=0x88B5))
        self.assertTrue(self.a.cfg_read(4) >> 16 & 8)
        self.assertEqual(self.a.rd(ICR0) & 3, 3)            # QUEUE_0


class Generator(Base):
    args = ["-device", "xl710,id=p0,addr=4,mac=52:54:00:00:00:01,gen-rate="
            "1000000,gen-size=128,gen-flows=4,gen-count=1000,sink=on",
            "-device", "xl710,id=p1,addr=5,mac=52:54:00:00:00:02"]

    def test_generates(self) -> None:
        self.ready(self.a)
        rx = self.a.rx_queue(0, qlen=512)
        self.m.step(200000)                                 # 200 us: 200 packets
        ports = set()
        n = 0
        while True:
            got = rx.get()
            if not got:
                break
            n += 1
            self.assertEqual(len(got[0]), 124)
            self.assertEqual(got[1][0][1] >> 22 & 1, 0)     # IP checksum
            ports.add(got[0][34:36])
        self.assertIn(n, range(90, 301))
        self.assertEqual(len(ports), 4)
        for _ in range(30):
            self.m.step(100000)
        # all of gen-count, and no more, delivered or lost
        while rx.get():
            n += 1
        self.assertEqual(self.a.rd(0x3005A0), 1000)
        self.assertEqual(n + self.a.rd(0x300600), 1000)
        self.assertEqual(n, 511)

    def test_sink(self) -> None:
        self.ready(self.a)
        tx = self.a.tx_queue(0)
        for _ in range(20):
            tx.send(eth(bytes(100), etype=0x88B5))
        self.assertEqual(self.a.rd(0x3009C0), 20)
        self.assertEqual(tx.head(), 20)

    def test_no_cable(self) -> None:
        self.b.aq_setup()
        _, param, _ = self.b.aq(0x0607, struct.pack("<H", 2))
        self.assertEqual(param[4] & 1, 0)


class LineRate(Base):
    args = ["-device", "xl710,id=p0,addr=4,mac=52:54:00:00:00:01,gen-rate="
            "1000000000000,gen-flows=60000",
            "-device", "xl710,id=p1,addr=5"]

    def test_late(self) -> None:
        """A minute at 40 Gbit/s in one step: lost, counted, and soon over."""
        self.ready(self.a)
        rx = self.a.rx_queue(0)
        before = self.a.rd(0x300600)
        self.m.step(60000 * MS)
        self.assertGreater(self.a.rd(0x300600) - before, 3500000000)
        for _ in range(63):
            self.assertIsNotNone(rx.get())
        self.assertIsNone(rx.get())


if __name__ == "__main__":
    sys.exit(not unittest.main(verbosity=2, exit=False).result.wasSuccessful())
