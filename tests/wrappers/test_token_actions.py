"""Token ids as actions."""

import json
from typing import Any

import numpy as np
import pytest
from episodes import MakeEnv
from gymnasium.vector import SyncVectorEnv
from model_server import register_bytes
from numpy.typing import NDArray

from coding_gym.errors import InvalidArgumentError
from coding_gym.text.tokenizers import get_tokenizer
from coding_gym.wrappers.token_actions import TokenActions

LENGTH = 64


@pytest.fixture
def env(make_env: MakeEnv) -> TokenActions:
    return TokenActions(make_env(), max_new_tokens=LENGTH)


def encode(call: dict[str, Any] | str, end: str = "<|pad|>") -> NDArray[np.int64]:
    tokenizer = get_tokenizer()
    action = np.full(LENGTH, 7, dtype=np.int64)
    reply = call if isinstance(call, str) else json.dumps(call)
    ids = [*tokenizer.encode(reply), tokenizer.special_tokens[end]]
    action[: len(ids)] = ids
    return action


@pytest.mark.parametrize("end", ["<|pad|>", "<|endoftext|>", "<|im_end|>"])
def test_a_reply_ends_at_the_first_id_that_ends_it(env: TokenActions, end: str) -> None:
    env.reset()
    call = {"name": "shell", "arguments": {"cmd": "echo é"}}
    *_, info = env.step(encode(call, end))
    assert info["text"] == "é"
    (turn,) = env.unwrapped.episode.turns  # type: ignore[attr-defined]
    assert turn.exact
    assert turn.action == json.dumps(call)
    assert list(turn.token_ids) == get_tokenizer().encode(json.dumps(call))


def test_an_action_without_an_end_is_played_whole(env: TokenActions) -> None:
    env.reset()
    env.step(np.full(LENGTH, 7))
    (turn,) = env.unwrapped.episode.turns  # type: ignore[attr-defined]
    assert turn.token_ids == (7,) * LENGTH


def test_ids_without_a_token_are_played(make_env: MakeEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    register_bytes(monkeypatch, "bytes_and_gap", 300)
    env = TokenActions(make_env(tokenizer="bytes_and_gap"), 4)
    env.reset()
    env.step(np.array([104, 280, 105, 300]))
    (turn,) = env.unwrapped.episode.turns  # type: ignore[attr-defined]
    assert (turn.action, turn.token_ids) == ("h\ufffdi", (104, 280, 105))


@pytest.mark.parametrize(
    "bad",
    [
        np.zeros(LENGTH - 1, dtype=np.int64),
        np.full(LENGTH, 16_384),
        np.full(LENGTH, -1),
        np.zeros(LENGTH),
        [[1], [2, 3]],
        "text",
        None,
    ],
)
def test_actions_outside_the_space_are_refused(env: TokenActions, bad: Any) -> None:
    env.reset()
    with pytest.raises(InvalidArgumentError):
        env.step(bad)


def test_a_vector_of_them_takes_a_batch(make_env: MakeEnv) -> None:
    vector = SyncVectorEnv([lambda: TokenActions(make_env(), LENGTH)] * 2)
    vector.reset(seed=0)
    submit = encode({"name": "submit", "arguments": {}})
    _, _, terminated, _, infos = vector.step(np.stack([submit, encode("hm")]))
    assert terminated.tolist() == [True, False]
    assert infos["tool_calls"].tolist() == [1, 1]
