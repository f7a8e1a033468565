# SPDX-License-Identifier: GPL-2.0
"""loop.py TPSWITCH SOCKET: in the container b of test.sh, sends back what looks for loops.

A frame with another number must not end its port; one that is as it was must.
"""

import socket
import subprocess
import sys

TYPE = 0x88B5
TOKEN = 22  # offset of the number in the frame


def has_port() -> bool:
    command = [sys.argv[1], "ctl", "-S", sys.argv[2], "list"]
    return " swb " in subprocess.check_output(command, text=True)


def main() -> None:
    port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(TYPE))
    port.bind(("eth0", TYPE))
    port.settimeout(60)
    first = port.recv(2000)
    assert first[14:TOKEN] == b"tpswitch", first
    forged = bytearray(first)
    for _ in range(3):
        forged[TOKEN] ^= 1 << 4
        port.send(forged)
        port.send(forged[:30])
        # It is alive, and the number is another one each time.
        probe = port.recv(2000)
        assert probe[:TOKEN] == first[:TOKEN] and probe != first, (probe, first)
        assert has_port()
        forged = bytearray(probe)
    for _ in range(60):
        port.send(probe)
        if not has_port():
            return
        # A busy machine may be late with the answer.
        probe = port.recv(2000)
    raise AssertionError("the port is still there")


main()
