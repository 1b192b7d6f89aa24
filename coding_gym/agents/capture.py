"""Limits and records of the model requests that the harness of one episode sends."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from coding_gym.action import Completion
from coding_gym.agents.live_episode import (
    LiveEpisode,
    PromptTooLongError,
    RequestRefusedError,
)
from coding_gym.agents.model_reply import Reply, content_text
from coding_gym.calls import ToolResult
from coding_gym.episode.transcript import seen_text
from coding_gym.errors import EpisodeError
from coding_gym.trajectory import Message, StopReason, Trajectory, Turn

_KEPT = ("tool_calls", "tool_call_id", "reasoning_content")  # of a message, for the record


@dataclass
class _Chat:
    """A chat that ends with a reply; a harness appends to it.

    Attributes:
        messages: All messages; none before the first request.
        turn: Number of the last reply in the episode.
    """

    messages: list[Message] = field(default_factory=list)
    turn: int = -1

    def is_start_of(self, messages: Sequence[Message]) -> bool:
        """Whether messages begin with the whole chat."""
        return len(messages) >= len(self.messages) and all(
            _content(old) == _content(new)
            for old, new in zip(self.messages, messages, strict=False)
        )


class CapturedRequests:
    """Sends the requests of one episode's harness within the episode's limits.

    Requests are sent one after another, so that none exceeds a limit. ``max_turns`` counts replies,
    ``max_tokens`` bounds prompt and reply of the last request, ``max_cost`` the cost of all, and
    ``max_seconds`` the time since `begin`. Other limits have no effect.

    Args:
        live: The episode.
        complete: Returns the reply to a request, as `OpenAIClient.complete` does.
        settings: Fields of every request, which replace those of the harness; the smaller
            ``max_tokens`` counts.

    Attributes:
        failure: The error of a request without a reply; no further request is sent, except after a
            prompt that was too long. After a first reply, a request that the server cannot take
            is no failure of the episode.
        limit: The limit that a request was refused for, or None.
        replies: Replies so far.
        started: Is set by the first request.
        refused: Is set when no further request is sent.
    """

    def __init__(
        self,
        live: LiveEpisode,
        complete: Callable[[Mapping[str, Any]], Awaitable[Reply]],
        settings: Mapping[str, Any],
    ) -> None:
        self.failure: Exception | None = None
        self.limit: StopReason | None = None
        self.replies: list[Reply] = []
        self.started, self.refused = asyncio.Event(), asyncio.Event()
        self._begin_s = time.monotonic()
        self._live, self._complete, self._settings = live, complete, settings
        self._sending = asyncio.Lock()
        self._num_tokens, self._cost = 0, 0.0
        self._tools: list[dict[str, Any]] = []
        self._messages: list[Message] = []
        self._answers: dict[int, list[Message]] = {}  # the messages after each reply, by its number
        self._chats = [_Chat()]

    def begin(self) -> None:
        """Starts the clock of ``max_seconds``, when the harness starts."""
        self._begin_s = time.monotonic()

    async def ask(self, body: dict[str, Any]) -> Reply:
        """Returns the reply to a request, and records it as a turn.

        Raises:
            EpisodeError: A limit is reached.
            ModelError: This or an earlier request failed.
        """
        self.started.set()
        async with self._sending:
            self.limit = self.limit or self._spent()
            if self.limit:
                self.refused.set()
                raise EpisodeError(f"the episode is over: {self.limit}")
            if self.failure is not None and not isinstance(self.failure, PromptTooLongError):
                raise self.failure
            try:
                return await self._sent(body)
            except Exception as failure:  # kept for the record, and raised again
                if not (isinstance(failure, RequestRefusedError) and self.replies):
                    self.failure = failure
                    if not isinstance(failure, PromptTooLongError):
                        self.refused.set()
                raise

    async def _sent(self, body: dict[str, Any]) -> Reply:
        limits = [each["max_tokens"] for each in (body, self._settings) if each.get("max_tokens")]
        request = {**body, **self._settings, **({"max_tokens": min(limits)} if limits else {})}
        reply = await self._complete(request)
        if isinstance(self.failure, PromptTooLongError):  # the new prompt was shorter
            self.failure = None
        self._record(body, reply)
        return reply

    def _spent(self) -> StopReason | None:
        bounds = self._live.episode.bounds
        for bound, used, reason in (
            (bounds.max_turns, len(self.replies), StopReason.MAX_TURNS),
            (bounds.max_tokens, self._num_tokens, StopReason.MAX_TOKENS),
            (bounds.max_cost, self._cost, StopReason.MAX_COST),
            (bounds.max_seconds, time.monotonic() - self._begin_s, StopReason.MAX_TIME),
        ):
            if bound is not None and used >= bound:
                return reason
        return None

    def _record(self, body: Mapping[str, Any], reply: Reply) -> None:
        call, bounds, messages = reply.call, self._live.episode.bounds, body["messages"]
        prompt = call.prompt_tokens or len(reply.prompt_ids or ())
        completion = call.completion_tokens or len(getattr(reply.action, "token_ids", ()))
        self._num_tokens = prompt + completion
        priced = (prompt * bounds.input_price + completion * bounds.output_price) / 1e6
        self._cost += priced if call.cost is None else call.cost
        self._live.count(reply.action, call, reply.prompt_ids)
        self._tools = body.get("tools") or self._tools
        chat = next(one for one in reversed(self._chats) if one.is_start_of(messages))
        new = messages[len(chat.messages) :]
        if chat.messages:
            self._answers[chat.turn] = new
        else:
            chat = _Chat()
            self._chats.append(chat)
        reply_message = reply.response["choices"][0]["message"]
        chat.messages, chat.turn = [*messages, reply_message], len(self.replies)
        self._messages += [*new, reply_message]
        self.replies.append(reply)

    def record(self) -> dict[str, Any]:
        """Returns the fields of the record: chat, tools and turns; counts them as used.

        A request that does not continue an earlier chat, such as one after a summary, adds all its
        messages to the record's chat; any other request adds its new messages.
        """
        turns = tuple(
            self._turn(reply, self._answers.get(number, ()))
            for number, reply in enumerate(self.replies)
        )
        usage = self._live.episode.usage
        usage.turns += len(turns)
        usage.tool_calls += sum(len(turn.calls) for turn in turns)
        messages = tuple(map(_plain, self._messages))
        return {"messages": messages, "turns": turns, "tools": tuple(self._tools)}

    def _turn(self, reply: Reply, answers: Sequence[Message]) -> Turn:
        action, encode = reply.action, self._live.episode.tokenizer.encode
        if not isinstance(action, Completion):
            action = Completion(action, encode(action), calls=())
        plain = [_plain(each) for each in answers]
        return Turn(
            action=str(action),
            token_ids=tuple(action.token_ids or encode(action.full_text)),
            exact=action is reply.action and bool(action.token_ids),
            logprobs=action.logprobs,
            calls=action.calls or (),
            carries_calls=bool(action.calls),
            results=tuple(
                ToolResult(each["content"], None, each.get("tool_call_id", ""))
                for each in plain
                if each["role"] == "tool"
            ),
            observation=seen_text(plain),
        )


def _content(message: Message) -> tuple[Any, ...]:
    calls = message.get("tool_calls") or ()
    return message["role"], content_text(message.get("content")), [one.get("id") for one in calls]


def _plain(message: Message) -> Message:
    kept = {key: message[key] for key in _KEPT if message.get(key)}
    return {"role": message["role"], "content": content_text(message.get("content")), **kept}


def longest_segment(trajectory: Trajectory) -> dict[str, Any]:
    """Returns the segment with the most sampled ids, the later of equals; empty without segments.

    ``trained_part`` is the share of the episode's sampled ids that this segment has.
    """
    samples = segments(trajectory)
    counts = [sum(one["env_mask"]) for one in samples]
    best = max(range(len(samples)), key=lambda index: (counts[index], index), default=None)
    return {} if best is None else {**samples[best], "trained_part": counts[best] / sum(counts)}


def segments(trajectory: Trajectory) -> list[dict[str, Any]]:
    """Returns an episode as samples of token ids, one for each segment; most episodes have one.

    A prompt that begins with all ids of a segment continues this segment: the ids between the
    replies have mask 0. Any other prompt begins a new segment, for example after an agent
    summarised its history. Replies without ids, or without the ids of their prompt, are skipped.

    Returns:
        For each segment ``prompt_ids``, ``completion_ids``, ``env_mask`` (1 on ids that were
        sampled) and ``logprobs`` (0.0 at mask 0; None if one of a sampled id is unknown), as
        in `Trajectory.to_training_example`.
    """
    samples: list[dict[str, Any]] = []
    history: list[int] = []
    for turn in trajectory.turns:
        call = turn.model_call
        if call is None or not turn.exact or not (call.prefix_length or call.prompt_ids):
            continue
        prompt = [*history[: call.prefix_length], *call.prompt_ids]
        history = [*prompt, *turn.token_ids]
        for sample in reversed(samples):
            length = len(sample["prompt_ids"]) + len(sample["completion_ids"])
            if prompt[:length] == [*sample["prompt_ids"], *sample["completion_ids"]]:
                break
        else:
            length = len(prompt)
            sample = {"prompt_ids": prompt, "completion_ids": [], "env_mask": [], "logprobs": []}
            samples.append(sample)
        between, ids = prompt[length:], turn.token_ids
        sample["completion_ids"] += [*between, *ids]
        sample["env_mask"] += [0] * len(between) + [1] * len(ids)
        if turn.logprobs is None or sample["logprobs"] is None:
            sample["logprobs"] = None
        else:
            sample["logprobs"] += [0.0] * len(between) + list(turn.logprobs)
    return samples
