"""A toolset's schemas in the forms that others take: one source, nothing written twice.

A toolset's own `schemas` are the source; `coding_gym.tools.functions` makes functions of them.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.tools.functions import function_from_schema
from coding_gym.tools.schemas import Schema


def as_openai(schemas: Sequence[Schema]) -> list[dict[str, Any]]:
    """Returns the tools as the ``tools`` of OpenAI's chat completions: copies that may be changed.

    Returns:
        One ``{"type": "function", "function": {"name", "description", "parameters"}}`` per tool.
    """
    return [deepcopy(dict(schema)) for schema in schemas]


def as_hugging_face(schemas: Sequence[Schema]) -> list[dict[str, Any]]:
    """Returns the tools as ``apply_chat_template(..., tools=...)`` of transformers takes them.

    They equal what ``transformers.utils.get_json_schema`` reads from `as_functions`, bounds of
    numbers apart, for which Python's hints have no word: OpenAI's, with ``required`` only where
    something is.
    """
    tools = as_openai(schemas)
    for tool in tools:
        parameters = tool["function"]["parameters"]
        if not parameters.get("required"):
            parameters.pop("required", None)
    return tools


def as_mcp(schemas: Sequence[Schema]) -> list[dict[str, Any]]:
    """Returns the tools as the ``tools/list`` of the Model Context Protocol gives them.

    Returns:
        One ``{"name", "description", "inputSchema"}`` per tool.
    """
    functions = [tool["function"] for tool in as_openai(schemas)]
    return [
        {
            "name": function["name"],
            "description": function.get("description", ""),
            "inputSchema": function.get("parameters", {"type": "object", "properties": {}}),
        }
        for function in functions
    ]


def as_functions(
    schemas: Sequence[Schema], call: Callable[[ToolCall], str]
) -> list[Callable[..., str]]:
    """Returns the tools as Python functions with type hints and Google docstrings.

    Args:
        schemas: OpenAI function schemas, as in `Toolset.schemas`.
        call: What each of the functions does with its call.

    Raises:
        InvalidArgumentError: A schema cannot be written as a function.
    """
    return [function_from_schema(schema, call) for schema in schemas]
