"""Attacks through state that sandboxes share: pages, locks and times of the host's files."""

import fcntl
import os
import struct
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from textwrap import indent

import pytest
from arena import IMPORTS
from sandbox_fixtures import write_files

from coding_gym.sandbox import Mount, SandboxBackend, SandboxSpec, default_interpreter
from coding_gym.sandbox.landlock import LandlockBackend
from coding_gym.sandbox.namespace import NamespaceBackend

pytestmark = pytest.mark.slow

_SECRET = os.urandom(12)
_STEP = 4 << 12  # one bit per page, with pages between them that read-ahead does not fill
_BITS = [byte >> i & 1 for byte in _SECRET for i in range(8)]
_SPEC = SandboxSpec(python=default_interpreter())
_SEND = """
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
for i in range(len(BITS)):
    os.posix_fadvise(file, i * STEP, STEP, os.POSIX_FADV_DONTNEED)
for i, bit in enumerate(BITS):
    bit and os.pread(file, 1, i * STEP)
"""
# Each tests whether the first page is cached; `report` prints the error of a call of the C library.
_READERS = {
    "preadv2": "os.preadv(file, [bytearray(1)], 0, os.RWF_NOWAIT)",
    "mincore": """
page = libc.mmap(None, 4096, 1, 1, file, 0)
report(libc.mincore(ctypes.c_void_p(page), 4096, ctypes.create_string_buffer(1)))
""",
    "cachestat": """
report(libc.syscall(451, file, struct.pack('QQ', 0, 4096), ctypes.create_string_buffer(40), 0))
""",
}
_REPORT = """
def report(answer):
    if answer:
        raise OSError(ctypes.get_errno(), 'refused')
try:
%s
except OSError as error:
    print(errno.errorcode[error.errno])
"""


@pytest.fixture(params=[NamespaceBackend(), LandlockBackend()], ids=["namespace", "landlock"])
def backend(request: pytest.FixtureRequest) -> SandboxBackend:
    made: SandboxBackend = request.param
    if not (probe := made.probe()).available:
        pytest.skip(probe.detail)
    return made


@pytest.fixture
def shared() -> Iterator[int]:
    """A large file that all sandboxes see; the tests may change its cached pages."""
    path = max(Path("/usr/lib").glob("*/*.so*"), key=lambda one: one.stat().st_size)
    with path.open("rb") as file:
        assert os.fstat(file.fileno()).st_size > _STEP * len(_BITS)
        yield file.fileno()


def _script(shared: int, code: str) -> str:
    path = str(Path(f"/proc/self/fd/{shared}").readlink())
    words = f"{IMPORTS}\nfile, BITS, STEP = os.open({path!r}, 0), {_BITS}, {_STEP}\n"
    words += "libc = ctypes.CDLL(None, use_errno=True); libc.mmap.restype = ctypes.c_long\n"
    return words + code


def _run(backend: SandboxBackend, script: str) -> str:
    with closing(backend.open(_SPEC)) as sandbox:
        result = sandbox.run_python(script)
        assert result.ok, result.output
        return result.output.strip()


def _cached_on_host(shared: int) -> list[int]:
    def is_cached(i: int) -> int:
        try:
            return os.preadv(shared, [bytearray(1)], i * _STEP, os.RWF_NOWAIT)
        except BlockingIOError:
            return 0

    return [is_cached(i) for i in range(len(_BITS))]


@pytest.mark.parametrize(
    ("reader", "answer"),
    [("preadv2", "ENOTSUP"), ("mincore", "ENOSYS"), ("cachestat", "ENOSYS")],
)
def test_page_cache_of_shared_files_sends_no_bytes(
    backend: SandboxBackend, shared: int, reader: str, answer: str
) -> None:
    attack = _REPORT % indent(_READERS[reader].strip(), "    ")
    assert _run(backend, _script(shared, attack)) == answer


def test_advice_does_not_evict_shared_pages(backend: SandboxBackend, shared: int) -> None:
    for i in range(len(_BITS)):
        os.pread(shared, 1, i * _STEP)
    _run(backend, _script(shared, _SEND))
    assert _cached_on_host(shared) == [1] * len(_BITS)


def test_page_cache_sends_bytes_without_a_sandbox(shared: int) -> None:
    space: dict[str, object] = {}
    exec(_script(shared, _SEND), space)  # noqa: S102 - the attack itself
    assert _cached_on_host(shared) == _BITS


@pytest.mark.parametrize(
    "command",
    [
        "dd if=/dev/urandom of=a bs=1M count=2 && dd if=a of=b iflag=nocache oflag=nocache",
        "git init r && cd r && seq 9 >a && git add a && git commit -m a && git gc",
        """python -c "import sqlite3; d = sqlite3.connect('d')
d.execute('pragma mmap_size=9999'); d.execute('pragma journal_mode=wal')
d.execute('create table t(a)'); d.commit()
assert d.execute('pragma integrity_check').fetchone() == ('ok',)" """,
    ],
    ids=["dd", "git", "sqlite"],
)
def test_programs_run_without_the_refused_calls(backend: SandboxBackend, command: str) -> None:
    with closing(backend.open(_SPEC)) as sandbox:
        result = sandbox.run(command)
    assert result.ok, result.output


def test_locks_of_other_sandboxes_are_not_listed(backend: SandboxBackend) -> None:
    with tempfile.TemporaryFile() as file:
        # struct flock of an OFD lock: the kernel lists these with their range, of any process.
        lock = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 123454321, 1, 0)
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, lock)
        assert "123454321" in Path("/proc/locks").read_text(encoding="ascii")
        with closing(backend.open(_SPEC)) as sandbox:
            assert "123454321" not in sandbox.run("cat /proc/locks").output


def test_reading_shared_files_changes_no_access_time(tmp_path: Path) -> None:
    folder = write_files(tmp_path / "layer", {"file": "text", "folder/file": "text"})
    paths = [folder, *folder.rglob("*")]
    for path in paths:
        os.utime(path, (1, 2))  # older than the change, so that the next read would update it
    spec = replace(_SPEC, layers=(folder,), mounts=(Mount(source=folder, target="/opt/shown"),))
    with closing(NamespaceBackend().open(spec)) as sandbox:
        assert sandbox.run("ls -R . /opt/shown && cat file /opt/shown/folder/file").ok
    assert [path.stat().st_atime for path in paths] == [1] * len(paths)
