"""The plan of a task: its challenge and facts about its tests, made once and stored.

Grading does not change the plan, so a grade does not depend on earlier grades.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock
from pydantic import TypeAdapter, ValidationError

from coding_gym.grade import Level
from coding_gym.grading.challenge import Challenge
from coding_gym.task import Task
from coding_gym.whole_file import write_whole
from coding_gym.workspace import Template

_VERSION = 22
"""Version of the plan format; a new number invalidates all stored plans."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The challenge of a task, and facts about its tests that grading needs.

    Attributes:
        is_calibrated: Whether runs with the gold patch confirmed the challenge; if not, the tests
            are not challenged.
        challenge: The checks and units.
        unstable: Flaky tests. Grades ignore pass-to-pass tests among them; for a fail-to-pass test,
            one pass in two runs of a version is enough.
        xfailing: Tests whose status with the gold patch is ``XFAILED``, which counts as a pass.
        is_plain: Whether runs use pytest's faster ``--assert=plain``, which changes no result.
        is_alone: Whether fail-to-pass tests have the same outcomes in a run without other tests.
    """

    is_calibrated: bool = False
    challenge: Challenge = field(default_factory=Challenge)
    unstable: tuple[str, ...] = ()
    xfailing: tuple[str, ...] = ()
    is_plain: bool = False
    is_alone: bool = False

    @property
    def digest(self) -> str:
        """A hash of the content of the plan: 16 hexadecimal digits."""
        return hashlib.sha256(self.to_text("").encode()).hexdigest()[:16]

    def counts(self, tests: Collection[str]) -> dict[str, int]:
        """Returns the number of ``tests`` at each level, the strongest level first."""
        num_tests = Counter(self.challenge.level(test) for test in tests)
        return {str(level): num_tests[level] for level in Level if level in num_tests}

    def to_text(self, key: str) -> str:
        """Returns the plan as JSON text, with the `plan_key` of its task."""
        return _STORED.dump_json((_VERSION, key, self), exclude_defaults=True).decode() + "\n"

    @classmethod
    def from_text(cls, text: str, key: str = "") -> "Plan | None":
        """Returns the plan in a text; None for another version or key ("" accepts any key)."""
        try:
            version, stored_key, plan = _STORED.validate_json(text)
        except ValidationError:
            return None
        return plan if version == _VERSION and key in ("", stored_key) else None


_STORED = TypeAdapter(tuple[int, str, Plan])
_uncalibrated: dict[Path, Plan] = {}


def plan_key(task: Task, template: Template) -> str:
    """Returns a digest of all inputs of a plan: base, patches, tests, issue and environment.

    The digest is the same on every machine, so a plan can be distributed with its task.
    """
    facts = [_VERSION, template.base_commit, task.gold_patch, task.test_patch]
    facts += [task.fail_to_pass, task.pass_to_pass, task.runner, task.test_command]
    log_source = task.test_report or (task.repo if task.runner == "swebench" else "")
    facts += [log_source, task.interpreter, task.image, task.install_commands]
    facts.append(task.problem_statement)
    # Only where they have an effect, so that stored plans of other tasks stay valid.
    facts += [task.version, task.environment_setup_commit] if task.install_commands else []
    facts += [task.image_path] if task.image_path else []
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]


def stored_plan(task: Task, template: Template, make: Callable[[], Plan]) -> Plan:
    """Returns the plan in the row of a task, or the plan stored next to its template.

    A plan of another task or version is ignored. Without a plan, the result of ``make`` is stored:
    on disk, or only in this process if calibration failed, perhaps because of this machine.
    """
    key = plan_key(task, template)
    if (plan := Plan.from_text(task.grading_plan, key)) is not None:
        return plan
    if template.plans is None:
        return make()
    path = template.plans / f"{template.key}-{key}.json"
    if (plan := _read(path, key) or _uncalibrated.get(path)) is not None:
        return plan
    template.plans.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        if (plan := _read(path, key) or _uncalibrated.get(path)) is None:
            plan = make()
            if plan.is_calibrated:
                write_whole(path, plan.to_text(key))
            else:
                _uncalibrated[path] = plan
    return plan


def _read(path: Path, key: str) -> Plan | None:
    try:
        return Plan.from_text(path.read_text(encoding="utf-8"), key)
    except (OSError, ValueError):
        return None
