"""The server: the env that a client sees, who may do what, and what is left when things break."""

import http.client
import json
import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import gymnasium as gym
import numpy as np
import pytest
from episodes import SUBMIT, Closing, shell
from processes import descendants, running, wait_gone
from waiting import wait_until

pytest.importorskip("prometheus_client")

from serving import TOKENS, command, served

import coding_gym
from coding_gym.errors import (
    EpisodeError,
    InvalidArgumentError,
    MachineryError,
    UnknownNameError,
)
from coding_gym.serve import RemoteEnv
from coding_gym.serve.sessions import Sessions
from coding_gym.serve.wire import encode
from coding_gym.vector import make_vec

LIST, WRITE = shell("ls"), shell("echo changed >> README.md")
SLEEP = shell("sleep 60; echo done > made")
ONE = TOKENS["one"]


@pytest.fixture(scope="module")
def sessions() -> Sessions:
    return Sessions({"tasks": "bundled"}, max_per_client=8, idle_s=60)


@pytest.fixture(scope="module")
def url(sessions: Sessions) -> Iterator[str]:
    with served(sessions, max_body_bytes=1 << 16, body_timeout_s=1) as found:
        yield found


@pytest.fixture
def remote(url: str, closing: Closing) -> RemoteEnv:
    env: RemoteEnv = closing(RemoteEnv(url, token=ONE))
    return env


def send(
    url: str, path: str, body: Any = None, token: str = ONE, method: str = "POST"
) -> tuple[int, Any]:
    link = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    data = body if isinstance(body, bytes | None) else json.dumps(body)
    link.request(method, path, data, {"Authorization": f"Bearer {token}"})
    response = link.getresponse()
    found = response.read()
    link.close()
    return response.status, json.loads(found) if path != "/metrics" else found.decode()


def opened(url: str, token: str = ONE) -> str:
    status, found = send(url, "/v1/sessions", {}, token)
    assert status == 200, found
    return str(found["session"])


WRAPPERS = (
    [],
    [{"name": "ToolCallBudget", "kwargs": {"max_tool_calls": 2}}, {"name": "TestPassReward"}],
    [{"name": "TranscriptObservation", "kwargs": {"max_tokens": 2048}}],
    [{"name": "TextObservation"}],
)


@pytest.mark.parametrize("wrappers", WRAPPERS)
def test_a_remote_episode_is_the_local_one(
    url: str, closing: Closing, wrappers: list[dict[str, Any]]
) -> None:
    remote = closing(RemoteEnv(url, token=ONE, wrappers=wrappers, max_turns=5))
    local = closing(make_vec(1, wrappers=wrappers, max_turns=5, render_mode="ansi")).envs[0]
    assert remote.observation_space == local.observation_space
    assert remote.action_space == local.action_space
    assert shown(remote.reset(seed=3)) == shown(local.reset(seed=3))
    for action in (LIST, WRITE, "no call at all", SUBMIT):
        here = local.step(action)
        assert shown(remote.step(action)) == shown(here)
        if here[2] or here[3]:
            break
    assert remote.render() == local.render()


def shown(values: tuple[Any, ...]) -> Any:
    """As JSON, without the seconds that a grade took."""
    found = json.loads(json.dumps(encode(values)))
    grade = found[-1].get("grade")
    if grade:
        grade["$grade"].pop("duration_s")
    return found


def test_menus_are_played_by_numbers_and_arrays(url: str, closing: Closing) -> None:
    menu = [{"name": "MenuActions", "kwargs": {"num_candidates": 4}}]
    env = closing(RemoteEnv(url, token=ONE, wrappers=menu))
    observation, _ = env.reset(seed=0)
    assert observation in env.observation_space
    observation, *_ = env.step(np.int64(0))
    assert observation in env.observation_space


def test_completions_keep_their_tokens_and_stops_end(remote: RemoteEnv) -> None:
    remote.reset(seed=0)
    spent = remote.step(coding_gym.Completion("no call", [1, 2, 3], [-0.1, -0.2, -0.3]))
    assert not spent[2]
    *_, truncated, info = remote.step(coding_gym.Stop("enough"))
    assert truncated
    assert info["stop_reason"] == "stopped"


def test_snapshots_forks_and_grades(remote: RemoteEnv, closing: Closing) -> None:
    remote.reset(seed=0)
    before = remote.snapshot()
    remote.step(WRITE)
    twin = closing(remote.fork())
    assert twin.patch() == remote.patch() != coding_gym.Patch("")
    assert remote.grade().reason is coding_gym.GradeReason.TESTS_FAILED
    assert remote.grade("").reason is coding_gym.GradeReason.EMPTY_PATCH
    remote.restore(before)
    assert not remote.patch().files
    assert twin.patch().files
    remote.forget(before)
    with pytest.raises(EpisodeError, match="no snapshot"):
        remote.restore(before)
    assert remote.chat_request().keys() == {"messages", "tools"}
    with pytest.raises(InvalidArgumentError, match="RemoteEnv has a method chat_request"):
        coding_gym.chat_request(remote)


REFUSED = {
    "sandbox": ({"sandbox": "process"}, (), "sandbox is chosen by the server"),
    "tasks": ({"tasks": "/etc"}, (), "tasks is chosen by the server"),
    "unknown": ({"max_turn": 3}, (), "max_turns"),
    "memory": ({"max_obs_tokens": 1 << 30}, (), "at most 131072"),
    "much memory": ({}, [{"name": "TokenActions", "kwargs": {"max_new_tokens": 1 << 30}}], "most"),
    "foreign classes": ({}, [{"name": "os:system"}], "no wrapper 'os:system'"),
    "files": ({}, [{"name": "RecordTrajectory", "kwargs": {"path": "/tmp/x"}}], "no wrapper"),
}


@pytest.mark.parametrize("refused", REFUSED)
def test_what_is_the_servers_is_refused(url: str, refused: str) -> None:
    env, wrappers, message = REFUSED[refused]
    with pytest.raises(InvalidArgumentError, match=message):
        RemoteEnv(url, token=ONE, wrappers=wrappers, **env)


def test_rows_of_clients_are_refused(remote: RemoteEnv) -> None:
    with pytest.raises(InvalidArgumentError, match="task"):
        remote.reset(options={"task": {"instance_id": "mine"}})


def test_requests_without_the_token_are_refused(url: str) -> None:
    session = opened(url)
    for path in ("/v1/sessions", f"/v1/sessions/{session}/reset", "/metrics", "/v1/tasks"):
        tokens = {"": "send the server", "wrong": "not know", f"{ONE}x": "not know"}
        for token, said in tokens.items():
            method = "GET" if path in ("/metrics", "/v1/tasks") else "POST"
            link = http.client.HTTPConnection(urlsplit(url).netloc)
            link.request(method, path, "{}", {"Authorization": f"Bearer {token}"})
            response = link.getresponse()
            assert (response.status, said in response.read().decode()) == (401, True)
            link.close()
    assert send(url, "/health", method="GET", token="")[0] == 200
    assert send(url, f"/v1/sessions/{session}", method="DELETE")[0] == 200


def test_sessions_of_others_are_as_if_they_were_not_there(url: str) -> None:
    session = opened(url)
    foreign = send(url, f"/v1/sessions/{session}/reset", {}, TOKENS["two"])
    missing = send(url, "/v1/sessions/none/reset", {}, TOKENS["two"])
    assert foreign[0] == missing[0] == 404
    assert foreign[1]["error"]["type"] == missing[1]["error"]["type"] == "UnknownSessionError"
    assert send(url, f"/v1/sessions/{session}", None, TOKENS["two"], "DELETE")[0] == 404
    listed = send(url, "/v1/sessions", None, TOKENS["two"], "GET")[1]["sessions"]
    assert session not in [one["session"] for one in listed]
    assert send(url, f"/v1/sessions/{session}", method="DELETE")[0] == 200


BAD = {
    "no JSON": (b"{", 400),
    "nested": (b"[" * 40_000, 400),
    "a list": (b"[1]", 400),
    "no action": (b"{}", 400),
    "a wrong action": (b'{"action": {"text": 3}}', 400),
    "a huge array": (
        b'{"action": {"$array": {"dtype": "int64", "shape": [999999999], "data": "AAAAAAAAAAA="}}}',
        400,
    ),
    "a strange shape": (b'{"action": {"$array": {"dtype": "int8", "shape": ["A", 9]}}}', 400),
    "huge ids": (b'{"action": {"text": "x", "token_ids": [1e400]}}', 400),
    "another argument": (b'{"action": "x", "more": 1}', 400),
    "too large": (b" " * 70_000, 413),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_requests_are_answered_and_cost_nothing(url: str, remote: RemoteEnv, bad: str) -> None:
    remote.reset(seed=0)
    body, status = BAD[bad]
    session = send(url, "/v1/sessions", method="GET")[1]["sessions"][-1]["session"]
    found = send(url, f"/v1/sessions/{session}/step", body)
    assert found[0] == status
    assert found[1]["error"]["message"]
    assert not remote.step(LIST)[2]


def test_a_call_whose_answer_was_lost_is_not_played_twice(url: str) -> None:
    session = opened(url)
    path = f"/v1/sessions/{session}"
    send(url, f"{path}/reset", {"seed": 0, "number": 1})
    first = send(url, f"{path}/step", {"action": WRITE, "number": 2})
    again = send(url, f"{path}/step", {"action": WRITE, "number": 2})
    assert again == first
    assert first[1]["info"]["turn"] == 1
    assert send(url, f"{path}/step", {"action": LIST, "number": 3})[1]["info"]["turn"] == 2
    send(url, path, method="DELETE")


def test_an_older_call_is_refused(url: str) -> None:
    path = f"/v1/sessions/{opened(url)}"
    send(url, f"{path}/reset", {"seed": 0, "number": 5})
    send(url, f"{path}/step", {"action": WRITE, "number": 6})
    for call, number in (("step", 5), ("patch", 6)):
        status, found = send(url, f"{path}/{call}", {"number": number})
        assert (status, found["error"]["type"]) == (409, "EpisodeError")
    send(url, path, method="DELETE")


def test_a_session_is_opened_once_for_a_key(url: str) -> None:
    first = send(url, "/v1/sessions", {"key": "drawn"})
    assert send(url, "/v1/sessions", {"key": "drawn"}) == first
    assert send(url, "/v1/sessions", {"evn": {}})[0] == 400
    send(url, f"/v1/sessions/{first[1]['session']}", method="DELETE")


def test_only_post_opens(url: str, sessions: Sessions) -> None:
    before = len(sessions)
    link = http.client.HTTPConnection(urlsplit(url).netloc)
    for method in ("HEAD", "PUT"):
        link.request(method, "/v1/sessions", headers={"Authorization": f"Bearer {ONE}"})
        response = link.getresponse()
        response.read()
        assert response.status == 405
    link.close()
    assert len(sessions) == before
    assert send(url, "/v1/sessions/", {})[1]["error"]["type"] == "UnknownNameError"


def test_calls_that_wait_for_a_session_hold_no_worker(closing: Closing) -> None:
    with served(Sessions({}), workers=2) as url:
        slow, quick = (closing(RemoteEnv(url, token=TOKENS[name])) for name in ("one", "two"))
        slow.reset(seed=0)
        quick.reset(seed=0)
        session = send(url, "/v1/sessions", method="GET")[1]["sessions"][0]["session"]
        links = [closing(http.client.HTTPConnection(urlsplit(url).netloc)) for _ in range(4)]
        for link, action in zip(links, (SLEEP, LIST, LIST, LIST), strict=True):
            head = {"Authorization": f"Bearer {ONE}"}
            body = json.dumps({"action": action})
            link.request("POST", f"/v1/sessions/{session}/step", body, head)
        (sleeper,) = wait_until(lambda: running("sleep", os.getpid()))
        quick.step(LIST)
        os.kill(sleeper, signal.SIGTERM)
        assert [link.getresponse().status for link in links] == [200] * 4


def test_a_client_that_hangs_up_leaves_a_session_that_goes_on(url: str) -> None:
    session = opened(url)
    send(url, f"/v1/sessions/{session}/reset", {"seed": 0})
    body = json.dumps({"action": SLEEP})
    address = urlsplit(url)
    assert address.port is not None
    with socket.create_connection(("127.0.0.1", address.port)) as link:
        head = f"POST /v1/sessions/{session}/step HTTP/1.1\r\nHost: x\r\n"
        head += f"Authorization: Bearer {ONE}\r\nContent-Length: {len(body)}\r\n\r\n"
        link.sendall((head + body).encode())
        (sleeper,) = wait_until(lambda: running("sleep", os.getpid()))
    send(url, "/health", method="GET")  # the server has read that the client hung up
    os.kill(sleeper, signal.SIGTERM)
    found = send(url, f"/v1/sessions/{session}/patch", {})[1]
    assert "+done" in found["patch"]
    send(url, f"/v1/sessions/{session}", method="DELETE")


def test_a_body_that_does_not_arrive_is_given_up(url: str) -> None:
    address = urlsplit(url)
    assert address.port is not None
    with socket.create_connection(("127.0.0.1", address.port), timeout=10) as link:
        head = f"POST /v1/sessions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ONE}\r\n"
        link.sendall((head + "Content-Length: 10\r\n\r\n{").encode())
        assert b" 408 " in link.recv(1000).partition(b"\r\n")[0]


def test_limits_of_clients_and_of_the_server(closing: Closing) -> None:
    with served(Sessions({}, max_sessions=3, max_per_client=2)) as url:
        held = [closing(RemoteEnv(url, token=ONE)) for _ in range(2)]
        with pytest.raises(MachineryError, match="client 'one' has all of its 2 sessions"):
            RemoteEnv(url, token=ONE)
        closing(RemoteEnv(url, token=TOKENS["two"]))
        with pytest.raises(MachineryError, match="the server has all of its 3 sessions"):
            RemoteEnv(url, token=TOKENS["two"])
        held[0].close()
        closing(RemoteEnv(url, token=TOKENS["two"]))


@pytest.fixture
def idle(closing: Closing) -> Iterator[tuple[RemoteEnv, Sessions]]:
    """An env whose session closes when it is idle, and the sessions of its server."""
    found = Sessions({}, idle_s=0.3)
    with served(found) as url:
        env: RemoteEnv = closing(RemoteEnv(url, token=ONE))
        env.reset(seed=0)
        yield env, found


def test_idle_sessions_are_closed_and_their_episodes_masked(
    idle: tuple[RemoteEnv, Sessions],
) -> None:
    env, sessions = idle
    wait_until(lambda: not len(sessions))
    _, reward, terminated, truncated, info = env.step(LIST)
    assert (reward, terminated, truncated, info["mask_sample"]) == (0.0, False, True, True)
    env.reset(seed=0)
    assert not env.step(LIST)[3]


def test_an_idle_env_that_is_reset_opens_a_session(idle: tuple[RemoteEnv, Sessions]) -> None:
    env, sessions = idle
    wait_until(lambda: not len(sessions))
    env.reset(seed=0)
    assert not env.step(LIST)[3]


def test_snapshots_have_a_budget(closing: Closing) -> None:
    with served(Sessions({}, max_snapshot_bytes=1000)) as url:
        env = closing(RemoteEnv(url, token=ONE))
        env.reset(seed=0)
        env.step(shell("head -c 5000 /dev/urandom > x"))
        kept = env.snapshot()
        with pytest.raises(MachineryError, match="forget some"):
            env.snapshot()
        env.forget(kept)
        env.snapshot()


def test_metrics_count_calls_and_sessions(url: str, remote: RemoteEnv) -> None:
    remote.reset(seed=0)
    _, found = send(url, "/metrics", method="GET")
    assert 'coding_gym_calls_total{call="reset",status="200"}' in found
    assert "coding_gym_sessions " in found


def test_a_web_socket_carries_the_same_calls(url: str) -> None:
    client = pytest.importorskip("websockets.sync.client")
    headers = {"Authorization": f"Bearer {ONE}"}
    with client.connect(f"{url.replace('http', 'ws')}/v1/socket", additional_headers=headers) as ws:

        def call(name: str, session: str = "", **arguments: Any) -> Any:
            message = {"id": 7, "call": name, "session": session, "arguments": arguments}
            ws.send(json.dumps(message))
            found = json.loads(ws.recv())
            assert found["id"] == 7
            return found["status"], found["answer"]

        session = call("open")[1]["session"]
        assert call("reset", session, seed=0)[0] == 200
        assert call("step", session, action=LIST)[1]["info"]["turn"] == 1
        assert call("stepp", session)[0] == 400
        assert call("close", session) == (200, {})
    with pytest.raises(Exception, match=r"403|4401"):
        client.connect(f"{url.replace('http', 'ws')}/v1/socket").recv()


def test_killing_the_server_leaves_nothing_and_masks_the_sample() -> None:
    with command() as (process, url, token):
        env = RemoteEnv(url, token=token)
        env.reset(seed=0)
        env.step(LIST)
        running = descendants(process.pid)
        assert running
        process.kill()
        *_, truncated, info = env.step(LIST)
        assert truncated
        assert info["mask_sample"]
        assert wait_gone(running, 20) == []
        with pytest.raises(EpisodeError, match="call reset first"):
            env.step(LIST)
        with pytest.raises(MachineryError, match="does not answer"):
            env.reset(seed=0)
        env.close()


def test_a_server_that_ends_opens_nothing_and_lets_episodes_end() -> None:
    with command() as (process, url, token):
        env = RemoteEnv(url, token=token)
        env.reset(seed=0)
        os.kill(process.pid, signal.SIGTERM)
        wait_until(lambda: send(url, "/ready", method="GET")[0] != 200)
        with pytest.raises(MachineryError, match="opens no more sessions"):
            RemoteEnv(url, token=token)
        assert env.step(SUBMIT)[2]
        env.close()
        assert process.wait(20) in (0, -signal.SIGTERM)
        assert process.stdout
        assert "1 open sessions have" in process.stdout.read()


def test_a_second_signal_ends_the_server_at_once() -> None:
    with command() as (process, url, token):
        env = RemoteEnv(url, token=token)
        env.reset(seed=0)
        with ThreadPoolExecutor(1) as pool:
            step = pool.submit(env.step, SLEEP)
            wait_until(lambda: running("sleep", process.pid))
            os.kill(process.pid, signal.SIGTERM)
            wait_until(lambda: send(url, "/ready", method="GET")[0] != 200)
            os.kill(process.pid, signal.SIGTERM)
            assert process.wait(10) == 0
            assert step.result()[4]["mask_sample"]
        env.close()


@pytest.mark.parametrize(
    ("url", "token"),
    [("ftp://host", "x"), ("http://host:99999", "x"), ("http://a b", "x"), ("http://host", "a\nb")],
)
def test_what_is_no_url_or_token_is_refused(url: str, token: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"(url|token) must be"):
        RemoteEnv(url, token=token)


def test_a_wrong_path_is_named(url: str) -> None:
    with pytest.raises(UnknownNameError, match="there is no POST '/elsewhere/v1/sessions'"):
        RemoteEnv(f"{url}/elsewhere", token=ONE)


def test_an_env_of_gymnasiums_own_vector_env(url: str, closing: Closing) -> None:
    envs = closing(gym.vector.SyncVectorEnv([lambda: RemoteEnv(url, token=ONE)] * 2))
    observations, _ = envs.reset(seed=0)
    assert observations["input_ids"].shape == (2, 4096)
    envs.step([LIST, LIST])
