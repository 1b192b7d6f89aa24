"""Runs visible tests line by line and ranks the lines that failing ones run."""

# ruff: noqa: TID252, PTH109, FURB188 - in the sandbox this package has another name

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from .tracing import ochiai_score
from .tree import printable, read_regular

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_LINES = 15
_MAX_FAILURES = 5


def answer(request: dict[str, Any], reply: Callable[[Any], None]) -> None:
    """Replies with suspicious lines.

    Args:
        request: ``arguments`` of pytest; ``named``, ids of the tests that are meant, none for all
            that fail; ``seconds``, after which no further test starts.
        reply: Takes ``lines``, each with ``path``, ``line``, ``score``, ``failed``, ``passed`` and
            ``text``; ``failures``, each with ``test``, ``error`` and ``place``; numbers
            ``failed``, ``passed`` and ``other_failed``; ``broken``, files that could not be
            collected; or ``error``.
    """
    root = os.getcwd()
    try:
        import pytest  # the tree's folder is not in the path yet

        from .traced_tests import TracedTests
    except ImportError:
        reply({"error": "there is no pytest here"})
        return
    sys.path.insert(0, root)
    tests = TracedTests(root, request["seconds"])
    pytest.main([*request["arguments"], *tests.flags()], plugins=[tests])
    all_failed = [test for test, outcome in tests.outcomes.items() if outcome == "failed"]
    named = [name[2:] if name.startswith("./") else name for name in request["named"]]
    failed = [test for test in all_failed if not named or _is_meant(test, named)]
    passed = [test for test, outcome in tests.outcomes.items() if outcome == "passed"]
    reply(
        {
            "lines": _lines(root, tests.lines, failed, passed) if failed else [],
            "failures": [tests.failures[t] for t in failed[:_MAX_FAILURES] if t in tests.failures],
            "failed": len(failed),
            "passed": len(passed),
            "other_failed": len(all_failed) - len(failed),
            "met": not named or any(_is_meant(test, named) for test in tests.outcomes),
            "broken": tests.broken[:_MAX_FAILURES],
        }
    )


def _is_meant(test: str, named: list[str]) -> bool:
    return any(test == name or test.startswith((name + "[", name + "::")) for name in named)


def _lines(
    root: str,
    ran: dict[str, dict[tuple[str, int], None]],
    failed: list[str],
    passed: list[str],
) -> list[dict[str, Any]]:
    """Ranks lines by Ochiai's score; equal ones by how late the first failing test reached them."""
    counts: dict[tuple[str, int], list[int]] = {}
    for column, tests in enumerate((failed, passed)):
        for test in tests:
            for place in ran.get(test, ()):
                counts.setdefault(place, [0, 0])[column] += 1
    reached = {place: number for number, place in enumerate(ran.get(failed[0], ()))}
    rows = [
        (ochiai_score(len(failed), ef, ep), reached.get(place, -1), place, ef, ep)
        for place, (ef, ep) in counts.items()
        if ef
    ]
    rows.sort(key=lambda row: (-row[0], -row[1], row[2]))
    return [
        {
            "path": printable(os.path.relpath(name, root)),
            "line": line,
            "score": score,
            "failed": ef,
            "passed": ep,
            "text": _text(name, line),
        }
        for score, _, (name, line), ef, ep in rows[:_MAX_LINES]
    ]


def _text(name: str, line: int) -> str:
    lines = (read_regular(name) or b"").decode("utf-8", "replace").split("\n")
    return printable(lines[line - 1].strip()) if line <= len(lines) else ""
