#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests each option of tpgen on a veth pair: guest.py TPGEN IF PEER [CASE...]

tcpdump and the kernel's counters judge what tpgen sends, and capture files that are
written here, with known faults, what it receives. Prints TAP. Needs root and a kernel
with V4. With TPGEN_SHORT=1, rates are held for two seconds instead of ten, and cases
that take long are left out.
"""

import shutil
import struct
import subprocess
import sys
import time
import xml.etree.ElementTree

import cases_packets
import cases_rate
import cases_receive
import cases_replay
import cases_report
import cases_search
import harness

CASES = (
    cases_packets,
    cases_rate,
    cases_receive,
    cases_replay,
    cases_report,
    cases_search,
)
TAKE_LONG = ("poisson", "qdisc", "burst", "replay_timing", "search_nothing")
# For devices that stamp all packets, if their clock is a second ahead of the kernel's
NOT_ON_VETH = ("hardware_stamps",)
# A case that fails hides no other one.
FAILURES = (AssertionError, OSError, LookupError, ValueError, TypeError, AttributeError)
FAILURES += (subprocess.SubprocessError, struct.error, xml.etree.ElementTree.ParseError)


def main() -> int:
    chosen = sys.argv[4:]
    tests = {
        name[5:]: case
        for module in CASES
        for name, case in vars(module).items()
        if name.startswith("test_")
    }
    if not chosen:
        left_out = NOT_ON_VETH + (TAKE_LONG if harness.SHORT else ())
        chosen = [name for name in tests if name not in left_out]
    bad = 0
    for name in chosen:
        if name not in tests:
            sys.exit(f"guest.py: there is no case {name}")
    print(f"TAP version 13\n1..{len(chosen)}", flush=True)
    for number, name in enumerate(chosen, 1):
        harness.begin()
        begun = time.monotonic()
        try:
            tests[name]()
            line = f"ok {number} {name}"
        except harness.Skip as reason:
            line = f"ok {number} {name} # SKIP {reason}"
        except FAILURES as why:
            print(f"# {name}: {type(why).__name__}: {why}")
            line = f"not ok {number} {name}"
            bad = 1
        print(
            f"{line}" if "#" in line else f"{line} # {time.monotonic() - begun:.1f} s",
            flush=True,
        )
    shutil.rmtree(harness.DIR)
    return bad


if __name__ == "__main__":
    sys.exit(main())
