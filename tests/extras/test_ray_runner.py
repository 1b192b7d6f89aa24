"""A run on a Ray cluster has the results of one machine, even if nodes are lost."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray")

from model_server import Answer, Body, ChatServer, message

from coding_gym.action import Stop
from coding_gym.agents.built_in import get_player
from coding_gym.agents.scripted import ActionsPlayer
from coding_gym.errors import SandboxUnavailableError
from coding_gym.evaluation import evaluate
from coding_gym.rollout import Runner
from coding_gym.run_folder import RunFolder
from coding_gym.tasks import load_tasks
from coding_gym.trajectory import Trajectory, Turn
from coding_gym.vector.ray_nodes import _Worker

pytestmark = pytest.mark.trainer

TASKS = load_tasks("bundled", limit=3)
ATTEMPTS = 4


class Policy:
    """Writes the attempt's seed to a file, and submits, so each attempt has a different patch.

    Args:
        on_request: Called with the number of each request, from 0.
    """

    def __init__(self, on_request: Callable[[int], None] = lambda _: None) -> None:
        self.num_starts = Counter[int]()  # number of starts of an attempt, by its seed
        self._on_request, self._number = on_request, 0

    def __call__(self, body: Body) -> Answer:
        has_replied = any(message["role"] == "assistant" for message in body["messages"])
        self.num_starts[body["seed"]] += not has_replied
        self._on_request(self._number)
        self._number += 1
        calls = {"shell": {"cmd": f"echo {body['seed']} > made.txt"}}
        return Answer(message(calls={"submit": {}} if has_replied else calls), delay_s=0.5)


def run(server: ChatServer, out: Path, ray: str | None, **options: Any) -> RunFolder:
    prices, sampling = {"input": 1e5, "output": 0}, {"temperature": 1.0}
    player = get_player(
        "chat", model="tiny", base_url=server.base_url, sampling=sampling, prices=prices
    )
    options = {"tasks": TASKS, "concurrency": 4, "ray": ray, **options}
    if "resume" not in options:
        options |= {"attempts": ATTEMPTS, "seed": 3}
    return evaluate(out, player, **options)


def results(folder: RunFolder) -> dict[Any, Any]:
    def result(record: Trajectory) -> tuple[Any, ...]:
        texts = [turn.observation for turn in record.turns]
        end = record.total_reward, record.stop_reason, record.cost
        return record.patch, record.seed, *end, texts

    return {(x.task_id, x.attempt): result(x) for x in folder.trajectories()}


def test_attempts_of_a_lost_node_are_played_elsewhere(cluster: Any, tmp_path: Path) -> None:
    def lose_a_node(request: int) -> None:
        if request == len(TASKS) * ATTEMPTS:  # half of the requests
            cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)

    policy = Policy(lose_a_node)
    with ChatServer(policy) as server:
        spread = run(server, tmp_path / "spread", cluster.address)
    assert len(cluster.worker_nodes) == 1
    assert max(policy.num_starts.values()) == 2
    assert list(spread.errors()) == []
    assert len(results(spread)) == len(TASKS) * ATTEMPTS
    with ChatServer(Policy()) as server:
        assert results(spread) == results(run(server, tmp_path / "alone", None))


def test_budget_stops_the_cluster_and_a_resumed_run_completes(cluster: Any, tmp_path: Path) -> None:
    out = tmp_path / "run"
    turns: list[Turn] = []

    def count(runner: Runner, *_: Any) -> None:
        runner.on_turn = turns.append

    with ChatServer(Policy()) as server:  # each attempt uses 30 tokens
        first = run(server, out, cluster.address, max_tokens=90, on_start=count)
        assert len(turns) == sum(len(record.turns) for record in first.trajectories())
        partial = results(first)
        assert 3 <= len(partial) <= 3 + 4
        whole = results(run(server, out, cluster.address, resume=True, max_tokens=10**6))
    assert len(whole) == len(TASKS) * ATTEMPTS
    assert partial.items() <= whole.items()


def make_player(unusable: Path | None) -> ActionsPlayer:
    """Returns a player that submits at once, except in a process that cannot open a sandbox.

    Args:
        unusable: A file for the id of this process; with None no process can open a sandbox.
    """

    def actions(*_: Any) -> Iterator[Stop]:
        if unusable is not None and not unusable.exists():
            unusable.write_text(str(os.getpid()))
        if unusable is None or unusable.read_text() == str(os.getpid()):
            raise SandboxUnavailableError("no user namespaces here")
        yield Stop("done")

    return ActionsPlayer("submitting", actions)


def test_node_that_cannot_open_sandboxes_is_excluded(cluster: Any, tmp_path: Path) -> None:
    player, tasks = make_player(tmp_path / "unusable"), {"tasks": TASKS, "ray": cluster.address}
    folder = evaluate(tmp_path / "run", player, attempts=2, **tasks)
    assert len(list(folder.trajectories())) == 2 * len(TASKS)
    with pytest.raises(SandboxUnavailableError, match="no user namespaces here"):
        evaluate(tmp_path / "none", make_player(None), **tasks)


def test_a_node_without_a_key_gets_the_drivers_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "node's")
    _Worker(b"", "driver's")
    assert os.environ["OPENAI_API_KEY"] == "node's"
    del os.environ["OPENAI_API_KEY"]
    _Worker(b"", "driver's")
    assert os.environ["OPENAI_API_KEY"] == "driver's"
