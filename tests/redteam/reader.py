"""A classifier that distinguishes original from negated assertions by the source of a test."""

import ast
import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from pathlib import Path

import numpy as np

from coding_gym.grading import Plan
from coding_gym.patch import Patch
from coding_gym.source_text import SourceText
from coding_gym.syntax import Function, first_line, parse
from coding_gym.task import FolderTree, Task

_STEPS, _RATE, _DECAY = 400, 0.3, 0.02


@dataclass(frozen=True)
class Pair:
    """The original and the negated text of a unit.

    Attributes:
        task_id: The task of the unit.
        original: The text as written.
        negated: The text of the negated version.
        function: The source of the test function, without this text.
        context: The test file without this text, and the sources that the policy can read.
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
    pairs = []
    for unit in filter(attrgetter("is_bit"), plan.challenge.units_of(task.fail_to_pass)):
        (edit,) = unit.edits
        source = SourceText(tests[edit.path])
        first, last = source.line_span(*_function_at(source.text, edit.start))
        low, high = edit.start, edit.end
        function = source.text[first:low] + source.text[high:last]
        context = "".join([function, source.text[:first], source.text[last:], program])
        pairs.append(Pair(task.task_id, source.text[low:high], edit.replacement, function, context))
    return pairs


def _function_at(text: str, offset: int) -> tuple[int, int]:
    """Returns the numbers of the first and the last line of the function around an offset."""
    line = text.count("\n", 0, offset) + 1
    functions = [node for node in ast.walk(parse(text)) if isinstance(node, Function)]
    scopes = [(first_line(node), node.end_lineno or node.lineno) for node in functions]
    return next(scope for scope in scopes if scope[0] <= line <= scope[1])


def _features(text: str, pair: Pair) -> list[float]:
    """Returns features from which a reader could infer whether a text is the original."""
    words, numbers = re.findall(r"\w+", text), [int(n) for n in re.findall(r"\d{1,9}", text)]
    function_words = re.findall(r"\w+", pair.function)
    visible = [int(n) for n in function_words if n.isdecimal() and len(n) < 10]
    sums = {a + sign * b for a in visible for b in visible for sign in (1, -1)}
    uses, context_uses = Counter(function_words), Counter(re.findall(r"\w+", pair.context))
    char_pairs = Counter(pairwise(pair.context))
    gaps = [abs(n - other) for n in numbers for other in visible] or [0]
    by_number = [
        (n % 5 == 0, n % 10, n % 2, len(set(str(n))) / len(str(n)), n in visible, n in sums)
        for n in numbers
    ]
    by_word = [(np.log1p(uses[word]), np.log1p(context_uses[word])) for word in words]
    return [
        *np.mean(by_number or [[0] * 6], axis=0),
        *np.mean(by_word or [[0] * 2], axis=0),
        *(float(np.mean(np.log1p(values or [0]))) for values in (numbers, gaps)),
        float(np.mean([1 / (int(str(n)[0]) or 1) for n in numbers] or [0])),
        float(np.min([np.log1p(context_uses[word]) for word in words] or [0])),
        float(np.mean([np.log1p(char_pairs[chars]) for chars in pairwise(text)] or [0])),
        float(pair.context.count(text)),
        float(np.log1p(len(text))),
    ]


def accuracy(pairs: list[Pair]) -> tuple[float, float]:
    """Returns the accuracy of a classifier that is trained on the pairs of other projects.

    Returns:
        The share of pairs in which the classifier finds the original, and the standard error of
        this share over tasks.
    """
    rows = np.array(
        [np.subtract(*(_features(t, p) for t in (p.original, p.negated))) for p in pairs]
    )
    rows /= np.std(rows, axis=0) + 1e-9
    tasks = np.array([pair.task_id for pair in pairs])
    projects = np.array([pair.task_id.partition("-")[0] for pair in pairs])
    scores = np.zeros(len(pairs))
    for project in set(projects):
        held_out, weights = projects == project, np.zeros(rows.shape[1])
        train = rows[~held_out]
        for _ in range(_STEPS):  # logistic regression; the original is the first of each pair
            errors = 1 / (1 + np.exp(train @ weights))
            weights += _RATE * (train.T @ errors / len(train) - _DECAY * weights)
        scores[held_out] = rows[held_out] @ weights
    correct = (scores > 0) + 0.5 * (scores == 0)
    sums = [np.sum(correct[tasks == task] - correct.mean()) for task in set(tasks)]
    return float(correct.mean()), float(np.sqrt(np.sum(np.square(sums))) / len(pairs))
