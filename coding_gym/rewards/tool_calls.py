"""The reward for tool calls that match the schemas of the tools."""

from collections.abc import Sequence

from coding_gym.tools.schemas import Schema
from coding_gym.trajectory import Turn


def tool_call_validity(turns: Sequence[Turn], schemas: Sequence[Schema]) -> float:
    """Returns the share of an episode's tool calls that are valid, from 0 to 1.

    A call is valid if it could be parsed, names a tool of the toolset, and has arguments that match
    the schema. A reply without a call counts as an invalid call, except the last reply, which ends
    an episode in some toolsets. The share is 0 without calls.

    Source: this project. The format rewards of CodeRepairRL and NanoAgent (-1 for a call that
    cannot be parsed) measure almost the same.

    Args:
        turns: The episode's turns.
        schemas: The tools as OpenAI function schemas, as in `Toolset.schemas`.

    >>> from coding_gym.calls import ToolCall
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
    from jsonschema import Draft202012Validator  # takes long to import

    validators = {
        schema["function"]["name"]: Draft202012Validator(
            {"additionalProperties": False, **schema["function"]["parameters"]}
        )
        for schema in schemas
    }
    calls = [call for turn in turns for call in turn.calls]
    num_without_calls = sum(not turn.calls for turn in turns[:-1])
    if not calls:
        return 0.0
    validity: list[bool] = [
        not call.error
        and call.name in validators
        and validators[call.name].is_valid(dict(call.arguments))
        for call in calls
    ]
    return sum(validity) / (len(calls) + num_without_calls)
