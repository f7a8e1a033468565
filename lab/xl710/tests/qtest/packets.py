# SPDX-License-Identifier: GPL-2.0
"""Packets to send."""

import struct

MAC0 = bytes.fromhex("525400000001")
MAC1 = bytes.fromhex("525400000002")
NOWHERE = 0xF000000000
MS = 1000000


def csum(data: bytes) -> int:
    if len(data) & 1:
        data += b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def eth(
    payload: bytes, dst: bytes = MAC1, src: bytes = MAC0, etype: int = 0x0800
) -> bytes:
    return dst + src + struct.pack(">H", etype) + payload


def ipv4(proto: int, src: str, dst: str, payload: bytes) -> bytes:
    head = struct.pack(
        ">BBHHHBBH4s4s",
        0x45,
        0,
        20 + len(payload),
        7,
        0,
        64,
        proto,
        0,
        bytes(map(int, src.split("."))),
        bytes(map(int, dst.split("."))),
    )
    return head[:10] + struct.pack(">H", csum(head)) + head[12:] + payload


def pseudo(src: str, dst: str, proto: int, length: int) -> bytes:
    return (
        bytes(map(int, src.split(".")))
        + bytes(map(int, dst.split(".")))
        + struct.pack(">HH", proto, length)
    )


def udp4(
    sport: int, dport: int, payload: bytes, src: str = "10.0.0.1", dst: str = "10.0.0.2"
) -> bytes:
    return ipv4(
        17, src, dst, struct.pack(">HHHH", sport, dport, 8 + len(payload), 0) + payload
    )


def tcp4(
    sport: int,
    dport: int,
    payload: bytes,
    src: str,
    dst: str,
    check: int = 0,
    flags: int = 0x10,
    seq: int = 1000,
) -> bytes:
    return ipv4(
        6,
        src,
        dst,
        struct.pack(">HHIIBBHHH", sport, dport, seq, 1, 0x50, flags, 1000, check, 0)
        + payload,
    )
