"""Every end of a vector env frees its threads and sandboxes."""

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
    for late in (vec.reset, vec.recv, lambda: vec.step([TRUE] * 3)):
        with pytest.raises(EpisodeError):
            late()


def test_garbage_collection_ends_threads(make: MakeVec) -> None:
    vec = CodingRepairVectorEnv(2)
    vec.reset(seed=0)
    vec.send([shell("sleep 600")] * 2)
    gone, working = weakref.ref(vec), threads()
    del vec
    gc.collect()
    assert gone() is None
    for thread in working:
        thread.join(timeout=30)
    assert not any(thread.is_alive() for thread in working)


def test_closing_ends_a_waiting_recv(started: MakeVec) -> None:
    vec = started(2)
    vec.send([shell("sleep 600")] * 2)
    failures = []

    def wait() -> None:
        try:
            vec.recv()
        except EpisodeError as error:
            failures.append(error)

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    vec.close()
    waiting.join(timeout=30)
    assert [type(failure) for failure in failures] == [EpisodeError]


LEFT_OPEN = """
import json
from coding_gym.vector import make_vec
vec = make_vec(3)
vec.reset(seed=0)
vec.step(['{"name": "submit", "arguments": {}}'] * 3)
vec.step([""] * 3)
vec.send([json.dumps({"name": "shell", "arguments": {"cmd": "sleep 600"}})] * 3)
print("left open")
"""


@pytest.mark.slow
def test_the_interpreter_exits_with_open_envs(tmp_path: Path) -> None:
    done = subprocess.run(
        # Its sockets stay open by design; Python can warn about them at exit.
        [sys.executable, "-W", "error", "-W", "ignore::ResourceWarning", "-c", LEFT_OPEN],
        capture_output=True,
        text=True,
        timeout=300,  # the open commands sleep for 600
        check=False,
        env=os.environ | {"XDG_CACHE_HOME": str(tmp_path)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "left open\n", "")


def test_a_forked_process_cannot_use_it(started: MakeVec) -> None:
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
