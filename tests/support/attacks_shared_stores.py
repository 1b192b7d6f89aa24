"""Using up what the machine, or its user, has one store of."""

from functools import partial

from attack import TIGHT, attack_after

_BELOW = """
def below(got, most):
    return False if len(got) <= most else len(got)
"""


_attack = partial(attack_after, _BELOW, limits=TIGHT)

ATTACKS = (
    _attack(
        "what a user has few of",
        """
        signal.pthread_sigmask(signal.SIG_BLOCK, [40])
        def terminal(): return os.open('/dev/ptmx', os.O_RDWR)
        def watch():
            if (got := libc.inotify_init()) < 0:
                raise OSError(ctypes.get_errno(), 'inotify')
            return got
        def queue():
            if libc.sigqueue(os.getpid(), 40, 0) < 0:
                raise OSError(ctypes.get_errno(), 'sigqueue')
        watches, terminals = count(watch, 40), count(terminal, 100)
        attempt('inotify', lambda: below(watches, 16))
        attempt('terminals', lambda: below(terminals, 64))
        attempt('signals', lambda: below(count(queue), 1024))
        hold()
        """,
        "inotify nothing, terminals nothing, signals nothing",
        ablation="count limits",
        succeeds="inotify terminals",
        lasts=True,
    ),
    _attack(
        "memory that no process owns",
        """
        attempt('shared', lambda: call('shmget', 0, 1 << 20, 0o1600))
        attempt('semaphores', lambda: call('semget', 0, 32000, 0o1600))
        attempt('messages', lambda: call('msgget', 0, 0o1600))
        attempt('key', lambda: call('add_key', b'user\\0', b'x\\0', b'x' * 9, 9, -3))
        def queue():
            if libc.mq_open(b'/x', os.O_CREAT | os.O_RDWR, 0o600, 0) < 0:
                raise OSError(ctypes.get_errno(), 'mq_open')
        attempt('posix', queue)
        contexts = ctypes.c_ulong()
        attempt('aio', lambda: call('io_setup', 60000, ctypes.byref(contexts)))
        attempt('locked', lambda: libc.mlockall(3) == 0)
        """,
        "shared EPERM, semaphores EPERM, messages EPERM, key EPERM, posix EMFILE|ENOSYS, aio EPERM,"
        " locked nothing",
        ablation="system-call filter",
        succeeds="shared messages aio",
    ),
    _attack(
        "locks on files that others have",
        """
        file = open('/opt/shown/file')
        attempt('flock', lambda: fcntl.flock(file, fcntl.LOCK_EX))
        attempt('read', lambda: fcntl.lockf(file, fcntl.LOCK_SH))
        attempt('write', lambda: fcntl.lockf(file, fcntl.LOCK_EX))
        hold()
        """,
        "flock DONE, read DONE, write EBADF",
        lasts=True,
    ),
    _attack(
        "arguments and variables",
        """
        many = {f'V{n}': 'x' * 1000 for n in range(10000)}
        attempt('variables', lambda: subprocess.run(['/bin/true'], env=many))
        attempt('arguments', lambda: subprocess.run(['/bin/true', *['x' * 1000] * 10000]))
        attempt('argument', lambda: subprocess.run(['/bin/true', 'x' * (1 << 20)]))
        """,
        "variables E2BIG, arguments E2BIG, argument E2BIG",
    ),
)
