# SPDX-License-Identifier: GPL-2.0
"""Malformed input: an error or an MDD event, and QEMU lives."""

import random
import struct

from base import Base
from packets import NOWHERE, eth, tcp4
from xl710dev import (
    GL_MDET_RX,
    GL_MDET_TX,
    HENA0,
    HENA1,
    ICR0,
    RC_OK,
    RD,
    qrx_ena,
    qrx_tail,
    qtx_ena,
    qtx_tail,
)


class Malformed(Base):
    def setUp(self) -> None:
        super().setUp()
        for port in (self.a, self.b):
            self.ready(port)
        self.tx = self.a.tx_queue(0)
        self.rx = self.b.rx_queue(0)

    def tearDown(self) -> None:
        # after all, the port works
        self.a.stop(qtx_ena(0))
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
        self.assertEqual(reg & 0xFFF, 0)
        self.assertTrue(self.a.rd(ICR0) & 1 << 19)
        self.assertEqual(self.a.rd(qtx_ena(0)) & 4, 0)
        self.a.wr(GL_MDET_TX, 0xFFFFFFFF)
        self.assertEqual(self.a.rd(GL_MDET_TX), 0)

    def test_dtype(self) -> None:
        self.mdd((0x100000, 0x7))

    def test_zero_length(self) -> None:
        self.mdd((0x100000, 0x30))

    def test_bad_address(self) -> None:
        self.mdd((NOWHERE, 0x30 | 100 << 34))

    def test_own_registers(self) -> None:
        """A frame is read from registers of the device."""
        self.tx.raw((self.a.bar + 0x108000, 0x30 | 100 << 34))
        self.a.wr(GL_MDET_TX, 0xFFFFFFFF)

    def test_too_short(self) -> None:
        self.mdd((0x100000, 0x30 | 5 << 34))

    def test_too_long(self) -> None:
        self.mdd((0x100000, 0x30 | 10000 << 34))

    def test_too_many(self) -> None:
        tx = self.tx = self.a.tx_queue(1, qlen=512)
        tx.raw(*[(0x100000, 100 << 34)] * 300)
        self.assertTrue(self.a.rd(GL_MDET_TX) & 1 << 31)
        self.a.wr(GL_MDET_TX, 0xFFFFFFFF)

    def test_headers_beyond_packet(self) -> None:
        for offset in (0x3FFFF, 7 | 0x7F << 7, 7 | 5 << 7 | 15 << 14, 0):
            self.a.stop(qtx_ena(0))
            self.tx = self.a.tx_queue(0)
            self.mdd((0x100000, (0x3 | 0x40 | 0x100) << 4 | offset << 16 | 40 << 34))

    def test_tso(self) -> None:
        off = 7 | 5 << 7 | 5 << 14
        for length, mss in (
            (1000, 0),
            (1000, 10),
            (1000, 16383),
            (5, 1460),
            (0x3FFFF, 1460),
        ):
            self.a.stop(qtx_ena(0))
            self.tx = self.a.tx_queue(0)
            self.mdd(
                (0, 1 | 1 << 4 | length << 30 | mss << 50),
                (0x100000, (0x3 | 0x60 | 0x100) << 4 | off << 16 | 1054 << 34),
            )

    def test_tail(self) -> None:
        self.a.wr(qtx_tail(0), 64)
        self.assertTrue(self.a.rd(GL_MDET_TX) & 1 << 31)
        self.a.wr(GL_MDET_TX, 0xFFFFFFFF)

    def test_rx_tail(self) -> None:
        self.b.wr(qrx_tail(0), 4000)
        self.tx.send(eth(bytes(60), etype=0x88B5))
        self.assertTrue(self.b.rd(GL_MDET_RX) & 1 << 31)
        self.b.wr(GL_MDET_RX, 0xFFFFFFFF)
        self.b.stop(qrx_ena(0))
        self.rx = self.b.rx_queue(0)

    def test_rx_buffer(self) -> None:
        self.b.stop(qrx_ena(0))
        self.b.rx_queue(0, bufs=NOWHERE)
        self.tx.send(eth(bytes(60), etype=0x88B5))
        self.assertTrue(self.b.rd(GL_MDET_RX) & 1 << 31)
        self.b.wr(GL_MDET_RX, 0xFFFFFFFF)
        self.b.stop(qrx_ena(0))
        self.rx = self.b.rx_queue(0)

    def test_odd_packets(self) -> None:
        """Headers with wrong lengths; the model must survive."""
        self.b.promisc()
        self.b.wr(HENA0, 0xFFFFFFFF)
        self.b.wr(HENA1, 0xFFFFFFFF)
        base = bytearray(eth(tcp4(1, 2, b"x" * 40, "1.2.3.4", "5.6.7.8")))
        rng = random.Random(710)
        for _ in range(400):
            pkt = bytearray(base)
            for _ in range(rng.randrange(1, 6)):
                pkt[rng.randrange(12, 54)] = rng.randrange(256)
            if rng.random() < 0.3:
                pkt[12:14] = b"\x86\xdd"
            del pkt[rng.randrange(15, len(pkt)) :]
            self.tx.send(bytes(pkt))
            while self.rx.get():
                self.rx.post(1)
            if not self.a.rd(qtx_ena(0)) & 4:
                self.a.stop(qtx_ena(0))
                self.tx = self.a.tx_queue(0)


class Fuzz(Base):
    """Random input from a fixed seed. QEMU must survive, the port must recover."""

    def survive(self) -> None:
        self.a.pf_reset()
        self.a.aq_setup()
        self.assertEqual(self.a.aq(1)[0], RC_OK)

    def test_registers(self) -> None:
        rng = random.Random(1)
        spots = [
            0x80000,
            0x30000,
            0x34800,
            0x38000,
            0x3A000,
            0x3C000,
            0xC0000,
            0xC6200,
            0xE6500,
            0x10C000,
            0x100000,
            0x104000,
            0x108000,
            0x120000,
            0x128000,
            0x1C0AC0,
            0x240000,
            0x250000,
            0x266800,
            0xB6100,
            0x92400,
            0x3FF000,
        ]
        for _ in range(4000):
            reg = rng.choice(spots) + rng.randrange(0, 0x800, 4)
            self.a.wr(reg, rng.choice((0, 1, 0xFFFFFFFF, rng.getrandbits(32))))
            self.a.rd(reg)
        self.survive()

    def test_admin_commands(self) -> None:
        rng = random.Random(2)
        ops = [
            *range(0x0A),
            0x0A,
            0x0B,
            0x107,
            *range(0x200, 0x20A),
            *range(0x210, 0x213),
            0x230,
            0x232,
            0x243,
            *range(0x250, 0x25E),
            *range(0x400, 0x41E),
            *range(0x600, 0x62A),
            0x701,
            0x702,
            0x703,
            *range(0xA00, 0xA0A),
            *range(0xB00, 0xB06),
            0xFF03,
        ]
        self.a.aq_setup()
        buf = self.m.alloc(4096)
        for _ in range(3000):
            size = rng.choice((0, 1, 16, 32, 128, 600, 4096))
            self.m.write(buf, rng.randbytes(64))
            self.a.aq(
                rng.choice(ops),
                rng.choice(
                    (
                        bytes(16),
                        rng.randbytes(16),
                        struct.pack("<HHHH", 390, 390, 390, 1) + bytes(8),
                    )
                ),
                bytes(size) if size else None,
                rng.choice((0, RD)),
                addr=buf,
            )
        self.survive()

    def test_buffers_are_registers(self) -> None:
        """Packets of the other port are written to registers of this one."""
        rng = random.Random(4)
        self.ready(self.a)
        for _ in range(150):
            self.m.next = 0x2000000
            self.b.pf_reset()
            self.ready(self.b)
            self.b.promisc()
            reg = rng.choice((0x34800, 0x108000, 0x100000, 0x120000, 0x128000))
            self.b.tx_queue(0)
            self.b.rx_queue(0, bufs=self.b.bar + reg - 16, dbuff=1024)
            self.m.write(self.b.hmc + self.b.rx_ctx_base, bytes(64))
            tx = self.a.tx_queue(0)
            for _ in range(4):
                words = (0, 1, 5, 62, 0xFFFF, 0xFFFFFFFF, 0x80000001)
                body = [rng.choice(words) for _ in range(rng.choice((12, 260, 800)))]
                tx.send(struct.pack(f"<{len(body)}I", *body))
            self.b.force_wb()
            self.a.stop(qtx_ena(0))
        self.m.next = 0x3000000
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
            self.a.stop(qtx_ena(0))
            self.m.next = max(self.m.next, data + 16384)
            mark = self.m.next
            tx = self.a.tx_queue(0)
            descs = []
            for _ in range(rng.randrange(1, 12)):
                kind = rng.choice((0, 0, 0, 1, 8, rng.randrange(16)))
                qw1 = rng.getrandbits(60) << 4 | kind
                if kind == 0 and rng.random() < 0.7:
                    qw1 = (
                        kind
                        | rng.getrandbits(10) << 4
                        | (7 | 5 << 7 | 5 << 14) << 16
                        | rng.choice((60, 1054, 16383)) << 34
                    )
                descs.append((data, qw1))
            tx.raw(*descs)
            self.m.next = mark
            while rx.get():
                rx.post(1)
        self.survive()
