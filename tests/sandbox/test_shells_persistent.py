"""A persistent shell passes the state of one command's bash to that of the next."""

import re
from collections.abc import Iterator

import pytest
from sandbox_fixtures import make_sandbox

from coding_gym.sandbox import Sandbox, SandboxLimits

pytestmark = pytest.mark.slow


@pytest.fixture
def shell() -> Iterator[Sandbox]:
    limits = SandboxLimits(disk_bytes=1 << 20)
    with make_sandbox(shell="persistent", limits=limits) as opened:
        yield opened


# Commands, and patterns of their whole output.
_ORDINARY = (
    ("break; echo on", r"\S*bash: .*break: .*\non\n"),
    ("set -v; set -x; set +xv", r"\++ set \+xv\n"),
    ("cat; read line; echo $?", r"1\n"),
    ("echo $0 $# $-", r"bash 0 hBc\n"),
    ("cat <<'END'\n$a 'b' \\\nEND\n", r"\$a 'b' \\\n"),
    ("echo 'it'\\''s'", r"it's\n"),
    ("echo a\nfi\necho b", r"a\nbash: .*line 2: syntax error .*`fi'\nbash: .*`fi'\n"),
    ("echo a &\nwait", r"a\n"),
    ("echo a; exec 2>&1; echo b >&2", r"a\nb\n"),
    ("shift 3; trap 'echo bye $?; trap' EXIT; (exit 5)", r"bye 5\n(trap .*\n)*"),
    ("for d in /proc/self/fd/*; do echo ${d##*/}; done", r"(\d+\n)+"),
)


@pytest.mark.parametrize(("command", "output"), _ORDINARY)
def test_commands_print_what_a_fresh_bash_prints(shell: Sandbox, command: str, output: str) -> None:
    shell.run("mark=kept")
    result = shell.run(command, timeout_s=20)
    assert re.fullmatch(output, result.output), result.output
    assert shell.run("echo $mark").output == "kept\n"


@pytest.mark.parametrize(
    ("command", "next_command", "output"),
    [
        ("cd /tmp", "echo $PWD $OLDPWD", "/tmp /workspace\n"),
        ("declare -A map=([a b]=c); list=(1 '2 3')", 'echo ${map[a b]} "${list[1]}"', "c 2 3\n"),
        ("export TEXT=$'a\\n\\x01\\'\"$'", "env -0 | grep -zc TEXT=a", "1\n"),
        ("readonly fixed=1", "fixed=2; echo $fixed", None),
        ("alias hi='echo hello'; shopt -s expand_aliases", "hi", "hello\n"),
        (
            "shopt -s expand_aliases; alias echo='echo a'\nf() { echo b; }",
            "f; echo c",
            "a b\na c\n",
        ),
        ("cd() { echo mine; }; printf() { :; }; declare() { :; }", "cd; pwd", "mine\n/workspace\n"),
        ("set -o pipefail -o noclobber", "false | true; echo $?; echo x > f; echo y > f", None),
        ("set -e; false; echo no", "echo on; false; echo no", "on\n"),
        ("set -u; IFS=,; set -o posix", "list=1,2; echo $list", "1 2\n"),
        ("trap 'exit 9' EXIT; kept=1", "echo $kept $?", "1 0\n"),
        ("eval() { echo no; }; .() { eval; }; test() { eval; }", "unset -f eval; echo on", "on\n"),
        ("set -xv; false", "echo $? $#; exit 3", "1 0\n"),
        ("set -e; false", "echo $-", "ehBc\n"),
        ("set -x; exit 0", "echo on", "on\n"),
        ("mkfifo state; ln -sf $PWD/state ~/.bash_state", "echo on", "on\n"),
        ("cat /dev/zero > x", "echo on; rm x", "on\n"),
    ],
)
def test_a_command_starts_with_the_state_of_the_previous_one(
    shell: Sandbox, command: str, next_command: str, output: str | None
) -> None:
    shell.run(command, timeout_s=20)
    result = shell.run(next_command, timeout_s=20)
    if output is None:
        assert result.exit_code == 1 or result.output.startswith("1\n")
    else:
        assert result.output == output


def test_a_trap_of_the_command_replaces_the_save_of_exit(shell: Sandbox) -> None:
    shell.run("kept=1")
    assert shell.run("trap 'echo bye' EXIT; kept=2; exit 3").output == "bye\n"
    assert shell.run("echo $kept $?").output == "1 0\n"


def test_calls_with_options_use_a_fresh_shell(shell: Sandbox) -> None:
    shell.run("cd /tmp; A=1; ls() { echo forged; }; PATH=/nowhere; exec >/dev/null")
    shell.write_file("folder/file", b"")
    result = shell.run("ls; echo ${A-unset}$B; cat", cwd="folder", env={"B": "b"}, stdin=b"in\n")
    assert result.output == "file\nunsetb\nin\n"
    assert shell.run("echo ${A-unset}", cwd="/workspace").output == "unset\n"
    shell.run("kept=1")
    assert shell.run("pwd; echo $A$kept").output == "/tmp\n11\n"
