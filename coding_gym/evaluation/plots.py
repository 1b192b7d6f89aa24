"""Plots of a report, drawn with matplotlib."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coding_gym.evaluation.report import Report
from coding_gym.evaluation.statistics import Estimate
from coding_gym.optional import import_extra


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
    matplotlib = import_extra("matplotlib.figure", "plot")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    figures: dict[str, Any] = {}

    def axes(name: str, x: str, y: str) -> Any:
        figures[name] = matplotlib.Figure(figsize=(6, 4), layout="constrained")
        return figures[name].subplots(subplot_kw={"xlabel": x, "ylabel": y, "title": report.name})

    _errorbars(
        axes("pass_at_k", "k", "rate"), {"pass@k": report.pass_at_k, "pass^k": report.pass_hat_k}
    )
    resolved = {f"{n}\n{g.num_tasks} tasks": g.resolved for n, g in report.by_difficulty.items()}
    _errorbars(axes("difficulty", "difficulty", "rate"), {"resolved": resolved})
    for name in ("turns", "cost"):
        if values := [(e["resolved"], e[name]) for e in report.episodes if name in e]:
            parts = [[value for is_in, value in values if is_in == kind] for kind in (1, 0)]
            histogram = axes(name, f"{name} of an attempt", "attempts")
            histogram.hist(parts, bins=20, stacked=True, label=["resolved", "not resolved"])
    for name, figure in figures.items():
        figure.axes[0].legend()
        figure.savefig(folder / f"{name}.png", dpi=120)
    return [folder / f"{name}.png" for name in figures]


def _errorbars(axes: Any, series: Mapping[str, Mapping[str, Estimate | None]]) -> None:
    """Draws rates by name with their intervals."""
    for label, rates in series.items():
        known = {name: rate for name, rate in rates.items() if rate is not None}
        below = [0.0 if e.low is None else e.value - e.low for e in known.values()]
        above = [0.0 if e.high is None else e.high - e.value for e in known.values()]
        values = [e.value for e in known.values()]
        axes.errorbar([*known], values, [below, above], label=label, marker="o", capsize=4)
    axes.set_ylim(0, 1)
