"""The experimental ``apptainer`` backend: containers without a daemon, as clusters have them.

The program itself is not tested. Tests run the conformance checks on an imitation of
its documented command line, https://apptainer.org/docs/user/main/.
"""

import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, cast

from coding_gym.errors import (
    InvalidArgumentError,
    SandboxError,
    SandboxUnavailableError,
    last_line,
)
from coding_gym.sandbox import layer_union
from coding_gym.sandbox.backend_checks import failed_probe
from coding_gym.sandbox.containers.container_sandbox import ContainerSandbox, check_spec, spec_env
from coding_gym.sandbox.ownership import make_folder, remove_folder
from coding_gym.sandbox.protocol import Probe, Promise, Snapshot
from coding_gym.sandbox.spec import HOME, WORKDIR, SandboxSpec

_LOOP = Path(__file__).with_name("loop.sh").read_text(encoding="utf-8")
_TARGETS = {"workspace": WORKDIR, "home": HOME, "tmp": "/tmp"}  # noqa: S108 - a path inside
_END_TIMEOUT_S = 5.0
_READ_BYTES = 1 << 18
_INSTALL = (
    "load it, as with `module load apptainer`, or install it: "
    "https://apptainer.org/docs/admin/main/installation.html"
)
# The variables by which the program starts, finds its caches, and pulls an image from a registry.
_PROGRAM_VARIABLES = (
    *("PATH", "HOME", "TMPDIR", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"),
    *("APPTAINER_CACHEDIR", "APPTAINER_TMPDIR", "APPTAINER_CONFIGDIR"),
    *("APPTAINER_DOCKER_USERNAME", "APPTAINER_DOCKER_PASSWORD"),
)
MISSING = (
    *(Promise.SYSTEM_CALLS, Promise.OWN_IMAGE, Promise.OWN_PYTHON),
    *(Promise.DISK_LIMIT, Promise.INODE_LIMIT),
    *(Promise.PROCESS_LIMIT, Promise.MEMORY_LIMIT),
)


class ApptainerBackend:
    """Sandboxes in containers of Apptainer. Workspaces are private copies of the layers.

    Commands run as the user of this process and can reach the container's first process, so a
    command can forge what later commands seem to print.

    Args:
        image: The root where a spec names none: a SIF file, a folder, or a name with its
            transport; needs bash and the usual small programs.
        program: The name or path of the program.
    """

    name = "apptainer"

    def __init__(self, image: str = "docker://python:3.11", *, program: str = "apptainer") -> None:
        self._image = image
        self._program = program

    def owner(self) -> tuple[int, int]:
        """Returns this process's uid and gid, which commands have too."""
        return os.geteuid(), os.getegid()

    def probe(self) -> Probe:
        """Opens a throw-away sandbox, runs a command in it and closes it; never raises."""
        works = Probe(available=True, detail="ran a command in a container", missing=MISSING)
        found = failed_probe(self.open) or works
        return replace(found, detail=f"{found.detail} (experimental, tested on an imitation only)")

    def open(self, spec: SandboxSpec, *, snapshot: Snapshot | None = None) -> ContainerSandbox:
        """Opens a sandbox; see `coding_gym.sandbox.protocol.SandboxBackend.open`."""
        check_spec(spec, self.name, snapshot)
        if spec.image:
            raise InvalidArgumentError(f"apptainer cannot run the image {spec.image!r}")
        ends = (str(end) for mount in spec.mounts for end in (mount.source.resolve(), mount.target))
        for path in (*ends, spec.workspace_alias):
            if ":" in path or "," in path:
                raise InvalidArgumentError(f"apptainer cannot bind {path}: it has a ':' or ','")
        if (program := shutil.which(self._program)) is None:
            raise SandboxUnavailableError(f"there is no {self._program} program", _INSTALL)
        start = partial(ApptainerTransport, program, spec.image or self._image, spec)
        return ContainerSandbox(self.name, spec, start, snapshot)


class ApptainerTransport:
    """A process of the program, which runs `loop.sh`, and the folders that it binds.

    Raises:
        SandboxError: The folders cannot be made, or the program cannot be started.
    """

    def __init__(self, program: str, image: str, spec: SandboxSpec) -> None:
        with contextlib.ExitStack() as undo:
            try:
                self._folder = make_folder("apptainer")
                undo.callback(remove_folder, self._folder)
                for name in _TARGETS:
                    (self._folder / name).mkdir(mode=0o755)
                layer_union.copy(spec.layers, self._folder / "workspace")
                self._errors = undo.enter_context((self._folder / "errors").open("w+b"))
                # Exactly as what `find` prints is read.
                self._started_at = os.fstat(self._errors.fileno()).st_ctime_ns / 10**9
                self.input, stdin = socket.socketpair()
                undo.callback(self.input.close)
                with stdin:
                    self._process = subprocess.Popen(
                        [program, *_arguments(self._folder, image, spec)],
                        env=variables(spec),
                        stdin=stdin.fileno(),
                        stdout=subprocess.PIPE,  # not a socket: the loop opens it again
                        stderr=self._errors,  # the loop closes it before the first command
                        start_new_session=True,
                    )
            except OSError as error:
                raise SandboxError(f"cannot open a sandbox: {error}") from error
            undo.pop_all()
        self._output = cast("IO[bytes]", self._process.stdout)

    def receive(self, timeout_s: float) -> bytes:
        """Returns bytes of standard output; raises an error of the program."""
        poller = select.poll()
        poller.register(self._output, select.POLLIN)
        if not poller.poll(timeout_s * 1000):
            raise TimeoutError("no answer in time")
        data = os.read(self._output.fileno(), _READ_BYTES)
        if not data and (said := os.pread(self._errors.fileno(), _READ_BYTES, 0)):
            raise ConnectionError(last_line(said.decode("utf-8", "replace")))
        return data

    def interrupt(self) -> None:
        """Sends SIGUSR1 to the program."""
        self._process.send_signal(signal.SIGUSR1)

    def started_at(self) -> float:
        """Returns when the layers had been copied, before the program was started."""
        return self._started_at

    def clean_up(self, *, has_ended: bool) -> None:
        """Waits for the program, kills it where it does not end, and removes the folders."""
        for file in (self.input, self._output, self._errors):
            file.close()
        try:
            self._process.wait(_END_TIMEOUT_S if has_ended else 0)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        remove_folder(self._folder)


def _arguments(folder: Path, image: str, spec: SandboxSpec) -> list[str]:
    """Returns the command line of a container, which may write to the folders in this one."""
    # The loop ends everything with `kill -9 -1`, and must be process 1 to survive that alone.
    line = ["exec", "--containall", "--no-init", "--no-home", "--cleanenv", "--no-privs"]
    line += ["--no-umask", "--writable-tmpfs", "--pwd", WORKDIR]
    if not spec.network:
        line += ["--net", "--network", "none"]
    binds = [f"{folder / name}:{target}" for name, target in _TARGETS.items()]
    if spec.workspace_alias:
        binds.append(f"{folder / 'workspace'}:{spec.workspace_alias}")
    binds += [
        f"{m.source.resolve()}:{m.target}:{'rw' if m.writable else 'ro'}" for m in spec.mounts
    ]
    for bind in binds:
        line += ["--bind", bind]
    limits = spec.limits
    bounds = f"ulimit -c 0; ulimit -f {limits.file_bytes >> 10}; ulimit -n {limits.num_open_files}"
    return [*line, image, "bash", "-c", f"{bounds}\n{_LOOP}", "bash"]


def variables(spec: SandboxSpec) -> dict[str, str]:
    """Returns the variables for ``apptainer``: its own, and with a prefix those for inside.

    Not by ``--env``, which takes a comma for the end of a value. Of the host, only a few pass:
    others bind folders or set variables inside, and proxies go in whatever ``--cleanenv`` says.
    """
    inside = {f"APPTAINERENV_{name}": value for name, value in spec_env(spec).items()}
    own = {name: os.environ[name] for name in _PROGRAM_VARIABLES if name in os.environ}
    return own | inside
