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
# Processor time is what counts, as it is the same on a busy machine. What sleeps and uses none for
# so long waits for ever; the last limit is for what escapes both.
STILL_S = 4.0
_TICK_S = 0.25
_MAX_WALL_S = 600.0
_MEMORY_BYTES = 3 << 30
_FILE_BYTES = 256 << 20  # of each file
_answers: list[int] = []  # where this process, itself a fork, writes its own


def forked(
    function: Callable[[], Any], cpu_s: float | None = None, still_s: float = STILL_S
) -> Any:
    """Returns the result of a function in a forked child, or None if it died or took too long.

    The child leads a process group, which is killed when it has answered, so that nothing it
    started outlives it.

    Args:
        function: Gives a JSON value that is not None.
        cpu_s: Processor seconds that the child may use; None for no limits of time.
        still_s: Seconds that it may use none.
    """
    sys.stdout.flush()
    reading, writing = os.pipe()
    gc.freeze()
    child = os.fork()
    if child == 0:
        try:
            for descriptor in (reading, *_answers):
                os.close(descriptor)
            _answers[:] = [writing]
            os.setpgid(0, 0)
            _limit(resource.RLIMIT_AS, _MEMORY_BYTES)
            _limit(resource.RLIMIT_FSIZE, _FILE_BYTES)
            if cpu_s is not None:
                _limit(resource.RLIMIT_CPU, ceil(cpu_s))
                signal.setitimer(signal.ITIMER_VIRTUAL, cpu_s)  # a limit of whole seconds is long
            answer = json.dumps(function()).encode() + b"\n"
            while answer:
                answer = answer[os.write(writing, answer) :]
        finally:
            os._exit(0)
    os.close(writing)
    try:
        return _read(reading, child, None if cpu_s is None else still_s)
    finally:
        os.close(reading)
        _kill(child)


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    if hard == resource.RLIM_INFINITY or value <= hard:
        resource.setrlimit(kind, (value, hard))


def _read(pipe: int, child: int, still_s: float | None) -> Any:
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
        if still_s is None:
            continue
        now, using = time.monotonic(), _use(child)
        if using != used or not using:
            used, moved = using, now
        if now - moved > still_s or now - start > _MAX_WALL_S:
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


def _kill(child: int) -> None:
    for kill in (os.killpg, os.kill):
        try:
            kill(child, signal.SIGKILL)
        except ProcessLookupError:
            continue
    os.waitpid(child, 0)
