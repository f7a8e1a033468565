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

PACKETS = 400
ETHERTYPE = 0x88B5


class Side:
    """The far ends of the ports of one switch."""

    def __init__(self, name: str, ports: int) -> None:
        self.name = name
        self.sockets = []
        for i in range(ports):
            sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            sock.bind((f"{name}{i}", 3))
            membership = socket.if_nametoindex(f"{name}{i}").to_bytes(4, "little")
            # PACKET_ADD_MEMBERSHIP, PACKET_MR_PROMISC
            sock.setsockopt(263, 1, membership + b"\1\0\0\0" + bytes(8))
            self.sockets.append(sock)

    def send(self, port: int, frame: bytes) -> set[int]:
        """Send a frame; return the ports at which it comes out.

        A broadcast follows it. Once that is out, the frame cannot come any more.
        """
        number = frame[14:18]
        end = b"\xff" * 6 + bytes([2, 0, 0, 0, 8, port])
        end += ETHERTYPE.to_bytes(2, "big") + b"\xff\xff" + number + bytes(40)
        self.sockets[port].send(frame)
        self.sockets[port].send(end)
        ports: set[int] = set()
        left = set(range(len(self.sockets))) - {port}
        while left:
            ready = select.select(self.sockets, [], [], 20)[0]
            if not ready:
                sys.exit(f"# {self.name}: nothing came out of {sorted(left)}")
            for sock in ready:
                got, address = sock.recvfrom(2048)
                if address[2] == 4 or address[1] != ETHERTYPE:  # outgoing, or not ours
                    continue
                at = self.sockets.index(sock)
                if got[14:18] == number:
                    ports.add(at)
                elif got[14:20] == b"\xff\xff" + number:
                    left.remove(at)
                else:
                    sys.exit(f"# {self.name}: {got[:20].hex()} at port {at}")
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
        bytes.fromhex("0180c2000000"),  # forwarded without spanning tree
        bytes.fromhex("0180c2000001"),  # not forwarded
        bytes.fromhex("0180c200000e"),
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
        expected = bridge.send(port, frame)
        got = switch.send(port, frame)
        if got != expected:
            print(f"# packet {number} from port {port}, {frame[:12].hex()}:")
            print(f"# bridge: {sorted(expected)}, switch: {sorted(got)}")
            return 1
        seen[len(expected)] += 1
    print(f"# packets by number of receivers: {seen}")
    return 0 if seen[0] and seen[1] and seen[ports - 1] else 1


if __name__ == "__main__":
    sys.exit(main())
