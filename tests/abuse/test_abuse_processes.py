"""Commands that outlive their time limit, or kill what they can."""

import signal

import pytest
from arena import Arena

_STUBBORN = {
    "busy loop": "while :; do :; done",
    "busy daemons": "for i in 1 2 3; do (setsid bash -c 'while :; do :; done' &); done; sleep 60",
    "ignored signals": "trap '' TERM HUP INT QUIT PIPE ALRM USR1 USR2; while :; do sleep 9; done",
    "stopped shell": "kill -STOP $$",
    "closed output": "exec >&- 2>&- <&-; sleep 60",
    "held output": "(trap '' HUP; setsid sleep 60 &) ; sleep 60",
    "replaced shell": "exec sleep 60",
    "blocked reader": "mkfifo fifo; read line < fifo",
}


@pytest.mark.parametrize("command", _STUBBORN.values(), ids=_STUBBORN.keys())
def test_nothing_outlives_its_time(command: str, arena: Arena) -> None:
    with arena.open() as attacker:
        result = attacker.run(command, timeout_s=0.2)
        assert result.timed_out
        assert result.exit_code == 124


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
