#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests how lab/measure/bench.py and bench_um.py compare the results of their guests."""

import argparse
import contextlib
import io
import itertools
import json
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lab.measure import bench, bench_guest, bench_misses, bench_um, capture, icount

RUN = {
    "device": "i40e",
    "benchmark": "rxdrop",
    "size": 64,
    "queues": 1,
    "version": "V4+ZC",
    "wait": "spin",
    "ns_per_packet": 300.0,
    "kernel_ns_per_packet": 250.0,
    "user_ns_per_packet": 50.0,
    "drops": 0,
    "packets": 1000,
}


def result(**changes: object) -> bench.Result:
    return bench.parse(RUN | changes)


# What QEMU's cache plugin prints
PLUGIN = """\
core #, data accesses, data misses, dmiss rate, insn accesses, insn misses, imiss rate
0       1234567        8901             0.7210%  4567890        123             0.0027%

address, data misses, instruction
0xffffffff81000000 (memcpy), 99, movq %rax, %rbx
"""


class Misses(unittest.TestCase):
    def test_report(self) -> None:
        self.assertEqual(bench_misses.parse_misses(PLUGIN), 8901)

    def test_no_report(self) -> None:
        with self.assertRaises(SystemExit):
            bench_misses.parse_misses("")


class Lines(unittest.TestCase):
    def test_a_run_is_read(self) -> None:
        run = result()
        self.assertEqual(run.version, "V4+ZC")
        self.assertEqual(run.instructions, 300)
        self.assertEqual(run.program, 50)

    def test_idle_time_of_a_sleeper_does_not_count(self) -> None:
        run = result(wait="sleep", busy_ns_per_packet=120)
        self.assertEqual(run.instructions, 120)

    def test_the_cheapest_wait_is_shown(self) -> None:
        runs = [result(), result(wait="busy", ns_per_packet=200), result(size=1500)]
        _, *lines = bench.table(runs).splitlines()
        self.assertEqual(
            [line.split()[:2] for line in lines], [["rxdrop", "64"], ["rxdrop", "1500"]]
        )
        self.assertIn("200 (250 + 50) busy", lines[0])

    def test_a_version_without_a_run_is_a_dash(self) -> None:
        runs = [result(), result(version="V3", size=1500)]
        self.assertRegex(bench.table(runs), r"rxdrop +64 +1 +- +300")

    def test_tcpdump_has_no_shares(self) -> None:
        said = RUN.copy()
        del said["kernel_ns_per_packet"], said["user_ns_per_packet"]
        self.assertRegex(bench.table([bench.parse(said)]), r" 300 spin")


class Machine(unittest.TestCase):
    def measure(self, output: str, code: int = 0) -> list[bench.Result]:
        """The results of a machine with this output"""
        top = Path(self.enterContext(tempfile.TemporaryDirectory()))
        vm = top / "lab/run/vm"
        vm.parent.mkdir(parents=True)
        vm.write_text(f"#!/bin/sh\ncat <<'EOF'\n{output}\nEOF\nexit {code}\n")
        vm.chmod(0o755)
        self.enterContext(mock.patch.multiple(icount, TOP=top, BUILD=top))
        self.said = self.enterContext(contextlib.redirect_stderr(io.StringIO()))
        machine = bench.Machine("name", [], bench_guest.Job("veth", [], [], [], []))
        return bench.measure(machine, argparse.Namespace(kernel="plain", append=""))

    def test_results_are_read_and_the_rest_is_shown(self) -> None:
        [run] = self.measure(f"failed: this\n@ {json.dumps(RUN)}")
        self.assertEqual(run, result())
        self.assertIn("name: failed: this\n", self.said.getvalue())

    def test_a_run_without_packets_is_no_result(self) -> None:
        self.assertEqual(self.measure(f"@ {json.dumps(RUN | {'packets': 0})}"), [])
        self.assertIn("no packets", self.said.getvalue())

    def test_a_machine_that_fails_is_an_error(self) -> None:
        with self.assertRaises(SystemExit):
            self.measure(f"@ {json.dumps(RUN)}", code=1)


def samples(**runs: list[float]) -> list[bench_um.Sample]:
    """Runs of l2fwd with 64 bytes, of 0.01 calls per packet, by version"""
    return [
        bench_um.Sample("l2fwd", version.replace("_", "+"), 64, ns, 0.01)
        for version, times in runs.items()
        for ns in times
    ]


class Nanoseconds(unittest.TestCase):
    def test_the_best_run_counts_without_its_calls(self) -> None:
        runs = samples(V2=[500, 410, 900], V4=[260, 210])
        lines = bench_um.table(runs, call_ns=1000).splitlines()
        self.assertEqual(lines[2].split(), ["l2fwd", "V2", "400", "1.00"])
        self.assertEqual(lines[3].split(), ["V4", "200", "2.00"])

    def test_the_better_old_version_is_the_measure(self) -> None:
        runs = [
            bench_um.Sample("rxdrop", version, 64, ns, 0)
            for version, ns in (("V2", 300), ("V3", 200), ("V4", 100))
        ]
        rows = [line.split()[-1] for line in bench_um.table(runs, 0).splitlines()]
        self.assertEqual(rows[2:], ["0.67", "1.00", "2.00"])

    def test_each_version_is_measured_once(self) -> None:
        rows = list(bench_um.rows())
        self.assertEqual(len(rows), len({*rows}))
        self.assertEqual({v for _, v in rows}, {*bench_um.VERSIONS})

    def test_a_busy_machine_is_seen(self) -> None:
        quiet = samples(V2=[100, 101, 103], V4=[100, 110, 500])
        busy = samples(V2=[100, 300, 200], V4=[100, 150, 500])
        self.assertLess(bench_um.spread(quiet), bench_um.BUSY)
        self.assertGreater(bench_um.spread(busy), bench_um.BUSY)

    def count_rounds(self, *times: float) -> int:
        """How many of at most ten rounds there are, if runs take these times in turns"""
        ns = itertools.cycle(times)

        def run_cell(*cell: str) -> Iterator[bench_um.Sample]:
            yield bench_um.Sample(*cell, ns=next(ns), calls=0)

        said: list[dict] = []
        with (
            mock.patch.object(bench_um, "run_cell", run_cell),
            mock.patch.object(bench_um, "rows", lambda: [("l2fwd", "V4")]),
            mock.patch.object(capture, "no_tcpdump", lambda lib: ""),
            mock.patch.multiple(
                bench_guest, run=mock.DEFAULT, set_up_links=mock.DEFAULT
            ),
            mock.patch.object(icount, "report", said.append),
        ):
            bench_um.guest(rounds=10, sizes=[64])
        return sum("call_ns" in line for line in said)

    def test_a_busy_machine_gets_more_rounds(self) -> None:
        self.assertEqual(self.count_rounds(100, 101), bench_um.ENOUGH)
        self.assertEqual(self.count_rounds(100, 200, 300), 10)

    def test_rounds_go_on_until_the_best_runs_are_alike(self) -> None:
        self.assertEqual(self.count_rounds(100, 200, 300, 200, *[101] * 6), 7)


class Picture(unittest.TestCase):
    def test_it_is_well_formed(self) -> None:
        xml.etree.ElementTree.parse(Path(bench.__file__).with_name("datapath.svg"))


if __name__ == "__main__":
    unittest.main()
