#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests that errors, limits and structures of V4 stand in one text each.

A page is a file and the lines that later patches add to it.
"""

import errno
import re
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PAGES = TOP / "Documentation/networking"
PAGE, DEVICES = "tpacket4.rst", "tpacket4_devices.rst"
MANUAL, HEADER, PACKET = "tpacket4.7", "if_packet.h", "packet.7"
# An errno as the head of a list item, in a manual page and in a page
ERRNO = re.compile(
    r"^(?:\.BR? | *(?:\* )?- |\*\*|``)?E[A-Z0-9]{3,}(?:\W.{,20})?$", re.MULTILINE
)
# A structure, not a variable
STRUCT = re.compile(r"^\s*struct tpacket\w* \{$", re.MULTILINE)
LIMITS = {
    r"PAGE_SIZE / 16": HEADER,
    r"2\^20": HEADER,
    r"128 to PAGE_SIZE": HEADER,
    r"multiple\s+(?:\*\s+)?of 64": HEADER,
    r"\b8192\b": PAGE,
    r"256 KiB": PAGE,
    r"headroom of 64|\b17 bytes\b": DEVICES,
    r"\b16383\b": DEVICES,
    r"\b8934\b": DEVICES,
    r"up to 128\b": DEVICES,
    r"4 GiB": DEVICES,
}


def added(folder: Path) -> str:
    """The lines that the patches in this folder add to a file"""
    lines = []
    for patch in sorted(folder.glob("*.patch")):
        body = patch.read_text().split("\n@@", 1)[1]
        lines += [line[1:] for line in body.splitlines() if line[:1] == "+"]
    return "\n".join(lines)


def texts() -> dict[str, str]:
    found = {}
    for page in PAGES.glob("tpacket4*.rst"):
        found[page.name] = page.read_text() + added(page.with_name(f"{page.name}.d"))
    found["packet_mmap.rst"] = added(PAGES / "packet_mmap.rst.d")
    found[MANUAL] = (TOP / "tools/lib/tpacket4/tpacket4.7").read_text()
    found[HEADER] = added(TOP / "include/uapi/linux/if_packet.h.d")
    return found


class PagesTest(unittest.TestCase):
    def test_errors(self) -> None:
        """One text lists the errnos, whatever project the others belong to."""
        found = texts()
        found[PACKET] = added(TOP / "ports/man-pages/man/man7/packet.7.d")
        lists = {name for name, text in found.items() if ERRNO.search(text)}
        self.assertEqual(lists, {MANUAL})
        self.assertGreater(len(ERRNO.findall(found[MANUAL])), 40)

    def test_errors_in_prose(self) -> None:
        """The manual page alone says with which error a call fails."""
        for name in PAGE, DEVICES:
            words = set(re.findall(r"\bE[A-Z0-9]+\b", texts()[name]))
            self.assertEqual(words & {*errno.errorcode.values()}, set(), name)

    def test_limits(self) -> None:
        for limit, owner in LIMITS.items():
            names = {name for name, text in texts().items() if re.search(limit, text)}
            self.assertEqual(names, {owner}, limit)

    def test_structures(self) -> None:
        """Pages have them by kernel-doc."""
        found = texts()
        lists = {name for name, text in found.items() if STRUCT.search(text)}
        self.assertEqual(lists, {HEADER})
        names = set(
            re.findall(r"^struct (tpacket\w*) \{$", found[HEADER], re.MULTILINE)
        )
        names.remove("tpacket4_queue")  # not a part of the interface
        shown = re.findall(r":identifiers: (\w+)", found[PAGE])
        self.assertLessEqual(names, set(shown))


if __name__ == "__main__":
    unittest.main()
