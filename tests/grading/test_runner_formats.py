"""The statuses that each format reads, and output that is incomplete."""

import pytest

from coding_gym.grade import TestStatus
from coding_gym.grading.formats.cargo import read_cargo
from coding_gym.grading.formats.go_json import read_go
from coding_gym.grading.formats.junit_xml import read_junit
from coding_gym.grading.formats.swebench import FORMAT_BY_REPO, FORMATS, read_log
from coding_gym.grading.formats.tap import read_tap

PASSED, FAILED = TestStatus.PASSED, TestStatus.FAILED
SKIPPED, ERROR = TestStatus.SKIPPED, TestStatus.ERROR


def test_tap_with_subtests_and_directives() -> None:
    run = read_tap(
        "TAP version 14\n"
        "# Subtest: outer\n"
        "    ok 1 - in one\n"
        "    not ok 2 - in two\n"
        "    1..2\n"
        "not ok 1 - outer\n"
        "ok 2 - later # SKIP not here\n"
        "noise\n"
        "ok 3 - plain\n"
        "ok 4 - a#todo-list\n"
        "ok 5 # skip\n"
        "1..5\n"
    )
    assert run.ended
    assert run.statuses == {
        "outer > in one": PASSED,
        "outer > in two": FAILED,
        "outer": FAILED,
        "later": SKIPPED,
        "plain": PASSED,
        "a#todo-list": PASSED,
        "5": SKIPPED,
    }


def test_tap_names_subtests_as_node_and_perl_print_them() -> None:
    points = "    ok 1 - in one\n    1..1\nok 1 - outer\n1..1\n"
    for titles in ("# Subtest: outer\n    # Subtest: in one\n", "    # Subtest: outer\n"):
        run = read_tap(titles + points)
        assert run.ended
        assert set(run.statuses) == {"outer > in one", "outer"}


def test_tap_diagnostics_are_not_read_as_tests() -> None:
    run = read_tap(
        "not ok 1 - a\n  ---\n  ok: true\n\n  not ok 2 - b\n  ...\n"
        "    ok 1 - c\n      ---\n      ok: true\n"  # a block without an end
        "ok 2 - d\n1..2\n"
    )
    assert run.ended
    assert run.statuses == {"a": FAILED, "c": PASSED, "d": PASSED}


def test_incomplete_tap_is_detected() -> None:
    cases = {
        "no plan": "ok 1 - a\n",
        "fewer than planned": "1..2\nok 1 - a\n",
        "an early end": "1..1\nok 1 - a\nBail out!\n",
        "two plans": "1..1\nok 1 - a\n1..1\n",
    }
    for name, text in cases.items():
        assert not read_tap(text).ended, name


CARGO = """\
     Running unittests src/lib.rs (target/debug/deps/a-1)

running 2 tests
test tests::one ... ok
test tests::two ... ignored

test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s

     Running tests/b.rs (target/debug/deps/b-1)

running 1 test
test three ... FAILED

test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.0s
"""


def test_cargo_ids_contain_the_file() -> None:
    run = read_cargo(CARGO)
    assert run.statuses == {
        "src/lib.rs::tests::one": PASSED,
        "src/lib.rs::tests::two": SKIPPED,
        "tests/b.rs::three": FAILED,
    }


def test_cargo_ids_of_two_crates_begin_with_the_crate() -> None:
    text = "Running unittests src/lib.rs (target/debug/deps/{}-1)\ntest tests::one ... {}\n"
    run = read_cargo(text.format("till", "ok") + text.format("till_core", "FAILED"))
    assert run.statuses == {
        "till/src/lib.rs::tests::one": PASSED,
        "till_core/src/lib.rs::tests::one": FAILED,
    }


def test_a_test_that_is_reported_twice_is_an_error() -> None:
    assert read_tap("ok 1 - a\nnot ok 2 - a\n1..2\n").statuses == {"a": ERROR}
    text = CARGO.replace("tests::two ... ignored", "tests::one ... ok")
    assert read_cargo(text).statuses["src/lib.rs::tests::one"] is ERROR


def test_go_events() -> None:
    text = (
        '{"Action":"run","Package":"x/y","Test":"TestA"}\n'
        '{"Action":"output","Package":"x/y","Test":"TestA","Output":"noise"}\n'
        "not an event\n"
        '{"Action":"pass","Package":"x/y","Test":"TestA","Elapsed":0}\n'
        '{"Action":"fail","Package":"x/y","Test":"TestB/one","Elapsed":0}\n'
    )
    assert not read_go(text).ended
    run = read_go(f'{text}{{"Action":"fail","Package":"x/y"}}\n')
    assert run.ended
    assert run.statuses == {"x/y::TestA": PASSED, "x/y::TestB/one": FAILED}


def test_junit_reports() -> None:
    report = (
        b'<testsuites><testsuite><testcase classname="a.B" name="c"/>'
        b'<testcase name="d"><failure message="3 is\nnot 4"/></testcase>'
        b'<testcase name="e"><skipped/></testcase></testsuite></testsuites>'
    )
    run = read_junit([report])
    assert run.statuses == {"a.B::c": PASSED, "d": FAILED, "e": SKIPPED}
    assert run.messages == {"d": "3 is not 4"}
    assert not read_junit([b"<testsuite>"]).ended


def test_junit_reports_with_a_document_type_are_refused() -> None:
    report = (
        '<?xml version="1.0" encoding="{}"?><!DOCTYPE x [<!ENTITY y "z">]>'
        '<testsuite><testcase name="&y;"/></testsuite>'
    )
    for encoding in ("utf-8", "utf-16"):
        run = read_junit([report.format(encoding).encode(encoding)])
        assert (run.ended, run.statuses) == (False, {}), encoding


def test_swe_bench_formats() -> None:
    cases = [
        ("pytest", "PASSED a.py::b\nFAILED a.py::c - x\nERROR a.py", {"a.py::b"}),
        ("pytest", "XFAIL a.py::b - why\nXPASS a.py::c", {"a.py::b"}),
        ("pytest_options", "PASSED a.py::b[/x/y/z.py]", {"a.py::b[/z.py]"}),
        ("pytest_v2", "\x1b[32mPASSED\x1b[0m a.py::b\na.py::c PASSED", {"a.py::b", "a.py::c"}),
        ("matplotlib", "PASSED a.py::b[MouseButton.LEFT]", {"a.py::b[1]"}),
        ("seaborn", "a.py::b PASSED [ 5%]\nPASSED a.py::c", {"a.py::b", "a.py::c"}),
        ("sympy", "test_a ok\ntest_b F\n____ x/test_y.py:test_c ____", {"test_a"}),
        ("django", "test_a (x.Y) ... noise\nok\ntest_b (x.Y) ... skipped 'z'", {"test_a (x.Y)"}),
        ("gotest", "--- PASS: TestA (0.00s)\n    --- FAIL: TestA/b (0.00s)", {"TestA"}),
        ("maven", "+ mvn -Dtest=A#b test\n[INFO] BUILD SUCCESS", {"A#b"}),
        ("vitest", " ✓ a > b 3ms\n ↓ c [skipped]", {"a > b"}),
    ]
    for name, log, passed in cases:
        statuses = read_log(log, name)
        assert {test for test, status in statuses.items() if status is PASSED} == passed, name


def test_only_text_between_the_markers_is_read() -> None:
    log = "PASSED a\n>>>>> Start Test Output\nPASSED b\n>>>>> End Test Output\nPASSED c"
    assert set(read_log(log, "pytest")) == {"b"}
    assert read_log(f"{log}\n>>>>> Tests Errored", "pytest") == {}


def test_format_of_every_project_exists() -> None:
    assert set(FORMAT_BY_REPO.values()) <= FORMATS.keys()


@pytest.mark.parametrize("name", ["tap junit", "cargo runner", *FORMATS])
def test_hostile_output_is_read_in_linear_time(name: str) -> None:
    """Code under test can print these lines; patterns of quadratic time would take hours."""
    size = 200_000
    starts = ("", "test_", "Running a.rs (", "--- PASS: ", "[ OK ] ", "[err]: ", "a. ", "_ ", "✓ ")
    fillers = (" ", "_", "/", "=", ". ", " (", ".py:", "] ", " in ", "F")
    lines = [start + filler * (size // len(filler)) for start in starts for filler in fillers]
    lines += ["[OK] (" * 330] * 2_000
    lines += ["a ... Testing against Django installed in "] * 20_000
    text = "\n".join([*lines, "1.." + "9" * 5000])
    if name == "tap junit":
        assert not read_tap(text).ended
        assert not read_junit([text.encode()]).ended
    elif name == "cargo runner":
        assert read_cargo(text).ended
    else:
        read_log(text, name)
