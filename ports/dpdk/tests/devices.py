#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""net_tpacket4 on two devices of a driver, which are connected to each other.

    devices.py DIR DRIVER

As root, in a machine of its own, as for programs.py: a part of its tests and of those of
testpmd.py, which run on a veth pair. Output is TAP.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import programs
import testpmd
from testpmd import PATIENCE, Testpmd, both, forward, result, run

NET = Path("/sys/class/net")


def rename(driver: str) -> int:
    """Calls the devices of a driver v0 and v1, and takes one queue pair. Returns how many."""
    found = sorted(
        dev.name
        for dev in NET.iterdir()
        if (dev / "device/driver").resolve().name == driver
    )
    for i, name in enumerate(found):
        run("ip", "link", "set", name, "down")
        run("ip", "link", "set", name, "name", f"v{i}")
        subprocess.run(["ethtool", "-L", f"v{i}", "combined", "1"], check=False)
    return len(found)


@contextmanager
def cable(mtu: int = 1500, queues: int = 1) -> Iterator[None]:
    """The two devices, instead of a veth pair"""
    assert queues == 1
    for name in "v0", "v1":
        run("sysctl", "-qw", f"net.ipv6.conf.{name}.disable_ipv6=1")
        run("ip", "link", "set", name, "mtu", str(mtu), "up")
    end = time.monotonic() + PATIENCE
    for name in "v0", "v1":
        while (NET / name / "operstate").read_text(encoding="ascii").strip() != "up":
            if time.monotonic() > end:
                raise RuntimeError(f"{name} is not up")
            time.sleep(0.1)
    yield
    for name in "v0", "v1":
        run("ip", "addr", "flush", "dev", name)
        run("ip", "link", "set", name, "down")


def test_forwarding() -> None:
    for zerocopy in 1, 0:
        mode = f"zerocopy={zerocopy}"
        forward(f"io {mode}", f",{mode}", "--forward-mode=io")
        forward(f"mac 1500 {mode}", f",{mode}", "--forward-mode=mac", "--txpkts=1500")
        forward(f"interrupts {mode}", f",{mode},busy_budget=0", "--forward-mode=io")
    segments = ("--txpkts=400,600,400", "--tx-offloads=0x8000")
    forward("segments", "", "--forward-mode=io", *segments)
    forward("mbufs that are no frames", "", "--forward-mode=io", "--mp-alloc=xbuf")


def test_restart() -> None:
    with cable(), Testpmd(both(), ("--forward-mode=io",)) as pmd:
        for _ in range(5):
            pmd("start tx_first 1")
            time.sleep(0.2)
            pmd("stop")
            pmd("port stop all")
            pmd("port start all")
        time.sleep(1)
        before = pmd.counters()[0]["RX-packets"]
        pmd("start tx_first 1")
        time.sleep(1)
        pmd("stop")
        after = pmd.counters()[0]["RX-packets"]
        result(
            after > before + 100, "port stop and start", before, after, pmd.log[-2000:]
        )
        pmd.stop_ports("port stop and start")
        pmd.quit()


def test_side_by_side() -> None:
    """The driver uses AF_XDP's interface, for which mbufs are no frames."""
    with cable(), Testpmd(both(), ("--forward-mode=io",)) as pmd:
        pmd.quit()
        said = pmd.log.count("its driver cannot use mbufs in place")
        result(said == 2, "a notice that packets are copied", pmd.log[-2000:])


def test_segment() -> None:
    features = subprocess.run(
        ["ethtool", "-k", "v0"], check=True, capture_output=True, text=True
    )
    if "tx-udp-segmentation: on" in features.stdout:
        programs.segment(1, "on")
        programs.segment(0, "on")
    else:
        programs.segment(0, "off")


def main() -> None:
    driver = sys.argv[2]
    testpmd.set_up()
    programs.LOGS.mkdir()
    programs.install()
    if rename(driver) != 2:
        sys.exit(f"two devices of {driver} are needed")
    testpmd.veth = programs.veth = cable
    # The driver is installed.
    sys.argv[1] = ""
    tests: tuple[Callable[[], None], ...] = (
        test_forwarding,
        test_restart,
        test_segment,
        programs.test_held,
        programs.test_monitor,
    )
    if Path("/sys/module/afxdp_only").exists():
        tests += (test_side_by_side,)
    testpmd.run_tests(tests, sys.argv[3:])


if __name__ == "__main__":
    if len(sys.argv) < 3:
        print(__doc__)
        sys.exit(0 if "--help" in sys.argv or "-h" in sys.argv else 2)
    main()
