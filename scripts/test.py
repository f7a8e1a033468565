#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs the tests, on the plain and on the debug kernel.

Prints a line a test and a line a failure, and at the end

    N passed, N failed, N skipped

where a test that speaks TAP counts by its cases. A splat in the kernel log or a
reference left behind is a failure of the test that ran; a leak is one of the
search for leaks at the end of a boot, which names the test. What a test said and
what the kernel said is kept in build/test/. A kernel is booted once for all its
tests, and again after one that it did not live through.
"""

import argparse
import fnmatch
import os
import re
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
BUILD = TOP / "build"
SCRIPTS = TOP / "scripts"
NET = BUILD / "selftests" / "net"
XL710 = TOP / "tools/testing/xl710"
SKIP = 4  # kselftest's exit code for it
# Of what these test, a program's word size is no part, or others test that part.
SAME_IN_32_BIT = (
    *("_adjust", "_dev", "_frames", "_life", "_race", "_redirect", "_send"),
    *("_wake", "_xdp", "_zc_data"),
)
XL710_TIMED = ("xl710-generator", "xl710-xskxceiver")

# What no kernel log may contain.
SPLAT = re.compile(
    r"WARNING[: ]|BUG[: ]|Oops|Kernel panic|general protection|Call Trace|"
    r"KASAN: |UBSAN: |kmemleak: \d+ new|possible (circular|recursive)|"
    r"suspicious RCU|inconsistent lock state|sleeping function|"
    r"scheduling while atomic|INFO: task .* blocked|soft lockup|"
    r"rcu: INFO: .* stall|unregister_netdevice: waiting|ref_tracker: (?!memory)|"
    r"refcount_t: |leaked|corruption|ODEBUG: |DMA-API: .*(warning|error|driver)|"
    r"Bad page|bad page|invalid opcode|Modules linked in"
)
TAP = re.compile(r"(?P<indent> *)(?P<bad>not )?ok (?:\d+(?: -)? ?|- )(?P<rest>.*)")


@dataclass
class Test:
    """A command; `kind` as in scripts/guest-test, or host: outside the VM."""

    name: str
    command: list[str]
    kind: str = "run"
    cwd: Path = NET
    timeout: int = 900
    vm: list[str] = field(default_factory=list)
    only_named: str = ""  # why it does not run unless it is asked for by name
    alone: bool = False  # it measures time: no other test beside it


@dataclass
class Result:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    lines: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)  # to say again at the end

    def fail(self, line: str) -> None:
        self.failed += 1
        self.lines.append(line)

    def skip(self, line: str) -> None:
        self.skipped += 1
        self.lines.append(f"skipped: {line}")

    def add(self, other: "Result") -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.failures += other.failures

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def read_tap(text: str, result: Result) -> None:
    """Count the cases in TAP or KTAP; of nested ones, the innermost."""
    comments: list[str] = []
    depth = 0
    for line in text.splitlines():
        match = TAP.fullmatch(line)
        if not match:
            if re.match(r" *# .*(:\d+:|EXPECT|ASSERT|rror|imeout)", line):
                comments.append(line.strip(" #"))
            continue
        inner, depth = depth, len(match["indent"])
        if inner > depth:
            continue  # the sum of the cases above it
        name, _, note = f" {match['rest']}".partition(" # ")
        name = name.strip()
        if note.upper().startswith(("SKIP", "XFAIL")):
            result.skip(f"{name}: {note[4:].strip()}")
        elif match["bad"]:
            result.fail(f"{name}: {'; '.join(comments[:4]) or 'not ok'}")
        else:
            result.passed += 1
        comments = []


def read_log(log: Path, result: Result) -> None:
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    for number, line in enumerate(lines, 1):
        if SPLAT.search(line):
            rip = [text for text in lines[number : number + 40] if " RIP: " in text]
            at = f" ({rip[0].partition(' RIP: ')[2]})" if rip else ""
            result.fail(f"{log.relative_to(TOP)}:{number}: {line.strip()}{at}")
            return  # what follows is its consequence, or its trace


def judge(test: Test, code: int, text: str, log: Path) -> Result:
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
    read_log(log, result)
    return result


def report(where: str, test: Test, code: int, text: str, start: float) -> Result:
    """Print the result of one test; its output and kernel log are in files."""
    base = BUILD / "test" / where / test.name
    base.parent.mkdir(parents=True, exist_ok=True)
    base.with_suffix(".out").write_text(text)
    result = judge(test, code, text, base.with_suffix(".log"))
    word = "FAIL" if result.failed else "ok"
    seconds = int(time.monotonic() - start)
    lines = [f"{where:6} {test.name:24} {word:5} {result} ({seconds} s)"]
    lines += [f"       {line}" for line in result.lines]
    if result.failed:
        lines.append(f"       all it said: build/test/{where}/{test.name}.out")
        result.failures = [line for line in lines if " skipped: " not in line]
    # At once, for others print too.
    sys.stdout.write("\n".join([*lines, ""]))
    sys.stdout.flush()
    return result


def run_host(test: Test) -> Result:
    start = time.monotonic()
    process = subprocess.run(
        test.command,
        check=False,
        cwd=test.cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    text = process.stdout.decode(errors="replace")
    return report("host", test, process.returncode, text, start)


def cut_log(log: Path, name: str) -> str:
    """What the kernel said from a test's beginning to that of the next one."""
    text = log.read_text(errors="replace") if log.exists() else ""
    _, _, rest = text.partition(f"guest-test: begin {name}\n")
    return re.split(r".*guest-test: begin ", rest, maxsplit=1)[0] if rest else text


def is_stale_int3(kernel_log: str) -> bool:
    """Did QEMU run an int3 where the kernel's memory has none any more?

    TCG can go on with code from when the kernel was patching it; the kernel
    knows nothing of that int3 by then, and dies.
    """
    _, _, oops = kernel_log.partition("Oops: int3")
    before = re.search("Code: (.*?) <", oops)  # what trapped comes before the <
    return bool(before) and not before[1].endswith("cc")


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
    # KASAN and lockdep in software emulation, on a busy machine
    slow = 3 if kernel == "debug" else 1
    with suite.open("w") as file:
        for test in tests:
            (where / f"{test.name}.log").unlink(missing_ok=True)
            words = [test.name, test.kind, str(test.cwd), str(test.timeout * slow)]
            file.write("\t".join([*words, shlex.join(test.command)]) + "\n")
    command = [str(SCRIPTS / "vm"), "-k", kernel, "-l", str(log), *tests[0].vm]
    command += ["-t", str(sum(test.timeout for test in tests) * slow), "--"]
    command += [str(SCRIPTS / "guest-test"), "suite", str(suite)]

    total, current, code, said = Result(), None, 0, ""
    left = list(tests)
    start = time.monotonic()

    def settle() -> None:
        if current:
            section = cut_log(log, current.name)
            (where / f"{current.name}.log").write_text(section)
            total.add(report(kernel, current, code, said, start))

    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout
        for raw in process.stdout:
            line = raw.decode(errors="replace").replace("\r", "")
            if line.startswith("@@ begin "):
                settle()
                start = time.monotonic() if current else start
                current, code, said = left.pop(0), 125, ""
            elif line.startswith("@@ end "):
                code = int(line.split()[-1])
            else:
                said += line
    if not current:
        current, code = left.pop(0), 125
    if process.returncode:
        if code in (0, SKIP):
            code = process.returncode
        kernel_log = log.read_text(errors="replace") if log.exists() else ""
        if spare and is_stale_int3(kernel_log):
            kept = log.rename(log.with_suffix(f".int3-{spare}.log"))
            print(
                f"{kernel:6} {current.name}: again, for QEMU ran an old int3,"
                f" see {kept.relative_to(TOP)}",
                flush=True,
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
    """The series' own programs or scripts, as scripts/progs found them."""
    file = BUILD / "selftests" / what
    return file.read_text().split() if file.exists() else []


def find_guest_tests(kernel: str) -> list[Test]:
    tests = []
    modules = (BUILD / f"kernel-{kernel}").glob("mods/lib/modules/*/kernel/net/packet")
    for directory in modules:
        for module in sorted(directory.glob("*.ko")):
            if re.search("kunit|test", module.stem):
                tests.append(Test(module.stem, [module.stem], "kunit", BUILD))
    for name in listed("programs"):
        tests.append(Test(name, [f"./{name}"]))
        if kernel == "plain" and not name.endswith(SAME_IN_32_BIT):
            tests.append(Test(f"{name}-32", [f"../net32/{name}"]))
    tests.append(Test("psock_tpacket", ["./psock_tpacket"]))
    tests.append(Test("psock_fanout", ["./psock_fanout"]))
    tests.append(Test("psock_snd", ["./psock_snd.sh"]))
    for name in listed("scripts"):
        tests.append(Test(Path(name).stem, ["bash", name]))
    return tests


def find_xl710_tests(kernel: str) -> list[Test]:
    """The tests of the XL710 model, in their short form."""

    def test(script: str, name: str, nic: str, *env: str) -> Test:
        path = XL710 / "tests" / f"{script}.sh"
        command = ["env", "XL710_SHORT=1", *env, "bash", str(path)]
        vm = ["--nic", nic, "--qemu"]  # main() knows which
        return Test(f"xl710-{name}", command, cwd=path.parent, vm=vm)

    names = {path.stem for path in (XL710 / "tests").glob("*.sh")} - {"lib"}
    # probe looks at the log from the boot on: first.
    two = ["probe", *sorted(names - {"probe", "generator"})]
    tests = [
        *(test(name, name, "xl710") for name in two),
        test("irq", "irq-msi", "xl710,msix=off", "XL710_IRQ=msi"),
        test("irq", "irq-intx", "xl710,msix=off,msi=off", "XL710_IRQ=intx"),
        test("generator", "generator", "xl710-gen"),
    ]
    for item in tests:
        item.alone = item.name in XL710_TIMED
        if kernel == "debug":
            item.only_named = "slow there"
        elif item.name == "xl710-afxdp":
            item.only_named = "xl710-xskxceiver looks at AF_XDP"
    # The generator's rate leaves a debug kernel no time for anything else.
    return [t for t in tests if (kernel, t.name) != ("debug", "xl710-generator")]


def find_host_tests() -> list[Test]:
    unit = ["python3", "-m", "unittest", "-q", "test_series"]
    tests = [Test("series-tool", unit, "host", SCRIPTS / "tests")]
    if (XL710 / "run-qtest.sh").exists():
        tests.append(Test("xl710-qtest", ["./run-qtest.sh"], "host", XL710))
    return tests


def step(title: str, name: str, *command: str, files: str = "") -> None:
    """One visible step, see scripts/step."""
    log = BUILD / "log" / name
    args = [str(SCRIPTS / "step"), title, str(log), *command]
    env = os.environ | ({"STEP_FILES": files} if files else {})
    if subprocess.run(args, check=False, env=env).returncode:
        sys.exit(f"test.py: {title} failed, see {log.relative_to(TOP)}")


def build(kernels: list[str]) -> None:
    """Make what the guest's tests need; what is up to date takes no time."""
    for kernel in sorted({"plain", *kernels}, reverse=True):
        new = not (BUILD / f"kernel-{kernel}/vmlinux").exists()
        step(
            f"building the {kernel} kernel",
            kernel,
            str(SCRIPTS / "kernel"),
            kernel,
            files="1400" if new else "",
        )
    step("building the selftests", "selftests", str(SCRIPTS / "progs"), "selftests")


def build_for_xl710() -> str:
    """Make what only its tests need; return the QEMU to run."""
    step("building xskxceiver", "xskxceiver", str(SCRIPTS / "progs"), "xskxceiver")
    script = str(SCRIPTS / "qemu.sh")
    step("building QEMU with the XL710", "qemu", script)
    made = subprocess.run([script, "--print"], check=True, stdout=subprocess.PIPE)
    return made.stdout.decode().strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tests", default=os.getenv("TESTS") or "*")
    parser.add_argument("--kernels", default=os.getenv("KERNELS") or "plain debug")
    parser.add_argument("--list", action="store_true", help="say what would run")
    args = parser.parse_args()
    kernels = args.kernels.split()
    patterns = args.tests.split()

    not_asked_for: list[str] = []

    def chosen(tests: list[Test]) -> list[Test]:
        some = [t for t in tests if any(fnmatch.fnmatch(t.name, p) for p in patterns)]
        for test in some:
            if test.only_named and test.name not in patterns:
                not_asked_for.append(f"{test.name}: {test.only_named}")
        return [t for t in some if not t.only_named or t.name in patterns]

    host = chosen(find_host_tests())
    # What tests a kernel has shows when it and the selftests are built.
    if not args.list and not all(any(t.name == p for t in host) for p in patterns):
        build(kernels)
    plan = [(k, test) for k in kernels for test in chosen(find_guest_tests(k))]
    xl710 = [(k, test) for k in kernels for test in chosen(find_xl710_tests(k))]
    if xl710 and not args.list:
        qemu = build_for_xl710()
        for _, test in xl710:
            test.vm.append(qemu)
    plan += xl710 + [("host", test) for test in host]
    if not plan:
        sys.exit(f"test.py: no test is called {args.tests}; --list names them")
    if args.list:
        print("\n".join(f"{where:6} {test.name}" for where, test in plan))
        return 0
    # What wants the same machine shares a boot; the slowest kernel goes first.
    boots: dict[tuple[str, bool, tuple[str, ...]], list[Test]] = {}
    for where, test in sorted(plan, key=lambda item: item[0] != "debug"):
        boots.setdefault((where, test.alone, tuple(test.vm)), []).append(test)
    for (where, _, vm), tests in boots.items():
        if where == "debug":
            name = "-".join(["kmemleak", *vm[1:2]])
            tests.append(Test(name, [], "leaks", BUILD, vm=list(vm)))

    def run_group(where: str, tests: list[Test]) -> Result:
        if where != "host":
            return run(where, tests)
        result = Result()
        for test in tests:
            result.add(run_host(test))
        return result

    total = Result()
    # Two at a time: virtual CPUs that get none wait for each other, and spin.
    for alone in (False, True):
        with ThreadPoolExecutor(1 if alone else 2) as pool:
            jobs = [
                pool.submit(run_group, where, tests)
                for (where, by_itself, _), tests in boots.items()
                if by_itself == alone
            ]
            for job in jobs:
                total.add(job.result())
    for line in not_asked_for:
        total.skip(line)
        print(f"       skipped: {line}; TESTS= names it to run it")
    if total.failed:
        print("Failed:", *total.failures, sep="\n")
    print(total)
    return 1 if total.failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
