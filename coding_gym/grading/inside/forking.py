"""Runs a function in a child process with limits, and returns its result."""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
import sys
import time
from math import ceil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_CHUNK_BYTES = 1 << 16
# The main limit is processor time, which does not depend on load. The wall-time limit is for a
# child that waits for ever; it grows with the load of the machine.
_WALL_PER_CPU, _MIN_WALL_S = 2.0, 4.0
_MEMORY_BYTES = 3 << 30
_FILE_BYTES = 256 << 20  # limit of one file


def forked(function: Callable[[], Any], cpu_s: float) -> tuple[Any, float]:
    """Runs a function in a forked child.

    The child leads a process group, which is killed after its reply, with all processes that it
    started.

    Args:
        function: Returns a JSON value that is not None.
        cpu_s: Processor seconds that the child may use.

    Returns:
        The result of the function, None if the child died or took too long; and the processor
        seconds that the child used.
    """
    sys.stdout.flush()
    reading, writing = os.pipe()
    gc.freeze()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            os.setpgid(0, 0)
            _limit(resource.RLIMIT_AS, _MEMORY_BYTES)
            _limit(resource.RLIMIT_FSIZE, _FILE_BYTES)
            _limit(resource.RLIMIT_CPU, ceil(cpu_s))
            signal.setitimer(signal.ITIMER_VIRTUAL, cpu_s)  # RLIMIT_CPU has whole seconds only
            result = json.dumps(function()).encode() + b"\n"
            while result:
                result = result[os.write(writing, result) :]
        finally:
            os._exit(0)
    os.close(writing)
    try:
        load = max(os.getloadavg()[0] / (os.cpu_count() or 1), 1.0)
        wall_s = (_MIN_WALL_S + _WALL_PER_CPU * cpu_s) * load
        result = _read(reading, time.monotonic() + wall_s)
    finally:
        os.close(reading)
        used_s = _kill(child)
    return result, used_s


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    if hard == resource.RLIM_INFINITY or value <= hard:
        resource.setrlimit(kind, (value, hard))


def _read(pipe: int, deadline: float) -> Any:
    parts = []
    while select.select([pipe], [], [], max(deadline - time.monotonic(), 0))[0]:
        chunk = os.read(pipe, _CHUNK_BYTES)
        if not chunk:
            return None
        parts.append(chunk)
        if chunk.endswith(b"\n"):  # JSON itself holds no line feed
            return json.loads(b"".join(parts))
    return None


def _kill(child: int) -> float:
    """Ends a child and its group; returns the processor seconds that it used."""
    for kill in (os.killpg, os.kill):
        try:
            kill(child, signal.SIGKILL)
        except ProcessLookupError:
            continue
    used = os.wait4(child, 0)[2]
    return used.ru_utime + used.ru_stime
