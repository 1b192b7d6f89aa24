"""`tool_usage` against nano-agent 5.0.0's own statistics."""

import random

import pytest

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.evaluation.metrics import MONITORED_COMMANDS, tool_usage
from coding_gym.trajectory import Turn

tools = pytest.importorskip("nano.tools", reason="needs the extra `peers`")

WORDS = [
    *MONITORED_COMMANDS,
    "/bin/ls",
    "python3.11",
    "x/cat",
    "foo",
    "",
    "ls;",
    "sed\n-n",
    "/",
    "2",
]


def test_counts_are_those_of_nano_agent() -> None:
    rng = random.Random(0)
    for _ in range(300):
        stats, turns = tools.ToolStats(), []
        for _ in range(rng.randrange(6)):
            call, ok = ToolCall("apply_patch", {"file": "x"}), rng.random() < 0.5
            if rng.random() < 0.6:
                call = ToolCall("shell", {"cmd": " ".join(rng.choices(WORDS, k=rng.randrange(14)))})
                stats.record_shell(call.arguments["cmd"], success=ok)
            else:
                stats.record_patch(success=ok)
            turns.append(Turn(action="", calls=(call,), results=(ToolResult("", ok=ok),)))
        assert tool_usage(turns, ["shell", "apply_patch"]) == stats.report()
