"""Pulls and removes the images of a run in windows, if the disk cannot hold all of them."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

from coding_gym.errors import InvalidArgumentError, SandboxError
from coding_gym.sandbox import get_backend
from coding_gym.sandbox.images.fetching import fetch_image
from coding_gym.sandbox.images.layout import find_image
from coding_gym.sandbox.images.store import remove_unpacked
from coding_gym.task import Task

_POLL_S = 0.2
_log = logging.getLogger(__name__)

Attempt = tuple[Task, int]


class ImageWindows:
    """Yields the attempts of a run in the order of their windows of images.

    At most two windows of images are on disk at a time. While the attempts of one window run, a
    thread pulls the images of the next window. When all attempts of a window have ended, the thread
    removes its images and pulls another window. Images that existed before the run are kept.
    Iteration blocks until the images of the next attempt's window are pulled. If an image cannot be
    pulled, a warning is logged, and its attempts end with an error.

    Args:
        attempts: Pairs of a task and the number of an attempt.
        size: Number of images in a window.
        sandbox: Name of the run's backend: ``namespace``, or ``auto`` if it selects that backend.
        is_over: Returns True when no more attempts start.

    Raises:
        InvalidArgumentError: The backend does not use pulled images.
    """

    def __init__(
        self, attempts: Iterable[Attempt], size: int, sandbox: str, is_over: Callable[[], bool]
    ) -> None:
        self._backend = get_backend(sandbox)
        if self._backend.name != "namespace":
            raise InvalidArgumentError(
                f"images_window needs the 'namespace' sandbox, got {self._backend.name!r}; omit it"
            )
        attempts = list(attempts)
        images = list(dict.fromkeys(task.image for task, _ in attempts if _is_absent(task.image)))
        self._images = [images[start : start + size] for start in range(0, len(images), size)]
        window_by_image = {name: n for n, names in enumerate(self._images) for name in names}
        self._window_of = {task.task_id: window_by_image.get(task.image, 0) for task, _ in attempts}
        self._attempts = sorted(attempts, key=lambda pair: self._window_of[pair[0].task_id])
        self._num_unfinished = Counter(self._window_of[task.task_id] for task, _ in attempts)
        self._pulled: dict[int, list[str]] = {}
        self._is_over = is_over
        self._puller = ThreadPoolExecutor(1, "coding_gym-images")
        self._pulls = [self._puller.submit(self._pull, n) for n in range(len(self._images))]

    def __iter__(self) -> Iterator[Attempt]:
        """Yields each attempt after its window is pulled, or after the run is over.

        Raises:
            MissingDependencyError: skopeo is not installed.
        """
        for task, attempt in self._attempts:
            if self._pulls:
                self._pulls[self._window_of[task.task_id]].result()
            yield task, attempt

    def finish(self, task_id: str) -> None:
        """Counts an attempt at a task as ended; one thread at a time may call it."""
        self._num_unfinished[self._window_of[task_id]] -= 1

    def close(self) -> None:
        """Waits for a running pull, then removes all images; call it when no attempt runs."""
        self._is_over = lambda: True
        self._puller.shutdown()
        for number in list(self._pulled):
            self._remove(number)

    def _pull(self, number: int) -> None:
        """Pulls the images of a window after the images of the window two before are removed."""
        if number > 1:
            while self._num_unfinished[number - 2]:
                if self._is_over():
                    return
                time.sleep(_POLL_S)
            self._remove(number - 2)
        names = self._images[number]
        self._pulled[number] = [name for name in names if not self._is_over() and _fetch(name)]

    def _remove(self, number: int) -> None:
        for name in self._pulled.pop(number, ()):
            try:
                remove_unpacked(name, self._backend)
            except OSError as problem:
                _log.warning("image %r cannot be removed: %s", name, problem)


def _fetch(name: str) -> bool:
    try:
        fetch_image(name)
    except (InvalidArgumentError, SandboxError) as problem:
        _log.warning("%s", problem)
        return False
    return True


def _is_absent(image: str) -> bool:
    try:
        return bool(image) and not find_image(image)
    except InvalidArgumentError:
        return True
