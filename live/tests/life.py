#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Loads and unloads the module under traffic and open sockets. Runs in the guest, as root.

life.py MODULE [OTHER]

OTHER is a module for another kernel. MODULE is not loaded before, nor afterwards. Each test
waits for what it is about, for a minute at most.
"""

import errno
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

SOL_PACKET, PACKET_STATISTICS, PACKET_VERSION, PACKET_FANOUT = 263, 6, 10, 18
TPACKET_V4 = 3
PROTOCOL = 0x88B5
PATIENCE = 60
LOADED = Path("/sys/module/tpacket4")
ENABLED = LOADED / "parameters/enabled"
NEAR, FAR = "liveA", "liveB"
FRAME = b"\xff" * 6 + b"\x02\0\0\0\0\1" + struct.pack("!H", PROTOCOL) + bytes(50)


class Skip(Exception):
    """A test cannot run; says why."""


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def fails(*command: str) -> bool:
    return subprocess.run(command, check=False, capture_output=True).returncode != 0


def until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited {PATIENCE} s: {what}")
        time.sleep(0.02)


def expect(condition: bool, what: str) -> None:
    if not condition:
        raise AssertionError(what)


class Log:
    """What the kernel says from now on."""

    def __init__(self) -> None:
        self.fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(self.fd, 0, os.SEEK_END)
        self.text = ""

    def has(self, what: str) -> bool:
        while True:
            try:
                record = os.read(self.fd, 8192).decode(errors="replace")
            except BlockingIOError:
                return what in self.text
            except BrokenPipeError:
                continue  # the oldest are lost
            self.text += record.partition(";")[2]


def open_socket(device: str = FAR) -> socket.socket:
    sock = socket.socket(
        socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.htons(PROTOCOL)
    )
    sock.bind((device, PROTOCOL))
    return sock


def is_ours(sock: socket.socket) -> bool:
    try:
        sock.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V4)
    except OSError as err:
        expect(err.errno == errno.EINVAL, f"TPACKET_V4: {err}")
        return False
    return True


def new_is_ours() -> bool:
    with open_socket() as sock:
        return is_ours(sock)


def count(sock: socket.socket) -> int:
    """Packets since the last call. Nobody reads them, so most are dropped."""
    packets, _ = struct.unpack("II", sock.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
    return packets


def join(sock: socket.socket, group: int) -> int:
    try:
        sock.setsockopt(SOL_PACKET, PACKET_FANOUT, group)
    except OSError as err:
        return err.errno or -1
    return 0


def receives(sock: socket.socket, what: str) -> None:
    count(sock)
    until(lambda: count(sock) > 0, f"{what} receives nothing")


class Traffic(threading.Thread):
    """Sends by a socket that is older than the module."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.sock = open_socket(NEAR)
        self.on = True

    def run(self) -> None:
        while self.on:
            try:
                self.sock.send(FRAME)
            except OSError as err:
                if err.errno not in (errno.ENOBUFS, errno.ENETDOWN):
                    raise
            time.sleep(0.001)


def other_process(code: str, *prefix: str) -> "subprocess.Popen[bytes]":
    """Runs code of Python with `s`, a packet socket, until its stdin is closed."""
    code = (
        "import socket, sys\n"
        f"s = socket.socket(17, 3, socket.htons({PROTOCOL}))\n"
        f"{code}\nprint('ready', flush=True)\nsys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [*prefix, sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout
    expect(process.stdout.readline() == b"ready\n", "the other process has died")
    return process


def end(process: "subprocess.Popen[bytes]") -> None:
    process.communicate(b"")


class Tests:
    def __init__(self, module: str, other: str | None) -> None:
        self.module, self.other = module, other
        self.log = Log()
        self.old = open_socket()
        self.traffic = Traffic()

    def copy(self, *edits: tuple[bytes, bytes]) -> str:
        """The module with strings replaced by others of the same length."""
        data = Path(self.module).read_bytes()
        for old, new in edits:
            data = data.replace(old, new)
        with tempfile.NamedTemporaryFile(suffix=".ko", delete=False) as file:
            file.write(data)
        return file.name

    def load(self) -> None:
        run("insmod", self.module)

    def unload(self) -> None:
        until(lambda: not fails("rmmod", "tpacket4"), "the module is in use")

    # The tests, in this order

    def another_release(self) -> None:
        """A module that was built for another release is refused by itself, in words.

        What the kernel compares, its vermagic, is that of this release.
        """
        release = os.uname().release.encode()
        # The compiler compares eight bytes at a time.
        old, new = release[:8], b"0" + release[1:8]
        path = self.copy((old, new), (b"vermagic=" + new, b"vermagic=" + old))
        expect(fails("insmod", path), "it was loaded")
        expect(not LOADED.exists(), "it is loaded")
        expect(self.log.has("built for Linux 0"), "the log does not say why")

    def another_kernel(self) -> None:
        """A module of another kernel is refused, in words."""
        if not self.other:
            raise Skip("there is no module for another kernel")
        expect(fails("insmod", self.other), "it was loaded")
        expect(not LOADED.exists(), "it is loaded")
        reasons = "built for Linux", "version magic", "disagrees about version"
        expect(any(map(self.log.has, reasons)), "the log does not say why")

    def ftrace_is_off(self) -> None:
        """Without ftrace, it is refused, in words."""
        run("sysctl", "-qw", "kernel.ftrace_enabled=0")
        try:
            expect(fails("insmod", self.module), "it was loaded")
        finally:
            run("sysctl", "-qw", "kernel.ftrace_enabled=1")
        expect(self.log.has("kernel.ftrace_enabled is 0"), "the log does not say why")

    def loaded_under_traffic(self) -> None:
        """New sockets are the module's; the older ones go on."""
        self.traffic.start()
        receives(self.old, "the old socket")
        self.load()
        expect(new_is_ours(), "a new socket has no V4")
        expect(not is_ours(self.old), "the old socket has V4")
        receives(self.old, "the old socket")
        with open_socket() as sock:
            receives(sock, "a new socket")

    def ftrace_stays_on(self) -> None:
        expect(
            fails("sysctl", "-qw", "kernel.ftrace_enabled=0"),
            "ftrace can be turned off under the module",
        )
        expect(new_is_ours(), "a new socket has no V4")

    def twice(self) -> None:
        """A second one is refused, and the first one stays."""
        expect(fails("insmod", self.module), "it was loaded twice")
        path = self.copy((b"tpacket4", b"tpacket5"))
        expect(fails("insmod", path), "it was loaded under another name")
        expect(self.log.has("another live patch"), "the log does not say why")
        expect(new_is_ours(), "a new socket has no V4")
        receives(self.old, "the old socket")

    def in_use(self) -> None:
        """Unloading is refused while a socket is open, and the log has its owner."""
        process = other_process(
            f"s.setsockopt({SOL_PACKET}, {PACKET_VERSION}, {TPACKET_V4})"
        )
        expect(fails("rmmod", "tpacket4"), "it was unloaded under a socket")
        expect(new_is_ours(), "a new socket has no V4")
        ENABLED.write_text("0")
        expect(not new_is_ours(), "a new socket has V4, although it is not enabled")
        with open(f"/proc/{process.pid}/comm") as file:
            owner = (
                f"in use by a packet socket of {file.read().strip()} ({process.pid})"
            )
        expect(self.log.has(owner), f"the log does not say: {owner}")
        ENABLED.write_text("1")
        expect(new_is_ours(), "a new socket has no V4")
        end(process)

    def shown(self) -> None:
        """The kernel shows the module's sockets as its own."""
        with open_socket() as sock:
            inode = str(os.fstat(sock.fileno()).st_ino)
            text = Path("/proc/net/packet").read_text()
            expect(inode in text, "/proc/net/packet lacks it")
            text = subprocess.run(
                ["ss", "-0pe"], check=True, capture_output=True, text=True
            ).stdout
            expect(f"ino:{inode} " in text, "ss lacks it")
            expect(f"pid={os.getpid()}," in text, "ss lacks its process")

    def fanout(self) -> None:
        """Groups do not mix old and new sockets, and outlive their device going down."""
        expect(join(self.old, 7) == 0, "the old socket cannot join a group")
        with open_socket() as one, open_socket() as two, open_socket() as three:
            expect(join(one, 7) == errno.EBUSY, "a new socket joined an old group")
            expect(
                self.log.has("fanout group 7 has sockets from before"),
                "the log does not say why",
            )
            expect(join(two, 8) == 0, "no new group")
            expect(join(three, 8) == 0, "no second member")
            run("ip", "link", "set", FAR, "down")
            run("ip", "link", "set", FAR, "up")
            receives(self.old, "the old socket")
            until(lambda: count(two) + count(three) > 0, "no member receives")

    def device_leaves(self) -> None:
        run("ip", "link", "add", "liveC", "type", "veth", "peer", "name", "liveD")
        run("ip", "link", "set", "liveC", "up")
        with open_socket("liveC") as sock:
            run("ip", "link", "del", "liveC")
            sock.settimeout(PATIENCE)
            try:
                sock.recv(1)
                raise AssertionError("it received")
            except OSError as err:
                expect(err.errno == errno.ENETDOWN, f"recv: {err}")

    def namespaces(self) -> None:
        """They come and go, with sockets of the module, also while it is unloaded."""
        for name in "liveX", "liveY":
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        enter = "ip", "netns", "exec", "liveX"
        process = other_process("s.bind(('lo', 3))", *enter)
        run("ip", "netns", "del", "liveX")
        expect(fails("rmmod", "tpacket4"), "it was unloaded under a socket")
        end(process)
        self.unload()
        run("ip", "netns", "del", "liveY")
        expect(not new_is_ours(), "a new socket has V4 after rmmod")
        receives(self.old, "the old socket")
        self.load()

    def again_and_again(self) -> None:
        """Ten times, while another thread opens and closes sockets."""
        stop = False
        seen = {True: 0, False: 0}

        def churn() -> None:
            while not stop:
                seen[new_is_ours()] += 1
                time.sleep(0.1)  # or the module would hardly ever be free

        thread = threading.Thread(target=churn, daemon=True)
        thread.start()
        for _ in range(10):
            self.unload()
            self.load()
        stop = True
        thread.join()
        expect(seen[True] > 0 and seen[False] > 0, f"of both kinds: {seen}")
        receives(self.old, "the old socket")

    def unloaded(self) -> None:
        self.unload()
        expect(not new_is_ours(), "a new socket has V4 after rmmod")
        receives(self.old, "the old socket")
        with open_socket() as sock:
            receives(sock, "a new socket")
        self.traffic.on = False
        self.traffic.join()


# Each begins where the one before it has ended.
ORDER = """
another_release another_kernel ftrace_is_off loaded_under_traffic ftrace_stays_on twice in_use
shown fanout device_leaves namespaces again_and_again unloaded
"""


def main() -> int:
    if len(sys.argv) not in (2, 3) or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 0 if sys.argv[1:] else 2
    run("ip", "link", "add", NEAR, "type", "veth", "peer", "name", FAR)
    for device in NEAR, FAR:
        run("sysctl", "-qw", f"net.ipv6.conf.{device}.disable_ipv6=1")
        run("ip", "link", "set", device, "up")
    tests = Tests(sys.argv[1], *(sys.argv[2:] or [None]))
    failed = 0
    for number, name in enumerate(ORDER.split(), 1):
        try:
            getattr(tests, name)()
            print(f"ok {number} {name}", flush=True)
        except Skip as why:
            print(f"ok {number} {name} # SKIP {why}", flush=True)
        except (AssertionError, OSError, subprocess.CalledProcessError) as err:
            said = (getattr(err, "stderr", None) or b"").decode().strip()
            print(f"# error: {err} {said}\nnot ok {number} {name}", flush=True)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
