from collections.abc import Mapping
from typing import Any

import pytest
from episodes import SHELF as ROW
from episodes import MakeEnv, played_by

from coding_gym import Completion
from coding_gym.agents.template_repair import template_repair
from coding_gym.tools import toolset_names

pytestmark = pytest.mark.slow

SHELF: dict[str, str] = ROW["files"]
SHARED = {
    "log.py": (
        "def note(text, lines=[]):\n"
        '    """Adds a line."""\n'
        "    lines.append(text)\n"
        "    return lines\n"
    ),
    "test_log.py": (
        "from log import note\n\n\n"
        "def test_one():\n    assert note('a') == ['a']\n\n\n"
        "def test_two():\n    assert note('b') == ['b']\n\n\n"
        "def test_given():\n    assert note('c', ['a']) == ['a', 'c']\n"
    ),
}
HOPELESS = {
    "poly.py": "def value(coefficients, x):\n    return 0\n",
    "test_poly.py": (
        "from poly import value\n\n\n"
        "def test_value():\n    assert value([1, 2, 3], 2) == 17\n"
        "    assert value([1, 2, 3], 3) == 34\n"
    ),
}
OUTSIDE = {
    "ok.py": "def f():\n    return 1\n",
    "test_ok.py": "import ok\n\n\ndef test_f():\n    assert len(dir(ok)) == 0\n",
}
HEALTHY = {"ok.py": "def f():\n    return 1\n", "test_ok.py": "def test_f():\n    pass\n"}


def play(
    make_env: MakeEnv, files: Mapping[str, str]
) -> tuple[list[dict[str, Any]], str, list[str]]:
    """Plays one episode up to its submission; returns the calls, the patch and all texts."""
    row = {
        "instance_id": "small",
        "problem_statement": "It does not work.",
        "files": dict(files),
        "created_at": "2024-01-01T00:00:00Z",
        "FAIL_TO_PASS": ["test_small.py::test_it"],
    }
    env = make_env(tasks=[row])
    _, info = env.reset(seed=0)
    agent = template_repair(env.episode)
    calls, seen = [], [info["text"]]
    for action in agent:
        assert isinstance(action, Completion)
        calls += [{"name": c.name, "arguments": c.arguments} for c in action.calls or ()]
        if calls[-1]["name"] == "submit":
            break
        *_, info = env.step(action)
        seen.append(info["text"])
    assert next(agent, None) is None
    return calls, env.episode.patch().text, seen


@pytest.mark.parametrize(
    ("files", "added"),
    [
        (SHELF, ["        if len(self.things) >= self.size:"]),
        (SHARED, ["def note(text, lines=None):", "    if lines is None:", "        lines = []"]),
    ],
    ids=["one edit", "a shared default"],
)
def test_agent_makes_only_the_repairing_edit(
    make_env: MakeEnv, files: Mapping[str, str], added: list[str]
) -> None:
    calls, patch, seen = play(make_env, files)
    lines = [line[1:] for line in patch.splitlines() if line[:1] == "+" and line[:3] != "+++"]
    assert lines == added
    assert f"{len(files)} failed" not in seen[-1]
    assert " passed" in seen[-1]
    assert " failed" not in seen[-1]
    assert len(calls) <= 40


@pytest.mark.parametrize(
    "files", [HOPELESS, OUTSIDE, HEALTHY], ids=["no edit repairs", "nothing ran", "no test fails"]
)
def test_agent_submits_without_a_repair(make_env: MakeEnv, files: Mapping[str, str]) -> None:
    calls, patch, _ = play(make_env, files)
    assert patch == ""
    assert calls[-1]["name"] == "submit"
    assert len(calls) <= 40


@pytest.mark.parametrize("toolset", sorted({*toolset_names()} - {"nano"}))
def test_agent_repairs_with_every_toolset(make_env: MakeEnv, toolset: str) -> None:
    row = {**ROW, "FAIL_TO_PASS": ["test_small.py::test_it"]}
    env = make_env(tasks=[row], toolset=toolset)
    trajectory = played_by(env, "template-repair")
    assert "+        if len(self.things) >= self.size:" in trajectory.patch
    assert len(trajectory.turns) <= 40
