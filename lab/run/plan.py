# SPDX-License-Identifier: GPL-2.0
"""Finds the tests, and reads from the table lab/run/tests.list where each one runs."""

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path

from lab.build.place import BASE, BASES, BUILD, TOP

LAB = TOP / "lab"
TABLE = LAB / "run/tests.list"
ARCH = os.getenv("ARCH", "")
NET = BUILD / ARCH / "selftests" / "net"
TPACKET4 = NET / "tpacket4"
XL710 = LAB / "xl710"
ON_VETH = TOP / "tools/lib/tpacket4/tests/on_veth.sh"
PCAP, PCAP_TESTS = BUILD / "pcap", TOP / "ports/libpcap/tests"
PLUGIN, DPDK_TESTS = BUILD / "dpdk/librte_net_tpacket4.so", TOP / "ports/dpdk/tests"
QEMU, QEMU_TEST = BUILD / "qemu", TOP / "ports/qemu/tests/net.py"
PYTHON = ["python3", "-B"]
MAN = TOP / "tools/lib/tpacket4/tpacket4.7"
# Selftests shorten loops on a kernel that is slow without being a debug kernel, and for
# coverage, where a second visit of a line adds nothing.
FAST = ["TPACKET4_FAST=1"]
# Two CPUs are possible, or devices could not have two queues.
ONE_CPU = ["--append", "maxcpus=1"]
# The short cases of zc_port. The others hardly depend on the kind of ring.
VIRTIO_SHORT = "-v both -t offloads -t xdp -t one_ring -t kill_under_load"
VIRTIO_SHORT += (
    " -t unplug_under_load -t stopped -t not_started -t empty_ring_needs_kick"
)
# Only taps have offloads.
VIRTIO_TAP = "-v both -t offloads -t copies_have_offloads"
# The members' kinds of memory are the core's, and tpacket4_zc_fanout tests them.
VIRTIO_FANOUT = "-v swap_meta -v native"
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
XL710_DEBUG_CASES = (
    "TP4_TESTS=-v both -v reset -t kill_under_load -t metadata -t xdp -t devmem"
)
# The cases of xl710-pairs in which two queues share a vector, in which there are three
# queues (and as many CPUs), and in which, without MSI-X, there is one queue.
SHARED_VECTOR = "other_pairs_of_the_vector_go_on"
THREE_QUEUES = "rules_hold_while_others_bind"
ONE_QUEUE = "kick_reaches_napi link_events_after_bind bind_while_down tx_alone"


@dataclass
class Row:
    """A line of the table."""

    short: str
    long: str
    cpus: str
    flags: list[str]
    names: list[str]
    why: str


def read_table() -> list[Row]:
    rows = []
    for line in TABLE.read_text().splitlines():
        words, _, why = line.partition("#")
        if words:
            short, long, cpus, flags, *names = words.split()
            rows.append(Row(short, long, cpus, flags.split(","), names, why.strip()))
    return rows


ROWS = read_table()


@dataclass
class Test:
    """A command; `kind` as in lab/run/guest-test, or host: outside the VM."""

    name: str
    command: Sequence[str | Path]
    kind: str = "run"
    cwd: Path = NET
    timeout: int = 900
    vm: list[str] = field(default_factory=list)

    def row(self) -> Row:
        name = self.name.removesuffix("-32")
        return next(r for r in ROWS if any(fnmatchcase(name, n) for n in r.names))

    def has(self, flag: str) -> bool:
        return flag in self.row().flags

    def matches(self, pattern: str) -> bool:
        """A pattern is one of names, or @FLAG."""
        if pattern.startswith("@"):
            return self.has(pattern[1:]) and not self.name.endswith("-32")
        return fnmatchcase(self.name, pattern)


def why_not(test: Test, kernel: str, kernels: list[str], long: bool) -> str:
    """Why a test does not run on a kernel; empty if it does."""
    if ARCH:
        return ""
    row = test.row()
    where = row.long if long else row.short
    why = f" ({row.why})" if row.why else ""
    if where == "-":
        return f"only if named{why}" if long else f"make long runs it{why}"
    if kernel == "host":
        return ""
    # On a newer base, one kernel for User Mode Linux is enough.
    newer = BASE != BASES[0]
    if kernel in ("um", "umdebug"):
        here = where == kernel or test.has("um") and (newer or kernel == "umdebug")
        return "" if here else "not for User Mode Linux"
    if where in ("plain", "um") and kernel != "plain":
        return "slow there"
    if "um" in kernels and (where == "um" or newer and test.has("um")):
        return "User Mode Linux runs it"
    if where == "debug" and kernel == "plain" and "debug" in kernels:
        return "the debug kernel runs it"
    if kernel == "debug" and "umdebug" in kernels and test.has("um"):
        return "umdebug, User Mode Linux, runs it"
    return ""


# That what is not built yet counts as built, for find_all()
anticipate = False


def is_built(path: Path) -> bool:
    return anticipate or path.exists()


def stems(directory: str, pattern: str) -> list[str]:
    return sorted(path.stem for path in (TOP / directory).glob(pattern))


def listed(what: str) -> list[str]:
    """The series' own programs or scripts, as lab/build/progs found them."""
    if anticipate:
        pattern = "*.sh" if what == "scripts" else "*.c"
        return stems("tools/testing/selftests/net/tpacket4", pattern)
    file = BUILD / ARCH / "selftests" / what
    return file.read_text().split() if file.exists() else []


def kunit_modules(kernel: str) -> list[str]:
    if anticipate:
        return stems("net/packet", "*_test.c")
    directory = f"kernel-{kernel}/mods/lib/modules/*/kernel/net/packet"
    names = sorted(path.stem for path in BUILD.glob(f"{directory}/*.ko"))
    return [name for name in names if re.search("kunit|test", name)]


def find_selftests(kernel: str) -> Iterator[Test]:
    for module in kunit_modules(kernel):
        yield Test(module, [module], "kunit", BUILD)
    fast = ["env", *FAST] if kernel in ("kcsan", "gcov") or ARCH else []
    in_32_bit = listed("programs32") if kernel == "plain" else []
    for program in listed("programs"):
        name = f"tpacket4_{program}"
        if is_built(TPACKET4 / program):
            yield Test(name, [*fast, f"./{program}"], cwd=TPACKET4)
        path = f"../../net32/tpacket4/{program}"
        if program in in_32_bit and is_built(TPACKET4 / path):
            yield Test(f"{name}-32", [path], cwd=TPACKET4)


def find_guest_tests(kernel: str, long: bool) -> list[Test]:
    tests = list(find_selftests(kernel))
    if ARCH:
        return tests + find_lib_tests()[:2]
    for name in "psock_tpacket", "psock_fanout", "psock_snd":
        if is_built(NET / name):
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
    tests += [*find_lib_tests(), *find_tunnel_tests()]
    bench = [ON_VETH, TOP / "samples/tpacket4/test.sh"]
    tests += [Test("tpbench", bench, cwd=BUILD / "tpbench"), *find_pcap_tests(long)]
    tests += find_dpdk_tests(long)
    tests += find_tpgen_tests(long)
    tests += find_guide_tests(long)
    tests += [find_habits_test(), find_demo_test()]
    tests += find_igb_test(long)
    if is_built(QEMU / "init"):
        guest = [BUILD / "kernel-plain/vmlinux", QEMU / "init"]
        command = [*PYTHON, QEMU_TEST, QEMU / "qemu-system-x86_64", *guest]
        tests.append(Test("qemu", [ON_VETH, *command]))
    if is_built(BUILD / "zeek/zeek_test"):
        command = [ON_VETH, "./zeek_test", "./AF_Packet-V4.so"]
        tests.append(Test("zeek", command, cwd=BUILD / "zeek"))
    if is_built(QEMU / "virtq"):
        command = [QEMU / "virtq", "hostile", "--seconds", "5"]
        command += [QEMU / "qemu-system-x86_64", "tp4B"]
        command += ["tpacket4,ifname=tp4A,queues=2", "tpacket4,ifname=tp4A,zerocopy=on"]
        tests.append(Test("qemu-hostile", [ON_VETH, *command]))
    for name, *part in ("tpswitch", "net"), ("tp4",):
        command = ["bash", TOP / "apps" / name / "tests/test.sh", *part]
        tests.append(Test(name, command, cwd=BUILD / name))
    script = TOP / "bindings/veth.sh"
    for name, examples in ("rust", "rust/release/examples"), ("go", "go"):
        if is_built(BUILD / examples):
            command = [ON_VETH, script, BUILD / examples, "tp4A", "tp4B"]
            tests.append(Test(name, command))
    if is_built(BUILD / "python/site"):
        binding = TOP / "bindings/python"
        env = ["env", f"PYTHONPATH={BUILD / 'python/site'}", ON_VETH]
        module = [*env, *PYTHON, binding / "tests/test_module.py"]
        examples = [*env, script, binding / "examples", "tp4A", "tp4B"]
        tests += [Test("python", module), Test("python-examples", examples)]
    for test in tests:
        few_cpus = kernel in ("plain", "debug") and not long and not os.getenv("CPUS")
        if few_cpus and test.row().cpus == "1":
            test.vm = ONE_CPU
    return tests


def find_lib_tests() -> list[Test]:
    """The library's tests; other architectures have the first two of them."""
    tests = TOP / "tools/lib/tpacket4/tests"
    commands = {
        "lib": [ON_VETH, "./lib_test", "tp4A", "tp4B"],
        "lib-byte-order": [ON_VETH, tests / "byte_order.sh"],
        "lib-cxx": [ON_VETH, "./lib_test_cxx", "tp4A", "tp4B"],
        "lib-debug": [ON_VETH, "./lib_debug", "tp4A", "tp4B"],
        "lib-old-program": [ON_VETH, "./old_program", "tp4A", "tp4B"],
        "lib-examples": [ON_VETH, tests / "examples.sh"],
        "lib-ringtest": [tests / "ringtest.sh"],
        "lib-shared-object": [ON_VETH, tests / "shared_object.py", MAN],
    }
    return [Test(*item, cwd=BUILD / ARCH / "lib") for item in commands.items()]


def find_tunnel_tests() -> Iterator[Test]:
    """TCP in tunnels through the library's forwarder and through the switch."""
    forward = [BUILD / "lib/forward", "v4a", "v4b"]
    switch = [BUILD / "tpswitch/tpswitch", "-S", "/run/tunnels"]
    commands = {
        "lib-tunnels": [*forward, "relay"],
        "lib-tunnels-zc": [*forward, "zerocopy"],
        "tpswitch-tunnels": [*switch, "v4a", "v4b"],
        "tpswitch-tunnels-zc": [*switch, "zc:v4a", "zc:v4b"],
    }
    for name, command in commands.items():
        yield Test(name, ["bash", "tunnels.sh", *command], cwd=TPACKET4)


def find_tpgen_tests(long: bool) -> Iterator[Test]:
    """The generator on a veth pair, also with sanitizers."""
    tests, obj = TOP / "apps/tpgen/tests", BUILD / "tpgen"
    env = [] if long else ["env", "TPGEN_SHORT=1"]
    for name, program in ("tpgen", "./tpgen"), ("tpgen-sanitized", "sanitized/tpgen"):
        command = [*env, ON_VETH, *PYTHON, tests / "guest.py", program, "tp4A", "tp4B"]
        yield Test(name, command, cwd=obj)
    yield Test("tpgen-examples", [tests / "examples.sh"], cwd=obj)


def find_port_tests(kind: str, driver: str, long: bool, *vm: str) -> Iterator[Test]:
    """Those of ports/ that run on two devices of any driver, where the ports are built."""
    if is_built(PCAP / "lib"):
        # The ring has 4,096 frames: more packets must come while the capture is stopped.
        count = "10000" if long else "6000"
        command = ["bash", PCAP_TESTS / "stopped.sh", PCAP, driver, count]
        yield Test(f"{kind}-stopped", command, cwd=PCAP, vm=[*vm])
    if vm and is_built(PLUGIN):
        command = [*PYTHON, DPDK_TESTS / "devices.py", PLUGIN.parent, driver]
        yield Test(f"{kind}-dpdk", command, vm=[*vm])


def find_xsk_dpdk_test() -> Iterator[Test]:
    """net_tpacket4 on a driver that V4 uses by AF_XDP's interface"""
    if is_built(PLUGIN):
        command = [*PYTHON, DPDK_TESTS / "devices.py", PLUGIN.parent, "i40e"]
        command += ["forwarding", "restart", "side_by_side"]
        vm = ["--nic", "xl710", "--append", "load=afxdp_only", "--qemu"]
        yield Test("xl710-xsk-dpdk", command, vm=vm)


def find_pcap_tests(long: bool) -> Iterator[Test]:
    """Those of ports/libpcap, where that is built."""
    if not is_built(PCAP / "lib"):
        return
    for version in "v3", "v4", "zc":
        # V3 is what Debian's libpcap uses.
        lib = [] if version == "v3" else ["env", f"LD_LIBRARY_PATH={PCAP}/lib"]
        command = [*lib, ON_VETH, "./pcap_test", version, "tp4A", "tp4B"]
        yield Test(f"pcap-{version}", command, cwd=PCAP / "testprogs")
    yield from find_port_tests("pcap", "veth", long)
    burst = [LAB / "measure/burst.py", "--guest", "--buffers", "2048"]
    yield Test("pcap-burst", [*burst, "--count", "30000"], cwd=PCAP)
    tcpdump = [*PYTHON, PCAP_TESTS / "side_by_side.py", PCAP]
    yield Test("pcap-tcpdump", tcpdump + ([] if long else ["--short"]), cwd=PCAP)
    programs = [*PYTHON, PCAP_TESTS / "testprogs.py", PCAP]
    yield Test("pcap-testprogs", programs, cwd=PCAP)
    programs = [*PYTHON, PCAP_TESTS / "programs.py", PCAP]
    yield Test("pcap-programs", programs, cwd=PCAP)


def find_dpdk_tests(long: bool) -> Iterator[Test]:
    """Debian's programs on ports/dpdk, where that is built."""
    commands = {
        "dpdk": ["testpmd.py", PLUGIN],
        "dpdk-sanitized": ["testpmd.py", PLUGIN.parent / "sanitized" / PLUGIN.name],
        "dpdk-programs": ["programs.py", PLUGIN.parent],
    }
    for name, (script, path) in commands.items() if is_built(PLUGIN) else ():
        command = [*PYTHON, DPDK_TESTS / script, path]
        yield Test(name, command + ([] if long else ["--short"]))


def find_virtio_tests(long: bool) -> Iterator[Test]:
    """Zero-copy mode on virtio_net, with the kinds of rings and buffers it has."""
    if ARCH or not is_built(TPACKET4 / "zc_ports.sh"):
        return
    mtu, valid = "TPACKET4_PORT_MTU=1500", "TPACKET4_PORT_VALID=1"
    dma = "virtio,iommu_platform=on,disable-legacy=on"
    small = f"{'-f contents' if long else '-v both'} {VIRTIO_SMALL}"
    short, tap = ("", "") if long else (VIRTIO_SHORT, VIRTIO_TAP)
    fanout = "" if long else VIRTIO_FANOUT
    kinds = {
        "split": ("virtio", [], short),
        "packed": ("virtio,packed=on", [], short),
        "dma": (dma, [], short),
        "small": ("virtio,mrg_rxbuf=off", [mtu], small),
        "tap": ("virtio-tap,rss=on,hash=on", [valid], tap),
        "fanout": ("virtio", ["TPACKET4_PORT_TEST=zc_fanout"], fanout),
        "queues": ("virtio-tap,mq=on,vectors=10", [], "-t xdp_shares_queues"),
        "stamp": ("virtio", ["TPACKET4_PORT_TEST=zc_stamp"], ""),
    }
    if BASE != BASES[0]:  # which has neither leases nor AF_XDP here
        # AF_XDP needs the DMA API
        for kind in "netkit", "xsk":
            kinds[kind] = (dma, [f"TPACKET4_PORT_TEST=zc_{kind}"], "")
    for kind, (nic, more, cases) in kinds.items():
        env = ["env", *([] if long else FAST), *more]
        command = [*env, "bash", "zc_ports.sh", *cases.split()]
        hide = ["--append", "load=afxdp_only"] if kind == "xsk" else []
        yield Test(f"virtio-{kind}", command, cwd=TPACKET4, vm=["--nic", nic, *hide])
    yield from find_port_tests("virtio", "virtio_net", long, "--nic", "virtio")
    # A machine of its own, whose log has what a suspended console would lose.
    suspend = " ".join(["TPACKET4_PORT_TEST=zc_suspend", *([] if long else FAST)])
    yield Test(
        "virtio-suspend",
        ["sh", "-c", f"{SUSPENDABLE}; {suspend} bash zc_ports.sh"],
        cwd=TPACKET4,
        vm=["--nic", "virtio", "--append", AWAKE],
    )


def find_igb_test(long: bool) -> Iterator[Test]:
    """A stock driver with AF_XDP's zero-copy mode, on QEMU's own device."""
    if ARCH or BASE == BASES[0]:  # whose igb lacks that mode
        return
    command = ["env", f"BASE={BASE}", "bash", TOP / "apps/card/tpacket4-card"]
    command += [*([] if long else ["-s"]), "eth0", "eth1"]
    yield Test("igb", command, vm=["--nic", "igb"])


def find_guide_tests(long: bool) -> Iterator[Test]:
    """The code of the page for authors of drivers, as a driver."""
    command = ["env", f"BUILD={BUILD}", "bash", LAB / "run/modules/guide.sh"]
    command += [] if long else ["2"]
    yield Test("guide", command)
    yield Test("guide-bounce", command, vm=["--append", BOUNCE])


def find_demo_test() -> Test:
    """Each cell of make demo, once"""
    job = {"rounds": 1, "sizes": [64]}
    command = [*PYTHON, LAB / "measure/bench_um.py", "--guest", json.dumps(job)]
    # Other tests may have devices of the same names.
    return Test("demo", ["env", f"BASE={BASE}", "unshare", "--net", *command])


def find_habits_test() -> Test:
    """A driver with AF_XDP's interface that does what others do, without their hardware."""
    script = LAB / "run/modules/habits.sh"
    return Test("habits", ["env", f"BUILD={BUILD}", "bash", script])


def find_xl710_tests(kernel: str, long: bool) -> list[Test]:
    """The tests of the XL710 model and of zero-copy mode on it."""
    short = [] if long else ["XL710_SHORT=1"]
    if kernel == "gcov":
        short += FAST

    def test(
        script: str, name: str, nic: str, *env: str, cases: str = "", boot: str = ""
    ) -> Test:
        path = XL710 / "tests" / f"{script}.sh"
        command = ["env", f"BUILD={BUILD}", *short, *env, "bash", path, *cases.split()]
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
        test("tp4", "stamp", "xl710", "TP4_PARTS=stamp"),
        test("tp4", "tp4-slow", SLOW_TX, "TP4_PARTS=ports", f"TP4_TESTS={FULL_RING}"),
        *find_port_tests("xl710", "i40e", long, "--nic", "xl710", "--qemu"),
        *find_xsk_dpdk_test(),
    ]
    if BASE != BASES[0]:  # which cannot lease queues
        tests.append(test("tp4", "netkit", "xl710", "TP4_PARTS=netkit"))
    return tests


def find_host_tests() -> list[Test]:
    if ARCH in ("i386", "arm"):
        name = f"kunit-{ARCH}"
        command = [LAB / "run/kunit", ARCH, BUILD / f"test/host/{name}.log"]
        return [Test(name, command, "host", TOP)]
    if ARCH:
        return []
    tests = []
    for path in sorted((LAB / "tests").glob("test_*.py")):
        unit = ["python3", "-B", "-m", "unittest", "-q", path.stem]
        name = path.stem.replace("test_", "lab-")
        tests.append(Test(name, unit, "host", path.parent))
    rings = ["env", "OPERATIONS=1e8", "SEED=1", LAB / "stress/run", "fuzz", "rings"]
    if is_built(BUILD / "rust"):
        unit = ["env", f"CARGO_TARGET_DIR={BUILD / 'rust'}", "cargo", "test", "--quiet"]
        crate = TOP / "bindings/rust"
        tests.append(Test("rust-unit", [*unit, "--all-features"], "host", crate))
    if is_built(BUILD / "go"):
        unit = ["go", "test", "-race", "./..."]
        tests.append(Test("go-unit", unit, "host", TOP / "bindings/go"))
    if is_built(BUILD / "tpswitch"):
        rings_only = ["bash", TOP / "apps/tpswitch/tests/test.sh", "swtest"]
        tests.append(Test("tpswitch-rings", rings_only, "host", BUILD / "tpswitch"))
    if is_built(QEMU / "fuzz"):
        fuzz = [QEMU / "fuzz", "--seconds", "10"]
        tests.append(Test("qemu-fuzz", fuzz, "host", TOP))
    return [
        *tests,
        Test("xl710-qtest", ["./run-qtest.sh"], "host", XL710),
        Test("tpgen-unit", [TOP / "apps/tpgen/tests/unit.sh"], "host", TOP),
        Test("rings", rings, "host", TOP),
    ]


def find_all() -> list[Test]:
    """All tests, also those whose programs are not built yet"""
    global anticipate
    anticipate = True
    tests = find_host_tests()
    for kernel in "plain", "debug":
        tests += find_guest_tests(kernel, True)
        tests += find_virtio_tests(True)
        tests += find_xl710_tests(kernel, True) if not ARCH else []
    anticipate = False
    return tests


def unknown(patterns: list[str]) -> str:
    """What is wrong with patterns that no test matches; empty if all match some"""
    tests = find_all()
    names = {test.name for test in tests}
    wrong = []
    for pattern in patterns:
        if not any(test.matches(pattern) for test in tests):
            near = get_close_matches(pattern.strip("*"), names, 4, 0.5)
            hint = f": {', '.join(near)}?" if near else ""
            wrong.append(f"no test matches {pattern}{hint}")
    return "; ".join(wrong)
