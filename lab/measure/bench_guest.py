# SPDX-License-Identifier: GPL-2.0
"""The part of lab/measure/bench.py that runs in the virtual machine.

Runs each benchmark with each size, number of queues, version and way to wait that may
be the cheapest. Prints a line for each run that succeeded: "@ " and a JSON object with
these and with tpbench's output.
"""

import ctypes
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

NET = Path("/sys/class/net")
BUSY_US = 20  # only poll() uses the value
RATE = 100_000  # packets per second for tcpdump on veth
BURST = 64
BUFFER_KIB = 32768  # tcpdump -B: on overload, the buffer's size matters, too
LINK_S = 20
ETHERTYPE = "88b5"  # for experiments


@dataclass
class Job:
    """The arguments of lab/measure/bench.py that the guest needs."""

    device: str
    benchmarks: list[str]
    sizes: list[int]
    queues: list[int]
    versions: list[str]
    tpbench: str
    tcpdump_lib: str
    packets: int = 800_000
    ring: int = 4096
    defer: str = "sleep"  # "busy": tcpdump with NAPI deferred


def run(*command: str) -> None:
    subprocess.run(command, check=True)


def find_ports(driver: str) -> list[str]:
    drivers = {port.name: port / "device/driver" for port in sorted(NET.iterdir())}
    ports = [
        name
        for name, link in drivers.items()
        if link.exists() and link.resolve().name == driver
    ]
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
    for end in ends:
        # Only packets of the benchmark: no neighbour discovery
        Path(f"/proc/sys/net/ipv6/conf/{end}/disable_ipv6").write_text("1")
        run("ip", "link", "set", end, "up")
    wait_for_link(ends)
    return ends


def set_queues(device: str, ends: list[str], queues: int) -> bool:
    """Set the number of queues of each end; false if the device has fewer."""
    count = str(queues)
    which = ["rx", count, "tx", count] if device == "veth" else ["combined", count]
    for end in ends:
        subprocess.run(
            ["ethtool", "-L", end, *which], check=False, stderr=subprocess.DEVNULL
        )
        if len(list((NET / end / "queues").glob("rx-*"))) != queues:
            print(f"skipped: {device} has no {queues} queues here")
            return False
    wait_for_link(ends)
    return True


def defer_interrupts(ends: list[str], wait: str) -> None:
    """Leave the queues to a busy poller (Documentation/networking/napi.rst)."""
    busy = wait == "busy"
    for end in ends:
        (NET / end / "napi_defer_hard_irqs").write_text("2" if busy else "0")
        (NET / end / "gro_flush_timeout").write_text("200000" if busy else "0")


def ways_to_wait(device: str, version: str, benchmark: str) -> list[str]:
    copy = version in ("V3", "V4")
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
    print("@", json.dumps(measured | {"device": job.device} | vars(r)), flush=True)


def run_tpbench(job: Job, ends: list[str], r: Run) -> None:
    igb = job.device == "igb"
    # It resets when a program is attached, and has no link for seconds then.
    seconds = "6" if igb else "0.1"
    if igb and r.benchmark == "txpush":
        ends = ends[:1]
    copies = r.version in ("V3", "V4", "AF_XDP")
    packets = job.packets // 4 if copies else job.packets
    cmd = [job.tpbench, "-q", "--split", "-s", str(r.size), "-n", str(packets)]
    cmd += ["-R", str(job.ring), "-d", seconds, "-c", "0"]
    cmd += ["-i", ",".join(ends)]
    cmd += ["-v", {"V": r.version[1:2]}.get(r.version[0], "xdp")]
    if r.version.endswith("+ZC"):
        cmd += ["-z", "1"]
    if r.version not in ("V3", "V4"):
        cmd += ["-Q", str(r.queues)]
    if r.benchmark.startswith("fanout"):
        cmd += ["--promisc", "--rxdrop"]
        if r.benchmark != "fanout-none":
            cmd += ["--fanout", r.benchmark.split("-")[1]]
    elif job.device not in ("veth", "igb"):
        cmd += ["--promisc", f"--{r.benchmark}"]
    elif r.benchmark == "l2fwd":
        cmd += ["--veth", "64", "--lockstep"]
    else:
        cmd += [f"--{r.benchmark}"]
        cmd += ["--lockstep"] if r.benchmark == "rxdrop" else []
    cmd += ["--promisc"] if igb else []
    cmd += {"busy": ["-B", str(BUSY_US)], "sleep": ["--poll"]}.get(r.wait, [])
    defer_interrupts(ends, r.wait)
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


class Iovec(ctypes.Structure):
    """struct iovec"""

    _fields_ = (("base", ctypes.c_void_p), ("len", ctypes.c_size_t))


class Message(ctypes.Structure):
    """struct mmsghdr; the last two members are an int and padding each."""

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


def send_forever(device: str, size: int) -> None:
    """Send bursts with pauses: on one CPU, the receiver needs the time in between.

    Uses sendmmsg(), so that a packet costs little more than the kernel's work.
    """
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
        due += BURST / RATE
        time.sleep(max(0, due - time.monotonic()))


def start_sender(device: str, size: int) -> int:
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        send_forever(device, size)
    return pid


def end(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def busy_ns() -> int:
    """The time that the CPU was not idle."""
    idle = re.search(r"\.idle_sleeptime *: (\d+)", Path("/proc/timer_list").read_text())
    assert idle
    return time.monotonic_ns() - int(idle[1])


def measure(counters: Callable[[], tuple[int, int]]) -> dict[str, float]:
    """Work per packet, once packets arrive; counters() returns received and lost."""
    first, _ = counters()
    while counters()[0] == first:
        time.sleep(0.1)
    time.sleep(0.3)
    (received, lost), busy = counters(), busy_ns()
    time.sleep(0.5)
    (received2, lost2), busy2 = counters(), busy_ns()
    packets = received2 - received
    return {
        "packets": packets,
        "drops": lost2 - lost,
        "ns_per_packet": (busy2 - busy) / packets,
    }


def run_tcpdump(job: Job, ends: list[str], r: Run, cost_without: float) -> None:
    """Measure tcpdump, less the cost of the same packets without it."""
    port = "zc:" + ends[-1] if r.version == "V4+ZC" else ends[-1]
    cmd = ["tcpdump", "-Z", "root", "-B", str(BUFFER_KIB), "-w", "-", "-i", port]
    env = dict(os.environ)
    if r.version != "V3":
        env["LD_LIBRARY_PATH"] = job.tcpdump_lib
    log = Path(tempfile.mkstemp()[1])
    with log.open("a") as errors:
        tcpdump = subprocess.Popen(
            cmd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=env,
        )
    sink = subprocess.Popen(["cat"], stdin=tcpdump.stdout, stdout=subprocess.DEVNULL)
    assert tcpdump.stdout
    tcpdump.stdout.close()

    def counters() -> tuple[int, int]:
        os.truncate(log, 0)
        tcpdump.send_signal(signal.SIGUSR1)
        pattern = r"(?s)(\d+) packets? captured.* (\d+) packets? dropped"
        while not (found := re.search(pattern, log.read_text())):
            time.sleep(0.01)
        return int(found[1]), int(found[2])

    while "tcpdump: listening" not in log.read_text() and tcpdump.poll() is None:
        time.sleep(0.1)
    if tcpdump.poll() is None:
        measured = measure(counters)
        measured["ns_per_packet"] -= cost_without
        tcpdump.terminate()
        tcpdump.wait()
        report(job, r, measured)
    else:
        print("failed:", *cmd, log.read_text(), flush=True)
    sink.wait()


def no_tcpdump(version: str, lib: str) -> str:
    """The reason why tcpdump cannot be measured with this version, or an empty string"""
    if not shutil.which("tcpdump"):
        return "not installed"
    if version != "V3" and not Path(lib, "libpcap.so.0.8").exists():
        return "no libpcap with V4: make pcap"
    return ""


def all_tcpdump(job: Job, ends: list[str]) -> None:
    versions = []
    for version in job.versions:
        if version.startswith("AF_XDP"):
            continue
        if reason := no_tcpdump(version, job.tcpdump_lib):
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
            run_tcpdump(
                job, ends, Run("tcpdump", size, 1, version, "sleep"), cost_without
            )
        if sender:
            end(sender)


def guest(job: Job) -> None:
    ends = set_up(job.device, max(job.queues))
    for queues in job.queues:
        if not set_queues(job.device, ends, queues):
            continue
        for benchmark in job.benchmarks:
            if benchmark.startswith("fanout") and (queues > 1 or job.device == "veth"):
                continue
            if benchmark == "tcpdump":
                if queues == 1:
                    all_tcpdump(job, ends)
                continue
            for size in job.sizes:
                for version in job.versions:
                    for wait in ways_to_wait(job.device, version, benchmark):
                        run_tpbench(
                            job, ends, Run(benchmark, size, queues, version, wait)
                        )
