"""The format ``template``: the tokenizer's own response template, read by transformers."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from coding_gym.errors import InvalidArgumentError, MissingDependencyError
from coding_gym.optional import requirement
from coding_gym.tools.formats.format import ParsedAction
from coding_gym.tools.formats.json_calls import message_calls
from coding_gym.tools.formats.json_text import FormatError

if TYPE_CHECKING:
    from coding_gym.text.tokenizers import Tokenizer

_SHOWS_ITS_END = ("json", "python-call-list")  # bodies that cannot be read where they are cut off


def check_template(tokenizer: "Tokenizer | None") -> Any:
    """Returns the tokenizer of transformers, which has a response template.

    Raises:
        InvalidArgumentError: It has none, or is no tokenizer of transformers.
        MissingDependencyError: The installed transformers reads none.
    """
    backend = getattr(tokenizer, "backend", None)
    if getattr(backend, "response_template", None) is None:
        name = getattr(tokenizer, "name", None)
        raise InvalidArgumentError(
            "tool_format 'template' needs an 'hf:' tokenizer with a response_template, got "
            f"{name!r}; use the model's own format, or 'auto'"
        )
    if not hasattr(backend, "get_response_parser"):
        raise MissingDependencyError(
            f"response templates need transformers>=5.13; run: pip install -U {requirement('hf')}"
        )
    return backend


def read_template(
    text: str, schemas: Sequence[Mapping[str, Any]], tokenizer: "Tokenizer | None"
) -> ParsedAction:
    """Reads a reply by the tokenizer's response template.

    Raises:
        FormatError: The reply does not fit the template, or a call in it is cut off.
    """
    backend = check_template(tokenizer)
    tools = [dict(schema) for schema in schemas]
    opening = [{"role": "user", "content": ""}]
    prompt = backend.apply_chat_template(
        opening, tools=tools, add_generation_prompt=True, tokenize=False
    )
    try:
        parser = backend.get_response_parser(prefix=prompt, tools=tools)
        parser.feed(text)
        message, events = parser.finalize()
    except (ValueError, KeyError, TypeError) as problem:  # what templates and their parsers raise
        raise FormatError(str(problem)) from problem
    body = backend.response_template["fields"].get("tool_calls", {}).get("content", "text")
    at_end = [event["field"] for event in events if event["type"] == "region_close"]
    if "tool_calls" in at_end and body not in _SHOWS_ITS_END:
        raise FormatError("the call is not closed by its mark; the reply seems cut off")
    content, thinking = (str(message.get(key) or "").strip() for key in ("content", "thinking"))
    return ParsedAction(tuple(message_calls(message)), content, reasoning=thinking)
