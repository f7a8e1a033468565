# SPDX-License-Identifier: GPL-2.0
"""What tpgen tx sends, as tcpdump sees it."""

import json
import re
import time
from collections import Counter
from pathlib import Path

from harness import (
    DIR,
    LIMIT,
    A,
    Capture,
    check,
    counter,
    finish,
    good,
    mtu,
    receiver,
    run,
    sent,
    start,
    values,
)


def test_count_and_size() -> None:
    before = counter(A, "tx_packets")
    said = run("tx", "-i", A, "-n", 1500, "-l", 64, "-q")
    check("sent 1500 packets, 96000 bytes" in said, said)
    check(counter(A, "tx_packets") - before >= 1500, "the device has counted fewer")
    check(all(p["length"] == "100" for p in sent(70, "-l", 100)), "length")


def test_sizes() -> None:
    lengths = [int(p["length"]) for p in sent(50, "-l", "100-109")]
    check(lengths == [100 + i % 10 for i in range(50)], lengths)
    lengths = [
        int(p["length"]) for p in sent(300, "-l", "80-300", "--random", "length")
    ]
    check(min(lengths) >= 80 and max(lengths) <= 300, lengths)
    check(len(set(lengths)) > 100, lengths)
    found = Counter(int(p["length"]) for p in sent(120, "-l", "imix"))
    check(found == {60: 70, 590: 40, 1514: 10}, found)


def test_mix() -> None:
    """Sizes in shares, for all headers, and at random as often."""
    for words, small in (
        (["-6"], 62),
        (["--vlan", 1, "-6", "--proto", "tcp", "--seq"], 96),
        (["--proto", "tcp", "--seq"], 72),
    ):
        packets = sent(24, "-l", "imix", *words)
        found = Counter(int(p["length"]) for p in packets)
        check(found == {small: 14, 590: 8, 1514: 2}, f"{words}: {found}")
    lengths = [int(p["length"]) for p in sent(12, "-l", "100:3,900:1")]
    check(Counter(lengths[:4]) == {100: 3, 900: 1}, lengths)
    check(lengths == lengths[:4] * 3, lengths)
    for size in "60:1", "100:1,x", "9:1", "100:0", "100:257", "100:1,", "100:":
        run("tx", "-i", A, "-n", 1, "-6", "-l", size, code=2)


def test_seed() -> None:
    def addresses(*words: object) -> list[str]:
        words = "-s", "10.0.0.0-10.0.255.255", "--random", "src", *words
        return [p["from"] for p in sent(50, *words)]

    first = addresses()
    check(first == addresses("--seed", 0), "seed 0 is not the default")
    check(addresses("--seed", 1) == addresses("--seed", 1), "seed 1")
    check(first != addresses("--seed", 1), "all seeds are the same")


def test_protocols() -> None:
    for family in "-4", "-6":
        for protocol in "udp", "tcp", "icmp":
            packets = sent(
                6,
                family,
                "--proto",
                protocol,
                "-l",
                "100-103",
                "--ttl",
                9,
                "--tos",
                "0x10",
            )
            for p in packets:
                fields = p.get("ttl") or p.get("hlim"), p.get("tos") or p.get("class")
                check(fields == ("9", "0x10"), p["text"])


def test_addresses_in_turn() -> None:
    packets = sent(24, "-s", "10.0.0.254-10.0.1.1:7-9", "-d", "192.168.0.1:80")
    want = [
        (f"10.0.{a >> 8}.{a & 255}", str(port), "192.168.0.1", "80")
        for a in range(254, 258)
        for port in (7, 8, 9)
    ] * 2
    found = values(packets, "from", "from_port", "to", "to_port")
    check(found == want, found)
    # more than the frames hold, so that they are written
    with Capture(kib=65536) as capture:
        run(
            "tx", "-i", A, "-n", 3000, "-q", "-R", "5k", "-d", "10.1.0.0-10.1.3.255:5-7"
        )
    found = values(good(capture.packets(), 3000), "to", "to_port")
    want = [
        (f"10.1.{a >> 8}.{a & 255}", str(port))
        for a in range(1000)
        for port in (5, 6, 7)
    ]
    check(found == want, "addresses in turn, rewritten")


def test_addresses_ipv6() -> None:
    packets = sent(
        12, "-s", "[fd00::fffe-fd00::1:1]:1-3", "-d", "fd00::9", "--dport", 4000
    )
    want = [
        (a, str(port), "fd00::9", "4000")
        for a in ("fd00::fffe", "fd00::ffff", "fd00::1:0", "fd00::1:1")
        for port in (1, 2, 3)
    ]
    found = values(packets, "from", "from_port", "to", "to_port")
    check(found == want, found)


def test_addresses_random() -> None:
    packets = sent(
        400,
        "-s",
        "10.0.0.0-10.0.255.255:1000-1999",
        "-d",
        "1.2.3.4-1.2.3.7",
        "--dport",
        "1-4",
        "--random",
        "src,sport,dst,dport",
    )
    for name, fewest in ("from", 300), ("from_port", 250), ("to", 4), ("to_port", 4):
        found = {p[name] for p in packets}
        check(len(found) >= fewest, f"{name}: {len(found)} values")
    check(all(1000 <= int(p["from_port"]) < 2000 for p in packets), "ports")
    check(all(p["from"].startswith("10.0.") for p in packets), "addresses")


def test_macs() -> None:
    packets = sent(
        6,
        "-S",
        "02:00:00:00:00:ff-02:00:00:00:01:01",
        "-D",
        "02:00:00:00:00:01-02:00:00:00:00:02",
    )
    want = [
        (f"02:00:00:00:{s >> 8:02x}:{s & 255:02x}", f"02:00:00:00:00:0{d}")
        for d in (1, 2)
        for s in (255, 256, 257)
    ]
    found = values(packets, "smac", "dmac")
    check(found == want, found)
    own = Path(f"/sys/class/net/{A}/address").read_text().strip()
    found = values(sent(1), "smac", "dmac")
    check(found == [(own, "ff:ff:ff:ff:ff:ff")], found)
    macs = {
        p["smac"]
        for p in sent(
            100, "-S", "02:00:00:00:00:00-02:00:ff:00:00:00", "--random", "src-mac"
        )
    }
    check(len(macs) == 100, macs)


def test_vlan() -> None:
    packets = sent(6, "--vlan", "99-101", "--priority", 5, "-6", "-l", 90)
    found = values(packets, "vlan", "priority")
    check(found == [(str(99 + i % 3), "5") for i in range(6)], found)


def test_outer_vlan() -> None:
    words = ["--vlan", "99", "--outer-vlan", "7-9", "--priority", 5, "-l", 90]
    with Capture() as capture:
        run("tx", "-i", A, "-n", 6, "-q", *words)
    good(capture.packets(), 6)
    found = [packet[12:22].hex() for packet in capture.contents()]
    check(found == [f"88a8a00{7 + i % 3}8100a0630800" for i in range(6)], found)
    run("tx", "-i", A, "-n", 1, "--outer-vlan", 7, code=2)


def test_payload() -> None:
    """Behind the headers, with any checksum, size and number of frames."""
    path = DIR / "payload"
    cases = (
        (42, b"\xab\xcd\xef", ["-l", "60-99"]),
        (62, b"\xff", ["-6", "-l", "100-101", "--random", "length"]),
        (54, b"a line\n", ["--proto", "tcp", "-l", "imix", "-s", "10.0.0.1-10.0.9.9"]),
        (46, b"\x00\x01" * 99, ["-l", 5000, "--vlan", 3]),
        (42, b"abc", ["-l", 1001, "-F", 4, "--proto", "icmp"]),
        (60, b"0123456", ["-l", 200, "--seq"]),
    )
    for number, (at, content, words) in enumerate(cases):
        path.write_bytes(content)
        payload = path if number % 2 else f"0x{content.hex()}"
        with Capture() as capture:
            run("tx", "-i", A, "-n", 20, "-q", "--payload", payload, *words)
        good(capture.packets(), 20)
        for packet in capture.contents():
            want = (content * (len(packet) // len(content) + 1))[: len(packet) - at]
            check(packet[at:] == want, f"{words}: {packet[at:].hex()}")
    for wrong in "0x", "0xabc", "0xgg", DIR / "none", "/dev/null":
        run("tx", "-i", A, "-n", 1, "--payload", wrong, code=2)
    said = run("tx", "-i", A, "--payload", "0x00", "-l", "60-9000", code=2)
    check("different sizes" in said, said)


def test_frames() -> None:
    for size, frames in (1500, 3), (8000, None), (9014, 4):
        some = ["-F", frames] if frames else []
        with Capture() as capture:
            run("tx", "-i", A, "-n", 5, "-q", "-l", size, *some)
        found = [int(p["length"]) for p in good(capture.packets(), 5)]
        check(found == [size] * 5, found)
    check("more frames" in run("tx", "-i", A, "-l", 9000, "-F", 1, code=2), "one frame")


def too_long() -> None:
    began = time.monotonic()
    tx = start("tx", "-i", A, "-l", 3000, "-q", "-T", 0.1, "-R", 10)
    out, errors = finish(tx, 1)
    first = errors.splitlines()[0]
    check("a packet was refused: the packet is too long" in first, errors)
    check("packets were refused: the packet is too long" in out, out)
    check("send: the packet is too long" in errors, errors)
    tx = start("tx", "-i", A, "-l", 3000, "-q", "-n", 10, "--json", "-")
    r = json.loads(finish(tx, 1)[0])
    check(r["tx_packets"] == 0 and set(r["refused"]) == {"EMSGSIZE"}, r)
    check(time.monotonic() - began < LIMIT / 2, "it goes on")
    for words in ["-l", "1600-1610"], ["-l", "1600-1605", "--random", "length"]:
        said = run("tx", "-i", A, "-q", "-R", 1000, *words, code=1)
        check("send: the packet is too long" in said, said)
    # Some can be sent, so it goes on.
    tx = start("tx", "-i", A, "-q", "-l", "1505-1534", "-n", 100, "--json", "-")
    r = json.loads(finish(tx, 1)[0])
    check(r["tx_packets"] == 100 and r["refused"]["EMSGSIZE"] >= 100, r)
    said = run("ping", "-i", A, "-q", "-l", 1600, "-n", 3, code=1)
    check("send: the packet is too long" in said, said)


def test_too_long() -> None:
    """What cannot be sent is told at once, and ends the run if nothing else can."""
    with mtu(1500):
        too_long()


def test_dump() -> None:
    with Capture() as capture:
        said, _ = finish(start("tx", "-i", A, "-n", 3, "-q", "--dump=2", "-l", 75))
    lines = re.findall(r"^[0-9a-f]{6}  ((?:[0-9a-f]{2} )+)", said, re.MULTILINE)
    found = bytes.fromhex("".join(lines))
    check(found == b"".join(capture.contents()[:2]), said)
    rx = receiver("rx", "-n", 1, "-X")
    run("tx", "-i", A, "-n", 1, "-q", "-l", 66)
    check("# received, 66 bytes" in finish(rx)[0], "rx -X")
    # Packets of several frames as a whole
    rx = receiver("rx", "-n", 1, "-X")
    with Capture() as capture:
        said, _ = finish(start("tx", "-i", A, "-n", 1, "-q", "-X", "-l", 8000))
    for text in said, finish(rx)[0]:
        check("8000 bytes" in text, text[:80])
        lines = re.findall(r"^[0-9a-f]{6}  ((?:[0-9a-f]{2} )+)", text, re.MULTILINE)
        check(bytes.fromhex("".join(lines)) == capture.contents()[0], text[:80])
