"""Spectrum-based fault localisation: scores lines by the tests that execute them."""

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass

from coding_gym.mutation.sites import Site, Statement, header_expressions, sites
from coding_gym.mutation.source import Source
from coding_gym.syntax import Function

Line = tuple[str, int]
"""A path and a line number, which starts at 1."""

# Suspiciousness of an assignment outside functions, relative to the code that reads the name.
_OUTSIDE_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class Spectrum:
    """The number of tests that executed each line.

    Attributes:
        num_failed: Number of tests that failed.
        num_passed: Number of tests that passed.
        hits: The numbers of failed tests and of passed tests that executed each line.
    """

    num_failed: int
    num_passed: int
    hits: Mapping[Line, tuple[int, int]]


def ochiai(spectrum: Spectrum) -> dict[str, dict[int, float]]:
    """Returns the Ochiai scores, 0 to 1, by path and line, of lines that failing tests executed.

    The formula is from Abreu, Zoeteweij and van Gemund, "On the accuracy of spectrum-based fault
    localization", TAIC PART 2007.
    """
    scores: dict[str, dict[int, float]] = {}
    for (path, line), (num_failed, num_passed) in spectrum.hits.items():
        if num_failed:
            score = num_failed / math.sqrt(spectrum.num_failed * (num_failed + num_passed))
            scores.setdefault(path, {})[line] = score
    return scores


def statement_scores(
    sources: Mapping[str, Source], lines: Mapping[str, Mapping[int, float]]
) -> dict[str, dict[int, float]]:
    """Returns the scores of statements, by path and first line, from the scores of lines.

    A statement of several lines gets the score of its most suspicious line. Code that runs only on
    import has no scores, so two more rules apply: a function's signature gets the score of its most
    suspicious statement; an assignment in a module or class gets 0.9 of the highest score of the
    statements, in any file, that read an assigned name.
    """
    all_sites = {path: list(sites(source)) for path, source in sources.items()}
    scores: dict[str, dict[int, float]] = {path: {} for path in sources}
    readers: dict[str, float] = {}
    for path, file_sites in all_sites.items():
        for site in reversed(file_sites):  # scores a function after its statements
            score = _line_score(site, lines.get(path, {}), scores[path])
            if score:
                scores[path][site.line] = score
                for name in _names_read(site.node):
                    readers[name] = max(score, readers.get(name, 0.0))
    for path, file_sites in all_sites.items():
        for site in file_sites:
            names = _names_bound(site)
            score = _OUTSIDE_SHARE * max((readers.get(name, 0.0) for name in names), default=0.0)
            if score:
                line = site.line
                scores[path][line] = max(score, scores[path].get(line, 0.0))
    return scores


def _line_score(site: Site, lines: Mapping[int, float], scores: Mapping[int, float]) -> float:
    statement = site.node
    if isinstance(statement, Function):
        inner = range(statement.body[0].lineno, (statement.end_lineno or 0) + 1)
        return max((scores.get(line, 0.0) for line in inner), default=0.0)
    if isinstance(statement, ast.ClassDef):
        return 0.0
    return max((lines.get(line, 0.0) for line in site.lines), default=0.0)


def _names_read(statement: Statement) -> set[str]:
    return {
        node.id if isinstance(node, ast.Name) else node.attr
        for node in header_expressions(statement)
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load)
    }


def _names_bound(site: Site) -> list[str]:
    statement = site.node
    if site.scope.function is not None:
        return []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets = [statement.target]
    else:
        return []
    return [
        node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)
    ]
