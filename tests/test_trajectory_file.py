"""Files of trajectories: whole lines from many writers, and lines that cannot be read."""

import json
import resource
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from coding_gym import Trajectory
from coding_gym.errors import InvalidArgumentError, MachineryError
from coding_gym.trajectory import Turn
from coding_gym.trajectory_file import append_trajectory, read_trajectories


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "folders" / "episodes.jsonl"


WRITER = """
import sys
from coding_gym import Trajectory
from coding_gym.trajectory_file import append_trajectory

for i in range(20):
    append_trajectory(sys.argv[1], Trajectory(task_id=sys.argv[2], patch="x" * 50_000 * (i % 3)))
"""


def test_lines_of_threads_and_processes_never_mix(path: Path) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), f"process-{i}"])
        for i in range(3)
    ]

    def write(name: str) -> None:
        for i in range(20):
            append_trajectory(path, Trajectory(task_id=name, patch="y" * 50_000 * (i % 3)))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, [f"thread-{i}" for i in range(4)]))
    assert [process.wait() for process in processes] == [0, 0, 0]
    written = list(read_trajectories(path))
    assert len(written) == 7 * 20
    for name in {t.task_id for t in written}:
        lengths = [len(t.patch) for t in written if t.task_id == name]
        assert lengths == [50_000 * (i % 3) for i in range(20)]


def test_a_full_disk_leaves_whole_lines_and_a_clear_error(path: Path) -> None:
    append_trajectory(path, Trajectory(task_id="small"))
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, limits[1]))
    try:
        with pytest.raises(MachineryError):
            append_trajectory(path, Trajectory(task_id="large", patch="x" * 1000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_bytes() == before
    append_trajectory(path, Trajectory(task_id="later"))
    assert [t.task_id for t in read_trajectories(path)] == ["small", "later"]


def test_half_a_line_spoils_no_other(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    append_trajectory(path, Trajectory(task_id="first"))
    with path.open("a") as file:
        file.write('{"task_id": "torn", "mess\n\n \n' + "\0" * 9)
    append_trajectory(path, Trajectory(task_id="last"))
    assert json.loads(path.read_text().splitlines()[5])["task_id"] == "last"
    with path.open("a") as file:
        file.write("{")
    caplog.clear()
    assert [t.task_id for t in read_trajectories(path)] == ["first", "last"]
    assert len(caplog.records) == 5  # one for each torn or empty line


def test_a_file_of_another_kind_is_named(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text('{"task_id": "x", "messages": [{"role": "user", "content": ""}, {}]}')
    with pytest.raises(InvalidArgumentError, match=r"messages\[1\]"):
        list(read_trajectories(path))
    for data in (b"\x1f\x8b\xff\n", b"[]\n", b'{"turns": [{"token_ids": []}]}\n'):
        path.write_bytes(data)
        with pytest.raises(InvalidArgumentError):
            list(read_trajectories(path))


def test_any_text_comes_back(path: Path) -> None:
    turn = Turn(action="\udcff\n\u2028é", observation="\x00", logprobs=(float("-inf"),))
    trajectory = Trajectory(task_id="t", turns=(turn,))
    append_trajectory(path, trajectory)
    assert list(read_trajectories(path)) == [trajectory]
    assert path.read_bytes().count(b"\n") == 1
