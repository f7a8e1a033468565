# SPDX-License-Identifier: GPL-2.0
"""Tests queue pairs of i40e that switch between the stack and V4 sockets.

pairs.sh sets up two ports, and passes their names in the environment. The
port under test is that of NS1; its queue 0 has all traffic but what is steered.
Each test prints ok, not ok or a skip with its reason.
"""

import errno
import math
import mmap
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Self

from v4 import V4, netns, wait

NS0, NS1 = os.environ["NS0"], os.environ["NS1"]
IF0, IF1 = os.environ["IF0"], os.environ["IF1"]
IP0, IP1 = os.environ["IP0"], os.environ["IP1"]
PCI1 = os.environ["PCI1"]
SHORT = bool(os.environ.get("XL710_SHORT"))
DEBUGFS = f"/sys/kernel/debug/i40e/{PCI1}/command"
PORT = 7100
SOON = 20.0  # time limit for correct behaviour, on a slow machine


class Skip(Exception):
    """The machine cannot run the test."""


def run(*command: str, ns: str = NS1, ok: bool = True) -> subprocess.CompletedProcess:
    done = subprocess.run(
        ["ip", "netns", "exec", ns, *command],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    if ok and done.returncode:
        raise AssertionError(f"{' '.join(command)}: {done.stderr or done.stdout}")
    return done


def stat(name: str) -> int:
    for line in run("ethtool", "-S", IF1).stdout.splitlines():
        if line.strip().startswith(f"{name}:"):
            return int(line.split(":")[1])
    raise AssertionError(f"no counter {name}")


def carrier(dev: str = IF1, ns: str = NS1) -> bool:
    return run("cat", f"/sys/class/net/{dev}/carrier", ns=ns, ok=False).stdout == "1\n"


def dark(on: bool) -> None:
    """Set whether the other port turns its link off when it is down."""
    run("ethtool", "--set-priv-flags", IF0, "link-down-on-close",
        "on" if on else "off", ns=NS0)  # fmt: skip


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the stacks from sending, so that only expected interrupts occur."""
    ports = ((NS0, IF0, IP0), (NS1, IF1, IP1))
    for ns, dev, _ in ports:
        run("sysctl", "-qw", f"net.ipv6.conf.{dev}.disable_ipv6=1", ns=ns)
        run("ip", "addr", "flush", "dev", dev, ns=ns)
    time.sleep(1)
    try:
        yield
    finally:
        for ns, dev, addr in ports:
            run("sysctl", "-qw", f"net.ipv6.conf.{dev}.disable_ipv6=0", ns=ns)
            run("ip", "addr", "replace", f"{addr}/24", "dev", dev, ns=ns)


def ping(count: int = 2) -> bool:
    command = ["ping", "-q", "-c", str(count), "-i", "0.05", "-W", "2", IP1]
    return not run(*command, ns=NS0, ok=False).returncode


def works() -> None:
    assert wait(2 * SOON, lambda: carrier() and carrier(IF0, NS0)), "no carrier"
    assert wait(SOON, lambda: ping(1)), "no ping"


def channels(n: int) -> None:
    """Set the number of queues, and send all traffic to the first one."""
    run("ethtool", "-L", IF1, "combined", str(n), ok=False)
    out = run("ethtool", "-l", IF1).stdout.rpartition("Current")[2]
    if not re.search(rf"^Combined:\s*{n}$", out, re.MULTILINE):
        raise Skip(f"the port has no {n} queues")
    if n > 1:
        run("ethtool", "-X", IF1, "equal", "1")
    works()


def bound(n: int, **kw: bool) -> V4:
    """A socket with a queue pair and posted frames."""
    z = V4(NS1, IF1, **kw)
    if z.rx:
        z.fill()
    try:
        z.zerocopy(n)
    except OSError:
        z.close()
        raise
    if z.rx:
        list(z.receive())  # packets of the device that came by copy before
    return z


def refused(n: int) -> int:
    """The errno that refuses a queue pair, or 0."""
    try:
        bound(n).close()
    except OSError as err:
        return err.errno or 0
    return 0


class Server(threading.Thread):
    """Answers on TCP in NS0, in capitals, for one connection."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        with netns(NS0):
            self.sock = socket.create_server((IP0, PORT))
        self.start()

    def run(self) -> None:
        while True:
            try:
                peer, _ = self.sock.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(peer,), daemon=True).start()

    @staticmethod
    def serve(peer: socket.socket) -> None:
        with peer:
            while data := peer.recv(65536):
                peer.sendall(data.upper())

    def close(self) -> None:
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()


def connect() -> socket.socket:
    with netns(NS1):
        sock = socket.socket()
    sock.settimeout(SOON)
    sock.connect((IP0, PORT))
    return sock


def talk(sock: socket.socket, times: int) -> None:
    for i in range(times):
        text = b"message %d\n" % i
        sock.sendall(text)
        got = b""
        while len(got) < len(text):
            got += sock.recv(100)
        assert got == text.upper(), got


def sends_by(queue: int) -> None:
    """Let XPS send this thread's packets on that queue."""
    os.sched_setaffinity(0, {queue})
    before = stat(f"tx-{queue}.packets")
    with netns(NS1), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for _ in range(20):
            sock.sendto(b"x", (IP0, 9))
    assert wait(SOON, lambda: stat(f"tx-{queue}.packets") > before), "no XPS"


# --- the packets of the stack and of programs --------------------------------


def no_atr_filter_from_a_bound_pair() -> None:
    """The answers to a TCP flow that the stack sends on a program's pair go to the
    stack, and the program does not see them."""
    channels(2)
    server, z = Server(), bound(2)
    try:
        sends_by(1)
        with connect() as sock:
            talk(sock, 100)
        assert not list(z.receive()), "the program got a packet of the stack's"
    finally:
        z.close()
        server.close()


def atr_filters_are_flushed_at_bind() -> None:
    """A flow that was steered to the pair before still goes to the stack."""
    channels(2)
    server = Server()
    sends_by(1)
    sock = connect()
    before = stat("rx-1.packets")
    talk(sock, 100)
    assert stat("rx-1.packets") > before, "no ATR filter to begin with"
    z = bound(2)
    try:
        talk(sock, 100)
        assert not list(z.receive()), "the program got a packet of the stack's"
    finally:
        z.close()
        sock.close()
        server.close()


def rules_stay_when_atr_filters_go() -> None:
    """ethtool -N steers packets to the program."""
    channels(2)
    steer(True)
    server = Server()
    sends_by(1)
    with connect() as sock:
        talk(sock, 5)
    z = bound(2)
    try:
        assert steered(z), "the rule does not steer"
    finally:
        z.close()
        server.close()
        steer(False)


def a_bind_flushes_no_table_for_nothing() -> None:
    """A pair on which the stack has sent no TCP has no ATR filters to flush."""
    channels(2)
    server = Server()
    bound(2).close()  # with earlier packets
    sends_by(0)
    matches, flushes = stat("port.fdir_atr_match"), stat("port.fdir_flush_cnt")
    with connect() as sock:
        talk(sock, 100)
        assert stat("port.fdir_atr_match") > matches, "no ATR filter to begin with"
        for _ in range(3):
            bound(2).close()
        talk(sock, 5)
    server.close()
    assert stat("port.fdir_flush_cnt") == flushes, "flushed"


@contextmanager
def flood() -> Iterator[None]:
    """A Flood in another process: setsockopt() of Python blocks other threads."""
    code = f"""import socket, time
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    sock.sendto(b"flood", ("{IP1}", 9))
    time.sleep(0.001)"""
    process = subprocess.Popen(["ip", "netns", "exec", NS0, sys.executable, "-c", code])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def rules_hold_while_others_bind() -> None:
    """Packets that a rule steers to a program never go to the stack. With two CPUs,
    the driver has too few queues: lab/run/vm --cpus 3."""
    channels(3)
    steer(True)
    server = Server()
    sends_by(0)
    with (
        netns(NS1),
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stack,
        connect() as sock,
    ):
        z = bound(2)
        assert steered(z)
        stack.bind((IP1, 9))
        stack.setblocking(False)
        got = 0
        with flood():
            for _ in range(10):
                talk(sock, 50)  # until there is an ATR filter again
                bound(3).close()
                got += len(list(z.receive()))
        with suppress(BlockingIOError):
            raise AssertionError(f"the stack got {stack.recv(2000)[:10]!r}")
        assert got > 100, got
        z.close()
    server.close()
    steer(False)


def steered(z: V4) -> bool:
    with sender() as sock:
        sock.sendto(b"steered", (IP1, 9))
    return wait(SOON, lambda: any(b"steered" in packet for packet in z.receive()))


def rx_alone() -> None:
    """Without a Tx ring of the socket, sending stays with the stack."""
    channels(2)
    sends_by(1)
    with one_ring(rx=True, tx=False) as z:
        sends_by(1)
        assert not list(z.receive())
    works()


def tx_alone() -> None:
    """Without an Rx ring of the socket, receiving stays with the stack: with one
    queue, all that the port receives."""
    channels(1)
    with one_ring(rx=False, tx=True, n=1) as z:
        assert ping(5), "the stack does not receive"
        sent = stat("tx-0.packets")
        for i in range(100):
            z.put(i, b"\xff" * 12 + b"\x88\xb5" + bytes(50))
        z.kick()
        back = 0
        while back < 100:
            assert wait(SOON, lambda: z.tx and (z.tx.used == z.tx.avail or z.tx.take()))
            back += 1
        assert stat("tx-0.packets") >= sent + 100
        assert ping(5), "the stack does not receive"
    works()


class one_ring:  # it reads as a function
    def __init__(self, rx: bool, tx: bool, n: int = 2) -> None:
        try:
            self.z = bound(n, rx=rx, tx=tx)
        except OSError as err:
            if err.errno != errno.EINVAL:
                raise
            raise Skip("this kernel wants both rings") from None

    def __enter__(self) -> V4:
        return self.z

    def __exit__(self, *_: object) -> None:
        self.z.close()


# --- pairs that switch -------------------------------------------------------


class Load:
    """The stack of NS1 sends on a queue as fast as it can, and pings."""

    def __init__(self, queue: int) -> None:
        self.stop = False
        self.sent = 0
        self.thread = threading.Thread(target=self.run, args=(queue,), daemon=True)
        self.thread.start()

    def run(self, queue: int) -> None:
        os.sched_setaffinity(0, {queue})
        with netns(NS1), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            while not self.stop:
                try:
                    sock.sendto(bytes(1400), (IP0, 9))
                    self.sent += 1
                except OSError:  # full, or down
                    time.sleep(0.001)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop = True
        self.thread.join()


def stack_sends_while_pairs_change() -> None:
    """The stack's sender finds a ring that is whole, or waits."""
    channels(2)
    times = 10 if SHORT else 40
    with Load(1) as load:
        for _ in range(times):
            before = load.sent
            z = bound(2)
            assert wait(SOON, lambda n=before: load.sent > n + 100), "no way to send"
            z.close()
    works()
    sends_by(1)


def xdp(on: bool) -> None:
    """A program that passes all packets gives the port XDP rings. "ip netns exec" would
    hide the bpf file system."""
    pin = "/sys/fs/bpf/xl_pairs"
    if on and not os.path.exists(pin):
        bpf = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bpf.py")
        subprocess.run([sys.executable, bpf, "pass", pin], check=True)
    subprocess.run(
        ["nsenter", f"--net=/run/netns/{NS1}", "ip", "link", "set", IF1, "xdpdrv",
         *(("pinned", pin) if on else ("off",))],
        check=True,
    )  # fmt: skip
    works()


def pairs_with_xdp_change_hands() -> None:
    """The XDP ring of the pair stops and starts with it."""
    channels(2)
    if not os.path.ismount("/sys/fs/bpf"):
        raise Skip("no bpf file system")
    steer(True)
    xdp(True)
    try:
        for _ in range(3):
            z = bound(2)
            assert steered(z), "nothing comes"
            z.close()
            works()
    finally:
        xdp(False)
        steer(False)


def link_events_while_pairs_change() -> None:
    """A link that comes up does not start the queue of a pair that is stopped."""
    channels(2)
    dark(True)
    stop = threading.Event()

    def flap() -> None:
        while not stop.is_set():
            run("ip", "link", "set", IF0, "down", ns=NS0)
            run("ip", "link", "set", IF0, "up", ns=NS0)

    thread = threading.Thread(target=flap, daemon=True)
    thread.start()
    with Load(1):
        for _ in range(5 if SHORT else 20):
            bound(2).close()
    stop.set()
    thread.join()
    dark(False)
    run("ip", "addr", "replace", f"{IP0}/24", "dev", IF0, ns=NS0)
    works()
    sends_by(1)


def resets_while_pairs_change(
    command: Callable[[], None], times: int, whole: bool = False
) -> None:
    channels(2)
    steer(True, whole)
    stop = threading.Event()
    outcomes: dict[str, int] = {}

    def change() -> None:
        while not stop.is_set():
            try:
                z = bound(2)
                time.sleep(0.01)
                z.close()
                outcome = "bound"
            except OSError as err:
                outcome = errno.errorcode[err.errno or 0]
            outcomes[outcome] = outcomes.get(outcome, 0) + 1

    thread = threading.Thread(target=change, daemon=True)
    thread.start()
    for _ in range(times):
        command()
        time.sleep(0.3)
    stop.set()
    thread.join()
    works()
    # A reset may still be due, for which EBUSY is an answer.
    assert wait(SOON, lambda: refused(2) != errno.EBUSY), "still busy"
    z = bound(2)
    assert wait(SOON, lambda: steered_once(z)), f"nothing comes, {outcomes}"
    z.close()
    steer(False)
    assert outcomes.pop("bound", 0), outcomes
    assert not set(outcomes) - {"EBUSY", "ENETDOWN", "ENXIO"}, outcomes


def core_resets_while_pairs_change() -> None:
    """The service task handles these, without RTNL."""
    resets_while_pairs_change(lambda: debugfs("corer"), 3 if SHORT else 8, True)


def function_resets_while_pairs_change() -> None:
    """The PCI error handlers call these, without RTNL."""

    def command() -> None:
        write(f"/sys/bus/pci/devices/{PCI1}/reset", "1")

    resets_while_pairs_change(command, 3 if SHORT else 8)


def bring_up() -> None:
    """During a reset, the driver returns EAGAIN if it cannot ask the card."""
    up = ("ip", "link", "set", IF1, "up")
    wait(SOON, lambda: run(*up, ok=False).returncode == 0)
    run(*up)
    run("ip", "addr", "replace", f"{IP1}/24", "dev", IF1)


def bind_while_down() -> None:
    """The pair is set up when the device goes up, and only then."""
    channels(1)
    run("ip", "link", "set", IF1, "down")
    z = bound(1)
    run("ip", "link", "set", IF1, "up")
    assert wait(SOON, carrier)
    run("ip", "link", "set", IF1, "down")
    z.close()
    bring_up()
    works()


# --- queues that do not stop, with the test registers of the model -----------

TX_DELAY, RESET_DELAY, STUCK_TX, STUCK_RX = 0x3FF000, 0x3FF010, 0x3FF014, 0x3FF018
NONE = 0xFFFFFFFF


def debugfs(command: str) -> None:
    if not os.path.exists(DEBUGFS):
        raise Skip("no debugfs")
    write(DEBUGFS, f"{command}\n")


@contextmanager
def page_of(register: int) -> Iterator[memoryview]:
    """The page of registers around that one, as words."""
    with open(f"/sys/bus/pci/devices/{PCI1}/resource0", "r+b") as file:
        bar = mmap.mmap(file.fileno(), mmap.PAGESIZE, offset=register & ~0xFFF)
    with bar, memoryview(bar) as view, view.cast("I") as words:
        yield words


def knob(register: int, value: int) -> None:
    """Write test registers, which the driver and its debugfs do not map."""
    with page_of(register) as words:
        words[(register & 0xFFF) // 4] = value
        if words[(register & 0xFFF) // 4] != value:
            raise Skip("the card has no such register")


def unstick() -> None:
    for register in (STUCK_TX, STUCK_RX):
        knob(register, NONE)


def steer(on: bool, whole: bool = False) -> None:
    """Steer UDP packets to port 9, or one flow of them, to queue 1.

    A core reset takes the card's input sets back to what a whole flow needs. The
    driver writes its rules again after that, but not the input set of one that
    looks at less, which matches nothing from then on.
    """
    run("ethtool", "-K", IF1, "ntuple", "on")
    rule = ["flow-type", "udp4", "dst-port", "9"]
    if whole:
        rule += ["src-port", "9", "src-ip", IP0, "dst-ip", IP1]
    rule += ["action", "1", "loc", "3"]
    run("ethtool", "-N", IF1, *(rule if on else ("delete", "3")))


def sender() -> socket.socket:
    """A socket in NS0 with the flow that is steered."""
    with netns(NS0):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((IP0, 9))
    return sock


class Flood:
    """NS0 sends to queue 1 of the port."""

    def __init__(self) -> None:
        self.stop, self.sent = False, 0
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        with sender() as sock:
            while not self.stop:
                try:
                    sock.sendto(b"flood" * 100, (IP1, 9))
                    self.sent += 1
                except OSError:
                    pass
                time.sleep(0.002)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop = True
        self.thread.join()


def write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def probe(*actions: str) -> None:
    for action in actions:
        write(f"/sys/bus/pci/drivers/i40e/{action}", PCI1)
        time.sleep(2)  # the longest that a reset takes here
    net = f"/sys/bus/pci/devices/{PCI1}/net"
    assert wait(SOON, lambda: os.path.isdir(net) and os.listdir(net))
    name = os.listdir(net)[0]
    subprocess.run(["ip", "link", "set", name, "netns", NS1, "name", IF1], check=True)
    bring_up()


def stays_untouched(z: V4, seconds: float) -> None:
    """Nothing writes to frames that have been returned."""
    while z.rx and z.rx.used != z.rx.avail:
        assert z.rx.take(), "a frame has not come back"
    mine = b"\x5a" * len(z.area)
    z.area[:] = mine
    time.sleep(seconds)
    assert z.area[:] == mine, "the card writes to frames that came back"


@contextmanager
def stuck_in_a_flood() -> Iterator[V4]:
    """A pair that receives, with an Rx queue that no longer stops."""
    channels(2)
    steer(True)
    with Flood():
        z = bound(2)
        assert wait(SOON, lambda: list(z.receive()))
        knob(STUCK_RX, 1)
        yield z
        z.close()


def frames_outlive_an_rx_queue_that_does_not_stop() -> None:
    with stuck_in_a_flood() as z:
        z.zerocopy(0)
        stays_untouched(z, 1)
    unstick()
    works()
    z = bound(2)
    assert steered(z), "nothing comes after the reset"
    z.close()
    steer(False)


def frames_outlive_a_tx_queue_that_does_not_stop() -> None:
    """The data at the time of posting is sent, not later data of the frame."""
    channels(2)
    with netns(NS0):
        sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88B5))
    sniffer.bind((IF0, 0x88B5))
    sniffer.setblocking(False)
    z = bound(2)
    knob(TX_DELAY, 200_000_000)
    knob(STUCK_TX, 1)
    for i in range(100):
        z.put(i, b"\xff" * 12 + b"\x88\xb5" + b"posted" * 10)
    z.kick()
    time.sleep(0.1)
    z.zerocopy(0)
    while z.tx and z.tx.used != z.tx.avail:
        assert z.tx.take(), "a frame has not come back"
    for i in range(100):
        z.put(i, b"\xff" * 12 + b"\x88\xb5" + b"later " * 10)
    time.sleep(2)
    knob(TX_DELAY, 1000)
    unstick()
    seen = []
    try:
        while True:
            seen.append(sniffer.recv(2048))
    except BlockingIOError:
        pass
    assert not [packet for packet in seen if b"later" in packet], "sent too late"
    z.close()
    sniffer.close()
    works()
    sends_by(1)


class Alarm(Exception):
    """A signal arrived."""


def a_blocking_send_can_be_given_up() -> None:
    """By a signal, or by SO_SNDTIMEO; posted frames are returned later."""
    channels(2)
    z = bound(2)
    knob(TX_DELAY, 1_000_000_000)

    def alarm(*_: object) -> None:
        raise Alarm

    old = signal.signal(signal.SIGALRM, alarm)
    try:
        assert z.put(0, b"\xff" * 12 + b"\x88\xb5" + bytes(50))
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with suppress(Alarm):
            z.sock.send(b"")
            raise AssertionError("it has waited for the packet")
        z.sock.setsockopt(
            socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", 0, 100_000)
        )
        with suppress(TimeoutError):
            z.sock.send(b"")
            raise AssertionError("it has waited for the packet")
    finally:
        signal.signal(signal.SIGALRM, old)
        knob(TX_DELAY, 1000)
    assert z.tx and wait(SOON, z.tx.take)
    z.close()
    works()


# PFHMC_SDCMD, and in its page PFHMC_SDDATALOW and PFHMC_SDDATAHIGH
SDCMD, SDCMD_WRITE, SD_LOW, SD_HIGH = 0xC0000, 1 << 31, 0x100 // 4, 0x200 // 4


@contextmanager
def no_contexts() -> Iterator[None]:
    """The card finds zeros instead of a queue's context, so that no queue starts.

    All contexts are in the first of the 2 MiB that the driver has given it.
    """
    with page_of(SDCMD) as words:
        words[0] = 0
        segment = words[SD_LOW], words[SD_HIGH]
        zeros = segment[0] + (1 << 20)
        words[SD_LOW] = zeros
        words[0] = SDCMD_WRITE
    try:
        yield
    finally:
        with page_of(SDCMD) as words:
            words[0] = 0
            if words[SD_LOW] == zeros:  # the driver has not reset the card
                words[SD_LOW], words[SD_HIGH] = segment
                words[0] = SDCMD_WRITE


def a_pair_that_does_not_start_is_in_no_ones_way() -> None:
    """It starts neither for the program nor for the stack: the caller gets an error,
    and the device goes down and up, and works."""
    channels(2)
    steer(True)
    for leaves in False, True:
        z = bound(2) if leaves else None
        with no_contexts():
            if z:
                z.zerocopy(0)
                z.close()
            else:
                assert refused(2) == errno.ETIMEDOUT
        run("ip", "link", "set", IF1, "down")
        bring_up()
        works()
        sends_by(1)
        z = bound(2)
        assert wait(SOON, lambda z=z: steered_once(z)), "nothing comes"
        z.close()
    steer(False)


def a_device_that_does_not_come_up_is_reported() -> None:
    """It then has another MTU or ring size, but no running queue. Neither changing them
    again, nor closing the socket, nor taking the device down hangs."""
    channels(2)
    steer(True)
    for act in (
        ("ip", "link", "set", IF1, "mtu", "1400"),
        ("ethtool", "-G", IF1, "rx", "1024"),
        ("ip", "link", "set", IF1, "mtu", "1300"),
        ("ethtool", "-G", IF1, "rx", "512"),
    ):
        z = bound(2)
        with no_contexts():
            run(*act, ok=False)
            assert z.error() == errno.EIO, "the program got no error"
            for mtu in "1450", "1500":
                run("ip", "link", "set", IF1, "mtu", mtu)
            done = run("ethtool", "-G", IF1, "tx", "256", ok=False)
            assert "busy" in done.stderr, "the ring size was changed"
            if "1300" in act or "512" in act:
                z.close()
                z = bound(2)
        run("ip", "link", "set", IF1, "down")
        bring_up()
        works()
        assert wait(SOON, lambda z=z: steered_once(z)), "nothing comes"
        z.close()
    steer(False)


def a_device_that_is_opened_in_vain_can_be_opened_later() -> None:
    """If its queues do not start, it stays down, and nothing hangs."""
    channels(2)
    run("ip", "link", "set", IF1, "down")
    with no_contexts():
        assert run("ip", "link", "set", IF1, "up", ok=False).returncode, "it is up"
    bring_up()
    works()
    sends_by(1)


def a_self_test_is_no_loss() -> None:
    """The reset takes the device down and up, and the program keeps its pair."""
    channels(2)
    steer(True)
    z = bound(2)
    run("ethtool", "-t", IF1, "offline", ok=False)
    assert z.error() == 0, "the program got an error, as if it had lost its pair"
    works()
    assert wait(SOON, lambda: steered_once(z)), "nothing comes after the test"
    z.close()
    steer(False)


def frames_outlive_a_device_that_does_not_stop() -> None:
    """The same where the device goes down, or its rings are resized."""
    channels(2)
    steer(True)
    for act in (
        lambda: run("ip", "link", "set", IF1, "down"),
        lambda: run("ethtool", "-G", IF1, "rx", "1024"),
        lambda: run("ethtool", "-G", IF1, "rx", "512"),
    ):
        z = bound(2)
        assert steered(z)
        knob(STUCK_RX, 1)
        act()
        with Flood():
            z.zerocopy(0)
            stays_untouched(z, 0.5)
        z.close()
        unstick()
        bring_up()
        works()
    steer(False)


def a_bound_pair_outlives_a_device_that_does_not_stop() -> None:
    channels(2)
    steer(True)
    z = bound(2)
    for queue in (STUCK_RX, STUCK_TX):
        knob(queue, 1)
        run("ip", "link", "set", IF1, "down")
        bring_up()
        works()
        unstick()
        assert wait(SOON, lambda: steered_once(z)), "nothing comes after the reset"
    z.close()
    steer(False)


def steered_once(z: V4) -> bool:
    with sender() as sock:
        sock.sendto(b"steered", (IP1, 9))
    return wait(0.2, lambda: any(b"steered" in packet for packet in z.receive()))


def a_pair_of_the_stack_that_does_not_stop_is_bound_by_a_reset() -> None:
    channels(2)
    steer(True)
    for queue in (STUCK_RX, STUCK_TX):
        knob(queue, 1)
        z = bound(2)
        unstick()
        works()
        assert wait(SOON, lambda z=z: steered_once(z)), "nothing comes"
        z.close()
    steer(False)


def a_reset_that_fails_is_reported() -> None:
    """The next reset that works gives the program its pair back."""
    channels(2)
    steer(True)
    z = bound(2)
    knob(RESET_DELAY, 2_000_000_000)
    debugfs("pfr")
    knob(RESET_DELAY, 10_000_000)
    assert wait(SOON, lambda: z.error() == errno.EIO), "the program got no error"
    time.sleep(2)
    debugfs("pfr")
    works()
    assert wait(SOON, lambda: steered_once(z)), "nothing comes after the reset"
    z.close()
    steer(False)


def a_reset_that_fails_ends_a_blocking_send() -> None:
    """The device is up, so only the error can wake the program. The reset returns the
    frames of the ring, but not those that were waiting for a slot there."""
    channels(2)
    run("ethtool", "-G", IF1, "tx", "64")
    z = bound(2)
    knob(TX_DELAY, 2_000_000_000)
    knob(RESET_DELAY, 2_000_000_000)
    for i in range(z.nr):
        assert z.put(i, b"\xff" * 12 + b"\x88\xb5" + bytes(50))

    def send() -> int:
        try:
            return z.sock.send(b"")
        except OSError as error:
            return -(error.errno or 0)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(send)
        time.sleep(0.2)
        debugfs("pfr")
        knob(RESET_DELAY, 10_000_000)
        knob(TX_DELAY, 1000)
        done = wait(SOON, first.done)
        second = pool.submit(send)
        done = wait(SOON, second.done) and done
        time.sleep(5)
        debugfs("pfr")
    assert done, "one of them hangs"
    assert first.result() == second.result() == -errno.EIO
    z.close()
    works()
    run("ethtool", "-G", IF1, "tx", "512")


def frames_outlive_a_driver_that_goes() -> None:
    """The driver resets the card itself if a queue does not stop."""
    with stuck_in_a_flood() as z:
        write("/sys/bus/pci/drivers/i40e/unbind", PCI1)
        stays_untouched(z, 1)
        assert z.error() == errno.ENETDOWN
    probe("bind")
    unstick()
    works()


def frames_outlive_a_card_that_cannot_be_reset() -> None:
    """The card is removed from the bus. This is the last test: only a new probe helps."""
    with stuck_in_a_flood() as z:
        knob(RESET_DELAY, 2_000_000_000)
        z.zerocopy(0)
        stays_untouched(z, 1)
    probe("unbind", "bind")
    knob(RESET_DELAY, 10_000_000)
    works()


# --- interrupts --------------------------------------------------------------


def hears(z: V4) -> bool:
    """Test with broadcasts, which need no ARP: the program would not answer it."""
    packet = b"\xff" * 12 + b"\x88\xb5" + b"broadcast" * 6
    with netns(NS0):
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    with sock:
        sock.bind((IF0, 0))
        return wait(SOON, lambda: sock.send(packet) and packet in [*z.receive()])


def kick_reaches_napi() -> None:
    """With each type of interrupt, posted frames are sent and returned, and frames
    that are posted late are filled."""
    channels(1)
    with quiet():
        z = V4(NS1, IF1)
        z.zerocopy(1)
        for i in range(3):
            assert z.put(i, b"\xff" * 12 + b"\x88\xb5" + bytes(50))
            z.kick()
            assert z.tx and wait(SOON, z.tx.take), f"packet {i} does not come back"
        z.fill()
        assert hears(z), "no Rx"
        z.close()
    works()


def link_events_after_bind() -> None:
    """Interrupts that belong to no queue still occur."""
    channels(1)
    dark(True)
    with quiet():
        bound(1).close()
        run("ip", "link", "set", IF0, "down", ns=NS0)
        assert wait(SOON, lambda: not carrier()), "the link stays up"
        run("ip", "link", "set", IF0, "up", ns=NS0)
    dark(False)
    works()


def other_pairs_of_the_vector_go_on() -> None:
    """With more queues than vectors, a packet to the stack's pair during the switch of
    the other pair is received, even if no packet follows it."""
    channels(2)
    with open("/proc/interrupts") as file:
        if len(re.findall(rf"-{IF1}-TxRx-", file.read())) != 1:
            raise Skip("each queue has a vector: --nic xl710,vectors=3")
    rounds = 20 if SHORT else 60
    took = 0.0

    def bind(z: V4) -> None:
        nonlocal took
        start = time.monotonic()
        z.zerocopy(2)
        took = time.monotonic() - start

    with netns(NS1), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((IP1, 10))
        sock.settimeout(SOON)
        with netns(NS0), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
            for i in range(rounds):
                z = bound(2)
                z.zerocopy(0)
                thread = threading.Thread(target=bind, args=(z,))
                thread.start()
                # at all times of the call; the last one measures its length
                time.sleep(took * i / rounds)
                out.sendto(b"%d" % i, (IP1, 10))
                assert sock.recv(100) == b"%d" % i
                thread.join()
                z.close()


def refill_delay_is_bounded() -> None:
    """A ring without frames is polled every 10 ms, or at the tick after that
    where timers are no finer, as after a boot that was too slow to calibrate the
    TSC. In the best of many windows that shows, however slow the machine is."""
    if not os.path.isdir(f"/sys/bus/pci/devices/{PCI1}/msi_irqs"):
        raise Skip("no MSI-X to count")
    with open("/proc/timer_list") as file:
        found = re.search(r"\.resolution: *(\d+) nsecs", file.read())
    assert found, "no resolution of timers"
    tick = int(found[1]) / 1e9
    right = 1 / (math.ceil(0.010 / tick) * tick)
    channels(1)
    z = V4(NS1, IF1)
    z.zerocopy(1)
    time.sleep(0.2)  # until the delay has grown

    def fired() -> int:
        irqs = os.listdir(f"/sys/bus/pci/devices/{PCI1}/msi_irqs")
        total = 0
        with open("/proc/interrupts") as file:
            for line in file:
                words = line.split()
                if words[0].rstrip(":") in irqs:
                    total += sum(int(w) for w in words[1 : 1 + (os.cpu_count() or 1)])
        return total

    best = 0.0
    for _ in range(20):
        count, start = fired(), time.monotonic()
        time.sleep(0.25)
        best = max(best, (fired() - count) / (time.monotonic() - start))
    z.close()
    assert 0.88 < best / right < 1.5, f"at most {best:.0f} times a second"


# --- other users of queues ---------------------------------------------------


def mqprio(*words: str) -> subprocess.CompletedProcess:
    done = run("tc", "qdisc", "replace", "dev", IF1, "root", "mqprio", *words, ok=False)
    if "Unknown qdisc" in done.stderr or "unknown" in done.stderr:
        raise Skip("this kernel has no mqprio")
    return done


CLASSES = ("num_tc", "2", "map", *"0011", *["0"] * 12, "queues", "1@0", "1@1",
           "hw", "1", "mode", "channel")  # fmt: skip


def mqprio_takes_no_bound_pair() -> None:
    channels(2)
    z = bound(2)
    try:
        done = mqprio(*CLASSES)
        assert done.returncode, "mqprio took the pair"
        assert "busy" in done.stderr, done.stderr
    finally:
        z.close()


def no_pair_of_mqprio_is_bound() -> None:
    channels(2)
    done = mqprio(*CLASSES)
    assert not done.returncode, done.stderr
    try:
        works()
        assert refused(2) == errno.EBUSY
        z = bound(1)  # the first class has the port's own queues
        run("tc", "qdisc", "del", "dev", IF1, "root")
        done = mqprio(*CLASSES)
        assert not done.returncode, done.stderr
        assert hears(z), "nothing comes"
        z.close()
    finally:
        run("tc", "qdisc", "del", "dev", IF1, "root")
    works()
    assert refused(2) == 0


def macvlan(up: bool) -> None:
    if not up:
        run("ip", "link", "del", "xlmv", ok=False)
        run("ethtool", "-K", IF1, "l2-fwd-offload", "off")
        return
    # i40e never frees the channels that it makes for them, with V4 or without.
    if os.path.exists("/sys/kernel/debug/kmemleak"):
        raise Skip("i40e leaks the channels of a macvlan, and kmemleak reports it")
    run("ethtool", "-K", IF1, "l2-fwd-offload", "on")
    run("ip", "link", "add", "link", IF1, "name", "xlmv", "type", "macvlan",
        "mode", "bridge")  # fmt: skip
    run("ip", "link", "set", "xlmv", "up")


def macvlan_takes_no_bound_pair() -> None:
    channels(2)
    steer(True)
    z = bound(2)
    try:
        macvlan(True)
        assert steered(z), "the program's pair is gone"
    finally:
        z.close()
        macvlan(False)
        steer(False)
    works()


def no_pair_of_macvlan_is_bound() -> None:
    channels(2)
    macvlan(True)
    try:
        assert refused(2) == errno.EBUSY
        assert refused(1) == 0
    finally:
        macvlan(False)
    works()
    assert refused(2) == 0


TESTS = [
    kick_reaches_napi,
    link_events_after_bind,
    bind_while_down,
    tx_alone,
    rx_alone,
    no_atr_filter_from_a_bound_pair,
    atr_filters_are_flushed_at_bind,
    rules_stay_when_atr_filters_go,
    a_bind_flushes_no_table_for_nothing,
    rules_hold_while_others_bind,
    stack_sends_while_pairs_change,
    pairs_with_xdp_change_hands,
    link_events_while_pairs_change,
    core_resets_while_pairs_change,
    function_resets_while_pairs_change,
    other_pairs_of_the_vector_go_on,
    refill_delay_is_bounded,
    mqprio_takes_no_bound_pair,
    no_pair_of_mqprio_is_bound,
    macvlan_takes_no_bound_pair,
    no_pair_of_macvlan_is_bound,
    frames_outlive_an_rx_queue_that_does_not_stop,
    frames_outlive_a_tx_queue_that_does_not_stop,
    a_blocking_send_can_be_given_up,
    a_pair_that_does_not_start_is_in_no_ones_way,
    a_device_that_does_not_come_up_is_reported,
    a_device_that_is_opened_in_vain_can_be_opened_later,
    a_self_test_is_no_loss,
    frames_outlive_a_device_that_does_not_stop,
    a_bound_pair_outlives_a_device_that_does_not_stop,
    a_pair_of_the_stack_that_does_not_stop_is_bound_by_a_reset,
    a_reset_that_fails_is_reported,
    a_reset_that_fails_ends_a_blocking_send,
    frames_outlive_a_driver_that_goes,
    frames_outlive_a_card_that_cannot_be_reset,
]

# One of each type: the others take long or are similar.
IN_SHORT = [
    kick_reaches_napi,
    bind_while_down,
    rx_alone,
    no_atr_filter_from_a_bound_pair,
    stack_sends_while_pairs_change,
    core_resets_while_pairs_change,
    no_pair_of_mqprio_is_bound,
    frames_outlive_an_rx_queue_that_does_not_stop,
]


def main() -> int:
    bad = 0
    names = sys.argv[1:] or [test.__name__ for test in (IN_SHORT if SHORT else TESTS)]
    cpus = os.sched_getaffinity(0)
    for test in TESTS:
        name = f"pairs: {test.__name__}"
        if test.__name__ not in names:
            continue
        start = time.monotonic()
        try:
            test()
            print(f"ok - {name}", flush=True)
        except Skip as why:
            print(f"ok - {name} # SKIP {why}", flush=True)
        except (AssertionError, OSError, subprocess.SubprocessError) as why:
            bad = 1
            for line in traceback.format_exc().splitlines():
                print(f"# {line}")
            print(f"not ok - {name} # {why!r}", flush=True)
        print(f"# {time.monotonic() - start:.1f} s", flush=True)
        if bad:
            with suppress(Skip, OSError):
                unstick()
        for z in list(V4.opened):
            z.close()
        run("ethtool", "-N", IF1, "delete", "3", ok=False)
        os.sched_setaffinity(0, cpus)
    return bad


if __name__ == "__main__":
    sys.exit(main())
