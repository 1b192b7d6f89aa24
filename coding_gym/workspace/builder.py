"""Puts a template together from its parts: checkout, environment or pytest layer, index."""

import hashlib
import json
import secrets
from dataclasses import dataclass, replace
from pathlib import Path

from coding_gym.errors import (
    InvalidArgumentError,
    InvalidTaskError,
    SandboxUnavailableError,
    TemplateError,
    last_line,
)
from coding_gym.host.toolchains import Toolchain, find_toolchain
from coding_gym.sandbox import default_interpreter, find_interpreter
from coding_gym.sandbox.folder_cache import CacheUses, FolderCache
from coding_gym.sandbox.protocol import SandboxBackend
from coding_gym.sandbox.spec import Interpreter, Mount, SandboxSpec
from coding_gym.task import Task
from coding_gym.workspace.artifacts import artifact_paths
from coding_gym.workspace.checkout import Checkouts, seal, store_index
from coding_gym.workspace.clones import Clones
from coding_gym.workspace.environment import Environments
from coding_gym.workspace.history import task_date
from coding_gym.workspace.host_git import HostGit
from coding_gym.workspace.image_python import ImagePythons
from coding_gym.workspace.image_tree import ImageTrees
from coding_gym.workspace.installing import BuildLimits, BuildPlaces
from coding_gym.workspace.progress import OnBuildStep
from coding_gym.workspace.pytest_layer import PytestLayers
from coding_gym.workspace.scripts import ENV, REFRESH_INDEX
from coding_gym.workspace.template import BASE_GIT, ENVIRONMENT, IMAGE_BIN, PYTEST_BIN, Template

# Part of every key: raised whenever what a build leaves changes.
_SCHEMA = 2
_FACTS = "template.json"


@dataclass(frozen=True, slots=True)
class _Ground:
    """What a template stands on beside its tree.

    Attributes:
        identity: Names it, as part of the template's key.
        mounts: Folders to show.
        path: Folders to put in PATH.
        env: Environment variables.
        artifacts: A folder to lay below the tree, or None.
        python: The interpreter to show; None for that of an image.
        image: What the root is; "" for the backend's own choice.
        alias: Where else the workspace shows; "" for nowhere.
    """

    identity: str
    mounts: tuple[Mount, ...]
    path: tuple[str, ...]
    env: dict[str, str]
    artifacts: Path | None = None
    python: Interpreter | None = None
    image: str = ""
    alias: str = ""


class Builder:
    """Builds templates and everything that they share.

    Args:
        backend: What the templates are for.
        folder: Where everything lies.
        depth: Commits of history; None for all.
        limits: How long building an environment may take.
        on_step: Told what the build of an environment does.
    """

    def __init__(
        self,
        backend: SandboxBackend,
        folder: Path,
        *,
        depth: int | None,
        limits: BuildLimits,
        on_step: OnBuildStep | None,
    ) -> None:
        # Whoever can write here decides what git runs, and what tasks hold.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        uses = CacheUses(folder)

        def cache(kind: str) -> FolderCache:
            return FolderCache(folder / kind, uses)

        git = HostGit(folder / "git-settings")
        self._backend = backend
        self._templates = cache("templates")
        self._images = ImageTrees(cache("image-trees"), backend)
        self._image_pythons = ImagePythons(cache("image-pythons"), backend)
        clones = Clones(git, folder / "mirrors", uses, limits.total_s)
        self._checkouts = Checkouts(git, clones, self._images, depth)
        self._pytest_layers = PytestLayers(cache("pytest"), backend)
        self._environments = Environments(
            cache("environments"),
            backend,
            self._checkouts,
            BuildPlaces(folder / "logs", folder / "downloads"),
            limits,
            on_step,
        )

    def template(self, task: Task) -> Template:
        """Returns a task's template; builds what is not there.

        Raises:
            OSError: The folder cannot be written to, or is full.
            HostGitError: Git failed.
            CodingGymError: As `TemplateStore.get` says.
        """
        digest = self._checkouts.digest(task)
        tools = Toolchain() if task.is_in_image else _toolchain(task)
        ground = self._ground_in_image(task) if task.is_in_image else self._ground(task)
        facts = [_SCHEMA, digest, ground.identity, self._backend.owner(), self._backend.name]
        key = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:24]

        def spec(folder: Path) -> SandboxSpec:
            below = () if ground.artifacts is None else (ground.artifacts,)
            return SandboxSpec(
                layers=(folder / "tree", *below),
                mounts=(
                    Mount(source=folder / "base.git", target=BASE_GIT),
                    *ground.mounts,
                    *(Mount(source=f, target=t) for t, f in tools.folders.items()),
                ),
                python=ground.python,
                path=(*ground.path, *tools.path),
                env=ground.env,
                image=ground.image,
                workspace_alias=ground.alias,
            )

        def build(folder: Path) -> None:
            checkout = self._checkouts.lay(task, folder)
            below = ground.artifacts
            artifacts = () if below is None else artifact_paths(below, checkout.tree)
            seal(checkout, artifacts, self._backend.owner())
            index = self._refreshed_index(task, spec(folder))
            store_index(checkout, index, self._backend.owner())
            found = {"base_commit": checkout.commit, "date": checkout.date.isoformat()}
            (folder / _FACTS).write_text(json.dumps(found))

        folder = self._templates.get(key, build, user=task.task_id)
        known = json.loads((folder / _FACTS).read_text())
        # Commits that a policy makes are dated as the base is, so that their ids repeat.
        dates = {"GIT_AUTHOR_DATE": known["date"], "GIT_COMMITTER_DATE": known["date"]}
        final = spec(folder)
        return Template(
            key=key,
            spec=replace(final, env={**final.env, **dates}),
            base_commit=known["base_commit"],
        )

    def _ground_in_image(self, task: Task) -> _Ground:
        digest = self._images.identity(task)
        try:
            python = self._image_pythons.get(task, digest)
        except InvalidArgumentError as error:  # by the backend that was to open it
            raise InvalidTaskError(f"task {task.task_id}: field 'image': {error}") from error
        artifacts = None
        if task.image_path:
            artifacts = self._images.get(task, task_date(task)).artifacts
        named = () if python.names is None else (Mount(source=python.names, target=IMAGE_BIN),)
        path = (*((python.folder,) if python.folder else ()), *(mount.target for mount in named))
        return _Ground(
            identity=f"{digest} {python.key} {task.image_path}",
            mounts=named,
            path=path,
            env={},
            artifacts=artifacts,
            image=task.image,
            alias=task.image_path,
        )

    def _ground(self, task: Task) -> _Ground:
        interpreter = _interpreter(task)
        if task.install_commands:
            environment = self._environments.get(task, interpreter)
            return _Ground(
                identity=environment.key,
                mounts=(Mount(source=environment.folder, target=ENVIRONMENT),),
                path=(f"{ENVIRONMENT}/bin",),
                env={"VIRTUAL_ENV": ENVIRONMENT},
                artifacts=environment.artifacts,
                python=interpreter,
            )
        try:
            layer = self._pytest_layers.get(interpreter)
        except TemplateError as error:
            raise TemplateError(f"task {task.task_id}: {error}") from error
        mounts = (
            Mount(source=layer.site, target=str(interpreter.site_packages)),
            Mount(source=layer.scripts, target=PYTEST_BIN),
        )
        return _Ground(layer.key, mounts, (PYTEST_BIN,), {}, python=interpreter)

    def _refreshed_index(self, task: Task, spec: SandboxSpec) -> bytes:
        """Returns the checkout's index as it is after a look at every file from inside."""
        with self._backend.open(spec) as sandbox:
            scratch = f"{sandbox.path('/tmp')}/.{secrets.token_hex(8)}"  # noqa: S108 — as it is inside
            places = {"CG_TREE": sandbox.workdir, "CG_BASE": sandbox.path(BASE_GIT)}
            result = sandbox.run(
                REFRESH_INDEX, timeout_s=600.0, cwd="/", env=ENV | places | {"CG_TMP": scratch}
            )
            if not result.ok:
                raise TemplateError(
                    f"task {task.task_id}: its tree is not what its commit says: "
                    f"{last_line(result.output)}"
                )
            index = sandbox.read_file(scratch, max_bytes=1 << 30)
            sandbox.run(f"rm {scratch}", cwd="/", env=ENV)
            return index


def _toolchain(task: Task) -> Toolchain:
    found = find_toolchain(task.language)
    if found.missing and not task.install_commands:  # which may bring it along
        raise TemplateError(f"task {task.task_id}: {found.missing}")
    return found


def _interpreter(task: Task) -> Interpreter:
    if task.interpreter == "base":
        return default_interpreter()
    try:
        return find_interpreter(task.interpreter)
    except InvalidArgumentError as error:
        raise InvalidTaskError(f"task {task.task_id}: field 'interpreter': {error}") from error
    except SandboxUnavailableError as error:
        raise TemplateError(f"task {task.task_id}: {error}") from error
