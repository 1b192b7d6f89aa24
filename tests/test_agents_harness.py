"""Episodes of harnesses in the sandbox; a server with scripted replies replaces the model."""

import json
import shlex
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from episodes import run_command
from model_server import Answer, Body, ChatServer, message
from sandbox_fixtures import BACKEND

from coding_gym.adapters.samples import segments
from coding_gym.agents.capture import CaptureEndpoint
from coding_gym.agents.chat import ChatAgent, Sampling
from coding_gym.agents.harness import Harness, HarnessPlayer, get_harness, harness_names, with_layer
from coding_gym.agents.model_client import OpenAIClient
from coding_gym.agents.model_reply import Prices
from coding_gym.episode import EpisodeConfig
from coding_gym.errors import CodingGymError, InvalidArgumentError
from coding_gym.evaluation import evaluate
from coding_gym.evaluation.metrics import episode_metrics
from coding_gym.rollout import Runner
from coding_gym.sandbox import SandboxSpec
from coding_gym.trajectory import Trajectory, Turn
from coding_gym.viewer.turns import with_thoughts
from coding_gym.workspace.cache import clear_cache

FIX = "sed -i 's/width + height/width * height/' shapes.py"
ENV = {"OPENAI_BASE_URL": "{base_url}", "OPENAI_API_KEY": "{api_key}"}
LIBRARY = """
import json, os, socket, subprocess, sys, urllib.error, urllib.request

KEY = os.environ["OPENAI_API_KEY"]
CHAT = [{"role": "user", "content": sys.argv[1]}]
TOOL = {"name": "shell", "parameters": {"properties": {"cmd": {"type": "string"}}}}

def ask(path, body, key=KEY):
    headers = {"Authorization": "Bearer " + key, "Content-Type": "application/json"}
    url = os.environ["OPENAI_BASE_URL"] + path
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()

def chat(messages, **fields):
    status, text = ask("/chat/completions", {"model": "any", "messages": messages, **fields})
    return json.loads(text)["choices"][0]["message"] if status == 200 else status

def shell(arguments):
    done = subprocess.run(json.loads(arguments)["cmd"], shell=True, capture_output=True, text=True)
    return done.stdout + done.stderr

def unread(content):
    leaving = socket.create_connection(("127.0.0.1", 8765))
    body = json.dumps({"messages": [{"role": "user", "content": content}]})
    lines = ["POST /v1/chat/completions HTTP/1.1", "Authorization: Bearer " + KEY]
    text = "\\r\\n".join([*lines, f"Content-Length: {len(body)}", "", body])
    leaving.sendall(text.encode())
    return leaving
"""
CHAT_LOOP = """
tools = [{"type": "function", "function": TOOL}]
while True:
    reply = chat(CHAT, tools=tools, temperature=0.1)
    CHAT.append(reply)
    for call in reply.get("tool_calls") or sys.exit():
        output = shell(call["function"]["arguments"])
        CHAT.append({"role": "tool", "tool_call_id": call["id"], "content": output})
"""
STREAM_LOOP = CHAT_LOOP.replace(
    "reply = chat(CHAT, tools=tools, temperature=0.1)",
    """
    _, text = ask("/chat/completions", {"messages": CHAT, "tools": tools, "stream": True})
    reply = json.loads(text.splitlines()[0].removeprefix("data: "))["choices"][0]["delta"]
    """.strip(),
)
RESPONSES_LOOP = """
tools = [{"type": "function", **TOOL}]
while True:
    status, text = ask("/responses", {"input": CHAT, "tools": tools, "stream": True})
    events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
    assert events[0]["type"] == "response.created" and events[-1]["type"] == "response.completed"
    CHAT += events[-1]["response"]["output"]
    calls = [item for item in CHAT[-2:] if item.get("type") == "function_call"]
    for call in calls or sys.exit():
        output = shell(call["arguments"])
        CHAT.append({"type": "function_call_output", "call_id": call["call_id"], "output": output})
"""

pytestmark = pytest.mark.slow


def harness(code: str, **fields: Any) -> Harness:
    files = {"agent.py": LIBRARY + code}
    command = "python3 ~/agent.py {problem}"
    return Harness(name="own", command=command, env=ENV, files=files, **fields)


def without_server() -> ChatAgent:
    return ChatAgent(OpenAIClient("http://127.0.0.1:1"), "tiny")


def scripted(*replies: Body) -> ChatServer:
    server = ChatServer(lambda _: Answer(replies[min(len(server.requests), len(replies)) - 1]))
    return server


def repairing() -> ChatServer:
    """Serves a repair in two replies; the second prompt continues the first."""
    return scripted(
        message(calls={"shell": {"cmd": FIX}}, ids=([1, 2], [3, 4])),
        message("Done.", ids=([1, 2, 3, 4, 5], [6, 7, 8])),
    )


def play(
    code: str,
    server: ChatServer,
    row: Any,
    out: Path,
    *,
    episode: Any = None,
    attempts: int = 1,
    prices: Prices | None = None,
    sampling: Sampling | None = None,
    on_start: Any = lambda *_: None,
    **options: Any,
) -> list[Trajectory]:
    with server:
        client = OpenAIClient(server.base_url, max_retries=0, prices=prices)
        player = HarnessPlayer(harness(code), ChatAgent(client, "tiny", sampling), **options)
        folder = evaluate(
            out,
            player,
            tasks=[row],
            episode=episode or {},
            attempts=attempts,
            on_start=on_start,
        )
    return [*folder.trajectories(), *folder.errors()]


@pytest.fixture
def sockets(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Returns a list of the sockets of all endpoints that the test makes."""
    paths: list[Path] = []
    start = CaptureEndpoint.__init__

    def record(endpoint: CaptureEndpoint, *arguments: Any) -> None:
        start(endpoint, *arguments)
        paths.append(endpoint.path)

    monkeypatch.setattr(CaptureEndpoint, "__init__", record)
    return paths


@pytest.mark.parametrize(
    "loop", [CHAT_LOOP, STREAM_LOOP, RESPONSES_LOOP], ids=["chat", "streamed chat", "responses"]
)
def test_ids_of_a_harness_become_one_sample(loop: str, tiny_row: Any, tmp_path: Path) -> None:
    server, sampling = repairing(), Sampling(temperature=0.7)
    (record,) = play(loop, server, tiny_row, tmp_path / "run", sampling=sampling)
    assert (record.error, record.resolved, record.stop_reason) == ("", True, "submitted")
    assert (record.agent, record.model, record.num_prefix_breaks) == ("own", "tiny", 0)
    assert segments(record) == [
        {
            "prompt_ids": [1, 2],
            "completion_ids": [3, 4, 5, 6, 7, 8],
            "env_mask": [1, 1, 0, 1, 1, 1],
            "logprobs": [-0.5, -0.5, 0.0, -0.5, -0.5, -0.5],
        }
    ]
    (result,) = record.turns[0].results
    assert (result.content, result.ok) == ("", None)  # the exit code is unknown
    shell = [name for name in episode_metrics(record) if name.endswith("_shell")]
    assert shell == ["tool_calls_shell"]
    roles = [message["role"] for message in record.messages]
    assert roles == ["user", "assistant", "tool", "assistant"]
    assert [request["temperature"] for request in server.requests] == [0.7, 0.7]
    assert record.tools[0]["function"]["name"] == "shell"
    assert server.requests[1]["return_token_ids"] is True


def test_output_of_a_harness_is_recorded_and_shown(tiny_row: Any, tmp_path: Path) -> None:
    code, server = "chat(CHAT)\nprint('x' * 9000, 'no idea')", scripted(message("Done."))
    (record,) = play(code, server, tiny_row, tmp_path / "run")
    assert (record.error, record.stop_reason) == ("", "submitted")
    assert record.turns[-1].action.endswith("x no idea")
    assert len(record.turns[-1].action) < 5000
    assert "x no idea" in run_command("show", tmp_path / "run", tiny_row["instance_id"], "0")


def test_progress_of_a_harness_counts_each_turn(tiny_row: Any, tmp_path: Path) -> None:
    turns: list[Turn] = []

    def count(runner: Runner, *_: Any) -> None:
        runner.on_turn = turns.append

    code, server = "chat(CHAT)\nchat(CHAT)", scripted(message("Done."))
    (record,) = play(code, server, tiny_row, tmp_path / "run", on_start=count)
    assert [turn.action for turn in turns] == [turn.action for turn in record.turns]


def test_temporary_folder_may_have_a_long_path(
    tiny_row: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path.joinpath(*["a-folder-of-a-cluster"] * 6)
    long.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    (record,) = play("chat(CHAT)", scripted(message("Done.")), tiny_row, tmp_path / "run")
    assert (record.error, record.stop_reason) == ("", "submitted")


def test_eval_plays_the_example_of_the_documentation(tiny_row: Any, tmp_path: Path) -> None:
    page = Path(__file__).parents[1].joinpath("docs/evaluation.md").read_text(encoding="utf-8")
    rows, file, out = tmp_path / "rows.jsonl", tmp_path / "own.toml", tmp_path / "run"
    rows.write_text(json.dumps(tiny_row), encoding="utf-8")
    file.write_text(page.partition("```toml\n")[2].partition("```\n")[0], encoding="utf-8")
    with scripted(message(FIX)) as server:
        options = ("--model", "tiny", "--base-url", server.base_url, "--tasks", rows, "--out", out)
        run_command("eval", "--harness", file, *options)
    text = run_command("report", out)
    assert f"| {tiny_row['instance_id']} | 1/1 |" in text
    assert "without a tool call" not in text  # its requests have no tools
    assert "no tool call" not in run_command("show", out)


def test_rewritten_history_begins_another_segment(tiny_row: Any, tmp_path: Path) -> None:
    code = """
CHAT.append(chat(CHAT))
chat([{"role": "user", "content": "A summary."}])
CHAT.append({"role": "user", "content": "Go on."})
CHAT.append(chat(CHAT))
"""
    server = scripted(
        message("One.", ids=([1], [2])),
        message("Two.", ids=([9], [5])),
        message("Three.", ids=([1, 2, 3], [4])),
    )
    (record,) = play(code, server, tiny_row, tmp_path / "run")
    samples = [(x["prompt_ids"], x["completion_ids"]) for x in segments(record)]
    assert samples == [([1], [2, 3, 4]), ([9], [5])]
    contents = [message["content"] for message in record.messages]
    assert contents[1:] == ["One.", "A summary.", "Two.", "Go on.", "Three."]
    turns = with_thoughts(record)
    assert [thought for _, thought, _ in turns[:3]] == ["One.", "Two.", "Three."]
    assert [opening for *_, opening in turns] == ["", "user: A summary.", "", ""]


def test_results_are_recorded_if_a_harness_replaces_arguments(
    tiny_row: Any, tmp_path: Path
) -> None:
    code = """
CHAT.append(chat(CHAT))
CHAT[-1]["tool_calls"][0]["function"]["arguments"] = "{}"
call = CHAT[-1]["tool_calls"][0]["id"]
CHAT.append({"role": "tool", "tool_call_id": call, "content": "a result"})
chat(CHAT)
"""
    server = scripted(message(calls={"shell": {"cmd": "ls"}}), message("Done."))
    (record,) = play(code, server, tiny_row, tmp_path / "run")
    assert [len(turn.results) for turn in record.turns[:2]] == [1, 0]
    roles = [message["role"] for message in record.messages]
    assert roles == ["user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize(
    ("limits", "num_calls"),
    [
        ({"max_turns": 2}, 2),
        ({"max_tokens": 40}, 4),  # the last prompt and its reply
        ({"max_tokens": 40, "reserve_tokens": 25}, 1),
        ({"max_tool_calls": 3}, 2),
        ({"max_cost": 3, "input_price": 1e5, "output_price": 2e5}, 2),
    ],
)
def test_limit_refuses_requests_and_the_tree_is_graded(
    limits: Any, num_calls: int, tiny_row: Any, tmp_path: Path
) -> None:
    code = f"shell(json.dumps({{'cmd': {FIX!r}}}))\nwhile chat(CHAT) != 401: pass"
    calls = {"shell": {"cmd": "ls"}, "submit": {}}

    def answer(_: Body) -> Answer:
        return Answer(message("Hm.", calls, usage=(10 * len(server.requests), 5)))

    server = ChatServer(answer)
    options = {"limits": limits, "tokenizer": "coding_gym_16k"}
    (record,) = play(code, server, tiny_row, tmp_path / "run", episode=options)
    assert (record.stop_reason, record.error, record.resolved) == (next(iter(limits)), "", True)
    assert record.usage["model_calls"] == len(server.requests) == num_calls
    assert record.usage["tool_calls"] == 2 * num_calls


@pytest.mark.parametrize("limit", [{"max_tokens": 40}, {"max_cost": 1, "input_price": 1}])
def test_limit_that_cannot_be_counted_ends_the_harness(
    limit: dict[str, Any], tiny_row: Any, tmp_path: Path
) -> None:
    silent = {name: value for name, value in message("Hm.").items() if name != "usage"}
    server, code = scripted(silent), "while chat(CHAT) != 401: pass"
    options = {"limits": {"max_turns": 5, **limit}, "tokenizer": "coding_gym_16k"}
    (record,) = play(code, server, tiny_row, tmp_path / "run", episode=options)
    assert (record.error_class, record.cost, len(server.requests)) == ("agent", None, 1)
    assert next(iter(limit)) in record.error


def test_cost_of_a_harness_is_unknown_if_one_reply_has_no_usage(
    tiny_row: Any, tmp_path: Path
) -> None:
    silent = {name: value for name, value in message("Hm.").items() if name != "usage"}
    server = scripted(message("Hm."), silent)
    prices = {"input_price": 1, "output_price": 1}
    code, episode = "chat(CHAT)\nchat(CHAT)", {"limits": prices}
    (record,) = play(code, server, tiny_row, tmp_path / "run", episode=episode)
    assert (record.stop_reason, record.usage["model_calls"]) == ("submitted", 2)
    assert record.cost is None


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ("while True: chat(CHAT)", "max_turns"),
        ("while True: pass", "max_time"),
        ("import signal; os.kill(os.getpid(), signal.SIGKILL)", "stopped"),
        ("for _ in range(400): print('x' * 100_000)", "submitted"),
    ],
    ids=["ignores refusals", "endless loop", "killed", "long output"],
)
def test_harness_that_misbehaves_is_ended_and_graded(
    end: str, reason: str, tiny_row: Any, tmp_path: Path, sockets: list[Path]
) -> None:
    code = f"chat(CHAT)\nshell(json.dumps({{'cmd': {FIX!r}}}))\n{end}"
    (record,) = play(
        code,
        scripted(message("Hm.")),
        tiny_row,
        tmp_path / "run",
        episode={"max_turns": 1, "limits": {"max_seconds": 5 if reason == "max_time" else 60}},
        grace_s=0.2,
    )
    assert (record.error_class, record.stop_reason, record.resolved) == ("", reason, True)
    assert bool(record.error) == (reason == "stopped")
    assert len(json.dumps(record.to_json())) < 100_000
    assert [path.parent.exists() for path in sockets] == [False]


def test_harness_can_connect_only_to_the_model(tiny_row: Any, tmp_path: Path) -> None:
    code = """
for address in (("127.0.0.1", HOST_PORT), ("192.0.2.1", 80), ("127.0.0.1", 22)):
    try:
        socket.create_connection(address, timeout=3)
    except OSError:
        continue
    sys.exit(f"reached {address}")
assert ask("/chat/completions", {"messages": CHAT}, key=KEY[:-1])[0] == 401
assert ask("/embeddings", {"input": "x" * 3_000_000})[0] == 404
assert ask("/chat/completions", {"messages": []})[0] == 400
assert ask("/chat/completions", {"messages": CHAT, "n": 2})[0] == 400
assert ask("/responses", {"input": [{"type": "computer_call"}]})[0] == 400
assert [name for name, value in os.environ.items() if "SECRET" in value] == []
chat(CHAT)
"""
    server = scripted(message("Done."))
    with pytest.MonkeyPatch.context() as patch, server:
        patch.setenv("OPENAI_API_KEY", "SECRET-of-the-host")
        port = server.base_url.split(":")[2].split("/")[0]
        agent = harness(code.replace("HOST_PORT", port))
        player = HarnessPlayer(agent, ChatAgent(OpenAIClient(server.base_url), "tiny"))
        folder = evaluate(tmp_path / "run", player, tasks=[tiny_row])
    (record,) = [*folder.trajectories(), *folder.errors()]
    assert (record.error, record.stop_reason) == ("", "submitted")
    assert len(server.requests) == 1


def test_only_known_fields_of_a_request_reach_the_model(tiny_row: Any, tmp_path: Path) -> None:
    unknown = {
        "api_base": "http://192.0.2.1",
        "api_key": "x",
        "timeout": 1,
        "seed": 4,
        "plugins": [],
    }
    server = scripted(message("Done."))
    play(f"chat(CHAT, top_p=0.5, **{unknown})", server, tiny_row, tmp_path / "run")
    (request,) = server.requests
    assert request["top_p"] == 0.5
    assert request.get("seed") != 4
    assert {*unknown} - {"seed"} - {*request} == {*unknown} - {"seed"}


def test_malformed_requests_cost_no_turn_and_no_verdict(tiny_row: Any, tmp_path: Path) -> None:
    code = """
picture = {"type": "image_url", "image_url": {"url": "http://192.0.2.1"}}
chat(CHAT)
for wrong in (
    {"messages": [{}]},
    {"messages": [{"role": "user", "content": [picture]}]},
    {"messages": CHAT, "tools": [{"type": "web_search"}]},
    {"messages": CHAT, "max_tokens": -5},
    {"messages": CHAT, "stop": ["refused by the server"]},
):
    assert ask("/chat/completions", wrong)[0] == 400
assert ask("/responses", {"input": "Go on.", "previous_response_id": "r"})[0] == 400
assert ask("/responses", {"input": "Go on."})[0] == 200
with socket.create_connection(("127.0.0.1", 8765)) as chunked:
    chunked.sendall(b"POST / HTTP/1.1\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n")
    assert b" 411 " in chunked.recv(100)
chat(CHAT)
"""
    refusal = Answer({"error": {"message": "no stop here"}}, 422)
    server = ChatServer(lambda body: refusal if "stop" in body else Answer(message("Hm.")))
    (record,) = play(code, server, tiny_row, tmp_path / "run")
    assert (record.error, record.stop_reason) == ("", "submitted")
    assert (record.usage["model_calls"], len(server.requests)) == (3, 4)


def test_simultaneous_requests_respect_a_limit(tiny_row: Any, tmp_path: Path) -> None:
    code = """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(8) as threads:
    answers = [*threads.map(chat, [CHAT] * 8)]
assert answers.count(401) == 6
"""
    server = scripted(message("Hm."))
    (record,) = play(code, server, tiny_row, tmp_path / "run", episode={"max_turns": 2})
    assert (record.error, record.stop_reason, len(server.requests)) == ("", "max_turns", 2)


def test_abandoned_requests_are_charged_turns_without_a_record(
    tiny_row: Any, tmp_path: Path
) -> None:
    def answer(body: Body) -> Answer:
        is_late = body["messages"][0]["content"] == "late"
        return Answer(message("Hm.", usage=(10, 5)), delay_s=4 if is_late else 0)

    code = """
import time
with unread('late'):
    time.sleep(1)
    unread('late').close()  # waits for the first request, and is never sent
while chat(CHAT) != 401:
    pass
"""
    server = ChatServer(answer)
    (record,) = play(
        code,
        server,
        tiny_row,
        tmp_path / "run",
        episode={"max_turns": 3},
        prices=Prices(input=1e5, output=0),
    )
    assert (record.error, record.stop_reason) == ("", "max_turns")
    num_late = sum(body["messages"][0]["content"] == "late" for body in server.requests)
    assert (num_late, len(record.turns)) == (1, 3)  # two replies, and the end of the harness
    assert record.cost == record.usage["model_calls"] == len(server.requests) == 3


@pytest.mark.parametrize(
    "limits", [{"max_repeats": 2}, {"max_format_errors": 2}, {"warn_tool_calls": True}]
)
def test_limits_that_a_harness_cannot_enforce_are_refused(limits: Any, tmp_path: Path) -> None:
    player = HarnessPlayer(harness(""), without_server())
    with pytest.raises(InvalidArgumentError, match=next(iter(limits))):
        evaluate(tmp_path / "run", player, tasks="bundled", episode={"limits": limits})
    assert not (tmp_path / "run").exists()
    with pytest.raises(InvalidArgumentError, match=next(iter(limits))):
        Runner(config=EpisodeConfig.from_config(limits=limits), player=player)


def test_endpoint_adds_missing_role_and_call_id(tiny_row: Any, tmp_path: Path) -> None:
    code = """
assert chat(CHAT)["role"] == "assistant"
status, text = ask("/responses", {"input": CHAT})
assert (status, json.loads(text)["output"][1]["name"]) == (200, "shell")
"""
    reply = message("Hm.", calls={"shell": {"cmd": "ls"}})
    answer = reply["choices"][0]["message"]
    del answer["role"], answer["tool_calls"][0]["id"]
    (record,) = play(code, scripted(reply), tiny_row, tmp_path / "run")
    assert (record.error, record.stop_reason, record.usage["model_calls"]) == ("", "submitted", 2)


@pytest.mark.parametrize(
    ("code", "answer", "error_class"),
    [
        ("sys.exit(3)", Answer(message("Done.")), "agent"),
        ("sys.exit(0)", Answer(message("Done.")), "agent"),
        ("chat(CHAT); chat(CHAT)", Answer({"error": {"message": "no"}}, 401), "refused"),
    ],
    ids=["no request", "no request, no failure", "refusing server"],
)
def test_harness_without_a_reply_has_no_verdict(
    code: str, answer: Answer, error_class: str, tiny_row: Any, tmp_path: Path
) -> None:
    server = ChatServer(lambda _: answer)
    (record,) = play(code, server, tiny_row, tmp_path / "run")
    assert (record.error_class, record.grade) == (error_class, None)
    assert "Traceback" not in record.error
    assert len(server.requests) <= 1


@pytest.mark.parametrize("code", ["", "chat(CHAT)"], ids=["no request", "graded"])
def test_output_is_recorded_without_the_token(code: str, tiny_row: Any, tmp_path: Path) -> None:
    server, clone = scripted(message("Done.")), Path(__file__).parents[1]
    end = f"sys.exit(KEY + ' {clone}/own.py')"
    (record,) = play(f"{code}\n{end}", server, tiny_row, tmp_path / "run")
    assert "exit code 1: [key] " in record.error
    assert record.error.endswith("/own.py")  # a path outside the package is complete


def test_harness_may_shorten_a_prompt_that_is_too_long(tiny_row: Any, tmp_path: Path) -> None:
    too_long = Answer({"error": {"message": "maximum context length is 8 tokens"}}, 400)
    done = Answer(message("Done.", ids=([1], [2])))
    server = ChatServer(lambda body: too_long if len(body["messages"]) > 1 else done)
    code = "assert chat(CHAT * 2) == 400\nassert chat(CHAT)['content'] == 'Done.'"
    (record,) = play(code, server, tiny_row, tmp_path / "run")
    assert (record.error, record.stop_reason) == ("", "submitted")
    assert len(segments(record)) == 1


@pytest.mark.parametrize("name", harness_names())
def test_preset_names_pinned_packages(name: str) -> None:
    preset = get_harness(name)
    assert preset.name == name
    assert preset.pip or preset.npm
    assert Harness.from_json(preset.to_json()) == preset


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ('command = "own"', "own"),
        ('pip = ["own"]', "own"),
        ('npm = ["@a/own@latest"]', "@a/own@latest"),
        ("colour = 1", "colour"),
        ('failure = "("', "failure"),
        ('env = {URL = "{modell}/{base_url}"}', "{modell}"),
    ],
)
def test_harness_file_with_a_wrong_value_is_refused(
    change: str, value: str, tmp_path: Path
) -> None:
    lines = ['name = "own"', *([] if "command" in change else ['command = "own {problem}"'])]
    path = tmp_path / "own.toml"
    path.write_text("\n".join([*lines, change]), encoding="utf-8")
    with pytest.raises(CodingGymError, match=value):
        get_harness(str(path))


def test_failed_installation_names_the_harness_and_the_log(
    tiny_row: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("coding_gym.agents.harness._install_commands", lambda *_: ["false"])
    player = HarnessPlayer(harness("", npm=("own@1.0.0",)), without_server())
    (record,) = evaluate(tmp_path / "run", player, tasks=[tiny_row]).errors()
    assert record.error.startswith("harness own: install command")
    assert str(tmp_path / "coding_gym/logs") in record.error


def test_values_in_a_command_are_quoted() -> None:
    agent = replace(harness(""), command="own --model openai/{model} {problem}")
    command = agent.filled({"model": "my model's"}).shell_command("It's $HOME").splitlines()[-1]
    assert shlex.split(command) == ["own", "--model", "openai/my model's", "It's $HOME"]


def test_installation_is_reported_cached_and_excluded_from_the_duration(
    tiny_row: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock, delays = time.perf_counter, [0.0]

    def commands(*_: Any) -> list[str]:
        delays[0] += 1000
        return ["true"]

    monkeypatch.setattr(time, "perf_counter", lambda: clock() + delays[0])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("coding_gym.agents.harness._install_commands", commands)
    agent = replace(harness("chat(CHAT)"), npm=("own@1.0.0",))
    with scripted(message("Done.")) as server:
        player = HarnessPlayer(agent, ChatAgent(OpenAIClient(server.base_url), "tiny"))
        (record,) = evaluate(tmp_path / "run", player, tasks=[tiny_row]).trajectories()
    assert "own@1.0.0" in caplog.text
    assert 0 < record.duration_s < 1000
    layer = with_layer(agent, BACKEND, SandboxSpec()).mounts[-1].source
    assert delays == [1000]
    assert [path.name for path in layer.parent.iterdir()] == ["layer"]
    (entry,) = (e for e in clear_cache(tmp_path / "coding_gym") if e.name.startswith("harnesses/"))
    assert (entry.path, layer.exists()) == (layer.parent, False)
