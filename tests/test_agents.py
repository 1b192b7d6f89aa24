from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from episodes import Env, MakeEnv, played_by, restored_registries, shell

from coding_gym.agents.built_in import get_player
from coding_gym.errors import InvalidArgumentError
from coding_gym.tools import get_toolset, register_toolset, toolset_names
from coding_gym.trajectory import StopReason


@pytest.fixture
def env(make_env: MakeEnv) -> Env:
    return make_env()


def test_script_is_played_and_its_tree_graded(env: Env, tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text(shell("sed -i s/+/*/ shapes.py") + '\n\n"just text"\n')
    trajectory = played_by(env, str(script))
    assert [t.action for t in trajectory.turns][1] == "just text"
    assert trajectory.total_reward == 1.0


@pytest.mark.parametrize(
    ("content", "location"),
    [(b"{", "line 1"), (b"3\n", "line 1"), (b"\xff", "script.jsonl"), (None, "script.jsonl")],
)
def test_a_script_that_cannot_be_played_is_refused(
    tmp_path: Path, content: bytes | None, location: str
) -> None:
    script = tmp_path / "script.jsonl"
    if content is not None:
        script.write_bytes(content)
    with pytest.raises(InvalidArgumentError, match=location):
        get_player(str(script))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("temperature", {"sampling": {"temperature": -1}}),
        ("top_p", {"sampling": {"top_p": 7}}),
        ("min_p", {"sampling": {"min_p": -0.1}}),
        ("max_tokens", {"sampling": {"max_tokens": -3}}),
        ("input", {"prices": {"input": -1, "output": 1}}),
        ("output", {"prices": {"input": 1, "output": "nan"}}),
        ("cached_input", {"prices": {"input": 1, "output": 1, "cached_input": float("inf")}}),
        ("sampling", {"sampling": 5}),
        ("prices", {"prices": True}),
        ("temperature", {"sampling": {"temprature": 1}}),
        ("timeout_s", {"model_timeout_s": -5}),
    ],
)
def test_settings_outside_their_range_are_refused(
    name: str, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with pytest.raises(InvalidArgumentError, match=name):
        get_player("chat", model="m", **arguments)


def test_agents_refuse_a_toolset_they_cannot_use(make_env: MakeEnv) -> None:
    toolset = get_toolset("editor")
    tools = tuple(tool for tool in toolset.tools if tool.name in ("str_replace_editor", "submit"))
    with restored_registries():
        register_toolset(replace(toolset, name="part", tools=tools))
        env = make_env(toolset="part")
        for name in ("gold", "template-repair"):
            with pytest.raises(InvalidArgumentError, match="needs a tool that runs"):
                played_by(env, name)
        assert played_by(env, "noop").total_reward == 0.0
        stop_reason = played_by(env, "random").stop_reason
        assert stop_reason in (StopReason.SUBMITTED, StopReason.NO_TOOL_CALL)


@pytest.mark.parametrize("toolset", toolset_names())
def test_gold_applies_its_patch_on_every_toolset(make_env: MakeEnv, toolset: str) -> None:
    trajectory = played_by(make_env(toolset=toolset), "gold")
    assert all(result.ok for turn in trajectory.turns for result in turn.results)
    assert (trajectory.stop_reason, trajectory.total_reward) == (StopReason.SUBMITTED, 1.0)
