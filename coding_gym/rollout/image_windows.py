"""Runs whose images do not fit on the disk together: pulled and removed while the run plays."""

import logging
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from threading import Condition, Thread
from types import TracebackType
from typing import Self

from coding_gym.arguments import at_least_one
from coding_gym.errors import CodingGymError, InvalidArgumentError, SandboxError
from coding_gym.sandbox import get_backend
from coding_gym.sandbox.images import ImageStore, fetch_image, find_image, image_folder, layer_sizes
from coding_gym.task import Task

_UNPACKED = 3  # bytes of a layer on the disk for each byte of its compressed blob, typically
_POLL_S = 0.2
_log = logging.getLogger(__name__)

Attempt = tuple[Task, int]


class ImageWindows:
    """The attempts of a run, ordered by image, with the images of two windows on the disk.

    While the attempts of one window play, a thread pulls the images of the next. It pulls no
    further before the attempts of a window are over, and removes that window's images first. Images
    that were there before stay. Iteration blocks until the images of the next attempt are there; an
    image that cannot be pulled is logged, and its attempts fail on their own.

    Args:
        attempts: Tasks, with the number of the attempt.
        size: Images of a window.
        sandbox: Name of the run's backend, which must be ``namespace`` or become it.
        is_over: Whether no more attempts begin.

    Raises:
        InvalidArgumentError: The images of two windows do not fit on the disk, or the backend does
            not use pulled images.
        MissingDependencyError: skopeo is not installed.
    """

    def __init__(
        self, attempts: Iterable[Attempt], size: int, sandbox: str, is_over: Callable[[], bool]
    ) -> None:
        at_least_one("images_window", size)
        self._backend = get_backend(sandbox)
        self._store = ImageStore()
        if self._backend.name != "namespace":
            raise InvalidArgumentError(
                f"images_window needs the 'namespace' sandbox, got {self._backend.name!r}"
            )
        attempts = list(attempts)
        images = list(dict.fromkeys(task.image for task, _ in attempts if _is_absent(task.image)))
        self._images = [images[start : start + size] for start in range(0, len(images), size)]
        number_of = {name: n for n, names in enumerate(self._images) for name in names}
        self._window_of = {task.task_id: number_of.get(task.image, 0) for task, _ in attempts}
        self._attempts = sorted(attempts, key=lambda one: self._window_of[one[0].task_id])
        self._left = Counter(self._window_of[task.task_id] for task, _ in attempts)
        self._pulled: dict[int, list[str]] = {}
        self._is_over = is_over
        self._changed = Condition()
        _check_space([name for names in self._images[:2] for name in names])
        self._puller = Thread(target=self._pull, name="coding_gym-images")

    def __enter__(self) -> Self:
        self._puller.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Waits for the image that is being pulled, and removes all that were pulled.

        No attempt may run any more.
        """
        with self._changed:
            self._is_over = lambda: True
        self._puller.join()
        for number in list(self._pulled):
            self._remove(number)

    def __iter__(self) -> Iterator[Attempt]:
        """Yields the attempts; ends early when the run is over."""
        for task, attempt in self._attempts:
            number = self._window_of[task.task_id]
            if self._images and not self._wait_until(partial(self._is_pulled, number)):
                return
            yield task, attempt

    def finish(self, task_id: str) -> None:
        """Counts an attempt at a task as over."""
        with self._changed:
            self._left[self._window_of[task_id]] -= 1
            self._changed.notify_all()

    def _is_pulled(self, number: int) -> bool:
        return number in self._pulled

    def _is_done(self, number: int) -> bool:
        return not self._left[number]

    def _pull(self) -> None:
        """Pulls the windows, each after the one before the last is done and removed."""
        for number, names in enumerate(self._images):
            if number > 1:
                if not self._wait_until(partial(self._is_done, number - 2)):
                    return
                self._remove(number - 2)
            fetched = [name for name in names if not self._is_over() and self._fetch(name)]
            with self._changed:
                self._pulled[number] = fetched
                self._changed.notify_all()

    def _fetch(self, name: str) -> bool:
        try:
            fetch_image(name)
        except CodingGymError as problem:
            _log.warning("%s", problem)
            return False
        return True

    def _remove(self, number: int) -> None:
        for name in self._pulled.pop(number):
            try:
                self._store.remove(name, self._backend)
            except OSError as problem:
                _log.warning("image %r cannot be removed: %s", name, problem)

    def _wait_until(self, is_met: Callable[[], bool]) -> bool:
        """Waits for a condition; returns False if the run is over first."""
        with self._changed:
            while not is_met():
                if self._is_over():
                    return False
                self._changed.wait(_POLL_S)
        return True


def _is_absent(image: str) -> bool:
    if not image:
        return False
    try:
        find_image(image)
    except InvalidArgumentError:
        return True
    return False


def _check_space(images: Sequence[str]) -> None:
    """Raises InvalidArgumentError where images do not fit on the disk, with the figures."""
    sizes: dict[str, int] = {}
    for name in images:
        with suppress(InvalidArgumentError, SandboxError):  # reported when it is pulled
            sizes |= layer_sizes(name)
    total = sum(sizes.values())
    needed: Counter[int] = Counter()
    places = {}
    for folder, factor in ((image_folder(), 1), (ImageStore().folder, _UNPACKED)):
        place = next(path for path in (folder, *folder.parents) if path.exists())
        places[device := place.stat().st_dev] = place
        needed[device] += total * factor
    for device, place in places.items():
        size, free = needed[device], shutil.disk_usage(place).free
        if size > free:
            raise InvalidArgumentError(
                f"the images of two windows need about {size / 1e9:.3g} GB in {place}, where "
                f"{free / 1e9:.3g} GB are free; remedy: a smaller images_window, or free space"
            )
