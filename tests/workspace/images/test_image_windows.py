"""Runs that pull images when tasks need them, and remove images that no task needs any more."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from image_fixtures import entry, oci_layout, tar_of
from registries import Registry, running_registry
from workspace_scene import MakeTask

from coding_gym.episode import config
from coding_gym.errors import InvalidArgumentError
from coding_gym.evaluation import evaluate
from coding_gym.sandbox.images import fetching
from coding_gym.sandbox.images.fetching import fetch_image
from coding_gym.sandbox.images.layout import image_folder, image_names
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


def _play(out: Path, tasks: list[Task], **options: Any) -> list[Trajectory]:
    run = evaluate(out, "gold", tasks=tasks, images_window=1, **options)
    return [*run.trajectories(), *run.errors()]


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


def test_an_image_that_cannot_be_pulled_fails_only_its_task(
    tmp_path: Path,
    cache: Path,
    tasks: list[Task],
    registry: Registry,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetching, "_NUM_RETRIES", 0)
    missing = read_task(tasks[0].to_row() | {"image": f"{registry.host}/none:1"})
    records = _play(tmp_path / "run", [missing, tasks[1]], episode=_UNGRADED)
    classes = {(record.task_id, record.error_class) for record in records}
    assert classes == {("shapes-0", "sandbox"), ("shapes-1", "")}
    assert image_names() == []


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
    assert image_names() == []


def test_backend_without_pulled_images_is_refused(
    tmp_path: Path, cache: Path, tasks: list[Task]
) -> None:
    with pytest.raises(InvalidArgumentError, match="images_window"):
        _play(tmp_path / "run", tasks, episode={"sandbox": "landlock"})
