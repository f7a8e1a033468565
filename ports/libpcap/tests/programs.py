#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Debian's programs on Debian's libpcap, which uses V3, and on ours, which uses V4.

    programs.py PCAP

As root; PCAP is build/pcap. Each program scans, captures or sends on a veth pair, and
has to find the same with both. Output is TAP.
"""

import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tap import end, result, skip

PCAP = Path(sys.argv[1])
LIBS = {"V3": {}, "V4": {"LD_LIBRARY_PATH": str(PCAP / "lib")}}
PATIENCE = 120
TMP = Path(tempfile.mkdtemp())
# Answers to connections, in the other namespace
SERVER = """
import socket
listener = socket.create_server(("192.0.2.2", 80))
print("ready", flush=True)
while True:
    listener.accept()[0].close()
"""
SENDER = """
import socket, sys
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.sendto(sys.argv[1].encode(), ("192.0.2.2", 4242))
"""
NEEDLE = "needle in a haystack"
RECEIVER = """
import socket, sys
sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
sock.settimeout(60)
sock.bind(("veth1", 0x88B5))
print("ready", flush=True)
for _ in range(int(sys.argv[1])):
    print(sock.recv(4096).hex(), flush=True)
"""


def start(
    version: str, *command: str, out: int | IO[str] = subprocess.PIPE
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["ip", "netns", "exec", "left", *command],
        env=os.environ | LIBS[version],
        stdin=subprocess.PIPE,
        stdout=out,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(version: str, *command: str) -> tuple[int, str]:
    process = start(version, *command)
    text, _ = process.communicate(timeout=PATIENCE)
    return process.returncode, text


def ip(*words: str) -> None:
    subprocess.run(["ip", *" ".join(words).split()], check=True)


def maps(process: subprocess.Popen[str]) -> str:
    return Path(f"/proc/{process.pid}/maps").read_text()


def program(name: str) -> bool:
    """Whether it is installed"""
    if shutil.which(name):
        return True
    skip(f"no {name}: lab/build/deps test installs it")
    return False


def finds(title: str, wanted: str, *command: str) -> None:
    """Runs it with both, until it ends. Its output has to have the pattern."""
    if not program(command[0]):
        return
    for version in LIBS:
        code, text = run(version, *command)
        good = not code and re.search(wanted, text)
        result(bool(good), f"{version}: {title}", code, text)


def send() -> None:
    """Sends a packet to the other end."""
    command = ["ip", "netns", "exec", "left", sys.executable, "-c", SENDER, NEEDLE]
    subprocess.run(command, check=True)


def sees(title: str, last: str, *command: str) -> None:
    """Starts it with both, and sends packets until its output has their payload.

    It ends on the input `last` or, without one, on its own.
    """
    if not program(command[0]):
        return
    log = TMP / "log"
    for version in LIBS:
        with log.open("w") as out:
            process = start(version, "stdbuf", "-oL", *command, out=out)
        limit, area = time.monotonic() + PATIENCE, False
        while process.poll() is None and time.monotonic() < limit:
            area = area or "memfd:tpacket4" in maps(process)
            if last and NEEDLE in log.read_text(errors="replace"):
                break
            send()
            time.sleep(0.1)
        process.communicate(last, timeout=PATIENCE)
        text = log.read_text(errors="replace")
        good = NEEDLE in text and not process.returncode
        result(good, f"{version}: {title}", process.returncode, text)
        result(area == (version == "V4"), f"{version}: {command[0]} uses it")


def replays() -> None:
    """tcpreplay sends a file, which the other end receives."""
    if not program("tcpreplay"):
        return
    nr, packets = 200, []
    file = TMP / "replay.pcap"
    for i in range(nr):
        data = bytes([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]) + b"\x88\xb5"
        packets.append(data + i.to_bytes(4, "big") + bytes(60 + i))
    with file.open("wb") as out:
        out.write(struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for data in packets:
            out.write(struct.pack("=IIII", 1, 0, len(data), len(data)) + data)
    for version in LIBS:
        there = right(RECEIVER, str(nr))
        command = ["tcpreplay", "-q", "-t", "-i", "veth0", str(file)]
        code, text = run(version, *command)
        seen, _ = there.communicate(timeout=PATIENCE)
        got = [bytes.fromhex(line) for line in seen.split()]
        good = got == packets and f"Successful packets:        {nr}" in text
        result(good, f"{version}: tcpreplay sends a file", code, text, len(got))


def right(code: str, *args: str) -> subprocess.Popen[str]:
    """A Python program at the other end, when it is ready"""
    command = ["ip", "netns", "exec", "right", sys.executable, "-c", code, *args]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    process.stdout.readline()
    return process


def set_up() -> None:
    for name in "left", "right":
        ip("netns add", name)
        ip("-n", name, "link set lo up")
    ip("link add veth0 netns left type veth peer name veth1 netns right")
    for i, name in enumerate(("left", "right")):
        ip(f"-n {name} addr add 192.0.2.{i + 1}/29 dev veth{i}")
        ip(f"-n {name} link set veth{i} up address 02:00:00:00:00:0{i + 1}")


def main() -> None:
    print("TAP version 13")
    set_up()
    server = right(SERVER)
    peer, net = "192.0.2.2", "192.0.2.0/29"
    mac = "(?i:02:00:00:00:00:02)"
    try:
        finds("nmap finds hosts by ARP", mac, "nmap", "-n", "-sn", "-PR", net)
        scan = f"nmap -n -sS -p80,81 {peer}".split()
        finds("nmap finds ports", r"80/tcp\s+open\s(.|\n)*81/tcp\s+closed", *scan)
        scan = f"arp-scan -I veth0 {net}".split()
        finds("arp-scan finds hosts", rf"{peer}\s+{mac}", *scan)
        probe = f"hping3 -n -c 3 -i u100000 -S -p 80 -I veth0 {peer}".split()
        # Its summary goes to stderr.
        wanted = "3 packets received(.|\n)*flags=SA"
        finds("hping3 gets answers", wanted, *probe)
        grep = ["ngrep", "-n", "3", "-d", "veth0", NEEDLE, "udp"]
        sees("ngrep finds a packet", "", *grep)
        text = ["ettercap", "-T", "-z", "-p", "-i", "veth0"]
        sees("ettercap shows a packet", "q", *text)
        replays()
    finally:
        server.terminate()
        for name in "left", "right":
            ip("netns del", name)
        shutil.rmtree(TMP)
    end()


if __name__ == "__main__":
    main()
