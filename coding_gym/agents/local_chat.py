"""Chat completions by a model in this process, continued from the ids of earlier requests."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple, Protocol

from coding_gym.action import Completion
from coding_gym.agents.live_episode import RequestRefusedError
from coding_gym.agents.model_reply import Reply, read_reply
from coding_gym.agents.past_chats import PastChats, message_key, plain_message
from coding_gym.envs.chat_request import normalised_for_templates
from coding_gym.episode import transcript
from coding_gym.errors import InvalidArgumentError
from coding_gym.text.chat import get_chat
from coding_gym.text.neutral import neutralise
from coding_gym.text.tokenizers import get_tokenizer
from coding_gym.tools.formats import ReplyParser
from coding_gym.trajectory import Message, ModelCall

Tools = Sequence[Mapping[str, Any]]

# Fields of a request that a local model does not support, and their defaults.
_UNSUPPORTED = {"n": 1, "stop": None, "response_format": None, "tool_choice": "auto"}


class LocalModel(Protocol):
    """Samples ids, as `HuggingFaceAgent` does.

    Attributes:
        model: Its name.
        tokenizer: The name of its tokenizer.
    """

    model: str
    tokenizer: str

    def describe(self) -> Mapping[str, Any]:
        """Returns its settings for records."""
        ...

    async def reply(
        self, prompt_ids: list[int], max_tokens: int | None, attempt_seed: int, turn: int
    ) -> tuple[Completion, ModelCall]:
        """Returns the reply to a prompt, as `HuggingFaceAgent.reply` does."""
        ...

    def render(self, messages: Sequence[Message], tools: "Tools | None" = None) -> list[int]:
        """Returns the ids of a chat, as `HuggingFaceAgent.render` does."""
        ...

    async def close(self) -> None:
        """Ends a generation that still runs; idempotent."""
        ...


class _Past(NamedTuple):
    """The tools of an earlier request, and the ids of its prompt and reply."""

    tools: Tools
    prompt_ids: list[int]
    completion_ids: list[int]


class LocalChat:
    """Serves the requests of one episode with a local model.

    A chat that begins with an earlier request and its unchanged reply continues their ids, so
    sampled ids are never encoded again. Any other chat is rendered by the chat template. Control
    tokens are neutralised in the tools and in all messages that the model did not write: a harness
    can change or invent messages of ``assistant``.

    Calls are read in the format ``auto`` if the request has tools. A reply with an unreadable call
    is returned as plain text, and reasoning is not separated from the text. The agent's sampling
    settings apply; a request can only lower ``max_tokens``.

    Args:
        agent: The model. Episodes that share it are generated in batches.
    """

    def __init__(self, agent: LocalModel) -> None:
        self._agent = agent
        self._tokenizer = get_tokenizer(agent.tokenizer)
        self._control = [*self._tokenizer.special_tokens]
        self._past_chats = PastChats[_Past](message_key)
        self._replies: dict[str, Message] = {}  # by their keys
        self._num_replies = 0

    async def complete(self, request: Mapping[str, Any]) -> Reply:
        """Returns the reply to a request in the form of OpenAI's chat completions.

        Raises:
            PromptTooLongError: The prompt is longer than the model's context.
            RequestRefusedError: A field is not supported, or the chat template fails.
            ModelError: The model failed.
        """
        unsupported = [
            name
            for name, default in _UNSUPPORTED.items()
            if (request.get(name) or default) != default
        ]
        if unsupported:
            raise RequestRefusedError(
                f"a local model does not support {', '.join(unsupported)}; serve the model",
                "refused",
            )
        messages = [plain_message(message) for message in request["messages"]]
        tools = request.get("tools") or []
        prompt_ids = await asyncio.to_thread(self._prompt, messages, tools)
        turn, self._num_replies = self._num_replies, self._num_replies + 1
        completion, call = await self._agent.reply(
            prompt_ids, request.get("max_tokens"), request.get("seed") or 0, turn
        )
        ids = list(completion.token_ids)
        message = self._message(completion, tools, messages)
        self._past_chats.add([*messages, message], _Past(tools, prompt_ids, ids))
        self._replies[message_key(message)] = message
        response = {
            "id": f"chatcmpl-{turn}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": self._agent.model,
            "prompt_token_ids": prompt_ids,
            "choices": [
                {
                    "index": 0,
                    "message": message,
                    "finish_reason": "tool_calls"
                    if "tool_calls" in message
                    else call.finish_reason,
                    "token_ids": ids,
                    "logprobs": {"content": [{"logprob": p} for p in completion.logprobs or ()]},
                }
            ],
            "usage": {
                "prompt_tokens": len(prompt_ids),
                "completion_tokens": len(ids),
                "total_tokens": len(prompt_ids) + len(ids),
            },
        }
        return read_reply(response, None, call.duration_s)

    def _prompt(self, messages: list[Message], tools: Tools) -> list[int]:
        """Returns the ids of a chat; they continue those of the longest earlier chat, if any."""
        length, last = self._past_chats.find(messages)
        if last is not None and last.tools != tools:
            length, last = 0, None
        new = messages[length:]
        if all(message["role"] in ("system", "user", "tool") for message in new):
            try:
                chat = get_chat(self._tokenizer, tools)
                part = chat.opening(new) if last is None else chat.answers(new)
            except InvalidArgumentError:  # the template moves or rewrites such messages
                pass
            else:
                if last is None:
                    return [*part.ids, *part.prompt]
                after = chat.join(last.completion_ids, part.ids)
                return [*last.prompt_ids, *after, *part.prompt]
        try:
            safe = [
                deepcopy(self._replies.get(message_key(message))) or self._neutral(message)
                for message in messages
            ]
            return self._agent.render(normalised_for_templates(safe), self._neutral(tools) or None)
        except Exception as problem:  # a template is a program, and raises any exception
            raise RequestRefusedError(
                f"the chat template refuses the request: {problem}", "refused"
            ) from problem

    def _neutral(self, value: Any) -> Any:
        """Returns a copy of a JSON value, with control tokens in its strings neutralised."""
        if isinstance(value, str):
            return neutralise(value, self._control)
        if isinstance(value, Mapping):
            return {self._neutral(key): self._neutral(item) for key, item in value.items()}
        return [self._neutral(item) for item in value] if isinstance(value, list) else value

    def _message(self, text: str, tools: Tools, messages: list[Message]) -> Message:
        """Returns a reply as a message of chat completions."""
        call_ids = {call["id"] for message in messages for call in message.get("tool_calls", ())}
        parsed = ReplyParser("auto", tools).read(text, call_ids)
        if not tools or any(call.error for call in parsed.calls):
            return {"role": "assistant", "content": str(text)}
        return transcript.assistant(str(text), parsed)
