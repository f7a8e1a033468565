#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Counts instructions per packet of tpgen on i40e in zero-copy mode, with 60 bytes.

Boots the plain kernel as lab/measure/bench.py does: one virtual CPU that executes one
instruction per nanosecond of guest time, and the generator and the sink of the XL710
model. Prints them next to pkt-gen's, with the marks that tpgen must keep. Fails if a mark
is missed.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lab.build.place import BUILD
from lab.measure import bench_guest, icount
from lab.run import proc

COUNT = 800_000
RANGES = "-s 10.0.0.1-10.0.3.232:1000-60000 -d 10.1.0.1-10.1.3.232:1000-60000"


class Row(NamedTuple):
    """One case.

    `pkt_gen` is what netmap's pkt-gen needs for the same packets, on netmap's own i40e
    driver in the same machine, measured once and with the same clock. `mark` is the most
    that tpgen may need.
    """

    title: str
    options: str
    pkt_gen: int | None = None
    mark: int | None = None


ROWS = {
    "tx": (
        Row("tx, one packet", "", 171, 135),
        Row(
            "tx, 256 flows that fit into the frames",
            "-s 10.0.0.1-10.0.0.16 -d 10.1.0.1-10.1.0.16",
        ),
        Row("tx, ranges of addresses and ports", RANGES, 343, 165),
        Row("tx, random addresses and ports", f"{RANGES} --random src,sport,dst,dport"),
        Row("tx --seq", "--seq"),
        Row("tx, IMIX", "-l imix"),
    ),
    "rx": (
        Row("rx", "--promisc"),
        Row("rx --seq: loss, order and latency", "--promisc --seq", None, 213),
    ),
}


def guest(mode: str) -> None:
    [port] = bench_guest.set_up("i40e", 1)
    # The generator's stamps are the time since the machine was started.
    uptime = time.clock_gettime(time.CLOCK_BOOTTIME)
    time.clock_settime(time.CLOCK_REALTIME, uptime + 3600)
    command = [str(BUILD / "tpgen/tpgen"), mode, "-i", port, "-z", "0", "-q", "--spin"]
    command += ["-n", str(COUNT), "--json", "-"]
    for row in ROWS[mode]:
        done = subprocess.run(
            [*command, *row.options.split()],
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        if done.returncode:
            print("failed:", row.title, flush=True)
        else:
            icount.report(json.loads(done.stdout) | {"title": row.title})


def check_streams(streams: list[dict]) -> None:
    """What it counts is what the generator sends: one stream, in order."""
    if len(streams) != 1 or streams[0]["reordered"] or streams[0]["duplicate"]:
        sys.exit(f"bench: tpgen rx --seq has received {streams}")
    if not streams[0]["latency"]["count"]:
        sys.exit("bench: tpgen rx --seq has measured no latency")


def main() -> int:
    args = icount.arguments(__doc__).parse_args()
    if args.guest:
        guest(args.guest)
        return 0
    proc.stop_on_signals()
    found = {}
    for mode in ROWS:
        rate = icount.FLOOD if mode == "rx" else 0
        nic = icount.generator("i40e", rate, 60, seq="on")
        name = f"bench-tpgen-{mode}"
        for said in icount.boot(name, __file__, mode, args.kernel, nic):
            packets = said["tx_packets"] or said["rx_packets"]
            found[said["title"]] = round(said["seconds"] * 1e9 / packets, 1)
            if said["title"].startswith("rx --seq"):
                check_streams(said["streams"])
    failed = False
    print("\nInstructions per packet of tpgen, i40e, zero-copy mode, 60 bytes\n")
    print(f"{'':40} {'tpgen':>7} {'at most':>8} {'pkt-gen':>8}")
    for row in (*ROWS["tx"], *ROWS["rx"]):
        cost = found.get(row.title)
        failed |= cost is None or bool(row.mark and cost > row.mark)
        print(
            f"{row.title:40} {cost or '-':>7} {row.mark or '':>8} {row.pkt_gen or '':>8}"
        )
    return int(failed)


if __name__ == "__main__":
    proc.main(main)
