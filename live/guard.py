#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Writes what the compiler checks of a kernel before the module may be built for it.

guard.py BTF RELEASE OUT

The module calls functions of the kernel that are not exported, replaces others, and shares
structures with them that no header has. Point releases of a stable kernel change those, and
no symbol version covers them. BTF, the kernel's own description of its types, has them all.

BTF is a vmlinux with that section, or /sys/kernel/btf/vmlinux. From it, OUT/live_btf.h
declares a type for each function of FUNCTIONS, and OUT/live_layout.h has a macro for each of
STRUCTS, which asserts the place of each member. The module's sources use both, so they do not
compile for a kernel that differs; the message names what differs. The module loads only where
the BTF of the running kernel has the same checksum.
"""

import struct
import sys
import zlib
from dataclasses import dataclass, field
from pathlib import Path

FUNCTIONS = [
    "packet_create",
    "packet_notifier",
    "dev_get_min_mp_channel_count",
    "dev_xdp_install",
    "dev_xdp_prog_count",
    "dev_xdp_prog_id",
    "bpf_prog_change_xdp",
    "kallsyms_on_each_match_symbol",
    "__netdev_update_features",
    "bpf_prog_kallsyms_add",
    "bpf_xdp_copy_buf",
    "xp_assign_dev",
    "xp_create_and_assign_umem",
    "xp_destroy",
    "xsk_clear_pool_at_qid",
    "xp_alloc",
    "xp_alloc_batch",
    "xp_can_alloc",
    "xp_set_rxq_info",
    "xsk_tx_completed",
    "xsk_tx_peek_desc",
    "xsk_tx_peek_release_desc_batch",
    "__xsk_map_redirect",
    "__xsk_map_flush",
]

# What the kernel's AF_PACKET sees of our sockets, and we of its; what net/xdp, the drivers
# and XDP see of our pools
STRUCTS = [
    "packet_sock",
    "packet_fanout",
    "packet_mclist",
    "packet_ring_buffer",
    "tpacket_kbdq_core",
    "packet_rollover",
    "pgv",
    "netns_packet",
    "packet_type",
    "proto_ops",
    "proto",
    "xdp_sock",
    "xdp_umem",
    "xsk_buff_pool",
    "xdp_buff_xsk",
    "xdp_buff",
    "xdp_rxq_info",
    "xsk_queue",
    "xdp_ring",
    "xsk_dma_map",
    "bpf_xdp_link",
    "netdev_bpf",
    "bpf_redirect_info",
    "bpf_xdp_entity",
    "netdev_rx_queue",
]

# The module's has members of V4 behind the kernel's, which begin with this one.
LONGER = {"packet_sock": "tp4_area"}

INT, PTR, ARRAY, STRUCT, UNION, ENUM, FWD, TYPEDEF = range(1, 9)
VOLATILE, CONST, RESTRICT, FUNC, PROTO, VAR, DATASEC, FLOAT = range(9, 17)
DECL_TAG, TYPE_TAG, ENUM64 = range(17, 20)
SKIPPED = {VOLATILE: "volatile ", CONST: "const ", RESTRICT: "", TYPE_TAG: ""}
# Bytes behind the header of a type: these, and those for each of its members
EXTRA = {INT: (4, 0), ARRAY: (12, 0), STRUCT: (0, 12), UNION: (0, 12), ENUM: (0, 8)}
EXTRA |= {
    PROTO: (0, 8),
    VAR: (4, 0),
    DATASEC: (0, 12),
    DECL_TAG: (4, 0),
    ENUM64: (0, 12),
}
MAGIC = 0xEB9F


class Error(Exception):
    """The kernel cannot be checked, or lacks something."""


@dataclass
class Type:
    kind: int
    name: str
    size: int  # or the number of the type that this one refers to
    members: list[tuple[str, int, int]] = field(
        default_factory=list
    )  # name, type, bits
    bitfields: bool = False  # the upper byte of the members' bits is a width


def find_section(data: bytes, path: str) -> bytes:
    """The section .BTF of a 64-bit ELF file, or all of a file that is BTF."""
    if data[:2] == struct.pack("<H", MAGIC):
        return data
    if data[:6] != b"\x7fELF\x02\x01":
        raise Error(f"{path} is neither BTF nor a 64-bit little-endian ELF file")
    (start,) = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    headers = [
        struct.unpack_from("<IIQQQQ", data, start + n * size) for n in range(count)
    ]
    strings = headers[names][4]
    for name, _, _, _, offset, length in headers:
        if data[strings + name :].startswith(b".BTF\0"):
            return data[offset : offset + length]
    raise Error(f"{path} has no BTF")


class Btf:
    """The types of a kernel, by number."""

    def __init__(self, data: bytes) -> None:
        magic, _, _, header = struct.unpack_from("<HBBI", data)
        if magic != MAGIC:
            raise Error("no BTF")
        types, length, strings, _ = struct.unpack_from("<IIII", data, 8)
        self.data = data
        self.strings = header + strings
        self.types = [Type(0, "void", 0)]
        at, end = header + types, header + types + length
        while at < end:
            at = self.read(at)

    def text(self, offset: int) -> str:
        start = self.strings + offset
        return self.data[start : self.data.index(b"\0", start)].decode()

    def read(self, at: int) -> int:
        name, info, size = struct.unpack_from("<III", self.data, at)
        kind, count = info >> 24 & 31, info & 0xFFFF
        if not 0 < kind <= ENUM64:
            raise Error(f"BTF has a kind of type that is not known here, {kind}")
        item = Type(kind, self.text(name), size, bitfields=bool(info >> 31))
        at += 12
        fixed, each = EXTRA.get(kind, (0, 0))
        for offset in range(at, at + count * each, each or 1):
            if kind in (STRUCT, UNION):
                name, number, bits = struct.unpack_from("<III", self.data, offset)
                item.members.append((self.text(name), number, bits))
            elif kind == PROTO:
                name, number = struct.unpack_from("<II", self.data, offset)
                item.members.append((self.text(name), number, 0))
        if kind == ARRAY:
            item.size, _, length = struct.unpack_from("<III", self.data, at)
            item.members.append(("", item.size, length))
        self.types.append(item)
        return at + fixed + count * each

    def size(self, number: int) -> int:
        item = self.types[number]
        if item.kind == PTR:
            return 8
        if item.kind == ARRAY:
            return self.size(item.size) * item.members[0][2]
        if item.kind == TYPEDEF or item.kind in SKIPPED:
            return self.size(item.size)
        return item.size

    def declare(self, number: int, name: str = "") -> str:
        """A declaration in C of `name` with this type."""
        item = self.types[number]
        if item.kind == TYPEDEF and self.types[item.size].kind == PTR:
            return self.declare(item.size, name)  # no header may have it
        if item.kind == PTR:
            to = self.types[item.size]
            inner = f"*{name}"
            return self.declare(item.size, f"({inner})" if to.kind == PROTO else inner)
        if item.kind in SKIPPED:
            if self.types[item.size].kind == PTR:
                return self.declare(item.size, f" {SKIPPED[item.kind]}{name}")
            return SKIPPED[item.kind] + self.declare(item.size, name)
        if item.kind == ARRAY:
            return self.declare(item.size, f"{name}[{item.members[0][2]}]")
        if item.kind == PROTO:
            args = [self.declare(number) for _, number, _ in item.members] or ["void"]
            return self.declare(item.size, f"{name}({', '.join(args)})")
        tag = {STRUCT: "struct ", UNION: "union ", ENUM: "enum ", ENUM64: "enum "}
        tag[FWD] = "struct "
        if item.kind not in (0, INT, TYPEDEF, FLOAT, *tag):
            raise Error(f"cannot declare {item.name or 'a type without a name'}")
        return f"{tag.get(item.kind, '')}{item.name} {name}".strip()

    def tags(self, number: int) -> set[str]:
        """The structures that this type mentions."""
        item = self.types[number]
        if item.kind in (STRUCT, FWD):
            return {item.name}
        if item.kind in (PTR, TYPEDEF, *SKIPPED):
            return self.tags(item.size)
        if item.kind == PROTO:
            return self.tags(item.size).union(*(self.tags(m[1]) for m in item.members))
        return set()

    def find(self, kind: int, name: str) -> list[int]:
        return [
            n for n, t in enumerate(self.types) if t.kind == kind and t.name == name
        ]

    def places(self, item: Type, base: int = 0) -> list[tuple[str, int, int]]:
        """Name, offset and size of each member, also of those in anonymous ones."""
        found = []
        for name, number, bits in item.members:
            if item.bitfields:
                if bits >> 24:
                    continue  # a bit-field has no offset in C
                bits &= 0xFFFFFF
            if name:
                found.append((name, base + bits // 8, self.size(number)))
            else:
                inner = self.types[number]
                while inner.kind in SKIPPED:
                    inner = self.types[inner.size]
                found += self.places(inner, base + bits // 8)
        return found


def write_prototypes(btf: Btf) -> str:
    lines, tags = [], set()
    for name in FUNCTIONS:
        found = {
            btf.declare(btf.types[n].size, f"btf_{name}") for n in btf.find(FUNC, name)
        }
        if len(found) != 1:
            what = "several functions" if found else "no function"
            raise Error(f"the kernel has {what} {name}")
        lines.append(f"typedef {found.pop()};")
        tags |= btf.tags(btf.types[btf.find(FUNC, name)[0]].size)
    return "".join(f"struct {tag};\n" for tag in sorted(tags)) + "\n".join(lines) + "\n"


def write_layout(btf: Btf) -> str:
    lines = []
    for name in STRUCTS:
        found = btf.find(STRUCT, name)
        if len(found) != 1:
            raise Error(f"the kernel has {len(found)} structures {name}")
        item, where = btf.types[found[0]], f"struct {name}"
        if name in LONGER:
            facts = [f"offsetof({where}, {LONGER[name]}) >= {item.size}"]
        else:
            facts = [f"sizeof({where}) == {item.size}"]
        for member, offset, size in btf.places(item):
            facts.append(f"offsetof({where}, {member}) == {offset}")
            if size:
                facts.append(f"sizeof_field({where}, {member}) == {size}")
        lines.append(f"#define LIVE_LAYOUT_{name} \\")
        lines += [f"\tstatic_assert({fact}); \\" for fact in facts] + [""]
    return "\n".join(lines) + "\n"


def main() -> int:
    if len(sys.argv) != 4:
        print(__doc__)
        return 0 if sys.argv[1:] == ["--help"] else 2
    path, release, out = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    try:
        data = find_section(Path(path).read_bytes(), path)
        btf = Btf(data)
        head = f"/* Written by guard.py for {release} */\n"
        known = f'#define LIVE_RELEASE "{release}"\n'
        known += f"#define LIVE_BTF_SIZE {len(data)}\n"
        known += f"#define LIVE_BTF_CRC {zlib.crc32(data):#x}\n"
        out.mkdir(parents=True, exist_ok=True)
        (out / "live_btf.h").write_text(head + known + write_prototypes(btf))
        (out / "live_layout.h").write_text(head + write_layout(btf))
    except (Error, OSError) as err:
        print(f"guard.py: {err}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
