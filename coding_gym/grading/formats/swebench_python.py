"""The logs of SWE-bench's Python projects, read as SWE-bench 4.1.0 reads them.

Its readers take what pytest, Django or SymPy print, line by line, and the last line about a test
wins. Ids are cut at the first white space. Rows' FAIL_TO_PASS and PASS_TO_PASS were made that way,
so every oddity counts; source: SWE-bench, ``harness/log_parsers/python.py``.
"""

import re
from collections.abc import Callable, Iterator

PASSED, FAILED, SKIPPED, ERROR, XFAIL = "PASSED", "FAILED", "SKIPPED", "ERROR", "XFAIL"
_WORDS = (FAILED, PASSED, SKIPPED, ERROR, XFAIL)
_COLOR = re.compile(r"\[\d+m")
_CONTROL = dict.fromkeys(range(1, 32))
_SYMPY_FAILURE = re.compile(r"_* (.*)\.py:(.*) _*")
_SYMPY_ENDINGS = ((" E", ERROR), (" F", FAILED), (" ok", PASSED))
_VERSION_TEST = "--version is equivalent to version"
# A migration that one old test of Django applies while it runs.
_NOISY_TEST = "Applying sites.0002_alter_domain_unique...test_no_migrations"
_DJANGO_OK = (" ... ok", " ... OK", " ...  OK")
# What Django logs between the name of a test and its "ok", which then stands on the next line.
_DJANGO_LOGGED = tuple(
    re.compile(rf"^(.*?)\s\.\.\.\s{said}\nok$", re.MULTILINE)
    for said in (
        r"Testing against Django installed in (?s:.*?) silenced\)\.",
        r"Internal Server Error: /.*/",
        r"System check identified no issues \(0 silenced\)",
    )
)


def read_pytest(log: str) -> dict[str, str]:
    """Reads the short summary of ``pytest -rA``."""
    return dict(_summaries(log))


def read_pytest_options(log: str) -> dict[str, str]:
    """Reads the same, and cuts parameters that are absolute paths down to the last name."""
    return {_short(test): status for test, status in _summaries(log)}


def read_pytest_v2(log: str) -> dict[str, str]:
    """Reads the same in colour, and lines of pytest before 3 that end in the status."""
    statuses = {}
    for raw in log.split("\n"):
        line = _COLOR.sub("", raw).translate(_CONTROL)
        words = line.split()
        if found := _summary(line):
            statuses[found[0]] = found[1]
        elif line.endswith(_WORDS) and not line.startswith(_WORDS) and len(words) > 1:
            statuses[words[0]] = words[1]
    return statuses


def read_matplotlib(log: str) -> dict[str, str]:
    """Reads the same, with mouse buttons by number, as they were before they had names."""
    return read_pytest(log.replace("MouseButton.LEFT", "1").replace("MouseButton.RIGHT", "3"))


def read_seaborn(log: str) -> dict[str, str]:
    """Reads failures from the summary, and passes from there or from ``pytest -v``."""
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
    """Reads SymPy's own runner: titles of failures, then a line for each test."""
    statuses = {f"{m[1]}.py:{m[2]}": FAILED for m in _SYMPY_FAILURE.finditer(log)}
    for line in map(str.strip, log.split("\n")):
        for ending, status in _SYMPY_ENDINGS:
            if line.startswith("test_") and line.endswith(ending):
                statuses[line.split()[0]] = status
    return statuses


def read_django(log: str) -> dict[str, str]:
    """Reads Django's runner at verbosity 2; tests may print before they say how they ended."""
    statuses: dict[str, str] = {}
    began: str | None = None
    for line in map(str.strip, log.split("\n")):
        if " ... " in line:
            began = line.split(" ... ")[0]
        statuses.update(_django_line(line))
        if line.startswith("ok") and began is not None:
            statuses[began] = PASSED
    for pattern in _DJANGO_LOGGED:
        statuses.update((match[1], PASSED) for match in pattern.finditer(log))
    return statuses


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
    """Yields what a line says; where it says more than one thing of a test, the last counts."""
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


Read = Callable[[str], dict[str, str]]
PYTHON_FORMATS: dict[str, Read] = {
    "django": read_django,
    "matplotlib": read_matplotlib,
    "pytest": read_pytest,
    "pytest_options": read_pytest_options,
    "pytest_v2": read_pytest_v2,
    "seaborn": read_seaborn,
    "sympy": read_sympy,
}
