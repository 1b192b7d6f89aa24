"""More ways to take more memory than a sandbox may have."""

import pytest
from arena import Arena
from attacks_memory import assert_ended_for_memory

_SCRIPTS = {
    "many processes": """
def part():
    room = mmap.mmap(-1, STEP * 4, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    touch(room)
    signal.pause()
def many():
    for _ in range(20):
        if os.fork() == 0:
            part()
    signal.pause()
forever(many)
""",
    "threads": """
def many():
    for _ in range(4):
        threading.Thread(target=private).start()
forever(many)
""",
    "a process that hides": """
libc.prctl(4, 0, 0, 0, 0)
forever(private)
""",
    "copies on write": """
def copies():
    room = mmap.mmap(-1, STEP * 3, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    touch(room)
    for _ in range(20):
        if os.fork() == 0:
            touch(room)
            signal.pause()
    signal.pause()
forever(copies)
""",
    "a stack": """
resource.setrlimit(resource.RLIMIT_STACK, (resource.RLIM_INFINITY,) * 2)
def stack():
    threading.stack_size(1 << 30)
    thread = threading.Thread(target=deep)
    thread.start()
    thread.join()
def deep():
    sys.setrecursionlimit(10**9)
    rooms = [bytearray(STEP) for _ in range(100)]
    [touch(room) for room in rooms]
    signal.pause()
forever(stack)
""",
}


@pytest.mark.parametrize("script", _SCRIPTS.values(), ids=_SCRIPTS.keys())
def test_memory_limit_ends_the_command_alone(script: str, arena: Arena) -> None:
    assert_ended_for_memory(arena, script)
