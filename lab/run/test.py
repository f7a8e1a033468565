#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs the tests, by default on the plain and on the debug kernel.

Prints a line for each test and each failure, and at the end

    N passed, N failed, N skipped

A test with TAP output counts by its cases. A splat in the kernel log or a leaked
reference is a failure of the test that was running. A memory leak is a failure of the
scan for leaks at the end of a boot, which names the test. The output of the tests and of
the kernel is in build/test/. A kernel is booted once for all its tests, and again after
a test that has crashed it. What cannot be built is a failure, or skipped if the network
is missing; tests that do not need it still run.

With ARCH=arm64, s390 or i386, only the selftests, the KUnit modules and the library's
tests run, on a kernel for that machine; i386 and arm also run KUnit with kunit.py.

On the kcsan kernel, a data race is a failure if it involves V4; all races are in
build/test/kcsan/races.txt. The counters of the gcov kernel are in build/coverage/.
"""

import argparse
import fnmatch
import os
import re
import shlex
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lab.build.place import BASE, BASES, BUILD, TOP
from lab.measure import races
from lab.run import proc
from lab.run.result import NO_MEMORY, SKIP, Result, is_stale_int3, read_log, read_tap

LAB = TOP / "lab"
ARCH = os.getenv("ARCH", "")
ARCH_KERNELS = {"arm64": ["arm64"], "s390": ["s390"], "i386": ["i386"], "arm": []}
NET = BUILD / ARCH / "selftests" / "net"
TPACKET4 = NET / "tpacket4"
FUZZ = BUILD / "tpacket4"
XL710 = TOP / "lab/xl710"
ON_VETH = TOP / "tools/lib/tpacket4/tests/on_veth.sh"
# How many times longer than on the plain kernel a test may take. KASAN and lockdep
# are slow in software emulation, on a busy machine.
SLOW = {"debug": 3, "kcsan": 6, "gcov": 2, "arm64": 2, "s390": 2, "i386": 2}
COVERAGE = BUILD / "coverage"
# Where a kernel is slow and is no debug kernel, as the tests see it, or where a line
# that is reached often counts no more than one that is reached once
FAST = ["TPACKET4_FAST=1"]
PROGRAMS = ("selftests", "lib", "tpbench", "tpacket4", "pcap", "suricata")
# Slow on any kernel but the plain one, and what they run others run there too.
ONLY_PLAIN = ("tpacket4_zc_busy", "tpbench", "lib-cxx", "lib-ringtest", "lib-examples")
ONLY_PLAIN += ("pcap-v3", "pcap-v4", "pcap-zc", "pcap-tcpdump", "pcap-testprogs")
ONLY_PLAIN += ("psock_snd", "tpacket4_cap", "lib", "lib-byte-order")
# These take long, and others test most of what they do.
ONLY_LONG = ("pcap-testprogs", "psock_snd", "virtio-packed", "virtio-dma")
ONLY_LONG += ("xl710-irq-msi", "xl710-irq-intx", "xl710-link")
ONLY_LONG += ("xl710-ethtool", "xl710-steering", "xl710-generator", "xl710-tp4-bounce")
# xl710-pairs again, with other interrupts
ONLY_LONG += ("xl710-pairs-shared", "xl710-pairs-msi", "xl710-pairs-intx")
ONLY_LONG += ("xl710-pairs-three", "xl710-xdp")
IN_LONG = "make long has it"
# What these look at does not depend on the kernel's configuration, and a debug kernel
# sees more of it.
LEFT_TO_DEBUG = ("tpacket4_life", "tpacket4_send_refused", "tpacket4_send_wait")
LEFT_TO_DEBUG += ("tpacket4_zc_dev", "tpacket4_zc_life", "tpacket4_zc_wake")
LEFT_TO_DEBUG += ("tpacket4_zc_napi", "tpacket4_zc_xdp", "tpacket4_zc_xdp_meta")
LEFT_TO_DEBUG += ("tpacket4_send", "tpacket4_poll", "virtio-split")
# Two virtual machines at a time have two CPUs between them: with two virtual ones each,
# they wait for each other. These have threads that race, or count CPUs; the others get
# one CPU on the plain and the debug kernel, without CPUS= and --long.
TWO_CPUS = ("tpacket4_life", "tpacket4_race", "tpacket4_zc_busy", "tpacket4_zc_dev")
TWO_CPUS += ("tpacket4_zc_life", "tpacket4_zc_race", "tpacket4_zc_redirect")
TWO_CPUS += ("tpacket4_zc_wake", "tpacket4_zc_napi", "fuzz", "soak", "lib-ringtest")
TWO_CPUS += ("pcap-tcpdump",)
# The other is there, or devices could not have two queues.
ONE_CPU = ["--append", "maxcpus=1"]
# These let allocations fail.
MAKE_IT_FAIL = ("tpacket4_fault", "tpacket4_zc_xdp", "xl710-tp4")
# What of zc_port is soon over. The rest differs little between the kinds of rings.
VIRTIO_SHORT = "-v both -t offloads -t xdp -t one_ring -t kill_under_load"
VIRTIO_SHORT += " -t unplug_under_load"
# What taps have that the others have not
VIRTIO_TAP = "-v both -t offloads"
# A device without mergeable buffers has packets of one frame.
VIRTIO_SMALL = "-t one_frame_a_packet -t offloads"
# Half of what short tests do is wait for RCU, mostly while devices and network
# namespaces go away. The long forms run with ordinary grace periods.
EXPEDITED = ["-a", "rcupdate.rcu_expedited=1"]
# DMA goes to bounce buffers, so the driver must sync what it reads and writes.
BOUNCE = "swiotlb=force"
# The model sends so slowly that a short ring is full.
SLOW_TX = "xl710,tx-burst=4,tx-delay=100000"
FULL_RING = "-t stack_sends_beside_a_full_ring"
# i40e's zero-copy mode: the others look at the model, and are slow on a debug kernel.
XL710_DEBUG = ("xl710-tp4", "xl710-netkit")
XL710_DEBUG_CASES = (
    "TP4_TESTS=-v both -v reset -t kill_under_load -t metadata -t xdp -t devmem"
)
XL710_TIMED = ("xl710-generator", "xl710-xskxceiver")
# The cases of xl710-pairs where two queues have one vector, where there are three
# queues, for which it takes as many CPUs, and where, without MSI-X, there is one queue.
SHARED_VECTOR = "other_pairs_of_the_vector_go_on"
THREE_QUEUES = "rules_hold_while_others_bind"
ONE_QUEUE = "kick_reaches_napi link_events_after_bind bind_while_down tx_alone"


@dataclass
class Test:
    """A command; `kind` as in lab/run/guest-test, or host: outside the VM."""

    name: str
    command: list[str]
    kind: str = "run"
    cwd: Path = NET
    timeout: int = 900
    vm: list[str] = field(default_factory=list)
    only_named: str = ""  # why it does not run unless it is asked for by name
    alone: bool = False  # it measures time: no other test beside it


class Progress:
    """Says what runs when nothing else has been said for a while."""

    SILENCE = 60

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.running: dict[str, float] = {}
        self.start = self.last = time.monotonic()
        self.done = self.all = 0
        threading.Thread(target=self.watch, daemon=True).start()

    def say(self, *lines: str) -> None:
        with self.lock:
            self.last = time.monotonic()
            print(*lines, sep="\n", flush=True)

    def begin(self, what: str) -> None:
        with self.lock:
            self.running[what] = time.monotonic()

    def end(self, what: str) -> None:
        with self.lock:
            self.running.pop(what, None)
            self.done += 1

    def watch(self) -> None:
        while True:
            time.sleep(1)
            now = time.monotonic()
            with self.lock:
                some = [f"{w} ({int(now - t)} s)" for w, t in self.running.items()]
                quiet = now - self.last >= self.SILENCE and some
            if quiet:
                minutes, seconds = divmod(int(now - self.start), 60)
                self.say(
                    f"... {minutes}:{seconds:02}, {self.done} of {self.all} tests"
                    f" done, now {', '.join(some)}"
                )


progress = Progress()
boot_options: list[str] = []  # of lab/run/vm, for each boot


def read_kernel_log(where: str, name: str, log: Path, result: Result) -> None:
    text = log.read_text(errors="replace") if log.exists() else ""
    if name in MAKE_IT_FAIL:
        text = NO_MEMORY.sub("", text)
    if where == "kcsan":
        report = BUILD / "test/kcsan/races.txt"
        vmlinux = BUILD / "kernel-kcsan/vmlinux"
        text, ours, others = races.find(text, vmlinux, report)
        for line in ours:
            result.fail(f"race: {line}")
        if others:
            result.lines.append(f"{others} data races in what is not V4's")
    read_log(str(log.relative_to(TOP)), text, result)


def judge(where: str, test: Test, code: int, text: str, log: Path) -> Result:
    result = Result()
    said = [line for line in text.splitlines() if line.strip()]
    read_tap(text, result)
    counted = result.passed + result.failed + result.skipped
    for line in said:
        if line.startswith("not ok: "):
            result.fail(line)
    if code == SKIP and not result.failed:
        if not result.skipped:
            result.skip(said[-1] if said else "no reason given")
    elif code and not result.failed:
        result.fail(f"exit code {code}: " + " | ".join(said[-3:]))
    elif not counted and not result.failed:
        result.passed += 1
    if test.kind == "kunit" and not counted and not result.failed:
        result.fail(f"no case ran in {test.name}")
    read_kernel_log(where, test.name, log, result)
    return result


def report(where: str, test: Test, code: int, text: str, start: float) -> Result:
    """Print the result of one test; its output and kernel log are in files."""
    base = BUILD / "test" / where / test.name
    base.parent.mkdir(parents=True, exist_ok=True)
    base.with_suffix(".out").write_text(text)
    result = judge(where, test, code, text, base.with_suffix(".log"))
    word = "FAIL" if result.failed else "ok"
    seconds = int(time.monotonic() - start)
    lines = [f"{where:6} {test.name:24} {word:5} {result} ({seconds} s)"]
    lines += [f"       {line}" for line in result.lines]
    if result.failed:
        lines.append(f"       all it said: {base.relative_to(TOP)}.out")
        result.failures = [line for line in lines if " skipped: " not in line]
    progress.end(f"{where} {test.name}")
    progress.say(*lines)
    return result


def run_host(test: Test) -> Result:
    start = time.monotonic()
    progress.begin(f"host {test.name}")
    process = proc.start(test.command, test.cwd)
    assert process.stdout
    text = process.stdout.read().decode(errors="replace")
    return report("host", test, proc.finish(process), text, start)


def cut_log(log: Path, name: str) -> str:
    """What the kernel said from a test's beginning to that of the next one."""
    text = log.read_text(errors="replace") if log.exists() else ""
    _, _, rest = text.partition(f"guest-test: begin {name}\n")
    return re.split(r".*guest-test: begin ", rest, maxsplit=1)[0] if rest else text


def run_boot(
    kernel: str, tests: list[Test], spare: int
) -> tuple[Result, list[Test], int]:
    """Run tests in one boot.

    Also returns those that are left to run, as this kernel died of an earlier
    one, and how many more times QEMU may kill a kernel without blame for the
    test, of `spare` times.
    """
    where = BUILD / "test" / kernel
    where.mkdir(parents=True, exist_ok=True)
    name = f"boot-{tests[0].name}"
    log, suite = where / f"{name}.log", where / f"{name}.suite"
    slow = SLOW.get(kernel, 1)
    with suite.open("w") as file:
        for test in tests:
            (where / f"{test.name}.log").unlink(missing_ok=True)
            words = [test.name, test.kind, str(test.cwd), str(test.timeout * slow)]
            file.write("\t".join([*words, shlex.join(test.command)]) + "\n")
    command = [str(LAB / "run/vm"), "-k", kernel, "-l", str(log)]
    command += [*boot_options, *tests[0].vm]
    if kernel == "gcov":
        # What is there already counts, too.
        COVERAGE.mkdir(parents=True, exist_ok=True)
        command += ["-s", tempfile.mkdtemp(prefix=f"{name}-", dir=COVERAGE)]
    command += ["-t", str(sum(test.timeout for test in tests) * slow), "--"]
    command += [str(LAB / "run/guest-test"), "suite", str(suite)]

    total, current, code, said = Result(), None, 0, ""
    left = list(tests)
    start = time.monotonic()

    def settle() -> None:
        if current:
            section = cut_log(log, current.name)
            (where / f"{current.name}.log").write_text(section)
            total.add(report(kernel, current, code, said, start))

    process = proc.start(command)
    assert process.stdout
    for raw in process.stdout:
        line = raw.decode(errors="replace").replace("\r", "")
        if line.startswith("@@ begin "):
            settle()
            start = time.monotonic() if current else start
            current, code, said = left.pop(0), 125, ""
            progress.begin(f"{kernel} {current.name}")
        elif line.startswith("@@ end "):
            code = int(line.split()[-1])
        else:
            said += line
    exit_code = proc.finish(process)
    if not current:  # the machine may say that it cannot be had here
        current, code = left.pop(0), SKIP if exit_code == SKIP else 125
    if exit_code:
        if code in (0, SKIP):
            code = exit_code
        kernel_log = log.read_text(errors="replace") if log.exists() else ""
        if spare and is_stale_int3(kernel_log):
            kept = log.rename(log.with_suffix(f".int3-{spare}.log"))
            progress.say(
                f"{kernel:6} {current.name}: again, for QEMU ran an old int3,"
                f" see {kept.relative_to(TOP)}"
            )
            return total, [current, *left], spare - 1
    settle()
    return total, left, spare


def run(kernel: str, tests: list[Test]) -> Result:
    """Run tests, in as few boots as they live through."""
    total, spare = Result(), 2
    while tests:
        result, tests, spare = run_boot(kernel, tests, spare)
        total.add(result)
    return total


def listed(what: str) -> list[str]:
    """The series' own programs or scripts, as lab/build/progs found them."""
    file = BUILD / ARCH / "selftests" / what
    return file.read_text().split() if file.exists() else []


def find_guest_tests(kernel: str, long: bool) -> list[Test]:
    tests = []
    modules = (BUILD / f"kernel-{kernel}").glob("mods/lib/modules/*/kernel/net/packet")
    for directory in modules:
        for module in sorted(directory.glob("*.ko")):
            if re.search("kunit|test", module.stem):
                tests.append(Test(module.stem, [module.stem], "kunit", BUILD))
    fast = ["env", *FAST] if kernel in ("kcsan", "gcov") or ARCH else []
    in_32_bit = listed("programs32") if kernel == "plain" else []
    for program in listed("programs"):
        name = f"tpacket4_{program}"
        if (TPACKET4 / program).exists():
            tests.append(Test(name, [*fast, f"./{program}"], cwd=TPACKET4))
        path = f"../../net32/tpacket4/{program}"
        if program in in_32_bit and (TPACKET4 / path).exists():
            tests.append(Test(f"{name}-32", [path], cwd=TPACKET4))
    if ARCH:
        return tests + find_lib_tests()[:2]
    for name in "psock_tpacket", "psock_fanout", "psock_snd":
        if (NET / name).exists():
            script = ".sh" if name == "psock_snd" else ""
            tests.append(Test(name, [f"./{name}{script}"]))
    for script in listed("scripts"):
        name = f"tpacket4_{Path(script).stem}"
        tests.append(Test(name, ["bash", script], cwd=TPACKET4))
    if kernel == "debug":
        # Short, and from one seed: make fuzz and make soak are for more.
        tests.append(Test("fuzz", ["./fuzz", "-r", "1", "-n", "200"], cwd=FUZZ))
        tests.append(Test("soak", ["./soak", "-e", "40"], cwd=FUZZ))
    tests += [*find_lib_tests(), find_tpbench_test(), *find_pcap_tests(long)]
    for test in tests:
        if kernel != "plain" and test.name in ONLY_PLAIN:
            test.only_named = "slow there"
    return tests


def find_lib_tests() -> list[Test]:
    """The library's tests; other architectures have the first two of them."""
    tests, obj = TOP / "tools/lib/tpacket4/tests", BUILD / ARCH / "lib"

    def test(name: str, *command: str | Path) -> Test:
        return Test(name, [str(word) for word in command], cwd=obj)

    return [
        test("lib", ON_VETH, "./lib_test", "tp4A", "tp4B"),
        test("lib-byte-order", ON_VETH, tests / "byte_order.sh"),
        test("lib-cxx", ON_VETH, "./lib_test_cxx", "tp4A", "tp4B"),
        test("lib-examples", ON_VETH, tests / "examples.sh"),
        test("lib-ringtest", tests / "ringtest.sh"),
    ]


def find_tpbench_test() -> Test:
    command = [str(ON_VETH), str(TOP / "samples/tpacket4/test.sh")]
    return Test("tpbench", command, cwd=BUILD / "tpbench")


def find_pcap_tests(long: bool) -> list[Test]:
    """Those of ports/libpcap, where that is built."""
    pcap, port = BUILD / "pcap", TOP / "ports/libpcap/tests"
    if not (pcap / "lib").exists():
        return []
    tests = []
    for version in "v3", "v4", "zc":
        # V3 is what Debian's libpcap uses.
        lib = [] if version == "v3" else ["env", f"LD_LIBRARY_PATH={pcap}/lib"]
        command = [*lib, str(ON_VETH), "./pcap_test", version, "tp4A", "tp4B"]
        tests.append(Test(f"pcap-{version}", command, cwd=pcap / "testprogs"))
    python = ["python3", "-B"]
    for name, script in (("tcpdump", "side_by_side"), ("testprogs", "testprogs")):
        command = [*python, f"{port}/{script}.py", str(pcap)]
        command += ["--short"] if name == "tcpdump" and not long else []
        tests.append(Test(f"pcap-{name}", command, cwd=pcap))
    return tests


def find_virtio_tests(kernel: str, long: bool) -> list[Test]:
    """Zero-copy mode on virtio_net, with the kinds of rings and buffers it has."""
    if ARCH or not (TPACKET4 / "zc_virtio.sh").exists():
        return []
    kinds = {
        "split": "virtio",
        "packed": "virtio,packed=on",
        "dma": "virtio,iommu_platform=on,disable-legacy=on",
        "small": "virtio,mrg_rxbuf=off",
        "tap": "virtio-tap,rss=on,hash=on",
    }
    if BASE != BASES[0]:  # which cannot lease queues
        kinds["netkit"] = kinds["dma"]  # AF_XDP needs the DMA API
    tests = []
    for kind, nic in kinds.items():
        env = ["env", *([] if long else ["TPACKET4_FAST=1"])]
        some = [] if long else VIRTIO_SHORT.split()
        if kind == "small":
            env.append("TPACKET4_PORT_MTU=1500")
            contents = "-f contents" if long else "-v both"
            some = f"{contents} {VIRTIO_SMALL}".split()
        if kind == "tap":
            env.append("TPACKET4_PORT_VALID=1")
            some = [] if long else VIRTIO_TAP.split()
        if kind == "netkit":
            env.append("TPACKET4_PORT_TEST=zc_netkit")
            some = []
        command = [*env, "bash", "zc_virtio.sh", *some]
        test = Test(f"virtio-{kind}", command, cwd=TPACKET4, vm=["--nic", nic])
        on_debug = kernel == "debug" and (long or kind in ("split", "netkit"))
        if kernel != "plain" and not on_debug:
            test.only_named = IN_LONG
        tests.append(test)
    return tests


def find_xl710_tests(kernel: str, long: bool) -> list[Test]:
    """The tests of the XL710 model and of zero-copy mode on it."""
    short = [] if long else ["XL710_SHORT=1"]
    if kernel == "gcov":
        short += FAST

    def test(
        script: str,
        name: str,
        nic: str,
        *env: str,
        cases: str = "",
        boot: str = "",
        cpus: str = "",
    ) -> Test:
        path = XL710 / "tests" / f"{script}.sh"
        command = ["env", f"BUILD={BUILD}", *short, *env, "bash", str(path)]
        command += cases.split()
        append = ["--append", boot] if boot else []
        append += ["--cpus", cpus] if cpus else []
        vm = ["--nic", nic, *append, "--qemu"]  # main() knows which
        return Test(f"xl710-{name}", command, cwd=path.parent, vm=vm)

    names = {path.stem for path in (XL710 / "tests").glob("*.sh")} - {"lib", "tp4"}
    # probe looks at the log from the boot on: first. After mqprio, as pairs uses it,
    # the base driver's RSS has one queue left: last.
    two = ["probe", *sorted(names - {"probe", "generator", "pairs"})]
    parts = []
    if kernel == "debug" and not long:
        parts = ["TP4_PARTS=ports", XL710_DEBUG_CASES]
    tests = [
        *(test(name, name, "xl710") for name in two),
        test("tp4", "tp4", "xl710", *parts),
        test("pairs", "pairs", "xl710"),
        test("irq", "irq-msi", "xl710,msix=off", "XL710_IRQ=msi"),
        test("irq", "irq-intx", "xl710,msix=off,msi=off", "XL710_IRQ=intx"),
        test("pairs", "pairs-shared", "xl710,vectors=3", cases=SHARED_VECTOR),
        test("pairs", "pairs-three", "xl710", cases=THREE_QUEUES, cpus="3"),
        test("pairs", "pairs-msi", "xl710,msix=off", cases=ONE_QUEUE),
        test("pairs", "pairs-intx", "xl710,msix=off,msi=off", cases=ONE_QUEUE),
        test("generator", "generator", "xl710-gen"),
        test("tp4", "tp4-bounce", "xl710", "TP4_PARTS=bridge", boot=BOUNCE),
        test("tp4", "tp4-slow", SLOW_TX, "TP4_PARTS=ports", f"TP4_TESTS={FULL_RING}"),
    ]
    if BASE != BASES[0]:  # which cannot lease queues
        tests.append(test("tp4", "netkit", "xl710", "TP4_PARTS=netkit"))
    for item in tests:
        on_debug = kernel == "debug" and item.name in XL710_DEBUG
        item.alone = item.name in XL710_TIMED
        if long:
            item.timeout = 3600
        elif kernel != "plain" and not on_debug:
            item.only_named = "slow there"
        elif item.name == "xl710-afxdp":
            item.only_named = "xl710-xskxceiver looks at AF_XDP"
        if kernel == "debug" and item.alone:
            item.only_named = "too slow for what it measures"
    return tests


def find_host_tests() -> list[Test]:
    if ARCH in ("i386", "arm"):
        name = f"kunit-{ARCH}"
        log = BUILD / f"test/host/{name}.log"
        command = [str(LAB / "run/kunit"), ARCH, str(log)]
        return [Test(name, command, "host", TOP)]
    if ARCH:
        return []
    tests = []
    for path in sorted((LAB / "tests").glob("test_*.py")):
        unit = ["python3", "-B", "-m", "unittest", "-q", path.stem]
        name = path.stem.replace("test_", "lab-")
        tests.append(Test(name, unit, "host", path.parent))
    if (XL710 / "run-qtest.sh").exists():
        tests.append(Test("xl710-qtest", ["./run-qtest.sh"], "host", XL710))
    rings = [str(LAB / "stress/fuzz"), "rings"]
    command = ["env", "OPERATIONS=1e8", "SEED=1", *rings]
    tests.append(Test("rings", command, "host", TOP))
    return tests


def step(title: str, name: str, *command: str, files: str = "") -> Result:
    """One visible step, see lab/build/step; its result is empty if it is done."""
    log = BUILD / "log" / name
    env = os.environ | ({"STEP_FILES": files} if files else {})
    result = Result()
    args = [str(LAB / "build/step"), title, str(log), *command]
    process = proc.start(args, env=env, pipe=False)
    code = proc.finish(process)
    if code == SKIP:
        result.skipped = 1
    elif code:
        result.failed = 1
        result.failures = [f"{title}: {log.relative_to(TOP)} says why"]
    return result


def build(kernel: str) -> Result:
    new = not (BUILD / f"kernel-{kernel}/vmlinux").exists()
    script = str(LAB / "build/kernel")
    files = ("1356" if kernel == "plain" else "1479") if new else ""
    return step(f"building the {kernel} kernel", kernel, script, kernel, files=files)


def build_programs(what: str) -> Result:
    return step(f"building {what}", what, str(LAB / "build/progs"), what)


def build_qemu(total: Result) -> str:
    """Make QEMU with the XL710; return its path, or nothing."""
    script = str(LAB / "build/qemu")
    result = step("building QEMU with the XL710", "qemu", script)
    total.add(result)
    if result.failed or result.skipped:
        return ""
    process = proc.start([script, "--print"])
    assert process.stdout
    path = process.stdout.read().decode().split("\n")[-2]
    proc.finish(process)
    return path


def run_group(where: str, tests: list[Test]) -> Result:
    if where != "host":
        return run(where, tests)
    result = Result()
    for test in tests:
        result.add(run_host(test))
    return result


def run_all(plan: list[tuple[str, Test]], total: Result) -> None:
    """Run what is planned, two boots at a time."""
    # What wants the same machine shares a boot; the slowest kernel goes first.
    boots: dict[tuple[str, bool, tuple[str, ...]], list[Test]] = {}
    for where, test in sorted(plan, key=lambda item: -SLOW.get(item[0], 1)):
        boots.setdefault((where, test.alone, tuple(test.vm)), []).append(test)
    for (where, _, vm), tests in boots.items():
        if where == "debug":
            name = "-".join(["kmemleak", *vm[1:2]])
            tests.append(Test(name, [], "leaks", BUILD, vm=list(vm)))
    progress.all = progress.done + sum(map(len, boots.values()))
    # Not more: virtual CPUs that get none wait for each other, and spin.
    for alone in (False, True):
        with ThreadPoolExecutor(1 if alone else 2) as pool:
            jobs = [
                pool.submit(run_group, where, tests)
                for (where, by_itself, _), tests in boots.items()
                if by_itself == alone
            ]
            for job in jobs:
                total.add(job.result())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tests", default=os.getenv("TESTS") or "*")
    parser.add_argument("--kernels", default=os.getenv("KERNELS") or "plain debug")
    parser.add_argument("--list", action="store_true", help="list the tests")
    parser.add_argument("--long", action="store_true", help="run long tests in full")
    args = parser.parse_args()
    if ARCH and ARCH not in ARCH_KERNELS:
        sys.exit(f"test.py: ARCH={ARCH} is not one of {', '.join(ARCH_KERNELS)}")
    kernels = ARCH_KERNELS[ARCH] if ARCH else args.kernels.split()
    programs = PROGRAMS if not ARCH else ("selftests", "lib") if kernels else ()
    patterns = args.tests.split()
    total = Result()
    not_asked_for: list[str] = []
    proc.stop_on_signals()
    if not args.long:
        boot_options.extend(EXPEDITED)

    def chosen(tests: list[Test], kernel: str = "") -> list[Test]:
        left = LEFT_TO_DEBUG if kernel == "plain" and "debug" in kernels else ()
        some = [t for t in tests if any(fnmatch.fnmatch(t.name, p) for p in patterns)]
        for test in some:
            if test.name in ONLY_LONG and not args.long:
                test.only_named = IN_LONG
            if test.name in left and not args.long:
                test.only_named = "the debug kernel runs it"
            if test.only_named and test.name not in patterns:
                not_asked_for.append(f"{test.name}: {test.only_named}")
        return [t for t in some if not t.only_named or t.name in patterns]

    def made(result: Result) -> bool:
        total.add(result)
        return not (result.failed or result.skipped)

    host = chosen(find_host_tests())
    if not args.list:
        (BUILD / "test/kcsan/races.txt").unlink(missing_ok=True)
    # What tests a kernel has shows when it and the selftests are built.
    only_host = not ARCH and all(any(t.name == p for t in host) for p in patterns)
    if not args.list and not only_host:
        command = [str(LAB / "build/series.py"), "tree", "--keep"]
        if made(step("applying the series", "tree", *command)):
            kernels = [kernel for kernel in kernels if made(build(kernel))]
            for what in programs:
                made(build_programs(what))
            if "plain" in kernels and not NET.with_name("net32").exists():
                total.skip("32-bit programs: no gcc -m32")
                progress.say("skipped: 32-bit programs: no gcc -m32")
        else:
            kernels = []
    long = args.long
    plan = [(k, test) for k in kernels for test in chosen(find_guest_tests(k, long), k)]
    few = [] if long or os.getenv("CPUS") else ["plain", "debug"]
    for kernel, test in plan:
        if kernel in few and test.name.removesuffix("-32") not in TWO_CPUS:
            test.vm = ONE_CPU
    virtio = [(k, t) for k in kernels for t in chosen(find_virtio_tests(k, long), k)]
    plan += virtio
    for_xl710 = [] if ARCH else kernels
    xl710 = [(k, t) for k in for_xl710 for t in chosen(find_xl710_tests(k, long))]
    if xl710 and not args.list:
        others = [pair for pair in xl710 if pair[1].name != "xl710-xskxceiver"]
        if others != xl710 and not made(build_programs("xskxceiver")):
            xl710 = others
        qemu = build_qemu(total)
        for _, test in xl710:
            test.vm.append(qemu)
        if not qemu:
            xl710 = []
            host = [test for test in host if test.name != "xl710-qtest"]
    # Those on the host are one group, and not to be left for the end.
    plan = [*(("host", test) for test in host), *plan, *xl710]
    if args.list:
        print("\n".join(f"{where:6} {test.name}" for where, test in plan))
        return 0
    if not plan and not total.failed and not total.skipped:
        sys.exit(f"test.py: no test matches {args.tests}; see --list")
    run_all(plan, total)
    for line in not_asked_for:
        total.skip(line)
        print(f"       skipped: {line}; TESTS= names it to run it")
    if total.failed:
        print("Failed:", *total.failures, sep="\n")
    print(total)
    return 1 if total.failed else 0


if __name__ == "__main__":
    proc.main(main)
