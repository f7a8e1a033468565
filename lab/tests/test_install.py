#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests that make install installs all files, and that the manual page is complete."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
FILES = {
    "bin": "tp4 tpbench tpbench-all tpgen tpswitch",
    "include": "tpacket4.h tpacket4_device.h tpacket4_port.h tpswitch_lookup.h",
    "include/tpacket4/linux": "if_packet.h",
    "lib": "libtpacket4.so libtpacket4.so.1",
    "lib/systemd/system": "tpswitch.service",
    "share/bash-completion/completions": "tp4 tpgen tpswitch",
    "share/doc/tpacket4": "README.md",
    "share/doc/tpacket4/examples": "capture.c",
    "share/man/man1": "tpbench-all.1 tpbench.1 tpgen.1",
    "share/man/man7": "tpacket4.7",
    "share/man/man8": "tp4.8 tpswitch.8",
    "share/pkgconfig": "tpacket4.pc",
}
# The manual pages of programs, and where their options begin and end
PAGES = {
    "samples/tpacket4/tpbench.1": (".SS Benchmarks", ".SH EXIT"),
    "apps/tpgen/tpgen.1": (".SS Where", ".SS Numbered"),
    "apps/tpswitch/tpswitch.8": (".SH OPT", ".SH COMMANDS"),
    "apps/tp4/tp4.8": (".SH OPT", ".SH EXIT"),
    "apps/card/tpacket4-card.8": (".SH OPT", ".SH EXIT"),
}


def options(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w\[-])--?[a-zA-Z][a-z-]*", text))


class InstallTest(unittest.TestCase):
    def test_install(self) -> None:
        if not (TOP / "build/linux/Makefile").exists():
            self.skipTest("no build/linux: make tree")
        dest = Path(tempfile.mkdtemp(prefix="tpacket4-install."))
        self.addCleanup(shutil.rmtree, dest)
        env = os.environ | {"DESTDIR": str(dest), "PREFIX": "/opt/tp4"}
        said = subprocess.check_output(
            [TOP / "lab/release/install"], env=env, text=True
        )
        last = said.splitlines()[-1]
        self.assertIn("installing tpgen ... ", said)
        self.assertIn(f"Everything is in {dest}/opt/tp4: ", last)
        found = {str(f.relative_to(dest)) for f in dest.rglob("*") if f.is_file()}
        expected = {
            f"opt/tp4/{d}/{f}" for d, names in FILES.items() for f in names.split()
        }
        self.assertEqual(found, expected)
        for name, (first, behind) in PAGES.items():
            with self.subTest(name):
                program = dest / "opt/tp4/bin" / Path(name).stem
                if not program.exists():  # in a package only
                    program = (TOP / name).with_suffix("")
                self.same_options(program, TOP / name, first, behind)

    def test_relative_prefix(self) -> None:
        """It is refused before anything is built."""
        with tempfile.TemporaryDirectory(prefix="tpacket4-install.") as dest:
            env = os.environ | {"DESTDIR": dest, "PREFIX": "opt/tp4"}
            run = subprocess.run(
                [TOP / "lab/release/install"],
                check=False,
                env=env,
                capture_output=True,
                text=True,
            )
            self.assertEqual(run.returncode, 1)
            self.assertEqual(run.stdout, "")
            self.assertIn("PREFIX=opt/tp4 is not an absolute path", run.stderr)
            self.assertEqual(os.listdir(dest), [])

    def same_options(self, program: Path, path: Path, first: str, behind: str) -> None:
        """The manual page has the options of --help."""
        usage = subprocess.check_output([program, "--help"], text=True)
        page = path.read_text().replace("\\-", "-")
        page = page[page.index(first) : page.index(behind)]
        described = re.findall(r"(?m)^\.(?:BR|B|BI) -.*", page)
        self.assertEqual(options("\n".join(described)), options(usage))

    def test_pages(self) -> None:
        for page in *PAGES, "tools/lib/tpacket4/tpacket4.7":
            for tool in ["mandoc", "-T", "lint"], ["man", "--warnings", "-l"]:
                if shutil.which(tool[0]):
                    got = subprocess.run(
                        [*tool, TOP / page], check=False, capture_output=True
                    )
                    output = got.stdout if tool[0] == "mandoc" else got.stderr
                    self.assertEqual(output, b"", f"{tool[0]} {page}")


if __name__ == "__main__":
    unittest.main()
