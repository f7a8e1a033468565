#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests how lab/measure/bench.py reads, compares and draws the results of its guest."""

import sys
import unittest
import xml.etree.ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lab.measure import bench, bench_misses, bench_report

MEASURE = Path(bench.__file__).parent

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


def result(**changes: object) -> bench_report.Result:
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
        runs = [result(), result(wait="busy", ns_per_packet=200)]
        self.assertEqual([r.wait for r in bench_report.best_of(runs)], ["busy"])
        self.assertIn("200 (250 + 50) busy", bench_report.table(runs))


class Picture(unittest.TestCase):
    def test_each_result_has_a_bar_and_its_number(self) -> None:
        runs = [result(), result(version="V3", ns_per_packet=1234), result(size=1500)]
        image = xml.etree.ElementTree.fromstring(bench_report.drawing(runs))
        texts = [t.text for t in image.iter("{http://www.w3.org/2000/svg}text")]
        self.assertEqual(texts.count("V4+ZC"), 2)
        self.assertEqual(texts.count("300"), 2)
        self.assertIn("1234", texts)

    def test_the_longest_bar_is_the_highest_number(self) -> None:
        def width(version: str) -> float:
            runs = [
                result(),
                result(version="V3", kernel_ns_per_packet=1250, ns_per_packet=1300),
            ]
            image = bench_report.drawing(runs)
            name = image.index(f">{version}</text>")
            return float(image[name:].split('width="')[1].split('"')[0])

        self.assertAlmostEqual(width("V3") / width("V4+ZC"), 5, places=1)

    def test_there_is_none_of_tcpdump_alone(self) -> None:
        said = {k: v for k, v in RUN.items() if "_ns_" not in k}
        run = bench.parse(said | {"benchmark": "tcpdump"})
        self.assertEqual(bench_report.drawing([run]), "")

    def test_the_committed_ones_are_well_formed(self) -> None:
        for path in MEASURE.glob("*.svg"):
            xml.etree.ElementTree.parse(path)


if __name__ == "__main__":
    unittest.main()
