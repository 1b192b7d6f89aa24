"""The toolsets inside an environment: spaces, texts, what an episode keeps."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
import pytest

from coding_gym.tools import get_toolset

Env = gym.Env[Any, Any]


@contextmanager
def made(row: dict[str, Any], toolset: str) -> Iterator[Env]:
    with gym.make("coding_gym:CodingRepair-v0", tasks=[row], toolset=toolset) as env:
        env.reset(seed=3)
        yield env


def text(env: Env, action: str) -> str:
    return str(env.step(action)[4]["text"])


def test_a_bash_block_is_a_call_and_may_submit(tiny_row: dict[str, Any]) -> None:
    with made(tiny_row, "bash") as env:
        seen = text(env, "Let me look.\n\n```bash\nls\n```")
        assert seen == "<returncode>0</returncode>\n<output>\nshapes.py\ntest_shapes.py\n</output>"
        assert "Expected exactly 1 action, found 0." in text(env, "I do not know.")
        env.step("```bash\nsed -i 's/width + height/width * height/' shapes.py\n```")
        submit = "```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```"
        _, reward, terminated, truncated, info = env.step(submit)
        assert (reward, terminated, truncated) == (1.0, True, False)
        assert info["stop_reason"] == "submitted"


@pytest.mark.parametrize("toolset", ["bash", "codex", "editor", "thesis"])
def test_the_prompt_says_whether_shells_last(tiny_row: dict[str, Any], toolset: str) -> None:
    whole = get_toolset(toolset)
    assert "starts anew" in whole.prompt(keeps_shell=False)
    assert "goes on in the same shell" in whole.prompt(keeps_shell=True)
    with made(tiny_row, toolset) as env:
        said = env.unwrapped.episode.messages[0]["content"]  # type: ignore[attr-defined]
        assert whole.prompt(keeps_shell=False).strip() in said
