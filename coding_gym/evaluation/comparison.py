"""Comparison of two runs on the tasks that both have attempted."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from coding_gym.evaluation import statistics
from coding_gym.evaluation.report import (
    FEW_TASKS,
    Report,
    cells,
    markdown_table,
    number,
    percent,
    report,
)
from coding_gym.evaluation.statistics import PairedDifference
from coding_gym.json_record import JsonRecord

_OF_THE_MODEL = ("agent.model", "agent.base_url")
_COMPARED = ("agent", "tasks", "attempts", "seed", "episode", "versions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(JsonRecord):
    """How the second run, b, differs from the first, a; positive numbers mean more in b.

    Attributes:
        run_a: Run id of a, and its model.
        run_b: Run id of b, and its model.
        measure: What is compared: ``"resolved"``, or ``"hacked"`` for runs of impossible tasks.
        paired: The paired comparison of these rates.
        warnings: Settings other than the model by which the runs differ, tasks that only one has,
            and caveats of either run; the difference may be due to these.
    """

    run_a: str
    run_b: str
    measure: str
    paired: PairedDifference
    warnings: tuple[str, ...]

    def to_markdown(self) -> str:
        """Returns the comparison as a page: warnings, difference, tests, flips."""
        paired = self.paired
        rows = [
            (f"first: {self.run_a}", *cells(paired.rate_a, percent)),
            (f"second: {self.run_b}", *cells(paired.rate_b, percent)),
            ("change, second - first", *cells(paired.difference, percent)),
        ]
        tests = [
            ("tasks in both", paired.difference.num_tasks),
            ("tasks better in the second, worse", f"{paired.num_better}, {paired.num_worse}"),
            ("p-value, McNemar's exact test over tasks", number(paired.p_value)),
            ("Cohen's d", number(paired.cohens_d)),
        ]
        flips = [(task, *map(number, rates)) for task, rates in paired.flips.items()]
        return "\n\n".join(
            [
                f"# From {self.run_a} to {self.run_b}",
                *(f"> **Warning:** {warning}" for warning in self.warnings),
                markdown_table((self.measure, "rate", "95 % interval"), rows),
                markdown_table(("", ""), tests),
                markdown_table(("flipped task", "first", "second"), flips or [("none", "", "")]),
            ]
        )


def compare(a: str | Path | Report, b: str | Path | Report) -> Comparison:
    """Compares two runs by the tasks that both have attempted; see `paired_difference`.

    Args:
        a: The folder of the run to compare with, or its report.
        b: The folder of the run to compare, or its report.

    Raises:
        InvalidArgumentError: A folder holds no run, or the runs have no task in common.
    """
    first, second = (run if isinstance(run, Report) else report(run) for run in (a, b))
    are_resolved = [bool(run.values("resolved")) for run in (first, second)]
    measure = "resolved" if any(are_resolved) else "hacked"
    paired = statistics.paired_difference(first.values(measure), second.values(measure))
    return Comparison(
        run_a=f"{first.name} ({first.model})",
        run_b=f"{second.name} ({second.model})",
        measure=measure,
        paired=paired,
        warnings=(
            *setting_differences(first.config, second.config),
            *_caveats(first, second, paired, measure),
        ),
    )


def _caveats(
    first: Report, second: Report, paired: PairedDifference, measure: str
) -> Iterator[str]:
    for run in (first, second):
        yield from (f"{run.name}: {caveat}" for caveat in run.caveats)
    num_tasks = paired.difference.num_tasks
    num_a, num_b = (len(run.values(measure)) for run in (first, second))
    if num_tasks < max(num_a, num_b):
        yield f"Only the {num_tasks} tasks that both have are compared, of {num_a} and {num_b}."
    if len(paired.flips) < FEW_TASKS:
        yield (
            f"Only {len(paired.flips)} tasks differ: the interval of the difference is rough; the "
            "p-value is exact."
        )


def setting_differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """Returns a sentence for each setting other than the model that differs between two runs."""
    flat_a, flat_b = (dict(flat({name: run.get(name, {}) for name in _COMPARED})) for run in (a, b))
    names = (flat_a.keys() | flat_b.keys()) - {*_OF_THE_MODEL, "tasks.task_ids"}  # has a digest
    pairs = ((name, flat_a.get(name, "not set"), flat_b.get(name, "not set")) for name in names)
    return [
        f"{name} differs: {old!s:.80} in the first run, {new!s:.80} in the second."
        for name, old, new in sorted(pairs, key=itemgetter(0))
        if old != new
    ]


def flat(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yields nested settings with their names joined by dots."""
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
