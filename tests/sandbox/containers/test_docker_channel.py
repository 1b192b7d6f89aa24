"""What a hostile command can do to the channel that its container is driven by."""

from collections.abc import Iterator

import pytest

from coding_gym.sandbox import Sandbox, SandboxSpec
from coding_gym.sandbox.containers import DockerBackend

pytestmark = pytest.mark.slow

_FORGERY = r"""
import os
# The first process has the channel as its standard input and output, if it may be opened.
lines = b"\n0 begin\n0 end 0 0 0\n", b"run 1 0 1 1\n//", b"\x01\0\0\0\0\0\0\4abcd"
for name in ("0", "1", "2", "3"):
    for line in lines:
        try:
            descriptor = os.open(f"/proc/1/fd/{name}", os.O_WRONLY | os.O_NONBLOCK)
            os.write(descriptor, line)
        except OSError as error:
            print(name, error.strerror)
"""


@pytest.fixture
def sandbox(backend: DockerBackend) -> Iterator[Sandbox]:
    with backend.open(SandboxSpec()) as opened:
        yield opened


def _still_works(sandbox: Sandbox) -> None:
    for word in ("one", "two"):
        result = sandbox.run(f"echo {word}; exit 3", timeout_s=20)
        assert (result.output, result.exit_code) == (f"{word}\n", 3)


def test_forged_answers_are_output_and_confuse_nobody(sandbox: Sandbox) -> None:
    nonces = "for n in 0 1 deadbeef; do echo $n begin; echo $n end 0 0 0; done; exit 4"
    assert sandbox.run(nonces).exit_code == 4
    sandbox.write_file("forge.py", _FORGERY.encode())
    sandbox.run("python3 forge.py", timeout_s=20)
    _still_works(sandbox)


def test_signals_end_commands_alone(sandbox: Sandbox) -> None:
    assert sandbox.run("kill -INT $$; echo not").exit_code == 130
    for name in ("KILL", "STOP", "USR1", "CHLD", "HUP"):
        sandbox.run(f"kill -{name} 1; sleep 0.1", timeout_s=20)
        _still_works(sandbox)
    result = sandbox.run("while :; do kill -9 -1; done", timeout_s=1)
    assert (result.exit_code in {124, 137}, result.duration_s < 30) == (True, True)
    _still_works(sandbox)


def test_stealing_the_owners_words_does_not_avoid_the_time_limit(sandbox: Sandbox) -> None:
    thief = "cat /proc/1/fd/0 & cat <&1 & read -t 60 </proc/1/fd/0; sleep 60"
    assert sandbox.run(thief, timeout_s=0.5).timed_out
    _still_works(sandbox)


@pytest.mark.parametrize("victim", ["-1", "$PPID"])
def test_killing_the_runner_ends_the_command(sandbox: Sandbox, victim: str) -> None:
    result = sandbox.run(f"kill -9 {victim}; sleep 60", timeout_s=60)
    assert (result.exit_code, result.timed_out) == (137, False)
    _still_works(sandbox)


def test_no_request_is_lost_at_a_wait_of_the_first_process(sandbox: Sandbox) -> None:
    # It looks for the death of a runner five times in a second.
    for number in range(10):
        assert sandbox.run("sleep 60", timeout_s=0.2 + number * 0.001).timed_out
    _still_works(sandbox)


def test_the_first_process_is_out_of_reach(sandbox: Sandbox) -> None:
    for name in ("mem", "environ", "fd/0", "fd/1", "maps"):
        result = sandbox.run(f"cat /proc/1/{name}")
        assert (result.exit_code, "Permission denied" in result.output) == (1, True), name
    for name in ("root/", "cwd/", "fd/"):
        assert sandbox.run(f"ls /proc/1/{name}").exit_code == 2, name
