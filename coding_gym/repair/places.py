"""Shows suspicious places by shell commands: a list of lines, then the code around them."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from coding_gym.mutation.sites import sites
from coding_gym.mutation.source import Source
from coding_gym.repair.localisation import Localisation
from coding_gym.syntax import Function, first_line

_MAX_LISTED = 12
_MAX_PLACES = 6
_MAX_LINES = 40
_LINES_AROUND = 8


@dataclass(frozen=True, slots=True)
class Place:
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


def places(found: Localisation | None) -> list[Place]:
    """Returns where to look, the most suspicious place first: functions, or lines around one."""
    chosen: list[Place] = []
    if found is None:
        return chosen
    functions = {path: _functions(source) for path, source in found.sources.items()}
    for suspicious in found.suspicious():
        path, line = suspicious.path, suspicious.line
        if any(place.holds(path, line) for place in chosen):
            continue
        first, last = max(1, line - _LINES_AROUND), line + _LINES_AROUND
        for function in functions[path]:
            if line in function and len(function) <= _MAX_LINES:
                first, last = function[0], function[-1]
                break
        chosen.append(Place(path, first, last))
        if len(chosen) == _MAX_PLACES:
            break
    return chosen


def _functions(source: Source) -> list[range]:
    """Returns the lines of each function, decorators included, outer ones first."""
    return [
        range(first_line(site.node), (site.node.end_lineno or 0) + 1)
        for site in sites(source)
        if isinstance(site.node, Function)
    ]


def viewing_commands(chosen: Sequence[Place]) -> list[str]:
    """Returns the commands that show places, each with its path and line numbers."""
    return [
        f"echo {shlex.quote(place.path)} && cat -n -- {shlex.quote(place.path)}"
        f" | sed -n '{place.first},{place.last}p'"
        for place in chosen
    ]
