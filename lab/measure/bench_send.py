#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Sends packets without a reply, 64 at a time: bench_send.py DEVICE BYTES RATE

For lab/measure/bench-guest. On one CPU, the receiver needs time in between. Uses sendmmsg(),
so that a packet costs hardly more than the work of the kernel.
"""

import ctypes
import socket
import sys
import time

BURST = 64
ETHERTYPE = "88b5"  # for experiments


class Iovec(ctypes.Structure):
    """struct iovec"""

    _fields_ = (("base", ctypes.c_void_p), ("len", ctypes.c_size_t))


class Message(ctypes.Structure):
    """struct mmsghdr; the last two are an int and padding each."""

    _fields_ = (
        ("name", ctypes.c_void_p),
        ("namelen", ctypes.c_size_t),
        ("iov", ctypes.POINTER(Iovec)),
        ("iovlen", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("controllen", ctypes.c_size_t),
        ("flags", ctypes.c_size_t),
        ("sent", ctypes.c_size_t),
    )


def main() -> None:
    device, size, rate = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    header = bytes.fromhex("020000000002" + "020000000001" + ETHERTYPE)
    packet = ctypes.create_string_buffer(header, size)
    iov = Iovec(ctypes.addressof(packet), size)
    messages = (Message * BURST)()
    for message in messages:
        message.iov, message.iovlen = ctypes.pointer(iov), 1
    sendmmsg = ctypes.CDLL(None).sendmmsg
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    sock.bind((device, 0))
    due = time.monotonic()
    while True:
        sendmmsg(sock.fileno(), messages, BURST, 0)
        due += BURST / rate
        time.sleep(max(0, due - time.monotonic()))


if __name__ == "__main__":
    main()
