"""Targets of attacks on the host, placed so that only the sandbox protects them."""

import itertools
import os
import select
import socket
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path

import coding_gym
from coding_gym.sandbox import Mount

_SETTINGS = (
    *("kernel/core_pattern", "kernel/hostname", "kernel/domainname", "kernel/sysrq"),
    *("kernel/panic", "vm/overcommit_memory", "fs/file-max", "net/ipv4/ip_forward"),
)
_DEVICES = ("null", "zero", "full", "random", "urandom")


class Host:
    """A folder, a process and listeners that the sandboxes' user may use as far as the host minds.

    Attributes:
        marker: Text that no sandbox may ever see.
        layer: What attacker and sibling both have as their workspace.
        mounts: What both see read-only.
        gate_mount: Through which scripts say that they got somewhere; what comes out of ``here``
            was said, what goes into ``go`` lets them go on.
    """

    def __init__(self, owner: tuple[int, int]) -> None:
        self.owner = owner
        self.marker = "marker-of-the-host-" + os.urandom(8).hex()
        with ExitStack() as closing:
            self._build(closing)
            self._closing = closing.pop_all()

    def close(self) -> None:
        """Removes everything."""
        self._closing.close()

    def _build(self, closing: ExitStack) -> None:
        self._folder = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="host-")))
        self.layer = self._make("layer", {"shared.txt": "shared", "folder/inner.txt": "inner"})
        self._shown = self._make("shown", {"file": "shown", "folder/file": "shown"})
        self._count = itertools.count()
        self._secrets = self._make("secrets", {"key": self.marker, ".ssh/id_ed25519": self.marker})
        self.secret = self._secrets / "key"
        shared_memory = Path("/dev/shm", self._folder.name)
        shared_memory.write_text(self.marker, encoding="utf-8")
        closing.callback(shared_memory.unlink)
        shared_memory.chmod(0o666)
        self._gate = self._make("gate", {})
        for name in ("here", "go"):
            os.mkfifo(self._gate / name)
            os.chown(self._gate / name, *self.owner)
        self.mounts = (Mount(source=self._shown, target="/opt/shown"),)
        self.gate_mount = Mount(source=self._gate, target="/opt/gate", writable=True)
        self.here, self.go = (os.open(self._gate / n, os.O_RDWR) for n in ("here", "go"))
        for descriptor in (self.here, self.go):
            closing.callback(os.close, descriptor)
        self._victim = self._start_victim(closing)
        self._listeners = self._listen(closing)
        self._before = self._state()

    def facts(self) -> dict[str, object]:
        """Returns what an attacker knows: everything but the marker, which is told backwards."""
        return {
            "marker": self.marker[::-1],
            "folder": str(self._folder),
            "pid": self._victim.pid,
            "owner_pid": os.getpid(),
            "package": str(Path(coding_gym.__file__).parent),
            "home": str(Path.home()),
            "port": self._listeners[0].getsockname()[1],
            "udp_port": self._listeners[1].getsockname()[1],
            "abstract": self._listeners[2].getsockname()[1:].decode(),
            "address": _outside_address(),
        }

    def assert_unharmed(self) -> None:
        """Asserts that nothing of the host has changed, and that nobody has called."""
        assert self._victim.poll() is None
        before, self._before = self._before, self._state()
        keys = before.keys() | self._before.keys()
        assert [key for key in keys if before.get(key) != self._before.get(key)] == []
        poller = select.poll()
        for listener in self._listeners:
            poller.register(listener, select.POLLIN)
        assert poller.poll(0) == []

    def spare(self) -> Path:
        """Makes a copy of what the mount shows, to be changed under an ablation."""
        return self._make(f"spare{next(self._count)}", {"file": "shown", "folder/file": "shown"})

    def answer_calls(self) -> None:
        """Takes what a less confined attacker was able to send."""
        for listener in self._listeners:
            listener.setblocking(False)
            try:
                while True:
                    if listener.type == socket.SOCK_DGRAM:
                        listener.recv(100)
                    else:
                        listener.accept()[0].close()
            except BlockingIOError:
                continue

    def _make(self, name: str, files: dict[str, str]) -> Path:
        """Makes a folder of the sandboxes' user, that everybody may write."""
        folder = self._folder / name
        folder.mkdir()
        for path, text in files.items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        for path in (self._folder, folder, *folder.rglob("*")):
            path.chmod(0o777 if path.is_dir() else 0o666)
            os.chown(path, *self.owner)
        return folder

    def _start_victim(self, closing: ExitStack) -> subprocess.Popen[bytes]:
        """Starts a process of the sandboxes' own user."""
        uid, gid = self.owner
        other = {} if os.geteuid() == uid else {"user": uid, "group": gid, "extra_groups": []}
        env = {"HOST_SECRET": self.marker}
        victim = subprocess.Popen(["/bin/sleep", "86400"], env=env, cwd=self._secrets, **other)
        closing.callback(victim.wait)
        closing.callback(victim.kill)
        return victim

    def _listen(self, closing: ExitStack) -> tuple[socket.socket, ...]:
        """Returns listeners for TCP, UDP, an abstract name and a name in the file system."""
        name = self._secrets / "socket"
        everywhere = ("0.0.0.0", 0)  # noqa: S104 - its outside address is attacked too
        places = (
            (socket.AF_INET, socket.SOCK_STREAM, everywhere),
            (socket.AF_INET, socket.SOCK_DGRAM, everywhere),
            (socket.AF_UNIX, socket.SOCK_STREAM, f"\0host-{os.urandom(8).hex()}"),
            (socket.AF_UNIX, socket.SOCK_STREAM, str(name)),
        )
        listeners = []
        for family, kind, address in places:
            listener = closing.enter_context(socket.socket(family, kind))
            listener.bind(address)
            if kind == socket.SOCK_STREAM:
                listener.listen()
            listeners.append(listener)
        name.chmod(0o666)
        return tuple(listeners)

    def _state(self) -> dict[str, object]:
        state: dict[str, object] = {
            str(path): (path.lstat().st_mode, path.lstat().st_mtime_ns, _content(path))
            for folder in (self.layer, self._shown, self._secrets)
            for path in (folder, *folder.rglob("*"))
        }
        for name in _DEVICES:
            # Not its dates: another run of this suite may change them under an ablation.
            state[name] = Path("/dev", name).stat().st_mode
        for name in _SETTINGS:
            state[name] = _content(Path("/proc/sys", name))
        mounts = _content(Path("/proc/self/mountinfo")).decode().splitlines()
        state["mounts"] = [m for m in mounts if str(self._folder) in m or "/.old/" in m]
        for pid in (os.getpid(), self._victim.pid):
            state[f"rights of {pid}"] = _rights(pid)
        return state


def _rights(pid: int) -> tuple[object, ...]:
    """Returns what one process may take from another of the same user."""
    limits = _content(Path(f"/proc/{pid}/limits"))
    status = _content(Path(f"/proc/{pid}/status")).decode()
    tracer = next(line for line in status.splitlines() if line.startswith("TracerPid"))
    stopped = "State:\tT" in status
    nice = os.getpriority(os.PRIO_PROCESS, pid)
    return limits, nice, os.sched_getaffinity(pid), tracer, stopped


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _outside_address() -> str:
    """Returns the address that other machines know this one by; the loopback's without any."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])
