"""What ``cargo test`` prints.

Ids are the file that a test program was made from and the test's path in it:
``tests/rounding.rs::half_cents``, ``src/lib.rs::till::tests::is_empty``. Crates of one workspace
all have a ``src/lib.rs``: where two report the same id, the crate's name, as in the name of its
program, stands in front: ``till_core/src/lib.rs::tests::is_empty``. A forgery is found out where a
crate reports a test twice, and where the totals of a program are not those of its lines.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from coding_gym.grade import TestStatus
from coding_gym.grading.formats.outcomes import Outcomes

_RUNNING = re.compile(
    r"\s*Running (?:unittests )?(?P<source>\S+\.rs) \((?:.*[/\\])?(?P<crate>.*?)(?:-[0-9a-f]*)?\)"
)
_DOCUMENTATION = re.compile(r"\s*Doc-tests (?P<source>(?P<crate>\S+))")
_TEST = re.compile(r"test (.+?)(?: - should panic)? \.\.\. (ok|FAILED|ignored)\b.*")
_TOTALS = re.compile(r"test result: (ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored;.*")
_PANIC = re.compile(r"thread '(.+?)'(?: \(\d+\))? panicked at .*")
_STATUSES = {"ok": TestStatus.PASSED, "FAILED": TestStatus.FAILED, "ignored": TestStatus.SKIPPED}


@dataclass(slots=True)
class _Program:
    """One test program, and what it said."""

    source: str = ""
    crate: str = ""
    said: Outcomes = field(default_factory=lambda: Outcomes(ended=False))


def read_cargo(output: str, exit_code: int) -> Outcomes:
    """Returns what the test programs of a package or a workspace said.

    Args:
        output: What was printed, both streams in order.
        exit_code: Of cargo; where every test passed and this is not 0, something else failed, and
            the output counts as incomplete.
    """
    outcomes = _together([program for program in _programs(output) if program.said.statuses])
    passed = {TestStatus.PASSED, TestStatus.SKIPPED}
    if exit_code != 0 and outcomes.statuses and set(outcomes.statuses.values()) <= passed:
        outcomes.ended = False
    return outcomes


def _programs(output: str) -> list[_Program]:
    """The programs in order; one that never came to its totals has not ended."""
    programs = [_Program()]
    lines = output.splitlines()
    for number, line in enumerate(lines):
        said = programs[-1].said
        if match := _RUNNING.fullmatch(line) or _DOCUMENTATION.fullmatch(line):
            programs.append(_Program(match["source"], match["crate"]))
        elif match := _TEST.fullmatch(line):
            said.add(match[1], _STATUSES[match[2]])
        elif match := _PANIC.fullmatch(line):
            said.messages[match[1]] = lines[number + 1] if number + 1 < len(lines) else ""
        elif match := _TOTALS.fullmatch(line):
            counts = Counter(said.statuses.values())
            reported = [counts[_STATUSES[how]] for how in ("ok", "FAILED", "ignored")]
            said.ended = reported == [int(match[part]) for part in (2, 3, 4)]
            programs.append(_Program(programs[-1].source, programs[-1].crate))
    return programs


def _together(programs: Sequence[_Program]) -> Outcomes:
    """What all programs said, with the crate in front of ids that several crates report."""
    crates: dict[str, set[str]] = {}
    for program in programs:
        for test in program.said.statuses:
            crates.setdefault(f"{program.source}::{test}", set()).add(program.crate)
    outcomes = Outcomes()
    for program in programs:
        outcomes.ended &= program.said.ended
        for test, status in program.said.statuses.items():
            test_id = f"{program.source}::{test}"
            owner = f"{program.crate}/" if len(crates[test_id]) > 1 else ""
            outcomes.add(owner + test_id, status, program.said.messages.get(test, ""))
    return outcomes
