#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Turns a source archive on stdin into a `git fast-import` stream on stdout.

Unpacking a kernel to disk, adding it to git and removing it again takes minutes
on a slow disk; this takes the time that decompressing does. The archive's first
directory is dropped, as tar's --strip-components=1 would.
"""

import shutil
import sys
import tarfile
from typing import BinaryIO


def quote(path: str) -> bytes:
    """A path as fast-import wants it."""
    path = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return b'"' + path.encode(errors="surrogateescape") + b'"'


def convert(source: BinaryIO, out: BinaryIO, ref: str, who: str, when: int) -> None:
    message = b"base\n"
    out.write(
        f"commit {ref}\ncommitter {who} {when} +0000\ndata {len(message)}\n".encode()
        + message
    )
    with tarfile.open(fileobj=source, mode="r|*") as tar:
        for member in tar:
            _, _, path = member.name.removeprefix("./").partition("/")
            if not path or member.isdir():
                continue
            if member.issym():
                link = member.linkname.encode(errors="surrogateescape")
                out.write(b"M 120000 inline %s\n" % quote(path))
                out.write(b"data %d\n%s\n" % (len(link), link))
                continue
            data = tar.extractfile(member)
            if data is None:
                sys.exit(f"tar2git.py: {member.name}: not a file, not a link")
            mode = b"100755" if member.mode & 0o100 else b"100644"
            out.write(b"M %s inline %s\n" % (mode, quote(path)))
            out.write(b"data %d\n" % member.size)
            shutil.copyfileobj(data, out)
            out.write(b"\n")
    out.write(b"done\n")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        print("usage: tar2git.py REF 'NAME <EMAIL>' EPOCH <TAR | git fast-import")
        sys.exit(sys.argv[1:] != ["--help"])
    convert(
        sys.stdin.buffer, sys.stdout.buffer, sys.argv[1], sys.argv[2], int(sys.argv[3])
    )
