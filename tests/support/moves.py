"""Actions of the toolset ``nano`` on the tiny task."""

import json

FIX = json.dumps(
    {
        "name": "apply_patch",
        "arguments": {"search": "width + height", "replace": "width * height", "file": "shapes.py"},
    }
)
SUBMIT = '{"name": "submit", "arguments": {}}'


def shell(command: str) -> str:
    """A call of the tool ``shell``."""
    return json.dumps({"name": "shell", "arguments": {"cmd": command}})


def shells(*commands: str) -> str:
    """Several calls of the tool ``shell``."""
    return json.dumps([{"name": "shell", "arguments": {"cmd": c}} for c in commands])


def returning(expression: str) -> str:
    """A call that makes ``area`` return something else."""
    return shell(f"sed -i 's/return .*/return {expression}/' shapes.py")


TRUE = shell("true")
