"""Lets models that sample token ids play episodes and reply to the requests of harnesses."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

from coding_gym.action import Completion
from coding_gym.agents.model_errors import ModelError, RequestRefusedError
from coding_gym.agents.past_chats import PastChats, message_key, plain_message
from coding_gym.agents.player import LiveEpisode
from coding_gym.envs.chat_request import normalised_for_templates
from coding_gym.episode.transcript import reply_message
from coding_gym.errors import InvalidArgumentError
from coding_gym.text.chat import get_chat
from coding_gym.text.chat_history import ChatIds
from coding_gym.text.neutral import in_strings, neutralise, restore
from coding_gym.text.tokenizers import get_tokenizer
from coding_gym.tools.formats import ReplyParser
from coding_gym.trajectory import Message

Tools = Sequence[Mapping[str, Any]]

# Fields of a request that these models do not support, and their defaults.
_UNSUPPORTED = {"n": 1, "stop": None, "response_format": None, "tool_choice": "auto"}


Sample = Callable[[list[int], int | None, int, int], Awaitable[Completion]]
"""Samples a reply to a prompt.

The arguments are the ids of the prompt, the maximum number of tokens (a lower limit of the model's
settings applies), the seed of the attempt, and the number of the reply in the attempt. The reply is
the text without the stop token, with all sampled ids, and with the ids of the prompt in its
``model_call``. Errors are `PromptTooLongError`, if the prompt is as long as the model's context or
longer, and `ModelError`.
"""


async def play_by_ids(live: LiveEpisode, tokenizer: str, sample: Sample) -> None:
    """Plays an episode with a model that samples token ids.

    Each prompt consists of the previous prompt, the sampled ids, and the ids of the new messages,
    as in `TranscriptObservation`. Control tokens in issues and results are encoded as plain text.

    Args:
        live: The episode.
        tokenizer: The name of the tokenizer of the model and of the episode.
        sample: Samples the replies.

    Raises:
        ModelError: The episode has another tokenizer, or the model failed.
    """
    episode = live.episode
    if episode.tokenizer is not get_tokenizer(tokenizer):
        raise ModelError(
            f"the episodes need the tokenizer of the model, got {episode.tokenizer.name!r}; set "
            f"tokenizer={tokenizer!r}",
            "refused",
        )
    await live.start()
    chat = get_chat(episode.tokenizer, episode.toolset.schemas, episode.tool_format)
    history = ChatIds(chat)

    def prompt() -> list[int]:
        replies = [turn.token_ids for turn in episode.turns[history.num_replies :]]
        history.extend(episode.messages[history.num_messages :], replies)
        ids: list[int] = history.ids(sys.maxsize).tolist()
        return ids

    while not live.ended:
        ids = await live.in_thread(prompt)
        max_tokens = episode.info()["budget"]["tokens"]
        await live.step(await sample(ids, max_tokens, live.seed, episode.usage.turns))


class LocalChat:
    """Replies to the requests of one episode's harness by a model that samples token ids.

    A chat that begins with an earlier request and its unchanged reply continues the ids of that
    chat, so sampled ids are never encoded again. Any other chat is rendered by the chat template.
    Control tokens are made plain text in the tools and in all messages that the model did not
    write: a harness can change or invent messages of ``assistant``. If the model copies such plain
    text, the reply to the harness contains the original token.

    Calls are read in the format ``auto`` if the request has tools. A reply with an unreadable call
    is returned as plain text. Reasoning stays in the text, except in a reply with calls in a format
    with a field for reasoning (``harmony``, ``openai``). The agent's sampling settings apply; a
    request can only lower ``max_tokens``.

    Args:
        tokenizer: The name of the model's tokenizer.
        sample: Samples the replies.
        seed: The seed of the attempt.
    """

    def __init__(self, tokenizer: str, sample: Sample, seed: int = 0) -> None:
        self._tokenizer, self._sample, self._seed = get_tokenizer(tokenizer), sample, seed
        self._control = [*self._tokenizer.special_tokens]
        self._past_chats = PastChats(message_key)
        self._past_replies: list[tuple[Tools, Completion]] = []  # by `PastChats` number
        self._sampled: dict[str, Message] = {}  # replies before `_restored`, by `message_key`

    async def complete(self, request: Mapping[str, Any]) -> Completion:
        """Returns the reply to a request in the form of OpenAI's chat completions.

        Raises:
            PromptTooLongError: The prompt is longer than the model's context.
            RequestRefusedError: A field is not supported, or the chat template fails.
            ModelError: The model failed.
        """
        names = [n for n, default in _UNSUPPORTED.items() if (request.get(n) or default) != default]
        if names:
            raise RequestRefusedError(
                f"a local model does not support {', '.join(names)}; use a model on a server",
                "refused",
            )
        messages = [plain_message(message) for message in request["messages"]]
        tools = request.get("tools") or []
        prompt_ids = await asyncio.to_thread(self._prompt, messages, tools)
        limit = request.get("max_tokens")
        sampled_reply = await self._sample(prompt_ids, limit, self._seed, len(self._past_replies))
        sampled_reply = self._parsed(sampled_reply, tools, messages)
        reply = self._restored(sampled_reply)
        message = reply_message(reply)
        self._past_chats.add([*messages, message], len(self._past_replies))
        self._past_replies.append((tools, reply))
        self._sampled[message_key(message)] = reply_message(sampled_reply)
        return reply

    def _prompt(self, messages: list[Message], tools: Tools) -> list[int]:
        """Returns the ids of a chat; reuses the ids of the longest earlier chat in the messages."""
        length, number = self._past_chats.find(messages)
        past_tools, past_reply = (None, None) if number is None else self._past_replies[number]
        if past_tools != tools:
            length, past_reply = 0, None
        new_messages = messages[length:]
        if all(message["role"] in ("system", "user", "tool") for message in new_messages):
            try:
                chat = get_chat(self._tokenizer, self._neutral(tools))
                if past_reply is None or past_reply.model_call is None:
                    part = chat.opening(new_messages)
                    return [*part.ids, *part.prompt]
                part = chat.answers(new_messages)
                later_ids = chat.join(past_reply.token_ids, part.ids)
                return [*past_reply.model_call.prompt_ids, *later_ids, *part.prompt]
            except InvalidArgumentError:  # the template moves or rewrites a message
                pass
        try:
            neutral_messages = [
                deepcopy(self._sampled.get(message_key(message))) or self._neutral(message)
                for message in messages
            ]
            return self._render(
                normalised_for_templates(neutral_messages), self._neutral(tools) or None
            )
        except Exception as problem:  # a template is a program, which can raise any exception
            raise RequestRefusedError(
                f"the chat template refuses the request: {problem}", "refused"
            ) from problem

    def _render(self, messages: list[Message], tools: Tools | None) -> list[int]:
        """Returns the ids of a chat as its template renders it; control tokens stay in effect."""
        return list(
            self._tokenizer.backend.apply_chat_template(
                messages, tools=tools, add_generation_prompt=True, return_dict=False
            )
        )

    def _neutral(self, value: Any) -> Any:
        """Returns a copy of a JSON value, with control tokens in its strings neutralised."""
        return in_strings(value, lambda text: neutralise(text, self._control))

    def _parsed(self, reply: Completion, tools: Tools, messages: list[Message]) -> Completion:
        """Returns a reply with its tool calls, or unchanged if a call cannot be read."""
        call_ids = {call["id"] for message in messages for call in message.get("tool_calls", ())}
        parsed = ReplyParser("auto", tools).read(reply, call_ids)
        if not (tools and parsed.calls) or any(call.error for call in parsed.calls):
            return reply
        return reply.replaced(parsed.text, calls=parsed.calls, reasoning=parsed.reasoning)

    def _restored(self, reply: Completion) -> Completion:
        """Returns a reply in which the control tokens that `_neutral` has split are whole again."""
        calls = [
            replace(call, arguments=restore(call.arguments, self._control))
            for call in reply.calls or ()
        ]
        text, reasoning = restore([str(reply), reply.reasoning], self._control)
        return reply.replaced(text, calls=calls or None, reasoning=reasoning)
