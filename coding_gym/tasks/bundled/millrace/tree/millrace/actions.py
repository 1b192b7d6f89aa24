"""What jobs can do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

Action = Callable[[Sequence[Path], Sequence[Path], Mapping[str, str]], None]


def concat(inputs: Sequence[Path], outputs: Sequence[Path], options: Mapping[str, str]) -> None:
    """Join the inputs."""
    separator = options.get("separator", "")
    _write(_single(outputs), separator.join(_read(path) for path in inputs))


def replace(inputs: Sequence[Path], outputs: Sequence[Path], options: Mapping[str, str]) -> None:
    """Copy each input to its output, one text replaced by another."""
    if len(inputs) != len(outputs):
        raise ValueError(f"wants an output for each input, got {len(inputs)} and {len(outputs)}")
    if not options.get("old"):
        raise ValueError("wants the option 'old'")
    for source, target in zip(inputs, outputs, strict=True):
        _write(target, _read(source).replace(options["old"], options.get("new", "")))


def sort(inputs: Sequence[Path], outputs: Sequence[Path], options: Mapping[str, str]) -> None:
    """Sort the lines of all inputs."""
    lines = [line for path in inputs for line in _read(path).splitlines()]
    if options.get("unique") == "yes":
        lines = list(set(lines))
    _write(_single(outputs), "".join(f"{line}\n" for line in sorted(lines)))


def count(inputs: Sequence[Path], outputs: Sequence[Path], _: Mapping[str, str]) -> None:
    """Count the lines and words of each input."""
    rows = []
    for path in inputs:
        text = _read(path)
        rows.append(f"{path.name} {len(text.splitlines())} {len(text.split())}\n")
    _write(_single(outputs), "".join(rows))


ACTIONS: Mapping[str, Action] = {
    "concat": concat,
    "count": count,
    "replace": replace,
    "sort": sort,
}


def _single(outputs: Sequence[Path]) -> Path:
    if len(outputs) != 1:
        raise ValueError(f"wants one output, got {len(outputs)}")
    return outputs[0]


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
