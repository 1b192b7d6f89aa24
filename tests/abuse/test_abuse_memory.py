"""Taking more memory than a sandbox may have. More ways are in ``tests/stress``."""

import pytest
from arena import Arena
from attacks_memory import assert_ended_for_memory

pytestmark = pytest.mark.slow

_SCRIPTS = {
    "shared memory that is in no page table": """
def shared():
    kept = []
    while True:
        kept.append(mmap.mmap(-1, STEP))
        touch(kept[-1])
        kept[-1].madvise(mmap.MADV_DONTNEED)
forever(shared)
""",
    "a process that hides, of another session": """
if os.fork() == 0:
    os.setsid()
    libc.prctl(4, 0, 0, 0, 0)
    private()
forever(signal.pause)
""",
    "buffers of sockets": """
def buffers():
    kept = []
    for _ in range(30):
        if os.fork() == 0:
            with suppress(OSError):
                while True:
                    kept.append(socket.socketpair())
                    for end in kept[-1]:
                        end.setblocking(False)
                        with suppress(BlockingIOError):
                            while True:
                                end.send(bytes(1 << 16))
            signal.pause()
    signal.pause()
forever(buffers)
""",
}


@pytest.mark.parametrize("script", _SCRIPTS.values(), ids=_SCRIPTS.keys())
def test_memory_limit_ends_the_command_alone(script: str, arena: Arena) -> None:
    assert_ended_for_memory(arena, script)
