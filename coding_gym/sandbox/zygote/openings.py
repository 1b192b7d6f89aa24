"""What is known of a sandbox before it has a process: its plan, and what its first process uses."""

import os
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from socket import socket
from typing import Any

from coding_gym.sandbox.zygote import changes, lockdown, network, parts, room, wire
from coding_gym.sandbox.zygote import syscalls as sc
from coding_gym.sandbox.zygote.commands import Commands
from coding_gym.sandbox.zygote.plan import CHANNEL, Plan
from coding_gym.sandbox.zygote.program import Program
from coding_gym.sandbox.zygote.shelf import SHELF, Shelf
from coding_gym.sandbox.zygote.steps import SetupError, step

_NAMESPACES = sc.NEW_USER | sc.NEW_MOUNT | sc.NEW_PID | sc.NEW_IPC | sc.NEW_UTS | sc.NEW_CGROUP
_MAX_KNOWN = 64
_SIGCHLD = 17
# A handler, flags, a restorer, a mask: by default nothing.
_DEFAULT_ACTION = bytes(32)
_MASK_BYTES = 8


@dataclass(frozen=True, slots=True)
class Opening:
    """A sandbox to be opened, any number of times.

    Attributes:
        namespaces: The flags of its clone.
        program: What makes it.
        commands: What runs its commands.
        changed: The folders that hold what is changed in it.
        shown: What it needs on the shelf, and the names that this has there.
        times: The folders there whose times it has, and these times.
    """

    namespaces: int
    program: Program
    commands: Commands
    changed: changes.Changes
    shown: tuple[tuple[Hashable, str], ...]
    times: tuple[tuple[str, int], ...]


class Openings:
    """Makes openings, and keeps them for requests that come again.

    Args:
        prepared: The parts that all sandboxes share.
        shelf: Where what they are to show is found.
        channel: In a first process, its owner's end.
    """

    def __init__(self, prepared: parts.Parts, shelf: Shelf, channel: socket) -> None:
        self._prepared = prepared
        self._shelf = shelf
        self._channel = channel
        self._known: dict[bytes, Opening] = {}

    def get(self, text: bytes) -> Opening:
        """Returns the opening for a request.

        Raises:
            SetupError: It cannot be planned; most often what it wants to be shown cannot be.
        """
        opening = self._known.get(text)
        if opening is not None and self._is_current(opening):
            return opening
        request = wire.parse(text)
        try:
            opening = self._make(request)
        except SetupError:
            raise
        except Exception as error:  # a request that makes no sense must not end other sandboxes
            raise SetupError("serve the sandbox", 0, repr(error)) from error
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        if not any(item["once"] for item in request["show"]):
            self._known[text] = opening
        return opening

    def tidy(self) -> None:
        """Takes off the shelf what is there no longer than one opening, or too much."""
        if self._shelf.has_surplus():
            with step("tidy the shelf"):
                self._shelf.trim()

    def _is_current(self, opening: Opening) -> bool:
        try:
            is_dated = all(os.stat(p).st_mtime_ns == time for p, time in opening.times)
        except OSError:
            return False
        return is_dated and self._shelf.keep(opening.shown)

    def _make(self, request: dict[str, Any]) -> Opening:
        request["names"] = [self._shelf.place(item) for item in request["show"]]
        folders = [f"{SHELF}/{name}" for name in request["names"]]
        request["are_folders"] = [os.path.isdir(folder) for folder in folders]
        plan = Plan()
        changed = _plan(plan, request, self._prepared, self._channel)
        return Opening(
            namespaces=_NAMESPACES | (0 if request["network"] else sc.NEW_NET),
            program=plan.compile(),
            commands=Commands(request, self._channel),
            changed=changed,
            shown=tuple(zip(map(self._shelf.key, request["show"]), request["names"], strict=True)),
            times=tuple((path, os.stat(path).st_mtime_ns) for path in room.dated_like(request)),
        )


def _plan(
    plan: Plan, request: dict[str, Any], prepared: parts.Parts, channel: socket
) -> changes.Changes:
    restore: Callable[[changes.Changes], None] | None = None
    if request["restores"]:
        restore = partial(changes.restore, channel=channel)
    with plan.step("leave the server behind"):
        plan.call("close_range", CHANNEL + 1, 0x7FFFFFFF, 0)
        plan.call("rt_sigaction", _SIGCHLD, _DEFAULT_ACTION, 0, _MASK_BYTES)
    changed = room.plan_room(plan, request, prepared, (os.getuid(), os.getgid()), restore)
    network.plan_network(plan, shared=request["network"])
    lockdown.plan_lockdown(plan, request["limits"])
    with plan.step("serve the sandbox"):
        ready = wire.pack({})
        plan.call("write", CHANNEL, ready, len(ready), gives=len(ready))
    return changed
