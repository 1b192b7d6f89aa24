"""Runs the visible tests once, line by line, and finds what a repair has to change."""

# ruff: noqa: TID252 - in the sandbox this package has another name

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from coding_gym.tools.inside.tracing import LineTracer

from .clock import Stopwatch, forked
from .place import TREE, copy_tree, enter_tree, is_program, relative, remember
from .subprocesses import follow
from .suite import Recorder, plugin_flags, run_pytest

_MAX_LINES = 2000
_MAX_FAILING = 12
_MAX_KNOWN_FAILING = 200
_MAX_SUITE_S = 60.0
_MAX_CONTROL_S = 20.0


def survey(workspace: Path, arguments: list[str], *, seconds: float, test_s: float) -> Any:
    """Runs the tests of a copy of the workspace and returns what failed and which lines it ran.

    Args:
        workspace: The folder to copy.
        arguments: Pytest's arguments.
        seconds: After so much of the processor no further test starts.
        test_s: How much one test may take.

    Returns:
        ``failing``: ids of the tests to repair; ``all_failing``: theirs and those of others that
        fail, up to a bound; ``in_order``: whether some fail only after others; ``flags``: what
        pytest needs here; ``num_tests``; ``num_passed``; ``num_failed``; ``files``: by path its
        ``size`` and ``groups`` of lines that failing tests executed, each with the numbers of
        failed and passed tests that did; ``others``: sizes of the other files that were imported.
        None if the run died.
    """
    watch = Stopwatch()
    arguments = [a.replace(str(workspace), str(TREE)) for a in arguments]
    copy_tree(workspace)
    enter_tree(workspace)
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    traced = forked(lambda: _traced(arguments, seconds, test_s), seconds + test_s + 5)
    if traced is None:
        return None
    state = {
        "workspace": str(workspace),
        "spent": [0.0, 0.0],
        "arguments": arguments,
        "test_s": max(0.3, min(test_s, 5 * traced["slowest"][0])),
        "waits_s": 2 * traced["slowest"][1],
        "suite_s": min(_MAX_SUITE_S, 5 + 2 * watch.seconds()),
        "passing": [t for t, outcome in traced["outcomes"].items() if outcome == "passed"],
        "imported": traced["imported"],
        "preload": traced["preload"],
    }
    failing = [t for t, outcome in traced["outcomes"].items() if outcome == "failed"]
    state.update(_control(arguments, _varied(failing, traced["signatures"]), state, seconds))
    num_first = len(traced["outcomes"] if state["in_order"] else state["failing"])
    state["candidate_s"] = min(10.0, 0.5 + num_first * state["test_s"])
    remember(state)
    others = [test for test in failing if test not in state["failing"]]
    return {
        "failing": state["failing"],
        "all_failing": [*state["failing"], *others][:_MAX_KNOWN_FAILING],
        "in_order": state["in_order"],
        "flags": plugin_flags(),
        "num_tests": len(traced["outcomes"]),
        "num_passed": len(state["passing"]),
        "num_failed": len(failing),
        **_files(traced, state["failing"]),
    }


def _traced(arguments: list[str], seconds: float, test_s: float) -> Any:
    follow()
    tracer = LineTracer(is_program)
    recorder = Recorder(tracer, test_s, seconds)
    run_pytest(arguments, [recorder])
    tracer.stop()
    hits: dict[str, dict[int, list[list[int]]]] = {}
    imported: dict[str, list[int]] = {}
    for number, (test, outcome) in enumerate(recorder.outcomes.items()):
        for name, line in recorder.lines.get(test, ()):
            if outcome in ("failed", "passed"):
                hits.setdefault(name, {}).setdefault(line, [[], []])[outcome == "passed"].append(
                    number
                )
    for name, line in recorder.imported:
        imported.setdefault(name, []).append(line)
    return {
        "outcomes": recorder.outcomes,
        "signatures": recorder.signatures,
        "hits": [[name, line, *tests] for name, by in hits.items() for line, tests in by.items()],
        "imported": imported,
        "slowest": recorder.slowest,
        "preload": _foreign_modules(),
    }


def _foreign_modules() -> list[str]:
    """Returns the imported modules that are no part of the tree, in the order of their import."""
    return [
        name
        for name, module in list(sys.modules.items())
        if not str(getattr(module, "__file__", None) or TREE).startswith(str(TREE))
    ]


def _varied(failing: list[str], signatures: dict[str, str]) -> list[str]:
    """Returns failing tests to work with; where there are many, those that fail differently."""
    first: dict[str, str] = {}
    for test in failing:
        first.setdefault(signatures.get(test, ""), test)
    chosen = list(dict.fromkeys([*first.values(), *failing]))[:_MAX_FAILING]
    return [test for test in failing if test in chosen]


def _control(
    arguments: list[str], failing: list[str], state: dict[str, Any], seconds: float
) -> Any:
    """Runs the failing tests untraced: alone, and in their suite where alone some of them pass."""
    sys.dont_write_bytecode = True
    watch = Stopwatch()
    answer = forked(lambda: _untraced(failing, state), _MAX_CONTROL_S) if failing else None
    took_s = watch.seconds()
    hung = [test for test in failing if answer and "TestTookTooLong" in answer[1].get(test, "")]
    if hung != failing:  # tests that hang make a search slow, and those that fail fast will do
        failing = [test for test in failing if test not in hung]
    alone = _failed(answer, failing)
    in_order, still = False, alone
    if alone != failing:
        whole = forked(lambda: _untraced(arguments, state), seconds)
        still = _failed(whole, failing)
        in_order = still != alone
        answer = whole if in_order else answer
    signatures = answer[1] if answer else {}
    return {
        "failing": still,
        "signatures": {test: signatures.get(test, "") for test in still},
        "in_order": in_order,
        "fresh_s": max(2.0, min(10.0, 3 * took_s)),
    }


def _failed(answer: Any, tests: list[str]) -> list[str]:
    outcomes = answer[0] if answer else {}
    return [test for test in tests if outcomes.get(test) == "failed"]


def _untraced(arguments: list[str], state: dict[str, Any]) -> Any:
    recorder = Recorder(limit_s=state["test_s"], waits_s=state["waits_s"])
    run_pytest(arguments, [recorder])
    return [recorder.outcomes, recorder.signatures]


def _files(traced: dict[str, Any], failing: list[str]) -> dict[str, Any]:
    numbers = {n for n, test in enumerate(traced["outcomes"]) if test in failing}
    rows = []
    for name, line, failed, passed in traced["hits"]:
        num_failed = len(numbers.intersection(failed))
        if num_failed:
            rows.append((num_failed, -len(passed), name, line))
    rows.sort(key=lambda row: (-row[0], -row[1], row[2:]))
    files: dict[str, Any] = {}
    for num_failed, num_passed, name, line in rows[:_MAX_LINES]:
        path = relative(name)
        entry = files.setdefault(path, {"size": Path(name).stat().st_size, "groups": {}})
        entry["groups"].setdefault(f"{num_failed},{-num_passed}", []).append(line)
    others = {
        relative(name): Path(name).stat().st_size
        for name in sorted(traced["imported"])
        if relative(name) not in files
    }
    return {"files": files, "others": others}
