# SPDX-License-Identifier: GPL-2.0
"""Paths. Each base except the first has its own build directory."""

import os
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
BASES = ["6.12", "7.3"]
BASE = os.getenv("BASE") or BASES[0]
BUILD = TOP / "build" / (BASE if BASE != BASES[0] else "")
