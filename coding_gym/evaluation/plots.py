"""Plots of a report, drawn with matplotlib."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from coding_gym.errors import MissingDependencyError
from coding_gym.evaluation.report import Report
from coding_gym.evaluation.statistics import Estimate


def plot(report: Report, folder: str | Path) -> list[Path]:
    """Draws pass@k and pass^k, the resolved rate by difficulty, and histograms of turns and cost.

    Args:
        report: The report.
        folder: Where the files go; it is made as needed.

    Returns:
        PNG files: ``pass_at_k``, ``difficulty``, ``turns``, and ``cost`` where it is known.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, figure in _figures(report):
        files.append(folder / f"{name}.png")
        figure.savefig(files[-1], dpi=120)
    return files


def _figures(report: Report) -> Iterator[tuple[str, Any]]:
    if report.pass_at_k:
        figure, axes = _figure(report, "k", "rate")
        for label, rates in (("pass@k", report.pass_at_k), ("pass^k", report.pass_hat_k)):
            bars = _bars(rates.values())
            axes.errorbar([int(k) for k in rates], *bars, label=label, marker="o", capsize=4)
        axes.set_xticks([int(k) for k in report.pass_at_k])
        axes.set_ylim(0, 1)
        axes.legend()
        yield "pass_at_k", figure
    groups = report.by_difficulty
    resolved = {f"{n}\n{g.num_tasks} tasks": g.resolved for n, g in groups.items() if g.resolved}
    if resolved:
        figure, axes = _figure(report, "difficulty", "resolved")
        heights, errors = _bars(resolved.values())
        axes.bar([*resolved], heights, yerr=errors, capsize=4)
        axes.set_ylim(0, 1)
        yield "difficulty", figure
    for name in ("turns", "cost"):
        values = [(e["resolved"], e[name]) for e in report.episodes if name in e]
        if values:
            figure, axes = _figure(report, f"{name} of an attempt", "attempts")
            parts = [[value for is_in, value in values if is_in == kind] for kind in (1, 0)]
            axes.hist(parts, bins=20, stacked=True, label=["resolved", "not resolved"])
            axes.legend()
            yield name, figure


def _bars(rates: Iterable[Estimate | None]) -> tuple[list[float], list[list[float]]]:
    """Returns heights, and the lengths of their error bars below and above."""
    known = [e for e in rates if e is not None]
    below = [0.0 if e.low is None else e.value - e.low for e in known]
    above = [0.0 if e.high is None else e.high - e.value for e in known]
    return [e.value for e in known], [below, above]


def _figure(report: Report, x: str, y: str) -> tuple[Any, Any]:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingDependencyError(
            "matplotlib is not installed; run: pip install 'coding-gym[plot]'"
        ) from None
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.set(xlabel=x, ylabel=y, title=report.name)
    return figure, axes
