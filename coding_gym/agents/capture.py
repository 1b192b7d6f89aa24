"""The model requests of one episode's harness: their limits and their record."""

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
from coding_gym.trajectory import Message, StopReason, Turn


class CapturedRequests:
    """Sends the requests of one episode's harness within the episode's limits.

    Requests are sent one at a time; the limits are checked before each request. They apply to the
    replies (as turns), the tool calls in replies, the tokens of the last prompt and its reply, and
    the time since the first request. A reply to a disconnected client is charged, not recorded.

    Args:
        live: The episode.
        complete: Sends a request to the model and returns its reply.

    Attributes:
        failure: The error that stops all further requests, or None. A prompt that is too long does
            not stop them, nor does a request that the server refuses after the first reply.
        limit: The limit that stops all further requests, or None.
        is_too_long: Whether a prompt was longer than the model's context.
        replies: The recorded replies.
        refused: An event that is set when further requests are refused.
    """

    def __init__(self, live: LiveEpisode, complete: Complete) -> None:
        self.failure: Exception | None = None
        self.limit: StopReason | None = None
        self.is_too_long = False
        self.replies: list[Completion] = []
        self.refused = asyncio.Event()
        self._start_s: float | None = None
        self._live, self._complete = live, complete
        self._sending = asyncio.Lock()
        self._tools: list[dict[str, Any]] = []
        self._messages: list[Message] = []
        self._new_messages: dict[int, list[Message]] = {}  # by the number of the reply before
        self._chats = PastChats[int](_key)  # values: number of the chat's last reply

    async def ask(
        self, body: dict[str, Any], is_connected: Callable[[], bool] = lambda: True
    ) -> Reply:
        """Returns the reply to a request, and records it as a turn.

        Args:
            body: The request's body.
            is_connected: Returns whether the client still waits for the reply.

        Raises:
            EOFError: The client disconnected before its request was sent; nothing is counted.
            EpisodeError: A limit is reached.
            ModelError: This or an earlier request failed.
        """
        async with self._sending:
            if not is_connected():
                raise EOFError("the client has disconnected")
            usage, bounds = self._live.episode.usage, self._live.episode.bounds
            if self._start_s is None:
                self._start_s = time.monotonic()
                usage.tokens = 0  # the harness does not send the episode's prompt
            usage.seconds = time.monotonic() - self._start_s
            self.limit = self.limit or usage.spent(bounds)
            if self.limit:
                self.refused.set()
                raise EpisodeError(f"the episode has reached {self.limit}; no request is sent")
            if self.failure is not None:
                raise self.failure
            try:
                reply = await self._complete(body)
            except PromptTooLongError:
                self.is_too_long = True
                raise
            except Exception as failure:  # recorded, and raised again
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
            self._new_messages.setdefault(turn, messages[length:])
        self._messages += [*messages[length:], reply.message]
        self._chats.add([*messages, reply.message], len(self.replies))
        self.replies.append(reply.action)
        self._live.on_turn(self._turn(reply.action, ()))

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

        A request that continues an earlier chat adds its new messages to the record's chat; any
        other request, for example after a summary, adds all its messages. The results of a turn
        are the tool messages of the first request that continues it.
        """
        turns = tuple(
            self._turn(action, self._new_messages.get(number, ()))
            for number, action in enumerate(self.replies)
        )
        return {"messages": tuple(self._messages), "turns": turns, "tools": tuple(self._tools)}

    def _turn(self, action: Completion, new_messages: Sequence[Message]) -> Turn:
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
                ToolResult(message["content"], None, message.get("tool_call_id", ""))
                for message in new_messages
                if message["role"] == "tool"
            ),
            observation=transcript.visible_text(new_messages),
        )


def _key(message: Message) -> str:
    """Returns role, content and call ids as JSON; harnesses replace malformed arguments."""
    ids = [call.get("id") for call in message.get("tool_calls", ())]
    return json.dumps([message["role"], message["content"], ids])
