"""What is mended keeps every string as it was written, and half a call is none."""

from unittest import mock

import json_repair
import pytest

from coding_gym.tools.formats import json_text, parse_action
from coding_gym.tools.schemas import array, function, integer

SCHEMAS = (
    function("edit", "", path="", text="", line=integer(""), lines=array("", "integer")),
    function("run", "", cmd=""),
)
RUN = '{"name": "run", "arguments": {"cmd": "ls\\n"}}'


MARKS = "\"'“”{}[]()#/`"  # characters that json_repair spends time on


def read(text: str, tool_format: str = "auto") -> list[tuple[str, dict[str, object]]]:
    calls = parse_action(text, tool_format, SCHEMAS).calls
    return [(call.name, dict(call.arguments)) for call in calls if not call.error]


def test_brackets_are_closed_without_a_change_to_any_string() -> None:
    for text in [
        f"{RUN}}}",
        f"{RUN}}}]",
        f"[{RUN[:-1]}]",
        f"```json\n{RUN[:-2]}\n```",
        RUN.replace("\\n", "\n"),
        f"<tool_call>{RUN[:-1]}</tool_call>",
        f"<tool_call>[{RUN}</tool_call>",
    ]:
        is_clear = text != f"[{RUN[:-1]}]"  # there any of two brackets may be missing
        assert read(text) == [("run", {"cmd": "ls\n"})] * is_clear, text


def test_quotes_and_commas_are_mended() -> None:
    for text, command in [
        ("{'name': 'run', 'arguments': {'cmd': 'ls \"a\"'}}", 'ls "a"'),
        ('{name: "run", arguments: {cmd: "ls"}}', "ls"),
        ('{"name": "run", "arguments": {"cmd": "ls",},}', "ls"),
        ('{"name": "run", "arguments": {"cmd": "echo "hi" > f"}}', 'echo "hi" > f'),
        ('{"name": "run" "arguments": {"cmd": "ls"}}', "ls"),
    ]:
        assert read(text) == [("run", {"cmd": command})], (text, command)


def test_what_would_lose_or_invent_something_is_not_mended() -> None:
    for text in [
        f"{RUN[:-2]},}}}}",  # json_repair would strip the line end of the command
        f"{RUN}\n{RUN} done",  # and keep one of these two
        '{"name": "run", "arguments": {"cmd":',
        '{"name": "run", "arguments": {"cmd"',
        '{"name": "run", "arguments": {"cmd": "ls -',
        '{"name": "run", "arguments": {"cmd": "ls [a]',
        '{"name": "run", "arguments": {"cmd": "ls", "n": 1',
        '{"name": "run", "arguments": {"cmd": "ls", "sure": tr',
        '{"name": "run", "arguments": {"cmd": "ls", "xs": [{"a": 1}',
    ]:
        assert read(text) == [], text
        assert parse_action(text, "auto", SCHEMAS).error, text


@pytest.fixture
def repairing(monkeypatch: pytest.MonkeyPatch) -> mock.Mock:
    """Knows the texts that json_repair is given."""
    loads = mock.Mock(wraps=json_repair.loads)
    monkeypatch.setattr(json_repair, "loads", loads)
    return loads


def test_what_json_repair_is_given_for_one_reply_is_bounded(repairing: mock.Mock) -> None:
    for size in [400, json_text.MAX_REPAIRED_CHARS - 100]:
        for unit in ["{", '{"', '"{', "[{", "(", '"a', "'", "a ", '\\"', '"\\', "//"]:
            for head in ("{", '{"name": "run", "arguments": {"cmd": ', "<tool_call>{name: "):
                repairing.reset_mock()
                parse_action(f"{head}{unit * (size // len(unit))} }}", "auto", SCHEMAS)
                texts = [call.args[0] for call in repairing.call_args_list]
                work = (len(t) * sum(map(t.count, MARKS)) for t in texts)
                assert sum(work) <= json_text.MAX_REPAIR_WORK
