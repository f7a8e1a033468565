#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Lists the lines of V4 that the tests reach and do not reach.

Runs selftests, KUnit and the i40e tests on the gcov kernel, except with --read-only,
and prints the number of lines reached for each file. Fails if less than 95 % of the
core, of i40e or of veth's part are reached, if a line that is not in
lab/measure/coverage.list is not reached, or if a line in it is reached. In files that
belong to the base, only the lines that the series adds count.

The list has the file, function and text of a line, such as `net/packet/tp4_x.c tp4_x_do:
return -ENOMEM;`, and after one or more of them, indented, the reason why no test reaches
them. For lines that are only reached in some runs, because of a race, the reason starts
with "By chance"; they may be reached. Lines that are missing in the list are written to
build/coverage/unlisted.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lab.build.place import BUILD, TOP
from lab.run import proc

LINUX = BUILD / "linux"
DATA = BUILD / "coverage"
LIST = TOP / "lab/measure/coverage.list"
TESTS = (
    "tpacket4* tp4* psock* xl710-tp4 xl710-tp4-bounce xl710-tp4-slow xl710-traffic"
    " xl710-xdp xl710-pairs xl710-pairs-shared xl710-pairs-msi xl710-pairs-intx"
)
LEAST = 95  # percent

CORE = re.compile(r"net/packet/tp4\w*(?<!_test)\.[ch]|include/linux/tpacket4\w*\.h")
I40E = re.compile(r"drivers/net/ethernet/intel/i40e/i40e_tp4\w*\.[ch]")
VETH = re.compile(r"drivers/net/veth(_tp4)?\.c")
PARTS = {"core": CORE, "i40e": I40E, "veth": VETH}

Line = tuple[str, int]  # file, number


def read_gcov(objects: Path, data: Path) -> list[dict]:
    """What gcov reports on each source file for the .gcda files in a directory."""
    with tempfile.TemporaryDirectory(prefix="tpacket4-gcov.") as scratch:
        names = []
        for gcda in data.glob("*.gcda"):
            [notes] = objects.rglob(f"{gcda.stem}.gcno")
            shutil.copy(gcda, scratch)
            shutil.copy(notes, scratch)
            names.append(gcda.name)
        gcov = ["gcov", "--json-format", "--stdout", *names]
        run = subprocess.run(gcov, cwd=scratch, check=True, capture_output=True)
    reports = map(json.loads, run.stdout.splitlines())
    return [file for report in reports for file in report["files"]]


def added_lines(path: str) -> set[int]:
    """The lines of a file that the series added to the base's."""
    diff = subprocess.run(
        ["git", "-C", str(LINUX), "diff", "-U0", "base", "HEAD", "--", path],
        check=True,
        capture_output=True,
        text=True,
    )
    lines: set[int] = set()
    for match in re.finditer(r"^@@ \S+ \+(\d+)(?:,(\d+))?", diff.stdout, re.MULTILINE):
        first = int(match[1])
        lines |= set(range(first, first + int(match[2] or 1)))
    return lines


def read_counts(objects: Path) -> dict[Line, int]:
    """How often each line was reached in all boots."""
    counts: Counter[Line] = Counter()
    top = LINUX.resolve()
    for boot in filter(Path.is_dir, DATA.iterdir()):
        for file in read_gcov(objects, boot):
            # Compiled in the top directory of the objects
            name = os.path.relpath(objects / file["file"], top)
            if any(part.fullmatch(name) for part in PARTS.values()):
                for line in file["lines"]:
                    counts[name, line["line_number"]] += line["count"]
    added = {name: added_lines(name) for name, _ in counts if VETH.fullmatch(name)}
    for name, number in list(counts):
        if name in added and number not in added[name]:
            del counts[name, number]
    return dict(counts)


def find_functions(text: list[str]) -> list[str]:
    """The function that each line is in. gcov would name one it is inlined in."""
    names, name = [], ""
    for line in text:
        match = re.match(r"(?:\w.*?[\s*])?(\w+)\(", line)
        name = match[1] if match else name
        names.append(name)
    return names


def read_list() -> tuple[Counter[str], set[str]]:
    """The lines of the list, and those of them that are reached by chance."""
    listed: Counter[str] = Counter()
    by_chance: set[str] = set()
    waiting: list[str] = []
    for number, line in enumerate(LIST.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line[0].isspace():
            if line.lstrip().startswith("By chance"):
                by_chance |= set(waiting)
            waiting = []
            continue
        if not re.fullmatch(r"\S+ \w*: .+", line):
            sys.exit(f"{LIST.name}:{number}: not `FILE FUNCTION: TEXT`")
        waiting.append(line)
        listed[line] += 1
    if waiting:
        sys.exit(f"{LIST.name}: no reason for {waiting[-1]}")
    return listed, by_chance


def print_table(counts: dict[Line, int]) -> list[str]:
    """Print the lines reached per file and part; return the failures."""
    wrong = []
    for part, pattern in PARTS.items():
        lines = {at: n for at, n in counts.items() if pattern.fullmatch(at[0])}
        if not lines:
            wrong.append(f"{part}: nothing was counted")
            continue
        for name in [*sorted({name for name, _ in lines}), ""]:
            some = [n > 0 for at, n in lines.items() if name in ("", at[0])]
            percent = 100 * sum(some) / len(some)
            what = name or f"{part}, all"
            print(f"{what:52} {sum(some):5} of {len(some):5} {percent:6.1f} %")
        if percent < LEAST:
            wrong.append(f"{part}: less than {LEAST} % of its lines are reached")
    return wrong


def compare(counts: dict[Line, int]) -> list[str]:
    """Print the lines not reached; return the differences from the list."""
    listed, by_chance = read_list()
    texts = {
        name: (LINUX / name).read_text().splitlines() for name in {n for n, _ in counts}
    }
    functions = {name: find_functions(text) for name, text in texts.items()}
    counted: set[str] = set()
    print("\nNot reached:")
    for (name, number), count in sorted(counts.items()):
        code = " ".join(texts[name][number - 1].split())
        place = f"{functions[name][number - 1]}: {code}"
        line = f"{name} {place}"
        counted.add(line)
        if count:
            continue
        mark = "listed  " if listed[line] > 0 else "UNLISTED"
        print(f"{mark} {name}:{number} {place}")
        listed[line] -= 1
    unlisted = list((-listed).elements())
    (DATA / "unlisted").write_text("".join(f"{line}\n" for line in unlisted))
    by_chance &= counted
    stale = [line for line in (+listed).elements() if line not in by_chance]
    return [
        *(f"not reached, and not in {LIST.name}: {line}" for line in unlisted),
        *(f"in {LIST.name}, and reached or gone: {line}" for line in stale),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--read-only", action="store_true", help="use the counters of the last run"
    )
    args = parser.parse_args()
    code = 0
    if not args.read_only:
        shutil.rmtree(DATA, ignore_errors=True)
        DATA.mkdir(parents=True)
        proc.stop_on_signals()
        test = [str(TOP / "lab/run/test.py"), "--kernels=gcov", "--long"]
        code = proc.finish(proc.start([*test, f"--tests={TESTS}"], pipe=False))
    counts = read_counts((BUILD / "kernel-gcov").resolve())
    wrong = print_table(counts) + compare(counts)
    if wrong:
        print("\nFailed:", *wrong, sep="\n")
    return 1 if wrong or code else 0


if __name__ == "__main__":
    proc.main(main)
