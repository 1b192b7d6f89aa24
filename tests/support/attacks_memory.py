"""Words of the scripts that take memory, and what becomes of such a script."""

from arena import Arena
from attack import Attack

TAKE = """
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


def assert_ended_for_memory(arena: Arena, script: str) -> None:
    """Asserts that the memory limit ends a script, in the words of `TAKE`, and nothing else."""
    attack = Attack(name="memory", script=TAKE + script, report="started DONE")
    with arena.backend.open(arena.tight) as attacker:
        result = arena.run(attack, attacker)
        assert result.output.startswith("started\n")
        assert result.out_of_memory
        assert not result.timed_out
        assert attacker.run("echo alive").output == "alive\n"
    arena.assert_unharmed()
