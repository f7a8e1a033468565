# SPDX-License-Identifier: GPL-2.0
"""IEEE 1588: the clock, and timestamps of packets that are sent and received."""

from base import Base
from packets import MS, eth, udp4
from xl710dev import DYN_CTL0, ICR0, ICR0_ENA, Port, TxQueue

CTL0, CTL1, STAT_0, STAT_1 = 0x1E4200, 0x85020, 0x1E4220, 0x85140
INC_L, INC_H, TIME_L, TIME_H, ADJ = 0x1E4040, 0x1E4060, 0x1E4100, 0x1E4120, 0x1E4280
TXTIME_L, TXTIME_H = 0x1E41C0, 0x1E41E0
ENA, TX_INT, TIMESYNC = 1 << 31, 1 << 1, 1 << 23
INC = 0x199999999
V2 = 2 << 24 | 1 << 26 | 0xF << 16  # by Ethernet and UDP, all event messages
START = (7 << 32) - 100


def rxtime(port: Port, i: int) -> int:
    low = port.rd(0x850C0 + 32 * i)
    return low | port.rd(0x85040 + 32 * i) << 32


def message(kind: int) -> bytes:
    return eth(bytes([kind, 2]).ljust(46, b"\0"), etype=0x88F7)


class Ptp(Base):
    def setUp(self) -> None:
        super().setUp()
        for port in (self.a, self.b):
            self.ready(port)
            port.wr(CTL0, ENA | TX_INT)
            port.wr(CTL1, ENA | V2)
            port.wr(INC_L, INC & 0xFFFFFFFF)
            port.wr(INC_H, INC >> 32)
            self.set_time(port, START)

    def set_time(self, port: Port, ns: int) -> None:
        port.wr(TIME_L, ns & 0xFFFFFFFF)
        port.wr(TIME_H, ns >> 32)

    def time(self, port: Port) -> int:
        low = port.rd(TIME_L)
        return low | port.rd(TIME_H) << 32

    def near(self, want: int, got: int) -> None:
        self.assertTrue(abs(want - got) <= 2, f"{got} is not {want}")

    def send(self, tx: TxQueue, pkt: bytes, cmd: int = 2) -> None:
        tx.raw((0, 1 | cmd << 4), tx.data(pkt))

    def test_clock(self) -> None:
        self.m.step(MS)
        self.near(START + MS, self.time(self.a))
        self.a.wr(ADJ, 1 << 31 | 500)
        self.near(START + MS - 500, self.time(self.a))
        self.a.wr(ADJ, 1000)
        self.near(START + MS + 500, self.time(self.a))
        # half as fast, once both halves are written
        self.a.wr(INC_L, INC // 2 & 0xFFFFFFFF)
        self.a.wr(INC_H, INC // 2 >> 32)
        self.m.step(MS)
        self.near(START + MS + 500 + MS // 2, self.time(self.a))
        self.a.wr(CTL0, 0)
        before = self.time(self.a)
        self.m.step(MS)
        self.assertEqual(before, self.time(self.a))

    def test_upper_half_is_of_the_same_time(self) -> None:
        low = self.a.rd(TIME_L)
        self.m.step(MS)
        self.assertEqual(START, low | self.a.rd(TIME_H) << 32)

    def test_owner_is_function_0(self) -> None:
        self.a.wr(CTL0, 0xFFFFFFFF)
        self.assertEqual(0, self.a.rd(CTL0) >> 8 & 0xF)

    def test_sent(self) -> None:
        tx = self.a.tx_queue(0, stamps=True)
        self.a.wr(ICR0_ENA, TIMESYNC)
        self.a.wr(DYN_CTL0, 1 | 3 << 3)
        self.send(tx, message(0))
        self.assertTrue(self.a.rd(ICR0) & TIMESYNC)
        self.assertEqual(0x10, self.a.rd(STAT_0))
        self.assertEqual(0, self.a.rd(STAT_0))
        low = self.a.rd(TXTIME_L)
        # the next one is not stamped before the time has been read
        self.send(tx, message(0))
        self.assertEqual(0, self.a.rd(STAT_0))
        self.assertEqual(low, self.a.rd(TXTIME_L))
        self.near(START + 1000, low | self.a.rd(TXTIME_H) << 32)
        self.send(tx, message(0))
        self.assertEqual(0x10, self.a.rd(STAT_0))
        low = self.a.rd(TXTIME_L)
        self.near(START + 3000, low | self.a.rd(TXTIME_H) << 32)

    def test_not_sent(self) -> None:
        """Without TSYN, without the queue's permission, while disabled."""
        tx = self.a.tx_queue(0, stamps=True)
        self.send(tx, message(0), cmd=0)
        tx.send(message(0))
        self.a.wr(CTL0, 0)
        self.send(tx, message(0))
        self.a.wr(CTL0, ENA)
        self.send(self.a.tx_queue(1), message(0))
        self.assertEqual(0, self.a.rd(STAT_0))
        self.send(tx, message(0))
        self.assertEqual(0x10, self.a.rd(STAT_0))
        self.assertFalse(self.a.rd(ICR0) & TIMESYNC)  # TXTIME_INT_ENA

    def test_received(self) -> None:
        tx = self.a.tx_queue(0)
        rx = self.b.rx_queue(0)
        udp = eth(udp4(319, 319, bytes([1]).ljust(44, b"\0")))
        other = eth(udp4(320, 320, bytes([1]).ljust(44, b"\0")))
        at = START
        for pkt, latch in (
            (message(0), 0),
            (message(8), None),  # no event
            (other, None),
            (udp, 1),
            (message(3), 2),
            (eth(b"x" * 60, etype=0x88B5), None),
            (message(2), 3),
            (message(0), None),  # no register is free
        ):
            tx.send(pkt)
            at += 1000
            got = rx.get()
            assert got
            qw1 = got[1][0][1]
            self.assertEqual(latch is not None, bool(qw1 & 1 << 7))
            if latch is not None:
                self.assertEqual(latch, qw1 >> 5 & 3)
                low = self.b.rd(0x850C0 + 32 * latch)
                self.near(at & 0xFFFFFFFF, low)
        self.assertEqual(0xF, self.b.rd(STAT_1))
        self.near(START + 4000, rxtime(self.b, 1))
        self.assertEqual(0xD, self.b.rd(STAT_1))
        tx.send(message(0))
        got = rx.get()
        assert got
        self.assertEqual(1 << 7 | 1 << 5, got[1][0][1] & 0xE0)

    def test_core_reset(self) -> None:
        self.send(self.a.tx_queue(0, stamps=True), message(0))
        self.a.wr(0xB8190, 1)  # RTRIG_CORER
        self.m.step(150 * MS)
        self.assertEqual((0, 0), (self.a.rd(CTL0), self.time(self.a)))
        self.m.step(MS)
        self.assertEqual((0, 0), (self.a.rd(STAT_0), self.time(self.a)))
