from typing import Any

import pytest

from coding_gym.grade import TestStatus
from coding_gym.grading.report import TestRun


def read(*records: Any) -> TestRun:
    return TestRun.from_records([["ready"], *records, ["end", 0]])


def phases(name: str, setup: str, call: str, teardown: str, xfail: bool = False) -> list[list[Any]]:
    outcomes = {"setup": setup, "call": call, "teardown": teardown}
    return [
        ["test", name, when, outcome, xfail and when == "call", ""]
        for when, outcome in outcomes.items()
        if outcome
    ]


def passed(name: str) -> list[list[Any]]:
    return phases(name, "passed", "passed", "passed")


def failed(name: str) -> list[list[Any]]:
    return phases(name, "passed", "failed", "passed")


def test_test_passes_only_if_three_phases_pass_once() -> None:
    cases = [
        (passed("t::a"), TestStatus.PASSED),
        (failed("t::a"), TestStatus.FAILED),
        (phases("t::a", "failed", "", "passed"), TestStatus.ERROR),
        (phases("t::a", "passed", "passed", "failed"), TestStatus.ERROR),
        (phases("t::a", "skipped", "", "passed"), TestStatus.SKIPPED),
        (phases("t::a", "passed", "skipped", "passed"), TestStatus.SKIPPED),
        (phases("t::a", "passed", "skipped", "passed", xfail=True), TestStatus.XFAILED),
        (phases("t::a", "passed", "passed", "passed", xfail=True), TestStatus.XFAILED),
        (phases("t::a", "passed", "", ""), TestStatus.MISSING),
        (phases("t::a", "passed", "passed", ""), TestStatus.MISSING),
        (phases("t::a", "", "passed", ""), TestStatus.MISSING),
        ([], TestStatus.MISSING),
        (passed("t::a") * 2, TestStatus.ERROR),
        (failed("t::a") + passed("t::a"), TestStatus.ERROR),
        ([*passed("t::a"), ["test", "t::a", "call", "passed", False, ""]], TestStatus.ERROR),
        ([*passed("t::a"), ["test", "t::a", "after", "passed", False, ""]], TestStatus.ERROR),
        ([*phases("t::a", "passed", "rerun", ""), *passed("t::a")], TestStatus.PASSED),
        ([*phases("t::a", "passed", "rerun", ""), *failed("t::a")], TestStatus.FAILED),
        ([["test", "t::a", "subtest", "failed", False, ""], *passed("t::a")], TestStatus.FAILED),
        ([["test", "t::a", "subtest", "passed", False, ""], *passed("t::a")], TestStatus.PASSED),
    ]
    for records, status in cases:
        assert read(*records).status("t::a") is status, records


def test_id_cut_at_white_space_stands_for_all_matching_ids() -> None:
    report = read(*passed("t::a[not x]"), *passed("t::a[not y]"), *failed("t::a[nothing]"))
    assert report.status("t::a[not") is TestStatus.PASSED
    assert report.status("t::a[no") is TestStatus.MISSING
    assert report.status("t::a") is TestStatus.MISSING
    assert read(*passed("t::a[not x]"), *failed("t::a[not y]")).status("t::a[not") == "failed"


@pytest.mark.parametrize("xfail", [False, True])
def test_most_severe_status_counts_for_a_shared_cut_id(xfail: bool) -> None:
    skips = phases("t::a[not x]", "passed", "skipped", "passed", xfail=xfail)
    skips[1][-1] = "needs a network"
    failures = failed("t::a[not y]")
    failures[1][-1] = "assert 1 == 2"
    for records in (skips + failures, failures + skips):
        report = read(*records)
        assert report.status("t::a[not") is TestStatus.FAILED
        assert report.message("t::a[not") == "assert 1 == 2"


@pytest.mark.parametrize("record", [["test", "t::a"], [1], ["names", "t", ["x", 1]]])
def test_malformed_record_counts_as_forged(record: list[Any]) -> None:
    assert read(record).is_forged
    assert not read(*passed("t::a")).is_forged
