#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests that every executable of lab/ answers --help, and does nothing else then."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

LAB = Path(__file__).resolve().parents[1]
# Commands that change the machine, or take long; stubs report that they were called.
WORKERS = """
apt-get apt-cache dpkg-query dpkg-deb dpkg-source sudo git make gcc ccache ip ethtool mount
modprobe unshare chroot mmdebstrap pip timeout qemu-system-x86_64 qemu-system-aarch64
qemu-system-s390x
"""
STUB = '#!/bin/sh\necho "${0##*/} $*" >>"$CALLED"\nexit 99\n'


def executables() -> list[Path]:
    return [
        path.relative_to(LAB)
        for path in sorted(LAB.rglob("*"))
        if path.is_file() and os.access(path, os.X_OK)
    ]


def files(directory: Path) -> dict[Path, int]:
    return {path: path.lstat().st_mtime_ns for path in directory.rglob("*")}


class HelpTest(unittest.TestCase):
    def setUp(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="tpacket4-help."))
        self.addCleanup(shutil.rmtree, self.root)
        for name in "bin", "home", "cwd":
            (self.root / name).mkdir()
        for name in WORKERS.split():
            stub = self.root / "bin" / name
            stub.write_text(STUB)
            stub.chmod(0o755)
        skip = shutil.ignore_patterns("__pycache__")
        shutil.copytree(LAB, self.root / "top/lab", ignore=skip)

    def test_every_executable(self) -> None:
        env = {
            "PATH": f"{self.root}/bin:{os.environ['PATH']}",
            "HOME": str(self.root / "home"),
            "TMPDIR": str(self.root / "cwd"),
            "CALLED": str(self.root / "called"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self.assertGreater(len(executables()), 20)
        for name in executables():
            before = files(self.root)
            with self.subTest(str(name)):
                run = subprocess.run(
                    [self.root / "top/lab" / name, "--help"],
                    cwd=self.root / "cwd",
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    timeout=60,
                    check=False,
                )
                self.assertEqual(run.returncode, 0, run.stdout)
                self.assertRegex(run.stdout, r"(?mi)^usage: ")
                self.assertEqual(files(self.root), before)


if __name__ == "__main__":
    unittest.main()
