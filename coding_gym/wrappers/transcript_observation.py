"""A wrapper whose observation is the whole chat."""

from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium import spaces

from coding_gym.action import Completion
from coding_gym.arguments import at_least_one
from coding_gym.envs.coding_repair import Observation
from coding_gym.envs.snapshot import core_env
from coding_gym.envs.spaces import dict_space, pad, token_arrays
from coding_gym.text.chat import get_chat
from coding_gym.text.chat_history import ChatIds

if TYPE_CHECKING:
    from coding_gym.episode import Episode


class TranscriptObservation(
    gym.ObservationWrapper[Observation, Any, Observation], gym.utils.RecordConstructorArgs
):
    """Replaces the ids of the observation by the whole chat, in the form of a model's prompt.

    ``input_ids`` (int32) and ``attention_mask`` (int8), both of shape ``(max_tokens,)``, contain
    the system prompt with the tools, the issue, every reply with its results, and the generation
    prompt if the episode still runs, padded on the right. A longer chat is truncated to its last
    ``max_tokens`` ids, and ``info["observation_cut"]`` is then True. Other keys of the observation
    are not changed.

    *Layout*: the chat template of an ``hf:`` tokenizer, with the toolset's schemas; for the bundled
    tokenizer ChatML, with the schemas in the system message. If the system prompt explains the
    tool format, no schemas are added.

    *Exact*: a `coding_gym.Completion` appears as its sampled ids, a plain reply as its encoded
    text. Each observation continues the previous one: the old ids, the ids of the reply, then the
    ids of its results. So earlier reasoning is kept, although some templates remove it.

    *Safe*: text that looks like a control token, in the issue, in a tool's output or in a plain
    reply, is encoded as ordinary characters.

    With byte-level vocabularies the ids outside replies equal those of the template's whole output.
    White space at the ends of contents is kept, although some templates strip it. A template that
    prints the current date prints 2024-01-01.

    Args:
        env: A ``CodingRepair-v0`` env, wrapped or not.
        max_tokens: Length of the arrays, in tokens.

    Raises:
        InvalidArgumentError: The tokenizer has no chat template, or its template rewrites contents
            or lacks tools, system prompts or tool results; or ``env`` cannot be wrapped.
    """

    def __init__(self, env: gym.Env[Observation, Any], max_tokens: int = 8192) -> None:
        core = core_env("TranscriptObservation", env)
        inner_space = dict_space("TranscriptObservation", env)
        self._max_tokens = at_least_one("max_tokens", max_tokens)
        gym.utils.RecordConstructorArgs.__init__(self, max_tokens=self._max_tokens)
        gym.ObservationWrapper.__init__(self, env)
        self._core = core
        self._chat = get_chat(core.tokenizer, core.toolset.schemas, core.tool_format)
        self._ids = ChatIds(self._chat)
        self._episode: Episode | None = None
        self._is_truncated = False
        arrays = token_arrays(core.tokenizer.vocab_size, self._max_tokens)
        self.observation_space = spaces.Dict({**inner_space.spaces, **arrays.spaces})

    def step(self, action: Any) -> tuple[Observation, Any, bool, bool, dict[str, Any]]:
        """Plays one action.

        Raises:
            InvalidArgumentError: A `Completion` has ids outside the vocabulary.
        """
        if isinstance(action, Completion):
            self._chat.check_ids(action.token_ids)
        observation, reward, terminated, truncated, info = super().step(action)
        info["observation_cut"] = self._is_truncated
        return observation, reward, terminated, truncated, info

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Starts an episode."""
        observation, info = super().reset(seed=seed, options=options)
        info["observation_cut"] = self._is_truncated
        return observation, info

    def observation(self, observation: Observation) -> Observation:
        """Returns the observation with the ids and mask of the whole chat."""
        episode = self._core.episode
        if episode is not self._episode:
            self._episode = episode
            self._ids = ChatIds(self._chat)
        encode = self._core.tokenizer.encode
        turns = episode.turns[self._ids.num_replies :]  # a `Stop` adds no message
        replies = [
            turn.token_ids if turn.exact else turn.token_ids or encode(turn.action)
            for turn in turns
        ]
        self._ids.extend(episode.messages[self._ids.num_messages :], replies)
        ids = self._ids.ids(self._max_tokens + 1, with_prompt=not episode.ended)
        self._is_truncated = len(ids) > self._max_tokens
        ids = ids[-self._max_tokens :]
        return {**observation, **pad(ids, self._core.tokenizer.pad_id, self._max_tokens)}
