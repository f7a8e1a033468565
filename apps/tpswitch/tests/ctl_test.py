#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""ctl_test.py TPSWITCH SWPERF

Tests of tpswitch ctl and of the configuration file, with a ring port. Prints TAP.
"""

import json
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from typing import Any

ADDRESSES = 3000  # as JSON, three messages and more


class Switch:
    """A switch with a configuration file and a ring port"""

    def __init__(self, directory: pathlib.Path, config: str) -> None:
        self.path = directory / "sw"
        self.config = directory / "conf"
        self.errors = directory / "errors"
        self.config.write_text(config)
        command = [sys.argv[1], "-S", str(self.path), "-c", str(self.config)]
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(command, stderr=errors)
        self.wait_for(lambda: self.run("list").returncode == 0)
        command = [sys.argv[2], "-S", str(self.path), "--count", "3600"]
        self.program = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self.wait_for(lambda: "ring1" in self.ctl("list"))

    def wait_for(self, condition: Callable[[], bool]) -> None:
        for _ in range(3000):
            if condition():
                return
            time.sleep(0.02)
        raise AssertionError(f"not in time: {self.errors.read_text()}")

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.argv[1], "ctl", "-S", str(self.path), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def ctl(self, *words: str) -> str:
        done = self.run(*words)
        assert done.returncode == 0 and not done.stderr, done
        return done.stdout

    def json(self, *words: str) -> Any:
        return json.loads(self.ctl("-j", *words))

    def reload(self, config: str) -> str:
        """Change the file; return what the switch says when it has read it."""
        self.config.write_text(config)
        before = len(self.errors.read_text())
        self.process.send_signal(signal.SIGHUP)
        self.wait_for(lambda: "read again" in self.errors.read_text()[before:])
        return self.errors.read_text()[before:]

    def end(self) -> None:
        self.process.terminate()
        assert self.process.wait(60) == 0, self.errors.read_text()
        self.program.kill()
        self.program.wait()


def each_ports(sw: Switch) -> int:
    [each] = [quota for quota in sw.json("quota") if quota["who"] == "each"]
    return each["max"]["ports"]


def check_json(sw: Switch) -> None:
    [port] = sw.json("list")
    assert port["nr"] == 1 and port["name"] == "ring1" and port["type"] == "ring"
    assert port["learning"] and not port["isolated"] and not port["mirror"]
    sw.ctl("limit", "ring1", "pps=7", "macs=9")
    sw.ctl("set", "ring1", "learning=off", "isolated=on")
    [port] = sw.json("list")
    assert not port["learning"] and port["isolated"]
    assert (port["pps"], port["bps"], port["max_macs"]) == (7, 0, 9)
    assert sw.json("macs") == []
    sw.ctl("fix", "ring1", "02:00:00:00:00:01")
    entry = {"address": "02:00:00:00:00:01", "port": "ring1", "fixed": True}
    assert sw.json("macs") == [entry]
    assert (port["vlan"], port["trunk"]) == (None, None)
    sw.ctl("vlan", "ring1", "7")
    [port] = sw.json("list")
    assert (port["vlan"], port["trunk"]) == (7, None)
    sw.ctl("fix", "ring1", "02:00:00:00:00:01")
    assert {**entry, "vlan": 7} in sw.json("macs")
    sw.ctl("unfix", "02:00:00:00:00:01", "7")
    sw.ctl("trunk", "ring1", "9,8", "native=4094")
    [port] = sw.json("list")
    assert (port["vlan"], port["trunk"]) == (4094, "8-9,4094")
    sw.ctl("trunk", "ring1", "9")
    [port] = sw.json("list")
    assert (port["vlan"], port["trunk"]) == (None, "9")
    [counters] = sw.json("count")
    assert sw.json("count", "ring1") == [counters]
    assert counters["port"] == "ring1" and counters["fixed"] == 1
    # A port has the same counters as text.
    lines = [line.split() for line in sw.ctl("count", "ring1").splitlines()]
    del counters["port"]
    assert {name: int(value) for name, value in lines} == counters


def check_tables(sw: Switch) -> None:
    for command in "list", "count", "quota", "macs", "help":
        assert all(len(line) < 80 for line in sw.ctl(command).splitlines())
    header, line = sw.ctl("count").splitlines()
    columns = ["port", "in", "in_bytes", "in_lost", "out", "out_bytes", "out_lost"]
    assert header.split() == columns
    assert line.split()[0] == "ring1" and len(line) == len(header)


def check_help(sw: Switch) -> None:
    text = sw.ctl("help")
    done = sw.run("nonsense")
    assert done.returncode == 1 and "nonsense: no such command" in done.stderr
    names = done.stderr.split(":", 2)[2].replace(",", "").split()
    assert "quota" in names and all(f"\n  {name}" in text for name in names)
    for wrong in [], ["-x", "list"], ["-S"]:
        done = sw.run(*wrong)
        assert done.returncode == 2 and "Commands:" in done.stderr


def check_long_answer(sw: Switch) -> None:
    fixed = set()
    for i in range(ADDRESSES):
        address = f"02:00:00:00:{i >> 8:02x}:{i & 255:02x}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.connect(f"{sw.path}.ctl")
            s.send(f"fix ring1 {address}".encode())
            answer = s.recv(4096)
            if answer == b"0":
                fixed.add(address)
                continue
            # The hash has a random key: in 2 runs of 100, five share a set of four.
            assert b"No space left" in answer, answer
    assert len(fixed) > ADDRESSES - 5
    assert {entry["address"] for entry in sw.json("macs")} == fixed
    assert len(sw.ctl("macs").splitlines()) == len(fixed)


def check_reload(sw: Switch) -> None:
    assert each_ports(sw) == 5
    said = sw.reload("quota each ports=6\n")
    assert "not done" not in said and each_ports(sw) == 6, said
    # A mistake is reported, and the other lines count.
    said = sw.reload("nonsense\nquota each ports=7\n")
    assert "line 1: not done" in said and each_ports(sw) == 7, said
    # Lines that are gone do not end what they said.
    sw.reload("trunk ring1 8-9 native=9\nfix ring1 02:00:00:00:00:01\n")
    assert "trunk 8-9, native 9" in sw.ctl("list")
    said = sw.reload("quota each ports=7\n")
    assert "trunk 8-9, native 9" in sw.ctl("list"), said
    assert sw.ctl("macs") == "02:00:00:00:00:01 ring1 fixed vlan 9\n"
    said = sw.reload("vlan ring1 off\n")
    assert "trunk" not in sw.ctl("list"), said
    # The port of a program is not the file's.
    assert "ring1" in sw.ctl("list")
    # Without the file, all stays as it is.
    sw.config.unlink()
    before = len(sw.errors.read_text())
    sw.process.send_signal(signal.SIGHUP)
    sw.wait_for(lambda: "No such file" in sw.errors.read_text()[before:])
    assert each_ports(sw) == 7 and "ring1" in sw.ctl("list")


def check_hangup(sw: Switch) -> None:
    """Without a file, SIGHUP is an end like others."""
    path = f"{sw.path}-2"
    command = [sys.argv[1], "-S", path]
    with subprocess.Popen(command) as process:
        sw.wait_for(lambda: pathlib.Path(f"{path}.ctl").exists())
        process.send_signal(signal.SIGHUP)
        assert process.wait(60) == 0
    assert not pathlib.Path(path).exists()


CHECKS = (
    check_json,
    check_tables,
    check_help,
    check_long_answer,
    check_reload,
    check_hangup,
)


def main() -> int:
    bad = 0
    for nr, check in enumerate(CHECKS, 1):
        failed = ""
        with tempfile.TemporaryDirectory() as directory:
            sw = Switch(pathlib.Path(directory), "quota each ports=5\n")
            try:
                check(sw)
                sw.end()
            except (AssertionError, ValueError, subprocess.SubprocessError):
                failed = "not "
                bad = 1
                print("# " + traceback.format_exc().replace("\n", "\n# "))
                sw.process.kill()
                sw.program.kill()
        print(f"{failed}ok {nr} - {check.__name__}", flush=True)
    print(f"1..{len(CHECKS)}")
    return bad


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print(__doc__)
        sys.exit(2)
    sys.exit(main())
