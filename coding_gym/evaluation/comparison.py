"""Comparison of two runs on the tasks that both have attempted."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coding_gym.evaluation import statistics
from coding_gym.evaluation.metrics import METRICS, RATES
from coding_gym.evaluation.report import (
    FEW_TASKS,
    Report,
    cells,
    markdown_table,
    number,
    percent,
    report,
)
from coding_gym.evaluation.statistics import Estimate, PairedDifference
from coding_gym.json_record import JsonRecord

_OF_THE_MODEL = ("agent.model", "agent.base_url")
_COMPARED = ("agent", "tasks", "attempts", "seed", "episode", "versions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(JsonRecord):
    """How run b differs from run a.

    Attributes:
        run_a: Run id of a, and its model.
        run_b: Run id of b, and its model.
        resolved: The paired comparison of resolved rates.
        metrics: Mean over common tasks of b's measure less a's, by name.
        num_only_a: Tasks that only a has attempted.
        num_only_b: Tasks that only b has attempted.
        warnings: Settings other than the model by which the runs differ, and caveats of either
            run; the difference may be due to these.
    """

    run_a: str
    run_b: str
    resolved: PairedDifference
    metrics: Mapping[str, Estimate]
    num_only_a: int
    num_only_b: int
    warnings: tuple[str, ...]

    def to_markdown(self) -> str:
        """Returns the comparison as a page: warnings, difference, tests, measures, flips."""
        paired = self.resolved
        rows = [
            (f"a: {self.run_a}", *cells(paired.rate_a, percent)),
            (f"b: {self.run_b}", *cells(paired.rate_b, percent)),
            ("b - a", *cells(paired.difference, percent)),
        ]
        counts = f"{paired.difference.num_tasks}, {self.num_only_a}, {self.num_only_b}"
        tests = [
            ("tasks in both, only in a, only in b", counts),
            ("better in b, worse in b", f"{paired.num_better}, {paired.num_worse}"),
            ("p-value, McNemar's exact test over tasks", number(paired.p_value)),
            ("Cohen's d", number(paired.cohens_d)),
        ]
        changes = [(name, *cells(change)) for name, change in self.metrics.items()]
        flips = [(task, *map(number, rates)) for task, rates in paired.flips.items()]
        return "\n\n".join(
            [
                f"# {self.run_b} against {self.run_a}",
                *(f"> **Warning:** {warning}" for warning in self.warnings),
                markdown_table(("resolved", "rate", "95 % interval"), rows),
                markdown_table(("", ""), tests),
                markdown_table(("measure", "b - a", "95 % interval"), changes),
                markdown_table(("flipped task", "a", "b"), flips or [("none", "", "")]),
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
    tasks_a, tasks_b = first.values("resolved"), second.values("resolved")
    names = [f"{one.name} ({one.model})" for one in (first, second)]
    caveats = [f"{one.name}: {caveat}" for one in (first, second) for caveat in one.caveats]
    resolved = statistics.paired_difference(tasks_a, tasks_b)
    if len(resolved.flips) < FEW_TASKS:
        caveats.append(
            f"Only {len(resolved.flips)} tasks differ: the interval of the difference is "
            "rough; the p-value is exact."
        )
    return Comparison(
        run_a=names[0],
        run_b=names[1],
        resolved=resolved,
        metrics=dict(_differences(first, second)),
        num_only_a=len(tasks_a.keys() - tasks_b.keys()),
        num_only_b=len(tasks_b.keys() - tasks_a.keys()),
        warnings=(*setting_differences(first.config, second.config), *caveats),
    )


def setting_differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """Returns a sentence for each setting other than the model that differs between two runs."""
    flat_a, flat_b = (
        dict(_flat({name: run.get(name, {}) for name in _COMPARED})) for run in (a, b)
    )
    said = []
    for name in sorted(flat_a.keys() | flat_b.keys()):
        old, new = flat_a.get(name, "not set"), flat_b.get(name, "not set")
        if old == new or name in _OF_THE_MODEL:
            continue
        if name == "tasks.task_ids":
            old, new = (f"{len(x)} tasks" if isinstance(x, list) else x for x in (old, new))
        said.append(f"{name} differs: {old!s:.80} in a, {new!s:.80} in b.")
    return said


def _flat(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _differences(a: Report, b: Report) -> Iterator[tuple[str, Estimate]]:
    for name in [name for name in METRICS if name not in RATES]:
        of_a, of_b = a.values(name), b.values(name)
        common = sorted(of_a.keys() & of_b.keys())
        if common:
            changes = [float(np.mean(of_b[task]) - np.mean(of_a[task])) for task in common]
            yield name, statistics.mean_estimate(changes)
