"""What the driver's survey found, as a value; its reply is not to be trusted.

The program under test runs beside the driver and can write any reply in its place. That can make
its own localisation worthless, and nothing else: what does not fit together is no reply at all.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coding_gym.repair.spectrum import Line

_MAX_TESTS = 1_000_000
_MAX_FAILING = 12
_MAX_LINES = 10_000
_MAX_PATHS = 10_000
_MAX_PATH_CHARS = 4096
_MAX_FAILING_CHARS = 20_000  # of the ids of the tests to repair
_MAX_KNOWN_CHARS = 40_000  # of all ids; they travel in a command, which may have 1 MiB
_FLAGS = ("-n0", "--no-cov")


@dataclass(frozen=True, slots=True)
class Findings:
    """What the survey found; see `coding_gym.repair.probe.survey`.

    Attributes:
        failing: Ids of the tests to repair, at most 12.
        known_failing: Ids of all failing tests, as many as there is room for.
        num_tests: How many tests there are.
        num_passed: How many of them passed.
        in_order: Whether some fail only after others.
        flags: Flags that pytest needs.
        hits: By line, how many of ``failing`` and how many passed tests executed it.
        sizes: Sizes of the program's files in bytes, those that failing tests ran first.
    """

    failing: tuple[str, ...]
    known_failing: tuple[str, ...]
    num_tests: int
    num_passed: int
    in_order: bool
    flags: tuple[str, ...]
    hits: Mapping[Line, tuple[int, int]]
    sizes: Mapping[str, int]

    @classmethod
    def from_reply(cls, reply: Mapping[str, Any]) -> "Findings | None":
        """Returns what a reply says, or None where that cannot be."""
        try:
            failing = _ids(reply["failing"], _MAX_FAILING_CHARS)
            num_passed = _number(reply["num_passed"], 0, _MAX_TESTS)
            files = _mapping(reply["files"])
            sizes = {path: entry["size"] for path, entry in files.items()}
            sizes |= _mapping(reply["others"])
            if len(failing) != len(reply["failing"]) or len(failing) > _MAX_FAILING:
                return None
            return cls(
                failing=failing,
                known_failing=_ids(reply["all_failing"], _MAX_KNOWN_CHARS),
                num_tests=_number(reply["num_tests"], 0, _MAX_TESTS),
                num_passed=num_passed,
                in_order=bool(reply["in_order"]),
                flags=tuple(flag for flag in _FLAGS if flag in reply["flags"]),
                hits=_hits(files, len(failing), num_passed),
                sizes=_sizes(sizes),
            )
        except (KeyError, TypeError, ValueError):
            return None


def _ids(values: Any, max_chars: int) -> tuple[str, ...]:
    """Returns as many ids as there is room for."""
    ids: list[str] = []
    for value in _listed(values):
        if not isinstance(value, str) or "\0" in value:
            raise ValueError("not the id of a test")
        max_chars -= len(value)
        if max_chars < 0:
            break
        ids.append(value)
    return tuple(ids)


def _hits(
    files: Mapping[str, Any], num_failing: int, num_passed: int
) -> dict[Line, tuple[int, int]]:
    hits: dict[Line, tuple[int, int]] = {}
    for path, entry in files.items():
        for counts, lines in _mapping(entry["groups"]).items():
            failed, passed = (int(part) for part in counts.split(","))
            _number(failed, 1, num_failing)
            _number(passed, 0, num_passed)
            for line in _listed(lines):
                hits[path, _number(line, 1, 1 << 31)] = failed, passed
            if len(hits) > _MAX_LINES:
                raise ValueError("too many lines")
    return hits


def _sizes(sizes: Mapping[str, Any]) -> dict[str, int]:
    """Returns the sizes of files that tools can name."""
    if len(sizes) > _MAX_PATHS:
        raise ValueError("too many files")
    checked = {path: _number(size, 0, 1 << 62) for path, size in sizes.items()}
    return {path: size for path, size in checked.items() if _can_be_named(path)}


def _can_be_named(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:  # its name is not in UTF-8
        return False
    return "\0" not in path and len(path) <= _MAX_PATH_CHARS


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError("not a list")
    return value


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("not an object")
    return value


def _number(value: Any, low: int, high: int) -> int:
    if not isinstance(value, int) or not low <= value <= high:
        raise ValueError("not a number in the range")
    return value
