# SPDX-License-Identifier: GPL-2.0
"""Interrupts: MSI-X, MSI and INTx, causes and moderation."""

import struct

from base import Base
from packets import eth
from xl710dev import (
    ATQT,
    CAUSE_ENA,
    DYN_CTL0,
    END_OF_LIST,
    ICR0,
    ICR0_ENA,
    LNKLST0,
    RS_ONLY,
    Port,
    rqctl,
    tqctl,
)


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
        self.assertEqual(self.a.rd(DYN_CTL0) & 1, 0)  # masked itself

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
        self.b.wr(0x30000, 50)  # 100 us
        tx = self.a.tx_queue(0)
        self.b.rx_queue(0)
        self.b.wr(rqctl(0), 1 | END_OF_LIST << 16 | CAUSE_ENA)
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
    args = (
        "-device",
        "xl710,id=p0,addr=4,msi=off,msix=off",
        "-device",
        "xl710,id=p1,addr=5,msix=off,peer=p0",
    )

    def test_intx(self) -> None:
        self.a.wr(DYN_CTL0, 1 | 4 | 3 << 3)
        self.assertTrue(self.a.cfg_read(4) >> 16 & 8)  # status: asserted
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
        self.a.wr(rqctl(0), END_OF_LIST << 16 | CAUSE_ENA)
        self.a.wr(DYN_CTL0, 1 | 3 << 3)
        tx = self.b.tx_queue(0)
        tx.send(eth(bytes(60), etype=0x88B5))
        self.assertTrue(self.a.cfg_read(4) >> 16 & 8)
        self.assertEqual(self.a.rd(ICR0) & 3, 3)  # QUEUE_0

    def test_queue_that_a_software_interrupt_writes_back(self) -> None:
        """It is reported as a cause, as if it had raised the interrupt."""
        self.ready(self.a)
        tx = self.a.tx_queue(0, link=False)
        self.a.wr(tqctl(0), END_OF_LIST << 16 | CAUSE_ENA)
        self.a.wr(LNKLST0, 1 << 11)
        self.a.wr(RS_ONLY, 1)
        force = 1 | 4 | 3 << 3 | 1 << 24
        self.a.wr(DYN_CTL0, force)
        self.assertEqual(self.a.rd(ICR0) & 2, 0)
        tx.send(eth(bytes(60), etype=0x88B5), cmd=1)
        self.assertEqual(self.a.rd(ICR0) & 2, 0)
        self.a.wr(DYN_CTL0, force)
        self.assertEqual(self.a.rd(ICR0) & 2, 2)
        self.assertEqual(tx.head(), 1)
