"""The APIs of the capture endpoint: Chat Completions, and OpenAI's Responses API for Codex.

Untrusted code in the sandbox writes the requests. Only known fields of the right types reach the
model: unknown fields could replace a provider's address or key (``api_base`` of LiteLLM), or make
the server fetch a page. Requests of the Responses API are converted to chat completions, and the
replies back:

| Responses API | chat completions |
|---|---|
| ``instructions`` | the first message, of ``system`` |
| a ``message`` item, not of ``assistant`` | a message; ``developer`` is replaced by ``system`` |
| consecutive items of ``assistant``, reasoning and calls included | one message of ``assistant`` |
| ``function_call_output`` | a message of ``tool`` |
| ``max_output_tokens`` | ``max_tokens`` |
| ``reasoning.effort`` | ``reasoning_effort`` |
"""

import json
import time
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from coding_gym.action import Completion
from coding_gym.calls import ModelCall
from coding_gym.episode.transcript import reply_message
from coding_gym.errors import InvalidArgumentError
from coding_gym.json_record import first_problem
from coding_gym.tools.formats import content_text
from coding_gym.tools.formats.json_text import checked
from coding_gym.trajectory import Message

ROUTES = CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"

Body = dict[str, Any]

_STORED_FIELDS = ("previous_response_id", "conversation", "background", "prompt")
_Object = Annotated[dict[str, Any], AfterValidator(checked)]
"""A JSON object of limited depth."""


class _Fields(BaseModel):
    """A record that ignores unknown fields and does not convert values."""

    model_config = ConfigDict(strict=True, extra="ignore")


class _Text(_Fields):
    type: Literal["text"]
    text: str


class _CalledFunction(_Fields):
    name: str
    arguments: str


class _Call(_Fields):
    id: str
    type: Literal["function"] = "function"
    function: _CalledFunction


class _Message(_Fields):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[_Text] | None = None
    name: str | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None


class _Function(_Fields):
    name: str
    description: str | None = None
    parameters: _Object | None = None
    strict: bool | None = None


class _Tool(_Fields):
    type: Literal["function"]
    function: _Function


class _Request(_Fields):
    messages: list[_Message] = Field(min_length=1)
    tools: list[_Tool] | None = None
    tool_choice: str | _Object | None = None
    parallel_tool_calls: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    stop: str | list[str] | None = None
    response_format: _Object | None = None
    reasoning_effort: str | None = None
    n: Literal[1] | None = Field(None, exclude=True)


def model_request(body: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields of a request that are sent to the model.

    Args:
        body: The request of a harness, in the form of OpenAI's chat completions.

    Raises:
        InvalidArgumentError: A field has a wrong type or value; the message names the field.
    """
    try:
        request = _Request.model_validate(body).model_dump(exclude_unset=True)
    except ValidationError as problem:
        path, text = first_problem(problem)
        raise InvalidArgumentError(f"{'.'.join(map(str, path))} {text}") from None
    fields = {name: value for name, value in request.items() if value is not None}
    if (limit := fields.pop("max_completion_tokens", None)) is not None:
        fields["max_tokens"] = limit
    return fields


def chat_body(body: Mapping[str, Any]) -> Body:
    """Converts a Responses API request to a chat-completions request, for `model_request`.

    Raises:
        InvalidArgumentError: The request refers to stored responses; a tool is not a function; or
            an item is not a message, reasoning, a function call or the output of a call.
    """
    if fields := ", ".join(name for name in _STORED_FIELDS if body.get(name)):
        raise InvalidArgumentError(
            f"responses are not stored, so omit {fields} and send the whole input"
        )
    chat: Body = {**body, "max_tokens": body.get("max_output_tokens")}
    chat["reasoning_effort"] = (body.get("reasoning") or {}).get("effort")
    messages: list[Message] = []
    if body.get("instructions"):
        messages.append({"role": "system", "content": body["instructions"]})
    items = body["input"]
    for item in [{"role": "user", "content": items}] if isinstance(items, str) else items:
        _add(messages, item)
    chat["messages"] = messages
    chat["tools"] = [_tool(tool) for tool in body.get("tools") or ()] or None
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
        role = "system" if item["role"] == "developer" else item["role"]  # as chat templates do
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


def response_text(route: str, body: Body, reply: Completion, number: int) -> tuple[str, str]:
    """Returns the content type and the text of the response to a request.

    Args:
        route: One of `ROUTES`.
        body: The request.
        reply: The model's reply.
        number: The number of the reply, for its id.
    """
    completion = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": body.get("model"),
        **_fields(reply),
    }
    response = completion if route == CHAT else _response_body(completion)
    if not body.get("stream"):
        return "application/json", json.dumps(response)
    if route == CHAT:
        return "text/event-stream", f"data: {json.dumps(_chunk(completion))}\n\ndata: [DONE]\n\n"
    events = (
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
        for event in _response_events(response)
    )
    return "text/event-stream", "".join(events)


def _fields(reply: Completion) -> dict[str, Any]:
    """Returns the fields ``choices`` and ``usage`` of a chat completion."""
    message, call = reply_message(reply), reply.model_call or ModelCall()
    num_prompt, num_sampled = call.prompt_tokens or 0, call.completion_tokens or 0
    reason = "tool_calls" if reply.calls and not reply.is_cut else call.finish_reason
    choice = {
        "index": 0,
        "message": {**message, "content": message["content"] or None},
        "finish_reason": reason or "stop",
    }
    counts = {"prompt_tokens": num_prompt, "completion_tokens": num_sampled}
    return {"choices": [choice], "usage": {**counts, "total_tokens": num_prompt + num_sampled}}


def _chunk(completion: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a completion as the only chunk of a stream."""
    (choice,) = completion["choices"]
    delta = dict(choice["message"])
    if "tool_calls" in delta:
        calls = enumerate(delta["tool_calls"])
        delta["tool_calls"] = [{"index": index, **call} for index, call in calls]
    streamed = {"index": 0, "delta": delta, "finish_reason": choice["finish_reason"]}
    return {**completion, "object": "chat.completion.chunk", "choices": [streamed]}


def _response_body(completion: Mapping[str, Any]) -> Body:
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


def _response_events(response: Mapping[str, Any]) -> Iterator[Body]:
    """Yields a response as the events of a stream, with each item as a whole."""
    start = {**response, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": start, "sequence_number": 0}
    for index, item in enumerate(response["output"]):
        done = {"type": "response.output_item.done", "output_index": index, "item": item}
        yield {**done, "sequence_number": index + 1}
    end = f"response.{response['status']}"
    yield {"type": end, "response": response, "sequence_number": len(response["output"]) + 1}
