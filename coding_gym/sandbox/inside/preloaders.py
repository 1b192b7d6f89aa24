"""Interpreters that have imported modules and wait, sealed off, to be forked into sandboxes.

One *preloader* per interpreter, modules and folders of these runs `preload_program`. It lives in
the server's user and pid namespaces, from where a fork can enter those of a sandbox, and has a
mount namespace of its own with the host's system folders, the interpreter and the folders of the
modules, at the paths that they have in sandboxes. A sandbox reaches its preloader by the *bell*, a
socket over which its first process sends its namespaces once, and then a byte for every fork.
The fork reads its request from another socket, and says there which process it is.
"""

import contextlib
import json
import marshal
import os
import resource
import socket
import struct
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coding_gym.sandbox.inside import lockdown, mounts, wire
from coding_gym.sandbox.inside import syscalls as sc
from coding_gym.sandbox.inside.host_folders import (
    ALLOWED,
    MOUNTED,
    MountedFolders,
    allowed_folders,
    allowed_links,
)
from coding_gym.sandbox.inside.spawn import Bash, Feed

# In a first process that has a preloader: its end of the bell, and of the socket for requests. The
# server has descriptors of these numbers that a sandbox does not need.
BELL, REQUESTS = 4, 5
_MAX_PRELOADERS = 4
_MAX_DATA_BYTES = 1 << 30
# A fork that is not there by then does not come: the run starts cold.
_PATIENCE_S = 5.0
_NAMESPACES = ("pid", "user", "net", "ipc", "uts", "cgroup", "mnt")
_PROGRAM = Path(__file__).with_name("preload_program.py").read_text(encoding="utf-8")
# No PYTHONPATH and no other variable that Python reads: with -s and -S that isolates as -I does,
# which would ignore the seed.
_ENV = {"PATH": "/sandbox/bin:/usr/bin:/bin", "LC_CTYPE": "C.UTF-8", "TZ": "UTC"}
_ENV |= {"PYTHONHASHSEED": "0", "HOME": "/", "LD_BIND_NOW": "1"}
_CAPABILITIES = (18, 21)  # CAP_SYS_CHROOT and CAP_SYS_ADMIN
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE = 47, 2
_PR_SET_NO_NEW_PRIVS, _PR_CAPBSET_DROP = 38, 24
_MARSHAL_VERSION = 2  # every Python reads it
_KIND = socket.AF_UNIX, socket.SOCK_STREAM


@dataclass(frozen=True, slots=True, kw_only=True)
class Preload:
    """An interpreter with modules that is to be preloaded.

    Attributes:
        modules: The modules.
        folders: Where they are found.
        mount_keys: Identities of the mounted folders, with their paths; names are reused.
        mounts: Names of these below `MOUNTED`, and paths at which they are needed.
        links: The links that name the interpreter, by their paths.
    """

    modules: tuple[str, ...]
    folders: tuple[str, ...]
    mount_keys: tuple[Hashable, ...]
    mounts: tuple[tuple[str, str], ...] = field(compare=False)
    links: tuple[tuple[str, str], ...]


def planned(request: dict[str, Any]) -> Preload | None:
    """Returns the preload that a request for a sandbox names; None where it names none."""
    asked = request["preload"]
    if asked is None:
        return None
    return Preload(
        modules=tuple(asked["modules"]),
        folders=tuple(asked["folders"]),
        mount_keys=tuple((MountedFolders.key(request["show"][i]), at) for i, at in asked["mounts"]),
        mounts=tuple((request["names"][index], target) for index, target in asked["mounts"]),
        links=tuple(request["links"].items()),
    )


class Preloaders:
    """The preloaders of a server, each started when first needed; the least used one goes first."""

    def __init__(self) -> None:
        self._controls: OrderedDict[Preload, socket.socket] = OrderedDict()

    def connect(self, preload: Preload) -> tuple[int, int]:
        """Returns the descriptors of a new sandbox's ends of the bell and of the other socket.

        They are at their end where no preloader could be started.
        """
        bell, their_bell = sc.socket_pair()
        requests, their_requests = sc.socket_pair()
        for _ in range(2):  # one that ended when idle is started anew
            control = self._controls.get(preload) or self._start(preload)
            self._controls[preload] = control
            self._controls.move_to_end(preload)
            try:
                descriptors = [their_bell, their_requests]
                socket.send_fds(control, [b"+"], descriptors, socket.MSG_DONTWAIT)
                break
            except OSError:
                self._controls.pop(preload).close()
        os.close(their_bell)
        os.close(their_requests)
        while len(self._controls) > _MAX_PRELOADERS:
            self._controls.popitem(last=False)[1].close()
        return bell, requests

    def _start(self, preload: Preload) -> socket.socket:
        ours, theirs = socket.socketpair(*_KIND)
        with theirs:
            flags = sc.NEW_MOUNT | sc.NEW_NET | sc.NEW_IPC | sc.NEW_UTS
            if sc.clone(flags) == 0:
                try:
                    _run_preloader(preload, theirs.fileno())
                finally:
                    os._exit(1)
        return ours


def _run_preloader(preload: Preload, control: int) -> None:
    """Builds the preloader's root, keeps what it needs to enter sandboxes, and runs it."""
    os.dup2(control, 100, inheritable=False)
    reader, writer = os.pipe()
    for descriptor, place in ((reader, 0), (writer, 1), (writer, 2), (100, 3)):
        os.dup2(descriptor, place)
    sc.NOW.call("close_range", 4, 0x7FFFFFFF, 0)
    sc.raise_oom_score(lockdown.OOM_SCORE)
    _build_root(preload)
    sc.personality(lockdown.NO_RANDOMIZATION)
    resource.setrlimit(resource.RLIMIT_CORE, (1, 1))
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (_MAX_DATA_BYTES, hard))
    for capability in {*range(lockdown.num_capabilities())}.difference(_CAPABILITIES):
        sc.prctl(_PR_CAPBSET_DROP, capability)
    kept = sum(1 << capability for capability in _CAPABILITIES)
    sc.set_capabilities(kept, kept, kept)
    for capability in _CAPABILITIES:
        sc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, capability)
    sc.prctl(_PR_SET_NO_NEW_PRIVS, 1)
    config = {
        "modules": preload.modules,
        "filter": lockdown.FILTER.hex(),
        "num_capabilities": lockdown.num_capabilities(),
    }
    command = ["python", "-s", "-S", "-c", _PROGRAM, json.dumps(config), *preload.folders]
    os.execve("/sandbox/bin/python", command, _ENV)  # noqa: S606 - no shell is wanted


def _build_root(preload: Preload) -> None:
    """Changes to a root of system folders, interpreter and modules, without /proc."""
    calls, folders, links = sc.NOW, allowed_folders(), allowed_links() | dict(preload.links)
    calls.mount("tmpfs", mounts.EPISODE, mounts.QUIET, "mode=0755,size=1m")
    mounts.change_root(calls, mounts.EPISODE)
    for folder in folders:
        calls.mkdir(folder)
        calls.bind(mounts.OLD + ALLOWED + folder, folder)
    for name, target in preload.mounts:
        calls.makedirs(target)
        calls.bind(f"{mounts.OLD}{MOUNTED}/{name}", target)
    for path, target in links.items():
        calls.makedirs(os.path.dirname(path))
        calls.symlink(target, path)
    calls.unmount(mounts.OLD)
    calls.rmdir(mounts.OLD)
    calls.restrict("/", mounts.QUIET | sc.READ_ONLY, recursive=False)


def offer(sockets: tuple[int, int]) -> None:
    """Gives the preloader this process's namespaces.

    To be called in a first process before it gives anything up; its plan begins by closing every
    descriptor above `REQUESTS`.

    Args:
        sockets: From `Preloaders.connect`; also `BELL` and `REQUESTS` afterwards.
    """
    for descriptor, number in zip(sockets, (BELL, REQUESTS), strict=True):
        os.dup2(descriptor, number, inheritable=False)
    paths = [f"/proc/self/ns/{name}" for name in _NAMESPACES]
    sent = [os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in paths]
    channel = socket.socket(*_KIND, 0, BELL)
    with contextlib.suppress(OSError):  # it has ended: runs start cold
        socket.send_fds(channel, [b"n"], sent)
    channel.detach()


class PreloadedPython(Bash):
    """A fork of the preloaded interpreter, in place of the bash that would start it cold."""

    def __init__(self, pid: int, reader: int, writer: int, feed: int, stdin: bytes) -> None:
        self.pid, self.reader, self._writer = pid, reader, writer
        self.feeds = []
        for descriptor in (reader, feed):
            os.set_blocking(descriptor, False)
        self.feed(Feed(feed, stdin))


class PreloadedLauncher:
    """Runs Python source in forks of the preloader, for as long as that answers."""

    def __init__(self, limits: dict[str, int]) -> None:
        self._limits = lockdown.limit_values(limits)
        self._channels: tuple[socket.socket, socket.socket] | None = None
        self._is_over = False

    def start(
        self, request: dict[str, Any], stdin: bytes, env: Mapping[bytes, bytes]
    ) -> Bash | None:
        """Starts the ``source`` of a request in its ``cwd``; None where it must start cold."""
        if self._is_over:
            return None
        if self._channels is None:
            bell, requests = (socket.socket(*_KIND, 0, number) for number in (BELL, REQUESTS))
            requests.settimeout(_PATIENCE_S)
            self._channels = bell, requests
        bell, requests = self._channels
        try:
            bell.send(b"r")
            order = {
                "limits": self._limits,
                "source": request["source"],
                "cwd": request["cwd"],
                "env": {os.fsdecode(name): os.fsdecode(value) for name, value in env.items()},
            }
            text = marshal.dumps(order, _MARSHAL_VERSION)
            requests.sendall(struct.pack("<I", len(text)) + text)
            data, found = wire.receive_descriptors(requests, 4, 3)
            (pid,) = struct.unpack("<I", data)
            reader, writer, feed = found
            return PreloadedPython(pid, reader, writer, feed, stdin)
        except (OSError, ValueError, struct.error):  # a fork that comes later ends by its message
            self._is_over = True
            bell.close()
            requests.close()
            return None
