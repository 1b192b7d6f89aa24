"""Checks of how commands and sandboxes end: time limits, what is left running, closing."""

# The names of the checks say what others say in docstrings.

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from checks.beacon import Beacon, beacon
from checks.claims import claim, expect, expect_error, opened, output
from coding_gym.errors import SandboxError
from coding_gym.sandbox.protocol import Promise, Sandbox, SandboxBackend

_SOON_S = 3.0
# What it starts tells so, and then ends by itself even where nothing else ends it.
_LIGHT = "exec 3> {pipe}; echo >&3; : > lit; sleep 8"
_UNTIL_LIT = "until [ -e lit ]; do sleep 0.01; done"


@claim()
def a_timeout_kills_everything_and_the_sandbox_goes_on(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        result = sandbox.run("echo begun; trap '' TERM; sleep 60 & sleep 60", timeout_s=2)
        expect("result", (result.timed_out, result.exit_code), (True, 124))
        expect("output so far", result.output, "begun\n")
        expect("bounded", result.duration_s < 30, True)
        expect("the next command", output(sandbox, "echo next"), "next\n")


@claim()
def a_timeout_holds_when_the_output_is_closed(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        result = sandbox.run("exec >&- 2>&-; sleep 60", timeout_s=0.5)
        expect("result", (result.timed_out, result.exit_code), (True, 124))


@claim()
def a_timeout_holds_while_output_floods(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        result = sandbox.run("yes", timeout_s=0.5, max_output_bytes=1000)
        expect("result", (result.timed_out, result.exit_code), (True, 124))
        expect("bounded", result.duration_s < 30, True)


@claim()
def a_timeout_kills_what_ignores_signals_or_is_stopped(backend: SandboxBackend) -> None:
    with _running(backend) as (sandbox, lit, light):
        deaf = f"(trap '' TERM HUP INT QUIT TSTP; {light}) & {_UNTIL_LIT}; rm lit"
        stopped = f"({light}) & {_UNTIL_LIT}; kill -STOP %2; kill -STOP $$; sleep 60"
        expect("timed out", sandbox.run(f"set -m; {deaf}; {stopped}", timeout_s=1).timed_out, True)
        lit.wait_lit()
        expect("both processes have ended", lit.is_out(_SOON_S), True)


@claim(Promise.NO_ESCAPED_PROCESSES)
def a_timeout_kills_what_left_its_session(backend: SandboxBackend) -> None:
    with _running(backend) as (sandbox, lit, light):
        result = sandbox.run(f"(setsid bash -c '{light}' &); {_UNTIL_LIT}; sleep 60", timeout_s=1)
        expect("timed out", result.timed_out, True)
        lit.wait_lit()
        expect("the escaped process has ended", lit.is_out(_SOON_S), True)


@claim(Promise.NO_ESCAPED_PROCESSES)
def what_left_its_session_ends_with_the_command(backend: SandboxBackend) -> None:
    with _running(backend) as (sandbox, lit, light):
        result = sandbox.run(f"(setsid bash -c '{light}' >&- 2>&- &); {_UNTIL_LIT}", timeout_s=20)
        expect("timed out", result.timed_out, False)
        lit.wait_lit()
        expect("the escaped process has ended", lit.is_out(_SOON_S), True)


@claim()
def what_is_left_running_is_killed_and_counted(backend: SandboxBackend) -> None:
    with _running(backend) as (sandbox, lit, light):
        result = sandbox.run(f"(exec >&- 2>&-; {light}) & {_UNTIL_LIT}; echo done")
        expect("result", (result.exit_code, result.output), (0, "done\n"))
        expect("leftovers", result.num_leftovers >= 1, True)
        lit.wait_lit()
        expect("the process has ended", lit.is_out(_SOON_S), True)
        expect("none are left by a plain command", sandbox.run("true | true").num_leftovers, 0)


@claim()
def a_background_process_that_holds_the_output_is_not_waited_for(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        result = sandbox.run("echo seen; sleep 60 &", timeout_s=30)
        expect("result", (result.timed_out, result.output), (False, "seen\n"))
        expect("leftovers", result.num_leftovers, 1)


@claim()
def calls_may_come_from_any_thread(backend: SandboxBackend) -> None:
    outputs: list[str] = []
    with opened(backend) as sandbox:
        thread = threading.Thread(target=lambda: outputs.append(output(sandbox, "echo thread")))
        thread.start()
        thread.join()
    expect("output", outputs, ["thread\n"])


@claim()
def a_closed_sandbox_says_so_and_closes_twice(backend: SandboxBackend) -> None:
    with opened(backend) as sandbox:
        taken = sandbox.snapshot()
        sandbox.close()
        sandbox.close()
        expect_error("run", SandboxError, lambda: sandbox.run("true"))
        expect_error("read", SandboxError, lambda: sandbox.read_file("file"))
        expect_error("write", SandboxError, lambda: sandbox.write_file("file", b""))
        expect_error("snapshot", SandboxError, sandbox.snapshot)
        expect_error("restore", SandboxError, lambda: sandbox.restore(taken))


@claim()
def closing_ends_a_running_command(backend: SandboxBackend) -> None:
    errors: list[SandboxError] = []
    with _running(backend) as (sandbox, lit, light):
        thread = threading.Thread(target=_collect_error, args=(sandbox, light, errors))
        thread.start()
        lit.wait_lit()
        sandbox.close()
        thread.join(_SOON_S)
        expect("the call has returned", thread.is_alive(), False)
        expect("the process has ended", lit.is_out(_SOON_S), True)
    expect("errors", [str(error) for error in errors], ["the sandbox is closed"])


@claim()
def an_error_in_the_block_closes_the_sandbox(backend: SandboxBackend) -> None:
    kept: list[Sandbox] = []

    def fail() -> None:
        with opened(backend) as sandbox:
            kept.append(sandbox)
            raise KeyError("ours")

    expect_error("the caller's error", KeyError, fail)
    expect_error("run", SandboxError, lambda: kept[0].run("true"))


def _collect_error(sandbox: Sandbox, command: str, errors: list[SandboxError]) -> None:
    try:
        sandbox.run(command)
    except SandboxError as error:
        errors.append(error)


@contextmanager
def _running(backend: SandboxBackend) -> Iterator[tuple[Sandbox, Beacon, str]]:
    """Gives a sandbox, a beacon in it, and the commands that light it for some seconds."""
    with beacon(backend) as lit, opened(backend, mounts=(lit.mount,)) as sandbox:
        pipe = lit.pipe(sandbox.path(lit.mount.target))
        yield sandbox, lit, _LIGHT.format(pipe=pipe)
