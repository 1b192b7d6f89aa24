"""Attacks that exhaust resources which sandboxes share."""

import pytest
from arena import TIGHT, Arena

pytestmark = pytest.mark.slow

ATTACKS = {
    "full disks harm no sibling": """
    for number in range(8):
        with suppress(OSError):
            fill(f'/workspace/{number}', 1 << 21)
    for path in ('/workspace/x', '/tmp/x', '/home/agent/x', '/dev/shm/x'):
        attempt(f'{path} ENOSPC', lambda: fill(path, 1 << 17))
    attempt('memory ENOSYS', lambda: os.memfd_create('x'))
    hold()
    """,
    "extended attributes are bounded": """
    def attributes():
        for file in range(300):
            open(f'/tmp/{file}', 'w').close()
            for number in range(30):
                os.setxattr(f'/tmp/{file}', f'user.{number}', bytes(1 << 10))
    attempt('attributes ENOSPC|EOPNOTSUPP', attributes)
    """,
    "counters of a user are not exhausted": """
    signal.pthread_sigmask(signal.SIG_BLOCK, [40])
    def terminal(): return os.open('/dev/ptmx', os.O_RDWR)
    def watch():
        if (got := libc.inotify_init()) < 0:
            raise OSError(ctypes.get_errno(), 'inotify')
        return got
    def queue():
        if libc.sigqueue(os.getpid(), 40, 0) < 0:
            raise OSError(ctypes.get_errno(), 'sigqueue')
    kept = []
    attempt('inotify EMFILE', lambda: kept.extend(watch() for _ in range(17)))
    attempt('terminals ENOSPC', lambda: kept.extend(terminal() for _ in range(65)))
    attempt('signals EAGAIN', lambda: [queue() for _ in range(1025)])
    hold()
    """,
    "memory that no process maps is refused": """
    def queue():
        if libc.mq_open(b'/x', os.O_CREAT | os.O_RDWR, 0o600, 0) < 0:
            raise OSError(ctypes.get_errno(), 'mq_open')
    attempt('posix EMFILE|ENOSYS', queue)
    attempt('locked nothing', lambda: libc.mlockall(3) == 0)
    """,
}


@pytest.mark.parametrize("script", ATTACKS.values(), ids=ATTACKS)
def test_limits_hold_and_harm_no_sibling(arena: Arena, script: str) -> None:
    arena.assert_refused(script, limits=TIGHT)
