#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Sends data over TCP and back: tcp.py server|client ADDRESS."""

import hashlib
import random
import socket
import sys
import time

PORT = 5001
SIZE = 8 << 20


def receive(conn: socket.socket) -> bytes:
    data = bytearray()
    while len(data) < SIZE:
        part = conn.recv(1 << 20)
        if not part:
            break
        data += part
    return bytes(data)


def main() -> int:
    role, address = sys.argv[1:]
    data = random.Random(1).randbytes(SIZE)
    if role == "server":
        with socket.create_server((address, PORT)) as server:
            server.settimeout(60)
            conn, _ = server.accept()
    else:
        for _ in range(100):
            try:
                conn = socket.create_connection((address, PORT), timeout=60)
                break
            except ConnectionRefusedError:
                time.sleep(0.1)
    conn.settimeout(120)
    with conn:
        if role == "client":
            conn.sendall(data)
            got = receive(conn)
        else:
            got = receive(conn)
            conn.sendall(data)
    same = hashlib.sha256(got).digest() == hashlib.sha256(data).digest()
    if not same:
        print(f"# {role}: {len(got)} bytes, not what was sent")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
