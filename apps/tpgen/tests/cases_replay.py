# SPDX-License-Identifier: GPL-2.0
"""What replay sends."""

import gzip
import os
import shutil
import struct
import subprocess
import time

from files import STEP, TIMED, gaps, median, pcap, pcapng, replayed, udp, write
from harness import (
    DIR,
    LIMIT,
    A,
    Capture,
    check,
    close,
    finish,
    first_line,
    mtu,
    run,
    run_json,
    start,
    timed,
)


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
    with Capture(kib=65536) as r:
        run("replay", "-i", A, "-q", "-f", write(pcap(many)), "-R", "5k", "-L", 2)
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
    said = run("replay", "-i", A, "-f", DIR / "none", code=1)
    check("No such file" in said, said)
    said = run("replay", "-i", A, "-q", "-f", write(pcap(TIMED)[:-5]))
    check("ends within a record" in said and "sent 9 packets" in said, said)


def test_replay_damaged() -> None:
    """The packets before a damage are sent, and what cannot be sent is left out."""
    for data in pcap(TIMED), pcapng(TIMED):
        at = data.index(TIMED[5][1])
        damaged = data[: at - 8] + b"\xff" * 8 + data[at:]
        with Capture() as capture:
            said = run("replay", "-i", A, "-q", "-R", "max", "-f", write(damaged))
        same(capture, TIMED[:5])
        check("damaged behind packet 5" in said, said)
    odd = [
        TIMED[0],
        (0, os.urandom(65281)),
        (0, b""),
        (0, os.urandom(200000)),
        TIMED[1],
    ]
    with Capture() as capture:
        said = run("replay", "-i", A, "-q", "-R", "max", "-f", write(pcap(odd)))
    same(capture, TIMED[:2])
    check("2 packets of more than 65280 bytes are left out" in said, said)
    check("1 packets without a byte are left out" in said, said)
    # Ethernet with 4 bytes of FCS, as the upper bits of the link type say
    with_fcs = pcap([(ns, data + b"FCS!") for ns, data in TIMED])
    with_fcs = with_fcs[:23] + b"\x24" + with_fcs[24:]
    same(replayed(with_fcs, "-R", "max"), TIMED)


def test_replay_inputs() -> None:
    """Standard input, a FIFO, compressed files, and a file that is cut meanwhile."""
    path, fifo = write(pcap(TIMED)), DIR / "fifo"
    words = ("replay", "-i", A, "-q", "-R", "max", "-f")
    with Capture() as capture, path.open("rb") as file:
        finish(start(*words, "-", stdin=file))
    same(capture, TIMED)
    os.mkfifo(fifo)
    for program in "cat", "gzip", "xz", "zstd":
        if not shutil.which(program):
            print(f"# replay: no {program} here")
            continue
        with Capture() as capture:
            replay = start(*words, fifo)
            with path.open("rb") as file, fifo.open("wb") as pipe:
                subprocess.run([program], stdin=file, stdout=pipe, check=True)
            finish(replay)
        same(capture, TIMED)
    # The second half of a compressed file is missing.
    packed = gzip.compress(pcap([(0, udp(os.urandom(1000))) for _ in range(100)]))
    said = run(*words, write(packed[: len(packed) // 2]))
    check("gzip has failed" in said and "within a record" in said, said)
    # More packets than frames, so that the file is still needed when it is cut
    many = write(pcap([(0, udp(struct.pack(">I", i) * 100)) for i in range(9000)]))
    replay = start("replay", "-i", A, "-R", "2k", "-f", many, "-T", 0.1)
    first_line(replay)
    os.truncate(many, 0)
    check("sent 9000 packets" in finish(replay)[0], "a file that is cut")


def replay_too_long() -> None:
    some = [*TIMED, (0, udp(os.urandom(2000))), (0, udp(b"")[:13]), *TIMED]
    with Capture() as capture:
        replay = start("replay", "-i", A, "-q", "-R", "1k", "-f", write(pcap(some)))
        out, _ = finish(replay, 1)
    same(capture, TIMED * 2)
    for why in "the packet is too long", "the descriptor or its metadata is invalid":
        check(f"1 packets were refused: {why}" in out, out)
    began = time.monotonic()
    none = write(pcap([(0, udp(os.urandom(2000)))] * 9))
    said = run("replay", "-i", A, "-q", "-R", "1k", "-L", 0, "-f", none, code=1)
    check("send: the packet is too long" in said, said)
    check(time.monotonic() - began < LIMIT / 2, "it goes on")


def test_replay_too_long() -> None:
    """What the device cannot take is refused, told by kind, and the rest is sent."""
    with mtu(1500):
        replay_too_long()


@timed
def test_replay_unsorted() -> None:
    """Packets are due by their stamp, and at once if that has passed."""
    ms, begin = 10**6, 10**18
    # blocks of two interfaces by turns, as dumpcap writes them
    two = [
        (begin + (block + at) * 10 * ms, udp(bytes([side, block + at]) * 9))
        for block in range(0, 100, 10)
        for side in (0, 1)
        for at in range(10)
    ]
    ahead = [(begin, TIMED[0][1]), (begin + 65536 * 10**9, TIMED[1][1])]
    ahead += [(begin + i * 100 * ms, TIMED[i][1]) for i in range(2, 4)]
    late = [(begin + 10**11, TIMED[0][1])]
    late += [(begin + i * 5 * ms, TIMED[i % 10][1]) for i in range(20)]
    for packets, seconds in (two, 0.99), (ahead, 0.3), (late, 0.095):
        capture = replayed(pcap(packets))
        same(capture, packets)
        times = capture.times()
        check(abs(times[-1] - times[0] - seconds) < 0.05, f"{times}, not {seconds} s")
