"""Commands: text, input, folder, variables, shell, output and exit code."""

import os
from typing import Any

import pytest
from sandbox_fixtures import opened, output

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox import default_interpreter
from coding_gym.sandbox.protocol import Promise, Sandbox, SandboxBackend
from coding_gym.sandbox.spec import WORKDIR, Shell


def test_standard_input_is_passed_unchanged(sandbox: Sandbox) -> None:
    data = bytes(range(256)) * 1000
    assert sandbox.run("wc -c", stdin=data).output.strip() == str(len(data))
    assert sandbox.run("echo done", stdin=data).output == "done\n"
    assert sandbox.run("read line").exit_code == 1
    assert (
        sandbox.run("read line; cat <&0; echo x >> /dev/stdin", stdin=b"a\nb\n").output[:2] == "b\n"
    )


def test_python_source_runs_isolated(backend: SandboxBackend) -> None:
    source = "import os, sys; print(sys.stdin.read(), os.getcwd(), os.environ['A'], sys.argv)\n"
    source += "print('it\\'s', 'imported' if 'preloaded_check' in sys.modules else 'plain')\n"
    source += "try:\n    import startup\nexcept ImportError:\n    sys.exit(3)"
    files = dict.fromkeys(("startup.py", "sitecustomize.py"), "raise SystemExit(9)")
    with opened(backend, files, python=True, env={"PYTHONPATH": ".", "A": "one"}) as sandbox:
        result = sandbox.run_python(source, stdin=b"text")
        assert result.output == f"text {sandbox.workdir} one ['-c']\nit's plain\n"
        assert result.exit_code == 3
        assert sandbox.run_python("raise KeyError").exit_code == 1
        assert sandbox.run_python("while True: pass", timeout_s=0.5).timed_out
        with pytest.raises(InvalidArgumentError, match="source"):
            sandbox.run_python("a\0")
        with pytest.raises(InvalidArgumentError):
            sandbox.run_python("#" * (1 << 17))


def test_commands_inherit_three_descriptors_and_no_terminal(backend: SandboxBackend) -> None:
    terminals = "for d in 0 1 2; do [ -t $d ] && echo $d; done; (: < /dev/tty) 2>&- && echo tty"
    listing = "for n in {3..63}; do (exec <&$n) 2>/dev/null && echo $n; done"
    for shell in ("fresh", "persistent"):
        with opened(backend, shell=shell) as sandbox:
            for _ in range(2):
                assert output(sandbox, f"{listing}; sleep 60 &") == ""
            assert sandbox.run(terminals).output == ""


def test_commands_run_in_the_folder_they_name(backend: SandboxBackend) -> None:
    with opened(backend, {"folder/file": ""}) as sandbox:
        assert sandbox.run("ls", cwd="folder").output == "file\n"
        absolute = f"{sandbox.workdir}/folder"
        assert sandbox.run("ls", cwd=absolute).output == "file\n"
        assert output(sandbox, "pwd") == f"{sandbox.workdir}\n"
        output(sandbox, "ln -s folder link")
        assert sandbox.run("ls", cwd="link").output == "file\n"


def test_a_folder_that_cannot_be_entered_is_a_result(backend: SandboxBackend) -> None:
    with opened(backend, {"file": ""}) as sandbox:
        for name in ("nowhere", "file"):
            result = sandbox.run("ls", cwd=name)
            assert (result.exit_code, name in result.output) == (1, True)
        assert sandbox.run("ls", cwd="\udcff").exit_code == 1
        result = sandbox.run("ls", cwd="x" * 9999, max_output_bytes=10)
        assert (result.exit_code, result.truncated) == (1, True)
        output(sandbox, "mkdir gone")
        output(sandbox, 'rm -r "$PWD"', cwd="gone")
        assert output(sandbox, "echo next") == "next\n"


def test_a_fresh_shell_keeps_no_state(sandbox: Sandbox) -> None:
    output(sandbox, "cd /; export KEPT=1; umask 777; kept() { :; }; ulimit -n 20")
    assert output(sandbox, 'echo "$KEPT"; pwd') == f"\n{sandbox.workdir}\n"
    assert output(sandbox, "umask") == "0022\n"
    assert sandbox.run("kept").exit_code == 127
    assert output(sandbox, "ulimit -n") != "20\n"


def test_variables_come_from_spec_and_call(backend: SandboxBackend) -> None:
    paths = f"see:{WORKDIR}:/tmp/x"  # a text, which no backend changes
    variables = {"A": "spec", "B": "spec", "PATHS": paths}
    with opened(backend, env=variables, path=("/x/bin",)) as sandbox:
        result = sandbox.run('echo "$A $B"; echo "${PATH%%:*}"', env={"B": "call"})
        assert result.output == "spec call\n/x/bin\n"
        assert output(sandbox, 'echo "$B $PATHS"') == f"spec {paths}\n"
        assert sandbox.run('echo "$B"', env={"B": paths}).output == f"{paths}\n"
        value = "a\n'b'\n\"c\" $d `e` \\ é☂🐛  "
        assert sandbox.run('printf %s "$A"', env={"A": value}).output == value


def test_environment_is_fixed_without_host_variables(backend: SandboxBackend) -> None:
    name = "CODING_GYM_CHECK_SECRET"
    os.environ[name] = "x"
    try:
        with opened(backend) as sandbox:
            names = output(sandbox, "env -0 | tr '\\n\\0' ' \\n' | cut -d= -f1").split()
            assert name not in names
            fixed = output(sandbox, 'echo "$TZ $PYTHONHASHSEED $TERM $PAGER $COLUMNS"')
            assert fixed == "UTC 0 dumb cat 80\n"
    finally:
        del os.environ[name]


@pytest.mark.parametrize("shell", ["fresh", "persistent"])
def test_a_command_may_be_longer_than_one_argument(backend: SandboxBackend, shell: Shell) -> None:
    text = "x" * (120 << 10)
    with opened(backend, shell=shell) as sandbox:
        script = f"text={text}\ntext+={text}é\ncat; echo ${{#text}} ${{command-unset}}; exit 3"
        result = sandbox.run(script)
        assert (result.output, result.exit_code) == (f"{len(text) * 2 + 1} unset\n", 3)
        refused = sandbox.run(script, stdin=b"input")
        assert (refused.exit_code, "too long" in refused.output) == (126, True)


def test_arguments_out_of_range_are_refused(sandbox: Sandbox) -> None:
    refused: list[tuple[str, dict[str, Any]]] = [
        ("echo \0", {}),
        ("true", {"timeout_s": 0}),
        ("true", {"timeout_s": float("inf")}),
        ("true", {"max_output_bytes": 0}),
        ("true", {"env": {"A=B": ""}}),
        ("true", {"env": {"A": "x" * (17 << 20)}}),
        ("true", {"cwd": "x" * (17 << 20)}),
        ("x" * (2 << 20), {}),
    ]
    for command, options in refused:
        with pytest.raises(InvalidArgumentError):
            sandbox.run(command, **options)
    with pytest.raises(InvalidArgumentError, match="TOKEN") as caught:
        sandbox.run("true", env={"TOKEN": "secret\0"})
    assert "secret" not in str(caught.value)
    assert output(sandbox, "echo next") == "next\n"


@pytest.mark.promise(Promise.OWN_PYTHON, strict=False)
def test_python_names_the_interpreter_of_the_spec(backend: SandboxBackend) -> None:
    with opened(backend, python=True) as sandbox:
        for name in ("python", "python3"):
            script = "import platform; print(platform.python_version())"
            assert output(sandbox, f"{name} -c '{script}'").strip() == default_interpreter().version
        assert sandbox.run("git --version && python -c ''").exit_code == 0


def test_commands_own_the_files_of_layers(backend: SandboxBackend) -> None:
    with opened(backend, {"folder/file": ""}) as sandbox:
        assert output(sandbox, "test -O . && test -O folder/file && echo own") == "own\n"
        output(sandbox, "touch folder/new && test -O folder/new && touch ~/new && rm ~/new")


FILES = {"folder/file": ""}


@pytest.mark.parametrize(
    ("command", "exit_code"),
    [("exit 5", 5), ("kill -KILL $$", 128 + 9), ("exec true", 0), ("sleep 60", 124)],
)
def test_a_persistent_shell_continues_after_any_exit(
    backend: SandboxBackend, command: str, exit_code: int
) -> None:
    with opened(backend, FILES, shell="persistent") as sandbox:
        output(sandbox, "cd folder; kept=1; sleep 60 &")
        result = sandbox.run(f"trap '' INT TERM; kept=2; {command}", timeout_s=1)
        assert result.exit_code == exit_code
        kept = 2 if command == "exit 5" else 1  # only bash itself can save its state
        assert output(sandbox, "ls; echo $kept") == f"file\n{kept}\n"


def test_exit_codes_and_signals_are_returned(backend: SandboxBackend) -> None:
    with opened(backend, {"file": ""}) as sandbox:
        for command, exit_code in {
            "exit 7": 7,
            "exit 255": 255,
            "no-such-command": 127,
            "-x": 127,
            "set -e\n(exit 4)\necho no": 4,
            "./file": 126,
            "if": 2,
            "": 0,
            "true | false | (exit 5)": 5,
            "kill -TERM $$": 128 + 15,
            "kill -KILL $$": 128 + 9,
            "kill -64 $$": 128 + 64,
            "bash -c 'kill -SEGV $$'; exit $?": 128 + 11,
        }.items():
            result = sandbox.run(command)
            assert (result.exit_code, result.timed_out) == (exit_code, False), command


def test_a_broken_pipe_ends_the_writer_quietly(sandbox: Sandbox) -> None:
    result = sandbox.run("yes | head -1; echo ${PIPESTATUS[0]}", timeout_s=20)
    assert result.output == "y\n141\n"


def test_output_is_returned_unchanged(sandbox: Sandbox) -> None:
    text = "é ☂ 🐛 \u202e עברית"
    for command, expected in (
        ("echo 1; echo 2 >&2; echo 3", "1\n2\n3\n"),
        ("printf 'a\\nb'", "a\nb"),
        ("printf '\\n\\n'", "\n\n"),
        (r"printf 'a\r\nb\0c\033[31md\177\b'", "a\r\nb\0c\x1b[31md\x7f\b"),
        (f"echo '{text}'", f"{text}\n"),
        ("x='é☂🐛'; echo ${#x}", "3\n"),
        (r"printf 'a\xffb\xc3\xa9'", "a\ufffdbé"),
        (r"printf '\xe2\x98'", "\ufffd"),
        ("printf '\ud800' | wc -c | tr -d ' '", "3\n"),
        ("echo abc > >(tr a-c A-C)", "ABC\n"),
    ):
        assert output(sandbox, command) == expected


def test_long_output_keeps_its_head_and_its_tail(sandbox: Sandbox) -> None:
    result = sandbox.run("echo first; seq 100000; echo last", max_output_bytes=1000)
    lines = result.output.splitlines()
    assert result.truncated
    assert (lines[0], lines[-1]) == ("first", "last")
    assert "bytes omitted" in result.output
    assert len(result.output) < 1100
    cut = sandbox.run("printf 'é%.0s' {1..100}", max_output_bytes=10).output
    assert cut == "éé\ufffd\n[... 190 bytes omitted ...]\n\ufffdéé"
    for text, is_cut in (("0123456789", False), ("0123456789x", True)):
        assert sandbox.run(f"printf {text}", max_output_bytes=10).truncated is is_cut


def test_a_flood_of_output_is_bounded_by_default(sandbox: Sandbox) -> None:
    result = sandbox.run("head -c 32M /dev/zero; printf end", timeout_s=60)
    assert (result.exit_code, result.timed_out) == (0, False)
    assert result.truncated
    assert 1 << 19 < len(result.output) < 1 << 21
    assert result.output[-3:] == "end"


def test_a_command_that_redirects_its_output_is_awaited(sandbox: Sandbox) -> None:
    result = sandbox.run("echo seen; exec > file 2>&1; echo in the file; exit 3")
    assert (result.exit_code, result.output) == (3, "seen\n")
    assert sandbox.read_file("file") == b"in the file\n"
