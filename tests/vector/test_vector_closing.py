"""Close, garbage collection, exit and fork: vector envs free threads and sandboxes."""

import gc
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest
from episodes import SUBMIT, TRUE, MakeVec, shell

from coding_gym.errors import EpisodeError
from coding_gym.vector import CodingRepairVectorEnv


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if "coding_gym-vector" in thread.name]


def test_closing_ends_running_episodes_and_all_threads(started: MakeVec) -> None:
    vec = started(3)
    vec.step([SUBMIT, TRUE, TRUE])
    vec.send([TRUE, shell("sleep 600"), shell("sleep 600")])
    assert len(threads()) == 3
    vec.close()
    assert threads() == []
    assert all(env.unwrapped.episode.template is None for env in vec.envs)  # no sandbox is open
    vec.close()


def test_a_closed_vector_env_raises(started: MakeVec) -> None:
    vec = started(2)
    vec.close()
    for call in (vec.reset, vec.recv, lambda: vec.step([TRUE] * 2)):
        with pytest.raises(EpisodeError):
            call()


def test_garbage_collection_ends_threads(make: MakeVec) -> None:
    vec = CodingRepairVectorEnv(2)
    vec.reset(seed=0)
    vec.send([shell("sleep 600")] * 2)
    reference, env_threads = weakref.ref(vec), threads()
    del vec
    gc.collect()
    assert reference() is None
    for thread in env_threads:
        thread.join(timeout=30)
    assert not any(thread.is_alive() for thread in env_threads)


def test_closing_ends_a_waiting_recv(started: MakeVec) -> None:
    vec = started(2)
    vec.send([shell("sleep 600")] * 2)
    failures = []

    def wait() -> None:
        try:
            vec.recv()
        except EpisodeError as error:
            failures.append(error)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    vec.close()
    thread.join(timeout=30)
    assert [type(failure) for failure in failures] == [EpisodeError]


LEFT_OPEN = """
import json
from coding_gym.vector import CodingRepairVectorEnv
vec = CodingRepairVectorEnv(3)
vec.reset(seed=0)
vec.step(['{"name": "submit", "arguments": {}}'] * 3)
vec.step([""] * 3)
vec.send([json.dumps({"name": "shell", "arguments": {"cmd": "sleep 600"}})] * 3)
print("left open")
"""


@pytest.mark.slow
def test_the_interpreter_exits_with_open_envs(tmp_path: Path) -> None:
    process = subprocess.run(
        # Sockets of open sandboxes stay open; Python can warn about them at exit.
        [sys.executable, "-W", "error", "-W", "ignore::ResourceWarning", "-c", LEFT_OPEN],
        capture_output=True,
        text=True,
        timeout=300,  # the open commands sleep for 600
        check=False,
        env=os.environ | {"XDG_CACHE_HOME": str(tmp_path)},
    )
    assert (process.returncode, process.stdout, process.stderr) == (0, "left open\n", "")


def test_a_forked_process_cannot_use_the_vector_env(started: MakeVec) -> None:
    vec = started(2)
    child = os.fork()
    if child == 0:
        try:
            vec.step([TRUE, TRUE])
        except EpisodeError:
            vec.close()
            os._exit(0)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert vec.step([shell("echo well")] * 2)[4]["text"].tolist() == ["well", "well"]
