# SPDX-License-Identifier: GPL-2.0
"""Finds the tests, and reads from the table lab/run/tests.list where each one runs."""

import fnmatch
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lab.build.place import BASE, BASES, BUILD, TOP

LAB = TOP / "lab"
TABLE = LAB / "run/tests.list"
ARCH = os.getenv("ARCH", "")
NET = BUILD / ARCH / "selftests" / "net"
TPACKET4 = NET / "tpacket4"
XL710 = LAB / "xl710"
ON_VETH = TOP / "tools/lib/tpacket4/tests/on_veth.sh"
PAGE = TOP / "Documentation/networking/tpacket4.rst"
# Selftests shorten loops on a kernel that is slow without being a debug kernel, and for
# coverage, where a second visit of a line adds nothing.
FAST = ["TPACKET4_FAST=1"]
# Two CPUs are possible, or devices could not have two queues.
ONE_CPU = ["--append", "maxcpus=1"]
# The short cases of zc_port. The others hardly depend on the kind of ring.
VIRTIO_SHORT = "-v both -v units -t offloads -t xdp -t one_ring -t kill_under_load"
VIRTIO_SHORT += " -t unplug_under_load -t stopped -t empty_ring_needs_kick"
# Only taps have offloads.
VIRTIO_TAP = "-v both -t offloads -t copies_have_offloads"
# A device without mergeable buffers has packets of one frame.
VIRTIO_SMALL = "-t one_frame_per_packet -t offloads"
# DMA goes to bounce buffers, so the driver must sync what it reads and writes.
BOUNCE = "swiotlb=force"
# The console does not sleep, or what the kernel says meanwhile is lost if it dies. The
# devices of the root directory do not either.
AWAKE = "no_console_suspend"
SUSPENDABLE = "[ ! -e /sys/power/pm_test ] || modprobe stay_up || exit"
# The model sends so slowly that a short ring is full.
SLOW_TX = "xl710,tx-burst=4,tx-delay=100000"
FULL_RING = "-t stack_sends_with_full_ring"
XL710_DEBUG_CASES = "TP4_TESTS=-v both -v units -v reset -t kill_under_load -t metadata -t xdp -t devmem"
# The cases of xl710-pairs in which two queues share a vector, in which there are three
# queues (and as many CPUs), and in which, without MSI-X, there is one queue.
SHARED_VECTOR = "other_pairs_of_the_vector_go_on"
THREE_QUEUES = "rules_hold_while_others_bind"
ONE_QUEUE = "kick_reaches_napi link_events_after_bind bind_while_down tx_alone"


@dataclass
class Row:
    """A line of the table."""

    name: str
    short: str
    long: str
    cpus: str
    flags: list[str]
    why: str


def read_table() -> list[Row]:
    rows = []
    for line in TABLE.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, short, long, cpus, flags, *why = line.split(maxsplit=5)
            rows.append(Row(name, short, long, cpus, flags.split(","), "".join(why)))
    return rows


ROWS = read_table()


@dataclass
class Test:
    """A command; `kind` as in lab/run/guest-test, or host: outside the VM."""

    name: str
    command: list[str]
    kind: str = "run"
    cwd: Path = NET
    timeout: int = 900
    vm: list[str] = field(default_factory=list)
    only_named: str = ""  # why it does not run unless it is asked for by name

    def row(self) -> Row:
        name = self.name.removesuffix("-32")
        return next(row for row in ROWS if fnmatch.fnmatchcase(name, row.name))

    def has(self, flag: str) -> bool:
        return flag in self.row().flags

    def matches(self, pattern: str) -> bool:
        """A pattern is one of names, or @FLAG."""
        if pattern.startswith("@"):
            return self.has(pattern[1:]) and not self.name.endswith("-32")
        return fnmatch.fnmatch(self.name, pattern)


def why_not(test: Test, kernel: str, kernels: list[str], long: bool) -> str:
    """Why a test does not run on a kernel; empty if it does."""
    if ARCH or kernel == "host":
        return ""
    row = test.row()
    where = row.long if long else row.short
    why = f" ({row.why})" if row.why else ""
    if where == "-":
        return f"only if named{why}" if long else f"make long runs it{why}"
    if where == "plain" and kernel != "plain":
        return "slow there"
    if where == "debug" and kernel == "plain" and "debug" in kernels:
        return "the debug kernel runs it"
    return ""


def listed(what: str) -> list[str]:
    """The series' own programs or scripts, as lab/build/progs found them."""
    file = BUILD / ARCH / "selftests" / what
    return file.read_text().split() if file.exists() else []


def find_selftests(kernel: str) -> Iterator[Test]:
    modules = (BUILD / f"kernel-{kernel}").glob("mods/lib/modules/*/kernel/net/packet")
    for directory in modules:
        for module in sorted(directory.glob("*.ko")):
            if re.search("kunit|test", module.stem):
                yield Test(module.stem, [module.stem], "kunit", BUILD)
    fast = ["env", *FAST] if kernel in ("kcsan", "gcov") or ARCH else []
    in_32_bit = listed("programs32") if kernel == "plain" else []
    for program in listed("programs"):
        name = f"tpacket4_{program}"
        if (TPACKET4 / program).exists():
            yield Test(name, [*fast, f"./{program}"], cwd=TPACKET4)
        path = f"../../net32/tpacket4/{program}"
        if program in in_32_bit and (TPACKET4 / path).exists():
            yield Test(f"{name}-32", [path], cwd=TPACKET4)


def find_guest_tests(kernel: str, long: bool) -> list[Test]:
    tests = list(find_selftests(kernel))
    if ARCH:
        return tests + find_lib_tests()[:2]
    for name in "psock_tpacket", "psock_fanout", "psock_snd":
        if (NET / name).exists():
            script = ".sh" if name == "psock_snd" else ""
            tests.append(Test(name, [f"./{name}{script}"]))
    for script in listed("scripts"):
        name = f"tpacket4_{Path(script).stem}"
        tests.append(Test(name, ["bash", script], cwd=TPACKET4))
    if kernel == "debug":
        # Short, and from one seed: make fuzz and make soak are for more.
        stress = BUILD / "tpacket4"
        tests.append(Test("fuzz", ["./fuzz", "-r", "1", "-n", "200"], cwd=stress))
        tests.append(Test("soak", ["./soak", "-e", "40"], cwd=stress))
    tests += find_lib_tests()
    bench = [str(ON_VETH), str(TOP / "samples/tpacket4/test.sh")]
    tests += [Test("tpbench", bench, cwd=BUILD / "tpbench"), *find_pcap_tests(long)]
    tests += find_dpdk_tests(long)
    tests += find_tpgen_tests(long)
    tests += find_guide_tests(long)
    tests += find_igb_test(long)
    switch = ["bash", str(TOP / "apps/tpswitch/tests/test.sh")]
    tests.append(Test("tpswitch", switch, cwd=BUILD / "tpswitch"))
    tool = ["bash", str(TOP / "apps/tp4/tests/test.sh")]
    tests.append(Test("tp4", tool, cwd=BUILD / "tp4"))
    for test in tests:
        few_cpus = kernel in ("plain", "debug") and not long and not os.getenv("CPUS")
        if few_cpus and test.row().cpus == "1":
            test.vm = ONE_CPU
    return tests


def find_lib_tests() -> list[Test]:
    """The library's tests; other architectures have the first two of them."""
    tests, obj = TOP / "tools/lib/tpacket4/tests", BUILD / ARCH / "lib"

    def test(name: str, *command: str | Path) -> Test:
        return Test(name, [str(word) for word in command], cwd=obj)

    return [
        test("lib", ON_VETH, "./lib_test", "tp4A", "tp4B"),
        test("lib-byte-order", ON_VETH, tests / "byte_order.sh"),
        test("lib-cxx", ON_VETH, "./lib_test_cxx", "tp4A", "tp4B"),
        test("lib-debug", ON_VETH, "./lib_debug", "tp4A", "tp4B"),
        test("lib-examples", ON_VETH, tests / "examples.sh"),
        test("lib-ringtest", tests / "ringtest.sh"),
        test("lib-shared-object", ON_VETH, tests / "shared_object.py", PAGE),
    ]


def find_tpgen_tests(long: bool) -> Iterator[Test]:
    """The generator on a veth pair, also with sanitizers."""
    tests, obj = TOP / "apps/tpgen/tests", BUILD / "tpgen"
    env = [] if long else ["env", "TPGEN_SHORT=1"]
    for name, program in ("tpgen", "./tpgen"), ("tpgen-sanitized", "sanitized/tpgen"):
        command = [*env, str(ON_VETH), "python3", "-B", str(tests / "guest.py")]
        yield Test(name, [*command, program, "tp4A", "tp4B"], cwd=obj)
    yield Test("tpgen-examples", [str(tests / "examples.sh")], cwd=obj)


def find_stopped_test(name: str, driver: str, long: bool, nic: str) -> Iterator[Test]:
    """A capture that is stopped, on two devices of this driver.

    Its ring has 4,096 frames: more packets must come while it is stopped.
    """
    script = TOP / "ports/libpcap/tests/stopped.sh"
    pcap = BUILD / "pcap"
    if (pcap / "lib").exists():
        command = ["bash", str(script), str(pcap), driver, "10000" if long else "6000"]
        yield Test(name, command, cwd=pcap, vm=["--nic", nic] if nic else [])


def find_pcap_tests(long: bool) -> Iterator[Test]:
    """Those of ports/libpcap, where that is built."""
    pcap, port = BUILD / "pcap", TOP / "ports/libpcap/tests"
    if not (pcap / "lib").exists():
        return
    for version in "v3", "v4", "zc":
        # V3 is what Debian's libpcap uses.
        lib = [] if version == "v3" else ["env", f"LD_LIBRARY_PATH={pcap}/lib"]
        command = [*lib, str(ON_VETH), "./pcap_test", version, "tp4A", "tp4B"]
        yield Test(f"pcap-{version}", command, cwd=pcap / "testprogs")
    yield from find_stopped_test("pcap-stopped", "veth", long, "")
    burst = [str(TOP / "lab/measure/burst.py"), "--guest", "--buffers", "2048"]
    yield Test("pcap-burst", [*burst, "--count", "30000"], cwd=pcap)
    python = ["python3", "-B"]
    for name, script in (("tcpdump", "side_by_side"), ("testprogs", "testprogs")):
        command = [*python, f"{port}/{script}.py", str(pcap)]
        command += ["--short"] if name == "tcpdump" and not long else []
        yield Test(f"pcap-{name}", command, cwd=pcap)


def find_dpdk_tests(long: bool) -> Iterator[Test]:
    """Debian's programs on ports/dpdk, where that is built."""
    plugin, tests = BUILD / "dpdk/librte_net_tpacket4.so", TOP / "ports/dpdk/tests"
    if plugin.exists():
        short = [] if long else ["--short"]
        sanitized = plugin.parent / "sanitized" / plugin.name
        for name, driver in ("dpdk", plugin), ("dpdk-sanitized", sanitized):
            command = ["python3", "-B", str(tests / "testpmd.py"), str(driver)]
            yield Test(name, command + short)
        command = ["python3", "-B", str(tests / "programs.py"), str(plugin.parent)]
        yield Test("dpdk-programs", command + short)


def find_dpdk_test(name: str, driver: str, nic: str) -> Iterator[Test]:
    """Some of them on two devices of this driver"""
    script = TOP / "ports/dpdk/tests/devices.py"
    if (BUILD / "dpdk/librte_net_tpacket4.so").exists():
        command = ["python3", "-B", str(script), str(BUILD / "dpdk"), driver]
        yield Test(name, command, vm=["--nic", nic])


def find_virtio_tests(long: bool) -> Iterator[Test]:
    """Zero-copy mode on virtio_net, with the kinds of rings and buffers it has."""
    if ARCH or not (TPACKET4 / "zc_ports.sh").exists():
        return
    kinds = {
        "split": "virtio",
        "packed": "virtio,packed=on",
        "dma": "virtio,iommu_platform=on,disable-legacy=on",
        "small": "virtio,mrg_rxbuf=off",
        "tap": "virtio-tap,rss=on,hash=on",
        "fanout": "virtio",
    }
    if BASE != BASES[0]:  # which has neither leases nor AF_XDP here
        # AF_XDP needs the DMA API
        kinds["netkit"] = kinds["xsk"] = kinds["dma"]
    for kind, nic in kinds.items():
        env = ["env", *([] if long else FAST)]
        some = [] if long else VIRTIO_SHORT.split()
        if kind == "small":
            env.append("TPACKET4_PORT_MTU=1500")
            contents = "-f contents" if long else "-v both"
            some = f"{contents} {VIRTIO_SMALL}".split()
        if kind == "tap":
            env.append("TPACKET4_PORT_VALID=1")
            some = [] if long else VIRTIO_TAP.split()
        if kind in ("netkit", "xsk", "fanout"):
            env.append(f"TPACKET4_PORT_TEST=zc_{kind}")
            some = []
        command = [*env, "bash", "zc_ports.sh", *some]
        yield Test(f"virtio-{kind}", command, cwd=TPACKET4, vm=["--nic", nic])
    yield from find_stopped_test("virtio-stopped", "virtio_net", long, "virtio")
    yield from find_dpdk_test("virtio-dpdk", "virtio_net", "virtio")
    # A machine of its own, whose log has what a suspended console would lose.
    yield Test(
        "virtio-suspend",
        ["sh", "-c", f"{SUSPENDABLE}; TPACKET4_PORT_TEST=zc_suspend bash zc_ports.sh"],
        cwd=TPACKET4,
        vm=["--nic", "virtio", "--append", AWAKE],
    )


def find_igb_test(long: bool) -> Iterator[Test]:
    """A stock driver with AF_XDP's zero-copy mode, on QEMU's own device."""
    if ARCH or BASE == BASES[0]:  # whose igb lacks that mode
        return
    command = ["env", f"BASE={BASE}", "bash", str(LAB / "run/card")]
    command += [*([] if long else ["-s"]), "eth0", "eth1"]
    yield Test("igb", command, vm=["--nic", "igb"])


def find_guide_tests(long: bool) -> Iterator[Test]:
    """The code of the page for authors of drivers, as a driver."""
    command = ["env", f"BUILD={BUILD}", "bash", str(LAB / "run/modules/guide.sh")]
    command += [] if long else ["2"]
    yield Test("guide", command)
    yield Test("guide-bounce", command, vm=["--append", BOUNCE])


def find_xl710_tests(kernel: str, long: bool) -> list[Test]:
    """The tests of the XL710 model and of zero-copy mode on it."""
    short = [] if long else ["XL710_SHORT=1"]
    if kernel == "gcov":
        short += FAST

    def test(
        script: str, name: str, nic: str, *env: str, cases: str = "", boot: str = ""
    ) -> Test:
        path = XL710 / "tests" / f"{script}.sh"
        command = ["env", f"BUILD={BUILD}", *short, *env, "bash", str(path)]
        command += cases.split()
        vm = ["--nic", nic, *(["--append", boot] if boot else [])]
        item = Test(f"xl710-{name}", command, cwd=path.parent, vm=vm)
        if item.row().cpus != "2":
            vm += ["--cpus", item.row().cpus]
        vm.append("--qemu")  # main() knows which
        item.timeout = 3600 if long else item.timeout
        return item

    names = {path.stem for path in (XL710 / "tests").glob("*.sh")} - {"lib", "tp4"}
    # probe reads the log from the boot on: first. After mqprio, as pairs uses it, the
    # base driver's RSS has one queue left: last.
    two = ["probe", *sorted(names - {"probe", "generator", "pairs"})]
    parts = []
    if kernel == "debug" and not long:
        parts = ["TP4_PARTS=ports", XL710_DEBUG_CASES]
    tests = [
        *(test(name, name, "xl710") for name in two),
        test("tp4", "tp4", "xl710", *parts),
        test("tp4", "xsk", "xl710", "TP4_PARTS=xsk"),
        test("pairs", "pairs", "xl710"),
        test("irq", "irq-msi", "xl710,msix=off", "XL710_IRQ=msi"),
        test("irq", "irq-intx", "xl710,msix=off,msi=off", "XL710_IRQ=intx"),
        test("pairs", "pairs-shared", "xl710,vectors=3", cases=SHARED_VECTOR),
        test("pairs", "pairs-three", "xl710", cases=THREE_QUEUES),
        test("pairs", "pairs-msi", "xl710,msix=off", cases=ONE_QUEUE),
        test("pairs", "pairs-intx", "xl710,msix=off,msi=off", cases=ONE_QUEUE),
        test("generator", "generator", "xl710-gen"),
        test("tp4", "tp4-bounce", "xl710", "TP4_PARTS=bridge", boot=BOUNCE),
        test("tp4", "suspend", "xl710", "TP4_PARTS=suspend", boot=AWAKE),
        test("tp4", "fanout", "xl710", "TP4_PARTS=fanout"),
        test("tp4", "tp4-slow", SLOW_TX, "TP4_PARTS=ports", f"TP4_TESTS={FULL_RING}"),
    ]
    on_two = [
        *find_stopped_test("xl710-stopped", "i40e", long, "xl710"),
        *find_dpdk_test("xl710-dpdk", "i40e", "xl710"),
    ]
    for item in on_two:
        item.vm.append("--qemu")
        tests.append(item)
    if BASE != BASES[0]:  # which cannot lease queues
        tests.append(test("tp4", "netkit", "xl710", "TP4_PARTS=netkit"))
    return tests


def find_host_tests() -> list[Test]:
    if ARCH in ("i386", "arm"):
        name = f"kunit-{ARCH}"
        log = BUILD / f"test/host/{name}.log"
        command = [str(LAB / "run/kunit"), ARCH, str(log)]
        return [Test(name, command, "host", TOP)]
    if ARCH:
        return []
    tests = []
    for path in sorted((LAB / "tests").glob("test_*.py")):
        unit = ["python3", "-B", "-m", "unittest", "-q", path.stem]
        name = path.stem.replace("test_", "lab-")
        tests.append(Test(name, unit, "host", path.parent))
    tests.append(Test("xl710-qtest", ["./run-qtest.sh"], "host", XL710))
    unit = [str(TOP / "apps/tpgen/tests/unit.sh")]
    tests.append(Test("tpgen-unit", unit, "host", TOP))
    rings = [str(LAB / "stress/run"), "fuzz", "rings"]
    command = ["env", "OPERATIONS=1e8", "SEED=1", *rings]
    tests.append(Test("rings", command, "host", TOP))
    return tests
