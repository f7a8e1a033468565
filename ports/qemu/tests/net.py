#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A guest on -netdev tpacket4, on a veth pair.

    net.py QEMU KERNEL INIT

As root, on User Mode Linux with V4, in a machine of its own: QEMU with ports/qemu boots KERNEL with
INIT, which is built from guest.c. Output is TAP.
"""

import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
from tap import end, result

PATIENCE = 60
HOST, GUEST, GUEST6 = "10.77.0.1", "10.77.0.2", "fd77::2"
PORT = 7
NET = Path("/sys/class/net")
# The guest gets whole packets, or segments with checksums.
OFFLOADS = "csum", "guest_csum", "gso", "guest_tso4", "guest_tso6", "host_tso4"


def run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=PATIENCE)


def wait_for(what: Callable[[], bool], why: str) -> None:
    end_of = time.monotonic() + PATIENCE
    while not what():
        if time.monotonic() > end_of:
            raise RuntimeError(f"{why}: not after {PATIENCE} s")
        time.sleep(0.01)


class Lines:
    """A UNIX socket of QEMU's, with a line for each question and answer."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE)
        # The file is there before QEMU listens.
        wait_for(lambda: self.socket.connect_ex(str(path)) == 0, str(path))
        self.file = self.socket.makefile("rw")

    def read(self) -> str:
        line = self.file.readline()
        if not line:
            raise RuntimeError("QEMU has ended")
        return line.strip()

    def write(self, line: str) -> None:
        self.file.write(line + "\n")
        self.file.flush()


class Guest:
    """QEMU and its guest."""

    def __init__(self, qemu: str, kernel: str, init: str, *more: str) -> None:
        self.program = qemu, kernel, init
        self.dir = Path(tempfile.mkdtemp())
        self.events: list[str] = []
        root = self.dir / "root"
        for name in "dev", "proc", "sys":
            (root / name).mkdir(parents=True)
        shutil.copy(init, root / "init")
        self.messages = self.dir / "messages"
        self.console = self.dir / "console"
        args = f"""-nodefaults -no-user-config -no-reboot -display none -M q35 -cpu max
            -accel tcg -m 192 -kernel {kernel}
            -fsdev local,id=root,path={root},security_model=none,readonly=on
            -device virtio-9p-pci,fsdev=root,mount_tag=root
            -serial file:{self.console}
            -serial unix:{self.dir}/agent,server=on,wait=off
            -qmp unix:{self.dir}/qmp,server=on,wait=off
            -global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off
            -device pcie-root-port,id=port0,chassis=1
            -netdev tpacket4,id=n0,ifname=tp4A
            -device virtio-net-pci,id=card,bus=port0,netdev=n0,romfile=""".split()
        args += ["-append", "console=ttyS0 panic=-1 tsc=reliable no_timer_check quiet"]
        args[-1] += " root=root rootfstype=9p ro init=/init"
        args[-1] += " rootflags=trans=virtio,version=9p2000.L"
        args += more
        # QEMU must not write to a pipe that nobody reads.
        with self.messages.open("w", encoding="ascii") as err:
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                [qemu, *args], stderr=err, stdin=subprocess.DEVNULL
            )

    def connect(self) -> None:
        self.qmp = Lines(self.dir / "qmp")
        self.qmp.read()
        self.ask("qmp_capabilities")
        self.agent = Lines(self.dir / "agent")

    def start(self) -> None:
        self.connect()
        if self.agent.read() != "ready":
            raise RuntimeError("the guest is not ready")

    def ask(self, command: str, **arguments: Any) -> Any:
        """A command of QEMU's monitor. Returns its result, or the error as an exception."""
        words = {"execute": command, "arguments": arguments}
        self.qmp.write(json.dumps(words))
        while True:
            answer = json.loads(self.qmp.read())
            if "error" in answer:
                raise ValueError(answer["error"]["desc"])
            if "return" in answer:
                return answer["return"]
            self.events.append(answer["event"])

    def wait_for_event(self, name: str) -> None:
        while name not in self.events:
            self.events.append(json.loads(self.qmp.read())["event"])
        self.events.clear()

    def info(self) -> str:
        """What info network says about the netdev."""
        command = {"command-line": "info network"}
        text = self.ask("human-monitor-command", **command)
        found = re.findall(r"type=tpacket4,(.*)", text)
        return "; ".join(line.strip() for line in found)

    def tell(self, command: str) -> None:
        self.agent.write(command)
        answer = self.agent.read()
        if answer != "ok":
            raise RuntimeError(f"{command}: {answer}")

    def said(self) -> list[str]:
        return self.messages.read_text(encoding="ascii").splitlines()

    def swap(self, netdev: dict[str, Any] | None, **device: Any) -> None:
        """Replaces the card, and its netdev too if there is a new one."""
        self.ask("device_del", id="card")
        self.tell("unplug")
        self.wait_for_event("DEVICE_DELETED")
        if netdev:
            self.ask("netdev_del", id="n0")
            self.ask("netdev_add", type="tpacket4", id="n0", **netdev)
        self.ask(
            "device_add",
            driver="virtio-net-pci",
            id="card",
            bus="port0",
            netdev="n0",
            romfile="",
            **device,
        )
        self.tell("plug")
        self.tell("up 9000")
        self.tell("carrier 1")

    def close(self) -> int:
        try:
            if self.process.poll() is None:
                self.qmp.write(json.dumps({"execute": "quit"}))
            return self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.process.wait()
            shutil.rmtree(self.dir)


def connect(address: str) -> socket.socket:
    """A connection that does not stay behind when the guest is gone"""
    s = socket.create_connection((address, PORT), PATIENCE)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return s


def transfer(
    address: str, size: int, meanwhile: Callable[[], None] | None = None
) -> str:
    """Sends bytes that the guest sends back. Returns what is wrong with them."""
    data = os.urandom(size)
    got = bytearray()
    half = threading.Event()
    with connect(address) as s:

        def send() -> None:
            s.sendall(data[: size // 2])
            half.set()
            s.sendall(data[size // 2 :])
            s.shutdown(socket.SHUT_WR)

        def receive() -> None:
            while part := s.recv(1 << 16):
                got.extend(part)

        threads = [threading.Thread(target=job, daemon=True) for job in (send, receive)]
        for thread in threads:
            thread.start()
        if meanwhile:
            half.wait(PATIENCE)
            meanwhile()
        for thread in threads:
            thread.join(2 * PATIENCE)
            if thread.is_alive():
                return f"{len(got)} of {size} bytes are back"
    return "" if got == data else f"{len(got)} bytes are back, or not the same"


def ping(size: int = 56) -> str:
    """Pings the guest 20 times, and waits for all answers. Returns what is wrong."""
    lost = set(range(20))
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as s:
        s.settimeout(PATIENCE)
        for seq in range(20):
            # An echo request, with 0 instead of the checksum, and with it
            data = struct.pack("!BBHHH", 8, 0, 0, os.getpid() & 0xFFFF, seq)
            total = sum(struct.unpack("!4H", data))
            total = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
            data = data[:2] + struct.pack("!H", total) + data[4:] + bytes(size)
            s.sendto(data, (GUEST, 0))
        while lost:
            try:
                answer = s.recv(1 << 16)[20:]
            except TimeoutError:
                return f"no answer to {lost}"
            kind, _, _, ident, seq = struct.unpack("!BBHHH", answer[:8])
            if (kind, ident) == (0, os.getpid() & 0xFFFF):
                lost.discard(seq)
    return ""


def counter(name: str) -> int:
    return int((NET / "tp4B/statistics" / name).read_text(encoding="ascii"))


def packet_sizes(size: int, address: str) -> tuple[str, float, float]:
    """A transfer, and the mean length of packets from and to the guest."""
    names = "rx_bytes", "rx_packets", "tx_bytes", "tx_packets"
    before = [counter(name) for name in names]
    wrong = transfer(address, size)
    rx_bytes, rx, tx_bytes, tx = (counter(n) - b for n, b in zip(names, before))
    return wrong, rx_bytes / max(rx, 1), tx_bytes / max(tx, 1)


def set_mtu(guest: Guest, mtu: int) -> None:
    for name in "tp4A", "tp4B":
        run("ip", "link", "set", name, "mtu", str(mtu))
    guest.tell(f"up {mtu}")


def test_traffic(guest: Guest, title: str, whole: bool) -> None:
    """Pings and TCP; with offloads, the pair carries packets longer than its MTU."""
    wrong = ping(1400)
    result(not wrong, f"{title}: ping", wrong)
    for mtu in 1500, 9000:
        set_mtu(guest, mtu)
        for address in GUEST, GUEST6:
            wrong, rx, tx = packet_sizes(2 << 20, address)
            good = not wrong and (not whole or min(rx, tx) > mtu)
            result(good, f"{title}: TCP to {address}, MTU {mtu}", wrong, rx, tx)


def test_link(guest: Guest) -> None:
    """A connection outlives a link that is down for a while."""

    def set_link() -> None:
        guest.ask("set_link", name="n0", up=False)
        guest.tell("carrier 0")
        guest.ask("set_link", name="n0", up=True)
        guest.tell("carrier 1")

    def device() -> None:
        run("ip", "link", "set", "tp4A", "down")
        guest.tell("carrier 0")
        run("ip", "link", "set", "tp4A", "up")
        guest.tell("carrier 1")

    for title, meanwhile in ("set_link", set_link), ("device", device):
        wrong = transfer(GUEST, 4 << 20, meanwhile)
        result(not wrong, f"{title} down and up during TCP", wrong)
        wrong = ping()
        result(not wrong, f"{title} down and up: ping", wrong)
    said = [line for line in guest.said() if "the device tp4A is down" in line]
    result(len(said) == 1, "one message for a device that is down", *guest.said())


def test_unplug(guest: Guest) -> None:
    """The card goes during a transfer, and another one comes."""
    with connect(GUEST) as s:

        def send() -> None:
            with suppress(OSError):
                while True:
                    s.sendall(bytes(1 << 16))

        def receive() -> None:
            with suppress(OSError):
                while s.recv(1 << 16):
                    pass

        enough = counter("rx_bytes") + (1 << 20)
        threads = [threading.Thread(target=job, daemon=True) for job in (send, receive)]
        for thread in threads:
            thread.start()
        wait_for(lambda: counter("rx_bytes") > enough, "traffic")
        guest.swap(None, **dict.fromkeys(OFFLOADS, False))
        s.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()
    test_traffic(guest, "new card without offloads", False)


def test_stop(guest: Guest) -> None:
    def stop() -> None:
        guest.ask("stop")
        guest.ask("cont")

    wrong = transfer(GUEST, 4 << 20, stop)
    result(not wrong, "the guest stops and goes on during TCP", wrong)


def test_migration(guest: Guest) -> Guest:
    """The guest moves to another QEMU on the same device, and a connection goes on."""
    uri = f"unix:{guest.dir}/migration"
    other = Guest(*guest.program, "-incoming", uri)
    other.connect()

    def migrate() -> None:
        # If it runs meanwhile, emulated and with this load, it often hangs or dies after it,
        # on a tap too.
        guest.ask("stop")
        guest.ask("migrate", uri=uri)
        wait_for(lambda: other.ask("query-status")["status"] == "paused", "migration")
        other.ask("cont")

    wrong = transfer(GUEST, 8 << 20, migrate)
    result(not wrong, "the guest migrates during TCP", wrong, *other.said())
    status = guest.close()
    result(status == 0, "QEMU without the guest ends", status)
    test_traffic(other, "migrated", True)
    return other


def test_zerocopy(guest: Guest) -> None:
    guest.swap({"ifname": "tp4A", "zerocopy": "on"})
    info = guest.info()
    result(info == "ifname=tp4A,queue=0,mode=zero-copy", "zero-copy mode", info)
    test_traffic(guest, "zero-copy", False)
    # The device refuses a packet, and is not asked for anything from then on.
    run("ip", "link", "set", "tp4A", "mtu", "1500")
    guest.tell("send 4000")
    guest.tell("send 1")
    wait_for(lambda: "offloads by QEMU" in guest.info(), "a refused packet")
    test_traffic(guest, "offloads by QEMU", False)


def test_queues(guest: Guest) -> None:
    """The flows of two queues, which a wrong one would not reach"""
    guest.swap({"ifname": "tp4A", "queues": 2}, mq=True, vectors=6)
    guest.tell("channels 2")
    wrong = [transfer(GUEST, 1 << 16) for _ in range(16)]
    result(not any(wrong), "two queues", *wrong)


def test_passed(guest: Guest) -> None:
    """A socket of another process"""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as s:
        words = {"execute": "getfd", "arguments": {"fdname": "passed"}}
        line = json.dumps(words) + "\n"
        socket.send_fds(guest.qmp.socket, [line.encode("ascii")], [s.fileno()])
    while "return" not in json.loads(guest.qmp.read()):
        pass
    guest.swap({"ifname": "tp4A", "fds": "passed"})
    wrong = transfer(GUEST, 1 << 20)
    result(not wrong, "a socket that was passed", wrong)


def test_refusals(guest: Guest) -> None:
    run("ip", "link", "add", "tp4C", "type", "dummy")
    run("ip", "link", "set", "tp4C", "up")
    netdevs = {
        "no such interface": {"ifname": "tp4D"},
        "queues is a number": {"ifname": "tp4C", "queues": 0},
        "a socket for each queue": {"ifname": "tp4C", "queues": 2, "fds": "1"},
        "no zero-copy mode": {"ifname": "tp4C", "zerocopy": "on"},
    }
    for words, netdev in netdevs.items():
        try:
            guest.ask("netdev_add", type="tpacket4", id="n1", **netdev)
            said = "no error"
        except ValueError as e:
            said = str(e)
        result(words in said, f"error: {words}", said)
    guest.ask("netdev_add", type="tpacket4", id="n1", ifname="tp4C", zerocopy="auto")
    want = "ifname=tp4C,mode=copy (the device has no zero-copy mode)"
    info = guest.info()
    result(want in info, "zero-copy mode if possible", info)
    guest.ask("netdev_del", id="n1")
    run("ip", "link", "del", "tp4C")


def test_removal(guest: Guest) -> None:
    run("ip", "link", "del", "tp4A")
    guest.tell("carrier 0")
    said = [line for line in guest.said() if "the device tp4A was removed" in line]
    result(len(said) == 1, "one message for a device that is gone", *guest.said())
    info = guest.info()
    result(info == "ifname=tp4A,removed", "info network without a device", info)


def main() -> None:
    if len(sys.argv) != 4:
        print((__doc__ or "").strip())
        sys.exit(0 if "--help" in sys.argv else 2)
    if "User Mode Linux" not in Path("/proc/cpuinfo").read_text(encoding="ascii"):
        print("1..0 # SKIP a guest in an emulated machine takes too long")
        sys.exit(4)
    if not Path(sys.argv[2]).exists():
        print(f"1..0 # SKIP no {sys.argv[2]}: the guest's kernel")
        sys.exit(4)
    run("sysctl", "-qw", "net.ipv6.conf.tp4B.disable_ipv6=0")
    run("ip", "addr", "add", f"{HOST}/24", "dev", "tp4B")
    run("ip", "addr", "add", "fd77::1/64", "dev", "tp4B", "nodad")
    guest = Guest(*sys.argv[1:])
    try:
        guest.start()
        guest.tell("up 1500")
        guest.tell("carrier 1")
        info = guest.info()
        result(info == "ifname=tp4A,mode=copy", "info network", info)
        test_traffic(guest, "offloads", True)
        test_link(guest)
        test_stop(guest)
        guest = test_migration(guest)
        test_unplug(guest)
        test_zerocopy(guest)
        test_queues(guest)
        test_refusals(guest)
        test_passed(guest)
        test_removal(guest)
    except (RuntimeError, ValueError, OSError) as e:
        console = ""
        if guest.console.exists():
            console = guest.console.read_text(encoding="ascii", errors="replace")
        result(False, str(e), *guest.said(), console[-2000:])
        guest.process.kill()
        guest.process.wait()
    status = guest.close()
    result(status == 0, "QEMU ends", status)
    end()


if __name__ == "__main__":
    main()
