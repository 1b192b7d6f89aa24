"""What an episode was made with, as far as that shapes what a policy sees: values of JSON."""

import hashlib
import json
from dataclasses import asdict
from typing import Any

from coding_gym.episode.limits import Limits
from coding_gym.sandbox.options import SandboxOptions
from coding_gym.task import Task


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
    """Returns what tells a task from another one of its name: what it asks, and who judges."""
    parts = [
        task.base_commit,
        task.problem_statement,
        task.gold_patch,
        task.test_patch,
        [*task.fail_to_pass, "", *task.pass_to_pass],
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
