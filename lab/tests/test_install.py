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
SAMPLES = TOP / "samples/tpacket4"
FILES = """\
bin/tp4
bin/tpbench
bin/tpbench-all
bin/tpgen
bin/tpswitch
include/tpacket4.h
include/tpacket4/linux/if_packet.h
include/tpacket4_device.h
lib/libtpacket4.so
lib/libtpacket4.so.1
include/tpacket4_port.h
include/tpswitch_lookup.h
lib/systemd/system/tpswitch.service
share/bash-completion/completions/tp4
share/bash-completion/completions/tpgen
share/bash-completion/completions/tpswitch
share/doc/tpacket4/README.md
share/doc/tpacket4/examples/capture.c
share/man/man1/tpbench-all.1
share/man/man1/tpbench.1
share/man/man1/tpgen.1
share/man/man7/tpacket4.7
share/man/man8/tp4.8
share/man/man8/tpswitch.8
share/pkgconfig/tpacket4.pc
""".splitlines()
PAGES = [SAMPLES / "tpbench.1", TOP / "apps/tpgen/tpgen.1"]
PAGES += [TOP / "apps/tpswitch/tpswitch.8", TOP / "apps/tp4/tp4.8"]
PAGES += [TOP / "tools/lib/tpacket4/tpacket4.7"]


def options(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w\[-])--?[a-zA-Z][a-z-]*", text))


class InstallTest(unittest.TestCase):
    def test_install(self) -> None:
        if not (TOP / "build/linux/Makefile").exists():
            self.skipTest("no build/linux: make tree")
        dest = Path(tempfile.mkdtemp(prefix="tpacket4-install."))
        self.addCleanup(shutil.rmtree, dest)
        env = os.environ | {"DESTDIR": str(dest), "PREFIX": "/opt/tp4"}
        subprocess.run([TOP / "lab/release/install"], env=env, check=True)
        found = {str(f.relative_to(dest)) for f in dest.rglob("*") if f.is_file()}
        self.assertEqual(found, {f"opt/tp4/{name}" for name in FILES})
        bin_dir = dest / "opt/tp4/bin"
        self.same_options(bin_dir / "tpbench", PAGES[0], ".SS Benchmarks", ".SH EXIT")
        self.same_options(bin_dir / "tpgen", PAGES[1], ".SS Where", ".SS Numbered")
        self.same_options(bin_dir / "tpswitch", PAGES[2], ".SH OPT", ".SH COMMANDS")
        self.same_options(bin_dir / "tp4", PAGES[3], ".SH OPT", ".SH EXIT")

    def same_options(self, program: Path, path: Path, first: str, behind: str) -> None:
        """The manual page has the options of --help."""
        command = [program, "--help"]
        usage = subprocess.run(command, check=True, capture_output=True, text=True)
        page = path.read_text().replace("\\-", "-")
        page = page[page.index(first) : page.index(behind)]
        lines = [
            s for s in page.splitlines() if s.startswith((".BR -", ".B -", ".BI -"))
        ]
        described = options("\n".join(lines))
        self.assertEqual(described, options(usage.stdout))

    def test_pages(self) -> None:
        for page in PAGES:
            for tool in ["mandoc", "-T", "lint"], ["man", "--warnings", "-l"]:
                if not shutil.which(tool[0]):
                    continue
                got = subprocess.run([*tool, page], check=False, capture_output=True)
                output = got.stdout if tool[0] == "mandoc" else got.stderr
                self.assertEqual(output, b"", f"{tool[0]} {page}")


if __name__ == "__main__":
    unittest.main()
