"""The format ``template``: the tokenizer's own response template, read by transformers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from coding_gym.errors import InvalidArgumentError
from coding_gym.tools.formats.format import ParsedAction
from coding_gym.tools.formats.json_calls import message_calls
from coding_gym.tools.formats.json_text import FormatError, checked

if TYPE_CHECKING:
    from coding_gym.text.tokenizers import Tokenizer

_SELF_DELIMITING = ("json", "python-call-list")  # a truncated call of these forms is unreadable


def open_parser(tokenizer: "Tokenizer | None", schemas: Sequence[Mapping[str, Any]]) -> Any:
    """Returns a parser of one reply to a chat with these tools.

    Raises:
        InvalidArgumentError: The tokenizer has no response template, or one of its templates fails.
    """
    backend: Any = getattr(tokenizer, "backend", None)
    name = getattr(tokenizer, "name", None)
    if getattr(backend, "response_template", None) is None:
        raise InvalidArgumentError(
            "tool_format 'template' needs an 'hf:' tokenizer with a response_template, got "
            f"{name!r}; use the model's own format, or 'auto'"
        )
    tools = [dict(schema) for schema in schemas]
    try:  # the end of the prompt can be the opening mark of the reply's reasoning
        prompt = backend.apply_chat_template(
            [{"role": "user", "content": ""}],
            tools=tools,
            add_generation_prompt=True,
            tokenize=False,
        )
        return backend.get_response_parser(prefix=prompt, tools=tools)
    except Exception as error:  # a template is a program and can raise any exception
        raise InvalidArgumentError(
            f"a template of {name} fails: {error}; use another tool_format, such as 'auto'"
        ) from error


def read_template(
    text: str, schemas: Sequence[Mapping[str, Any]], tokenizer: "Tokenizer | None"
) -> ParsedAction:
    """Reads a reply with the tokenizer's response template.

    Raises:
        FormatError: The reply does not fit the template, or a call in it is truncated.
    """
    parser = open_parser(tokenizer, schemas)
    try:
        parser.feed(text)
        message, events = parser.finalize()
    except (ValueError, KeyError, TypeError, RecursionError) as error:  # of transformers' parsers
        raise FormatError(str(error)) from error
    fields = tokenizer.backend.response_template["fields"] if tokenizer else {}
    body = fields.get("tool_calls", {}).get("content", "text")
    # The events of `finalize` close the regions that are open at the end of the text.
    unclosed_fields = [event["field"] for event in events if event["type"] == "region_close"]
    if "tool_calls" in unclosed_fields and body not in _SELF_DELIMITING:
        raise FormatError("the call is not closed by its mark; the reply seems truncated")
    calls = [replace(c, arguments=checked(dict(c.arguments))) for c in message_calls(message)]
    content, thinking = (str(message.get(key) or "").strip() for key in ("content", "thinking"))
    return ParsedAction(tuple(calls), content, reasoning=thinking)
