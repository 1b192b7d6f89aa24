"""Builds the input of a chat model for its next reply: messages and tools."""

import json
from contextlib import suppress
from copy import deepcopy
from typing import Any

from coding_gym.arguments import unknown_name
from coding_gym.errors import InvalidArgumentError
from coding_gym.trajectory import Message

APIS = ("chat", "transformers", "text")

_EMPTY = "(no content)"


def chat_request(env: Any, api: str = "chat") -> dict[str, Any]:
    """Returns the input of a chat model for its next reply: the messages so far and the tools.

    The keys are those of a request in OpenAI's form:
    ``client.chat.completions.create(model=…, **chat_request(env))`` requests the next action. The
    key ``tools`` is missing if the system prompt explains the tools (see ``tool_format``).

    Args:
        env: A ``CodingRepair-v0`` env, wrapped or not, or a started `Episode`.
        api: ``"chat"`` returns ``messages`` and ``tools`` in a form that strict servers accept:
            arguments that are not a JSON object become the value of ``"unreadable"`` in an object;
            empty content becomes null, or a placeholder if there are no calls.
            ``"transformers"`` returns ``conversation`` and ``tools`` for ``apply_chat_template``:
            arguments are objects, because templates convert them to JSON; a notice after results
            becomes part of the last result, because some templates refuse a separate message.
            ``"text"`` is for models without calls in their template (SmolLM): ``messages``
            with each reply's original text (parsed calls as JSON) and results as user messages.

    Raises:
        EpisodeError: There is no episode yet; call `reset` first.
        InvalidArgumentError: ``env`` is neither ``CodingRepair-v0`` nor an `Episode`.
        UnknownNameError: ``api`` is unknown.
    """
    from coding_gym.episode import Episode  # slow to import
    from coding_gym.tools.formats import explains_format

    if api not in APIS:
        raise unknown_name("API", api, APIS)
    core = getattr(env, "unwrapped", env)
    episode = core if isinstance(core, Episode) else getattr(core, "episode", None)
    if episode is None:
        raise InvalidArgumentError(f"chat_request needs CodingRepair-v0 or an Episode, got {core}")
    messages = deepcopy(episode.messages)
    is_explained = explains_format(episode.tool_format)
    schemas = [] if is_explained else deepcopy(list(episode.toolset.schemas))
    if api == "text":
        messages = _as_text(messages, [turn.completion().full_text for turn in episode.turns])
    elif api == "transformers":
        messages = normalised_for_templates(messages)
    else:
        _make_valid(messages)
    key = "conversation" if api == "transformers" else "messages"
    return {key: messages} | ({"tools": schemas} if schemas else {})


def _make_valid(messages: list[Message]) -> None:
    """Replaces in place empty contents and unreadable arguments, which strict servers refuse."""
    for message in messages:
        calls = message.get("tool_calls", ())
        if message["role"] == "assistant" and not message["content"]:
            message["content"] = None if calls else _EMPTY
        for call in calls:
            text = call["function"]["arguments"]
            arguments = _arguments(text)
            if arguments == {"unreadable": text}:
                call["function"]["arguments"] = json.dumps(arguments)


def _arguments(text: str) -> dict[str, Any]:
    """Returns arguments as an object; text that is no object becomes ``{"unreadable": text}``."""
    with suppress(ValueError, RecursionError):
        arguments = json.loads(text)
        if isinstance(arguments, dict):
            return arguments
    return {"unreadable": text}


def _as_text(messages: list[Message], actions: list[str]) -> list[Message]:
    """Returns messages without calls, in which the roles user and assistant alternate."""
    replies = iter(actions)
    chat: list[Message] = []
    for message in messages:
        role, content = message["role"], message["content"]
        if role == "assistant":
            chat.append({"role": role, "content": next(replies)})
        elif role != "system" and chat and chat[-1]["role"] == "user":
            chat[-1]["content"] += f"\n{content}"
        else:
            chat.append({"role": "user" if role == "tool" else role, "content": content})
    return chat


def normalised_for_templates(messages: list[Message]) -> list[Message]:
    """Returns messages, changed in place: arguments as objects, no user message after results."""
    chat = list[Message]()
    for message in messages:
        if message["role"] == "user" and chat and chat[-1]["role"] == "tool":
            chat[-1]["content"] += f"\n{message['content']}"
            continue
        for call in message.get("tool_calls", ()):
            call["function"]["arguments"] = _arguments(call["function"]["arguments"])
        chat.append(message)
    return chat
