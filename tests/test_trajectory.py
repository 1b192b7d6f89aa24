"""Folders of trajectories: whole files from many writers, and files that cannot be read."""

import resource
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from coding_gym import Trajectory
from coding_gym.errors import InvalidArgumentError, MachineryError
from coding_gym.trajectory import Turn, read_trajectories, write_trajectory


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "new" / "folders"


def test_many_writers_lose_no_trajectory(folder: Path) -> None:
    def write(name: str) -> None:
        for number in range(20):
            write_trajectory(folder, Trajectory(task_id=name, attempt=number))

    names = [f"writer-{number}" for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, names))
    written = list(read_trajectories(folder))
    for name in names:
        assert [one.attempt for one in written if one.task_id == name] == list(range(20))


def test_a_full_disk_leaves_whole_files_and_raises(folder: Path) -> None:
    write_trajectory(folder, Trajectory(task_id="small"))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))
    try:
        with pytest.raises(MachineryError):
            write_trajectory(folder, Trajectory(task_id="large", patch="x" * 4000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert len(list(folder.iterdir())) == 1
    assert [one.task_id for one in read_trajectories(folder)] == ["small"]


def test_a_file_of_another_kind_is_named(folder: Path) -> None:
    with pytest.raises(InvalidArgumentError):
        list(read_trajectories(folder))
    folder.mkdir(parents=True)
    path = folder / "a.json"
    path.write_text('{"task_id": "x", "messages": [{"role": "user", "content": ""}, {}]}')
    with pytest.raises(InvalidArgumentError, match=r"messages\[1\]"):
        list(read_trajectories(folder))
    for data in (b"\x1f\x8b\xff\n", b"[]\n", b'{"turns": [{"token_ids": []}]}\n', b'{"task_id'):
        path.write_bytes(data)
        with pytest.raises(InvalidArgumentError, match=r"a\.json"):
            list(read_trajectories(folder))


def test_any_text_comes_back(folder: Path) -> None:
    turn = Turn(action="\udcff\n\u2028é", observation="\x00", logprobs=(float("-inf"),))
    trajectory = Trajectory(task_id="t", turns=(turn,))
    write_trajectory(folder, trajectory)
    assert list(read_trajectories(folder)) == [trajectory]
