# SPDX-License-Identifier: GPL-2.0
"""Strict behaviour of the hardware: a driver must wait for completions."""

import json
import os
import random
import socket
import struct

from base import Base
from packets import MAC1, csum, eth, pseudo, tcp4
from xl710dev import (
    CAUSE_ENA,
    DYN_CTLN0,
    GL_MDET_RX,
    GL_MDET_TX,
    LANCTXCTL,
    LANCTXDATA,
    LANCTXSTAT,
    PDINV,
    PFGEN_CTRL,
    RESET_DELAY,
    RS_ONLY,
    STOP_DELAY,
    STUCK_RX,
    STUCK_TX,
    TX_BURST,
    TX_DELAY,
    Port,
    TxQueue,
    qrx_ena,
    qrx_tail,
    qtx_ctl,
    qtx_ena,
    rqctl,
    tqctl,
)

EOP, RS = 1, 2


def numbered(n: int) -> bytes:
    return eth(struct.pack(">I", n).ljust(60, b"-"), etype=0x88B5)


def number(pkt: bytes) -> int:
    return struct.unpack_from(">I", pkt, 14)[0]


class Strict(Base):
    def setUp(self) -> None:
        super().setUp()
        for port in (self.a, self.b):
            self.ready(port)

    def cause_on(self, port: Port, ctl: int) -> None:
        """Let a queue that is on vector 1 raise it, and the vector fire."""
        port.wr(ctl, port.rd(ctl) | CAUSE_ENA)
        port.wr(DYN_CTLN0, 1 | 3 << 3)

    def fired(self, port: Port) -> bool:
        """Check whether vector 1 has masked itself."""
        return not port.rd(DYN_CTLN0) & 1

    def no_mdd(self) -> None:
        self.assertFalse(self.a.rd(GL_MDET_TX) & 1 << 31, "an MDD event")

    def mdd(self) -> None:
        self.assertTrue(self.a.rd(GL_MDET_TX) & 1 << 31, "no MDD event")
        self.a.wr(GL_MDET_TX, 0xFFFFFFFF)


class Transmit(Strict):
    def test_nothing_is_done_in_the_tail_write(self) -> None:
        tx, rx = self.a.tx_queue(0), self.b.rx_queue(0)
        desc = tx.data(numbered(1))
        tx.raw(desc, wait=False)
        self.assertEqual(tx.head(), 0)
        self.assertIsNone(rx.get())
        self.m.step(999)
        self.assertEqual(tx.head(), 0)
        # the data is read when the packet is sent, and not before
        self.m.write(desc[0], numbered(2))
        self.m.step(1)
        self.assertEqual(tx.head(), 1)
        got = rx.get()
        assert got
        self.assertEqual(number(got[0]), 2)

    def test_delay_is_a_property(self) -> None:
        self.assertEqual(self.a.rd(TX_DELAY), 1000)
        self.a.wr(TX_DELAY, 5000)
        self.a.wr(TX_BURST, 0)  # nonsense
        tx = self.a.tx_queue(0)
        tx.send(numbered(1), wait=False)
        self.m.step(4999)
        self.assertEqual(tx.head(), 0)
        self.m.step(1)
        self.assertEqual(tx.head(), 1)

    def test_prefetched_descriptors(self) -> None:
        """64 are fetched with the tail write, the others later."""
        tx, rx = self.a.tx_queue(0, qlen=128), self.b.rx_queue(0, qlen=128)
        tx.raw(*[tx.data(numbered(i)) for i in range(100)], wait=False)
        other = struct.pack("<QQ", *tx.data(numbered(1000)))
        for i in range(100):
            self.m.write(tx.ring + 16 * i, other)
        self.m.step(10000)
        for i in range(100):
            got = rx.get()
            assert got
            self.assertEqual(number(got[0]), i if i < 64 else 1000)

    def test_head_moves_with_rs_only(self) -> None:
        tx, rx = self.a.tx_queue(0, link=False), self.b.rx_queue(0)
        for i in range(3):
            tx.send(numbered(i), cmd=EOP)
        for _ in range(3):
            self.assertIsNotNone(rx.get())
        self.assertEqual(tx.head(), 0)
        tx.raw(
            tx.data(numbered(3), cmd=EOP),
            tx.data(numbered(4), cmd=EOP | RS),
            tx.data(numbered(5), cmd=EOP),
        )
        self.assertEqual(tx.head(), 5)

    def test_done_with_rs_only(self) -> None:
        tx = self.a.tx_queue(0, head_wb=False)
        tx.raw(tx.data(numbered(0), cmd=EOP), tx.data(numbered(1), cmd=EOP | RS))
        self.a.force_wb()
        done = [self.m.read(tx.ring + 16 * i + 8, 1)[0] & 0xF for i in range(2)]
        self.assertEqual(done, [0, 0xF])

    def test_interrupt_writes_back(self) -> None:
        tx = self.a.tx_queue(0)
        for i in range(3):
            tx.send(numbered(i), cmd=EOP)
        self.assertEqual(tx.head(), 0)
        self.a.force_wb()
        self.assertEqual(tx.head(), 3)

    def test_interrupt_without_rs(self) -> None:
        tx = self.a.tx_queue(0)
        self.cause_on(self.a, tqctl(0))
        tx.send(numbered(0), cmd=EOP)
        self.assertTrue(self.fired(self.a))
        self.assertEqual(tx.head(), 1)
        # but not with rs-only, until another packet triggers it
        self.a.wr(RS_ONLY, 1)
        self.a.wr(DYN_CTLN0, 1 | 3 << 3)
        tx.send(numbered(1), cmd=EOP)
        self.assertFalse(self.fired(self.a))
        self.assertEqual(tx.head(), 1)
        self.a.force_wb()
        self.assertEqual(tx.head(), 2)
        self.a.wr(DYN_CTLN0, 1 | 3 << 3)
        tx.send(numbered(2), cmd=EOP | RS)
        self.assertTrue(self.fired(self.a))

    def test_partial_head(self) -> None:
        """A run of packets with one RS at its end, seen on its way."""
        self.a.wr(TX_BURST, 1)
        self.a.wr(TX_DELAY, 10000)
        tx = self.a.tx_queue(0)
        tx.raw(
            *[tx.data(numbered(i), cmd=EOP | (RS if i == 7 else 0)) for i in range(8)],
            wait=False,
        )
        self.m.step(35000)
        self.assertEqual(tx.head(), 0)
        self.a.force_wb()
        self.assertEqual(tx.head(), 3)
        self.m.step(44999)
        self.assertEqual(tx.head(), 3)
        self.m.step(1)
        self.assertEqual(tx.head(), 8)

    def test_head_is_at_the_end_of_a_packet(self) -> None:
        tx = self.a.tx_queue(0)
        tx.raw(tx.data(numbered(0), cmd=EOP), tx.data(numbered(1), cmd=0))
        self.a.force_wb()
        self.assertEqual(tx.head(), 1)

    def fragments(self, tx: TxQueue, n: int) -> None:
        tx.raw(*[tx.data(bytes(100), cmd=3 if i == n - 1 else 0) for i in range(n)])

    def test_eight_fragments(self) -> None:
        tx, rx = self.a.tx_queue(0), self.b.rx_queue(0)
        self.b.promisc()
        self.fragments(tx, 8)
        self.no_mdd()
        got = rx.get()
        assert got
        self.assertEqual(len(got[0]), 800)
        self.fragments(tx, 9)
        self.mdd()

    def segments(self, tx: TxQueue, piece: int) -> None:
        """5840 bytes in 4 segments, cut into pieces; headers in one of 54."""
        pkt = eth(
            tcp4(
                1,
                2,
                bytes(5840),
                "10.0.0.1",
                "10.0.0.2",
                check=~csum(pseudo("10.0.0.1", "10.0.0.2", 6, 0)) & 0xFFFF,
            )
        )
        parts = [pkt[:54]] + [pkt[i : i + piece] for i in range(54, len(pkt), piece)]
        off, last = 7 | 5 << 7 | 5 << 14, len(parts) - 1
        tx.raw(
            (0, 1 | 1 << 4 | 5840 << 30 | 1460 << 50),
            *[
                tx.data(p, cmd=0x160 | (3 if i == last else 0), offset=off)
                for i, p in enumerate(parts)
            ],
        )

    def test_eight_fragments_a_segment(self) -> None:
        tx, rx = self.a.tx_queue(0), self.b.rx_queue(0)
        self.segments(tx, 250)  # 24 in all, 7 and the headers in a segment
        self.no_mdd()
        for _ in range(4):
            self.assertIsNotNone(rx.get())
        self.segments(tx, 200)  # 8 and the headers
        self.mdd()

    def test_seventeen_bytes(self) -> None:
        tx = self.a.tx_queue(0)
        tx.send(eth(bytes(3)))
        self.no_mdd()
        tx.send(eth(bytes(2)))
        self.mdd()

    def test_context_inside_a_packet(self) -> None:
        tx = self.a.tx_queue(0)
        tx.raw(tx.data(bytes(100), cmd=0), (0, 1), tx.data(bytes(100)))
        self.mdd()

    def test_queue_of_nobody(self) -> None:
        for ctl in (0, 1 | 5 << 7, 2 | 1 << 2):  # a VF's, VSI 5's, PF 1's
            self.a.tx_context(0, 64, True, 0)
            self.a.wr(qtx_ctl(0), ctl)
            self.a.wr(qtx_ena(0), 1)
            self.assertEqual(self.a.rd(qtx_ena(0)) & 4, 0)
            self.mdd()
        self.a.wr(qtx_ctl(0), 1)  # VSI 0's
        self.a.wr(qtx_ena(0), 1)
        self.assertEqual(self.a.rd(qtx_ena(0)) & 4, 4)

    def test_queue_set_of_nobody(self) -> None:
        for vsi in (1, 64, 1023):
            self.a.tx_queue(0, vsi=vsi)
            self.assertEqual(self.a.rd(qtx_ena(0)) & 4, 0)
            self.mdd()


class Receive(Strict):
    def test_written_back_by_the_cache_line(self) -> None:
        for desc32, line in ((False, 4), (True, 2)):
            tx, rx = self.a.tx_queue(0), self.b.rx_queue(0, desc32=desc32)
            for i in range(1, 2 * line + 2):
                tx.send(numbered(i))
                self.assertEqual(rx.done(), i // line * line)
            self.a.stop(qtx_ena(0))
            self.b.stop(qrx_ena(0))
            self.assertEqual(rx.done(), 2 * line + 1)

    def test_interrupt_writes_back(self) -> None:
        tx, rx = self.a.tx_queue(0), self.b.rx_queue(0)
        self.b.wr(rqctl(0), self.b.rd(rqctl(0)) | CAUSE_ENA)
        for i in range(6):
            tx.send(numbered(i))
        self.assertEqual(rx.done(), 4)
        self.b.wr(DYN_CTLN0, 1 | 3 << 3)
        self.assertTrue(self.fired(self.b))
        self.assertEqual(rx.done(), 6)

    def test_only_queues_in_the_list(self) -> None:
        """A queue that names a vector, but is not in its list."""
        tx, rx = self.a.tx_queue(0), self.b.rx_queue(0, link=False)
        self.b.wr(0x35000, 0x7FF)
        self.b.wr(rqctl(0), 1 | 0x7FF << 16 | CAUSE_ENA)
        self.b.wr(DYN_CTLN0, 1 | 3 << 3)
        tx.send(numbered(0))
        self.assertFalse(self.fired(self.b))
        self.b.force_wb()
        self.assertEqual(rx.done(), 0)
        self.b.wr(0x35000, 0)
        self.b.force_wb()
        self.assertEqual(rx.done(), 1)
        self.b.wr(DYN_CTLN0, 1 | 3 << 3)
        tx.send(numbered(1))
        self.assertTrue(self.fired(self.b))

    def test_prefetched_descriptors(self) -> None:
        for prefetch in (True, False):
            tx, rx = self.a.tx_queue(0), self.b.rx_queue(0, prefetch=prefetch)
            other = self.m.alloc(4096)
            self.m.write(rx.ring, struct.pack("<QQ", other, 0))
            tx.send(numbered(7))
            self.b.force_wb()
            self.assertEqual(rx.done(), 1)
            mine, new = (self.m.read(x, 18)[14:] for x in (rx.bufs, other))
            want = struct.pack(">I", 7), bytes(4)
            self.assertEqual((mine, new) if prefetch else (new, mine), want)
            self.a.stop(qtx_ena(0))
            self.b.stop(qrx_ena(0))

    def test_running_low(self) -> None:
        """With fewer than 64 free the interrupt does not wait for its ITR."""
        tx, rx = self.a.tx_queue(0), self.b.rx_queue(0, qlen=128, low=1)
        self.b.wr(0x30000, 0xFFF)  # 8 ms
        self.cause_on(self.b, rqctl(0))
        tx.send(numbered(0))
        self.assertTrue(self.fired(self.b))
        self.b.wr(DYN_CTLN0, 1 | 3 << 3)
        for i in range(1, 63):
            tx.send(numbered(i))
        self.assertFalse(self.fired(self.b))
        tx.send(numbered(63))  # the 64th of 127
        self.assertTrue(self.fired(self.b))
        self.assertEqual(rx.done(), 64)

    def test_bad_tail(self) -> None:
        """The tail write is invalid, not the packet after it."""
        self.a.rx_queue(0)
        self.a.wr(qrx_tail(0), 64)
        self.assertTrue(self.a.rd(GL_MDET_RX) & 1 << 31)
        self.assertEqual(self.a.rd(qrx_ena(0)) & 4, 0)


class Stop(Strict):
    def test_rx_goes_on_until_it_has_stopped(self) -> None:
        tx, rx = self.a.tx_queue(0), self.b.rx_queue(0)
        delay = self.b.rd(STOP_DELAY)
        self.assertEqual(delay, 20000)
        self.b.wr(qrx_ena(0), 0)
        self.assertEqual(self.b.rd(qrx_ena(0)), 4)
        tx.send(numbered(1))
        self.m.step(delay - 1001)
        self.assertEqual(self.b.rd(qrx_ena(0)), 4)
        self.m.step(1)
        self.assertEqual(self.b.rd(qrx_ena(0)), 0)
        self.assertEqual(rx.done(), 1)
        tx.send(numbered(2))
        self.assertIsNotNone(rx.get())
        self.assertIsNone(rx.get())

    def test_tx_sends_what_it_has(self) -> None:
        """Only prefetched packets if it was pre-disabled, else all."""
        for predis, want in ((False, 100), (True, 64)):
            tx, rx = self.a.tx_queue(0, qlen=128), self.b.rx_queue(0, qlen=128)
            self.a.wr(0xE6500, 1 << 31)
            tx.raw(*[tx.data(numbered(i)) for i in range(100)], wait=False)
            if predis:
                self.a.wr(0xE6500, 1 << 30)
            self.a.wr(qtx_ena(0), 0)
            self.assertEqual(self.a.rd(qtx_ena(0)), 4)
            tx.raw(tx.data(numbered(1000)))  # too late
            self.m.step(self.a.rd(STOP_DELAY) - 1001)
            self.assertEqual(self.a.rd(qtx_ena(0)), 4)
            self.m.step(1)
            self.assertEqual(self.a.rd(qtx_ena(0)), 0)
            self.assertEqual(tx.head(), want)
            for _ in range(want):
                self.assertIsNotNone(rx.get())
            self.assertIsNone(rx.get())
            self.b.stop(qrx_ena(0))

    def test_pre_disabled_queue_fetches_nothing(self) -> None:
        self.a.wr(0xE6500, 1 << 30)
        tx = self.a.tx_queue(0)
        self.assertEqual(self.a.rd(qtx_ena(0)), 5)
        tx.send(numbered(0))
        self.assertEqual(tx.head(), 0)
        self.a.wr(0xE6500, 1 << 31)
        self.m.step(1000)
        self.assertEqual(tx.head(), 1)

    def test_enabled_while_it_stops(self) -> None:
        """It continues with the cached context."""
        tx = self.a.tx_queue(0)
        tx.send(numbered(0))
        self.a.wr(qtx_ena(0), 0)
        self.a.tx_context(0, 64, True, 0)
        self.a.wr(qtx_ena(0), 1)
        self.m.step(100000)
        self.assertEqual(self.a.rd(qtx_ena(0)), 5)
        tx.send(numbered(1))
        self.assertEqual(tx.head(), 2)

    def test_stuck(self) -> None:
        tx, rx = self.a.tx_queue(1), self.b.rx_queue(0)
        self.a.wr(STUCK_TX, 1)
        self.b.wr(STUCK_RX, 0)
        self.a.wr(qtx_ena(1), 0)
        self.b.wr(qrx_ena(0), 0)
        self.m.step(1000000)
        self.assertEqual(self.a.rd(qtx_ena(1)), 4)
        self.assertEqual(self.b.rd(qrx_ena(0)), 4)
        tx.send(numbered(1))
        self.assertIsNotNone(rx.get())
        self.a.wr(STUCK_TX, 0xFFFFFFFF)
        self.b.wr(STUCK_RX, 0xFFFFFFFF)
        self.m.step(1)
        self.assertEqual(self.a.rd(qtx_ena(1)), 0)
        self.assertEqual(self.b.rd(qrx_ena(0)), 0)

    def test_reset_stops_what_is_stuck(self) -> None:
        self.a.tx_queue(0)
        self.a.wr(STUCK_TX, 0)
        self.a.wr(qtx_ena(0), 0)
        self.m.step(1000000)
        self.a.wr(PFGEN_CTRL, 1)
        self.m.step(self.a.rd(RESET_DELAY) - 1)
        self.assertEqual(self.a.rd(PFGEN_CTRL) & 1, 1)
        self.assertEqual(self.a.rd(qtx_ena(0)), 4)
        self.m.step(1)
        self.assertEqual(self.a.rd(PFGEN_CTRL) & 1, 0)
        self.assertEqual(self.a.rd(qtx_ena(0)), 0)


class Contexts(Strict):
    def test_page_descriptors_are_kept(self) -> None:
        """Until PDINV, a replaced page is still read."""
        self.a.hmc_setup(paged=True)
        table = self.m.next - 4096
        self.a.tx_queue(0)
        old, self.a.hmc = self.a.hmc, self.m.alloc(4096)
        self.a.tx_context(1, 64, True, 0)
        self.a.wr(qtx_ctl(1), 2)
        self.m.write(table, struct.pack("<Q", self.a.hmc | 1))
        self.a.wr(qtx_ena(1), 1)
        self.assertEqual(self.a.rd(qtx_ena(1)) & 4, 0)
        self.mdd()
        self.a.wr(PDINV, 1 << 16)  # of another page
        self.a.wr(qtx_ena(1), 1)
        self.assertEqual(self.a.rd(qtx_ena(1)) & 4, 0)
        self.mdd()
        self.a.wr(PDINV, 0)
        self.a.wr(qtx_ena(1), 1)
        self.assertEqual(self.a.rd(qtx_ena(1)) & 4, 4)
        self.a.hmc = old

    def lanctx(self, q: int, line: int, tx: bool, data: bytes | None = None) -> bytes:
        """Write or read 16 bytes of a context, as the driver of iPXE does."""
        if data:
            for i, word in enumerate(struct.unpack("<4I", data)):
                self.a.wr(LANCTXDATA + 128 * i, word)
        op = 1 if data else 0
        self.a.wr(LANCTXCTL, q | line << 12 | int(tx) << 15 | op << 17)
        self.assertEqual(self.a.rd(LANCTXSTAT), 1)
        return struct.pack("<4I", *(self.a.rd(LANCTXDATA + 128 * i) for i in range(4)))

    def test_contexts_inside_the_device(self) -> None:
        """The context cache is written directly, without host memory."""
        self.a.pf_reset()
        self.a.aq_setup()
        ring = self.m.alloc(2048, 128)
        ctx = 1 << 30 | (ring // 128) << 32 | 64 << (128 + 33)
        ctx |= 1 << (128 + 32) | (ring + 1024) << (128 + 64)
        raw = ctx.to_bytes(128, "little")
        for line in range(8):
            self.lanctx(3, line, True, raw[16 * line :][:16])
        for line in range(8):
            self.assertEqual(self.lanctx(3, line, True), raw[16 * line :][:16])
        self.a.wr(LANCTXCTL, 3 | 2 << 12)  # an Rx context has two lines
        self.assertEqual(self.a.rd(LANCTXSTAT), 3)
        self.a.wr(qtx_ctl(3), 2)
        self.a.wr(qtx_ena(3), 1)
        self.assertEqual(self.a.rd(qtx_ena(3)), 5)
        tx, rx = TxQueue(self.a, 3, ring, 64), self.b.rx_queue(0)
        tx.send(eth(random.randbytes(60), dst=MAC1, etype=0x88B5))
        self.assertEqual(tx.head(), 1)
        self.assertIsNotNone(rx.get())


class Properties(Base):
    args = (
        "-device",
        "xl710,id=p0,addr=4,tx-delay=7,tx-burst=1,rs-only=1,stuck-tx=5",
        "-device",
        "xl710,id=p1,addr=5,stop-delay=8,reset-delay=9,stuck-rx=0,peer=p0",
    )

    def setUp(self) -> None:
        """Tests with QEMU's monitor."""
        mine, its = socket.socketpair()
        os.set_inheritable(its.fileno(), True)
        self.args += (
            "-chardev",
            f"socket,id=qmp,fd={its.fileno()}",
            "-mon",
            "chardev=qmp,mode=control",
        )
        super().setUp()
        its.close()
        self.qmp = mine.makefile("rw")
        mine.close()
        self.qmp.readline()  # the greeting
        self.qmp.write('{"execute": "qmp_capabilities"}\n')
        self.qmp.flush()
        self.qmp.readline()

    def tearDown(self) -> None:
        self.qmp.close()
        super().tearDown()

    def test_knobs_are_properties_and_registers(self) -> None:
        for port, want in (
            (self.a, (7, 1, 1, 20000, 10000000, 5, 0xFFFFFFFF)),
            (self.b, (1000, 32, 0, 8, 9, 0xFFFFFFFF, 0)),
        ):
            self.assertEqual(tuple(port.rd(TX_DELAY + 4 * i) for i in range(7)), want)

    def qom_set(self, name: str, value: int) -> dict:
        args = {"path": "/machine/peripheral/p0", "property": name, "value": value}
        self.qmp.write(json.dumps({"execute": "qom-set", "arguments": args}) + "\n")
        self.qmp.flush()
        return json.loads(self.qmp.readline())

    def test_knobs_are_set_while_it_runs(self) -> None:
        self.assertEqual(self.qom_set("tx-delay", 5000)["return"], {})
        self.assertEqual(self.a.rd(TX_DELAY), 5000)
        for name, value in (
            ("tx-delay", -1),
            ("tx-burst", 0),
            ("stuck-rx", -2),
            ("reset-delay", 1 << 32),
        ):
            self.assertIn("must be", self.qom_set(name, value)["error"]["desc"])
        self.assertEqual(self.a.rd(TX_DELAY), 5000)
        self.assertEqual(self.qom_set("reset-delay", 4000000000)["return"], {})
        self.assertEqual(self.a.rd(RESET_DELAY), 4000000000)
