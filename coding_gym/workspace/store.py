"""Templates on disk: built once for each content, then only looked up."""

from functools import partial
from pathlib import Path
from threading import Lock

from platformdirs import user_cache_path

from coding_gym.arguments import at_least_one, positive_seconds
from coding_gym.errors import TemplateError
from coding_gym.sandbox import get_backend
from coding_gym.task import Task
from coding_gym.workspace.builder import Builder
from coding_gym.workspace.host_git import HostGitError
from coding_gym.workspace.installing import BUILD_TIMEOUT_S
from coding_gym.workspace.template import Template

_REMEMBERED = 4096


class TemplateStore:
    """Gives each task its template, after building the missing parts.

    Templates lie in a cache folder that any number of processes may share and anyone may delete
    while nothing runs; `coding_gym.workspace.cache` removes what is not in use at any time. They
    are named by their content, never half-made, and built once. Templates that a store gave
    count as used for as long as the store is there.

    Args:
        backend: Name of the sandbox backend that the templates are for.
        folder: The cache folder; the user's own by default.
        depth: Generations of history that a task from a git repository gets, its base commit
            included; with merges these are many more commits. None for all of them.
        build_timeout_s: How long all install commands of a task may take together, and how long a
            fetch of its repository from elsewhere.

    Raises:
        InvalidArgumentError: An argument is out of range.
    """

    def __init__(
        self,
        backend: str = "auto",
        folder: Path | None = None,
        *,
        depth: int | None = 50,
        build_timeout_s: float = BUILD_TIMEOUT_S,
    ) -> None:
        self._backend_name = backend
        self._folder = folder or user_cache_path("coding_gym")
        self._make_builder = partial(
            Builder,
            folder=self._folder,
            depth=None if depth is None else at_least_one("depth", depth),
            timeout_s=positive_seconds("build_timeout_s", build_timeout_s),
        )
        self._remembered: dict[int, tuple[Task, Template]] = {}
        self._builder: Builder | None = None
        self._lock = Lock()

    def get(self, task: Task) -> Template:
        """Returns the task's template, built now if it is the first time.

        The template of a task object that was requested before is taken from memory.

        Raises:
            InvalidTaskError: A field of the task cannot be used; the message names it.
            TemplateError: The tree or the environment could not be built.
            MissingDependencyError: Git is not installed.
            SandboxError: No sandbox could be opened.
        """
        known = self._remembered.get(id(task))
        if known is not None and known[0] is task:
            return known[1]
        template = self._look_up(task)
        if len(self._remembered) >= _REMEMBERED:
            self._remembered.clear()
        self._remembered[id(task)] = (task, template)
        return template

    def _look_up(self, task: Task) -> Template:
        try:
            with self._lock:
                if self._builder is None:
                    self._builder = self._make_builder(get_backend(self._backend_name))
            return self._builder.template(task)
        except HostGitError as error:
            raise TemplateError(f"task {task.task_id}: git failed: {error}") from error
        except OSError as error:
            raise TemplateError(
                f"task {task.task_id}: cannot build its template below {self._folder}: "
                f"{error.strerror or error}; free space there, or give the store another folder"
            ) from error
