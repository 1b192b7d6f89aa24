"""Replies of the programs inside, forged by the tree's own code: bounded answers, never errors."""

import json
import random
from typing import TYPE_CHECKING, Any, cast

import pytest
from episodes import Scene

from coding_gym.calls import ExecResult

if TYPE_CHECKING:
    from coding_gym.sandbox import Sandbox


LONG = "x" * 200_000
KEYS = ("text", "ok", "problem", "errors", "session")
ROW_KEYS = ("entry", "commands", "digests", "first", "current", "fingerprint", "file", "line")
ATOMS: tuple[Any, ...] = (
    *(None, True, False, 0, 1, 5, -1, 10**30, 1.5, 1e308, float("nan"), float("inf")),
    *("", "x", "\ud800", "a\nb\0", LONG, "stopped", "late", "ended", [], {}, [[]], [{}]),
)
CALLS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("heavy", "repo_map", {"max_tokens": 8000}),
    ("heavy", "find_definition", {"name": "f"}),
    ("heavy", "find_references", {"name": "f"}),
    ("heavy", "locate_fault", {}),
    ("heavy", "locate_fault", {"test": "test_a.py::test_b"}),
    ("heavy", "edit", {"path": "a.py", "old": "old", "new": "new"}),
)
MAX_ANSWER_CHARS = 64_000


class ForgingSandbox:
    """A sandbox of one file, where a program's reply is whatever was put into `value`."""

    workdir = "/workspace"

    def __init__(self) -> None:
        self.value: dict[str, Any] = {}

    def run(self, command: str, *, env: dict[str, str], **_: Any) -> ExecResult:
        if "CODING_GYM_START" in env:
            return ExecResult(0, f"noise\n{json.dumps(self.value)}")
        return ExecResult(0, f"/workspace\n/workspace/{env['FILE']}\n" if command else "")

    def read_file(self, path: str, *, max_bytes: int) -> bytes:
        return b"old\n" if path and max_bytes else b""

    def write_file(self, path: str, data: bytes) -> None:
        assert path.startswith("/workspace/")
        assert data


def scenes(sandbox: ForgingSandbox) -> dict[str, Scene]:
    return {name: Scene(cast("Sandbox", sandbox), toolset=name) for name in ("heavy",)}


def drawn(rng: random.Random) -> Any:
    """Draws a part of a reply: something hostile, or a list of such things or of rows of them."""
    kind, number = rng.random(), rng.choice((1, 2, 3, 60))
    if kind < 0.5:
        return rng.choice(ATOMS)
    if kind < 0.7:
        return [rng.choice(ATOMS) for _ in range(number)]
    return [{key: rng.choice(ATOMS) for key in ROW_KEYS} for _ in range(number)]


@pytest.mark.parametrize("seed", range(2))
def test_forged_replies_are_answered_and_bounded(seed: int) -> None:
    rng, sandbox = random.Random(seed), ForgingSandbox()
    for _ in range(5):
        played = scenes(sandbox)
        for name, tool, arguments in rng.sample(CALLS, len(CALLS)):
            sandbox.value = {key: drawn(rng) for key in KEYS if rng.random() < 0.8}
            content = played[name].reply(tool, **arguments)
            content.encode()
            assert 0 < len(content) <= MAX_ANSWER_CHARS, (tool, sandbox.value)
            state = json.dumps(played[name].state, allow_nan=False)
            assert len(state) < MAX_ANSWER_CHARS, (tool, sandbox.value)
