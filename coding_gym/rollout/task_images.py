"""Pulls the images of a run's tasks when attempts need them, and removes them afterwards."""

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


class TaskImages:
    """The images that a run pulls: from the first attempt at their tasks to the last one.

    Images that existed before the run are kept.

    Args:
        attempts: Pairs of a task and the number of an attempt.
        sandbox: Name of the run's backend: ``namespace``, or ``auto`` if it selects that backend.

    Raises:
        InvalidArgumentError: The backend does not use pulled images.
    """

    def __init__(self, attempts: Iterable[tuple[Task, int]], sandbox: str) -> None:
        self._backend = get_backend(sandbox)
        if self._backend.name != "namespace":
            raise InvalidArgumentError(
                f"pull_images needs the 'namespace' sandbox, got {self._backend.name!r}; omit it"
            )
        images = Counter(task.image for task, _ in attempts)
        self._num_pending = {name: n for name, n in images.items() if _is_absent(name)}
        self._lock = asyncio.Lock()  # no image may be removed while another one is pulled

    @asynccontextmanager
    async def pulled(self, task: Task) -> AsyncIterator[None]:
        """Pulls the image of an attempt; removes it after the last attempt that needs it.

        Raises:
            SandboxUnavailableError: skopeo is not installed.
            SandboxError: The image cannot be pulled.
        """
        name = task.image
        if name not in self._num_pending:
            yield
            return
        try:
            async with self._lock:
                await asyncio.to_thread(_fetch, name)
            yield
        finally:
            self._num_pending[name] -= 1
            if not self._num_pending[name]:
                async with self._lock:
                    await asyncio.to_thread(self._remove, name)

    def close(self) -> None:
        """Removes the remaining images; call it when no attempt runs."""
        for name, num_pending in self._num_pending.items():
            if num_pending:
                self._remove(name)

    def _remove(self, name: str) -> None:
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
