"""Reads the Test Anything Protocol, versions 12 to 14.

Ids are the descriptions, after the names of the enclosing subtests: ``OUTER > INNER``.
A run is incomplete without a plan, with another number of tests than planned, or after a bail-out.
"""

import re
from collections.abc import Iterator

from coding_gym.grade import TestStatus
from coding_gym.grading.report import TestRun

_POINT = re.compile(r"( *)(not )?ok\b *(\d+)? *(?:- )?(.*)")
_PLAN = re.compile(r"1\.\.(\d{1,9})\s*(?:#.*)?")
_SUBTEST = re.compile(r"( *)# Subtest: (.*)")
_DIRECTIVE = re.compile(r"(?<!\S)#\s*(skip|todo)\b.*", re.IGNORECASE)
_YAML = re.compile(r"( +)---\s*")
_ESCAPED = re.compile(r"\\([\\#])")


def read_tap(output: str) -> TestRun:
    """Returns the run in a TAP stream; ignores YAML diagnostics and other lines."""
    run = TestRun(ended=True)
    plans: list[int] = []
    num_tests = 0
    titles: dict[int, str] = {}  # titles of the open subtests, by indentation
    for line in _lines_outside_yaml(output):
        if line.startswith("Bail out!"):
            run.ended = False
        elif match := _PLAN.fullmatch(line):
            plans.append(int(match[1]))
        elif match := _SUBTEST.fullmatch(line):
            titles = _enclosing(titles, len(match[1]) - 1)
            titles[len(match[1])] = _plain(match[2])
        elif match := _POINT.fullmatch(line):
            depth = len(match[1])
            if depth == 0:
                num_tests += 1
            titles = _enclosing(titles, depth)
            _add(match, titles, run)
    run.ended = run.ended and plans == [num_tests]
    return run


def _lines_outside_yaml(output: str) -> Iterator[str]:
    """Yields the lines that are not in a block from an indented ``---`` to ``...``.

    A line with less indentation also ends a block.
    """
    indent = ""
    for line in output.splitlines():
        if indent and (line.startswith(indent) or not line.strip()):
            if line.rstrip() == f"{indent}...":
                indent = ""
        elif match := _YAML.fullmatch(line):
            indent = match[1]
        else:
            indent = ""
            yield line


def _enclosing(titles: dict[int, str], depth: int) -> dict[int, str]:
    return {indent: title for indent, title in titles.items() if indent <= depth}


def _add(match: re.Match[str], titles: dict[int, str], run: TestRun) -> None:
    directive = _DIRECTIVE.search(match[4])
    name = _plain(match[4][: directive.start()] if directive else match[4]) or match[3] or ""
    # Node prints a ``# Subtest`` line before each test, Perl only before tests with subtests.
    if titles.get(len(match[1])) == name:
        del titles[len(match[1])]
    status = TestStatus.FAILED if match[2] else TestStatus.PASSED
    run.add(" > ".join([*titles.values(), name]), TestStatus.SKIPPED if directive else status)


def _plain(text: str) -> str:
    return _ESCAPED.sub(r"\1", text.strip())
