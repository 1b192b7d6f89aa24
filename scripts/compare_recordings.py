"""The comparison of `record_episodes.py`: kinds of differences, less those that are permitted."""

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ADDED, REMOVED, CHANGED = KINDS = ("added", "removed", "changed")
_KEYS = {"path", "kind", "entries", "old", "new", "reason"}
_MISSING = object()
_MAX_CHARS = 160


@dataclass(frozen=True, slots=True)
class Difference:
    """One value that is not what it was.

    Attributes:
        entry: The entry of the recordings, such as ``tasks/nano/braid-last-line``.
        path: Where in it, such as ``steps[3].info.text``.
        kind: ``added``, ``removed`` or ``changed``.
        old: The old value; without meaning where it was added.
        new: The new value; without meaning where it was removed.
    """

    entry: str
    path: str
    kind: str
    old: Any = None
    new: Any = None

    @property
    def group(self) -> tuple[str, str, str]:
        """What differences of one kind have in common."""
        place = re.sub(r"\[\d+\]", "[*]", self.path)
        return self.kind, self.entry.rpartition("/")[0], re.sub(r'\["[^"]*"\]', '["*"]', place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Permitted:
    """An entry of the list of permitted differences; ``*`` stands for any characters.

    Attributes:
        path: Patterns of the path.
        reason: Why this may differ.
        kind: ``added``, ``removed``, ``changed``, or "" for all three.
        entries: Patterns of the entries that it applies to; all of them by default.
        old: Regular expression that the old value must hold somewhere, as JSON writes it.
        new: The same for the new value.
    """

    path: tuple[str, ...]
    reason: str
    kind: str = ""
    entries: tuple[str, ...] = ("*",)
    old: str = ""
    new: str = ""

    def permits(self, difference: Difference) -> bool:
        """Returns whether this difference may be."""
        return (
            self.kind in ("", difference.kind)
            and any(_fits(pattern, difference.path) for pattern in self.path)
            and any(_fits(pattern, difference.entry) for pattern in self.entries)
            and bool(re.search(self.old, _json(difference.old)))
            and bool(re.search(self.new, _json(difference.new)))
        )


def read_permitted(path: Path) -> list[Permitted]:
    """Returns the entries ``[[permitted]]`` of a TOML file; one pattern may stand for a list.

    Raises:
        ValueError: One has no path or reason, or a key that there is not.
    """
    rows = tomllib.loads(path.read_text(encoding="utf-8")).get("permitted", [])
    for row in rows:
        if row.keys() - _KEYS or not row.get("path") or not row.get("reason"):
            raise ValueError(f"{path}: path and reason, and only {sorted(_KEYS)}; got {row}")
        if row.get("kind", ADDED) not in KINDS:
            raise ValueError(f"{path}: kind must be one of {KINDS}, got {row['kind']!r}")
    for row in rows:
        for name in ("path", "entries"):
            value = row.get(name, "*")
            row[name] = (value,) if isinstance(value, str) else tuple(value)
    return [Permitted(**row) for row in rows]


def differences(entry: str, old: Any, new: Any, path: str = "") -> Iterator[Difference]:
    """Yields what differs between two JSON values."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            plain_key = key.isidentifier()
            below = f'{path}["{key}"]' if not plain_key else f"{path}.{key}" if path else key
            yield from _below(entry, below, old.get(key, _MISSING), new.get(key, _MISSING))
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            values = (v[index] if index < len(v) else _MISSING for v in (old, new))
            yield from _below(entry, f"{path}[{index}]", *values)
    elif _json(old) != _json(new):
        yield Difference(entry, path, CHANGED, old, new)


def _below(entry: str, path: str, old: Any, new: Any) -> Iterator[Difference]:
    if old is _MISSING:
        yield Difference(entry, path, ADDED, new=new)
    elif new is _MISSING:
        yield Difference(entry, path, REMOVED, old=old)
    else:
        yield from differences(entry, old, new, path)


def compare(
    old: Path, new: Path, permitted: Sequence[Permitted] = (), num_examples: int = 1
) -> int:
    """Prints how two recordings differ and returns how many differences are not permitted."""
    (first, _), (second, whole_parts) = _read(old), _read(new)
    numbers = dict.fromkeys(permitted, 0)
    groups: dict[tuple[str, str, str], list[Difference]] = {}
    names = dict.fromkeys([*first, *second])
    compared = [n for n in names if n in second or n.partition("/")[0] in whole_parts]
    for name in compared:
        sides = (side.get(name, _MISSING) for side in (first, second))
        for difference in _below(name, "", *sides):
            allowing = [entry for entry in permitted if entry.permits(difference)]
            for entry in allowing:
                numbers[entry] += 1
            if not allowing:
                groups.setdefault(difference.group, []).append(difference)
    for found in groups.values():
        _show(found, num_examples)
    for entry, number in numbers.items():
        used = f"permitted {number} times" if number else "permitted, but matches nothing"
        print(f"{used}: {entry.kind} {' '.join(entry.path)} ({entry.reason})")
    number = sum(map(len, groups.values()))
    print(
        f"{len(compared)} entries compared, {len(names) - len(compared)} not recorded again; ",
        end="",
    )
    print(f"{number} differences of {len(groups)} kinds are not permitted")
    return number


def _read(path: Path) -> tuple[dict[str, Any], set[str]]:
    """Returns the entries of a recording by name, and its parts that are whole."""
    with path.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    whole = {part for row in rows if not row["entry"] for part in row["value"].get("whole", ())}
    return {row["entry"]: row["value"] for row in rows if row["entry"]}, whole


def _show(found: Sequence[Difference], num_examples: int) -> None:
    kind, entries, path = found[0].group
    print(f"{kind} {len(found)} times in {entries}: {path}")
    for difference in found[:num_examples]:
        print(f"    {difference.entry}: {difference.path}")
        old, new = _shortened(difference.old, difference.new)
        if kind != ADDED:
            print(f"        old: {old}")
        if kind != REMOVED:
            print(f"        new: {new}")


def _shortened(old: Any, new: Any) -> tuple[str, str]:
    """Returns two values as JSON, from shortly before the place where they differ."""
    texts = [_json(old), _json(new)]
    length = min(map(len, texts))
    same = next((i for i in range(length) if texts[0][i] != texts[1][i]), length)
    start = max(0, same - 40)
    ends = [text[start : start + _MAX_CHARS] for text in texts]
    dots = "…" if start else ""
    return f"{dots}{ends[0]}", f"{dots}{ends[1]}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _fits(pattern: str, text: str) -> bool:
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), text, re.DOTALL) is not None
