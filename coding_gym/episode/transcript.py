"""The chat of one episode, as messages in OpenAI's form and as text for people."""

import json
import re
import textwrap
from collections.abc import Sequence
from contextlib import suppress

from coding_gym.action import Completion
from coding_gym.text.families import REASONING
from coding_gym.tools.formats import ParsedAction
from coding_gym.tools.schemas import SHELLS
from coding_gym.trajectory import Message

_MAX_NAMES = 5  # paths in the note about excluded files
_OPENING, _CLOSING = ("|".join(map(re.escape, marks)) for marks in zip(*REASONING, strict=True))
# Without \A the search is quadratic.
_REASONING = re.compile(rf"\A.*(?:{_CLOSING})|(?:{_OPENING}).*", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # characters that control a terminal


def assistant_message(action: str, parsed: ParsedAction) -> Message:
    """Returns the policy's reply as a message in OpenAI's form.

    ``content`` is the text without the calls. If the reply has OpenAI's form, the message has its
    call ids and argument strings, unchanged.
    """
    # A plain-text reply keeps the white space at the ends of the text.
    content = action if parsed.text == action.strip() else parsed.text
    message: Message = {"role": "assistant", "content": content}
    if parsed.reasoning:
        message["reasoning_content"] = parsed.reasoning
    if parsed.calls:
        message["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": call.arguments_text or json.dumps(dict(call.arguments)),
                },
            }
            for call in parsed.calls
        ]
    return message


def reply_message(reply: Completion) -> Message:
    """Returns a reply, whose calls are already parsed, as a message in OpenAI's form."""
    parsed = ParsedAction(reply.calls or (), reply.strip(), reasoning=reply.reasoning)
    return assistant_message(str(reply), parsed)


def excluded_note(names: Sequence[str]) -> str:
    """Returns the note about new files and folders that are not part of the patch."""
    ending = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"Excluded from the patch, not part of a repair: {', '.join(names[:_MAX_NAMES])}{ending}"


def has_content(text: str) -> bool:
    """Returns whether a reply has text outside reasoning, also if a reasoning mark is missing."""
    return bool(_REASONING.sub("", text).strip())


def user_message(text: str) -> Message:
    """Returns the task, or a notice to the policy, as a user message."""
    return {"role": "user", "content": text}


def visible_text(messages: Sequence[Message]) -> str:
    """Returns the text of tool results and user messages, joined by line breaks."""
    return "\n".join(m["content"] for m in messages if m["role"] in ("tool", "user"))


def render(messages: Sequence[Message], footer: str = "", *, has_tools: bool = True) -> str:
    """Returns the chat as text for people, with its control characters escaped.

    The text of a reply precedes its calls: ``$ command`` for a shell, else ``▶ name arguments``.
    Results are indented. If ``has_tools``, the heading of a reply without a call says so.
    """
    blocks = [_block(message, has_tools) for message in messages if message["role"] != "system"]
    text = "\n\n".join([*blocks, footer] if footer else blocks)
    return _CONTROL.sub(lambda control: f"\\x{ord(control[0]):02x}", text) + "\n"


def _block(message: Message, has_tools: bool) -> str:
    content = message["content"].strip()
    if message["role"] == "user":
        return f"── task or notice ──\n{content}"
    if message["role"] == "tool":
        return textwrap.indent(content, "  ") or "  (no output)"
    calls = [_call_text(**call["function"]) for call in message.get("tool_calls", ())]
    if not calls:
        return f"── policy{', no tool call' if has_tools else ''} ──\n{content}"
    return "\n\n".join([content, *calls] if content else calls)


def _call_text(name: str, arguments: str) -> str:
    with suppress(ValueError, AttributeError, RecursionError):  # not one readable argument
        (command,) = json.loads(arguments).values()
        if name in SHELLS and isinstance(command, str):
            return f"$ {command}"
    return f"▶ {name} {arguments}"
