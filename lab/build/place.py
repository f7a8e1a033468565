# SPDX-License-Identifier: GPL-2.0
"""Where things are built: a base other than the first has a directory of its own."""

import os
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
BASES = ["6.12", "7.3"]
BASE = os.getenv("BASE") or BASES[0]
BUILD = TOP / "build" / (BASE if BASE != BASES[0] else "")
