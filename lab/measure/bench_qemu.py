#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Counts instructions per packet of -netdev tpacket4 and of QEMU's other ones.

Boots the plain kernel as lab/measure/bench.py does. In that machine, ports/qemu/tests/virtq
is the guest of another QEMU, without a virtual CPU: what counts is QEMU's virtio-net, its
netdev and the kernel, but neither that program nor its round trips to QEMU, nor the sender
of what it receives. It sends and receives packets of 64 bytes, and TCP of 64 KiB.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lab.build.place import BUILD, TOP
from lab.measure import bench_guest, icount
from lab.run import proc

QEMU, VIRTQ = (str(BUILD / "qemu" / name) for name in ("qemu-system-x86_64", "virtq"))
SMALL, TCP = 64, 54 + 45 * 1448
PACKETS = {SMALL: 12800, TCP: 800}
GUEST = "02:00:00:00:00:01"  # where all packets go
TAP = "tap,script=no,downscript=no,ifname="


class Row(NamedTuple):
    """A netdev; `peer` is the other end of its link."""

    title: str
    peer: str
    netdev: str
    bridge: str = ""


VETH = (
    Row("virtio-net without a netdev", "-", "none"),
    Row("dgram to a local socket", "-", "dgram"),
    Row("tap, for the host's stack", "tap0", f"{TAP}tap0"),
    Row("tap, bridge and veth", "vethB", f"{TAP}tap1", "vethA"),
    Row("tpacket4 on veth", "tp4B", "tpacket4,ifname=tp4A"),
    Row("the same, zerocopy=on", "tp4B", "tpacket4,ifname=tp4A,zerocopy=on"),
)


def i40e(port: str) -> tuple[Row, ...]:
    return (
        Row("tap, bridge and i40e", "-", f"{TAP}tap1", port),
        Row("tpacket4 on i40e", "-", f"tpacket4,ifname={port}"),
        Row("the same, zerocopy=on", "-", f"tpacket4,ifname={port},zerocopy=on"),
    )


def count(mode: str, size: int, *end: str) -> float:
    """Instructions a packet, without those of the program"""
    number = ["--size", str(size), "--packets", str(PACKETS[size])]
    command = [VIRTQ, mode, *number, *end]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    found = json.loads(done.stdout)
    busy = found["ns"] - found["own"] - found["trips"] * found["trip"]
    return busy / found["packets"]


def measure(row: Row, mode: str, size: int) -> None:
    if row.bridge:
        port = "tap1" if mode == "rx" else row.bridge
        bench_guest.run("ip", "link", "set", row.bridge, "master", "br0")
        entry = ["bridge", "fdb", "replace", GUEST, "dev", port, "master", "static"]
        bench_guest.run(*entry)
    cost = count(mode, size, QEMU, row.peer, row.netdev)
    if mode == "rx" and row.peer != "-":
        cost -= count("send", size, "-", "tp4D")
    if row.bridge:
        bench_guest.run("ip", "link", "set", row.bridge, "nomaster")
    icount.report([row.title, mode, size, cost])


def guest() -> None:
    Path("/proc/sys/net/unix/max_dgram_qlen").write_text("512")
    run = bench_guest.run
    for a, b in ("tp4A", "tp4B"), ("vethA", "vethB"):
        run("ip", "link", "add", a, "type", "veth", "peer", "name", b)
    run("ip", "link", "add", "tp4D", "type", "dummy")
    run("ip", "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
    for tap in "tap0", "tap1":
        run("ip", "tuntap", "add", "dev", tap, "mode", "tap", "vnet_hdr")
    links = ["tp4A", "tp4B", "vethA", "vethB", "tp4D", "tap0", "tap1", "br0"]
    bench_guest.set_up_links(links)
    run("ip", "link", "set", "tap1", "master", "br0")
    bench_guest.wait_for_link(["tp4B", "vethB"])
    for row in VETH:
        for mode in "tx", "rx":
            for size in PACKETS:
                # Without a netdev there are no offloads, and nothing arrives.
                if row.peer == "-" and (mode, size) != ("tx", SMALL):
                    continue
                measure(row, mode, size)
    [port] = bench_guest.set_up("i40e", 1)
    for row in i40e(port):
        for size in PACKETS:
            measure(row, "tx", size)


def main() -> int:
    parser = icount.arguments(__doc__)
    args = parser.parse_args()
    if args.guest is not None:
        guest()
        return 0
    proc.stop_on_signals()
    if subprocess.run([str(TOP / "lab/build/progs"), "qemu"], check=False).returncode:
        return 1
    nic = icount.generator("i40e", 0, SMALL)
    print("\nInstructions a packet, those of TCP in thousands\n")
    for found in icount.boot("bench-qemu", __file__, [], args.kernel, nic):
        title, mode, size, cost = found
        unit = f"{cost:8.0f}" if size == SMALL else f"{cost / 1000:8.1f}k"
        print(f"{title:32} {mode} {size:6} {unit}", flush=True)
    return 0


if __name__ == "__main__":
    proc.main(main)
