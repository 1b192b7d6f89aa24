"""Taking more memory than a sandbox may have, in every way that there is."""

import pytest
from arena import TIGHT, Arena
from attack import Attack

_TAKE = """
STEP = 8 << 20
def touch(room, first=0, last=None):
    for place in range(first, last or len(room), 4096):
        room[place] = 1
def private():
    kept = []
    while True:
        kept.append(mmap.mmap(-1, STEP, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
        touch(kept[-1])
def forever(action):
    print('started', flush=True)
    action()
"""
_SCRIPTS = {
    "one process": "forever(private)",
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
    "shared memory that is in no page table": """
def shared():
    kept = []
    while True:
        kept.append(mmap.mmap(-1, STEP))
        touch(kept[-1])
        kept[-1].madvise(mmap.MADV_DONTNEED)
forever(shared)
""",
    "a process that hides": """
libc.prctl(4, 0, 0, 0, 0)
forever(private)
""",
    "a process that hides, of another session": """
if os.fork() == 0:
    os.setsid()
    libc.prctl(4, 0, 0, 0, 0)
    private()
forever(signal.pause)
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
def test_who_takes_too_much_memory_is_ended_and_nobody_else(script: str, arena: Arena) -> None:
    attack = Attack(name="memory", script=_TAKE + script, held="started DONE")
    with arena.backend.open(arena.tight) as attacker:
        result = arena.run(attack, attacker)
        assert result.output.startswith("started\n")
        assert result.out_of_memory
        assert not result.timed_out
        assert attacker.run("echo alive").output == "alive\n"
    arena.assert_unharmed()


def test_the_same_script_ends_by_itself_where_there_is_room(arena: Arena) -> None:
    script = "room = mmap.mmap(-1, STEP * 20); touch(room); print('started')"
    attack = Attack(name="memory", script=_TAKE + script, held="started DONE")
    with arena.backend.open(arena.spec) as attacker:
        assert arena.run(attack, attacker).output == "started\n"
    with arena.backend.open(arena.tight) as attacker:
        assert TIGHT.memory_bytes < 20 * (8 << 20)
        assert arena.run(attack, attacker).out_of_memory


def test_memory_of_files_is_counted_by_the_disk(arena: Arena) -> None:
    with arena.backend.open(arena.tight) as attacker:
        for place in ("/tmp/x", "/dev/shm/x", "x"):
            assert (
                "No space left"
                in attacker.run(
                    f"for i in {{1..8}}; do head -c 3M /dev/zero > {place}$i; done; rm {place}*"
                ).output
            )
    arena.assert_unharmed()
