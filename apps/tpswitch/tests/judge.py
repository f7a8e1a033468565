#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Compares the switch with a Linux bridge: judge.py PORTS SEED.

Sends the same random packets to the ports of both, through bro0, ... and swo0, ...
The packets that come out must be the same, at the same ports.
"""

import random
import select
import socket
import sys
import time

PACKETS = 400
ETHERTYPE = 0x88B5


class Side:
    """The far ends of the ports of one switch."""

    def __init__(self, name: str, ports: int) -> None:
        self.sockets = []
        for i in range(ports):
            sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            sock.bind((f"{name}{i}", 3))
            membership = socket.if_nametoindex(f"{name}{i}").to_bytes(4, "little")
            # PACKET_ADD_MEMBERSHIP, PACKET_MR_PROMISC
            sock.setsockopt(263, 1, membership + b"\1\0\0\0" + bytes(8))
            self.sockets.append(sock)

    def take(self, number: int, timeout: float, most: int) -> set[int]:
        """The ports at which packet `number` comes out."""
        ports: set[int] = set()
        end = time.monotonic() + timeout
        while len(ports) < most and (left := end - time.monotonic()) > 0:
            for sock in select.select(self.sockets, [], [], left)[0]:
                frame, address = sock.recvfrom(2048)
                if address[2] == 4 or address[1] != ETHERTYPE:  # outgoing, or not ours
                    continue
                got = int.from_bytes(frame[14:18], "big")
                if got != number:
                    print(f"# packet {got} came after {number} was sent")
                    sys.exit(1)
                ports.add(self.sockets.index(sock))
        return ports


def main() -> int:
    ports, seed = int(sys.argv[1]), int(sys.argv[2])
    rnd = random.Random(seed)
    bridge, switch = Side("bro", ports), Side("swo", ports)
    macs = [bytes([2, 0, 0, 0, 7, i]) for i in range(8)]
    odd = [
        b"\xff" * 6,
        bytes.fromhex("01005e000001"),
        bytes.fromhex("333300000001"),
        bytes.fromhex("0180c2000000"),  # no bridge forwards this one,
        bytes.fromhex("0180c200000e"),  # nor this one
        bytes.fromhex("0180c2000021"),
    ]
    seen = dict.fromkeys(range(ports), 0)
    for number in range(PACKETS):
        port = rnd.randrange(ports)
        to = rnd.choice(odd) if rnd.random() < 0.2 else rnd.choice(macs)
        # Mostly an address of this port's own; now and then, one moves.
        sender = macs[(port + rnd.choice([0, 0, 0, ports, 1])) % len(macs)]
        if rnd.random() < 0.03:
            sender = rnd.choice(odd + [bytes(6)])
        frame = to + sender + ETHERTYPE.to_bytes(2, "big")
        frame += number.to_bytes(4, "big") + bytes(rnd.randrange(42, 1400))
        bridge.sockets[port].send(frame)
        expected = bridge.take(number, 0.02, ports)
        switch.sockets[port].send(frame)
        got = switch.take(number, 5, len(expected)) if expected else set()
        got |= switch.take(number, 0.02, ports)
        if got != expected:
            print(f"# packet {number} from port {port}, {frame[:12].hex()}:")
            print(f"# bridge: {sorted(expected)}, switch: {sorted(got)}")
            return 1
        seen[len(expected)] += 1
    print(f"# packets by number of receivers: {seen}")
    return 0 if seen[0] and seen[1] and seen[ports - 1] else 1


if __name__ == "__main__":
    sys.exit(main())
