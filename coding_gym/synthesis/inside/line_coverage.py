"""Learns the tests of a project that is not broken: which can be trusted, and what each runs."""

# ruff: noqa: TID252 - in the sandbox this package has another name

from __future__ import annotations

import hashlib
import os
import resource
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .forking import forked
from .line_tracer import LineTracer
from .recorder import Recorder
from .session import (
    MAX_STILL_S,
    NUM_CHANCES,
    foreign_modules,
    in_one_start,
    root_folder,
    run_tests,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .session import SharedStart

# Of the processor: the longest run of tests that may share a start, and what it may take then.
_MAX_SHARED_S, _SHARED_S = 5.0, 15.0


def measure_coverage(request: dict[str, Any]) -> dict[str, Any]:
    """Runs all tests three times: as they come, traced, and backwards.

    Each run has its own random seed, the same in every call; tests that draw from it run more.

    Args:
        request: ``options``: see `run_pytest`; ``arguments``: what pytest is told; ``cpu_s``:
            processor seconds for each run.

    Returns:
        ``tests``: of each test its id, the file and line of its function, and whether it always
        passed; ``lines``: by file of the project and line, the tests that ran it, as a bit set in
        hexadecimal; ``imported``: by file, the lines that ran while tests were collected;
        ``spawning``: numbers of tests that start processes; ``cpu_s``: processor seconds of a
        plain run; ``preload``: modules; ``shares``: whether pytest may start once for many runs;
        ``copies``: files outside the tree that equal one inside; ``error``: why there is nothing
        to work with, or "".
    """
    arguments, cpu_s = request["arguments"], float(request["cpu_s"])
    root, options = root_folder(), request["options"]
    run = partial(_run, arguments, root, options)
    plain = forked(partial(run, 0), cpu_s)
    traced = forked(partial(run, 1, trace=True), 20 * cpu_s)
    backwards = forked(partial(run, 2, is_reversed=True), cpu_s)
    if plain is None or traced is None or backwards is None:
        return {"error": "the tests took too long, or ended the process that runs them"}
    outcomes = [run["outcomes"] for run in (plain, traced, backwards)]
    trusted = {test for test in outcomes[0] if all(one.get(test) == "passed" for one in outcomes)}
    chancy = sorted(trusted.intersection(traced["chancy"]))
    for chance in range(3, 3 + NUM_CHANCES) if chancy else ():
        ended = (forked(partial(run, chance, chancy), cpu_s) or {"outcomes": {}})["outcomes"]
        trusted.difference_update(test for test in chancy if ended.get(test) != "passed")
    failed = [test for test, outcome in plain["outcomes"].items() if outcome == "failed"]
    return {
        "error": plain["collect_error"] if not trusted else "",
        "tests": [[t, *plain["functions"].get(t, ["", 0]), t in trusted] for t in outcomes[0]],
        "failure": plain["failures"].get(failed[0]) if failed else None,
        "lines": _bit_sets(traced["lines"], list(outcomes[0])),
        "imported": traced["imported"],
        "spawning": [n for n, test in enumerate(outcomes[0]) if test in traced["spawning"]],
        "cpu_s": plain["cpu_s"],
        "preload": traced["preload"],
        "shares": _shares(root, options, plain["outcomes"], plain["cpu_s"]),
        "copies": find_copies(root, {root + name for name in traced["imported"]}),
    }


def trace(request: dict[str, Any]) -> dict[str, Any]:
    """Runs all tests of a program that may be broken; once more, traced, where some fail.

    Args:
        request: ``options``, ``arguments``, ``cpu_s``: as for `measure_coverage`; ``limit_s``: what
            one test may take.

    Returns:
        ``outcomes`` and ``failures`` of the tests; ``lines``, ``imported``, ``preload``,
        ``shares``: as for `measure_coverage`, nothing where no test fails; ``error``: why there is
        nothing, or "".
    """
    arguments, options = request["arguments"], request["options"]
    cpu_s, limit_s, root = float(request["cpu_s"]), request["limit_s"], root_folder()
    run = partial(_run, arguments, root, options, 0, limit_s=limit_s)
    ended = forked(run, cpu_s, still_s=MAX_STILL_S)
    plain_s = 0.0 if ended is None else ended["cpu_s"]
    if ended is not None and "failed" in ended["outcomes"].values():
        ended = forked(partial(run, trace=True), cpu_s, still_s=MAX_STILL_S)
    if ended is None:
        return {"error": "the tests took too long, or ended the process that runs them"}
    long = {t for t, seen in ended["failures"].items() if seen["kind"] == "TestTookTooLong"}
    quick = {test: outcome for test, outcome in ended["outcomes"].items() if test not in long}
    shares = bool(ended["lines"]) and _shares(root, options, quick, plain_s, limit_s)
    return {
        "error": "" if ended["outcomes"] else ended["collect_error"],
        "outcomes": ended["outcomes"],
        "failures": ended["failures"],
        "lines": _bit_sets(ended["lines"], list(ended["outcomes"])),
        "imported": ended["imported"],
        "preload": ended["preload"],
        "shares": shares,
    }


def _run(
    arguments: list[str],
    root: str,
    options: dict[str, object],
    chance: int,
    tests: list[str] | None = None,
    *,
    is_reversed: bool = False,
    limit_s: float | None = None,
    trace: bool = False,
) -> dict[str, Any]:
    tracer = LineTracer(lambda name: name.startswith(root)) if trace else None
    recorder = Recorder(root, tests, tracer, is_reversed=is_reversed, limit_s=limit_s)
    before = resource.getrusage(resource.RUSAGE_SELF)
    run_tests(arguments, options, chance, recorder)
    after = resource.getrusage(resource.RUSAGE_SELF)
    return {
        **recorder.result(),
        "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "lines": {test: _by_file(lines, root) for test, lines in recorder.lines.items()},
        "imported": _by_file(recorder.imported, root),
        "spawning": sorted(recorder.spawning),
        "preload": foreign_modules(root) if trace else [],
    }


def _shares(
    root: str,
    options: dict[str, object],
    outcomes: dict[str, str],
    plain_s: float,
    limit_s: float | None = None,
) -> bool:
    """Whether pytest may start once for many runs: two of them end as a run by itself does.

    They may not where something is made as it starts, such as a folder. Tests that take long
    would gain nothing: a start takes a tenth of a second.

    Args:
        root: The project's folder, with a slash at its end.
        options: As for `run_pytest`.
        outcomes: How the tests ended in a run by itself.
        plain_s: Processor seconds that it took.
        limit_s: What one test may take.
    """
    if plain_s > _MAX_SHARED_S:
        return False

    def run(shared: SharedStart) -> bool:
        for _ in range(2):
            recorder = Recorder(root, list(outcomes), limit_s=limit_s)
            ended = forked(lambda: shared.run(0, recorder).result(), _SHARED_S, MAX_STILL_S)  # noqa: B023
            if ended is None or ended["outcomes"] != outcomes:
                return False
        return True

    paths = list(dict.fromkeys(test.partition("::")[0] for test in outcomes))
    return bool(in_one_start(paths, options, run))


def _bit_sets(
    lines: dict[str, dict[str, list[int]]], tests: list[str]
) -> dict[str, dict[int, str]]:
    """Returns the tests that run each line of each file, as bit sets in hexadecimal."""
    bits: dict[str, dict[int, int]] = {}
    for number, test in enumerate(tests):
        for name, numbers in lines.get(test, {}).items():
            by_line = bits.setdefault(name, {})
            for line in numbers:
                by_line[line] = by_line.get(line, 0) | 1 << number
    return {
        name: {line: f"{known:x}" for line, known in sorted(by_line.items())}
        for name, by_line in bits.items()
    }


def _by_file(lines: Iterable[tuple[str, int]], root: str) -> dict[str, list[int]]:
    by_file: dict[str, list[int]] = {}
    for name, line in sorted(lines):
        by_file.setdefault(name[len(root) :], []).append(line)
    return by_file


def find_copies(root: str, names: set[str]) -> list[str]:
    """Files of the environment that are the same as one of the project: a repair could be read."""
    digests = {_digest(Path(name)): name for name in names if Path(name).is_file()}
    sizes = {Path(name).stat().st_size for name in digests.values()} - {0}
    found = []
    # `build` is where an install that is not editable leaves what it made.
    folders = {sys.prefix, f"{root}build", *(p for p in sys.path if "-packages" in p)}
    for folder in folders:
        for parent, _, files in os.walk(folder):
            for file in files:
                path = Path(parent, file)
                if str(path) in digests.values() or not file.endswith(".py") or path.is_symlink():
                    continue
                if path.stat().st_size in sizes and _digest(path) in digests:
                    found.append(str(path))
    return sorted(found)[:8]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
