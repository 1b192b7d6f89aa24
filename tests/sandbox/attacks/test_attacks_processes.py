"""Attacks that outlive a command, its time limit or its sandbox, or that stop other processes, such
as the first process of a sandbox, which has the uid of every command.
"""

import sys

import pytest
from arena import Arena
from sandbox_fixtures import output

pytestmark = pytest.mark.slow

ATTACKS = {
    "children of the first process end": """
    def sibling():
        if call('clone', 0x8000 | 17, 0, 0, 0, 0) == 0:
            while True:
                signal.pause()
        return True
    attempt('parent DONE', lambda: [sibling() for _ in range(20)])
    """,
    "processes that fork when killed end": """
    def heir():
        'Forks as soon as its parent is gone.'
        watch = os.pidfd_open(os.getpid())
        if os.fork() == 0:
            while True:
                select.select([watch], [], [])
                watch = os.pidfd_open(os.getpid())
                if os.fork():
                    signal.pause()
    attempt('heirs DONE', lambda: [heir() for _ in range(5)] and True)
    """,
    "signals to all reach only own processes": """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    own = {os.getpid(), os.fork() or signal.pause()}
    pids = {int(p) for p in os.listdir('/proc') if p.isdecimal()}
    attempt('strangers nothing', lambda: sorted(pids - own))
    attempt('victim ESRCH', lambda: os.kill(FACTS['pid'], signal.SIGTERM))
    attempt('owner ESRCH', lambda: os.kill(FACTS['owner_pid'], signal.SIGSTOP))
    attempt('all DONE', lambda: os.kill(-1, signal.SIGTERM))
    """,
}
FIRST_PROCESS = {
    "first process has no files in proc": """
    for name in ('comm', 'oom_score_adj', 'timerslack_ns', 'coredump_filter', 'autogroup',
                 'clear_refs', 'setgroups', 'attr/current', 'task/1/comm'):
        attempt(f'{name} ENOENT', lambda: write(f'/proc/1/{name}', b'1'))
    for name in ('mem', 'maps', 'ns/mnt'):
        attempt(f'{name} ENOENT', lambda: os.open(f'/proc/1/{name}', os.O_RDONLY))
    attempt('descriptors ENOENT', lambda: os.listdir('/proc/1/fd'))
    for name in ('root', 'cwd', 'exe', 'fd/3'):
        attempt(f'{name} ENOENT', lambda: os.readlink(f'/proc/1/{name}'))
    """,
    "limits of the first process cannot change": """
    for name in ('NOFILE', 'AS', 'CPU', 'FSIZE', 'NPROC', 'SIGPENDING'):
        kind = getattr(resource, f'RLIMIT_{name}')
        attempt(f'{name} EPERM', lambda: resource.prlimit(1, kind, (1, 1)))
    """,
    "scheduling of the first process cannot change": """
    attempt('nice EPERM', lambda: os.setpriority(os.PRIO_PROCESS, 1, 19))
    attempt('affinity EPERM', lambda: os.sched_setaffinity(1, {min(os.sched_getaffinity(0))}))
    attempt('idle EPERM', lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)))
    attempt('io EPERM', lambda: call('ioprio_set', 1, 1, 3 << 13))
    init = call('pidfd_open', 1, 0)
    attempt('reap EINVAL|EPERM|ENOSYS', lambda: call('process_mrelease', init, 0))
    """,
    "signals do not harm the first process": """
    kinds = [n for n in range(1, signal.NSIG) if n not in (32, 33)]
    init = call('pidfd_open', 1, 0)
    for name, send in (('kill', lambda n: os.kill(1, n)),
                       ('pidfd', lambda n: call('pidfd_send_signal', init, n, 0, 0)),
                       ('thread', lambda n: call('tgkill', 1, 1, n))):
        attempt(f'{name} DONE', lambda: [send(n) for n in kinds])
    info = ctypes.create_string_buffer(struct.pack('3i', 40, 0, -1), 128)
    attempt('queue DONE|EAGAIN',
            lambda: [call('rt_sigqueueinfo', 1, 40, info) for _ in range(2000)])
    attempt('stop DONE', lambda: [os.kill(1, signal.SIGSTOP) for _ in range(100)])
    """,
}


@pytest.mark.parametrize("script", ATTACKS.values(), ids=ATTACKS)
def test_processes_end_with_their_command_and_stop_no_others(arena: Arena, script: str) -> None:
    arena.assert_refused(script)


@pytest.mark.parametrize("script", FIRST_PROCESS.values(), ids=FIRST_PROCESS)
def test_the_first_process_is_inaccessible(arena: Arena, script: str) -> None:
    arena.assert_refused(script)


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
