# SPDX-License-Identifier: GPL-2.0
"""The results of lab/measure/bench.py, as a table and as a picture.

The same results give the same picture. It is readable in black and white, since each
bar has its version's name and its number, and in dark mode.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape

VERSIONS = ("V3", "V4", "V4+ZC", "AF_XDP", "AF_XDP+ZC")
# rxdrop by the two members of a fanout group that a queue feeds, or without a group
FANOUT = tuple(
    f"fanout-{t}" for t in ("none", "lb", "qm", "cpu", "rnd", "hash", "cbpf", "xdp")
)
BENCHMARKS = ("rxdrop", *FANOUT, "txpush", "l2fwd", "tcpdump")


@dataclass
class Result:
    """Instructions per packet, of the kernel and of the program."""

    device: str
    benchmark: str
    size: int
    queues: int
    version: str
    wait: str
    instructions: float
    kernel: float | None  # unknown for tcpdump
    program: float | None
    drops: int
    packets: int


def best_of(results: list[Result]) -> list[Result]:
    """For each cell of the table, the run with the cheapest way to wait."""
    best: dict[tuple[str, str, int, int, str], Result] = {}
    for r in results:
        cell = (r.device, r.benchmark, r.size, r.queues, r.version)
        if cell not in best or r.instructions < best[cell].instructions:
            best[cell] = r
    return list(best.values())


def table(results: list[Result]) -> str:
    """One line per benchmark, size and number of queues; one column per version."""
    cells = {
        (r.device, r.benchmark, r.size, r.queues, r.version): r
        for r in best_of(results)
    }
    lines = []
    for device in dict.fromkeys(r.device for r in results):
        versions = [
            v for v in VERSIONS if any(key[0::4] == (device, v) for key in cells)
        ]
        head = f"{device:11} {'bytes':>5} {'queues':>6}"
        lines += ["", head + "".join(f"  {v:>22}" for v in versions)]
        rows = dict.fromkeys(key[1:4] for key in cells if key[0] == device)
        for benchmark, size, queues in rows:
            text = f"{benchmark:11} {size:5} {queues:6}"
            for version in versions:
                r = cells.get((device, benchmark, size, queues, version))
                cell = "-"
                if r:
                    cell = f"{r.instructions:.0f}"
                    if r.kernel is not None:
                        cell += f" ({r.kernel:.0f} + {r.program:.0f})"
                    cell += f" {r.wait:5}"
                text += f"  {cell:>22}"
            lines.append(text)
    return "\n".join(lines[1:])


TITLES = {
    "igb": "igb, between two ports",
    "i40e": "i40e on the XL710 model, with its generator and sink",
    "veth": "veth: generator, stack and program together",
    "virtio": "virtio_net, with a generator and sink in QEMU",
    "virtio-dma": "virtio_net with DMA addresses, with a generator and sink in QEMU",
}
STYLE = """
  text { font: 12px sans-serif; fill: #1f2328; }
  .title { font-weight: bold; font-size: 14px; }
  .name { text-anchor: end; }
  .note { fill: #59636e; }
  .page { fill: #ffffff; }
  .axis { stroke: #59636e; }
  .v4 { fill: #0969da; stroke: #0969da; }
  .other { fill: #afb8c1; stroke: #6e7781; }
  .v4.program, .other.program { fill: #ffffff; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; }
    .note { fill: #9198a1; }
    .page { fill: #0d1117; }
    .axis { stroke: #9198a1; }
    .v4 { fill: #4493f8; stroke: #4493f8; }
    .other { fill: #656c76; stroke: #9198a1; }
    .v4.program, .other.program { fill: #0d1117; }
  }
"""
WIDTH, MARGIN = 860, 20
NAMES, BARS = 150, 210  # pixels for a version's name, and for the longest bar
COLUMN = 410
LINE, BAR = 15, 11


def text(x: float, y: float, line: str, cls: str = "") -> str:
    return f'<text class="{cls}" x="{x:g}" y="{y:g}">{escape(line)}</text>'


def bar(x: float, y: float, r: Result, scale: float) -> str:
    """A version's bar: the kernel's share, the program's and the sum."""
    cls = "v4" if r.version.startswith("V4") else "other"
    assert r.kernel is not None and r.program is not None
    kernel, program = r.kernel * scale, r.program * scale
    rect = f'y="{y - BAR + 1:g}" height="{BAR}"'
    return (
        text(x - 6, y, r.version, "name")
        + f'<rect class="{cls}" x="{x:g}" {rect} width="{kernel:.1f}"/>'
        + f'<rect class="{cls} program" x="{x + kernel:.1f}" {rect}'
        + f' width="{program:.1f}"/>'
        + text(x + kernel + program + 6, y, f"{r.instructions:.0f}")
        + "\n"
    )


def group(x: float, y: float, results: list[Result], scale: float) -> Iterator[str]:
    """The bars of one benchmark and size."""
    left = x + NAMES
    yield text(x, y, f"{results[0].benchmark}, {results[0].size} bytes") + "\n"
    yield (
        f'<path class="axis" d="M{left:g} {y - LINE + 3:g}'
        f' v{LINE * len(results) + 1}"/>\n'
    )
    for r in results:
        yield bar(left, y, r, scale)
        y += LINE


def drawing(results: list[Result]) -> str:
    """The results for the smallest number of queues as SVG, or "" for tcpdump alone."""
    queues = min(r.queues for r in results)
    shown = [
        r
        for r in best_of(results)
        if r.queues == queues and r.kernel is not None and r.benchmark not in FANOUT
    ]
    shown.sort(key=lambda r: VERSIONS.index(r.version))
    out, y = "", 28
    for device in sorted({r.device for r in shown}):
        here = [r for r in shown if r.device == device]
        sizes = sorted({r.size for r in here})
        scale = BARS / max(r.instructions for r in here)
        out += text(MARGIN, y, TITLES[device], "title") + "\n"
        y += 24
        for benchmark in BENCHMARKS:
            columns = [
                [r for r in here if (r.benchmark, r.size) == (benchmark, size)]
                for size in sizes
            ]
            for i, column in enumerate(columns):
                if column:
                    out += "".join(group(MARGIN + i * COLUMN, y, column, scale))
            if any(columns):
                y += LINE * max(map(len, columns)) + 12
        y += 20
    if not out:
        return ""
    out += text(
        MARGIN,
        y - 12,
        "Instructions per packet; less is better. Filled: the kernel's share;"
        " empty: the program's. Each device has its own scale.",
        "note",
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" '
        f'width="{WIDTH}" height="{y}">\n'
        "<title>Instructions per packet: V3, V4 and AF_XDP</title>\n"
        f"<style>{STYLE}</style>\n"
        f'<rect class="page" width="{WIDTH}" height="{y}" rx="8"/>\n{out}\n</svg>\n'
    )
