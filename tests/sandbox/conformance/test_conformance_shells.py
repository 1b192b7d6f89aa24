"""The shells that a spec can ask for."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from sandbox_fixtures import opened, output

from coding_gym.errors import CodingGymError
from coding_gym.sandbox.protocol import Promise, Sandbox, SandboxBackend


def test_a_waiting_shell_behaves_as_a_fresh_one(backend: SandboxBackend) -> None:
    with opened(backend, {"folder/file": ""}, shell="waiting") as sandbox:
        assert output(sandbox, "echo 1; echo 2 >&2") == "1\n2\n"
        output(sandbox, "cd /; export KEPT=1; umask 777; kept() { :; }; exec 1>&-")
        assert output(sandbox, 'echo "$KEPT"; pwd; umask') == f"\n{sandbox.workdir}\n0022\n"
        assert sandbox.run("exit 7").exit_code == 7
        assert sandbox.run("kill -TERM $$").exit_code == 128 + 15
        assert sandbox.run("if").exit_code == 2
        options: dict[str, Any] = {"cwd": "folder", "env": {"A": "b"}, "stdin": b"given"}
        assert output(sandbox, "ls; echo $A; cat", **options) == "file\nb\ngiven"
        assert sandbox.run("sleep 60", timeout_s=0.5).exit_code == 124
        assert output(sandbox, 'echo "$0 $#"') == "bash 0\n"


@pytest.mark.promise(Promise.PERSISTENT_SHELL)
def test_a_persistent_shell_keeps_its_state(backend: SandboxBackend) -> None:
    with _persistent(backend) as sandbox:
        output(
            sandbox, "cd folder; export A=1; b='two words'; c() { echo called $1; }; set -o noglob"
        )
        assert (
            output(sandbox, 'ls; echo "$A $b"; c x; echo *') == "file\n1 two words\ncalled x\n*\n"
        )
        output(sandbox, "cd ..; unset A")
        assert output(sandbox, 'echo "${A-unset}"; pwd') == f"unset\n{sandbox.workdir}\n"


@pytest.mark.promise(Promise.PERSISTENT_SHELL)
def test_a_persistent_shell_reports_each_command(
    backend: SandboxBackend,
) -> None:
    with _persistent(backend) as sandbox:
        for command, code, text in (
            ("(exit 3)", 3, ""),
            ("echo $?; false", 1, "3\n"),
            ("if", 2, None),
            ("echo $?", 0, "2\n"),
            ("no-such-command", 127, None),
            ("printf 'no newline'", 0, "no newline"),
            ("echo out; echo error >&2", 0, "out\nerror\n"),
            ("cat", 0, ""),
            ("read x; echo $?", 0, "1\n"),
            ("IFS=0123456789; (exit 57)", 57, ""),
        ):
            result = sandbox.run(command, timeout_s=20)
            assert result.exit_code == code
            if text is not None:
                assert result.output == text
        assert sandbox.run("cat", stdin=b"given").output == "given"
        assert sandbox.run("seq 100000", max_output_bytes=100).truncated


@pytest.mark.promise(Promise.PERSISTENT_SHELL)
def test_options_of_a_call_do_not_persist(backend: SandboxBackend) -> None:
    with _persistent(backend) as sandbox:
        result = sandbox.run("ls; echo $A", cwd="folder", env={"A": "call"})
        assert result.output == "file\ncall\n"
        assert output(sandbox, 'echo "${A-unset}"') == "unset\n"


@pytest.mark.promise(Promise.PERSISTENT_SHELL)
def test_background_processes_of_a_persistent_shell_stay(backend: SandboxBackend) -> None:
    with _persistent(backend) as sandbox:
        result = sandbox.run("sleep 60 >&- 2>&- & echo $!", timeout_s=20)
        assert result.num_leftovers == 0
        assert output(sandbox, f"kill -0 {int(result.output)} && echo on") == "on\n"
        assert output(sandbox, "kill %1; wait %1; echo $?") == "143\n"


@pytest.mark.promise(Promise.PERSISTENT_SHELL)
def test_a_persistent_shell_that_ended_or_hung_is_replaced(backend: SandboxBackend) -> None:
    with _persistent(backend) as sandbox:
        assert sandbox.run("exit 5").exit_code == 5
        assert output(sandbox, "echo next") == "next\n"
        assert sandbox.run("kill -KILL $$").exit_code == 128 + 9
        assert output(sandbox, "echo next") == "next\n"
        result = sandbox.run("trap '' INT TERM; sleep 60", timeout_s=0.5)
        assert (result.timed_out, result.exit_code) == (True, 124)
        assert output(sandbox, "echo next") == "next\n"


@contextmanager
def _persistent(backend: SandboxBackend) -> Iterator[Sandbox]:
    with ExitStack() as stack:
        try:
            sandbox = stack.enter_context(opened(backend, {"folder/file": ""}, shell="persistent"))
        except CodingGymError as error:
            raise AssertionError(f"no persistent shell: {error}") from error
        yield sandbox
