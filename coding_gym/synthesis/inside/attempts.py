"""Runs tests of broken programs, each in a fork that has all but the program imported already."""

# ruff: noqa: TID252 - in the sandbox this package has another name

from __future__ import annotations

import base64
import contextlib
import os
import sys
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .forking import STILL_S, forked
from .recorder import Recorder
from .session import (
    MAX_STILL_S,
    NUM_CHANCES,
    in_one_start,
    preload,
    root_folder,
    run_tests,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .session import SharedStart

    Run = Callable[[int, Recorder], Recorder]

_FIRST_TIME = 1_000_000_000  # seconds; no file of a template is as old, so no byte code fits


def attempt_all(request: dict[str, Any]) -> dict[str, Any]:
    """Tries broken programs one after the other.

    Args:
        request: ``options``: see `run_pytest`; ``preload``: modules to import first; ``shares``:
            whether pytest may start once for attempts with the same paths; ``warm``: test files
            whose byte code, and that of what they import, is to be written first; ``attempts``:
            each with ``files`` (content in base64 by path), ``paths`` (what pytest is told),
            ``tests`` (ids to run, None for all), ``cpu_s`` and ``limit_s`` (of one test, None for
            no limit).

    Returns:
        ``results``: of each attempt ``failed`` (ids), ``failures``, ``error`` and ``is_stable``;
        see `_attempt`. ``cpu_s``: processor seconds of this process and of all attempts.
    """
    root, options = root_folder(), request["options"]
    preload(request["preload"], root)
    if request.get("warm"):
        sys.dont_write_bytecode = False
        warm = partial(run_tests, request["warm"], options, 0, Recorder(root, ()))
        forked(lambda: warm().outcomes, request["attempts"][0]["cpu_s"])
    sys.dont_write_bytecode = True
    results: list[dict[str, Any]] = []
    for paths, group in groupby(request["attempts"], lambda attempt: attempt["paths"]):
        attempts = [*enumerate(group, len(results))]
        done = None
        if request["shares"] and len(attempts) > 1:
            changed = {name for _, attempt in attempts for name in attempt["files"]}
            work = partial(_try_in, attempts, root)
            done = in_one_start(paths, options, work, changed)
        results += done or _try(attempts, partial(run_tests, paths, options), root)
    used = os.times()
    return {"results": results, "cpu_s": sum(used[:4])}


def _try_in(
    attempts: list[tuple[int, dict[str, Any]]], root: str, shared: SharedStart
) -> list[dict[str, Any]]:
    return _try(attempts, shared.run, root)


def _try(attempts: list[tuple[int, dict[str, Any]]], run: Run, root: str) -> list[dict[str, Any]]:
    results = []
    for number, attempt in attempts:
        with _written(attempt["files"], number):
            results.append(_Attempt(attempt, run, root).result())
    return results


class _Attempt:
    """One broken program, and the runs of its tests.

    Args:
        asked: Its entry in the request of `attempt_all`.
        run: Runs tests once, in a fork: takes the seed of chance and a recorder.
        root: The project's folder, with a slash at its end.
    """

    def __init__(self, asked: dict[str, Any], run: Run, root: str) -> None:
        self._asked, self._run_tests, self._root = asked, run, root

    def result(self) -> dict[str, Any]:
        """Runs the tests, and where some fail all of them once more, backwards.

        Where one test has a limit, the tests run once, and those of files that cannot be imported
        are left out.

        A test that does not end alike both times makes the attempt unstable. Chance is another
        each time, but the same for every attempt, so that what comes of it repeats. Tests that
        draw from it must fail in `NUM_CHANCES` runs more.
        """
        tests, has_limit = self._asked["tests"], self._asked["limit_s"] is not None
        first = self._run(tests)
        if first is None:
            return {"error": "died"}
        if first["collect_error"] and not has_limit:
            return {"error": "collect"}
        failed = [test for test, outcome in first["outcomes"].items() if outcome != "passed"]
        has_outcomes = tests is None or has_limit
        reply = {
            "error": "",
            "failed": failed,
            "failures": first["failures"],
            "outcomes": first["outcomes"] if has_outcomes else {},
            "is_stable": True,
        }
        if failed and not has_limit:
            again = self._run(tests, chance=1, is_reversed=True)
            chancy = [test for test in failed if test in first["chancy"]]
            is_same = again is not None and again["outcomes"] == first["outcomes"]
            reply["is_stable"] = is_same and (not chancy or self._fail_anyway(chancy))
        return reply

    def _fail_anyway(self, tests: list[str]) -> bool:
        """Whether tests fail whatever chance there is."""
        for chance in range(2, 2 + NUM_CHANCES):
            run = self._run(tests, chance=chance)
            if run is None or any(run["outcomes"].get(test) != "failed" for test in tests):
                return False
        return True

    def _run(self, tests: list[str] | None, chance: int = 0, *, is_reversed: bool = False) -> Any:
        limit_s, cpu_s = self._asked["limit_s"], self._asked["cpu_s"]
        recorder = Recorder(self._root, tests, is_reversed=is_reversed, limit_s=limit_s)
        run = partial(self._run_tests, chance, recorder)
        still_s = STILL_S if limit_s is None else MAX_STILL_S
        return forked(lambda: run().result(), cpu_s, still_s)


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
