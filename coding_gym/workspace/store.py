"""Builds templates on disk, once for each content."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

from coding_gym.arguments import positive_seconds
from coding_gym.errors import (
    InvalidArgumentError,
    InvalidTaskError,
    SandboxUnavailableError,
    TemplateError,
)
from coding_gym.host.toolchains import find_toolchain
from coding_gym.program_output import DISK_FULL, last_line
from coding_gym.sandbox import default_interpreter, find_interpreter, get_backend
from coding_gym.sandbox.folder_cache import FolderCache, content_key
from coding_gym.sandbox.ownership import cache_folder
from coding_gym.sandbox.spec import TMP, Interpreter, Mount, SandboxSpec
from coding_gym.task import Task
from coding_gym.workspace.checkout import Checkouts, seal, store_index
from coding_gym.workspace.clones import Clones
from coding_gym.workspace.environment import Environments
from coding_gym.workspace.history import task_date
from coding_gym.workspace.host_git import HostGitError
from coding_gym.workspace.image_python import ImagePythons
from coding_gym.workspace.image_tree import ImageTrees
from coding_gym.workspace.installing import BUILD_TIMEOUT_S
from coding_gym.workspace.pytest_layer import PytestLayers
from coding_gym.workspace.scripts import run_base_git
from coding_gym.workspace.template import BASE_GIT, Template

# Part of every key; increase it whenever the result of a build changes.
_SCHEMA = 4
_METADATA = "template.json"
_MAX_RECENT = 4096


class TemplateStore:
    """Builds the templates of tasks and caches them.

    All processes can share the cache folder. The folder can be deleted while no process uses it.
    Each template is named by a digest of its content, built once, and either complete or absent.

    Args:
        backend: Name of the sandbox backend that opens the templates.
        folder: The cache folder; by default, the user's.
        build_timeout_s: Time limit, in seconds, of all install commands of a task together, and of
            a fetch of its repository.

    Raises:
        InvalidArgumentError, UnknownNameError: An argument cannot be used.
        SandboxUnavailableError: This machine cannot run the backend; the message has the remedy.
    """

    def __init__(
        self,
        backend: str = "auto",
        folder: Path | None = None,
        *,
        build_timeout_s: float = BUILD_TIMEOUT_S,
    ) -> None:
        timeout_s = positive_seconds("build_timeout_s", build_timeout_s)
        self._folder = folder = (folder or cache_folder()).absolute()
        self._backend = sandboxes = get_backend(backend)

        def cache(kind: str) -> FolderCache:
            return FolderCache(folder / kind)

        self._templates = cache("templates")
        self._images = ImageTrees(cache("image-trees"), sandboxes)
        self._image_pythons = ImagePythons(cache("image-pythons"), sandboxes)
        self._pytest_layers = PytestLayers(cache("pytest"), sandboxes)
        self._checkouts = Checkouts(Clones(cache("mirrors"), timeout_s), self._images)
        self._environments = Environments(
            cache("environments"), sandboxes, self._checkouts, folder / "logs", timeout_s
        )
        self._recent: dict[int, tuple[Task, Template]] = {}

    def get(self, task: Task) -> Template:
        """Returns the task's template; the first call builds it.

        The templates of recent task objects are kept in memory; if `clear_cache` has removed
        the folders of a template, the call builds the template again.

        Raises:
            InvalidTaskError: A field of the task cannot be used; the message names the field.
            TemplateError: The tree or the environment could not be built.
            MissingDependencyError: Git or pytest is not installed.
            SandboxError: No sandbox could be opened.
        """
        entry = self._recent.get(id(task))
        if entry is None or entry[0] is not task or not _exists(entry[1].spec):
            if len(self._recent) >= _MAX_RECENT:
                self._recent.clear()
            entry = self._recent[id(task)] = (task, self._look_up(task))
        return entry[1]

    def _look_up(self, task: Task) -> Template:
        try:
            return self._template(task)
        except HostGitError as error:
            raise TemplateError(f"task {task.task_id}: git failed: {error}") from error
        except OSError as error:
            is_full = error.errno in DISK_FULL
            remedy = "; free space there, or move the cache (XDG_CACHE_HOME)" if is_full else ""
            raise TemplateError(
                f"task {task.task_id}: cannot build its template below {self._folder}: "
                f"{error}{remedy}"
            ) from error

    def _template(self, task: Task) -> Template:
        """Returns a task's template; raises OSError or HostGitError, which `_look_up` converts."""
        # Write access to this folder gives control over tasks and over programs that git runs.
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        digest = self._checkouts.digest(task)
        environment = self._environment_in_image if task.is_in_image else self._environment
        identity, base = environment(task)
        key = content_key(_SCHEMA, digest, identity, self._backend.owner(), self._backend.name)
        folder = self._templates.get(key, partial(self._build, task, digest, base))
        metadata = json.loads((folder / _METADATA).read_text())
        # Commits of a policy get the date of the base, so that their shas are reproducible.
        dates = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), metadata["date"])
        spec = _with_tree(base, folder)
        return Template(
            key=key,
            spec=replace(spec, env={**spec.env, **dates}),
            base_commit=metadata["base_commit"],
            plans=self._folder / "plans",
        )

    def _build(self, task: Task, digest: str, base: SandboxSpec, folder: Path) -> None:
        checkout, owner = self._checkouts.write(task, folder), self._backend.owner()
        if self._checkouts.digest(task) != digest:
            raise TemplateError(
                f"task {task.task_id}: the task's folder changed during the copy; try again"
            )
        seal(checkout, base.layers, owner)
        store_index(checkout, self._refreshed_index(task, _with_tree(base, folder)), owner)
        metadata = {"base_commit": checkout.commit, "date": checkout.date.isoformat()}
        (folder / _METADATA).write_text(json.dumps(metadata))

    def _environment_in_image(self, task: Task) -> tuple[str, SandboxSpec]:
        """Returns the identity of a template in an image, and its spec without the tree."""
        digest = self._images.identity(task)
        try:
            key, base = self._image_pythons.get(task, digest)
        except InvalidArgumentError as error:  # the backend cannot use the image
            raise InvalidTaskError(f"task {task.task_id}: field 'image': {error}") from error
        if task.image_path:
            layer = self._images.get(task, task_date(task)).artifacts
            base = replace(base, layers=(layer,), workspace_alias=task.image_path)
        return f"{digest} {key} {task.image_path}", base

    def _environment(self, task: Task) -> tuple[str, SandboxSpec]:
        """Returns the identity of a template without an image, and its spec without the tree."""
        tools = find_toolchain(task.language)
        if tools.missing and not task.install_commands:  # install commands can install the tools
            raise TemplateError(f"task {task.task_id}: {tools.missing}")
        interpreter = _interpreter(task)
        if task.install_commands:
            key, base = self._environments.get(task, interpreter)
        else:
            try:
                key, base = self._pytest_layers.get(interpreter)
            except TemplateError as error:
                raise TemplateError(f"task {task.task_id}: {error}") from error
        tool_mounts = (Mount(source=path, target=t) for t, path in tools.folders.items())
        path = (*base.path, *(f"{target}/bin" for target in tools.folders))
        return key, replace(base, mounts=(*base.mounts, *tool_mounts), path=path)

    def _refreshed_index(self, task: Task, spec: SandboxSpec) -> bytes:
        """Returns the checkout's index after ``git update-index --really-refresh`` in a sandbox."""
        with self._backend.open(spec) as sandbox:
            copy = f"{sandbox.path(TMP)}/index"
            result = run_base_git(sandbox, "refresh", CG_TMP=copy)
            if not result.ok:
                raise TemplateError(
                    f"task {task.task_id}: the checkout differs from its commit: "
                    f"{last_line(result.output)}"
                )
            return sandbox.read_file(copy, max_bytes=1 << 30)


def _with_tree(base: SandboxSpec, folder: Path) -> SandboxSpec:
    """Returns the spec of a template in ``folder``; ``base`` is the spec of its environment."""
    base_git = Mount(source=folder / "base.git", target=BASE_GIT)
    layers = (folder / "tree", *base.layers)
    return replace(base, layers=layers, mounts=(base_git, *base.mounts))


def _exists(spec: SandboxSpec) -> bool:
    folders = (*spec.layers, *(mount.source for mount in spec.mounts))
    return all(folder.exists() for folder in folders)


def _interpreter(task: Task) -> Interpreter:
    if task.interpreter == "base":
        return default_interpreter()
    try:
        return find_interpreter(task.interpreter)
    except InvalidArgumentError as error:
        raise InvalidTaskError(f"task {task.task_id}: field 'interpreter': {error}") from error
    except SandboxUnavailableError as error:
        raise TemplateError(f"task {task.task_id}: {error}") from error
