"""Floods: processes, output, processor time, and everything at once."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from arena import TIGHT, Arena, assert_alone

from coding_gym.sandbox import Sandbox, SandboxSpec

_BOMBS = {
    "fork bomb": ":() { : | : & }; : 2>/dev/null; read < /opt/gate/never",
    "bomb of sessions": 'b() { setsid bash -c "$(declare -f b); b; b" & }; b; b; wait; sleep 9',
    "bomb of stopped processes": "for i in {1..60}; do (kill -STOP $BASHPID) & done; sleep 9",
    "bomb of busy loops": "for i in {1..60}; do while :; do :; done & done 2>/dev/null; wait",
}


@pytest.mark.parametrize("bomb", _BOMBS.values(), ids=_BOMBS.keys())
def test_a_bomb_ends_with_its_command(bomb: str, arena: Arena) -> None:
    spec = SandboxSpec(mounts=arena.spec.mounts, limits=TIGHT)
    with arena.backend.open(spec) as attacker:
        result = attacker.run(f"{bomb} 2>/dev/null", timeout_s=0.5)
        assert result.timed_out or result.num_leftovers or result.exit_code
        assert_alone(attacker)
    arena.assert_unharmed()


def test_siblings_work_under_bombs(arena: Arena) -> None:
    spec = SandboxSpec(limits=TIGHT)
    attackers = [arena.backend.open(spec) for _ in range(3)]
    bombs = list(_BOMBS.values())[1:]

    def burn(attacker: Sandbox, bomb: str) -> bool:
        return attacker.run(bomb, timeout_s=0.5).timed_out

    with ThreadPoolExecutor() as threads:
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


_FLOODS = {
    "a gigabyte": ("head -c 1G /dev/zero | tr '\\0' x", 1 << 30),
    "a gigabyte of lines": ("yes | head -c 1G", 1 << 30),
    "errors": ("head -c 64M /dev/zero >&2", 64 << 20),
}


@pytest.mark.parametrize(("command", "size"), _FLOODS.values(), ids=_FLOODS.keys())
def test_a_flood_of_output_costs_no_memory(command: str, size: int, arena: Arena) -> None:
    with arena.open() as attacker:
        result = attacker.run(command, max_output_bytes=1 << 16)
        assert result.truncated
        assert f"[... {size - (1 << 16)} bytes left out ...]" in result.output
        assert len(result.output) < 1 << 17
        first = attacker._life.channel.peer_pid(timeout_s=10)
        status = Path(f"/proc/{first}/status").read_text(encoding="ascii")
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        assert int(peak.split()[1]) < 64 << 10  # KiB


def test_an_endless_flood_ends_with_its_time(arena: Arena) -> None:
    with arena.open() as attacker:
        result = attacker.run("yes & yes >&2 & yes", timeout_s=0.3, max_output_bytes=1000)
        assert result.timed_out
        assert len(result.output) < 2000


def test_more_than_a_process_can_be_given_is_refused_inside(arena: Arena) -> None:
    with arena.open() as attacker:
        large = attacker.run("true", env={f"V{n}": "x" * 1000 for n in range(5000)})
        assert (large.exit_code, large.output) == (126, "bash: Argument list too long\n")
        assert attacker.run(": " + "x" * ((1 << 20) - 2)).ok
        assert attacker.run("wc -c", stdin=bytes(64 << 20)).output.strip() == str(64 << 20)


def test_sandboxes_that_are_opened_under_attack_open(arena: Arena) -> None:
    with arena.backend.open(SandboxSpec(limits=TIGHT)) as attacker:
        bomb = list(_BOMBS.values())[3]
        thread = threading.Thread(target=attacker.run, args=(bomb,), kwargs={"timeout_s": 0.5})
        thread.start()
        while thread.is_alive():
            with arena.backend.open(arena.spec) as other:
                assert other.run("cat shared.txt").output == "shared"
        thread.join()
