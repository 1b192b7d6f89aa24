"""The chat of one episode, as messages in OpenAI's form and as text for people."""

import json
import re
import textwrap
from collections.abc import Sequence

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.tools.formats import ParsedAction
from coding_gym.trajectory import Message

# Limits of one call or result as displayed to people.
_LINE, _LINES = 120, 40
_EXCLUDED = 5  # names in the note
_LONG_WORD = re.compile(r"\S{60,}")
_REASONING = re.compile(
    r".*(?:</think>|<channel\|>)|(?:<think>|<\|channel>thought).*",  # the second is Gemma's
    re.DOTALL,
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # would act on a terminal


def opening(system_prompt: str, problem_statement: str) -> tuple[Message, ...]:
    """Returns the messages an episode starts with."""
    system = {"role": "system", "content": system_prompt}
    return system, {"role": "user", "content": problem_statement}


def assistant(action: str, parsed: ParsedAction) -> Message:
    """Returns the policy's reply, taken apart: each call stands in ``tool_calls`` alone.

    ``content`` is the text without the calls; ``reasoning_content`` is there where the reply was an
    OpenAI message that had it. Ids and argument strings of such a message stay as they were. A call
    without a name is not in ``tool_calls``, where servers refuse it.
    """
    named = [call for call in parsed.calls if call.name]
    # A reply that is plain text keeps the blank space at its ends.
    content = action if parsed.text == action.strip() else parsed.text
    message: Message = {"role": "assistant", "content": content}
    if parsed.reasoning:
        message["reasoning_content"] = parsed.reasoning
    if named:
        message["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": call.arguments_text or json.dumps(dict(call.arguments)),
                },
            }
            for call in named
        ]
    return message


def excluded_note(names: Sequence[str]) -> str:
    """Returns the note to a policy whose new files and folders are not part of its patch."""
    more = f" and {len(names) - _EXCLUDED} more" if len(names) > _EXCLUDED else ""
    return f"Not in the patch, as no part of a repair: {', '.join(names[:_EXCLUDED])}{more}"


def has_content(text: str) -> bool:
    """Returns whether a reply has text beside reasoning, which may lack its opening or closing."""
    return bool(_REASONING.sub("", text).strip())


def answer(call: ToolCall, result: ToolResult) -> Message:
    """Returns a result as the message that answers its call.

    It is a notice where the call has no name, since no entry of ``tool_calls`` has its id.
    """
    if not call.name:
        return user(result.content)
    return {"role": "tool", "tool_call_id": result.call_id, "content": result.content}


def user(text: str) -> Message:
    """Returns a notice to the policy."""
    return {"role": "user", "content": text}


def copied(message: Message) -> Message:
    """Returns a copy of a message, its tool calls included."""
    calls = message.get("tool_calls")
    if not calls:
        return dict(message)
    return {**message, "tool_calls": [{**c, "function": dict(c["function"])} for c in calls]}


def seen_text(messages: Sequence[Message]) -> str:
    """Returns the text that is new to the policy: the contents of all messages but its own."""
    return "\n".join(m["content"] for m in messages if m["role"] in ("tool", "user"))


def render(messages: Sequence[Message], footer: str = "") -> str:
    """Returns the chat as text that a person can follow.

    Tool calls show as ``$ command`` for a shell and as ``name(arguments)`` for other tools;
    results are indented below their call.
    """
    blocks = [block for m in messages if m["role"] != "system" for block in _blocks(m)]
    return _visible("\n\n".join([*blocks, footer] if footer else blocks)) + "\n"


def _blocks(message: Message) -> list[str]:
    if message["role"] == "user":
        return [f"── task or notice ──\n{message['content'].strip()}"]
    if message["role"] == "tool":
        return [_indent(message["content"])]
    calls = message.get("tool_calls", [])
    if not calls:
        return [f"── policy, no tool call ──\n{_shorten(message['content'].strip())}"]
    return [_show_call(c["function"]["name"], c["function"]["arguments"]) for c in calls]


def _show_call(name: str, arguments: str) -> str:
    try:
        values = dict(json.loads(arguments))
    except (ValueError, TypeError, RecursionError):  # as a policy's message had it
        values = {"": arguments}
    command = values.get("cmd", values.get("command"))
    if len(values) == 1 and isinstance(command, str):
        return f"$ {_shorten(command)}"
    listed = ", ".join(f"{key}={value!r}" for key, value in values.items())
    if len(listed) <= _LINE:
        return f"▶ {name}({listed})"
    lines = (f"{key}: {_shorten(str(value))}" for key, value in values.items())
    return "\n".join([f"▶ {name}", *(textwrap.indent(line, "    ") for line in lines)])


def _shorten(text: str) -> str:
    """Cuts long words and long texts, such as encoded data sent through a shell."""
    text = _visible(text)  # before it is cut into lines, which some of these characters end
    text = _LONG_WORD.sub(lambda word: f"[{len(word[0]):,} characters]", text)
    lines = [line if len(line) <= _LINE else f"{line[:_LINE]} …" for line in text.splitlines()]
    if len(lines) > _LINES:
        lines[_LINES:] = [f"… {len(lines) - _LINES} more lines"]
    return "\n".join(lines)


def _visible(text: str) -> str:
    return _CONTROL.sub(lambda control: f"\\x{ord(control[0]):02x}", text)


def _indent(text: str) -> str:
    return textwrap.indent(_shorten(text), "  ") or "  (no output)"
