"""Defines toolsets: a name, a system prompt, tools, and the rule for a reply without a call.

`Toolset.execute` runs all calls. A tool's function raises `Refusal` for mistakes of the policy,
such as a missing argument; `execute` returns the text of the refusal as the result. `execute`
raises only `SandboxError`, for an infrastructure failure.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.errors import InvalidArgumentError
from coding_gym.text.truncate import well_formed
from coding_gym.tools.prompts import EXAMPLE_COMMANDS
from coding_gym.tools.schemas import KnownTools, Schema, function

if TYPE_CHECKING:
    from numpy.random import Generator

    from coding_gym.sandbox.protocol import Sandbox

_SUBMIT_PROBABILITY = 0.05
_MAX_QUOTED_CHARS = 200
_MAX_REFUSAL_CHARS = 8000


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The parts of an episode that tools use.

    Attributes:
        sandbox: The sandbox with the task's working tree.
        command_timeout_s: Seconds after which a command is killed.
    """

    sandbox: "Sandbox"
    command_timeout_s: float


class Refusal(Exception):
    """The reason why a tool refuses a call; the toolset returns it as the result."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Tool:
    """One tool of a toolset.

    Attributes:
        name: The name that calls use.
        description: A sentence or two for the policy.
        run: Runs a call and returns a `ToolResult`, or only the text of a successful result. Raises
            `Refusal` for mistakes of the policy.
        parameters: Each parameter's JSON schema, or the description of a string parameter.
        optional: Names of the optional parameters.
    """

    name: str
    description: str
    run: Callable[[ToolCall, ToolContext], ToolResult | str]
    parameters: Mapping[str, str | Mapping[str, Any]] = field(default_factory=dict)
    optional: Sequence[str] = ()

    @cached_property
    def schema(self) -> Schema:
        """The tool as an OpenAI function schema."""
        return function(self.name, self.description, self.parameters, self.optional)

    @cached_property
    def _validator(self) -> Any:
        from jsonschema import Draft202012Validator  # slow to import

        return Draft202012Validator(
            {"properties": self.schema["function"]["parameters"]["properties"]}
        )

    def check_schema(self) -> None:
        """Raises InvalidArgumentError if the parameters are not a schema, or contain a ``$ref``."""
        from jsonschema import Draft202012Validator, SchemaError

        parameters = self.schema["function"]["parameters"]
        try:
            Draft202012Validator.check_schema(parameters)
        except SchemaError as error:
            raise InvalidArgumentError(
                f"the parameters of tool {self.name!r} are not a JSON schema: {error.message}"
            ) from error
        if '"$ref"' in json.dumps(parameters):
            raise InvalidArgumentError(
                f"the parameters of tool {self.name!r} have a $ref; write the type in its place"
            )

    def checked(self, call: ToolCall) -> ToolCall:
        """Returns a call without null arguments if it fits the schema; extra arguments are kept.

        Raises:
            Refusal: An argument is missing, does not fit the schema, or is not Unicode text.
        """
        arguments = {name: value for name, value in call.arguments.items() if value is not None}
        parameters = self.schema["function"]["parameters"]
        for name in parameters["required"]:
            if name not in arguments:
                names = ", ".join(quoted(key) for key in list(call.arguments)[:10]) or "nothing"
                raise Refusal(f"{call.name} needs the argument `{name}`, got {names}")
        for error in self._validator.iter_errors(arguments):
            problem = error.message.removeprefix(repr(error.instance))
            raise Refusal(f"`{error.path[0]}`: {quoted(error.instance)}{problem}")
        for name, value in arguments.items():
            if isinstance(value, str) and value != well_formed(value):
                raise Refusal(f"`{name_of(name)}` contains a lone surrogate, not Unicode text")
        return replace(call, arguments=arguments)


_CALL_A_TOOL = (
    "No tool call was found in your reply. Call a tool to continue, or submit if the work is done."
)
_SUBMISSION = ToolCall("submit")


@dataclass(frozen=True, kw_only=True, eq=False)
class Toolset:
    """A set of tools under one name; all episodes and threads share one instance.

    Attributes:
        name: The name that ``toolset=`` takes.
        system_prompt: The policy's instructions, without the tools' schemas.
        tools: The tools, in the order of the schemas.
        no_call_reply: The message to the policy after a reply without a tool call.
        no_call_ends: Whether a reply with text but without a call ends the episode if the tree has
            changed. If False, every reply without a call counts as a format error.
        text_formats: Tool formats that ``auto`` reads in addition, for toolsets whose prompt
            explains a format other than JSON.
        submission: The call that submits.
        refuse: Returns the text of a result that reports a mistake of the policy.
        checks_arguments: Whether calls whose arguments do not fit the schema are refused, and null
            arguments dropped, before a tool runs. Otherwise each tool checks its arguments.
        unreadable: The message for unreadable arguments; `str.format` fills in ``call`` and
            ``json_error``, the error of Python's ``json``.
        unknown: The message for a call of an unknown tool; `str.format` fills in ``call``, ``name``
            (short and on one line) and ``tools``.
    """

    name: str
    system_prompt: str
    tools: tuple[Tool, ...]
    no_call_reply: str = _CALL_A_TOOL
    no_call_ends: bool = False
    text_formats: tuple[str, ...] = ()
    submission: ToolCall = _SUBMISSION
    refuse: Callable[[str], str] = "Error: {}".format
    checks_arguments: bool = True
    unreadable: str = "the arguments are not JSON: {call.error:.300}"
    unknown: str = "unknown tool: {name}; the tools are {tools}"

    @cached_property
    def schemas(self) -> tuple[Schema, ...]:
        """The tools as OpenAI function schemas."""
        return tuple(tool.schema for tool in self.tools)

    @cached_property
    def _tool_by_name(self) -> Mapping[str, Tool]:
        return {tool.name: tool for tool in self.tools}

    def execute(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Runs one call and returns its result, which can report a mistake of the policy.

        Raises:
            SandboxError: The sandbox is closed or died.
        """
        try:
            if call.error:
                raise Refusal(self.unreadable.format(call=call, json_error=_json_error(call)))
            tool = self._tool_by_name.get(call.name)
            if tool is None:
                names = ", ".join(self._tool_by_name)
                name = name_of(call.name)
                raise Refusal(self.unknown.format(call=call, name=name, tools=names))
            result = tool.run(tool.checked(call) if self.checks_arguments else call, context)
        except Refusal as refusal:
            result = ToolResult(self.refuse(f"{refusal!s:.{_MAX_REFUSAL_CHARS}}"), ok=False)
        if isinstance(result, str):
            result = ToolResult(result)
        return replace(result, content=well_formed(result.content), call_id=call.call_id)

    def sample_call(self, rng: "Generator") -> ToolCall:
        """Draws a shell command or the submission, for random agents and ``action_space.sample``.

        The results of these commands do not depend on the time or the machine.
        """
        shell = KnownTools(self.schemas).shell()
        if shell is None or rng.random() < _SUBMIT_PROBABILITY:
            return self.submission
        tool, argument = shell
        return ToolCall(tool, {argument: str(rng.choice(EXAMPLE_COMMANDS))})


def _json_error(call: ToolCall) -> str:
    """Returns the error of Python's ``json`` for the arguments, else the call's error."""
    if not call.arguments_text:  # the arguments are not an object
        return call.error
    try:
        json.loads(call.arguments_text)
    except (ValueError, RecursionError) as error:
        return str(error)
    return call.error


SUBMIT = Tool(
    name="submit",
    description="Say that the work is done. The repository is then graded as it stands.",
    run=lambda *_: ToolResult("submitted", submitted=True),
)
"""The tool of most toolsets that ends an episode."""


def quoted(text: object) -> str:
    """Returns the repr of a value for a message: one line of at most 200 characters.

    >>> quoted("a" * 1000)[-6:]
    "aaaa…'"
    """
    text_repr = repr(text)
    if len(text_repr) <= _MAX_QUOTED_CHARS:
        return text_repr
    return f"{text_repr[: _MAX_QUOTED_CHARS - 2]}…{text_repr[-1]}"


def name_of(path: str) -> str:
    """Returns a path or a name for a message: one line, truncated after 200 characters."""
    text = path if len(path) <= _MAX_QUOTED_CHARS else f"{path[:_MAX_QUOTED_CHARS]}…"
    return well_formed(text.replace("\0", "\\0").replace("\n", "\\n"))
