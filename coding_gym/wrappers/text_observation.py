"""Text as the observation."""

from typing import Any

import gymnasium as gym

from coding_gym.arguments import at_least_one, unknown_name
from coding_gym.envs.spaces import AnyText
from coding_gym.text.chat import Chat, get_chat
from coding_gym.text.truncate import KEEPS, cut
from coding_gym.wrappers.chain import check_order

SCOPES = ("new", "transcript")
"""What is observed: what the last action made new, or the whole chat."""


class TextObservation(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Observes text instead of token ids, for policies that do their own encoding.

    - ``"new"``: ``info["text"]``, the task or the answers to the last action. It is raw: where
      control tokens count when it is encoded, whoever encodes it must neutralise it first
      (`coding_gym.text.neutralise`). So is ``info["messages"]``.
    - ``"transcript"``: the whole chat as `TranscriptObservation` lays it out, control tokens
      spelled out, ready for a server that completes text. Contents are neutralised: a zero-width
      space stands in whatever looks like one of the layout's own tokens.

    *Observation*: any Unicode text of at most ``max_chars`` characters. Of a longer one the last
    characters are kept (``"tail"``), the first (``"head"``), or both (``"ends"``), with a notice of
    how many are missing.

    Args:
        env: A ``CodingRepair-v0`` env, wrapped or not. Other parts of its observation are dropped.
        scope: ``"new"`` or ``"transcript"``.
        max_chars: Length of the longest observation, in characters.
        overflow: ``"tail"``, ``"head"`` or ``"ends"``.

    Raises:
        InvalidArgumentError: A number cannot be used, ``env`` cannot be wrapped, or its tokenizer
            has no chat template to lay a transcript out.
        UnknownNameError: There is no such scope or overflow.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        scope: str = "new",
        max_chars: int = 32_768,
        overflow: str = "tail",
    ) -> None:
        self._core = check_order(TextObservation, env)
        for kind, name, known in (("scope", scope, SCOPES), ("overflow", overflow, KEEPS)):
            if name not in known:
                raise unknown_name(kind, name, known)
        self._max_chars = at_least_one("max_chars", max_chars)
        gym.utils.RecordConstructorArgs.__init__(
            self, scope=scope, max_chars=self._max_chars, overflow=overflow
        )
        gym.Wrapper.__init__(self, env)
        self._overflow = overflow
        self._chat: Chat | None = None
        if scope == "transcript":
            core = self._core
            self._chat = get_chat(core.tokenizer, core.toolset.schemas, core.tool_format)
        self.observation_space = AnyText(self._max_chars)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Starts an episode."""
        _, info = self.env.reset(seed=seed, options=options)
        return self._text(info), info

    def step(self, action: Any) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Plays one action."""
        _, reward, terminated, truncated, info = self.env.step(action)
        return self._text(info), reward, terminated, truncated, info

    def _text(self, info: dict[str, Any]) -> str:
        text: str = info["text"]
        if self._chat is not None:
            episode = self._core.episode
            replies = [turn.action for turn in episode.turns]
            text = self._chat.text(episode.messages, replies, asks=not episode.ended)
        return cut(text, self._max_chars, self._overflow)
