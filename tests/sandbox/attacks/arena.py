"""Runs attacks in a sandbox, and asserts that the host and another sandbox are unharmed."""

import json
import os
import select
import socket
import subprocess
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from sandbox_fixtures import BACKEND, change_owner, first_pid, write_files
from system_calls import NUMBERS

import coding_gym
from coding_gym.calls import ExecResult
from coding_gym.sandbox import Mount, Sandbox, SandboxLimits, SandboxSpec, default_interpreter

# Small limits, so that an attack reaches them soon.
TIGHT = SandboxLimits(
    disk_bytes=16 << 20,
    num_inodes=2000,
    num_processes=40,
    file_bytes=4 << 20,
    num_open_files=128,
    memory_bytes=128 << 20,
)
_TIMEOUT_S = 60.0
IMPORTS = """
import ctypes, errno, fcntl, glob, json, mmap, os, pty, re, resource, select, signal, socket
import stat, struct, subprocess, sys, termios, threading, time
from contextlib import suppress
"""
# Functions of attack scripts. `attempt` takes a name and the allowed results, separated by "|". It
# prints them and the result: "DONE" and a value, "nothing" for an empty value, or an error.
WORDS = """
NUMBERS, FACTS = json.loads({numbers!r}), json.loads({facts!r})
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(name, *arguments):
    number = NUMBERS.get(name, name)
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    answer = libc.syscall(ctypes.c_long(number), *words)
    if answer < 0:
        raise OSError(ctypes.get_errno(), str(name))
    return answer
def attempt(expected, action):
    try:
        got = action()
    except OSError as error:
        print(expected, errno.errorcode.get(error.errno, type(error).__name__), flush=True)
    except Exception as error:
        print(expected, type(error).__name__, flush=True)
    else:
        empty = got is False or got in ("", b"", [], 0.5)
        print(expected, "nothing" if empty else "DONE " + ascii(got)[:2000], flush=True)
def read(path, size=1 << 20):
    with open(path, "rb") as file:
        return file.read(size)
def write(path, data=b"x"):
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)
def fill(path, size=1 << 24):
    with open(path, "wb", buffering=0) as file:
        for _ in range(size >> 16):
            file.write(bytes(1 << 16))
def texts(pattern):
    for path in glob.glob(pattern):
        with suppress(OSError):
            yield read(path)
def walk(*skipped):
    for folder, folders, files in os.walk("/"):
        folders[:] = [f for f in folders if os.path.join(folder, f) not in skipped]
        yield from (os.path.join(folder, name) for name in (*folders, *files))
def holds(path, text):
    with suppress(OSError):
        return text in path.encode() or stat.S_ISREG(os.lstat(path).st_mode) and text in read(path)
def needle():
    return FACTS["marker"][::-1].encode()
def child(action):
    "Runs an action in a forked process and returns its exit code, or minus its signal."
    pid = os.fork()
    if pid == 0:
        try:
            action()
            os._exit(0)
        except OSError as error:
            os._exit(error.errno)
        finally:
            os._exit(255)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
def hold():
    "Waits while the test checks the host during the attack."
    os.write(HERE, b"x")
    os.read(GO, 1)
with suppress(OSError):
    HERE, GO = (os.open("/opt/gate/" + n, os.O_RDWR) for n in ("here", "go"))
"""


class Host:
    """A folder, a process and listeners that the sandboxes' user may use outside a sandbox.

    Attributes:
        marker: Text that no sandbox may ever read.
        folder: Holds all files; ``secrets/key`` is the marker.
        layer: The workspace of attacker and sibling.
        shown: A folder that both mount read-only.
        gate: A folder that the attacker mounts writable; its pipes tell the test about ``hold``.
    """

    def __init__(self, closing: ExitStack) -> None:
        self.marker = "marker-of-the-host-" + os.urandom(8).hex()
        self.folder = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="host-")))
        self.layer = self._make("layer", {"shared.txt": "shared", "folder/inner.txt": "inner"})
        self.shown = self._make("shown", {"file": "shown", "folder/file": "shown"})
        self.secrets = self._make("secrets", {"key": self.marker})
        self.gate = self._make("gate", {})
        for name in ("here", "go"):
            os.mkfifo(self.gate / name)
        change_owner(BACKEND, self.gate)
        self.here, self.go = (os.open(self.gate / n, os.O_RDWR) for n in ("here", "go"))
        for descriptor in (self.here, self.go):
            closing.callback(os.close, descriptor)
        self._victim = self._start_victim(closing)
        self._listeners = self._listen(closing)
        self._before = self._state()

    def facts(self) -> dict[str, Any]:
        """Returns facts for the attacker; the marker is reversed, so a search does not find it."""
        return {
            "marker": self.marker[::-1],
            "folder": str(self.folder),
            "pid": self._victim.pid,
            "owner_pid": os.getpid(),
            "package": str(Path(coding_gym.__file__).parent),
            "home": str(Path.home()),
            "port": self._listeners[0].getsockname()[1],
            "abstract": self._listeners[1].getsockname()[1:].decode(),
        }

    def assert_unharmed(self) -> None:
        """Asserts that files, processes and mounts are as before, and that nothing connected."""
        assert self._victim.poll() is None
        before, self._before = self._before, self._state()
        keys = before.keys() | self._before.keys()
        assert [key for key in keys if before.get(key) != self._before.get(key)] == []
        assert select.select(self._listeners, [], [], 0)[0] == []

    def _make(self, name: str, files: dict[str, str]) -> Path:
        """Makes a folder of the sandboxes' user that every user may write to."""
        folder = self.folder / name
        folder.mkdir()
        write_files(folder, files)
        for path in (self.folder, folder, *folder.rglob("*")):
            path.chmod(0o777 if path.is_dir() else 0o666)
        change_owner(BACKEND, self.folder)
        return folder

    def _start_victim(self, closing: ExitStack) -> "subprocess.Popen[bytes]":
        """Starts a process of the sandboxes' own user."""
        victim = subprocess.Popen(
            ["/bin/sleep", "86400"],
            env={"HOST_SECRET": self.marker},
            cwd=self.secrets,
            **_sandbox_user(),
        )
        closing.callback(victim.wait)
        closing.callback(victim.kill)
        return victim

    def _listen(self, closing: ExitStack) -> tuple[socket.socket, ...]:
        """Returns listeners for TCP, an abstract name and a name in the file system."""
        places = (
            (socket.AF_INET, ("0.0.0.0", 0)),  # noqa: S104 - any address may be attacked
            (socket.AF_UNIX, f"\0host-{os.urandom(8).hex()}"),
            (socket.AF_UNIX, str(self.secrets / "socket")),
        )
        listeners = []
        for family, address in places:
            listener = closing.enter_context(socket.socket(family))
            listener.bind(address)
            listener.listen()
            listeners.append(listener)
        (self.secrets / "socket").chmod(0o666)
        return tuple(listeners)

    def _state(self) -> dict[str, object]:
        state: dict[str, object] = {
            str(path): (path.lstat().st_mode, path.lstat().st_mtime_ns, _content(path))
            for folder in (self.layer, self.shown, self.secrets)
            for path in (folder, *folder.rglob("*"))
        }
        mounts = _content(Path("/proc/self/mountinfo")).decode().splitlines()
        state["mounts"] = [mount for mount in mounts if str(self.folder) in mount]
        for pid in (os.getpid(), self._victim.pid):
            state[f"rights of {pid}"] = _rights(pid)
        return state


class Arena:
    """Runs attacks, each in a new sandbox, and checks for damage.

    Attributes:
        host: The host, which must not be harmed.
        spec: The spec of attackers.
        sibling: A sandbox of the same layer that must not be harmed.
    """

    def __init__(self, closing: ExitStack, **changes: Any) -> None:
        self.host = Host(closing)
        mounts = (Mount(source=self.host.shown, target="/opt/shown"),)
        spec = SandboxSpec(layers=(self.host.layer,), mounts=mounts, python=default_interpreter())
        self.sibling = closing.enter_context(BACKEND.open(spec))
        self.sibling.write_file("own.txt", b"the sibling's")
        self.sibling.write_file("/tmp/own.txt", b"the sibling's")
        self.sibling.write_file("secret.txt", self.host.marker.encode())
        self._listing = self._list_sibling()
        gate = Mount(source=self.host.gate, target="/opt/gate", writable=True)
        mounts = (*mounts, gate, *changes.pop("mounts", ()))
        forwards = {8765: self.host.secrets / "socket"}  # as for a command-line agent
        self.spec = replace(spec, mounts=mounts, forwards=forwards, **changes)

    def assert_refused(
        self, script: str, *, meanwhile: Callable[[], None] = lambda: None, **changes: Any
    ) -> None:
        """Runs a script in a new sandbox and asserts that its attempts were stopped.

        Args:
            script: Python, with `WORDS`.
            meanwhile: Assertions to run while an attack waits in ``hold``.
            **changes: Fields of the attacker's spec.
        """
        with self.open(**changes) as attacker, ThreadPoolExecutor(1) as thread:
            running = thread.submit(self.run, script, attacker)
            if "hold()" in script:
                with self.held():
                    self.assert_unharmed()
                    meanwhile()
            assert_report(running.result().output)

    def run(self, script: str, attacker: Sandbox) -> ExecResult:
        """Runs a script, in a fork of the preloaded interpreter if the spec has one."""
        if self.spec.preload:
            return attacker.run_python(source(self.host, script), timeout_s=_TIMEOUT_S)
        attacker.write_file("/tmp/attack.py", source(self.host, script).encode())
        return attacker.run("python /tmp/attack.py", timeout_s=_TIMEOUT_S)

    @contextmanager
    def open(self, **changes: Any) -> Iterator[Sandbox]:
        """Opens an attacker for an attack of several calls; checks for damage at the end."""
        with BACKEND.open(replace(self.spec, **changes)) as attacker:
            yield attacker
            assert_alone(attacker)
        self.assert_unharmed()

    def assert_unharmed(self) -> None:
        """Asserts that host and sibling are unchanged, and that the sibling works."""
        assert self._list_sibling() == self._listing
        self.host.assert_unharmed()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Waits until a script has called ``hold``; the script continues after the block."""
        try:
            assert select.select([self.host.here], [], [], _TIMEOUT_S)[0], "no call of hold"
            os.read(self.host.here, 1)
            yield
        finally:
            os.write(self.host.go, b"x")

    def _list_sibling(self) -> str:
        command = "cat own.txt /tmp/own.txt shared.txt folder/inner.txt /opt/shown/file; ls -lR"
        result = self.sibling.run(command)
        assert result.ok
        return result.output


def source(host: Host, script: str) -> str:
    """Returns a script after `IMPORTS` and `WORDS`, with a last line that prints ``end``."""
    words = WORDS.format(numbers=json.dumps(NUMBERS), facts=json.dumps(host.facts()))
    return f"{IMPORTS}{words}{textwrap.dedent(script)}\nprint('end')\n"


def assert_report(got: str) -> None:
    """Asserts that a script ended, and that each of its attempts had an allowed result."""
    *attempts, end = got.splitlines()
    assert (bool(attempts), end) == (True, "end"), got
    for line in attempts:
        _, expected, result, *_ = line.split()
        assert result in expected.split("|"), line


def assert_alone(attacker: Sandbox) -> None:
    """Asserts that a sandbox works, and that its first process has no children on the host."""
    assert attacker.run("echo alive").output == "alive\n"
    first = first_pid(attacker)
    assert Path(f"/proc/{first}/task/{first}/children").read_text(encoding="ascii") == ""


def _sandbox_user() -> dict[str, Any]:
    """Returns the options of `subprocess.Popen` for a process of the sandboxes' user."""
    uid, gid = BACKEND.owner()
    return {} if os.geteuid() == uid else {"user": uid, "group": gid, "extra_groups": []}


def _rights(pid: int) -> tuple[object, ...]:
    """Returns the properties that a process may change in another process of the same user."""
    status = _content(Path(f"/proc/{pid}/status")).decode()
    tracer = next(line for line in status.splitlines() if line.startswith("TracerPid"))
    nice = os.getpriority(os.PRIO_PROCESS, pid)
    limits = _content(Path(f"/proc/{pid}/limits"))
    return limits, nice, os.sched_getaffinity(pid), tracer, "State:\tT" in status


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""
