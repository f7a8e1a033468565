#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs the tests, by default on the plain kernel and the debug kernel in virtual machines,
and those that can on User Mode Linux (um, and umdebug with KASAN and lockdep).

Prints a line for each test and each failure, and at the end

    N passed, N failed, N skipped

A test with TAP output counts by its cases. A splat in the kernel log or a leaked
reference is a failure of the test that was running. A memory leak is a failure of the
scan for leaks at the end of a boot, which names the test. The output of the tests and of
the kernel is in build/test/. A kernel is booted once for all its tests, and again after
a test that has crashed it. A failed build is a failure, or is skipped without a network;
the tests that do not need it still run.

With ARCH=arm64, s390 or i386, only the selftests, the KUnit modules and the library's
tests run, on a kernel for that machine; i386 and arm also run KUnit with kunit.py.

On the kcsan kernel, a data race is a failure if it involves V4; all races are in
build/test/kcsan/races.txt. The counters of the gcov kernel are in build/coverage/.
"""

import argparse
import os
import re
import shlex
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lab.build.place import BASE, BASES, BUILD, TOP
from lab.measure import races
from lab.run import plan, proc
from lab.run.plan import ARCH, LAB, NET, Test
from lab.run.result import NO_MEMORY, SKIP, Result, is_stale_int3, read_log, read_tap

KERNELS = ("plain", "debug", "um", "umdebug", "kcsan", "gcov")
ARCH_KERNELS = {"arm64": ["arm64"], "s390": ["s390"], "i386": ["i386"], "arm": []}
# How many times longer than on the plain kernel a test may take. KASAN and lockdep
# are slow in software emulation, on a busy machine.
SLOW = {"debug": 3, "kcsan": 6, "gcov": 2, "arm64": 2, "s390": 2, "i386": 2}
UM, UM_BOOTS, UM_LANES = ("um", "umdebug"), 8, 4
COVERAGE = BUILD / "coverage"
PROGRAMS = ("selftests", "lib", "tpbench", "tpacket4", "tpgen", "tpswitch", "tp4")
PROGRAMS += ("guide", "habits", "pcap", "dpdk", "qemu", "zeek", "suricata")
PROGRAMS += ("rust", "go", "python")
# Half of what short tests do is wait for RCU, mostly while devices and network
# namespaces go away. The long forms run with ordinary grace periods.
EXPEDITED = ["-a", "rcupdate.rcu_expedited=1"]


class Progress:
    """Prints the running tests after a silence."""

    SILENCE = 60

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.running: dict[str, float] = {}  # since when
        self.start = self.last = time.monotonic()
        self.done = self.all = 0
        threading.Thread(target=self.watch, daemon=True).start()

    def say(self, *lines: str) -> None:
        with self.lock:
            self.last = time.monotonic()
            print(*lines, sep="\n", flush=True)

    def watch(self) -> None:
        while True:
            time.sleep(1)
            now = time.monotonic()
            running = self.running.copy()
            if running and now - self.last >= self.SILENCE:
                minutes, seconds = divmod(int(now - self.start), 60)
                some = [f"{what} ({int(now - t)} s)" for what, t in running.items()]
                self.say(
                    f"... {minutes}:{seconds:02}, {self.done} of {self.all} tests"
                    f" done, now {', '.join(some)}"
                )


class Limit:
    """After so many minutes no test begins."""

    def __init__(self) -> None:
        self.minutes = 0.0  # no limit

    def is_over(self) -> bool:
        passed = time.monotonic() - progress.start
        return 0 < self.minutes * 60 <= passed

    def leave_out(self, where: str, tests: list[Test]) -> Result:
        result = Result()
        for test in tests:
            result.skip(test.name)
        names = " ".join(test.name for test in tests)
        progress.say(
            f"{where:6} skipped, as {self.minutes:g} minutes are over: {names}"
        )
        return result


progress = Progress()
limit = Limit()
boot_options: list[str] = []  # of lab/run/vm, for each boot


def read_kernel_log(where: str, test: Test, log: Path, result: Result) -> None:
    text = log.read_text(errors="replace") if log.exists() else ""
    if test.has("faults"):
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
    read_kernel_log(where, test, log, result)
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
    progress.running.pop(f"{where} {test.name}", None)
    progress.done += 1
    progress.say(*lines)
    return result


def run_host(test: Test) -> Result:
    start = time.monotonic()
    progress.running[f"host {test.name}"] = start
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
            file.write("\t".join([*words, shlex.join(map(str, test.command))]) + "\n")
    command = [str(LAB / "run/vm"), "-k", kernel, "-l", str(log)]
    command += [*boot_options, *tests[0].vm]
    if kernel == "gcov":
        # Counters of earlier boots stay and are added up.
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
            if limit.is_over():
                proc.signal_group(process, signal.SIGTERM)
                process.stdout.read()
                proc.finish(process)
                total.add(limit.leave_out(kernel, left))
                return total, [], spare
            start = time.monotonic() if current else start
            current, code, said = left.pop(0), 125, ""
            progress.running[f"{kernel} {current.name}"] = time.monotonic()
        elif line.startswith("@@ end "):
            code = int(line.split()[-1])
        else:
            said += line
    exit_code = proc.finish(process)
    if not current and spare and "Segmentation fault" in said:
        # QEMU 7.2 itself, rarely, while devices move in its memory
        progress.say(f"{kernel:6} {left[0].name}: again, for QEMU crashed at boot")
        return total, left, spare - 1
    if not current:  # the machine may be impossible here
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


def run_group(where: str, tests: list[Test]) -> Result:
    """Run tests on the host, or in as few boots as they live through."""
    total, spare = Result(), 2
    while tests:
        if limit.is_over():
            total.add(limit.leave_out(where, tests))
            break
        if where == "host":
            result, tests = run_host(tests[0]), tests[1:]
        else:
            result, tests, spare = run_boot(where, tests, spare)
        total.add(result)
    return total


def run_all(tests: list[tuple[str, Test]], total: Result) -> None:
    """Run all tests, two boots at a time, and with them one that mostly waits."""
    # Tests that want the same machine share a boot. The slowest kernel goes first, and of
    # each the tests of cards, which take minutes. User Mode Linux boots in a second: there
    # are some boots, and by itself more at a time than CPUs, as its tests mostly sleep.
    boots: dict[tuple[str, bool, tuple[str, ...], int], list[Test]] = {}

    def order(item: tuple[str, Test]) -> tuple[int, bool]:
        where, test = item
        return -SLOW.get(where, 1), where != "host" and not test.vm

    for i, (where, test) in enumerate(sorted(tests, key=order)):
        part = i % UM_BOOTS if where in UM else 0
        machine = where, test.has("alone"), tuple(test.vm), part
        boots.setdefault(machine, []).append(test)
    for (where, _, vm, _), group in boots.items():
        if where == "debug":
            name = "-".join(["kmemleak", *vm[1:2]])
            group.append(Test(name, [], "leaks", BUILD, vm=list(vm)))
    progress.all = progress.done + sum(map(len, boots.values()))
    # With more, virtual CPUs without a real one would make the others spin, and what tests
    # of rates on User Mode Linux send would get lost.
    lanes = UM_LANES if all(where in UM for where, *_ in boots) else 2
    waits = {key for key, group in boots.items() if group[0].has("waits")}
    for alone in (False, True):
        with (
            ThreadPoolExecutor(1 if alone else lanes) as busy,
            ThreadPoolExecutor(1) as waiting,
        ):
            jobs = [
                (waiting if key in waits else busy).submit(run_group, key[0], group)
                for key, group in boots.items()
                if key[1] == alone
            ]
            for job in jobs:
                total.add(job.result())


def step(total: Result, title: str, name: str, *command: str) -> bool:
    """One visible step, a command of lab/build; see lab/build/step."""
    log = BUILD / "log" / name
    script = str(LAB / "build" / command[0])
    args = [str(LAB / "build/step"), title, str(log), script, *command[1:]]
    code = proc.finish(proc.start(args, pipe=False))
    if code == SKIP:
        total.skipped += 1
    elif code:
        total.failed += 1
        total.failures.append(f"{title}: {log.relative_to(TOP)} says why")
    return code == 0


def build_programs(what: str, total: Result) -> bool:
    return step(total, f"building {what}", what, "progs", what)


def build_all(kernels: list[str], total: Result) -> list[str]:
    """Build the series, its kernels and programs; return the kernels there are."""
    if not step(total, "applying the series", "tree", "series.py", "tree", "--keep"):
        return []
    programs = PROGRAMS if not ARCH else ("selftests", "lib") if kernels else ()
    if kernels == ["umdebug"]:  # make quick
        programs = ("selftests",)
    kernels = [
        kernel
        for kernel in kernels
        if step(total, f"building the {kernel} kernel", kernel, "kernel", kernel)
    ]
    for what in programs:
        build_programs(what, total)
    if "plain" in kernels and not NET.with_name("net32").exists():
        total.skip("32-bit programs: no gcc -m32")
        progress.say("skipped: 32-bit programs: no gcc -m32")
    return kernels


def prepare_xl710(
    tests: list[tuple[str, Test]], total: Result
) -> list[tuple[str, Test]]:
    """Build what the tests of the XL710 model need; return those that can run."""
    others = [pair for pair in tests if pair[1].name != "xl710-xskxceiver"]
    if others != tests and not build_programs("xskxceiver", total):
        tests = others
    if not tests or not step(total, "building QEMU with the XL710", "qemu", "qemu"):
        return []
    process = proc.start([str(LAB / "build/qemu"), "--print"])
    assert process.stdout
    qemu = process.stdout.read().decode().split("\n")[-2]
    proc.finish(process)
    for _, test in tests:
        test.vm.append(qemu)
    return tests


def kernels_of(args: argparse.Namespace) -> list[str]:
    every = "plain debug" if args.long or BASE != BASES[0] else "plain debug um umdebug"
    return (args.kernels or every).split()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--tests",
        default=os.getenv("TESTS") or "*",
        help="patterns of names, or @FLAG of lab/run/tests.list (default: TESTS, or all)",
    )
    parser.add_argument(
        "--kernels",
        default=os.getenv("KERNELS"),
        help="default: KERNELS, or plain, debug, and, without --long, um and umdebug",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=os.getenv("TEST_MINUTES") or 0,
        help="begin no test after so many minutes (default: TEST_MINUTES, or no limit)",
    )
    parser.add_argument("--list", action="store_true", help="list the tests")
    parser.add_argument("--long", action="store_true", help="run long tests in full")
    parser.add_argument(
        "--check", action="store_true", help="only check that each pattern has tests"
    )
    args = parser.parse_args()
    if ARCH and ARCH not in ARCH_KERNELS:
        sys.exit(f"test.py: ARCH={ARCH} is not one of {', '.join(ARCH_KERNELS)}")
    patterns = args.tests.split()
    if why := plan.unknown(patterns):
        sys.exit(f"test.py: {why}; see --list")
    asked = kernels = ARCH_KERNELS[ARCH] if ARCH else kernels_of(args)
    if wrong := " ".join(k for k in kernels if k not in (*KERNELS, *ARCH_KERNELS)):
        sys.exit(f"test.py: no such kernel: {wrong}; there are {' '.join(KERNELS)}")
    if args.check:
        return 0
    total = Result()
    limit.minutes = args.minutes
    proc.stop_on_signals()
    if not args.long:
        boot_options.extend(EXPEDITED)

    left_out: list[str] = []

    def choose(tests: Iterable[Test], where: str) -> list[tuple[str, Test]]:
        chosen = []
        for test in tests:
            if any(map(test.matches, patterns)):
                why = plan.why_not(test, where, asked, args.long)
                if why and test.name not in patterns:
                    # On User Mode Linux, only a test that is for it is worth a word.
                    if not where.startswith("um"):
                        left_out.append(f"{where} {test.name}: {why}")
                else:
                    chosen.append((where, test))
        return chosen

    host = choose(plan.find_host_tests(), "host")
    if not args.list:
        (BUILD / "test/kcsan/races.txt").unlink(missing_ok=True)
    # The tests of a kernel show when it and the selftests are built.
    if not args.list and (ARCH or not {*patterns} <= {test.name for _, test in host}):
        kernels = build_all(kernels, total)
        # Some need what has been built.
        left_out.clear()
        host = choose(plan.find_host_tests(), "host")
    guest: list[tuple[str, Test]] = []
    xl710: list[tuple[str, Test]] = []
    for kernel in kernels:
        guest += choose(plan.find_guest_tests(kernel, args.long), kernel)
        guest += choose(plan.find_virtio_tests(args.long), kernel)
        if not ARCH:
            xl710 += choose(plan.find_xl710_tests(kernel, args.long), kernel)
    if xl710 and not args.list:
        xl710 = prepare_xl710(xl710, total)
        if not xl710:
            host = [pair for pair in host if pair[1].name != "xl710-qtest"]
    # The host's tests are one group, so they begin early.
    tests = [*host, *guest, *xl710]
    if args.list:
        print("\n".join(f"{where:6} {test.name}" for where, test in tests))
        return 0
    if not tests and not total.failed and not total.skipped:
        sys.exit(f"test.py: no test matches {args.tests}; see --list")
    run_all(tests, total)
    for line in left_out:
        total.skip(line)
        print(f"       skipped: {line}; TESTS= names it to run it")
    if total.failed:
        print("Failed:", *total.failures, sep="\n")
    print(total)
    return 1 if total.failed else 0


if __name__ == "__main__":
    proc.main(main)
