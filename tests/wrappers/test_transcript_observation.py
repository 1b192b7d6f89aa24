"""The whole chat as the observation."""

import json
from typing import Any

import numpy as np
import pytest
from episodes import SUBMIT, Env, MakeEnv, shell
from gymnasium import spaces

from coding_gym import Completion, Stop
from coding_gym.errors import InvalidArgumentError
from coding_gym.wrappers.transcript_observation import TranscriptObservation

PROMPT = "<|im_start|>assistant\n"


@pytest.fixture
def env(make_env: MakeEnv) -> TranscriptObservation:
    return TranscriptObservation(make_env(), max_tokens=4096)


def unpadded_ids(observation: dict[str, Any]) -> list[int]:
    mask = observation["attention_mask"]
    assert mask.tolist() == sorted(mask.tolist(), reverse=True)
    return [int(i) for i in observation["input_ids"][mask == 1]]


def text(env: Env, observation: dict[str, Any]) -> str:
    return str(env.unwrapped.tokenizer.decode(unpadded_ids(observation)))  # type: ignore[attr-defined]


def test_the_chat_is_observed_with_its_roles_until_it_ends(env: TranscriptObservation) -> None:
    assert env.observation_space["input_ids"] == spaces.Box(0, 16_383, (4096,), np.int32)
    observation, info = env.reset()
    start = text(env, observation)
    system, issue = (message["content"] for message in info["messages"])
    assert start.startswith(f"<|im_start|>system\n{system}\n\n# Tools")
    assert all(json.dumps(s) in start for s in env.unwrapped.toolset.schemas)  # type: ignore[attr-defined]
    assert start.endswith(f"<|im_start|>user\n{issue}<|im_end|>\n{PROMPT}")
    call = shell("cat shapes.py")
    observation, *_, info = env.step(call)
    middle = text(env, observation)
    result = f"<|im_start|>tool\n{info['text']}<|im_end|>\n"
    assert middle == f"{start}{call}<|im_end|>\n{result}{PROMPT}"
    observation, *_, info = env.step(SUBMIT)
    assert text(env, observation).startswith(f"{middle}{SUBMIT}<|im_end|>\n<|im_start|>tool\n")
    assert not text(env, observation).endswith(PROMPT)


def test_a_chat_that_does_not_fit_is_reported(make_env: MakeEnv) -> None:
    length = len(unpadded_ids(TranscriptObservation(make_env()).reset()[0]))
    for max_tokens, is_cut in ((length, False), (length - 1, True)):
        env = TranscriptObservation(make_env(), max_tokens=max_tokens)
        observation, info = env.reset()
        assert (len(unpadded_ids(observation)), info["observation_cut"]) == (max_tokens, is_cut)
        assert env.step(shell("ls"))[4]["observation_cut"] is True


@pytest.mark.parametrize("tool_format", ["auto", "openai"])
def test_displayed_form_of_calls_can_be_parsed(make_env: MakeEnv, tool_format: str) -> None:
    env = TranscriptObservation(make_env(tool_format=tool_format))
    explanation = text(env, env.reset()[0]).split("A call is written like this:\n")[1]
    form = explanation.split("<|im_end|>")[0]
    assert ("<tool_call>" in form) == (tool_format == "auto")
    info = env.step(form)[4]
    assert info["text"] == "unknown tool: TOOL_NAME"


def test_ids_outside_the_vocabulary_are_not_played(env: TranscriptObservation) -> None:
    env.reset()
    for invalid_id in (16_384, -1, 1 << 70):
        with pytest.raises(InvalidArgumentError, match=str(invalid_id)):
            env.step(Completion(SUBMIT, [1, invalid_id]))
    assert env.step(Completion(SUBMIT, [16_383]))[2]


def test_a_stop_adds_no_message(env: TranscriptObservation) -> None:
    before = text(env, env.reset()[0])
    observation, _, _, truncated, _ = env.step(Stop("enough"))
    assert truncated
    assert text(env, observation) == before.removesuffix(PROMPT)
