"""The zygote of ``landlock`` sandboxes, and the two processes of each sandbox.

The zygote is not confined and keeps no descriptors of sandboxes: it sends the owner's end of a new
channel and closes both ends. The zygote forks a *watchdog* per sandbox, which reads nothing from
the sandbox. The watchdog ends with the owner, not with the zygote, and kills the sandbox's
processes. Its child, the first process, drops the rights that commands lack, then serves.
"""

import contextlib
import errno
import gc
import os
import select
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

from coding_gym.sandbox.inside import files, landlock_rules, lockdown, owner, packing, seccomp, wire
from coding_gym.sandbox.inside import syscalls as sc
from coding_gym.sandbox.inside.files import Opener
from coding_gym.sandbox.inside.fixed import BASH
from coding_gym.sandbox.inside.packing import Changes
from coding_gym.sandbox.inside.processes import descendants, end_all, reap
from coding_gym.sandbox.inside.request import LandlockRequest
from coding_gym.sandbox.inside.serving import Commands, serve
from coding_gym.sandbox.inside.syscalls import SetupError, step

# The first process lists processes in /proc, which commands, in a nested domain, may not.
_FIRST_PROCESS_GRANTS = [("read", "/proc")]


def main() -> None:
    """Reads the configuration, then forks watchdogs until the owner ends; never returns."""
    control, config = owner.connect()
    try:
        owner_pidfd = owner.watch(config["owner"])
        with step("disable tracing"):
            sc.prctl(sc.PR_SET_DUMPABLE, 0)
    except SetupError as error:
        owner.report(control, error)
        os._exit(1)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the watchdogs
    gc.collect()
    gc.freeze()
    control.sendall(wire.pack({}))
    os.dup2(0, 2)
    try:
        owner.serve(control, owner_pidfd, partial(_start, control, owner_pidfd))
    finally:
        os._exit(0)


def _start(control: socket.socket, owner_pidfd: int, request: LandlockRequest) -> int:
    """Forks a watchdog; returns the owner's end of the sandbox's channel."""
    with step("start a sandbox's watchdog"):
        owners_end, channel = socket.socketpair()
        with channel:
            if os.fork() == 0:
                owners_end.close()
                _run_watchdog(channel, control, owner_pidfd, request)
    return owners_end.detach()


def _run_watchdog(
    channel: socket.socket, control: socket.socket, owner_pidfd: int, request: LandlockRequest
) -> NoReturn:
    """Runs the watchdog in a fork, where ``channel`` replaces ``control``; never returns."""
    try:
        os.dup2(channel.fileno(), control.fileno(), inheritable=False)
        channel.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        try:
            _watch(control, owner_pidfd, request)
        except SetupError as error:
            owner.report(control, error)
    finally:  # no exception may reach the zygote's code in this process
        os._exit(1)


def _watch(channel: socket.socket, owner_pidfd: int, request: LandlockRequest) -> None:
    """Starts the first process; kills the sandbox when this child, the owner or the channel ends.

    The watchdog keeps the channel open until then, because the channel's end notifies the owner.
    """
    with step("become the subreaper of the sandbox"):
        sc.prctl(sc.PR_SET_CHILD_SUBREAPER, 1)
    with step("start the first process"):
        pid = os.fork()
    if pid == 0:
        os.close(owner_pidfd)
        # Otherwise root owns this process's files in /proc, and this process cannot open them.
        sc.prctl(sc.PR_SET_DUMPABLE, 1)
        _serve(channel, request)
    poll = select.poll()
    for descriptor in (owner_pidfd, os.pidfd_open(pid)):
        poll.register(descriptor, select.POLLIN)
    poll.register(channel, select.POLLRDHUP)
    poll.poll()
    _kill_user(request.uid)


def _kill_user(uid: int) -> None:
    """Kills the processes of the sandbox's user with one signal, and reaps them."""
    killer = os.fork()
    if killer == 0:
        try:
            os.setresuid(uid, uid, uid)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    reap(wait=True)


def _serve(control: socket.socket, request: LandlockRequest) -> None:
    """Confines this process, reports success, and serves until the owner closes the channel."""
    try:
        with step("become the subreaper of commands"):
            sc.prctl(sc.PR_SET_CHILD_SUBREAPER, 1)
        inner = _confine(request)
        # The kernel sends SIGTERM when the watchdog ends; users of the host can send it as well.
        signal.signal(signal.SIGTERM, lambda *_: _end())
        gc.freeze()
        runner = Commands(
            request.env,
            request.limits["memory_bytes"],
            control,
            start=partial(_start_bash, inner),
            list_pids=descendants,
            open_file=_opener([path for _, path in request.grants]),
        )
        # Opened before a command can remove permissions. A tmpfs lists the newest entry first; on
        # other file systems the order of creation has no effect.
        changes = packing.open_folders(request.writable, newest_first=True)
        control.sendall(wire.pack({}))
        operations = {
            "snapshot": partial(packing.send, changes),
            "restore": partial(_restore, changes, request.writable),
        }
        serve(control, runner, operations)
    except BaseException as error:  # noqa: BLE001 - no exception may reach the watchdog's code in this process
        owner.report(control, error)
    finally:
        os._exit(1)


def _end() -> None:
    """Kills all processes of the sandbox and ends this process."""
    end_all()
    os._exit(1)


def _confine(request: LandlockRequest) -> int:
    """Drops all rights except the grants; returns the ruleset of the commands' nested domain."""
    grants = request.grants
    with step("prepare the Landlock rules", "landlock"):
        inner = landlock_rules.make_ruleset(request.abi, grants)
        outer = landlock_rules.make_ruleset(request.abi, (*grants, *_FIRST_PROCESS_GRANTS))
    with step("change the user", "users"):
        for capability in range(lockdown.num_capabilities()):
            with contextlib.suppress(OSError):  # a capability that this process may not drop
                sc.prctl(sc.PR_CAPBSET_DROP, capability)
        sc.set_user(request.uid, request.gid)
    with step("drop privileges"):
        sc.raise_oom_score(lockdown.OOM_SCORE)
        with contextlib.suppress(PermissionError):  # if Docker's filter refuses it, addresses vary
            sc.personality(lockdown.NO_RANDOMIZATION)
        sc.set_capabilities(0, 0)
        sc.prctl(sc.PR_SET_NO_NEW_PRIVS, 1)
    with step("request a signal at the watchdog's end"):  # a change of the user clears the setting
        sc.prctl(sc.PR_SET_PDEATHSIG, signal.SIGTERM)
    lockdown.set_limits(request.limits, num_extra_processes=1)
    with step("set limits"):
        lockdown.limit_descriptors(request.limits)
    with step("enforce the Landlock rules", "landlock"):
        landlock_rules.enforce(outer)
        os.close(outer)
    with step("install the seccomp filter"):
        sc.install_filter(seccomp.program(sc.machine()))
        has_right = request.abi >= landlock_rules.TRUNCATION_SINCE
        program = seccomp.landlock_program(sc.machine(), has_truncation_right=has_right)
        sc.install_filter(program)
    return inner


def _start_bash(
    ruleset: int, arguments: list[bytes], env: Mapping[bytes, bytes], descriptors: Sequence[int]
) -> int:
    """Starts bash in a nested domain; see `commands.spawn_bash`.

    The start uses a fork, because a process can enter a domain only by itself.
    """

    def enter() -> None:
        sc.prctl(sc.PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        landlock_rules.enforce(ruleset)

    stdin, stdout, stderr = descriptors
    process = subprocess.Popen(
        arguments,
        executable=BASH,
        env=env,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        close_fds=False,  # all other descriptors are close-on-exec
        start_new_session=True,
        preexec_fn=enter,
    )
    process.returncode = 0  # `processes.reap` reaps it
    return process.pid


def _opener(paths: list[str]) -> Opener:
    """Returns the opener for the owner's requests; in ``/proc`` it opens granted paths only.

    This process may read all of ``/proc``, and commands can make links to files there.
    """
    proc = os.stat("/proc").st_dev
    prefixes = tuple(f"{path}/" for path in paths)

    def open_file(path: str, flags: int, mode: int) -> int:
        descriptor = os.open(path, flags, mode)
        if os.fstat(descriptor).st_dev == proc:
            real_path = os.readlink(f"/proc/self/fd/{descriptor}")
            if not f"{real_path}/".startswith(prefixes):
                os.close(descriptor)
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return descriptor

    return open_file


def _restore(
    changes: Changes,
    folders: Mapping[str, str],
    request: dict[str, Any],
    channel: socket.socket,
) -> None:
    """Replaces the content of the writable folders with the snapshot in the request's file."""
    for path in folders.values():
        files.remove_tree(path)  # the folder remains, because its parent is read-only
    packing.restore(changes.folders, request["file"])
    channel.sendall(wire.pack({}))
