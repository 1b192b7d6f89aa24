"""Attacks of a persistent shell on later commands of ours."""

from dataclasses import replace

import pytest
from arena import TIGHT, Arena
from sandbox_fixtures import BACKEND

from coding_gym.calls import ExecResult

pytestmark = pytest.mark.slow

_STATE = "~/.bash_state"
_ATTACKS = {
    "functions": "eval() { :; }; printf() { :; }; builtin() { :; }; exit() { :; }",
    "aliases": "alias eval=: builtin=: printf=:; shopt -s expand_aliases",
    "traps": "trap 'exit 0' DEBUG; trap 'return 0' ERR; trap : RETURN; trap 'sleep 60' EXIT",
    "no builtins": "enable -n eval printf builtin",
    "read-only names": "set -o posix; readonly BASH_EXECUTION_STRING PATH HOME IFS=x; set -u",
    "no execution": "set -n",
    "output": "exec 1>/dev/null 2>/dev/null 0</dev/null",
    "a startup file": "export BASH_ENV=/workspace/x ENV=/workspace/x; echo 'exit 0' > x",
    "its own state": f"echo 'sleep 60; exit 9' > {_STATE}; chmod 444 {_STATE}; kill -KILL $$",
    "a fifo for its state": f"rm {_STATE}; mkfifo {_STATE}; kill -KILL $$",
    "a folder for its state": f"rm {_STATE}; mkdir {_STATE}; kill -KILL $$",
    "no descriptors and no processes": "ulimit -n 3; ulimit -u 1",
    "a daemon": "(setsid bash -c 'while :; do kill -STOP -1; done' &)",
    "a full table": "for i in {1..60}; do sleep 60 & done 2>/dev/null",
    "a full disk": "head -c 15M /dev/zero > /tmp/x; head -c 15M /dev/zero > x",
    "no workspace": "rm -rf /workspace/*; chmod 0 /workspace",
}


@pytest.mark.parametrize("command", _ATTACKS.values(), ids=_ATTACKS)
def test_spoilt_state_costs_the_policy_alone(arena: Arena, command: str) -> None:
    spec = replace(arena.spec, layers=(), shell="persistent", limits=TIGHT)
    with BACKEND.open(spec) as attacker:
        attacker.run("echo begin")
        attacker.run(command, timeout_s=0.5)
        # What its own shell prints may be spoilt, but it prints something.
        assert isinstance(attacker.run("echo next", timeout_s=0.5), ExecResult)
        attacker.run("chmod 755 /workspace", cwd="/")
        own = attacker.run("echo own; set -- /proc/[0-9]*; echo $#; exit 5", env={"OWN": "1"})
        assert (own.output, own.exit_code) == ("own\n1\n", 5)
    arena.assert_unharmed()
