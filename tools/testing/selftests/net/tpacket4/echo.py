#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""An echo server for TCP, UDP and SCTP, and a client that checks the replies.

echo.py serve ADDRESS...
echo.py talk ADDRESS BYTES
echo.py lines SERVER_PID

The server prints "ready" when it is. "lines" reads lines of the form "PROTOCOL ADDRESS
BYTES", with tcp or sctp, and prints one for each: "ok", or what was wrong. A
retransmission of TCP is an error, on either side, and so is a bad checksum of SCTP, which
also sends packets again that are not lost.
"""

import hashlib
import socket
import sys
import threading
import time
from pathlib import Path

PORT = 40007
TIMEOUT = 120  # seconds; for a debug kernel in software emulation
SCTP_MESSAGE = 16384
# The longest is a datagram of several IP fragments.
UDP_SIZES = (0, 1, 2, 99, 100, 1452, 1472, 1473, 4000, 8952, 8972, 8973, 30000)


def family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def serve_udp(address: str) -> None:
    udp = socket.socket(family(address), socket.SOCK_DGRAM)
    if udp.family == socket.AF_INET6:
        udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    udp.bind((address, PORT))
    while True:
        data, peer = udp.recvfrom(65536)
        udp.sendto(data, peer)


def serve_connection(conn: socket.socket) -> None:
    try:
        with conn:
            while data := conn.recv(65536):
                conn.sendall(data)
    except OSError as error:
        print(f"connection: {error}", flush=True)


def serve_stream(listener: socket.socket) -> None:
    while True:
        conn, _ = listener.accept()
        threading.Thread(target=serve_connection, args=(conn,)).start()


def listen_sctp(address: str) -> socket.socket | None:
    """A listening socket, if this kernel has SCTP"""
    try:
        sctp = socket.socket(family(address), socket.SOCK_STREAM, socket.IPPROTO_SCTP)
    except OSError:
        return None
    if sctp.family == socket.AF_INET6:
        sctp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    sctp.bind((address, PORT))
    sctp.listen()
    return sctp


def serve(addresses: list[str]) -> None:
    threads = []
    for address in addresses:
        tcp = socket.create_server((address, PORT), family=family(address))
        for listener in filter(None, (tcp, listen_sctp(address))):
            threads.append(threading.Thread(target=serve_stream, args=(listener,)))
        threads.append(threading.Thread(target=serve_udp, args=(address,)))
    for thread in threads:
        thread.start()
    print("ready", flush=True)


def send_all(sock: socket.socket, data: bytes) -> None:
    size = SCTP_MESSAGE if sock.proto == socket.IPPROTO_SCTP else len(data)
    try:
        for start in range(0, len(data), size):
            sock.sendall(data[start : start + size])
    except OSError as error:
        print(f"send: {error}", file=sys.stderr)


def exchange(sock: socket.socket, data: bytes) -> str:
    """What is wrong with the echo of the data"""
    sender = threading.Thread(target=send_all, args=(sock, data))
    sender.start()
    got = bytearray()
    try:
        while len(got) < len(data) and (part := sock.recv(65536)):
            got += part
    except OSError as error:
        sock.shutdown(socket.SHUT_RDWR)
        return f"{error} after {len(got)} of {len(data)} bytes"
    finally:
        sender.join()
    return "" if got == data else f"the echo differs: {len(got)} of {len(data)} bytes"


def talk_tcp(address: str, data: bytes) -> None:
    with socket.create_connection((address, PORT), timeout=TIMEOUT) as tcp:
        error = exchange(tcp, data)
    if error:
        sys.exit(f"TCP: {error}")


def talk_udp(address: str, data: bytes) -> None:
    udp = socket.socket(family(address), socket.SOCK_DGRAM)
    udp.settimeout(TIMEOUT)
    udp.connect((address, PORT))
    for size in UDP_SIZES:
        udp.send(data[:size])
        if udp.recv(65536) != data[:size]:
            sys.exit(f"UDP: the echo of {size} bytes differs")


def make_data(total: int) -> bytes:
    return b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(total // 32))


def talk(address: str, total: int) -> None:
    data = make_data(total)
    talk_tcp(address, data)
    talk_udp(address, data)


def count_errors(pid: str, protocol: str) -> int:
    """The errors of a protocol in the network namespace of a process"""
    if protocol == "sctp":
        text = Path(f"/proc/{pid}/net/sctp/snmp").read_text()
        return int(
            dict(line.split() for line in text.splitlines())["SctpChecksumErrors"]
        )
    lines = Path(f"/proc/{pid}/net/snmp").read_text().splitlines()
    names, values = (line.split() for line in lines if line.startswith("Tcp:"))
    return int(values[names.index("RetransSegs")])


def is_connected(pid: str, protocol: str, port: int) -> bool:
    """Whether the network namespace of a process has a connection with a peer's port"""
    if protocol == "sctp":
        lines = Path(f"/proc/{pid}/net/sctp/assocs").read_text().splitlines()
        column = lines[0].split().index("RPORT")
        return any(line.split()[column] == str(port) for line in lines[1:])
    tables = [Path(f"/proc/{pid}/net/{name}").read_text() for name in ("tcp", "tcp6")]
    peers = [line.split()[2] for table in tables for line in table.splitlines()[1:]]
    return any(peer.endswith(f":{port:04X}") for peer in peers)


def connect(protocol: str, address: str) -> socket.socket:
    if protocol == "tcp":
        return socket.create_connection((address, PORT), timeout=TIMEOUT)
    sctp = socket.socket(family(address), socket.SOCK_STREAM, socket.IPPROTO_SCTP)
    sctp.settimeout(TIMEOUT)
    sctp.connect((address, PORT))
    return sctp


def talk_once(protocol: str, address: str, data: bytes, server: str) -> str:
    pids = ["self", server]
    with connect(protocol, address) as sock:
        # The handshake may be retried on a slow machine.
        error = exchange(sock, b"!")
        before = [count_errors(pid, protocol) for pid in pids]
        error = error or exchange(sock, data)
        after = [count_errors(pid, protocol) for pid in pids]
        port = sock.getsockname()[1]
    # Its last packets are not to be lost with the forwarder.
    end = time.monotonic() + TIMEOUT
    while not error and is_connected(server, protocol, port):
        if time.monotonic() > end:
            error = "the connection does not end"
        time.sleep(0.01)
    if before != after:
        what = "retransmissions" if protocol == "tcp" else "bad checksums"
        error += f" {sum(after) - sum(before)} {what}"
    return error.strip()


def talk_lines(server: str) -> None:
    for line in sys.stdin:
        protocol, address, total = line.split()
        try:
            error = talk_once(protocol, address, make_data(int(total)), server)
        except OSError as err:
            error = str(err)
        print(error or "ok", flush=True)


if sys.argv[1] == "serve":
    serve(sys.argv[2:])
elif sys.argv[1] == "talk":
    talk(sys.argv[2], int(sys.argv[3]))
else:
    talk_lines(sys.argv[2])
