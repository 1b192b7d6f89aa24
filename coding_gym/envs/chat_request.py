"""What a chat model is sent for its next reply."""

import json
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from typing import Any

from coding_gym.arguments import unknown_name
from coding_gym.trajectory import Message

APIS = ("chat", "responses", "transformers")


def chat_request(env: Any, api: str = "chat") -> dict[str, Any]:
    """Returns all that a chat model needs for its next reply: the messages so far, and the tools.

    The keys are those of a request in OpenAI's form, so that
    ``client.chat.completions.create(model=…, **chat_request(env))`` asks for the next action.
    There are no ``tools`` where the env's ``tool_format`` makes the system prompt explain them.

    Args:
        env: A ``CodingRepair-v0`` env, wrapped or not.
        api: ``"chat"`` gives ``messages`` and ``tools``. ``"responses"`` gives the ``input`` items
            and ``tools`` of the Responses API, where a ``function_call_output`` answers a call.
            ``"transformers"`` gives ``conversation`` and ``tools`` for ``apply_chat_template``,
            with arguments as objects: templates write them as JSON themselves.

    Raises:
        EpisodeError: There is no episode yet; call `reset` first.
        UnknownNameError: There is no such API.
    """
    from coding_gym.tools.formats import tells_format  # the package is imported without its tools

    if api not in APIS:
        raise unknown_name("API", api, APIS)
    core = env.unwrapped
    messages: list[Message] = deepcopy(core.episode.messages)
    explained = tells_format(core.tool_format)
    schemas = [] if explained else deepcopy(list(core.toolset.schemas))
    if api != "responses":
        if api == "transformers":
            _parse_arguments(messages)
        key = "messages" if api == "chat" else "conversation"
        return {key: messages} | ({"tools": schemas} if schemas else {})
    items = [item for message in messages for item in _response_items(message)]
    tools = [{"type": "function", **schema["function"]} for schema in schemas]
    return {"input": items} | ({"tools": tools} if tools else {})


def _parse_arguments(messages: list[Message]) -> None:
    for call in (call for message in messages for call in message.get("tool_calls", ())):
        with suppress(ValueError, RecursionError):  # a string that cannot be read stays
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])


def _response_items(message: Message) -> Iterator[dict[str, Any]]:
    if message["role"] == "tool":
        call_id, output = message["tool_call_id"], message["content"]
        yield {"type": "function_call_output", "call_id": call_id, "output": output}
        return
    calls = message.get("tool_calls", ())
    if message["content"] or not calls:
        yield {"role": message["role"], "content": message["content"]}
    for call in calls:
        yield {"type": "function_call", "call_id": call["id"], **call["function"]}
