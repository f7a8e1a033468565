# SPDX-License-Identifier: GPL-2.0
"""Results of a test from its output and from the kernel log."""

import re
from dataclasses import dataclass, field

SKIP = 4  # kselftest's exit code for it

# Patterns that no kernel log may contain
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
# The report of an allocation that fails, with a trace
NO_MEMORY = re.compile(
    r"^.*: (?:vmalloc error: size|page allocation failure: )(?s:.*?)</TASK>$",
    re.MULTILINE,
)


@dataclass
class Result:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    lines: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)  # printed again at the end

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


def is_stale_int3(kernel_log: str) -> bool:
    """Did QEMU run an int3 where the kernel's memory has none any more?

    TCG can go on with code from when the kernel was patching it; the kernel
    knows nothing of that int3 by then, and dies.
    """
    _, _, oops = kernel_log.partition("Oops: int3")
    before = re.search("Code: (.*?) <", oops)  # what trapped comes before the <
    return bool(before) and not before[1].endswith("cc")


def read_log(name: str, text: str, result: Result) -> None:
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if SPLAT.search(line):
            rip = [text for text in lines[number : number + 40] if " RIP: " in text]
            at = f" ({rip[0].partition(' RIP: ')[2]})" if rip else ""
            result.fail(f"{name}:{number}: {line.strip()}{at}")
            return  # what follows is its consequence, or its trace
