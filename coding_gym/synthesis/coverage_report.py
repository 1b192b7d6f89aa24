"""The tests of a project that is not broken: which can be trusted, and what each of them runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from coding_gym.errors import InvalidTaskError

if TYPE_CHECKING:
    from coding_gym.synthesis.replies import CoverageReply, TraceReply


@dataclass(frozen=True, slots=True)
class SuiteTest:
    """One test of the project.

    Attributes:
        test_id: Its id.
        path: The file that holds its function, relative to the tree; "" where it is no function.
        line: Where the function begins, with its decorators.
        is_trusted: Whether it passed in every run, in either order.
    """

    test_id: str
    path: str
    line: int
    is_trusted: bool


@dataclass(frozen=True, slots=True)
class Start:
    """What is done once for many runs of a project's tests.

    Attributes:
        modules: What the tests need next to the project, to be imported.
        shares_pytest: Whether pytest itself may start once for many: tests then end alike.
    """

    modules: tuple[str, ...] = ()
    shares_pytest: bool = False

    @classmethod
    def of(cls, reply: "CoverageReply | TraceReply") -> "Start":
        """Returns what a first run of the tests shows."""
        return cls(tuple(reply.preload), reply.shares)


@dataclass(frozen=True)
class CoverageReport:
    """The tests of a project that is not broken, and the lines that each test runs.

    Attributes:
        tests: All of them, in the order of the run.
        lines: By file and line, the tests that run it, as a bit set.
        imported: By file, the lines that run while tests are collected.
        spawning: Ids of tests that start processes, whose lines are not known.
        cpu_s: Processor seconds of a run of all tests.
        start: What is done once for many runs.
    """

    tests: tuple[SuiteTest, ...]
    lines: Mapping[str, Mapping[int, int]] = field(repr=False)
    imported: Mapping[str, frozenset[int]] = field(repr=False)
    spawning: frozenset[str]
    cpu_s: float
    start: Start = field(repr=False)

    @cached_property
    def by_id(self) -> Mapping[str, SuiteTest]:
        """The tests by their ids."""
        return {test.test_id: test for test in self.tests}

    @cached_property
    def trusted(self) -> tuple[str, ...]:
        """Ids of the tests that always pass."""
        return tuple(test.test_id for test in self.tests if test.is_trusted)

    @property
    def untrusted(self) -> tuple[str, ...]:
        """Ids of the tests that fail, are skipped, or depend on chance or order."""
        return tuple(test.test_id for test in self.tests if not test.is_trusted)

    def is_run(self, path: str, lines: range) -> bool:
        """Returns whether a test, or the collection of tests, runs any of these lines."""
        by_line, imported = self.lines.get(path, {}), self.imported.get(path, frozenset())
        return any(line in by_line or line in imported for line in lines)

    def tests_of(self, path: str, lines: range) -> tuple[str, ...]:
        """Returns ids of the trusted tests that a change of these lines may break."""
        if self.imported.get(path, frozenset()).intersection(lines):
            return self.trusted
        bits = 0
        for line in lines:
            bits |= self.lines.get(path, {}).get(line, 0)
        return tuple(
            test.test_id
            for number, test in enumerate(self.tests)
            if test.is_trusted and (bits >> number & 1 or test.test_id in self.spawning)
        )


def read_coverage(data: bytes) -> CoverageReport:
    """Reads what ``inside/line_coverage.py`` replied.

    Raises:
        InvalidTaskError: There are no tests, or none can be used; says why.
        SandboxError: It is no such reply.
    """
    from coding_gym.synthesis.replies import CoverageReply, Refusal, read_reply

    if error := read_reply(Refusal, data).error:
        raise InvalidTaskError(
            f"the tests cannot be run: {error} (install what they need with "
            "--install, or choose others with --tests)"
        )
    reply = read_reply(CoverageReply, data)
    _check_reply(reply)
    spawning = set(reply.spawning)
    return CoverageReport(
        tests=tuple(SuiteTest(*test) for test in reply.tests),
        lines={
            path: {line: int(bits, 16) for line, bits in by_line.items()}
            for path, by_line in reply.lines.items()
        },
        imported={path: frozenset(lines) for path, lines in reply.imported.items()},
        spawning=frozenset(test[0] for n, test in enumerate(reply.tests) if n in spawning),
        cpu_s=reply.cpu_s,
        start=Start.of(reply),
    )


def _check_reply(reply: "CoverageReply") -> None:
    if not reply.tests:
        raise InvalidTaskError(
            "no tests were found; name the test files or folders (--tests), and what the tests "
            "need (--install)"
        )
    if reply.copies:
        raise InvalidTaskError(
            f"the environment holds a copy of the project ({reply.copies[0]}), in which a "
            "policy could read the repair; install it with pip's -e"
        )
    if not any(is_trusted for *_, is_trusted in reply.tests):
        failure = reply.failure
        said = f"{failure.kind}: {failure.message}" if failure else "all are skipped"
        first = said.strip(": ").splitlines()[:1]
        raise InvalidTaskError(
            f"none of the {len(reply.tests)} tests passes before anything is broken; the first "
            f"says: {''.join(first)}"
        )
