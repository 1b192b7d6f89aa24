"""Which definitions matter most: those that much-used files use much."""

# ruff: noqa: TID252 - in the sandbox this package has another name

from __future__ import annotations

import builtins
import math
import re
from typing import TYPE_CHECKING, NamedTuple

from .tree import language_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .tags import Tags

_DAMPING = 0.85
_ROUNDS = 20
_MAX_DEFINERS = 20  # a name that more files define says nothing of any of them
_LESS = 0.1  # what a name or a place that tells little is worth
_MORE = 3.0
_SHORT = 2
_WORDS = re.compile(r"[a-z0-9](_[A-Za-z]|[A-Z])")
# What every program calls on texts and lists says nothing of what it defines itself.
_BUILTINS = frozenset(dir(builtins)).union(*map(dir, (str, bytes, list, dict, set)))
_TEST_FILE = re.compile(r"(^|/)(tests?/|testing/|test_[^/]*$|[^/]*[_.]test\.\w+$|conftest\.py$)")
_INNER = ("attribute", "local")


class Ranked(NamedTuple):
    """A definition and how much it matters, from 0."""

    path: str
    line: int
    name: str
    kind: str
    score: float


def ranked(files: Mapping[str, Tags]) -> list[Ranked]:
    """Ranks what files define, the most used first.

    Files are the nodes of a graph; a file that uses a name points at the files of its language that
    define it, by the square root of how often. What is defined in a class is used only behind a
    dot. Names of several words say more, private, very short and built-in ones less, and so do
    tests. The files' ranks are PageRank's (Page, Brin, Motwani and Winograd,
    "The PageRank citation ranking", 1999), and each file hands its own on to the definitions
    that it uses. Equal scores are ordered by the rank of their file, then path and line.
    """
    definers: dict[tuple[str, str], list[str]] = {}
    for path in sorted(files):
        names = set()
        for _, name, kind in files[path].definitions:
            if kind not in _INNER:
                names.update(_used_as(name))
        for name in sorted(names):
            definers.setdefault((language_of(path), name), []).append(path)
    links = {path: _links(path, files[path].uses, definers) for path in sorted(files)}
    ranks = _page_ranks(links)
    scores: dict[tuple[str, str], float] = {}
    for path, out in links.items():
        total = sum(weight for _, _, weight in out)
        for target, name, weight in out:
            share = ranks[path] * weight / total
            scores[target, name] = scores.get((target, name), 0.0) + share
    found = [
        Ranked(path, line, name, kind, sum(scores.get((path, n), 0.0) for n in _used_as(name)))
        for path in sorted(files)
        for line, name, kind in files[path].definitions
        if kind not in _INNER
    ]
    return sorted(found, key=lambda d: (-d.score, -ranks[d.path], d.path, d.line, d.name))


def _used_as(name: str) -> list[str]:
    """Returns how a definition is used: behind a dot, and if it is in no class without one."""
    last = name.rpartition(".")[2]
    return [f".{last}"] if last != name else [last, f".{last}"]


def _telling(name: str) -> float:
    """Returns how much a use of a name tells of what it means."""
    name = name.lstrip(".")
    if name.startswith("_") or len(name) <= _SHORT or name in _BUILTINS:
        return _LESS
    return _MORE if _WORDS.search(name) else 1.0


def _links(
    path: str, uses: Iterable[tuple[int, str]], definers: Mapping[tuple[str, str], list[str]]
) -> list[tuple[str, str, float]]:
    counts: dict[str, int] = {}
    for _, name in uses:
        counts[name] = counts.get(name, 0) + 1
    links = []
    for name in sorted(counts):
        targets = definers.get((language_of(path), name), ())
        if not 0 < len(targets) <= _MAX_DEFINERS:
            continue
        weight = _telling(name) * math.sqrt(counts[name]) / len(targets)
        links += [
            (target, name, weight * (_LESS if _TEST_FILE.search(target) else 1))
            for target in targets
            if target != path
        ]
    return links


def _page_ranks(links: Mapping[str, list[tuple[str, str, float]]]) -> dict[str, float]:
    if not links:
        return {}
    shares: dict[str, list[tuple[str, float]]] = {}
    for path, out in links.items():
        weights: dict[str, float] = {}
        for target, _, weight in out:
            weights[target] = weights.get(target, 0.0) + weight
        total = sum(weights.values())
        shares[path] = [(target, weight / total) for target, weight in weights.items()]
    ranks = dict.fromkeys(links, 1.0 / len(links))
    for _ in range(_ROUNDS):
        lost = sum(ranks[path] for path in links if not shares[path])
        base = (1 - _DAMPING + _DAMPING * lost) / len(links)
        following = dict.fromkeys(links, base)
        for path, targets in shares.items():
            for target, share in targets:
                following[target] += _DAMPING * ranks[path] * share
        ranks = following
    return ranks
