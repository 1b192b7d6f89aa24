"""A persistent shell: the state that one command's bash leaves for the next one."""

import re
from collections.abc import Iterator

import pytest
from sandbox_fixtures import make_sandbox

from coding_gym.sandbox import Sandbox, SandboxLimits

pytestmark = pytest.mark.slow


@pytest.fixture
def lasting() -> Iterator[Sandbox]:
    with make_sandbox(shell="persistent") as opened:
        yield opened


# Commands, and what matches the whole of their output.
_ORDINARY = (
    ("break; echo on", r"\S*bash: .*break: .*\non\n"),
    ("continue; echo on", r"\S*bash: .*continue: .*\non\n"),
    ("return 3; echo on", r"\S*bash: .*return: .*\non\n"),
    ("set -v; set -x; set +xv", r"\++ set \+xv\n"),
    ("cat; read line; echo $?", r"1\n"),
    ("echo $0 $# $-", r"bash 0 hBc\n"),
    ("cat <<'END'\n$a 'b' \\\nEND\n", r"\$a 'b' \\\n"),
    ("echo 'it'\\''s'", r"it's\n"),
    ("-x", r"\S*bash: .*-x: command not found\n"),
    ("# nothing", ""),
    ("", ""),
    ("echo a\nfi\necho b", r"a\nbash: .*line 2: syntax error .*`fi'\nbash: .*`fi'\n"),
    ("echo a &\nwait", r"a\n"),
    ("echo abc > >(tr a-c A-C)", r"ABC\n"),
    ("echo a; exec 2>&1; echo b >&2", r"a\nb\n"),
    ("shift 3; trap 'echo bye' EXIT", ""),
    ("for d in /proc/self/fd/*; do echo ${d##*/}; done", r"(\d+\n)+"),
)


@pytest.mark.parametrize(("command", "output"), _ORDINARY)
def test_commands_print_what_a_fresh_bash_prints(
    lasting: Sandbox, command: str, output: str
) -> None:
    lasting.run("mark=kept")
    result = lasting.run(command, timeout_s=20)
    assert re.fullmatch(output, result.output), result.output
    assert lasting.run("echo $mark").output == "kept\n"


@pytest.mark.parametrize(
    ("command", "then", "output"),
    [
        ("cd /tmp", "echo $PWD $OLDPWD", "/tmp /workspace\n"),
        ("umask 077", "umask", "0077\n"),
        ("declare -A map=([a b]=c); list=(1 '2 3')", 'echo ${map[a b]} "${list[1]}"', "c 2 3\n"),
        ("export TEXT=$'a\\n\\x01\\'\"$'", "env -0 | grep -zc TEXT=a", "1\n"),
        ("readonly fixed=1", "fixed=2; echo $fixed", None),
        ("alias hi='echo hello'; shopt -s expand_aliases", "hi", "hello\n"),
        ("cd() { echo mine; }; printf() { :; }; declare() { :; }", "cd; pwd", "mine\n/workspace\n"),
        ("set -o pipefail -o noclobber", "false | true; echo $?; echo x > f; echo y > f", None),
        ("set -e; false; echo no", "echo on; false; echo no", "on\n"),
        ("set -u; IFS=,; set -o posix", "list=1,2; echo $list", "1 2\n"),
        ("set -x", "true", "+ eval -- true\n++ true\n"),
        ("trap 'exit 9' EXIT; kept=1", "echo $kept $?", "1 0\n"),
        ("unset HOME; rm -r /workspace/*", "echo on", "on\n"),
        ("(exit 3)", "echo $?", "3\n"),
    ],
)
def test_state_is_that_of_the_command_before(
    lasting: Sandbox, command: str, then: str, output: str | None
) -> None:
    lasting.run(command)
    result = lasting.run(then, timeout_s=20)
    if output is None:
        assert result.exit_code == 1 or result.output.startswith("1\n")
    else:
        assert result.output == output


def test_a_killed_command_leaves_the_state_before_it(lasting: Sandbox) -> None:
    lasting.run("cd /tmp; A=1")
    for command in ("A=2; kill -KILL $$", "A=2; sleep 60", "A=2; exec true"):
        lasting.run(command, timeout_s=0.7)
        assert lasting.run("pwd; echo $A").output == "/tmp\n1\n"
    with make_sandbox(shell="persistent", limits=SandboxLimits(disk_bytes=1 << 20)) as full:
        full.run("head -c 2M /dev/zero > x")
        assert full.run("echo on; rm x").output == "on\n"


def test_every_byte_comes_through(lasting: Sandbox) -> None:
    text = "".join(chr(code) for code in range(1, 256) if chr(code) not in "\n'") + "é😀"
    result = lasting.run(f"text='{text}'; printf %s \"$text\" | md5sum")
    assert result.output == lasting.run("md5sum", stdin=text.encode()).output
    assert lasting.run('printf %s "$text" | md5sum').output == result.output
    assert lasting.run(f"# {'x' * (1 << 16)}\necho long").output == "long\n"


def test_calls_with_options_use_a_fresh_shell(lasting: Sandbox) -> None:
    lasting.run("cd /tmp; A=1; ls() { echo forged; }; PATH=/nowhere; exec >/dev/null")
    lasting.write_file("folder/file", b"")
    result = lasting.run("ls; echo ${A-unset}$B; cat", cwd="folder", env={"B": "b"}, stdin=b"in\n")
    assert result.output == "file\nunsetb\nin\n"
    assert lasting.run("echo ${A-unset}", cwd="/workspace").output == "unset\n"
    lasting.run("kept=1")
    assert lasting.run("pwd; echo $A$kept").output == "/tmp\n11\n"
