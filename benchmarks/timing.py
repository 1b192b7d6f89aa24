"""Timing of alternative ways to do the same work, and a description of the machine."""

import importlib
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
Work = Callable[[], object]
Maker = Callable[[ExitStack], Work]
"""Prepares and returns the work to time; the stack closes the resources of the work."""


class AbsentError(Exception):
    """An alternative is not installed on this machine; the message names the missing program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """The measured value of one alternative, or the reason why it was not measured.

    Attributes:
        group: The benchmark: ``"command"``, ``"reset"``, ``"grade"``, ``"vector steps"`` or
            ``"memory"``.
        name: The name of the alternative.
        unit: ``"ms"``, ``"1/s"`` or ``"MiB"``.
        value: The median, or None without a measurement.
        ratio: The value divided by the reference's value in the same run.
        absent: The reason why there is no measurement, or "".
        spread: 10th and 90th percentile, and the number of samples.
    """

    group: str
    name: str
    unit: str
    value: float | None = None
    ratio: float | None = None
    absent: str = ""
    spread: Mapping[str, float] = field(default_factory=dict)


def compare(group: str, makers: Mapping[str, Maker], reference: str, rounds: int) -> list[Figure]:
    """Times all alternatives in turn, one call of each per round, and returns the medians.

    An alternative whose preparation or first call fails is reported as absent.

    Args:
        group: The benchmark.
        makers: The alternatives, by name.
        reference: The alternative whose median has the ratio 1.
        rounds: Number of timed calls of each alternative.
    """
    works: dict[str, Work] = {}
    failures: list[Figure] = []
    with ExitStack() as stack:
        for name, make in makers.items():
            try:
                works[name] = make(stack)
                works[name]()
            except Exception as problem:  # noqa: BLE001 - an alternative may fail in any way
                works.pop(name, None)
                failures.append(Figure(group=group, name=name, unit="ms", absent=str(problem)))
        samples: dict[str, list[float]] = {name: [] for name in works}
        for _ in range(rounds):
            for name, work in works.items():
                work()  # not timed: warms the processor's caches
                samples[name].append(timed_ms(work))
    base = statistics.median(samples[reference])
    return [*(_figure(group, name, times, base) for name, times in samples.items()), *failures]


def _figure(group: str, name: str, samples: Sequence[float], base: float) -> Figure:
    value = statistics.median(samples)
    deciles = statistics.quantiles([*samples, *samples], n=10, method="inclusive")
    spread = {"p10": round(deciles[0], 4), "p90": round(deciles[-1], 4), "samples": len(samples)}
    ratio = round(value / base, 3)
    return Figure(
        group=group, name=name, unit="ms", value=round(value, 4), ratio=ratio, spread=spread
    )


def timed_ms(work: Work) -> float:
    """Returns the duration of one call in milliseconds."""
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1e3


def module(name: str, distribution: str) -> Any:
    """Returns a module of another project.

    Raises:
        AbsentError: The module is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as problem:
        raise AbsentError(f"{problem}; run: pip install {distribution}") from None


def machine() -> dict[str, Any]:
    """Returns the machine, the versions and the commit of a measurement."""

    def git(*words: str) -> str:
        argv = ["git", "-C", str(ROOT), *words]
        return subprocess.run(argv, capture_output=True, text=True, check=False).stdout.strip()

    changed = git("status", "--porcelain", "--", "coding_gym", "benchmarks/*.py")
    return {
        "commit": git("rev-parse", "--short", "HEAD") + ("+" if changed else ""),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2),
    }
