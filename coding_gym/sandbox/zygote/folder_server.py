"""The server of a sandbox in a folder: drops the rights that commands lack, then serves."""

import contextlib
import errno
import gc
import os
import resource
import signal
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from coding_gym.sandbox.zygote import landlock_rights, scratch, seccomp, wire
from coding_gym.sandbox.zygote import syscalls as sc
from coding_gym.sandbox.zygote.commands import Commands
from coding_gym.sandbox.zygote.files import Opener
from coding_gym.sandbox.zygote.landlock_domain import DomainLauncher
from coding_gym.sandbox.zygote.packing import Changes, send
from coding_gym.sandbox.zygote.process_table import Processes, descendants
from coding_gym.sandbox.zygote.serving import serve
from coding_gym.sandbox.zygote.spawn import Enclosure, Spawner
from coding_gym.sandbox.zygote.steps import SetupError, step
from coding_gym.sandbox.zygote.unpacking import unpack

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP = 1, 4, 24
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 36, 38
_ADDR_NO_RANDOMIZE = 0x0040000
_NUM_CAPABILITIES = 64  # at most
_OOM_SCORE = 900  # the kernel's first choice, well before the trainer
# Limits of commands that Landlock confines, besides those of the spec.
_LIMITS = {
    resource.RLIMIT_NICE: 0,
    resource.RLIMIT_RTPRIO: 0,
    resource.RLIMIT_MSGQUEUE: 0,
    resource.RLIMIT_MEMLOCK: 1 << 16,
    resource.RLIMIT_SIGPENDING: 1024,
}
# Init counts and ends processes; commands, one domain further in, do not see them.
_INIT_ALONE = [("read", "/proc")]


def main(control: socket.socket, config: dict[str, Any]) -> None:
    """Confines this process, says that it is ready, serves until the owner closes the channel."""
    try:
        enclosure = _enclose(config)
        # The watchdog ended, or a user sent this: nothing may be left running then either.
        signal.signal(signal.SIGTERM, lambda *_: _end(enclosure))
        home = config["writable"]["workspace"]
        runner = Commands(config, control, home=home, enclosure=enclosure)
        control.sendall(wire.pack({}))
        operations = {
            "snapshot": partial(_snapshot, runner, config["writable"]),
            "restore": partial(_restore, runner, config["writable"]),
        }
        serve(control, runner, operations)
        _end(enclosure)
    except SetupError as error:
        control.sendall(wire.pack(error.to_json()))
    except BaseException as error:  # noqa: BLE001 - nothing may unwind into the watchdog's code in this process
        control.sendall(wire.pack(SetupError("serve the sandbox", 0, repr(error)).to_json()))
    finally:
        os._exit(1)


def _end(enclosure: Enclosure) -> None:
    """Ends everything, and then this process."""
    enclosure.processes.end()
    os._exit(1)


def _enclose(orders: dict[str, Any]) -> Enclosure:
    """Takes the rights of commands, and returns their enclosure."""
    with step("adopt what commands leave behind"):
        sc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    limits, rules = orders["limits"], orders["landlock"]
    own = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: limits["file_bytes"]}
    if rules is None:
        _restrain(own | {resource.RLIMIT_NOFILE: limits["num_open_files"]})
        gc.freeze()
        processes = Processes(descendants, has_own_signals=False)
        return Enclosure(
            launcher=Spawner(), processes=processes, open_file=os.open, owns_network=False
        )
    grants = [(kind, path) for kind, path in rules["grants"]]
    inner = _confine(orders, rules["abi"], grants, own | _LIMITS)
    processes = Processes(descendants, has_own_signals=_is_scoped(rules["abi"]))
    launcher = DomainLauncher(
        inner,
        [path for kind, path in grants if kind == "write"],
        processes,
        num_processes=limits["num_processes"],
        num_open_files=limits["num_open_files"],
    )
    gc.freeze()
    return Enclosure(
        launcher=launcher,
        processes=processes,
        open_file=_opener([path for _, path in grants]),
        owns_network=False,
    )


def _confine(
    orders: dict[str, Any],
    version: int,
    grants: list[tuple[str, str]],
    limits: Mapping[int, int],
) -> int:
    """Gives up all rights but those granted; returns the rules of commands, a domain further in."""
    network = orders["network"]
    with step("prepare the Landlock rules"):
        inner = landlock_rights.make_ruleset(version, grants, network=network)
        outer = landlock_rights.make_ruleset(version, grants + _INIT_ALONE, network=network)
    _become(orders["uid"], orders["gid"])
    with step("drop privileges"):
        sc.raise_oom_score(_OOM_SCORE)
        sc.personality(_ADDR_NO_RANDOMIZE)
        sc.drop_effective_capabilities()
    _restrain(limits)
    with step("enforce the Landlock rules"):
        landlock_rights.enforce(outer)
        os.close(outer)
    with step("install the seccomp filter"):
        sc.install_filter(seccomp.program(sc.machine()))
        if not landlock_rights.knows_truncation(version):
            sc.install_filter(seccomp.no_cutting(sc.machine()))
        if not network:
            sc.install_filter(seccomp.no_sockets(sc.machine()))
    return inner


def _become(uid: int, gid: int) -> None:
    """Takes the user that sandboxes run as, and leaves root's capabilities behind for good."""
    if os.getuid() == uid:
        return
    with step("change the user"):
        for capability in range(_NUM_CAPABILITIES):
            with contextlib.suppress(OSError):  # beyond the last one, or not ours to drop
                sc.prctl(_PR_CAPBSET_DROP, capability)
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
        # Cleared by the change; /proc would show these processes as root's.
        sc.prctl(_PR_SET_DUMPABLE, 1)


def _restrain(limits: Mapping[int, int]) -> None:
    """Sets what commands inherit: limits, no higher than they are, and no privileges to gain.

    So all that they start can be ended.
    """
    with step("end with the watchdog"):  # a change of the user would undo it
        sc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    with step("set limits"):
        sc.prctl(_PR_SET_NO_NEW_PRIVS, 1)
        for kind, value in limits.items():
            _, ceiling = resource.getrlimit(kind)
            value = value if ceiling == resource.RLIM_INFINITY else min(value, ceiling)
            resource.setrlimit(kind, (value, value))


def _opener(granted: list[str]) -> Opener:
    """Returns the opener for the owner: of ``/proc``, which init may read, the granted ones.

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
        return landlock_rights.scopes_signals(version)
    except ProcessLookupError:
        return False
    return False


def _snapshot(runner: Commands, folders: dict[str, str], channel: socket.socket) -> None:
    """Sends everything in some folders."""
    with runner.stopped(), _opened(folders) as descriptors:
        # As a tmpfs lists; other file systems have an order that no making of files decides.
        send(Changes(folders=descriptors, newest_first=True), channel)


def _restore(runner: Commands, folders: dict[str, str], channel: socket.socket) -> None:
    """Ends all processes and replaces the content of some folders by the owner's files."""
    runner.reset()
    channel.sendall(wire.pack({}))
    os.chdir("/")
    reply: dict[str, Any] = {}
    try:
        for path in folders.values():
            scratch.remove(path)
            os.makedirs(path, exist_ok=True)  # the folder itself lies outside where that is closed
        with _opened(folders) as descriptors:
            unpack(wire.reader_from(channel), descriptors)
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
