"""Starts bash in a Landlock domain of its own, with everything that it may not do in place."""

import errno
import fcntl
import os
import resource
import select
import signal
import socket
from collections.abc import Mapping

from coding_gym.sandbox.zygote import syscalls as sc
from coding_gym.sandbox.zygote.landlock import rights, sealing
from coding_gym.sandbox.zygote.landlock.notifications import Notifications, listen
from coding_gym.sandbox.zygote.spawn import BASH

_PR_SET_PDEATHSIG = 1
_FIRST_OWN = 64


class DomainLauncher:
    """Starts bash by fork: only the new process itself can enter a domain and make a listener.

    Args:
        ruleset: Descriptor of the rules that commands live under.
        notifications: Answers what they ask.
        num_open_files: How many descriptors a process may have at a time.

    Attributes:
        listeners: Of shells of which something may still run.
    """

    def __init__(self, ruleset: int, notifications: Notifications, num_open_files: int) -> None:
        self.listeners: set[int] = set()
        self._ruleset = ruleset
        self._notifications = notifications
        self._num_open_files = _most_open_files(num_open_files)

    def start(
        self, arguments: list[bytes], env: Mapping[bytes, bytes], descriptors: Mapping[int, int]
    ) -> int:
        """Starts bash; see `coding_gym.sandbox.zygote.spawn.Launcher.start`."""
        self._close_unused()
        told, tell = socket.socketpair()
        with told, tell:
            pid = os.fork()
            if pid == 0:
                self._become_bash(arguments, env, descriptors, tell)
            tell.close()
            self.listeners.add(_hear(told, pid))
        self._notifications.count_shell()
        return pid

    def attend(self, listener: int, events: int) -> bool:
        """Answers a question; closes a listener of which no process is left that could ask."""
        if events & select.POLLIN:
            self._notifications.answer(listener)
        elif events:
            self.listeners.discard(listener)
            os.close(listener)
            return False
        return True

    def _close_unused(self) -> None:
        poller = select.poll()
        for listener in self.listeners:
            poller.register(listener, 0)
        for listener, events in poller.poll(0):
            self.attend(listener, events)

    def _become_bash(
        self,
        arguments: list[bytes],
        env: Mapping[bytes, bytes],
        descriptors: Mapping[int, int],
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
            rights.enforce(self._ruleset)
            socket.send_fds(tell, [b"+"], [listen()])
            # Out of the way of the numbers that bash gets.
            tell = socket.socket(fileno=fcntl.fcntl(tell, fcntl.F_DUPFD_CLOEXEC, _FIRST_OWN))
            for there, here in descriptors.items():
                os.dup2(here, there)
                os.set_inheritable(there, True)  # where both are the same
            sealing.set_limit(resource.RLIMIT_NOFILE, self._num_open_files)
            os.execve(BASH, arguments, env)  # noqa: S606 - a shell is wanted
        except OSError as error:
            tell.sendall(b"-%d" % (error.errno or errno.EIO))
        finally:
            os._exit(126)


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
    raise OSError(code, os.strerror(code), BASH)


def _most_open_files(wanted: int) -> int:
    """Returns what is set just before bash runs, when our own work is done.

    Descriptors in messages that nobody reads are counted for the user too. With half of what there
    is, commands cannot park so many that a new listener could not be sent.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(wanted, most // 2)
