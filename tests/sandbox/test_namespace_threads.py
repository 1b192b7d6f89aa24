"""Many threads, forks, and calls that a signal interrupts."""

import os
import signal
import threading

import pytest
from sandbox_scene import BACKEND, Beacon, make_sandbox

from coding_gym.errors import SandboxError
from coding_gym.sandbox import Sandbox
from coding_gym.sandbox.zygotes import stop_zygotes
from coding_gym.testing.debug import helper_pid


class _Interruption(BaseException):
    pass


def test_an_interrupted_call_spoils_its_sandbox_and_no_other(beacon: Beacon) -> None:
    def interrupt(number: int, frame: object) -> None:
        raise _Interruption

    def interrupt_the_call() -> None:
        beacon.wait()
        os.kill(os.getpid(), signal.SIGALRM)

    other = make_sandbox()
    sandbox = make_sandbox(mounts=(beacon.mount,))
    previous = signal.signal(signal.SIGALRM, interrupt)
    thread = threading.Thread(target=interrupt_the_call)
    thread.start()
    try:
        with pytest.raises(_Interruption):
            sandbox.run(f"{beacon.light}; sleep 60")
    finally:
        thread.join()
        signal.signal(signal.SIGALRM, previous)
    with pytest.raises(SandboxError, match="interrupted"):
        sandbox.run("echo late")
    sandbox.close()
    assert other.run("echo unharmed").output == "unharmed\n"
    other.close()


def test_an_interrupted_open_leaves_open_sandboxes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: object) -> None:
        raise _Interruption

    with make_sandbox() as before:
        with monkeypatch.context() as patch:
            patch.setattr("socket.recv_fds", interrupt)
            with pytest.raises(_Interruption):
                make_sandbox()
        with make_sandbox(env={"A": "right"}) as after:
            assert after.run("echo $A").output == "right\n"
        assert before.run("echo unharmed").output == "unharmed\n"
    stop_zygotes()


# From 3.12 on, Python warns of forks while threads run, which is what some trainers do.
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_fork_of_the_owner_starts_a_zygote_of_its_own() -> None:
    sandbox = make_sandbox()
    parents = helper_pid(BACKEND)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        answer = _in_the_fork(sandbox, parents)
        os.write(writer, answer.encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    assert os.read(reader, 1000) == b"own zygote, belongs to the process, forked"
    os.close(reader)
    assert sandbox.run("echo unharmed").output == "unharmed\n"
    assert helper_pid(BACKEND) == parents
    sandbox.close()


def _in_the_fork(inherited: Sandbox, parents: int) -> str:
    try:
        with make_sandbox() as sandbox:
            output = sandbox.run("echo -n forked").output
        is_own = helper_pid(BACKEND) != parents
        try:
            inherited.run("true")
        except SandboxError as error:
            inherited.close()
            refusal = "belongs to the process" if "belongs" in str(error) else str(error)
            return f"{'own' if is_own else 'shared'} zygote, {refusal}, {output}"
        return "an inherited sandbox ran a command"
    finally:
        stop_zygotes()
