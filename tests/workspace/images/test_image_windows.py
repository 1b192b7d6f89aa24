"""Runs that pull images when tasks need them, and remove images that no task needs any more."""

import gc
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from image_fixtures import entry, oci_layout, tar_of
from registries import Registry, running_registry
from sandbox_fixtures import wait_until
from workspace_scene import MakeTask

from coding_gym.agents.built_in import get_player
from coding_gym.agents.player import Player
from coding_gym.episode import config
from coding_gym.errors import InvalidArgumentError, SandboxUnavailableError
from coding_gym.evaluation import evaluate
from coding_gym.sandbox.images import fetching
from coding_gym.sandbox.images.fetching import fetch_image
from coding_gym.sandbox.images.layout import image_folder, image_names, read_manifest
from coding_gym.task import Task
from coding_gym.tasks.task_row import read_task
from coding_gym.trajectory import Trajectory

pytestmark = pytest.mark.slow

_NUM_IMAGES = 3
_UNGRADED = {"grading": "none"}


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory, layers: list[bytes]) -> Iterator[Registry]:
    folder = tmp_path_factory.mktemp("registry")
    env = ["PATH=/opt/python/bin:/bin"]
    with running_registry(folder) as server:
        for number in range(_NUM_IMAGES):
            layer = tar_of([entry("number", f"{number}")])
            layout = oci_layout(folder / f"layout{number}", [*layers, layer], Env=env)
            server.push(f"project:{number}", layout)
        yield server


@pytest.fixture(scope="module")
def cache() -> Iterator[Path]:
    """A cache only for these tests, because they remove layers that other tests use."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as monkeypatch:
        Path(folder).chmod(0o755)
        monkeypatch.setenv("XDG_CACHE_HOME", folder)
        config._template_store.cache_clear()
        yield Path(folder) / "coding_gym" / "layers"
        config._template_store.cache_clear()  # later tests use the cache of the test run


@pytest.fixture(autouse=True)
def image_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def tasks(registry: Registry, make_image_task: MakeTask) -> list[Task]:
    return [
        make_image_task(instance_id=f"shapes-{number}", image=f"{registry.host}/project:{number}")
        for number in range(_NUM_IMAGES)
    ]


def _play(
    out: Path, tasks: list[Task], player: Player | str = "gold", **options: Any
) -> list[Trajectory]:
    run = evaluate(out, player, tasks=tasks, images_window=1, **options)
    return [*run.trajectories(), *run.errors()]


async def _set(event: threading.Event) -> None:
    event.set()


def _assert_no_images() -> None:
    assert [path.name for path in image_folder().glob("*/")] == [".blobs"]
    assert list((image_folder() / ".blobs").glob("*/*")) == []


def test_images_are_on_disk_only_while_attempts_need_them(
    tmp_path: Path, cache: Path, tasks: list[Task], registry: Registry
) -> None:
    fetch_image(tasks[0].image)  # the run must not remove an image that it has not pulled
    before = {folder.name for folder in cache.glob("*/")}
    image_counts: list[int] = []
    task_numbers: list[int] = []

    def count(record: Trajectory) -> None:
        task_numbers.append(int(record.task_id[-1]))
        image_counts.append(len(image_names()))

    options = {"attempts": 2, "concurrency": 1, "episode": _UNGRADED}
    records = _play(tmp_path / "run", tasks, on_done=count, **options)
    assert [record.error for record in records] == [""] * 2 * _NUM_IMAGES
    assert max(image_counts) <= 3  # two windows, and the image before the run
    assert sorted(task_numbers) == [number for number in range(_NUM_IMAGES) for _ in range(2)]
    assert image_names() == [tasks[0].image]
    blobs = {path.name for path in (image_folder() / ".blobs").glob("*/*")}
    assert blobs == {path.name for path in fetch_image(tasks[0].image).glob("blobs/*/*")}
    # The layers of the remaining image: two shared by all images, and one of this image.
    assert len({folder.name for folder in cache.glob("*/")} - before) <= 3


def test_each_image_is_pulled_once_or_fails_only_its_task(
    tmp_path: Path,
    cache: Path,
    tasks: list[Task],
    registry: Registry,
    layers: list[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetching, "_NUM_RETRIES", 0)
    monkeypatch.chdir(tmp_path)
    oci_layout(tmp_path / "layouts" / "local", layers, Env=["PATH=/opt/python/bin:/bin"])
    incomplete = oci_layout(tmp_path / "layout", [*layers, tar_of([entry("lost", "x")])])
    registry.push("incomplete:1", incomplete)
    registry.blob(read_manifest(incomplete).layers[-1]).unlink()
    registry.push("project:latest", registry.folder / "layout0")
    images = {
        f"{registry.host}/none:1": "sandbox",
        f"{registry.host}/incomplete:1": "sandbox",
        f"{registry.host}/project": "",
        f"{registry.host}/project:latest": "",  # the same image
        "layouts/local": "",  # a relative path, which is not pulled
    }
    row = tasks[0].to_row()
    rows = [read_task(row | {"instance_id": image, "image": image}) for image in images]
    records = _play(tmp_path / "run", rows, concurrency=1, episode=_UNGRADED)
    assert {record.task_id: record.error_class for record in records} == images
    _assert_no_images()


def test_a_failed_pull_without_attempts_is_not_reported(
    tmp_path: Path,
    cache: Path,
    tasks: list[Task],
    registry: Registry,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(fetching, "_NUM_RETRIES", 0)
    runners: list[Any] = []
    missing = read_task(tasks[1].to_row() | {"image": f"{registry.host}/z-none:1"})
    _play(
        tmp_path / "run",
        [tasks[0], missing],
        concurrency=1,
        episode=_UNGRADED,
        on_start=lambda runner, *_: runners.append(runner),
        on_done=lambda _: runners[0].interrupt(),
    )
    gc.collect()
    assert [record for record in caplog.records if record.name == "asyncio"] == []


def test_a_run_without_skopeo_or_with_another_backend_is_refused(
    tmp_path: Path, cache: Path, tasks: list[Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidArgumentError, match="images_window"):
        _play(tmp_path / "run", tasks, episode={"sandbox": "landlock"})
    monkeypatch.setattr(fetching.shutil, "which", lambda _: None)
    with pytest.raises(SandboxUnavailableError, match="skopeo"):
        _play(tmp_path / "other", tasks, episode=_UNGRADED)


@pytest.mark.parametrize("is_cancelled", [False, True], ids=["once", "twice"])
def test_ctrl_c_during_a_pull_leaves_no_image(
    tmp_path: Path,
    cache: Path,
    tasks: list[Task],
    monkeypatch: pytest.MonkeyPatch,
    is_cancelled: bool,
) -> None:
    copy, copied = fetching._copy, []

    def interrupt(name: str, target: str) -> None:
        copied.append(name)
        os.kill(os.getpid(), signal.SIGINT)
        wait_until(lambda: runners[0].stopped)
        if is_cancelled:
            os.kill(os.getpid(), signal.SIGINT)
            wait_until(cancelled.is_set)
        copy(name, target)

    runners: list[Any] = []
    cancelled = threading.Event()
    player = get_player("gold")
    monkeypatch.setattr(player, "close", partial(_set, cancelled))
    monkeypatch.setattr(fetching, "_copy", interrupt)
    with pytest.raises(KeyboardInterrupt) if is_cancelled else nullcontext():
        records = _play(
            tmp_path / "run",
            tasks,
            player,
            episode=_UNGRADED,
            on_start=lambda runner, *_: runners.append(runner),
        )
        assert records == []
    assert len(copied) == 1
    _assert_no_images()


@pytest.mark.parametrize("is_failing", [False, True], ids=["stopped", "failing"])
def test_a_run_that_ends_early_leaves_no_pulled_image(
    tmp_path: Path, cache: Path, tasks: list[Task], is_failing: bool
) -> None:
    runners: list[Any] = []

    def end(_: Trajectory) -> None:
        if is_failing:  # while the third attempt waits for its image
            raise OSError("the disk is full")
        runners[0].stopped = "enough"

    options = {"concurrency": 3, "episode": _UNGRADED, "on_done": end}
    options["on_start"] = lambda runner, *_: runners.append(runner)
    with pytest.raises(OSError, match="full") if is_failing else nullcontext():
        records = _play(tmp_path / "run", tasks, **options)
        assert [record.error for record in records if record.error] == []  # its image stayed
        assert len(records) < _NUM_IMAGES  # the attempt that waits for its image does not begin
    assert image_names() == []
