"""The five fields of an expression, each a set of numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

from cronwise.errors import CronError


@dataclass(frozen=True)
class FieldSpec:
    """What a field may hold: numbers from ``low`` to ``high``, and names for some of them.

    In a cyclic field ``high + 1`` is another way to write ``low``.
    """

    title: str
    low: int
    high: int
    names: dict[str, int] = field(default_factory=dict)
    is_cyclic: bool = False

    @property
    def highest(self) -> int:
        """The highest number that may be written in this field."""
        return self.high + 1 if self.is_cyclic else self.high


def _numbered(names: str, first: int) -> dict[str, int]:
    return {name: number for number, name in enumerate(names.split(), start=first)}


MINUTE = FieldSpec("minute", 0, 59)
HOUR = FieldSpec("hour", 0, 23)
DAY = FieldSpec("day of month", 1, 31)
MONTH = FieldSpec("month", 1, 12, _numbered("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC", 1))
WEEKDAY = FieldSpec("day of week", 0, 6, _numbered("SUN MON TUE WED THU FRI SAT", 0), True)


def parse_field(spec: FieldSpec, text: str) -> frozenset[int]:
    """The numbers that ``text`` stands for in a field.

    Raises:
        CronError: if a part of it is malformed or out of range.
    """
    numbers: set[int] = set()
    for part in text.split(","):
        numbers.update(_expand(spec, part))
    return frozenset(numbers)


def _expand(spec: FieldSpec, part: str) -> set[int]:
    base, has_step, step_text = part.partition("/")
    step = _step(spec, step_text) if has_step else 1
    first, is_range, last = base.partition("-")
    if base == "*":
        low, high = spec.low, spec.high
    elif is_range:
        low, high = _number(spec, first), _number(spec, last)
        if spec.is_cyclic and high == spec.low < low:
            high = spec.highest
    else:
        low = _number(spec, base)
        high = spec.high if has_step else low
    if low > high:
        raise CronError(f"{spec.title}: range {base} runs backwards")
    numbers = range(low, high + 1, step)
    return {spec.low if number > spec.high else number for number in numbers}


def _number(spec: FieldSpec, text: str) -> int:
    name = text.upper()
    if name in spec.names:
        return spec.names[name]
    if not (text.isascii() and text.isdigit()):
        raise CronError(f"{spec.title}: expected a number, got {text!r}")
    number = int(text)
    if not spec.low <= number <= spec.highest:
        raise CronError(f"{spec.title}: {number} is not within {spec.low}-{spec.highest}")
    return number


def _step(spec: FieldSpec, text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) == 0:
        raise CronError(f"{spec.title}: step must be a positive number, got {text!r}")
    return int(text)
