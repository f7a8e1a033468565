# SPDX-License-Identifier: GPL-2.0
"""What rx and ping count."""

import json
import random
import re
import struct
import subprocess
import time
from pathlib import Path

from files import pcap, read_pcapng, signature, udp, write
from harness import (
    DIR,
    LIMIT,
    MAGIC,
    SHORT,
    TPGEN,
    A,
    B,
    Capture,
    check,
    close,
    finish,
    first_line,
    good,
    receiver,
    result,
    run,
    run_json,
    sent,
    start,
    stop,
    stop_json,
    timed,
    values,
    wait_for,
)


def test_loss_order_duplicates() -> None:
    order = [*range(100), *range(103, 200), 202, 201, 200, 150, 203, 203, 300, 301, 5]
    random.seed(1)
    tail = list(range(310, 360))
    random.shuffle(tail)
    order += tail
    seen: set[int] = set()
    top, reordered, duplicates = -1, 0, 0
    for seq in order:
        if seq in seen:
            duplicates += 1
        elif seq < top:
            reordered += 1
        seen.add(seq)
        top = max(top, seq)
    stamp = time.time_ns()
    for first in 0, 0xFFFFFFF0, 12345:
        packets = [(0, udp(signature(7, 3, first + seq, stamp))) for seq in order]
        packets.insert(5, (0, udp(b"something else that has no number")))
        rx = receiver("rx", "--seq")
        run("replay", "-i", A, "-q", "-R", "2k", "-f", write(pcap(packets)))
        r = stop_json(rx)
        check(len(r["streams"]) == 1, r["streams"])
        s = r["streams"][0]
        found = s["stream"], s["received"], s["lost"], s["reordered"], s["duplicate"]
        # Before the first one, unless the numbers seem to have wrapped around
        head = first if first < 2**31 else 0
        check(s["lost_before_first"] == head, s)
        want = 3, len(seen), head + 360 - len(seen), reordered, duplicates
        check(found == want, f"from {first}: {found}, not {want}")
        check(r["rx_other"] == 1, r["rx_other"])
        count = s["latency"]["count"]
        check(count == len(order), count)
        check(sum(n for _, n in s["latency"]["histogram"]) == count, "histogram")
        for low, high in (("min", "p50"), ("p50", "p99"), ("p99_9", "max")):
            low, high = s["latency"][f"{low}_ns"], s["latency"][f"{high}_ns"]
            check(low <= high, f"{low} > {high}")


def test_tail() -> None:
    """What is missing at the end of those that were announced is lost, too."""
    for count in 0, 90:
        process = receiver("rx", "--seq", "-n", 100)
        if count:
            run("tx", "-i", A, "-q", "--seq", "-n", count)
        wait_for(count)
        out, errors = stop(process)
        check("were lost after the last one" in errors, errors)
        r = json.loads(out)
        check(r["lost_after_last"] == 100 - count, r)
        check(sum(s["lost"] for s in r["streams"]) == 0, r)
    rx = receiver("rx", "--seq", "-n", 100)
    run("tx", "-i", A, "-q", "--seq", "-n", 100)
    check(result(rx)["lost_after_last"] == 0, "all have come")


def test_latency() -> None:
    """Packets whose stamps are exactly so old when they are sent."""
    old = time.time_ns() - 5 * 10**9
    packets = [(0, udp(signature(7, 0, seq, old))) for seq in range(10)]
    packets += [(0, udp(signature(7, 1, 0, old + 3600 * 10**9)))]
    rx = receiver("rx", "--seq")
    start_ns = time.time_ns()
    run("replay", "-i", A, "-q", "-R", "max", "-f", write(pcap(packets)))
    r = stop_json(rx)
    end_ns = time.time_ns()
    first = r["streams"][0]["latency"]
    check(start_ns - old <= first["min_ns"] <= end_ns - old, first)
    check(first["min_ns"] <= first["max_ns"] <= end_ns - old, first)
    check(r["streams"][1]["negative_latency"] == 1, r["streams"][1])


def through(tx: list[object], rx: list[object], count: int, sockets: int = 1) -> dict:
    process = receiver("rx", "--seq", *rx, sockets=sockets)
    run("tx", "-i", A, "-q", "--seq", "-n", count, "-R", "20k", *tx)
    return stop_json(process, count)


def nothing_lost(r: dict, count: int, streams: int = 1) -> None:
    check(r["rx_dropped"] == 0, f"{r['rx_dropped']} dropped")
    check(len(r["streams"]) == streams, r["streams"])
    found = [(s["received"], s["lost"], s["duplicate"]) for s in r["streams"]]
    check(found == [(count // streams, 0, 0)] * streams, found)
    check(r["rx_other"] == 0, r["rx_other"])


def test_seq() -> None:
    for words in [], ["-6", "-l", 80], ["--proto", "tcp", "-l", 90], ["--vlan", 7]:
        nothing_lost(through(words, [], 3000), 3000)
    with Capture() as capture:
        before = time.time_ns()
        run("tx", "-i", A, "-q", "--seq", "-n", 5, "--stream", 77, "-l", 60)
    good(capture.packets(), 5)
    for seq, data in enumerate(capture.contents()):
        magic, _, stream, number, stamp = struct.unpack(">HHHIQ", data[42:60])
        check((magic, stream, number) == (MAGIC, 77, seq), data.hex())
        check(before <= stamp <= time.time_ns(), stamp)


def test_stamps() -> None:
    r = through([], ["--stamps", "software"], 500)
    nothing_lost(r, 500)
    check(r["streams"][0]["latency"]["count"] == 500, r["streams"])
    said = run("rx", "-i", B, "--seq", "--stamps", "hardware", code=1)
    check("cannot stamp" in said, said)


def test_hardware_stamps() -> None:
    rx = receiver("rx", "-z", 0, "--seq", "--stamps", "hardware", "-n", 500)
    run("tx", "-i", A, "-q", "--seq", "-n", 500, "-R", "20k")
    r = result(rx)
    nothing_lost(r, 500)
    check(r["hardware_stamps"] == 500, r["hardware_stamps"])
    latency = r["streams"][0]["latency"]
    check(latency["count"] == 500, latency)
    check(10**9 <= latency["min_ns"] <= latency["max_ns"] < 9 * 10**9, latency)


def test_write() -> None:
    """What rx writes to a file is what was sent, whatever the mode."""
    path = DIR / "written"
    send = ["tx", "-i", A, "-q", "-n", 99, "-l", "60:1,61:1,5000:1"]
    send += ["-s", "10.0.0.1-10.0.0.33"]
    with Capture() as capture:
        run(*send)
    for options, sockets in (
        ([], 1),
        (["-z", 0, "--seq", "--stamps", "program"], 1),
        (["-p", 2], 2),
    ):
        before = time.time_ns()
        rx = receiver("rx", "--write", path, *options, sockets=sockets)
        run(*send)
        # It writes what it has when there is no packet.
        size = 68 + sum(32 + (len(p) + 3) // 4 * 4 for p in capture.contents())
        until = time.monotonic() + LIMIT
        while path.stat().st_size != size and time.monotonic() < until:
            time.sleep(0.02)
        r = json.loads(stop(rx)[0])
        after = time.time_ns()
        found = read_pcapng(path.read_bytes())
        check(r["rx_packets"] == len(found) == 99, (options, len(found), r))
        stamps = [stamp for stamp, _ in found]
        check(before <= min(stamps) <= max(stamps) <= after, (options, stamps))
        data, want = [packet for _, packet in found], capture.contents()
        if sockets > 1:
            data, want = sorted(data), sorted(want)
        check(data == want, f"{options}: other packets")
    # The programs that read such files agree.
    command = ["tcpdump", "-nr", str(path)]
    said = subprocess.run(command, check=True, capture_output=True, text=True)
    check(len(said.stdout.splitlines()) == 99, said)


def test_write_output() -> None:
    command = [TPGEN, "rx", "-i", B, "-n", "3", "--write", "-"]
    rx = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert rx.stderr
    check(b"ready" in rx.stderr.readline(), "not ready")
    run("tx", "-i", A, "-n", 3, "-q")
    out, said = rx.communicate(timeout=LIMIT)
    check(rx.returncode == 0 and b"received 3 packets" in said, said)
    check(len(read_pcapng(out)) == 3, out)
    process = start("rx", "-i", B, "--write", "/dev/full")
    check("ready" in first_line(process), "not ready")
    run("tx", "-i", A, "-n", 1, "-q")
    said = finish(process, 1)[1]
    check("/dev/full: No space left" in said, said)
    run("tx", "-i", A, "-n", 1, "--write", "x", code=2)
    run("rx", "-i", B, "-n", 1, "--stamps", "software", code=2)


def test_threads() -> None:
    # as many threads receive, by fanout
    many = ["-s", "10.0.0.1-10.0.0.50", "-p", 2]
    r = through(many, ["-p", 2], 4000, sockets=2)
    nothing_lost(r, 4000, streams=2)
    check(r["threads"] == 2, r["threads"])


def test_cpus() -> None:
    process = start("tx", "-i", A, "-q", "-R", 10, "-a", "0")
    until = time.monotonic() + LIMIT
    while len(list(Path(f"/proc/{process.pid}/task").iterdir())) < 2:
        check(time.monotonic() < until, "no thread starts")
        time.sleep(0.02)
    time.sleep(1)
    found = set()
    for status in Path(f"/proc/{process.pid}/task").glob("*/status"):
        if status.parent.name != str(process.pid):
            found.add(
                re.search(r"Cpus_allowed_list:\s(.*)", status.read_text()).group(1)
            )
    stop(process)
    check(found == {"0"}, found)
    said = run("tx", "-i", A, "-n", 1, "-q", "-a", "999", code=1)
    check("CPU 999" in said, said)


def test_promisc() -> None:
    def flags() -> int:
        return int(Path(f"/sys/class/net/{B}/flags").read_text(), 16) & 0x100

    rx = receiver("rx", "--promisc")
    check(flags(), "not promiscuous")
    stop(rx)
    check(not flags(), "still promiscuous")


def test_zerocopy() -> None:
    nothing_lost(through(["-z", 0], ["-z", 0], 3000), 3000)
    nothing_lost(through([], ["-z", 0], 2000), 2000)
    nothing_lost(through(["-z", 0, "-l", "80-200"], [], 2000), 2000)
    nothing_lost(through(["-z", 0, "-s", "1.0.0.1-1.0.9.9:1-5"], [], 2000), 2000)
    packets = sent(50, "-z", 0, "-d", "10.0.0.1-10.0.0.9", "-l", 1400, "-F", 2)
    check(len({p["to"] for p in packets}) == 9, "addresses")
    said = run("tx", "-i", "lo", "-z", 0, "-n", 1, code=1)
    check("has no zero-copy mode" in said, said)


def test_ping() -> None:
    kinds: list[list[object]] = [
        ["-6", "--proto", "icmp", "-l", 100],
        ["--vlan", 9, "--proto", "tcp", "-l", 100],
        ["--proto", "icmp", "-l", 100],
        ["-6", "-l", 100],
        [],
    ]
    for words in kinds[:2] if SHORT else kinds:
        pong = receiver("pong")
        with Capture(A) as back, Capture(B) as there:
            r = run_json("ping", "-i", A, "-n", 20, *words)
        answers = json.loads(stop(pong)[0])
        found = r["tx_packets"], r["streams"][0]["received"], r["timeouts"]
        check(found == (20, 20, 0), f"{words}: {found}")
        check(r["streams"][0]["lost"] == 0, r)
        check(0 < r["streams"][0]["latency"]["min_ns"] < 10**9, r["streams"])
        check(answers["tx_packets"] == 20, answers)
        ways = ("from", "to", "from_port", "to_port", "smac", "dmac")
        ((a, b, c, d, e, f),) = set(values(good(there.packets(), 20), *ways))
        (answer,) = set(values(good(back.packets(), 20), *ways))
        check(answer == (b, a, d, c, f, e), answer)


@timed
def test_ping_rate() -> None:
    pong = receiver("pong")
    r = run_json("ping", "-i", A, "-R", 50, "-t", 2)
    stop(pong)
    close(r["tx_packets"], 100, 10, "pings")
    check(r["streams"][0]["received"] == r["tx_packets"], r)


def test_ping_timeout() -> None:
    r = run_json("ping", "-i", A, "-n", 2, code=1)
    check(r["timeouts"] == 2 and not r["streams"], r)


def test_ping_zerocopy() -> None:
    pong = receiver("pong", "-z", 0)
    r = run_json("ping", "-i", A, "-z", 0, "-n", 200)
    stop(pong)
    check(r["streams"][0]["received"] == 200 and not r["timeouts"], r)


def test_ping_sizes() -> None:
    """Pings of several frames, whose bytes both ends count."""
    for words in [], ["-z", 0]:
        for size in 60, 1793, 9014:
            pong = receiver("pong", *words)
            r = run_json("ping", "-i", A, "-l", size, "-n", 20, *words)
            answers = json.loads(stop(pong)[0])
            found = r["streams"][0]["received"], r["timeouts"], r["rx_other"]
            check(found == (20, 0, 0), f"{words} {size}: {r}")
            for end in r, answers:
                for way in "tx", "rx":
                    found = end[f"{way}_packets"], end[f"{way}_bytes"]
                    check(found == (20, 20 * size), f"{words} {size}: {found}")
    pong = receiver("pong", "-n", 7)
    r = run_json("ping", "-i", A, "-R", 1000, "-n", 20)
    check(json.loads(finish(pong)[0])["tx_packets"] == 7, "pong -n")
    check(r["streams"][0]["received"] == 7, r)
