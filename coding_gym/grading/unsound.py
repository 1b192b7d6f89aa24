"""Tests that cannot tell forgery from honesty, as the gold patch itself shows it.

A library whose objects claim to equal all others passes a canary that asks for another value; a
fixture that goes by a test's name ends a copy before it can fail. Where the gold patch, run with
the very same files, shows what a patch is suspected for, the test was at fault.
"""

import posixpath
import threading
from collections import Counter, OrderedDict
from dataclasses import dataclass, replace

from coding_gym.grading.verdict import Run
from coding_gym.patch import Patch
from coding_gym.task import Task
from coding_gym.workspace import Template

_MAX_REMEMBERED = 4096
_MAX_PER_FILE = 2


@dataclass(frozen=True, slots=True)
class Unsound:
    """Expected tests that grading does without, as evidence; they must pass all the same.

    Attributes:
        to_copy: Of which no canaries are made.
        to_turn: That are not turned against themselves.
    """

    to_copy: frozenset[str] = frozenset()
    to_turn: frozenset[str] = frozenset()

    def copied(self, task: Task) -> Task:
        """Returns the task with only those tests that canaries may be made of."""
        return replace(
            task,
            fail_to_pass=tuple(t for t in task.fail_to_pass if t not in self.to_copy),
            pass_to_pass=tuple(t for t in task.pass_to_pass if t not in self.to_copy),
        )

    def with_shown(self, task: Task, run: Run, shown: frozenset[str]) -> "Unsound":
        """Returns this with what another run has shown.

        From the third unsound copy on in one file, all of its tests are taken for such.

        Args:
            task: The task.
            run: A run that was suspected.
            shown: Those of its suspects that the gold patch has, too.
        """
        tests = _expected(task, run, shown)
        if shown <= run.turned:
            return replace(self, to_turn=self.to_turn | tests)
        known = Counter(_path(name) for test in self.to_copy for name in run.names([test]))
        full = {path for path in map(_path, shown) if known[path] >= _MAX_PER_FILE}
        more = (
            test for test in task.expected_tests if full.intersection(map(_path, run.names([test])))
        )
        return replace(self, to_copy=self.to_copy | tests | frozenset(more))


def untouched(run: Run, task: Task) -> dict[str, bytes]:
    """Returns the files of a run that no policy can have written: those that the gold leaves."""
    gold = {posixpath.normpath(path) for path in Patch(task.gold_patch).paths}
    return {p: data for p, data in run.files.items() if posixpath.normpath(p) not in gold}


def recall(task: Task, template: Template) -> Unsound:
    """Returns what earlier grades of this process learnt of a task."""
    with _lock:
        return _remembered.get(_key(task, template), Unsound())


def remember(task: Task, template: Template, unsound: Unsound) -> None:
    """Keeps what a grade learnt of a task."""
    with _lock:
        _remembered[_key(task, template)] = unsound
        while len(_remembered) > _MAX_REMEMBERED:
            _remembered.popitem(last=False)


_remembered: OrderedDict[tuple[object, ...], Unsound] = OrderedDict()
_lock = threading.Lock()


def _key(task: Task, template: Template) -> tuple[object, ...]:
    return task.task_id, task.test_patch, task.gold_patch, task.expected_tests, template.key


def _path(name: str) -> str:
    return name.partition("::")[0]


def _expected(task: Task, run: Run, names: frozenset[str]) -> frozenset[str]:
    """Returns the expected tests that stand for test functions."""
    return frozenset(t for t in task.expected_tests if names.intersection(run.names([t])))
