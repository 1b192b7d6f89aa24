"""Runs tests of broken programs, each in a fork that has all but the program imported already."""

# ruff: noqa: TID252 - in the sandbox this package has another name

from __future__ import annotations

import base64
import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .forking import forked
from .session import MAX_STILL_S, NUM_CHANCES, preload, root_folder, run_tests

if TYPE_CHECKING:
    from collections.abc import Iterator

_FIRST_TIME = 1_000_000_000  # seconds; no file of a template is as old, so no byte code fits


def attempt_all(request: dict[str, Any]) -> dict[str, Any]:
    """Tries broken programs one after the other.

    Args:
        request: ``options``: see `Recorder`; ``preload``: modules to import first; ``warm``: test
            files whose byte code, and that of what they import, is to be written first;
            ``attempts``: each with ``files``
            (content in base64 by path), ``paths`` (test files to collect), ``tests`` (ids to run,
            None for all), ``cpu_s`` and ``limit_s`` (of one test, None for no limit).

    Returns:
        ``results``: of each attempt ``failed`` (ids), ``failures``, ``error`` and ``is_stable``;
        see `_attempt`. ``cpu_s``: processor seconds of this process and of all attempts.
    """
    root, options = root_folder(), request["options"]
    preload(request["preload"], root)
    if request.get("warm"):
        sys.dont_write_bytecode = False
        _run(request["warm"], [], request["attempts"][0]["cpu_s"], root, options)
    sys.dont_write_bytecode = True
    results = []
    for number, attempt in enumerate(request["attempts"]):
        with _written(attempt["files"], number):
            results.append(_attempt(attempt, root, options))
    used = os.times()
    return {"results": results, "cpu_s": sum(used[:4])}


def _attempt(attempt: dict[str, Any], root: str, options: dict[str, object]) -> dict[str, Any]:
    """Runs the tests of one broken program, and where some fail all of them once more, backwards.

    Where one test has a limit, the tests run once, and those of files that cannot be imported are
    left out.

    A test that does not end alike both times makes the attempt unstable. Chance is another each
    time, but the same for every attempt, so that what comes of it repeats. Tests that draw from it
    must fail in `NUM_CHANCES` runs more.
    """
    limit_s = attempt["limit_s"]
    first = _run(
        attempt["paths"], attempt["tests"], attempt["cpu_s"], root, options, limit_s=limit_s
    )
    if first is None:
        return {"error": "died"}
    if first["collect_error"] and limit_s is None:
        return {"error": "collect"}
    failed = [test for test, outcome in first["outcomes"].items() if outcome != "passed"]
    is_told = attempt["tests"] is None or limit_s is not None
    reply = {
        "error": "",
        "failed": failed,
        "failures": first["failures"],
        "outcomes": first["outcomes"] if is_told else {},
        "functions": first["functions"] if is_told else {},
        "is_stable": True,
    }
    if failed and limit_s is None:
        tests = attempt["tests"]
        again = _run(
            attempt["paths"], tests, attempt["cpu_s"], root, options, chance=1, is_reversed=True
        )
        reply["is_stable"] = again is not None and again["outcomes"] == first["outcomes"]
        chancy = [test for test in failed if test in first["chancy"]]
        if chancy and reply["is_stable"]:
            reply["is_stable"] = _fail_anyway(chancy, attempt, root, options)
    return reply


def _fail_anyway(
    tests: list[str], attempt: dict[str, Any], root: str, options: dict[str, object]
) -> bool:
    """Whether tests fail whatever chance there is."""
    for chance in range(2, 2 + NUM_CHANCES):
        run = _run(attempt["paths"], tests, attempt["cpu_s"], root, options, chance=chance)
        if run is None or any(run["outcomes"].get(test) != "failed" for test in tests):
            return False
    return True


def _run(
    paths: list[str],
    tests: list[str] | None,
    cpu_s: float,
    root: str,
    options: dict[str, object],
    *,
    chance: int = 0,
    is_reversed: bool = False,
    limit_s: float | None = None,
) -> Any:
    def run() -> dict[str, Any]:
        recorder = run_tests(
            paths,
            root,
            options,
            chance,
            selected=tests,
            is_reversed=is_reversed,
            limit_s=limit_s,
        )
        return recorder.result()

    return forked(run, cpu_s) if limit_s is None else forked(run, cpu_s, MAX_STILL_S)


@contextlib.contextmanager
def _written(files: dict[str, str], number: int) -> Iterator[None]:
    """Puts content in place of files; they and their times come back at the end.

    The times are like no others, so that byte code of the program as it was is not used.
    """
    kept: dict[Path, tuple[bytes, tuple[int, int]]] = {}
    try:
        for name, content in files.items():
            path = Path(name)
            status = path.stat()
            kept[path] = (path.read_bytes(), (status.st_atime_ns, status.st_mtime_ns))
            path.write_bytes(base64.b64decode(content))
            os.utime(path, (_FIRST_TIME + number, _FIRST_TIME + number))
        yield
    finally:
        for path, (data, times) in kept.items():
            path.write_bytes(data)
            os.utime(path, ns=times)
