"""Actions that call tools, most of them of the toolset ``nano`` on the tiny task."""

import json
from typing import Any


def call(name: str, **arguments: Any) -> str:
    """A call of one tool."""
    return json.dumps({"name": name, "arguments": arguments})


def shell(command: str) -> str:
    """A call of the tool ``shell``."""
    return call("shell", cmd=command)


def shells(*commands: str) -> str:
    """Several calls of the tool ``shell``."""
    return f"[{', '.join(map(shell, commands))}]"


def returning(expression: str) -> str:
    """A call that makes ``area`` return something else."""
    return shell(f"sed -i 's/return .*/return {expression}/' shapes.py")


def replies(info: dict[str, Any]) -> list[str]:
    """What the tools answered in a step."""
    return [m["content"] for m in info["messages"] if m["role"] == "tool"]


FIX = call("apply_patch", search="width + height", replace="width * height", file="shapes.py")
SUBMIT = call("submit")
TRUE = shell("true")
