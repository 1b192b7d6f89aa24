"""Harbor's trials in our sandboxes.

    harbor run -p FOLDER -a oracle --env coding_gym.adapters.harbor:SandboxProvider

Importing this needs the ``harbor`` extra. A sandbox has no network, whatever a task permits, so
agents must run outside it and send it commands, as Harbor's oracle, nop and terminus do.
"""

import asyncio
import io
import secrets
import shlex
import shutil
import tarfile
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from coding_gym.calls import ExecResult as SandboxResult
from coding_gym.errors import InvalidArgumentError, SandboxError, last_line
from coding_gym.optional import missing_extra
from coding_gym.sandbox import Mount, Sandbox, SandboxLimits, SandboxSpec, get_backend
from coding_gym.sandbox.ownership import remove_folder
from coding_gym.task import Task
from coding_gym.tasks.dockerfile import Dockerfile, base_interpreter, is_below, read_dockerfile
from coding_gym.workspace import TemplateStore
from coding_gym.workspace.template import BASE_GIT

try:
    from harbor.environments.base import BaseEnvironment, ExecResult
    from harbor.environments.capabilities import (
        EnvironmentCapabilities,
        EnvironmentResourceCapabilities,
    )
except ImportError as error:
    raise missing_extra("Harbor", "harbor", "Python 3.12 or newer") from error

# The folders that Harbor itself fills, besides those of the task.
_FOLDERS = ("/logs", "/tests", "/solution")
_LOGS = ("/logs/agent", "/logs/verifier", "/logs/artifacts")
_VERDICTS = "/logs/verifier/reward.json /logs/verifier/reward.txt"
_CHUNK_BYTES, _MAX_OUTPUT_BYTES, _MAX_DOWNLOAD_BYTES = 32 << 20, 16 << 20, 1 << 30
_DISK_BYTES, _NUM_INODES = 2 << 30, 500_000
_DAY_S = 86_400.0
_KILLED = 128  # and above: the exit codes of what a signal ended

_store_lock = threading.Lock()
_stores: dict[tuple[str, str], TemplateStore] = {}


class SandboxProvider(BaseEnvironment):
    """An environment of Harbor in a sandbox of this package; no daemon, no root, no image.

    The host stands in for the image of a Dockerfile, as `coding_gym.tasks.dockerfile` reads it;
    the trial fails before its agent starts where it cannot. All commands run as one ordinary user,
    whatever user Harbor names. The folders that Harbor fills, and the task's own, outlast a
    command that Harbor cancels; everything else of the sandbox ends with that command.

    Args:
        *args: As for Harbor's base class.
        sandbox: Name of a backend that mounts folders, or ``"auto"``.
        cache: Folder for environments; the user's cache folder by default.
        **kwargs: As for Harbor's base class; ``--ek NAME=VALUE`` sets them.
    """

    def __init__(self, *args: Any, sandbox: str = "auto", cache: str = "", **kwargs: Any) -> None:
        self._backend, self._cache = sandbox, cache
        self._dockerfile = Dockerfile()
        self._sandbox: Sandbox | None = None
        self._spec: SandboxSpec | None = None
        self._folder: Path | None = None
        self._lock = threading.Lock()
        super().__init__(*args, **kwargs)

    @staticmethod
    def type() -> str:
        """Returns the name of this kind of environment."""
        return "coding-gym"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        """What Harbor may ask for: every sandbox is without a network, in every phase."""
        return EnvironmentCapabilities(disable_internet=True, dynamic_network_policy=True)

    @classmethod
    def resource_capabilities(cls) -> EnvironmentResourceCapabilities:
        """What is bounded: memory."""
        return EnvironmentResourceCapabilities(memory_limit=True)

    def _validate_definition(self) -> None:
        """Reads the Dockerfile.

        Raises:
            InvalidTaskError: It needs a daemon, or names an image without a stand-in.
            InvalidArgumentError: The environment is one of several services, or has mounts of its
                own.
        """
        where = f"{self.environment_dir}: the {self.type()} environment"
        if (self.environment_dir / "docker-compose.yaml").exists():
            raise InvalidArgumentError(f"{where} runs no compose services; use --env docker")
        own = [mount for mount in self._mounts if not is_below(mount["target"], "/logs")]
        if own:
            raise InvalidArgumentError(f"{where} mounts nothing of the host, got {own[0]}")
        path = self.environment_dir / "Dockerfile"
        if path.is_file():
            self._dockerfile = read_dockerfile(path)
        else:
            image = self.task_env_config.docker_image or ""
            self._dockerfile.interpreter = base_interpreter(
                image, f"{where}: docker_image {image!r}"
            )
        if self.task_env_config.workdir:
            self._dockerfile.workdir = self.task_env_config.workdir
        elif self._dockerfile.workdir == "/":
            self._dockerfile.workdir = "/app"  # the root of a sandbox is read-only

    async def start(self, force_build: bool) -> None:  # noqa: ARG002 - environments go by content
        """Builds the environment, where it is new, and opens the sandbox."""
        made = await asyncio.to_thread(self._start)
        await self.ensure_dirs((*_LOGS, *self._mount_targets()))
        for source, target in (*self._dockerfile.copies, *made):
            copy = self.upload_dir if source.is_dir() else self.upload_file
            await copy(source, target)
        await self._upload_environment_dir_after_start()

    def _start(self) -> list[tuple[Path, str]]:
        """Opens the sandbox; returns what the install commands made, and where it belongs."""
        file, backend = self._dockerfile, get_backend(self._backend)
        template = _store(self._backend, self._cache).get(
            Task(
                task_id=self.environment_name,
                tree=file.tree(for_commands=True),
                problem_statement="",
                interpreter=file.interpreter,
                install_commands=tuple(file.commands),
            )
        )
        self._folder = Path(tempfile.mkdtemp(prefix="coding-gym-harbor-"))
        mounts = [mount for mount in template.spec.mounts if mount.target != BASE_GIT]
        for number, target in enumerate(_writable(file)):
            source = self._folder / str(number)
            source.mkdir()
            shutil.chown(source, *backend.owner())
            mounts.append(Mount(source=source, target=target, writable=True))
        self._spec = replace(
            template.spec,
            layers=(),
            mounts=tuple(mounts),
            env={**template.spec.env, **file.env},
            limits=self._limits(),
        )
        self._sandbox = backend.open(self._spec)
        if self._sandbox.path(_FOLDERS[0]) != _FOLDERS[0]:
            raise InvalidArgumentError(
                f"the {backend.name!r} sandbox cannot show folders at paths such as /logs, which "
                "Harbor needs; use --ek sandbox=namespace"
            )
        return [(layer, file.workdir) for layer in template.spec.layers[:0:-1]]

    def _limits(self) -> SandboxLimits:
        memory_mb, disk_mb = self._effective_memory_mb, self._effective_storage_mb
        return SandboxLimits(
            memory_bytes=memory_mb << 20 if memory_mb else SandboxLimits().memory_bytes,
            disk_bytes=disk_mb << 20 if disk_mb else _DISK_BYTES,
            num_inodes=_NUM_INODES,
        )

    async def stop(self, delete: bool) -> None:  # noqa: ARG002 - nothing of a sandbox outlasts it
        """Ends every process and removes all files."""
        if self._sandbox is not None:
            await asyncio.to_thread(self._sandbox.close)
        if self._folder is not None:
            await asyncio.to_thread(remove_folder, self._folder)

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,  # noqa: ARG002 - there is one
    ) -> ExecResult:
        """Runs a command; its output and its errors are both in ``stdout``.

        A verdict that a killed test script left behind is removed: the code under test may have
        killed it, and is no judge of itself.

        Raises:
            RuntimeError: It took more than ``timeout_sec``.
            SandboxError: The sandbox died.
        """
        result = await self._run(command, cwd, self._merge_env(env), timeout_sec)
        if result.timed_out:
            raise RuntimeError(f"Command timed out after {timeout_sec} seconds")
        if result.exit_code >= _KILLED and command.startswith("(/tests/test.sh)"):
            await self._run(f"rm -f {_VERDICTS}")
        return ExecResult(stdout=result.output, stderr="", return_code=result.exit_code)

    async def _run(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_s: float | None = None,
        stdin: bytes = b"",
    ) -> SandboxResult:
        def run() -> SandboxResult:
            with self._lock:
                return self._opened().run(
                    command,
                    timeout_s=timeout_s or _DAY_S,
                    max_output_bytes=_MAX_OUTPUT_BYTES,
                    cwd=cwd or self._dockerfile.workdir,
                    env=env,
                    stdin=stdin,
                )

        try:
            return await asyncio.to_thread(run)
        except asyncio.CancelledError:  # the command goes on in its thread until its sandbox ends
            await asyncio.shield(asyncio.to_thread(self._open_again))
            raise

    def _opened(self) -> Sandbox:
        if self._sandbox is None:
            raise SandboxError("the environment has not been started")
        return self._sandbox

    def _open_again(self) -> None:
        """Ends the sandbox with the command that runs in it, and opens another on its folders."""
        self._opened().close()
        with self._lock:
            if self._spec is not None and self._folder is not None and self._folder.is_dir():
                self._sandbox = get_backend(self._backend).open(self._spec)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        """Copies a file of this machine into the sandbox."""
        path = PurePosixPath(target_path)
        await self._upload({path.name: Path(source_path)}, str(path.parent))

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        """Copies the content of a folder of this machine into the sandbox."""
        await self._upload({path.name: path for path in Path(source_dir).iterdir()}, target_dir)

    async def _upload(self, files: Mapping[str, Path], target: str) -> None:
        data = await asyncio.to_thread(_packed, files)
        packet, folder = f"/tmp/{secrets.token_hex(8)}", shlex.quote(target)  # noqa: S108
        for start in range(0, len(data), _CHUNK_BYTES):
            await self._checked(f"cat >> {packet}", data[start : start + _CHUNK_BYTES])
        await self._checked(f"mkdir -p {folder} && tar -x --no-same-owner -f {packet} -C {folder}")
        await self._checked(f"rm {packet}")

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        """Copies a file of the sandbox to this machine."""
        data = await asyncio.to_thread(self._read, source_path)
        Path(target_path).write_bytes(data)

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        """Copies the content of a folder of the sandbox; links that lead out of it are left out."""
        packet = f"/tmp/{secrets.token_hex(8)}"  # noqa: S108
        await self._checked(f"tar -c -f {packet} -C {shlex.quote(source_dir)} .")
        data = await asyncio.to_thread(self._read, packet)
        await self._checked(f"rm {packet}")
        Path(target_dir).mkdir(parents=True, exist_ok=True)
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            await asyncio.to_thread(archive.extractall, target_dir, filter=_kept)

    def _read(self, path: str) -> bytes:
        with self._lock:
            return self._opened().read_file(path, max_bytes=_MAX_DOWNLOAD_BYTES)

    async def _checked(self, command: str, stdin: bytes = b"") -> None:
        result = await self._run(command, stdin=stdin, cwd="/")
        if not result.ok:
            raise SandboxError(f"{command!r} failed in the sandbox: {last_line(result.output)}")

    async def _apply_network_policy(self, network_policy: object) -> None:
        """Does nothing: no phase has a network."""


def _store(backend: str, cache: str) -> TemplateStore:
    """Returns the store that all trials of this process share."""
    with _store_lock:
        if (backend, cache) not in _stores:
            _stores[backend, cache] = TemplateStore(backend, Path(cache) if cache else None)
        return _stores[backend, cache]


def _writable(file: Dockerfile) -> list[str]:
    """Returns the folders that are mounted, none of which is in another."""
    targets = [
        str(PurePosixPath(t) if s.is_dir() else PurePosixPath(t).parent) for s, t in file.copies
    ]
    found: list[str] = []
    for target in sorted({*_FOLDERS, file.workdir, *targets}):
        if not any(is_below(target, other) for other in found):
            found.append(target)
    return found


def _packed(files: Mapping[str, Path]) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", dereference=True) as archive:
        for name, path in sorted(files.items()):
            archive.add(path, name)
    return data.getvalue()


def _kept(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo | None:
    """Leaves out what a policy could write elsewhere with, in place of failing as a whole."""
    try:
        return None if member.isdev() else tarfile.data_filter(member, folder)
    except tarfile.FilterError:
        return None
