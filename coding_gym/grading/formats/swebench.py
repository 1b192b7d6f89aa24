"""Reads SWE-bench's log formats as SWE-bench 4.1.0 does, and names the format of each project.

The readers parse the output of test programs line by line. The last line about a test determines
its status: PASSED and XFAIL are passes. Code under test can print such a line, and SWE-bench does
not prevent this: if another runner can run a task, use that runner. Ids of pytest are cut at the
first white space. The readers reproduce the defects of SWE-bench's parsers, because FAIL_TO_PASS
and PASS_TO_PASS of rows were made with these parsers.

Most formats of SWE-bench Multilingual have one line for each test. A pattern matches the stripped
line; the group ``test`` is the id, and the group ``how`` has a status.

Source: SWE-bench, ``harness/log_parsers/``.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator

from coding_gym.grade import TestStatus

Read = Callable[[str], dict[str, str]]
PASSED, FAILED, SKIPPED, ERROR, XFAIL = "PASSED", "FAILED", "SKIPPED", "ERROR", "XFAIL"
_WORDS = (FAILED, PASSED, SKIPPED, ERROR, XFAIL)
_COLOR = re.compile(r"\[\d+m")
_CONTROL = dict.fromkeys(range(1, 32))
_SYMPY_ENDINGS = ((" E", ERROR), (" F", FAILED), (" ok", PASSED))
_VERSION_TEST = "--version is equivalent to version"
# A line in which the output of a migration precedes the name of a test.
_NOISY_TEST = "Applying sites.0002_alter_domain_unique...test_no_migrations"
_DJANGO_OK = (" ... ok", " ... OK", " ...  OK")
_DJANGO_STARTS = re.compile(r"^(.*?)\s\.\.\.\sTesting against Django installed in ", re.MULTILINE)
_DJANGO_STARTED = re.compile(r" silenced\)\.\nok$", re.MULTILINE)
_CROSS = "\N{MULTIPLICATION SIGN}"
_TIME = r"(?: \(\d+\s*m?s\))?"
_WHERE = re.compile(r"(?<!\s)\s+in\s+\S+$")
_MAX_LINE_CHARS = 2000  # longer lines are skipped: some patterns need quadratic time
_START, _END = ">>>>> Start Test Output", ">>>>> End Test Output"
_ABORTED = tuple(
    f">>>>> {text}"
    for text in ("Patch Apply Failed", "Reset Failed", "Tests Errored", "Tests Timed Out")
)
_STATUSES = {
    "PASSED": TestStatus.PASSED,
    "XFAIL": TestStatus.PASSED,
    "FAILED": TestStatus.FAILED,
    "ERROR": TestStatus.ERROR,
    "SKIPPED": TestStatus.SKIPPED,
}


def read_pytest(log: str) -> dict[str, str]:
    """Reads the short summary of ``pytest -rA``."""
    return dict(_summaries(log))


def read_pytest_options(log: str) -> dict[str, str]:
    """Like `read_pytest`; shortens parameters that are absolute paths to the last name."""
    return {_short(test): status for test, status in _summaries(log)}


def read_pytest_v2(log: str) -> dict[str, str]:
    """Like `read_pytest`; also reads coloured text and pytest 2's lines that end in a status."""
    statuses = {}
    for raw in log.split("\n"):
        line = _COLOR.sub("", raw).translate(_CONTROL)
        words = line.split()
        if summary := _summary(line):
            statuses[summary[0]] = summary[1]
        elif line.endswith(_WORDS) and not line.startswith(_WORDS) and len(words) > 1:
            statuses[words[0]] = words[1]
    return statuses


def read_matplotlib(log: str) -> dict[str, str]:
    """Like `read_pytest`; replaces names of mouse buttons in ids by numbers."""
    return read_pytest(log.replace("MouseButton.LEFT", "1").replace("MouseButton.RIGHT", "3"))


def log_spellings(node_id: str) -> set[str]:
    """Returns the shortened ids that SWE-bench's log readers return for a pytest test.

    Only ids with parameters are cut: some readers return ``test_x[not`` for ``test_x[not a]``.
    """
    if "[" not in node_id:
        return set()
    readers = (read_pytest, read_pytest_options, read_pytest_v2, read_matplotlib)
    return {test for read in readers for test in read(f"{PASSED} {node_id}")} - {node_id}


def read_seaborn(log: str) -> dict[str, str]:
    """Reads failures from the summary, and passes from the summary or ``pytest -v``."""
    statuses = {}
    for line in log.split("\n"):
        words = line.split()
        if len(words) < 2:
            continue
        if line.startswith(FAILED):
            statuses[words[1]] = FAILED
        elif f" {PASSED} " in line:
            if words[1] == PASSED:
                statuses[words[0]] = PASSED
        elif line.startswith(PASSED):
            statuses[words[1]] = PASSED
    return statuses


def read_sympy(log: str) -> dict[str, str]:
    """Reads the output of SymPy's test runner: titles of failures, and a line for each test."""
    lines = log.split("\n")
    statuses = {}
    for line in lines:
        start, end = line.find(" ") + 1, line.rfind(" ")
        suffix = line.rfind(".py:", start, max(end, 0))
        if start and suffix >= 0:
            statuses[line[start:end]] = FAILED
    for line in map(str.strip, lines):
        for ending, status in _SYMPY_ENDINGS:
            if line.startswith("test_") and line.endswith(ending):
                statuses[line.split()[0]] = status
    return statuses


def read_django(log: str) -> dict[str, str]:
    """Reads Django's runner at verbosity 2; tests may print text before their status."""
    statuses: dict[str, str] = {}
    current: str | None = None
    for line in map(str.strip, log.split("\n")):
        if " ... " in line:
            current = line.split(" ... ")[0]
        statuses.update(_django_line(line))
        if line.startswith("ok") and current is not None:  # the test printed text before its status
            statuses[current] = PASSED
    return statuses | dict.fromkeys(_started_by_tests(log), PASSED)


def _started_by_tests(log: str) -> Iterator[str]:
    """Yields the tests that start Django's test suite; its output precedes the test's ``ok``."""
    ends = deque(match.span() for match in _DJANGO_STARTED.finditer(log))
    position = 0
    for match in _DJANGO_STARTS.finditer(log):
        while ends and ends[0][0] < match.end():
            ends.popleft()
        if ends and match.start() >= position:
            position = ends[0][1]
            yield match[1]


def _summaries(log: str) -> Iterator[tuple[str, str]]:
    yield from filter(None, map(_summary, log.split("\n")))


def _summary(line: str) -> tuple[str, str] | None:
    if not line.startswith(_WORDS):
        return None
    if line.startswith(FAILED):
        line = line.replace(" - ", " ")
    words = line.split()
    return (words[1], words[0]) if len(words) > 1 else None


def _short(test: str) -> str:
    start, end = test.find("["), test.rfind("]")
    if not 0 <= start < end:
        return test
    option = test[start + 1 : end]
    if option.startswith("/") and not option.startswith("//") and "*" not in option:
        option = "/" + option.rpartition("/")[2]
    return f"{test[:start]}[{option}]"


def _django_line(line: str) -> Iterator[tuple[str, str]]:
    """Yields the tests and statuses in a line; the last status of a test counts."""
    if _VERSION_TEST in line:
        yield _VERSION_TEST, PASSED
    ok = next((suffix for suffix in _DJANGO_OK if line.endswith(suffix)), None)
    if ok:
        if line.startswith(_NOISY_TEST):
            line = line.split("...", 1)[1].strip()
        yield line.rsplit(ok, 1)[0], PASSED
    if " ... skipped" in line:
        yield line.split(" ... skipped")[0], SKIPPED
    for word, status in (("FAIL", FAILED), ("ERROR", ERROR)):
        if line.endswith(f" ... {word}"):
            yield line.split(f" ... {word}")[0], status
        if line.startswith(f"{word}:") and len(line.split()) > 1:
            yield line.split()[1], status


def _lines(pattern: str, passed: str, failed: str, skipped: str = "") -> Read:
    """Returns a reader of one line per test; ``|`` separates several words of one status."""
    texts = ((passed, PASSED), (failed, FAILED), (skipped, SKIPPED))
    statuses = {word: status for text, status in texts for word in text.split("|")}
    compiled = re.compile(pattern)

    def read(log: str) -> dict[str, str]:
        matches = (compiled.match(line) for line in _short_lines(log))
        return {_name(m): statuses[m["how"]] for m in matches if m and m["how"] in statuses}

    return read


def _short_lines(log: str) -> Iterator[str]:
    lines = map(str.strip, log.split("\n"))
    return (line for line in lines if len(line) <= _MAX_LINE_CHARS)


def _name(match: re.Match[str]) -> str:
    # Redis prints the location of a failure after the name of the test.
    return _WHERE.sub("", match["test"]) if match["how"] == "err" else match["test"]


def read_maven(log: str) -> dict[str, str]:
    """Reads a log of ``mvn -Dtest=NAME`` commands; a test passes if its build succeeded."""
    statuses = {}
    test = "---NO TEST NAME FOUND YET---"
    for line in map(str.strip, log.split("\n")):
        if match := re.match(r".*-Dtest=(\S+)", line):
            test = match[1]
        if line.endswith("BUILD SUCCESS"):
            statuses[test] = PASSED
        elif line.endswith("BUILD FAILURE"):
            statuses[test] = FAILED
    return statuses


def read_phpunit(log: str) -> dict[str, str]:
    """Reads ``phpunit --testdox``, which prints the title of each suite before its tests."""
    words = {"✔": PASSED, "✘": FAILED, "↩": SKIPPED}
    statuses = {}
    suite: str | None = None
    for line in log.split("\n"):
        if len(line) > _MAX_LINE_CHARS:
            continue
        if line.endswith(")") and (title := re.fullmatch(r"(\w.+) \(.+\)", line)):
            suite = title[1]
        elif test := re.fullmatch(r"\s*([✔✘↩])\s*(.*)", line):
            statuses[f"{suite} > {test[2]}"] = words[test[1]]
    return statuses


FORMATS: dict[str, Read] = {
    "django": read_django,
    "matplotlib": read_matplotlib,
    "pytest": read_pytest,
    "pytest_options": read_pytest_options,
    "pytest_v2": read_pytest_v2,
    "seaborn": read_seaborn,
    "sympy": read_sympy,
    "ant": _lines(r"\[junit\]\s+\[(?P<how>PASS|FAIL|ERR)\]\s+(?P<test>.*)$", "PASS", "FAIL|ERR"),
    "cargo": _lines(r"test\s+(?P<test>\S+)\s+\.{3}\s+(?P<how>\w+)$", "ok", "FAILED"),
    "googletest": _lines(
        r"(?=.*\)$).*\[\s*(?P<how>OK|FAILED)\s*\]\s(?P<test>.*)\s\(.*\)$", "OK", "FAILED"
    ),  # the condition on the end of a line avoids cubic backtracking
    "gotest": _lines(r"--- (?P<how>PASS|FAIL|SKIP): (?P<test>.+) \(.+\)$", "PASS", "FAIL", "SKIP"),
    "gradle": _lines(r"(?P<test>[^>].+)\s(?P<how>PASSED|FAILED)$", "PASSED", "FAILED"),
    "jest": _lines(rf"(?P<how>[✓✕○])\s(?P<test>.+?){_TIME}$".replace(" ", r"\s"), "✓", "✕", "○"),
    "jq": _lines(r"(?P<how>PASS|FAIL):\s(?P<test>.+)$", "PASS", "FAIL"),
    "maven": read_maven,
    "micropython": _lines(r"(?P<how>pass|FAIL|skip)\s+(?P<test>.+)$", "pass", "FAIL", "skip"),
    "phpunit": read_phpunit,
    "redis": _lines(
        rf"\[(?P<how>ok|err|skip|ignore)\]:\s(?P<test>.+?){_TIME}$".replace(" ", r"\s"),
        "ok",
        "err",
        "skip|ignore",
    ),
    "rspec": _lines(r"(?P<test>.+) - (?P<how>passed|failed)", "passed", "failed"),
    "ruby_unit": _lines(r"(?:test: )?(?P<test>.+):\s+(?P<how>\.|E\b|F\b|O\b)", ".", "E|F", "O"),
    "tap": _lines(r"(?P<how>ok|not ok) \d+ (?P<test>.+)$", "ok", "not ok"),
    "vitest": _lines(
        rf"(?P<how>[✓{_CROSS}↓])\s(?P<test>.+?)(?:\s(?:\d+\s*m?s?|\[skipped\]))?$", "✓", _CROSS, "↓"
    ),
}
# The formats whose ids are pytest's.
PYTEST_FORMATS = frozenset({"matplotlib", "pytest", "pytest_options", "pytest_v2"})

_PROJECTS = {
    "ant": "projectlombok/lombok",
    "cargo": "astral-sh/ruff burntsushi/ripgrep nushell/nushell sharkdp/bat tokio-rs/axum "
    "tokio-rs/tokio uutils/coreutils",
    "django": "django/django",
    "googletest": "fmtlib/fmt",
    "gotest": "caddyserver/caddy gin-gonic/gin gohugoio/hugo hashicorp/terraform "
    "prometheus/prometheus",
    "gradle": "apache/lucene reactivex/rxjava",
    "jest": "babel/babel facebook/docusaurus",
    "jq": "jqlang/jq",
    "matplotlib": "matplotlib/matplotlib",
    "maven": "apache/druid google/gson javaparser/javaparser",
    "micropython": "micropython/micropython",
    "phpunit": "briannesbitt/carbon laravel/framework php-cs-fixer/php-cs-fixer "
    "phpoffice/phpspreadsheet",
    "pytest": "marshmallow-code/marshmallow pallets/flask pvlib/pvlib-python pydata/xarray "
    "pylint-dev/astroid pytest-dev/pytest pyvista/pyvista sqlfluff/sqlfluff",
    "pytest_options": "psf/requests pydicom/pydicom pylint-dev/pylint",
    "pytest_v2": "astropy/astropy scikit-learn/scikit-learn sphinx-doc/sphinx",
    "redis": "redis/redis valkey-io/valkey",
    "rspec": "fastlane/fastlane jordansissel/fpm rubocop/rubocop",
    "ruby_unit": "faker-ruby/faker fluent/fluentd",
    "seaborn": "mwaskom/seaborn",
    "sympy": "sympy/sympy",
    "tap": "axios/axios mrdoob/three.js",
    "vitest": "vuejs/core",
}
FORMAT_BY_REPO = {repo: name for name, repos in _PROJECTS.items() for repo in repos.split()}


def read_log(log: str, name: str) -> dict[str, TestStatus]:
    """Returns the statuses that SWE-bench reads from a log, by test id.

    Args:
        log: The output of the test command or of a whole ``eval_script``. In the second case, the
            part between the markers is read, and the whole log if this part has no result.
        name: The name of the format, one of `FORMATS`.
    """
    if any(mark in log for mark in _ABORTED):
        return {}
    output = log.split(_START)[1].split(_END)[0] if _START in log and _END in log else log
    words = FORMATS[name](output) or FORMATS[name](log)
    return {test: _STATUSES.get(word, TestStatus.FAILED) for test, word in words.items()}
