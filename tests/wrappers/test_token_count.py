"""`TokenBudget` counts the tokens that a policy is sent, in any chat template, at a flat cost."""

import json
from pathlib import Path
from typing import Any

import pytest
from episodes import MakeEnv, shells
from model_server import TEMPLATE, CountingTokenizer, save_tokenizer

from coding_gym import Completion
from coding_gym.episode.counting import ChatCount
from coding_gym.errors import InvalidArgumentError
from coding_gym.text.chat import Chat, get_layout
from coding_gym.text.tokenizers import Tokenizer, get_tokenizer
from coding_gym.wrappers import TokenBudget, TranscriptObservation

BUDGET = 100_000


def actions(tokenizer: Tokenizer) -> list[str]:
    """Replies of every kind: with calls, one or more or broken, without, sampled and plain."""
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


def test_schemas_and_roles_are_what_content_leaves_out(make_env: MakeEnv) -> None:
    left = {}
    for count in ("chat", "content"):
        env = TokenBudget(make_env(), max_tokens=BUDGET, count=count)
        left[count] = env.reset()[1]["budget"]["tokens"]
    schemas = env.unwrapped.toolset.schemas  # type: ignore[attr-defined]
    num_schema_tokens = sum(len(get_tokenizer().encode(json.dumps(s))) for s in schemas)
    assert left["content"] - left["chat"] > num_schema_tokens


@pytest.mark.slow
def test_a_tokenizer_without_a_template_counts_contents_only(
    make_env: MakeEnv, tmp_path: Path
) -> None:
    env = make_env(tokenizer=save_tokenizer(tmp_path, None))
    with pytest.raises(InvalidArgumentError):
        TokenBudget(env)
    wrapped = TokenBudget(env, count="content")
    assert wrapped.reset()[1]["budget"]["tokens"] < 8192


def test_nothing_is_counted_without_a_limit(make_env: MakeEnv) -> None:
    env = make_env()
    env.reset()
    env.step(shells("ls"))
    assert env.episode.usage.tokens == 0


def test_counting_a_step_costs_the_same_in_long_episodes() -> None:
    counting: Any = CountingTokenizer(get_tokenizer())
    chat = Chat(counting, get_layout(counting, []))
    count = ChatCount(chat)
    count.opening([{"role": "system", "content": "s"}, {"role": "user", "content": "u" * 500}])
    costs, grown = [], []
    for _ in range(50):
        before = counting.encoded
        grown.append(count.reply(range(9)) + count.answer({"role": "tool", "content": "x" * 999}))
        grown[-1] += count.close()
        costs.append(counting.encoded - before)
    assert len(set(costs)) == len(set(grown)) == 1
    assert costs[0] < 1100


def test_within_a_turn_chatml_is_counted_exactly_as_well() -> None:
    count = ChatCount(Chat(get_tokenizer(), get_layout(get_tokenizer(), [])))
    count.reply(range(9))
    for text in ("one\n", "\n\ttwo", "<|im_end|>", "", "é"):
        count.answer({"role": "tool", "content": text})
    assert count.close() == 0
