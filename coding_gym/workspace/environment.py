"""Builds environments: the results of tasks' install commands, shared read-only."""

import shlex
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from coding_gym.errors import TemplateError
from coding_gym.program_output import last_line
from coding_gym.sandbox.folder_cache import BUILT, FolderCache, build_sandbox, content_key
from coding_gym.sandbox.ownership import remove_folder
from coding_gym.sandbox.protocol import SandboxBackend
from coding_gym.sandbox.spec import Interpreter, Mount, SandboxLimits, SandboxSpec
from coding_gym.task import FilesTree, GitTree, Task
from coding_gym.workspace.checkout import Checkout, Checkouts, seal
from coding_gym.workspace.installing import install
from coding_gym.workspace.scripts import run_base_git
from coding_gym.workspace.stamping import stamp
from coding_gym.workspace.template import BASE_GIT, ENVIRONMENT

BUILD_LOG = "build.log"
_VENV = "-m venv --symlinks"  # arguments of the interpreter

_SCHEMA = 3
_SCRATCH = "/opt/scratch"
_LIMITS = SandboxLimits(
    disk_bytes=4 << 30, num_inodes=1_000_000, num_processes=1024, file_bytes=4 << 30
)


@dataclass(frozen=True, slots=True)
class Environments:
    """Builds environments and caches them.

    Attributes:
        cache: Stores the environments.
        backend: Runs the builds; only ``namespace`` supports them.
        checkouts: Writes the trees in which install commands run.
        logs: The folder for logs of failed builds.
        timeout_s: Time limit of a build, in seconds.
    """

    cache: FolderCache
    backend: SandboxBackend
    checkouts: Checkouts
    logs: Path
    timeout_s: float

    def key(self, task: Task, interpreter: Interpreter) -> str:
        """Returns the key of a task's environment; tasks with equal keys share the environment.

        The key includes a digest of the tree in which the commands run, so a row with false
        metadata cannot build the environment that other rows use. This is the tree at
        ``environment_setup_commit``, or else at the base commit.
        """
        source = task.tree.repository if isinstance(task.tree, GitTree) else ""
        return content_key(
            _SCHEMA,
            [source, self.checkouts.digest(_setup_task(task))],
            task.version,
            [str(interpreter.executable), interpreter.version],
            list(task.install_commands),
            self.backend.owner(),
        )

    def get(self, task: Task, interpreter: Interpreter) -> tuple[str, SandboxSpec]:
        """Returns the key of a task's environment, and a spec that mounts the environment.

        The first call builds the environment. Files that the commands wrote into the tree are a
        layer of the spec, below the tree.

        Raises:
            TemplateError: A command failed or took too long; the message has its error line and the
                path of the log.
            InvalidTaskError: The tree for the commands does not exist, or a command has a NUL or is
                too long.
            SandboxError: No sandbox could be opened.
        """
        key = self.key(task, interpreter)
        folder = self.cache.get(key, partial(self._build, task, interpreter, key))
        return key, SandboxSpec(
            layers=(folder / "artifacts",),
            mounts=(Mount(source=folder / "env", target=ENVIRONMENT),),
            python=interpreter,
            path=(f"{ENVIRONMENT}/bin",),
            env={"VIRTUAL_ENV": ENVIRONMENT},
        )

    def _build(self, task: Task, interpreter: Interpreter, key: str, folder: Path) -> None:
        if self.backend.name != "namespace":
            raise TemplateError(
                f"task {task.task_id}: the {self.backend.name!r} sandbox cannot build "
                "environments, because it has no network; use sandbox='namespace'"
            )
        checkout = self.checkouts.write(_setup_task(task), folder)
        seal(checkout, (), self.backend.owner())
        log = self.logs / f"{key}.log"
        folders = {
            ENVIRONMENT: folder / "env",
            BUILT: folder / "artifacts",
            _SCRATCH: folder / "scratch",
        }
        spec = _spec(task, interpreter, checkout)
        with build_sandbox(self.backend, spec, folders) as sandbox:
            # The real path, not `python` in PATH, because the environment contains this path.
            python = shlex.quote(str(interpreter.executable))
            commands = (f"{python} {_VENV} {ENVIRONMENT}", *task.install_commands)
            owner = f"task {task.task_id}"
            install(sandbox, commands, owner=owner, log=log, timeout_s=self.timeout_s)
            # Without byte code, which is stale for other commits that share the environment.
            result = run_base_git(sandbox, "collect", CG_INTO=BUILT)
            if not result.ok:
                raise TemplateError(
                    f"task {task.task_id}: cannot copy files that install commands wrote: "
                    f"{last_line(result.output)}"
                )
        stamp(folder / "artifacts", checkout.date, self.backend.owner())
        log.replace(folder / BUILD_LOG)
        for path in (folder / "scratch", checkout.tree, checkout.base_git):
            remove_folder(path)


def _setup_task(task: Task) -> Task:
    """Returns the task with its ``environment_setup_commit``, if any, as the base commit."""
    if not (commit := task.environment_setup_commit):
        return task
    tree = task.tree
    if not isinstance(tree, FilesTree):
        tree = replace(tree, reverse_patch="")
    return replace(task, base_commit=commit, tree=tree)


def _spec(task: Task, interpreter: Interpreter, checkout: Checkout) -> SandboxSpec:
    return SandboxSpec(
        layers=(checkout.tree,),
        mounts=(Mount(source=checkout.base_git, target=BASE_GIT),),
        python=interpreter,
        path=(f"{ENVIRONMENT}/bin",),
        env=_variables(task),
        limits=_LIMITS,
        network=True,
    )


def _variables(task: Task) -> dict[str, str]:
    variables = {
        "VIRTUAL_ENV": ENVIRONMENT,
        "TMPDIR": _SCRATCH,
        "XDG_CACHE_HOME": f"{_SCRATCH}/cache",
        # Without this, the last line of a failed command can be pip's notice of a newer version.
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    if task.version:
        # Some projects compute their version from tags, which the checkout's history lacks.
        variables["SETUPTOOLS_SCM_PRETEND_VERSION"] = task.version
    return variables
