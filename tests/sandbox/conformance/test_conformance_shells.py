"""The shells that a spec can ask for."""

import pytest
from sandbox_fixtures import opened, output

from coding_gym.sandbox.protocol import SandboxBackend

FILES = {"folder/file": ""}


def test_a_persistent_shell_keeps_its_state(backend: SandboxBackend) -> None:
    with opened(backend, FILES, shell="persistent") as sandbox:
        output(
            sandbox, "cd folder; export A=1; b='two words'; c() { echo called $1; }; set -o noglob"
        )
        assert (
            output(sandbox, 'ls; echo "$A $b"; c x; echo *') == "file\n1 two words\ncalled x\n*\n"
        )
        output(sandbox, "cd ..; unset A")
        assert output(sandbox, 'echo "${A-unset}"; pwd') == f"unset\n{sandbox.workdir}\n"


@pytest.mark.parametrize(
    ("command", "exit_code"),
    [("exit 5", 5), ("kill -KILL $$", 128 + 9), ("exec true", 0), ("sleep 60", 124)],
)
def test_a_persistent_shell_goes_on_after_any_end(
    backend: SandboxBackend, command: str, exit_code: int
) -> None:
    with opened(backend, FILES, shell="persistent") as sandbox:
        output(sandbox, "cd folder; kept=1; sleep 60 &")
        assert sandbox.run(f"trap '' INT TERM; {command}", timeout_s=2).exit_code == exit_code
        assert output(sandbox, "ls; echo $kept") == "file\n1\n"
