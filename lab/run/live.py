#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests the module of live/ on Debian's own kernels, as their packages have them.

For each RELEASE (default: the newest one of each suite), lab/build/live builds the module,
live/tests/guard.py checks that it does not build for a kernel that differs, and lab/run/vm
boots the kernel: once for copy mode, and for each driver with AF_XDP's zero-copy mode that
QEMU has a device for, once for its tests and once for tpacket4-card. In copy mode on kernels
that are not from backports, the module is the one that DKMS has built of the package
(lab/release/test-dkms). The output of each boot and its kernel log are in
build/test/live-RELEASE/. The last line is `N passed, N failed, N skipped`.

With --short, that is the newest kernel of the machine's suite, the test of the build, copy mode and
i40e. With --build, the module is only built, by default for all kernels that lab/build/stock --list
lists. Their headers stay in the cache, 80 MB each.
"""

import argparse
import platform
import re
import shutil
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lab.build.place import BUILD, TOP
from lab.run import proc
from lab.run.result import SKIP, Result, read_log, read_tap

GUEST = TOP / "live/tests/guest.sh"
GUARD = TOP / "live/tests/guard.py"
# Kind of test, device of lab/run/vm, first Linux whose driver has the mode
BOOTS = [
    ("copy", "", 6),
    ("i40e", "xl710", 6),
    ("card-i40e", "xl710", 6),
    ("igb", "igb", 7),
    ("card-igb", "igb", 7),
    ("virtio_net", "virtio,iommu_platform=on,disable-legacy=on", 7),
]
TIMEOUT = 1800
# A work of the module on a workqueue that this kernel is going to remove
OUTDATED = re.compile(r"work func .*\[tpacket4\].* deprecated.*")


class Stop(Exception):
    """A command of lab/build has failed, or is skipped."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text.strip().rpartition("\n")[2])
        self.code = code


def build(*command: str) -> list[str]:
    process = proc.start([str(TOP / "lab/build" / command[0]), *command[1:]])
    assert process.stdout
    text = process.stdout.read().decode()
    code = proc.finish(process)
    if code:
        raise Stop(code, text)
    return text.strip().splitlines()


def every() -> list[str]:
    return [line.split()[0] for line in build("stock", "--list")]


def codename() -> str | None:
    return platform.freedesktop_os_release().get("VERSION_CODENAME")


def newest() -> dict[str, str]:
    """The newest release of each suite, as --list has them in order."""
    found: dict[str, str] = {}
    for line in build("stock", "--list"):
        release, suite, _ = line.split()
        if not any(word in release for word in ("-cloud-", "-rt-")):
            found[suite] = release
    return found


def choose(short: bool) -> list[str]:
    """The newest release of each suite, or of the machine's"""
    found, suite = newest(), codename()
    if not short:
        return list(found.values())
    if suite not in found:
        raise Stop(SKIP, f"no kernel of {suite}, the machine's suite")
    return [found[suite]]


def is_of_suite(release: str, result: Result) -> bool:
    """Whether it is of this machine's suite."""
    [suite] = build("stock", "suite", release)[-1:]
    if suite == codename():
        return True
    result.skip(f"{release} is of {suite}; this is done for the machine's suite")
    return False


def guard(release: str) -> Result:
    """Only with this machine's compiler, as the checks do not depend on it."""
    result = Result()
    if not is_of_suite(release, result):
        return result
    headers = build("stock", "headers", release)[-1]
    where = str(BUILD / "live" / release)
    process = proc.start([sys.executable, "-B", str(GUARD), where, headers, release])
    assert process.stdout
    text = process.stdout.read().decode(errors="replace")
    code = proc.finish(process)
    read_tap(text, result)
    if code and not result.failed:
        result.fail(f"exit code {code}: {text[-500:]}")
    return result


def boot(release: str, kind: str, nic: str, others: list[str]) -> Result:
    where = BUILD / f"test/live-{release}"
    where.mkdir(parents=True, exist_ok=True)
    log, out = where / f"{kind}.log", where / f"{kind}.out"
    command = [
        str(TOP / "lab/run/vm"),
        "--initrd",
        "-k",
        build("stock", "kernel", release)[-1],
    ]
    # The log has what a suspended console would lose.
    command += ["-l", str(log), "-t", str(TIMEOUT), "-a", "no_console_suspend"]
    if nic:
        command += ["--nic", nic]
    if nic == "xl710":
        command += ["--qemu", build("qemu", "--print")[-1]]
    module = str(BUILD / "live/{}/tpacket4.ko")
    mine = BUILD / f"dkms/{release}/tpacket4.ko"
    if kind != "copy" or not mine.exists():
        mine = Path(module.format(release))
    command += ["--", str(GUEST), kind, str(mine)]
    command += [str(BUILD / "selftests/net/tpacket4"), str(BUILD / "tpbench/tpbench")]
    command += [module.format(other) for other in others[:1]]
    process = proc.start(command)
    assert process.stdout
    text = process.stdout.read().decode(errors="replace")
    code = proc.finish(process)
    out.write_text(text)
    result = Result()
    read_tap(text, result)
    if code == SKIP:
        result.skip(text.strip().rpartition("\n")[2])
    elif code and not result.failed:
        result.fail(f"exit code {code}: {' | '.join(text.splitlines()[-3:])}")
    elif not result.passed:
        result.fail("no test has run")
    text = log.read_text(errors="replace")
    read_log(str(log.relative_to(TOP)), text, result)
    if outdated := OUTDATED.search(text):
        result.fail(f"{log.relative_to(TOP)}: {outdated[0]}")
    return result


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--kinds", default="", help="only these, such as 'guard dkms copy'"
    )
    parser.add_argument(
        "--short", action="store_true", help="in a few minutes, one kernel"
    )
    parser.add_argument("--build", action="store_true", help="only build the module")
    parser.add_argument("releases", nargs="*", metavar="RELEASE")
    args = parser.parse_args()
    if args.short:
        args.kinds = args.kinds or "guard copy i40e"
    proc.stop_on_signals()
    total, built = Result(), []

    def say(what: str, result: Result, start: float) -> None:
        total.add(result)
        word = "FAIL" if result.failed else "ok"
        print(f"{what:36} {word:5} {result} ({int(time.monotonic() - start)} s)")
        for line in result.lines:
            print(f"       {line}", flush=True)

    def attempt(what: str, function, *arguments) -> None:
        start = time.monotonic()
        try:
            result = function(*arguments)
        except Stop as stop:
            result = Result()
            (result.skip if stop.code == SKIP else result.fail)(str(stop))
        say(what, result, start)

    def build_module(release: str) -> Result:
        there = (BUILD / "live" / release).exists()
        build("live", release)
        if not args.build:
            built.append(release)
        elif not there:
            shutil.rmtree(BUILD / "live" / release)
        return Result(passed=1)

    def build_dkms(release: str) -> Result:
        build("../release/deb", "live", "card")
        build("../release/test-dkms", release)
        return Result(passed=1)

    def build_programs() -> Result:
        build("series.py", "tree", "--keep")
        for name in "selftests", "tpbench":
            build("progs", name)
        return Result(passed=1)

    if not args.build:
        attempt("programs", build_programs)
    try:
        releases = args.releases or (every() if args.build else choose(args.short))
    except Stop as stop:
        if stop.code != SKIP:
            sys.exit(f"live.py: {stop}")
        total.skip(str(stop))
        releases = []
    for release in releases:
        attempt(f"{release} build", build_module, release)
    for release in built:
        if not args.kinds or "dkms" in args.kinds.split():
            attempt(f"{release} dkms", build_dkms, release)
        others = [other for other in built if other != release]
        if not args.kinds or "guard" in args.kinds.split():
            attempt(f"{release} guard", guard, release)
        for kind, nic, since in BOOTS:
            if args.kinds and kind not in args.kinds.split():
                continue
            what = f"{release} {kind}"
            if int(release.split(".")[0]) < since:
                result = Result()
                result.skip(f"{kind} has no zero-copy mode in Linux {release}")
                say(what, result, time.monotonic())
            else:
                attempt(what, boot, release, kind, nic, others)
    print(total)
    return 1 if total.failed else 0


if __name__ == "__main__":
    proc.main(main)
