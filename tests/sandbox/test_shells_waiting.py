"""A bash that waits for its command gives what a fresh one gives."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from sandbox_fixtures import make_sandbox

from coding_gym.sandbox import Sandbox, default_interpreter

Pair = tuple[Sandbox, Sandbox]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """A sandbox with fresh shells and one whose shells wait."""
    python = default_interpreter()
    with ExitStack() as opened:
        yield (
            opened.enter_context(make_sandbox(python=python)),
            opened.enter_context(make_sandbox(python=python, shell="waiting")),
        )


_SAME = (
    "",
    "exit 7",
    "(exit 300)",
    "false",
    "no-such-command",
    "\nno-such-command",
    "echo $-; echo \"$0 $# $_\"; echo $SHLVL; pwd; echo \"$OLDPWD|$PWD\"",
    'echo "$BASH_EXECUTION_STRING"; echo $SECONDS',
    "echo $LINENO\necho $LINENO",
    "echo $_",
    "export -p; set -o; shopt; trap; jobs; alias; ulimit -a; umask",
    "return; echo $?",
    "break; echo $?",
    "set -e; false; echo not reached",
    "set -u; echo $missing; echo not reached",
    "set -v; echo a\necho b",
    "set -n; echo not reached",
    "trap 'echo bye' EXIT; echo hello",
    "trap 'echo bye' EXIT; exit 3",
    "trap 'echo err' ERR; false",
    "trap 'echo debug' DEBUG; true",
    "trap 'echo got' TERM; kill $$; echo on",
    "trap '' TERM; kill $$; echo on",
    "exec echo replaced",
    "exec no-such-command",
    "exec 3>&1; echo x >&3; exec 3>&-; exec >/dev/null; echo y",
    "kill -TERM $$",
    "kill -KILL $$",
    "cat; read line; echo $?; [ -t 0 ]; echo $?; readlink /proc/self/fd/0",
    "for d in /proc/self/fd/*; do echo ${d##*/}; done",
    "ls /proc/$$/fd; true",
    "cat <<'END'\n$a `b` 'c' \"d\" \\\nEND\n",
    "echo a\\\nb",
    "f() { local x=$1; return 3; }; f; echo $?",
    "x=(1 2 3); echo ${x[@]: -1}; declare -p x",
    "[[ abc =~ b ]] && echo ${BASH_REMATCH[0]}; echo {1..3}",
    "readonly x=1; x=2; echo not reached",
    "${bad substitution}",
    "set -o pipefail; false | true; echo $? ${PIPESTATUS[@]}",
    "shopt -s expand_aliases\nalias hi='echo alias'\nhi",
    "echo 'it'\\''s'; echo \"a'b\"; printf '%s\\n' '\\' '\\\\'",
    "sleep 0 & wait $!; echo $?; echo done",
    "exit 3 & wait $!",
    "-x",
    "ulimit -c; cat /proc/self/status | grep -E '^(Cap|NoNewPrivs|Sig)'",
    "ps() { echo; }; declare -F; unset -f ps; declare -F; compgen -v | grep -i exec",
)  # fmt: skip


@pytest.mark.parametrize("command", _SAME)
def test_a_waiting_shell_answers_as_a_fresh_one(pair: Pair, command: str) -> None:
    fresh, waiting = (sandbox.run(command, timeout_s=20) for sandbox in pair)
    assert (waiting.exit_code, waiting.output) == (fresh.exit_code, fresh.output)


# How `bash -c` and `eval` differ, as docs/reference/sandboxes.md says.
_DIFFERENT: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("echo a\nfi", lambda text: text.replace("bash: eval:", "bash: -c:")),
    ("echo $(", lambda text: text.replace("bash: eval:", "bash: -c:")),
    ("'", lambda text: text.replace("bash: eval:", "bash: -c:")),
    ("set -x; echo a; echo b", lambda text: text.replace("++ ", "+ ")),
    ("env", lambda text: text.replace("SHLVL=1", "SHLVL=0")),
    (
        "python -c 'import os; print(os.getpid() == os.getsid(0), os.getppid() == 1)'",
        lambda text: text.replace("False", "True"),
    ),
    ("sh -c 'kill -KILL $$'", lambda text: re.sub(r"^bash: line 1: +\d+ Killed .*\n", "", text)),
)


@pytest.mark.parametrize(("command", "as_fresh"), _DIFFERENT)
def test_the_documented_differences_are_all(
    pair: Pair, command: str, as_fresh: Callable[[str], str]
) -> None:
    fresh, waiting = pair
    wanted = fresh.run(command)
    answers = [waiting.run(command) for _ in range(3)]
    for answer in answers:
        assert answer.exit_code == wanted.exit_code
        assert answer.output != wanted.output
        assert as_fresh(answer.output) == wanted.output
    assert len({re.sub(r"\d+ Killed", "Killed", answer.output) for answer in answers}) == 1


def test_nothing_that_a_command_starts_meets_the_next_shell(pair: Pair) -> None:
    _, waiting = pair
    others = "for p in /proc/[0-9]*; do [ $p = /proc/$$ ] || kill -KILL ${p#/proc/}; done"
    for prefix in ("", "setsid ", "trap '' TERM HUP; "):
        result = waiting.run(f"{prefix}bash -c 'while :; do {others}; done' >&- 2>&- & echo hunted")
        assert result.num_leftovers == 1
        # This shell was started after that, and is alone.
        assert waiting.run("set -- /proc/[0-9]*; echo $#").output == "1\n"
