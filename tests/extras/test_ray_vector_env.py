"""A vector env on a Ray cluster equals the local one; a lost node ends only its episodes."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from episodes import FIX, SUBMIT, TRUE, Closing, assert_same, raising, shell

pytest.importorskip("ray")

import coding_gym
from coding_gym.errors import InvalidArgumentError, SandboxError
from coding_gym.task import Task
from coding_gym.tasks import load_tasks
from coding_gym.vector import CodingRepairVectorEnv, RayVectorEnv
from coding_gym.vector.ray_nodes import RayNodes, environment_of

pytestmark = pytest.mark.trainer

WRAPPERS = [{"name": "TokenBudget", "kwargs": {"max_tokens": 50_000}}]
LATE = shell("sleep 60")

Make = Callable[..., RayVectorEnv]


@pytest.fixture
def rows(tiny_row: dict[str, Any]) -> list[dict[str, Any]]:
    return [tiny_row | {"instance_id": f"shapes-{number}"} for number in range(12)]


@pytest.fixture
def make(cluster: Any, rows: list[dict[str, Any]], closing: Closing) -> Make:
    def made(num_envs: int, **arguments: Any) -> RayVectorEnv:
        arguments = {"tasks": rows, **arguments}
        env: RayVectorEnv = closing(RayVectorEnv(num_envs, address=cluster.address, **arguments))
        return env

    return made


def test_results_equal_those_of_the_local_vector_env(
    make: Make, rows: list[dict[str, Any]], closing: Closing
) -> None:
    arguments = {"tasks": rows, "sampler": "shuffled", "env_wrappers": WRAPPERS}
    remote = make(3, **arguments)
    local = closing(CodingRepairVectorEnv(3, tasks=rows, sampler="shuffled", env_wrappers=WRAPPERS))
    assert remote.observation_space == local.observation_space
    assert remote.action_space == local.action_space
    assert_same(remote.reset(seed=4), local.reset(seed=4))
    for actions in ([FIX, TRUE, SUBMIT], [SUBMIT, "no call", TRUE], [TRUE] * 3, [SUBMIT] * 3):
        assert_same(remote.step(actions), local.step(actions))
    mask = np.array([True, False, True])
    options = {"reset_mask": mask, "task_id": "shapes-4"}
    assert_same(remote.reset(options=dict(options)), local.reset(options=dict(options)))
    assert_same(remote.reset(), local.reset())


def test_a_failed_construction_leaves_no_connection(make: Make) -> None:
    with pytest.raises(InvalidArgumentError):
        make(2, env_wrappers=[raising(InvalidArgumentError("no"))])
    assert not import_module("ray").is_initialized()


def test_methods_and_attributes_are_those_on_the_nodes(make: Make) -> None:
    env = make(2, render_mode="ansi", max_turns=1)
    with pytest.raises(InvalidArgumentError):
        env.set_attr("note", [3, 4])
    env.reset(seed=0)
    assert env.get_attr("max_obs_tokens") == (4096, 4096)
    assert all("area(3, 5)" in text for text in env.call("render"))
    assert env.step([TRUE, TRUE])[3].tolist() == [True, True]
    with pytest.raises(AttributeError):
        env.call("no_such_method")


def test_an_episode_begins_after_a_wrapper_failed_at_the_end(make: Make) -> None:
    class Fails(gym.Wrapper[Any, Any, Any, Any]):  # a local class is pickled by value
        def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
            result = self.env.step(action)
            if result[2]:
                raise SandboxError("the record could not be written")
            return result

    env = make(1, env_wrappers=[Fails])
    env.reset(seed=0)
    with pytest.raises(SandboxError):
        env.step([SUBMIT])
    assert [env.step([TRUE])[4]["turn"].tolist() for _ in range(2)] == [[0], [1]]


def test_a_snapshot_continues_on_any_node_and_here(
    make: Make, rows: list[dict[str, Any]], closing: Closing
) -> None:
    env = make(4)
    env.reset(seed=0)
    env.step([TRUE, FIX, TRUE, TRUE])
    snapshot = env.snapshot(1)
    _, infos = env.reset(options={"snapshot": snapshot})
    assert infos["turn"].tolist() == [1] * 4
    assert env.step([SUBMIT] * 4)[1].tolist() == [1.0] * 4
    local = closing(gym.make("coding_gym:CodingRepair-v0", tasks=rows))
    assert coding_gym.restore(local, snapshot)[1]["turn"] == 1


def test_a_lost_node_masks_its_episodes_and_its_slots_open_elsewhere(
    cluster: Any, make: Make
) -> None:
    env = make(8)
    env.reset(seed=1)
    env.send([LATE] * 8)
    cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
    _, rewards, terminated, truncated, infos = env.recv(min_envs=4)  # four episodes sleep
    lost = infos["env_id"]
    assert len(lost) == 4
    assert infos["mask_sample"].all()
    assert truncated.all()
    assert not terminated.any()
    assert not rewards.any()
    assert set(infos["stop_reason"]) == {"sandbox_error"}
    env.send([TRUE] * 4, lost)  # starts the next episodes
    started = env.recv(min_envs=4)[4]
    assert started["turn"].tolist() == [0] * 4
    env.send([FIX] * 4, lost)
    assert not env.recv(min_envs=4)[4]["mask_sample"].any()
    env.send([SUBMIT] * 4, lost)
    assert env.recv(min_envs=4)[1].tolist() == [1.0] * 4


def test_a_reset_whose_nodes_are_all_lost_raises(cluster: Any, make: Make) -> None:
    env = make(1)
    (slot,) = env.envs
    nodes, placed = slot._nodes, []

    def place(task: Task) -> Any:
        placed.append(RayNodes.place(nodes, task))
        nodes.ray.kill(placed[-1].actor)
        return placed[-1]

    nodes.place = place
    with pytest.raises(SandboxError, match="the node of the episode was lost"):
        env.reset(seed=0)
    assert len(placed) > 2
    del nodes.place
    assert env.reset(seed=0)[1]["turn"].tolist() == [0]


def test_a_step_after_a_failed_call_of_a_lost_node_is_masked(make: Make) -> None:
    env = make(1)
    env.reset(seed=0)
    (slot,) = env.envs
    slot._nodes.ray.kill(slot._node.actor)
    for call in (lambda: env.snapshot(0), lambda: env.call("render")):
        with pytest.raises(SandboxError):
            call()
    _, _, _, truncated, infos = env.step([TRUE])
    assert truncated.all()
    assert infos["mask_sample"].all()
    assert env.step([TRUE])[4]["turn"].tolist() == [0]  # the next episode


def test_tasks_of_an_environment_share_nodes(cluster: Any) -> None:
    (plain,) = load_tasks("bundled", limit=1)
    built = Task(task_id="a", tree=plain.tree, problem_statement="", image="python:3.12")
    assert environment_of(plain) == ""
    nodes = RayNodes(cluster.address, dict, 1)
    try:
        first = nodes.place(built)
        assert nodes.place(built) is first  # not much busier than the other, of two CPUs
        assert nodes.place(plain) is not first
        placed = [nodes.place(built) for _ in range(4)]
        assert {node.node_id for node in placed} != {first.node_id}
    finally:
        nodes.close()
