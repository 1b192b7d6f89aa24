"""Attacks on shells that outlive a command, or wait for one."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import pytest
from arena import TIGHT, Arena
from sandbox_fixtures import BACKEND

from coding_gym.calls import ExecResult
from coding_gym.sandbox import Sandbox, SandboxSpec

pytestmark = pytest.mark.slow

# For commands that hang, or may: what they answer does not matter.
_SHORT_S = 0.2


def _spec(arena: Arena, kind: Literal["waiting", "persistent"]) -> SandboxSpec:
    return replace(arena.spec, layers=(), shell=kind, limits=TIGHT)


@pytest.fixture
def lasting(arena: Arena) -> Iterator[Sandbox]:
    with BACKEND.open(_spec(arena, "persistent")) as attacker:
        yield attacker
        # A call with its own variables meets no broken shell.
        assert attacker.run("echo alive", env={"OWN": "1"}).output == "alive\n"
    arena.assert_unharmed()


_PIPES = "$(for d in /proc/$$/fd/*; do case $(readlink $d) in pipe*) echo $d;; esac; done)"
_CHANNEL = {
    "forged answers": f"for p in {_PIPES}; do printf '0123456789abcdefx0\\nx0\\n' > $p; done",
    "numbered answers": f"for p in {_PIPES}; do printf '%016xx0\\n' {{1..99}} > $p; done",
    "endless answers": f"(while :; do for p in {_PIPES}; do printf 'x0\\n' > $p; done; done) &",
    "a flood of answers": f"for p in {_PIPES}; do head -c 40000 /dev/zero | tr '\\0' x > $p & done",
    "taking the next command": f"for p in {_PIPES}; do cat $p >/dev/null & done",
    "closed descriptors": 'for n in {3..60}; do eval "exec $n>&-"; done',
    "empty descriptors": 'for n in {3..60}; do eval "exec $n</dev/null"; done',
    "descriptors of a file": 'for n in {3..60}; do eval "exec $n>>flood"; done',
    "functions": "eval() { :; }; printf() { :; }; builtin() { :; }; exit() { :; }",
    "aliases": "alias eval=: builtin=: printf=:; shopt -s expand_aliases",
    "traps": "trap 'exit 0' DEBUG; trap 'return 0' ERR; trap : RETURN",
    "traps in functions": "trap 'echo x' DEBUG ERR RETURN CHLD; set -o functrace -o errtrace",
    "no builtins": "enable -n eval printf builtin",
    "read-only names of its own": "set -o posix; readonly BASH_EXECUTION_STRING; unset -f eval",
    "stopping itself": "kill -STOP $$ &",
    "read-only names": "readonly PATH HOME IFS=x; set -u; set -x; set -n",
    "output": "exec 1>/dev/null 2>/dev/null 47>/dev/null 9</dev/null",
    "standard input": "exec 0</dev/null",
    "options": "set -o noglob -o noclobber; set -v; set --; shopt -u sourcepath",
    "a startup file": "export BASH_ENV=/workspace/x ENV=/workspace/x; echo 'exit 0' > x",
    "a prompt": "PROMPT_COMMAND='exit 0'; PS1='$(exit)'; BASH_XTRACEFD=47",
    "no descriptors and no processes": "ulimit -n 3; ulimit -u 1",
}


@pytest.mark.parametrize("command", _CHANNEL.values(), ids=_CHANNEL.keys())
def test_attacks_on_its_channel_cost_the_shell_alone(lasting: Sandbox, command: str) -> None:
    lasting.run(f"{{ {command}\n}} 2>/dev/null", timeout_s=1)
    for _ in range(3):
        lasting.run("echo $((6 * 7)) | cat", timeout_s=1)
    assert lasting.run("echo ours", env={"OWN": "1"}, timeout_s=20).output == "ours\n"
    lasting.run("kill -KILL $$; command kill -KILL $$; sleep 60", timeout_s=0.3)
    # Where its answer was forged, the command after it meets the shell on its way out.
    assert any(not lasting.run("true", timeout_s=20).shell_lost for _ in range(5))
    for number in range(3):
        result = lasting.run(f"echo {number}; (exit {number})", timeout_s=20)
        assert (result.output[-2:], result.exit_code) == (f"{number}\n", number)


_BACKGROUND = {
    "answers in its place": "for n in {3..60}; do echo 0123456789abcdefx0 >&$n; done",
    "writes to its descriptors": "for f in /proc/$$/fd/*; do echo 0x0 > $f; done",
    "reads its input": "for f in /proc/$$/fd/*; do head -c 99 $f & done; wait",
    "kills it later": "(sleep 0.05; kill -9 $$) &",
    "stops it later": "(sleep 0.05; kill -STOP $$) &",
    "stops itself and its group": "(kill -STOP 0) &",
}


@pytest.mark.parametrize("command", _BACKGROUND.values(), ids=_BACKGROUND.keys())
def test_background_processes_cannot_hang_the_next_command(lasting: Sandbox, command: str) -> None:
    lasting.run(f"({command}) 2>/dev/null >&2 </dev/null &", timeout_s=_SHORT_S)
    for _ in range(3):  # what the policy's own shell says may be spoilt, but it says something
        assert isinstance(lasting.run("echo next", timeout_s=_SHORT_S), ExecResult)
    own = lasting.run("echo own; exit 5", env={"OWN": "1"})
    assert (own.output, own.exit_code) == ("own\n", 5)


_LURKERS = {
    "a daemon": "(setsid bash -c 'while :; do kill -STOP -1; done' &)",
    "a trap for the next": "trap 'sleep 60' EXIT; exit 0",
    "a startup file": "echo 'echo first; exit 9' > ~/.bashrc; cp ~/.bashrc ~/.profile",
    "a full table": "for i in {1..60}; do sleep 60 & done 2>/dev/null",
    "a full disk": "head -c 15M /dev/zero > /tmp/x; head -c 15M /dev/zero > x",
    "no workspace": "rm -rf /workspace/*; chmod 0 /workspace",
    "a program named like ours": "ln -s /bin/false bash; printf '#!/bin/sh\\nexit 9' > true",
}


@pytest.mark.parametrize("command", _LURKERS.values(), ids=_LURKERS.keys())
def test_waiting_shells_meet_nothing_of_earlier_commands(arena: Arena, command: str) -> None:
    with BACKEND.open(_spec(arena, "waiting")) as attacker:
        attacker.run(command, timeout_s=_SHORT_S)
        attacker.run("chmod 755 /workspace", cwd="/")
        for _ in range(2):
            result = attacker.run("echo next; set -- /proc/[0-9]*; echo $#")
            assert (result.output, result.exit_code) == ("next\n1\n", 0)
    arena.assert_unharmed()
