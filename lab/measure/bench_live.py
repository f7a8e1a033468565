#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Counts instructions per packet of the module of live/, on Debian's own kernels.

i40e of the kernel's package, on the XL710 model with its generator. In one boot:

  stock   before the module is loaded
  loaded  with the module, without a socket in zero-copy mode
  hooked  with the hooks that a V4 socket in zero-copy mode needs

In zero-copy mode, all programs spin, so that the columns can be compared. In copy mode they
sleep: the stack needs the only CPU. There, a ring has room for more than 50000 packets, so a
run receives many more: else the result would depend on how full the ring was before and after.
For rxdrop, the packets are for another host, as in lab/measure/bench.py. For to-host they are
for this one, so the IP stack has to look at them, too.
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lab.build.place import BUILD, TOP
from lab.measure import icount
from lab.measure.bench_guest import (
    NET,
    Job,
    Run,
    find_ports,
    run,
    run_tpbench,
    set_up,
)
from lab.run import proc

STAGES = ("stock", "loaded", "hooked")
MODES = ("rxdrop", "txpush", "l2fwd")
COPY_MODES = ("rxdrop", "to-host")
COPY_FACTOR = 8
# Version, benchmark, stages
CELLS = [
    *(("AF_XDP+ZC", mode, STAGES) for mode in MODES),
    *(("V3", mode, ("stock", "loaded")) for mode in COPY_MODES),
    *(("V4", mode, ("loaded",)) for mode in COPY_MODES),
    *(("V4+ZC", mode, ("hooked",)) for mode in MODES),
]
HOOKS = Path("/sys/kernel/tracing/enabled_functions")


def hooked() -> bool:
    return "__xsk_map_redirect" in HOOKS.read_text()


def measure(job: dict, ends: list[str], version: str, mode: str) -> None:
    size = job["size"]
    bench = Job("i40e", [mode], [size], [1], [version], packets=job["packets"])
    wait = "spin" if version.endswith("+ZC") else "sleep"
    if wait == "sleep":
        bench.packets *= COPY_FACTOR
        bench.seconds = 20
    run_tpbench(bench, ends, Run(mode, size, 1, version, wait))


def measure_to_host(job: dict, ends: list[str], version: str) -> None:
    """Measure with the address that the generator sends to."""
    address = (NET / ends[0] / "address").read_text().strip()
    run("ip", "link", "set", ends[0], "address", job["address"])
    measure(job, ends, version, "rxdrop")
    run("ip", "link", "set", ends[0], "address", address)


def guest(job: dict) -> None:
    run("modprobe", "i40e")
    run("mount", "-t", "tracefs", "tracefs", "/sys/kernel/tracing")
    port = find_ports("i40e")[0]
    job["address"] = (NET / port / "address").read_text().strip()
    ends = set_up("i40e", 1)
    for stage in STAGES:
        if stage == "loaded":
            run("insmod", job["module"])
        for version, mode, stages in CELLS:
            if stage not in stages:
                continue
            if stage == "hooked" and not hooked():
                # The hooks stay for some seconds.
                measure(job | {"packets": 1000}, ends, "V4+ZC", "rxdrop")
            if mode == "to-host":
                measure_to_host(job, ends, version)
            else:
                measure(job, ends, version, mode)
            if (stage == "hooked") != hooked():
                sys.exit(f"bench: {version} {mode}, {stage}: hooks are wrong")
            icount.report({"stage": stage, "mode": mode})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--packets", type=int, default=200_000)
    parser.add_argument("--guest", type=json.loads, help=argparse.SUPPRESS)
    parser.add_argument("releases", nargs="*", metavar="RELEASE")
    args = parser.parse_args()
    if args.guest:
        guest(args.guest)
        return 0
    proc.stop_on_signals()
    for release in args.releases:
        process = proc.start([str(TOP / "lab/build/stock"), "kernel", release])
        assert process.stdout
        kernel = process.stdout.read().decode().strip().splitlines()[-1]
        proc.finish(process)
        module = BUILD / f"live/{release}/tpacket4.ko"
        if not module.exists():
            sys.exit(f"bench: no {module}: lab/build/live {release} builds it")
        nic = icount.generator("i40e", icount.FLOOD, args.size)
        job = {"module": str(module), "size": args.size, "packets": args.packets}
        costs: dict[tuple[str, str, str], float] = {}
        last: dict = {}
        name = f"bench-live-{release}"
        for said in icount.boot(name, __file__, job, kernel, [*nic, "--initrd"]):
            if "stage" not in said:
                last = said
            elif last:
                cell = last["version"], said["mode"], said["stage"]
                costs[cell] = last["ns_per_packet"]
                last = {}
        print(f"{release}, {args.size} bytes", *(f"{stage:>10}" for stage in STAGES))
        for version, mode, _ in CELLS:
            row = [costs.get((version, mode, stage)) for stage in STAGES]
            print(
                f"{version:10} {mode:8}",
                *(f"{c:10.1f}" if c else " " * 10 for c in row),
            )
    return 0


if __name__ == "__main__":
    proc.main(main)
