"""Rewards for exploration: the test cases of CodeRepairRL, and cases with other scores."""

import pytest

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.patch import Patch
from coding_gym.rewards import (
    exploration_depth,
    exploration_efficiency,
    terminal_habits,
    tool_call_validity,
)
from coding_gym.rewards.exploration import paths_in, shell_commands
from coding_gym.tools import get_toolset
from coding_gym.trajectory import Turn

FAILED = "command failed with exit code 1"
Run = tuple[str, str]


def turns(*runs: Run, tool: str = "shell", argument: str = "cmd") -> list[Turn]:
    return [
        Turn(
            action="",
            calls=(ToolCall(tool, {argument: command}),),
            results=(ToolResult(output, ok=output != FAILED),),
        )
        for command, output in runs
    ]


def test_terminal_habits_of_examples() -> None:
    cases = [
        ([("ls -la", ""), ("echo done", "done")], 0.3),
        ([("echo x", "x"), ("pwd", "/"), ("ls -la", "")], 0.0),
        ([("echo hi", "hi"), ("rg -n 'p' src/file.py", "1:match")], 0.4),
        ([("grep -n p file.py", FAILED)], 0.0),
        ([("echo hi", "hi"), ("pwd", "/"), ("sed -n '10,20p' f.py", "lines")], 0.3),
        ([("cat bigfile.py", "...")], 0.0),
        ([("echo", "ok"), ("pwd", "/"), ("head -n 9 f.py | sed -n '1,2p'", "lines")], 0.3),
        ([("ls", ""), ("rg -l 'x'", "file.py"), ("sed -n '1,2p' file.py", "1:a")], 1.0),
        ([("echo hi", "hi"), ("rg -n 'x' f.py", FAILED), ("sed -n '1,2p' f.py", "1:a")], 0.3),
        ([], 0.0),
    ]
    for runs, score in cases:
        assert terminal_habits(turns(*runs)) == pytest.approx(score), runs
        bash_turns = turns(*runs, tool="bash", argument="command")
        assert terminal_habits(bash_turns) == pytest.approx(score), runs


HALF = [("echo ok", "ok"), ("rg -n 'x' file.py", FAILED), ("pwd", "/")]
HALF += [("grep -n y missing.py", FAILED), ("echo ok2", "ok2"), ("find . -name no", FAILED)]


def test_exploration_depth_of_examples() -> None:
    cases = [
        ([("rg -l 'WSIReader'", "src/a.py"), ("sed src/a.py", "...")], 0.25),
        (HALF, 0.10),
        ([("echo a", "a"), ("echo a", "a")], 0.0),
        ([("rg -n 'x' file.py", FAILED)] * 2, 0.0),
        ([("echo big", "output truncated")], 0.0),
        ([("rg -n x", "src/a.py"), ("rg -n x", "src/a.py")], 0.15 - 0.07),
        # CodeRepairRL gives other scores in these cases.
        ([("rg -l 'x'", "src/a.py"), ("sed src/b.py", "...")], 0.15),
        ([("rg -l x", "src/a.py"), ("sed -n 1,9p src/a.py", "t"), ("cat b", "truncated")], 0.25),
    ]
    for runs, score in cases:
        assert exploration_depth(turns(*runs)) == pytest.approx(score), runs


def test_penalties_are_bounded_and_scores_never_negative() -> None:
    penalized = [("echo a", "a"), ("echo a", "a"), ("grep y z", FAILED), ("grep y z", FAILED)]
    penalized += [("cat big", "... output truncated"), ("true", "")]
    assert exploration_depth(turns(*penalized)) == 0
    rewarded = [("rg -n x src/", "src/a.py"), ("sed 5q src/a.py", "x")]
    rewarded += [*penalized[:2], ("true", ""), ("id", "")]
    assert exploration_depth(turns(*rewarded)) == pytest.approx(0.25 + 0.20 - 0.07)


def test_a_shell_call_without_a_result_has_failed() -> None:
    calls = (ToolCall("shell", {"cmd": "ls"}), ToolCall("view", {"cmd": "ls"}))
    commands = shell_commands([Turn(action="", calls=calls)])
    assert [(command.text, command.ok) for command in commands] == [("ls", False)]
    malformed = Turn(
        action="", calls=(ToolCall("shell", {"cmd": 3}), ToolCall("shell", error="no"))
    )
    assert shell_commands([malformed]) == []


def test_hostile_output_is_read_in_linear_time() -> None:
    assert paths_in("a" * 10_000_000) == set()
    assert exploration_depth(turns(("rg x", "/" * 5_000_000), ("sed " + " " * 1_000_000, ""))) == 0


def gold(*paths: str) -> str:
    """Returns a patch that changes these files."""
    return Patch.between(dict.fromkeys(paths, "1\n"), dict.fromkeys(paths, "2\n")).text


def test_efficiency_counts_files_and_calls() -> None:
    shell = turns(("cat ./src/a.py", "x"), ("cat src/a.py src/b.py", "x"), ("cat c.py", FAILED))
    view = Turn(
        action="", calls=(ToolCall("view_file", {"path": "./d.py"}),), results=(ToolResult("x"),)
    )
    submit = Turn(action="", calls=(ToolCall("submit"),), results=(ToolResult("", submitted=True),))
    examined = [*shell, view, submit]  # three files in four calls
    assert exploration_efficiency(gold("src/a.py", "d.py"), examined) == 2 / 4
    wide = turns(("cat a.py b.py c.py", "x"))
    assert exploration_efficiency(gold("a.py"), wide) == 1 / 3
    for others in (shell, []):
        assert exploration_efficiency(gold("z.py", "c.py"), others) == 0
    new = Patch.between({}, {"src/a.py": "1\n"}).text
    assert exploration_efficiency(new, shell) == 0  # the base has no such file


@pytest.mark.parametrize("path", ["/testbed/src/a.py", "/workspace/./src/a.py", "/src/a.py"])
def test_an_absolute_path_names_the_gold_file_it_ends_with(path: str) -> None:
    assert exploration_efficiency(gold("src/a.py"), turns((f"cat {path}", "x"))) == 1
    for tool in ("view", "view_file"):
        viewed = turns((path, "x"), tool=tool, argument="path")
        assert exploration_efficiency(gold("src/a.py", "a.py"), viewed) == 1
        assert exploration_efficiency(gold("a.py"), viewed) == 1
        assert exploration_efficiency(gold("rc/a.py", "b/src/a.py"), viewed) == 0
    assert exploration_efficiency(gold("a.py"), turns(("cat src/a.py", "x"))) == 0


def test_calls_are_validated_by_the_schemas_of_the_toolset() -> None:
    schemas = get_toolset("nano").schemas

    def call(*calls: ToolCall) -> Turn:
        return Turn(action="", calls=calls)

    valid, wrong_type = ToolCall("shell", {"cmd": "ls"}), ToolCall("shell", {"cmd": 3})
    assert tool_call_validity([call(valid, valid)], schemas) == 1
    additional = ToolCall("shell", {"cmd": "ls", "x": 1})
    for invalid in (wrong_type, additional, ToolCall("shell", error="no JSON")):
        assert tool_call_validity([call(valid, invalid)], schemas) == 0.5
    assert tool_call_validity([Turn(action="hm"), call(valid)], schemas) == 0.5
    assert tool_call_validity([call(valid), Turn(action="Done.")], schemas) == 1
    assert tool_call_validity([Turn(action="Done.")], schemas) == 0
