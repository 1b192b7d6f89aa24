"""The Test Anything Protocol, versions 12 to 14.

Ids are the descriptions, with those of the subtests around them in front: ``OUTER > INNER``. A
forgery is found out where the same test, or the same number, is reported twice, and where what is
reported is not what the plan says. A text without a plan, or that bails out, is not complete.
"""

import re
from dataclasses import dataclass, field

from coding_gym.grade import TestStatus
from coding_gym.grading.formats.outcomes import Outcomes

_POINT = re.compile(r"( *)(not )?ok\b *(\d+)? *(?:- )?(.*)")
_PLAN = re.compile(r"( *)1\.\.(\d+)\s*(?:#.*)?")
_SUBTEST = re.compile(r"( *)# Subtest: (.*)")
_DIRECTIVE = re.compile(r"(?<!\\)#\s*(skip|todo)\b.*", re.IGNORECASE)
_ESCAPED = re.compile(r"\\([\\#])")


@dataclass(slots=True)
class _Level:
    """The tests of one indentation, since the level began."""

    names: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    plans: list[int] = field(default_factory=list)

    def is_sound(self) -> bool:
        wanted = self.plans[0] if len(self.plans) == 1 else -1
        repeated = len(set(self.numbers)) < len(self.numbers)
        return len(self.names) == wanted and not repeated


def read_tap(output: str, exit_code: int) -> Outcomes:
    """Returns what a TAP stream says; other lines are passed over.

    Args:
        output: The stream.
        exit_code: Of the program; where every test passed and this is not 0, the program failed
            after its tests, and the stream counts as incomplete.
    """
    outcomes = Outcomes()
    levels: dict[int, _Level] = {0: _Level()}
    titles: dict[int, str] = {}  # of the subtest that is open at an indentation
    for line in output.splitlines():
        if line.startswith("Bail out!"):
            outcomes.ended = False
        elif match := _SUBTEST.fullmatch(line):
            titles[len(match[1])] = _plain(match[2])
            levels[len(match[1])] = _Level()
        elif match := _PLAN.fullmatch(line):
            levels.setdefault(len(match[1]), _Level()).plans.append(int(match[2]))
        elif match := _POINT.fullmatch(line):
            _point(match, levels, titles, outcomes)
    outcomes.ended &= levels[0].is_sound()
    if exit_code != 0 and set(outcomes.statuses.values()) <= {TestStatus.PASSED}:
        outcomes.ended = False
    return outcomes


def _point(
    match: re.Match[str], levels: dict[int, _Level], titles: dict[int, str], outcomes: Outcomes
) -> None:
    depth = len(match[1])
    description, directive = _split(match[4])
    name = _plain(description) or match[3] or ""
    level = levels.setdefault(depth, _Level())
    level.names.append(name)
    if match[3]:
        level.numbers.append(int(match[3]))
    for inner in [one for one in levels if one > depth]:  # they belong to this test, and end here
        if not levels.pop(inner).is_sound():
            outcomes.ended = False
        titles.pop(inner, None)
    status = TestStatus.FAILED if match[2] else TestStatus.PASSED
    around = [titles[one] for one in sorted(titles) if one <= depth and one > 0]
    outcomes.add(" > ".join([*around, name]), TestStatus.SKIPPED if directive else status)


def _split(text: str) -> tuple[str, str]:
    match = _DIRECTIVE.search(text)
    return (text[: match.start()], match[1]) if match else (text, "")


def _plain(text: str) -> str:
    return _ESCAPED.sub(r"\1", text.strip())
