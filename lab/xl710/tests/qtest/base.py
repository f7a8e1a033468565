# SPDX-License-Identifier: GPL-2.0
"""Two ports that are wired to each other, for a test each."""

import unittest

from xl710dev import Machine, Port


class Base(unittest.TestCase):
    args = (
        "-device",
        "xl710,id=p0,addr=4,mac=52:54:00:00:00:01",
        "-device",
        "xl710,id=p1,addr=5,mac=52:54:00:00:00:02,peer=p0",
    )

    def setUp(self) -> None:
        self.m = Machine(*self.args)
        self.a = Port(self.m, 4, 0xE0000000)
        self.b = Port(self.m, 5, 0xE1000000)

    def tearDown(self) -> None:
        self.assertEqual(self.m.close(), 0, "QEMU did not end well")

    def ready(self, port: Port, **kw: int) -> None:
        port.aq_setup()
        port.hmc_setup(**kw)
        port.vsi_queues(0)
