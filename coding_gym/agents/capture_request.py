"""Validation of a harness's requests: only known fields of the right types reach the model.

Untrusted code in the sandbox writes these requests. Unknown fields could replace a provider's
address or key (``api_base`` of LiteLLM), or make the server fetch a page.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from coding_gym.errors import InvalidArgumentError
from coding_gym.json_record import first_problem
from coding_gym.tools.formats.json_text import checked

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
        InvalidArgumentError: A field has a wrong type; the message names the field.
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
