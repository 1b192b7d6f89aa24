"""The preloader: imports modules, then forks itself into sandboxes. A text; never imported.

It runs as ``python -s -S -c`` under the interpreter of a task's environment (Python 3.6 or later),
in a root without anything of a sandbox. Until a fork is sealed it runs nothing but the standard
library and the modules that it was told to import. It never reads the request of a run: it sees a
byte of the first process, forks, and the fork asks the first process for the request itself.

Arguments: the modules as JSON, and the folders that they are in.
"""

import array
import ctypes
import gc
import json
import linecache
import os
import select
import signal
import socket
import struct
import sys

TYPE_CHECKING = False  # `typing` takes time to import
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_CONTROL = 3
_IDLE_MS = 300 * 1000
_NEW_PID = 0x20000000
_RLIMIT_DATA = 2
_NUM_NAMESPACES = 7
_PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_SET_SECUREBITS = 4, 22, 24, 28
_PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 38, 47, 4
_SECCOMP_FILTER = 2
_SECUREBITS_LOCKED = 0xEF
_CAPABILITY_VERSION = 0x20080522
_CLOSE_RANGE = 436  # its number on every architecture

libc = ctypes.PyDLL(None, use_errno=True)


def require(result: int) -> None:
    """Raises OSError where a function of the C library failed."""
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def prctl(option: int, first: int = 0, second: int = 0) -> None:
    """Sets an attribute of this process."""
    longs = [ctypes.c_ulong(value) for value in (first, second, 0, 0)]
    require(libc.prctl(option, *longs))


def receive(channel: socket.socket, most: int) -> "tuple[bytes, list[int]]":
    """Returns what comes with one message: its bytes, and its descriptors."""
    room = socket.CMSG_SPACE(most * array.array("i").itemsize)
    data, ancillary, _, _ = channel.recvmsg(16, room, socket.MSG_CMSG_CLOEXEC)
    found = array.array("i")
    for _, _, text in ancillary:
        found.frombytes(text[: len(text) - len(text) % found.itemsize])
    return data, list(found)


class Scene:
    """A sandbox that may ask for forks.

    Its first message brings its namespaces: pid first, then user, then the others; and, where it
    has a control group, the file by which a process joins that.
    """

    def __init__(self, descriptor: int) -> None:
        self.bell = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, descriptor)
        self.descriptors: list[int] = []

    def attend(self) -> "bool | None":
        """Takes a message; False where the sandbox has ended. True in the parent, None in a fork.

        The fork returns when it is to run its source.
        """
        data, found = receive(self.bell, _NUM_NAMESPACES + 1)
        if not data:
            return False
        if found:
            self.descriptors = found
            return True
        require(libc.setns(self.descriptors[0], _NEW_PID))
        if os.fork():
            return True
        try:
            self.enter()
            if os.fork():
                os._exit(0)  # so that the sandbox's first process adopts the fork
        except BaseException:  # noqa: BLE001 - nothing may go on in the copy of the preloader
            os._exit(1)
        return None

    def enter(self) -> None:
        """Moves this process, which is in the sandbox's pid namespace, into all its others."""
        for group in self.descriptors[_NUM_NAMESPACES:]:
            os.write(group, b"0")
        for descriptor in self.descriptors[1:_NUM_NAMESPACES]:
            require(libc.setns(descriptor, 0))

    def end(self) -> None:
        """Lets go of the sandbox's namespaces."""
        self.bell.close()
        for descriptor in self.descriptors:
            os.close(descriptor)


def serve(control: socket.socket) -> Scene:
    """Forks on request; returns the scene of the run in a fork, ends the process when idle."""
    scenes: dict[int, Scene] = {}
    poller = select.poll()
    poller.register(control, select.POLLIN)
    while True:
        ready = poller.poll(None if scenes else _IDLE_MS)
        if not ready:
            os._exit(0)
        for descriptor, _ in ready:
            if descriptor == control.fileno():
                data, found = receive(control, 1)
                if not data:
                    os._exit(0)
                for bell in found:
                    scenes[bell] = Scene(bell)
                    poller.register(bell, select.POLLIN)
                continue
            scene = scenes[descriptor]
            try:
                goes_on = scene.attend()
            except OSError:
                goes_on = False
            if goes_on is None:
                return scene
            if not goes_on:
                poller.unregister(descriptor)
                scenes.pop(descriptor).end()


def ask(scene: Scene) -> "dict[str, Any]":
    """Tells the first process who runs and how to reach it; returns the request of the run."""
    ours, theirs = socket.socketpair()
    stdin, feed = os.pipe()
    reader, output = os.pipe()
    parts = array.array("i", [theirs.fileno(), reader, output, feed])
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, parts)]
    scene.bell.sendmsg([struct.pack("<I", os.getpid())], ancillary)
    theirs.close()
    data = b""
    while True:
        chunk = ours.recv(1 << 16)
        if not chunk:
            break
        data += chunk
    request: dict[str, Any] = json.loads(data.decode())
    os.dup2(stdin, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    require(libc.syscall(*(ctypes.c_long(word) for word in (_CLOSE_RANGE, 3, 0x7FFFFFFF, 0))))
    return request


def seal(request: "dict[str, Any]") -> None:
    """Gives up, for good, all that a command of the sandbox lacks."""
    import resource

    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, hard = resource.getrlimit(_RLIMIT_DATA)
    resource.setrlimit(_RLIMIT_DATA, (hard, hard))
    for kind, value in request["limits"]:
        resource.setrlimit(kind, (value, value))
    prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    prctl(_PR_SET_SECUREBITS, _SECUREBITS_LOCKED)
    for capability in range(request["num_capabilities"]):
        prctl(_PR_CAPBSET_DROP, capability)
    header = struct.pack("Ii", _CAPABILITY_VERSION, 0)
    require(libc.capset(header, bytes(24)))
    prctl(_PR_SET_NO_NEW_PRIVS, 1)
    prctl(_PR_SET_DUMPABLE, 1)
    code = ctypes.create_string_buffer(bytes.fromhex(request["filter"]))
    record = struct.pack("H6xQ", (len(code) - 1) // 8, ctypes.addressof(code))
    filter_at = ctypes.create_string_buffer(record)
    prctl(_PR_SET_SECCOMP, _SECCOMP_FILTER, ctypes.addressof(filter_at))
    while os.getppid() != 1:  # the process between, which ends just now
        select.select([], [], [], 0.0001)


def is_shadowed(folders: "Iterable[str]", known: "set[str]") -> bool:
    """Whether a folder has a module of a name that the preloader has imported already."""
    for folder in folders:
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        if any(name.split(".")[0] in known for name in names):
            return True
    return False


def run(request: "dict[str, Any]", base: "list[str]", preloaded: "list[str]") -> None:
    """Runs the source as ``__main__``; returns as it ends, or begins cold in this process."""
    os.chdir(request["cwd"])
    # As from the bash that starts it cold.
    own = dict(request["env"], PWD=request["cwd"], SHLVL="0")
    os.environ.clear()
    os.environ.update(own)
    where = [folder for folder in own.get("PYTHONPATH", "").split(os.pathsep) if folder]
    where = [os.getcwd()] + [folder for folder in where if folder not in preloaded]
    if is_shadowed(where, {name.split(".")[0] for name in sys.modules}):
        command = [sys.executable, "-I", "-S", "-c", request["source"]]
        os.execve(sys.executable, command, os.environ)  # noqa: S606 - no shell is wanted
    sys.argv[:] = ["-c"]
    sys.path[:] = base
    if sys.version_info < (3, 7) and "random" in sys.modules:
        sys.modules["random"].seed()
    main = type(sys)("__main__")
    vars(main)["__builtins__"] = sys.modules["builtins"]
    sys.modules["__main__"] = main
    gc.enable()
    lines = request["source"].splitlines(True)
    # Tracebacks show them where those of `-c` do; never those of this program.
    shown = (len(request["source"]), None, lines if sys.version_info >= (3, 13) else [], "<string>")
    linecache.cache["<string>"] = shown
    try:
        exec(compile(request["source"], "<string>", "exec"), vars(main))  # noqa: S102 - sealed
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - shown as the interpreter would
        trace = error.__traceback__ and error.__traceback__.tb_next
        error.__traceback__ = trace  # without the frame of this program
        sys.excepthook(type(error), error, trace)
        sys.exit(1)


if __name__ == "__main__":
    prctl(_PR_SET_DUMPABLE)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps
    paths = [path for path in sys.path if path]
    sys.path[:] = paths + sys.argv[2:]
    for module in json.loads(sys.argv[1]):
        __import__(module)
    import resource  # noqa: F401 - for every fork

    gc.collect()
    gc.disable()
    if hasattr(gc, "freeze"):
        gc.freeze()
    asked = serve(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, _CONTROL))
    try:
        order = ask(asked)
        seal(order)
    except BaseException:  # noqa: BLE001 - unsealed, it must not go on
        os._exit(1)
    run(order, paths, sys.argv[2:])
