#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Plots the results of lab/measure/bench.py: lab/measure/bench_plot.py IN.json OUT.svg

Uses Debian's matplotlib and thus Debian's Python. The same numbers result in the same
file. Shows the results for the smallest number of queues.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lab.measure.bench import Result, best_of

try:
    import matplotlib
except ImportError:
    sys.exit("bench_plot.py: no matplotlib (package python3-matplotlib)")

matplotlib.use("svg")
# Names in the file are made from this, and texts stay texts.
matplotlib.rcParams["svg.hashsalt"] = "tpacket4"
matplotlib.rcParams["svg.fonttype"] = "none"

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Patch

# Readable in black and white: by lightness and by hatching
STYLES = {
    "V3": ("1.0", "\\\\"),
    "V4": ("0.8", "//"),
    "V4+ZC": ("0.2", ""),
    "AF_XDP": ("0.9", ".."),
    "AF_XDP+ZC": ("0.55", "xx"),
}
TITLES = {"i40e": "XL710 (i40e)", "veth": "veth, both ends", "virtio": "virtio_net"}


def panel(axes: Axes, results: list[Result]) -> None:
    """Bars in groups, one a benchmark and size; the kernel's share below."""
    groups = list(dict.fromkeys((r.benchmark, r.size) for r in results))
    versions = [v for v in STYLES if any(r.version == v for r in results)]
    width = 0.8 / len(versions)
    for r in results:
        shade, hatch = STYLES[r.version]
        off = versions.index(r.version) - (len(versions) - 1) / 2
        x = groups.index((r.benchmark, r.size)) + off * width
        look = {"edgecolor": "black", "linewidth": 0.6, "width": width}
        axes.bar(x, r.kernel, color=shade, hatch=hatch, **look)
        axes.bar(x, r.program, bottom=r.kernel, color="white", **look)
        axes.annotate(
            f"{r.instructions:.0f}",
            (x, r.kernel + r.program),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            fontsize=6,
            rotation=90,
        )
    axes.set_xticks(range(len(groups)))
    axes.set_xticklabels([f"{benchmark}\n{size} bytes" for benchmark, size in groups])
    axes.set_title(TITLES[results[0].device], fontsize=10)
    axes.set_ylabel("instructions a packet")
    axes.margins(y=0.12)
    axes.spines[["top", "right"]].set_visible(False)


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} IN.json OUT.svg")
    all_results = [Result(**r) for r in json.loads(Path(sys.argv[1]).read_text())]
    queues = min(r.queues for r in all_results)
    # Of tcpdump, nobody knows the program's share.
    results = [r for r in best_of(all_results) if r.queues == queues]
    results = [r for r in results if r.kernel is not None]
    if not results:
        Path(sys.argv[2]).unlink(missing_ok=True)  # that of an earlier run
        print("bench_plot.py: no picture: it shows shares, and tcpdump's has none")
        return
    devices = sorted({r.device for r in results})
    figure, all_axes = plt.subplots(
        len(devices), 1, figsize=(9, 3.6 * len(devices)), squeeze=False
    )
    for axes, device in zip(all_axes[:, 0], devices, strict=True):
        panel(axes, [r for r in results if r.device == device])
    shown = {r.version for r in results}
    legend = [
        Patch(facecolor=shade, hatch=hatch, edgecolor="black", label=version)
        for version, (shade, hatch) in STYLES.items()
        if version in shown
    ]
    legend.append(
        Patch(facecolor="white", edgecolor="black", label="on top: the program's share")
    )
    figure.legend(handles=legend, loc="lower center", ncol=len(legend), fontsize=8)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    figure.savefig(sys.argv[2], metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main()
