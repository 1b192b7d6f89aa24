"""The logs of SWE-bench Multilingual's projects, read as SWE-bench 4.1.0 reads them.

Most formats have one line for each test: a pattern with the groups ``how`` and ``test``, and what
the words mean. Blanks around a line do not count. Source: SWE-bench, ``harness/log_parsers/``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from coding_gym.grading.formats.swebench_python import FAILED, PASSED, SKIPPED, Read

_CROSS = "\N{MULTIPLICATION SIGN}"
_TIME = r"(?: \(\d+\s*m?s\))?"
_WHERE = re.compile(r"\s+in\s+\S+$")


@dataclass(frozen=True, slots=True)
class _Lines:
    """A format of one line for each test."""

    pattern: re.Pattern[str]
    words: Mapping[str, str]

    def __call__(self, log: str) -> dict[str, str]:
        found = (self.pattern.match(line.strip()) for line in log.split("\n"))
        return {
            self._name(match): self.words[match["how"]]
            for match in found
            if match is not None and match["how"] in self.words
        }

    def _name(self, match: re.Match[str]) -> str:
        # Redis says where a test failed, behind its name.
        return _WHERE.sub("", match["test"]) if match["how"] == "err" else match["test"]


def _lines(pattern: str, passed: str, failed: str, skipped: str = "") -> _Lines:
    """Returns a format by its words, several of a kind with blanks between them."""
    words = dict.fromkeys(passed.split(), PASSED)
    words |= dict.fromkeys(failed.split(), FAILED) | dict.fromkeys(skipped.split(), SKIPPED)
    return _Lines(re.compile(pattern), words)


def read_maven(log: str) -> dict[str, str]:
    """Reads one ``mvn -Dtest=NAME`` after the other, by whether the build succeeded."""
    statuses = {}
    test = "---NO TEST NAME FOUND YET---"
    for line in map(str.strip, log.split("\n")):
        if named := re.match(r".*-Dtest=(\S+)", line):
            test = named[1]
        if line.endswith("BUILD SUCCESS"):
            statuses[test] = PASSED
        elif line.endswith("BUILD FAILURE"):
            statuses[test] = FAILED
    return statuses


def read_phpunit(log: str) -> dict[str, str]:
    """Reads ``phpunit --testdox``: the title of a suite, then its tests."""
    words = {"✔": PASSED, "✘": FAILED, "↩": SKIPPED}
    statuses = {}
    suite: str | None = None
    for line in log.split("\n"):
        if title := re.fullmatch(r"(\w.+) \(.+\)", line):
            suite = title[1]
        elif test := re.fullmatch(r"\s*([✔✘↩])\s*(.*)", line):
            statuses[f"{suite} > {test[2]}"] = words[test[1]]
    return statuses


OTHER_FORMATS: dict[str, Read] = {
    "ant": _lines(r"\[junit\]\s+\[(?P<how>PASS|FAIL|ERR)\]\s+(?P<test>.*)$", "PASS", "FAIL ERR"),
    "cargo": _lines(r"test\s+(?P<test>\S+)\s+\.{3}\s+(?P<how>\w+)$", "ok", "FAILED"),
    "cucumber": _lines(r"(?P<test>.*) \.+(?P<how>\.|F)", ".", "F"),
    "googletest": _lines(r".*\[\s*(?P<how>OK|FAILED)\s*\]\s(?P<test>.*)\s\(.*\)$", "OK", "FAILED"),
    "gotest": _lines(r"--- (?P<how>PASS|FAIL|SKIP): (?P<test>.+) \(.+\)$", "PASS", "FAIL", "SKIP"),
    "gradle": _lines(r"(?P<test>[^>].+)\s+(?P<how>PASSED|FAILED)$", "PASSED", "FAILED"),
    "jest": _lines(rf"(?P<how>[✓✕○])\s(?P<test>.+?){_TIME}$".replace(" ", r"\s"), "✓", "✕", "○"),
    "jest_json": _lines(r"\[(?P<how>PASSED|FAILED)\]\s(?P<test>.+)$", "PASSED", "FAILED"),
    "jq": _lines(r"(?P<how>PASS|FAIL):\s(?P<test>.+)$", "PASS", "FAIL"),
    "maven": read_maven,
    "micropython": _lines(r"(?P<how>pass|FAIL|skip)\s+(?P<test>.+)$", "pass", "FAIL", "skip"),
    "minitest": _lines(r"(?P<test>.+)\. .*=.*(?P<how>\.|F|E).*$", ".", "F E"),
    "phpunit": read_phpunit,
    "redis": _lines(
        rf"\[(?P<how>ok|err|skip|ignore)\]:\s(?P<test>.+?){_TIME}$".replace(" ", r"\s"),
        "ok",
        "err",
        "skip ignore",
    ),
    "rspec": _lines(r"(?P<test>.+) - (?P<how>passed|failed)", "passed", "failed"),
    "ruby_unit": _lines(r"(?:test: )?(?P<test>.+):\s+(?P<how>\.|E\b|F\b|O\b)", ".", "E F", "O"),
    "tap": _Lines(
        re.compile(r"(?P<how>ok|not ok) \d+ (?P<test>.+)$"), {"ok": PASSED, "not ok": FAILED}
    ),
    "vitest": _lines(
        rf"(?P<how>[✓{_CROSS}↓])\s(?P<test>.+?)(?:\s(?:\d+\s*m?s?|\[skipped\]))?$",
        "✓",
        _CROSS,
        "↓",
    ),
}
