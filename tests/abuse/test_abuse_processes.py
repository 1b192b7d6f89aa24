"""Commands that kill what they can, flood, reach for the network or park descriptors."""

import contextlib
import os
import resource
import signal
import threading
from dataclasses import replace

import pytest
from arena import Arena, assert_bomb_ends
from attacks_network import ABSTRACT, ATTACKS
from checks import debug

from coding_gym.errors import SandboxError
from coding_gym.sandbox import Sandbox, SandboxSpec
from coding_gym.sandbox.inside import landlock_rules

pytestmark = pytest.mark.slow

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


_BOMBS = {
    "fork bomb": "b() { b | b & }; b",
    "bomb of stopped processes": "for i in {1..60}; do (kill -STOP $BASHPID) & done",
}


@pytest.mark.parametrize("bomb", _BOMBS.values(), ids=_BOMBS.keys())
def test_a_bomb_ends_with_its_command(bomb: str, arena: Arena) -> None:
    assert_bomb_ends(arena, bomb)


@pytest.mark.skipif(landlock_rules.abi() < 6, reason="needs Landlock of Linux 6.12")
def test_a_build_with_the_network_does_not_reach_abstract_names(arena: Arena) -> None:
    attack = next(attack for attack in ATTACKS if attack.name == ABSTRACT)
    spec = replace(arena.spec, network=True)
    with arena.backend.open(spec) as attacker:
        assert arena.run(attack, attacker).output.splitlines() == [
            "call EPERM",
            "call ECONNREFUSED",  # none of the host's takes datagrams
        ]
        own = "import socket; s = socket.socket(1); s.bind('\\0own'); s.listen()\n"
        own += "socket.socket(1).connect('\\0own'); print('own')"
        attacker.write_file("own.py", own.encode())
        assert attacker.run("python own.py").output == "own\n"
    arena.assert_unharmed()
    with debug.without("abstract socket scope") as backend, backend.open(spec) as attacker:
        assert arena.run(attack, attacker).output.startswith("call DONE")
    arena.host.answer_calls()


_PARK = """
import os, socket
here, go = (os.open(f"/opt/gate/{name}", os.O_RDWR) for name in ("here", "go"))
end, _ = socket.socketpair()
kept = []
while True:
    try:
        kept.append(socket.socketpair())
        kept[-1][0].setblocking(False)
        while True:
            socket.send_fds(kept[-1][0], [b"x"], [end.fileno()] * 200)
    except BlockingIOError:
        continue
    except OSError:
        break
os.write(here, b"x")
os.read(go, 1)
"""


def test_parked_descriptors_do_not_keep_others_from_opening(arena: Arena) -> None:
    def run(attacker: Sandbox) -> None:
        with contextlib.suppress(SandboxError):
            attacker.run("python park.py")

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with arena.backend.open(arena.spec) as attacker:
        attacker.write_file("park.py", _PARK.encode())
        thread = threading.Thread(target=run, args=(attacker,))
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1024), hard))
        thread.start()
        try:
            arena.wait_for_attack()
            for _ in range(5):
                with arena.backend.open(SandboxSpec()) as other:
                    assert other.run("echo open").output == "open\n"
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            os.write(arena.host.go, b"x")
            attacker.close()
            thread.join()


def test_inheritable_descriptors_do_not_reach_a_sandbox(arena: Arena) -> None:
    with arena.host.secret.open("rb") as secret:
        os.set_inheritable(secret.fileno(), True)
        for number in (secret.fileno(), 40, 63):
            os.dup2(secret.fileno(), number, inheritable=True)
        try:
            with debug.without() as backend, backend.open(arena.spec) as attacker:
                listed = attacker.run("ls -l /proc/self/fd; cat <&40; cat <&63").output
                assert arena.host.marker not in listed
                assert "secrets" not in listed
                assert listed.count("Bad file descriptor") == 2
        finally:
            os.close(40)
            os.close(63)
