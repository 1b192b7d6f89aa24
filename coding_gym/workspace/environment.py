"""A task's own environment: what its install commands made, built once, shared read-only."""

import hashlib
import json
import logging
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from coding_gym.errors import InvalidArgumentError, InvalidTaskError, TemplateError, last_line
from coding_gym.sandbox.folder_cache import FolderCache
from coding_gym.sandbox.protocol import Sandbox, SandboxBackend
from coding_gym.sandbox.removal import remove_folder
from coding_gym.sandbox.results import command_bytes
from coding_gym.sandbox.spec import Interpreter, Mount, SandboxLimits, SandboxSpec
from coding_gym.task import GitTree, Task
from coding_gym.workspace.artifacts import COLLECTED, collect_artifacts
from coding_gym.workspace.checkout import Checkouts, seal
from coding_gym.workspace.template import BASE_GIT, ENVIRONMENT

_log = logging.getLogger(__name__)

_SCHEMA = 1
_SCRATCH = "/opt/scratch"
_VENV_TIMEOUT_S = 300.0
_SHOWN_CHARS = 80
_LIMITS = SandboxLimits(
    disk_bytes=4 << 30, num_inodes=1_000_000, num_processes=1024, file_bytes=4 << 30
)


@dataclass(frozen=True, slots=True)
class Environment:
    """A built environment.

    Attributes:
        folder: The virtual environment, to be shown at `ENVIRONMENT`.
        artifacts: What the commands made in the tree, as a folder to lay below it.
    """

    folder: Path
    artifacts: Path


class Environments:
    """Builds environments and keeps them.

    Args:
        cache: Where they lie.
        backend: What builds run in; it must be able to mount.
        checkouts: Makes the trees that install commands run in.
        logs: Folder of the build logs, which stay when a build fails.
        timeout_s: How long one install command may take.
    """

    def __init__(
        self,
        cache: FolderCache,
        backend: SandboxBackend,
        checkouts: Checkouts,
        logs: Path,
        timeout_s: float,
    ) -> None:
        self._cache = cache
        self._backend = backend
        self._checkouts = checkouts
        self._logs = logs
        self._timeout_s = timeout_s

    def key(self, task: Task, interpreter: Interpreter) -> str:
        """Returns what tasks that share an environment have in common, as a short digest."""
        shared = task.repo and (task.version or task.environment_setup_commit)
        # Rows say of themselves what project they are. One that lies, and brings a repository of
        # its own, must not make the environment of those that do not.
        source = task.tree.repository if isinstance(task.tree, GitTree) else ""
        facts = [
            _SCHEMA,
            [source, task.repo, task.version, task.environment_setup_commit],
            "" if shared else self._checkouts.digest(task),
            [str(interpreter.executable), interpreter.version],
            task.install_commands,
            self._backend.owner(),
        ]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:24]

    def get(self, task: Task, interpreter: Interpreter) -> Environment:
        """Returns the task's environment, built now if it is the first time.

        Raises:
            TemplateError: A command failed; the message names it, its last words and the log.
            InvalidTaskError: The tree that the commands run in is not there, or a command cannot be
                passed to a shell.
            SandboxError: No sandbox could be opened.
        """
        key = self.key(task, interpreter)
        folder = self._cache.get(key, lambda part: self._build(task, interpreter, key, part))
        return Environment(folder / "env", folder / "artifacts")

    def _build(self, task: Task, interpreter: Interpreter, key: str, folder: Path) -> None:
        _check_commands(task)
        # The commit that the environment is meant for, so that it does not depend on which task
        # came first.
        field = "environment_setup_commit" if task.environment_setup_commit else "base_commit"
        checkout = self._checkouts.lay(task, folder, field=field)
        seal(checkout, (), self._backend.owner())
        env, scratch, artifacts = folder / "env", folder / "scratch", folder / "artifacts"
        for path in (env, scratch, artifacts):
            path.mkdir()
            shutil.chown(path, *self._backend.owner())
        mounts = (
            Mount(source=checkout.base_git, target=BASE_GIT),
            Mount(source=env, target=ENVIRONMENT, writable=True),
            Mount(source=artifacts, target=COLLECTED, writable=True),
            Mount(source=scratch, target=_SCRATCH, writable=True),
        )
        spec = SandboxSpec(
            layers=(checkout.tree,),
            mounts=mounts,
            python=interpreter,
            path=(f"{ENVIRONMENT}/bin",),
            env=_variables(task),
            limits=_LIMITS,
            network=True,
        )
        self._logs.mkdir(parents=True, exist_ok=True)
        log = self._logs / f"{key}.log"
        with self._backend.open(spec) as sandbox:
            if sandbox.path(ENVIRONMENT) != ENVIRONMENT:  # commands would write to the host's
                raise TemplateError(
                    f"task {task.task_id}: the {self._backend.name!r} sandbox cannot build "
                    "environments, which needs mounts; use sandbox='namespace'"
                )
            self._run_commands(sandbox, task, interpreter, log)
            collect_artifacts(sandbox, artifacts, checkout.date)
        shutil.copy(log, folder / "build.log")
        for path in (scratch, checkout.tree, checkout.base_git):
            remove_folder(path)

    def _run_commands(
        self, sandbox: Sandbox, task: Task, interpreter: Interpreter, log: Path
    ) -> None:
        run = _Logged(sandbox, task, log)
        log.write_text("")
        # By its real path, which the environment then refers to.
        python = shlex.quote(str(interpreter.executable))
        run(f"{python} -m venv --symlinks {ENVIRONMENT}", _VENV_TIMEOUT_S)
        for command in task.install_commands:
            run(command, self._timeout_s)


def _check_commands(task: Task) -> None:
    for command in task.install_commands:
        try:
            command_bytes(command)
        except InvalidArgumentError as error:
            shown = command if len(command) <= _SHOWN_CHARS else f"{command[:_SHOWN_CHARS]}…"
            raise InvalidTaskError(
                f"task {task.task_id}: field 'install_commands' has {shown!r}: {error}"
            ) from error


def _variables(task: Task) -> dict[str, str]:
    variables = {
        "VIRTUAL_ENV": ENVIRONMENT,
        "TMPDIR": _SCRATCH,
        "PIP_NO_CACHE_DIR": "1",
        # Its notice of a newer pip would be the last line of every command that failed.
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    if task.version:
        # Projects that take their version from tags find none in a sanitised history.
        variables["SETUPTOOLS_SCM_PRETEND_VERSION"] = task.version
    return variables


class _Logged:
    """Runs build commands, one after the other, into a log."""

    def __init__(self, sandbox: Sandbox, task: Task, log: Path) -> None:
        self._sandbox = sandbox
        self._task = task
        self._log = log

    def __call__(self, command: str, timeout_s: float) -> None:
        _log.info("task %s: %s", self._task.task_id, command)
        result = self._sandbox.run(command, timeout_s=timeout_s)
        with self._log.open("a", encoding="utf-8", errors="replace") as log:
            log.write(f"$ {command}\n{result.output}\n[{result.duration_s:.1f} s]\n")
        if result.ok:
            return
        how = f"took more than {timeout_s:g} s" if result.timed_out else "failed"
        said = last_line(result.output)
        hint = f"; only the tree, {ENVIRONMENT}, home and temporary folders can be written to"
        raise TemplateError(
            f"task {self._task.task_id}: install command {command!r} {how}: {said}"
            f"{hint if 'Read-only file system' in result.output else ''}; the log is {self._log}"
        )
