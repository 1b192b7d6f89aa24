"""Random runs with image windows: none waits forever, and none leaves an image behind."""

import asyncio
import random
from typing import Any
from unittest import mock

import pytest

from coding_gym.errors import InvalidArgumentError, SandboxError
from coding_gym.rollout import image_windows
from coding_gym.rollout.image_windows import ImageWindows


class _CancelledRunError(Exception):
    pass


class _Disk:
    """Images in memory, in place of skopeo and the image store."""

    def __init__(self, rng: random.Random, capacity: int) -> None:
        self.rng, self.capacity = rng, capacity
        self.images: set[str] = set()

    def find(self, name: str) -> None:
        if name not in self.images:
            raise InvalidArgumentError(name)

    def fetch(self, name: str) -> None:
        if self.rng.random() < 0.2:
            raise SandboxError(name)
        self.images.add(name)
        assert len(self.images) <= self.capacity

    def remove(self, name: str, _: Any) -> None:
        self.images.discard(name)
        if self.rng.random() < 0.1:
            raise OSError(name)


@pytest.mark.parametrize("seed", range(40))
def test_random_runs_end_and_leave_no_image(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    window, concurrency = rng.randint(1, 3), rng.randint(1, 8)
    disk = _Disk(rng, 2 * window)
    monkeypatch.setattr(image_windows, "find_image", disk.find)
    monkeypatch.setattr(image_windows, "fetch_image", disk.fetch)
    monkeypatch.setattr(image_windows, "remove_unpacked", disk.remove)
    backend = mock.Mock()
    backend.name = "namespace"
    monkeypatch.setattr(image_windows, "get_backend", lambda _: backend)
    spellings = [name for n in range(8) for name in (f"image{n}", f"image{n}:latest")]
    attempts = [(mock.Mock(image=rng.choice([*spellings, "", "/layout"])), n) for n in range(40)]
    num_before_stop = rng.choice([5, 20, 100])
    num_before_cancel = rng.choice([5, 20, 100])
    played: list[int] = []
    windows = ImageWindows(attempts, window, "auto", lambda: len(played) >= num_before_stop)
    remaining = iter(windows.attempts)

    async def work() -> None:
        for task, attempt in remaining:
            async with windows.pulled(task) as failure:
                if len(played) >= num_before_stop:
                    break
                if failure is None and task.image not in ("", "/layout"):
                    assert f"{task.image.removesuffix(':latest')}:latest" in disk.images
                await asyncio.sleep(0)
                played.append(attempt)
                if len(played) == num_before_cancel:
                    raise _CancelledRunError

    async def run() -> None:
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(work())

    try:
        asyncio.run(run())
    except* _CancelledRunError:
        pass
    windows.close()
    assert disk.images == set()
    if num_before_stop == num_before_cancel == 100:
        assert sorted(played) == list(range(40))
