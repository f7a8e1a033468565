# SPDX-License-Identifier: GPL-2.0
"""Finds the reports of KCSAN in a kernel log that involve V4.

A race involves V4 if one of the two accesses is in a V4 file or function; inlined
functions count as such. If the access is in a function that only copies or counts
memory, its caller counts. Accesses of the base to its own data do not count, even in a
function that is inlined in one of V4's.
"""

import re
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

V4 = re.compile(r"net/packet/tp4|tpacket4\.h|(?:\b|_)tp4[a-z]?_|_tp4\b")
STAMP = re.compile(r"^\[ *[\d.]+\](?:\[ *[TC]\d+\])? ?")
FRAME = re.compile(r"^ ([\w.]+)\+(0x[0-9a-f]+)/(0x[0-9a-f]+)(?: \[\w+\])?$")
ACCESS = re.compile(r"(?:read|write|assert|read-write).* (?:to|of) .* by ")
RULE = "=" * 40
HELPERS = re.compile(
    r"_*(?:mem(?:cpy|move|set|cmp)|copy_\w+|_copy_\w+|instrument_\w+|refcount_\w+|"
    r"atomic\w*_\w+|arch_\w+|kcsan_\w+|\w*xchg\w*|\w+_bit|csum_\w+)$"
)
# The base reads these without marks elsewhere: a NAPI's state, veth's counters.
BASE = re.compile(r"(?:napi_if_scheduled_mark_missed|veth_xdp_rcv) ")


@dataclass
class Race:
    title: str
    # The type of each access and its innermost frames
    accesses: list[tuple[str, list[str]]] = field(default_factory=list)
    places: list[str] = field(default_factory=list)  # function file:line, inner first

    def is_v4(self) -> bool:
        return any(map(V4.search, self.places or [self.title]))

    def __str__(self) -> str:
        return "\n".join([self.title, *(f"    {place}" for place in self.places)])


def split(log: str) -> tuple[str, list[Race]]:
    """The log without KCSAN's reports, and the reports."""
    races: list[Race] = []
    rest: list[str] = []
    inside = False
    for raw in log.splitlines():
        line = STAMP.sub("", raw)
        if line.startswith("BUG: KCSAN: "):
            title = line.removeprefix("BUG: KCSAN: ")
            races.append(Race(re.sub(r"\+0x[0-9a-f]+/0x[0-9a-f]+", "", title)))
            inside = True
        elif inside and line.startswith(RULE):
            inside = False
        elif not inside:
            rest.append(raw)
            continue
        elif ACCESS.match(line):
            races[-1].accesses.append((line, []))
        elif FRAME.match(line) and races[-1].accesses:
            races[-1].accesses[-1][1].append(line)
        rest.append("")  # the other lines keep their numbers
    return "\n".join(rest), races


def read_output(*command: str | Path) -> list[str]:
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    return run.stdout.splitlines()


class Symbols:
    """Source lines of a kernel's addresses."""

    def __init__(self, vmlinux: Path):
        self.vmlinux = vmlinux
        self.symbols: dict[str, list[tuple[int, int]]] = {}  # address and size
        table = [line.split() for line in read_output("nm", "-n", vmlinux)]
        table = [row for row in table if len(row) == 3]
        ends = [row[0] for row in table[1:]] + [table[-1][0]]
        for (at, _, name), after in zip(table, ends, strict=True):
            start = int(at, 16)
            self.symbols.setdefault(name, []).append((start, int(after, 16) - start))

    def address(self, frame: str) -> int | None:
        match = FRAME.match(frame)
        if not match or match[1] not in self.symbols:
            return None
        found = self.symbols[match[1]]
        size = int(match[3], 16)
        start = next((s for s, length in found if length == size), found[0][0])
        # A return address: the access is before it.
        return start + int(match[2], 16) - 1

    def places(self, frame: str) -> list[str]:
        """The functions that are inlined in a frame, inner first."""
        address = self.address(frame)
        if address is None:
            return [frame.strip()]
        answer = read_output("addr2line", "-fie", self.vmlinux, f"{address:#x}")
        places = []
        for function, line in zip(answer[::2], answer[1::2], strict=True):
            where = re.sub(r" \(discriminator.*", "", line)
            where = re.sub(r".*/build/(?:[\d.]+/)?linux/|^(\.\./)+|^\./", "", where)
            places.append(f"{function} {where}")
        return places


def locate(races: list[Race], vmlinux: Path) -> None:
    """Fill in the places of each race's accesses."""
    symbols = Symbols(vmlinux)
    for race in races:
        for what, frames in race.accesses:
            race.places.append(re.sub(r" (to|of) 0x[0-9a-f]+", "", what).rstrip(":"))
            for places in map(symbols.places, frames[:4]):
                own = [n for n, p in enumerate(places) if BASE.match(p)]
                race.places += places[: own[0] + 1] if own else places
                if own or not HELPERS.fullmatch(places[-1].split()[0]):
                    break


def find(log: str, vmlinux: Path, report: Path) -> tuple[str, list[str], int]:
    """The log without KCSAN's reports, the reports on V4, the number of others.

    All of them are added to the file `report`.
    """
    rest, races = split(log)
    if not races:
        return rest, [], 0
    locate(races, vmlinux)
    counts = Counter(map(str, races))
    ours = {str(race) for race in races if race.is_v4()}
    with report.open("a") as file:
        for text in sorted(counts, key=lambda text: text not in ours):
            origin = "V4" if text in ours else "other"
            file.write(f"{origin}, {counts[text]} times: {text}\n\n")
    lines = [" | ".join(part.strip() for part in t.splitlines()) for t in sorted(ours)]
    return rest, lines, sum(n for text, n in counts.items() if text not in ours)
