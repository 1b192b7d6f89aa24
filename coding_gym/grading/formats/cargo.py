"""What ``cargo test`` prints.

Ids are the file that a test program was made from and the test's path in it:
``tests/rounding.rs::half_cents``, ``src/lib.rs::till::tests::is_empty``. A forgery is found
out where a test is reported twice, and where the totals of a program are not those of its lines.
"""

import re

from coding_gym.grade import TestStatus
from coding_gym.grading.formats.outcomes import Outcomes

_RUNNING = re.compile(r"\s*Running (?:unittests )?(\S+\.rs) \(.*\)")
_DOCUMENTATION = re.compile(r"\s*Doc-tests (\S+)")
_TEST = re.compile(r"test (.+?)(?: - should panic)? \.\.\. (ok|FAILED|ignored)\b.*")
_TOTALS = re.compile(r"test result: (ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored;.*")
_PANIC = re.compile(r"thread '(.+?)'(?: \(\d+\))? panicked at .*")
_STATUSES = {"ok": TestStatus.PASSED, "FAILED": TestStatus.FAILED, "ignored": TestStatus.SKIPPED}


def read_cargo(output: str, exit_code: int) -> Outcomes:
    """Returns what the test programs of a package said.

    Args:
        output: What was printed, both streams in order.
        exit_code: Of cargo; where every test passed and this is not 0, something else failed, and
            the output counts as incomplete.
    """
    outcomes = Outcomes()
    source, program = "", Outcomes()
    lines = output.splitlines()
    for number, line in enumerate(lines):
        if match := _RUNNING.fullmatch(line) or _DOCUMENTATION.fullmatch(line):
            if program.statuses:  # the one before never came to its totals
                outcomes.update(program, f"{source}::")
                outcomes.ended = False
            source, program = match[1], Outcomes()
        elif match := _TEST.fullmatch(line):
            program.add(match[1], _STATUSES[match[2]])
        elif match := _PANIC.fullmatch(line):
            program.messages[match[1]] = lines[number + 1] if number + 1 < len(lines) else ""
        elif match := _TOTALS.fullmatch(line):
            counts = program.counts()
            told = [counts[_STATUSES[how]] for how in ("ok", "FAILED", "ignored")]
            program.ended = told == [int(match[part]) for part in (2, 3, 4)]
            outcomes.update(program, f"{source}::")
            program = Outcomes()
    if program.statuses:
        outcomes.update(program, f"{source}::")
        outcomes.ended = False
    passed = {TestStatus.PASSED, TestStatus.SKIPPED}
    if exit_code != 0 and outcomes.statuses and set(outcomes.statuses.values()) <= passed:
        outcomes.ended = False
    return outcomes
