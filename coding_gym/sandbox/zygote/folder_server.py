"""The server of a sandbox in a folder: gives up what commands may not do, then serves its owner."""

import errno
import gc
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from coding_gym.sandbox.zygote import chunks, scratch, wire
from coding_gym.sandbox.zygote import syscalls as sc
from coding_gym.sandbox.zygote.changes import Changes, send
from coding_gym.sandbox.zygote.commands import Commands
from coding_gym.sandbox.zygote.enclosures import Enclosure
from coding_gym.sandbox.zygote.files import Opener
from coding_gym.sandbox.zygote.landlock import rights, sealing
from coding_gym.sandbox.zygote.landlock.launching import DomainLauncher
from coding_gym.sandbox.zygote.landlock.notifications import Notifications
from coding_gym.sandbox.zygote.process_table import Processes, descendants
from coding_gym.sandbox.zygote.serving import serve
from coding_gym.sandbox.zygote.spawn import Launcher, Spawner
from coding_gym.sandbox.zygote.steps import SetupError, step
from coding_gym.sandbox.zygote.unpacking import unpack

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
# Init counts and ends processes; commands, one domain further in, do not see them.
_INIT_ALONE = [("read", "/proc")]


def main(channel: socket.socket, orders: dict[str, Any]) -> None:
    """Confines this process, says that it is ready, serves until the owner closes the channel."""
    try:
        enclosure = _enclose(orders)
        # The watchdog's end, or somebody's wish: nothing is to be left running then either.
        signal.signal(signal.SIGTERM, lambda *_: _end(enclosure))
        home = orders["writable"]["workspace"]
        runner = Commands(orders, channel, home=home, enclosure=enclosure)
        channel.sendall(wire.pack({}))
        operations = {
            "snapshot": partial(_snapshot, runner, orders["writable"]),
            "restore": partial(_restore, runner, orders["writable"]),
        }
        serve(channel, runner, operations)
        _end(enclosure)
    except SetupError as error:
        channel.sendall(wire.pack(error.to_json()))
    except BaseException as error:  # noqa: BLE001 - nothing may unwind into the watchdog's code in this process
        channel.sendall(wire.pack(SetupError("serve the sandbox", 0, repr(error)).to_json()))
    finally:
        os._exit(1)


def _end(enclosure: Enclosure) -> None:
    """Ends everything, and then this process."""
    enclosure.processes.end()
    os._exit(1)


def _enclose(orders: dict[str, Any]) -> Enclosure:
    """Takes the rights of commands, and returns what starts them."""
    with step("adopt what commands leave behind"):
        sc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    limits, rules = orders["limits"], orders["landlock"]
    if rules is None:
        with step("end with the watchdog"):
            sc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        sealing.bound(limits)
        inside = Processes(descendants, has_own_signals=False)
        launcher: Launcher = Spawner()
        open_file: Opener = os.open
    else:
        grants = [(kind, path) for kind, path in rules["grants"]]
        inner = _confine(orders, rules["abi"], grants)
        inside = Processes(descendants, has_own_signals=_is_scoped(rules["abi"]))
        roots = [path for kind, path in grants if kind == "write"]
        notifications = Notifications(roots, inside, limits["num_processes"])
        launcher = DomainLauncher(inner, notifications, limits["num_open_files"])
        open_file = _opener([path for _, path in grants])
    gc.freeze()
    return Enclosure(launcher=launcher, processes=inside, open_file=open_file, owns_network=False)


def _confine(orders: dict[str, Any], version: int, grants: list[tuple[str, str]]) -> int:
    """Gives up all rights but those granted; returns the rules of commands, a domain further in."""
    network = orders["network"]
    with step("prepare the Landlock rules"):
        inner = rights.make_ruleset(version, grants, network=network)
        outer = rights.make_ruleset(version, grants + _INIT_ALONE, network=network)
    sealing.become(orders["uid"], orders["gid"])
    with step("end with the watchdog"):
        sc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    sealing.restrain(orders["limits"])
    with step("enforce the Landlock rules"):
        rights.enforce(outer)
        os.close(outer)
    sealing.filter_calls(version, network=network)
    return inner


def _opener(granted: list[str]) -> Opener:
    """Returns what opens files for the owner: of ``/proc``, which init may read, the granted ones.

    A link, which commands may make, could lead to what they may not read.
    """
    proc = os.stat("/proc").st_dev
    shown = tuple(f"{path}/" for path in granted)

    def open_file(path: str, flags: int, mode: int) -> int:
        descriptor = os.open(path, flags, mode)
        if os.fstat(descriptor).st_dev == proc:
            place = os.readlink(f"/proc/self/fd/{descriptor}")
            if not f"{place}/".startswith(shown):
                os.close(descriptor)
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return descriptor

    return open_file


def _is_scoped(version: int) -> bool:
    """Whether signals of this process stay in its domain.

    Not concluded from the version alone: a ``kill`` of everything that is not held back would end
    all that this user runs.
    """
    try:
        os.kill(os.getppid(), 0)
    except PermissionError:
        return rights.scopes_signals(version)
    except ProcessLookupError:
        return False
    return False


def _snapshot(runner: Commands, folders: dict[str, str], channel: socket.socket) -> None:
    """Sends everything in some folders."""
    with runner.stopped(), _opened(folders) as descriptors:
        # As a tmpfs lists; other file systems have an order that no making of files decides.
        send(Changes(folders=descriptors, newest_first=True), channel)


def _restore(runner: Commands, folders: dict[str, str], channel: socket.socket) -> None:
    """Ends all that runs and replaces what is in some folders by what the owner sends."""
    runner.reset()
    channel.sendall(wire.pack({}))
    os.chdir("/")
    reply: dict[str, Any] = {}
    try:
        for path in folders.values():
            scratch.remove(path)
            os.makedirs(path, exist_ok=True)  # the folder itself lies outside where that is closed
        with _opened(folders) as descriptors:
            unpack(chunks.reader_from(channel), descriptors)
    except (OSError, ValueError, KeyError, wire.ProtocolError) as error:
        reply = {"error": f"could not restore the snapshot: {error}"}
    channel.sendall(wire.pack(reply))


@contextmanager
def _opened(folders: dict[str, str]) -> Iterator[dict[str, int]]:
    with ExitStack() as stack:
        opened = {}
        for name, path in folders.items():
            opened[name] = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, opened[name])
        yield opened
