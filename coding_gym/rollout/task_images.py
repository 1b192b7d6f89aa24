"""Runs whose images do not fit on the disk together: pulled and removed while the run plays."""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator

from coding_gym.errors import InvalidArgumentError, SandboxError
from coding_gym.sandbox import get_backend
from coding_gym.sandbox.images import ImageStore, fetch_image, find_image
from coding_gym.task import Task

_log = logging.getLogger(__name__)


class TaskImages:
    """The attempts of a run, ordered by image; each image is on the disk only while needed.

    Iteration pulls an image before it yields the first attempt that needs it, and `finish` removes
    the image after the last one, so the disk holds at most one image more than attempts play at the
    same time. Images that were there before stay. An image that cannot be pulled is logged, and its
    attempts fail on their own.

    Args:
        attempts: Tasks, with the number of the attempt.
        sandbox: Name of the run's backend, which must be ``namespace`` or become it.

    Raises:
        InvalidArgumentError: The backend does not use pulled images.
    """

    def __init__(self, attempts: Iterable[tuple[Task, int]], sandbox: str) -> None:
        self._backend = get_backend(sandbox)
        if self._backend.name != "namespace":
            raise InvalidArgumentError(
                f"pull_images needs the 'namespace' sandbox, got {self._backend.name!r}"
            )
        self._attempts = sorted(attempts, key=lambda one: one[0].image)
        self._image_of = {task.task_id: task.image for task, _ in self._attempts}
        self._missing = {image for image in self._image_of.values() if _is_missing(image)}
        self._num_left = Counter(task.image for task, _ in self._attempts)
        self._pulled: set[str] = set()

    def __iter__(self) -> Iterator[tuple[Task, int]]:
        """Yields the attempts, each once its image is there.

        Raises:
            MissingDependencyError: skopeo is not installed.
        """
        for task, attempt in self._attempts:
            if task.image in self._missing:
                self._missing.remove(task.image)
                try:
                    fetch_image(task.image)
                    self._pulled.add(task.image)
                except (InvalidArgumentError, SandboxError) as problem:
                    _log.warning("%s", problem)
            yield task, attempt

    def finish(self, task_id: str) -> None:
        """Counts an attempt at a task as over; called by one thread at a time."""
        image = self._image_of[task_id]
        self._num_left[image] -= 1
        if not self._num_left[image]:
            self._remove(image)

    def close(self) -> None:
        """Removes all images that were pulled; called when no attempt runs."""
        for image in [*self._pulled]:
            self._remove(image)

    def _remove(self, image: str) -> None:
        if image in self._pulled:
            self._pulled.remove(image)
            try:
                ImageStore().remove(image, self._backend)
            except OSError as problem:
                _log.warning("image %r cannot be removed: %s", image, problem)


def _is_missing(image: str) -> bool:
    if not image:
        return False
    try:
        find_image(image)
    except InvalidArgumentError:
        return True
    return False
