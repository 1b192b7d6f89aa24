"""The toolset `nano`, its warnings and its metrics, compared with nano-agent 5.0.0.

nano-agent's loop runs on its local backend; a script replaces the model. Both projects count the
same tokens, because a counter with this package's tokenizer replaces litellm's counter.
"""

import functools
import importlib.metadata
import importlib.util
import json
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from model_server import Answer, Body, ChatServer, message
from sandbox_fixtures import commit

from coding_gym.agents.chat import ChatAgent
from coding_gym.agents.harness import HarnessPlayer, get_harness
from coding_gym.agents.model_client import OpenAIClient
from coding_gym.calls import ToolCall, ToolResult
from coding_gym.envs import CodingRepairEnv
from coding_gym.evaluation import evaluate
from coding_gym.evaluation.metrics import MONITORED_COMMANDS, tool_usage
from coding_gym.patch import Patch
from coding_gym.rewards import patch_similarity
from coding_gym.text.tokenizers import get_tokenizer
from coding_gym.tools import get_toolset
from coding_gym.trajectory import Turn

pytestmark = pytest.mark.trainer

nano_agent = pytest.importorskip("nano.agent", reason="needs the extra `peers`")
nano_tools = pytest.importorskip("nano.tools")

FILES = {
    "area.py": "def area(width, height):\n    return width + height\n",
    "notes.txt": "one\ntwo\ntwo\nthree\n\n  indented\n\ttabbed\nlast line without an end",
    "src/größe.py": "breite = 'für'  # 日本語 🙂\n",
    "src/long.txt": "".join(f"{i:04d} {'abc' * (i % 7)}\n" for i in range(400)),
}
COMMANDS = [
    *("true", "", "false", "exit 42", "echo said; exit 255", "cat notes.txt", "cat no-such-file"),
    *("echo out; echo err 1>&2", "no-such-command", "if then", "echo 日本語 🙂", "seq 1 3000"),
    *(f"head -c {n} /dev/zero | tr '\\0' x" for n in (1999, 2000, 2001, 3_000_000)),
    *("printf '\\n\\nlines\\n\\n'", "printf 'no end'", "python3 -c 'raise SystemExit(5)'"),
]
PATCHES = [
    ("no such text", "", "area.py"),
    ("two", "zwei", "notes.txt"),
    ("two\ntwo", "two", "notes.txt"),
    ("width + height", "width * height", "./area.py"),
    ("für", "gegen", "src/größe.py"),
    ("a", "b", "no/such/folder.py"),
    ("abc", "abd", "src/long.txt"),
    ("def", "x" * 20_000, "area.py"),
]


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return written(tool, json.dumps(arguments))


def written(tool: str, arguments: str) -> dict[str, Any]:
    function = {"name": tool, "arguments": arguments}
    return {"id": "call_0", "type": "function", "function": function}


def patch(search: Any, replace: Any, file: Any) -> dict[str, Any]:
    return call("apply_patch", search=search, replace=replace, file=file)


CALLS = [
    *(call("shell", cmd=command) for command in COMMANDS),
    *(patch(*arguments) for arguments in PATCHES),
    *(written("shell", text) for text in ('{"cmd": "ls', "ls", "{}", '{"cmd": 01}', "nul")),
    *(written("sing", text) for text in ("{}", "{")),
    *(written("apply_patch", text) for text in ("{}", '{"search": "a", "replace": "b"}')),
    call("shell", cmd="sha256sum area.py notes.txt src/*; git status --short"),
]
DIFFERENCES = [  # a call, part of nano-agent's reply, part of this package's reply
    (call("shell", cmd="cd src; ls"), "cd: restricted", "größe.py"),  # `bash -r` is no sandbox
    (call("shell", cmd="echo x > new.txt; cat new.txt"), "restricted: cannot redirect", "x"),
    (patch("", "x", "area.py"), "ambiguous", "invalid `apply_patch`"),  # finds nothing
    (patch("r", "s", "../../etc/passwd"), "not found", "Path must be inside"),
    (call("shell", cmd="printf 'a\\r\\nb'"), "a\nb", "a\r\nb"),  # printed text is not edited
    (written("shell", "[]"), "missing required 'cmd'", "must be an object"),
    (call("shell", cmd="kill -9 $$"), "exit code -9", "exit code 137"),  # as a shell reports it
]


def assistant_message(calls: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns an assistant message with tool calls."""
    return {"role": "assistant", "content": "", "tool_calls": calls}


def reply_text(calls: Sequence[dict[str, Any]]) -> str:
    """Returns an assistant message with tool calls as the text of a reply."""
    return json.dumps(assistant_message(calls))


def num_tokens(messages: Sequence[dict[str, Any]]) -> int:
    return sum(len(get_tokenizer().encode(message["content"])) for message in messages)


def play_nano(
    replies: Sequence[Sequence[dict[str, Any]]],
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    files: dict[str, str],
    problem: str = "Play.",
    **limits: int,
) -> list[dict[str, Any]]:
    """Returns the chat of nano-agent's loop for the calls of each reply."""
    commit(root, {name: text.encode() for name, text in files.items()})
    remaining = iter(replies)

    def completion(**_: Any) -> dict[str, Any]:
        calls = next(remaining, ())
        message = {"role": "assistant", "content": reply_text(calls)}  # as long as in `play_ours`
        message |= {"tool_calls": calls} if calls else {}
        return {"choices": [{"message": SimpleNamespace(model_dump=lambda: message)}]}

    def token_counter(_: str, *, messages: list[dict[str, Any]], **__: Any) -> int:
        return num_tokens(messages)

    functions = SimpleNamespace(completion=completion, token_counter=token_counter)
    monkeypatch.setattr("nano.agent._litellm", functions)
    monkeypatch.setattr(nano_agent, "SYSTEM_PROMPT", get_toolset("nano").system_prompt)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setattr(nano_agent, "shell", functools.partial(nano_agent.shell, timeout=120))
    agent = nano_agent.Agent(log=False, **limits)
    agent.run(problem, root)
    return list(agent.messages)


def play_ours(
    replies: Sequence[Sequence[dict[str, Any]]], row: dict[str, Any], limits: dict[str, Any]
) -> tuple[list[dict[str, Any]], str]:
    """Returns the chat of an episode for the calls of each reply, and the stop reason."""
    env = CodingRepairEnv(tasks=[row], max_turns=500, limits=limits)
    _, info = env.reset()
    messages = list(info["messages"])
    for calls in replies:
        *_, terminated, truncated, info = env.step(reply_text(calls))
        messages += info["messages"]
        if terminated or truncated:
            break
    env.close()
    return messages, info["stop_reason"]


def contents(messages: Sequence[dict[str, Any]]) -> list[str]:
    return [message["content"] for message in messages if message["role"] == "tool"]


def test_calls_get_the_replies_of_nano_agent(
    tiny_row: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = [[call] for call in [*CALLS, *(call for call, *_ in DIFFERENCES)]]
    limits = {"token_limit": 10**9, "tool_limit": 10**3}
    theirs = contents(play_nano(calls, tmp_path / "tree", monkeypatch, files=FILES, **limits))
    ours = contents(play_ours(calls, tiny_row | {"files": FILES}, {})[0])
    num_same = len(CALLS)
    assert ours[:num_same] == theirs[:num_same]
    assert len(set(theirs[:num_same])) >= 25
    pairs = zip(DIFFERENCES, theirs[num_same:], ours[num_same:], strict=True)
    for (call, in_theirs, in_ours), their, our in pairs:
        assert in_theirs in their, call
        assert in_ours in our, call
        assert their != our, call


def test_a_limit_of_calls_warns_and_ends_as_in_nano_agent(
    tiny_row: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long, unknown = call("shell", cmd="seq 1 200"), call("sing", song="la")
    replies = [[long], [unknown], *[[long], [written("shell", "{")]] * 12]
    limits = {"max_tool_calls": 6, "warn_tool_calls": True}
    ours, reason = play_ours(replies, tiny_row, limits)
    theirs = play_nano(
        replies,
        tmp_path,
        monkeypatch,
        files=tiny_row["files"],
        problem=tiny_row["problem_statement"],
        token_limit=10**9,
        tool_limit=6,
    )
    assert reason == "max_tool_calls"
    assert contents(ours) == contents(theirs)[: len(contents(ours))]
    assert len(contents(ours)) >= 6


def similarity() -> Callable[[str, str], float]:
    """Returns nano-agent's function that scores a patch."""
    assert importlib.metadata.version("nano-agent") == "5.0.0"
    files = importlib.metadata.files("nano-agent") or []
    (path,) = (f.locate() for f in files if str(f) == "tests/utils.py")
    spec = importlib.util.spec_from_file_location("nanos_tests_utils", str(path))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return cast("Callable[[str, str], float]", module.unified_diff_similarity)


def test_patch_similarity_equals_nano_agents_score() -> None:
    theirs = similarity()
    lines = [*FILES["src/long.txt"].splitlines(keepends=True), "für 日本語\n", "\tx = {}\n"]
    for seed in range(60):
        rng = random.Random(seed)
        paths = rng.sample(sorted(FILES), rng.randint(1, 3))
        base = {path: "".join(rng.choices(lines, k=30)) for path in paths}
        edits = ({path: "".join(rng.sample(lines, 20)) for path in paths[n:]} for n in (0, 1))
        gold, other = (Patch.between(base, base | edit).text for edit in edits)
        score = theirs(gold, other)
        assert patch_similarity(gold, other) == pytest.approx(score, rel=0, abs=1e-12), seed


GOLD = ("return width + height", "return width * height", "shapes.py")
REPLIES = {  # the calls of each episode; a reply without a call ends it
    "gold": [patch(*GOLD)],
    "gold by the shell": [call("shell", cmd="sed -i s/+/*/ shapes.py && git diff")],
    "more than gold": [patch(*GOLD), patch("def area", "# The area.\ndef area", "shapes.py")],
    "another place": [call("shell", cmd="ls"), patch("square", "box", "test_shapes.py")],
    "refused calls": [patch("no", "", "shapes.py"), written("sing", "{"), patch("+", "-", GOLD[2])],
}


@pytest.mark.parametrize("name", REPLIES)
def test_harness_and_nano_agents_loop_score_equally(
    name: str, tiny_row: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies, is_gold = REPLIES[name], name in ("gold", "gold by the shell")

    def serve() -> ChatServer:
        def answer(_: Body) -> Answer:
            data, number = message("Done."), len(server.requests)
            if number <= len(replies):
                reply = assistant_message([{**replies[number - 1], "id": f"call_{number}"}])
                data["choices"][0] |= {"message": reply, "finish_reason": "tool_calls"}
            return Answer(data)

        server = ChatServer(answer)
        return server

    with serve() as server:
        player = HarnessPlayer(
            get_harness("nano-agent"), ChatAgent(OpenAIClient(server.base_url), "m")
        )
        (record,) = evaluate(tmp_path / "run", player, tasks=[tiny_row]).trajectories()
    tree = tmp_path / "tree"
    commit(tree, tiny_row["files"])
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    with serve() as server:
        agent = nano_agent.Agent(model="openai/m", api_base=server.base_url, log=False)
        diff = agent.run(tiny_row["problem_statement"], tree)
    assert (record.error, record.stop_reason) == ("", "submitted")
    assert contents(record.messages) == contents(agent.messages)
    # Only this package's patches have full object ids, which the score would count as text.
    ours, theirs = (re.sub(r"(?m)^index .*\n", "", text) for text in (record.patch, diff))
    score, gold = similarity(), tiny_row["patch"]
    assert score(gold, ours) == score(gold, theirs)
    assert (score(gold, theirs) == 1.0) == is_gold


def test_tool_usage_counts_as_nano_agent() -> None:
    rng = random.Random(0)
    words = [*MONITORED_COMMANDS, "/bin/ls", "python3.11", "x/cat", "foo", "", "ls;", "2"]
    for _ in range(100):
        stats, turns = nano_tools.ToolStats(), []
        for _ in range(rng.randrange(6)):
            call, ok = ToolCall("apply_patch", {"file": "x"}), rng.random() < 0.5
            if rng.random() < 0.6:
                call = ToolCall("shell", {"cmd": " ".join(rng.choices(words, k=rng.randrange(14)))})
                stats.record_shell(call.arguments["cmd"], success=ok)
            else:
                stats.record_patch(success=ok)
            turns.append(Turn(action="", calls=(call,), results=(ToolResult("", ok=ok),)))
        assert tool_usage(turns, ["shell", "apply_patch"]) == stats.report()
