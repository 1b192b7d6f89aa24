"""Attacks that use up what sandboxes, the machine or a user share."""

import pytest
from arena import TIGHT, Arena

pytestmark = pytest.mark.slow


def test_full_disks_harm_no_sibling(arena: Arena) -> None:
    arena.assert_refused(
        """
        for number in range(8):
            with suppress(OSError):
                fill(f'/workspace/{number}', 1 << 21)
        for path in ('/workspace/x', '/tmp/x', '/home/agent/x', '/dev/shm/x'):
            attempt(path, lambda: fill(path, 1 << 17))
        attempt('memory', lambda: os.memfd_create('x'))
        hold()
        """,
        """
        /workspace/x ENOSPC, /tmp/x ENOSPC, /home/agent/x ENOSPC, /dev/shm/x ENOSPC, memory
        ENOSYS
        """,
        lasts=True,
        limits=TIGHT,
    )


def test_file_sizes_are_bounded(arena: Arena) -> None:
    arena.assert_refused(
        """
        attempt('written', lambda: fill('/tmp/x', 5 << 20))
        attempt('sparse', lambda: os.truncate('/tmp/x', 1 << 40))
        attempt('reserved', lambda: os.posix_fallocate(os.open('/tmp/x', 2), 0, 1 << 30))
        """,
        "written EFBIG, sparse EFBIG, reserved EFBIG|ENOSPC",
        limits=TIGHT,
    )


def test_inodes_are_bounded(arena: Arena) -> None:
    arena.assert_refused(
        """
        os.chdir('/tmp')
        attempt('files', lambda: [open(f'{n}', 'w').close() for n in range(2500)] and 1)
        attempt('links', lambda: [os.link('1', f'l{n}') for n in range(2500)] and 1)
        attempt('folders', lambda: os.mkdir('/workspace/folder2'))
        attempt('symlinks', lambda: os.symlink('x', '/dev/shm/x'))
        hold()
        """,
        "files ENOSPC, links ENOSPC, folders ENOSPC, symlinks ENOSPC",
        lasts=True,
        limits=TIGHT,
    )


def test_extended_attributes_are_bounded(arena: Arena) -> None:
    arena.assert_refused(
        """
        def attributes():
            for file in range(300):
                open(f'/tmp/{file}', 'w').close()
                for number in range(30):
                    os.setxattr(f'/tmp/{file}', f'user.{number}', bytes(1 << 10))
        attempt('attributes', attributes)
        """,
        "attributes ENOSPC|EOPNOTSUPP",
        limits=TIGHT,
    )


def test_deep_folders_and_long_names_end(arena: Arena) -> None:
    arena.assert_refused(
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
        limits=TIGHT,
    )


def test_processes_are_bounded(arena: Arena) -> None:
    arena.assert_refused(
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
        lasts=True,
        limits=TIGHT,
    )


def test_threads_are_bounded(arena: Arena) -> None:
    arena.assert_refused(
        """
        stop = threading.Event()
        threads = [threading.Thread(target=stop.wait, daemon=True) for _ in range(100)]
        attempt('threads', lambda: [t.start() for t in threads] and True)
        hold()
        os._exit(0)
        """,
        "threads RuntimeError",
        lasts=True,
        limits=TIGHT,
    )


def test_descriptors_are_bounded(arena: Arena) -> None:
    arena.assert_refused(
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
        lasts=True,
        limits=TIGHT,
    )


def test_stores_of_a_user_are_not_used_up(arena: Arena) -> None:
    arena.assert_refused(
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
        lasts=True,
        limits=TIGHT,
    )


def test_memory_without_an_owner_is_refused(arena: Arena) -> None:
    arena.assert_refused(
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
        """
        shared EPERM, semaphores EPERM, messages EPERM, key EPERM, posix EMFILE|ENOSYS, aio
        EPERM, locked nothing
        """,
        limits=TIGHT,
    )


def test_locks_on_shared_files_stop_nobody(arena: Arena) -> None:
    arena.assert_refused(
        """
        file = open('/opt/shown/file')
        attempt('flock', lambda: fcntl.flock(file, fcntl.LOCK_EX))
        attempt('read', lambda: fcntl.lockf(file, fcntl.LOCK_SH))
        attempt('write', lambda: fcntl.lockf(file, fcntl.LOCK_EX))
        hold()
        """,
        "flock DONE, read DONE, write EBADF",
        lasts=True,
        limits=TIGHT,
    )


def test_arguments_and_variables_are_bounded(arena: Arena) -> None:
    arena.assert_refused(
        """
        many = {f'V{n}': 'x' * 1000 for n in range(10000)}
        attempt('variables', lambda: subprocess.run(['/bin/true'], env=many))
        attempt('arguments', lambda: subprocess.run(['/bin/true', *['x' * 1000] * 10000]))
        attempt('argument', lambda: subprocess.run(['/bin/true', 'x' * (1 << 20)]))
        """,
        "variables E2BIG, arguments E2BIG, argument E2BIG",
        limits=TIGHT,
    )
