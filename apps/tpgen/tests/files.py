# SPDX-License-Identifier: GPL-2.0
"""Writes capture files, with known faults if asked for."""

import itertools
import struct
from pathlib import Path

from harness import DIR, MAGIC, A, Capture, run


def signature(run_id: int, stream: int, seq: int, stamp: int) -> bytes:
    return struct.pack(">HHHIQ", MAGIC, run_id, stream, seq & 0xFFFFFFFF, stamp)


def udp(payload: bytes, port: int = 9) -> bytes:
    """A packet whose UDP has no checksum."""
    head = struct.pack(">HHHH", 7, port, 8 + len(payload), 0)
    ip = struct.pack(
        ">BBHIBBH4s4s",
        0x45,
        0,
        28 + len(payload),
        0,
        64,
        17,
        0,
        b"\x0a\0\0\1",
        b"\x0a\0\0\2",
    )
    words = sum(struct.unpack(">10H", ip))
    words = (words & 0xFFFF) + (words >> 16)
    ip = ip[:10] + struct.pack(">H", ~words & 0xFFFF) + ip[12:]
    ethernet = b"\x02\0\0\0\0\2" + b"\x02\0\0\0\0\1" + b"\x08\0"
    return ethernet + ip + head + payload


def pcap(
    packets: list[tuple[int, bytes]], order: str = "<", nano: bool = False
) -> bytes:
    magic = 0xA1B23C4D if nano else 0xA1B2C3D4
    data = [struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 65535, 1)]
    for ns, packet in packets:
        part, size = ns % 10**9 // (1 if nano else 1000), len(packet)
        data.append(struct.pack(f"{order}IIII", ns // 10**9, part, size, size))
        data.append(packet)
    return b"".join(data)


def pcapng(packets: list[tuple[int, bytes]], order: str = "<") -> bytes:
    def block(kind: int, body: bytes) -> bytes:
        body += b"\0" * (-len(body) % 4)
        size = 12 + len(body)
        return (
            struct.pack(f"{order}II", kind, size)
            + body
            + struct.pack(f"{order}I", size)
        )

    data = block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1))
    option = struct.pack(f"{order}HHB3xHH", 9, 1, 9, 0, 0)
    data += block(1, struct.pack(f"{order}HHI", 1, 0, 0) + option)
    for ns, packet in packets:
        head = struct.pack(
            f"{order}IIIII", 0, ns >> 32, ns & 0xFFFFFFFF, len(packet), len(packet)
        )
        data += block(6, head + packet)
    return data


def read_pcapng(data: bytes) -> list[tuple[int, bytes]]:
    """The stamps and packets of a file with one section and nanoseconds."""
    packets, at = [], 0
    while at < len(data):
        kind, size = struct.unpack_from("=II", data, at)
        assert size >= 12 and not size % 4 and at + size <= len(data), (at, size)
        assert struct.unpack_from("=I", data, at + size - 4) == (size,), at
        if kind == 6:
            high, low, captured, wire = struct.unpack_from("=4x4I", data, at + 8)
            assert captured == wire <= size - 32, (captured, wire, size)
            stamp = high << 32 | low
            packets.append((stamp, data[at + 28 : at + 28 + captured]))
        at += size
    return packets


def write(data: bytes) -> Path:
    path = DIR / "file"
    path.write_bytes(data)
    return path


def replayed(data: bytes, *words: object) -> Capture:
    with Capture() as capture:
        run("replay", "-i", A, "-q", "-f", write(data), *words)
    return capture


STEP = 20_000_000
TIMED = [(10**18 + i * STEP, udp(bytes([i]) * (20 + 150 * i))) for i in range(10)]


def gaps(times: list[float]) -> list[float]:
    return [b - a for a, b in itertools.pairwise(times)]


def median(some: list[float]) -> float:
    return sorted(some)[len(some) // 2]
