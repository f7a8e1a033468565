# SPDX-License-Identifier: GPL-2.0
"""When tpgen tx sends."""

import subprocess
import time

from files import gaps, median
from harness import (
    SHORT,
    A,
    Capture,
    Skip,
    check,
    close,
    counter,
    run,
    run_json,
    timed,
)


def held(words: list[object], pps: float) -> None:
    seconds = 2 if SHORT else 10
    before = counter(A, "tx_packets")
    r = run_json("tx", "-i", A, "-t", seconds, *words)
    close(r["asked_pps"], pps, 0.01, "asked rate")
    close(r["tx_packets"], counter(A, "tx_packets") - before, 0.01, "packets")
    # It does not claim what it has not done.
    due = r["tx_packets"] + r["left_out"]
    check(
        r["left_out"] or due > pps * seconds * 0.9, f"{due} packets of {pps * seconds}"
    )
    close(r["pps"], pps, 1, " ".join(map(str, words)))


def test_few_packets() -> None:
    """Each packet counts with the gap behind it, so that a few have the rate, too."""
    for words, packets in (["-n", 1], 1), (["-n", 64, "-b", 64], 64), (["-n", 3], 3):
        r = run_json("tx", "-i", A, "-R", 100, *words)
        check(r["tx_packets"] == packets, r)
        # The machine may be late, but is never faster.
        check(0 < r["pps"] < 100.01, f"{words}: {r['pps']}")


@timed
def test_rate_packets() -> None:
    held(["-R", "2k"], 2000)


@timed
def test_rate_bits() -> None:
    held(["-R", "1Mbps", "-l", 125], 1000)


@timed
def test_rate_wire() -> None:
    held(["-R", "1Mbpsl1", "-l", 101], 1000)


@timed
def test_rate_percent() -> None:
    # The speed of a veth pair is 10 Gbit/s.
    held(["-R", "0.01%", "-l", 101], 1000)


@timed
def test_burst() -> None:
    with Capture() as capture:
        run("tx", "-i", A, "-n", 200, "-q", "-R", 500, "-b", 10)
    times = capture.times()
    check(len(times) == 200, len(times))
    close(median(gaps(times[::10])), 0.02, 25, "from burst to burst")
    within = [t for i, t in enumerate(gaps(times)) if i % 10 != 9]
    check(median(within) < 0.002, f"within a burst: {median(within)}")


@timed
def test_poisson() -> None:
    def short_gaps(*words: str) -> float:
        with Capture() as capture:
            run("tx", "-i", A, "-n", 250, "-q", "-R", 100, *words)
        found = gaps(capture.times())
        check(len(found) == 249, len(found))
        return sum(g < 0.005 for g in found) / len(found)

    # Of exponential gaps, 39 % are shorter than half the mean.
    share = short_gaps("--poisson")
    check(0.29 < share < 0.5, f"{share:.0%} of the random gaps are short")
    share = short_gaps()
    check(share < 0.15, f"{share:.0%} of the constant gaps are short")


def tc(*words: str) -> None:
    done = subprocess.run(
        ["tc", "qdisc", "replace", "dev", A, "root", *words],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise Skip(f"tc {words[0]}: {done.stderr.strip()}")


def launched(qdisc: str) -> list[float]:
    """When 20 packets arrive, from the start on; each is posted 3 s too early."""
    words = ["-n", 20, "-R", 10, "--launch", qdisc, "--ahead", 3000000]
    with Capture() as capture:
        begun = time.time()
        run("tx", "-i", A, "-q", *words)
    return [at - begun for at in capture.times()]


@timed
def test_launch_fq() -> None:
    tc("pfifo")
    times = launched("fq")
    check(times[0] < 2.5, f"without a qdisc for it: {times}")
    tc("fq")
    try:
        times = launched("fq")
    finally:
        tc("noqueue")
    check(len(times) == 20, f"{len(times)} packets")
    check(times[0] >= 3, f"too early: {times}")
    close(times[-1] - times[0], 1.9, 15, "from the first to the last packet")
    close(median(gaps(times)), 0.1, 15, "gap")


@timed
def test_launch_etf() -> None:
    tc("etf", "clockid", "CLOCK_TAI", "delta", "5000000")
    try:
        times = launched("etf")
    finally:
        tc("noqueue")
    # It drops the packets that it is too late for.
    check(len(times) > 17, f"etf has dropped {20 - len(times)} packets")
    check(times[0] >= 2.9, f"too early: {times}")
    close(median(gaps(times)), 0.1, 15, "gap")


@timed
def test_qdisc() -> None:
    def seconds(*words: str) -> float:
        with Capture() as capture:
            run("tx", "-i", A, "-n", 10, "-q", "-l", 1000, *words)
        times = capture.times()
        check(len(times) == 10, f"{len(times)} packets")
        return times[-1] - times[0]

    tc("tbf", "rate", "100kbit", "burst", "1600", "limit", "100000")
    try:
        check(seconds("--qdisc") > 0.3, "the qdisc has not limited the rate")
        check(seconds() < 0.3, "the qdisc has limited the rate")
    finally:
        tc("noqueue")
