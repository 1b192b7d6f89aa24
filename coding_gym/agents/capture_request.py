"""The part of a harness's request that reaches the model: known fields, of the right types.

Code in the sandbox writes these requests. Other fields could choose a provider's address or key
(``api_base`` of LiteLLM), or have the server fetch a page.
"""

from collections.abc import Mapping
from typing import Any

import jsonschema

from coding_gym.errors import InvalidArgumentError

_MESSAGE_FIELDS = (
    *("role", "content", "name", "tool_calls", "tool_call_id"),
    *("reasoning_content", "reasoning"),
)
_NUMBER = {"type": ["number", "null"]}
_TEXT = {"type": ["string", "null"]}
_PART = {
    "type": "object",
    "required": ["type", "text"],
    "properties": {"type": {"const": "text"}, "text": {"type": "string"}},
}
_CALL = {
    "type": "object",
    "required": ["id", "function"],
    "properties": {
        "id": {"type": "string"},
        "type": {"const": "function"},
        "function": {
            "type": "object",
            "required": ["name", "arguments"],
            "properties": {"name": {"type": "string"}, "arguments": {"type": "string"}},
        },
    },
}
_MESSAGE = {
    "type": "object",
    "required": ["role"],
    "properties": {
        "role": {"enum": ["system", "developer", "user", "assistant", "tool"]},
        "content": {"type": ["string", "null", "array"], "items": _PART},
        "name": _TEXT,
        "tool_calls": {"type": ["array", "null"], "items": _CALL},
        "tool_call_id": _TEXT,
        "reasoning_content": _TEXT,
        "reasoning": _TEXT,
    },
}
_TOOL = {
    "type": "object",
    "required": ["type", "function"],
    "properties": {
        "type": {"const": "function"},
        "function": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string"}, "parameters": {"type": ["object", "null"]}},
        },
    },
}
_FIELDS: dict[str, Any] = {
    "messages": {"type": "array", "minItems": 1, "items": _MESSAGE},
    "tools": {"type": ["array", "null"], "items": _TOOL},
    "tool_choice": {"type": ["string", "object", "null"]},
    "parallel_tool_calls": {"type": ["boolean", "null"]},
    "temperature": _NUMBER,
    "top_p": _NUMBER,
    "top_k": _NUMBER,
    "min_p": _NUMBER,
    "presence_penalty": _NUMBER,
    "frequency_penalty": _NUMBER,
    "repetition_penalty": _NUMBER,
    "max_tokens": {"type": ["integer", "null"], "minimum": 1},
    "stop": {"type": ["string", "array", "null"], "items": {"type": "string"}},
    "response_format": {"type": ["object", "null"]},
    "reasoning_effort": _TEXT,
    "logprobs": {"type": ["boolean", "null"]},
    "top_logprobs": {"type": ["integer", "null"]},
}
_REQUEST = jsonschema.Draft202012Validator(
    {"type": "object", "required": ["messages"], "properties": _FIELDS | {"n": {"enum": [1, None]}}}
)


def model_request(body: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields of a chat completion's request that are sent to the model.

    Args:
        body: The request of code in the sandbox, in the form of OpenAI's chat completions.

    Raises:
        InvalidArgumentError: A field has another type; the message names the field.
    """
    renamed = dict(body)
    if (limit := renamed.pop("max_completion_tokens", None)) is not None:
        renamed["max_tokens"] = limit
    problem = next(_REQUEST.iter_errors(renamed), None)
    if problem is not None:
        raise InvalidArgumentError(f"{problem.json_path[2:]}: {problem.message:.500}")
    request = {name: renamed[name] for name in _FIELDS if renamed.get(name) is not None}
    request["messages"] = [
        {name: message[name] for name in _MESSAGE_FIELDS if name in message}
        for message in request["messages"]
    ]
    return request
