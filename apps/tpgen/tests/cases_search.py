# SPDX-License-Identifier: GPL-2.0
"""tpgen search finds the limit of what is between two interfaces."""

import contextlib
import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator

from harness import Skip, check, close, finish, first_line, run, start, timed

SIZE = 986


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@contextlib.contextmanager
def bridge(*shaper: str) -> Iterator[None]:
    """Between searchA and searchB there is a bridge, with a qdisc on its way out."""
    ip("link", "add", "searchA", "type", "veth", "peer", "name", "searchC")
    ip("link", "add", "searchB", "type", "veth", "peer", "name", "searchD")
    try:
        words = ["ip", "link", "add", "search0", "type", "bridge"]
        made = subprocess.run(
            [*words, "mcast_snooping", "0", "forward_delay", "0"],
            check=False,
            capture_output=True,
            text=True,
        )
        if made.returncode:
            raise Skip(f"no bridge: {made.stderr.strip()}")
        for port in "searchC", "searchD":
            ip("link", "set", port, "master", "search0")
        if shaper:
            words = ["tc", "qdisc", "add", "dev", "searchD", "root", *shaper]
            subprocess.run(words, check=True)
        for end in "search0", "searchA", "searchB", "searchC", "searchD":
            ip("link", "set", end, "up")
        yield
    finally:
        subprocess.run(["ip", "link", "del", "search0"], check=False)
        for end in "searchA", "searchB":
            ip("link", "del", end)


def search(*words: object, code: int = 0) -> dict:
    command = ["search", "-i", "searchA", "--to", "searchB", "-w", 20, *words]
    out, errors = finish(start(*command, "--json", "-"), code)
    check(re.match(r" +bytes +packets/s", errors), errors)
    return json.loads(out)


@timed
def test_search() -> None:
    """Within 2 % of what a token bucket filter lets through in a trial"""
    # Its bucket and its queue take half a second each, so that it does not matter if
    # this machine stops for less.
    rate, extra = 1000000, 500000
    shaper = ["rate", f"{rate * 8}bit", "burst", str(extra), "limit", str(extra)]
    most = rate + 2 * extra / 2
    with bridge("tbf", *shaper):
        r = search("-l", SIZE, "-R", "2k", "-t", 2, "-q")
    (found,) = r["results"]
    check(r["complete"] and found["size"] == SIZE, r)
    check(found["limit"] == "loss", r)
    close(found["pps"], most / SIZE, 2, "the limit")
    close(found["bps"], most * 8, 2, "the limit in bits")
    for t in found["trials"]:
        check(t["passed"] == (t["sent"] == t["received"] > 0 and not t["slow"]), t)
    check(5 < len(found["trials"]) < 25, r)


@timed
def test_search_sizes() -> None:
    """Sizes in turn, all of which pass at the rate asked for"""
    with bridge():
        r = search("-l", "60,512,1514", "-6", "-R", 500, "-t", 0.5, "-q")
    found = [(s["size"], s["limit"], len(s["trials"])) for s in r["results"]]
    want = [(size, "the rate asked for", 1) for size in (80, 512, 1514)]
    check(found == want, r)
    for s in r["results"]:
        close(s["pps"], 500, 1, "the rate")


def test_search_nothing() -> None:
    """A device that forwards nothing has no rate."""
    with bridge():
        ip("link", "set", "searchD", "nomaster")
        r = search("-l", 60, "-R", 100, "-t", 0.1, "--precision", 50, code=1)
        (found,) = r["results"]
        check(found["pps"] == 0 and found["limit"] == "loss", r)
        check(all(t["received"] == 0 for t in found["trials"]), r)


def test_search_loss() -> None:
    """Loss that is tolerated"""
    with bridge("netem", "loss", "20%"):
        r = search("-l", 60, "-R", 200, "-t", 1, "--precision", 50, "--loss", 40)
    (found,) = r["results"]
    # A busy machine may be slow, but some rate passes.
    check(found["pps"] > 0, r)
    for t in found["trials"]:
        lost = 1 - t["received"] / t["sent"]
        check(t["passed"] == (lost <= 0.4 and not t["slow"]), t)
        check(0.05 < lost < 0.4 or t["sent"] < 100, t)


def test_search_ends() -> None:
    """Ctrl-C ends it with what it has, and a device that is missing at once."""
    with bridge():
        process = start(
            *("search", "-i", "searchA", "--to", "searchB", "-l", "60,61"),
            *("-R", 10, "-t", 60, "--json", "-"),
        )
        begun = time.monotonic()
        check("packets/s" in first_line(process), "no table")
        process.send_signal(signal.SIGINT)
        out, _ = finish(process, 1)
        check(time.monotonic() - begun < 30, "it goes on")
        check(json.loads(out)["complete"] is False, out)
        words = "search", "-i", "searchA"
        check("No such device" in run(*words, "--to", "none0", code=1), "--to")
        ip("link", "set", "searchB", "down")
        said = run(*words, "--to", "searchB", "-R", 10, "-w", 0.1, code=1)
        check("no link" in said, said)
    for words in (
        ["--to", "lo", "-n", 1],
        ["--to", "lo", "-l", "imix"],
        ["--to", "lo", "-l", "60,"],
        ["--to", "lo", "-l", "20"],
        ["--to", "lo", "--loss", "100"],
        [],
    ):
        run("search", "-i", "lo", "-R", 1, *words, code=2)
    run("tx", "-i", "lo", "-n", 1, "--to", "lo", code=2)
