"""Formats numbers, estimates, settings and tables of reports as Markdown."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from coding_gym.evaluation.statistics import Estimate


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Returns a Markdown table; pipes are escaped, and spaces replace line feeds."""
    lines = [header, ["---"] * len(header), *rows]
    cells = ([str(cell).replace("|", r"\|").replace("\n", " ") for cell in row] for row in lines)
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def quantity(count: int, noun: str) -> str:
    """Returns a number and its noun, such as ``1 task`` or ``2 tasks``."""
    return f"{count} {noun}{'s' * (count != 1)}"


def number(value: float | None) -> str:
    """Returns a number with three significant digits, from 1000 on as an integer; "-" for None."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 999.5 or value % 1 == 0 else f"{value:.3g}"


def percent(value: float) -> str:
    """Returns a rate in percent."""
    return f"{round(100 * value, 1) + 0.0:.1f} %"  # adding 0.0 converts -0.0 to 0.0


def cells(estimate: Estimate | None, to_text: Callable[[float], str] = number) -> tuple[str, str]:
    """Returns a mean and its interval as two table cells; "-" replaces a missing value."""
    if estimate is None:
        return "-", "-"
    ends = [to_text(end) for end in (estimate.low, estimate.high) if end is not None]
    return to_text(estimate.value), " to ".join(ends) or "-"


def flatten(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the name and value of each nested setting; dots join the names of the levels."""
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
