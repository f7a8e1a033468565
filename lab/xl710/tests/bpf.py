#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Load one of a few tiny XDP programs and pin it, for ip link ... xdp pinned.

The programs are written down as instructions, so that a guest needs neither a
compiler nor libbpf.
"""

import argparse
import ctypes
import os
import struct
import sys

BPF_PROG_LOAD = 5
BPF_OBJ_PIN = 6
BPF_PROG_TYPE_XDP = 6
SYS_BPF = 321  # x86-64

XDP_DROP, XDP_PASS, XDP_TX = 1, 2, 3
FUNC_REDIRECT, FUNC_ADJUST_META = 23, 54
BPF_F_XDP_HAS_FRAGS = 1 << 5


def insn(op: int, dst: int = 0, src: int = 0, off: int = 0, imm: int = 0) -> bytes:
    return struct.pack("<BBhi", op, dst | src << 4, off, imm)


def mov(dst: int, imm: int) -> bytes:
    return insn(0xB7, dst, imm=imm)


EXIT = insn(0x95)


def swap_macs() -> bytes:
    """r2 = data, r3 = data_end; drop what is shorter than 14 bytes."""
    code = insn(0x61, 2, 1, 0)  # r2 = *(u32 *)(r1 + 0)
    code += insn(0x61, 3, 1, 4)  # r3 = *(u32 *)(r1 + 4)
    code += insn(0xBF, 4, 2)  # r4 = r2
    code += insn(0x07, 4, imm=14)  # r4 += 14
    code += insn(0x3D, 3, 4, 2)  # if r3 >= r4 goto +2
    code += mov(0, XDP_DROP) + EXIT
    for i in range(0, 6, 2):
        code += insn(0x69, 4, 2, i)  # r4 = *(u16 *)(r2 + i)
        code += insn(0x69, 5, 2, i + 6)  # r5 = *(u16 *)(r2 + i + 6)
        code += insn(0x6B, 2, 5, i)  # *(u16 *)(r2 + i) = r5
        code += insn(0x6B, 2, 4, i + 6)  # *(u16 *)(r2 + i + 6) = r4
    return code


def program(name: str, ifindex: int) -> bytes:
    if name == "pass":
        return mov(0, XDP_PASS) + EXIT
    if name == "drop":
        return mov(0, XDP_DROP) + EXIT
    if name == "tx":
        return swap_macs() + mov(0, XDP_TX) + EXIT
    if name == "meta":  # drop what has no room for metadata
        code = mov(2, -8) + insn(0x85, imm=FUNC_ADJUST_META)
        code += insn(0x15, 0, off=2)  # if r0 == 0 goto +2
        return code + mov(0, XDP_DROP) + EXIT + mov(0, XDP_PASS) + EXIT
    return mov(1, ifindex) + mov(2, 0) + insn(0x85, imm=FUNC_REDIRECT) + EXIT


def bpf(cmd: int, attr: bytes) -> int:
    buf = ctypes.create_string_buffer(attr, 128)
    libc = ctypes.CDLL(None, use_errno=True)
    ret = libc.syscall(SYS_BPF, cmd, buf, len(buf))
    if ret < 0:
        err = ctypes.get_errno()
        raise OSError(err, os.strerror(err))
    return ret


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", choices=("pass", "drop", "tx", "meta", "redirect"))
    parser.add_argument("path", help="where to pin it, on a bpf file system")
    parser.add_argument(
        "--ifindex", type=int, default=0, help="where redirect sends to"
    )
    args = parser.parse_args()

    code = ctypes.create_string_buffer(program(args.program, args.ifindex))
    gpl = ctypes.create_string_buffer(b"GPL")
    log = ctypes.create_string_buffer(65536)
    attr = struct.pack(
        "<IIQQIIQII",
        BPF_PROG_TYPE_XDP,
        (len(code) - 1) // 8,
        ctypes.addressof(code),
        ctypes.addressof(gpl),
        1,
        len(log),
        ctypes.addressof(log),
        0,
        BPF_F_XDP_HAS_FRAGS,
    )
    try:
        fd = bpf(BPF_PROG_LOAD, attr)
    except OSError as err:
        print(f"bpf.py: {err}\n{log.value.decode()}", file=sys.stderr)
        return 1
    path = ctypes.create_string_buffer(os.fsencode(args.path))
    bpf(BPF_OBJ_PIN, struct.pack("<QII", ctypes.addressof(path), fd, 0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
