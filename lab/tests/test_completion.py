#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of the completions for bash, in a bash on a terminal."""

import os
import pty
import re
import select
import signal
import tempfile
import time
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PATIENCE = 120  # seconds, for a busy machine
FILES = (
    "apps/tpswitch/tpswitch.bash-completion",
    "apps/tpgen/tpgen.bash",
    "apps/tp4/tp4.bash",
)
# A switch with two ports, and two devices. Ctrl-T prints the line, between brackets.
SET_UP = r"""
PS1='ready: '
ls() { printf '%s\n' eth0 lo; }
bind 'set enable-bracketed-paste off'
bind 'set bell-style none'
bind -x '"\C-t": printf "<%s>\n" "$READLINE_LINE"'
tpswitch() { printf '%s\n' '1 lan0 dev' '2 ring2 ring'; }
"""


class CompletionTest(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        rc = Path(directory.name) / "rc"
        sources = "".join(f". {TOP / name}\n" for name in FILES)
        rc.write_text(SET_UP + sources)
        self.text = ""
        env = {"PATH": os.environ["PATH"], "TERM": "dumb", "HOME": directory.name}
        pid, self.tty = pty.fork()
        if not pid:
            os.chdir(directory.name)
            os.execvpe("bash", ["bash", "--noprofile", "--rcfile", rc, "-i"], env)
        self.addCleanup(os.waitpid, pid, 0)
        self.addCleanup(os.kill, pid, signal.SIGKILL)
        self.addCleanup(os.close, self.tty)
        self.until("ready: ")

    def until(self, pattern: str) -> str:
        """The first group of the pattern, when the terminal has shown it."""
        end = time.monotonic() + PATIENCE
        while not (match := re.search(pattern, self.text)):
            self.assertLess(time.monotonic(), end, f"no {pattern!r} in {self.text}")
            if select.select([self.tty], [], [], 1)[0]:
                self.text += os.read(self.tty, 4096).decode(errors="replace")
        self.text = self.text[match.end() :]
        return match[match.lastindex or 0]

    def completed(self, line: str) -> str:
        """The line after the tab key, whose display may wrap."""
        os.write(self.tty, f"{line}\t\x14\x15".encode())
        return self.until(r"<([^<>]*)>\r?\n")

    def check(self, *lines: tuple[str, str]) -> None:
        for line, rest in lines:
            with self.subTest(line=line):
                self.assertEqual(self.completed(line), line + rest)

    def test_tpswitch(self) -> None:
        self.check(
            ("tpswitch --look", "up "),
            ("tpswitch --lookup ha", "sh "),
            ("tpswitch -S /run/sw ct", "l "),
            ("tpswitch zc:l", "o "),
            ("tpswitch ctl d", "el "),
            ("tpswitch ctl -S /run/sw d", "el "),
            ("tpswitch ctl del la", "n0 "),
            ("tpswitch ctl count r", "ing2 "),
            ("tpswitch ctl tru", "nk "),
            ("tpswitch ctl trunk r", "ing2 "),
            ("tpswitch ctl vlan r", "ing2 "),
            ("tpswitch ctl limit lan0 pp", "s="),
            ("tpswitch ctl limit lan0 pps=1 bp", "s="),
            ("tpswitch ctl mirror lan0 o", "ff "),
            ("tpswitch ctl add l", "o "),
            ("tpswitch ctl add zc:l", "o "),
            ("tpswitch ctl add zc:lo me", "ta=o"),
            ("tpswitch ctl add zc:lo meta=of", "f "),
            ("tpswitch ctl list x", ""),
        )

    def test_tpgen(self) -> None:
        self.check(
            ("tpgen repl", "ay "),
            ("tpgen rx --stamps h", "ardware "),
            ("tpgen tx --launch e", "tf "),
            ("tpgen tx --random src-", "mac "),
        )

    def test_tp4(self) -> None:
        self.check(
            ("tp4 ste", "er "),
            ("tp4 list --j", "son "),
            ("tp4 steer lo tc", "p "),
            ("tp4 steer lo tcp dpo", "rt "),
            ("tp4 steer lo ip vl", "an "),
            ("tp4 ho", "ld "),
            ("tp4 hold l", "o "),
        )


if __name__ == "__main__":
    unittest.main()
