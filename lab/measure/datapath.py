#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Draws the data path of both modes, lab/measure/datapath.svg."""

import sys
from xml.sax.saxutils import escape

STYLE = """
  text { font: 13px sans-serif; fill: #1f2328; text-anchor: middle; }
  .title { font-weight: bold; font-size: 15px; }
  .note { font-size: 12px; fill: #59636e; }
  .page { fill: #ffffff; }
  .box { fill: #f6f8fa; stroke: #59636e; }
  .mem { fill: #ddf4ff; stroke: #0969da; }
  .edge { stroke: #59636e; stroke-dasharray: 5 4; }
  .way { stroke: #1f2328; stroke-width: 1.5; fill: none;
         marker-end: url(#tip); }
  .data { stroke: #0969da; stroke-width: 3; fill: none;
          marker-end: url(#tip2); }
  .tip { fill: #1f2328; }
  .tip2 { fill: #0969da; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; }
    .note { fill: #9198a1; }
    .page { fill: #0d1117; }
    .box { fill: #212830; stroke: #9198a1; }
    .mem { fill: #10305a; stroke: #4493f8; }
    .edge { stroke: #9198a1; }
    .way { stroke: #f0f6fc; }
    .data { stroke: #4493f8; }
    .tip { fill: #f0f6fc; }
    .tip2 { fill: #4493f8; }
  }
"""


def box(x: int, y: int, width: int, height: int, *lines: str, cls: str = "box") -> str:
    """A box with its upper left corner at x, y, and centred lines of text"""
    out = f'<rect class="{cls}" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>\n'
    top = y + height / 2 + 5 - 8.5 * (len(lines) - 1)
    for i, line in enumerate(lines):
        out += text(x + width // 2, top + 17 * i, line, "" if i == 0 else "note")
    return out


def text(x: float, y: float, line: str, cls: str = "") -> str:
    return f'<text class="{cls}" x="{x:g}" y="{y:g}">{escape(line)}</text>\n'


def way(cls: str, *points: tuple[int, int]) -> str:
    """An arrow through the points"""
    path = " L".join(f"{x} {y}" for x, y in points)
    return f'<path class="{cls}" d="M{path}"/>\n'


def copy_mode(x: int) -> str:
    return (
        text(x + 190, 30, "Copy mode: every device", "title")
        + box(x + 20, 50, 130, 56, "Rx and Tx rings", "16-byte descriptors")
        + box(x + 170, 50, 190, 56, "Frames", "memory of the program", cls="mem")
        + box(x + 20, 160, 200, 50, "AF_PACKET socket", "filter, fanout")
        + box(x + 250, 160, 110, 110, "Stack", "netfilter,", "qdisc, TCP/IP")
        + box(x + 20, 310, 340, 40, "Driver: skbs")
        + box(x + 20, 390, 340, 40, "Device")
        + way("way", (x + 65, 108), (x + 65, 156))
        + way("way", (x + 105, 158), (x + 105, 110))
        + way("data", (x + 195, 158), (x + 195, 110))
        + text(x + 228, 148, "copy", "note")
        + way("way", (x + 120, 308), (x + 120, 214))
        + text(x + 93, 262, "Rx skb", "note")
        + way("way", (x + 285, 308), (x + 285, 274))
        + way("way", (x + 222, 185), (x + 246, 185))
        + text(x + 222, 226, "Tx skb", "note")
        + way("way", (x + 330, 272), (x + 330, 306))
        + way("data", (x + 150, 388), (x + 150, 354))
        + way("data", (x + 230, 352), (x + 230, 386))
    )


def zerocopy_mode(x: int) -> str:
    return (
        text(x + 190, 30, "Zero-copy mode: veth, i40e, virtio_net", "title")
        + box(x + 20, 50, 130, 56, "Rx and Tx rings", "16-byte descriptors")
        + box(x + 170, 50, 190, 56, "Frames", "memory of the program", cls="mem")
        + box(x + 20, 160, 130, 50, "Packet arrays", "checks, XDP")
        + box(x + 250, 230, 110, 40, "Stack")
        + box(x + 20, 310, 130, 40, "Driver: NAPI")
        + box(x + 250, 310, 110, 40, "Driver: skbs")
        + box(x + 20, 390, 210, 40, "Device: queue pair n")
        + box(x + 250, 390, 110, 40, "Other queues")
        + way("way", (x + 65, 108), (x + 65, 156))
        + way("way", (x + 105, 158), (x + 105, 110))
        + way("way", (x + 65, 212), (x + 65, 306))
        + way("way", (x + 105, 308), (x + 105, 214))
        + way("way", (x + 65, 352), (x + 65, 386))
        + way("way", (x + 105, 388), (x + 105, 354))
        + way("data", (x + 185, 388), (x + 185, 110))
        + way("data", (x + 215, 108), (x + 215, 386))
        + text(x + 200, 445, "packets: no copy, no skb", "note")
        + way("way", (x + 152, 185), (x + 300, 185), (x + 300, 226))
        + text(x + 292, 160, "XDP_PASS_TO_KERNEL", "note")
        + way("way", (x + 285, 308), (x + 285, 274))
        + way("way", (x + 325, 272), (x + 325, 306))
        + way("way", (x + 285, 388), (x + 285, 354))
        + way("way", (x + 325, 352), (x + 325, 386))
    )


def drawing() -> str:
    width, height = 800, 460
    tips = "".join(
        f'<marker id="{name}" viewBox="0 0 8 8" refX="6" refY="4" '
        f'markerWidth="{size}" markerHeight="{size}" orient="auto">'
        f'<path class="{name}" d="M0 0 L8 4 L0 8 z"/></marker>\n'
        for name, size in (("tip", 7), ("tip2", 4))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}">\n'
        "<title>The data path in copy mode and in zero-copy mode</title>\n"
        f"<style>{STYLE}</style>\n<defs>\n{tips}</defs>\n"
        f'<rect class="page" width="{width}" height="{height}" rx="8"/>\n'
        f'<path class="edge" d="M20 132 H{width - 20}"/>\n'
        + text(400, 128, "user space", "note")
        + text(400, 147, "kernel", "note")
        + copy_mode(5)
        + zerocopy_mode(415)
        + "</svg>\n"
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print("usage: lab/measure/datapath.py >lab/measure/datapath.svg")
        sys.exit(sys.argv[1:] != ["--help"])
    sys.stdout.write(drawing())
