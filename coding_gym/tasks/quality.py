"""What a set of tasks is worth, in one table: the gate that it passes before others train on it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from coding_gym.grade import GradeReason, Level, num_below
from coding_gym.patch import Patch
from coding_gym.task import Task
from coding_gym.tasks.validation_report import ValidationReport

_MIN_CHARS = 24  # as of the lines in which leaks are looked for
_MAX_NAMED = 3


@dataclass(frozen=True, slots=True)
class Measure:
    """One line of the table.

    Attributes:
        name: What is good.
        num_good: Of how many tasks, tests or mutants that holds.
        num_all: Of how many it was asked; 0 where nothing could be asked.
        exceptions: Ids of some tasks of which it does not hold.
    """

    name: str
    num_good: int
    num_all: int
    exceptions: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """The share of the good ones, from 0 to 1; 1 where nothing could be asked."""
        return self.num_good / self.num_all if self.num_all else 1.0


def measure(tasks: Sequence[Task], reports: Sequence[ValidationReport]) -> tuple[Measure, ...]:
    """Returns what validation, and the rows themselves, say about a set of tasks.

    Args:
        tasks: The tasks.
        reports: What `coding_gym.tasks.validation.validate` found out about them, in their order.
            Tasks that were skipped, or could not be built, count where their rows are read only.
    """
    seen = [one for one in reports if one.gold_reasons and one.noop_reasons]
    levels = [one.levels for one in seen]
    num_tests = sum(sum(one.values()) for one in levels)
    num_weak = sum(num_below(one, Level.ERROR) for one in levels)
    num_mutants = sum(one.num_mutants for one in seen)
    num_caught = sum(one.num_caught_mutants for one in seen)
    return (
        _of_tasks("was built and graded", seen, [one for one in reports if not one.skipped]),
        _of_tasks(
            "gold patch resolves",
            [one for one in seen if set(one.gold_reasons) == {GradeReason.RESOLVED}],
            seen,
        ),
        _of_tasks(
            "unrepaired tree does not",
            [one for one in seen if GradeReason.RESOLVED not in one.noop_reasons],
            seen,
        ),
        _of_tasks(
            "no flaky test",
            [one for one in seen if not (one.flaky_tests or one.unstable_tests)],
            seen,
        ),
        _of_tasks(
            "repair is not readable in the sandbox",
            [one for one in seen if not (one.leaks or one.leak_error)],
            seen,
        ),
        _of_tasks("repair is not in the issue", [t for t in tasks if not _gives_away(t)], tasks),
        _of_tasks("no duplicate", list(_first_of_each(tasks)), tasks),
        Measure("tests of bugs challenged by value or error", num_tests - num_weak, num_tests),
        Measure("mutants of gold patches that tests catch", num_caught, num_mutants),
    )


def badge(measures: Iterable[Measure], num_valid: int, num_tasks: int) -> str:
    """Returns a line of Markdown for a dataset card: valid tasks, and how strong tests are."""
    colour = "brightgreen" if num_valid == num_tasks else "yellow"
    said = f"{num_valid} of {num_tasks} tasks valid"
    *_, mutants = measures
    if mutants.num_all:
        said += f", tests catch {mutants.share:.0%} of mutants"
    label = quote(said.replace("-", "--").replace("_", "__"))
    return f"![coding-gym: {said}](https://img.shields.io/badge/coding--gym-{label}-{colour})"


def _of_tasks(
    name: str,
    good: Sequence[Task | ValidationReport],
    every: Sequence[Task | ValidationReport],
) -> Measure:
    ids = {one.task_id for one in good}
    bad = tuple(one.task_id for one in every if one.task_id not in ids)
    return Measure(name, len(good), len(every), bad[:_MAX_NAMED])


def _gives_away(task: Task) -> bool:
    """Whether the issue shows every line that the gold patch adds."""
    lines = [line for line in _changed(task) if line.startswith("+")]
    added = [line[1:].strip() for line in lines if line[1:].strip()]
    said = {line.strip() for line in task.problem_statement.splitlines()}
    return sum(map(len, added)) >= _MIN_CHARS and said.issuperset(added)


def _first_of_each(tasks: Iterable[Task]) -> Iterator[Task]:
    """Yields the tasks of which no earlier one has the same issue, or the same repair."""
    seen: set[tuple[str, str]] = set()
    for task in tasks:
        issue = re.sub(r"\W+", " ", task.problem_statement).strip().lower()
        repair = "\n".join(sorted(_changed(task)))
        keys = {(task.repo, text) for text in (issue, repair) if text}
        if not keys & seen:
            yield task
        seen |= keys


def _changed(task: Task) -> Iterator[str]:
    """Yields the lines that a gold patch removes and adds, with their marks, and their files."""
    for change in Patch(task.gold_patch).files:
        yield change.path
        for line in change.text.splitlines():
            if line[:1] in {"+", "-"} and not line.startswith(("+++ ", "--- ")):
                yield line
