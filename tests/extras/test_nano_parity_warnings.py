"""Warnings and ends of episodes, against nano-agent 5.0.0 playing the same replies.

nano-agent's own loop runs on its local backend, with a script in place of the model. Both sides
count tokens alike: litellm's counter is replaced by one that counts the contents of nano-agent's
messages with our tokenizer, and its system prompt by ours, which has another length. A reply is
the same text on both sides. So the transcripts must be equal, message by message, and so must be
the length that is granted to each reply. Six episodes show every warning and every end.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from nano_calls import Call, patch, shell
from nano_model import commit_files, completion_of, replace_model

from coding_gym.episode import transcript
from coding_gym.episode.usage import budget_warning
from coding_gym.text.tokenizers import get_tokenizer
from coding_gym.tools import get_toolset
from coding_gym.wrappers import TokenBudget, ToolCallBudget

pytestmark = pytest.mark.trainer

nano_agent = pytest.importorskip("nano.agent", reason="needs the extra `peers`")

Chat = list[tuple[str, str]]
SIGNS = {
    "Token limit critical! Apply your best fix now.": "C",
    "Tokens low. Focus on the main issue only.": "L",
    "4 tools left. Prioritize essential changes.": "4",
    "3 tools left. Prioritize essential changes.": "3",
    "2 tools left. Prioritize essential changes.": "2",
    "Last tool call! Make it count.": "1",
}


def reply(*calls: Call) -> str:
    """An assistant message with tool calls."""
    numbered = [call.to_json() | {"id": f"call_{i}"} for i, call in enumerate(calls)]
    return json.dumps({"role": "assistant", "content": "", "tool_calls": numbered})


CAT, QUIET, FAILS = shell("cat shapes.py"), shell("true"), shell("cat nothing.py")
LONG = shell("seq 1 200")  # 475 tokens
UNKNOWN, MALFORMED = Call("sing", '{"song": "la"}'), Call("shell", '{"cmd": "ls')
KEYLESS = Call("shell", "{}")
FIX = patch("width + height", "width * height", "shapes.py")
LOST = patch("no such text", "", "shapes.py")


@dataclass(frozen=True)
class Script:
    """What a policy says, within which limits, and what is to come of it."""

    replies: Sequence[str]  # more than are asked for
    tokens: int  # left once the prompt is counted
    max_tool_calls: int
    stop_reason: str  # of our episode
    nano_goes_on: tuple[str, ...]  # roles of what nano-agent adds after our episode has ended
    signs: str  # the warning of each reply of a tool in our episode, "." for none


SCRIPTS = {
    # nano-agent asks once more when no call is left.
    "calls one by one": Script(
        [reply(c) for c in (CAT, UNKNOWN, MALFORMED, LOST, FIX, FAILS, QUIET, QUIET)],
        *(100_000, 6, "max_tool_calls", ("assistant", "tool"), "..4321"),
    ),
    # nano-agent looks at its limits between replies only, and here finds them overdrawn.
    "three calls per reply": Script(
        [reply(CAT, MALFORMED, QUIET), reply(UNKNOWN, FIX, KEYLESS), reply(CAT, FAILS, QUIET)],
        *(100_000, 8, "max_tool_calls", ("tool",), "....4321"),
    ),
    "nudges, then a change and no call": Script(
        ["Let me think.", reply(CAT), "Hm.", reply(QUIET, LOST), reply(FIX), "Done.", "More?"],
        *(100_000, 7, "no_tool_call", (), ".432"),
    ),
    "tokens run out call by call": Script(
        [reply(c) for c in (LONG, UNKNOWN, *[LONG, MALFORMED] * 12)],
        *(5650, 30, "max_tokens", (), ".........LLLLCCCC"),
    ),
    "tokens run out in the middle of a reply, calls nearly": Script(
        [
            reply(CAT, QUIET),
            "Nothing yet.",
            reply(QUIET, LONG, LONG),
            reply(UNKNOWN, LONG, LONG, LONG, LONG, QUIET, QUIET),
        ],
        *(3650, 12, "max_tokens", ("tool", "tool"), "....LLLLCC"),
    ),
    "talk spends the tokens": Script(
        [reply(CAT), *["One more thought. " * 100] * 2, reply(QUIET), *["Another. " * 200] * 9],
        *(3150, 12, "max_tokens", (), ".L"),
    ),
}


def num_tokens(messages: Sequence[dict[str, Any]]) -> int:
    return sum(len(get_tokenizer().encode(m["content"])) for m in messages)


def max_tokens(script: Script, row: dict[str, Any]) -> int:
    prompt = transcript.opening(get_toolset("nano").system_prompt, row["problem_statement"])
    return script.tokens + num_tokens(prompt)


def play_nano(
    script: Script, row: dict[str, Any], root: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[dict[str, Any]], list[int]]:
    """Returns the chat of nano-agent's own loop, and the lengths that it asked for."""
    granted: list[int] = []
    commit_files(root, row["files"])
    script_left = iter(script.replies)

    def completion(*, max_tokens: int, **_: Any) -> dict[str, Any]:
        granted.append(max_tokens)
        text = next(script_left)
        message = {"role": "assistant", "content": text}
        if text.startswith("{"):
            message["tool_calls"] = json.loads(text)["tool_calls"]
        return completion_of(message)

    def token_counter(_: str, *, messages: list[dict[str, Any]], **__: Any) -> int:
        return num_tokens(messages)

    replace_model(monkeypatch, completion=completion, token_counter=token_counter)
    monkeypatch.setattr(nano_agent, "SYSTEM_PROMPT", get_toolset("nano").system_prompt)
    agent = nano_agent.Agent(
        token_limit=max_tokens(script, row), tool_limit=script.max_tool_calls, log=False
    )
    agent.run(row["problem_statement"], root)
    messages: list[dict[str, Any]] = agent.messages
    return messages, granted


def play_ours(script: Script, row: dict[str, Any]) -> tuple[list[dict[str, Any]], list[int], str]:
    """Returns the chat of our episode, the lengths that replies may have, and why it ended."""
    env: gym.Env[Any, Any] = gym.make("coding_gym:CodingRepair-v0", tasks=[row], max_turns=100)
    env = TokenBudget(env, max_tokens(script, row), count="content", response_limit=4096)
    env = ToolCallBudget(env, script.max_tool_calls)
    _, info = env.reset()
    messages, granted = info["messages"], []
    for action in script.replies:
        granted.append(info["budget"]["response_tokens"])
        _, _, terminated, truncated, info = env.step(action)
        messages += info["messages"]
        if terminated or truncated:
            break
    env.close()
    return messages, granted, info["stop_reason"]


def chat(messages: Sequence[dict[str, Any]]) -> Chat:
    """Returns roles and contents; the policy's own replies are the script's, in another form."""
    return [(m["role"], "" if m["role"] == "assistant" else m["content"]) for m in messages]


def signs(messages: Sequence[dict[str, Any]]) -> str:
    firsts = [m["content"].partition("\n")[0] for m in messages if m["role"] == "tool"]
    return "".join(SIGNS.get(first, ".") for first in firsts)


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_same_replies_get_the_same_answers_and_warnings(
    name: str, tiny_row: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = SCRIPTS[name]
    ours, granted, stop_reason = play_ours(script, tiny_row)
    theirs, asked = play_nano(script, tiny_row, tmp_path, monkeypatch)
    assert chat(ours) == chat(theirs[: len(ours)])
    assert granted == asked[: len(granted)]
    assert stop_reason == script.stop_reason
    assert tuple(m["role"] for m in theirs[len(ours) :]) == script.nano_goes_on
    assert signs(ours) == script.signs
    if script.stop_reason == "max_tokens":
        left = max_tokens(script, tiny_row) - num_tokens(theirs[: len(ours)])
        assert left <= nano_agent.Agent.MINIMUM_TOKENS


def test_every_budget_is_announced_as_nano_does(monkeypatch: pytest.MonkeyPatch) -> None:
    said, expected = {}, {}
    for calls_left in (1, 2, 3, 4, 5, 6, 30):
        agent = nano_agent.Agent(token_limit=0, tool_limit=calls_left, log=False)
        agent.messages, agent.tool_usage = [], 0
        for tokens_left in (-1, 0, 600, 1499, 1500, 1501, 2999, 3000, 3001, 8192):
            replace_model(monkeypatch, token_counter=lambda *_, left=tokens_left, **__: -left)
            agent._tool_reply({"id": "call_0"}, "output")
            case = (calls_left, tokens_left)
            said[case] = agent.messages[-1]["content"]
            expected[case] = budget_warning(tokens_left, calls_left) + "output"
    assert said == expected
