"""Compares two runs on their common tasks, and ranks runs in a leaderboard."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coding_gym.evaluation import statistics
from coding_gym.evaluation.report import FEW_TASKS, Report, report
from coding_gym.evaluation.statistics import PairedDifference
from coding_gym.evaluation.tables import cells, flatten, markdown_table, number, percent
from coding_gym.json_record import JsonRecord

_COLUMNS = (
    *("rank", "run", "version", "model", "resolved", "95 % interval", "code similarity"),
    *("test similarity", "tokens used / limit", "tool calls / limit", "shell commands"),
)
_COMPARED_SETTINGS = ("agent", "tasks", "attempts", "seed", "episode", "versions")
_IGNORED_NAMES = {"agent.model", "agent.base_url", "tasks.task_ids"}  # tasks.digest has the ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(JsonRecord):
    """The difference between two runs; positive if the second run, b, has the higher rate.

    Attributes:
        run_a: Id and model of the first run.
        run_b: Id and model of the second run.
        measure: The compared rate: ``"resolved"``, or ``"hacked"`` for runs on impossible tasks.
        paired: The paired comparison of this rate.
        warnings: Other possible causes of the difference: settings other than the model, tasks
            that only one run attempted, and caveats of both runs.
    """

    run_a: str
    run_b: str
    measure: str
    paired: PairedDifference
    warnings: tuple[str, ...]

    def to_markdown(self) -> str:
        """Returns a Markdown page with warnings, rates, the paired test and flipped tasks."""
        paired = self.paired
        rows = [
            (f"first: {self.run_a}", *cells(paired.rate_a, percent)),
            (f"second: {self.run_b}", *cells(paired.rate_b, percent)),
            ("change, second - first", *cells(paired.difference, percent)),
        ]
        bootstrap = " to ".join(map(percent, paired.bootstrap or ())) or "-"
        tests = [
            ("tasks in both", paired.difference.num_tasks),
            ("tasks higher, tasks lower in the second", f"{paired.num_better}, {paired.num_worse}"),
            ("p-value, McNemar's exact test over tasks", number(paired.p_value)),
            ("bootstrap interval of the change", bootstrap),
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
    """Returns the comparison of two runs on their common tasks; see `paired_difference`.

    Args:
        a: The folder or the report of the first run.
        b: The folder or the report of the second run.

    Raises:
        InvalidArgumentError: A folder contains no run, or the runs have no task in common.
    """
    first, second = (run if isinstance(run, Report) else report(run) for run in (a, b))
    measure = "resolved" if first.values("resolved") or second.values("resolved") else "hacked"
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
        yield f"The runs have {num_a} and {num_b} tasks; {num_tasks} common tasks are compared."
    if len(paired.flips) < FEW_TASKS:
        yield (
            f"The runs differ on only {len(paired.flips)} tasks: the interval of the difference is "
            "approximate; the p-value is exact."
        )


def setting_differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """Returns a sentence for each setting, except the model, that differs between two runs."""
    configs = ({name: run.get(name, {}) for name in _COMPARED_SETTINGS} for run in (a, b))
    flat_a, flat_b = (dict(flatten(config)) for config in configs)
    names = (flat_a.keys() | flat_b.keys()) - _IGNORED_NAMES
    values = ((n, flat_a.get(n, "not set"), flat_b.get(n, "not set")) for n in sorted(names))
    return [
        f"{name} differs: {value_a!s:.80} in the first run, {value_b!s:.80} in the second."
        for name, value_a, value_b in values
        if value_a != value_b
    ]


def leaderboard(reports: Iterable[Report]) -> str:
    """Returns a Markdown table of runs, ranked by resolved rate, then by code similarity.

    Similarity is nano-agent's score (`patch_similarity`). Similarities, tokens of the chat (which
    ``max_tokens`` limits) and tool calls are means over tasks. The last column lists the shell
    commands that nano-agent counts, each with its mean number of uses.
    """
    reports = sorted(reports, key=_rank)
    rows = [(rank, *_row(report)) for rank, report in enumerate(reports, start=1)]
    table = markdown_table(_COLUMNS, rows)
    notes = [f"- {report.name}: {caveat}" for report in reports for caveat in report.caveats]
    return "\n".join([table, *([""] if notes else []), *notes, ""])


def _mean(report: Report, name: str) -> float | None:
    """Returns the mean of a measure; None if the run lacks the measure."""
    return report.metrics[name].value if name in report.metrics else None


def _rank(report: Report) -> tuple[float, float, str]:
    """Returns a sort key: the highest resolved rate is first, a run without a rate last."""
    rate = -report.resolved.value if report.resolved else 1.0
    return rate, -(_mean(report, "code_similarity") or 0.0), report.name


def _row(report: Report) -> tuple[object, ...]:
    limits = report.config["episode"].get("limits") or {}
    return (
        report.name,
        report.config["versions"].get("coding-gym", "-"),
        report.model,
        *cells(report.resolved, percent),
        number(_mean(report, "code_similarity")),
        number(_mean(report, "test_similarity")),
        f"{number(_mean(report, 'tokens'))} / {number(limits.get('max_tokens'))}",
        f"{number(_mean(report, 'tool_calls'))} / {number(limits.get('max_tool_calls'))}",
        _shell_commands(report),
    )


def _shell_commands(report: Report) -> str:
    prefix = "shell_cmd_"
    names = [name for name in report.metrics if name.startswith(prefix)]
    ranked = sorted((-report.metrics[name].value, name.removeprefix(prefix)) for name in names)
    return ", ".join(f"{command} {number(-mean)}" for mean, command in ranked if mean) or "-"
