"""The log readers agree with SWE-bench 4.1.0, which the dependency group ``peers`` installs."""

from importlib.metadata import PackageNotFoundError, version
from random import Random

import pytest

from coding_gym.grade import TestStatus
from coding_gym.grading.formats.swebench import FORMAT_BY_REPO, FORMATS, read_log

try:
    if version("swebench") != "4.1.0":
        pytest.skip("swebench 4.1.0 is not installed", allow_module_level=True)
except PackageNotFoundError:
    pytest.skip("swebench 4.1.0 is not installed", allow_module_level=True)

from swebench.harness.constants import TestStatus as TheirStatus
from swebench.harness.log_parsers import MAP_REPO_TO_PARSER

pytestmark = pytest.mark.trainer

NUM_LOGS = 400
NAMES = [
    "tests/test_a.py::test_x",
    "tests/test_a.py::Case::test_y[a-b]",
    "t.py::test_z[/usr/lib/x.py]",
    "t.py::test_z[//host/x]",
    "t.py::test_z[a*/b]",
    "test_one (app.tests.Case)",
    "test_two (app.tests.Case.test_two)",
    "Applying sites.0002_alter_domain_unique...test_no_migrations (x.y.Z)",
    "test_pow",
    "sympy/core/tests/test_a.py:test_b",
    "TestRounding/half_cents",
    "suite > keeps a value (12 ms)",
    "com.example.MoneyTest > rounds()",
    "MouseButton.LEFT x[MouseButton.RIGHT]",
    "",
]
WORDS = ["PASSED", "FAILED", "SKIPPED", "ERROR", "XFAIL", "XPASS", "ok", "FAIL", "E", "F", "OK"]
SHAPES = [
    "{word} {name}",
    "{word} {name} - AssertionError: {name}",
    "{name} {word}",
    "{name} {word}  [ 12%]",
    "\x1b[32m{word}\x1b[0m {name}",
    "\x1b[31m{word}\x1b[0m {name}\x1b[0m - x",
    "{name} ... {word}",
    "  {name} ... {word}",
    "{name} ...  OK",
    "{name} ... skipped 'no reason'",
    "{word}: {name}",
    "{name} ... Testing against Django installed in '/x' with up to 2 processes (1 silenced).",
    "{name} ... Internal Server Error: /a/b/",
    "{name} ... System check identified no issues (0 silenced)",
    "ok",
    "okay {name}",
    "________ {name} ________",
    "____ sympy/core/tests/test_a.py:{name} ____",
    "{name}[1] {word}",
    "test_{name} {word}",
    "--version is equivalent to version",
    "[{word}]: {name} (3 ms)",
    "[err]: {name} in tests/unit/x.tcl",
    "[skip]: {name}",
    "--- PASS: {name} (0.00s)",
    "    --- FAIL: {name} (0.00s)",
    "--- SKIP: {name} (0.00s)",
    "test {name} ... {word}",
    "test a::b ... ok",
    "test a::c ... FAILED",
    "ok 1 {name}",
    "not ok 2 {name}",
    "  ✓ {name} (3 ms)",
    "  ✕ {name}",
    "  ○ skipped {name}",
    "  × {name} 5ms",  # noqa: RUF001 — as vitest writes it
    "  ↓ {name} [skipped]",
    "[PASSED] {name}",
    "[FAILED] {name}",
    "PASS: {name}",
    "FAIL: {name}",
    "pass  {name}",
    "skip  {name}",
    "[       OK ] {name} (0 ms)",
    "[  FAILED  ] {name} (1 ms)",
    "    [junit] [PASS] {name}",
    "    [junit] [ERR]  {name}",
    "{name} PASSED",
    "+ mvn -B test -Dtest={name} -x",
    "+ mvn test -pl gson -Dtest=MoneyTest#rounds",
    "[INFO] BUILD SUCCESS",
    "[INFO] BUILD FAILURE",
    "Money (App\\Money)",
    " ✔ {name}",
    " ✘ {name}",
    " ↩ {name}",
    "{name} - passed",
    "{name} - failed (1)",
    "test: {name}:\t.: (0.01)",
    "{name}: F",
    "{name}:  E",
    "{name}: O",
    "noise {name}",
    "",
]


def random_log(rng: Random) -> str:
    lines = [
        rng.choice(SHAPES).format(word=rng.choice(WORDS), name=rng.choice(NAMES))
        for _ in range(rng.randrange(1, 60))
    ]
    return "\n".join(lines)


def passed_by_swe_bench(statuses: dict[str, str]) -> set[str]:
    passed = {TheirStatus.PASSED.value, TheirStatus.XFAIL.value}
    return {test for test, status in statuses.items() if status in passed}


@pytest.mark.parametrize("repo", sorted(FORMAT_BY_REPO))
def test_every_log_gives_the_same_statuses(repo: str) -> None:
    theirs = MAP_REPO_TO_PARSER[repo]
    ours = FORMATS[FORMAT_BY_REPO[repo]]
    rng = Random(repo)
    compared = 0
    for _ in range(NUM_LOGS):
        log = random_log(rng)
        try:
            expected = theirs(log, None)
        except IndexError:  # SWE-bench fails at a line of one word, which our readers skip
            continue
        assert ours(log) == expected, log
        statuses = read_log(log, FORMAT_BY_REPO[repo])
        passed = {test for test, status in statuses.items() if status is TestStatus.PASSED}
        assert passed == passed_by_swe_bench(expected), log
        compared += 1
    assert compared > NUM_LOGS // 20
