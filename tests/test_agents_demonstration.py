"""The agent ``gold`` as a demonstration: what it reads and edits, in each toolset and format."""

from random import Random

import pytest
from episodes import MakeEnv, played_by

from coding_gym.agents.demonstration import next_edit
from coding_gym.tools import toolset_names
from coding_gym.tools.formats import TOOL_FORMATS

EDITS = {
    "compact": "edit",
    "editor": "str_replace_editor",
    "nano": "apply_patch",
    "thesis": "str_replace",
}


@pytest.mark.parametrize(("toolset", "tool"), EDITS.items())
def test_gold_reads_edits_and_submits(make_env: MakeEnv, toolset: str, tool: str) -> None:
    trajectory = played_by(make_env(toolset=toolset), "gold")
    names = [call.name for turn in trajectory.turns for call in turn.calls]
    assert (len(names), names[1], names[2]) == (3, tool, "submit")
    assert all(result.ok for turn in trajectory.turns for result in turn.results)
    assert "return" in trajectory.turns[0].results[0].content
    assert trajectory.total_reward == 1.0


@pytest.mark.parametrize("tool_format", sorted({*TOOL_FORMATS} - {"template"}))
def test_gold_resolves_in_every_format(make_env: MakeEnv, tool_format: str) -> None:
    trajectory = played_by(make_env(toolset="nano", tool_format=tool_format), "gold")
    assert trajectory.total_reward == 1.0


@pytest.mark.parametrize("toolset", toolset_names())
def test_gold_writes_its_calls_as_the_prompt_explains(make_env: MakeEnv, toolset: str) -> None:
    trajectory = played_by(make_env(toolset=toolset, tool_format="hermes"), "gold")
    assert all(turn.action.startswith("<tool_call>") for turn in trajectory.turns)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\nb\na\n", "a\nb\nc\n"),
        ("a\na\na\n", "a\na\na\na\n"),
        ("x = 1\n" * 5, "x = 1\n" * 2),
        ("a\nb", "a\nb\n"),
        ("a\n", ""),
    ],
)
def test_edits_lead_from_one_text_to_the_other(before: str, after: str) -> None:
    while before != after:
        edit = next_edit(before, after)
        assert before.count(edit.old) == 1
        before = before.replace(edit.old, edit.new)


def test_edits_of_repeated_lines_come_to_an_end() -> None:
    rng = Random(0)
    for _ in range(300):
        before, after = ("".join(rng.choices(["a\n", "b\n"], k=7)) for _ in range(2))
        for _ in range(7):
            if before == after:
                break
            edit = next_edit(before, after)
            places = [at for at in range(len(before)) if before.startswith(edit.old, at)]
            assert len(places) == 1
            before = before.replace(edit.old, edit.new)
        assert before == after
