#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The kernel's paths hold what is mailed, and nothing else."""

import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lab.build import series
from lab.build.place import TOP

# Every other directory is a part of a kernel tree.
OURS = ("apps/", "lab/", "ports/", "series/", ".ci/")


class LayoutTest(unittest.TestCase):
    def test_kernel_paths_hold_the_files_of_the_series(self) -> None:
        run = subprocess.run(
            ["git", "-C", str(TOP), "ls-files"],
            check=True,
            capture_output=True,
            text=True,
        )
        names = run.stdout.splitlines()
        found = {n for n in names if "/" in n and not n.startswith(OURS)}
        mailed = set()
        for patch in series.read_series():
            mailed |= patch.new.keys()
            for base, edits in patch.edits.items():
                mailed |= {
                    str(series.edit_path(path, patch.slug, base)) for path in edits
                }
        self.assertEqual(found, mailed)


if __name__ == "__main__":
    unittest.main()
