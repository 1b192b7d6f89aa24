"""NeMo Gym's server classes and agent with repair episodes; a script replaces the model."""

import asyncio
import json
import os
import threading
import time
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from episodes import raising
from sandbox_fixtures import descendants, wait_gone

pytest.importorskip("nemo_gym", reason="needs Python 3.12 and pip install 'coding-gym[nemo-gym]'")

from fastapi.testclient import TestClient
from nemo_gym.config_types import ModelServerRef, ResourcesServerRef
from nemo_gym.openai_utils import NeMoGymResponse
from nemo_gym.server_utils import ServerClient
from responses_api_agents.gymnasium_agent.app import GymnasiumAgent, GymnasiumAgentConfig

from coding_gym.adapters.nemo_gym import RepairServer, RepairServerConfig, rows
from coding_gym.errors import EpisodeError, InvalidTaskError, SandboxError

pytestmark = [pytest.mark.trainer, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

REPAIR = "sed -i s/+/*/ shapes.py; cat shapes.py"
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
REQUEST = {"input": [{"role": "user", "content": "Repair it."}]}


def reply(command: str, *, as_text: bool = False) -> dict[str, Any]:
    """Returns a response of a model that runs a command."""
    call = {
        "type": "function_call",
        "call_id": f"call-{command[:4]}",
        "name": "bash",
        "arguments": json.dumps({"command": command}),
    }
    text = {"type": "output_text", "text": f"```bash\n{command}\n```", "annotations": []}
    message = {"type": "message", "id": "m", "role": "assistant", "status": "completed"}
    return {
        "id": "r",
        "created_at": 0,
        "model": "m",
        "object": "response",
        "output": [{**message, "content": [text]} if as_text else call],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def make(tiny_row: dict[str, Any], **config: Any) -> RepairServer:
    settings = {"episode": {"tasks": [tiny_row]}, **config}
    return RepairServer(
        config=RepairServerConfig(
            host="127.0.0.1", port=0, entrypoint="app.py", name="coding_repair", **settings
        ),
        server_client=mock.MagicMock(spec=ServerClient),
    )


@pytest.fixture
def server(tiny_row: dict[str, Any]) -> RepairServer:
    return make(tiny_row)


@pytest.fixture
def client(server: RepairServer) -> Iterator[TestClient]:
    with TestClient(server.setup_webserver()) as connected:
        yield connected


def reset(client: TestClient, **row: Any) -> Any:
    body = {"responses_create_params": REQUEST, "task_id": "shapes-area", **row}
    return client.post("/reset", json=body).raise_for_status().json()


def step(client: TestClient, response: dict[str, Any]) -> Any:
    body = {"responses_create_params": REQUEST, "response": response}
    return client.post("/step", json=body).raise_for_status().json()


@pytest.mark.parametrize("as_text", [False, True])
def test_smoke_nemo_gym_by_calls_or_text(client: TestClient, as_text: bool) -> None:
    assert "area(3, 5) gives 8" in reset(client)["observation"]
    first = step(client, reply(REPAIR, as_text=as_text))
    assert (first["reward"], first["terminated"]) == (0.0, False)
    output = first["observation"] if as_text else first["info"]["tool_outputs"][0]["output"]
    assert "width * height" in output
    if not as_text:
        assert first["info"]["tool_outputs"][0]["call_id"] == "call-sed "
    last = step(client, reply(SUBMIT, as_text=as_text))
    assert (last["reward"], last["terminated"], last["truncated"]) == (1.0, True, False)
    assert last["info"]["resolved"]


def test_a_truncated_reply_does_not_end_the_episode(tiny_row: dict[str, Any]) -> None:
    edit = reply("") | {
        "output": [
            reply("")["output"][0]
            | {"name": "shell", "arguments": json.dumps({"cmd": "sed -i s/+/*/ shapes.py"})}
        ]
    }
    words = reply("so", as_text=True)
    words["output"][0]["content"][0]["text"] = "I have changed"
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    nano = {"tasks": [tiny_row], "toolset": "nano"}
    with TestClient(make(tiny_row, episode=nano).setup_webserver()) as client:
        reset(client)
        step(client, edit)
        assert not step(client, words | cut)["terminated"]
        assert step(client, words)["terminated"]


def test_all_notices_are_observed(tiny_row: dict[str, Any]) -> None:
    episode = {"tasks": [tiny_row], "limits": {"max_format_errors": 1}}
    with TestClient(make(tiny_row, episode=episode).setup_webserver()) as client:
        reset(client)
        step(client, reply("git init -q clone; echo x > clone/x"))
        last = step(client, reply("ls\n```\n\n```bash\nls", as_text=True))
    assert last["truncated"]
    notice, excluded = last["observation"].splitlines()[0], last["observation"].splitlines()[-1]
    assert "clone/" in excluded
    assert "clone/" not in notice


def test_the_agent_of_nemo_gym_plays_a_rollout(
    client: TestClient, tiny_row: dict[str, Any]
) -> None:
    replies = iter([reply(REPAIR), reply(SUBMIT)])
    requests: list[Any] = []

    async def post(server_name: str, url_path: str, json: Any, cookies: Any) -> Any:
        body = json if isinstance(json, dict) else json.model_dump(exclude_unset=True)
        if server_name == "model":
            requests.append(body)
            return mock.MagicMock(content=NeMoGymResponse(**next(replies)).model_dump(), cookies={})
        answer = client.post(url_path, json=body).raise_for_status()
        return mock.MagicMock(content=answer.json(), cookies={})

    async def read(response: Any) -> Any:
        return response.content

    config = GymnasiumAgentConfig(
        host="",
        port=0,
        entrypoint="",
        name="coding_repair_agent",
        resources_server=ResourcesServerRef(type="resources_servers", name="coding_repair"),
        model_server=ModelServerRef(type="responses_api_models", name="model"),
        max_steps=5,
    )
    agent = GymnasiumAgent(
        config=config, server_client=mock.MagicMock(spec=ServerClient, post=post)
    )
    (row,) = rows([tiny_row])
    module = "responses_api_agents.gymnasium_agent.app"
    with (
        mock.patch(f"{module}.get_response_json", read),
        mock.patch(f"{module}.raise_for_status", mock.AsyncMock()),
    ):
        request = mock.MagicMock(cookies={})
        run_request = GymnasiumAgent.run.__annotations__["body"](**row)
        result = asyncio.run(agent.run(request, run_request))
    assert (result.reward, result.terminated) == (1.0, True)
    kinds = [item.type for item in result.response.output]
    assert kinds == ["function_call", "function_call_output", "function_call"]
    assert requests[0]["tools"][0]["name"] == "bash"


def test_rows_explain_the_tool_format_of_the_server(tiny_row: dict[str, Any]) -> None:
    ((row,), (explained,)) = (rows([tiny_row], **o) for o in ({}, {"tool_format": "hermes"}))
    request, text_request = (r["responses_create_params"] for r in (row, explained))
    assert "tools" not in text_request
    assert request["input"][0]["content"] in text_request["input"][0]["content"]
    assert "<tool_call>" in text_request["input"][0]["content"]


def test_row_of_mini_swe_agent_is_a_task(tiny_row: dict[str, Any], client: TestClient) -> None:
    other = tiny_row | {"instance_id": "other", "problem_statement": "Another report."}
    response = reset(client, task_id=None, subset="gym", **other)
    assert response["observation"].strip() == "Another report."
    assert response["info"]["task_id"] == "other"


def test_the_parameters_of_mini_swe_agent_bound_the_episode(tiny_row: dict[str, Any]) -> None:
    assert make(tiny_row, env="singularity").config.settings()["sandbox"] == "namespace"
    bounds = {"step_limit": 7, "step_timeout": 1, "collapse_limit": 2}
    with TestClient(make(tiny_row, **bounds).setup_webserver()) as client:
        reset(client)
        slow = step(client, reply("sleep 5; echo late"))
        assert "late" not in slow["info"]["tool_outputs"][0]["output"]
        step(client, reply("ls"))
        step(client, reply("ls"))
        last = step(client, reply("ls"))
        assert (last["truncated"], last["info"]["stop_reason"]) == (True, "collapsed")


def test_run_golden_resolves_whatever_the_model_replies(tiny_row: dict[str, Any]) -> None:
    with TestClient(make(tiny_row, run_golden=True).setup_webserver()) as client:
        reset(client)
        assert step(client, reply("ls"))["reward"] == 1.0


def test_the_gold_patch_stops_at_a_limit(tiny_row: dict[str, Any]) -> None:
    limited = {"tasks": [tiny_row], "limits": {"max_tool_calls": 1}}
    server = make(tiny_row, run_golden=True, episode=limited)
    with TestClient(server.setup_webserver()) as client:
        reset(client)
        assert step(client, reply("ls"))["truncated"]


def test_a_lost_sandbox_ends_the_episode_with_its_error(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gymnasium.core.Wrapper.reset", raising(SandboxError("no room")))
    assert "could not be opened" in reset(client)["observation"]
    last = step(client, reply("ls"))
    assert (last["reward"], last["truncated"], last["info"]["mask_sample"]) == (0.0, True, True)
    assert last["info"]["error"] == "no room"


def test_a_reset_closes_idle_sessions(tiny_row: dict[str, Any]) -> None:
    server = make(tiny_row, idle_timeout=0.0)

    async def play() -> set[int]:
        await server.reset({"task_id": "shapes-area"}, "left")
        await server.reset({"task_id": "shapes-area"}, "second")
        assert set(server.session_state) == {"second"}
        await server.close_session("second")
        await server.close_session("second")
        return set(descendants(os.getpid()))

    before = asyncio.run(play())  # starts processes that all sandboxes share
    assert wait_gone(asyncio.run(play()) - before, 30) == []


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_steps_of_a_session_are_played_one_after_the_other(
    tiny_row: dict[str, Any], monkeypatch: pytest.MonkeyPatch, is_cancelled: bool
) -> None:
    server = make(tiny_row)
    is_free, play = threading.Semaphore(1), RepairServer._play
    is_playing = threading.Event()
    was_free: list[bool] = []

    def play_alone(server: RepairServer, *arguments: Any) -> None:
        was_free.append(is_free.acquire(blocking=False))
        is_playing.set()
        time.sleep(0.1)
        play(server, *arguments)
        is_free.release()

    monkeypatch.setattr(RepairServer, "_play", play_alone)

    async def step() -> list[Any]:
        await server.reset({"task_id": "shapes-area"}, "one")
        action = NeMoGymResponse(**reply(REPAIR))
        steps = [asyncio.create_task(server.step(action, {}, "one")) for _ in range(2)]
        await asyncio.to_thread(is_playing.wait, 60)
        if is_cancelled:
            steps[0].cancel()
        results = await asyncio.gather(*steps, return_exceptions=True)
        await server.close_session("one")
        return [x if isinstance(x, BaseException) else x[-1]["turn"] for x in results]

    first, second = asyncio.run(step())
    assert isinstance(first, asyncio.CancelledError) if is_cancelled else first == 1
    assert second == 2
    assert was_free == [True, True]


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_session_in_use_is_not_idle(
    tiny_row: dict[str, Any], monkeypatch: pytest.MonkeyPatch, is_closed: bool
) -> None:
    server = make(tiny_row, idle_timeout=0.0)
    is_playing, may_play, play = threading.Event(), threading.Event(), RepairServer._play

    def play_late(server: RepairServer, *arguments: Any) -> None:
        is_playing.set()
        assert may_play.wait(60)
        play(server, *arguments)

    monkeypatch.setattr(RepairServer, "_play", play_late)

    async def step() -> tuple[Any, ...]:
        await server.reset({"task_id": "shapes-area"}, "used")
        stepping = asyncio.create_task(server.step(NeMoGymResponse(**reply(REPAIR)), {}, "used"))
        assert await asyncio.to_thread(is_playing.wait, 60)
        if is_closed:
            await server.close_session("used")
        else:
            await server.reset({"task_id": "shapes-area"}, "second")
            await server.close_session("second")
        may_play.set()
        result: tuple[Any, ...] = await stepping
        await server.close_session("used")
        return result

    if is_closed:
        with pytest.raises(EpisodeError, match="closed"):
            asyncio.run(step())
    else:
        *_, truncated, info = asyncio.run(step())
        assert (truncated, info["mask_sample"]) == (False, False)
    assert server.session_state == {}


def test_a_refused_row_leaves_no_session(server: RepairServer, tiny_row: dict[str, Any]) -> None:
    refused = tiny_row | {"instance_id": "refused", "files": {"a": "", "a/b": ""}}
    with pytest.raises(InvalidTaskError):
        asyncio.run(server.reset(refused, "one"))
    assert server.session_state == {}
