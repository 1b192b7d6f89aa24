"""Starts bash in a Landlock domain of its own, with everything that it may not do in place."""

import contextlib
import errno
import fcntl
import os
import resource
import signal
import socket

from coding_gym.sandbox.zygote import syscalls as sc
from coding_gym.sandbox.zygote.landlock import rights, sealing
from coding_gym.sandbox.zygote.landlock.clerk import listen

_BASH = "/bin/bash"
# One argument of exec may not be longer (MAX_ARG_STRLEN, 32 pages).
_MAX_ARGUMENT_BYTES = 128 << 10
_RUN_LONG_COMMAND = b'command=$(</dev/fd/9); exec 9<&-; eval "unset command; $command"'
_PR_SET_PDEATHSIG = 1
_FIRST_OWN = 10


def launch(
    text: bytes,
    stdin: bytes,
    env: dict[str, str],
    writer: int,
    *,
    ruleset: int,
    num_open_files: int,
) -> tuple[int, int]:
    """Forks a bash, in a session of its own.

    Args:
        text: Shell text of any length.
        stdin: What it reads; nothing when empty.
        env: All its environment variables.
        writer: The descriptor that its output goes to.
        ruleset: That of the Landlock rules that it lives under.
        num_open_files: How many descriptors a process of it may have at a time.

    Returns:
        Its pid, and the descriptor on which it will ask about metadata.

    Raises:
        OSError: E2BIG when the environment is too large, EAGAIN when there are too many processes.
    """
    with contextlib.ExitStack() as opened:
        source = _open(stdin, opened) if stdin else _null(opened)
        descriptors = {0: source, 1: writer, 2: writer}
        if len(text) >= _MAX_ARGUMENT_BYTES:
            descriptors[9] = _open(text, opened)
            text = _RUN_LONG_COMMAND
        most = _most_open_files(num_open_files)
        told, tell = (opened.enter_context(end) for end in socket.socketpair())
        pid = os.fork()
        if pid == 0:
            _become_bash([b"bash", b"-c", b"--", text], env, descriptors, ruleset, most, tell)
        tell.close()
        return pid, _hear(told, pid)


def _hear(told: socket.socket, pid: int) -> int:
    """Returns the listener that a forked process sends before it becomes bash."""
    mark, listeners, _, _ = socket.recv_fds(told, 1, 1, socket.MSG_CMSG_CLOEXEC)
    reason = told.recv(16).lstrip(b"-")
    if mark == b"+" and listeners and not reason:
        return listeners[0]
    os.waitpid(pid, 0)
    for listener in listeners:
        os.close(listener)
    code = int(reason or errno.EIO)
    raise OSError(code, os.strerror(code))


def _most_open_files(wanted: int) -> int:
    """Returns what is set just before bash runs, when our own work is done.

    Descriptors in messages that nobody reads are counted for the user too. With half of what there
    is, commands cannot park so many that a new listener could not be sent.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(wanted, most // 2)


def _become_bash(
    arguments: list[bytes],
    env: dict[str, str],
    descriptors: dict[int, int],
    ruleset: int,
    most_open_files: int,
    tell: socket.socket,
) -> None:
    """Replaces a forked process by bash; never returns."""
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        sc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        # Python ignores these, and what is ignored stays ignored across exec.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        rights.enforce(ruleset)
        socket.send_fds(tell, [b"+"], [listen()])
        # Out of the way of the numbers that bash gets.
        tell = socket.socket(fileno=fcntl.fcntl(tell, fcntl.F_DUPFD_CLOEXEC, _FIRST_OWN))
        for target, source in descriptors.items():
            os.dup2(source, target)
        sealing.set_limit(resource.RLIMIT_NOFILE, most_open_files)
        os.execve(_BASH, arguments, env)  # noqa: S606 - a shell is wanted
    except OSError as error:
        tell.sendall(b"-%d" % (error.errno or errno.EIO))
    finally:
        os._exit(126)


def _open(data: bytes, opened: contextlib.ExitStack) -> int:
    descriptor = os.memfd_create("input", os.MFD_CLOEXEC)
    opened.callback(os.close, descriptor)
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _null(opened: contextlib.ExitStack) -> int:
    descriptor = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    opened.callback(os.close, descriptor)
    return descriptor
