"""Runs a function in a child process of its own, with limits, and brings its result back."""

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
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_CHUNK_BYTES = 1 << 16
# Processor time is what counts, as it is the same on a busy machine. A child that sleeps and uses
# none for so long waits for ever; the last limit is for one that escapes both.
IDLE_S = 4.0
_TICK_S = 0.25
_MAX_WALL_S = 600.0
_MEMORY_BYTES = 3 << 30
_FILE_BYTES = 256 << 20  # of each file
_results: list[int] = []  # where this process, itself a fork, writes its own


def forked(
    function: Callable[[], Any], cpu_s: float | None = None, idle_s: float = IDLE_S
) -> tuple[Any, float]:
    """Runs a function in a forked child.

    The child leads a process group, which is killed when it has replied, so that nothing it
    started outlives it.

    Args:
        function: Returns a JSON value that is not None.
        cpu_s: Processor seconds that the child may use; None for no limits of time.
        idle_s: Seconds during which it may use none.

    Returns:
        The function's result, None if the child died or took too long; and the processor seconds
        that the child used.
    """
    sys.stdout.flush()
    reading, writing = os.pipe()
    gc.freeze()
    child = os.fork()
    if child == 0:
        try:
            for descriptor in (reading, *_results):
                os.close(descriptor)
            _results[:] = [writing]
            os.setpgid(0, 0)
            _limit(resource.RLIMIT_AS, _MEMORY_BYTES)
            _limit(resource.RLIMIT_FSIZE, _FILE_BYTES)
            if cpu_s is not None:
                _limit(resource.RLIMIT_CPU, ceil(cpu_s))
                signal.setitimer(signal.ITIMER_VIRTUAL, cpu_s)  # a limit of whole seconds is long
            result = json.dumps(function()).encode() + b"\n"
            while result:
                result = result[os.write(writing, result) :]
        finally:
            os._exit(0)
    os.close(writing)
    try:
        result = _read(reading, child, None if cpu_s is None else idle_s)
    finally:
        os.close(reading)
        used_s = _kill(child)
    return result, used_s


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    if hard == resource.RLIM_INFINITY or value <= hard:
        resource.setrlimit(kind, (value, hard))


def _read(pipe: int, child: int, idle_s: float | None) -> Any:
    parts = []
    start = moved = time.monotonic()
    used = ""
    while True:
        ready, _, _ = select.select([pipe], [], [], _TICK_S)
        chunk = os.read(pipe, _CHUNK_BYTES) if ready else b""
        if ready and not chunk:
            return None
        parts.append(chunk)
        if chunk.endswith(b"\n"):  # JSON itself holds no line feed
            return json.loads(b"".join(parts))
        if idle_s is None:
            continue
        now, using = time.monotonic(), _use(child)
        if using != used or not using:
            used, moved = using, now
        if now - moved > idle_s or now - start > _MAX_WALL_S:
            return None


def _use(group: int) -> str:
    """What a group of sleeping processes has used of the processor; "" while one is not asleep."""
    used = []
    for stat in sorted(Path("/proc").glob("[0-9]*/stat")):
        try:
            text = stat.read_text(encoding="ascii", errors="replace")
        except OSError:
            continue  # it has ended
        state, _, pgrp, *fields = text.rpartition(")")[2].split()
        if int(pgrp) == group:
            if state in "RD":
                return ""
            used.append(" ".join(fields[8:12]))  # with what its ended children used
    return ",".join(used)


def _kill(child: int) -> float:
    """Ends a child and its group; returns the processor seconds that it used."""
    for kill in (os.killpg, os.kill):
        try:
            kill(child, signal.SIGKILL)
        except ProcessLookupError:
            continue
    used = os.wait4(child, 0)[2]
    return used.ru_utime + used.ru_stime
