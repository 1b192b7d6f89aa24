"""Pulls the images of a run's tasks in windows, if the disk cannot hold all of them."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress

from coding_gym.errors import (
    InvalidArgumentError,
    MissingDependencyError,
    SandboxError,
    SandboxUnavailableError,
)
from coding_gym.sandbox import get_backend
from coding_gym.sandbox.images.fetching import fetch_image
from coding_gym.sandbox.images.layout import find_image, full_name
from coding_gym.sandbox.images.store import remove_unpacked
from coding_gym.task import Task

_log = logging.getLogger(__name__)


class ImageWindows:
    """Pulls each image before its first attempt, and removes the image after its last attempt.

    While attempts use the images of one window, the images of the next window are pulled, so at
    most two windows of images are on disk. Images that existed before the run are kept. A running
    pull cannot be cancelled; the end of the run waits for it.

    Args:
        attempts: Pairs of a task and the number of an attempt.
        window: The number of images in a window.
        sandbox: Name of the run's backend: ``namespace``, or ``auto`` if it selects ``namespace``.
        is_over: Returns whether no more attempts begin; then no more images are pulled.

    Attributes:
        attempts: The attempts in the order of the pulls; they must begin in this order.

    Raises:
        InvalidArgumentError: The backend does not use pulled images.
    """

    def __init__(
        self,
        attempts: Iterable[tuple[Task, int]],
        window: int,
        sandbox: str,
        is_over: Callable[[], bool],
    ) -> None:
        self._backend = get_backend(sandbox)
        if self._backend.name != "namespace":
            raise InvalidArgumentError(
                f"sandbox must be 'namespace', or omit images_window; got {self._backend.name!r}"
            )
        attempts = list(attempts)
        images = {task.image for task, _ in attempts}
        self._names = {image: _name_to_pull(image) for image in images}
        self.attempts = sorted(attempts, key=lambda pair: self._names[pair[0].image])
        names = (self._names[task.image] for task, _ in self.attempts)
        self._num_pending = Counter(filter(None, names))  # attempts by image
        self._is_over = is_over
        self._slots = asyncio.Semaphore(2 * window)  # for images on disk
        self._pull_lock = asyncio.Lock()  # images of one window share layers
        self._pulls: dict[str, asyncio.Task[SandboxError | None]] = {}
        self._on_disk: set[str] = set()  # images whose pull has begun, until they are removed

    @asynccontextmanager
    async def pulled(self, task: Task) -> AsyncIterator[SandboxError | None]:
        """Waits for the image of an attempt and yields None, or the error of the pull.

        The last attempt that needs the image removes it. When the run is over, no image is pulled.
        """
        if not self._pulls:
            self._pulls = {
                name: asyncio.create_task(self._pull(name)) for name in self._num_pending
            }
        name = self._names[task.image]
        if not name:
            yield None
            return
        pull = self._pulls[name]
        try:
            yield await asyncio.shield(pull)
        finally:
            self._num_pending[name] -= 1
            # If the run is cancelled, a thread may still pull; `close` then removes the image.
            if not self._num_pending[name] and pull.done():
                try:
                    await asyncio.to_thread(self._remove, name)
                finally:
                    self._slots.release()

    async def _pull(self, name: str) -> SandboxError | None:
        """Pulls an image when a slot is free; returns None, or the error."""
        await self._slots.acquire()
        async with self._pull_lock:
            if self._is_over():
                return None
            self._on_disk.add(name)
            try:
                await asyncio.to_thread(fetch_image, name)
            except MissingDependencyError as problem:  # every other attempt would fail, too
                return SandboxUnavailableError(str(problem))
            except SandboxError as problem:
                return problem
        return None

    def close(self) -> None:
        """Removes the remaining images; to be called after the run, when no pull is active."""
        for name in sorted(self._on_disk):
            self._remove(name)

    def _remove(self, name: str) -> None:
        self._on_disk.discard(name)
        try:
            remove_unpacked(name, self._backend)
        except OSError as problem:
            _log.warning("image %r cannot be removed: %s", name, problem)


def _name_to_pull(image: str) -> str:
    """Returns the full name of an image that is not on disk; "" for any other text."""
    try:
        find_image(image)
    except InvalidArgumentError:
        with suppress(InvalidArgumentError):  # a path, or no image
            return full_name(image)
    return ""
