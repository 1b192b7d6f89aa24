"""Outliving a command, its time limit or its sandbox; stopping others."""

from functools import partial

from attack import Attack

_DAEMON = """
def daemon(prepare=lambda: None):
    'A process that has left its parent, its session and its terminal, and ignores every signal.'
    ready, done = os.pipe()
    first = os.fork()
    if first == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(1, signal.NSIG):
                with suppress(OSError, ValueError):
                    signal.signal(number, signal.SIG_IGN)
            prepare()
            os.write(done, str(os.getpid()).encode())
            while True:
                signal.pause()
        os._exit(0)
    os.waitpid(first, 0)
    return int(os.read(ready, 20))
"""
_attack = partial(Attack, words=_DAEMON)

# After each the arena looks for processes that are left.
ATTACKS = (
    _attack(
        name="daemons that ignore every signal, have no descriptors or are stopped",
        script="""
        attempt('daemon', daemon)
        attempt('bare', lambda: daemon(lambda: os.closerange(0, 3)))
        pid = daemon()
        attempt('stop', lambda: os.kill(pid, signal.SIGSTOP))
        """,
        report="daemon DONE, bare DONE, stop DONE",
    ),
    _attack(
        name="a subreaper that keeps orphans",
        script="""
        libc.prctl(36, 1, 0, 0, 0)
        pid = daemon()
        attempt('adopted', lambda: f'PPid:\\t{os.getpid()}' in read(f'/proc/{pid}/status').decode())
        """,
        report="adopted DONE",
    ),
    _attack(
        name="children of the first process",
        script="""
        def sibling():
            if call('clone', 0x8000 | 17, 0, 0, 0, 0) == 0:
                while True:
                    signal.pause()
            return True
        attempt('parent', lambda: [sibling() for _ in range(20)])
        """,
        report="parent DONE",
    ),
    _attack(
        name="a storm of vfork and of zombies",
        script="""
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
        report="storm DONE",
    ),
    _attack(
        name="a new child for every one that is killed",
        script="""
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
        report="heirs DONE",
    ),
    _attack(
        name="parents that die of their children",
        script="""
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
        report="linked DONE",
    ),
    _attack(
        name="signals to everybody",
        script="""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        own = {os.getpid(), daemon()}
        pids = {int(p) for p in os.listdir('/proc') if p.isdecimal()}
        attempt('strangers', lambda: sorted(pids - own))
        attempt('victim', lambda: os.kill(FACTS['pid'], signal.SIGTERM))
        attempt('owner', lambda: os.kill(FACTS['owner_pid'], signal.SIGSTOP))
        attempt('all', lambda: os.kill(-1, signal.SIGTERM))
        """,
        report="strangers nothing, victim ESRCH, owner ESRCH, all DONE",
    ),
    _attack(
        name="signals to the groups of others",
        script="""
        for name, group in (('victim', FACTS['pid']), ('owner', FACTS['owner_pid'])):
            attempt(name, lambda: os.killpg(group, signal.SIGKILL))
            attempt(name, lambda: os.kill(-group, signal.SIGSTOP))
        attempt('terminal', lambda: fcntl.ioctl(0, termios.TIOCSPGRP, struct.pack('i', 1)))
        """,
        report="victim ESRCH, victim ESRCH, owner ESRCH, owner ESRCH, terminal ENOTTY",
    ),
)
