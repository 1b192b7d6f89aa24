"""A sandbox with the network: what it must not reach all the same."""

from dataclasses import replace

import pytest
from arena import Arena
from attacks_network import ABSTRACT, ATTACKS

from coding_gym.sandbox.zygote.landlock import rights
from coding_gym.testing import debug


@pytest.mark.skipif(rights.abi() < 6, reason="Landlock of Linux 6.12 or later confines these")
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
