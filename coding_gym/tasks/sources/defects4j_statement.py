"""What a user would have written about a bug of Defects4J: the failing code and its traceback."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from coding_gym.tasks.sources.junit_source import method_text

_SHOWN = 3
_MAX_FRAMES = 8
_HEADER = re.compile(r"^---\s+([\w.$]+)::(\w+)\s*$")
# Frames of the machinery under which the tests ran.
_MACHINERY = re.compile(r"^\s*at (?:sun\.|java\.|jdk\.|junit\.|org\.junit\.|org\.apache\.tools\.)")


@dataclass(frozen=True, slots=True)
class Failure:
    """A test that a bug breaks.

    Attributes:
        class_name: Its class, with its package.
        method: Its method.
        trace: What was thrown, and the project's own frames.
    """

    class_name: str
    method: str
    trace: tuple[str, ...]

    @property
    def test_id(self) -> str:
        """The test's name for the java runner."""
        return f"{self.class_name}::{self.method}"


def read_failures(text: str) -> tuple[Failure, ...]:
    """Reads a file of ``trigger_tests``."""
    failures: list[Failure] = []
    for line in text.splitlines():
        if header := _HEADER.match(line):
            failures.append(Failure(header[1], header[2], ()))
        elif failures and line.strip() and not _MACHINERY.match(line):
            last = failures[-1]
            failures[-1] = Failure(last.class_name, last.method, (*last.trace, line.rstrip()))
    return tuple(failures)


def statement(
    project: str,
    report: str,
    url: str,
    failures: tuple[Failure, ...],
    source: Callable[[str], str],
) -> str:
    """Returns the issue.

    Args:
        project: The project's name.
        report: The issue's name in its tracker.
        url: Where that is.
        failures: The tests that the bug breaks.
        source: Gives the source of a test class.
    """
    known = report if report.upper() != "UNKNOWN" else ""
    first = failures[0].trace[0].strip() if failures and failures[0].trace else "wrong behaviour"
    title = f"{project}: {first}" + (f" ({known})" if known else "")
    parts = [title]
    if known and url.startswith("http"):
        parts.append(f"Reported as {url}.")
    for failure in failures[:_SHOWN]:
        if code := _code(failure, source):
            parts += ["This should go through:", _indented(code.splitlines())]
        if failure.trace:
            parts += ["Instead:", _indented([line.strip() for line in failure.trace[:_MAX_FRAMES]])]
    if len(failures) > _SHOWN:
        parts.append(f"{len(failures) - _SHOWN} more cases fail in the same way.")
    return "\n\n".join(parts) + "\n"


def _code(failure: Failure, source: Callable[[str], str]) -> str:
    """Returns the text of a test, which may be one that its class inherits."""
    called = (re.match(rf"\s*at ([\w.]+)\.{failure.method}\(", line) for line in failure.trace)
    names = [failure.class_name, *(match[1] for match in called if match)]
    return next((code for name in names if (code := method_text(source(name), failure.method))), "")


def _indented(lines: list[str]) -> str:
    return "\n".join(f"    {line}".rstrip() for line in lines)
