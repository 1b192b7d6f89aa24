"""Attacks on the first process of a sandbox, which has the uid of every command."""

import sys

import pytest
from arena import Arena
from sandbox_fixtures import output

pytestmark = pytest.mark.slow


def test_first_process_has_no_files_in_proc(arena: Arena) -> None:
    arena.assert_refused(
        """
        for name in ('comm', 'oom_score_adj', 'timerslack_ns', 'coredump_filter', 'autogroup',
                     'clear_refs', 'setgroups', 'attr/current', 'task/1/comm'):
            attempt(name, lambda: write(f'/proc/1/{name}', b'1'))
        for name in ('root', 'cwd', 'exe', 'ns/net'):
            attempt(name, lambda: os.readlink(f'/proc/1/{name}'))
        """,
        """
        comm ENOENT, oom_score_adj ENOENT, timerslack_ns ENOENT, coredump_filter ENOENT,
        autogroup ENOENT, clear_refs ENOENT, setgroups ENOENT, attr/current ENOENT, task/1/comm
        ENOENT, root ENOENT, cwd ENOENT, exe ENOENT, ns/net ENOENT
        """,
    )


def test_first_process_cannot_be_traced(arena: Arena) -> None:
    arena.assert_refused(
        """
        attempt('seize', lambda: call('ptrace', 0x4206, 1, 0, 0))
        attempt('itself', lambda: call('ptrace', 0, 0, 0, 0))
        """,
        "seize EPERM, itself EPERM",
    )


def test_memory_of_the_first_process_is_inaccessible(arena: Arena) -> None:
    arena.assert_refused(
        """
        libc.process_vm_readv.restype = ctypes.c_ssize_t
        class Part(ctypes.Structure):
            _fields_ = [('base', ctypes.c_void_p), ('size', ctypes.c_size_t)]
        room = ctypes.create_string_buffer(8)
        ours = Part(ctypes.addressof(room), 8)
        def where():
            with suppress(OSError):
                return int(read('/proc/1/maps').split(b'-')[0], 16)
            return 0x400000
        theirs = Part(where(), 8)
        for name in ('readv', 'writev'):
            parts = ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0
            attempt(name, lambda: call(f'process_vm_{name}', 1, *parts))
        attempt('mem', lambda: os.open('/proc/1/mem', os.O_RDWR))
        attempt('maps', lambda: os.open('/proc/1/maps', os.O_RDONLY))
        """,
        "readv EPERM, writev EPERM, mem ENOENT, maps ENOENT",
    )


def test_descriptors_of_the_first_process_are_inaccessible(arena: Arena) -> None:
    arena.assert_refused(
        """
        init = call('pidfd_open', 1, 0)
        attempt('take', lambda: call('pidfd_getfd', init, 3, 0))
        attempt('list', lambda: os.listdir('/proc/1/fd'))
        attempt('reopen', lambda: os.readlink('/proc/1/fd/3'))
        attempt('same', lambda: call('kcmp', 1, os.getpid(), 0, 3, 0) + 1)
        attempt('socket', lambda: len(read('/proc/net/unix').splitlines()) > 1)
        """,
        "take EPERM, list ENOENT, reopen ENOENT, same EPERM, socket nothing",
    )


def test_limits_of_the_first_process_cannot_change(arena: Arena) -> None:
    arena.assert_refused(
        """
        for name in ('NOFILE', 'AS', 'CPU', 'FSIZE', 'NPROC', 'SIGPENDING'):
            kind = getattr(resource, f'RLIMIT_{name}')
            attempt(name, lambda: resource.prlimit(1, kind, (1, 1)))
        """,
        "NOFILE EPERM, AS EPERM, CPU EPERM, FSIZE EPERM, NPROC EPERM, SIGPENDING EPERM",
    )


def test_scheduling_of_the_first_process_cannot_change(arena: Arena) -> None:
    arena.assert_refused(
        """
        attempt('nice', lambda: os.setpriority(os.PRIO_PROCESS, 1, 19))
        attempt('affinity', lambda: os.sched_setaffinity(1, {min(os.sched_getaffinity(0))}))
        attempt('idle', lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)))
        attempt('io', lambda: call('ioprio_set', 1, 1, 3 << 13))
        init = call('pidfd_open', 1, 0)
        mask = ctypes.byref(ctypes.c_ulong(1))
        attempt('migrate', lambda: call('migrate_pages', 1, 64, mask, mask))
        attempt('move', lambda: call('move_pages', 1, 0, 0, 0, 0, 0))
        attempt('madvise', lambda: call('process_madvise', init, 0, 0, 21, 0))
        attempt('reap', lambda: call('process_mrelease', init, 0))
        """,
        """
        nice EPERM, affinity EPERM, idle EPERM, io EPERM, migrate EPERM, move EPERM, madvise
        EPERM, reap EINVAL|EPERM|ENOSYS
        """,
    )


def test_priorities_by_user_change_own_processes_alone(arena: Arena) -> None:
    arena.assert_refused(
        """
        def mine(): return os.getpriority(os.PRIO_PROCESS, 0)
        lower = min(mine() + 5, 19)
        with suppress(PermissionError):
            os.setpriority(os.PRIO_USER, os.getuid(), lower)
        attempt('own', lambda: mine() == lower)
        with suppress(PermissionError):
            call('ioprio_set', 3, os.getuid(), 3 << 13)
        """,
        "own DONE",
    )


def test_signals_do_not_harm_the_first_process(arena: Arena) -> None:
    arena.assert_refused(
        """
        kinds = [n for n in range(1, signal.NSIG) if n not in (32, 33)]
        init = call('pidfd_open', 1, 0)
        for name, send in (('kill', lambda n: os.kill(1, n)),
                           ('pidfd', lambda n: call('pidfd_send_signal', init, n, 0, 0)),
                           ('thread', lambda n: call('tgkill', 1, 1, n))):
            attempt(name, lambda: [send(n) for n in kinds])
        info = ctypes.create_string_buffer(struct.pack('3i', 40, 0, -1), 128)
        attempt('queue', lambda: [call('rt_sigqueueinfo', 1, 40, info) for _ in range(2000)])
        attempt('stop', lambda: [os.kill(1, signal.SIGSTOP) for _ in range(100)])
        """,
        "kill DONE, pidfd DONE, thread DONE, queue DONE|EAGAIN, stop DONE",
    )


def test_process_groups_of_the_first_process_cannot_change(arena: Arena) -> None:
    arena.assert_refused(
        """
        attempt('group', lambda: os.setpgid(0, 1))
        attempt('move', lambda: os.setpgid(1, os.getpid()))
        attempt('session', lambda: os.getsid(1) == os.getsid(0))
        attempt('parent', lambda: call('clone', 0x8000 | 17, 0, 0, 0, 0) or os._exit(0))
        attempt('wait', lambda: os.waitpid(1, os.WNOHANG))
        """,
        "group EPERM, move ESRCH|EPERM, session nothing, parent DONE, wait ECHILD",
    )


def test_the_first_process_imports_nothing_from_a_sandbox(arena: Arena) -> None:
    names = " ".join(sorted(sys.stdlib_module_names - {"os", "sys", "io"}))
    hostile = "import os; os.close(os.open('/tmp/acted', os.O_CREAT))"
    for folder in ("/workspace", "/home/agent", "/tmp"):
        with arena.open() as attacker:
            output(attacker, f'for n in {names}; do echo "{hostile}" > {folder}/$n.py; done')
            output(attacker, "echo 1 >&2; exit 0", stdin=b"x", env={"A": "b"}, timeout_s=20)
            assert attacker.run("sleep 60", timeout_s=0.2).timed_out
            attacker.restore(attacker.snapshot())
            with pytest.raises(FileNotFoundError):
                attacker.read_file("/tmp/acted")
