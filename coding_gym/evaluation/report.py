"""Computes the report on a run: rates with intervals, measures, stop reasons, errors, caveats."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Self

from coding_gym.errors import CodingGymError
from coding_gym.evaluation import statistics
from coding_gym.evaluation.health import Symptom, health_counts, symptoms
from coding_gym.evaluation.metrics import METRICS, RATES, episode_metrics, upper_bound
from coding_gym.evaluation.run_tasks import load_run_tasks, unchanged_task
from coding_gym.evaluation.statistics import Estimate, mean_estimate, resolved_rate, task_rates
from coding_gym.evaluation.tables import cells, flatten, markdown_table, percent, quantity
from coding_gym.grade import GradeReason, Level
from coding_gym.json_record import JsonRecord
from coding_gym.run_folder import RunFolder
from coding_gym.task import Task
from coding_gym.trajectory import Trajectory

FEW_TASKS = 10
"""With fewer resolved or fewer unresolved tasks, 95 % intervals can cover less than 95 %."""

_LABELS = {
    *("task_id", "attempt", "seed", "error_class", "stop_reason", "grade_reason"),
    *("is_compared", "is_negated"),
}
"""The fields of `Report.attempts` that are not measures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(JsonRecord):
    """The results of one run.

    Attributes:
        config: The run's ``config.json``: agent, model, tasks, seed, versions.
        num_attempts: Number of attempts with a verdict at possible tasks; ``metrics["hacked"]``
            is the rate at impossible tasks.
        num_resolved: Number of attempts that resolve their task.
        num_errors: Number of attempts that ended with an error; rates and means exclude them.
        pass_at_k: pass@k by k: powers of two from 2, and the largest number of attempts at a task.
        pass_hat_k: pass^k by the same k.
        metrics: Means over tasks of each measure of `METRICS` and of `tool_usage`, by name.
        stop_reasons: Number of attempts with a verdict, by stop reason.
        grade_reasons: Number of attempts with a verdict, by reason of the grade.
        error_classes: Number of attempts that ended with an error, by class of the error.
        health: Failures of replies, requests and sandboxes, with remedies.
        caveats: Sentences that qualify the rates.
        attempts: For each attempt, ``task_id``, ``attempt``, ``seed``, ``error_class``,
            ``stop_reason``, ``grade_reason``, ``is_compared`` (with the gold patch) and
            ``is_negated`` (some tests were negated); and the measures, after a verdict.
    """

    config: Mapping[str, Any]
    num_attempts: int
    num_resolved: int
    num_errors: int
    pass_at_k: Mapping[str, Estimate]
    pass_hat_k: Mapping[str, Estimate]
    metrics: Mapping[str, Estimate]
    stop_reasons: Mapping[str, int]
    error_classes: Mapping[str, int]
    grade_reasons: Mapping[str, int]
    health: tuple[Symptom, ...]
    caveats: tuple[str, ...]
    attempts: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(
        cls,
        config: Mapping[str, Any],
        attempts: Sequence[Mapping[str, Any]],
        caveats: Iterable[str] = (),
        health: tuple[Symptom, ...] = (),
    ) -> Self:
        """Returns the report on attempts.

        Args:
            config: The settings of the run.
            attempts: As the attribute ``attempts``; labels other than ``task_id``, ``error_class``,
                ``stop_reason`` and ``grade_reason``, and all measures, may be missing.
            caveats: Caveats in addition to those of the rates.
            health: The failures.
        """
        graded_attempts = [row for row in attempts if not row["error_class"]]
        errors = [row for row in attempts if row["error_class"]]
        outcomes = _by_task(attempts, "resolved")
        report = cls(
            config=config,
            num_attempts=sum(map(len, outcomes.values())),
            num_resolved=round(sum(map(sum, outcomes.values()))),
            num_errors=len(errors),
            pass_at_k={str(k): statistics.pass_at_k(outcomes, k) for k in _ks(outcomes)},
            pass_hat_k={str(k): statistics.pass_hat_k(outcomes, k) for k in _ks(outcomes)},
            metrics=_means(attempts),
            stop_reasons=_counts(graded_attempts, "stop_reason"),
            grade_reasons=_counts(graded_attempts, "grade_reason"),
            error_classes=_counts(errors, "error_class"),
            health=health,
            caveats=(),
            attempts=tuple(attempts),
        )
        return replace(report, caveats=(*caveats, *_caveats(report)))

    def write(self, folder: Path) -> None:
        """Writes ``report.md`` and ``report.json`` into a folder."""
        (folder / "report.md").write_text(self.to_markdown() + "\n", encoding="utf-8")
        (folder / "report.json").write_text(json.dumps(self.to_json()) + "\n", encoding="utf-8")

    @property
    def name(self) -> str:
        """The run's id."""
        return str(self.config["run_id"])

    @property
    def model(self) -> str:
        """The model's name; "-" for an agent without a model."""
        return self.config["agent"]["model"] or "-"

    @property
    def resolved(self) -> Estimate | None:
        """The resolved rate, pass@1; None without a verdict at a possible task."""
        return self.metrics.get("resolved")

    def summary(self) -> str:
        """Returns lines of text: the agent, the rates with intervals, caveats, and failures."""
        agent, tasks = self.config["agent"], quantity(len(self.values("resolved")), "task")
        player = f"{agent['name']} {agent['model']}".rstrip()
        results = []
        if self.num_attempts:
            attempts = quantity(self.num_attempts, "attempt")
            results.append(f"{self.num_resolved} of {attempts} resolved at {tasks}")
        if hack_flags := [value for values in self.values("hacked").values() for value in values]:
            attempts = quantity(len(hack_flags), "impossible attempt")
            results.append(f"{sum(hack_flags):.0f} of {attempts} hacked")
        headline = f"{player}: {'; '.join(results) or 'no attempt was graded'}"
        reasons = [f"{n} {k}" for k, n in self.grade_reasons.items() if k != GradeReason.RESOLVED]
        if results and reasons:
            headline += "\nnot resolved: " + ", ".join(reasons)
        rates = (
            f"{name}: {value} (95 % interval {interval})"
            for name, value, interval, _ in _rates(self)
            if value != "-"
        )
        failures = (f"{s.name}: {s.count} of {s.total}; remedy: {s.remedy}" for s in self.health)
        notes = [self._ks_note()] if self.num_attempts else []
        return "\n".join((headline, *rates, *notes, *self.caveats, *failures))

    def values(self, metric: str) -> dict[str, list[float]]:
        """Returns the values of a measure by task id; attempts without the measure are excluded."""
        return _by_task(self.attempts, metric)

    def _ks_note(self) -> str:
        """Returns a sentence with each k of pass@k and pass^k, and the command for larger k."""
        note = f"pass@k and pass^k (all of k attempts) have k = {', '.join(['1', *self.pass_at_k])}"
        if not self.config.get("player"):  # `eval` cannot resume predictions and imported runs
            return note
        command = "coding-gym eval --out RUN --resume --attempts K"
        return f"{note}; for a larger k, play more attempts: {command}"

    def to_markdown(self) -> str:
        """Returns the report as a Markdown page of tables."""
        attempt_counts = [
            *(("grade", *reason) for reason in self.grade_reasons.items()),
            *(("stop reason", *reason) for reason in self.stop_reasons.items()),
            *(("error, not counted", *error) for error in self.error_classes.items()),
        ]
        parts = [
            f"# {self.name}",
            markdown_table(("setting", "value"), _settings(self.config)),
            *(f"> **Note:** {caveat}" for caveat in self.caveats),
            markdown_table(("rate", "value", "95 % interval", "tasks"), _rates(self)),
            "Rates are means over tasks and exclude attempts that ended with an error. Quote "
            "each rate with its interval (Wilson's, clustered by task). " + self._ks_note(),
            markdown_table(
                ("measure", "mean", "95 % interval", "meaning"), _measures(self.metrics)
            ),
            markdown_table(("attempts", "", ""), attempt_counts),
        ]
        failures = [(s.name, f"{s.count} of {s.total}", s.remedy) for s in self.health]
        if failures:
            parts.append(markdown_table(("failure", "count", "remedy"), failures))
        for kind, metric in (("task", "resolved"), ("impossible task", "hacked")):
            values = self.values(metric).items()
            if counts := [(task, f"{sum(flags):.0f}/{len(flags)}") for task, flags in values]:
                parts.append(markdown_table((kind, f"{metric} attempts"), counts))
        return "\n\n".join(parts)


def report(run: str | Path | RunFolder, tasks: Sequence[Task] | None = None) -> Report:
    """Returns the report on a run.

    Args:
        run: The run, or its folder.
        tasks: The tasks, for gold patches; by default the run's task source is loaded. If a task
            changed after the run or cannot be loaded, its attempts are not compared with the gold
            patch; a caveat reports this.

    Raises:
        InvalidArgumentError: The folder contains no run.
    """
    run = run if isinstance(run, RunFolder) else RunFolder.open(run)
    caveats: list[str] = []
    tasks_by_id: Mapping[str, Task] = {}
    try:
        tasks_by_id = load_run_tasks(run, tasks)
    except (CodingGymError, TypeError) as problem:  # config.json can contain any arguments
        caveats.append(f"The tasks with their gold patches could not be loaded: {problem}")
    rows: list[Mapping[str, Any]] = []
    health = Counter[str]()
    for record in chain(run.trajectories(), run.errors()):
        rows.append(_row(record, unchanged_task(tasks_by_id, record)))
        health += health_counts(record)
    caveats += _attempt_caveats(rows, has_tasks=bool(tasks_by_id))
    return Report.of(run.config, rows, caveats, symptoms(health))


def _row(record: Trajectory, task: Task | None) -> dict[str, Any]:
    """Returns an attempt's row of `Report.attempts`; ``task`` has the gold patch to compare."""
    grade = record.grade
    labels = {
        "task_id": record.task_id,
        "attempt": record.attempt,
        "seed": record.seed,
        "error_class": record.error_class,
        "stop_reason": str(record.stop_reason or "unfinished"),
        "grade_reason": str(grade.reason if grade else "no grade"),
        "is_compared": task is not None,
        "is_negated": grade is not None and not grade.levels.keys() <= {Level.STRUCTURE},
    }
    return labels if record.error_class else labels | episode_metrics(record, task)


def _attempt_caveats(attempts: Sequence[Mapping[str, Any]], *, has_tasks: bool) -> Iterator[str]:
    rows = [row for row in attempts if not row["error_class"]]
    task_ids = {row["task_id"] for row in rows if has_tasks and not row["is_compared"]}
    if task_ids:
        yield (
            f"Not compared with gold patches: attempts at {quantity(len(task_ids), 'task')} that "
            f"changed after the run or are no longer in the source, such as {min(task_ids)}."
        )
    if num_ungraded := sum(row["grade_reason"] == GradeReason.NOT_GRADED for row in rows):
        yield f"Not graded, and counted as not resolved: {quantity(num_ungraded, 'attempt')}."
    if num_forgeable := sum(row.get("resolved") == 1 and not row["is_negated"] for row in rows):
        yield (
            f"Resolved by tests that were not negated ({Level.STRUCTURE}), and possibly forged: "
            f"{quantity(num_forgeable, 'attempt')}."
        )


def _ks(outcomes: statistics.Outcomes) -> list[int]:
    """Returns each k of pass@k: powers of two, and the largest number of attempts at a task."""
    largest = max(map(len, outcomes.values()), default=0)
    return sorted({*(2**power for power in range(1, largest.bit_length())), largest} - {0, 1})


def _counts(rows: Iterable[Mapping[str, Any]], label: str) -> dict[str, int]:
    return dict(Counter(row[label] for row in rows).most_common())


def _by_task(rows: Iterable[Mapping[str, Any]], metric: str) -> dict[str, list[float]]:
    values: dict[str, list[float]] = {}
    for row in rows:
        if metric in row:
            values.setdefault(row["task_id"], []).append(row[metric])
    return values


def _caveats(report: Report) -> Iterator[str]:
    """Yields the sentences that qualify the rates of a report."""
    config, num_played = report.config, len(report.attempts)
    num_planned = len(config["tasks"]["task_ids"]) * config["attempts"]
    if report.num_errors:
        classes = ", ".join(f"{name} {count}" for name, count in report.error_classes.items())
        # Imported and recorded runs, which have no player, cannot be resumed.
        repeats = "; a resumed run repeats these attempts" if "player" in config else ""
        yield (
            f"{report.num_errors} of {num_played} attempts ended with an error ({classes}) and are "
            f"not counted{repeats}."
        )
    if num_played < num_planned:
        yield f"The run is incomplete: {num_played} of {num_planned} attempts were played."
    rates = task_rates(report.values("resolved"))
    if len(rates) and min(rates.sum(), len(rates) - rates.sum()) < FEW_TASKS:
        yield (
            f"Fewer than {FEW_TASKS} tasks are resolved, or fewer than {FEW_TASKS} are not: the "
            "intervals are approximate."
        )


def _means(rows: Sequence[Mapping[str, Any]]) -> dict[str, Estimate]:
    """Returns the mean over tasks of each task's mean, by measure, in the order of `METRICS`."""
    tool_measures = {name for row in rows for name in row} - {*METRICS} - _LABELS
    means = {}
    for name in (*METRICS, *sorted(tool_measures)):
        if values := _by_task(rows, name):
            is_rate, rates = name in RATES, task_rates(values)
            means[name] = (
                resolved_rate(values) if is_rate else mean_estimate(rates, 0.0, upper_bound(name))
            )
    return means


def _settings(config: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    settings = {name: value for name, value in config.items() if name not in ("player", "bounds")}
    unplanned = () if config["tasks"]["task_ids"] else ("attempts", "seed")
    excluded_names = ("tasks.task_ids", "agent.base_url", *unplanned)
    return ((name, value) for name, value in flatten(settings) if name not in excluded_names)


def _rates(report: Report) -> Iterator[tuple[object, ...]]:
    num_tasks = len(report.values("resolved"))
    yield "resolved (pass@1)", *cells(report.resolved, percent), num_tasks
    rates = {f"pass@{k}": rate for k, rate in report.pass_at_k.items()}
    rates |= {f"pass^{k}": rate for k, rate in report.pass_hat_k.items()}
    rates |= {name: report.metrics[name] for name in RATES[1:] if name in report.metrics}
    for name, rate in rates.items():
        yield name, *cells(rate, percent), rate.num_tasks


def _measures(metrics: Mapping[str, Estimate]) -> Iterator[tuple[object, ...]]:
    for name, estimate in metrics.items():
        if name not in RATES and (estimate.value or name in METRICS):
            yield name, *cells(estimate), METRICS.get(name, "as in nano-agent")
