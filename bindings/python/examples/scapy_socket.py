# SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
"""Scapy on AF_PACKET V4. With conf.L2socket = conf.L2listen = TPacket4Socket, sniff(),
sendp() and srp() use it; iface may be "zc:eth0:3". It takes no BPF filter: use lfilter.
"""

import select
import time
from typing import Any

import tpacket4
from scapy.config import conf
from scapy.layers.l2 import Ether
from scapy.packet import Packet
from scapy.supersocket import SuperSocket

FRAMES = 1024


class TPacket4Socket(SuperSocket):
    desc = "read/write packets by AF_PACKET V4"

    def __init__(
        self,
        iface: object = None,
        filter: str | None = None,
        promisc: bool | None = None,
        **_: Any,
    ) -> None:
        if filter:
            raise ValueError("TPacket4Socket has no BPF filter: use lfilter")
        iface = iface or conf.iface
        self.iface = str(getattr(iface, "network_name", iface))
        self.promisc = bool(conf.sniff_promisc if promisc is None else promisc)
        self.queue: list[tpacket4.Packet] = []
        area = tpacket4.Area(4 * FRAMES)
        self.ins = self.outs = tpacket4.Socket(area, FRAMES, FRAMES, meta=True)
        self.ins.bind(self.iface, promisc=self.promisc)

    def ready(self) -> bool:
        return bool(self.queue) or self.ins.wait(0)

    def recv_raw(
        self, x: int = 0
    ) -> tuple[type[Packet] | None, bytes | None, float | None]:
        if not self.queue:
            self.queue = self.ins.receive()[::-1]
        if not self.queue:
            return None, None, None
        packet = self.queue.pop()
        meta = packet.meta
        return Ether, bytes(packet), meta.tstamp / 1e9 if meta else None

    def send(self, x: Packet) -> int:
        data = bytes(x)
        x.sent_time = time.time()
        while not self.ins.send([data]):
            self.ins.flush()
        self.ins.flush()
        return len(data)

    def close(self) -> None:
        self.queue = []
        super().close()

    @staticmethod
    def select(
        sockets: list[SuperSocket], remain: float | None = conf.recv_poll_rate
    ) -> list[SuperSocket]:
        ready = [
            sock
            for sock in sockets
            if isinstance(sock, TPacket4Socket) and sock.ready()
        ]
        return ready or select.select(sockets, [], [], remain)[0]
