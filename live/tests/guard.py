#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Checks that the module does not compile for a kernel that differs from its source.

guard.py ASSEMBLED HEADERS RELEASE

ASSEMBLED is what live/assemble has written, for the kernel whose headers are in HEADERS. The
kernel's BTF is changed as a point release may change it: a member moves, a function takes
another type, a function is gone. The output is TAP.
"""

import importlib.util
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

LIVE = Path(__file__).resolve().parents[1]
spec = importlib.util.spec_from_file_location("guard", LIVE / "guard.py")
assert spec and spec.loader
guard = importlib.util.module_from_spec(spec)
sys.modules["guard"] = guard
spec.loader.exec_module(guard)


class Btf(guard.Btf):
    """Also knows where each type lies, to change it."""

    def __init__(self, data: bytes) -> None:
        self.at = [0]
        super().__init__(data)
        self.changed = bytearray(data)

    def read(self, at: int) -> int:
        self.at.append(at)
        return super().read(at)

    def find_one(self, kind: int, name: str) -> int:
        [number] = self.find(kind, name)
        return number

    def move_member(self, name: str, member: str) -> None:
        """Eight bytes up"""
        number = self.find_one(guard.STRUCT, name)
        names = [m[0] for m in self.types[number].members]
        place = self.at[number] + 12 + 12 * names.index(member) + 8
        (bits,) = struct.unpack_from("<I", self.changed, place)
        struct.pack_into("<I", self.changed, place, bits + 64)

    def change_argument(self, name: str, number: int) -> None:
        """To the type of the first one"""
        proto = self.types[self.find_one(guard.FUNC, name)].size
        place = self.at[proto] + 12
        (first,) = struct.unpack_from("<I", self.changed, place + 4)
        struct.pack_into("<I", self.changed, place + 8 * number + 4, first)

    def rename(self, name: str) -> None:
        """All that has the name, by its first letter"""
        number = self.find_one(guard.FUNC, name)
        (offset,) = struct.unpack_from("<I", self.changed, self.at[number])
        self.changed[self.strings + offset] ^= 1


def compile_for(btf: bytes, tree: Path, headers: str, release: str) -> tuple[int, str]:
    """As live/build does, but only the file with the checks of AF_PACKET"""
    path = tree / "btf"
    path.write_bytes(btf)
    written = [LIVE / "guard.py", path, release, tree / "live/generated"]
    make = ["make", "-s", "-C", headers, f"M={tree}", "live/packet.o"]
    for command in ["python3", "-B", *map(str, written)], make:
        done = subprocess.run(
            command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        if done.returncode:
            break
    return done.returncode, done.stdout.decode(errors="replace")


def main() -> int:
    if len(sys.argv) != 4:
        print(__doc__)
        return 0 if sys.argv[1:] == ["--help"] else 2
    assembled, headers, release = sys.argv[1:]
    vmlinux = Path(headers, "vmlinux")
    data = guard.find_section(vmlinux.read_bytes(), str(vmlinux))
    moved, changed, gone = Btf(data), Btf(data), Btf(data)
    moved.move_member("packet_sock", "prot_hook")
    changed.change_argument("packet_create", 2)
    gone.rename("packet_notifier")
    cases = [
        ("the kernel as it is", data, ""),
        ("a member moves", moved.changed, "offsetof(struct packet_sock, prot_hook)"),
        (
            "an argument changes",
            changed.changed,
            "this kernel has another prototype of packet_create",
        ),
        ("a function is gone", gone.changed, "no function packet_notifier"),
    ]
    failed = 0
    with tempfile.TemporaryDirectory() as tmp:
        tree = Path(tmp, "tree")
        shutil.copytree(assembled, tree, ignore=shutil.ignore_patterns("*.o", ".*.cmd"))
        for number, (name, btf, reason) in enumerate(cases, 1):
            code, said = compile_for(bytes(btf), tree, headers, release)
            good = reason in said and code != 0 if reason else code == 0
            if not good:
                failed = 1
                print(f"# error: status {code}: {said[-2000:]!r}")
            print(f"{'ok' if good else 'not ok'} {number} guard.{name}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
