"""Runs a function in a child process of its own, with limits, and brings its result back."""

# ruff: noqa: TID252 - in the sandbox this package has another name

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
import time
from math import ceil
from typing import TYPE_CHECKING, Any

from .clock import until_answer_s, wall_s

if TYPE_CHECKING:
    from collections.abc import Callable

_MEMORY_BYTES = 2 << 30
_FILE_BYTES = 64 << 20
_CHUNK_BYTES = 1 << 16


def forked(function: Callable[[], Any], seconds: float, waits_s: float = 0.0) -> Any:
    """Returns what ``function`` gives in a forked child, or None if it died or took too long.

    The child leads a process group, which is killed when it has answered, so that nothing it
    started outlives it. Its memory and the size of its files are limited.

    Args:
        function: Gives a JSON value that is not None.
        seconds: So much of the processor the child may take, up to a second more; by the clock a
            few times that, after which the group is killed.
        waits_s: Seconds of the clock besides.
    """
    sys.stdout.flush()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            os.setpgid(0, 0)
            _limit(resource.RLIMIT_AS, _MEMORY_BYTES)
            _limit(resource.RLIMIT_FSIZE, _FILE_BYTES)
            _limit(resource.RLIMIT_CPU, ceil(seconds))
            answer = json.dumps(function()).encode() + b"\n"
            while answer:
                answer = answer[os.write(writing, answer) :]
        finally:
            os._exit(0)
    os.close(writing)
    try:
        return _read(reading, until_answer_s(wall_s(seconds) + waits_s))
    finally:
        os.close(reading)
        _kill(child)


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    if hard == resource.RLIM_INFINITY or value <= hard:
        resource.setrlimit(kind, (value, hard))


def _read(pipe: int, timeout_s: float) -> Any:
    end = time.monotonic() + timeout_s
    parts = []
    while True:
        ready, _, _ = select.select([pipe], [], [], max(0.0, end - time.monotonic()))
        chunk = os.read(pipe, _CHUNK_BYTES) if ready else b""
        if not chunk:
            return None
        parts.append(chunk)
        if chunk.endswith(b"\n"):  # JSON itself holds no line feed
            return json.loads(b"".join(parts))


def _kill(child: int) -> None:
    for kill in (os.killpg, os.kill):
        try:
            kill(child, signal.SIGKILL)
        except ProcessLookupError:
            continue
    os.waitpid(child, 0)
