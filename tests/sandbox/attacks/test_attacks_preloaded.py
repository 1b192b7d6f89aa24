"""Attacks from inside a fork of the preloaded interpreter, and on the mechanism of forks."""

import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from arena import Arena
from sandbox_fixtures import BACKEND

from coding_gym.sandbox import Mount, default_interpreter

pytestmark = pytest.mark.slow

_POISON = """
import inner, sys, os, builtins
inner.HELD.append(1); builtins.print = None; sys.path.insert(0, '/tmp'); os.umask(0); os.nice(5)
secret = 'needle-of-' + 'one-run'
"""
_LOOK = """
import inner, re, sys, os
print(inner.HELD, os.umask(18), os.nice(0), '/tmp' in sys.path)
tails, counts = (b'-run', b'-RUN'), [0, 0]  # of the secret; of one that only this run has
with open('/proc/self/maps') as maps, open('/proc/self/mem', 'rb') as memory:
    for start, end in re.findall('^(\\w+)-(\\w+) rw', maps.read(), re.M):
        memory.seek(int(start, 16))
        data = memory.read(int(end, 16) - int(start, 16))
        for number, tail in enumerate(tails):
            counts[number] += data.count(b'needle-of-one-run-of-a' + tail)
        del data
print(counts[0] <= counts[1])
"""
_SECRET = b"needle-of-one-run-of-a-run"


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """An arena whose scripts run in forks of an interpreter that has imported ``inner``."""
    site = tmp_path_factory.mktemp("site")
    site.chmod(0o755)
    (site / "inner.py").write_text("HELD = []\n", encoding="utf-8")
    python = default_interpreter()
    with ExitStack() as closing:
        arena = Arena(
            closing,
            mounts=(Mount(source=site, target=str(python.site_packages)),),
            env={"PYTHONPATH": str(python.site_packages)},
            preload=("inner",),
        )
        with BACKEND.open(arena.spec) as attacker:
            warm = attacker.run_python("import sys; print('inner' in sys.modules)")
            assert warm.output == "True\n"
            yield arena


def test_a_fork_sees_no_other_process_or_descriptor(forks: Arena) -> None:
    forks.assert_refused(
        """
        parent = os.getppid()
        attempt('parent nothing', lambda: parent if parent != 1 else 0.5)
        pids = {int(p) for p in os.listdir('/proc') if p.isdecimal()} - {os.getpid()}
        attempt('others nothing', lambda: sorted(pids))
        attempt('descriptors EBADF', lambda: [n for n in range(3, 1000) if n not in (HERE, GO)
                                        and not fcntl.fcntl(n, fcntl.F_GETFD) < 0])
        attempt('group nothing', lambda: {os.getpgid(0), os.getsid(0)} != {os.getpid()})
        attempt('init ENOENT', lambda: os.readlink('/proc/1/root'))
        attempt('trace EPERM', lambda: call('ptrace', 0x4206, 1, 0, 0))
        """
    )


def test_a_fork_has_no_rights_of_the_preloader(forks: Arena) -> None:
    forks.assert_refused(
        """
        status = read('/proc/self/status').decode()
        sets = re.findall('Cap...:.*?([0-9a-f]{16})', status)
        attempt('sets nothing', lambda: [s for s in sets if int(s, 16)])
        attempt('filter nothing', lambda: 'Seccomp:\\t2' not in status)
        attempt('privileges nothing', lambda: 'NoNewPrivs:\\t1' not in status)
        attempt('unshare EPERM', lambda: call('unshare', 0x10000000))
        attempt('securebits nothing', lambda: libc.prctl(27, 0, 0, 0, 0) != 0xEF)
        attempt('memory nothing', lambda: resource.getrlimit(resource.RLIMIT_DATA)[0] == 1 << 30)
        attempt('key ENOENT', lambda: read(FACTS['folder'] + '/secrets/key'))
        """
    )


def test_a_fork_sees_nothing_of_earlier_runs(forks: Arena) -> None:
    with forks.open() as one, forks.open() as other:
        for sandbox in (one, other):
            assert sandbox.run_python(_POISON, stdin=_SECRET).ok
        for sandbox in (one, other):
            expected = f"[] 18 {os.nice(0)} False\nTrue\n"
            assert sandbox.run_python(_LOOK).output == expected


def test_sandbox_files_do_not_affect_the_start_of_python(forks: Arena) -> None:
    env = {"PYTHONSTARTUP": "/workspace/sitecustomize.py", "PYTHONHOME": "/tmp"}
    with forks.open(env={**forks.spec.env, **env}) as attacker:
        for name in ("sitecustomize.py", "usercustomize.py", "x.pth", "encodings.py"):
            attacker.write_file(name, b"import os; os.write(1, b'acted')")
            attacker.write_file(f"/home/agent/.local/lib/{name}", b"import os; os._exit(9)")
        assert attacker.run_python("print('only this')").output == "only this\n"
