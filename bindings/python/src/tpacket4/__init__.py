# SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
"""Rings of Linux packet sockets without copies: AF_PACKET V4.

A program receives packets of a Socket into frames of an Area, and sends packets from
them. A Packet has its frames as long as it or a view of its data exists; then the
socket posts them again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tpacket4 import _core
from tpacket4._core import (
    LIBRARY_VERSION,
    META_CSUM,
    META_CSUM_CRC32C,
    META_GSO,
    META_RX_CSUM_VALID,
    META_RX_HASH,
    META_RX_TS_HARDWARE,
    META_RX_TS_SOFTWARE,
    META_RX_VLAN,
    META_TUNNEL,
    META_TX_LAUNCH,
    Area,
    Meta,
    Packet,
    Stats,
)

__all__ = [
    "LIBRARY_VERSION",
    "META_CSUM",
    "META_CSUM_CRC32C",
    "META_GSO",
    "META_RX_CSUM_VALID",
    "META_RX_HASH",
    "META_RX_TS_HARDWARE",
    "META_RX_TS_SOFTWARE",
    "META_RX_VLAN",
    "META_TUNNEL",
    "META_TX_LAUNCH",
    "Area",
    "Meta",
    "Packet",
    "Socket",
    "Stats",
]


class Socket(_core.Socket):
    """A packet socket with rings of rx and tx slots, also for asyncio."""

    async def _event(
        self, add: Callable[..., None], remove: Callable[[int], bool]
    ) -> None:
        """Sleep until the event loop calls back."""
        fd = self.fileno()
        event = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not event.done():
                event.set_result(None)

        add(fd, wake)
        try:
            await event
        finally:
            remove(fd)

    async def readable(self) -> None:
        """Sleep until packets are received. One task at a time."""
        loop = asyncio.get_running_loop()
        # wait() also lets the event loop see new packets only.
        while not self.wait(0):
            await self._event(loop.add_reader, loop.remove_reader)

    async def flushed(self) -> None:
        """Sleep until all packets are sent; OSError if one was not."""
        loop = asyncio.get_running_loop()
        while not self.flush(0):
            await self._event(loop.add_writer, loop.remove_writer)
