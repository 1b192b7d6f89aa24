"""Commands that fork endlessly, park descriptors or damage the state of their shell."""

import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from arena import TIGHT, Arena
from sandbox_fixtures import BACKEND

from coding_gym.calls import ExecResult
from coding_gym.sandbox import SandboxSpec

_INHERITING_OWNER = """
import os, sys
from coding_gym.sandbox import SandboxSpec
from coding_gym.sandbox.namespace import NamespaceBackend
with open(sys.argv[1], "rb") as secret:
    for number in (40, 63):
        os.dup2(secret.fileno(), number, inheritable=True)
    with NamespaceBackend().open(SandboxSpec()) as sandbox:
        print(sandbox.run("ls -l /proc/self/fd; cat <&40; cat <&63").output)
"""


pytestmark = pytest.mark.slow

_BOMBS = {
    "fork bomb": "b() { b | b & }; b",
    "bomb of stopped processes": "for i in {1..60}; do (kill -STOP $BASHPID) & done",
    "bomb of sessions": 'b() { setsid bash -c "$(declare -f b); b; b" & }; b; b; wait',
    "bomb of loops": "for i in {1..60}; do while :; do :; done & done; wait",
}


@pytest.mark.parametrize("bomb", _BOMBS.values(), ids=_BOMBS.keys())
def test_a_fork_bomb_ends_with_its_command(bomb: str, arena: Arena) -> None:
    with arena.open(limits=TIGHT) as attacker:
        # `exec`, because a shell that forks would end early without a free process.
        command = f"{{ {bomb}; }} & exec sleep 60"
        with ThreadPoolExecutor(1) as thread:
            burning = thread.submit(attacker.run, command, timeout_s=0.5)
            arena.assert_unharmed()
            assert burning.result().timed_out


_PARK = """
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
hold()
"""


def test_parked_descriptors_do_not_block_other_sandboxes(arena: Arena) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1024), hard))
    try:
        with BACKEND.open(arena.spec) as attacker, ThreadPoolExecutor(1) as thread:
            thread.submit(arena.run, _PARK, attacker)
            with arena.held():
                for _ in range(5):
                    with BACKEND.open(SandboxSpec(forwards=arena.spec.forwards)) as other:
                        assert other.run("echo open").output == "open\n"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


_STATE = "~/.bash_state"
_ATTACKS = {
    "functions": "eval() { :; }; printf() { :; }; builtin() { :; }; exit() { :; }",
    "traps": "trap 'exit 0' DEBUG; trap 'return 0' ERR; trap : RETURN; trap 'sleep 60' EXIT",
    "read-only names": "set -o posix; readonly BASH_EXECUTION_STRING PATH HOME IFS=x; set -u",
    "output": "exec 1>/dev/null 2>/dev/null 0</dev/null",
    "a startup file": "export BASH_ENV=/workspace/x ENV=/workspace/x; echo 'exit 0' > x",
    "its own state": f"echo 'sleep 60; exit 9' > {_STATE}; chmod 444 {_STATE}; kill -KILL $$",
    "a fifo for its state": f"rm {_STATE}; mkfifo {_STATE}; kill -KILL $$",
    "a daemon": "(setsid bash -c 'while :; do kill -STOP -1; done' &)",
    "a full table": "for i in {1..60}; do sleep 60 & done 2>/dev/null",
    "a full disk": "head -c 15M /dev/zero > /tmp/x; head -c 15M /dev/zero > x",
    "no workspace": "rm -rf /workspace/*; chmod 0 /workspace",
}


@pytest.mark.parametrize("command", _ATTACKS.values(), ids=_ATTACKS)
def test_a_damaged_shell_state_harms_only_its_sandbox(arena: Arena, command: str) -> None:
    spec = replace(arena.spec, layers=(), shell="persistent", limits=TIGHT)
    with BACKEND.open(spec) as attacker:
        attacker.run("echo begin")
        attacker.run(command, timeout_s=0.5)
        # The output of this shell may be wrong, but the call returns.
        assert isinstance(attacker.run("echo next", timeout_s=0.5), ExecResult)
        attacker.run("chmod 755 /workspace", cwd="/")
        own = attacker.run("echo own; set -- /proc/[0-9]*; echo $#; exit 5", env={"OWN": "1"})
        assert (own.output, own.exit_code) == ("own\n1\n", 5)
    arena.assert_unharmed()


def test_inheritable_descriptors_do_not_reach_a_sandbox(arena: Arena) -> None:
    command = [sys.executable, "-c", _INHERITING_OWNER, arena.host.secrets / "key"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert listed.count("Bad file descriptor") == 2
    assert arena.host.marker not in listed
    assert "secrets" not in listed
