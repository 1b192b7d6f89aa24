"""Displays suspicious code by shell commands: a list of lines, then the code around them."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from coding_gym.mutation.sites import sites
from coding_gym.mutation.source import Source
from coding_gym.repair.localisation import Localisation
from coding_gym.syntax import Function, first_line

_MAX_LISTED = 12
_MAX_SPANS = 6
_MAX_LINES = 40
_LINES_AROUND = 8


@dataclass(frozen=True, slots=True)
class LineSpan:
    """Consecutive lines of one file, from 1."""

    path: str
    first: int
    last: int

    def holds(self, path: str, line: int) -> bool:
        """Whether a line is among them."""
        return path == self.path and self.first <= line <= self.last


def listing_command(found: Localisation | None) -> str:
    """Returns the command that prints the failing tests and the most suspicious lines."""
    if found is None:
        return "echo 'the visible tests could not be run'"
    if not found.baseline.failing:
        return "echo 'no visible test fails'"
    lines = [
        "failing tests:",
        *(f"  {test}" for test in found.baseline.failing),
        "suspicious lines:",
    ]
    text = "\n".join(lines).encode(errors="backslashreplace").decode()  # a name may be no UTF-8
    commands = [f"echo {shlex.quote(text)}"]
    by_path: dict[str, list[int]] = {}
    for suspicious in found.suspicious()[:_MAX_LISTED]:
        by_path.setdefault(suspicious.path, []).append(suspicious.line)
    for path, numbers in by_path.items():
        wanted = ";".join(f"{number}p" for number in sorted(numbers))
        commands.append(f"grep -nH '' -- {shlex.quote(path)} | sed -n '{wanted}'")
    return " && ".join(commands)


def suspicious_spans(found: Localisation | None) -> list[LineSpan]:
    """Returns the code to look at, the most suspicious first: functions, or lines around one."""
    spans: list[LineSpan] = []
    if found is None:
        return spans
    functions = {path: _functions(source) for path, source in found.sources.items()}
    for suspicious in found.suspicious():
        path, line = suspicious.path, suspicious.line
        if any(span.holds(path, line) for span in spans):
            continue
        first, last = max(1, line - _LINES_AROUND), line + _LINES_AROUND
        for function in functions[path]:
            if line in function and len(function) <= _MAX_LINES:
                first, last = function[0], function[-1]
                break
        spans.append(LineSpan(path, first, last))
        if len(spans) == _MAX_SPANS:
            break
    return spans


def _functions(source: Source) -> list[range]:
    """Returns the lines of each function, decorators included, outer ones first."""
    return [
        range(first_line(site.node), (site.node.end_lineno or 0) + 1)
        for site in sites(source)
        if isinstance(site.node, Function)
    ]


def viewing_commands(spans: Sequence[LineSpan]) -> list[str]:
    """Returns the commands that display spans, each with its path and line numbers."""
    return [
        f"echo {shlex.quote(span.path)} && cat -n -- {shlex.quote(span.path)}"
        f" | sed -n '{span.first},{span.last}p'"
        for span in spans
    ]
