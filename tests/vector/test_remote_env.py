"""The two ends of an env on a cluster, the driver's and the node's, with a cluster of stubs."""

import pickle
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from coding_gym.vector import remote_env
from coding_gym.vector.remote_env import Worker


def test_overlapping_first_calls_share_one_env(monkeypatch: pytest.MonkeyPatch) -> None:
    second: list[threading.Thread] = []
    made: list[Any] = []

    def make_envs(*_: Any) -> list[Any]:
        made.append(SimpleNamespace(close=lambda: None))
        env = made[-1]
        if not second:
            second.append(threading.Thread(target=worker.apply, args=(0, id)))
            second[0].start()
            second[0].join(0.5)  # it must wait for this env, so it does not end here
        return [env]

    cloudpickle = SimpleNamespace(loads=pickle.loads)
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(cloudpickle=cloudpickle))
    monkeypatch.setattr(remote_env, "make_envs", make_envs)
    worker = Worker(pickle.dumps(((), {})))
    worker.apply(0, id)
    second[0].join(60)
    assert not second[0].is_alive()
    assert len(made) == 1
