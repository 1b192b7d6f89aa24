"""Replies to tool calls, against nano-agent 5.0.0 playing the same calls on the same files.

nano-agent's own loop runs on its local backend, with a script in place of the model; the toolset
`nano` runs in a sandbox. Whatever the calls change stays for the calls after them, on both sides.
What is not the same is in `MENDED`, with the reason.
"""

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from nano_calls import CALLS, FILES, Call, patch, shell
from nano_model import commit_files, completion_of, replace_model

from coding_gym.envs import CodingRepairEnv

pytestmark = pytest.mark.trainer

nano_agent = pytest.importorskip("nano.agent", reason="needs the extra `peers`")

HUGE = 10**9

Replies = list[str]


def replies_of_nano(
    calls: Sequence[Call], root: Path, monkeypatch: pytest.MonkeyPatch, timeout_s: int = 120
) -> Replies:
    """Plays calls through nano-agent's own loop, one in each reply of its model."""
    commit_files(root, FILES)
    left = iter(calls)

    def completion(**_: Any) -> dict[str, Any]:
        call = next(left, None)
        message: dict[str, Any] = {"role": "assistant", "content": ""}
        if call is not None:
            message["tool_calls"] = [call.to_json()]
        return completion_of(message)

    replace_model(monkeypatch, completion=completion, token_counter=lambda *_, **__: 0)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    limited = functools.partial(nano_agent.shell, timeout=timeout_s)
    monkeypatch.setattr(nano_agent, "shell", limited)
    agent = nano_agent.Agent(token_limit=HUGE, tool_limit=len(calls) + 9, log=False)
    agent.run("Play.", root)
    return [m["content"] for m in agent.messages if m["role"] == "tool"]


def our_replies(calls: Sequence[Call], row: dict[str, Any], timeout_s: int = 120) -> Replies:
    """Plays the same calls through an episode, one in each of its turns."""
    row = row | {"files": FILES}
    env = CodingRepairEnv(
        [row], tool_format="openai", max_turns=len(calls) + 1, command_timeout_s=timeout_s
    )
    try:
        env.reset()
        return [_reply(env, call) for call in calls]
    finally:
        env.close()


def _reply(env: CodingRepairEnv, call: Call) -> str:
    message = {"role": "assistant", "content": "", "tool_calls": [call.to_json()]}
    *_, info = env.step(json.dumps(message))
    return str(info["messages"][-1]["content"])


@dataclass(frozen=True)
class Mended:
    """A call with what is in their reply, what is in ours, and why these differ."""

    call: Call
    theirs: str
    ours: str
    why: str


_NO_SANDBOX = "`bash -r` is no sandbox, and hinders honest work; ours is another"
_EMPTY = "an empty search finds nothing"
_OUTSIDE = "a path outside the workspace is told apart from one that is not there"
_PREFIX = "a folder whose name begins as the workspace's is not inside it"
_BYTES = "files are edited as bytes: line ends and other encodings survive"
_SHOWN = "what a command prints is shown as it is"
_HOST = "replies say nothing of the host"
_TYPES = "what is no text is no argument"
_OBJECT = "arguments are an object"
_SIGNAL = "exit codes are a shell's, never negative"

MENDED = [
    Mended(shell("cd src; ls"), "cd: restricted", "größe.py", _NO_SANDBOX),
    Mended(shell("echo x > new.txt; cat new.txt"), "restricted: cannot redirect", "x", _NO_SANDBOX),
    Mended(shell("/bin/echo path"), "restricted: cannot specify", "path", _NO_SANDBOX),
    Mended(
        patch("", "x", "area.py"), "search ambiguous: ", "invalid `apply_patch`", "empty search"
    ),
    Mended(patch("", "x", "empty.txt"), "patch applied", "invalid `apply_patch`", _EMPTY),
    Mended(patch("r", "s", "../../etc/passwd"), "not found", "Path must be inside", _OUTSIDE),
    Mended(patch("r", "s", "/etc/passwd"), "not found", "Path must be inside", _OUTSIDE),
    Mended(patch("secret", "s", "../tree-next/a.txt"), "applied", "not found", _PREFIX),
    Mended(patch("a\nb", "c", "crlf.txt"), "applied", "applied", _BYTES),
    Mended(shell("od -c crlf.txt"), "c  \\n   z  \\n", "c  \\r  \\n   z  \\r  \\n", _BYTES),
    Mended(patch("price", "cost", "latin.txt"), "'utf-8' codec can't decode", "applied", _BYTES),
    Mended(shell("printf 'a\\r\\nb'"), "a\nb", "a\r\nb", _SHOWN),
    Mended(shell("printf '\\377 end'"), "end", "\ufffd end", _SHOWN),
    Mended(patch("a", "b", "src"), "Is a directory: '/", "failed: Is a directory", _HOST),
    Mended(patch("a", "b", "x" * 300), "File name too long: '/", "not found", _HOST),
    Mended(patch(3, "b", "area.py"), "must be str, not int", "invalid `apply_patch`", _TYPES),
    Mended(patch("def", None, "area.py"), "patch operation failed", "invalid `apply_", _TYPES),
    Mended(patch("a", "b", None), "patch operation failed", "invalid `apply_patch`", _TYPES),
    Mended(Call("shell", "[]"), "missing required 'cmd'", "expected an object, got a", _OBJECT),
    Mended(Call("apply_patch", "[]"), "invalid `apply_patch`", "expected an object", _OBJECT),
    Mended(shell("kill -9 $$"), "exit code -9", "exit code 137", _SIGNAL),
]
TIMEOUTS = [
    shell("sleep 30"),
    shell("while true; do :; done"),
    shell("echo before; sleep 1.5; echo after"),
    shell("yes"),
]
TIMEOUT_S = 1


@pytest.fixture
def odd_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """More files on both sides, and one beside nano-agent's folder."""
    more = {"crlf.txt": "a\r\nb\r\nz\r\n", "latin.txt": "price: 3 \udca3\n"}
    for name, text in more.items():
        monkeypatch.setitem(FILES, name, text)
    (tmp_path / "tree-next").mkdir()
    (tmp_path / "tree-next" / "a.txt").write_text("a secret\n", encoding="utf-8")


def test_the_same_calls_get_the_same_replies(
    tiny_row: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(CALLS) >= 250
    theirs = replies_of_nano(CALLS, tmp_path / "tree", monkeypatch)
    ours = our_replies(CALLS, tiny_row)
    pairs = zip(CALLS, theirs, ours, strict=True)
    assert [pair for pair in pairs if pair[1] != pair[2]] == []
    assert len(set(theirs)) >= 100
    assert sum(reply == "patch applied successfully" for reply in theirs) >= 20
    assert sum("ambiguous" in reply for reply in theirs) >= 20
    assert sum("search string not found" in reply for reply in theirs) >= 20
    assert sum(reply.endswith("... output truncated") for reply in theirs) >= 8


def test_a_command_that_takes_too_long_is_answered_alike(
    tiny_row: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = replies_of_nano(TIMEOUTS, tmp_path / "tree", monkeypatch, TIMEOUT_S)
    assert our_replies(TIMEOUTS, tiny_row, TIMEOUT_S) == theirs
    said = "command failed with exit code 124. Error output:\nCommand timed out after 1s"
    assert set(theirs) == {said}


@pytest.mark.usefixtures("odd_files")
def test_what_is_mended_is_all_that_differs(
    tiny_row: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = [one.call for one in MENDED]
    theirs = replies_of_nano(calls, tmp_path / "tree", monkeypatch)
    ours = our_replies(calls, tiny_row)
    for one, their, our in zip(MENDED, theirs, ours, strict=True):
        assert one.theirs in their, one
        assert one.ours in our, one
        assert their != our or one.why is _BYTES, one
