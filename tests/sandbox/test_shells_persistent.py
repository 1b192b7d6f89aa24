"""A shell that lasts: its state, its background processes, its ends, its isolation from ours."""

import re
from collections.abc import Iterator

import pytest
from sandbox_fixtures import make_sandbox

from coding_gym.sandbox import Sandbox, SandboxLimits, default_interpreter

pytestmark = pytest.mark.slow

_GONE = "its folder, variables, functions and background processes are gone]\n"


@pytest.fixture
def lasting() -> Iterator[Sandbox]:
    with make_sandbox(python=default_interpreter(), shell="persistent") as opened:
        yield opened


# Commands, and what matches the whole of their output.
_ORDINARY = (
    ("break; echo on", r"\S*bash: .*break: .*\non\n"),
    ("continue; echo on", r"\S*bash: .*continue: .*\non\n"),
    ("return 3; echo on", r"\S*bash: .*return: .*\non\n"),
    ("set -v; set -x; set +xv", r"\++ set \+xv\n"),
    ("cat; read line; echo $?", r"1\n"),
    ("echo $0 $# $-", r"\S*bash 0 hBs\n"),
    ("cat <<'END'\n$a 'b' \\\nEND\n", r"\$a 'b' \\\n"),
    ("echo 'it'\\''s'", r"it's\n"),
    ("-x", r"\S*bash: .*-x: command not found\n"),
    ("# nothing", ""),
    ("", ""),
    ("echo a\nfi\necho b", r"a\n\S*bash: .*syntax error .*`fi'\n\S*bash: .*`fi'\n"),
    ("echo a &\nwait", r"a\n"),
    ("echo abc > >(tr a-c A-C)", r"ABC\n"),
    ("echo a; exec 2>&1; echo b >&2", r"a\nb\n"),
    ("shift 3; trap 'echo bye' EXIT", ""),
    ("for d in /proc/self/fd/*; do echo ${d##*/}; done", r"(\d+\n)+"),
)


@pytest.mark.parametrize(("command", "output"), _ORDINARY)
def test_nothing_ordinary_ends_the_shell(lasting: Sandbox, command: str, output: str) -> None:
    lasting.run("mark=kept")
    result = lasting.run(command, timeout_s=20)
    assert re.fullmatch(output, result.output), result.output
    assert not result.shell_lost
    assert lasting.run("echo $mark").output == "kept\n"


def test_programs_inherit_no_descriptor_of_the_shells(lasting: Sandbox) -> None:
    listed = lasting.run("ls /proc/self/fd").output.split()
    assert listed == ["0", "1", "2", "3"]  # the last is its own, for reading the folder
    assert lasting.run("readlink /proc/self/fd/0").output == "/dev/null\n"


def test_every_byte_and_any_length_comes_through(lasting: Sandbox) -> None:
    text = "".join(chr(code) for code in range(1, 256) if chr(code) not in "\n'") + "é😀"
    result = lasting.run(f"text='{text}'; printf %s \"$text\" | md5sum")
    assert result.output == lasting.run("md5sum", stdin=text.encode()).output
    assert lasting.run(f"# {'x' * (1 << 19)}\necho long").output == "long\n"


def test_background_output_comes_with_the_next_command(lasting: Sandbox) -> None:
    result = lasting.run("mkfifo go; { read line < go; echo late; sleep 60; } & pid=$!; echo now")
    assert (result.output, result.num_leftovers, result.exit_code) == ("now\n", 0, 0)
    assert lasting.run("kill -0 $pid && echo on").output == "on\n"
    assert lasting.run("echo > go; sleep 0.2; echo more").output == "late\nmore\n"
    lasting.run("{ sleep 0.1; echo between; } &")
    assert lasting.run("wait $!; echo after").output == "between\nafter\n"
    assert lasting.run("kill $pid; wait $pid; echo $?").output.endswith("143\n")


def test_a_shell_that_locked_its_workspace_can_open_it_again(lasting: Sandbox) -> None:
    assert lasting.run("chmod 000 .").ok
    assert lasting.run("chmod 755 /workspace; pwd").output == "/workspace\n"
    lasting.run("chmod 000 .; exit")
    assert "Permission denied" in lasting.run("echo ran").output


def test_a_background_flood_neither_delays_nor_hides_a_reply(lasting: Sandbox) -> None:
    assert lasting.run("yes & pid=$!", timeout_s=20).exit_code == 0
    result = lasting.run("sleep 0.3; (exit 5)", timeout_s=20, max_output_bytes=999)
    assert (result.exit_code, result.truncated, result.timed_out) == (5, True, False)
    lasting.run("kill $pid; wait", timeout_s=20)
    assert lasting.run("echo quiet").output.endswith("quiet\n")


@pytest.mark.parametrize(
    ("command", "exit_code", "why"),
    [
        ("echo out; exit 7", 7, "exited"),
        ("printf out; exit", 0, "exited"),
        ("set -e; echo out; (exit 3); echo no", 3, "exited"),
        ("echo out; exec true", 0, "exited"),
        ("echo out; kill -KILL $$", 137, "exited"),
        ("echo out; sleep 60", 124, "was killed at the time limit"),
        ("echo out; trap '' TERM; (setsid sleep 60 &); kill -STOP $$", 124, "was killed at"),
        ("set -n", 124, "was killed at the time limit"),
    ],
)
def test_a_lost_shell_is_replaced(lasting: Sandbox, command: str, exit_code: int, why: str) -> None:
    lasting.run("A=1; cd /tmp; sleep 300 &")
    result = lasting.run(command, timeout_s=0.7)
    assert (result.exit_code, result.timed_out) == (exit_code, exit_code == 124)
    assert result.shell_lost
    assert f"[the shell {why}" in result.output.splitlines()[-1]
    assert result.output.endswith(_GONE)
    assert result.output.startswith("out\n" if "out" in command else "[the shell")
    after = lasting.run('echo "${A-unset}"; pwd; cat /proc/[0-9]*/comm')
    assert (after.output, after.shell_lost) == ("unset\n/workspace\nbash\n", False)


def test_a_shell_that_ends_between_commands_is_reported(lasting: Sandbox) -> None:
    wait = "until [ -e go ]; do sleep 0.01; done"
    started = lasting.run(f"A=1; sh -c '{wait}; kill -KILL $PPID; sleep 60' & echo $!")
    lasting.write_file("go", b"")
    # What ran in the background ends with the shell.
    while _is_there(lasting, f"/proc/{int(started.output)}/stat"):
        pass
    result = lasting.run('echo "${A-unset}"')
    assert result.output == f"[the last shell ended; {_GONE}unset\n"
    assert lasting.run("echo on").output == "on\n"


def test_calls_with_options_use_a_fresh_shell(lasting: Sandbox) -> None:
    lasting.run("cd /tmp; A=1; ls() { echo forged; }; PATH=/nowhere; exec >/dev/null")
    lasting.write_file("folder/file", b"")
    result = lasting.run("ls; echo ${A-unset}$B; cat", cwd="folder", env={"B": "b"}, stdin=b"in\n")
    assert result.output == "file\nunsetb\nin\n"
    assert lasting.run("echo ${A-unset}", cwd="/workspace").output == "unset\n"
    lasting.run("exec 1>&2; kept=1")
    assert lasting.run("pwd; echo $A$kept").output == "/tmp\n11\n"


def test_background_processes_pause_during_calls_with_options(lasting: Sandbox) -> None:
    lasting.run("while :; do echo x >> grows; kill -KILL -1; done 2>&- & echo $!")
    script = "a=$(stat -c %s grows); sleep 0.2; [ $a = $(stat -c %s grows) ] && echo still"
    assert lasting.run(script, cwd="/workspace").output == "still\n"
    result = lasting.run("sleep 60 & setsid sleep 60 >&- 2>&- & echo left", cwd="/workspace")
    assert (result.output, result.num_leftovers) == ("left\n", 2)
    late = lasting.run("sleep 60", cwd="/workspace", timeout_s=0.2)
    assert (late.exit_code, late.shell_lost) == (124, False)


def test_a_background_fork_bomb_lets_calls_with_options_run() -> None:
    limits = SandboxLimits(num_processes=40)
    with make_sandbox(shell="persistent", limits=limits) as sandbox:
        sandbox.run(":() { : | : & }; : 2>/dev/null", timeout_s=5)
        for _ in range(3):
            assert sandbox.run("echo ran", env={"A": "b"}, timeout_s=20).output == "ran\n"
        sandbox.run("sleep 0.1", timeout_s=1)
        assert sandbox.run("echo ran", env={"A": "b"}, timeout_s=20).output == "ran\n"


@pytest.mark.parametrize("num_left", [0, 1, 2, 3, 10])
def test_background_processes_end_where_processes_are_short(num_left: int) -> None:
    limits = SandboxLimits(num_processes=40)
    with make_sandbox(shell="persistent", limits=limits) as sandbox:
        # The limit counts the first process and the shell too.
        sandbox.run(f"for i in {{1..{38 - num_left}}}; do sleep 300 & done", timeout_s=20)
        ours = sandbox.run("seq 9 | sort | tac | cat | head -n 2 | tail -n 1", cwd="/tmp")
        assert (ours.exit_code, ours.output) == (0, "8\n")
        expected = f"[the last shell left no room for another process; {_GONE}on\n"
        assert sandbox.run("echo on").output == expected


def test_a_forged_answer_does_not_get_into_the_next_reply(lasting: Sandbox) -> None:
    # Takes the mark of the first command from the shell's memory, ends it early, goes on.
    forge = (
        "import os, re, sys\n"
        "shell = os.getppid()\n"
        "for line in open(f'/proc/{shell}/maps'):\n"
        "    if '[heap]' in line:\n"
        "        low, high = (int(n, 16) for n in line.split()[0].split('-'))\n"
        "        memory = open(f'/proc/{shell}/mem', 'rb')\n"
        "        memory.seek(low)\n"
        '        found = re.search(rb"\'([0-9a-f]{16})x%s", memory.read(high - low))\n'
        "for name in os.listdir(f'/proc/{shell}/fd'):\n"
        "    try: pipe = os.open(f'/proc/{shell}/fd/{name}', os.O_WRONLY)\n"
        "    except OSError: continue\n"
        "    if int(name) > 2: os.write(pipe, found[1] + b'x77\\n')\n"
    )
    lasting.write_file("/tmp/forge.py", forge.encode())
    result = lasting.run("python /tmp/forge.py; sleep 0.3; echo late", timeout_s=20)
    assert result.exit_code in {77, 0}
    answers = [lasting.run(f"echo {n}; (exit {n})", timeout_s=20) for n in range(1, 5)]
    assert [answer.exit_code for answer in answers] == [1, 2, 3, 4]
    assert [answer.output.splitlines()[-1] for answer in answers] == ["1", "2", "3", "4"]


def test_memory_that_the_background_takes_ends_the_shell() -> None:
    with make_sandbox(
        python=default_interpreter(),
        shell="persistent",
        limits=SandboxLimits(memory_bytes=128 << 20),
    ) as sandbox:
        take = "x = b'x' * (300 << 20)"
        result = sandbox.run(f'python -c "{take}; import time; time.sleep(60)"', timeout_s=30)
        assert (result.exit_code, result.out_of_memory, result.shell_lost) == (137, True, True)
        assert "too much memory" in result.output
        sandbox.run(f'python -c "import time; time.sleep(0.2); {take}; time.sleep(60)" & A=1')
        # Files can be read meanwhile; the memory watch goes on.
        pid = sandbox.run("echo $!").output.strip()
        while sandbox.read_file("/proc/loadavg") and _is_there(sandbox, f"/proc/{pid}/stat"):
            pass
        result = sandbox.run("echo ${A-unset}")
        assert re.fullmatch(r"\[the last shell was killed: .*\]\nunset\n", result.output)


def _is_there(sandbox: Sandbox, path: str) -> bool:
    try:
        return bool(sandbox.read_file(path))
    except OSError:
        return False
