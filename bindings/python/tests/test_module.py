#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests the module on the veth pair tp4A, tp4B; to be called by on_veth.sh."""

import asyncio
import errno
import gc
import importlib.metadata
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import tpacket4

HERE = Path(__file__).resolve().parents[1]
COUNT = 10000
WAIT = 20  # seconds until a test fails
HEAD = bytes.fromhex("ffffffffffff 020000000001 88b5")
tests = 0
failed = 0


def result(ok: bool, name: str, got: object = "") -> None:
    global tests, failed
    tests += 1
    failed += not ok
    if not ok:
        print(f"# got: {got}")
    print(f"{'' if ok else 'not '}ok {tests} {name}", flush=True)


def raised(error: type[Exception], call: Callable[[], object]) -> Exception | None:
    try:
        call()
    except error as exc:
        return exc
    return None


def number(i: int, size: int = 60) -> bytes:
    return HEAD + i.to_bytes(4, "big") + bytes((i + k) % 251 for k in range(size - 18))


@contextmanager
def raw(device: str) -> Iterator[socket.socket]:
    """An ordinary packet socket of the peer"""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock:
        sock.bind((device, 0x88B5))
        sock.settimeout(WAIT)
        yield sock


def receive(sock: tpacket4.Socket, count: int) -> list[bytes]:
    got: list[bytes] = []
    while len(got) < count and sock.wait(WAIT):
        got += [bytes(packet) for packet in sock.receive()]
    return got


def test_package() -> None:
    version = importlib.metadata.version("tpacket4")
    result(
        version == f"{tpacket4.LIBRARY_VERSION}.0", "version of the library", version
    )
    files = {path.name for path in Path(tpacket4.__file__).parent.iterdir()}
    result({"py.typed", "_core.pyi"} <= files, "types are installed", files)


def test_receive() -> None:
    with raw("tp4B") as peer, tpacket4.Area(1024) as area:
        with tpacket4.Socket(area, rx=512) as sock:
            sock.bind("tp4A")
            result(area.free == 512, "frames are posted", area.free)
            got = []
            for start in range(0, COUNT, 250):
                for i in range(start, start + 250):
                    peer.send(number(i))
                got += receive(sock, 250)
            want = [number(i) for i in range(COUNT)]
            result(got == want, f"{COUNT} packets are received", len(got))
            stats = sock.stats()
            result(stats[:2] == (COUNT, 0), "and counted", stats)
            result(not sock.wait(0.01) and sock.receive() == [], "no more")
        result(area.free == 1024, "all frames are free", area.free)


def exchange(name: str, sender: tpacket4.Socket, receiver: tpacket4.Socket) -> None:
    """Send packets from one socket to another one, as many at a time as fit."""
    got: list[bytes] = []
    sent = 0
    while len(got) < COUNT:
        batch = [number(i) for i in range(sent, min(sent + 200, COUNT))]
        sent += sender.send(batch)
        sender.flush(WAIT)
        part = receive(receiver, sent - len(got))
        if not part:
            break
        got += part
    result(
        got == [number(i) for i in range(COUNT)], f"{COUNT} packets: {name}", len(got)
    )
    result(sender.pending == 0, "all are sent", sender.pending)


def test_send() -> None:
    for zc in "", "zc:":
        for shared in True, False:
            with tpacket4.Area(4096) as area, tpacket4.Area(4096) as other:
                with (
                    tpacket4.Socket(area, tx=512) as sender,
                    tpacket4.Socket(area if shared else other, rx=512) as receiver,
                ):
                    receiver.bind(f"{zc}tp4A")
                    sender.bind(f"{zc}tp4B{zc and ':0'}")
                    where = "one area" if shared else "two areas"
                    exchange(
                        f"{'zero-copy' if zc else 'copy'} mode, {where}",
                        sender,
                        receiver,
                    )
                free = area.free, other.free
                result(free == (4096, 4096), "all frames are free", free)


def test_reuse() -> None:
    """Sockets come and go while another one keeps the area."""
    with tpacket4.Area(1024) as area, tpacket4.Socket(area, tx=256) as other:
        other.bind("tp4B")
        for name in "tp4A", "zc:tp4A":
            for _ in range(3):
                with tpacket4.Socket(area, rx=512) as sock:
                    sock.bind(name)
                    other.send([number(1)])
                    receive(sock, 1)
            other.flush(WAIT)
            result(
                area.free == 1024,
                f"{name}: a closed socket's frames are free",
                area.free,
            )


def test_async() -> None:
    async def send(sock: tpacket4.Socket) -> None:
        for start in range(0, COUNT, 200):
            packets = [number(i) for i in range(start, start + 200)]
            while packets:
                del packets[: sock.send(packets)]
                await sock.flushed()
                await turn.acquire()

    async def take(sock: tpacket4.Socket) -> int:
        got = 0
        while got < COUNT:
            await sock.readable()
            for packet in sock.receive():
                if bytes(packet) != number(got):
                    return got
                got += 1
            if got % 200 == 0:
                turn.release()
        return got

    async def both(zc: str) -> int:
        with (
            tpacket4.Area(4096) as area,
            tpacket4.Socket(area, 1024) as a,
            tpacket4.Socket(area, 0, 1024) as b,
        ):
            a.bind(f"{zc}tp4A")
            b.bind(f"{zc}tp4B")
            async with asyncio.timeout(3 * WAIT):
                return (await asyncio.gather(take(a), send(b)))[0]

    for zc in "", "zc:":
        turn = asyncio.Semaphore(0)
        got = asyncio.run(both(zc))
        result(got == COUNT, f"asyncio: {COUNT} packets on {zc}tp4A", got)


def test_views() -> None:
    area = tpacket4.Area(512)
    sock = tpacket4.Socket(area, rx=256, tx=256)
    sock.bind("tp4A")
    with raw("tp4B") as peer:
        peer.send(number(7))
        sock.wait(WAIT)
        (packet,) = sock.receive()
        part = packet.data[14:][:4]  # a slice of a slice
        del packet
        for start in range(0, 2048, 128):
            for i in range(start, start + 128):
                peer.send(number(i + 8))
            receive(sock, 128)
        result(bytes(part) == number(7)[14:18], "a slice keeps its frame", bytes(part))
        sock.receive()
        result(area.free == 255, "which is the only one", area.free)
        peer.send(number(9))
        sock.wait(WAIT)
        (other,) = sock.receive()
        view = other.data
        for name, call in (
            ("send", lambda: sock.send([other])),
            ("release", other.release),
        ):
            result(bool(raised(BufferError, call)), f"{name}: not with a view alive")
        view.release()
        other.release()
        result(bool(raised(ValueError, lambda: other.data)), "no data after release()")
        result(
            bool(raised(ValueError, lambda: sock.send([other]))), "which is not sent"
        )
    packet = area.packet(number(1))
    result(sock.send([packet]) == 1, "one is sent")
    result(bool(raised(ValueError, lambda: packet.data)), "no data after send()")
    result(bool(raised(BufferError, area.close)), "an area with a socket stays open")
    sock.close()
    area.close()
    result(
        bytes(part) == number(7)[14:18], "a view outlives socket and area", bytes(part)
    )
    part[:] = b"abcd"
    result(bool(raised(ValueError, lambda: area.packet(1))), "of which no more is had")
    sock.close()
    maps = Path("/proc/self/maps")
    mapped = maps.read_text().count("memfd:tpacket4")
    part.release()
    left = maps.read_text().count("memfd:tpacket4")
    result((mapped, left) == (1, 0), "the last view's end unmaps it", (mapped, left))


def test_frames() -> None:
    """Packets in several frames, and metadata"""
    data = number(3, 8000)
    with (
        raw("tp4B") as peer,
        tpacket4.Area(1024) as area,
        tpacket4.Socket(area, 256, 256, meta=True) as sock,
    ):
        sock.bind("tp4A")
        before = time.time_ns()
        peer.send(data)
        sock.wait(WAIT)
        (packet,) = sock.receive()
        parts = packet.parts()
        ok = len(parts) > 1 and b"".join(parts) == data == bytes(packet)
        result(
            ok and len(packet) == len(data),
            "several frames",
            [len(p) for p in parts],
        )
        error = raised(BufferError, lambda: packet.data)
        result("several frames" in str(error), "have no single view", error)
        meta = packet.meta
        late = time.time_ns() - before
        ok = meta is not None and meta.wire_len == 8000 and meta.protocol == 0x88B5
        ok = ok and meta.addr == HEAD[6:12] and 0 <= meta.tstamp - before <= late
        result(ok, "metadata", meta)
        result(bool(raised(BufferError, packet.release)), "a part's view counts")
        del parts
        result(sock.send([packet, data]) == 2 and sock.flush(WAIT), "are sent")
        result(peer.recv(9000) == data == peer.recv(9000), "and arrive")
        del packet
        udp = bytes.fromhex("4500002000000000401100000a0000010a000002 03e803e8000c0000")
        packet = area.packet(bytes(12) + b"\x08\0" + udp + b"data")
        packet.request_csum(34, 6)
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as ip:
            ip.bind(("tp4B", 0x0800))
            ip.settimeout(WAIT)
            ip.setsockopt(263, 15, 1)  # PACKET_VNET_HDR
            sock.send([packet])
            sock.flush(WAIT)
            got = ip.recv(2000)
        result(
            got[0] & 1 and got[6:10] == b"\x22\0\x06\0",
            "checksum requested",
            got[:10],
        )
        sock.receive()
        result(area.free == 1024 - 256, "no frame is lost", area.free)
        packets = [area.packet(1) for _ in range(area.free)]
        error = raised(OSError, lambda: area.packet(1))
        result(
            error is not None and error.errno == errno.ENOBUFS,
            "no free frame",
            error,
        )
        del packets
        result(bool(raised(ValueError, lambda: area.packet(1 << 62))), "or too many")


def test_errors() -> None:
    with tpacket4.Area(512) as area, tpacket4.Socket(area, rx=256) as sock:
        for name, code, text in (
            ("nosuch0", errno.ENODEV, "there is no such interface"),
            ("a-name-that-is-too-long", errno.ENODEV, "there is no such interface"),
            ("zc:nosuch0:1", errno.ENODEV, "there is no such interface"),
            ("zc:lo:0", errno.EOPNOTSUPP, "no zero-copy mode"),
            ("zc:tp4A:7", errno.ENXIO, "no such queue pair"),
        ):
            error = raised(OSError, lambda name=name: sock.bind(name))
            ok = (
                error
                and (error.errno, error.filename) == (code, name)
                and text in str(error)
            )
            result(bool(ok), f"bind: {name}", error)
        for name in "zc:tp4A:x", "zc:tp4A:", "zc:tp4A:-1", "zc:tp4A:99999999999":
            error = raised(ValueError, lambda name=name: sock.bind(name))
            result(bool(error), f"bind: {name}", error)
        sock.bind("tp4A")
        result(not sock.wait(0), "the right name afterwards")
        sock.bind("zc:tp4A")
        error = raised(OSError, lambda: sock.bind("tp4B"))
        result(
            error is not None and error.errno == errno.EBUSY, "in zero-copy mode", error
        )
        with raw("tp4B") as peer:
            peer.send(number(1))
            result(receive(sock, 1) == [number(1)], "which goes on")
        error = raised(OSError, lambda: tpacket4.Socket(area, rx=100))
        result("power of two" in str(error), "ring of 100", error)
        error = raised(OSError, lambda: tpacket4.Socket(area))
        result("at least one ring" in str(error), "no ring", error)
        result(bool(raised(ValueError, lambda: sock.send([b"x"]))), "no Tx ring")
        result(bool(raised(ValueError, lambda: sock.wait(float("nan")))), "timeout nan")
    error = raised(OSError, lambda: sock.wait(0))
    result(error is not None and error.errno == errno.EBADF, "closed socket", error)
    error = raised(OSError, lambda: tpacket4.Area(0))
    result("at least one frame" in str(error), "no frames", error)
    pid = os.fork()
    if not pid:
        os.setresuid(65534, 65534, 65534)
        error = raised(PermissionError, lambda: tpacket4.Area(16))
        os._exit("CAP_NET_RAW" not in str(error))
    result(os.waitpid(pid, 0)[1] == 0, "PermissionError without CAP_NET_RAW")


def ip(command: str) -> None:
    subprocess.run(["ip", *command.split()], check=True)


def test_down() -> None:
    ip("link add tp4C type veth peer name tp4D")
    ip("link set tp4C up")
    with tpacket4.Area(512) as area, tpacket4.Socket(area, rx=256) as sock:
        sock.bind("tp4C")
        ip("link set tp4C down")
        error = raised(OSError, lambda: sock.wait(WAIT))
        result(
            error is not None and error.errno == errno.ENETDOWN, "device down", error
        )
        ip("link del tp4C")
        error = raised(OSError, lambda: sock.wait(WAIT))
        result(
            error is not None and error.errno == errno.ENODEV, "device removed", error
        )


@contextmanager
def program(*command: object) -> Iterator[subprocess.Popen[str]]:
    args = [sys.executable, *map(str, command)]
    with subprocess.Popen(args, text=True, stdout=-1, stderr=-1, bufsize=1) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def test_signal() -> None:
    with program(HERE / "examples/capture", "tp4A", "/dev/null") as process:
        ready = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=WAIT)
        said = (ready, process.returncode, out, err)
        result(
            said == ("ready\n", 0, "0 packets, 0 dropped\n", ""),
            "SIGINT in wait()",
            said,
        )
    code = (
        "import tpacket4\nwith tpacket4.Area(512) as a, tpacket4.Socket(a, 256) as s:"
    )
    code += " s.bind('zc:tp4A'); print(flush=True); s.wait()"
    with program("-c", code) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=WAIT)[1]
        ok = process.returncode == -signal.SIGINT and "KeyboardInterrupt" in err
        result(ok, "SIGINT is KeyboardInterrupt", (process.returncode, err))


def test_fork() -> None:
    area = tpacket4.Area(512)
    sock = tpacket4.Socket(area, rx=256)
    sock.bind("zc:tp4A:0")
    with raw("tp4B") as peer:
        peer.send(number(5))
        sock.wait(WAIT)
        (packet,) = sock.receive()
        view = packet.data
        ends, parent = os.pipe(), os.getpid()
        started = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(ends[1])
            os.write(started[1], b"x")
            calls = (sock.wait, lambda: sock.send([]), lambda: packet.data)
            calls += (lambda: area.packet(1), lambda: tpacket4.Socket(area, 256))
            ok = all(raised(RuntimeError, call) for call in calls)
            ok = ok and bytes(view) == bytes(60) and sock.fileno() == -1
            view[:] = bytes(range(60))  # must not reach the parent
            sock.close()
            os.read(ends[0], 1)  # until the parent has closed its end
            os._exit(not ok or parent == os.getpid())
        os.close(ends[0])
        os.read(started[0], 1)
        for fd in started:
            os.close(fd)
        peer.send(number(6))
        result(receive(sock, 1) == [number(6)], "fork: the parent receives")
        sock.close()
        with tpacket4.Socket(area, rx=256) as again:
            error = raised(OSError, lambda: again.bind("zc:tp4A:0"))
            result(error is None, "the child does not keep its queue", error)
        os.close(ends[1])
        status = os.waitpid(pid, 0)[1]
        result(status == 0, "the child has nothing of it", status)
        result(bytes(view) == number(5), "and has not written to it", bytes(view))
    view.release()
    packet.release()
    area.close()


def test_threads() -> None:
    with (
        tpacket4.Area(8192) as area,
        tpacket4.Socket(area, rx=1024) as sock,
        tpacket4.Socket(area, tx=1024) as peer,
    ):
        sock.bind("tp4A")
        peer.bind("tp4B")
        got: list[bytes] = []
        taken = threading.Semaphore(0)

        def take() -> None:
            while len(got) < COUNT:
                sock.wait(0.05)
                packets = sock.receive()
                got.extend(map(bytes, packets))
                for _ in packets:
                    taken.release()

        def send(start: int) -> None:
            peer.send([number(i) for i in range(start, start + 250)])

        receivers = [threading.Thread(target=take) for _ in range(2)]
        for thread in receivers:
            thread.start()
        for start in range(0, COUNT, 500):
            senders = [
                threading.Thread(target=send, args=[start + n]) for n in (0, 250)
            ]
            for thread in senders:
                thread.start()
            for thread in senders:
                thread.join()
            peer.flush(WAIT)
            for _ in range(500):
                taken.acquire(timeout=WAIT)
        for thread in receivers:
            thread.join()
        ok = sorted(got) == [number(i) for i in range(COUNT)]
        result(ok, "two threads send, and two receive", len(got))
        waiting = threading.Thread(target=sock.wait)
        waiting.start()
        end = time.monotonic() + WAIT
        error = None
        # It is closed if the other thread does not wait yet.
        while not error and time.monotonic() < end:
            error = raised(RuntimeError, sock.close)
        result("another thread" in str(error), "close() while one waits", error)
        peer.send([number(1)])
        waiting.join(WAIT)
        result(not waiting.is_alive(), "which wakes up")


def test_leaks() -> None:
    def once() -> None:
        with (
            raw("tp4B") as peer,
            tpacket4.Area(512) as area,
            tpacket4.Socket(area, 256, 256, meta=True) as sock,
        ):
            sock.bind("tp4A")
            for i in range(20):
                peer.send(number(i, 3000 if i == 4 else 60))
            kept = []
            while len(kept) < 20 and sock.wait(WAIT):
                kept += [(p, p.meta, p.parts(), bytes(p)) for p in sock.receive()]
            raised(OSError, lambda: sock.bind("nosuch0"))
            raised(BufferError, lambda: sock.send([kept[0][0]]))
            raised(OSError, lambda: tpacket4.Socket(area, rx=100))
            sock.send([b"x" * 60, area.packet(60), area.packet(5000)])
            raised(TypeError, lambda: sock.send([1]))
            sock.flush(WAIT)
            sock.stats()

    def state() -> tuple[int, int, int]:
        gc.collect()
        fds = len(os.listdir("/proc/self/fd"))
        maps = Path("/proc/self/maps").read_text().count("tpacket4")
        return sys.getallocatedblocks(), fds, maps

    def counts() -> list[int]:
        types = (
            tpacket4.Area,
            tpacket4.Packet,
            tpacket4.Meta,
            tpacket4.Stats,
            tpacket4.Socket,
        )
        return [sys.getrefcount(kind) for kind in types]

    for _ in range(3):
        once()
    counts_before = counts()
    before = state()
    for _ in range(20):
        once()
    after = state()
    ok = after[0] - before[0] < 20 and after[1:] == before[1:]
    result(ok, "no block, fd or mapping is leaked", (before, after))
    result(counts() == counts_before, "nor a reference to a type", counts())


def test_readme() -> None:
    (code,) = re.findall(
        r"```python\n(.*?)```", (HERE / "README.md").read_text(), re.DOTALL
    )
    with (
        raw("tp4B") as peer,
        program("-uc", code.replace('"eth0"', '"tp4A"')) as process,
    ):
        alarm = threading.Timer(WAIT, process.kill)
        alarm.start()
        sender = threading.Event()

        def send() -> None:  # until it is bound
            while not sender.wait(0.02):
                peer.send(number(1))

        thread = threading.Thread(target=send)
        thread.start()
        line = process.stdout.readline()
        sender.set()
        thread.join()
        alarm.cancel()
        process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=WAIT)[1]
        want = "60 bytes from 02:00:00:00:00:01\n"
        ok = line == want and process.returncode == -signal.SIGINT
        result(ok, "README's program", (line, process.returncode, err))


def test_scapy() -> None:
    global tests
    try:
        os.environ.setdefault("XDG_CACHE_HOME", "/tmp")
        os.environ.setdefault("XDG_CONFIG_HOME", "/tmp")
        from scapy.config import conf
        from scapy.layers.l2 import ARP, Ether
        from scapy.sendrecv import sendp, sniff
    except ImportError as exc:
        tests += 1
        print(f"ok {tests} scapy # SKIP {exc}: pip could not install it")
        return
    sys.path.insert(0, str(HERE / "examples"))
    from scapy_socket import TPacket4Socket

    conf.verb = 0
    for name in "tp4A", "zc:tp4A":
        sock = TPacket4Socket(iface=name)
        with raw("tp4B") as peer:

            def send(peer: socket.socket = peer) -> None:
                for i in range(3):
                    peer.send(number(i))

            got = sniff(
                opened_socket=sock, count=3, timeout=WAIT, started_callback=send
            )
            frames = [bytes(packet) for packet in got]
            result(
                frames == [number(i) for i in range(3)], f"scapy sniffs on {name}", got
            )
            sendp(Ether(HEAD) / bytes(46), socket=sock)
            result(peer.recv(100) == HEAD + bytes(46), f"scapy sends on {name}")
        sock.close()
    conf.L2socket = conf.L2listen = TPacket4Socket
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as peer:
        peer.bind(("tp4B", 0x0806))
        peer.settimeout(WAIT)
        sendp(
            Ether(dst="ff:ff:ff:ff:ff:ff", src="02:00:00:00:00:01") / ARP(),
            iface="tp4A",
        )
        got = peer.recv(100)
        result(got[12:14] == b"\x08\x06", "scapy finds the socket by conf", got)


def main() -> int:
    print("TAP version 13")
    for name, test in sorted(globals().items()):
        if name.startswith("test_") and (len(sys.argv) == 1 or name in sys.argv[1:]):
            start = time.monotonic()
            test()
            print(f"# {name}: {time.monotonic() - start:.1f} s", flush=True)
    print(f"1..{tests}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
