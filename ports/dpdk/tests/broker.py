#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A broker for net_tpacket4's option mr_sock: it gives packet sockets to processes without
privileges.

    broker.py PATH QUEUE...

PATH is its Unix socket, for all users. The processes may have these queue pairs in zero-copy
mode.
"""

import os
import socket
import struct
import sys
import threading

PACKET_ZEROCOPY = 26
SOL_PACKET = 263
SO_BUSY_POLL, SO_PREFER_BUSY_POLL, SO_BUSY_POLL_BUDGET = 46, 69, 70
BUSY = {SO_BUSY_POLL, SO_PREFER_BUSY_POLL, SO_BUSY_POLL_BUDGET}


def serve(connection: socket.socket, queues: set[int]) -> None:
    """One packet socket, as long as the connection lasts"""

    def allowed(level: int, option: int, value: int) -> bool:
        if level == socket.SOL_SOCKET:
            return option in BUSY
        return (level, option) == (SOL_PACKET, PACKET_ZEROCOPY) and value - 1 in queues

    with connection, socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as packet:
        socket.send_fds(connection, [struct.pack("i", 0)], [packet.fileno()])
        while request := connection.recv(12):
            level, option, value = struct.unpack("iii", request)
            error = 0
            try:
                if not allowed(level, option, value):
                    raise PermissionError(1, "not allowed")
                packet.setsockopt(level, option, value)
            except OSError as e:
                error = e.errno or 0
            connection.send(struct.pack("i", error))


def main() -> None:
    path, queues = sys.argv[1], set(map(int, sys.argv[2:]))
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.bind(path)
        os.chmod(path, 0o666)
        server.listen()
        print("ready", flush=True)
        while True:
            connection = server.accept()[0]
            threading.Thread(target=serve, args=(connection, queues)).start()


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        sys.exit(0 if len(sys.argv) > 1 else 2)
    main()
