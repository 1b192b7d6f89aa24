"""The ``apptainer`` backend: containers without a daemon, as clusters have them.

Its commands run behind the same loop and channel as those of the ``docker`` backend. What
``apptainer`` is told follows its user guide, https://apptainer.org/docs/user/main/.
"""

import os
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from coding_gym.errors import InvalidArgumentError, SandboxError, SandboxUnavailableError
from coding_gym.sandbox.apptainer.container import ApptainerContainer
from coding_gym.sandbox.apptainer.sandbox import NAME, ApptainerSandbox
from coding_gym.sandbox.containers.options import container_env
from coding_gym.sandbox.containers.prepare import check_alias
from coding_gym.sandbox.promises import Promise
from coding_gym.sandbox.protocol import Probe, Snapshot
from coding_gym.sandbox.removal import remove_folder
from coding_gym.sandbox.results import check_env
from coding_gym.sandbox.snapshots import check_snapshot
from coding_gym.sandbox.spec import HOME, WORKDIR, SandboxSpec
from coding_gym.sandbox.temporary import make_folder
from coding_gym.sandbox.tree_copies import add_tree

DEFAULT_IMAGE = "docker://python:3.11"
_LOOP = Path(__file__).parents[1] / "containers" / "loop.sh"
_TARGETS = {"workspace": WORKDIR, "home": HOME, "tmp": "/tmp"}  # noqa: S108 - a path inside
_INSTALL = (
    "load it, as with `module load apptainer`, or install it: "
    "https://apptainer.org/docs/admin/main/installation.html"
)
# What the program needs to start, to find its caches, and to pull an image from a registry.
_OF_THE_PROGRAM = (
    *("PATH", "HOME", "TMPDIR", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"),
    *("APPTAINER_CACHEDIR", "APPTAINER_TMPDIR", "APPTAINER_CONFIGDIR"),
    *("APPTAINER_DOCKER_USERNAME", "APPTAINER_DOCKER_PASSWORD"),
)
_UNKNOWN_REMEDY = "run it again; if it keeps failing, report it with this message"
MISSING = (
    Promise.DISK_LIMIT,
    Promise.INODE_LIMIT,
    Promise.PROCESS_LIMIT,
    Promise.MEMORY_LIMIT,
    Promise.CPU_LIMIT,
    Promise.SYSTEM_CALLS,
    Promise.PERSISTENT_SHELL,
    Promise.SMALL_SNAPSHOTS,
    Promise.OWN_PYTHON,
)


class ApptainerBackend:
    """Sandboxes in containers of Apptainer. Workspaces are private copies of the layers.

    Args:
        image: What ``/`` is where a spec names none: a SIF file, a folder, or a name with its
            transport; needs bash and the usual small programs.
        program: The name or path of the program.
    """

    def __init__(self, image: str = DEFAULT_IMAGE, *, program: str = "apptainer") -> None:
        self._image = image
        self._program = program

    @property
    def name(self) -> str:
        """``"apptainer"``."""
        return NAME

    @property
    def prepares(self) -> bool:
        """False: each command starts when it is run."""
        return False

    def owner(self) -> tuple[int, int]:
        """Returns this process's uid and gid, which commands have too."""
        return os.geteuid(), os.getegid()

    def probe(self) -> Probe:
        """Opens a throw-away sandbox, runs a command in it and closes it; never raises."""
        try:
            with self.open(SandboxSpec()) as sandbox:
                result = sandbox.run("echo works", timeout_s=10)
            if result.output != "works\n":
                raise SandboxError(f"a first command printed {result.output!r}")
        except SandboxUnavailableError as error:
            return Probe(available=False, detail=error.problem, remedy=error.remedy)
        except SandboxError as error:
            return Probe(available=False, detail=str(error), remedy=_UNKNOWN_REMEDY)
        return Probe(available=True, detail="ran a command in a container", missing=MISSING)

    def open(self, spec: SandboxSpec, *, snapshot: Snapshot | None = None) -> ApptainerSandbox:
        """Opens a sandbox.

        Raises:
            InvalidArgumentError: A layer or mount that does not exist; a persistent shell; a
                snapshot of another backend or spec.
            SandboxUnavailableError: There is no such program; says the remedy.
            SandboxError: There is, but this time it failed.
        """
        _check(spec)
        if snapshot is not None:
            check_snapshot(snapshot, backend=NAME, spec=spec)
        program = shutil.which(self._program)
        if program is None:
            raise SandboxUnavailableError(f"there is no {self._program} program", _INSTALL)
        try:
            folder = make_folder(NAME)
        except OSError as error:
            raise SandboxError(f"no temporary folder could be made: {error}") from error
        try:
            folders = _fill(folder, spec)
            command = arguments(program, spec.image or self._image, spec, folders)
            env = variables(spec)
            start = partial(ApptainerContainer, command, env)
            sandbox = ApptainerSandbox(spec, folder, folders, start)
        except OSError as error:
            remove_folder(folder)
            raise SandboxError(f"cannot open a sandbox: {error}") from error
        except BaseException:
            remove_folder(folder)
            raise
        if snapshot is not None:
            sandbox.restore(snapshot)
        return sandbox


def arguments(
    program: str, image: str, spec: SandboxSpec, folders: Mapping[str, Path]
) -> list[str]:
    """Returns the command line of a container.

    Args:
        program: Path of ``apptainer``.
        image: What ``/`` is.
        spec: What is wanted besides.
        folders: Of the host, that hold what the container may write, by name.
    """
    # The loop ends everything with `kill -9 -1`, and must be process 1 to survive that alone.
    line = [program, "exec", "--containall", "--no-init", "--no-home", "--cleanenv"]
    line += ["--no-privs", "--no-umask", "--writable-tmpfs", "--pwd", WORKDIR]
    if not spec.network:
        line += ["--net", "--network", "none"]
    for name, target in _TARGETS.items():
        line += ["--bind", f"{folders[name]}:{target}"]
    if spec.workspace_alias:
        line += ["--bind", f"{folders['workspace']}:{spec.workspace_alias}"]
    for mount in spec.mounts:
        mode = "rw" if mount.writable else "ro"
        line += ["--bind", f"{mount.source.resolve()}:{mount.target}:{mode}"]
    bounds = (
        f"ulimit -c 0; ulimit -f {spec.limits.file_bytes >> 10}; "
        f"ulimit -n {spec.limits.num_open_files}"
    )
    loop = _LOOP.read_text(encoding="utf-8")
    return [*line, image, "bash", "-c", f"{bounds}\n{loop}", "bash"]


def variables(spec: SandboxSpec) -> dict[str, str]:
    """Returns the variables for ``apptainer``: its own, and with a prefix those for inside.

    Not by ``--env``, which takes a comma for the end of a value. Of the host, only a few pass:
    others bind folders or set variables inside, and proxies go in whatever ``--cleanenv`` says.
    """
    inside = {f"APPTAINERENV_{name}": value for name, value in container_env(spec).items()}
    own = {name: os.environ[name] for name in _OF_THE_PROGRAM if name in os.environ}
    return own | inside


def _check(spec: SandboxSpec) -> None:
    check_env(spec.env)
    check_alias(spec.workspace_alias)
    for path in (*spec.layers, *(mount.source for mount in spec.mounts)):
        if not path.exists():
            raise InvalidArgumentError(f"the sandbox's layer or mount {path} does not exist")
        if ":" in str(path) or "," in str(path):
            raise InvalidArgumentError(f"apptainer cannot bind {path}: it has a ':' or ',' in it")
    if spec.shell == "persistent":
        raise InvalidArgumentError(
            "the 'apptainer' sandbox has no persistent shells; use shell='fresh', or 'docker'"
        )


def _fill(folder: Path, spec: SandboxSpec) -> dict[str, Path]:
    folders = {name: folder / name for name in _TARGETS}
    for path in folders.values():
        path.mkdir(mode=0o755)
    for layer in spec.layers:
        add_tree(layer, folders["workspace"])
    return folders
