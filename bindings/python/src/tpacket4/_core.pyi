# SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
from collections.abc import Iterable
from typing import NamedTuple, Self, final

from typing_extensions import Buffer

LIBRARY_VERSION: str
META_CSUM: int
META_CSUM_CRC32C: int
META_GSO: int
META_RX_CSUM_VALID: int
META_RX_HASH: int
META_RX_TS_HARDWARE: int
META_RX_TS_SOFTWARE: int
META_RX_VLAN: int
META_TUNNEL: int
META_TX_LAUNCH: int

class Meta(NamedTuple):
    tstamp: int
    flags: int
    wire_len: int
    ifindex: int
    protocol: int
    hatype: int
    vlan_tci: int
    vlan_tpid: int
    pkt_type: int
    addr: bytes
    hash: int
    csum_start: int
    csum_offset: int
    gso_type: int
    gso_size: int

class Stats(NamedTuple):
    packets: int
    drops: int
    rx_ring_full: int
    rx_no_desc: int
    rx_invalid_descs: int
    tx_ring_full: int
    tx_no_desc: int
    tx_invalid_descs: int

@final
class Area:
    def __new__(
        cls, frames: int, *, frame_size: int = 2048, huge: bool = False
    ) -> Self: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *args: object) -> None: ...
    def close(self) -> None: ...
    def packet(self, data: Buffer | int, /) -> Packet: ...
    @property
    def frames(self) -> int: ...
    @property
    def frame_size(self) -> int: ...
    @property
    def free(self) -> int: ...

@final
class Packet:
    def __len__(self) -> int: ...
    def __bytes__(self) -> bytes: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def parts(self) -> list[memoryview]: ...
    def release(self) -> None: ...
    def request_csum(self, start: int, offset: int, /) -> None: ...
    def request_gso(self, type: int, size: int, /) -> None: ...
    def request_launch(self, ns: int, /) -> None: ...
    @property
    def data(self) -> memoryview: ...
    @property
    def meta(self) -> Meta | None: ...

class Socket:
    def __new__(
        cls,
        area: Area,
        rx: int = 0,
        tx: int = 0,
        *,
        meta: bool = False,
        protocol: int = 0,
        to_stack: bool = False,
        keep: bool = False,
    ) -> Self: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *args: object) -> None: ...
    def bind(self, name: str, *, promisc: bool = False) -> None: ...
    def close(self) -> None: ...
    def fileno(self) -> int: ...
    def flush(self, timeout: float | None = None) -> bool: ...
    def receive(self, max: int = 64, /) -> list[Packet]: ...
    def send(self, packets: Iterable[Packet | Buffer], /) -> int: ...
    def stats(self) -> Stats: ...
    def wait(self, timeout: float | None = None) -> bool: ...
    @property
    def pending(self) -> int: ...
