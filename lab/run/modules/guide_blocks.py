#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Extracts the code blocks of the driver guide, for guide.c.

usage: lab/run/modules/guide_blocks.py PAGE USER DIRECTORY

Writes the blocks of PAGE to DIRECTORY/block_N.h; a block with lines "..." is divided there,
into block_N.h, block_Nb.h and so on. A condition in words, as in "while (there is room &&",
becomes the name there_is_room. USER must include every block.
"""

import re
import sys
from pathlib import Path


def find_blocks(text: str) -> list[list[str]]:
    """The literal blocks: the lines indented by a tab after a paragraph that ends in "::"."""
    blocks: list[list[str]] = []
    inside = False
    for paragraph in text.split("\n\n"):
        code = inside and paragraph.lstrip("\n").startswith("\t")
        if code and blocks:
            blocks[-1] += [*paragraph.lstrip("\n").splitlines(), ""]
            continue
        inside = paragraph.rstrip().endswith("::")
        if inside:
            blocks.append([])
    return blocks


def as_c(line: str) -> str:
    return re.sub(
        r"(?<=while \()[a-z]+( [a-z]+)+(?= &&)",
        lambda words: words.group().replace(" ", "_"),
        line,
    )


def main() -> int:
    if len(sys.argv) != 4:
        print(__doc__)
        return 0 if "--help" in sys.argv or "-h" in sys.argv else 2
    page, user, directory = map(Path, sys.argv[1:])
    included = set(re.findall(r'#include "(block_\w+\.h)"', user.read_text()))
    made = set()
    for number, block in enumerate(find_blocks(page.read_text()), 1):
        parts = "\n".join(map(as_c, block)).split("\t...\n")
        for letter, part in zip(["", "b", "c"], parts, strict=False):
            name = f"block_{number}{letter}.h"
            (directory / name).write_text(f"/* {page.name} */\n{part}")
            made.add(name)
    if made != included:
        print(
            f"{user} and the code blocks of {page} differ:",
            *sorted(made ^ included),
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
