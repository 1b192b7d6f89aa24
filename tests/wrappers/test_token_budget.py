"""`TokenBudget`: nano-agent's defaults, and exact counts of tokens."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from episodes import FIX, MakeEnv, replies, shells
from model_server import TEMPLATE, save_tokenizer

from coding_gym import Completion, Stop
from coding_gym.episode import Limits
from coding_gym.errors import InvalidArgumentError
from coding_gym.text.tokenizers import Tokenizer
from coding_gym.wrappers import TokenBudget, TranscriptObservation

BUDGET = 100_000
CRITICAL = "Token limit critical! Apply your best fix now.\n"


def test_defaults_equal_nano_agent_and_other_limits_stay(make_env: MakeEnv) -> None:
    env = make_env(limits={"max_tool_calls": 30, "max_seconds": 9, "max_tokens": 700})
    TokenBudget(env, reserve_tokens=np.int64(600))  # NumPy numbers are accepted
    budget: dict[str, Any] = {"max_tokens": 8192, "reserve_tokens": 600, "warn_tokens": True}
    assert env.config.limits == Limits(max_tool_calls=30, max_seconds=9, **budget)
    with pytest.raises(InvalidArgumentError, match="max_tokens"):
        TokenBudget(env, None)  # type: ignore[arg-type]


def test_calls_after_the_budget_is_spent_do_not_run(make_env: MakeEnv) -> None:
    env = TokenBudget(make_env())
    tokens_left = env.reset()[1]["budget"]["tokens"]
    action = Completion(shells("echo one", "seq 200", "echo three"), range(tokens_left - 700))
    _, _, _, truncated, info = env.step(action)
    assert truncated
    assert [reply.removeprefix(CRITICAL)[:3] for reply in replies(info)] == ["one", "1\n2"]


def test_a_prompt_beyond_its_budget_ends_the_first_step(make_env: MakeEnv) -> None:
    env = TokenBudget(make_env(), max_tokens=601)
    _, info = env.reset()
    assert (info["stop_reason"], info["budget"]["tokens"]) == (None, 0)
    _, reward, terminated, truncated, info = env.step(FIX)
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert info["stop_reason"] == "max_tokens"
    assert (info["messages"], info["tool_calls"], info["mask_sample"]) == ([], 0, False)
    assert info["grade"].reason == "empty_patch"
    env.reset()
    assert env.step(Stop())[4]["stop_reason"] == "stopped"


def actions(tokenizer: Tokenizer) -> list[str]:
    """Returns plain and sampled replies with one call, several calls, none or a malformed call."""
    closed = [*tokenizer.encode(shells("ls")), tokenizer.special_tokens["<|im_end|>"]]
    return [
        shells("echo one"),
        shells("cat shapes.py", "true", "echo '<|im_end|><tool_response>'", "printf '\\n\\n'"),
        "I wonder.",
        Completion(shells("ls"), closed),
        Completion(shells("ls"), [5, 6, 7]),
        Completion("", []),
        '{"name": "shell", "arguments": ',
        shells("seq 300", "no-such-command"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("template", [None, TEMPLATE], ids=["chatml", "merging"])
def test_tokens_counted_are_the_tokens_observed(
    template: str | None, make_env: MakeEnv, tmp_path: Path
) -> None:
    name = save_tokenizer(tmp_path, template) if template else "coding_gym_16k"
    env = TokenBudget(make_env(tokenizer=name), max_tokens=BUDGET)
    wrapped: Any = TranscriptObservation(env, max_tokens=BUDGET)
    observation, info = wrapped.reset()
    assert BUDGET - info["budget"]["tokens"] == observation["attention_mask"].sum()
    for action in actions(wrapped.unwrapped.tokenizer):
        observation, *_, info = wrapped.step(action)
        assert BUDGET - info["budget"]["tokens"] == observation["attention_mask"].sum()


@pytest.mark.slow
def test_a_tokenizer_without_a_template_is_refused(make_env: MakeEnv, tmp_path: Path) -> None:
    env = make_env(tokenizer=save_tokenizer(tmp_path, None))
    with pytest.raises(InvalidArgumentError):
        TokenBudget(env)
