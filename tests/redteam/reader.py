"""A classifier that distinguishes original from negated assertions by the source of a test."""

import ast
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from coding_gym.grading import Plan
from coding_gym.grading.negation import edited
from coding_gym.patch import Patch
from coding_gym.source_text import SourceText
from coding_gym.syntax import Function, first_line, parse
from coding_gym.task import FolderTree, Task

_STEPS, _RATE, _DECAY = 400, 0.3, 0.02
_NUM_STUMPS, _SHRINKAGE, _QUANTILES = 40, 0.2, (0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95)

Features = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Pair:
    """The original and the negated text of a unit.

    Attributes:
        task_id: The task of the unit.
        original: The text as written.
        negated: The text that replaces it.
        function: The function around it.
        context: The test file, and the sources that the policy can read.
    """

    task_id: str
    original: str
    negated: str
    function: str
    context: str


def pairs_of(task: Task) -> list[Pair]:
    """Returns the pairs of the bits of a bundled task."""
    plan = Plan.from_text(task.grading_plan)
    tests = {change.path: change.apply("") for change in Patch(task.test_patch).files}
    assert plan is not None
    assert isinstance(task.tree, FolderTree)
    program = "".join(path.read_text() for path in Path(task.tree.folder).rglob("*.py"))
    found = []
    for unit in plan.challenge.units_of(task.fail_to_pass):
        if not unit.is_bit:
            continue
        start, end = min(edit[0] for edit in unit.edits), max(edit[1] for edit in unit.edits)
        source = SourceText(tests[unit.path])
        first, last = source.line_span(*_function_at(source.text, start[0]))
        low, high = source.offset(*start), source.offset(*end)
        before, after = source.text[first:low], source.text[high:last]
        negated = edited(source, unit.edits, (first, last))[len(before) :].removesuffix(after)
        found.append(
            Pair(
                task_id=task.task_id,
                original=source.text[low:high],
                negated=negated,
                function=before + after,
                context="".join([before, after, source.text[:first], source.text[last:], program]),
            )
        )
    return found


def _function_at(text: str, line: int) -> tuple[int, int]:
    """Returns the numbers of the first and the last line of the function that holds a line."""
    functions = [one for one in ast.walk(parse(text)) if isinstance(one, Function)]
    scopes = [(first_line(one), one.end_lineno or one.lineno) for one in functions]
    return next(scope for scope in scopes if scope[0] <= line <= scope[1])


def _features(text: str, pair: Pair) -> list[float]:
    """Returns features that could show whether a text is the original."""
    words, numbers = re.findall(r"\w+", text), [int(n) for n in re.findall(r"\d{1,9}", text)]
    near = re.findall(r"\w+", pair.function)
    known = [int(n) for n in near if n.isdecimal() and len(n) < 10]
    sums = {one + sign * two for one in known for two in known for sign in (1, -1)}
    uses, everywhere = Counter(near), Counter(re.findall(r"\w+", pair.context))
    pairs = Counter(pairwise(pair.context))
    first = [int(str(n)[0]) or 1 for n in numbers] or [1]
    gaps = [abs(n - other) for n in numbers for other in known] or [0]
    return [
        float(np.mean([n in (1, 2) for n in numbers] or [0])),
        float(np.mean([n % 5 == 0 for n in numbers] or [0])),
        float(np.mean([n % 10 for n in numbers] or [0])),
        float(np.mean([len(set(str(n))) / len(str(n)) for n in numbers] or [0])),
        float(np.mean([n > max(known, default=0) for n in numbers] or [0])),
        float(np.mean([n < min(known, default=0) for n in numbers] or [0])),
        float(np.log1p(min(gaps))),
        float(sum(gap == 1 for gap in gaps)),
        float(np.max([_likeness(text, other) for other in near[:80]] or [0])),
        float(text in pair.function),
        float(pair.context.count(text)),
        float(np.mean([np.log1p(uses[word]) for word in words] or [0])),
        float(np.mean([np.log1p(everywhere[word]) for word in words] or [0])),
        float(np.min([np.log1p(everywhere[word]) for word in words] or [0])),
        float(np.mean([np.log1p(pairs[two]) for two in pairwise(text)] or [0])),
        float(np.mean([n in known for n in numbers] or [0])),
        float(np.mean([n in sums for n in numbers] or [0])),
        float(np.mean([n % 10 == 0 for n in numbers] or [0])),
        float(np.mean([n % 2 for n in numbers] or [0])),
        float(np.mean(np.log1p(1 / np.array(first)))),
        float(np.mean([np.log1p(n) for n in numbers] or [0])),
        float(sum(one > two for one, two in pairwise(numbers))),
        float(len(set(words)) - len(words)),
        float(np.log1p(len(text))),
        float(text.count(" ")),
        float("not" in words or "!" in text or "None" in words),
    ]


def _likeness(one: str, two: str) -> float:
    return SequenceMatcher(None, one, two, autojunk=False).quick_ratio()


def accuracy(pairs: list[Pair]) -> tuple[float, float]:
    """Returns how often learners, trained on pairs of other projects, find the original of a pair.

    Returns:
        The better share of two learners, and its standard error over tasks.
    """
    rows = np.array(
        [np.subtract(*(_features(t, p) for t in (p.original, p.negated))) for p in pairs]
    )
    rows /= np.std(rows, axis=0) + 1e-9
    tasks = np.array([pair.task_id for pair in pairs])
    projects = np.array([pair.task_id.partition("-")[0] for pair in pairs])
    results = []
    for learn in (_logistic, _stumps):
        scores = np.zeros(len(pairs))
        for project in sorted(set(projects)):
            held = projects == project
            scores[held] = learn(rows[~held])(rows[held])
        right = (scores > 0) + 0.5 * (scores == 0)
        sums = [np.sum(right[tasks == task] - right.mean()) for task in sorted(set(tasks))]
        results.append((float(right.mean()), float(np.sqrt(np.sum(np.square(sums))) / len(pairs))))
    return max(results)


def _logistic(rows: Features) -> Callable[[Features], Features]:
    """Learns weights of differences; the original is always the first of its pair."""
    weights = np.zeros(rows.shape[1])
    for _ in range(_STEPS):
        errors = 1 / (1 + np.exp(rows @ weights))
        weights += _RATE * (rows.T @ errors / len(rows) - _DECAY * weights)
    return lambda others: np.asarray(others @ weights, dtype=float)


def _stumps(rows: Features) -> Callable[[Features], Features]:
    """Learns a sum of thresholds by boosting, from each pair in both orders."""
    both, right = np.vstack([rows, -rows]), np.repeat([1.0, -1.0], len(rows))
    found: list[tuple[int, float, float]] = []
    sums = np.zeros(len(both))
    for _ in range(_NUM_STUMPS):
        errors = right / (1 + np.exp(right * sums))
        gains = [
            (float(np.where(both[:, column] > cut, 1, -1) @ errors), column, float(cut))
            for column in range(both.shape[1])
            for cut in np.unique(np.quantile(both[:, column], _QUANTILES))
        ]
        gain, column, cut = max(gains, key=lambda one: abs(one[0]))
        found.append((column, cut, _SHRINKAGE * float(np.sign(gain))))
        sums += found[-1][2] * np.where(both[:, column] > cut, 1, -1)

    def score(others: Features) -> Features:
        one, two = (
            sum(weight * np.where(x[:, n] > cut, 1, -1) for n, cut, weight in found)
            for x in (others, -others)
        )
        return np.asarray(one - two, dtype=float)

    return score
