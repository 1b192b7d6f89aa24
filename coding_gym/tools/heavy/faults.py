"""The tool ``locate_fault``: suspicious lines by spectrum-based fault localisation.

Only tests that are in the working tree are run, and in its sandbox.
"""

import re
import shlex
from collections.abc import Mapping
from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.tools.call_arguments import text
from coding_gym.tools.programs import ask, int_of, rows_of, strings_of, text_of
from coding_gym.tools.toolset import Refusal, ToolContext, quoted

_MAX_TEST_CHARS = 2000
_MAX_LINES = 15
_MAX_FAILURES = 5
_SHARE_OF_TIME = 0.5  # after which no further test starts
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_STARTS = (
    ["python", "-m", "pytest"],
    ["python3", "-m", "pytest"],
    ["py.test"],
    ["pytest"],
)


def locate_fault(call: ToolCall, context: ToolContext) -> str:
    """Returns the lines that failing tests run and passing ones do not."""
    arguments, named = pytest_arguments(text(call, "test", "").strip())
    request = {
        "arguments": arguments,
        "named": named,
        "seconds": context.command_timeout_s * _SHARE_OF_TIME,
    }
    reply = ask(context, "locate", request)
    problem = reply.problem or text_of(reply.value.get("error"))
    if problem:
        raise Refusal(f"the tests could not be run line by line: {problem}")
    value = reply.value
    failed, passed = _count(value, "failed"), _count(value, "passed")
    broken = strings_of(value.get("broken"))[:_MAX_FAILURES]
    if not failed:
        raise Refusal(_nothing_failed(value, named, passed, broken))
    rows = rows_of(value.get("lines"))[:_MAX_LINES]
    parts = [_counts(failed, passed, _count(value, "other_failed"))]
    parts += [_failure(row) for row in rows_of(value.get("failures"))[:_MAX_FAILURES]]
    parts += [f"could not be collected: {row}" for row in broken]
    if rows:
        parts.append("Suspicious lines (score: failed and passed tests that ran the line):")
        parts += [_line(row) for row in rows]
    else:
        parts.append("No line of the program was run by them: the fault is in what they import.")
    return "\n".join(parts)


def pytest_arguments(test: str) -> tuple[list[str], list[str]]:
    """Returns pytest's arguments, whole files where tests were named, and the names of these tests.

    Raises:
        Refusal: It is a command other than pytest.

    >>> pytest_arguments("python -m pytest -q tests/test_a.py::test_b")
    (['-q', 'tests/test_a.py'], ['tests/test_a.py::test_b'])
    """
    if len(test) > _MAX_TEST_CHARS or "\0" in test:
        raise Refusal("`test` is no test's id and no command")
    if "::" in test and " " not in _file_of(test):
        return [_file_of(test)], [test]  # what is behind the file may hold spaces and quotes
    try:
        words = shlex.split(test)
    except ValueError as error:
        raise Refusal(f"`test` cannot be read as a command: {error}") from error
    while words and _ASSIGNMENT.match(words[0]):
        del words[0]
    start = next((start for start in _STARTS if words[: len(start)] == start), [])
    words = words[len(start) :]
    if not start and any(not word.endswith(".py") and "/" not in word for word in words):
        raise Refusal(
            f"`test` must be a test's id, a test file or a pytest command, got {quoted(test)}"
        )
    named = [word for word in words if "::" in word and not word.startswith("-")]
    arguments = [_file_of(word) if word in named else word for word in words]
    return list(dict.fromkeys(arguments)) if named else arguments, named


def _file_of(test: str) -> str:
    return test.partition("::")[0]


def _count(value: Mapping[str, Any], key: str) -> int:
    return int_of(value.get(key))


def _counts(failed: int, passed: int, other_failed: int) -> str:
    other = f", {other_failed} other failing left aside" if other_failed else ""
    return f"{failed} failing and {passed} passing tests were compared{other}."


def _nothing_failed(
    value: Mapping[str, Any], named: list[str], passed: int, broken: list[str]
) -> str:
    if broken:
        return "\n".join(["the tests could not be collected:", *broken])
    if named and value.get("met") is False:
        return f"there is no test {', '.join(map(quoted, named))} among those that were run"
    other = _count(value, "other_failed")
    others = f", {other} others fail" if other else ""
    return f"nothing to locate: none of these tests fails ({passed} pass{others})"


def _failure(row: Mapping[str, Any]) -> str:
    place = text_of(row.get("place"))
    at = f" at {place}" if place else ""
    return f"{text_of(row.get('test'))}: {text_of(row.get('error'))}{at}"


def _line(row: Mapping[str, Any]) -> str:
    score = row.get("score")
    number = score if isinstance(score, float) and 0 <= score <= 1 else 0.0
    counts = f"{_count(row, 'failed')} failed, {_count(row, 'passed')} passed"
    place = f"{text_of(row.get('path'))}:{_count(row, 'line')}"
    return f"{number:.2f} ({counts})  {place}: {text_of(row.get('text'))}"
