"""Runs Python source in forks of a sandbox's first process, which has already imported modules.

The zygote of such a sandbox runs under the interpreter of its spec, and imports the modules before
it opens the first sandbox, so the modules must be as trustworthy as this package. Only a fork reads
the file with the source and input of its run: if the first process read it, forks of later runs
would inherit the content.
"""

import contextlib
import gc
import importlib
import linecache
import os
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence

from coding_gym.sandbox.inside import syscalls as sc
from coding_gym.sandbox.inside.fixed import PYTHON_FOLDER
from coding_gym.sandbox.inside.host_folders import (
    ALLOW_LIST,
    SOURCES,
    MountedFolders,
    mount_allow_list,
)
from coding_gym.sandbox.inside.mounts import EPISODE, QUIET
from coding_gym.sandbox.inside.request import MountRequest, Preload
from coding_gym.sandbox.inside.syscalls import SetupError, step

_PYTHON = f"{PYTHON_FOLDER}/python"


def import_modules(preload: Preload, mounted_folders: MountedFolders) -> None:
    """Imports modules at the paths that they have in sandboxes.

    Raises:
        SetupError: A module cannot be imported, or started a thread, which a fork does not copy.
    """
    host, path = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC), sys.path[:]
    with step("mount the modules"):
        _mount(preload.mounts, mounted_folders)
        os.chroot(EPISODE)
        os.chdir("/")
    sys.path.append(preload.folder)
    try:
        for module in preload.modules:
            importlib.import_module(module)
    except Exception as error:  # any error of a module's top level
        raise SetupError("import the modules", 0, repr(error), "modules") from error
    finally:
        sys.path[:] = path
        os.fchdir(host)
        os.chroot(".")
        os.close(host)
        sc.unmount(EPISODE)
    if len(sys._current_frames()) > 1:
        raise SetupError("import the modules", 0, "modules must not start threads", "modules")


def _mount(mounts: Iterable[MountRequest], mounted_folders: MountedFolders) -> None:
    """Mounts a root of the host's system folders and the requested mounts."""
    sc.mount("tmpfs", EPISODE, QUIET, "mode=0755,size=1m")
    mount_allow_list(ALLOW_LIST, EPISODE)
    for mount in mounts:
        os.makedirs(EPISODE + mount.target, exist_ok=True)
        sc.bind(f"{SOURCES}/{mounted_folders.name(mount.source)}", EPISODE + mount.target)


class Forked(BaseException):
    """Raised in a fork to leave the code of its parent; `__main__` catches it and calls `run`.

    Attributes:
        env: The variables of the run.
        folder: The folder of the imported modules.
    """

    def __init__(self, env: Mapping[bytes, bytes], folder: str) -> None:
        super().__init__()
        self.env = env
        self.folder = folder


def fork(
    folder: str, _: list[bytes], env: Mapping[bytes, bytes], descriptors: Sequence[int]
) -> int:
    """Forks this process in place of starting bash; see `commands.spawn_bash`.

    Standard input is the file that `run` reads; ``folder`` has the imported modules.
    """
    pid = os.fork()
    if pid == 0:
        for target, descriptor in enumerate(descriptors):
            os.dup2(descriptor, target)
        raise Forked(env, folder)
    return pid


def run(forked: Forked, base: list[str]) -> None:
    """Runs the source in standard input as ``__main__``.

    If a module of the sandbox shadows an imported module, a fresh interpreter replaces this one.

    Args:
        forked: The exception that `fork` raised in this process.
        base: ``sys.path`` of a new interpreter.
    """
    _drop_init_rights()
    source = os.read(0, int(os.read(0, 10))).decode("utf-8", "surrogatepass")
    env = {os.fsdecode(name): os.fsdecode(value) for name, value in forked.env.items()}
    # PWD and SHLVL as bash sets them for a new interpreter.
    os.environ.clear()
    os.environ.update(env | {"PWD": os.getcwd(), "SHLVL": "0"})
    module_names = {name.split(".")[0] for name in sys.modules}
    path = {folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder}
    if _is_shadowed({os.getcwd(), *path} - {forked.folder}, module_names):
        command = [_PYTHON, "-I", "-S", "-c", source]
        os.execve(_PYTHON, command, os.environ)  # noqa: S606 - no shell is wanted
    variables = _reset_interpreter(source, base)
    try:
        exec(compile(source, "<string>", "exec"), variables)  # noqa: S102 - a command
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            raise
        print(error.code, file=sys.stderr)  # noqa: T201 - before buffered standard output
        sys.exit(1)
    except BaseException as error:  # noqa: BLE001 - shown as by the interpreter
        trace = error.__traceback__ and error.__traceback__.tb_next
        error.__traceback__ = trace  # without the frame of this program
        sys.excepthook(type(error), error, trace)
        sys.exit(1)


def _reset_interpreter(source: str, base: list[str]) -> dict[str, object]:
    """Resets this interpreter to the state of a new one for ``source``; returns its globals."""
    for name in [name for name in sys.modules if name.split(".")[0] == "coding_gym"]:
        del sys.modules[name]
    sys.argv[:], sys.path[:], sys.executable = ["-c"], base, _PYTHON
    sys.orig_argv[:] = [_PYTHON, "-I", "-S", "-c", source]
    main = sys.modules["__main__"] = type(sys)("__main__")
    vars(main)["__builtins__"] = sys.modules["builtins"]
    gc.enable()
    # Tracebacks show source lines where Python shows them for `-c`.
    lines = source.splitlines(True) if sys.version_info >= (3, 13) else []
    linecache.cache["<string>"] = (len(source), None, lines, "<string>")
    return vars(main)


def _drop_init_rights() -> None:
    """Drops the rights that the first process of a sandbox has and commands lack."""
    os.setsid()
    sc.call("close_range", 3, 0x7FFFFFFF, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # also updates Python's table of handlers
    sc.set_capabilities(0, 0)
    # Last, because other processes of the sandbox can then access the memory of this process.
    sc.prctl(sc.PR_SET_DUMPABLE, 1)


def _is_shadowed(folders: Iterable[str], module_names: set[str]) -> bool:
    """Returns whether a folder has a module with the name of an imported module."""
    names: set[str] = set()
    for folder in folders:
        with contextlib.suppress(OSError):
            names.update(name.split(".")[0] for name in os.listdir(folder))
    return not names.isdisjoint(module_names)
