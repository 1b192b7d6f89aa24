"""Figures with their targets: how they are measured, shown, kept and drawn.

A benchmark measures a list of `Figure` and ends with `report`, which appends one line to
``<benchmark>.jsonl`` in a folder: ``machine``, ``date``, ``rounds``, ``figures``. The pages quote
the lines in ``benchmarks/results``, by ``benchmarks/summary.py``.
"""

import argparse
import importlib
import json
import logging
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

Bench = Callable[[int], "list[Figure]"]
BLOCK = 10
RESULTS = Path(__file__).parent / "results"  # what the pages quote
OWN = Path(__file__).parents[1] / ".bench"  # of this machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured value, or why there is none.

    Attributes:
        name: What it is of.
        value: The median; None where it could not be measured.
        unit: ``"ms"``, ``"s"``, ``"MB"``; "" for a ratio.
        target: What it should be; None for what is only shown.
        is_floor: Whether the target is the least, rather than the most.
        absent: Why there is no value.
        details: The samples' spread and what else tells how it was measured.
    """

    name: str
    value: float | None = None
    unit: str = ""
    target: float | None = None
    is_floor: bool = False
    absent: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None where there is no value or no target."""
        if self.value is None or self.target is None:
            return None
        return self.value >= self.target if self.is_floor else self.value <= self.target

    def to_json(self) -> dict[str, Any]:
        """Returns the figure as a JSON object, ``met`` included."""
        return asdict(self) | {"met": self.met}


def parser(
    about: str | None, names: Mapping[str, object] | None = None, rounds: int | None = 200
) -> argparse.ArgumentParser:
    """Returns the options that the benchmarks share.

    Args:
        about: What ``--help`` says.
        names: What ``--only`` picks of; without any there is no such option.
        rounds: How many samples are taken by default; None: there is no such option.
    """
    made = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    if rounds is not None:
        made.add_argument(
            "--rounds", type=at_least(1), default=rounds, help=f"samples of each (default {rounds})"
        )
    if names is not None:
        made.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    made.add_argument("--json", action="store_true", help="print one JSON line, not the table")
    made.add_argument("--results", type=Path, default=OWN, help="a folder (default: .bench)")
    return made


def measure(benches: Mapping[str, Bench], options: argparse.Namespace) -> list[Figure]:
    """Runs the benchmarks that were asked for and returns their figures."""
    logging.getLogger("coding_gym").setLevel(logging.ERROR)  # resets drop episodes on purpose
    figures: list[Figure] = []
    for name, bench in benches.items():
        if options.only is None or name in options.only:
            progress(name)
            figures += bench(options.rounds)
    return figures


def report(title: str, figures: list[Figure], options: argparse.Namespace, **facts: Any) -> None:
    """Shows and keeps the figures, and ends with 1 where one missed its target."""
    row = keep(title, figures, options.results, **facts)
    if options.json:
        print(json.dumps(row))
    else:
        show(figures)
    sys.exit(any(figure.met is False for figure in figures))


def machine() -> dict[str, Any]:
    """Returns what the figures depend on."""
    root = Path(__file__).parents[1]

    def git(*words: str) -> str:
        argv = ["git", "-C", str(root), *words]
        return subprocess.run(argv, capture_output=True, text=True, check=False).stdout.strip()

    changed = git("status", "--porcelain", "--", "coding_gym", "benchmarks/*.py")
    return {
        "commit": git("rev-parse", "--short", "HEAD") + ("+" if changed else ""),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "root": os.geteuid() == 0,
        "load": round(os.getloadavg()[0], 2),
    }


def at_least(least: int) -> Callable[[str], int]:
    """Returns a type for ``argparse``: integers of at least so many."""

    def integer(text: str) -> int:
        if int(text) < least:
            raise ValueError
        return int(text)

    return integer


def timed_ms(work: Callable[[], object]) -> float:
    """Returns how long one call took, in milliseconds."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3


def spread(samples: Sequence[float]) -> dict[str, float]:
    """Returns the median, the 10th and the 90th percentile, and how many samples there are."""
    many = samples if len(samples) > 1 else [*samples, *samples]
    cuts = statistics.quantiles(many, n=10, method="inclusive")
    return {
        "median": round(statistics.median(samples), 4),
        "p10": round(cuts[0], 4),
        "p90": round(cuts[-1], 4),
        "samples": len(samples),
    }


def interleaved(works: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Times each piece of work once per round, so that noise hits all; in milliseconds.

    A tenth more rounds come first, untimed.
    """
    samples: dict[str, list[float]] = {name: [] for name in works}
    num_warm = max(1, rounds // 10)
    for number in range(num_warm + rounds):
        for name, work in works.items():
            took = timed_ms(work)
            if number >= num_warm:
                samples[name].append(took)
    return samples


def in_blocks(
    works: Mapping[str, Callable[[], object]], rounds: int, block: int = BLOCK
) -> dict[str, list[float]]:
    """Times each piece of work ``block`` times in a row, block by block in turn; in milliseconds.

    For what leaves the machine in a state of its own, as the eight processes of a ``docker exec``
    do: a command right after it waits for memory that they pushed out of the processor's caches,
    which no user would see who has chosen the one or the other. The first of a block is untimed.
    """
    samples: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(max(2, rounds // block)):
        for name, work in works.items():
            work()
            samples[name] += [timed_ms(work) for _ in range(block)]
    return samples


def ratio(
    name: str,
    above: Sequence[float],
    below: Sequence[float],
    target: float | None = None,
    **more: Any,
) -> Figure:
    """Returns the ratio of two medians as a figure."""
    value = statistics.median(above) / statistics.median(below)
    details = {"above_ms": spread(above), "below_ms": spread(below)}
    return Figure(name=name, value=round(value, 3), target=target, details=details, **more)


def median(name: str, samples: Sequence[float], unit: str, target: float | None) -> Figure:
    """Returns a median as a figure."""
    value = round(statistics.median(samples), 3)
    return Figure(name=name, value=value, unit=unit, target=target, details=spread(samples))


def progress(text: str) -> None:
    """Tells a person who waits what is being measured."""
    print(text, file=sys.stderr, flush=True)


def show(figures: Sequence[Figure]) -> None:
    """Prints the table."""
    print(f"\n{'':<66}{'measured':>12}{'target':>12}")
    for figure in figures:
        if figure.value is None:
            print(f"{figure.name:<66}{'absent':>12}  {figure.absent}")
            continue
        target = (
            "" if figure.target is None else f"{'≥' if figure.is_floor else '≤'} {figure.target:g}"
        )
        verdict = {True: "met", False: "MISSED", None: ""}[figure.met]
        times = figure.details.get("times_ours")
        verdict = verdict if times is None else f"{times:.2f} times ours"
        print(f"{figure.name:<66}{figure.value:>9.3g} {figure.unit:<2}{target:>12}  {verdict}")


def keep(title: str, figures: Sequence[Figure], folder: Path, **facts: Any) -> dict[str, Any]:
    """Appends one JSON line to the results, draws the plot, and returns what the line says."""
    row = {
        "machine": machine(),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **facts,
        "figures": [figure.to_json() for figure in figures],
    }
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{title}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    draw(title, figures, folder / f"{title}.png")
    return row


def draw(title: str, figures: Sequence[Figure], path: Path) -> None:
    """Draws how far each figure is from its target, or, where none has one, the figures.

    Says how to where matplotlib is missing.
    """
    try:
        importlib.import_module("matplotlib").use("Agg")
        plt = importlib.import_module("matplotlib.pyplot")
    except ImportError:
        progress("no plot: matplotlib is not installed; run: pip install -e '.[plot]'")
        return
    bars = [_bar(f) for f in figures if f.value and f.target]
    about = "times the target, log scale: left of the line is better than asked for"
    if not bars:
        bars = [
            (f.name, f.value, "tab:blue", f"{f.value:.3g} {f.unit}") for f in figures if f.value
        ]
        about = "log scale"
    if not bars:
        return
    _, axes = plt.subplots(figsize=(10, 0.9 + 0.36 * len(bars)), layout="constrained")
    labels, lengths, colours, texts = zip(*reversed(bars), strict=True)
    axes.set_xscale("log")
    axes.barh(labels, [length - 1 for length in lengths], left=1, color=colours)
    for place, text in enumerate(texts):
        axes.annotate(text, (1, place), xytext=(4, 0), textcoords="offset points", va="center")
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlabel(about)
    axes.set_title(title)
    plt.savefig(path, dpi=120)
    plt.close()
    progress(f"plot: {path}")


def _bar(figure: Figure) -> tuple[str, float, str, str]:
    """Returns a figure's label, its share of the target, its colour, and what it says."""
    assert figure.value is not None
    assert figure.target is not None
    share = figure.target / figure.value if figure.is_floor else figure.value / figure.target
    text = f"{figure.value:.3g} {figure.unit} ({'≥' if figure.is_floor else '≤'} {figure.target:g})"
    return figure.name, share, "tab:green" if figure.met else "tab:red", text
