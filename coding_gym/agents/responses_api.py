"""Conversion of OpenAI's Responses API to chat completions and back, for requests of Codex.

| Responses API | chat completions |
|---|---|
| ``instructions`` | the first message, of ``system`` |
| a ``message`` item | a message; ``developer`` is replaced by ``system`` |
| ``reasoning``, ``message`` and ``function_call`` items in a row | one message of ``assistant`` |
| ``function_call_output`` | a message of ``tool`` |
| ``max_output_tokens``, ``reasoning.effort`` | ``max_tokens``, ``reasoning_effort`` |
"""

from collections.abc import Iterator, Mapping
from typing import Any

from coding_gym.agents.model_reply import content_text
from coding_gym.errors import InvalidArgumentError
from coding_gym.trajectory import Message

Body = dict[str, Any]

_COMMON_FIELDS = ("model", "temperature", "top_p", "parallel_tool_calls", "tool_choice")
_STORED_FIELDS = ("previous_response_id", "conversation", "background", "prompt")


def chat_body(body: Mapping[str, Any]) -> Body:
    """Converts a Responses API request to a chat-completions request.

    Raises:
        InvalidArgumentError: The request refers to stored responses, an item is not a message,
            reasoning or a function call, or a tool is not a function.
    """
    stored = [name for name in _STORED_FIELDS if body.get(name)]
    if stored:
        raise InvalidArgumentError(
            f"{', '.join(stored)} is not supported: responses are not stored; send the whole input"
        )
    chat: Body = {name: body[name] for name in _COMMON_FIELDS if body.get(name) is not None}
    if body.get("max_output_tokens"):
        chat["max_tokens"] = body["max_output_tokens"]
    if (body.get("reasoning") or {}).get("effort"):
        chat["reasoning_effort"] = body["reasoning"]["effort"]
    messages: list[Message] = []
    if body.get("instructions"):
        messages.append({"role": "system", "content": body["instructions"]})
    items = body["input"]
    for item in [{"role": "user", "content": items}] if isinstance(items, str) else items:
        _add(messages, item)
    chat["messages"] = messages
    if body.get("tools"):
        chat["tools"] = [_tool(tool) for tool in body["tools"]]
    return chat


def _tool(tool: Mapping[str, Any]) -> Body:
    if tool.get("type") != "function":
        raise InvalidArgumentError(f"tools must be functions, got {tool.get('type')!r}")
    return {"type": "function", "function": {k: v for k, v in tool.items() if k != "type"}}


def _add(messages: list[Message], item: Mapping[str, Any]) -> None:
    """Adds an input item to a chat."""
    kind = item.get("type", "message")
    if kind == "function_call_output":
        result = {"tool_call_id": item["call_id"], "content": content_text(item["output"])}
        messages.append({"role": "tool", **result})
        return
    if kind == "message" and item["role"] != "assistant":
        role = "system" if item["role"] == "developer" else item["role"]  # as in templates
        messages.append({"role": role, "content": content_text(item["content"])})
        return
    if kind not in ("message", "reasoning", "function_call"):
        raise InvalidArgumentError(
            f"input items must be messages, reasoning or function calls, got {kind!r}"
        )
    if not messages or messages[-1]["role"] != "assistant":
        messages.append({"role": "assistant", "content": ""})
    reply = messages[-1]
    if kind == "reasoning":
        reply["reasoning_content"] = content_text(item.get("content"))
    elif kind == "message":
        reply["content"] += content_text(item["content"])
    else:
        function = {"name": item["name"], "arguments": item["arguments"]}
        call = {"id": item["call_id"], "type": "function", "function": function}
        reply.setdefault("tool_calls", []).append(call)


def response_body(completion: Mapping[str, Any]) -> Body:
    """Converts a chat completion to a response of the Responses API."""
    (choice,), usage = completion["choices"], completion["usage"]
    is_cut = choice["finish_reason"] == "length"
    key = completion["id"].removeprefix("chatcmpl-")
    return {
        "id": f"resp_{key}",
        "object": "response",
        "created_at": completion["created"],
        "model": completion["model"],
        "status": "incomplete" if is_cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "output": list(_output(key, choice["message"])),
        "usage": {
            "input_tokens": usage["prompt_tokens"],
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": usage["completion_tokens"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage["total_tokens"],
        },
    }


def _output(key: str, message: Mapping[str, Any]) -> Iterator[Body]:
    if reasoning := message.get("reasoning_content"):
        parts = [{"type": "reasoning_text", "text": reasoning}]
        yield {"type": "reasoning", "id": f"rs_{key}", "summary": [], "content": parts}
    calls = message.get("tool_calls", ())
    if message["content"] or not calls:
        text = message["content"] or ""
        part: Body = {"type": "output_text", "text": text, "annotations": []}
        fields = {"role": "assistant", "status": "completed", "content": [part]}
        yield {"type": "message", "id": f"msg_{key}", **fields}
    for number, call in enumerate(calls):
        fields = {"id": f"fc_{key}_{number}", "call_id": call["id"], "status": "completed"}
        yield {"type": "function_call", **fields, **call["function"]}


def response_events(response: Mapping[str, Any]) -> Iterator[Body]:
    """Yields a response as the events of a stream, with each item as a whole."""
    start = {**response, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": start, "sequence_number": 0}
    for index, item in enumerate(response["output"]):
        done = {"type": "response.output_item.done", "output_index": index, "item": item}
        yield {**done, "sequence_number": index + 1}
    end = f"response.{response['status']}"
    yield {"type": end, "response": response, "sequence_number": len(response["output"]) + 1}
