"""The zygote of sandboxes in folders of the host, and the two processes of each of them.

The zygote stays outside every enclosure and holds nothing of any sandbox: it hands the owner's end
of a new channel out and closes both. It forks a *watchdog*, the first process of one sandbox, which
reads its orders from that channel before anything of a policy runs, and from then on nothing that
comes from the sandbox. It dies with the owner, not with the zygote, and leaves nothing behind. Its
child, the *server*, drops the rights that commands lack, then serves.
"""

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
from typing import Any, NoReturn

from coding_gym.sandbox.inside import landlock_rules, lockdown, owner, scratch, seccomp, wire
from coding_gym.sandbox.inside import syscalls as sc
from coding_gym.sandbox.inside.commands import Commands
from coding_gym.sandbox.inside.files import Opener
from coding_gym.sandbox.inside.landlock_rules import DomainLauncher
from coding_gym.sandbox.inside.packing import Changes, send, unpack
from coding_gym.sandbox.inside.process_table import Processes, descendants
from coding_gym.sandbox.inside.serving import serve
from coding_gym.sandbox.inside.spawn import Enclosure, Launcher
from coding_gym.sandbox.inside.syscalls import SetupError, step

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP = 1, 4, 24
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 36, 38
# The server hears of the owner's end too, and may take so long to end its processes all at once.
_PATIENCE_S = 2.0
# Init counts and ends processes; commands, one domain further in, do not see them.
_INIT_ALONE = [("read", "/proc")]


def main() -> None:
    """Reads the configuration, then forks watchdogs until the owner ends; never returns."""
    control, config = owner.connect()
    try:
        watched = owner.watch(config["owner"])
        with step("refuse to be traced"):
            sc.prctl(_PR_SET_DUMPABLE, 0)
    except SetupError as error:
        control.sendall(wire.pack(error.to_json()))
        os._exit(1)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the watchdogs
    gc.collect()
    gc.freeze()
    control.sendall(wire.pack({}))
    os.dup2(0, 2)
    try:
        owner.serve(control, watched, partial(_start, control, watched))
    finally:
        os._exit(0)


def _start(control: socket.socket, watched: int, _: bytes, group: int | None) -> tuple[int, int]:
    """Forks a watchdog; returns the owner's end of its channel, and a descriptor to kill it by."""
    with step("start a sandbox's watchdog"):
        theirs, its = sc.socket_pair()
        try:
            pid = os.fork()
            if pid == 0:
                os.close(theirs)
                _run_watchdog(its, control, watched, group)
            watchdog = os.pidfd_open(pid)
        except OSError:
            os.close(theirs)
            raise
        finally:
            os.close(its)
    return theirs, watchdog


def _run_watchdog(its: int, control: socket.socket, watched: int, group: int | None) -> NoReturn:
    """Leaves the zygote behind, whose ``control`` becomes the sandbox's channel; never returns."""
    try:
        os.dup2(its, control.fileno(), inheritable=False)
        os.close(its)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        try:
            if group is not None:
                with step("join the sandbox's control group"):
                    os.write(group, b"0")
                os.close(group)
            _watch_over(control, watched)
        except SetupError as error:
            control.sendall(wire.pack(error.to_json()))
    finally:  # nothing may unwind into the zygote's code in this process
        os._exit(1)


def _watch_over(channel: socket.socket, watched: int) -> None:
    """Starts the server, waits for its end or the owner's, ends and removes what is left.

    The channel stays open here as well: its end tells the owner that all of that is done.
    """
    orders, _ = wire.receive(channel, max_body_bytes=0)
    with step("adopt what the sandbox leaves behind"):
        sc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    with step("start the server"):
        pid = os.fork()
    if pid == 0:
        os.close(watched)
        # Of a process that may not be traced, the files in /proc are root's, even for itself.
        sc.prctl(_PR_SET_DUMPABLE, 1)
        _serve(channel, orders)
    server = os.pidfd_open(pid)
    owner.wait_for_either(watched, server)
    owner.has_ended(server, _PATIENCE_S)
    Processes(descendants, has_own_signals=False).end()
    scratch.remove(orders["folder"])


def _serve(control: socket.socket, config: dict[str, Any]) -> None:
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
    rules, limits = orders["landlock"], dict(lockdown.limit_values(orders["limits"]))
    del limits[resource.RLIMIT_NPROC]  # it would count all that the user runs
    if rules is None:
        _restrain(limits)
        gc.freeze()
        processes = Processes(descendants, has_own_signals=False)
        return Enclosure(
            launcher=Launcher(), processes=processes, open_file=os.open, owns_network=False
        )
    grants = [(kind, path) for kind, path in rules["grants"]]
    num_open_files = limits.pop(resource.RLIMIT_NOFILE)  # of commands; this process needs more
    inner = _confine(orders, rules["abi"], grants, limits)
    processes = Processes(descendants, has_own_signals=_is_scoped(rules["abi"]))
    launcher = DomainLauncher(
        inner,
        [path for kind, path in grants if kind == "write"],
        processes,
        num_processes=orders["limits"]["num_processes"],
        num_open_files=num_open_files,
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
        inner = landlock_rules.make_ruleset(version, grants, network=network)
        outer = landlock_rules.make_ruleset(version, grants + _INIT_ALONE, network=network)
    _switch_user(orders["uid"], orders["gid"])
    with step("drop privileges"):
        sc.raise_oom_score(lockdown.OOM_SCORE)
        sc.personality(lockdown.NO_RANDOMIZATION)
        sc.set_capabilities(0, 0)
    _restrain(limits)
    with step("enforce the Landlock rules"):
        landlock_rules.enforce(outer)
        os.close(outer)
    with step("install the seccomp filter"):
        sc.install_filter(seccomp.program(sc.machine()))
        if not landlock_rules.knows_truncation(version):
            sc.install_filter(seccomp.no_cutting(sc.machine()))
        if not network:
            sc.install_filter(seccomp.no_sockets(sc.machine()))
    return inner


def _switch_user(uid: int, gid: int) -> None:
    """Takes the user that sandboxes run as, and leaves root's capabilities behind for good."""
    if os.getuid() == uid:
        return
    with step("change the user"):
        for capability in range(lockdown.num_capabilities()):
            with contextlib.suppress(OSError):  # not ours to drop
                sc.prctl(_PR_CAPBSET_DROP, capability)
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
        # Cleared by the change; /proc would show these processes as root's.
        sc.prctl(_PR_SET_DUMPABLE, 1)


def _restrain(limits: Mapping[int, int]) -> None:
    """Sets what commands inherit: limits, and no privileges to gain.

    So all that they start can be ended.
    """
    with step("end with the watchdog"):  # a change of the user would undo it
        sc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    with step("set limits"):
        sc.prctl(_PR_SET_NO_NEW_PRIVS, 1)
        for kind, value in limits.items():
            resource.setrlimit(kind, (value, value))


def _opener(granted: list[str]) -> Opener:
    """Returns the opener for the owner: of ``/proc``, which init may read, the granted ones.

    A link, which commands may make, could lead to what they may not read.
    """
    proc = os.stat("/proc").st_dev
    prefixes = tuple(f"{path}/" for path in granted)

    def open_file(path: str, flags: int, mode: int) -> int:
        descriptor = os.open(path, flags, mode)
        if os.fstat(descriptor).st_dev == proc:
            place = os.readlink(f"/proc/self/fd/{descriptor}")
            if not f"{place}/".startswith(prefixes):
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
        return landlock_rules.scopes_signals(version)
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
