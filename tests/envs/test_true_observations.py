"""What a program prints is what the policy sees."""

import json

import pytest
from episodes import MakeEnv, call, replies

LINES = (
    "===== 3 passed in 0.12s =====",
    "3 passed in 0.12s",
    "Ran 12 tests in 3.141s",
    "    Finished test [unoptimized] target(s) in 1m 02s",
    "test result: ok. 3 passed; 0 failed; finished in 0.01s",
    "Time: 42",
    "  duration_ms: 250",
    "  ✔ reads (1.5ms)",
    "--- FAIL: TestSum (0.31s)",
    "ok  \texample.org/sum\t0.004s",
)


@pytest.mark.parametrize(
    ("toolset", "tool", "argument"),
    [
        ("nano", "shell", "cmd"),
        ("bash", "bash", "command"),
        ("editor", "bash", "command"),
        ("codex", "run_command", "command"),
    ],
)
def test_every_line_of_a_file_is_displayed_as_it_is(
    make_env: MakeEnv, toolset: str, tool: str, argument: str
) -> None:
    env = make_env(toolset=toolset)
    row = env.config.tasks[0].to_row() | {"files": {"log": "\n".join(LINES)}}
    env.reset(options={"task": row})
    reply = replies(env.step(call(tool, **{argument: "cat log"}))[4])[0]
    if toolset == "codex":
        reply = json.loads(reply)["output"]
    assert "\n".join(LINES) in reply
