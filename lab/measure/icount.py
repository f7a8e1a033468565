# SPDX-License-Identifier: GPL-2.0
"""Boots machines for lab/measure/bench*.py: those that count instructions, and another.

A script runs itself in the machine, with --guest and its job. Each line that begins with
"@ " and a JSON object is a result.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from lab.build.place import BASE, BUILD, TOP
from lab.run import proc

CRC = 4
LINE = 100  # Gbit/s, for the rates below
FLOOD = 8_000_000  # packets per second: more than any program here can receive


def arguments(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--kernel", default="plain", help="as lab/run/vm --kernel")
    parser.add_argument("--guest", type=json.loads, help=argparse.SUPPRESS)
    return parser


@cache
def qemu(*variant: str) -> str:
    """The QEMU that has the models of generator()."""
    process = proc.start([str(TOP / "lab/build/qemu"), *variant, "--print"])
    assert process.stdout
    said = process.stdout.read().decode()
    if proc.finish(process):
        sys.exit(f"bench: {said}")
    return said.splitlines()[-1]


def generator(
    device: str, rate: int, size: int, *variant: str, **properties: object
) -> list[str]:
    """Options of lab/run/vm: a port that receives packets, and discards those sent."""
    if device.startswith("virtio"):
        nic = f"{device}-gen,rate={rate},flows=64,size={size}"
    else:
        values = {"rate": rate, "flows": 64, "size": size + CRC, "line": LINE}
        values |= properties
        nic = ",".join(["xl710-gen", *(f"gen-{k}={v}" for k, v in values.items())])
    return ["--nic", nic, "--qemu", qemu(*variant)]


def boot(
    name: str,
    script: str,
    job: object,
    kernel: str,
    options: list[str],
    clock: Sequence[str] = ("--icount",),
) -> Iterator[dict]:
    """Run a script's job in a machine; yields the results, and prints the rest.

    If the machine fails, this exits after the last result.
    """
    log = BUILD / "log" / name
    command = [str(TOP / "lab/run/vm"), *clock, "-k", kernel, "-t", "3600"]
    command += ["-l", str(log), *options, "--", "env", f"BASE={BASE}"]
    command += [str(Path(script).resolve()), "--guest", json.dumps(job)]
    if clock:
        print(f"bench: {name}", file=sys.stderr)
    process = proc.start(command)
    assert process.stdout
    for raw in process.stdout:
        line = raw.decode(errors="replace").strip()
        if line.startswith("@ "):
            yield json.loads(line.removeprefix("@ "))
        else:
            print(f"{name}: {line}", file=sys.stderr)
    if proc.finish(process):
        sys.exit(f"bench: the machine failed; its kernel log is {log.relative_to(TOP)}")


def report(measured: object) -> None:
    """In the machine: pass a result to boot()."""
    print("@", json.dumps(measured), flush=True)
