#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Counts instructions per packet of tpswitch: sender, switch and receiver.

Between ring ports, callgrind counts those of the switch and of swperf, which sends and
receives in batches of 64; no kernel with V4 is needed. Both share a CPU and the switch
does not spin, so that polling without packets does not count. The difference between a
long and a short run is taken, so that starting does not count.

With devices, the plain kernel is booted as by lab/measure/bench.py, and the kernel
counts, too. So it does for TCP between two containers, also in a VLAN and in VXLAN, whose
instructions are counted per byte, with a Linux bridge instead of the switch, too. --tcp
counts these only. Fails if a figure is above its limit.
"""

import ctypes
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lab.build.place import BUILD
from lab.measure import bench_guest, icount
from lab.run import proc

SOCKET = "/run/switch"  # in the guest
SHORT, LONG = 100_000, 500_000  # packets
WARM_UP, TCP_BYTES = 4 << 20, 24 << 20
CHUNK = 256 << 10  # bytes a call of the sender and of the receiver
CONTAINERS = {"a": "10.9.0.1", "b": "10.9.0.2"}
CLONE_NEWNET = 0x40000000
SWITCH, SWPERF = (str(BUILD / "tpswitch" / name) for name in ("tpswitch", "swperf"))


class Row(NamedTuple):
    """One case.

    `vale` is what netmap's VALE needs for the same packets in the same machine, measured
    once by the same means. `mark` is the goal. More than `limit` fails: it is the goal,
    or close to the last figure.
    """

    title: str
    mark: int
    limit: int
    vale: int | None = None


# With the options of swperf
RINGS = {
    "-s 60": Row("ring to ring, 60 bytes", 230, 230, 415),
    "-s 1500": Row("ring to ring, 1500 bytes", 400, 400, 967),
    "-i 62": Row("60 bytes, 62 idle ports", 230, 230),
}
# With the device, and the rate of its generator or the options of its ports. More than a
# CPU can take would be lost between the switch and the receiver.
DEVICES = {
    ("i40e", "2000000"): Row("i40e to a ring, 2 million/s", 263, 300),
    ("i40e", "3000000"): Row("i40e to a ring, 3 million/s", 263, 263),
    ("veth", "meta=on"): Row("veth to veth", 700, 700),
    # The metadata is for the packets of a stack.
    ("veth", "meta=off"): Row("veth to veth, meta=off", 700, 620),
}

# The ways between two containers, with the most instructions a byte for each of LINKS; the
# goal is 1.2 times the bridge's
TCP = {
    "bridge": (0.6, 0.6, 0.65),
    "copy": (1.9, 2.0, 2.0),
    "zerocopy": (1.7, 1.7, 1.75),
}
TCP_MARK = 1.2
# What a container has on its eth0 for TCP
LINKS = {
    "plain": "",
    "VLAN": "link eth0 name tcp0 type vlan id 5",
    "VXLAN": "name tcp0 type vxlan id 5 dev eth0 dstport 4789 remote",
}


def callgrind(log: Path, *command: str) -> list[str]:
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    return [*valgrind, f"--log-file={log}", *command]


def total(log: Path) -> int:
    if found := re.search(r"Collected : (\d+)", log.read_text()):
        return int(found[1])
    sys.exit(f"bench: callgrind has counted nothing: {log.read_text()}")


def start(command: list[str], socket: str) -> subprocess.Popen[bytes]:
    """Start a switch and wait until it listens."""
    switch = proc.start([*command, "-S", socket], pipe=False)
    while not Path(socket).exists():
        if switch.poll() is not None:
            sys.exit("bench: tpswitch does not start")
        time.sleep(0.05)
    return switch


def end(switch: subprocess.Popen[bytes]) -> None:
    switch.terminate()
    if proc.finish(switch):
        sys.exit("bench: tpswitch has failed")


def count(packets: int, options: str) -> tuple[int, int]:
    """The instructions of the switch and of swperf."""
    with tempfile.TemporaryDirectory() as name:
        logs, socket = (Path(name, "switch"), Path(name, "program")), f"{name}/port"
        config = Path(name, "config")
        config.write_text("quota each ports=99 slots=1M bytes=1G\n")
        command = [SWITCH, "--spin", "0", "--config", str(config)]
        switch = start(callgrind(logs[0], *command), socket)
        command = [SWPERF, "-S", socket, "-n", str(packets), *options.split()]
        command = callgrind(logs[1], *command)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        end(switch)
        return total(logs[0]), total(logs[1])


def ctl(*words: str) -> str:
    command = [SWITCH, "ctl", "-S", SOCKET, *words]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def swperf(*options: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([SWPERF, "-S", SOCKET, *options], stdout=subprocess.PIPE)


def guest(device: str, option: str) -> None:
    if device == "i40e":
        [port] = bench_guest.set_up("i40e", 1)
        switch = start([SWITCH], SOCKET)
        program = swperf("--receive", "-n", "1000000")
        # Before there is a program, packets would only be dropped.
        while "ring" not in ctl("list"):
            time.sleep(0.1)
        ctl("add", f"zc:{port}")
    else:
        for port, peer in ("swa", "swA"), ("swb", "swB"):
            kind = ["type", "veth", "peer", "name", peer]
            bench_guest.run("ip", "link", "add", port, *kind)
            bench_guest.set_up_links([port, peer])
        switch = start([SWITCH], SOCKET)
        for port in "swa", "swb":
            ctl("add", f"zc:{port}", option)
        program = swperf("--veth", "swA,swB", "-n", "400000")
    measured, _ = program.communicate()
    icount.report(json.loads(measured))
    print(ctl("count"), flush=True)
    end(switch)


def busy() -> int:
    """The time that the CPU was not idle, in ns, as swperf counts it"""
    timers = Path("/proc/timer_list").read_text()
    found = re.search(r"\.idle_sleeptime\s*:\s*(\d+)", timers)
    assert found, "no idle_sleeptime in /proc/timer_list"
    return time.monotonic_ns() - int(found[1])


def socket_in(name: str) -> socket.socket:
    """A TCP socket of a network namespace"""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/ns/net") as own, open(f"/run/netns/{name}") as other:
        for namespace, make in (other, True), (own, False):
            if libc.setns(namespace.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
            if make:
                made = socket.socket()
    return made


def send(to: socket.socket, size: int) -> None:
    chunk = bytes(CHUNK)
    for _ in range(0, size, CHUNK):
        to.sendall(chunk)


def receive(listener: socket.socket) -> None:
    """Says on stdout how much the bytes behind those of the warm-up took."""
    conn, _ = listener.accept()
    buffer = bytearray(CHUNK)
    got, start = 0, 0
    while n := conn.recv_into(buffer):
        if got < WARM_UP <= got + n:
            start, before = busy(), got + n
        got += n
    icount.report((busy() - start) / (got - before))


def add_link(container: str, peer: str, link: str) -> str:
    """Adds the device for TCP to the container; returns its address there."""
    if not link:
        return CONTAINERS[container]
    address = CONTAINERS[container].replace("10.9.", "10.10.")
    ip = ["ip", "-n", container]
    remote = [CONTAINERS[peer]] if link.endswith("remote") else []
    bench_guest.run(*ip, "link", "add", *link.split(), *remote)
    bench_guest.run(*ip, "addr", "add", f"{address}/24", "dev", "tcp0")
    bench_guest.run(*ip, "link", "set", "up", "dev", "tcp0")
    return address


def tcp(kind: str, link: str) -> None:
    """Data from one container to another, through a bridge or the switch"""
    ports = []
    for name, address in CONTAINERS.items():
        port = f"sw{name}"
        bench_guest.run("ip", "netns", "add", name)
        veth = ["type", "veth", "peer", "name", "eth0", "netns", name]
        bench_guest.run("ip", "link", "add", port, *veth)
        for command in ["addr", "add", f"{address}/24"], ["link", "set", "up"]:
            bench_guest.run("ip", "-n", name, *command, "dev", "eth0")
        bench_guest.set_up_links([port])
        ports.append(port)
    if kind == "bridge":
        bench_guest.run("ip", "link", "add", "br0", "type", "bridge")
        for port in ports:
            bench_guest.run("ip", "link", "set", port, "master", "br0")
        bench_guest.set_up_links(["br0"])
    else:
        mode = "zc:" if kind == "zerocopy" else ""
        switch = start([SWITCH, *(mode + port for port in ports)], SOCKET)
    bench_guest.wait_for_link(ports)
    add_link("a", "b", link)
    address = add_link("b", "a", link)
    listener = socket_in("b")
    listener.bind((address, 5001))
    listener.listen()
    child = os.fork()
    if not child:
        receive(listener)
        os._exit(0)
    to = socket_in("a")
    to.connect((address, 5001))
    send(to, WARM_UP + TCP_BYTES)
    to.close()
    if os.waitpid(child, 0)[1]:
        sys.exit("bench: the receiver has failed")
    if kind != "bridge":
        print(ctl("count"), flush=True)
        end(switch)


def measure_tcp(kernel: str) -> bool:
    """Prints instructions a byte; returns True if one is above its limit."""
    too_much = False
    print("\nInstructions per byte of TCP between two containers, all in all\n")
    print(f"{'':16} {'sum':>6} {'at most':>8} {'of the bridge':>14}")
    for n, link in enumerate(LINKS):
        for kind, limits in TCP.items():
            name = f"bench-switch-tcp-{kind}-{link}"
            where = ["tcp", f"{kind} {link}"]
            [cost] = icount.boot(name, __file__, where, kernel, [])
            if kind == "bridge":
                bridge = cost
            times = cost / bridge
            missed = " missed" if times > TCP_MARK else ""
            row = f"{kind}, {link}"
            print(f"{row:16} {cost:6.2f} {limits[n]:8.2f} {times:14.2f}{missed}")
            too_much |= cost > limits[n]
    return too_much


def measure_ring(options: str) -> list[float]:
    """The instructions of the switch and of swperf"""
    short, long = count(SHORT, options), count(LONG, options)
    return [(b - a) / (LONG - SHORT) for a, b in zip(short, long, strict=True)]


def measure_device(device: str, option: str, kernel: str) -> float:
    nic = icount.generator(device, int(option), 60) if device == "i40e" else []
    name = f"bench-switch-{device}-{option}"
    [measured] = icount.boot(name, __file__, [device, option], kernel, nic)
    return measured["ns_per_packet"]


def main() -> int:
    parser = icount.arguments(__doc__)
    parser.add_argument("--tcp", action="store_true", help="count TCP only")
    args = parser.parse_args()
    if args.guest:
        kind, option = args.guest
        if kind == "tcp":
            way, link = option.split()
            tcp(way, LINKS[link])
        else:
            guest(kind, option)
        return 0
    proc.stop_on_signals()
    too_much = measure_tcp(args.kernel)
    if args.tcp:
        return int(too_much)
    costs: dict[Row, list[float]] = {}
    if shutil.which("valgrind"):
        cpus = os.sched_getaffinity(0)
        os.sched_setaffinity(0, [min(cpus)])
        for options, row in RINGS.items():
            print(f"bench: tpswitch, {row.title}", file=sys.stderr)
            costs[row] = measure_ring(options)
        os.sched_setaffinity(0, cpus)
    else:
        print("skipped: rings: no valgrind: lab/build/deps bench installs it")
    for (device, option), row in DEVICES.items():
        costs[row] = [measure_device(device, option, args.kernel)]
    print("\nInstructions per packet of tpswitch, with sender and receiver\n")
    print(f"{'':28} {'switch':>7} {'swperf':>7} {'sum':>7} {'at most':>8} {'VALE':>5}")
    for row, parts in costs.items():
        shares = "".join(f" {n:7.1f}" for n in parts) if len(parts) > 1 else ""
        missed = " missed" if sum(parts) > row.mark else ""
        print(
            f"{row.title:28}{shares:16} {sum(parts):7.1f} {row.mark:8}"
            f" {row.vale or '':>5}{missed}"
        )
    too_much |= any(sum(parts) > row.limit for row, parts in costs.items())
    return int(too_much)


if __name__ == "__main__":
    proc.main(main)
