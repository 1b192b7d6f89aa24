"""The preloader: imports modules, then forks itself into sandboxes. A text; never imported.

It runs as ``python -s -S -c`` under the interpreter of a task's environment (Python 3.6 or later),
in a root without anything of a sandbox. Until a fork is sealed it runs nothing but the standard
library and the modules that it was told to import. The preloader never reads the request of a run:
it receives a byte of the first process and forks, and the fork reads the request.

A fork copies every page of memory that it writes to, and counting references is writing. So what
all forks need is computed before, and they touch few objects before the source runs.

Arguments: a JSON object (``modules``, ``filter``, ``num_capabilities``), and the folders that the
modules are in.
"""

import array
import ctypes
import gc
import json
import linecache
import marshal
import os
import resource
import select
import signal
import socket
import struct
import sys

TYPE_CHECKING = False  # `typing` takes time to import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

_CONTROL = 3
_IDLE_MS = 300 * 1000
_NEW_PID = 0x20000000
_NUM_NAMESPACES = 7
_PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_SET_SECUREBITS = 4, 22, 24, 28
_SECCOMP_FILTER = 2
_SECUREBITS_LOCKED = 0xEF
_CAPABILITY_VERSION = 0x20080522
_CLOSE_RANGE = 436  # its number on every architecture

libc = ctypes.PyDLL(None, use_errno=True)
libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
libc.syscall.argtypes = [ctypes.c_long] * 4
libc.capset.argtypes = [ctypes.c_char_p] * 2
ctypes.pythonapi.Py_IncRef.argtypes = [ctypes.py_object]


def require(result: int) -> None:
    """Raises OSError where a function of the C library failed."""
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def prctl(option: int, first: int = 0, second: int = 0) -> None:
    """Sets an attribute of this process."""
    require(libc.prctl(option, first, second, 0, 0))


def stream(descriptor: int) -> socket.socket:
    """Returns the socket of a descriptor."""
    return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, descriptor)


def fork() -> int:
    """Forks without calling what modules registered for that; returns 0 in the child."""
    pid: int = libc.fork()
    require(pid)
    return pid


def import_all(modules: "Iterable[str]") -> "list[Callable[[], object]]":
    """Imports modules; returns the functions that they want to be called in every fork.

    Those of `threading` and `logging` are left out: they renew locks that other threads may hold,
    and there are no other threads. Python before 3.7 has no such functions.
    """
    functions = []
    register: Any = getattr(os, "register_at_fork", None)

    def record(**hooks: "Callable[[], object]") -> None:
        register(**hooks)
        function = hooks.get("after_in_child")
        if function is not None and function.__module__ not in ("threading", "logging"):
            functions.append(function)

    if register is not None:
        vars(os)["register_at_fork"] = record
    for module in modules:
        __import__(module)
    if register is not None:
        vars(os)["register_at_fork"] = register
    if len(sys._current_frames()) > 1:
        os._exit(1)  # a module started a thread, which no fork would have
    if sys.version_info < (3, 8):  # noqa: UP036 - the interpreter is the environment's
        # These versions remember the process whose signal handlers they call. It calls the others.
        python = ctypes.pythonapi
        return [getattr(python, "PyOS_AfterFork_Child", None) or python.PyOS_AfterFork]
    if "threading" in sys.modules:
        thread = sys.modules["threading"].main_thread()
        functions.append(getattr(thread, "_set_native_id", int))  # from Python 3.8 on
    return functions


class Seal:
    """Gives up, for good, all that a command of a sandbox lacks; ``code`` is the seccomp filter."""

    def __init__(self, num_capabilities: int, code: bytes) -> None:
        # All that is the same in each fork.
        self.capabilities = range(num_capabilities)
        self.header = struct.pack("Ii", _CAPABILITY_VERSION, 0)
        self.no_capabilities = bytes(24)
        self.code = ctypes.create_string_buffer(code, len(code))
        record = struct.pack("H6xQ", len(code) // 8, ctypes.addressof(self.code))
        self.filter = ctypes.create_string_buffer(record, len(record))
        self.filter_at = ctypes.addressof(self.filter)

    def apply(self, limits: "list[tuple[int, int]]") -> None:
        """Seals this process, which has just entered the user namespace of a sandbox.

        The kernel gave it all capabilities there, none of them ambient. The preloader has given up
        gaining privileges by an exec.
        """
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
        for kind, value in limits:
            resource.setrlimit(kind, (value, value))
        prctl(_PR_SET_SECUREBITS, _SECUREBITS_LOCKED)
        for capability in self.capabilities:
            prctl(_PR_CAPBSET_DROP, capability)
        require(libc.capset(self.header, self.no_capabilities))
        prctl(_PR_SET_SECCOMP, _SECCOMP_FILTER, self.filter_at)
        # Last: from here on other processes of the sandbox can read and write its memory.
        prctl(_PR_SET_DUMPABLE, 1)


def receive(channel: socket.socket, most: int) -> "tuple[bytes, list[int]]":
    """Returns what comes with one message: its bytes, and its descriptors."""
    size = socket.CMSG_SPACE(most * array.array("i").itemsize)
    data, ancillary, _, _ = channel.recvmsg(16, size, socket.MSG_CMSG_CLOEXEC)
    found = array.array("i")
    for _, _, text in ancillary:
        found.frombytes(text[: len(text) - len(text) % found.itemsize])
    return data, list(found)


class Scene:
    """A sandbox that may ask for forks.

    Its first message brings its namespaces: pid first, then user, then the others.

    Args:
        bell: Brings that message, and one for each run.
        requests: Brings the requests of the runs; only forks read them.
    """

    def __init__(self, bell: int, requests: int) -> None:
        self.bell, self.requests = stream(bell), stream(requests)
        self.descriptors: list[int] = []

    def attend(self) -> "bool | None":
        """Takes a message; False where the sandbox has ended. True in the parent, None in a fork.

        The fork returns when it is to run its source.
        """
        data, found = receive(self.bell, _NUM_NAMESPACES)
        if not data:
            return False
        if found:
            self.descriptors = found
            return True
        require(libc.setns(self.descriptors[0], _NEW_PID))
        if fork():
            return True
        try:
            self.enter()
            if fork():
                os._exit(0)  # so that the sandbox's first process adopts the fork
        except BaseException:  # noqa: BLE001 - nothing may go on in the copy of the preloader
            self.fail()
        return None

    def enter(self) -> None:
        """Moves this process, which is in the sandbox's pid namespace, into all its others."""
        for descriptor in self.descriptors[1:]:
            require(libc.setns(descriptor, 0))

    def fail(self) -> None:
        """Ends this fork; the first process does not wait for it."""
        try:
            self.requests.shutdown(socket.SHUT_RDWR)
        finally:
            os._exit(1)

    def end(self) -> None:
        """Lets go of the sandbox's namespaces."""
        self.bell.close()
        self.requests.close()
        for descriptor in self.descriptors:
            os.close(descriptor)


def serve(control: socket.socket) -> Scene:
    """Forks on request; returns the scene of the run in a fork, ends the process when idle."""
    scenes: dict[int, Scene] = {}
    # Neither is ever freed: in a fork, their sockets would close descriptors that the run opened.
    ctypes.pythonapi.Py_IncRef(control)
    ctypes.pythonapi.Py_IncRef(scenes)
    poller = select.poll()
    poller.register(control, select.POLLIN)
    while True:
        ready = poller.poll(None if scenes else _IDLE_MS)
        if not ready:
            os._exit(0)
        for descriptor, _ in ready:
            if descriptor == control.fileno():
                data, found = receive(control, 2)
                if not data:
                    os._exit(0)
                scenes[found[0]] = Scene(*found)
                poller.register(found[0], select.POLLIN)
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
    """Returns the request of the run; tells the first process who runs and how to reach it.

    In this order: where a fork is killed before it has read all, the first process hears of none,
    and sends no request that the next fork would take the rest for.
    """
    (size,) = struct.unpack("<I", scene.requests.recv(4, socket.MSG_WAITALL))
    text = scene.requests.recv(size, socket.MSG_WAITALL)
    stdin, feed = os.pipe()
    reader, output = os.pipe()
    parts = array.array("i", [reader, output, feed])
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, parts)]
    scene.requests.sendmsg([struct.pack("<I", os.getpid())], ancillary)
    request: dict[str, Any] = marshal.loads(text)  # noqa: S302 - of the first process
    os.dup2(stdin, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    require(libc.syscall(_CLOSE_RANGE, 3, 0x7FFFFFFF, 0))
    return request


def is_shadowed(folders: "Iterable[str]", known: "frozenset[str]") -> bool:
    """Whether a folder has a module of a name that the preloader has imported already."""
    for folder in folders:
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        if any(name.split(".")[0] in known for name in names):
            return True
    return False


def run(
    request: "dict[str, Any]", base: "list[str]", preloaded: "list[str]", known: "frozenset[str]"
) -> None:
    """Runs the source as ``__main__``; returns as it ends, or begins cold in this process.

    Args:
        request: ``source``, ``cwd``, ``env``.
        base: The search path of a cold start.
        preloaded: The folders of the modules that were imported ahead.
        known: The first parts of the names of all modules that were imported.
    """
    os.chdir(request["cwd"])
    # As from the bash that starts it cold.
    own = dict(request["env"], PWD=request["cwd"], SHLVL="0")
    for name in own:
        os.environ[name] = own[name]
    where = [folder for folder in own.get("PYTHONPATH", "").split(os.pathsep) if folder]
    where = [os.getcwd()] + [folder for folder in where if folder not in preloaded]
    if is_shadowed(where, known):
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
    entry = (len(request["source"]), None, lines if sys.version_info >= (3, 13) else [], "<string>")
    linecache.cache["<string>"] = entry
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
    config = json.loads(sys.argv[1])
    after_fork = import_all(config["modules"])
    names = frozenset(name.split(".")[0] for name in sys.modules)
    seal = Seal(config["num_capabilities"], bytes.fromhex(config["filter"]))
    os.environ.clear()
    gc.collect()
    gc.disable()
    if hasattr(gc, "freeze"):
        gc.freeze()
    try:
        order = ask(serve(stream(_CONTROL)))
        seal.apply(order["limits"])
    except BaseException:  # noqa: BLE001 - unsealed, it must not go on
        os._exit(1)
    while os.getppid() != 1:  # the process between, which ends just now
        select.select([], [], [], 0.0001)
    for function in after_fork:
        function()
    run(order, paths, sys.argv[2:], names)
