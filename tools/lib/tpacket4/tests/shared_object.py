#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Uses ./libtpacket4.so.1 from Python on the veth pair tp4A, tp4B; to be called by
on_veth.sh: shared_object.py TPACKET4.7, the manual page whose errors tp4_strerror()
must know.
"""

import ctypes as c
import errno
import os
import re
import resource
import socket
import sys
from pathlib import Path

NR = 256
WAIT_MS = 20000
POLLIN = 1
PROTO = 0x88B5


class Area(c.Structure):
    """struct tp4_area"""

    _fields_ = (
        ("addr", c.c_void_p),
        ("len", c.c_size_t),
        ("frame_size", c.c_uint32),
        ("nr_frames", c.c_uint32),
        ("memfd", c.c_int),
        ("shared", c.c_int),
        ("frame_unit", c.c_uint32),
    )


class Desc(c.Structure):
    """struct tpacket4_desc"""

    _fields_ = (
        ("idx", c.c_uint64),
        ("len", c.c_uint32),
        ("offset", c.c_uint16),
        ("error", c.c_uint8),
        ("flags", c.c_uint8),
    )


class Ring(c.Structure):
    """struct tp4_ring"""

    _fields_ = (
        ("ring", c.c_void_p),
        ("avail_idx", c.c_uint),
        ("last_used_idx", c.c_uint),
        ("num_free", c.c_uint),
        ("ring_mask", c.c_uint),
        ("seen", c.c_uint),
        ("held", c.c_uint),
    )


class Socket(c.Structure):
    """struct tp4_socket"""

    _fields_ = (
        ("fd", c.c_int),
        ("rx", Ring),
        ("tx", Ring),
        ("status", c.c_void_p),
        ("map", c.c_void_p),
        ("map_len", c.c_size_t),
        ("backend", c.c_void_p),
        ("protocol", c.c_uint16),
        ("failed", c.c_int),
    )


class Options(c.Structure):
    """struct tp4_options"""

    _fields_ = (
        ("rx_nr", c.c_uint),
        ("tx_nr", c.c_uint),
        ("area", c.POINTER(Area)),
        ("headroom", c.c_uint32),
        ("mr_fd", c.c_int),
        ("fd", c.c_int),
        ("meta", c.c_int),
        ("to_stack", c.c_int),
        ("protocol", c.c_uint16),
        ("keep", c.c_int),
        ("packed", c.c_int),
        ("size", c.c_uint32),
        ("gso", c.c_int),
    )


class FutureOptions(c.Structure):
    """struct tp4_options of a later version"""

    _fields_ = (("now", Options), ("more", c.c_uint64))


class Device(c.Structure):
    """struct tp4_device"""

    _fields_ = (
        ("zerocopy", c.c_int),
        ("queues", c.c_uint),
        ("pass_to_kernel", c.c_int),
        ("xdp_features", c.c_uint64),
    )


# enum tp4_where, by the calls of the manual page
WHERE = {
    "PACKET_VERSION": 2,
    "PACKET_MEMREG": 3,
    "PACKET_RX_RING": 4,
    "PACKET_TX_RING": 4,
    "mmap()": 5,
    "bind()": 7,
    "PACKET_ZEROCOPY": 8,
    "sendto()": 9,
    "SO_ERROR": 10,
    "error of Rx descriptors": 11,
    "error of Tx descriptors": 12,
}
# No function of the library makes these calls.
NOT_OURS = re.compile(
    r"PACKET_(COPY_THRESH|TX_HAS_OFF|VNET_HDR|RESERVE|LOSS|FANOUT)|SO_TIMESTAMPING|"
    r"ethtool|ip link"
)

lib = c.CDLL("./libtpacket4.so.1")
lib.tp4_ring_at.restype = c.POINTER(Desc)
lib.tp4_data.restype = c.c_void_p
lib.tp4_strerror.restype = c.c_char_p
tests = 0
failed = 0


def result(ok: bool, name: str, got: object = "") -> None:
    global tests, failed
    tests += 1
    failed += not ok
    if not ok:
        print(f"# error: {got}")
    print(f"{'' if ok else 'not '}ok {tests} {name}", flush=True)


def packet(number: int) -> bytes:
    head = bytes([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]) + PROTO.to_bytes(2, "big")
    return head + bytes((number + i) % 251 for i in range(100 + number))


def receive(sock: Socket, area: Area, number: int) -> list[bytes]:
    got: list[bytes] = []
    while len(got) < number and lib.tp4_wait(c.byref(sock), POLLIN, WAIT_MS) > 0:
        count = lib.tp4_ring_peek(c.byref(sock.rx), 64)
        for i in range(count):
            desc = lib.tp4_ring_at(c.byref(sock.rx), i)
            data = lib.tp4_data(c.byref(area), desc)
            got.append(c.string_at(data, desc.contents.len))
        lib.tp4_ring_recycle(c.byref(sock.rx), count)
    return got


def test_receive() -> None:
    area, sock = Area(), Socket()
    err = lib.tp4_area_create(c.byref(area), NR, 2048)
    result(err == 0, "area", os.strerror(-err))
    opt = Options(rx_nr=NR, area=c.pointer(area), protocol=PROTO)
    err = lib.tp4_open(c.byref(sock), c.byref(opt))
    result(err == 0, "socket", os.strerror(-err))
    posted = lib.tp4_ring_fill(c.byref(sock.rx), c.c_uint64(0), NR)
    result(posted == NR, "post", posted)
    err = lib.tp4_bind(c.byref(sock), socket.if_nametoindex("tp4A"))
    result(err == 0, "bind", os.strerror(-err))
    want = [packet(i) for i in range(20)]
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind(("tp4B", 0))
        for data in want:
            sender.send(data)
    got = receive(sock, area, len(want))
    result(got == want, "received packets are those sent", got)
    lib.tp4_close(c.byref(sock))
    result(sock.fd == -1, "closed")
    lib.tp4_area_destroy(c.byref(area))


def test_allocated() -> None:
    """The program does not know how large the structures are."""
    for name in "area", "socket", "queues":
        new, free = getattr(lib, f"tp4_{name}_new"), getattr(lib, f"tp4_{name}_free")
        new.restype = c.c_void_p
        free.argtypes = (c.c_void_p,)
        free(None)
    for name in "rx", "tx":
        getattr(lib, f"tp4_socket_{name}").restype = c.c_void_p
        getattr(lib, f"tp4_socket_{name}").argtypes = (c.c_void_p,)
    lib.tp4_queues_socket.restype = c.c_void_p
    area, sock, queues = lib.tp4_area_new(), lib.tp4_socket_new(), lib.tp4_queues_new()
    pointers = [c.c_void_p(where) for where in (area, sock, queues)]
    err = lib.tp4_area_create(pointers[0], NR, 2048)
    result(err == 0, "area in allocated memory", os.strerror(-err))
    result(lib.tp4_socket_fd(pointers[1]) == -1, "not open")
    opt = Options(rx_nr=NR, tx_nr=NR, area=c.cast(area, c.POINTER(Area)))
    err = lib.tp4_open(pointers[1], c.byref(opt))
    result(err == 0, "socket in allocated memory", os.strerror(-err))
    free_slots = [
        lib.tp4_ring_free(c.c_void_p(ring(sock)))
        for ring in (lib.tp4_socket_rx, lib.tp4_socket_tx)
    ]
    result(free_slots == [NR, NR], "rings", free_slots)
    result(os.fstat(lib.tp4_socket_fd(pointers[1])).st_ino > 0, "file descriptor")
    err = lib.tp4_open_queues(pointers[2], 0, 1, c.byref(opt))
    result(err == 0, "queues in allocated memory", os.strerror(-err))
    found = [bool(lib.tp4_queues_socket(pointers[2], i)) for i in range(2)]
    result(found == [True, False], "sockets of queues", found)
    files = len(os.listdir("/proc/self/fd"))
    for name, where in ("queues", queues), ("socket", sock), ("area", area):
        getattr(lib, f"tp4_{name}_free")(where)
    closed = files - len(os.listdir("/proc/self/fd"))
    result(closed >= 3, "freeing closes", closed)


def test_future_options() -> None:
    """A later program works as long as it does not use what is new."""
    area, sock = Area(), Socket()
    lib.tp4_area_create(c.byref(area), NR, 2048)
    opt = FutureOptions(Options(rx_nr=NR, area=c.pointer(area)), 0)
    for size, more, want in (
        (c.sizeof(FutureOptions), 0, 0),
        (c.sizeof(FutureOptions), 1 << 56, -errno.EINVAL),
        (0, 1, 0),
        (c.sizeof(Options), 1, 0),
    ):
        opt.now.size, opt.more = size, more
        err = lib.tp4_open(c.byref(sock), c.byref(opt))
        result(err == want, f"options of {size} bytes, {more:#x} behind ours", err)
        lib.tp4_close(c.byref(sock))
    lib.tp4_area_destroy(c.byref(area))


def test_memlock() -> None:
    """Without CAP_IPC_LOCK, the limit is named."""
    area, sock = Area(), Socket()
    pid = os.fork()
    if pid:
        result(os.waitpid(pid, 0)[1] == 0, "the limit of locked memory is named")
        return
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
    fd = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).detach()
    os.setresuid(65534, 65534, 65534)
    lib.tp4_area_create(c.byref(area), NR, 2048)
    opt = Options(rx_nr=NR, area=c.pointer(area), fd=fd)
    err = lib.tp4_open(c.byref(sock), c.byref(opt))
    text = lib.tp4_strerror(sock.failed, err).decode()
    print(f"# {err}: {text}", flush=True)
    os._exit(not (err == -errno.ENOBUFS and "RLIMIT_MEMLOCK" in text))


def test_device() -> None:
    device = Device()
    for name, zerocopy in ("tp4A", 1), ("lo", 0):
        err = lib.tp4_device(socket.if_nametoindex(name), c.byref(device))
        got = (err, device.zerocopy)
        result(got == (0, zerocopy), f"{name}: zero-copy mode", got)
    lib.tp4_device(socket.if_nametoindex("tp4A"), c.byref(device))
    result(device.queues == 1, "queue pairs", device.queues)
    err = lib.tp4_device(1 << 30, c.byref(device))
    result(err == -errno.ENODEV, "no such interface", err)
    err = lib.tp4_resets_link(socket.if_nametoindex("tp4A"))
    result(err == 0, "the link stays up", err)


def rows(page: str) -> list[tuple[str, str]]:
    """The calls and errnos of the section ERRORS."""
    section = page.split("\n.SH ERRORS\n")[1].split("\n.SH ")[0]
    found = []
    for part in section.split("\n.SS ")[1:]:
        calls = part.splitlines()[0].split(", ")
        for tag in re.findall(r"^\.TP\n\.BR? (.*)", part, re.MULTILINE):
            codes = re.findall(r"\bE[A-Z0-9]+\b", tag)
            found += [(call, code) for code in codes for call in calls]
    return found


def wheres(call: str) -> list[int]:
    if call == "error of all descriptors":
        return [11, 12]
    return [number for name, number in WHERE.items() if call.startswith(name)]


def test_strerror(page: str) -> None:
    table = rows(page)
    result(len(table) > 40, "the manual page lists errors", len(table))
    for call, code in table:
        number = getattr(errno, code)
        where = wheres(call)
        if not where and NOT_OURS.search(call):
            continue
        result(bool(where), f"{call} is known")
        for place in where:
            text = lib.tp4_strerror(place, number).decode()
            result(text != os.strerror(number), f"{call}: {code}", text)


def main() -> int:
    print("TAP version 13")
    page = Path(sys.argv[1]).read_text()
    test_receive()
    test_allocated()
    test_future_options()
    test_memlock()
    test_device()
    test_strerror(page)
    print(f"1..{tests}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
