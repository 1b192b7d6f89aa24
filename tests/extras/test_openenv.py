"""OpenEnv's own server, client and task API, and TRL's environments through them."""

import gc
import os
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from episodes import FIX, SUBMIT, raising, returning, shell
from processes import descendants, wait_gone

pytest.importorskip("openenv", reason="needs pip install 'coding-gym[openenv]'")

import httpx
from serving import serve_app

from coding_gym.adapters.openenv import RepairAction, make_app
from coding_gym.adapters.openenv_client import RepairClient, remote_factory
from coding_gym.errors import InvalidArgumentError, SandboxError, UnknownNameError

pytestmark = [
    pytest.mark.trainer,  # of packages that OpenEnv imports
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

OPEN = "coding_gym.episode.lifecycle.open_sandbox"


@pytest.fixture
def url(tiny_row: dict[str, Any]) -> Iterator[str]:
    with serve_app(make_app(tasks=[tiny_row], max_concurrent_envs=3)) as address:
        yield address


@pytest.fixture
def client(url: str) -> Iterator[Any]:
    with RepairClient(base_url=url).sync() as connected:
        yield connected


def test_an_episode_is_played_over_the_socket(client: Any) -> None:
    begun = client.reset(task_id="shapes-area", episode_id="mine")
    assert begun.reward is None
    assert [message["role"] for message in begun.observation.messages] == ["system", "user"]
    assert "area(3, 5) gives 8" in begun.observation.text
    looked = client.step(RepairAction(text=shell("cat shapes.py")))
    assert "width + height" in looked.observation.text
    state = client.state()
    assert (state.episode_id, state.step_count, state.task_id) == ("mine", 1, "shapes-area")
    assert [tool["function"]["name"] for tool in state.tools] == ["shell", "apply_patch", "submit"]


def test_a_repair_is_worth_one_and_a_stop_grades_what_is_there(client: Any) -> None:
    for end in (RepairAction(text=SUBMIT), RepairAction(stop="enough")):
        client.reset(split="train", index=0)
        assert client.step(RepairAction(text=FIX)).reward == 0.0
        ended = client.step(end)
        assert (ended.done, ended.reward, ended.observation.resolved) == (True, 1.0, True)
        assert ended.observation.truncated is bool(end.stop)


def test_a_lost_sandbox_has_no_reward(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OPEN, raising(SandboxError("no room")))
    client.reset(task_id="shapes-area")
    ended = client.step(RepairAction(text=SUBMIT))
    assert (ended.done, ended.reward, ended.observation.error) == (True, None, "no room")
    assert ended.observation.mask_sample


def test_connections_play_apart_and_their_end_frees_the_sandbox(url: str) -> None:
    with RepairClient(base_url=url).sync() as warm:
        warm.reset(task_id="shapes-area")
        warm.step(RepairAction(text=SUBMIT))
    before = set(descendants(os.getpid()))
    clients = [RepairClient(base_url=url).sync() for _ in range(3)]
    for client in clients:
        client.reset(task_id="shapes-area")
    for client, operator in zip(clients, "*-*", strict=True):
        client.step(RepairAction(text=returning(f"width {operator} height")))
    assert [client.step(RepairAction(text=SUBMIT)).reward for client in clients[:2]] == [1.0, 0.0]
    for client in clients:
        client.close()
    assert wait_gone(set(descendants(os.getpid())) - before, 30) == []


def test_the_task_api_lists_tasks_without_their_tests(url: str) -> None:
    assert httpx.get(f"{url}/coding_repair/splits").json() == [{"name": "train", "type": "train"}]
    asked = httpx.post(f"{url}/coding_repair/tasks", json={"split": "train"}).json()
    assert [task["task_id"] for task in asked["tasks"]] == ["shapes-area"]
    assert "hidden" not in str(asked)
    assert httpx.post(f"{url}/coding_repair/num_tasks", json={"split": "dev"}).json() == {
        "num_tasks": 0
    }


def test_trl_plays_through_the_server(url: str) -> None:
    rollout: Any = pickle.loads(pickle.dumps(remote_factory(url)))()  # noqa: S301 - our own
    for reward in (1.0, 0.0):
        assert rollout.reset(task_id="shapes-area", prompt=[]).startswith("area(3, 5) gives 8")
        if reward:
            rollout.shell(cmd="sed -i s/+/*/ shapes.py")
        assert rollout.get_reward() == reward
    with pytest.raises(InvalidArgumentError, match="no task 'other'"):
        rollout.reset(task_id="other")
    with pytest.raises(InvalidArgumentError, match="has the toolset 'nano', not 'bash'"):
        remote_factory(url, toolset="bash")()
    del rollout
    gc.collect()


def test_a_server_that_is_lost_masks_the_rollout(tiny_row: dict[str, Any]) -> None:
    with serve_app(make_app(tasks=[tiny_row])) as address:
        rollout: Any = remote_factory(address)()
        rollout.reset(task_id="shapes-area")
    assert rollout.shell(cmd="ls") == ""
    assert rollout.get_reward() is None
    assert "could not be opened" in rollout.reset(task_id="shapes-area")
    assert rollout.get_reward() is None


def test_a_step_of_grpo_runs_on_a_server(one_thread: None, run_example: Any) -> None:
    pytest.importorskip("trl")
    options = ["--tiny", "--steps", "1", "--group", "2", "--max-tokens", "16"]
    with serve_app(make_app(tasks="bundled")) as address:
        said = run_example("train_trl.py", *options, "--server", address)
    assert said[-1] == "done: 1 steps, not saved"


def test_arguments_are_checked_before_the_server_starts() -> None:
    with pytest.raises(UnknownNameError, match="nanoo"):
        make_app(toolset="nanoo")
