"""Attacks that outlive a command, its time limit or its sandbox, or stop others."""

import pytest
from arena import Arena

pytestmark = pytest.mark.slow


def test_daemons_end_with_their_command(arena: Arena) -> None:
    arena.assert_refused(
        """
        attempt('daemon', daemon)
        attempt('bare', lambda: daemon(lambda: os.closerange(0, 3)))
        pid = daemon()
        attempt('stop', lambda: os.kill(pid, signal.SIGSTOP))
        """,
        "daemon DONE, bare DONE, stop DONE",
    )


def test_subreapers_end_with_their_command(arena: Arena) -> None:
    arena.assert_refused(
        """
        libc.prctl(36, 1, 0, 0, 0)
        pid = daemon()
        attempt('adopted', lambda: f'PPid:\\t{os.getpid()}' in read(f'/proc/{pid}/status').decode())
        """,
        "adopted DONE",
    )


def test_children_of_the_first_process_end(arena: Arena) -> None:
    arena.assert_refused(
        """
        def sibling():
            if call('clone', 0x8000 | 17, 0, 0, 0, 0) == 0:
                while True:
                    signal.pause()
            return True
        attempt('parent', lambda: [sibling() for _ in range(20)])
        """,
        "parent DONE",
    )


def test_vfork_storms_and_zombies_end(arena: Arena) -> None:
    arena.assert_refused(
        """
        def storm():
            for _ in range(100):
                subprocess.run(['/bin/true'])
            for _ in range(20):
                if os.fork() == 0:
                    for _ in range(5):
                        if os.fork() == 0:
                            os._exit(0)
                    os._exit(0)
            return True
        attempt('storm', storm)
        """,
        "storm DONE",
    )


def test_processes_that_fork_when_killed_end(arena: Arena) -> None:
    arena.assert_refused(
        """
        def heir():
            'Forks as soon as its parent is gone.'
            watch = os.pidfd_open(os.getpid())
            if os.fork() == 0:
                while True:
                    select.select([watch], [], [])
                    watch = os.pidfd_open(os.getpid())
                    if os.fork():
                        signal.pause()
        attempt('heirs', lambda: [heir() for _ in range(5)] and True)
        """,
        "heirs DONE",
    )


def test_processes_with_death_signals_end(arena: Arena) -> None:
    arena.assert_refused(
        """
        def linked():
            if os.fork() == 0:
                libc.prctl(1, signal.SIGKILL, 0, 0, 0)
                signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
                os.setsid()
                while True:
                    signal.pause()
            return True
        attempt('linked', lambda: [linked() for _ in range(5)])
        """,
        "linked DONE",
    )


def test_signals_to_everybody_reach_own_processes_alone(arena: Arena) -> None:
    arena.assert_refused(
        """
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        own = {os.getpid(), daemon()}
        pids = {int(p) for p in os.listdir('/proc') if p.isdecimal()}
        attempt('strangers', lambda: sorted(pids - own))
        attempt('victim', lambda: os.kill(FACTS['pid'], signal.SIGTERM))
        attempt('owner', lambda: os.kill(FACTS['owner_pid'], signal.SIGSTOP))
        attempt('all', lambda: os.kill(-1, signal.SIGTERM))
        """,
        "strangers nothing, victim ESRCH, owner ESRCH, all DONE",
    )


def test_signals_to_groups_of_others_fail(arena: Arena) -> None:
    arena.assert_refused(
        """
        for name, group in (('victim', FACTS['pid']), ('owner', FACTS['owner_pid'])):
            attempt(name, lambda: os.killpg(group, signal.SIGKILL))
            attempt(name, lambda: os.kill(-group, signal.SIGSTOP))
        attempt('terminal', lambda: fcntl.ioctl(0, termios.TIOCSPGRP, struct.pack('i', 1)))
        """,
        "victim ESRCH, victim ESRCH, owner ESRCH, owner ESRCH, terminal ENOTTY",
    )
