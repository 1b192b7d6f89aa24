"""Attacks that take more memory than a sandbox may have; it ends the command and nothing else."""

import pytest
from arena import TIGHT, Arena

pytestmark = pytest.mark.slow

_WORDS = """
STEP = 8 << 20
def mapped(size=STEP):
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
def touch(room):
    for place in range(0, len(room), 4096):
        room[place] = 1
    return room
print('started', flush=True)
"""
_SCRIPTS = {
    "shared memory that is in no page table": """
kept = []
while True:
    kept.append(touch(mmap.mmap(-1, STEP)))
    kept[-1].madvise(mmap.MADV_DONTNEED)
""",
    "a process that hides, of another session": """
kept = []
if os.fork() == 0:
    os.setsid()
    libc.prctl(4, 0, 0, 0, 0)
    while True:
        kept.append(touch(mapped()))
signal.pause()
""",
    "buffers of sockets": """
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
""",
    "many processes": """
for _ in range(20):
    if os.fork() == 0:
        room = touch(mapped(STEP * 4))
        signal.pause()
signal.pause()
""",
    "copies on write": """
room = touch(mapped(STEP * 3))
for _ in range(20):
    if os.fork() == 0:
        touch(room)
        signal.pause()
signal.pause()
""",
    "a stack": """
resource.setrlimit(resource.RLIMIT_STACK, (resource.RLIM_INFINITY,) * 2)
def deep():
    sys.setrecursionlimit(10**9)
    rooms = [touch(bytearray(STEP)) for _ in range(100)]
    signal.pause()
threading.stack_size(1 << 30)
thread = threading.Thread(target=deep)
thread.start()
thread.join()
""",
}


@pytest.mark.parametrize("script", _SCRIPTS.values(), ids=_SCRIPTS)
def test_memory_limit_ends_the_command_alone(script: str, arena: Arena) -> None:
    with arena.open(limits=TIGHT) as attacker:
        result = arena.run(_WORDS + script, attacker)
        assert result.output.startswith("started\n")
        assert (result.out_of_memory, result.timed_out) == (True, False)
