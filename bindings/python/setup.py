# SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
"""The module in C. All else is in pyproject.toml."""

import subprocess

from setuptools import Extension, setup


def cflags() -> list[str]:
    """Where the library's headers are, if they are installed; else CFLAGS has to say it."""
    try:
        command = ["pkg-config", "--cflags", "tpacket4"]
        return subprocess.run(
            command, capture_output=True, text=True, check=True
        ).stdout.split()
    except (OSError, subprocess.CalledProcessError):
        return []


setup(
    ext_modules=[
        Extension(
            "tpacket4._core",
            ["src/core/module.c", "src/core/packet.c", "src/core/socket.c"],
            depends=["src/core/binding.h"],
            extra_compile_args=["-std=gnu11", "-Wall", "-Wextra", *cflags()],
            py_limited_api=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
