"""Commands that outlive their time limit, or kill what they can."""

import signal

import pytest
from arena import Arena

_SUICIDAL = {
    "kills everybody": ("kill -9 -1; echo after", 0),
    "kills itself": ("kill -9 $$", 137),
    "kills its parent": ("kill -9 $PPID; kill -STOP $PPID; kill -SEGV 1; exit 3", 3),
    "kills its group": ("kill -9 0", 137),
    "kills with a real-time signal": ("kill -64 $$", 128 + signal.SIGRTMAX),
    "crashes": ("kill -SEGV $$", 139),
}


@pytest.mark.parametrize(("command", "code"), _SUICIDAL.values(), ids=_SUICIDAL.keys())
def test_killing_command_harms_only_itself(command: str, code: int, arena: Arena) -> None:
    with arena.open() as attacker:
        assert attacker.run(command).exit_code == code
