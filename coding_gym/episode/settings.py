"""The arguments of an episode in its record, as far as they shape what a policy sees."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from coding_gym.episode.limits import Limits
from coding_gym.json_record import JsonRecord
from coding_gym.sandbox.options import SandboxOptions
from coding_gym.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSandbox(JsonRecord):
    """The fields of `SandboxOptions` in a record."""

    name: str = "auto"
    shell: str = "fresh"
    image: str = ""
    limits: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedWrapper(JsonRecord):
    """A wrapper that shaped the rewards of a record, by its name and arguments."""

    name: str
    kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(JsonRecord):
    """The settings of a trajectory as they are read; `settings_of` writes them.

    Attributes:
        tasks: The source of the task, "" where it was given as a row.
        task_digest: See `task_digest`.
        tool_format: How calls are written.
        limits: Fields of `Limits`.
        sandbox: Where commands ran.
        command_timeout_s: Seconds that one tool call could take.
        grading: Whether the hidden tests graded the end: ``"hidden"`` or ``"none"``.
        wrappers: The wrappers that shaped rewards, innermost first.
    """

    tasks: str = ""
    task_digest: str
    tool_format: str
    limits: Mapping[str, Any]
    sandbox: RecordedSandbox
    command_timeout_s: float
    grading: str = "hidden"
    wrappers: tuple[RecordedWrapper, ...] = ()


def settings_of(
    task: Task,
    source: str,
    *,
    tool_format: str,
    limits: Limits,
    sandbox: SandboxOptions,
    command_timeout_s: float,
) -> dict[str, Any]:
    """Returns what another process needs to play the same actions in an equal episode.

    Toolset and tokenizer are fields of the trajectory itself.
    """
    return {
        "tasks": source,
        "task_digest": task_digest(task),
        "tool_format": tool_format,
        "limits": asdict(limits),
        "sandbox": {
            "name": sandbox.name,
            "shell": sandbox.shell,
            "image": sandbox.image,
            "limits": dict(sandbox.limits),
        },
        "command_timeout_s": command_timeout_s,
    }


def task_digest(task: Task) -> str:
    """Returns a digest of a task's problem, patches and tests."""
    parts = [
        task.base_commit,
        task.problem_statement,
        task.gold_patch,
        task.test_patch,
        [*task.fail_to_pass, "", *task.pass_to_pass],
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
