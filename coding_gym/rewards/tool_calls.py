"""Whether tool calls are such as the tools can take."""

from collections.abc import Mapping, Sequence
from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.trajectory import Turn

Schema = Mapping[str, Any]

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (Mapping,),
    "null": (type(None),),
}


def tool_call_validity(turns: Sequence[Turn], schemas: Sequence[Schema]) -> float:
    """Returns which share of an episode's tool calls the tools could take, from 0 to 1.

    A call is valid if it could be read, names a tool of the toolset, and has arguments that fit its
    schema: the required ones, no unknown ones, each of its type. A reply without a call counts as
    an invalid one, but for the last, which ends an episode in some toolsets. 0 without any call.

    Source: this project; the format rewards of CodeRepairRL and NanoAgent (-1 on a call that cannot
    be parsed) are about the same.

    Args:
        turns: The episode's turns.
        schemas: The tools as OpenAI function schemas, as in `Toolset.schemas`.

    >>> run = {"function": {"name": "shell", "parameters": {"type": "object", "required": ["cmd"],
    ...     "properties": {"cmd": {"type": "string"}}}}}
    >>> good, unknown, missing = (
    ...     Turn(action="", calls=(ToolCall(name, arguments),))
    ...     for name, arguments in [("shell", {"cmd": "ls"}), ("sh", {"cmd": "ls"}), ("shell", {})]
    ... )
    >>> tool_call_validity([good], [run]), tool_call_validity([good, unknown, missing, good], [run])
    (1.0, 0.5)
    >>> tool_call_validity([Turn(action="Let me see."), good, Turn(action="Done.")], [run])
    0.5
    """
    tools = {schema["function"]["name"]: schema["function"] for schema in schemas}
    calls = [call for turn in turns for call in turn.calls]
    num_silent = sum(not turn.calls for turn in turns[:-1])
    if not calls:
        return 0.0
    return sum(_is_valid(call, tools) for call in calls) / (len(calls) + num_silent)


def _is_valid(call: ToolCall, tools: Mapping[str, Schema]) -> bool:
    if call.error or call.name not in tools:
        return False
    return _fits(call.arguments, tools[call.name].get("parameters", {}), is_closed=True)


def _fits(value: Any, schema: Schema, *, is_closed: bool = False) -> bool:
    """Whether a JSON value is what the commoner words of a JSON schema say."""
    kinds = schema.get("type", ())
    names = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    if names and not any(_is_a(value, name) for name in names):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if isinstance(value, Mapping):
        properties: Mapping[str, Schema] = schema.get("properties", {})
        if not set(schema.get("required", ())) <= value.keys():
            return False
        if is_closed and not value.keys() <= properties.keys():
            return False
        return all(_fits(value[name], properties[name]) for name in value.keys() & properties)
    if isinstance(value, list | tuple):
        return all(_fits(item, schema.get("items", {})) for item in value)
    return True


def _is_a(value: Any, name: str) -> bool:
    if isinstance(value, bool) and name != "boolean":  # which Python counts as a number
        return False
    return isinstance(value, _TYPES.get(name, (object,)))
