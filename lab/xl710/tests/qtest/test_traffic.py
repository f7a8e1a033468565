# SPDX-License-Identifier: GPL-2.0
"""Packets arrive, with the data that the hardware adds."""

import random
import struct

from base import Base
from packets import MAC0, MS, csum, eth, pseudo, tcp4, udp4
from xl710dev import HENA0, HENA1, PFQF_CTL_0, RD


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
        self.assertEqual(qw1 >> 30 & 0xFF, 24)  # IPv4 UDP
        self.assertTrue(qw1 & 8)  # checksums looked at
        self.assertEqual(qw1 >> 19 & 0xFF, 0)
        self.assertEqual(tx.head(), 1)
        self.assertEqual(self.a.rd(0x3009C0), 1)  # UPTC
        self.assertEqual(self.b.rd(0x3005A0), 1)  # UPRC
        self.assertEqual(self.b.rd(0x300000), len(pkt) + 4)

    def test_descriptor_done(self) -> None:
        tx = self.a.tx_queue(0, head_wb=False)
        self.b.rx_queue(0)
        tx.send(eth(b"y" * 60, etype=0x88B5))
        desc = struct.unpack("<QQ", self.m.read(tx.ring, 16))
        self.assertEqual(desc[1] & 0xF, 0xF)

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
            parts = [pkt[i : i + 2000] for i in range(0, len(pkt), 2000)]
            tx.raw(*[tx.data(p, cmd=3 if p is parts[-1] else 0) for p in parts])
            got = rx.get()
            assert got
            self.assertEqual(got[0], pkt)
            self.assertEqual(len(got[1]), 5)

    def test_too_long(self) -> None:
        tx = self.a.tx_queue(0)
        rx = self.b.rx_queue(0, rxmax=1522)
        tx.send(eth(bytes(2000), etype=0x88B5))
        self.assertIsNone(rx.get())
        self.assertEqual(self.b.rd(0x318400), 1)  # RXERR1
        tx.send(eth(bytes(1500), etype=0x88B5))
        self.assertIsNotNone(rx.get())

    def test_no_descriptors(self) -> None:
        tx = self.a.tx_queue(0)
        rx = self.b.rx_queue(0, qlen=8)
        for _ in range(10):
            tx.send(eth(bytes(60), etype=0x88B5))
        self.assertEqual(self.b.rd(0x300600), 3)  # RDPC
        for _ in range(7):
            self.assertIsNotNone(rx.get())
        self.assertIsNone(rx.get())

    def test_flow_control_waits(self) -> None:
        self.b.aq(0x0601, struct.pack("<IBB", 0xFFFFFFFF, 0x10, 0x1B))
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
            tx.send(
                eth(
                    struct.pack(">HH", tag, 0x88B5) + bytes(60), dst=other, etype=0x8100
                )
            )
            self.assertEqual(rx.get() is not None, want)

    def test_vlan_offload(self) -> None:
        tx = self.a.tx_queue(0)
        rx = self.b.rx_queue(0)
        pkt = eth(b"v" * 60, etype=0x88B5)
        tx.send(pkt, cmd=0x3 | 0x8, tag=0x6123)
        got = rx.get()
        assert got
        self.assertEqual(
            got[0], pkt[:12] + struct.pack(">HH", 0x8100, 0x6123) + pkt[12:]
        )
        info = bytearray(128)
        struct.pack_into("<H", info, 0, 0x0004)
        info[12] = 0x03  # strip
        self.b.aq(0x0211, struct.pack("<H", 390), bytes(info), RD)
        tx.send(pkt, cmd=0x3 | 0x8, tag=0x6123)
        got = rx.get()
        assert got
        self.assertEqual(got[0], pkt)
        self.assertEqual(got[1][0][0] >> 16 & 0xFFFF, 0x6123)
        self.assertTrue(got[1][0][1] & 4)

    def test_checksum_offload(self) -> None:
        tx = self.a.tx_queue(0)
        rx = self.b.rx_queue(0)
        src, dst = "10.0.0.1", "10.0.0.2"
        for proto, l4len, at in ((6, 20, 16), (17, 8, 6)):
            data = b"checksum" * 9 + b"!"
            seed = ~csum(pseudo(src, dst, proto, l4len + len(data))) & 0xFFFF
            if proto == 6:
                ip = tcp4(1, 2, data, src, dst, check=seed)
                cmd = 0x3 | 0x40 | 0x100
            else:
                ip = bytearray(udp4(1, 2, data))
                struct.pack_into(">H", ip, 26, seed)
                cmd = 0x3 | 0x40 | 0x300
            tx.send(eth(bytes(ip)), cmd=cmd, offset=7 | 5 << 7 | (l4len // 4) << 14)
            got = rx.get()
            assert got
            l4 = got[0][34:]
            self.assertEqual(csum(pseudo(src, dst, proto, len(l4)) + l4), 0)
            self.assertEqual(got[1][0][1] >> 19 & 0xFF, 0)
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
        seed = ~csum(pseudo(src, dst, 6, 0)) & 0xFFFF
        pkt = eth(tcp4(1, 2, data, src, dst, check=seed, flags=flags))
        ctx = (0, 1 | 1 << 4 | size << 30 | mss << 50)
        parts = [pkt[i : i + 8000] for i in range(0, len(pkt), 8000)]
        cmd, off = 0x60 | 0x100, 7 | 5 << 7 | 5 << 14
        tx.raw(
            ctx,
            *[
                tx.data(p, cmd=cmd | (3 if p is parts[-1] else 0), offset=off)
                for p in parts
            ],
        )
        segs = []
        while True:
            got = rx.get()
            if not got:
                break
            segs.append(got[0])
            self.assertEqual(got[1][0][1] >> 19 & 0xFF, 0, "bad checksum")
        self.assertEqual(b"".join(s[54 : 54 + mss] for s in segs)[:size], data)
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
        key = bytes.fromhex(
            "6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b4"
            "77cb2da38030f20c6a42b73bbeac01fa"
        ).ljust(52, b"\0")
        for i in range(13):
            self.b.wr(0x244800 + 128 * i, struct.unpack_from("<I", key, 4 * i)[0])
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
            self.b.wr(0x240000 + 128 * i, sum((base + j) << 8 * j for j in range(4)))
        for i in range(13):
            self.b.wr(0x244800 + 128 * i, 0x9E3779B1 * (i + 1))
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

    def program(
        self, tx, port: int, queue: int, pcmd: int = 1, dest: int = 1, fd_id: int = 77
    ) -> None:
        """A UDP rule for 10.0.0.1:port -> 10.0.0.2:9, as the driver writes."""
        dummy = eth(udp4(9, port, b"", src="10.0.0.2", dst="10.0.0.1"))
        lo = queue | 31 << 17
        cmd = 8 | pcmd << 4 | dest << 7 | 1 << 11 | 1 << 13 | 5 << 20
        tx.raw((lo, cmd | fd_id << 32), tx.data(dummy.ljust(512, b"\0"), cmd=0x13))

    def test_flow_director(self) -> None:
        self.b.vsi_queues(2)
        self.b.wr(PFQF_CTL_0, 1 << 17)
        ctl = self.b.tx_queue(8)
        rxs = [self.b.rx_queue(q) for q in range(4)]
        errors = self.b.rx_queue(8)
        tx = self.a.tx_queue(0)
        self.program(ctl, 1000, 3)
        self.assertEqual(self.b.rd(0x246380), 1)  # FDSTAT
        tx.send(eth(udp4(1000, 9, b"m" * 20)))
        got = rxs[3].get()
        assert got
        self.assertEqual(got[1][0][0] >> 32, 77)
        self.assertEqual(got[1][0][1] >> 12 & 3, 1)
        self.assertEqual(self.b.rd(0x266800 + 4 * 5), 1)  # PCNT
        self.b.wr(0x266800 + 4 * 5, 1)
        self.assertEqual(self.b.rd(0x266800 + 4 * 5), 0)
        tx.send(eth(udp4(1001, 9, b"m" * 20)))
        self.assertIsNotNone(rxs[0].get())
        self.assertIsNone(rxs[3].get())
        self.program(ctl, 1000, 2)  # update
        self.assertEqual(self.b.rd(0x246380), 1)
        tx.send(eth(udp4(1000, 9, b"m" * 20)))
        self.assertIsNotNone(rxs[2].get())
        self.program(ctl, 1000, 0, dest=0)  # drop
        tx.send(eth(udp4(1000, 9, b"m" * 20)))
        self.assertTrue(all(rx.get() is None for rx in rxs))
        self.program(ctl, 1000, 0, pcmd=2)  # remove
        self.assertEqual(self.b.rd(0x246380), 0)
        self.assertIsNone(errors.get())
        self.program(ctl, 1000, 0, pcmd=2)  # not there
        got = errors.get()
        assert got
        self.assertEqual(got[1][0][1] >> 19 & 0x3F, 2)
        self.program(ctl, 1000, 3)
        self.b.wr(0x245D80, 1)  # flush
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
        self.assertEqual(self.a.rd(0x300A20), 1)  # TDOLD
        self.assertEqual(tx.head(), 1)


class Netdev(Base):
    """Ports on netdevs of QEMU instead of a wire."""

    args = (
        "-netdev",
        "hubport,id=h0,hubid=0",
        "-netdev",
        "hubport,id=h1,hubid=0",
        "-device",
        "xl710,netdev=h0,addr=4,mac=52:54:00:00:00:01",
        "-device",
        "xl710,netdev=h1,addr=5,mac=52:54:00:00:00:02",
    )

    def test_through_a_hub(self) -> None:
        self.ready(self.a)
        self.ready(self.b)
        tx, rx = self.a.tx_queue(0), self.b.rx_queue(0)
        for size in (60, 1500, 9000):
            pkt = eth(random.randbytes(size), etype=0x88B5)
            tx.send(pkt)
            got = rx.get()
            assert got
            self.assertEqual(got[0], pkt)


class Generator(Base):
    args = (
        "-device",
        (
            "xl710,id=p0,addr=4,mac=52:54:00:00:00:01,gen-rate="
            "1000000,gen-size=128,gen-flows=4,gen-count=1000,sink=on"
        ),
        "-device",
        "xl710,id=p1,addr=5,mac=52:54:00:00:00:02",
    )

    def test_generates(self) -> None:
        self.ready(self.a)
        rx = self.a.rx_queue(0, qlen=512)
        self.m.step(200000)  # 200 us: 200 packets
        ports = set()
        n = 0
        while True:
            got = rx.get()
            if not got:
                break
            n += 1
            self.assertEqual(len(got[0]), 124)
            self.assertEqual(got[1][0][1] >> 22 & 1, 0)  # IP checksum
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
    args = (
        "-device",
        (
            "xl710,id=p0,addr=4,mac=52:54:00:00:00:01,gen-rate="
            "1000000000000,gen-flows=60000"
        ),
        "-device",
        "xl710,id=p1,addr=5",
    )

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
