#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What lab/measure/bench.py makes of the lines that come from the guest."""

import json
import subprocess
import sys
import tempfile
import unittest
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lab.measure import bench, datapath

MEASURE = Path(bench.__file__).parent

SAID = {
    "ns_per_packet": 300.0,
    "kernel_ns_per_packet": 250.0,
    "user_ns_per_packet": 50.0,
    "drops": 0,
    "packets": 1000,
}


def line(wait: str, **said: float) -> str:
    return f"@ i40e rxdrop 64 1 V4+ZC {wait} {json.dumps(SAID | said)}"


class Lines(unittest.TestCase):
    def test_a_run_is_read(self) -> None:
        result = bench.parse_line(line("spin"))
        assert result
        self.assertEqual(result.version, "V4+ZC")
        self.assertEqual(result.instructions, 300)
        self.assertEqual(result.program, 50)

    def test_idle_time_of_a_sleeper_does_not_count(self) -> None:
        result = bench.parse_line(line("sleep", busy_ns_per_packet=120))
        assert result
        self.assertEqual(result.instructions, 120)

    def test_a_run_that_failed_is_no_result(self) -> None:
        self.assertIsNone(bench.parse_line("@ i40e rxdrop 64 1 V4+ZC spin"))
        self.assertIsNone(bench.parse_line(line("spin", packets=0)))

    def test_the_cheapest_wait_is_shown(self) -> None:
        runs = [line("spin"), line("busy", ns_per_packet=200)]
        results = [r for r in map(bench.parse_line, runs) if r]
        self.assertEqual([r.wait for r in bench.best_of(results)], ["busy"])
        self.assertIn("200 (250 + 50) busy", bench.table(results))


class Picture(unittest.TestCase):
    def test_of_tcpdump_alone_there_is_none(self) -> None:
        said = json.dumps({"ns_per_packet": 1242, "drops": 0, "packets": 1000})
        result = bench.parse_line(f"@ i40e tcpdump 64 1 V4+ZC sleep {said}")
        assert result
        with tempfile.TemporaryDirectory() as directory:
            numbers, picture = Path(directory, "in.json"), Path(directory, "out.svg")
            numbers.write_text(json.dumps([asdict(result)]))
            picture.write_text("an older one")
            plot = ["/usr/bin/python3", str(MEASURE / "bench_plot.py")]
            run = subprocess.run(
                [*plot, str(numbers), str(picture)], capture_output=True, check=False
            )
            if b"no matplotlib" in run.stderr:
                self.skipTest("no matplotlib")
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertFalse(picture.exists())


class Drawing(unittest.TestCase):
    def test_it_is_what_the_script_prints(self) -> None:
        self.assertEqual((MEASURE / "datapath.svg").read_text(), datapath.drawing())


if __name__ == "__main__":
    unittest.main()
