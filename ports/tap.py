# SPDX-License-Identifier: GPL-2.0
"""TAP, for the tests of the ports."""

import sys
from typing import NoReturn

number = 0
failures = 0


def result(good: bool, title: str, *why: object) -> bool:
    """Reports a test and, if it has failed, why. Returns whether it has passed."""
    global number, failures
    number += 1
    for line in "\n".join(map(str, why)).splitlines() if not good else ():
        print(f"# {line}")
    print(f"{'ok' if good else 'not ok'} {number} {title}", flush=True)
    failures += not good
    return good


def skip(title: str) -> None:
    global number
    number += 1
    print(f"ok {number} # SKIP {title}", flush=True)


def end() -> NoReturn:
    print(f"1..{number}")
    sys.exit(1 if failures else 0)
