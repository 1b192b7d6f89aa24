"""Reads the output of ``go test -json``: one JSON event per line.

Ids are the package and the test: ``example.com/till/money::TestRounding/half_cents``. A test that
ends twice has the status ``ERROR``. A run is incomplete if the end of a package is missing.
"""

import json

from coding_gym.grade import TestStatus
from coding_gym.grading.report import TestRun

_STATUSES = {"pass": TestStatus.PASSED, "fail": TestStatus.FAILED, "skip": TestStatus.SKIPPED}


def read_go(output: str) -> TestRun:
    """Returns the run in the events of ``output``; ignores other lines."""
    run = TestRun(ended=True)
    open_packages: set[str] = set()
    for line in output.splitlines():
        event = _event(line)
        action, package, test = (str(event.get(key, "")) for key in ("Action", "Package", "Test"))
        if not package:
            continue
        if test and action in _STATUSES:
            run.add(f"{package}::{test}", _STATUSES[action])
        elif not test and action in _STATUSES:
            open_packages.discard(package)
        else:
            open_packages.add(package)
    run.ended = not open_packages
    return run


def _event(line: str) -> dict[str, object]:
    if not line.startswith("{"):
        return {}
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}
