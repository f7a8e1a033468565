# SPDX-License-Identifier: GPL-2.0
"""Reports, signals, and options that are refused."""

import json
import os
import re
import signal
import subprocess
import time
import xml.etree.ElementTree

from files import TIMED, pcap, write
from harness import (
    DIR,
    LIMIT,
    A,
    B,
    check,
    close,
    counter,
    finish,
    first_line,
    receiver,
    run,
    run_json,
    start,
    stop,
    stop_json,
    threads_run,
    timed,
)


def test_ctrl_c() -> None:
    for words in (
        ["tx", "-R", "100"],
        ["tx", "-R", "0.1"],
        ["tx"],
        ["rx"],
        ["pong"],
        ["ping", "-R", "5"],
        ["replay", "-f", write(pcap(TIMED)), "-L", 0],
    ):
        process = start(*words[:1], "-i", A, *words[1:])
        time.sleep(1.2)
        before = time.monotonic()
        # No ping is answered.
        out, _ = stop(process, int(words[0] == "ping"))
        seconds = time.monotonic() - before
        check(re.search(r"^(sent|received) \d+ packets", out, re.MULTILINE), out)
        check(seconds < 5, f"{words}: {seconds:.1f} s")


def test_signals() -> None:
    """Each signal that ends a run leaves its summary, unless it is ignored."""
    for number in signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT:
        process = start("rx", "-i", A, "--json", DIR / "signals")
        check("ready" in first_line(process), "not ready")
        process.send_signal(number)
        check("received 0 packets" in finish(process)[0], number)
        check(json.loads((DIR / "signals").read_text())["mode"] == "rx", number)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        process = start("rx", "-i", B, "-n", 1)
    finally:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    check("ready" in first_line(process), "not ready")
    process.send_signal(signal.SIGHUP)
    run("tx", "-i", A, "-n", 1, "-q")
    check("received 1 packets" in finish(process)[0], "SIGHUP was not ignored")


def test_outputs() -> None:
    """A file that cannot be written ends the program before it sends."""
    before = counter(A, "tx_packets")
    for option in "--json", "--plot":
        said = run("tx", "-i", A, "-n", 9, option, DIR / "no/such", code=1)
        check("No such file" in said and "sent" not in said, said)
    check(counter(A, "tx_packets") == before, "packets were sent")
    # Nobody reads the summary, but the file is complete.
    process = start("tx", "-i", A, "-q", "-R", 10, "--json", DIR / "json")
    assert process.stdout and process.stderr
    process.stdout.close()
    threads_run(process)
    process.send_signal(signal.SIGINT)
    said = process.stderr.read()
    check(process.wait(LIMIT) == 1 and "Broken pipe" in said, said)
    check(json.loads((DIR / "json").read_text())["mode"] == "tx", "JSON")


def test_ready() -> None:
    """What is sent after rx has said that it is ready is received."""
    process = start("rx", "-i", B, "-q", "--seq", "-n", 100)
    said = first_line(process)
    check(said == f"tpgen: {B}: ready\n", said)
    run("tx", "-i", A, "-n", 300, "-q", "--seq")
    said = finish(process)[0]
    check("received 100 packets" in said and " 0 lost" in said, said)


@timed
def test_time() -> None:
    r = run_json("tx", "-i", A, "-t", "1.5", "-R", "200")
    close(r["seconds"], 1.5, 20, "time")


def test_interval() -> None:
    said = run("tx", "-i", A, "-R", "100", "-t", "1.2", "-T", "0.25")
    lines = re.findall(r"^ *\d+\.\d s  sent ", said, re.MULTILINE)
    check(3 <= len(lines) <= 5, said)
    check("sent" not in finish(start("tx", "-i", A, "-n", 9, "-q"))[1], "-q")


def test_json() -> None:
    path = DIR / "json"
    said = run("tx", "-i", A, "-n", 10, "-q", "--json", path)
    r = json.loads(path.read_text())
    check(r["mode"] == "tx" and r["tx_packets"] == 10 and r["tx_bytes"] == 600, r)
    check("sent 10 packets" in said, said)


def test_json_stream() -> None:
    """A line for each interval while the program runs, and a summary besides."""
    rx = receiver("rx", "-T", "0.05", "--json-stream", DIR / "stream")
    tx = start("tx", "-i", A, "-R", 500, "-T", "0.05", "-q", "--json-stream", "-")
    assert tx.stdout
    lines = [json.loads(tx.stdout.readline())]
    while len(lines) < 4 or lines[-1]["tx_packets"] == lines[0]["tx_packets"]:
        lines.append(json.loads(tx.stdout.readline()))
    tx.send_signal(signal.SIGINT)
    rest, errors = finish(tx)
    lines += [json.loads(line) for line in rest.splitlines()]
    check("sent " in errors, errors)
    for name in "seconds", "tx_packets", "tx_bytes":
        found = [line[name] for line in lines]
        check(found == sorted(found) and found[-1] > found[0], found)
    check(all(line["tx_pps"] >= 0 and not line["rx_packets"] for line in lines), lines)
    received = stop_json(rx)["rx_packets"]
    lines = [json.loads(line) for line in (DIR / "stream").read_text().splitlines()]
    check(0 < lines[-1]["rx_packets"] <= received, lines)


def test_names() -> None:
    """The name of an interface is in the JSON text as it is."""
    for name in "zürich0", 'a"b\\c', os.fsdecode(b"latin\xfc"):
        subprocess.run(["ip", "link", "set", B, "down"], check=True)
        subprocess.run(["ip", "link", "set", B, "name", name], check=True)
        try:
            subprocess.run(["ip", "link", "set", name, "up"], check=True)
            r = run_json("rx", "-i", name, "-t", "0.1", "-w", 10)
            check(r["interface"] == name, r)
        finally:
            subprocess.run(["ip", "link", "set", name, "down"], check=True)
            subprocess.run(["ip", "link", "set", name, "name", B], check=True)
            subprocess.run(["ip", "link", "set", B, "up"], check=True)
    run("tx", "-i", A, "-n", 1, "-q", "-w", 10)


def test_memory() -> None:
    """A user without CAP_IPC_LOCK can send and receive with the default limit."""
    user = "setpriv --reuid 65534 --inh-caps +net_raw --ambient-caps +net_raw"
    prefix = (*user.split(), "prlimit", f"--memlock={8 << 20}")
    rx = start("rx", "-i", B, "-n", 100, "-q", "--seq", prefix=prefix)
    said = first_line(rx)
    check("ready" in said, said)
    out, errors = finish(
        start("tx", "-i", A, "-n", 100, "-q", "--seq", "-l", 3000, prefix=prefix)
    )
    check("sent 100 packets" in out, out + errors)
    check("received 100 packets" in finish(rx)[0], "rx")


def test_plot() -> None:
    path = DIR / "plot.svg"
    pong = receiver("pong")
    run("ping", "-i", A, "-q", "-R", 100, "-t", 1.5, "-T", 0.2, "--plot", path)
    stop(pong)
    lines = [
        e
        for e in xml.etree.ElementTree.parse(path).iter()
        if e.tag.endswith("polyline")
    ]
    check(len(lines) == 5, f"{len(lines)} lines")  # two rates, three of latency
    check(all(4 <= len(e.get("points").split()) <= 8 for e in lines), "points")


def test_link() -> None:
    subprocess.run(["ip", "link", "set", B, "down"], check=True)
    try:
        said = run("tx", "-i", A, "-n", 1, "-w", "0.3", code=1)
        check("no link" in said, said)
    finally:
        subprocess.run(["ip", "link", "set", B, "up"], check=True)
    r = run_json("tx", "-i", A, "-n", 1, "-w", 10)
    check(r["tx_packets"] == 1, r)


def test_link_lost() -> None:
    """The summary and an error follow when the device goes away."""
    process = start("rx", "-i", B)
    said = first_line(process)
    subprocess.run(["ip", "link", "set", B, "down"], check=True)
    try:
        out, errors = finish(process, 1)
        check(
            "received 0 packets" in out and "the device is down" in errors,
            said + out + errors,
        )
    finally:
        subprocess.run(["ip", "link", "set", B, "up"], check=True)
        run("tx", "-i", A, "-n", 1, "-q", "-w", 10)


def test_refused_options() -> None:
    for words, why in (
        ("tx", "-R 0"),
        ("tx", "-R 5x"),
        ("tx", "-l 59-40"),
        ("tx", "-l 20"),
        ("tx", "-s 1.2.3"),
        ("tx", "-s 1.2.3.4 -d ::1"),
        ("tx", "-S 1:2"),
        ("tx", "--random sport"),
        ("tx", "--random colour"),
        ("tx", "--poisson"),
        ("tx", "--launch fq"),
        ("tx", "--priority 1"),
        ("tx", "-z 0 --qdisc"),
        ("tx", "-z 0 -p 2"),
        ("tx", "-f x"),
        ("rx", "-l 60"),
        ("rx", "-R 1"),
        ("replay", ""),
        ("tx", "--proto icmp --sport 1"),
        ("tx", "--ring 300"),
        ("tx", "-d 10.0.0.9-10.0.0.1"),
        ("pong", "--seq"),
        ("tx", "-n 0"),
        ("tx", "-p 2 -a 0"),
        ("sing", ""),
        ("tx", "-s fd00::1-fd01::1"),
    ):
        run(words, "-i", A, *why.split(), code=2)
    check("No such device" in run("tx", "-i", "nothing0", code=1), "no device")
    check("usage: tpgen" in run("--help"), "--help")
    check("tpgen" in run("--version"), "--version")
