from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from episodes import Env, MakeEnv, played_by, restored_registries, shell

from coding_gym.agents.registry import get_agent
from coding_gym.errors import InvalidArgumentError
from coding_gym.patch import Patch
from coding_gym.tools import get_toolset, register_toolset, toolset_names
from coding_gym.trajectory import StopReason


@pytest.fixture
def env(make_env: MakeEnv) -> Env:
    return make_env()


def test_script_is_played_and_its_tree_graded(env: Env, tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text(shell("sed -i s/+/*/ shapes.py") + '\n\n"just text"\n')
    trajectory = played_by(env, "scripted", script=str(script))
    assert [t.action for t in trajectory.turns][1] == "just text"
    assert trajectory.total_reward == 1.0


def test_an_agent_that_runs_dry_is_stopped_and_graded(env: Env, tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text('{"name": "shell", "arguments": {"cmd": "true"}}\n')
    trajectory = played_by(env, "scripted", script=str(script))
    assert trajectory.stop_reason is StopReason.STOPPED
    assert trajectory.grade is not None


@pytest.mark.parametrize(
    ("agent", "content", "named"),
    [
        ("scripted", b"{", "line 1"),
        ("scripted", b"3\n", "line 1"),
        ("scripted", b"\xff", "script.jsonl"),
        ("scripted", None, "script.jsonl"),
        ("noop", b"", "noop"),
    ],
)
def test_a_script_that_cannot_be_played_is_refused(
    tmp_path: Path, agent: str, content: bytes | None, named: str
) -> None:
    script = tmp_path / "script.jsonl"
    if content is not None:
        script.write_bytes(content)
    with pytest.raises(InvalidArgumentError, match=named):
        get_agent(agent, script=str(script))
    with pytest.raises(InvalidArgumentError):
        get_agent("scripted")


@pytest.fixture
def with_tools() -> Iterator[Callable[..., str]]:
    """Registers a toolset with only some of another's tools, and returns its name."""

    def register(name: str, *tools: str) -> str:
        toolset = get_toolset(name)
        kept = tuple(tool for tool in toolset.tools if tool.name in tools)
        register_toolset(replace(toolset, name="part", tools=kept))
        return "part"

    with restored_registries():
        yield register


@pytest.mark.parametrize("toolset", toolset_names())
def test_only_gold_resolves_on_every_toolset(make_env: MakeEnv, toolset: str) -> None:
    env = make_env(toolset=toolset)
    assert played_by(env, "gold").total_reward == 1.0
    assert played_by(env, "noop").total_reward == 0.0


@pytest.mark.parametrize(
    ("toolset", "tool_format", "tools"),
    [
        ("nano", "hermes", ["shell", "apply_patch", "submit"]),
        ("editor", "qwen3_coder", ["str_replace_editor"] * 2 + ["submit"]),
        ("thesis", "pythonic", ["view_file", "str_replace", "submit"]),
        ("codex", "auto", ["read_file", "apply_patch", "submit"]),
        ("bash", "bash_block", ["bash"] * 3),
    ],
)
def test_gold_reads_edits_and_submits(
    make_env: MakeEnv, toolset: str, tool_format: str, tools: list[str]
) -> None:
    record = played_by(make_env(toolset=toolset, tool_format=tool_format), "gold")
    turns = [turn for turn in record.turns if turn.calls]
    assert [turn.calls[0].name for turn in turns] == tools
    assert [len(turn.calls) for turn in turns] == [1, 1, 1]
    assert all(result.ok for turn in turns for result in turn.results)
    assert "width + height" in turns[0].results[0].content
    assert all(bool(turn.action) == (tool_format != "auto") for turn in turns)
    assert record.total_reward == 1.0


def test_gold_applies_the_patch_where_a_text_occurs_twice(
    make_env: MakeEnv, tiny_row: dict[str, Any]
) -> None:
    half = "def one():\n    a = 1\n    b = 2\n    c = 3\n    return a + b\n\n\n"
    before = half.replace("one", "area") + half + half.replace("one", "area")
    after = half.replace("one", "area") + half + half.replace("one", "area").replace("+", "*")
    row = {
        **tiny_row,
        "files": {"shapes.py": before, "test_shapes.py": "def test_square(): pass\n"},
    }
    row["patch"] = Patch.between({"shapes.py": before}, {"shapes.py": after}).text
    record = played_by(make_env(tasks=[row], grading="none"), "gold")
    oks = [result.ok for turn in record.turns for result in turn.results]
    assert oks == [True, False, True, True]
    assert "-    return a + b\n+    return a * b" in record.patch


def test_gold_resolves_with_a_shell_alone(
    make_env: MakeEnv, with_tools: Callable[..., str]
) -> None:
    assert played_by(make_env(toolset=with_tools("editor", "bash")), "gold").total_reward == 1.0


@pytest.mark.parametrize(
    ("toolset", "tool"),
    [("nano", "apply_patch"), ("editor", "str_replace_editor")],
)
def test_agents_refuse_a_toolset_they_cannot_use(
    make_env: MakeEnv, with_tools: Callable[..., str], toolset: str, tool: str
) -> None:
    with restored_registries():
        only = get_toolset(toolset)
        register_toolset(replace(only, name="bare", tools=only.tools[-1:]))
        with pytest.raises(InvalidArgumentError, match="agent 'gold' needs a tool that runs"):
            played_by(make_env(toolset="bare"), "gold")
    env = make_env(toolset=with_tools(toolset, tool, "submit"))
    with pytest.raises(InvalidArgumentError, match="agent 'template-repair' needs a tool"):
        played_by(env, "template-repair")
    assert played_by(env, "gold").total_reward == 1.0
    assert played_by(env, "noop").total_reward == 0.0
    ended = played_by(env, "random").stop_reason
    assert ended in (StopReason.SUBMITTED, StopReason.NO_TOOL_CALL)
