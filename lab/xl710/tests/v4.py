# SPDX-License-Identifier: GPL-2.0
"""AF_PACKET V4 in zero-copy mode, for tests that need no speed."""

import ctypes
import mmap
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar

SOL_PACKET = 263
PACKET_RX_RING, PACKET_VERSION, PACKET_TX_RING = 5, 10, 13
PACKET_MEMREG, PACKET_ZEROCOPY = 25, 26
TPACKET_V4 = 3
ETH_P_ALL = 3
DESC = struct.Struct("<QIHB")  # idx, len, offset, error; a byte of flags follows
DESC_SIZE = 16
KERNEL, CONT = 0x80, 0x01
FRAME = 2048
CLONE_NEWNET = 0x40000000

libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def netns(name: str) -> Iterator[None]:
    """Create sockets in that network namespace."""
    old, new = os.open("/proc/thread-self/ns/net", 0), os.open(f"/run/netns/{name}", 0)
    try:
        for_real(new)
        yield
    finally:
        for_real(old)
        os.close(old)
        os.close(new)


def for_real(fd: int) -> None:
    if libc.setns(fd, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


def wait(seconds: float, what: Callable[[], object]) -> bool:
    """Wait until it is true, at most for so many seconds."""
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


class Ring:
    """One ring as user space sees it."""

    def __init__(self, ring: memoryview, nr: int) -> None:
        self.ring, self.nr = ring, nr
        self.avail = self.used = 0

    def post(self, idx: int, length: int = 0, offset: int = 0) -> bool:
        if self.avail - self.used == self.nr:
            return False
        at = self.avail % self.nr * DESC_SIZE
        DESC.pack_into(self.ring, at, idx, length, offset, 0)
        self.ring[at + DESC_SIZE - 1] = KERNEL
        self.avail += 1
        return True

    def take(self) -> tuple[int, int, int, int] | None:
        """The next returned slot: idx, len, offset, error."""
        at = self.used % self.nr * DESC_SIZE
        if self.used == self.avail or self.ring[at + DESC_SIZE - 1] & KERNEL:
            return None
        self.used += 1
        idx, length, offset, error = DESC.unpack_from(self.ring, at)
        return idx, length, offset, error


class V4:
    """A socket with frames 0 to nr - 1 for Rx, nr to 2 * nr - 1 for Tx."""

    opened: ClassVar[list["V4"]] = []

    def __init__(self, ns: str, dev: str, nr: int = 256, rx: bool = True,
                 tx: bool = True) -> None:  # fmt: skip
        with netns(ns):
            self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.nr = nr
        self.area = mmap.mmap(-1, 2 * nr * FRAME)
        addr = ctypes.addressof(ctypes.c_char.from_buffer(self.area))
        self.opt(PACKET_MEMREG, struct.pack("<QQII", addr, len(self.area), FRAME, 0))
        self.opt(PACKET_VERSION, struct.pack("<i", TPACKET_V4))
        req = struct.pack("<iI", self.sock.fileno(), nr)
        if rx:
            self.opt(PACKET_RX_RING, req)
        if tx:
            self.opt(PACKET_TX_RING, req)
        self.map = mmap.mmap(self.sock.fileno(), (rx + tx) * nr * DESC_SIZE)
        self.view = memoryview(self.map)
        self.rx = Ring(self.view[: nr * DESC_SIZE], nr) if rx else None
        self.tx = Ring(self.view[nr * DESC_SIZE * rx :], nr) if tx else None
        self.sock.bind((dev, ETH_P_ALL))
        V4.opened.append(self)

    def opt(self, name: int, value: bytes) -> None:
        self.sock.setsockopt(SOL_PACKET, name, value)

    def zerocopy(self, n: int) -> None:
        """Queue pair n - 1, or none."""
        self.opt(PACKET_ZEROCOPY, struct.pack("<i", n))

    def fill(self) -> None:
        assert self.rx
        for idx in range(self.nr):
            self.rx.post(idx)

    def receive(self) -> Iterator[bytes]:
        """The received packets. Posts their frames again."""
        assert self.rx
        while got := self.rx.take():
            idx, length, offset, error = got
            if not error:
                at = idx * FRAME + offset
                yield bytes(self.area[at : at + length])
            self.rx.post(idx)

    def put(self, i: int, packet: bytes) -> bool:
        assert self.tx
        at = (self.nr + i % self.nr) * FRAME
        self.area[at : at + len(packet)] = packet
        return self.tx.post(self.nr + i % self.nr, len(packet))

    def kick(self) -> None:
        self.sock.send(b"", socket.MSG_DONTWAIT)

    def error(self) -> int:
        return self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)

    def close(self) -> None:
        """Also unmap: the mapping holds a reference to the socket."""
        V4.opened.remove(self)
        for ring in (self.rx, self.tx):
            if ring:
                ring.ring.release()
        self.view.release()
        self.map.close()
        self.sock.close()
