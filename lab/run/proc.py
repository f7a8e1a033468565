# SPDX-License-Identifier: GPL-2.0
"""Child processes that all end when a signal ends this one.

Each is the leader of a new process group. A child that starts further groups must end
them itself (see end_jobs in lib.sh).
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

GRACE = 15  # seconds: longer than the 5 that end_jobs gives, twice

_lock = threading.Lock()
_running: set[subprocess.Popen[bytes]] = set()
_stopping = False


class Stopped(Exception):
    """A signal has arrived: nothing new is started."""


def start(
    command: Sequence[str | Path],
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    pipe: bool = True,
) -> "subprocess.Popen[bytes]":
    """Start a command. Its stdout and stderr are a pipe, or inherited."""
    with _lock:
        if _stopping:
            raise Stopped
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if pipe else None,
            stderr=subprocess.STDOUT if pipe else None,
            start_new_session=True,
        )
        _running.add(process)
    return process


def finish(process: "subprocess.Popen[bytes]") -> int:
    """Wait for its end; returns the exit code as a shell does."""
    code = process.wait()
    with _lock:
        _running.discard(process)
        if _stopping:
            raise Stopped
    return code if code >= 0 else 128 - code


def signal_group(process: "subprocess.Popen[bytes]", number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass


def _stop(number: int) -> None:
    try:
        _end_all()
        sys.stdout.flush()
    finally:  # the reader of our output may have ended
        os._exit(128 + number)


def _end_all() -> None:
    global _stopping
    with _lock:
        _stopping = True
        running = set(_running)
    for process in running:
        signal_group(process, signal.SIGTERM)
    end = time.monotonic() + GRACE
    for process in running:
        try:
            process.wait(max(0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            pass
        signal_group(process, signal.SIGKILL)


def stop_on_signals() -> None:
    """From now on, end the children and exit when a signal arrives."""

    numbers = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)

    def handle(number: int, _: object) -> None:
        for each in numbers:  # once
            signal.signal(each, lambda *_: None)
        # In a thread: the interrupted code may hold the lock.
        threading.Thread(target=_stop, args=(number,)).start()

    for number in numbers:
        signal.signal(number, handle)


def main(function: Callable[[], int]) -> None:
    """Exit with the return value of a script's main function."""
    try:
        sys.exit(function())
    except Stopped:
        # _stop() ends this process when the children have ended.
        threading.Event().wait()
