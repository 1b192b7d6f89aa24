"""Ends of commands and sandboxes: time limits, leftover processes, closing."""

import os
import resource
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import pytest
from sandbox_fixtures import AlivePipe, alive_pipe, first_pid, opened, output

from coding_gym.errors import InvalidArgumentError, SandboxError
from coding_gym.sandbox.docker_backend import DockerBackend
from coding_gym.sandbox.docker_engine import connect
from coding_gym.sandbox.inside import landlock_rules
from coding_gym.sandbox.protocol import Sandbox, SandboxBackend
from coding_gym.sandbox.spec import SandboxSpec

_SOON_S = 10.0
# It ends after a minute if no signal kills it.
_HOLD_PIPE = "exec 3> {pipe}; echo >&3; : > alive; sleep 60"
_UNTIL_STARTED = "until [ -e alive ]; do sleep 0.01; done"


@pytest.mark.parametrize("rest", ["trap '' TERM; sleep 60 & sleep 60", "exec >&- 2>&-; sleep 60"])
def test_a_timeout_ends_the_command_not_the_sandbox(sandbox: Sandbox, rest: str) -> None:
    result = sandbox.run(f"echo begun; {rest}", timeout_s=1)
    assert (result.timed_out, result.exit_code, result.output) == (True, 124, "begun\n")
    assert 1 <= result.duration_s < 30
    assert sandbox.run("yes", timeout_s=0.5, max_output_bytes=1000).timed_out
    assert output(sandbox, "echo next") == "next\n"


_DEAF = f"(trap '' TERM HUP INT QUIT TSTP; {_HOLD_PIPE}) & {_UNTIL_STARTED}"
# Each process forks and ends, so none of a list of processes still runs.
_HOP = "hop() {{ (($1 == 9999)) || hop $(($1 + 1)) & }}"
_HOPPER = f"(exec 3> {{pipe}}; echo >&3; exec >&- 2>&-; {_HOP}; hop 0)"
_OTHER_SESSION = f"(setsid bash -c '{_HOLD_PIPE}' >&- 2>&- &); {_UNTIL_STARTED}"


@pytest.mark.parametrize(
    ("command", "num_leftovers"),
    [
        (f"{_DEAF}; sleep 60", 0),
        (f"set -m; ({_HOLD_PIPE}) & {_UNTIL_STARTED}; kill -STOP %1 $$; sleep 60", 0),
        (f"{_OTHER_SESSION}; sleep 60", 0),
        (f"{_OTHER_SESSION}; echo done", 1),
        (f"(exec >&- 2>&-; {_HOLD_PIPE}) & {_UNTIL_STARTED}; echo done", 1),
        (f"{_HOPPER}; echo done", 1),
    ],
    ids=["deaf", "stopped", "in another session", "daemon", "in the background", "hopping"],
)
def test_all_processes_end_with_their_command(
    backend: SandboxBackend, command: str, num_leftovers: int
) -> None:
    with _running(backend) as (sandbox, alive, pipe):
        result = sandbox.run(command.format(pipe=pipe), timeout_s=1)
        alive.wait_opened()
        assert alive.is_closed(_SOON_S)
        assert result.timed_out is (num_leftovers == 0)
        assert result.num_leftovers >= num_leftovers
        assert sandbox.run("true | true").num_leftovers == 0


@pytest.mark.parametrize(
    "command",
    [
        *("kill -9 -1", "kill -9 0", "kill -9 $PPID"),
        "for number in {1..64}; do kill -$number 1; done; sleep 0.1",
    ],
)
def test_a_killing_command_harms_only_itself(backend: SandboxBackend, command: str) -> None:
    if backend.name == "landlock" and landlock_rules.abi() < 6:
        pytest.skip("its commands can signal the first process")
    with opened(backend) as sandbox:
        assert not sandbox.run(command, timeout_s=20).timed_out
        assert output(sandbox, "echo one") == "one\n"
        result = sandbox.run(f"while :; do {command}; done", timeout_s=1)
        assert (result.exit_code in {124, 137}, result.duration_s < 30) == (True, True)
        assert output(sandbox, "echo two") == "two\n"


def test_a_background_process_does_not_delay_the_result(sandbox: Sandbox) -> None:
    result = sandbox.run("echo seen; sleep 60 &", timeout_s=30)
    assert (result.timed_out, result.output) == (False, "seen\n")
    assert result.num_leftovers == 1


def test_a_closed_sandbox_raises_and_can_be_closed_again(sandbox: Sandbox) -> None:
    sandbox.close()
    sandbox.close()
    for call in (
        lambda: sandbox.run("true"),
        lambda: sandbox.read_file("file"),
        lambda: sandbox.write_file("file", b""),
    ):
        with pytest.raises(SandboxError):
            call()


def test_calls_without_free_descriptors_harm_no_sandbox(backend: SandboxBackend) -> None:
    with opened(backend) as first:
        with _no_free_descriptor() as descriptors:
            assert not backend.probe().available
            for call in (lambda: backend.open(SandboxSpec()), first.snapshot):
                with pytest.raises((SandboxError, InvalidArgumentError)):  # docker has no snapshots
                    call()
            for _ in range(6):  # with one more at each attempt
                os.close(descriptors.pop())
                with suppress(SandboxError):
                    backend.open(SandboxSpec()).close()
        assert output(first, "echo alive") == "alive\n"
    backend.open(SandboxSpec()).close()


@contextmanager
def _no_free_descriptor() -> Iterator[list[int]]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    descriptors: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 1024), hard))
    try:
        with suppress(OSError):
            while True:
                descriptors.append(os.dup(0))
        yield descriptors
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_closing_ends_a_running_command(backend: SandboxBackend) -> None:
    with _running(backend) as (sandbox, alive, pipe), ThreadPoolExecutor(1) as pool:
        running = pool.submit(sandbox.run, _HOLD_PIPE.format(pipe=pipe))
        alive.wait_opened()
        sandbox.close()
        with pytest.raises(SandboxError):
            running.result(_SOON_S)
        assert alive.is_closed(_SOON_S)


def test_a_dead_sandbox_raises_one_error_at_every_call(backend: SandboxBackend) -> None:
    with opened(backend) as other, _running(backend) as (sandbox, alive, pipe):
        kill = _killer(backend, sandbox)
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(sandbox.run, _HOLD_PIPE.format(pipe=pipe))
            alive.wait_opened()
            kill()
            with pytest.raises(SandboxError) as first:
                running.result(_SOON_S)
        assert alive.is_closed(_SOON_S)
        for call in (
            *(lambda: sandbox.run("true"), lambda: sandbox.read_file("file")) * 2,
            lambda: sandbox.write_file("file", b""),
        ):
            with pytest.raises(SandboxError) as later:
                call()
            assert str(later.value) == str(first.value)
        assert output(other, "echo unharmed") == "unharmed\n"


def _killer(backend: SandboxBackend, sandbox: Any) -> Callable[[], object]:
    """Returns a function that kills the first process of a sandbox."""
    if isinstance(backend, DockerBackend):
        return partial(connect(backend._host).api.kill, sandbox._container._id)
    return partial(os.kill, first_pid(sandbox), signal.SIGKILL)


@contextmanager
def _running(backend: SandboxBackend) -> Iterator[tuple[Sandbox, AlivePipe, str]]:
    """Yields a sandbox, a pipe that it mounts, and the path of the pipe for its commands."""
    with alive_pipe(backend) as alive, opened(backend, mounts=(alive.mount,)) as sandbox:
        yield sandbox, alive, alive.path(sandbox)
