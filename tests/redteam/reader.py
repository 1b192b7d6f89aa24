"""A classifier that reads the source of a test and tells original assertions from negated ones."""

import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from coding_gym.grading import Plan
from coding_gym.grading.negation import applied
from coding_gym.grading.wrong_values import between
from coding_gym.patch import Patch
from coding_gym.task import FolderTree, Task

_STEPS, _RATE, _DECAY = 300, 0.3, 0.01

Features = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Pair:
    """The two versions of what a unit changes.

    Attributes:
        task_id: Where it comes from.
        original: The text as written.
        negated: The text in its place.
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
        function = plan.challenge.functions[unit.function]
        first, size = function.first_line - 1, function.num_lines
        lines = tests[function.path].splitlines(keepends=True)
        lines, others = lines[first : first + size], lines[:first] + lines[first + size :]
        start, end = min(edit[0] for edit in unit.edits), max(edit[1] for edit in unit.edits)
        before, after = applied(lines, [(start, end, "\0")]).split("\0")
        negated = applied(lines, unit.edits)[len(before) :].removesuffix(after)
        found.append(
            Pair(
                task_id=task.task_id,
                original=between(lines, start, end),
                negated=negated,
                function=before + after,
                context="".join([before, after, *others, program]),
            )
        )
    return found


def _features(text: str, pair: Pair) -> list[float]:
    """What may tell whether a text is the original."""
    words, numbers = re.findall(r"\w+", text), [int(n) for n in re.findall(r"\d{1,9}", text)]
    near = re.findall(r"\w+", pair.function)
    known = [int(n) for n in near if n.isdecimal() and len(n) < 10]
    sums = {one + sign * two for one in known for two in known for sign in (1, -1)}
    uses, everywhere = Counter(near), Counter(re.findall(r"\w+", pair.context))
    pairs = Counter(pairwise(pair.context))
    first = [int(str(n)[0]) or 1 for n in numbers] or [1]
    return [
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


def accuracy(pairs: list[Pair]) -> float:
    """Returns how often the original of a pair is found, by what pairs of other tasks teach.

    Pairs of numbers, of digits in texts, and of others are learned apart.
    """
    kinds: dict[str, list[Pair]] = {}
    for pair in pairs:
        kinds.setdefault(_kind(pair), []).append(pair)
    return sum(len(same) * _learned(same) for same in kinds.values()) / len(pairs)


def _kind(pair: Pair) -> str:
    if pair.original.lstrip("-")[:1].isdecimal():
        return "number"
    one, two = (re.sub(r"\d", "", text) for text in (pair.original, pair.negated))
    return "digits" if one == two else "words"


def _learned(pairs: list[Pair]) -> float:
    features = [np.subtract(*(_features(t, p) for t in (p.original, p.negated))) for p in pairs]
    rows = np.array(features) / (np.std(features, axis=0) + 1e-9)
    tasks = np.array([pair.task_id for pair in pairs])
    scores = np.zeros(len(pairs))
    for task in sorted(set(tasks)):
        others = rows[tasks != task]
        weights = np.zeros(rows.shape[1])
        for _ in range(_STEPS):  # logistic regression; the original is always the first of its pair
            errors = 1 / (1 + np.exp(others @ weights))
            weights += _RATE * (others.T @ errors / len(others) - _DECAY * weights)
        scores[tasks == task] = rows[tasks == task] @ weights
    return float(np.mean((scores > 0) + 0.5 * (scores == 0)))
