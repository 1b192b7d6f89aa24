"""One command as a child process in a session of its own: bounded output, time limit, leftovers.

Works wherever Python and bash do. A process that leaves its session escapes; nothing here can hold
it, which is one reason why the ``process`` backend must be asked for by name.
"""

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from coding_gym.calls import ExecResult
from coding_gym.sandbox.results import render_output
from coding_gym.sandbox.spec import SandboxLimits
from coding_gym.sandbox.zygote.output import BoundedOutput
from coding_gym.sandbox.zygote.replies import shell_exit_code
from coding_gym.sandbox.zygote.watch import GRACE_S

_READ_BYTES = 1 << 16
# How soon the end of a shell is noticed when something it started still holds the output open.
_POLL_S = 0.01


class ProcessGroup:
    """A running command.

    Args:
        script: The file that holds its text.
        cwd: Where it runs.
        env: All its environment variables.
        stdin: What it reads, a descriptor.
        limits: Of these, the size of a file and the number of open files are set.
        max_output_bytes: How much output is kept.

    Raises:
        OSError: bash could not be started.
    """

    def __init__(
        self,
        script: Path,
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: int,
        limits: SandboxLimits,
        max_output_bytes: int,
    ) -> None:
        self._output = BoundedOutput(max_output_bytes)
        self._started = time.monotonic()
        bounds = (
            f"ulimit -c 0; ulimit -f {limits.file_bytes >> 10}; ulimit -n {limits.num_open_files}"
        )
        # eval in a fresh bash, so that error messages read as those of `bash -c`.
        start = f'{bounds}; exec bash -c \'eval "unset script; $(<"$script")"\''
        self._process = subprocess.Popen(
            ["bash", "-c", start],  # noqa: S607 - wherever this system has it
            cwd=cwd,
            env={**env, "script": str(script)},
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert self._process.stdout is not None  # noqa: S101 - for the type checker: we asked for a pipe
        self._reader = self._process.stdout.fileno()
        self._open = True

    def wait(self, timeout_s: float) -> ExecResult:
        """Returns how the command ended, after killing whatever is left of it."""
        with self._process:
            finished = self._watch(self._started + timeout_s)
            if finished:
                self._read_until(time.monotonic() + GRACE_S)
            num_leftovers = self._kill_session()
            self._process.wait()
            self._read_until(time.monotonic() + GRACE_S)
        output, truncated = render_output(*self._output.parts(), self._output.num_bytes)
        return ExecResult(
            exit_code=shell_exit_code(self._process.returncode, finished=finished),
            output=output,
            timed_out=not finished,
            truncated=truncated,
            duration_s=time.monotonic() - self._started,
            num_leftovers=num_leftovers if finished else 0,
        )

    def end(self) -> None:
        """Kills a command that another thread waits for; nothing where it has ended."""
        if self._process.poll() is None:
            self._kill_session()

    def _watch(self, deadline: float) -> bool:
        """Collects output until the shell ends; False when the deadline came first."""
        while self._process.poll() is None:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            if self._open:
                self._read(min(left, _POLL_S))
            else:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(left)
        return True

    def _read_until(self, deadline: float) -> None:
        while self._open and (left := deadline - time.monotonic()) > 0:
            self._read(left)

    def _read(self, timeout_s: float) -> None:
        poller = select.poll()
        poller.register(self._reader, select.POLLIN)
        if poller.poll(timeout_s * 1000):
            chunk = os.read(self._reader, _READ_BYTES)
            self._output.add(chunk)
            self._open = bool(chunk)

    def _kill_session(self) -> int:
        """Kills what is left of the command's session and returns how many processes that were."""
        pid = self._process.pid
        members = _session_members(pid)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        for member in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(member, signal.SIGKILL)
        return len(members)


def _session_members(session: int) -> list[int]:
    """Returns the running processes of a session but its leader; none where there is no /proc."""
    members = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            # The command's name, in parentheses, may hold anything; state and ids follow it.
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z" and int(entry.name) != session:
            members.append(int(entry.name))
    return members
