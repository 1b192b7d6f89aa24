"""Helpers for tests of episodes: the tiny task and its actions, comparisons, calls of tools.

The fixtures that make environments of the tiny task are in `tests/conftest.py`.
"""

import contextlib
import io
import json
import multiprocessing
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any
from unittest.mock import patch

import gymnasium as gym
from gymnasium.utils.env_checker import data_equivalence

from coding_gym import Grade, Stop, tools
from coding_gym.agents.built_in import get_player
from coding_gym.calls import ToolCall, ToolResult
from coding_gym.cli.app import main
from coding_gym.envs import CodingRepairEnv
from coding_gym.patch import Patch
from coding_gym.rewards import registry
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.tools import ToolContext, get_toolset
from coding_gym.trajectory import Trajectory
from coding_gym.vector import CodingRepairVectorEnv

Env = gym.Env[Any, Any]
Closing = Callable[[Any], Any]
Make = Callable[..., Env]
MakeEnv = Callable[..., CodingRepairEnv]
MakeVec = Callable[..., CodingRepairVectorEnv]


def raising(error: BaseException) -> Callable[..., Any]:
    """Returns a function that raises ``error`` for any arguments."""

    def fail(*_arguments: Any, **_options: Any) -> None:
        raise error

    return fail


def in_another_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a module's function in a new Python process and returns the result."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def played_by(env: Env, agent: str, seed: int = 0) -> Trajectory:
    """Plays one episode with an agent without a model, and returns its trajectory."""
    env.reset(seed=seed)
    unwrapped: Any = env.unwrapped
    player: Any = get_player(agent)
    for action in chain(player.actions(unwrapped.episode, seed), [Stop()]):
        if any(env.step(action)[2:4]):
            break
    trajectory: Trajectory = unwrapped.episode.trajectory()
    return trajectory


def call(name: str, **arguments: Any) -> str:
    """Returns an action with one tool call."""
    return json.dumps({"name": name, "arguments": arguments})


def shell(command: str) -> str:
    """Returns an action with one call of nano's tool ``shell``."""
    return call("shell", cmd=command)


def shells(*commands: str) -> str:
    """Returns an action with several calls of the tool ``shell``."""
    return f"[{', '.join(map(shell, commands))}]"


def returning(expression: str) -> str:
    """Returns an action after which the tiny task's ``area`` returns an expression."""
    return shell(f"sed -i 's/return .*/return {expression}/' shapes.py")


def replies(info: dict[str, Any]) -> list[str]:
    """Returns the contents of a step's tool messages."""
    return [m["content"] for m in info["messages"] if m["role"] == "tool"]


BUGGY = "def area(width, height):\n    return width + height\n"
TESTS = (
    "from shapes import area\n\n\n"
    "def test_square():\n    assert area(2, 2) == 4\n\n\n"
    "def test_wide():\n    assert area(3, 5) == 15\n"
)
HIDDEN = (
    "from shapes import area\n\n\n"
    "def test_tall():\n    assert area(2, 7) == 14\n\n\n"
    "def test_flat():\n    assert area(9, 0) == 0\n"
)
TINY_ROW: dict[str, Any] = {
    "instance_id": "shapes-area",
    "problem_statement": "area(3, 5) gives 8\n\nI expected 15.",
    "files": {"shapes.py": BUGGY, "test_shapes.py": TESTS},
    "patch": Patch.between({"shapes.py": BUGGY}, {"shapes.py": BUGGY.replace("+", "*")}).text,
    "test_patch": Patch.between({}, {"test_hidden.py": HIDDEN}).text,
    "FAIL_TO_PASS": ["test_hidden.py::test_tall", "test_hidden.py::test_flat"],
    "PASS_TO_PASS": ["test_shapes.py::test_square"],
    "created_at": "2024-01-01T00:00:00Z",
    "split": "train",
}
FIX = call("apply_patch", search="width + height", replace="width * height", file="shapes.py")
SUBMIT = call("submit")
TRUE = shell("true")


def assert_same(left: Any, right: Any) -> None:
    """Asserts that nested tuples, dicts and arrays have equal values and types."""
    assert data_equivalence(left, right, exact=True), (left, right)


def play(env: Any, actions: Iterable[Any]) -> list[str]:
    """Plays actions and returns the text of each step's result; see `as_text`."""
    return [as_text(*env.step(action)) for action in actions]


def as_text(observation: Any, *others: Any) -> str:
    """Returns the result of a step as text, exact except for the seconds of the budget."""
    if isinstance(observation, dict):
        observation = {k: (str(value.dtype), value.tolist()) for k, value in observation.items()}
    *rest, info = others
    budget = info["budget"] | {"seconds": None}  # the clock varies
    return json.dumps([observation, *rest, info | {"budget": budget}], default=Grade.to_json)


@dataclass
class Scene:
    """A sandbox in which tests call tools without an episode.

    Attributes:
        sandbox: The sandbox.
        toolset: The name of the toolset.
        command_timeout_s: Time limit of a command in seconds.
    """

    sandbox: Sandbox
    toolset: str = ""
    command_timeout_s: float = 30.0

    def call(self, tool: str, **arguments: Any) -> ToolResult:
        """Calls one tool and returns the result."""
        call = ToolCall(tool, arguments, "call_7")
        context = ToolContext(self.sandbox, self.command_timeout_s)
        return get_toolset(self.toolset).execute(call, context)

    def reply(self, tool: str, **arguments: Any) -> str:
        """Calls one tool and returns the text of the result."""
        return self.call(tool, **arguments).content


def run_command(*arguments: str | Path, code: int = 0) -> str:
    """Runs ``coding-gym``; returns its output with errors last; asserts the exit code."""
    out, err = io.StringIO(), io.StringIO()
    exit_code: object = 0
    with (
        patch.object(sys, "argv", ["coding-gym", *map(str, arguments)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as exit_error:
            exit_code = exit_error.code or 0
    printed = out.getvalue() + err.getvalue()
    assert exit_code == code, printed
    return printed


# A task whose visible test fails, as the search for repairs requires.
SHELF: dict[str, Any] = {
    "instance_id": "shelf-size",
    "problem_statement": "A shelf of 1 takes two things.",
    "files": {
        "shelf.py": (
            "class Shelf:\n"
            "    def __init__(self, size):\n"
            "        self.size = size\n"
            "        self.things = []\n\n"
            "    def put(self, thing):\n"
            "        if len(self.things) > self.size:\n"
            "            raise ValueError(thing)\n"
            "        self.things.append(thing)\n"
        ),
        "tests/test_shelf.py": (
            "import pytest\n\nfrom shelf import Shelf\n\n\n"
            "def test_put():\n    shelf = Shelf(2)\n    shelf.put(1)\n"
            "    assert shelf.things == [1]\n\n\n"
            "def test_full():\n    shelf = Shelf(1)\n    shelf.put(1)\n"
            "    with pytest.raises(ValueError):\n        shelf.put(2)\n"
        ),
    },
    "test_patch": (
        "--- /dev/null\n+++ b/tests/test_more.py\n@@ -0,0 +1,8 @@\n"
        "+import pytest\n+\n+from shelf import Shelf\n+\n+\n"
        "+def test_a_shelf_of_none():\n+    with pytest.raises(ValueError):\n"
        "+        Shelf(0).put(1)\n"
    ),
    "FAIL_TO_PASS": ["tests/test_more.py::test_a_shelf_of_none"],
    "PASS_TO_PASS": ["tests/test_shelf.py::test_put"],
    "created_at": "2024-01-01T00:00:00Z",
}


@contextlib.contextmanager
def restored_registries() -> Iterator[None]:
    """Removes the toolsets and rewards that the ``with`` block registered."""
    with patch.dict(tools._TOOLSETS), patch.dict(registry._REWARDS):
        yield
