"""Computes the report on a run: rates with intervals, measures, stop reasons, errors, caveats."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coding_gym.episode.config import has_changed
from coding_gym.errors import CodingGymError, InvalidArgumentError, UnknownTaskError
from coding_gym.evaluation import statistics
from coding_gym.evaluation.health import Symptom, health_counts, symptoms
from coding_gym.evaluation.metrics import METRICS, RATES, episode_metrics, highest
from coding_gym.evaluation.statistics import Estimate, mean_estimate, resolved_rate, task_rates
from coding_gym.grade import GradeReason, Level
from coding_gym.json_record import JsonRecord
from coding_gym.rollout import RunFolder
from coding_gym.rollout.run_folder import ROWS
from coding_gym.task import Task
from coding_gym.tasks import load_tasks

FEW_TASKS = 10
"""With fewer resolved or fewer unresolved tasks, 95 % intervals can cover less than 95 %."""

_LABELS = ("task_id", "attempt", "seed", "stop_reason", "grade_reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(JsonRecord):
    """The results of one run.

    Attributes:
        config: The run's ``config.json``: agent, model, tasks, seed, versions.
        num_attempts: Number of attempts with a verdict at possible tasks; ``metrics["hacked"]``
            is the rate at impossible tasks.
        num_resolved: Number of attempts that resolve their task.
        num_errors: Number of attempts that ended with an error; no rate or mean counts them.
        resolved: The resolved rate, pass@1; None without a verdict.
        pass_at_k: pass@k by k, for powers of two and for the number of attempts per task.
        pass_hat_k: pass^k by k.
        metrics: Means over tasks of each measure of `METRICS` and of `tool_usage`, by name.
        stop_reasons: Number of attempts with a verdict by stop reason.
        grade_reasons: Number of attempts with a verdict by reason of the grade.
        error_classes: Number of attempts that ended with an error by class of the error.
        health: Failures of replies, requests and sandboxes, with remedies.
        caveats: Sentences that qualify the rates.
        episodes: For each attempt with a verdict, ``task_id``, ``attempt``, ``seed``,
            ``stop_reason``, ``grade_reason`` and the measures.
    """

    config: Mapping[str, Any]
    num_attempts: int
    num_resolved: int
    num_errors: int
    resolved: Estimate | None
    pass_at_k: Mapping[str, Estimate]
    pass_hat_k: Mapping[str, Estimate]
    metrics: Mapping[str, Estimate]
    stop_reasons: Mapping[str, int]
    error_classes: Mapping[str, int]
    grade_reasons: Mapping[str, int]
    health: tuple[Symptom, ...]
    caveats: tuple[str, ...]
    episodes: tuple[Mapping[str, Any], ...]

    @property
    def name(self) -> str:
        """The run's id."""
        return str(self.config["run_id"])

    @property
    def model(self) -> str:
        """The model's name; "-" for an agent without a model."""
        return self.config["agent"]["model"] or "-"

    def summary(self) -> str:
        """Returns lines of text: the agent, the rates with intervals, caveats, and failures."""
        agent, tasks = self.config["agent"], counted(len(self.values("resolved")), "task")
        player = f"{agent['name']} {agent['model']}".rstrip()
        facts = []
        if self.num_attempts:
            attempts = counted(self.num_attempts, "attempt")
            facts.append(f"{self.num_resolved} of {attempts} resolved at {tasks}")
        if hacked := [value for values in self.values("hacked").values() for value in values]:
            attempts = counted(len(hacked), "impossible attempt")
            facts.append(f"{sum(hacked):.0f} of {attempts} hacked")
        first = f"{player}: {'; '.join(facts) or 'no attempt was graded'}"
        unresolved = {k: v for k, v in self.grade_reasons.items() if k != GradeReason.RESOLVED}
        if facts and unresolved:
            first += "\nnot resolved: " + ", ".join(f"{v} {k}" for k, v in unresolved.items())
        rates = (
            f"{name}: {value} (95 % interval {interval})"
            for name, value, interval, _ in _rates(self)
            if value != "-"
        )
        failures = (f"{s.name}: {s.count} of {s.total}; remedy: {s.remedy}" for s in self.health)
        return "\n".join((first, *rates, *self.caveats, *failures))

    def values(self, metric: str) -> dict[str, list[float]]:
        """Returns the values of a measure by task id; attempts without the measure are excluded."""
        return _by_task(self.episodes, metric)

    def to_markdown(self) -> str:
        """Returns the report as a Markdown page of tables."""
        attempts = [
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
            "each rate with its interval (Wilson's, clustered by task).",
            markdown_table(
                ("measure", "mean", "95 % interval", "meaning"), _measures(self.metrics)
            ),
            markdown_table(("attempts", "", ""), attempts),
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
            cannot be loaded or changed after the run, its attempts are not compared with the gold
            patch; a caveat reports this.

    Raises:
        InvalidArgumentError: The folder contains no run.
    """
    run = run if isinstance(run, RunFolder) else RunFolder.open(run)
    caveats: list[str] = []
    if tasks is None:
        try:
            tasks = run_tasks(run)
        except (CodingGymError, TypeError) as problem:  # config.json can contain any arguments
            caveats.append(f"The tasks with their gold patches could not be loaded: {problem}")
    tasks_by_id = {task.task_id: task for task in tasks or ()}
    health, classes = Counter[str](), Counter[str]()
    for record in run.errors():
        health.update(health_counts(record))
        classes[record.error_class] += 1
    episodes = _episodes(run, tasks_by_id, caveats, health)
    outcomes = _by_task(episodes, "resolved")
    max_attempts = max(map(len, outcomes.values()), default=0)
    powers = (2**power for power in range(max_attempts.bit_length()))
    ks = sorted({*powers, max_attempts} - {0})
    return Report(
        config=run.config,
        num_attempts=sum("resolved" in episode for episode in episodes),
        num_resolved=sum(episode.get("resolved") == 1 for episode in episodes),
        num_errors=classes.total(),
        resolved=resolved_rate(outcomes) if outcomes else None,
        pass_at_k={str(k): statistics.pass_at_k(outcomes, k) for k in ks},
        pass_hat_k={str(k): statistics.pass_hat_k(outcomes, k) for k in ks},
        metrics=_means(episodes),
        stop_reasons=_counts(episodes, "stop_reason"),
        grade_reasons=_counts(episodes, "grade_reason"),
        error_classes=dict(classes.most_common()),
        health=symptoms(health),
        caveats=(*caveats, *run_caveats(run.config, outcomes, classes, len(episodes))),
        episodes=tuple(episodes),
    )


def run_tasks(run: RunFolder) -> Sequence[Task]:
    """Returns the tasks of a run that its task source still contains.

    Raises:
        CodingGymError: No task of the run can be loaded.
    """
    source = {name: value for name, value in run.config["tasks"].items() if name != "digest"}
    if source["source"] == ROWS:
        raise InvalidArgumentError(
            f"{run.path} does not contain its tasks, which were passed as a list; pass the list "
            "again in Python: report(run, tasks=...) or regrade(run, tasks=...)"
        )
    try:
        return load_tasks(**source, needs_tests=False)
    except UnknownTaskError:
        tasks: list[Task] = []
        for task_id in sorted(dict(run.keys())):  # the tasks with a verdict
            with suppress(UnknownTaskError):
                tasks += load_tasks(**source | {"task_ids": task_id}, needs_tests=False)
        if not tasks:
            raise
        return tasks


def _episodes(
    run: RunFolder, tasks_by_id: Mapping[str, Task], caveats: list[str], health: Counter[str]
) -> list[dict[str, Any]]:
    """Returns `Report.episodes`; adds to ``caveats`` and ``health`` in place."""
    episodes: list[dict[str, Any]] = []
    changed, ungraded, unchallenged = set[str](), 0, 0
    for record in run.trajectories():
        health.update(health_counts(record))
        task = tasks_by_id.get(record.task_id)
        if tasks_by_id and (task is None or has_changed(task, record.settings)):
            changed.add(record.task_id)
            task = None
        ungraded += record.grade is None or record.grade.reason is GradeReason.NOT_GRADED
        levels = record.grade.levels if record.grade else {}
        unchallenged += record.resolved and levels.keys() <= {Level.STRUCTURE}
        stop_reason = str(record.stop_reason or "unfinished")
        grade_reason = str(record.grade.reason if record.grade else "no grade")
        values = record.task_id, record.attempt, record.seed, stop_reason, grade_reason
        labels = dict(zip(_LABELS, values, strict=True))
        measures = episode_metrics(record, task)
        if record.grade is None and not run.config.get("episode"):  # an imported run has no grades
            measures.pop("resolved", None)
        episodes.append(labels | measures)
    if changed:
        caveats.append(
            f"Not compared with gold patches: attempts at {counted(len(changed), 'task')} that "
            f"changed after the run, or were recorded by an older version, such as {min(changed)}."
        )
    if ungraded and any(episode.keys() & {"resolved", "hacked"} for episode in episodes):
        caveats.append(f"Not graded, and counted as not resolved: {counted(ungraded, 'attempt')}.")
    if unchallenged:
        caveats.append(
            f"Resolved by tests that were not negated ({Level.STRUCTURE}), and possibly forged: "
            f"{counted(unchallenged, 'attempt')}."
        )
    return episodes


def _counts(episodes: Iterable[Mapping[str, Any]], label: str) -> dict[str, int]:
    return dict(Counter(episode[label] for episode in episodes).most_common())


def _by_task(episodes: Iterable[Mapping[str, Any]], metric: str) -> dict[str, list[float]]:
    values: dict[str, list[float]] = {}
    for episode in episodes:
        if metric in episode:
            values.setdefault(episode["task_id"], []).append(episode[metric])
    return values


def run_caveats(
    config: Mapping[str, Any],
    outcomes: statistics.Outcomes,
    errors: Counter[str],
    num_graded: int,
) -> Iterator[str]:
    """Yields the sentences that qualify the rates of a run.

    Args:
        config: The settings of the run.
        outcomes: Scores, 0 or 1, of the attempts that the resolved rate counts, by task.
        errors: Number of attempts that ended with an error, by class.
        num_graded: Number of attempts with a verdict, including those at impossible tasks.
    """
    num_planned = len(config["tasks"]["task_ids"]) * config["attempts"]
    num_played = num_graded + errors.total()
    if errors:
        classes = ", ".join(f"{name} {count}" for name, count in errors.most_common())
        yield (
            f"{errors.total()} of {num_played} attempts ended with an error ({classes}) and are "
            "not counted; a resumed run repeats them."
        )
    if num_played < num_planned:
        yield f"The run is incomplete: {num_played} of {num_planned} attempts were played."
    num_resolved = task_rates(outcomes).sum()
    if outcomes and min(num_resolved, len(outcomes) - num_resolved) < FEW_TASKS:
        yield (
            f"Fewer than {FEW_TASKS} tasks are resolved, or fewer than {FEW_TASKS} are not: the "
            "intervals are approximate."
        )


def _means(episodes: Sequence[Mapping[str, Any]]) -> dict[str, Estimate]:
    """Returns, by measure, the mean over tasks of each task's mean, in the order of `METRICS`."""
    tool_measures = {name for episode in episodes for name in episode} - {*METRICS, *_LABELS}
    means = {}
    for name in (*METRICS, *sorted(tool_measures)):
        if values := _by_task(episodes, name):
            is_rate, rates = name in RATES, task_rates(values)
            means[name] = (
                resolved_rate(values) if is_rate else mean_estimate(rates, 0.0, highest(name))
            )
    return means


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Returns a Markdown table; pipes are escaped, and spaces replace line feeds."""
    lines = [header, ["---"] * len(header), *rows]
    cells = ([str(cell).replace("|", r"\|").replace("\n", " ") for cell in row] for row in lines)
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def counted(count: int, noun: str) -> str:
    """Returns a number and its noun, such as ``1 task`` or ``2 tasks``."""
    return f"{count} {noun}{'s' * (count != 1)}"


def number(value: float | None) -> str:
    """Returns a number as text with three significant digits; large numbers as integers."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"


def percent(value: float) -> str:
    """Returns a rate in percent."""
    return f"{round(100 * value, 1) + 0.0:.1f} %"  # adding 0.0 converts -0.0 to 0.0


def cells(estimate: Estimate | None, to_text: Callable[[float], str] = number) -> tuple[str, str]:
    """Returns a mean and its interval as two table cells; "-" replaces a missing value."""
    if estimate is None:
        return "-", "-"
    ends = [to_text(end) for end in (estimate.low, estimate.high) if end is not None]
    return to_text(estimate.value), " to ".join(ends) or "-"


def _settings(config: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    agent, tasks = config["agent"], config["tasks"]
    yield from (("agent", agent["name"]), ("model", agent["model"]))
    yield "sampling", _listed(agent.get("sampling", {}))
    yield "tasks", f"{tasks['source']}, {counted(len(tasks['task_ids']), 'task')}"
    yield from ((name, config[name]) for name in ("attempts", "seed"))
    yield from (("started", config["created_at"]), ("versions", _listed(config["versions"])))


def _listed(settings: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items()) or "-"


def _rates(report: Report) -> Iterator[tuple[object, ...]]:
    tasks = len(report.values("resolved"))
    yield "resolved (pass@1)", *cells(report.resolved, percent), tasks
    rates = {f"pass@{k}": rate for k, rate in report.pass_at_k.items() if k != "1"}
    rates |= {f"pass^{k}": rate for k, rate in report.pass_hat_k.items() if k != "1"}
    rates |= {name: report.metrics[name] for name in RATES[1:] if name in report.metrics}
    for name, rate in rates.items():
        yield name, *cells(rate, percent), rate.num_tasks


def _measures(metrics: Mapping[str, Estimate]) -> Iterator[tuple[object, ...]]:
    for name, estimate in metrics.items():
        if name not in RATES and (estimate.value or name in METRICS):
            yield name, *cells(estimate), METRICS.get(name, "as in nano-agent")
