# SPDX-License-Identifier: GPL-2.0
"""Finds hunks of a diff that git apply -C1 may put at the wrong place."""

import re
from collections.abc import Iterator


def read_hunks(diff: bytes) -> Iterator[tuple[bytes, list[bytes], int, int]]:
    """Each hunk's heading, old lines, and lines of context at its start and end"""
    for part in re.split(rb"(?m)^(?=@@ )", diff)[1:]:
        heading, *lines = part.split(b"\n")
        body = [line for line in lines if line[:1] in (b" ", b"-", b"+")]
        changed = [i for i, line in enumerate(body) if line[:1] != b" "]
        old = [line[1:] for line in body if line[:1] != b"+"]
        yield heading, old, changed[0], len(body) - 1 - changed[-1]


def count_places(lines: list[bytes], wanted: list[bytes]) -> int:
    ends = range(len(lines) - len(wanted) + 1)
    return sum(lines[at : at + len(wanted)] == wanted for at in ends)


def find_ambiguous(diff: bytes, text: bytes) -> str:
    """The heading of a hunk that, with less context, is at several places of the text.

    The context is reduced as git apply does it. A hunk with all of its context is where
    its line number says.
    """
    lines = text.split(b"\n")
    for heading, old, leading, trailing in read_hunks(diff):
        places, reduced = count_places(lines, old), False
        while not places and (leading > 1 or trailing > 1):
            reduced = True
            if leading >= trailing:
                old = old[1:]
                leading -= 1
            if trailing > leading:
                old = old[:-1]
                trailing -= 1
            places = count_places(lines, old)
        if reduced and places > 1:
            return heading.decode(errors="replace")
    return ""
