#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Counts instructions per packet of tpgen on i40e in zero-copy mode, with 60 bytes.

Boots the plain kernel as lab/measure/bench.py does: one virtual CPU that executes one
instruction per nanosecond of guest time, and the generator and the sink of the XL710
model. Prints them next to pkt-gen's, with the marks that tpgen must keep, and writes
out/tpgen.json. Fails if a mark is missed.
"""

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lab.build.place import BUILD, TOP
from lab.run import proc

FLOOD = "gen-rate=8000000,gen-flows=64,gen-size=64,gen-line=100,gen-seq=on"
QUIET = "gen-rate=0"


@dataclass
class Row:
    """One case of lab/measure/tpgen-guest.

    `pkt_gen` is what netmap's pkt-gen needs for the same packets, on netmap's own i40e
    driver in the same machine, measured once and with the same clock. `mark` is the most
    that tpgen may need.
    """

    case: str
    title: str
    pkt_gen: int | None = None
    mark: int | None = None
    instructions: float | None = None
    packets: int = 0


def rows() -> list[Row]:
    return [
        Row("tx-fixed", "tx, one packet", 171, 135),
        Row("tx-flows", "tx, 256 flows that fit into the frames"),
        Row("tx-ranges", "tx, ranges of addresses and ports", 343, 165),
        Row("tx-random", "tx, random addresses and ports"),
        Row("tx-seq", "tx --seq"),
        Row("tx-imix", "tx, IMIX"),
        Row("rx", "rx"),
        Row("rx-seq", "rx --seq: loss, order and latency", None, 213),
    ]


def measure(mode: str, nic: str, args: argparse.Namespace) -> dict[str, dict]:
    """The summary of each case, as far as it succeeded."""
    command = [str(TOP / "lab/run/vm"), "--icount", "-k", args.kernel, "-t", "3600"]
    command += ["-l", str(BUILD / f"log/bench-tpgen-{mode}")]
    command += ["--nic", f"xl710-gen,{nic}", "--qemu", args.qemu, "--"]
    command += [str(TOP / "lab/measure/tpgen-guest"), args.tpgen, mode]
    print(f"bench: tpgen {mode}", file=sys.stderr)
    found = {}
    process = proc.start(command)
    assert process.stdout
    for raw in process.stdout:
        line = raw.decode(errors="replace").strip()
        if line.startswith("failed: "):
            print(line, file=sys.stderr)
        elif line.startswith("@ "):
            _, case, text = line.split(" ", 2)
            found[case] = json.loads(text)
    if proc.finish(process):
        sys.exit(f"bench: the machine of tpgen {mode} failed")
    return found


def check_streams(found: dict) -> None:
    """What it counts is what the generator sends: one stream, in order."""
    streams = found["streams"]
    if len(streams) != 1 or streams[0]["reordered"] or streams[0]["duplicate"]:
        sys.exit(f"bench: tpgen rx --seq has received {streams}")
    if not streams[0]["latency"]["count"]:
        sys.exit("bench: tpgen rx --seq has measured no latency")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", default="plain")
    parser.add_argument("--qemu", required=True, help="a QEMU with the XL710 model")
    parser.add_argument("--tpgen", default=str(BUILD / "tpgen/tpgen"))
    parser.add_argument("--out", type=Path, default=TOP / "out", metavar="DIR")
    args = parser.parse_args()
    proc.stop_on_signals()
    found = measure("tx", QUIET, args) | measure("rx", FLOOD, args)
    if "rx-seq" in found:
        check_streams(found["rx-seq"])
    table, failed = rows(), False
    print("\nInstructions per packet of tpgen, i40e, zero-copy mode, 60 bytes\n")
    print(f"{'':40} {'tpgen':>7} {'at most':>8} {'pkt-gen':>8}")
    for row in table:
        if row.case in found:
            said = found[row.case]
            row.packets = said["tx_packets"] or said["rx_packets"]
            row.instructions = round(said["seconds"] * 1e9 / row.packets, 1)
        failed |= row.instructions is None
        failed |= bool(row.mark and (row.instructions or 0) > row.mark)
        print(
            f"{row.title:40} {row.instructions or '-':>7} {row.mark or '':>8}"
            f" {row.pkt_gen or '':>8}"
        )
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "tpgen.json").write_text(
        json.dumps([asdict(row) for row in table], indent=1) + "\n"
    )
    return int(failed)


if __name__ == "__main__":
    proc.main(main)
