"""Tasks as the folders of Harbor's format, with a verifier in an environment of its own."""

import json
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from random import Random
from typing import Any

from coding_gym.errors import InvalidArgumentError, InvalidTaskError, PatchError
from coding_gym.grade import Level
from coding_gym.grading import Plan, new_plan, plan_key
from coding_gym.grading.challenge import Suite
from coding_gym.grading.negation import Negation
from coding_gym.grading.plan import stored_plan
from coding_gym.grading.pytest_config import NEUTRAL_OPTIONS
from coding_gym.grading.runners.pytest_runner import PytestRunner
from coding_gym.grading.selection import graders_globs, path_matcher
from coding_gym.grading.supervision import LOADER, pytest_environment
from coding_gym.patch import Patch
from coding_gym.sandbox import default_interpreter
from coding_gym.task import Task
from coding_gym.workspace import Template
from coding_gym.workspace.pytest_layer import pytest_distributions

WORKDIR = "/app"
GOLD = "gold.patch"
_PROGRAMS = ("supervisor.py", "bootstrap.py", "pytest_program.py")
_BASE = "python:{}-slim-bookworm"
_AGENT_TIMEOUT_S, _MARGIN_S = 1800.0, 120.0
_GOLD_FACTOR = 10.0
_METADATA = ("repo", "language", "difficulty", "split", "created_at")
_TEXT = ("utf-8", "surrogateescape")
_IGNORED = shutil.ignore_patterns(".git")
_WHERE = f"\nThe project lies in {WORKDIR}.\n"

_MANIFEST = """\
schema_version = "1.4"
artifacts = ["{workdir}"]

[task]
name = "{name}"

[metadata]
repo = {repo}
language = {language}
difficulty = {difficulty}
split = {split}
created_at = {created_at}

[agent]
timeout_sec = {agent_timeout_s}
user = "agent"
network_mode = "no-network"

[verifier]
timeout_sec = {verifier_timeout_s}
user = "root"
environment_mode = "separate"

[verifier.environment]
network_mode = "no-network"

[environment]
workdir = "{workdir}"
"""
_TEST = """\
#!/bin/bash
# The grader removes old rewards, ends what the tests started and writes the reward last.
cd / && exec python3 -I /tests/grade.py
"""


def check_harbor_tasks(tasks: Sequence[Task], out: Path) -> None:
    """Refuses what cannot be exported, before anything is written.

    Raises:
        InvalidTaskError: Harbor's format cannot hold a task; names the field.
        InvalidArgumentError: A folder is there already, or two tasks would share one.
    """
    names: dict[str, str] = {}
    for task in tasks:
        if problem := _problem(task):
            raise InvalidTaskError(
                f"task {task.task_id} cannot be exported to Harbor: field {problem}; leave it out"
            )
        name = harbor_name(task)
        if other := names.get(name):
            raise InvalidArgumentError(
                f"tasks {other} and {task.task_id} would both be the folder {name!r}; export them "
                "into two folders"
            )
        names[name] = task.task_id
        if (out / name).exists():
            raise InvalidArgumentError(f"{out / name} is there already; name another folder")


def write_harbor_task(task: Task, template: Template, folder: Path) -> None:
    """Writes a task as a folder that Harbor runs.

    Args:
        task: A task that `check_harbor_tasks` lets pass.
        template: Its template.
        folder: Where; it must not exist.

    Raises:
        InvalidTaskError: The gold patch does not pass the hidden tests each time.
        GradingError: The task cannot be graded.
        OSError: The folder cannot be written.
    """
    plan = stored_plan(task, template, partial(new_plan, task, template))
    if not plan.is_calibrated or set(plan.unstable) & set(task.fail_to_pass):
        raise InvalidTaskError(
            f"task {task.task_id}: its hidden tests do not pass reliably with field 'patch'; "
            "`coding-gym validate` says more"
        )
    tree, *made = template.spec.layers
    base = _Base(task, tree, made)
    _write(folder / "task.toml", _manifest(task))
    _write(folder / "instruction.md", f"{task.problem_statement.strip()}\n{_WHERE}")
    shutil.copytree(tree, folder / "environment/tree", symlinks=True, ignore=_IGNORED)
    _write(folder / "environment/Dockerfile", _dockerfile(task, for_agent=True))
    _write_solution(task, base, folder / "solution")
    if task.install_commands:
        shutil.copytree(tree, folder / "tests/tree", symlinks=True, ignore=_IGNORED)
    _write(folder / "tests/Dockerfile", _dockerfile(task, for_agent=False))
    _write(folder / "tests/test.sh", _TEST)
    for name in _PROGRAMS:
        program = resources.files("coding_gym.grading").joinpath(name)
        _write(folder / "tests" / name, program.read_text(encoding="utf-8"))
    grader = resources.files("coding_gym.tasks").joinpath("harbor_verifier.py")
    _write(folder / "tests/grade.py", grader.read_text(encoding="utf-8"))
    for path, data in base.own.items():
        _write(folder / "tests/own" / path, data)
    settings = base.settings(plan, Random(plan_key(task, template)))  # noqa: S311 - no secret
    _write(folder / "tests/spec.json", json.dumps(settings))


def harbor_name(task: Task) -> str:
    """Returns the name of a task's folder."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", task.task_id).strip("-_")


def _problem(task: Task) -> str:
    """Returns the field that Harbor's format, or its verifier here, cannot hold; or ""."""
    if task.runner != "pytest":
        return f"'runner' must be 'pytest', got {task.runner!r}"
    if task.is_in_image:
        return f"'interpreter' must be one of this machine, got {task.interpreter!r}"
    for name, text in (("patch", task.gold_patch), ("test_patch", task.test_patch)):
        if any(change.is_binary for change in Patch(text).files):
            return f"{name!r} must change text files only"
    return "" if task.gold_patch else "'patch' must hold the reference repair"


class _Base:
    """The base tree of a task, divided into what a policy may change and the graders' own.

    Attributes:
        own: Content, by path, of the graders' files, with the hidden tests.
    """

    def __init__(self, task: Task, tree: Path, made: list[Path]) -> None:
        self._task, self._tree = task, tree
        runner = PytestRunner()
        self._paths = runner.files(task)
        self._globs = graders_globs(task, test_files=self._paths, patterns=runner.patterns(task))
        matches = path_matcher(f".{glob}" if glob[0] == "/" else glob for glob in self._globs)
        files = {path.relative_to(tree).as_posix(): path for path in _files(tree)}
        self.own = {place: path.read_bytes() for place, path in files.items() if matches(place)}
        for layer in reversed(made):
            built = {path.relative_to(layer).as_posix(): path for path in _files(layer)}
            self.own |= {place: path.read_bytes() for place, path in built.items()}
            self._globs += [f"/{place}" for place in built]
        self.own |= self.changed(task.test_patch)

    def changed(self, patch: str) -> dict[str, bytes]:
        """Returns the files that a patch leaves, of those that it touches."""
        touched = [self._tree / path for path in Patch(patch).paths]
        texts = {
            path.relative_to(self._tree).as_posix(): path.read_bytes().decode(*_TEXT)
            for path in touched
            if path.is_file()
        }
        try:
            after = Patch(patch).apply(texts)
        except PatchError as error:
            raise InvalidTaskError(f"task {self._task.task_id}: {error}") from error
        return {path: text.encode(*_TEXT) for path, text in after.items()}

    def settings(self, plan: Plan, rng: Random) -> dict[str, Any]:
        """Returns what the verifier's program reads."""
        task = self._task
        gold = self.changed(task.gold_patch)
        files = {path: {**self.own, **gold}[path] for path in self._paths}
        suite = Suite(files, PytestRunner().functions(task, files), renames=True)
        locations = {
            location: {
                form: _lines(files, suite.rewritten({location: negation}, chosen, rng))
                for form, chosen in (("plain", ()), ("negated", (location,)))
            }
            for location, negation in plan.negations.items()
            if _is_usable(suite, location, negation)
        }
        loose = {*plan.excluded, *plan.unstable, *plan.xfailing}
        units = [sorted(unit) for unit in plan.units if unit <= locations.keys()]
        known = {location for unit in units for location in unit}
        expected = {}
        for test in task.expected_tests:
            found = suite.locations.get(test, frozenset())
            is_negated = found <= known and plan.level(test) is not Level.STRUCTURE
            if test not in loose:
                expected[test] = sorted(found) if is_negated else []
        return {
            "workdir": WORKDIR,
            "timeout_s": _timeout_s(task),
            "paths": self._paths,
            "options": dict(NEUTRAL_OPTIONS),
            "environment": pytest_environment(task.has_own_pytest),
            "loader": LOADER,
            "graders": self._globs,
            "gold": sorted(Patch(task.gold_patch).paths),
            "places": locations,
            "units": units,
            "expected": expected,
        }


def _is_usable(suite: Suite, location: str, negation: Negation) -> bool:
    """Whether a negation fits its test, and gives tests with parameters no other names."""
    fits = suite.digest(location) == negation.digest and negation.number in suite.usable(location)
    return fits and suite.candidates(location)[negation.number].table is None


def _lines(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> dict[int, str]:
    """Returns the lines that differ, by number from 0; no line is added or taken away."""
    ((path, data),) = after.items()
    old, new = (text.decode("latin-1").split("\n") for text in (before[path], data))
    pairs = enumerate(zip(old, new, strict=True))
    return {number: line for number, (was, line) in pairs if was != line}


def _write_solution(task: Task, base: _Base, folder: Path) -> None:
    """Writes the repaired files and a script that needs neither git nor patch."""
    after = base.changed(task.gold_patch)
    gone = sorted(Patch(task.gold_patch).paths - after.keys())
    for path, data in after.items():
        _write(folder / "files" / path, data)
    _write(folder / GOLD, task.gold_patch.encode(*_TEXT))
    lines = ["#!/bin/bash", "set -e", f"cd {WORKDIR}"]
    lines += [f"rm -- {shlex.join(gone)}"] if gone else []
    lines += ["cp -R /solution/files/. ."] if after else []
    _write(folder / "solve.sh", "\n".join([*lines, ""]))


def _dockerfile(task: Task, *, for_agent: bool) -> str:
    version = default_interpreter().version if task.interpreter == "base" else task.interpreter
    lines = [f"FROM {_BASE.format('.'.join(version.split('.')[:2]))}", f"WORKDIR {WORKDIR}"]
    if not task.has_own_pytest:
        pins = [f"{dist.name}=={dist.version}" for dist in pytest_distributions(version)]
        lines.append(f"RUN pip install --no-cache-dir {' '.join(pins)}")
    if for_agent or task.install_commands:
        lines.append(f"COPY tree/ {WORKDIR}/")
    lines += [f"RUN {command}" for command in task.install_commands]
    if for_agent:
        lines += [f"RUN useradd --create-home agent && chown -R agent {WORKDIR}", "USER agent"]
    else:
        lines.append("COPY . /tests/")
    return "\n".join([*lines, ""])


def _manifest(task: Task) -> str:
    texts = {name: json.dumps(getattr(task, name)) for name in _METADATA}
    return _MANIFEST.format(
        workdir=WORKDIR,
        name=f"coding-gym/{harbor_name(task)}",
        agent_timeout_s=_AGENT_TIMEOUT_S,
        verifier_timeout_s=2 * _timeout_s(task) + _MARGIN_S,
        **texts,
    )


def _timeout_s(task: Task) -> float:
    return max(task.grading_timeout_s, _GOLD_FACTOR * task.gold_duration_s)


def _files(folder: Path) -> list[Path]:
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and path.relative_to(folder).parts[0] != ".git"
    ]


def _write(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    if path.suffix == ".sh":
        path.chmod(0o755)
