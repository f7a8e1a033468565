#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""libpcap's own test programs, on Debian's libpcap (V3) and on ours (V4).

    testprogs.py PCAP [--long]

As root; PCAP is build/pcap, with lib and testprogs. What needs a network adapter runs
on a veth pair. Output is TAP.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tap import end, result, skip

PCAP = Path(sys.argv[1])
LONG = "--long" in sys.argv
IN_NS = ["ip", "netns", "exec", "left"]
LIBS = {"V3": {}, "V4": {"LD_LIBRARY_PATH": str(PCAP / "lib")}}
PATIENCE = 120
NR = 50


def start(version: str, name: str, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*IN_NS, "stdbuf", "-oL", str(PCAP / "testprogs" / name), *args],
        env=os.environ | LIBS[version],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(version: str, name: str, *args: str) -> tuple[int, str]:
    process = start(version, name, *args)
    text, _ = process.communicate(timeout=PATIENCE)
    return process.returncode, text


def ip(*words: str) -> None:
    subprocess.run(["ip", *" ".join(words).split()], check=True)


def ping(nr: int) -> None:
    words = f"ping -q -i 0.02 -W 20 192.0.2.2 -c {nr}".split()
    subprocess.run([*IN_NS, *words], check=True, capture_output=True)


def same(name: str, *args: str) -> None:
    old, new = (run(v, name, *args) for v in LIBS)
    result(old == new, f"{name} {' '.join(args)}", *old, *new)


def finds_devices() -> None:
    """Both find the same network devices, and ours the zero-copy ones on request."""
    found = []
    for version, env in ("V3", {}), ("V4", {}), ("V4", {"PCAP_ZC": "1"}):
        os.environ.update(env)
        entries = run(version, "findalldevstest")[1].split("\n\n")
        # What else Debian's is built with
        found.append([e for e in entries if not re.match("bluetooth|dbus", e)])
    del os.environ["PCAP_ZC"]
    old, new, wanted = found
    result(old == new, "findalldevstest", old, new)
    plain = [e for e in wanted if not e.startswith("zc:")]
    result(old == plain, "findalldevstest with PCAP_ZC", old, wanted)
    zerocopy = [e.split("\n")[0] for e in wanted if e.startswith("zc:")]
    result(zerocopy == ["zc:veth0+stack"], "V4: findalldevstest: zero-copy", wanted)


def succeeds(name: str, *args: str) -> None:
    for version in LIBS:
        code, text = run(version, name, *args)
        result(not code, f"{version}: {name} {' '.join(args)}", text)


def captures(name: str, *args: str) -> None:
    """A loop that tells how many packets it has seen; each of NR pings is two."""
    command = (name, "-i", "veth0", *args, "icmp")
    processes = {version: start(version, *command) for version in LIBS}
    for process in processes.values():
        assert process.stdout
        while "istening" not in (line := process.stdout.readline()):
            assert line, f"{name} {args}"
    time.sleep(1)
    ping(NR)
    time.sleep(2)
    for process in processes.values():
        process.terminate()  # ended by the second one where it has a handler
    time.sleep(0.2)
    for version, process in processes.items():
        process.kill()
        assert process.stdout
        text = process.stdout.read()
        seen = sum(int(n) for n in re.findall(r"(\d+) packets? seen", text))
        good = seen == 2 * NR
        stats = re.findall(r"(\d+) ps_recv, (\d+) ps_drop", text)
        if stats:
            good = good and stats[-1] == (str(seen), "0")
        result(good, f"{version}: {name} {' '.join(args)}: {seen} packets", text)


def nonblock() -> None:
    """It ends by pcap_breakloop() in a callback, then has no descriptors left."""
    processes = {v: start(v, "nonblocktest", "-i", "veth0") for v in LIBS}
    end = time.monotonic() + PATIENCE
    # On a busy machine, it may be long until it waits for packets.
    while any(p.poll() is None for p in processes.values()) and time.monotonic() < end:
        ping(20)
    for version, process in processes.items():
        text, _ = process.communicate(timeout=PATIENCE)
        good = not process.returncode and "failed as expected" in text
        result(good, f"{version}: nonblocktest", process.returncode, text)


def thread_signal(*args: str) -> None:
    command = ("threadsignaltest", "-i", "veth0", *args, "icmp")
    processes = {version: start(version, *command) for version in LIBS}
    for version, process in processes.items():
        text, _ = process.communicate(timeout=PATIENCE)
        good = not process.returncode and "Doing pcap_breakloop" in text
        result(good, f"{version}: threadsignaltest {' '.join(args)}", text)


def main() -> None:
    print("TAP version 13")
    for name in "left", "right":
        ip(f"netns add {name}")
        ip(f"-n {name} link set lo up")
    ip("-n left link add veth0 type veth peer name veth0 netns right")
    for last, name in (1, "left"), (2, "right"):
        ip(f"-n {name} link set veth0 up")
        ip(f"-n {name} addr add 192.0.2.{last}/24 dev veth0")
    time.sleep(2)
    ping(1)

    finds_devices()
    for words in "tcp port 80", "vlan and udp", "ip6 or arp", "greater 1000":
        same("filtertest", "EN10MB", words)
    same("can_set_rfmon_test", "veth0")
    succeeds("reactivatetest")
    for words in "-i veth0", "-p -i veth0", "-s 100 -i veth0", "-i any", "-a -i lo":
        succeeds("opentest", *words.split())
    captures("capturetest")
    captures("capturetest", "-m")
    captures("capturetest", "-t", "200")
    captures("selpolltest")
    for words in "-s", "-p", "-s -n", "-p -n", "-s -t", "-p -t":
        captures("selpolltest", *words.split())
    nonblock()
    if LONG:
        thread_signal()
        thread_signal("-n")
    else:
        skip("threadsignaltest sleeps for a minute: --long")
    end()


if __name__ == "__main__":
    main()
