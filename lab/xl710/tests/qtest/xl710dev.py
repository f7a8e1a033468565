# SPDX-License-Identifier: GPL-2.0
"""Drive XL710 models in QEMU through the qtest protocol, without a guest.

Register names and layouts are those of the i40e driver (i40e_register.h,
i40e_adminq_cmd.h, i40e_type.h, i40e_lan_hmc.c).
"""

import os
import shlex
import socket
import struct
import subprocess
import tempfile

QEMU = shlex.split(os.environ.get("QEMU", "qemu-system-x86_64"))

ATQBAL, ATQBAH, ATQLEN, ATQH, ATQT = 0x80000, 0x80100, 0x80200, 0x80300, 0x80400
ARQBAL, ARQBAH, ARQLEN, ARQH, ARQT = 0x80080, 0x80180, 0x80280, 0x80380, 0x80480
AQ_ENABLE, AQ_CRIT = 1 << 31, 1 << 30
SDDATALOW, SDDATAHIGH, SDCMD = 0xC0100, 0xC0200, 0xC0000
TXBASE, TXCNT, RXBASE, RXCNT = 0xC6200, 0xC6300, 0xC6400, 0xC6500
ICR0, ICR0_ENA, DYN_CTL0 = 0x38780, 0x38800, 0x38480
RSTAT, RTRIG, PFGEN_CTRL = 0xB8188, 0xB8190, 0x92400
GL_MDET_TX, GL_MDET_RX = 0xE6480, 0x12A510
PFQF_CTL_0, HENA0, HENA1 = 0x1C0AC0, 0x245900, 0x245980
DYN_CTLN0, LNKLST0, LNKLSTN0, PDINV = 0x34800, 0x38500, 0x35000, 0xC0300
LANCTXDATA, LANCTXCTL, LANCTXSTAT = 0x10C100, 0x10C300, 0x10C380
# knobs.c
TX_DELAY, TX_BURST, RS_ONLY, STOP_DELAY, RESET_DELAY, STUCK_TX, STUCK_RX = range(
    0x3FF000, 0x3FF01C, 4
)
CAUSE_ENA, END_OF_LIST = 1 << 30, 0x7FF

RC_OK, RC_ESRCH, RC_ENOMEM, RC_EINVAL, RC_ENOENT = 0, 3, 9, 14, 2
RC_BAD_ADDR, RC_EPERM, RC_ENOSYS = 20, 1, 17

BUF, RD, SI = 0x1000, 0x400, 0x2000


def qtx_ena(q: int) -> int:
    return 0x100000 + 4 * q


def qtx_ctl(q: int) -> int:
    return 0x104000 + 4 * q


def rqctl(q: int) -> int:
    return 0x3A000 + 4 * q


def tqctl(q: int) -> int:
    return 0x3C000 + 4 * q


def qtx_tail(q: int) -> int:
    return 0x108000 + 4 * q


def qrx_ena(q: int) -> int:
    return 0x120000 + 4 * q


def qrx_tail(q: int) -> int:
    return 0x128000 + 4 * q


class Machine:
    """A QEMU that runs no code, its RAM, and an allocator for it."""

    def __init__(self, *args: str) -> None:
        self.dir = tempfile.TemporaryDirectory(prefix="xl710-qtest-")
        path = os.path.join(self.dir.name, "qtest")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(1)
        listener.settimeout(60)
        self.proc = subprocess.Popen(
            [
                *QEMU,
                "-nodefaults",
                "-display",
                "none",
                "-M",
                "q35",
                "-m",
                "64M",
                "-accel",
                "qtest",
                "-qtest",
                f"unix:{path}",
                "-qtest-log",
                "/dev/null",
                *args,
            ],
            stdin=subprocess.DEVNULL,
            close_fds=False,
        )
        self.sock, _ = listener.accept()
        listener.close()
        self.file = self.sock.makefile("rw")
        self.next = 0x100000

    def close(self) -> int:
        """End QEMU; returns its exit status and the sanitizer's report."""
        self.proc.terminate()
        status = self.proc.wait(60)
        self.file.close()
        self.sock.close()
        self.dir.cleanup()
        return status

    def cmd(self, line: str) -> list[str]:
        self.file.write(line + "\n")
        self.file.flush()
        while True:
            reply = self.file.readline().split()
            if not reply:
                raise EOFError(f"QEMU died on: {line}")
            if reply[0] == "OK":
                return reply[1:]
            if reply[0] != "IRQ":
                raise ValueError(f"{line}: {reply}")

    def alloc(self, size: int, align: int = 4096) -> int:
        addr = (self.next + align - 1) // align * align
        self.next = addr + size
        assert self.next < 64 << 20
        return addr

    def write(self, addr: int, data: bytes) -> None:
        self.cmd(f"write {addr:#x} {len(data):#x} 0x{data.hex()}")

    def read(self, addr: int, size: int) -> bytes:
        return bytes.fromhex(self.cmd(f"read {addr:#x} {size:#x}")[0][2:])

    def step(self, ns: int) -> None:
        self.cmd(f"clock_step {ns}")


class Port:
    """One XL710: configuration space, registers, queues."""

    def __init__(self, m: Machine, slot: int, bar: int) -> None:
        self.m, self.slot, self.bar = m, slot, bar
        self.asq = self.arq = self.asq_len = self.next_sd = 0
        self.first = END_OF_LIST  # of vector 1, as in its LNKLST
        self.linked: set[int] = set()
        self.cfg_write(0x10, bar)
        self.cfg_write(0x14, 0)
        self.cfg_write(0x1C, bar + 0x800000)
        self.cfg_write(0x20, 0)
        self.cfg_write(0x04, 0x6)

    def cfg_read(self, reg: int) -> int:
        self.m.cmd(f"outl 0xcf8 {1 << 31 | self.slot << 11 | reg:#x}")
        return int(self.m.cmd("inl 0xcfc")[0], 16)

    def cfg_write(self, reg: int, val: int) -> None:
        self.m.cmd(f"outl 0xcf8 {1 << 31 | self.slot << 11 | reg:#x}")
        self.m.cmd(f"outl 0xcfc {val:#x}")

    def rd(self, reg: int) -> int:
        return int(self.m.cmd(f"readl {self.bar + reg:#x}")[0], 16)

    def wr(self, reg: int, val: int) -> None:
        self.m.cmd(f"writel {self.bar + reg:#x} {val & 0xFFFFFFFF:#x}")

    # -- interrupts, resets --

    def link(self, q: int, tx: bool) -> None:
        """Put a queue on vector 1, which is masked, with no cause."""
        ctl = tqctl(q) if tx else rqctl(q)
        if ctl in self.linked:
            return
        self.linked.add(ctl)
        self.wr(ctl, 1 | (self.first & 0x7FF) << 16 | (self.first >> 11) << 27)
        self.first = q | int(tx) << 11
        self.wr(LNKLSTN0, self.first)

    def force_wb(self) -> None:
        """Write the same as i40e_force_wb()."""
        self.wr(DYN_CTLN0, 1 | 4 | 3 << 3 | 1 << 24)

    def pf_reset(self) -> None:
        self.wr(PFGEN_CTRL, 1)
        self.m.step(self.rd(RESET_DELAY))
        assert not self.rd(PFGEN_CTRL) & 1
        self.first = END_OF_LIST
        self.linked.clear()

    def stop(self, ena: int) -> None:
        """Disable the queue of that QxX_ENA register."""
        self.wr(ena, 0)
        self.m.step(self.rd(STOP_DELAY))
        assert self.rd(ena) == 0

    # -- admin queue --

    def aq_setup(self, length: int = 16) -> None:
        self.asq, self.asq_len = self.m.alloc(length * 32), length
        self.arq = self.m.alloc(length * 32)
        for base, low, high, head, tail, size in (
            (self.asq, ATQBAL, ATQBAH, ATQH, ATQT, ATQLEN),
            (self.arq, ARQBAL, ARQBAH, ARQH, ARQT, ARQLEN),
        ):
            self.wr(head, 0)
            self.wr(tail, 0)
            self.wr(size, length | AQ_ENABLE)
            self.wr(low, base)
            self.wr(high, 0)
        self.wr(ARQT, length - 1)

    def aq(
        self,
        opcode: int,
        param: bytes = b"",
        data: bytes | None = None,
        flags: int = 0,
        addr: int | None = None,
    ) -> tuple[int, bytes, bytes]:
        """Run a command: (return code, param, buffer)."""
        tail = self.rd(ATQT)
        flags |= SI
        param = param.ljust(16, b"\0")
        size = 0
        if data is not None:
            size = len(data)
            flags |= BUF
            if addr is None:
                addr = self.m.alloc(4096)
                self.m.write(addr, data)
            param = param[:8] + struct.pack("<II", addr >> 32, addr & 0xFFFFFFFF)
        desc = struct.pack("<HHHHII", flags, opcode, size, 0, 0, 0) + param
        self.m.write(self.asq + 32 * tail, desc)
        tail = (tail + 1) % self.asq_len
        self.wr(ATQT, tail)
        if self.rd(ATQH) != tail:
            raise RuntimeError("admin queue did not run")
        done = self.m.read(self.asq + 32 * ((tail - 1) % self.asq_len), 32)
        out_flags, _, out_len, ret = struct.unpack_from("<HHHH", done)
        assert out_flags & 3 == 3 and bool(out_flags & 4) == bool(ret)
        buf = b""
        if data is not None and ret != RC_BAD_ADDR and out_len:
            buf = self.m.read(addr, out_len)
        return ret, done[16:], buf

    def arq_events(self) -> list[bytes]:
        """All events so far, as descriptors."""
        return [self.m.read(self.arq + 32 * i, 32) for i in range(self.rd(ARQH))]

    # -- queues --

    def hmc_setup(self, queues: int = 32, paged: bool = False) -> None:
        size = 0x200000
        self.hmc = self.m.alloc(size, size)
        low = self.hmc | 512 << 2 | 1
        if paged:
            table = self.m.alloc(4096)
            pages = b"".join(
                struct.pack("<Q", (self.hmc + 4096 * i) | 1) for i in range(512)
            )
            self.m.write(table, pages)
            low = table | 512 << 2 | 1
        else:
            low |= 2
        self.wr(SDDATAHIGH, 0)
        self.wr(SDDATALOW, low)
        self.wr(SDCMD, 1 << 31)
        self.wr(TXBASE, 0)
        self.wr(TXCNT, queues)
        self.rx_ctx_base = (queues * 128 + 511) // 512 * 512
        self.wr(RXBASE, self.rx_ctx_base // 512)
        self.wr(RXCNT, queues)

    def tx_context(
        self, q: int, qlen: int, head_wb: bool, vsi: int, stamps: bool = False
    ) -> int:
        ring = self.m.alloc(qlen * 16 + 64, 128)
        ctx = 1 << 30 | (ring // 128) << 32 | 1 << 91
        ctx |= qlen << (128 + 33) | vsi << (7 * 128 + 84) | int(stamps) << 90
        if head_wb:
            ctx |= 1 << (128 + 32) | (ring + qlen * 16) << (128 + 64)
        self.m.write(self.hmc + q * 128, ctx.to_bytes(128, "little"))
        return ring

    def tx_queue(
        self,
        q: int,
        qlen: int = 64,
        head_wb: bool = True,
        vsi: int = 0,
        link: bool = True,
        stamps: bool = False,
    ) -> "TxQueue":
        ring = self.tx_context(q, qlen, head_wb, vsi, stamps)
        if link:
            self.link(q, True)
        self.wr(qtx_ctl(q), 2)
        self.wr(qtx_tail(q), 0)
        self.wr(qtx_ena(q), 1)
        return TxQueue(self, q, ring, qlen)

    def rx_queue(
        self,
        q: int,
        qlen: int = 64,
        dbuff: int = 2048,
        desc32: bool = False,
        rxmax: int = 9728,
        low: int = 0,
        prefetch: bool = True,
        bufs: int | None = None,
        link: bool = True,
    ) -> "RxQueue":
        size = 32 if desc32 else 16
        ring = self.m.alloc(qlen * size, 128)
        ctx = (ring // 128) << 32 | qlen << 89 | (dbuff // 128) << 102
        ctx |= int(desc32) << 116 | 1 << 117 | 1 << 119 | rxmax << 174
        ctx |= low << 198 | int(prefetch) << 201
        self.m.write(self.hmc + self.rx_ctx_base + q * 32, ctx.to_bytes(32, "little"))
        if link:
            self.link(q, False)
        rx = RxQueue(self, q, ring, qlen, dbuff, size, bufs)
        rx.post(qlen - 1)
        self.wr(qrx_ena(q), 1)
        return rx

    def vsi_queues(self, count_pow: int, base: int = 0) -> None:
        """Give TC 0 of the main VSI 2^count_pow queues, tags left alone."""
        info = bytearray(128)
        struct.pack_into("<H", info, 0, 0x0044)
        info[12] = 0x1B
        struct.pack_into("<H", info, 30, base)
        struct.pack_into("<H", info, 62, count_pow << 9)
        ret, _, _ = self.aq(0x0211, struct.pack("<H", 390), bytes(info), RD)
        assert ret == RC_OK

    def promisc(self) -> None:
        ret, _, _ = self.aq(0x0254, struct.pack("<HHH", 7, 7, 390))
        assert ret == RC_OK


class TxQueue:
    def __init__(self, port: Port, q: int, ring: int, qlen: int) -> None:
        self.port, self.q, self.ring, self.qlen = port, q, ring, qlen
        self.tail = 0

    def raw(self, *descs: tuple[int, int], wait: bool = True) -> None:
        """Post descriptors, and wait until they should have been sent."""
        for qw0, qw1 in descs:
            self.port.m.write(self.ring + 16 * self.tail, struct.pack("<QQ", qw0, qw1))
            self.tail = (self.tail + 1) % self.qlen
        self.port.wr(qtx_tail(self.q), self.tail)
        if wait:
            self.port.m.step(1000 * (len(descs) // 32 + 1))

    def data(
        self, pkt: bytes, cmd: int = 0x3, offset: int = 0, tag: int = 0
    ) -> tuple[int, int]:
        addr = self.port.m.alloc(len(pkt), 64)
        self.port.m.write(addr, pkt)
        return addr, (cmd << 4 | offset << 16 | len(pkt) << 34 | tag << 48)

    def send(self, pkt: bytes, wait: bool = True, **kw: int) -> None:
        self.raw(self.data(pkt, **kw), wait=wait)

    def head(self) -> int:
        """The value of head write-back."""
        return struct.unpack("<I", self.port.m.read(self.ring + 16 * self.qlen, 4))[0]


class RxQueue:
    def __init__(
        self,
        port: Port,
        q: int,
        ring: int,
        qlen: int,
        dbuff: int,
        size: int,
        bufs: int | None,
    ) -> None:
        self.port, self.q, self.ring, self.qlen = port, q, ring, qlen
        self.size, self.dbuff, self.posted, self.clean = size, dbuff, 0, 0
        self.bufs = port.m.alloc(qlen * dbuff) if bufs is None else bufs

    def post(self, n: int) -> None:
        for _ in range(n):
            i = self.posted % self.qlen
            self.port.m.write(
                self.ring + self.size * i,
                struct.pack("<QQ", self.bufs + i * self.dbuff, 0).ljust(
                    self.size, b"\0"
                ),
            )
            self.posted += 1
        self.port.wr(qrx_tail(self.q), self.posted % self.qlen)

    def desc(self, i: int) -> tuple[int, ...]:
        return struct.unpack(
            f"<{self.size // 8}Q",
            self.port.m.read(self.ring + self.size * (i % self.qlen), self.size),
        )

    def done(self) -> int:
        """Descriptors that have been written back and not been read yet."""
        n = 0
        while self.desc(self.clean + n)[1] & 1:
            n += 1
        return n

    def get(self) -> tuple[bytes, list[tuple[int, ...]]] | None:
        """The next packet and its descriptors, or None."""
        pkt, descs = b"", []
        while True:
            i = self.clean % self.qlen
            desc = self.desc(i)
            if not desc[1] & 1:
                self.port.force_wb()
                desc = self.desc(i)
            if not desc[1] & 1:
                return None
            self.clean += 1
            descs.append(desc)
            if desc[1] >> 63:
                return pkt, descs
            pkt += self.port.m.read(self.bufs + i * self.dbuff, desc[1] >> 38 & 0x3FFF)
            if desc[1] & 2:
                return pkt, descs
