"""Reads the output of ``cargo test``.

Ids are the root file of a test program and the path of the test in this file:
``tests/rounding.rs::half_cents``, ``src/lib.rs::till::tests::is_empty``. If two crates of a
workspace report the same id, the id begins with the name of the crate, as in the file name of the
test program: ``till_core/src/lib.rs::tests::is_empty``.
"""

import re

from coding_gym.grade import TestStatus
from coding_gym.grading.report import TestRun

_RUNNING = re.compile(
    r"\s*Running (?:unittests )?(?P<source>\S+\.rs) "
    r"\((?:.*[/\\])?(?P<crate>[^/\\]*?)(?:-[0-9a-f]*)?\)"
)
_DOCUMENTATION = re.compile(r"\s*Doc-tests (?P<source>(?P<crate>\S+))")
_TEST = re.compile(r"test (.+?)(?: - should panic)? \.\.\. (ok|FAILED|ignored)\b.*")
_STATUSES = {"ok": TestStatus.PASSED, "FAILED": TestStatus.FAILED, "ignored": TestStatus.SKIPPED}


def read_cargo(output: str) -> TestRun:
    """Returns the run that the test programs of a package or a workspace printed.

    Args:
        output: Standard output and standard error, in order.
    """
    source = crate = ""
    results: list[tuple[str, str, TestStatus]] = []
    crates: dict[str, set[str]] = {}
    for line in output.splitlines():
        if match := _RUNNING.fullmatch(line) or _DOCUMENTATION.fullmatch(line):
            source, crate = match["source"], match["crate"]
        elif match := _TEST.fullmatch(line):
            test_id = f"{source}::{match[1]}"
            crates.setdefault(test_id, set()).add(crate)
            results.append((crate, test_id, _STATUSES[match[2]]))
    run = TestRun(ended=True)
    for crate, test_id, status in results:
        run.add(f"{crate}/{test_id}" if len(crates[test_id]) > 1 else test_id, status)
    return run
