#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""An echo server for TCP and UDP, and a client that checks the replies.

echo.py serve ADDRESS...
echo.py talk ADDRESS BYTES

The server prints "ready" when it is.
"""

import hashlib
import socket
import sys
import threading

PORT = 40007
TIMEOUT = 120  # seconds; for a debug kernel in software emulation
# The longest is a datagram of several IP fragments.
UDP_SIZES = (0, 1, 2, 99, 100, 1452, 1472, 1473, 4000, 8952, 8972, 8973, 30000)


def family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def serve_udp(address: str) -> None:
    udp = socket.socket(family(address), socket.SOCK_DGRAM)
    udp.bind((address, PORT))
    while True:
        data, peer = udp.recvfrom(65536)
        udp.sendto(data, peer)


def serve_tcp(tcp: socket.socket) -> None:
    while True:
        conn, _ = tcp.accept()
        with conn:
            while data := conn.recv(65536):
                conn.sendall(data)


def serve(addresses: list[str]) -> None:
    threads = []
    for address in addresses:
        tcp = socket.create_server((address, PORT), family=family(address))
        threads.append(threading.Thread(target=serve_tcp, args=(tcp,)))
        threads.append(threading.Thread(target=serve_udp, args=(address,)))
    for thread in threads:
        thread.start()
    print("ready", flush=True)


def talk_tcp(address: str, data: bytes) -> None:
    with socket.create_connection((address, PORT), timeout=TIMEOUT) as tcp:
        sender = threading.Thread(target=tcp.sendall, args=(data,))
        sender.start()
        got = b""
        while len(got) < len(data):
            part = tcp.recv(65536)
            if not part:
                break
            got += part
        sender.join()
    if got != data:
        sys.exit(f"TCP: the echo differs: {len(got)} of {len(data)} bytes")


def talk_udp(address: str, data: bytes) -> None:
    udp = socket.socket(family(address), socket.SOCK_DGRAM)
    udp.settimeout(TIMEOUT)
    udp.connect((address, PORT))
    for size in UDP_SIZES:
        udp.send(data[:size])
        if udp.recv(65536) != data[:size]:
            sys.exit(f"UDP: the echo of {size} bytes differs")


def talk(address: str, total: int) -> None:
    data = b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(total // 32))
    talk_tcp(address, data)
    talk_udp(address, data)


if sys.argv[1] == "serve":
    serve(sys.argv[2:])
else:
    talk(sys.argv[2], int(sys.argv[3]))
