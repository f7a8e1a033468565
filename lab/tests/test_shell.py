#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests that the examples which make shell prints work, and those of README.md.

Needs the plain kernel and the programs, as make test builds them. Another test is of the
files in the guest, on User Mode Linux.
"""

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import tempfile
import termios
import time
import unittest
from pathlib import Path

from test_readme import lines_in_shell

TOP = Path(__file__).resolve().parents[2]
BUILD = TOP / "build"
PATIENCE = 600  # seconds, for a busy machine without KVM
SIZE = (33, 101)
PROMPT = "tpacket4:.*# $"


class ShellTest(unittest.TestCase):
    def setUp(self) -> None:
        if not (BUILD / "kernel-plain/vmlinux").exists():
            self.skipTest("no build/kernel-plain: make kernel")
        self.text = ""
        log = self.enterContext(tempfile.NamedTemporaryFile(prefix="tpacket4-shell."))
        self.tty, slave = pty.openpty()
        self.addCleanup(os.close, self.tty)
        termios.tcsetwinsize(slave, SIZE)
        command = [str(TOP / "lab/run/vm"), "--log", log.name, "--shell"]
        self.vm = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)
        self.addCleanup(self.end)

    def end(self) -> None:
        if self.vm.poll() is None:
            os.killpg(self.vm.pid, signal.SIGTERM)
            self.vm.wait()

    def until(self, pattern: str) -> str:
        """The output of the terminal up to the pattern."""
        end = time.monotonic() + PATIENCE
        while not re.search(pattern, self.text, re.MULTILINE):
            self.assertLess(time.monotonic(), end, f"no {pattern!r} in {self.text}")
            if select.select([self.tty], [], [], 1)[0]:
                try:
                    got = os.read(self.tty, 4096)
                except OSError:  # the other end is gone
                    got = b""
                self.assertTrue(got, f"the shell ended: {self.text}")
                self.text += got.decode(errors="replace").replace("\r", "")
        text, self.text = self.text, ""
        return text

    def succeed(self, command: str) -> str:
        """The output of the command, which must succeed."""
        end = "" if command.endswith("&") else ";"
        os.write(self.tty, f"{command}{end} echo code=$?\n".encode())
        said = self.until(PROMPT)
        self.assertIn("code=0\n", said)
        return said

    def test_its_examples(self) -> None:
        greeting = self.until(PROMPT)
        commands = re.findall(r"^    (\S.*)$", greeting, re.MULTILINE)
        self.assertEqual(len(commands), 5, greeting)
        bench, generator, capture, _, selftests = map(self.succeed, commands)
        self.assertRegex(bench, r'"packets": [1-9]')
        self.assertRegex(generator, r"sent [1-9]")
        self.assertRegex(generator, r"stream 0: [1-9]\d* received, 0 lost")
        self.assertRegex(capture, r"(?s)listening on zc:veth0.*\n5 packets captured")
        self.assertRegex(selftests, r"\nok \d")
        self.assertNotRegex(selftests, r"(?m)^not ok ")
        self.assertIn("{} {}\n".format(*SIZE), self.succeed("stty size"))
        if shutil.which("man"):
            said = self.succeed("man -w tpacket4 tpbench tpgen")
            self.assertRegex(said, r"(?s)tpacket4\.7.*tpbench\.1.*tpgen\.1")
        captures = [
            said
            for command in lines_in_shell()
            if "packets captured" in (said := self.succeed(command))
        ]
        self.assertEqual(len(captures), 1, captures)
        self.assertRegex(
            captures[0], r"(?s)listening on zc:veth0.*\n5 packets captured"
        )
        os.write(self.tty, b"exit\n")
        self.assertEqual(self.vm.wait(PATIENCE), 0)


class FilesTest(unittest.TestCase):
    def test_a_directory_around_the_clone(self) -> None:
        """The guest sees the files there, also below /tmp."""
        kernel = BUILD / "kernel-um"
        if not (kernel / "linux").exists():
            self.skipTest("no build/kernel-um: lab/build/kernel um")
        around = self.enterContext(tempfile.TemporaryDirectory(dir="/tmp"))
        shutil.copytree(TOP / "lab", f"{around}/clone/lab")
        Path(around, "file").touch()
        vm = [f"{around}/clone/lab/run/vm", "-k", kernel]
        list_files = [*vm, "--", "ls", "-d", "file", "clone/lab/run/vm"]
        said = subprocess.check_output(
            list_files, cwd=around, stdin=subprocess.DEVNULL, text=True
        )
        self.assertEqual(said.split(), ["clone/lab/run/vm", "file"])


if __name__ == "__main__":
    unittest.main()
