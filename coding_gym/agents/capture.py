"""Limits and records of the model requests that the harness of one episode sends."""

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from coding_gym.action import Completion
from coding_gym.agents.chat import Complete
from coding_gym.agents.live_episode import LiveEpisode, PromptTooLongError, RequestRefusedError
from coding_gym.agents.model_reply import Reply
from coding_gym.agents.past_chats import PastChats, plain_message
from coding_gym.calls import ToolResult
from coding_gym.episode import transcript
from coding_gym.errors import EpisodeError
from coding_gym.trajectory import Message, StopReason, Trajectory, Turn, segments


class CapturedRequests:
    """Sends the requests of one episode's harness within the episode's limits.

    Requests are sent one after another, and the limits are checked before each. They count replies
    as turns, the tool calls in replies, and the tokens of the last prompt and reply; the time
    starts with the first request. A reply to a client that has disconnected counts as a turn, and
    is charged, but is not recorded.

    Args:
        live: The episode.
        complete: Returns the reply to a request.

    Attributes:
        failure: The error of a request after which no further request is sent: not a prompt that is
            too long, nor a request that the server refuses after a first reply.
        limit: The limit that a request was refused for, or None.
        is_too_long: Whether a prompt was too long.
        replies: Replies so far.
        refused: Is set when no further request is sent.
    """

    def __init__(self, live: LiveEpisode, complete: Complete) -> None:
        self.failure: Exception | None = None
        self.limit: StopReason | None = None
        self.is_too_long = False
        self.replies: list[Completion] = []
        self.refused = asyncio.Event()
        self._begin_s: float | None = None
        self._live, self._complete = live, complete
        self._sending = asyncio.Lock()
        self._tools: list[dict[str, Any]] = []
        self._messages: list[Message] = []
        self._answers: dict[int, list[Message]] = {}  # the messages after each reply, by its number
        self._chats = PastChats[int](_key)  # the number of the last reply

    async def ask(
        self, body: dict[str, Any], is_connected: Callable[[], bool] = lambda: True
    ) -> Reply:
        """Returns the reply to a request, and records it as a turn.

        Args:
            body: The request.
            is_connected: Returns whether the client waits for the reply.

        Raises:
            EOFError: The client left before its request was sent; it counts for nothing.
            EpisodeError: A limit is reached.
            ModelError: This or an earlier request failed.
        """
        async with self._sending:
            if not is_connected():
                raise EOFError("the client has disconnected")
            usage, bounds = self._live.episode.usage, self._live.episode.bounds
            if self._begin_s is None:
                self._begin_s = time.monotonic()
                usage.tokens = 0  # the harness does not send the episode's prompt
            usage.seconds = time.monotonic() - self._begin_s
            self.limit = self.limit or usage.spent(bounds)
            if self.limit:
                self.refused.set()
                raise EpisodeError(f"the episode is over: {self.limit}")
            if self.failure is not None:
                raise self.failure
            try:
                reply = await self._complete(body)
            except PromptTooLongError:
                self.is_too_long = True
                raise
            except Exception as failure:  # kept for the record, and raised again
                if not (isinstance(failure, RequestRefusedError) and self.replies):
                    self.failure = failure
                    self.refused.set()
                raise
            self._count(reply)
            if is_connected():
                self._record(body, reply)
            else:
                self._live.on_call(reply.call)
            return reply

    def _record(self, body: dict[str, Any], reply: Reply) -> None:
        self._live.count(reply.action, reply.call, reply.prompt_ids)
        self._tools = body.get("tools") or self._tools
        messages = [plain_message(message) for message in body["messages"]]
        length, turn = self._chats.find(messages)
        if turn is not None:
            self._answers.setdefault(turn, messages[length:])
        self._messages += [*messages[length:], reply.message]
        self._chats.add([*messages, reply.message], len(self.replies))
        self.replies.append(reply.action)

    def _count(self, reply: Reply) -> None:
        """Adds a reply's turn, tool calls, tokens and cost to the usage of the episode."""
        call, usage, bounds = reply.call, self._live.episode.usage, self._live.episode.bounds
        num_prompt = call.prompt_tokens or len(reply.prompt_ids)
        num_sampled = call.completion_tokens or len(reply.action.token_ids)
        usage.turns += 1
        usage.tool_calls += len(reply.action.calls or ())
        usage.tokens = num_prompt + num_sampled
        if call.cost is None:
            usage.charge(bounds, num_prompt, num_sampled)
        else:
            usage.cost += call.cost

    def record_fields(self) -> dict[str, Any]:
        """Returns the fields of the record: chat, tools and turns.

        A request that does not continue an earlier chat, such as one after a summary, adds all its
        messages to the record's chat; any other request adds its new messages. The results of a
        turn are those in the first request that continues it.
        """
        turns = tuple(
            self._turn(action, self._answers.get(number, ()))
            for number, action in enumerate(self.replies)
        )
        return {"messages": tuple(self._messages), "turns": turns, "tools": tuple(self._tools)}

    def _turn(self, action: Completion, answers: Sequence[Message]) -> Turn:
        encode = self._live.episode.tokenizer.encode
        return Turn(
            action=str(action),
            token_ids=action.token_ids or tuple(encode(action.full_text)),
            exact=bool(action.token_ids),
            logprobs=action.logprobs,
            calls=action.calls or (),
            carries_calls=bool(action.calls),
            is_cut=action.is_cut,
            weight_version=action.weight_version,
            results=tuple(
                ToolResult(each["content"], None, each.get("tool_call_id", ""))
                for each in answers
                if each["role"] == "tool"
            ),
            observation=transcript.visible_text(answers),
        )


def _key(message: Message) -> str:
    """Returns role, text and ids of calls; not arguments: harnesses replace malformed ones."""
    ids = [call.get("id") for call in message.get("tool_calls", ())]
    return json.dumps([message["role"], message["content"], ids])


def longest_segment(trajectory: Trajectory, end_id: int) -> dict[str, Any]:
    """Returns the segment with the most sampled ids, the last one on a tie.

    ``trained_part`` is the share of the episode's sampled ids that this segment has. Without
    segments, and after an error, it is 0.0, and prompt and completion are ``end_id`` with mask 0:
    trainers take no empty completion.
    """
    samples = [] if trajectory.error_class else segments(trajectory)
    if not samples:
        ids = {"prompt_ids": [end_id], "completion_ids": [end_id], "env_mask": [0]}
        return {**ids, "logprobs": None, "trained_part": 0.0}
    counts = [sum(one["env_mask"]) for one in samples]
    best = max(range(len(samples)), key=lambda index: (counts[index], index))
    return {**samples[best], "trained_part": counts[best] / sum(counts)}
