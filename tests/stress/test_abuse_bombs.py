"""Bombs that take all processors for a while, and siblings that go on working."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from arena import Arena, assert_bomb_ends
from attack import TIGHT
from attacks_memory import assert_ended_for_memory

from coding_gym.sandbox import Sandbox, SandboxSpec

pytestmark = pytest.mark.nightly

_SESSIONS = 'b() { setsid bash -c "$(declare -f b); b; b" & }; b; b; wait'
_STOPPED = "for i in {1..60}; do (kill -STOP $BASHPID) & done; wait"
_BUSY = "for i in {1..60}; do while :; do :; done & done; wait"


@pytest.mark.parametrize("bomb", [_SESSIONS, _BUSY], ids=["sessions", "busy-loops"])
def test_bomb_ends_with_its_command(bomb: str, arena: Arena) -> None:
    assert_bomb_ends(arena, bomb)


def test_siblings_work_under_bombs(arena: Arena) -> None:
    spec = SandboxSpec(limits=TIGHT)
    attackers = [arena.backend.open(spec) for _ in range(3)]

    def burn(attacker: Sandbox, bomb: str) -> bool:
        return attacker.run(bomb, timeout_s=0.5).timed_out

    with ThreadPoolExecutor() as threads:
        bombs = (_SESSIONS, _STOPPED, _BUSY)
        burning = [threads.submit(burn, *pair) for pair in zip(attackers, bombs, strict=True)]
        count = 0
        while not all(future.done() for future in burning):
            arena.assert_unharmed()
            count += 1
        assert count
        assert any(future.result() for future in burning)
    for attacker in attackers:
        assert attacker.run("echo alive").output == "alive\n"
        attacker.close()


def test_sandboxes_open_while_another_burns(arena: Arena) -> None:
    with arena.backend.open(SandboxSpec(limits=TIGHT)) as attacker:
        thread = threading.Thread(target=attacker.run, args=(_BUSY,), kwargs={"timeout_s": 0.5})
        thread.start()
        while thread.is_alive():
            with arena.backend.open(arena.spec) as other:
                assert other.run("cat shared.txt").output == "shared"
        thread.join()


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
