"""Pulls the images of a run's tasks in windows, if the disk cannot hold all of them."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from coding_gym.errors import (
    InvalidArgumentError,
    MissingDependencyError,
    SandboxUnavailableError,
)
from coding_gym.sandbox import get_backend
from coding_gym.sandbox.images.fetching import fetch_image
from coding_gym.sandbox.images.layout import full_name, image_names
from coding_gym.sandbox.images.store import remove_unpacked
from coding_gym.task import Task

_log = logging.getLogger(__name__)


class ImageWindows:
    """The images that a run pulls: before the first attempt at their tasks, until the last one.

    While attempts use the images of a window, as many further images are pulled. So at most two
    windows of images are on disk. Images that existed before the run are kept.

    Args:
        attempts: Pairs of a task and the number of an attempt.
        window: The number of images in a window.
        sandbox: Name of the run's backend: ``namespace``, or ``auto`` if it selects that backend.

    Attributes:
        attempts: The attempts, in the order in which their images are pulled.

    Raises:
        InvalidArgumentError: The backend does not use pulled images.
    """

    def __init__(self, attempts: Iterable[tuple[Task, int]], window: int, sandbox: str) -> None:
        self._backend = get_backend(sandbox)
        if self._backend.name != "namespace":
            raise InvalidArgumentError(
                f"images_window needs the 'namespace' sandbox, got {self._backend.name!r}; omit it"
            )
        self.attempts = sorted(attempts, key=lambda pair: pair[0].image)
        images = Counter(task.image for task, _ in self.attempts)
        self._num_pending = {name: n for name, n in images.items() if _is_absent(name)}
        self._on_disk = asyncio.Semaphore(2 * window)
        self._pulls: dict[str, asyncio.Task[None]] = {}
        self._begun: set[str] = set()  # images whose pull has begun, until they are removed
        self._pull_lock = asyncio.Lock()  # images of one window share layers

    @asynccontextmanager
    async def pulled(self, task: Task) -> AsyncIterator[None]:
        """Waits for the image of an attempt; removes it after the last attempt that needs it.

        Raises:
            SandboxUnavailableError: skopeo is not installed.
            InvalidArgumentError, SandboxError: The image cannot be pulled.
        """
        name = task.image
        if name not in self._num_pending:
            yield
            return
        if not self._pulls:
            self._pulls = {n: asyncio.create_task(self._pull(n)) for n in self._num_pending}
        try:
            await asyncio.shield(self._pulls[name])
            yield
        finally:
            self._num_pending[name] -= 1
            # If the run is cancelled, a thread may still pull; `close` then removes the image.
            if not self._num_pending[name] and self._pulls[name].done():
                await asyncio.to_thread(self._remove, name)
                self._on_disk.release()

    async def _pull(self, name: str) -> None:
        await self._on_disk.acquire()
        async with self._pull_lock:
            self._begun.add(name)
            await asyncio.to_thread(_fetch, name)

    def close(self) -> None:
        """Removes the remaining images; call it when no attempt runs."""
        for name in sorted(self._begun):
            self._remove(name)

    def _remove(self, name: str) -> None:
        self._begun.discard(name)
        try:
            remove_unpacked(name, self._backend)
        except OSError as problem:
            _log.warning("image %r cannot be removed: %s", name, problem)


def _fetch(name: str) -> None:
    try:
        fetch_image(name)
    except MissingDependencyError as problem:  # every other attempt would fail, too
        raise SandboxUnavailableError(str(problem)) from None


def _is_absent(image: str) -> bool:
    """Whether the text is the name of an image that is not on disk."""
    try:
        return full_name(image) not in image_names()
    except InvalidArgumentError:  # a path, or no image
        return False
