"""Using up what sandboxes share: each ends at a limit of its own, and others do not feel it."""

from functools import partial

from attack import TIGHT, attack_after

_FILL = """
def fill(path, size=1 << 24):
    with open(path, 'wb', buffering=0) as file:
        for _ in range(size >> 16):
            file.write(bytes(1 << 16))
"""


_attack = partial(attack_after, _FILL, limits=TIGHT)

ATTACKS = (
    _attack(
        "disk",
        """
        for number in range(8):
            with suppress(OSError):
                fill(f'/workspace/{number}', 1 << 21)
        for path in ('/workspace/x', '/tmp/x', '/home/agent/x', '/dev/shm/x'):
            attempt(path, lambda: fill(path, 1 << 17))
        attempt('memory', lambda: os.memfd_create('x'))
        hold()
        """,
        "/workspace/x ENOSPC, /tmp/x ENOSPC, /home/agent/x ENOSPC, /dev/shm/x ENOSPC,"
        " memory ENOSYS",
        ablation="tight limits",
        succeeds="/workspace/x /tmp/x /home/agent/x /dev/shm/x",
        lasts=True,
    ),
    _attack(
        "size of a file",
        """
        attempt('written', lambda: fill('/tmp/x', 5 << 20))
        attempt('sparse', lambda: os.truncate('/tmp/x', 1 << 40))
        attempt('reserved', lambda: os.posix_fallocate(os.open('/tmp/x', 2), 0, 1 << 30))
        """,
        "written EFBIG, sparse EFBIG, reserved EFBIG|ENOSPC",
        ablation="tight limits",
        succeeds="written",
    ),
    _attack(
        "inodes",
        """
        os.chdir('/tmp')
        attempt('files', lambda: [open(f'{n}', 'w').close() for n in range(2500)] and 1)
        attempt('links', lambda: [os.link('1', f'l{n}') for n in range(2500)] and 1)
        attempt('folders', lambda: os.mkdir('/workspace/folder2'))
        attempt('symlinks', lambda: os.symlink('x', '/dev/shm/x'))
        hold()
        """,
        "files ENOSPC, links ENOSPC, folders ENOSPC, symlinks ENOSPC",
        ablation="tight limits",
        succeeds="files folders symlinks",
        lasts=True,
    ),
    _attack(
        "extended attributes",
        """
        def attributes():
            for file in range(300):
                open(f'/tmp/{file}', 'w').close()
                for number in range(30):
                    os.setxattr(f'/tmp/{file}', f'user.{number}', bytes(1 << 10))
        attempt('attributes', attributes)
        """,
        "attributes ENOSPC|EOPNOTSUPP",
        ablation="tight limits",
    ),
    _attack(
        "deep folders and long names",
        """
        def deep():
            for _ in range(3000):
                os.mkdir('d' * 200)
                os.chdir('d' * 200)
        os.chdir('/tmp')
        attempt('deep', deep)
        attempt('long', lambda: open('n' * 256, 'w'))
        attempt('path', lambda: open('/tmp/' + 'd/' * 4000))
        attempt('target', lambda: os.symlink('t' * 5000, '/tmp/link'))
        """,
        "deep ENOSPC, long ENAMETOOLONG, path ENAMETOOLONG, target ENAMETOOLONG",
    ),
    _attack(
        "processes",
        """
        def forks():
            for _ in range(100):
                if os.fork() == 0:
                    signal.pause()
            return True
        attempt('forks', forks)
        hold()
        """,
        "forks EAGAIN",
        ablation="tight limits",
        lasts=True,
    ),
    _attack(
        "threads",
        """
        stop = threading.Event()
        threads = [threading.Thread(target=stop.wait, daemon=True) for _ in range(100)]
        attempt('threads', lambda: [t.start() for t in threads] and True)
        hold()
        os._exit(0)
        """,
        "threads RuntimeError",
        ablation="tight limits",
        lasts=True,
    ),
    _attack(
        "descriptors",
        """
        for name, take in (('files', lambda: os.open('/dev/null', 0)), ('pipes', os.pipe),
                           ('sockets', lambda: socket.socketpair()), ('events', select.epoll)):
            def take_many(take=take):
                kept = [take() for _ in range(200)]
                return len(kept)
            attempt(name, take_many)
        kept = count(lambda: os.open('/dev/null', 0))
        hold()
        """,
        "files EMFILE, pipes EMFILE, sockets EMFILE, events EMFILE",
        ablation="tight limits",
        lasts=True,
    ),
)
