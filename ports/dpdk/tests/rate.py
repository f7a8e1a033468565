#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Measures dpdk-testpmd in the guest of lab/measure/bench-dpdk.

    rate.py PMD veth|i40e DRIVER OPTIONS MODE [ARGUMENT...]

Prints the instructions that a packet takes, all in all: with --icount, a nanosecond of the
guest is an instruction. OPTIONS are those of the vdev, or -.
"""

import subprocess
import sys
import time
from pathlib import Path

import testpmd as testpmd_module
from testpmd import Testpmd, run, set_up

NET = Path("/sys/class/net")
SECONDS = 0.3
TRIES, ENOUGH = 10, 1000

# With --icount, an hour passes in no time while the guest waits for files of the host. The
# machine ends if testpmd hangs.
testpmd_module.PATIENCE = 100_000


def find_devices(kind: str) -> list[str]:
    if kind == "veth":
        run("ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1")
        return ["v0", "v1"]
    found = [
        dev for dev in NET.iterdir() if (dev / "device/driver").resolve().name == kind
    ]
    for dev in found:
        # more descriptors than the generator fills while the program does something else
        subprocess.run(["ethtool", "-L", dev.name, "combined", "1"], check=False)
        run("ethtool", "-G", dev.name, "rx", "4096", "tx", "4096")
    return [dev.name for dev in found]


def prepare(dev: str) -> None:
    run("sysctl", "-qw", f"net.ipv6.conf.{dev}.disable_ipv6=1")
    run("ip", "link", "set", dev, "promisc", "on", "up")
    # busy polling, without interrupts
    (NET / dev / "napi_defer_hard_irqs").write_text("2")
    (NET / dev / "gro_flush_timeout").write_text("200000")


def main() -> None:
    pmd, kind, driver, options, mode, *args = sys.argv[1:]
    set_up()
    devices = find_devices(kind)
    for dev in devices:
        prepare(dev)
    time.sleep(3)
    for dev in devices:
        while (NET / dev / "operstate").read_text(encoding="ascii").strip() != "up":
            time.sleep(0.1)
    extra = "" if options == "-" else f",{options}"
    vdevs = [f"iface={dev}{extra}" for dev in devices]
    args += ["--burst=64", f"--forward-mode={mode}", "--total-num-mbufs=32768"]
    name = "TX-packets" if mode == "txonly" else "RX-packets"
    with Testpmd(vdevs, tuple(args), pmd=pmd, driver=driver) as testpmd:
        testpmd("start tx_first 1" if kind == "veth" else "start")
        for _ in range(TRIES):
            time.sleep(SECONDS)
            # It counts as soon as it reads the command, and answers later.
            since = time.monotonic()
            before = testpmd.counters()
            time.sleep(SECONDS)
            seconds = time.monotonic() - since
            after = testpmd.counters()
            packets = sum(port[name] for port in after) - sum(
                port[name] for port in before
            )
            if packets > ENOUGH:
                break
            print(f"{packets} packets in {seconds:.1f} s: the device may still start")
        testpmd.quit()
    if not packets:
        print(testpmd.log)
    print(f"{seconds * 1e9 / packets:.1f}" if packets else "none", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 6:
        print(__doc__)
        sys.exit(0 if "--help" in sys.argv or "-h" in sys.argv else 2)
    main()
