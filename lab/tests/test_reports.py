#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests how reports of data races and of coverage are read."""

import contextlib
import io
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lab.measure import coverage, races

LOG = """\
[    1.0] before
[    2.0] ==================================================================
[    2.1] BUG: KCSAN: data-race in {0} / reader
[    2.2]
[    2.3] write to 0xffff88800123 of 8 bytes by task 42 on cpu 0:
[    2.4]  {0}+0x4/{1:#x}
[    2.5]  outer+0x10/0x20
[    2.6]
[    2.7] read to 0xffff88800123 of 8 bytes by interrupt on cpu 1:
[    2.8]  reader+0x1/0x8000
[    2.9]
[    3.0] value changed: 0x0 -> 0x1
[    3.1] Reported by Kernel Concurrency Sanitizer on:
[    3.2] CPU: 1 UID: 0 PID: 42 Comm: abi
[    3.3] ==================================================================
[    4.0] WARNING: after
"""
# As a V4 function that is inlined, in a function of somebody else's file, and one
# of the base's in V4's
CODE = """\
#line 1 "net/packet/tp4_thing.h"
int shared;
static inline __attribute__((always_inline)) void set(int n) { shared = n; }
#line 1 "net/core/other.c"
static inline __attribute__((always_inline)) void
napi_if_scheduled_mark_missed(void) { shared = 1; }
void tp4_wake(void)
{ napi_if_scheduled_mark_missed(); __asm__("nop; nop; nop; nop; nop; nop; nop"); }
void writer(int n) { set(n); __asm__("nop; nop; nop; nop; nop; nop; nop; nop"); }
void plain(int *n) { *n = 1; __asm__("nop; nop; nop; nop; nop; nop; nop; nop"); }
int main(void) { return 0; }
"""


def scratch(test: unittest.TestCase) -> Path:
    directory = tempfile.TemporaryDirectory(prefix="tpacket4-reports.")
    return Path(test.enterContext(directory)).resolve()


class RacesTest(unittest.TestCase):
    def setUp(self) -> None:
        self.top = scratch(self)
        (self.top / "code.c").write_text(CODE)
        self.program = self.top / "code"
        subprocess.run(
            ["gcc", "-g", "-O2", "-o", self.program, self.top / "code.c"], check=True
        )

    def find(self, function: str) -> tuple[str, list[str], int]:
        symbols = races.Symbols(self.program)
        [(_, size)] = symbols.symbols.get(function, [(0, 0x20)])
        log = LOG.format(function, size)
        return races.find(log, self.program, self.top / "report")

    def test_a_report_is_taken_out_of_the_log_and_no_other_line(self) -> None:
        rest, _, _ = self.find("plain")
        lines = rest.splitlines()
        self.assertEqual(len(lines), len(LOG.splitlines()))
        self.assertEqual(lines[0], "[    1.0] before")
        self.assertEqual(lines[-1], "[    4.0] WARNING: after")
        self.assertNotIn("KCSAN", rest)

    def test_a_race_in_a_v4_function_is_v4s(self) -> None:
        for function in "tp4_tx_send", "veth_tp4_rx", "i40e_tp4_clean", "tp4q_take":
            _, ours, others = self.find(function)
            self.assertEqual((len(ours), others), (1, 0), function)

    def test_a_race_in_an_inlined_line_of_a_v4_file_is_v4s(self) -> None:
        _, ours, others = self.find("writer")
        self.assertEqual((len(ours), others), (1, 0))
        self.assertRegex(ours[0], r"set \S*net/packet/tp4_thing.h:2 ")

    def test_what_the_base_does_to_its_own_data_is_the_bases(self) -> None:
        _, ours, others = self.find("tp4_wake")
        self.assertEqual((ours, others), ([], 1))
        report = (self.top / "report").read_text()
        self.assertIn("napi_if_scheduled_mark_missed", report)

    def test_a_race_of_others_is_counted_and_named(self) -> None:
        for function in "plain", "tcp_v4_rcv":
            _, ours, others = self.find(function)
            self.assertEqual((ours, others), ([], 1), function)
            self.assertIn(f"{function} / reader", (self.top / "report").read_text())


TP4_C = """\
int tp4_thing(int n)
{
	if (n)
		return 1;
	return 0;
}
"""
VETH_C = """\
int old(void)
{
	return 1;
}
"""
VETH_ADDED = """\
int veth_tp4(int n)
{
	return n;
}
"""


class GcovTest(unittest.TestCase):
    """A base with a veth.c that a series extends, compiled with gcov and run."""

    def run_in(self, where: Path, *command: str) -> None:
        subprocess.run(command, cwd=where, check=True, capture_output=True)

    def setUp(self) -> None:
        top = scratch(self)
        self.linux, self.data = top / "linux", top / "data"
        self.objects = self.linux / "build-gcov"
        for directory in "net/packet", "drivers/net":
            (self.linux / directory).mkdir(parents=True)
            (self.objects / directory).mkdir(parents=True)
        git = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost"]
        veth = self.linux / "drivers/net/veth.c"
        veth.write_text(VETH_C)
        self.run_in(self.linux, *git, "init", "-q", "-b", "base")
        self.run_in(self.linux, *git, "add", "drivers")
        self.run_in(self.linux, *git, "commit", "-q", "-m", "base")
        self.run_in(self.linux, *git, "checkout", "-q", "-b", "series")
        veth.write_text(VETH_C + VETH_ADDED)
        (self.linux / "net/packet/tp4_thing.c").write_text(TP4_C)
        self.run_in(self.linux, *git, "add", "drivers", "net")
        self.run_in(self.linux, *git, "commit", "-q", "-m", "series")
        gcc = ["gcc", "-fprofile-arcs", "-ftest-coverage"]
        for name in "net/packet/tp4_thing", "drivers/net/veth":
            source = ["-c", "-o", f"{name}.o", f"../{name}.c"]
            self.run_in(self.objects, *gcc, *source)
        paths = mock.patch.multiple(coverage, LINUX=self.linux, DATA=self.data)
        self.enterContext(paths)

    def boot(self, name: str, calls: str) -> None:
        main = self.objects / "main.c"
        main.write_text(f"int main(void) {{ {calls} return 0; }}\n")
        program = ["main.c", "net/packet/tp4_thing.o", "drivers/net/veth.o"]
        self.run_in(self.objects, "gcc", "-w", "-o", "main", *program, "-lgcov")
        self.run_in(self.objects, "./main")
        (self.data / name).mkdir(parents=True)
        for gcda in self.objects.rglob("*.gcda"):
            gcda.rename(self.data / name / gcda.name)

    def test_boots_are_added_up_and_of_veth_what_the_series_added(self) -> None:
        tp4, veth = "net/packet/tp4_thing.c", "drivers/net/veth.c"
        self.boot("one", "tp4_thing(0);")
        counts = coverage.read_counts(self.objects)
        self.assertEqual(counts[tp4, 3], 1)
        self.assertEqual(counts[tp4, 4], 0)
        self.boot("two", "tp4_thing(1); veth_tp4(1);")
        counts = coverage.read_counts(self.objects)
        self.assertEqual(counts[tp4, 3], 2)
        self.assertEqual(counts[tp4, 4], 1)
        self.assertEqual({at for at in counts if at[0] == veth}, {(veth, 5), (veth, 7)})


class CoverageTest(unittest.TestCase):
    """Three lines of a function; the second one is not reached."""

    def setUp(self) -> None:
        top = scratch(self)
        self.list = top / "coverage.list"
        paths = mock.patch.multiple(coverage, LINUX=top, DATA=top, LIST=self.list)
        self.enterContext(paths)
        self.name = "net/packet/tp4_thing.c"
        file = top / self.name
        file.parent.mkdir(parents=True)
        file.write_text("""\
struct thing *
f(int x)
{
	if (x)
		return  -ENOMEM;
	return 0;
}
EXPORT_SYMBOL_GPL(f);

static inline int g(void)
{
	return h(1,
		 2);
}
""")
        self.counts = {(self.name, 4): 5, (self.name, 5): 0, (self.name, 6): 5}

    def compare(self, *listed: str) -> list[str]:
        self.list.write_text("# A comment\n\n" + "".join(f"{x}\n" for x in listed))
        with contextlib.redirect_stdout(io.StringIO()):
            return coverage.compare(self.counts)

    def test_a_line_that_is_not_reached_must_be_listed(self) -> None:
        [wrong] = self.compare()
        self.assertIn("not reached, and not in", wrong)
        self.assertIn(f"{self.name} f: return -ENOMEM;", wrong)

    def test_a_listed_line_with_a_reason_is_fine_wherever_it_stands(self) -> None:
        line = f"{self.name} f: return -ENOMEM;"
        self.assertEqual(self.compare(line, "\tNothing makes it fail."), [])

    def test_a_listed_line_needs_a_reason(self) -> None:
        with self.assertRaises(SystemExit):
            self.compare(f"{self.name} f: return -ENOMEM;")

    def test_a_listed_line_that_is_reached_is_wrong(self) -> None:
        [wrong] = self.compare(
            f"{self.name} f: return -ENOMEM;", f"{self.name} f: return 0;", "\tWhy"
        )
        self.assertIn("reached or gone", wrong)

    def test_a_line_that_chance_reaches_may_be_reached(self) -> None:
        lines = f"{self.name} f: return -ENOMEM;", f"{self.name} f: return 0;"
        self.assertEqual(self.compare(*lines, "\tBy chance: a race."), [])
        [wrong] = self.compare(*lines, f"{self.name} f: gone();", "\tBy chance")
        self.assertIn("reached or gone", wrong)

    def test_equal_lines_are_counted(self) -> None:
        line = f"{self.name} f: return -ENOMEM;"
        [wrong] = self.compare(line, line, "\tOnly one of them is there.")
        self.assertIn("reached or gone", wrong)

    def test_a_line_is_of_the_function_that_it_stands_in(self) -> None:
        self.counts[self.name, 13] = 0
        lines = f"{self.name} f: return -ENOMEM;", f"{self.name} g: 2);"
        self.assertEqual(self.compare(*lines, "\tWhy"), [])

    def test_less_than_95_percent_is_wrong(self) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            wrong = coverage.print_table(self.counts)
        self.assertIn("core: less than 95 % of its lines are reached", wrong)


if __name__ == "__main__":
    unittest.main()
