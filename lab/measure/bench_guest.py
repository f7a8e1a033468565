# SPDX-License-Identifier: GPL-2.0
"""The part of lab/measure/bench.py that runs in the virtual machine.

Runs each benchmark with each size, number of queues, version and way to wait that may
be the cheapest. Reports these and tpbench's output for each run that succeeded.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from lab.build.place import BUILD
from lab.measure import capture, icount

NET = Path("/sys/class/net")
BUSY_US = 20  # only poll() uses the value
RATE = 100_000  # packets per second for tcpdump on veth
BURST = 64
BUFFER_KIB = 32768  # tcpdump -B: on overload, the buffer's size matters, too
LINK_S = 20
# Kinds of rxdrop, with options of tpbench
METADATA = {"rxdrop-meta": ["--meta"], "rxdrop-stamps": ["--stamps"]}


@dataclass
class Job:
    """The arguments of lab/measure/bench.py that the guest needs."""

    device: str
    benchmarks: list[str]
    sizes: list[int]
    queues: list[int]
    versions: list[str]
    defer: bool = False  # the NAPI of tcpdump's device
    waits: tuple[str, ...] = ()  # default: all ways that may be the cheapest
    packets: int = 800_000
    seconds: float = 0.1  # at most
    ring: int = 4096


def run(*command: str) -> None:
    subprocess.run(command, check=True)


def find_ports(driver: str) -> list[str]:
    links = [p for p in NET.glob("*/device/driver") if p.resolve().name == driver]
    ports = sorted(path.parts[-3] for path in links)
    return ports or sys.exit(f"bench: no port of {driver}")


def wait_for_link(ends: list[str]) -> None:
    """A port that was set up or reset receives nothing for some seconds."""
    deadline = time.monotonic() + LINK_S
    for end in ends:
        while (NET / end / "carrier").read_text() != "1\n":
            if time.monotonic() > deadline:
                sys.exit(f"bench: no link on {end}")
            time.sleep(0.1)
    time.sleep(1)


def set_up_links(ends: list[str]) -> None:
    for end in ends:
        # Only packets of the benchmark: no neighbour discovery
        ipv6 = Path(f"/proc/sys/net/ipv6/conf/{end}/disable_ipv6")
        if ipv6.exists():  # not with few options
            ipv6.write_text("1")
        run("ip", "link", "set", end, "up")


def set_up(device: str, queues: int) -> list[str]:
    """Prepare the device; returns the names of its ends."""
    if device == "veth":
        ends = ["tp4A", "tp4B"]
        count = ["numtxqueues", str(queues), "numrxqueues", str(queues)]
        peer = ["type", "veth", "peer", "name", ends[1]]
        run("ip", "link", "add", ends[0], *count, *peer, *count)
    elif device == "i40e":
        ends = find_ports("i40e")
        # Only tpbench --promisc shall receive the generator's packets: otherwise they
        # would occupy the CPU between the runs.
        run("ip", "link", "set", ends[0], "address", "02:00:00:00:00:02")
        # It would create filters for the sent packets, which costs time.
        run("ethtool", "--set-priv-flags", ends[0], "flow-director-atr", "off")
        # The generator fills the ring every 100 us. With the default of 512
        # descriptors, it is slower than zero-copy mode and would be measured instead.
        run("ethtool", "-G", ends[0], "rx", "4096")
    elif device == "igb":
        ends = find_ports("igb")
        for end in ends:
            run("ethtool", "-G", end, "rx", "4096", "tx", "4096")
            # By default, a sender would wait for interrupts for up to 250 us.
            run("ethtool", "-C", end, "tx-usecs", "20")
    else:
        ends = find_ports("virtio_net")
    set_up_links(ends)
    set_queues(device, ends, queues)
    return ends


def set_queues(device: str, ends: list[str], queues: int) -> None:
    """Set the number of queues of each end."""
    count = str(queues)
    which = ["rx", count, "tx", count] if device == "veth" else ["combined", count]
    for end in ends:
        subprocess.run(
            ["ethtool", "-L", end, *which], check=False, stderr=subprocess.DEVNULL
        )
        if len(list((NET / end / "queues").glob("rx-*"))) != queues:
            sys.exit(f"bench: {device} has no {queues} queues")
    wait_for_link(ends)


def defer_interrupts(ends: list[str], busy: bool) -> None:
    """Leave the queues to a busy poller (Documentation/networking/napi.rst)."""
    for end in ends:
        (NET / end / "napi_defer_hard_irqs").write_text("2" if busy else "0")
        (NET / end / "gro_flush_timeout").write_text("200000" if busy else "0")


def ways_to_wait(device: str, version: str, benchmark: str) -> list[str]:
    copy = version in ("V3", "V4")
    if benchmark in METADATA and version not in ("V4", "V4+ZC"):
        return []
    if benchmark.startswith("fanout"):
        return ["sleep"] if version == "V4+ZC" else []
    if device == "veth":
        return ["spin"] if copy else ["spin", "busy"]
    if device == "igb":
        # AF_XDP with busy polling sends nothing.
        return ["spin"]
    if copy:
        return ["spin"] if benchmark == "txpush" else ["sleep"]
    if (version, benchmark) == ("AF_XDP", "l2fwd"):
        return ["sleep"]
    return ["spin", "busy"]


@dataclass
class Run:
    """One measurement."""

    benchmark: str
    size: int
    queues: int
    version: str
    wait: str


def report(job: Job, r: Run, measured: dict[str, float]) -> None:
    icount.report(measured | {"device": job.device} | vars(r))


def run_tpbench(job: Job, ends: list[str], r: Run) -> None:
    igb = job.device == "igb"
    # It resets when a program is attached, and has no link for seconds then.
    seconds = "6" if igb else str(job.seconds)
    if igb and r.benchmark == "txpush":
        ends = ends[:1]
    copies = r.version in ("V3", "V4", "AF_XDP")
    packets = job.packets // 4 if copies else job.packets
    cmd = [str(BUILD / "tpbench/tpbench"), "-q", "--split"]
    cmd += ["-s", str(r.size), "-n", str(packets)]
    cmd += ["-R", str(job.ring), "-d", seconds, "-c", "0"]
    cmd += ["-i", ",".join(ends)]
    benchmark = "rxdrop" if r.benchmark in METADATA else r.benchmark
    cmd += METADATA.get(r.benchmark, [])
    cmd += ["-v", {"V": r.version[1:2]}.get(r.version[0], "xdp")]
    if r.version.endswith("+ZC"):
        cmd += ["-z", "0"]
    if r.version not in ("V3", "V4"):
        cmd += ["-Q", str(r.queues)]
    if r.benchmark.startswith("fanout"):
        cmd += ["--promisc", "--rxdrop"]
        if r.benchmark != "fanout-none":
            cmd += ["--fanout", r.benchmark.split("-")[1]]
    elif job.device not in ("veth", "igb"):
        cmd += ["--promisc", f"--{benchmark}"]
    elif benchmark == "l2fwd":
        cmd += ["--veth", "64", "--lockstep"]
    else:
        cmd += [f"--{benchmark}"]
        cmd += ["--lockstep"] if benchmark == "rxdrop" else []
    cmd += ["--promisc"] if igb else []
    cmd += {"busy": ["-B", str(BUSY_US)], "sleep": ["--poll"]}.get(r.wait, [])
    defer_interrupts(ends, r.wait == "busy")
    done = subprocess.run(
        cmd, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    if done.returncode:
        print("failed:", *cmd, flush=True)
        return
    measured = json.loads(done.stdout)
    if igb:
        measured["ns_per_packet"] -= measured.get("generator_ns_per_packet", 0)
    report(job, r, measured)


def start_sender(device: str, size: int) -> int:
    """Send bursts with pauses: on one CPU, the receiver needs the time in between."""
    sys.stdout.flush()
    if pid := os.fork():
        return pid
    sender = capture.Sender(device, [size] * BURST)
    due = time.monotonic()
    while True:
        with contextlib.suppress(OSError):  # from a device that is set up
            sender.send(BURST)
        due += BURST / RATE
        time.sleep(max(0, due - time.monotonic()))


def busy_ns() -> tuple[int, int]:
    """The time that the CPU was not idle, before and after this was read.

    To read it takes long if there are many timers, one for each program that sleeps.
    """
    before = time.monotonic_ns()
    idle = re.search(r"\.idle_sleeptime *: (\d+)", Path("/proc/timer_list").read_text())
    assert idle
    return before - int(idle[1]), time.monotonic_ns() - int(idle[1])


def measure(counters: Callable[[], tuple[int, int]]) -> dict[str, float]:
    """Work per packet, once packets arrive; counters() returns received and lost."""
    first, _ = counters()
    while counters()[0] == first:
        time.sleep(0.1)
    time.sleep(0.3)
    _, busy = busy_ns()
    received, lost = counters()
    time.sleep(0.5)
    received2, lost2 = counters()
    busy2, _ = busy_ns()
    packets = received2 - received
    return {
        "packets": packets,
        "drops": lost2 - lost,
        "ns_per_packet": (busy2 - busy) / packets,
    }


def run_tcpdump(job: Job, ends: list[str], r: Run, cost_without: float) -> None:
    """Measure tcpdump, less the cost of the same packets without it."""
    port = "zc:" + ends[-1] if r.version == "V4+ZC" else ends[-1]
    lib = None if r.version == "V3" else capture.PCAP
    sink = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert sink.stdin
    try:
        with sink.stdin:
            tcpdump = capture.Tcpdump(port, BUFFER_KIB, lib, sink.stdin.fileno())
        measured = measure(tcpdump.counters)
        measured["ns_per_packet"] -= cost_without
        report(job, r, measured)
        tcpdump.end()
    except RuntimeError as error:
        print(f"failed: {r}: {error}", flush=True)
    sink.wait()


def all_tcpdump(job: Job, ends: list[str], queues: int) -> None:
    versions = []
    for version in job.versions:
        if version.startswith("AF_XDP"):
            continue
        if reason := capture.no_tcpdump(None if version == "V3" else capture.PCAP):
            print(f"skipped: tcpdump, {version}: {reason}")
        else:
            versions.append(version)
    defer_interrupts(ends, job.defer)
    received = NET / ends[-1] / "statistics/rx_packets"
    for size in job.sizes if versions else []:
        sender, cost_without = 0, 0.0
        if job.device == "veth":
            sender = start_sender(ends[0], size)
            without = measure(lambda: (int(received.read_text()), 0))
            cost_without = without["ns_per_packet"]
        for version in versions:
            r = Run("tcpdump", size, queues, version, "sleep")
            run_tcpdump(job, ends, r, cost_without)
        if sender:
            os.kill(sender, signal.SIGKILL)
            os.waitpid(sender, 0)


def guest(job: Job) -> None:
    ends = set_up(job.device, max(job.queues))
    for queues in job.queues:
        set_queues(job.device, ends, queues)
        for benchmark in job.benchmarks:
            if benchmark == "tcpdump":
                all_tcpdump(job, ends, queues)
                continue
            for size, version in product(job.sizes, job.versions):
                ways = ways_to_wait(job.device, version, benchmark)
                for wait in job.waits or ways:
                    r = Run(benchmark, size, queues, version, wait)
                    run_tpbench(job, ends, r)
