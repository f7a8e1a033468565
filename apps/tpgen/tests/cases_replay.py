# SPDX-License-Identifier: GPL-2.0
"""What replay sends."""

import os
import shutil
import struct
import subprocess

from files import STEP, TIMED, gaps, median, pcap, pcapng, replayed, udp, write
from harness import DIR, A, Capture, check, close, run, run_json, timed


def same(capture: Capture, packets: list[tuple[int, bytes]]) -> None:
    found = capture.contents()
    want = [data for _, data in packets]
    check(found == want, f"{len(found)} packets, {len(want)} wanted, or other data")


def test_replay_formats() -> None:
    for data in (
        pcap(TIMED),
        pcap(TIMED, ">"),
        pcap(TIMED, ">", nano=True),
        pcapng(TIMED),
        pcapng(TIMED, ">"),
    ):
        same(replayed(data, "-R", "max"), TIMED)
    if shutil.which("editcap"):
        path = DIR / "edited"
        subprocess.run(
            ["editcap", "-F", "pcapng", write(pcap(TIMED)), path], check=True
        )
        same(replayed(path.read_bytes(), "-R", "max"), TIMED)


@timed
def test_replay_timing() -> None:
    for data in pcap(TIMED), pcapng(TIMED):
        capture = replayed(data)
        same(capture, TIMED)
        close(median(gaps(capture.times())), STEP / 1e9, 15, "gap")
    close(median(gaps(replayed(data, "-x", 4).times())), STEP / 4e9, 30, "faster")
    close(median(gaps(replayed(data, "-R", 100).times())), 0.01, 20, "by a rate")


def test_replay_loops() -> None:
    same(replayed(pcap(TIMED), "-R", "1k", "-L", 4), TIMED * 4)
    same(replayed(pcap(TIMED), "-R", "1k", "-L", 0, "-n", 25), (TIMED * 3)[:25])
    same(replayed(pcap(TIMED), "-L", 2), TIMED * 2)
    # More than the frames hold
    many = [(i, udp(struct.pack(">I", i) * 8)) for i in range(3000)]
    r = replayed(pcap(many), "-R", "5k", "-L", 2)
    same(r, many * 2)


def test_replay_threads() -> None:
    flows = [
        (0, udp(b"x" * 30)[:26] + bytes([10, 0, 0, i % 7]) + udp(b"x" * 30)[30:])
        for i in range(500)
    ]
    with Capture() as capture:
        r = run_json("replay", "-i", A, "-p", 2, "-R", "2k", "-f", write(pcap(flows)))
    check(r["tx_packets"] == 500, r)
    check(sorted(capture.contents()) == sorted(p for _, p in flows), "packets")


def test_replay_jumbo() -> None:
    big = [
        (0, udp(os.urandom(8900))),
        (0, udp(b"small" * 9)),
        (0, udp(os.urandom(4000))),
    ]
    same(replayed(pcap(big), "-R", "max"), big)
    same(replayed(pcap(big), "-R", "max", "-z", 0), big)


def test_replay_refused() -> None:
    for data, why in (
        (b"nonsense of some length", "neither"),
        (b"", "empty"),
        (pcap(TIMED)[:24], "no packet"),
        (pcap(TIMED)[:20] + b"\x71\0\0\0" + pcap(TIMED)[24:], "not Ethernet"),
    ):
        said = run("replay", "-i", A, "-f", write(data), code=1)
        check(why in said, said)
    said = run("replay", "-i", A, "-q", "-f", write(pcap(TIMED)[:-5]))
    check("ends within a record" in said and "sent 9 packets" in said, said)
