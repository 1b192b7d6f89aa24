import json

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.episode import transcript
from coding_gym.tools.formats import ParsedAction, ReplyParser


def test_each_call_stands_once_in_the_assistants_message() -> None:
    arguments = '{"cmd":  "ls"}'  # with its own spaces
    call = {"id": "x-7", "type": "function", "function": {"name": "shell", "arguments": arguments}}
    reply = {
        "role": "assistant",
        "content": "I look.",
        "reasoning_content": "Hm.",
        "tool_calls": [call],
    }
    text = json.dumps(reply)
    assert transcript.assistant(text, ReplyParser().read(text)) == reply
    text = f"I look.\n<tool_call>{json.dumps(call['function'])}</tool_call>"
    message = transcript.assistant(text, ReplyParser().read(text))
    assert message["content"] == "I look."
    assert message["tool_calls"][0]["function"] == call["function"]
    silent = json.dumps({"role": "assistant", "content": "Done.", "tool_calls": None})
    for text, content in ((" Done.\n", " Done.\n"), (silent, "Done.")):
        assert transcript.assistant(text, ReplyParser().read(text)) == {
            "role": "assistant",
            "content": content,
        }


def test_seen_text_is_the_problem_and_the_results() -> None:
    messages = [
        *transcript.opening("system", "the issue"),
        transcript.assistant("mine", ParsedAction(text="mine")),
        transcript.user("a notice"),
    ]
    assert transcript.seen_text(messages) == "the issue\na notice"


def test_rendering_shows_control_characters_instead_of_sending_them() -> None:
    shown = transcript.render([transcript.answer(ToolResult("\x1b[31mred\x07\ta\n"))])
    assert shown == "  \\x1b[31mred\\x07\ta\n"
    call = ToolCall("\x1b[2J", {"\x1b[2J": 1}, "call_0")
    messages = [transcript.user("\x1b[2J"), transcript.assistant("", ParsedAction((call,)))]
    assert "\x1b" not in transcript.render(messages, "\x1b[2J")
