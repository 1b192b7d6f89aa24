"""The set-up of a sandbox as a list of system calls, worked out before it has a process.

Every Python object that a first process touches costs it memory for as long as the sandbox lives:
the object's reference count changes, and the page that holds it is no longer shared with the
server. So the server works the list out (`_plan_sandbox` has it from top to bottom), writes it down
as plain numbers, and keeps it for the next sandbox of its kind; the first process only runs it.
"""

import ctypes
import os
import struct
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from socket import socket
from typing import Any, NamedTuple

from coding_gym.sandbox.inside import image_root, lockdown, mounts, packing, preloaders, wire
from coding_gym.sandbox.inside import syscalls as sc
from coding_gym.sandbox.inside.commands import Commands
from coding_gym.sandbox.inside.host_folders import MountedFolders
from coding_gym.sandbox.inside.packing import Changes
from coding_gym.sandbox.inside.syscalls import SetupError, step

# The first process's only descriptor at its start: the channel to the owner. The server has its own
# channel there, so that the object for that one serves both.
CHANNEL = 3
_NAMESPACES = sc.NEW_USER | sc.NEW_MOUNT | sc.NEW_PID | sc.NEW_IPC | sc.NEW_UTS | sc.NEW_CGROUP
_MAX_KNOWN = 64
_SIGCHLD = 17
# A handler, flags, a restorer, a mask: by default nothing.
_DEFAULT_ACTION = bytes(32)
_MASK_BYTES = 8

_FUNCTION = -1
# Its number, its place in the list, six arguments.
_RECORD = struct.Struct("8q")
_NUM_ARGUMENTS = 6


class _Call(NamedTuple):
    step: str
    text: str = ""
    tolerates: int = 0
    arguments: Sequence[object] = ()  # held on to: the bytes' addresses are written down
    function: Callable[[], object] | None = None


@dataclass(frozen=True, slots=True)
class PlannedSandbox:
    """A sandbox that can be opened any number of times.

    Attributes:
        namespaces: The flags of its clone.
        program: Its set-up.
        commands: Runs its commands.
        changed: The folders that hold its changes.
        mounted: The folders that it needs of `MountedFolders`, and their names there.
        preload: The interpreter that its Python runs are forks of, if any.
    """

    namespaces: int
    program: "Plan"
    commands: Commands
    changed: Changes
    mounted: tuple[tuple[Hashable, str], ...]
    preload: preloaders.Preload | None


class PlanCache:
    """Plans sandboxes, and keeps the plans for requests that come again."""

    def __init__(self, mounted: MountedFolders, channel: socket) -> None:
        self._mounted = mounted
        self._channel = channel
        self._known: dict[bytes, PlannedSandbox] = {}

    def get(self, text: bytes) -> PlannedSandbox:
        """Returns the plan for a request.

        Raises:
            SetupError: It cannot be planned; most often a folder that it names cannot be mounted.
        """
        planned = self._known.get(text)
        if planned is not None and self._mounted.keep(planned.mounted):
            return planned
        request = wire.parse(text)
        try:
            planned = self._plan(request)
        except SetupError:
            raise
        except Exception as error:  # a request that makes no sense must not end other sandboxes
            raise SetupError("serve the sandbox", 0, repr(error)) from error
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        if not any(item["once"] for item in request["show"]):
            self._known[text] = planned
        return planned

    def tidy(self) -> None:
        """Unmounts host folders of one sandbox only, and the ones above the capacity."""
        self._mounted.trim()

    def _plan(self, request: dict[str, Any]) -> PlannedSandbox:
        request["names"] = [self._mounted.place(item) for item in request["show"]]
        preload = preloaders.planned(request)
        plan = Plan(CHANNEL + 1 if preload is None else preloaders.REQUESTS + 1)
        changed = _plan_sandbox(plan, request, self._channel)
        keys = map(self._mounted.key, request["show"])
        return PlannedSandbox(
            namespaces=_NAMESPACES | (0 if request["network"] else sc.NEW_NET),
            program=plan,
            commands=Commands(request, self._channel),
            changed=changed,
            mounted=tuple(zip(keys, request["names"], strict=True)),
            preload=preload,
        )


def _plan_sandbox(plan: "Plan", request: dict[str, Any], channel: socket) -> Changes:
    """Plans all that a cloned process does to become the first process of a sandbox.

    Returns the folders that hold its changes.
    """
    image = request["image"]
    with plan.step("leave the server behind"):
        plan.call("close_range", plan.first_free, 0x7FFFFFFF, 0)
        plan.call("rt_sigaction", _SIGCHLD, _DEFAULT_ACTION, 0, _MASK_BYTES)
    mounts.map_user(plan, image)
    with plan.step("mount the sandbox's tmpfs"):
        folders = mounts.make_tmpfs(plan, request)
        if image:
            folders["image"] = image_root.make_upper(plan, request)
        changed = Changes(
            folders={name: plan.keep_folder(path) for name, path in folders.items()},
            newest_first=mounts.lists_newest_first(),
        )
    if request["restores"]:  # before anything is mounted on these folders
        plan.do(partial(packing.restore, changed.folders, channel))
    if image:
        plan.do(partial(image_root.build, request))
    else:
        mounts.build_root(plan, request)
    lockdown.set_network(plan, shared=request["network"])
    lockdown.drop_privileges(plan, request["limits"])
    with plan.step("serve the sandbox"):
        ready = wire.pack({})
        plan.call("write", CHANNEL, ready, len(ready))
    return changed


class Plan(sc.Calls):
    """System calls as plain numbers, to be made in the process that made this or in its clones.

    Descriptors are known beforehand: the kernel gives the lowest that is free.

    Args:
        first_free: The lowest descriptor that will be free at its start.
    """

    def __init__(self, first_free: int = CHANNEL + 1) -> None:
        self._calls: list[_Call] = []
        self._records = bytearray()
        self._step = ""
        self.first_free = self._next = first_free

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Names the step of the calls of the block, for the error if one fails."""
        self._step = name
        with step(name):
            yield
        self._step = ""

    def call(self, name: str, *arguments: object, tolerates: int = 0) -> int:
        """Adds a system call; returns the descriptor that it returns if it opens something."""
        values = sc.encoded(arguments)
        self._add(
            _Call(self._step, sc.in_words(name, arguments), tolerates, values),
            sc.number(name),
            *(sc.address(a) if isinstance(a, bytes) else a for a in values),
        )
        return self._next

    def keep_folder(self, path: str) -> int:
        """Opens a folder for good, and returns its descriptor."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        folder = self.call("openat", sc.AT_FDCWD, path, flags, 0)
        self._next += 1
        return folder

    def do(self, function: Callable[[], object]) -> None:
        """Adds a function, which leaves no descriptor open."""
        self._add(_Call(self._step, function=function), _FUNCTION)

    def run(self) -> None:
        """Makes the calls, one after the other.

        Raises:
            SetupError: One failed.
        """
        call = sc.raw_call
        for number, index, a, b, c, d, e, f in _RECORD.iter_unpack(self._records):
            if number == _FUNCTION:
                _do(self._calls[index])
            elif call(number, a, b, c, d, e, f) < 0:
                _require_tolerated(self._calls[index])

    def _add(self, call: _Call, number: int, *arguments: object) -> None:
        rest = [0] * (_NUM_ARGUMENTS - len(arguments))
        self._records += _RECORD.pack(number, len(self._calls), *arguments, *rest)
        self._calls.append(call)


def _do(call: _Call) -> None:
    if call.function is not None:
        with step(call.step):
            call.function()


def _require_tolerated(call: _Call) -> None:
    """Raises SetupError for the error of the last call, unless it is a tolerated one."""
    code = ctypes.get_errno()
    if call.tolerates not in (code, sc.ANY_ERROR):
        raise SetupError(call.step, code, f"[Errno {code}] {os.strerror(code)} ({call.text})")
